//! `congestlab search`: networks in which a law does harm, found by chance and selection, and made as simple as they can be.
//!
//! A case is drawn, or is one that harmed before with something changed. Of each kind of harm the worst case is kept for each set
//! of mechanisms, so that what is bad in one way does not hide what is bad in another. With a part of the runs each of these is made simpler for as
//! long as the harm stays: a mechanism that can be left out was not the cause. What is drawn is a function of the seed and of the
//! number of the case, and batches are judged in their order: threads and machines change nothing.

mod case;
mod harm;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::law::{link_law_of, senders};
use congestlab_scenario::net::random::Stream;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Files, Measure, Scenario, disk, store};
use serde_json::{Value, json};

use crate::acceptance::{disciplines, keys, parts};
use crate::args::SearchArguments;
use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Progress, Screen, gauge, print, require_folder};
use crate::signals;
use crate::table::{Cell, Table};
use crate::watch::{self, Watch};
use case::{Case, Cause, Spoken};
use harm::{Harm, Harms, Kind};

/// Cases that are run before the next are made. Not the number of threads, which must change nothing.
const BATCH: usize = 16;
/// Cases that are made simpler at the same time, and candidates of each in a batch.
const AT_ONCE: usize = 8;
const AHEAD: usize = BATCH / AT_ONCE;
/// The most candidates of a case, of which a tenth is better.
const CANDIDATES_MAX: usize = 120;
/// Part of the budget, in percent, after which cases are made simpler.
const EXPLORED: u64 = 60;
/// Part of the harm, in percent, that a simpler case must still do.
const KEPT: f64 = 0.9;

/// A case with what it does.
#[derive(Clone, Debug)]
struct Measured {
    case: Case,
    harms: Harms,
    /// The same with the other law.
    against: Option<Harms>,
}

impl Measured {
    /// Harm, less that of the other law.
    fn score(&self, kind: Kind) -> f64 {
        let other = self.against.as_ref().map_or(0.0, |harms| harms[kind as usize].amount);
        self.harms[kind as usize].amount - other
    }

    fn harm(&self, kind: Kind) -> &Harm {
        &self.harms[kind as usize]
    }
}

/// A case that harms, for the reader.
#[derive(Debug)]
struct Found {
    kind: Kind,
    measured: Measured,
    causes: BTreeSet<Cause>,
    /// Nothing that was tried is simpler.
    is_minimal: bool,
}

impl Found {
    fn score(&self) -> f64 {
        self.measured.score(self.kind)
    }

    /// Returns true if another case, with this much harm by these mechanisms, is no news.
    fn explains(&self, kind: Kind, causes: &BTreeSet<Cause>, score: f64) -> bool {
        self.kind == kind && self.causes.is_subset(causes) && self.score() >= 0.75 * score
    }
}

/// A case on its way to a simpler one.
#[derive(Debug)]
struct Shrinking {
    found: Found,
    /// The least harm of a simpler one.
    floor: f64,
    simpler: Vec<Case>,
    next: usize,
    tried: usize,
}

impl Shrinking {
    fn new(kind: Kind, measured: Measured) -> Self {
        let floor = (KEPT * measured.score(kind)).max(kind.threshold());
        let (simpler, causes) = (measured.case.simpler(), measured.case.causes());
        let found = Found { kind, measured, causes, is_minimal: false };
        Self { found, floor, simpler, next: 0, tried: 0 }
    }

    fn is_done(&self) -> bool {
        self.next >= self.simpler.len() || self.tried >= CANDIDATES_MAX
    }

    /// Takes a simpler case.
    fn take(&mut self, measured: Measured) {
        self.found.causes = measured.case.causes();
        self.simpler = measured.case.simpler();
        self.next = 0;
        self.found.measured = measured;
    }

    fn finish(mut self) -> Found {
        self.found.is_minimal = self.next >= self.simpler.len();
        self.found
    }
}

/// Laws, bounds and progress of a search.
struct Search<'a> {
    law: Spoken,
    against: Option<Spoken>,
    seed: u64,
    budget: u64,
    /// Seconds after which no batch is begun.
    limit: f64,
    threads: usize,
    clock: Clock,
    stop: &'a AtomicBool,
    line: Mutex<Progress>,
    runs: u64,
    /// False if it was ended before.
    is_complete: bool,
}

