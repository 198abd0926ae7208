//! Metrics: paths into a result, functions over its arrays, and questions to the time series.
//!
//! ```text
//! links.bottleneck.utilization
//! flows.ftp[0].goodput_bps             mean(flows.ftp.goodput_bps)
//! links.bottleneck.queue_packets at 20 s
//! sum(flows.ftp.goodput_bps) mean over [10 s, 20 s]
//! flows.ftp[1].goodput_bps first time >= 5 Mbit/s after 2 s
//! jain(flows.ftp.goodput_bps) mean over [10 s, 20 s]
//! jain(flows.*.goodput_bps)            p99.9(flows.web.fct_s)
//! links.bottleneck.queue_packets at 20 s - links.bottleneck.queue_packets at 10 s
//! convergence_s                        convergence_s.ftp
//! ```

use std::collections::BTreeMap;
use std::fmt;

use congestlab_core::law::Protocol;
use congestlab_core::units::{BitRate, Bytes, Duration};
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::queue::{Discipline, Reason};
use congestlab_net::xcp_i::Stats;
use congestlab_sim::outcome::{FlowOutcome, LinkOutcome};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value as Json;

use crate::judging::fairness::jain;
use crate::judging::sum::{arrived_bits, measured_s, together};
use congestlab_text::decode::{Language, wrong_type};
use congestlab_text::diagnostic::{Findings, Span, choices};
use congestlab_text::path;
use congestlab_text::path::Step;
use congestlab_text::tree::{Node, Value};

pub use series::Series;
use series::{Name, Target};

/// (s, value), in the order of time.
pub type TimeSeries = Vec<(f64, f64)>;

/// Metrics of the time series, by element, beside those of the laws (docs/design/contract.md 5).
const LINK_SERIES: &[&str] = &[
    "throughput_bps",
    "queue_packets",
    "queue_bytes",
    "queue_max_packets",
    "queue_delay_ms",
    "estimate_bps",
    "truth_bps",
    "probe_bps",
    "collisions",
];
const FLOW_SERIES: &[&str] = &[
    "received_bps",
    "goodput_bps",
    "throughput_bps",
    "cwnd_packets",
    "srtt_ms",
    "estimate_bps",
    "truth_bps",
    "probe_bps",
];

/// The metric of the time from which flows share fairly: of all flows, or of a group.
pub(crate) const CONVERGENCE: &str = "convergence_s";

/// Of diagnostics.
const CODE: &str = "scenario::metric";

/// Names of the series of links, or of flows; those of several laws once.
fn series_of(links: bool) -> Vec<&'static str> {
    let mut names = if links { LINK_SERIES } else { FLOW_SERIES }.to_vec();
    for protocol in Protocol::all() {
        for column in if links { protocol.link_series } else { protocol.flow_series } {
            if !names.contains(&column.name) {
                names.push(column.name);
            }
        }
    }
    if links {
        names.extend(Discipline::all_series().map(|column| column.name));
    }
    names
}

/// The name of a series of links or flows, as samples have it.
pub(crate) fn series_name(name: &str) -> Option<&'static str> {
    [true, false].into_iter().flat_map(series_of).find(|known| *known == name)
}

/// Series of links of which there is one for each cloud.
const CLOUD_SERIES: &[&str] = &["estimate_bps", "truth_bps", "probe_bps"];

/// What the results of a scenario can have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elements {
    /// Names of links, one of each.
    pub(crate) links: Vec<(String, u64)>,
    /// Names of groups, and how many flows they have at most over all points of a sweep.
    pub(crate) flows: Vec<(String, u64)>,
    /// The longest run, ns; `None` if the file does not say.
    pub(crate) duration: Option<u64>,
}

/// A metric, parsed: one term, or terms added and subtracted.
#[derive(Clone, Debug)]
pub struct Metric {
    text: String,
    /// Each with its sign, 1 or -1; never empty.
    terms: Vec<(f64, Term)>,
}

/// A path, what is made of its array, and what is asked.
#[derive(Clone, Debug)]
struct Term {
    fold: Option<Fold>,
    steps: Vec<Step>,
    question: Question,
}

/// What makes one number of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fold {
    Sum,
    Mean,
    Min,
    Max,
    /// Jain's index; of answers, where the others are of values.
    Jain,
    /// A percentile.
    Percentile(Percent),
}

impl Fold {
    fn in_words(self) -> String {
        match self {
            Self::Sum => "sum".into(),
            Self::Mean => "mean".into(),
            Self::Min => "least".into(),
            Self::Max => "greatest".into(),
            Self::Jain => "Jain's index".into(),
            Self::Percentile(percent) => format!("p{}", percent.0 as f64 / 1e7),
        }
    }
}

/// From 0 to 100, in billionths: whole numbers have no rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(u64);

impl Percent {
    const WHOLE: u64 = 1_000_000_000;

    /// So many hundredths, at most 100.
    pub(crate) const fn whole(hundredths: u64) -> Self {
        Self(hundredths * (Self::WHOLE / 100))
    }

