//! Two classes on one port: whose turn it is, what the law sees, how weights follow.

use congestlab_core::law::queue::QueueSample;
use congestlab_core::law::{LinkConfig, LinkReport, xcp};
use congestlab_core::units::{BitRate, Rate, Ratio};
use congestlab_net::packet::{Kind, Packet, Picos};
use congestlab_net::port::{LawConfig, Output, Port, PortConfig, PortEvent, Sample, Streams};
use congestlab_net::queue::xcp_tcp::{
    self, Config, Dynamic, Follow, LOSS_PLACES, WINDOW_PLACES, next_weight, tcp_window,
};
use congestlab_net::queue::{Discipline, Limit, Reason, red};
use congestlab_net::random::{Probability, Stream};
use congestlab_net::service::Service;

const MS: Picos = 1_000_000_000;
const END: Picos = 20_000 * MS;
const DYNAMIC: Dynamic = Dynamic {
    follow: Follow::Windows,
    kappa: Ratio::ppm(100_000),
    min: Ratio::ppm(50_000),
    max: Ratio::ppm(950_000),
};
const FLOWS: Dynamic = Dynamic { follow: Follow::Flows, ..DYNAMIC };

/// K02 eq. 10 in floats.
fn window_of(loss_rate: f64) -> f64 {
    let p = loss_rate.min(0.1);
    1.0 / ((2.0 * p / 3.0).sqrt() + 12.0 * p * (3.0 * p / 8.0).sqrt() * (1.0 + 32.0 * p * p))
}

/// The law's window, of a loss rate in floats.
fn window(loss_rate: f64) -> Option<f64> {
    let places = |n: u32| 2f64.powi(n as i32);
    let window = tcp_window((loss_rate * places(LOSS_PLACES)) as u64)?;
    Some(window as f64 / places(WINDOW_PLACES))
}

/// docs/design/protocols.md 13.5, V13.1; K02 eq. 10.
#[test]
fn v13_1_the_window_that_losses_allow() {
    for (loss_rate, packets) in [(1e-3, 38.38), (1e-2, 11.23), (0.1, 1.770)] {
        let window = window(loss_rate).expect("a limit");
        assert!((window / packets - 1.0).abs() < 5e-4, "{loss_rate}: {window}, not {packets}");
    }
    assert_eq!(window(0.4), window(0.1), "beyond 0.1 the formula is not used");
    assert_eq!(window(0.0), None);
}

/// The window against the formula in floats, from one loss in 10^9 packets to all lost: both round, floats by 2^-53 of what
/// they round, the law by 2^-60 of a loss rate.
#[test]
fn the_window_is_that_of_the_formula_in_floats() {
    let mut draws = Stream::named(11, "test");
    for _ in 0..20_000 {
        let digits = 0.1 + 0.9 * draws.below(1 << 50) as f64 / 2f64.powi(50);
        let loss_rate = digits / 10f64.powi(draws.below(9) as i32);
        let (window, expected) = (window(loss_rate).expect("a limit"), window_of(loss_rate));
        assert!((window / expected - 1.0).abs() < 1e-9, "{loss_rate:e}: {window}, not {expected}");
    }
}

/// docs/design/protocols.md 13.5, V13.2; K02 §8.2.
#[test]
fn v13_2_the_larger_window_gives_way() {
    let weight = |from, xcp, tcp| next_weight(Ratio::ppm(from), &DYNAMIC, xcp, tcp).0;
    assert_eq!(weight(500_000, 30, Some(10)), 450_000);
    assert_eq!(weight(500_000, 10, Some(30)), 550_000);
    assert_eq!(weight(500_000, 7, Some(7)), 500_000);
    assert_eq!(weight(500_000, 7, None), 600_000, "nothing limits TCP");
    assert_eq!(weight(60_000, 30, Some(10)), 50_000, "the bounds hold");
    assert_eq!(weight(930_000, 10, Some(30)), 950_000);
}

