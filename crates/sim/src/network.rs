//! The model compiled for an engine: routes, classes of hosts, and who can follow whom how soon.

use std::collections::BTreeMap;

use congestlab_core::law::xcp_i::Address;
use congestlab_core::units::Time;
use congestlab_net::packet::{Kind, PS_PER_NS, Packet, Picos};
use congestlab_net::random::{Name, Stream};
use congestlab_net::tcp;
use congestlab_net::xcp_i::{CONTROL_SIZE, Neighbour, Way};

use crate::cloud::{self, Cloud};
use crate::model::{Estimator, Group, GroupKind, Model, Pipe, Start};
use crate::station::mix;

/// Bytes of the smallest packet that a group sends: an ACK, or the last segment of a transfer or burst.
fn smallest_packet(group: &Group) -> u16 {
    match &group.kind {
        GroupKind::Source(source) => source.segment,
        GroupKind::Tcp(config) => {
            let segment = u64::from(config.segment);
            // The last segment of `size` bytes.
            let last = |size: u64| match size % segment {
                0 => segment,
                rest => rest,
            };
            let rest = match config.app {
                tcp::App::Endless | tcp::App::Own => segment,
                tcp::App::Transfer(size) => last(size.0),
                tcp::App::Bursts { size, total, .. } => {
                    last(size.0).min(total.map_or(segment, |total| last(total.0 % size.0.max(1))))
                }
            };
            config.ack.min(rest as u16)
        }
    }
}

/// The next element on a packet's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// A link, by index.
    Link(u32),
    /// The host of the packet's flow, by class.
    Host(u32),
    /// A device itself: the agent of a router.
    Device(u32),
}

/// How control packets and probes of XCP-i get from one edge of a cloud to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    /// The cloud.
    way: Way,
    /// The nodes that it leads to: addresses from this one on.
    first: Address,
    count: u32,
    /// [`Packet::flow`] of packets to the first: a host's own, a router's by [`cloud::router_flow`].
    flow: u32,
    /// Where the route begins in [`Network::routes`].
    pub(crate) route: u32,
}

/// Where no cloud ends.
const NO_WAY: Way = Way(u32::MAX);

/// The next XCP-i node on a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nobody,
    Router(Address),
    Receiver,
}

/// The hosts at one end of a group of flows: equal configuration, equal neighbours.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// Index over the whole run of the group's first flow.
    pub(crate) first_flow: u32,
    pub(crate) count: u32,
    /// The hop of the host's own, in both directions; `None`: it sits at the router.
    pub(crate) pipe: Option<Wire>,
    /// Where its packets' routes begin in [`Network::routes`].
    pub(crate) route: u32,
    /// Other routes, from later times on.
    pub(crate) switches: Vec<(Picos, u32)>,
    /// Packets per second that its hosts send whatever becomes of them.
    pub(crate) offered: u64,
}

impl Class {
    /// The route of what is sent at `now`.
    #[inline]
    pub(crate) fn route_at(&self, now: Picos) -> u32 {
        if self.switches.is_empty() { self.route } else { self.switched(now) }
    }

    #[inline(never)]
    fn switched(&self, now: Picos) -> u32 {
        match self.switches.partition_point(|&(at, _)| at <= now) {
            0 => self.route,
            passed => self.switches[passed - 1].1,
        }
    }

    /// All routes.
    fn routes(&self) -> impl Iterator<Item = u32> {
        core::iter::once(self.route).chain(self.switches.iter().map(|&(_, route)| route))
    }
}

/// A pipe with its arithmetic prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    rate: u64,
    delay: Picos,
    /// The sizes of most packets, and how long they take to enter.
    usual: [(u16, Picos); 2],
}

impl Wire {
    fn new(pipe: &Pipe, usual: [u16; 2]) -> Self {
        let mut wire = Self { rate: pipe.rate.0, delay: pipe.delay, usual: [(0, 0); 2] };
        wire.usual = usual.map(|size| (size, wire.divided(size)));
        wire
    }

    /// Passes a packet that enters at `now`; `busy` is when the packet before it had left.
    /// Returns when its last bit arrives. Serialisation rounds up to the picosecond.
    #[inline]
    pub(crate) fn pass(&self, now: Picos, size: u16, busy: &mut Picos) -> Picos {
        // Saturating: at a few bit/s a queue without limit reaches beyond the end of time.
        *busy = now.max(*busy).saturating_add(self.serialisation(size));
        busy.saturating_add(self.delay)
    }