    /// `p99.9`: this, and what follows it.
    fn strip(text: &str) -> Option<(Self, &str, &str)> {
        let digits = text.strip_prefix('p')?;
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
        let (number, rest) = digits.split_at(end);
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || whole.len() > 3 || part.len() > 7 {
            return None;
        }
        let billionths =
            whole.parse::<u64>().ok()? * (Self::WHOLE / 100) + format!("{part:0<7}").parse::<u64>().ok()?;
        (billionths <= Self::WHOLE).then_some((Self(billionths), &text[..=end], rest))
    }

    /// The least of the values that so many of them do not exceed: one that occurs.
    pub(crate) fn of(self, mut values: Vec<f64>) -> Option<f64> {
        values.sort_by(f64::total_cmp);
        let rank = (values.len() as u128 * u128::from(self.0)).div_ceil(u128::from(Self::WHOLE));
        values.get((rank as usize).max(1) - 1).copied()
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Question {
    /// The result.
    Result,
    /// The series' value in the bin of that time.
    At(Picos),
    /// Of the bins that end in the interval.
    Over(Summary, Picos, Picos),
    /// When the series first compares so from a time on, seconds.
    FirstTime(Comparison, Picos),
    /// From when on flows share fairly, seconds.
    Convergence,
}

/// What is said of the bins of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Summary {
    Mean,
    Min,
    Max,
    /// The standard deviation of the values, not of an estimate from them.
    Deviation,
    /// A percentile: bins are equally long, so it is one of time.
    Percentile(Percent),
}

impl Summary {
    const NAMES: [(&str, Self); 4] =
        [("mean", Self::Mean), ("min", Self::Min), ("max", Self::Max), ("deviation", Self::Deviation)];

    /// `mean over [10 s, 20 s]`: the summary, and what follows `over`.
    fn strip(text: &str) -> Option<(Self, &str, &str)> {
        let named = Self::NAMES
            .into_iter()
            .find_map(|(name, summary)| Some((summary, name, text.strip_prefix(name)?)));
        let percentile = || {
            let (percent, name, rest) = Percent::strip(text)?;
            Some((Self::Percentile(percent), name, rest))
        };
        let (summary, name, rest) = named.or_else(percentile)?;
        Some((summary, name, rest.trim_start().strip_prefix("over")?))
    }
}

/// A comparison with a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    order: Order,
    pub(crate) limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AtLeast,
    Above,
    AtMost,
    Below,
    Equal,
}

impl Comparison {
    const SIGNS: [(&str, Order); 5] = [
        (">=", Order::AtLeast),
        ("<=", Order::AtMost),
        ("==", Order::Equal),
        (">", Order::Above),
        ("<", Order::Below),
    ];

    /// `>= 5 Mbit/s`, in the unit that `name` ends with.
    pub(crate) fn parse(text: &str, name: &str) -> Result<Self, String> {
        let text = text.trim();
        for (sign, order) in Self::SIGNS {
            if let Some(rest) = text.strip_prefix(sign) {
                return Ok(Self { order, limit: quantity(rest.trim(), name)? });
            }
        }
        Err(format!("`{text}` is no comparison: write >=, >, <=, < or == and a number"))
    }

    pub(crate) fn holds(self, value: f64) -> bool {
        match self.order {
            Order::AtLeast => value >= self.limit,
            Order::Above => value > self.limit,
            Order::AtMost => value <= self.limit,
            Order::Below => value < self.limit,
            Order::Equal => value == self.limit,
        }
    }
}

/// A number, or a quantity with a unit, in the unit that `name` ends with.
pub(crate) fn quantity(text: &str, name: &str) -> Result<f64, String> {
    if let Ok(number) = text.parse::<f64>() {
        return if number.is_finite() { Ok(number) } else { Err(format!("`{text}` is not finite")) };
    }
    let bits = || text.parse::<BitRate>().map(|rate| rate.0 as f64).map_err(|error| error.to_string());
    let seconds =
        || text.parse::<Duration>().map(|span| span.0 as f64 / 1e9).map_err(|error| error.to_string());
    let bytes = || text.parse::<Bytes>().map(|bytes| bytes.0 as f64).map_err(|error| error.to_string());
    match name.strip_suffix("_total").unwrap_or(name).rsplit('_').next() {
        Some("bps") => bits(),
        Some("Bps") => bits().map(|bits| bits / 8.0),
        Some("ms") => seconds().map(|seconds| seconds * 1e3),
        Some("s") => seconds(),
        Some("bytes") => bytes(),
        _ => Err(format!("`{text}` is no number, and `{name}` has no unit")),
    }
}

/// What a metric gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// There is nothing to measure.
    Nothing,
    /// A number; booleans are 0 and 1.
    Number(f64),
    /// A text, such as the fingerprint.
    Text(String),
    /// One for each element of an array.
    List(Vec<Reading>),
}

impl Reading {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number, or the mean of the numbers of a list.
    pub fn mean(&self) -> Option<f64> {
        match self {
            Self::List(list) => {
                let numbers: Vec<f64> = list.iter().filter_map(Self::number).collect();
                crate::judging::seeds::Estimate::of(&numbers).map(|estimate| estimate.mean)
            }
            other => other.number(),
        }
    }

