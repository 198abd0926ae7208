//! The runs and sweeps below a folder, looked at again when somebody asks: what has not changed is not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use congestlab_scenario::folder::{SCENARIO, SUMMARY};
use congestlab_scenario::sweep::{is_folder, standing};
use congestlab_scenario::{FILE_BYTES_MAX, disk, sum};
use serde_json::{Value, json};

use super::REPORT;
use crate::machine::Clock;
use crate::report::SWEEP;

/// Folders below folders.
const DEPTH_MAX: usize = 4;
/// Runs and sweeps that are listed.
const LISTED_MAX: usize = 100_000;
/// The largest summary that is read for a line of the list: ten thousand flows.
const SUMMARY_MAX: u64 = 16 << 20;
/// Seconds for which a look is good.
const FRESH_S: f64 = 1.0;

/// What a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Run,
    Sweep,
}

/// What was found, by its path below the root.
#[derive(Debug)]
pub(super) struct List {
    root: PathBuf,
    looked: Option<Clock>,
    /// Counts looks that found something new.
    version: u64,
    found: BTreeMap<String, Found>,
    is_cut: bool,
}

#[derive(Debug)]
struct Found {
    kind: Kind,
    stamp: Stamp,
    /// When its line became what it is.
    version: u64,
    /// `None`: it is there no more.
    line: Option<Value>,
}

/// A value that changes with a folder.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stamp(Vec<(u64, Option<SystemTime>)>);

impl Stamp {
    fn add(&mut self, path: &Path) {
        let of = fs::symlink_metadata(path).ok();
        self.0.push(of.map_or((0, None), |of| (of.len(), of.modified().ok())));
    }
}

impl List {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, looked: None, version: 0, found: BTreeMap::new(), is_cut: false }
    }

    pub(super) fn kind(&self, name: &str) -> Option<Kind> {
        self.found.get(name).filter(|found| found.line.is_some()).map(|found| found.kind)
    }

    /// Looks again, if the last look is too old.
    pub(super) fn look(&mut self) {
        if self.looked.is_some_and(|clock| clock.wall() < FRESH_S) {
            return;
        }
        let mut seen = BTreeSet::new();
        self.is_cut = false;
        let next = self.version + 1;
        self.walk(&self.root.clone(), "", 0, next, &mut seen);
        for (name, found) in &mut self.found {
            if found.line.is_some() && !seen.contains(name) {
                (found.line, found.version, found.stamp) = (None, next, Stamp::default());
            }
        }
        if self.found.values().any(|found| found.version == next) {
            self.version = next;
        }
        self.looked = Some(Clock::start());
    }

    /// Returns the lines that changed after a version, and the names of what went.
    pub(super) fn since(&self, version: u64) -> Value {
        // A page of an earlier server asks for more than there was.
        let version = if version > self.version { 0 } else { version };
        let mut lines = Vec::new();
        let mut gone = Vec::new();
        for (name, found) in self.found.iter().filter(|(_, found)| found.version > version) {
            match &found.line {
                Some(line) => lines.push(line),
                None => gone.push(name),
            }
        }
        json!({ "version": self.version, "all": version == 0, "lines": lines, "gone": gone, "is_cut": self.is_cut })
    }

    fn walk(&mut self, folder: &Path, name: &str, depth: usize, next: u64, seen: &mut BTreeSet<String>) {
        if seen.len() >= LISTED_MAX {
            self.is_cut = true;
            return;
        }
        let own = if name.is_empty() { "." } else { name };
        if folder.join(SUMMARY).is_file() {
            return self.note(folder, own, Kind::Run, next, seen);
        }
        let is_sweep = is_folder(folder) || folder.join(SWEEP).is_file();
        if is_sweep {
            self.note(folder, own, Kind::Sweep, next, seen);
        }
        if depth == DEPTH_MAX {
            return;
        }
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            // Links are not followed: they could lead away, or in a circle.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let Ok(below) = entry.file_name().into_string() else { continue };
            // Hidden is what is being written.
            if below.starts_with('.') || (is_sweep && below != "runs") {
                continue;
            }
            let path = if name.is_empty() { below } else { format!("{name}/{below}") };
            self.walk(&entry.path(), &path, depth + 1, next, seen);
        }
    }

    fn note(&mut self, folder: &Path, name: &str, kind: Kind, next: u64, seen: &mut BTreeSet<String>) {
        seen.insert(name.to_owned());
        let mut stamp = Stamp::default();
        stamp.add(&folder.join(REPORT));
        match kind {
            Kind::Run => stamp.add(&folder.join(SUMMARY)),
            Kind::Sweep => {
                stamp.add(&folder.join(SWEEP));
                let mut logs: Vec<_> =
                    fs::read_dir(folder.join("points")).into_iter().flatten().flatten().collect();
                logs.retain(|log| log.file_name().to_string_lossy().ends_with(".log"));
                logs.sort_by_key(fs::DirEntry::file_name);
                logs.iter().for_each(|log| stamp.add(&log.path()));
            }
        }
        if self.found.get(name).is_some_and(|found| found.line.is_some() && found.stamp == stamp) {
            return;
        }
        let line = match kind {
            Kind::Run => run(folder, name),
            Kind::Sweep => sweep(folder, name),
        };
        self.found.insert(name.to_owned(), Found { kind, stamp, version: next, line: Some(line) });
    }
}

