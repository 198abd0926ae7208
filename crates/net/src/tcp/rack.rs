//! RACK (RFC 8985 §6, whose names are cited): a segment is lost once another that was sent later has arrived and
//! a reordering window has passed since. In whole segments, each of which is in flight at most once.
//!
//! A retransmission that is acknowledged may have been needless, so that it says nothing (§6.2, step 2): if the ACK's
//! time stamp is older, or it came sooner than any round trip. The stamp counts for cumulative ACKs alone, for what a
//! SACK echoes is that of the last segment in sequence (RFC 7323 §4.3); Linux asks for the round trip alone.

use alloc::collections::{BTreeSet, VecDeque};

use congestlab_core::units::{Duration, Time};

use super::config::DUP_THRESH;

/// Recoveries without needless retransmissions after which the reordering window is small again (§6.2, step 4).
const PERSIST: u8 = 16;
/// Largest multiple of a quarter of the least round trip; Linux counts in a byte.
const MULTIPLE_MAX: u64 = 255;

/// Order of transmissions: by time, then by number (RACK_sent_after, §6.2).
type Sent = (Time, u64);

/// Record of a segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Segment.xmit_ts: when it was last sent.
    at: Time,
    /// Segment.retransmitted.
    is_repeated: bool,
    /// Segment.lost, and not sent again since.
    is_lost: bool,
    is_sacked: bool,
}

/// RACK's state of a connection, and where each outstanding segment is.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Records from segment `first` on.
    segments: VecDeque<Segment>,
    first: u64,
    /// Transmissions, oldest first, and some that something has been heard of since.
    order: VecDeque<Sent>,
    /// Segments that are lost and to be sent again.
    lost: BTreeSet<u64>,
    /// RACK.segs_sacked.
    sacked: u64,
    /// RACK.xmit_ts and RACK.end_seq: the latest transmission that has arrived.
    newest: Option<Sent>,
    /// RACK.rtt.
    rtt: Duration,
    /// RACK.min_RTT, of the whole connection; the largest: none.
    min_rtt: Duration,
    /// RACK.fack: the segment after the highest that has arrived.
    fack: u64,
    /// RACK.reordering_seen.
    has_reordered: bool,
    /// RACK.dsack_round.
    dsack_round: Option<u64>,
    /// RACK.reo_wnd_mult.
    multiple: u64,
    /// RACK.reo_wnd_persist.
    persist: u8,
    /// The acknowledgment at work.
    ack: Ack,
}

/// An acknowledgment, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Ack {
    now: Time,
    /// TSecr.
    echo: Time,
    /// RACK.fack before it.
    fack: u64,
    /// The latest transmission of all that it acknowledges.
    newest: Option<Sent>,
    /// Segments that it newly says have arrived.
    delivered: u64,
}

impl Rack {
    /// Nothing is sent.
    pub(super) fn new() -> Self {
        Self {
            segments: VecDeque::new(),
            first: 0,
            order: VecDeque::new(),
            lost: BTreeSet::new(),
            sacked: 0,
            newest: None,
            rtt: Duration(0),
            min_rtt: Duration(u64::MAX),
            fack: 0,
            has_reordered: false,
            dsack_round: None,
            multiple: 1,
            persist: 0,
            ack: Ack::default(),
        }
    }

    /// §6.1: `segment` is sent, once more or for the first time.
    pub(super) fn note_sent(&mut self, now: Time, segment: u64) {
        let sent = Segment { at: now, is_repeated: false, is_lost: false, is_sacked: false };
        match self.get(segment) {
            None => self.segments.push_back(sent),
            Some(known) => {
                let is_sacked = known.is_sacked;
                *known = Segment { is_repeated: true, is_sacked, ..sent };
                self.lost.remove(&segment);
            }
        }
        self.order.push_back((now, segment));
    }

