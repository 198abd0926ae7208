//! Control laws: one file per protocol, with up to three parts (link, sender, echo), and the list of
//! them ([`Protocol::all`]), from which everybody else knows which there are and what they can be told.

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

/// What TCP's machinery tells a sender law about one acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ack {
    /// Data newly acknowledged cumulatively by it.
    pub acked: Bytes,
    /// Data in flight (RFC 6675 pipe, or sent and not acknowledged without SACK) before it.
    pub flight: Bytes,
    /// What the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
    /// Round trip sample; zero: none.
    pub rtt: Duration,
    /// Smoothed round trip time, this sample included; zero: unknown.
    pub srtt: Duration,
    /// Reverse_Feedback, B/s; 0 without a congestion header. MPCP's: the word of [`mpcp::Echoed`].
    pub feedback: i32,
    /// A duplicate: acknowledges nothing new.
    pub is_duplicate: bool,
    /// The sender is repairing a loss (fast recovery or after a timeout, until the recovery point).
    pub in_recovery: bool,
    /// The window, not the application or the receiver, limited the sender since the last ACK
    /// (RFC 5681 is silent; RFC 7661 and RFC 9438 §5.8 let an unused window not grow).
    pub is_window_limited: bool,
    /// Another ACK overtook it: it acknowledges less than one that came before.
    pub is_late: bool,
    /// XCP-r's window; meaningless without XCP-r.
    pub reply: xcp_r::Reply,
}

/// What TCP's machinery tells a sender law about a packet that it is about to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Send {
    /// Size of the packet.
    pub size: Bytes,
    /// Smoothed round trip time; zero: unknown, or the header must not state it yet.
    pub srtt: Duration,
    /// What the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
    /// Data that the application has ready and that was never sent, this packet included.
    pub backlog: Bytes,
    /// Window inflation by duplicate ACKs (Reno without SACK), which ns-2 counts in X.
    pub inflation: Bytes,
    /// The window (and nothing else) stops the sender after this packet.
    pub is_window_limited: bool,
}

/// What an acknowledgment says of the rate at which data arrives
/// (draft-cheng-iccrg-delivery-rate-estimation-00), for laws that ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Delivery {
    /// C.delivered: all data delivered so far, in order or not.
    pub total: Bytes,
    /// What of it was news of this acknowledgment.
    pub newly: Bytes,
    /// P.delivered: `total` when the packet was sent that, of those newly delivered, was sent last.
    pub prior: Bytes,
    /// In which the data since then was sent, or was acknowledged, whichever took longer; zero: no
    /// sample.
    pub interval: Duration,
    /// Data found lost with this acknowledgment.
    pub lost: Bytes,
    /// Data in flight before it.
    pub prior_flight: Bytes,
    /// Data in flight after it.
    pub flight: Bytes,
    /// Round trip sample; zero: none.
    pub rtt: Duration,
    /// For want of data less was sent than could have been.
    pub is_app_limited: bool,
    /// The sender is repairing a loss, after this acknowledgment.
    pub in_recovery: bool,
}

/// What TCP's machinery tells a law that it asks for a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ask {
    /// Smoothed round trip time; zero: unknown.
    pub srtt: Duration,
    /// What the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
}

/// What a probe carries: a segment that was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Probe {
    /// The last new one.
    Last,
    /// Any that is outstanding and not acknowledged; without one, the last.
    Random,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A probe goes now.
    Send(Probe),
    /// None before then, unless something happens.
    Wait(Time),
}

/// A packet, as a link law sees it.
pub trait Packet {
    /// Bytes of the whole IP packet.
    fn size(&self) -> Bytes;
    /// Its congestion header of the standard format, if it has one.
    fn xcp(&self) -> Option<xcp::Header>;
    /// Changes the congestion header that it has.
    fn set_xcp(&mut self, header: xcp::Header);
    /// ECN field of its IP header, if it is of a flow that the field may concern; pure ACKs are of none.
    #[inline(always)]
    fn ecn(&self) -> u8 {
        0
    }
    /// Changes that.
    #[inline(always)]
    fn set_ecn(&mut self, _code: u8) {}
    /// Its IP and TCP headers, if it has them.
    #[inline(always)]
    fn segment(&self) -> Option<mpcp::Segment> {
        None
    }
    /// What the router keeps of the flow that the headers belong to; `is_new`: it may begin to.
    #[inline(always)]
    fn flow(&mut self, _now: Time, _is_new: bool) -> Option<&mut mpcp::Flow> {
        None
    }
}

