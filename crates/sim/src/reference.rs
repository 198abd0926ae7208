//! The reference engine: one globally ordered queue, one event for every hop and every deadline.
//!
//! The oracle of the window engine, with which it shares the elements and no ordering code. It also
//! runs models in which a circle of elements passes packets on in no time at all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use congestlab_net::packet::{Packet, Picos};
use congestlab_net::port::{Output, Outputs, PortEvent};
use congestlab_net::xcp_i::{Address, Neighbour, Passage, Way};

use crate::elements::{Elements, note_port_event};
use crate::hosts::{Hosts, with_hosts};
use crate::network::{Hop, Network, Node};
use crate::router::Surroundings;
use crate::station::{Outbox, Record};
use crate::watch::{Step, Watcher};
use crate::{Progress, Span, Stop, Tap};

/// The kinds of events at one instant at one element, in their order (ARCHITECTURE.md, `crates/net`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Departure,
    Arrival,
    Timer,
}

/// An element that packets enter or that acts at a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Link(u32),
    Device(u32),
    /// The hop of a host's own: away from it, or towards it.
    Pipe {
        class: u32,
        index: u32,
        inward: bool,
    },
    Host {
        class: u32,
        index: u32,
    },
}

/// The order of events: time, then who is reached from whom without delay, then the element's own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Picos,
    /// How many steps without delay lead here.
    depth: u32,
    place: Place,
    class: Class,
    turn: (u64, u64),
    /// Tells packets of one input apart: these are pushed in order.
    number: u64,
}

#[derive(Debug)]
struct Scheduled {
    key: Key,
    packet: Packet,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// The queue and what is counted on the way.
struct Agenda<'a> {
    network: &'a Network,
    watcher: Option<Watcher<'a>>,
    depth: Vec<u32>,
    heap: BinaryHeap<Reverse<Scheduled>>,
    number: u64,
    packet_hops: u64,
    end: Picos,
    record: Record,
    tap: Option<&'a dyn Tap>,
    stop: Stop<'a>,
}

impl Agenda<'_> {
    fn goes_on(&self) -> bool {
        self.stop.goes_on()
    }

    fn tell(&mut self, at: Picos, step: impl FnOnce() -> Step) {
        if let Some(watcher) = &mut self.watcher {
            watcher.tell(at, &step());
        }
    }

    fn push(&mut self, at: Picos, place: Place, class: Class, packet: Packet) {
        if at > self.end {
            return;
        }
        self.number += 1;
        let depth = match place {
            Place::Link(link) => self.depth[link as usize],
            Place::Device(device) => self.depth[self.network.node_of_device(device as usize)],
            Place::Host { class, .. } => self.depth[self.network.links + class as usize],
            // A pipe takes time; what comes into it without delay is the packet of its host.
            Place::Pipe { .. } => u32::MAX,
        };
        let turn = match (class, place) {
            // What a host sends, and what its hop hands on, comes from one place only.
            (_, Place::Pipe { inward: false, .. }) | (Class::Departure | Class::Timer, _) => (0, 0),
            (Class::Arrival, _) => self.network.turn(&packet),
        };
        let key = Key { at, depth, place, class, turn, number: self.number };
        self.heap.push(Reverse(Scheduled { key, packet }));
    }

    fn place_of(&self, link: u32) -> Place {
        match self.network.node(self.network.leader[link as usize] as usize) {
            Node::Device(device) => Place::Device(device),
            _ => Place::Link(link),
        }
    }

    /// The packet reaches the element that its route names at `packet.at`.
    fn enter(&mut self, packet: Packet) {
        let place = match self.network.routes[packet.route as usize] {
            Hop::Link(link) => self.place_of(link),
            Hop::Device(device) => Place::Device(device),
            Hop::Host(class) => {
                let index = packet.flow - self.network.classes[class as usize].first_flow;
                match self.network.classes[class as usize].pipe {
                    Some(_) => Place::Pipe { class, index, inward: true },
                    None => Place::Host { class, index },
                }
            }
        };
        self.push(packet.at, place, Class::Arrival, packet);
    }
}

struct Wire<'a, 'b> {
    agenda: &'a mut Agenda<'b>,
    link: u32,
}

impl Output for Wire<'_, '_> {
    fn deliver(&mut self, packet: &mut Packet) {
        packet.route += 1;
        self.agenda.enter(*packet);
    }

    fn sent(&mut self, at: Picos, packet: &Packet, is_lost: bool) {
        if let Some(tap) = self.agenda.tap {
            tap.sent(self.link, at, packet, is_lost);
        }
    }

    fn event(&mut self, at: Picos, event: PortEvent) {
        note_port_event(&mut self.agenda.record, self.link, at, &event);
        self.agenda.tell(at, || Step::Port { link: self.link, event: Box::new(event) });
    }