    /// As it is kept on disk.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Nothing => Json::Null,
            Self::Number(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(list) => list.iter().map(Self::to_json).collect(),
        }
    }

    /// From a result, or from disk.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Bool(boolean) => Self::Number(f64::from(u8::from(*boolean))),
            Json::Number(number) => number.as_f64().map_or(Self::Nothing, Self::Number),
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(list) => Self::List(list.iter().map(Self::from_json).collect()),
            Json::Null | Json::Object(_) => Self::Nothing,
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("null"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::List(list) => {
                f.write_str("[")?;
                for (index, reading) in list.iter().take(10).enumerate() {
                    write!(f, "{}{reading}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str(if list.len() > 10 { ", ...]" } else { "]" })
            }
        }
    }
}

impl Metric {
    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if the result alone does not answer it.
    pub fn needs_series(&self) -> bool {
        self.terms.iter().any(|(_, term)| term.needs_series())
    }

    /// It is of what a law tells of itself, such as the feedback of a link, which another law may not have.
    pub(crate) fn is_of_law(&self) -> bool {
        const OF_ALL: [&str; 10] = [
            "throughput_bps",
            "received_bps",
            "goodput_bps",
            "queue_packets",
            "queue_bytes",
            "queue_max_packets",
            "queue_delay_ms",
            "cwnd_packets",
            "srtt_ms",
            "collisions",
        ];
        let is_of_all =
            |term: &Term| term.question == Question::Convergence || OF_ALL.contains(&last_key(&term.steps));
        self.terms.iter().any(|(_, term)| term.needs_series() && !is_of_all(term))
    }

    /// What it reads of which elements: `links` or `flows`, a name, and a value or series of it. Jain's index is of goodputs; what
    /// is of the whole run has no name.
    pub fn reads(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.terms.iter().map(|(_, term)| match term.steps.as_slice() {
            [Step::Key(table), Step::Key(name)] if table == "jain" || table == CONVERGENCE => {
                ("flows", name.as_str(), "goodput_bps")
            }
            [Step::Key(table)] if table == CONVERGENCE => ("flows", "*", "goodput_bps"),
            [Step::Key(table), Step::Key(name), Step::Key(value), ..]
            | [Step::Key(table), Step::Key(name), Step::Index(_), Step::Key(value), ..] => {
                (table.as_str(), name.as_str(), value.as_str())
            }
            [Step::Key(table), Step::Any, .., Step::Key(value)] => (table.as_str(), "*", value.as_str()),
            steps => ("", "", last_key(steps)),
        })
    }

    /// The name whose ending says in which unit the answer is.
    pub(crate) fn unit_name(&self) -> &str {
        self.terms.first().map_or("", |(_, term)| term.unit_name())
    }

    /// It in words, if it is one term of the result: what is made of its values, the last key of its path, and whose it is.
    pub(crate) fn in_words(&self) -> Option<(String, &str, String)> {
        let [(_, term)] = self.terms.as_slice() else { return None };
        let target = term.target().filter(|_| !term.needs_series())?;
        let made = term.fold.map_or(String::new(), |fold| format!("{} of ", fold.in_words()));
        let whose = match (target.name, target.index) {
            (Name::One(name), None) => format!(" of {name}"),
            (Name::One(name), Some(index)) => format!(" of {name}[{index}]"),
            (Name::Any { reverse }, _) => {
                format!(" of all {}{}", target.table, if reverse { ", other direction" } else { "" })
            }
        };
        Some((made, last_key(&term.steps), whose))
    }

    /// Values of the result, one of each flow or link that it names, of which nothing is made: of links or flows, a name or
    /// all, and which value.
    pub(crate) fn each(&self) -> Option<(&str, Option<&str>, &str)> {
        let [(_, term)] = self.terms.as_slice() else { return None };
        if term.fold.is_some() || term.needs_series() {
            return None;
        }
        match term.steps.as_slice() {
            [Step::Key(table), Step::Any, Step::Key(value)] => Some((table, None, value)),
            [Step::Key(table), Step::Key(name), Step::Key(value)] => Some((table, Some(name), value)),
            [Step::Key(table), Step::Key(name)] if table == "jain" => Some((table, Some(name), "jain")),
            _ => None,
        }
    }

    /// It is a text.
    pub(crate) fn is_text(&self) -> bool {
        self.terms.iter().any(|(_, term)| last_key(&term.steps) == "fingerprint")
    }

