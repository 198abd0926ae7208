//! `congestlab papers`: what papers show and claim, run, drawn and judged.
//!
//! A paper is a folder: `paper.toml` says which one, each `figNN.toml` is a scenario with `[figure]` and
//! `[[claims]]`, `exceptions.toml` lists what can not be run, and `verdicts.toml` what came of each claim when
//! somebody last wrote it down. The folders of this project are in the binary; `--papers` reads others.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use congestlab_scenario::claims::Verdict;
use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::figure::{Curve, Figure};
use congestlab_scenario::law::senders;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::sweep::{self, Options, PointResult, Progress};
use congestlab_scenario::{Scenario, store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args::{PapersCommand, PapersReportArguments, PapersRunArguments};
use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Screen, gauge, print, require_folder};
use crate::plot::{self, Line, Row, Style};
use crate::table::Table;

/// The papers of this project: file, text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

pub(crate) fn papers(command: &PapersCommand, screen: &Screen) -> Result<(), Failure> {
    match command {
        PapersCommand::List { papers } => list(papers.as_deref(), screen),
        PapersCommand::Run(arguments) => run(arguments, screen),
        PapersCommand::Report(arguments) => report(arguments, screen),
    }
}

/// `paper.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    title: String,
    authors: String,
    published: String,
}

/// What can not be run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// Where the paper has it.
    of: String,
    what: String,
    why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Written {
    figure: String,
    claim: String,
    holds: bool,
    measured: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Verdicts {
    #[serde(default)]
    verdicts: Vec<Written>,
}

/// A paper's folder.
struct Paper {
    key: String,
    about: About,
    /// Name, text and place of each figure.
    figures: Vec<(String, String, PathBuf)>,
    exceptions: Vec<Exception>,
    written: Vec<Written>,
}

/// All files of all papers: path below the papers' folder, text.
fn files(folder: Option<&Path>) -> Result<Vec<(String, String)>, Failure> {
    let Some(folder) = folder else {
        return Ok(EMBEDDED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect());
    };
    let wrong = |path: &Path, error: &std::io::Error| {
        let text = format!("can not read {}: {error}", path.display());
        Failure::Input(Message::new(text, "give the folder that has a folder for each paper"))
    };
    let entries = |path: &Path| -> Result<Vec<PathBuf>, Failure> {
        let list = fs::read_dir(path).and_then(|list| list.map(|entry| Ok(entry?.path())).collect());
        let mut list: Vec<PathBuf> = list.map_err(|error| wrong(path, &error))?;
        list.sort();
        Ok(list)
    };
    let mut all = Vec::new();
    for paper in entries(folder)?.into_iter().filter(|path| path.join("paper.toml").is_file()) {
        for file in
            entries(&paper)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml"))
        {
            let text = fs::read_to_string(&file).map_err(|error| wrong(&file, &error))?;
            let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
            all.push((name, text));
        }
    }
    Ok(all)
}

fn read(folder: Option<&Path>) -> Result<Vec<Paper>, Failure> {
    let mut papers: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, text) in files(folder)? {
        if let Some((key, name)) = path.rsplit_once('/') {
            papers.entry(key.into()).or_default().insert(name.into(), text);
        }
    }
    papers.into_iter().map(|(key, files)| paper(folder, key, files)).collect()
}

fn paper(folder: Option<&Path>, key: String, mut files: BTreeMap<String, String>) -> Result<Paper, Failure> {
    let place = folder.unwrap_or_else(|| Path::new("papers")).join(&key);
    let about = part(&place, &mut files, "paper.toml")?
        .ok_or_else(|| Failure::Input(Message::new(format!("{} has no paper.toml", place.display()), "")))?;
    let exceptions: Exceptions = part(&place, &mut files, "exceptions.toml")?.unwrap_or_default();
    let verdicts: Verdicts = part(&place, &mut files, "verdicts.toml")?.unwrap_or_default();
    let figures = files.into_iter().map(|(name, text)| {
        let path = place.join(&name);
        (name.trim_end_matches(".toml").to_owned(), text, path)
    });
    let figures = figures.collect();
    Ok(Paper { key, about, figures, exceptions: exceptions.exceptions, written: verdicts.verdicts })
}