    #[inline]
    fn serialisation(&self, size: u16) -> Picos {
        let [(first, time_of_first), (second, time_of_second)] = self.usual;
        if size == first {
            time_of_first
        } else if size == second {
            time_of_second
        } else {
            self.divided(size)
        }
    }

    #[cold]
    fn divided(&self, size: u16) -> Picos {
        (u64::from(size) * 8 * 1_000_000_000_000).div_ceil(self.rate)
    }

    /// No packet of at least `size` bytes passes faster.
    fn latency(&self, size: u16) -> Picos {
        self.delay.saturating_add(self.serialisation(size))
    }
}

/// A party that acts at times of its own: a link, the hosts of a class, a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Link(u32),
    Class(u32),
    /// An element that owns the ports of several links.
    Device(u32),
}

/// From `from` to `to` nothing takes less than `latency`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) latency: Picos,
}

/// A network on its way into parts.
struct Split<'a> {
    whole: &'a Network,
    parts: Vec<Network>,
    /// By node: its part.
    of: Vec<usize>,
    /// By node: its index there, among the links, the classes or the devices.
    index: Vec<u32>,
}

impl<'a> Split<'a> {
    /// Gives each part its nodes; nothing leads from one to another yet.
    fn of(whole: &'a Network) -> Self {
        let mut sets = whole.joined();
        let (of, index) = (vec![0; whole.nodes()], vec![0; whole.nodes()]);
        let mut split = Self { whole, parts: Vec::new(), of, index };
        let mut part_of_leader = vec![usize::MAX; whole.nodes()];
        for node in 0..whole.nodes() {
            let leader = sets.find(node);
            if part_of_leader[leader] == usize::MAX {
                part_of_leader[leader] = split.parts.len();
                split.parts.push(Network::default());
            }
            split.of[node] = part_of_leader[leader];
            split.index[node] = split.take(node);
        }
        for part in &mut split.parts {
            part.port = vec![0; part.links];
            part.elect();
            part.courses = vec![Vec::new(); part.nodes()];
        }
        split
    }

    /// Gives a node to its part; returns its index there.
    fn take(&mut self, node: usize) -> u32 {
        let (whole, part) = (self.whole, &mut self.parts[self.of[node]]);
        match whole.node(node) {
            Node::Link(link) => {
                part.links += 1;
                part.link_ids.push(whole.link_ids[link as usize]);
                part.packet_rate.push(whole.packet_rate[link as usize]);
                part.reorders.push(whole.reorders[link as usize]);
                part.links as u32 - 1
            }
            Node::Class(class) => {
                part.classes.push(whole.classes[class as usize].clone());
                part.class_ids.push(whole.class_ids[class as usize]);
                part.flows += whole.classes[class as usize].count;
                part.classes.len() as u32 - 1
            }
            Node::Device(device) => {
                let links = whole.devices[device as usize].iter();
                part.devices.push(links.map(|&link| self.index[link as usize]).collect());
                part.device_ids.push(whole.device_ids[device as usize]);
                part.devices.len() as u32 - 1
            }
        }
    }

    /// The same element, by the names of its part.
    fn local(&self, hop: Hop) -> Hop {
        match hop {
            Hop::Link(link) => Hop::Link(self.index[link as usize]),
            Hop::Host(_) => Hop::Host(self.index[self.whole.node_of(hop)]),
            Hop::Device(_) => Hop::Device(self.index[self.whole.node_of(hop)]),
        }
    }

    /// Copies the route that begins at `start` into a part; returns where it begins there.
    fn copy_route(&mut self, part: usize, start: u32) -> u32 {
        let (whole, start) = (self.whole, start as usize);
        let links = whole.routes[start..].iter().take_while(|hop| matches!(hop, Hop::Link(_)));
        let range = start..start + links.count() + 1;
        let route: Vec<Hop> = whole.routes[range.clone()].iter().map(|&hop| self.local(hop)).collect();
        let part = &mut self.parts[part];
        let begin = part.routes.len() as u32;
        part.routes.extend(route);
        part.next.extend_from_slice(&whole.next[range.clone()]);
        part.came.extend_from_slice(&whole.came[range]);
        begin
    }

