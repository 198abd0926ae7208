//! The time from which flows share fairly, from their series.

/// Largest distance of a flow's goodput from the mean, as a share of the mean, that counts as fair.
pub const FAIR_WITHIN: f64 = 0.2;
/// Time over which goodputs are averaged for that, s.
pub const FAIR_SECONDS: f64 = 1.0;

/// Returns the seconds from `from` to the time from which each flow's goodput, averaged over
/// [`FAIR_SECONDS`], stays within [`FAIR_WITHIN`] of the mean of all until `until`; `None` if that never
/// comes. Flows have one value for each bin of `every` seconds.
pub fn time_to_fair_share(goodputs: &[Vec<f64>], every: f64, from: f64, until: f64) -> Option<f64> {
    let bins = (FAIR_SECONDS / every).ceil().max(1.0) as usize;
    let means: Vec<Vec<f64>> = goodputs.iter().map(|flow| trailing_mean(flow, bins)).collect();
    let is_fair = |bin: usize| {
        let values = || means.iter().filter_map(|flow| flow.get(bin));
        let mean = values().sum::<f64>() / means.len() as f64;
        mean > 0.0 && values().all(|value| (value - mean).abs() <= FAIR_WITHIN * mean)
    };
    let end = |bin: usize| (bin + 1) as f64 * every;
    // Sums of decimal fractions miss bounds by less than this.
    let slack = every * 1e-6;
    let count = (0..means.first()?.len()).take_while(|&bin| end(bin) <= until + slack).count();
    let is_early = |bin: usize| end(bin) - FAIR_SECONDS < from - slack;
    let fair = (0..count).rev().find(|&bin| !is_fair(bin) || is_early(bin)).map_or(0, |bin| bin + 1);
    (fair < count).then(|| end(fair) - from)
}

/// Returns Jain's index of fairness: 1 if all get the same, 1/n if one of n gets all. `None` without a
/// value, and if nobody got anything.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Averages each value with those before it: `bins` in all, or as many as there are.
pub fn trailing_mean(values: &[f64], bins: usize) -> Vec<f64> {
    let mean = |end: usize| {
        let window = &values[(end + 1).saturating_sub(bins)..=end];
        window.iter().sum::<f64>() / window.len() as f64
    };
    (0..values.len()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two flows in bins of 0.1 s: unequal for `unfair` seconds, then equal for `fair` seconds.
    fn flows(unfair: usize, fair: usize) -> Vec<Vec<f64>> {
        [3.0, 1.0].map(|first| [vec![first; unfair * 10], vec![2.0; fair * 10]].concat()).to_vec()
    }

    #[test]
    fn a_share_is_fair_once_it_stays_near_the_mean() {
        // The mean of the last second enters 2 +- 0.4 when less than two fifths of it are from before.
        let time = time_to_fair_share(&flows(3, 5), 0.1, 0.0, f64::INFINITY).expect("they share");
        assert!((time - 3.6).abs() < 1e-9, "{time}");
        let time = time_to_fair_share(&flows(3, 5), 0.1, 2.0, f64::INFINITY).expect("they share");
        assert!((time - 1.6).abs() < 1e-9, "{time}");
    }

    #[test]
    fn what_comes_before_the_last_flow_and_after_the_first_end_does_not_count() {
        let mut flows = flows(0, 8);
        // A whole second after the start is looked at, never a part of one.
        let time = time_to_fair_share(&flows, 0.1, 4.0, f64::INFINITY).expect("they share");
        assert!((time - 1.0).abs() < 1e-9, "{time}");
        flows[1].truncate(60);
        flows[1].resize(80, 0.0);
        assert_eq!(time_to_fair_share(&flows, 0.1, 4.0, f64::INFINITY), None);
        let time = time_to_fair_share(&flows, 0.1, 4.0, 6.0).expect("they share until one ends");
        assert!((time - 1.0).abs() < 1e-9, "{time}");
        assert_eq!(time_to_fair_share(&flows, 0.1, 4.0, 4.5), None);
    }

    #[test]
    fn nobody_shares_nothing() {
        assert_eq!(time_to_fair_share(&[], 0.1, 0.0, 1.0), None);
        assert_eq!(time_to_fair_share(&[vec![0.0; 50], vec![0.0; 50]], 0.1, 0.0, 5.0), None);
        assert_eq!(time_to_fair_share(&flows(9, 0), 0.1, 0.0, f64::INFINITY), None);
    }
}