/// The step against floats, for windows of any size: to the nearest millionth, which floats may miss at a tie.
#[test]
fn the_step_of_a_weight_is_that_of_the_formula_in_floats() {
    let mut draws = Stream::named(12, "test");
    for _ in 0..20_000 {
        let mut any = || u128::from(draws.next_u64() >> draws.below(60)) << draws.below(64) | 1;
        let (xcp, tcp) = (any(), any());
        let lead = (xcp as f64 - tcp as f64) / (xcp as f64 + tcp as f64);
        let next = next_weight(Ratio::ppm(500_000), &DYNAMIC, xcp, Some(tcp)).0;
        let exact = 500_000.0 - 100_000.0 * lead;
        assert!((f64::from(next) - exact).abs() < 0.5 + 1e-6, "{xcp}, {tcp}: {next}, not {exact}");
    }
}

fn config(weight: u32, dynamic: Option<Dynamic>) -> PortConfig {
    let red = red::Config {
        thresholds: red::Thresholds::Packets { min: 1000, max: 2000 },
        max_p: Probability::from_f64(0.1).into(),
        weight: Probability::from_f64(0.002).into(),
        gentle: true,
        ecn: true,
        wait: false,
        use_mark_p: false,
        packet_size: 1000,
    };
    let two = Config { weight: Ratio::ppm(weight), limit: Limit::Packets(30), red, dynamic };
    let law = xcp::LinkConfig { capacity: Rate(1_000_000), ..xcp::LinkConfig::DEFAULT };
    PortConfig {
        discipline: Discipline::XcpTcp(two),
        law: Some(LawConfig { config: LinkConfig::Xcp(law), follows_service: true }),
        sample_every: Some(1000 * MS),
        // 1000 bytes take 1 ms.
        ..PortConfig::new(Service::Fixed(BitRate(8_000_000)), 0, Limit::Packets(30))
    }
}

fn port(config: &PortConfig) -> Port {
    Port::new(config, Streams::new(|name| Stream::named(1, name)), 0, END)
}

#[derive(Default)]
struct Log {
    /// Bytes of XCP and of the rest.
    bytes: [u64; 2],
    dropped: Vec<(bool, Reason)>,
    order: Vec<(u32, bool)>,
    reports: Vec<xcp::Report>,
    samples: Vec<xcp_tcp::Sample>,
}

impl Output for Log {
    fn deliver(&mut self, packet: &mut Packet) {
        self.bytes[usize::from(packet.header::<xcp::Header>().is_none())] += u64::from(packet.size);
        self.order.push((packet.seq, packet.header::<xcp::Header>().is_some()));
    }

    fn event(&mut self, _at: Picos, event: PortEvent) {
        match event {
            PortEvent::Dropped { packet, reason } => {
                self.dropped.push((packet.header::<xcp::Header>().is_some(), reason))
            }
            PortEvent::ControlInterval { report: LinkReport::Xcp(report) } => self.reports.push(report),
            PortEvent::Sample(Sample { queue: Some(QueueSample::XcpTcp(sample)), .. }) => {
                self.samples.push(sample);
            }
            _ => {}
        }
    }
}

/// 2^28 s are a second; an RTT of 100 ms.
fn xcp_packet(seq: u32, size: u16, window: u32) -> Packet {
    let rtt = (1 << 28) / 10;
    let mut packet = Packet { seq, size, ..Packet::default() };
    packet.set_header(xcp::Header { x: rtt / window, rtt, delta: 0, reverse: 0 });
    packet
}

fn arrive(port: &mut Port, log: &mut Log, at: Picos, packet: Packet) {
    port.advance_to_arrival(at, log);
    port.arrive(at, packet, log);
}

/// Both classes always have something to send, in packets of different sizes.
#[test]
fn two_full_queues_share_the_link_by_bytes_in_proportion_to_their_weights() {
    for weight in [500_000, 250_000, 900_000] {
        let (mut port, mut log) = (port(&config(weight, None)), Log::default());
        for at in 0..10_000 {
            arrive(&mut port, &mut log, at * MS, xcp_packet(at as u32, 1000, 50));
            for _ in 0..3 {
                let ack = Packet { seq: at as u32, size: 400, kind: Kind::Ack, ..Packet::default() };
                arrive(&mut port, &mut log, at * MS, ack);
            }
        }
        let share = log.bytes[0] as f64 / (log.bytes[0] + log.bytes[1]) as f64;
        assert!((share - f64::from(weight) / 1e6).abs() < 1e-3, "weight {weight}: share {share}");
        assert!(log.dropped.iter().all(|&(is_xcp, reason)| is_xcp == (reason == Reason::XcpQueueFull)));
        assert!(
            log.dropped.iter().any(|&(is_xcp, _)| is_xcp) && log.dropped.iter().any(|&(is_xcp, _)| !is_xcp)
        );
    }
}

