//! Files of flent, whose format is described in its manual (data-format): for each series `raw_values`, what the tools said
//! and when. Series of TCP flows are named `TCP upload` and `TCP download`; of uploads, with `--socket-stats`, windows and
//! round-trip times stand among the values.

use super::json::Node;
use super::{MeasuredFlow, Read, Span, Wrong};

/// Name that series of flows begin with. Sums and means of them have no raw values.
const FLOWS: &str = "TCP ";
/// The unit of goodputs, as flent calls it.
const UNIT: &str = "Mbits/s";

pub(super) fn read(top: &Node<'_>) -> Result<Read, Wrong> {
    let raw = top.maybe("raw_values").ok_or_else(|| {
        let help =
            "flent writes it since version 2 of its format: open the file with a newer flent, and save it";
        Wrong::new("", "`raw_values` is missing", help)
    })?;
    let series = top.maybe("metadata").and_then(|metadata| metadata.maybe("SERIES_META"));
    let about = |name: &str| series.as_ref().and_then(|series| series.maybe(name));
    let mut flows = Vec::new();
    for (name, values) in raw.members()? {
        let unit = about(name).and_then(|about| about.maybe("UNITS"));
        if !name.starts_with(FLOWS)
            || name.contains("::tcp_")
            || unit.is_some_and(|unit| unit.text().is_ok_and(|unit| unit != UNIT))
        {
            continue;
        }
        let mut flow = MeasuredFlow { name: name.into(), ..MeasuredFlow::default() };
        for value in values.list()? {
            take(&mut flow, &value)?;
        }
        if flow.bytes.is_empty() {
            continue;
        }
        flow.from_s = flow.bytes.iter().map(|span| span.from_s).fold(f64::INFINITY, f64::min);
        flow.began_s = flow.from_s;
        if let Some(again) = about(name).and_then(|about| about.maybe("TCP_RETRANSMIT")) {
            flow.retransmits_total = Some(again.number_or_text()?);
        }
        flows.push(flow);
    }
    // Objects of JSON have no order: `::2` stands before `::10`.
    flows.sort_by(|one, other| by_number(&one.name).cmp(&by_number(&other.name)));
    let mut notes = vec![
        "goodput is what netperf's interim results say, of an upload what the sender gave to its socket"
            .into(),
    ];
    if flows.iter().all(|flow| flow.cwnd_packets.is_empty()) {
        notes.push("windows and round-trip times are not in the file: record with --socket-stats".into());
    }
    Ok((flows, notes))
}

/// Returns a key by which names are in order, where runs of digits count as numbers: texts, each with the number behind it.
fn by_number(name: &str) -> Vec<(&str, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(digits);
        let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        key.push((text, behind[..end].parse().unwrap_or(u64::MAX)));
        rest = &behind[end..];
    }
    key
}

/// Takes one value of a tool: a rate over a time, or what `ss` saw.
fn take(flow: &mut MeasuredFlow, value: &Node<'_>) -> Result<(), Wrong> {
    let at = value.get("t")?.time()?;
    if let Some(rate) = value.maybe("val") {
        let last = flow.bytes.last().map(|span| span.to_s);
        let over = match (value.maybe("dur"), last) {
            (Some(over), _) => over.number()?,
            // Since the value before it.
            (None, Some(last)) if at >= last => at - last,
            (None, Some(_)) => return Err(value.get("t")?.wrong("a time that is not before the last one")),
            // The first begins at an unknown time.
            (None, None) => 0.0,
        };
        let amount = rate.number()? * 1e6 / 8.0 * over;
        flow.bytes.push(Span { from_s: at - over, to_s: at, amount });
    }
    if let Some(rtt) = value.maybe("tcp_rtt") {
        flow.rtt_ms.push((at, rtt.number()?));
    }
    if let Some(cwnd) = value.maybe("tcp_cwnd") {
        flow.cwnd_packets.push((at, cwnd.number()?));
    }
    Ok(())
}
