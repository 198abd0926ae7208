//! What many points show: means over an axis of a sweep, distributions, flow completion times by size.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::label::{is_share, label_of};
use super::{ChartError, Curve, Mark, Panel, Picture, labels, nothing, range, repetitions};
use crate::judging::figure::{Figure, Kind, Wish};
use crate::judging::metric::{Elements, Metric, Percent, Reading};
use crate::judging::observation::PointResult;
use crate::judging::seeds::{Estimate, SEED, UnusedSeeds};
use crate::results::folder::RunFolder;
use crate::results::origin::{Cell, axis};
use crate::results::table;
use crate::results::table::{Table, TableError};
use crate::showing::style;
use congestlab_text::cells::plain;
use congestlab_text::diagnostic::choices;
use congestlab_text::tree::NONE;

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
    /// The points at which seeds changed nothing.
    unused: Option<UnusedSeeds>,
}

impl Data {
    /// Of runs: each is a point, and its settings are axes.
    pub fn of_runs(runs: &[RunFolder]) -> Self {
        let mut data = Self {
            axes: Vec::new(),
            rows: Vec::new(),
            numbers: BTreeMap::new(),
            texts: BTreeMap::new(),
            unused: None,
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
            data.add(row("run", "", None), summary, label);
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
            axes,
            rows: rows.collect(),
            numbers: BTreeMap::new(),
            texts: BTreeMap::from([("label".to_owned(), labels.map_err(fault)?)]),
            unused: table.unused_seeds().map_err(fault)?,
        };
        for column in table.columns().iter().filter(|name| *name == "seed" || !table::says_whose(name)) {
            let numbers = table.numbers(column).map_err(fault)?;
            if numbers.iter().any(Option::is_some) {
                data.numbers.insert(column.clone(), numbers);
            } else if data.axes.iter().any(|(_, axis, _)| axis == column) {
                data.texts.insert(column.clone(), table.texts(column).map_err(fault)?);
            }
        }
        data.leave_out_repeated();
        Ok(data)
    }

    /// Leaves out points that have the same values on all axes as one before: a run counts once, however often and in
    /// whichever unit it is asked for.
    fn leave_out_repeated(&mut self) {
        let mut first: BTreeMap<Vec<Option<String>>, usize> = BTreeMap::new();
        let is_kept: Vec<bool> = (0..self.rows.len())
            .map(|place| {
                let values = self.axes.iter().map(|(_, column, _)| self.text(column, place)).collect();
                *first.entry(values).or_insert(self.rows[place].point) == self.rows[place].point
            })
            .collect();
        fn keep<T>(list: &mut Vec<T>, is_kept: &[bool]) {
            let mut is_kept = is_kept.iter();
            list.retain(|_| is_kept.next() == Some(&true));
        }
        if is_kept.contains(&false) {
            keep(&mut self.rows, &is_kept);
            self.numbers.values_mut().for_each(|column| keep(column, &is_kept));
            self.texts.values_mut().for_each(|column| keep(column, &is_kept));
        }
    }

    /// Of what was read at the points of a sweep: of each its settings, pairs of a path and a TOML value, and a reading of
    /// each metric; and the points at which seeds changed nothing. A list counts as the mean of its numbers.
    pub fn of_readings(
        settings: &[Vec<(String, String)>],
        metrics: &[String],
        read: &[Vec<Reading>],
        unused: Option<UnusedSeeds>,
    ) -> Self {
        let mut data = Self {
            axes: Vec::new(),
            rows: (0..settings.len())
                .map(|point| Row { point, kind: "run".into(), ..Row::default() })
                .collect(),
            numbers: BTreeMap::new(),
            texts: BTreeMap::new(),
            unused,
        };
        let paths = settings.first().into_iter().flatten().map(|(path, _)| path);
        for (place, path) in paths.enumerate() {
            let values =
                || settings.iter().map(|settings| settings.get(place).map(|(_, value)| value.as_str()));
            let (column, cells) = axis(path, values());
            let mut distinct: Vec<String> = values().flatten().map(str::to_owned).collect();
            distinct.sort_unstable();
            distinct.dedup();
            let numbers: Vec<Option<f64>> =
                cells.iter().map(|cell| cell.as_ref().and_then(Cell::number)).collect();
            if numbers.iter().any(Option::is_some) {
                data.numbers.insert(column.clone(), numbers);
            } else {
                data.texts
                    .insert(column.clone(), cells.iter().map(|cell| Some(cell.as_ref()?.text())).collect());
            }
            data.axes.push((path.clone(), column, distinct));
        }
        for (place, metric) in metrics.iter().enumerate() {
            let numbers = read.iter().map(|readings| readings.get(place).and_then(Reading::mean));
            data.numbers.insert(metric.clone(), numbers.collect());
        }
        data.leave_out_repeated();
        data
    }

