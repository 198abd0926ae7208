//! The one table of a sweep: a row for each point and element, and what stands in it as columns.
//!
//! `results.parquet` and `results.csv` have the same rows and columns. Nothing in them depends on the order in which points
//! were run, by how many threads, processes or machines: equal sweeps give equal bytes. They are written from records one
//! part after the other, so that their length needs no memory.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use parquet::basic::{Repetition, Type as Physical};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::judging::metric::Reading;
use crate::judging::observation::PointResult;
use crate::judging::seeds::{SEED, UnusedSeeds};
use crate::judging::sum;
use crate::results::origin::{Cell, axis};
use crate::results::records::Records;
use crate::results::result::field;
use crate::results::sweep::{CONTENT, Results, SweepError};
use crate::results::tables::decoder::Decoder;
use crate::results::tables::{Column, Kind, More, physical};
use crate::results::{folder, standing, store};
use congestlab_text::disk;
use congestlab_text::disk::{hash_file, read_file};

/// The table, for programs.
pub const PARQUET: &str = "results.parquet";
/// The same for everything else.
pub const CSV: &str = "results.csv";
/// Version of the table and of what says what is in it.
const SCHEMA: u32 = 1;

/// What every row begins with. The settings follow, then [`ELEMENT`].
const HEAD: &str = "message results {
    required int64 point;
    required binary run (utf8);
    required binary scenario (utf8);
    required int64 seed;
    required binary label (utf8);
}";

/// Names of the columns of [`HEAD`].
const FIRST: [&str; 5] = ["point", "run", "scenario", "seed", "label"];

/// What says whose the numbers behind it are.
const ELEMENT: [(&str, Physical, Repetition); 5] = [
    ("kind", Physical::BYTE_ARRAY, Repetition::REQUIRED),
    ("element", Physical::BYTE_ARRAY, Repetition::OPTIONAL),
    ("index", Physical::INT64, Repetition::OPTIONAL),
    ("law", Physical::BYTE_ARRAY, Repetition::OPTIONAL),
    ("fingerprint", Physical::BYTE_ARRAY, Repetition::OPTIONAL),
];

/// True if a column says whose a row is, and is no quantity.
pub(crate) fn says_whose(column: &str) -> bool {
    FIRST.contains(&column) || ELEMENT.iter().any(|(name, ..)| *name == column)
}

/// Rows that are written at once; their columns are some twenty megabytes.
const GROUP: usize = 1 << 14;
/// Points that are read at once, by all cores.
const POINTS: usize = 64;

/// What the sweep varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// As the scenario names it.
    pub path: String,
    /// Its column in the table; that of `run.seed` is `seed`.
    pub column: String,
    /// Its values, as TOML, in the order of the sweep.
    pub values: Vec<String>,
}

/// What is in a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Content {
    schema: u32,
    scenario: String,
    version: String,
    points: usize,
    axes: Vec<Axis>,
    files: BTreeMap<String, String>,
    /// Keys of the records that the table is made of, point by point; none in tables of older versions.
    #[serde(default)]
    keys: Vec<String>,
}

/// A row but for what it has in common with all others of its point.
struct Row {
    kind: &'static str,
    element: Option<String>,
    index: Option<i64>,
    law: Option<String>,
    fingerprint: Option<String>,
    /// By column; ascending.
    values: Vec<(usize, f64)>,
}

