//! Sweeps: on threads of this process, or by others, who need not see the folder.

use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use congestlab_scenario::result::Meta;
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::sweep::{self, Elsewhere, Options, Results, Shard, SweepError, Work, run_point};
use congestlab_scenario::table::{self, Table as SweepTable, TableError};
use congestlab_scenario::{Measure, Scenario as Parsed};
use pyo3::exceptions::{
    PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyUserWarning, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::table::{Table, of_sweep};
use crate::wait::wait;
use crate::wrong;
use crate::{CODE, VERSION};

/// A point's place in the sweep, and what became of it.
pub(crate) type Record = (usize, Py<PyBytes>);

fn failed(error: SweepError) -> PyErr {
    match error {
        SweepError::Scenario(diagnostics) => wrong(&diagnostics),
        SweepError::Write { .. } | SweepError::Read { .. } => PyOSError::new_err(error.to_string()),
        SweepError::Foreign(_) => PyValueError::new_err(error.to_string()),
        // Whoever raised the flag has raised what it was raised for.
        SweepError::Interrupted { .. } => PyKeyboardInterrupt::new_err(error.to_string()),
    }
}

/// Raises that a run took several times its estimate, if one did.
fn require_none(excess: &OnceLock<String>) -> PyResult<()> {
    excess.get().map_or(Ok(()), |text| Err(PyMemoryError::new_err(text.clone())))
}

/// A point runs on one thread, beside others. What it took is not kept apart: no column has it.
fn simulate<'a>(
    stop: &'a AtomicBool,
    excess: &'a OnceLock<String>,
) -> impl Fn(&Parsed, &Model) -> (Outcome, Meta) + Sync + 'a {
    |scenario, model| {
        let estimate = scenario.estimate(&Measure::default());
        let mut see = |come| {
            if let Some(text) = estimate.stopped(scenario.name(), come, None, None) {
                excess.get_or_init(|| text);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let outcome = sim::run(model, Engine::Window { threads: 1, divisor: 1 }, stop, &mut see);
        (outcome, Meta { version: VERSION.to_owned(), ..Meta::default() })
    }
}

pub(crate) fn here(
    py: Python<'_>,
    scenario: &Parsed,
    folder: &Path,
    threads: usize,
    shard: Option<(u64, u64)>,
) -> PyResult<Option<Table>> {
    let work = match shard {
        None => Work::All,
        Some((number, of)) if 1 <= number && number <= of => Work::Shard(Shard { number, of }),
        Some((number, of)) => {
            let text =
                format!("there is no part {number} of {of}; allowed: (1, {0}) to ({0}, {0})", of.max(1));
            return Err(PyValueError::new_err(text));
        }
    };
    let (stop, excess) = (AtomicBool::new(false), OnceLock::new());
    let done = wait(py, &stop, || {
        let options = Options { work, release: VERSION, ..Options::new(folder, CODE, threads, &stop) };
        let results = sweep::run(scenario, &options, &simulate(&stop, &excess), &|_| {})?;
        write(folder, &results)
    })?;
    require_none(&excess)?;
    if !done.map_err(failed)? {
        return Ok(None);
    }
    read(py, folder).map(Some)
}

pub(crate) fn elsewhere(
    py: Python<'_>,
    scenario: &Parsed,
    folder: &Path,
    work: &Py<PyAny>,
) -> PyResult<Option<Table>> {
    let stop = AtomicBool::new(false);
    let options = Options { release: VERSION, ..Options::new(folder, CODE, 1, &stop) };
    let mut elsewhere = wait(py, &stop, || Elsewhere::open(scenario, &options))?.map_err(failed)?;
    let missing = elsewhere.missing();
    if !missing.is_empty() {
        std::fs::create_dir_all(folder)?;
    }
    for done in work.bind(py).call1((missing,))?.try_iter()? {
        let (code, records): (String, Vec<(usize, Bound<'_, PyBytes>)>) = done?.extract()?;
        if code != CODE {
            let text =
                format!("a worker runs congestlab {code}, and this is {CODE}: install the same on both");
            return Err(PyRuntimeError::new_err(text));
        }
        let records: Vec<(usize, Vec<u8>)> =
            records.iter().map(|(place, record)| (*place, record.as_bytes().to_vec())).collect();
        py.detach(|| elsewhere.keep(&records)).map_err(failed)?;
    }
    let done = wait(py, &stop, || write(folder, &elsewhere.finish()))?;
    if !done.map_err(failed)? {
        return Ok(None);
    }
    read(py, folder).map(Some)
}

/// Writes the table, if no point is missing.
fn write(folder: &Path, results: &Results<'_>) -> Result<bool, SweepError> {
    if results.missing() > 0 {
        return Ok(false);
    }
    table::write(folder, results, VERSION, &mut |_| {})?;
    Ok(true)
}

/// Reads the table of a complete sweep, and warns if seeds changed nothing.
fn read(py: Python<'_>, folder: &Path) -> PyResult<Table> {
    let damaged = |error: TableError| PyOSError::new_err(error.to_string());
    let table = SweepTable::open(folder).map_err(damaged)?;
    if let Some(unused) = table.unused_seeds().map_err(damaged)? {
        // At the caller of `congestlab.sweep`.
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(unused.to_string())?, 2)?;
    }
    of_sweep(&table).map_err(damaged)?
}

pub(crate) fn run_points(py: Python<'_>, scenario: &Parsed, places: &[usize]) -> PyResult<Vec<Record>> {
    let excess = OnceLock::new();
    let (stop, done) = (AtomicBool::new(false), Mutex::new(Vec::with_capacity(places.len())));
    let ended = wait(py, &stop, || {
        for &place in places {
            let record = run_point(scenario, place, VERSION, &simulate(&stop, &excess))?;
            if let (Some(record), Ok(mut done)) = (record, done.lock()) {
                done.push((place, record));
            }
        }
        Ok(())
    })?;
    require_none(&excess)?;
    ended.map_err(failed)?;
    let done = done.into_inner().map_err(|_| PyRuntimeError::new_err("congestlab has panicked"))?;
    Ok(done.into_iter().map(|(place, record)| (place, PyBytes::new(py, &record).unbind())).collect())
}