    /// It is what the result has there, and nothing is made of it.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.terms.as_slice(), [(_, term)] if term.fold.is_none() && !term.needs_series())
    }

    /// The group for each of whose flows it is a value.
    pub(crate) fn group(&self) -> Option<&str> {
        match self.terms.as_slice() {
            [(_, term)] if term.is_list() => match term.target()? {
                Target { table: "flows", name: Name::One(name), .. } => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// It can be a list, one for each flow.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.terms.as_slice(), [(_, term)] if term.is_list())
    }

    /// Reads a metric.
    ///
    /// # Errors
    /// What is wrong with it, as a clause.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        let (mut sign, mut rest) = (1.0, text);
        while let Some((at, next)) = next_sign(rest) {
            terms.push((sign, Term::parse(&rest[..at])?));
            (sign, rest) = (next, &rest[at + 3..]);
        }
        terms.push((sign, Term::parse(rest)?));
        Ok(Self { text: text.into(), terms })
    }

    /// Reads the metric in a result and, if it asks the series, there.
    pub fn read(&self, result: &Json, series: Option<&Series<'_>>) -> Reading {
        if let [(_, term)] = self.terms.as_slice() {
            return term.read(result, series);
        }
        let numbers = self.terms.iter().map(|(sign, term)| Some(sign * term.read(result, series).number()?));
        numbers.sum::<Option<f64>>().map_or(Reading::Nothing, Reading::Number)
    }

    /// The whole series, s and value: of each flow, or folded.
    pub(crate) fn curves(&self, series: &Series<'_>) -> Vec<TimeSeries> {
        self.terms.first().map_or(Vec::new(), |(_, term)| term.curves(series))
    }

    /// Joins `bottleneck.reverse` to one name, and refuses what no result of this scenario has.
    pub(crate) fn check(&mut self, span: Span, elements: &Elements, findings: &mut Findings) {
        self.hold(elements, &mut |message, help| findings.error(CODE, span, message, help));
    }

    /// As [`Metric::check`]; calls `refuse` with what is wrong and what helps.
    pub(crate) fn hold(&mut self, elements: &Elements, refuse: &mut dyn FnMut(String, String)) {
        let is_sum = self.terms.len() > 1;
        for (_, term) in &mut self.terms {
            let mut refusal = Refusal { text: &self.text, refuse };
            term.check(term.needs_series(), elements, &mut refusal);
            if is_sum && term.is_list() {
                refusal.say("a list is not added to a number", "such as sum(...), min(...) or [0]");
            }
        }
    }

    /// As [`Metric::check`], for a whole series.
    pub(crate) fn check_series(&mut self, span: Span, elements: &Elements, findings: &mut Findings) {
        match self.terms.as_mut_slice() {
            [(_, term)] if !term.needs_series() => {
                let refuse = &mut |message, help| findings.error(CODE, span, message, help);
                term.check(true, elements, &mut Refusal { text: &self.text, refuse });
            }
            _ => {
                let message =
                    format!("metric `{}` asks a question, and a line over time shows all", self.text);
                findings.error(CODE, span, message, "such as flows.ftp.cwnd_packets");
            }
        }
    }
}

/// Where ` + ` or ` - ` stands outside brackets and quotes, and the sign that it gives.
fn next_sign(text: &str) -> Option<(usize, f64)> {
    let (mut depth, mut is_quoted) = (0_i32, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            _ => {}
        }
        let sign = match text.get(at..at + 3) {
            Some(" + ") => 1.0,
            Some(" - ") => -1.0,
            _ => continue,
        };
        if depth == 0 && !is_quoted {
            return Some((at, sign));
        }
    }
    None
}

impl Term {
    fn needs_series(&self) -> bool {
        self.question != Question::Result
    }

    fn is_list(&self) -> bool {
        let is_flow = |step: &Step| matches!(step, Step::Index(_));
        let is_of_flows = matches!(self.steps.first(), Some(Step::Key(table)) if table == "flows");
        self.fold.is_none()
            && (self.steps.contains(&Step::Any) || is_of_flows && !self.steps.iter().any(is_flow))
    }

    fn unit_name(&self) -> &str {
        match (self.fold, self.question) {
            (Some(Fold::Jain), _) => "jain",
            (_, Question::FirstTime(..)) => "t_s",
            (_, Question::Convergence) => CONVERGENCE,
            _ => last_key(&self.steps),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        // `mean over [a, b] of X` and `first time X >= v` read as well with the question first.
        if let Some((_, name, rest)) = Summary::strip(trimmed) {
            let (interval, rest) =
                rest.split_once(']').ok_or_else(|| format!("`{name} over` needs [from, to]"))?;
            let rest = rest.trim_start();
            let rest = rest.strip_prefix("of ").unwrap_or(rest);
            return Self::parse_selection(&format!("{rest} {name} over{interval}]"));
        }
        if let Some(rest) = trimmed.strip_prefix("first time ") {
            let sign =
                rest.find(['<', '>', '=']).ok_or("`first time` needs a comparison, such as >= 5 Mbit/s")?;
            let (selection, comparison) = rest.split_at(sign);
            return Self::parse_selection(&format!("{} first time {comparison}", selection.trim()));
        }
        Self::parse_selection(trimmed)
    }

    /// What is selected comes first, the question to it after.
    fn parse_selection(text: &str) -> Result<Self, String> {
        let (fold, rest) = Self::parse_fold(text)?;
        let (steps, length) = path::parse_prefix(rest.trim_start()).map_err(|error| error.message)?;
        let rest = &rest.trim_start()[length..];
        let mut steps = steps;
        // As the field calls it; the result calls it by what happens to the flow.
        if let [Step::Key(table), .., Step::Key(value)] = steps.as_mut_slice()
            && (table.as_str(), value.as_str()) == ("flows", "fct_s")
        {
            "completion_s".clone_into(value);
        }
        let rest = match fold {
            None => rest,
            Some(_) => rest.trim_start().strip_prefix(')').ok_or_else(|| format!("`{text}` lacks a `)`"))?,
        };
        let question = match steps.first() {
            Some(Step::Key(table)) if table == CONVERGENCE => {
                if fold.is_some() || !rest.trim().is_empty() {
                    return Err(format!("`{text}`: {CONVERGENCE} is one number, of which nothing is asked"));
                }
                Question::Convergence
            }
            _ => Self::parse_question(rest.trim(), last_key(&steps))?,
        };
        Ok(Self { fold, steps, question })
    }

    fn parse_fold(text: &str) -> Result<(Option<Fold>, &str), String> {
        const FOLDS: [(&str, Fold); 5] = [
            ("sum", Fold::Sum),
            ("mean", Fold::Mean),
            ("min", Fold::Min),
            ("max", Fold::Max),
            ("jain", Fold::Jain),
        ];
        let Some((name, rest)) = text.split_once('(') else { return Ok((None, text)) };
        let name = name.trim_end();
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_') {
            return Ok((None, text));
        }
        let known = FOLDS.iter().find(|(other, _)| *other == name).map(|(_, fold)| *fold);
        let percentile = || match Percent::strip(name) {
            Some((percent, _, "")) => Some(Fold::Percentile(percent)),
            _ => None,
        };
        let names = FOLDS.map(|(name, _)| name).into_iter().chain(["p50", "p99.9"]);
        match known.or_else(percentile) {
            Some(fold) => Ok((Some(fold), rest)),
            None => {
                let help: String = choices(name, names).into();
                Err(format!("`{name}` is no function: {help} (percentiles from p0 to p100)"))
            }
        }
    }