fn part<T: for<'a> Deserialize<'a>>(
    place: &Path,
    files: &mut BTreeMap<String, String>,
    name: &str,
) -> Result<Option<T>, Failure> {
    let Some(text) = files.remove(name) else { return Ok(None) };
    toml::from_str(&text).map(Some).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or("");
        let (line, column) =
            (before.matches('\n').count() + 1, before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1);
        let place = place.join(name);
        Failure::Input(Message::new(format!("{}:{line}:{column}: {}", place.display(), error.message()), ""))
    })
}

impl Paper {
    /// The figures that were asked for, read and found right.
    fn scenarios(
        &self,
        figure: Option<&str>,
        law: Option<&str>,
        screen: &Screen,
    ) -> Result<Vec<(String, Scenario)>, Failure> {
        let names = || self.figures.iter().map(|(name, ..)| name.as_str());
        if let Some(wanted) = figure.filter(|wanted| names().all(|name| name != *wanted)) {
            let text = format!("{} has no figure `{wanted}`", self.key);
            return Err(Failure::Input(Message::new(text, choices(wanted, names()))));
        }
        let mut list = Vec::new();
        for (name, text, path) in
            self.figures.iter().filter(|(name, ..)| figure.is_none_or(|wanted| wanted == name))
        {
            let base = path.parent().unwrap_or_else(|| Path::new(""));
            let mut scenario = Scenario::parse(&path.display().to_string(), text, base, &[], None)
                .map_err(Failure::Scenario)?;
            scenario.check().map_err(Failure::Scenario)?;
            if scenario.figure().is_none() {
                let text = format!("{} has no [figure]", path.display());
                return Err(Failure::Input(Message::new(text, "see docs/papers.md")));
            }
            if let Some(law) = law {
                let Some(other) = scenario.with_law(law).map_err(Failure::Scenario)? else {
                    screen.note(&format!("{name} is left out: its axis is a setting of the paper's own law"));
                    continue;
                };
                other.check().map_err(Failure::Scenario)?;
                scenario = other;
            }
            list.push((name.clone(), scenario));
        }
        Ok(list)
    }

    fn written(&self, figure: &str, claim: &str) -> Option<&Written> {
        self.written.iter().find(|written| written.figure == figure && written.claim == claim)
    }
}

fn find(papers: Vec<Paper>, key: &str) -> Result<Paper, Failure> {
    let keys: Vec<String> = papers.iter().map(|paper| paper.key.clone()).collect();
    papers.into_iter().find(|paper| paper.key == key).ok_or_else(|| {
        let help = choices(key, keys.iter().map(String::as_str));
        Failure::Input(Message::new(format!("there is no paper `{key}`"), help))
    })
}

fn list(folder: Option<&Path>, screen: &Screen) -> Result<(), Failure> {
    let papers = read(folder)?;
    let count =
        |paper: &Paper, holds: bool| paper.written.iter().filter(|written| written.holds == holds).count();
    if screen.json {
        let list: Vec<Value> = papers
            .iter()
            .map(|paper| {
                json!({
                    "key": paper.key, "title": paper.about.title, "authors": paper.about.authors,
                    "published": paper.about.published,
                    "figures": paper.figures.iter().map(|(name, ..)| name).collect::<Vec<_>>(),
                    "holds": count(paper, true), "fails": count(paper, false),
                    "exceptions": paper.exceptions,
                })
            })
            .collect();
        return print(&store::pretty(&json!({ "papers": list })));
    }
    let mut table = Table::new(["paper", "figures", "holds", "fails", "exceptions"]);
    for paper in &papers {
        let numbers = [paper.figures.len(), count(paper, true), count(paper, false), paper.exceptions.len()];
        table.row([paper.key.clone()].into_iter().chain(numbers.map(|n| n.to_string())).collect());
    }
    let mut text = table.render();
    text.push('\n');
    for Paper { key, about, .. } in &papers {
        let _ = writeln!(text, "  {key}: {}, {} ({})", about.authors, about.title, about.published);
    }
    print(&text)
}

