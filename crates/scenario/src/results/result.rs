//! Results in the form of docs/design/contract.md 5: one object, and tables of the series and events.

use std::io::{self, Write};
use std::iter;

use congestlab_net::packet::Picos;
use congestlab_sim::model::Model;
use congestlab_sim::outcome::{Element, FlowOutcome, FlowOutcomes, LinkOutcome, Outcome};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value as Json;

use crate::judging::fairness::jain;
use crate::judging::sum::together;
use crate::language::scenario::Scenario;
use crate::results::columns::each_number;

/// Version of the result object.
pub const SCHEMA: u32 = 1;
/// Number of metrics whose values over a million flows are in memory at once, 8 MB each: all would be more than the flows.
const COLUMNS: usize = 6;
/// Flows that follow each other with the same value of a metric count once: so often at most, or each flow counts.
const RUNS: usize = 4096;

/// Number of flows in a group above which `--flows summary` gives distributions.
pub const FLOWS_LISTED_MAX: usize = 10_000;

/// The facts that may differ between two equal runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Meta {
    /// Elapsed time, s.
    pub wall_s: f64,
    /// Processor time of all threads, s.
    pub cpu_s: f64,
    /// Name of the machine.
    pub host: String,
    /// Version of congestlab.
    pub version: String,
    /// Date of the run.
    pub date: String,
}

/// The result of a run. Serialises to the object of docs/design/contract.md 5.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult<'a> {
    /// Version of the object: [`SCHEMA`].
    pub schema: u32,
    /// False if the run was stopped early.
    pub complete: bool,
    /// Seed of every random stream.
    pub seed: u64,
    /// False if nothing random was drawn, so that the seed had no effect.
    pub seed_used: bool,
    /// Hash of all events, as sixteen hexadecimal digits: JSON's numbers are too short for it.
    pub fingerprint: String,
    /// Simulated time, s.
    pub duration_s: f64,
    /// Begin of the measured time, s: rates and counts are of `warmup_s..duration_s`.
    pub warmup_s: f64,
    /// Packets that entered a link.
    pub packet_hops: u64,
    /// Results of the links by name, in the order of the file.
    pub links: Ordered<&'a LinkOutcome>,
    /// Results of the flows by group, in the order of the file.
    pub flows: Ordered<Flows<'a>>,
    /// Jain's index of each group, over its flows with a goodput.
    pub jain: Ordered<Option<f64>>,
    /// Facts that only a run on real packets has; `None` for a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Json>,
    /// Facts of the machine.
    pub meta: Meta,
}

/// A map that keeps its order.
#[derive(Clone, Debug)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The flows of a group.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Flows<'a> {
    /// The flows one by one, in order; lent by the outcome, since there may be millions.
    Listed(&'a FlowOutcomes),
    /// Distributions over the flows.
    Summary(Summary),
}

/// Distributions over the flows of a large group.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Number of flows.
    pub count: usize,
    /// The distribution of each metric.
    #[serde(flatten)]
    pub metrics: Ordered<Distribution>,
}

/// The distribution of a metric over flows. Quantiles are values that occur (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of flows with a value.
    pub count: usize,
    /// Mean.
    pub mean: Option<f64>,
    /// Least value.
    pub min: Option<f64>,
    /// 5th percentile.
    pub p05: Option<f64>,
    /// 25th percentile.
    pub p25: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
}

impl Distribution {
    fn of(mut values: Vec<f64>) -> Self {
        // Values that are equal are the same, so their order is of no matter.
        values.sort_unstable_by(f64::total_cmp);
        Self::of_sorted(values.len(), values.iter().sum(), |rank| values.get(rank).copied())
    }

    /// The distribution of values that occur so often each.
    fn of_runs(mut runs: Vec<(f64, usize)>) -> Self {
        runs.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
        // In the order of all values, as sums of floats are.
        let sum = runs.iter().flat_map(|&(value, times)| iter::repeat_n(value, times)).sum();
        let mut count = 0;
        let ends: Vec<usize> = runs
            .iter()
            .map(|(_, times)| {
                count += times;
                count
            })
            .collect();
        Self::of_sorted(count, sum, |rank| {
            runs.get(ends.partition_point(|&end| end <= rank)).map(|run| run.0)
        })
    }

    /// `nth` is the value of a rank, counted from 0.
    fn of_sorted(count: usize, sum: f64, nth: impl Fn(usize) -> Option<f64>) -> Self {
        let quantile = |percent: usize| nth((count * percent).div_ceil(100).max(1) - 1);
        Self {
            count,
            mean: (count > 0).then(|| sum / count as f64),
            min: nth(0),
            p05: quantile(5),
            p25: quantile(25),
            p50: quantile(50),
            p75: quantile(75),
            p95: quantile(95),
            max: quantile(100),
        }
    }
}

