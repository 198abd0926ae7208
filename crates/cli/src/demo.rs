//! `congestlab demo`: the points of a small scenario side by side, as a table and a picture.
//!
//! The data are on disk before anything is drawn.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use congestlab_scenario::chart::looks;
use congestlab_scenario::disk;
use congestlab_scenario::fairness::{Life, convergence_s, jain, trailing_mean};
use congestlab_scenario::net::packet::{PS_PER_NS, Picos};
use congestlab_scenario::net::queue::Limit;
use congestlab_scenario::net::service::Service;
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::model::{Group, Link, Model, Start};
use congestlab_scenario::sim::outcome::{Element, FlowOutcome, LinkOutcome, Outcome};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::style::{self, Look};
use congestlab_scenario::sweep::Point;
use congestlab_scenario::units::BitRate;
use congestlab_scenario::{Measure, Scenario, store};
use serde::Serialize;
use serde_json::json;

use crate::args::DemoArguments;
use crate::failure::{Failure, Message};
use crate::machine::Clock;
use crate::output::{Screen, print, require_folder};
use crate::picture::{Figure, Line, Row, SCREEN_DPI, Size, Style};
use crate::run::seed_line;
use crate::signals;
use crate::table::{Cell, NOTHING, Table, count, rate};
use crate::version::VERSION;
use crate::watch::{self, Watch};

const SCENARIO: &str = include_str!("../data/demo.toml");
/// Steps of a rate that the subtitle names one by one.
const STEPS_NAMED_MAX: usize = 3;
/// More columns than this are too narrow to read, more flows too many to tell apart.
const COLUMNS_MAX: usize = 4;
const FLOWS_MAX: usize = 12;
/// Runs of which the table gives median and range of the convergence time. They differ in the phase of the last flow's start.
const PHASES: u32 = 9;
/// A run of more packet-hops is not repeated.
const HOPS_REPEATED_MAX: u64 = 2_000_000;
/// A link that is used so much, or drops packets, is a bottleneck.
const BUSY: f64 = 0.9;
/// Throughput is drawn averaged over this share of the run: bins near the RTT show whose burst fell
/// into which bin, not who gets how much.
const SMOOTHING: f64 = 1.0 / 60.0;

/// One column of the picture, one row of the table.
struct Run {
    label: String,
    model: Model,
    outcome: Outcome,
    /// Convergence times by bottleneck in runs of other phases, in the order of [`bottlenecks`].
    phases: Vec<Vec<Option<f64>>>,
    scenario: Scenario,
    meta: Meta,
    folder: PathBuf,
}

/// A row of the table: a link that decides what flows get, and how they share it.
#[derive(Debug, Serialize)]
struct Bottleneck {
    #[serde(skip)]
    place: usize,
    link: String,
    utilization: Option<f64>,
    queue_mean_packets: Option<f64>,
    queue_p95_packets: Option<u64>,
    /// Packets dropped, of those that came.
    loss: f64,
    /// Flows of all groups whose data crosses it.
    flows: usize,
    /// Jain's index of their goodputs.
    jain: Option<f64>,
    /// Their convergence time; `None` if that is not within the run.
    convergence_s: Option<f64>,
    /// The same in this run and in those of other phases.
    convergence_of_phases_s: Vec<Option<f64>>,
}

impl Bottleneck {
    /// Median and range of the convergence time over all phases: chance decides that of one.
    fn convergence(&self) -> Cell {
        let mut times: Vec<f64> =
            self.convergence_of_phases_s.iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
        times.sort_by(f64::total_cmp);
        let text = |time: f64| {
            if time.is_finite() { format!("{time:.1} s") } else { "not within the run".to_owned() }
        };
        let [Some(least), Some(median), Some(greatest)] = [0, times.len() / 2, times.len().saturating_sub(1)]
            .map(|place| times.get(place).copied().map(text))
        else {
            return NOTHING.into();
        };
        match greatest {
            _ if least == greatest => median.into(),
            _ if times.last() == Some(&f64::INFINITY) => format!("{median} ({least} or more)").into(),
            greatest => format!("{median} ({least} to {greatest})").into(),
        }
    }
}

