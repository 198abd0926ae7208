//! TCP-Peach on TCP's machinery: what leaves when, and what comes back.

use std::collections::{BTreeMap, BTreeSet};

use congestlab_core::law::peach::{self, Variant};
use congestlab_core::law::{Law, SenderConfig};
use congestlab_core::units::{Bytes, Duration, Time};
use congestlab_net::packet::{Kind, Packet, flag};
use congestlab_net::tcp::{Advertise, App, Config, Measure, Mode, Receiver, Recovery, Sender};

const MS: u64 = 1_000_000;
const RTT: u64 = 550 * MS;
const ISN: u32 = u32::MAX - 3;

fn config(variant: Variant, initial_window: u32, awnd: Option<u32>) -> Config {
    Config {
        segment: 1000,
        ack: 40,
        law: SenderConfig::Peach(peach::Config::of(variant)),
        initial_window,
        window_most: Bytes(u64::MAX),
        awnd,
        advertise: Advertise::Always,
        stop: Time::NEVER,
        lie: None,
        measure: Measure::ALWAYS,
        recovery: Recovery::Sack,
        min_rto: Duration(1000 * MS),
        delayed_ack: false,
        ecn: false,
        ns2: false,
        linux: None,
        app: App::Endless,
    }
}

struct Run {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    now: u64,
}

fn segment(packet: &Packet) -> u32 {
    packet.seq.wrapping_sub(ISN.wrapping_add(1))
}

fn is_probe(packet: &Packet) -> bool {
    packet.flags & flag::LOW_PRIORITY != 0
}

impl Run {
    /// Connected after a round trip.
    fn new(config: Config, seed: u64) -> Self {
        let sender = Sender::new(&config, 0, Time(0), ISN).with_seed(seed);
        let receiver = Receiver::new(&config, 0, ISN);
        let mut run = Self { config, sender, receiver, now: 0 };
        run.sender.handle_deadline(&run.config, Time(0));
        let syn = run.sent();
        assert_eq!((syn.len(), syn[0].kind), (1, Kind::Syn));
        let answer = run.answer(&syn[0]);
        run.now = RTT;
        run.sender.handle_packet(&run.config, Time(RTT), &answer);
        run
    }

    fn sent(&mut self) -> Vec<Packet> {
        std::iter::from_fn(|| self.sender.poll_transmit(&self.config, Time(self.now))).collect()
    }

    fn answer(&mut self, packet: &Packet) -> Packet {
        self.receiver.handle_packet(&self.config, Time(self.now), packet).expect("an answer at once")
    }

    /// What leaves by `until` if nothing comes back, with its time.
    fn alone(&mut self, until: u64) -> Vec<(u64, Packet)> {
        let mut all: Vec<_> = self.sent().into_iter().map(|packet| (self.now, packet)).collect();
        while self.sender.next_deadline().0 < until {
            self.now = self.sender.next_deadline().0;
            self.sender.handle_deadline(&self.config, Time(self.now));
            all.extend(self.sent().into_iter().map(|packet| (self.now, packet)));
        }
        all
    }

    fn ack(&mut self, ack: &Packet) -> Vec<Packet> {
        self.sender.handle_packet(&self.config, Time(self.now), ack);
        self.sent()
    }

    fn cwnd(&self) -> f64 {
        self.sender.cwnd_packets(&self.config)
    }

    fn wdsn(&self) -> u64 {
        match self.sender.view().law.law() {
            Law::Peach(law) => law.wdsn(),
            law => panic!("{law:?}"),
        }
    }
}

#[test]
fn v8_1_sixty_three_probes_8_59375_ms_apart_open_the_window_to_64() {
    for variant in [Variant::Peach, Variant::PeachPlus] {
        let mut run = Run::new(config(variant, 1, Some(64)), 1);
        let sent = run.alone(2 * RTT - 1);
        assert!(!is_probe(&sent[0].1) && sent[0].0 == RTT);
        for (k, (at, packet)) in sent[1..].iter().enumerate() {
            assert_eq!((*at, segment(packet)), (RTT + (k as u64 + 1) * 8_593_750, 0));
            assert!(is_probe(packet) && packet.size == 1000 && packet.kind == Kind::Data);
        }
        assert_eq!(sent.len(), 64);
        // Two round trips after the SYN's end the answers are back.
        for (k, (at, packet)) in sent.iter().enumerate() {
            run.now = at + RTT / 2;
            let ack = run.answer(packet);
            assert_eq!((is_probe(&ack), ack.size), (k > 0, 40));
            run.now = at + RTT;
            run.ack(&ack);
            // The ACK of the data has opened it by one already.
            assert_eq!(run.cwnd(), (k + 2).min(64) as f64);
        }
        assert!(run.now <= 3 * RTT);
        assert_eq!(
            (run.sender.stats(&run.config).probes, run.sender.stats(&run.config).total.retransmits),
            (63, 0)
        );
    }
}

