//! Control laws: one file per protocol, with up to three parts (link, sender, echo).

pub mod cubic;
mod echo;
pub mod reno;
pub mod xcp;
pub mod xcp_i;
pub mod xcp_r;

pub use echo::{Data, Echo, Reply};

use crate::units::{Bytes, Duration, Rate, Time};

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
    /// Reverse_Feedback, B/s; 0 without a congestion header.
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

/// Configuration of a sender law, shared by all flows that run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderConfig {
    /// Reno's AIMD (RFC 5681).
    Reno(reno::Config),
    /// CUBIC (RFC 9438).
    Cubic(cubic::Config),
    /// XCP.
    Xcp(xcp::SenderConfig),
    /// XCP-r.
    XcpR(xcp_r::Config),
}

impl SenderConfig {
    /// What a law of XCP's family configures of XCP; `None`: it has no congestion header.
    pub fn xcp(&self) -> Option<&xcp::SenderConfig> {
        match self {
            Self::Xcp(config) => Some(config),
            Self::XcpR(config) => Some(&config.xcp),
            Self::Reno(_) | Self::Cubic(_) => None,
        }
    }
}

/// State of a sender law for one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The law's window after its last event, so that asking for it need not ask which law it is.
    window: Bytes,
    law: Law,
}

/// Which law, with its state.
#[derive(Clone, Debug)]
pub enum Law {
    /// Reno's AIMD (RFC 5681).
    Reno(reno::Reno),
    /// CUBIC (RFC 9438).
    Cubic(cubic::Cubic),
    /// XCP.
    Xcp(xcp::Sender),
    /// XCP-r.
    XcpR(xcp_r::Sender),
}

impl Law {
    /// XCP's part of a law of its family.
    pub fn xcp(&self) -> Option<&xcp::Sender> {
        match self {
            Self::Xcp(law) => Some(law),
            Self::XcpR(law) => Some(law.xcp()),
            Self::Reno(_) | Self::Cubic(_) => None,
        }
    }
}

macro_rules! each {
    ($self:ident, $config:ident, $law:ident, $c:ident => $body:expr) => {
        match (&mut $self.law, $config) {
            (Law::Reno($law), SenderConfig::Reno($c)) => {
                $body;
                $self.window = $law.window();
            }
            (Law::Cubic($law), SenderConfig::Cubic($c)) => {
                $body;
                $self.window = $law.window();
            }
            (Law::Xcp($law), SenderConfig::Xcp($c)) => {
                $body;
                $self.window = $law.window();
            }
            (Law::XcpR($law), SenderConfig::XcpR($c)) => {
                $body;
                $self.window = $law.window();
            }
            _ => {}
        }
    };
}

impl Sender {
    /// A law at the start of a connection, with its initial window. `mss` is the whole IP packet.
    pub fn new(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        let law = match config {
            SenderConfig::Reno(_) => Law::Reno(reno::Reno::new(mss, initial_window)),
            SenderConfig::Cubic(_) => Law::Cubic(cubic::Cubic::new(mss, initial_window)),
            SenderConfig::Xcp(_) => Law::Xcp(xcp::Sender::new(mss, initial_window)),
            SenderConfig::XcpR(config) => Law::XcpR(xcp_r::Sender::new(config, mss, initial_window)),
        };
        let window = match &law {
            Law::Reno(law) => law.window(),
            Law::Cubic(law) => law.window(),
            Law::Xcp(law) => law.window(),
            Law::XcpR(law) => law.window(),
        };
        Self { window, law }
    }

    /// One acknowledgment arrived. Duplicates too: every XCP ACK carries feedback.
    #[inline]
    pub fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        each!(self, config, law, c => law.on_ack(c, now, ack));
    }

    /// Fast retransmit begins: once per window of data. `flight` is FlightSize (RFC 5681 §3.2).
    #[inline]
    pub fn on_loss(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
        each!(self, config, law, c => law.on_loss(c, now, flight));
    }

    /// The retransmission timer expired; `is_first` unless it expired for the same segment before.
    #[inline]
    pub fn on_timeout(&mut self, config: &SenderConfig, now: Time, flight: Bytes, is_first: bool) {
        each!(self, config, law, c => law.on_timeout(c, now, flight, is_first));
    }

    /// Sending resumes after longer than a retransmission timeout without sending (RFC 5681 §4.1).
    #[inline]
    pub fn on_restart(&mut self, config: &SenderConfig, now: Time, initial_window: Bytes) {
        each!(self, config, law, c => law.on_restart(c, now, initial_window));
    }

    /// A packet is about to leave: meters it and, for laws with a congestion header, fills that.
    #[inline]
    pub fn on_send(&mut self, config: &SenderConfig, now: Time, send: &Send) -> Option<xcp::Header> {
        match (&mut self.law, config) {
            (Law::Xcp(law), SenderConfig::Xcp(c)) => {
                let header = law.on_send(c, now, send);
                self.window = law.window();
                Some(header)
            }
            (Law::XcpR(law), SenderConfig::XcpR(c)) => {
                let header = law.on_send(c, now, send);
                self.window = law.window();
                Some(header)
            }
            _ => None,
        }
    }

    /// The second congestion header of the packet that [`Sender::on_send`] was called for, for laws
    /// that have one.
    #[inline]
    pub fn on_send_window(&mut self, config: &SenderConfig) -> Option<xcp_r::Header> {
        match (&mut self.law, config) {
            (Law::XcpR(law), SenderConfig::XcpR(c)) => Some(law.on_send_header(c)),
            _ => None,
        }
    }

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

    /// The rate to pace at; `None`: send as the window opens.
    #[inline]
    pub fn pacing_rate(&self, config: &SenderConfig, srtt: Duration) -> Option<Rate> {
        match (&self.law, config) {
            (Law::Xcp(law), SenderConfig::Xcp(c)) => law.pacing_rate(c, srtt),
            (Law::XcpR(law), SenderConfig::XcpR(c)) => law.pacing_rate(c, srtt),
            _ => None,
        }
    }
}
