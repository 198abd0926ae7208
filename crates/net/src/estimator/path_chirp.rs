//! pathChirp: one chirp of ever closer packets finds the rate at which queues begin to grow.
//!
//! Sources: PCH = the pathChirp tool and its ns-2 agent; PCHP = Ribeiro, Riedi, Baraniuk, Navratil,
//! Cottrell, "pathChirp: efficient available bandwidth estimation for network paths", PAM 2003.
//! Numbers as in `docs/protocols/xcp-i.md`.

use super::{FIRST, Found, Last, Probe, Round, SLOWEST, bandwidth, delays, rate};
use alloc::vec::Vec;
use congestlab_core::units::{Bytes, Duration, Rate, Ratio};

/// Settings of pathChirp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Size of probes as whole IP packets; 300 B (ours; PCH 1000). Smaller ones make more chirps for the same load.
    pub packet: u16,
    /// Spread factor: each gap is the one before divided by this; 1.08 (ours; PCH 1.2). An estimate is above what is
    /// available by up to a step.
    pub spread: Ratio,
    /// Decrease factor: an excursion is over when the delay has fallen to its maximum by this; 6 (ours; PCH 1.5, and 1
    /// in the ns-2 agent, which keeps it in an integer). With 1.5 one packet of cross traffic less
    /// ends the excursion of a full path, and estimates are a third too high.
    pub decrease: Ratio,
    /// Packets of the shortest excursion that counts as load, not as a burst of cross traffic; 5 (PCH).
    pub busy: u16,
    /// Number of chirps over which the estimate is the mean; 11 (PCH).
    pub smoothing: u16,
    /// Lowest rate of a chirp's first gap; 10 kbit/s (ours).
    pub low: Rate,
    /// Rate of the first chirp's last gap; 10 Mbit/s (ours). Later ones follow what is found, up to
    /// what the upstream port can send.
    pub high: Rate,
    /// Part of what the cloud is seen to carry that chirps take on average, resting in between; 1 % (assumed,
    ///
    pub load: Ratio,
    /// Part of the time passed by which a delay must grow to have grown; 0.1 % (ours). It
    /// is ten times what the clocks of two edges drift apart.
    pub tolerance: Ratio,
}

/// How far below what was found a chirp begins (ours) ..
const BELOW: u64 = 8;
/// .. but no further below what the cloud carries: the gaps would be longer than what others do lasts.
const FURTHEST: u64 = 64;
/// How far above what the cloud carries it ends (ours). A chirp that ends at R arrives at C R / (R + y)
/// where others send y, so with 2 what is seen is C - y / 2, with 1 no more than C - y.
const ABOVE: u64 = 2;
/// How far higher the next chirp reaches if delays did not grow (ours).
const HIGHER: u64 = 4;
/// The most gaps of a chirp: one of a range that needs more has wider steps.
const GAPS_MAX: usize = 300;

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Config {
    /// Default settings.
    pub const DEFAULT: Self = Self {
        packet: 300,
        spread: Ratio(1_080_000),
        decrease: Ratio(6_000_000),
        busy: 5,
        smoothing: 11,
        low: SLOWEST,
        high: FIRST,
        load: Ratio(10_000),
        tolerance: Ratio(1_000),
    };

    /// Returns the chirp that covers a range: gaps of the rates low, low * spread, .. and high.
    pub(super) fn chirp(&self, range: Range) -> Round {
        let size = Bytes(u64::from(self.packet));
        let (low, high) = (range.low.max(SLOWEST), range.high.max(SLOWEST));
        let ratio = high.0 as f64 / low.0 as f64;
        let spread = self.spread().max(libm::pow(ratio, 1.0 / (GAPS_MAX - 1) as f64));
        let mut gaps = Vec::new();
        let mut rate = low.0 as f64;
        while rate < high.0 as f64 && gaps.len() < GAPS_MAX {
            gaps.push(size.at(Rate(rate as u64)));
            rate *= spread;
        }
        gaps.push(size.at(high));
        Round { size: self.packet, gaps }
    }

    fn spread(&self) -> f64 {
        f64::from(self.spread.0) / 1e6
    }

    /// Returns the available bandwidth by a chirp whose probe `k` met the queueing delay `delays[k]`, ns, where gap `k`
    /// is between the probes `k` and `k + 1` and has the rate `rates[k]`: excursions that end say that the path
    /// was busy at the rates at which delays grew, the last one where it is full (PCHP §2.3, PCH).
    pub fn available(&self, delays: &[i64], gaps: &[Duration], rates: &[Rate]) -> Rate {
        let last = gaps.len().min(rates.len()).min(delays.len().saturating_sub(1));
        let is_rise = |k: usize| {
            let drift = self.tolerance.of(gaps[k].0) as i64;
            delays[k + 1].saturating_sub(delays[k]) > drift
        };
        let next_rise = |from: usize| (from..last).find(|&k| is_rise(k));
        let mut available: Vec<Option<Rate>> = (0..last).map(|_| None).collect();
        // Without any rise the highest rate is a lower bound.
        let Some(mut begin) = next_rise(0).or(last.checked_sub(1)) else { return Rate(0) };
        let mut highest = 0;
        let mut j = begin + 1;
        while j <= last {
            let above = delays[j].saturating_sub(delays[begin]);
            highest = highest.max(above);
            if i128::from(above) * i128::from(self.decrease.0) >= i128::from(highest) * 1_000_000 {
                j += 1;
                continue;
            }
            if j - begin >= usize::from(self.busy) {
                (begin..j).filter(|&k| is_rise(k)).for_each(|k| available[k] = Some(rates[k]));
            }
            let Some(next) = next_rise(j) else {
                begin = last - 1;
                break;
            };
            (begin, highest, j) = (next, 0, next + 1);
        }
        let full = rates[begin];
        available[begin..].fill(Some(full));
        let weighted = |k: usize| available[k].unwrap_or(full).0 as u128 * u128::from(gaps[k].0);
        let (sum, span) =
            (0..last).fold((0, 0), |(sum, span), k| (sum + weighted(k), span + u128::from(gaps[k].0)));
        Rate((sum / span.max(1)) as u64)
    }
}

