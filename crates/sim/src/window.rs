//! The window engine: conservative time windows, executed entity by entity (docs/design/engine.md 3).
//!
//! Time is cut into windows of a length `W`. Whatever passes between entities in at least `W`
//! arrives in a later window; what passes faster (a host at its router, a wire without delay) goes
//! to an entity that comes later in the order of this window. So inside a window every entity sees
//! all its inputs before it runs, runs once, and order between entities never matters: there is no
//! global order to keep, and the result is the same for every `W` and on every number of threads.

use congestlab_net::packet::{Packet, Picos};
use congestlab_net::port::{Entry, Output, Outputs, Port, PortEvent};
use congestlab_net::xcp_i::{Address, Neighbour, Way};

use crate::arrivals::Arrivals;
use crate::barrier::{Post, Seat};
use crate::calendar::{Calendar, Window};
use crate::costs::HANDED;
use crate::device::Device;
use crate::elements::{Elements, note_port_event};
use crate::hosts::{Crowd, Host, Hosts};
use crate::mail::Mail;
use crate::network::{Class, Hop, Network, Node};
use crate::order::{have_one_route, sort};
use crate::plan::{Plan, Shift};
use crate::prefetch::prefetch;
use crate::router::Surroundings;
use crate::station::{Endpoint, Outbox, Record, Station};
use crate::store::{Bucket, CHUNK, Chunk, Place, Store, locate, ordinal, place};
use crate::tally::{Ending, Tally};
use crate::{Progress, Span, Stop, Tap};

/// Packets for hosts are gathered up to about this number. After as many, and after as many that come to a link, it is
/// asked whether the run goes on.
const BATCH: usize = 64;
/// So many packets in a row for the hosts of one class are not gathered with others.
const MANY: usize = 8;

/// Data of fewer bytes than this are in the cache anyway.
const CACHE: usize = 1 << 20;
/// So many chunks ahead of the one that is given out are asked for, where they are not in the cache.
const AHEAD: usize = 4;
/// Timers of this time from now on shall be near to the calendar, if that is cheap.
const NEAR: Picos = 2_000_000_000_000;

/// An entry of the timer calendar: the node or host that it wakes.
#[derive(Clone, Copy, Debug)]
struct Timer {
    node: u32,
    /// Flow within the class; 0 for a link and a device.
    index: u32,
}

/// The packets and timers of one thread, and the way from one entity to the next.
struct Fabric<'a> {
    network: &'a Network,
    plan: &'a Plan,
    /// Copy of the plan's.
    shift: Shift,
    id: u16,
    store: Store,
    packets: Calendar<Bucket>,
    timers: Calendar<Vec<Timer>>,
    /// The window that is open.
    window: Window,
    /// Packets sent and to be received within the open window.
    late: Bucket,
    /// The chunks of the open window's packets: (chunk, packets in it).
    chunks: Vec<(u32, u32)>,
    /// For each node the packets that reach it in this window: sort keys, see [`Fabric::key`].
    inbox: Vec<Vec<u64>>,
    /// For each class of hosts the flows with a deadline in this window.
    pending: Vec<Vec<u32>>,
    /// Bit `rank`: the node has something to do in this window.
    active: Vec<u64>,
    /// Packets for other threads.
    outboxes: Vec<Mail>,
    /// The first window that any of them reaches.
    outgoing: Window,
    /// Packets from other threads and for them, up to the last meeting.
    handed: u64,
    /// Flows of the class of senders that was served last that are over.
    over: Vec<u32>,
    /// For each place in the table of routes: the thread where it is. Empty if there is but one.
    home: Vec<u16>,
    packet_hops: u64,
    /// Events after this time are not simulated.
    end: Picos,
    record: Record,
    tap: Option<&'a dyn Tap>,
    stop: Stop<'a>,
}

impl<'a> Fabric<'a> {
    /// The fabric between the entities of thread `id`, before anything happens.
    fn new(
        network: &'a Network,
        plan: &'a Plan,
        id: usize,
        run: &Span<'a>,
        store: Store,
        from: Window,
    ) -> Self {
        let horizon = network.edges.iter().map(|e| e.latency).max().unwrap_or(0);
        // Most timers are near too; what is not, the calendar keeps apart.
        let ring = plan.shift.window(horizon).saturating_mul(2).max(plan.shift.window(NEAR).min(4096));
        let domains = plan.domains();
        let home_of = |hop: &Hop| plan.home[network.node_of(*hop)];
        let home = if domains > 1 { network.routes.iter().map(home_of).collect() } else { Vec::new() };
        Self {
            network,
            plan,
            shift: plan.shift,
            id: id as u16,
            store,
            packets: Calendar::new(ring, from),
            timers: Calendar::new(ring, from),
            window: from,
            late: Bucket::default(),
            chunks: Vec::new(),
            inbox: vec![Vec::new(); network.nodes()],
            pending: vec![Vec::new(); network.classes.len()],
            active: vec![0; network.nodes().div_ceil(64)],
            outboxes: if domains > 1 { (0..domains).map(|_| Mail::default()).collect() } else { Vec::new() },
            outgoing: Window::MAX,
            handed: 0,
            over: Vec::new(),
            home,
            packet_hops: 0,
            end: run.end,
            record: Record::new(run),
            tap: run.tap,
            stop: Stop::new(run.stop, plan.lead),
        }
    }
}

