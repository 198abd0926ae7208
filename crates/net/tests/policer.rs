//! A port with a policer before its law: what comes beyond a flow's share of a full link is dropped, and nothing else moves.

use congestlab_core::law::LinkConfig;
use congestlab_core::law::xcp::{self, Header};
use congestlab_core::units::{BitRate, Duration, Rate};
use congestlab_net::packet::{PS_PER_NS, Packet, Picos};
use congestlab_net::port::{FeedbackAt, LawConfig, Output, Port, PortConfig, PortEvent, Streams};
use congestlab_net::queue::{Limit, Reason};
use congestlab_net::random::Stream;
use congestlab_net::service::Service;

const MS: Picos = 1_000_000_000;
const SECOND: Picos = 1000 * MS;
/// 10 Mbit/s carries a packet of 1250 B in 1 ms.
const RATE: BitRate = BitRate(10_000_000);
const SIZE: u16 = 1250;

#[derive(Default)]
struct Log {
    delivered: Vec<Packet>,
    dropped: Vec<(u32, Reason)>,
}

impl Output for Log {
    fn deliver(&mut self, packet: &mut Packet) {
        self.delivered.push(*packet);
    }

    fn event(&mut self, _at: Picos, event: PortEvent) {
        if let PortEvent::Dropped { packet, reason } = event {
            self.dropped.push((packet.flow, reason));
        }
    }
}

fn config(police: Option<u32>) -> PortConfig {
    let law = xcp::LinkConfig { capacity: Rate(RATE.0 / 8), ..xcp::LinkConfig::DEFAULT };
    PortConfig {
        law: Some(LawConfig { config: LinkConfig::Xcp(law), follows_service: true }),
        police,
        ..PortConfig::new(Service::Fixed(RATE), MS, Limit::Packets(50))
    }
}

/// A flow that sends a packet each so often, and states its spacing times a factor; 0: it has no header.
struct Flow {
    every: Picos,
    states: u64,
}

impl Flow {
    fn packet(&self, flow: u32, seq: u32) -> Packet {
        let mut packet = Packet { flow, seq, size: SIZE, ..Packet::default() };
        if self.states > 0 {
            let x = Duration(self.every / PS_PER_NS).to_header() * self.states as u32;
            packet.set_header(Header { x, rtt: Duration(80_000_000).to_header(), delta: 1000, reverse: 0 });
        }
        packet
    }
}

/// Runs flows for so long, the measured time from `from` on.
fn run(config: &PortConfig, flows: &[Flow], from: Picos, end: Picos) -> (Port, Log) {
    let streams = Streams::new(|name| Stream::named(1, name));
    let (mut port, mut log) = (Port::new(config, streams, from, end), Log::default());
    let mut next: Vec<(Picos, u32)> = flows.iter().map(|flow| (flow.every, 0)).collect();
    loop {
        let (flow, &(at, seq)) = next.iter().enumerate().min_by_key(|(_, (at, _))| at).expect("flows");
        if at >= end {
            break;
        }
        port.advance_to_arrival(at, &mut log);
        port.arrive(at, flows[flow].packet(flow as u32, seq), &mut log);
        next[flow] = (at + flows[flow].every, seq + 1);
    }
    port.advance_before(end + 1, &mut log);
    port.finish(end);
    (port, log)
}

/// Nine flows that want more than the little they have, and one beside them.
fn beside_nine(flow: Flow) -> Vec<Flow> {
    let mut flows: Vec<Flow> = (0..9).map(|_| Flow { every: 50 * MS, states: 1 }).collect();
    flows.push(flow);
    flows
}

#[test]
fn datagrams_at_line_rate_get_a_share_and_nobody_else_loses_a_packet() {
    let (port, log) =
        run(&config(Some(64)), &beside_nine(Flow { every: MS, states: 0 }), 20 * SECOND, 40 * SECOND);
    let stats = port.stats();
    let (all, measured) = (stats.counts(), stats.measured());
    let policed = |counts: &[u64; Reason::ALL.len()]| counts[Reason::Policed as usize];
    assert!(log.dropped.iter().all(|&(flow, reason)| reason != Reason::Policed || flow == 9));
    assert_eq!(
        policed(&all.drops),
        log.dropped.iter().filter(|drop| drop.1 == Reason::Policed).count() as u64
    );
    // A tenth of 20,000 packets passes, with what the measurement of rates leaves.
    let passed = 20_000 - policed(&measured.drops);
    assert!((1_500..=2_500).contains(&passed), "{passed}");
    let counts = all.police.expect("a policer");
    assert_eq!((counts.offenders, counts.dropped), (1, policed(&all.drops)));
    assert_eq!(measured.police.expect("a policer").offenders, 0, "it was held before");
    assert_eq!(all.arrived_packets, stats.delivered_packets + all.dropped_packets() + stats.in_flight_end);
}

/// What the law sees of an overstated spacing is what could be true, whenever it acts.
#[test]
fn an_overstated_spacing_is_lowered_before_the_law_sees_it() {
    for feedback_at in [FeedbackAt::Departure, FeedbackAt::Enqueue] {
        let flows = || beside_nine(Flow { every: 10 * MS, states: 5 });
        let (port, log) = run(&PortConfig { feedback_at, ..config(Some(64)) }, &flows(), 0, 20 * SECOND);
        let of = |flow: u32| log.delivered.iter().filter(move |packet| packet.flow == flow);
        let stated = |flow: u32| -> f64 {
            of(flow).filter_map(|packet| packet.header::<Header>()).map(|header| f64::from(header.x)).sum()
        };
        let seconds = |flow: u32| stated(flow) / f64::from(1 << 28);
        assert!((21.5..=22.6).contains(&seconds(9)), "{}", seconds(9));
        assert!((19.8..=20.1).contains(&seconds(0)), "{}", seconds(0));
        let counts = port.stats().counts().police.expect("a policer");
        assert!(counts.clamped > 1900 && counts.dropped == 0, "{counts:?}");
    }
}

/// Honest flows pass as if nobody looked: the same packets at the same times, and what they state is lowered in the first packets
/// alone, which nobody knows yet and which come at once.
#[test]
fn honest_flows_do_not_notice() {
    let flows = || (0..10).map(|_| Flow { every: 10 * MS, states: 1 }).collect::<Vec<_>>();
    let times = |log: &Log| {
        log.delivered.iter().map(|packet| (packet.flow, packet.seq, packet.at)).collect::<Vec<_>>()
    };
    let (plain, with) =
        (run(&config(None), &flows(), 0, 20 * SECOND), run(&config(Some(64)), &flows(), 0, 20 * SECOND));
    assert_eq!(times(&plain.1), times(&with.1));
    assert_eq!(plain.0.stats().counts().police, None);
    let counts = with.0.stats().counts().police.expect("a policer");
    assert_eq!((counts.clamped, counts.dropped, counts.offenders), (9, 0, 0));
}
