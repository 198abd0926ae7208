//! The clocks of the kernel, as links count time: picoseconds since a common beginning.

use congestlab_net::packet::{PS_PER_NS, Picos};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A time zero that several links share.
#[derive(Debug)]
pub struct Clock {
    /// Nanoseconds of CLOCK_MONOTONIC.
    zero: u64,
}

impl Clock {
    /// Time zero is now.
    pub fn start() -> Self {
        Self { zero: read(ClockId::Monotonic) }
    }

    /// Time zero is when the monotonic clock shows `zero` nanoseconds, maybe later.
    pub fn at(zero: u64) -> Self {
        Self { zero }
    }

    /// Since time zero; before it, zero.
    pub fn now(&self) -> Picos {
        read(ClockId::Monotonic).saturating_sub(self.zero) * PS_PER_NS
    }

    /// What to subtract from nanoseconds of the wall clock, with which the kernel stamps packets, to
    /// get nanoseconds since time zero. Somebody may set the wall clock at any time.
    pub(super) fn wall_offset(&self) -> u64 {
        read(ClockId::Realtime).wrapping_sub(read(ClockId::Monotonic)).wrapping_add(self.zero)
    }
}

fn read(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}
