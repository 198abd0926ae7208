//! Means over several seeds, with their confidence intervals.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The axis of a sweep that means are over.
pub const SEED: &str = "run.seed";
/// The fewest seeds that make a confidence interval.
pub const SEEDS_MIN: usize = 5;

/// How sure an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confidence {
    /// 95 %: who looks once at the runs is wrong in one case of twenty.
    Once,
    /// 99 %: so is at most who looks up to [`LOOKS`] times, with more runs each time (Bonferroni).
    EachLook,
}

/// The numbers of seeds at which a mean that is undecided is looked at again.
const MORE: [usize; 4] = [10, 20, 50, 100];
/// With the first look, so many.
const LOOKS: usize = MORE.len() + 1;
const _: () = assert!(LOOKS == 5, "each at 99 %, five looks err in 5 % of the cases at most");

/// The seeds to add to these for the next look: the least that are not among them. `None`: there is none.
pub(crate) fn next_seeds(used: &BTreeSet<u64>) -> Option<Vec<u64>> {
    let wanted = MORE.into_iter().find(|count| *count > used.len())?;
    Some((1..).filter(|seed| !used.contains(seed)).take(wanted - used.len()).collect())
}

/// Path and value (as TOML) of what a sweep varies.
pub type Settings = Vec<(String, String)>;

/// Groups runs that differ by their seed alone, in the order in which their point came first. The settings of a point have
/// no seed.
pub fn by_point<'a, T>(runs: impl IntoIterator<Item = (&'a Settings, T)>) -> Vec<(Settings, Vec<T>)> {
    let mut points: Vec<(Settings, Vec<T>)> = Vec::new();
    let mut places = BTreeMap::new();
    for (settings, run) in runs {
        let point: Settings = settings.iter().filter(|(path, _)| path != SEED).cloned().collect();
        let place = *places.entry(point.clone()).or_insert(points.len());
        match points.get_mut(place) {
            Some((_, runs)) => runs.push(run),
            None => points.push((point, vec![run])),
        }
    }
    points
}

/// The points of a sweep at which several seeds ran and changed nothing, because no run drew a random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnusedSeeds {
    /// Number of these points.
    pub points: usize,
    /// Number of all points of the sweep, seeds apart.
    pub of: usize,
}

impl UnusedSeeds {
    /// Finds the points among the runs of a sweep. A run is its settings without the seed, its seed, and whether it drew a
    /// random number. Returns `None` if seeds changed something wherever several ran.
    pub(crate) fn of<P: Ord, S: Ord>(runs: impl IntoIterator<Item = (P, S, bool)>) -> Option<Self> {
        let mut all: BTreeMap<P, (BTreeSet<S>, bool)> = BTreeMap::new();
        for (point, seed, is_random) in runs {
            let (seeds, was_random) = all.entry(point).or_default();
            seeds.insert(seed);
            *was_random |= is_random;
        }
        let points = all.values().filter(|(seeds, was_random)| seeds.len() > 1 && !was_random).count();
        (points > 0).then_some(Self { points, of: all.len() })
    }
}

/// The sentence for users, without a full stop.
impl fmt::Display for UnusedSeeds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { points, of } = *self;
        if points == of {
            write!(
                out,
                "seeds changed nothing: no run drew a random number, so all seeds of a point are one run"
            )
        } else {
            write!(out, "seeds changed nothing at {points} of {of} points: no run there drew a random number")
        }
    }
}

/// Mean and half of its interval of confidence, by Student's t; of one value the half is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The mean.
    pub(crate) mean: f64,
    /// The mean is within so much of it.
    pub(crate) half: f64,
}

