//! `[figure]`: how a scenario shows what its sweep or a run gives: an axis and lines over it, or words that choose them.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::judging::claims::{Control, Scalar, axis_value};
use crate::judging::grid::{Axes, Axis};
use crate::judging::metric::{CONVERGENCE, Elements, Metric, quantities};
use crate::judging::observation::{Observation, PointResult};
use crate::judging::seeds::{Estimate, SEED};
use congestlab_text::decode::{At, Language, record, word, words, wrong_type};
use congestlab_text::diagnostic::{Findings, choices};
use congestlab_text::path;
use congestlab_text::tree::{Node, Value, inline, value_of};

/// What kind of picture it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Quantities over time.
    Time,
    /// Means over an axis of a sweep.
    Line,
    /// The distribution of a quantity of flows.
    Cdf,
    /// Flow completion time by size.
    Fct,
    /// Jain's index.
    Fairness,
    /// Queueing delay.
    Delay,
}

impl Kind {
    /// Kinds by name, and what each shows.
    pub const ALL: [(&str, Self, &str); 6] = [
        ("time", Self::Time, "Throughput, queueing delay and utilisation over time"),
        ("line", Self::Line, "Means over an axis of the sweep, with their 95 % confidence intervals"),
        ("cdf", Self::Cdf, "The distribution of a value of flows: completion time, goodput, slowdown"),
        ("fct", Self::Fct, "Flow completion time by size: median and 99th percentile"),
        ("fairness", Self::Fairness, "Jain's fairness index"),
        ("delay", Self::Delay, "Queueing delay"),
    ];

    /// Returns the kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(other, ..)| *other == name).map(|(_, kind, _)| *kind)
    }
}

/// What somebody wants to see; what is absent is chosen.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The kind.
    pub kind: Option<Kind>,
    /// A path of the sweep or a column of its table; "time".
    pub x: Option<String>,
    /// A value of flows, links or groups, such as `goodput_bps` or `links.bottleneck.utilization`.
    pub y: Option<String>,
    /// What makes lines: `law`, `element`, `label`, or a path of the sweep.
    pub by: Option<String>,
}

record! {
    /// How the results are shown: by lines of their own, or by what they are of.
    Shown {
        /// Where a paper shows it, such as "PX fig. 9".
        of: String,
        /// What it shows; a caption, for no picture of a publication has a title.
        title: String,
        /// What is drawn: "time", "line", "cdf", "fct", "fairness", "delay"; chosen by what there is.
        kind: Kind,
        /// A path of the sweep, or "time".
        x: String,
        /// A value of flows, links or groups, such as "goodput_bps" or "links.bottleneck.utilization", or a metric.
        y: Quantity,
        /// What makes lines: "law", "element", "label", or a path of the sweep; all that is no axis and no seed.
        by: String,
        /// How wide a picture is: "3.3in" (a column of a page), "7in", or another width from 2in to 20in; "3.3in".
        width: Width,
        /// Pixels per inch of a PNG; 300.
        dpi: u64,
        /// What stands below the axis; the path, or time, s.
        x_label: String,
        /// What values of the axis are multiplied by, such as 1e-6 for Mbit/s; 1.
        x_factor: f64,
        /// "linear" or "log".
        x_scale: Scale,
        /// What is drawn, line by line, in the place of `kind`, `y` and `by`.
        lines: Vec<At<Line>>,
        /// Paths that `papers run --law` gives another law.
        own: Vec<At<String>>,
        /// false: `papers run --quick` leaves it out.
        quick: bool,
        /// What it assumes, with other values that would be as plausible.
        assumed: Vec<At<Assumption>>,
        /// The control of claims that have none of their own: the cause switched off, as settings by path. Or what they say instead, as there.
        control: Control,
    }
}

record! {
    /// Something that a paper does not say.
    Assumption {
        /// What, and by which number of docs/design/protocols.md: "A-07: buffers of a BDP".
        name: String = required,
        /// The paths that have it, together.
        paths: Vec<At<String>> = required,
        /// Other values, one after the other.
        values: Vec<At<Scalar>> = required,
    }
}

