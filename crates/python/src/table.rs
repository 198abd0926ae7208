//! Tables for whoever reads the Arrow PyCapsule interface: polars, pandas, DuckDB, pyarrow.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array as _, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
};
use arrow_schema::{ArrowError, Field, Schema};
use congestlab_scenario::folder::{EventRow, FolderError, RunFolder, SeriesRow};
use congestlab_scenario::net::packet::Picos;
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::{Element, Outcome, Sample};
use congestlab_scenario::table::{Table as SweepTable, TableError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyCapsule};
use serde_json::{Map, Value as Json};

/// Rows that a reader gets at once.
const BATCH: usize = 1 << 17;

/// A table in memory, which its readers share.
#[pyclass(frozen, module = "congestlab")]
#[derive(Clone)]
pub(crate) struct Table(Arc<RecordBatch>);

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The schema that a reader asks for is a wish; the protocol allows to overhear it.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let (batch, rows) = (Arc::clone(&self.0), self.0.num_rows());
        // Slices share the memory.
        let slices = (0..rows.div_ceil(BATCH).max(1)).map(move |slice| {
            let first = slice * BATCH;
            Ok::<_, ArrowError>(batch.slice(first, BATCH.min(rows - first)))
        });
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(slices, self.0.schema()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    /// A table as pickles hold it.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Vec<Pickled<'py>>,))> {
        let schema = self.0.schema();
        let columns = schema.fields().iter().zip(self.0.columns());
        let columns =
            columns.map(|(field, array)| pickled(py, field.name(), array)).collect::<PyResult<_>>()?;
        Ok((py.import("congestlab._native")?.getattr("table")?, (columns,)))
    }

    fn __repr__(&self) -> String {
        format!("<congestlab.Table {} rows: {}>", self.__len__(), self.columns().join(", "))
    }
}

/// A column in a pickle: its name, one byte for each row (0: null), values of eight bytes, least significant first, and
/// the texts that values count; `None`: values are numbers, of the kind in the second place.
type Pickled<'py> = (String, &'static str, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Option<Vec<String>>);

fn pickled<'py>(py: Python<'py>, name: &str, array: &ArrayRef) -> PyResult<Pickled<'py>> {
    let is_there: Vec<u8> = (0..array.len()).map(|row| array.is_valid(row).into()).collect();
    let (kind, values, texts): (_, Vec<[u8; 8]>, _) = if let Some(array) =
        array.as_primitive_opt::<Float64Type>()
    {
        ("number", array.values().iter().map(|value| value.to_le_bytes()).collect(), None)
    } else if let Some(array) = array.as_primitive_opt::<Int64Type>() {
        ("integer", array.values().iter().map(|value| value.to_le_bytes()).collect(), None)
    } else {
        let array = array.as_dictionary_opt::<Int32Type>();
        let array = array.ok_or_else(|| PyRuntimeError::new_err(format!("{name} has a type of no table")))?;
        let texts = array.values().as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_owned());
        let values = array.keys().values().iter().map(|&key| i64::from(key).to_le_bytes());
        ("text", values.collect(), Some(texts.collect()))
    };
    let bytes = [is_there, values.concat()].map(|bytes| PyBytes::new(py, &bytes));
    let [is_there, values] = bytes;
    Ok((name.to_owned(), kind, is_there, values, texts))
}

/// Makes a table of what a pickle holds.
#[pyfunction]
pub(crate) fn table(
    columns: Vec<(String, String, PyBackedBytes, PyBackedBytes, Option<Vec<String>>)>,
) -> PyResult<Table> {
    let columns = columns.into_iter().map(|(name, kind, is_there, values, texts)| {
        let values = values.as_chunks::<8>().0.iter();
        let values = is_there.iter().zip(values).map(|(&is_there, &value)| (is_there != 0).then_some(value));
        let column = match (kind.as_str(), texts) {
            ("number", _) => Column::Number(values.map(|value| value.map(f64::from_le_bytes)).collect()),
            ("integer", _) => Column::Integer(values.map(|value| value.map(i64::from_le_bytes)).collect()),
            (_, texts) => {
                let texts = texts.unwrap_or_default();
                let mut column = StringDictionaryBuilder::default();
                for value in values {
                    let place = value.and_then(|value| usize::try_from(i64::from_le_bytes(value)).ok());
                    add(&mut column, place.and_then(|place| texts.get(place)).map(String::as_str));
                }
                Column::Text(Box::new(column))
            }
        };
        (name, column)
    });
    Table::new(columns.collect())
}