impl Estimate {
    /// Mean and 95 % interval of values that are drawn independently; `None` without any.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let parts: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        Self::of_ratio(&parts, Confidence::Once)
    }

    /// The ratio of two means over the same runs, by the runs' residuals (W. G. Cochran, Sampling Techniques, 6.4); with a
    /// denominator of 1 in each that of [`Estimate::of`]. `None`: there is nothing to divide by.
    pub(crate) fn of_ratio(parts: &[(f64, f64)], confidence: Confidence) -> Option<Self> {
        let count = parts.len() as f64;
        let sum = |part: fn(&(f64, f64)) -> f64| parts.iter().map(part).sum::<f64>();
        let (above, below) = (sum(|part| part.0), sum(|part| part.1));
        if below == 0.0 {
            return None;
        }
        // Equal runs have no interval, and sums of equal numbers are rounded.
        if let Some((a, b)) = parts.first().filter(|first| parts.iter().all(|part| part == *first)) {
            return Some(Self { mean: a / b, half: 0.0 });
        }
        let mean = above / below;
        let squares: f64 = parts.iter().map(|(a, b)| (a - mean * b) * (a - mean * b)).sum();
        let half = student(confidence, parts.len() - 1) * (squares / (count - 1.0) / count).sqrt()
            / (below / count).abs();
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

/// The quantile of Student's t that bounds a two-sided interval, with so many degrees of freedom. Beyond the table within 0.001
/// (Abramowitz and Stegun 26.7.5).
fn student(confidence: Confidence, freedom: usize) -> f64 {
    const ONCE: [f64; 4] = [f64::INFINITY, 12.706, 4.303, 3.182];
    const EACH: [f64; 10] = [f64::INFINITY, 63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250];
    let (few, z) = match confidence {
        Confidence::Once => (&ONCE[..], 1.959_964_f64),
        Confidence::EachLook => (&EACH[..], 2.575_829),
    };
    if let Some(t) = few.get(freedom) {
        return *t;
    }
    let v = freedom as f64;
    let power = |exponent: i32| z.powi(exponent);
    z + (power(3) + z) / (4.0 * v)
        + (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / (96.0 * v * v)
        + (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / (384.0 * v * v * v)
        + (79.0 * power(9) + 776.0 * power(7) + 1482.0 * power(5) - 1920.0 * power(3) - 945.0 * z)
            / (92_160.0 * v * v * v * v)
}

#[cfg(test)]
mod tests {
    use super::{Confidence, Estimate, UnusedSeeds, next_seeds, student};

    #[test]
    fn seeds_are_unused_where_no_run_of_a_point_drew() {
        let of = |runs: &[(&str, u64, bool)]| UnusedSeeds::of(runs.iter().copied());
        assert_eq!(of(&[("a", 1, false), ("a", 2, false)]), Some(UnusedSeeds { points: 1, of: 1 }));
        let mixed = [("a", 1, false), ("a", 2, false), ("b", 1, true), ("b", 2, false)];
        assert_eq!(of(&mixed), Some(UnusedSeeds { points: 1, of: 2 }));
        // One seed is no repetition, however often it is asked for.
        assert_eq!(of(&[("a", 1, false), ("a", 1, false), ("b", 1, false)]), None);
        let told = UnusedSeeds { points: 1, of: 2 }.to_string();
        assert!(told.starts_with("seeds changed nothing at 1 of 2 points"), "{told}");
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let once =
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045), (10_000, 1.960)];
        let each = [(4, 4.604), (9, 3.250), (10, 3.169), (19, 2.861), (49, 2.680), (99, 2.626)];
        for (confidence, table) in [(Confidence::Once, &once[..]), (Confidence::EachLook, &each)] {
            for (freedom, t) in table {
                let found = student(confidence, *freedom);
                assert!((found - t).abs() < 1.5e-3, "{confidence:?} {freedom}: {found}");
            }
        }
    }

    #[test]
    fn seeds_that_are_added_are_others() {
        let next = |used: &[u64]| next_seeds(&used.iter().copied().collect());
        assert_eq!(next(&[1, 2, 3, 4, 5]), Some((6..=10).collect()));
        assert_eq!(next(&[2, 4, 6, 8, 1000]), Some(vec![1, 3, 5, 7, 9]));
        assert_eq!(next(&(1..=10).collect::<Vec<_>>()), Some((11..=20).collect()));
        assert_eq!(next(&(1..=100).collect::<Vec<_>>()), None);
    }

    #[test]
    fn an_interval_is_that_of_the_textbook() {
        // 1 to 5: mean 3, s = 1.5811, s / sqrt(5) = 0.7071, t = 2.776.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five values");
        assert!((estimate.mean - 3.0).abs() < 1e-12);
        assert!((estimate.half - 1.963).abs() < 2e-3, "{estimate:?}");
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, half: 0.0 }));
        assert_eq!(Estimate::of(&[2.5; 6]).map(|same| same.half), Some(0.0));
        // Three times 0.1 sums to 0.30000000000000004.
        assert_eq!(Estimate::of(&[0.1; 3]), Some(Estimate { mean: 0.1, half: 0.0 }));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn a_ratio_is_that_of_the_means() {
        // Means 3 and 2; residuals -1.5, 0, 1.5: s = 1.5, s / sqrt(3) / 2 = 0.4330, t = 4.303.
        let estimate =
            Estimate::of_ratio(&[(0.0, 1.0), (3.0, 2.0), (6.0, 3.0)], Confidence::Once).expect("a ratio");
        assert!((estimate.mean - 1.5).abs() < 1e-12);
        assert!((estimate.half - 1.8633).abs() < 1e-3, "{estimate:?}");
        // A run without anything to divide by is a run like others.
        let with_zero =
            Estimate::of_ratio(&[(2.0, 0.0), (2.0, 2.0), (2.0, 2.0)], Confidence::Once).expect("a ratio");
        assert!((with_zero.mean - 1.5).abs() < 1e-12);
        assert_eq!(Estimate::of_ratio(&[(2.0, 0.0), (1.0, 0.0)], Confidence::Once), None);
        let values = [1.0, 2.0, 3.0, 4.0, 5.5];
        let parts: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        assert_eq!(Estimate::of_ratio(&parts, Confidence::Once), Estimate::of(&values));
    }
}
