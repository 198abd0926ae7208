//! The tables of a run as Parquet: the rows that `--series` and `--events` write as CSV.
//!
//! Columns have the same names, order and values as in the CSV; a field that is empty there is null
//! here. Behind them every row says of which run it is: tables of many runs are read as one. The metadata of the file
//! say it again, as JSON under the key `congestlab`.
//!
//! Nothing in a file depends on when or where it was written, so equal runs give equal bytes.
//! Rows go in groups, so writing and reading hold one group in memory beside the data.

pub(crate) mod decoder;
mod footer;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use congestlab_net::packet::Picos;
use congestlab_sim::outcome::{Element, Event, Outcome, Sample};
use decoder::Decoder;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type};

use crate::judging::metric::Reading;
use crate::judging::observation::PointResult;
use crate::judging::seeds::SEED;
use crate::language::scenario::Scenario;
use crate::results::origin::{Cell, Origin, axis, settings_json};
use crate::results::result::Names;

/// Key of what the metadata of a file say of its run.
const METADATA: &str = "congestlab";

/// Rows that are written and read at once: a few megabytes, and what readers on several cores want.
pub(crate) const GROUP: usize = 1 << 17;

const SERIES: &str = "message series {
    required double t_s;
    required binary element (utf8);
    optional int64 index;
    required binary metric (utf8);
    required double value;
}";

const EVENTS: &str = "message events {
    required double t_s;
    required binary element (utf8);
    optional int64 index;
    required binary event (utf8);
    optional binary detail (utf8);
    optional binary flow (utf8);
    optional int64 flow_index;
    required int64 value;
}";

const POINTS: &str = "message points {
    required binary settings (utf8);
    optional int64 seed;
    required binary metric (utf8);
    optional int64 index;
    required double value;
    required binary run (utf8);
    required binary scenario (utf8);
    required binary label (utf8);
    required boolean seed_used;
}";

/// A row of the time series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesRow<'a> {
    /// End of the bin, s.
    pub t_s: f64,
    /// Name of the link or of the group of flows.
    pub element: &'a str,
    /// Index of the flow in its group; `None` for a link.
    pub index: Option<u32>,
    /// Name of the metric in docs/design/contract.md 5.
    pub metric: &'a str,
    /// Value, in the unit that the metric's name ends in.
    pub value: f64,
}

/// A row of the events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventRow<'a> {
    /// Time of the event, s.
    pub t_s: f64,
    /// Name of the link or of the group of flows.
    pub element: &'a str,
    /// Index of the flow in its group; `None` for a link.
    pub index: Option<u32>,
    /// Kind of event: `drop`, `error`, `mark`, `timeout`, `retransmit` or `control-interval`.
    pub event: &'a str,
    /// Reason of a drop.
    pub detail: Option<&'a str>,
    /// Group of the packet's flow, for events at links.
    pub flow: Option<&'a str>,
    /// Index of the packet's flow in that group.
    pub flow_index: Option<u32>,
    /// Segment number of the packet; for a control interval the decision of the link law: XCP's aggregate
    /// feedback, B/s.
    pub value: i64,
}

/// Part of a column, in memory.
pub(crate) enum Column {
    Numbers(Vec<f64>),
    Maybe(Vec<Option<f64>>),
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<ByteArray>>),
    /// Any values, of which there are few.
    Cells(Vec<Option<Cell>>),
    /// The same in so many rows.
    Same(Cell, usize),
}

/// Columns that a schema has no words for: names may be any text.
pub(crate) type More = Vec<(String, Physical, Repetition)>;

pub(crate) fn physical(cell: &Cell) -> Physical {
    match cell {
        Cell::Number(_) => Physical::DOUBLE,
        Cell::Integer(_) => Physical::INT64,
        Cell::Switch(_) => Physical::BOOLEAN,
        Cell::Text(_) => Physical::BYTE_ARRAY,
    }
}

/// Whose the numbers of a row are, in the table of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Link,
    Group,
    Flow,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Link => "link",
            Self::Group => "group",
            Self::Flow => "flow",
        }
    }
}

/// The columns that say of which run a row is: behind a table's own, beginning with the law of the row's element.
struct Origins {
    cells: Vec<Cell>,
    columns: More,
    metadata: String,
}

