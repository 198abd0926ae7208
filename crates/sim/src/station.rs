//! Hosts as both engines drive them: an endpoint of `net`, its clock, its fingerprint, its sampler.

use std::collections::VecDeque;

use congestlab_core::units::{Bytes, Time};
use congestlab_net::packet::{Kind, PS_PER_NS, Packet, Picos, flag};
use congestlab_net::source::{Source, SourceConfig};
use congestlab_net::tcp;
use congestlab_net::xcp_i::{Address, Edge, Neighbour, Passage, PortView, Role, Way};

use crate::Span;
use crate::arrivals::View;
use crate::outcome::{Element, Event, Sample};
use crate::watched::Watched;

/// The protocol part of a host: sender, receiver, source or sink.
pub(crate) trait Endpoint {
    type Config: Clone;
    /// Data comes to it.
    const RECEIVES: bool = false;
    /// A packet reached it; packets to send now go to `send`, until it says that the run is given up. They are written
    /// where `sent` is.
    fn handle_packet(
        &mut self,
        config: &Self::Config,
        now: Time,
        packet: &Packet,
        sent: &mut Packet,
        send: impl FnMut(&mut Packet) -> bool,
    );
    /// Serves the deadline `now`; packets to send go to `send`.
    fn handle_deadline(&mut self, config: &Self::Config, now: Time, send: impl FnMut(&mut Packet) -> bool);
    fn next_deadline(&self) -> Time;
    /// Appends the values of the bin of `seconds` that ends now; `last` keeps what was counted by
    /// the end of the bin before.
    fn sample(&self, config: &Self::Config, last: &mut u64, seconds: f64, put: impl FnMut(&'static str, f64));
    /// Timeouts so far.
    fn timeouts(&self) -> u64 {
        0
    }
}

impl Endpoint for tcp::Sender {
    type Config = tcp::Config;

    #[inline(always)]
    fn handle_packet(
        &mut self,
        config: &tcp::Config,
        now: Time,
        packet: &Packet,
        sent: &mut Packet,
        mut send: impl FnMut(&mut Packet) -> bool,
    ) {
        tcp::Sender::handle_packet(self, config, now, packet);
        while self.transmit_into(config, now, sent) && send(sent) {}
    }

    #[inline]
    fn handle_deadline(
        &mut self,
        config: &tcp::Config,
        now: Time,
        mut send: impl FnMut(&mut Packet) -> bool,
    ) {
        tcp::Sender::handle_deadline(self, config, now);
        let mut packet = Packet::default();
        while self.transmit_into(config, now, &mut packet) && send(&mut packet) {}
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        tcp::Sender::next_deadline(self)
    }

    fn sample(
        &self,
        config: &tcp::Config,
        last: &mut u64,
        seconds: f64,
        mut put: impl FnMut(&'static str, f64),
    ) {
        put("throughput_bps", bin_rate(self.sent_bytes(config), last, seconds));
        put("cwnd_packets", self.cwnd_packets(config));
        if self.srtt().0 > 0 {
            put("srtt_ms", self.srtt().0 as f64 / 1e6);
        }
        self.law().each(&mut |name, value, unit| put(name, value as f64 / f64::from(unit)));
    }

    fn timeouts(&self) -> u64 {
        tcp::Sender::timeouts(self)
    }
}

impl Endpoint for tcp::Receiver {
    type Config = tcp::Config;
    const RECEIVES: bool = true;

    #[inline(always)]
    fn handle_packet(
        &mut self,
        config: &tcp::Config,
        now: Time,
        packet: &Packet,
        sent: &mut Packet,
        mut send: impl FnMut(&mut Packet) -> bool,
    ) {
        if self.answer_into(config, now, packet, sent) {
            send(sent);
        }
    }

    #[inline]
    fn handle_deadline(
        &mut self,
        config: &tcp::Config,
        now: Time,
        mut send: impl FnMut(&mut Packet) -> bool,
    ) {
        if let Some(answer) = tcp::Receiver::handle_deadline(self, config, now).as_mut() {
            send(answer);
        }
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        tcp::Receiver::next_deadline(self)
    }

    fn sample(
        &self,
        config: &tcp::Config,
        last: &mut u64,
        seconds: f64,
        mut put: impl FnMut(&'static str, f64),
    ) {
        put("goodput_bps", bin_rate(self.stats(config).total.arrived_bytes, last, seconds));
    }
}

/// Mean rate over a bin, bit/s, of what had been `last` bytes when it began.
fn bin_rate(bytes: u64, last: &mut u64, seconds: f64) -> f64 {
    (bytes - std::mem::replace(last, bytes)) as f64 * 8.0 / seconds
}

impl Endpoint for Source {
    type Config = SourceConfig;

    fn handle_packet(
        &mut self,
        _: &SourceConfig,
        _: Time,
        _: &Packet,
        _: &mut Packet,
        _: impl FnMut(&mut Packet) -> bool,
    ) {
    }

    #[inline]
    fn handle_deadline(
        &mut self,
        config: &SourceConfig,
        now: Time,
        mut send: impl FnMut(&mut Packet) -> bool,
    ) {
        Source::handle_deadline(self, config, now);
        while let Some(packet) = self.poll_transmit(config, now).as_mut()
            && send(packet)
        {}
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        Source::next_deadline(self)
    }

    fn sample(&self, _: &SourceConfig, last: &mut u64, seconds: f64, mut put: impl FnMut(&'static str, f64)) {
        put("throughput_bps", bin_rate(self.stats().sent_bytes, last, seconds));
    }
}

/// The receiving end of a source: counts.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    pub(crate) measure: tcp::Measure,
    pub(crate) received_packets: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) measured_bytes: u64,
    /// Packets and bytes before the measurement.
    pub(crate) early: (u64, u64),
}

impl Sink {
    pub(crate) fn new(measure: tcp::Measure) -> Self {
        Self { measure, received_packets: 0, delivered_bytes: 0, measured_bytes: 0, early: (0, 0) }
    }
}

impl Endpoint for Sink {
    type Config = ();
    const RECEIVES: bool = true;

    #[inline]
    fn handle_packet(
        &mut self,
        _: &(),
        now: Time,
        packet: &Packet,
        _: &mut Packet,
        _: impl FnMut(&mut Packet) -> bool,
    ) {
        let size = u64::from(packet.size);
        self.received_packets += 1;
        self.delivered_bytes += size;
        if !self.measure.is_outside(now) {
            self.measured_bytes += size;
        } else if now <= self.measure.from {
            self.early = (self.received_packets, self.delivered_bytes);
        }
    }

    fn handle_deadline(&mut self, _: &(), _: Time, _: impl FnMut(&mut Packet) -> bool) {}

    #[inline]
    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    fn sample(&self, _: &(), last: &mut u64, seconds: f64, mut put: impl FnMut(&'static str, f64)) {
        put("goodput_bps", bin_rate(self.delivered_bytes, last, seconds));
    }
}

/// The samples and events written down so far.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Length of a bin of the series.
    pub(crate) bin: Picos,
    /// Events are wanted.
    pub(crate) wants_events: bool,
    pub(crate) samples: Vec<Sample>,
    pub(crate) events: Vec<Event>,
}

impl Record {
    pub(crate) fn new(span: &Span<'_>) -> Self {
        Self { bin: span.bin.unwrap_or(Picos::MAX), wants_events: span.events, ..Self::default() }
    }
}

/// Where a host's packets go, at the time at which it sends them.
pub(crate) trait Outbox {
    /// False: the run is given up, and no other packet need be sent.
    fn send(&mut self, now: Picos, packet: &mut Packet) -> bool;
    /// Sends a packet of the host's XCP-i agent.
    fn send_to(&mut self, now: Picos, to: Neighbour, packet: &mut Packet);
    /// The way by which a packet of XCP-i came to the host.
    fn way(&self, packet: &Packet) -> Way;
    /// For the samplers; never called by a run without.
    fn record(&mut self) -> &mut Record;
    /// True if an observer wants to see what an agent does.
    fn watches(&self) -> bool {
        false
    }
    /// Tells the observer of a packet that has crossed a cloud before this host.
    fn crossed(&mut self, _: Picos, _: Passage) {}
    /// False once the run is given up.
    fn goes_on(&self) -> bool;
}

/// State of a host's sampler.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// Period of the samples; `Picos::MAX`: none.
    every: Picos,
    next: Picos,
    last: u64,
    /// Bytes of data that came in this bin, in any order, repeated data too.
    received: u64,
    events: bool,
    element: Element,
}

impl Sampler {
    pub(crate) fn new(every: Option<Picos>, events: bool, element: Element) -> Self {
        let every = every.unwrap_or(Picos::MAX);
        Self { every, next: every, last: 0, received: 0, events, element }
    }

    /// A packet reached the host.
    fn note(&mut self, packet: &Packet) {
        if matches!(packet.kind, Kind::Data | Kind::Datagram) {
            self.received += u64::from(packet.size);
        }
    }
}

/// The XCP-i agent of a host.
pub(crate) struct Agent {
    pub(crate) edge: Edge<View>,
    pub(crate) role: Role,
    /// The XCP-i node behind the cloud that the host's data goes into, from when on.
    next: Vec<(Picos, Option<Address>)>,
    /// Deadline of the agent, or the time of its last event: a deadline that was set late is served no earlier.
    due: Picos,
    /// Where the host is the downstream edge of a cloud.
    pub(crate) watched: Option<Watched>,
    /// True if the agent's oracle or its series look at links.
    looks: bool,
    /// Packets that leave the host's own hop later, and reach an agent that looks at links.
    held: VecDeque<(Picos, Packet)>,
}

impl Agent {
    pub(crate) fn new(
        edge: Edge<View>,
        role: Role,
        next: Vec<(Picos, Option<Address>)>,
        watched: Option<Watched>,
        looks: bool,
    ) -> Self {
        Self { edge, role, next, due: Picos::MAX, watched, looks, held: VecDeque::new() }
    }

    /// A packet for the agent.
    fn handle(&mut self, now: Picos, packet: &Packet, out: &mut impl Outbox) {
        match packet.kind {
            Kind::Probe => self.edge.handle_probe(Time(now / PS_PER_NS), packet),
            _ => self.edge.handle_control(Time(now / PS_PER_NS), packet, out.way(packet)),
        }
        self.flush(now, out);
    }

    /// Data, which may have come through a cloud, as it is for the receiver.
    fn pass(&mut self, now: Picos, mut packet: Packet, out: &mut impl Outbox) -> Packet {
        let way = out.way(&packet);
        let seen = if out.watches() { self.edge.look(Time(now / PS_PER_NS), &packet) } else { None };
        if self.edge.on_data(Time(now / PS_PER_NS), &mut packet, way, &PortView::default()) {
            self.flush(now, out);
        } else {
            self.schedule(now);
        }
        if let Some(passage) = seen {
            out.crossed(now, Passage { left: packet, ..passage });
        }
        packet
    }

    /// Sends what it has to send, after an event at `now`.
    fn flush(&mut self, now: Picos, out: &mut impl Outbox) {
        while let Some((mut packet, peer)) = self.edge.poll_transmit() {
            out.send_to(now, peer, &mut packet);
        }
        self.schedule(now);
    }

    fn schedule(&mut self, now: Picos) {
        self.due = self.edge.next_deadline().0.saturating_mul(PS_PER_NS).max(now);
    }
}

/// The parts that few hosts have.
pub(crate) struct Extras {
    pub(crate) sampler: Option<Sampler>,
    pub(crate) agent: Option<Agent>,
}

impl Extras {
    fn next(&self) -> Picos {
        let of_sampler = self.sampler.as_ref().map_or(Picos::MAX, |sampler| sampler.next);
        of_sampler.min(self.held()).min(self.agent.as_ref().map_or(Picos::MAX, |agent| agent.due))
    }

    /// When the first packet leaves the host's own hop, of those that are held.
    fn held(&self) -> Picos {
        self.agent.as_ref().and_then(|agent| agent.held.front()).map_or(Picos::MAX, |&(at, _)| at)
    }

    /// Lets the host's agent treat a packet that is about to be sent.
    #[inline]
    fn send(&mut self, now: Picos, packet: &mut Packet) {
        if let Some(agent) = &mut self.agent
            && agent.role == Role::Sender
            && packet.flags & flag::HEADER != 0
        {
            agent.edge.originate(packet);
            if let Some(&(_, Some(next))) = agent.next.iter().rev().find(|&&(from, _)| from <= now) {
                agent.edge.on_sent(next, Bytes(u64::from(packet.size)));
            }
        }
    }
}

/// State of a host that belongs to the window engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// When the last packet to it, and from it, had left its sender's end of the hop.
    pub(crate) busy_in: Picos,
    pub(crate) busy_out: Picos,
    /// Time of the calendar entry that will wake it first.
    pub(crate) armed: Picos,
}

/// A host.
pub(crate) struct Station<E> {
    pub(crate) seat: Seat,
    pub(crate) endpoint: E,
    /// The endpoint's deadline, or the time of its last event: one that was set late is served no
    /// earlier.
    due: Picos,
    hash: u64,
    extras: Option<Box<Extras>>,
}

/// Mixes a word into a running hash: one multiplication.
#[inline]
pub(crate) const fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<E: Endpoint> Station<E> {
    pub(crate) fn new(endpoint: E, extras: Option<Box<Extras>>) -> Self {
        let seat = Seat { busy_in: 0, busy_out: 0, armed: Picos::MAX };
        let mut station = Self { seat, endpoint, due: 0, hash: 0, extras };
        station.schedule(0);
        station
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.hash
    }

    /// Random words that its agent drew.
    pub(crate) fn draws(&self) -> u64 {
        self.extras.as_ref().and_then(|extras| extras.agent.as_ref()).map_or(0, |agent| agent.edge.draws())
    }

    /// After an event at `now`.
    #[inline]
    fn schedule(&mut self, now: Picos) {
        let deadline = self.endpoint.next_deadline();
        self.due =
            if deadline == Time::NEVER { Picos::MAX } else { deadline.0.saturating_mul(PS_PER_NS).max(now) };
    }

    /// True if it has nothing but its endpoint: no sampler and no agent.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.extras.is_none()
    }