pub(crate) fn search(arguments: &SearchArguments, screen: &Screen) -> Result<(), Failure> {
    let law = spoken(&arguments.law, &arguments.without)?;
    let against = arguments.against.as_deref().map(|law| spoken(law, &[])).transpose()?;
    let folder = folder(arguments);
    require_folder(&folder)?;
    if std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let text = format!("{} is not empty", folder.display());
        return Err(Failure::Input(Message::new(text, "name another folder by --out")));
    }
    let stop = signals::stop_flag_for_good(screen)?;
    let mut search = Search {
        law,
        against,
        seed: arguments.seed,
        budget: arguments.budget,
        limit: arguments.limit.map_or(f64::INFINITY, |time| time.0 as f64 / 1e9),
        threads: arguments.threads.unwrap_or_else(machine::cores),
        clock: Clock::start(),
        stop: &stop,
        line: Mutex::new(screen.progress()),
        runs: 0,
        is_complete: false,
    };
    let worst = search.explore()?;
    let mut found = search.shrink(worst)?;
    if let Ok(mut line) = search.line.lock() {
        line.clear();
    }
    keep(&mut found, arguments.keep);
    let is_interrupted = stop.load(Ordering::Relaxed);
    search.is_complete = !is_interrupted && search.clock.wall() < search.limit;
    if !is_interrupted {
        signals::unwatch(&stop)?;
    }
    let (runs, seconds) = (search.runs, search.clock.wall());
    let written = write(&folder, &search, arguments, &found)?;
    screen.note(&format!("{runs} runs in {seconds:.0} s"));
    print(&if screen.json { written } else { describe(&search, arguments, &found, &folder) })?;
    if is_interrupted {
        let text =
            format!("interrupted after {runs} runs; what was found until then is in {}", folder.display());
        return Err(Failure::Interrupted(text));
    }
    Ok(())
}

/// Where the scenarios go.
fn folder(arguments: &SearchArguments) -> PathBuf {
    let default = || Path::new("found").join(format!("{}-{}", arguments.law, arguments.seed));
    arguments.out.clone().unwrap_or_else(default)
}

/// A law as scenarios say it, with some of its parts off.
fn spoken(name: &str, without: &[String]) -> Result<Spoken, Failure> {
    let all = senders();
    let Some(&law) = all.iter().find(|other| **other == name) else {
        return Err(Failure::Input(Message::new(format!("there is no law `{name}`"), choices(name, all))));
    };
    let switches = parts(law);
    if let Some(wrong) = without.iter().find(|off| !switches.contains(&off.as_str())) {
        let text = format!("{law} has no part `{wrong}` that is on");
        return Err(Failure::Input(Message::new(text, choices(wrong, switches))));
    }
    let off = |known: &[&str]| -> String {
        let off = without.iter().filter(|off| known.contains(&off.as_str()));
        off.map(|off| format!("{off} = false")).collect::<Vec<_>>().join(", ")
    };
    let of_flow = keys(law, false);
    let link = match link_law_of(law) {
        None => "\"none\"".into(),
        Some(link) => match off(&keys(link, true)) {
            settings if settings.is_empty() => format!("\"{link}\""),
            settings => format!("{{ {link} = {{ {settings} }} }}"),
        },
    };
    let discipline = disciplines()?.get(law).map(toml::Value::to_string);
    Ok(Spoken { link, discipline, flow: law, settings: off(&of_flow), can_lie: of_flow.contains(&"price") })
}

