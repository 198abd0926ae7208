//! The differences of two runs: in their scenarios, in their results, and in what happens to their packets.
//!
//! Results say that two runs differ; the first packet on which they do says why. It is found by running
//! both again, side by side, up to there.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use congestlab_core::law::Series as _;
use congestlab_net::packet::{Kind, Packet, Picos};
use congestlab_net::port::PortEvent;
use congestlab_net::queue::Reason;
use congestlab_sim::watch::{Step, Watched};
use serde::Serialize;
use serde_json::Value as Json;

use crate::language::file::File;
use crate::language::measure::Measure;
use crate::language::scenario::Scenario;
use crate::results::folder::{EventRow, FolderError, RunFolder};
use crate::results::result::Names;
use crate::results::tables::seconds;
use congestlab_text::decode::Language;
use congestlab_text::tree;
use congestlab_text::tree::Value;

/// The result of [`diff`].
#[derive(Clone, Debug, Serialize)]
pub struct Differences {
    /// True if the runs do not differ.
    pub equal: bool,
    /// Fingerprints of the two runs.
    pub fingerprints: [String; 2],
    /// Values of the normalised scenarios that differ.
    pub configuration: Vec<Setting>,
    /// Metrics that differ, the largest relative difference first.
    pub metrics: Vec<Metric>,
    /// Metrics that were compared.
    pub metrics_compared: usize,
    /// The first recorded event that differs.
    pub first_event: Option<Parting>,
    /// Reason for which the runs are not compared packet by packet, which simulates both again; `None` if they are, or if
    /// their fingerprints are equal.
    pub packets_refused: Option<String>,
    /// The first difference in all that happens to packets; not searched for where the fingerprints are equal, or where
    /// `packets_refused` has a reason.
    pub first_packet: Option<Parting>,
}

/// A value of the scenario that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// Path of the value in the normalised scenario.
    pub path: String,
    /// Value in the first run; `None` if it has none.
    pub one: Option<Json>,
    /// Value in the other run; `None` if it has none.
    pub other: Option<Json>,
}

/// A number of the results that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Path of the metric in the results.
    pub path: String,
    /// Value in the first run; `None` if there was nothing to measure.
    pub one: Option<f64>,
    /// Value in the other run; `None` if there was nothing to measure.
    pub other: Option<f64>,
    /// Value in the other run less that in the first.
    pub difference: Option<f64>,
    /// Size of the difference as a share of the larger value.
    pub relative: Option<f64>,
}

/// The first point at which two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parting {
    /// Time of the difference, s.
    pub t_s: f64,
    /// Event in the first run; `None`: it has none there.
    pub one: Option<String>,
    /// Event in the other run; `None`: it has none there.
    pub other: Option<String>,
}

/// Compares two runs. Metrics that differ by no more than the share `tolerance` count as equal. Runs of another version
/// than `version`, this program's, are compared by their records alone. Returns `None` if `stop` was raised.
///
/// # Errors
/// If a table of a run is damaged.
pub fn diff(
    runs: [&RunFolder; 2],
    tolerance: f64,
    version: &str,
    stop: &AtomicBool,
) -> Result<Option<Differences>, FolderError> {
    let configuration = settings(runs.map(RunFolder::scenario));
    let (metrics_compared, metrics) = metrics(runs.map(RunFolder::summary), tolerance);
    let first_event = first_event(runs)?;
    let fingerprints = runs.map(|run| run.fingerprint().to_owned());
    let differs = fingerprints[0] != fingerprints[1];
    let refused = runs.iter().find_map(|run| run.require_version(version).err()).filter(|_| differs);
    let is_searched = differs && refused.is_none();
    let first_packet = match is_searched.then(|| first_packet(runs.map(RunFolder::scenario), stop)) {
        Some(None) => return Ok(None),
        found => found.flatten().flatten(),
    };
    Ok(Some(Differences {
        equal: !differs && configuration.is_empty() && metrics.is_empty() && first_event.is_none(),
        fingerprints,
        configuration,
        metrics,
        metrics_compared,
        first_event,
        packets_refused: refused.map(|reason| reason.to_string()),
        first_packet,
    }))
}