/// A column while rows are added.
pub(crate) enum Column {
    Number(Vec<Option<f64>>),
    Integer(Vec<Option<i64>>),
    /// Few different texts in many rows: a dictionary, which readers know as a categorical.
    Text(Box<StringDictionaryBuilder<Int32Type>>),
}

impl Column {
    fn finish(self) -> ArrayRef {
        match self {
            Self::Number(values) => Arc::new(Float64Array::from(values)),
            Self::Integer(values) => Arc::new(Int64Array::from(values)),
            Self::Text(mut builder) => Arc::new(builder.finish()),
        }
    }
}

/// Appends to a text column; `None` is null.
fn add(builder: &mut StringDictionaryBuilder<Int32Type>, text: Option<&str>) {
    builder.append_option(text);
}

impl Table {
    pub(crate) fn new(columns: Vec<(String, Column)>) -> PyResult<Self> {
        let arrays: Vec<(String, ArrayRef)> =
            columns.into_iter().map(|(name, column)| (name, column.finish())).collect();
        let fields = arrays.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema, arrays.into_iter().map(|(_, array)| array).collect());
        let batch = batch.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Self(Arc::new(batch)))
    }
}

/// The index of an element in its group; [`NO_INDEX`]: it has none. Not null, since pandas drops null keys from its
/// group-bys and pivots without a word.
fn index(index: Option<u32>) -> i64 {
    index.map_or(NO_INDEX, i64::from)
}

/// The index of links, and of rows of a whole run.
const NO_INDEX: i64 = -1;

/// Rows of time series.
#[derive(Default)]
pub(crate) struct SeriesRows {
    time: Vec<Option<f64>>,
    kind: StringDictionaryBuilder<Int32Type>,
    element: StringDictionaryBuilder<Int32Type>,
    index: Vec<Option<i64>>,
    metric: StringDictionaryBuilder<Int32Type>,
    value: Vec<Option<f64>>,
}

impl SeriesRows {
    fn add(&mut self, kind: &str, row: SeriesRow<'_>) {
        self.time.push(Some(row.t_s));
        add(&mut self.kind, Some(kind));
        add(&mut self.element, Some(row.element));
        self.index.push(Some(index(row.index)));
        add(&mut self.metric, Some(row.metric));
        self.value.push(Some(row.value));
    }

    fn finish(self) -> PyResult<Table> {
        Table::new(vec![
            ("t_s".into(), Column::Number(self.time)),
            ("kind".into(), Column::Text(Box::new(self.kind))),
            ("element".into(), Column::Text(Box::new(self.element))),
            ("index".into(), Column::Integer(self.index)),
            ("metric".into(), Column::Text(Box::new(self.metric))),
            ("value".into(), Column::Number(self.value)),
        ])
    }

    pub(crate) fn of(model: &Model, outcome: &Outcome) -> PyResult<Table> {
        let names = Names::new(model);
        let mut rows = Self::default();
        let is_of_flow = |sample: &&Sample| matches!(sample.element, Element::Flow(..));
        // Flows first, as in the files of a folder.
        let flows = outcome.series.iter().filter(is_of_flow);
        for sample in flows.chain(outcome.series.iter().filter(|sample| !is_of_flow(sample))) {
            let (element, index) = names.element(sample.element);
            let kind = if is_of_flow(&sample) { "flow" } else { "link" };
            let (t_s, metric, value) = (seconds(sample.at), sample.metric, sample.value);
            rows.add(kind, SeriesRow { t_s, element, index, metric, value });
        }
        rows.finish()
    }

    pub(crate) fn read(folder: &RunFolder) -> Result<PyResult<Table>, FolderError> {
        let mut rows = Self::default();
        folder.flow_series(|row| rows.add("flow", row))?;
        folder.link_series(|row| rows.add("link", row))?;
        Ok(rows.finish())
    }
}

