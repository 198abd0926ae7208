//! A sender's memory while it repairs losses (RFC 6675; FACK), in whole segments.
//!
//! Exists only from the first sign of a loss until everything sent before is acknowledged. The
//! pipe of RFC 6675 §4 is kept as four counters, so that an acknowledgment costs the search for
//! its SACK blocks and nothing that grows with the window; `tests` hold it against the RFC's
//! definition, segment by segment.
//!
//! RFC 6675 repeats a segment once; if that is lost too, only the timer helps. Whoever wants more
//! watches the retransmissions ([`Scoreboard::watch`], [`Scoreboard::find_lost_again`]).

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};

use congestlab_core::units::{Duration, Time};

use super::Recovery;
use super::config::DUP_THRESH;
use super::delivery::Delivery;
use super::linux::Linux;
use super::ranges::Ranges;
use crate::packet::SACK_BLOCKS;
use crate::random::Stream;

/// SACK information, and how far retransmission has come.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    sacked: Ranges,
    /// HighRxt (RFC 6675 §2), as the segment after it; never below the cumulative ACK.
    ///
    /// It outlives the recovery that moved it: segments above the recovery point that were
    /// retransmitted a moment ago are not sent once more because the next recovery begins. §5 has
    /// no such memory and would repeat each of them.
    high_rxt: u64,
    /// The lowest segment from `high_rxt` on that is not SACKed.
    candidate: u64,
    /// SACKed segments below `high_rxt`.
    sacked_below_rxt: u64,
    /// Every segment below that is not SACKed is lost: IsLost (RFC 6675 §4) is true below the
    /// third-highest SACKed segment, and everything sent before a timeout is lost.
    lost: u64,
    /// SACKed segments from `lost` on.
    sacked_above_lost: u64,
    /// First segment that was not sent before the last timeout.
    timeout: u64,
    /// RescueRxt (RFC 6675 §4), as the segment after it.
    rescue: u64,
    /// The third-highest SACKed segment; 0: there is none.
    third: u64,
    /// Retransmissions under way, oldest first, and some that have arrived since.
    watched: VecDeque<Retransmission>,
    /// Segments below `high_rxt`, not SACKed, whose last retransmission is lost.
    again: BTreeSet<u64>,
    /// Something has arrived since the first unacknowledged segment was last repeated.
    pub(super) has_heard: bool,
    /// When the retransmission timer expires, while the sender's timer is that of a watched
    /// retransmission; else [`Time::NEVER`].
    pub(super) expiry: Time,
    /// SACKed segments above one that is lost: [`DUP_THRESH`] (RFC 6675); 0 makes every hole a loss
    /// at once, and the pipe FACK's awnd = snd.nxt - snd.fack + retran_data.
    tolerance: u64,
    /// The SACK blocks of the last ACK, as it told them, that were taken in: told again they are no news.
    heard: [(u32, u32); SACK_BLOCKS],
    /// For laws that want samples of the delivery rate; such a scoreboard is never given up.
    pub(super) delivery: Option<Box<Delivery>>,
    /// For senders with the ways of Linux, likewise: then it is RACK that knows what is lost and in flight.
    pub(super) linux: Option<Box<Linux>>,
    /// For laws that send probes; likewise.
    pub(super) probes: Option<Box<Probes>>,
}

/// A sender's memory for the probes of its law.
#[derive(Clone, Debug)]
pub(super) struct Probes {
    /// Draws the segments that they carry.
    pub(super) stream: Stream,
    pub(super) sent: u64,
}

