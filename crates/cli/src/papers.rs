//! `congestlab papers`: the figures and claims of papers, run, drawn and judged.
//!
//! A paper is a folder: `paper.toml` says which one, each `figNN.toml` is a scenario with `[figure]` and
//! `[[claims]]`, `exceptions.toml` lists claims that can not be run, `verdicts.toml` the results of each
//! claim when somebody last wrote them down, and `ranges.toml` the claims that hinge on an assumed value.
//! The folders of this project are in the binary; `--papers` reads others.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use congestlab_scenario::claims::{CheckedClaim, Controlled, Judgement, Observation, Verdict};
use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::disk;
use congestlab_scenario::figure::Figure;
use congestlab_scenario::law::senders;
use congestlab_scenario::paper::{About, Change, Paper, Range, Ranges, Verdicts, Written};
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sweep::{self, Options, PointResult, Progress};
use congestlab_scenario::{Scenario, store};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{
    PapersCommand, PapersRangesArguments, PapersReportArguments, PapersRunArguments, PapersSource, Peer,
};
use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::ns2;
use crate::output::{Runs, Screen, print, require_folder};
use crate::signals;
use crate::table::Table;

mod codes;
mod folder;
mod html;
mod page;
mod peer;
mod picture;
mod values;

pub(crate) fn papers(command: &PapersCommand, screen: &Screen) -> Result<(), Failure> {
    match command {
        PapersCommand::List { papers, peer: None } => list(papers.as_deref(), screen),
        PapersCommand::List { papers, peer: Some(Peer::Ns2) } => peer::list(papers.as_deref(), screen),
        PapersCommand::Run(arguments) => run(arguments, screen),
        PapersCommand::Ranges(arguments) => ranges(arguments, screen),
        PapersCommand::Report(arguments) => report(arguments, screen),
    }
}

fn list(papers: Option<&Path>, screen: &Screen) -> Result<(), Failure> {
    let papers = folder::read(papers)?;
    if screen.json {
        let list: Vec<Value> = papers
            .iter()
            .map(|paper| {
                let counts = paper.counts();
                json!({
                    "key": paper.key, "title": paper.about.title, "authors": paper.about.authors,
                    "published": paper.about.published,
                    "figures": paper.figures.iter().map(|figure| &figure.name).collect::<Vec<_>>(),
                    "holds": counts.hold, "does_not_tell": counts.tell_nothing, "undecided": counts.undecided,
                    "fails": counts.fail, "exceptions": paper.exceptions,
                })
            })
            .collect();
        return print(&store::pretty(&json!({ "papers": list })));
    }
    let mut table =
        Table::new(["paper", "figures", "claims", "hold", "tell nothing", "undecided", "fail", "exceptions"]);
    let width = papers.iter().map(|paper| paper.key.chars().count()).max().unwrap_or(0);
    let mut about = String::new();
    for paper in &papers {
        table.row(
            [paper.key.clone()].into_iter().chain(page::numbers(paper).map(|n| n.to_string())).collect(),
        );
        let About { title, authors, published } = &paper.about;
        let _ = writeln!(about, "  {:width$}  {title}\n  {:width$}  {authors}, {published}", paper.key, "");
    }
    print(&format!("{}\n{about}", table.render()))
}

/// The result of one figure.
struct Ran {
    name: String,
    scenario: Scenario,
    points: Vec<PointResult>,
    /// One for each claim.
    answers: Vec<Answer>,
    /// Verdicts on ns-2's runs; empty if it was not asked.
    peer: Vec<ns2::Said>,
}

/// What came of one claim.
struct Answer {
    verdict: Verdict,
    /// The runs that were added to those of the figure until it was decided.
    more: Vec<PointResult>,
    /// The verdict with the claim's cause switched off; `None`: the claim has no control.
    control: Option<Verdict>,
}

impl Answer {
    /// It holds, and nothing shows that it would not with its cause switched off.
    fn does_not_tell(&self) -> bool {
        self.verdict.holds()
            && self.control.as_ref().is_some_and(|control| control.judgement != Judgement::Fails)
    }
}

