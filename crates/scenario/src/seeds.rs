//! Means over several seeds, with their confidence intervals.

/// The axis of a sweep that means are over.
pub(crate) const SEED: &str = "run.seed";
/// The fewest seeds that make a confidence interval.
pub const SEEDS_MIN: usize = 5;

/// Mean and half of its 95 % interval of confidence, by Student's t; of one value the half is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The mean.
    pub(crate) mean: f64,
    /// The mean is within so much of it, at 95 %.
    pub(crate) half: f64,
}

impl Estimate {
    /// Mean and interval of values that are drawn independently; `None` without any.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let half = if values.len() < 2 || squares == 0.0 {
            0.0
        } else {
            t_975(values.len() - 1) * (squares / (count - 1.0) / count).sqrt()
        };
        Some(Self { mean, half })
    }

    /// The ratio of two means over the same runs, by the runs' residuals (W. G. Cochran, Sampling Techniques, 6.4); with a
    /// denominator of 1 in each that of [`Estimate::of`]. `None`: there is nothing to divide by.
    pub(crate) fn of_ratio(parts: &[(f64, f64)]) -> Option<Self> {
        let count = parts.len() as f64;
        let sum = |part: fn(&(f64, f64)) -> f64| parts.iter().map(part).sum::<f64>();
        let (above, below) = (sum(|part| part.0), sum(|part| part.1));
        if below == 0.0 {
            return None;
        }
        let mean = above / below;
        let squares: f64 = parts.iter().map(|(a, b)| (a - mean * b) * (a - mean * b)).sum();
        let half = if parts.len() < 2 || squares == 0.0 {
            0.0
        } else {
            t_975(parts.len() - 1) * (squares / (count - 1.0) / count).sqrt() / (below / count).abs()
        };
        Some(Self { mean, half })
    }

    /// The interval's lower end.
    pub(crate) fn low(&self) -> f64 {
        self.mean - self.half
    }

    /// The interval's upper end.
    pub(crate) fn high(&self) -> f64 {
        self.mean + self.half
    }
}

/// The 97.5 % quantile of Student's t with so many degrees of freedom. From four on within 0.001 (Abramowitz and
/// Stegun 26.7.5); fewer are exact to three places.
fn t_975(freedom: usize) -> f64 {
    const FEW: [f64; 4] = [f64::INFINITY, 12.706, 4.303, 3.182];
    if let Some(t) = FEW.get(freedom) {
        return *t;
    }
    let (z, v) = (1.959_964_f64, freedom as f64);
    let power = |exponent: i32| z.powi(exponent);
    z + (power(3) + z) / (4.0 * v)
        + (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / (96.0 * v * v)
        + (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / (384.0 * v * v * v)
        + (79.0 * power(9) + 776.0 * power(7) + 1482.0 * power(5) - 1920.0 * power(3) - 945.0 * z)
            / (92_160.0 * v * v * v * v)
}

#[cfg(test)]
mod tests {
    use super::{Estimate, t_975};

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, t) in [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045)] {
            assert!((t_975(freedom) - t).abs() < 1.5e-3, "{freedom}: {}", t_975(freedom));
        }
        assert!((t_975(10_000) - 1.9602).abs() < 1e-3);
    }

    #[test]
    fn an_interval_is_that_of_the_textbook() {
        // 1 to 5: mean 3, s = 1.5811, s / sqrt(5) = 0.7071, t = 2.776.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five values");
        assert!((estimate.mean - 3.0).abs() < 1e-12);
        assert!((estimate.half - 1.963).abs() < 2e-3, "{estimate:?}");
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, half: 0.0 }));
        assert_eq!(Estimate::of(&[2.5; 6]).map(|same| same.half), Some(0.0));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn a_ratio_is_that_of_the_means() {
        // Means 3 and 2; residuals -1.5, 0, 1.5: s = 1.5, s / sqrt(3) / 2 = 0.4330, t = 4.303.
        let estimate = Estimate::of_ratio(&[(0.0, 1.0), (3.0, 2.0), (6.0, 3.0)]).expect("a ratio");
        assert!((estimate.mean - 1.5).abs() < 1e-12);
        assert!((estimate.half - 1.8633).abs() < 1e-3, "{estimate:?}");
        // A run without anything to divide by is a run like others.
        let with_zero = Estimate::of_ratio(&[(2.0, 0.0), (2.0, 2.0), (2.0, 2.0)]).expect("a ratio");
        assert!((with_zero.mean - 1.5).abs() < 1e-12);
        assert_eq!(Estimate::of_ratio(&[(2.0, 0.0), (1.0, 0.0)]), None);
        let values = [1.0, 2.0, 3.0, 4.0, 5.5];
        let parts: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        assert_eq!(Estimate::of_ratio(&parts), Estimate::of(&values));
    }
}