/// Pairs the values of both under either's keys, in the order of the first, then of the other.
fn pairs<T: Clone>([one, other]: [Vec<(String, T)>; 2]) -> Vec<(String, [Option<T>; 2])> {
    let mut rest: BTreeMap<&String, &T> = other.iter().map(|(path, value)| (path, value)).collect();
    let mut pairs: Vec<(String, [Option<T>; 2])> = one
        .into_iter()
        .map(|(path, value)| {
            let other = rest.remove(&path).cloned();
            (path, [Some(value), other])
        })
        .collect();
    let only = other.iter().filter(|(path, _)| rest.contains_key(path));
    pairs.extend(only.map(|(path, value)| (path.clone(), [None, Some(value.clone())])));
    pairs
}

fn settings(scenarios: [&Scenario; 2]) -> Vec<Setting> {
    let flat = |scenario: &Scenario| {
        let mut settings = Vec::new();
        let file = File { sweep: None, claims: None, ..scenario.file.clone() };
        flatten(&file.encode(), String::new(), &mut settings);
        // Names of traces say nothing of what is in them.
        for (name, bytes) in scenario.traces() {
            let hash = congestlab_text::disk::hash(&[&bytes]);
            settings.push((name, format!("a trace with hash {hash}").into()));
        }
        settings
    };
    pairs(scenarios.map(flat))
        .into_iter()
        .filter(|(_, [one, other])| one != other)
        .map(|(path, [one, other])| Setting { path, one, other })
        .collect()
}

fn flatten(value: &Value, path: String, settings: &mut Vec<(String, Json)>) {
    match value {
        Value::Table(table) if !table.0.is_empty() => {
            for entry in &table.0 {
                flatten(&entry.node.value, below(&path, &entry.key), settings);
            }
        }
        value => settings.push((path, tree::to_json(value))),
    }
}

/// `links."a b".drops`.
fn below(path: &str, key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let key = if is_bare { key.to_owned() } else { format!("\"{key}\"") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Keys of the summary that are no results: the scenario's, or of the file itself.
const NO_METRICS: [&str; 8] =
    ["schema", "complete", "seed", "seed_used", "fingerprint", "duration_s", "meta", "files"];

fn metrics(summaries: [&Json; 2], tolerance: f64) -> (usize, Vec<Metric>) {
    let flat = |summary: &Json| {
        let mut metrics = Vec::new();
        for (key, value) in summary.as_object().into_iter().flatten() {
            if !NO_METRICS.contains(&key.as_str()) {
                numbers(value, below("", key), &mut metrics);
            }
        }
        metrics
    };
    let pairs = pairs(summaries.map(flat));
    let compared = pairs.len();
    let mut metrics: Vec<Metric> = pairs
        .into_iter()
        .map(|(path, [one, other])| (path, [one.flatten(), other.flatten()]))
        .filter(|(_, [one, other])| one != other)
        .map(|(path, [one, other])| {
            let both = one.zip(other);
            let difference = both.map(|(one, other)| other - one);
            let relative = both.map(|(one, other)| (other - one).abs() / one.abs().max(other.abs()));
            Metric { path, one, other, difference, relative }
        })
        .filter(|metric| metric.relative.is_none_or(|relative| relative > tolerance))
        .collect();
    // What only one run has, first; then by how much they differ, else as the results have them.
    let rank = |metric: &Metric| metric.relative.unwrap_or(f64::INFINITY);
    metrics.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
    (compared, metrics)
}

fn numbers(value: &Json, path: String, metrics: &mut Vec<(String, Option<f64>)>) {
    match value {
        Json::Object(table) => {
            table.iter().for_each(|(key, value)| numbers(value, below(&path, key), metrics));
        }
        Json::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, value)| numbers(value, format!("{path}[{index}]"), metrics));
        }
        value => metrics.push((path, value.as_f64())),
    }
}

/// Things that one run does, in order, as another thread finds them.
struct Stream<T> {
    receiver: Receiver<Vec<T>>,
    batch: std::vec::IntoIter<T>,
}

impl<T> Iterator for Stream<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(next) = self.batch.next() {
                return Some(next);
            }
            self.batch = self.receiver.recv().ok()?.into_iter();
        }
    }
}

/// The other end of a [`Stream`].
struct Feed<T> {
    sender: SyncSender<Vec<T>>,
    batch: Vec<T>,
}

const BATCH: usize = 4096;

impl<T> Feed<T> {
    /// False if nobody listens any more.
    fn put(&mut self, item: T) -> bool {
        self.batch.push(item);
        self.batch.len() < BATCH || self.flush()
    }

    fn flush(&mut self) -> bool {
        self.sender.send(std::mem::take(&mut self.batch)).is_ok()
    }
}

