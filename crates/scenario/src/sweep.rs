//! Many points of one scenario: all cores, one file for each point, and only what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use congestlab_core::units::Duration;
use congestlab_sim::outcome::Outcome;
use rayon::prelude::*;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value as Json, json};
use thiserror::Error;

use crate::claims::{Observation, distinct};
use crate::decode::{At, Language, wrong_type};
use crate::diagnostic::{Diagnostics, Findings, choices};
use crate::file;
use crate::metric::{Reading, Series};
use crate::origin::run_name;
pub use crate::origin::settings_json;
use crate::path::{self, Step};
use crate::result::{Meta, RunResult};
use crate::seeds::SEED;
pub use crate::seeds::SEEDS_MIN;
use crate::tree::{Entry, Node, Table, Value, inline};
use crate::{Measure, Scenario, store};

/// More points than anybody waits for.
const POINTS_MAX: usize = 100_000;

/// Lists of values by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axes(pub(crate) Vec<Axis>);

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) path: At<String>,
    pub(crate) values: Vec<Node>,
    /// Its values go with those of another axis.
    pub(crate) is_paired: bool,
}

impl Axis {
    /// The axes of a file, zipped ones first.
    pub(crate) fn all(sweep: &file::Sweep) -> Vec<Self> {
        let list = |axes: &Option<At<Axes>>| axes.as_ref().map_or(Vec::new(), |axes| axes.value.0.clone());
        let (mut zip, grid) = (list(&sweep.zip), list(&sweep.grid));
        let is_paired = zip.len() > 1;
        zip.iter_mut().for_each(|axis| axis.is_paired = is_paired);
        zip.into_iter().chain(grid).collect()
    }

    /// The longest run that it gives, ns.
    pub(crate) fn duration(&self) -> Option<u64> {
        let durations = self.values.iter().filter_map(|node| match &node.value {
            Value::String(text) => text.parse::<Duration>().ok().map(|span| span.0),
            _ => None,
        });
        durations.max().filter(|_| self.path.value == "run.duration")
    }

    /// The most flows that it gives a group; without a bound if it replaces more than their count.
    pub(crate) fn count_of(&self, group: &str) -> u64 {
        let path = [Step::Key("flows".into()), Step::Key(group.into()), Step::Key("count".into())];
        match path::parse(&self.path.value) {
            Ok(steps) if path::meets(&steps, &path) => {
                let counts = self.values.iter().filter_map(|node| match node.value {
                    Value::Integer(count) => u64::try_from(count).ok(),
                    _ => None,
                });
                counts.max().unwrap_or(0)
            }
            Ok(steps) if steps.len() < path.len() && path::meets(&steps, &path[..steps.len()]) => u64::MAX,
            _ => 0,
        }
    }
}

impl Axes {
    /// Refuses, under the name of `key`, paths and values that the sweep does not have.
    pub(crate) fn check(&self, key: &str, swept: &[Axis], code: &'static str, findings: &mut Findings) {
        for axis in &self.0 {
            let path = &axis.path.value;
            let Some(varied) = swept.iter().find(|other| other.path.value == *path) else {
                let help = choices(path, swept.iter().map(|axis| axis.path.value.as_str()));
                let message = format!("`{key}` names `{path}`, which the sweep does not vary");
                findings.error(code, axis.path.span, message, help);
                continue;
            };
            let known: BTreeSet<String> = varied.values.iter().map(|other| inline(&other.value)).collect();
            if let Some(value) = axis.values.iter().find(|value| !known.contains(&inline(&value.value))) {
                let message = format!("`{key}` has {}, which is no value of `{path}`", inline(&value.value));
                findings.error(code, value.span, message, "write a value as the sweep does");
            }
        }
    }

    /// The point has one of the values of each.
    pub(crate) fn has(&self, point: &Observation) -> bool {
        self.0.iter().all(|axis| {
            let setting = point.setting(&axis.path.value);
            axis.values.iter().any(|value| setting == Some(inline(&value.value).as_str()))
        })
    }
}

