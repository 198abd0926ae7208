//! TCP Prague: DCTCP's cut by the share of marks, for the Internet (RFC 9331; docs/design/modern.md 4.6). Its packets are
//! ECT(1), so that links with two queues ([`super::queue::dualpi2`]) keep them in the short one; it paces; it grows on what came
//! without a mark even while marks cut; and flows with short round trips gain no more than others.
//!
//! Every ACK replies how many marked packets the receiver has counted, for which the wire has AccECN (RFC 9768). Not here: the
//! fallback for links that mark both kinds of flows alike, which is off in the Linux sender too.

#[cfg(feature = "words")]
mod words;

use super::dctcp::{self, Share};
use super::protocol::Protocol;
#[cfg(feature = "words")]
use super::settings::Finding;
use super::settings::{Field, Settings};
use super::{
    Ack, Column, EchoLaw, Giver, Heard, Hue, Lie, Look, Needs, Network, Packet, Receiving, Reply, Send,
    SenderLaw, Shape,
};
use crate::units::{Bytes, Duration, Rate, Time, mul_div};
use core::convert::Infallible;

/// ECN field of a packet of L4S, and of one that met congestion (RFC 9331 §4.1).
const ECT1: u8 = 0b01;
const CE: u8 = 0b11;

/// Binary places of the growth, of alpha, and of a byte of the window.
const PLACES: u32 = 20;
const ONE: u64 = 1 << PLACES;
/// The largest window, 4 TB, so that its fractions fit.
const WINDOW_MAX: Bytes = Bytes(1 << 42);

/// Configuration of a Prague sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// True to gain as if no round trip were shorter than the target.
    pub rtt_independent: bool,
    /// Round trip as whose flows those with shorter ones gain.
    pub rtt_target: Duration,
    /// Round trips after slow start that a flow takes its own for, so that short flows get on.
    pub transition: u32,
}

impl Config {
    /// The Linux sender's (CM-10).
    pub const DEFAULT: Self =
        Self { rtt_independent: true, rtt_target: Duration(25_000_000), transition: 500 };

    /// Returns the segments by which the window grows in a round trip, in 2^-20 (VM4.7): the square of the round trip's part of
    /// the target, since a flow grows once in each of its round trips, and each carries the window.
    #[inline]
    pub fn growth(&self, srtt: Duration) -> u64 {
        let part = mul_div(srtt.min(self.rtt_target).0, 1 << 31, self.rtt_target.0.max(1));
        ((part * part + (1 << (61 - PLACES))) >> (62 - PLACES)).max(1)
    }
}

impl Default for Config {
    #[inline]
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for Config {
    #[inline]
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "rtt_independent",
            "Gain as if no round trip were shorter than the target; true.",
            Field::Switch(&mut self.rtt_independent),
        );
        tell(
            "rtt_target",
            "Round trip as whose flows those with shorter ones gain; 25 ms (Linux sender).",
            Field::Span(&mut self.rtt_target),
        );
        tell(
            "transition",
            "Round trips after slow start in which a flow takes its own round trip; 500 (Linux sender).",
            Field::Count(&mut self.transition),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("rtt_target", self.rtt_target.0, "\"25 ms\"", tell);
    }
}

/// Returns the protocols of this file: `prague` alone.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "prague",
            about: "TCP Prague: a window cut by the share of marked packets, in the short queue of L4S (RFC 9331)",
            page: "prague",
            look: Look::new(Hue::Sky, Shape::Circle, 0),
            link_series: &[],
            flow_series: &[Column::new("alpha", "Share of marks that flows act on")],
            link: None,
            sender: Some(Config::DEFAULT),
        }]
    }
}

/// Prague's window of one connection.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    mss: Bytes,
    /// The window in 2^-20 bytes.
    cwnd: u64,
    ssthresh: Bytes,
    /// Data marked and data delivered since the estimate was made, and when that was.
    marked: Bytes,
    delivered: Bytes,
    estimated: Time,
    /// Data still to be acknowledged until the round trip is over.
    round: Bytes,
    /// Round trips since slow start.
    rounds: u32,
    /// Times that marks have lowered the window.
    cuts: u32,
    /// Data still to be acknowledged until a mark may cut the window again, and when one did.
    calm: Bytes,
    cut: Time,
    share: Share,
    /// Marked packets that the receiver had counted when it replied last; none: alpha stays 1.
    heard: u32,
}

impl Sender {
    /// Returns the estimate of the share of data that is marked.
    #[inline]
    pub fn share(&self) -> Share {
        self.share
    }

    /// Returns the slow-start threshold; the largest amount: there is none.
    #[inline]
    pub fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    /// Returns how many marked packets the receiver had counted when it replied last.
    #[inline]
    pub fn heard_last(&self) -> u32 {
        self.heard
    }

    /// Returns true where the flow gains as one with the target's round trip.
    #[inline]
    pub fn is_independent(&self, config: &Config) -> bool {
        config.rtt_independent && self.rounds >= config.transition
    }

    /// Sets the window to this much in 2^-20 bytes, at least two segments.
    #[inline]
    fn set(&mut self, window: u64) {
        self.cwnd = window.max(self.least()).min(WINDOW_MAX.0 << PLACES);
    }

    #[inline]
    fn least(&self) -> u64 {
        (self.mss.0 * 2) << PLACES
    }