impl Origins {
    /// `schema` has columns of its own, whose names nothing else takes: `--set run={...}` changes a path that is called
    /// as one, and is in label and metadata.
    fn new(origin: &Origin, schema: &str) -> Self {
        let named = |name: &str, cell| (name.to_owned(), cell);
        let mut cells = vec![
            named("run", Cell::Text(origin.run.clone())),
            named("scenario", Cell::Text(origin.scenario.clone())),
            // The language has no larger ones.
            named("seed", Cell::Integer(origin.seed.cast_signed())),
            named("label", Cell::Text(origin.label.clone())),
        ];
        for (name, cell) in &origin.settings {
            let is_taken =
                cells.iter().any(|(other, _)| other == name) || schema.contains(&format!(" {name};"));
            if !is_taken {
                cells.push((name.clone(), cell.clone()));
            }
        }
        let law = ("law".to_owned(), Physical::BYTE_ARRAY, Repetition::OPTIONAL);
        let columns = cells.iter().map(|(name, cell)| (name.clone(), physical(cell), Repetition::REQUIRED));
        Self {
            columns: std::iter::once(law).chain(columns).collect(),
            cells: cells.into_iter().map(|(_, cell)| cell).collect(),
            metadata: origin.to_json().to_string(),
        }
    }

    /// The law of the element of each row, and the run.
    fn columns(&self, laws: Vec<Option<ByteArray>>) -> impl Iterator<Item = Column> {
        let rows = laws.len();
        let same = self.cells.iter().map(move |cell| Column::Same(cell.clone(), rows));
        std::iter::once(Column::Texts(laws)).chain(same)
    }
}

/// Seconds as the CSV states them: the float nearest to the exact decimal.
pub(crate) fn seconds(at: Picos) -> f64 {
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    if at < EXACT {
        at as f64 / 1e12
    } else {
        // Beyond two and a half hours `at` itself would be rounded first.
        format!("{at}e-12").parse().unwrap_or(f64::INFINITY)
    }
}

/// The names of a scenario's elements, ready to be written.
struct Texts {
    names: Names,
    links: Vec<ByteArray>,
    groups: Vec<ByteArray>,
    link_laws: Vec<Option<ByteArray>>,
    flow_laws: Vec<Option<ByteArray>>,
}

impl Texts {
    fn new(scenario: &Scenario) -> Self {
        let model = scenario.base_model();
        let laws =
            |laws: Vec<Option<&'static str>>| laws.into_iter().map(|law| law.map(Into::into)).collect();
        Self {
            link_laws: laws(scenario.link_laws()),
            flow_laws: laws(scenario.flow_laws()),
            names: Names::new(model),
            links: model.links.iter().map(|link| link.name.as_str().into()).collect(),
            groups: model.groups.iter().map(|group| group.name.as_str().into()).collect(),
        }
    }

    fn element(&self, element: Element) -> (Option<ByteArray>, Option<i64>) {
        match element {
            Element::Link(link) => (Some(self.links[link as usize].clone()), None),
            Element::Cloud(link, number) => (Some(self.links[link as usize].clone()), Some(number.into())),
            Element::Flow(group, flow) => (Some(self.groups[group as usize].clone()), Some(flow.into())),
        }
    }

    fn law(&self, element: Element) -> Option<ByteArray> {
        match element {
            Element::Link(link) | Element::Cloud(link, _) => self.link_laws[link as usize].clone(),
            Element::Flow(group, _) => self.flow_laws[group as usize].clone(),
        }
    }
}