impl Language for Axes {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Value::Table(Table(entries)) = &node.value else {
            let help = "such as { \"links.bottleneck.rate\" = [\"10 Mbit/s\", \"1 Gbit/s\"], \"run.seed\" = [1, 2] }";
            wrong_type(node, "a table of lists", help, findings);
            return None;
        };
        let mut axes = Vec::new();
        for Entry { key, span, node } in entries {
            match &node.value {
                Value::Array(values) if !values.is_empty() => {
                    let path = At { value: key.clone(), span: *span };
                    axes.push(Axis { path, values: values.clone(), is_paired: false });
                }
                Value::Array(_) => {
                    let message = format!("`{}` has no value for `{key}`", findings.place());
                    findings.error("scenario::sweep", node.span, message, "a list of at least one value");
                }
                _ => wrong_type(node, "a list", "a list of values, such as [1, 2, 3]", findings),
            }
        }
        Some(Self(axes))
    }

    fn encode(&self) -> Value {
        Value::table(self.0.iter().map(|axis| (axis.path.value.clone(), Value::Array(axis.values.clone()))))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": { "type": "array", "minItems": 1 } })
    }
}

/// What a single run ignores (docs/design/contract.md 1), and how it is shown.
const PLAN: [&str; 3] = ["sweep", "claims", "figure"];

/// The file without sweep, claims and figure.
pub(crate) fn without_plan(root: &Node) -> Node {
    let Value::Table(Table(entries)) = &root.value else { return root.clone() };
    let run = entries.iter().filter(|entry| !PLAN.contains(&entry.key.as_str()));
    Node { span: root.span, value: Value::Table(Table(run.cloned().collect())) }
}

/// Takes axes out of the sweep, out of what lines choose, and with them the claims that choose by them.
pub(crate) fn drop_axes(root: &mut Node, is_out: &dyn Fn(&str) -> bool) {
    const AXES: [&str; 3] = ["grid", "zip", "only"];
    let chooses = |claim: &Node| match &claim.value {
        Value::Table(Table(entries)) => entries.iter().any(|entry| match &entry.node.value {
            Value::Table(Table(axes)) => axes.iter().any(|axis| is_out(&axis.key)),
            _ => false,
        }),
        _ => false,
    };
    match &mut root.value {
        Value::Table(Table(entries)) => entries.retain_mut(|entry| {
            if let ("claims", Value::Array(claims)) = (entry.key.as_str(), &mut entry.node.value) {
                claims.retain(|claim| !chooses(claim));
                return !claims.is_empty();
            }
            if let (true, Value::Table(Table(axes))) =
                (AXES.contains(&entry.key.as_str()), &mut entry.node.value)
            {
                axes.retain(|axis| !is_out(&axis.key));
                return !axes.is_empty();
            }
            if ["sweep", "figure", "lines"].contains(&entry.key.as_str()) {
                drop_axes(&mut entry.node, is_out);
            }
            !matches!(&entry.node.value, Value::Table(Table(axes)) if entry.key == "sweep" && axes.is_empty())
        }),
        Value::Array(nodes) => nodes.iter_mut().for_each(|node| drop_axes(node, is_out)),
        _ => {}
    }
}

/// The points of a scenario.
#[derive(Clone, Debug)]
pub struct Sweep {
    axes: Vec<String>,
    /// Path, values; zipped axes first.
    varied: Vec<(Vec<Step>, Vec<Node>)>,
    /// How many of them are zipped, and how long their lists are.
    zipped: (usize, usize),
    /// Laid out when they are first asked for: there can be many, and a single run has no use for them.
    points: OnceLock<Vec<Point>>,
}

/// One point.
#[derive(Clone, Debug)]
pub struct Point {
    /// Position in the sweep, from 0.
    pub index: usize,
    /// `links.bottleneck.rate = "10 Mbit/s", run.seed = 1`.
    pub label: String,
    /// Path, and value as TOML, of every axis.
    pub settings: Vec<(String, String)>,
    nodes: Vec<(Vec<Step>, Node)>,
}

impl Sweep {
    /// The paths that vary.
    pub fn axes(&self) -> &[String] {
        &self.axes
    }

    /// How many values `run.seed` has.
    pub fn seeds(&self) -> usize {
        match self.axes.iter().position(|axis| axis == SEED) {
            // Zipped with something else, each point has one.
            Some(index) if index < self.zipped.0 && self.zipped.0 > 1 => 1,
            Some(index) => distinct(&self.varied[index].1),
            None => 1,
        }
    }

