//! Long series as few points, without losing an extreme.
//!
//! All series of a run share one grid of times. If the run has more bins than the grid has points,
//! neighbouring bins share two points: the least and the greatest value among them, in the order in
//! which they came. The first and the last bin keep points of their own, so both ends are exact.

use congestlab_net::packet::Picos;

/// The times at which a run is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    duration: Picos,
    every: Picos,
    /// Bins of the run.
    bins: u64,
    /// Bins that share a pair of points; 1: every bin has its own.
    shared: u64,
}

impl Grid {
    /// Bins of `every` up to `duration`, on about `points_max` points.
    pub(crate) fn new(duration: Picos, every: Picos, points_max: usize) -> Self {
        let every = every.max(1);
        let bins = duration.div_ceil(every);
        let pairs = (points_max as u64 / 2).max(2) - 1;
        let shared = if bins <= points_max as u64 { 1 } else { (bins - 2).div_ceil(pairs) };
        Self { duration, every, bins, shared }
    }

    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        let points = if self.shared == 1 { self.bins } else { 2 + 2 * (self.bins - 2).div_ceil(self.shared) };
        usize::try_from(points).unwrap_or(usize::MAX)
    }

    /// Bins behind a pair of points; 1 if nothing was left out.
    pub(crate) fn shared(&self) -> u64 {
        self.shared
    }

    /// Seconds of one bin.
    pub(crate) fn every_s(&self) -> f64 {
        seconds(self.every)
    }

    /// The first of the one or two points of the bin that ends at `at`, and how many they are.
    fn place(&self, at: Picos) -> (usize, usize) {
        let bin = (at.saturating_sub(1) / self.every).min(self.bins.saturating_sub(1));
        let (place, count) = if self.shared == 1 || bin == 0 {
            (bin, 1)
        } else if bin + 1 == self.bins {
            (self.len() as u64 - 1, 1)
        } else {
            (1 + 2 * ((bin - 1) / self.shared), 2)
        };
        (place as usize, count)
    }

    /// Notes the value of the bin that ends at `at`. Values of one series come in order of time.
    pub(crate) fn put(&self, series: &mut Vec<f32>, at: Picos, value: f64) {
        if series.is_empty() {
            series.resize(self.len(), f32::NAN);
        }
        let (place, count) = self.place(at);
        let value = value as f32;
        let Some(points) = series.get_mut(place..place + count) else { return };
        match points {
            [point] => *point = value,
            [first, second] if first.is_nan() => (*first, *second) = (value, value),
            // A new extreme comes after the other one, which stays.
            [first, second] => {
                let (least, greatest) = (first.min(*second), first.max(*second));
                if value < least {
                    (*first, *second) = (greatest, value);
                } else if value > greatest {
                    (*first, *second) = (least, value);
                }
            }
            _ => {}
        }
    }

    /// The times of the points, seconds: the ends of bins, or a quarter and three quarters into the
    /// bins that share a pair.
    pub(crate) fn times(&self) -> Vec<f64> {
        let end = |bin: u64| seconds(((bin + 1) * self.every).min(self.duration));
        if self.shared == 1 {
            return (0..self.bins).map(end).collect();
        }
        let every = seconds(self.every);
        let pairs = (1..self.bins - 1).step_by(usize::try_from(self.shared).unwrap_or(usize::MAX));
        let middle = pairs.flat_map(|bin| {
            let span = self.shared.min(self.bins - 1 - bin) as f64 * every;
            [0.25, 0.75].map(|share| end(bin) - every + span * share)
        });
        std::iter::once(end(0)).chain(middle).chain([end(self.bins - 1)]).collect()
    }
}

pub(crate) fn seconds(at: Picos) -> f64 {
    at as f64 / 1e12
}

/// The nearest picosecond: what [`seconds`] was made of.
pub(crate) fn picos(seconds: f64) -> Picos {
    (seconds * 1e12).round() as Picos
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Picos = 1_000_000_000;

    fn draw(values: &[f64], points_max: usize) -> (Vec<f64>, Vec<f32>) {
        let grid = Grid::new(values.len() as u64 * 100 * MS, 100 * MS, points_max);
        let mut series = Vec::new();
        for (bin, value) in (1..).zip(values) {
            grid.put(&mut series, bin * 100 * MS, *value);
        }
        (grid.times(), series)
    }

    #[test]
    fn a_short_series_is_kept_as_it_is() {
        let values: Vec<f64> = (0..50).map(|i| f64::from(i * i % 17)).collect();
        let (times, series) = draw(&values, 50);
        assert_eq!(times.len(), 50);
        assert!((times[0] - 0.1).abs() < 1e-9 && (times[49] - 5.0).abs() < 1e-9, "{times:?}");
        assert_eq!(series, values.iter().map(|value| *value as f32).collect::<Vec<_>>());
    }

    #[test]
    fn a_long_series_keeps_its_extremes_in_order_and_its_ends() {
        for bins in [41usize, 100, 999, 36_000] {
            let mut values: Vec<f64> = (0..bins).map(|i| 10.0 + (i * 7 % 5) as f64).collect();
            (values[0], values[bins - 1]) = (3.5, 4.5);
            let (peak, valley) = (bins / 3, bins / 3 * 2);
            (values[peak], values[valley]) = (1e6, -1e6);
            let (times, series) = draw(&values, 40);
            assert_eq!(times.len(), series.len());
            assert!(series.len() <= 40 && series.len() > 15, "{bins} bins on {} points", series.len());
            assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
            assert!(series.iter().all(|value| !value.is_nan()), "{series:?}");
            assert_eq!((series[0], series[series.len() - 1]), (3.5, 4.5));
            let at = |value: f32| {
                let place = series.iter().position(|&other| other == value).expect("an extreme is missing");
                times[place]
            };
            let bucket = 0.1 * bins as f64 / 19.0 + 0.1;
            for (value, bin) in [(1e6, peak), (-1e6, valley)] {
                let wanted = 0.1 * (bin + 1) as f64;
                assert!((at(value) - wanted).abs() <= bucket, "{value} at {} not {wanted}", at(value));
            }
        }
    }

    #[test]
    fn what_was_not_measured_stays_empty() {
        let grid = Grid::new(1000 * MS, 100 * MS, 100);
        let mut series = Vec::new();
        grid.put(&mut series, 300 * MS, 7.0);
        assert_eq!(series.iter().filter(|value| !value.is_nan()).count(), 1);
        assert_eq!(series[2], 7.0);
    }

    #[test]
    fn a_run_shorter_than_a_bin_has_one_point() {
        let grid = Grid::new(30 * MS, 100 * MS, 2000);
        assert_eq!((grid.len(), grid.times()), (1, vec![0.03]));
    }
}