    /// Something else than the seed has two values: there is something to lay out over an axis.
    pub fn has_axis(&self) -> bool {
        self.axes.iter().any(|(path, _, values)| path != SEED && values.len() > 1)
    }

    fn add(&mut self, row: Row, values: &Json, label: &str) {
        let before = self.rows.len();
        let is_below = row.kind != "run";
        for (key, value) in values.as_object().into_iter().flatten() {
            let below = value.as_object().filter(|_| is_below).into_iter().flatten();
            let below = below.map(|(below, value)| (format!("{key}.{below}"), value));
            for (key, value) in below.chain([(key.clone(), value)]) {
                let Some(number) = value.as_f64() else { continue };
                let column = self.numbers.entry(key).or_default();
                column.resize(before, None);
                column.push(Some(number));
            }
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
        names.filter(move |name| !table::says_whose(name) && !is_axis(name))
    }

    /// Columns with something to be drawn, of a row of that kind.
    fn kind_of(&self, column: &str) -> Option<&'static str> {
        let values = self.numbers.get(column).map_or(&[][..], Vec::as_slice);
        let has =
            |kind: &str| self.rows.iter().zip(values).any(|(row, value)| row.kind == kind && value.is_some());
        ["flow", "group", "link", "run"].into_iter().find(|kind| has(kind))
    }

    /// Names of links and of groups, and how many flows these have.
    fn elements(&self) -> Elements {
        let mut elements = Elements::default();
        let mut counts: BTreeMap<(usize, &str), u64> = BTreeMap::new();
        for row in &self.rows {
            let list = match row.kind.as_str() {
                "link" => &mut elements.links,
                "flow" => {
                    *counts.entry((row.point, &row.element)).or_default() += 1;
                    &mut elements.flows
                }
                _ => continue,
            };
            if !list.iter().any(|(name, _)| *name == row.element) {
                list.push((row.element.clone(), 1));
            }
        }
        for (name, count) in &mut elements.flows {
            let of_name = counts.iter().filter(|((_, other), _)| other == name);
            *count = of_name.map(|(_, count)| *count).max().unwrap_or(0);
        }
        elements
    }

    /// The numbers of each point as its result has them.
    fn results(&self) -> BTreeMap<usize, Json> {
        let mut results: BTreeMap<usize, Json> = BTreeMap::new();
        for (place, row) in self.rows.iter().enumerate() {
            let mut values = Map::new();
            // What was asked has columns, too.
            let is_value = |column: &&String| !column.contains(['(', ' ', '[']);
            for (column, numbers) in self.numbers.iter().filter(|(column, _)| is_value(column)) {
                let Some(number) = numbers.get(place).copied().flatten() else { continue };
                // `drops_by_reason.queue-full` is in an object of its own.
                match column.split_once('.') {
                    Some((key, below)) => {
                        values.entry(key).or_insert_with(|| json!({}))[below] = number.into()
                    }
                    None => values.insert(column.clone(), number.into()).map_or((), |_| ()),
                }
            }
            let result = results.entry(row.point).or_insert_with(|| json!({}));
            match row.kind.as_str() {
                "run" => values.into_iter().for_each(|(key, value)| {
                    // A table has it as 0 or 1.
                    let is_switch = key == "seed_used";
                    result[key] = if is_switch { (value != 0.0).into() } else { value };
                }),
                "link" => result["links"][&row.element] = values.into(),
                "group" => result["jain"][&row.element] = values.remove("jain").unwrap_or_default(),
                _ => match &mut result["flows"][&row.element] {
                    Json::Array(flows) => flows.push(values.into()),
                    none => *none = json!([values]),
                },
            }
        }
        results
    }