record! {
    /// A line of a figure.
    Line {
        /// Its entry in the legend.
        name: String = required,
        /// Of a result, over an axis: means over all else. Over time: a series without a question.
        metric: Metric = required,
        /// Quantity and unit; lines with the same share a chart.
        y: String = required,
        /// What values are multiplied by; 1.
        factor: f64,
        /// The points that it shows: values by path. Over time one point; absent: the first.
        only: Axes,
    }
}

impl Language for Kind {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let index = word(node, &Self::ALL.map(|(name, ..)| name), findings)?;
        Self::ALL.get(index).map(|(_, kind, _)| *kind)
    }

    fn encode(&self) -> Value {
        let name = Self::ALL.iter().find(|(_, kind, _)| kind == self).map_or("", |(name, ..)| name);
        Value::string(name)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": Self::ALL.map(|(name, ..)| name) })
    }
}

/// What an axis can be of: a value by its name, whosever it is, or a metric.
#[derive(Clone, Debug)]
pub(crate) enum Quantity {
    Name(String),
    Metric(Metric),
}

impl Quantity {
    fn text(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Metric(metric) => metric.text(),
        }
    }
}

impl Language for Quantity {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::String(name) if !name.contains(['.', '(']) && name != CONVERGENCE => {
                Some(Self::Name(name.clone()))
            }
            _ => Metric::decode(node, findings).map(Self::Metric),
        }
    }

    fn encode(&self) -> Value {
        Value::string(self.text())
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Metric::schema(generator)
    }
}

/// How wide a picture is, in inches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Width(pub(crate) f64);

/// What a picture can be wide.
const WIDTHS: &str = "allowed: 3.3in, 7in, or another width from 2in to 20in";

/// A width such as `3.3in`, or `3.3`, in inches.
///
/// # Errors
/// What is allowed.
pub fn width(text: &str) -> Result<f64, &'static str> {
    let text = text.trim();
    let inches = text.strip_suffix("in").unwrap_or(text).trim().parse::<f64>().ok();
    inches.filter(|inches| (2.0..=20.0).contains(inches)).ok_or(WIDTHS)
}

/// Pixels per inch that a PNG can have.
pub const DPI: std::ops::RangeInclusive<u64> = 30..=1200;

impl Language for Width {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Value::String(text) = &node.value else {
            wrong_type(node, "a width", WIDTHS, findings);
            return None;
        };
        match width(text) {
            Ok(inches) => Some(Self(inches)),
            Err(help) => {
                let message = format!("`{}` is \"{text}\", which is no width of a picture", findings.place());
                findings.error("scenario::figure", node.span, message, help);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::string(format!("{}in", self.0))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9.]+ ?(in)?$" })
    }
}

words! {
    /// How an axis is divided.
    Scale {
        /// Equal steps.
        Linear = "linear",
        /// Equal ratios.
        Log = "log",
    }
}

/// Something assumed, as it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumed<'a> {
    /// What.
    pub name: &'a str,
    /// The paths that have it, together.
    pub paths: Vec<&'a str>,
    /// Other values, as TOML.
    pub values: Vec<String>,
}

/// A curve as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its entry in the legend.
    pub name: String,
    /// The law of all that it is of, if they have the same.
    pub law: Option<String>,
    /// Quantity and unit; curves with the same share a chart.
    pub y: String,
    /// (x, y), x ascending.
    pub points: Vec<(f64, f64)>,
    /// (x, low, high): the 95 % interval of the mean, where several seeds make one.
    pub spread: Vec<(f64, f64, f64)>,
    /// How many values each point is the mean of; nothing over time.
    pub samples: Vec<usize>,
    /// Paths other than the seed in which the runs of a point differ: they are no repetitions, and have no interval.
    pub mixed: Vec<String>,
}

const TIME: &str = "time";
const SCALES: &str = "allowed: from 1e-30 to 1e30, of lines negative ones too";

