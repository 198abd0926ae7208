//! HyStart (Ha and Rhee, "Taming the Elephants: New TCP Slow Start", 2008) as Linux's CUBIC has it: leaves slow start at
//! once when a train of ACKs lasts for half of the least round trip, or when round trips become an eighth longer. A round
//! is over once what was sent at its beginning is acknowledged.

use congestlab_core::units::{Time, mul_div};

use super::slow_start::{Heard, Step};

/// Windows below it are not looked at, segments.
const LOW_WINDOW: u64 = 16;
/// ACKs at most so far apart are of one train.
const ACK_DELTA: u64 = 2_000_000;
/// Round trips at a round's beginning, of which the least counts.
const MIN_SAMPLES: u8 = 8;
/// Least and most by which a round trip has to be longer.
const DELAY_MIN: u64 = 4_000_000;
const DELAY_MAX: u64 = 16_000_000;
/// The most that a train may last longer for what sender and receiver put together; else the time of four of
/// [`GSO_MAX_SIZE`] at the pacing rate, which is two windows a round trip in slow start.
const ACK_DELAY_MAX: u64 = 1_000_000;
const GSO_MAX_SIZE: u64 = 65_536;

/// State of a slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    began: Time,
    last_ack: Time,
    /// The round is over when more than this is acknowledged.
    end: u64,
    /// Least round trip since the connection began, or its last timeout.
    least: u64,
    /// Least round trip of this round.
    current: u64,
    samples: u8,
}

impl HyStart {
    /// A connection begins, or begins anew after a timeout.
    pub(super) fn new() -> Self {
        Self {
            began: Time::ZERO,
            last_ack: Time::ZERO,
            end: 0,
            least: u64::MAX,
            current: u64::MAX,
            samples: 0,
        }
    }

    /// Takes an acknowledgment in slow start.
    pub(super) fn on_ack(&mut self, heard: &Heard) -> Step {
        self.least = self.least.min(heard.rtt.0);
        let is_over = heard.window >= LOW_WINDOW.saturating_mul(heard.mss) && self.finds(heard);
        Step { growth: heard.acked, is_over }
    }

    fn finds(&mut self, heard: &Heard) -> bool {
        let now = heard.now;
        if heard.una > self.end {
            (self.began, self.last_ack, self.end) = (now, now, heard.next);
            (self.current, self.samples) = (u64::MAX, 0);
        }
        let is_train = now.0.saturating_sub(self.last_ack.0) <= ACK_DELTA;
        if is_train {
            self.last_ack = now;
        }
        self.current = self.current.min(heard.rtt.0);
        let is_sampled = self.samples == MIN_SAMPLES;
        self.samples = MIN_SAMPLES.min(self.samples + 1);
        let longer = (self.least / 8).clamp(DELAY_MIN, DELAY_MAX);
        let lasted = now.0.saturating_sub(self.began.0);
        is_train && lasted > self.least.saturating_add(delay(heard)) / 2
            || is_sampled && self.current > self.least.saturating_add(longer)
    }
}

fn delay(heard: &Heard) -> u64 {
    mul_div(4 * GSO_MAX_SIZE, heard.srtt.0, heard.window.saturating_mul(2).max(1)).min(ACK_DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use congestlab_core::units::Duration;

    const MS: u64 = 1_000_000;
    const MSS: u64 = 1000;

    /// ACKs of one segment each, `gap` apart, with the round trip `rtt`, windows of 20 segments: after which of `count` it
    /// finds the end.
    fn finds(start: &mut HyStart, from: u64, count: u64, gap: u64, rtt: impl Fn(u64) -> u64) -> Option<u64> {
        (1..=count).find(|ack| {
            let heard = Heard {
                now: Time((from + ack) * gap),
                una: from + ack,
                next: from + 20,
                acked: MSS,
                rtt: Duration(rtt(*ack)),
                srtt: Duration(40 * MS),
                window: 20 * MSS,
                mss: MSS,
            };
            start.on_ack(&heard).is_over
        })
    }

    /// A round trip of 40 ms: a train of ACKs lasts for more than (40 + 1) / 2 ms, and its round began with the first.
    #[test]
    fn a_train_of_half_a_round_trip_ends_it() {
        assert_eq!(finds(&mut HyStart::new(), 0, 19, 2 * MS, |_| 40 * MS), Some(12));
        assert_eq!(finds(&mut HyStart::new(), 0, 19, MS, |_| 40 * MS), None);
        assert_eq!(finds(&mut HyStart::new(), 0, 19, 2 * MS + 1, |_| 40 * MS), None, "no train");
    }

    /// An eighth, from 4 to 16 ms; the ninth of a round tells, since eight are asked first, and their least counts.
    #[test]
    fn round_trips_that_are_an_eighth_longer_end_it() {
        for (rtt, longer) in [(8 * MS, 4 * MS), (80 * MS, 10 * MS), (400 * MS, 16 * MS)] {
            let mut start = HyStart::new();
            assert_eq!(finds(&mut start, 0, 19, MS / 100, |_| rtt), None);
            let mut same = start;
            assert_eq!(finds(&mut same, 30, 19, MS / 100, |_| rtt + longer), None, "not longer than that");
            let mut one = start;
            let grown = |ack| rtt + longer + u64::from(ack != 7);
            assert_eq!(finds(&mut one, 30, 19, MS / 100, grown), None, "one was not");
            assert_eq!(finds(&mut start, 30, 19, MS / 100, |_| rtt + longer + 1), Some(9));
        }
    }

    /// Below 16 segments nothing is looked at, but round trips count.
    #[test]
    fn small_windows_are_left_alone() {
        let mut start = HyStart::new();
        for ack in 1..100 {
            let heard = Heard {
                now: Time(ack * MS),
                una: ack,
                next: ack + 15,
                acked: MSS,
                rtt: Duration(ack * 10 * MS),
                srtt: Duration(40 * MS),
                window: 16 * MSS - 1,
                mss: MSS,
            };
            assert!(!start.on_ack(&heard).is_over);
        }
        assert_eq!((start.least, start.current), (10 * MS, u64::MAX));
    }
}