/// The line of a run: the numbers by which runs are told apart.
fn run(folder: &Path, name: &str) -> Value {
    let summary = disk::read_file(&folder.join(SUMMARY), SUMMARY_MAX)
        .map_err(|error| error.to_string())
        .and_then(|text| serde_json::from_slice::<Value>(&text).map_err(|error| error.to_string()));
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) => return json!({ "id": name, "kind": "run", "scenario": name, "error": error }),
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.strip_suffix("-live").unwrap_or(last);
    let members = |key: &str| summary[key].as_object().into_iter().flatten();
    let utilization = |link: &Value| link["utilization"].as_f64().unwrap_or(0.0);
    let busiest = members("links")
        .filter(|(name, _)| !name.ends_with(".reverse"))
        .map(|(_, link)| link)
        .max_by(|one, other| utilization(one).total_cmp(&utilization(other)));
    let count =
        |group: &Value| group.as_array().map_or(group["count"].as_u64(), |flows| Some(flows.len() as u64));
    let flows: u64 = members("flows").filter_map(|(_, group)| count(group)).sum();
    let drops: f64 = members("links").filter_map(|(_, link)| link["drops"].as_f64()).sum();
    let jain = members("jain").filter_map(|(_, jain)| jain.as_f64()).min_by(f64::total_cmp);
    json!({
        "id": name,
        "kind": "run",
        "scenario": last.rsplitn(3, '-').nth(2).unwrap_or(last),
        "seed": summary["seed"],
        "laws": laws(folder),
        "live": !summary["live"].is_null(),
        "complete": summary["complete"],
        "date": summary["meta"]["date"],
        "utilization": busiest.map(utilization),
        "queue": busiest.map(|link| &link["queue_mean_packets"]),
        "drops": drops,
        "flows": flows,
        "goodput_bps": sum::goodput(&summary, members("flows").map(|(_, group)| group)),
        "jain": jain,
        "report": folder.join(REPORT).is_file(),
    })
}

/// The laws of the groups of flows, each once.
fn laws(folder: &Path) -> Vec<String> {
    let text = disk::read_file(&folder.join(SCENARIO), FILE_BYTES_MAX).ok();
    let table = text.and_then(|text| String::from_utf8(text).ok()?.parse::<toml::Table>().ok());
    let groups = table.as_ref().and_then(|table| table.get("flows")?.as_table()).into_iter().flatten();
    let laws = groups.filter_map(|(_, group)| match group.get("law")? {
        toml::Value::String(law) => Some(law.clone()),
        toml::Value::Table(law) => law.keys().next().cloned(),
        _ => None,
    });
    laws.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The line of a sweep: how far it has come.
fn sweep(folder: &Path, name: &str) -> Value {
    let standing = standing(folder).ok().flatten();
    let told = standing.as_ref().and_then(|standing| standing.scenario.clone());
    let last = name.rsplit('/').next().unwrap_or(name);
    json!({
        "id": name,
        "kind": "sweep",
        "scenario": told.unwrap_or_else(|| last.into()),
        "laws": [],
        "complete": folder.join(SWEEP).is_file(),
        "done": standing.as_ref().map(|standing| standing.done),
        "all": standing.as_ref().and_then(|standing| standing.all),
        "report": folder.join(REPORT).is_file(),
    })
}
