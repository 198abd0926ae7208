//! The runs and sweeps below a folder, looked at again when somebody asks: what has not changed is not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use congestlab_scenario::folder::SUMMARY;
use congestlab_scenario::sweep::{POINTS, is_folder, standing};
use serde_json::{Value, json};

use super::line::{cut, run};
use crate::machine::Clock;
use crate::sweep::page::SWEEP;

/// Most logs of a sweep, and most bytes of them together, that a list reads. Each process writes one log, with about 36 bytes for
/// each point.
const LOGS_MAX: usize = 1024;
const LOG_BYTES_MAX: u64 = 32 << 20;
/// Folders below folders.
const DEPTH_MAX: usize = 4;
/// Runs and sweeps that are listed, and bytes of their lines: sixteen may be asked for the list at once.
const LISTED_MAX: usize = 20_000;
const BYTES_MAX: usize = 8 << 20;
/// Names that are kept of what is there no more.
const GONE_MAX: usize = 10_000;
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
    /// Of what went up to this version no names are kept.
    forgotten: u64,
    /// Bytes of the lines of this look.
    bytes: usize,
    is_cut: bool,
}

#[derive(Debug)]
struct Found {
    kind: Kind,
    stamp: Stamp,
    /// When its line became what it is.
    version: u64,
    /// As JSON. `None`: it is there no more.
    line: Option<String>,
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
        Self { root, looked: None, version: 0, found: BTreeMap::new(), forgotten: 0, bytes: 0, is_cut: false }
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
        (self.is_cut, self.bytes) = (false, 0);
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
        self.forget();
        self.looked = Some(Clock::start());
    }

    /// Forgets names of what went long ago, if there are many.
    fn forget(&mut self) {
        let gone = || self.found.values().filter(|found| found.line.is_none());
        let mut versions: Vec<u64> = gone().map(|found| found.version).collect();
        if versions.len() > GONE_MAX {
            versions.sort_unstable();
            self.forgotten = versions[versions.len() - GONE_MAX / 2];
            self.found.retain(|_, found| found.line.is_some() || found.version > self.forgotten);
        }
    }

    /// Returns the lines that changed after a version, and the names of what went, as JSON.
    pub(super) fn since(&self, version: u64) -> String {
        // A page of an earlier server asks for more than there was; one that slept has names that are forgotten.
        let version = if version > self.version || version < self.forgotten { 0 } else { version };
        let mut lines = Vec::new();
        let mut gone = Vec::new();
        for (name, found) in self.found.iter().filter(|(_, found)| found.version > version) {
            match &found.line {
                Some(line) => lines.push(line.as_str()),
                None => gone.push(name),
            }
        }
        let mut told =
            json!({ "version": self.version, "all": version == 0, "gone": gone, "is_cut": self.is_cut })
                .to_string();
        // The lines are JSON already.
        told.pop();
        told.push_str(",\"lines\":[");
        told.push_str(&lines.join(","));
        told.push_str("]}");
        told
    }

    fn walk(&mut self, folder: &Path, name: &str, depth: usize, next: u64, seen: &mut BTreeSet<String>) {
        if seen.len() >= LISTED_MAX || self.bytes >= BYTES_MAX {
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
        match kind {
            Kind::Run => stamp.add(&folder.join(SUMMARY)),
            Kind::Sweep => {
                stamp.add(&folder.join(SWEEP));
                logs(folder).iter().for_each(|log| stamp.add(log));
            }
        }
        let known = self.found.get(name).filter(|found| found.stamp == stamp);
        if let Some(line) = known.and_then(|found| found.line.as_ref()) {
            self.bytes += line.len();
            return;
        }
        let line = match kind {
            Kind::Run => run(folder, name),
            Kind::Sweep => sweep(folder, name),
        };
        let line = line.to_string();
        self.bytes += line.len();
        self.found.insert(name.to_owned(), Found { kind, stamp, version: next, line: Some(line) });
    }
}

/// Returns true if the folder, or its folder of points, contains a link: a link can lead to a file outside.
pub(super) fn has_links(folder: &Path) -> bool {
    let links = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_type()).any(|kind| kind.is_ok_and(|kind| kind.is_symlink()))
    };
    links(folder) || links(&folder.join(POINTS))
}

/// The logs of a sweep's points in the order of their names, [`LOGS_MAX`] at most.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder.join(POINTS)).into_iter().flatten().flatten();
    let named = all.filter(|log| log.file_name().to_string_lossy().ends_with(".log"));
    let mut logs: Vec<PathBuf> = named.take(LOGS_MAX).map(|log| log.path()).collect();
    logs.sort();
    logs
}

/// The line of a sweep: how far it has come.
fn sweep(folder: &Path, name: &str) -> Value {
    let logs = logs(folder);
    let bytes: u64 = logs.iter().filter_map(|log| Some(fs::metadata(log).ok()?.len())).sum();
    let error = if has_links(folder) {
        Some("it contains a link, which can lead to a file outside")
    } else if logs.len() == LOGS_MAX || bytes > LOG_BYTES_MAX {
        Some("its points are too many to be counted here")
    } else {
        None
    };
    let standing = if error.is_none() { standing(folder).ok().flatten() } else { None };
    let told = standing.as_ref().and_then(|standing| standing.scenario.clone());
    let last = name.rsplit('/').next().unwrap_or(name);
    json!({
        "id": name,
        "kind": "sweep",
        "scenario": cut(told.as_deref().unwrap_or(last)),
        "laws": [],
        "complete": folder.join(SWEEP).is_file(),
        "done": standing.as_ref().map(|standing| standing.done),
        "all": standing.as_ref().and_then(|standing| standing.all),
        "error": error,
    })
}
