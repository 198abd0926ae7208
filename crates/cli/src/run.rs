//! `congestlab run`: one scenario, one result.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use congestlab_scenario::capture::{Capture, CaptureError};
use congestlab_scenario::memory::{Estimate, text};
use congestlab_scenario::net::packet::Picos;
use congestlab_scenario::result::{
    FLOWS_LISTED_MAX, Flows, Meta, RunResult, write_events_csv, write_series_csv,
};
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::{FlowOutcomes, Outcome};
use congestlab_scenario::sim::{self, Engine, Tap};
use congestlab_scenario::{Measure, Scenario, store};
use serde::Serialize;

use crate::args::{FlowsShown, RunArguments};
use crate::failure::{Failure, Message};
use crate::machine::{self, Clock};
use crate::output::{Screen, gauge, print, require_files, require_folder, require_run_folder, write_file};
use crate::report;
use crate::signals;
use crate::table::{Cell, Table, count};
use crate::version::VERSION;
use crate::watch::{self, Watch};

/// More flows than this are shown by group.
const FLOWS_SHOWN_MAX: usize = 20;

pub(crate) fn run(arguments: &RunArguments, screen: &Screen) -> Result<(), Failure> {
    let scenario = crate::load(&arguments.scenario, screen)?;
    crate::warn(&scenario.ignored(), screen);
    let files = arguments.series.iter().chain(&arguments.events).map(PathBuf::as_path);
    require_files(&arguments.scenario.file, files)?;
    for folder in arguments.out.iter().chain(&arguments.pcap) {
        require_folder(folder)?;
    }
    if let (Some(folder), true) = (&arguments.out, arguments.exact) {
        require_run_folder(folder)?;
    }
    let measure = Measure {
        series: arguments.series.is_some() || arguments.out.is_some(),
        events: arguments.events.is_some() || arguments.out.is_some(),
    };
    let estimate = scenario.estimate(&measure);
    // More threads than cores only wait for each other.
    let threads = arguments.threads.min(machine::cores());
    screen.detail(&format!("up to {} of memory, at most {threads} threads", text(estimate.bytes)));
    watch::require_memory(&scenario, &measure)?;
    let stop = signals::stop_flag_for_good(screen)?;
    let model = scenario.model(&measure);
    let create = |folder| Capture::create(folder, &scenario, VERSION, arguments.snaplen, &stop);
    let capture = arguments.pcap.as_deref().map(create).transpose().map_err(unwritten)?;

    let clock = Clock::start();
    let engine = Engine::Window { threads, divisor: 1 };
    let tap = capture.as_ref().map(|capture| capture as &dyn Tap);
    let watch = Watch::alone(scenario.name(), estimate, &stop);
    let (outcome, reached) = simulate(&model, engine, "run", watch, screen, tap);
    let result = RunResult::new(&scenario, &outcome, clock.meta());
    let interrupted = || {
        let (at, end) = (reached as f64 / 1e12, model.duration as f64 / 1e12);
        Failure::Interrupted(format!("interrupted at {at:.3} s of {end} simulated seconds"))
    };
    // A trace that can not be written stops the run.
    capture.map_or(Ok(()), |capture| capture.finish(outcome.complete)).map_err(unwritten)?;
    let mut folder = None;
    if outcome.complete {
        signals::unwatch(&stop)?;
        folder = write_files(arguments, &scenario, &outcome, &result)?;
    }
    print(&if screen.json {
        let shown = match arguments.flows {
            // A signal may not wait for a list of millions.
            FlowsShown::List if outcome.complete || flows(&outcome) <= FLOWS_LISTED_MAX => result,
            FlowsShown::List => result.summarised(),
            FlowsShown::Summary => result.summarised(),
        };
        store::pretty(&WithFolder::new(shown, folder.as_deref()))
    } else {
        describe(&result)
    })?;
    if !outcome.complete {
        return Err(interrupted());
    }
    if !arguments.verify {
        return Ok(());
    }
    let stop = signals::stop_flag_for_good(screen)?;
    verify(&model, &outcome, estimate, &stop, screen)
}

