//! Claims about results, and whether they hold.
//!
//! A claim names a metric and what it should be. Most speak of each run by itself; `monotone` and
//! `crossover` speak of a sweep's runs along one of its axes. How runs are judged is in `claims/verdict.rs`.

mod rule;
mod verdict;

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, json_schema};
pub use verdict::{Judged, Judgement, MoreRuns, Settings, Verdict, Worst};

use crate::judging::grid::{Axes, Axis, distinct};
use crate::judging::metric::{Elements, Metric, Reading, quantity};
pub use crate::judging::observation::Observation;
use crate::judging::seeds::{SEED, SEEDS_MIN};
use congestlab_text::decode::{At, Language, record, words, wrong_type};
use congestlab_text::diagnostic::{Findings, Sources, Span, choices};
use congestlab_text::tree::{Entry, Node, Table, Value, inline};
use rule::{Along, Limit, Rule};

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
        /// What several seeds must do: "each" of them (absent); "mean": the interval of confidence of their mean is within the bounds; "half": half of them or more.
        decide: Decide,
        /// The claim's cause switched off, as settings by path: then it must not hold. false: it is about no effect, and has none. A text: why no cause can be switched off. Absent: that of [figure].
        control: Control,
        /// Of a claim that fails: why, and what shows it.
        cause: String,
        /// Of a claim that fails, what its cause is: "ns-2", it fails there too; "closed form", the paper contradicts one; "assumed", a value that the paper does not give; "open", nobody knows.
        tag: Tag,
        /// Of a claim that fails for an assumed value: which one, as the figure's `assumed` names it, if ranges.toml says that another value turns it; or the words of another claim, which holds; or another figure, in which one of the same words or quote does.
        experiment: String,
    }
}

words! {
    /// How seeds decide.
    Decide {
        /// Each run holds.
        Each = "each",
        /// The interval of confidence of the mean is within the bounds.
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

/// A cause switched off.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    /// There is none to switch off.
    Nothing,
    /// None can be switched off, and this is why.
    Reason(String),
    Settings(Vec<(At<String>, Node)>),
}

impl Control {
    pub(crate) fn settings(&self) -> &[(At<String>, Node)] {
        match self {
            Self::Nothing | Self::Reason(_) => &[],
            Self::Settings(settings) => settings,
        }
    }
}

impl Language for Control {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::Boolean(false) => Some(Self::Nothing),
            Value::String(reason) if !reason.trim().is_empty() => Some(Self::Reason(reason.clone())),
            Value::Table(Table(entries)) if !entries.is_empty() => {
                let setting =
                    |entry: &Entry| (At { value: entry.key.clone(), span: entry.span }, entry.node.clone());
                Some(Self::Settings(entries.iter().map(setting).collect()))
            }
            _ => {
                let help = "such as { \"links.bottleneck.ack_loss\" = 0 }, or false, or why there is none";
                wrong_type(node, "a table of settings by path, false, or a reason in words", help, findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Nothing => Value::Boolean(false),
            Self::Reason(reason) => Value::string(reason.as_str()),
            Self::Settings(list) => {
                Value::table(list.iter().map(|(path, node)| (path.value.clone(), node.value.clone())))
            }
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "const": false },
                { "type": "string", "minLength": 1 },
                { "type": "object", "minProperties": 1 },
            ]
        })
    }
}

/// What is said of the cause of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controlled {
    /// Nothing.
    Unsaid,
    /// It is about no effect.
    NoEffect,
    /// Why its cause can not be switched off.
    Reason(String),
    /// A control switches it off.
    SwitchedOff,
}

words! {
    /// What the cause of a failure is.
    Tag {
        /// ns-2 fails too.
        Ns2 = "ns-2",
        /// The paper contradicts a closed form.
        ClosedForm = "closed form",
        /// A value that the paper does not give.
        Assumed = "assumed",
        /// Nobody knows.
        Open = "open",
    }
}

