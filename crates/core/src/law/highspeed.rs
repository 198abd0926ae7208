//! HighSpeed TCP (RFC 3649): Reno below 38 segments; above, the larger the window, the more segments
//! a round trip adds and the smaller the part that a loss takes. Sections cited are the RFC's.

#[cfg(feature = "words")]
mod words;

use super::places::{PLACES, SEGMENT_MAX, bytes, with_places};
use super::protocol::Protocol;
use super::settings::{self, Field, Settings};
use super::{Ack, Hue, Look, Needs, SenderLaw, Shape, Threshold};
use crate::units::{Bytes, Time, Wide, mul_div};
use core::convert::Infallible;

/// Low_Window, §5: up to it this is Reno.
const LOW_WINDOW: u64 = 38;
/// High_Window, §5.
const HIGH_WINDOW: u64 = 83_000;
/// max_ssthresh of RFC 3742 §2.
const MAX_SSTHRESH: u64 = 100;
/// Binary places of logarithms and of b(w).
const LOG_PLACES: u32 = 24;
const LOG_LOW: u64 = log2(LOW_WINDOW);
const LOG_RANGE: u64 = log2(HIGH_WINDOW) - LOG_LOW;

/// Switches of HighSpeed TCP that a scenario may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// Limited slow start (RFC 3742): above 100 segments, at most 50 more a round trip.
    pub limited_slow_start: bool,
    /// True if congestion avoidance counts an ACK as one segment at most (ns-2); false: as what it acknowledges.
    pub ack_counting: bool,
}

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "limited_slow_start",
            "above 100 segments, slow start adds 50 segments a round trip at most; false (RFC 3742, which \
             RFC 3649 section 10 recommends; ns-2 and Linux have it off).",
            Field::Switch(&mut self.limited_slow_start),
        );
        settings::ack_counting(&mut self.ack_counting, tell);
    }
}

/// Returns the protocols of this file: `highspeed` alone.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "highspeed",
            about: "HighSpeed TCP, losses repaired by selective acknowledgment (RFC 3649)",
            page: "highspeed",
            look: Look::new(Hue::Blue, Shape::Cross, 2),
            link_series: &[],
            flow_series: &[],
            link: None,
            sender: Some(Config { limited_slow_start: false, ack_counting: false }),
        }]
    }
}

/// HighSpeed TCP's window of one connection. Windows are bytes with 16 binary places.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct HighSpeed {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// [`increase`] of so many segments, because it changes only with them.
    increase_at: u64,
    increase: u64,
}

impl HighSpeed {
    /// Creates the state of a new connection: slow start without a threshold.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.min(SEGMENT_MAX).max(Bytes(1));
        Self {
            mss: with_places(mss),
            cwnd: with_places(initial_window.max(mss)),
            ssthresh: u64::MAX,
            increase_at: 0,
            increase: increase(0),
        }
    }

    /// Returns the slow-start threshold; the largest amount: there is none.
    #[inline]
    pub fn ssthresh(&self) -> Bytes {
        bytes(self.ssthresh)
    }

    /// Returns w, the window in whole segments.
    #[inline]
    pub fn segments(&self) -> u64 {
        mul_div(self.cwnd, 1, self.mss)
    }

    /// RFC 5681 eq. 2; RFC 3742 §2: above max_ssthresh a part of a segment per ACK.
    #[inline]
    fn start_slowly(&mut self, config: &Config, acked: u64) {
        let halves = self.segments() / (MAX_SSTHRESH / 2);
        let is_limited = config.limited_slow_start && halves >= 2;
        let growth = if is_limited { mul_div(self.mss, 1, halves) } else { self.mss };
        self.cwnd = self.cwnd.saturating_add(growth.min(acked));
    }

    /// w += a(w) / w for each segment acknowledged, §5.
    #[inline]
    fn avoid_congestion(&mut self, acked: u64) {
        let segments = self.segments();
        if segments != self.increase_at {
            self.increase_at = segments;
            self.increase = increase(segments);
        }
        let per_window = Wide::product(self.mss, self.increase).over(1 << PLACES).to_u64();
        self.cwnd = self.cwnd.saturating_add(mul_div(acked, per_window, self.cwnd));
    }

    /// (1 - b(w)) w, at least two segments (RFC 5681 eq. 4).
    #[inline]
    fn reduced(&self, flight: Bytes) -> u64 {
        let flight = with_places(flight);
        let taken = mul_div(flight, decrease(mul_div(flight, 1, self.mss)), 1 << LOG_PLACES);
        (flight - taken).max(self.mss.saturating_mul(2))
    }
}

