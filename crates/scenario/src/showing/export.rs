//! A run in the formats of other tools: qlog of its flows, OpenMetrics of its numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use congestlab_sim::model::GroupKind;
use serde_json::{Map, Value as Json, json};

use crate::language::scenario::Scenario;
use crate::results::folder::{FolderError, RunFolder};

/// The events of a qlog trace, by time.
type Events = Vec<(f64, Json)>;

/// The flows of a run as a qlog file of one JSON object (draft-ietf-quic-qlog-main-schema): a trace for each flow of a
/// transport protocol, as its sender saw it. At the end of each bin of `measure.every` stand smoothed round-trip time (ms) and
/// congestion window (bytes, headers included); between them what it sent again, and timeouts. Times are ms from the begin of
/// the run.
///
/// # Errors
/// A table of the run is damaged.
pub fn qlog(run: &RunFolder) -> Result<Json, FolderError> {
    let senders = senders(run.scenario());
    let mut flows: BTreeMap<(usize, u32), Events> = BTreeMap::new();
    let place = |element: &str| senders.iter().position(|sender| sender.group == element);
    run.flow_series(|row| {
        let (Some(group), Some(index)) = (place(row.element), row.index) else { return };
        let (key, value) = match row.metric {
            "srtt_ms" => ("smoothed_rtt", json!(row.value)),
            "cwnd_packets" => {
                let bytes = row.value * f64::from(senders[group].segment);
                ("congestion_window", json!(bytes.round() as u64))
            }
            _ => return,
        };
        let events = flows.entry((group, index)).or_default();
        let time = row.t_s * 1e3;
        match events.last_mut().filter(|(last, _)| *last == time) {
            Some((_, event)) => event["data"][key] = value,
            None => events.push((time, event(time, "recovery_metrics_updated", json!({ key: value })))),
        }
    })?;
    run.events(|row| {
        let (Some(group), Some(index)) = (place(row.element), row.index) else { return };
        let time = row.t_s * 1e3;
        let happened = match row.event {
            "timeout" => {
                event(time, "timer_updated", json!({ "timer_type": "pto", "event_type": "expired" }))
            }
            // The sender repeats what it takes for lost.
            "retransmit" => {
                // The number of the segment: unlike QUIC, TCP gives what it repeats the same.
                let header = json!({ "packet_type": "unknown", "packet_number": row.value });
                event(time, "packet_lost", json!({ "header": header }))
            }
            _ => return,
        };
        flows.entry((group, index)).or_default().push((time, happened));
    })?;
    let traces = flows.into_iter().map(|((group, index), mut events)| {
        events.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        trace(&senders[group], index, events.into_iter().map(|(_, event)| event).collect())
    });
    Ok(json!({
        "file_schema": "urn:ietf:params:qlog:file:contained",
        "serialization_format": "application/qlog+json",
        "title": run.name(),
        "description": if run.is_live() { "real packets" } else { "simulated" },
        "traces": traces.collect::<Vec<_>>(),
    }))
}

/// The senders of a group.
struct Sender<'a> {
    group: &'a str,
    law: &'static str,
    /// Bytes of a packet.
    segment: u16,
}

/// The groups that have a window.
fn senders(scenario: &Scenario) -> Vec<Sender<'_>> {
    let groups = scenario.base_model().groups.iter();
    let each = groups.filter_map(|group| match &group.kind {
        GroupKind::Tcp(config) => {
            Some(Sender { group: &group.name, law: config.law.name(), segment: config.segment })
        }
        GroupKind::Source(_) => None,
    });
    each.collect()
}

fn event(time: f64, name: &str, data: Json) -> Json {
    json!({ "time": time, "name": format!("quic:{name}"), "data": data })
}

fn trace(sender: &Sender<'_>, index: u32, events: Vec<Json>) -> Json {
    let name = format!("{}[{index}]", sender.group);
    json!({
        "title": name,
        "description": format!("law {}", sender.law),
        "common_fields": {
            "group_id": name,
            "protocol_types": ["TCP"],
            "time_format": "relative_to_epoch",
            "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
        },
        "vantage_point": { "name": format!("sender of {name}"), "type": "server" },
        "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
        "events": events,
    })
}

