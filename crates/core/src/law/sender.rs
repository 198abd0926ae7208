//! The part of a law that senders run, and what TCP's machinery tells it.

#[cfg(doc)]
use super::Segment;
use super::settings::Settings;
use super::{EchoLaw, On, OptionBytes, Packet, Reply};
use crate::units::{Bytes, Duration, Rate, Ratio, Time, Wide};
use core::any::Any;

/// One acknowledgment, as TCP's machinery reports it to a sender law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ack {
    /// Data that the ACK newly acknowledges cumulatively.
    pub acked: Bytes,
    /// Data in flight before the ACK (RFC 6675 pipe, or sent and not acknowledged without SACK).
    pub flight: Bytes,
    /// Window that the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
    /// Round trip time that the ACK samples; zero: none.
    pub rtt: Duration,
    /// Smoothed round trip time, this sample included; zero: unknown.
    pub srtt: Duration,
    /// Reply of the receiver's echo law.
    pub reply: Reply,
    /// True for a duplicate: the ACK acknowledges nothing new.
    pub is_duplicate: bool,
    /// True if the window must not grow: in fast recovery, and when the ACK echoes a mark (RFC 3168 §6.1.2). False after a
    /// timeout, since the window grows again while the sender repairs (RFC 5681 §3.1).
    pub in_recovery: bool,
    /// True if the window, not the application or the receiver, limited the sender since the last ACK
    /// (RFC 5681 is silent; RFC 7661 and RFC 9438 §5.8 let an unused window not grow).
    pub is_window_limited: bool,
    /// True if another ACK overtook this one: it acknowledges less than one that came before.
    pub is_late: bool,
    /// True while the sender repairs losses, by fast recovery or after a timeout.
    pub is_repairing: bool,
}

/// A packet about to be sent, as TCP's machinery reports it to a sender law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Send {
    /// Size of the whole IP packet.
    pub size: Bytes,
    /// Smoothed round trip time; zero: unknown, or the header must not state it yet.
    pub srtt: Duration,
    /// Window that the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
    /// Data that the application has ready and that was never sent, this packet included.
    pub backlog: Bytes,
    /// Window inflation by duplicate ACKs (Reno without SACK), which ns-2 counts in X.
    pub inflation: Bytes,
    /// True if the window (and nothing else) stops the sender after this packet.
    pub is_window_limited: bool,
}

/// Delivery-rate sample of an acknowledgment (draft-cheng-iccrg-delivery-rate-estimation-00), for laws that ask
/// for it ([`Needs::delivery`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Delivery {
    /// C.delivered: all data delivered so far, in order or not.
    pub total: Bytes,
    /// Data that this acknowledgment newly reports as delivered.
    pub newly: Bytes,
    /// P.delivered: `total` when the packet was sent that, of those newly delivered, was sent last.
    pub prior: Bytes,
    /// Time in which the data since `prior` was sent, or was acknowledged, whichever took longer; zero: no sample.
    pub interval: Duration,
    /// Data found lost with this acknowledgment.
    pub lost: Bytes,
    /// Data found lost since the packet was sent that `prior` is of.
    pub lost_since: Bytes,
    /// Data in flight when that packet was sent, itself included.
    pub sent_flight: Bytes,
    /// The same two of the packet that, of those found lost, was sent last; zero: none was.
    pub lost_until: Bytes,
    /// Data in flight when that lost packet was sent, itself included.
    pub lost_flight: Bytes,
    /// Data in flight before the acknowledgment.
    pub prior_flight: Bytes,
    /// Data in flight after the acknowledgment.
    pub flight: Bytes,
    /// Round trip time sampled; zero: none.
    pub rtt: Duration,
    /// True if the application had too little data to send all that the window let go.
    pub is_app_limited: bool,
    /// True while the sender repairs a loss, by fast recovery or after a timeout, as of this acknowledgment.
    pub in_recovery: bool,
}

/// State of a connection whose law is asked for a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ask {
    /// Smoothed round trip time; zero: unknown.
    pub srtt: Duration,
    /// Window that the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
}

/// Segment that a probe carries once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Probe {
    /// The new segment that was sent last.
    Last,
    /// A random one of those that are outstanding and not acknowledged; without one, the last.
    Random,
}

/// Answer of a law that is asked for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A probe goes now.
    Send(Probe),
    /// No probe goes before this time, unless something happens.
    Wait(Time),
}

/// No probe goes.
impl Default for Turn {
    #[inline]
    fn default() -> Self {
        Self::Wait(Time::NEVER)
    }
}

