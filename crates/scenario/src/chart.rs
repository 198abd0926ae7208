//! What a run or a sweep shows: quantities over time, over an axis of a sweep, as distributions. Numbers, not pictures.
//!
//! `congestlab plot` draws it, and `[figure]` and the figures of papers come to the same [`Picture`]. Means are over what
//! one point measured and then over seeds, with the 95 % interval of Student's t; nothing is fitted or smoothed.

mod export;
mod label;

use std::collections::BTreeMap;

use congestlab_sim::outcome::{Element, FlowOutcome, Outcome, Sample};
use serde_json::Value as Json;
use thiserror::Error;

use crate::diagnostic::choices;
use crate::figure::Figure;
use crate::folder::{FolderError, RunFolder, SeriesRow};
use crate::metric::{Metric, Reading, Series, fields, series_name};
use crate::report::{self, Of, Recording};
use crate::result::jain;
use crate::seeds::{Estimate, SEED};
use crate::style::{self, Bound, Look, MARKERS};
use crate::sweep::PointResult;
use crate::table::{Table, TableError};

pub use export::{csv, mplstyle};
use label::label_of;
pub use label::{is_share, unit_in_brackets};

/// What kind of picture it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Quantities over time.
    Time,
    /// Means over an axis of a sweep.
    Line,
    /// The distribution of a quantity of flows.
    Cdf,
    /// Flow completion time by size.
    Fct,
    /// Jain's index.
    Fairness,
    /// Queueing delay.
    Delay,
}

impl Kind {
    /// Kinds by name.
    pub const ALL: [(&str, Self); 6] = [
        ("time", Self::Time),
        ("line", Self::Line),
        ("cdf", Self::Cdf),
        ("fct", Self::Fct),
        ("fairness", Self::Fairness),
        ("delay", Self::Delay),
    ];
}

/// What somebody wants to see; what is absent is chosen.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The kind.
    pub kind: Option<Kind>,
    /// A path of the sweep or a column of its table; "time".
    pub x: Option<String>,
    /// A value of flows, links or groups, such as `goodput_bps` or `links.bottleneck.utilization`.
    pub y: Option<String>,
    /// What makes lines: `law`, `element`, `label`, or a path of the sweep.
    pub by: Option<String>,
}

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

