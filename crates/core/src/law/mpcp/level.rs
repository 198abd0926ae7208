//! Load levels: a load factor as up to eight digits of two bits, each prefix of which is a coarser level.
//!
//! A digit is 1 to 3 (01, 10, 11); 00 stays free, for packets of others. The first is the zone: low, high
//! or over. n digits tell 3^n levels apart, each a third of the level that one digit fewer says, so a
//! prefix of a level is a level.

use crate::units::{Ratio, mul_div};

/// Length of the longest chain in packets, and so the most digits of a level.
pub const DIGITS_MAX: u32 = 8;
/// Millionths, the unit of load factors here.
const ONE: u32 = Ratio::ONE.0;

/// Bounds of the 27 levels of three digits, parts of the capacity (MP table 1 every third; the others A-19,
/// as MP has no table of TPCP). A load factor is below its level's upper bound.
const BOUNDS: [u32; 28] = [
    0, 100_000, 150_000, 200_000, 250_000, 320_000, 400_000, 500_000, 650_000, 800_000, // low
    820_000, 835_000, 850_000, 880_000, 920_000, 950_000, 970_000, 985_000, 1_000_000, // high
    1_015_000, 1_030_000, 1_050_000, 1_150_000, 1_270_000, 1_400_000, 1_550_000, 1_750_000, 2_000_000,
];
/// Digits of [`BOUNDS`].
const TABLED: u8 = 3;
/// The first bound of the zone over.
const OVER: u32 = 18;
/// Factors of a window at the bounds from [`OVER`] on (MP table 1 every third, A-19).
const FACTORS: [u32; 10] =
    [875_000, 875_000, 875_000, 875_000, 770_000, 680_000, 600_000, 550_000, 490_000, 430_000];

/// Zone of low load, a first digit: below 0.8 of the capacity.
pub const LOW: u8 = 1;
/// Zone of high load, a first digit: from 0.8 of the capacity on.
pub const HIGH: u8 = 2;
/// Zone of overload, a first digit: from the capacity on.
pub const OVERLOAD: u8 = 3;

/// A load level, known by its first digits: the load factor is from `from` to below `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Level {
    /// Least load factor of the level, millionths of the capacity.
    pub from: u32,
    /// Upper bound of the load factor, not reached, millionths of the capacity.
    pub to: u32,
    /// Factors of a window at `from` and at `to`, where that is in the zone of overload.
    factors: [u32; 2],
    /// Number of the level among those of so many digits.
    number: u16,
    /// Two bits each, the first one lowest.
    digits: u16,
    /// Number of digits that are known.
    known: u8,
}

impl Level {
    /// The level of which no digit is known.
    pub const NONE: Self =
        Self { from: 0, to: 2 * ONE, factors: [0, FACTORS[9]], number: 0, digits: 0, known: 0 };

    /// Returns the level of a load factor in millionths, in `n` digits. From 2 on it is the last one.
    #[inline(always)]
    pub fn of(load: u32, n: u32) -> Self {
        let mut level = Self::NONE;
        let mut digits = 0;
        while digits < n.min(DIGITS_MAX) {
            let (first, second) = level.thirds();
            let digit = 1 + (load >= first) as u8 + (load >= second) as u8;
            level = level.then(digit);
            digits += 1;
        }
        level
    }

    /// Returns the level of which only the zone is known.
    #[inline(always)]
    pub fn of_zone(zone: u8) -> Self {
        Self::NONE.then(zone)
    }

    /// Returns the level with one digit more, 3 for a number that is no digit; eight digits stay as they are.
    #[inline(always)] // so that VCP in BPF has of it what one digit needs
    pub fn then(self, digit: u8) -> Self {
        if self.known >= DIGITS_MAX as u8 {
            return self;
        }
        let third = if digit == 1 || digit == 2 { digit as u16 - 1 } else { 2 };
        let mut next = Self {
            number: 3 * self.number + third,
            digits: self.digits | (third + 1) << (2 * self.known),
            known: self.known + 1,
            ..self
        };
        if next.known <= TABLED {
            let width = if next.known == 1 {
                9
            } else if next.known == 2 {
                3
            } else {
                1
            };
            let (from, to) = (next.number as u32 * width, (next.number as u32 + 1) * width);
            (next.from, next.to) = (entry(&BOUNDS, from), entry(&BOUNDS, to));
            next.factors =
                if to > OVER { [entry(&FACTORS, from - OVER), entry(&FACTORS, to - OVER)] } else { [0; 2] };
            return next;
        }
        let (first, second) = self.thirds();
        let cuts = [self.from, first, second, self.to];
        let [low, high] = self.factors;
        let factors = [low, geometric(low, low, high), geometric(low, high, high), high];
        let at = third as u32;
        (next.from, next.to) = (entry(&cuts, at), entry(&cuts, at + 1));
        next.factors = [entry(&factors, at), entry(&factors, at + 1)];
        next
    }

    /// The two bounds between its thirds. Beyond the table: geometric in low and over, linear in high
    /// the lowest level, which has no ratio, as the table divides its own lowest.
    #[inline(always)]
    fn thirds(&self) -> (u32, u32) {
        if self.known < TABLED {
            let width = if self.known == 0 {
                27
            } else if self.known == 1 {
                9
            } else {
                3
            };
            let from = self.number as u32 * width;
            return (entry(&BOUNDS, from + width / 3), entry(&BOUNDS, from + 2 * (width / 3)));
        }
        let (from, to) = (self.from, self.to);
        if self.zone() == HIGH {
            let width = to - from;
            (from + width / 3, from + 2 * width / 3)
        } else if from == 0 {
            (to / 2, to - to / 4)
        } else {
            (geometric(from, from, to), geometric(from, to, to))
        }
    }

    /// Returns the zone, 1 to 3; 0: nothing is known.
    #[inline]
    pub const fn zone(&self) -> u8 {
        (self.digits & 3) as u8
    }

    /// Returns the number of digits that are known.
    #[inline]
    pub const fn known(&self) -> u8 {
        self.known
    }

    /// Returns digit `index`, the zone being 0; 0 where it is not known.
    #[inline]
    pub const fn digit(&self, index: u8) -> u8 {
        if index < self.known { (self.digits >> (2 * index) & 3) as u8 } else { 0 }
    }

    /// Returns the first `count` digits, two bits each, the first one lowest.
    #[inline]
    pub const fn prefix(&self, count: u8) -> u16 {
        if count >= DIGITS_MAX as u8 { self.digits } else { self.digits & ((1 << (2 * count)) - 1) }
    }

    /// Returns the number of the level, from 0, among the 3^n with as many digits.
    #[inline]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// Returns the factor of a window in the worst case of the level. Only in the zone of overload.
    #[inline]
    pub const fn factor(&self) -> Ratio {
        Ratio(self.factors[1])
    }
}

/// `table[at]`, and the last entry beyond.
#[inline]
fn entry(table: &[u32], at: u32) -> u32 {
    match (table.get(at as usize), table.last()) {
        (Some(&found), _) | (None, Some(&found)) => found,
        _ => 0,
    }
}

/// The geometric mean of three, rounded down: bit by bit, as rarely as levels change.
#[inline]
fn geometric(a: u32, b: u32, c: u32) -> u32 {
    let cube = mul_div(a as u64 * b as u64, c as u64, 1);
    let mut root = 0u64;
    let mut bit = 1u64 << 20;
    while bit > 0 {
        let more = root | bit;
        if more * more * more <= cube {
            root = more;
        }
        bit >>= 1;
    }
    root as u32
}
