//! TCP-Peach (Akyildiz, Morabito, Palazzo, ToN 2001) and TCP-Peach+ (Akyildiz, Zhang, Fang, IEEE
//! Communications Letters 2002), as docs/design/protocols.md 8 recalls them: probes of low priority, which a
//! path without room drops first, say how much the window may grow. A connection begins with a probe every
//! RTT / rwnd (sudden start; jump start in Peach+), and a loss with as many as the window had segments
//! (rapid recovery; quick recovery): if the loss was no congestion, their ACKs bring the window back.

#[cfg(feature = "words")]
mod words;

use super::protocol::Protocol;
use super::settings::{Field, Settings, words};
use super::{Ack, Ask, Giver, Hue, Look, Needs, Network, Packet, Probe, Send, SenderLaw, Shape, Turn};
use crate::units::{Bytes, Duration, Time, mul_div};
use core::convert::Infallible;

/// As many segments as a receiver can advertise here; sudden start sends a probe for each.
const RWND_MAX: u32 = (1 << 24) - 2;

/// Kind of segment that a probe carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Variant {
    /// TCP-Peach: a dummy segment, the last data segment once more.
    Peach,
    /// TCP-Peach+: a NIL segment, any that is outstanding and not acknowledged, which can repair a loss.
    PeachPlus,
}

words!(Variant { Peach = "peach", PeachPlus = "peach-plus", });

/// Settings of TCP-Peach that a scenario may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// Kind of segment that probes carry.
    pub variant: Variant,
    /// rwnd, segments, of a receiver that advertises no limit.
    pub rwnd: u32,
    /// The most probes that a returning ACK lets go in recovery.
    pub per_ack: u32,
}

impl Config {
    /// Returns the defaults of a variant.
    pub const fn of(variant: Variant) -> Self {
        Self { variant, rwnd: 64, per_ack: 2 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::of(Variant::Peach)
    }
}

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "variant",
            "what a probe carries: peach, the last data segment; peach-plus, a random outstanding one; as the \
             law's name says (PX section I).",
            Field::Word(&mut self.variant),
        );
        tell(
            "rwnd",
            "segments that sudden start fills and probes do not exceed, where the receiver advertises no limit; 64 \
             (PX section IV, its receivers').",
            Field::Number(&mut self.rwnd, RWND_MAX),
        );
        tell(
            "probes_per_ack",
            "probes at most that an ACK of data lets go in rapid recovery; 2 (recalled, A-21).",
            Field::Count(&mut self.per_ack),
        );
    }
}

/// Returns the protocols of this file: `peach` and `peach-plus`, by what probes carry.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[
            Protocol {
                name: "peach",
                about: "TCP-Peach: low-priority dummy segments probe the path (Akyildiz, Morabito, Palazzo 2001)",
                page: "peach",
                look: Look::new(Hue::Purple, Shape::Cross, 1),
                link_series: &[],
                flow_series: &[],
                link: None,
                sender: Some(Config::of(Variant::Peach)),
            },
            Protocol {
                name: "peach-plus",
                about: "TCP-Peach+: low-priority NIL segments probe the path and repair losses (Akyildiz, Zhang, Fang 2002)",
                page: "peach",
                look: Look::new(Hue::Green, Shape::Plus, 2),
                link_series: &[],
                flow_series: &[],
                link: None,
                sender: Some(Config::of(Variant::PeachPlus)),
            },
        ]
    }
}

/// Purpose of the probes that are still to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Sudden start waits for the first data segment.
    Armed,
    /// The first data segment has left; round trip time and rwnd say when the probes go.
    Begun,
    /// Sudden start: a probe goes every tau = RTT / rwnd.
    SuddenStart,
    /// Rapid recovery: probes go with ACKs, or none are left.
    Recovery,
}

/// TCP-Peach's window of one connection, with its probes.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Peach {
    mss: Bytes,
    cwnd: Bytes,
    /// Data acknowledged since the window last grew.
    acked: Bytes,
    /// When the next probe of sudden start goes.
    due: Time,
    /// RTT / rwnd.
    tau: Duration,
    /// Probes still to go.
    probes: u64,
    /// Probes of recovery that may go, for the ACK that came last.
    allowed: u32,
    phase: Phase,
    /// Probe ACKs that do not open the window.
    wdsn: u64,
}

