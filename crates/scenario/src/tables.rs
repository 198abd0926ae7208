//! The tables of a run as Parquet: the rows that `--series` and `--events` write as CSV.
//!
//! Columns have the same names, order and values as in the CSV; a field that is empty there is null
//! here. Nothing in a file depends on when or where it was written, so equal runs give equal bytes.
//! Rows go in groups, so writing and reading hold one group in memory beside the data.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use congestlab_net::packet::Picos;
use congestlab_sim::outcome::{Element, Event, Outcome, Sample};
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type};

use crate::Scenario;
use crate::metric::Reading;
use crate::result::Names;
use crate::seeds::SEED;
use crate::sweep::PointResult;

/// Rows that are written and read at once: a few megabytes, and what readers on several cores want.
const GROUP: usize = 1 << 17;

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
}";

/// A value of the time series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesRow<'a> {
    /// End of the bin, s.
    pub t_s: f64,
    /// A link or a group of flows.
    pub element: &'a str,
    /// Which flow of the group; `None` for a link.
    pub index: Option<u32>,
    /// Its name in contract section 5.
    pub metric: &'a str,
    /// Its value.
    pub value: f64,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventRow<'a> {
    /// When, s.
    pub t_s: f64,
    /// A link or a group of flows.
    pub element: &'a str,
    /// Which flow of the group; `None` for a link.
    pub index: Option<u32>,
    /// `drop`, `error`, `mark`, `timeout`, `retransmit`, `control-interval`.
    pub event: &'a str,
    /// Of a drop: the reason.
    pub detail: Option<&'a str>,
    /// At a link: the packet's group of flows.
    pub flow: Option<&'a str>,
    /// Which flow of that group.
    pub flow_index: Option<u32>,
    /// The segment, or the aggregate feedback (B/s) of a control interval.
    pub value: i64,
}

/// Part of a column, in memory.
enum Column {
    Numbers(Vec<f64>),
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<ByteArray>>),
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
}

impl Texts {
    fn new(scenario: &Scenario) -> Self {
        let model = scenario.base_model();
        Self {
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
    of_flows: bool,
) -> io::Result<()> {
    let (texts, mut metrics) = (Texts::new(scenario), Known::default());
    let mut samples =
        outcome.series.iter().filter(|sample| matches!(sample.element, Element::Flow(..)) == of_flows);
    write(out, SERIES, || {
        let group: Vec<&Sample> = samples.by_ref().take(GROUP).collect();
        let elements = group.iter().map(|sample| texts.element(sample.element));
        let (elements, indices) = elements.unzip();
        vec![
            Column::Numbers(group.iter().map(|sample| seconds(sample.at)).collect()),
            Column::Texts(elements),
            Column::Integers(indices),
            Column::Texts(group.iter().map(|sample| metrics.get(sample.metric)).collect()),
            Column::Numbers(group.iter().map(|sample| sample.value).collect()),
        ]
    })
}

/// Writes the events.
pub(crate) fn write_events(
    out: &mut (dyn Write + Send),
    scenario: &Scenario,
    outcome: &Outcome,
) -> io::Result<()> {
    let (texts, mut known) = (Texts::new(scenario), Known::default());
    let mut events = outcome.events.iter();
    write(out, EVENTS, || {
        let group: Vec<&Event> = events.by_ref().take(GROUP).collect();
        let (elements, indices) = group.iter().map(|event| texts.element(event.element)).unzip();
        let flow = |event: &&Event| event.flow.map(|flow| texts.names.group_of(flow));
        let flows = group.iter().map(flow);
        vec![
            Column::Numbers(group.iter().map(|event| seconds(event.at)).collect()),
            Column::Texts(elements),
            Column::Integers(indices),
            Column::Texts(group.iter().map(|event| known.get(event.kind)).collect()),
            Column::Texts(group.iter().map(|event| known.get(event.detail)).collect()),
            Column::Texts(flows.clone().map(|flow| Some(texts.groups[flow?.0].clone())).collect()),
            Column::Integers(flows.map(|flow| Some(flow?.1.into())).collect()),
            Column::Integers(group.iter().map(|event| Some(event.value)).collect()),
        ]
    })
}

struct PointRow<'a> {
    settings: String,
    seed: Option<i64>,
    metric: &'a str,
    index: Option<i64>,
    value: f64,
}

/// Writes what was read at each point of a sweep: its settings as a JSON object without the seed, the metric as the
/// file has it, the place in a list, the value: NaN where nothing was measured.
pub(crate) fn write_points(out: &mut (dyn Write + Send), points: &[PointResult]) -> io::Result<()> {
    let mut rows: Vec<PointRow<'_>> = Vec::new();
    for point in points {
        let seed =
            point.settings.iter().find(|(path, _)| path == SEED).and_then(|(_, seed)| seed.parse().ok());
        let settings: serde_json::Map<String, serde_json::Value> = point
            .settings
            .iter()
            .filter(|(path, _)| path != SEED)
            .map(|(path, value)| (path.clone(), value.as_str().into()))
            .collect();
        let settings = serde_json::Value::from(settings).to_string();
        for (metric, reading) in &point.readings {
            let (list, is_list) = match reading {
                Reading::List(list) => (list.as_slice(), true),
                single => (std::slice::from_ref(single), false),
            };
            for (index, value) in list.iter().enumerate() {
                let value = value.number().unwrap_or(f64::NAN);
                let index = is_list.then_some(index as i64);
                rows.push(PointRow { settings: settings.clone(), seed, metric, index, value });
            }
        }
    }
    let mut groups = rows.chunks(GROUP);
    write(out, POINTS, || {
        let group = groups.next().unwrap_or(&[]);
        vec![
            Column::Texts(group.iter().map(|row| Some(row.settings.as_str().into())).collect()),
            Column::Integers(group.iter().map(|row| row.seed).collect()),
            Column::Texts(group.iter().map(|row| Some(row.metric.into())).collect()),
            Column::Integers(group.iter().map(|row| row.index).collect()),
            Column::Numbers(group.iter().map(|row| row.value).collect()),
        ]
    })
}

/// Writes groups of rows until one is empty.
fn write(
    out: &mut (dyn Write + Send),
    schema: &str,
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
        .build();
    let write = || {
        let schema = Arc::new(parse_message_type(schema)?);
        let mut writer = SerializedFileWriter::new(&mut *out, schema, Arc::new(properties))?;
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
            Self::Integers(values) => values.is_empty(),
            Self::Texts(values) => values.is_empty(),
        }
    }

