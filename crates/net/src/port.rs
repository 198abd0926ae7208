//! The output port of a link: queue, discipline, law, service, and the wire behind it.
//!
//! A port is driven by whoever owns the time. Before an arrival, [`Port::advance_to_arrival`]; then
//! [`Port::arrive`]; at the end of a window of time, [`Port::advance_before`]. How far or how finely
//! it is advanced changes nothing: events happen in the order of (time, departure < arrival < timer),
//! and what a packet meets depends on nothing else. A departure is the moment at which a transmission
//! begins: the packet leaves the queue, the law edits its header and its fate on the wire is drawn, so
//! it is handed on at once with the time at which it reaches the far end.

mod beside;
mod counts;
mod direct;
mod faults;
mod line;
mod told;
mod unused;

use crate::capacity::{CapacityFrom, Follower};
use crate::errors::ErrorRate;
use crate::impairments::{EcnRewrite, Reorder, Spans};
use crate::packet::{PS_PER_NS, Packet, Picos, flag};
use crate::queue::meter::Meter;
use crate::queue::{Discipline, Fifo, Limit, Others, Reason, Waiting, is_low_priority};
use crate::random::{Probability, Stream};
pub use crate::service::NEVER;
use crate::service::{Frame, Server, Service};
use crate::stats::Histogram;
use crate::xcp_i::{Passage, PortView};
use alloc::boxed::Box;
use beside::Beside;
use congestlab_core::capacity::Counters;
use congestlab_core::law::queue::{Arrival, Departure, Queue, QueueSample, Verdict};
use congestlab_core::law::{Link, LinkConfig, LinkReport, LinkView, Series, Steered as _};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Time};
use counts::delay;
pub use counts::{PortCounts, PortStats, QueueDelay};
pub use direct::Entry;
use faults::Faults;
use line::Line;

/// Moment at which a link's law sees the packet go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeedbackAt {
    /// The packet's transmission begins (docs/design/contract.md 4).
    #[default]
    Departure,
    /// The packet arrives, before the queue: as the egress hook of a kernel does.
    Enqueue,
}

/// Law of a link, with its source of capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawConfig {
    /// The law, with its constants and switches.
    pub config: LinkConfig,
    /// True if the capacity is that of the service, and follows its steps; otherwise it stays as configured.
    pub follows_service: bool,
}

/// Settings of a port in a scenario.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Capacity of the link over time.
    pub service: Service,
    /// Propagation delay, one way, ps.
    pub delay: Picos,
    /// Limit of the queue.
    pub limit: Limit,
    /// Queue discipline: who gets in, who goes next, who is marked.
    pub discipline: Discipline,
    /// Link law; `None`: a legacy router.
    pub law: Option<LawConfig>,
    /// Source of the capacity that the law is told while it runs; then that of its configuration holds whenever the source is stale.
    pub capacity_from: Option<CapacityFrom>,
    /// Moment at which the law sees departures.
    pub feedback_at: FeedbackAt,
    /// Records of the policer that arrivals of the law pass first ([`congestlab_core::law::police`]); `None`: there is none.
    pub police: Option<u32>,
    /// Errors on the wire, for all packets by size; `None`: there are none.
    pub errors: Option<ErrorRate>,
    /// Probability that a pure ACK is lost on the wire, besides errors.
    pub ack_loss: Probability,
    /// Times in which no pure ACK reaches the far end.
    pub ack_blackout: Spans,
    /// Packets that come later; `None`: there are none.
    pub reorder: Option<Reorder>,
    /// Rewriting of the ECN field on the wire; `None`: the field stays.
    pub ecn: Option<EcnRewrite>,
    /// Time between two samples, ps; `None`: no samples.
    pub sample_every: Option<Picos>,
}

impl PortConfig {
    /// Creates the settings of an error-free drop-tail port without a law; `delay` is its propagation, one way, ps.
    pub fn new(service: Service, delay: Picos, limit: Limit) -> Self {
        Self {
            service,
            delay,
            limit,
            discipline: Discipline::DropTail,
            law: None,
            capacity_from: None,
            feedback_at: FeedbackAt::Departure,
            police: None,
            errors: None,
            ack_loss: Probability::ZERO,
            ack_blackout: Spans::default(),
            reorder: None,
            ecn: None,
            sample_every: None,
        }
    }
}

/// Random streams of a port, `links.<name>.<field>` of a run.
#[derive(Clone, Debug)]
pub struct Streams {
    /// Phase of the law: where in its first interval it begins.
    pub phase: Stream,
    /// Bit errors.
    pub errors: Stream,
    /// Loss of pure ACKs.
    pub ack_loss: Stream,
    /// Decisions of the queue law, by the name of the first one that drew: `red`.
    pub queue: Stream,
    /// Lengths of good and bad times of the wire.
    pub bursts: Stream,
    /// Choice of the packets that come later.
    pub reorder: Stream,
    /// Choice of the packets whose ECN field is rewritten.
    pub ecn: Stream,
}

