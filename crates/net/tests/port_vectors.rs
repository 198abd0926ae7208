//! Small cases of a port whose outcome is known by hand.

use congestlab_core::law::{LinkConfig, LinkReport, xcp};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate};
use congestlab_net::capacity::{CapacityCounts, CapacityFrom};
use congestlab_net::errors::ErrorRate;
use congestlab_net::packet::{Kind, Packet, Picos, flag};
use congestlab_net::port::{LawConfig, NEVER, Output, Port, PortConfig, PortEvent, Streams};
use congestlab_net::queue::{Discipline, Limit, Reason, step};
use congestlab_net::random::{Probability, Stream};
use congestlab_net::service::{Service, Steps};
use congestlab_net::trace::Trace;

const MS: Picos = 1_000_000_000;
const END: Picos = 1_000 * MS;

#[derive(Default)]
struct Log {
    delivered: Vec<(Picos, u32)>,
    dropped: Vec<(u32, Reason)>,
    marked: Vec<u32>,
}

impl Output for Log {
    fn deliver(&mut self, packet: &mut Packet) {
        self.delivered.push((packet.at / MS, packet.seq));
    }

    fn event(&mut self, _at: Picos, event: PortEvent) {
        match event {
            PortEvent::Dropped { packet, reason } => self.dropped.push((packet.seq, reason)),
            PortEvent::Marked { packet } => {
                assert_eq!(packet.flags & flag::ECN_MASK, flag::CE);
                self.marked.push(packet.seq);
            }
            _ => {}
        }
    }
}

/// 1000 bytes take 1 ms.
fn config(limit: Limit) -> PortConfig {
    PortConfig::new(Service::Fixed(BitRate(8_000_000)), 0, limit)
}

fn port(config: &PortConfig) -> Port {
    let streams = Streams::new(|name| Stream::named(1, name));
    Port::new(config, streams, 0, END)
}

fn data(seq: u32, size: u16) -> Packet {
    Packet { seq, size, ..Packet::default() }
}

fn probe(seq: u32, size: u16) -> Packet {
    Packet { flags: flag::LOW_PRIORITY, ..data(seq, size) }
}

fn arrive(port: &mut Port, log: &mut Log, at: Picos, packet: Packet) {
    port.advance_to_arrival(at, log);
    port.arrive(at, packet, log);
}

fn finish(mut port: Port, log: &mut Log) -> Port {
    port.advance_before(END + 1, log);
    port.finish(END);
    port
}

/// docs/design/protocols.md 10.4, V10.3: limit 3, [D P D]; data pushes the probe out, then goes, as does a probe.
#[test]
fn v10_3_data_takes_the_place_of_the_newest_probe_and_keeps_its_turn() {
    let config =
        PortConfig { discipline: Discipline::PrioDropTail(Limit::None), ..config(Limit::Packets(3)) };
    let (mut port, mut log) = (port(&config), Log::default());
    // Number 0 is in transmission.
    let arrivals = [data(0, 1000), data(1, 1000), probe(2, 1000), data(3, 1000)];
    for packet in arrivals.into_iter().chain([data(4, 1000), data(5, 1000), probe(6, 1000)]) {
        arrive(&mut port, &mut log, 0, packet);
    }
    finish(port, &mut log);
    let full = Reason::QueueFull;
    assert_eq!(log.dropped, [(2, Reason::PushedOut), (5, full), (6, full)]);
    assert_eq!(log.delivered, [(1, 0), (2, 1), (3, 3), (4, 4)]);
}

/// GTNetS's PeachQueue, as docs/design/protocols.md 8.4 has it: "drops an arriving probe whenever more than one
/// packet is queued".
#[test]
fn a_probe_waits_behind_no_more_than_the_threshold() {
    let discipline = Discipline::PrioDropTail(Limit::Packets(1));
    let config = PortConfig { discipline, ..config(Limit::Packets(3)) };
    let (mut port, mut log) = (port(&config), Log::default());
    // Number 0 is in transmission, 1 waits; so may 2, and 3 may not.
    for packet in [data(0, 1000), data(1, 1000), probe(2, 1000), probe(3, 1000), data(4, 1000), data(5, 1000)]
    {
        arrive(&mut port, &mut log, 0, packet);
    }
    arrive(&mut port, &mut log, 0, probe(6, 1000));
    finish(port, &mut log);
    let reasons = [(3, Reason::QueueFull), (2, Reason::PushedOut), (6, Reason::QueueFull)];
    assert_eq!(log.dropped, reasons);
}

