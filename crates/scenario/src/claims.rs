//! Claims about results, and whether they hold.
//!
//! A claim names a metric and what it should be. Most speak of each run by itself; `monotone` and
//! `crossover` speak of a sweep's runs along one of its axes.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::cells::{Cell, Quantity};
use crate::decode::{At, Language, record, words, wrong_type};
use crate::diagnostic::{Findings, Span};
use crate::metric::{Comparison, Elements, Metric, Reading, quantity};
use crate::number::significant;
use crate::seeds::{Estimate, SEED, SEEDS_MIN};
use crate::sweep::{Axes, Axis};
use crate::tree::{Node, Value, inline};

record! {
    /// Something that should be true of the results.
    Claim {
        /// The claim in words.
        that: String = required,
        /// A short quote from the source.
        quote: String,
        /// Where it is said.
        source: String,
        /// What is measured.
        metric: Metric = required,
        /// Measure the metric relative to this one.
        ratio_to: Metric,
        /// Measure it relative to what is read, all else equal, at the point that has these values.
        against: Axes,
        /// No value is less.
        at_least: Bound,
        /// No value is more.
        at_most: Bound,
        /// Every value is between the two, or is one of them.
        within: Vec<At<Bound>>,
        /// Every value is this.
        equals: Scalar,
        /// true: the metric is 0 or null. A comparison such as "> 5": no value compares so.
        never: Never,
        /// increasing or decreasing: the values of an array, in their order. Or metrics, largest first, after this one.
        ordered: Ordered,
        /// increasing or decreasing along an axis of the sweep, means over all else; equal neighbours are allowed.
        monotone: Trend,
        /// Along an axis of the sweep the metric crosses this one once; the bounds are then for where.
        crossover: Metric,
        /// The axis, a path of the sweep; absent: the only one beside run.seed.
        over: String,
        /// The points of which the claim is made: values by path.
        only: Axes,
        /// What several seeds must do: "each" of them (absent); "mean": the 95 % interval of their mean is within the bounds; "half": half of them or more.
        decide: Decide,
        /// Of a claim that fails: why, and what shows it.
        cause: String,
    }
}

words! {
    /// How seeds decide.
    Decide {
        /// Each run holds.
        Each = "each",
        /// The 95 % interval of the mean is within the bounds.
        Mean = "mean",
        /// At least half of the runs hold, at each point by itself.
        Half = "half",
    }
}

words! {
    /// A direction.
    Trend {
        /// Up.
        Increasing = "increasing",
        /// Down.
        Decreasing = "decreasing",
    }
}

impl Trend {
    fn holds(self, numbers: &[f64]) -> bool {
        numbers.windows(2).all(|pair| match self {
            Self::Increasing => pair[0] <= pair[1],
            Self::Decreasing => pair[0] >= pair[1],
        })
    }
}

/// A number, or a quantity in the unit that the metric's name ends with.
#[derive(Clone, Debug)]
pub(crate) enum Bound {
    Number(f64),
    Quantity(String),
}

impl Bound {
    fn value(&self, metric: &Metric) -> Result<f64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Quantity(text) => quantity(text, metric.unit_name()),
        }
    }
}

impl Bound {
    /// Where it is on an axis of a sweep.
    fn on_axis(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Quantity(text) => axis_value(&Value::string(text.as_str())),
        }
    }
}

impl Language for Bound {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::String(text) => Some(Self::Quantity(text.clone())),
            _ => f64::decode(node, findings).map(Self::Number),
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Number(number) => Value::Float(*number),
            Self::Quantity(text) => Value::string(text.as_str()),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"] })
    }
}

/// A value to be equal to.
#[derive(Clone, Debug)]
pub(crate) struct Scalar(pub(crate) Value);

impl Language for Scalar {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
                Some(Self(node.value.clone()))
            }
            _ => {
                wrong_type(node, "a number, boolean or string", "write what the metric should be", findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        self.0.clone()
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string", "boolean"] })
    }
}

/// What never happens.
#[derive(Clone, Debug)]
pub(crate) enum Never {
    Anything,
    Compares(String),
}

impl Language for Never {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::Boolean(true) => Some(Self::Anything),
            Value::String(text) => Some(Self::Compares(text.clone())),
            _ => {
                wrong_type(
                    node,
                    "true or a comparison",
                    "write true, or a comparison such as \"> 5\"",
                    findings,
                );
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Anything => Value::Boolean(true),
            Self::Compares(text) => Value::string(text.as_str()),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": true }, { "type": "string" }] })
    }
}

/// What is in order.
#[derive(Clone, Debug)]
pub(crate) enum Ordered {
    Elements(Trend),
    Metrics(Vec<At<Metric>>),
}

impl Language for Ordered {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::Array(_) => Vec::decode(node, findings).map(Self::Metrics),
            _ => Trend::decode(node, findings).map(Self::Elements),
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Elements(trend) => trend.encode(),
            Self::Metrics(metrics) => metrics.encode(),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [Trend::schema(generator), { "type": "array", "items": { "type": "string" } }] })
    }
}

