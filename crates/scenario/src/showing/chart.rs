//! What a run or a sweep shows: quantities over time, over an axis of a sweep, as distributions. Numbers, not pictures.
//!
//! `congestlab export figure` draws it, and `[figure]` and the figures of papers come to the same [`Picture`]. Means are over what
//! one point measured and then over seeds, with the 95 % interval of Student's t; nothing is fitted or smoothed.

mod data;
mod export;
mod label;
mod time;

pub use data::{Data, of_data, points_of_data};
pub use export::{csv, mplstyle};
pub use label::{is_share, unit_in_brackets};
use thiserror::Error;
pub use time::{over_time, point_of_run};

use crate::judging::figure::Figure;
pub use crate::judging::figure::{Kind, Wish};
use crate::judging::observation::{Observation, PointResult};
use crate::judging::seeds::UnusedSeeds;
use crate::results::folder::{FolderError, RunFolder};
use crate::showing::style;
use crate::showing::style::{Bound, Look, MARKERS};

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// A line: it was recorded all the time, or is exact everywhere.
    Line,
    /// One of many equal lines.
    Thin,
    /// Markers at the points that were measured, and lines between.
    Measured,
    /// A bound.
    Bound(Bound),
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its entry in the legend; equal names share one.
    pub name: String,
    /// The law that it is of.
    pub law: Option<String>,
    /// How it is drawn.
    pub mark: Mark,
    /// (x, y), x ascending.
    pub points: Vec<(f64, f64)>,
    /// (x, low, high): intervals of means, or how flows are spread.
    pub spread: Vec<(f64, f64, f64)>,
    /// How many values are behind each point.
    pub samples: Vec<usize>,
}

/// One quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Quantity and unit.
    pub label: String,
    /// Its axis has equal ratios.
    pub is_logarithmic: bool,
    /// What is shown of it.
    pub curves: Vec<Curve>,
}

/// Quantities over one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Quantity and unit below the axis.
    pub x_label: String,
    /// The axis has equal ratios.
    pub is_logarithmic: bool,
    /// Names of the places 0, 1, ... of an axis without numbers.
    pub categories: Vec<String>,
    /// From above to below.
    pub panels: Vec<Panel>,
    /// What the points and intervals are.
    pub note: String,
}

/// Why nothing can be drawn.
#[derive(Debug, Error)]
pub enum ChartError {
    /// Something does not exist.
    #[error("{what} `{found}`")]
    Unknown {
        /// What is not there, such as "there is no column".
        what: &'static str,
        /// The word.
        found: String,
        /// What there is.
        allowed: String,
    },
    /// There is nothing of what was asked for.
    #[error("{text}")]
    Nothing {
        /// What there is not.
        text: String,
        /// What to do.
        help: String,
    },
    /// A run can not be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A table can not be read.
    #[error("{0}")]
    Table(String),
}

fn nothing(text: impl Into<String>, help: impl Into<String>) -> ChartError {
    ChartError::Nothing { text: text.into(), help: help.into() }
}

/// The looks of curves: a law has its own everywhere. Several curves of one law have its colour and differ in marker and
/// dash, unless they are more than there are dash patterns, and of one law all: then they have colours of their own.
pub fn looks(curves: &[(&str, Option<&str>)]) -> Vec<(String, Look)> {
    let mut names: Vec<(&str, Option<Look>)> = Vec::new();
    for (name, law) in curves {
        if names.iter().all(|(other, _)| other != name) {
            names.push((name, law.and_then(style::of_law)));
        }
    }
    let mut laws: Vec<Look> = Vec::new();
    for look in names.iter().filter_map(|(_, look)| *look) {
        if !laws.contains(&look) {
            laws.push(look);
        }
    }
    let has_laws = names.len() <= style::DASHES.len() || laws.len() > 1;
    let mut seen: Vec<Look> = Vec::new();
    let mut other = 0;
    let each = |(name, look): (&str, Option<Look>)| {
        let look = match look.filter(|_| has_laws) {
            Some(look) => {
                let nth = seen.iter().filter(|one| **one == look).count();
                seen.push(look);
                let at = |list: &[crate::showing::style::Dash]| {
                    list.iter().position(|dash| *dash == look.dash).unwrap_or(0)
                };
                let marker = MARKERS.iter().position(|marker| *marker == look.marker).unwrap_or(0);
                Look {
                    marker: MARKERS[(marker + nth) % MARKERS.len()],
                    dash: style::DASHES[(at(&style::DASHES) + nth) % style::DASHES.len()],
                    ..look
                }
            }
            None => {
                // Not the colour of a law that stands beside it.
                while has_laws && laws.iter().any(|law| law.hue == style::nth(other).hue) && other < 8 {
                    other += 1;
                }
                other += 1;
                style::nth(other - 1)
            }
        };
        (name.to_owned(), look)
    };
    names.into_iter().map(each).collect()
}