/// No picture wants more, and no value becomes infinite by it.
fn is_scale(factor: f64) -> bool {
    (1e-30..=1e30).contains(&factor.abs())
}

impl Shown {
    /// Holds it against the scenario; says what is wrong with it.
    pub(crate) fn check(&mut self, elements: &Elements, axes: &[Axis], findings: &mut Findings) {
        let names = || axes.iter().map(|axis| axis.path.value.as_str());
        self.check_wish(elements, axes, findings);
        if let Some(x) = self.x.as_ref().filter(|x| x.value != TIME && names().all(|name| name != x.value)) {
            let help = choices(&x.value, names().chain([TIME]));
            let message = format!("`x` is `{}`, which the sweep does not vary", x.value);
            findings.error("scenario::figure", x.span, message, help);
        }
        self.check_axis(axes, findings);
        let is_over_time = self.is_over_time();
        for line in self.lines.iter_mut().flat_map(|lines| &mut lines.value) {
            let line = &mut line.value;
            if let Some(metric) = &mut line.metric {
                if is_over_time {
                    metric.value.check_series(metric.span, elements, findings);
                } else {
                    metric.value.check(metric.span, elements, findings);
                    if metric.value.is_text() || metric.value.is_list() {
                        let message = format!("metric `{}` is not one number", metric.value.text());
                        let help = "such as sum(...), min(...) or [0]";
                        findings.error("scenario::figure", metric.span, message, help);
                    }
                }
            }
            if let Some(factor) = line.factor.as_ref().filter(|factor| !is_scale(factor.value)) {
                let message = format!("`factor` is {}", factor.value);
                findings.error("scenario::figure", factor.span, message, SCALES);
            }
            if let Some(only) = &line.only {
                only.value.check("only", axes, "scenario::figure", findings);
            }
        }
        let assumed = || self.assumed.iter().flat_map(|list| &list.value);
        for assumed in assumed() {
            let Assumption { paths, values, .. } = &assumed.value;
            let is_empty = paths.as_ref().is_some_and(|paths| paths.value.is_empty())
                || values.as_ref().is_some_and(|values| values.value.is_empty());
            if is_empty {
                let help = "it names what is assumed and what it could be";
                findings.error("scenario::figure", assumed.span, "`assumed` varies nothing", help);
            }
        }
        for path in assumed().flat_map(|assumed| assumed.value.paths.iter().flat_map(|paths| &paths.value)) {
            if names().any(|name| name == path.value) {
                let message = format!("`{}` is assumed, and the sweep varies it", path.value);
                findings.error("scenario::figure", path.span, message, "vary it in one of the two");
            }
        }
        for own in self.own.iter().flat_map(|own| &own.value) {
            let has = |table: &str, name: &str| match table {
                "links" => elements.links.iter().any(|(other, _)| other == name),
                "flows" => elements.flows.iter().any(|(other, _)| other == name),
                _ => false,
            };
            let is_law = path::parse(&own.value).is_ok_and(|steps| match steps.as_slice() {
                [path::Step::Key(table), path::Step::Key(name), path::Step::Key(law)] => {
                    law == "law" && has(table, name)
                }
                [
                    path::Step::Key(table),
                    path::Step::Key(name),
                    path::Step::Key(reverse),
                    path::Step::Key(law),
                ] => table == "links" && reverse == "reverse" && law == "law" && has(table, name),
                _ => false,
            });
            if !is_law {
                let message = format!("`own` names `{}`, which is no law", own.value);
                let help = "such as flows.ftp.law or links.bottleneck.law";
                findings.error("scenario::figure", own.span, message, help);
            }
        }
    }