/// One run of a sweep, as claims see it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Path and value (as TOML) of every axis.
    pub settings: Vec<(String, String)>,
    /// What the metrics of all claims gave, by their text.
    pub readings: Vec<(String, Reading)>,
}

impl Observation {
    pub(crate) fn read(&self, metric: &Metric) -> &Reading {
        let found = self.readings.iter().find(|(text, _)| text == metric.text());
        found.map_or(&Reading::Nothing, |(_, reading)| reading)
    }

    pub(crate) fn setting(&self, path: &str) -> Option<&str> {
        self.settings.iter().find(|(other, _)| other == path).map(|(_, value)| value.as_str())
    }
}

/// Whether a claim holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The claim in words.
    pub that: String,
    /// Its metric.
    pub metric: String,
    /// It does.
    pub holds: bool,
    /// What was measured and asked, in one line.
    pub text: String,
    /// The same by point where seeds decide together, and of single runs those that fail; empty where the line says it.
    pub points: Vec<Judged>,
}

/// A claim at one point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Path and value (as TOML) of what the sweep varies.
    pub at: Vec<(String, String)>,
    /// The value that was measured.
    pub measured: Cell,
    /// The claim holds there.
    pub holds: bool,
}

/// A claim of a scenario, checked to be about it.
#[derive(Clone, Debug)]
pub struct CheckedClaim {
    claim: Claim,
    axis: Option<String>,
}

impl CheckedClaim {
    /// Holds the claim against the scenario; says what is wrong with it.
    pub(crate) fn new(
        claim: &mut At<Claim>,
        elements: &Elements,
        axes: &[Axis],
        findings: &mut Findings,
    ) -> Option<Self> {
        let span = claim.span;
        let claim = &mut claim.value;
        claim.check_keys(findings);
        claim.check_decision(axes, findings);
        let swept = axes;
        let axes: &[String] = &axes.iter().map(|axis| axis.path.value.clone()).collect::<Vec<_>>();
        let ordered = match &mut claim.ordered {
            Some(At { value: Ordered::Metrics(metrics), .. }) => metrics.as_mut_slice(),
            _ => &mut [],
        };
        let metrics =
            claim.metric.iter_mut().chain(&mut claim.ratio_to).chain(&mut claim.crossover).chain(ordered);
        for metric in metrics {
            let span = metric.span;
            metric.value.check(span, elements, findings);
        }
        let main = claim.metric.as_ref()?.value.clone();
        let is_silent = claim.at_least.is_none()
            && claim.at_most.is_none()
            && claim.within.is_none()
            && claim.equals.is_none()
            && claim.never.is_none()
            && claim.ordered.is_none()
            && claim.monotone.is_none()
            && claim.crossover.is_none();
        if is_silent {
            let help = "add at_least, at_most, within, equals, never, ordered, monotone or crossover";
            findings.error("scenario::claim", span, "a claim says nothing about its metric", help);
        }
        let is_bad_pair = claim.within.as_ref().is_some_and(|within| within.value.len() != 2);
        if let Some(within) = claim.within.as_ref().filter(|_| is_bad_pair) {
            findings.error(
                "scenario::claim",
                within.span,
                "`within` is not a pair",
                "write [lowest, highest]",
            );
        }
        let bounds =
            claim.at_least.iter().chain(&claim.at_most).chain(claim.within.iter().flat_map(|w| &w.value));
        for bound in bounds.filter(|_| claim.crossover.is_none()) {
            if let Err(message) = bound.value.value(&main) {
                findings.error("scenario::claim", bound.span, message, "write a number in the metric's unit");
            }
        }
        if let Some(At { value: Never::Compares(text), span }) = &claim.never
            && let Err(message) = Comparison::parse(text, main.unit_name())
        {
            findings.error("scenario::claim", *span, message, "such as never = \"> 5\"");
        }
        for (key, chosen) in [("only", &claim.only), ("against", &claim.against)] {
            if let Some(chosen) = chosen {
                chosen.value.check(key, swept, "scenario::claim", findings);
            }
        }
        let mut against = claim.against.iter().flat_map(|against| &against.value.0);
        if let Some(axis) = against.find(|axis| axis.values.len() > 1) {
            let message = format!("`against` has {} values of `{}`", axis.values.len(), axis.path.value);
            findings.error("scenario::claim", axis.path.span, message, "a ratio is to one point");
        }
        claim.check_types(&main, findings);
        let axis = if claim.monotone.is_some() || claim.crossover.is_some() {
            let axis = claim.axis(span, axes, findings)?;
            let of = |axes: &[Axis]| axes.iter().find(|other| other.path.value == axis).cloned();
            let chosen = claim.only.as_ref().and_then(|only| of(&only.value.0));
            let along = chosen.or_else(|| of(swept)).map_or(Vec::new(), |axis| axis.values);
            if distinct(&along) < 2 {
                let message = format!("`{axis}` has one value, along which nothing changes");
                findings.error("scenario::claim", span, message, "monotone and crossover want two or more");
            }
            if let Some(value) = along.iter().find(|value| axis_value(&value.value).is_none()) {
                let message = format!("`{axis}` has {}, which is not on a number line", inline(&value.value));
                findings.error(
                    "scenario::claim",
                    span,
                    message,
                    "monotone and crossover want an axis of numbers",
                );
            }
            Some(axis)
        } else {
            None
        };
        Some(Self { claim: claim.clone(), axis })
    }

