//! Bit errors: a packet of n bytes survives with probability (1 - BER)^(8n).
//!
//! docs/design/protocols.md 12.1. Computed with `libm`, once for each packet size, so that every machine gets
//! the same probabilities.

use crate::packet::Picos;
use crate::random::Probability;

/// Frequency of bit errors on a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorRate {
    /// Probability that a bit is wrong.
    Bit(f64),
    /// Probability that a packet of `size` bytes has a wrong bit. Packets of other sizes follow the bit error rate
    /// that it implies.
    Packet {
        /// Probability that a packet of `size` bytes has a wrong bit.
        rate: f64,
        /// Bytes of the whole IP packet.
        size: u16,
    },
    /// Errors in bursts.
    GilbertElliott(GilbertElliott),
}

/// Errors in bursts (Gilbert, Elliott; docs/design/protocols.md 12.1): the wire is good or bad by turns, each for an
/// exponentially distributed time, packets or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Mean time in the good state, ps.
    pub good: Picos,
    /// Mean time in the bad state, ps.
    pub bad: Picos,
    /// Probability that a packet of `size` bytes breaks in the good state. Packets of other sizes follow the bit
    /// error rate that it implies.
    pub good_packet_error_rate: f64,
    /// Probability that a packet of `size` bytes breaks in the bad state.
    pub packet_error_rate: f64,
    /// Bytes of the whole IP packet.
    pub size: u16,
}

impl GilbertElliott {
    /// Returns the part of the time in which the wire is bad.
    pub fn bad_share(&self) -> f64 {
        self.bad as f64 / (self.good as f64 + self.bad as f64)
    }
}

impl ErrorRate {
    /// Returns independent errors that hit as many packets on average over time.
    pub fn average(self) -> BitErrors {
        match self {
            Self::Bit(rate) => BitErrors::of_bits(rate),
            Self::Packet { rate, size } => BitErrors::of_packets(rate, size),
            Self::GilbertElliott(bursts) => {
                let share = bursts.bad_share();
                let rate = share * bursts.packet_error_rate + (1.0 - share) * bursts.good_packet_error_rate;
                BitErrors::of_packets(rate, bursts.size)
            }
        }
    }
}

/// Sizes whose probabilities are kept, by their low bits: data, ACK and a few odd last segments.
const CACHE: usize = 8;

/// Probability of an error by packet size.
#[derive(Clone, Debug)]
pub struct BitErrors {
    /// ln(1 - BER) of one byte; -infinity if nothing survives.
    log_survival: f64,
    cache: [(u16, Probability); CACHE],
}

impl BitErrors {
    /// Creates the errors of a wire on which a bit is wrong with probability `rate`, within 0..=1.
    pub fn of_bits(rate: f64) -> Self {
        Self::new(8.0 * libm::log1p(-rate))
    }

    /// Creates the errors of a wire on which a packet of `size` bytes has a wrong bit with probability `rate`, 0..=1.
    pub fn of_packets(rate: f64, size: u16) -> Self {
        Self::new(libm::log1p(-rate) / f64::from(size))
    }

    fn new(log_survival: f64) -> Self {
        // Size 0 has probability 0: the cache is right from the beginning.
        Self { log_survival, cache: [(0, Probability::ZERO); CACHE] }
    }

    /// Returns the bit error rate.
    pub fn bit_error_rate(&self) -> f64 {
        -libm::expm1(self.log_survival / 8.0)
    }

    /// Returns the probability that a packet of `size` bytes has an error.
    pub fn packet_error_rate(&self, size: u16) -> f64 {
        if size == 0 { 0.0 } else { -libm::expm1(self.log_survival * f64::from(size)) }
    }

    /// Returns [`BitErrors::packet_error_rate`] as a probability to draw by, and remembers it.
    #[inline]
    pub fn probability(&mut self, size: u16) -> Probability {
        let slot = usize::from(size >> 2 ^ size) % CACHE;
        if self.cache[slot].0 != size {
            self.cache[slot] = (size, Probability::from_f64(self.packet_error_rate(size)));
        }
        self.cache[slot].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of docs/design/protocols.md 12.1, whose entries have five or six digits.
    #[test]
    fn probabilities_by_size_are_those_of_the_table_of_12_1() {
        let table = [
            (1e-4, 1.25006e-8, 4.0002e-6),
            (1e-3, 1.25063e-7, 4.0019e-5),
            (1e-2, 1.25629e-6, 4.0193e-4),
            (0.1, 1.31700e-5, 4.20555e-3),
            (0.2, 2.78926e-5, 8.88603e-3),
            (0.3, 4.45834e-5, 1.41657e-2),
        ];
        for (data, bit, ack) in table {
            let mut errors = BitErrors::of_packets(data, 1000);
            let near = |ours: f64, theirs: f64, digits: f64| (ours / theirs - 1.0).abs() < digits;
            assert!(near(errors.bit_error_rate(), bit, 5e-6), "BER {} at {data}", errors.bit_error_rate());
            let rate = errors.packet_error_rate(40);
            assert!(near(rate, ack, 1.5e-5), "ACK PER {rate} at {data}");
            let again = BitErrors::of_bits(errors.bit_error_rate());
            assert!(near(again.packet_error_rate(1000), data, 1e-12), "and back at {data}");
            for _ in 0..2 {
                assert_eq!(errors.probability(1000), Probability::from_f64(errors.packet_error_rate(1000)));
                assert_eq!(errors.probability(40), Probability::from_f64(rate));
            }
        }
    }

    #[test]
    fn certain_errors_and_none_are_exact() {
        let mut always = BitErrors::of_packets(1.0, 1000);
        assert_eq!(always.probability(40), Probability::ONE);
        assert_eq!(always.probability(0), Probability::ZERO);
        let mut never = BitErrors::of_bits(0.0);
        assert_eq!(never.probability(1500), Probability::ZERO);
    }
}
