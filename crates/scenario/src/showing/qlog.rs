//! The flows of a run as qlog, packet by packet, as each sender saw them.
//!
//! A TCP segment that is sent again keeps its number, but a QUIC packet never does, and viewers rely on that. So each
//! transmission has a packet number here, and a `stream` frame says which bytes it carries.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use congestlab_net::packet::{Kind, Packet, Picos, SACK_BLOCKS, flag};
use congestlab_net::tcp::{Config, View};
use congestlab_sim::model::{GroupKind, Model};
use congestlab_sim::watch::{Step, Watched};
use serde_json::{Map, Value as Json, json};

use crate::language::measure::Measure;
use crate::results::folder::{FolderError, RunFolder};
use congestlab_text::printable;

/// Bytes of the IP and TCP headers, which are no part of the stream.
const HEADERS: u64 = 40;

/// A version of qlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Schema {
    /// Version 0.3: draft-ietf-quic-qlog-main-schema-03 with quic-events-02, the newest that qvis opens.
    #[default]
    V03,
    /// draft-ietf-quic-qlog-main-schema-14 with quic-events-13.
    Draft14,
}

/// An event of a flow.
#[derive(Clone, Copy)]
enum Name {
    Sent,
    Received,
    Acked,
    Lost,
    Metrics,
    Timer,
}

impl Schema {
    fn name(self, name: Name) -> &'static str {
        let [old, new] = match name {
            Name::Sent => ["transport:packet_sent", "quic:packet_sent"],
            Name::Received => ["transport:packet_received", "quic:packet_received"],
            Name::Acked => ["transport:packets_acked", "quic:packets_acked"],
            Name::Lost => ["recovery:packet_lost", "quic:packet_lost"],
            Name::Metrics => ["recovery:metrics_updated", "quic:recovery_metrics_updated"],
            Name::Timer => ["recovery:loss_timer_updated", "quic:timer_updated"],
        };
        if self == Self::V03 { old } else { new }
    }

    /// The frame with the bytes of a segment.
    fn stream(self, offset: u64, length: u64) -> Json {
        match self {
            Self::V03 => {
                json!({ "frame_type": "stream", "stream_id": 0, "offset": offset, "length": length })
            }
            Self::Draft14 => json!({
                "frame_type": "stream", "stream_id": 0, "offset": offset, "raw": { "payload_length": length }
            }),
        }
    }

    /// The beginning of the file, without its traces.
    fn file(self) -> Json {
        match self {
            // qvis looks for `qlog_version` among the first 1,024 characters.
            Self::V03 => json!({ "qlog_version": "0.3", "qlog_format": "JSON" }),
            Self::Draft14 => json!({
                "file_schema": "urn:ietf:params:qlog:file:contained",
                "serialization_format": "application/qlog+json",
            }),
        }
    }

    /// The trace of a flow, without its events.
    fn trace(self, sender: &Sender<'_>, index: u32) -> Json {
        let name = format!("{}[{index}]", sender.group);
        let mut trace = json!({
            "title": name,
            "description": format!("law {}", sender.law),
            "vantage_point": { "name": format!("sender of {name}"), "type": "server" },
        });
        match self {
            Self::V03 => {
                trace["common_fields"] = json!({
                    "protocol_type": "TCP", "time_format": "relative", "reference_time": "0",
                });
            }
            Self::Draft14 => {
                trace["common_fields"] = json!({
                    "group_id": name,
                    "protocol_types": ["TCP"],
                    "time_format": "relative_to_epoch",
                    "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                });
                trace["event_schemas"] = json!(["urn:ietf:params:qlog:events:quic-13"]);
            }
        }
        trace
    }
}

/// Returns the flows of a run as a qlog file of one JSON object: a trace for each flow of a transport protocol that sent
/// something, as its sender saw it. Times are ms from the begin of the run.
///
/// If `version`, this program's, made the run, the run is simulated again, and the traces have each packet that the
/// sender sent, received, took for acknowledged or for lost, each timeout, and its metrics whenever they changed. The
/// traces of other versions and of real packets have what the folder recorded: metrics at the end of each bin,
/// retransmissions and timeouts. Returns `None` if `stop` was raised.
///
/// # Errors
/// If a table of the run is damaged.
pub fn qlog(
    run: &RunFolder,
    schema: Schema,
    version: &str,
    stop: &AtomicBool,
) -> Result<Option<String>, FolderError> {
    let model = run.scenario().model(&Measure::default());
    let mut flows = flows(&model, &run.scenario().flow_laws(), schema);
    if has_packets(run, version) {
        if !simulate(&model, &mut flows, stop) {
            return Ok(None);
        }
    } else {
        read(run, &mut flows)?;
    }
    let mut file = schema.file();
    file["title"] = run.name().into();
    file["description"] = if run.is_live() { "real packets" } else { "simulated" }.into();
    let traces = flows.iter().filter(|flow| !flow.events.is_empty());
    let traces: Vec<String> =
        traces.map(|flow| with(&schema.trace(&flow.sender, flow.index), "events", &flow.events)).collect();
    Ok(Some(printable::json(with(&file, "traces", &traces) + "\n")))
}

/// Returns true if the traces of the run have its packets: if `version`, this program's, simulated it.
pub fn has_packets(run: &RunFolder, version: &str) -> bool {
    !run.is_live() && run.require_version(version).is_ok()
}

/// An object with one more key, a list of JSON texts, one a line.
fn with(object: &Json, key: &str, list: &[String]) -> String {
    let mut text = object.to_string();
    text.pop();
    format!("{text},\"{key}\":[\n{}\n]}}", list.join(",\n"))
}

/// The senders of a group.
#[derive(Clone, Copy)]
struct Sender<'a> {
    group: &'a str,
    law: &'a str,
    config: &'a Config,
}

