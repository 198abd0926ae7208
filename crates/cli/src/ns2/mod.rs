//! ns-2 as a peer of the papers' figures: the same models, run there, and the same claims, judged on the results.
//!
//! ns-2 runs only models that it has: the parts of a model that share no link with others are run or
//! refused by themselves, and a claim is judged if all that it reads was run. For other claims there is a
//! reason.

mod child;
mod network;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use child::Died;
pub(crate) use child::missing;
use congestlab_scenario::claims::Judgement;
use congestlab_scenario::claims::{CheckedClaim, Observation};
use congestlab_scenario::paper::{PeerValues, Written};
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::{FlowOutcome, LinkOutcome, Outcome};
use congestlab_scenario::sweep::{self, Options, PointResult, Progress};
use congestlab_scenario::{Measure, Scenario};
use network::Part;
use serde_json::Value;

use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Runs, Screen};

/// A verdict on ns-2's run of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    /// `None`: it is not in ns-2.
    pub(crate) verdict: Option<Judgement>,
    /// The measured values, or the reason for having none.
    pub(crate) text: String,
}

impl Said {
    fn nothing(why: &str) -> Self {
        Self { verdict: None, text: format!("not in ns-2: {why}") }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Some(verdict) => write!(f, "ns-2: {}, {}", verdict.word(), self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Notes what ns-2 says of the claims of a figure, in the place of what it said before.
pub(crate) fn tell<'a>(
    values: &mut PeerValues,
    figure: &str,
    claims: impl Iterator<Item = (&'a str, &'a Said)>,
) {
    values.values.retain(|value| value.figure != figure);
    let judged = claims.filter_map(|(claim, said)| {
        Some(Written {
            figure: figure.into(),
            claim: claim.into(),
            verdict: said.verdict?,
            measured: said.text.clone(),
            control: None,
        })
    });
    values.values.extend(judged);
    values.values.sort_by(|a, b| a.figure.cmp(&b.figure));
}

/// Returns what ns-2 said of a claim.
pub(crate) fn said(values: &PeerValues, figure: &str, claim: &str) -> Said {
    values.find(figure, claim).map_or(
        Said { verdict: None, text: "ns-2: no value is written down".into() },
        |value| Said { verdict: Some(value.verdict), text: value.measured.clone() },
    )
}

/// The same for the cell of a table; empty where there is nothing.
pub(crate) fn cell(values: &PeerValues, figure: &str, claim: &str) -> String {
    values
        .find(figure, claim)
        .map_or(String::new(), |value| format!("{}: {}", value.verdict.word(), value.measured))
}

/// Version of what a part is told and of the use of its answers; kept points of another version do not
/// count as complete.
const FORM: u32 = 2;

/// The numbers that ns-2 tells of a link, and of a flow.
const OF_LINKS: [&str; 12] = [
    "capacity_bps",
    "throughput_bps",
    "utilization",
    "sent_packets",
    "sent_packets_total",
    "arrived_packets",
    "arrived_packets_total",
    "drops",
    "drops_total",
    "queue_mean_packets",
    "queue_max_packets_total",
    "queue_end_packets",
];
const OF_FLOWS: [&str; 15] = [
    "goodput_bps",
    "throughput_bps",
    "sent_packets",
    "sent_packets_total",
    "delivered_bytes",
    "delivered_bytes_total",
    "retransmits",
    "retransmits_total",
    "timeouts",
    "timeouts_total",
    "cwnd_mean_packets",
    "cwnd_max_packets_total",
    "start_s",
    "stop_s",
    "completion_s",
];
/// Series that ns-2 tells of a link and of a flow.
const SERIES: [&str; 2] = ["queue_packets", "cwnd_packets"];

/// A point of the sweep, as ns-2 sees it.
struct Point {
    /// Settings of the point, before anything is read.
    settings: Observation,
    model: Model,
    parts: Vec<Part>,
}

impl Point {
    fn all(scenario: &Scenario) -> Result<Vec<Self>, Failure> {
        let new = |settings: Vec<(String, String)>, scenario: &Scenario| {
            let model = scenario.model(&Measure::default());
            let parts = network::parts(&model);
            Self { settings: Observation { is_random: true, settings, readings: Vec::new() }, model, parts }
        };
        let Some(sweep) = scenario.sweep() else { return Ok(vec![new(Vec::new(), scenario)]) };
        let point = |point: &sweep::Point| {
            Ok(new(point.settings.clone(), &scenario.point(point).map_err(Failure::Scenario)?))
        };
        sweep.points().iter().map(point).collect()
    }

    /// The part that has the link or group.
    fn part(&self, table: &str, name: &str) -> Option<&Part> {
        part_of(&self.model, &self.parts, table, name)
    }
}

fn part_of<'a>(model: &Model, parts: &'a [Part], table: &str, name: &str) -> Option<&'a Part> {
    let links = || model.links.iter().position(|link| link.name == name);
    let groups = || model.groups.iter().position(|group| group.name == name);
    match table {
        "links" => links().and_then(|link| parts.iter().find(|part| part.links.contains(&link))),
        "flows" => groups().and_then(|group| parts.iter().find(|part| part.groups.contains(&group))),
        _ => None,
    }
}

