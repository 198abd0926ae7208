//! Troubles of a path at some times: silence, packets that are overtaken, bursts of errors, changes of path.

use congestlab_core::units::Duration;
use congestlab_net::errors::ErrorRate;
use congestlab_net::impairments::{self as net, EcnRewrite, Reorder, Spans};
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::random::Probability;
use schemars::{Schema, SchemaGenerator, json_schema};

use congestlab_text::decode::{At, Chance, Language, fill, record, words, wrong_type};
use congestlab_text::diagnostic::{Findings, Span};
use congestlab_text::tree::{Node, Value};

record! {
    /// A time without pure acknowledgments.
    Blackout {
        /// Beginning of the blackout.
        at: Duration = required,
        /// Length of the blackout.
        r#for: Duration = required,
    }
}

record! {
    /// Packets that come later than those sent after them.
    Reordering {
        /// Part of the packets that are delayed, data and acknowledgments.
        probability: Chance = required,
        /// Additional delay of these packets.
        delay: Duration = required,
    }
}

words! {
    /// Code of the ECN field.
    Code {
        /// Not ECN-capable.
        NotEct = "00",
        /// ECT(1).
        Ect1 = "01",
        /// ECT(0).
        Ect0 = "10",
        /// Congestion experienced.
        Ce = "11",
    }
}

record! {
    /// Codes with which packets leave, by the code with which they came.
    Codes {
        /// Code of packets that came with 00 (not ECN-capable); 00.
        not_ect: Code,
        /// Code of packets that came with 01 (ECT(1)); 01.
        ect1: Code,
        /// Code of packets that came with 10 (ECT(0)); 10.
        ect0: Code,
        /// Code of packets that came with 11 (CE); 11.
        ce: Code,
        /// Part of the packets that are rewritten; 1.
        probability: Chance,
    }
}

/// Rewriting of the ECN field: a word, or codes.
#[derive(Clone, Debug)]
pub(crate) enum Ecn {
    /// All packets leave with 00.
    Clear,
    Codes(Codes),
}