    /// The claim in words.
    pub fn that(&self) -> &str {
        self.claim.that.as_ref().map_or("", |that| &that.value)
    }

    /// The source's words.
    pub fn quote(&self) -> Option<&str> {
        self.claim.quote.as_ref().map(|quote| quote.value.as_str())
    }

    /// Where it is said.
    pub fn source(&self) -> Option<&str> {
        self.claim.source.as_ref().map(|source| source.value.as_str())
    }

    /// The axis that it is judged along.
    pub(crate) fn axis(&self) -> Option<&str> {
        self.axis.as_deref()
    }

    /// Why it fails.
    pub fn cause(&self) -> Option<&str> {
        self.claim.cause.as_ref().map(|cause| cause.value.as_str())
    }

    /// Every metric that has to be read in each run.
    pub fn metrics(&self) -> Vec<&Metric> {
        let claim = &self.claim;
        let mut metrics: Vec<&Metric> =
            claim.metric.iter().chain(&claim.ratio_to).chain(&claim.crossover).map(|at| &at.value).collect();
        if let Some(At { value: Ordered::Metrics(list), .. }) = &claim.ordered {
            metrics.extend(list.iter().map(|at| &at.value));
        }
        metrics
    }

    /// The run is one of those of which the claim is made, or to which it compares.
    pub fn is_about(&self, run: &Observation) -> bool {
        self.claim.is_about(run) || self.claim.against.as_ref().is_some_and(|against| against.value.has(run))
    }

    /// A series of which it is has no value in any of the runs. That a flow does not complete, say, is a value of a kind.
    pub(crate) fn reads_nothing(&self, runs: &[Observation]) -> bool {
        let selected = || runs.iter().filter(|run| self.is_about(run));
        let is_nothing = |reading: &Reading| match reading {
            Reading::List(list) => list.iter().all(|reading| *reading == Reading::Nothing),
            reading => *reading == Reading::Nothing,
        };
        self.metrics()
            .iter()
            .any(|metric| metric.is_of_law() && selected().all(|run| is_nothing(run.read(metric))))
    }

    /// Of some point of which it is made too few of the runs are left: none, or of a mean less than an interval is made of.
    pub fn lacks_runs(&self, all: &[Observation], left: &[Observation]) -> bool {
        let about = |runs: &[Observation]| -> Vec<Observation> {
            runs.iter().filter(|run| self.is_about(run)).cloned().collect()
        };
        let (all, left) = (about(all), about(left));
        let left = by_point(&left.iter().collect::<Vec<_>>());
        let enough = if self.claim.decision() == Decide::Mean { SEEDS_MIN } else { 1 };
        let has_enough =
            |point: &Settings| left.iter().any(|(other, runs)| other == point && runs.len() >= enough);
        by_point(&all.iter().collect::<Vec<_>>()).iter().any(|(point, _)| !has_enough(point))
    }

    /// Holds the claim against the runs.
    pub fn verdict(&self, runs: &[Observation]) -> Verdict {
        let mut points = Vec::new();
        let (holds, text) = match self.judge(runs, &mut points) {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        };
        Verdict { that: self.that().into(), metric: self.claim.measured(), holds, text, points }
    }

    /// What was measured; `Err` where the claim does not hold.
    fn judge(&self, runs: &[Observation], points: &mut Vec<Judged>) -> Result<String, String> {
        let claim = &self.claim;
        let metric = &claim.metric.as_ref().ok_or("no metric")?.value;
        let selected: Vec<&Observation> = runs.iter().filter(|run| claim.is_about(run)).collect();
        let bases = claim.bases(runs);
        let read = |run: &Observation| claim.reading(metric, run, &bases);
        if selected.is_empty() {
            return Err("no run to judge by".into());
        }
        let mut said = Vec::new();
        if let (Some(other), Some(axis)) = (&claim.crossover, &self.axis) {
            said.push(claim.judge_crossover(metric, &other.value, axis, &selected)?);
        } else {
            said.push(match claim.decision() {
                Decide::Each => claim.judge_each(metric, &selected, &read, points)?,
                Decide::Mean => claim.judge_mean(metric, &selected, &read, points)?,
                Decide::Half => claim.judge_half(metric, &selected, &read, points)?,
            });
        }
        if let (Some(trend), Some(axis)) = (&claim.monotone, &self.axis) {
            let curve = along(axis, &selected, |run| number(&read(run)?))?;
            let shown = show(&curve);
            let values: Vec<f64> = curve.iter().map(|&(_, value)| value).collect();
            if !trend.value.holds(&values) {
                return Err(format!("{} along {axis} is {shown}", claim.measured()));
            }
            said.push(shown);
        }
        Ok(said.join("; "))
    }
}