/// Asks ns-2, or says what it said when somebody last wrote that down.
fn ask_peer(
    paper: &Paper,
    ran: &mut [Ran],
    source: &PapersSource,
    law: Option<&str>,
    screen: &Screen,
) -> Result<(), Failure> {
    if let Some(missing) = ns2::missing() {
        screen.note(&format!("{missing}; shown is what {}/ns2.toml has", paper.key));
        for figure in ran.iter_mut().filter(|_| law.is_none()) {
            let claims = figure.scenario.claims().iter();
            figure.peer = claims.map(|claim| ns2::said(&paper.peer, &figure.name, claim.that())).collect();
        }
        return Ok(());
    }
    let folder = source.folder(&paper.key, law).join("ns2");
    for figure in ran {
        figure.peer =
            ns2::judge(&figure.name, &figure.scenario, &folder.join(&figure.name), source.threads, screen)?;
    }
    Ok(())
}

fn run(arguments: &PapersRunArguments, screen: &Screen) -> Result<(), Failure> {
    let paper = folder::find(&arguments.source)?;
    let law = arguments.law.as_deref();
    if let Some(law) = law.filter(|law| !senders().contains(law)) {
        let help = choices(law, senders());
        return Err(Failure::Input(Message::new(format!("there is no law `{law}`"), help)));
    }
    let mut figures = paper.scenarios(arguments.figure.as_deref()).map_err(Failure::paper)?;
    let all = figures.len();
    if arguments.quick && arguments.figure.is_none() {
        figures.retain(|(_, scenario)| is_quick(scenario));
    }
    if let Some(law) = law {
        figures = with_law(figures, law, screen)?;
    }
    if figures.is_empty() {
        let text = format!("no figure of {} is left to run", paper.key);
        return Err(Failure::Input(Message::new(text, "without --quick and --law there are more")));
    }
    let folder = arguments.source.folder(&paper.key, law);
    let mut ran = simulate(figures, &folder, arguments.source.threads, law.is_none(), screen)?;
    if law.is_some() {
        leave_out_unread(&mut ran, screen);
    }
    if arguments.peer.is_some() {
        ask_peer(&paper, &mut ran, &arguments.source, law, screen)?;
    }
    for figure in &ran {
        picture::draw(figure, &folder, screen)?;
        let table = folder.join(format!("{}.parquet", figure.name));
        sweep::write_points(&table, &figure.name, &figure.points)
            .map_err(|error| Failure::write(&table, &error))?;
        for (index, answer) in figure.answers.iter().enumerate() {
            keep_more(&folder, &figure.name, index, &answer.more)?;
        }
    }
    let json = page::to_json(&paper, &ran, law);
    keep(&folder.join("verdicts.json"), store::pretty(&json).as_bytes())?;
    screen.note(&format!("pictures and results are in {}", folder.display()));
    print(&if screen.json { store::pretty(&json) } else { page::describe(&paper, &ran, law, all) })?;
    let broken = ran.iter().flat_map(|figure| figure.answers.iter().map(move |answer| (figure, answer)));
    let broken = broken.filter(|(figure, Answer { verdict, .. })| {
        let held = |written: &Written| written.verdict == Judgement::Holds;
        !verdict.holds() && paper.written(&figure.name, &verdict.that).is_some_and(held)
    });
    match broken.count() {
        0 => Ok(()),
        _ if law.is_some() => Ok(()),
        count => {
            let text = format!("{count} claims do not hold that held");
            Err(Failure::Claim(Message::new(text, "verdicts.toml says what held")))
        }
    }
}

/// Keeps the runs that were added for one claim, by its place among those of its figure, from 0; or takes away what an earlier
/// command added.
fn keep_more(folder: &Path, figure: &str, index: usize, more: &[PointResult]) -> Result<(), Failure> {
    let folder = folder.join("more");
    let table = folder.join(format!("{figure}-{index}.parquet"));
    let kept = if more.is_empty() {
        std::fs::remove_file(&table).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
    } else {
        std::fs::create_dir_all(&folder).and_then(|()| sweep::write_points(&table, figure, more))
    };
    kept.map_err(|error| Failure::write(&table, &error))
}

/// With another law nobody judges what only the paper's own has, such as the feedback of its links.
fn leave_out_unread(ran: &mut [Ran], screen: &Screen) {
    for figure in ran {
        let observations: Vec<_> = figure.points.iter().map(PointResult::observation).collect();
        for that in figure.scenario.leave_out_unread(&observations) {
            screen.note(&format!("{}: not judged, there is nothing to read: {that}", figure.name));
            figure.answers.retain(|answer| answer.verdict.that != that);
        }
    }
}

fn is_quick(scenario: &Scenario) -> bool {
    scenario.figure().is_some_and(Figure::is_quick)
}

