//! Units as types, and the one address for rounding: time rounds up, credit rounds down.
//!
//! All sums and differences saturate, visibly in this file and nowhere else: a rate that would be
//! negative is zero, an instant past the end of time is [`Time::NEVER`].

// Names of units are for people: what kernels run has none, and could not format them.
#[cfg(any(not(target_arch = "bpf"), feature = "words"))]
mod text;
mod wide;

#[cfg(any(not(target_arch = "bpf"), feature = "words"))]
pub use text::{Kind, UnitError};
pub use wide::{Wide, limbs};

use core::ops::{Add, AddAssign, Sub, SubAssign};

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// An instant: nanoseconds since the run (or the machine) began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Time(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Duration(pub u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Bytes(pub u64);

/// A rate in bytes per second, as the laws compute it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rate(pub u64);

/// A rate in bits per second, as links and scenarios state it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct BitRate(pub u64);

/// A dimensionless factor in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Ratio(pub u32);

/// Returns `a * b / c`, rounded down, saturating; the largest value for `c` = 0. The product is exact.
#[inline]
pub const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    Wide::product(a, b).over(c).to_u64()
}

/// Returns `a * b / c` as [`mul_div`], but rounded up.
#[inline]
pub const fn mul_div_up(a: u64, b: u64, c: u64) -> u64 {
    Wide::product(a, b).plus(c.saturating_sub(1)).over(c).to_u64()
}

impl Time {
    /// The beginning of a run.
    pub const ZERO: Self = Self(0);
    /// Later than every instant of a run.
    pub const NEVER: Self = Self(u64::MAX);
}

impl Add<Duration> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// The time from an earlier instant; none from a later one.
impl Sub for Time {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! saturating {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }
        impl Sub for $unit {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl AddAssign for $unit {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl SubAssign for $unit {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
    )*};
}

saturating!(Duration, Bytes, Rate, BitRate);

impl Duration {
    /// Returns the span in 2^-28 s, the unit of XCP's header: to the nearest, saturating at 16 s. A span that is
    /// not zero never becomes 0, which would mean "unknown" (draft-03 §3.2).
    // 2^28 / 10^9 = 2^19 / 5^9. 2^44 ns, far above 16 s, is what the shift can take.
    #[inline]
    pub const fn to_header(self) -> u32 {
        const HALF: u64 = 976_562;
        let units = if self.0 >> 44 == 0 { ((self.0 << 19) + HALF) / 1_953_125 } else { u64::MAX };
        if units > u32::MAX as u64 {
            u32::MAX
        } else if units == 0 && self.0 > 0 {
            1
        } else {
            units as u32
        }
    }

    /// Returns the span of so many 2^-28 s, rounded up.
    #[inline]
    pub const fn from_header(units: u32) -> Self {
        Self((units as u64 * 1_953_125).div_ceil(1 << 19))
    }
}

impl Bytes {
    /// Returns the rate that carries this amount in `span`, rounded down; the largest rate in no time.
    #[inline]
    pub const fn per(self, span: Duration) -> Rate {
        Rate(mul_div(self.0, SECOND, span.0))
    }

    /// Returns how long `rate` takes for this amount, rounded up; forever at rate 0.
    #[inline]
    pub const fn at(self, rate: Rate) -> Duration {
        // Packets, and what a pacer asks: one division of a word.
        if !cfg!(target_arch = "bpf") && self.0 <= u64::MAX / SECOND && rate.0 > 0 {
            return Duration((self.0 * SECOND).div_ceil(rate.0));
        }
        Duration(mul_div_up(self.0, SECOND, rate.0))
    }
}

impl Rate {
    /// Returns the amount that this rate carries in `span`, rounded down.
    #[inline]
    pub const fn over(self, span: Duration) -> Bytes {
        Bytes(mul_div(self.0, span.0, SECOND))
    }

    /// Returns the rate in bits per second.
    #[inline]
    pub const fn bits(self) -> BitRate {
        BitRate(self.0.saturating_mul(8))
    }
}

impl BitRate {
    /// Returns the rate in bytes per second, rounded down.
    #[inline]
    pub const fn bytes(self) -> Rate {
        Rate(self.0 / 8)
    }
}

impl Ratio {
    /// The ratio 1.
    pub const ONE: Self = Self(1_000_000);

    /// Creates the ratio of `n` millionths.
    pub const fn ppm(n: u32) -> Self {
        Self(n)
    }

    /// Returns this part of `whole`, rounded down.
    #[inline]
    pub const fn of(self, whole: u64) -> u64 {
        mul_div(whole, self.0 as u64, Self::ONE.0 as u64)
    }
}
