//! pathload: a search for the available bandwidth over streams of constant rate, each above it or below.
//!
//! Sources: PLD = Jain, Dovrolis, "End-to-end available bandwidth: measurement methodology,
//! dynamics, and relation with TCP throughput", SIGCOMM 2002; the numbers are recalled
//! (docs/design/protocols.md 11.3, A-22) and therefore settings.

use super::{FIRST, Found, Probe, Round, SLOWEST, bandwidth, delays, rate};
use alloc::vec::Vec;
use congestlab_core::units::{Bytes, Duration, Rate, Ratio};

/// Settings of pathload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// K, the packets of a stream; 100.
    pub packets: u16,
    /// N, the streams of a fleet, all at one rate; 12.
    pub streams: u16,
    /// Smallest packet, in bytes; L >= 200 B.
    pub packet_min: u16,
    /// Largest packet, 1500 B; rates above this per `gap_min` have shorter gaps.
    pub packet_max: u16,
    /// T, the shortest gap as long as packets can grow; 100 us.
    pub gap_min: Duration,
    /// PCT: delays increase if more than this part of the groups' medians, 0.66, are above the one before ..
    pub pct: Ratio,
    /// PDT: .. or the way from first to last is more than this part, 0.55, of all ways.
    pub pdt: Ratio,
    /// PCT below which delays do not increase, 0.54; between, PCT says nothing.
    pub pct_not: Ratio,
    /// PDT below which delays do not increase, 0.45; between, PDT says nothing.
    pub pdt_not: Ratio,
    /// Part of a fleet's streams, 0.7, that must agree for the fleet to say the same.
    pub agree: Ratio,
    /// Part of a stream, 0.1, whose loss ends the fleet: its rate was too high.
    pub loss: Ratio,
    /// omega, 5 % of its upper end (ours): a range this narrow is the answer ..
    pub resolution: Ratio,
    /// chi, twice omega (ours): .. or one whose ends are this close to the grey region.
    pub grey: Ratio,
    /// Part of their rate, or of that at which the last arrived (ours), that streams take on average, resting in
    /// between; 0.1.
    pub load: Ratio,
    /// Part of the time passed by which a delay must grow to have grown; 0.1 % (ours), as pathChirp's.
    pub tolerance: Ratio,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            packets: 100,
            streams: 12,
            packet_min: 200,
            packet_max: 1500,
            gap_min: Duration(100_000),
            pct: Ratio(660_000),
            pdt: Ratio(550_000),
            pct_not: Ratio(540_000),
            pdt_not: Ratio(450_000),
            agree: Ratio(700_000),
            loss: Ratio(100_000),
            resolution: Ratio(50_000),
            grey: Ratio(100_000),
            load: Ratio(100_000),
            tolerance: Ratio(1_000),
        }
    }
}

/// Trend of the delays of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// The delays grow: the rate is above what is available.
    Increasing,
    /// The delays do not grow.
    NotIncreasing,
    /// The two measures are silent or contradict each other.
    Ambiguous,
}

impl Config {
    /// Returns the trend of the one-way delays of a stream's packets, sent `gap` apart: medians of about
    /// sqrt(n) groups, then the pairwise comparison and the pairwise difference test (PLD §4.1).
    pub fn trend(&self, delays: &[i64], gap: Duration) -> Trend {
        let size = libm::sqrt(delays.len() as f64) as usize;
        if size < 2 {
            return Trend::Ambiguous;
        }
        let medians: Vec<i64> = delays
            .chunks_exact(size)
            .map(|group| {
                let mut group = group.to_vec();
                group.sort_unstable();
                i64::midpoint(group[(size - 1) / 2], group[size / 2])
            })
            .collect();
        // What clocks drift in the time between two groups is no change.
        let drift = self.tolerance.of(gap.0.saturating_mul(size as u64));
        let steps = medians.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        let steps: Vec<i64> = steps.map(|step| if step.unsigned_abs() <= drift { 0 } else { step }).collect();
        let millionths = |part: i128, whole: i128| part * 1_000_000 / whole.max(1);
        let pct = millionths(steps.iter().filter(|&&step| step > 0).count() as i128, steps.len() as i128);
        let way = |length: fn(i64) -> i128| steps.iter().map(|&step| length(step)).sum();
        let pdt = millionths(way(i128::from), way(|step| step.unsigned_abs().into()));
        let says = |value: i128, yes: Ratio, no: Ratio| {
            if value > i128::from(yes.0) {
                Trend::Increasing
            } else if value < i128::from(no.0) {
                Trend::NotIncreasing
            } else {
                Trend::Ambiguous
            }
        };
        match (says(pct, self.pct, self.pct_not), says(pdt, self.pdt, self.pdt_not)) {
            (one, other) if one == other => one,
            (trend, Trend::Ambiguous) | (Trend::Ambiguous, trend) => trend,
            _ => Trend::Ambiguous,
        }
    }

    /// Returns a stream of this rate: packets of at least `packet_min` and, if they can, `gap_min` apart.
    pub(super) fn stream(&self, rate: Rate) -> Round {
        let gaps = alloc::vec![self.gap(rate); usize::from(self.packets.max(2)) - 1];
        Round { size: self.packet(rate), gaps }
    }

    /// Size of the packets of a stream of this rate.
    fn packet(&self, rate: Rate) -> u16 {
        let size = rate.max(Rate(1)).over(self.gap_min).0;
        size.clamp(self.packet_min.into(), self.packet_max.into()) as u16
    }

    /// How far they are apart.
    fn gap(&self, rate: Rate) -> Duration {
        Bytes(self.packet(rate).into()).at(rate.max(Rate(1)))
    }
}

