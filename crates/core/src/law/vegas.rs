//! Vegas (Brakmo, Peterson: "TCP Vegas: end to end congestion avoidance on a global Internet", JSAC
//! 1995): keeps so many packets of its own in the queue, told by how far the round trip time is
//! above the least ever seen. Losses are repaired as everywhere here, not by Vegas's own
//! retransmission checks.

#[cfg(feature = "words")]
mod words;

use super::protocol::Protocol;
#[cfg(feature = "words")]
use super::settings::Finding;
use super::settings::{Field, Settings};
#[cfg(feature = "words")]
use super::words::number;
use super::{Ack, Hue, Look, SenderLaw, Shape};
use crate::units::{Bytes, Duration, Ratio, Time, mul_div};
use core::convert::Infallible;

/// Constants of Vegas that a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// alpha: with fewer packets of its own in the queue the window grows.
    pub alpha: Ratio,
    /// beta: with more packets of its own in the queue the window shrinks.
    pub beta: Ratio,
    /// gamma: with more packets of its own in the queue slow start is over.
    pub gamma: Ratio,
    /// Part of the window that a loss takes.
    pub decrease: Ratio,
    /// True to compare the mean of a round trip's samples (ns-2.35); false: the least (Linux), which holds no wait of a delayed
    /// ACK.
    pub mean_rtt: bool,
}

impl Config {
    const DEFAULT: Self = Self {
        alpha: Ratio::ONE,
        beta: Ratio::ppm(3_000_000),
        gamma: Ratio::ONE,
        decrease: Ratio::ppm(250_000),
        mean_rtt: false,
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
            "alpha",
            "with fewer packets of its own in the queue the window grows by one a round trip; 1 (Brakmo and \
             Peterson, section IV; Linux has 2).",
            Field::Factor(&mut self.alpha),
        );
        tell(
            "beta",
            "with more packets of its own in the queue the window shrinks by one a round trip; 3 (Brakmo and \
             Peterson, section IV; Linux has 4).",
            Field::Factor(&mut self.beta),
        );
        tell(
            "gamma",
            "with more packets of its own in the queue slow start ends; 1 (ns-2.35 and Linux).",
            Field::Factor(&mut self.gamma),
        );
        tell(
            "decrease",
            "the part of the window that a loss takes; 0.25 (ns-2.35, tcp-vegas.cc; Linux has 0.5).",
            Field::Share(&mut self.decrease),
        );
        tell(
            "mean_rtt",
            "compare the mean of a round trip's samples, as ns-2.35: true (profile ns2); the least, as Linux: false.",
            Field::Switch(&mut self.mean_rtt),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        // Between alpha and beta the window rests.
        if self.alpha > self.beta {
            let text = alloc::format!("is {}, more than beta, {}", number(self.alpha), number(self.beta));
            let help = "allowed: alpha up to beta; below alpha packets in the queue the window grows, above beta it shrinks";
            tell(Finding { at: ["alpha", "beta"], ..Finding::range("alpha", text, help) });
        }
    }
}

/// Returns the protocols of this file: `vegas` alone.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "vegas",
            about: "Vegas, losses repaired by selective acknowledgment (Brakmo, Peterson 1995)",
            page: "vegas",
            look: Look::new(Hue::Brown, Shape::Down, 2),
            link_series: &[],
            flow_series: &[],
            link: None,
            sender: Some(Config::DEFAULT),
        }]
    }
}

/// Vegas's window of one connection.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Vegas {
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    /// BaseRTT; zero: unknown.
    base_rtt: Duration,
    /// Data still to be acknowledged until the round trip of the distinguished segment is over.
    round: Bytes,
    /// Least round trip time sampled in it, or with `mean_rtt` their sum; and how many were sampled.
    rtt: Duration,
    samples: u64,
    /// Packets of its own in the queue at the last comparison, in millionths.
    queued: u64,
    /// Slow start doubles in every other round trip, "so that a valid comparison of the expected and
    /// actual rates can be made".
    is_growing: bool,
}