    /// A packet arrives at a plain host at `now`, as [`Station::arrive`]; what it sends is written where `sent` is. Returns
    /// when it wants to be served next.
    #[inline(always)]
    pub(crate) fn arrive_plain(
        &mut self,
        config: &E::Config,
        now: Picos,
        packet: &Packet,
        sent: &mut Packet,
        out: &mut impl Outbox,
    ) -> Picos {
        debug_assert!(self.is_plain());
        if self.due < now {
            self.serve(config, now, out);
        }
        self.note(now, packet);
        self.endpoint
            .handle_packet(config, Time(now / PS_PER_NS), packet, sent, |packet| out.send(now, packet));
        self.schedule(now);
        self.due
    }

    /// A packet is part of the fingerprint.
    #[inline(always)]
    fn note(&mut self, now: Picos, packet: &Packet) {
        let word = u64::from(packet.seq) << 32 | u64::from(packet.size) << 8 | u64::from(packet.flags);
        self.hash = mix(mix(self.hash, now), word);
    }

    /// Says when it will be woken first, which is when it wants to be served next.
    pub(crate) fn arm(&mut self) -> Picos {
        self.seat.armed = self.next();
        self.seat.armed
    }

    /// When it wants to be served next.
    #[inline]
    pub(crate) fn next(&self) -> Picos {
        match &self.extras {
            None => self.due,
            Some(extras) => self.due.min(extras.next()),
        }
    }