fn stream<T>() -> (Feed<T>, Stream<T>) {
    let (sender, receiver) = sync_channel(4);
    (Feed { sender, batch: Vec::new() }, Stream { receiver, batch: Vec::new().into_iter() })
}

fn first_event(runs: [&RunFolder; 2]) -> Result<Option<Parting>, FolderError> {
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let [mut one, mut other] = runs.map(|run| {
            let (mut feed, stream) = stream();
            threads.push(scope.spawn(move || {
                let result = run.events(|row| {
                    feed.put((row.t_s, event_text(&row)));
                });
                feed.flush();
                result
            }));
            stream
        });
        let parting = loop {
            match (one.next(), other.next()) {
                (None, None) => break None,
                (one, other) if one == other => {}
                (one, other) => {
                    let time =
                        |event: &Option<(f64, String)>| event.as_ref().map_or(f64::INFINITY, |event| event.0);
                    let (first, second) = (time(&one), time(&other));
                    let t_s = first.min(second);
                    let text = |event: Option<(f64, String)>| {
                        event.filter(|event| event.0 == t_s).map(|event| event.1)
                    };
                    break Some(Parting { t_s, one: text(one), other: text(other) });
                }
            }
        };
        // Whoever still reads finds nobody listening.
        drop((one, other));
        for thread in threads {
            thread.join().unwrap_or(Ok(()))?;
        }
        Ok(parting)
    })
}

/// `drop (queue-full) of packet 7 of ftp[2] at bottleneck`.
fn event_text(row: &EventRow<'_>) -> String {
    let at = match row.index {
        Some(index) => format!("{}[{index}]", row.element),
        None => row.element.to_owned(),
    };
    let detail = row.detail.map_or_else(String::new, |detail| format!(" ({detail})"));
    match (row.event, row.flow.zip(row.flow_index)) {
        ("control-interval", _) => format!("control-interval at {at}: its law decided {}", row.value),
        (event, Some((flow, index))) => {
            format!("{event}{detail} of packet {} of {flow}[{index}] at {at}", row.value)
        }
        (event, None) if row.value != 0 => format!("{event}{detail} of packet {} at {at}", row.value),
        (event, None) => format!("{event}{detail} at {at}"),
    }
}

/// Something that happens to a packet, with names that mean the same in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Happening {
    at: Picos,
    what: What,
    /// Link, for [`What`] at links.
    link: usize,
    /// Group and number of the flow.
    flow: (usize, u32),
    seq: u32,
    size: u16,
    kind: u8,
    flags: u8,
    words: [u32; 8],
    /// Value of the event; for a control interval what the law decided.
    value: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Interval,
    Sent,
    Entered,
    Dropped(usize),
    Marked,
    Left,
    Received,
}

/// Names of both runs' links and groups, each once.
struct Union {
    links: Vec<String>,
    groups: Vec<String>,
}

impl Union {
    fn new(scenarios: [&Scenario; 2]) -> Self {
        let mut union = Self { links: Vec::new(), groups: Vec::new() };
        for model in scenarios.map(Scenario::base_model) {
            let links = model.links.iter().map(|link| &link.name);
            let groups = model.groups.iter().map(|group| &group.name);
            for (known, names) in [
                (&mut union.links, links.collect::<Vec<_>>()),
                (&mut union.groups, groups.collect::<Vec<_>>()),
            ] {
                for name in names {
                    if !known.contains(name) {
                        known.push(name.clone());
                    }
                }
            }
        }
        union
    }

    fn text(&self, happening: &Happening) -> String {
        let Happening { what, link, flow: (group, index), seq, size, words, value, .. } = happening;
        let link = self.links.get(*link).map_or("", String::as_str);
        let kind = match happening.kind {
            kind if kind == Kind::Data as u8 => "packet",
            kind if kind == Kind::Ack as u8 => "ACK",
            kind if kind == Kind::Syn as u8 => "SYN",
            kind if kind == Kind::SynAck as u8 => "SYN-ACK",
            kind if kind == Kind::WindowProbe as u8 => "window probe",
            kind if kind == Kind::Control as u8 => "control packet",
            kind if kind == Kind::Probe as u8 => "probe",
            _ => "datagram",
        };
        let packet = if matches!(kind, "control packet" | "probe") {
            format!("{kind} {seq} ({size} B)")
        } else {
            format!("{kind} {seq} of {}[{index}] ({size} B)", self.groups[*group])
        };
        match what {
            What::Interval => format!("control interval ends at {link}: its law decided {value}"),
            What::Sent => format!("{packet} is sent"),
            What::Entered => format!("{packet} enters {link}"),
            What::Dropped(reason) => {
                format!("{packet} is dropped at {link}: {}", Reason::ALL[*reason].name())
            }
            What::Marked => format!("{packet} is marked at {link}"),
            What::Left => format!("{packet} leaves {link} with {} in its header", words[2] as i32),
            What::Received => format!("{packet} arrives"),
        }
    }
}

