//! ns-2 as a peer of the papers' figures: the same models, run there, and the same claims, judged on the results.
//!
//! ns-2 runs only models that it has: the parts of a model that share no link with others are run or
//! refused by themselves, and a claim is judged if all that it reads was run. For other claims there is a
//! reason.

mod child;
mod network;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use child::Died;
pub(crate) use child::missing;
use congestlab_scenario::claims::Judgement;
use congestlab_scenario::claims::{CheckedClaim, Observation};
use congestlab_scenario::paper::{PeerValues, Refused, Written};
use congestlab_scenario::sim::model::{Group, GroupKind, Model};
use congestlab_scenario::sim::outcome::{FlowOutcome, LinkOutcome, Outcome};
use congestlab_scenario::sweep::{self, Options, PointResult, Progress};
use congestlab_scenario::{Measure, Scenario};
use network::Part;
use serde_json::Value;

use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Runs, Screen};
use crate::signals;

/// A verdict on ns-2's run of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    /// `None`: it is not in ns-2.
    pub(crate) verdict: Option<Judgement>,
    /// The measured values, or the reason for having none.
    pub(crate) text: String,
    /// True if the claim's scenario has run: without a verdict what came out says nothing of the claim.
    has_run: bool,
}

/// Before the reason why there is no verdict.
const NOT_THERE: &str = "not in ns-2: ";

impl Said {
    fn nothing(why: &str) -> Self {
        Self { verdict: None, text: format!("{NOT_THERE}{why}"), has_run: false }
    }

