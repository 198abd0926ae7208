//! CUBIC (RFC 9438): the window grows as a cubic function of the time since the last decrease,
//! flat around the window where that happened. Sections cited are the RFC's.

#[cfg(feature = "words")]
mod words;

use super::places::{PLACES, SEGMENT_MAX, bytes, with_places};
use super::protocol::Protocol;
use super::settings::{Field, Settings};
use super::{Ack, Hue, Look, Needs, SenderLaw, Shape, Threshold};
use crate::units::{Bytes, Duration, Ratio, Time, Wide, mul_div};
use core::convert::Infallible;

/// beta_cubic, §4.6.
const BETA: Ratio = Ratio::ppm(700_000);
/// (1 + beta) / 2, what fast convergence keeps of W_max, §4.7.
const CONVERGENCE: Ratio = Ratio::ppm(850_000);
/// alpha_cubic = 3 (1 - beta) / (1 + beta) = 9/17, §4.3.
const ALPHA: (u64, u64) = (9, 17);
/// Cubed microseconds per cubed second, over C = 0.4 segments / s^3, §5.1.
const CUBED_PER_C: u64 = 2_500_000_000_000_000_000;

/// CUBIC's configuration, which is empty: the RFC's constants are fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {}

impl Settings for Config {
    fn each(&mut self, _tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {}
}

/// Returns the protocols of this file: `cubic` alone.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "cubic",
            about: "CUBIC, losses repaired by selective acknowledgment (RFC 9438)",
            page: "cubic",
            look: Look::new(Hue::Vermilion, Shape::Square, 1),
            link_series: &[],
            flow_series: &[],
            link: None,
            sender: Some(Config {}),
        }]
    }
}

/// Place of a connection on its curve, for observers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Slow-start threshold; the largest amount: there is none.
    pub ssthresh: Bytes,
    /// W_max, the window at the curve's plateau.
    pub w_max: Bytes,
    /// K, the time from the beginning of congestion avoidance to the plateau.
    pub k: Duration,
    /// W_est, the window that Reno would have by now.
    pub w_est: Bytes,
    /// Beginning of congestion avoidance; [`Time::NEVER`] outside of it.
    pub epoch: Time,
}

/// CUBIC's window of one connection. Windows are bytes with 16 binary places.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Cubic {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Window before the last decrease; 0: the coming congestion avoidance begins at its own (§4.8,
    /// §4.10).
    w_max: u64,
    /// cwnd at the last decrease, for [`ALPHA`]'s end (§4.3).
    cwnd_prior: u64,
    /// W_est, the window that Reno would have by now (§4.3).
    w_est: u64,
    /// When congestion avoidance began, less the times when the window went unused;
    /// [`Time::NEVER`] outside.
    epoch: Time,
    /// K in microseconds.
    k: u64,
    acked_at: Time,
}