/// One copy of each of the few texts of a column.
#[derive(Default)]
struct Known(Vec<(&'static str, ByteArray)>);

impl Known {
    fn get(&mut self, text: &'static str) -> Option<ByteArray> {
        if text.is_empty() {
            return None;
        }
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == text) {
            return Some(known.clone());
        }
        let array = ByteArray::from(text);
        self.0.push((text, array.clone()));
        Some(array)
    }
}

/// Writes the series of flows, or of links.
pub(crate) fn write_series(
    out: &mut (dyn Write + Send),
    scenario: &Scenario,
    outcome: &Outcome,
    origin: &Origin,
    of_flows: bool,
) -> io::Result<()> {
    let (texts, mut metrics) = (Texts::new(scenario), Known::default());
    let origins = Origins::new(origin, SERIES);
    let mut samples =
        outcome.series.iter().filter(|sample| matches!(sample.element, Element::Flow(..)) == of_flows);
    write(out, SERIES, &origins.columns, &origins.metadata, || {
        let group: Vec<&Sample> = samples.by_ref().take(GROUP).collect();
        let elements = group.iter().map(|sample| texts.element(sample.element));
        let (elements, indices) = elements.unzip();
        let own = [
            Column::Numbers(group.iter().map(|sample| seconds(sample.at)).collect()),
            Column::Texts(elements),
            Column::Integers(indices),
            Column::Texts(group.iter().map(|sample| metrics.get(sample.metric)).collect()),
            Column::Numbers(group.iter().map(|sample| sample.value).collect()),
        ];
        let laws = group.iter().map(|sample| texts.law(sample.element)).collect();
        own.into_iter().chain(origins.columns(laws)).collect()
    })
}

/// Writes the events.
pub(crate) fn write_events(
    out: &mut (dyn Write + Send),
    scenario: &Scenario,
    outcome: &Outcome,
    origin: &Origin,
) -> io::Result<()> {
    let (texts, mut known) = (Texts::new(scenario), Known::default());
    let origins = Origins::new(origin, EVENTS);
    let mut events = outcome.events.iter();
    write(out, EVENTS, &origins.columns, &origins.metadata, || {
        let group: Vec<&Event> = events.by_ref().take(GROUP).collect();
        let (elements, indices) = group.iter().map(|event| texts.element(event.element)).unzip();
        let flow = |event: &&Event| event.flow.map(|flow| texts.names.group_of(flow));
        let flows = group.iter().map(flow);
        let own = [
            Column::Numbers(group.iter().map(|event| seconds(event.at)).collect()),
            Column::Texts(elements),
            Column::Integers(indices),
            Column::Texts(group.iter().map(|event| known.get(event.kind)).collect()),
            Column::Texts(group.iter().map(|event| known.get(event.detail)).collect()),
            Column::Texts(flows.clone().map(|flow| Some(texts.groups[flow?.0].clone())).collect()),
            Column::Integers(flows.map(|flow| Some(flow?.1.into())).collect()),
            Column::Integers(group.iter().map(|event| Some(event.value)).collect()),
        ];
        let laws = group.iter().map(|event| texts.law(event.element)).collect();
        own.into_iter().chain(origins.columns(laws)).collect()
    })
}

struct PointRow<'a> {
    point: usize,
    metric: &'a str,
    index: Option<i64>,
    value: f64,
}

/// Writes what was read at each point of a sweep: its settings as a JSON object without the seed, the metric as the
/// file has it, the place in a list, the value: NaN where nothing was measured. Then of which run it is, and the
/// settings again, as columns.
pub(crate) fn write_points(
    out: &mut (dyn Write + Send),
    scenario: &str,
    points: &[PointResult],
) -> io::Result<()> {
    let mut rows: Vec<PointRow<'_>> = Vec::new();
    for (point, result) in points.iter().enumerate() {
        for (metric, reading) in &result.readings {
            let (list, is_list) = match reading {
                Reading::List(list) => (list.as_slice(), true),
                single => (std::slice::from_ref(single), false),
            };
            for (index, value) in list.iter().enumerate() {
                let value = value.number().unwrap_or(f64::NAN);
                rows.push(PointRow { point, metric, index: is_list.then_some(index as i64), value });
            }
        }
    }
    let without_seed = |result: &PointResult| -> Vec<(String, String)> {
        result.settings.iter().filter(|(path, _)| path != SEED).cloned().collect()
    };
    let settings: Vec<Vec<(String, String)>> = points.iter().map(without_seed).collect();
    let label = |settings: &[(String, String)]| -> String {
        settings.iter().map(|(path, value)| format!("{path} = {value}")).collect::<Vec<_>>().join(", ")
    };
    let texts = |each: &dyn Fn(usize) -> String| -> Vec<Option<ByteArray>> {
        (0..points.len()).map(|point| Some(each(point).as_str().into())).collect()
    };
    let objects = texts(&|point| settings_json(&settings[point]).to_string());
    let runs = texts(&|point| points[point].run.clone());
    let labels = texts(&|point| label(&settings[point]));
    let axes: Vec<(String, Vec<Option<Cell>>)> = settings
        .first()
        .into_iter()
        .flatten()
        .map(|(path, _)| {
            let value = settings.iter().map(|settings| {
                settings.iter().find(|(other, _)| other == path).map(|(_, value)| value.as_str())
            });
            axis(path, value)
        })
        .filter(|(name, _)| !POINTS.contains(&format!(" {name} (")))
        .collect();
    let more = axes.iter().map(|(name, cells)| {
        let kind = cells.iter().flatten().next().map_or(Physical::BYTE_ARRAY, physical);
        (name.clone(), kind, Repetition::OPTIONAL)
    });
    let more: More = more.collect();
    let metadata = serde_json::json!({ "scenario": scenario }).to_string();
    let mut groups = rows.chunks(GROUP);
    write(out, POINTS, &more, &metadata, || {
        let group = groups.next().unwrap_or(&[]);
        let of = |texts: &[Option<ByteArray>]| {
            Column::Texts(group.iter().map(|row| texts[row.point].clone()).collect())
        };
        let own = [
            of(&objects),
            Column::Integers(group.iter().map(|row| points[row.point].result["seed"].as_i64()).collect()),
            Column::Texts(group.iter().map(|row| Some(row.metric.into())).collect()),
            Column::Integers(group.iter().map(|row| row.index).collect()),
            Column::Numbers(group.iter().map(|row| row.value).collect()),
            of(&runs),
            Column::Same(Cell::Text(scenario.into()), group.len()),
            of(&labels),
            Column::Cells(
                group.iter().map(|row| Some(Cell::Switch(points[row.point].is_random()))).collect(),
            ),
        ];
        let cells = axes
            .iter()
            .map(|(_, cells)| Column::Cells(group.iter().map(|row| cells[row.point].clone()).collect()));
        own.into_iter().chain(cells).collect()
    })
}

