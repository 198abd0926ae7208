//! Many points of one scenario: all cores, what is complete is kept, and only what is missing is run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use congestlab_core::law::Protocol;
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
use crate::metric::{Metric, Reading, Series};
use crate::origin::run_name;
pub use crate::origin::settings_json;
use crate::path::{self, Step};
use crate::records::{self, Records};
use crate::result::{Meta, RunResult};
use crate::seeds::SEED;
pub use crate::seeds::SEEDS_MIN;
use crate::tree::{Entry, Node, Table, Value, inline};
use crate::{Measure, Scenario, store, table};

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
pub(crate) const PLAN: [&str; 3] = ["sweep", "claims", "figure"];

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

    /// Has these points instead.
    pub(crate) fn set_points(&mut self, mut points: Vec<Point>) {
        points.iter_mut().enumerate().for_each(|(index, point)| point.index = index);
        self.points = OnceLock::from(points);
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
    #[error("can not write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// What was kept can not be read.
    #[error("can not read {}: {error}", path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A folder has points, and none of this sweep.
    #[error("{} has points of another sweep, and none of this one", .0.display())]
    Foreign(PathBuf),
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
    /// So many points are to be complete in the end.
    Begun(usize),
    /// This point was complete before, or somebody else completes it.
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
    /// The law of each link and of each group, in the order of the result; `None` without one.
    pub(crate) laws: [Vec<Option<String>>; 2],
}

impl PointResult {
    /// As claims see it.
    pub fn observation(&self) -> Observation {
        Observation {
            is_random: self.is_random(),
            settings: self.settings.clone(),
            readings: self.readings.clone(),
        }
    }

    /// The law of all that a metric reads, if that is one: of flows theirs, of links what the flows of the run have. A protocol
    /// of links alone, as P-XCP, is told by them.
    pub(crate) fn law_of(&self, metric: &Metric) -> Option<String> {
        fn one<'a>(mut laws: impl Iterator<Item = &'a Option<String>>) -> Option<&'a str> {
            let first = laws.next()?.as_deref()?;
            laws.all(|law| law.as_deref() == Some(first)).then_some(first)
        }
        let [of_links, of_flows] = &self.laws;
        let mut with_law = of_links.iter().filter(|law| law.is_some()).peekable();
        let of_link = with_law.peek().is_some().then(|| one(with_law)).flatten();
        let is_of_links = |law: &&str| Protocol::of(law).is_some_and(|protocol| protocol.sender.is_none());
        if let Some(law) = of_link.filter(is_of_links) {
            return Some(law.to_owned());
        }
        let place = |name: &str| self.result["flows"].as_object()?.keys().position(|other| other == name);
        let groups: Vec<&str> = metric
            .reads()
            .filter(|(table, name, _)| *table == "flows" && *name != "*")
            .map(|(_, name, _)| name)
            .collect();
        if groups.is_empty() {
            return one(of_flows.iter()).map(str::to_owned);
        }
        let laws = groups.iter().map(|name| of_flows.get(place(name)?)).collect::<Option<Vec<_>>>()?;
        one(laws.into_iter()).map(str::to_owned)
    }

    /// Something was drawn by its seed. What does not say is taken for what it is called: a run of its seed.
    pub(crate) fn is_random(&self) -> bool {
        self.result["seed_used"] != false
    }

    /// What is kept of it: all but its place in the sweep, which another sweep has in another place.
    fn to_record(&self) -> Json {
        let metrics: serde_json::Map<String, Json> =
            self.readings.iter().map(|(text, reading)| (text.clone(), reading.to_json())).collect();
        let curves: serde_json::Map<String, Json> =
            self.curves.iter().map(|(text, curves)| (text.clone(), json!(curves))).collect();
        json!({ "metrics": metrics, "curves": curves, "laws": self.laws, "result": folded(&self.result) })
    }
}

