//! Scenarios: read, found right, run.

use std::path::Path;
use std::sync::Arc;

use congestlab_scenario::{Measure, Scenario as Parsed, Varied};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::law::Laws;
use crate::run::{Origin, Run};
use crate::{sweep, wrong};

/// A scenario that was read and found right.
#[pyclass(frozen, module = "congestlab._native")]
pub(crate) struct Scenario {
    pub(crate) parsed: Arc<Parsed>,
    pub(crate) laws: Arc<Laws>,
}

/// The link law that belongs to flows with a law; `None`: links need none.
#[pyfunction]
pub(crate) fn link_law_of(law: &str) -> Option<&'static str> {
    congestlab_scenario::law::link_law_of(law)
}

/// Path of an axis and its values as TOML.
type Axis = (String, Vec<String>);

#[pymethods]
impl Scenario {
    /// Reads a file, or `text` in the name of the file. `overrides` are paths and TOML values, `grid` paths and lists of
    /// them, `laws` names of links or groups and the laws in Python that they have.
    #[new]
    #[pyo3(signature = (name, text, base, overrides, seed, grid, seeds, laws))]
    #[expect(clippy::too_many_arguments, reason = "Python's half gives each a name")]
    fn new(
        py: Python<'_>,
        name: &str,
        text: Option<&str>,
        base: &str,
        overrides: Vec<(String, String)>,
        seed: Option<u64>,
        grid: Vec<Axis>,
        seeds: Option<Vec<u64>>,
        laws: Vec<(String, Py<PyAny>)>,
    ) -> PyResult<Self> {
        let mut varied: Vec<Varied> =
            grid.into_iter().map(|(path, values)| Varied::new("grid", &path, values)).collect();
        if let Some(seeds) = seeds {
            let seeds = seeds.iter().map(u64::to_string).collect();
            varied.push(Varied::new("seeds", "run.seed", seeds));
        }
        let read = py.detach(|| match text {
            Some(text) => Parsed::parse_varied(name, text, Path::new(base), &overrides, seed, &varied),
            None => Parsed::load_varied(Path::new(name), &overrides, seed, &varied),
        });
        let parsed = Arc::new(read.map_err(|diagnostics| wrong(&diagnostics))?);
        let laws = Arc::new(Laws::new(py, &parsed.model(&Measure::default()), laws)?);
        Ok(Self { parsed, laws })
    }

    #[getter]
    fn name(&self) -> &str {
        self.parsed.name()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.parsed.seed()
    }

    /// As it was written.
    #[getter]
    fn written(&self) -> &str {
        self.parsed.written()
    }

    /// Every default written out.
    #[getter]
    fn normalised(&self) -> String {
        self.parsed.normalised()
    }

    /// Names of links with the laws of theirs.
    #[getter]
    fn links(&self) -> Vec<(String, Option<&'static str>)> {
        let model = self.parsed.model(&Measure::default());
        model.links.into_iter().map(|link| link.name).zip(self.parsed.link_laws()).collect()
    }

    /// Names of groups of flows, their laws, and how many flows there are.
    #[getter]
    fn groups(&self) -> Vec<(String, Option<&'static str>, u32)> {
        let model = self.parsed.model(&Measure::default());
        let groups = model.groups.into_iter().zip(self.parsed.flow_laws());
        groups.map(|(group, law)| (group.name, law, group.count)).collect()
    }

    /// Warnings, as JSON.
    #[getter]
    fn warnings(&self) -> String {
        self.parsed.warnings().to_json().to_string()
    }

    /// Checks sweep and claims too, and returns their warnings as JSON.
    fn check(&self) -> PyResult<String> {
        let warnings = self.parsed.check().map_err(|diagnostics| wrong(&diagnostics))?;
        Ok(warnings.to_json().to_string())
    }

    /// The points of the sweep: path, and value as TOML, of every axis.
    fn points(&self) -> Vec<Vec<(String, String)>> {
        let points = self.parsed.sweep().map_or(&[][..], |sweep| sweep.points());
        points.iter().map(|point| point.settings.clone()).collect()
    }

    /// Runs it. Python's half says when and where.
    fn run(
        &self,
        py: Python<'_>,
        series: bool,
        events: bool,
        threads: usize,
        host: String,
        date: String,
    ) -> PyResult<Run> {
        let measure = Measure { series, events };
        self.require_memory(&measure)?;
        let origin = Origin { scenario: Arc::clone(&self.parsed), laws: Arc::clone(&self.laws), threads };
        Run::new(py, origin, measure, host, date)
    }

    /// Sweeps in this process, on threads; `None`: parts are missing.
    fn sweep(
        &self,
        py: Python<'_>,
        folder: &str,
        threads: usize,
        shard: Option<(u64, u64)>,
    ) -> PyResult<Option<crate::table::Table>> {
        self.laws.require_none("a sweep")?;
        sweep::here(py, &self.parsed, Path::new(folder), threads, shard)
    }

    /// Sweeps by others: `work` is called with the places of the points to run and returns an iterator of what [`Scenario::run_points`] returned.
    fn sweep_elsewhere(
        &self,
        py: Python<'_>,
        folder: &str,
        work: Py<PyAny>,
    ) -> PyResult<Option<crate::table::Table>> {
        self.laws.require_none("a sweep")?;
        sweep::elsewhere(py, &self.parsed, Path::new(folder), &work)
    }

    /// Runs points of the sweep by their places; returns which code has run them, and a record of each.
    fn run_points(&self, py: Python<'_>, places: Vec<usize>) -> PyResult<(&'static str, Vec<sweep::Record>)> {
        self.laws.require_none("a sweep")?;
        Ok((crate::CODE, sweep::run_points(py, &self.parsed, &places)?))
    }
}

impl Scenario {
    fn require_memory(&self, measure: &Measure) -> PyResult<()> {
        let Some(available) = memory_available() else { return Ok(()) };
        self.parsed
            .require_memory(measure, available)
            .map_err(|diagnostics| PyMemoryError::new_err(diagnostics.to_string()))
    }
}

/// Bytes that a process can still take here; `None` if the machine does not say.
fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
