//! The folder of a run, as `store::write_run` writes it, opened again and checked.

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use serde_json::Value;

use crate::language::scenario::{FILE_BYTES_MAX, Scenario};
use crate::results::result::SCHEMA;
use crate::results::tables;
pub use crate::results::tables::{EventRow, SeriesRow};
use congestlab_text::diagnostic::Diagnostics;
use congestlab_text::disk::{hash_file, read_file};

/// The normalised scenario, in the folder of a run.
pub const SCENARIO: &str = "scenario.toml";
/// The object of docs/design/contract.md 5.
pub const SUMMARY: &str = "summary.json";
/// The time series of flows.
pub const FLOWS: &str = "flows.parquet";
/// The time series of links.
pub const LINKS: &str = "links.parquet";
/// The events.
pub const EVENTS: &str = "events.parquet";
/// The scenario as somebody wrote it, before `--set` and `--seed`.
pub const WRITTEN: &str = "scenario.original.toml";

/// The largest summary that is read again: a million flows.
pub(crate) const SUMMARY_MAX: u64 = 1 << 30;

/// Key of the summary with a hash of every other file: a damaged table may hold anything.
pub const FILES: &str = "files";

/// The folder of a complete run, of any version of the program that wrote results of this [`SCHEMA`].
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    scenario: Scenario,
    summary: Value,
}

/// The reason for which a folder can not be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is no such folder.
    #[error("there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    /// A file, and no folder.
    #[error("{} is a file and no folder", .0.display())]
    File(PathBuf),
    /// The folder holds something other than a run.
    #[error("{} is not the folder of a run: it has no {SUMMARY} and no {SCENARIO}", .0.display())]
    NotARun(PathBuf),
    /// Files are missing.
    #[error("the run in {} is incomplete: it has no {}", path.display(), missing.join(", "))]
    Incomplete {
        /// Path of the folder.
        path: PathBuf,
        /// Names of the files.
        missing: Vec<&'static str>,
    },
    /// The run was stopped before its end.
    #[error("the run in {} is incomplete: it was interrupted before its end", .0.display())]
    Interrupted(PathBuf),
    /// The results in the folder have another schema.
    #[error("the run in {} has results schema {found} (version {version}), and this program reads {SCHEMA}", path.display())]
    OtherSchema {
        /// Path of the folder.
        path: PathBuf,
        /// Schema number in the folder.
        found: String,
        /// Version of the program that wrote the folder.
        version: String,
    },
    /// Another version of the program wrote the folder, and the run must be simulated again.
    #[error(
        "version {found} made the run in {}, and this is {expected}: only the same version simulates the run again",
        path.display()
    )]
    OtherVersion {
        /// Path of the folder.
        path: PathBuf,
        /// Version in the folder.
        found: String,
        /// Version of this program.
        expected: String,
    },
    /// A file's contents are not those that were written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// The damage, in words.
        reason: String,
    },
    /// This version refuses the scenario in the folder.
    #[error("this version refuses the scenario in {}, which version {version} wrote: {diagnostics}", path.display())]
    Scenario {
        /// Path of the folder.
        path: PathBuf,
        /// Version of the program that wrote the folder.
        version: String,
        /// Errors of the scenario.
        diagnostics: Diagnostics,
    },
    /// The file system refuses a file.
    #[error("can not read {}: {error}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

impl FolderError {
    /// What is at a path that is no folder.
    pub fn none(path: PathBuf) -> Self {
        if path.exists() { Self::File(path) } else { Self::NoFolder(path) }
    }
}

/// Why a file is refused whose hash is another.
const NOT_NAMED: &str = "it is not the file that summary.json names";
const NOT_OF_IT: &str = "summary.json names a file that is not of this folder";

