//! DCTCP: a window cut in proportion to the share of marked packets (RFC 8257), so that a low marking threshold keeps the
//! queue short at full use. Links mark as any that know ECN, best above a threshold ([`super::queue::step`]).
//!
//! Every ACK replies how many marked packets the receiver has counted. So no rule says when to acknowledge, and a lost ACK
//! loses no mark: where TCP has one bit to say it with, RFC 8257 §3.2 acknowledges at every change of state.

#[cfg(feature = "words")]
mod words;

use super::protocol::Protocol;
use super::reno::Reno;
use super::settings::{Field, Settings};
use super::{
    Ack, Column, EchoLaw, Giver, Heard, Hue, Lie, Look, Needs, Network, Packet, Receiving, Reply, Send,
    SenderLaw, Shape,
};
use crate::units::{Bytes, Time, mul_div};
use core::convert::Infallible;

/// ECN field of a packet whose transport knows ECN, ECT(0), and of one that met congestion (RFC 3168 §5).
const ECT0: u8 = 0b10;
const CE: u8 = 0b11;

/// Binary places of alpha.
const PLACES: u32 = 20;
/// Binary places of alpha in Linux.
const LINUX_PLACES: u32 = 10;
/// g is 2^-4 (RFC 8257 §4.2).
const GAIN: u32 = 4;

/// Configuration of a DCTCP sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// True to compute alpha with Linux's ten binary places, in which few marks count for nothing.
    pub linux: bool,
}

impl Settings for Config {
    #[inline]
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "linux",
            "compute alpha with ten binary places, as Linux does, where one mark in more than 64 packets counts for \
             nothing; false (twenty).",
            Field::Switch(&mut self.linux),
        );
    }
}

/// Returns the protocols of this file: `dctcp` alone.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "dctcp",
            about: "DCTCP: a window cut in proportion to the share of marked packets (RFC 8257)",
            page: "dctcp",
            look: Look::new(Hue::Amber, Shape::Square, 3),
            link_series: &[],
            flow_series: &[Column::new("alpha", "Share of marks that flows act on")],
            link: None,
            sender: Some(Config { linux: false }),
        }]
    }
}

/// Estimate of the share of data that is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Share {
    /// alpha, with [`PLACES`].
    alpha: u32,
}

impl Share {
    /// Creates the estimate of this many 2^-20, at most 1. A connection begins with 1 (RFC 8257 §3.3).
    #[inline(always)]
    pub const fn new(alpha: u32) -> Self {
        Self { alpha: if alpha > 1 << PLACES { 1 << PLACES } else { alpha } }
    }

    /// Returns alpha in units of 2^-20.
    #[inline(always)]
    pub const fn alpha(self) -> u32 {
        self.alpha
    }

    /// A window has passed, of which `marked` was marked and `delivered` came: alpha moves by a sixteenth of its distance
    /// (RFC 8257 §3.3 step 6).
    #[inline]
    #[must_use]
    pub fn after(self, config: &Config, marked: Bytes, delivered: Bytes) -> Self {
        let of = |places: u32| mul_div(marked.min(delivered).0, 1 << places, delivered.0.max(1));
        let alpha = u64::from(self.alpha);
        let next = if config.linux {
            // Linux's `min_not_zero`: what is too small for a sixteenth of it goes at once.
            let alpha = alpha >> (PLACES - LINUX_PLACES);
            let kept = if alpha < 1 << GAIN { 0 } else { alpha - (alpha >> GAIN) };
            (kept + of(LINUX_PLACES - GAIN)) << (PLACES - LINUX_PLACES)
        } else {
            // Rounded towards where it goes, which alpha reaches.
            let goal = of(PLACES);
            let step = goal.abs_diff(alpha).div_ceil(1 << GAIN);
            if goal < alpha { alpha - step } else { alpha + step }
        };
        Self::new(u32::try_from(next).unwrap_or(u32::MAX))
    }

    /// Returns the part of a window that goes when data was marked: alpha / 2 of it (RFC 8257 §3.3 step 9).
    #[inline]
    pub fn of_window(self, window: Bytes) -> Bytes {
        Bytes(mul_div(window.0, self.alpha.into(), 2 << PLACES))
    }
}

/// DCTCP's window of one connection: Reno's, but for what marks do.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    reno: Reno,
    mss: u32,
    /// Times that marks have lowered the window.
    cuts: u32,
    /// Data marked and data delivered since the estimate was made.
    marked: Bytes,
    delivered: Bytes,
    /// Data still to be acknowledged until the estimate is made again.
    round: Bytes,
    /// Data still to be acknowledged until a mark may cut the window again. Until then it does not grow (RFC 3168 §6.1.2).
    calm: Bytes,
    share: Share,
    /// Marked packets that the receiver had counted when it replied last.
    heard: u32,
}

impl Sender {
    /// Returns the estimate of the share of data that is marked.
    #[inline]
    pub fn share(&self) -> Share {
        self.share
    }

    /// Returns the data still to be acknowledged until a mark may cut the window again.
    #[inline]
    pub fn calm(&self) -> Bytes {
        self.calm
    }

