//! The files in a paper's folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::{FILE_BYTES_MAX, Scenario, store};
use serde::{Deserialize, Serialize};

use crate::args::PapersSource;
use crate::failure::{Failure, Message};
use crate::ns2;

/// The papers of this project: file, text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// `paper.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    pub(super) title: String,
    pub(super) authors: String,
    pub(super) published: String,
}

/// A claim that can not be run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exception {
    /// Where the paper has it.
    pub(super) of: String,
    pub(super) what: String,
    pub(super) why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// The written-down result of a claim.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) figure: String,
    pub(super) claim: String,
    pub(super) holds: bool,
    pub(super) measured: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verdicts {
    #[serde(default)]
    pub(super) verdicts: Vec<Written>,
}

/// A value that something assumed could have, and the claims whose verdicts turn with it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    pub(super) figure: String,
    pub(super) assumed: String,
    pub(super) value: String,
    pub(super) turned: Vec<Change>,
}

/// A change of a claim's verdict.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub(super) claim: String,
    pub(super) holds: bool,
    pub(super) measured: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ranges {
    #[serde(default)]
    pub(super) ranges: Vec<Range>,
}

/// A figure's file.
pub(super) struct File {
    pub(super) name: String,
    text: String,
    path: PathBuf,
}

/// A paper's folder.
pub(super) struct Paper {
    pub(super) key: String,
    pub(super) about: About,
    pub(super) figures: Vec<File>,
    pub(super) exceptions: Vec<Exception>,
    pub(super) written: Vec<Written>,
    pub(super) ranges: Vec<Range>,
    /// Verdicts on ns-2's runs.
    pub(super) peer: ns2::Values,
}

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
            let bytes = store::read_file(&file, FILE_BYTES_MAX);
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
    papers.into_iter().map(|(key, files)| paper(folder, key, files)).collect()
}

fn paper(folder: Option<&Path>, key: String, mut files: BTreeMap<String, String>) -> Result<Paper, Failure> {
    let place = folder.unwrap_or_else(|| Path::new("papers")).join(&key);
    let about = part(&place, &mut files, "paper.toml")?
        .ok_or_else(|| Failure::Input(Message::new(format!("{} has no paper.toml", place.display()), "")))?;
    let exceptions: Exceptions = part(&place, &mut files, "exceptions.toml")?.unwrap_or_default();
    let verdicts: Verdicts = part(&place, &mut files, "verdicts.toml")?.unwrap_or_default();
    let ranges: Ranges = part(&place, &mut files, "ranges.toml")?.unwrap_or_default();
    let peer = part(&place, &mut files, "ns2.toml")?.unwrap_or_default();
    let figure = |(name, text): (String, String)| {
        let path = place.join(&name);
        File { name: name.trim_end_matches(".toml").to_owned(), text, path }
    };
    let figures = files.into_iter().map(figure).collect();
    let (exceptions, written, ranges) = (exceptions.exceptions, verdicts.verdicts, ranges.ranges);
    Ok(Paper { key, about, figures, exceptions, written, ranges, peer })
}

fn part<T: for<'a> Deserialize<'a>>(
    place: &Path,
    files: &mut BTreeMap<String, String>,
    name: &str,
) -> Result<Option<T>, Failure> {
    let Some(text) = files.remove(name) else { return Ok(None) };
    toml::from_str(&text).map(Some).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or("");
        let (line, column) =
            (before.matches('\n').count() + 1, before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1);
        let place = place.join(name);
        Failure::Input(Message::new(format!("{}:{line}:{column}: {}", place.display(), error.message()), ""))
    })
}

impl Paper {
    /// The figures that were asked for, read and found right.
    pub(super) fn scenarios(&self, figure: Option<&str>) -> Result<Vec<(String, Scenario)>, Failure> {
        let names = || self.figures.iter().map(|figure| figure.name.as_str());
        if let Some(wanted) = figure.filter(|wanted| names().all(|name| name != *wanted)) {
            let text = format!("{} has no figure `{wanted}`", self.key);
            return Err(Failure::Input(Message::new(text, choices(wanted, names()))));
        }
        let chosen = names().filter(|name| figure.is_none_or(|wanted| wanted == *name));
        chosen.map(|name| Ok((name.to_owned(), self.scenario(name, &[])?))).collect()
    }

    /// A figure, with other values by path.
    pub(super) fn scenario(&self, name: &str, sets: &[(String, String)]) -> Result<Scenario, Failure> {
        let file = self.figures.iter().find(|figure| figure.name == name);
        let File { text, path, .. } =
            file.ok_or_else(|| Failure::Input(Message::new(format!("no figure `{name}`"), "")))?;
        let base = path.parent().unwrap_or_else(|| Path::new(""));
        let scenario = Scenario::parse(&path.display().to_string(), text, base, sets, None)
            .map_err(Failure::Scenario)?;
        scenario.check().map_err(Failure::Scenario)?;
        let Some(figure) = scenario.figure() else {
            let text = format!("{} has no [figure]", path.display());
            return Err(Failure::Input(Message::new(text, "see docs/papers.md")));
        };
        // Other scenarios may leave out what a report stands on.
        let missing = [
            ("of", figure.of().is_empty()),
            ("title", figure.title().is_empty()),
            ("lines", figure.wish().is_some()),
        ];
        if let Some((key, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
            let text = format!("{}: `figure` of a paper needs the key `{key}`", path.display());
            return Err(Failure::Input(Message::new(text, "see docs/papers.md")));
        }
        Ok(scenario)
    }

    /// Verdicts of figures that have run, in the place of those that were written down; the others stay.
    pub(super) fn write_down(&mut self, figures: &[&str], now: &[Written]) {
        let place = |written: &Written| self.figures.iter().position(|figure| figure.name == written.figure);
        let stays =
            |written: &Written| place(written).is_some() && !figures.contains(&written.figure.as_str());
        self.written.retain(stays);
        self.written.extend_from_slice(now);
        self.written.sort_by_key(place);
    }

    pub(super) fn written(&self, figure: &str, claim: &str) -> Option<&Written> {
        self.written.iter().find(|written| written.figure == figure && written.claim == claim)
    }

    /// How many of its claims hold, and how many fail.
    pub(super) fn counts(&self) -> (usize, usize) {
        let holds = self.written.iter().filter(|written| written.holds).count();
        (holds, self.written.len() - holds)
    }
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
