//! The report of a sweep, beside its results.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::chart::{self, Data, Wish};
use congestlab_scenario::claims::{Observation, Verdict};
use congestlab_scenario::disk;
use congestlab_scenario::report::{Drawn, SweepRun, sweep_html};
use congestlab_scenario::sweep::{self, Options, Work};
use congestlab_scenario::{FILE_BYTES_MAX, Scenario, store};

use super::{Shown, code, failure, simulate};
use crate::failure::{Failure, Message};
use crate::folder::open_sweep;
use crate::output::Screen;
use crate::picture::{Figure, Size};
use crate::version::VERSION;

/// The file that the folder of a complete sweep has.
pub(crate) const SWEEP: &str = "sweep.json";

/// The report in the folder of its sweep.
const REPORT: &str = "report.html";
/// More pictures are for `plot`.
const PICTURES_MAX: usize = 12;

/// Writes the report of a complete sweep: its metrics over the axes, point by point, and the verdicts of all claims.
pub(super) fn keep(folder: &Path, scenario: &Scenario, shown: &Shown) -> Result<(), Failure> {
    let (page, _) = page(scenario, scenario.written(), VERSION, shown);
    let path = folder.join(REPORT);
    disk::write_atomically(&path, page.as_bytes()).map_err(|error| Failure::write(&path, &error))
}

/// Makes the report of a sweep on disk again, and every picture in it with a name.
pub(crate) fn again(folder: &Path, screen: &Screen) -> Result<(String, Vec<(String, Figure)>), Failure> {
    let refuse = |text: String| Failure::Input(Message::new(text, "sweep it again, with the same --out"));
    if !folder.join(SWEEP).is_file() {
        return Err(incomplete(folder));
    }
    let table = open_sweep(folder, screen)?;
    let text = |name: &str| {
        let path = folder.join(name);
        let text = disk::read_file(&path, FILE_BYTES_MAX)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        text.map_err(|error| refuse(format!("{}: {error}", path.display())))
    };
    let (name, written) = (format!("{}.toml", table.scenario()), text(store::WRITTEN)?);
    let own = text(store::SCENARIO)?;
    let scenario = Scenario::parse(&name, &own, folder, &[], None).map_err(Failure::Scenario)?;
    let stop = AtomicBool::new(false);
    let options = Options {
        work: Work::Merge(Vec::new()),
        release: table.version(),
        ..Options::new(folder, code(), 1, &stop)
    };
    let results = match table.keys() {
        Some(keys) => sweep::kept_by(&scenario, folder, &keys),
        None => sweep::run(&scenario, &options, &simulate(&stop), &|_| {}),
    };
    let results = results.map_err(failure)?;
    if results.missing() > 0 {
        let (missing, all) = (results.missing(), results.points());
        let text =
            format!("{missing} of {all} points in {} are missing, or of another build", folder.display());
        let help = "`congestlab sweep` with this --out runs them again, and makes the report";
        return Err(Failure::Run(Message::new(text, help)));
    }
    let mut shown = Shown::default();
    for point in 0..results.points() {
        shown.see(&scenario, &results.get(point).map_err(failure)?);
    }
    Ok(page(&scenario, &written, table.version(), &shown))
}

/// A folder with points of a sweep, and without its table.
pub(crate) fn incomplete(folder: &Path) -> Failure {
    let text = format!("the sweep in {} is not complete: it has points and no table", folder.display());
    let help =
        "the same `congestlab sweep` goes on from there; parts of --shard are joined by `sweep --merge`";
    Failure::Input(Message::new(text, help))
}

fn page(scenario: &Scenario, written: &str, version: &str, shown: &Shown) -> (String, Vec<(String, Figure)>) {
    let observations = &shown.observations;
    let verdicts: Vec<Verdict> = scenario.claims().iter().map(|claim| claim.verdict(observations)).collect();
    let settings: Vec<_> = observations.iter().map(|observation| observation.settings.clone()).collect();
    let metrics: Vec<String> =
        shown.metrics.iter().flatten().map(|metric| metric.text().to_owned()).collect();
    let unused = Observation::unused_seeds(observations);
    let data = Data::of_readings(&settings, &metrics, &shown.readings, unused);
    let drawn = metrics.iter().filter(|_| data.has_axis()).filter_map(|metric| {
        let wish = Wish { y: Some(metric.clone()), ..Wish::default() };
        // A metric that is no number has no line.
        let picture = chart::of_data(&data, &wish).ok()?;
        let figure = Figure::of(&picture, Size::SCREEN)?;
        // Not cut: two metrics can begin alike.
        let name = format!("{}-{metric}", scenario.name());
        let name = name.replace(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)), "-");
        Some((
            Drawn { name: name.clone(), about: figure.about.clone(), svg: figure.to_svg(), picture },
            (name, figure),
        ))
    });
    let (pictures, figures) = drawn.take(PICTURES_MAX).unzip();
    let run = SweepRun {
        name: scenario.name(),
        written,
        version,
        points: settings.into_iter().zip(shown.readings.iter().cloned()).collect(),
        metrics,
        unused,
        pictures,
        verdicts,
    };
    (sweep_html(&run), figures)
}
