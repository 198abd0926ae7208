//! Sender and receiver of HPCC (docs/design/modern.md 8.3).

use super::{Header, MOST, News, PLACES, Signal, Telemetry};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{
    Ack, EchoLaw, Giver, Header as _, Heard, Lie, Needs, Network, On, OptionBytes, Packet, Receiving, Reply,
    Send, SenderLaw,
};
use crate::units::{Bytes, Duration, Rate, Ratio, Time, mul_div};

/// The largest window, 1 TB.
const WINDOW_MAX: u64 = 1 << 40;

/// Kind of TCP options for experiments (RFC 4727), and the name of a tag among them (RFC 6994; assumed).
const OPTION_KIND: u8 = 253;
const OPTION_NAME: [u8; 2] = *b"CS";

/// Configuration of an HPCC sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SenderConfig {
    /// Telemetry that packets ask for.
    pub telemetry: Telemetry,
    /// T, the round trip of the network without queues.
    pub base_rtt: Duration,
    /// eta, the load that is aimed at.
    pub eta: Ratio,
    /// Part of the largest window by which a window grows in each step.
    pub additive: Ratio,
    /// Time between two windows to which loads are applied, beside a round trip.
    pub step: Duration,
    /// Line rate of the host: at the beginning the window is what it sends in T, and never is more.
    pub desired_rate: Rate,
}

impl SenderConfig {
    /// Default constants with this telemetry; the line rate is to be set by who knows it.
    #[inline(always)] // or it would be in each BPF object
    pub const fn of(telemetry: Telemetry) -> Self {
        let step = match telemetry {
            Telemetry::Load => 0,
            Telemetry::Csig => 512_000,
        };
        Self {
            telemetry,
            base_rtt: Duration(13_000),
            eta: Ratio::ppm(950_000),
            additive: Ratio::ppm(500),
            step: Duration(step),
            desired_rate: Rate(u64::MAX),
        }
    }

    /// Returns the largest window.
    #[inline]
    fn most(&self) -> u64 {
        self.desired_rate.over(self.base_rtt).0.min(WINDOW_MAX)
    }
}

impl Settings for SenderConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "base_rtt",
            "Round trip without queues; absent: the longest of flows that share a link with it, in the kernel 13 us (HPCC's code).",
            Field::Span(&mut self.base_rtt),
        );
        tell("eta", "Load that is aimed at; 0.95 (HPCC).", Field::Share(&mut self.eta));
        tell(
            "additive",
            "Part of the largest window by which a window grows in each step; 0.0005, a hundredth of what eta leaves (HPCC).",
            Field::Share(&mut self.additive),
        );
        if self.telemetry == Telemetry::Csig {
            tell(
                "step",
                "Time, beside a round trip, until a window shows in what links measured: two of their windows; 512 us (assumed).",
                Field::Span(&mut self.step),
            );
        }
        tell(
            "desired_rate",
            "Line rate of the host, whose window of a round trip is the first and the largest; absent: that of the access, or the link's.",
            Field::Rate(&mut self.desired_rate),
        );
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        if longest.0 > 0 && !is_written("base_rtt") {
            self.base_rtt = longest;
        }
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("base_rtt", self.base_rtt.0, "\"13 us\"", tell);
        Finding::above_zero("eta", self.eta.0.into(), "0.95", tell);
    }
}

/// Receiver: the worst of each signal since the last ACK, else the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Echo {
    /// Load, or free capacity.
    first: u32,
    wait: u32,
    /// True if no packet with the signal came since the last ACK.
    is_first_told: bool,
    is_wait_told: bool,
}

impl EchoLaw<SenderConfig> for Echo {
    #[inline(always)]
    fn start(config: &SenderConfig, _mss: Bytes) -> Self {
        let first = if config.telemetry == Telemetry::Csig { MOST } else { 0 };
        Self { first, wait: 0, is_first_told: true, is_wait_told: true }
    }

    #[inline]
    fn on_data(&mut self, _config: &SenderConfig, packet: &impl Packet, _receiver: impl Receiving) -> Heard {
        if let Some(header) = packet.header::<Header>() {
            let (kept, is_told) = match header.signal {
                Signal::Wait => (&mut self.wait, &mut self.is_wait_told),
                Signal::Load | Signal::Free => (&mut self.first, &mut self.is_first_told),
            };
            if *is_told || !header.is_within(Header { value: *kept, ..header }) {
                *kept = header.value;
            }
            *is_told = false;
        }
        Heard::Taken
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &SenderConfig, _receiver: impl Receiving) -> Reply {
        (self.is_first_told, self.is_wait_told) = (true, true);
        News { first: self.first, wait: self.wait }.reply()
    }

    /// A hop that is next to idle: the lowest load, all of the capacity, no wait.
    #[inline]
    fn forge(_config: &SenderConfig, _lie: Lie, packet: &mut impl Packet) {
        if let Some(header) = packet.header::<Header>() {
            let value = match header.signal {
                Signal::Load => 1,
                Signal::Free => MOST - 1,
                Signal::Wait => 0,
            };
            packet.add_header(Header { value, ..header });
        }
    }
}

/// State of HPCC's sender for one flow.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    mss: u64,
    /// W, and the one to which loads are applied.
    window: u64,
    reference: u64,
    /// Data still to be acknowledged until the window is the next reference, and the earliest time for that.
    calm: Bytes,
    until: Time,
    /// U, the load of the worst hop, 2^-20; 0: none was told.
    load: u64,
    /// Packets sent: every other one asks for the wait.
    packets: u32,
}