impl Default for Probes {
    fn default() -> Self {
        Self { stream: Stream::new([0; 2]), sent: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Retransmission {
    segment: u64,
    /// First segment not sent then: what the receiver holds from here on was sent later.
    next: u64,
    at: Time,
}

impl Scoreboard {
    /// Nothing SACKed, nothing lost.
    pub(super) fn new(una: u64, recovery: Recovery) -> Self {
        Self {
            tolerance: if recovery == Recovery::Fack { 0 } else { DUP_THRESH },
            sacked: Ranges::default(),
            high_rxt: una,
            candidate: una,
            sacked_below_rxt: 0,
            lost: 0,
            sacked_above_lost: 0,
            timeout: 0,
            rescue: 0,
            third: 0,
            watched: VecDeque::new(),
            again: BTreeSet::new(),
            has_heard: true,
            expiry: Time::NEVER,
            heard: [(0, 0); SACK_BLOCKS],
            delivery: None,
            linux: None,
            probes: None,
        }
    }

    /// Nothing left to remember.
    pub(super) fn is_clean(&self, una: u64) -> bool {
        let is_kept = self.delivery.is_some() || self.probes.is_some() || self.linux.is_some();
        !is_kept && self.sacked.is_empty() && self.high_rxt <= una && self.timeout <= una
    }

    /// The SACK blocks of the last ACK that were taken in, as they were told; an empty one is none.
    pub(super) fn heard(&self) -> &[(u32, u32); SACK_BLOCKS] {
        &self.heard
    }

    /// These blocks were taken in, with this ACK or the one before.
    pub(super) fn hear(&mut self, blocks: [(u32, u32); SACK_BLOCKS]) {
        self.heard = blocks;
    }

    /// The receiver holds `start..end`; true if some of it is news.
    pub(super) fn sack(&mut self, start: u64, end: u64) -> bool {
        if self.delivery.is_some() || self.linux.is_some() {
            let mut segment = start;
            while segment < end {
                match self.sacked.around(segment) {
                    Some(range) => segment = range.1,
                    None => {
                        if let Some(delivery) = &mut self.delivery {
                            delivery.deliver(segment);
                        }
                        if let Some(linux) = &mut self.linux {
                            linux.rack.sack(segment);
                        }
                        segment += 1;
                    }
                }
            }
        }
        let below = self.insert(start, end.min(self.high_rxt));
        let above = self.insert(start.max(self.high_rxt), end);
        self.sacked_below_rxt += below;
        while !self.again.is_empty()
            && let Some(&segment) = self.again.range(start..end).next()
        {
            self.again.remove(&segment);
        }
        below + above > 0
    }

    fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let (count, range) = self.sacked.insert(start, end);
        if range.0 <= self.candidate && self.candidate < range.1 {
            self.candidate = range.1;
        }
        count
    }

    /// Takes a cumulative ACK: everything below `una` is acknowledged.
    pub(super) fn advance(&mut self, una: u64) {
        if let Some(delivery) = &mut self.delivery {
            delivery.advance(una);
        }
        if let Some(linux) = &mut self.linux {
            linux.rack.advance(una);
        }
        let removed = self.sacked.remove_below(una);
        if una < self.high_rxt {
            self.sacked_below_rxt -= removed;
        } else {
            self.high_rxt = una;
            self.sacked_below_rxt = 0;
            if self.candidate < una {
                self.candidate = self.sacked.skip(una);
            }
        }
        while self.again.first().is_some_and(|&segment| segment < una) {
            self.again.pop_first();
        }
    }

    /// Applies what [`Scoreboard::sack`] and [`Scoreboard::advance`] changed to the loss estimate.
    pub(super) fn update(&mut self) {
        if self.linux.is_some() {
            return;
        }
        if self.sacked.is_empty() {
            (self.third, self.lost, self.sacked_above_lost) = (0, self.timeout, 0);
        } else {
            self.update_sacked();
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.judge(self.lost);
        }
    }

    fn update_sacked(&mut self) {
        let mut wanted = self.tolerance;
        let mut third = 0;
        for (start, end) in self.sacked.iter_down() {
            if end - start >= wanted {
                third = end - wanted;
                break;
            }
            wanted -= end - start;
        }
        self.third = third;
        self.lost = third.max(self.timeout);
        self.sacked_above_lost = self
            .sacked
            .iter_down()
            .take_while(|range| range.1 > self.lost)
            .map(|range| range.1 - range.0.max(self.lost))
            .sum();
    }

    /// A loss is being repaired from `una` on; RFC 6675 §5, step 4.3, without its transmission.
    pub(super) fn enter_recovery(&mut self, una: u64) {
        self.rescue = una + 1;
    }

    /// The retransmission timer expired: everything sent and not SACKed counts as lost, and its
    /// retransmission begins anew.
    ///
    /// SACK information stays, unless the receiver has evidently dropped data that it reported:
    /// then all of it is forgotten. RFC 2018 §8 wants that after every timeout, at the price of
    /// repeating what arrived; the evidence suffices, because a receiver that discarded data
    /// acknowledges at most up to it, and that segment is then the first one here.
    pub(super) fn on_timeout(&mut self, una: u64, next: u64) {
        self.forget_withdrawn(una);
        self.high_rxt = una;
        self.candidate = self.sacked.skip(una);
        self.sacked_below_rxt = 0;
        self.watched.clear();
        self.again.clear();
        self.timeout = next;
        self.update();
    }

    /// Forgets all SACK information if the receiver has dropped some of what it reported: true then.
    pub(super) fn forget_withdrawn(&mut self, una: u64) -> bool {
        let has_reneged = self.sacked.first().is_some_and(|first| first.0 <= una);
        if has_reneged {
            self.sacked.clear();
            self.candidate = self.high_rxt;
            self.heard = [(0, 0); SACK_BLOCKS];
        }
        has_reneged
    }

    /// snd.fack: the segment after the highest that the receiver is known to hold.
    pub(super) fn fack(&self, una: u64) -> u64 {
        self.sacked.last().map_or(una, |last| last.1)
    }

    /// True if a segment that is not SACKed is lost (RFC 6675 §4).
    pub(super) fn is_lost(&self, segment: u64) -> bool {
        segment < self.lost
    }

    /// Segments in flight (SetPipe of RFC 6675 §4): those neither SACKed nor lost, and those
    /// retransmitted and not SACKed, nor lost again.
    pub(super) fn pipe(&self, una: u64, next: u64) -> u64 {
        if let Some(linux) = &self.linux {
            return linux.rack.pipe(una, next);
        }
        let first = (next - una.max(self.lost)) - self.sacked_above_lost;
        let repeated = (self.high_rxt - una) - self.sacked_below_rxt - self.again.len() as u64;
        first + repeated
    }

    /// Outstanding segments that are not SACKed.
    pub(super) fn unsacked(&self, una: u64, next: u64) -> u64 {
        next - una - self.sacked.iter_down().map(|range| range.1 - range.0).sum::<u64>()
    }

    /// The one of them that has `count` others below it.
    pub(super) fn nth_unsacked(&self, una: u64, count: u64) -> u64 {
        let skip = |at: u64, (start, end): (u64, u64)| if start <= at { at + (end - start) } else { at };
        self.sacked.iter_down().rev().fold(una + count, skip)
    }

    /// NextSeg, rule 1 (RFC 6675 §4): the lowest lost segment not yet retransmitted, or lost again.
    pub(super) fn next_lost(&self) -> Option<u64> {
        if let Some(linux) = &self.linux {
            return linux.rack.next_lost();
        }
        let once = || Some(self.candidate).filter(|&segment| segment < self.lost);
        self.again.first().copied().or_else(once)
    }

    /// NextSeg, rule 3: the lowest segment not yet retransmitted below the highest SACKed one.
    pub(super) fn next_unsacked(&self) -> Option<u64> {
        self.sacked.last().filter(|last| self.candidate < last.0).map(|_| self.candidate)
    }

    /// NextSeg, rule 4: once per recovery the highest segment outstanding, if the cumulative ACK
    /// has moved on since.
    pub(super) fn rescue(&self, una: u64, next: u64) -> Option<u64> {
        let top = self.sacked.last().filter(|last| last.1 == next).map_or(next, |last| last.0);
        top.checked_sub(1).filter(|&segment| una > self.rescue && segment >= una)
    }

    /// The rescue segment of this recovery is sent: no other before `recover`.
    pub(super) fn note_rescue(&mut self, recover: u64) {
        self.rescue = recover;
    }

    /// `segment` is retransmitted: HighRxt follows.
    pub(super) fn retransmit(&mut self, segment: u64) {
        if segment >= self.high_rxt {
            // All in between is SACKed: `candidate` skips nothing else. The segment itself may be, if
            // the receiver reneged.
            let is_sacked = segment != self.candidate;
            self.sacked_below_rxt += segment - self.high_rxt + u64::from(is_sacked);
            self.high_rxt = segment + 1;
            self.candidate = self.sacked.skip(self.high_rxt);
        }
        self.again.remove(&segment);
    }

    /// Watches the retransmission of `segment` that leaves now, before segment `next` is sent.
    pub(super) fn watch(&mut self, segment: u64, next: u64, now: Time) {
        self.watched.push_back(Retransmission { segment, next, at: now });
    }

    /// When the oldest watched retransmission left.
    pub(super) fn watched_since(&self) -> Option<Time> {
        self.watched.front().map(|oldest| oldest.at)
    }

    /// There are retransmissions that may be lost too, or some that are.
    pub(super) fn is_watching(&self) -> bool {
        !self.watched.is_empty() || !self.again.is_empty()
    }

    /// Finds retransmissions that are lost too: [`DUP_THRESH`] segments sent later have arrived, or it
    /// left `patience` ago. True if there is one.
    pub(super) fn find_lost_again(&mut self, una: u64, now: Time, patience: Duration) -> bool {
        while let Some(&Retransmission { segment, next, at }) = self.watched.front()
            && (next <= self.third || now >= at + patience)
        {
            self.watched.pop_front();
            if segment >= una && self.sacked.around(segment).is_none() {
                self.again.insert(segment);
                if let Some(delivery) = &mut self.delivery {
                    delivery.lose_again();
                }
            }
        }
        !self.again.is_empty()
    }

    /// True if `segment` was retransmitted and not given up since.
    pub(super) fn is_retransmitted(&self, segment: u64) -> bool {
        segment < self.high_rxt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::tests::{Naive, Random};

    #[test]
    fn four_counters_equal_the_definitions_at_every_step() {
        for recovery in [Recovery::Sack, Recovery::Fack] {
            compare(recovery);
        }
    }

    fn compare(recovery: Recovery) {
        let mut random = Random(7);
        let mut draw = |below| random.below(below);
        let mut seen = [0_u32; 7];
        let mut clock = 0;
        for _ in 0..2000 {
            let mut naive = Naive { next: 5, is_fack: recovery == Recovery::Fack, ..Naive::default() };
            let mut board = Scoreboard::new(0, recovery);
            for _ in 0..60 {
                let outstanding = naive.next - naive.una;
                match draw(12) {
                    0..=2 => naive.next += draw(6),
                    // What a receiver can report: never the segment that it waits for.
                    3..=6 if outstanding > 1 => {
                        let start = naive.una + 1 + draw(outstanding - 1);
                        let end = (start + 1 + draw(4)).min(naive.next);
                        let news = (start..end).filter(|&s| naive.sacked.insert(s)).count();
                        assert_eq!(board.sack(start, end), news > 0);
                        board.update();
                    }
                    7 if outstanding > 0 => {
                        // Up to a hole: the receiver acknowledges all that it has in order, unless
                        // it has dropped some of it.
                        naive.una += 1 + draw(outstanding);
                        while naive.sacked.contains(&naive.una) && draw(20) > 0 {
                            naive.una += 1;
                        }
                        naive.sacked.retain(|&s| s >= naive.una);
                        naive.high_rxt = naive.high_rxt.max(naive.una);
                        board.advance(naive.una);
                        board.update();
                    }
                    8 | 9 => {
                        if let Some(segment) = naive.next_lost() {
                            seen[if naive.again.remove(&segment) { 6 } else { 0 }] += 1;
                            naive.high_rxt = naive.high_rxt.max(segment + 1);
                            board.retransmit(segment);
                            if recovery == Recovery::Sack {
                                naive.watched.push((segment, naive.next, clock));
                                board.watch(segment, naive.next, Time(clock));
                            }
                        }
                    }
                    10 => {
                        if let Some(segment) = naive.next_unsacked() {
                            naive.high_rxt = segment + 1;
                            board.retransmit(segment);
                            seen[1] += 1;
                        } else if let Some(segment) = naive.rescue() {
                            assert_eq!(board.rescue(naive.una, naive.next), Some(segment));
                            naive.rescue = naive.next;
                            board.note_rescue(naive.next);
                            seen[2] += 1;
                        }
                    }
                    _ if draw(8) == 0 && outstanding > 0 => {
                        if naive.sacked.contains(&naive.una) {
                            naive.sacked.clear();
                            seen[4] += 1;
                        }
                        naive.expire();
                        board.on_timeout(naive.una, naive.next);
                        seen[3] += 1;
                    }
                    _ => {
                        naive.rescue = naive.una + 1;
                        board.enter_recovery(naive.una);
                        if !board.is_retransmitted(naive.una) && outstanding > 0 {
                            naive.high_rxt = naive.una + 1;
                            board.retransmit(naive.una);
                            seen[5] += 1;
                        }
                    }
                }
                clock += draw(10);
                naive.find_lost_again(clock, 100);
                let is_lost = board.find_lost_again(naive.una, Time(clock), Duration(100));
                assert_eq!(is_lost, !naive.again.is_empty());
                assert_eq!(board.pipe(naive.una, naive.next), naive.pipe());
                assert_eq!(board.next_lost(), naive.next_lost());
                assert_eq!(board.next_unsacked(), naive.next_unsacked());
                assert_eq!(board.rescue(naive.una, naive.next), naive.rescue());
                let mut count = 0;
                for segment in naive.unsacked() {
                    assert_eq!(board.is_lost(segment), naive.is_lost(segment));
                    assert_eq!(board.nth_unsacked(naive.una, count), segment);
                    count += 1;
                }
                assert_eq!(board.unsacked(naive.una, naive.next), count);
            }
        }
        if recovery == Recovery::Fack {
            // Rule 3 finds nothing that rule 1 has not, and nobody watches.
            (seen[1], seen[6]) = (1000, 1000);
        }
        assert!(seen.iter().all(|&count| count > 40), "every rule was used: {seen:?}");
    }

    #[test]
    fn v9_3_facks_outstanding_data() {
        let mut board = Scoreboard::new(10, Recovery::Fack);
        board.sack(12, 15);
        board.update();
        assert_eq!(board.fack(10), 15);
        assert!(board.fack(10) - 10 > DUP_THRESH, "recovery begins");
        board.retransmit(10);
        assert_eq!(board.pipe(10, 20), 6, "20 - 15 + 1");
        assert_eq!(board.next_lost(), Some(11));
    }

    #[test]
    fn sack_information_survives_a_timeout_unless_the_receiver_reneged() {
        let mut board = Scoreboard::new(0, Recovery::Sack);
        board.sack(3, 6);
        board.update();
        board.on_timeout(0, 8);
        assert_eq!((board.pipe(0, 8), board.next_lost()), (0, Some(0)));
        board.retransmit(0);
        board.advance(3);
        board.update();
        // The acknowledgment stops at a segment that was reported as held.
        board.on_timeout(3, 8);
        assert_eq!(board.next_lost(), Some(3), "3 to 5 have to go again");
        assert_eq!(board.pipe(3, 8), 0);
    }
}