impl Streams {
    /// Creates the streams, each by the name of what draws.
    pub fn new(mut stream: impl FnMut(&'static str) -> Stream) -> Self {
        Self {
            phase: stream("phase"),
            errors: stream("errors"),
            ack_loss: stream("ack-loss"),
            queue: stream("red"),
            bursts: stream("bursts"),
            reorder: stream("reorder"),
            ecn: stream("ecn"),
        }
    }
}

/// State of a port at an instant, and its counts since the sample before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Packets waiting.
    pub queue_packets: u64,
    /// Bytes waiting.
    pub queue_bytes: u64,
    /// The most packets that waited at once since the sample before.
    pub queue_max_packets: u64,
    /// Bytes whose packet's last bit left since the sample before.
    pub sent_bytes: u64,
    /// Report of the law, if there is one.
    pub law: Option<LinkReport>,
    /// Values of the queue law, if there is one.
    pub queue: Option<QueueSample>,
    /// Transmissions since the sample before that collided, if the wire is shared.
    pub collisions: Option<u64>,
    /// Packets whose transmission began since the sample before.
    pub started_packets: u64,
    /// How long these had waited in the queue, together.
    pub waits: Duration,
}

/// Event at a port, for observers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortEvent {
    /// A packet was dropped.
    Dropped {
        /// The packet, as it arrived.
        packet: Packet,
        /// Reason of the drop.
        reason: Reason,
    },
    /// A packet got Congestion Experienced instead of being dropped.
    Marked {
        /// The packet, marked.
        packet: Packet,
    },
    /// A packet reached the far end broken. Reported when its transmission begins, with the time at
    /// which it gets there.
    Errored {
        /// The packet.
        packet: Packet,
    },
    /// The law finished a control interval.
    ControlInterval {
        /// Report of the law: what the interval measured and decided.
        report: LinkReport,
    },
    /// The time of a sample has come.
    Sample(Sample),
    /// The law has dealt with a packet's header. Only for an output that watches.
    Feedback {
        /// The packet, as the law leaves it.
        packet: Packet,
        /// The packet as it came.
        asked: Packet,
        /// View that the law had of it.
        view: LinkView,
    },
    /// A packet has crossed a cloud, and the router's agent has dealt with its header. Only for an output that watches.
    Crossed(Box<Passage>),
    /// A packet begins transmission. Only for an output that watches.
    Departed {
        /// The packet.
        packet: Packet,
    },
}

/// Destination of all that comes out of a port.
pub trait Output {
    /// Takes a packet that reaches the far end at `packet.at`. Called in the order of those times, unless the port
    /// reorders. The packet is the receiver's to change.
    fn deliver(&mut self, packet: &mut Packet);

    /// Takes a packet that reaches the far end at `at`, whatever time it carries.
    #[inline]
    fn deliver_at(&mut self, at: Picos, packet: &mut Packet) {
        packet.at = at;
        self.deliver(packet);
    }

    /// Notes that the transmission of a packet begins at `at`; the law has edited its header. `is_lost`: it
    /// will reach the far end broken. For observers; compiles to nothing unless implemented.
    #[inline]
    fn sent(&mut self, _at: Picos, _packet: &Packet, _is_lost: bool) {}

    /// Notes an event. For observers; compiles to nothing unless implemented.
    #[inline]
    fn event(&mut self, _at: Picos, _event: PortEvent) {}

    /// Returns true if the output wants to hear of every packet.
    #[inline]
    fn watches(&self) -> bool {
        false
    }

    /// Returns false once the run is given up: what has not happened need not happen any more. Asked by what can
    /// go on for long without a packet.
    #[inline]
    fn goes_on(&self) -> bool {
        true
    }
}

/// Destinations of all that comes out of an element that owns several ports.
pub trait Outputs {
    /// Returns the destination of the port at place `port` among those of the element.
    fn of(&mut self, port: usize) -> impl Output;
}

/// The law edits the header of a packet; who watches sees with what in hand.
#[inline]
fn edit(
    law: &mut Link,
    beside: &mut Option<Box<Beside>>,
    now: Picos,
    packet: &mut Packet,
    backlog: Bytes,
    out: &mut impl Output,
) {
    let seen = if out.watches() { law.view(packet).map(|view| (*packet, view)) } else { None };
    match beside {
        None => law.on_departure(nanos(now), packet, backlog),
        Some(beside) => beside.edit(law, nanos(now), packet, backlog),
    }
    if let Some((asked, view)) = seen {
        out.event(now, PortEvent::Feedback { packet: *packet, asked, view });
    }
}

/// Laws see nanoseconds; within a nanosecond they see no time pass.
#[inline]
const fn nanos(t: Picos) -> Time {
    Time(t / PS_PER_NS)
}

#[inline]
const fn picos(t: Time) -> Picos {
    t.0.saturating_mul(PS_PER_NS)
}

/// A multiplication folded to 64 bits: the step of the running fingerprint.
#[inline]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    // As `Wide::product`: a call of a routine costs more there.
    #[cfg(target_arch = "wasm32")]
    let (high, low) = congestlab_core::units::limbs::product(a, b);
    #[cfg(not(target_arch = "wasm32"))]
    let (high, low) = {
        let product = a as u128 * b as u128;
        ((product >> 64) as u64, product as u64)
    };
    high ^ low
}

/// The fingerprint with what a law has written into a packet that leaves.
#[inline(always)]
const fn mix_departure(fingerprint: u64, now: Picos, packet: &Packet) -> u64 {
    fold(fingerprint ^ now, packet.words[2] as u64 ^ MIX[1])
}

/// Odd, without pattern: the fractional digits of pi. Any other would do; it decides fingerprints.
pub(crate) const MIX: [u64; 2] = [0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7345];

/// Fate of an arrival, in the port's fingerprint.
#[derive(Clone, Copy)]
enum Outcome {
    Accepted,
    Errored,
    Dropped(Reason),
    /// Marked on its way out.
    Marked,
}

