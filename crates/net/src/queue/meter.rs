//! How long a queue had each length, for its mean, its percentiles and its maximum.

use crate::packet::Picos;
use alloc::vec;
use alloc::vec::Vec;

/// Times for which the queue had each length.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// Time by length, ps; longer than any length so far.
    spent: Vec<Picos>,
    /// When the length changed last.
    pub(crate) since: Picos,
    /// The longest since the last sample.
    pub(crate) longest: usize,
}

impl Meter {
    /// Creates the meter of an empty queue.
    pub(crate) fn new() -> Self {
        Self { spent: vec![0], since: 0, longest: 0 }
    }

    #[inline]
    pub(crate) fn note(&mut self, now: Picos, len: usize) {
        self.spent[len] += now - self.since;
        self.since = now;
    }

    #[inline]
    pub(crate) fn reach(&mut self, len: usize) {
        if len > self.longest {
            self.longest = len;
            if len >= self.spent.len() {
                self.spent.resize(2 * len, 0);
            }
        }
    }

    /// The measurement begins.
    pub(crate) fn restart(&mut self, now: Picos) {
        self.spent.fill(0);
        self.since = now;
    }

    /// Mean length; `None` if no time was measured.
    pub(crate) fn mean(&self) -> Option<f64> {
        let total: u128 = self.spent.iter().map(|&time| u128::from(time)).sum();
        let area: u128 = self.spent.iter().zip(0u128..).map(|(&time, len)| u128::from(time) * len).sum();
        (total > 0).then(|| area as f64 / total as f64)
    }

    /// The least length that was not exceeded for `percent` of the time.
    pub(crate) fn percentile(&self, percent: u128) -> Option<u64> {
        let total: u128 = self.spent.iter().map(|&time| u128::from(time)).sum();
        let mut below = 0u128;
        let reaches = |&time: &Picos| {
            below += u128::from(time);
            below * 100 >= total * percent
        };
        let len = self.spent.iter().position(reaches)?;
        (total > 0).then_some(len as u64)
    }
}
