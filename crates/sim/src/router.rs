//! An XCP-i router: the ports that run XCP-i, and the agent that they share.

use congestlab_core::units::{Bytes, Time};
use congestlab_net::packet::{Kind, PS_PER_NS, Packet, Picos};
use congestlab_net::port::{Output, Outputs, Port, PortEvent};
use congestlab_net::xcp_i::{Address, Edge, Neighbour, Passage, PortView, Stats, Way};

use crate::arrivals::View;
use crate::station::{Record, mix};
use crate::watched::Watched;

/// The parts of an engine that the agent of a node needs.
pub(crate) trait Surroundings: Outputs {
    /// Puts a packet of the device's own on its way to `to`. `Some`: through this port of its own,
    /// which is left to the device.
    fn send_off(&mut self, now: Picos, to: Neighbour, packet: &mut Packet) -> Option<usize>;
    /// The next XCP-i node on the way of a packet that enters a port.
    fn next_node(&self, packet: &Packet) -> Option<Address>;
    /// The way by which a packet of XCP-i came here.
    fn way(&self, packet: &Packet) -> Way;
    /// For the probes; never called by a run without.
    fn record(&mut self) -> &mut Record;
}

/// A port's way out that remembers whose transmission began.
struct Counting<'a, O> {
    out: O,
    /// Nobody asks for it: `None`.
    begun: Option<&'a mut Vec<Packet>>,
}

impl<O: Output> Output for Counting<'_, O> {
    #[inline]
    fn deliver(&mut self, packet: &mut Packet) {
        self.out.deliver(packet);
    }

    #[inline]
    fn sent(&mut self, at: Picos, packet: &Packet, is_lost: bool) {
        if let Some(begun) = &mut self.begun
            && packet.shows_ttl()
        {
            begun.push(*packet);
        }
        self.out.sent(at, packet, is_lost);
    }

    #[inline]
    fn event(&mut self, at: Picos, event: PortEvent) {
        self.out.event(at, event);
    }

    #[inline]
    fn watches(&self) -> bool {
        self.out.watches()
    }

    #[inline]
    fn goes_on(&self) -> bool {
        self.out.goes_on()
    }
}

/// An XCP-i router.
pub(crate) struct Router {
    ports: Vec<Port>,
    edge: Edge<View>,
    /// Packets whose transmission began since they were last counted; `None`: no downstream edge is told.
    begun: Option<Vec<Packet>>,
    /// The agent's deadline, or the time of its last event: one that was set late is served no
    /// earlier.
    due: Picos,
    watched: Vec<Watched>,
    every: Picos,
    next_sample: Picos,
    hash: u64,
}

impl Router {
    /// Calls `each` with every packet that it has, to be given another route.
    pub(crate) fn for_each_waiting(&mut self, each: &mut impl FnMut(&mut Packet)) {
        self.ports.iter_mut().for_each(|port| port.for_each_waiting(&mut *each));
        self.begun.iter_mut().flatten().for_each(each);
    }

    pub(crate) fn new(
        ports: Vec<Port>,
        edge: Edge<View>,
        watched: Vec<Watched>,
        every: Option<Picos>,
    ) -> Self {
        let every = every.unwrap_or(Picos::MAX);
        let begun = edge.counts_sent().then(Vec::new);
        Self { ports, edge, begun, due: Picos::MAX, watched, every, next_sample: every, hash: 0 }
    }

    pub(crate) fn next_event(&self) -> Picos {
        self.ports.iter().map(Port::next_event).min().unwrap_or(Picos::MAX).min(self.timer())
    }

    /// Earliest event of its own.
    fn timer(&self) -> Picos {
        self.due.min(self.next_sample)
    }

    /// Serves the agent's timers before `t`. What else happens at ports until then changes nothing
    /// for it, and is left to them.
    fn serve(&mut self, t: Picos, out: &mut impl Surroundings) {
        while self.timer() < t && out.of(0).goes_on() {
            if self.next_sample < self.due {
                self.sample(out);
                continue;
            }
            let now = self.due;
            self.hash = mix(self.hash, now);
            self.count(now, out);
            self.edge.handle_deadline(Time(now / PS_PER_NS));
            self.flush(now, out);
        }
    }