/// The figures with another law in the place of the paper's own; those without a place for it are left out.
fn with_law(
    figures: Vec<(String, Scenario)>,
    law: &str,
    screen: &Screen,
) -> Result<Vec<(String, Scenario)>, Failure> {
    let mut others = Vec::new();
    for (name, scenario) in figures {
        let has_own = scenario.figure().is_some_and(|figure| figure.own().next().is_some());
        let other = if has_own { scenario.with_law(law).map_err(Failure::Scenario)? } else { None };
        match other {
            Some(other) => {
                other.check().map_err(Failure::Scenario)?;
                let stays = |that: &str| other.claims().iter().any(|claim| claim.that() == that);
                for claim in scenario.claims().iter().filter(|claim| !stays(claim.that())) {
                    let why = "it chooses by a setting of the paper's own law";
                    screen.note(&format!("{name}: not judged, {why}: {}", claim.that()));
                }
                others.push((name, other));
            }
            None => screen.note(&format!(
                "{name} is left out: it {}",
                if has_own { "varies a setting of the paper's own law" } else { "names no law of its own" }
            )),
        }
    }
    Ok(others)
}

fn simulate(
    figures: Vec<(String, Scenario)>,
    folder: &Path,
    threads: Option<usize>,
    has_controls: bool,
    screen: &Screen,
) -> Result<Vec<Ran>, Failure> {
    require_folder(folder)?;
    let stop = signals::stop_flag()?;
    for (_, scenario) in &figures {
        crate::warn(&scenario.check_sweep().map_err(Failure::Scenario)?, screen);
    }
    let points = |scenario: &Scenario| scenario.sweep().map_or(1, |sweep| sweep.points().len());
    let all: usize = figures.iter().map(|(_, scenario)| points(scenario)).sum();
    let runs = Runs::new(screen, all);
    let clock = Clock::start();
    let mut ran = Vec::new();
    for (name, scenario) in figures {
        let folder = folder.join(&name);
        let tell = |progress: Progress<'_>| runs.tell(&name, progress);
        let lab = Lab { folder: &folder, threads, stop: &stop, tell: &tell };
        let points = lab.points(&scenario, true)?;
        let mut answers = Vec::new();
        for claim in scenario.claims() {
            let (verdict, more) = lab.settle(&scenario, claim, &points)?;
            let control = match has_controls {
                true => lab.control(&scenario, claim, &points)?,
                false => None,
            };
            answers.push(Answer { verdict, more, control });
        }
        ran.push(Ran { name, scenario, points, answers, peer: Vec::new() });
    }
    drop(runs);
    signals::unwatch(&stop)?;
    screen.note(&format!("{all} runs in {:.1} s", clock.wall()));
    Ok(ran)
}

fn observations(points: &[PointResult]) -> Vec<Observation> {
    points.iter().map(PointResult::observation).collect()
}

/// Where and how the runs of a figure are made.
struct Lab<'a> {
    folder: &'a Path,
    threads: Option<usize>,
    stop: &'a AtomicBool,
    tell: &'a (dyn Fn(Progress<'_>) + Sync),
}