impl Fabric<'_> {
    /// False once the run is given up.
    #[inline]
    fn goes_on(&self) -> bool {
        self.stop.goes_on()
    }

    /// Sorts packets of a window by time, then by the order in which they came in.
    #[inline]
    fn key(&self, at: Picos, ordinal: u64) -> u64 {
        let bits = self.shift.number_bits();
        debug_assert!(ordinal < 1 << bits);
        at << bits | ordinal
    }

    /// Time and ordinal of a key.
    #[inline]
    fn unkey(&self, key: u64) -> (Picos, u64) {
        let bits = self.shift.number_bits();
        (self.shift.begin(self.window) + (key >> bits), key & ((1 << bits) - 1))
    }

    #[inline]
    fn packet(&self, ordinal: u64) -> &Packet {
        self.store.get(self.place(ordinal))
    }

    /// Where the packet of an ordinal is.
    #[inline]
    fn place(&self, ordinal: u64) -> Place {
        let (index, slot) = locate(ordinal);
        place(self.chunks[index].0, slot)
    }

    #[inline]
    fn activate(&mut self, node: usize) {
        let rank = self.plan.rank[node] as usize;
        self.active[rank / 64] |= 1 << (rank % 64);
    }

    #[inline]
    fn node_of(&self, route: u32) -> usize {
        self.network.node_of(self.network.routes[route as usize])
    }

    /// Sends a packet on to the element that `route` names, where it arrives at `at`; the packet's own time and route do not
    /// count. Says whether the run goes on, which it asks for one in many packets only.
    #[inline(always)]
    fn deliver(&mut self, packet: &Packet, at: Picos, route: u32) -> bool {
        let window = self.shift.window(at);
        if let Some(&home) = self.home.get(route as usize)
            && home != self.id
        {
            return self.send_away(home, packet, at, route);
        }
        // Most packets join others in a window to come.
        if let Some(bucket) = self.packets.used_slot(window, |bucket| !bucket.is_full()) {
            // The copy comes first: a packet that was just written in parts can not be read as a whole at once.
            let to = self.store.push(bucket, packet);
            (to.at, to.route) = (at, route);
            true
        } else {
            self.deliver_first(&Packet { at, route, ..*packet }, window)
        }
    }

    #[inline(never)]
    fn deliver_first(&mut self, packet: &Packet, window: Window) -> bool {
        if window == self.window {
            return self.deliver_now(packet);
        }
        debug_assert!(window > self.window, "a packet arrives in a window that is over");
        self.store.push(self.packets.slot(window), packet);
        self.goes_on()
    }

    /// A packet goes to another thread.
    #[inline(never)]
    fn send_away(&mut self, home: u16, packet: &Packet, at: Picos, route: u32) -> bool {
        let window = self.shift.window(at);
        let outbox = &mut self.outboxes[usize::from(home)];
        if let Some(to) = outbox.place(window) {
            *to = *packet;
            (to.at, to.route) = (at, route);
            return true;
        }
        *outbox.begin(window, &mut self.store) = Packet { at, route, ..*packet };
        self.outgoing = self.outgoing.min(window);
        self.goes_on()
    }

    /// Takes the packets of another thread.
    fn receive(&mut self, mail: &mut Mail) {
        for sheet in mail.take() {
            self.handed += sheet.packets().len() as u64;
            if sheet.is_full() {
                self.store.exchange(self.packets.slot(sheet.window), &mut sheet.chunk);
            } else {
                sheet.packets().iter().for_each(|packet| self.take_in(packet));
            }
        }
    }

    /// A packet that comes from elsewhere.
    fn take_in(&mut self, packet: &Packet) {
        let window = self.shift.window(packet.at);
        match self.packets.used_slot(window, |bucket| !bucket.is_full()) {
            Some(bucket) => self.store.push(bucket, packet),
            None => self.store.push(self.packets.slot(window), packet),
        };
    }

    /// The receiver comes later in this window.
    fn deliver_now(&mut self, packet: &Packet) -> bool {
        let node = self.node_of(packet.route);
        let leader = self.network.leader[node] as usize;
        debug_assert!(self.plan.is_late[leader] && self.plan.home[node] == self.id);
        let starts_chunk = self.late.is_full();
        self.store.push(&mut self.late, packet);
        // The list of the window's chunks ends with those of the late packets.
        if starts_chunk {
            self.chunks.push((self.late.last_chunk(), 0));
        }
        let index = self.chunks.len() - 1;
        let fill = &mut self.chunks[index].1;
        let key = (packet.at, ordinal(index, *fill));
        *fill += 1;
        let key = self.key(key.0, key.1);
        self.inbox[node].push(key);
        self.activate(node);
        !starts_chunk || self.goes_on()
    }

    /// Wakes a node at `at`.
    #[inline]
    fn wake(&mut self, at: Picos, timer: Timer) {
        let window = self.shift.window(at);
        if at > self.end {
            return;
        }
        if window <= self.window {
            match self.network.node(timer.node as usize) {
                Node::Link(_) | Node::Device(_) => {}
                Node::Class(class) => self.pending[class as usize].push(timer.index),
            }
            self.activate(timer.node as usize);
        } else {
            self.timers.slot(window).push(timer);
        }
    }

    /// The first window in which something is due on this thread.
    fn first(&self) -> Window {
        let first = |w: Option<Window>| w.unwrap_or(Window::MAX);
        first(self.packets.first()).min(first(self.timers.first()))
    }
}