/// Flows of all groups.
fn flows(outcome: &Outcome) -> usize {
    outcome.groups.iter().map(FlowOutcomes::count).sum()
}

/// Runs the model, with progress. Returns how far it came, too.
fn simulate(
    model: &Model,
    engine: Engine,
    name: &str,
    mut watch: Watch<'_>,
    screen: &Screen,
    tap: Option<&dyn Tap>,
) -> (Outcome, Picos) {
    let mut progress = screen.progress();
    let mut reached = 0;
    let (end, unit) = (model.duration as f64, 1e12);
    let stop = watch.stop();
    let mut tell = |come: sim::Progress| {
        watch.see(come);
        let at = come.at;
        reached = at;
        progress.tell(|elapsed| {
            let (now, done) = (at as f64, at as f64 / end);
            let left = elapsed / done.max(1e-9) - elapsed;
            let (speed, bar) = (come.packets as f64 / elapsed / 1e6, gauge(done));
            format!(
                "{name}  {bar}  {:.1} of {} s, {speed:.1} M events/s, {left:.0} s left",
                now / unit,
                end / unit
            )
        });
    };
    let outcome = sim::run_tapped(model, engine, stop, &mut tell, tap);
    progress.clear();
    (outcome, reached)
}

fn unwritten(failed: CaptureError) -> Failure {
    Failure::write(&failed.path, &failed.error)
}

/// The results of a run, and the folder that they were written to. Written as it is, because a value of millions of flows takes
/// more memory than the run.
#[derive(Serialize)]
pub(crate) struct WithFolder<'a> {
    #[serde(flatten)]
    result: RunResult<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

impl<'a> WithFolder<'a> {
    pub(crate) fn new(result: RunResult<'a>, folder: Option<&Path>) -> Self {
        Self { result, folder: folder.map(|folder| folder.display().to_string()) }
    }
}

/// Writes a run into `out`, or as `out` if that is the exact name. Returns its folder.
pub(crate) fn write_folder(
    out: &Path,
    is_exact: bool,
    scenario: &Scenario,
    outcome: &Outcome,
    result: &RunResult,
) -> Result<PathBuf, Failure> {
    let written = if is_exact {
        store::write_run_to(out, VERSION, scenario, outcome, result).map(|()| out.to_owned())
    } else {
        store::write_run(out, VERSION, scenario, outcome, result)
    };
    written.map_err(|error| Failure::write(out, &error))
}

/// Writes what the arguments ask for. Returns the folder of the run.
fn write_files(
    arguments: &RunArguments,
    scenario: &Scenario,
    outcome: &Outcome,
    result: &RunResult,
) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = &arguments.series {
        write_file(path, |out| write_series_csv(out, scenario, outcome))?;
    }
    if let Some(path) = &arguments.events {
        write_file(path, |out| write_events_csv(out, scenario, outcome))?;
    }
    let Some(out) = &arguments.out else { return Ok(None) };
    let folder = write_folder(out, arguments.exact, scenario, outcome, result)?;
    report::after_run(&folder, scenario, outcome, result)?;
    Ok(Some(folder))
}

/// Repeats the run in other ways; all must give the same, event by event.
fn verify(
    model: &Model,
    outcome: &Outcome,
    estimate: Estimate,
    stop: &AtomicBool,
    screen: &Screen,
) -> Result<(), Failure> {
    let ways = [
        ("the reference engine", Engine::Reference),
        ("half the window", Engine::Window { threads: 1, divisor: 2 }),
        ("two threads", Engine::Window { threads: 2, divisor: 1 }),
    ];
    for (name, engine) in ways {
        let watch = Watch::alone(name, estimate, stop);
        let (other, _) = simulate(model, engine, name, watch, screen, None);
        if !other.complete {
            return Err(Failure::Interrupted(format!("interrupted while verifying with {name}")));
        }
        let differs = if other.fingerprint != outcome.fingerprint {
            format!("the fingerprint is {:016x}, not {:016x}", other.fingerprint, outcome.fingerprint)
        } else if other != *outcome {
            "the results differ, though the fingerprint is the same".to_owned()
        } else {
            screen.detail(&format!("verified with {name}: {:016x}", other.fingerprint));
            continue;
        };
        let help = "this is a defect of congestlab: please report it with the scenario";
        return Err(Failure::Claim(Message::new(format!("with {name} {differs}"), help)));
    }
    screen.note("verified: the reference engine, half the window and two threads give the same events");
    Ok(())
}