/// A window of 40, whose first segment is lost.
fn with_a_loss(variant: Variant) -> (Run, Vec<Packet>) {
    let mut run = Run::new(config(variant, 40, Some(40)), 2);
    let window = run.sent();
    assert_eq!(window.len(), 40, "nothing for sudden start to find");
    let mut out = Vec::new();
    run.now = RTT * 3 / 2;
    for (k, packet) in window[1..].iter().enumerate() {
        run.now += MS;
        let ack = run.answer(packet);
        let sent = run.ack(&ack);
        if k == 2 {
            assert_eq!((run.cwnd(), run.wdsn()), (20.0, 20));
            assert_eq!((segment(&sent[0]), is_probe(&sent[0])), (0, false), "the retransmission is first");
        }
        assert!(sent.iter().filter(|packet| is_probe(packet)).count() <= 2);
        out.extend(sent);
    }
    assert_eq!(out.iter().filter(|packet| is_probe(packet)).count(), 40);
    (run, out)
}

#[test]
fn v8_2_forty_probes_bring_a_window_of_40_back_and_fifteen_do_not() {
    for (returning, cwnd, wdsn) in [(40, 40.0, 0), (15, 20.0, 5)] {
        let (mut run, out) = with_a_loss(Variant::Peach);
        for probe in out.iter().filter(|packet| is_probe(packet)).take(returning) {
            let ack = run.answer(probe);
            assert!(is_probe(&ack));
            run.ack(&ack);
        }
        assert_eq!((run.cwnd(), run.wdsn()), (cwnd, wdsn));
        assert_eq!(run.sender.view().mode, Mode::Recovery, "a dummy repairs nothing here");
    }
}

/// Peach+: the loss is repaired by whichever comes first.
#[test]
fn a_nil_segment_fills_the_hole() {
    let (mut run, out) = with_a_loss(Variant::PeachPlus);
    let hole = out.iter().find(|packet| is_probe(packet) && segment(packet) == 0).copied();
    let ack = run.answer(&hole.expect("one of 40 draws of few segments"));
    assert!(is_probe(&ack) && segment(&ack) >= 40);
    run.ack(&ack);
    assert_eq!(run.sender.view().mode, Mode::Open);
    assert_eq!(run.sender.stats(&run.config).total.retransmits, 1);
}

/// All of what is outstanding and not SACKed, each as often, and nothing else.
#[test]
fn nil_segments_are_drawn_from_all_that_is_outstanding() {
    let mut counts = BTreeMap::new();
    for seed in 0..200 {
        let mut run = Run::new(config(Variant::PeachPlus, 8, Some(64)), seed);
        let first = run.alone(RTT + 1);
        assert_eq!(first.len(), 8);
        run.now += MS;
        // Two of the eight are SACKed.
        for lost in [3, 6] {
            let ack = run.answer(&first[lost].1);
            run.ack(&ack);
        }
        for (_, packet) in run.alone(2 * RTT) {
            if is_probe(&packet) {
                *counts.entry(segment(&packet)).or_insert(0u32) += 1;
            }
        }
    }
    let drawn: BTreeSet<u32> = counts.keys().copied().collect();
    // The two that were reported let two new ones go.
    assert_eq!(drawn, [0, 1, 2, 4, 5, 7, 8, 9].into());
    let (total, mean) = (counts.values().sum::<u32>(), f64::from(counts.values().sum::<u32>()) / 8.0);
    assert_eq!(total, 200 * 56, "rwnd less the initial window");
    let chi_square: f64 = counts.values().map(|&count| (f64::from(count) - mean).powi(2) / mean).sum();
    assert!(chi_square < 24.3, "{counts:?}: {chi_square}, 0.999 quantile of 7 degrees 24.3");
}

#[test]
fn a_probe_is_acknowledged_at_once_and_takes_no_delayed_ack_away() {
    let config = Config { delayed_ack: true, ..config(Variant::Peach, 1, None) };
    let mut receiver = Receiver::new(&config, 0, ISN);
    let data = |seq: u32, flags| Packet {
        seq: ISN.wrapping_add(1 + seq),
        size: 1000,
        flags,
        stamp_ns: 1,
        ..Packet::default()
    };
    assert_eq!(receiver.handle_packet(&config, Time(0), &data(0, 0)), None);
    let due = receiver.next_deadline();
    let ack = receiver.handle_packet(&config, Time(MS), &data(0, flag::LOW_PRIORITY)).expect("at once");
    assert!(is_probe(&ack) && segment(&ack) == 1);
    assert_eq!(receiver.next_deadline(), due);
    let ack = receiver.handle_deadline(&config, due).expect("delayed");
    assert!(!is_probe(&ack) && segment(&ack) == 1);
    // One that brings data is taken, at once too.
    let ack = receiver.handle_packet(&config, Time(MS), &data(1, flag::LOW_PRIORITY)).expect("at once");
    assert_eq!(segment(&ack), 2);
    assert_eq!(receiver.stats(&config).total.delivered_bytes, 2000);
    assert_eq!(receiver.stats(&config).total.spurious_retransmits, 0);
}

/// Without SACK the answers to probes look like duplicates, and must not count as such.
#[test]
fn answers_to_probes_are_no_duplicates() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut run = Run::new(Config { recovery, ..config(Variant::Peach, 4, Some(64)) }, 1);
        let sent = run.alone(2 * RTT - 1);
        run.now = 2 * RTT;
        run.answer(&sent[0].1);
        for (_, probe) in sent[4..].iter().filter(|(_, packet)| is_probe(packet)) {
            let ack = run.answer(probe);
            run.ack(&ack);
        }
        assert_eq!((run.sender.view().mode, run.cwnd()), (Mode::Open, 64.0));
        assert_eq!(run.sender.window(), Bytes(64_000));
    }
}
