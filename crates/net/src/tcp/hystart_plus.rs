//! HyStart++ (RFC 9406, whose names are cited): leaves slow start when round trips become longer, at first for a
//! conservative slow start that finds out whether the queue is to blame. A round is over once what was sent at its
//! beginning is acknowledged; it needs no clock. For the first slow start of a connection.

use congestlab_core::units::Duration;

use super::slow_start::Step;

/// MIN_RTT_THRESH, §4.3.
const MIN_RTT_THRESH: u64 = 4_000_000;
/// MAX_RTT_THRESH, §4.3.
const MAX_RTT_THRESH: u64 = 16_000_000;
/// MIN_RTT_DIVISOR, §4.3.
const MIN_RTT_DIVISOR: u64 = 8;
/// N_RTT_SAMPLE, §4.3.
const N_RTT_SAMPLE: u32 = 8;
/// CSS_GROWTH_DIVISOR, §4.3.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// CSS_ROUNDS, §4.3.
const CSS_ROUNDS: u8 = 5;
/// L of a sender that does not pace, segments that an ACK may add, §4.3.
const L: u64 = 8;

/// No round trip, or no baseline.
const NONE: u64 = u64::MAX;

/// State of a slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStartPlus {
    /// windowEnd; [`NONE`] before the first acknowledgment.
    window_end: u64,
    /// lastRoundMinRTT.
    last: u64,
    /// currentRoundMinRTT.
    current: u64,
    /// rttSampleCount.
    samples: u32,
    /// cssBaselineMinRtt; [`NONE`] outside of CSS.
    baseline: u64,
    /// Rounds of CSS, the first one in part.
    rounds: u8,
}

impl HyStartPlus {
    /// A connection begins.
    pub(super) fn new() -> Self {
        Self { window_end: NONE, last: NONE, current: NONE, samples: 0, baseline: NONE, rounds: 0 }
    }

    /// §4.2: an acknowledgment of all below `una`, `acked` bytes of it newly, samples the round trip `rtt`; `next` is
    /// SND.NXT.
    pub(super) fn on_ack(&mut self, una: u64, next: u64, acked: u64, rtt: Duration, mss: u64) -> Step {
        if self.window_end == NONE {
            self.window_end = next;
        }
        let growth = acked.min(L.saturating_mul(mss));
        let growth = if self.baseline == NONE { growth } else { growth / CSS_GROWTH_DIVISOR };
        self.current = self.current.min(rtt.0);
        self.samples = self.samples.saturating_add(1);
        if self.samples >= N_RTT_SAMPLE {
            self.judge();
        }
        let mut is_over = false;
        if una >= self.window_end {
            if self.baseline != NONE {
                self.rounds += 1;
                is_over = self.rounds >= CSS_ROUNDS;
            }
            self.window_end = next;
            (self.last, self.current, self.samples) = (self.current, NONE, 0);
        }
        Step { growth, is_over }
    }

    fn judge(&mut self) {
        if self.baseline != NONE {
            // It was no queue: slow start goes on.
            if self.current < self.baseline {
                (self.baseline, self.rounds) = (NONE, 0);
            }
        } else if self.last != NONE {
            let threshold = (self.last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if self.current >= self.last.saturating_add(threshold) {
                self.baseline = self.current;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MSS: u64 = 1000;

    /// A round of `count` ACKs of one segment each from `una` on, all with this round trip. Returns the last.
    fn round(start: &mut HyStartPlus, una: &mut u64, count: u64, rtt: u64) -> Step {
        let end = *una + count;
        let mut step = Step { growth: 0, is_over: false };
        for _ in 0..count {
            *una += 1;
            step = start.on_ack(*una, end + count, MSS, Duration(rtt), MSS);
        }
        step
    }

    fn begun(rtt: u64) -> (HyStartPlus, u64) {
        let (mut start, mut una) = (HyStartPlus::new(), 0);
        start.on_ack(0, 10, 0, Duration(rtt), MSS);
        for segment in 1..=10 {
            start.on_ack(segment, 20, MSS, Duration(rtt), MSS);
            una = segment;
        }
        assert_eq!((start.last, start.window_end), (rtt, 20));
        (start, una)
    }

    /// §4.2, §4.3: RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms)), and eight samples.
    #[test]
    fn the_threshold_is_an_eighth_between_four_and_sixteen_milliseconds() {
        for (rtt, threshold) in [(MS, 4 * MS), (32 * MS, 4 * MS), (80 * MS, 10 * MS), (500 * MS, 16 * MS)] {
            let (mut start, una) = begun(rtt);
            for segment in 1..=7 {
                start.on_ack(una + segment, 40, MSS, Duration(rtt + threshold), MSS);
            }
            assert_eq!(start.baseline, NONE, "seven samples are none");
            let mut other = start;
            other.on_ack(una + 8, 40, MSS, Duration(rtt + threshold - 1), MSS);
            assert_eq!(other.baseline, NONE);
            start.on_ack(una + 8, 40, MSS, Duration(rtt + threshold), MSS);
            assert_eq!(start.baseline, rtt + threshold);
        }
    }

    /// §4.2: at most L segments an ACK, a quarter of it in CSS.
    #[test]
    fn an_acknowledgment_adds_eight_segments_at_most_and_a_quarter_in_css() {
        let (mut start, una) = begun(100 * MS);
        let grows =
            |start: &mut HyStartPlus, acked| start.on_ack(una + 1, 40, acked, Duration(100 * MS), MSS).growth;
        assert_eq!([grows(&mut start, 2 * MSS), grows(&mut start, 20 * MSS)], [2 * MSS, 8 * MSS]);
        start.baseline = 50 * MS;
        start.samples = 0;
        assert_eq!([grows(&mut start, 2 * MSS), grows(&mut start, 20 * MSS)], [MSS / 2, 2 * MSS]);
    }

    /// §4.2: five rounds, of which the one in which CSS began counts.
    #[test]
    fn css_ends_slow_start_after_five_rounds() {
        let (mut start, mut una) = begun(100 * MS);
        for begun in 1..=5 {
            let end = start.window_end;
            let mut step = Step { growth: 0, is_over: false };
            while una < end {
                assert!(!step.is_over);
                una += 1;
                step = start.on_ack(una, end + 20, MSS, Duration(120 * MS), MSS);
            }
            assert_eq!(step.is_over, begun == 5, "round {begun}");
        }
    }

    /// §4.2: the delay was jitter, and slow start resumes.
    #[test]
    fn a_round_below_the_baseline_resumes_slow_start() {
        let (mut start, mut una) = begun(100 * MS);
        round(&mut start, &mut una, 10, 120 * MS);
        assert_eq!((start.baseline, start.rounds), (120 * MS, 1));
        let step = round(&mut start, &mut una, 10, 101 * MS);
        assert_eq!((start.baseline, start.rounds, step.is_over), (NONE, 0, false));
        assert_eq!(step.growth, MSS);
    }
}