impl Claim {
    fn decision(&self) -> Decide {
        self.decide.as_ref().map_or(Decide::Each, |decide| decide.value)
    }

    /// Keys that have no part in what the claim says.
    fn check_keys(&self, findings: &mut Findings) {
        let span = |key: Option<Span>, name| key.map(|span| (span, name));
        let crossover = [
            span(self.ratio_to.as_ref().map(|at| at.span), "ratio_to"),
            span(self.against.as_ref().map(|at| at.span), "against"),
            span(self.equals.as_ref().map(|at| at.span), "equals"),
            span(self.never.as_ref().map(|at| at.span), "never"),
            span(self.ordered.as_ref().map(|at| at.span), "ordered"),
            span(self.monotone.as_ref().map(|at| at.span), "monotone"),
            span(self.decide.as_ref().map(|at| at.span), "decide"),
        ];
        for (span, key) in crossover.into_iter().flatten().filter(|_| self.crossover.is_some()) {
            let message = format!("`{key}` has no part in a crossover");
            let help = "a crossover is of means; at_least, at_most and within say where it is";
            findings.error("scenario::claim", span, message, help);
        }
        if let Some(over) = self.over.as_ref().filter(|_| self.crossover.is_none() && self.monotone.is_none())
        {
            let help = "leave it out: without one of them a claim is of each point";
            findings.error("scenario::claim", over.span, "`over` without monotone or crossover", help);
        }
    }

    /// Seeds that decide together must be some, and what they decide must be a matter of more or less.
    fn check_decision(&self, axes: &[Axis], findings: &mut Findings) {
        let Some(decide) = self.decide.as_ref().filter(|decide| decide.value != Decide::Each) else { return };
        let chosen = self.only.iter().flat_map(|only| &only.value.0).find(|axis| axis.path.value == SEED);
        let swept = axes.iter().find(|axis| axis.path.value == SEED);
        let seeds = match (chosen.or(swept), swept) {
            // Paired with another axis, each point has one.
            (_, Some(axis)) if axis.is_paired => 1,
            (Some(axis), _) => distinct(&axis.values),
            (None, _) => 1,
        };
        if seeds < SEEDS_MIN {
            let plural = if seeds == 1 { "" } else { "s" };
            let message = format!("`decide` = {} of {seeds} seed{plural}", inline(&decide.value.encode()));
            let help = format!(
                "sweep \"{SEED}\" over at least {SEEDS_MIN} values in the grid, or leave `decide` out"
            );
            findings.error("scenario::claim", decide.span, message, help);
        }
        let is_exact = self.equals.is_some() || self.never.is_some() || self.ordered.is_some();
        if decide.value == Decide::Mean && is_exact {
            let help = "a mean has at_least, at_most, within; decide = \"half\" goes with all";
            findings.error(
                "scenario::claim",
                decide.span,
                "a mean is not held against equals, never or ordered",
                help,
            );
        }
    }