    fn watches(&self) -> bool {
        self.agenda.watcher.is_some()
    }

    fn goes_on(&self) -> bool {
        self.agenda.goes_on()
    }
}

/// The ways out of a device's ports.
struct Wires<'a, 'b> {
    agenda: &'a mut Agenda<'b>,
    device: usize,
}

impl Outputs for Wires<'_, '_> {
    fn of(&mut self, port: usize) -> impl Output {
        let link = self.agenda.network.devices[self.device][port];
        Wire { agenda: &mut *self.agenda, link }
    }
}

impl Surroundings for Wires<'_, '_> {
    fn send_off(&mut self, now: Picos, to: Neighbour, packet: &mut Packet) -> Option<usize> {
        let network = self.agenda.network;
        let node = network.node_of_device(self.device);
        if !network.send_off(node, to, packet) {
            return None;
        }
        packet.at = now;
        self.agenda.tell(now, || Step::Sent { packet: *packet });
        let own = network.own_port(node, packet);
        if own.is_none() {
            self.agenda.enter(*packet);
        }
        own
    }

    fn next_node(&self, packet: &Packet) -> Option<Address> {
        self.agenda.network.next_node(packet)
    }

    fn way(&self, packet: &Packet) -> Way {
        self.agenda.network.way(packet)
    }

    fn record(&mut self) -> &mut Record {
        &mut self.agenda.record
    }
}

struct Exit<'a, 'b> {
    agenda: &'a mut Agenda<'b>,
    class: u32,
    index: u32,
}

impl Exit<'_, '_> {
    fn leave(&mut self, now: Picos, packet: &mut Packet) {
        packet.at = now;
        self.agenda.tell(now, || Step::Sent { packet: *packet });
        if self.agenda.network.classes[self.class as usize].pipe.is_some() {
            let place = Place::Pipe { class: self.class, index: self.index, inward: false };
            self.agenda.push(now, place, Class::Arrival, *packet);
        } else {
            self.agenda.enter(*packet);
        }
    }
}

impl Outbox for Exit<'_, '_> {
    fn send(&mut self, now: Picos, packet: &mut Packet) -> bool {
        packet.route = self.agenda.network.classes[self.class as usize].route_at(now);
        self.leave(now, packet);
        self.agenda.goes_on()
    }

    fn send_to(&mut self, now: Picos, to: Neighbour, packet: &mut Packet) {
        let node = self.agenda.network.links + self.class as usize;
        if self.agenda.network.send_off(node, to, packet) {
            self.leave(now, packet);
        }
    }

    fn way(&self, packet: &Packet) -> Way {
        self.agenda.network.way(packet)
    }

    fn record(&mut self) -> &mut Record {
        &mut self.agenda.record
    }

    fn watches(&self) -> bool {
        self.agenda.watcher.is_some()
    }

    fn crossed(&mut self, now: Picos, passage: Passage) {
        self.agenda.tell(now, || Step::Crossed { passage: Box::new(passage) });
    }

    fn goes_on(&self) -> bool {
        self.agenda.goes_on()
    }
}

/// The earliest event of its own that each element is scheduled for.
struct Alarms {
    links: Vec<Picos>,
    devices: Vec<Picos>,
    hosts: Vec<Vec<Picos>>,
}

impl Alarms {
    fn of(&mut self, place: Place) -> &mut Picos {
        match place {
            Place::Link(link) => &mut self.links[link as usize],
            Place::Device(device) => &mut self.devices[device as usize],
            Place::Pipe { class, index, .. } | Place::Host { class, index } => {
                &mut self.hosts[class as usize][index as usize]
            }
        }
    }

    /// The alarm has rung, unless an earlier one replaced it.
    fn ring(&mut self, key: &Key) {
        let alarm = self.of(key.place);
        if *alarm == key.at {
            *alarm = Picos::MAX;
        }
    }

    fn set(&mut self, agenda: &mut Agenda<'_>, place: Place, at: Picos) {
        let alarm = self.of(place);
        if at < *alarm {
            *alarm = at;
            if let Place::Link(_) | Place::Device(_) = place {
                agenda.push(at, place, Class::Departure, Packet::default());
            }
            agenda.push(at, place, Class::Timer, Packet::default());
        }
    }
}

