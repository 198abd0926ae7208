//! The agreement of two runs, number by number: a simulation and real TCP, or any two runs of the same flows and links.
//!
//! [`crate::showing::diff`] asks whether two runs are the same and why not; two kinds of machine never give the same
//! run. Here each number has a tolerance. The order of the two runs changes no verdict.

use std::collections::BTreeMap;

use congestlab_core::units::Time;
use congestlab_net::port::FeedbackAt;
use congestlab_net::tcp::App;
use congestlab_sim::model::GroupKind;
use serde::Serialize;
use serde_json::Value as Json;

use crate::judging::fairness::{Life, convergence_s, trailing_mean};
use crate::judging::metric::Percent;
use crate::judging::sum;
pub use crate::judging::tolerances::Tolerance;
use crate::results::folder::{FolderError, RunFolder, SeriesRow};
use crate::results::tables::seconds;
use crate::showing::recording::FLOWS_DRAWN_MAX;

/// Measures of a difference, which do not depend on the order of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Distance of the values, as a share of their mean.
    Relative,
    /// Distance of the values.
    Absolute,
    /// The larger value as a multiple of the smaller one.
    Factor,
}

/// A quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Name among the tolerances.
    pub name: &'static str,
    /// Measure of its differences.
    pub measure: Measure,
    /// Largest difference that still agrees; `None`: it is shown, not judged.
    pub tolerance: Option<f64>,
    /// The key in the results.
    pub(crate) key: &'static str,
    /// What it is measured of.
    pub(crate) of: Of,
}

/// Elements that have quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Flows,
    Links,
    Run,
}

/// All quantities, with the tolerances that a live run of a scenario must keep.
pub const QUANTITIES: [Quantity; 8] = [
    Quantity::new("goodput", Of::Flows, "goodput_bps", Measure::Relative, Some(0.05)),
    Quantity::new("completion", Of::Flows, "completion_s", Measure::Relative, Some(0.1)),
    Quantity::new("rtt", Of::Flows, "rtt_mean_ms", Measure::Relative, None),
    Quantity::new("utilization", Of::Links, "utilization", Measure::Absolute, None),
    Quantity::new("queue", Of::Links, "queue_mean_packets", Measure::Absolute, Some(10.0)),
    Quantity::new("queue_p95", Of::Links, "queue_p95_packets", Measure::Absolute, None),
    Quantity::new("drops", Of::Links, "drops", Measure::Absolute, None),
    Quantity::new("convergence", Of::Run, "convergence_s", Measure::Factor, Some(1.5)),
];

impl Quantity {
    pub(crate) const fn new(
        name: &'static str,
        of: Of,
        key: &'static str,
        measure: Measure,
        tolerance: Option<f64>,
    ) -> Self {
        Self { name, measure, tolerance, key, of }
    }

    pub(crate) fn row(&self, metric: String, [one, other]: [Option<f64>; 2]) -> Row {
        let difference = one.zip(other).map(|(one, other)| self.measure.of(one, other));
        // Where both have nothing to measure there is nothing to judge.
        let is_judged = one.is_some() || other.is_some();
        let judged = self.tolerance.filter(|_| is_judged);
        let holds = judged.map(|tolerance| difference.is_some_and(|difference| difference <= tolerance));
        let (quantity, measure, allowed) = (self.name, self.measure, self.tolerance);
        Row { metric, quantity, one, other, measure, difference, allowed, holds }
    }
}

impl Measure {
    fn of(self, one: f64, other: f64) -> f64 {
        let distance = (one - other).abs();
        match self {
            Self::Absolute => distance,
            Self::Relative if distance == 0.0 => 0.0,
            Self::Relative => distance / (one.abs() + other.abs()) * 2.0,
            Self::Factor if distance == 0.0 => 1.0,
            Self::Factor => one.max(other) / one.min(other),
        }
    }
}

/// One number of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The metric, as claims take it; `convergence_s` is read from the series.
    pub metric: String,
    /// Name of its tolerance.
    pub quantity: &'static str,
    /// Value in the first run; `None` if there was nothing to measure.
    pub one: Option<f64>,
    /// Value in the other run; `None` if there was nothing to measure.
    pub other: Option<f64>,
    /// Measure of the difference.
    pub measure: Measure,
    /// The difference; `None` if a value is missing.
    pub difference: Option<f64>,
    /// Largest difference that still agrees.
    pub allowed: Option<f64>,
    /// True if the values agree; `None` where there is no tolerance, or no value in either run.
    pub holds: Option<bool>,
}

/// The result of [`compare`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// True if all rows with a tolerance keep it.
    pub holds: bool,
    /// All numbers, flows first.
    pub rows: Vec<Row>,
    /// Reasons for which the comparison means less.
    pub warnings: Vec<String>,
}