    /// Numbers are compared with numbers, and texts are equal or not.
    fn check_types(&self, metric: &Metric, findings: &mut Findings) {
        self.check_others(metric, findings);
        let mut refuse = |span, message: String, help: &str| {
            findings.error("scenario::claim", span, format!("metric `{}`: {message}", metric.text()), help);
        };
        let ends =
            [&self.at_least, &self.at_most].map(|end| end.as_ref().filter(|_| self.crossover.is_none()));
        if let [Some(low), Some(high)] = ends
            && let (Ok(lowest), Ok(highest)) = (low.value.value(metric), high.value.value(metric))
            && lowest > highest
        {
            refuse(high.span, "`at_most` is below `at_least`".into(), "no value is both");
        }
        if let Some(At { value: Ordered::Metrics(list), span }) = &self.ordered
            && list.is_empty()
        {
            refuse(
                *span,
                "`ordered` has nothing to follow it".into(),
                "such as [\"flows.tcp[0].goodput_bps\"]",
            );
        }
        if let Some(within) = self.within.as_ref().filter(|_| self.crossover.is_none())
            && let [low, high] = within.value.as_slice()
            && let (Ok(lowest), Ok(highest)) = (low.value.value(metric), high.value.value(metric))
            && lowest > highest
        {
            refuse(within.span, "`within` ends below its beginning".into(), "write [lowest, highest]");
        }
        if let Some(At { value: Scalar(Value::Boolean(_)), span }) = &self.equals
            && metric.unit_name() != "complete"
            && metric.unit_name() != "seed_used"
        {
            refuse(*span, "a number is not true or false".into(), "write a number");
        }
        if metric.is_text() {
            let bounds = self.at_least.iter().chain(&self.at_most).map(|bound| bound.span);
            let others = self.within.iter().map(|within| within.span);
            let others = others.chain(self.never.iter().map(|never| never.span));
            let others = others.chain(self.ordered.iter().map(|ordered| ordered.span));
            let others = others.chain(self.monotone.iter().map(|trend| trend.span));
            if let Some(span) = bounds.chain(others).next() {
                refuse(span, "a text is not compared with a number".into(), "a text has equals = \"...\"");
            }
        } else if let Some(At { value: Scalar(Value::String(text)), span }) = &self.equals
            && let Err(message) = quantity(text, metric.unit_name())
        {
            refuse(*span, message, "write a number in the metric's unit");
        }
        let is_one = !metric.is_list();
        if let Some(At { value: Ordered::Elements(_), span }) = self.ordered.as_ref().filter(|_| is_one) {
            refuse(
                *span,
                "it is one number, which has no order".into(),
                "order a metric of a group, such as flows.ftp.goodput_bps, or give metrics that follow this one",
            );
        }
        if let Some(decide) = self.decide.as_ref().filter(|decide| decide.value == Decide::Mean && !is_one) {
            refuse(
                decide.span,
                "it is a list, which has no mean over seeds".into(),
                "such as sum(...) or min(...)",
            );
        }
    }

    /// Metrics beside the first are numbers, one each; so is the first where it is compared with them, or along an axis.
    fn check_others(&self, metric: &Metric, findings: &mut Findings) {
        let ordered = match &self.ordered {
            Some(At { value: Ordered::Metrics(list), .. }) => list.as_slice(),
            _ => &[],
        };
        let others = self.ratio_to.iter().chain(&self.crossover).chain(ordered);
        for other in others.clone() {
            if other.value.is_text() || other.value.is_list() {
                let what = if other.value.is_text() { "a text" } else { "a list" };
                let message = format!("metric `{}` is {what}, not a number", other.value.text());
                findings.error("scenario::claim", other.span, message, "such as sum(...), min(...) or [0]");
            }
        }
        let is_compared = others.count() > 0 || self.against.is_some() || self.monotone.is_some();
        if let Some(first) = self.metric.as_ref().filter(|_| is_compared && metric.is_list()) {
            let message = format!("metric `{}` is a list, and is compared as a number", metric.text());
            findings.error("scenario::claim", first.span, message, "such as sum(...), min(...) or [0]");
        }
        if self.crossover.is_some() {
            let bounds = self.at_least.iter().chain(&self.at_most);
            let bounds = bounds.chain(self.within.iter().flat_map(|within| &within.value));
            for bound in bounds.filter(|bound| bound.value.on_axis().is_none()) {
                let message = "a bound of a crossover is no value of an axis";
                findings.error("scenario::claim", bound.span, message, "such as 0.01 or \"10 Mbit/s\"");
            }
        }
    }

    fn axis(&self, span: Span, axes: &[String], findings: &mut Findings) -> Option<String> {
        if let Some(over) = &self.over {
            if axes.contains(&over.value) {
                return Some(over.value.clone());
            }
            let message = format!("`over` names `{}`, which the sweep does not vary", over.value);
            let help = crate::diagnostic::choices(&over.value, axes.iter().map(String::as_str));
            findings.error("scenario::claim", over.span, message, help);
            return None;
        }
        let others: Vec<&String> = axes.iter().filter(|axis| *axis != "run.seed").collect();
        if let [axis] = others.as_slice() {
            return Some((*axis).clone());
        }
        let message = format!("along which axis? The sweep has {} beside run.seed", others.len());
        findings.error("scenario::claim", span, message, "add over = \"...\", a path of the sweep");
        None
    }

    fn is_about(&self, run: &Observation) -> bool {
        self.only.as_ref().is_none_or(|only| only.value.has(run))
    }

    /// What the claim looks at, in words.
    fn measured(&self) -> String {
        let text = |metric: &Option<At<Metric>>| metric.as_ref().map(|metric| metric.value.text().to_owned());
        let main = text(&self.metric).unwrap_or_default();
        let base = text(&self.ratio_to);
        match &self.against {
            None => base.map_or(main.clone(), |base| format!("{main} / {base}")),
            Some(against) => {
                let of = |axis: &Axis| Some((axis.path.value.clone(), inline(&axis.values.first()?.value)));
                let values: Vec<_> = against.value.0.iter().filter_map(of).collect();
                format!("{main} / {}{}", base.as_ref().unwrap_or(&main), place(&values))
            }
        }
    }