/// Columns of numbers: which there are, and where.
#[derive(Default)]
struct Metrics {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Metrics {
    fn add(&mut self, name: &str) {
        if !self.places.contains_key(name) {
            self.places.insert(name.to_owned(), self.names.len());
            self.names.push(name.to_owned());
        }
    }
}

/// Calls `each` for every number of an object, null or not, and of the objects in it: `drops_by_reason.queue-full`.
fn numbers(object: &Json, above: &str, each: &mut dyn FnMut(&str, Option<f64>)) {
    for (key, value) in object.as_object().into_iter().flatten() {
        let name = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match value {
            Json::Object(_) => numbers(value, &name, each),
            Json::Number(number) => each(&name, number.as_f64()),
            Json::Bool(is_so) => each(&name, Some(f64::from(u8::from(*is_so)))),
            Json::Null => each(&name, None),
            Json::String(_) | Json::Array(_) => {}
        }
    }
}

/// What is done with an element: its kind, name and number, the place of its law among those of its kind, its numbers.
type EachElement<'a> = dyn FnMut(Kind, Option<&str>, Option<usize>, usize, &Json) + 'a;

/// Calls `each` for every element of a point, in the order of the rows.
fn elements(point: &PointResult, each: &mut EachElement<'_>) {
    let result = &point.result;
    let of_run: Map<String, Json> = ["packet_hops", "duration_s", "warmup_s", "seed_used"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), result.get(key)?.clone())))
        .collect();
    each(Kind::Run, None, None, 0, &of_run.into());
    for (place, (name, link)) in result["links"].as_object().into_iter().flatten().enumerate() {
        each(Kind::Link, Some(name), None, place, link);
    }
    for (place, (name, flows)) in result["flows"].as_object().into_iter().flatten().enumerate() {
        let sum = sum::goodput(result, [flows]);
        let flows = flows.as_array().map_or(&[][..], Vec::as_slice);
        let group = json!({ "flows": flows.len(), "jain": result["jain"][name], "goodput_sum_bps": sum });
        each(Kind::Group, Some(name), None, place, &group);
        for (index, flow) in flows.iter().enumerate() {
            each(Kind::Flow, Some(name), Some(index), place, flow);
        }
    }
}

/// The table as it is written: its columns are known.
struct Layout {
    axes: Vec<(String, Vec<Option<Cell>>)>,
    metrics: Metrics,
    /// Of the metrics of claims and figure those that are columns: the others are there without them.
    asked: Vec<(String, Option<String>)>,
}

impl Layout {
    fn new(results: &Results<'_>) -> Result<Self, SweepError> {
        let mut metrics = Metrics::default();
        let names = results.parts(POINTS, |point| {
            let mut names = Vec::new();
            elements(&point, &mut |kind, _, index, _, object| {
                // All flows have the same.
                if kind != Kind::Flow || index == Some(0) {
                    numbers(object, "", &mut |name, _| names.push(name.to_owned()));
                }
            });
            names
        });
        for part in names {
            part?.iter().flatten().for_each(|name| metrics.add(name));
        }
        let mut asked: Vec<(String, Option<String>)> = Vec::new();
        for metric in results.scenario().metrics().filter(|metric| !metric.is_plain() && !metric.is_text()) {
            if !metrics.places.contains_key(metric.text()) {
                metrics.add(metric.text());
                asked.push((metric.text().to_owned(), metric.group().map(str::to_owned)));
            }
        }
        let taken = |name: &String| says_whose(name) || metrics.places.contains_key(name);
        let first = results.settings().next().unwrap_or_default();
        let paths = first.iter().map(|(path, _)| path).filter(|path| *path != SEED);
        let axes = paths.map(|path| {
            let value =
                |settings: &'_ [(String, String)]| settings.iter().position(|(other, _)| other == path);
            axis(path, results.settings().map(|settings| Some(settings[value(settings)?].1.as_str())))
        });
        let axes = axes.filter(|(name, _)| !taken(name)).collect();
        Ok(Self { axes, metrics, asked })
    }

    /// The columns behind [`HEAD`].
    fn more(&self) -> More {
        let axes = self.axes.iter().map(|(name, cells)| {
            let kind = cells.iter().flatten().next().map_or(Physical::BYTE_ARRAY, physical);
            (name.clone(), kind, Repetition::OPTIONAL)
        });
        let element = ELEMENT.map(|(name, kind, repetition)| (name.to_owned(), kind, repetition));
        let metrics =
            self.metrics.names.iter().map(|name| (name.clone(), Physical::DOUBLE, Repetition::OPTIONAL));
        axes.chain(element).chain(metrics).collect()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let head = FIRST.into_iter();
        let axes = self.axes.iter().map(|(name, _)| name.as_str());
        head.chain(axes)
            .chain(ELEMENT.map(|(name, ..)| name))
            .chain(self.metrics.names.iter().map(String::as_str))
    }