    /// The points, the last axis of the grid fastest; zipped axes slowest.
    pub fn points(&self) -> &[Point] {
        self.points.get_or_init(|| {
            let (zipped, length) = self.zipped;
            let count =
                self.varied[zipped..].iter().map(|(_, values)| values.len()).product::<usize>() * length;
            (0..count).map(|index| self.point(index)).collect()
        })
    }

    fn point(&self, index: usize) -> Point {
        let zipped = self.zipped.0;
        let mut rest = index;
        let mut chosen = vec![0; self.varied.len()];
        for (position, (_, values)) in self.varied.iter().enumerate().skip(zipped).rev() {
            chosen[position] = rest % values.len();
            rest /= values.len();
        }
        chosen[..zipped].fill(rest);
        let nodes: Vec<(Vec<Step>, Node)> = self
            .varied
            .iter()
            .zip(chosen)
            .map(|((steps, values), chosen)| (steps.clone(), values[chosen].clone()))
            .collect();
        let settings: Vec<(String, String)> = self
            .axes
            .iter()
            .zip(&nodes)
            .map(|(path, (_, node))| (path.clone(), inline(&node.value)))
            .collect();
        let label: Vec<String> = settings.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        Point { index, label: label.join(", "), settings, nodes }
    }

    /// Checks that the lists make points.
    pub(crate) fn new(sweep: &At<file::Sweep>, findings: &mut Findings) -> Option<Self> {
        let all = Axis::all(&sweep.value);
        let (zip, grid) = all.split_at(sweep.value.zip.as_ref().map_or(0, |axes| axes.value.0.len()));
        if zip.is_empty() && grid.is_empty() {
            let help = "add grid = { ... } or zip = { ... }";
            findings.error("scenario::sweep", sweep.span, "`sweep` varies nothing", help);
            return None;
        }
        let length = zip.first().map_or(1, |axis| axis.values.len());
        if let Some(axis) = zip.iter().find(|axis| axis.values.len() != length) {
            let message = format!(
                "`sweep.zip` pairs {length} values with {} of `{}`",
                axis.values.len(),
                axis.path.value
            );
            findings.error("scenario::sweep", axis.path.span, message, "zipped lists are equally long");
            return None;
        }
        let count = grid.iter().try_fold(length, |count, axis| count.checked_mul(axis.values.len()));
        if count.is_none_or(|count| count > POINTS_MAX) {
            let help = format!("allowed: up to {POINTS_MAX}");
            findings.error("scenario::sweep", sweep.span, "`sweep` has too many points", help);
            return None;
        }
        let (mut axes, mut varied) = (Vec::new(), Vec::new());
        let zipped = (zip.len(), length);
        for Axis { path, values, .. } in all {
            let refused = match path::parse(&path.value) {
                Ok(_) if axes.contains(&path.value) => format!("`{}` is swept twice", path.value),
                Ok(steps) if matches!(&steps[..], [Step::Key(key), ..] if PLAN.contains(&key.as_str())) => {
                    format!("`{}` is no part of a run", path.value)
                }
                Ok(steps) => {
                    axes.push(path.value);
                    varied.push((steps, values));
                    continue;
                }
                Err(error) => error.message,
            };
            findings.error(
                "scenario::sweep",
                path.span,
                refused,
                "each path once, such as links.bottleneck.rate",
            );
            return None;
        }
        Some(Self { axes, varied, zipped, points: OnceLock::new() })
    }
}

impl Point {
    /// Puts the point's values into a file.
    pub(crate) fn apply(&self, root: &mut Node, findings: &mut Findings) {
        for ((steps, node), (path, _)) in self.nodes.iter().zip(&self.settings) {
            crate::tree::replace(root, path, steps, node.clone(), node.span, findings);
        }
    }
}

/// Why a sweep ended early.
#[derive(Debug, Error)]
pub enum SweepError {
    /// A point is no valid scenario.
    #[error("{0}")]
    Scenario(Diagnostics),
    /// A file of the sweep can not be written.
    #[error("can not write {path}: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Somebody stopped it. What is complete is kept.
    #[error("interrupted with {done} of {all} points complete")]
    Interrupted {
        /// Complete points.
        done: usize,
        /// All points.
        all: usize,
    },
}