/// The reason for which two runs can not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The folder of a run can not be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The runs have not the same flows and links.
    #[error("the runs have not the same flows and links: {0}")]
    Different(String),
}

/// Returns what the scenarios of a simulation and of a run of real packets allow between them: the larger where they
/// differ. Of two of one kind it is nothing.
pub fn tolerances<'a>(runs: [&'a RunFolder; 2]) -> Vec<Tolerance<'a>> {
    let mut all: Vec<Tolerance<'a>> = Vec::new();
    if is_live(runs[0]) == is_live(runs[1]) {
        return all;
    }
    for told in runs.into_iter().flat_map(|run| run.scenario().tolerances()) {
        match all.iter_mut().find(|known| known.of == told.of) {
            Some(known) if known.at_most.is_none() => {}
            Some(known) if told.at_most.is_some_and(|at_most| Some(at_most) <= known.at_most) => {}
            Some(known) => *known = told,
            None => all.push(told),
        }
    }
    all
}

/// Returns true if the run is one of real packets.
pub fn is_live(run: &RunFolder) -> bool {
    !run.summary()["live"].is_null()
}

/// Compares two runs of the same flows and links.
///
/// # Errors
/// If the runs have not the same flows and links, or a table is damaged; says which.
pub fn compare(runs: [&RunFolder; 2], quantities: &[Quantity]) -> Result<Comparison, CompareError> {
    require_same(runs)?;
    let mut rows = Vec::new();
    let of = |of: Of| quantities.iter().filter(move |quantity| quantity.of == of);
    for (name, shape) in elements(runs[0], "flows") {
        // The goodput of a flow that ends is its size over its completion time, which is compared in its place.
        let is_finite = runs.into_iter().any(|run| is_finite(run, name));
        let is_apt =
            |quantity: &&Quantity| quantity.key != if is_finite { "goodput_bps" } else { "completion_s" };
        if let Some(goodput) = of(Of::Flows).find(|quantity| quantity.key == "goodput_bps" && is_finite) {
            let sum = |run: &RunFolder| sum::goodput(run.summary(), [&run.summary()["flows"][name]]);
            rows.push(goodput.row(format!("sum(flows.{name}.goodput_bps)"), runs.map(sum)));
        }
        let Json::Array(flows) = shape else {
            // More flows than the results list: their mean.
            for quantity in of(Of::Flows).filter(is_apt) {
                let mean = |run: &RunFolder| run.summary()["flows"][name][quantity.key]["mean"].as_f64();
                rows.push(quantity.row(format!("mean(flows.{name}.{})", quantity.key), runs.map(mean)));
            }
            continue;
        };
        for quantity in of(Of::Flows).filter(is_apt) {
            if quantity.key == "completion_s" && flows.len() > COMPLETIONS_MAX {
                let each = runs.map(|run| completions(&run.summary()["flows"][name]));
                for (fold, of) in COMPLETIONS {
                    let values = [of(&each[0]), of(&each[1])];
                    rows.push(quantity.row(format!("{fold}(flows.{name}.completion_s)"), values));
                }
                continue;
            }
            for index in 0..flows.len() {
                let value = |run: &RunFolder| run.summary()["flows"][name][index][quantity.key].as_f64();
                rows.push(quantity.row(format!("flows.{name}[{index}].{}", quantity.key), runs.map(value)));
            }
        }
    }
    for (name, _) in elements(runs[0], "links") {
        for quantity in of(Of::Links) {
            let value = |run: &RunFolder| run.summary()["links"][name][quantity.key].as_f64();
            let shown = if name.contains('.') { format!("\"{name}\"") } else { name.clone() };
            rows.push(quantity.row(format!("links.{shown}.{}", quantity.key), runs.map(value)));
        }
    }
    for quantity in of(Of::Run) {
        rows.push(quantity.row(quantity.key.into(), [convergence(runs[0])?, convergence(runs[1])?]));
    }
    let holds = rows.iter().all(|row| row.holds != Some(false));
    Ok(Comparison { holds, rows, warnings: warnings(runs) })
}

/// Finite flows of a group whose completion times are compared one by one; of more, the distribution is.
const COMPLETIONS_MAX: usize = 12;