    fn copy_classes(&mut self) {
        let whole = self.whole;
        for (node, old) in (whole.links..).zip(&whole.classes) {
            let part = self.of[node];
            let route = self.copy_route(part, old.route);
            let switches = old.switches.iter();
            let switches = switches.map(|&(at, route)| (at, self.copy_route(part, route))).collect();
            let class = &mut self.parts[part].classes[self.index[node] as usize];
            (class.route, class.switches) = (route, switches);
        }
    }

    fn copy_courses(&mut self) {
        let whole = self.whole;
        for (node, courses) in whole.courses.iter().enumerate() {
            let part = self.of[node];
            for course in courses {
                let route = self.copy_route(part, course.route);
                let node = self.parts[part].node_of(self.local(whole.hop(node)));
                self.parts[part].courses[node].push(Course { route, ..*course });
            }
        }
    }

    fn copy_edges(&mut self) {
        let whole = self.whole;
        for edge in &whole.edges {
            let part = self.of[edge.from];
            let local = |node| self.parts[part].node_of(self.local(whole.hop(node)));
            let [from, to] = [edge.from, edge.to].map(local);
            self.parts[part].edges.push(Edge { from, to, latency: edge.latency });
        }
    }
}

/// Sets that are joined two by two.
pub(crate) struct DisjointSets(Vec<usize>);

impl DisjointSets {
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The smallest member of the set that `n` is in.
    pub(crate) fn find(&mut self, mut n: usize) -> usize {
        while self.0[n] != n {
            self.0[n] = self.0[self.0[n]];
            n = self.0[n];
        }
        n
    }

    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// The model, compiled, or a part of it.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// Routes one after another: links, then the host.
    pub(crate) routes: Vec<Hop>,
    /// Two for each group: senders, then receivers.
    pub(crate) classes: Vec<Class>,
    pub(crate) links: usize,
    /// Index over the whole run of each link and of each class.
    pub(crate) link_ids: Vec<u32>,
    pub(crate) class_ids: Vec<u32>,
    /// The links of each device, in the order of its ports.
    pub(crate) devices: Vec<Vec<u32>>,
    /// Index over the whole run of each device.
    pub(crate) device_ids: Vec<u32>,
    /// For each node the one that acts for it: the device that owns a link, everyone else itself.
    pub(crate) leader: Vec<u32>,
    /// For each place in `routes`: whom data of interoperable flows goes to from a router there.
    pub(crate) next: Vec<Next>,
    /// For each place in `routes`: the cloud that a packet of XCP-i there has just left.
    pub(crate) came: Vec<Way>,
    /// By node: courses of control packets and probes, in the order of their ways.
    pub(crate) courses: Vec<Vec<Course>>,
    /// Place of each link among the ports of its device.
    pub(crate) port: Vec<u32>,
    /// Between leaders. Links first, then classes, then devices: see [`Network::node`].
    pub(crate) edges: Vec<Edge>,
    pub(crate) flows: u32,
    /// Packets per second that the links can carry, for sizing windows.
    pub(crate) packet_rate: Vec<u64>,
    /// For each link: what leaves it may be overtaken.
    pub(crate) reorders: Vec<bool>,
}

impl Network {
    pub(crate) fn new(model: &Model) -> Self {
        let mut network = Self {
            routes: Vec::new(),
            classes: Vec::new(),
            links: model.links.len(),
            link_ids: (0..model.links.len() as u32).collect(),
            class_ids: (0..2 * model.groups.len() as u32).collect(),
            devices: model.devices.iter().map(|device| device.links.clone()).collect(),
            device_ids: (0..model.devices.len() as u32).collect(),
            leader: Vec::new(),
            next: Vec::new(),
            came: Vec::new(),
            courses: Vec::new(),
            port: vec![0; model.links.len()],
            edges: Vec::new(),
            flows: 0,
            packet_rate: model
                .links
                .iter()
                .map(|l| l.port.service.mean_rate(0, model.duration).0 / 8 / 500)
                .collect(),
            reorders: model.links.iter().map(|l| l.port.reorder.is_some()).collect(),
        };
        for group in &model.groups {
            network.add(model, group);
        }
        network.elect();
        network.courses = vec![Vec::new(); network.nodes()];
        let (clouds, estimators) = (cloud::clouds(model), cloud::estimators(model));
        for (way, cloud) in (0..).map(Way).zip(&clouds) {
            network.add_courses(model, way, cloud);
            let asks = matches!(cloud.estimator(&estimators), Estimator::Oracle(_));
            network.add_readings(model, cloud, asks);
        }
        network.next = vec![Next::Nobody; network.routes.len()];
        network.came.resize(network.routes.len(), NO_WAY);
        let (routers, ways) = (cloud::routers(model), (0..).map(Way));
        let ways: BTreeMap<_, Way> = clouds.iter().map(Cloud::ways).zip(ways).collect();
        for (index, group) in (0..).zip(&model.groups).filter(|(_, group)| group.interoperable.is_some()) {
            let routes: Vec<u32> = network.classes[2 * index as usize].routes().collect();
            for (route, (path, back)) in routes.into_iter().zip(group.paths()) {
                network.find_next(&routers, route as usize, path);
                for (end, cloud) in cloud::along(&routers, index, path, back) {
                    network.came[route as usize + end] = ways[&cloud.ways()];
                }
            }
        }
        for edge in &mut network.edges {
            edge.from = network.leader[edge.from] as usize;
            edge.to = network.leader[edge.to] as usize;
        }
        network.edges.sort_unstable_by_key(|e| (e.from, e.to, e.latency));
        network.edges.dedup_by_key(|e| (e.from, e.to));
        network
    }