impl Lab<'_> {
    /// Judges a claim by runs of its figure, and by runs of more seeds that are made for it alone; these come after the verdict.
    fn settle(
        &self,
        scenario: &Scenario,
        claim: &CheckedClaim,
        own: &[PointResult],
    ) -> Result<(Verdict, Vec<PointResult>), Failure> {
        let mut added = Vec::new();
        let verdict = claim.settled(observations(own), &mut |seeds, points| {
            let more = scenario.with_seeds(seeds, claim, points).map_err(Failure::Scenario)?;
            let more = self.points(&more, false)?;
            let seen = observations(&more);
            added.extend(more);
            Ok::<_, Failure>(seen)
        })?;
        Ok((verdict, added))
    }

    /// Judges a claim with its cause switched off.
    fn control(
        &self,
        scenario: &Scenario,
        claim: &CheckedClaim,
        own: &[PointResult],
    ) -> Result<Option<Verdict>, Failure> {
        let Some((other, control)) = scenario.control(claim).map_err(Failure::Scenario)? else {
            return Ok(None);
        };
        let points = self.points(&other, false)?;
        let (mut verdict, _) = self.settle(&other, &control, &points)?;
        if control.reads_the_same(&observations(&points), claim, &observations(own)) {
            verdict.text.push_str(" (it changes nothing that the claim reads)");
        }
        Ok(Some(verdict))
    }

    /// Every point of a scenario, those that were run before from where they are kept, and the table if it is of the
    /// whole figure.
    fn points(&self, scenario: &Scenario, is_whole: bool) -> Result<Vec<PointResult>, Failure> {
        let wanted = self.threads.unwrap_or_else(machine::cores);
        let threads = crate::sweep::threads_that_fit(scenario, wanted)?;
        let options = Options::new(self.folder, crate::sweep::code(), threads, self.stop);
        // Whether anything is random is known when the first run is through. Then it is early enough.
        let too_few = scenario.require_seeds().err();
        let is_random = AtomicBool::new(false);
        let run = crate::sweep::simulate(self.stop);
        let simulate = |scenario: &Scenario, model: &Model| {
            let (outcome, meta) = run(scenario, model);
            if too_few.is_some() && outcome.seed_used {
                is_random.store(true, Ordering::Relaxed);
                self.stop.store(true, Ordering::Relaxed);
            }
            (outcome, meta)
        };
        let points = sweep::run(scenario, &options, &simulate, self.tell).and_then(|results| {
            if is_whole { crate::sweep::keep(self.folder, &results) } else { results.all() }
        });
        let was_random = |point: &PointResult| point.result["seed_used"] == true;
        let is_random = is_random.into_inner() || points.iter().flatten().any(was_random);
        match too_few.filter(|_| is_random) {
            Some(too_few) => Err(Failure::Scenario(too_few)),
            None => points.map_err(crate::sweep::failure),
        }
    }
}

fn keep(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    disk::write_atomically(path, bytes).map_err(|error| Failure::write(path, &error))
}

fn keep_toml(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = toml::to_string(value).map_err(|error| Failure::Run(Message::new(error.to_string(), "")))?;
    keep(path, text.as_bytes())
}

/// Results of claims, to be written down.
fn written(ran: &[Ran]) -> Vec<Written> {
    let one = |figure: &Ran, Answer { verdict, control, .. }: &Answer| Written {
        figure: figure.name.clone(),
        claim: verdict.that.clone(),
        verdict: verdict.judgement,
        measured: verdict.text.clone(),
        control: control.as_ref().map(|control| control.judgement),
    };
    ran.iter().flat_map(|figure| figure.answers.iter().map(move |answer| one(figure, answer))).collect()
}

fn report(arguments: &PapersReportArguments, screen: &Screen) -> Result<(), Failure> {
    let mut paper = folder::find(&arguments.source)?;
    let mut figures = paper.scenarios(arguments.figure.as_deref()).map_err(Failure::paper)?;
    if arguments.quick && arguments.figure.is_none() {
        figures.retain(|(_, scenario)| is_quick(scenario));
    }
    if figures.is_empty() {
        let text = format!("{} has no figure", paper.key);
        return Err(Failure::Input(Message::new(text, "a figure is a file NAME.toml beside paper.toml")));
    }
    let folder = arguments.source.folder(&paper.key, None);
    let mut ran = simulate(figures, &folder, arguments.source.threads, true, screen)?;
    if arguments.peer.is_some() {
        ask_peer(&paper, &mut ran, &arguments.source, None, screen)?;
        for figure in &ran {
            let claims = figure.scenario.claims().iter().map(|claim| claim.that());
            ns2::tell(&mut paper.peer, &figure.name, claims.zip(&figure.peer));
        }
    }
    keep(&folder.join("report.html"), html::html(&paper, &ran).as_bytes())?;
    for figure in &ran {
        picture::draw(figure, &folder, screen)?;
    }
    let now = written(&ran);
    if let (true, Some(papers)) = (arguments.write, &arguments.source.papers) {
        let place = papers.join(&paper.key);
        let figures: Vec<&str> = ran.iter().map(|figure| figure.name.as_str()).collect();
        paper.write_down(&figures, &now);
        keep_toml(&place.join("verdicts.toml"), &Verdicts { verdicts: paper.written.clone() })?;
        if arguments.peer.is_some() {
            keep_toml(&place.join("ns2.toml"), &paper.peer)?;
        }
        keep(&place.join("README.md"), page::readme(&paper)?.as_bytes())?;
        keep(&papers.join("README.md"), page::summary(&folder::read(Some(papers))?)?.as_bytes())?;
    }
    let page = folder.join("report.html");
    print(&if screen.json {
        let mut json = page::to_json(&paper, &ran, None);
        json["report"] = page.display().to_string().into();
        store::pretty(&json)
    } else {
        format!("{}\n", page.display())
    })?;
    if !arguments.check {
        return Ok(());
    }
    if let Some(papers) = &arguments.source.papers {
        let paper_page = (papers.join(&paper.key).join("README.md"), page::readme(&paper)?);
        let summary = (papers.join("README.md"), page::summary(&folder::read(Some(papers))?)?);
        for (place, text) in [paper_page, summary] {
            if std::fs::read_to_string(&place).ok() != Some(text) {
                let text = format!("{} is not what verdicts.toml says", place.display());
                return Err(Failure::Claim(Message::new(text, "`papers report --write` makes it again")));
            }
        }
    }
    let all = paper.scenarios(None).map_err(Failure::paper)?;
    check_tags(&paper, &all)?;
    check_controls(&paper, &all)?;
    check(&paper, &now)
}