impl Outcome {
    #[inline]
    const fn code(self) -> u64 {
        match self {
            Self::Accepted => 1,
            Self::Errored => 2,
            Self::Dropped(reason) => 3 + reason as u64,
            Self::Marked => u64::MAX,
        }
    }
}

/// The output port of a link.
#[derive(Clone, Debug)]
pub struct Port {
    // The first two lines of the cache are what a packet through an idle, plain port touches.
    /// Begin of the next transmission; `NEVER` if nothing waits.
    departure: Picos,
    /// Earliest deadline of law, steps, samples and measurement.
    timer: Picos,
    line: Line,
    arrived: u64,
    fingerprint: u64,
    /// Fixed rate, drop-tail, no law, no errors: an idle port passes the packet on unexamined.
    is_plain: bool,
    /// Fixed rate, and one queue that nothing but its limit rules: packets wait unexamined but for a law, which hears of
    /// departures where they are.
    is_simple: bool,
    /// Simple, and nothing happens on the wire: packets leave unexamined but for a law.
    is_direct: bool,
    /// `parts.others` are there: packets wait in several queues.
    has_others: bool,
    /// Something looks at arrivals before the law does: [`Port::look_first`].
    looks_first: bool,
    /// True where `looks_first` or `has_others` is: one question whose answer is mostly no.
    is_special: bool,
    server: Server,
    queue: Fifo,
    meter: Meter,
    /// How long packets waited that did, while measuring; before, since the beginning.
    waits: Histogram,
    parts: Box<Parts>,
}

/// Parts that most ports and most packets do not need.
#[derive(Clone, Debug)]
struct Parts {
    // Most ports have neither law, and some laws are large.
    law: Option<Box<Link>>,
    /// Source of the law's capacity, where somebody else tells it.
    follower: Option<Box<Follower>>,
    feedback_at: FeedbackAt,
    /// Memory of flows, where somebody wants them remembered.
    beside: Option<Box<Beside>>,
    /// `None`: the queue is drop-tail.
    queue_law: Option<Box<Queue>>,
    /// Queues beside the port's first.
    others: Others,
    /// Capacity that the link law would be told if it had all packets.
    told: Rate,
    /// `None`: whatever is sent reaches the far end, at its time.
    faults: Option<Box<Faults>>,
    /// Decisions of the queue law.
    stream: Stream,
    /// Random words that decided where the law's intervals begin.
    phase_draws: u64,
    service: Service,
    /// Time over which the link law wants to know what a trace offered; `None`: it does not, or there is no trace.
    watches: Option<Duration>,
    /// Next step that the law is to hear of.
    next_step: usize,
    /// Begin of the measurement; `NEVER` once it has come.
    from: Picos,
    /// Errors that came before it.
    early_errors: u64,
    /// The longest queue until then, of the bin in which the measurement begins.
    bin_max: usize,
    /// When the measurement began, and the bytes sent by then.
    measured_from: Option<(Picos, u64)>,
    sample_every: Picos,
    next_sample: Picos,
    /// Bytes sent by the sample before.
    sampled_bytes: u64,
    /// Collisions by the sample before.
    sampled_collisions: u64,
    /// Transmissions begun by the sample before.
    sampled_started: u64,
    /// How long packets had waited by the sample before, of `waits`.
    sampled_waits: Duration,
    /// Waiting times of packets in the bin in which the measurement begins, until it began.
    bin_waits: Duration,
    /// Transmissions begun before the measurement.
    early_started: u64,
    stats: PortStats,
}

impl Parts {
    /// Earliest deadline of everything that is neither arrival nor departure.
    fn timer(&self) -> Picos {
        let law = self.law.as_ref().map_or(NEVER, |law| picos(law.next_deadline()));
        let queue = self.queue_law.as_ref().map_or(NEVER, |law| picos(law.next_deadline()));
        law.min(queue).min(self.look_at()).min(self.step_at()).min(self.from).min(self.next_sample)
    }

    /// True if the link law deals with the packets of that queue.
    fn is_of_link_law(&self, queue: usize) -> bool {
        self.queue_law.as_deref().and_then(Queue::of_link_law).is_none_or(|own| own == queue)
    }

    /// Bytes that wait in the queues that the link law deals with, `first` being the port's first.
    fn backlog(&self, first: &Fifo) -> Bytes {
        Bytes(match self.queue_law.as_deref().and_then(Queue::of_link_law) {
            None => first.bytes() + self.others.bytes(),
            Some(queue) => queue.checked_sub(1).map_or(first.bytes(), |other| self.others.bytes_of(other)),
        })
    }

    /// When the capacity that the law should know steps next.
    fn step_at(&self) -> Picos {
        match &self.service {
            Service::Steps(steps) => steps.as_slice().get(self.next_step).map_or(NEVER, |&(at, _)| at),
            Service::Fixed(_) | Service::Trace(_) => NEVER,
        }
    }
}

