//! The agent itself: see [`super`].

use super::cloud::{Cloud, Passage, PortView, withhold};
use super::estimator::{Answer, Listener, Prober, Report, Told};
use super::message::{Message, Probe, Verb};
use super::oracle::LinkView;
use super::peer::Peer;
use super::{Address, Config, Neighbour, SENDS, Way};
use crate::packet::Packet;
use crate::random::Stream;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use congestlab_core::law::xcp_i::{Action, Crossed, Extension};
use congestlab_core::units::{Bytes, Duration, SECOND, Time};

/// Role of a node with an XCP-i agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The node forwards packets.
    Router,
    /// The node sends data: [`Edge::originate`]s, and answers the first router behind a cloud (XI III-B).
    Sender,
    /// The node takes data: lowers Delta_Throughput before it is returned, and forwards nothing (XI III-B).
    Receiver,
}

/// How often a full table is searched for an entry that has had its turn.
const LOOK_AGAIN: Duration = Duration(1_000_000);

/// How long a place in the table is kept for who comes no more.
const FORGET: Duration = Duration(SECOND);

/// Counts of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Data packets that crossed a cloud.
    pub crossed: u64,
    /// Data packets whose IP TTL was above their `xcp_ttl`.
    pub anomalies: u64,
    /// Requests sent, repeated ones too.
    pub requests: u64,
    /// Reports that gave an estimate.
    pub estimates: u64,
    /// Answers and probes that belong to no request under way: late, repeated or forged.
    pub unexpected: u64,
    /// Control packets and probes that can not be read, or come from a node that has nothing to say here.
    pub foreign: u64,
    /// Exchanges that ended without an answer.
    pub broken: u64,
    /// Entries removed because the upstream neighbour was silent.
    pub idle: u64,
    /// Entries removed because the table was full.
    pub evicted: u64,
    /// Data packets that found the table full.
    pub waiting: u64,
}

impl Stats {
    /// Returns the counts with their names.
    pub const fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("crossed", self.crossed),
            ("anomalies", self.anomalies),
            ("requests", self.requests),
            ("estimates", self.estimates),
            ("unexpected", self.unexpected),
            ("foreign", self.foreign),
            ("broken", self.broken),
            ("idle", self.idle),
            ("evicted", self.evicted),
            ("waiting", self.waiting),
        ]
    }
}

/// The XCP-i agent of a node.
#[derive(Clone, Debug)]
pub struct Edge<V> {
    config: Config,
    address: Address,
    role: Role,
    /// Clouds, for the role of k. A slot keeps its number as long as its entry lives.
    clouds: Vec<Option<Cloud>>,
    /// Slot of each upstream neighbour, sorted by address.
    table: Vec<(Address, u32)>,
    /// Time until which nobody in the full table has had its turn.
    crowded_until: Time,
    /// Neighbour that waits for a place, and since when.
    first_waiting: Option<(Address, Time)>,
    /// Slot of the last packet: most packets follow one of the same cloud.
    last: u32,
    /// Listeners by upstream neighbour, sorted; others are [`Told`].
    listeners: Vec<(Neighbour, Listener)>,
    /// Peers, for the role of k-1, sorted by neighbour.
    peers: Vec<Peer<V>>,
    output: VecDeque<(Packet, Neighbour)>,
    deadline: Time,
    /// Number of the last request.
    id: u32,
    nonces: Stream,
    stats: Stats,
}

impl<V: LinkView> Edge<V> {
    /// Creates the agent of the node with this address. `nonces` is drawn from once per request.
    pub fn new(config: Config, address: Address, role: Role, nonces: Stream) -> Self {
        Self {
            config,
            address,
            role,
            clouds: Vec::new(),
            table: Vec::new(),
            crowded_until: Time::ZERO,
            first_waiting: None,
            last: 0,
            listeners: Vec::new(),
            peers: Vec::new(),
            output: VecDeque::new(),
            deadline: Time::NEVER,
            id: 0,
            nonces,
            stats: Stats::default(),
        }
    }

