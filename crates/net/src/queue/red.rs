//! Random early detection (Floyd, Jacobson: "Random early detection gateways for congestion
//! avoidance", ToN 1(4) 1993, cited as F93), with the gentle variant and ECN.
//!
//! In fixed point, so that a run is the same on every machine: the average queue has 32 binary
//! digits behind the point, probabilities and the weight 64.

use crate::packet::{Packet, Picos, flag};
use crate::queue::Reason;
use crate::random::{Probability, Stream};
use crate::service::PS_PER_S;
use congestlab_core::units::BitRate;

/// Binary digits behind the point of the average.
const FRACTION: u32 = 32;

/// What a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Between which averages packets go at random.
    pub thresholds: Thresholds,
    /// Probability just below the upper threshold.
    pub max_p: Probability,
    /// Weight of one arrival in the average.
    pub weight: Probability,
    /// From the upper threshold to twice of it the probability rises from `max_p` to 1, instead of
    /// jumping there.
    pub gentle: bool,
    /// Marks packets of ECN-capable transports where it would drop them at random.
    pub ecn: bool,
    /// The typical packet, in bytes: counts what an idle link could have sent, and in bytes the
    /// probability is for this size and proportional to the arrival's.
    pub packet_size: u16,
}

/// Between which average lengths of the queue packets go at random, and what is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// Packets of any size.
    Packets {
        /// Below, none goes.
        min: u32,
        /// From here on all go (gentle: from twice of it).
        max: u32,
    },
    /// Bytes.
    Bytes {
        /// Below, none goes.
        min: u32,
        /// From here on all go (gentle: from twice of it).
        max: u32,
    },
}

/// The queue as an arrival finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// There is no room for the arrival.
    pub(crate) is_full: bool,
    /// For how long the link has had nothing to do, and what it could have carried.
    pub(crate) idle: Option<(Picos, BitRate)>,
}

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    Mark,
    Drop(Reason),
}

/// The average and what else RED remembers.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: Config,
    /// Thresholds and average, with [`FRACTION`] binary digits behind the point.
    min: u64,
    max: u64,
    average: u64,
    /// Arrivals since the last packet that went; -1 since the average was below `min`.
    count: i64,
}

impl Red {
    pub(crate) fn new(config: Config) -> Self {
        let (Thresholds::Packets { min, max } | Thresholds::Bytes { min, max }) = config.thresholds;
        Self {
            config,
            min: u64::from(min) << FRACTION,
            max: u64::from(max) << FRACTION,
            average: 0,
            count: -1,
        }
    }

    /// One packet arrives (F93 §4 and fig. 2; the count makes the gaps between drops uniform).
    pub(crate) fn arrive(&mut self, packet: &Packet, found: Found, stream: &mut Stream) -> Verdict {
        self.update_average(found);
        let base = (self.average >= self.min).then(|| self.base_probability(packet.size));
        let verdict = match base {
            None => {
                self.count = -1;
                Verdict::Accept
            }
            Some(None) => Verdict::Drop(Reason::RedForced),
            Some(Some(base)) if stream.bernoulli(self.spread(base)) => {
                let is_capable = packet.flags & flag::ECN_MASK != 0;
                if self.config.ecn && is_capable { Verdict::Mark } else { Verdict::Drop(Reason::RedEarly) }
            }
            Some(Some(_)) => {
                self.count += 1;
                Verdict::Accept
            }
        };
        let verdict = if found.is_full { Verdict::Drop(Reason::QueueFull) } else { verdict };
        if verdict != Verdict::Accept {
            self.count = 0;
        }
        verdict
    }

    /// Moves the average by the queue that an arrival finds, or by the packets that the idle link
    /// could have sent (F93 §4).
    fn update_average(&mut self, found: Found) {
        let weight = u128::from(self.config.weight.0);
        if let Some((span, rate)) = found.idle {
            let packet = 8 * u128::from(PS_PER_S) * u128::from(self.config.packet_size.max(1));
            let packets = u128::from(span) * u128::from(rate.0) / packet;
            let kept = power(ONE - (weight >> 1) as u64, u64::try_from(packets).unwrap_or(u64::MAX));
            self.average = multiply(self.average, kept);
            return;
        }
        let queue = match self.config.thresholds {
            Thresholds::Packets { .. } => found.packets,
            Thresholds::Bytes { .. } => found.bytes,
        };
        let queue = queue.min(u64::from(u32::MAX)) << FRACTION;
        let step = (u128::from(queue.abs_diff(self.average)) * weight + (1 << 63)) >> 64;
        // At most the difference, since the weight is below 1.
        let step = step as u64;
        if queue >= self.average {
            self.average += step;
        } else {
            self.average -= step;
        }
    }

    /// p_b of F93, in units of 2^-64, for an average from `min` on; `None`: everything goes.
    fn base_probability(&self, size: u16) -> Option<u64> {
        let max_p = self.config.max_p.0;
        let share = |of: u64, part: u64, whole: u64| {
            // Below `of`, since the part is below the whole.
            (u128::from(of) * u128::from(part) / u128::from(whole)) as u64
        };
        let base = if self.average < self.max {
            share(max_p, self.average - self.min, self.max - self.min)
        } else if self.config.gentle && self.average / 2 < self.max {
            max_p + share(u64::MAX - max_p, self.average - self.max, self.max)
        } else {
            return None;
        };
        Some(match self.config.thresholds {
            Thresholds::Packets { .. } => base,
            Thresholds::Bytes { .. } => {
                let scaled = u128::from(base) * u128::from(size) / u128::from(self.config.packet_size.max(1));
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
        })
    }

    /// p_a of F93: p_b / (1 - count p_b), 1 where that has no sense.
    fn spread(&self, base: u64) -> Probability {
        let one = 1i128 << 64;
        let rest = one - i128::from(self.count) * i128::from(base);
        if rest <= i128::from(base) {
            return Probability::ONE;
        }
        Probability(((u128::from(base) << 64) / rest as u128) as u64)
    }
}

/// 1 with 63 binary digits behind the point: squares of what is at most 1 stay within 128 bits.
const ONE: u64 = 1 << 63;

/// `value * factor`, the factor with 63 binary digits behind the point, to the nearest.
fn multiply(value: u64, factor: u64) -> u64 {
    ((u128::from(value) * u128::from(factor) + (1 << 62)) >> 63) as u64
}

/// `base^exponent`, both sides with 63 binary digits behind the point.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}
