//! `congestlab sweep`: every point of a scenario, on all cores, and what the claims say of them.

pub(crate) mod page;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use congestlab_scenario::cells::{Quantity, heading};
use congestlab_scenario::claims::{Observation, Verdict};
use congestlab_scenario::metric::{Metric, Reading};
use congestlab_scenario::report::over_seeds;
use congestlab_scenario::result::Meta;
use congestlab_scenario::seeds::{SEED, UnusedSeeds, by_point};
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::sweep::{self, Options, PointResult, Progress, Results, SweepError, Work};
use congestlab_scenario::{Measure, Scenario, Varied, store, table};
use serde_json::{Value, json};

use crate::args::{Changes, ScenarioArguments, SweepArguments};
use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Screen, gauge, print, require_folder};
use crate::signals;
use crate::table::{Cell, Table};
use crate::version::VERSION;
use crate::watch::Watch;

/// Names the code: results of other code are not taken for complete.
pub(crate) fn code() -> &'static str {
    static CODE: LazyLock<String> = LazyLock::new(|| {
        let own = concat!(env!("CARGO_PKG_VERSION"), " ", env!("CONGESTLAB_CODE"));
        // Laws that are no part of this project are in the program, and nowhere else.
        match program_with_laws() {
            Some(program) => format!("{own} {program}"),
            None => own.to_owned(),
        }
    });
    &CODE
}

#[cfg(not(feature = "outside"))]
fn program_with_laws() -> Option<String> {
    None
}

/// Returns the hash of this program, if it has laws of its own.
#[cfg(feature = "outside")]
fn program_with_laws() -> Option<String> {
    let has_laws = !congestlab_core::law::outside::protocols().is_empty();
    // A program that is not there any more is none that has run before.
    let hash = |path: std::path::PathBuf| congestlab_scenario::disk::hash_file(&path).ok();
    has_laws.then(|| {
        std::env::current_exe().ok().and_then(hash).unwrap_or_else(|| format!("{:?}", std::process::id()))
    })
}