/// The result with each group of flows as a table of columns: keys are there once, and not for each flow.
fn folded(result: &Json) -> Json {
    let mut result = result.clone();
    for flows in result["flows"].as_object_mut().into_iter().flat_map(|groups| groups.values_mut()) {
        let Json::Array(list) = flows else { continue };
        let mut columns = serde_json::Map::new();
        for flow in std::mem::take(list) {
            let Json::Object(flow) = flow else { continue };
            for (key, value) in flow {
                if let Json::Array(column) = columns.entry(key).or_insert_with(|| json!([])) {
                    column.push(value);
                }
            }
        }
        *flows = columns.into();
    }
    result
}

/// What [`folded`] was made of.
fn unfolded(mut result: Json) -> Option<Json> {
    for flows in result.get_mut("flows")?.as_object_mut()?.values_mut() {
        let Json::Object(columns) = flows.take() else { return None };
        let mut list: Vec<serde_json::Map<String, Json>> = Vec::new();
        for (key, column) in columns {
            let Json::Array(column) = column else { return None };
            list.resize_with(column.len().max(list.len()), serde_json::Map::new);
            for (flow, value) in list.iter_mut().zip(column) {
                flow.insert(key.clone(), value);
            }
        }
        *flows = list.into_iter().map(Json::Object).collect();
    }
    Some(result)
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

/// One of so many parts of a sweep: points are dealt out by a hash of what they are, whatever else the sweep has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    fn has(self, hash: u64) -> bool {
        // The hash of similar texts differs little in some of its bits; this mixes them (MurmurHash3's finaliser).
        let mix = |hash: u64, factor: u64| (hash ^ (hash >> 33)).wrapping_mul(factor);
        let mixed = mix(mix(hash, 0xff51_afd7_ed55_8ccd), 0xc4ce_b9fe_1a85_ec53);
        (mixed ^ (mixed >> 33)) % self.of + 1 == self.number
    }
}

/// What is to be done for a sweep.
#[derive(Clone, Debug, Default)]
pub enum Work {
    /// Every point that is missing.
    #[default]
    All,
    /// Those of a part.
    Shard(Shard),
    /// Nothing is run. What is missing is taken over from the folders of the same sweep elsewhere.
    Merge(Vec<PathBuf>),
}

/// How to run a sweep.
pub struct Options<'a> {
    /// What is complete is kept here, in `points/`.
    pub folder: &'a Path,
    /// Names the code: results of other code are not taken for complete.
    pub version: &'a str,
    /// Runs at once.
    pub threads: usize,
    /// Which points.
    pub work: Work,
    /// Names the program, as in the folders of runs.
    pub release: &'a str,
    /// Keep the folder of each run too, in `runs/`.
    pub folders: bool,
    /// Set by somebody who wants it to end; running points are given up.
    pub stop: &'a AtomicBool,
}

impl<'a> Options<'a> {
    /// Every point, and nothing beside.
    pub fn new(folder: &'a Path, version: &'a str, threads: usize, stop: &'a AtomicBool) -> Self {
        Self { folder, version, threads, work: Work::All, release: version, folders: false, stop }
    }
}

/// Simulates one point.
pub type Simulate<'a> = dyn Fn(&Scenario, &congestlab_sim::model::Model) -> (Outcome, Meta) + Sync + 'a;

/// Where what is complete is kept, below the folder of a sweep.
pub(crate) const POINTS: &str = "points";
/// Where the folders of runs are, below the folder of a sweep.
const RUNS: &str = "runs";

/// Whether points of a sweep are kept there.
pub fn is_folder(folder: &Path) -> bool {
    folder.join(POINTS).is_dir()
}

/// The points of a sweep that are complete. They stay on disk: there can be many.
#[derive(Debug)]
pub struct Results<'a> {
    scenario: &'a Scenario,
    folder: PathBuf,
    points: Cow<'a, [Point]>,
    tasks: Vec<Task>,
    /// The task of each point.
    task_of: Vec<usize>,
    records: Records,
    missing: usize,
}

/// One run, and the points that it answers: several may say the same in other words.
#[derive(Clone, Debug)]
struct Task {
    hash: u64,
    run: String,
    points: Vec<usize>,
}