    fn parse_question(text: &str, name: &str) -> Result<Question, String> {
        if text.is_empty() {
            return Ok(Question::Result);
        }
        if let Some(time) = text.strip_prefix("at ") {
            return Ok(Question::At(instant(time)?));
        }
        if let Some((summary, word, interval)) = Summary::strip(text) {
            let inner = interval.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let pair = inner.and_then(|inner| inner.split_once(','));
            let (from, to) =
                pair.ok_or_else(|| format!("`{word} over` needs [from, to], such as [10 s, 20 s]"))?;
            let (from, to) = (instant(from)?, instant(to)?);
            return if from < to {
                Ok(Question::Over(summary, from, to))
            } else {
                Err(format!("`{word} over` nothing"))
            };
        }
        if let Some(comparison) = text.strip_prefix("first time") {
            let (comparison, after) = comparison.split_once(" after ").unwrap_or((comparison, "0"));
            return Ok(Question::FirstTime(Comparison::parse(comparison, name)?, instant(after)?));
        }
        Err(format!(
            "`{text}` is no question to a series: ask `at`, `mean over [from, to]` (min, max, deviation, p50 to p99.9) or \
             `first time`"
        ))
    }

    fn read(&self, result: &Json, series: Option<&Series<'_>>) -> Reading {
        if self.question == Question::Convergence {
            let name = (self.steps.len() > 1).then(|| last_key(&self.steps));
            let time = series.and_then(|series| series.convergence_s(name));
            return time.map_or(Reading::Nothing, Reading::Number);
        }
        if self.needs_series() {
            let (Some(series), Some(target)) = (series, self.target()) else { return Reading::Nothing };
            return self.ask(self.fold_bins(series, &target, false));
        }
        match self.fold {
            Some(Fold::Sum) if self.is_of_rates() => {
                let each = self.of_each(result, bits);
                let bits = each.iter().map(|bits| bits.unwrap_or(0.0));
                let none = if each.is_empty() { Reading::Number(0.0) } else { Reading::Nothing };
                together(bits, measured_s(result)).map_or(none, Reading::Number)
            }
            Some(fold) => fold.of(&self.select(result)),
            None => self.select(result),
        }
    }

    /// What the result has at the path; a list where the path has a `*`.
    fn select(&self, result: &Json) -> Reading {
        if self.steps.contains(&Step::Any) {
            return Reading::List(self.of_each(result, |_, object, rest| resolve(object, rest)));
        }
        resolve(result, &self.steps)
    }

    /// What `each` makes of every flow or link that the path names: of the result, its object, and what of the path is below it.
    fn of_each<T>(&self, result: &Json, each: impl Fn(&Json, &Json, &[Step]) -> T) -> Vec<T> {
        let (Some(target), [Step::Key(table), ..]) = (self.target(), self.steps.as_slice()) else {
            return Vec::new();
        };
        let below = 2 + usize::from(matches!(target.name, Name::Any { reverse: true }));
        let indexed = usize::from(target.index.is_some());
        let rest = self.steps.get(below + indexed..).unwrap_or_default();
        let named = result[table.as_str()].as_object().into_iter().flatten();
        let mut list = Vec::new();
        for (_, element) in named.filter(|(name, _)| target.name.has(name)) {
            match (element, target.index) {
                (Json::Array(flows), None) => list.extend(flows.iter().map(|flow| each(result, flow, rest))),
                (Json::Array(flows), Some(index)) => {
                    list.extend(flows.get(index).map(|flow| each(result, flow, rest)));
                }
                (element, _) => list.push(each(result, element, rest)),
            }
        }
        list
    }