impl Language for Ecn {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::String(word) if word == "clear" => Some(Self::Clear),
            Value::Table(_) => Codes::decode(node, findings).map(Self::Codes),
            _ => {
                let help = "write \"clear\", or codes by the code with which a packet came: { ect1 = \"00\", ce = \"10\" }";
                wrong_type(node, "\"clear\" or a table", help, findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Clear => Value::string("clear"),
            Self::Codes(codes) => codes.encode(),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": ["clear"] }, Codes::schema(generator)] })
    }
}

record! {
    /// Errors in bursts: the wire is good or bad by turns, each for an exponentially distributed time.
    GilbertElliott {
        /// Mean time in the good state.
        good: Duration = required,
        /// Mean time in the bad state.
        bad: Duration = required,
        /// Probability of an error in a packet of packet_size in the bad state; other sizes by the bit error rate
        /// that it implies.
        packet_error_rate: Chance = required,
        /// Probability of an error in a packet of packet_size in the good state; 0.
        good_packet_error_rate: Chance,
    }
}

record! {
    /// Another path from a time on.
    Switch {
        /// Time of the change: packets sent from then on take the new path.
        at: Duration = required,
        /// Links that the data crosses, in order.
        path: Vec<At<String>> = required,
    }
}

fn picos(span: Duration) -> Picos {
    span.0.saturating_mul(PS_PER_NS)
}

/// The blackouts of a link, inside the run, apart from each other. `None` after an error.
pub(crate) fn blackouts(
    list: Option<&At<Vec<At<Blackout>>>>,
    duration: Duration,
    findings: &mut Findings,
) -> Option<Spans> {
    let mut spans: Vec<(Picos, Picos, Span)> = Vec::new();
    for (index, blackout) in list.into_iter().flat_map(|list| &list.value).enumerate() {
        let (at, length) = (blackout.value.at.as_ref()?, blackout.value.r#for.as_ref()?);
        let place = format!("`{}.ack_blackout[{index}]`", findings.place());
        if length.value.0 == 0 {
            let message = format!("{place} lasts no time");
            findings.error("scenario::range", length.span, message, "allowed: above 0 s");
            return None;
        }
        let end = at.value.0.saturating_add(length.value.0);
        if at.value >= duration {
            let message = format!("{place} begins at {}, outside the run", at.value);
            findings.error("scenario::blackout", at.span, message, format!("allowed: before {duration}"));
            return None;
        }
        if end > duration.0 {
            let message = format!("{place} ends at {}, after the run", Duration(end));
            let help = format!("the run ends at {duration}");
            findings.warning("scenario::blackout", length.span, message, help);
        }
        spans.push((picos(at.value), picos(Duration(end)), blackout.span));
    }
    spans.sort_unstable_by_key(|&(from, to, _)| (from, to));
    if let Some(pair) = spans.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        let message = format!("`{}.ack_blackout`: two blackouts overlap", findings.place());
        findings.error("scenario::blackout", pair[1].2, message, "they may touch; write one that is longer");
        return None;
    }
    Spans::new(spans.into_iter().map(|(from, to, _)| (from, to)).collect())
}

/// Which packets come later.
pub(crate) fn reorder(key: Option<&At<Reordering>>, findings: &mut Findings) -> Option<Reorder> {
    let At { value, span } = key?;
    let (probability, delay) = (value.probability.as_ref()?, value.delay.as_ref()?);
    if delay.value.0 == 0 || probability.value.0 == 0.0 {
        let message = format!("`{}.reorder` delays nothing", findings.place());
        findings.warning("scenario::no-effect", *span, message, "write a probability and a delay above 0");
        return None;
    }
    let probability = Probability::from_f64(probability.value.0);
    Some(Reorder { probability, delay: picos(delay.value) })
}

/// How the ECN field is rewritten.
pub(crate) fn ecn(key: Option<&mut At<Ecn>>, findings: &mut Findings) -> Option<EcnRewrite> {
    let At { value, span } = key?;
    let rewrite = match value {
        Ecn::Clear => EcnRewrite { to: [0; 4], probability: Probability::from_f64(1.0) },
        Ecn::Codes(codes) => {
            let mut to = [0, 1, 2, 3];
            let keys = [&mut codes.not_ect, &mut codes.ect1, &mut codes.ect0, &mut codes.ce];
            for ((key, code), word) in
                keys.into_iter().zip(&mut to).zip([Code::NotEct, Code::Ect1, Code::Ect0, Code::Ce])
            {
                *code = fill(key, *span, || word).value as u8;
            }
            let probability = fill(&mut codes.probability, *span, || Chance(1.0)).value.0;
            EcnRewrite { to, probability: Probability::from_f64(probability) }
        }
    };
    if rewrite.to == [0, 1, 2, 3] || rewrite.probability == Probability::ZERO {
        let message = format!("`{}.ecn` rewrites nothing", findings.place());
        let help =
            "write \"clear\", or codes by the code with which a packet came: { ect1 = \"00\", ce = \"10\" }";
        findings.warning("scenario::no-effect", *span, message, help);
        return None;
    }
    Some(rewrite)
}

/// Errors in bursts. `None` after an error.
pub(crate) fn bursts(
    key: &mut At<GilbertElliott>,
    packet_size: u16,
    findings: &mut Findings,
) -> Option<ErrorRate> {
    let At { value, span } = key;
    let good_rate = fill(&mut value.good_packet_error_rate, *span, || Chance(0.0)).value.0;
    let (good, bad) = (value.good.as_ref()?, value.bad.as_ref()?);
    for (name, time) in [("good", good), ("bad", bad)] {
        if time.value.0 == 0 {
            let message = format!("`{}.error.gilbert_elliott.{name}` is zero", findings.place());
            let help = "allowed: above 0 s; for errors at all times, error = { packet_error_rate = 0.01 }";
            findings.error("scenario::range", time.span, message, help);
            return None;
        }
    }
    Some(ErrorRate::GilbertElliott(net::GilbertElliott {
        good: picos(good.value),
        bad: picos(bad.value),
        good_packet_error_rate: good_rate,
        packet_error_rate: value.packet_error_rate.as_ref()?.value.0,
        size: packet_size,
    }))
}