    fn write(self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        fn split<T>(values: Vec<Option<T>>) -> (Vec<T>, Vec<i16>) {
            let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
            (values.into_iter().flatten().collect(), levels)
        }
        match (self, writer) {
            (Self::Numbers(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(&values, None, None)?;
            }
            (Self::Integers(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                let (values, levels) = split(values);
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Self::Texts(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let (values, levels) = split(values);
                writer.write_batch(&values, Some(&levels), None)?;
            }
            _ => return Err(ParquetError::General("a column is not of its schema's type".into())),
        }
        Ok(())
    }

    fn read(reader: ColumnReader, rows: usize, is_optional: bool) -> Result<Self, ParquetError> {
        fn values<T: DataType>(
            mut reader: ColumnReaderImpl<T>,
            rows: usize,
            is_optional: bool,
        ) -> Result<Vec<Option<T::T>>, ParquetError> {
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            let (read, _, _) =
                reader.read_records(rows, is_optional.then_some(&mut levels), None, &mut values)?;
            if read != rows {
                return Err(ParquetError::General(format!("{read} rows where {rows} should be")));
            }
            if !is_optional {
                return Ok(values.into_iter().map(Some).collect());
            }
            let mut values = values.into_iter();
            Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
        }
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

/// What is done with a row of a group's columns.
type EachRow<'a> = dyn FnMut(&[Column], usize) -> Result<(), ParquetError> + 'a;

fn read(path: &Path, schema: &str, each: &mut EachRow<'_>) -> Result<(), ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let found = reader.metadata().file_metadata().schema_descr();
    let expected = parse_message_type(schema)?;
    let same = |(found, expected): (&Arc<Type>, &Arc<Type>)| {
        found.is_primitive()
            && found.name() == expected.name()
            && found.get_physical_type() == expected.get_physical_type()
            && found.is_optional() == expected.is_optional()
    };
    let (fields, wanted) = (found.root_schema().get_fields(), expected.get_fields());
    if fields.len() != wanted.len() || !fields.iter().zip(wanted).all(same) {
        let names: Vec<&str> = wanted.iter().map(|field| field.name()).collect();
        return Err(ParquetError::General(format!("its columns are not {}", names.join(", "))));
    }
    for group in 0..reader.num_row_groups() {
        let group: Box<dyn RowGroupReader + '_> = reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows())
            .ok()
            .filter(|&rows| rows <= GROUP)
            .ok_or_else(|| ParquetError::General("a group of rows has no possible length".into()))?;
        let columns = (0..wanted.len())
            .map(|column| Column::read(group.get_column_reader(column)?, rows, wanted[column].is_optional()))
            .collect::<Result<Vec<_>, _>>()?;
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