impl Port {
    /// Creates an idle port at the beginning of a run that ends at `to` and measures from `from` on.
    pub fn new(config: &PortConfig, mut streams: Streams, from: Picos, to: Picos) -> Self {
        let queue_law = Queue::new(&config.discipline).map(Box::new);
        let law = told::start(config, queue_law.as_deref(), &mut streams.phase).map(Box::new);
        let hears_steps =
            config.law.as_ref().is_some_and(|law| law.follows_service) && config.capacity_from.is_none();
        let told = match &config.law {
            Some(law) if !law.follows_service => law.config.capacity(),
            _ => config.service.capacity_at(0),
        };
        let server = Server::new(&config.service);
        let sample_every = config.sample_every.unwrap_or(NEVER).max(1);
        let follower =
            config.capacity_from.filter(|_| law.is_some()).map(|from| Box::new(Follower::new(from, told)));
        let mut parts = Parts {
            follower,
            feedback_at: config.feedback_at,
            beside: Beside::new(config),
            queue_law,
            others: Others::new(&config.discipline, config.limit),
            told,
            stream: streams.queue.clone(),
            phase_draws: streams.phase.draws(),
            faults: Faults::new(config, streams),
            service: config.service.clone(),
            watches: match &config.law {
                Some(law) if hears_steps && matches!(config.service, Service::Trace(_)) => {
                    law.config.watches()
                }
                _ => None,
            },
            next_step: if hears_steps { 1 } else { usize::MAX },
            from: if from == 0 { NEVER } else { from },
            early_errors: 0,
            bin_max: 0,
            measured_from: (from == 0).then_some((0, 0)),
            sample_every,
            next_sample: sample_every,
            sampled_bytes: 0,
            sampled_collisions: 0,
            sampled_started: 0,
            sampled_waits: Duration(0),
            bin_waits: Duration(0),
            early_started: 0,
            stats: PortStats::default(),
            law,
        };
        if !parts.others.is_empty() {
            parts.tell_capacity();
        }
        let is_plain = server.is_fixed()
            && parts.law.is_none()
            && config.police.is_none()
            && config.discipline.passes_idle()
            && parts.faults.is_none();
        let has_others = !parts.others.is_empty();
        let looks_first =
            config.police.is_some() || (parts.watches.is_some() && config.feedback_at == FeedbackAt::Enqueue);
        let is_special = has_others || looks_first;
        let is_simple = server.is_fixed()
            && parts.queue_law.is_none()
            && config.feedback_at == FeedbackAt::Departure
            && !is_special;
        Self {
            departure: NEVER,
            timer: parts.timer(),
            line: Line::new(config.delay, to),
            arrived: 0,
            fingerprint: MIX[0],
            is_plain,
            is_simple,
            is_direct: is_simple && parts.faults.is_none() && parts.beside.is_none(),
            has_others,
            looks_first,
            is_special,
            server,
            queue: Fifo::new(config.discipline.limit(0, config.limit)),
            meter: Meter::new(),
            waits: Histogram::default(),
            parts: Box::new(parts),
        }
    }

    /// Returns the time of the earliest event that needs no arrival; `NEVER` if there is none.
    #[inline]
    pub fn next_event(&self) -> Picos {
        self.departure.min(self.timer)
    }

    /// Serves all that comes before an arrival at `t`: departures at `t` or before, timers before `t`.
    #[inline(always)]
    pub fn advance_to_arrival(&mut self, t: Picos, out: &mut impl Output) {
        // In line, for there is mostly one to each arrival.
        while self.departure <= t {
            if self.departure > self.timer || !self.is_direct || out.watches() {
                return self.serve(t, t, out);
            }
            self.depart_directly(self.departure, out);
        }
        if self.timer < t {
            self.serve(t, t, out);
        }
    }

    /// Serves every event before `t`, the end of a window of time.
    #[inline]
    pub fn advance_before(&mut self, t: Picos, out: &mut impl Output) {
        if self.departure < t || self.timer < t {
            self.serve(t - 1, t, out);
        }
    }

    /// Takes a packet that arrives. The port must have been advanced to `now`.
    #[inline]
    pub fn arrive(&mut self, now: Picos, packet: Packet, out: &mut impl Output) {
        match self.entry(now, &packet) {
            Entry::Joins => self.join(now, &packet),
            Entry::Passes | Entry::Examined => self.arrive_beside(now, packet, out),
        }
    }

    /// Takes a packet as [`Port::arrive`] does, and looks at it whatever it is.
    // Always: devices call it as well as links, which keep it in line at every hop all the same.
    #[inline(always)]
    pub fn arrive_beside(&mut self, now: Picos, mut packet: Packet, out: &mut impl Output) {
        debug_assert!(self.departure > now && self.timer >= now, "events before the arrival were not served");
        self.arrived += 1;
        if packet.shows_ttl() {
            packet.decrement_ttl();
        }
        if self.is_plain && self.line.busy_until <= now && self.queue.is_empty() {
            self.mix_arrival(now, &packet, Outcome::Accepted);
            self.server.rest();
            self.transmit_plain(now, &mut packet, out);
        } else {
            self.arrive_examined(now, &mut packet, out);
        }
    }