/// Links and groups that a claim reads, if ns-2 runs them at each point that it is about.
fn needs(claim: &CheckedClaim, points: &[Point]) -> Result<BTreeSet<(String, String)>, String> {
    let mut needs = BTreeSet::new();
    for (table, name, value) in claim.metrics().iter().flat_map(|metric| metric.reads()) {
        let told: &[&str] = if table == "links" { &OF_LINKS } else { &OF_FLOWS };
        let is_told = told.contains(&value) || SERIES.contains(&value);
        // Its maxima do not begin anew after the warmup.
        let is_total = told.iter().any(|name| name.strip_suffix("_total") == Some(value));
        if !is_told && !is_total {
            return Err(format!("it does not tell `{value}`"));
        }
        for point in points.iter().filter(|point| claim.is_about(&point.settings)) {
            if !is_told && point.model.warmup > 0 {
                return Err(format!("it does not tell `{value}` without what came before the warmup"));
            }
            let part = point.part(table, name).ok_or_else(|| format!("it has no `{table}.{name}`"))?;
            if let Some(why) = &part.refusal {
                return Err(why.clone());
            }
        }
        needs.insert((table.to_owned(), name.to_owned()));
    }
    Ok(needs)
}

/// Runs in ns-2 what the scenario's claims read, and judges them. Complete points are kept in the folder.
pub(crate) fn judge(
    name: &str,
    scenario: &Scenario,
    folder: &Path,
    threads: Option<usize>,
    screen: &Screen,
) -> Result<Vec<Said>, Failure> {
    let points = Point::all(scenario)?;
    let needs: Vec<_> = scenario.claims().iter().map(|claim| needs(claim, &points)).collect();
    let wanted: BTreeSet<_> = needs.iter().flatten().flatten().cloned().collect();
    if wanted.is_empty() {
        let why = |need: &Result<_, String>| Said::nothing(need.as_ref().err().map_or("", String::as_str));
        return Ok(needs.iter().map(why).collect());
    }
    let results = run(name, scenario, &wanted, folder, threads, screen)?;
    let judged = scenario.claims().iter().zip(&needs).map(|(claim, needs)| match needs {
        Ok(needs) => verdict(claim, needs, &points, &results),
        Err(why) => Said::nothing(why),
    });
    Ok(judged.collect())
}

fn run(
    name: &str,
    scenario: &Scenario,
    wanted: &BTreeSet<(String, String)>,
    folder: &Path,
    threads: Option<usize>,
    screen: &Screen,
) -> Result<Vec<PointResult>, Failure> {
    let stop = machine::stop_flag()?;
    let failed = Mutex::new(None);
    let names: Vec<String> = wanted.iter().map(|(table, name)| format!("{table}.{name}")).collect();
    let version = format!("ns-2 {FORM} {}\n{}\n{}", crate::sweep::code(), names.join("\n"), child::SCRIPT);
    let options = Options::new(folder, &version, threads.unwrap_or_else(machine::cores), &stop);
    let simulate = |_: &Scenario, model: &Model| {
        let clock = Clock::start();
        let outcome = outcome(model, wanted, &stop).unwrap_or_else(|why| {
            if let Ok(mut failed) = failed.lock() {
                failed.get_or_insert(why);
            }
            // Without this point the others are of no use.
            stop.store(true, Ordering::Relaxed);
            Outcome::default()
        });
        (outcome, clock.meta())
    };
    let all = scenario.sweep().map_or(1, |sweep| sweep.points().len());
    let runs = Runs::new(screen, all);
    let label = format!("ns-2, {name}");
    let tell = |progress: Progress<'_>| runs.tell(&label, progress);
    let results = sweep::run(scenario, &options, &simulate, &tell)
        .and_then(|results| crate::sweep::keep(folder, &results));
    drop(runs);
    match failed.into_inner() {
        Ok(Some(why)) => Err(Failure::Run(Message::new(format!("{name} in ns-2: {why}"), ""))),
        _ => results.map_err(crate::sweep::failure),
    }
}

