//! Results on disk: written whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use congestlab_sim::outcome::Outcome;
use serde::Serialize;

use crate::Scenario;
use crate::result::RunResult;
use crate::{printable, tables};

/// JSON for people and `diff`.
pub fn pretty(value: &impl Serialize) -> String {
    // Results and values fail in no way that serde_json knows.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    printable::json(text)
}

/// Writes a file whole or not at all: beside its place first, then renamed.
///
/// # Errors
/// Those of the file system.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |out| out.write_all(bytes))
}

/// As [`write_atomically`], from a function that writes.
///
/// # Errors
/// Those of the file system and of the function.
pub fn write_with(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = sibling(path);
    let result = (|| {
        let mut out = BufWriter::new(File::create(&temporary)?);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if result.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Makes a file in a folder and takes it away.
///
/// # Errors
/// Those of the file system.
pub fn try_folder(folder: &Path) -> io::Result<()> {
    let path = sibling(&folder.join("try"));
    File::create(&path)?;
    fs::remove_file(&path)
}

/// A name beside `path` that no other process and no other call uses.
pub(crate) fn sibling(path: &Path) -> PathBuf {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{call}.part", std::process::id()));
    path.with_file_name(name)
}

/// The normalised scenario, in the folder of a run.
pub const SCENARIO: &str = "scenario.toml";
/// The object of contract section 5.
pub const SUMMARY: &str = "summary.json";
/// The time series of flows.
pub const FLOWS: &str = "flows.parquet";
/// The time series of links.
pub const LINKS: &str = "links.parquet";
/// The events.
pub const EVENTS: &str = "events.parquet";
/// The scenario as somebody wrote it, before `--set` and `--seed`.
pub const WRITTEN: &str = "scenario.original.toml";

/// Key of the summary with a hash of every other file: a damaged table may hold anything.
pub(crate) const FILES: &str = "files";

/// Writes `<out>/<scenario>-<seed>-<hash>/` (`-live` behind it for a run on real packets) with the normalised scenario, its traces, the summary
/// and the tables; returns the folder. An older folder of the same run is replaced; an unfinished
/// one is never left. [`crate::folder::RunFolder`] reads it.
///
/// # Errors
/// Those of the file system.
pub fn write_run(
    out: &Path,
    version: &str,
    scenario: &Scenario,
    outcome: &Outcome,
    result: &RunResult,
) -> io::Result<PathBuf> {
    let hash = scenario.hash(version);
    let mark = if result.live.is_some() { "-live" } else { "" };
    let name = format!("{}-{}-{}{mark}", file_name(scenario.name()), scenario.seed(), &hash[..8]);
    let folder = out.join(name);
    fs::create_dir_all(out)?;
    let temporary = sibling(&folder);
    let result = (|| {
        fs::create_dir_all(&temporary)?;
        let (text, traces) = scenario.portable();
        let mut names = vec![SCENARIO.to_owned(), WRITTEN.into(), FLOWS.into(), LINKS.into(), EVENTS.into()];
        for (name, bytes) in traces {
            write_atomically(&temporary.join(&name), &bytes)?;
            names.push(name);
        }
        write_atomically(&temporary.join(SCENARIO), text.as_bytes())?;
        write_atomically(&temporary.join(WRITTEN), scenario.written().as_bytes())?;
        for (name, of_flows) in [(FLOWS, true), (LINKS, false)] {
            write_with(&temporary.join(name), |file| {
                tables::write_series(file, scenario, outcome, of_flows)
            })?;
        }
        write_with(&temporary.join(EVENTS), |file| tables::write_events(file, scenario, outcome))?;
        let mut summary = result.to_json();
        for name in names {
            summary[FILES][&name] = hash_file(&temporary.join(&name))?.into();
        }
        write_atomically(&temporary.join(SUMMARY), pretty(&summary).as_bytes())?;
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::rename(&temporary, &folder)
    })();
    if result.is_err() {
        let _ = fs::remove_dir_all(&temporary);
    }
    result.map(|()| folder)
}

/// A name that every file system takes.
pub(crate) fn file_name(name: &str) -> String {
    let mut length = 0;
    let clean: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .take_while(|c| {
            length += c.len_utf8();
            length <= 64
        })
        .collect();
    let clean = clean.trim_start_matches('.');
    if clean.is_empty() { "scenario".into() } else { clean.into() }
}

/// 64-bit FNV-1a of texts, in hexadecimal: names files, keeps no secret.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    let hash = parts.iter().fold(FNV, |hash, part| {
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        fnv(fnv(hash, part), &(part.len() as u64).to_le_bytes())
    });
    format!("{hash:016x}")
}

/// The same of a file.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    let (mut file, mut buffer) = (File::open(path)?, vec![0; 1 << 16]);
    let (mut hash, mut length) = (FNV, 0);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(format!("{:016x}", fnv(hash, &u64::to_le_bytes(length))));
        }
        hash = fnv(hash, &buffer[..count]);
        length += count as u64;
    }
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