    /// Answers requests of this downstream edge by this way, in the role of k-1, with estimates of `prober`. Requests
    /// of nodes that were not named here are not answered.
    pub fn answer(&mut self, peer: Neighbour, prober: Prober<V>) {
        match self.peers.binary_search_by_key(&peer, |peer| peer.neighbour) {
            Ok(at) => self.peers[at] = Peer::new(peer, prober),
            Err(at) => self.peers.insert(at, Peer::new(peer, prober)),
        }
    }

    /// Reads reports of this upstream edge by this way, in the role of k, with `listener`, in each entry
    /// anew.
    pub fn listen(&mut self, upstream: Neighbour, listener: Listener) {
        match self.listeners.binary_search_by_key(&upstream, |entry| entry.0) {
            Ok(at) => self.listeners[at].1 = listener,
            Err(at) => self.listeners.insert(at, (upstream, listener)),
        }
    }

    /// Puts the extension on a data packet of this sending host.
    #[inline]
    pub fn originate(&self, packet: &mut Packet) {
        packet.set_header(Extension::new(self.address));
    }

    /// Returns true if data that leaves towards a downstream edge counts: its estimates compare it with what arrives.
    pub fn counts_sent(&self) -> bool {
        self.peers.iter().any(Peer::counts_sent)
    }

    /// Counts data that leaves this node towards `peer`, the next XCP-i node of its path; others are not counted.
    #[inline]
    pub fn on_sent(&mut self, peer: Address, size: Bytes) {
        let first = self.peers.partition_point(|other| other.neighbour.address < peer);
        // By whichever way: that is what the peer counts as received.
        for peer in self.peers[first..].iter_mut().take_while(|other| other.neighbour.address == peer) {
            peer.sent += size.0;
        }
    }

    /// Takes a data packet that arrives by `way` and goes to a port, which has yet to decrement its IP TTL; at
    /// a receiving host, to the receiver. Returns true if there is something to send.
    #[inline]
    pub fn on_data(&mut self, now: Time, packet: &mut Packet, way: Way, port: &PortView) -> bool {
        let Some(extension) = packet.header::<Extension>() else { return false };
        match extension.crossed() {
            Crossed::Nothing => {}
            Crossed::Anomaly => self.stats.anomalies += 1,
            Crossed::Cloud => {
                self.stats.crossed += 1;
                match self.find(now, Neighbour { address: extension.last, way }) {
                    Some(slot) => {
                        if let Some(cloud) = &mut self.clouds[slot as usize] {
                            let action = cloud.on_packet(&self.config, now, packet, port);
                            self.act(slot, action, now);
                        }
                    }
                    None => self.turn_away(packet),
                }
            }
        }
        if self.role == Role::Router {
            packet.set_header(extension.forwarded(self.address));
        }
        !self.output.is_empty()
    }

    /// Returns the passage that begins for a packet which is about to be given to [`Edge::on_data`]; `None`: it has crossed no cloud.
    pub fn look(&self, now: Time, packet: &Packet) -> Option<Passage> {
        let extension = packet.header::<Extension>().filter(|seen| seen.crossed() == Crossed::Cloud)?;
        let slot = self.slot_of(extension.last);
        let cloud = slot.and_then(|slot| self.clouds[slot as usize].as_ref());
        Some(cloud.map_or_else(
            || Passage {
                upstream: extension.last,
                state: None,
                estimate: None,
                spare: 0,
                opened: now,
                view: None,
                asked: *packet,
                left: *packet,
            },
            |cloud| cloud.look(now, packet),
        ))
    }

    /// Takes a control packet for this node that arrives by `way`.
    pub fn handle_control(&mut self, now: Time, packet: &Packet, way: Way) {
        let Some(message) = Message::from_packet(packet) else {
            self.stats.foreign += 1;
            return;
        };
        if let Verb::Request { parameter } = message.verb {
            self.on_request(now, Neighbour { address: message.from, way }, &message, parameter);
            return;
        }
        let Some(slot) = self.slot_of(message.from) else {
            self.stats.foreign += 1;
            return;
        };
        let sending = self.sending(now);
        let Some(cloud) = &mut self.clouds[slot as usize] else { return };
        cloud.count_probe(Bytes(u64::from(packet.size)));
        let exchange = &self.config.exchange;
        match message.verb {
            Verb::Ack { takes, echo } => {
                if cloud.entry.on_ack(exchange, now, message.id, message.nonce, takes) {
                    cloud.entry.set_rtt(now - echo);
                    cloud.on_delay(now, way, message.stamp);
                } else {
                    self.stats.unexpected += 1;
                }
            }
            Verb::Report { bandwidth, sent } => {
                if cloud.entry.expects(message.id, message.nonce) {
                    let answer = bandwidth.map_or(Answer::ComputeYourself, Answer::Bandwidth);
                    let report = Report { answer, stamp: message.stamp, sent: Bytes(sent) };
                    cloud.on_delay(now, way, message.stamp);
                    self.stats.estimates += u64::from(cloud.on_report(&self.config, now, &report, sending));
                } else {
                    self.stats.unexpected += 1;
                }
            }
            Verb::Request { .. } => {}
        }
        let deadline = cloud.next_deadline(&self.config);
        self.deadline = self.deadline.min(deadline);
    }