/// The numbers of a finished run in the text format of OpenMetrics 1.0: a family of gauges for each number of the results
/// (docs/scenario.md), with the unit at the end of its name, and labels `scenario`, `seed`, and `link`, or `flow` and `index`.
/// What was not measured is absent.
pub fn open_metrics(run: &RunFolder) -> String {
    let summary = run.summary();
    let mut families = Families(BTreeMap::new());
    let (origin, seed) = (run.origin(), run.scenario().seed().to_string());
    // The file in the folder has a name of its own.
    let name = origin["scenario"].as_str().unwrap_or_else(|| run.scenario().name());
    let of_run = [("scenario", name), ("seed", seed.as_str())];
    let is_of_run = |key: &&str| !["links", "flows", "jain", "meta", "files", "schema", "seed"].contains(key);
    for (key, value) in summary.as_object().into_iter().flatten().filter(|(key, _)| is_of_run(&key.as_str()))
    {
        families.add("run", key, &of_run, value);
    }
    for (name, link) in summary["links"].as_object().into_iter().flatten() {
        for (key, value) in link.as_object().into_iter().flatten() {
            families.add("link", key, &[of_run[0], of_run[1], ("link", name)], value);
        }
    }
    for (name, jain) in summary["jain"].as_object().into_iter().flatten() {
        families.add("flows", "jain", &[of_run[0], of_run[1], ("flow", name)], jain);
    }
    for (name, flows) in summary["flows"].as_object().into_iter().flatten() {
        for (index, flow) in flows.as_array().into_iter().flatten().enumerate() {
            let index = index.to_string();
            for (key, value) in flow.as_object().into_iter().flatten() {
                let labels = [of_run[0], of_run[1], ("flow", name), ("index", &index)];
                families.add("flow", key, &labels, value);
            }
        }
    }
    families.text()
}

/// Samples by family, as the format wants them: all of one together.
struct Families(BTreeMap<String, Vec<String>>);

impl Families {
    fn add(&mut self, of: &str, key: &str, labels: &[(&str, &str)], value: &Json) {
        if let Json::Object(reasons) = value {
            return self.add_all(of, key, labels, reasons);
        }
        let number = match value {
            Json::Bool(is_so) => f64::from(u8::from(*is_so)),
            other => match other.as_f64() {
                Some(number) => number,
                None => return,
            },
        };
        let family = name_of(&format!("congestlab_{of}_{key}"));
        let sample = sample(&family, labels, number);
        self.0.entry(family).or_default().push(sample);
    }

    /// Counts by reason, such as `drops_by_reason`, and what a law adds in a table of its own.
    fn add_all(&mut self, of: &str, key: &str, labels: &[(&str, &str)], parts: &Map<String, Json>) {
        for (part, value) in parts {
            match key.strip_suffix("_by_reason") {
                Some(_) => {
                    let labels: Vec<(&str, &str)> =
                        labels.iter().copied().chain([("reason", part.as_str())]).collect();
                    self.add(of, key, &labels, value);
                }
                None => self.add(of, &format!("{key}_{part}"), labels, value),
            }
        }
    }

    fn text(self) -> String {
        let mut text = String::new();
        for (family, samples) in self.0 {
            let _ = writeln!(text, "# TYPE {family} gauge\n{}", samples.join("\n"));
        }
        text + "# EOF\n"
    }
}

/// Letters, digits and `_` alone.
fn name_of(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Returns a line of the text formats of Prometheus and OpenMetrics: the family, labels with their values, and the number.
pub fn sample(family: &str, labels: &[(&str, &str)], number: f64) -> String {
    let list: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let braces = if list.is_empty() { String::new() } else { format!("{{{}}}", list.join(",")) };
    format!("{family}{braces} {number}")
}

/// A label's value: the format has three escapes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
