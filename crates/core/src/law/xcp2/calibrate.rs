//! The capacity of a link, from how fast its queue drains.
//!
//! Between two departures of which the first leaves a backlog behind the link is busy, with the first packet and with
//! whatever else it has to do: frames, turns of others on a shared medium, collisions. Bytes over such times are what it
//! carries. A link without any backlog says nothing; where it is used for what it is believed to carry, the belief grows by
//! a little in each interval until there is one.

use crate::units::{Bytes, Duration, Rate, Ratio, SECOND, Time, mul_div};

/// Least packets of a sample (docs/design/protocols.md 13.1).
const PACKETS: u32 = 20;
/// Weight of a sample, and of how far it is from the belief, as a shift: a quarter.
const WEIGHT: u32 = 2;
/// First step by which more is tried where nothing is known, as a shift: 1/256.
const MORE: u32 = 8;
/// First step behind a sample: 1/4096. What was measured is right, or nearly; where packets are paced a link that is just full has
/// no backlog, and what is tried shows a round trip later.
const MORE_AFTER: u32 = 12;
/// Longest step: 1/32.
const MORE_MOST: u32 = 5;
/// Intervals that a step lasts until the next one, which is twice as long.
const TRIES: u32 = 4;
/// How much of the belief must be used before more is tried, as a shift: all but 1/32.
const USED: u32 = 5;
/// Bytes that may be on their way when an interval ends, beside that part of it: two packets. What else did not leave was dropped,
/// and a queue that is too short to leave a backlog is no room.
const WAITING: u64 = 3000;
/// How far from what it was told the belief may go: between an eighth and eight times.
const FAR: u64 = 8;
/// Intervals with a standing queue until the alarm (docs/design/protocols.md 13.3).
const INTERVALS: u32 = 10;

/// Belief of a link law in its capacity.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Calibration {
    /// Capacity that the link is told to have.
    told: Rate,
    /// Capacity that it is believed to have.
    believed: Rate,
    /// How far samples are from that.
    deviation: u64,
    /// Part of the deviation that is not given away.
    headroom: Ratio,
    /// The last departure and its size, if it left a backlog.
    left: Option<(Time, Bytes)>,
    bytes: Bytes,
    busy: Duration,
    packets: u32,
    /// Intervals since a sample in which more was tried, as far as they count.
    tries: u32,
    /// Bytes that came and that left in the running interval.
    came: Bytes,
    went: Bytes,
    /// True if there was a backlog in the running interval.
    is_backlogged: bool,
    /// Intervals in a row with a standing queue.
    standing: u32,
}

impl Calibration {
    #[inline(always)]
    pub(super) fn new(told: Rate, headroom: Ratio) -> Self {
        Self {
            told,
            believed: told,
            deviation: 0,
            headroom,
            left: None,
            bytes: Bytes(0),
            busy: Duration(0),
            packets: 0,
            tries: TRIES * (MORE_AFTER - MORE),
            came: Bytes(0),
            went: Bytes(0),
            is_backlogged: false,
            standing: 0,
        }
    }

    /// The link is told another capacity: everything begins anew.
    #[inline(always)]
    pub(super) fn tell(&mut self, told: Rate) {
        if told != self.told {
            *self = Self::new(told, self.headroom);
        }
    }

    /// The capacity to compute with. What a link that has bad times carries on average is too much in those.
    #[inline(always)]
    pub(super) fn capacity(&self) -> Rate {
        let half = self.believed.0 / 2;
        Rate(self.believed.0 - self.headroom.of(self.deviation).min(half))
    }

    /// True while a queue stands although the capacity is calibrated: something else is wrong, or nothing can be measured.
    #[inline(always)]
    pub(super) fn is_alarmed(&self) -> bool {
        self.standing >= INTERVALS
    }

    #[inline(always)]
    pub(super) fn on_arrival(&mut self, size: Bytes) {
        self.came += size;
    }

    #[inline(always)]
    pub(super) fn on_departure(&mut self, now: Time, size: Bytes, backlog: Bytes) {
        if let Some((at, size)) = self.left {
            self.bytes += size;
            self.busy += now - at;
            self.packets += 1;
            self.is_backlogged = true;
        }
        self.went += size;
        self.left = (backlog.0 > 0).then_some((now, size));
    }

    /// Closes a control interval in which so much came, with such a persistent queue. `allowed` is how long a queue is none.
    #[inline(always)]
    pub(super) fn close(&mut self, input: Rate, queue: Bytes, allowed: Duration) {
        let lost = self.came.0.saturating_sub(self.went.0);
        let has_room = !self.is_backlogged && lost <= (self.came.0 >> USED).saturating_add(WAITING);
        if self.packets >= PACKETS {
            let sample = self.bytes.per(self.busy).0;
            let (most, least) = (self.told.0.saturating_mul(FAR), self.told.0 / FAR);
            let sample = sample.min(most).max(least);
            let believed = self.believed.0;
            let off = sample.abs_diff(believed) >> WEIGHT;
            self.deviation = (self.deviation - (self.deviation >> WEIGHT)).saturating_add(off);
            self.believed = Rate(if sample >= believed {
                believed + ((sample - believed) >> WEIGHT)
            } else {
                believed - ((believed - sample) >> WEIGHT)
            });
            (self.bytes, self.busy, self.packets) = (Bytes(0), Duration(0), 0);
            self.tries = 0;
        } else if has_room && input.0 >= self.capacity().0 - (self.capacity().0 >> USED) {
            let more = self.believed.0.saturating_add(self.believed.0 >> (MORE_AFTER - self.tries / TRIES));
            self.tries = (self.tries + 1).min(TRIES * (MORE_AFTER - MORE_MOST));
            self.believed = Rate(more.min(self.told.0.saturating_mul(FAR)));
        }
        (self.came, self.went) = (Bytes(0), Bytes(0));
        self.is_backlogged = false;
        let standing = mul_div(self.believed.0, allowed.0.saturating_mul(2), SECOND);
        self.standing = if queue.0 > standing { self.standing.saturating_add(1) } else { 0 };
    }
}