    /// Of flows, whose rates are each of the flow's own time.
    fn is_of_rates(&self) -> bool {
        let is_of_flows = matches!(self.steps.first(), Some(Step::Key(table)) if table == "flows");
        is_of_flows && !self.needs_series() && last_key(&self.steps).ends_with("_bps")
    }

    fn curves(&self, series: &Series<'_>) -> Vec<TimeSeries> {
        let lists = self.target().map_or(Vec::new(), |target| self.fold_bins(series, &target, true));
        let seconds =
            |list: Vec<(Picos, f64)>| list.into_iter().map(|(at, value)| (at as f64 / 1e12, value)).collect();
        lists.into_iter().map(seconds).collect()
    }

    /// A fold over flows goes bin by bin, over those that live in it: have begun and are not complete.
    /// `drawn`: so does what is not folded.
    fn fold_bins(&self, series: &Series<'_>, target: &Target<'_>, drawn: bool) -> Vec<Vec<(Picos, f64)>> {
        let by_flow = series.select(target);
        // A bin begins where the one before ended.
        let with_life = |(flow, list): ((u32, u32), Vec<(Picos, f64)>)| {
            let (from, to) = series.life(target, flow);
            let begins = std::iter::once(0).chain(list.iter().map(|&(at, _)| at)).collect::<Vec<_>>();
            let lives = move |((at, value), begin)| (at, value, from < at && begin < to);
            list.into_iter().zip(begins).map(lives).collect::<Vec<_>>()
        };
        let lists = by_flow.into_iter().map(with_life);
        match self.fold.filter(|_| !self.folds_answers()) {
            None => {
                let keep = |(at, value, is_alive)| (is_alive || !drawn).then_some((at, value));
                lists.map(|list| list.into_iter().filter_map(keep).collect()).collect()
            }
            Some(fold) => {
                let mut bins: BTreeMap<Picos, Vec<Reading>> = BTreeMap::new();
                for (at, value, is_alive) in lists.flatten() {
                    let values = bins.entry(at).or_default();
                    if is_alive {
                        values.push(Reading::Number(value));
                    }
                }
                let fold = |(at, values)| Some((at, fold.of(&Reading::List(values)).number()?));
                vec![bins.into_iter().filter_map(fold).collect()]
            }
        }
    }

    /// What flows got in an interval is fair or not, not what they got in each bin of it.
    fn folds_answers(&self) -> bool {
        self.fold == Some(Fold::Jain) && self.needs_series()
    }

    fn ask(&self, lists: Vec<Vec<(Picos, f64)>>) -> Reading {
        let mut answers: Vec<Reading> = lists.iter().map(|list| self.question.answer(list)).collect();
        if self.folds_answers() {
            return Fold::Jain.of(&Reading::List(answers));
        }
        match answers.len() {
            _ if self.is_list() => Reading::List(answers),
            0 => Reading::Nothing,
            _ => answers.swap_remove(0),
        }
    }