    /// The metric of a run, as the claim looks at it.
    fn reading(&self, metric: &Metric, run: &Observation, bases: &Bases<'_>) -> Result<Reading, String> {
        let reading = run.read(metric);
        if self.ratio_to.is_none() && self.against.is_none() {
            return Ok(reading.clone());
        }
        let base = self.ratio_to.as_ref().map_or(metric, |base| &base.value);
        let ratio = || match (number(reading)?, number(self.base_run(run, bases)?.read(base))?) {
            (_, 0.0) => Err(format!("{} is 0, and nothing to divide by", base.text())),
            (number, base) => Ok(number / base),
        };
        ratio().map(Reading::Number).map_err(|error: String| error + &place(&run.settings))
    }

    /// The run that `against` means: that with its values, all else equal.
    fn base_run<'a>(&self, run: &'a Observation, bases: &Bases<'a>) -> Result<&'a Observation, String> {
        if self.against.is_none() {
            return Ok(run);
        }
        bases.get(&self.beside(run)).copied().ok_or_else(|| "`against` means no run".into())
    }

    /// The runs that have the values of `against`, by their other values.
    fn bases<'a>(&self, runs: &'a [Observation]) -> Bases<'a> {
        let mut bases = Bases::new();
        for run in
            runs.iter().filter(|run| self.against.as_ref().is_some_and(|against| against.value.has(run)))
        {
            bases.entry(self.beside(run)).or_insert(run);
        }
        bases
    }

    /// The values of a run that `against` says nothing of.
    fn beside<'a>(&self, run: &'a Observation) -> Vec<&'a (String, String)> {
        let against = self.against.iter().flat_map(|against| &against.value.0);
        let varied: Vec<&str> = against.map(|axis| axis.path.value.as_str()).collect();
        run.settings.iter().filter(|(path, _)| !varied.contains(&path.as_str())).collect()
    }

    /// What the claim says of the mean over the seeds, at each point.
    fn judge_mean(
        &self,
        metric: &Metric,
        runs: &[&Observation],
        read: Read<'_>,
        points: &mut Vec<Judged>,
    ) -> Result<String, String> {
        let mut said = Said::default();
        for (point, runs) in by_point(runs) {
            let value = |run: &&Observation| number(&read(run)?).map_err(|why| why + &place(&run.settings));
            let values: Vec<f64> = runs.iter().map(value).collect::<Result<_, String>>()?;
            let estimate = Estimate::of(&values)
                .filter(|_| values.len() >= SEEDS_MIN)
                .ok_or_else(|| format!("{} seeds are too few{}", values.len(), place(&point)))?;
            let text = format!("{} ± {}", significant(estimate.mean), significant(estimate.half));
            let judge = |end| self.judge_reading(metric, runs[0], &Reading::Number(end));
            let cell = Cell::Interval(Some(estimate.mean), Some(estimate.half));
            said.add(&point, text, cell, judge(estimate.low()).and_then(|()| judge(estimate.high())));
        }
        points.append(&mut said.points);
        said.of(&self.measured())
    }

    /// What the claim says of half of the seeds, at each point.
    fn judge_half(
        &self,
        metric: &Metric,
        runs: &[&Observation],
        read: Read<'_>,
        points: &mut Vec<Judged>,
    ) -> Result<String, String> {
        let mut said = Said::default();
        for (point, runs) in by_point(runs) {
            let holds = |run: &&&Observation| -> bool {
                read(run).and_then(|reading| self.judge_reading(metric, run, &reading)).is_ok()
            };
            let holding = runs.iter().filter(holds).count();
            let text = format!("{holding} of {} seeds", runs.len());
            let cell = Cell::Text(text.clone());
            said.add(
                &point,
                text,
                cell,
                if 2 * holding < runs.len() { Err("less than half".into()) } else { Ok(()) },
            );
        }
        points.append(&mut said.points);
        said.of(&self.measured())
    }

    /// What the claim says of each run.
    fn judge_each(
        &self,
        metric: &Metric,
        runs: &[&Observation],
        read: Read<'_>,
        points: &mut Vec<Judged>,
    ) -> Result<String, String> {
        let mut seen: Vec<f64> = Vec::new();
        let mut said = Said::default();
        for run in runs {
            let reading = read(run)?;
            let cell = match &reading {
                Reading::Number(value) => Cell::Number(Some(*value), Quantity::Any),
                other => Cell::Text(other.to_string()),
            };
            let judged = self.judge_reading(metric, run, &reading);
            said.add(&run.settings, reading.to_string(), cell, judged);
            match reading {
                Reading::List(list) => seen.extend(list.iter().filter_map(Reading::number)),
                reading => seen.extend(reading.number()),
            }
        }
        // A thousand runs that hold are a range.
        points.extend(said.points.drain(..).filter(|point| !point.holds));
        said.of(&self.measured())?;
        let (low, high) =
            seen.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
        Ok(match seen.len() {
            0 => "no value".into(),
            1 => significant(low),
            count => format!("{} to {} in {count} values", significant(low), significant(high)),
        })
    }

    fn judge_reading(&self, metric: &Metric, run: &Observation, reading: &Reading) -> Result<(), String> {
        let readings = match reading {
            Reading::List(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        let ask = |name: &str, bound: &Bound, holds: fn(f64, f64) -> bool| {
            let limit = bound.value(metric)?;
            let all =
                readings.iter().all(|reading| reading.number().is_some_and(|value| holds(value, limit)));
            if all { Ok(()) } else { Err(format!("{name} {limit}")) }
        };
        if let Some(bound) = &self.at_least {
            ask("at_least", &bound.value, |value, limit| value >= limit)?;
        }
        if let Some(bound) = &self.at_most {
            ask("at_most", &bound.value, |value, limit| value <= limit)?;
        }
        if let Some([low, high]) = self.within.as_ref().map(|within| within.value.as_slice()) {
            ask("within: at least", &low.value, |value, limit| value >= limit)?;
            ask("within: at most", &high.value, |value, limit| value <= limit)?;
        }
        if let Some(At { value: Scalar(wanted), .. }) = &self.equals {
            let is_equal = |reading: &Reading| match (reading, wanted) {
                (Reading::Number(number), Value::Float(wanted)) => number == wanted,
                (Reading::Number(number), Value::Integer(wanted)) => *number == *wanted as f64,
                (Reading::Number(number), Value::Boolean(wanted)) => *number == f64::from(u8::from(*wanted)),
                (Reading::Number(number), Value::String(wanted)) => {
                    quantity(wanted, metric.unit_name()) == Ok(*number)
                }
                (Reading::Text(text), Value::String(wanted)) => text == wanted,
                _ => false,
            };
            if !readings.iter().all(is_equal) {
                return Err(format!("equals {}", inline(wanted)));
            }
        }
        match self.never.as_ref().map(|never| &never.value) {
            None => {}
            Some(Never::Anything) => {
                let happened =
                    |reading: &Reading| *reading != Reading::Nothing && reading.number() != Some(0.0);
                if readings.iter().any(happened) {
                    return Err("never".into());
                }
            }
            Some(Never::Compares(text)) => {
                let comparison = Comparison::parse(text, metric.unit_name())?;
                if readings.iter().filter_map(Reading::number).any(|value| comparison.holds(value)) {
                    return Err(format!("never {text}"));
                }
            }
        }
        match self.ordered.as_ref().map(|ordered| &ordered.value) {
            None => Ok(()),
            Some(Ordered::Elements(trend)) => {
                let numbers: Vec<f64> = readings.iter().map(number).collect::<Result<_, _>>()?;
                if trend.holds(&numbers) { Ok(()) } else { Err("not in order".into()) }
            }
            Some(Ordered::Metrics(list)) => {
                let mut numbers = vec![number(reading)?];
                for other in list {
                    numbers.push(number(run.read(&other.value))?);
                }
                if Trend::Decreasing.holds(&numbers) {
                    Ok(())
                } else {
                    Err(format!("not in order: {numbers:?}"))
                }
            }
        }
    }

    /// Where the difference of the two metrics changes its sign, between the axis' values by a
    /// straight line.
    fn judge_crossover(
        &self,
        metric: &Metric,
        other: &Metric,
        axis: &str,
        runs: &[&Observation],
    ) -> Result<String, String> {
        let curve = along(axis, runs, |run| Ok(number(run.read(metric))? - number(run.read(other))?))?;
        let shown = show(&curve);
        let mut crossings = Vec::new();
        for pair in curve.windows(2) {
            let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
            if (y0 > 0.0) != (y1 > 0.0) {
                crossings.push(x0 + (x1 - x0) * (y0 / (y0 - y1)));
            }
        }
        let [at] = crossings[..] else {
            return Err(format!("{} crossings along {axis}; differences {shown}", crossings.len()));
        };
        let said = format!("crossover at {axis} = {at}");
        let bound = |bound: &Bound| bound.on_axis().ok_or("a bound is no value of an axis");
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        if let Some([from, to]) = self.within.as_ref().map(|within| within.value.as_slice()) {
            (low, high) = (bound(&from.value)?, bound(&to.value)?);
        }
        if let Some(from) = &self.at_least {
            low = low.max(bound(&from.value)?);
        }
        if let Some(to) = &self.at_most {
            high = high.min(bound(&to.value)?);
        }
        if (low..=high).contains(&at) { Ok(said) } else { Err(format!("{said}, not in [{low}, {high}]")) }
    }
}

/// How many of them differ.
pub(crate) fn distinct(values: &[Node]) -> usize {
    values.iter().map(|node| inline(&node.value)).collect::<std::collections::BTreeSet<_>>().len()
}

type Settings = Vec<(String, String)>;
/// Runs that others are compared with, by what both have in common.
type Bases<'a> = BTreeMap<Vec<&'a (String, String)>, &'a Observation>;
/// Reads a run as a claim looks at it.
type Read<'a> = &'a dyn Fn(&Observation) -> Result<Reading, String>;

/// More points that fail are counted, not listed.
const FAILING_SHOWN: usize = 4;

/// What is said of points, good ones and bad ones.
#[derive(Default)]
struct Said {
    good: Vec<String>,
    bad: Vec<String>,
    /// What the first bad one missed.
    why: String,
    points: Vec<Judged>,
}

impl Said {
    fn add(&mut self, at: &[(String, String)], text: String, measured: Cell, judged: Result<(), String>) {
        let text = format!("{text}{}", place(at));
        self.points.push(Judged { at: at.to_vec(), measured, holds: judged.is_ok() });
        match judged {
            Ok(()) => self.good.push(text),
            Err(why) => {
                if self.bad.is_empty() {
                    self.why = why;
                }
                self.bad.push(text);
            }
        }
    }

    fn of(&self, measured: &str) -> Result<String, String> {
        if self.bad.is_empty() {
            return Ok(self.good.join("; "));
        }
        let shown = self.bad.iter().take(FAILING_SHOWN).cloned().collect::<Vec<_>>().join("; ");
        let all = self.good.len() + self.bad.len();
        let more = match self.bad.len().saturating_sub(FAILING_SHOWN) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let of = if all > 1 { format!(" ({} of {all})", self.bad.len()) } else { String::new() };
        Err(format!("{measured} is {shown}{more}: {}{of}", self.why))
    }
}

/// Runs that differ by their seed alone, point by point, in the order of the sweep.
fn by_point<'a>(runs: &[&'a Observation]) -> Vec<(Settings, Vec<&'a Observation>)> {
    let mut points: Vec<(Settings, Vec<&Observation>)> = Vec::new();
    let mut places = BTreeMap::new();
    for run in runs {
        let point: Settings = run.settings.iter().filter(|(path, _)| path != SEED).cloned().collect();
        let place = *places.entry(point.clone()).or_insert(points.len());
        match points.get_mut(place) {
            Some((_, runs)) => runs.push(run),
            None => points.push((point, vec![run])),
        }
    }
    points
}