/// What came of one figure.
struct Ran {
    name: String,
    scenario: Scenario,
    points: Vec<PointResult>,
    verdicts: Vec<Verdict>,
}

fn run(arguments: &PapersRunArguments, screen: &Screen) -> Result<(), Failure> {
    let paper = find(read(arguments.source.papers.as_deref())?, &arguments.source.key)?;
    let law = arguments.law.as_deref();
    if let Some(law) = law.filter(|law| !senders().contains(law)) {
        let help = choices(law, senders());
        return Err(Failure::Input(Message::new(format!("there is no law `{law}`"), help)));
    }
    let mut figures = paper.scenarios(arguments.figure.as_deref(), law, screen)?;
    let all = figures.len();
    if arguments.quick && arguments.figure.is_none() {
        figures.retain(|(_, scenario)| scenario.figure().is_some_and(Figure::is_quick));
    }
    let folder = arguments.source.folder(&paper.key, law);
    let ran = simulate(figures, &folder, arguments.source.threads, screen)?;
    for figure in &ran {
        draw(figure, &folder)?;
        let table = folder.join(format!("{}.parquet", figure.name));
        sweep::write_points(&table, &figure.points).map_err(|error| Failure::write(&table, &error))?;
    }
    let json = to_json(&paper, &ran, law);
    keep(&folder.join("verdicts.json"), store::pretty(&json).as_bytes())?;
    screen.note(&format!("pictures and results are in {}", folder.display()));
    print(&if screen.json { store::pretty(&json) } else { describe(&paper, &ran, law, all) })?;
    let broken = ran.iter().flat_map(|figure| figure.verdicts.iter().map(move |verdict| (figure, verdict)));
    let broken = broken.filter(|(figure, verdict)| {
        !verdict.holds && paper.written(&figure.name, &verdict.that).is_none_or(|written| written.holds)
    });
    match broken.count() {
        0 => Ok(()),
        _ if law.is_some() => Ok(()),
        count => {
            let text = format!("{count} claims do not hold that held or are new");
            Err(Failure::Claim(Message::new(text, "verdicts.toml says what held")))
        }
    }
}

fn simulate(
    figures: Vec<(String, Scenario)>,
    folder: &Path,
    threads: Option<usize>,
    screen: &Screen,
) -> Result<Vec<Ran>, Failure> {
    require_folder(folder)?;
    let stop = machine::stop_flag()?;
    let points = |scenario: &Scenario| scenario.sweep().map_or(1, |sweep| sweep.points().len());
    let all: usize = figures.iter().map(|(_, scenario)| points(scenario)).sum();
    let line = Mutex::new(screen.progress());
    let done = AtomicUsize::new(0);
    let clock = Clock::start();
    let mut ran = Vec::new();
    for (name, scenario) in figures {
        let tell = |progress: Progress<'_>| {
            if matches!(progress, Progress::Started(_)) {
                return;
            }
            let complete = 1 + done.fetch_add(1, Ordering::Relaxed);
            let Ok(mut line) = line.lock() else { return };
            line.tell(|elapsed| {
                let share = complete as f64 / all as f64;
                format!("{}  {name}: {complete} of {all} runs, {elapsed:.0} s", gauge(share))
            });
        };
        let points = one(&scenario, &folder.join(&name), threads, &stop, &tell)?;
        require_seeds(&name, &scenario, &points)?;
        let observations: Vec<_> = points.iter().map(PointResult::observation).collect();
        let verdicts = scenario.claims().iter().map(|claim| claim.verdict(&observations)).collect();
        ran.push(Ran { name, scenario, points, verdicts });
    }
    if let Ok(mut line) = line.lock() {
        line.clear();
    }
    screen.note(&format!("{all} runs in {:.1} s", clock.wall()));
    Ok(ran)
}