/// Values one after the other, equal ones as one.
#[derive(Default)]
struct Runs {
    list: Vec<(f64, usize)>,
    /// They are more than [`RUNS`], and not kept.
    are_many: bool,
}

impl Runs {
    #[inline]
    fn add(&mut self, value: f64) {
        if let Some((last, times)) = self.list.last_mut()
            && last.to_bits() == value.to_bits()
        {
            *times += 1;
        } else if self.list.len() == RUNS {
            (self.list, self.are_many) = (Vec::new(), true);
        } else if !self.are_many {
            self.list.push((value, 1));
        }
    }
}

impl Summary {
    fn of(flows: &FlowOutcomes) -> Self {
        let mut names = Vec::new();
        each_number(&FlowOutcome::default(), &mut |_, name, _| names.push(name));
        // Many metrics are nearly the same of all flows: their runs are few, and one look at each flow finds them.
        let mut runs: Vec<Runs> = names.iter().map(|_| Runs::default()).collect();
        let mut count = 0;
        flows.each(|flow| {
            count += 1;
            each_number(flow, &mut |place, _, number| {
                if let (Some(runs), Some(number)) = (runs.get_mut(place), number) {
                    runs.add(number);
                }
            });
        });
        let mut metrics: Vec<Distribution> = Vec::with_capacity(names.len());
        let mut varied = Vec::new();
        for (place, runs) in runs.into_iter().enumerate() {
            varied.extend(runs.are_many.then_some(place));
            metrics.push(Distribution::of_runs(runs.list));
        }
        for places in varied.chunks(COLUMNS) {
            let mut columns: Vec<Vec<f64>> = places.iter().map(|_| Vec::with_capacity(count)).collect();
            flows.each(|flow| {
                each_number(flow, &mut |place, _, number| {
                    if let Some(column) = places.iter().position(|&wanted| wanted == place) {
                        columns[column].extend(number);
                    }
                });
            });
            for (&place, column) in places.iter().zip(columns) {
                metrics[place] = Distribution::of(column);
            }
        }
        let names = names.into_iter().map(str::to_owned);
        Self { count, metrics: Ordered(names.zip(metrics).collect()) }
    }
}

impl<'a> RunResult<'a> {
    /// Makes the result of a run of the scenario.
    pub fn new(scenario: &Scenario, outcome: &'a Outcome, meta: Meta) -> Self {
        let model = scenario.base_model();
        let groups = || model.groups.iter().map(|group| group.name.clone()).zip(&outcome.groups);
        let goodputs = |flows: &FlowOutcomes| {
            let mut found = Vec::new();
            flows.each(|flow| found.extend(flow.goodput_bps));
            found
        };
        Self {
            schema: SCHEMA,
            complete: outcome.complete,
            seed: model.seed,
            seed_used: outcome.seed_used,
            fingerprint: format!("{:016x}", outcome.fingerprint),
            duration_s: seconds(outcome.duration),
            warmup_s: seconds(model.warmup.min(outcome.duration)),
            packet_hops: outcome.packet_hops,
            links: Ordered(model.links.iter().map(|link| link.name.clone()).zip(&outcome.links).collect()),
            flows: Ordered(groups().map(|(name, flows)| (name, Flows::Listed(flows))).collect()),
            jain: Ordered(groups().map(|(name, flows)| (name, jain(&goodputs(flows)))).collect()),
            live: None,
            meta,
        }
    }

    /// Returns the goodput of a group together, bit/s: see [`together`](crate::sum::together).
    pub fn together(&self, flows: &FlowOutcomes) -> Option<f64> {
        let mut bytes = None;
        flows.each(|flow| bytes = Some(bytes.unwrap_or(0) + flow.arrived_bytes));
        together(bytes.map(|bytes: u64| bytes as f64 * 8.0), self.duration_s - self.warmup_s)
    }

    /// Returns the result for `--flows summary`: groups of more than [`FLOWS_LISTED_MAX`] flows become distributions.
    pub fn summarised(mut self) -> Self {
        for (_, flows) in &mut self.flows.0 {
            if let Flows::Listed(list) = flows
                && list.count() > FLOWS_LISTED_MAX
            {
                *flows = Flows::Summary(Summary::of(list));
            }
        }
        self
    }

    /// Returns the result as a JSON object.
    pub fn to_json(&self) -> Json {
        // No map in it has keys that are not strings, the only thing that fails.
        serde_json::to_value(self).unwrap_or(Json::Null)
    }
}