pub(crate) fn sweep(arguments: &SweepArguments, screen: &Screen) -> Result<(), Failure> {
    let scenario = load(arguments, screen)?;
    crate::warn(&scenario.check_sweep().map_err(Failure::Scenario)?, screen);
    if arguments.check && scenario.claims().is_empty() {
        let text = format!("{} has no [[claims]] to check", arguments.scenario.file.display());
        return Err(Failure::Input(Message::new(text, "add some, or leave --check out")));
    }
    if let Some(none) = arguments.from.iter().find(|folder| !sweep::is_folder(folder)) {
        let text = format!("{} is not the folder of a sweep: it has no points", none.display());
        return Err(Failure::Input(Message::new(text, "give what --out of `sweep` was")));
    }
    let folder = arguments.out.clone().unwrap_or_else(|| Path::new("sweeps").join(scenario.name()));
    require_folder(&folder)?;
    let points = scenario.sweep().map_or(1, |sweep| sweep.points().len());
    let work = match arguments.shard {
        _ if arguments.merge => Work::Merge(arguments.from.clone()),
        Some(shard) => Work::Shard(shard),
        None => Work::All,
    };
    let threads = match work {
        Work::Merge(_) => 1,
        _ => threads_that_fit(&scenario, arguments.threads.unwrap_or_else(machine::cores))?,
    };
    let part =
        arguments.shard.map_or_else(String::new, |shard| format!(", part {} of {}", shard.number, shard.of));
    let at_once = if arguments.merge { String::new() } else { format!(", {threads} at once") };
    screen.note(&format!("{points} points{part}{at_once}, kept in {}", folder.display()));

    let stop = signals::stop_flag_for_good(screen)?;
    let options = Options {
        work,
        release: VERSION,
        folders: arguments.folders,
        ..Options::new(&folder, code(), threads, &stop)
    };
    let line = Mutex::new(screen.progress());
    let [done, kept, equal] = [const { AtomicUsize::new(0) }; 3];
    let all = AtomicUsize::new(points);
    let clock = Clock::start();
    let results = sweep::run(&scenario, &options, &simulate(&stop), &|progress| {
        let Ok(mut line) = line.lock() else { return };
        match progress {
            Progress::Begun(count) => all.store(count, Ordering::Relaxed),
            Progress::Kept(_) => drop(kept.fetch_add(1, Ordering::Relaxed)),
            Progress::Finished(point) => {
                line.clear();
                screen.detail(&format!("done: {}", point.label));
                done.fetch_add(1, Ordering::Relaxed);
            }
            Progress::Equal(_) => drop(equal.fetch_add(1, Ordering::Relaxed)),
            Progress::Started(_) => {}
        };
        let complete: usize = [&done, &kept, &equal].iter().map(|n| n.load(Ordering::Relaxed)).sum();
        let all = all.load(Ordering::Relaxed);
        line.tell(|elapsed| {
            let share = complete as f64 / all.max(1) as f64;
            format!("{}  {complete} of {all}, {elapsed:.0} s", gauge(share))
        });
    });
    if let Ok(mut line) = line.lock() {
        line.clear();
    }
    let results = results.map_err(failure)?;
    if !arguments.merge {
        let [done, kept, equal] = [done, kept, equal].map(AtomicUsize::into_inner);
        let equal = if equal == 0 { String::new() } else { format!(", {equal} equal to others") };
        let wall = clock.wall();
        screen.note(&format!("{done} run in {wall:.1} s, {kept} kept from before{equal}, version {VERSION}"));
    }
    if results.missing() > 0 {
        return incomplete(arguments, &results, screen);
    }
    let mut shown = Shown::default();
    table::write(&folder, &results, VERSION, &mut |point| shown.see(&scenario, point)).map_err(failure)?;
    screen.note(&format!("the table is {}", folder.join(table::PARQUET).display()));
    page::keep(&folder, &scenario, &shown)?;
    let unused = Observation::unused_seeds(&shown.observations);
    if let Some(unused) = unused {
        let help = "vary a start time, a size or a delay to see how far the results depend on chance";
        screen.note(&format!("{unused}; {help}"));
    }
    let verdicts: Vec<Verdict> = if arguments.check {
        scenario.claims().iter().map(|claim| claim.verdict(&shown.observations)).collect()
    } else {
        Vec::new()
    };
    print(&if screen.json {
        store::pretty(&to_json(&results.all().map_err(failure)?, unused, &verdicts))
    } else {
        describe(&scenario, &shown, &verdicts)
    })?;
    let failed = verdicts.iter().filter(|verdict| !verdict.holds()).count();
    if failed > 0 {
        let text = format!("{failed} of {} claims do not hold", verdicts.len());
        return Err(Failure::Claim(Message::new(text, "")));
    }
    Ok(())
}

/// Runs a point on one thread, for points run beside each other.
pub(crate) fn simulate(stop: &AtomicBool) -> impl Fn(&Scenario, &Model) -> (Outcome, Meta) + Sync {
    |scenario, model| {
        let clock = Clock::start_thread();
        let mut watch = Watch::beside(scenario.name(), scenario.estimate(&Measure::default()), stop);
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let outcome = sim::run(model, engine, stop, &mut |come| watch.see(come));
        (outcome, clock.meta())
    }
}

/// Reads the scenario with what the command line varies.
fn load(arguments: &SweepArguments, screen: &Screen) -> Result<Scenario, Failure> {
    let ScenarioArguments { file, changes } = &arguments.scenario;
    crate::require_one_value(changes)?;
    let Changes { set, seed } = changes;
    let mut grid: Vec<Varied> =
        arguments.grid.iter().map(|(path, values)| Varied::new("--grid", path, values.clone())).collect();
    if let Some(seeds) = arguments.seeds {
        grid.push(Varied::new("--seeds", SEED, (1..=seeds).map(|seed| seed.to_string()).collect()));
    }
    for (place, varied) in grid.iter().enumerate() {
        if let Some(other) = grid[..place].iter().find(|other| other.path() == varied.path()) {
            let (one, path) = (other.origin(), varied.path());
            let text = format!("{one} varies {path}, and {} does so once more", varied.origin());
            return Err(Failure::Input(Message::new(text, "give all values at once: --grid PATH=A,B,C")));
        }
    }
    let scenario = Scenario::load_varied(file, set, *seed, &grid).map_err(Failure::Scenario)?;
    crate::tell_without_effect(changes, &scenario, screen);
    Ok(scenario)
}