/// Writes groups of rows until one is empty.
pub(crate) fn write(
    out: &mut (dyn Write + Send),
    schema: &str,
    more: &More,
    metadata: &str,
    mut next: impl FnMut() -> Vec<Column>,
) -> io::Result<()> {
    let properties = WriterProperties::builder()
        // The library's default names its own version; ours stands in summary.json.
        .set_created_by("congestlab".into())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        // Measured values hardly repeat: a dictionary of them is tried for nothing.
        .set_column_dictionary_enabled(ColumnPath::from("value"), false)
        .set_column_encoding(ColumnPath::from("value"), Encoding::PLAIN)
        .set_key_value_metadata(Some(vec![KeyValue::new(METADATA.to_owned(), metadata.to_owned())]))
        .build();
    let write = || {
        let schema = with_more(&parse_message_type(schema)?, more)?;
        let mut writer = SerializedFileWriter::new(&mut *out, Arc::new(schema), Arc::new(properties))?;
        loop {
            let columns = next();
            if columns.first().is_none_or(|column| column.is_empty()) {
                return writer.close();
            }
            let mut group = writer.next_row_group()?;
            for column in columns {
                let Some(mut writer) = group.next_column()? else { break };
                column.write(writer.untyped())?;
                writer.close()?;
            }
            group.close()?;
        }
    };
    write().map(drop).map_err(as_io)
}

/// The schema with columns behind its own.
fn with_more(schema: &Type, more: &More) -> Result<Type, ParquetError> {
    let mut fields = schema.get_fields().to_vec();
    for (name, physical, repetition) in more {
        let text = (*physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(name, *physical);
        fields.push(Arc::new(field.with_repetition(*repetition).with_logical_type(text).build()?));
    }
    Type::group_type_builder(schema.name()).with_fields(fields).build()
}

/// The file system's own error, where that was the cause.
fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        error => io::Error::other(error),
    }
}

impl Column {
    fn is_empty(&self) -> bool {
        match self {
            Self::Numbers(values) => values.is_empty(),
            Self::Maybe(values) => values.is_empty(),
            Self::Integers(values) => values.is_empty(),
            Self::Texts(values) => values.is_empty(),
            Self::Cells(values) => values.is_empty(),
            Self::Same(_, rows) => *rows == 0,
        }
    }