#[test]
fn in_bytes_data_pushes_out_as_many_probes_as_it_needs_or_none() {
    let config =
        PortConfig { discipline: Discipline::PrioDropTail(Limit::None), ..config(Limit::Bytes(2000)) };
    let (mut port, mut log) = (port(&config), Log::default());
    for packet in [data(0, 1000), probe(1, 600), probe(2, 300), data(3, 500), probe(4, 600)] {
        arrive(&mut port, &mut log, 0, packet);
    }
    // Takes the places of 4 and 2; what would need more than all probes takes none.
    arrive(&mut port, &mut log, 0, data(5, 900));
    arrive(&mut port, &mut log, 0, data(6, 1200));
    finish(port, &mut log);
    let out = Reason::PushedOut;
    assert_eq!(log.dropped, [(4, out), (2, out), (6, Reason::QueueFull)]);
    let order: Vec<u32> = log.delivered.iter().map(|&(_, seq)| seq).collect();
    assert_eq!(order, [0, 1, 3, 5]);
}

/// The packets that a step marks of eight that arrive at once and, 2.5 ms later, eight more, a packet a ms.
fn marked_by(threshold: step::Threshold, at: step::At) -> Vec<u32> {
    let discipline = Discipline::Step(step::Config { threshold, at, drop: false });
    let config = PortConfig { discipline, ..config(Limit::Packets(12)) };
    let (mut port, mut log) = (port(&config), Log::default());
    for seq in 0..16 {
        let flags = if seq == 7 { 0 } else { flag::ECT0 };
        let now = if seq < 8 { 0 } else { 5 * MS / 2 };
        arrive(&mut port, &mut log, now, Packet { flags, ..data(seq, 1000) });
    }
    let port = finish(port, &mut log);
    assert_eq!(port.stats().marks as usize, log.marked.len());
    // Number 0 never waits; 3 to 7 and seven more do when the last comes.
    assert_eq!(log.dropped, [(15, Reason::QueueFull)]);
    log.marked
}

/// The queue as it is, beside the packet itself: number 0 is in transmission, and 7 can not be marked.
#[test]
fn a_step_marks_what_meets_a_longer_queue_when_it_arrives_or_when_it_leaves() {
    use step::{At, Threshold};
    // When 6 comes 1 to 5 wait, when 8 comes 3 to 7.
    let arriving: Vec<u32> = [6, 8].into_iter().chain(9..15).collect();
    assert_eq!(marked_by(Threshold::Packets(4), At::Enqueue), arriving);
    assert_eq!(marked_by(Threshold::Bytes(Bytes(4000)), At::Enqueue), arriving);
    assert_eq!(marked_by(Threshold::Bytes(Bytes(3999)), At::Enqueue)[..2], [5, 6]);
    // Behind 1 there are six, behind 2 five; 3 leaves with 4 to 14 behind it, 10 with 11 to 14.
    let leaving = [1, 2, 3, 4, 5, 6, 8, 9];
    assert_eq!(marked_by(Threshold::Packets(4), At::Dequeue), leaving);
    assert_eq!(marked_by(Threshold::Bytes(Bytes(4000)), At::Dequeue), leaving);
    // 5 leaves after 5 ms, 8 after 5.5 ms, 14 after 11.5 ms; 7 has no transport that knows ECN.
    let late: Vec<u32> = [6].into_iter().chain(8..15).collect();
    assert_eq!(marked_by(Threshold::Sojourn(Duration(5_000_000)), At::Dequeue), late);
    assert_eq!(marked_by(Threshold::Sojourn(Duration(5_000_000)), At::Enqueue), late, "known when it leaves");
}

