//! Random early detection (Floyd, Jacobson: "Random early detection gateways for congestion
//! avoidance", ToN 1(4) 1993, cited as F93), with the gentle variant, ECN, and ns-2's two habits
//! (docs/design/protocols.md 10.2).
//!
//! In fixed point, so that a run is the same on every machine: the average queue has 32 binary
//! digits behind the point, chances and the weight 64.

use super::{Arrival, Chance, Draws, QueueLaw, Queues, Reason, Verdict};
use crate::law::Packet;
use crate::units::Bytes;

/// Binary digits behind the point of the average.
const FRACTION: u32 = 32;

/// ns-2's `mark_p_`, a tenth in units of 2^-64: a queue that marks did not hold back is dropped from.
const MARK_P: u64 = u64::MAX / 10;

/// Settings of RED in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Average queue lengths between which packets go at random.
    pub thresholds: Thresholds,
    /// Probability just below the upper threshold.
    pub max_p: Chance,
    /// Weight of one arrival in the average.
    pub weight: Chance,
    /// True if the probability rises from `max_p` at the upper threshold to 1 at twice of it, instead of
    /// jumping there.
    pub gentle: bool,
    /// True to mark packets of ECN-capable transports where they would be dropped at random.
    pub ecn: bool,
    /// True to let 1/p_b packets pass after one that went, so that gaps are between 1/p_b and 2/p_b: ns-2's
    /// `wait_`.
    pub wait: bool,
    /// True to mark only where p_b is below `MARK_P`, and drop from there on: ns-2's `use_mark_p_`.
    pub use_mark_p: bool,
    /// Typical packet, in bytes: counts what an idle link could have sent, and in bytes the
    /// probability is for this size and proportional to the arrival's.
    pub packet_size: u16,
}

impl Config {
    /// Returns the count that the first arrival from `min` on finds: F93 fig. 2 counts it as none, ns-2 with `wait_` as
    /// one that passed.
    fn count_below(&self) -> i64 {
        if self.wait { 0 } else { -1 }
    }
}

/// Average queue lengths between which packets go at random, by the unit of the average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// The average counts packets of any size.
    Packets {
        /// Lower threshold: below, none goes.
        min: u32,
        /// Upper threshold: from here on all go (gentle: from twice of it).
        max: u32,
    },
    /// The average counts bytes.
    Bytes {
        /// Lower threshold: below, none goes.
        min: u32,
        /// Upper threshold: from here on all go (gentle: from twice of it).
        max: u32,
    },
}

/// The queue as an arrival finds it.
#[derive(Clone, Copy, Debug)]
struct Found {
    packets: u64,
    bytes: u64,
    /// There is no room for the arrival.
    is_full: bool,
    /// Data that the link could have carried since it has had nothing to do.
    unused: Option<Bytes>,
}

/// The average and what else RED remembers.
#[derive(Clone, Debug)]
pub struct Red {
    config: Config,
    /// Thresholds and average, with [`FRACTION`] binary digits behind the point.
    min: u64,
    max: u64,
    average: u64,
    /// Arrivals since the last packet that went; [`Config::count_below`] since the average was below `min`.
    count: i64,
}

impl QueueLaw for Red {
    type Config = Config;
    type Sample = ();

    fn start(config: &Config) -> Self {
        Self::new(*config)
    }

    fn marks(config: &Config) -> bool {
        config.ecn
    }

    #[inline]
    fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        draws: &mut impl Draws,
    ) -> Verdict {
        self.meet(arrival, queues, queues.unused(), draws)
    }

    fn sample(&mut self, _queues: &impl Queues) {}
}

impl Red {
    fn new(config: Config) -> Self {
        let (Thresholds::Packets { min, max } | Thresholds::Bytes { min, max }) = config.thresholds;
        Self {
            config,
            min: u64::from(min) << FRACTION,
            max: u64::from(max) << FRACTION,
            average: 0,
            count: config.count_below(),
        }
    }

    /// Decides on a packet that arrives at a queue, which since it has been empty could have sent so much; `None`: it is not.
    pub(super) fn meet(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &impl Queues,
        unused: Option<Bytes>,
        draws: &mut impl Draws,
    ) -> Verdict {
        let found = Found {
            packets: queues.packets(arrival.queue),
            bytes: queues.bytes(arrival.queue).0,
            is_full: !queues.has_room(arrival.queue, arrival.packet.size()),
            unused,
        };
        self.arrive(arrival.packet, found, draws)
    }

