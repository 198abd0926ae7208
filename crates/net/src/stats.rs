//! Statistics that an element keeps of itself: cheap to update, small while nothing happened.

use alloc::boxed::Box;
use congestlab_core::units::Duration;

/// Buckets per octave, as a power of two: a bucket is at most 1/64 (1.6 %) of its value wide.
const SUB_BITS: u32 = 6;
/// Buckets added beyond the one that is needed, against growing one by one.
const SLACK: usize = 4;

/// Histogram of spans of time, in buckets whose width grows with the value.
///
/// Only the buckets between the smallest and the largest sample are held: a flow whose round trip
/// time doubles uses about 300 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Sum of all samples, ns.
    sum: u64,
    /// The largest sample, ns.
    max: u64,
    /// Index of the first bucket held.
    first: u32,
    counts: Box<[u32]>,
}

impl Histogram {
    /// Counts one sample.
    #[inline]
    pub fn record(&mut self, sample: Duration) {
        self.sum = self.sum.saturating_add(sample.0);
        self.max = self.max.max(sample.0);
        let bucket = bucket_of(sample.0);
        match self.counts.get_mut(bucket.wrapping_sub(self.first as usize)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.record_outside(bucket),
        }
    }

    #[cold]
    fn record_outside(&mut self, bucket: usize) {
        let mut counts = core::mem::take(&mut self.counts).into_vec();
        if counts.is_empty() {
            self.first = bucket.saturating_sub(SLACK) as u32;
        } else if bucket < self.first as usize {
            let first = bucket.saturating_sub(SLACK) as u32;
            counts.splice(0..0, core::iter::repeat_n(0, (self.first - first) as usize));
            self.first = first;
        }
        let at = bucket - self.first as usize;
        if at >= counts.len() {
            counts.resize(at + 1 + SLACK, 0);
        }
        counts[at] = counts[at].saturating_add(1);
        self.counts = counts.into_boxed_slice();
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Returns the sum of the samples, exact.
    pub fn sum(&self) -> Duration {
        Duration(self.sum)
    }

    /// Returns the largest sample; zero without samples.
    pub fn max(&self) -> Duration {
        Duration(self.max)
    }

    /// Returns a value that at least `percent` of the samples do not exceed, at most 1.6 % above the smallest
    /// such value and never above the largest sample; `None` without samples.
    ///
    /// The upper end of a bucket, not its middle: of equal samples the percentile is the sample, and
    /// not less than their mean.
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        self.percentile_beside(0, percent)
    }

    /// Returns the percentile of these samples and of so many that are zero.
    pub fn percentile_beside(&self, zeros: u64, percent: u32) -> Option<Duration> {
        let wanted = ((zeros + self.count()) * u64::from(percent)).div_ceil(100).max(1);
        if wanted <= zeros {
            return Some(Duration(0));
        }
        let mut seen = zeros;
        for (at, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted {
                let (low, width) = bucket_range(self.first as usize + at);
                return Some(Duration((low + (width - 1)).min(self.max)));
            }
        }
        None
    }
}

/// Values below 64 ns have a bucket each; every octave above has 64.
#[inline]
fn bucket_of(value: u64) -> usize {
    let shift = (value >> SUB_BITS | 1).ilog2();
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// Lowest value and width of a bucket.
fn bucket_range(bucket: usize) -> (u64, u64) {
    let shift = (bucket >> SUB_BITS).saturating_sub(1) as u32;
    let mantissa = bucket - ((shift as usize) << SUB_BITS);
    ((mantissa as u64) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        for exponent in 0..64 {
            for value in [1_u64 << exponent, (1 << exponent) | (1 << exponent >> 1), (1 << exponent) - 1] {
                let (low, width) = bucket_range(bucket_of(value));
                assert!(low <= value && value - low < width, "{value} not in {low}+{width}");
                assert!(width == 1 || width <= low / 64, "{value}: {width} is wide");
            }
        }
        assert_eq!(bucket_of(u64::MAX), bucket_of(u64::MAX - 1));
    }

    #[test]
    fn buckets_are_numbered_without_gap() {
        let mut expected = 0;
        let mut value = 0;
        while value < 1 << 20 {
            assert_eq!(bucket_of(value), expected);
            let (low, width) = bucket_range(expected);
            assert_eq!(low, value);
            value += width;
            expected += 1;
        }
    }

    #[test]
    fn percentiles_are_within_a_bucket_of_the_sorted_samples() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(95), None);
        // Falling, so that buckets are added at the front too.
        for n in (1..=1000_u64).rev() {
            histogram.record(Duration(n * 100_000));
        }
        assert_eq!(histogram.count(), 1000);
        assert_eq!(histogram.sum(), Duration(1000 * 1001 / 2 * 100_000));
        for (percent, exact) in [(1, 1_000_000), (50, 50_000_000), (95, 95_000_000), (100, 100_000_000)] {
            let found = histogram.percentile(percent).map_or(0, |value| value.0);
            assert!(found >= exact && (found - exact) * 64 <= exact, "{percent} %: {found}, sorted {exact}");
        }
    }

    #[test]
    fn zeros_that_nobody_counted_are_samples_too() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile_beside(0, 50), None);
        assert_eq!(histogram.percentile_beside(3, 99), Some(Duration(0)));
        for sample in [10, 20] {
            histogram.record(Duration(sample));
        }
        // 0, 0, 0, 10, 20.
        for (percent, value) in [(1, 0), (60, 0), (61, 10), (80, 10), (81, 20), (100, 20)] {
            assert_eq!(histogram.percentile_beside(3, percent), Some(Duration(value)), "{percent} %");
        }
        assert_eq!(histogram.max(), Duration(20));
    }

    #[test]
    fn percentiles_of_equal_samples_are_the_sample() {
        for sample in [0, 1, 63, 64, 21_219_600, 1_000_000_007, u64::MAX] {
            let mut histogram = Histogram::default();
            for _ in 0..10 {
                histogram.record(Duration(sample));
            }
            assert_eq!(histogram.percentile(95), Some(Duration(sample)));
            histogram.record(Duration(sample / 2));
            assert_eq!(histogram.percentile(95), Some(Duration(sample)), "one shorter changes nothing");
        }
    }
}