    fn target(&self) -> Option<Target<'_>> {
        let (table, rest) = match self.steps.as_slice() {
            [Step::Key(table), rest @ ..] => (table, rest),
            _ => return None,
        };
        let (name, rest) = match rest {
            [Step::Any, Step::Key(key), rest @ ..] if table == "links" && key == "reverse" => {
                (Name::Any { reverse: true }, rest)
            }
            [Step::Any, rest @ ..] => (Name::Any { reverse: false }, rest),
            [Step::Key(name), rest @ ..] => (Name::One(name), rest),
            _ => return None,
        };
        let (index, metric) = match rest {
            [Step::Index(index), Step::Key(metric), ..] => (Some(*index), metric),
            [Step::Key(metric), ..] => (None, metric),
            _ => return None,
        };
        Some(Target { table, name, index, metric })
    }

    fn check(&mut self, is_series: bool, elements: &Elements, refusal: &mut Refusal<'_>) {
        if let Some(end) = elements.duration
            && self.question.is_beyond(Picos::from(end) * PS_PER_NS)
        {
            let help = format!("the run ends at {}", Duration(end));
            return refusal.say("it asks for what comes after the run", help);
        }
        let key = |step: Option<&Step>| match step {
            Some(Step::Key(key)) => key.clone(),
            _ => String::new(),
        };
        let table = key(self.steps.first());
        let top = [
            "complete",
            "seed",
            "seed_used",
            "fingerprint",
            "duration_s",
            "packet_hops",
            "links",
            "flows",
            "jain",
            CONVERGENCE,
        ];
        let names = match table.as_str() {
            "links" => &elements.links,
            "flows" | "jain" => &elements.flows,
            CONVERGENCE => {
                let is_known = match self.steps.as_slice() {
                    [_, Step::Key(name)] => elements.flows.iter().any(|(other, _)| other == name),
                    steps => steps.len() == 1,
                };
                if !is_known {
                    let help =
                        choices(last_key(&self.steps), elements.flows.iter().map(|(name, _)| name.as_str()));
                    refusal.say(format!("{CONVERGENCE} is of all flows or of a group"), help);
                }
                return;
            }
            _ => {
                let is_known = top.contains(&table.as_str()) && self.steps.len() == 1;
                if !is_known || is_series {
                    refusal.say(format!("no result has `{table}`"), choices(&table, top));
                }
                return;
            }
        };
        let is_any = self.steps.get(1) == Some(&Step::Any);
        let is_reverse = key(self.steps.get(2)) == "reverse" && table == "links";
        if is_any && table == "jain" {
            return refusal.say("jain.NAME is of one group", "of several: jain(flows.*.goodput_bps)");
        }
        if is_reverse && !is_any {
            let joined = format!("{}.reverse", key(self.steps.get(1)));
            self.steps.splice(1..3, [Step::Key(joined)]);
        }
        let name = if is_any { "*".into() } else { key(self.steps.get(1)) };
        let count = match names.iter().find(|(other, _)| *other == name) {
            // Each that has such a flow has a part.
            _ if is_any => names.iter().map(|(_, count)| *count).max().unwrap_or(0),
            Some(&(_, count)) => count,
            None => {
                let help = choices(&name, names.iter().map(|(name, _)| name.as_str()));
                return refusal.say(format!("no `{name}` in {table}"), help);
            }
        };
        let steps = &self.steps[usize::from(is_reverse && is_any)..];
        if table == "jain" {
            if self.steps.len() > 2 || is_series {
                refusal.say("jain is one number for each group", "such as jain.ftp");
            }
            return;
        }
        let rest = match steps.get(2) {
            Some(Step::Index(index)) if table == "flows" => {
                if *index as u64 >= count {
                    let help = format!("allowed: [0] to [{}]", count.saturating_sub(1));
                    return refusal.say(format!("no [{index}] in `{name}`, which has {count}"), help);
                }
                &steps[3..]
            }
            // Which of the clouds whose packets leave through it.
            Some(Step::Index(_)) if CLOUD_SERIES.contains(&last_key(steps)) => &steps[3..],
            _ => steps.get(2..).unwrap_or_default(),
        };
        let field = key(rest.first());
        let fields = fields(&table, is_series);
        if field.is_empty() {
            let help = choices(&field, fields.iter().map(String::as_str));
            let message = match rest.first() {
                Some(Step::Index(index)) => format!("{table} have no [{index}]"),
                _ => format!("it names no value of {table}"),
            };
            return refusal.say(message, help);
        }
        if !fields.contains(&field) {
            let help = choices(&field, fields.iter().map(String::as_str));
            refusal.say(
                format!("{table} have no `{field}` in the {}", if is_series { "series" } else { "result" }),
                help,
            );
            return;
        }
        let mut below = &rest[1..];
        if matches!(field.as_str(), "drops_by_reason" | "drops_by_reason_total") {
            let (reason, reasons) = (key(below.first()), Reason::ALL.map(Reason::name));
            if !reasons.contains(&reason.as_str()) {
                return refusal.say(format!("`{field}` has no `{reason}`"), choices(&reason, reasons));
            }
            below = &below[1..];
        }
        if field == "xcp_i" {
            let (count, counts) = (key(below.first()), Stats::default().named().map(|(name, _)| name));
            if !counts.contains(&count.as_str()) {
                return refusal.say(format!("`{field}` has no `{count}`"), choices(&count, counts));
            }
            below = &below[1..];
        }
        if !below.is_empty() {
            let last = &rest[rest.len() - below.len() - 1];
            refusal.say(format!("{last} has nothing below it"), "see docs/scenario.md");
        }
    }
}

/// Who is told what is wrong with a metric.
struct Refusal<'a> {
    text: &'a str,
    refuse: &'a mut dyn FnMut(String, String),
}

impl Refusal<'_> {
    fn say(&mut self, message: impl fmt::Display, help: impl Into<String>) {
        (self.refuse)(format!("metric `{}`: {message}", self.text), help.into());
    }
}

fn last_key(steps: &[Step]) -> &str {
    match steps.last() {
        Some(Step::Key(key)) => key,
        _ => "",
    }
}

/// Field names of a result or a series.
pub(crate) fn fields(table: &str, is_series: bool) -> Vec<String> {
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let keys = |value: serde_json::Result<Json>| match value {
        Ok(Json::Object(object)) => object.keys().cloned().collect(),
        _ => Vec::new(),
    };
    match (table, is_series) {
        ("links", true) => list(&series_of(true)),
        (_, true) => list(&series_of(false)),
        ("links", false) => {
            let all = LinkOutcome {
                collisions: Some(0),
                collisions_total: Some(0),
                bounded_packets: Some(0),
                bounded_packets_total: Some(0),
                policed_flows: Some(0),
                policed_flows_total: Some(0),
                clamped_packets: Some(0),
                clamped_packets_total: Some(0),
                capacity_changes: Some(0),
                capacity_changes_total: Some(0),
                capacity_stale_s: Some(0.0),
                capacity_stale_s_total: Some(0.0),
                xcp_i: Some(Default::default()),
                ..LinkOutcome::default()
            };
            keys(serde_json::to_value(all))
        }
        (_, false) => keys(serde_json::to_value(FlowOutcome::default())),
    }
}

/// A time with its unit, or seconds as in the series' `t_s`.
fn instant(text: &str) -> Result<Picos, String> {
    let text = text.trim();
    let ns = match text.parse::<f64>() {
        Ok(seconds) if (0.0..1e7).contains(&seconds) => (seconds * 1e9).round() as u64,
        Ok(_) => return Err(format!("`{text}` is no time of a run")),
        Err(_) => text.parse::<Duration>().map_err(|error| error.to_string())?.0,
    };
    Ok(ns.saturating_mul(PS_PER_NS))
}

