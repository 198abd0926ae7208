//! Control laws: one file per protocol, with up to three parts (link, sender, echo), and the list of protocols
//! ([`Protocol::all`]), which names all that there are with their settings.

pub mod bbr;
pub mod bic;
pub mod cubic;
mod echo;
pub mod highspeed;
pub mod mpcp;
pub mod peach;
mod places;
pub mod pxcp;
pub mod reno;
pub mod settings;
pub mod vegas;
pub mod xcp;
pub mod xcp_i;
pub mod xcp_r;
pub mod xcp_r_v0;

pub use echo::{Data, Echo, Reply};

use crate::units::{Bytes, Duration, Rate, Time};
use settings::{Field, Settings};

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
    /// Reverse_Feedback, B/s; 0 without a congestion header. With MPCP the word of [`mpcp::Echoed`].
    pub feedback: i32,
    /// True for a duplicate: the ACK acknowledges nothing new.
    pub is_duplicate: bool,
    /// True while the sender repairs a loss (fast recovery or after a timeout, until the recovery point).
    pub in_recovery: bool,
    /// True if the window, not the application or the receiver, limited the sender since the last ACK
    /// (RFC 5681 is silent; RFC 7661 and RFC 9438 §5.8 let an unused window not grow).
    pub is_window_limited: bool,
    /// True if another ACK overtook this one: it acknowledges less than one that came before.
    pub is_late: bool,
    /// XCP-r's window and its epoch; meaningless without XCP-r.
    pub reply: xcp_r::Reply,
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
/// for it ([`SenderLaw::SAMPLES_DELIVERY`]).
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
    /// Data in flight before the acknowledgment.
    pub prior_flight: Bytes,
    /// Data in flight after the acknowledgment.
    pub flight: Bytes,
    /// Round trip time sampled; zero: none.
    pub rtt: Duration,
    /// True if the application had too little data to send all that the window let go.
    pub is_app_limited: bool,
    /// True while the sender repairs a loss, after this acknowledgment.
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

/// A packet, as a link law sees it.
pub trait Packet {
    /// Returns the size of the whole IP packet.
    fn size(&self) -> Bytes;
    /// Returns the packet's congestion header of the standard format, if it has one.
    fn xcp(&self) -> Option<xcp::Header>;
    /// Replaces the congestion header of a packet that has one.
    fn set_xcp(&mut self, header: xcp::Header);
    /// Returns the ECN field of the IP header; 0 for packets that it does not concern, as pure ACKs.
    #[inline(always)]
    fn ecn(&self) -> u8 {
        0
    }
    /// Sets the ECN field of the IP header.
    #[inline(always)]
    fn set_ecn(&mut self, _code: u8) {}
    /// Returns the packet's IP and TCP headers, if it has them.
    #[inline(always)]
    fn segment(&self) -> Option<mpcp::Segment> {
        None
    }
    /// Returns the router's record of the flow that the headers belong to; with `is_new` the router may begin one.
    #[inline(always)]
    fn flow(&mut self, _now: Time, _is_new: bool) -> Option<&mut mpcp::Flow> {
        None
    }
}

/// A sender law: the state of one flow. TCP's machinery (detecting and repairing losses, measuring round trips)
/// calls it; it keeps the window.
pub trait SenderLaw: Sized {
    /// Configuration that all flows of the law share.
    type Config: Settings;

    /// Initial window in packets; `None`: RFC 5681's, by the size of the segment.
    const INITIAL_WINDOW: Option<u32> = None;

    /// Creates the state of a new connection. `mss` counts the whole IP packet.
    fn start(config: &Self::Config, mss: Bytes, initial_window: Bytes) -> Self;

    /// True if the law wants [`SenderLaw::on_delivery`], for which the sender keeps a record of each packet in flight.
    const SAMPLES_DELIVERY: bool = false;

    /// True if the law decides something by chance.
    const DRAWS: bool = false;

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

    /// Takes one acknowledgment, a duplicate too: every XCP ACK carries feedback.
    fn on_ack(&mut self, config: &Self::Config, now: Time, ack: &Ack);

    /// Reacts to a loss when fast retransmit begins: once per window of data. `flight` is FlightSize (RFC 5681 §3.2).
    fn on_loss(&mut self, config: &Self::Config, now: Time, flight: Bytes);