/// Rows of events.
#[derive(Default)]
pub(crate) struct EventRows {
    time: Vec<Option<f64>>,
    element: StringDictionaryBuilder<Int32Type>,
    index: Vec<Option<i64>>,
    event: StringDictionaryBuilder<Int32Type>,
    detail: StringDictionaryBuilder<Int32Type>,
    flow: StringDictionaryBuilder<Int32Type>,
    flow_index: Vec<Option<i64>>,
    value: Vec<Option<i64>>,
}

impl EventRows {
    fn add(&mut self, row: EventRow<'_>) {
        self.time.push(Some(row.t_s));
        add(&mut self.element, Some(row.element));
        self.index.push(Some(index(row.index)));
        add(&mut self.event, Some(row.event));
        add(&mut self.detail, row.detail);
        add(&mut self.flow, row.flow);
        self.flow_index.push(row.flow_index.map(i64::from));
        self.value.push(Some(row.value));
    }

    fn finish(self) -> PyResult<Table> {
        Table::new(vec![
            ("t_s".into(), Column::Number(self.time)),
            ("element".into(), Column::Text(Box::new(self.element))),
            ("index".into(), Column::Integer(self.index)),
            ("event".into(), Column::Text(Box::new(self.event))),
            ("detail".into(), Column::Text(Box::new(self.detail))),
            ("flow".into(), Column::Text(Box::new(self.flow))),
            ("flow_index".into(), Column::Integer(self.flow_index)),
            ("value".into(), Column::Integer(self.value)),
        ])
    }

    pub(crate) fn of(model: &Model, outcome: &Outcome) -> PyResult<Table> {
        let names = Names::new(model);
        let mut rows = Self::default();
        for event in &outcome.events {
            let (element, index) = names.element(event.element);
            let flow = event.flow.map(|flow| names.flow(flow));
            rows.add(EventRow {
                t_s: seconds(event.at),
                element,
                index,
                event: event.kind,
                detail: Some(event.detail).filter(|detail| !detail.is_empty()),
                flow: flow.map(|(name, _)| name),
                flow_index: flow.map(|(_, index)| index),
                value: event.value,
            });
        }
        rows.finish()
    }

    pub(crate) fn read(folder: &RunFolder) -> Result<PyResult<Table>, FolderError> {
        let mut rows = Self::default();
        folder.events(|row| rows.add(row))?;
        Ok(rows.finish())
    }
}

/// Names of a model's elements.
struct Names<'a> {
    model: &'a Model,
    /// First flow of each group, over the whole run.
    first: Vec<u32>,
}

impl<'a> Names<'a> {
    fn new(model: &'a Model) -> Self {
        let first = model.groups.iter().scan(0, |next, group| {
            let first = *next;
            *next += group.count;
            Some(first)
        });
        Self { first: first.collect(), model }
    }

    fn element(&self, element: Element) -> (&'a str, Option<u32>) {
        match element {
            Element::Link(link) => (&self.model.links[link as usize].name, None),
            Element::Cloud(link, number) => (&self.model.links[link as usize].name, Some(number)),
            Element::Flow(group, flow) => (&self.model.groups[group as usize].name, Some(flow)),
        }
    }

    fn flow(&self, flow: u32) -> (&'a str, u32) {
        let group = self.first.partition_point(|&first| first <= flow).saturating_sub(1);
        (&self.model.groups[group].name, flow - self.first[group])
    }
}

fn seconds(at: Picos) -> f64 {
    at as f64 / 1e12
}

/// The results of flows: a row for each, with the numbers of the object of results.
pub(crate) fn flows(summary: &Json, laws: &[Option<&str>]) -> PyResult<Table> {
    let mut rows = Wide::new(&["group", "law"], &["index"]);
    let none = Map::new();
    for (place, (group, flows)) in summary["flows"].as_object().unwrap_or(&none).iter().enumerate() {
        for (index, flow) in flows.as_array().into_iter().flatten().enumerate() {
            rows.begin(&[Some(group), laws.get(place).copied().flatten()], &[index as i64]);
            rows.numbers(flow, "");
        }
    }
    rows.finish()
}

