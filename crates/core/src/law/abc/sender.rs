//! Sender and receiver of ABC (docs/design/modern.md 2.4).

use super::{ACCELERATE, BRAKE, CE};
use crate::law::cubic::{self, Cubic};
use crate::law::settings::{Field, Settings};
use crate::law::{
    Ack, EchoLaw, Giver, Heard, Lie, Needs, Network, Packet, Receiving, Reply, Send, SenderLaw,
};
use crate::units::{Bytes, Duration, Rate, Time, mul_div};

/// Binary places of a byte of the window.
const PLACES: u32 = 20;
/// The largest window, 4 TB, so that its fractions fit.
const WINDOW_MAX: Bytes = Bytes(1 << 42);

/// Configuration of an ABC sender: there is nothing to configure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SenderConfig {}

impl Settings for SenderConfig {
    fn each(&mut self, _tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {}
}

/// Counts of the receiver, modulo their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Echo {
    accelerates: u16,
    brakes: u16,
    /// Packets that a queue of others marked.
    marks: u8,
}

impl Echo {
    /// Reads the counts that an ACK brings.
    #[inline(always)]
    fn of(reply: Reply) -> Self {
        Self { accelerates: (reply.word >> 16) as u16, brakes: reply.word as u16, marks: reply.byte }
    }
}

impl EchoLaw<SenderConfig> for Echo {
    #[inline(always)]
    fn start(_config: &SenderConfig, _mss: Bytes) -> Self {
        Self::default()
    }

    #[inline]
    fn on_data(&mut self, _config: &SenderConfig, packet: &impl Packet, _receiver: impl Receiving) -> Heard {
        let code = packet.ecn();
        self.accelerates = self.accelerates.wrapping_add((code == ACCELERATE).into());
        self.brakes = self.brakes.wrapping_add((code == BRAKE).into());
        self.marks = self.marks.wrapping_add((code == CE).into());
        Heard::Taken
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &SenderConfig, _receiver: impl Receiving) -> Reply {
        Reply { word: (self.accelerates as u32) << 16 | self.brakes as u32, byte: self.marks }
    }

    /// Every packet accelerates, or only those that do.
    #[inline]
    fn forge(_config: &SenderConfig, lie: Lie, packet: &mut impl Packet) {
        if lie != Lie::Increases {
            packet.set_ecn(ACCELERATE);
        } else if packet.ecn() != ACCELERATE {
            packet.set_ecn(0);
        }
    }
}

/// Window of one connection: the lesser of ABC's and CUBIC's, so that a link without ABC can be the bottleneck.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    mss: Bytes,
    /// ABC's window in 2^-20 bytes.
    window: u64,
    cubic: Cubic,
    heard: Echo,
    /// Data still to be acknowledged until a mark of others may cut the window again.
    calm: Bytes,
    /// Times that marks of others have lowered the window.
    cuts: u32,
}

impl Sender {
    /// Returns the window by ABC's marks.
    #[inline]
    pub fn by_marks(&self) -> Bytes {
        Bytes(self.window >> PLACES)
    }

    /// Returns the window by losses.
    #[inline]
    pub fn by_losses(&self) -> Bytes {
        self.cubic.window()
    }

    /// Sets ABC's window, between two segments and this much.
    #[inline]
    fn set(&mut self, window: u64, most: Bytes) {
        let least = self.mss.0 * 2;
        let most = most.0.max(least).min(WINDOW_MAX.0);
        self.window = window.max(least << PLACES).min(most << PLACES);
    }

    /// Takes what the receiver counted since it replied last: accelerations, brakes and marks; nothing in a reply that
    /// another one overtook.
    #[inline]
    fn news(&mut self, reply: Reply) -> (u64, u64, u64) {
        let now = Echo::of(reply);
        let accelerates = now.accelerates.wrapping_sub(self.heard.accelerates);
        let brakes = now.brakes.wrapping_sub(self.heard.brakes);
        let marks = now.marks.wrapping_sub(self.heard.marks);
        if accelerates > i16::MAX as u16 || brakes > i16::MAX as u16 || marks > i8::MAX as u8 {
            return (0, 0, 0);
        }
        self.heard = now;
        (accelerates.into(), brakes.into(), marks.into())
    }
}