    fn nothing_after(why: &str) -> Self {
        Self { has_run: true, ..Self::nothing(why) }
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
    values.refused.retain(|refused| refused.figure != figure);
    for (claim, said) in claims {
        let (figure, claim, text) = (figure.to_owned(), claim.to_owned(), said.text.clone());
        match said.verdict {
            Some(verdict) => {
                values.values.push(Written { figure, claim, verdict, measured: text, control: None });
            }
            None if said.has_run => {
                let why = text.trim_start_matches(NOT_THERE).to_owned();
                values.refused.push(Refused { figure, claim, why });
            }
            None => {}
        }
    }
    values.values.sort_by(|a, b| a.figure.cmp(&b.figure));
    values.refused.sort_by(|a, b| a.figure.cmp(&b.figure));
}

/// Returns for each claim the reason why ns-2 can not run it, as far as the scenario says; `None`: it can.
///
/// # Errors
/// A point of the sweep is no scenario.
pub(crate) fn refusals(scenario: &Scenario) -> Result<Vec<Option<String>>, Failure> {
    let points = Point::all(scenario)?;
    Ok(scenario.claims().iter().map(|claim| needs(claim, &points).err()).collect())
}

/// Returns what ns-2 said of a claim.
pub(crate) fn said(values: &PeerValues, figure: &str, claim: &str) -> Said {
    values.find(figure, claim).map_or(
        Said { verdict: None, text: "ns-2: no value is written down".into(), has_run: false },
        |value| Said { verdict: Some(value.verdict), text: value.measured.clone(), has_run: true },
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
const FORM: u32 = 3;

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
const OF_FLOWS: [&str; 19] = [
    "goodput_bps",
    "throughput_bps",
    "sent_packets",
    "sent_packets_total",
    "arrived_bytes",
    "arrived_bytes_total",
    "delivered_bytes",
    "delivered_bytes_total",
    "retransmits",
    "retransmits_total",
    "timeouts",
    "timeouts_total",
    "cwnd_mean_packets",
    "cwnd_max_packets_total",
    "idle_max_s",
    "idle_max_s_total",
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

/// Why nothing can be read of a group that ns-2 runs, as a clause after its name.
fn untold(model: &Model, group: &Group) -> Option<&'static str> {
    match group.kind {
        GroupKind::Source(_) => Some("sends datagrams, of which it tells nothing"),
        GroupKind::Tcp(_) if network::repairs_otherwise(group) && network::has_errors(model, group) => {
            Some(LOST)
        }
        GroupKind::Tcp(_) => None,
    }
}

/// Why nothing is read of flows of XCP with SACK, as a clause after their name.
const LOST: &str = "lost packets: it repairs losses as Reno does, and there were some";

/// Links and groups that a claim reads, if ns-2 runs them at each point that it is about.
fn needs(claim: &CheckedClaim, points: &[Point]) -> Result<BTreeSet<(String, String)>, String> {
    let mut needs = BTreeSet::new();
    let mut returns = BTreeMap::new();
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
            let group = point.model.groups.iter().find(|group| table == "flows" && group.name == name);
            if let Some(group) = group {
                let is_bytes = network::returns_bytes(group);
                if *returns.entry(name).or_insert(is_bytes) != is_bytes {
                    return Err(format!(
                        "`{name}` returns bytes and rates by turns, and ns-2's XCP rates alone"
                    ));
                }
            }
            if let Some(why) = group.and_then(|group| untold(&point.model, group)) {
                return Err(format!("`{name}` {why}"));
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
    let needs = without_the_lost(scenario, &points, needs)?;
    let wanted: BTreeSet<_> = needs.iter().flatten().flatten().cloned().collect();
    let results = match wanted.is_empty() {
        true => Vec::new(),
        false => run(name, scenario, &wanted, folder, threads, screen)?,
    };
    let judged = scenario.claims().iter().zip(needs).map(|(claim, needs)| match needs {
        Ok(needs) => verdict(claim, &needs, &points, &results),
        Err(said) => said,
    });
    Ok(judged.collect())
}

/// Links and groups that a claim reads, or what is said of it without them.
type Needs = Result<BTreeSet<(String, String)>, Said>;

/// Looks at the first run of flows that nobody judges once a packet of theirs was lost, before all the others are made in vain.
fn without_the_lost(
    scenario: &Scenario,
    points: &[Point],
    needs: Vec<Result<BTreeSet<(String, String)>, String>>,
) -> Result<Vec<Needs>, Failure> {
    let mut looked: BTreeMap<(usize, String), bool> = BTreeMap::new();
    let mut list = Vec::new();
    for (claim, needs) in scenario.claims().iter().zip(needs) {
        let mut needs = needs.map_err(|why| Said::nothing(&why));
        let first = points.iter().position(|point| claim.is_about(&point.settings));
        let names: Vec<String> = needs.iter().flatten().filter_map(of_flows).collect();
        for (first, name) in first.into_iter().flat_map(|first| names.iter().map(move |name| (first, name))) {
            let model = &points[first].model;
            let is_it = |group: &Group| group.name == *name && network::repairs_otherwise(group);
            let Some(group) = model.groups.iter().position(is_it) else { continue };
            let key = (first, name.clone());
            let has_lost = match looked.get(&key) {
                Some(has_lost) => *has_lost,
                None => loses(model, group)?,
            };
            looked.insert(key, has_lost);
            if has_lost {
                needs = Err(Said::nothing_after(&format!("`{name}` {LOST}")));
                break;
            }
        }
        list.push(needs);
    }
    Ok(list)
}

fn of_flows((table, name): &(String, String)) -> Option<String> {
    (table == "flows").then(|| name.clone())
}

/// Runs what the group is a part of, and returns whether one of its flows sent a packet again.
fn loses(model: &Model, group: usize) -> Result<bool, Failure> {
    let wanted = BTreeSet::from([("flows".to_owned(), model.groups[group].name.clone())]);
    let stop = signals::stop_flag()?;
    let failed = |why| Failure::Run(Message::new(format!("ns-2: {why}"), ""));
    let outcome = outcome(model, &wanted, &stop).map_err(failed)?;
    Ok(outcome.groups[group].iter().any(|flow| flow.retransmits_total > 0))
}

fn run(
    name: &str,
    scenario: &Scenario,
    wanted: &BTreeSet<(String, String)>,
    folder: &Path,
    threads: Option<usize>,
    screen: &Screen,
) -> Result<Vec<PointResult>, Failure> {
    let stop = signals::stop_flag()?;
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
        groups: model
            .groups
            .iter()
            .map(|group| vec![FlowOutcome::default(); group.count as usize].into())
            .collect(),
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
    let (mut kept, mut died, mut remarks) = (Vec::new(), 0, BTreeSet::new());
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
            let groups = || part.groups.iter().map(|&group| &point.model.groups[group]);
            if groups().any(network::returns_bytes) {
                remarks.insert("feedback times srtt");
            }
            for group in groups().filter(|group| network::repairs_otherwise(group)) {
                let flows = result.result["flows"][&group.name].as_array();
                let has_lost =
                    flows.is_some_and(|flows| flows.iter().any(|flow| flow["retransmits_total"] != 0));
                if has_lost && table == "flows" {
                    return Said::nothing_after(&format!("`{}` {LOST}", group.name));
                }
                if has_lost {
                    remarks.insert("losses repaired as Reno does");
                }
            }
        }
    }
    let count = points.iter().filter(|point| claim.is_about(&point.settings)).count();
    let all: Vec<Observation> = points.iter().map(|point| point.settings.clone()).collect();
    if died > 0 && claim.lacks_runs(&all, &kept) {
        let why = format!("it dies of a division by zero in {died} of {count} runs, and too few are left");
        return Said::nothing_after(&why);
    }
    let verdict = claim.verdict(&kept);
    let mut text = verdict.text;
    if died > 0 {
        text.push_str(&format!(
            " (it died of a division by zero in {died} of {count} runs, which are left out)"
        ));
    }
    for remark in remarks {
        text.push_str(&format!(" ({remark})"));
    }
    Said { verdict: Some(verdict.judgement), text, has_run: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_in_bytes_is_not_held_against_rates_where_there_are_rates_alone() {
        let sender = |rest: &str| format!("{{ xcp = {{ request = \"unlimited\"{rest} }} }}");
        let (bytes, rates) = (sender(", feedback = \"bytes\""), sender(""));
        let text = format!(
            "[run]\nduration = \"10 s\"\n[laws.xcp]\npacing = false\n[links.a]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nlaw = \"xcp\"\n[flows.f]\npath = \
             [\"a\"]\nlaw = {bytes}\n[sweep.zip]\n\"flows.f.law\" = [{bytes}, {rates}]\n[figure]\nof = \"it\"\ntitle = \"It\"\nx = \
             \"time\"\nlines = [{{ name = \"it\", metric = \"links.a.queue_packets\", y = \"queue\" }}]\n[[claims]]\nthat = \"rates differ \
             from bytes\"\nmetric = \"flows.f[0].goodput_bps\"\nat_least = 1.02\nonly = {{ \"flows.f.law\" = [{rates}] }}\nagainst = {{ \
             \"flows.f.law\" = [{bytes}] }}\n[[claims]]\nthat = \"bytes use it\"\nmetric = \"flows.f[0].goodput_bps\"\nat_least = 1\nonly = \
             {{ \"flows.f.law\" = [{bytes}] }}\n"
        );
        let scenario = Scenario::parse("test", &text, Path::new(""), &[], None)
            .unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        let refusals = refusals(&scenario).unwrap_or_else(|_| panic!("each point is a scenario"));
        let why = "`f` returns bytes and rates by turns, and ns-2's XCP rates alone";
        assert_eq!(refusals, [Some(why.to_owned()), None]);
    }
}