/// What is dropped on its way out costs no time: the next packet has its turn at once, with what then waits behind it.
#[test]
fn a_step_that_drops_takes_what_can_not_be_marked_from_the_head() {
    let discipline = |at, drop| {
        let threshold = step::Threshold::Packets(4);
        Discipline::Step(step::Config { threshold, at, drop })
    };
    let run = |discipline, codes: [u8; 10]| {
        let (mut port, mut log) = (port(&PortConfig { discipline, ..config(Limit::None) }), Log::default());
        for (seq, flags) in (0..).zip(codes) {
            arrive(&mut port, &mut log, 0, Packet { flags, ..data(seq, 1000) });
        }
        let port = finish(port, &mut log);
        let stats = port.stats();
        assert_eq!(stats.arrived_packets, stats.sent_packets + stats.counts().dropped_packets());
        assert_eq!(stats.queue_end_packets, 0);
        log
    };
    let none = [0; 10];
    let all: Vec<(Picos, u32)> = (1..=10).zip(0..).collect();
    assert_eq!(run(discipline(step::At::Dequeue, false), none).delivered, all);
    // Number 0 finds nothing. At 1 ms 1 leaves eight behind, 2 seven, 3 six, 4 five: all go; 5 leaves four.
    let log = run(discipline(step::At::Dequeue, true), none);
    let full = Reason::QueueFull;
    assert_eq!(log.dropped, [(1, full), (2, full), (3, full), (4, full)]);
    assert_eq!(log.delivered, [(1, 0), (2, 5), (3, 6), (4, 7), (5, 8), (6, 9)]);
    // 2 is marked and goes, so that 3 meets five at 2 ms and 4, which can not be marked, four.
    let mut codes = none;
    codes[2] = flag::ECT0;
    let log = run(discipline(step::At::Dequeue, true), codes);
    assert_eq!((log.marked, log.dropped), (vec![2], vec![(1, full), (3, full), (4, full)]));
    assert_eq!(log.delivered[..3], [(1, 0), (2, 2), (3, 5)]);
    // On the way in 6 is the first that meets five.
    let log = run(discipline(step::At::Enqueue, true), none);
    assert_eq!(log.dropped, [(6, full), (7, full), (8, full), (9, full)]);
}

#[test]
fn the_packet_in_transmission_counts_in_no_limit_and_no_length() {
    let (mut port, mut log) = (port(&config(Limit::Packets(1))), Log::default());
    for seq in 0..3 {
        arrive(&mut port, &mut log, 0, data(seq, 1000));
    }
    assert_eq!(port.queue_packets(), 1);
    // A departure at 1 ms makes room for the arrival at 1 ms.
    arrive(&mut port, &mut log, MS, data(3, 1000));
    let port = finish(port, &mut log);
    assert_eq!(log.dropped, [(2, Reason::QueueFull)]);
    let stats = port.stats();
    assert_eq!((stats.sent_packets, stats.queue_max_packets, stats.in_flight_end), (3, 1, 0));
    // One packet waited for 2 ms of the 1000.
    assert_eq!(stats.queue_mean_packets, Some(0.002));
    assert_eq!(stats.queue_p95_packets, Some(0));
}

/// At most as much above as a bucket of the histogram is wide.
fn is_about(found: Duration, exact: Picos) -> bool {
    let exact = exact / 1000;
    found.0 >= exact && (found.0 - exact) * 64 <= exact
}

#[test]
fn packets_wait_from_their_arrival_until_their_transmission() {
    let (mut port, mut log) = (port(&config(Limit::None)), Log::default());
    for seq in 0..5 {
        arrive(&mut port, &mut log, 0, data(seq, 1000));
    }
    arrive(&mut port, &mut log, 500 * MS, data(5, 1000));
    let port = finish(port, &mut log);
    // 0, 0, 1, 2, 3, 4 ms.
    let delay = port.stats().queue_delay.expect("packets were sent");
    assert_eq!(delay.mean_ns, 10e6 / 6.0);
    assert!(is_about(delay.p50, MS), "{delay:?}");
    assert_eq!([delay.p95, delay.p99, delay.max].map(|wait| wait.0), [4_000_000; 3]);
    let streams = Streams::new(|name| Stream::named(1, name));
    let idle = finish(Port::new(&config(Limit::None), streams, 0, END), &mut log);
    assert_eq!(idle.stats().queue_delay, None);
}