    fn add(&mut self, model: &Model, group: &Group) {
        let smallest = smallest_packet(group);
        let (usual, offered) = match &group.kind {
            GroupKind::Source(source) => {
                let packets = source.rate.0 / 8 / u64::from(source.segment);
                ([source.segment; 2], packets.saturating_mul(group.count.into()))
            }
            GroupKind::Tcp(config) => ([config.segment, config.ack], 0),
        };
        let senders = self.classes.len() as u32;
        let receivers = senders + 1;
        let (forward, back) = (self.add_route(&group.path, receivers), self.add_route(&group.back, senders));
        let mut switches = [Vec::new(), Vec::new()];
        for switch in &group.switches {
            switches[0].push((switch.at, self.add_route(&switch.path, receivers)));
            switches[1].push((switch.at, self.add_route(&switch.back, senders)));
        }
        let ends = [(group.access, forward, offered), (group.exit, back, 0)];
        for ((pipe, route, offered), switches) in ends.into_iter().zip(switches) {
            self.classes.push(Class {
                first_flow: self.flows,
                count: group.count,
                pipe: pipe.as_ref().map(|pipe| Wire::new(pipe, usual)),
                route,
                switches,
                offered,
            });
        }
        self.flows += group.count;
        let [senders, receivers] = [senders, receivers].map(|class| self.links + class as usize);
        for (path, back) in group.paths() {
            self.add_edges(model, senders, path, receivers, smallest);
            self.add_edges(model, receivers, back, senders, smallest);
        }
    }

    /// Edges of a route for packets of at least `smallest` bytes.
    fn add_edges(&mut self, model: &Model, mut from: usize, path: &[u32], to: usize, smallest: u16) {
        let mut latency = match self.node(from) {
            Node::Class(class) => self.classes[class as usize].pipe.map_or(0, |p| p.latency(smallest)),
            _ => 0,
        };
        for &link in path {
            // What a device sends through a port of its own does not leave it.
            if self.leader.get(link as usize).is_none_or(|&leader| leader as usize != from) {
                self.edges.push(Edge { from, to: link as usize, latency });
            }
            from = link as usize;
            let port = &model.links[link as usize].port;
            latency = port.delay + port.service.shortest(smallest);
        }
        self.edges.push(Edge { from, to, latency });
    }

    /// Courses between the edges of a cloud.
    fn add_courses(&mut self, model: &Model, way: Way, cloud: &Cloud) {
        for (from, to, path) in [(cloud.up, cloud.down, &cloud.forward), (cloud.down, cloud.up, &cloud.back)]
        {
            let (start, end) = (self.end(from), self.end(to));
            let target = self.hop(end);
            let first_flow = |class: u32| self.classes[class as usize].first_flow;
            let (first, count, flow) = match (to, target) {
                (cloud::Node::Router(device), _) => {
                    (cloud::router_address(device), 1, cloud::router_flow(device))
                }
                (cloud::Node::Sender(_), Hop::Host(class)) => {
                    let flow = first_flow(class);
                    (cloud::sender_address(flow), self.classes[class as usize].count, flow)
                }
                (_, Hop::Host(class)) => {
                    let flow = first_flow(class);
                    (cloud::receiver_address(flow), self.classes[class as usize].count, flow)
                }
                _ => unreachable!("a host's node is its class"),
            };
            let route = self.routes.len() as u32;
            self.routes.extend(path.iter().map(|&link| Hop::Link(link)));
            self.routes.push(target);
            self.came.resize(self.routes.len() - 1, NO_WAY);
            self.came.push(way);
            self.courses[start].push(Course { way, first, count, flow, route });
            self.add_edges(model, start, path, end, CONTROL_SIZE);
        }
    }

