//! Sender and receiver of SCONE: CUBIC, paced at the advice that holds (docs/design/modern.md 9.4).

use super::{Header, NONE, UNKNOWN, rate};
use crate::law::cubic::{self, Cubic};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{
    Ack, EchoLaw, Giver, Heard, Lie, Needs, Network, Packet, Receiving, Reply, Send, SenderLaw,
};
use crate::units::{BitRate, Bytes, Duration, Rate, Time};

/// Bytes of a packet of SCONE with a connection name of eight.
const PACKET: u16 = 15;
/// Signals that are kept: the least of the period, and those after it that will be.
const KEPT: usize = 4;
/// Nanoseconds of a tick of kept signals, 2^20: 52 days in 32 bits.
const TICK: u32 = 20;

/// Configuration of a sender that heeds advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SenderConfig {
    /// Time for which a signal holds.
    pub period: Duration,
    /// Time between two packets that ask, to which half of it is added by chance.
    pub every: Duration,
}

impl SenderConfig {
    /// Default constants.
    pub const DEFAULT: Self = Self { period: Duration(67_000_000_000), every: Duration(20_000_000_000) };
}

impl Default for SenderConfig {
    #[inline(always)] // or it would be in each BPF object
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for SenderConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("period", "Time for which a signal holds; 67 s (the draft).", Field::Span(&mut self.period));
        tell(
            "every",
            "Time between two packets that ask, and by chance up to half more; 20 s (the draft).",
            Field::Span(&mut self.every),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("period", self.period.0, "\"67 s\"", tell);
    }
}

/// Receiver: the signals counted, so that lost ACKs take nothing along, and the least since the last ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Echo {
    count: u32,
    code: u8,
    is_told: bool,
}

impl EchoLaw<SenderConfig> for Echo {
    #[inline(always)]
    fn start(_config: &SenderConfig, _mss: Bytes) -> Self {
        Self { count: 0, code: UNKNOWN, is_told: true }
    }

    #[inline]
    fn on_data(&mut self, _config: &SenderConfig, packet: &impl Packet, _receiver: impl Receiving) -> Heard {
        if let Some(code) = packet.header::<Header>().and_then(Header::asked) {
            self.code = if self.is_told { code } else { code.min(self.code) };
            self.is_told = false;
            self.count = self.count.wrapping_add(1);
        }
        Heard::Taken
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &SenderConfig, _receiver: impl Receiving) -> Reply {
        self.is_told = true;
        Reply { word: self.count, byte: self.code }
    }

    /// No link advises anything.
    #[inline]
    fn forge(_config: &SenderConfig, _lie: Lie, packet: &mut impl Packet) {
        if let Some(header) = packet.header::<Header>()
            && header.asked().is_some()
        {
            packet.add_header(Header { signal: UNKNOWN, ..header });
        }
    }
}

/// A signal, and when it was heard, in ticks.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Signal {
    at: u32,
    code: u8,
}

/// The least signal of a sliding period: the signals that are lower than all after them, the oldest and least first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Signals {
    kept: [Signal; KEPT],
    count: u8,
}

impl Signals {
    const EMPTY: Self = Self { kept: [Signal { at: 0, code: UNKNOWN }; KEPT], count: 0 };

    #[inline(always)]
    const fn tick(time: u64) -> u32 {
        (time >> TICK) as u32
    }

    /// Forgets what is older than a period.
    #[inline]
    fn forget(&mut self, now: Time, period: Duration) {
        let most = Self::tick(period.0).min(u32::MAX / 2);
        while self.count > 0 && Self::tick(now.0).wrapping_sub(self.kept[0].at) >= most.max(1) {
            self.kept.rotate_left(1);
            self.count -= 1;
        }
    }

    /// Hears a signal: those that are not lower say nothing any more. Where there is no place it takes that of the newest, which
    /// then holds for longer than it should.
    #[inline]
    fn hear(&mut self, now: Time, code: u8) {
        let lower = |signal: &&Signal| signal.code < code;
        let mut count = self.kept.iter().take(self.count as usize).take_while(lower).count();
        let at = Self::tick(now.0);
        if let Some(place) = self.kept.get_mut(count) {
            *place = Signal { at, code };
            count += 1;
        } else {
            let [.., last] = &mut self.kept;
            last.at = at;
        }
        self.count = count as u8;
    }