/// The looks of curves: a law has its own everywhere. Where laws are compared, several curves of one law have its colour
/// and differ in marker and dash; where all have the same law, or none, they have colours of their own.
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
    let has_laws = names.len() == 1 || laws.len() > 1;
    let mut seen: Vec<Look> = Vec::new();
    let mut other = 0;
    let each = |(name, look): (&str, Option<Look>)| {
        let look = match look.filter(|_| has_laws) {
            Some(look) => {
                let nth = seen.iter().filter(|one| **one == look).count();
                seen.push(look);
                let at = |list: &[crate::style::Dash]| {
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

/// A row of the table of a sweep, or of what a run measured.
#[derive(Clone, Debug, Default)]
struct Row {
    point: usize,
    kind: String,
    element: String,
    law: Option<String>,
}

/// Numbers of many points, by column.
pub struct Data {
    /// Path and column of each axis, and its values as they are written.
    axes: Vec<(String, String, Vec<String>)>,
    rows: Vec<Row>,
    /// Numbers by column; every one as long as `rows`.
    numbers: BTreeMap<String, Vec<Option<f64>>>,
    /// Texts by column.
    texts: BTreeMap<String, Vec<Option<String>>>,
    /// Seeds behind a point of the axes.
    has_seeds: bool,
}

/// What says whose a row is, and is nothing to be drawn.
const HEAD: [&str; 11] = [
    "point",
    "run",
    "scenario",
    "seed",
    "label",
    "kind",
    "element",
    "index",
    "law",
    "fingerprint",
    "packet_hops",
];

impl Data {
    /// Of runs: each is a point, and its settings are axes.
    pub fn of_runs(runs: &[RunFolder]) -> Self {
        let mut data = Self {
            axes: Vec::new(),
            rows: Vec::new(),
            numbers: BTreeMap::new(),
            texts: BTreeMap::new(),
            has_seeds: false,
        };
        let names = labels(runs);
        for (point, (run, label)) in runs.iter().zip(&names).enumerate() {
            let summary = run.summary();
            let laws = [run.scenario().link_laws(), run.scenario().flow_laws()];
            let law = |of: usize, place: usize| laws[of].get(place).copied().flatten().map(str::to_owned);
            let row = |kind: &str, element: &str, law| Row {
                point,
                kind: kind.to_owned(),
                element: element.to_owned(),
                law,
            };
            for (place, (name, link)) in summary["links"].as_object().into_iter().flatten().enumerate() {
                data.add(row("link", name, law(0, place)), link, label);
            }
            for (place, (name, flows)) in summary["flows"].as_object().into_iter().flatten().enumerate() {
                let group = serde_json::json!({ "jain": summary["jain"][name] });
                data.add(row("group", name, law(1, place)), &group, label);
                for flow in flows.as_array().into_iter().flatten() {
                    data.add(row("flow", name, law(1, place)), flow, label);
                }
            }
        }
        data.axes.push(("run".to_owned(), "label".to_owned(), names));
        data
    }

    /// Of a sweep.
    ///
    /// # Errors
    /// If the table can not be read.
    pub fn of_table(table: &Table) -> Result<Self, ChartError> {
        let fault = |error: TableError| ChartError::Table(error.to_string());
        let [kinds, elements, laws, labels] =
            [table.texts("kind"), table.texts("element"), table.texts("law"), table.texts("label")];
        let (kinds, elements, laws) = (kinds.map_err(fault)?, elements.map_err(fault)?, laws.map_err(fault)?);
        let points = table.numbers("point").map_err(fault)?;
        let rows = points.into_iter().zip(kinds).zip(elements.into_iter().zip(laws));
        let rows = rows.map(|((point, kind), (element, law))| Row {
            point: point.unwrap_or(0.0) as usize,
            kind: kind.unwrap_or_default(),
            element: element.unwrap_or_default(),
            law,
        });
        let axes: Vec<(String, String, Vec<String>)> = table
            .axes()
            .iter()
            .map(|axis| (axis.path.clone(), axis.column.clone(), axis.values.clone()))
            .collect();
        let mut data = Self {
            has_seeds: axes.iter().any(|(path, ..)| path == SEED),
            axes,
            rows: rows.collect(),
            numbers: BTreeMap::new(),
            texts: BTreeMap::from([("label".to_owned(), labels.map_err(fault)?)]),
        };
        for column in table.columns().iter().filter(|name| *name == "seed" || !HEAD.contains(&name.as_str()))
        {
            let numbers = table.numbers(column).map_err(fault)?;
            if numbers.iter().any(Option::is_some) {
                data.numbers.insert(column.clone(), numbers);
            } else if data.axes.iter().any(|(_, axis, _)| axis == column) {
                data.texts.insert(column.clone(), table.texts(column).map_err(fault)?);
            }
        }
        Ok(data)
    }

    fn add(&mut self, row: Row, values: &Json, label: &str) {
        let before = self.rows.len();
        for (key, value) in values.as_object().into_iter().flatten() {
            let Some(number) = value.as_f64() else { continue };
            let column = self.numbers.entry(key.clone()).or_default();
            column.resize(before, None);
            column.push(Some(number));
        }
        let column = self.texts.entry("label".to_owned()).or_default();
        column.push(Some(label.to_owned()));
        self.rows.push(row);
        for column in self.numbers.values_mut() {
            column.resize(before + 1, None);
        }
    }

    /// Columns with something to be drawn.
    fn quantities(&self) -> impl Iterator<Item = &str> {
        let is_axis = |name: &str| self.axes.iter().any(|(_, column, _)| column == name);
        let names = self.numbers.keys().map(String::as_str);
        names.filter(move |name| !HEAD.contains(name) && !is_axis(name))
    }

    /// What `y` names: its column, of which kind of row and of which element.
    fn find(&self, wanted: &str) -> Result<(String, Option<&'static str>, Option<String>), ChartError> {
        if self.quantities().any(|name| name == wanted) {
            let has = |kind: &str| {
                let column = self.numbers.get(wanted).map_or(&[][..], Vec::as_slice);
                self.rows.iter().zip(column).any(|(row, value)| row.kind == kind && value.is_some())
            };
            let kind = ["flow", "group", "link", "run"].into_iter().find(|kind| has(kind));
            return Ok((wanted.to_owned(), kind, None));
        }
        if let Some((table, name, value)) =
            Metric::parse(wanted).ok().filter(|metric| !metric.needs_series()).and_then(|metric| {
                metric.reads().next().map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()))
            })
        {
            let is_jain = wanted.starts_with("jain.");
            let (value, name) = match wanted.split('.').collect::<Vec<_>>()[..] {
                [_, ref link, "reverse", value] => (value.to_owned(), format!("{link}.reverse")),
                _ if is_jain => ("jain".to_owned(), name),
                _ => (value, name),
            };
            let kind = match table.as_str() {
                "links" => "link",
                _ if is_jain => "group",
                _ => "flow",
            };
            if self.quantities().any(|other| other == value) {
                if self.rows.iter().any(|row| row.kind == kind && row.element == name) {
                    return Ok((value, Some(kind), Some(name)));
                }
                let mut elements: Vec<&str> =
                    self.rows.iter().filter(|row| row.kind == kind).map(|row| row.element.as_str()).collect();
                elements.dedup();
                elements.truncate(64);
                let allowed = choices(&name, elements).into();
                return Err(ChartError::Unknown {
                    what: "y names an element that is not there:",
                    found: name,
                    allowed,
                });
            }
        }
        let allowed = choices(wanted, self.quantities()).into();
        Err(ChartError::Unknown {
            what: "there is nothing to draw by the name of y,",
            found: wanted.to_owned(),
            allowed,
        })
    }

    /// The axis of that path or column.
    fn axis(&self, what: &'static str, wanted: &str) -> Result<&(String, String, Vec<String>), ChartError> {
        let found = self.axes.iter().find(|(path, column, _)| path == wanted || column == wanted);
        found.ok_or_else(|| {
            let allowed = choices(wanted, self.axes.iter().map(|(path, ..)| path.as_str())).into();
            ChartError::Unknown { what, found: wanted.to_owned(), allowed }
        })
    }

    /// The text of a row in a column.
    fn text(&self, column: &str, row: usize) -> Option<String> {
        let number =
            || self.numbers.get(column)?.get(row).copied().flatten().map(|number| number.to_string());
        self.texts.get(column).and_then(|column| column.get(row).cloned().flatten()).or_else(number)
    }
}

/// What runs are called: by what is changed in them, by their names otherwise.
fn labels(runs: &[RunFolder]) -> Vec<String> {
    let labels: Vec<String> = runs
        .iter()
        .map(|run| {
            let origin = run.origin();
            let label = origin["label"].as_str().unwrap_or_default();
            let words: Vec<&str> = label.split(", ").filter(|word| !word.is_empty()).collect();
            let short = words.iter().map(|word| {
                let (path, value) = word.split_once(" = ").unwrap_or(("", word));
                let is_law = path.ends_with(".law");
                let value = value.trim_matches('"');
                if is_law {
                    value.to_owned()
                } else {
                    format!("{} = {value}", path.rsplit('.').next().unwrap_or(path))
                }
            });
            let mut unique: Vec<String> = Vec::new();
            for word in short {
                if !unique.contains(&word) {
                    unique.push(word);
                }
            }
            unique.join(", ")
        })
        .collect();
    let is_clear =
        labels.iter().enumerate().all(|(place, label)| !label.is_empty() && !labels[..place].contains(label));
    if is_clear { labels } else { runs.iter().map(RunFolder::name).collect() }
}

/// Numbers of one line at one place of the axis, by point.
type Cells = BTreeMap<usize, Vec<f64>>;

struct Drawn {
    name: String,
    law: Option<String>,
    /// In the order of the axis.
    at: Vec<(f64, Cells)>,
}

/// What a data set shows.
///
/// # Errors
/// If something that was asked for is not there.
pub fn of_data(data: &Data, wish: &Wish) -> Result<Picture, ChartError> {
    match wish.kind.unwrap_or(Kind::Line) {
        Kind::Time => Err(nothing(
            "a sweep keeps no series over time",
            "`congestlab run FILE --out DIR`, or `sweep --folders`, and plot the folders of the runs",
        )),
        Kind::Line => {
            let default =
                ["goodput_bps", "utilization"].into_iter().find(|name| data.numbers.contains_key(*name));
            over_axis(data, wish, wish.y.as_deref().or(default).unwrap_or("goodput_bps"))
        }
        Kind::Fairness => over_axis(data, wish, wish.y.as_deref().unwrap_or("jain")),
        Kind::Delay => {
            let names = ["queue_delay_mean_ms", "queue_mean_packets"];
            let default = names.into_iter().find(|name| data.numbers.contains_key(*name));
            over_axis(data, wish, wish.y.as_deref().or(default).unwrap_or(names[0]))
        }
        Kind::Cdf => cdf(data, wish),
        Kind::Fct => fct(data, wish),
    }
}

/// Which rows a column is drawn of: of links the directions that somebody described.
fn rows_of<'a>(
    data: &'a Data,
    column: &'a str,
    kind: Option<&'a str>,
    element: Option<&'a str>,
) -> impl Iterator<Item = (usize, &'a Row, f64)> {
    let values = data.numbers.get(column).map_or(&[][..], Vec::as_slice);
    let rows = data.rows.iter().zip(values).enumerate();
    rows.filter_map(move |(place, (row, value))| {
        let is_of = kind.is_none_or(|kind| row.kind == kind)
            && match element {
                Some(element) => row.element == element,
                None => !(row.kind == "link" && row.element.ends_with(".reverse")),
            };
        value.filter(|value| is_of && value.is_finite()).map(|value| (place, row, value))
    })
}

/// Says to which line a row belongs, and of which law that is.
struct Lines {
    /// Columns whose values make lines.
    columns: Vec<String>,
    by_law: bool,
    by_element: bool,
    /// Axes of laws, whose values are laws.
    laws: Vec<String>,
}

impl Lines {
    fn new(
        data: &Data,
        wish: &Wish,
        x: Option<&str>,
        rows: &[(usize, &Row, f64)],
    ) -> Result<Self, ChartError> {
        let is_law_axis = |path: &str| path.ends_with(".law");
        let laws = data.axes.iter().filter(|(path, ..)| is_law_axis(path) && path.starts_with("flows."));
        let mut laws: Vec<String> = laws.map(|(_, column, _)| column.clone()).collect();
        if laws.is_empty() {
            let of_links = data.axes.iter().filter(|(path, ..)| is_law_axis(path));
            laws = of_links.map(|(_, column, _)| column.clone()).collect();
        }
        let mut lines = Self { columns: Vec::new(), by_law: false, by_element: false, laws };
        match wish.by.as_deref() {
            Some("law") => {
                lines.by_law = lines.laws.is_empty();
                lines.columns = lines.laws.clone();
            }
            Some("element") => lines.by_element = true,
            Some("label") => lines.columns = vec!["label".to_owned()],
            Some(by) => {
                let known = ["law", "element", "label"].into_iter();
                let paths = data.axes.iter().map(|(path, ..)| path.as_str());
                let allowed: String = choices(by, known.chain(paths)).into();
                let found = data.axis("", by).map_err(|_| ChartError::Unknown {
                    what: "there are no lines by",
                    found: by.to_owned(),
                    allowed,
                })?;
                lines.columns = vec![found.1.clone()];
            }
            None => {
                let others = data
                    .axes
                    .iter()
                    .filter(|(path, column, _)| Some(column.as_str()) != x && path != "run.seed");
                lines.columns = others.map(|(_, column, _)| column.clone()).collect();
                let mut found: Vec<(Option<&str>, &str)> =
                    rows.iter().map(|(_, row, _)| (row.law.as_deref(), row.element.as_str())).collect();
                found.sort_unstable();
                found.dedup();
                lines.by_element = found.iter().any(|(_, element)| *element != found[0].1);
                lines.by_law = lines.laws.is_empty() && found.iter().any(|(law, _)| *law != found[0].0);
            }
        }
        Ok(lines)
    }

    fn of(&self, data: &Data, place: usize, row: &Row) -> (String, Option<String>) {
        let swept = self
            .laws
            .iter()
            .find_map(|column| data.text(column, place))
            .filter(|law| style::of_law(law).is_some());
        let law = swept.or_else(|| row.law.clone());
        let mut words: Vec<String> = Vec::new();
        let mut add = |word: String| {
            if !word.is_empty() && !words.contains(&word) {
                words.push(word);
            }
        };
        if self.by_law {
            add(law.clone().unwrap_or_else(|| "no law".into()));
        }
        if self.by_element {
            add(row.element.clone());
        }
        for column in &self.columns {
            let Some(value) = data.text(column, place) else { continue };
            if self.laws.contains(column) || column.ends_with(".law") || column == "label" {
                add(value);
                continue;
            }
            let number = data.numbers.get(column).and_then(|column| column.get(place).copied().flatten());
            let (label, factor) = label_of(column, number.unwrap_or(0.0));
            let (name, unit) = label.rsplit_once(" (").unwrap_or((&label, ""));
            let unit = unit.trim_end_matches(')');
            let value = number.map_or(value, |number| short(number / factor));
            let unit = if matches!(unit, "1" | "number" | "") { String::new() } else { format!(" {unit}") };
            add(format!("{name} {value}{unit}"));
        }
        (words.join(", "), law)
    }
}

/// A number in words: at most six digits.
fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Name and law of a line, and at each place of its axis the mean and of how many points it is.
type Means = (String, Option<String>, Vec<(f64, Estimate, usize)>);

fn over_axis(data: &Data, wish: &Wish, y: &str) -> Result<Picture, ChartError> {
    if wish.x.as_deref() == Some("time") {
        return of_data(data, &Wish { kind: Some(Kind::Time), ..wish.clone() });
    }
    let (column, kind, element) = data.find(y)?;
    let rows: Vec<_> = rows_of(data, &column, kind, element.as_deref()).collect();
    if rows.is_empty() {
        return Err(nothing(
            format!("`{column}` was measured nowhere"),
            "see what else y can be in docs/figures.md",
        ));
    }
    let axis = match wish.x.as_deref() {
        Some(x) => data.axis("there is no axis", x)?,
        None => default_axis(data)?,
    };
    let x = axis.1.clone();
    let lines = Lines::new(data, wish, Some(&x), &rows)?;
    // Numbers if every row has one; places of an axis otherwise, in its order.
    let has_numbers = rows.iter().all(|(place, ..)| {
        data.numbers.get(&x).is_some_and(|column| column.get(*place).copied().flatten().is_some())
    });
    let mut categories: Vec<String> = Vec::new();
    let mut drawn: Vec<Drawn> = Vec::new();
    for &(place, row, value) in &rows {
        let at = if has_numbers {
            data.numbers.get(&x).and_then(|column| column[place]).unwrap_or(0.0)
        } else {
            let Some(text) = data.text(&x, place) else { continue };
            let known = categories.iter().position(|other| *other == text);
            known.unwrap_or_else(|| {
                categories.push(text);
                categories.len() - 1
            }) as f64
        };
        let (name, law) = lines.of(data, place, row);
        let line = match drawn.iter_mut().position(|line| line.name == name) {
            Some(line) => line,
            None => {
                drawn.push(Drawn { name, law, at: Vec::new() });
                drawn.len() - 1
            }
        };
        let cells = match drawn[line].at.iter().position(|(other, _)| *other == at) {
            Some(cell) => cell,
            None => {
                drawn[line].at.push((at, Cells::new()));
                drawn[line].at.len() - 1
            }
        };
        drawn[line].at[cells].1.entry(row.point).or_default().push(value);
    }
    let highest_x = drawn.iter().flat_map(|line| &line.at).map(|(at, _)| at.abs()).fold(0.0, f64::max);
    let (x_label, x_factor) = if has_numbers {
        label_of(&x, highest_x)
    } else if x == "label" {
        ("run (name)".to_owned(), 1.0)
    } else {
        let (label, _) = label_of(&x, 0.0);
        (label.replace("(1)", "(name)"), 1.0)
    };
    let means: Vec<Means> = drawn
        .into_iter()
        .map(|line| {
            let mut at: Vec<(f64, Estimate, usize)> = line
                .at
                .into_iter()
                .filter_map(|(at, cells)| {
                    let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
                    let values: Vec<f64> = cells.values().map(mean).collect();
                    Some((at / x_factor, Estimate::of(&values)?, values.len()))
                })
                .collect();
            at.sort_by(|a, b| a.0.total_cmp(&b.0));
            (line.name, line.law, at)
        })
        .collect();
    let highest = means
        .iter()
        .flat_map(|(_, _, at)| at)
        .map(|(_, estimate, _)| estimate.mean.abs())
        .fold(0.0, f64::max);
    let (label, factor) = label_of(&column, highest);
    let curves: Vec<Curve> = means
        .into_iter()
        .map(|(name, law, at)| Curve {
            name,
            law,
            mark: Mark::Measured,
            points: at.iter().map(|(x, estimate, _)| (*x, estimate.mean / factor)).collect(),
            spread: spread(&at, factor),
            samples: at.iter().map(|(.., count)| *count).collect(),
        })
        .collect();
    let panel = Panel { label, is_logarithmic: false, curves };
    let several = kind == Some("flow") && {
        let first = rows.first().map(|(_, row, _)| (row.point, row.element.as_str()));
        rows.iter().filter(|(_, row, _)| Some((row.point, row.element.as_str())) == first).count() > 1
    };
    let of = if data.has_seeds && wish.by.is_none() { "seeds" } else { "runs" };
    let mut note = intervals(&panel, of);
    if several {
        let words = "each run is the mean of its flows";
        note = if note.is_empty() { words.to_owned() } else { format!("{note}; {words}") };
    }
    let xs = || panel.curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| *x);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let is_logarithmic = categories.is_empty() && low > 0.0 && high / low >= 50.0;
    Ok(Picture { x_label, is_logarithmic, categories, panels: vec![panel], note })
}