    /// Ends the run at `end`: closes what is weighted by time. Events at `end` itself belong to the
    /// run (`advance_before(end + 1)` comes first); nothing may follow. If the run ends before its
    /// time, what is on the wire counts as delivered.
    pub fn finish(&mut self, end: Picos) {
        let waiting = self.waiting();
        self.meter.note(end.max(self.meter.since), waiting);
        let sent_bytes = self.line.sent_bytes(end);
        let is_sending = self.line.busy_until > end && self.line.started > 0;
        let parts = &mut *self.parts;
        let stats = &mut parts.stats;
        stats.arrived_packets = self.arrived;
        stats.sent_packets = self.line.started - u64::from(is_sending);
        stats.delivered_packets = self.line.delivered;
        let waiting = waiting as u64;
        stats.in_flight_end = waiting + self.line.started - self.line.delivered - stats.errors;
        stats.queue_end_packets = waiting;
        stats.note_queue(self.meter.longest);
        stats.law = parts.law.as_deref().map(Link::report);
        stats.police = parts.beside.as_ref().and_then(|beside| beside.counts());
        stats.capacity = parts.follower.as_ref().map(|follower| follower.counts());
        if let Some((_, bytes)) = parts.measured_from {
            stats.measured_bytes = sent_bytes - bytes;
            stats.queue_mean_packets = self.meter.mean();
            stats.queue_p95_packets = self.meter.percentile(95);
            stats.queue_delay = delay(&self.waits, self.line.started - parts.early_started);
        } else {
            (stats.before, stats.measured_max_packets) = (stats.counts(), 0);
        }
    }

    /// Returns the counts of the port; complete after [`Port::finish`].
    pub fn stats(&self) -> &PortStats {
        &self.parts.stats
    }

    /// Returns a hash of everything that happened at this port, in order. What leaves a port without law and
    /// errors follows from what came and is not hashed again.
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns the number of random words drawn; zero if the seed made no difference here.
    pub fn draws(&self) -> u64 {
        let parts = &self.parts;
        parts.phase_draws + parts.stream.draws() + parts.faults.as_ref().map_or(0, |faults| faults.draws())
    }

    /// Returns the port's law as a virtual router of XCP-i sees it: its mean round trip time, zero without a law that
    /// has one, and its persistent queue.
    pub fn view(&self) -> PortView {
        match &self.parts.law {
            Some(law) => PortView { mean_rtt: law.mean_rtt(), queue: law.persistent_queue(), port: 0 },
            None => PortView::default(),
        }
    }

    /// The rate at the beginning of the run.
    pub(crate) fn rate(&self) -> BitRate {
        self.parts.service.rate_at(0)
    }

    /// The wire becomes a medium's: from now on a transmission begins only where [`Port::grant`] or
    /// [`Port::set_free`] allows it. The rate of the service must be fixed.
    pub(crate) fn share(&mut self, frame: Frame) {
        self.server = Server::shared(self.rate(), frame);
        (self.is_plain, self.is_simple, self.is_direct) = (false, false, false);
        self.parts.stats.collisions = Some(0);
    }

    /// A packet that arrives now at an empty queue may begin its transmission, or must wait.
    #[inline]
    pub(crate) fn set_free(&mut self, is_free: bool) {
        self.server.set_free(is_free);
    }

    /// The first packet that waits begins its transmission. The port must have been advanced to `now`.
    #[inline]
    pub(crate) fn grant(&mut self, now: Picos, out: &mut impl Output) {
        self.departure = now;
        self.serve(now, now, out);
    }

    /// A transmission collided.
    pub(crate) fn note_collision(&mut self) {
        self.parts.stats.collisions = self.parts.stats.collisions.map(|count| count + 1);
    }

    /// Gives up the first packet that waits, which collided too often.
    pub(crate) fn give_up(&mut self, now: Picos, out: &mut impl Output) {
        let queue = self.next_queue(now);
        if let Some(packet) = self.pop(now, queue) {
            self.drop_packet(now, queue, &packet, Reason::ExcessiveCollisions, out);
        }
    }

    /// When the transmission that began last ends.
    #[inline]
    pub(crate) fn busy_until(&self) -> Picos {
        self.line.busy_until
    }

    /// Returns the number of packets that wait now.
    pub fn queue_packets(&self) -> u64 {
        self.waiting() as u64
    }

    /// Packets waiting, in all queues.
    #[inline]
    fn waiting(&self) -> usize {
        self.queue.len() + if self.has_others { self.parts.others.packets() } else { 0 }
    }

    /// The backlog that the link law sees: that of its queues.
    #[inline]
    fn backlog(&self) -> Bytes {
        if self.has_others { self.parts.backlog(&self.queue) } else { Bytes(self.queue.bytes()) }
    }

    /// Serves departures up to and with `departures` and timers before `timers`, in order of time,
    /// departures before timers.
    fn serve(&mut self, departures: Picos, timers: Picos, out: &mut impl Output) {
        loop {
            // Asked twice for each packet that leaves, so it is one comparison.
            while self.departure <= departures.min(self.timer) {
                self.depart(out);
            }
            if self.timer >= timers {
                return;
            }
            self.expire(out);
        }
    }

    /// The queue whose first packet has its turn.
    #[inline(always)]
    fn next_queue(&mut self, now: Picos) -> usize {
        if self.has_others { self.choose(now) } else { 0 }
    }

    fn choose(&mut self, now: Picos) -> usize {
        let parts = &mut *self.parts;
        let Some(law) = &mut parts.queue_law else { return 0 };
        law.next(&mut Waiting::new(&self.queue, &mut parts.others, &parts.service, now))
    }

    /// Calls `each` with every packet that waits, to be given another route: nothing else of it may change.
    pub fn for_each_waiting(&mut self, mut each: impl FnMut(&mut Packet)) {
        self.queue.for_each(&mut each);
        self.parts.others.for_each(&mut each);
    }

    /// The first packet of a queue leaves it.
    #[inline(always)]
    fn pop(&mut self, now: Picos, queue: usize) -> Option<Packet> {
        self.meter.note(now, self.waiting());
        self.take(queue)
    }