    /// The segment was sent before, and is not acknowledged.
    pub(super) fn has(&self, segment: u64) -> bool {
        segment < self.first + self.segments.len() as u64
    }

    /// Segments in flight: sent, not known to have arrived, not lost.
    pub(super) fn pipe(&self, una: u64, next: u64) -> u64 {
        next - una - self.sacked - self.lost.len() as u64
    }

    /// The lowest segment to be sent again.
    pub(super) fn next_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// RACK.segs_sacked.
    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Segments that the last acknowledgment said have arrived.
    pub(super) fn delivered(&self) -> u64 {
        self.ack.delivered
    }

    /// An acknowledgment arrived, which echoes this time stamp.
    pub(super) fn begin(&mut self, now: Time, echo: Time) {
        self.ack = Ack { now, echo, fack: self.fack, newest: None, delivered: 0 };
    }

    /// The receiver holds `segment`.
    pub(super) fn sack(&mut self, segment: u64) {
        let Some(known) = self.get(segment).filter(|known| !known.is_sacked) else { return };
        known.is_sacked = true;
        let known = *known;
        self.sacked += 1;
        self.arrive(segment, known, false);
    }

    /// All below `una` is acknowledged.
    pub(super) fn advance(&mut self, una: u64) {
        while self.first < una
            && let Some(known) = self.segments.pop_front()
        {
            if known.is_sacked {
                self.sacked -= 1;
            } else {
                self.arrive(self.first, known, true);
            }
            self.first += 1;
        }
    }

    /// §6.2, steps 1 to 3, of one segment.
    fn arrive(&mut self, segment: u64, sent: Segment, is_cumulative: bool) {
        if sent.is_lost {
            self.lost.remove(&segment);
        }
        self.ack.delivered += 1;
        let rtt = self.ack.now - sent.at;
        if !sent.is_repeated {
            self.min_rtt = self.min_rtt.min(rtt);
            // Nothing that this very ACK tells can have overtaken it.
            self.has_reordered |= segment < self.ack.fack;
        }
        self.fack = self.fack.max(segment + 1);
        let is_of_another = is_cumulative && self.ack.echo < sent.at;
        if !(sent.is_repeated && (is_of_another || rtt < self.min_rtt)) {
            self.ack.newest = self.ack.newest.max(Some((sent.at, segment)));
        }
    }

