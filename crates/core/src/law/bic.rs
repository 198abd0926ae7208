//! BIC (Xu, Harfoush, Rhee: "Binary increase congestion control for fast long-distance networks",
//! INFOCOM 2004; "BI" below): after a loss the window searches for the size at which it happened, by
//! halves, at most Smax segments a round trip; past it, it leaves slowly, then faster.

#[cfg(feature = "words")]
mod words;

use super::places::{PLACES, SEGMENT_MAX, bytes, with_places};
use super::protocol::Protocol;
use super::settings::{self, Field, Settings};
use super::{Ack, Hue, Look, Needs, SenderLaw, Shape, Threshold};
use crate::units::{Bytes, Ratio, Time, Wide, mul_div};
use core::convert::Infallible;

/// Constants of BIC that a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// low_window, segments: smaller windows behave as Reno's.
    pub low_window: u32,
    /// Smax, the most segments that a round trip adds.
    pub max_increment: u32,
    /// Smin, the least that a round trip adds while the window searches, in segments.
    pub min_increment: Ratio,
    /// Part of the window that a loss takes.
    pub beta: Ratio,
    /// Fast convergence: after a loss below the last maximum the search goes half way up only.
    pub fast_convergence: bool,
    /// True if the growth above the threshold counts an ACK as one segment at most (ns-2); false: as what it acknowledges.
    pub ack_counting: bool,
}

impl Config {
    const DEFAULT: Self = Self {
        low_window: 14,
        max_increment: 32,
        min_increment: Ratio::ppm(10_000),
        beta: Ratio::ppm(125_000),
        fast_convergence: true,
        ack_counting: false,
    };
}

impl Default for Config {
    #[inline] // or it would be in each BPF object
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "low_window",
            "packets, below which it is Reno; 14 (BI, section IV).",
            Field::Count(&mut self.low_window),
        );
        tell(
            "max_increment",
            "Smax, the most packets that a round trip adds; 32 (BI, section IV; Linux has 16).",
            Field::Count(&mut self.max_increment),
        );
        tell(
            "min_increment",
            "Smin, the least that a round trip adds while it searches, packets; 0.01 (BI, section IV).",
            Field::Factor(&mut self.min_increment),
        );
        tell(
            "beta",
            "the part of the window that a loss takes; 0.125 (BI, section IV; Linux has 0.2).",
            Field::Share(&mut self.beta),
        );
        tell(
            "fast_convergence",
            "a loss below the last maximum searches up to half way only, so that a new flow finds room; true (BI).",
            Field::Switch(&mut self.fast_convergence),
        );
        settings::ack_counting(&mut self.ack_counting, tell);
    }
}

/// Returns the protocols of this file: `bic` alone.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "bic",
            about: "BIC, losses repaired by selective acknowledgment (Xu, Harfoush, Rhee 2004)",
            page: "bic",
            look: Look::new(Hue::Purple, Shape::Rhomb, 4),
            link_series: &[],
            flow_series: &[],
            link: None,
            sender: Some(Config::DEFAULT),
        }]
    }
}

/// BIC's window of one connection. Windows are bytes with 16 binary places.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Bic {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// max_win; `u64::MAX`, the paper's default_max_win: unknown.
    max_win: u64,
    /// target_win, half way to `max_win`.
    target_win: u64,
    /// ss_cwnd, what a round trip adds on the way out of the known; 0: outside of BIC's slow start.
    ss_cwnd: u64,
    /// ss_target.
    ss_target: u64,
}

