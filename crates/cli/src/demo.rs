//! `congestlab demo`: the points of a small scenario side by side, as a table and a picture.
//!
//! The data are on disk before anything is drawn.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use congestlab_scenario::fairness::{time_to_fair_share, trailing_mean};
use congestlab_scenario::net::packet::Picos;
use congestlab_scenario::net::queue::Limit;
use congestlab_scenario::net::service::Service;
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::model::{Link, Model};
use congestlab_scenario::sim::outcome::{Element, Outcome};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::sweep::Point;
use congestlab_scenario::{Measure, Scenario, store};
use serde_json::json;

use crate::args::{DemoArguments, VERSION};
use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Screen, print, require_folder};
use crate::plot::{Figure, Line, Row, Style, to_png};
use crate::run::seed_line;
use crate::table::{NOTHING, Table, count, number, percent, rate, small_percent};

const SCENARIO: &str = include_str!("../../../scenarios/demo.toml");
/// More columns than this are too narrow to read, more flows too many to tell apart.
const COLUMNS_MAX: usize = 4;
const FLOWS_MAX: usize = 12;
/// Throughput is drawn averaged over this share of the run: bins near the RTT show whose burst fell
/// into which bin, not who gets how much.
const SMOOTHING: f64 = 1.0 / 60.0;

/// One column of the picture, one row of the table.
struct Run {
    label: String,
    model: Model,
    outcome: Outcome,
    scenario: Scenario,
    meta: Meta,
    folder: PathBuf,
}

impl Run {
    fn result(&self) -> RunResult<'_> {
        RunResult::new(&self.scenario, &self.outcome, self.meta.clone())
    }
}

pub(crate) fn demo(arguments: &DemoArguments, screen: &Screen) -> Result<(), Failure> {
    require_folder(&arguments.out)?;
    let (scenario, text) = read(arguments)?;
    crate::warn(scenario.warnings(), screen);
    crate::warn(&scenario.check().map_err(Failure::Scenario)?, screen);
    let points = scenario.sweep().map_or(&[][..], |sweep| sweep.points());
    if points.is_empty() || points.len() > COLUMNS_MAX {
        let text = format!("a picture wants a [sweep] of 1 to {COLUMNS_MAX} points, not {}", points.len());
        return Err(Failure::Input(Message::new(
            text,
            "such as grid = { \"flows.ftp.law\" = [\"xcp\", \"cubic\"] }",
        )));
    }
    let stop = machine::stop_flag()?;
    let clock = Clock::start();
    let mut runs = Vec::new();
    for point in points {
        screen.detail(&format!("running {}", point.label));
        runs.push(run(&scenario, point, &arguments.out, &stop)?);
    }
    let figure = draw(&text, &runs);
    let svg = figure.to_svg();
    let png =
        to_png(&svg).map_err(|error| Failure::Run(Message::new(format!("can not draw: {error}"), "")))?;
    let pictures = [("svg", svg.as_bytes()), ("png", &png[..])].map(|(kind, bytes)| {
        let path = below(&arguments.out, &format!("{}.{kind}", scenario.name()));
        (path, bytes)
    });
    for (path, bytes) in &pictures {
        store::write_atomically(path, bytes).map_err(|error| Failure::write(path, &error))?;
    }

    if screen.json {
        let runs: Vec<_> = runs
            .iter()
            .map(|run| json!({ "label": run.label, "fair_share_s": fair_share(run), "result": run.result().to_json() }))
            .collect();
        return print(&store::pretty(&json!({ "runs": runs })));
    }
    let hops: u64 = runs.iter().map(|run| run.outcome.packet_hops).sum();
    let mut text = format!(
        "{}\n{}\n{} packet-hops in {:.2} s\n\n",
        figure.title,
        figure.subtitle,
        count(hops as f64),
        clock.wall()
    );
    text.push_str(&compare(&runs).render());
    let [svg, png] = pictures.map(|(path, _)| path.display().to_string());
    let _ = write!(text, "\n  picture  {png}, {svg}\n");
    for run in &runs {
        let _ = writeln!(text, "  data     {}", run.folder.display());
    }
    print(&text)
}

fn read(arguments: &DemoArguments) -> Result<(Scenario, String), Failure> {
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
    let label: Vec<&str> = point.settings.iter().map(|(_, value)| value.trim_matches('"')).collect();
    let scenario = scenario.point(point).map_err(Failure::Scenario)?;
    let measure = Measure { series: true, events: true };
    machine::require_memory(&scenario, &measure)?;
    let model = scenario.model(&measure);
    let clock = Clock::start();
    let outcome = sim::run(&model, Engine::Window { threads: 1, divisor: 1 }, stop, &mut |_| {});
    if !outcome.complete {
        return Err(Failure::Interrupted("interrupted; no picture was drawn".into()));
    }
    let meta = clock.meta();
    let mut run = Run { label: label.join(", "), model, outcome, scenario, meta, folder: below(out, "runs") };
    run.folder = store::write_run(&run.folder, VERSION, &run.scenario, &run.outcome, &run.result())
        .map_err(|error| Failure::write(&run.folder, &error))?;
    Ok(run)
}