/// Of a queue that drains: what begins transmission before the measurement has no part, however long it waited.
#[test]
fn waiting_is_measured_of_transmissions_that_begin_while_measuring() {
    let streams = Streams::new(|name| Stream::named(1, name));
    let (from, mut log) = (10 * MS + MS / 2, Log::default());
    let mut port = Port::new(&config(Limit::None), streams, from, END);
    for seq in 0..30 {
        arrive(&mut port, &mut log, 0, data(seq, 1000));
    }
    let port = finish(port, &mut log);
    // 11 to 29 ms.
    let delay = port.stats().queue_delay.expect("packets were sent");
    assert_eq!(delay.mean_ns, 20e6);
    assert!(is_about(delay.p50, 20 * MS) && is_about(delay.p95, 29 * MS), "{delay:?}");
    assert_eq!(delay.max.0, 29_000_000);
}

#[test]
fn the_rest_of_a_run_is_in_flight_waiting_sending_and_on_the_wire() {
    let config = PortConfig { delay: 10 * MS, ..config(Limit::None) };
    let (mut port, mut log) = (port(&config), Log::default());
    for seq in 0..5 {
        arrive(&mut port, &mut log, END - 12 * MS, data(seq, 1000));
    }
    for seq in 5..8 {
        arrive(&mut port, &mut log, END - MS / 2, data(seq, 1000));
    }
    let port = finish(port, &mut log);
    let stats = port.stats();
    // Two are there, three on the wire, one in transmission, two wait.
    assert_eq!((stats.sent_packets, stats.delivered_packets), (5, 2));
    assert_eq!((stats.in_flight_end, stats.queue_end_packets), (6, 2));
    assert_eq!(stats.measured_bytes, 5_000);
}

#[test]
fn errors_use_capacity_and_ack_loss_spares_data() {
    let broken =
        PortConfig { errors: Some(ErrorRate::Packet { rate: 1.0, size: 1000 }), ..config(Limit::None) };
    let (mut broken, mut log) = (port(&broken), Log::default());
    for seq in 0..5 {
        arrive(&mut broken, &mut log, 0, data(seq, 1000));
    }
    let broken = finish(broken, &mut log);
    assert_eq!((broken.stats().sent_packets, broken.stats().errors), (5, 5));
    assert_eq!((broken.stats().measured_bytes, broken.stats().counts().dropped_packets()), (5_000, 0));
    assert_eq!((log.delivered.len(), broken.draws()), (0, 0));

    let lossy = PortConfig { ack_loss: Probability::from_f64(0.3), ..config(Limit::None) };
    let mut lossy = port(&lossy);
    for seq in 0..10_000 {
        let kind = [Kind::Data, Kind::Ack][seq as usize % 2];
        arrive(&mut lossy, &mut log, 0, Packet { kind, ..data(seq, 10) });
    }
    let lossy = finish(lossy, &mut log);
    let lost = lossy.stats().errors;
    // Five standard deviations about 1500.
    assert!(lost.abs_diff(1500) < 162, "{lost} of 5000 ACKs lost");
    assert_eq!(log.delivered.iter().filter(|&&(_, seq)| seq % 2 == 0).count(), 5000);
    assert_eq!(lossy.draws(), 5000);
}

#[test]
fn a_packet_waits_for_its_opportunity_in_the_queue() {
    let trace = Service::Trace(Trace::parse(b"10\n").unwrap());
    let (mut port, mut log) =
        (port(&PortConfig { service: trace, ..config(Limit::Packets(2)) }), Log::default());
    assert_eq!(port.next_event(), NEVER, "nothing waits: the opportunities are wasted");
    for seq in 0..3 {
        arrive(&mut port, &mut log, 15 * MS, data(seq, 1000));
    }
    assert_eq!((port.queue_packets(), port.next_event()), (2, 20 * MS));
    assert_eq!(log.dropped, [(2, Reason::QueueFull)]);
    // The opportunity at 40 ms precedes the arrival at 40 ms.
    arrive(&mut port, &mut log, 40 * MS, data(3, 1500));
    let port = finish(port, &mut log);
    assert_eq!(log.delivered, [(20, 0), (30, 1), (50, 3)]);
    // Two from 15 to 20 ms, then number 1 is on its way; number 3 waits for 10 ms.
    assert_eq!(port.stats().queue_mean_packets, Some(0.02));
}

