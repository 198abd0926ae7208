//! Samples of the rate at which data is delivered (draft-cheng-iccrg-delivery-rate-estimation-00,
//! whose names are cited), in whole segments, for laws that ask for them.

use alloc::collections::VecDeque;
use congestlab_core::units::{Duration, Time};

/// P: record of a packet in flight, §3.1.2.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// P.sent_time.
    at: Time,
    /// P.first_sent_time.
    first_sent: Time,
    /// P.delivered_time.
    delivered_at: Time,
    /// P.delivered.
    delivered: u64,
    /// P.tx_in_flight of draft-ietf-ccwg-bbr: segments in flight, itself included.
    flight: u64,
    /// P.lost of that draft: C.lost when it was sent.
    lost: u64,
    /// P.is_app_limited.
    is_app_limited: bool,
    /// Acknowledged or SACKed.
    is_delivered: bool,
}

/// rs: the sample of one acknowledgment, §3.1.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Segments delivered in all, C.delivered.
    pub(super) total: u64,
    /// Segments delivered by this acknowledgment.
    pub(super) newly: u64,
    /// rs.prior_delivered.
    pub(super) prior: u64,
    /// rs.interval; zero: no sample.
    pub(super) interval: Duration,
    /// rs.is_app_limited.
    pub(super) is_app_limited: bool,
    /// Segments found lost.
    pub(super) lost: u64,
    /// Segments found lost since the segment was sent that `prior` is of, and those in flight then.
    pub(super) lost_since: u64,
    pub(super) sent_flight: u64,
    /// The same of the segment that, of those found lost, was sent last.
    pub(super) lost_until: u64,
    pub(super) lost_flight: u64,
}

/// C: record of a connection, §3.1.1.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    /// Records of the segments outstanding, from `first` on.
    sent: VecDeque<Sent>,
    first: u64,
    delivered: u64,
    /// C.lost.
    lost: u64,
    delivered_at: Time,
    first_sent: Time,
    /// C.app_limited: samples of what is sent until so much is delivered are; 0: none.
    app_limited: u64,
    /// Segments below it have been counted as lost if they were.
    judged: u64,
    now: Time,
    sample: Sample,
    has_sample: bool,
    /// Seed of the law's draws.
    seed: u64,
}