    /// One packet arrives (F93 §4 and fig. 2; the count makes the gaps between drops uniform).
    fn arrive(&mut self, packet: &impl Packet, found: Found, draws: &mut impl Draws) -> Verdict {
        self.update_average(found);
        let base = (self.average >= self.min).then(|| self.base_probability());
        let verdict = match base {
            None => {
                self.count = self.config.count_below();
                Verdict::Pass
            }
            Some(None) => Verdict::Drop(Reason::RedForced),
            Some(Some(base)) if draws.draw(self.spread(self.by_size(base, packet.size()))) => {
                let marks = self.config.ecn && (!self.config.use_mark_p || base < MARK_P);
                if marks && packet.ecn() != 0 { Verdict::Mark } else { Verdict::Drop(Reason::RedEarly) }
            }
            Some(Some(_)) => {
                self.count += 1;
                Verdict::Pass
            }
        };
        let verdict = if found.is_full { Verdict::Drop(Reason::QueueFull) } else { verdict };
        if verdict != Verdict::Pass {
            self.count = 0;
        }
        verdict
    }

    /// Moves the average by the queue that an arrival finds, or by the packets that the idle link
    /// could have sent (F93 §4).
    fn update_average(&mut self, found: Found) {
        let weight = u128::from(self.config.weight.0);
        if let Some(unused) = found.unused {
            let packets = unused.0 / u64::from(self.config.packet_size.max(1));
            let kept = power(ONE - (weight >> 1) as u64, packets);
            self.average = multiply(self.average, kept);
            return;
        }
        let queue = match self.config.thresholds {
            Thresholds::Packets { .. } => found.packets,
            Thresholds::Bytes { .. } => found.bytes,
        };
        let queue = queue.min(u64::from(u32::MAX)) << FRACTION;
        let step = (u128::from(queue.abs_diff(self.average)) * weight + (1 << 63)) >> 64;
        // At most the difference, since the weight is below 1.
        let step = step as u64;
        if queue >= self.average {
            self.average += step;
        } else {
            self.average -= step;
        }
    }

    /// p_b of F93, in units of 2^-64, for an average from `min` on; `None`: everything goes.
    fn base_probability(&self) -> Option<u64> {
        let max_p = self.config.max_p.0;
        let share = |of: u64, part: u64, whole: u64| {
            // Below `of`, since the part is below the whole.
            (u128::from(of) * u128::from(part) / u128::from(whole)) as u64
        };
        if self.average < self.max {
            Some(share(max_p, self.average - self.min, self.max - self.min))
        } else if self.config.gentle && self.average / 2 < self.max {
            Some(max_p + share(u64::MAX - max_p, self.average - self.max, self.max))
        } else {
            None
        }
    }

    /// p_b of an arrival of so many bytes.
    fn by_size(&self, base: u64, size: Bytes) -> u64 {
        match self.config.thresholds {
            Thresholds::Packets { .. } => base,
            Thresholds::Bytes { .. } => {
                let scaled =
                    u128::from(base) * u128::from(size.0) / u128::from(self.config.packet_size.max(1));
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
        }
    }

    /// p_a of F93: p_b / (1 - count p_b), 1 where that has no sense. ns-2's `wait_`, whose count has the arrival in
    /// it: none below count p_b = 1, then p_b / (2 - count p_b).
    fn spread(&self, base: u64) -> Chance {
        let one = 1i128 << 64;
        // Waiting looks at it rounded up: a p_b of 1 lets none pass.
        let (base_up, rest) = if self.config.wait {
            let base_up = i128::from(base) + 1;
            let passed = i128::from(self.count + 1) * base_up;
            if passed < one {
                return Chance::NEVER;
            }
            (base_up, 2 * one - passed)
        } else {
            (i128::from(base), one - i128::from(self.count) * i128::from(base))
        };
        if rest <= base_up {
            return Chance::CERTAIN;
        }
        Chance(((u128::from(base) << 64) / rest as u128) as u64)
    }
}

/// 1 with 63 binary digits behind the point: squares of what is at most 1 stay within 128 bits.
const ONE: u64 = 1 << 63;

/// `value * factor`, the factor with 63 binary digits behind the point, to the nearest.
fn multiply(value: u64, factor: u64) -> u64 {
    ((u128::from(value) * u128::from(factor) + (1 << 62)) >> 63) as u64
}

/// `base^exponent`, both sides with 63 binary digits behind the point.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Carried;

    fn chance(p: f64) -> Chance {
        Chance((p * 2f64.powi(64)) as u64)
    }

    fn config(gentle: bool) -> Config {
        Config {
            thresholds: Thresholds::Packets { min: 50, max: 100 },
            max_p: chance(0.1),
            weight: chance(0.002),
            gentle,
            ecn: true,
            wait: false,
            use_mark_p: false,
            packet_size: 1000,
        }
    }

    fn at(average: u64, count: i64, gentle: bool) -> Red {
        Red { average: average << FRACTION, count, ..Red::new(config(gentle)) }
    }

    fn fraction(p: u64) -> f64 {
        p as f64 / 2f64.powi(64)
    }