/// A number made of the completion times of a group, and its name.
type Statistic = (&'static str, fn(&[f64]) -> Option<f64>);

/// Statistics of completion times that are compared.
const COMPLETIONS: [Statistic; 3] = [
    ("mean", |times| Some(times.iter().sum::<f64>() / times.len() as f64).filter(|mean| mean.is_finite())),
    ("p50", |times| Percent::whole(50).of(times.to_vec()).filter(|time| time.is_finite())),
    ("p95", |times| Percent::whole(95).of(times.to_vec()).filter(|time| time.is_finite())),
];

/// Completion times of the flows of a group; infinite if a flow does not complete.
fn completions(flows: &Json) -> Vec<f64> {
    let flows = flows.as_array().into_iter().flatten();
    flows.map(|flow| flow["completion_s"].as_f64().unwrap_or(f64::INFINITY)).collect()
}

/// Returns true if the flows of a group have a size, and are not stopped before.
fn is_finite(run: &RunFolder, name: &str) -> bool {
    let group = run.scenario().base_model().groups.iter().find(|group| group.name == name);
    group.is_some_and(|group| match &group.kind {
        GroupKind::Tcp(config) if group.stop == Time::NEVER => {
            !matches!(config.app, App::Endless | App::Bursts { total: None, .. })
        }
        _ => false,
    })
}

/// Names and results of flows or links, in the order of the file.
pub(crate) fn elements<'a>(run: &'a RunFolder, kind: &str) -> impl Iterator<Item = (&'a String, &'a Json)> {
    run.summary()[kind].as_object().into_iter().flatten()
}

fn require_same(runs: [&RunFolder; 2]) -> Result<(), CompareError> {
    let mut missing = Vec::new();
    for (run, other) in [(runs[0], runs[1]), (runs[1], runs[0])] {
        let place = run.path().display();
        for kind in ["flows", "links"] {
            for (name, there) in elements(other, kind) {
                let here = &run.summary()[kind][name];
                let count = |of: &Json| match of {
                    Json::Array(flows) => flows.len() as u64,
                    summary => summary["count"].as_u64().unwrap_or(0),
                };
                if here.is_null() {
                    missing.push(format!("{place} has no {kind}.{name}"));
                } else if kind == "flows" && count(here) < count(there) {
                    let (here, there) = (count(here), count(there));
                    missing.push(format!("{place} has {here} flows of {there} in flows.{name}"));
                }
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(CompareError::Different(missing.join(", "))) }
}

fn warnings(runs: [&RunFolder; 2]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    if runs.into_iter().any(is_live) {
        warnings = runs.into_iter().flat_map(doubts).collect();
    }
    let [one, other] = runs.map(|run| run.scenario().base_model());
    if (one.warmup, one.duration) != (other.warmup, other.duration) {
        warnings.push("the runs are measured over different times".into());
    }
    warnings
}

/// Returns the reasons for which a run means less beside real packets: a law that saw them depart, a busy machine.
pub(crate) fn doubts(run: &RunFolder) -> Vec<String> {
    let path = run.path().display();
    if is_live(run) {
        let live = &run.summary()["live"];
        let busy = format!("the machine was too busy for {path}: run it again");
        let flows = live["flows"].as_object().into_iter().flatten();
        let fallen = flows.filter_map(|(name, flow)| {
            let count = flow["xcp"]["fallbacks_loss"].as_u64().filter(|count| *count > 0)?;
            Some(format!("flows.{name} in {path} fell back to CUBIC after losses, {count} in all: a simulated flow does not"))
        });
        return (live["trustworthy"] == false).then_some(busy).into_iter().chain(fallen).collect();
    }
    let links = run.scenario().base_model().links.iter();
    let late = links.filter(|link| link.port.law.is_some() && link.port.feedback_at == FeedbackAt::Departure);
    let told = late.map(|link| {
        format!(
            "the law of {} in {path} saw packets depart, a kernel's sees them arrive: simulate with \
             feedback_at = \"enqueue\"",
            link.name
        )
    });
    told.collect()
}

/// The convergence time of all flows of a run, s.
pub(crate) fn convergence(run: &RunFolder) -> Result<Option<f64>, FolderError> {
    // More flows than the results list are too many to look at one by one.
    let listed: Option<Vec<&Vec<Json>>> = elements(run, "flows").map(|(_, flows)| flows.as_array()).collect();
    if listed.is_none() {
        return Ok(None);
    }
    let Some(every) = run.scenario().base_model().sample_every.map(seconds) else { return Ok(None) };
    let bins = (seconds(run.scenario().base_model().duration) / every).ceil().max(0.0) as usize;
    let mut goodputs: BTreeMap<(String, u32), Vec<f64>> = BTreeMap::new();
    run.flow_series(|row: SeriesRow<'_>| {
        if let ("goodput_bps", Some(index)) = (row.metric, row.index) {
            let flow = goodputs.entry((row.element.into(), index)).or_insert_with(|| vec![0.0; bins]);
            // A bin ends at its time, which is rounded.
            let bin = (row.t_s / every - 1e-6).max(0.0) as usize;
            if let Some(value) = flow.get_mut(bin) {
                *value = row.value;
            }
        }
    })?;
    let lives = goodputs.into_iter().map(|((name, index), goodputs)| {
        let time = |key: &str| run.summary()["flows"][&name][index as usize][key].as_f64();
        Life::new(time("start_s").unwrap_or(0.0), time("stop_s"), time("completion_s"), goodputs)
    });
    Ok(convergence_s(&lives.collect::<Vec<_>>(), every))
}

/// One line of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name of the flow or link.
    pub name: String,
    /// Time in seconds and value.
    pub points: Vec<(f64, f64)>,
}

