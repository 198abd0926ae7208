//! Reno's additive increase and multiplicative decrease (RFC 5681). Detecting and repairing a loss
//! belongs to the sender that runs this law; so does inflating the window by duplicate ACKs.

use super::protocol::Protocol;
use super::settings::{self, Field, Settings};
#[cfg(feature = "words")]
use super::words::{Reaction, Rule, SenderWords};
use super::{Ack, Hue, Look, Needs, SenderLaw, Shape, Threshold};
use crate::units::{Bytes, Time};
#[cfg(feature = "words")]
use alloc::vec::Vec;
use core::convert::Infallible;

/// Reno's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// True if slow start adds all that an ACK acknowledges (RFC 3465 without a limit, Linux), so that the window doubles
    /// in a round trip, also when ACKs are delayed; false: a segment an ACK at most.
    pub byte_counting: bool,
    /// True if congestion avoidance counts an ACK as one segment at most (RFC 5681 eq. 3, ns-2), so that delayed ACKs halve
    /// the growth; false: as what it acknowledges.
    pub ack_counting: bool,
}

impl Config {
    /// RFC 5681's slow start.
    pub const DEFAULT: Self = Self { byte_counting: false, ack_counting: false };
}

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "byte_counting",
            "Slow start adds all that an ACK acknowledges, as Linux: true; a segment at most (RFC 5681): false (default).",
            Field::Switch(&mut self.byte_counting),
        );
        settings::ack_counting(&mut self.ack_counting, tell);
    }
}

/// Returns the protocols with Reno's window, which differ in how TCP's machinery finds and repairs losses.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[
            preset(
                "reno",
                Look::new(Hue::Amber, Shape::Up, 2),
                "reno",
                "Reno's AIMD, losses repaired one by one (RFC 5681)",
            ),
            preset(
                "newreno",
                Look::new(Hue::Ink, Shape::Down, 3),
                "reno",
                "Reno's AIMD, several losses per window repaired by partial ACKs (RFC 6582)",
            ),
            preset(
                "sack",
                Look::new(Hue::Sky, Shape::Rhomb, 2),
                "reno",
                "Reno's AIMD, losses repaired by selective acknowledgment (RFC 6675)",
            ),
            preset(
                "fack",
                Look::new(Hue::Brown, Shape::Plus, 4),
                "fack",
                "Reno's AIMD, losses repaired by forward acknowledgment (Mathis, Mahdavi 1996)",
            ),
        ]
    }
}

const fn preset(
    name: &'static str,
    look: Look,
    page: &'static str,
    about: &'static str,
) -> Protocol<Infallible, Config> {
    Protocol {
        name,
        about,
        page,
        look,
        link_series: &[],
        flow_series: &[],
        link: None,
        sender: Some(Config::DEFAULT),
    }
}

/// Reno's window of one connection.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Reno {
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    /// Data acknowledged in congestion avoidance since the window last grew.
    acked: Bytes,
}

impl Reno {
    /// Creates the state of a new connection: slow start without a threshold (RFC 5681 §3.1).
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        Self { mss, cwnd: initial_window.max(mss), ssthresh: Bytes(u64::MAX), acked: Bytes(0) }
    }

    /// Returns the slow-start threshold; the largest amount: there is none.
    #[inline]
    pub fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    /// Reduces the window to this much, at least two segments: what is above it is avoidance.
    #[inline]
    pub(super) fn reduce_to(&mut self, window: Bytes) {
        self.ssthresh = window.max(self.mss + self.mss);
        self.cwnd = self.ssthresh;
        self.acked = Bytes(0);
    }

    fn half(&self, flight: Bytes) -> Bytes {
        Bytes((flight.0 / 2).max(self.mss.0.saturating_mul(2)))
    }
}

impl SenderLaw for Reno {
    type Config = Config;
    type Echo = ();
    const IS_SILENT: bool = true;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "reno"
    }

    #[inline(always)]
    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(mss, initial_window)
    }

    #[inline(always)]
    fn needs(_config: &Config) -> Needs {
        Needs { slow_start: Some(&["byte_counting"]), ..Needs::NONE }
    }

    #[inline(always)]
    fn threshold(&mut self) -> Option<Threshold<'_>> {
        Some(Threshold { cwnd: &mut self.cwnd.0, ssthresh: &mut self.ssthresh.0, places: 0 })
    }

    /// Grows the window, unless the sender does not use it or is repairing a loss. After a timeout
    /// it is below the threshold and grows while repairing, as slow start must.
    #[inline]
    fn on_ack(&mut self, config: &Config, _now: Time, ack: &Ack) {
        if !ack.is_window_limited {
            return;
        }
        if self.cwnd < self.ssthresh && config.byte_counting {
            self.cwnd = (self.cwnd + ack.acked).min(self.ssthresh); // tcp_slow_start in net/ipv4/tcp_cong.c
        } else if self.cwnd < self.ssthresh {
            self.cwnd += ack.acked.min(self.mss); // RFC 5681 §3.1 eq. 2
        } else if !ack.in_recovery {
            // RFC 5681 §3.1: the recommended way, one segment per window of acknowledged data.
            self.acked += if config.ack_counting { ack.acked.min(self.mss) } else { ack.acked };
            if self.acked >= self.cwnd {
                self.acked -= self.cwnd;
                self.cwnd += self.mss;
            }
        }
    }

    /// Halves the flight (RFC 5681 eq. 4, §3.2 step 6).
    #[inline]
    fn on_loss(&mut self, _config: &Config, _now: Time, flight: Bytes) {
        self.ssthresh = self.half(flight);
        self.cwnd = self.ssthresh;
        self.acked = Bytes(0);
    }

    /// One segment; the threshold falls only the first time (RFC 5681 §3.1).
    #[inline]
    fn on_timeout(&mut self, _config: &Config, _now: Time, flight: Bytes, is_first: bool) {
        if is_first {
            self.ssthresh = self.half(flight);
        }
        self.cwnd = self.mss;
        self.acked = Bytes(0);
    }

    /// Back to the initial window at most (RFC 5681 §4.1).
    #[inline]
    fn on_restart(&mut self, _config: &Config, _now: Time, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(initial_window.max(self.mss));
        self.acked = Bytes(0);
    }

    /// The congestion window.
    #[inline]
    fn window(&self) -> Bytes {
        self.cwnd
    }
}

#[cfg(feature = "words")]
impl SenderWords for Reno {
    fn explain(_: &Config, [before, _]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        seen.reno(before.ssthresh(), rules);
        seen.cut(rules);
    }
}