    /// What a metric gives at each point: the number, and the first row of whom it is.
    fn evaluate(&self, metric: &Metric) -> Vec<(usize, &Row, f64)> {
        let read = self
            .results()
            .into_iter()
            .filter_map(|(point, result)| Some((point, metric.read(&result, None).number()?)));
        let numbers: BTreeMap<usize, f64> = read.collect();
        let named: Vec<(&str, &str)> = metric.reads().map(|(table, name, _)| (table, name)).collect();
        let is_of = |row: &Row| {
            named.iter().all(|(table, name)| {
                row.element == *name && row.kind == if *table == "links" { "link" } else { "flow" }
            })
        };
        let mut found: BTreeMap<usize, (bool, usize)> = BTreeMap::new();
        for (place, row) in self.rows.iter().enumerate() {
            let is_own = is_of(row);
            let first = found.entry(row.point).or_insert((is_own, place));
            if is_own && !first.0 {
                *first = (true, place);
            }
        }
        let rows = numbers.into_iter().filter_map(|(point, number)| {
            let (_, place) = found.get(&point)?;
            Some((*place, self.rows.get(*place)?, number))
        });
        rows.collect()
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
        let text = self.texts.get(column).and_then(|column| column.get(row)?.as_deref());
        text.map(plain).or_else(number)
    }
}

/// Numbers of one line at one place of the axis, by point.
#[derive(Default)]
struct Cells {
    by_point: BTreeMap<usize, Vec<f64>>,
    /// What the points have on the axes that are not drawn.
    others: BTreeSet<Vec<Option<String>>>,
}

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
        Kind::Cdf => cdf(data, wish).map(|picture| pooled(data, picture)),
        Kind::Fct => fct(data, wish).map(|picture| pooled(data, picture)),
    }
}

/// Adds that seeds changed nothing: the flows of equal runs are counted once for each seed.
fn pooled(data: &Data, picture: Picture) -> Picture {
    let note = data.unused.map_or(picture.note.clone(), |unused| format!("{}; {unused}", picture.note));
    Picture { note, ..picture }
}

/// The rows that a quantity is drawn of.
struct Found<'a> {
    column: String,
    kind: Option<&'static str>,
    /// Place, row and value.
    rows: Vec<(usize, &'a Row, f64)>,
}