impl Run {
    fn result(&self) -> RunResult<'_> {
        RunResult::new(&self.scenario, &self.outcome, self.meta.clone())
    }

    /// The rows of the table.
    fn bottlenecks(&self) -> Vec<Bottleneck> {
        let places = bottlenecks(&self.model, &self.outcome);
        places.into_iter().enumerate().map(|(row, index)| self.bottleneck(row, index)).collect()
    }

    fn bottleneck(&self, row: usize, index: u32) -> Bottleneck {
        let flows = flows_across(&self.model, &self.outcome, index);
        let rates: Vec<f64> = flows.iter().filter_map(|(_, flow)| flow.goodput_bps).collect();
        let place = index as usize;
        let link = &self.outcome.links[place];
        let convergence_s = convergence(&self.model, &self.outcome, index);
        let others = self.phases.iter().map(|times| times.get(row).copied().flatten());
        Bottleneck {
            place,
            link: self.model.links[place].name.clone(),
            utilization: link.utilization,
            queue_mean_packets: link.queue_mean_packets,
            queue_p95_packets: link.queue_p95_packets,
            loss: link.drops as f64 / link.arrived_packets.max(1) as f64,
            flows: flows.len(),
            jain: jain(&rates),
            convergence_s,
            convergence_of_phases_s: std::iter::once(convergence_s).chain(others).collect(),
        }
    }
}

/// The links that matter: those on the way of data that are used to [`BUSY`] or drop packets, or the
/// busiest of all if there is none.
fn bottlenecks(model: &Model, outcome: &Outcome) -> Vec<u32> {
    let links: Vec<(u32, &LinkOutcome)> = (0u32..)
        .zip(&outcome.links)
        .filter(|(index, _)| model.groups.iter().any(|group| crosses(group, *index)))
        .collect();
    let used = |link: &LinkOutcome| link.utilization.unwrap_or(0.0);
    let is_busy = |link: &LinkOutcome| used(link) >= BUSY || link.drops > 0;
    let mut found: Vec<u32> =
        links.iter().filter(|(_, link)| is_busy(link)).map(|(index, _)| *index).collect();
    if found.is_empty() {
        let busiest = links.iter().max_by(|(_, one), (_, other)| used(one).total_cmp(&used(other)));
        found.extend(busiest.map(|(index, _)| *index));
    }
    found
}

/// The flows whose data crosses a link.
fn flows_across<'a>(model: &Model, outcome: &'a Outcome, link: u32) -> Vec<(Element, &'a FlowOutcome)> {
    let groups = (0u32..).zip(model.groups.iter().zip(&outcome.groups));
    let crossing = groups.filter(|(_, (group, _))| crosses(group, link));
    let flows = crossing.flat_map(|(group, (_, flows))| {
        (0u32..).zip(flows).map(move |(flow, of)| (Element::Flow(group, flow), of))
    });
    flows.collect()
}

/// The convergence time of the flows that cross a link, s.
fn convergence(model: &Model, outcome: &Outcome, link: u32) -> Option<f64> {
    let mut goodputs: BTreeMap<Element, Vec<f64>> = BTreeMap::new();
    for sample in outcome.series.iter().filter(|sample| sample.metric == "goodput_bps") {
        goodputs.entry(sample.element).or_default().push(sample.value);
    }
    let lives = flows_across(model, outcome, link).into_iter().map(|(element, flow)| {
        let goodputs = goodputs.remove(&element).unwrap_or_default();
        Life::new(flow.start_s, flow.stop_s, flow.completion_s, goodputs)
    });
    convergence_s(&lives.collect::<Vec<_>>(), seconds(model.sample_every?))
}

