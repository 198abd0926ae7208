//! Hosts as both engines drive them: an endpoint of `net`, its clock, its fingerprint, its probe.

use congestlab_core::units::Time;
use congestlab_net::packet::{PS_PER_NS, Packet, Picos, flag};
use congestlab_net::source::{Source, SourceConfig};
use congestlab_net::tcp;

use crate::Span;
use crate::outcome::{Element, Event, Sample};

/// What a host of the simulation can be.
pub(crate) trait Endpoint {
    type Config;
    /// A packet reached it; packets to send now go to `send`.
    fn handle_packet(
        &mut self,
        config: &Self::Config,
        now: Time,
        packet: &Packet,
        send: impl FnMut(&mut Packet),
    );
    /// Its deadline `now` has come.
    fn handle_deadline(&mut self, config: &Self::Config, now: Time, send: impl FnMut(&mut Packet));
    fn next_deadline(&self) -> Time;
    /// Appends the values of the bin of `seconds` that ends now; `last` keeps what was counted by
    /// the end of the bin before.
    fn sample(&self, last: &mut [u64; 2], seconds: f64, put: impl FnMut(&'static str, f64));
    /// Timeouts so far.
    fn timeouts(&self) -> u64 {
        0
    }
}

impl Endpoint for tcp::Sender {
    type Config = tcp::Config;

    #[inline]
    fn handle_packet(
        &mut self,
        config: &tcp::Config,
        now: Time,
        packet: &Packet,
        mut send: impl FnMut(&mut Packet),
    ) {
        tcp::Sender::handle_packet(self, config, now, packet);
        while let Some(packet) = self.poll_transmit(config, now).as_mut() {
            send(packet);
        }
    }

    #[inline]
    fn handle_deadline(&mut self, config: &tcp::Config, now: Time, mut send: impl FnMut(&mut Packet)) {
        tcp::Sender::handle_deadline(self, config, now);
        while let Some(packet) = self.poll_transmit(config, now).as_mut() {
            send(packet);
        }
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        tcp::Sender::next_deadline(self)
    }

    fn sample(&self, last: &mut [u64; 2], seconds: f64, mut put: impl FnMut(&'static str, f64)) {
        put("throughput_bps", bin_rate(self.stats().sent_bytes, &mut last[0], seconds));
        put("cwnd_packets", self.cwnd_packets());
        if self.srtt().0 > 0 {
            put("srtt_ms", self.srtt().0 as f64 / 1e6);
        }
    }

    fn timeouts(&self) -> u64 {
        tcp::Sender::timeouts(self)
    }
}

impl Endpoint for tcp::Receiver {
    type Config = tcp::Config;

    #[inline]
    fn handle_packet(
        &mut self,
        config: &tcp::Config,
        now: Time,
        packet: &Packet,
        mut send: impl FnMut(&mut Packet),
    ) {
        if let Some(answer) = tcp::Receiver::handle_packet(self, config, now, packet).as_mut() {
            send(answer);
        }
    }

    #[inline]
    fn handle_deadline(&mut self, config: &tcp::Config, now: Time, mut send: impl FnMut(&mut Packet)) {
        if let Some(answer) = tcp::Receiver::handle_deadline(self, config, now).as_mut() {
            send(answer);
        }
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        tcp::Receiver::next_deadline(self)
    }

    fn sample(&self, last: &mut [u64; 2], seconds: f64, mut put: impl FnMut(&'static str, f64)) {
        put("goodput_bps", bin_rate(self.stats().delivered_bytes, &mut last[0], seconds));
    }
}

/// Mean rate over a bin, bit/s, of what had been `last` bytes when it began.
fn bin_rate(bytes: u64, last: &mut u64, seconds: f64) -> f64 {
    (bytes - std::mem::replace(last, bytes)) as f64 * 8.0 / seconds
}

impl Endpoint for Source {
    type Config = SourceConfig;

    fn handle_packet(&mut self, _: &SourceConfig, _: Time, _: &Packet, _: impl FnMut(&mut Packet)) {}

    #[inline]
    fn handle_deadline(&mut self, config: &SourceConfig, now: Time, mut send: impl FnMut(&mut Packet)) {
        Source::handle_deadline(self, config, now);
        while let Some(packet) = self.poll_transmit(config, now).as_mut() {
            send(packet);
        }
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        Source::next_deadline(self)
    }

    fn sample(&self, last: &mut [u64; 2], seconds: f64, mut put: impl FnMut(&'static str, f64)) {
        put("throughput_bps", bin_rate(self.stats().sent_bytes, &mut last[0], seconds));
    }
}

/// The receiving end of a source: counts.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    pub(crate) measure: tcp::Measure,
    pub(crate) received_packets: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) measured_bytes: u64,
}

impl Sink {
    pub(crate) fn new(measure: tcp::Measure) -> Self {
        Self { measure, received_packets: 0, delivered_bytes: 0, measured_bytes: 0 }
    }
}

impl Endpoint for Sink {
    type Config = ();

    #[inline]
    fn handle_packet(&mut self, _: &(), now: Time, packet: &Packet, _: impl FnMut(&mut Packet)) {
        let size = u64::from(packet.size);
        self.received_packets += 1;
        self.delivered_bytes += size;
        if self.measure.from <= now && now < self.measure.to {
            self.measured_bytes += size;
        }
    }

    fn handle_deadline(&mut self, _: &(), _: Time, _: impl FnMut(&mut Packet)) {}

    #[inline]
    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    fn sample(&self, last: &mut [u64; 2], seconds: f64, mut put: impl FnMut(&'static str, f64)) {
        put("goodput_bps", bin_rate(self.delivered_bytes, &mut last[0], seconds));
    }
}

/// What probes have written down.
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
    fn send(&mut self, now: Picos, packet: &mut Packet);
    /// For the probes; never called by a run without.
    fn record(&mut self) -> &mut Record;
}

/// What a probe remembers of a host.
#[derive(Debug)]
pub(crate) struct Probe {
    /// Period of the samples; `Picos::MAX`: none.
    every: Picos,
    next: Picos,
    last: [u64; 2],
    events: bool,
    element: Element,
}

impl Probe {
    pub(crate) fn new(every: Option<Picos>, events: bool, element: Element) -> Self {
        let every = every.unwrap_or(Picos::MAX);
        Self { every, next: every, last: [0; 2], events, element }
    }
}

/// What the window engine keeps with a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// When the last packet to it, and from it, had left its sender's end of the hop.
    pub(crate) busy_in: Picos,
    pub(crate) busy_out: Picos,
    /// Time of the calendar entry that will wake it first.
    pub(crate) armed: Picos,
}

/// A host.
#[derive(Debug)]
pub(crate) struct Station<E> {
    pub(crate) seat: Seat,
    pub(crate) endpoint: E,
    /// The endpoint's deadline, or the time of its last event: one that was set late is served no
    /// earlier.
    due: Picos,
    hash: u64,
    probe: Option<Box<Probe>>,
}

/// Mixes a word into a running hash: one multiplication.
#[inline]
pub(crate) const fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<E: Endpoint> Station<E> {
    pub(crate) fn new(endpoint: E, probe: Option<Box<Probe>>) -> Self {
        let seat = Seat { busy_in: 0, busy_out: 0, armed: Picos::MAX };
        let mut station = Self { seat, endpoint, due: 0, hash: 0, probe };
        station.schedule(0);
        station
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.hash
    }

    /// After an event at `now`.
    #[inline]
    fn schedule(&mut self, now: Picos) {
        self.due = self.endpoint.next_deadline().0.saturating_mul(PS_PER_NS).max(now);
    }

    /// When it wants to be served next.
    #[inline]
    pub(crate) fn next(&self) -> Picos {
        match &self.probe {
            None => self.due,
            Some(probe) => self.due.min(probe.next),
        }
    }

    /// Serves every deadline before `end`.
    pub(crate) fn serve(&mut self, config: &E::Config, end: Picos, out: &mut impl Outbox) {
        while self.next() < end {
            let now = self.due;
            if self.probe.as_ref().is_some_and(|probe| probe.next < now) {
                self.sample(out);
                continue;
            }
            let before = self.endpoint.timeouts();
            self.hash = mix(self.hash, now);
            let probe = &self.probe;
            self.endpoint.handle_deadline(config, Time(now / PS_PER_NS), |packet| {
                note(out, probe, now, packet);
                out.send(now, packet);
            });
            if let Some(element) = events_of(&self.probe).filter(|_| self.endpoint.timeouts() > before) {
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
        let word = u64::from(packet.seq) << 32 | u64::from(packet.size) << 8 | u64::from(packet.flags);
        self.hash = mix(mix(self.hash, now), word);
        let probe = &self.probe;
        self.endpoint.handle_packet(config, Time(now / PS_PER_NS), packet, |packet| {
            note(out, probe, now, packet);
            out.send(now, packet);
        });
        self.schedule(now);
    }

    #[cold]
    fn sample(&mut self, out: &mut impl Outbox) {
        let Some(probe) = &mut self.probe else { return };
        let (at, element) = (probe.next, probe.element);
        probe.next += probe.every;
        let samples = &mut out.record().samples;
        self.endpoint.sample(&mut probe.last, probe.every as f64 / 1e12, |metric, value| {
            samples.push(Sample { at, element, metric, value });
        });
    }
}

/// What a probe that wants events is at.
fn events_of(probe: &Option<Box<Probe>>) -> Option<Element> {
    probe.as_ref().filter(|probe| probe.events).map(|probe| probe.element)
}

/// Writes a retransmission down if events are wanted.
#[inline]
fn note(out: &mut impl Outbox, probe: &Option<Box<Probe>>, at: Picos, packet: &Packet) {
    if packet.flags & flag::RETRANSMIT != 0
        && let Some(element) = events_of(probe)
    {
        let (kind, detail, value) = ("retransmit", "", packet.seq.into());
        out.record().events.push(Event { at, element, kind, detail, flow: None, value });
    }
}