    #[inline(always)]
    fn take(&mut self, queue: usize) -> Option<Packet> {
        match queue.checked_sub(1) {
            None => self.queue.pop(),
            Some(other) => self.parts.others.pop(other),
        }
    }

    /// The first packet of the queues begins transmission, or is dropped.
    fn depart(&mut self, out: &mut impl Output) {
        let now = self.departure;
        if self.is_direct && !out.watches() {
            return self.depart_directly(now, out);
        }
        let queue = self.next_queue(now);
        let mut first = self.pop(now, queue);
        let Some(packet) = &mut first else {
            debug_assert!(false, "a departure without a packet");
            self.departure = NEVER;
            return;
        };
        let wait = Duration((now - packet.at) / PS_PER_NS);
        if !self.is_plain && self.parts.queue_law.is_some() && !self.lets_leave(now, queue, packet, wait, out)
        {
            // The next one has its turn.
            self.departure = if self.waiting() == 0 { NEVER } else { now };
            return;
        }
        self.waits.record(wait);
        self.transmit(now, packet, out);
        let is_last = self.queue.is_empty() && self.waiting() == 0;
        self.departure = if is_last { NEVER } else { self.server.next_opening(self.line.busy_until) };
    }

    /// The queue law decides on a packet that leaves.
    #[inline(never)]
    fn lets_leave(
        &mut self,
        now: Picos,
        queue: usize,
        packet: &mut Packet,
        sojourn: Duration,
        out: &mut impl Output,
    ) -> bool {
        let parts = &mut *self.parts;
        let Some(law) = &mut parts.queue_law else { return true };
        let mut queues = Waiting::new(&self.queue, &mut parts.others, &parts.service, now);
        let departure = Departure { now: nanos(now), queue, packet: &*packet, sojourn };
        match law.on_dequeue(&departure, &mut queues, &mut parts.stream) {
            Verdict::Pass | Verdict::PushOut => true,
            Verdict::Mark => {
                self.mark(now, packet, out);
                self.mix_arrival(now, packet, Outcome::Marked);
                true
            }
            Verdict::Drop(reason) => {
                self.drop_packet(now, queue, packet, reason, out);
                false
            }
        }
    }

    fn mark(&mut self, now: Picos, packet: &mut Packet, out: &mut impl Output) {
        packet.flags |= flag::CE;
        self.parts.stats.marks += 1;
        out.event(now, PortEvent::Marked { packet: *packet });
    }

    /// Every timer that is due.
    #[inline(never)]
    fn expire(&mut self, out: &mut impl Output) {
        let now = self.timer;
        let (backlog, waiting) = (self.backlog(), self.waiting());
        let sent_bytes = self.line.sent_bytes(now);
        let parts = &mut *self.parts;
        // The new capacity first: an interval that ends as the rate steps looks ahead.
        if parts.step_at() <= now {
            parts.next_step += 1;
            parts.told = parts.service.capacity_at(now);
            parts.tell_capacity();
        }
        if parts.look_at() <= now {
            let waiting = Bytes(self.queue.bytes() + parts.others.bytes());
            parts.follow(Counters {
                bytes: Bytes(self.line.started_bytes),
                packets: self.line.started,
                waiting,
            });
        }
        if let Some(law) = &mut parts.queue_law
            && picos(law.next_deadline()) <= now
        {
            law.on_deadline(nanos(now), &Waiting::new(&self.queue, &mut parts.others, &parts.service, now));
        }
        if let Some(law) = &mut parts.law
            && picos(law.next_deadline()) <= now
        {
            let before = law.report().intervals();
            law.on_deadline(nanos(now), backlog);
            let report = law.report();
            if report.intervals() != before {
                out.event(now, PortEvent::ControlInterval { report });
                if parts.queue_law.as_mut().is_some_and(|queue| queue.on_interval(parts.told)) {
                    parts.tell_capacity();
                }
            }
        }
        if parts.from <= now {
            parts.from = NEVER;
            parts.measured_from = Some((now, sent_bytes));
            let is_sending = self.line.busy_until > now && self.line.started > 0;
            let stats = &mut parts.stats;
            stats.note_queue(self.meter.longest);
            stats.law = parts.law.as_deref().map(Link::report);
            stats.police = parts.beside.as_ref().and_then(|beside| beside.counts());
            stats.capacity = parts.follower.as_ref().map(|follower| follower.counts());
            stats.before = PortCounts {
                arrived_packets: self.arrived,
                sent_packets: self.line.started - u64::from(is_sending),
                errors: parts.early_errors,
                ..stats.counts()
            };
            stats.measured_max_packets = 0;
            // A bin in which the measurement begins is sampled whole all the same.
            parts.bin_max = self.meter.longest;
            self.meter.longest = waiting;
            self.meter.restart(now);
            parts.bin_waits = self.waits.sum() - parts.sampled_waits;
            parts.sampled_waits = Duration(0);
            self.waits = Histogram::default();
            parts.early_started = self.line.started;
        }
        if parts.next_sample <= now {
            out.event(
                now,
                PortEvent::Sample(Sample {
                    queue_packets: waiting as u64,
                    queue_bytes: self.queue.bytes() + parts.others.bytes(),
                    queue_max_packets: self.meter.longest.max(parts.bin_max) as u64,
                    sent_bytes: sent_bytes - parts.sampled_bytes,
                    law: parts.law.as_deref().map(Link::report),
                    queue: parts.queue_law.as_mut().map(|law| {
                        law.sample(&Waiting::new(&self.queue, &mut parts.others, &parts.service, now))
                    }),
                    collisions: parts.stats.collisions.map(|count| count - parts.sampled_collisions),
                    started_packets: self.line.started - parts.sampled_started,
                    waits: self.waits.sum() - parts.sampled_waits + parts.bin_waits,
                }),
            );
            parts.sampled_started = self.line.started;
            (parts.sampled_waits, parts.bin_waits) = (self.waits.sum(), Duration(0));
            parts.sampled_collisions = parts.stats.collisions.unwrap_or(0);
            parts.stats.note_queue(self.meter.longest);
            parts.bin_max = 0;
            self.meter.longest = waiting;
            parts.sampled_bytes = sent_bytes;
            parts.next_sample = now.saturating_add(parts.sample_every);
        }
        self.timer = if out.goes_on() { parts.timer() } else { NEVER };
    }