impl Question {
    /// It asks for what a run that ends at `end` does not have.
    fn is_beyond(self, end: Picos) -> bool {
        match self {
            Self::Result | Self::Convergence => false,
            Self::At(time) | Self::Over(_, _, time) | Self::FirstTime(_, time) => time > end,
        }
    }

    fn answer(self, list: &[(Picos, f64)]) -> Reading {
        let number = |value: Option<f64>| value.map_or(Reading::Nothing, Reading::Number);
        match self {
            Self::Result | Self::Convergence => Reading::Nothing,
            Self::At(time) => number(list.iter().find(|&&(at, _)| at >= time).map(|&(_, value)| value)),
            Self::Over(summary, from, to) => {
                let inside = list.iter().filter(|&&(at, _)| from < at && at <= to);
                number(summary.of(&inside.map(|&(_, value)| value).collect::<Vec<_>>()))
            }
            Self::FirstTime(comparison, after) => {
                let first = list.iter().find(|&&(at, value)| at >= after && comparison.holds(value));
                number(first.map(|&(at, _)| at as f64 / 1e12))
            }
        }
    }
}

impl Fold {
    /// Of the numbers in a list; what is null has no part. `Nothing` of no number, but a sum of 0.
    fn of(self, reading: &Reading) -> Reading {
        let list = match reading {
            Reading::List(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        let numbers: Vec<f64> = list.iter().filter_map(Reading::number).collect();
        if numbers.is_empty() && self != Self::Sum {
            return Reading::Nothing;
        }
        // Not by `sum`, which is -0 of nothing.
        let sum = numbers.iter().fold(0.0, |sum, number| sum + number);
        Reading::Number(match self {
            Self::Sum => sum,
            Self::Mean => sum / numbers.len() as f64,
            Self::Min => numbers.into_iter().fold(f64::INFINITY, f64::min),
            Self::Max => numbers.into_iter().fold(f64::NEG_INFINITY, f64::max),
            Self::Jain => return jain(&numbers).map_or(Reading::Nothing, Reading::Number),
            Self::Percentile(percent) => {
                return percent.of(numbers).map_or(Reading::Nothing, Reading::Number);
            }
        })
    }
}

impl Summary {
    fn of(self, values: &[f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = || values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        Some(match self {
            Self::Mean => mean,
            Self::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Deviation => (squares() / values.len() as f64).sqrt(),
            Self::Percentile(percent) => return percent.of(values.to_vec()),
        })
    }
}

/// Bits of a flow: its rate times the part of the measured time in which it lives.
fn bits(result: &Json, flow: &Json, rest: &[Step]) -> Option<f64> {
    let time = |object: &Json, key: &str| object[key].as_f64();
    let (from, to) = (time(result, "warmup_s").unwrap_or(0.0), time(result, "duration_s").unwrap_or(0.0));
    // Exactly, where the result has it.
    if last_key(rest) == "goodput_bps" {
        return arrived_bits(flow);
    }
    let begins = time(flow, "start_s").unwrap_or(0.0);
    let completes = time(flow, "completion_s").map_or(to, |after| begins + after);
    let ends = time(flow, "stop_s").unwrap_or(to).min(completes).min(to);
    resolve(flow, rest).number().map(|rate| rate * (ends - from.max(begins)).max(0.0))
}

/// Follows a path. A key of an array is that key of all its elements.
fn resolve(json: &Json, steps: &[Step]) -> Reading {
    let Some((step, rest)) = steps.split_first() else { return Reading::from_json(json) };
    match (json, step) {
        (Json::Object(object), Step::Key(key)) => match object.get(key) {
            Some(next) => resolve(next, rest),
            None => Reading::Nothing,
        },
        (Json::Array(list), Step::Index(index)) => {
            list.get(*index).map_or(Reading::Nothing, |next| resolve(next, rest))
        }
        (Json::Array(list), Step::Key(_)) => {
            Reading::List(list.iter().map(|item| resolve(item, steps)).collect())
        }
        _ => Reading::Nothing,
    }
}

impl Language for Metric {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let help = "such as links.bottleneck.utilization, mean(flows.ftp.goodput_bps) or \
                    links.bottleneck.queue_packets at 20 s";
        let Value::String(text) = &node.value else {
            wrong_type(node, "a metric", help, findings);
            return None;
        };
        match Self::parse(text) {
            Ok(metric) => Some(metric),
            Err(message) => {
                findings.error("scenario::metric", node.span, format!("metric {message}"), help);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::string(self.text.as_str())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Every name that y can have: values of flows, links and groups.
pub(crate) fn quantities() -> Vec<String> {
    let mut names = fields("flows", false);
    names.extend(fields("links", false));
    names.extend(fields("links", true));
    names.extend(fields("flows", true));
    names.extend(["fct_s", "jain", "flows", "goodput_sum_bps"].map(str::to_owned));
    names.sort_unstable();
    names.dedup();
    names
}

mod series;
#[cfg(test)]
mod tests;
