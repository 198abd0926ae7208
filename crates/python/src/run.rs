//! What came of a run, in memory or on disk.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use congestlab_scenario::capture::{Capture, CaptureError};
use congestlab_scenario::chart::{self, ChartError, Mark, Wish, looks};
use congestlab_scenario::compare::{self, CompareError, QUANTITIES};
use congestlab_scenario::diagnostic::Diagnostic;
use congestlab_scenario::diff;
use congestlab_scenario::explain::{ExplainError, Flow, explain};
use congestlab_scenario::folder::{FolderError, RunFolder};
use congestlab_scenario::qlog::{self, Schema};
use congestlab_scenario::recording::Recording;
use congestlab_scenario::report::{self, html};
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::style::Dash;
use congestlab_scenario::units::Time;
use congestlab_scenario::{Measure, Scenario as Parsed, export as formats, store};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::law::{Laws, Trouble};
use crate::table::{self, EventRows, SeriesRows, Table};
use crate::wait::{wait, wait_for_laws};
use crate::{VERSION, refused};

/// What a run is made from: made again, it is the same.
pub(crate) struct Origin {
    pub(crate) scenario: Arc<Parsed>,
    pub(crate) laws: Arc<Laws>,
    pub(crate) threads: usize,
}

impl Origin {
    /// Simulates, with the records that `measure` selects.
    fn simulate(&self, py: Python<'_>, measure: &Measure) -> PyResult<(Model, Outcome)> {
        let trouble = Arc::new(Trouble::default());
        let mut model = self.scenario.model(measure);
        self.laws.put(&mut model, &trouble);
        let (name, estimate) = (self.scenario.name().to_owned(), self.scenario.estimate(measure));
        // Python's laws take turns anyhow: the simplest engine is the one to look into.
        let engine = if self.laws.is_empty() {
            Engine::Window { threads: self.threads.max(1), divisor: 1 }
        } else {
            Engine::Reference
        };
        // A law that never returns keeps all of this, when nobody waits for it any more.
        let told = Arc::clone(&trouble);
        let run = move || {
            let outcome = sim::run(&model, engine, told.stop(), &mut |come| {
                if let Some(text) = estimate.stopped(&name, come, None, None) {
                    told.tell(PyMemoryError::new_err(text));
                }
            });
            (model, outcome)
        };
        let done = if self.laws.is_empty() {
            wait(py, trouble.stop(), run)?
        } else {
            wait_for_laws(py, &trouble, None, run)?
        };
        trouble.raise()?;
        Ok(done)
    }
}