    /// Either lines, which have an axis, or words that say what is drawn.
    fn check_wish(&mut self, elements: &Elements, axes: &[Axis], findings: &mut Findings) {
        const CODE: &str = "scenario::figure";
        if let Some(lines) = &self.lines {
            let words = [
                ("kind", self.kind.as_ref().map(|at| at.span)),
                ("y", self.y.as_ref().map(|at| at.span)),
                ("by", self.by.as_ref().map(|at| at.span)),
            ];
            for (key, span) in words {
                if let Some(span) = span {
                    let message = format!("`figure` has `{key}` beside `lines`, which say what is drawn");
                    findings.error(CODE, span, message, format!("leave out `{key}` or `lines`"));
                }
            }
            if self.x.is_none() {
                let help = "a path of the sweep, or \"time\"";
                findings.error(CODE, lines.span, "`figure` has `lines` and no `x`", help);
            }
        }
        match self.y.as_mut().map(|y| (y.span, &mut y.value)) {
            Some((span, Quantity::Metric(metric))) => metric.check(span, elements, findings),
            Some((span, Quantity::Name(name))) => {
                let known = quantities();
                if !known.contains(name) {
                    let message = format!("`y` is `{name}`, which no result has");
                    findings.error(CODE, span, message, choices(name, known.iter().map(String::as_str)));
                }
            }
            None => {}
        }
        if let Some(by) = &self.by {
            let words = ["law", "element", "label"].into_iter();
            let known = || words.clone().chain(axes.iter().map(|axis| axis.path.value.as_str()));
            if known().all(|name| name != by.value) {
                let message = format!("`by` is `{}`, which makes no lines", by.value);
                findings.error(CODE, by.span, message, choices(&by.value, known()));
            }
        }
        if let Some(dpi) = self.dpi.as_ref().filter(|dpi| !DPI.contains(&dpi.value)) {
            let help = format!("allowed: from {} to {}", DPI.start(), DPI.end());
            findings.error(CODE, dpi.span, format!("`dpi` is {}", dpi.value), help);
        }
    }

    /// An axis is of numbers, which a logarithmic one has above zero.
    fn check_axis(&self, axes: &[Axis], findings: &mut Findings) {
        let factor = self.x_factor.as_ref();
        if let Some(factor) = factor.filter(|factor| factor.value <= 0.0 || !is_scale(factor.value)) {
            let message = format!("`x_factor` is {}", factor.value);
            findings.error("scenario::figure", factor.span, message, SCALES);
        }
        let Some(scale) = self.x_scale.as_ref().filter(|scale| scale.value == Scale::Log) else { return };
        let varied = axes.iter().find(|axis| self.x.as_ref().is_some_and(|x| x.value == axis.path.value));
        let values = varied.into_iter().flat_map(|axis| &axis.values);
        let is_low = |value: f64| value <= 0.0;
        for value in values.filter(|value| axis_value(&value.value).is_some_and(is_low)) {
            let message = format!("`x_scale` is \"log\", and the axis has {}", inline(&value.value));
            findings.error(
                "scenario::figure",
                scale.span,
                message,
                "write \"linear\", or leave the value out",
            );
        }
    }

    /// Its axis is time.
    pub(crate) fn is_over_time(&self) -> bool {
        self.x.as_ref().is_some_and(|x| x.value == TIME)
    }

    /// Every metric that its lines want, and what `y` asks beside what each result has.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = &Metric> {
        let lines = self.lines.iter().flat_map(|lines| &lines.value);
        let of_lines = lines.filter_map(|line| line.value.metric.as_ref().map(|metric| &metric.value));
        let of_y = self.y.iter().filter_map(|y| match &y.value {
            Quantity::Metric(metric) if !metric.is_plain() => Some(metric),
            _ => None,
        });
        of_lines.chain(of_y)
    }
}

/// What `[figure]` says.
#[derive(Clone, Copy, Debug)]
pub struct Figure<'a>(pub(crate) &'a Shown);