/// `seed 1 (nothing random was drawn)`.
pub(crate) fn seed_line(result: &RunResult) -> String {
    let note = if result.seed_used { "" } else { " (nothing random was drawn)" };
    format!("seed {}{note}", result.seed)
}

/// Links and flows, as tables.
pub(crate) fn tables(result: &RunResult) -> String {
    let mut text = links(result).render();
    let flows: usize = listed(result).map(|(_, flows)| flows.count()).sum();
    if flows > 0 {
        text.push('\n');
        text.push_str(&if flows > FLOWS_SHOWN_MAX { groups(result) } else { each_flow(result) }.render());
    }
    text
}

/// The result for people.
fn describe(result: &RunResult) -> String {
    let Meta { wall_s, .. } = result.meta;
    let mut text = String::new();
    let incomplete = if result.complete { "" } else { "INCOMPLETE  " };
    let _ = writeln!(
        text,
        "{incomplete}{} s simulated in {wall_s:.2} s, {} packet-hops, {}, fingerprint {}\n",
        // Ctrl-C comes at any picosecond.
        (result.duration_s * 1e6).round() / 1e6,
        count(result.packet_hops as f64),
        seed_line(result),
        result.fingerprint
    );
    text + &tables(result)
}

/// The groups whose flows are there one by one.
fn listed<'a>(result: &'a RunResult) -> impl Iterator<Item = (&'a str, &'a FlowOutcomes)> {
    result.flows.0.iter().filter_map(|(name, flows)| match flows {
        Flows::Listed(list) => Some((name.as_str(), *list)),
        Flows::Summary(_) => None,
    })
}

fn links(result: &RunResult) -> Table {
    let mut table = Table::new([
        "link",
        "capacity",
        "throughput",
        "utilisation",
        "queue mean",
        "p95",
        "max",
        "drops",
        "errors",
        "marks",
    ]);
    for (name, link) in &result.links.0 {
        table.row(vec![
            name.as_str().into(),
            Cell::rate(link.capacity_bps),
            Cell::rate(link.throughput_bps),
            Cell::share(link.utilization),
            Cell::number(link.queue_mean_packets, ""),
            Cell::number(link.queue_p95_packets.map(|packets| packets as f64), ""),
            Cell::whole(link.queue_max_packets),
            Cell::whole(link.drops),
            Cell::whole(link.errors),
            Cell::whole(link.marks),
        ]);
    }
    table
}

fn each_flow(result: &RunResult) -> Table {
    let mut table = Table::new([
        "flow",
        "goodput",
        "cwnd mean",
        "RTT mean",
        "RTT p95",
        "sent",
        "retransmits",
        "timeouts",
        "start",
        "completion",
    ]);
    for (name, flows) in listed(result) {
        for (index, flow) in flows.iter().enumerate() {
            table.row(vec![
                format!("{name}[{index}]").into(),
                Cell::rate(flow.goodput_bps),
                Cell::number(flow.cwnd_mean_packets, ""),
                Cell::number(flow.rtt_mean_ms, "ms"),
                Cell::number(flow.rtt_p95_ms, "ms"),
                Cell::whole(flow.sent_packets),
                Cell::whole(flow.retransmits),
                Cell::whole(flow.timeouts),
                Cell::fixed(Some(flow.start_s), 3, "s"),
                Cell::fixed(flow.completion_s, 3, "s"),
            ]);
        }
    }
    table
}