impl Search<'_> {
    fn runs_of_a_case(&self) -> u64 {
        1 + u64::from(self.against.is_some())
    }

    /// Returns true if another batch may begin.
    fn goes_on(&self, until: u64) -> bool {
        self.runs + self.runs_of_a_case() <= until
            && !self.stop.load(Ordering::Relaxed)
            && self.clock.wall() < self.limit
    }

    /// Draws cases and changes those that harm, until a part of the budget is used. Returns the worst, by harm and mechanisms.
    fn explore(&mut self) -> Result<BTreeMap<(Kind, BTreeSet<Cause>), Measured>, Failure> {
        let until = (self.budget * EXPLORED / 100).max(self.runs_of_a_case());
        let mut worst: BTreeMap<(Kind, BTreeSet<Cause>), Measured> = BTreeMap::new();
        let mut number = 0_u64;
        while self.goes_on(until) {
            let count = BATCH.min(((until - self.runs) / self.runs_of_a_case()) as usize);
            let mut cases = Vec::new();
            for _ in 0..count {
                let mut stream = Stream::named(self.seed, &format!("search.{number}"));
                number += 1;
                cases.push(self.candidate(&worst, &mut stream));
            }
            for measured in self.measure(&cases, "explores")? {
                for kind in Kind::ALL {
                    // What does a little harm may do more when it is changed.
                    if measured.score(kind) < kind.threshold() / 4.0 {
                        continue;
                    }
                    let key = (kind, measured.case.causes());
                    let known = worst.get(&key).map_or(0.0, |known| known.score(kind));
                    if measured.score(kind) > known {
                        worst.insert(key, measured.clone());
                    }
                }
            }
        }
        Ok(worst)
    }

    /// The next case: a new one, or one of the worst with something changed.
    fn candidate(&self, worst: &BTreeMap<(Kind, BTreeSet<Cause>), Measured>, stream: &mut Stream) -> Case {
        let kind = Kind::ALL[stream.below(5) as usize];
        let of_kind: Vec<&Measured> =
            worst.iter().filter(|((of, _), _)| *of == kind).map(|(_, measured)| measured).collect();
        let is_new = stream.below(10) < 4;
        match of_kind.get(stream.below(of_kind.len() as u64) as usize) {
            Some(parent) if !is_new => parent.case.mutate(stream, self.law.can_lie),
            _ => Case::draw(stream, self.law.can_lie),
        }
    }

    /// Makes the worst cases simpler, those with the fewest mechanisms first, while there is budget; the others stay as they are.
    fn shrink(&mut self, worst: BTreeMap<(Kind, BTreeSet<Cause>), Measured>) -> Result<Vec<Found>, Failure> {
        let mut waiting: Vec<((Kind, BTreeSet<Cause>), Measured)> = worst
            .into_iter()
            .filter(|((kind, _), measured)| measured.score(*kind) >= kind.threshold())
            .collect();
        waiting.sort_by(|((a, causes), left), ((b, others), right)| {
            let by_harm = right.score(*b).total_cmp(&left.score(*a));
            causes.len().cmp(&others.len()).then(by_harm).then(left.case.cmp(&right.case))
        });
        let mut waiting = waiting.into_iter();
        let (mut active, mut found) = (Vec::<Shrinking>::new(), Vec::<Found>::new());
        loop {
            while active.len() < AT_ONCE {
                let Some(((kind, causes), measured)) = waiting.next() else { break };
                let score = measured.score(kind);
                let known = found.iter().chain(active.iter().map(|shrinking| &shrinking.found));
                if !known.into_iter().any(|known| known.explains(kind, &causes, score)) {
                    active.push(Shrinking::new(kind, measured));
                }
            }
            if active.is_empty() || !self.goes_on(self.budget) {
                break;
            }
            let mut room = ((self.budget - self.runs) / self.runs_of_a_case()) as usize;
            let (mut cases, mut counts) = (Vec::new(), Vec::new());
            for shrinking in &active {
                let end = (shrinking.next + AHEAD.min(room)).min(shrinking.simpler.len());
                cases.extend_from_slice(&shrinking.simpler[shrinking.next..end]);
                counts.push(end - shrinking.next);
                room -= end - shrinking.next;
            }
            let measured = self.measure(&cases, "simplifies")?;
            if measured.len() < cases.len() {
                break;
            }
            let mut measured = measured.into_iter();
            for (shrinking, count) in active.iter_mut().zip(counts) {
                shrinking.next += count;
                shrinking.tried += count;
                let of_this: Vec<Measured> = measured.by_ref().take(count).collect();
                let harms = |one: &Measured| one.score(shrinking.found.kind) >= shrinking.floor;
                if let Some(simpler) = of_this.into_iter().find(harms) {
                    shrinking.take(simpler);
                }
            }
            for shrinking in std::mem::take(&mut active) {
                match shrinking.is_done() {
                    true => found.push(shrinking.finish()),
                    false => active.push(shrinking),
                }
            }
        }
        found.extend(active.into_iter().map(Shrinking::finish));
        for ((kind, causes), measured) in waiting {
            let score = measured.score(kind);
            if !found.iter().any(|known| known.explains(kind, &causes, score)) {
                found.push(Found { kind, measured, causes, is_minimal: false });
            }
        }
        Ok(found)
    }

    /// Runs cases on several threads. Returns them in their order; none, if somebody interrupts.
    fn measure(&mut self, cases: &[Case], does: &str) -> Result<Vec<Measured>, Failure> {
        let next = AtomicUsize::new(0);
        let seen: Mutex<Vec<(usize, Measured)>> = Mutex::default();
        let failed: Mutex<Option<Failure>> = Mutex::default();
        let (this, runs) = (&*self, self.runs);
        let work = || {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                match this.run(case) {
                    Ok(Some(measured)) => {
                        let place = cases.iter().position(|other| std::ptr::eq(other, case));
                        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                        seen.push((place.unwrap_or(0), measured));
                    }
                    Ok(None) => return,
                    Err(failure) => {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                        return;
                    }
                }
                let Ok(mut line) = this.line.lock() else { continue };
                let share = runs as f64 / this.budget as f64;
                line.tell(|elapsed| {
                    format!("{}  {does}: {runs} of {} runs, {elapsed:.0} s", gauge(share), this.budget)
                });
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..this.threads.min(cases.len()) {
                scope.spawn(work);
            }
        });
        if let Some(failure) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(failure);
        }
        let mut seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < cases.len() {
            return Ok(Vec::new());
        }
        self.runs += cases.len() as u64 * self.runs_of_a_case();
        seen.sort_by_key(|(place, _)| *place);
        Ok(seen.into_iter().map(|(_, measured)| measured).collect())
    }

    /// Runs a case with each law; `None`: interrupted.
    fn run(&self, case: &Case) -> Result<Option<Measured>, Failure> {
        let Some(harms) = self.run_with(case, &self.law)? else { return Ok(None) };
        let against = match &self.against {
            None => None,
            Some(law) => match self.run_with(case, law)? {
                None => return Ok(None),
                harms => harms,
            },
        };
        Ok(Some(Measured { case: case.clone(), harms, against }))
    }

    fn run_with(&self, case: &Case, law: &Spoken) -> Result<Option<Harms>, Failure> {
        let files = Files::Given(Arc::new(case.traces()));
        let text = case.text(law, self.seed);
        let scenario =
            Scenario::parse_with("case.toml", &text, files, &[], None).map_err(Failure::Scenario)?;
        watch::require_memory(&scenario, &Measure::default())?;
        let model = scenario.model(&Measure::default());
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let mut watch = Watch::beside(scenario.name(), scenario.estimate(&Measure::default()), self.stop);
        let outcome = sim::run(&model, engine, self.stop, &mut |come| watch.see(come));
        Ok(outcome.complete.then(|| harm::harms(case, &model, &outcome)))
    }
}