    fn rows(&self, point: &PointResult) -> Vec<Row> {
        let mut rows = Vec::new();
        elements(point, &mut |kind, element, index, place, object| {
            let law = match kind {
                Kind::Run => None,
                Kind::Link => point.laws[0].get(place).cloned().flatten(),
                Kind::Group | Kind::Flow => point.laws[1].get(place).cloned().flatten(),
            };
            let mut values = Vec::new();
            numbers(object, "", &mut |name, value| {
                values.extend(self.metrics.places.get(name).copied().zip(value));
            });
            for (text, group) in &self.asked {
                let reading =
                    point.readings.iter().find(|(other, _)| other == text).map(|(_, reading)| reading);
                let value = match (reading, kind) {
                    (Some(Reading::List(list)), Kind::Flow) if element == group.as_deref() => {
                        index.and_then(|index| list.get(index)?.number())
                    }
                    (Some(reading), Kind::Run) => reading.number(),
                    _ => None,
                };
                values.extend(self.metrics.places.get(text).copied().zip(value));
            }
            values.sort_unstable_by_key(|(column, _)| *column);
            rows.push(Row {
                kind: kind.name(),
                element: element.map(str::to_owned),
                index: index.map(|index| index as i64),
                law,
                fingerprint: point.result["fingerprint"]
                    .as_str()
                    .filter(|_| kind == Kind::Run)
                    .map(str::to_owned),
                values,
            });
        });
        rows
    }
}

/// Settings in words, without the seed.
fn label(settings: &[(String, String)]) -> String {
    let words =
        settings.iter().filter(|(path, _)| path != SEED).map(|(path, value)| format!("{path} = {value}"));
    words.collect::<Vec<_>>().join(", ")
}

/// Writes the table of a sweep whose points are all complete, and calls `each` for every point in order.
///
/// # Errors
/// A file can not be written, or what was complete is there no more.
pub fn write(
    folder: &Path,
    results: &Results<'_>,
    version: &str,
    each: &mut (dyn FnMut(&PointResult) + Send),
) -> Result<(), SweepError> {
    let layout = Layout::new(results)?;
    let scenario = results.scenario();
    let mut content = Content {
        schema: SCHEMA,
        scenario: scenario.name().to_owned(),
        version: version.to_owned(),
        points: results.points(),
        axes: axes_of(results),
        files: BTreeMap::new(),
        keys: Vec::new(),
    };
    let mut metadata = json!(content);
    for key in ["files", "keys"] {
        metadata.as_object_mut().map(|content| content.remove(key));
    }
    content.keys = results.keys().map(|key| format!("{key:016x}")).collect();
    let mut lost = None;
    let rows = &mut results.parts(POINTS, |point| (layout.rows(&point), point));
    let mut pending: std::collections::VecDeque<(Vec<Row>, PointResult)> = std::collections::VecDeque::new();
    let mut next = || -> Option<(Vec<Row>, PointResult)> {
        while pending.is_empty() {
            match rows.next()? {
                Ok(part) => pending.extend(part),
                Err(error) => {
                    lost = Some(error);
                    return None;
                }
            }
        }
        pending.pop_front()
    };
    let (parquet, csv) = (folder.join(PARQUET), folder.join(CSV));
    let cannot_write = |path: &Path| {
        let path = path.to_owned();
        move |error| SweepError::Write { path, error }
    };
    let written = disk::write_with(&parquet, |parquet| {
        disk::write_with(&csv, |csv| {
            let names: Vec<String> = layout.names().map(field).collect();
            writeln!(csv, "{}", names.join(","))?;
            let mut failed = Ok(());
            let name = scenario.name();
            let written =
                crate::results::tables::write(parquet, HEAD, &layout.more(), &metadata.to_string(), || {
                    let mut part = Part::new(&layout);
                    while part.rows() < GROUP
                        && failed.is_ok()
                        && let Some((rows, point)) = next()
                    {
                        each(&point);
                        failed = part.write_csv(csv, name, &point, &rows);
                        part.add(name, &point, rows);
                    }
                    part.columns()
                });
            failed.and(written)
        })
    });
    if let Some(lost) = lost {
        return Err(lost);
    }
    written.map_err(cannot_write(&parquet))?;
    let (text, traces) =
        scenario.portable_sweep().map_err(|(path, error)| SweepError::Read { path, error })?;
    let written = scenario.written().to_owned();
    let files = [(folder::SCENARIO, text), (folder::WRITTEN, written)]
        .map(|(name, text)| (name.to_owned(), text.into_bytes()));
    let files = files.into_iter().chain(traces);
    let mut names = vec![PARQUET.to_owned(), CSV.to_owned()];
    for (name, bytes) in files {
        let path = folder.join(&name);
        disk::write_atomically(&path, &bytes).map_err(cannot_write(&path))?;
        names.push(name);
    }
    for name in names {
        let path = folder.join(&name);
        let hash = hash_file(&path).map_err(|error| SweepError::Read { path, error })?;
        content.files.insert(name, hash);
    }
    let path = folder.join(CONTENT);
    disk::write_atomically(&path, store::pretty(&content).as_bytes()).map_err(cannot_write(&path))
}

