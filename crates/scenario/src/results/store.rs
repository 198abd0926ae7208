//! The folder of a run, written whole or not at all; [`crate::disk`] says how.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use congestlab_sim::outcome::Outcome;
use serde::Serialize;
use serde_json::Value;

use crate::language::scenario::Scenario;
use crate::results::folder::SUMMARY_MAX;
// Names that a folder has, for those who write it.
pub use crate::results::folder::{EVENTS, FILES, FLOWS, LINKS, SCENARIO, SUMMARY, WRITTEN};
use crate::results::origin::{Origin, run_name};
use crate::results::result::RunResult;
use crate::results::tables;
use congestlab_text::disk::{
    LOCK, OLDER, clear, hash_file, part_folder, read_file, write_atomically, write_with,
};
use congestlab_text::printable;

/// JSON for people and `diff`.
pub fn pretty(value: &impl Serialize) -> String {
    // Results and values fail in no way that serde_json knows.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    printable::json(text)
}

/// Writes `<out>/<scenario>-<seed>-<hash>/` (`-live` behind it for a run on real packets) with the normalised scenario,
/// its traces, the summary and the tables; returns the folder. An older folder of the same run is replaced, whoever else
/// writes it at the same time; an unfinished one is never left, and a kill loses none.
/// [`crate::results::folder::RunFolder`] reads it.
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
    let folder = out.join(name_of(version, scenario, result));
    write_at(&folder, version, scenario, outcome, result)?;
    Ok(folder)
}

/// Writes a run as [`write_run`] does, into the folder with just this name. An older run there is replaced.
///
/// # Errors
/// Those of the file system; the folder is there and is not that of a run, see [`may_hold_run`].
pub fn write_run_to(
    folder: &Path,
    version: &str,
    scenario: &Scenario,
    outcome: &Outcome,
    result: &RunResult,
) -> io::Result<()> {
    if !may_hold_run(folder) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, NOT_A_RUN));
    }
    write_at(folder, version, scenario, outcome, result)
}

/// Writes a run in the place of all that has this name.
fn write_at(
    folder: &Path,
    version: &str,
    scenario: &Scenario,
    outcome: &Outcome,
    result: &RunResult,
) -> io::Result<()> {
    // A name alone is one in the working folder.
    let folder = &Path::new(".").join(folder);
    // The tables name the run, wherever its folder is.
    let origin = Origin::new(scenario, &name_of(version, scenario, result));
    fs::create_dir_all(folder.parent().unwrap_or(folder))?;
    let (temporary, held) = part_folder(folder)?;
    let result = (|| {
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
                tables::write_series(file, scenario, outcome, &origin, of_flows)
            })?;
        }
        write_with(&temporary.join(EVENTS), |file| tables::write_events(file, scenario, outcome, &origin))?;
        let mut summary = result.to_json();
        for name in names {
            summary[FILES][&name] = hash_file(&temporary.join(&name))?.into();
        }
        write_atomically(&temporary.join(SUMMARY), pretty(&summary).as_bytes())?;
        put(&temporary, Some(held), folder, &summary)
    })();
    if result.is_err() {
        let _ = fs::remove_dir_all(&temporary);
    }
    result
}

/// Why a folder is not replaced.
pub const NOT_A_RUN: &str = "it is there, and is not the folder of a run";

/// Returns true if a run may be written into the folder with just this name: if there is none, an empty one, or that of a
/// run.
pub fn may_hold_run(folder: &Path) -> bool {
    let is_run = || [SUMMARY, SCENARIO].iter().all(|name| folder.join(name).is_file());
    let is_empty = || fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    !folder.exists() || is_empty() || is_run()
}

/// `<scenario>-<seed>-<hash>`, and `-live` behind it.
fn name_of(version: &str, scenario: &Scenario, result: &RunResult) -> String {
    let mark = if result.live.is_some() { "-live" } else { "" };
    run_name(scenario, &scenario.hash(version)) + mark
}

/// Gives a folder that is complete its name. Others may do the same at this moment, with the same name.
fn put(temporary: &Path, mut held: Option<File>, folder: &Path, summary: &Value) -> io::Result<()> {
    loop {
        let mut aside = None;
        if folder.exists() {
            // Equal runs have equal files, and a folder that is never away is never lost: of this run is the summary.
            if has_files(folder, &summary[FILES]) {
                let written = write_atomically(&folder.join(SUMMARY), pretty(summary).as_bytes());
                // Unless somebody put another there meanwhile.
                if written.is_ok() && has_files(folder, &summary[FILES]) {
                    clear(folder);
                    return fs::remove_dir_all(temporary);
                }
            }
            // Live, or damaged, or of a file with other comments.
            aside = Aside::take(folder)?;
        }
        // Where folders with open files can not be renamed, it has none; and one that is not held, but not empty, is
        // nobody's litter.
        if let Some(held) = held.take() {
            fs::remove_file(temporary.join(LOCK))?;
            drop(held);
        }
        match fs::rename(temporary, folder) {
            Ok(()) => return Ok(()),
            // Somebody else was quicker.
            Err(_) if folder.exists() => {}
            Err(error) => {
                if let Some(aside) = aside {
                    aside.put_back(folder)?;
                }
                return Err(error);
            }
        }
    }
}

/// An older result out of the way, for as long as there is no other in its place: see [`clear`].
struct Aside {
    path: PathBuf,
    _held: File,
}

impl Aside {
    /// `None`: somebody else took it.
    fn take(folder: &Path) -> io::Result<Option<Self>> {
        let (path, held) = part_folder(folder)?;
        let aside = Self { path, _held: held };
        match fs::rename(folder, aside.path.join(OLDER)) {
            Ok(()) => Ok(Some(aside)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn put_back(&self, folder: &Path) -> io::Result<()> {
        fs::rename(self.path.join(OLDER), folder)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether the folder is a run whose summary names just these files, which are there.
fn has_files(folder: &Path, files: &Value) -> bool {
    let names = files.as_object().into_iter().flatten();
    let is_there =
        |(name, hash): (&String, &Value)| hash_file(&folder.join(name)).is_ok_and(|found| *hash == found);
    let summary = read_file(&folder.join(SUMMARY), SUMMARY_MAX).ok();
    let summary = summary.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    summary.is_some_and(|summary| summary[FILES] == *files) && names.into_iter().all(is_there)
}
