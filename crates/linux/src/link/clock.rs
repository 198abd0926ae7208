//! The kernel's clocks, as links count time: picoseconds since a common time zero.

use congestlab_net::packet::{PS_PER_NS, Picos};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A clock with a time zero that several links share.
#[derive(Debug)]
pub struct Clock {
    /// Nanoseconds of CLOCK_MONOTONIC.
    zero: u64,
}

impl Clock {
    /// Makes a clock whose time zero is now.
    pub fn start() -> Self {
        Self { zero: read(ClockId::Monotonic) }
    }

    /// Makes a clock whose time zero is when the monotonic clock shows `zero` nanoseconds, which may be in the future.
    pub fn at(zero: u64) -> Self {
        Self { zero }
    }

    /// Returns the time since time zero; 0 before it.
    pub fn now(&self) -> Picos {
        read(ClockId::Monotonic).saturating_sub(self.zero) * PS_PER_NS
    }

    /// The difference between nanoseconds of the wall clock, with which the kernel stamps packets, and
    /// nanoseconds since time zero. Somebody may set the wall clock at any time.
    pub(super) fn wall_offset(&self) -> u64 {
        read(ClockId::Realtime).wrapping_sub(read(ClockId::Monotonic)).wrapping_add(self.zero)
    }
}

fn read(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}