/// A port's way out. Without `PROBED` nothing that a port reports leaves a trace in the machine code.
struct Wire<'a, 'b, const PROBED: bool> {
    fabric: &'a mut Fabric<'b>,
    link: u32,
}

impl<const PROBED: bool> Output for Wire<'_, '_, PROBED> {
    #[inline]
    fn deliver(&mut self, packet: &mut Packet) {
        if packet.at <= self.fabric.end {
            self.fabric.deliver(packet, packet.at, packet.route + 1);
        }
    }

    #[inline(always)]
    fn deliver_at(&mut self, at: Picos, packet: &mut Packet) {
        if at <= self.fabric.end {
            self.fabric.deliver(packet, at, packet.route + 1);
        }
    }

    #[inline]
    fn sent(&mut self, at: Picos, packet: &Packet, is_lost: bool) {
        if PROBED && let Some(tap) = self.fabric.tap {
            tap.sent(self.fabric.network.link_ids[self.link as usize], at, packet, is_lost);
        }
    }

    #[inline]
    fn event(&mut self, at: Picos, event: PortEvent) {
        if PROBED {
            let link = self.fabric.network.link_ids[self.link as usize];
            note_port_event(&mut self.fabric.record, link, at, &event);
        }
    }

    #[inline]
    fn goes_on(&self) -> bool {
        self.fabric.goes_on()
    }
}

/// The ways out of a device's ports.
struct Wires<'a, 'b, const PROBED: bool> {
    fabric: &'a mut Fabric<'b>,
    device: usize,
}

impl<const PROBED: bool> Outputs for Wires<'_, '_, PROBED> {
    #[inline]
    fn of(&mut self, port: usize) -> impl Output {
        let link = self.fabric.network.devices[self.device][port];
        Wire::<PROBED> { fabric: &mut *self.fabric, link }
    }
}

impl<const PROBED: bool> Surroundings for Wires<'_, '_, PROBED> {
    fn send_off(&mut self, now: Picos, to: Neighbour, packet: &mut Packet) -> Option<usize> {
        let network = self.fabric.network;
        let node = network.node_of_device(self.device);
        if !network.send_off(node, to, packet) {
            return None;
        }
        let own = network.own_port(node, packet);
        if own.is_none() {
            self.fabric.deliver(packet, now, packet.route);
        }
        own
    }

    fn next_node(&self, packet: &Packet) -> Option<Address> {
        self.fabric.network.next_node(packet)
    }

    fn way(&self, packet: &Packet) -> Way {
        self.fabric.network.way(packet)
    }

    fn record(&mut self) -> &mut Record {
        &mut self.fabric.record
    }
}

/// A host's way out, through its own hop.
struct Exit<'a, 'b> {
    fabric: &'a mut Fabric<'b>,
    class: &'a Class,
    node: u32,
    /// When the packet before has left the host's own hop.
    busy: Picos,
}

impl Exit<'_, '_> {
    #[inline(always)]
    fn leave(&mut self, now: Picos, packet: &Packet, route: u32) -> bool {
        let at = match &self.class.pipe {
            None => now,
            Some(pipe) => {
                self.fabric.packet_hops += 1;
                pipe.pass(now, packet.size, &mut self.busy)
            }
        };
        at > self.fabric.end || self.fabric.deliver(packet, at, route)
    }
}

impl Outbox for Exit<'_, '_> {
    #[inline(always)]
    fn send(&mut self, now: Picos, packet: &mut Packet) -> bool {
        self.leave(now, packet, self.class.route_at(now))
    }

    fn send_to(&mut self, now: Picos, to: Neighbour, packet: &mut Packet) {
        if self.fabric.network.send_off(self.node as usize, to, packet) {
            self.leave(now, packet, packet.route);
        }
    }

    fn way(&self, packet: &Packet) -> Way {
        self.fabric.network.way(packet)
    }

    fn record(&mut self) -> &mut Record {
        &mut self.fabric.record
    }

    #[inline]
    fn goes_on(&self) -> bool {
        self.fabric.goes_on()
    }
}

/// The hosts of one class on this thread.
struct Bench<E: Host> {
    crowd: Crowd<E>,
    node: u32,
}

impl<E: Host> Bench<E> {
    /// Packets reach their hosts, each through the host's own hop.
    #[inline]
    fn arrive(&mut self, class: &Class, packets: &[Packet], fabric: &mut Fabric<'_>) {
        if class.pipe.is_some() {
            fabric.packet_hops += packets.len() as u64;
        }
        if self.crowd.is_fleeting() {
            self.arrive_at_living(class, packets, fabric);
            return;
        }
        let Crowd { config, stations, .. } = &mut self.crowd;
        if size_of_val(stations.as_slice()) > CACHE {
            for packet in packets {
                prefetch(&stations[(packet.flow - class.first_flow) as usize]);
            }
        }
        arrive_at(stations, class.first_flow, config, (class, self.node), packets, fabric);
    }

    /// The same where not all hosts are there all the time.
    #[inline(never)]
    fn arrive_at_living(&mut self, class: &Class, packets: &[Packet], fabric: &mut Fabric<'_>) {
        for packet in packets {
            if let Some(place) = self.crowd.rouse(packet.flow - class.first_flow) {
                prefetch(&self.crowd.stations[place]);
            }
        }
        for packet in packets {
            let index = packet.flow - class.first_flow;
            let place = self.crowd.rouse(index).expect("nothing comes when a flow is over");
            let Crowd { config, stations, .. } = &mut self.crowd;
            let (station, packets) = (&mut stations[place..=place], std::slice::from_ref(packet));
            arrive_at(station, packet.flow, config, (class, self.node), packets, fabric);
            if self.crowd.leave(index, packet) {
                fabric.over.push(index);
            }
        }
    }