    /// Whoever reads what arrives at a link runs after it; `asks`: the cloud has an oracle.
    fn add_readings(&mut self, model: &Model, cloud: &Cloud, asks: bool) {
        // The oracle belongs to the upstream edge; the downstream one samples the truth.
        let reads = [asks.then_some(cloud.up), model.sample_every.and(Some(cloud.down))];
        for edge in reads.into_iter().flatten() {
            let to = self.end(edge);
            for from in cloud.inside.iter().map(|&link| link as usize) {
                self.edges.push(Edge { from, to, latency: 0 });
            }
        }
    }

    /// Whom the routers on a path, which begins at `route`, send data to.
    fn find_next(&mut self, routers: &[Option<u32>], route: usize, path: &[u32]) {
        let mut next = Next::Receiver;
        for (at, &link) in path.iter().enumerate().rev() {
            if let Some(device) = routers[link as usize] {
                self.next[route + at] = next;
                next = Next::Router(cloud::router_address(device));
            }
        }
    }

    /// The next XCP-i node after the router that a packet has reached.
    pub(crate) fn next_node(&self, packet: &Packet) -> Option<Address> {
        match self.next[packet.route as usize] {
            Next::Nobody => None,
            Next::Router(address) => Some(address),
            Next::Receiver => Some(cloud::receiver_address(packet.flow)),
        }
    }

    /// The way by which a packet of XCP-i has come to the node where it is.
    pub(crate) fn way(&self, packet: &Packet) -> Way {
        self.came[packet.route as usize]
    }

    /// The port of a device's own through which a packet of its own leaves first.
    pub(crate) fn own_port(&self, node: usize, packet: &Packet) -> Option<usize> {
        match self.routes[packet.route as usize] {
            Hop::Link(link) if self.leader[link as usize] as usize == node => {
                Some(self.port[link as usize] as usize)
            }
            _ => None,
        }
    }

    /// The node that an edge of a cloud is.
    fn end(&self, node: cloud::Node) -> usize {
        match node {
            cloud::Node::Router(device) => self.node_of_device(device as usize),
            cloud::Node::Sender(group) => self.links + 2 * group as usize,
            cloud::Node::Receiver(group) => self.links + 2 * group as usize + 1,
        }
    }

    /// The hop that leads to a node.
    fn hop(&self, node: usize) -> Hop {
        match self.node(node) {
            Node::Link(link) => Hop::Link(link),
            Node::Class(class) => Hop::Host(class),
            Node::Device(device) => Hop::Device(device),
        }
    }

    /// The node that a hop is.
    #[inline]
    pub(crate) fn node_of(&self, hop: Hop) -> usize {
        match hop {
            Hop::Link(link) => link as usize,
            Hop::Host(class) => self.links + class as usize,
            Hop::Device(device) => self.node_of_device(device as usize),
        }
    }

    /// Puts a control packet or probe on its way from a node to `to`. False: there is no way.
    pub(crate) fn send_off(&self, node: usize, to: Neighbour, packet: &mut Packet) -> bool {
        let courses = &self.courses[node];
        let Ok(at) = courses.binary_search_by_key(&to.way, |course| course.way) else { return false };
        let course = &courses[at];
        let offset = to.address.0.checked_sub(course.first.0).filter(|&offset| offset < course.count);
        if let Some(offset) = offset {
            packet.route = course.route;
            packet.flow = course.flow + offset;
        }
        offset.is_some()
    }

    fn add_route(&mut self, path: &[u32], host: u32) -> u32 {
        let start = self.routes.len() as u32;
        self.routes.extend(path.iter().map(|&link| Hop::Link(link)));
        self.routes.push(Hop::Host(host));
        start
    }

    /// Finds out who acts for whom.
    pub(crate) fn elect(&mut self) {
        self.leader = (0..self.nodes() as u32).collect();
        for device in 0..self.devices.len() {
            for (port, &link) in self.devices[device].iter().enumerate() {
                self.leader[link as usize] = self.node_of_device(device) as u32;
                self.port[link as usize] = port as u32;
            }
        }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.links + self.classes.len() + self.devices.len()
    }

