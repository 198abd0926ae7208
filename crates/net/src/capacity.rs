//! Where the law of a port has its capacity from, if it is neither stated once for all nor the service's own: what a shaper states, what a
//! recorded trace has offered, or the rate at which the port's queue drains. The rules are [`congestlab_core::capacity`], as in the kernel's router.

use crate::packet::{PS_PER_NS, Picos};
use crate::service::Service;
use congestlab_core::capacity::{Belief, Counters, Drain, Look, STEP, TICK};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Time};

/// Ticks between two looks at what a service states.
const STATED_TICKS: u64 = STEP.0 / TICK.0;
/// The least rate that is told, as routers in the kernel have it: no law is told that there is nothing.
const LEAST: BitRate = BitRate(1000);

/// Source of a law's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityFrom {
    /// The rate at which bytes leave the port's queue while packets wait in it.
    Drain {
        /// Bytes of the longest packets.
        longest: Bytes,
    },
    /// The rate that the service states, looked at ten times a second.
    Stated,
    /// The recorded trace of the service, in means over steps of 100 ms, told so much later.
    Trace {
        /// Delay of the word.
        delay: Duration,
    },
}

/// Counts of a law's source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapacityCounts {
    /// Times that the law was told another capacity.
    pub changes: u64,
    /// Time for which the source was stale, and the fixed rate held.
    pub stale: Duration,
}

impl CapacityCounts {
    /// Returns the counts since others of the same source.
    pub fn since(self, before: Self) -> Self {
        Self { changes: self.changes - before.changes, stale: self.stale - before.stale }
    }
}

/// A source that is followed.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    from: CapacityFrom,
    drain: Drain,
    belief: Belief,
    ticks: u64,
    /// Step of the trace that was told last.
    step: Option<u64>,
    counts: CapacityCounts,
}

impl Follower {
    /// Begins with the fixed rate, which holds until the source speaks and whenever it is stale.
    pub(crate) fn new(from: CapacityFrom, fixed: Rate) -> Self {
        let longest = if let CapacityFrom::Drain { longest } = from { longest } else { Bytes(0) };
        Self {
            from,
            drain: Drain::new(longest),
            belief: Belief::new(fixed.bits(), Time::ZERO),
            ticks: 0,
            step: None,
            counts: CapacityCounts::default(),
        }
    }

    /// Returns when the next look is due.
    pub(crate) fn next(&self) -> Picos {
        self.at().0.saturating_mul(PS_PER_NS)
    }

    fn at(&self) -> Time {
        Time(self.ticks.saturating_mul(TICK.0))
    }

    /// Takes the look that is due, and returns the capacity if the law is to be told another one.
    pub(crate) fn look(&mut self, counters: Counters, service: &Service) -> Option<Rate> {
        let now = self.at();
        let look = self.find(now, counters, service);
        self.ticks += 1;
        let (_, told) = self.belief.hear(now, look);
        if self.belief.told().is_some_and(|told| told.is_stale) {
            self.counts.stale += TICK;
        }
        let rate = told?.rate;
        self.counts.changes += 1;
        Some(Rate(rate.max(LEAST).0 / 8))
    }

    fn find(&mut self, now: Time, counters: Counters, service: &Service) -> Look {
        match (self.from, service) {
            (CapacityFrom::Drain { .. }, _) => {
                self.drain.look(now, counters).map_or(Look::Nothing, Look::Rate)
            }
            (CapacityFrom::Stated, _) if !self.ticks.is_multiple_of(STATED_TICKS) => Look::Nothing,
            (CapacityFrom::Stated, _) => Look::Rate(service.rate_at(now.0.saturating_mul(PS_PER_NS))),
            (CapacityFrom::Trace { delay }, Service::Trace(trace)) if now.0 >= delay.0 => {
                let step = (now - Time(delay.0)).0 / STEP.0;
                if self.step.replace(step) == Some(step) {
                    Look::Nothing
                } else {
                    Look::Rate(trace.offers(step))
                }
            }
            (CapacityFrom::Trace { .. }, _) => Look::Nothing,
        }
    }

    pub(crate) fn counts(&self) -> CapacityCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Steps;
    use crate::trace::Trace;
    use alloc::vec;

    const SECOND: Picos = 1_000_000_000_000;
    const FIXED: Rate = Rate(750_000);

    /// Words to the law in so many seconds, in ms and bit/s.
    fn told(
        follower: &mut Follower,
        service: &Service,
        seconds: u64,
        counters: impl Fn(u64) -> Counters,
    ) -> alloc::vec::Vec<(u64, u64)> {
        let mut told = vec![];
        while follower.next() < seconds * SECOND {
            let ms = follower.next() / (SECOND / 1000);
            if let Some(rate) = follower.look(counters(ms), service) {
                told.push((ms, rate.bits().0));
            }
        }
        told
    }

    #[test]
    fn what_a_service_states_is_told_ten_times_a_second() {
        let steps =
            [(0, 8), (250, 4), (400, 16)].map(|(ms, mbits)| (ms * SECOND / 1000, BitRate(mbits * 1_000_000)));
        let service = Service::Steps(Steps::new(steps.to_vec()).unwrap());
        let mut follower = Follower::new(CapacityFrom::Stated, FIXED);
        let told = told(&mut follower, &service, 10, |_| Counters::default());
        assert_eq!(told, [(0, 8_000_000), (300, 4_000_000), (400, 16_000_000)]);
        assert_eq!(follower.counts(), CapacityCounts { changes: 3, stale: Duration(0) });
    }

    #[test]
    fn what_a_trace_offers_is_told_later_by_the_delay() {
        // 12 Mbit/s in the first 100 ms, 6 in the second, nothing but the last in the third.
        let mut stamps: vec::Vec<u32> = (0..100).collect();
        stamps.extend((0..50).map(|n| 100 + 2 * n));
        stamps.push(300);
        let service = Service::Trace(Trace::new(stamps).unwrap());
        let trace = |delay: u64| CapacityFrom::Trace { delay: Duration(delay * 1_000_000) };
        let expected = [(0, 12_000_000), (100, 6_000_000), (200, 120_000), (300, 12_000_000)];
        let mut at_once = Follower::new(trace(0), FIXED);
        assert_eq!(told(&mut at_once, &service, 1, |_| Counters::default())[..4], expected);
        let mut later = Follower::new(trace(50), FIXED);
        let later = told(&mut later, &service, 1, |_| Counters::default());
        assert_eq!(later[..4], expected.map(|(ms, rate)| (ms + 50, rate)));
    }

    #[test]
    fn a_queue_that_no_longer_drains_is_stale_after_three_seconds() {
        let service = Service::Fixed(BitRate(8_000_000));
        let mut follower = Follower::new(CapacityFrom::Drain { longest: Bytes(1500) }, FIXED);
        // 8 Mbit/s of packets of 1000 bytes while nine wait; from 2 s on none does.
        let counters = |ms: u64| {
            let packets = ms.min(2000);
            let waiting = if ms < 2000 { Bytes(9000) } else { Bytes(0) };
            Counters { bytes: Bytes(1000 * packets), packets, waiting }
        };
        let told = told(&mut follower, &service, 10, counters);
        // What was measured last is a look before the queue was empty: 1990 ms.
        assert_eq!(told, [(30, 8_000_000), (5000, 6_000_000)]);
        assert_eq!(follower.counts(), CapacityCounts { changes: 2, stale: Duration(5_000_000_000) });
    }
}