#[test]
fn a_class_alone_has_the_whole_link_and_owes_nothing_afterwards() {
    let (mut port, mut log) = (port(&config(500_000, None)), Log::default());
    // XCP alone for half a second, then both: from then on it is one packet each.
    for at in 0..1000 {
        arrive(&mut port, &mut log, at * MS, xcp_packet(at as u32, 1000, 50));
        if at >= 500 {
            arrive(&mut port, &mut log, at * MS, Packet { seq: at as u32, size: 1000, ..Packet::default() });
        }
    }
    let alone = log.order.iter().position(|&(_, is_xcp)| !is_xcp).expect("TCP had its turn");
    assert!((499..=502).contains(&alone), "{alone} packets of XCP went first");
    let xcp = log.order[alone..alone + 400].iter().filter(|&&(_, is_xcp)| is_xcp).count();
    assert_eq!(xcp, 200, "{:?}", &log.order[alone..alone + 20]);
    // Each class keeps its order.
    for class in [true, false] {
        let seqs = log.order.iter().filter(|&&(_, is_xcp)| is_xcp == class).map(|&(seq, _)| seq);
        assert!(seqs.is_sorted());
    }
}

/// NS2: XCP's law knows its class, and its part of the capacity.
#[test]
fn the_law_sees_its_class_and_its_part_of_the_capacity() {
    let (mut port, mut log) = (port(&config(250_000, None)), Log::default());
    for at in 0..10_000 {
        // XCP at 200 B/ms of its 250; datagrams overload the rest.
        if at % 5 == 0 {
            arrive(&mut port, &mut log, at * MS, xcp_packet(at as u32, 1000, 20));
        }
        arrive(
            &mut port,
            &mut log,
            at * MS,
            Packet { size: 1000, kind: Kind::Datagram, ..Packet::default() },
        );
    }
    let last = log.reports.last().expect("intervals passed");
    assert!(last.input.0.abs_diff(200_000) < 11_000, "{last:?}: 200 B/ms, give or take a packet");
    // An interval of 100 ms sees 19 to 21 packets.
    assert!((last.feedback - 20_000).abs() <= 4_400, "0.4 (250 - 200) B/ms, and no queue: {last:?}");
    assert_eq!(last.persistent_queue.0, 0);
}

#[test]
fn dynamic_weights_give_way_to_the_smaller_windows() {
    // XCP's windows are 50 packets; TCP's queue overflows all the time, so its windows are tiny.
    let (mut port, mut log) = (port(&config(500_000, Some(DYNAMIC))), Log::default());
    for at in 0..10_000 {
        arrive(&mut port, &mut log, at * MS, xcp_packet(at as u32, 1000, 50));
        arrive(&mut port, &mut log, at * MS, Packet { size: 1000, ..Packet::default() });
    }
    let last = log.samples.last().expect("samples");
    assert_eq!(last.weight, DYNAMIC.min);
    assert!(last.tcp_bytes > 17 * last.xcp_bytes, "{last:?}");
    // Nothing is lost and TCP sends little: its windows can be large, so XCP gets the link.
    let (mut port, mut log) = (self::port(&config(500_000, Some(DYNAMIC))), Log::default());
    for at in 0..10_000 {
        arrive(&mut port, &mut log, at * MS, xcp_packet(at as u32, 900, 50));
        if at % 100 == 0 {
            arrive(&mut port, &mut log, at * MS, Packet { size: 1000, ..Packet::default() });
        }
    }
    assert_eq!(log.samples.last().expect("samples").weight, DYNAMIC.max);
}

