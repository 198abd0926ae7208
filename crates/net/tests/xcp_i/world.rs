//! Edges, and between them wires that lose, delay and repeat what they carry.

use congestlab_core::law::xcp_i::Extension;
use congestlab_core::law::{LinkConfig, xcp};
use congestlab_core::units::{Bytes, Duration, Rate, SECOND, Time};
use congestlab_net::packet::{Kind, Packet};
use congestlab_net::random::Stream;
use congestlab_net::xcp_i::{
    Address, Cloud, Config, Edge, LinkView, Message, Neighbour, Oracle, OracleConfig, PortView, Prober, Verb,
    Way,
};
use std::collections::BTreeMap;

pub(crate) const MS: u64 = SECOND / 1000;
/// More than any link grants.
pub(crate) const ALL: i32 = i32::MAX;
/// One way between two edges.
pub(crate) const CLOUD_DELAY: u64 = 20 * MS;

/// An instant in ms.
pub(crate) fn at(ms: u64) -> Time {
    Time(ms * MS)
}

/// XCP with K02's constants.
pub(crate) fn config() -> Config {
    Config::new(LinkConfig::Xcp(link_config()))
}

/// K02's constants, and headers as they come.
pub(crate) fn link_config() -> xcp::LinkConfig {
    xcp::LinkConfig { bound_headers: false, ..xcp::LinkConfig::DEFAULT }
}

/// A packet of a flow with one packet each 10 ms and a round trip time of 100 ms, that left `upstream`
/// and crossed `hops` legacy routers.
pub(crate) fn data(upstream: Address, hops: u8) -> Packet {
    let mut packet = Packet { size: 1000, kind: Kind::Data, ..Packet::default() };
    let span = |ns| Duration(ns).to_header();
    packet.set_header(xcp::Header { x: span(10 * MS), rtt: span(100 * MS), delta: ALL, reverse: 0 });
    packet.set_header(Extension { ttl: 63 - hops, xcp_ttl: 63, last: upstream });
    packet
}

/// What a control packet says.
pub(crate) fn verb(packet: &Packet) -> Option<Verb> {
    Message::from_packet(packet).map(|message| message.verb)
}

/// One link with a constant load, B/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) capacity: u64,
    pub(crate) load: u64,
}

impl LinkView for View {
    fn read(&mut self, since: Time, now: Time, mut each: impl FnMut(Rate, Bytes)) {
        each(Rate(self.capacity), Rate(self.load).over(now - since));
    }
}

/// What becomes of a packet between two edges.
pub(crate) enum Fate {
    Arrives,
    Lost,
    /// So much behind its time.
    Late(u64),
    /// At its time, and again so much later.
    Twice(u64),
}

