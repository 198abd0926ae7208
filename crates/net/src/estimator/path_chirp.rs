//! pathChirp: one chirp of ever closer packets finds the rate at which queues begin to grow.
//!
//! Sources: PCH = the pathChirp tool and its ns-2 agent; PCHP = Ribeiro, Riedi, Baraniuk, Navratil,
//! Cottrell, "pathChirp: efficient available bandwidth estimation for network paths", PAM 2003.
//! Numbers as in `docs/protocols/xcp-i.md`.

use super::{Found, Mean, Probe, Round, delays, rate};
use crate::xcp_i::Quality;
use alloc::vec::Vec;
use congestlab_core::units::{Bytes, Duration, Rate, Ratio};

/// Settings of pathChirp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// 500 B (ours; PCH 1000): whole IP packets. Smaller ones try more rates for the same load.
    pub packet: u16,
    /// 1.05 (ours; PCH 1.2): each gap is the one before divided by this. An estimate is above what is
    /// available by up to a step.
    pub spread: Ratio,
    /// 6 (ours; PCH 1.5, and 1 in the ns-2 agent, which keeps it in an integer): an excursion is over
    /// when the delay has fallen to its maximum by this. With 1.5 one packet of cross traffic less
    /// ends the excursion of a full path, and estimates are a third too high.
    pub decrease: Ratio,
    /// 5 (PCH): excursions of fewer packets are bursts of cross traffic, not load.
    pub busy: u16,
    /// 11 (PCH): the estimate is the mean over so many chirps.
    pub smoothing: u16,
    /// The first gap's rate never goes below this; a 64th of `high` (ours).
    pub low: Option<Rate>,
    /// The last gap's rate; what the upstream port can send (dossier 11.2). One below that rises as far
    /// when it is found.
    pub high: Option<Rate>,
    /// 1 % (assumed, A-22): chirps rest until the average is this part of what the upstream
    /// port can send.
    pub load: Ratio,
    /// 0.1 % (ours): a delay that grows by less than this part of the time passed has not grown. It
    /// is ten times what the clocks of two edges drift apart.
    pub tolerance: Ratio,
}

/// How far below `high` the first chirp begins, and later ones below what the last found (ours).
const REACH: u64 = 8;
/// The most gaps of a chirp: a request names two rates, and nothing may come of it but a chirp.
const GAPS_MAX: usize = 256;

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Config {
    /// All defaults.
    pub const DEFAULT: Self = Self {
        packet: 500,
        spread: Ratio(1_050_000),
        decrease: Ratio(6_000_000),
        busy: 5,
        smoothing: 11,
        low: None,
        high: None,
        load: Ratio(10_000),
        tolerance: Ratio(1_000),
    };

    /// The upper end of the first chirp, where the upstream port can send `line`.
    fn high(&self, line: Rate) -> Rate {
        self.high.unwrap_or(line).max(Rate(REACH))
    }

    /// The least lower end.
    fn low(&self, line: Rate) -> Rate {
        let high = self.high(line);
        self.low.unwrap_or(Rate(high.0 / 64)).min(Rate(high.0 / 2)).max(Rate(1))
    }

    /// The chirp that covers a range: gaps of the rates low, low * spread, .. and high.
    pub(super) fn chirp(&self, range: Range) -> Round {
        let mut gaps = Vec::new();
        let mut rate = range.low.max(Rate(1));
        while rate < range.high && gaps.len() < GAPS_MAX {
            gaps.push(Bytes(u64::from(self.packet)).at(rate));
            rate = Rate(self.spread.of(rate.0).max(rate.0 + 1));
        }
        gaps.push(Bytes(u64::from(self.packet)).at(range.high.max(Rate(1))));
        Round { size: self.packet, gaps }
    }

    /// What a chirp whose probe `k` met the queueing delay `delays[k]` says, where gap `k` is between
    /// the probes `k` and `k + 1` and has the rate `rates[k]`: excursions that end say that the path
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

/// Rates from which to which a chirp goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub low: Rate,
    pub high: Rate,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    config: Config,
    line: Rate,
    /// Chirps so far.
    chirps: u64,
    mean: Mean,
    range: Range,
}

impl Listener {
    pub(super) fn new(config: Config, line: Rate) -> Self {
        let high = config.high(line);
        let range = Range { low: Rate(high.0 / REACH).max(config.low(line)), high };
        Self { config, line, chirps: 0, mean: Mean::over(config.smoothing), range }
    }

    /// The range of the next chirp. A fixed grid of rates would make its error, up to a factor of
    /// `spread`, the same in every chirp; so each begins a part of a step above the one before (ours).
    pub(super) fn range(&self) -> Range {
        let steps = u64::from(self.config.smoothing.max(1));
        let part = (self.chirps % steps) as f64 / steps as f64;
        let up = libm::pow(f64::from(self.config.spread.0) / 1e6, part);
        Range { low: Rate((self.range.low.0 as f64 * up) as u64), ..self.range }
    }

    /// A chirp has passed; a lost packet says that the path is full (PCH).
    pub(super) fn finish(&mut self, probes: &[Option<Probe>]) -> Found {
        let arrived: Vec<Probe> = probes.iter().flatten().copied().collect();
        let lost = probes.len() - arrived.len();
        let rate = if lost > 0 || arrived.len() < 2 { Rate(0) } else { self.evaluate(&arrived) };
        self.chirps += 1;
        if lost == 0 {
            self.adapt(rate);
        }
        let rate = rate.0.min(i64::MAX as u64) as i64;
        let quality = if lost > 0 { Quality::Congested } else { Quality::Exact };
        Found { bandwidth: self.mean.with(rate), quality }
    }

    fn evaluate(&self, arrived: &[Probe]) -> Rate {
        let gaps: Vec<Duration> = arrived.windows(2).map(|pair| pair[1].sent - pair[0].sent).collect();
        let rates: Vec<Rate> = gaps.iter().map(|&gap| rate(1, self.config.packet, gap)).collect();
        self.config.available(&delays(arrived), &gaps, &rates)
    }

    /// Moves the ends of the range off what was found: the lower down to where it finds the load,
    /// and up again so that chirps are short (ours; PCH adapts both).
    fn adapt(&mut self, found: Rate) {
        let low = Rate(found.0 / REACH).max(self.config.low(self.line));
        self.range.low = low.min(Rate(self.range.high.0 / REACH)).max(Rate(1));
        if self.config.spread.of(found.0) >= self.range.high.0 {
            // A `high` that was set too low: nothing above the port's own rate can be found.
            self.range.high = Rate(2 * found.0).min(self.line).max(self.range.high);
        }
    }
}
