//! Random streams: counter-based, named, independent of each other.
//!
//! A draw is a pure function of (seed, name of what draws, number of the draw), so a run does not
//! depend on the order in which elements draw, and an added element shifts nobody's numbers. The
//! generator is Philox4x64 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
//! easy as 1, 2, 3", SC'11, cited as S11). Not for secrets.

/// Multipliers of the two halves of a round (S11 table 2, Philox4x64).
const MULTIPLIERS: [u64; 2] = [0xD2E7_470E_E14C_6C93, 0xCA5A_8263_9512_1157];
/// Constants that a round adds to the key: the golden ratio and the square root of 3 less 1 (S11 §3.3).
const WEYL: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];
/// S11 §4: 7 rounds pass every test, 10 leave a margin.
const ROUNDS: usize = 10;
/// Words of one block.
const BLOCK: u64 = 4;

/// One block of Philox4x64-10.
const fn philox(mut counter: [u64; 4], mut key: [u64; 2]) -> [u64; 4] {
    let mut round = 0;
    while round < ROUNDS {
        let a = counter[0] as u128 * MULTIPLIERS[0] as u128;
        let b = counter[2] as u128 * MULTIPLIERS[1] as u128;
        counter = [
            (b >> 64) as u64 ^ counter[1] ^ key[0],
            b as u64,
            (a >> 64) as u64 ^ counter[3] ^ key[1],
            a as u64,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        round += 1;
    }
    counter
}

/// Name of a stream, part by part: its 64-bit FNV-1a (draft-eastlake-fnv), the second half of the stream's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(u64);

impl Name {
    /// Creates the name that is this text.
    pub const fn new(text: &str) -> Self {
        Self(0xCBF2_9CE4_8422_2325).then(text)
    }

    /// Returns the name with this text behind it.
    #[must_use]
    pub const fn then(self, text: &str) -> Self {
        let (mut name, bytes) = (self, text.as_bytes());
        let mut i = 0;
        while i < bytes.len() {
            name = name.then_byte(bytes[i]);
            i += 1;
        }
        name
    }

    /// Returns the name with the decimal digits of a number behind it.
    #[must_use]
    pub const fn then_number(self, number: u32) -> Self {
        let rest = number / 10;
        let before = if rest == 0 { self } else { self.then_number(rest) };
        before.then_byte(b'0' + (number % 10) as u8)
    }

    const fn then_byte(self, byte: u8) -> Self {
        Self((self.0 ^ byte as u64).wrapping_mul(0x0000_0100_0000_01B3))
    }
}

/// A probability in units of 2^-64. The greatest value means certainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(pub u64);

impl Probability {
    /// Probability 0: never.
    pub const ZERO: Self = Self(0);
    /// Probability 1: always.
    pub const ONE: Self = Self(u64::MAX);

    /// Returns the nearest representable probability; below 0 (and not a number) is never, from 1 on always.
    pub const fn from_f64(p: f64) -> Self {
        // `as` saturates and takes NaN to 0.
        Self((p * 18_446_744_073_709_551_616.0) as u64)
    }

    /// Returns the probability as a number from 0 to 1.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0 // 2^64
    }
}

/// One named sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u64; 2],
    draws: u64,
    block: [u64; 4],
}

impl Stream {
    /// Creates the stream with this key.
    pub const fn new(key: [u64; 2]) -> Self {
        Self { key, draws: 0, block: [0; 4] }
    }

    /// Creates the stream of `name` (`links.bottleneck.errors`) in the run of this seed: the
    /// key is the seed and the 64-bit FNV-1a hash of the name.
    pub const fn named(seed: u64, name: &str) -> Self {
        Self::of(seed, Name::new(name))
    }

    /// Creates the stream of a name in the run of this seed, as [`Stream::named`].
    pub const fn of(seed: u64, name: Name) -> Self {
        Self::new([seed, name.0])
    }

    /// Returns the number of words drawn so far; zero means that the seed had no influence through this stream.
    #[inline]
    pub const fn draws(&self) -> u64 {
        self.draws
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let word = self.draws % BLOCK;
        if word == 0 {
            self.block = philox([self.draws / BLOCK, 0, 0, 0], self.key);
        }
        self.draws += 1;
        self.block[word as usize]
    }

    /// Returns the next 32 random bits; uses up a word of 64.
    #[inline]
    pub const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Draws a number uniformly from `0..n`, without bias (Lemire, "Fast random integer generation in an interval",
    /// TOMACS 29(1) 2019, algorithm 5). `n` = 0 asks for nothing and returns 0.
    pub const fn below(&mut self, n: u64) -> u64 {
        let mut product = self.next_u64() as u128 * n as u128;
        if (product as u64) < n {
            // The low products under 2^64 mod n belong to no whole share of the 2^64 values.
            let excess = n.wrapping_neg() % n;
            while (product as u64) < excess {
                product = self.next_u64() as u128 * n as u128;
            }
        }
        (product >> 64) as u64
    }

    /// Draws true with probability `p`. Certain outcomes draw nothing.
    #[inline]
    pub const fn bernoulli(&mut self, p: Probability) -> bool {
        match p {
            Probability::ZERO => false,
            Probability::ONE => true,
            Probability(threshold) => self.next_u64() < threshold,
        }
    }

    /// Draws from the Pareto distribution with this shape, above 1, and mean, in the unit of the mean.
    pub fn pareto(&mut self, shape: f64, mean: f64) -> f64 {
        mean * (shape - 1.0) / shape * libm::pow(self.uniform(), -1.0 / shape)
    }

    /// Draws from the exponential distribution with this mean, to the nearest integer, in the unit of the mean.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        libm::round(-libm::log(self.uniform()) * mean as f64) as u64
    }