/// What a sweep tells while it goes.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// This point was complete before.
    Kept(&'a Point),
    /// This point begins.
    Started(&'a Point),
    /// This point is complete.
    Finished(&'a Point),
    /// This point says in other words what one that is complete says.
    Equal(&'a Point),
}

/// (s, value), in the order of time.
pub type TimeSeries = Vec<(f64, f64)>;

/// A complete point.
#[derive(Clone, Debug)]
pub struct PointResult {
    /// Position in the sweep.
    pub index: usize,
    /// `<scenario>-<seed>-<hash>`, as the folder of the same run is called.
    pub run: String,
    /// Path, and value as TOML, of every axis.
    pub settings: Vec<(String, String)>,
    /// The result object of docs/design/contract.md 5.
    pub result: Json,
    /// What the metrics of the claims and of the figure gave.
    pub readings: Vec<(String, Reading)>,
    /// The series of a figure over time, by metric: (s, value) for each flow.
    pub curves: Vec<(String, Vec<TimeSeries>)>,
}

impl PointResult {
    /// As claims see it.
    pub fn observation(&self) -> Observation {
        Observation { settings: self.settings.clone(), readings: self.readings.clone() }
    }

    fn to_json(&self) -> Json {
        let settings = settings_json(&self.settings);
        let metrics: serde_json::Map<String, Json> =
            self.readings.iter().map(|(text, reading)| (text.clone(), reading.to_json())).collect();
        let curves: serde_json::Map<String, Json> =
            self.curves.iter().map(|(text, curves)| (text.clone(), json!(curves))).collect();
        json!({
            "run": self.run,
            "settings": settings,
            "metrics": metrics,
            "curves": curves,
            "result": self.result,
        })
    }
}

/// Writes what was read at each point of a scenario as Parquet: `settings` (a JSON object, without the seed), `seed`,
/// `metric`, `index` in a list, `value`; `run`, `scenario`, `label`, and a column for each setting.
///
/// # Errors
/// The file can not be written.
pub fn write_points(path: &Path, scenario: &str, points: &[PointResult]) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    crate::tables::write_points(&mut bytes, scenario, points)?;
    store::write_atomically(path, &bytes)
}

/// How to run a sweep.
pub struct Options<'a> {
    /// One file for each point goes here.
    pub folder: &'a Path,
    /// Names the code: results of other code are not taken for complete.
    pub version: &'a str,
    /// Runs at once.
    pub threads: usize,
    /// Set by somebody who wants it to end; running points are given up.
    pub stop: &'a AtomicBool,
}

/// Simulates one point.
pub type Simulate<'a> = dyn Fn(&Scenario, &congestlab_sim::model::Model) -> (Outcome, Meta) + Sync + 'a;

/// Runs the points that are missing in the folder; returns all, in order. A scenario without
/// `[sweep]` has one point.
///
/// # Errors
/// [`SweepError`]; complete points stay on disk.
pub fn run(
    scenario: &Scenario,
    options: &Options<'_>,
    simulate: &Simulate<'_>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Vec<PointResult>, SweepError> {
    let single = [Point { index: 0, label: String::new(), settings: Vec::new(), nodes: Vec::new() }];
    let points = scenario.sweep().map_or(&single[..], Sweep::points);
    scenario.check().map_err(SweepError::Scenario)?;
    let folder = options.folder;
    let mut tasks: Vec<Task<'_>> = Vec::new();
    let mut by_path = BTreeMap::new();
    // All are read before the first runs, so that a mistake in the last costs no time. None is kept: they are many.
    for point in points {
        if options.stop.load(Ordering::Relaxed) {
            return Err(SweepError::Interrupted { done: 0, all: points.len() });
        }
        let scenario = scenario.point(point).map_err(SweepError::Scenario)?;
        let hash = scenario.hash(options.version);
        let path = folder.join(format!("{hash}.json"));
        let task = *by_path.entry(path.clone()).or_insert(tasks.len());
        match tasks.get_mut(task) {
            Some(task) => task.equals.push(point),
            None => {
                let run = run_name(&scenario, &hash);
                tasks.push(Task { path, run, point, equals: Vec::new() });
            }
        }
    }
    fs::create_dir_all(folder).map_err(|error| SweepError::Write { path: folder.into(), error })?;
    let one = |task: Task<'_>| -> Result<Vec<PointResult>, SweepError> {
        let Task { path, run, point, equals } = task;
        if options.stop.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let scenario = scenario.point(point).map_err(SweepError::Scenario)?;
        let Some(done) = run_point(path, run, &scenario, point, simulate, progress)? else {
            return Ok(Vec::new());
        };
        let mut results = Vec::with_capacity(1 + equals.len());
        for equal in equals {
            progress(Progress::Equal(equal));
            results.push(PointResult {
                index: equal.index,
                settings: equal.settings.clone(),
                ..done.clone()
            });
        }
        results.push(done);
        Ok(results)
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.max(1)).build();
    let results: Vec<Result<Vec<PointResult>, SweepError>> = match pool {
        // One task at a time for each thread, in order.
        Ok(pool) => pool.install(|| tasks.into_par_iter().with_max_len(1).map(one).collect()),
        // A machine that gives no threads still has this one.
        Err(_) => tasks.into_iter().map(one).collect(),
    };
    let mut done: Vec<PointResult> =
        results.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    if done.len() < points.len() {
        return Err(SweepError::Interrupted { done: done.len(), all: points.len() });
    }
    done.sort_unstable_by_key(|result| result.index);
    Ok(done)
}