    /// Data that the receiver has counted since it replied last; nothing in a reply that another one overtook.
    #[inline]
    fn newly_marked(&mut self, reply: Reply) -> Bytes {
        let newly = reply.word.wrapping_sub(self.heard);
        if newly > i32::MAX as u32 {
            return Bytes(0);
        }
        self.heard = reply.word;
        Bytes(u64::from(self.mss) * u64::from(newly))
    }
}

impl SenderLaw for Sender {
    type Config = Config;
    type Echo = Echo;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "dctcp"
    }

    #[inline(always)]
    fn needs(_config: &Config) -> Needs {
        Needs {
            network: Some(Network {
                giver: Giver::Marks("{ step = { sojourn = \"1 ms\" } }"),
                at_bottleneck: true,
                without: "no packet is marked, so the flow is Reno, which fills the queue until packets are lost",
                marked: "",
                unacknowledged: "",
            }),
            owns_ecn: true,
            ..Needs::NONE
        }
    }

    #[inline(always)]
    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.max(Bytes(1));
        Self {
            reno: Reno::new(mss, initial_window),
            // Products with it fit 64 bits.
            mss: mss.0.min(u64::from(u16::MAX)) as u32,
            cuts: 0,
            marked: Bytes(0),
            delivered: Bytes(0),
            round: Bytes(0),
            calm: Bytes(0),
            share: Share::new(1 << PLACES),
            heard: 0,
        }
    }

    #[inline]
    fn on_ack(&mut self, config: &Config, now: Time, ack: &Ack) {
        let newly_marked = self.newly_marked(ack.reply);
        self.marked += newly_marked;
        self.delivered += ack.acked;
        self.round -= ack.acked;
        self.calm -= ack.acked;
        // A window of data: what is in flight, up to the next segment to be sent.
        let window = ack.flight - ack.acked + Bytes(self.mss.into());
        if self.round.0 == 0 && self.delivered.0 > 0 {
            self.share = self.share.after(config, self.marked, self.delivered);
            (self.marked, self.delivered) = (Bytes(0), Bytes(0));
            self.round = window;
        }
        if newly_marked.0 > 0 && self.calm.0 == 0 && !ack.in_recovery {
            let cwnd = self.reno.window();
            self.reno.reduce_to(cwnd - self.share.of_window(cwnd));
            self.cuts = self.cuts.wrapping_add((self.reno.window() < cwnd).into());
            self.calm = window;
        } else if self.calm.0 == 0 || ack.in_recovery {
            self.reno.on_ack(&super::reno::Config::DEFAULT, now, ack);
        }
    }

    /// As Reno: a loss says more than a mark (RFC 8257 §3.5).
    #[inline]
    fn on_loss(&mut self, _config: &Config, now: Time, flight: Bytes) {
        self.reno.on_loss(&super::reno::Config::DEFAULT, now, flight);
    }

    #[inline]
    fn on_timeout(&mut self, _config: &Config, now: Time, flight: Bytes, is_first: bool) {
        self.reno.on_timeout(&super::reno::Config::DEFAULT, now, flight, is_first);
        (self.round, self.calm) = (Bytes(0), Bytes(0));
    }

    /// Silence says nothing of the marks to come: alpha stays.
    #[inline]
    fn on_restart(&mut self, _config: &Config, now: Time, initial_window: Bytes) {
        self.reno.on_restart(&super::reno::Config::DEFAULT, now, initial_window);
        (self.round, self.calm) = (Bytes(0), Bytes(0));
    }

    /// All data is ECN-capable, repeated data too: Linux sends it so for laws that need marks, and where marks begin at
    /// a short queue there is room for it.
    #[inline(always)]
    fn on_send(&mut self, _config: &Config, _now: Time, _send: &Send, packet: &mut impl Packet) {
        packet.set_ecn(ECT0);
    }

    #[inline]
    fn window(&self) -> Bytes {
        self.reno.window()
    }

    #[inline(always)]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("alpha", self.share.alpha().into(), 1 << PLACES);
    }
}

/// The receiver's part: how many marked packets came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Echo {
    /// Marked packets so far, modulo 2^32.
    marked: u32,
    /// The last packet was marked.
    is_marked: bool,
}

impl EchoLaw<Config> for Echo {
    #[inline(always)]
    fn start(_config: &Config, _mss: Bytes) -> Self {
        Self::default()
    }

    /// A change is told at once (RFC 8257 §3.2), so that the sender hears of marks as soon as of the first one.
    #[inline]
    fn on_data(&mut self, _config: &Config, packet: &impl Packet, _receiver: impl Receiving) -> Heard {
        let is_marked = packet.ecn() == CE;
        let heard = if is_marked == self.is_marked { Heard::Taken } else { Heard::Urgent };
        self.marked = self.marked.wrapping_add(is_marked.into());
        self.is_marked = is_marked;
        heard
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &Config, _receiver: impl Receiving) -> Reply {
        Reply { word: self.marked, byte: 0 }
    }

    /// Nothing is marked.
    #[inline]
    fn forge(_config: &Config, _lie: Lie, packet: &mut impl Packet) {
        packet.set_ecn(0);
    }
}