/// Delays the last start of a flow by a part of its round trip, and draws other random numbers.
fn shift(model: &mut Model, phase: u32) {
    model.seed = model.seed.wrapping_add(phase.into());
    let seed = model.seed;
    let last = |group: &&mut Group| sim::starts_of(group, seed).into_iter().max();
    let links = &model.links;
    let Some(group) = model.groups.iter_mut().max_by_key(last) else { return };
    let across: Picos =
        group.path.iter().chain(&group.back).map(|&link| links[link as usize].port.delay).sum();
    let beside: Picos = [group.access, group.exit].into_iter().flatten().map(|pipe| 2 * pipe.delay).sum();
    let delay = (across + beside) / PS_PER_NS * u64::from(phase) / u64::from(PHASES);
    if let Start::Every { from, every } = &mut group.start {
        match group.count {
            0 | 1 => from.0 += delay,
            count => *every += delay / u64::from(count - 1),
        }
    }
}

/// Data of the group crosses the link, now or later.
fn crosses(group: &Group, link: u32) -> bool {
    group.path.contains(&link) || group.switches.iter().any(|switch| switch.path.contains(&link))
}

pub(crate) fn demo(arguments: &DemoArguments, screen: &Screen) -> Result<(), Failure> {
    require_folder(&arguments.out)?;
    let (scenario, text) = read(arguments)?;
    crate::warn(&scenario.check_sweep().map_err(Failure::Scenario)?, screen);
    crate::tell_without_effect(&arguments.changes, &scenario, screen);
    // Without a sweep the file is the only point.
    let only = [Point::default()];
    let points = scenario.sweep().map_or(&only[..], |sweep| sweep.points());
    if points.len() > COLUMNS_MAX {
        let text = format!("a picture has room for {COLUMNS_MAX} points, and the sweep has {}", points.len());
        let help = "shorten the lists of [sweep], or run `congestlab sweep FILE` and draw its folder with `congestlab export figure`";
        return Err(Failure::Input(Message::new(text, help)));
    }
    let stop = signals::stop_flag_for_good(screen)?;
    let clock = Clock::start();
    let mut runs = Vec::new();
    for point in points {
        screen.detail(&format!("running {}", point.label));
        runs.push(run(&scenario, point, &arguments.out, &stop)?);
    }
    signals::unwatch(&stop)?;
    let figure = draw(&text, &runs);
    let (title, subtitle) = figure.heading.clone().unwrap_or_default();
    let svg = figure.to_svg();
    let png = figure
        .to_png(SCREEN_DPI)
        .map_err(|error| Failure::Run(Message::new(format!("can not draw: {error}"), "")))?;
    let pictures = [("svg", svg.as_bytes()), ("png", &png[..])].map(|(kind, bytes)| {
        let path = below(&arguments.out, &format!("{}.{kind}", scenario.name()));
        (path, bytes)
    });
    for (path, bytes) in &pictures {
        disk::write_atomically(path, bytes).map_err(|error| Failure::write(path, &error))?;
    }

    if screen.json {
        let runs: Vec<_> = runs
            .iter()
            .map(|run| {
                let bottlenecks = run.bottlenecks();
                let convergence_s = bottlenecks.first().and_then(|bottleneck| bottleneck.convergence_s);
                let result = run.result().to_json();
                json!({ "label": run.label, "convergence_s": convergence_s, "bottlenecks": bottlenecks, "result": result })
            })
            .collect();
        return print(&store::pretty(&json!({ "runs": runs })));
    }
    let hops: u64 = runs.iter().map(|run| run.outcome.packet_hops).sum();
    let mut text =
        format!("{}\n{}\n{} packet-hops in {:.2} s\n\n", title, subtitle, count(hops as f64), clock.wall());
    text.push_str(&compare(&runs).render());
    let [svg, png] = pictures.map(|(path, _)| path.display().to_string());
    let _ = write!(text, "\n  picture  {png}, {svg}\n");
    for run in &runs {
        let _ = writeln!(text, "  data     {}", run.folder.display());
    }
    print(&text)
}

