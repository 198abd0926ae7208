//! The report of a sweep, beside its results.

use std::path::Path;

use congestlab_scenario::claims::{Observation, Verdict};
use congestlab_scenario::metric::{Metric, Reading};
use congestlab_scenario::report::{SweepRun, sweep_html};
use congestlab_scenario::{Scenario, store};

use crate::args::VERSION;
use crate::failure::Failure;

/// The report in the folder of its sweep.
const REPORT: &str = "report.html";

/// Writes the report of a complete sweep: the readings of the metrics, point by point, and the verdicts of all claims.
pub(super) fn keep(
    folder: &Path,
    scenario: &Scenario,
    metrics: &[Metric],
    observations: &[Observation],
    readings: &[Vec<Reading>],
) -> Result<(), Failure> {
    let verdicts: Vec<Verdict> = scenario.claims().iter().map(|claim| claim.verdict(observations)).collect();
    let settings = observations.iter().map(|observation| observation.settings.clone());
    let run = SweepRun {
        name: scenario.name(),
        written: scenario.written(),
        version: VERSION,
        metrics: metrics.iter().map(|metric| metric.text().to_owned()).collect(),
        points: settings.zip(readings.iter().cloned()).collect(),
        verdicts,
    };
    let path = folder.join(REPORT);
    store::write_atomically(&path, sweep_html(&run).as_bytes()).map_err(|error| Failure::write(&path, &error))
}