impl Cubic {
    /// Creates the state of a new connection: slow start without a threshold.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.min(SEGMENT_MAX).max(Bytes(1));
        Self {
            mss: with_places(mss),
            cwnd: with_places(initial_window.max(mss)),
            ssthresh: u64::MAX,
            w_max: 0,
            cwnd_prior: 0,
            w_est: 0,
            epoch: Time::NEVER,
            k: 0,
            acked_at: Time::ZERO,
        }
    }

    /// Returns the connection's place on its curve.
    #[inline]
    pub fn report(&self) -> Report {
        Report {
            ssthresh: bytes(self.ssthresh),
            w_max: bytes(self.w_max),
            k: Duration(self.k.saturating_mul(1000)),
            w_est: bytes(self.w_est),
            epoch: self.epoch,
        }
    }

    /// Bounds the window by another law's reason: what is above it is gone, and a new epoch begins there.
    #[inline]
    pub(super) fn limit(&mut self, most: Bytes) {
        let most = with_places(most).max(self.mss);
        if self.cwnd > most {
            self.cwnd = most;
            self.w_max = 0;
            self.epoch = Time::NEVER;
        }
    }

    #[inline]
    fn avoid_congestion(&mut self, now: Time, ack: &Ack) {
        if self.epoch == Time::NEVER {
            self.epoch = now;
            self.w_est = self.cwnd;
            self.w_max = self.w_max.max(self.cwnd);
            self.k = cube_root(Wide::product(
                // In segments with 16 places, of which the cube root cannot see more.
                mul_div(self.w_max - self.cwnd, 1 << PLACES, self.mss),
                CUBED_PER_C >> PLACES,
            ));
        }
        let acked = with_places(ack.acked);
        let t = now - self.epoch;

        // Reno-friendly region, §4.3.
        let grown = mul_div(acked, self.mss, self.cwnd);
        let grown = if self.w_est < self.cwnd_prior { mul_div(grown, ALPHA.0, ALPHA.1) } else { grown };
        self.w_est = self.w_est.saturating_add(grown);
        if self.w_cubic(t) < self.w_est {
            self.cwnd = self.cwnd.max(self.w_est);
            return;
        }
        // Concave and convex regions, §4.4 and §4.5; bounds of §4.2.
        let target = self.w_cubic(t + ack.srtt).min(self.cwnd.saturating_add(self.cwnd / 2));
        let growth = mul_div(target.saturating_sub(self.cwnd), acked, self.cwnd);
        self.cwnd = self.cwnd.saturating_add(growth);
    }

    /// W_cubic(t) = C (t - K)^3 + W_max, §4.2 fig. 1.
    #[inline]
    fn w_cubic(&self, t: Duration) -> u64 {
        let t = t.0 / 1000;
        // 2^32 us, more than an hour from the plateau, stands for all beyond.
        let distance = t.abs_diff(self.k).min(u32::MAX as u64);
        let offset = Wide::product(distance * distance, distance * (self.mss >> PLACES))
            .over(CUBED_PER_C >> PLACES)
            .to_u64();
        if t < self.k { self.w_max.saturating_sub(offset) } else { self.w_max.saturating_add(offset) }
    }

    /// Keeps where the decrease happened: less where the window was already shrinking, so that a
    /// new flow finds room (§4.7).
    #[inline]
    fn remember(&mut self) {
        self.w_max = if self.cwnd < self.w_max { CONVERGENCE.of(self.cwnd) } else { self.cwnd };
        self.cwnd_prior = self.cwnd;
        self.epoch = Time::NEVER;
    }

    #[inline]
    fn reduced(&self, flight: Bytes) -> u64 {
        BETA.of(with_places(flight)).max(self.mss.saturating_mul(2))
    }
}

impl SenderLaw for Cubic {
    type Config = Config;
    type Echo = ();
    const IS_SILENT: bool = true;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "cubic"
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
    fn on_ack(&mut self, _config: &Config, now: Time, ack: &Ack) {
        let since = now - self.acked_at;
        self.acked_at = now;
        if !ack.is_window_limited {
            // §4.2, §5.8: t leaves out the times when the window could not have grown.
            if self.epoch != Time::NEVER {
                self.epoch = (self.epoch + since).min(now);
            }
        } else if self.cwnd < self.ssthresh {
            self.cwnd = self.cwnd.saturating_add(with_places(ack.acked).min(self.mss));
        } else if !ack.in_recovery {
            self.avoid_congestion(now, ack);
        }
    }

    /// Multiplicative decrease with fast convergence (§4.6, §4.7).
    #[inline]
    fn on_loss(&mut self, _config: &Config, _now: Time, flight: Bytes) {
        self.remember();
        self.ssthresh = self.reduced(flight);
        self.cwnd = self.ssthresh;
    }

    /// One segment; the next congestion avoidance begins with K = 0 (§4.8). The threshold falls only
    /// the first time (RFC 5681 §3.1).
    #[inline]
    fn on_timeout(&mut self, _config: &Config, _now: Time, flight: Bytes, is_first: bool) {
        if is_first {
            self.remember();
            self.ssthresh = self.reduced(flight);
        }
        self.w_max = 0;
        self.cwnd = self.mss;
        self.epoch = Time::NEVER;
    }

    /// Back to the initial window at most (RFC 5681 §4.1).
    #[inline]
    fn on_restart(&mut self, _config: &Config, _now: Time, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(with_places(initial_window).max(self.mss));
        self.epoch = Time::NEVER;
    }

    /// The congestion window.
    #[inline]
    fn window(&self) -> Bytes {
        Bytes(self.cwnd >> PLACES)
    }
}

/// The largest root below 2^32 whose cube is at most `cube`, bit by bit: once per decrease.
fn cube_root(cube: Wide) -> u64 {
    let mut root: u64 = 0;
    for bit in (0..32).rev() {
        let candidate = root | (1 << bit);
        root |= Wide::product(candidate * candidate, candidate).is_at_most(cube) << bit;
    }
    root
}