/// One run, and the points that it answers: several may say the same in other words.
struct Task<'a> {
    path: PathBuf,
    run: String,
    point: &'a Point,
    equals: Vec<&'a Point>,
}

/// Reads the point's result or makes it. `None`: somebody wants it to end.
fn run_point(
    path: PathBuf,
    run: String,
    scenario: &Scenario,
    point: &Point,
    simulate: &Simulate<'_>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Option<PointResult>, SweepError> {
    if let Some(kept) = read(&path, &run, point, scenario) {
        progress(Progress::Kept(point));
        return Ok(Some(kept));
    }
    progress(Progress::Started(point));
    let model = scenario.model(&Measure { series: scenario.wants_series(), events: false });
    let (outcome, meta) = simulate(scenario, &model);
    if !outcome.complete {
        return Ok(None);
    }
    let result = RunResult::new(scenario, &outcome, meta).to_json();
    let series = Series::new(&outcome, &model);
    let readings = scenario
        .metrics()
        .map(|metric| (metric.text().to_owned(), metric.read(&result, Some(&series))))
        .collect();
    let curves = scenario.curves().map(|metric| (metric.text().to_owned(), metric.curves(&series))).collect();
    let settings = point.settings.clone();
    let done = PointResult { index: point.index, run, settings, result, readings, curves };
    let text = store::pretty(&done.to_json());
    store::write_atomically(&path, text.as_bytes()).map_err(|error| SweepError::Write { path, error })?;
    progress(Progress::Finished(point));
    Ok(Some(done))
}

/// A point that is complete and answers all claims and the figure.
fn read(path: &Path, run: &str, point: &Point, scenario: &Scenario) -> Option<PointResult> {
    let stored: Json = serde_json::from_slice(&store::read_file(path, store::SUMMARY_MAX).ok()?).ok()?;
    let result = stored.get("result")?.clone();
    if result.get("complete") != Some(&Json::Bool(true)) {
        return None;
    }
    let kept = stored.get("metrics")?;
    let mut readings = Vec::new();
    for metric in scenario.metrics() {
        let reading = match kept.get(metric.text()) {
            Some(json) => Reading::from_json(json),
            None if metric.needs_series() => return None,
            None => metric.read(&result, None),
        };
        readings.push((metric.text().to_owned(), reading));
    }
    let mut curves = Vec::new();
    for metric in scenario.curves() {
        let kept = stored.get("curves")?.get(metric.text())?;
        curves.push((metric.text().to_owned(), serde_json::from_value(kept.clone()).ok()?));
    }
    let (run, settings) = (run.to_owned(), point.settings.clone());
    Some(PointResult { index: point.index, run, settings, result, readings, curves })
}
