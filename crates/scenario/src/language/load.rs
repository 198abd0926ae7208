//! Load of flows over time: schedules, arrivals, sizes, windows, readers.

use congestlab_core::units::{BitRate, Bytes, Duration, Kind};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::language::queue::Amount;
use congestlab_text::decode::{
    At, Language, below, out_of_range, quantity, record, text_schema, variant, wrong_type,
};
use congestlab_text::diagnostic::{Findings, choices};
use congestlab_text::tree::{Node, Value};

/// A number of active flows in the group, from a time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) from: Duration,
    pub(crate) active: u64,
}

impl Language for Load {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::Array(nodes) if nodes.len() == 2 => {
                let from = Duration::decode(&nodes[0], findings);
                let active = u64::decode(&nodes[1], findings);
                Some(Self { from: from?, active: active? })
            }
            _ => {
                let help = "a step is a pair of a time and a number of flows, such as [\"5 s\", 9]";
                wrong_type(node, "a step of load", help, findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::array([self.from.encode(), self.active.encode()])
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let pair = [Duration::schema(generator), u64::schema(generator)];
        json_schema!({ "type": "array", "items": pair, "minItems": 2, "maxItems": 2 })
    }
}

/// The mean distance of arrivals: a time, or arrivals per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap(pub(crate) Duration);

impl Language for Gap {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let help =
            "write arrivals per second, such as \"20 /s\", or the mean time between two, such as \"50 ms\"";
        let Value::String(text) = &node.value else {
            wrong_type(node, "a rate of arrivals", help, findings);
            return None;
        };
        let gap = match text.strip_suffix("/s").map(|number| number.trim().parse::<f64>()) {
            Some(Ok(rate)) if rate > 0.0 && rate.is_finite() => Duration((1e9 / rate).round() as u64),
            Some(_) => Duration(0),
            None if text.trim().parse::<f64>().is_ok() => {
                let message = format!("`{}`: \"{text}\" has no unit", findings.place());
                findings.error("scenario::unit", node.span, message, help);
                return None;
            }
            None => Duration::decode(node, findings)?,
        };
        if (1..=congestlab_text::decode::SPAN_MAX).contains(&gap.0) {
            return Some(Self(gap));
        }
        out_of_range(
            node.span,
            &format!("\"{text}\""),
            "above 0 /s up to 1000000000 /s, such as \"20 /s\"",
            findings,
        );
        None
    }

    fn encode(&self) -> Value {
        self.0.encode()
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        // Of times a second any decimal, with an exponent or without.
        let a_second = "\\s*\\+?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?\\s*/s";
        let patterns = [a_second, &quantity(Kind::Duration)];
        text_schema("Arrivals per second, or the mean time between two.", &patterns, &["20 /s", "50 ms"])
    }
}

record! {
    /// Sizes of transfers, Pareto distributed (K02, 5.5), in whole segments.
    Pareto {
        /// Shape, above 1; the smaller it is, the heavier is the tail.
        shape: f64 = required,
        /// Mean size: packets or bytes.
        mean: Amount = required,
    }
}

/// The amount that each flow sends.
#[derive(Clone, Debug)]
pub(crate) enum Size {
    Bytes(Bytes),
    Pareto(Pareto),
}

impl Language for Size {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        if !matches!(node.value, Value::Table(_)) {
            return Bytes::decode(node, findings).map(Self::Bytes);
        }
        let variant = variant(node, findings)?;
        if variant.name != "pareto" {
            let message = format!("unknown key `{}` in `{}`", variant.name, findings.place());
            findings.error("scenario::unknown-key", variant.span, message, choices(variant.name, ["pareto"]));
            return None;
        }
        below(&variant, findings).map(Self::Pareto)
    }

    fn encode(&self) -> Value {
        match self {
            Self::Bytes(bytes) => bytes.encode(),
            Self::Pareto(pareto) => Value::table([("pareto".into(), pareto.encode())]),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let pareto = json_schema!({
            "type": "object",
            "properties": { "pareto": Pareto::schema(generator) },
            "required": ["pareto"],
            "additionalProperties": false,
        });
        json_schema!({ "anyOf": [Bytes::schema(generator), pareto] })
    }
}

record! {
    /// An advertised window that grows with every ACK (TH, 4.1).
    Growth {
        /// Window at the beginning.
        from: Amount = required,
        /// Growth with every ACK.
        per_ack: Amount = required,
        /// Largest window; absent: no end.
        to: Amount,
    }
}

/// The window that a receiver advertises.
#[derive(Clone, Debug)]
pub(crate) enum Awnd {
    Fixed(Amount),
    Growing(Growth),
}

impl Language for Awnd {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match node.value {
            Value::Table(_) => Growth::decode(node, findings).map(Self::Growing),
            _ => Amount::decode(node, findings).map(Self::Fixed),
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Fixed(amount) => amount.encode(),
            Self::Growing(growth) => growth.encode(),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [Amount::schema(generator), Growth::schema(generator)] })
    }
}

record! {
    /// A receiving application that reads slowly, and the buffer that it reads from.
    Reader {
        /// Rate at which whole IP packets are read.
        rate: BitRate = required,
        /// Size of the buffer, for data that are read or not; at least a segment.
        buffer: Bytes = required,
    }
}

/// Refuses a schedule whose steps are out of order or too many for `count`.
pub(crate) fn schedule(
    steps: Option<&At<Vec<At<Load>>>>,
    count: u32,
    duration: Duration,
    findings: &mut Findings,
) -> Vec<(congestlab_core::units::Time, u32)> {
    let Some(steps) = steps else { return Vec::new() };
    let place = format!("{}.schedule", findings.place());
    if steps.value.is_empty() {
        let help = "steps are [time, flows] pairs, such as [[\"0 s\", 0], [\"5 s\", 9]]";
        findings.error("scenario::schedule", steps.span, format!("`{place}` is empty"), help);
    }
    for pair in steps.value.windows(2) {
        if pair[1].value.from <= pair[0].value.from {
            let message = format!("`{place}`: {} is not after {}", pair[1].value.from, pair[0].value.from);
            findings.error(
                "scenario::schedule",
                pair[1].span,
                message,
                "each step is later than the one before",
            );
        }
    }
    for step in &steps.value {
        if step.value.from >= duration {
            let message = format!("`{place}`: the step at {} comes after the run", step.value.from);
            findings.warning("scenario::schedule", step.span, message, format!("the run ends at {duration}"));
        }
        if step.value.active > count.into() {
            let message = format!("`{place}`: {} flows are active of {count}", step.value.active);
            findings.error(
                "scenario::schedule",
                step.span,
                message,
                format!("allowed: 0 to {count}, the `count`"),
            );
        }
    }
    let at = |load: &Load| congestlab_core::units::Time(load.from.0);
    steps.value.iter().map(|step| (at(&step.value), step.value.active.min(count.into()) as u32)).collect()
}
