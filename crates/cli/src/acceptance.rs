//! `congestlab acceptance`: a report card of a law beside others.
//!
//! Cases are scenarios of `scenarios/acceptance`, which are in the binary; `data/acceptance.toml` puts them into sections. What
//! a case calls its own (`[figure] own`) runs the law in question: flows its sender, links its link law, or none, with the
//! queue that it wants. Everything else of a case stays, such as the flows of TCP that it competes with. Nothing is kept on disk.

mod cards;
mod page;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use congestlab_scenario::claims::{Observation, Worst};
use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::figure::Figure;
use congestlab_scenario::law::{interoperable_keys, law_of, link_law_of, sender_presets, senders};
use congestlab_scenario::laws::Protocol;
use congestlab_scenario::laws::settings::{Field, Settings};
use congestlab_scenario::sweep::see_point;
use congestlab_scenario::{Files, Scenario, store};

use crate::args::AcceptanceArguments;
use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Screen, gauge, print, require_file, write_file};
use crate::signals;
use cards::{Case, Section};

/// Traces that cases name.
const TRACES: [(&str, &[u8]); 2] = [
    ("../beyond/stalls.down", include_bytes!("../data/stalls.down")),
    ("../synthetic-lte.down", include_bytes!("../data/synthetic-lte.down")),
];

/// A law as one of the report's columns.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    label: String,
    law: &'static str,
    /// Setting of the law that is switched off, on links and flows that have it.
    off: Option<&'static str>,
}

/// A bound of a case and what came out, column by column.
struct Criterion {
    that: String,
    metric: String,
    source: String,
    bound: f64,
    is_least: bool,
    cells: Vec<Cell>,
}

/// Result of a criterion for a law.
#[derive(Clone, Debug)]
enum Cell {
    Measured(Worst),
    /// Nothing was measured, for this reason.
    NotApplicable(Missing),
}

/// A setting that a case needs and a law has not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Missing {
    law: &'static str,
    /// Links of the law would need it, not its flows.
    is_of_links: bool,
    key: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { law, is_of_links, key } = self;
        if *is_of_links {
            write!(f, "links of {law} have no `{key}`")
        } else {
            write!(f, "{law} has no `{key}`")
        }
    }
}

impl Cell {
    fn is_met(&self) -> bool {
        matches!(self, Self::Measured(worst) if worst.short_by() == Some(0.0))
    }
}

/// Results of a case.
struct Measured<'a> {
    case: &'a Case,
    criteria: Vec<Criterion>,
    /// Column by column, the reason for which the case does not apply.
    missing: Vec<Option<Missing>>,
}

/// Results of all cases that were asked for.
struct Card<'a> {
    law: &'a str,
    seed: Option<u64>,
    columns: Vec<Column>,
    sections: Vec<(&'a Section, Vec<Measured<'a>>)>,
}

impl Card<'_> {
    /// Criteria of the first column: met, missed, not applicable.
    fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        let cases = self.sections.iter().flat_map(|(_, cases)| cases);
        for criterion in cases.flat_map(|case| &case.criteria) {
            let place = match criterion.cells.first() {
                Some(cell) if cell.is_met() => 0,
                Some(Cell::Measured(_)) => 1,
                _ => 2,
            };
            counts[place] += 1;
        }
        counts
    }
}

pub(crate) fn acceptance(arguments: &AcceptanceArguments, screen: &Screen) -> Result<(), Failure> {
    let cards = cards::read()?;
    let columns = columns(arguments, &cards.beside)?;
    let sections = chosen(&cards.sections, arguments)?;
    if let Some(path) = &arguments.html {
        require_file(path)?;
    }
    let (measured, seconds) = measure(&columns, &sections, &cards.disciplines, arguments, screen)?;
    let mut measured = measured.into_iter();
    let mut of_section = |section: &Chosen<'_>| measured.by_ref().take(section.cases.len()).collect();
    let sections = sections.iter().map(|section| (section.section, of_section(section))).collect();
    let card = Card { law: &arguments.law, seed: arguments.seed, columns, sections };
    screen.note(&format!("measured in {seconds:.0} s"));
    if let Some(path) = &arguments.html {
        write_file(path, |out| out.write_all(page::html(&card).as_bytes()))?;
        screen.note(&format!("the report card is {}", path.display()));
    }
    print(&if screen.json { store::pretty(&page::to_json(&card)) } else { page::describe(&card) })?;
    let [_, missed, _] = card.counts();
    if arguments.check && missed > 0 {
        let text = format!("{} misses {missed} bounds", card.law);
        return Err(Failure::Claim(Message::new(text, "")));
    }
    Ok(())
}

/// A section with those of its cases that are asked for.
struct Chosen<'a> {
    section: &'a Section,
    cases: Vec<&'a Case>,
}