/// Intervals where there are any. What is never negative is not drawn so, for Student's t knows no bound.
fn spread(at: &[(f64, Estimate, usize)], factor: f64) -> Vec<(f64, f64, f64)> {
    if at.iter().all(|(_, estimate, _)| estimate.half == 0.0) {
        return Vec::new();
    }
    let is_positive = at.iter().all(|(_, estimate, _)| estimate.mean >= 0.0);
    let low = |low: f64| if is_positive { low.max(0.0) } else { low };
    let each = |(x, estimate, _): &(f64, Estimate, usize)| {
        (*x, low(estimate.low()) / factor, estimate.high() / factor)
    };
    at.iter().map(each).collect()
}

/// What points and intervals are: "mean and 95 % confidence interval, n = 30 seeds".
fn intervals(panel: &Panel, of: &str) -> String {
    let samples = || panel.curves.iter().flat_map(|curve| &curve.samples).copied();
    let (Some(fewest), Some(most)) = (samples().min(), samples().max()) else { return String::new() };
    if most < 2 {
        return String::new();
    }
    let count = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let has_spread = panel.curves.iter().any(|curve| !curve.spread.is_empty());
    let what = if has_spread { "mean and 95 % confidence interval" } else { "mean, all equal" };
    format!("{what}, n = {count} {of}")
}