    pub(crate) fn node(&self, index: usize) -> Node {
        match index.checked_sub(self.links) {
            None => Node::Link(index as u32),
            Some(class) if class < self.classes.len() => Node::Class(class as u32),
            Some(other) => Node::Device((other - self.classes.len()) as u32),
        }
    }

    pub(crate) fn node_of_device(&self, device: usize) -> usize {
        self.links + self.classes.len() + device
    }

    /// True for the hosts that send data.
    pub(crate) fn is_sender(&self, class: u32) -> bool {
        self.class_ids[class as usize].is_multiple_of(2)
    }

    /// The links that the packets of a class's hosts take.
    pub(crate) fn links_of(&self, class: &Class) -> impl Iterator<Item = usize> {
        class.routes().flat_map(|route| self.links_from(route))
    }

    /// The links of a route, from a place in it on.
    pub(crate) fn links_from(&self, place: u32) -> impl Iterator<Item = usize> {
        self.routes[place as usize..].iter().map_while(|hop| match hop {
            Hop::Link(link) => Some(*link as usize),
            Hop::Host(_) | Hop::Device(_) => None,
        })
    }

    /// For each node: hosts that packets reach in another order than that in which they were sent to
    /// them, because one link reorders or several lead there.
    pub(crate) fn is_mixed(&self) -> Vec<bool> {
        let (mut is_mixed, mut input) = (vec![false; self.nodes()], vec![None; self.nodes()]);
        for pair in self.routes.windows(2) {
            if let [Hop::Link(link), host @ Hop::Host(_)] = *pair {
                let node = self.node_of(host);
                is_mixed[node] |= self.reorders[link as usize];
                is_mixed[node] |= *input[node].get_or_insert(link) != link;
            }
        }
        is_mixed
    }

    /// Packets per second that each class of hosts can send: what the fullest link on its way has
    /// for it, if all flows that cross one share it.
    pub(crate) fn class_rates(&self) -> Vec<u64> {
        let mut flows = vec![0_u64; self.links];
        for class in &self.classes {
            for link in self.links_of(class) {
                flows[link] += u64::from(class.count);
            }
        }
        let share = |class: &Class, link: usize| {
            (u128::from(self.packet_rate[link]) * u128::from(class.count) / u128::from(flows[link])) as u64
        };
        let rate = |class: &Class| self.links_of(class).map(|link| share(class, link)).min().unwrap_or(0);
        self.classes.iter().map(rate).collect()
    }

    /// The parts between which no packet ever passes, in the order of their first nodes. Links that no packet crosses
    /// are one.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let mut split = Split::of(self);
        split.copy_classes();
        split.copy_courses();
        split.copy_edges();
        split.parts
    }

    /// Which nodes packets pass between.
    fn joined(&self) -> DisjointSets {
        let mut sets = DisjointSets::new(self.nodes());
        let mut is_crossed = vec![false; self.links];
        for edge in &self.edges {
            sets.join(edge.from, edge.to);
            [edge.from, edge.to]
                .into_iter()
                .filter(|&node| node < self.links)
                .for_each(|node| is_crossed[node] = true);
        }
        let is_own = |&link: &usize| self.leader[link] as usize == link;
        let idle: Vec<usize> = (0..self.links).filter(is_own).filter(|&link| !is_crossed[link]).collect();
        idle.iter().for_each(|&link| sets.join(idle[0], link));
        for (node, &leader) in self.leader.iter().enumerate() {
            sets.join(node, leader as usize);
        }
        sets
    }

    /// The order among packets that reach an element at one instant: drawn anew for every
    /// instant, from the input (the link before this hop, or who sent the packet) and the time.
    ///
    /// Not the bare number of the input, as docs/design/engine.md 5 has it: where access links are as fast as
    /// the bottleneck, arrivals coincide for good, and the first flows would always get the last
    /// places of a full queue (40 flows at 100 Mbit/s: Jain 0.17; so 0.99, ns-2 0.996). Packets of
    /// one input keep their order, which is that in which they were sent.
    #[inline]
    pub(crate) fn turn(&self, packet: &Packet) -> (u64, u64) {
        let input = match packet.route.checked_sub(1).map(|before| self.routes[before as usize]) {
            Some(Hop::Link(link)) => u64::from(self.link_ids[link as usize]),
            _ if matches!(packet.kind, Kind::Control | Kind::Probe) => (2 << 32) | u64::from(packet.words[1]),
            _ => (1 << 32) | u64::from(packet.flow),
        };
        let turn = mix(mix(input, packet.at), input);
        (turn ^ (turn >> 32), input)
    }

    /// Nodes in an order in which every edge of less than `window` points forward; `None` if such
    /// edges close a circle.
    pub(crate) fn order(&self, window: Picos) -> Option<Vec<usize>> {
        let mut inputs = vec![0_u32; self.nodes()];
        let immediate = || self.edges.iter().filter(|e| e.latency < window);
        for edge in immediate() {
            inputs[edge.to] += 1;
        }
        let first_edge: Vec<usize> =
            (0..=self.nodes()).map(|n| self.edges.partition_point(|e| e.from < n)).collect();
        let mut order: Vec<usize> = (0..self.nodes()).filter(|&n| inputs[n] == 0).collect();
        let mut done = 0;
        while done < order.len() {
            let node = order[done];
            done += 1;
            for edge in &self.edges[first_edge[node]..first_edge[node + 1]] {
                if edge.latency < window {
                    inputs[edge.to] -= 1;
                    if inputs[edge.to] == 0 {
                        order.push(edge.to);
                    }
                }
            }
        }
        (order.len() == self.nodes()).then_some(order)
    }
}