    /// In (0, 1], so that the logarithm is finite: it is at least -37.
    const fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three published vectors of Random123 (`kat_vectors`, philox4x64 10).
    #[test]
    fn blocks_match_the_known_answers_of_random123() {
        let pi = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];
        let known = [
            (
                [0; 4],
                [0; 2],
                [0x1655_4d9e_ca36_314c, 0xdb20_fe9d_672d_0fdc, 0xd7e7_72ce_e186_176b, 0x7e68_b68a_ec7b_a23b],
            ),
            (
                [u64::MAX; 4],
                [u64::MAX; 2],
                [0x87b0_92c3_013f_e90b, 0x438c_3c67_be8d_0224, 0x9cc7_d7c6_9cd7_77b6, 0xa09c_aebf_594f_0ba0],
            ),
            (
                pi,
                [0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c],
                [0xa528_f454_03e6_1d95, 0x38c7_2dbd_566e_9788, 0xa5a1_610e_72fd_18b5, 0x57bd_43b5_e52b_7fe6],
            ),
        ];
        for (counter, key, block) in known {
            assert_eq!(philox(counter, key), block, "counter {counter:x?}, key {key:x?}");
        }
    }

    #[test]
    fn names_hash_as_fnv1a_was_published() {
        assert_eq!(Name::new(""), Name(0xcbf2_9ce4_8422_2325));
        assert_eq!(Name::new("a"), Name(0xaf63_dc4c_8601_ec8c));
        assert_eq!(Name::new("foobar"), Name(0x8594_4171_f739_67e8));
    }

    #[test]
    fn a_name_is_that_of_its_parts_together() {
        for number in [0, 7, 10, 4_294_967_295] {
            let whole = std::format!("flows.a/{number}.start");
            assert_eq!(Name::new("flows.").then("a/").then_number(number).then(".start"), Name::new(&whole));
        }
    }

    #[test]
    fn a_draw_depends_on_seed_name_and_number_alone() {
        let mut one = Stream::named(7, "links.a.errors");
        let numbers: [u64; 9] = core::array::from_fn(|_| one.next_u64());
        let mut other = Stream::named(7, "links.b.errors");
        let mut again = Stream::named(7, "links.a.errors");
        for number in numbers {
            assert_ne!(other.next_u64(), number);
            assert_eq!(again.next_u64(), number);
        }
        assert_ne!(Stream::named(8, "links.a.errors").next_u64(), numbers[0]);
        assert_eq!((one.draws(), again.draws()), (9, 9));
        assert_eq!(numbers[4], philox([1, 0, 0, 0], one.key)[0], "the second block has counter 1");
    }

    #[test]
    fn below_is_uniform_and_stays_below() {
        let mut stream = Stream::named(1, "test.below");
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[stream.below(6) as usize] += 1;
        }
        let chi_square: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi_square < 20.5, "{counts:?}: chi-square {chi_square}, 0.999 quantile 20.5");
        // Half of the range must be refused here, and what is left is still uniform.
        let large = (1 << 63) + 1;
        let low = (0..4000).filter(|_| stream.below(large) < large / 2).count();
        assert!((1850..2150).contains(&low), "{low} of 4000 in the lower half");
        assert_eq!(stream.below(1), 0);
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn bernoulli_keeps_its_probability_and_draws_nothing_when_certain() {
        let mut stream = Stream::named(1, "test.bernoulli");
        assert!(!stream.bernoulli(Probability::ZERO));
        assert!(stream.bernoulli(Probability::from_f64(1.0)));
        assert!(!stream.bernoulli(Probability::from_f64(-0.5)));
        assert!(!stream.bernoulli(Probability::from_f64(f64::NAN)));
        assert_eq!(stream.draws(), 0);
        let p = Probability::from_f64(0.3);
        let hits = (0..100_000).filter(|_| stream.bernoulli(p)).count();
        // Five standard deviations.
        assert!(hits.abs_diff(30_000) < 5 * 145, "{hits} of 100000 at p = 0.3");
        assert_eq!(Probability::from_f64(0.5), Probability(1 << 63));
    }

    #[test]
    fn exponential_draws_have_the_mean_and_the_median_of_the_law() {
        let mut stream = Stream::named(1, "test.exponential");
        let mean = 2_000_000_000;
        let draws: std::vec::Vec<u64> = (0..100_000).map(|_| stream.exponential(mean)).collect();
        let measured = draws.iter().sum::<u64>() as f64 / 1e5;
        assert!((measured / 2e9 - 1.0).abs() < 5.0 / 316.0, "mean {measured}");
        let above = draws.iter().filter(|&&d| d as f64 > 2e9 * core::f64::consts::LN_2).count();
        assert!(above.abs_diff(50_000) < 5 * 158, "{above} of 100000 above the median");
        assert_eq!(stream.exponential(0), 0);
    }
}
