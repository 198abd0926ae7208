//! `congestlab live run`: one scenario, real packets, one result.

use std::cell::RefCell;
use std::path::PathBuf;

use congestlab_lab::{self as lab, App, Live, News, Options};
use congestlab_linux::host::Encoding;
use congestlab_linux::sys::command;
use congestlab_scenario::result::{RunResult, write_events_csv, write_series_csv};
use congestlab_scenario::{Scenario, store};

use super::args::{EncodingShown, LiveApp, LiveArguments, LiveCommand, Offloads};
use crate::args::Changes;
use crate::failure::Failure;
use crate::machine::Clock;
use crate::output::{Screen, gauge, print, require_files, require_folder, require_run_folder, write_file};
use crate::signals;
use crate::table::Table;
use crate::{report, run};

pub(crate) fn live(command: &LiveCommand, screen: &Screen) -> Result<(), Failure> {
    let LiveCommand::Run(arguments) = command;
    crate::require_one_value(&arguments.scenario.changes)?;
    let Changes { set, seed } = &arguments.scenario.changes;
    let scenario = Scenario::load_live(&arguments.scenario.file, set, *seed).map_err(Failure::Scenario)?;
    crate::warn(scenario.warnings(), screen);
    crate::warn(&scenario.ignored(), screen);
    let files = arguments.series.iter().chain(&arguments.events).map(PathBuf::as_path);
    require_files(&arguments.scenario.file, files)?;
    for folder in arguments.out.iter().chain(&arguments.pcap) {
        require_folder(folder)?;
    }
    if let (Some(folder), true) = (&arguments.out, arguments.exact) {
        require_run_folder(folder)?;
    }
    let stop = signals::stop_flag()?;
    if screen.verbose {
        command::set_mode(command::Mode::Tell);
    }
    let clock = Clock::start();
    let options = Options {
        app: match arguments.app {
            LiveApp::Bulk => App::Bulk,
            LiveApp::Iperf3 => App::Iperf3,
            LiveApp::Curl => App::Curl,
        },
        pcap: arguments.pcap.clone(),
        offloads: arguments.offloads == Offloads::On,
        encoding: match arguments.encoding {
            EncodingShown::Option => Encoding::Option,
            EncodingShown::Shim => Encoding::Shim,
        },
    };
    let progress = RefCell::new(screen.progress());
    let result = lab::run(&scenario, &options, &stop, &|news| match news {
        News::Line(text) => screen.note(text),
        News::Reached { at, end } => {
            let (now, end) = (at as f64 / 1e12, end as f64 / 1e12);
            progress.borrow_mut().tell(|_| format!("live  {}  {now:.1} of {end} s", gauge(now / end)));
        }
    });
    progress.into_inner().clear();
    let live = result?;
    let mut result = RunResult::new(&scenario, &live.outcome, clock.meta());
    // A report has no map with keys that are not strings, the only thing that fails.
    result.live = serde_json::to_value(&live.report).ok();
    let folder = write_files(arguments, &scenario, &live, &result)?;
    for doubt in &live.report.doubts {
        screen.note(&format!("warning: {doubt}"));
    }
    if !live.report.trustworthy {
        screen
            .note("warning: do not trust these numbers: the machine or a program did not do what was asked");
    }
    print(&if screen.json {
        store::pretty(&run::WithFolder::new(result, folder.as_deref()))
    } else {
        format!(
            "{} s live in {:.2} s, {}\n\n{}{}",
            result.duration_s,
            result.meta.wall_s,
            run::seed_line(&result),
            run::tables(&result),
            fallbacks(&live)
        )
    })
}

/// A table of the flows that fell back to CUBIC after losses; empty if none did.
fn fallbacks(live: &Live) -> String {
    let counted = live.report.flows.iter().filter_map(|(name, flow)| Some((name, flow.xcp.as_ref()?)));
    let mut table = Table::new(["flows", "connections", "fell back to CUBIC after losses", "returned"]);
    let mut is_empty = true;
    for (name, counters) in counted.filter(|(_, counters)| counters.fallbacks_loss > 0) {
        let counts = [counters.connections, counters.fallbacks_loss, counters.returns];
        let [connections, lost, returned] = counts.map(|count| count.to_string());
        table.row(vec![name.clone(), connections, lost, returned]);
        is_empty = false;
    }
    if is_empty { String::new() } else { format!("\n{}", table.render()) }
}

fn write_files(
    arguments: &LiveArguments,
    scenario: &Scenario,
    live: &Live,
    result: &RunResult,
) -> Result<Option<PathBuf>, Failure> {
    let outcome = &live.outcome;
    if let Some(path) = &arguments.series {
        write_file(path, |out| write_series_csv(out, scenario, outcome))?;
    }
    if let Some(path) = &arguments.events {
        write_file(path, |out| write_events_csv(out, scenario, outcome))?;
    }
    let Some(out) = &arguments.out else { return Ok(None) };
    let folder = run::write_folder(out, arguments.exact, scenario, outcome, result)?;
    for (name, bytes) in &live.files {
        write_file(&folder.join(name), |out| out.write_all(bytes))?;
    }
    report::after_run(&folder, scenario, outcome, result)?;
    Ok(Some(folder))
}