fn read(arguments: &DemoArguments) -> Result<(Scenario, String), Failure> {
    crate::require_one_value(&arguments.changes)?;
    let (set, seed) = (&arguments.changes.set, arguments.changes.seed);
    match &arguments.file {
        Some(path) => {
            let scenario = Scenario::load(path, set, seed).map_err(Failure::Scenario)?;
            let text = fs::read_to_string(path).map_err(|error| {
                Failure::Run(Message::new(format!("can not read {}: {error}", path.display()), ""))
            })?;
            Ok((scenario, text))
        }
        None => {
            let scenario = Scenario::parse("demo.toml", SCENARIO, Path::new(""), set, seed);
            Ok((scenario.map_err(Failure::Scenario)?, SCENARIO.to_owned()))
        }
    }
}

/// A name in the folder, without `./` for this one.
fn below(folder: &Path, name: &str) -> PathBuf {
    if folder == Path::new(".") { name.into() } else { folder.join(name) }
}

fn run(scenario: &Scenario, point: &Point, out: &Path, stop: &AtomicBool) -> Result<Run, Failure> {
    let text = |cell| if let Cell::Text(text) = cell { text } else { String::new() };
    let label: Vec<String> = point.settings.iter().map(|(_, value)| text(Cell::setting(value))).collect();
    let label = if label.is_empty() { scenario.name().to_owned() } else { label.join(", ") };
    let scenario = scenario.point(point).map_err(Failure::Scenario)?;
    let measure = Measure { series: true, events: true };
    watch::require_memory(&scenario, &measure)?;
    let model = scenario.model(&measure);
    let clock = Clock::start();
    let mut watch = Watch::alone(scenario.name(), scenario.estimate(&measure), stop);
    let engine = Engine::Window { threads: 1, divisor: 1 };
    let outcome = sim::run(&model, engine, stop, &mut |come| watch.see(come));
    let interrupted = || Failure::Interrupted("interrupted; no picture was drawn".into());
    if !outcome.complete {
        return Err(interrupted());
    }
    let meta = clock.meta();
    let mut phases = Vec::new();
    let places = bottlenecks(&model, &outcome);
    let is_shared = places.iter().any(|&place| flows_across(&model, &outcome, place).len() > 1);
    let count = if is_shared && outcome.packet_hops <= HOPS_REPEATED_MAX { PHASES } else { 1 };
    for phase in 1..count {
        let mut model = scenario.model(&Measure { series: true, events: false });
        shift(&mut model, phase);
        let outcome = sim::run(&model, Engine::Window { threads: 1, divisor: 1 }, stop, &mut |_| {});
        if !outcome.complete {
            return Err(interrupted());
        }
        phases.push(places.iter().map(|&place| convergence(&model, &outcome, place)).collect());
    }
    let folder = below(out, "runs");
    let mut run = Run { label, model, outcome, phases, scenario, meta, folder };
    run.folder = store::write_run(&run.folder, VERSION, &run.scenario, &run.outcome, &run.result())
        .map_err(|error| Failure::write(&run.folder, &error))?;
    Ok(run)
}

fn compare(runs: &[Run]) -> Table {
    let mut table =
        Table::new(["", "utilisation", "queue mean", "queue p95", "loss", "fairness (Jain)", "convergence"]);
    for run in runs {
        for row in run.bottlenecks() {
            let name = if is_single(run) { String::new() } else { format!(", {}", row.link) };
            table.row(vec![
                format!("{}{name}", run.label).into(),
                Cell::share(row.utilization),
                Cell::number(row.queue_mean_packets, "packets"),
                Cell::number(row.queue_p95_packets.map(|packets| packets as f64), "packets"),
                Cell::fixed(Some(row.loss * 100.0), 2, "%"),
                Cell::fixed(row.jain, 3, ""),
                row.convergence(),
            ]);
        }
    }
    table
}