/// Leaves one case for each harm by each set of mechanisms, and of these so many: of each kind in turn the worst.
fn keep(found: &mut Vec<Found>, most: usize) {
    found.sort_by(|a, b| {
        a.kind.cmp(&b.kind).then(b.score().total_cmp(&a.score())).then(a.measured.case.cmp(&b.measured.case))
    });
    let mut seen = BTreeSet::new();
    found.retain(|one| seen.insert((one.kind, one.causes.clone())));
    let mut rank: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, Kind)> = Vec::new();
    for one in found.iter() {
        let rank = rank.entry(one.kind).or_default();
        ranked.push((*rank, one.kind));
        *rank += 1;
    }
    let mut chosen = ranked.clone();
    chosen.sort_unstable();
    chosen.truncate(most);
    let mut ranked = ranked.into_iter();
    found.retain(|_| ranked.next().is_some_and(|rank| chosen.contains(&rank)));
}

/// Mechanisms in words.
fn words(causes: &BTreeSet<Cause>) -> String {
    match causes.len() {
        0 => "nothing but flows".into(),
        _ => causes.iter().map(|cause| cause.words()).collect::<Vec<_>>().join(", "),
    }
}

/// `02-loss-stalls.toml`.
fn file_name(place: usize, found: &Found) -> String {
    let causes = words(&found.causes).replace(", ", "-").replace(' ', "-").to_lowercase();
    format!("{:02}-{}-{causes}.toml", place + 1, found.kind.name())
}

/// The command that finds it again.
fn command(arguments: &SearchArguments) -> String {
    let mut text = format!("congestlab search {}", arguments.law);
    for off in &arguments.without {
        let _ = write!(text, " --without {off}");
    }
    if let Some(law) = &arguments.against {
        let _ = write!(text, " --against {law}");
    }
    let _ = write!(text, " --seed {} --budget {}", arguments.seed, arguments.budget);
    text
}

