//! Tail loss probes (RFC 8985 §7, whose names are cited): where no acknowledgment comes, one segment goes that asks
//! for one, before the retransmission timer would take the whole window.

use congestlab_core::units::{Duration, Time};

/// TLP.max_ack_delay: Linux's, the longest that its receivers delay an acknowledgment (RFC 8985 §7.2 leaves it open).
const MAX_ACK_DELAY: Duration = Duration(200_000_000);
/// PTO without a round trip, §7.2.
const UNKNOWN: Duration = Duration(1_000_000_000);

/// State of the probes of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// TLP.end_seq: first segment not sent when the probe went; `None`: no probe is under way.
    end: Option<u64>,
    /// TLP.is_retrans.
    is_retransmission: bool,
    /// A round trip was sampled since the last probe.
    has_sample: bool,
}

impl Tail {
    /// §7.1.
    pub(super) fn new() -> Self {
        Self { end: None, is_retransmission: false, has_sample: true }
    }

    /// A recovery begins (§7.1).
    pub(super) fn reset(&mut self) {
        self.end = None;
    }

    /// A probe may go: none is under way, and the path has answered since the last one (§7.3).
    pub(super) fn may_probe(&self) -> bool {
        self.end.is_none() && self.has_sample
    }

    /// TLP_calc_PTO, §7.2, as a time. `is_alone`: FlightSize is one segment; `expiry`: of the retransmission timer.
    pub(super) fn due(now: Time, srtt: Duration, is_alone: bool, expiry: Time) -> Time {
        let wait = if srtt == Duration(0) {
            UNKNOWN
        } else {
            srtt + srtt + if is_alone { MAX_ACK_DELAY } else { Duration(0) }
        };
        (now + wait).min(expiry)
    }

    /// The probe is sent, `next` being SND.NXT after it (§7.3).
    pub(super) fn note_sent(&mut self, next: u64, is_retransmission: bool) {
        *self = Self { end: Some(next), is_retransmission, has_sample: false };
    }

    /// A round trip is sampled.
    pub(super) fn note_sample(&mut self) {
        self.has_sample = true;
    }

    /// TLP_process_ack, §7.4.2, of an acknowledgment up to `ack`: true if the probe has repaired a loss. `dsack`: the
    /// segment after a duplicate that it reports; `is_bare`: it is a duplicate ACK without SACK.
    pub(super) fn on_ack(&mut self, ack: u64, dsack: Option<u64>, is_bare: bool) -> bool {
        let Some(end) = self.end.filter(|&end| ack >= end) else { return false };
        let has_repaired = self.is_retransmission && dsack != Some(end) && ack > end;
        if !self.is_retransmission || dsack == Some(end) || has_repaired || is_bare {
            self.end = None;
        }
        has_repaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// §7.2.
    #[test]
    fn the_probe_is_due_after_two_round_trips_but_not_after_the_timer() {
        let due = |srtt: u64, is_alone, expiry: u64| {
            Tail::due(Time(10 * MS), Duration(srtt * MS), is_alone, Time(expiry * MS)).0 / MS
        };
        assert_eq!(due(50, false, 1000), 110);
        assert_eq!(due(50, true, 1000), 310, "a delayed acknowledgment may be on its way");
        assert_eq!(due(50, true, 260), 260);
        assert_eq!(due(0, false, 5000), 1010);
    }

    /// §7.3: one at a time, and none before the path has answered.
    #[test]
    fn there_is_one_probe_for_each_answer_of_the_path() {
        let mut tail = Tail::new();
        assert!(tail.may_probe());
        tail.note_sent(10, false);
        assert!(!tail.may_probe());
        assert!(!tail.on_ack(10, None, false));
        assert!(!tail.may_probe(), "its round trip was not sampled");
        tail.note_sample();
        assert!(tail.may_probe());
    }

    /// §7.4.2: its four cases.
    #[test]
    fn a_retransmission_that_was_needed_is_a_loss() {
        let sent = |is_retransmission| {
            let mut tail = Tail::new();
            tail.note_sent(10, is_retransmission);
            tail
        };
        let mut tail = sent(false);
        assert!(!tail.on_ack(11, None, false) && tail.end.is_none(), "new data arrived");
        let mut tail = sent(true);
        assert!(!tail.on_ack(9, None, false) && tail.end.is_some());
        assert!(!tail.on_ack(10, None, false) && tail.end.is_some(), "the original, or the probe");
        assert!(tail.on_ack(12, None, false) && tail.end.is_none(), "one of them was lost");
        let mut tail = sent(true);
        assert!(!tail.on_ack(10, Some(10), false) && tail.end.is_none(), "both arrived");
        let mut tail = sent(true);
        assert!(!tail.on_ack(10, None, true) && tail.end.is_none(), "both arrived, and SACK is off");
    }
}