fn axes_of(results: &Results<'_>) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    let mut seen: Vec<std::collections::BTreeSet<&str>> = Vec::new();
    for settings in results.settings() {
        for (place, (path, value)) in settings.iter().enumerate() {
            if axes.len() == place {
                axes.push(Axis { path: path.clone(), column: String::new(), values: Vec::new() });
                seen.push(std::collections::BTreeSet::new());
            }
            if seen[place].insert(value) {
                axes[place].values.push(value.clone());
            }
        }
    }
    for axis_ in &mut axes {
        axis_.column = match axis_.path.as_str() {
            SEED => "seed".to_owned(),
            path => axis(path, axis_.values.iter().map(|value| Some(value.as_str()))).0,
        };
    }
    axes
}

/// Rows that become a group of the Parquet file.
struct Part<'a> {
    layout: &'a Layout,
    head: [Vec<Option<Cell>>; 5],
    axes: Vec<Vec<Option<Cell>>>,
    element: [Vec<Option<Cell>>; 5],
    metrics: Vec<Vec<Option<f64>>>,
}

impl<'a> Part<'a> {
    fn new(layout: &'a Layout) -> Self {
        Self {
            layout,
            head: Default::default(),
            axes: vec![Vec::new(); layout.axes.len()],
            element: Default::default(),
            metrics: vec![Vec::new(); layout.metrics.names.len()],
        }
    }

    fn rows(&self) -> usize {
        self.head[0].len()
    }

    /// What all rows of a point begin with.
    fn head(scenario: &str, point: &PointResult) -> [Cell; 5] {
        [
            Cell::Integer(point.index as i64),
            Cell::Text(point.run.clone()),
            Cell::Text(scenario.to_owned()),
            Cell::Integer(point.result["seed"].as_i64().unwrap_or_default()),
            Cell::Text(label(&point.settings)),
        ]
    }

    fn element(row: &Row) -> [Option<Cell>; 5] {
        let text = |text: &Option<String>| text.clone().map(Cell::Text);
        [
            Some(Cell::Text(row.kind.into())),
            text(&row.element),
            row.index.map(Cell::Integer),
            text(&row.law),
            text(&row.fingerprint),
        ]
    }

    fn add(&mut self, scenario: &str, point: &PointResult, rows: Vec<Row>) {
        let head = Self::head(scenario, point);
        for row in rows {
            for (column, cell) in self.head.iter_mut().zip(&head) {
                column.push(Some(cell.clone()));
            }
            for (column, (_, cells)) in self.axes.iter_mut().zip(&self.layout.axes) {
                column.push(cells[point.index].clone());
            }
            for (column, cell) in self.element.iter_mut().zip(Self::element(&row)) {
                column.push(cell);
            }
            let mut values = row.values.into_iter().peekable();
            for (place, column) in self.metrics.iter_mut().enumerate() {
                column.push(values.next_if(|(other, _)| *other == place).map(|(_, value)| value));
            }
        }
    }

    fn columns(self) -> Vec<Column> {
        let [kind, element, index, law, fingerprint] = self.element;
        let texts = [kind, element, index, law, fingerprint];
        let cells = self.head.into_iter().chain(self.axes).chain(texts).map(Column::Cells);
        cells.chain(self.metrics.into_iter().map(Column::Maybe)).collect()
    }