/// A number of at most three digits that count.
fn short(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// The scenario with its harm, and a claim that holds while the harm is there.
fn scenario(found: &Found, law: &Spoken, arguments: &SearchArguments) -> String {
    let (kind, harm) = (found.kind, found.measured.harm(found.kind));
    let mut text =
        format!("# {}: {} {:.2} by {}\n#\n", arguments.law, kind.name(), harm.amount, words(&found.causes));
    let _ = writeln!(text, "# {}: {}.", kind.name(), kind.meaning());
    let unit = if harm.unit.is_empty() { String::new() } else { format!(" {}", harm.unit) };
    let _ = writeln!(text, "# {} is {}{unit}.", harm.metric, short(harm.value));
    if let (Some(other), Some(harms)) = (&arguments.against, &found.measured.against) {
        let other_harm = &harms[kind as usize];
        let _ = writeln!(text, "# With {other} it is {:.2}.", other_harm.amount);
    }
    let minimal = if found.is_minimal {
        "no simpler case that was tried does"
    } else {
        "simpler ones were not all tried"
    };
    let _ = writeln!(text, "# `{}` found it; {minimal}.\n", command(arguments));
    text.push_str(&found.measured.case.text(law, arguments.seed));
    let (bound, value) = match harm.is_large {
        true => ("at_least", 0.9 * harm.value),
        false => ("at_most", 1.1 * harm.value),
    };
    let _ = write!(
        text,
        "\n[[claims]]\nthat = \"the harm is there\"\nmetric = \"{}\"\n{bound} = {}\n",
        harm.metric,
        short(value)
    );
    text
}

/// Writes scenarios and traces, then the list of them, which it returns.
fn write(
    folder: &Path,
    search: &Search<'_>,
    arguments: &SearchArguments,
    found: &[Found],
) -> Result<String, Failure> {
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        disk::write_atomically(&path, bytes).map_err(|error| Failure::write(&path, &error))
    };
    std::fs::create_dir_all(folder).map_err(|error| Failure::write(folder, &error))?;
    for (place, one) in found.iter().enumerate() {
        // What a scenario names is there before it.
        for (name, bytes) in one.measured.case.traces() {
            put(&name, &bytes)?;
        }
        put(&file_name(place, one), scenario(one, &search.law, arguments).as_bytes())?;
    }
    let list = store::pretty(&to_json(search, arguments, found));
    put("found.json", list.as_bytes())?;
    Ok(list)
}

fn to_json(search: &Search<'_>, arguments: &SearchArguments, found: &[Found]) -> Value {
    let each = |(place, one): (usize, &Found)| {
        let harm = one.measured.harm(one.kind);
        let (flows, links) = one.measured.case.sizes();
        json!({
            "file": file_name(place, one),
            "harm": one.kind.name(),
            "amount": harm.amount,
            "amount_against": one.measured.against.as_ref().map(|harms| harms[one.kind as usize].amount),
            "metric": harm.metric,
            "value": harm.value,
            "mechanisms": one.causes.iter().map(|cause| cause.words()).collect::<Vec<_>>(),
            "flows": flows,
            "links": links,
            "minimal": one.is_minimal,
        })
    };
    json!({
        "law": arguments.law,
        "without": arguments.without,
        "against": arguments.against,
        "seed": search.seed,
        "budget": search.budget,
        "runs": search.runs,
        "complete": search.is_complete,
        "found": found.iter().enumerate().map(each).collect::<Value>(),
    })
}

fn describe(search: &Search<'_>, arguments: &SearchArguments, found: &[Found], folder: &Path) -> String {
    let count = match found.len() {
        0 => "no case does harm".into(),
        1 => format!("1 case does harm: {}", folder.display()),
        n => format!("{n} cases do harm: {}", folder.display()),
    };
    let mut text = format!("{}: {} runs, seed {}; {count}\n", arguments.law, search.runs, search.seed);
    if found.is_empty() {
        return text;
    }
    let other = arguments.against.as_deref();
    let mut heading: Vec<String> = ["case", "harm"].map(str::to_owned).into();
    heading.extend(other.map(str::to_owned));
    heading.extend(["measured", "metric", "flows", "links"].map(str::to_owned));
    let mut table = Table::with_heading(heading);
    for (place, one) in found.iter().enumerate() {
        let harm = one.measured.harm(one.kind);
        let (flows, links) = one.measured.case.sizes();
        let mut row: Vec<Cell> = vec![
            file_name(place, one).trim_end_matches(".toml").into(),
            Cell::fixed(Some(harm.amount), 2, ""),
        ];
        if let Some(harms) = &one.measured.against {
            row.push(Cell::fixed(Some(harms[one.kind as usize].amount), 2, ""));
        }
        row.push(match harm.unit {
            "bit/s" => congestlab_scenario::number::rate(Some(harm.value)).into(),
            unit => Cell::number(Some(harm.value), unit),
        });
        row.extend([harm.metric.as_str().into(), Cell::whole(flows), Cell::whole(links as u64)]);
        table.row(row);
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}