fn one(
    scenario: &Scenario,
    folder: &Path,
    threads: Option<usize>,
    stop: &AtomicBool,
    tell: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Vec<PointResult>, Failure> {
    let threads = crate::sweep::threads_that_fit(scenario, threads.unwrap_or_else(machine::cores))?;
    let options = Options { folder, version: crate::sweep::CODE, threads, stop };
    let simulate = |_: &Scenario, model: &sim::model::Model| {
        let clock = Clock::start_thread();
        let outcome = sim::run(model, Engine::Window { threads: 1, divisor: 1 }, stop, &mut |_| {});
        (outcome, clock.meta())
    };
    sweep::run(scenario, &options, &simulate, tell).map_err(crate::sweep::failure)
}

/// Something random needs seeds for an interval.
fn require_seeds(name: &str, scenario: &Scenario, points: &[PointResult]) -> Result<(), Failure> {
    let is_random = points.iter().any(|point| point.result["seed_used"] == true);
    let seeds = scenario.sweep().map_or(1, |sweep| sweep.seeds());
    if is_random && seeds < sweep::SEEDS_MIN {
        let text =
            format!("{name} draws at random and has {seeds} seed{}", if seeds == 1 { "" } else { "s" });
        let help = format!("sweep \"run.seed\" over at least {} values", sweep::SEEDS_MIN);
        return Err(Failure::Input(Message::new(text, help)));
    }
    Ok(())
}

/// A value of the table that is written down beside what came out now.
fn change(written: Option<&Written>, holds: bool) -> &'static str {
    match written.map(|written| written.holds) {
        None => "new",
        Some(before) if before == holds => "",
        Some(true) => "held",
        Some(false) => "failed",
    }
}

fn describe(paper: &Paper, ran: &[Ran], law: Option<&str>, all: usize) -> String {
    let mut text = format!("{}: {} ({})\n", paper.about.authors, paper.about.title, paper.about.published);
    if let Some(law) = law {
        let _ = writeln!(text, "with {law} in the place of the paper's own law");
    }
    for figure in ran {
        let (of, title) = figure.scenario.figure().map_or(("", ""), |figure| (figure.of(), figure.title()));
        let _ = writeln!(text, "\n{}  {of}: {title}", figure.name);
        for verdict in &figure.verdicts {
            let holds = if verdict.holds { "holds" } else { "FAILS" };
            let change = match change(paper.written(&figure.name, &verdict.that), verdict.holds) {
                "" => String::new(),
                change => format!(
                    " ({change}{})",
                    if law.is_some() && change != "new" { " with its own law" } else { "" }
                ),
            };
            let _ = writeln!(text, "  {holds}{change}  {}\n         {}", verdict.that, verdict.text);
        }
    }
    let verdicts = || ran.iter().flat_map(|figure| &figure.verdicts);
    let holding = verdicts().filter(|verdict| verdict.holds).count();
    let _ = writeln!(
        text,
        "\n{holding} hold, {} fail, {} exceptions; {} of {all} figures",
        verdicts().count() - holding,
        paper.exceptions.len(),
        ran.len(),
    );
    text
}

fn to_json(paper: &Paper, ran: &[Ran], law: Option<&str>) -> Value {
    let figures: Vec<Value> = ran
        .iter()
        .map(|figure| {
            let claims: Vec<Value> = figure
                .scenario
                .claims()
                .iter()
                .zip(&figure.verdicts)
                .map(|(claim, verdict)| {
                    let written = paper.written(&figure.name, &verdict.that);
                    json!({
                        "that": verdict.that, "quote": claim.quote(), "source": claim.source(),
                        "metric": verdict.metric, "holds": verdict.holds, "measured": verdict.text,
                        "held": written.map(|written| written.holds),
                    })
                })
                .collect();
            let shown = figure.scenario.figure();
            json!({
                "name": figure.name, "of": shown.map(Figure::of), "title": shown.map(Figure::title),
                "points": figure.points.len(), "claims": claims,
            })
        })
        .collect();
    json!({ "paper": paper.key, "law": law, "figures": figures, "exceptions": paper.exceptions })
}