impl Peach {
    /// Creates the state of a new connection, ready for sudden start.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.max(Bytes(1));
        Self {
            mss,
            cwnd: initial_window.max(mss),
            acked: Bytes(0),
            due: Time::NEVER,
            tau: Duration(0),
            probes: 0,
            allowed: 0,
            phase: Phase::Armed,
            wdsn: 0,
        }
    }

    /// Returns WDSN, the number of probe ACKs that will not open the window.
    #[inline]
    pub fn wdsn(&self) -> u64 {
        self.wdsn
    }

    /// Returns the number of probes still to go.
    #[inline]
    pub fn probes(&self) -> u64 {
        self.probes
    }

    /// Returns the purpose of the probes that are still to go.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The receiver's window, bytes.
    #[inline]
    fn rwnd(&self, config: &Config, awnd: Bytes) -> Bytes {
        match awnd {
            Bytes(u64::MAX) => Bytes(mul_div(self.mss.0, config.rwnd.into(), 1)),
            limit => limit,
        }
    }

    #[inline]
    fn segments(&self, window: Bytes) -> u64 {
        // It is never 0, which BPF's compiler does not see.
        window.0 / self.mss.0.max(1)
    }

    /// Sudden start begins with the next data segment.
    #[inline]
    fn arm(&mut self) {
        self.acked = Bytes(0);
        self.probes = 0;
        self.wdsn = 0;
        self.phase = Phase::Armed;
    }
}

impl SenderLaw for Peach {
    type Config = Config;
    type Echo = ();

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "peach"
    }

    /// "cwnd = 1" (docs/design/protocols.md 8.3). The draws are of the segment that a NIL segment copies; TCP's machinery
    /// makes them.
    #[inline(always)]
    fn needs(_config: &Config) -> Needs {
        Needs {
            network: Some(Network {
                giver: Giver::Queue("prio-droptail"),
                at_bottleneck: true,
                without: "a full queue drops data as soon as probes, so probes take the place of data and say little",
                marked: "",
                unacknowledged: "the permission of the probe that it answers",
            }),
            initial_window: Some(1),
            draws: true,
            probes: true,
            ..Needs::NONE
        }
    }

    #[inline(always)]
    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(mss, initial_window)
    }

    /// Congestion avoidance, with or without sudden start: one segment per window (RFC 5681 §3.1).
    #[inline]
    fn on_ack(&mut self, config: &Config, _now: Time, ack: &Ack) {
        if self.phase == Phase::Recovery {
            self.allowed = config.per_ack;
        }
        if ack.is_window_limited && !ack.in_recovery {
            self.acked += ack.acked;
            if self.acked >= self.cwnd {
                self.acked -= self.cwnd;
                self.cwnd += self.mss;
            }
        }
    }

    /// Half of the window, in whole segments; so many probe ACKs are what the path has room for by that
    /// alone, and only those after them open it again, up to where it was.
    #[inline]
    fn on_loss(&mut self, config: &Config, _now: Time, _flight: Bytes) {
        let segments = self.segments(self.cwnd);
        let half = (segments / 2).max(1);
        // At most the window, or one segment.
        self.cwnd = Bytes(half.wrapping_mul(self.mss.0));
        self.acked = Bytes(0);
        self.wdsn = half;
        self.probes = segments;
        self.phase = Phase::Recovery;
        // The ACK that reported the loss has returned, too.
        self.allowed = config.per_ack;
    }

    /// One segment, and sudden start with its repetition; until then no probes (§8.5).
    #[inline]
    fn on_timeout(&mut self, _config: &Config, _now: Time, _flight: Bytes, _is_first: bool) {
        self.cwnd = self.mss;
        self.arm();
    }

    /// Back to the initial window at most (RFC 5681 §4.1), and sudden start from there.
    #[inline]
    fn on_restart(&mut self, _config: &Config, _now: Time, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(initial_window.max(self.mss));
        self.arm();
    }

    #[inline]
    fn on_send(&mut self, _config: &Config, _now: Time, _send: &Send, _packet: &mut impl Packet) {
        if self.phase == Phase::Armed {
            self.phase = Phase::Begun;
        }
    }

    #[inline]
    fn probe(&mut self, config: &Config, now: Time, ask: &Ask) -> Turn {
        if self.phase == Phase::Begun {
            let rwnd = self.segments(self.rwnd(config, ask.awnd));
            self.probes = rwnd.saturating_sub(self.segments(self.cwnd));
            self.tau = Duration((ask.srtt.0 / rwnd.max(1)).max(1));
            self.due = now + self.tau;
            self.phase = Phase::SuddenStart;
        }
        match self.phase {
            _ if self.probes == 0 => return Turn::Wait(Time::NEVER),
            Phase::SuddenStart if now < self.due => return Turn::Wait(self.due),
            Phase::SuddenStart => self.due = now + self.tau,
            Phase::Recovery if self.allowed > 0 => self.allowed -= 1,
            _ => return Turn::Wait(Time::NEVER),
        }
        self.probes -= 1;
        Turn::Send(match config.variant {
            Variant::Peach => Probe::Last,
            Variant::PeachPlus => Probe::Random,
        })
    }

    #[inline]
    fn on_probe_ack(&mut self, config: &Config, awnd: Bytes) {
        if self.wdsn > 0 {
            self.wdsn -= 1;
        } else if self.cwnd < self.rwnd(config, awnd) {
            self.cwnd = (self.cwnd + self.mss).min(self.rwnd(config, awnd));
        }
    }

    /// The congestion window.
    #[inline]
    fn window(&self) -> Bytes {
        self.cwnd
    }
}