/// The fingerprint is a hash of what happened: any difference in it must show.
#[test]
fn the_fingerprint_tells_runs_apart() {
    let run = |change: fn(&mut Packet), limit| {
        let (mut port, mut log) = (port(&config(Limit::Packets(limit))), Log::default());
        for seq in 0..4 {
            let mut packet = Packet { at: MS, flow: 3, ..data(seq, 1000) };
            if seq == 2 {
                change(&mut packet);
            }
            arrive(&mut port, &mut log, packet.at, packet);
        }
        finish(port, &mut log).fingerprint()
    };
    let plain = run(|_| {}, 3);
    assert_eq!(plain, run(|_| {}, 3));
    assert_eq!(plain, run(|packet| packet.route = 1, 3), "the engine's own field");
    let others = [
        run(|packet| packet.flow = 4, 3),
        run(|packet| packet.seq = 9, 3),
        run(|packet| packet.size = 999, 3),
        run(|packet| packet.kind = Kind::Ack, 3),
        run(|packet| packet.flags = flag::RETRANSMIT, 3),
        run(|_| {}, 2),
        run(|_| {}, 1),
    ];
    for (i, other) in others.iter().enumerate() {
        assert_ne!(plain, *other, "change {i}");
        assert!(!others[..i].contains(other), "change {i} looks like another");
    }
}

/// A link whose law hears of steps by the rate that is stated, ten times a second, and one whose law hears of them by itself: where the
/// steps come at a look, they are the same.
#[test]
fn a_law_that_is_told_what_the_service_states_decides_as_if_it_followed_it() {
    let steps = [(0, 8), (200, 4), (700, 16)].map(|(ms, mbits)| (ms * MS, BitRate(mbits * 1_000_000)));
    let service = Service::Steps(Steps::new(steps.to_vec()).unwrap());
    let law = LinkConfig::Xcp(xcp::LinkConfig { capacity: Rate(500_000), ..xcp::LinkConfig::DEFAULT });
    let decided = |follows_service, capacity_from| {
        let law = Some(LawConfig { config: law.clone(), follows_service });
        let config =
            PortConfig { law, capacity_from, service: service.clone(), ..config(Limit::Packets(500)) };
        let (mut port, mut log) = (port(&config), Decisions::default());
        for ms in 0..1000 {
            let at = ms * MS;
            port.advance_to_arrival(at, &mut log);
            port.arrive(at, data(ms as u32, 1000), &mut log);
        }
        port.advance_before(END, &mut log);
        port.finish(END);
        (log.0, port.stats().capacity)
    };
    let (follows, none) = decided(true, None);
    let (told, counts) = decided(false, Some(CapacityFrom::Stated));
    let (fixed, _) = decided(false, None);
    assert!(follows.len() > 10 && none.is_none());
    assert_eq!(told, follows);
    assert_ne!(fixed, follows);
    assert_eq!(counts, Some(CapacityCounts { changes: 3, stale: Duration(0) }));
    // A queue of 200 packets is left of the second step: the third is measured.
    let (measured, counts) = decided(false, Some(CapacityFrom::Drain { longest: Bytes(1000) }));
    let (changes, stale) = counts.map(|counts| (counts.changes, counts.stale)).unwrap();
    assert!(measured != fixed && changes >= 2 && stale == Duration(0), "{changes} changes, {stale:?}");
}

/// Reports of control intervals.
#[derive(Default)]
struct Decisions(Vec<LinkReport>);

impl Output for Decisions {
    fn deliver(&mut self, _packet: &mut Packet) {}

    fn event(&mut self, _at: Picos, event: PortEvent) {
        if let PortEvent::ControlInterval { report } = event {
            self.0.push(report);
        }
    }
}
