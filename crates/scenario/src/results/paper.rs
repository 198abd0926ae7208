//! The folder of a paper: its title, its figures, the parts that can not be run, and the verdicts that were last
//! written down.
//!
//! A paper is read from texts by name; the command takes them from a folder, or has them in itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::judging::claims::Judgement;
use crate::language::scenario::Scenario;
use congestlab_text::diagnostic::{Diagnostics, choices};
use congestlab_text::files::Files;

/// `paper.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The title.
    pub title: String,
    /// The authors.
    pub authors: String,
    /// Place and year.
    pub published: String,
}

/// Something of a paper that can not be run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The paper's section or figure.
    pub of: String,
    /// The thing itself.
    pub what: String,
    /// The reason.
    pub why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The figure's name.
    pub figure: String,
    /// The claim's words.
    pub claim: String,
    /// Whether it holds.
    pub verdict: Judgement,
    /// The measured value, as text.
    pub measured: String,
    /// The verdict with its cause switched off: a claim that does not fail then does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Judgement>,
}

impl Written {
    /// It holds, and nothing shows that it would not with its cause switched off.
    pub fn does_not_tell(&self) -> bool {
        self.verdict == Judgement::Holds && self.control.is_some_and(|control| control != Judgement::Fails)
    }

    /// The verdict in a word.
    pub fn word(&self) -> &'static str {
        if self.does_not_tell() { "does not tell" } else { self.verdict.word() }
    }
}

/// Claims by their verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Claims that hold.
    pub hold: usize,
    /// Claims that hold whatever their cause does.
    pub tell_nothing: usize,
    /// Claims that the runs do not decide.
    pub undecided: usize,
    /// Claims that fail.
    pub fail: usize,
}

impl Counts {
    /// Counts claims.
    pub fn of<'a>(all: impl Iterator<Item = &'a Written>) -> Self {
        let mut counts = Self::default();
        for written in all {
            *match written.verdict {
                Judgement::Holds if written.does_not_tell() => &mut counts.tell_nothing,
                Judgement::Holds => &mut counts.hold,
                Judgement::Undecided => &mut counts.undecided,
                Judgement::Fails => &mut counts.fail,
            } += 1;
        }
        counts
    }

    /// All of them.
    pub fn all(self) -> usize {
        self.hold + self.tell_nothing + self.undecided + self.fail
    }
}

/// `verdicts.toml`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Verdicts {
    /// One for each claim.
    #[serde(default)]
    pub verdicts: Vec<Written>,
}

/// Another value of an assumption, and the claims whose verdicts turn with it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The figure's name.
    pub figure: String,
    /// The name of the assumption.
    pub assumed: String,
    /// The other value.
    pub value: String,
    /// The claims that turn.
    pub turned: Vec<Change>,
}

/// A verdict that an assumption turns.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The claim's words.
    pub claim: String,
    /// Whether it holds then.
    pub verdict: Judgement,
    /// The value measured then, as text.
    pub measured: String,
}

/// `ranges.toml`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ranges {
    /// One for each value.
    #[serde(default)]
    pub ranges: Vec<Range>,
}

/// `ns2.toml`, `model.toml`: what ns-2, or a model of the paper by itself, measured of claims.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PeerValues {
    /// One for each claim that was asked.
    #[serde(default)]
    pub values: Vec<Written>,
    /// Claims that were run, and can not be judged on what came out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
}

/// A claim that was run by a peer, and that it says nothing of.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The figure's name.
    pub figure: String,
    /// The claim's words.
    pub claim: String,
    /// The reason.
    pub why: String,
}

impl PeerValues {
    /// Returns the value of a claim.
    pub fn find(&self, figure: &str, claim: &str) -> Option<&Written> {
        self.values.iter().find(|value| value.figure == figure && value.claim == claim)
    }

    /// Returns the reason why a claim that was run has no value.
    pub fn refused(&self, figure: &str, claim: &str) -> Option<&str> {
        let is_it = |refused: &&Refused| refused.figure == figure && refused.claim == claim;
        self.refused.iter().find(is_it).map(|refused| refused.why.as_str())
    }
}

/// A figure's file.
#[derive(Clone, Debug)]
pub struct FigureFile {
    /// The file's name, without `.toml`.
    pub name: String,
    text: String,
    path: PathBuf,
}

/// A paper's folder.
#[derive(Clone, Debug)]
pub struct Paper {
    /// The folder's name.
    pub key: String,
    /// The paper.
    pub about: About,
    /// The figures, in order of their names.
    pub figures: Vec<FigureFile>,
    /// The parts that can not be run.
    pub exceptions: Vec<Exception>,
    /// The verdicts that were written down.
    pub written: Vec<Written>,
    /// The claims that hinge on assumed values.
    pub ranges: Vec<Range>,
    /// The values of ns-2.
    pub peer: PeerValues,
    /// The values of a model of the paper that shares nothing with the laws.
    pub model: PeerValues,
    /// The files that its scenarios name; `None`: beside it.
    pub files: Option<Files>,
}