    /// Counts what left for its downstream edges before `now`. What waits at a port of its own has not
    /// left, and what is dropped there never does.
    #[inline]
    fn count(&mut self, now: Picos, out: &mut impl Surroundings) {
        let Some(begun) = &mut self.begun else { return };
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.advance_before(now, &mut Counting { out: out.of(index), begun: Some(begun) });
        }
        for packet in begun.drain(..) {
            if let Some(next) = out.next_node(&packet) {
                self.edge.on_sent(next, Bytes(u64::from(packet.size)));
            }
        }
    }

    /// Sends what the agent has to send.
    fn flush(&mut self, now: Picos, out: &mut impl Surroundings) {
        while let Some((mut packet, peer)) = self.edge.poll_transmit() {
            if let Some(port) = out.send_off(now, peer, &mut packet) {
                let mut out = Counting { out: out.of(port), begun: self.begun.as_mut() };
                self.ports[port].advance_to_arrival(now, &mut out);
                self.ports[port].arrive(now, packet, &mut out);
            }
        }
        self.schedule(now);
    }

    /// After an event of the agent at `now`.
    fn schedule(&mut self, now: Picos) {
        self.due = self.edge.next_deadline().0.saturating_mul(PS_PER_NS).max(now);
    }

    pub(crate) fn advance_to_arrival(&mut self, t: Picos, out: &mut impl Surroundings) {
        if self.timer() < t {
            self.serve(t, out);
        }
    }

    pub(crate) fn advance_before(&mut self, t: Picos, out: &mut impl Surroundings) {
        self.serve(t, out);
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.advance_before(t, &mut Counting { out: out.of(index), begun: self.begun.as_mut() });
        }
    }

    /// A packet comes to a port.
    pub(crate) fn arrive(
        &mut self,
        now: Picos,
        index: usize,
        mut packet: Packet,
        out: &mut impl Surroundings,
    ) {
        let way = packet.shows_ttl().then(|| out.way(&packet));
        let port = &mut self.ports[index];
        let mut exit = Counting { out: out.of(index), begun: self.begun.as_mut() };
        port.advance_to_arrival(now, &mut exit);
        if let Some(way) = way {
            let view = PortView { port: index as u32, ..port.view() };
            let seen = if exit.watches() { self.edge.look(Time(now / PS_PER_NS), &packet) } else { None };
            let has_output = self.edge.on_data(Time(now / PS_PER_NS), &mut packet, way, &view);
            if let Some(passage) = seen {
                exit.event(now, PortEvent::Crossed(Box::new(Passage { left: packet, ..passage })));
            }
            port.arrive(now, packet, &mut exit);
            drop(exit);
            if has_output {
                self.flush(now, out);
            } else {
                self.schedule(now);
            }
        } else {
            port.arrive(now, packet, &mut exit);
        }
    }

    /// A packet for the router itself.
    pub(crate) fn handle(&mut self, now: Picos, packet: &Packet, out: &mut impl Surroundings) {
        let word = u64::from(packet.seq) << 32 | u64::from(packet.size) << 8 | packet.kind as u64;
        self.hash = mix(mix(self.hash, now), word);
        self.count(now, out);
        match packet.kind {
            Kind::Probe => self.edge.handle_probe(Time(now / PS_PER_NS), packet),
            _ => self.edge.handle_control(Time(now / PS_PER_NS), packet, out.way(packet)),
        }
        self.flush(now, out);
    }

    #[cold]
    fn sample(&mut self, out: &mut impl Surroundings) {
        let at = self.next_sample;
        self.next_sample += self.every;
        for watched in &mut self.watched {
            watched.sample(&self.edge, at, self.every as f64 / 1e12, &mut out.record().samples);
        }
    }

    pub(crate) fn queue_packets(&self, port: usize) -> u64 {
        self.ports[port].queue_packets()
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.hash
    }

    pub(crate) fn stats(&self) -> &Stats {
        self.edge.stats()
    }

    pub(crate) fn draws(&self) -> u64 {
        self.edge.draws()
    }

    pub(crate) fn into_ports(self) -> Vec<Port> {
        self.ports
    }
}