/// The first axis that is numbers, then the first of all; laws and seeds are lines and repetitions.
fn default_axis(data: &Data) -> Result<&(String, String, Vec<String>), ChartError> {
    let fit = || data.axes.iter().filter(|(path, _, values)| path != "run.seed" && !values.is_empty());
    let is_number = |(_, column, _): &&(String, String, Vec<String>)| data.numbers.contains_key(column);
    fit()
        .find(is_number)
        .or_else(|| fit().next())
        .or_else(|| data.axes.first())
        .ok_or_else(|| nothing("the sweep varies nothing", "say what lies on the x axis with --x"))
}

fn cdf(data: &Data, wish: &Wish) -> Result<Picture, ChartError> {
    let finished =
        |name: &str| data.numbers.get(name).is_some_and(|column| column.iter().flatten().next().is_some());
    let default = ["fct_s", "completion_s"].into_iter().find(|name| finished(name)).unwrap_or("goodput_bps");
    let (column, kind, element) = data.find(wish.y.as_deref().unwrap_or(default))?;
    let rows: Vec<_> = rows_of(data, &column, kind, element.as_deref()).collect();
    if rows.is_empty() {
        return Err(nothing(
            format!("`{column}` was measured nowhere"),
            "see what else y can be in docs/figures.md",
        ));
    }
    let lines = Lines::new(data, wish, None, &rows)?;
    let mut found: Vec<(String, Option<String>, Vec<f64>)> = Vec::new();
    for &(place, row, value) in &rows {
        let (name, law) = lines.of(data, place, row);
        match found.iter_mut().find(|(other, ..)| *other == name) {
            Some((.., values)) => values.push(value),
            None => found.push((name, law, vec![value])),
        }
    }
    let values = || found.iter().flat_map(|(.., values)| values).copied();
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let (x_label, factor) = label_of(&column, high);
    let (fewest, most) = found
        .iter()
        .fold((usize::MAX, 0), |(few, many), (.., values)| (few.min(values.len()), many.max(values.len())));
    let what = if kind == Some("flow") { "flows" } else { "values" };
    let curves = found
        .into_iter()
        .map(|(name, law, mut values)| {
            values.sort_by(f64::total_cmp);
            let count = values.len() as f64;
            let mut points = Vec::with_capacity(2 * values.len());
            for (place, value) in values.iter().enumerate() {
                // A step up at each value, and none between.
                points.push((value / factor, place as f64 / count));
                points.push((value / factor, (place + 1) as f64 / count));
            }
            Curve { name, law, mark: Mark::Line, samples: vec![values.len()], points, spread: Vec::new() }
        })
        .collect();
    let count = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    Ok(Picture {
        x_label,
        is_logarithmic: low > 0.0 && high / low >= 50.0,
        categories: Vec::new(),
        panels: vec![Panel { label: format!("share of {what} (0 to 1)"), is_logarithmic: false, curves }],
        note: format!("cumulative distribution, n = {count} {what} a line"),
    })
}