/// The lines that are drawn of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Rate of the data that arrived at each flow's receiver, bit/s.
    pub throughput: Vec<Curve>,
    /// Congestion window of each flow, packets.
    pub cwnd: Vec<Curve>,
    /// Queue of each link but reverse directions, packets.
    pub queue: Vec<Curve>,
    /// Time over which each value of the throughput is averaged, s.
    pub throughput_over_s: f64,
    /// Length of the run, s.
    pub duration_s: f64,
}

/// Throughput is drawn averaged over this share of the run: bins near the RTT show whose burst fell
/// into which bin, not who gets how much.
const SMOOTHING: f64 = 1.0 / 60.0;
/// Points of a curve, about twice the pixels of its chart.
pub(crate) const POINTS_MAX: usize = 1000;
/// Links that can be told apart.
const LINKS_DRAWN_MAX: usize = 8;

/// Reads the series of a run, for as many flows and links as can be told apart.
///
/// # Errors
/// If a table is damaged.
pub fn curves(run: &RunFolder) -> Result<Curves, FolderError> {
    let model = run.scenario().base_model();
    let flows = model.groups.iter().flat_map(|group| (0..group.count).map(|flow| (group.name.clone(), flow)));
    let flows: BTreeMap<(String, u32), usize> = flows.take(FLOWS_DRAWN_MAX).zip(0..).collect();
    let links = model.links.iter().map(|link| link.name.clone());
    let links = links.filter(|name| !name.ends_with(".reverse")).take(LINKS_DRAWN_MAX);
    let links: BTreeMap<String, usize> = links.zip(0..).collect();
    let empty = |mut names: Vec<(usize, String)>| -> Vec<Curve> {
        names.sort();
        names.into_iter().map(|(_, name)| Curve { name, points: Vec::new() }).collect()
    };
    let of_flows =
        || empty(flows.iter().map(|((name, flow), place)| (*place, format!("{name}[{flow}]"))).collect());
    let mut curves = Curves {
        throughput: of_flows(),
        cwnd: of_flows(),
        queue: empty(links.iter().map(|(name, place)| (*place, name.clone())).collect()),
        throughput_over_s: 0.0,
        duration_s: seconds(model.duration),
    };
    // A line ends with its flow.
    let every = model.sample_every.map_or(f64::INFINITY, seconds);
    let lives = |name: &str, flow: u32, t_s: f64| {
        let of = &run.summary()["flows"][name][flow as usize];
        let start = of["start_s"].as_f64().unwrap_or(0.0);
        start < t_s && of["completion_s"].as_f64().is_none_or(|after| t_s - every < start + after)
    };
    run.flow_series(|row| {
        let curve = match row.metric {
            "received_bps" => &mut curves.throughput,
            "cwnd_packets" => &mut curves.cwnd,
            _ => return,
        };
        let Some(index) = row.index else { return };
        if let Some(&place) = flows.get(&(row.element.into(), index))
            && lives(row.element, index, row.t_s)
        {
            curve[place].points.push((row.t_s, row.value));
        }
    })?;
    run.link_series(|row| {
        if let ("queue_packets", Some(&place)) = (row.metric, links.get(row.element)) {
            curves.queue[place].points.push((row.t_s, row.value));
        }
    })?;
    let bins = (curves.duration_s * SMOOTHING / every).round().max(1.0) as usize;
    curves.throughput_over_s = bins as f64 * every;
    for curve in &mut curves.throughput {
        let values: Vec<f64> = curve.points.iter().map(|(_, value)| *value).collect();
        let means = trailing_mean(&values, bins);
        curve.points.iter_mut().zip(means).for_each(|((_, value), mean)| *value = mean);
    }
    for curve in [&mut curves.throughput, &mut curves.cwnd, &mut curves.queue].into_iter().flatten() {
        curve.points = thinned(&curve.points, POINTS_MAX);
    }
    Ok(curves)
}

/// Neighbours as one point, their mean at the time of the last, so that at most `most` are left.
pub(crate) fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let together = points.len().div_ceil(most).max(1);
    let mean =
        |points: &[(f64, f64)]| points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64;
    points.chunks(together).map(|chunk| (chunk[chunk.len() - 1].0, mean(chunk))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Measure, QUANTITIES};
    use crate::judging::tolerances;

    #[test]
    fn scenarios_can_allow_differences_of_each_quantity() {
        let least = |measure| if measure == Measure::Factor { 1.0 } else { 0.0 };
        let all = QUANTITIES.map(|quantity| (quantity.name, least(quantity.measure)));
        assert_eq!(tolerances::QUANTITIES, all);
    }
}