/// A part of a sweep is done, or a merge finds that parts are not.
fn incomplete(arguments: &SweepArguments, results: &Results<'_>, screen: &Screen) -> Result<(), Failure> {
    let (missing, all) = (results.missing(), results.points());
    if arguments.merge {
        let text = format!("{missing} of {all} points are not complete");
        let help = "run the parts that are missing, or name the folders that have them";
        return Err(Failure::Run(Message::new(text, help)));
    }
    screen.note(&format!(
        "{missing} of {all} points are left to other parts; when all are complete, --merge makes the table"
    ));
    if screen.json {
        print(&store::pretty(&json!({ "complete": all - missing, "points": all })))
    } else {
        Ok(())
    }
}

/// Writes the table of a sweep that is complete, and returns its points.
pub(crate) fn keep(folder: &Path, results: &Results<'_>) -> Result<Vec<PointResult>, SweepError> {
    let mut points = Vec::with_capacity(results.points());
    table::write(folder, results, VERSION, &mut |point| points.push(point.clone()))?;
    Ok(points)
}

/// What is shown of the points, and judged.
#[derive(Default)]
struct Shown {
    metrics: Option<Vec<Metric>>,
    /// Settings that were seen: a point that is there twice is one.
    seen: BTreeSet<Vec<(String, String)>>,
    observations: Vec<Observation>,
    /// Of the metrics, point by point.
    readings: Vec<Vec<Reading>>,
}

impl Shown {
    fn see(&mut self, scenario: &Scenario, point: &PointResult) {
        if !self.seen.insert(point.settings.clone()) {
            return;
        }
        let metrics = self.metrics.get_or_insert_with(|| metrics_shown(scenario, point));
        let read = |metric: &Metric| {
            let kept = point.readings.iter().find(|(text, _)| text == metric.text());
            kept.map_or_else(|| metric.read(&point.result, None), |(_, reading)| reading.clone())
        };
        self.readings.push(metrics.iter().map(read).collect());
        self.observations.push(point.observation());
    }
}

pub(crate) fn failure(error: SweepError) -> Failure {
    match error {
        SweepError::Scenario(diagnostics) => Failure::Scenario(diagnostics),
        SweepError::Write { path, error } => Failure::write(&path, &error),
        SweepError::Read { .. } => Failure::Run(Message::new(error.to_string(), "")),
        SweepError::Foreign(_) => {
            let help = "parts are of one scenario, with the same --grid, --seeds and --set, and of one build";
            Failure::Input(Message::new(error.to_string(), help))
        }
        SweepError::Interrupted { .. } => {
            Failure::Interrupted(format!("{error}; the same command goes on from there"))
        }
    }
}

/// As many threads as wanted, or as the memory takes at the points that need most.
pub(crate) fn threads_that_fit(scenario: &Scenario, wanted: usize) -> Result<usize, Failure> {
    let measure = Measure { series: scenario.wants_series(), events: false };
    let available = machine::memory_available().unwrap_or(u64::MAX);
    let need = |scenario: &Scenario| match scenario.require_memory(&measure, available) {
        Ok(()) => Ok(scenario.memory_needed(&measure)),
        Err(diagnostics) => Err(Failure::Memory(diagnostics)),
    };
    let mut needs = match scenario.sweep() {
        None => vec![need(scenario)?],
        Some(sweep) => {
            let points = sweep.points().iter();
            let each = |point| need(&scenario.point(point).map_err(Failure::Scenario)?);
            points.map(each).collect::<Result<_, _>>()?
        }
    };
    needs.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0u64;
    let fitting = needs.iter().take_while(|&&need| {
        sum = sum.saturating_add(need);
        sum <= available
    });
    Ok(fitting.count().clamp(1, wanted))
}