fn chosen<'a>(sections: &'a [Section], arguments: &AcceptanceArguments) -> Result<Vec<Chosen<'a>>, Failure> {
    let all = || sections.iter().flat_map(|section| &section.cases).map(|case| case.name.as_str());
    if let Some(wrong) = arguments.only.iter().find(|only| all().all(|name| name != only.as_str())) {
        let text = format!("there is no case `{wrong}`");
        return Err(Failure::Input(Message::new(text, choices(wrong, all()))));
    }
    let is_asked = |case: &&Case| {
        let is_quick = !arguments.quick || case.is_quick;
        if arguments.only.is_empty() { is_quick } else { arguments.only.contains(&case.name) }
    };
    let of = |section: &'a Section| {
        let cases: Vec<&Case> = section.cases.iter().filter(is_asked).collect();
        // What is not measured is told with the whole.
        let is_told = !cases.is_empty() || (section.unmeasured.is_some() && arguments.only.is_empty());
        is_told.then_some(Chosen { section, cases })
    };
    Ok(sections.iter().filter_map(of).collect())
}

/// The law in question first; beside it the others, or itself with each of its parts switched off.
fn columns(arguments: &AcceptanceArguments, beside: &[String]) -> Result<Vec<Column>, Failure> {
    let known = |name: &str| {
        let all = [senders(), sender_presets()].concat();
        all.iter().find(|other| **other == name).copied().ok_or_else(|| {
            Failure::Input(Message::new(format!("there is no law `{name}`"), choices(name, all)))
        })
    };
    let column = |law: &'static str| Column { label: law.into(), law, off: None };
    let law = known(&arguments.law)?;
    let mut columns = vec![column(law)];
    if arguments.parts {
        let parts = parts(law);
        if parts.is_empty() {
            let text = format!("{law} has no parts that are on and can be switched off");
            return Err(Failure::Input(Message::new(text, "leave --parts out")));
        }
        columns.extend(parts.into_iter().map(|off| Column {
            label: format!("no {off}"),
            law,
            off: Some(off),
        }));
        return Ok(columns);
    }
    let named = if arguments.beside.is_empty() { beside } else { &arguments.beside };
    for name in named {
        let other = column(known(name)?);
        if !columns.contains(&other) {
            columns.push(other);
        }
    }
    Ok(columns)
}

/// The switches of a law that are on: of its links first, then of its flows, each name once.
pub(crate) fn parts(law: &str) -> Vec<&'static str> {
    let mut parts = Vec::new();
    let mut take = |key: &'static str, _: &'static str, field: Field<'_>| {
        if matches!(field, Field::Switch(true) | Field::Weight(Some(_))) && !parts.contains(&key) {
            parts.push(key);
        }
    };
    if let Some(mut link) = Protocol::of(law_of(law, true)).and_then(|protocol| protocol.link.clone()) {
        link.each(&mut take);
    }
    if let Some(mut sender) = Protocol::of(law_of(law, false)).and_then(|protocol| protocol.sender.clone()) {
        sender.each(&mut take);
    }
    parts
}

/// Names of the settings of a law, on a link or of a flow, and of XCP-i's beside them.
pub(crate) fn keys(law: &str, is_link: bool) -> Vec<&'static str> {
    let law = law_of(law, is_link);
    let mut keys = interoperable_keys(law, is_link).to_vec();
    let Some(protocol) = Protocol::of(law) else { return keys };
    let mut take = |key: &'static str, _: &'static str, _: Field<'_>| keys.push(key);
    if is_link {
        if let Some(mut config) = protocol.link.clone() {
            config.each(&mut take);
        }
    } else if let Some(mut config) = protocol.sender.clone() {
        config.each(&mut take);
    }
    keys
}

/// Returns what to set in a case so that a column's law runs it; `Err`: what the law has not.
fn settings(
    case: &Case,
    column: &Column,
    disciplines: &BTreeMap<String, toml::Value>,
) -> Result<Vec<(String, String)>, Missing> {
    let mut sets = Vec::new();
    for path in &case.own {
        let is_link = path.starts_with("links.");
        let law = if is_link { link_law_of(column.law) } else { Some(column.law) };
        let mut told = case.settings(path);
        let Some(law) = law else {
            if let Some(key) = told.keys().next() {
                return Err(Missing { law: column.law, is_of_links: true, key: key.clone() });
            }
            sets.push((path.clone(), "\"none\"".into()));
            sets.extend(discipline(case, path, column, disciplines));
            continue;
        };
        // An interoperable link's port is XCP-i's, so no medium can have it.
        let medium = format!("{}.medium", path.trim_end_matches(".law"));
        if is_link && law_of(law, true) != law && case.value(&medium).is_some() {
            return Err(Missing { law, is_of_links: true, key: "medium".into() });
        }
        let known = keys(law, is_link);
        if let Some(key) = told.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(Missing { law, is_of_links: false, key: key.clone() });
        }
        if let Some(off) = column.off.filter(|off| known.contains(off)) {
            told.insert(off.into(), toml::Value::Boolean(false));
        }
        let value = match told.is_empty() {
            true => format!("\"{law}\""),
            false => toml::Value::Table([(law.to_owned(), toml::Value::Table(told))].into_iter().collect())
                .to_string(),
        };
        sets.push((path.clone(), value));
        sets.extend(discipline(case, path, column, disciplines));
    }
    Ok(sets)
}