/// Sizes are classes of their own if they are few, else thirds of decades.
fn fct(data: &Data, wish: &Wish) -> Result<Picture, ChartError> {
    const CLASSES: usize = 12;
    let default = ["fct_s", "completion_s"].into_iter().find(|name| data.numbers.contains_key(*name));
    let (column, kind, element) = data.find(wish.y.as_deref().or(default).unwrap_or("fct_s"))?;
    let sizes = wish.x.as_deref().unwrap_or("size_bytes");
    let Some(size) = data.numbers.get(sizes) else {
        let text = format!("flows have no `{sizes}`");
        return Err(nothing(text, "flow completion times by size want flows with a size"));
    };
    let rows: Vec<_> = rows_of(data, &column, kind, element.as_deref())
        .filter(|(place, ..)| size[*place].is_some_and(|size| size > 0.0))
        .collect();
    if rows.is_empty() {
        return Err(nothing(
            "no flow with a size was complete",
            "give flows a size and the run the time for it",
        ));
    }
    let lines = Lines::new(data, wish, None, &rows)?;
    let mut distinct: Vec<f64> = rows.iter().filter_map(|(place, ..)| size[*place]).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let is_binned = distinct.len() > CLASSES;
    let class = |bytes: f64| if is_binned { (log10(bytes) * 3.0).floor() as i64 } else { bytes as i64 };
    type Classes = BTreeMap<i64, Vec<(f64, f64)>>;
    let mut found: Vec<(String, Option<String>, Classes)> = Vec::new();
    for &(place, row, value) in &rows {
        let (name, law) = lines.of(data, place, row);
        let Some(bytes) = size[place] else { continue };
        let line = match found.iter().position(|(other, ..)| *other == name) {
            Some(line) => line,
            None => {
                found.push((name, law, Classes::new()));
                found.len() - 1
            }
        };
        found[line].2.entry(class(bytes)).or_default().push((bytes, value));
    }
    let highest = rows.iter().map(|(.., value)| *value).fold(0.0, f64::max);
    let (label, factor) = label_of(&column, highest);
    let (x_label, x_factor) = label_of(sizes, distinct.last().copied().unwrap_or(0.0));
    let x_label = x_label.replace("size (", "flow size (");
    let mut curves = Vec::new();
    for (percent, words) in [(50, "median"), (99, "99th percentile")] {
        for (name, law, classes) in &found {
            let points = classes.values().map(|flows| {
                // The mean of the sizes of a class, on a logarithmic axis.
                let x = flows.iter().map(|(bytes, _)| log10(*bytes)).sum::<f64>() / flows.len() as f64;
                let mut values: Vec<f64> = flows.iter().map(|(_, value)| *value).collect();
                values.sort_by(f64::total_cmp);
                let rank = (values.len() * percent).div_ceil(100).max(1) - 1;
                (power_of_ten(x) / x_factor, values[rank] / factor)
            });
            let name = if name.is_empty() { words.to_owned() } else { format!("{name}, {words}") };
            curves.push(Curve {
                name,
                law: law.clone(),
                mark: Mark::Measured,
                points: points.collect(),
                spread: Vec::new(),
                samples: classes.values().map(Vec::len).collect(),
            });
        }
    }
    let classes = if is_binned { "thirds of decades of the size" } else { "each size" };
    let note = format!("median and 99th percentile (nearest rank) of {classes}, n = {} flows", rows.len());
    let panel = Panel { label, is_logarithmic: true, curves };
    Ok(Picture { x_label, is_logarithmic: true, categories: Vec::new(), panels: vec![panel], note })
}