    fn serve(&mut self, class: &Class, indices: &[u32], end: Picos, fabric: &mut Fabric<'_>) {
        for &index in indices {
            // Nobody is there any more if the flow is over.
            let Some(place) = self.crowd.rouse(index) else { continue };
            let Crowd { config, stations, .. } = &mut self.crowd;
            let station = &mut stations[place];
            // An entry that another, earlier one replaced has nothing to say.
            if station.seat.armed < end {
                station.seat.armed = Picos::MAX;
                let mut exit = Exit { fabric, class, node: self.node, busy: station.seat.busy_out };
                station.serve(config, end, &mut exit);
                station.seat.busy_out = exit.busy;
                rearm(station, Timer { node: self.node, index }, fabric);
            }
        }
    }
}

/// Packets reach the hosts of the flows from `first` on, which belong to a class at a node.
// In line the same instructions take a tenth longer with SACK.
#[inline(never)]
fn arrive_at<E: Host>(
    stations: &mut [Station<E>],
    first: u32,
    config: &E::Config,
    (class, node): (&Class, u32),
    packets: &[Packet],
    fabric: &mut Fabric<'_>,
) {
    // One for all: it is written whole by who sends.
    let mut sent = Packet::default();
    let mut exit = Exit { fabric, class, node, busy: 0 };
    for packet in packets {
        let station = &mut stations[(packet.flow - first) as usize];
        let mut now = packet.at;
        if let Some(pipe) = &class.pipe {
            now = pipe.pass(now, packet.size, &mut station.seat.busy_in);
            if now > exit.fabric.end {
                continue;
            }
        }
        let timer = Timer { node, index: packet.flow - class.first_flow };
        if !station.is_plain() {
            arrive_examined(station, config, class, now, packet, timer, exit.fabric);
            continue;
        }
        exit.busy = station.seat.busy_out;
        let next = station.arrive_plain(config, now, packet, &mut sent, &mut exit);
        station.seat.busy_out = exit.busy;
        if next < station.seat.armed {
            rearm(station, timer, exit.fabric);
        }
    }
}

/// A packet reaches a host with a sampler or an agent at `now`, when it has passed the host's own hop.
#[inline(never)]
fn arrive_examined<E: Endpoint>(
    station: &mut Station<E>,
    config: &E::Config,
    class: &Class,
    now: Picos,
    packet: &Packet,
    timer: Timer,
    fabric: &mut Fabric<'_>,
) {
    if class.pipe.is_none() || !station.hold(now, packet) {
        let mut exit = Exit { fabric, class, node: timer.node, busy: station.seat.busy_out };
        station.arrive(config, now, packet, &mut exit);
        station.seat.busy_out = exit.busy;
    }
    rearm(station, timer, fabric);
}

/// Makes sure that the calendar wakes a host for its next deadline.
#[inline]
fn rearm<E: Endpoint>(station: &mut Station<E>, timer: Timer, fabric: &mut Fabric<'_>) {
    let next = station.next();
    if next < station.seat.armed {
        station.seat.armed = next;
        fabric.wake(next, timer);
    }
}

/// The benches of a class, by what its hosts are; `None`: they live on another thread.
enum AnyBench {
    None,
    Sender(Bench<congestlab_net::tcp::Sender>),
    Receiver(Bench<congestlab_net::tcp::Receiver>),
    Source(Bench<congestlab_net::source::Source>),
    Sink(Bench<crate::station::Sink>),
}

impl AnyBench {
    /// Takes the hosts of a class.
    fn of(hosts: &mut Hosts, node: u32) -> Self {
        match std::mem::replace(hosts, Hosts::Away) {
            Hosts::Away => Self::None,
            Hosts::Senders(crowd) => Self::Sender(Bench { crowd, node }),
            Hosts::Receivers(crowd) => Self::Receiver(Bench { crowd, node }),
            Hosts::Sources(crowd) => Self::Source(Bench { crowd, node }),
            Hosts::Sinks(crowd) => Self::Sink(Bench { crowd, node }),
        }
    }
}

macro_rules! with_bench {
    ($any:expr, $bench:ident => $body:expr) => {
        match $any {
            AnyBench::None => {}
            AnyBench::Sender($bench) => $body,
            AnyBench::Receiver($bench) => $body,
            AnyBench::Source($bench) => $body,
            AnyBench::Sink($bench) => $body,
        }
    };
}

/// One thread's part of the network.
pub(crate) struct Domain<'a> {
    fabric: Fabric<'a>,
    /// Ports by link; `None`: a device's, or on another thread.
    ports: Vec<Option<Box<Port>>>,
    /// `None`: on another thread.
    devices: Vec<Option<Device>>,
    /// By link: what arrives there, if somebody watches.
    arrivals: Vec<Option<Arrivals>>,
    /// By node: time of the calendar entry that will wake each port and device first.
    armed: Vec<Picos>,
    benches: Vec<AnyBench>,
    is_probed: bool,
    /// All events before this time have happened, but those of a window that was given up.
    pub(crate) reached: Picos,
    /// Packets that reached an element so far.
    pub(crate) packets: u64,
    /// Work done by each node since a time, and by all of them so far, in instructions.
    pub(crate) load: Vec<u64>,
    pub(crate) counted_from: Picos,
    pub(crate) work: u64,
    /// Packets and instructions that others were told of.
    told: (u64, u64),
    /// Keys of the link that runs, kept for its allocation.
    keys: Vec<u64>,
    /// Packets for the hosts of one class, likewise.
    batch: Vec<Packet>,
    /// Stands in for the chunk whose packets are given out.
    spare: Option<Box<Chunk>>,
    indices: Vec<u32>,
}