fn keep(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    store::write_atomically(path, bytes).map_err(|error| Failure::write(path, &error))
}

/// The figure as SVG and PNG.
fn draw(ran: &Ran, folder: &Path) -> Result<(), Failure> {
    let Some(svg) = picture(ran) else { return Ok(()) };
    let png = plot::to_png(&svg).map_err(|error| Failure::Run(Message::new(error, "")))?;
    keep(&folder.join(format!("{}.svg", ran.name)), svg.as_bytes())?;
    keep(&folder.join(format!("{}.png", ran.name)), &png)
}

/// `None`: there is nothing to draw.
fn picture(ran: &Ran) -> Option<String> {
    let figure = ran.scenario.figure()?;
    let curves = figure.curves(&ran.points);
    let mut rows: Vec<Row> = Vec::new();
    let mut styles: BTreeMap<&str, usize> = BTreeMap::new();
    for curve in &curves {
        let next = styles.len();
        let style = *styles.entry(&curve.name).or_insert(next);
        let lines = lines(curve, style, figure.is_logarithmic());
        match rows.iter_mut().find(|row| row.label == curve.y) {
            Some(row) => row.charts[0].extend(lines),
            None => rows.push(Row { label: curve.y.clone(), charts: vec![lines] }),
        }
    }
    let xs = || {
        rows.iter().flat_map(|row| &row.charts).flatten().flat_map(|line| &line.points).map(|point| point.0)
    };
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    if low.partial_cmp(&high) != Some(std::cmp::Ordering::Less) {
        return None;
    }
    Some(
        plot::Figure {
            title: figure.title().into(),
            subtitle: figure.of().into(),
            columns: vec![String::new()],
            rows,
            x: (low, high),
            x_label: figure.x_label().into(),
            is_logarithmic: figure.is_logarithmic(),
        }
        .to_svg(),
    )
}

fn lines(curve: &Curve, style: usize, is_logarithmic: bool) -> Vec<Line> {
    let x = |x: f64| if is_logarithmic { plot::log10(x) } else { x };
    let mut lines = Vec::new();
    if !curve.spread.is_empty() {
        let up = curve.spread.iter().map(|&(at, _, high)| (x(at), high));
        let down = curve.spread.iter().rev().map(|&(at, low, _)| (x(at), low));
        lines.push(Line {
            // The line's own name says whose it is.
            name: String::new(),
            style: Style::Spread(style),
            points: up.chain(down).collect(),
        });
    }
    let points = curve.points.iter().map(|&(at, y)| (x(at), y)).collect();
    lines.push(Line { name: curve.name.clone(), style: Style::Flow(style), points });
    lines
}

/// What the table says now of claims that were judged; of the others what it said.
fn verdicts(paper: &Paper, ran: &[Ran]) -> Vec<Written> {
    let claims = ran.iter().flat_map(|figure| figure.verdicts.iter().map(move |verdict| (figure, verdict)));
    claims
        .map(|(figure, verdict)| {
            let now = Written {
                figure: figure.name.clone(),
                claim: verdict.that.clone(),
                holds: verdict.holds,
                measured: verdict.text.clone(),
            };
            paper
                .written(&figure.name, &verdict.that)
                .filter(|before| **before == now)
                .cloned()
                .unwrap_or(now)
        })
        .collect()
}

fn report(arguments: &PapersReportArguments, screen: &Screen) -> Result<(), Failure> {
    let paper = find(read(arguments.source.papers.as_deref())?, &arguments.source.key)?;
    let figures = paper.scenarios(None, None, screen)?;
    let folder = arguments.source.folder(&paper.key, None);
    let ran = simulate(figures, &folder, arguments.source.threads, screen)?;
    let verdicts = verdicts(&paper, &ran);
    let mut html = page(&paper, &ran);
    html.push('\n');
    keep(&folder.join("report.html"), html.as_bytes())?;
    for figure in &ran {
        draw(figure, &folder)?;
    }
    if arguments.write {
        let Some(papers) = &arguments.source.papers else {
            let help = "such as --papers papers";
            return Err(Failure::Input(Message::new("--write needs the folder of the papers", help)));
        };
        let place = papers.join(&paper.key);
        let table = toml::to_string(&Verdicts { verdicts: verdicts.clone() })
            .map_err(|error| Failure::Run(Message::new(error.to_string(), "")))?;
        keep(&place.join("verdicts.toml"), table.as_bytes())?;
        keep(&place.join("README.md"), readme(&paper, &ran).as_bytes())?;
    }
    print(&format!("{}\n", folder.join("report.html").display()))
}