/// Where the numbers are.
enum Source {
    Memory(Box<Simulated>),
    /// A folder; that of a run from a pickle goes with the run.
    Disk(Box<RunFolder>, #[expect(dead_code, reason = "the folder is removed with the run")] Option<TempDir>),
}

struct Simulated {
    origin: Origin,
    measure: Measure,
    meta: Meta,
    model: Model,
    outcome: Outcome,
    /// The same run with series and events, if somebody has asked for what the first lacks.
    whole: OnceLock<Outcome>,
    /// The folder that the command would have written, for what reads folders.
    folder: OnceLock<(TempDir, RunFolder)>,
}

/// What came of a run.
#[pyclass(frozen, module = "congestlab._native")]
pub(crate) struct Run {
    summary: Json,
    source: Source,
    tables: [OnceLock<Table>; 4],
}

const FLOWS: usize = 0;
const LINKS: usize = 1;
const SERIES: usize = 2;
const EVENTS: usize = 3;

#[expect(clippy::disallowed_methods, reason = "told as what the run took; no result depends on it")]
fn now() -> Instant {
    Instant::now()
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Run {
    pub(crate) fn new(
        py: Python<'_>,
        origin: Origin,
        measure: Measure,
        host: String,
        date: String,
    ) -> PyResult<Self> {
        let (wall, cpu) = (now(), processor_seconds());
        let (model, outcome) = origin.simulate(py, &measure)?;
        let meta = Meta {
            wall_s: wall.elapsed().as_secs_f64(),
            cpu_s: processor_seconds() - cpu,
            host,
            version: VERSION.to_owned(),
            date,
        };
        let summary = py.detach(|| RunResult::new(&origin.scenario, &outcome, meta.clone()).to_json());
        let (whole, folder) = (OnceLock::new(), OnceLock::new());
        let simulated = Simulated { origin, measure, meta, model, outcome, whole, folder };
        Ok(Self { summary, source: Source::Memory(Box::new(simulated)), tables: Default::default() })
    }

    fn scenario(&self) -> &Parsed {
        match &self.source {
            Source::Memory(simulated) => &simulated.origin.scenario,
            Source::Disk(folder, _) => folder.scenario(),
        }
    }

    fn require_no_laws(&self, what: &str) -> PyResult<()> {
        match &self.source {
            Source::Memory(simulated) => simulated.origin.laws.require_none(what),
            Source::Disk(..) => Ok(()),
        }
    }

    /// The folder of the run, for what simulates it again by its file.
    fn as_command(&self, py: Python<'_>, what: &str) -> PyResult<&RunFolder> {
        self.require_no_laws(what)?;
        self.folder(py)
    }

    fn table(&self, place: usize, make: impl FnOnce(&Self) -> PyResult<Table>) -> PyResult<Table> {
        if let Some(table) = self.tables[place].get() {
            return Ok(table.clone());
        }
        // Made twice by two threads, both are equal.
        let table = make(self)?;
        Ok(self.tables[place].get_or_init(|| table).clone())
    }

    /// The folder of the run, as the command writes and reads it.
    fn folder(&self, py: Python<'_>) -> PyResult<&RunFolder> {
        let simulated = match &self.source {
            Source::Disk(folder, _) => return Ok(folder),
            Source::Memory(simulated) => simulated,
        };
        if let Some((_, folder)) = simulated.folder.get() {
            return Ok(folder);
        }
        let outcome = simulated.with(py, &Measure { series: true, events: true })?;
        let written = py.detach(|| {
            let place = tempfile::tempdir().map_err(PyOSError::new_err)?;
            let path = simulated.write(place.path(), outcome)?;
            let folder = RunFolder::open(&path).map_err(unreadable)?;
            Ok::<_, PyErr>((place, folder))
        })?;
        Ok(&simulated.folder.get_or_init(|| written).1)
    }
}

impl Simulated {
    /// The outcome with all of these records. What was not recorded is simulated again, bit for bit.
    fn with(&self, py: Python<'_>, measure: &Measure) -> PyResult<&Outcome> {
        let has = |has: bool, wanted: bool| has || !wanted;
        if has(self.measure.series, measure.series) && has(self.measure.events, measure.events) {
            return Ok(&self.outcome);
        }
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let (_, outcome) = self.origin.simulate(py, &Measure { series: true, events: true })?;
        Ok(self.whole.get_or_init(|| outcome))
    }

    fn write(&self, out: &Path, outcome: &Outcome) -> PyResult<PathBuf> {
        let result = RunResult::new(&self.origin.scenario, outcome, self.meta.clone());
        store::write_run(out, VERSION, &self.origin.scenario, outcome, &result).map_err(PyOSError::new_err)
    }
}

fn interrupted() -> PyErr {
    PyKeyboardInterrupt::new_err("interrupted")
}

fn unreadable(error: FolderError) -> PyErr {
    match error {
        FolderError::NoFolder(_) | FolderError::File(_) => {
            pyo3::exceptions::PyFileNotFoundError::new_err(error.to_string())
        }
        FolderError::Unreadable { .. } => PyOSError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

#[pymethods]
impl Run {
    /// The object of results, as JSON.
    #[getter]
    fn json(&self) -> String {
        self.summary.to_string()
    }

    #[getter]
    fn fingerprint(&self) -> &str {
        self.summary["fingerprint"].as_str().unwrap_or_default()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.scenario().seed()
    }

    #[getter]
    fn name(&self) -> String {
        match &self.source {
            Source::Memory(simulated) => simulated.origin.scenario.name().to_owned(),
            Source::Disk(folder, _) => {
                let name = folder.name();
                name.rsplitn(3, '-').nth(2).unwrap_or(&name).to_owned()
            }
        }
    }

    /// Version of congestlab that made the run.
    #[getter]
    fn version(&self) -> &str {
        self.summary["meta"]["version"].as_str().unwrap_or("unknown")
    }

    /// Warnings of the command, as JSON.
    #[getter]
    fn warnings(&self) -> String {
        let (scenario, ignored) = (self.scenario(), self.scenario().ignored());
        let all = scenario.warnings().iter().chain(ignored.iter());
        all.map(Diagnostic::to_json).collect::<Json>().to_string()
    }

    /// The name of the folder of the run and its files, for a pickle.
    fn files<'py>(&self, py: Python<'py>) -> PyResult<(String, Vec<(String, Bound<'py, PyBytes>)>)> {
        let folder = self.folder(py)?;
        let names = folder.summary()[store::FILES].as_object().into_iter().flatten();
        let names = names.map(|(name, _)| name.as_str()).chain([store::SUMMARY]);
        let files = names.map(|name| {
            let bytes = std::fs::read(folder.path().join(name)).map_err(PyOSError::new_err)?;
            Ok((name.to_owned(), PyBytes::new(py, &bytes)))
        });
        Ok((folder.name(), files.collect::<PyResult<_>>()?))
    }

    #[getter]
    fn is_live(&self) -> bool {
        matches!(&self.source, Source::Disk(folder, _) if folder.is_live())
    }

    /// Every default written out.
    #[getter]
    fn normalised(&self) -> String {
        self.scenario().normalised()
    }

    #[getter]
    fn flows(&self) -> PyResult<Table> {
        self.table(FLOWS, |run| table::flows(&run.summary, &run.scenario().flow_laws()))
    }

    #[getter]
    fn links(&self) -> PyResult<Table> {
        self.table(LINKS, |run| table::links(&run.summary, &run.scenario().link_laws()))
    }

    #[getter]
    fn series(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(SERIES, |run| match &run.source {
            Source::Disk(folder, _) => py.detach(|| SeriesRows::read(folder)).map_err(unreadable)?,
            Source::Memory(simulated) => {
                let outcome = simulated.with(py, &Measure { series: true, events: false })?;
                py.detach(|| SeriesRows::of(&simulated.model, outcome))
            }
        })
    }

    #[getter]
    fn events(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(EVENTS, |run| match &run.source {
            Source::Disk(folder, _) => py.detach(|| EventRows::read(folder)).map_err(unreadable)?,
            Source::Memory(simulated) => {
                let outcome = simulated.with(py, &Measure { series: false, events: true })?;
                py.detach(|| EventRows::of(&simulated.model, outcome))
            }
        })
    }

    /// Why a packet got its feedback, as JSON.
    fn explain(&self, py: Python<'_>, flow: &str, at: &str, link: Option<&str>) -> PyResult<String> {
        if self.is_live() {
            return Err(refused(
                "the run is live: nobody saw each of its packets",
                "explain a simulation of it",
            ));
        }
        let (scenario, folder, trouble): (_, _, Arc<Trouble>) = match &self.source {
            Source::Disk(folder, _) => {
                folder.require_version(VERSION).map_err(unreadable)?;
                (folder.scenario().clone(), Some(&**folder), Arc::default())
            }
            Source::Memory(simulated) => {
                let (mut scenario, trouble) = ((*simulated.origin.scenario).clone(), Arc::default());
                scenario.change_model(|model| simulated.origin.laws.put(model, &trouble));
                (scenario, None, trouble)
            }
        };
        let flow = Flow::parse(&scenario, flow).map_err(|error| refused(&error, &error.help))?;
        let at: Time = at.parse().map_err(|error| refused(error, "a time, such as \"20 s\""))?;
        let explained = match folder {
            Some(_) => wait(py, trouble.stop(), || {
                explain(&scenario, folder, flow, at, link, trouble.stop(), &mut |_| {})
            })?,
            // A law that never returns keeps all of this.
            None => {
                let (link, told) = (link.map(str::to_owned), Arc::clone(&trouble));
                wait_for_laws(py, &trouble, None, move || {
                    explain(&scenario, None, flow, at, link.as_deref(), told.stop(), &mut |_| {})
                })?
            }
        };
        trouble.raise()?;
        let explained = explained.map_err(|error| match error {
            ExplainError::Refused(error) => refused(&error, &error.help),
            ExplainError::Folder(error) => unreadable(error),
            ExplainError::Differs { .. } => PyValueError::new_err(error.to_string()),
        })?;
        Ok(json!(explained).to_string())
    }

    /// How far the runs agree, as JSON. Tolerances replace those of quantities by name.
    fn compare(&self, py: Python<'_>, other: &Self, tolerances: Vec<(String, f64)>) -> PyResult<String> {
        let mut quantities = QUANTITIES;
        for (name, tolerance) in tolerances {
            let mut found = quantities.iter_mut().filter(|quantity| quantity.name == name).peekable();
            if found.peek().is_none() {
                let mut names: Vec<&str> = QUANTITIES.iter().map(|quantity| quantity.name).collect();
                names.dedup();
                let help = format!("allowed: {}", names.join(", "));
                return Err(refused(format!("there is no quantity `{name}`"), help));
            }
            found.for_each(|quantity| quantity.tolerance = Some(tolerance));
        }
        let runs = [self.folder(py)?, other.folder(py)?];
        let compared = py.detach(|| compare::compare(runs, &quantities));
        let compared = compared.map_err(|error| match error {
            CompareError::Folder(error) => unreadable(error),
            CompareError::Different(_) => refused(error, "compare runs of one scenario"),
        })?;
        Ok(json!(compared).to_string())
    }

    /// The differences of two runs of the simulator, as JSON. Metrics may differ by `tolerance` of their value.
    fn diff(&self, py: Python<'_>, other: &Self, tolerance: f64) -> PyResult<String> {
        if !(0.0..=1.0).contains(&tolerance) {
            return Err(refused(format!("tolerance is {tolerance}"), "allowed: 0 to 1, such as 0.01"));
        }
        let runs = [self.as_command(py, "differences")?, other.as_command(py, "differences")?];
        let stop = AtomicBool::new(false);
        let found = wait(py, &stop, || diff::diff(runs, tolerance, VERSION, &stop))?.map_err(unreadable)?;
        Ok(json!(found.ok_or_else(interrupted)?).to_string())
    }

    /// The run in a format of other programs: `qlog` in a version of that, or `openmetrics`.
    fn export(&self, py: Python<'_>, format: &str, schema: Option<&str>) -> PyResult<String> {
        let schema = match (format, schema) {
            ("openmetrics", None) => return Ok(formats::open_metrics(self.as_command(py, "an export")?)),
            ("qlog", None | Some("0.3")) => Schema::V03,
            ("qlog", Some("draft-14")) => Schema::Draft14,
            ("qlog", Some(schema)) => {
                return Err(refused(
                    format!("there is no version {schema} of qlog"),
                    "allowed: 0.3, draft-14",
                ));
            }
            ("openmetrics", Some(_)) => {
                return Err(refused("schema is a version of qlog", "leave it out"));
            }
            _ => return Err(refused(format!("there is no format `{format}`"), "allowed: qlog, openmetrics")),
        };
        let run = self.as_command(py, "an export")?;
        let stop = AtomicBool::new(false);
        let text = wait(py, &stop, || qlog::qlog(run, schema, VERSION, &stop))?.map_err(unreadable)?;
        text.ok_or_else(interrupted)
    }

    /// Simulates again, and writes the packets of every link into a folder. Returns the paths of the files.
    fn pcap(&self, py: Python<'_>, folder: PathBuf, snaplen: u16) -> PyResult<Vec<PathBuf>> {
        if self.is_live() {
            return Err(refused(
                "the run is live: nobody saw each of its packets",
                "capture a simulation of it",
            ));
        }
        if let Source::Disk(folder, _) = &self.source {
            folder.require_version(VERSION).map_err(unreadable)?;
        }
        self.require_no_laws("a capture")?;
        let scenario = self.scenario();
        let model = scenario.model(&Measure::default());
        let stop = AtomicBool::new(false);
        let failed = |error: CaptureError| {
            let path = error.path.display();
            PyOSError::new_err(format!("can not write {path}: {}", error.error))
        };
        let capture = Capture::create(&folder, scenario, VERSION, snaplen, &stop).map_err(failed)?;
        let paths = capture.paths();
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let finished = wait(py, &stop, || {
            let outcome = sim::run_tapped(&model, engine, &stop, &mut |_| {}, Some(&capture));
            (capture.finish(outcome.complete), outcome.complete)
        })?;
        match finished {
            (Err(error), _) => Err(failed(error)),
            (Ok(()), true) => Ok(paths),
            (Ok(()), false) => Err(interrupted()),
        }
    }

    /// The report, as one HTML file.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let (recording, written) = match &self.source {
            Source::Disk(folder, _) => {
                let recording = py.detach(|| Recording::read(folder)).map_err(unreadable)?;
                (recording, folder.written())
            }
            Source::Memory(simulated) => {
                let outcome = simulated.with(py, &Measure { series: true, events: true })?;
                let scenario = &simulated.origin.scenario;
                (py.detach(|| Recording::of(scenario, outcome)), Some(scenario.written().to_owned()))
            }
        };
        let normalised = self.scenario().normalised();
        let name = self.name();
        let run = report::Run {
            name: &name,
            written: written.as_deref(),
            normalised: &normalised,
            summary: &self.summary,
        };
        Ok(py.detach(|| html(&run, &recording)))
    }

    /// Writes the folder of the run below `out`, as the command does; returns its path.
    fn save(&self, py: Python<'_>, out: PathBuf) -> PyResult<PathBuf> {
        match &self.source {
            Source::Disk(folder, _) => {
                Err(refused(format!("the run is on disk, in {}", folder.path().display()), "copy its folder"))
            }
            Source::Memory(simulated) => {
                simulated.origin.laws.require_none("a folder")?;
                let outcome = simulated.with(py, &Measure { series: true, events: true })?;
                py.detach(|| simulated.write(&out, outcome))
            }
        }
    }

    /// What runs show over time, with the look of each curve, as JSON.
    #[staticmethod]
    fn picture(
        py: Python<'_>,
        runs: Vec<PyRef<'_, Self>>,
        y: Option<String>,
        kind: Option<&str>,
    ) -> PyResult<String> {
        let kind = match kind {
            None => None,
            Some(name) => Some(chart::Kind::named(name).ok_or_else(|| {
                refused(
                    format!("there is no kind `{name}` of picture"),
                    "allowed: see `congestlab export figure --help`",
                )
            })?),
        };
        let folders = runs.iter().map(|run| run.folder(py).cloned()).collect::<PyResult<Vec<_>>>()?;
        let wish = Wish { kind, y, ..Wish::default() };
        let picture = py.detach(|| chart::over_time(&folders, &wish)).map_err(no_chart)?;
        let panels: Vec<Json> = picture.panels.iter().map(panel).collect();
        Ok(json!({ "x": picture.x_label, "panels": panels, "note": picture.note }).to_string())
    }
}

fn no_chart(error: ChartError) -> PyErr {
    match error {
        ChartError::Unknown { ref allowed, .. } => refused(&error, allowed),
        ChartError::Nothing { ref help, .. } => refused(&error, help),
        ChartError::Folder(error) => unreadable(error),
        ChartError::Table(_) => PyValueError::new_err(error.to_string()),
    }
}

fn panel(panel: &chart::Panel) -> Json {
    let curves: Vec<(&str, Option<&str>)> = panel
        .curves
        .iter()
        .filter(|curve| !matches!(curve.mark, Mark::Bound(_)))
        .map(|curve| (curve.name.as_str(), curve.law.as_deref()))
        .collect();
    let looks = looks(&curves);
    let curve = |curve: &chart::Curve| {
        let look = looks.iter().find(|(name, _)| *name == curve.name).map(|(_, look)| *look);
        let (colour, dash): (&str, Dash) = match (curve.mark, look) {
            (Mark::Bound(bound), _) => (bound.colour.light, bound.dash),
            (_, Some(look)) => (look.colour().light, look.dash),
            (_, None) => ("#222222", &[]),
        };
        json!({
            "name": curve.name,
            "law": curve.law,
            "mark": match curve.mark {
                Mark::Line => "line",
                Mark::Thin => "thin",
                Mark::Measured => "measured",
                Mark::Bound(_) => "bound",
            },
            "colour": colour,
            "dash": dash,
            "marker": look.map(|look| look.marker.matplotlib()),
            "points": curve.points,
            "spread": curve.spread,
        })
    };
    let curves: Vec<Json> = panel.curves.iter().map(curve).collect();
    json!({ "label": panel.label, "is_logarithmic": panel.is_logarithmic, "curves": curves })
}

/// Opens the folder of a run.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Run> {
    let folder = py.detach(|| RunFolder::open(&path)).map_err(unreadable)?;
    let summary = folder.summary().clone();
    Ok(Run { summary, source: Source::Disk(Box::new(folder), None), tables: Default::default() })
}

/// Makes a run of the files that a pickle holds.
#[pyfunction]
pub(crate) fn unpickled(py: Python<'_>, name: &str, files: Vec<(String, PyBackedBytes)>) -> PyResult<Run> {
    let (place, folder) = py.detach(|| {
        let place = tempfile::tempdir().map_err(PyOSError::new_err)?;
        let path = place.path().join(Path::new(name).file_name().unwrap_or("run".as_ref()));
        std::fs::create_dir(&path).map_err(PyOSError::new_err)?;
        for (name, bytes) in &files {
            let name = Path::new(name).file_name().unwrap_or_default();
            std::fs::write(path.join(name), bytes).map_err(PyOSError::new_err)?;
        }
        Ok::<_, PyErr>((place, RunFolder::open(&path).map_err(unreadable)?))
    })?;
    let summary = folder.summary().clone();
    Ok(Run { summary, source: Source::Disk(Box::new(folder), Some(place)), tables: Default::default() })
}

/// The style sheet for matplotlib, of pictures so many inches wide.
#[pyfunction]
pub(crate) fn style(width_in: f64) -> String {
    chart::mplstyle(width_in)
}