fn groups(result: &RunResult) -> Table {
    let mut table = Table::new([
        "flows",
        "count",
        "goodput sum",
        "mean",
        "min",
        "max",
        "Jain",
        "retransmits",
        "timeouts",
        "complete",
    ]);
    let jain = result.jain.0.iter().map(|(_, jain)| jain);
    for ((name, flows), jain) in result.flows.0.iter().zip(jain) {
        let Flows::Listed(flows) = flows else { continue };
        let mut goodputs = Vec::new();
        let (mut retransmits, mut timeouts, mut complete) = (0, 0, 0);
        flows.each(|flow| {
            goodputs.extend(flow.goodput_bps);
            retransmits += flow.retransmits;
            timeouts += flow.timeouts;
            complete += u64::from(flow.completion_s.is_some());
        });
        let mean = (!goodputs.is_empty()).then(|| goodputs.iter().sum::<f64>() / goodputs.len() as f64);
        table.row(vec![
            name.as_str().into(),
            Cell::whole(flows.count() as u64),
            Cell::rate(result.together(flows)),
            Cell::rate(mean),
            Cell::rate(goodputs.iter().copied().reduce(f64::min)),
            Cell::rate(goodputs.iter().copied().reduce(f64::max)),
            Cell::fixed(*jain, 3, ""),
            Cell::whole(retransmits),
            Cell::whole(timeouts),
            Cell::whole(complete),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering;

    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    const SCENARIO: &str = r#"
[run]
duration = "1 s"
[links.a]
rate = "1 Mbit/s"
delay = "10 ms"
queue = "10 packets"
[flows.f]
law = "cubic"
path = ["a"]
"#;

    /// RCP without a router once sent 70 million packets in 0.57 simulated seconds, and 18 were estimated.
    #[test]
    fn a_run_that_takes_several_times_its_estimate_stops_with_status_4() {
        let stop = AtomicBool::new(false);
        let interrupted = || watch::or_exceeded(Failure::Interrupted("interrupted".into()));
        let mut watch = Watch::beside("flood", Estimate { hops: 18, bytes: 0 }, &stop);
        watch.see(sim::Progress { at: 200_000_000_000, packets: 20_000_000 });
        assert_eq!((stop.load(Ordering::Relaxed), interrupted().exit_code()), (false, 130));
        watch.see(sim::Progress { at: 210_000_000_000, packets: 21_000_000 });
        assert_eq!((stop.load(Ordering::Relaxed), interrupted().exit_code()), (true, 4));
        let told = format!("{:?}", interrupted());
        let expected = "flood: stopped at 0.210 s of simulated time: 21 M packets have moved, and 18 packet-hops were estimated";
        assert!(told.contains(expected), "{told}");
    }

    #[test]
    fn a_run_that_another_engine_does_not_repeat_is_a_failed_check() {
        let arguments = Arguments::try_parse_from(["congestlab", "run", "x.toml", "--quiet"]).expect("valid");
        assert!(matches!(arguments.command, Command::Run(_)));
        let screen = arguments.common.screen();
        let scenario = Scenario::parse("x.toml", SCENARIO, Path::new(""), &[], None).expect("valid");
        let model = scenario.model(&Measure::default());
        let stop = AtomicBool::new(false);
        let estimate = scenario.estimate(&Measure::default());
        let watch = Watch::alone("x", estimate, &stop);
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let (mut outcome, _) = simulate(&model, engine, "run", watch, &screen, None);
        let verify = |outcome: &Outcome| verify(&model, outcome, estimate, &stop, &screen);
        assert!(verify(&outcome).is_ok());

        outcome.fingerprint ^= 1;
        let failure = verify(&outcome).expect_err("it differs");
        assert_eq!(failure.exit_code(), 3);
        assert!(format!("{failure:?}").contains("the reference engine"), "{failure:?}");

        outcome.fingerprint ^= 1;
        outcome.links[0].sent_packets += 1;
        assert_eq!(verify(&outcome).map_err(|failure| failure.exit_code()), Err(3));
    }
}
