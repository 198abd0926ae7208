//! Sender and receiver of RCP (RC §3; RNS).

use super::{Header, TcpOption, UNLIMITED, is_ungranted, told};
use crate::law::settings::{Field, Settings};
use crate::law::{
    Ack, EchoLaw, Giver, Header as _, Heard, Lie, Needs, Network, On, OptionBytes, Packet, Receiving, Reply,
    Send, SenderLaw,
};
use crate::units::{Bytes, Duration, Rate, Ratio, Time};

/// RCP's sender has nothing to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SenderConfig {}

impl Settings for SenderConfig {
    fn each(&mut self, _tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {}
}

/// Receiver: the least rate since the last ACK, so that delayed ACKs hide no lower one; without a new one, the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Echo {
    rate: u32,
    /// True if nothing came since the last ACK, or at all.
    is_told: bool,
}

impl EchoLaw<SenderConfig> for Echo {
    #[inline(always)]
    fn start(_config: &SenderConfig, _mss: Bytes) -> Self {
        Self { rate: 0, is_told: true }
    }

    #[inline(always)]
    fn on_data(&mut self, _config: &SenderConfig, packet: &impl Packet, _receiver: impl Receiving) -> Heard {
        if let Some(Header { rate, .. }) = packet.header() {
            self.rate = if self.is_told { rate } else { rate.min(self.rate) };
            self.is_told = false;
        }
        Heard::Taken
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &SenderConfig, _receiver: impl Receiving) -> Reply {
        self.is_told = true;
        Reply { word: self.rate, byte: 0 }
    }

    /// The highest rate that a link could have offered.
    #[inline]
    fn forge(_config: &SenderConfig, _lie: Lie, packet: &mut impl Packet) {
        if let Some(header) = packet.header::<Header>() {
            packet.add_header(Header { rate: UNLIMITED - 1, ..header });
        }
    }
}

/// State of RCP's sender for one flow.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    mss: Bytes,
    /// The rate that the path told last; zero: none.
    rate: Rate,
    window: Bytes,
}

impl Sender {
    /// Creates the state of a new connection, which knows no rate.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.min(Bytes(u16::MAX as u64)).max(Bytes(1));
        Self { mss, rate: Rate(0), window: initial_window.max(mss) }
    }

    /// Returns the rate that the path told last; zero: none.
    #[inline]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Forgets the rate: one segment asks for another.
    #[inline(always)]
    fn forget(&mut self) {
        (self.rate, self.window) = (Rate(0), self.mss);
    }
}

impl SenderLaw for Sender {
    type Config = SenderConfig;
    type Echo = Echo;

    #[inline(always)]
    fn name(_config: &SenderConfig) -> &'static str {
        "rcp"
    }

    /// A loss is no reason to send less: the rate is what links say.
    #[inline(always)]
    fn needs(_config: &SenderConfig) -> Needs {
        Needs {
            network: Some(Network {
                giver: Giver::Law("rcp"),
                at_bottleneck: true,
                without: "no link grants a rate, so the flow sends its first window, one segment by default, once in a round trip",
                marked: "",
                unacknowledged: "the rate that it brings; the next one brings a newer rate",
            }),
            initial_window: Some(1),
            handshake: true,
            states_round_trip: true,
            // Flows that begin together are each told the whole rate.
            loses: Some(Ratio::ppm(500_000)),
            withstands_loss: true,
            header_bytes: TcpOption::FORWARD as u16,
            ..Needs::NONE
        }
    }

    #[inline(always)]
    fn start(_config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(mss, initial_window)
    }

    /// The rate is what the ACK says; the window is what that sends in a round trip and two segments, so that
    /// pacing rules and not the window. A wish that comes back as it left was granted by no link: a rate of before is none
    /// any more, and without one the first window goes once in a round trip.
    #[inline]
    fn on_ack(&mut self, _config: &SenderConfig, _now: Time, ack: &Ack) {
        if ack.is_late {
            return;
        }
        if let Some(rate) = told(ack.reply) {
            self.rate = rate;
            self.window = rate.over(ack.srtt) + self.mss + self.mss;
        } else if is_ungranted(ack.reply) && self.rate.0 > 0 {
            self.forget();
        }
    }

    #[inline(always)]
    fn on_loss(&mut self, _config: &SenderConfig, _now: Time, _flight: Bytes) {}

    /// Nothing is known of the path any more: one segment, until an ACK tells a rate.
    #[inline]
    fn on_timeout(&mut self, _config: &SenderConfig, _now: Time, _flight: Bytes, _is_first: bool) {
        self.forget();
    }

    /// A rate of long ago is none: one segment asks for another.
    #[inline]
    fn on_restart(&mut self, _config: &SenderConfig, _now: Time, _initial_window: Bytes) {
        self.forget();
    }

    #[inline(always)]
    fn on_send(&mut self, _config: &SenderConfig, _now: Time, send: &Send, packet: &mut impl Packet) {
        packet.add_header(Header { rtt: send.srtt.to_header(), rate: UNLIMITED });
    }

    #[inline]
    fn option(_config: &SenderConfig, on: On<'_>) -> Option<OptionBytes> {
        let mut bytes = [0; 40];
        let option = match on {
            On::Forward(packet) => TcpOption::Forward(Header::read(packet.words(Header::TAG)?)),
            On::Back(reply) => TcpOption::Back(reply.word),
        };
        *bytes.first_chunk_mut()? = option.emit();
        Some(bytes)
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("told_rate_Bps", self.rate.0 as i64, 1);
    }

    #[inline(always)]
    fn window(&self) -> Bytes {
        self.window
    }

    #[inline(always)]
    fn pacing_rate(&self, _config: &SenderConfig, _srtt: Duration) -> Option<Rate> {
        if self.rate.0 > 0 { Some(self.rate) } else { None }
    }
}