/// The results of links: a row for each, with the numbers of the object of results.
pub(crate) fn links(summary: &Json, laws: &[Option<&str>]) -> PyResult<Table> {
    let mut rows = Wide::new(&["link", "law"], &[]);
    let none = Map::new();
    for (place, (name, link)) in summary["links"].as_object().unwrap_or(&none).iter().enumerate() {
        rows.begin(&[Some(name), laws.get(place).copied().flatten()], &[]);
        rows.numbers(link, "");
    }
    rows.finish()
}

/// Rows whose columns are found on the way: what a row lacks is null.
struct Wide {
    texts: Vec<(String, StringDictionaryBuilder<Int32Type>)>,
    integers: Vec<(String, Vec<Option<i64>>)>,
    places: BTreeMap<String, usize>,
    numbers: Vec<(String, Vec<Option<f64>>)>,
    rows: usize,
}

impl Wide {
    fn new(texts: &[&str], integers: &[&str]) -> Self {
        Self {
            texts: texts.iter().map(|name| ((*name).to_owned(), Default::default())).collect(),
            integers: integers.iter().map(|name| ((*name).to_owned(), Vec::new())).collect(),
            places: BTreeMap::new(),
            numbers: Vec::new(),
            rows: 0,
        }
    }

    fn begin(&mut self, texts: &[Option<&str>], integers: &[i64]) {
        for ((_, column), text) in self.texts.iter_mut().zip(texts) {
            add(column, *text);
        }
        for ((_, column), integer) in self.integers.iter_mut().zip(integers) {
            column.push(Some(*integer));
        }
        self.rows += 1;
    }

    /// Every number of an object, and of the objects in it: `drops_by_reason.queue-full`.
    fn numbers(&mut self, object: &Json, above: &str) {
        for (key, value) in object.as_object().into_iter().flatten() {
            let name = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
            match value {
                Json::Object(_) => self.numbers(value, &name),
                Json::Number(_) | Json::Null => {
                    let next = self.numbers.len();
                    let place = *self.places.entry(name.clone()).or_insert(next);
                    if place == next {
                        self.numbers.push((name, Vec::new()));
                    }
                    let column = &mut self.numbers[place].1;
                    column.resize(self.rows - 1, None);
                    column.push(value.as_f64());
                }
                Json::Bool(_) | Json::String(_) | Json::Array(_) => {}
            }
        }
    }

    fn finish(self) -> PyResult<Table> {
        let texts = self.texts.into_iter().map(|(name, column)| (name, Column::Text(Box::new(column))));
        let integers = self.integers.into_iter().map(|(name, column)| (name, Column::Integer(column)));
        let rows = self.rows;
        let numbers = self.numbers.into_iter().map(|(name, mut column)| {
            column.resize(rows, None);
            (name, Column::Number(column))
        });
        Table::new(texts.chain(integers).chain(numbers).collect())
    }
}

/// Columns of a sweep's table that are integers, whatever it varies.
const INTEGERS: [&str; 3] = ["point", "seed", "index"];

/// The table of a sweep.
pub(crate) fn of_sweep(table: &SweepTable) -> Result<PyResult<Table>, TableError> {
    let mut columns = Vec::new();
    for name in table.columns() {
        let numbers = table.numbers(name)?;
        let axis = table.axes().iter().find(|axis| axis.column == *name);
        let is_whole = axis.is_some_and(|axis| axis.values.iter().all(|value| value.parse::<i64>().is_ok()));
        let column = if name == "index" {
            Column::Integer(
                numbers.iter().map(|number| Some(number.map_or(NO_INDEX, |number| number as i64))).collect(),
            )
        } else if numbers.iter().any(Option::is_some) {
            if is_whole || INTEGERS.contains(&name.as_str()) {
                Column::Integer(numbers.iter().map(|number| number.map(|number| number as i64)).collect())
            } else {
                Column::Number(numbers)
            }
        } else {
            let texts = table.texts(name)?;
            if texts.iter().any(Option::is_some) {
                let mut column = StringDictionaryBuilder::default();
                texts.iter().for_each(|text| add(&mut column, text.as_deref()));
                Column::Text(Box::new(column))
            } else {
                Column::Number(numbers)
            }
        };
        columns.push((name.clone(), column));
    }
    Ok(Table::new(columns))
}