    /// Reacts to the end of the retransmission timer; `is_first` unless it expired for the same segment before.
    fn on_timeout(&mut self, config: &Self::Config, now: Time, flight: Bytes, is_first: bool);

    /// Prepares to send again after longer than a retransmission timeout without sending (RFC 5681 §4.1).
    fn on_restart(&mut self, config: &Self::Config, now: Time, initial_window: Bytes);

    /// Meters a packet that is about to leave and returns its congestion header, for laws that have one.
    #[inline(always)]
    fn on_send(&mut self, _config: &Self::Config, _now: Time, _send: &Send) -> Option<xcp::Header> {
        None
    }

    /// Returns the second congestion header of the packet that [`SenderLaw::on_send`] was called for, for laws
    /// that have one.
    #[inline(always)]
    fn on_send_window(&mut self, _config: &Self::Config) -> Option<xcp_r::Header> {
        None
    }

    /// Returns the place in its chain of the packet that [`SenderLaw::on_send`] was called for, for laws that tell
    /// it in the headers of IP and TCP.
    #[inline(always)]
    fn on_send_place(&mut self, _config: &Self::Config, _now: Time, _srtt: Duration) -> Option<u8> {
        None
    }

    /// True if the law sends probes: copies of segments, of low priority, which no window counts and nothing repeats.
    /// Their ACKs come back with low priority.
    const PROBES: bool = false;

    /// Decides on a probe. Asked whenever the connection may send, until it says wait, and when that is over.
    #[inline(always)]
    fn probe(&mut self, _config: &Self::Config, _now: Time, _ask: &Ask) -> Turn {
        Turn::Wait(Time::NEVER)
    }

    /// Takes the ACK of a probe; `awnd` as in [`Ack`]. Data that the ACK acknowledges besides goes to
    /// [`SenderLaw::on_ack`].
    #[inline(always)]
    fn on_probe_ack(&mut self, _config: &Self::Config, _awnd: Bytes) {}

    /// Returns true if a loss does not lower the rate: then lost retransmissions must be found, too, without a timeout.
    #[inline(always)]
    fn withstands_loss(_config: &Self::Config) -> bool {
        false
    }

    /// Returns the congestion window, at least one segment.
    fn window(&self) -> Bytes;

    /// Creates the receiver's part for a new connection. `mss` counts the whole IP packet.
    #[inline(always)]
    fn echo(_config: &Self::Config, _mss: Bytes) -> Echo {
        Echo::Feedback(xcp::Echo::default())
    }

    /// Takes a data packet with a standard header at the receiver: in order or not, the first time or again. Each
    /// of them was given its share by the links, so each counts.
    #[inline(always)]
    fn on_data(_config: &Self::Config, echo: &mut Echo, data: &Data) {
        match echo {
            Echo::Feedback(echo) => echo.on_data(&data.header),
            Echo::Bytes(echo) => echo.on_data(&data.header),
            Echo::Window(_) | Echo::Chain(_) => {}
        }
    }

    /// Returns the rate to pace at; `None`: send as the window opens.
    #[inline(always)]
    fn pacing_rate(&self, _config: &Self::Config, _srtt: Duration) -> Option<Rate> {
        None
    }

    /// Returns the bytes of the congestion header of each data packet, as `payload_bps` counts them
    /// (docs/design/contract.md 5): draft-03's. What XCP-r and XCP-i add (`wire::xcp_extended`) is in the segment and
    /// counts as payload.
    #[inline(always)]
    fn header_bytes(_config: &Self::Config) -> u16 {
        0
    }

    /// Returns XCP's configuration, for laws of its family.
    #[inline(always)]
    fn xcp_config(_config: &Self::Config) -> Option<&xcp::SenderConfig> {
        None
    }

    /// Returns XCP's configuration to change it, for laws of its family.
    #[inline(always)]
    fn xcp_config_mut(_config: &mut Self::Config) -> Option<&mut xcp::SenderConfig> {
        None
    }

    /// Returns the state of XCP's sender, for laws of its family.
    #[inline(always)]
    fn xcp(&self) -> Option<&xcp::Sender> {
        None
    }

    /// Returns the index of the configuration's protocol in the list of its file.
    #[inline]
    fn preset(_config: &Self::Config) -> usize {
        0
    }