impl<'a> Domain<'a> {
    /// Takes what lives on thread `id` out of `elements`. All before `from` has happened.
    pub(crate) fn new(
        network: &'a Network,
        plan: &'a Plan,
        id: usize,
        elements: &mut Elements,
        run: &Span<'a>,
        store: Store,
        from: Picos,
    ) -> Self {
        let mine = |node: usize| usize::from(plan.home[node]) == id;
        let ports: Vec<_> = (0..network.links)
            .map(|link| mine(link).then(|| elements.ports[network.link_ids[link] as usize].take()).flatten())
            .collect();
        let devices = (0..network.devices.len())
            .map(|device| {
                let is_mine = mine(network.node_of_device(device));
                is_mine.then(|| elements.devices[network.device_ids[device] as usize].take()).flatten()
            })
            .collect();
        let benches = (network.links..)
            .zip(&network.class_ids)
            .map(|(node, &class)| match mine(node) {
                true => AnyBench::of(&mut elements.hosts[class as usize], node as u32),
                false => AnyBench::None,
            })
            .collect();
        let mut domain = Self {
            fabric: Fabric::new(network, plan, id, run, store, plan.shift.window(from)),
            armed: vec![Picos::MAX; network.nodes()],
            ports,
            devices,
            arrivals: network.link_ids.iter().map(|&link| elements.arrivals[link as usize].clone()).collect(),
            benches,
            is_probed: run.is_probed(),
            reached: from,
            packets: 0,
            load: vec![0; network.nodes()],
            counted_from: from,
            work: 0,
            told: (0, 0),
            keys: Vec::new(),
            batch: Vec::new(),
            spare: None,
            indices: Vec::new(),
        };
        domain.arm();
        domain
    }

    /// Wakes everything for its first deadline. The first window is open until one runs.
    fn arm(&mut self) {
        for class in 0..self.benches.len() {
            with_bench!(&mut self.benches[class], bench => bench.crowd.arm(|index, next| {
                if next <= self.fabric.end {
                    let timer = Timer { node: bench.node, index };
                    self.fabric.timers.slot(self.fabric.shift.window(next)).push(timer);
                }
            }));
        }
        let network = self.fabric.network;
        let ports = self.ports.iter().enumerate();
        let ports = ports.filter_map(|(link, port)| Some((link, port.as_ref()?.next_event())));
        let devices = self.devices.iter().enumerate();
        let devices = devices
            .filter_map(|(device, it)| Some((network.node_of_device(device), it.as_ref()?.next_event())));
        for (node, next) in ports.chain(devices) {
            if next <= self.fabric.end {
                self.armed[node] = next;
                let timer = Timer { node: node as u32, index: 0 };
                self.fabric.timers.slot(self.fabric.shift.window(next)).push(timer);
            }
        }
    }

    /// Runs one window, unless it is given up on the way.
    fn run(&mut self, window: Window) {
        let end = self.fabric.shift.begin(window + 1);
        let end = end.min(self.fabric.end + 1);
        self.fabric.window = window;
        let (far, near) = self.fabric.packets.open(window);
        let buckets = [far.unwrap_or_default(), near.unwrap_or_default()];
        for bucket in &buckets {
            self.fabric.store.chunks(bucket, &mut self.fabric.chunks);
        }
        self.open_timers(window);
        self.dispatch();
        let mut word = 0;
        // What was given up still has something to do.
        while word < self.fabric.active.len() && !self.fabric.stop.is_given_up() {
            let bits = self.fabric.active[word];
            if bits == 0 {
                word += 1;
                continue;
            }
            self.fabric.active[word] &= bits - 1;
            let rank = word * 64 + bits.trailing_zeros() as usize;
            match self.fabric.network.node(self.fabric.plan.order[rank] as usize) {
                Node::Link(link) if self.is_probed => self.run_link::<true>(link as usize, end),
                Node::Link(link) => self.run_link::<false>(link as usize, end),
                Node::Class(class) => self.run_class(class as usize, end),
                Node::Device(device) if self.is_probed => self.run_device::<true>(device as usize, end),
                Node::Device(device) => self.run_device::<false>(device as usize, end),
            }
        }
        for bucket in buckets {
            self.fabric.store.take_back(bucket);
        }
        self.packets += self.fabric.chunks.iter().map(|&(_, fill)| u64::from(fill)).sum::<u64>();
        let late = std::mem::take(&mut self.fabric.late);
        self.fabric.store.take_back(late);
        self.fabric.chunks.clear();
    }

    fn open_timers(&mut self, window: Window) {
        let (far, near) = self.fabric.timers.open(window);
        for timer in far.into_iter().chain(near).flatten() {
            match self.fabric.network.node(timer.node as usize) {
                Node::Link(_) | Node::Device(_) => {
                    if self.fabric.shift.window(self.armed[timer.node as usize]) == window {
                        self.fabric.activate(timer.node as usize);
                    }
                }
                Node::Class(class) => {
                    self.fabric.pending[class as usize].push(timer.index);
                    self.fabric.activate(timer.node as usize);
                }
            }
        }
    }