/// A claim of a scenario, checked to be about it and parsed into what it says.
#[derive(Clone, Debug)]
pub struct CheckedClaim {
    claim: Claim,
    metric: Metric,
    limits: Vec<Limit>,
    rules: Vec<Rule>,
    /// Path of an axis, and what is said along it.
    along: Option<(String, Along)>,
    /// Zipped paths of the sweep that follow from others.
    followers: Vec<String>,
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
        for metric in claim.metrics_mut() {
            let span = metric.span;
            metric.value.check(span, elements, findings);
        }
        let metric = claim.metric.as_ref()?.value.clone();
        if claim.is_silent() {
            let help = "add at_least, at_most, within, equals, never, ordered, monotone or crossover";
            findings.error("scenario::claim", span, "a claim says nothing about its metric", help);
        }
        claim.check_points(axes, findings);
        claim.check_others(&metric, findings);
        let limits = claim.limits(&metric, findings);
        let rules = claim.rules(&metric, findings);
        claim.check_mean(&metric, findings);
        let crossover = claim.crossover.as_ref().map(|other| Along::Crossover(other.value.clone()));
        let along = match crossover.or(claim.monotone.as_ref().map(|trend| Along::Trend(trend.value))) {
            Some(along) => Some((claim.axis(span, axes, findings)?, along)),
            None => None,
        };
        Some(Self { claim: claim.clone(), metric, limits, rules, along, followers: followers(axes) })
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
        self.along.as_ref().map(|(axis, _)| axis.as_str())
    }

    /// Why it fails.
    pub fn cause(&self) -> Option<&str> {
        self.claim.cause.as_ref().map(|cause| cause.value.as_str())
    }

    /// What its cause is, in a word.
    pub fn tag(&self) -> Option<&'static str> {
        let tag = self.claim.tag.as_ref()?.value;
        Tag::WORDS.iter().find(|(_, other)| *other == tag).map(|(word, _)| *word)
    }

    /// The figure in which another value of what is assumed turns it.
    pub fn experiment(&self) -> Option<&str> {
        self.claim.experiment.as_ref().map(|name| name.value.as_str())
    }

    /// The same without a control.
    pub(crate) fn without_control(&self) -> Self {
        let mut claim = self.clone();
        claim.claim.control = Some(At { value: Control::Nothing, span: Span::default() });
        claim
    }

    /// What of it the links and flows of another scenario do not have.
    pub(crate) fn unread(&self, elements: &Elements, sources: &Sources) -> Option<&str> {
        let is_missing = |metric: &Metric| {
            let mut findings = Findings::new(sources.clone());
            metric.clone().check(Span::default(), elements, &mut findings);
            findings.has_errors()
        };
        self.metrics().into_iter().find(|metric| is_missing(metric)).map(Metric::text)
    }

    /// The run is of one of these points, or what the claim compares them with.
    pub(crate) fn is_about_one_of(&self, points: &[Settings], run: &Observation) -> bool {
        points.contains(&run.point())
            || self.claim.against.as_ref().is_some_and(|against| against.value.has(run))
    }

    /// In the runs of which it is made it reads what another claim with the same metrics reads in its own.
    pub fn reads_the_same(&self, runs: &[Observation], other: &Self, others: &[Observation]) -> bool {
        let read = |claim: &Self, runs: &[Observation]| -> Vec<Vec<Reading>> {
            let about = runs.iter().filter(|run| claim.claim.is_about(run));
            about.map(|run| self.metrics().iter().map(|metric| run.read(metric).clone()).collect()).collect()
        };
        read(self, runs) == read(other, others)
    }

    /// What it says of its control itself.
    pub(crate) fn control(&self) -> Option<&Control> {
        self.claim.control.as_ref().map(|control| &control.value)
    }

    /// It compares, by what it reads or in the source's words, and so is about an effect.
    pub fn is_about_an_effect(&self) -> bool {
        let Claim { ratio_to, against, monotone, crossover, ordered, .. } = &self.claim;
        let metrics = matches!(ordered, Some(At { value: Ordered::Metrics(_), .. }));
        let is_compared = ratio_to.is_some() || against.is_some() || metrics;
        is_compared
            || monotone.is_some()
            || crossover.is_some()
            || self.quote().is_some_and(|quote| {
                let mut words = quote.split(|letter: char| !letter.is_alphabetic()).map(str::to_lowercase);
                words.any(|word| EFFECTS.iter().any(|effect| word.starts_with(effect)))
            })
    }

    /// The claim about the points of the sweep that have the values of a control.
    pub(crate) fn at(&self, control: &Control, swept: &[String]) -> Self {
        let mut claim = self.clone();
        for (path, node) in control.settings().iter().filter(|(path, _)| swept.contains(&path.value)) {
            let only = claim.claim.only.get_or_insert(At { value: Axes::default(), span: path.span });
            only.value.0.retain(|axis| axis.path.value != path.value);
            only.value.0.push(Axis { path: path.clone(), values: vec![node.clone()], is_paired: false });
        }
        claim
    }

    /// Of several seeds the mean decides.
    pub(crate) fn is_of_means(&self) -> bool {
        self.claim.decision() == Decide::Mean
    }

    /// Every metric that has to be read in each run.
    pub fn metrics(&self) -> Vec<&Metric> {
        let claim = &self.claim;
        let of_rules = self.rules.iter().flat_map(|rule| match rule {
            Rule::Metrics(list) => list.as_slice(),
            _ => &[],
        });
        let beside = claim.ratio_to.iter().chain(&claim.crossover).map(|at| &at.value);
        std::iter::once(&self.metric).chain(beside).chain(of_rules).collect()
    }

    /// The run is one of those of which the claim is made, or to which it compares.
    pub fn is_about(&self, run: &Observation) -> bool {
        self.claim.is_about(run) || self.claim.against.as_ref().is_some_and(|against| against.value.has(run))
    }
}