impl<'a> Figure<'a> {
    /// Where the paper shows it.
    pub fn of(self) -> &'a str {
        self.0.of.as_ref().map_or("", |of| &of.value)
    }

    /// What it shows.
    pub fn title(self) -> &'a str {
        self.0.title.as_ref().map_or("", |title| &title.value)
    }

    /// What it asks for in words; `None`: it has lines.
    pub fn wish(self) -> Option<Wish> {
        if self.0.lines.is_some() {
            return None;
        }
        let text = |text: &Option<At<String>>| text.as_ref().map(|text| text.value.clone());
        let kind = self.0.kind.as_ref().map(|kind| kind.value);
        let y = self.0.y.as_ref().map(|y| y.value.text().to_owned());
        Some(Wish { kind, x: text(&self.0.x), y, by: text(&self.0.by) })
    }

    /// The control of claims without one of their own.
    pub(crate) fn control(self) -> Option<&'a Control> {
        self.0.control.as_ref().map(|control| &control.value)
    }

    /// How wide it is drawn, inches.
    pub fn width(self) -> Option<f64> {
        self.0.width.as_ref().map(|width| width.value.0)
    }

    /// Pixels per inch of a PNG.
    pub fn dpi(self) -> Option<u64> {
        self.0.dpi.as_ref().map(|dpi| dpi.value)
    }

    /// Its axis is time.
    pub fn is_over_time(self) -> bool {
        self.0.is_over_time()
    }

    /// Every metric that its lines and its axis want.
    pub(crate) fn metrics(self) -> impl Iterator<Item = &'a Metric> {
        self.0.metrics()
    }

    /// A path of the sweep, or "time".
    pub(crate) fn axis(self) -> &'a str {
        self.0.x.as_ref().map_or("", |x| &x.value)
    }

    /// What stands below the axis.
    pub fn x_label(self) -> &'a str {
        let axis = self.axis();
        self.0.x_label.as_ref().map_or(if axis == TIME { "time, s" } else { axis }, |label| &label.value)
    }

    /// The axis is divided in equal ratios.
    pub fn is_logarithmic(self) -> bool {
        self.0.x_scale.as_ref().is_some_and(|scale| scale.value == Scale::Log)
    }

    /// `--quick` runs it too.
    pub fn is_quick(self) -> bool {
        self.0.quick.as_ref().is_none_or(|quick| quick.value)
    }

    /// The paths that another law takes.
    pub fn own(self) -> impl Iterator<Item = &'a str> {
        self.0.own.iter().flat_map(|own| &own.value).map(|own| own.value.as_str())
    }

    /// What it assumes.
    pub fn assumed(self) -> impl Iterator<Item = Assumed<'a>> {
        self.0.assumed.iter().flat_map(|list| &list.value).map(|assumption| {
            let Assumption { name, paths, values } = &assumption.value;
            let paths = paths.iter().flat_map(|paths| &paths.value);
            let values = values.iter().flat_map(|values| &values.value);
            Assumed {
                name: name.as_ref().map_or("", |name| &name.value),
                paths: paths.map(|path| path.value.as_str()).collect(),
                values: values.map(|value| inline(&value.value.0)).collect(),
            }
        })
    }

    /// What its lines show of these points.
    pub fn curves(self, points: &[PointResult]) -> Vec<Curve> {
        let lines = self.0.lines.iter().flat_map(|lines| &lines.value);
        lines
            .flat_map(|line| {
                if self.0.is_over_time() {
                    line.value.over_time(points)
                } else {
                    self.over_axis(&line.value, points)
                }
            })
            .collect()
    }

    fn over_axis(self, line: &Line, points: &[PointResult]) -> Vec<Curve> {
        let (Some(x), Some(metric)) = (&self.0.x, &line.metric) else { return Vec::new() };
        let mut values: Vec<(f64, Vec<f64>)> = Vec::new();
        let mut runs: Vec<(f64, Vec<(String, String)>)> = Vec::new();
        let mut mixed: Vec<String> = Vec::new();
        let shown = || points.iter().filter(|point| line.shows(&point.observation()));
        for point in shown() {
            let seen = point.observation();
            let at = seen.setting(&x.value).and_then(value_of).and_then(|value| axis_value(&value));
            let (Some(at), Some(value)) = (at, seen.read(&metric.value).number()) else { continue };
            let at = at * self.0.x_factor.as_ref().map_or(1.0, |factor| factor.value);
            if !at.is_finite() || !(value * line.factor()).is_finite() {
                continue;
            }
            match values.iter_mut().find(|(other, _)| *other == at) {
                Some((_, list)) => list.push(value * line.factor()),
                None => values.push((at, vec![value * line.factor()])),
            }
            match runs.iter().find(|(other, _)| *other == at) {
                Some((_, first)) => mixed.extend(differing(first, &seen.settings, &mixed)),
                None => runs.push((at, seen.settings)),
            }
        }
        values.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let estimates: Vec<(f64, Estimate)> =
            values.iter().filter_map(|(at, list)| Some((*at, Estimate::of(list)?))).collect();
        let samples = values.iter().map(|(_, list)| list.len()).collect();
        let has_spread = mixed.is_empty() && estimates.iter().any(|(_, estimate)| estimate.half > 0.0);
        // Student's t knows no bound.
        let is_positive = estimates.iter().all(|(_, estimate)| estimate.mean >= 0.0);
        let low = |estimate: &Estimate| estimate.low().max(if is_positive { 0.0 } else { f64::NEG_INFINITY });
        vec![Curve {
            mixed,
            points: estimates.iter().map(|(at, estimate)| (*at, estimate.mean)).collect(),
            spread: estimates
                .iter()
                .filter(|_| has_spread)
                .map(|(at, estimate)| (*at, low(estimate), estimate.high()))
                .collect(),
            samples,
            law: line.law(shown()),
            ..line.curve(String::new())
        }]
    }
}

