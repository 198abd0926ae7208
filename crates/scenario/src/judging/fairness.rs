//! The time from which flows share fairly, from their series.

/// Largest distance of a flow's goodput from the mean, as a share of the mean, that counts as fair.
pub const FAIR_WITHIN: f64 = 0.2;
/// Time over which goodputs are averaged for that, s.
pub const FAIR_SECONDS: f64 = 1.0;

/// Share of the time together that must be left when flows begin to share fairly. With less, chance decides whether they stay
/// fair.
pub const LEFT_MIN: f64 = 0.1;

/// The time in which a flow lives, and its goodput.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Life {
    /// Start of the flow, s.
    pub start_s: f64,
    /// Stop or completion of the flow, s; infinite if it has none.
    pub end_s: f64,
    /// Goodput in each bin since the beginning of the run, bit/s.
    pub goodputs: Vec<f64>,
}

impl Life {
    /// Creates the life of a flow from the times of its result: its completion counts from its start.
    pub fn new(start_s: f64, stop_s: Option<f64>, completion_s: Option<f64>, goodputs: Vec<f64>) -> Self {
        let completes = completion_s.map_or(f64::INFINITY, |after| start_s + after);
        Self { start_s, end_s: completes.min(stop_s.unwrap_or(f64::INFINITY)), goodputs }
    }
}

/// Returns the convergence time of flows, s: from the start of the last flow to the time from which each flow's goodput,
/// averaged over [`FAIR_SECONDS`], stays within [`FAIR_WITHIN`] of the mean of all until the first flow or the run ends.
/// `None` if that is not within the run, or with less than [`LEFT_MIN`] of the time left. Bins have `every` seconds.
pub fn convergence_s(flows: &[Life], every: f64) -> Option<f64> {
    let from = flows.iter().map(|flow| flow.start_s).fold(0.0, f64::max);
    let until = flows.iter().map(|flow| flow.end_s).fold(f64::INFINITY, f64::min);
    let bins = (FAIR_SECONDS / every).ceil().max(1.0) as usize;
    let means: Vec<Vec<f64>> = flows.iter().map(|flow| trailing_mean(&flow.goodputs, bins)).collect();
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
    let together = count as f64 * every - from;
    let took = end(fair) - from;
    (fair < count && took <= (1.0 - LEFT_MIN) * together + slack).then_some(took)
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

    /// Two flows in bins of 0.1 s, the last of which starts at `from`: unequal for `unfair` seconds, then equal for `fair`.
    fn flows(unfair: usize, fair: usize, from: f64) -> Vec<Life> {
        let flow = |(first, start_s)| {
            let goodputs = [vec![first; unfair * 10], vec![2.0; fair * 10]].concat();
            Life::new(start_s, None, None, goodputs)
        };
        [(3.0, 0.0), (1.0, from)].map(flow).to_vec()
    }

    fn time(flows: &[Life]) -> Option<f64> {
        convergence_s(flows, 0.1).map(|time| (time * 1e9).round() / 1e9)
    }

    #[test]
    fn a_share_is_fair_once_it_stays_near_the_mean() {
        // The mean of the last second enters 2 +- 0.4 when less than two fifths of it are from before.
        assert_eq!(time(&flows(3, 5, 0.0)), Some(3.6));
        assert_eq!(time(&flows(3, 5, 2.0)), Some(1.6));
    }

    #[test]
    fn the_time_together_counts_alone() {
        let mut flows = flows(0, 8, 4.0);
        // A whole second after the start is looked at, never a part of one.
        assert_eq!(time(&flows), Some(1.0));
        flows[1].goodputs.truncate(60);
        flows[1].goodputs.resize(80, 0.0);
        assert_eq!(time(&flows), None);
        let until = |end_s| [flows[0].clone(), Life { end_s, ..flows[1].clone() }];
        assert_eq!(time(&until(6.0)), Some(1.0), "they share until one ends");
        assert_eq!(time(&until(4.5)), None);
        assert_eq!(Life::new(4.0, None, Some(2.0), Vec::new()).end_s, 6.0);
        assert_eq!(Life::new(4.0, Some(5.0), Some(2.0), Vec::new()).end_s, 5.0);
    }

    /// One second longer decides nothing while flows happen to be fair at the end.
    #[test]
    fn flows_that_become_fair_at_the_end_have_not_converged() {
        assert_eq!(time(&flows(20, 1, 0.0)), None, "0.4 s of 21 s are left");
        assert_eq!(time(&flows(20, 2, 0.0)), None, "1.4 s of 22 s are left");
        assert_eq!(time(&flows(20, 3, 0.0)), Some(20.6), "2.4 s of 23 s are left");
    }

    #[test]
    fn no_flow_and_no_data_have_no_share() {
        assert_eq!(time(&[]), None);
        let silent = Life { end_s: f64::INFINITY, goodputs: vec![0.0; 50], ..Life::default() };
        assert_eq!(time(&[silent.clone(), silent]), None);
        assert_eq!(time(&flows(9, 0, 0.0)), None);
    }
}