/// Finds what `y` names, a column or a metric: of links the directions that somebody described.
fn found<'a>(data: &'a Data, y: &str) -> Result<Found<'a>, ChartError> {
    // As the field calls it, and metrics.
    let y = if y == "fct_s" { "completion_s" } else { y };
    let rows_of = |column: &str, kind: Option<&'static str>, element: Option<&str>| {
        let values = data.numbers.get(column).map_or(&[][..], Vec::as_slice);
        let rows = data.rows.iter().zip(values).enumerate();
        let rows = rows.filter_map(|(place, (row, value))| {
            let is_of = kind.is_none_or(|kind| row.kind == kind)
                && match element {
                    Some(element) => row.element == element,
                    None => !(row.kind == "link" && row.element.ends_with(".reverse")),
                };
            value.filter(|value| is_of && value.is_finite()).map(|value| (place, row, value))
        });
        Found { column: column.to_owned(), kind, rows: rows.collect() }
    };
    if data.quantities().any(|name| name == y) {
        return Ok(rows_of(y, data.kind_of(y), None));
    }
    if !y.contains(['.', '(']) {
        let allowed = choices(y, data.quantities()).into();
        return Err(ChartError::Unknown {
            what: "there is nothing to draw by the name of y,",
            found: y.to_owned(),
            allowed,
        });
    }
    let refuse = |text: String, help: String| ChartError::Nothing { text: format!("y: {text}"), help };
    let help = || "see docs/scenario.md for what metrics there are".to_owned();
    let mut metric = Metric::parse(y).map_err(|error| refuse(error, help()))?;
    if metric.needs_series() {
        let text = format!("`{y}` asks for what was when, and no table has series");
        return Err(refuse(
            text,
            "as `y` of [figure], or in a claim, it is asked when the sweep runs".into(),
        ));
    }
    let mut refused = None;
    metric.hold(&data.elements(), &mut |message, help| {
        refused.get_or_insert((message, help));
    });
    if let Some((message, help)) = refused {
        return Err(refuse(message, help));
    }
    if let Some((table, name, value)) = metric.each()
        && data.quantities().any(|name| name == value)
    {
        let kind = match table {
            "links" => "link",
            "jain" => "group",
            _ => "flow",
        };
        return Ok(rows_of(value, Some(kind), name));
    }
    Ok(Found { column: y.to_owned(), kind: None, rows: data.evaluate(&metric) })
}

/// As [`found`], of something.
fn measured<'a>(data: &'a Data, y: &str) -> Result<Found<'a>, ChartError> {
    let found = found(data, y)?;
    if found.rows.is_empty() {
        return Err(nothing(
            format!("`{}` was measured nowhere", found.column),
            "see what else y can be in docs/figures.md",
        ));
    }
    Ok(found)
}

/// Says to which line a row belongs, and of which law that is.
struct Lines {
    /// Columns whose values make lines.
    columns: Vec<String>,
    by_law: bool,
    by_element: bool,
    /// Axes of laws, whose values are laws.
    laws: Vec<String>,
    /// These are laws of flows, and not of links.
    of_flows: bool,
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
        let of_flows = !laws.is_empty();
        if !of_flows {
            let of_links = data.axes.iter().filter(|(path, ..)| is_law_axis(path));
            laws = of_links.map(|(_, column, _)| column.clone()).collect();
        }
        let mut lines = Self { columns: Vec::new(), by_law: false, by_element: false, laws, of_flows };
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
                let others = data.axes.iter().filter(|(path, column, _)| {
                    let is_x = Some(column.as_str()) == x;
                    !is_x && path != SEED && (is_law_axis(path) || !follows(data, column, x, rows))
                });
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
        // Flows know their law; a link is drawn in that of the flows that are compared. Where laws of links are, the one
        // that is swept may be another link's.
        let own = row.law.clone();
        let law = match row.kind.as_str() {
            "link" if self.of_flows => swept.or(own).or_else(|| Some(NONE.to_owned())),
            "link" => own.or_else(|| Some(NONE.to_owned())),
            _ => own.or(swept),
        };
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
            let is_law = self.laws.contains(column) || column.ends_with(".law");
            if is_law
                && (value == NONE || self.columns.iter().filter(|other| other.ends_with(".law")).count() > 1)
            {
                // Which law it is of is not told by the law itself.
                add(format!(
                    "{}: {value}",
                    column.trim_end_matches(".law").rsplit('.').next().unwrap_or_default()
                ));
                continue;
            }
            if is_law || column == "label" {
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
    let Found { column, kind, rows } = measured(data, y)?;
    let axis = match wish.x.as_deref() {
        Some(x) => data.axis("there is no axis", x)?,
        None => default_axis(data)?,
    };
    let lines = Lines::new(data, wish, Some(&axis.1), &rows)?;
    let laid = Laid::out(data, &rows, &axis.1, &lines);
    let (x_label, x_factor) = laid.x_label(&axis.1);
    let (mixed, categories) = (laid.mixed(), laid.categories.clone());
    let means = laid.means(x_factor);
    let of_all = || means.iter().flat_map(|(_, _, at)| at);
    let highest = of_all().map(|(_, estimate, _)| estimate.mean.abs()).fold(0.0, f64::max);
    let (label, factor) = label_of(&column, highest);
    let curves: Vec<Curve> = means
        .into_iter()
        .map(|(name, law, at)| Curve {
            name,
            law,
            mark: Mark::Measured,
            points: at.iter().map(|(x, estimate, _)| (*x, estimate.mean / factor)).collect(),
            spread: spread(&at, factor, is_share(&label)),
            samples: at.iter().map(|(.., count)| *count).collect(),
        })
        .collect();
    let panel = Panel { label, is_logarithmic: false, curves };
    let has_seeds = data.axes.iter().any(|(path, ..)| path == SEED);
    let several = kind == Some("flow") && has_several(&rows);
    let runs = repetitions(&panel, &mixed, if has_seeds { "seeds" } else { "runs" }, data.unused);
    let note = note_of(&runs, several);
    let xs = || panel.curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| *x);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let is_logarithmic = categories.is_empty() && low > 0.0 && high / low >= 50.0;
    Ok(Picture { x_label, is_logarithmic, categories, panels: vec![panel], note })
}