    /// Serves every deadline before `end`.
    pub(crate) fn serve(&mut self, config: &E::Config, end: Picos, out: &mut impl Outbox) {
        while self.next() < end && out.goes_on() {
            let now = self.due;
            if let Some(extras) = &self.extras
                && (extras.next() < now || extras.held() == now)
            {
                self.serve_extras(config, out);
                continue;
            }
            let before = self.endpoint.timeouts();
            self.hash = mix(self.hash, now);
            let extras = &mut self.extras;
            self.endpoint
                .handle_deadline(config, Time(now / PS_PER_NS), |packet| send(out, extras, now, packet));
            if let Some(element) = events_of(&self.extras).filter(|_| self.endpoint.timeouts() > before) {
                let (kind, detail) = ("timeout", "");
                out.record().events.push(Event { at: now, element, kind, detail, flow: None, value: 0 });
            }
            self.schedule(now);
        }
    }

    /// A packet arrives at `now`; earlier deadlines are served first.
    #[inline]
    pub(crate) fn arrive(&mut self, config: &E::Config, now: Picos, packet: &Packet, out: &mut impl Outbox) {
        if self.next() < now {
            self.serve(config, now, out);
        }
        self.take(config, now, packet, out);
    }

    /// A packet will have passed the host's own hop at `now`, maybe in a later window. What only the
    /// host itself knows may happen ahead of time; an agent that looks at links must wait for them.
    /// False: the packet may arrive at once.
    #[inline]
    pub(crate) fn hold(&mut self, now: Picos, packet: &Packet) -> bool {
        let agent = self.extras.as_mut().and_then(|extras| extras.agent.as_mut()).filter(|agent| agent.looks);
        agent.map(|agent| agent.held.push_back((now, *packet))).is_some()
    }