/// The law of a sender: the state of one flow. TCP's machinery (detecting and repairing losses,
/// measuring round trips) calls it; it keeps the window.
pub trait SenderLaw: Sized {
    /// What all flows that run it share.
    type Config: Settings;

    /// Initial window in packets; `None`: RFC 5681's, by the size of the segment.
    const INITIAL_WINDOW: Option<u32> = None;

    /// At the start of a connection. `mss` is the whole IP packet.
    fn start(config: &Self::Config, mss: Bytes, initial_window: Bytes) -> Self;

    /// Wants [`SenderLaw::on_delivery`], for which the sender keeps a record of each packet in flight.
    const SAMPLES_DELIVERY: bool = false;

    /// Decides something by chance.
    const DRAWS: bool = false;

    /// What it draws from, at the start of a connection.
    #[inline(always)]
    fn seed(&mut self, _seed: u64) {}

    /// What one acknowledgment delivered, once everything else about it is done. True: what is in flight
    /// now and what is sent until it is delivered says nothing of the path (as if the application had
    /// no more data).
    #[inline(always)]
    fn on_delivery(&mut self, _config: &Self::Config, _now: Time, _delivery: &Delivery) -> bool {
        false
    }

    /// One acknowledgment arrived. Duplicates too: every XCP ACK carries feedback.
    fn on_ack(&mut self, config: &Self::Config, now: Time, ack: &Ack);

    /// Fast retransmit begins: once per window of data. `flight` is FlightSize (RFC 5681 §3.2).
    fn on_loss(&mut self, config: &Self::Config, now: Time, flight: Bytes);

    /// The retransmission timer expired; `is_first` unless it expired for the same segment before.
    fn on_timeout(&mut self, config: &Self::Config, now: Time, flight: Bytes, is_first: bool);

    /// Sending resumes after longer than a retransmission timeout without sending (RFC 5681 §4.1).
    fn on_restart(&mut self, config: &Self::Config, now: Time, initial_window: Bytes);

    /// A packet is about to leave: meters it and, for laws with a congestion header, fills that.
    #[inline(always)]
    fn on_send(&mut self, _config: &Self::Config, _now: Time, _send: &Send) -> Option<xcp::Header> {
        None
    }

    /// The second congestion header of the packet that [`SenderLaw::on_send`] was called for, for laws
    /// that have one.
    #[inline(always)]
    fn on_send_window(&mut self, _config: &Self::Config) -> Option<xcp_r::Header> {
        None
    }

    /// The place in its chain of the packet that [`SenderLaw::on_send`] was called for, for laws that tell
    /// it in the headers of IP and TCP.
    #[inline(always)]
    fn on_send_place(&mut self, _config: &Self::Config, _now: Time, _srtt: Duration) -> Option<u8> {
        None
    }

    /// Sends probes: copies of segments, of low priority, which no window counts and nothing repeats. Their
    /// ACKs come back with low priority.
    const PROBES: bool = false;

    /// Asked whenever the connection may send, until it says wait, and when that is over.
    #[inline(always)]
    fn probe(&mut self, _config: &Self::Config, _now: Time, _ask: &Ask) -> Turn {
        Turn::Wait(Time::NEVER)
    }

    /// The ACK of a probe came back; `awnd` as in [`Ack`]. What it acknowledges besides, [`SenderLaw::on_ack`]
    /// is told.
    #[inline(always)]
    fn on_probe_ack(&mut self, _config: &Self::Config, _awnd: Bytes) {}

    /// A loss is no reason for it to send less: so its retransmissions must be found lost, too, without a timeout.
    #[inline(always)]
    fn withstands_loss(_config: &Self::Config) -> bool {
        false
    }

    /// The congestion window, at least one segment.
    fn window(&self) -> Bytes;

    /// The receiver's part at the start of a connection. `mss` is the whole IP packet.
    #[inline(always)]
    fn echo(_config: &Self::Config, _mss: Bytes) -> Echo {
        Echo::Feedback(xcp::Echo::default())
    }

    /// A data packet with a standard header reached the receiver: in order or not, the first time or
    /// again. Each of them was given its share by the links, so each counts.
    #[inline(always)]
    fn on_data(_config: &Self::Config, echo: &mut Echo, data: &Data) {
        if let Echo::Feedback(echo) = echo {
            echo.on_data(&data.header);
        }
    }