    fn on_request(&mut self, now: Time, from: Neighbour, message: &Message, parameter: u64) {
        let Ok(at) = self.peers.binary_search_by_key(&from, |peer| peer.neighbour) else {
            self.stats.foreign += 1;
            return;
        };
        let others = self.peers.iter_mut().filter(|peer| peer.neighbour.address == from.address);
        others.filter(|peer| peer.neighbour != from).for_each(Peer::give_up);
        let (peer, output) = (&mut self.peers[at], &mut self.output);
        peer.on_request(self.address, now, message, parameter, |packet| output.push_back((packet, from)));
        self.deadline = self.deadline.min(peer.next_deadline());
    }

    /// Takes a probe for this node that arrives.
    pub fn handle_probe(&mut self, now: Time, packet: &Packet) {
        let Some(probe) = Probe::from_packet(packet) else {
            self.stats.foreign += 1;
            return;
        };
        let Some(slot) = self.slot_of(probe.from) else {
            self.stats.foreign += 1;
            return;
        };
        let Some(cloud) = &mut self.clouds[slot as usize] else { return };
        cloud.count_probe(Bytes(probe.size.into()));
        if cloud.entry.expects(probe.id, probe.nonce) {
            cloud.on_probe(now, &probe);
        } else {
            self.stats.unexpected += 1;
        }
    }