/// What runs show over time: throughput, queueing delay and utilisation, or what was asked for.
///
/// # Errors
/// If a run can not be read, or has no such series.
pub fn over_time(runs: &[RunFolder], wish: &Wish) -> Result<Picture, ChartError> {
    let mut panels: Vec<Panel> = Vec::new();
    let wanted: Vec<Vec<&str>> = match (wish.kind, wish.y.as_deref()) {
        (_, Some(y)) => vec![vec![y]],
        (Some(Kind::Fairness), None) => vec![vec!["jain"]],
        (Some(Kind::Delay), None) => vec![vec!["queue_delay_ms", "queue_packets"]],
        _ => vec![
            vec!["received_bps", "throughput_bps"],
            vec!["queue_delay_ms", "queue_packets"],
            vec!["utilization"],
        ],
    };
    let names = labels(runs);
    let mut known: Vec<String> = vec!["jain".to_owned()];
    let mut found: Vec<Vec<(String, Vec<Curve>)>> = vec![Vec::new(); wanted.len()];
    for (run, label) in runs.iter().zip(&names) {
        let recording = Recording::read(run)?;
        for chart in recording.charts() {
            if !known.contains(&chart.metric) {
                known.push(chart.metric.clone());
            }
        }
        let label = if runs.len() > 1 { label.as_str() } else { "" };
        for (names, found) in wanted.iter().zip(&mut found) {
            let of = |name: &&str| {
                curves_of(&recording, run, name, label).map(|curves| ((*name).to_owned(), curves))
            };
            found.extend(names.iter().find_map(of));
        }
    }
    for (names, found) in wanted.iter().zip(found) {
        let Some((metric, _)) = found.first() else {
            if wish.y.is_none() {
                continue;
            }
            let wanted = names.first().copied().unwrap_or_default();
            let allowed = choices(wanted, known.iter().map(String::as_str)).into();
            return Err(ChartError::Unknown {
                what: "no run has a series",
                found: wanted.to_owned(),
                allowed,
            });
        };
        let metric = metric.clone();
        let mut curves: Vec<Curve> = found.into_iter().flat_map(|(_, curves)| curves).collect();
        let data = curves.iter().filter(|curve| !matches!(curve.mark, Mark::Bound(_)));
        let highest = data.flat_map(|curve| &curve.points).map(|(_, y)| y.abs()).filter(|y| y.is_finite());
        let (label, factor) = label_of(&metric, highest.fold(0.0, f64::max));
        for curve in &mut curves {
            curve.points.iter_mut().for_each(|(_, y)| *y /= factor);
            curve
                .spread
                .iter_mut()
                .for_each(|(_, low, high)| (*low, *high) = (*low / factor, *high / factor));
        }
        panels.push(Panel { label, is_logarithmic: false, curves });
    }
    if panels.is_empty() {
        return Err(nothing(
            "the run has no series to draw",
            "give it a duration and measure.every that leave bins",
        ));
    }
    let has_spread = panels.iter().flat_map(|panel| &panel.curves).any(|curve| !curve.spread.is_empty());
    let note =
        if has_spread { "lines: median of the flows of a group, area: 5 % to 95 % of them" } else { "" };
    Ok(Picture {
        x_label: "time (s)".into(),
        is_logarithmic: false,
        categories: Vec::new(),
        panels,
        note: note.into(),
    })
}