impl SenderLaw for HighSpeed {
    type Config = Config;
    type Echo = ();
    const IS_SILENT: bool = true;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "highspeed"
    }

    #[inline(always)]
    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(mss, initial_window)
    }

    #[inline(always)]
    fn needs(_config: &Config) -> Needs {
        Needs { slow_start: Some(&["limited_slow_start"]), ..Needs::NONE }
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
            self.start_slowly(config, acked);
        } else if !ack.in_recovery {
            self.avoid_congestion(if config.ack_counting { acked.min(self.mss) } else { acked });
        }
    }

    #[inline]
    fn on_loss(&mut self, _config: &Config, _now: Time, flight: Bytes) {
        self.ssthresh = self.reduced(flight);
        self.cwnd = self.ssthresh;
    }

    /// One segment; the threshold falls only the first time (RFC 5681 §3.1).
    #[inline]
    fn on_timeout(&mut self, _config: &Config, _now: Time, flight: Bytes, is_first: bool) {
        if is_first {
            self.ssthresh = self.reduced(flight);
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

/// Returns a(w), the segments that a round trip adds, with 16 binary places:
/// w^2 p(w) 2 b(w) / (2 - b(w)) with p(w) = 0.078 / w^1.2, §5.
#[inline]
pub fn increase(segments: u64) -> u64 {
    if segments <= LOW_WINDOW {
        return 1 << PLACES;
    }
    let power = exp2(log2(segments) / 5 * 4); // w^2 w^-1.2
    let b = decrease(segments);
    mul_div(power * 78 / 1000, 2 * b, (2 << LOG_PLACES) - b)
}

/// Returns b(w), the part of the window that a loss takes, with 24 binary places: from 0.5 at Low_Window to
/// High_Decrease = 0.1 at High_Window, linear in the logarithm of w, §5; never less.
#[inline]
pub fn decrease(segments: u64) -> u64 {
    let above = log2(segments.max(LOW_WINDOW)) - LOG_LOW;
    (1 << (LOG_PLACES - 1)) - (above.min(LOG_RANGE) << LOG_PLACES) / LOG_RANGE * 2 / 5
}

/// Binary logarithm of a whole number above zero, with [`LOG_PLACES`]: each square doubles it.
const fn log2(value: u64) -> u64 {
    let whole = 63 - value.leading_zeros();
    // From 1 to 2, with 31 places.
    let mut rest = if whole > 31 { value >> (whole - 31) } else { value << (31 - whole) };
    let mut log = whole as u64;
    let mut place = 0;
    while place < LOG_PLACES {
        rest = (rest * rest) >> 31;
        log <<= 1;
        if rest >> 32 > 0 {
            rest >>= 1;
            log |= 1;
        }
        place += 1;
    }
    log
}

/// 2^(1/2), 2^(1/4), ..., with 31 binary places.
const ROOTS: [u64; LOG_PLACES as usize] = {
    let mut roots = [0; LOG_PLACES as usize];
    let (mut root, mut index) = (2_u64 << 31, 0);
    while index < roots.len() {
        root = (root << 31).isqrt();
        roots[index] = root;
        index += 1;
    }
    roots
};

/// 2 to a power below 32 with [`LOG_PLACES`]; the result has [`PLACES`].
#[inline]
fn exp2(power: u64) -> u64 {
    let mut product = 1 << 31;
    for (index, root) in ROOTS.iter().enumerate() {
        if power >> (LOG_PLACES as usize - 1 - index) & 1 == 1 {
            product = (product * root) >> 31;
        }
    }
    let whole = (power >> LOG_PLACES).min(31);
    (product << whole) >> (31 - PLACES)
}