impl Results<'_> {
    /// How many points the sweep has.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// How many points are not complete: others have them, or nobody yet.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// A point by its place in the sweep.
    ///
    /// # Errors
    /// It is not complete, or what was complete is there no more.
    pub fn get(&self, index: usize) -> Result<PointResult, SweepError> {
        let (point, task) = (&self.points[index], &self.tasks[self.task_of[index]]);
        let record = self.records.find(task.hash).and_then(|found| found.read());
        record.and_then(|record| kept(record, &task.run, point, self.scenario)).ok_or_else(|| {
            let error = std::io::Error::other(format!("there is no point {}", point.label));
            SweepError::Read { path: self.folder.clone(), error }
        })
    }

    /// All of them at once, in order.
    ///
    /// # Errors
    /// As [`Results::get`].
    pub fn all(&self) -> Result<Vec<PointResult>, SweepError> {
        (0..self.points.len()).map(|index| self.get(index)).collect()
    }

    /// The scenario that was swept.
    pub(crate) fn scenario(&self) -> &Scenario {
        self.scenario
    }

    /// Path, and what each point has there.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &[(String, String)]> {
        self.points.iter().map(|point| point.settings.as_slice())
    }
}

/// Runs the points that are missing in the folder. Others may do the same at the same time: each point is run by one of
/// them, and all return with all. A scenario without `[sweep]` has one point.
///
/// # Errors
/// [`SweepError`]; complete points stay on disk.
pub fn run<'a>(
    scenario: &'a Scenario,
    options: &Options<'_>,
    simulate: &Simulate<'_>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Results<'a>, SweepError> {
    scenario.check().map_err(SweepError::Scenario)?;
    let points = match scenario.sweep() {
        Some(sweep) => Cow::Borrowed(sweep.points()),
        None => Cow::Owned(vec![Point {
            index: 0,
            label: String::new(),
            settings: Vec::new(),
            nodes: Vec::new(),
        }]),
    };
    let (mut tasks, mut task_of): (Vec<Task>, _) = (Vec::new(), Vec::with_capacity(points.len()));
    let mut by_hash = BTreeMap::new();
    // All are read before the first runs, so that a mistake in the last costs no time. None is kept: they are many.
    for (index, point) in points.iter().enumerate() {
        if options.stop.load(Ordering::Relaxed) {
            return Err(SweepError::Interrupted { done: 0, all: points.len() });
        }
        let scenario = scenario.point(point).map_err(SweepError::Scenario)?;
        let hash = scenario.hash(options.version);
        let task = *by_hash.entry(records::key(&hash)).or_insert_with(|| {
            let run = run_name(&scenario, &scenario.hash(options.release));
            tasks.push(Task { hash: records::key(&hash), run, points: Vec::new() });
            tasks.len() - 1
        });
        tasks[task].points.push(index);
        task_of.push(task);
    }
    let folder = options.folder.join(POINTS);
    let read =
        |path: &Path| Records::open(path).map_err(|error| SweepError::Read { path: path.to_owned(), error });
    let job = Job {
        scenario,
        options,
        points: &points,
        folder: &folder,
        records: Mutex::new(read(&folder)?),
        simulate,
        progress,
    };
    if !matches!(options.work, Work::Merge(_)) {
        table::leave_out_other(options.folder, scenario)?;
    }
    match &options.work {
        Work::All => job.run(tasks.iter().collect())?,
        Work::Shard(shard) => job.run(tasks.iter().filter(|task| shard.has(task.hash)).collect())?,
        Work::Merge(folders) => {
            for folder in folders {
                let others = read(&folder.join(POINTS))?;
                let has_none = tasks.iter().all(|task| others.find(task.hash).is_none());
                if has_none && !others.is_empty() {
                    return Err(SweepError::Foreign(folder.clone()));
                }
                job.take(&others, &tasks)?;
            }
        }
    }
    let mut records = job.records.into_inner().unwrap_or_else(PoisonError::into_inner);
    records.refresh().map_err(|error| SweepError::Read { path: folder.clone(), error })?;
    let is_missing = |task: &&Task| {
        let record = records.find(task.hash).and_then(|found| found.read());
        let point = &points[task.points[0]];
        record.and_then(|record| kept(record, &task.run, point, scenario)).is_none()
    };
    let missing = match options.work {
        Work::All => 0,
        _ => tasks.par_iter().filter(is_missing).map(|task| task.points.len()).sum(),
    };
    Ok(Results { scenario, folder, points, tasks, task_of, records, missing })
}