    // Always, as all that a packet passes through in a host: `serve_extras` needs it too, so the compiler would call it.
    #[inline(always)]
    fn take(&mut self, config: &E::Config, now: Picos, packet: &Packet, out: &mut impl Outbox) {
        self.note(now, packet);
        let changed;
        let mut packet = packet;
        if let Some(extras) = &mut self.extras {
            if let Some(sampler) = &mut extras.sampler {
                sampler.note(packet);
            }
            if let Some(agent) = &mut extras.agent {
                if matches!(packet.kind, Kind::Control | Kind::Probe) {
                    agent.handle(now, packet, out);
                    return;
                }
                if agent.role == Role::Receiver && packet.shows_ttl() {
                    changed = agent.pass(now, *packet, out);
                    packet = &changed;
                }
            }
        }
        let (extras, mut sent) = (&mut self.extras, Packet::default());
        self.endpoint.handle_packet(config, Time(now / PS_PER_NS), packet, &mut sent, |packet| {
            send(out, extras, now, packet)
        });
        self.schedule(now);
    }

    /// Serves the earliest of these: a packet that was held, the agent's deadline, the sampler's.
    #[cold]
    fn serve_extras(&mut self, config: &E::Config, out: &mut impl Outbox) {
        let Some(extras) = &mut self.extras else { return };
        let now = extras.next();
        if let Some(agent) = &mut extras.agent
            && let Some((at, packet)) = agent.held.pop_front_if(|&mut (at, _)| at == now)
        {
            self.take(config, at, &packet, out);
        } else if let Some(agent) = extras.agent.as_mut().filter(|agent| agent.due == now) {
            self.hash = mix(self.hash, now);
            agent.edge.handle_deadline(Time(now / PS_PER_NS));
            agent.flush(now, out);
        } else if let Some(sampler) = &mut extras.sampler {
            let (at, element, seconds) = (sampler.next, sampler.element, sampler.every as f64 / 1e12);
            sampler.next += sampler.every;
            let samples = &mut out.record().samples;
            self.endpoint.sample(config, &mut sampler.last, seconds, |metric, value| {
                samples.push(Sample { at, element, metric, value });
            });
            if E::RECEIVES {
                let value = std::mem::take(&mut sampler.received) as f64 * 8.0 / seconds;
                samples.push(Sample { at, element, metric: "received_bps", value });
            }
            if let Some(agent) = &mut extras.agent
                && let Some(watched) = &mut agent.watched
            {
                watched.sample(&agent.edge, at, seconds, samples);
            }
        }
    }
}

/// Returns the element that events of the host belong to, if they are wanted.
fn events_of(extras: &Option<Box<Extras>>) -> Option<Element> {
    let sampler = extras.as_ref()?.sampler.as_ref();
    sampler.filter(|sampler| sampler.events).map(|sampler| sampler.element)
}

/// A packet leaves the host. A retransmission is written down if events are wanted.
#[inline(always)]
fn send(out: &mut impl Outbox, extras: &mut Option<Box<Extras>>, at: Picos, packet: &mut Packet) -> bool {
    if packet.flags & flag::RETRANSMIT != 0
        && let Some(element) = events_of(extras)
    {
        let (kind, detail, value) = ("retransmit", "", packet.seq.into());
        out.record().events.push(Event { at, element, kind, detail, flow: None, value });
    }
    if let Some(extras) = extras {
        extras.send(at, packet);
    }
    out.send(at, packet)
}