/// Some group has several flows in a run.
fn has_several(rows: &[(usize, &Row, f64)]) -> bool {
    let first = rows.first().map(|(_, row, _)| (row.point, row.element.as_str()));
    rows.iter().filter(|(_, row, _)| Some((row.point, row.element.as_str())) == first).count() > 1
}

/// What the points of a panel are.
fn note_of(runs: &str, are_means_of_flows: bool) -> String {
    let flows = if are_means_of_flows { "each run is the mean of its flows" } else { "" };
    let said: Vec<&str> = [runs, flows].into_iter().filter(|words| !words.is_empty()).collect();
    said.join("; ")
}

/// Rows laid out over an axis, line by line.
struct Laid<'a> {
    lines: Vec<Drawn>,
    /// Names of the places 0, 1, ... of an axis without numbers, in the order of the rows.
    categories: Vec<String>,
    /// Paths of the axes that vary beside it.
    others: Vec<&'a str>,
}

impl<'a> Laid<'a> {
    fn out(data: &'a Data, rows: &[(usize, &Row, f64)], x: &str, lines: &Lines) -> Self {
        let number =
            |place: usize| data.numbers.get(x).and_then(|column| column.get(place).copied().flatten());
        // Numbers if every row has one.
        let has_numbers = rows.iter().all(|(place, ..)| number(*place).is_some());
        let is_beside = |(path, column, values): &&(String, String, Vec<String>)| {
            path != SEED && *column != x && values.len() > 1
        };
        let others: Vec<_> = data.axes.iter().filter(is_beside).collect();
        let mut laid = Self {
            lines: Vec::new(),
            categories: Vec::new(),
            others: others.iter().map(|(path, ..)| path.as_str()).collect(),
        };
        for &(place, row, value) in rows {
            let at = match number(place).filter(|_| has_numbers) {
                Some(number) => number,
                None => match data.text(x, place) {
                    Some(text) => {
                        position(&mut laid.categories, |other| *other == text, || text.clone()) as f64
                    }
                    None => continue,
                },
            };
            let (name, law) = lines.of(data, place, row);
            let line = position(
                &mut laid.lines,
                |line| line.name == name,
                || Drawn { name: name.clone(), law, at: Vec::new() },
            );
            let places = &mut laid.lines[line].at;
            let cell = position(places, |(other, _)| *other == at, || (at, Cells::default()));
            let cell = &mut places[cell].1;
            cell.by_point.entry(row.point).or_default().push(value);
            cell.others.insert(others.iter().map(|(_, column, _)| data.text(column, place)).collect());
        }
        laid
    }