fn seconds(at: Picos) -> f64 {
    at as f64 / 1e12
}

/// Seconds without rounding: twelve decimals, trailing zeros left out.
fn write_seconds(out: &mut dyn Write, at: Picos) -> io::Result<()> {
    let (whole, fraction) = (at / 1_000_000_000_000, at % 1_000_000_000_000);
    if fraction == 0 {
        return write!(out, "{whole}");
    }
    let digits = format!("{fraction:012}");
    write!(out, "{whole}.{}", digits.trim_end_matches('0'))
}

/// A name as a CSV field (RFC 4180). One that a spreadsheet would take for a formula, and run, gets the apostrophe by
/// which spreadsheets know a text.
pub(crate) fn field(name: &str) -> String {
    if name.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return format!("\"'{}\"", name.replace('"', "\"\""));
    }
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.into()
    }
}

/// Names of a model's elements, as CSV fields.
pub(crate) struct Names {
    links: Vec<String>,
    groups: Vec<String>,
    /// First flow of each group, over the whole run.
    first: Vec<u32>,
}

impl Names {
    pub(crate) fn new(model: &Model) -> Self {
        let mut next = 0;
        let first = model.groups.iter().map(|group| {
            let first = next;
            next += group.count;
            first
        });
        Self {
            first: first.collect(),
            links: model.links.iter().map(|link| field(&link.name)).collect(),
            groups: model.groups.iter().map(|group| field(&group.name)).collect(),
        }
    }

    /// `element,index`; a link has no index, its clouds are numbered.
    fn write(&self, out: &mut dyn Write, element: Element) -> io::Result<()> {
        match element {
            Element::Link(link) => write!(out, "{},", self.links[link as usize]),
            Element::Cloud(link, number) => write!(out, "{},{number}", self.links[link as usize]),
            Element::Flow(group, flow) => write!(out, "{},{flow}", self.groups[group as usize]),
        }
    }

    /// Group, and number within it, of a flow over the whole run.
    pub(crate) fn group_of(&self, flow: u32) -> (usize, u32) {
        let group = self.first.partition_point(|&first| first <= flow).saturating_sub(1);
        (group, flow - self.first[group])
    }

    /// `flow,flow_index` of a flow over the whole run.
    fn write_flow(&self, out: &mut dyn Write, flow: Option<u32>) -> io::Result<()> {
        match flow.map(|flow| self.group_of(flow)) {
            None => write!(out, ","),
            Some((group, index)) => write!(out, "{},{index}", self.groups[group]),
        }
    }
}

/// Writes the time series as CSV: `t_s,element,index,metric,value`.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_series_csv(out: &mut dyn Write, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
    let names = Names::new(scenario.base_model());
    writeln!(out, "t_s,element,index,metric,value")?;
    for sample in &outcome.series {
        write_seconds(out, sample.at)?;
        write!(out, ",")?;
        names.write(out, sample.element)?;
        writeln!(out, ",{},{}", sample.metric, sample.value)?;
    }
    Ok(())
}

/// Writes the events as CSV: `t_s,element,index,event,detail,flow,flow_index,value`.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_events_csv(out: &mut dyn Write, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
    let names = Names::new(scenario.base_model());
    writeln!(out, "t_s,element,index,event,detail,flow,flow_index,value")?;
    for event in &outcome.events {
        write_seconds(out, event.at)?;
        write!(out, ",")?;
        names.write(out, event.element)?;
        write!(out, ",{},{},", event.kind, event.detail)?;
        names.write_flow(out, event.flow)?;
        writeln!(out, ",{}", event.value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also the last bit of the mean.
    #[test]
    fn runs_of_values_have_the_distribution_of_the_values() {
        for count in [0, 1, 2, 19, 1000] {
            let values: Vec<f64> = (0..count).map(|n| f64::from(n * n % 7) / 10.0 - 0.2).collect();
            let values: Vec<f64> = values.iter().flat_map(|&value| iter::repeat_n(value, 3)).collect();
            let mut runs = Runs::default();
            values.iter().for_each(|&value| runs.add(value));
            assert!(!runs.are_many && runs.list.len() <= count as usize);
            assert_eq!(Distribution::of_runs(runs.list), Distribution::of(values));
        }
    }

    #[test]
    fn values_that_differ_are_not_kept_as_runs() {
        let mut runs = Runs::default();
        (0..RUNS).for_each(|n| runs.add(n as f64));
        assert!(!runs.are_many && runs.list.len() == RUNS);
        (0..2).for_each(|_| runs.add(0.5));
        assert!(runs.are_many && runs.list.is_empty());
    }
}