impl Bic {
    /// Creates the state of a new connection: slow start without a threshold.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.min(SEGMENT_MAX).max(Bytes(1));
        Self {
            mss: with_places(mss),
            cwnd: with_places(initial_window.max(mss)),
            ssthresh: u64::MAX,
            max_win: u64::MAX,
            target_win: u64::MAX,
            ss_cwnd: 0,
            ss_target: 0,
        }
    }

    /// Returns the slow-start threshold; the largest amount: there is none.
    #[inline]
    pub fn ssthresh(&self) -> Bytes {
        bytes(self.ssthresh)
    }

    /// Returns max_win, the window that the search approaches; the largest amount: unknown.
    #[inline]
    pub fn max_win(&self) -> Bytes {
        bytes(self.max_win)
    }

    /// BI, pseudo-code: an acknowledgment outside of fast recovery.
    #[inline]
    fn avoid_congestion(&mut self, config: &Config, acked: u64) {
        if self.cwnd < self.segments(config.low_window) {
            self.grow(acked, self.mss);
            return;
        }
        let most = self.segments(config.max_increment);
        if self.ss_cwnd > 0 {
            self.grow(acked, self.ss_cwnd);
            if self.cwnd >= self.ss_target {
                self.ss_cwnd = self.ss_cwnd.saturating_mul(2);
                self.ss_target = self.cwnd.saturating_add(self.ss_cwnd);
            }
            if self.ss_cwnd >= most {
                self.ss_cwnd = 0;
            }
            return;
        }
        let least = mul_div(self.mss, config.min_increment.0.into(), Ratio::ONE.0.into());
        let step = self.target_win.saturating_sub(self.cwnd).max(least).min(most);
        self.grow(acked, step);
        if self.cwnd < self.max_win {
            self.target_win = self.cwnd + (self.max_win - self.cwnd) / 2;
        } else {
            self.ss_cwnd = self.mss;
            self.ss_target = self.cwnd.saturating_add(self.mss);
            self.max_win = u64::MAX;
            self.target_win = u64::MAX;
        }
    }

    /// By `step` per window of acknowledged data.
    #[inline]
    fn grow(&mut self, acked: u64, step: u64) {
        self.cwnd = self.cwnd.saturating_add(mul_div(acked, step, self.cwnd));
    }

    /// BI, pseudo-code: entering fast recovery. What is left of the window.
    #[inline]
    fn reduce(&mut self, config: &Config, flight: Bytes) -> u64 {
        let flight = with_places(flight);
        let floor = self.mss.saturating_mul(2); // RFC 5681 eq. 4
        self.ss_cwnd = 0;
        if self.cwnd < self.segments(config.low_window) {
            return (flight / 2).max(floor);
        }
        let left = (flight - config.beta.of(flight).min(flight)).max(floor);
        let is_shrinking = self.cwnd < self.max_win && self.max_win != u64::MAX;
        self.max_win = self.cwnd.max(left);
        if config.fast_convergence && is_shrinking {
            self.max_win = left + (self.max_win - left) / 2;
        }
        self.target_win = left + (self.max_win - left) / 2;
        left
    }

    #[inline]
    fn segments(&self, count: u32) -> u64 {
        Wide::product(self.mss, count.into()).to_u64()
    }
}

impl SenderLaw for Bic {
    type Config = Config;
    type Echo = ();
    const IS_SILENT: bool = true;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "bic"
    }

    #[inline(always)]
    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(mss, initial_window)
    }

    #[inline(always)]
    fn needs(_config: &Config) -> Needs {
        Needs { slow_start: Some(&[]), ..Needs::NONE }
    }

    #[inline(always)]
    fn threshold(&mut self) -> Option<Threshold<'_>> {
        Some(Threshold { cwnd: &mut self.cwnd, ssthresh: &mut self.ssthresh, places: PLACES })
    }

    /// Grows the window, unless the sender does not use it or is repairing a loss. After a timeout
    /// it is below the threshold and grows while repairing, as slow start must.
    #[inline]
    fn on_ack(&mut self, config: &Config, _now: Time, ack: &Ack) {
        if !ack.is_window_limited {
            return;
        }
        let acked = with_places(ack.acked);
        if self.cwnd < self.ssthresh {
            self.cwnd = self.cwnd.saturating_add(acked.min(self.mss));
        } else if !ack.in_recovery {
            let counted = if config.ack_counting { acked.min(self.mss) } else { acked };
            self.avoid_congestion(config, counted);
        }
    }

    #[inline]
    fn on_loss(&mut self, config: &Config, _now: Time, flight: Bytes) {
        self.ssthresh = self.reduce(config, flight);
        self.cwnd = self.ssthresh;
    }

    /// One segment; the threshold falls only the first time (RFC 5681 §3.1). The paper is silent:
    /// where the loss was is known after a timeout too.
    #[inline]
    fn on_timeout(&mut self, config: &Config, _now: Time, flight: Bytes, is_first: bool) {
        if is_first {
            self.ssthresh = self.reduce(config, flight);
        }
        self.cwnd = self.mss;
    }

    /// Back to the initial window at most (RFC 5681 §4.1).
    #[inline]
    fn on_restart(&mut self, _config: &Config, _now: Time, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(with_places(initial_window).max(self.mss));
    }

    /// The congestion window.
    #[inline]
    fn window(&self) -> Bytes {
        Bytes(self.cwnd >> PLACES)
    }
}