impl SenderLaw for Sender {
    type Config = SenderConfig;
    type Echo = Echo;

    #[inline(always)]
    fn name(_config: &SenderConfig) -> &'static str {
        "abc"
    }

    #[inline(always)]
    fn needs(_config: &SenderConfig) -> Needs {
        Needs {
            network: Some(Network {
                giver: Giver::Law("abc"),
                at_bottleneck: false,
                without: "every packet comes back as an acceleration, so CUBIC's window alone limits the flow",
                marked: "",
                unacknowledged: "",
            }),
            owns_ecn: true,
            ..Needs::NONE
        }
    }

    #[inline(always)]
    fn start(_config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.max(Bytes(1)).min(Bytes(u16::MAX as u64));
        let window = initial_window.max(mss).min(WINDOW_MAX);
        Self {
            mss,
            window: window.0 << PLACES,
            cubic: Cubic::new(mss, window),
            heard: Echo::default(),
            calm: Bytes(0),
            cuts: 0,
        }
    }

    /// w += a - b + (a + b) / w. The last part, a packet in each round trip, makes windows equal; neither window grows beyond
    /// twice of what is in flight, which is all that a link could have accelerated.
    #[inline]
    fn on_ack(&mut self, _config: &SenderConfig, now: Time, ack: &Ack) {
        let (accelerates, brakes, marks) = self.news(ack.reply);
        self.calm -= ack.acked;
        if accelerates + brakes > 0 {
            let mss = self.mss.0;
            let extra = mul_div((accelerates + brakes) * mss * mss, 1 << PLACES, self.by_marks().0.max(1));
            let up = ((accelerates * mss) << PLACES) + extra;
            let window = self.window + up;
            self.set(
                window.saturating_sub((brakes * mss) << PLACES),
                Bytes(2 * ack.flight.0.min(WINDOW_MAX.0)),
            );
        }
        self.cubic.on_ack(&cubic::Config {}, now, ack);
        if marks > 0 && self.calm.0 == 0 && !ack.in_recovery {
            let before = self.window();
            self.cubic.on_mark(&cubic::Config {}, now, ack.flight);
            self.cuts = self.cuts.wrapping_add((self.window() < before).into());
            self.calm = ack.flight - ack.acked + self.mss;
        }
        let most = Bytes(2 * ack.flight.0.min(WINDOW_MAX.0)).max(self.mss + self.mss);
        self.cubic.limit(most);
    }

    #[inline]
    fn on_loss(&mut self, _config: &SenderConfig, now: Time, flight: Bytes) {
        self.cubic.on_loss(&cubic::Config {}, now, flight);
    }

    #[inline]
    fn on_timeout(&mut self, _config: &SenderConfig, now: Time, flight: Bytes, is_first: bool) {
        self.cubic.on_timeout(&cubic::Config {}, now, flight, is_first);
        self.calm = Bytes(0);
    }

    #[inline]
    fn on_restart(&mut self, _config: &SenderConfig, now: Time, initial_window: Bytes) {
        self.cubic.on_restart(&cubic::Config {}, now, initial_window);
        self.calm = Bytes(0);
    }

    /// Data asks to accelerate, repeated data too.
    #[inline(always)]
    fn on_send(&mut self, _config: &SenderConfig, _now: Time, _send: &Send, packet: &mut impl Packet) {
        packet.set_ecn(ACCELERATE);
    }

    #[inline]
    fn window(&self) -> Bytes {
        self.by_marks().min(self.by_losses())
    }

    #[inline(always)]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    #[inline]
    fn pacing_rate(&self, _config: &SenderConfig, srtt: Duration) -> Option<Rate> {
        if srtt.0 == 0 { None } else { Some(self.window().per(srtt)) }
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        let packet = self.mss.0 as u32;
        tell("abc_window_packets", self.by_marks().0 as i64, packet);
        tell("loss_window_packets", self.by_losses().0 as i64, packet);
    }
}