    /// Returns the least.
    #[inline(always)]
    fn least(&self) -> u8 {
        if self.count > 0 { self.kept[0].code } else { UNKNOWN }
    }
}

/// State of a sender that heeds advice.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    cubic: Cubic,
    signals: Signals,
    /// Advice that holds: the least code of the period.
    advice: u8,
    /// Signals of the receiver that were heard.
    heard: u32,
    flow: u32,
    draws: u32,
    /// The next packet that asks.
    ask: Time,
}

impl Sender {
    /// Returns the advice that holds; `None`: there is none.
    #[inline]
    pub fn advice(&self) -> Option<BitRate> {
        rate(self.advice)
    }

    /// Returns true if a packet that is sent now asks: each until something was heard, then one in so long.
    #[inline]
    fn asks(&mut self, config: &SenderConfig, now: Time) -> bool {
        if self.heard > 0 && now < self.ask {
            return false;
        }
        // xorshift, of which the upper half is good enough for this.
        self.draws ^= self.draws << 13;
        self.draws ^= self.draws >> 17;
        self.draws ^= self.draws << 5;
        let chance = (config.every.0 >> 17).saturating_mul((self.draws >> 16) as u64);
        self.ask = now + config.every + Duration(chance);
        true
    }
}

impl SenderLaw for Sender {
    type Config = SenderConfig;
    type Echo = Echo;

    #[inline(always)]
    fn name(_config: &SenderConfig) -> &'static str {
        "scone"
    }

    #[inline(always)]
    fn needs(_config: &SenderConfig) -> Needs {
        Needs {
            network: Some(Network {
                giver: Giver::Law("scone"),
                at_bottleneck: false,
                without: "no link advises a rate, so CUBIC's window alone limits the flow",
                marked: "",
                unacknowledged: "the advice that it brings, until the next packet asks",
            }),
            draws: true,
            handshake: true,
            header_bytes: PACKET,
            ..Needs::NONE
        }
    }

    #[inline(always)]
    fn start(_config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.max(Bytes(1)).min(Bytes(u16::MAX as u64));
        Self {
            cubic: Cubic::new(mss, initial_window),
            signals: Signals::EMPTY,
            advice: UNKNOWN,
            heard: 0,
            flow: 0,
            draws: 1,
            ask: Time::ZERO,
        }
    }

    #[inline(always)]
    fn seed(&mut self, seed: u64) {
        self.flow = seed as u32;
        self.draws = ((seed >> 32) as u32).max(1);
    }

    /// A signal that no ACK brought before holds for a period.
    #[inline]
    fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        let Reply { word: count, byte: code } = ack.reply;
        let news = count.wrapping_sub(self.heard);
        self.signals.forget(now, config.period);
        if news > 0 && news < u32::MAX / 2 {
            self.heard = count;
            if code < UNKNOWN {
                self.signals.hear(now, code);
            }
        }
        self.advice = self.signals.least();
        self.cubic.on_ack(&cubic::Config {}, now, ack);
    }

    #[inline]
    fn on_loss(&mut self, _config: &SenderConfig, now: Time, flight: Bytes) {
        self.cubic.on_loss(&cubic::Config {}, now, flight);
    }

    #[inline]
    fn on_timeout(&mut self, _config: &SenderConfig, now: Time, flight: Bytes, is_first: bool) {
        self.cubic.on_timeout(&cubic::Config {}, now, flight, is_first);
    }

    #[inline]
    fn on_restart(&mut self, _config: &SenderConfig, now: Time, initial_window: Bytes) {
        self.cubic.on_restart(&cubic::Config {}, now, initial_window);
    }

    /// Data tells the flow, and asks now and then.
    #[inline]
    fn on_send(&mut self, config: &SenderConfig, now: Time, _send: &Send, packet: &mut impl Packet) {
        self.signals.forget(now, config.period);
        self.advice = self.signals.least();
        let signal = if self.asks(config, now) { UNKNOWN } else { NONE };
        packet.add_header(Header { flow: self.flow, signal });
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        let advice = self.advice().map_or(0, |rate| rate.bytes().0);
        tell("advice_heard_Bps", advice as i64, 1);
    }

    #[inline(always)]
    fn window(&self) -> Bytes {
        self.cubic.window()
    }

    /// Returns the advice, whatever the window; without one the window alone rules.
    #[inline]
    fn pacing_rate(&self, _config: &SenderConfig, _srtt: Duration) -> Option<Rate> {
        self.advice().map(BitRate::bytes)
    }
}