fn to_json(results: &[PointResult], unused: Option<UnusedSeeds>, verdicts: &[Verdict]) -> Value {
    let points: Vec<Value> = results
        .iter()
        .map(|point| {
            let settings = sweep::settings_json(&point.settings);
            let metrics: serde_json::Map<String, Value> =
                point.readings.iter().map(|(text, reading)| (text.clone(), reading.to_json())).collect();
            json!({ "run": point.run, "settings": settings, "metrics": metrics, "result": point.result })
        })
        .collect();
    let claims: Vec<Value> = verdicts
        .iter()
        .map(|verdict| {
            json!({ "that": verdict.that, "metric": verdict.metric, "holds": verdict.holds(), "verdict": verdict.judgement, "text": verdict.text })
        })
        .collect();
    let unused = unused.map(|unused| json!({ "points": unused.points, "of": unused.of }));
    json!({ "points": points, "unused_seeds": unused, "claims": claims })
}

fn describe(scenario: &Scenario, shown: &Shown, verdicts: &[Verdict]) -> String {
    let axes = scenario.sweep().map_or(&[][..], |sweep| sweep.axes()).iter().map(String::as_str);
    let runs =
        || shown.observations.iter().map(|run| &run.settings).zip(shown.readings.iter().map(Vec::as_slice));
    let metrics = || shown.metrics.iter().flatten().map(Metric::text);
    let points = by_point(runs());
    let mut table;
    if points.iter().any(|(_, seeds)| seeds.len() > 1) {
        let axes = axes.filter(|axis| *axis != SEED).chain(["seeds"]);
        table = Table::with_heading(axes.chain(metrics()).map(|path| heading(path).to_owned()).collect());
        for (settings, seeds) in points {
            let settings = settings.iter().map(|(_, value)| Cell::setting(value));
            let count = Cell::whole(seeds.len() as u64);
            let means = (0..metrics().count()).map(|metric| over_seeds(&seeds, metric));
            table.row(settings.chain([count]).chain(means).collect());
        }
    } else {
        table = Table::with_heading(axes.chain(metrics()).map(|path| heading(path).to_owned()).collect());
        for (settings, readings) in runs() {
            let settings = settings.iter().map(|(_, value)| Cell::setting(value));
            let readings = readings.iter().map(|reading| match reading {
                Reading::Nothing => Cell::Number(None, Quantity::Any),
                Reading::Number(value) => Cell::Number(Some(*value), Quantity::Any),
                Reading::List(list) => Cell::list(&list.iter().map(Reading::number).collect::<Vec<_>>()),
                Reading::Text(text) => Cell::Text(text.clone()),
            });
            table.row(settings.chain(readings).collect());
        }
    }
    let mut text = table.render();
    if !verdicts.is_empty() {
        text.push('\n');
        for verdict in verdicts {
            let holds = crate::table::verdict(verdict.judgement);
            text.push_str(&format!("  {holds}  {}: {}\n", verdict.that, verdict.text));
        }
    }
    text
}

/// What the claims ask for; without claims, the use of each link and the fairness of each group.
fn metrics_shown(scenario: &Scenario, point: &PointResult) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    let claimed = scenario.claims().iter().flat_map(|claim| claim.metrics()).cloned();
    for metric in claimed {
        if metrics.iter().all(|other| other.text() != metric.text()) {
            metrics.push(metric);
        }
    }
    if metrics.is_empty() {
        let keys = |part: &str| -> Vec<String> {
            let table = point.result.get(part).and_then(Value::as_object);
            table.map_or(Vec::new(), |table| table.keys().cloned().collect())
        };
        let of_link = ["utilization", "queue_mean_packets", "drops"];
        let links = keys("links").into_iter().filter(|name| !name.ends_with(".reverse"));
        let texts = links
            .flat_map(|link| of_link.map(|metric| format!("links.{}.{metric}", quoted(&link))))
            .chain(keys("jain").into_iter().map(|group| format!("jain.{}", quoted(&group))));
        metrics.extend(texts.filter_map(|text| Metric::parse(&text).ok()));
    }
    metrics
}

/// A key of a path, in quotes where TOML wants them.
fn quoted(key: &str) -> String {
    let is_bare = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_bare { key.into() } else { format!("\"{key}\"") }
}
