//! Where papers' folders come from: the command itself, or `--papers`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::disk;
use congestlab_scenario::paper::Paper;
use congestlab_scenario::{FILE_BYTES_MAX, Files};

use crate::args::PapersSource;
use crate::failure::{Failure, Message};

/// The papers of this project: file, text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// Traces that these name.
const TRACES: [(&str, &[u8]); 1] =
    [("../../scenarios/synthetic-lte.down", include_bytes!("../../data/synthetic-lte.down"))];

/// All files of all papers: path below the papers' folder, text.
fn files(folder: Option<&Path>) -> Result<Vec<(String, String)>, Failure> {
    let Some(folder) = folder else {
        return Ok(EMBEDDED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect());
    };
    let wrong = |path: &Path, error: &io::Error| {
        let text = format!("can not read {}: {error}", path.display());
        let help = match error.kind() {
            io::ErrorKind::InvalidData => "a paper's files are texts in TOML, UTF-8",
            _ => "give the folder that has a folder for each paper",
        };
        Failure::Input(Message::new(text, help))
    };
    let entries = |path: &Path| -> Result<Vec<PathBuf>, Failure> {
        let list = fs::read_dir(path).and_then(|list| list.map(|entry| Ok(entry?.path())).collect());
        let mut list: Vec<PathBuf> = list.map_err(|error| wrong(path, &error))?;
        list.sort();
        Ok(list)
    };
    let mut all = Vec::new();
    for paper in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        for file in entries(&paper)?
            .into_iter()
            .filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "toml"))
        {
            let bytes = disk::read_file(&file, FILE_BYTES_MAX);
            let text = bytes.and_then(|bytes| {
                String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            });
            let text = text.map_err(|error| wrong(&file, &error))?;
            let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
            all.push((name, text));
        }
    }
    Ok(all)
}

pub(super) fn read(folder: Option<&Path>) -> Result<Vec<Paper>, Failure> {
    let mut papers: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, text) in files(folder)? {
        if let Some((key, name)) = path.rsplit_once('/') {
            papers.entry(key.into()).or_default().insert(name.into(), text);
        }
    }
    if let Some(folder) = folder.filter(|_| papers.is_empty()) {
        let text = format!("{} has no paper", folder.display());
        return Err(Failure::Input(Message::new(text, "a paper is a folder with paper.toml in it")));
    }
    let place = folder.unwrap_or_else(|| Path::new("papers"));
    let traces = || TRACES.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    let given = folder.is_none().then(|| Files::Given(Arc::new(traces())));
    let read = |(key, files): (String, _)| {
        Ok(Paper { files: given.clone(), ..Paper::parse(&place.join(&key), key, files)? })
    };
    papers.into_iter().map(|paper| read(paper).map_err(Failure::paper)).collect()
}

/// The paper that is asked for.
pub(super) fn find(source: &PapersSource) -> Result<Paper, Failure> {
    let papers = read(source.papers.as_deref())?;
    let keys: Vec<String> = papers.iter().map(|paper| paper.key.clone()).collect();
    papers.into_iter().find(|paper| paper.key == source.key).ok_or_else(|| {
        let help = choices(&source.key, keys.iter().map(String::as_str));
        Failure::Input(Message::new(format!("there is no paper `{}`", source.key), help))
    })
}

/// Text as part of a file's name.
pub(super) fn file_name(text: &str) -> String {
    let first = text.split([':', ',']).next().unwrap_or(text);
    first.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}
