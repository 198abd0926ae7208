//! The files that a scenario names.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::text::disk;

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
    /// What a file is called outside the scenario.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        match self {
            Self::Below(folder) => folder.join(name),
            Self::Given(_) => name.into(),
        }
    }

    /// Reads a file of at most so many bytes.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
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