    /// Gives the packets of earlier windows out: to hosts at once, in the order in which they were
    /// sent, which is the order of each host's only input; to links by sort key. Packets that follow
    /// each other on one route go together.
    fn dispatch(&mut self) {
        let network = self.fabric.network;
        let is_cold = self.fabric.store.bytes() > CACHE;
        // More prefetches at once would wait for each other.
        let most = if is_cold { CHUNK / 2 } else { CHUNK };
        let mut held = self.spare.take().unwrap_or_else(|| Box::new([Packet::default(); CHUNK]));
        let mut hosts = None;
        for index in 0..self.fabric.chunks.len() {
            let (chunk, fill) = self.fabric.chunks[index];
            let ahead = self.fabric.chunks.get(index + AHEAD).filter(|_| is_cold).map(|&(next, _)| next);
            // What is sent meanwhile goes to other chunks.
            self.fabric.store.swap(chunk, &mut held);
            let has_one_route = have_one_route(&held[..fill as usize]);
            let mut from = 0;
            while let Some(first) = held[..fill as usize].get(from) {
                let rest = &held[from..fill as usize];
                let ends = |packet: &Packet| packet.route != first.route;
                let end = if has_one_route { None } else { rest.iter().position(ends) };
                let count = end.unwrap_or(rest.len()).min(most);
                if let Some(next) = ahead {
                    self.fabric.store.chunk(next, CHUNK as u32)[from..from + count].iter().for_each(prefetch);
                }
                let packets = &rest[..count];
                let hop = network.routes[first.route as usize];
                let node = network.node_of(hop);
                if let Hop::Host(class) = hop
                    && !self.fabric.plan.is_late[node]
                {
                    let class = class as usize;
                    if count >= MANY {
                        self.arrive_batch(hosts.take());
                        self.arrive(class, packets);
                    } else {
                        if hosts != Some(class) || self.batch.len() >= BATCH {
                            self.arrive_batch(hosts.replace(class));
                        }
                        self.batch.extend_from_slice(packets);
                    }
                } else {
                    let fabric = &mut self.fabric;
                    let bits = fabric.shift.number_bits();
                    let first = ordinal(index, from as u32);
                    // Fabric::key, less the part of the time that the shift takes away.
                    let keys = packets.iter().zip(first..).map(|(packet, n)| packet.at << bits | n);
                    fabric.inbox[node].extend(keys);
                    fabric.activate(node);
                }
                from += count;
            }
            self.fabric.store.swap(chunk, &mut held);
        }
        self.arrive_batch(hosts);
        self.spare = Some(held);
    }

    /// Packets take their time at a node.
    #[inline]
    fn note(&mut self, node: usize, packets: usize) {
        let work = u64::from(self.fabric.plan.cost[node]) * packets as u64;
        self.load[node] += work;
        self.work += work;
    }

    /// The batch reaches the hosts of a class.
    fn arrive_batch(&mut self, class: Option<usize>) {
        if let Some(class) = class {
            let mut batch = std::mem::take(&mut self.batch);
            batch.chunks(BATCH).for_each(|packets| self.arrive(class, packets));
            batch.clear();
            self.batch = batch;
        }
    }

    /// Packets reach the hosts of a class, unless the run is given up.
    fn arrive(&mut self, class: usize, packets: &[Packet]) {
        self.note(self.fabric.network.links + class, packets.len());
        if !self.fabric.goes_on() {
            return;
        }
        let class_of = &self.fabric.network.classes[class];
        with_bench!(&mut self.benches[class], bench => bench.arrive(class_of, packets, &mut self.fabric));
        self.close_receivers(class);
    }

    /// Closes the receivers of flows whose senders, of a class that packets have just come to, know that they are over:
    /// those on another thread live on, though nothing comes to them.
    #[inline]
    fn close_receivers(&mut self, senders: usize) {
        if self.fabric.over.is_empty() {
            return;
        }
        let classes = &self.fabric.network.classes;
        debug_assert_eq!(
            classes[senders].first_flow,
            classes[senders + 1].first_flow,
            "they follow their senders"
        );
        with_bench!(&mut self.benches[senders + 1], bench => {
            self.fabric.over.iter().for_each(|&flow| bench.crowd.close(flow));
        });
        self.fabric.over.clear();
    }

    /// Serves the hosts of a class whose deadlines are in this window.
    fn serve(&mut self, class: usize, end: Picos) {
        let class_of = &self.fabric.network.classes[class];
        while !self.fabric.pending[class].is_empty() {
            std::mem::swap(&mut self.indices, &mut self.fabric.pending[class]);
            self.note(self.fabric.network.links + class, self.indices.len());
            with_bench!(&mut self.benches[class], bench => {
                for indices in self.indices.chunks(BATCH) {
                    if !self.fabric.goes_on() {
                        break;
                    }
                    bench.serve(class_of, indices, end, &mut self.fabric);
                }
            });
            self.indices.clear();
        }
    }

    /// Runs the hosts of a class: those packets that wait for them because something can reach them
    /// within a window (they come by one link, in order) or they come mixed, then deadlines.
    fn run_class(&mut self, class: usize, end: Picos) {
        let network = self.fabric.network;
        let node = network.links + class;
        std::mem::swap(&mut self.keys, &mut self.fabric.inbox[node]);
        if self.fabric.plan.is_mixed[node] {
            self.put_in_order();
        }
        let fabric = &self.fabric;
        self.batch.extend(self.keys.iter().map(|&key| *fabric.packet(fabric.unkey(key).1)));
        self.arrive_batch(Some(class));
        self.keys.clear();
        std::mem::swap(&mut self.keys, &mut self.fabric.inbox[node]);
        self.serve(class, end);
    }