    /// The rate to pace at; `None`: send as the window opens.
    #[inline(always)]
    fn pacing_rate(&self, _config: &Self::Config, _srtt: Duration) -> Option<Rate> {
        None
    }

    /// Bytes of the congestion header that each data packet carries, as `payload_bps` counts them
    /// (docs/design/contract.md 5): draft-03's. What XCP-r and XCP-i add (`wire::xcp_extended`) is in the segment and
    /// counts as payload.
    #[inline(always)]
    fn header_bytes(_config: &Self::Config) -> u16 {
        0
    }

    /// XCP's configuration, for laws of its family.
    #[inline(always)]
    fn xcp_config(_config: &Self::Config) -> Option<&xcp::SenderConfig> {
        None
    }

    /// As [`SenderLaw::xcp_config`].
    #[inline(always)]
    fn xcp_config_mut(_config: &mut Self::Config) -> Option<&mut xcp::SenderConfig> {
        None
    }

    /// XCP's part, for laws of its family.
    #[inline(always)]
    fn xcp(&self) -> Option<&xcp::Sender> {
        None
    }

    /// Which of the protocols of its file it is.
    #[inline]
    fn preset(_config: &Self::Config) -> usize {
        0
    }

    /// MPCP's configuration, for laws of its family.
    #[inline(always)]
    fn mpcp_config(_config: &Self::Config) -> Option<&mpcp::SenderConfig> {
        None
    }

    /// What a flow of MPCP's family believes.
    #[inline(always)]
    fn mpcp(&self) -> Option<mpcp::State> {
        None
    }
}

/// The law of a link: the state of one output port.
pub trait LinkLaw: Sized {
    /// Constants and switches.
    type Config: Settings;
    /// What the last control interval measured and decided.
    type Report: Series;

    /// `phase` is the first deadline: where in its first interval the port begins; `second_phase`
    /// the same for the second timer of laws that have two. Ports must not act in step.
    fn start(config: &Self::Config, phase: Duration, second_phase: Duration) -> Self;

    /// The interval in which the phases lie.
    fn first_interval(config: &Self::Config) -> Duration;

    /// How often a control interval can end: none is shorter, but the first, where no packet states a shorter round
    /// trip than `round_trip`.
    fn shortest_interval(config: &Self::Config, round_trip: Duration) -> Duration;

    /// What the law is told that the link can carry.
    fn capacity(config: &Self::Config) -> Rate;

    /// Tells it that.
    fn configure_capacity(config: &mut Self::Config, capacity: Rate);

    /// The capacity has changed: takes effect at the next control interval.
    fn set_capacity(&mut self, capacity: Rate);

    /// Before enqueue, also if the packet is then dropped: it asked for capacity.
    fn on_arrival(&mut self, now: Time, packet: &impl Packet);

    /// Just before transmission; `backlog` is what stays queued.
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes);

    /// Earliest timer.
    fn next_deadline(&self) -> Time;

    /// Serves every deadline that is due at `now`.
    fn on_deadline(&mut self, now: Time, backlog: Bytes);

    /// Closes the control interval now, with the spare bandwidth of an estimate in the place of C - y
    /// (XI eq. 1 as a rate: F = alpha BW - beta Q / d). So a virtual router is a link that its owner
    /// times: it serves no deadline of its own. For laws of XCP's family.
    #[inline(always)]
    fn close_told(&mut self, _now: Time, _told: &xcp::Told) {}

    /// y of the running interval so far, for laws of XCP's family.
    #[inline(always)]
    fn input(&self, _now: Time) -> Rate {
        Rate(0)
    }

    /// What the last control interval measured and decided, for series and events.
    fn report(&self) -> Self::Report;

    /// d, for laws of XCP's family; zero: none.
    #[inline(always)]
    fn mean_rtt(&self) -> Duration {
        Duration(0)
    }

    /// What [`LinkLaw::on_departure`] would give the packet now, for observers.
    #[inline(always)]
    fn share(&self, _packet: &impl Packet) -> Option<xcp::Share> {
        None
    }

    /// XCP's configuration, for laws of its family.
    #[inline(always)]
    fn xcp(_config: &Self::Config) -> Option<&xcp::LinkConfig> {
        None
    }

    /// As [`LinkLaw::xcp`].
    #[inline(always)]
    fn xcp_mut(_config: &mut Self::Config) -> Option<&mut xcp::LinkConfig> {
        None
    }

    /// Which of the protocols of its file it is.
    #[inline]
    fn preset(_config: &Self::Config) -> usize {
        0
    }

    /// How many flows it wants remembered at most, and for how long without packets; `None`: none.
    #[inline(always)]
    fn flows(_config: &Self::Config) -> Option<(u32, Duration)> {
        None
    }
}