/// Observations of a sender.
struct Flow<'a> {
    schema: Schema,
    sender: Sender<'a>,
    /// Index over the whole run, and in the group.
    flow: u32,
    index: u32,
    /// JSON texts, in order of time.
    events: Vec<String>,
    /// Packets sent and received.
    sent: u64,
    received: u64,
    /// Sequence number of segment 0, and the number of a segment near those in flight.
    base: u32,
    near: i64,
    /// Packet number of the last transmission of each segment that is not acknowledged.
    flight: BTreeMap<i64, u64>,
    /// Metrics as they were told last.
    told: Map<String, Json>,
}

/// The flows that have a window.
fn flows<'a>(model: &'a Model, laws: &[Option<&'a str>], schema: Schema) -> Vec<Flow<'a>> {
    let (mut flows, mut flow) = (Vec::new(), 0);
    for (place, group) in model.groups.iter().enumerate() {
        if let GroupKind::Tcp(config) = &group.kind {
            // Reno with another recovery has a name of its own in scenarios.
            let law = laws.get(place).copied().flatten().unwrap_or_else(|| config.law.name());
            let sender = Sender { group: &group.name, law, config };
            flows.extend((0..group.count).map(|index| Flow {
                schema,
                sender,
                flow: flow + index,
                index,
                events: Vec::new(),
                sent: 0,
                received: 0,
                base: 0,
                near: 0,
                flight: BTreeMap::new(),
                told: Map::new(),
            }));
        }
        flow += group.count;
    }
    flows
}

/// Simulates the run again. Returns false if `stop` was raised.
fn simulate(model: &Model, flows: &mut [Flow<'_>], stop: &AtomicBool) -> bool {
    congestlab_sim::watch(model, Watched::Senders, stop, &mut |_| {}, &mut |now, step| {
        let of = match step {
            Step::Sent { packet } | Step::Received { packet } => packet.flow,
            Step::Acted { flow, .. } => *flow,
            Step::Entered { .. } | Step::Port { .. } | Step::Crossed { .. } => {
                return ControlFlow::Continue(());
            }
        };
        if let Ok(place) = flows.binary_search_by_key(&of, |flow| flow.flow) {
            flows[place].step(now, step);
        }
        ControlFlow::Continue(())
    })
}

impl Flow<'_> {
    fn tell(&mut self, time_ms: f64, name: Name, data: &Json) {
        let event = json!({ "time": time_ms, "name": self.schema.name(name), "data": data });
        self.events.push(event.to_string());
    }

    fn step(&mut self, now: Picos, step: &Step) {
        let now = now as f64 / 1e9;
        match step {
            Step::Sent { packet } if matches!(packet.kind, Kind::Syn | Kind::Data | Kind::WindowProbe) => {
                self.note_sent(now, packet);
            }
            Step::Received { packet } if matches!(packet.kind, Kind::SynAck | Kind::Ack) => {
                self.note_received(now, packet);
            }
            Step::Acted { before, after, .. } => {
                if after.timeouts > before.timeouts {
                    self.tell(now, Name::Timer, &json!({ "timer_type": "pto", "event_type": "expired" }));
                }
                self.note_metrics(now, after);
            }
            _ => {}
        }
    }

    /// The number of a segment; the SYN comes before segment 0.
    fn segment(&self, seq: u32) -> i64 {
        let ahead = seq.wrapping_sub(self.base.wrapping_add(self.near as u32)) as i32;
        self.near + i64::from(ahead)
    }

    fn note_sent(&mut self, now: f64, packet: &Packet) {
        if packet.kind == Kind::Syn {
            self.base = packet.seq.wrapping_add(1);
        }
        let (number, segment) = (self.sent, self.segment(packet.seq));
        self.sent += 1;
        let mut data = json!({ "header": header(number), "raw": { "length": packet.size } });
        if packet.kind == Kind::Data {
            let bytes = |count: i64| self.sender.config.payload(count.max(0) as u64, HEADERS);
            let (offset, end) = (bytes(segment), bytes(segment + 1));
            data["frames"] = json!([self.schema.stream(offset, end - offset)]);
        }
        // Probes are copies of segments that stay in flight.
        if packet.kind != Kind::WindowProbe && packet.flags & flag::LOW_PRIORITY == 0 {
            // A packet that is sent again was taken for lost.
            let is_again = packet.flags & flag::RETRANSMIT != 0 || packet.kind == Kind::Syn;
            if let (Some(lost), true) = (self.flight.insert(segment, number), is_again) {
                self.tell(now, Name::Lost, &json!({ "header": header(lost) }));
            }
        }
        self.tell(now, Name::Sent, &data);
    }

    fn note_received(&mut self, now: f64, packet: &Packet) {
        let number = self.received;
        self.received += 1;
        let mut data = json!({ "header": header(number), "raw": { "length": packet.size } });
        let up_to = match packet.kind {
            Kind::SynAck => 0,
            _ => self.segment(packet.seq),
        };
        let behind = self.flight.split_off(&up_to);
        let mut acked: Vec<u64> = std::mem::replace(&mut self.flight, behind).into_values().collect();
        self.near = self.near.max(up_to);
        for (start, end) in (0..SACK_BLOCKS).map(|block| packet.sack(block)) {
            if packet.kind == Kind::Ack && start != end {
                let (start, end) = (self.segment(start), self.segment(end));
                let mut held = self.flight.split_off(&start.min(end));
                self.flight.append(&mut held.split_off(&end));
                acked.extend(held.into_values());
            }
        }
        if !acked.is_empty() {
            acked.sort_unstable();
            data["frames"] = json!([{ "frame_type": "ack", "acked_ranges": ranges(&acked) }]);
        }
        self.tell(now, Name::Received, &data);
        if !acked.is_empty() {
            self.tell(now, Name::Acked, &json!({ "packet_numbers": acked }));
        }
    }

    /// The metrics that changed.
    fn note_metrics(&mut self, now: f64, view: &View) {
        let mut metrics = Map::new();
        if view.srtt.0 > 0 {
            metrics.insert("smoothed_rtt".into(), json!(view.srtt.0 as f64 / 1e6));
        }
        let segment = u64::from(self.sender.config.segment);
        metrics.insert("congestion_window".into(), json!(view.law.window().0));
        metrics.insert("bytes_in_flight".into(), json!(view.pipe * segment));
        metrics.insert("packets_in_flight".into(), json!(view.pipe));
        let told = std::mem::replace(&mut self.told, metrics.clone());
        metrics.retain(|key, value| told.get(key) != Some(value));
        if !metrics.is_empty() {
            self.tell(now, Name::Metrics, &metrics.into());
        }
    }
}

/// The header of a packet. TCP has no types of packets.
fn header(number: u64) -> Json {
    json!({ "packet_type": "1RTT", "packet_number": number })
}

/// Numbers in ascending order as ranges, both ends included.
fn ranges(numbers: &[u64]) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some(last) if last[1] + 1 >= number => last[1] = number,
            _ => ranges.push([number, number]),
        }
    }
    ranges
}