/// Returns the queues that laws want of the links that they run on, by law.
pub(crate) fn disciplines() -> Result<BTreeMap<String, toml::Value>, Failure> {
    Ok(cards::read()?.disciplines)
}

/// The queue that a law wants of a link, beside its law's path, unless the case is about one.
fn discipline(
    case: &Case,
    path: &str,
    column: &Column,
    disciplines: &BTreeMap<String, toml::Value>,
) -> Option<(String, String)> {
    let link = path.strip_suffix(".law").filter(|link| link.starts_with("links."))?;
    let path = format!("{link}.discipline");
    let wanted = disciplines.get(column.law).filter(|_| case.value(&path).is_none());
    Some((path, wanted?.to_string()))
}

/// A case with a column's law, ready to run.
struct Job<'a> {
    case: &'a Case,
    /// The case with the column's law; `Err`: what the law has not.
    scenario: Result<Scenario, Missing>,
}

impl Job<'_> {
    fn points(&self) -> usize {
        self.scenario.as_ref().map_or(0, |scenario| scenario.sweep().map_or(1, |sweep| sweep.points().len()))
    }
}

/// Reads every case with every column's law, case by case.
fn jobs<'a>(
    columns: &[Column],
    sections: &[Chosen<'a>],
    disciplines: &BTreeMap<String, toml::Value>,
    seed: Option<u64>,
) -> Result<Vec<Job<'a>>, Failure> {
    let traces: BTreeMap<String, Vec<u8>> =
        TRACES.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    let traces = Files::Given(Arc::new(traces));
    let mut jobs = Vec::new();
    for case in sections.iter().flat_map(|section| &section.cases) {
        for column in columns {
            let scenario = settings(case, column, disciplines).map(|sets| {
                let name = format!("{}.toml", case.name);
                let scenario = Scenario::parse_with(&name, case.text, traces.clone(), &sets, seed)?;
                scenario.check()?;
                Ok(scenario)
            });
            let scenario = match scenario {
                Ok(read) => Ok(read.map_err(Failure::Scenario)?),
                Err(missing) => Err(missing),
            };
            jobs.push(Job { case, scenario });
        }
    }
    Ok(jobs)
}

/// Runs every case with every column's law, on several threads. Returns the cases in their order, and the seconds that it took.
fn measure<'a>(
    columns: &[Column],
    sections: &[Chosen<'a>],
    disciplines: &BTreeMap<String, toml::Value>,
    arguments: &AcceptanceArguments,
    screen: &Screen,
) -> Result<(Vec<Measured<'a>>, f64), Failure> {
    let clock = Clock::start();
    let jobs = jobs(columns, sections, disciplines, arguments.seed)?;
    let mut threads = arguments.threads.unwrap_or_else(machine::cores);
    for scenario in jobs.iter().filter_map(|job| job.scenario.as_ref().ok()) {
        threads = crate::sweep::threads_that_fit(scenario, threads)?;
    }
    let observed = run(&jobs, threads, screen)?;
    let mut seen = jobs.iter().zip(observed);
    let cases = sections.iter().flat_map(|section| &section.cases);
    let judged = cases.map(|case| {
        let of_case: Vec<_> = seen.by_ref().take(columns.len()).collect();
        let missing = of_case.iter().map(|(job, _)| job.scenario.as_ref().err().cloned());
        Measured { case, missing: missing.collect(), criteria: criteria(case, &of_case) }
    });
    Ok((judged.collect(), clock.wall()))
}