/// Verdict of a fleet on its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    TooHigh,
    TooLow,
    Grey,
}

/// Downstream half: fleet after fleet, the search.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    config: Config,
    /// Rate that the upstream port can send, the greatest of all.
    line: Rate,
    /// The greatest rate at which a stream arrived; `None` before the first.
    carried: Option<Rate>,
    /// State of the fleet under way: rate, streams, and how many of them say what.
    rate: Rate,
    streams: u16,
    increasing: u16,
    steady: u16,
    /// Range in which the available bandwidth lies.
    range: (u64, u64),
    /// Rates at which streams disagree: what is available moves.
    grey: Option<(u64, u64)>,
    /// Middle of the last range found.
    found: Option<Rate>,
}

impl Listener {
    pub(super) fn new(config: Config, line: Rate) -> Self {
        Self {
            config,
            line,
            carried: None,
            rate: line,
            streams: 0,
            increasing: 0,
            steady: 0,
            range: (0, line.0),
            grey: None,
            found: None,
        }
    }

    /// The rate of the next stream.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the rate that the cloud is seen to carry.
    pub(super) fn carried(&self) -> Rate {
        self.carried.unwrap_or(FIRST.min(self.line))
    }

    /// A stream has passed; an answer once the search has converged once.
    pub(super) fn finish(&mut self, probes: &[Option<Probe>]) -> Option<Found> {
        let arrived: Vec<Probe> = probes.iter().flatten().copied().collect();
        let is_first = self.carried.is_none();
        self.measure(&arrived);
        if is_first {
            // As fast as the port can: more than what comes through is not available (PLD §4.2).
            self.search(0, self.carried());
            return None;
        }
        let lost = (probes.len() - arrived.len()) as u64;
        self.streams += 1;
        let verdict = if lost > self.config.loss.of(probes.len() as u64) {
            Some(Verdict::TooHigh)
        } else {
            self.count(&arrived)
        };
        if let Some(verdict) = verdict {
            (self.streams, self.increasing, self.steady) = (0, 0, 0);
            self.narrow(verdict);
        }
        self.found.map(|rate| Found { bandwidth: bandwidth(rate), rounds: 1 })
    }

    fn measure(&mut self, arrived: &[Probe]) {
        let [first, .., last] = arrived else { return };
        let size = self.config.packet(self.rate);
        let rate = rate(arrived.len() - 1, size, last.arrived - first.arrived).min(self.line);
        self.carried = Some(self.carried.map_or(rate, |most| most.max(rate)).max(SLOWEST));
    }

    /// Adds a stream to its fleet; returns the fleet's verdict when it is complete, or cannot change.
    fn count(&mut self, arrived: &[Probe]) -> Option<Verdict> {
        match self.config.trend(&delays(arrived), self.config.gap(self.rate)) {
            Trend::Increasing => self.increasing += 1,
            Trend::NotIncreasing => self.steady += 1,
            Trend::Ambiguous => {}
        }
        let streams = self.config.streams.max(1);
        let enough = u64::from(streams) * u64::from(self.config.agree.0);
        let is_enough = |count: u16| u64::from(count) * 1_000_000 >= enough;
        if is_enough(self.increasing) {
            Some(Verdict::TooHigh)
        } else if is_enough(self.steady) {
            Some(Verdict::TooLow)
        } else {
            (self.streams >= streams).then_some(Verdict::Grey)
        }
    }

    /// PLD §4.2: binary search, on both sides of the grey region once there is one.
    fn narrow(&mut self, verdict: Verdict) {
        let rate = self.rate.0;
        match (verdict, &mut self.grey) {
            (Verdict::TooHigh, grey) => {
                self.range.1 = rate;
                *grey = grey.and_then(|(low, high)| (low < rate).then_some((low, high.min(rate))));
            }
            (Verdict::TooLow, grey) => {
                self.range.0 = rate;
                *grey = grey.and_then(|(low, high)| (high > rate).then_some((low.max(rate), high)));
            }
            (Verdict::Grey, Some((low, high))) => (*low, *high) = ((*low).min(rate), (*high).max(rate)),
            (Verdict::Grey, grey) => *grey = Some((rate, rate)),
        }
        let (low, high) = self.range;
        // Near nothing, streams are slow, and all that counts is that it is nothing.
        let end = high.max(self.carried().0 / 4);
        let (omega, chi) = (self.config.resolution.of(end), self.config.grey.of(end));
        let (above, below) =
            self.grey.map_or((0, 0), |(grey_low, grey_high)| (high - grey_high, grey_low - low));
        let is_found =
            high - low <= omega.max(SLOWEST.0) || self.grey.is_some() && above <= chi && below <= chi;
        self.rate = match self.grey {
            _ if is_found => return self.restart(),
            None => Rate(low + (high - low) / 2),
            Some((_, grey_high)) if above > chi => Rate(grey_high + above / 2),
            Some((grey_low, _)) => Rate(grey_low - below / 2),
        };
    }

    /// The answer, and the next search: a range from half of it to twice (ours), which follows what
    /// is available by a factor of two per search.
    fn restart(&mut self) {
        let found = self.range.0 + (self.range.1 - self.range.0) / 2;
        self.found = Some(Rate(found));
        let least = self.config.resolution.of(self.carried().0);
        self.search(found / 2, Rate((2 * found).max(least)));
    }

    fn search(&mut self, low: u64, high: Rate) {
        let high = high.max(SLOWEST).min(self.line).0;
        self.range = (low.min(high), high);
        self.grey = None;
        self.rate = Rate(u64::midpoint(low.min(high), high));
    }
}