/// Each claim that fails says why in a word, and the word is true; others say nothing.
fn check_tags(paper: &Paper, figures: &[(String, Scenario)]) -> Result<(), Failure> {
    let mut list = Vec::new();
    for (name, scenario) in figures {
        for claim in scenario.claims() {
            let that = claim.that();
            let Some(verdict) = paper.written(name, that).map(|written| written.verdict) else { continue };
            let in_ns2 = paper.peer.find(name, that).map(|value| value.verdict);
            let wrong = match (claim.tag(), claim.experiment()) {
                (None, _) if verdict == Judgement::Fails => "it fails and has no tag".to_owned(),
                (Some(tag), _) if verdict != Judgement::Fails => {
                    format!(
                        "its verdict is \"{}\", and it has the tag of one that fails, {tag}",
                        verdict.word()
                    )
                }
                (Some("ns-2"), _) if in_ns2 != Some(Judgement::Fails) => {
                    let word = in_ns2.map_or("is not in ns-2", Judgement::word);
                    format!("its tag is ns-2, and there it {word}")
                }
                (Some(tag @ ("assumed" | "open")), _) if in_ns2 == Some(Judgement::Fails) => {
                    format!("it fails in ns-2, too, and its tag is {tag}")
                }
                (Some("closed form"), _) if !claim.cause().is_some_and(codes::names_a_source) => {
                    "its tag is closed form, and its cause names neither a code of docs/design, such as C-03, nor a section of \
                     docs/design/protocols.md that derives it"
                        .to_owned()
                }
                (_, Some(experiment)) if !turns(paper, figures, name, claim, experiment) => format!(
                    "its experiment `{experiment}` is neither a value of ranges.toml with which it holds, nor another claim \
                     that does, nor another figure in which one of the same words or quote does"
                ),
                _ => continue,
            };
            list.push(format!("{name}: {that}: {wrong}"));
        }
    }
    if list.is_empty() {
        return Ok(());
    }
    let text =
        format!("{} claims of {} say wrongly why they fail\n{}", list.len(), paper.key, list.join("\n"));
    Err(Failure::Claim(Message::new(text, "tag = \"ns-2\", \"closed form\", \"assumed\" or \"open\"")))
}

/// Each claim with the words of a source that holds says how its cause is switched off, or why it has none.
fn check_controls(paper: &Paper, figures: &[(String, Scenario)]) -> Result<(), Failure> {
    let mut list = Vec::new();
    for (name, scenario) in figures {
        let held = |claim: &&CheckedClaim| {
            let written = paper.written(name, claim.that());
            claim.quote().is_some() && written.is_some_and(|written| written.verdict == Judgement::Holds)
        };
        for claim in scenario.claims().iter().filter(held) {
            let wrong = match scenario.controlled(claim) {
                Controlled::Unsaid => "it has a source's words, and says nothing of a control",
                Controlled::NoEffect if claim.is_about_an_effect() => {
                    "it compares, and its control is false, as of a claim about no effect"
                }
                _ => continue,
            };
            list.push(format!("{name}: {}: {wrong}", claim.that()));
        }
    }
    if list.is_empty() {
        return Ok(());
    }
    let text = format!("{} claims of {} hold without a control\n{}", list.len(), paper.key, list.join("\n"));
    let help = "control = { PATH = VALUE } switches the cause off; = \"...\" says why nothing does; = false: a number of a \
                set-up, about no effect";
    Err(Failure::Claim(Message::new(text, help)))
}