/// The paths, but the seed, at which a run has another value than the first, and which are not known yet.
fn differing(first: &[(String, String)], run: &[(String, String)], known: &[String]) -> Vec<String> {
    let pairs = first.iter().zip(run).filter(|(one, other)| one != other);
    let paths = pairs.map(|(_, (path, _))| path).filter(|path| *path != SEED && !known.contains(path));
    paths.cloned().collect()
}

impl Line {
    fn factor(&self) -> f64 {
        self.factor.as_ref().map_or(1.0, |factor| factor.value)
    }

    fn shows(&self, point: &Observation) -> bool {
        self.only.as_ref().is_none_or(|only| only.value.has(point))
    }

    /// The law of the flows or links that it is of, if all of them have the same at all points.
    fn law<'a>(&self, mut points: impl Iterator<Item = &'a PointResult>) -> Option<String> {
        let metric = &self.metric.as_ref()?.value;
        let first = points.next()?.law_of(metric)?;
        points.all(|point| point.law_of(metric).as_ref() == Some(&first)).then_some(first)
    }

    fn curve(&self, suffix: String) -> Curve {
        let text = |text: &Option<At<String>>| text.as_ref().map_or(String::new(), |at| at.value.clone());
        Curve {
            name: text(&self.name) + &suffix,
            law: None,
            y: text(&self.y),
            points: Vec::new(),
            spread: Vec::new(),
            samples: Vec::new(),
            mixed: Vec::new(),
        }
    }

    fn over_time(&self, points: &[PointResult]) -> Vec<Curve> {
        let Some(metric) = &self.metric else { return Vec::new() };
        let point = points.iter().find(|point| self.shows(&point.observation()));
        let kept = point.and_then(|point| point.curves.iter().find(|(text, _)| text == metric.value.text()));
        let Some((_, curves)) = kept else { return Vec::new() };
        let number = |index: usize| if curves.len() > 1 { format!(" {}", index + 1) } else { String::new() };
        let scale = |list: &Vec<(f64, f64)>| list.iter().map(|(t, v)| (*t, v * self.factor())).collect();
        let all = curves.iter().enumerate();
        let law = self.law(point.into_iter());
        let each =
            |(index, list)| Curve { points: scale(list), law: law.clone(), ..self.curve(number(index)) };
        all.map(each).collect()
    }
}
