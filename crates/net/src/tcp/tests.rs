//! A sender and a receiver over a pipe that loses, repeats and reorders, held against RFC 6675's
//! own definitions at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use congestlab_core::law::{
    SenderConfig, abc, bbr, bbr3, bic, cubic, dctcp, highspeed, hpcc, mpcp, peach, prague, reno, scone,
    vegas, xcp, xcp2,
};
use congestlab_core::units::{Bytes, Duration, Rate, Time};

use super::config::DUP_THRESH;
use super::{Advertise, App, Config, Measure, Receiver, Recovery, Sender, SlowStart, Wait, absolute};
use crate::packet::{Kind, Packet, SACK_BLOCKS, flag};

const MS: u64 = 1_000_000;

/// Knuth's linear congruential generator.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// RFC 6675 §4 word for word, over one flag per segment; or FACK's definitions.
#[derive(Default)]
pub(super) struct Naive {
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) sacked: BTreeSet<u64>,
    pub(super) high_rxt: u64,
    pub(super) timeout: u64,
    pub(super) rescue: u64,
    /// Retransmissions: segment, first segment not sent then, when.
    pub(super) watched: Vec<(u64, u64, u64)>,
    /// Retransmitted segments that are lost again.
    pub(super) again: BTreeSet<u64>,
    pub(super) is_fack: bool,
}

impl Naive {
    pub(super) fn is_lost(&self, segment: u64) -> bool {
        if self.is_fack {
            return segment < self.timeout || self.sacked.last().is_some_and(|&fack| segment < fack);
        }
        let above: Vec<u64> = self.sacked.range(segment + 1..).copied().collect();
        let ranges = above.iter().filter(|&&s| !self.sacked.contains(&(s - 1))).count() as u64;
        segment < self.timeout || above.len() as u64 > DUP_THRESH - 1 || ranges >= DUP_THRESH
    }

    /// Signs that begin a recovery before three duplicates do.
    fn is_loss(&self) -> bool {
        match self.sacked.last() {
            Some(last) if self.is_fack => last + 1 - self.una > DUP_THRESH,
            _ => self.is_lost(self.una),
        }
    }

    pub(super) fn unsacked(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        (self.una..self.next).filter(|s| !self.sacked.contains(s))
    }

    pub(super) fn pipe(&self) -> u64 {
        let is_repeated = |s| s < self.high_rxt && !self.again.contains(&s);
        self.unsacked().map(|s| u64::from(!self.is_lost(s)) + u64::from(is_repeated(s))).sum()
    }

    pub(super) fn next_lost(&self) -> Option<u64> {
        self.unsacked().find(|&s| self.again.contains(&s) || (s >= self.high_rxt && self.is_lost(s)))
    }

    /// docs/design/protocols.md 2.3: a retransmission is lost if three segments sent later have arrived, or none has
    /// said for `patience` that it has.
    pub(super) fn find_lost_again(&mut self, now: u64, patience: u64) {
        let held = self.unsacked().collect::<BTreeSet<_>>();
        for (segment, next, at) in core::mem::take(&mut self.watched) {
            let later = self.sacked.range(next..).count() as u64;
            if later < DUP_THRESH && now < at + patience {
                self.watched.push((segment, next, at));
            } else {
                self.again.insert(segment);
            }
        }
        self.again.retain(|s| held.contains(s));
    }

    pub(super) fn expire(&mut self) {
        self.high_rxt = self.una;
        self.timeout = self.next;
        self.watched.clear();
        self.again.clear();
    }

    pub(super) fn next_unsacked(&self) -> Option<u64> {
        let highest = *self.sacked.last()?;
        self.unsacked().find(|&s| s >= self.high_rxt && s < highest)
    }

    pub(super) fn rescue(&self) -> Option<u64> {
        self.unsacked().next_back().filter(|_| self.una > self.rescue)
    }
}

/// Impairments of packets by the pipe, in percent.
#[derive(Clone, Copy)]
struct Weather {
    loss: u64,
    ack_loss: u64,
    repeat: u64,
    reorder: u64,
}