/// Returns the bounds of a case, with the results of each law.
fn criteria(case: &Case, of_case: &[(&Job<'_>, Vec<Observation>)]) -> Vec<Criterion> {
    let mut criteria = Vec::new();
    for (place, claim) in case.scenario.claims().iter().enumerate() {
        for (limit, Worst { bound, is_least, .. }) in claim.worst(&[]).into_iter().enumerate() {
            let cell = |(job, seen): &(&Job<'_>, Vec<Observation>)| match &job.scenario {
                Ok(scenario) => Cell::Measured(scenario.claims()[place].worst(seen)[limit]),
                Err(missing) => Cell::NotApplicable(missing.clone()),
            };
            criteria.push(Criterion {
                that: claim.that().into(),
                metric: claim.verdict(&[]).metric,
                source: claim.source().unwrap_or_default().into(),
                bound,
                is_least,
                cells: of_case.iter().map(cell).collect(),
            });
        }
    }
    criteria
}

/// Runs all jobs, and returns the runs of each, in their order.
fn run(jobs: &[Job<'_>], threads: usize, screen: &Screen) -> Result<Vec<Vec<Observation>>, Failure> {
    let tasks: Vec<(usize, usize)> = jobs
        .iter()
        .enumerate()
        .flat_map(|(job, of)| (0..of.points()).map(move |point| (job, point)))
        .collect();
    let stop = signals::stop_flag()?;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let seen: Mutex<Vec<(usize, usize, Observation)>> = Mutex::default();
    let failed: Mutex<Option<Failure>> = Mutex::default();
    let line = Mutex::new(screen.progress());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let Some(&(job, point)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let Ok(scenario) = &jobs[job].scenario else { continue };
            match see_point(scenario, point, crate::sweep::code(), &crate::sweep::simulate(&stop)) {
                Ok(Some(result)) => {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.push((job, point, result.observation()));
                }
                Ok(None) => return,
                Err(error) => {
                    let failure = crate::sweep::failure(error);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                    return;
                }
            }
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            let Ok(mut line) = line.lock() else { continue };
            let (name, share) = (&jobs[job].case.name, done as f64 / tasks.len() as f64);
            line.tell(|elapsed| {
                format!("{}  {name}: {done} of {} runs, {elapsed:.0} s", gauge(share), tasks.len())
            });
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    if let Ok(mut line) = line.lock() {
        line.clear();
    }
    finished(&stop, failed)?;
    let mut seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    seen.sort_by_key(|(job, point, _)| (*job, *point));
    let mut all: Vec<Vec<Observation>> = jobs.iter().map(|_| Vec::new()).collect();
    for (job, _, observation) in seen {
        all[job].push(observation);
    }
    Ok(all)
}

fn finished(stop: &AtomicBool, failed: Mutex<Option<Failure>>) -> Result<(), Failure> {
    if let Some(failure) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted("interrupted before all cases were measured".into()));
    }
    Ok(())
}

/// Returns title, paths of laws and haste, as a case's file has them.
fn told(figure: Option<Figure<'_>>) -> (String, Vec<String>, bool) {
    let title = figure.as_ref().map_or("", |figure| figure.title()).to_owned();
    let own = figure.iter().flat_map(|figure| figure.own()).map(str::to_owned).collect();
    (title, own, figure.is_some_and(Figure::is_quick))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Whoever adds a law gets a card: only the named cases ask of a law what only some have.
    #[test]
    fn every_law_can_be_measured_in_every_case() {
        let cards = cards::read().unwrap_or_else(|failure| panic!("{failure:?}"));
        let sections: Vec<Chosen<'_>> = cards
            .sections
            .iter()
            .map(|section| Chosen { section, cases: section.cases.iter().collect() })
            .collect();
        let columns: Vec<Column> = [senders(), sender_presets()]
            .concat()
            .into_iter()
            .map(|law| Column { label: law.into(), law, off: None })
            .collect();
        let jobs = jobs(&columns, &sections, &cards.disciplines, None);
        let jobs = jobs.unwrap_or_else(|failure| panic!("{failure:?}"));
        let asking: BTreeSet<&str> =
            jobs.iter().filter(|job| job.scenario.is_err()).map(|job| job.case.name.as_str()).collect();
        // Headers that lie, capacities that are told, a queue beside XCP's, XCP-i's edges; and a medium, for presets alone.
        let some = [
            "hostile-headers",
            "liars",
            "capacity",
            "beside-tcp-classes",
            "shared-clouds",
            "lossy-cloud",
            "half-duplex",
        ];
        assert_eq!(asking, BTreeSet::from(some));
        for job in jobs.iter().filter(|job| job.case.own.iter().all(|own| job.case.settings(own).is_empty()))
        {
            let is_of_preset =
                job.scenario.as_ref().is_err_and(|missing| sender_presets().contains(&missing.law));
            assert!(job.scenario.is_ok() || is_of_preset, "{}", job.case.name);
        }
    }

    #[test]
    fn parts_are_switches_that_are_on() {
        let parts = parts("xcp2");
        for part in ["calibrate", "hops", "sparse", "aging", "pacing"] {
            assert_eq!(parts.iter().filter(|other| **other == part).count(), 1, "{part} in {parts:?}");
        }
        assert!(!parts.contains(&"beside"), "it is off: {parts:?}");
        assert_eq!(super::parts("cubic"), [] as [&str; 0]);
    }
}