/// Device on a path that gives a law its signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giver {
    /// A link law that gives the signal of this name: [`super::LinkLaw::signal`].
    Law(&'static str),
    /// A queue that marks ECN-capable packets; one that suits the law, as a scenario writes it.
    Marks(&'static str),
    /// A queue discipline of this name.
    Queue(&'static str),
}

/// The network that a law needs: the signal that it reads on its path, beside losses and round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Device that gives the signal.
    pub giver: Giver,
    /// True if the slowest link of a path must have the device; false: one link is enough, because the law has a window of
    /// its own for the others.
    pub at_bottleneck: bool,
    /// A clause that says what a flow does where no device gives the signal.
    pub without: &'static str,
    /// A clause that says what the flow makes of a mark of RFC 3168; empty: it takes the mark for one.
    pub marked: &'static str,
    /// A clause that says what is lost with an acknowledgment; empty: nothing, because later ones bring it again.
    pub unacknowledged: &'static str,
}

/// Needs of a sender law: parts of the machinery around it, and of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Network that the law needs; `None`: losses and round trips are enough.
    pub network: Option<Network>,
    /// Initial window in packets; `None`: RFC 5681's, by the size of the segment.
    pub initial_window: Option<u32>,
    /// True if the law wants [`SenderLaw::on_delivery`], for which the sender keeps a record of each packet in flight.
    pub delivery: bool,
    /// True if the law decides something by chance, from [`SenderLaw::seed`].
    pub draws: bool,
    /// True if the law sends probes: copies of segments, of low priority, which no window counts and nothing repeats.
    /// Their ACKs come back with low priority.
    pub probes: bool,
    /// True if the law looks into the IP and TCP headers of packets ([`Segment`]): a connection then has numbers of its
    /// own.
    pub segments: bool,
    /// True if the law writes into them, so that it matters which numbers they have.
    pub writes_segments: bool,
    /// True if the two ECN bits of packets are the law's: it sets them in [`SenderLaw::on_send`], its receiver reads
    /// them in each packet that comes and returns what the law counts in the [`Reply`], and nothing of RFC 3168 is done.
    pub owns_ecn: bool,
    /// True if packets state the flow's round trip to the links.
    pub states_round_trip: bool,
    /// True if hosts can be nodes of XCP-i, whose messages ride beside the law's header.
    pub is_interoperable: bool,
    /// The most that a flow asks links for; `None`: it asks for nothing. What links give it can be lost before it is known to be
    /// too much, which is what a run's memory is judged by.
    pub asks: Option<Rate>,
    /// True if a flow begins at the rate of its line: at the most that it asks for.
    pub begins_at_line_rate: bool,
    /// Part of its packets that a flow may lose, for a run's memory; `None`: what TCP loses with such a window.
    pub loses: Option<Ratio>,
    /// True if each packet is acknowledged, whatever the receiver would rather do.
    pub each_acknowledged: bool,
    /// Settings of the law's own slow start, if the window has a threshold, at which a loss leaves it, and slow start can be run
    /// from outside, without them ([`SenderLaw::threshold`]); `None`: it can not.
    pub slow_start: Option<&'static [&'static str]>,
    /// True if a loss does not lower the rate: then lost retransmissions must be found, too, without a timeout.
    pub withstands_loss: bool,
    /// True if a paced packet that is late may leave at most half an interval after the one before it, as in Linux
    /// (`tcp_update_skb_after_send` in `net/ipv4/tcp_output.c`); else up to four leave at once. A queue that marks at
    /// a few packets takes such a burst for congestion.
    pub leaves_apart: bool,
    /// True if the SYN carries the law's header, and what the SYN-ACK returns goes to [`SenderLaw::on_ack`].
    pub handshake: bool,
    /// Bytes of the congestion header of each data packet, as `payload_bps` counts them (docs/design/contract.md 5).
    pub header_bytes: u16,
}

impl Needs {
    /// A window, and no more.
    pub const NONE: Self = Self {
        network: None,
        initial_window: None,
        delivery: false,
        draws: false,
        probes: false,
        segments: false,
        writes_segments: false,
        owns_ecn: false,
        states_round_trip: false,
        is_interoperable: false,
        asks: None,
        begins_at_line_rate: false,
        loses: None,
        each_acknowledged: false,
        slow_start: None,
        withstands_loss: false,
        leaves_apart: false,
        handshake: false,
        header_bytes: 0,
    };
}

/// Window of a law of TCP's family and its slow-start threshold.
#[derive(Debug)]
pub struct Threshold<'a> {
    /// The window, bytes with `places`.
    pub cwnd: &'a mut u64,
    /// The threshold, likewise; the largest number: there is none.
    pub ssthresh: &'a mut u64,
    /// Binary places of both.
    pub places: u32,
}

impl Threshold<'_> {
    /// Grows the window by `growth`, not beyond its threshold, if it is in slow start; returns false if it is not.
    #[inline]
    pub fn grow(self, growth: Bytes) -> bool {
        let is_slow = *self.cwnd < *self.ssthresh;
        if is_slow {
            let growth = Wide::shifted(growth.0, self.places).to_u64();
            *self.cwnd = self.cwnd.saturating_add(growth).min(*self.ssthresh);
        }
        is_slow
    }

    /// Ends slow start: the threshold is the window from now on.
    #[inline]
    pub fn leave(self) {
        *self.ssthresh = (*self.ssthresh).min(*self.cwnd);
    }
}