    fn cells(&self) -> impl Iterator<Item = &(f64, Cells)> {
        self.lines.iter().flat_map(|line| &line.at)
    }

    /// The axes beside it of which some place has several values.
    fn mixed(&self) -> Vec<&'a str> {
        let differs = |cell: &Cells, axis: usize| {
            let mut values = cell.others.iter().map(|values| &values[axis]);
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let others = self.others.iter().enumerate();
        let mixed = others.filter(|(axis, _)| self.cells().any(|(_, cell)| differs(cell, *axis)));
        mixed.map(|(_, path)| *path).collect()
    }

    /// Quantity and unit of the axis, and what its values are divided by.
    fn x_label(&self, x: &str) -> (String, f64) {
        if self.categories.is_empty() {
            return label_of(x, self.cells().map(|(at, _)| at.abs()).fold(0.0, f64::max));
        }
        match x {
            "label" => ("run (name)".to_owned(), 1.0),
            x => (label_of(x, 0.0).0.replace("(1)", "(name)"), 1.0),
        }
    }

    /// Of each line the means over the points of each place, in the order of the axis.
    fn means(self, x_factor: f64) -> Vec<Means> {
        let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let estimate = |cells: &Cells| {
            let values: Vec<f64> = cells.by_point.values().map(mean).collect();
            let estimate = Estimate::of(&values)?;
            let half = if cells.others.len() > 1 { 0.0 } else { estimate.half };
            Some((Estimate { half, ..estimate }, values.len()))
        };
        let lines = self.lines.into_iter().map(|line| {
            let of = |(at, cells): &(f64, Cells)| {
                estimate(cells).map(|(estimate, count)| (at / x_factor, estimate, count))
            };
            let mut at: Vec<(f64, Estimate, usize)> = line.at.iter().filter_map(of).collect();
            at.sort_by(|a, b| a.0.total_cmp(&b.0));
            (line.name, line.law, at)
        });
        lines.collect()
    }
}

/// Where something is in a list, at the end of which it is put if it is not there.
fn position<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    list.iter().position(is_it).unwrap_or_else(|| {
        list.push(new());
        list.len() - 1
    })
}

/// Intervals where there are any. Student's t knows no bound: what is never negative does not reach below 0, and what is a
/// share of 1 not above it.
fn spread(at: &[(f64, Estimate, usize)], factor: f64, is_share: bool) -> Vec<(f64, f64, f64)> {
    if at.iter().all(|(_, estimate, _)| estimate.half == 0.0) {
        return Vec::new();
    }
    let is_positive = at.iter().all(|(_, estimate, _)| estimate.mean >= 0.0);
    let low = |low: f64| if is_positive { low.max(0.0) } else { low };
    let high = |estimate: &Estimate| {
        if is_share { estimate.high().min(1.0).max(estimate.mean) } else { estimate.high() }
    };
    let each = |(x, estimate, _): &(f64, Estimate, usize)| {
        (*x, low(estimate.low()) / factor, high(estimate) / factor)
    };
    at.iter().map(each).collect()
}

