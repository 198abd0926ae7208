//! Files of the language, and those that a scenario names.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::NamedSource;

use crate::diagnostic::{Diagnostics, Findings, Span};
use crate::disk;

/// Reads a file of at most so many bytes in UTF-8; findings call it `document`, such as "a scenario".
pub fn text_of(path: &Path, most: u64, document: &'static str) -> Result<String, Diagnostics> {
    let shown = path.display().to_string();
    let refuse = |text: &str, at: usize, message: String| {
        let mut findings = Findings::new(vec![Arc::new(NamedSource::new(&shown, text.to_owned()))]);
        let span = Span { source: 0, start: at, end: at };
        let help = format!("{document} is a text file in TOML, UTF-8");
        findings.error("scenario::file", span, message, help);
        findings.finish()
    };
    let unreadable = |reason: String| refuse("", 0, format!("can not read {shown}: {reason}"));
    let mut bytes = Vec::new();
    // A device or pipe has no length to look at first.
    let read = std::fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    if read.map_err(|error| unreadable(error.to_string()))? as u64 > most {
        return Err(unreadable(format!("larger than {} MiB", most >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let valid = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
        refuse(&valid, at, format!("byte {at} of {shown} is not UTF-8"))
    })
}

/// Where the files lie that a scenario names.
#[derive(Clone, Debug)]
pub enum Files {
    /// On this machine; names are relative to a folder.
    Below(PathBuf),
    /// These and no others, by name: where there are no folders, as in a browser.
    Given(Arc<BTreeMap<String, Vec<u8>>>),
}

impl From<&Path> for Files {
    fn from(folder: &Path) -> Self {
        Self::Below(folder.to_owned())
    }
}

impl Files {
    /// Returns the path of a file that the scenario names.
    pub fn place(&self, name: &str) -> PathBuf {
        match self {
            Self::Below(folder) => folder.join(name),
            Self::Given(_) => name.into(),
        }
    }

    /// Reads a file of at most so many bytes.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Below(_) => disk::read_file(&self.place(name), most),
            Self::Given(files) => files.get(name).cloned().ok_or_else(|| {
                let names: Vec<&str> = files.keys().map(String::as_str).collect();
                let given = if names.is_empty() { "no files".into() } else { names.join(", ") };
                io::Error::new(io::ErrorKind::NotFound, format!("there is no such file, but {given}"))
            }),
        }
    }
}
