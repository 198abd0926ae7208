//! Proportional-integral controllers, as PIE's and DualPI2's: updates at even times, when the next is due and how many were
//! missed, and what their gains make of a wait.

#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::units::{Duration, Time, Wide};

/// Updates more often are events without a purpose.
const SPAN_MIN: Duration = Duration(1_000);
/// Updates that are made up for, if nobody drove the port for long: a controller is at rest before.
const MISSED_MAX: u64 = 1_024;

/// The times of updates, the first one a span after the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Updates {
    span: Duration,
    next: Time,
}

impl Updates {
    /// Creates the times of updates with such a span between two.
    #[inline(always)]
    pub(super) fn every(span: Duration) -> Self {
        let span = span.max(SPAN_MIN);
        Self { span, next: Time(0) + span }
    }

    /// Tells what is wrong with the setting `tupdate`; `example` is a value that is right.
    #[cfg(feature = "words")]
    pub(super) fn check(span: Duration, example: &str, tell: &mut dyn FnMut(Finding)) {
        if span < SPAN_MIN {
            let allowed = alloc::format!("allowed: from 1 us on, such as {example}");
            tell(Finding::range("tupdate", alloc::format!("is {span}"), allowed));
        }
    }

    /// Returns when the next update is due.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Returns the number of updates to make `now`, when the next one is due or later.
    #[inline(always)]
    pub(super) fn serve(&mut self, now: Time) -> u64 {
        let missed = (now - self.next).0 / self.span.0.max(1);
        self.next = self.next + Duration(self.span.0.saturating_mul(missed + 1));
        missed.min(MISSED_MAX) + 1
    }
}

/// Sum of gains times a wait's distances: its amount, and whether it is below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pull {
    pub(super) amount: u64,
    pub(super) is_down: bool,
}

impl Pull {
    /// Returns the sum of `gain (wait - from)` over both terms. It is exact, but that an amount of 2^64 and more is one below.
    // In two halves, for kernels have no signed product of so many bits.
    #[inline(always)]
    pub(super) fn of(wait: Duration, terms: [(u64, Duration); 2]) -> Self {
        let (mut up, mut down) = (Wide::ZERO, Wide::ZERO);
        for (gain, from) in terms {
            up = up.sum(Wide::product(gain, (wait - from).0));
            down = down.sum(Wide::product(gain, (from - wait).0));
        }
        let is_down = up.is_at_most(down) == 1;
        Self { amount: if is_down { down.minus(up) } else { up.minus(down) }.to_u64(), is_down }
    }

    /// Returns this number with its sign, `most` at most either way.
    #[inline(always)]
    pub(super) fn signed(self, most: u64) -> i64 {
        let amount = self.amount.min(most).min(i64::MAX as u64) as i64;
        if self.is_down { -amount } else { amount }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As signed numbers of 128 bits have it, which kernels have not.
    #[test]
    fn a_pull_is_exact_whatever_it_is_made_of() {
        let mut state = 7u64;
        let mut any = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            super::super::mix(state) >> (super::super::mix(!state) % 60)
        };
        for _ in 0..10_000 {
            let (wait, terms) = (any(), [(any() >> 24, any()), (any() >> 24, any())]);
            let apart = |(gain, from): (u64, u64)| i128::from(gain) * (i128::from(wait) - i128::from(from));
            let expected = apart(terms[0]) + apart(terms[1]);
            let pull = Pull::of(Duration(wait), terms.map(|(gain, from)| (gain, Duration(from))));
            let amount = u64::try_from(expected.unsigned_abs()).unwrap_or(u64::MAX);
            assert_eq!(pull, Pull { amount, is_down: expected <= 0 });
            assert_eq!(i128::from(pull.signed(1 << 60)), expected.clamp(-(1 << 60), 1 << 60));
        }
    }
}
