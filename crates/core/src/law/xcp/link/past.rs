//! The two remedies that the thesis names for a router of bursty senders and does not build (TH 4.6): the average queue in
//! place of the least one, and a feedback that remembers what earlier intervals granted. TH gives no formulas; these are ours.

use super::{PLACES, POOL_MAX};
use crate::units::{Bytes, Duration, Rate, Time, Wide};

/// Part of a promise that flows have not used in an interval and that is forgotten with it, as a shift: an eighth. With less, a
/// flow that ends keeps its share for longer; with more, the pause of a burst outlives the memory.
const FORGOTTEN: u32 = 3;
/// Part of the input beyond the promises that counts as promised from then on, as a shift: a half. All of it, and one window
/// of an unpaced flow in a burst keeps the next intervals from granting.
const SURPRISE: u32 = 1;
/// Binary places that products of bytes and nanoseconds lose, so that 64 bits hold the sum of an interval.
const COARSE: u32 = 10;

/// Time average of the backlog since the last control interval.
///
/// Between two looks the backlog is taken to drain at the capacity: where feedback is computed before the queue, nothing is
/// seen of a queue that drains behind the last packet of a burst.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Average {
    began: Time,
    seen_at: Time,
    backlog: Bytes,
    /// Backlog times time, byte nanoseconds without the last [`COARSE`] binary places.
    area: u64,
}

impl Average {
    /// Takes in the backlog at a moment.
    #[inline(always)]
    pub(super) fn see(&mut self, now: Time, backlog: Bytes, capacity: Rate) {
        let passed = now - self.seen_at;
        if self.backlog.0 > 0 && passed.0 > 0 {
            let busy = passed.min(self.backlog.at(capacity));
            let rest = self.backlog - capacity.over(busy);
            let mean = self.backlog.0 - (self.backlog.0 - rest.0) / 2;
            self.area = self.area.saturating_add(Wide::product(mean, busy.0 >> COARSE).to_u64());
        }
        self.seen_at = now.max(self.seen_at);
        self.backlog = backlog;
    }

    /// Returns the average until now, and begins again.
    #[inline(always)]
    pub(super) fn close(&mut self, now: Time, backlog: Bytes, capacity: Rate) -> Bytes {
        self.see(now, backlog, capacity);
        let Duration(passed) = now - self.began;
        let average = self.area.checked_div(passed >> COARSE).unwrap_or(self.backlog.0);
        (self.began, self.area) = (now, 0);
        Bytes(average)
    }
}

/// Rate that flows have been allowed: input, and what was granted and does not show in it yet.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Promised {
    /// B/s with [`PLACES`].
    rate: u64,
}

impl Promised {
    /// Closes an interval of so much input, B/s with [`PLACES`], in which packets left with so much feedback in all, B/s, the
    /// sum of signed numbers. Returns the rate that counts as used.
    #[inline(always)]
    pub(super) fn close(&mut self, input: u64, granted: u64) -> u64 {
        let size = (granted as i64).unsigned_abs().min(POOL_MAX >> PLACES) << PLACES;
        let promised = if (granted as i64) < 0 {
            self.rate.saturating_sub(size)
        } else {
            (self.rate + size).min(POOL_MAX)
        };
        self.rate = if promised > input {
            promised - ((promised - input) >> FORGOTTEN)
        } else {
            promised + ((input - promised) >> SURPRISE)
        };
        self.rate.max(input)
    }
}