    /// Data that the receiver has counted since it replied last; nothing in a reply that another one overtook.
    #[inline]
    fn newly_marked(&mut self, reply: Reply) -> Bytes {
        let newly = reply.word.wrapping_sub(self.heard);
        if newly > i32::MAX as u32 {
            return Bytes(0);
        }
        self.heard = reply.word;
        Bytes(self.mss.0 * u64::from(newly))
    }

    #[inline]
    fn grow(&mut self, config: &Config, ack: &Ack, fresh: Bytes) {
        if !ack.is_window_limited {
            return;
        }
        let window = self.window();
        if window < self.ssthresh {
            let grown = window.0 + fresh.min(self.mss).0; // RFC 5681 §3.1 eq. 2
            self.cwnd = grown.min(WINDOW_MAX.0) << PLACES;
        } else if !ack.in_recovery {
            let growth = if self.is_independent(config) { config.growth(ack.srtt) } else { ONE };
            // At most 2^42 of 2^16.
            let product = fresh.min(window).0 * self.mss.0;
            self.set(self.cwnd + mul_div(product, growth, window.0.max(1)));
        }
    }
}

impl SenderLaw for Sender {
    type Config = Config;
    type Echo = Echo;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "prague"
    }

    #[inline(always)]
    fn needs(_config: &Config) -> Needs {
        Needs {
            network: Some(Network {
                giver: Giver::Marks("\"dualpi2\""),
                at_bottleneck: true,
                without: "no packet is marked, so the flow fills the queue until packets are lost",
                marked: "",
                unacknowledged: "",
            }),
            owns_ecn: true,
            leaves_apart: true,
            ..Needs::NONE
        }
    }

    #[inline(always)]
    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.max(Bytes(1)).min(Bytes(u16::MAX as u64));
        Self {
            mss,
            cwnd: initial_window.max(mss).min(WINDOW_MAX).0 << PLACES,
            ssthresh: Bytes(u64::MAX),
            marked: Bytes(0),
            delivered: Bytes(0),
            estimated: Time(0),
            round: Bytes(0),
            rounds: 0,
            cuts: 0,
            calm: Bytes(0),
            cut: Time(0),
            share: Share::new(ONE as u32),
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
        let window = ack.flight - ack.acked + self.mss;
        let pause = if self.is_independent(config) { config.rtt_target } else { Duration(0) };
        if self.round.0 == 0 && self.delivered.0 > 0 {
            self.round = window;
            if self.window() >= self.ssthresh {
                self.rounds = self.rounds.saturating_add(1);
            }
            if now - self.estimated >= pause {
                if self.heard != 0 {
                    self.share =
                        self.share.after(&dctcp::Config { linux: false }, self.marked, self.delivered);
                }
                (self.marked, self.delivered) = (Bytes(0), Bytes(0));
                self.estimated = now;
            }
        }
        self.grow(config, ack, ack.acked - newly_marked);
        if newly_marked.0 > 0 && self.calm.0 == 0 && !ack.in_recovery && now - self.cut >= pause {
            let before = self.cwnd;
            let lost = mul_div(before, self.share.alpha().into(), 2 << PLACES);
            self.set(before - lost);
            self.cuts = self.cuts.wrapping_add((self.cwnd < before).into());
            self.ssthresh = self.window();
            self.calm = window;
            self.cut = now;
        }
    }

    /// Half, since a loss says more than a mark; of the window, which pacing keeps in use.
    #[inline]
    fn on_loss(&mut self, _config: &Config, _now: Time, _flight: Bytes) {
        self.set(self.cwnd / 2);
        self.ssthresh = self.window();
    }

    #[inline]
    fn on_timeout(&mut self, _config: &Config, _now: Time, flight: Bytes, is_first: bool) {
        if is_first {
            self.ssthresh = Bytes((flight.0 / 2).max(self.mss.0 * 2));
        }
        self.cwnd = self.mss.0 << PLACES;
        (self.round, self.calm) = (Bytes(0), Bytes(0));
    }

    /// Silence says nothing of the marks to come: alpha stays.
    #[inline]
    fn on_restart(&mut self, _config: &Config, _now: Time, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(initial_window.max(self.mss).min(WINDOW_MAX).0 << PLACES);
        (self.round, self.calm) = (Bytes(0), Bytes(0));
    }

    /// All data is of L4S, repeated data too (RFC 9331 §4.1).
    #[inline(always)]
    fn on_send(&mut self, _config: &Config, _now: Time, _send: &Send, packet: &mut impl Packet) {
        packet.set_ecn(ECT1);
    }

    #[inline]
    fn window(&self) -> Bytes {
        Bytes(self.cwnd >> PLACES)
    }

    #[inline(always)]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    /// The window in a round trip; twice that far below the threshold, where it doubles.
    #[inline]
    fn pacing_rate(&self, _config: &Config, srtt: Duration) -> Option<Rate> {
        if srtt.0 == 0 {
            return None;
        }
        let window = self.window();
        let is_doubling = window.0 < self.ssthresh.0 / 2;
        Some(Bytes(if is_doubling { window.0 * 2 } else { window.0 }).per(srtt))
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
}

impl EchoLaw<Config> for Echo {
    #[inline(always)]
    fn start(_config: &Config, _mss: Bytes) -> Self {
        Self::default()
    }

    #[inline]
    fn on_data(&mut self, _config: &Config, packet: &impl Packet, _receiver: impl Receiving) -> Heard {
        self.marked = self.marked.wrapping_add((packet.ecn() == CE).into());
        Heard::Taken
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