/// The weight after 10 s in which as many flows of XCP and of the rest always have something to send, `noise` beside.
fn followed(flows: [u32; 2], mut noise: impl FnMut(u32) -> Option<Packet>) -> f64 {
    let (mut port, mut log) = (port(&config(500_000, Some(FLOWS))), Log::default());
    for at in 0..10_000u32 {
        let time = u64::from(at) * MS;
        // In no order, or the queue's drops would be those of some flows.
        let turn = |flows: u32| (at.wrapping_mul(0x9e37_79b9) >> 16) % flows;
        if flows[0] > 0 {
            arrive(&mut port, &mut log, time, Packet { flow: turn(flows[0]), ..xcp_packet(at, 1000, 50) });
        }
        if flows[1] > 0 {
            let flow = 1000 + turn(flows[1]);
            arrive(&mut port, &mut log, time, Packet { flow, seq: at, size: 1000, ..Packet::default() });
        }
        if let Some(packet) = noise(at) {
            arrive(&mut port, &mut log, time, packet);
        }
    }
    f64::from(log.samples.last().expect("samples").weight.0) / 1e6
}

/// docs/design/protocols.md 13.5: a flow has as much in one class as in the other.
#[test]
fn weights_follow_the_numbers_of_flows_whatever_the_windows() {
    for (xcp, tcp) in [(1, 1), (3, 30), (20, 10), (30, 3)] {
        let (weight, part) = (followed([xcp, tcp], |_| None), f64::from(xcp) / f64::from(xcp + tcp));
        assert!((weight / part - 1.0).abs() < 0.05, "{xcp} and {tcp}: {weight}, not {part}");
    }
    assert_eq!(followed([0, 10], |_| None), 0.05);
    assert_eq!(followed([10, 0], |_| None), 0.95);
}

/// ACKs are no data, and packets that are each of another flow have no part in what the class carries.
#[test]
fn acks_and_forged_packets_are_no_flows() {
    let quiet = followed([10, 10], |_| None);
    let acks = |at| Some(Packet { flow: 2000 + at % 50, size: 60, kind: Kind::Ack, ..Packet::default() });
    let forged = |at| (at % 5 == 0).then(|| Packet { flow: 5000 + at, size: 1000, ..Packet::default() });
    let forged_xcp = |at| (at % 5 == 0).then(|| Packet { flow: 5000 + at, ..xcp_packet(at, 1000, 1) });
    for weight in [followed([10, 10], acks), followed([10, 10], forged), followed([10, 10], forged_xcp)] {
        assert!((weight - quiet).abs() < 0.03, "{weight}, not {quiet}");
    }
}

/// Ten flows of TCP that are limited elsewhere have a hundredth of the link, and keep it.
#[test]
fn a_class_that_is_limited_elsewhere_leaves_the_rest_to_xcp() {
    let limited =
        |at| (at % 100 == 0).then(|| Packet { flow: 1000 + at / 100 % 10, size: 1000, ..Packet::default() });
    assert_eq!(followed([2, 0], limited), 0.95);
    // Every sixth packet: it keeps a sixth and a quarter of that.
    let more =
        |at| (at % 6 == 0).then(|| Packet { flow: 1000 + at / 6 % 10, size: 1000, ..Packet::default() });
    let weight = followed([2, 0], more);
    assert!((weight - (1.0 - 1.25 / 6.0)).abs() < 0.01, "{weight}");
}

/// A class whose queue was long and is empty is an idle link to RED, though XCP keeps the link busy.
#[test]
fn red_forgets_a_long_queue_while_its_class_is_empty() {
    let dropped = |dynamic| {
        let mut config = config(500_000, Some(dynamic));
        let Discipline::XcpTcp(two) = &mut config.discipline else { unreachable!("two classes") };
        two.red.thresholds = red::Thresholds::Packets { min: 5, max: 10 };
        two.red.weight = Probability::from_f64(0.01).into();
        let (mut port, mut log) = (port(&config), Log::default());
        for at in 0..4_000 {
            arrive(&mut port, &mut log, at * MS, xcp_packet(at as u32, 1000, 50));
            // The queue is full for a second, then nothing comes for two, then a packet from time to time.
            let packets = if at < 1000 { 3 } else { u32::from(at > 3000 && at % 50 == 0) };
            for _ in 0..packets {
                arrive(
                    &mut port,
                    &mut log,
                    at * MS,
                    Packet { seq: at as u32, size: 1000, ..Packet::default() },
                );
            }
        }
        let late = log.order.iter().filter(|&&(seq, is_xcp)| !is_xcp && seq > 3000).count();
        19 - late
    };
    assert_eq!(dropped(FLOWS), 0);
    assert!(dropped(DYNAMIC) > 0, "RED drops what comes long after the queue");
}