    /// Returns when [`Edge::handle_deadline`] wants to be called.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        self.deadline
    }

    /// Serves everything that is due at `now`.
    pub fn handle_deadline(&mut self, now: Time) {
        if now < self.deadline {
            return;
        }
        for at in 0..self.peers.len() {
            if self.peers[at].next_deadline() <= now {
                let (neighbour, output) = (self.peers[at].neighbour, &mut self.output);
                self.peers[at].poll(self.address, now, |packet| output.push_back((packet, neighbour)));
            }
        }
        let sending = self.sending(now);
        for slot in 0..self.clouds.len() {
            if let Some(cloud) = &mut self.clouds[slot]
                && cloud.next_deadline(&self.config) <= now
            {
                cloud.on_deadline(&self.config, now, sending);
                let action = cloud.entry.on_deadline(&self.config.exchange, now);
                self.act(slot as u32, action, now);
            }
        }
        let peers = self.peers.iter().map(Peer::next_deadline);
        let clouds = self.clouds.iter().flatten().map(|cloud| cloud.next_deadline(&self.config));
        self.deadline = peers.chain(clouds).min().unwrap_or(Time::NEVER);
    }

    /// Returns the next packet to send now, and the XCP-i node that it is for.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<(Packet, Neighbour)> {
        self.output.pop_front()
    }

    /// Returns the address of the node.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the clouds upstream, with the numbers of their entries.
    pub fn clouds(&self) -> impl Iterator<Item = (u32, &Cloud)> {
        (0..).zip(&self.clouds).filter_map(|(slot, cloud)| Some((slot, cloud.as_ref()?)))
    }

    /// Returns the counts of the edge.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the number of random words drawn.
    pub fn draws(&self) -> u64 {
        self.nonces.draws()
    }

    /// Number of upstream neighbours that send.
    fn sending(&self, now: Time) -> usize {
        self.clouds.iter().flatten().filter(|cloud| now < cloud.seen() + SENDS).count()
    }

    fn slot_of(&self, upstream: Address) -> Option<u32> {
        let at = self.table.binary_search_by_key(&upstream, |entry| entry.0).ok()?;
        Some(self.table[at].1)
    }

    /// The slot of this upstream neighbour, which it gets if it has none.
    #[inline]
    fn find(&mut self, now: Time, upstream: Neighbour) -> Option<u32> {
        if let Some(Some(cloud)) = self.clouds.get(self.last as usize)
            && cloud.upstream() == upstream.address
            && cloud.way() == upstream.way
        {
            return Some(self.last);
        }
        self.last = match self.slot_of(upstream.address) {
            Some(slot) => slot,
            None => self.insert(now, upstream)?,
        };
        if let Some(cloud) = &mut self.clouds[self.last as usize] {
            cloud.turn(now, upstream.way, || listener(&self.listeners, upstream));
        }
        Some(self.last)
    }

    /// A packet of an upstream neighbour that waits for a place in the table.
    #[cold]
    fn turn_away(&mut self, packet: &mut Packet) {
        self.stats.waiting += 1;
        withhold(packet);
    }

    /// The slot of a new entry. `None`: the table is full of neighbours whose turn it is. Where there are
    /// more than it has places they take turns; if each packet took the place of the entry before, no
    /// estimate would ever find one.
    fn insert(&mut self, now: Time, upstream: Neighbour) -> Option<u32> {
        if self.table.len() >= self.config.table.max(1) {
            // The first that found no place since one was given gets the next.
            let first = self.first_waiting.filter(|&(_, at)| now < at + FORGET);
            self.first_waiting = first.or(Some((upstream.address, now)));
            if now < self.crowded_until || first.is_some_and(|(address, _)| address != upstream.address) {
                return None;
            }
            let seen = |&(_, slot): &(Address, u32)| {
                let cloud =
                    self.clouds[slot as usize].as_ref().filter(|cloud| cloud.may_go(&self.config, now))?;
                Some((cloud.seen(), slot))
            };
            let Some((_, oldest)) = self.table.iter().filter_map(seen).min() else {
                self.crowded_until = now + LOOK_AGAIN;
                return None;
            };
            self.first_waiting = None;
            self.stats.evicted += 1;
            self.remove(oldest);
        }
        let cloud = Cloud::new(&self.config, now, upstream, listener(&self.listeners, upstream));
        let slot = self.clouds.iter().position(Option::is_none).unwrap_or_else(|| {
            self.clouds.push(None);
            self.clouds.len() - 1
        });
        self.deadline = self.deadline.min(cloud.next_deadline(&self.config));
        self.clouds[slot] = Some(cloud);
        let at = self.table.partition_point(|entry| entry.0 < upstream.address);
        self.table.insert(at, (upstream.address, slot as u32));
        Some(slot as u32)
    }

    fn remove(&mut self, slot: u32) {
        self.clouds[slot as usize] = None;
        self.table.retain(|entry| entry.1 != slot);
    }

    /// Does what the entry of a slot wants.
    #[inline]
    fn act(&mut self, slot: u32, action: Action, now: Time) {
        if action != Action::Nothing {
            self.act_now(slot, action, now);
        }
    }

    fn act_now(&mut self, slot: u32, action: Action, now: Time) {
        let Some(cloud) = &mut self.clouds[slot as usize] else { return };
        match action {
            Action::Nothing => {}
            Action::Remove => {
                self.stats.idle += 1;
                self.remove(slot);
            }
            Action::Broken => self.stats.broken += 1,
            Action::Begin | Action::Repeat => {
                if action == Action::Begin {
                    self.id = self.id.wrapping_add(1);
                    cloud.begin(&self.config, now, self.id, self.nonces.next_u64());
                }
                let (message, neighbour) = cloud.request(self.address, now);
                let packet = message.to_packet();
                cloud.count_probe(Bytes(u64::from(packet.size)));
                self.stats.requests += 1;
                self.output.push_back((packet, neighbour));
                self.deadline = self.deadline.min(cloud.next_deadline(&self.config));
            }
        }
    }
}

/// A listener for this neighbour.
fn listener(known: &[(Neighbour, Listener)], upstream: Neighbour) -> Listener {
    match known.binary_search_by_key(&upstream, |entry| entry.0) {
        Ok(at) => known[at].1.clone(),
        Err(_) => Listener::Told(Told),
    }
}