/// Whether an axis goes along with that of x, as one does that is zipped with it: each value of x has one of its own. It says
/// nothing that x does not.
fn follows(data: &Data, column: &str, x: Option<&str>, rows: &[(usize, &Row, f64)]) -> bool {
    let Some(x) = x else { return false };
    let mut pairs: Vec<(Option<String>, Option<String>)> =
        rows.iter().map(|(place, ..)| (data.text(x, *place), data.text(column, *place))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let has_several = pairs.iter().any(|(_, value)| *value != pairs[0].1);
    has_several && pairs.windows(2).all(|pair| pair[0].0 != pair[1].0)
}

/// The first axis that is numbers, then the first of all; laws and seeds are lines and repetitions.
fn default_axis(data: &Data) -> Result<&(String, String, Vec<String>), ChartError> {
    let fit = || data.axes.iter().filter(|(path, _, values)| path != SEED && !values.is_empty());
    let is_number = |(_, column, _): &&(String, String, Vec<String>)| data.numbers.contains_key(column);
    fit()
        .find(is_number)
        .or_else(|| fit().next())
        .or_else(|| data.axes.first())
        .ok_or_else(|| nothing(
                "the sweep varies nothing but its seeds, and nothing lies on the x axis",
                "vary a value with congestlab sweep FILE --grid PATH=A,B, or draw what varies without: --kind cdf, --kind time",
            ))
}

fn cdf(data: &Data, wish: &Wish) -> Result<Picture, ChartError> {
    let finished =
        |name: &str| data.numbers.get(name).is_some_and(|column| column.iter().flatten().next().is_some());
    let default = if finished("completion_s") { "completion_s" } else { "goodput_bps" };
    let Found { column, kind, rows } = measured(data, wish.y.as_deref().unwrap_or(default))?;
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
    let count = range(fewest, most);
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
    let sizes = wish.x.as_deref().unwrap_or("size_bytes");
    let Some(size) = data.numbers.get(sizes) else {
        let text = format!("flows have no `{sizes}`");
        return Err(nothing(text, "flow completion times by size want flows with a size"));
    };
    let Found { column, mut rows, .. } = found(data, wish.y.as_deref().unwrap_or("completion_s"))?;
    rows.retain(|(place, ..)| size[*place].is_some_and(|size| size > 0.0));
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
        let line = position(&mut found, |(other, ..)| *other == name, || (name.clone(), law, Classes::new()));
        found[line].2.entry(class(bytes)).or_default().push((bytes, value));
    }
    let highest = rows.iter().map(|(.., value)| *value).fold(0.0, f64::max);
    let (label, factor) = label_of(&column, highest);
    // The unit of the middle of a logarithmic axis has few digits at both ends.
    let ends = [distinct.first(), distinct.last()].map(|size| log10(size.copied().unwrap_or(1.0)));
    let (x_label, x_factor) = label_of(sizes, power_of_ten((ends[0] + ends[1]) / 2.0));
    let x_label = x_label.replace("size (", "flow size (");
    let mut curves = Vec::new();
    for (percent, words) in [(50, "median"), (99, "99th percentile")] {
        for (name, law, classes) in &found {
            let points = classes.values().map(|flows| {
                // The mean of the sizes of a class, on a logarithmic axis.
                let x = flows.iter().map(|(bytes, _)| log10(*bytes)).sum::<f64>() / flows.len() as f64;
                let values = flows.iter().map(|(_, value)| *value).collect();
                // A class has flows.
                let value = Percent::whole(percent).of(values).unwrap_or(f64::NAN);
                (power_of_ten(x) / x_factor, value / factor)
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
    let mut results = data.results();
    let mut rows: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
    data.rows.iter().for_each(|row| rows.entry(row.point).or_default().push(row));
    let mut points: Vec<PointResult> = settings
        .iter()
        .enumerate()
        .map(|(index, settings)| {
            let result = results.remove(&index).unwrap_or_default();
            let laws_of = |table: &str, kind: &str| {
                let names = result[table].as_object().into_iter().flat_map(Map::keys);
                let of = |name: &String| {
                    let is_of = |row: &&&Row| row.kind == kind && row.element == *name;
                    rows.get(&index)?.iter().find(is_of).and_then(|row| row.law.clone())
                };
                names.map(of).collect()
            };
            PointResult {
                index,
                run: String::new(),
                settings: settings.clone(),
                laws: [laws_of("links", "link"), laws_of("flows", "flow")],
                result,
                readings: Vec::new(),
                curves: Vec::new(),
            }
        })
        .collect();
    for metric in figure.metrics() {
        let text = metric.text();
        // What is no plain path has a column of its own.
        let mut values: BTreeMap<usize, f64> = BTreeMap::new();
        for (_, row, value) in found(data, text)?.rows {
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