/// How many steps without any delay lead to each node at most; circles count once.
fn depths(network: &Network) -> Vec<u32> {
    let mut sources = vec![Vec::new(); network.nodes()];
    for edge in network.edges.iter().filter(|e| e.latency == 0) {
        sources[edge.to].push(edge.from);
    }
    let (mut depth, mut is_open) = (vec![None; network.nodes()], vec![false; network.nodes()]);
    // Nodes on the way back from a node, how many of their sources were seen, the deepest of those. Not on the thread's
    // stack, which a long chain would overflow.
    let mut way: Vec<(usize, usize, u32)> = Vec::new();
    for first in 0..network.nodes() {
        if depth[first].is_none() {
            is_open[first] = true;
            way.push((first, 0, 0));
        }
        while let Some((node, seen, deepest)) = way.last_mut() {
            let Some(&from) = sources[*node].get(*seen) else {
                let (node, found) = (*node, *deepest);
                (depth[node], is_open[node]) = (Some(found), false);
                way.pop();
                continue;
            };
            match depth[from] {
                None if !is_open[from] => {
                    is_open[from] = true;
                    way.push((from, 0, 0));
                    continue;
                }
                found => *deepest = (*deepest).max(found.unwrap_or(0) + 1),
            }
            *seen += 1;
        }
    }
    depth.into_iter().map(|depth| depth.unwrap_or(0)).collect()
}

/// Runs the elements to the end, or until the watcher has seen enough. Returns false if it was
/// stopped early.
pub(crate) fn run<'a>(
    network: &'a Network,
    elements: &mut Elements,
    run: &Span<'a>,
    progress: &mut dyn FnMut(Progress),
    watcher: Option<Watcher<'a>>,
) -> bool {
    let agenda = Agenda {
        network,
        watcher,
        depth: depths(network),
        heap: BinaryHeap::new(),
        number: 0,
        packet_hops: 0,
        end: run.end,
        record: Record::new(run),
        tap: run.tap,
        stop: Stop::new(run.stop, 0),
    };
    let mut simulation = Simulation::new(network, elements, agenda);
    let complete = simulation.run(run, progress);
    let Simulation { agenda, .. } = simulation;
    elements.packet_hops += agenda.packet_hops;
    elements.record.samples.extend(agenda.record.samples);
    elements.record.events.extend(agenda.record.events);
    complete
}

/// The elements, and what they have to do.
struct Simulation<'a, 'e> {
    network: &'a Network,
    elements: &'e mut Elements,
    agenda: Agenda<'a>,
    alarms: Alarms,
    /// When each pipe's last packet had left its entrance: inward and outward, by class and flow.
    busy: Vec<Vec<[Picos; 2]>>,
}

impl<'a, 'e> Simulation<'a, 'e> {
    /// Every element has set its first alarm.
    fn new(network: &'a Network, elements: &'e mut Elements, mut agenda: Agenda<'a>) -> Self {
        let busy = network.classes.iter().map(|c| vec![[0; 2]; c.count as usize]).collect();
        let mut alarms = Alarms {
            links: vec![Picos::MAX; elements.ports.len()],
            devices: vec![Picos::MAX; elements.devices.len()],
            hosts: network.classes.iter().map(|c| vec![Picos::MAX; c.count as usize]).collect(),
        };
        for (link, port) in elements.ports.iter().enumerate() {
            let next = port.as_ref().map_or(Picos::MAX, |p| p.next_event());
            alarms.set(&mut agenda, Place::Link(link as u32), next);
        }
        for (device, built) in elements.devices.iter().enumerate() {
            let next = built.as_ref().map_or(Picos::MAX, |d| d.next_event());
            alarms.set(&mut agenda, Place::Device(device as u32), next);
        }
        for (class, hosts) in (0..).zip(&mut elements.hosts) {
            with_hosts!(hosts, crowd => crowd.arm(|index, next| {
                alarms.set(&mut agenda, Place::Host { class, index }, next);
            }));
        }
        Self { network, elements, agenda, alarms, busy }
    }

    fn run(&mut self, run: &Span<'a>, progress: &mut dyn FnMut(Progress)) -> bool {
        let mut steps = 0_u32;
        while let Some(Reverse(Scheduled { key, packet })) = self.agenda.heap.pop() {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(1 << 16) {
                progress(Progress { at: key.at, packets: self.agenda.number });
            }
            if steps.is_multiple_of(1 << 10) && run.stop.load(Ordering::Relaxed) {
                self.elements.reached = key.at;
                return false;
            }
            if self.agenda.watcher.as_ref().is_some_and(|watcher| watcher.is_done) {
                return true;
            }
            match key.place {
                Place::Link(link) => self.serve_link(&key, link, packet),
                Place::Device(device) => self.serve_device(&key, device as usize, packet),
                Place::Pipe { class, index, inward } => self.pass_pipe(&key, class, index, inward, packet),
                Place::Host { class, index } => self.serve_host(&key, class, index, packet),
            }
        }
        true
    }