/// What the threads of a sweep share.
struct Job<'a> {
    scenario: &'a Scenario,
    options: &'a Options<'a>,
    points: &'a [Point],
    folder: &'a Path,
    records: Mutex<Records>,
    simulate: &'a Simulate<'a>,
    progress: &'a (dyn Fn(Progress<'_>) + Sync),
}

/// What became of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    Yes,
    /// Somebody else is at it.
    Elsewhere,
    /// Somebody wants it to end.
    Stopped,
}

/// How long to wait before looking again for what others are at.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(200);

impl Job<'_> {
    /// Runs what is missing of these, and waits for what others are at.
    fn run(&self, mut tasks: Vec<&Task>) -> Result<(), SweepError> {
        fs::create_dir_all(self.folder).map_err(|error| self.cannot_write(error))?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.options.threads.max(1)).build();
        let mut done = 0;
        let all = tasks.iter().map(|task| task.points.len()).sum();
        (self.progress)(Progress::Begun(all));
        while !tasks.is_empty() {
            let one = |task| Ok((task, self.task(task)?));
            let ran: Vec<Result<(&Task, Done), SweepError>> = match &pool {
                // One task at a time for each thread, in order.
                Ok(pool) => pool.install(|| tasks.into_par_iter().with_max_len(1).map(one).collect()),
                // A machine that gives no threads still has this one.
                Err(_) => tasks.into_iter().map(one).collect(),
            };
            let ran = ran.into_iter().collect::<Result<Vec<_>, _>>()?;
            let of = |what: Done| ran.iter().filter(move |(_, done)| *done == what).map(|(task, _)| *task);
            let now: usize = of(Done::Yes).map(|task| task.points.len()).sum();
            done += now;
            if of(Done::Stopped).next().is_some() {
                return Err(SweepError::Interrupted { done, all });
            }
            tasks = of(Done::Elsewhere).collect();
            if now == 0 {
                std::thread::sleep(PATIENCE);
            }
        }
        Ok(())
    }

    fn task(&self, task: &Task) -> Result<Done, SweepError> {
        if self.options.stop.load(Ordering::Relaxed) {
            return Ok(Done::Stopped);
        }
        let point = &self.points[task.points[0]];
        let is_kept = || {
            // Not in one expression, in which the lock would be held while it is read.
            let found = self.records().find(task.hash);
            let record = found.filter(|_| self.has_folder(task)).and_then(|found| found.read());
            record.and_then(|record| kept(record, &task.run, point, self.scenario)).is_some()
        };
        if is_kept() {
            self.tell(Progress::Kept(point), task);
            return Ok(Done::Yes);
        }
        let Some(claim) = self.records().claim(task.hash).map_err(|error| self.cannot_write(error))? else {
            // What they have finished meanwhile is found the next time.
            self.refresh()?;
            return Ok(Done::Elsewhere);
        };
        // It may have been finished before it was claimed.
        self.refresh()?;
        if is_kept() {
            claim.done();
            self.tell(Progress::Kept(point), task);
            return Ok(Done::Yes);
        }
        (self.progress)(Progress::Started(point));
        let scenario = self.scenario.point(point).map_err(SweepError::Scenario)?;
        let Some(done) = self.simulate(&scenario, task, point)? else { return Ok(Done::Stopped) };
        self.append(task, &done.to_record())?;
        claim.done();
        self.tell(Progress::Finished(point), task);
        Ok(Done::Yes)
    }

    /// `None`: somebody wants it to end.
    fn simulate(
        &self,
        scenario: &Scenario,
        task: &Task,
        point: &Point,
    ) -> Result<Option<PointResult>, SweepError> {
        let Options { folder, release, folders, .. } = *self.options;
        let measure = Measure { series: folders || scenario.wants_series(), events: folders };
        let model = scenario.model(&measure);
        let (outcome, meta) = (self.simulate)(scenario, &model);
        if !outcome.complete {
            return Ok(None);
        }
        let result = RunResult::new(scenario, &outcome, meta);
        if folders {
            let path = folder.join(RUNS);
            store::write_run(&path, release, scenario, &outcome, &result)
                .map_err(|error| SweepError::Write { path: path.join(&task.run), error })?;
        }
        let result = result.to_json();
        let series = Series::new(&outcome, &model);
        let readings = scenario
            .metrics()
            .map(|metric| (metric.text().to_owned(), metric.read(&result, Some(&series))))
            .collect();
        let curves =
            scenario.curves().map(|metric| (metric.text().to_owned(), metric.curves(&series))).collect();
        Ok(Some(PointResult {
            index: point.index,
            run: task.run.clone(),
            settings: point.settings.clone(),
            result,
            readings,
            curves,
            laws: scenario.laws_by_name(),
        }))
    }

    /// Takes over what is complete elsewhere and not here.
    fn take(&self, others: &Records, tasks: &[Task]) -> Result<(), SweepError> {
        for task in tasks {
            let point = &self.points[task.points[0]];
            let answers = |record: &Json| kept(record.clone(), &task.run, point, self.scenario).is_some();
            let found = self.records().find(task.hash).and_then(|found| found.read());
            if found.is_some_and(|record| answers(&record)) {
                continue;
            }
            if let Some(record) = others.find(task.hash).and_then(|found| found.read()).filter(answers) {
                self.append(task, &record)?;
            }
        }
        Ok(())
    }

    fn append(&self, task: &Task, record: &Json) -> Result<(), SweepError> {
        let packed = records::pack(record);
        packed
            .and_then(|packed| self.records().append(task.hash, packed))
            .map_err(|error| self.cannot_write(error))
    }

    fn refresh(&self) -> Result<(), SweepError> {
        let refreshed = self.records().refresh();
        refreshed.map_err(|error| SweepError::Read { path: self.folder.to_owned(), error })
    }

    /// The folder of the run is there, if it is wanted.
    fn has_folder(&self, task: &Task) -> bool {
        let folder = || self.options.folder.join(RUNS).join(&task.run);
        !self.options.folders || folder().join(store::SUMMARY).is_file()
    }

    fn tell(&self, progress: Progress<'_>, task: &Task) {
        (self.progress)(progress);
        for &equal in &task.points[1..] {
            (self.progress)(Progress::Equal(&self.points[equal]));
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        // What is there is on disk, whoever panicked.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cannot_write(&self, error: std::io::Error) -> SweepError {
        SweepError::Write { path: self.folder.to_owned(), error }
    }
}

/// A point that is complete and answers all claims and the figure.
fn kept(mut record: Json, run: &str, point: &Point, scenario: &Scenario) -> Option<PointResult> {
    let result = unfolded(record.get_mut("result")?.take())?;
    if result.get("complete") != Some(&Json::Bool(true)) {
        return None;
    }
    let known = record.get("metrics")?;
    let mut readings = Vec::new();
    for metric in scenario.metrics() {
        let reading = match known.get(metric.text()) {
            Some(json) => Reading::from_json(json),
            None if metric.needs_series() => return None,
            None => metric.read(&result, None),
        };
        readings.push((metric.text().to_owned(), reading));
    }
    let mut curves = Vec::new();
    for metric in scenario.curves() {
        let known = record.get("curves")?.get(metric.text())?;
        curves.push((metric.text().to_owned(), serde_json::from_value(known.clone()).ok()?));
    }
    let laws = serde_json::from_value(record.get("laws")?.clone()).ok()?;
    let (run, settings) = (run.to_owned(), point.settings.clone());
    Some(PointResult { index: point.index, run, settings, result, readings, curves, laws })
}