    /// Runs a link to the end of the window.
    #[inline(never)]
    fn run_link<const PROBED: bool>(&mut self, link: usize, end: Picos) {
        std::mem::swap(&mut self.keys, &mut self.fabric.inbox[link]);
        self.note(link, self.keys.len());
        self.put_in_order();
        if self.arrivals[link].is_some() {
            self.log(link);
        }
        let Some(port) = self.ports[link].as_deref_mut() else { return };
        // Fabric::unkey, with what is the same for all keys taken out of the loop.
        let bits = self.fabric.shift.number_bits();
        let (begin, ordinals) = (self.fabric.shift.begin(self.fabric.window), (1 << bits) - 1);
        let mut wire = Wire::<PROBED> { fabric: &mut self.fabric, link: link as u32 };
        for keys in self.keys.chunks(BATCH) {
            if !wire.goes_on() {
                break;
            }
            for &key in keys {
                let now = begin + (key >> bits);
                port.advance_to_arrival(now, &mut wire);
                // It goes on from where it is, if nobody wants to see it.
                let place = wire.fabric.place(key & ordinals);
                let packet = wire.fabric.store.get_mut(place);
                let entry = if PROBED { Entry::Examined } else { port.entry(now, packet) };
                match entry {
                    Entry::Joins => port.join(now, packet),
                    Entry::Passes => {
                        let at = port.pass(now, packet);
                        if at <= wire.fabric.end {
                            let packet = *packet;
                            wire.fabric.deliver(&packet, at, packet.route + 1);
                        }
                    }
                    Entry::Examined => port.arrive_beside(now, *packet, &mut wire),
                }
            }
        }
        port.advance_before(end, &mut wire);
        let next = port.next_event();
        self.keys.clear();
        std::mem::swap(&mut self.keys, &mut self.fabric.inbox[link]);
        self.rearm(link, next, end);
    }

    /// Makes sure that the calendar wakes a port or a device for its next event.
    #[inline]
    fn rearm(&mut self, node: usize, next: Picos, end: Picos) {
        if self.armed[node] < end || next < self.armed[node] {
            self.armed[node] = next;
            self.fabric.wake(next, Timer { node: node as u32, index: 0 });
        }
    }

    /// Runs a device to the end of the window: what comes to all its ports, in one order.
    fn run_device<const PROBED: bool>(&mut self, device: usize, end: Picos) {
        let network = self.fabric.network;
        let node = network.node_of_device(device);
        self.keys.append(&mut self.fabric.inbox[node]);
        for &link in &network.devices[device] {
            self.keys.append(&mut self.fabric.inbox[link as usize]);
        }
        self.note(node, self.keys.len());
        self.put_in_order();
        for &link in &network.devices[device] {
            self.log(link as usize);
        }
        let Some(owner) = &mut self.devices[device] else { return };
        for &key in &self.keys {
            let (now, ordinal) = self.fabric.unkey(key);
            let packet = *self.fabric.packet(ordinal);
            let mut wires = Wires::<PROBED> { fabric: &mut self.fabric, device };
            owner.advance_to_arrival(now, &mut wires);
            match network.routes[packet.route as usize] {
                Hop::Link(link) => {
                    owner.arrive(now, network.port[link as usize] as usize, packet, &mut wires);
                }
                _ => owner.handle(now, &packet, &mut wires),
            }
        }
        self.keys.clear();
        owner.advance_before(end, &mut Wires::<PROBED> { fabric: &mut self.fabric, device });
        let next = owner.next_event();
        self.rearm(node, next, end);
    }

    /// Tells those who watch a link of what arrives there in this window.
    #[inline(never)]
    fn log(&self, link: usize) {
        let (Some(log), fabric) = (&self.arrivals[link], &self.fabric) else { return };
        let arrivals = self.keys.iter().map(|&key| (fabric.unkey(key).0, fabric.packet(fabric.unkey(key).1)));
        let is_here =
            |packet: &Packet| fabric.network.routes[packet.route as usize] == Hop::Link(link as u32);
        let here = arrivals.filter(|&(_, packet)| is_here(packet));
        log.arrive(here.map(|(at, packet)| (at, packet.size)));
    }

    /// Puts arrivals in the order of time; at one instant: whose turn it is, then in the order in which they were sent.
    #[inline]
    fn put_in_order(&mut self) {
        let bits = self.fabric.shift.number_bits();
        let is_in_order = |keys: &[u64]| keys.is_sorted_by(|a, b| a | ((1 << bits) - 1) < *b);
        // Mostly they came so.
        if !is_in_order(&self.keys) {
            sort(&mut self.keys);
            if !is_in_order(&self.keys) {
                self.settle_ties(bits);
            }
        }
    }

    /// Arrivals at one instant: whose turn it is.
    #[inline(never)]
    fn settle_ties(&mut self, bits: u32) {
        let fabric = &self.fabric;
        let turn = |&key: &u64| {
            let (_, ordinal) = fabric.unkey(key);
            (fabric.network.turn(fabric.packet(ordinal)), ordinal)
        };
        for tied in self.keys.chunk_by_mut(|a, b| a >> bits == b >> bits) {
            match tied {
                [_] => {}
                // Mostly two: the second packet of a host leaves when the first of the next host does.
                [first, second] => {
                    if turn(second) < turn(first) {
                        core::mem::swap(first, second);
                    }
                }
                _ => tied.sort_by_cached_key(turn),
            }
        }
    }