    fn write(self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        /// Few at once: a group of a text is megabytes.
        fn repeat<T: DataType>(
            writer: &mut ColumnWriterImpl<'_, T>,
            value: T::T,
            rows: usize,
        ) -> Result<(), ParquetError> {
            let some = vec![value; rows.min(1024)];
            for done in (0..rows).step_by(1024) {
                writer.write_batch(&some[..some.len().min(rows - done)], None, None)?;
            }
            Ok(())
        }
        fn split<T>(values: Vec<Option<T>>) -> (Vec<T>, Vec<i16>) {
            let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
            (values.into_iter().flatten().collect(), levels)
        }
        match (self, writer) {
            (Self::Numbers(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(&values, None, None)?;
            }
            (Self::Maybe(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                let (values, levels) = split(values);
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Self::Integers(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                let (values, levels) = split(values);
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Self::Texts(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let (values, levels) = split(values);
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Self::Same(Cell::Number(value), rows), ColumnWriter::DoubleColumnWriter(writer)) => {
                repeat(writer, value, rows)?;
            }
            (Self::Same(Cell::Integer(value), rows), ColumnWriter::Int64ColumnWriter(writer)) => {
                repeat(writer, value, rows)?;
            }
            (Self::Same(Cell::Switch(value), rows), ColumnWriter::BoolColumnWriter(writer)) => {
                repeat(writer, value, rows)?;
            }
            (Self::Same(Cell::Text(text), rows), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                repeat(writer, text.as_str().into(), rows)?;
            }
            (Self::Cells(cells), ColumnWriter::DoubleColumnWriter(writer)) => {
                let number = |cell| if let Cell::Number(number) = cell { Some(number) } else { None };
                let (values, levels) = split(cells.into_iter().map(|cell| cell.and_then(number)).collect());
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Self::Cells(cells), ColumnWriter::Int64ColumnWriter(writer)) => {
                let integer = |cell| if let Cell::Integer(integer) = cell { Some(integer) } else { None };
                let (values, levels) = split(cells.into_iter().map(|cell| cell.and_then(integer)).collect());
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Self::Cells(cells), ColumnWriter::BoolColumnWriter(writer)) => {
                let switch = |cell| if let Cell::Switch(switch) = cell { Some(switch) } else { None };
                let (values, levels) = split(cells.into_iter().map(|cell| cell.and_then(switch)).collect());
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Self::Cells(cells), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let text = |cell| if let Cell::Text(text) = cell { Some(text.as_str().into()) } else { None };
                let (values, levels) = split(cells.into_iter().map(|cell| cell.and_then(text)).collect());
                writer.write_batch(&values, Some(&levels), None)?;
            }
            _ => return Err(ParquetError::General("a column is not of its schema's type".into())),
        }
        Ok(())
    }

    fn read(reader: ColumnReader, rows: usize, is_optional: bool) -> Result<Self, ParquetError> {
        Ok(match reader {
            ColumnReader::DoubleColumnReader(reader) => {
                let values = values(reader, rows, is_optional)?;
                Self::Numbers(values.into_iter().map(Option::unwrap_or_default).collect())
            }
            ColumnReader::Int64ColumnReader(reader) => Self::Integers(values(reader, rows, is_optional)?),
            reader => {
                // Only the types of the schemas above come here.
                let reader = get_typed_column_reader::<parquet::data_type::ByteArrayType>(reader);
                Self::Texts(values(reader, rows, is_optional)?)
            }
        })
    }

    fn number(&self, row: usize) -> f64 {
        match self {
            Self::Numbers(values) => values[row],
            _ => f64::NAN,
        }
    }

    fn integer(&self, row: usize) -> Option<i64> {
        match self {
            Self::Integers(values) => values[row],
            _ => None,
        }
    }

    fn text(&self, row: usize) -> Result<Option<&str>, ParquetError> {
        match self {
            Self::Texts(values) => values[row].as_ref().map(ByteArray::as_utf8).transpose(),
            _ => Ok(None),
        }
    }
}

/// So many values of a column.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    is_optional: bool,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (read, _, _) = reader.read_records(rows, is_optional.then_some(&mut levels), None, &mut values)?;
    if read != rows {
        return Err(ParquetError::General(format!("{read} rows where {rows} should be")));
    }
    if !is_optional {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}

/// A column of any of the types that are written here.
pub(crate) fn read_column(path: &Path, column: usize) -> Result<Vec<Option<Cell>>, ParquetError> {
    let decoder = Decoder::open(path)?;
    let field = decoder.metadata().schema_descr().root_schema().get_fields().get(column).cloned();
    let field = field.ok_or_else(|| ParquetError::General("a column is missing".into()))?;
    let is_optional = field.is_optional();
    let mut cells = Vec::new();
    for (group, rows) in decoder.groups()?.into_iter().enumerate() {
        decoder.column(group, column, |reader| {
            match reader {
                ColumnReader::DoubleColumnReader(reader) => {
                    let values = values(reader, rows, is_optional)?;
                    cells.extend(values.into_iter().map(|cell| cell.map(Cell::Number)));
                }
                ColumnReader::Int64ColumnReader(reader) => {
                    let values = values(reader, rows, is_optional)?;
                    cells.extend(values.into_iter().map(|cell| cell.map(Cell::Integer)));
                }
                ColumnReader::BoolColumnReader(reader) => {
                    let values = values(reader, rows, is_optional)?;
                    cells.extend(values.into_iter().map(|cell| cell.map(Cell::Switch)));
                }
                ColumnReader::ByteArrayColumnReader(reader) => {
                    for cell in values(reader, rows, is_optional)? {
                        let text = cell.as_ref().map(ByteArray::as_utf8).transpose()?;
                        cells.push(text.map(|text| Cell::Text(text.to_owned())));
                    }
                }
                _ => return Err(ParquetError::General("a column is of no type that is written here".into())),
            }
            Ok(())
        })?;
    }
    Ok(cells)
}

/// Calls `each` for every row of a file of the series.
pub(crate) fn read_series(path: &Path, each: &mut dyn FnMut(SeriesRow<'_>)) -> Result<(), ParquetError> {
    read(path, SERIES, &mut |columns, row| {
        let [t_s, element, index, metric, value] = columns else { return Ok(()) };
        each(SeriesRow {
            t_s: t_s.number(row),
            element: element.text(row)?.unwrap_or_default(),
            index: small(index.integer(row)),
            metric: metric.text(row)?.unwrap_or_default(),
            value: value.number(row),
        });
        Ok(())
    })
}

/// Calls `each` for every row of a file of events.
pub(crate) fn read_events(path: &Path, each: &mut dyn FnMut(EventRow<'_>)) -> Result<(), ParquetError> {
    read(path, EVENTS, &mut |columns, row| {
        let [t_s, element, index, event, detail, flow, flow_index, value] = columns else { return Ok(()) };
        each(EventRow {
            t_s: t_s.number(row),
            element: element.text(row)?.unwrap_or_default(),
            index: small(index.integer(row)),
            event: event.text(row)?.unwrap_or_default(),
            detail: detail.text(row)?,
            flow: flow.text(row)?,
            flow_index: small(flow_index.integer(row)),
            value: value.integer(row).unwrap_or_default(),
        });
        Ok(())
    })
}

fn small(value: Option<i64>) -> Option<u32> {
    value.and_then(|value| u32::try_from(value).ok())
}

/// A function that takes a row of a group's columns.
type EachRow<'a> = dyn FnMut(&[Column], usize) -> Result<(), ParquetError> + 'a;

/// Returns what the metadata of a table say of its run.
pub(crate) fn read_origin(path: &Path) -> Option<serde_json::Value> {
    let decoder = Decoder::open(path).ok()?;
    let said = decoder.metadata().key_value_metadata()?.iter();
    let of_run = said.filter(|said| said.key == METADATA).find_map(|said| said.value.as_ref())?;
    serde_json::from_str(of_run).ok()
}

fn read(path: &Path, schema: &str, each: &mut EachRow<'_>) -> Result<(), ParquetError> {
    let decoder = Decoder::open(path)?;
    let found = decoder.metadata().schema_descr();
    let expected = parse_message_type(schema)?;
    // Behind these it is told of which run the rows are, which who opened its folder knows.
    let same = |(found, expected): (&Arc<Type>, &Arc<Type>)| {
        found.is_primitive()
            && found.name() == expected.name()
            && found.get_physical_type() == expected.get_physical_type()
            && found.is_optional() == expected.is_optional()
    };
    let (fields, wanted) = (found.root_schema().get_fields(), expected.get_fields());
    if fields.len() < wanted.len() || !fields.iter().zip(wanted).all(same) {
        let names: Vec<&str> = wanted.iter().map(|field| field.name()).collect();
        return Err(ParquetError::General(format!("its columns are not {}", names.join(", "))));
    }
    for (group, rows) in decoder.groups()?.into_iter().enumerate() {
        let column = |column: usize| {
            let is_optional = wanted[column].is_optional();
            decoder.column(group, column, |reader| Column::read(reader, rows, is_optional))
        };
        let columns = (0..wanted.len()).map(column).collect::<Result<Vec<_>, _>>()?;
        for row in 0..rows {
            each(&columns, row)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_decimals_of_the_csv() {
        for at in [0, 1, 100_000_000_000, 5_080_123_456_789, (1 << 53) + 1, 86_399_999_999_999_999] {
            let decimal = format!("{}.{:012}", at / 1_000_000_000_000_u64, at % 1_000_000_000_000);
            assert_eq!(Ok(seconds(at)), decimal.parse(), "{at} ps");
        }
    }
}
