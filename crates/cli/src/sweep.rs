//! `congestlab sweep`: every point of a scenario, on all cores, and what the claims say of them.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use congestlab_scenario::claims::Verdict;
use congestlab_scenario::metric::{Metric, Reading};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::sweep::{self, Options, PointResult, Progress, SweepError};
use congestlab_scenario::{Measure, Scenario, store};
use serde_json::{Value, json};

use crate::args::{SweepArguments, VERSION};
use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Screen, gauge, print, require_folder};
use crate::table::{Table, number};

/// Results of other code are not taken for complete.
pub(crate) const CODE: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("CONGESTLAB_CODE"));

pub(crate) fn sweep(arguments: &SweepArguments, screen: &Screen) -> Result<(), Failure> {
    let scenario = crate::load(&arguments.scenario, screen)?;
    crate::warn(&scenario.check().map_err(Failure::Scenario)?, screen);
    if arguments.check && scenario.claims().is_empty() {
        let text = format!("{} has no [[claims]] to check", arguments.scenario.file.display());
        return Err(Failure::Input(Message::new(text, "add some, or leave --check out")));
    }
    let threads = threads_that_fit(&scenario, arguments.threads.unwrap_or_else(machine::cores))?;
    let folder = arguments.out.clone().unwrap_or_else(|| Path::new("sweeps").join(scenario.name()));
    require_folder(&folder)?;
    let points = scenario.sweep().map_or(1, |sweep| sweep.points().len());
    screen.note(&format!("{points} points, {threads} at once, kept in {}", folder.display()));

    let stop = machine::stop_flag()?;
    let line = Mutex::new(screen.progress());
    let (done, kept, equal) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let clock = Clock::start();
    let results = sweep::run(
        &scenario,
        &Options { folder: &folder, version: CODE, threads, stop: &stop },
        &|_, model| {
            let clock = Clock::start_thread();
            let outcome = sim::run(model, Engine::Window { threads: 1, divisor: 1 }, &stop, &mut |_| {});
            (outcome, clock.meta())
        },
        &|progress| {
            let Ok(mut line) = line.lock() else { return };
            match progress {
                Progress::Kept(_) => kept.fetch_add(1, Ordering::Relaxed),
                Progress::Finished(point) => {
                    line.clear();
                    screen.detail(&format!("done: {}", point.label));
                    done.fetch_add(1, Ordering::Relaxed)
                }
                Progress::Equal(_) => equal.fetch_add(1, Ordering::Relaxed),
                Progress::Started(_) => 0,
            };
            let complete: usize = [&done, &kept, &equal].iter().map(|n| n.load(Ordering::Relaxed)).sum();
            line.tell(|elapsed| {
                let share = complete as f64 / points as f64;
                format!("{}  {complete} of {points}, {elapsed:.0} s", gauge(share))
            });
        },
    );
    if let Ok(mut line) = line.lock() {
        line.clear();
    }
    let results = results.map_err(failure)?;
    let (done, kept) = (done.into_inner(), kept.into_inner());
    let equal = match equal.into_inner() {
        0 => String::new(),
        equal => format!(", {equal} equal to others"),
    };
    let wall = clock.wall();
    screen.note(&format!("{done} run in {wall:.1} s, {kept} kept from before{equal}, version {VERSION}"));

    let observations: Vec<_> = results.iter().map(PointResult::observation).collect();
    let verdicts: Vec<Verdict> = if arguments.check {
        scenario.claims().iter().map(|claim| claim.verdict(&observations)).collect()
    } else {
        Vec::new()
    };
    print(&if screen.json {
        store::pretty(&to_json(&results, &verdicts))
    } else {
        describe(&scenario, &results, &verdicts)
    })?;
    let failed = verdicts.iter().filter(|verdict| !verdict.holds).count();
    if failed > 0 {
        let text = format!("{failed} of {} claims do not hold", verdicts.len());
        return Err(Failure::Claim(Message::new(text, "")));
    }
    Ok(())
}

pub(crate) fn failure(error: SweepError) -> Failure {
    match error {
        SweepError::Scenario(diagnostics) => Failure::Scenario(diagnostics),
        SweepError::Write { path, error } => Failure::write(&path, &error),
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

fn to_json(results: &[PointResult], verdicts: &[Verdict]) -> Value {
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
            json!({ "that": verdict.that, "metric": verdict.metric, "holds": verdict.holds, "text": verdict.text })
        })
        .collect();
    json!({ "points": points, "claims": claims })
}

fn describe(scenario: &Scenario, results: &[PointResult], verdicts: &[Verdict]) -> String {
    let axes = scenario.sweep().map_or(&[][..], |sweep| sweep.axes());
    let metrics = metrics_shown(scenario, results);
    let heading =
        axes.iter().map(|axis| short(axis)).chain(metrics.iter().map(|metric| short(metric.text())));
    let mut table = Table::with_heading(heading.collect());
    for point in results {
        let settings = point.settings.iter().map(|(_, value)| value.trim_matches('"').to_owned());
        let readings = metrics.iter().map(|metric| {
            let kept = point.readings.iter().find(|(text, _)| text == metric.text());
            match kept.map_or_else(|| metric.read(&point.result, None), |(_, reading)| reading.clone()) {
                Reading::Nothing => number(None),
                Reading::Number(value) => four_digits(value),
                other => other.to_json().to_string(),
            }
        });
        table.row(settings.chain(readings).collect());
    }
    let mut text = table.render();
    if !verdicts.is_empty() {
        text.push('\n');
        for verdict in verdicts {
            let holds = if verdict.holds { "holds" } else { "FAILS" };
            text.push_str(&format!("  {holds}  {}: {}\n", verdict.that, verdict.text));
        }
    }
    text
}

/// What the claims ask for; without claims, the use of each link and the fairness of each group.
fn metrics_shown(scenario: &Scenario, results: &[PointResult]) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    let claimed = scenario.claims().iter().flat_map(|claim| claim.metrics()).cloned();
    for metric in claimed {
        if metrics.iter().all(|other| other.text() != metric.text()) {
            metrics.push(metric);
        }
    }
    if metrics.is_empty() {
        let result = results.first().map(|point| &point.result);
        let keys = |part: &str| -> Vec<String> {
            let table = result.and_then(|result| result.get(part)?.as_object());
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

/// A path without the part that every path has.
fn short(path: &str) -> String {
    ["links.", "flows.", "run."].iter().find_map(|start| path.strip_prefix(start)).unwrap_or(path).to_owned()
}

fn four_digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1e4 {
        return crate::table::count(value);
    }
    let digits = if magnitude >= 100.0 { 1 } else { 4 };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