/// The scenario describes one link.
fn is_single(run: &Run) -> bool {
    run.model.links.iter().filter(|link| !link.name.ends_with(".reverse")).count() == 1
}

/// Values of one metric of one element over time, seconds.
fn series(run: &Run, element: Element, metric: &str) -> Vec<(f64, f64)> {
    let samples =
        run.outcome.series.iter().filter(|sample| sample.element == element && sample.metric == metric);
    samples.map(|sample| (seconds(sample.at), sample.value)).collect()
}

fn seconds(at: Picos) -> f64 {
    at as f64 / 1e12
}

/// Every flow: its name and element.
fn flows(run: &Run) -> Vec<(String, Element)> {
    let is_single = run.model.groups.len() == 1;
    let groups = (0u32..).zip(&run.model.groups);
    groups
        .flat_map(|(index, group)| {
            (0..group.count).map(move |flow| {
                let name = if is_single { "flow".to_owned() } else { group.name.clone() };
                (format!("{name} {}", flow + 1), Element::Flow(index, flow))
            })
        })
        .collect()
}

/// The same of a flow while it lives: has begun and is not complete.
fn series_alive(run: &Run, element: Element, metric: &str) -> Vec<(f64, f64)> {
    let mut series = series(run, element, metric);
    if let Element::Flow(group, flow) = element
        && let Some(of) = run.outcome.groups.get(group as usize).and_then(|flows| flows.get(flow as usize))
    {
        let every = run.model.sample_every.map_or(0.0, seconds);
        let end = of.completion_s.map_or(f64::INFINITY, |after| of.start_s + after);
        series.retain(|&(at, _)| of.start_s < at && at - every < end);
    }
    series
}

/// As many flows as can be told apart, the first of each group before the second of any.
fn drawn(run: &Run) -> Vec<(String, Element)> {
    let mut flows: Vec<(usize, (String, Element))> = flows(run).into_iter().enumerate().collect();
    flows.sort_by_key(|(_, (_, element))| match element {
        Element::Flow(_, number) => *number,
        Element::Link(_) | Element::Cloud(..) => 0,
    });
    flows.truncate(FLOWS_MAX);
    flows.sort_by_key(|(place, _)| *place);
    flows.into_iter().map(|(_, flow)| flow).collect()
}