/// Where in a sweep, for messages.
fn place(settings: &[(String, String)]) -> String {
    if settings.is_empty() {
        return String::new();
    }
    // What is zipped to be the same in several places is said once.
    let key = |path: &str| path.rsplit('.').next().map(str::to_owned);
    let is_new = |(index, (path, value)): &(usize, &(String, String))| {
        settings[..*index].iter().all(|(other, same)| key(other) != key(path) || same != value)
    };
    let list: Vec<String> = settings
        .iter()
        .enumerate()
        .filter(is_new)
        .map(|(_, (path, value))| format!("{path} = {value}"))
        .collect();
    format!(" at {}", list.join(", "))
}

fn number(reading: &Reading) -> Result<f64, String> {
    reading.number().ok_or_else(|| format!("{reading} is no number"))
}

/// A value of an axis on a number line: rates in bit/s, times in s, amounts in bytes or packets.
pub(crate) fn axis_value(value: &Value) -> Option<f64> {
    use congestlab_core::units::{BitRate, Bytes, Duration};
    match value {
        Value::Integer(integer) => Some(*integer as f64),
        Value::Float(float) => Some(*float),
        Value::String(text) => {
            let leading = text.split_whitespace().next().and_then(|number| number.parse().ok());
            let rate = text.parse::<BitRate>().ok().map(|rate| rate.0 as f64);
            let span = || text.parse::<Duration>().ok().map(|span| span.0 as f64 / 1e9);
            let bytes = || text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64);
            rate.or_else(span).or_else(bytes).or(leading)
        }
        _ => None,
    }
}

/// The mean of `value` at each value of the axis, in the order of the axis.
fn along(
    axis: &str,
    runs: &[&Observation],
    value: impl Fn(&Observation) -> Result<f64, String>,
) -> Result<Vec<(f64, f64)>, String> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for run in runs {
        let setting = run.setting(axis).ok_or_else(|| format!("a run has no {axis}"))?;
        let parsed = crate::tree::value_of(setting).and_then(|value| axis_value(&value));
        let x = parsed.ok_or_else(|| format!("{axis} = {setting} is not on a number line"))?;
        points.push((x, value(run)?));
    }
    points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mean = |same: &[(f64, f64)]| same.iter().map(|(_, y)| y).sum::<f64>() / same.len() as f64;
    Ok(points.chunk_by(|(a, _), (b, _)| a == b).map(|same| (same[0].0, mean(same))).collect())
}

fn show(curve: &[(f64, f64)]) -> String {
    let list: Vec<String> =
        curve.iter().map(|(x, y)| format!("{}: {}", significant(*x), significant(*y))).collect();
    list.join(", ")
}