/// The random stream of what flow `index` of a group draws.
pub(crate) fn stream_of(group: &Group, index: u32, what: &str, seed: u64) -> Stream {
    let name = Name::new("flows.").then(&group.name).then("/").then_number(index).then(".").then(what);
    Stream::of(seed, name)
}

/// Returns the start times of all flows of a group. Random ones are drawn from each flow's own stream.
pub fn starts_of(group: &Group, seed: u64) -> Vec<Time> {
    let stream = |index, what| stream_of(group, index, what, seed);
    let flows = 0..group.count;
    match group.start {
        Start::Every { from, every } => {
            let start = |index| Time(from.0.saturating_add(every.saturating_mul(u64::from(index))));
            flows.map(start).collect()
        }
        Start::Uniform { within } => {
            flows.map(|index| Time(stream(index, "start").below(within.max(1)))).collect()
        }
        Start::Poisson { from, gap } => {
            let arrivals = flows.scan(from, |last, index| {
                *last = Time(last.0.saturating_add(stream(index, "arrival").exponential(gap)));
                Some(*last)
            });
            arrivals.collect()
        }
    }
}

/// When flow `index` may send by the group's schedule; `None`: always.
pub(crate) fn spans_of(group: &Group, index: u32, start: Time) -> Option<Vec<(Time, Time)>> {
    if group.schedule.is_empty() {
        return None;
    }
    let ends = group.schedule[1..].iter().map(|&(at, _)| at).chain([Time::NEVER]);
    let spans = group.schedule.iter().zip(ends).filter(|((_, active), _)| index < *active);
    let mut joined: Vec<(Time, Time)> = Vec::new();
    for (&(from, _), to) in spans {
        match joined.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => joined.push((from.max(start), to)),
        }
    }
    Some(joined)
}

/// Returns the transfer size, in segments, of flow `index` of a group with [`Group::sizes`]; `None` for other groups.
pub fn segments_of(group: &Group, index: u32, seed: u64) -> Option<u64> {
    let sizes = group.sizes?;
    let mut stream = stream_of(group, index, "size", seed);
    Some((stream.pareto(sizes.shape, sizes.mean).round() as u64).max(1))
}

/// Returns the interval over which the rates and means of a flow that starts at `start` are taken
/// (docs/design/contract.md 5).
pub fn measure_of(model: &Model, group: &Group, start: Time) -> tcp::Measure {
    measured(model.warmup, model.duration, group, start)
}

/// The same of a run of this warm-up and duration.
pub(crate) fn measured(warmup: Picos, duration: Picos, group: &Group, start: Time) -> tcp::Measure {
    let (warmup, end) = (warmup / PS_PER_NS, duration / PS_PER_NS);
    let from = start.0.max(warmup);
    // What stopped before the measurement is still counted in it.
    tcp::Measure { from: Time(from), to: Time(group.stop.0.min(end).max(from)) }
}
