//! What a claim says of its metric, parsed once: what readings and means are held against.

use super::{Bound, Claim, Never, Ordered, Scalar, Trend};
use crate::judging::metric::{Comparison, Metric, Reading, quantity};
use crate::judging::observation::Observation;
use congestlab_text::decode::At;
use congestlab_text::diagnostic::{Findings, Span};
use congestlab_text::tree::{Value, inline};

const CODE: &str = "scenario::claim";

/// On which side of a bound values are to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Least,
    Most,
}

impl Side {
    pub(super) fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Least => value >= limit,
            Self::Most => value <= limit,
        }
    }
}

/// A bound of every value, of a mean, or of where a crossover is: in the unit of the metric, or of the axis.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    /// Its name in verdicts, such as `at_least`.
    pub(super) name: &'static str,
    pub(super) side: Side,
    pub(super) value: f64,
}

/// What every reading is held against beside the bounds.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    Number {
        wanted: f64,
        written: String,
    },
    Text(String),
    /// 0, or nothing.
    Nothing,
    Never {
        comparison: Comparison,
        written: String,
    },
    /// Of a list.
    Elements(Trend),
    /// The metric is the largest, and each of these no larger than the one before.
    Metrics(Vec<Metric>),
}

impl Rule {
    /// A run has these readings of the metric.
    ///
    /// # Errors
    /// What does not hold.
    pub(super) fn hold(&self, run: &Observation, readings: &[Reading]) -> Result<(), String> {
        let require = |holds: bool, why: String| if holds { Ok(()) } else { Err(why) };
        let numbers = || readings.iter().filter_map(Reading::number);
        match self {
            Self::Number { wanted, written } => {
                let holds = readings.iter().all(|reading| reading.number() == Some(*wanted));
                require(holds, format!("equals {written}"))
            }
            Self::Text(wanted) => {
                let is_it = |reading: &Reading| matches!(reading, Reading::Text(text) if text == wanted);
                require(
                    readings.iter().all(is_it),
                    format!("equals {}", inline(&Value::string(wanted.as_str()))),
                )
            }
            Self::Nothing => {
                let is_nothing =
                    |reading: &Reading| *reading == Reading::Nothing || reading.number() == Some(0.0);
                require(readings.iter().all(is_nothing), "never".into())
            }
            Self::Never { comparison, written } => {
                require(!numbers().any(|value| comparison.holds(value)), format!("never {written}"))
            }
            Self::Elements(trend) => {
                let numbers: Vec<f64> = readings.iter().map(number).collect::<Result<_, _>>()?;
                require(trend.holds(&numbers), "not in order".into())
            }
            Self::Metrics(others) => {
                let others = others.iter().map(|other| run.read(other));
                let numbers: Vec<f64> =
                    readings.iter().chain(others).map(number).collect::<Result<_, _>>()?;
                require(Trend::Decreasing.holds(&numbers), format!("not in order: {numbers:?}"))
            }
        }
    }
}

/// The number that was read.
///
/// # Errors
/// It is none.
pub(super) fn number(reading: &Reading) -> Result<f64, String> {
    reading.number().ok_or_else(|| format!("{reading} is no number"))
}

/// What a claim is along an axis.
#[derive(Clone, Debug)]
pub(super) enum Along {
    Trend(Trend),
    /// There its metric and this one are equal; the claim's bounds are for where.
    Crossover(Metric),
}

impl Claim {
    /// The bounds, each in its unit.
    pub(super) fn limits(&self, metric: &Metric, findings: &mut Findings) -> Vec<Limit> {
        let pair = self.within.as_ref().and_then(|within| match within.value.as_slice() {
            [low, high] => Some([low, high]),
            _ => {
                findings.error(CODE, within.span, "`within` is not a pair", "write [lowest, highest]");
                None
            }
        });
        let written = [
            ("at_least", Side::Least, self.at_least.as_ref()),
            ("at_most", Side::Most, self.at_most.as_ref()),
            ("within: at least", Side::Least, pair.map(|[low, _]| low)),
            ("within: at most", Side::Most, pair.map(|[_, high]| high)),
        ];
        let mut limits: Vec<(Limit, Span)> = Vec::new();
        for (name, side, bound) in written {
            let Some(At { value: bound, span }) = bound else { continue };
            match self.limit(bound, metric) {
                Ok(value) => limits.push((Limit { name, side, value }, *span)),
                Err((message, help)) => findings.error(CODE, *span, message, help),
            }
        }
        self.check_limits(metric, &limits, findings);
        limits.into_iter().map(|(limit, _)| limit).collect()
    }