/// The experiment makes the claim hold: another value of what the figure assumes, another claim by its words, or another figure.
fn turns(
    paper: &Paper,
    figures: &[(String, Scenario)],
    figure: &str,
    claim: &CheckedClaim,
    experiment: &str,
) -> bool {
    let holds = |change: &Change| change.claim == claim.that() && change.verdict == Judgement::Holds;
    let of_experiment = |range: &&Range| range.figure == figure && range.assumed == experiment;
    let by_range = paper.ranges.iter().filter(of_experiment).any(|range| range.turned.iter().any(holds));
    let is_same = |other: &&CheckedClaim| {
        other.that() == claim.that() || other.quote().is_some() && other.quote() == claim.quote()
    };
    let there = figures.iter().filter(|(name, _)| name == experiment && name != figure);
    let mut same = there.flat_map(|(name, scenario)| {
        scenario.claims().iter().filter(is_same).filter_map(|other| paper.written(name, other.that()))
    });
    let does = |written: &Written| written.verdict == Judgement::Holds;
    by_range || same.any(does) || paper.written.iter().any(|other| other.claim == experiment && does(other))
}

/// Checks that the results are those that are written down.
fn check(paper: &Paper, now: &[Written]) -> Result<(), Failure> {
    let differs = |now: &&Written| paper.written(&now.figure, &now.claim) != Some(now);
    let differing = now.iter().filter(differs).map(|now| {
        let before = paper.written(&now.figure, &now.claim).map_or("nothing", |before| &before.measured);
        format!("{}: {}\n    written: {before}\n    now: {}", now.figure, now.claim, now.measured)
    });
    let list: Vec<String> = differing.collect();
    if list.is_empty() {
        return Ok(());
    }
    let text =
        format!("{} verdicts of {} are not those written down\n{}", list.len(), paper.key, list.join("\n"));
    Err(Failure::Claim(Message::new(text, "`papers report --write` writes them down")))
}

/// Runs figures with every other value that an assumption could have.
fn ranges(arguments: &PapersRangesArguments, screen: &Screen) -> Result<(), Failure> {
    let mut paper = folder::find(&arguments.source)?;
    let figures = paper.scenarios(arguments.figure.as_deref()).map_err(Failure::paper)?;
    if paper.written.is_empty() {
        let help = "`papers report KEY --papers DIR --write` writes them down first";
        return Err(Failure::Input(Message::new(
            format!("{} has no verdicts that could turn", paper.key),
            help,
        )));
    }
    let folder = arguments.source.folder(&paper.key, None).join("ranges");
    let mut found = Vec::new();
    for (name, scenario) in &figures {
        for assumed in scenario.figure().into_iter().flat_map(Figure::assumed) {
            for (index, value) in assumed.values.iter().enumerate() {
                let sets: Vec<(String, String)> =
                    assumed.paths.iter().map(|path| ((*path).to_owned(), value.clone())).collect();
                let other = paper.scenario(name, &sets).map_err(Failure::paper)?;
                let place = folder.join(format!("{name}-{}-{index}", folder::file_name(assumed.name)));
                let ran =
                    simulate(vec![(name.clone(), other)], &place, arguments.source.threads, false, screen)?;
                let turned = written(&ran).into_iter().filter_map(|now| {
                    let before = paper.written(name, &now.claim)?;
                    (before.verdict != now.verdict).then_some(Change {
                        claim: now.claim,
                        verdict: now.verdict,
                        measured: now.measured,
                    })
                });
                found.push(Range {
                    figure: name.clone(),
                    assumed: assumed.name.into(),
                    value: value.clone(),
                    turned: turned.collect(),
                });
            }
        }
    }
    if let (true, Some(papers)) = (arguments.write, &arguments.source.papers) {
        let is_other = |range: &Range| figures.iter().all(|(name, _)| *name != range.figure);
        let kept = paper.ranges.iter().filter(|range| is_other(range)).cloned();
        paper.ranges = kept.chain(found.iter().cloned()).collect();
        paper.ranges.sort_by(|a, b| a.figure.cmp(&b.figure));
        let place = papers.join(&paper.key);
        keep_toml(&place.join("ranges.toml"), &Ranges { ranges: paper.ranges.clone() })?;
        keep(&place.join("README.md"), page::readme(&paper)?.as_bytes())?;
    }
    print(&if screen.json { store::pretty(&json!({ "ranges": found })) } else { page::ranges(&found) })
}