impl Sender {
    /// Returns the load of the worst hop, 2^-20; 0: none was told.
    #[inline]
    pub fn load(&self) -> u64 {
        self.load
    }

    /// Returns W, which [`SenderLaw::window`] rounds up to whole segments.
    #[inline]
    pub fn load_window(&self) -> Bytes {
        Bytes(self.window)
    }

    #[inline(always)]
    fn bounded(&self, config: &SenderConfig, window: u64) -> u64 {
        window.min(config.most()).max(self.mss)
    }

    /// Half of the window, as other laws do: telemetry did not show what lost packets.
    #[inline]
    fn halve(&mut self, config: &SenderConfig) {
        self.window = self.bounded(config, self.window / 2);
        self.reference = self.window;
    }
}

impl SenderLaw for Sender {
    type Config = SenderConfig;
    type Echo = Echo;

    #[inline(always)]
    fn name(config: &SenderConfig) -> &'static str {
        config.telemetry.name()
    }

    #[inline(always)]
    fn needs(config: &SenderConfig) -> Needs {
        Needs {
            network: Some(Network {
                giver: Giver::Law(config.telemetry.name()),
                at_bottleneck: true,
                without: "no load comes back, so the window stays what the line carries in a round trip until a loss halves it",
                marked: "",
                unacknowledged: "the load that it brings; the next one brings a newer load",
            }),
            asks: Some(config.desired_rate),
            begins_at_line_rate: true,
            header_bytes: config.telemetry.bytes(),
            // HPCC's receivers are network cards (HP §3.1): an ACK that waits 100 ms would be all of a window of one packet.
            each_acknowledged: true,
            ..Needs::NONE
        }
    }

    /// The first window is what the line carries in a round trip, whatever others begin with.
    #[inline(always)]
    fn start(config: &SenderConfig, mss: Bytes, _initial_window: Bytes) -> Self {
        let mss = mss.0.clamp(1, u16::MAX as u64);
        let window = config.most().max(mss);
        Self { mss, window, reference: window, calm: Bytes(0), until: Time::ZERO, load: 0, packets: 0 }
    }

    /// W = Wc eta / U + W_AI, and once in a round trip Wc = W.
    #[inline]
    fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        self.calm -= ack.acked;
        if ack.is_late {
            return;
        }
        let Some(load) = News::of(ack.reply).load(config.telemetry, config.base_rtt) else { return };
        self.load = load.max(1);
        let aim = config.eta.of(1 << PLACES);
        let window =
            mul_div(self.reference, aim, self.load).min(WINDOW_MAX) + config.additive.of(config.most());
        self.window = self.bounded(config, window);
        if self.calm.0 == 0 && now >= self.until {
            self.reference = self.window;
            self.calm = ack.flight - ack.acked + Bytes(1);
            self.until = now + config.step;
        }
    }

    #[inline]
    fn on_loss(&mut self, config: &SenderConfig, _now: Time, _flight: Bytes) {
        self.halve(config);
    }

    #[inline]
    fn on_timeout(&mut self, _config: &SenderConfig, _now: Time, _flight: Bytes, _is_first: bool) {
        (self.window, self.reference) = (self.mss, self.mss);
        self.calm = Bytes(0);
    }

    /// A load of long ago is none: the window is that of the beginning again.
    #[inline]
    fn on_restart(&mut self, config: &SenderConfig, _now: Time, _initial_window: Bytes) {
        self.window = self.bounded(config, config.most());
        (self.reference, self.calm) = (self.window, Bytes(0));
    }

    #[inline]
    fn on_send(&mut self, config: &SenderConfig, _now: Time, _send: &Send, packet: &mut impl Packet) {
        self.packets = self.packets.wrapping_add(1);
        let signal = match config.telemetry {
            Telemetry::Load => Signal::Load,
            Telemetry::Csig if self.packets % 2 == 1 => Signal::Free,
            Telemetry::Csig => Signal::Wait,
        };
        packet.add_header(Header::asking(signal));
    }

    /// A tag of CSIG as an option of eight bytes: which signal, and 24 bits of its value; on ACKs both parts of the reply. The two bytes
    /// of `load` have no option.
    #[inline]
    fn option(config: &SenderConfig, on: On<'_>) -> Option<OptionBytes> {
        if config.telemetry == Telemetry::Load {
            return None;
        }
        let (length, [a, b, c, d], e) = match on {
            On::Forward(packet) => {
                let words = packet.words(Header::TAG)?;
                (8, [words[1] as u8, (words[2] >> 16) as u8, (words[2] >> 8) as u8, words[2] as u8], 0)
            }
            On::Back(reply) => (10, reply.word.to_be_bytes(), reply.byte),
        };
        let mut bytes = [0; 40];
        *bytes.first_chunk_mut()? = [OPTION_KIND, length, OPTION_NAME[0], OPTION_NAME[1], a, b, c, d, e];
        Some(bytes)
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("path_load_share", self.load as i64, 1 << PLACES);
    }

    /// W rounded up to whole segments, as the paper's code sends while less than W is in flight. Pacing keeps the rate.
    #[inline(always)]
    fn window(&self) -> Bytes {
        let mss = self.mss.max(1);
        let part = self.window % mss;
        Bytes(if part == 0 { self.window } else { self.window.saturating_add(mss - part) })
    }

    /// W / T: queues shall not be where the window would hold a sender up.
    #[inline]
    fn pacing_rate(&self, config: &SenderConfig, _srtt: Duration) -> Option<Rate> {
        Some(Bytes(self.window).per(Duration(config.base_rtt.0.max(1))))
    }
}