    /// A bound as a number, or why it is none and what to write.
    fn limit(&self, bound: &Bound, metric: &Metric) -> Result<f64, (String, &'static str)> {
        if self.crossover.is_some() {
            let refused = || {
                ("a bound of a crossover is no value of an axis".to_owned(), "such as 0.01 or \"10 Mbit/s\"")
            };
            return bound.on_axis().ok_or_else(refused);
        }
        bound.value(metric).map_err(|message| (message, "write a number in the metric's unit"))
    }

    /// Some value is within all bounds.
    fn check_limits(&self, metric: &Metric, limits: &[(Limit, Span)], findings: &mut Findings) {
        let of = |side| limits.iter().filter(move |(limit, _)| limit.side == side);
        for (low, _) in of(Side::Least) {
            for (high, span) in of(Side::Most).filter(|(high, _)| low.value > high.value) {
                let key = |limit: &Limit| limit.name.split(':').next().unwrap_or_default();
                let (span, message, help) = match &self.within {
                    Some(within) if key(low) == key(high) => {
                        let message = "`within` ends below its beginning".to_owned();
                        (within.span, message, "write [lowest, highest]")
                    }
                    _ => (*span, format!("`{}` is below `{}`", key(high), key(low)), "no value is both"),
                };
                refuse(metric, span, message, help, findings);
            }
        }
    }

    /// What the claim says of readings beside its bounds.
    pub(super) fn rules(&self, metric: &Metric, findings: &mut Findings) -> Vec<Rule> {
        let equals = self.equals.as_ref().and_then(|wanted| equals(wanted, metric, findings));
        let never = self.never.as_ref().and_then(|never| match &never.value {
            Never::Anything => Some(Rule::Nothing),
            Never::Compares(text) => match Comparison::parse(text, metric.unit_name()) {
                Ok(comparison) => Some(Rule::Never { comparison, written: text.clone() }),
                Err(message) => {
                    findings.error(CODE, never.span, message, "such as never = \"> 5\"");
                    None
                }
            },
        });
        let ordered = self.ordered.as_ref().map(|ordered| match &ordered.value {
            Ordered::Elements(trend) => {
                if !metric.is_list() {
                    let help = "order a metric of a group, such as flows.ftp.goodput_bps, or give metrics that follow this one";
                    let message = "it is one number, which has no order".to_owned();
                    refuse(metric, ordered.span, message, help, findings);
                }
                Rule::Elements(*trend)
            }
            Ordered::Metrics(list) => {
                if list.is_empty() {
                    let help = "such as [\"flows.tcp[0].goodput_bps\"]";
                    refuse(metric, ordered.span, "`ordered` has nothing to follow it".into(), help, findings);
                }
                Rule::Metrics(list.iter().map(|at| at.value.clone()).collect())
            }
        });
        if metric.is_text() {
            let bounds = self.at_least.iter().chain(&self.at_most).map(|bound| bound.span);
            let others = self.within.iter().map(|within| within.span);
            let others = others.chain(self.never.iter().map(|never| never.span));
            let others = others.chain(self.ordered.iter().map(|ordered| ordered.span));
            let others = others.chain(self.monotone.iter().map(|trend| trend.span));
            if let Some(span) = bounds.chain(others).next() {
                let message = "a text is not compared with a number".to_owned();
                refuse(metric, span, message, "a text has equals = \"...\"", findings);
            }
        }
        [equals, never, ordered].into_iter().flatten().collect()
    }
}

/// The value that every reading is, in the metric's unit.
fn equals(wanted: &At<Scalar>, metric: &Metric, findings: &mut Findings) -> Option<Rule> {
    let number = match &wanted.value.0 {
        Value::String(text) if metric.is_text() => return Some(Rule::Text(text.clone())),
        Value::String(text) => quantity(text, metric.unit_name())
            .map_err(|message| (message, "write a number in the metric's unit")),
        Value::Integer(number) => Ok(*number as f64),
        Value::Boolean(is_so) if ["complete", "seed_used"].contains(&metric.unit_name()) => {
            Ok(f64::from(u8::from(*is_so)))
        }
        Value::Boolean(_) => Err(("a number is not true or false".to_owned(), "write a number")),
        Value::Float(number) => Ok(*number),
        // No scalar is one.
        Value::Array(_) | Value::Table(_) | Value::Datetime(_) => return None,
    };
    match number {
        Ok(number) => Some(Rule::Number { wanted: number, written: inline(&wanted.value.0) }),
        Err((message, help)) => {
            refuse(metric, wanted.span, message, help, findings);
            None
        }
    }
}

fn refuse(metric: &Metric, span: Span, message: String, help: &str, findings: &mut Findings) {
    findings.error(CODE, span, format!("metric `{}`: {message}", metric.text()), help);
}