    /// Returns MPCP's configuration, for laws of its family.
    #[inline(always)]
    fn mpcp_config(_config: &Self::Config) -> Option<&mpcp::SenderConfig> {
        None
    }

    /// Returns the load and the mode that a flow of MPCP's family acts on.
    #[inline(always)]
    fn mpcp(&self) -> Option<mpcp::State> {
        None
    }
}

/// A link law: the state of one output port.
pub trait LinkLaw: Sized {
    /// Constants and switches of the law.
    type Config: Settings;
    /// Report of the last control interval: what it measured and decided.
    type Report: Series;

    /// Creates the state of a port. `phase` is the first deadline: where in its first interval the port begins;
    /// `second_phase` the same for the second timer of laws that have two. Ports must not act in step.
    fn start(config: &Self::Config, phase: Duration, second_phase: Duration) -> Self;

    /// Returns the length of the first control interval, in which the phases lie.
    fn first_interval(config: &Self::Config) -> Duration;

    /// Returns the least length of a control interval but the first, where no packet states a shorter round trip than
    /// `round_trip`.
    fn shortest_interval(config: &Self::Config, round_trip: Duration) -> Duration;

    /// Returns the capacity of the link that the law computes with.
    fn capacity(config: &Self::Config) -> Rate;

    /// Sets the capacity of the link that the law computes with.
    fn configure_capacity(config: &mut Self::Config, capacity: Rate);

    /// Changes the capacity from the next control interval on.
    fn set_capacity(&mut self, capacity: Rate);

    /// Takes a packet before it is queued, also if it is then dropped: it asked for capacity.
    fn on_arrival(&mut self, now: Time, packet: &impl Packet);

    /// Writes the link's feedback into a packet just before transmission; `backlog` is what stays queued.
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes);

    /// Returns the earliest deadline.
    fn next_deadline(&self) -> Time;

    /// Serves every deadline that is due at `now`; `backlog` is what is queued.
    fn on_deadline(&mut self, now: Time, backlog: Bytes);

    /// Closes the control interval now, with the spare bandwidth of an estimate in the place of C - y
    /// (XI eq. 1 as a rate: F = alpha BW - beta Q / d). So a virtual router is a link that its owner
    /// times: it serves no deadline of its own. For laws of XCP's family.
    #[inline(always)]
    fn close_told(&mut self, _now: Time, _told: &xcp::Told) {}

    /// Returns y, the input rate, of the running interval so far, for laws of XCP's family.
    #[inline(always)]
    fn input(&self, _now: Time) -> Rate {
        Rate(0)
    }

    /// Returns the report of the last control interval, for series and events.
    fn report(&self) -> Self::Report;

    /// Returns d, the mean round trip time, for laws of XCP's family; zero: none.
    #[inline(always)]
    fn mean_rtt(&self) -> Duration {
        Duration(0)
    }

    /// Returns the feedback that [`LinkLaw::on_departure`] would give the packet now, for observers.
    #[inline(always)]
    fn share(&self, _packet: &impl Packet) -> Option<xcp::Share> {
        None
    }

    /// Returns XCP's configuration, for laws of its family.
    #[inline(always)]
    fn xcp(_config: &Self::Config) -> Option<&xcp::LinkConfig> {
        None
    }

    /// Returns XCP's configuration to change it, for laws of its family.
    #[inline(always)]
    fn xcp_mut(_config: &mut Self::Config) -> Option<&mut xcp::LinkConfig> {
        None
    }

    /// Returns the index of the configuration's protocol in the list of its file.
    #[inline]
    fn preset(_config: &Self::Config) -> usize {
        0
    }

    /// Returns the most flows that the router shall remember, and for how long without packets; `None`: none.
    #[inline(always)]
    fn flows(_config: &Self::Config) -> Option<(u32, Duration)> {
        None
    }
}

/// Report of a link law as columns of a time series.
pub trait Series {
    /// Returns the number of control intervals so far.
    fn intervals(&self) -> u64;
    /// Returns the decision of the last interval, for its event: XCP's F, B/s.
    fn decision(&self) -> i64;
    /// Calls `tell` with each metric: name, numerator and denominator, so that a law needs no floats.
    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32));
    /// Returns XCP's part of the report, for laws of its family.
    #[inline]
    fn xcp(&self) -> Option<&xcp::Report> {
        None
    }
}