    fn found(packets: u64) -> Found {
        Found { packets, bytes: packets * 1000, is_full: false, unused: None }
    }

    const ECT: Carried = Carried { size: Bytes(1000), words: [0; 7], tag: 0, ecn: 0b10, memory: [0; 8] };

    /// splitmix64.
    struct Stream {
        state: u64,
        draws: u64,
    }

    impl Stream {
        fn new(state: u64) -> Self {
            Self { state, draws: 0 }
        }

        fn next(&mut self) -> u64 {
            self.draws += 1;
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }

    impl Draws for Stream {
        fn draw(&mut self, chance: Chance) -> bool {
            match chance {
                Chance::NEVER => false,
                Chance::CERTAIN => true,
                Chance(threshold) => self.next() < threshold,
            }
        }
    }

    /// docs/design/protocols.md 10.2, V10.1.
    #[test]
    fn v10_1_probabilities_by_average_and_count() {
        let near = |p: u64, expected: f64| assert!((fraction(p) - expected).abs() < 1e-12, "{}", fraction(p));
        let red = at(75, 10, false);
        let base = red.base_probability().unwrap();
        near(base, 0.05);
        near(red.spread(base).0, 0.1);
        near(at(75, -1, false).spread(base).0, 0.05 / 1.05);
        assert_eq!(at(75, 19, false).spread(base), Chance::CERTAIN, "p_b 0.05: the 20th goes at the latest");
        assert_eq!(at(75, 500, false).spread(base), Chance::CERTAIN);
        near(at(150, 0, true).base_probability().unwrap(), 0.55);
        assert_eq!(at(200, 0, true).base_probability(), None, "gentle: everything goes from 2 max on");
        assert_eq!(at(100, 0, false).base_probability(), None, "classic: from max on");
    }

    /// docs/design/protocols.md 10.2, V10.2.
    #[test]
    fn v10_2_the_average_moves_by_its_weight_and_decays_while_idle() {
        let average = |red: &Red| red.average as f64 / 2f64.powi(FRACTION as i32);
        let mut red = at(50, -1, false);
        red.update_average(found(60));
        assert!((average(&red) - 50.02).abs() < 1e-9, "{}", average(&red));

        // 0.1 s at 1300 packets/s of 1000 bytes.
        let mut red = at(1, -1, false);
        red.update_average(Found { unused: Some(Bytes(130_000)), ..found(0) });
        assert!((average(&red) - 0.998f64.powi(130)).abs() < 1e-9, "{}", average(&red));
        assert!((average(&red) - 0.7709).abs() < 5e-5);
    }

    /// The average against floats over 10^6 arrivals: the bound is the rounding of one step, 2^-33,
    /// divided by the weight with which it is forgotten.
    #[test]
    fn the_average_stays_within_its_rounding_of_the_float_average() {
        let mut draws = Stream::new(3);
        let mut red = Red::new(config(false));
        let mut average = 0.0;
        let mut worst = 0f64;
        for _ in 0..1_000_000 {
            let queue = draws.next() % 200;
            red.update_average(found(queue));
            average += 0.002 * (queue as f64 - average);
            worst = worst.max((red.average as f64 / 2f64.powi(FRACTION as i32) - average).abs());
        }
        let bound = 2f64.powi(-33) / 0.002;
        assert!(worst < bound, "{worst:e} off, bound {bound:e}");
    }

    /// F93 §4: between two that go, any number up to 1/p_b is equally likely.
    #[test]
    fn gaps_between_drops_are_uniform_at_a_steady_average() {
        let mut draws = Stream::new(4);
        let mut red = at(75, 0, false);
        let mut gaps = [0u32; 20];
        for _ in 0..20_000 {
            let mut gap = 0;
            loop {
                red.average = 75 << FRACTION;
                if red.arrive(&ECT, found(75), &mut draws) != Verdict::Pass {
                    break;
                }
                gap += 1;
            }
            gaps[gap] += 1;
        }
        let chi_square: f64 = gaps.iter().map(|&n| (f64::from(n) - 1e3).powi(2) / 1e3).sum();
        assert!(chi_square < 43.8, "{gaps:?}: chi-square {chi_square}, 0.999 quantile of 19 degrees 43.8");
    }