impl Vegas {
    /// Creates the state of a new connection: slow start without a threshold.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.max(Bytes(1));
        Self {
            mss,
            cwnd: initial_window.max(mss),
            ssthresh: Bytes(u64::MAX),
            base_rtt: Duration(0),
            round: Bytes(0),
            rtt: Duration(0),
            samples: 0,
            queued: 0,
            is_growing: true,
        }
    }

    /// Returns the slow-start threshold; the largest amount: there is none.
    #[inline]
    pub fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    /// Returns BaseRTT, the least round trip time seen; zero: unknown.
    #[inline]
    pub fn base_rtt(&self) -> Duration {
        self.base_rtt
    }

    /// Returns the flow's own packets in the queue at the last comparison, millionths.
    #[inline]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// The distinguished segment is acknowledged: (Expected - Actual) BaseRTT, with Expected =
    /// window / BaseRTT and Actual = window / RTT, decides. RTT is the least, or the mean, since that segment was
    /// sent.
    #[inline]
    fn compare(&mut self, config: &Config, rtt: Duration, is_window_limited: bool) {
        let window = mul_div(self.cwnd.0, Ratio::ONE.0.into(), self.mss.0);
        self.queued = mul_div(window, (rtt - self.base_rtt).0, rtt.0);
        let (alpha, beta) = (u64::from(config.alpha.0), u64::from(config.beta.0));
        if self.cwnd < self.ssthresh {
            self.is_growing = !self.is_growing;
            // ns-2.35: an eighth less, because half of the last doubling is in the queue.
            if self.is_growing && self.queued > u64::from(config.gamma.0) {
                self.cwnd = self.at_least_two(Bytes(self.cwnd.0 - self.cwnd.0 / 8));
                self.ssthresh = self.cwnd;
            }
        } else if self.queued > beta {
            self.cwnd = self.at_least_two(self.cwnd - self.mss);
            self.ssthresh = self.ssthresh.min(self.cwnd);
        } else if self.queued < alpha && is_window_limited {
            self.cwnd += self.mss;
        }
    }

    #[inline]
    fn at_least_two(&self, window: Bytes) -> Bytes {
        window.max(self.mss + self.mss)
    }
}

impl SenderLaw for Vegas {
    type Config = Config;
    type Echo = ();
    const IS_SILENT: bool = true;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "vegas"
    }

    #[inline(always)]
    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(mss, initial_window)
    }

    #[inline]
    fn on_ack(&mut self, config: &Config, _now: Time, ack: &Ack) {
        if ack.rtt.0 > 0 && (self.base_rtt.0 == 0 || ack.rtt < self.base_rtt) {
            self.base_rtt = ack.rtt;
        }
        if ack.rtt.0 > 0 {
            if config.mean_rtt {
                self.rtt += ack.rtt;
            } else if self.samples == 0 || ack.rtt < self.rtt {
                self.rtt = ack.rtt;
            }
            self.samples = self.samples.saturating_add(1);
        }
        self.round -= ack.acked;
        if self.round.0 == 0 && self.samples > 0 {
            if !ack.in_recovery {
                let count = if config.mean_rtt { self.samples } else { 1 };
                self.compare(config, Duration(mul_div(self.rtt.0, 1, count)), ack.is_window_limited);
            }
            (self.rtt, self.samples) = (Duration(0), 0);
            // The next segment to be sent is distinguished; what is in flight comes before it.
            self.round = ack.flight - ack.acked + self.mss;
        }
        if self.cwnd < self.ssthresh && ack.is_window_limited && self.is_growing {
            self.cwnd += ack.acked.min(self.mss);
        }
    }

    /// ns-2.35: a quarter; Vegas's losses are few, and say little of the queue.
    #[inline]
    fn on_loss(&mut self, config: &Config, _now: Time, flight: Bytes) {
        self.ssthresh = self.at_least_two(Bytes(flight.0 - config.decrease.of(flight.0).min(flight.0)));
        self.cwnd = self.ssthresh;
    }

    /// One segment; the threshold falls only the first time (RFC 5681 §3.1).
    #[inline]
    fn on_timeout(&mut self, _config: &Config, _now: Time, flight: Bytes, is_first: bool) {
        if is_first {
            self.ssthresh = self.at_least_two(Bytes(flight.0 / 2));
        }
        self.cwnd = self.mss;
        // The distinguished segment is lost, or far behind the one that is sent now.
        (self.round, self.rtt, self.samples) = (Bytes(0), Duration(0), 0);
    }

    /// Back to the initial window at most (RFC 5681 §4.1).
    #[inline]
    fn on_restart(&mut self, _config: &Config, _now: Time, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(initial_window.max(self.mss));
        self.round = Bytes(0);
    }

    /// The congestion window.
    #[inline]
    fn window(&self) -> Bytes {
        self.cwnd
    }
}