/// The parts of a model that are wanted, run in ns-2. A part that is not run, or of which ns-2 died, has nothing: its links have
/// no capacity. Incomplete if somebody stopped it.
///
/// # Errors
/// ns-2 did what it never does.
fn outcome(model: &Model, wanted: &BTreeSet<(String, String)>, stop: &AtomicBool) -> Result<Outcome, String> {
    let parts = network::parts(model);
    let mut outcome = Outcome {
        duration: model.duration,
        seed_used: true,
        links: vec![LinkOutcome::default(); model.links.len()],
        groups: model.groups.iter().map(|group| vec![FlowOutcome::default(); group.count as usize]).collect(),
        ..Outcome::default()
    };
    let is_wanted = |part: &&Part| {
        part.refusal.is_none()
            && wanted.iter().any(|(table, name)| {
                part_of(model, &parts, table, name).is_some_and(|other| std::ptr::eq(other, *part))
            })
    };
    for part in parts.iter().filter(is_wanted) {
        match child::run(model, part, &mut outcome, stop) {
            Ok(()) | Err(Died::Divided) => {}
            Err(Died::Stopped) => return Ok(outcome),
            Err(Died::Otherwise(why)) => return Err(why),
        }
    }
    outcome.series.sort_by_key(|sample| (sample.at, sample.element));
    outcome.complete = true;
    Ok(outcome)
}

fn verdict(
    claim: &CheckedClaim,
    needs: &BTreeSet<(String, String)>,
    points: &[Point],
    results: &[PointResult],
) -> Said {
    let (mut kept, mut died, mut otherwise) = (Vec::new(), 0, BTreeSet::new());
    for (point, result) in points.iter().zip(results) {
        let parts = || needs.iter().filter_map(|(table, name)| Some((table, point.part(table, name)?)));
        let has_died = parts().any(|(_, part)| {
            part.links.first().is_some_and(|&link| {
                result.result["links"][&point.model.links[link].name]["capacity_bps"] == Value::Null
            })
        });
        let observation = result.observation();
        if has_died {
            died += usize::from(claim.is_about(&observation));
            continue;
        }
        kept.push(observation);
        if !claim.is_about(&point.settings) {
            continue;
        }
        for (table, part) in parts() {
            let groups = part.groups.iter().map(|&group| &point.model.groups[group]);
            for group in groups.filter(|group| network::repairs_otherwise(group)) {
                let flows = result.result["flows"][&group.name].as_array();
                let has_lost =
                    flows.is_some_and(|flows| flows.iter().any(|flow| flow["retransmits_total"] != 0));
                if has_lost && table == "flows" {
                    let why = "it repairs losses as Reno does, and there were some";
                    return Said::nothing(&format!("`{}` lost packets: {why}", group.name));
                }
                if has_lost {
                    otherwise.insert(group.name.as_str());
                }
            }
        }
    }
    let count = points.iter().filter(|point| claim.is_about(&point.settings)).count();
    let all: Vec<Observation> = points.iter().map(|point| point.settings.clone()).collect();
    if died > 0 && claim.lacks_runs(&all, &kept) {
        let why = format!("it dies of a division by zero in {died} of {count} runs, and too few are left");
        return Said::nothing(&why);
    }
    let verdict = claim.verdict(&kept);
    let mut text = verdict.text;
    if died > 0 {
        text.push_str(&format!(
            " (it died of a division by zero in {died} of {count} runs, which are left out)"
        ));
    }
    if !otherwise.is_empty() {
        text.push_str(" (losses repaired as Reno does)");
    }
    Said { verdict: Some(verdict.judgement), text }
}