/// More flows of a group are thin lines of one look.
const APART_MAX: usize = 3;

/// The curves of one series of a run; `None`: it has none.
fn curves_of(recording: &Recording, run: &RunFolder, metric: &str, label: &str) -> Option<Vec<Curve>> {
    let times = recording.times();
    let groups = recording.groups();
    let flows = recording.flows();
    let flow_laws = run.scenario().flow_laws();
    let link_laws = run.scenario().link_laws();
    let points = |values: &[f32]| -> Vec<(f64, f64)> {
        times.iter().copied().zip(values.iter().map(|value| f64::from(*value))).collect()
    };
    let named = |name: &str, law: Option<&str>| {
        let mut words: Vec<&str> = vec![label, name, law.unwrap_or("")];
        words.retain(|word| !word.is_empty());
        words.dedup();
        // A label that is the law says it.
        if words.len() > 1 && words.first() == words.last() {
            words.pop();
        }
        words.join(", ")
    };
    let line = |name: String, law: Option<&str>, mark, points| Curve {
        name,
        law: law.map(str::to_owned),
        mark,
        points,
        spread: Vec::new(),
        samples: Vec::new(),
    };
    if metric == "jain" {
        let chart = recording
            .charts()
            .iter()
            .find(|chart| chart.of == Of::Flows && chart.metric == "received_bps")?;
        let fair = |at: usize| -> f64 {
            let values: Vec<f64> = chart
                .series
                .iter()
                .filter_map(|series| series.get(at).map(|value| f64::from(*value)))
                .filter(|value| value.is_finite())
                .collect();
            jain(&values).unwrap_or(f64::NAN)
        };
        let law = flow_laws.first().copied().flatten();
        let law = law.filter(|law| flow_laws.iter().all(|other| *other == Some(*law)));
        let values = times.iter().enumerate().map(|(at, time)| (*time, fair(at))).collect();
        return Some(vec![line(named("all flows", law), law, Mark::Line, values)]);
    }
    let mut curves = Vec::new();
    for chart in recording.charts().iter().filter(|chart| chart.metric == metric) {
        if chart.of == Of::Flows {
            for report::Spread { group, quantiles } in &chart.spreads {
                let (name, count) = &groups[*group];
                let law = flow_laws.get(*group).copied().flatten();
                let [low, middle, high] = quantiles.each_ref().map(|values| points(values));
                let mut curve = line(format!("{}: {count} flows", named(name, law)), law, Mark::Line, middle);
                curve.spread = low.iter().zip(&high).map(|(low, high)| (low.0, low.1, high.1)).collect();
                curve.samples = vec![*count];
                curves.push(curve);
            }
            for place in recording.flows_drawn() {
                let (group, flow) = flows[place];
                let (name, count) = &groups[group];
                let has_spread = chart.spreads.iter().any(|spread| spread.group == group);
                if chart.series[place].is_empty() || has_spread {
                    continue;
                }
                let law = flow_laws.get(group).copied().flatten();
                let (name, mark) = match *count {
                    1 => (named(name, law), Mark::Line),
                    ..=APART_MAX => (named(&format!("{name} {}", flow + 1), law), Mark::Line),
                    _ => (format!("{}: {count} flows", named(name, law)), Mark::Thin),
                };
                curves.push(line(name, law, mark, points(&chart.series[place])));
            }
        } else {
            let names = recording.link_names();
            for place in recording.links_drawn() {
                let name = &names[place];
                if chart.series[place].is_empty() || name.ends_with(".reverse") {
                    continue;
                }
                let model = run.scenario().base_model().links.iter().position(|link| link.name == *name);
                let law = model.and_then(|model| link_laws.get(model).copied().flatten());
                curves.push(line(named(name, law), law, Mark::Line, points(&chart.series[place])));
            }
        }
    }
    (!curves.is_empty()).then_some(curves)
}