    /// §6.2, the end of step 2, and step 4: all that the acknowledgment says is taken in. `has_dsack`: it reports a
    /// duplicate; `is_exit`: it ends a recovery.
    pub(super) fn settle(&mut self, una: u64, next: u64, has_dsack: bool, is_exit: bool) {
        if let Some((at, _)) = self.ack.newest {
            self.rtt = self.ack.now - at;
            self.newest = self.newest.max(self.ack.newest);
        }
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
        if has_dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(next);
            self.multiple = (self.multiple + 1).min(MULTIPLE_MAX);
            self.persist = PERSIST;
        } else if is_exit {
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                self.multiple = 1;
            }
        }
    }

    /// RACK.reo_wnd, §6.2, the end of step 4.
    fn window(&self, srtt: Duration, is_recovering: bool) -> Duration {
        if !self.has_reordered && (is_recovering || self.sacked >= DUP_THRESH) {
            return Duration(0);
        }
        if self.min_rtt == Duration(u64::MAX) {
            return Duration(0);
        }
        Duration(self.min_rtt.0.saturating_mul(self.multiple) / 4).min(srtt)
    }

    /// RACK_detect_loss, §6.2, step 5: marks what is lost by now, and returns when the next segment will be.
    ///
    /// Each is found when it is due, where the RFC waits for the last of them to spare timers.
    pub(super) fn detect(&mut self, now: Time, srtt: Duration, is_recovering: bool) -> Time {
        let Some(newest) = self.newest else { return Time::NEVER };
        let patience = self.rtt + self.window(srtt, is_recovering);
        while let Some(&sent) = self.order.front() {
            if self.is_under_way(sent) {
                if sent >= newest {
                    return Time::NEVER;
                }
                if now < sent.0 + patience {
                    return sent.0 + patience;
                }
                self.lose(sent.1);
            }
            self.order.pop_front();
        }
        Time::NEVER
    }

    /// RACK_mark_losses_on_RTO, §6.3. `has_reneged`: the receiver has dropped what it said it held.
    pub(super) fn on_timeout(&mut self, now: Time, srtt: Duration, has_reneged: bool) {
        if has_reneged {
            self.sacked = 0;
            for (segment, known) in (self.first..).zip(&mut self.segments) {
                if core::mem::take(&mut known.is_sacked) {
                    known.is_lost = true;
                    self.lost.insert(segment);
                }
            }
        }
        if !self.segments.is_empty() {
            self.lose(self.first);
        }
        let patience = self.rtt + self.window(srtt, true);
        while let Some(&sent) = self.order.front()
            && (now >= sent.0 + patience || !self.is_under_way(sent))
        {
            if self.is_under_way(sent) {
                self.lose(sent.1);
            }
            self.order.pop_front();
        }
    }

    /// True if the transmission is its segment's last, and nothing is known of it.
    fn is_under_way(&mut self, (at, segment): Sent) -> bool {
        self.get(segment).is_some_and(|known| known.at == at && !known.is_sacked && !known.is_lost)
    }

    fn lose(&mut self, segment: u64) {
        if let Some(known) = self.get(segment).filter(|known| !known.is_sacked) {
            known.is_lost = true;
            self.lost.insert(segment);
        }
    }

    fn get(&mut self, segment: u64) -> Option<&mut Segment> {
        let index = usize::try_from(segment.checked_sub(self.first)?).ok()?;
        self.segments.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::tests::Random;
    use alloc::vec::Vec;
    use std::collections::BTreeMap;

    const MS: u64 = 1_000_000;
    const RTT: u64 = 100 * MS;
    const SRTT: Duration = Duration(RTT);

    /// Segments `0..count`, a millisecond apart from 0 on.
    fn sent(count: u64) -> Rack {
        let mut rack = Rack::new();
        (0..count).for_each(|segment| rack.note_sent(Time(segment * MS), segment));
        rack
    }

    /// An ACK of all below `una` and of `sacked`, with the echo of what came last in sequence. Returns the deadline.
    fn ack(rack: &mut Rack, now: u64, una: u64, sacked: &[u64], is_recovering: bool) -> Time {
        rack.begin(Time(now), Time(now - RTT));
        rack.advance(una);
        sacked.iter().for_each(|&segment| rack.sack(segment));
        rack.settle(una, 100, false, false);
        rack.detect(Time(now), SRTT, is_recovering)
    }

    /// §6.2 step 4: without reordering seen, the third SACK is enough; before, a quarter of the round trip has to pass.
    #[test]
    fn three_sacks_prove_a_loss_and_fewer_do_so_after_a_quarter_of_a_round_trip() {
        let mut rack = sent(10);
        assert_eq!(ack(&mut rack, RTT, 1, &[], false), Time::NEVER);
        // Segment 1, sent at 1 ms, is overdue 25 ms after its round trip.
        let due = ack(&mut rack, RTT + 2 * MS, 1, &[2], false);
        assert_eq!(due, Time(MS + RTT + RTT / 4));
        assert_eq!((rack.next_lost(), rack.pipe(1, 10)), (None, 8));
        assert_eq!(ack(&mut rack, RTT + 3 * MS, 1, &[3], false), due);
        assert_eq!(ack(&mut rack, RTT + 4 * MS, 1, &[4], false), Time::NEVER);
        assert_eq!((rack.next_lost(), rack.pipe(1, 10)), (Some(1), 5));

        let mut rack = sent(10);
        ack(&mut rack, RTT, 1, &[], false);
        let due = ack(&mut rack, RTT + 2 * MS, 1, &[2], false);
        assert_eq!(rack.detect(Time(due.0 - 1), SRTT, false), due);
        assert_eq!(rack.next_lost(), None);
        assert_eq!(rack.detect(due, SRTT, false), Time::NEVER);
        assert_eq!(rack.next_lost(), Some(1));
    }

    /// §6.2 step 3: what was never sent again and arrives below the highest was overtaken. From then on neither three
    /// SACKs nor a recovery mean a loss at once.
    #[test]
    fn a_segment_that_was_overtaken_is_waited_for_from_then_on() {
        let mut rack = sent(20);
        ack(&mut rack, RTT, 1, &[], false);
        ack(&mut rack, RTT + 2 * MS, 1, &[2], false);
        assert!(!rack.has_reordered);
        ack(&mut rack, RTT + 3 * MS, 3, &[], false);
        assert!(rack.has_reordered);
        let due = ack(&mut rack, RTT + 8 * MS, 3, &[4, 5, 6, 7], true);
        // RACK.rtt is that of this ACK's latest, 101 ms.
        assert_eq!((rack.next_lost(), due), (None, Time(3 * MS + RTT + MS + RTT / 4)));
    }

    /// Ascending order, §6.2: two blocks of one ACK, whichever comes first, have not overtaken each other.
    #[test]
    fn blocks_of_one_acknowledgment_are_no_reordering() {
        let mut rack = sent(10);
        ack(&mut rack, RTT + 6 * MS, 1, &[5, 6, 3], false);
        assert!(!rack.has_reordered);
    }

    /// §6.2 step 4, and its example: reo_wnd is (N + 1) min_RTT / 4 after N round trips with a DSACK, at most SRTT, for
    /// sixteen recoveries.
    #[test]
    fn each_round_trip_with_a_duplicate_adds_a_quarter_for_sixteen_recoveries() {
        let mut rack = sent(10);
        ack(&mut rack, RTT, 1, &[], false);
        rack.has_reordered = true;
        let window = |rack: &Rack| rack.window(SRTT, false).0 * 4 / RTT;
        assert_eq!(window(&rack), 1);
        rack.settle(1, 10, true, false);
        assert_eq!(window(&rack), 2);
        rack.settle(5, 12, true, false);
        assert_eq!(window(&rack), 2, "the round trip is not over");
        rack.settle(10, 20, true, false);
        assert_eq!(window(&rack), 3);
        (2..10).for_each(|round| rack.settle(round * 10, round * 10 + 10, true, false));
        assert_eq!(window(&rack), 4, "SRTT bounds it");
        (0..15).for_each(|_| rack.settle(200, 210, false, true));
        assert_eq!(window(&rack), 4);
        rack.settle(200, 210, false, true);
        assert_eq!(window(&rack), 1);
    }

    /// §3.2: a retransmission has a time of its own, so that what was sent later finds it lost, too.
    #[test]
    fn a_retransmission_that_is_lost_is_found_by_what_was_sent_after_it() {
        let mut rack = sent(10);
        ack(&mut rack, RTT, 1, &[], false);
        ack(&mut rack, RTT + 4 * MS, 1, &[2, 3, 4], false);
        rack.note_sent(Time(RTT + 4 * MS), 1);
        rack.note_sent(Time(RTT + 5 * MS), 10);
        assert_eq!((rack.next_lost(), rack.pipe(1, 11)), (None, 7));
        ack(&mut rack, RTT + 9 * MS, 1, &[5, 6, 7, 8, 9], true);
        assert_eq!(rack.next_lost(), None, "all of that was sent before");
        ack(&mut rack, 2 * RTT + 5 * MS, 1, &[10], true);
        assert_eq!((rack.next_lost(), rack.pipe(1, 11)), (Some(1), 0));
    }

    /// §6.2 step 2: both conditions.
    #[test]
    fn an_acknowledgment_of_the_original_says_nothing_of_the_retransmission() {
        for (at, echo, is_taken) in
            [(3 * RTT, 0, false), (RTT + 60 * MS, RTT + 4 * MS, false), (3 * RTT, RTT + 4 * MS, true)]
        {
            let mut rack = sent(4);
            ack(&mut rack, RTT, 1, &[], false);
            rack.note_sent(Time(RTT + 4 * MS), 1);
            rack.begin(Time(at), Time(echo));
            rack.advance(2);
            rack.settle(2, 4, false, false);
            assert_eq!(rack.newest, Some(if is_taken { (Time(RTT + 4 * MS), 1) } else { (Time(0), 0) }));
        }
    }

    /// §6.3: the first, and what was sent longer ago than a round trip and the window.
    #[test]
    fn a_timeout_loses_the_first_segment_and_those_that_are_overdue() {
        let mut rack = sent(6);
        ack(&mut rack, RTT, 1, &[3], false);
        rack.note_sent(Time(RTT), 6);
        rack.on_timeout(Time(RTT + 90 * MS), SRTT, false);
        assert_eq!(rack.lost.iter().copied().collect::<Vec<_>>(), [1, 2, 4, 5]);
        assert_eq!(rack.pipe(1, 7), 1, "segment 6 is under way");
        rack.on_timeout(Time(RTT + 90 * MS), SRTT, true);
        assert!(rack.lost.contains(&3) && rack.sacked == 0, "the receiver has dropped it");
    }

    /// RFC 8985's pseudocode, over all segments each time.
    #[derive(Default)]
    struct Naive {
        /// By number: when it was last sent, retransmitted, lost, SACKed.
        segments: BTreeMap<u64, (u64, bool, bool, bool)>,
        newest: Option<(u64, u64)>,
        rtt: u64,
        min_rtt: Option<u64>,
        fack: u64,
        has_reordered: bool,
        round: Option<u64>,
        multiple: u64,
        persist: u64,
    }

    impl Naive {
        fn window(&self, srtt: u64, is_recovering: bool) -> u64 {
            let sacked = self.segments.values().filter(|known| known.3).count();
            if !self.has_reordered && (is_recovering || sacked >= 3) {
                return 0;
            }
            self.min_rtt.map_or(0, |least| ((self.multiple + 1) * least / 4).min(srtt))
        }

        /// `sides`: it reports a duplicate, it ends a recovery.
        fn ack(&mut self, [now, echo]: [u64; 2], una: u64, sacked: &[u64], next: u64, sides: [bool; 2]) {
            let [has_dsack, is_exit] = sides;
            let cumulative = self.segments.range(..una).filter(|known| !known.1.3).map(|known| *known.0);
            let mut newly: Vec<u64> = cumulative.collect();
            newly.extend(sacked.iter().filter(|segment| !self.segments[segment].3));
            let mut best = None;
            for segment in &newly {
                let (at, is_repeated, ..) = self.segments[segment];
                let rtt = now - at;
                if !is_repeated {
                    self.min_rtt = Some(self.min_rtt.unwrap_or(u64::MAX).min(rtt));
                } else if *segment < una && echo < at || rtt < self.min_rtt.unwrap_or(u64::MAX) {
                    continue;
                }
                best = best.max(Some((at, *segment)));
            }
            if let Some((at, _)) = best {
                self.rtt = now - at;
                self.newest = self.newest.max(best);
            }
            newly.sort_unstable();
            for segment in newly {
                if segment + 1 > self.fack {
                    self.fack = segment + 1;
                } else if !self.segments[&segment].1 {
                    self.has_reordered = true;
                }
                let known = self.segments.get_mut(&segment).unwrap();
                (known.2, known.3) = (false, true);
            }
            self.segments.retain(|&segment, _| segment >= una);
            if self.round.is_some_and(|round| una >= round) {
                self.round = None;
            }
            if has_dsack && self.round.is_none() {
                self.round = Some(next);
                self.multiple += 1;
                self.persist = 16;
            } else if is_exit {
                self.persist = self.persist.saturating_sub(1);
                if self.persist == 0 {
                    self.multiple = 0;
                }
            }
        }

        fn detect(&mut self, now: u64, srtt: u64, is_recovering: bool) -> u64 {
            let patience = self.rtt + self.window(srtt, is_recovering);
            let mut due = u64::MAX;
            for (&segment, known) in &mut self.segments {
                if known.2 || known.3 || self.newest.is_none_or(|newest| newest <= (known.0, segment)) {
                    continue;
                }
                if now >= known.0 + patience {
                    known.2 = true;
                } else {
                    due = due.min(known.0 + patience);
                }
            }
            due
        }
    }

    #[test]
    fn what_is_lost_is_what_the_pseudocode_says_at_every_step() {
        let mut random = Random(11);
        let mut draw = |below| random.below(below);
        let mut seen = [0_u32; 5];
        for _ in 0..300 {
            let (mut rack, mut naive) = (Rack::new(), Naive::default());
            let (mut now, mut una, mut next) = (1, 0, 0);
            for _ in 0..150 {
                // No two transmissions are at the same time.
                now += 1 + draw(30);
                let is_recovering = draw(2) == 0;
                let srtt = 50 + draw(100);
                match draw(9) {
                    0..=3 => {
                        naive.segments.insert(next, (now, false, false, false));
                        rack.note_sent(Time(now), next);
                        next += 1;
                    }
                    4 if una < next => {
                        // What is lost, or a probe.
                        let segment = rack.next_lost().unwrap_or(next - 1);
                        let known = naive.segments.get_mut(&segment).unwrap();
                        (known.0, known.1, known.2) = (now, true, false);
                        rack.note_sent(Time(now), segment);
                        seen[0] += 1;
                    }
                    5..=7 if una < next => {
                        let (echo, has_dsack, is_exit) =
                            (now - draw(200).min(now), draw(9) == 0, draw(9) == 0);
                        if draw(3) == 0 {
                            una += 1 + draw((next - una).min(3));
                        }
                        let mut sacked: Vec<u64> = (una + 1..next).filter(|_| draw(6) == 0).collect();
                        if draw(2) == 0 {
                            sacked.reverse();
                        }
                        naive.ack([now, echo], una, &sacked, next, [has_dsack, is_exit]);
                        rack.begin(Time(now), Time(echo));
                        rack.advance(una);
                        sacked.iter().for_each(|&segment| rack.sack(segment));
                        rack.settle(una, next, has_dsack, is_exit);
                        seen[1] += u32::from(naive.has_reordered);
                        seen[2] += u32::from(naive.multiple > 1);
                    }
                    8 if una < next && draw(6) == 0 => {
                        let patience = naive.rtt + naive.window(srtt, true);
                        for (&segment, known) in naive.segments.iter_mut().filter(|known| !known.1.3) {
                            known.2 |= segment == una || now >= known.0 + patience;
                        }
                        rack.on_timeout(Time(now), Duration(srtt), false);
                        seen[3] += 1;
                    }
                    _ => {}
                }
                let due = rack.detect(Time(now), Duration(srtt), is_recovering);
                assert_eq!(due.0, naive.detect(now, srtt, is_recovering));
                let lost: Vec<u64> =
                    naive.segments.iter().filter(|known| known.1.2).map(|known| *known.0).collect();
                assert_eq!(rack.lost.iter().copied().collect::<Vec<_>>(), lost);
                let pipe = naive.segments.values().filter(|known| !known.2 && !known.3).count() as u64;
                assert_eq!(rack.pipe(una, next), pipe);
                seen[4] += lost.len() as u32;
            }
        }
        assert!(seen.iter().all(|&count| count > 400), "every rule was used: {seen:?}");
    }
}