fn readme(paper: &Paper, ran: &[Ran]) -> String {
    let mut text = format!(
        "<!-- made by `congestlab papers report {} --papers papers --write` -->\n\n# {}\n\n{}, {}\n",
        paper.key, paper.about.title, paper.about.authors, paper.about.published
    );
    for figure in ran {
        let Some(shown) = figure.scenario.figure() else { continue };
        let _ = write!(
            text,
            "\n## {}: {}\n\n[{}.toml]({}.toml)\n\n",
            shown.of(),
            shown.title(),
            figure.name,
            figure.name
        );
        text.push_str("| claim | source | measured | verdict |\n| --- | --- | --- | --- |\n");
        for (claim, verdict) in figure.scenario.claims().iter().zip(&figure.verdicts) {
            let cell = |text: &str| text.replace('|', "\\|");
            let quote = claim.quote().map_or(String::new(), |quote| format!(" \"{}\"", cell(quote)));
            let holds = if verdict.holds { "holds" } else { "**FAILS**" };
            let _ = writeln!(
                text,
                "| {}{quote} | {} | {} | {holds} |",
                cell(&verdict.that),
                cell(claim.source().unwrap_or("")),
                cell(&verdict.text)
            );
        }
    }
    if !paper.exceptions.is_empty() {
        text.push_str("\n## Not run\n\n| where | what | why |\n| --- | --- | --- |\n");
        for Exception { of, what, why } in &paper.exceptions {
            let _ = writeln!(text, "| {of} | {what} | {why} |");
        }
    }
    text
}

fn page(paper: &Paper, ran: &[Ran]) -> String {
    let escape = plot::escape;
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title>\n<style>body{{font:15px/1.45 \
         sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}svg{{max-width:100%;height:auto}}td,th{{text-align:left;\
         vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #ddd}}.fails{{color:#a3123a;font-weight:bold}}\
         blockquote{{margin:.2rem 0;color:#555}}</style>\n<h1>{0}</h1>\n<p>{1}, {2}</p>\n",
        escape(&paper.about.title),
        escape(&paper.about.authors),
        escape(&paper.about.published)
    );
    for figure in ran {
        let Some(shown) = figure.scenario.figure() else { continue };
        let _ = writeln!(html, "<h2>{}: {}</h2>", escape(shown.of()), escape(shown.title()));
        html.push_str(&picture(figure).unwrap_or_default());
        html.push_str("<table><tr><th>claim<th>source<th>measured<th>verdict\n");
        for (claim, verdict) in figure.scenario.claims().iter().zip(&figure.verdicts) {
            let quote = claim
                .quote()
                .map_or(String::new(), |quote| format!("<blockquote>{}</blockquote>", escape(quote)));
            let (class, holds) = if verdict.holds { ("holds", "holds") } else { ("fails", "FAILS") };
            let _ = writeln!(
                html,
                "<tr><td>{}{quote}<td>{}<td>{}<td class=\"{class}\">{holds}",
                escape(&verdict.that),
                escape(claim.source().unwrap_or("")),
                escape(&verdict.text)
            );
        }
        html.push_str("</table>\n");
    }
    if !paper.exceptions.is_empty() {
        html.push_str("<h2>Not run</h2>\n<table><tr><th>where<th>what<th>why\n");
        for Exception { of, what, why } in &paper.exceptions {
            let _ = writeln!(html, "<tr><td>{}<td>{}<td>{}", escape(of), escape(what), escape(why));
        }
        html.push_str("</table>\n");
    }
    html
}