/// What `[figure]` shows of points, as for papers.
pub fn of_figure(figure: Figure<'_>, points: &[PointResult]) -> Picture {
    let curves = figure.curves(points);
    let is_time = figure.is_over_time();
    let mut panels: Vec<Panel> = Vec::new();
    for curve in curves {
        let label = unit_in_brackets(&curve.y);
        let drawn = Curve {
            name: curve.name,
            law: None,
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
    let notes: Vec<String> =
        panels.iter().map(|panel| intervals(panel, "seeds")).filter(|note| !note.is_empty()).collect();
    let x_label = unit_in_brackets(figure.x_label());
    Picture {
        x_label,
        is_logarithmic: figure.is_logarithmic(),
        categories: Vec::new(),
        panels,
        note: notes.into_iter().next().unwrap_or_default(),
    }
}

/// The points of a figure in the folder of a run.
///
/// # Errors
/// If its tables can not be read.
pub fn point_of_run(run: &RunFolder) -> Result<PointResult, ChartError> {
    let scenario = run.scenario();
    let model = scenario.base_model();
    let mut outcome = Outcome { complete: true, ..Outcome::default() };
    for group in &model.groups {
        let flows = run.summary()["flows"][&group.name].as_array();
        let number = |flow: &Json, key: &str| flow[key].as_f64();
        let each = |flow: &Json| FlowOutcome {
            start_s: number(flow, "start_s").unwrap_or(0.0),
            completion_s: number(flow, "completion_s"),
            ..FlowOutcome::default()
        };
        outcome.groups.push(flows.into_iter().flatten().map(each).collect());
    }
    let place = |row: &SeriesRow<'_>| -> Option<Element> {
        let group = || model.groups.iter().position(|group| group.name == row.element);
        let link = || model.links.iter().position(|link| link.name == row.element);
        match row.index {
            Some(flow) => Some(Element::Flow(u32::try_from(group()?).ok()?, flow)),
            None => Some(Element::Link(u32::try_from(link()?).ok()?)),
        }
    };
    let mut samples: Vec<Sample> = Vec::new();
    let mut take = |row: SeriesRow<'_>| {
        let (Some(element), Some(metric)) = (place(&row), series_name(row.metric)) else { return };
        samples.push(Sample { at: (row.t_s * 1e12).round() as u64, element, metric, value: row.value });
    };
    run.flow_series(&mut take)?;
    run.link_series(&mut take)?;
    outcome.series = samples;
    let series = Series::new(&outcome, model);
    let curves = scenario.curves().map(|metric| (metric.text().to_owned(), metric.curves(&series))).collect();
    let readings = scenario
        .metrics()
        .map(|metric| (metric.text().to_owned(), metric.read(run.summary(), Some(&series))))
        .collect();
    Ok(PointResult {
        index: 0,
        run: run.name(),
        settings: Vec::new(),
        result: run.summary().clone(),
        readings,
        curves,
        laws: scenario.laws_by_name(),
    })
}

/// Readings of `[figure]` at each point, from the table of its sweep.
///
/// # Errors
/// If the table has not what the figure asks for.
pub fn points_of_data(
    data: &Data,
    settings: &[Vec<(String, String)>],
    figure: Figure<'_>,
) -> Result<Vec<PointResult>, ChartError> {
    if figure.is_over_time() {
        return Err(nothing(
            "`[figure]` is over time, and a sweep keeps no series",
            "`sweep --folders`, and plot the folder of a run",
        ));
    }
    let mut points: Vec<PointResult> = settings
        .iter()
        .enumerate()
        .map(|(index, settings)| PointResult {
            index,
            run: String::new(),
            settings: settings.clone(),
            result: Json::Null,
            readings: Vec::new(),
            curves: Vec::new(),
            laws: Default::default(),
        })
        .collect();
    for metric in figure.metrics() {
        let text = metric.text();
        // What is no plain path has a column of its own.
        let (column, kind, element) = data.find(text)?;
        let mut values: BTreeMap<usize, f64> = BTreeMap::new();
        for (_, row, value) in rows_of(data, &column, kind, element.as_deref()) {
            values.entry(row.point).or_insert(value);
        }
        for point in &mut points {
            let reading = values.get(&point.index).map_or(Reading::Nothing, |value| Reading::Number(*value));
            point.readings.push((text.to_owned(), reading));
        }
    }
    Ok(points)
}

/// For classes of sizes.
#[expect(clippy::disallowed_methods, reason = "a picture is no result")]
fn log10(x: f64) -> f64 {
    x.log10()
}

/// The other way round.
#[expect(clippy::disallowed_methods, reason = "a picture is no result")]
fn power_of_ten(x: f64) -> f64 {
    10f64.powf(x)
}

/// Every name that y can have: values of flows, links and groups.
pub(crate) fn quantities() -> Vec<String> {
    let mut names = fields("flows", false);
    names.extend(fields("links", false));
    names.extend(fields("links", true));
    names.extend(fields("flows", true));
    names.extend(["jain", "flows", "goodput_sum_bps"].map(str::to_owned));
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests;
