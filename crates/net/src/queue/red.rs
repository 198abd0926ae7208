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

/// Settings of RED in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Average queue lengths between which packets go at random.
    pub thresholds: Thresholds,
    /// Probability just below the upper threshold.
    pub max_p: Probability,
    /// Weight of one arrival in the average.
    pub weight: Probability,
    /// True if the probability rises from `max_p` at the upper threshold to 1 at twice of it, instead of
    /// jumping there.
    pub gentle: bool,
    /// True to mark packets of ECN-capable transports where they would be dropped at random.
    pub ecn: bool,
    /// Typical packet, in bytes: counts what an idle link could have sent, and in bytes the
    /// probability is for this size and proportional to the arrival's.
    pub packet_size: u16,
}

/// Average queue lengths between which packets go at random, by the unit of the average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// The average counts packets of any size.
    Packets {
        /// Lower threshold: below, none goes.
        min: u32,
        /// Upper threshold: from here on all go (gentle: from twice of it).
        max: u32,
    },
    /// The average counts bytes.
    Bytes {
        /// Lower threshold: below, none goes.
        min: u32,
        /// Upper threshold: from here on all go (gentle: from twice of it).
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

/// Fate of an arrival.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn config(gentle: bool) -> Config {
        Config {
            thresholds: Thresholds::Packets { min: 50, max: 100 },
            max_p: Probability::from_f64(0.1),
            weight: Probability::from_f64(0.002),
            gentle,
            ecn: true,
            packet_size: 1000,
        }
    }

    fn at(average: u64, count: i64, gentle: bool) -> Red {
        Red { average: average << FRACTION, count, ..Red::new(config(gentle)) }
    }

    fn fraction(p: u64) -> f64 {
        p as f64 / 2f64.powi(64)
    }

    fn found(packets: u64) -> Found {
        Found { packets, bytes: packets * 1000, is_full: false, idle: None }
    }

    const ECT: Packet = Packet {
        at: 0,
        stamp_ns: 0,
        flow: 0,
        seq: 0,
        route: 0,
        size: 1000,
        kind: crate::packet::Kind::Data,
        flags: flag::ECT0,
        words: [0; 8],
    };

    /// docs/design/protocols.md 10.2, V10.1.
    #[test]
    fn v10_1_probabilities_by_average_and_count() {
        let near = |p: u64, expected: f64| assert!((fraction(p) - expected).abs() < 1e-12, "{}", fraction(p));
        let red = at(75, 10, false);
        let base = red.base_probability(1000).unwrap();
        near(base, 0.05);
        near(red.spread(base).0, 0.1);
        near(at(75, -1, false).spread(base).0, 0.05 / 1.05);
        assert_eq!(at(75, 19, false).spread(base), Probability::ONE, "p_b 0.05: the 20th goes at the latest");
        assert_eq!(at(75, 500, false).spread(base), Probability::ONE);
        near(at(150, 0, true).base_probability(1000).unwrap(), 0.55);
        assert_eq!(at(200, 0, true).base_probability(1000), None, "gentle: everything goes from 2 max on");
        assert_eq!(at(100, 0, false).base_probability(1000), None, "classic: from max on");
    }

    /// docs/design/protocols.md 10.2, V10.2.
    #[test]
    fn v10_2_the_average_moves_by_its_weight_and_decays_while_idle() {
        let average = |red: &Red| red.average as f64 / 2f64.powi(FRACTION as i32);
        let mut red = at(50, -1, false);
        red.update_average(found(60));
        assert!((average(&red) - 50.02).abs() < 1e-9, "{}", average(&red));

        // 0.1 s at 1300 packets/s of 1000 bytes.
        let mut red = at(1, -1, false);
        red.update_average(Found { idle: Some((PS_PER_S / 10, BitRate(10_400_000))), ..found(0) });
        assert!((average(&red) - 0.998f64.powi(130)).abs() < 1e-9, "{}", average(&red));
        assert!((average(&red) - 0.7709).abs() < 5e-5);
    }

    /// The average against floats over 10^6 arrivals: the bound is the rounding of one step, 2^-33,
    /// divided by the weight with which it is forgotten.
    #[test]
    fn the_average_stays_within_its_rounding_of_the_float_average() {
        let mut draws = Stream::named(3, "test");
        let mut red = Red::new(config(false));
        let mut average = 0.0;
        let mut worst = 0f64;
        for _ in 0..1_000_000 {
            let queue = draws.below(200);
            red.update_average(found(queue));
            average += 0.002 * (queue as f64 - average);
            worst = worst.max((red.average as f64 / 2f64.powi(FRACTION as i32) - average).abs());
        }
        let bound = 2f64.powi(-33) / 0.002;
        assert!(worst < bound, "{worst:e} off, bound {bound:e}");
    }

    /// F93 §4: between two that go, any number up to 1/p_b is equally likely.
    #[test]
    fn gaps_between_drops_are_uniform_at_a_steady_average() {
        let mut draws = Stream::named(4, "test");
        let mut red = at(75, 0, false);
        let mut gaps = [0u32; 20];
        for _ in 0..20_000 {
            let mut gap = 0;
            loop {
                red.average = 75 << FRACTION;
                if red.arrive(&ECT, found(75), &mut draws) != Verdict::Accept {
                    break;
                }
                gap += 1;
            }
            gaps[gap] += 1;
        }
        let chi_square: f64 = gaps.iter().map(|&n| (f64::from(n) - 1e3).powi(2) / 1e3).sum();
        assert!(chi_square < 43.8, "{gaps:?}: chi-square {chi_square}, 0.999 quantile of 19 degrees 43.8");
    }

    #[test]
    fn marks_only_what_is_capable_and_only_at_random() {
        let mut draws = Stream::named(5, "test");
        // p_a = 1 here.
        assert_eq!(at(75, 19, false).arrive(&ECT, found(75), &mut draws), Verdict::Mark);
        let plain = Packet { flags: 0, ..ECT };
        let early = Verdict::Drop(Reason::RedEarly);
        assert_eq!(at(75, 19, false).arrive(&plain, found(75), &mut draws), early);
        let mut deaf = at(75, 19, false);
        deaf.config.ecn = false;
        assert_eq!(deaf.arrive(&ECT, found(75), &mut draws), early);
        let forced = Verdict::Drop(Reason::RedForced);
        assert_eq!(at(101, 0, false).arrive(&ECT, found(101), &mut draws), forced);
        let full = Found { is_full: true, ..found(75) };
        assert_eq!(at(75, 19, false).arrive(&ECT, full, &mut draws), Verdict::Drop(Reason::QueueFull));
        assert_eq!(at(10, 5, false).arrive(&ECT, found(10), &mut draws), Verdict::Accept);
        assert_eq!(draws.draws(), 0, "certain outcomes draw nothing");
    }

    #[test]
    fn in_bytes_a_small_packet_goes_less_often() {
        let mut config = config(false);
        config.thresholds = Thresholds::Bytes { min: 50_000, max: 100_000 };
        let red = Red { average: 75_000 << FRACTION, ..Red::new(config) };
        let (whole, small) = (red.base_probability(1000).unwrap(), red.base_probability(40).unwrap());
        assert!((fraction(small) - 0.05 * 0.04).abs() < 1e-12);
        assert!((fraction(whole) - 0.05).abs() < 1e-12);
    }
}
