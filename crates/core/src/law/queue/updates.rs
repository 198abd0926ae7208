//! Updates of a controller at even times, as PIE's and DualPI2's: when the next is due, and how many were missed.

#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::units::{Duration, Time};

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
    pub(super) fn serve(&mut self, now: Time) -> u64 {
        let missed = (now - self.next).0 / self.span.0;
        self.next = self.next + Duration(self.span.0.saturating_mul(missed + 1));
        missed.min(MISSED_MAX) + 1
    }
}
