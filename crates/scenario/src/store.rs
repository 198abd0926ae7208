//! Results on disk: written whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use congestlab_sim::outcome::Outcome;
use serde::Serialize;

use crate::Scenario;
use crate::result::{RunResult, write_events_csv, write_series_csv};

/// JSON for people and `diff`.
pub fn pretty(value: &impl Serialize) -> String {
    // Results and values fail in no way that serde_json knows.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
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
pub fn write_with(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
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

/// A name beside `path` that no other process uses.
fn sibling(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// What a run leaves in its folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files {
    /// `series.csv`.
    pub series: bool,
    /// `events.csv`.
    pub events: bool,
}

/// Writes `<out>/<scenario>-<seed>-<hash>/` with the normalised scenario, its traces,
/// `summary.json` and what `files` asks for; returns the folder. An older folder of the same run is
/// replaced; an unfinished one is never left.
///
/// # Errors
/// Those of the file system.
pub fn write_run(
    out: &Path,
    version: &str,
    scenario: &Scenario,
    outcome: &Outcome,
    result: &RunResult,
    files: Files,
) -> io::Result<PathBuf> {
    let hash = scenario.hash(version);
    let folder = out.join(format!("{}-{}-{}", file_name(scenario.name()), scenario.seed(), &hash[..8]));
    fs::create_dir_all(out)?;
    let temporary = sibling(&folder);
    let result = (|| {
        fs::create_dir_all(&temporary)?;
        let (text, traces) = scenario.portable();
        for (name, bytes) in traces {
            write_atomically(&temporary.join(name), &bytes)?;
        }
        write_atomically(&temporary.join("scenario.toml"), text.as_bytes())?;
        write_atomically(&temporary.join("summary.json"), pretty(result).as_bytes())?;
        if files.series {
            write_with(&temporary.join("series.csv"), |file| write_series_csv(file, scenario, outcome))?;
        }
        if files.events {
            write_with(&temporary.join("events.csv"), |file| write_events_csv(file, scenario, outcome))?;
        }
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
fn file_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .take(64)
        .collect();
    let clean = clean.trim_start_matches('.');
    if clean.is_empty() { "scenario".into() } else { clean.into() }
}

/// 64-bit FNV-1a of a text, in hexadecimal: names files, keeps no secret.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        for byte in part.iter().copied().chain((part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
