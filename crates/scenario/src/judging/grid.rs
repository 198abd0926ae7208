//! The points of a sweep: lists of values by path, combined or paired.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use congestlab_core::units::Duration;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::judging::observation::Observation;
use crate::judging::seeds::SEED;
use congestlab_text::decode::{At, Language, record, wrong_type};
use congestlab_text::diagnostic::{Findings, choices};
use congestlab_text::path;
use congestlab_text::path::Step;
use congestlab_text::tree::{Entry, Node, Table, Value, inline};

record! {
    /// The points of a sweep.
    Lists {
        /// Values by path; all combinations.
        grid: Axes,
        /// Values by path; the first of each, the second of each, and so on.
        zip: Axes,
    }
}

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
    pub(crate) fn all(sweep: &Lists) -> Vec<Self> {
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
pub(crate) const PLAN: [&str; 4] = ["sweep", "claims", "tolerances", "figure"];

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

/// One point; without values the file as it is.
#[derive(Clone, Debug, Default)]
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
        self.points.get_or_init(|| (0..self.count()).map(|index| self.point(index)).collect())
    }

    fn count(&self) -> usize {
        let (zipped, length) = self.zipped;
        self.varied[zipped..].iter().map(|(_, values)| values.len()).product::<usize>() * length
    }

    /// A point by its place, without laying out the others.
    pub(crate) fn at(&self, index: usize) -> Option<Point> {
        match self.points.get() {
            Some(points) => points.get(index).cloned(),
            None => (index < self.count()).then(|| self.point(index)),
        }
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
    pub(crate) fn new(sweep: &At<Lists>, findings: &mut Findings) -> Option<Self> {
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
        let mut axes = Vec::new();
        let mut varied: Vec<(Vec<Step>, Vec<Node>)> = Vec::new();
        let zipped = (zip.len(), length);
        for Axis { path, values, .. } in all {
            let refused = match path::parse(&path.value) {
                Ok(steps) if varied.iter().any(|(known, _)| *known == steps) => {
                    format!("`{}` is swept twice", path.value)
                }
                // The later one wins, so `*` comes first, and what is named is what it says.
                Ok(steps) if varied.iter().any(|(known, _)| path::overwrites(&steps, known)) => {
                    format!("`{}` would overwrite what is swept before it by name", path.value)
                }
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
                "each path once, such as links.bottleneck.rate; a path with * before those that name one of its places",
            );
            return None;
        }
        Some(Self { axes, varied, zipped, points: OnceLock::new() })
    }
}

impl Point {
    /// That of a scenario without a sweep.
    pub(crate) fn only() -> Self {
        Self { index: 0, label: String::new(), settings: Vec::new(), nodes: Vec::new() }
    }

    /// Puts the point's values into a file.
    pub(crate) fn apply(&self, root: &mut Node, findings: &mut Findings) {
        for ((steps, node), (path, _)) in self.nodes.iter().zip(&self.settings) {
            congestlab_text::tree::replace(root, path, steps, node.clone(), node.span, findings);
        }
    }
}

/// How many of them differ.
pub(crate) fn distinct(values: &[Node]) -> usize {
    values.iter().map(|node| inline(&node.value)).collect::<std::collections::BTreeSet<_>>().len()
}
