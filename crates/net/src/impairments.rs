//! Impairments of the wire beside independent bit errors: bursts of errors, time without
//! acknowledgments, packets that are overtaken.

use alloc::boxed::Box;

pub use crate::errors::GilbertElliott;
use crate::errors::{BitErrors, ErrorRate};
use crate::packet::Picos;
use crate::random::{Probability, Stream};

/// From so many mean turns without a packet on, the state says nothing of the one before, and is drawn
/// anew: a wire may be idle for long.
const FORGOTTEN: Picos = 100;

/// The state of a wire with bursts.
#[derive(Clone, Debug)]
struct Bursts {
    config: GilbertElliott,
    is_bad: bool,
    /// When the state changes.
    until: Picos,
    good: BitErrors,
    bad: BitErrors,
}

impl Bursts {
    fn new(config: GilbertElliott) -> Self {
        let errors = |rate| BitErrors::of_packets(rate, config.size);
        Self {
            config,
            is_bad: false,
            until: 0,
            good: errors(config.good_packet_error_rate),
            bad: errors(config.packet_error_rate),
        }
    }

    /// The errors of the state at `t`; times do not go back.
    fn at(&mut self, t: Picos, stream: &mut Stream) -> &mut BitErrors {
        let mean_turn = self.config.good.saturating_add(self.config.bad);
        if self.until == 0 || t - self.until.min(t) > mean_turn.saturating_mul(FORGOTTEN) {
            self.is_bad = stream.bernoulli(Probability::from_f64(self.config.bad_share()));
            self.until = t.max(1);
            self.stay(stream);
        }
        while self.until <= t {
            self.is_bad = !self.is_bad;
            self.stay(stream);
        }
        if self.is_bad { &mut self.bad } else { &mut self.good }
    }

    fn stay(&mut self, stream: &mut Stream) {
        let mean = if self.is_bad { self.config.bad } else { self.config.good };
        self.until = self.until.saturating_add(stream.exponential(mean).max(1));
    }
}

/// The errors of a wire.
#[derive(Clone, Debug)]
enum Kind {
    Bits(BitErrors),
    Bursts(Box<Bursts>),
}

/// The errors of a wire, with their state.
#[derive(Clone, Debug)]
pub(crate) struct Errors(Kind);

impl Errors {
    pub(crate) fn new(rate: ErrorRate) -> Self {
        Self(match rate {
            ErrorRate::GilbertElliott(config) => Kind::Bursts(Box::new(Bursts::new(config))),
            ErrorRate::Bit(rate) => Kind::Bits(BitErrors::of_bits(rate)),
            ErrorRate::Packet { rate, size } => Kind::Bits(BitErrors::of_packets(rate, size)),
        })
    }

    /// Probability that a packet of `size` bytes that reaches the far end at `at` is broken.
    pub(crate) fn probability(&mut self, at: Picos, size: u16, bursts: &mut Stream) -> Probability {
        match &mut self.0 {
            Kind::Bits(errors) => errors.probability(size),
            Kind::Bursts(state) => state.at(at, bursts).probability(size),
        }
    }
}

/// Reordering: some packets come later than those sent after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reorder {
    /// Probability that a packet comes later.
    pub probability: Probability,
    /// Additional delay of such a packet, ps.
    pub delay: Picos,
}

/// Rewriting of the ECN field of IP, as middleboxes do it: to packets of every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnRewrite {
    /// Code with which a packet leaves, by the code with which it came: 00, 01 (ECT(1)), 10 (ECT(0)), 11 (CE).
    pub to: [u8; 4],
    /// Probability that a packet is rewritten.
    pub probability: Probability,
}

impl EcnRewrite {
    /// Returns the code with which a packet leaves that came with `code`.
    #[inline]
    pub const fn of(&self, code: u8) -> u8 {
        self.to[(code & 3) as usize] & 3
    }
}

/// Spans of time, in order, of which none overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Box<[(Picos, Picos)]>);

impl Spans {
    /// Creates spans from their begin, included, to their end, excluded; `None` if two overlap or one is empty.
    pub fn new(mut spans: alloc::vec::Vec<(Picos, Picos)>) -> Option<Self> {
        spans.sort_unstable();
        let are_apart = spans.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        (are_apart && spans.iter().all(|(from, to)| from < to)).then(|| Self(spans.into()))
    }

    /// Returns true if there is no span.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if `t` lies within a span.
    #[inline]
    pub fn contains(&self, t: Picos) -> bool {
        let next = self.0.partition_point(|&(from, _)| from <= t);
        next > 0 && t < self.0[next - 1].1
    }

    /// Returns the spans, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = (Picos, Picos)> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Picos = 1_000_000_000;

    #[test]
    fn spans_contain_their_begin_and_not_their_end() {
        let spans = Spans::new([(5, 7), (1, 3), (3, 4)].into()).expect("they touch");
        let inside: alloc::vec::Vec<Picos> = (0..10).filter(|&t| spans.contains(t)).collect();
        assert_eq!(inside, [1, 2, 3, 5, 6]);
        assert_eq!(Spans::new([(1, 3), (2, 4)].into()), None);
        assert_eq!(Spans::new([(3, 3)].into()), None);
        assert!(!Spans::default().contains(0));
    }

    /// Shares of time and mean lengths of the turns, read every millisecond for 5000 s, and after idle
    /// times that the state does not survive.
    #[test]
    fn a_wire_is_bad_as_often_and_as_long_as_it_should_be() {
        let config = GilbertElliott {
            good: 1000 * MS,
            bad: 200 * MS,
            good_packet_error_rate: 0.0,
            packet_error_rate: 0.5,
            size: 1000,
        };
        let mut stream = Stream::named(1, "bursts");
        let mut wire = Errors::new(ErrorRate::GilbertElliott(config));
        let half = Probability::from_f64(BitErrors::of_packets(0.5, 1000).packet_error_rate(1000));
        let (mut bad, mut turns, mut last) = (0_u64, 0_u64, false);
        for t in 0..5_000_000 {
            let probability = wire.probability(t * MS, 1000, &mut stream);
            let is_bad = probability != Probability::ZERO;
            assert!(!is_bad || probability == half);
            bad += u64::from(is_bad);
            turns += u64::from(is_bad && !last);
            last = is_bad;
        }
        // 833,333 ms and 4167 turns; standard deviations of about 3 % and 1.5 %.
        assert!((760_000..910_000).contains(&bad), "{bad} ms");
        assert!((3950..4400).contains(&turns), "{turns} turns");

        let mut bad = 0;
        for round in 1..=3000 {
            let t = 5_000_000 * MS + round * 1000 * 1200 * MS;
            bad += u64::from(wire.probability(t, 1000, &mut stream) != Probability::ZERO);
        }
        assert!((420..580).contains(&bad), "{bad} of 3000");
    }
}
