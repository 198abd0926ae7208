//! A closed loop: XCP senders, a router U, a cloud of one legacy link, a router K, their receivers; or
//! two such pairs of routers on both sides of the same link, which is all that they share (XI fig. 14).

use crate::world::{MS, at, config, link_config};
use congestlab_core::law::xcp;
use congestlab_core::law::xcp::{Echo, Link, Sender, SenderConfig};
use congestlab_core::law::xcp_i::{Extension, Period};
use congestlab_core::law::{Ack, LinkLaw as _, Send, SenderLaw as _, Steered as _};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, SECOND, Time};
use congestlab_net::estimator::{self, Method, direct, path_chirp};
use congestlab_net::packet::{Kind, Packet};
use congestlab_net::random::Stream;
use congestlab_net::xcp_i::{
    Address, Config, Edge, LinkView, Listener, NoEstimate, Oracle, OracleConfig, PortView, Prober, Role,
    State, VirtualQueue, Way,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

const SIZE: u64 = 1000;
/// Links: the cloud's own, then U's and K's port of each pair.
const CLOUD: usize = 0;

/// What a pair of edges owns: links, agents and addresses.
const fn upstream(pair: usize) -> usize {
    1 + 2 * pair
}

const fn downstream(pair: usize) -> usize {
    2 + 2 * pair
}

const fn address(node: usize) -> Address {
    Address(node as u32)
}

/// Between hosts: U's port, the cloud, K's port, and back.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Of the routers' ports, B/s.
    edges: u64,
    /// Of the cloud, B/s.
    cloud: u64,
    /// One way over each of the three links.
    hop: u64,
    /// One way back at once.
    back: u64,
}

impl Path {
    fn rtt(&self) -> u64 {
        3 * self.hop + self.back
    }
}

/// 30 Mbit/s between routers of 80, 100 ms: a BDP of 375 packets.
const PATH: Path = Path { edges: 10_000_000, cloud: 3_750_000, hop: 10 * MS, back: 70 * MS };

/// When how many bytes had arrived at the link of the cloud.
type Log = Rc<RefCell<Vec<(Time, u64)>>>;

#[derive(Debug)]
struct Seen(Log, u64);

impl LinkView for Seen {
    fn read(&mut self, since: Time, now: Time, mut each: impl FnMut(Rate, Bytes)) {
        let log = self.0.borrow();
        let by = |t| match log.partition_point(|&(at, _)| at <= t) {
            0 => 0,
            n => log[n - 1].1,
        };
        each(Rate(self.1), Bytes(by(now) - by(since)));
    }
}

struct Hop {
    rate: u64,
    law: Option<Link>,
    queue: VecDeque<(Packet, Address)>,
    is_busy: bool,
    longest: usize,
    sent: u64,
}

impl Hop {
    fn backlog(&self) -> Bytes {
        Bytes(self.queue.iter().map(|(packet, _)| u64::from(packet.size)).sum())
    }
}

struct Host {
    sender: Sender,
    echo: Echo,
    flight: u64,
    srtt: u64,
    delivered: u64,
}

enum Event {
    Arrives(usize, Packet, Address),
    Served(usize),
    Received(Packet),
    Acked { flow: usize, sent_at: u64, feedback: i32 },
    Start(usize),
    Control(Packet, Address),
}

pub(crate) struct Loop {
    path: Path,
    now: Time,
    hops: Vec<Hop>,
    hosts: Vec<Host>,
    /// Upstream and downstream edge of each pair.
    edges: Vec<Edge<Seen>>,
    log: Log,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    sender: SenderConfig,
    is_interoperable: bool,
}

impl Loop {
    fn new(edge: Config, starts: &[u64]) -> Self {
        Self::with(PATH, edge, None, starts)
    }

    /// With an estimator that probes in the place of the oracle.
    fn with(path: Path, edge: Config, probes: Option<estimator::Config>, starts: &[u64]) -> Self {
        Self::pairs(path, edge, probes, starts, 1)
    }