/// A protocol as scenarios name it. One law file may have several, which are presets of one law.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// Name in a scenario.
    pub name: &'static str,
    /// Description in a line.
    pub about: &'static str,
    /// Page of the protocol: `docs/protocols/<page>.md`.
    pub page: &'static str,
    /// Link law and its default configuration; `None`: links run none.
    pub link: Option<LinkConfig>,
    /// Sender law and its default configuration; `None`: flows run none.
    pub sender: Option<SenderConfig>,
}

impl Protocol {
    /// Returns the protocol of that name.
    #[inline] // or it would be in each BPF object
    pub fn of(name: &str) -> Option<&'static Self> {
        Self::all().find(|protocol| protocol.name == name)
    }
}

/// The list: each law file, with the laws of links and senders that it defines and the names of
/// their variants here. Its `protocols` say what scenarios call them.
macro_rules! protocols {
    ($($module:ident {
        $(link $Link:ident($link:ty))?
        $(sender $Sender:ident($sender:ty))?
    })*) => {
        impl Protocol {
            /// Returns all protocols, in the order of the list.
            // Functions, not constants, also in the law files: those would be in each BPF object.
            pub fn all() -> impl Iterator<Item = &'static Self> {
                [$($module::protocols()),*].into_iter().flatten()
            }
        }

        /// Configuration of a sender law, shared by all flows that run it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum SenderConfig {
            $($(
                #[doc = concat!("Configuration of [`", stringify!($module), "`]'s sender law.")]
                $Sender(<$sender as SenderLaw>::Config),
            )?)*
        }

        /// A sender law of any protocol, with its state.
        #[derive(Clone, Debug)]
        pub enum Law {
            $($(
                #[doc = concat!("State of [`", stringify!($module), "`]'s sender law.")]
                $Sender($sender),
            )?)*
        }

        /// Configuration of a link law, one for each output port.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum LinkConfig {
            $($(
                #[doc = concat!("Configuration of [`", stringify!($module), "`]'s link law.")]
                $Link(<$link as LinkLaw>::Config),
            )?)*
        }

        /// A link law at work: the state of one output port.
        #[derive(Clone, Debug)]
        pub enum Link {
            $($(
                #[doc = concat!("State of [`", stringify!($module), "`]'s link law.")]
                $Link($link),
            )?)*
        }

        /// Report of a link law: what the last control interval measured and decided.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LinkReport {
            $($(
                #[doc = concat!("Report of [`", stringify!($module), "`]'s link law.")]
                $Link(<$link as LinkLaw>::Report),
            )?)*
        }

        impl Sender {
            /// Creates the state of a new connection, with its initial window. `mss` counts the whole IP packet.
            #[inline]
            pub fn new(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
                match config {
                    $($(SenderConfig::$Sender(config) => {
                        let law = <$sender>::start(config, mss, initial_window);
                        Self { window: law.window(), law: Law::$Sender(law) }
                    })?)*
                }
            }

            /// Takes one acknowledgment, a duplicate too: every XCP ACK carries feedback.
            #[inline]
            pub fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        law.on_ack(config, now, ack);
                        self.window = law.window();
                    })?)*
                    _ => {}
                }
            }

            /// Takes the number from which the law draws: [`SenderLaw::seed`].
            #[inline]
            pub fn seed(&mut self, seed: u64) {
                match &mut self.law {
                    $($(Law::$Sender(law) => SenderLaw::seed(law, seed),)?)*
                }
            }

            /// Takes the delivery-rate sample of one acknowledgment: [`SenderLaw::on_delivery`].
            #[inline]
            pub fn on_delivery(&mut self, config: &SenderConfig, now: Time, delivery: &Delivery) -> bool {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        let is_silent = SenderLaw::on_delivery(law, config, now, delivery);
                        self.window = law.window();
                        is_silent
                    })?)*
                    _ => false,
                }
            }

            /// Reacts to a loss when fast retransmit begins: once per window of data. `flight` is FlightSize
            /// (RFC 5681 §3.2).
            #[inline]
            pub fn on_loss(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        law.on_loss(config, now, flight);
                        self.window = law.window();
                    })?)*
                    _ => {}
                }
            }

            /// Reacts to the end of the retransmission timer; `is_first` unless it expired for the same segment before.
            #[inline]
            pub fn on_timeout(&mut self, config: &SenderConfig, now: Time, flight: Bytes, is_first: bool) {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        law.on_timeout(config, now, flight, is_first);
                        self.window = law.window();
                    })?)*
                    _ => {}
                }
            }

            /// Prepares to send again after longer than a retransmission timeout without sending (RFC 5681 §4.1).
            #[inline]
            pub fn on_restart(&mut self, config: &SenderConfig, now: Time, initial_window: Bytes) {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        law.on_restart(config, now, initial_window);
                        self.window = law.window();
                    })?)*
                    _ => {}
                }
            }

            /// Meters a packet that is about to leave and returns its congestion header, for laws that have one.
            #[inline]
            pub fn on_send(&mut self, config: &SenderConfig, now: Time, send: &Send) -> Option<xcp::Header> {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        let header = SenderLaw::on_send(law, config, now, send);
                        self.window = law.window();
                        header
                    })?)*
                    _ => None,
                }
            }

            /// Returns the second congestion header of the packet that [`Sender::on_send`] was called for, for laws
            /// that have one.
            #[inline]
            pub fn on_send_window(&mut self, config: &SenderConfig) -> Option<xcp_r::Header> {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => law.on_send_window(config),)?)*
                    _ => None,
                }
            }

            /// Returns the packet's place in its chain: [`SenderLaw::on_send_place`].
            #[inline]
            pub fn on_send_place(&mut self, config: &SenderConfig, now: Time, srtt: Duration) -> Option<u8> {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        SenderLaw::on_send_place(law, config, now, srtt)
                    })?)*
                    _ => None,
                }
            }

            /// Decides on a probe: [`SenderLaw::probe`].
            #[inline]
            pub fn probe(&mut self, config: &SenderConfig, now: Time, ask: &Ask) -> Turn {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => law.probe(config, now, ask),)?)*
                    _ => Turn::Wait(Time::NEVER),
                }
            }

            /// Takes the ACK of a probe: [`SenderLaw::on_probe_ack`].
            #[inline]
            pub fn on_probe_ack(&mut self, config: &SenderConfig, awnd: Bytes) {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        law.on_probe_ack(config, awnd);
                        self.window = law.window();
                    })?)*
                    _ => {}
                }
            }

            /// Returns the rate to pace at; `None`: send as the window opens.
            #[inline]
            pub fn pacing_rate(&self, config: &SenderConfig, srtt: Duration) -> Option<Rate> {
                match (&self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => law.pacing_rate(config, srtt),)?)*
                    _ => None,
                }
            }
        }

        impl Law {
            /// Returns the state of XCP's sender, for laws of its family.
            #[inline]
            pub fn xcp(&self) -> Option<&xcp::Sender> {
                match self {
                    $($(Self::$Sender(law) => SenderLaw::xcp(law),)?)*
                }
            }

            /// Returns the load and the mode that a flow of MPCP's family acts on.
            #[inline]
            pub fn mpcp(&self) -> Option<mpcp::State> {
                match self {
                    $($(Self::$Sender(law) => SenderLaw::mpcp(law),)?)*
                }
            }
        }

        impl SenderConfig {
            /// Returns the name of the law, that of a protocol of its file.
            #[inline]
            pub fn name(&self) -> &'static str {
                let protocol = match self {
                    $($(Self::$Sender(config) => {
                        $module::protocols().get(<$sender as SenderLaw>::preset(config))
                    })?)*
                };
                protocol.map_or("", |protocol| protocol.name)
            }

            /// Returns the initial window in packets; `None`: RFC 5681's, by the size of the segment.
            #[inline]
            pub fn initial_window(&self) -> Option<u32> {
                match self {
                    $($(Self::$Sender(_) => <$sender as SenderLaw>::INITIAL_WINDOW,)?)*
                }
            }

            /// Returns true for laws that want delivery-rate samples: [`SenderLaw::SAMPLES_DELIVERY`].
            #[inline]
            pub fn samples_delivery(&self) -> bool {
                match self {
                    $($(Self::$Sender(_) => <$sender as SenderLaw>::SAMPLES_DELIVERY,)?)*
                }
            }

            /// Returns true for laws that decide something by chance: [`SenderLaw::DRAWS`].
            #[inline]
            pub fn draws(&self) -> bool {
                match self {
                    $($(Self::$Sender(_) => <$sender as SenderLaw>::DRAWS,)?)*
                }
            }

            /// Returns true for laws that send probes: [`SenderLaw::PROBES`].
            #[inline]
            pub fn probes(&self) -> bool {
                match self {
                    $($(Self::$Sender(_) => <$sender as SenderLaw>::PROBES,)?)*
                }
            }

            /// Returns true if a loss does not lower the rate: [`SenderLaw::withstands_loss`].
            #[inline]
            pub fn withstands_loss(&self) -> bool {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::withstands_loss(config),)?)*
                }
            }

            /// Returns the bytes of the congestion header of each data packet: [`SenderLaw::header_bytes`].
            #[inline]
            pub fn header_bytes(&self) -> u16 {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::header_bytes(config),)?)*
                }
            }

            /// Creates the receiver's part for a new connection. `mss` counts the whole IP packet.
            #[inline]
            pub fn echo(&self, mss: Bytes) -> Echo {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::echo(config, mss),)?)*
                }
            }

            /// Takes a data packet at the receiver: [`SenderLaw::on_data`].
            #[inline]
            pub fn on_data(&self, echo: &mut Echo, data: &Data) {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::on_data(config, echo, data),)?)*
                }
            }

            /// Returns XCP's configuration, for laws of its family.
            #[inline]
            pub fn xcp(&self) -> Option<&xcp::SenderConfig> {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::xcp_config(config),)?)*
                }
            }

            /// Returns XCP's configuration to change it, for laws of its family.
            #[inline]
            pub fn xcp_mut(&mut self) -> Option<&mut xcp::SenderConfig> {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::xcp_config_mut(config),)?)*
                }
            }

            /// Returns MPCP's configuration, for laws of its family.
            #[inline]
            pub fn mpcp(&self) -> Option<&mpcp::SenderConfig> {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::mpcp_config(config),)?)*
                }
            }
        }

        impl Settings for SenderConfig {
            fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
                match self {
                    $($(Self::$Sender(config) => config.each(tell),)?)*
                }
            }
        }

        impl Link {
            /// Creates the state of a port that begins in the given phases: [`LinkLaw::start`].
            #[inline]
            pub fn new(config: &LinkConfig, phase: Duration, second_phase: Duration) -> Self {
                match config {
                    $($(LinkConfig::$Link(config) => Self::$Link(<$link>::start(config, phase, second_phase)),)?)*
                }
            }

            /// Changes the capacity from the next control interval on.
            #[inline]
            pub fn set_capacity(&mut self, capacity: Rate) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::set_capacity(law, capacity),)?)*
                }
            }

            /// Takes a packet before it is queued, also if it is then dropped: it asked for capacity.
            #[inline]
            pub fn on_arrival(&mut self, now: Time, packet: &impl Packet) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::on_arrival(law, now, packet),)?)*
                }
            }

            /// Writes the link's feedback into a packet just before transmission; `backlog` is what stays queued.
            #[inline]
            pub fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::on_departure(law, now, packet, backlog),)?)*
                }
            }

            /// Returns the earliest deadline.
            #[inline]
            pub fn next_deadline(&self) -> Time {
                match self {
                    $($(Self::$Link(law) => LinkLaw::next_deadline(law),)?)*
                }
            }

            /// Serves every deadline that is due at `now`; `backlog` is what is queued.
            #[inline]
            pub fn on_deadline(&mut self, now: Time, backlog: Bytes) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::on_deadline(law, now, backlog),)?)*
                }
            }

            /// Closes the control interval with the spare bandwidth of an estimate: [`LinkLaw::close_told`].
            #[inline]
            pub fn close_told(&mut self, now: Time, told: &xcp::Told) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::close_told(law, now, told),)?)*
                }
            }

            /// Returns y, the input rate, of the running interval so far: [`LinkLaw::input`].
            #[inline]
            pub fn input(&self, now: Time) -> Rate {
                match self {
                    $($(Self::$Link(law) => LinkLaw::input(law, now),)?)*
                }
            }

            /// Returns the report of the last control interval, for series and events.
            #[inline]
            pub fn report(&self) -> LinkReport {
                match self {
                    $($(Self::$Link(law) => LinkReport::$Link(LinkLaw::report(law)),)?)*
                }
            }

            /// Returns d, the mean round trip time, for laws of XCP's family; zero: none.
            #[inline]
            pub fn mean_rtt(&self) -> Duration {
                match self {
                    $($(Self::$Link(law) => LinkLaw::mean_rtt(law),)?)*
                }
            }

            /// Returns the feedback that [`Link::on_departure`] would give the packet now, for observers.
            #[inline]
            pub fn share(&self, packet: &impl Packet) -> Option<xcp::Share> {
                match self {
                    $($(Self::$Link(law) => LinkLaw::share(law, packet),)?)*
                }
            }
        }

        impl LinkConfig {
            /// Returns the name of the law, that of a protocol of its file.
            #[inline]
            pub fn name(&self) -> &'static str {
                let protocol = match self {
                    $($(Self::$Link(config) => {
                        $module::protocols().get(<$link as LinkLaw>::preset(config))
                    })?)*
                };
                protocol.map_or("", |protocol| protocol.name)
            }

            /// Returns the length of the first control interval: [`LinkLaw::first_interval`].
            #[inline]
            pub fn first_interval(&self) -> Duration {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::first_interval(config),)?)*
                }
            }

            /// Returns the least length of a control interval but the first: [`LinkLaw::shortest_interval`].
            #[inline]
            pub fn shortest_interval(&self, round_trip: Duration) -> Duration {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::shortest_interval(config, round_trip),)?)*
                }
            }

            /// Returns the capacity of the link that the law computes with.
            #[inline]
            pub fn capacity(&self) -> Rate {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::capacity(config),)?)*
                }
            }

            /// Sets the capacity of the link that the law computes with.
            #[inline]
            pub fn set_capacity(&mut self, capacity: Rate) {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::configure_capacity(config, capacity),)?)*
                }
            }

            /// Returns XCP's configuration, for laws of its family.
            #[inline]
            pub fn xcp(&self) -> Option<&xcp::LinkConfig> {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::xcp(config),)?)*
                }
            }

            /// Returns XCP's configuration to change it, for laws of its family.
            #[inline]
            pub fn xcp_mut(&mut self) -> Option<&mut xcp::LinkConfig> {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::xcp_mut(config),)?)*
                }
            }

            /// Returns the most flows that the router shall remember, and for how long: [`LinkLaw::flows`].
            #[inline]
            pub fn flows(&self) -> Option<(u32, Duration)> {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::flows(config),)?)*
                }
            }
        }

        impl Settings for LinkConfig {
            fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
                match self {
                    $($(Self::$Link(config) => config.each(tell),)?)*
                }
            }
        }

        impl Series for LinkReport {
            fn intervals(&self) -> u64 {
                match self {
                    $($(Self::$Link(report) => report.intervals(),)?)*
                }
            }

            fn decision(&self) -> i64 {
                match self {
                    $($(Self::$Link(report) => report.decision(),)?)*
                }
            }

            fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
                match self {
                    $($(Self::$Link(report) => report.each(tell),)?)*
                }
            }

            fn xcp(&self) -> Option<&xcp::Report> {
                match self {
                    $($(Self::$Link(report) => report.xcp(),)?)*
                }
            }
        }
    };
}

protocols! {
    xcp { link Xcp(xcp::Link) sender Xcp(xcp::Sender) }
    pxcp { link Pxcp(pxcp::Link) }
    xcp_r { sender XcpR(xcp_r::Sender) }
    xcp_r_v0 { sender XcpRV0(xcp_r_v0::Sender) }
    reno { sender Reno(reno::Reno) }
    cubic { sender Cubic(cubic::Cubic) }
    mpcp { link Mpcp(mpcp::Link) sender Mpcp(mpcp::Sender) }
    highspeed { sender HighSpeed(highspeed::HighSpeed) }
    bic { sender Bic(bic::Bic) }
    vegas { sender Vegas(vegas::Vegas) }
    bbr { sender Bbr(bbr::Bbr) }
    peach { sender Peach(peach::Peach) }
}

/// A sender law with its state for one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The law's window after its last event, so that asking for it need not ask which law it is.
    window: Bytes,
    law: Law,
}

impl Sender {
    /// Returns the congestion window.
    #[inline]
    pub fn window(&self) -> Bytes {
        self.window
    }

    /// Returns the law, for observers.
    #[inline]
    pub fn law(&self) -> &Law {
        &self.law
    }
}