/// Rates of a chirp's first and last gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub low: Rate,
    pub high: Rate,
}

/// Downstream half: evaluates chirps.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    config: Config,
    /// Rate that the upstream port can send.
    line: Rate,
    /// Chirps so far.
    chirps: u64,
    range: Range,
    /// Estimates of the last chirps.
    found: Last,
    /// Rates at which the ends of the last chirps arrived: what the cloud carries, or less.
    arrived: Last,
}

impl Listener {
    pub(super) fn new(config: Config, line: Rate) -> Self {
        let high = config.high.min(line);
        let range = Range { low: Rate(high.0 / BELOW).max(config.low).min(high), high };
        let last = Last::of(config.smoothing);
        Self { config, line, chirps: 0, range, found: last.clone(), arrived: last }
    }

    /// Returns the range of the next chirp. A fixed grid of rates would make its error, up to a factor of
    /// `spread`, the same in every chirp; so each begins a part of a step above the one before (ours).
    pub(super) fn range(&self) -> Range {
        let steps = u64::from(self.config.smoothing.max(1));
        let part = (self.chirps % steps) as f64 / steps as f64;
        let up = libm::pow(self.config.spread(), part);
        Range { low: Rate((self.range.low.0 as f64 * up) as u64), ..self.range }
    }

    /// Returns the rate that the cloud is seen to carry.
    pub(super) fn capacity(&self) -> Rate {
        match self.arrived.max() {
            0 => self.range.high.min(FIRST),
            rate => Rate(rate as u64),
        }
    }

    /// A chirp has passed; a lost packet says that the path is full (PCH).
    pub(super) fn finish(&mut self, probes: &[Option<Probe>]) -> Found {
        let arrived: Vec<Probe> = probes.iter().flatten().copied().collect();
        self.chirps += 1;
        let end = &arrived[arrived.len().saturating_sub(usize::from(self.config.busy.max(1)) + 1)..];
        let [first, .., last] = end else {
            self.lose();
            return self.found.found();
        };
        let packets = end.len() - 1;
        let [sent, came] = [last.sent - first.sent, last.arrived - first.arrived]
            .map(|span| rate(packets, self.config.packet, span).min(self.line));
        self.arrived.push(bandwidth(came));
        if arrived.len() < probes.len() {
            self.lose();
            return self.found.found();
        }
        let found = self.evaluate(&arrived);
        let is_at_end = self.config.spread.of(found.0) >= self.range.high.0;
        if is_at_end && came < sent {
            // No rate let delays grow, yet not all came through: a queue drained meanwhile.
            let through = found.0 as f64 * came.0 as f64 / sent.0 as f64;
            self.adapt(Rate(through as u64), ABOVE);
        } else if is_at_end && self.range.high < self.line {
            // A bound only: no part of means.
            self.found = Last::of(self.config.smoothing);
            self.adapt(found, HIGHER);
        } else {
            self.adapt(found, ABOVE);
        }
        self.found.found()
    }

    fn evaluate(&self, arrived: &[Probe]) -> Rate {
        let gaps: Vec<Duration> = arrived.windows(2).map(|pair| pair[1].sent - pair[0].sent).collect();
        let rates: Vec<Rate> = gaps.iter().map(|&gap| rate(1, self.config.packet, gap)).collect();
        self.config.available(&delays(arrived), &gaps, &rates)
    }

    /// A chirp that misses packets; its own end may be what filled the queue.
    fn lose(&mut self) {
        self.found.push(0);
        self.range.high = Rate(self.range.high.0 / 2).max(self.range.low);
    }

    /// Moves the range to what was found, so that chirps are short and their ends fill no queue (ours;
    /// PCH adapts both ends).
    fn adapt(&mut self, found: Rate, above: u64) {
        self.found.push(bandwidth(found));
        let carried = self.capacity().0;
        self.range.high = Rate(carried.saturating_mul(above)).min(self.line);
        let mean = self.found.found().bandwidth as u64;
        let least = self.config.low.0.max(carried / FURTHEST);
        self.range.low = Rate((mean / BELOW).max(least)).min(self.range.high);
    }
}
