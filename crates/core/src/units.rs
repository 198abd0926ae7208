//! Units as types, and the one address for rounding: time rounds up, credit rounds down.

/// An instant: nanoseconds since the run (or the machine) began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Time(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Duration(pub u64);

/// An amount of data.
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

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);
    /// Later than every instant of a run.
    pub const NEVER: Self = Self(u64::MAX);
}

impl Ratio {
    /// `n` millionths.
    pub const fn ppm(n: u32) -> Self {
        Self(n)
    }
}