    /// Flows belong to the pairs of edges in turn.
    fn pairs(
        path: Path,
        edge: Config,
        probes: Option<estimator::Config>,
        starts: &[u64],
        pairs: usize,
    ) -> Self {
        let log = Log::default();
        let mut edges = Vec::new();
        for pair in 0..pairs {
            let (u, k) = (address(upstream(pair)), address(downstream(pair)));
            let mut upstream = Edge::new(edge.clone(), u, Role::Router, Stream::named(u.0.into(), "nonces"));
            let mut downstream =
                Edge::new(edge.clone(), k, Role::Router, Stream::named(k.0.into(), "nonces"));
            match probes {
                None => {
                    let view = Seen(log.clone(), path.cloud);
                    let oracle = Oracle::new(OracleConfig::default(), view, Stream::named(1, "e"));
                    upstream.answer(k.into(), Prober::Oracle(oracle));
                }
                Some(config) => {
                    let (prober, listener) = (
                        estimator::Prober::new(config, Stream::named(1, "probes")),
                        estimator::Listener::new(config, Rate(path.edges)),
                    );
                    upstream.answer(k.into(), Prober::Probes(Box::new(prober)));
                    downstream.listen(u.into(), Listener::Probes(Box::new(listener)));
                }
            }
            edges.extend([upstream, downstream]);
        }
        let hop = |rate, is_xcp: bool| {
            let config = congestlab_core::law::xcp::LinkConfig { capacity: Rate(rate), ..link_config() };
            let law = is_xcp.then(|| Link::new(config, Duration(31 * MS), Duration(7 * MS)));
            Hop { rate, law, queue: VecDeque::new(), is_busy: false, longest: 0, sent: 0 }
        };
        let host = || Host {
            sender: Sender::new(Bytes(SIZE), Bytes(SIZE)),
            echo: Echo::default(),
            flight: 0,
            srtt: 0,
            delivered: 0,
        };
        let mut this = Self {
            path,
            now: Time(0),
            hops: (0..=2 * pairs)
                .map(|link| if link == CLOUD { hop(path.cloud, false) } else { hop(path.edges, true) })
                .collect(),
            hosts: starts.iter().map(|_| host()).collect(),
            edges,
            log,
            events: BTreeMap::new(),
            count: 0,
            is_interoperable: true,
            sender: SenderConfig { desired_rate: Rate(125_000_000), ..SenderConfig::DEFAULT },
        };
        for (flow, &start) in starts.iter().enumerate() {
            this.schedule(Time(start), Event::Start(flow));
        }
        this
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn run(&mut self, end: Time) {
        loop {
            let event = self.events.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let edges = self.edges.iter().map(Edge::next_deadline).min().unwrap();
            let laws = self.hops.iter().flat_map(|hop| &hop.law).map(Link::next_deadline).min().unwrap();
            let next = event.min(edges).min(laws);
            if next > end {
                break;
            }
            self.now = next;
            if event == next {
                let (_, event) = self.events.pop_first().unwrap();
                self.handle(event);
            } else {
                for hop in &mut self.hops {
                    let backlog = hop.backlog();
                    if let Some(law) = &mut hop.law {
                        law.on_deadline(next, backlog);
                    }
                }
                self.edges.iter_mut().for_each(|edge| edge.handle_deadline(next));
            }
            self.transmit();
        }
        self.now = end;
    }

    /// What the edges have to send: downstream through U's port and the cloud, upstream as ACKs go.
    fn transmit(&mut self) {
        for node in 1..=self.edges.len() {
            while let Some((packet, to)) = self.edges[node - 1].poll_transmit() {
                if node % 2 == 1 {
                    self.arrive(node, packet, to.address);
                } else {
                    self.schedule(Time(self.now.0 + 2 * self.path.hop), Event::Control(packet, to.address));
                }
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Start(flow) => self.send(flow),
            Event::Arrives(hop, packet, to) => self.arrive(hop, packet, to),
            Event::Received(packet) => {
                let flow = packet.flow as usize;
                let host = &mut self.hosts[flow];
                host.delivered += SIZE;
                host.echo.on_data(&packet.header::<xcp::Header>().unwrap_or_default());
                let acked = Event::Acked { flow, sent_at: packet.stamp_ns, feedback: host.echo.on_ack() };
                self.schedule(Time(self.now.0 + self.path.back), acked);
            }
            Event::Served(hop) => {
                self.hops[hop].is_busy = false;
                self.serve(hop);
            }
            Event::Control(packet, to) => {
                self.edges[to.0 as usize - 1].handle_control(self.now, &packet, Way::default());
            }
            Event::Acked { flow, sent_at, feedback } => {
                let host = &mut self.hosts[flow];
                host.flight -= SIZE;
                let rtt = self.now.0 - sent_at;
                host.srtt = if host.srtt == 0 { rtt } else { (7 * host.srtt + rtt) / 8 };
                host.sender.on_ack(
                    &self.sender,
                    self.now,
                    &Ack {
                        acked: Bytes(SIZE),
                        flight: Bytes(host.flight),
                        awnd: Bytes(u64::MAX),
                        rtt: Duration(rtt),
                        srtt: Duration(host.srtt),
                        reply: xcp::reply(feedback),
                        ..Ack::default()
                    },
                );
                self.send(flow);
            }
        }
    }

    fn send(&mut self, flow: usize) {
        let host = &mut self.hosts[flow];
        let mut packets = Vec::new();
        while host.flight + SIZE <= host.sender.window().0 {
            host.flight += SIZE;
            let send = Send {
                size: Bytes(SIZE),
                srtt: Duration(host.srtt),
                awnd: Bytes(u64::MAX),
                backlog: Bytes(u64::MAX),
                inflation: Bytes(0),
                is_window_limited: false,
            };
            let header = host.sender.header(&self.sender, self.now, &send);
            let mut packet = Packet {
                size: SIZE as u16,
                kind: Kind::Data,
                flow: flow as u32,
                stamp_ns: self.now.0,
                ..Packet::default()
            };
            packet.set_header(header);
            if self.is_interoperable {
                packet.set_header(Extension::new(Address(100 + flow as u32)));
            }
            packets.push(packet);
        }
        let pair = flow % (self.edges.len() / 2);
        for mut packet in packets {
            let edge = &mut self.edges[upstream(pair) - 1];
            edge.on_data(self.now, &mut packet, Way::default(), &PortView::default());
            edge.on_sent(address(downstream(pair)), Bytes(SIZE));
            self.arrive(upstream(pair), packet, address(downstream(pair)));
        }
    }

    /// At a link on the way to K, whose port is the last.
    fn arrive(&mut self, hop: usize, mut packet: Packet, to: Address) {
        if hop == to.0 as usize {
            let edge = &mut self.edges[hop - 1];
            match packet.kind {
                Kind::Control => return edge.handle_control(self.now, &packet, Way::default()),
                Kind::Probe => return edge.handle_probe(self.now, &packet),
                _ => {}
            }
            let law = self.hops[hop].law.as_ref().unwrap();
            let port = PortView { port: 0, mean_rtt: law.mean_rtt(), queue: law.report().persistent_queue };
            edge.on_data(self.now, &mut packet, Way::default(), &port);
        }
        if hop == CLOUD {
            let mut log = self.log.borrow_mut();
            let total = log.last().map_or(0, |&(_, total)| total) + u64::from(packet.size);
            log.push((self.now, total));
        }
        packet.decrement_ttl();
        let place = &mut self.hops[hop];
        if let Some(law) = &mut place.law {
            let header = if packet.header::<xcp::Header>().is_some() {
                packet.header::<xcp::Header>().unwrap_or_default()
            } else {
                Default::default()
            };
            law.on_arrival(self.now, &header, Bytes(u64::from(packet.size)));
        }
        place.queue.push_back((packet, to));
        self.serve(hop);
        self.hops[hop].longest = self.hops[hop].longest.max(self.hops[hop].queue.len());
    }

    fn serve(&mut self, hop: usize) {
        let place = &mut self.hops[hop];
        if place.is_busy {
            return;
        }
        let Some((mut packet, to)) = place.queue.pop_front() else { return };
        place.is_busy = true;
        place.sent += u64::from(packet.size);
        let backlog = place.backlog();
        if let Some(law) = &mut place.law
            && packet.header::<xcp::Header>().is_some()
        {
            let mut header = packet.header::<xcp::Header>().unwrap_or_default();
            law.on_departure(self.now, &mut header, Bytes(SIZE), backlog);
            packet.set_header(header);
        }
        let end = Time(self.now.0 + u64::from(packet.size) * SECOND / place.rate);
        self.schedule(end, Event::Served(hop));
        let there = Time(end.0 + self.path.hop);
        let event = match hop {
            CLOUD => Event::Arrives(to.0 as usize, packet, to),
            _ if hop == to.0 as usize => Event::Received(packet),
            _ => Event::Arrives(CLOUD, packet, to),
        };
        self.schedule(there, event);
    }

    fn delivered(&self) -> Vec<u64> {
        self.hosts.iter().map(|host| host.delivered).collect()
    }
}

/// Mbit/s of each flow over `span` from `from` on, and the queue of the cloud then: most, and at the
/// end, packets.
fn measure(run: &mut Loop, from: u64, span: u64) -> (Vec<f64>, usize, usize) {
    run.run(at(from));
    let before = run.delivered();
    run.hops[CLOUD].longest = 0;
    run.run(at(from + span));
    let mbits = |bytes: u64| bytes as f64 * 8.0 / span as f64 / 1e3;
    let rates = run.delivered().into_iter().zip(before).map(|(after, before)| mbits(after - before));
    (rates.collect(), run.hops[CLOUD].longest, run.hops[CLOUD].queue.len())
}

/// The same path with XCP in the place of the cloud.
fn all_xcp(path: Path, starts: &[u64]) -> Loop {
    let mut run = Loop::with(path, config(), None, starts);
    run.is_interoperable = false;
    let law = congestlab_core::law::xcp::LinkConfig { capacity: Rate(path.cloud), ..link_config() };
    run.hops[CLOUD].law = Some(Link::new(law, Duration(31 * MS), Duration(7 * MS)));
    run
}

/// XI IV-A: as if the cloud spoke XCP. Its queue has no limit here; XI's buffers are one BDP, 375
/// packets, which the start does not reach.
#[test]
fn the_cloud_is_as_full_as_with_xcp_and_overflows_no_buffer() {
    let (xcp, ..) = measure(&mut all_xcp(PATH, &[0]), 0, 10_000);
    let mut run = Loop::new(config(), &[0]);
    let (rate, longest, _) = measure(&mut run, 0, 10_000);
    assert!((rate[0] - xcp[0]).abs() < 0.02 * xcp[0], "{rate:?} {xcp:?}");
    assert!(longest < 200, "{longest}");
    assert_eq!(run.edges[1].clouds().next().unwrap().1.state(run.now), State::Valid);
    let (rate, _, end) = measure(&mut run, 10_000, 10_000);
    assert!((29.8..=30.0).contains(&rate[0]), "{rate:?}");
    // The queue of the start stays: XI's Q is that of router k, which has none.
    assert!((100..130).contains(&end), "{end}");
}

#[test]
fn the_queue_of_the_cloud_is_drained_if_it_is_looked_at() {
    let looking = Config { virtual_queue: VirtualQueue::Cloud, ..config() };
    let mut run = Loop::new(looking, &[0]);
    let (rate, most, _) = measure(&mut run, 5_000, 10_000);
    assert!((29.8..=30.0).contains(&rate[0]), "{rate:?}");
    assert!(most <= 5, "{most}");
}

#[test]
fn two_flows_share_the_cloud() {
    let mut run = Loop::new(config(), &[0, 5 * SECOND]);
    let (rates, most, _) = measure(&mut run, 30_000, 10_000);
    let sum: f64 = rates.iter().sum();
    assert!((29.8..=30.0).contains(&sum), "{rates:?}");
    assert!(rates.iter().all(|rate| (rate - 15.0).abs() < 0.75), "{rates:?}");
    assert!(most < 375, "{most}");
}

/// From 10 to 600 ms, 1 to 200 Mbit/s, clouds near the sender and near the receiver.
#[test]
fn other_paths_are_as_full_and_no_buffer_of_one_bdp_overflows() {
    let path = |edges, cloud, hop, back| Path { edges, cloud, hop: hop * MS, back: back * MS };
    for (path, flows) in [
        (path(10_000_000, 3_750_000, 1, 7), 5),
        (path(10_000_000, 3_750_000, 60, 420), 1),
        (path(1_000_000, 125_000, 10, 70), 1),
        (path(50_000_000, 25_000_000, 10, 70), 3),
        (path(10_000_000, 3_750_000, 40, 10), 2),
        (path(10_000_000, 3_750_000, 2, 94), 2),
    ] {
        let round = path.rtt() / MS;
        let starts: Vec<u64> = (0..flows).map(|flow| flow * 37 * MS).collect();
        let mut run = Loop::with(path, config(), None, &starts);
        let (_, peak, _) = measure(&mut run, 0, 50 * round);
        assert!(peak as u64 * SIZE < path.cloud * path.rtt() / SECOND, "{path:?}: {peak}");
        let (rates, ..) = measure(&mut run, 50 * round, 50 * round);
        let (xcp, ..) = measure(&mut all_xcp(path, &starts), 50 * round, 50 * round);
        let (sum, all): (f64, f64) = (rates.iter().sum(), xcp.iter().sum());
        assert!(sum > 0.99 * all, "{path:?}: {rates:?} {xcp:?}");
        let share = sum / flows as f64;
        assert!(rates.iter().all(|rate| (rate / share - 1.0).abs() < 0.05), "{path:?}: {rates:?}");
    }
}

/// An estimate each second, over ten control intervals: what own traffic took meanwhile is known.
#[test]
fn a_rare_estimate_overflows_no_buffer_either() {
    let exchange =
        congestlab_core::law::xcp_i::Config { period: Period::Every(Duration(SECOND)), ..config().exchange };
    let mut run = Loop::new(Config { exchange, ..config() }, &[0]);
    let (_, longest, _) = measure(&mut run, 0, 10_000);
    assert!(longest < 200, "{longest}");
    let (rate, ..) = measure(&mut run, 10_000, 10_000);
    assert!((29.5..=30.0).contains(&rate[0]), "{rate:?}");
}

/// The estimators of packets and clocks are means of rounds that take a second each; what they know of
/// own traffic is deducted accordingly. Probes are 0.3 to 0.8 Mbit/s of the 30.
#[test]
fn estimates_from_probes_close_the_loop_too() {
    for (method, queue, longest) in [
        (Method::Direct(direct::Config::new(Rate(PATH.cloud))), VirtualQueue::Host, 250),
        (Method::PathChirp(path_chirp::Config::default()), VirtualQueue::Cloud, 375),
    ] {
        let probes = estimator::Config { method, passive: None };
        let config = Config { virtual_queue: queue, no_estimate: NoEstimate::Hold, ..config() };
        let mut run = Loop::with(PATH, config, Some(probes), &[0]);
        let (_, most, _) = measure(&mut run, 0, 10_000);
        assert!(most < longest, "{method:?}: {most}");
        let (rate, most, _) = measure(&mut run, 10_000, 20_000);
        assert!((28.8..=29.9).contains(&rate[0]), "{method:?}: {rate:?}");
        assert!(most < 150, "{method:?}: {most}");
    }
}

/// The largest load of the shared link in any 100 ms of a minute, over its capacity, and the second
/// pair's part of what passes 10 and 20 s after it begins.
fn shared(edge: Config, second: u64) -> (f64, [f64; 2]) {
    let mut run = Loop::pairs(PATH, edge, None, &[0, second], 2);
    let (mut peak, mut arrived, mut parts) = (0f64, 0, [0.0; 2]);
    for bin in 0..600 {
        let (rates, ..) = measure(&mut run, bin * 100, 100);
        let total = run.log.borrow().last().map_or(0, |&(_, total)| total);
        peak = peak.max((total - arrived) as f64 / (PATH.cloud / 10) as f64);
        arrived = total;
        for (part, after) in parts.iter_mut().zip([10, 20]) {
            // The mean of the second before.
            let second = second / SECOND + after;
            if (10 * (second - 1)..10 * second).contains(&bin) {
                *part += 0.1 * rates[1] / rates.iter().sum::<f64>();
            }
        }
    }
    (peak, parts)
}

/// XI V-A. Both edges are told the same bandwidth, and both give it away; and who comes late gets only
/// what the shuffle moves between flows of one edge. Less haste, and a little that everybody leaves
/// for all, cure both.
#[test]
fn ex3_10_and_ex3_11_edges_that_share_a_link() {
    let (peak, _) = shared(config(), 0);
    assert!(peak >= 1.8, "{peak}");
    let (_, [part, _]) = shared(config(), 20 * SECOND);
    assert!(part < 0.2, "{part}");
    let cured =
        Config { release: Some(Ratio::ppm(250_000)), give_back: Some(Ratio::ppm(30_000)), ..config() };
    let (peak, _) = shared(cured.clone(), 0);
    assert!(peak <= 1.1, "{peak}");
    let (_, [_, part]) = shared(cured, 20 * SECOND);
    assert!(part >= 0.4, "{part}");
}