    /// An arrival that something has to look at: a law, a queue, an unusual service.
    fn arrive_examined(&mut self, now: Picos, packet: &mut Packet, out: &mut impl Output) {
        let mut waiting = self.waiting();
        let is_idle = waiting == 0 && self.line.busy_until <= now;
        let waits = !is_idle || self.server.is_closed();
        let backlog = self.backlog();
        let parts = &mut *self.parts;
        let queue = match &parts.queue_law {
            Some(law) if self.has_others => law.classify(packet, packet.flow),
            _ => 0,
        };
        let mut is_of_link_law = true;
        if self.is_special {
            if self.looks_first && !self.look_first(now, packet, out) {
                return;
            }
            is_of_link_law = self.parts.is_of_link_law(queue);
        }
        let parts = &mut *self.parts;
        if let Some(law) = &mut parts.law
            && is_of_link_law
        {
            law.on_arrival(nanos(now), packet);
            if parts.feedback_at == FeedbackAt::Enqueue {
                edit(law, &mut parts.beside, now, packet, backlog, out);
            }
        }
        let has_law = parts.queue_law.is_some();
        let refusal = if has_law {
            let idle_since = is_idle.then_some(self.line.busy_until);
            let refusal = self.refusal(now, queue, packet, waits, idle_since, out);
            // Others may have been pushed out.
            waiting = self.waiting();
            refusal
        } else {
            (waits && !self.queue.fits(packet.size)).then_some(Reason::QueueFull)
        };
        if let Some(reason) = refusal {
            self.drop_packet(now, queue, packet, reason, out);
            return;
        }
        self.mix_arrival(now, packet, Outcome::Accepted);
        if waits {
            self.begin_to_wait(now, waiting);
            packet.at = now;
            if self.has_others {
                self.join_one_of(now, queue, packet, out);
                waiting = self.waiting();
            } else {
                self.queue.push(packet);
                waiting += 1;
            }
            self.meter.reach(waiting);
        } else {
            self.server.rest();
            if !has_law || self.lets_leave(now, queue, packet, Duration(0), out) {
                self.transmit(now, packet, out);
            }
        }
    }

    /// Tells the law what a trace offered, if it watches arrivals, and asks the policer; false: it has dropped the packet.
    #[cold]
    #[inline(never)]
    fn look_first(&mut self, now: Picos, packet: &mut Packet, out: &mut impl Output) -> bool {
        let parts = &mut *self.parts;
        if let Some(window) = parts.watches
            && parts.feedback_at == FeedbackAt::Enqueue
        {
            parts.tell_offered(now, window);
        }
        if let Some(law) = parts.queue_law.as_ref().filter(|_| self.has_others)
            && !parts.is_of_link_law(law.classify(packet, packet.flow))
        {
            return true;
        }
        let capacity = parts.queue_law.as_ref().map_or(parts.told, |queue| queue.share(parts.told));
        if parts.beside.as_mut().is_none_or(|beside| beside.judge(nanos(now), capacity, packet)) {
            return true;
        }
        // No queue law hears of it: the packet has come to no queue.
        let reason = Reason::Policed;
        parts.stats.drops[reason as usize] += 1;
        self.mix_arrival(now, packet, Outcome::Dropped(reason));
        out.event(now, PortEvent::Dropped { packet: *packet, reason });
        false
    }

    /// The queue law decides on an arrival.
    #[inline(never)]
    fn refusal(
        &mut self,
        now: Picos,
        queue: usize,
        packet: &mut Packet,
        waits: bool,
        idle_since: Option<Picos>,
        out: &mut impl Output,
    ) -> Option<Reason> {
        let parts = &mut *self.parts;
        let law = parts.queue_law.as_mut()?;
        let mut queues =
            Waiting::new(&self.queue, &mut parts.others, &parts.service, now).met(waits, idle_since);
        let is_low_priority = is_low_priority(packet);
        let arrival =
            Arrival { now: nanos(now), queue, flow: packet.flow, packet: &*packet, is_low_priority };
        match law.on_enqueue(&arrival, &mut queues, &mut parts.stream) {
            Verdict::Pass => {}
            Verdict::Mark => self.mark(now, packet, out),
            Verdict::PushOut => self.push_out(now, queue, packet.size, out),
            Verdict::Drop(reason) => return Some(reason),
        }
        None
    }