type Fates = Box<dyn FnMut(&Packet, Neighbour, Time) -> Fate>;

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) edges: BTreeMap<Address, Edge<View>>,
    /// Everything that an edge sent, when it did.
    pub(crate) log: Vec<(Time, Packet)>,
    /// What the port behind a router is like.
    pub(crate) port: PortView,
    /// By which way data comes.
    pub(crate) way: Way,
    /// What the clocks of upstream edges are ahead.
    pub(crate) skew: u64,
    wire: BTreeMap<(Time, u64), (Packet, Neighbour)>,
    sent: u64,
    fates: Fates,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            now: Time(0),
            edges: BTreeMap::new(),
            log: Vec::new(),
            port: PortView::default(),
            way: Way::default(),
            skew: 0,
            wire: BTreeMap::new(),
            sent: 0,
            fates: Box::new(|_, _, _| Fate::Arrives),
        }
    }

    pub(crate) fn add(&mut self, edge: Edge<View>) {
        self.edges.insert(edge.address(), edge);
    }

    /// An oracle at `u` for `k`.
    pub(crate) fn cloud(&mut self, u: Address, k: Address, view: View) {
        self.cloud_by(Way::default(), u, k, view);
    }

    /// The same for one way between the two.
    pub(crate) fn cloud_by(&mut self, way: Way, u: Address, k: Address, view: View) {
        let oracle = Oracle::new(OracleConfig::default(), view, Stream::named(1, "error"));
        self.edges.get_mut(&u).unwrap().answer(Neighbour { address: k, way }, Prober::Oracle(oracle));
    }

    pub(crate) fn fate(&mut self, fates: impl FnMut(&Packet, Neighbour, Time) -> Fate + 'static) {
        self.fates = Box::new(fates);
    }

    pub(crate) fn only_cloud(&self, k: Address) -> &Cloud {
        let mut clouds = self.edges[&k].clouds();
        let (_, cloud) = clouds.next().expect("no cloud");
        assert!(clouds.next().is_none(), "more than one cloud");
        cloud
    }

    /// When packets of this kind were sent.
    pub(crate) fn sent_at(&self, kind: Kind) -> Vec<Time> {
        self.log.iter().filter(|(_, packet)| packet.kind == kind).map(|&(at, _)| at).collect()
    }

    /// A data packet reaches `k` now.
    pub(crate) fn data(&mut self, k: Address, packet: &mut Packet) {
        self.edges.get_mut(&k).unwrap().on_data(self.now, packet, self.way, &self.port);
        self.send(k);
    }

    /// A control packet reaches a node now, wherever it comes from.
    pub(crate) fn control(&mut self, to: Address, packet: &Packet) {
        self.edges.get_mut(&to).unwrap().handle_control(self.now, packet, self.way);
        self.send(to);
    }

    /// A packet each 10 ms from `u` to `k`, until `end`.
    pub(crate) fn stream_of_data(&mut self, u: Address, k: Address, end: Time) {
        self.grants(u, k, Time::NEVER, end);
    }

    /// The same; what is granted from `from` on, in all.
    pub(crate) fn grants(&mut self, u: Address, k: Address, from: Time, end: Time) -> i64 {
        let mut granted = 0;
        while self.now.0 + 10 * MS <= end.0 {
            self.run(Time(self.now.0 + 10 * MS));
            let mut packet = data(u, 1);
            self.data(k, &mut packet);
            if from <= self.now {
                granted += i64::from(packet.header::<xcp::Header>().unwrap_or_default().delta);
            }
        }
        self.run(end);
        granted
    }

    /// Lets everything happen until `end`, inclusive.
    pub(crate) fn run(&mut self, end: Time) {
        loop {
            let arrival = self.wire.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let deadlines = self.edges.iter().map(|(&address, edge)| (edge.next_deadline(), address));
            let (deadline, address) = deadlines.min().unwrap_or((Time::NEVER, Address(0)));
            if arrival.min(deadline) > end {
                break;
            }
            self.now = self.now.max(arrival.min(deadline));
            let address = if arrival <= deadline {
                let (_, (packet, to)) = self.wire.pop_first().unwrap();
                let Some(edge) = self.edges.get_mut(&to.address) else { continue };
                match packet.kind {
                    Kind::Probe => edge.handle_probe(self.now, &packet),
                    _ => edge.handle_control(self.now, &packet, to.way),
                }
                to.address
            } else {
                self.edges.get_mut(&address).unwrap().handle_deadline(self.now);
                address
            };
            self.send(address);
        }
        self.now = end;
    }

    fn send(&mut self, from: Address) {
        while let Some((mut packet, to)) = self.edges.get_mut(&from).unwrap().poll_transmit() {
            self.log.push((self.now, packet));
            if self.skew > 0 && !matches!(verb(&packet), Some(Verb::Request { .. })) {
                packet.stamp_ns += self.skew;
            }
            let due = Time(self.now.0 + CLOUD_DELAY);
            let delays = match (self.fates)(&packet, to, self.now) {
                Fate::Arrives => vec![0],
                Fate::Lost => vec![],
                Fate::Late(delay) => vec![delay],
                Fate::Twice(delay) => vec![0, delay],
            };
            for delay in delays {
                self.sent += 1;
                self.wire.insert((Time(due.0 + delay), self.sent), (packet, to));
            }
        }
    }
}