/// What runs are called: by what is changed in them and not in all, by their names otherwise.
fn labels(runs: &[RunFolder]) -> Vec<String> {
    let changes: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let label = run.origin()["label"].as_str().unwrap_or_default().to_owned();
            label.split(", ").filter(|word| !word.is_empty()).map(str::to_owned).collect()
        })
        .collect();
    let is_common = |word: &String| runs.len() > 1 && changes.iter().all(|words| words.contains(word));
    let labels: Vec<String> = changes
        .iter()
        .map(|words| {
            let mut unique: Vec<String> = Vec::new();
            for word in words.iter().filter(|word| !is_common(word)) {
                let (path, value) = word.split_once(" = ").unwrap_or(("", word));
                let value = value.trim_matches('"');
                let name = path.rsplit('.').next().unwrap_or(path);
                let short = if name == "law" { value.to_owned() } else { format!("{name} = {value}") };
                if !unique.contains(&short) {
                    unique.push(short);
                }
            }
            if unique.is_empty() && runs.len() > 1 { "as written".into() } else { unique.join(", ") }
        })
        .collect();
    let is_clear =
        labels.iter().enumerate().all(|(place, label)| !label.is_empty() && !labels[..place].contains(label));
    if is_clear { labels } else { runs.iter().map(RunFolder::name).collect() }
}

/// What points and intervals are: "mean and 95 % confidence interval, n = 30 seeds". Runs that differ in more than their seed
/// are no repetitions, of which an interval would tell: "mean, n = 2 runs that differ in flows.f.law".
fn intervals(panel: &Panel, mixed: &[&str], of: &str) -> String {
    let samples = || panel.curves.iter().flat_map(|curve| &curve.samples).copied();
    let (Some(fewest), Some(most)) = (samples().min(), samples().max()) else { return String::new() };
    if most < 2 {
        return String::new();
    }
    let count = range(fewest, most);
    if !mixed.is_empty() {
        return format!("mean, n = {count} runs that differ in {}", mixed.join(", "));
    }
    let has_spread = panel.curves.iter().any(|curve| !curve.spread.is_empty());
    let what = if has_spread { "mean and 95 % confidence interval" } else { "mean, all equal" };
    format!("{what}, n = {count} {of}")
}

/// The same, and that seeds changed nothing if they did not: equal runs are no repetitions either.
fn repetitions(panel: &Panel, mixed: &[&str], of: &str, unused: Option<UnusedSeeds>) -> String {
    let said = intervals(panel, mixed, of);
    match unused {
        None => said,
        Some(unused) if said.is_empty() || (mixed.is_empty() && unused.points == unused.of) => {
            unused.to_string()
        }
        Some(unused) => format!("{said}; {unused}"),
    }
}

/// `5`, or `3 to 5`.
fn range(fewest: usize, most: usize) -> String {
    if fewest == most { most.to_string() } else { format!("{fewest} to {most}") }
}

/// What `[figure]` shows of points, as for papers.
pub fn of_figure(figure: Figure<'_>, points: &[PointResult]) -> Picture {
    let curves = figure.curves(points);
    let is_time = figure.is_over_time();
    let mut panels: Vec<Panel> = Vec::new();
    let mut mixed: Vec<String> = Vec::new();
    for curve in curves {
        mixed.extend(curve.mixed.into_iter().filter(|path| !mixed.contains(path)).collect::<Vec<_>>());
        let label = unit_in_brackets(&curve.y);
        let drawn = Curve {
            name: curve.name,
            law: curve.law,
            mark: if is_time { Mark::Line } else { Mark::Measured },
            points: curve.points,
            spread: curve.spread,
            samples: curve.samples,
        };
        match panels.iter_mut().find(|panel| panel.label == label) {
            Some(panel) => panel.curves.push(drawn),
            None => panels.push(Panel { label, is_logarithmic: false, curves: vec![drawn] }),
        }
    }
    let mixed: Vec<&str> = mixed.iter().map(String::as_str).collect();
    let seen: Vec<Observation> = points.iter().map(PointResult::observation).collect();
    let unused = Observation::unused_seeds(&seen);
    let notes: Vec<String> = panels
        .iter()
        .map(|panel| repetitions(panel, &mixed, "seeds", unused))
        .filter(|note| !note.is_empty())
        .collect();
    let x_label = unit_in_brackets(figure.x_label());
    Picture {
        x_label,
        is_logarithmic: figure.is_logarithmic(),
        categories: Vec::new(),
        panels,
        note: notes.into_iter().next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