struct Pair {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    /// By arrival time, then by number: each to the receiver (`true`) or to the sender.
    wire: BTreeMap<(u64, u64), (bool, Packet)>,
    number: u64,
    /// Identifications of the packets that the receiver (`false`) and the sender sent.
    named: BTreeSet<(bool, u16)>,
    random: Random,
    weather: Weather,
    now: u64,
    isn: u32,
    naive: Naive,
    /// Repair by the naive sender: none, fast recovery or after a timeout; up to where; how
    /// many duplicates it has seen; whether the first segment of a recovery is still to go.
    repair: Repair,
    recover: u64,
    duplicates: u64,
    owes_first: bool,
    timeouts: u64,
    /// Retransmissions of segments that were retransmitted before, in the same repair.
    repeats: u64,
    /// The sender knows that nothing is under way any more.
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Repair {
    None,
    Recovery,
    Timeout,
}

impl Pair {
    fn new(config: Config, seed: u64, weather: Weather, stop: Time) -> Self {
        Self::of(Config { stop, ..config }, seed, weather)
    }

    fn of(config: Config, seed: u64, weather: Weather) -> Self {
        // The numbers wrap after 40 segments.
        let isn = u32::MAX - 40;
        Self {
            sender: Sender::new(&config, 3, Time(5 * MS), isn),
            receiver: Receiver::new(&config, 3, isn),
            naive: Naive { is_fack: config.recovery == Recovery::Fack, ..Naive::default() },
            config,
            wire: BTreeMap::new(),
            number: 0,
            named: BTreeSet::new(),
            random: Random(seed),
            weather,
            now: 0,
            isn,
            repair: Repair::None,
            recover: 0,
            duplicates: 0,
            owes_first: false,
            timeouts: 0,
            repeats: 0,
            is_over: false,
        }
    }

    fn send(&mut self, to_receiver: bool, packet: Packet) {
        assert_eq!(packet.flow, 3);
        // Duplicate ACKs and repeated segments included: a capture tells all transmissions apart (RFC 6864 §4).
        assert!(self.named.insert((to_receiver, packet.identification())), "{packet:?}");
        let loss = if to_receiver { self.weather.loss } else { self.weather.ack_loss };
        if self.random.below(100) < loss {
            return;
        }
        let copies = 1 + u64::from(self.random.below(100) < self.weather.repeat);
        for _ in 0..copies {
            let late =
                if self.random.below(100) < self.weather.reorder { self.random.below(8 * MS) } else { 0 };
            self.number += 1;
            self.wire.insert((self.now + 10 * MS + late, self.number), (to_receiver, packet));
        }
    }

    /// One step of time; false when nothing will ever happen again.
    fn step(&mut self) -> bool {
        let arrival = self.wire.keys().next().map_or(u64::MAX, |key| key.0);
        let deadline = self.sender.next_deadline().min(self.receiver.next_deadline()).0;
        assert!(deadline >= self.now, "a deadline in the past");
        let next = arrival.min(deadline);
        if next == u64::MAX {
            return false;
        }
        assert!(!self.is_over, "something comes when all is over");
        self.now = next;
        let now = Time(next);
        let mut came = Packet::default();
        if next == arrival {
            let (_, (to_receiver, packet)) = self.wire.pop_first().expect("an arrival");
            if to_receiver {
                if let Some(answer) = self.receiver.handle_packet(&self.config, now, &packet) {
                    self.send(false, answer);
                }
            } else {
                self.sender.handle_packet(&self.config, now, &packet);
                self.observe_ack(&packet);
                came = packet;
            }
        } else {
            self.sender.handle_deadline(&self.config, now);
            if let Some(answer) = self.receiver.handle_deadline(&self.config, now) {
                self.send(false, answer);
            }
            self.observe_timeout();
        }
        while let Some(packet) = self.sender.poll_transmit(&self.config, now) {
            self.observe_transmission(&packet);
            self.send(true, packet);
        }
        let keeps_order = self.weather.repeat + self.weather.reorder == 0;
        self.is_over = keeps_order && !self.config.law.needs().probes && self.sender.is_over(&came);
        true
    }