/// A sender law: the state of one flow. TCP's machinery (detecting and repairing losses, measuring round trips)
/// calls it; it keeps the window.
pub trait SenderLaw: Sized + 'static {
    /// Configuration that all flows of the law share.
    type Config: Settings;
    /// The receiver's part; `()`: it has none.
    type Echo: EchoLaw<Self::Config>;
    /// True if the law puts nothing on packets and never paces, so that nobody need call [`SenderLaw::on_send`] and
    /// [`SenderLaw::pacing_rate`].
    const IS_SILENT: bool = false;

    /// Returns the name of the law, that of a protocol of its file.
    fn name(config: &Self::Config) -> &'static str;

    /// Returns what the law needs of the machinery around it.
    #[inline(always)]
    fn needs(_config: &Self::Config) -> Needs {
        Needs::NONE
    }

    /// Creates the state of a new connection. `mss` counts the whole IP packet.
    fn start(config: &Self::Config, mss: Bytes, initial_window: Bytes) -> Self;

    /// Takes the number from which the law draws, once, at the start of a connection.
    #[inline(always)]
    fn seed(&mut self, _seed: u64) {}

    /// Takes the delivery-rate sample of one acknowledgment, once everything else about it is done. Returns true if
    /// what is in flight now and what is sent until it is delivered says nothing of the path (as if the application
    /// had no more data).
    #[inline(always)]
    fn on_delivery(&mut self, _config: &Self::Config, _now: Time, _delivery: &Delivery) -> bool {
        false
    }

    /// Takes one acknowledgment, a duplicate too: each may carry a reply.
    fn on_ack(&mut self, config: &Self::Config, now: Time, ack: &Ack);

    /// Returns the window and its threshold, for machinery that runs slow start itself, of laws that let it
    /// ([`Needs::slow_start`]).
    #[inline(always)]
    fn threshold(&mut self) -> Option<Threshold<'_>> {
        None
    }

    /// Reacts to a loss when fast retransmit begins: once per window of data. `flight` is FlightSize (RFC 5681 §3.2).
    fn on_loss(&mut self, config: &Self::Config, now: Time, flight: Bytes);

    /// Reacts to marks that the receiver echoes as RFC 3168 has it: once per window of data. As to a loss, unless the law
    /// says otherwise.
    #[inline(always)]
    fn on_mark(&mut self, config: &Self::Config, now: Time, flight: Bytes) {
        self.on_loss(config, now, flight);
    }

    /// Reacts to the end of the retransmission timer; `is_first` unless it expired for the same segment before.
    fn on_timeout(&mut self, config: &Self::Config, now: Time, flight: Bytes, is_first: bool);

    /// Prepares to send again after longer than a retransmission timeout without sending (RFC 5681 §4.1).
    fn on_restart(&mut self, config: &Self::Config, now: Time, initial_window: Bytes);

    /// Meters a packet that is about to leave and puts on it what the law tells: its headers, its ECN code. Where the
    /// connection shows IP and TCP headers they are on the packet, right but for what the law may change in them.
    #[inline(always)]
    fn on_send(&mut self, _config: &Self::Config, _now: Time, _send: &Send, _packet: &mut impl Packet) {}

    /// Decides on a probe. Asked whenever the connection may send, until it says wait, and when that is over.
    #[inline(always)]
    fn probe(&mut self, _config: &Self::Config, _now: Time, _ask: &Ask) -> Turn {
        Turn::default()
    }

    /// Takes the ACK of a probe; `awnd` as in [`Ack`]. Data that the ACK acknowledges besides goes to
    /// [`SenderLaw::on_ack`].
    #[inline(always)]
    fn on_probe_ack(&mut self, _config: &Self::Config, _awnd: Bytes) {}

    /// Returns the TCP option that says on the wire what the law has on a packet, for captures; `None`: it says nothing
    /// there, or in other bytes.
    #[inline(always)]
    fn option(_config: &Self::Config, _on: On<'_>) -> Option<OptionBytes> {
        None
    }

    /// Returns the congestion window, at least one segment.
    fn window(&self) -> Bytes;

    /// Returns how often a loss or a congestion mark that the law answers by itself has lowered the window, modulo 2^32. Left
    /// out are [`SenderLaw::on_loss`] and [`SenderLaw::on_mark`], after which the sender compares windows; feedback that
    /// states by how much the window moves, such as XCP's; and delays.
    #[inline(always)]
    fn cuts(&self) -> u32 {
        0
    }

    /// Returns the rate to pace at; `None`: send as the window opens.
    #[inline(always)]
    fn pacing_rate(&self, _config: &Self::Config, _srtt: Duration) -> Option<Rate> {
        None
    }

    /// Calls `tell` with each metric that the law adds to those of every flow: name, numerator and denominator.
    fn each(&self, _tell: &mut impl FnMut(&'static str, i64, u32)) {}

    /// Returns the configuration of the law that this one is a variant of, else its own.
    #[inline(always)]
    fn base(config: &Self::Config) -> &dyn Any {
        config
    }

    /// Returns the configuration of the law that this one is a variant of, else its own, to change it.
    #[inline(always)]
    fn base_mut(config: &mut Self::Config) -> &mut dyn Any {
        config
    }

    /// Returns the state of the law that this one is a variant of, else its own, for observers.
    #[inline(always)]
    fn base_state(&self) -> &dyn Any {
        self
    }
}