/// An error in a paper's folder.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PaperError {
    /// The folder has no `paper.toml`.
    #[error("{} has no paper.toml", .0.display())]
    NoAbout(PathBuf),
    /// A file does not say what it should.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The byte of the line, from 1.
        column: usize,
        /// The mistake.
        message: String,
    },
    /// There is no figure of that name.
    #[error("{key} has no figure `{name}`")]
    NoFigure {
        /// The paper.
        key: String,
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        choices: String,
    },
    /// A scenario that shows nothing.
    #[error("{} has no [figure]", .0.display())]
    ShowsNothing(PathBuf),
    /// A figure leaves out a key that only other scenarios may leave out.
    #[error("{}: `figure` of a paper needs the key `{key}`", path.display())]
    Lacks {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
    },
    /// A figure's scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] Diagnostics),
}

impl Paper {
    /// Reads the texts of the folder `place`, by the names of their files.
    ///
    /// # Errors
    /// A file that is no figure is wrong; figures are read when they are asked for.
    pub fn parse(place: &Path, key: String, mut files: BTreeMap<String, String>) -> Result<Self, PaperError> {
        let about =
            part(place, &mut files, "paper.toml")?.ok_or_else(|| PaperError::NoAbout(place.to_owned()))?;
        let exceptions: Exceptions = part(place, &mut files, "exceptions.toml")?.unwrap_or_default();
        let verdicts: Verdicts = part(place, &mut files, "verdicts.toml")?.unwrap_or_default();
        let ranges: Ranges = part(place, &mut files, "ranges.toml")?.unwrap_or_default();
        let peer = part(place, &mut files, "ns2.toml")?.unwrap_or_default();
        let model = part(place, &mut files, "model.toml")?.unwrap_or_default();
        let figure = |(name, text): (String, String)| {
            let path = place.join(&name);
            FigureFile { name: name.trim_end_matches(".toml").to_owned(), text, path }
        };
        let figures = files.into_iter().map(figure).collect();
        let (exceptions, written, ranges) = (exceptions.exceptions, verdicts.verdicts, ranges.ranges);
        Ok(Self { key, about, figures, exceptions, written, ranges, peer, model, files: None })
    }

    /// Reads the figures that were asked for, and checks them.
    ///
    /// # Errors
    /// There is none of that name, or one is wrong.
    pub fn scenarios(&self, figure: Option<&str>) -> Result<Vec<(String, Scenario)>, PaperError> {
        let names = || self.figures.iter().map(|figure| figure.name.as_str());
        if let Some(wanted) = figure.filter(|wanted| names().all(|name| name != *wanted)) {
            return Err(self.no_figure(wanted));
        }
        let chosen = names().filter(|name| figure.is_none_or(|wanted| wanted == *name));
        chosen.map(|name| Ok((name.to_owned(), self.scenario(name, &[])?))).collect()
    }

    fn no_figure(&self, name: &str) -> PaperError {
        let choices = choices(name, self.figures.iter().map(|figure| figure.name.as_str()));
        PaperError::NoFigure { key: self.key.clone(), name: name.to_owned(), choices: choices.into() }
    }

    /// Reads a figure, with other values by path, and checks it.
    ///
    /// # Errors
    /// There is none of that name, or it is wrong.
    pub fn scenario(&self, name: &str, sets: &[(String, String)]) -> Result<Scenario, PaperError> {
        let file = self.figures.iter().find(|figure| figure.name == name);
        let FigureFile { text, path, .. } = file.ok_or_else(|| self.no_figure(name))?;
        let base = path.parent().unwrap_or_else(|| Path::new(""));
        let files = self.files.clone().unwrap_or_else(|| base.into());
        let scenario = Scenario::parse_with(&path.display().to_string(), text, files, sets, None)?;
        scenario.check()?;
        let figure = scenario.figure().ok_or_else(|| PaperError::ShowsNothing(path.clone()))?;
        // Other scenarios may leave out what a report stands on.
        let missing = [
            ("of", figure.of().is_empty()),
            ("title", figure.title().is_empty()),
            ("lines", figure.wish().is_some()),
        ];
        if let Some((key, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
            return Err(PaperError::Lacks { path: path.clone(), key });
        }
        Ok(scenario)
    }

    /// Puts verdicts of figures that have run in the place of those that were written down; the others stay.
    pub fn write_down(&mut self, figures: &[&str], now: &[Written]) {
        let place = |written: &Written| self.figures.iter().position(|figure| figure.name == written.figure);
        let stays =
            |written: &Written| place(written).is_some() && !figures.contains(&written.figure.as_str());
        self.written.retain(stays);
        self.written.extend_from_slice(now);
        self.written.sort_by_key(place);
    }

    /// Returns the verdict on a claim.
    pub fn written(&self, figure: &str, claim: &str) -> Option<&Written> {
        self.written.iter().find(|written| written.figure == figure && written.claim == claim)
    }

    /// Counts the claims that were written down.
    pub fn counts(&self) -> Counts {
        Counts::of(self.written.iter())
    }
}

fn part<T: for<'a> Deserialize<'a>>(
    place: &Path,
    files: &mut BTreeMap<String, String>,
    name: &str,
) -> Result<Option<T>, PaperError> {
    let Some(text) = files.remove(name) else { return Ok(None) };
    toml::from_str(&text).map(Some).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or("");
        PaperError::Wrong {
            path: place.join(name),
            line: before.matches('\n').count() + 1,
            column: before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1,
            message: error.message().to_owned(),
        }
    })
}
