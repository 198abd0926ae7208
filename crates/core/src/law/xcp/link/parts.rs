//! XCP's link law on several processors at once, none of which waits for another as packets pass.
//!
//! Each has a [`Part`], which sums up what comes there and hands out what it holds of the two pools, by the code of the law
//! alone. The [`Link`] is the whole of them: it takes in what all have summed up, and closes the interval as if all of that
//! had come to it, so its decisions are the same to the bit. A packet's share is the same wherever it passes. What has to be
//! divided is what is left of the pools: the whole keeps it, and lends a portion to a part that holds less than its next
//! packet is to get. So nobody has to know beforehand where packets will pass, all parts together never hold more than the
//! whole, and what lies idle where no more packets come is a small portion.

use super::{Header, Link, LinkConfig, POOL_MAX, Pool, Share, Sums, weight};
use crate::units::{Bytes, Duration, Time};

/// A portion is this part, by the number of parts, of what is left. One that gets none of the packets behind keeps so much from
/// the others; half of it is twice the visits to the whole.
const PORTIONS: u64 = 8;

/// State that one of several processors has of a link's law. All zeros is a part, too, that has begun nothing.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Part {
    /// Sums of all times, and the pools that the part holds; it closes no interval.
    link: Link,
    /// Number of the interval that it hands out for; 0: none yet.
    interval: u64,
    /// Sums that the whole has taken in.
    taken: Sums,
    taken_bounded: u64,
}

impl Default for Part {
    #[inline(always)]
    fn default() -> Self {
        Self::new()
    }
}

impl Part {
    /// Creates the state of a processor to which nothing has come.
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            link: Link::new(LinkConfig::DEFAULT, Duration(0), Duration(0)),
            interval: 0,
            taken: Sums::default(),
            taken_bounded: 0,
        }
    }

    /// Returns true if a packet must not pass before [`Link::lend`]: an interval has begun, of which the part knows nothing,
    /// or it holds less than the packet's share. `interval` is [`Link::interval_number`].
    #[inline(always)]
    pub fn wants(&self, interval: u64, header: &Header, size: Bytes) -> bool {
        let Link { grants, cuts, .. } = &self.link;
        let (x, bytes) = (self.link.bounded(header.x), weight(size));
        self.interval != interval || grants.missing(x) > 0 || cuts.missing(bytes) > 0
    }

    /// [`Link::on_arrival`] of a packet that passes here. When the interval ends is the whole's affair.
    #[inline(always)]
    pub fn on_arrival(&mut self, header: &Header, size: Bytes) {
        self.link.on_arrival(Time::ZERO, header, size);
    }

    /// [`Link::on_arrival`] of a packet without a header, which needs no [`Link::lend`].
    #[inline(always)]
    pub fn on_other_arrival(&mut self, size: Bytes) {
        self.link.sums.input += size;
    }

    /// [`Link::on_departure`] of a packet that passes here. The queue is the whole's affair.
    #[inline(always)]
    pub fn on_departure(&mut self, header: &mut Header, size: Bytes) {
        self.link.hand_out(header, size);
        self.link.note_granted(header);
    }

    /// [`Link::share`], of what the part holds.
    #[inline]
    pub fn share(&self, header: &Header, size: Bytes) -> Share {
        self.link.share(header, size)
    }
}

impl Link {
    /// Returns the number of the running interval, from 1.
    #[inline(always)]
    pub fn interval_number(&self) -> u64 {
        self.report.intervals + 1
    }

    /// Takes in what has come to a part since the last time. It may go on summing up meanwhile.
    #[inline(always)]
    pub fn take_in(&mut self, part: &mut Part) {
        let (sums, taken) = (&part.link.sums, &mut part.taken);
        let take = |sum: u64, taken: &mut u64| {
            let came = sum.wrapping_sub(*taken);
            *taken = taken.wrapping_add(came);
            came
        };
        self.sums.input += Bytes(take(sums.input.0, &mut taken.input.0));
        self.sums.x += take(sums.x, &mut taken.x);
        self.sums.x_rtt_upper += take(sums.x_rtt_upper, &mut taken.x_rtt_upper);
        self.sums.x_rtt_lower += take(sums.x_rtt_lower, &mut taken.x_rtt_lower);
        self.sums.rtt += take(sums.rtt, &mut taken.rtt);
        self.sums.packets += take(sums.packets, &mut taken.packets);
        self.sums.short += take(sums.short, &mut taken.short);
        self.sums.granted = self.sums.granted.wrapping_add(take(sums.granted, &mut taken.granted));
        self.report.bounded += take(part.link.report.bounded, &mut part.taken_bounded);
    }

    /// Gives a part what it wants before a packet: of one of so many parts.
    #[inline(always)]
    pub fn lend(&mut self, part: &mut Part, header: &Header, size: Bytes, parts: u64) {
        if part.interval != self.interval_number() {
            part.interval = self.interval_number();
            let held = &mut part.link;
            // A part does not know how long its interval will last, so packets of long round trips count at once.
            held.config = LinkConfig { spread: false, ..self.config };
            (held.max_rtt, held.max_x, held.interval) = (self.max_rtt, self.max_x, self.interval);
            (held.grants, held.cuts) = (self.grants.of_nothing(), self.cuts.of_nothing());
            held.carry = 0;
        }
        let x = self.bounded(header.x);
        self.grants.lend(&mut part.link.grants, x, parts);
        self.cuts.lend(&mut part.link.cuts, weight(size), parts);
    }
}

impl Pool {
    /// The same pool, of which nothing is there yet.
    #[inline(always)]
    fn of_nothing(&self) -> Self {
        Self { left: 0, is_last: false, ..*self }
    }

    /// Returns how much of a packet's share has yet to be lent.
    #[inline(always)]
    fn missing(&self, weight: u32) -> u64 {
        if self.is_last { 0 } else { self.due(weight).saturating_sub(self.left) }
    }

    /// Lends a portion to who holds less than a packet's share.
    #[inline(always)]
    fn lend(&mut self, part: &mut Self, weight: u32, parts: u64) {
        let missing = part.missing(weight);
        if missing == 0 {
            return;
        }
        let portion = self.left / parts.saturating_mul(PORTIONS).max(1);
        let portion = portion.max(missing).min(self.left);
        self.left -= portion;
        part.left = (part.left + portion).min(POOL_MAX);
        part.is_last = self.left == 0;
    }
}