/// How words begin with which a source compares, or names a cause.
const EFFECTS: [&str; 9] =
    ["because", "compar", "decreas", "degrad", "improv", "increas", "outperform", "reduc", "than"];

impl Claim {
    /// Every metric that it names.
    fn metrics_mut(&mut self) -> impl Iterator<Item = &mut At<Metric>> {
        let ordered = match &mut self.ordered {
            Some(At { value: Ordered::Metrics(metrics), .. }) => metrics.as_mut_slice(),
            _ => &mut [],
        };
        self.metric.iter_mut().chain(&mut self.ratio_to).chain(&mut self.crossover).chain(ordered)
    }

    fn is_silent(&self) -> bool {
        let has_bound = self.at_least.is_some() || self.at_most.is_some() || self.within.is_some();
        let has_rule = self.equals.is_some() || self.never.is_some() || self.ordered.is_some();
        !has_bound && !has_rule && self.monotone.is_none() && self.crossover.is_none()
    }

    /// The points that it names are points of the sweep.
    fn check_points(&self, swept: &[Axis], findings: &mut Findings) {
        for (key, chosen) in [("only", &self.only), ("against", &self.against)] {
            if let Some(chosen) = chosen {
                chosen.value.check(key, swept, "scenario::claim", findings);
            }
        }
        let Some(against) = &self.against else { return };
        if let Some(axis) = against.value.0.iter().find(|axis| axis.values.len() > 1) {
            let message = format!("`against` has {} values of `{}`", axis.values.len(), axis.path.value);
            findings.error("scenario::claim", axis.path.span, message, "a ratio is to one point");
        }
        let chosen = against.value.0.iter();
        let values: Vec<(&str, &Node)> =
            chosen.filter_map(|axis| Some((axis.path.value.as_str(), axis.values.first()?))).collect();
        if let Some(message) = no_pair(&values, swept) {
            findings.error("scenario::claim", against.span, format!("`against` {message}"), PAIRS);
        }
    }

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
        let is_assumed = self.tag.as_ref().is_some_and(|tag| tag.value == Tag::Assumed);
        match (&self.tag, &self.experiment) {
            (Some(tag), None) if is_assumed => {
                let message = "`tag` = \"assumed\" without an `experiment`";
                let help = "name the figure in which another value turns the claim";
                findings.error("scenario::claim", tag.span, message, help);
            }
            (_, Some(experiment)) if !is_assumed => {
                let help = "it goes with tag = \"assumed\"";
                findings.error("scenario::claim", experiment.span, "`experiment` of no assumption", help);
            }
            _ => {}
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

    /// A list has no mean over seeds.
    fn check_mean(&self, metric: &Metric, findings: &mut Findings) {
        let Some(decide) = self.decide.as_ref().filter(|decide| decide.value == Decide::Mean) else { return };
        if metric.is_list() {
            let message = format!("metric `{}`: it is a list, which has no mean over seeds", metric.text());
            findings.error("scenario::claim", decide.span, message, "such as sum(...) or min(...)");
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
    }

    /// The path of the axis along which it is, which has numbers.
    fn axis(&self, span: Span, swept: &[Axis], findings: &mut Findings) -> Option<String> {
        let path = self.path_of_axis(span, swept, findings)?;
        let of = |axes: &[Axis]| axes.iter().find(|other| other.path.value == path).cloned();
        let chosen = self.only.as_ref().and_then(|only| of(&only.value.0));
        let along = chosen.or_else(|| of(swept)).map_or(Vec::new(), |axis| axis.values);
        if distinct(&along) < 2 {
            let message = format!("`{path}` has one value, along which nothing changes");
            findings.error("scenario::claim", span, message, "monotone and crossover want two or more");
        }
        if let Some(value) = along.iter().find(|value| axis_value(&value.value).is_none()) {
            let message = format!("`{path}` has {}, which is not on a number line", inline(&value.value));
            let help = "monotone and crossover want an axis of numbers";
            findings.error("scenario::claim", span, message, help);
        }
        Some(path)
    }

    fn path_of_axis(&self, span: Span, swept: &[Axis], findings: &mut Findings) -> Option<String> {
        let paths = || swept.iter().map(|axis| axis.path.value.as_str());
        if let Some(over) = &self.over {
            if paths().any(|path| path == over.value) {
                return Some(over.value.clone());
            }
            let message = format!("`over` names `{}`, which the sweep does not vary", over.value);
            findings.error("scenario::claim", over.span, message, choices(&over.value, paths()));
            return None;
        }
        let others: Vec<&str> = paths().filter(|path| *path != SEED).collect();
        if let [path] = others[..] {
            return Some(path.to_owned());
        }
        let message = format!("along which axis? The sweep has {} beside {SEED}", others.len());
        findings.error("scenario::claim", span, message, "add over = \"...\", a path of the sweep");
        None
    }

    /// It chooses by values of the axis.
    fn chooses(&self, path: &str) -> bool {
        let axes = self.only.iter().chain(&self.against).flat_map(|axes| &axes.value.0);
        axes.into_iter().any(|axis| axis.path.value == path)
    }

    fn is_about(&self, run: &Observation) -> bool {
        self.only.as_ref().is_none_or(|only| only.value.has(run))
    }
}

/// What to write where [`no_pair`] finds a mistake.
pub(crate) const PAIRS: &str =
    "name every path of the zip, with values that stand at the same place of their lists";

/// Values of zipped axes that no point of the sweep has together.
pub(crate) fn no_pair(values: &[(&str, &Node)], swept: &[Axis]) -> Option<String> {
    let paired: Vec<&Axis> = swept.iter().filter(|axis| axis.is_paired).collect();
    let chosen =
        |axis: &Axis| values.iter().find(|(path, _)| *path == axis.path.value).map(|(_, node)| *node);
    let named = paired.iter().find(|axis| chosen(axis).is_some())?;
    if let Some(other) = paired.iter().find(|axis| chosen(axis).is_none()) {
        let (one, other) = (&named.path.value, &other.path.value);
        return Some(format!("names `{one}` and not `{other}`, which goes with it"));
    }
    let has = |place: usize| {
        paired.iter().all(|axis| {
            let there = axis.values.get(place).map(|node| inline(&node.value));
            there == chosen(axis).map(|node| inline(&node.value))
        })
    };
    let is_point = (0..named.values.len()).any(has);
    (!is_point).then(|| "has values of zipped paths that do not go together".to_owned())
}

/// The zipped paths that need not be told with a point, because their values follow from those of one that is: the first that
/// all others follow from, or as many as it takes. What a run lasts is told last.
fn followers(swept: &[Axis]) -> Vec<String> {
    let written = |axis: &Axis| axis.values.iter().map(|node| inline(&node.value)).collect::<Vec<_>>();
    let mut paired: Vec<_> =
        swept.iter().filter(|axis| axis.is_paired).map(|axis| (&axis.path.value, written(axis))).collect();
    paired.sort_by_key(|(path, _)| path.starts_with("run."));
    // Lists of different lengths are refused elsewhere.
    let point =
        |told: &[usize], place: usize| told.iter().map(|at| paired[*at].1.get(place)).collect::<Vec<_>>();
    let follows = |values: &[String], told: &[usize]| {
        let known: BTreeMap<_, _> =
            values.iter().enumerate().map(|(place, value)| (point(told, place), value)).collect();
        values.iter().enumerate().all(|(place, value)| known.get(&point(told, place)) == Some(&value))
    };
    let leads = |leader: &usize| paired.iter().all(|(_, values)| follows(values, &[*leader]));
    let mut told: Vec<usize> = (0..paired.len()).find(leads).into_iter().collect();
    for (at, (_, values)) in paired.iter().enumerate() {
        if told.is_empty() || !follows(values, &told) {
            told.push(at);
        }
    }
    let untold = paired.iter().enumerate().filter(|(at, _)| !told.contains(at));
    untold.map(|(_, (path, _))| (*path).clone()).collect()
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