    /// RFC 6675 §5, or FACK's.
    fn observe_ack(&mut self, packet: &Packet) {
        let base = self.isn.wrapping_add(1);
        let naive = &mut self.naive;
        if packet.kind != Kind::Ack {
            return;
        }
        let near = |seq| absolute(seq, base, naive.una).expect("honest numbers");
        let una = near(packet.seq).max(naive.una);
        if self.config.linux.is_some() {
            naive.una = una;
            return;
        }
        let blocks: Vec<_> =
            (0..SACK_BLOCKS).map(|i| packet.sack(i)).map(|(s, e)| (near(s), near(e))).collect();
        if una > naive.una {
            naive.una = una;
            naive.sacked.retain(|&s| s >= una);
            naive.high_rxt = naive.high_rxt.max(una);
            if una >= self.recover {
                self.repair = Repair::None;
            }
            if self.repair != Repair::Recovery {
                (self.duplicates, self.owes_first) = (0, false);
            }
        }
        let known = naive.sacked.len();
        for (start, end) in blocks {
            naive.sacked.extend((start..end).filter(|_| start > una));
        }
        if naive.sacked.len() > known && self.repair == Repair::None {
            self.duplicates += 1;
            if self.duplicates >= DUP_THRESH || naive.is_loss() {
                self.repair = Repair::Recovery;
                self.recover = naive.next;
                naive.rescue = una + 1;
                self.owes_first = naive.high_rxt == una;
            }
        }
        self.find_lost_again();
        self.compare();
    }

    fn find_lost_again(&mut self) {
        if self.config.linux.is_some() {
            return;
        }
        self.naive.find_lost_again(self.now, self.sender.patience().0);
        if self.repair == Repair::None && !self.naive.again.is_empty() {
            self.repair = Repair::Recovery;
            self.recover = self.naive.next;
            self.naive.rescue = self.naive.una + 1;
        }
    }

    fn observe_timeout(&mut self) {
        let naive = &mut self.naive;
        if self.sender.timeouts() > self.timeouts && naive.next > 0 {
            naive.expire();
            self.repair = Repair::Timeout;
            self.recover = naive.next;
            (self.duplicates, self.owes_first) = (0, false);
        }
        self.timeouts = self.sender.timeouts();
        self.find_lost_again();
        self.compare();
    }

    fn observe_transmission(&mut self, packet: &Packet) {
        if packet.kind != Kind::Data {
            return;
        }
        if packet.flags & flag::LOW_PRIORITY != 0 {
            self.observe_probe(packet);
            return;
        }
        let naive = &mut self.naive;
        let segment = absolute(packet.seq, self.isn.wrapping_add(1), naive.una).expect("honest numbers");
        if packet.flags & flag::RETRANSMIT == 0 {
            assert_eq!(segment, naive.next, "new data goes in order");
            naive.next += 1;
        } else if self.config.linux.is_some() {
            assert!((naive.una..naive.next).contains(&segment), "{segment} is not outstanding");
        } else if self.config.recovery.has_sack() {
            assert!(self.repair != Repair::None, "nothing is to be repaired");
            // Rules 3 and 4 are RFC 6675's only.
            let is_recovery = self.repair == Repair::Recovery && !naive.is_fack;
            if self.owes_first {
                assert_eq!(segment, naive.una);
                self.owes_first = false;
                naive.high_rxt = segment + 1;
            } else if let Some(next) = naive.next_lost().or(naive.next_unsacked().filter(|_| is_recovery)) {
                assert_eq!(segment, next, "not the next segment of RFC 6675");
                self.repeats += u64::from(naive.again.remove(&segment));
                naive.high_rxt = naive.high_rxt.max(segment + 1);
            } else {
                assert_eq!(Some(segment), naive.rescue().filter(|_| is_recovery), "not a rescue either");
                naive.rescue = self.recover;
                self.compare();
                return;
            }
            if self.config.repeats_again() {
                naive.watched.push((segment, naive.next, self.now));
            }
        }
        self.compare();
    }