/// Draws the received rate, window and queue of every run. The title is the first line of the scenario, a comment.
fn draw(text: &str, runs: &[Run]) -> Figure {
    // Behind what editors are told.
    let first = text.lines().find(|line| !line.starts_with("#:"));
    let title = first.and_then(|line| line.strip_prefix('#')).unwrap_or("congestlab").trim();
    let highest = runs.iter().flat_map(|run| &run.outcome.series);
    let highest = highest.filter(|sample| sample.metric == "received_bps").map(|sample| sample.value);
    let (factor, unit) = match highest.fold(0.0, f64::max) {
        2e9.. => (1e9, "Gbit/s"),
        2e6.. => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    let row =
        |label: String, chart: &dyn Fn(&Run) -> Vec<Line>| Row::new(label, runs.iter().map(chart).collect());
    let of_flows = |run: &Run, metric: &str, factor: f64| -> Vec<Line> {
        let styles = styles(run);
        let lines = drawn(run).into_iter().map(|(_, element)| {
            let points =
                series_alive(run, element, metric).into_iter().map(|(x, y)| (x, y / factor)).collect();
            let (name, style) = styles(element);
            Line { name, style, points }
        });
        lines.filter(|line| !line.points.is_empty()).collect()
    };
    let throughput = |run: &Run| {
        let mut lines = capacities(run, factor);
        lines.extend(of_flows(run, "received_bps", factor));
        let bins = smoothing_bins(run);
        for line in &mut lines {
            let values: Vec<f64> = line.points.iter().map(|(_, y)| *y).collect();
            line.points.iter_mut().zip(trailing_mean(&values, bins)).for_each(|((_, y), mean)| *y = mean);
        }
        lines
    };
    let rows = vec![
        row(format!("received throughput ({unit})"), &throughput),
        row("cwnd (packets)".into(), &|run| of_flows(run, "cwnd_packets", 1.0)),
        row("queue (packets)".into(), &queues),
    ];
    let subtitle = runs.first().map_or_else(String::new, describe);
    let end = runs.iter().map(|run| seconds(run.model.duration)).fold(0.0, f64::max);
    let columns = runs.iter().map(|run| run.label.clone()).collect();
    Figure {
        heading: Some((title.into(), subtitle)),
        about: title.into(),
        columns,
        rows,
        x: (0.0, end),
        x_label: "time (s)".into(),
        is_logarithmic: false,
        categories: Vec::new(),
        note: String::new(),
        size: Size::SCREEN,
    }
}

/// What a flow is called and how it looks: by the law of its group, and by its number where they are few.
fn styles(run: &Run) -> impl Fn(Element) -> (String, Style) {
    let laws = run.scenario.flow_laws();
    let names: Vec<&str> = run.model.groups.iter().map(|group| group.name.as_str()).collect();
    let curves: Vec<(&str, Option<&str>)> =
        names.iter().enumerate().map(|(place, name)| (*name, laws.get(place).copied().flatten())).collect();
    let is_single = names.len() == 1;
    let groups: Vec<(String, u32, Look)> = curves
        .iter()
        .zip(looks(&curves))
        .zip(&run.model.groups)
        .map(|(((name, law), (_, look)), group)| {
            let name = if is_single { "flow" } else { name };
            (law.map_or_else(|| name.to_owned(), |law| format!("{law}, {name}")), group.count, look)
        })
        .collect();
    move |element| match element {
        Element::Flow(group, flow) => match groups.get(group as usize) {
            Some((name, count, look)) if *count as usize > style::APART_MAX => {
                (format!("{name}: {count} flows"), Style::Thin(*look))
            }
            Some((name, _, look)) => {
                let dash = style::DASHES[flow as usize % style::DASHES.len()];
                (format!("{name} {}", flow + 1), Style::Line(Look { dash, ..*look }))
            }
            None => (String::new(), Style::Line(style::nth(0))),
        },
        Element::Link(link) | Element::Cloud(link, _) => {
            (String::new(), Style::Line(style::nth(link as usize)))
        }
    }
}

/// The links that matter, in words.
fn describe(run: &Run) -> String {
    let links = run.bottlenecks();
    let links = match &links[..] {
        [only] => describe_link(run, only.place),
        several => {
            let named = several.iter().map(|row| {
                format!("{} {}", row.link, describe_service(&run.model.links[row.place].port.service))
            });
            named.collect::<Vec<_>>().join(", ")
        }
    };
    let all = flows(run).len();
    let shown = if all > FLOWS_MAX { format!(", {FLOWS_MAX} of {all} flows") } else { String::new() };
    let mean = smoothing_bins(run) as f64 * run.model.sample_every.map_or(0.0, seconds);
    format!(
        "{links}, {}{shown}; throughput at the receivers is the mean of {mean} s",
        seed_line(&run.result())
    )
}

/// The capacity of a link in words.
fn describe_service(service: &Service) -> String {
    let words = |bits: u64| rate(Some(bits as f64));
    match service {
        Service::Fixed(fixed) => words(fixed.0),
        Service::Trace(trace) => format!("a trace of {} on average", words(trace.mean_rate().0)),
        Service::Steps(steps) => match steps.as_slice() {
            [(_, only)] => words(only.0),
            list if list.len() <= STEPS_NAMED_MAX => {
                let step = |&(at, bits): &(Picos, BitRate)| match at {
                    0 => words(bits.0),
                    at => format!("{} from {} s", words(bits.0), seconds(at)),
                };
                list.iter().map(step).collect::<Vec<_>>().join(", ")
            }
            list => {
                let bits = || list.iter().map(|&(_, bits)| bits.0);
                let (least, most) = (bits().min().unwrap_or(0), bits().max().unwrap_or(0));
                format!("{} to {} in {} steps", words(least), words(most), list.len())
            }
        },
    }
}

fn describe_link(run: &Run, place: usize) -> String {
    let link = &run.model.links[place];
    let name = if is_single(run) { String::new() } else { format!("{}: ", link.name) };
    let service = describe_service(&link.port.service);
    let limit = match link.port.limit {
        Limit::Packets(packets) => format!("queue of {packets} packets"),
        Limit::Bytes(bytes) => format!("queue of {bytes} bytes"),
        Limit::None => "unlimited queue".into(),
    };
    let delay = link.port.delay as f64 / 1e9;
    format!("{name}{service}, {delay} ms one way, {limit}")
}

/// The queues of the links, without reverse directions that nobody described.
fn queues(run: &Run) -> Vec<Line> {
    let forward = run.model.links.iter().enumerate().filter(|(_, link)| !link.name.ends_with(".reverse"));
    let mut lines: Vec<Line> = forward
        .clone()
        .enumerate()
        .map(|(nth, (index, link))| Line {
            name: format!("queue of {}", link.name),
            style: Style::Line(style::plain(nth)),
            points: series(run, Element::Link(u32::try_from(index).unwrap_or(u32::MAX)), "queue_packets"),
        })
        .collect();
    let limits = forward.map(|(_, link)| link);
    lines.extend(limits.filter_map(|link| queue_limit(link, run.model.duration)));
    lines
}

fn queue_limit(link: &Link, duration: Picos) -> Option<Line> {
    let Limit::Packets(packets) = link.port.limit else { return None };
    let level = packets as f64;
    let points = vec![(0.0, level), (seconds(duration), level)];
    Some(Line { name: "queue limit".into(), style: Style::Bound(style::QUEUE_LIMIT), points })
}

fn smoothing_bins(run: &Run) -> usize {
    let every = run.model.sample_every.map_or(f64::INFINITY, seconds);
    (seconds(run.model.duration) * SMOOTHING / every).round().max(1.0) as usize
}

/// Returns the capacities of the links that matter, as lines.
fn capacities(run: &Run, factor: f64) -> Vec<Line> {
    run.bottlenecks().iter().filter_map(|row| capacity(run, row.place, factor)).collect()
}

/// Returns the capacity of a link, in the bins of the series.
fn capacity(run: &Run, place: usize, factor: f64) -> Option<Line> {
    let (link, every) = (&run.model.links[place], run.model.sample_every?);
    let duration = run.model.duration;
    let points = match &link.port.service {
        Service::Trace(trace) => {
            // Each opportunity carries 1500 bytes (docs/design/contract.md 2).
            const BITS: f64 = 12_000.0;
            let bins = duration.div_ceil(every).min(1_000_000);
            let mut bits = vec![0.0; usize::try_from(bins).unwrap_or(0)];
            let rounds = duration.div_ceil(trace.period().max(1));
            for round in 0..rounds {
                for &stamp in trace.stamps() {
                    let at = round * trace.period() + u64::from(stamp) * 1_000_000_000;
                    let bin = usize::try_from(at.saturating_sub(1) / every).unwrap_or(usize::MAX);
                    if let Some(sum) = bits.get_mut(bin) {
                        *sum += BITS;
                    }
                }
            }
            let bin = seconds(every);
            bits.iter().zip(1u32..).map(|(sum, end)| (f64::from(end) * bin, sum / bin / factor)).collect()
        }
        service => {
            let bins = duration.div_ceil(every);
            let at = (0..=bins).map(|bin| (bin * every).min(duration));
            at.map(|at| (seconds(at), service.rate_at(at).0 as f64 / factor)).collect()
        }
    };
    let name = if is_single(run) { "capacity".into() } else { format!("capacity of {}", link.name) };
    Some(Line { name, style: Style::Bound(style::CAPACITY), points })
}