/// Reads what the folder recorded.
fn read(run: &RunFolder, flows: &mut [Flow<'_>]) -> Result<(), FolderError> {
    // Nothing is a sender's before its flow starts, and after it is complete.
    let lives: Vec<[f64; 2]> = flows
        .iter()
        .map(|flow| {
            let result = &run.summary()["flows"][flow.sender.group][flow.index as usize];
            let start = result["start_s"].as_f64().unwrap_or(0.0);
            [start, result["completion_s"].as_f64().map_or(f64::INFINITY, |completion| start + completion)]
        })
        .collect();
    let place = |flows: &[Flow<'_>], element: &str, index: Option<u32>, t_s: f64| {
        let is_it = |flow: &Flow<'_>| flow.sender.group == element && Some(flow.index) == index;
        flows.iter().position(is_it).filter(|&place| (lives[place][0]..=lives[place][1]).contains(&t_s))
    };
    // By flow: time, and what happened.
    let mut events: BTreeMap<usize, Vec<(f64, Name, Json)>> = BTreeMap::new();
    run.flow_series(|row| {
        let Some(place) = place(flows, row.element, row.index, row.t_s) else { return };
        let (key, value) = match row.metric {
            "srtt_ms" => ("smoothed_rtt", json!(row.value)),
            "cwnd_packets" => {
                let bytes = row.value * f64::from(flows[place].sender.config.segment);
                ("congestion_window", json!(bytes.round() as u64))
            }
            _ => return,
        };
        let (events, time) = (events.entry(place).or_default(), row.t_s * 1e3);
        match events.last_mut().filter(|(last, ..)| *last == time) {
            Some((.., data)) => data[key] = value,
            None => events.push((time, Name::Metrics, json!({ key: value }))),
        }
    })?;
    run.events(|row| {
        let Some(place) = place(flows, row.element, row.index, row.t_s) else { return };
        let (name, data) = match row.event {
            "timeout" => (Name::Timer, json!({ "timer_type": "pto", "event_type": "expired" })),
            // The sender repeats what it takes for lost. Its first transmission has the number of the segment.
            "retransmit" => {
                let number = u64::try_from(row.value).unwrap_or(0);
                (Name::Lost, json!({ "header": header(number) }))
            }
            _ => return,
        };
        events.entry(place).or_default().push((row.t_s * 1e3, name, data));
    })?;
    for (place, mut events) in events {
        events.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        for (time, name, data) in &events {
            flows[place].tell(*time, *name, data);
        }
    }
    Ok(())
}