/// Feeds all that happens to packets in a run.
fn replay(scenario: &Scenario, union: &Union, stop: &AtomicBool, mut feed: Feed<Happening>) -> bool {
    let model = scenario.model(&Measure::default());
    let names = Names::new(&model);
    let position =
        |known: &[String], name: &String| known.iter().position(|known| known == name).unwrap_or(0);
    let links: Vec<usize> = model.links.iter().map(|link| position(&union.links, &link.name)).collect();
    let groups: Vec<usize> = model.groups.iter().map(|group| position(&union.groups, &group.name)).collect();
    let happening = |at, what, link: Option<u32>, packet: &Packet| {
        let (group, index) = names.group_of(packet.flow);
        Happening {
            at,
            what,
            link: link.map_or(usize::MAX, |link| links[link as usize]),
            flow: (groups[group], index),
            seq: packet.seq,
            size: packet.size,
            kind: packet.kind as u8,
            flags: packet.flags,
            words: packet.words,
            value: 0,
        }
    };
    let complete = congestlab_sim::watch(&model, Watched::Packets, stop, &mut |_| {}, &mut |at, step| {
        let happening = match step {
            Step::Sent { packet } => happening(at, What::Sent, None, packet),
            Step::Entered { link, packet, .. } => happening(at, What::Entered, Some(*link), packet),
            Step::Received { packet } => happening(at, What::Received, None, packet),
            Step::Port { link, event } => match &**event {
                PortEvent::Dropped { packet, reason } => {
                    happening(at, What::Dropped(*reason as usize), Some(*link), packet)
                }
                PortEvent::Marked { packet } => happening(at, What::Marked, Some(*link), packet),
                PortEvent::Feedback { packet, .. } => happening(at, What::Left, Some(*link), packet),
                PortEvent::ControlInterval { report } => Happening {
                    value: report.decision(),
                    ..happening(at, What::Interval, Some(*link), &Packet::default())
                },
                // What leaves is sent on at once, and what breaks never arrives.
                PortEvent::Departed { .. }
                | PortEvent::Errored { .. }
                | PortEvent::Sample(_)
                | PortEvent::Crossed(_) => {
                    return ControlFlow::Continue(());
                }
            },
            Step::Acted { .. } | Step::Crossed { .. } => return ControlFlow::Continue(()),
        };
        if feed.put(happening) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    feed.flush();
    complete
}

/// Everything that happens at the next instant at which something does, in an order of its own: that
/// of an instant depends on how elements are numbered.
fn instant(stream: &mut std::iter::Peekable<Stream<Happening>>) -> Vec<Happening> {
    let Some(first) = stream.next() else { return Vec::new() };
    let mut instant = vec![first];
    while let Some(next) = stream.next_if(|next| next.at == first.at) {
        instant.push(next);
    }
    instant.sort_unstable();
    instant
}

/// Runs both again until they part. The outer `None`: `stop` ended it.
fn first_packet(scenarios: [&Scenario; 2], stop: &AtomicBool) -> Option<Option<Parting>> {
    let union = &Union::new(scenarios);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let [one, other] = scenarios.map(|scenario| {
            let (feed, stream) = stream();
            threads.push(scope.spawn(move || replay(scenario, union, stop, feed)));
            stream
        });
        let (mut one, mut other) = (one.peekable(), other.peekable());
        let parting = loop {
            let (now, then) = (instant(&mut one), instant(&mut other));
            if now.is_empty() && then.is_empty() {
                break None;
            }
            if now != then {
                let at = now.iter().chain(&then).map(|happening| happening.at).min().unwrap_or(0);
                let only = |these: &[Happening], those: &[Happening]| {
                    these
                        .iter()
                        .find(|happening| happening.at == at && !those.contains(happening))
                        .map(|happening| union.text(happening))
                };
                break Some(Parting { t_s: seconds(at), one: only(&now, &then), other: only(&then, &now) });
            }
        };
        drop((one, other));
        let complete = threads.into_iter().all(|thread| thread.join().unwrap_or(false));
        complete.then_some(parting)
    })
}