    fn write_csv(
        &self,
        out: &mut dyn Write,
        scenario: &str,
        point: &PointResult,
        rows: &[Row],
    ) -> io::Result<()> {
        let head = Self::head(scenario, point).map(Some);
        let axes = self.layout.axes.iter().map(|(_, cells)| &cells[point.index]);
        let start: Vec<String> = head.iter().chain(axes).map(csv).collect();
        let start = start.join(",");
        for row in rows {
            write!(out, "{start}")?;
            for cell in Self::element(row) {
                write!(out, ",{}", csv(&cell))?;
            }
            let mut next = 0;
            for (column, value) in &row.values {
                for _ in next..=*column {
                    write!(out, ",")?;
                }
                write!(out, "{value}")?;
                next = column + 1;
            }
            for _ in next..self.layout.metrics.names.len() {
                write!(out, ",")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

fn csv(cell: &Option<Cell>) -> String {
    match cell {
        None => String::new(),
        Some(Cell::Number(number)) => number.to_string(),
        Some(Cell::Integer(integer)) => integer.to_string(),
        Some(Cell::Switch(switch)) => switch.to_string(),
        Some(Cell::Text(text)) => field(text),
    }
}

/// Why a table can not be used.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// It is not there.
    #[error("{} is not the folder of a sweep that is complete: it has no {CONTENT}", .0.display())]
    NotASweep(PathBuf),
    /// A file is not what was written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another version of the program wrote it.
    #[error("the sweep in {} has results schema {found}, and this is {SCHEMA}", path.display())]
    OtherVersion {
        /// The folder.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// No column has this name.
    #[error("the table has no column `{name}`; {allowed}")]
    NoColumn {
        /// The name.
        name: String,
        /// What there is.
        allowed: String,
    },
}

/// The table of a sweep, read again. A column is read when it is asked for.
#[derive(Debug)]
pub struct Table {
    folder: PathBuf,
    content: Content,
    columns: Vec<String>,
    rows: usize,
}

impl Table {
    /// Opens the folder of a sweep.
    ///
    /// # Errors
    /// If it is no such folder, or damaged: if its table, scenario or traces are not those that were written.
    pub fn open(folder: &Path) -> Result<Self, TableError> {
        let path = folder.join(CONTENT);
        if !path.is_file() {
            return Err(TableError::NotASweep(folder.to_owned()));
        }
        let damaged = |path: &Path, reason: &dyn std::fmt::Display| TableError::Damaged {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        let text = read_file(&path, folder::SUMMARY_MAX).map_err(|error| damaged(&path, &error))?;
        let content: Json = serde_json::from_slice(&text).map_err(|error| damaged(&path, &error))?;
        if content["schema"] != SCHEMA {
            let found = content["schema"].to_string();
            return Err(TableError::OtherVersion { path: folder.to_owned(), found });
        }
        let content: Content = serde_json::from_value(content).map_err(|error| damaged(&path, &error))?;
        for name in [PARQUET, folder::SCENARIO, folder::WRITTEN] {
            if !content.files.contains_key(name) {
                return Err(damaged(&path, &format!("it does not name {name}")));
            }
        }
        // Nobody reads the other table again. The library trusts what it decodes, and a scenario says what is drawn.
        for (name, hash) in content.files.iter().filter(|(name, _)| *name != CSV) {
            if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(damaged(&path, &format!("it names {name:?}, which is not in the folder")));
            }
            let path = folder.join(name);
            if hash_file(&path).map_err(|error| damaged(&path, &error))? != *hash {
                return Err(damaged(&path, &format!("it is not the file that {CONTENT} names")));
            }
        }
        let path = folder.join(PARQUET);
        let decoder = Decoder::open(&path).map_err(|error| damaged(&path, &error))?;
        let metadata = decoder.metadata();
        let fields = metadata.schema_descr().root_schema().get_fields();
        let columns = fields.iter().map(|field| field.name().to_owned()).collect();
        let rows = usize::try_from(metadata.num_rows()).map_err(|error| damaged(&path, &error))?;
        Ok(Self { folder: folder.to_owned(), content, columns, rows })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name of the scenario.
    pub fn scenario(&self) -> &str {
        &self.content.scenario
    }

    /// Returns the version of congestlab that wrote the table.
    pub fn version(&self) -> &str {
        &self.content.version
    }

    /// Returns the keys of the records that the table is made of, point by point. Tables of older versions name none: there
    /// the fingerprints of the runs find the records. `None` if a record is not there.
    pub fn keys(&self) -> Option<Vec<u64>> {
        let keys = self.content.keys.iter().map(|key| u64::from_str_radix(key, 16).ok());
        let keys = keys.collect::<Option<Vec<_>>>().filter(|keys| keys.len() == self.points());
        keys.or_else(|| self.keys_by_fingerprint())
    }

    fn keys_by_fingerprint(&self) -> Option<Vec<u64>> {
        let records = Records::open(&self.folder.join(standing::POINTS)).ok()?;
        let fingerprint = |key: u64| {
            let record = records.find(key)?.read()?;
            Some((record["result"]["fingerprint"].as_str()?.to_owned(), key))
        };
        let by_fingerprint: BTreeMap<String, u64> = records.keys().filter_map(fingerprint).collect();
        // Of the rows of a point one has the fingerprint.
        let of_points = self.texts("fingerprint").ok()?.into_iter().flatten();
        let keys: Option<Vec<u64>> =
            of_points.map(|fingerprint| by_fingerprint.get(&fingerprint).copied()).collect();
        keys.filter(|keys| keys.len() == self.points())
    }

    /// How many points the sweep has.
    pub fn points(&self) -> usize {
        self.content.points
    }

    /// What the sweep varied.
    pub fn axes(&self) -> &[Axis] {
        &self.content.axes
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The names of its columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The numbers of a column, row by row: `None` where it has none. Switches are 0 and 1.
    ///
    /// # Errors
    /// There is no such column, or the file is damaged.
    pub fn numbers(&self, column: &str) -> Result<Vec<Option<f64>>, TableError> {
        let cells = self.read(column)?;
        let number = |cell: Option<Cell>| match cell? {
            Cell::Number(number) => Some(number),
            Cell::Integer(integer) => Some(integer as f64),
            Cell::Switch(switch) => Some(f64::from(u8::from(switch))),
            Cell::Text(_) => None,
        };
        Ok(cells.into_iter().map(number).collect())
    }

    /// Finds the points at which seeds changed nothing.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn unused_seeds(&self) -> Result<Option<UnusedSeeds>, TableError> {
        if !self.axes().iter().any(|axis| axis.path == SEED) {
            return Ok(None);
        }
        // The label of a point has no seed. Of all rows of a run one says whether the seed was used.
        let (points, seeds, used) = (self.texts("label")?, self.texts("seed")?, self.numbers("seed_used")?);
        let rows = points.into_iter().zip(seeds).zip(used);
        Ok(UnusedSeeds::of(rows.filter_map(|((point, seed), used)| Some((point, seed, used? != 0.0)))))
    }

    /// The texts of a column, row by row; numbers as they are written.
    ///
    /// # Errors
    /// There is no such column, or the file is damaged.
    pub fn texts(&self, column: &str) -> Result<Vec<Option<String>>, TableError> {
        let cells = self.read(column)?;
        let text = |cell: Option<Cell>| match cell? {
            Cell::Text(text) => Some(text),
            other => Some(csv(&Some(other))),
        };
        Ok(cells.into_iter().map(text).collect())
    }

    fn read(&self, column: &str) -> Result<Vec<Option<Cell>>, TableError> {
        let Some(place) = self.columns.iter().position(|name| name == column) else {
            let allowed =
                congestlab_text::diagnostic::choices(column, self.columns.iter().map(String::as_str)).into();
            return Err(TableError::NoColumn { name: column.to_owned(), allowed });
        };
        let path = self.folder.join(PARQUET);
        crate::results::tables::read_column(&path, place)
            .map_err(|error| TableError::Damaged { path, reason: error.to_string() })
    }
}

impl Results<'_> {
    /// What `each` makes of every point, in order, so many points at once; they are read by all cores.
    fn parts<T: Send>(
        &self,
        size: usize,
        each: impl Fn(PointResult) -> T + Sync,
    ) -> impl Iterator<Item = Result<Vec<T>, SweepError>> {
        (0..self.points()).step_by(size).map(move |from| {
            let part = from..(from + size).min(self.points());
            part.into_par_iter().map(|index| self.get(index).map(&each)).collect()
        })
    }
}