fn compare(runs: &[Run]) -> Table {
    let mut table = Table::new([
        "",
        "utilisation",
        "queue mean",
        "queue p95",
        "loss",
        "fairness (Jain)",
        "time to fair share",
    ]);
    for run in runs {
        let result = run.result();
        let Some((_, link)) = result.links.0.first() else { continue };
        let packets = |value: Option<f64>| {
            value.map_or_else(|| NOTHING.into(), |_| format!("{} packets", number(value)))
        };
        let jain = result.jain.0.first().and_then(|(_, jain)| *jain);
        table.row(vec![
            run.label.clone(),
            percent(link.utilization),
            packets(link.queue_mean_packets),
            packets(link.queue_p95_packets.map(|packets| packets as f64)),
            small_percent(link.drops as f64 / link.arrived_packets.max(1) as f64),
            jain.map_or_else(|| NOTHING.into(), |jain| format!("{jain:.3}")),
            fair_share(run).map_or_else(|| NOTHING.into(), |seconds| format!("{seconds:.1} s")),
        ]);
    }
    table
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

/// Seconds from the start of the last flow to the time from which all share fairly; `None` if that
/// never comes.
fn fair_share(run: &Run) -> Option<f64> {
    let last_start = run.outcome.groups.iter().flatten().map(|flow| flow.start_s).fold(0.0, f64::max);
    let goodputs: Vec<Vec<f64>> = flows(run)
        .into_iter()
        .take(FLOWS_MAX)
        .map(|(_, element)| series(run, element, "goodput_bps").into_iter().map(|(_, value)| value).collect())
        .collect();
    time_to_fair_share(&goodputs, seconds(run.model.sample_every?), last_start, f64::INFINITY)
}

/// Throughput, window and queue of every run. The title is the first line of the scenario, a comment.
fn draw(text: &str, runs: &[Run]) -> Figure {
    // Behind what editors are told.
    let first = text.lines().find(|line| !line.starts_with("#:"));
    let title = first.and_then(|line| line.strip_prefix('#')).unwrap_or("congestlab").trim();
    let highest = runs.iter().flat_map(|run| &run.outcome.series);
    let highest = highest.filter(|sample| sample.metric == "throughput_bps").map(|sample| sample.value);
    let (factor, unit) = match highest.fold(0.0, f64::max) {
        2e9.. => (1e9, "Gbit/s"),
        2e6.. => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    let row = |label: String, chart: &dyn Fn(&Run) -> Vec<Line>| Row {
        label,
        charts: runs.iter().map(chart).collect(),
    };
    let of_flows = |run: &Run, metric: &str, factor: f64| -> Vec<Line> {
        let lines = flows(run).into_iter().take(FLOWS_MAX).enumerate().map(|(index, (name, element))| {
            let points = series(run, element, metric).into_iter().map(|(x, y)| (x, y / factor)).collect();
            Line { name, style: Style::Flow(index), points }
        });
        lines.filter(|line| !line.points.is_empty()).collect()
    };
    let throughput = |run: &Run| {
        let mut lines = capacity(run, factor);
        lines.extend(of_flows(run, "throughput_bps", factor));
        let bins = smoothing_bins(run);
        for line in &mut lines {
            let values: Vec<f64> = line.points.iter().map(|(_, y)| *y).collect();
            line.points.iter_mut().zip(trailing_mean(&values, bins)).for_each(|((_, y), mean)| *y = mean);
        }
        lines
    };
    let rows = vec![
        row(format!("throughput ({unit})"), &throughput),
        row("cwnd (packets)".into(), &|run| of_flows(run, "cwnd_packets", 1.0)),
        row("queue (packets)".into(), &queues),
    ];
    let subtitle = runs.first().map_or_else(String::new, describe);
    let end = runs.iter().map(|run| seconds(run.model.duration)).fold(0.0, f64::max);
    let columns = runs.iter().map(|run| run.label.clone()).collect();
    Figure {
        title: title.into(),
        subtitle,
        columns,
        rows,
        x: (0.0, end),
        x_label: "time (s)".into(),
        is_logarithmic: false,
    }
}

/// The bottleneck in words.
fn describe(run: &Run) -> String {
    let Some(link) = run.model.links.first() else { return String::new() };
    let service = match &link.port.service {
        Service::Trace(trace) => format!("a trace of {} on average", rate(Some(trace.mean_rate().0 as f64))),
        service => rate(Some(service.rate_at(0).0 as f64)),
    };
    let limit = match link.port.limit {
        Limit::Packets(packets) => format!("queue of {packets} packets"),
        Limit::Bytes(bytes) => format!("queue of {bytes} bytes"),
        Limit::None => "unlimited queue".into(),
    };
    let delay = link.port.delay as f64 / 1e9;
    let all = flows(run).len();
    let shown =
        if all > FLOWS_MAX { format!(", the first {FLOWS_MAX} of {all} flows") } else { String::new() };
    let mean = smoothing_bins(run) as f64 * run.model.sample_every.map_or(0.0, seconds);
    format!(
        "{service}, {delay} ms one way, {limit}, {}{shown}; throughput is the mean of {mean} s",
        seed_line(&run.result())
    )
}

/// The queues of the links, without reverse directions that nobody described.
fn queues(run: &Run) -> Vec<Line> {
    let forward = run.model.links.iter().enumerate().filter(|(_, link)| !link.name.ends_with(".reverse"));
    let mut lines: Vec<Line> = forward
        .clone()
        .enumerate()
        .map(|(nth, (index, link))| Line {
            name: format!("queue of {}", link.name),
            style: Style::Link(nth),
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
    Some(Line { name: "queue limit".into(), style: Style::Limit, points })
}

fn smoothing_bins(run: &Run) -> usize {
    let every = run.model.sample_every.map_or(f64::INFINITY, seconds);
    (seconds(run.model.duration) * SMOOTHING / every).round().max(1.0) as usize
}

/// What the first link could carry, in the bins of the series.
fn capacity(run: &Run, factor: f64) -> Vec<Line> {
    let (Some(link), Some(every)) = (run.model.links.first(), run.model.sample_every) else {
        return Vec::new();
    };
    let duration = run.model.duration;
    let points = match &link.port.service {
        Service::Trace(trace) => {
            // Each opportunity carries 1500 bytes (contract §2).
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
    vec![Line { name: "capacity".into(), style: Style::Limit, points }]
}