impl Delivery {
    /// Creates the record of a connection that has sent nothing.
    pub(super) fn new() -> Self {
        Self {
            sent: VecDeque::new(),
            first: 0,
            delivered: 0,
            lost: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            app_limited: 0,
            judged: 0,
            now: Time::ZERO,
            sample: Sample::default(),
            has_sample: false,
            seed: 0,
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// §3.2: `segment` is sent, once more or for the first time; `flight` others are in flight.
    pub(super) fn note_sent(&mut self, now: Time, segment: u64, flight: u64) {
        if flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let sent = Sent {
            at: now,
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            flight: flight + 1,
            lost: self.lost,
            is_app_limited: self.app_limited > 0,
            is_delivered: false,
        };
        match usize::try_from(segment - self.first).ok().and_then(|index| self.sent.get_mut(index)) {
            Some(known) => *known = Sent { is_delivered: known.is_delivered, ..sent },
            None => self.sent.push_back(sent),
        }
    }

    /// An acknowledgment arrived.
    pub(super) fn begin(&mut self, now: Time) {
        (self.now, self.sample, self.has_sample) = (now, Sample::default(), false);
    }

    /// §3.3, UpdateRateSample: `segment` has arrived.
    pub(super) fn deliver(&mut self, segment: u64) {
        let index = segment.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(sent) = index.and_then(|index| self.sent.get_mut(index))
            && !sent.is_delivered
        {
            sent.is_delivered = true;
            let sent = *sent;
            self.count(&sent);
        }
    }

    fn count(&mut self, sent: &Sent) {
        self.delivered += 1;
        self.delivered_at = self.now;
        self.sample.newly += 1;
        if !self.has_sample || sent.delivered > self.sample.prior {
            self.has_sample = true;
            self.sample.prior = sent.delivered;
            self.sample.is_app_limited = sent.is_app_limited;
            // What was lost then, until the sample is complete.
            (self.sample.lost_since, self.sample.sent_flight) = (sent.lost, sent.flight);
            self.sample.interval = (sent.at - sent.first_sent).max(self.now - sent.delivered_at);
            self.first_sent = sent.at;
        }
    }

    /// All below `una` is acknowledged.
    pub(super) fn advance(&mut self, una: u64) {
        while self.first < una
            && let Some(sent) = self.sent.pop_front()
        {
            self.first += 1;
            if !sent.is_delivered {
                self.count(&sent);
            }
        }
    }

    /// Counts as lost whatever is below `lost` and has not arrived.
    pub(super) fn judge(&mut self, lost: u64) {
        if lost <= self.judged {
            return;
        }
        let unseen = self.judged.max(self.first)..lost;
        let from = usize::try_from(unseen.start - self.first).unwrap_or(usize::MAX);
        let count = usize::try_from(unseen.end.saturating_sub(unseen.start)).unwrap_or(usize::MAX);
        for sent in self.sent.iter().skip(from).take(count).filter(|sent| !sent.is_delivered) {
            self.sample.lost += 1;
            self.lost += 1;
            (self.sample.lost_until, self.sample.lost_flight) = (sent.lost, sent.flight);
        }
        self.judged = self.judged.max(lost);
    }

    /// A retransmission is lost.
    pub(super) fn lose_again(&mut self) {
        self.sample.lost += 1;
        self.lost += 1;
    }

    /// §3.4: there was no more to send, though `pipe` segments in flight left room for some.
    pub(super) fn note_app_limited(&mut self, pipe: u64) {
        self.app_limited = (self.delivered + pipe).max(1);
    }

    /// §3.3, GenerateRateSample.
    pub(super) fn sample(&mut self) -> Sample {
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Sample { lost_since, sent_flight, lost_until, lost_flight, .. } = self.sample;
        Sample {
            total: self.delivered,
            lost_since: if sent_flight > 0 { self.lost - lost_since } else { 0 },
            lost_until: if lost_flight > 0 { self.lost - lost_until } else { 0 },
            ..self.sample
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn acked(delivery: &mut Delivery, ms: u64, una: u64) -> Sample {
        delivery.begin(Time(ms * MS));
        delivery.advance(una);
        delivery.sample()
    }

    /// Ten segments at once, whose ACKs come a millisecond apart: nine milliseconds later nine more
    /// have been delivered.
    #[test]
    fn the_rate_is_that_of_the_acknowledgments_where_they_are_slower() {
        let mut delivery = Delivery::new();
        (0..10).for_each(|segment| delivery.note_sent(Time(0), segment, segment));
        for una in 1..=10 {
            let sample = acked(&mut delivery, 99 + una, una);
            assert_eq!((sample.total, sample.newly, sample.prior), (una, 1, 0));
            // Since the burst was sent, 99 ms and so many deliveries ago.
            assert_eq!(sample.interval, Duration((99 + una) * MS));
            delivery.note_sent(Time((99 + una) * MS), 9 + una, 9);
        }
        // Ten deliveries since the last of these was sent, 101 ms before; but it was sent 109 ms after
        // what was acknowledged then.
        let sample = acked(&mut delivery, 210, 20);
        assert_eq!((sample.total, sample.prior, sample.interval), (20, 10, Duration(109 * MS)));
    }

    /// ACKs that come compressed do not exceed the rate of sending.
    #[test]
    fn the_rate_is_that_of_sending_where_acknowledgments_are_faster() {
        let mut delivery = Delivery::new();
        for segment in 0..10 {
            delivery.note_sent(Time(10 * segment * MS), segment, segment);
        }
        let sample = acked(&mut delivery, 100, 1);
        assert_eq!(sample.interval, Duration(100 * MS));
        // first_sent follows: from the first segment's departure to the last one's, 90 ms.
        let sample = acked(&mut delivery, 100, 10);
        assert_eq!((sample.newly, sample.interval), (9, Duration(100 * MS)));
        (10..20).for_each(|segment| delivery.note_sent(Time((100 + 10 * (segment - 10)) * MS), segment, 1));
        let sample = acked(&mut delivery, 191, 20);
        assert_eq!((sample.total - sample.prior, sample.interval), (10, Duration(91 * MS)));
    }

    #[test]
    fn what_is_sacked_counts_once_and_a_repetition_is_measured_anew() {
        let mut delivery = Delivery::new();
        (0..6).for_each(|segment| delivery.note_sent(Time(0), segment, segment));
        delivery.begin(Time(50 * MS));
        (3..6).for_each(|segment| delivery.deliver(segment));
        delivery.deliver(4);
        delivery.judge(3);
        let sample = delivery.sample();
        assert_eq!((sample.newly, sample.lost, sample.total), (3, 3, 3));
        // The first that arrived was sent as the fourth, before anything was lost; the last that was lost as the third.
        assert_eq!((sample.sent_flight, sample.lost_since), (4, 3));
        assert_eq!((sample.lost_flight, sample.lost_until), (3, 3));
        (0..3).for_each(|segment| delivery.note_sent(Time((50 + segment) * MS), segment, segment));
        delivery.begin(Time(100 * MS));
        delivery.advance(6);
        delivery.judge(3);
        let sample = delivery.sample();
        assert_eq!((sample.newly, sample.lost, sample.total, sample.prior), (3, 0, 6, 3));
        assert_eq!(sample.interval, Duration(50 * MS));
    }

    #[test]
    fn samples_of_what_was_sent_for_want_of_data_say_so() {
        let mut delivery = Delivery::new();
        delivery.note_sent(Time(0), 0, 0);
        delivery.note_app_limited(1);
        assert!(!acked(&mut delivery, 50, 1).is_app_limited, "sent before");
        delivery.note_sent(Time(60 * MS), 1, 0);
        assert!(acked(&mut delivery, 110, 2).is_app_limited);
        delivery.note_sent(Time(110 * MS), 2, 0);
        assert!(!acked(&mut delivery, 160, 3).is_app_limited, "the bubble has left");
    }
}