/// What a link law reports, as columns of a time series.
pub trait Series {
    /// Control intervals so far.
    fn intervals(&self) -> u64;
    /// What the last one decided, for its event: XCP's F.
    fn decision(&self) -> i64;
    /// Tells the name of each metric and its value as a fraction, so that a law needs no floats.
    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32));
    /// XCP's part of it, for laws of its family.
    #[inline]
    fn xcp(&self) -> Option<&xcp::Report> {
        None
    }
}

/// A protocol as scenarios name it. One law file may have several, which are presets of one law.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Its page: `docs/protocols/<page>.md`.
    pub page: &'static str,
    /// What it runs on links, as configured without a word.
    pub link: Option<LinkConfig>,
    /// What it runs on flows, as configured without a word.
    pub sender: Option<SenderConfig>,
}

impl Protocol {
    /// The protocol of that name.
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
            /// All, in the order of the list.
            // Functions, not constants, also in the law files: those would be in each BPF object.
            pub fn all() -> impl Iterator<Item = &'static Self> {
                [$($module::protocols()),*].into_iter().flatten()
            }
        }

        /// Configuration of a sender law, shared by all flows that run it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum SenderConfig {
            $($(#[doc = concat!("[`", stringify!($module), "`]'s.")] $Sender(<$sender as SenderLaw>::Config),)?)*
        }

        /// Which sender law, with its state.
        #[derive(Clone, Debug)]
        pub enum Law {
            $($(#[doc = concat!("[`", stringify!($module), "`]'s.")] $Sender($sender),)?)*
        }

        /// Configuration of a link law.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum LinkConfig {
            $($(#[doc = concat!("[`", stringify!($module), "`]'s.")] $Link(<$link as LinkLaw>::Config),)?)*
        }

        /// A link law at work: the state of one output port.
        #[derive(Clone, Debug)]
        pub enum Link {
            $($(#[doc = concat!("[`", stringify!($module), "`]'s.")] $Link($link),)?)*
        }

        /// What the last control interval of a link law measured and decided.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LinkReport {
            $($(#[doc = concat!("[`", stringify!($module), "`]'s.")] $Link(<$link as LinkLaw>::Report),)?)*
        }

        impl Sender {
            /// A law at the start of a connection, with its initial window. `mss` is the whole IP packet.
            #[inline]
            pub fn new(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
                match config {
                    $($(SenderConfig::$Sender(config) => {
                        let law = <$sender>::start(config, mss, initial_window);
                        Self { window: law.window(), law: Law::$Sender(law) }
                    })?)*
                }
            }

            /// One acknowledgment arrived. Duplicates too: every XCP ACK carries feedback.
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

            /// See [`SenderLaw::seed`].
            #[inline]
            pub fn seed(&mut self, seed: u64) {
                match &mut self.law {
                    $($(Law::$Sender(law) => SenderLaw::seed(law, seed),)?)*
                }
            }

            /// See [`SenderLaw::on_delivery`].
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

            /// Fast retransmit begins: once per window of data. `flight` is FlightSize (RFC 5681 §3.2).
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

            /// The retransmission timer expired; `is_first` unless it expired for the same segment before.
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

            /// Sending resumes after longer than a retransmission timeout without sending (RFC 5681 §4.1).
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

            /// A packet is about to leave: meters it and, for laws with a congestion header, fills that.
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

            /// The second congestion header of the packet that [`Sender::on_send`] was called for, for
            /// laws that have one.
            #[inline]
            pub fn on_send_window(&mut self, config: &SenderConfig) -> Option<xcp_r::Header> {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => law.on_send_window(config),)?)*
                    _ => None,
                }
            }

            /// See [`SenderLaw::on_send_place`].
            #[inline]
            pub fn on_send_place(&mut self, config: &SenderConfig, now: Time, srtt: Duration) -> Option<u8> {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => {
                        SenderLaw::on_send_place(law, config, now, srtt)
                    })?)*
                    _ => None,
                }
            }

            /// See [`SenderLaw::probe`].
            #[inline]
            pub fn probe(&mut self, config: &SenderConfig, now: Time, ask: &Ask) -> Turn {
                match (&mut self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => law.probe(config, now, ask),)?)*
                    _ => Turn::Wait(Time::NEVER),
                }
            }

            /// See [`SenderLaw::on_probe_ack`].
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

            /// The rate to pace at; `None`: send as the window opens.
            #[inline]
            pub fn pacing_rate(&self, config: &SenderConfig, srtt: Duration) -> Option<Rate> {
                match (&self.law, config) {
                    $($((Law::$Sender(law), SenderConfig::$Sender(config)) => law.pacing_rate(config, srtt),)?)*
                    _ => None,
                }
            }
        }

        impl Law {
            /// XCP's part, for laws of its family.
            #[inline]
            pub fn xcp(&self) -> Option<&xcp::Sender> {
                match self {
                    $($(Self::$Sender(law) => SenderLaw::xcp(law),)?)*
                }
            }

            /// What a flow of MPCP's family believes.
            #[inline]
            pub fn mpcp(&self) -> Option<mpcp::State> {
                match self {
                    $($(Self::$Sender(law) => SenderLaw::mpcp(law),)?)*
                }
            }
        }

        impl SenderConfig {
            /// Of the law: a protocol of its file.
            #[inline]
            pub fn name(&self) -> &'static str {
                let protocol = match self {
                    $($(Self::$Sender(config) => {
                        $module::protocols().get(<$sender as SenderLaw>::preset(config))
                    })?)*
                };
                protocol.map_or("", |protocol| protocol.name)
            }

            /// Initial window in packets; `None`: RFC 5681's, by the size of the segment.
            #[inline]
            pub fn initial_window(&self) -> Option<u32> {
                match self {
                    $($(Self::$Sender(_) => <$sender as SenderLaw>::INITIAL_WINDOW,)?)*
                }
            }

            /// See [`SenderLaw::SAMPLES_DELIVERY`].
            #[inline]
            pub fn samples_delivery(&self) -> bool {
                match self {
                    $($(Self::$Sender(_) => <$sender as SenderLaw>::SAMPLES_DELIVERY,)?)*
                }
            }

            /// See [`SenderLaw::DRAWS`].
            #[inline]
            pub fn draws(&self) -> bool {
                match self {
                    $($(Self::$Sender(_) => <$sender as SenderLaw>::DRAWS,)?)*
                }
            }

            /// See [`SenderLaw::PROBES`].
            #[inline]
            pub fn probes(&self) -> bool {
                match self {
                    $($(Self::$Sender(_) => <$sender as SenderLaw>::PROBES,)?)*
                }
            }

            /// See [`SenderLaw::withstands_loss`].
            #[inline]
            pub fn withstands_loss(&self) -> bool {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::withstands_loss(config),)?)*
                }
            }

            /// See [`SenderLaw::header_bytes`].
            #[inline]
            pub fn header_bytes(&self) -> u16 {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::header_bytes(config),)?)*
                }
            }

            /// The receiver's part at the start of a connection. `mss` is the whole IP packet.
            #[inline]
            pub fn echo(&self, mss: Bytes) -> Echo {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::echo(config, mss),)?)*
                }
            }

            /// See [`SenderLaw::on_data`].
            #[inline]
            pub fn on_data(&self, echo: &mut Echo, data: &Data) {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::on_data(config, echo, data),)?)*
                }
            }

            /// XCP's configuration, for laws of its family.
            #[inline]
            pub fn xcp(&self) -> Option<&xcp::SenderConfig> {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::xcp_config(config),)?)*
                }
            }

            /// As [`SenderConfig::xcp`].
            #[inline]
            pub fn xcp_mut(&mut self) -> Option<&mut xcp::SenderConfig> {
                match self {
                    $($(Self::$Sender(config) => <$sender as SenderLaw>::xcp_config_mut(config),)?)*
                }
            }

            /// MPCP's configuration, for laws of its family.
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
            /// See [`LinkLaw::start`].
            #[inline]
            pub fn new(config: &LinkConfig, phase: Duration, second_phase: Duration) -> Self {
                match config {
                    $($(LinkConfig::$Link(config) => Self::$Link(<$link>::start(config, phase, second_phase)),)?)*
                }
            }

            /// The capacity has changed: takes effect at the next control interval.
            #[inline]
            pub fn set_capacity(&mut self, capacity: Rate) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::set_capacity(law, capacity),)?)*
                }
            }

            /// Before enqueue, also if the packet is then dropped: it asked for capacity.
            #[inline]
            pub fn on_arrival(&mut self, now: Time, packet: &impl Packet) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::on_arrival(law, now, packet),)?)*
                }
            }

            /// Just before transmission; `backlog` is what stays queued.
            #[inline]
            pub fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::on_departure(law, now, packet, backlog),)?)*
                }
            }

            /// Earliest timer.
            #[inline]
            pub fn next_deadline(&self) -> Time {
                match self {
                    $($(Self::$Link(law) => LinkLaw::next_deadline(law),)?)*
                }
            }

            /// Serves every deadline that is due at `now`.
            #[inline]
            pub fn on_deadline(&mut self, now: Time, backlog: Bytes) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::on_deadline(law, now, backlog),)?)*
                }
            }

            /// See [`LinkLaw::close_told`].
            #[inline]
            pub fn close_told(&mut self, now: Time, told: &xcp::Told) {
                match self {
                    $($(Self::$Link(law) => LinkLaw::close_told(law, now, told),)?)*
                }
            }

            /// See [`LinkLaw::input`].
            #[inline]
            pub fn input(&self, now: Time) -> Rate {
                match self {
                    $($(Self::$Link(law) => LinkLaw::input(law, now),)?)*
                }
            }

            /// What the last control interval measured and decided, for series and events.
            #[inline]
            pub fn report(&self) -> LinkReport {
                match self {
                    $($(Self::$Link(law) => LinkReport::$Link(LinkLaw::report(law)),)?)*
                }
            }

            /// d, for laws of XCP's family; zero: none.
            #[inline]
            pub fn mean_rtt(&self) -> Duration {
                match self {
                    $($(Self::$Link(law) => LinkLaw::mean_rtt(law),)?)*
                }
            }

            /// What [`Link::on_departure`] would give the packet now, for observers.
            #[inline]
            pub fn share(&self, packet: &impl Packet) -> Option<xcp::Share> {
                match self {
                    $($(Self::$Link(law) => LinkLaw::share(law, packet),)?)*
                }
            }
        }

        impl LinkConfig {
            /// Of the law: a protocol of its file.
            #[inline]
            pub fn name(&self) -> &'static str {
                let protocol = match self {
                    $($(Self::$Link(config) => {
                        $module::protocols().get(<$link as LinkLaw>::preset(config))
                    })?)*
                };
                protocol.map_or("", |protocol| protocol.name)
            }

            /// See [`LinkLaw::first_interval`].
            #[inline]
            pub fn first_interval(&self) -> Duration {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::first_interval(config),)?)*
                }
            }

            /// See [`LinkLaw::shortest_interval`].
            #[inline]
            pub fn shortest_interval(&self, round_trip: Duration) -> Duration {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::shortest_interval(config, round_trip),)?)*
                }
            }

            /// What the law is told that the link can carry.
            #[inline]
            pub fn capacity(&self) -> Rate {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::capacity(config),)?)*
                }
            }

            /// Tells it that.
            #[inline]
            pub fn set_capacity(&mut self, capacity: Rate) {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::configure_capacity(config, capacity),)?)*
                }
            }

            /// XCP's configuration, for laws of its family.
            #[inline]
            pub fn xcp(&self) -> Option<&xcp::LinkConfig> {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::xcp(config),)?)*
                }
            }

            /// As [`LinkConfig::xcp`].
            #[inline]
            pub fn xcp_mut(&mut self) -> Option<&mut xcp::LinkConfig> {
                match self {
                    $($(Self::$Link(config) => <$link as LinkLaw>::xcp_mut(config),)?)*
                }
            }

            /// See [`LinkLaw::flows`].
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

/// State of a sender law for one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The law's window after its last event, so that asking for it need not ask which law it is.
    window: Bytes,
    law: Law,
}

impl Sender {
    /// The congestion window.
    #[inline]
    pub fn window(&self) -> Bytes {
        self.window
    }

    /// The law, for observers.
    #[inline]
    pub fn law(&self) -> &Law {
        &self.law
    }
}