    #[test]
    fn marks_only_what_is_capable_and_only_at_random() {
        let mut draws = Stream::new(5);
        // p_a = 1 here.
        assert_eq!(at(75, 19, false).arrive(&ECT, found(75), &mut draws), Verdict::Mark);
        let plain = Carried { ecn: 0, ..ECT };
        let early = Verdict::Drop(Reason::RedEarly);
        assert_eq!(at(75, 19, false).arrive(&plain, found(75), &mut draws), early);
        let mut deaf = at(75, 19, false);
        deaf.config.ecn = false;
        assert_eq!(deaf.arrive(&ECT, found(75), &mut draws), early);
        let forced = Verdict::Drop(Reason::RedForced);
        assert_eq!(at(101, 0, false).arrive(&ECT, found(101), &mut draws), forced);
        let full = Found { is_full: true, ..found(75) };
        assert_eq!(at(75, 19, false).arrive(&ECT, full, &mut draws), Verdict::Drop(Reason::QueueFull));
        assert_eq!(at(10, 5, false).arrive(&ECT, found(10), &mut draws), Verdict::Pass);
        assert_eq!(draws.draws, 0, "certain outcomes draw nothing");
    }

    fn waiting(average: u64, count: i64) -> Red {
        Red {
            average: average << FRACTION,
            count,
            ..Red::new(Config { wait: true, use_mark_p: true, ..config(true) })
        }
    }

    /// docs/design/protocols.md 10.2, V10.4.
    #[test]
    fn v10_4_waiting_spares_as_many_as_go_on_average() {
        // p_b 0.05: 19 pass, the 20th may go, the 39th goes.
        let p_a = |count: i64| waiting(75, count - 1).spread(waiting(75, 0).base_probability().unwrap());
        assert_eq!(p_a(1), Chance::NEVER);
        assert_eq!(p_a(19), Chance::NEVER);
        for (count, expected) in [(21, 0.05 / 0.95), (30, 0.1), (38, 0.5)] {
            assert!((fraction(p_a(count).0) - expected).abs() < 1e-12, "{count}: {}", fraction(p_a(count).0));
        }
        assert_eq!(p_a(40), Chance::CERTAIN);
        assert_eq!(p_a(500), Chance::CERTAIN);
        // The first arrival from min on is one that passed.
        let mut red = waiting(49, 7);
        let mut draws = Stream::new(6);
        assert_eq!(red.arrive(&ECT, found(49), &mut draws), Verdict::Pass);
        red.average = 75 << FRACTION;
        assert_eq!(red.arrive(&ECT, found(75), &mut draws), Verdict::Pass);
        assert_eq!((red.count, draws.draws), (1, 0), "certain outcomes draw nothing");
    }

    /// With p_b = 0.052, 1/p_b is 19.2: the 20th is the first that may go, and each up to the 37th is as likely as it,
    /// 0.052 / (2 - 1.04); the 38th has the rest.
    #[test]
    fn v10_4_gaps_while_waiting_are_uniform_between_one_and_two_means() {
        let mut draws = Stream::new(7);
        let mut red = waiting(76, 0);
        let mut gaps = [0u32; 39];
        for _ in 0..20_000 {
            let mut gap = 0;
            loop {
                red.average = 76 << FRACTION;
                gap += 1;
                if red.arrive(&ECT, found(76), &mut draws) != Verdict::Pass {
                    break;
                }
            }
            gaps[gap] += 1;
        }
        assert!(gaps[..20].iter().all(|&n| n == 0), "{gaps:?}");
        let each = 20_000.0 * 0.052 / 0.96;
        let of = |n: u32, expected: f64| (f64::from(n) - expected).powi(2) / expected;
        let chi_square: f64 =
            gaps[20..38].iter().map(|&n| of(n, each)).sum::<f64>() + of(gaps[38], 20_000.0 - 18.0 * each);
        assert!(chi_square < 42.3, "{gaps:?}: chi-square {chi_square}, 0.999 quantile of 18 degrees 42.3");
    }

    /// docs/design/protocols.md 10.2, V10.5.
    #[test]
    fn v10_5_marks_end_where_a_tenth_would_go() {
        let mut draws = Stream::new(8);
        let early = Verdict::Drop(Reason::RedEarly);
        assert_eq!(waiting(99, 500).arrive(&ECT, found(99), &mut draws), Verdict::Mark, "p_b 0.098");
        assert_eq!(waiting(101, 500).arrive(&ECT, found(101), &mut draws), early, "p_b 0.109");
        let mut red = waiting(101, 500);
        red.config.use_mark_p = false;
        assert_eq!(red.arrive(&ECT, found(101), &mut draws), Verdict::Mark);
    }

    #[test]
    fn in_bytes_a_small_packet_goes_less_often() {
        let mut config = config(false);
        config.thresholds = Thresholds::Bytes { min: 50_000, max: 100_000 };
        let red = Red { average: 75_000 << FRACTION, ..Red::new(config) };
        let base = red.base_probability().unwrap();
        let (whole, small) = (red.by_size(base, Bytes(1000)), red.by_size(base, Bytes(40)));
        assert!((fraction(small) - 0.05 * 0.04).abs() < 1e-12);
        assert!((fraction(whole) - 0.05).abs() < 1e-12);
    }
}