impl RunFolder {
    /// Opens the folder of a run. [`RunFolder::version`] says which version of the program wrote the folder.
    ///
    /// # Errors
    /// If the folder is not that of a run, not complete, of another results schema, or damaged: if a file is not the
    /// one that the summary names.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let path = path.to_owned();
        if !path.is_dir() {
            return Err(FolderError::none(path));
        }
        let is_missing = |name: &&str| !path.join(name).is_file();
        if [SUMMARY, SCENARIO].iter().all(is_missing) {
            return Err(FolderError::NotARun(path));
        }
        let missing: Vec<_> =
            [SCENARIO, SUMMARY, FLOWS, LINKS, EVENTS].into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(FolderError::Incomplete { path, missing });
        }
        let summary = read_summary(&path.join(SUMMARY))?;
        if summary["schema"] != SCHEMA {
            let (found, version) = (summary["schema"].to_string(), version_of(&summary).to_owned());
            return Err(FolderError::OtherSchema { path, found, version });
        }
        if summary["complete"] != true {
            return Err(FolderError::Interrupted(path));
        }
        let names = summary[FILES].as_object().into_iter().flatten();
        for (name, hash) in names.clone() {
            let file = path.join(name);
            if Path::new(name).file_name() != Some(name.as_ref()) {
                return Err(FolderError::Damaged { path: file, reason: NOT_OF_IT.into() });
            }
            // Tables too: the library trusts what it decodes (see `panics_over`).
            let found =
                hash_file(&file).map_err(|error| FolderError::Unreadable { path: file.clone(), error })?;
            if *hash != found {
                return Err(FolderError::Damaged { path: file, reason: NOT_NAMED.into() });
            }
        }
        if let Some(name) =
            [SCENARIO, FLOWS, LINKS, EVENTS].iter().find(|&&name| names.clone().all(|n| n.0 != name))
        {
            return Err(FolderError::Damaged { path: path.join(name), reason: NOT_NAMED.into() });
        }
        let load = if summary["live"].is_null() { Scenario::load } else { Scenario::load_live };
        match load(&path.join(SCENARIO), &[], None) {
            Ok(scenario) => Ok(Self { path, scenario, summary }),
            Err(diagnostics) => {
                let version = version_of(&summary).to_owned();
                Err(FolderError::Scenario { path, version, diagnostics })
            }
        }
    }

    /// Returns the version of the program that wrote the folder.
    pub fn version(&self) -> &str {
        version_of(&self.summary)
    }

    /// Requires that `version` of the program wrote the folder: only that version simulates the run again, event by event.
    ///
    /// # Errors
    /// [`FolderError::OtherVersion`].
    pub fn require_version(&self, version: &str) -> Result<(), FolderError> {
        if self.version() == version {
            return Ok(());
        }
        let (path, found) = (self.path.clone(), self.version().to_owned());
        Err(FolderError::OtherVersion { path, found, expected: version.into() })
    }

    /// Returns the name of the folder: `<scenario>-<seed>-<hash>`, unless somebody renamed it.
    pub fn name(&self) -> String {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Returns true if the run's packets were real ones.
    pub fn is_live(&self) -> bool {
        !self.summary["live"].is_null()
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the scenario as somebody wrote it, if it is still there; the run is whole without it.
    pub fn written(&self) -> Option<String> {
        String::from_utf8(read_file(&self.path.join(WRITTEN), FILE_BYTES_MAX).ok()?).ok()
    }

    /// Returns the scenario with every default written out: running it gives this run again.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the object of results of docs/design/contract.md 5.
    pub fn summary(&self) -> &Value {
        &self.summary
    }

    /// Returns which run its tables say they are of: `label` and `settings` of what was changed, beside its names.
    pub fn origin(&self) -> Value {
        tables::read_origin(&self.path.join(FLOWS)).unwrap_or_default()
    }

    /// Returns the fingerprint of the run.
    pub fn fingerprint(&self) -> &str {
        self.summary["fingerprint"].as_str().unwrap_or_default()
    }

    /// Calls `each` for every value of the flows' time series, in order of time.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn flow_series(&self, mut each: impl FnMut(SeriesRow<'_>)) -> Result<(), FolderError> {
        self.read(FLOWS, |path| tables::read_series(path, &mut each))
    }

    /// Calls `each` for every value of the links' time series, in order of time.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn link_series(&self, mut each: impl FnMut(SeriesRow<'_>)) -> Result<(), FolderError> {
        self.read(LINKS, |path| tables::read_series(path, &mut each))
    }

    /// Calls `each` for every event, in order of time.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn events(&self, mut each: impl FnMut(EventRow<'_>)) -> Result<(), FolderError> {
        self.read(EVENTS, |path| tables::read_events(path, &mut each))
    }

    fn read(
        &self,
        name: &str,
        read: impl FnOnce(&Path) -> Result<(), ParquetError>,
    ) -> Result<(), FolderError> {
        let path = self.path.join(name);
        read(&path).map_err(|error| FolderError::Damaged { path: path.clone(), reason: error.to_string() })
    }
}

/// Returns the error to tell of when the decoder of tables panics in this thread: the table is damaged in a way that
/// the decoder does not look for and no mistake makes, as [`RunFolder::open`] has found the hash right.
pub fn panics_over() -> Option<FolderError> {
    let path = tables::decoder::decoded_now()?;
    Some(FolderError::Damaged { path, reason: "it can not be decoded".into() })
}

fn version_of(summary: &Value) -> &str {
    summary["meta"]["version"].as_str().unwrap_or("unknown")
}

fn read_summary(path: &Path) -> Result<Value, FolderError> {
    let text =
        read_file(path, SUMMARY_MAX).map_err(|error| FolderError::Unreadable { path: path.into(), error })?;
    serde_json::from_slice(&text)
        .map_err(|error| FolderError::Damaged { path: path.into(), reason: error.to_string() })
}
