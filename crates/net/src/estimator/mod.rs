//! Estimators of available bandwidth between two edges of a cloud, from packets and clocks alone.
//!
//! The upstream edge sends a round of probes as the downstream edge asked; that one
//! looks at when they arrive and says what is available, and what to send in the next round. Only
//! differences of one-way delays and of each edge's own times count, so the two clocks need not
//! agree. Sources and settings are in the modules; `docs/protocols/xcp-i.md` says what each costs
//! and how far off it is.

pub mod direct;
mod halves;
pub mod passive;
pub mod path_chirp;
pub mod pathload;

pub use halves::{Config, Listener, Method, Prober};

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use congestlab_core::law::xcp_i::LONGEST_ROUND;
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};

/// A probe that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    /// Place of the probe in the round, from 0.
    number: u16,
    /// When the upstream edge sent it, by its clock.
    sent: Time,
    /// When it arrived, by the downstream edge's clock.
    arrived: Time,
}

/// By how much the one-way delay of each probe is above that of the first: what the clocks are apart
/// cancels out.
fn delays(probes: &[Probe]) -> Vec<i64> {
    let delay = |probe: &Probe| probe.arrived.0.wrapping_sub(probe.sent.0);
    let first = probes.first().map_or(0, delay);
    probes.iter().map(|probe| delay(probe).wrapping_sub(first) as i64).collect()
}

/// Probes to send: the first at once, each next one a gap later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Round {
    /// Bytes of each whole IP packet.
    size: u16,
    /// Between a probe and the next; one less than there are probes.
    gaps: Vec<Duration>,
}

impl Round {
    fn probes(&self) -> u16 {
        if self.size == 0 { 0 } else { (self.gaps.len() + 1).min(u16::MAX.into()) as u16 }
    }

    fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.size) * u64::from(self.probes()))
    }
}

/// Estimate that rounds gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    /// Available bandwidth, B/s; below zero: the cloud is overloaded.
    bandwidth: i64,
    /// Number of rounds of which this is the mean.
    rounds: usize,
}

/// Estimates of the last rounds.
#[derive(Clone, Debug)]
struct Last {
    rounds: usize,
    values: VecDeque<i64>,
}

impl Last {
    fn of(rounds: u16) -> Self {
        Self { rounds: usize::from(rounds.max(1)), values: VecDeque::new() }
    }

    fn push(&mut self, value: i64) {
        if self.values.len() == self.rounds {
            self.values.pop_back();
        }
        self.values.push_front(value);
    }

    /// The mean of the last `rounds`; 0 of none.
    fn mean(&self, rounds: usize) -> i64 {
        let count = rounds.min(self.values.len()).max(1);
        let sum: i128 = self.values.iter().take(count).map(|&value| i128::from(value)).sum();
        (sum / count as i128) as i64
    }

    fn max(&self) -> i64 {
        self.values.iter().copied().max().unwrap_or(0)
    }

    fn found(&self) -> Found {
        let rounds = self.values.len();
        Found { bandwidth: self.mean(rounds), rounds }
    }
}

/// A rate as a bandwidth.
fn bandwidth(rate: Rate) -> i64 {
    rate.0.min(i64::MAX as u64 / 2) as i64
}

/// Rate that a cloud is taken to carry until something has come through it, 10 Mbit/s (ours).
const FIRST: Rate = Rate(1_250_000);

/// The least rate that is probed, 10 kbit/s (ours): a slower round would be one without end.
const SLOWEST: Rate = Rate(1250);

/// The rate of so many packets in a span; finite in no time, so that no stamp makes sums overflow.
fn rate(packets: usize, size: u16, span: Duration) -> Rate {
    Bytes(packets as u64 * u64::from(size)).per(span.max(Duration(1)))
}

/// Steps of a coded rate to a factor of two: 0.07 % each.
const STEPS: f64 = 1024.0;

/// A rate in 16 bits, as a request carries it; both edges probe by what the code says.
fn code(rate: Rate) -> u16 {
    libm::round(libm::log2(rate.0.max(1) as f64) * STEPS) as u16
}

fn decode(code: u16) -> Rate {
    Rate(libm::round(libm::exp2(f64::from(code) / STEPS)) as u64)
}

/// How long a round must take for its probes to be no more than `load` of `rate`; no longer than who
/// asked waits for one.
fn period(round: &Round, load: Ratio, rate: Rate) -> Duration {
    round.bytes().at(Rate(load.of(rate.0))).min(LONGEST_ROUND)
}