    /// Lets a packet go on that is on its way to what lives here.
    pub(crate) fn take_in(&mut self, packet: &Packet) {
        self.fabric.take_in(packet);
    }

    /// Adds the packets that are on their way to what lives here to `packets`.
    pub(crate) fn unload(&mut self, packets: &mut Vec<Packet>) {
        let Fabric { store, packets: calendar, chunks, .. } = &mut self.fabric;
        while let Some(window) = calendar.first() {
            let (far, near) = calendar.open(window);
            for bucket in [far, near].into_iter().flatten() {
                store.chunks(&bucket, chunks);
                for (chunk, fill) in chunks.drain(..) {
                    packets.extend_from_slice(store.chunk(chunk, fill));
                }
            }
        }
    }

    /// Gives everything back but the packets that are on their way.
    /// The store, empty, is for whoever runs next.
    pub(crate) fn finish(self, elements: &mut Elements) -> Store {
        let network = self.fabric.network;
        for (link, port) in self.ports.into_iter().enumerate() {
            if port.is_some() {
                elements.ports[network.link_ids[link] as usize] = port;
            }
        }
        for (device, built) in self.devices.into_iter().enumerate() {
            if built.is_some() {
                elements.devices[network.device_ids[device] as usize] = built;
            }
        }
        for (class, bench) in self.benches.into_iter().enumerate() {
            let hosts = match bench {
                AnyBench::None => continue,
                AnyBench::Sender(bench) => Hosts::Senders(bench.crowd),
                AnyBench::Receiver(bench) => Hosts::Receivers(bench.crowd),
                AnyBench::Source(bench) => Hosts::Sources(bench.crowd),
                AnyBench::Sink(bench) => Hosts::Sinks(bench.crowd),
            };
            elements.hosts[network.class_ids[class] as usize] = hosts;
        }
        elements.reached = elements.reached.min(self.reached);
        elements.packet_hops += self.fabric.packet_hops;
        elements.record.samples.extend(self.fabric.record.samples);
        elements.record.events.extend(self.fabric.record.events);
        let mut store = self.fabric.store;
        store.clear();
        store
    }

    /// The words of this thread at a meeting.
    fn post(&mut self) -> Post {
        let fabric = &mut self.fabric;
        let handed = fabric.handed + fabric.outboxes.iter().map(Mail::packets).sum::<u64>();
        fabric.handed = 0;
        let first = fabric.first().min(std::mem::replace(&mut fabric.outgoing, Window::MAX));
        let before = std::mem::replace(&mut self.told, (self.packets, self.work));
        let work = self.work - before.1 + HANDED * handed;
        Post { first, packets: self.packets - before.0, work }
    }

    /// Runs to the end of the epoch that a window is in, or of the run.
    fn run_epoch(&mut self, first: Window) {
        let last = self.fabric.shift.window(self.fabric.end);
        let until = last.min(first | ((1 << self.fabric.plan.epoch) - 1));
        let mut window = self.fabric.first();
        while window <= until && self.fabric.goes_on() {
            self.run(window);
            window = self.fabric.first();
        }
        self.reached = self.fabric.shift.begin(until + 1);
    }

    /// Counts the work of nodes from now on.
    fn forget(&mut self) {
        self.load.fill(0);
        self.counted_from = self.reached;
    }

    /// The time and the packets that it has come to.
    fn progress(&self) -> Progress {
        Progress { at: self.fabric.shift.begin(self.fabric.window), packets: self.packets }
    }

    /// Tells the other threads what it has for them.
    pub(crate) fn tell(&mut self, seat: &mut Seat<'_>) {
        let post = self.post();
        seat.tell(post, &mut self.fabric.outboxes, self.fabric.stop.is_given_up());
    }

    /// Hears of the others and runs to the end of the next epoch. Says what ends there: the same on all threads, unless one has
    /// given up. A turn ends when the others have been told of the epoch.
    pub(crate) fn go_on(&mut self, seat: &mut Seat<'_>, tally: &mut Tally) -> Option<Ending> {
        let mut turn = None;
        if seat.is_due() {
            let Some(meeting) = seat.hear(|mail| self.fabric.receive(mail)) else {
                return Some(Ending::Stopped);
            };
            turn = tally.turns(&meeting);
            if tally.forgets() {
                self.forget();
            }
        }
        // Others have yet to hear of it.
        if self.fabric.stop.is_given_up() {
            return None;
        }
        let first = seat.first().max(self.fabric.shift.window(self.reached));
        if first > self.fabric.shift.window(self.fabric.end) {
            return Some(Ending::Complete);
        }
        self.run_epoch(first);
        let ending = Ending::Turn(turn?, self.reached);
        self.tell(seat);
        Some(ending)
    }

    /// Runs in step with the other threads until the end, or until `tally` wants another number of them.
    pub(crate) fn run_all(
        &mut self,
        mut seat: Seat<'_>,
        mut tally: Tally,
        progress: &mut dyn FnMut(Progress),
    ) -> Ending {
        loop {
            self.tell(&mut seat);
            if let Some(ending) = self.go_on(&mut seat, &mut tally) {
                return ending;
            }
            progress(self.progress());
        }
    }
}