    /// Before a packet joins the `waiting` ones.
    #[inline(always)]
    fn begin_to_wait(&mut self, now: Picos, waiting: usize) {
        self.meter.note(now, waiting);
        if waiting == 0 {
            self.departure = self.server.opening(now, self.line.busy_until);
        }
    }

    /// Makes room for `size` bytes at the cost of the newest low-priority packets.
    fn push_out(&mut self, now: Picos, queue: usize, size: u16, out: &mut impl Output) {
        self.meter.note(now, self.waiting());
        let make_room = |port: &mut Self| match queue.checked_sub(1) {
            None => port.queue.make_room(size),
            Some(other) => port.parts.others.make_room(other, size),
        };
        while let Some(packet) = make_room(self) {
            self.drop_packet(now, queue, &packet, Reason::PushedOut, out);
        }
    }

    /// A packet joins one of several queues; others may have to go for it.
    #[inline(never)]
    fn join_one_of(&mut self, now: Picos, queue: usize, packet: &Packet, out: &mut impl Output) {
        match queue.checked_sub(1) {
            None => drop(self.queue.push(packet)),
            Some(other) => self.parts.others.push(other, packet),
        }
        if self.parts.others.overflows(&self.queue) {
            self.drop_victims(now, out);
        }
    }

    /// Drops packets of the queues that the law chooses, until no more waits than may. The time until now is noted.
    fn drop_victims(&mut self, now: Picos, out: &mut impl Output) {
        while self.parts.others.overflows(&self.queue) {
            let parts = &mut *self.parts;
            let Some(law) = &mut parts.queue_law else { return };
            let victim =
                law.on_overflow(&mut Waiting::new(&self.queue, &mut parts.others, &parts.service, now));
            let (mut packets, mut bytes) = (0, 0);
            while packets == 0 || (packets < victim.packets && bytes < victim.bytes.0) {
                let Some(packet) = self.take(victim.queue) else {
                    debug_assert!(packets > 0, "a victim without a packet");
                    break;
                };
                packets += 1;
                bytes += u64::from(packet.size);
                self.drop_packet(now, victim.queue, &packet, Reason::QueueFull, out);
            }
            if packets == 0 {
                return;
            }
        }
        if self.waiting() == 0 {
            self.departure = NEVER;
        }
    }

    fn drop_packet(
        &mut self,
        now: Picos,
        queue: usize,
        packet: &Packet,
        reason: Reason,
        out: &mut impl Output,
    ) {
        self.mix_arrival(now, packet, Outcome::Dropped(reason));
        let parts = &mut *self.parts;
        parts.stats.drops[reason as usize] += 1;
        if let Some(law) = &mut parts.queue_law {
            let mut queues = Waiting::new(&self.queue, &mut parts.others, &parts.service, now);
            law.on_drop(queue, reason, &mut queues);
        }
        if let Some(beside) = &mut parts.beside {
            beside.note_drop(packet);
        }
        out.event(now, PortEvent::Dropped { packet: *packet, reason });
    }

    /// A packet passes to the wire of a plain port.
    #[inline(always)]
    fn transmit_plain(&mut self, now: Picos, packet: &mut Packet, out: &mut impl Output) {
        if out.watches() {
            out.event(now, PortEvent::Departed { packet: *packet });
        }
        let size = packet.size;
        let end = self.server.transmit_fixed(now, u32::from(size));
        let at = self.line.begin(size, end);
        self.line.deliver(at);
        out.sent(now, &Packet { at, ..*packet }, false);
        out.deliver_at(at, packet);
    }

    /// A packet leaves the queue for the wire.
    // Always: twice in line it takes fewer instructions than two calls.
    #[inline(always)]
    fn transmit(&mut self, now: Picos, packet: &mut Packet, out: &mut impl Output) {
        if self.is_plain {
            return self.transmit_plain(now, packet, out);
        }
        let size = packet.size;
        if out.watches() {
            out.event(now, PortEvent::Departed { packet: *packet });
        }
        let end = self.server.transmit(now, u32::from(size));
        let at = self.line.begin(size, end);
        let backlog = self.backlog();
        let parts = &mut *self.parts;
        if let Some(window) = parts.watches {
            parts.tell_offered(now, window);
        }
        if let Some(law) = &mut parts.law {
            if parts.feedback_at == FeedbackAt::Departure {
                edit(law, &mut parts.beside, now, packet, backlog, out);
            }
            self.fingerprint = mix_departure(self.fingerprint, now, packet);
        }
        packet.at = at;
        let is_lost = parts.faults.as_mut().is_some_and(|faults| faults.befall(packet));
        out.sent(now, packet, is_lost);
        let at = packet.at;
        if !is_lost {
            self.line.deliver(at);
            out.deliver(packet);
            return;
        }
        if at <= self.line.to {
            parts.stats.errors += 1;
            parts.early_errors += u64::from(parts.from != NEVER && at <= parts.from);
            out.event(at, PortEvent::Errored { packet: *packet });
        }
        self.mix_arrival(now, packet, Outcome::Errored);
    }

    #[inline]
    fn mix_arrival(&mut self, now: Picos, packet: &Packet, outcome: Outcome) {
        let name = u64::from(packet.flow) << 32 | u64::from(packet.seq);
        let kind = u64::from(packet.size) | (packet.kind as u64) << 16 | u64::from(packet.flags) << 24;
        let look = (kind | outcome.code() << 32).wrapping_mul(MIX[1]);
        self.fingerprint = fold(self.fingerprint ^ now, name ^ look);
    }
}