    fn serve_link(&mut self, key: &Key, link: u32, packet: Packet) {
        let Some(port) = &mut self.elements.ports[link as usize] else { return };
        if key.class == Class::Arrival
            && let Some(arrivals) = &self.elements.arrivals[link as usize]
        {
            arrivals.arrive(std::iter::once((key.at, packet.size)));
        }
        let mut wire = Wire { agenda: &mut self.agenda, link };
        match key.class {
            Class::Departure => port.advance_to_arrival(key.at, &mut wire),
            Class::Arrival => {
                port.advance_to_arrival(key.at, &mut wire);
                let queue_packets = port.queue_packets();
                wire.agenda.tell(key.at, || Step::Entered { link, packet, queue_packets });
                port.arrive(key.at, packet, &mut wire);
            }
            Class::Timer => {
                port.advance_before(key.at + 1, &mut wire);
                self.alarms.ring(key);
            }
        }
        self.alarms.set(&mut self.agenda, key.place, port.next_event());
    }

    fn serve_device(&mut self, key: &Key, id: usize, packet: Packet) {
        let Some(device) = &mut self.elements.devices[id] else { return };
        let mut wires = Wires { agenda: &mut self.agenda, device: id };
        match (key.class, self.network.routes.get(packet.route as usize)) {
            (Class::Arrival, Some(&Hop::Link(link))) => {
                if let Some(arrivals) = &self.elements.arrivals[link as usize] {
                    arrivals.arrive(std::iter::once((key.at, packet.size)));
                }
                device.advance_to_arrival(key.at, &mut wires);
                let port = self.network.port[link as usize] as usize;
                let queue_packets = device.queue_packets(port);
                wires.agenda.tell(key.at, || Step::Entered { link, packet, queue_packets });
                device.arrive(key.at, port, packet, &mut wires);
            }
            (Class::Arrival, _) => {
                device.advance_to_arrival(key.at, &mut wires);
                wires.agenda.tell(key.at, || Step::Received { packet });
                device.handle(key.at, &packet, &mut wires);
            }
            (Class::Timer, _) => {
                device.advance_before(key.at + 1, &mut wires);
                self.alarms.ring(key);
            }
            _ => device.advance_to_arrival(key.at, &mut wires),
        }
        self.alarms.set(&mut self.agenda, key.place, device.next_event());
    }

    fn pass_pipe(&mut self, key: &Key, class: u32, index: u32, inward: bool, packet: Packet) {
        self.agenda.packet_hops += 1;
        let Some(pipe) = &self.network.classes[class as usize].pipe else { return };
        let busy = &mut self.busy[class as usize][index as usize][usize::from(inward)];
        let at = pipe.pass(key.at, packet.size, busy);
        let packet = Packet { at, ..packet };
        if inward {
            self.agenda.push(at, Place::Host { class, index }, Class::Arrival, packet);
        } else {
            self.agenda.enter(packet);
        }
    }

    fn serve_host(&mut self, key: &Key, class: u32, index: u32, packet: Packet) {
        let first_flow = self.network.classes[class as usize].first_flow;
        let view = |agenda: &Agenda<'_>, hosts: &Hosts| {
            agenda.watcher.as_ref().and_then(|watcher| watcher.view(hosts, first_flow, index))
        };
        let before = view(&self.agenda, &self.elements.hosts[class as usize]);
        if key.class == Class::Arrival {
            self.agenda.tell(key.at, || Step::Received { packet });
        }
        if key.class == Class::Timer {
            self.alarms.ring(key);
        }
        let mut exit = Exit { agenda: &mut self.agenda, class, index };
        let mut is_over = false;
        with_hosts!(&mut self.elements.hosts[class as usize], crowd => {
            // An alarm of a flow that is over has nothing to say.
            let Some(place) = crowd.rouse(index) else {
                debug_assert_eq!(key.class, Class::Timer, "something comes when a flow is over");
                return;
            };
            let station = &mut crowd.stations[place];
            match key.class {
                Class::Arrival => station.arrive(&crowd.config, key.at, &packet, &mut exit),
                _ => station.serve(&crowd.config, key.at + 1, &mut exit),
            }
            self.alarms.set(&mut self.agenda, key.place, station.next());
            is_over = key.class == Class::Arrival && crowd.leave(index, &packet);
        });
        if is_over {
            // Who sends comes before who receives.
            with_hosts!(&mut self.elements.hosts[class as usize + 1], crowd => crowd.close(index));
        }
        let after = view(&self.agenda, &self.elements.hosts[class as usize]);
        if let (Some(before), Some(after)) = (before, after) {
            let flow = first_flow + index;
            let packet = (key.class == Class::Arrival).then_some(packet);
            self.agenda.tell(key.at, || Step::Acted { flow, packet, before, after });
        }
    }
}