    /// A copy of what was sent, which counts nowhere; Peach+'s is outstanding, if anything is.
    fn observe_probe(&self, packet: &Packet) {
        let naive = &self.naive;
        let segment = absolute(packet.seq, self.isn.wrapping_add(1), naive.una).expect("honest numbers");
        let last = naive.next - 1;
        match &self.config.law {
            SenderConfig::Peach(law) if law.variant == peach::Variant::PeachPlus => {
                let mut outstanding = naive.unsacked().peekable();
                let is_any = outstanding.peek().is_some();
                assert!(outstanding.any(|s| s == segment) || (!is_any && segment == last), "{segment}");
            }
            _ => assert_eq!(segment, last),
        }
        assert_eq!(packet.size, self.config.size_of(segment));
        self.compare();
    }

    fn compare(&self) {
        if self.config.recovery.has_sack() && self.config.linux.is_none() {
            assert_eq!(self.sender.pipe(), self.naive.pipe(), "at {} ns", self.now);
        }
    }
}

fn config(law: SenderConfig, recovery: Recovery, app: App) -> Config {
    Config {
        segment: 1000,
        ack: 40,
        law,
        initial_window: 3,
        window_most: Bytes(u64::MAX),
        awnd: None,
        recovery,
        min_rto: Duration(200 * MS),
        delayed_ack: false,
        ecn: false,
        ns2: false,
        linux: None,
        advertise: Advertise::Always,
        stop: Time::NEVER,
        lie: None,
        measure: Measure::ALWAYS,
        app,
    }
}

const RECOVERIES: [Recovery; 4] = [Recovery::Sack, Recovery::Fack, Recovery::NewReno, Recovery::Reno];

fn laws() -> [SenderConfig; 17] {
    let xcp = xcp::SenderConfig { pacing: true, desired_rate: Rate(1_250_000), ..xcp::SenderConfig::DEFAULT };
    [
        SenderConfig::Reno(reno::Config::default()),
        SenderConfig::Cubic(cubic::Config::default()),
        SenderConfig::HighSpeed(highspeed::Config::default()),
        SenderConfig::Bic(bic::Config::default()),
        SenderConfig::Vegas(vegas::Config::default()),
        SenderConfig::Dctcp(dctcp::Config::default()),
        SenderConfig::Prague(prague::Config::default()),
        SenderConfig::Abc(abc::SenderConfig::default()),
        SenderConfig::Hpcc(hpcc::SenderConfig {
            desired_rate: Rate(1_250_000),
            base_rtt: Duration(10_000_000),
            ..hpcc::SenderConfig::of(hpcc::Telemetry::Load)
        }),
        SenderConfig::Scone(scone::SenderConfig::default()),
        SenderConfig::Bbr(bbr::Config::default()),
        SenderConfig::Bbr3(bbr3::Config::default()),
        SenderConfig::Peach(peach::Config::of(peach::Variant::Peach)),
        SenderConfig::Peach(peach::Config::of(peach::Variant::PeachPlus)),
        SenderConfig::Xcp(xcp::SenderConfig { loss: xcp::LossPolicy::Maintain, ..xcp }),
        SenderConfig::Xcp2(xcp2::SenderConfig { xcp, ..xcp2::SenderConfig::DEFAULT }),
        SenderConfig::Xcp(xcp),
    ]
}

/// Every law with every way of repairing losses.
fn senders() -> Vec<(SenderConfig, Recovery, Option<SlowStart>)> {
    let plain = laws().into_iter().flat_map(|law| RECOVERIES.map(|recovery| (law.clone(), recovery, None)));
    let linux = laws().into_iter().filter(|law| law.needs().slow_start.is_some()).flat_map(|law| {
        [SlowStart::Standard, SlowStart::HyStart, SlowStart::HyStartPlus]
            .map(|start| (law.clone(), Recovery::Sack, Some(start)))
    });
    plain.chain(linux).collect()
}

#[test]
fn every_byte_arrives_once_whatever_the_pipe_does() {
    let total = 400_123;
    let mut seed = 0;
    let (mut worst, mut repeats, mut troubled, mut over) = ((0, 0), [0; 2], 0, 0);
    for (law, recovery, linux) in senders() {
        for (loss, ack_loss, repeat, reorder) in [
            (0, 0, 0, 0),
            (1, 0, 0, 0),
            (10, 0, 0, 0),
            (30, 30, 0, 0),
            (0, 50, 0, 0),
            (0, 0, 20, 20),
            (5, 5, 5, 5),
        ] {
            for (awnd, delayed_ack, ns2) in
                [(None, false, false), (Some(7), true, false), (Some(100), false, true)]
            {
                seed += 1;
                let weather = Weather { loss, ack_loss, repeat, reorder };
                let config = Config {
                    awnd,
                    delayed_ack,
                    ns2: ns2 && linux.is_none(),
                    linux,
                    ..config(law.clone(), recovery, App::Transfer(Bytes(total)))
                };
                let mut pair = Pair::new(config, seed, weather, Time::NEVER);
                while pair.step() {}
                let (sent, received) = (pair.sender.stats(&pair.config), pair.receiver.stats(&pair.config));
                assert!(
                    sent.completion.is_some(),
                    "{law:?} {recovery:?} {linux:?} never completes: {:?}",
                    pair.sender
                );
                assert_eq!(received.total.delivered_bytes, total);
                assert_eq!(sent.total.sent_packets, 401 + sent.total.retransmits + sent.probes);
                assert_eq!(sent.probes > 0, law.needs().probes);
                assert!(repeat > 0 || received.total.spurious_retransmits <= sent.total.retransmits);
                if loss + ack_loss + repeat + reorder == 0 {
                    assert_eq!(
                        (sent.total.retransmits, sent.total.timeouts, sent.total.window_cuts),
                        (0, 0, 0)
                    );
                    assert_eq!(pair.is_over, !law.needs().probes);
                } else if sent.total.retransmits > 0 && repeat + reorder == 0 && !law.needs().probes {
                    (troubled, over) = (troubled + 1, over + u64::from(pair.is_over));
                }
                worst = worst.max((sent.total.timeouts, seed));
                repeats[usize::from(pair.config.repeats_again())] += pair.repeats;
            }
        }
    }
    assert!(worst.0 > 0, "the pipe was kind");
    assert!(over * 2 > troubled, "of {troubled} senders that lost something {over} know that all is over");
    assert!(repeats[0] == 0 && repeats[1] > 100, "only P-XCP and BBR repeat a retransmission: {repeats:?}");
}

#[test]
fn bursts_arrive_in_their_own_segments() {
    let app = |wait, buffer| App::Bursts {
        size: Bytes(12_345),
        pause: Duration(70 * MS),
        wait,
        buffer: Bytes(buffer),
        total: None,
    };
    let mut seed = 0;
    for app in [app(Wait::Write, 16_000_000), app(Wait::Ack, 16_000_000), app(Wait::Write, 3_000)] {
        for loss in [0, 3] {
            seed += 1;
            let weather = Weather { loss, ack_loss: 0, repeat: 0, reorder: 0 };
            let law = SenderConfig::Reno(reno::Config::default());
            let mut pair = Pair::new(config(law, Recovery::Sack, app), seed, weather, Time(20_000 * MS));
            while pair.step() {}
            let (sent, received) = (pair.sender.stats(&pair.config), pair.receiver.stats(&pair.config));
            let segments = sent.total.sent_packets - sent.total.retransmits;
            assert_eq!(received.total.delivered_bytes, pair.config.bytes_of(segments).0);
            let bursts = received.total.delivered_bytes / 12_345;
            assert!(bursts > 40, "{app:?}: {bursts} bursts in 20 s");
            assert!(loss > 0 || sent.total.retransmits == 0);
        }
    }
}

/// Two whole bursts and a third of 1,000 B, then nothing.
#[test]
fn bursts_end_when_all_is_sent() {
    let (size, total) = (Bytes(12_345), Bytes(25_690));
    for wait in [Wait::Write, Wait::Ack] {
        let app = App::Bursts {
            size,
            pause: Duration(700 * MS),
            wait,
            buffer: Bytes(16_000_000),
            total: Some(total),
        };
        let weather = Weather { loss: 3, ack_loss: 0, repeat: 0, reorder: 0 };
        let law = SenderConfig::Reno(reno::Config::default());
        let mut pair = Pair::new(config(law, Recovery::Sack, app), 1, weather, Time(20_000 * MS));
        while pair.step() {}
        let (sent, received) = (pair.sender.stats(&pair.config), pair.receiver.stats(&pair.config));
        assert_eq!(received.total.delivered_bytes, total.0);
        assert_eq!(sent.total.sent_packets - sent.total.retransmits, 2 * pair.config.segments_in(size) + 1);
        let completion = sent.completion.expect("all was acknowledged");
        assert!((1_400 * MS..5_000 * MS).contains(&completion.0), "two pauses, then the end: {completion:?}");
    }
}

/// Neither side trusts what it reads: any packet is obeyed or ignored, none is fatal.
#[test]
fn arbitrary_packets_do_no_harm() {
    let mut laws = laws().to_vec();
    laws.extend([1, 2].map(|n| SenderConfig::Mpcp(mpcp::SenderConfig::of(n, true))));
    for seed in 0..500 {
        let mut random = Random(seed);
        let recovery = RECOVERIES[seed as usize % RECOVERIES.len()];
        let law = laws[(seed / 4) as usize % laws.len()].clone();
        let mut config = Config {
            delayed_ack: seed % 2 == 0,
            ecn: seed % 5 == 0,
            ns2: seed % 7 == 0,
            ..config(law, recovery, App::Endless)
        };
        if seed >= 400 {
            config.law = laws[seed as usize % 4].clone();
            config.recovery = Recovery::Sack;
            config.linux = Some(
                [SlowStart::Standard, SlowStart::HyStart, SlowStart::HyStartPlus][(seed / 4) as usize % 3],
            );
        }
        let isn = u32::MAX - 5;
        let mut sender = Sender::new(&config, 0, Time(0), isn);
        let mut receiver = Receiver::new(&config, 0, isn);
        let mut now = Time(0);
        for _ in 0..400 {
            now = now + Duration(random.below(20 * MS));
            // Mostly near the numbers in use, where obeying is possible.
            let near = |random: &mut Random| match random.below(8) {
                0 => random.0 as u32,
                _ => isn.wrapping_add(random.below(60) as u32),
            };
            let mut packet = Packet {
                stamp_ns: [now.0.saturating_sub(random.below(100 * MS)), random.0]
                    [usize::from(random.below(9) == 0)],
                seq: near(&mut random),
                size: random.0 as u16,
                kind: [Kind::Ack, Kind::Data, Kind::Syn, Kind::SynAck, Kind::WindowProbe, Kind::Datagram]
                    [random.below(6) as usize],
                flags: if random.below(3) == 0 { random.below(256) as u8 } else { 0 },
                ..Packet::default()
            };
            packet.set_window((random.below(4) == 0).then(|| random.below(20) as u32));
            packet.words[1] = random.0 as u32;
            for block in 0..SACK_BLOCKS {
                packet.set_sack(block, near(&mut random), near(&mut random));
            }
            sender.handle_packet(&config, now, &packet);
            sender.handle_deadline(&config, now);
            // A window that forged feedback opened need not be filled.
            for _ in 0..50 {
                if sender.poll_transmit(&config, now).is_none() {
                    break;
                }
            }
            assert!(sender.pipe() <= sender.stats(&config).total.sent_packets);
            receiver.handle_packet(&config, now, &packet);
            receiver.handle_deadline(&config, now);
        }
    }
}

/// Three segments in every round trip of 20 ms: what the statistics say of 300 ms of that.
#[test]
fn statistics_cover_the_measured_time_and_nothing_else() {
    let measure = Measure { from: Time(100 * MS), to: Time(400 * MS) };
    let calm = Weather { loss: 0, ack_loss: 0, repeat: 0, reorder: 0 };
    let [reno, ..] = laws();
    let stop = Time(600 * MS);
    let config = Config { awnd: Some(3), stop, measure, ..config(reno, Recovery::Sack, App::Endless) };
    let mut pair = Pair::of(config, 1, calm);
    while pair.step() {}
    pair.sender.finish(&pair.config, Time(1000 * MS));
    let (sent, received) = (pair.sender.stats(&pair.config), pair.receiver.stats(&pair.config));
    // Established at 25 ms; windows leave at 25, 45, ..., 585 ms and arrive 10 ms later.
    assert_eq!(sent.total.sent_packets, 29 * 3);
    assert_eq!(sent.sent_bytes, 87_000);
    assert_eq!(sent.measured_bytes, 15 * 3 * 1000);
    assert_eq!((received.total.received_packets, received.total.delivered_bytes), (87, 87_000));
    assert_eq!(received.measured_bytes, 15 * 3 * 1000);
    let samples = sent.round_trips.expect("samples");
    assert_eq!(samples.count(), 15 * 3);
    assert_eq!(sent.rtt_mean_ms(), Some(20.0));
    assert_eq!(sent.rtt_p95_ms(), Some(20.0));
    assert_eq!((sent.cwnd_mean_packets(), sent.cwnd_max_packets(&sent.measured)), (Some(3.0), Some(3.0)));
    assert_eq!(sent.total.idle_max, Some(Duration(20 * MS)));
    assert_eq!(sent.completion, Some(Time(605 * MS)), "the last of what was sent until the stop");
}

/// Data sent until the stop is all there is: it is complete when the last of it is acknowledged.
#[test]
fn a_stop_completes_what_was_sent() {
    let calm = Weather { loss: 0, ack_loss: 0, repeat: 0, reorder: 0 };
    let [reno, ..] = laws();
    let completion = |app, stop: u64, weather| {
        let config = Config { awnd: Some(3), ..config(reno.clone(), Recovery::Sack, app) };
        let mut pair = Pair::new(config, 1, weather, Time(stop * MS));
        while pair.now < 10_000 * MS && pair.step() {}
        pair.sender.finish(&pair.config, Time(10_000 * MS));
        let stats = pair.sender.stats(&pair.config);
        stats.completion.map(|time| time.0 / MS)
    };
    // Established at 25 ms; a round trip is 20 ms.
    assert_eq!(completion(App::Endless, 40, calm), Some(45));
    assert_eq!(completion(App::Endless, 10, calm), None, "nothing was sent");
    assert_eq!(completion(App::Endless, 20_000, calm), None, "it has not stopped");
    assert_eq!(completion(App::Transfer(Bytes(1_000)), 40, calm), Some(45));
    assert_eq!(completion(App::Transfer(Bytes(1_000_000)), 40, calm), Some(45), "cut short");
    for wait in [Wait::Write, Wait::Ack] {
        let pause = Duration(700 * MS);
        let app = App::Bursts { size: Bytes(1_000), pause, wait, buffer: Bytes(16_000_000), total: None };
        assert_eq!(completion(app, 400, calm), Some(45), "in the first pause");
        assert_eq!(completion(app, 735, calm), Some(if wait == Wait::Write { 745 } else { 45 }));
    }
    let no_ack = Weather { ack_loss: 100, ..calm };
    assert_eq!(completion(App::Endless, 40, no_ack), None, "the SYN-ACK is lost");
}

#[test]
fn a_flow_that_never_starts_has_no_window() {
    let [reno, ..] = laws();
    let config = config(reno, Recovery::Sack, App::Endless);
    let config = Config { measure: Measure { from: Time(0), to: Time(1000 * MS) }, ..config };
    let mut sender = Sender::new(&config, 3, Time(2000 * MS), 1);
    sender.finish(&config, Time(1000 * MS));
    assert_eq!(sender.stats(&config).total.window_max, None);
    sender.handle_deadline(&config, Time(2000 * MS));
    assert!(sender.stats(&config).total.window_max.is_some());
}
