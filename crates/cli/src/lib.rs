//! The congestlab command: reads arguments, calls `congestlab-scenario` or `congestlab-linux`, and shows the
//! results. It decides nothing about protocols or results.
//!
//! A program that has control laws of its own is this command with them on its list (feature `outside`):
//! `congestlab::main_with(my_laws::protocols())` is all of its `main`. `congestlab new law NAME` writes such a program.
//!
//! [`args`] defines the command line, from which help, completions and man pages come. [`execute`] hands each
//! command to the module of its name: [`run`], [`sweep`], [`papers`], [`acceptance`], [`report`], [`demo`], [`explain`],
//! [`compare`], [`export`], [`serve`], [`new`], [`build`], [`trial`], and `linux` for those on real packets (or `no_linux`, in a build
//! without them). They share [`output`] (data to stdout, words to stderr), [`failure`] (messages and the exit
//! codes of docs/design/contract.md 5), [`http`], [`machine`] (clocks, memory, signals) and [`table`]. [`ns2`]
//! runs a model in ns-2, for `papers`.
#![cfg_attr(doc, expect(rustdoc::invalid_html_tags, reason = "help for terminals writes <scenario>"))]

mod acceptance;
#[cfg_attr(
    doc,
    expect(rustdoc::broken_intra_doc_links, reason = "help for terminals writes [sweep], ftp[3]")
)]
mod args;
mod build;
mod compare;
mod demo;
mod explain;
mod export;
mod failure;
mod folder;
mod http;
#[cfg(feature = "linux")]
mod linux;
mod machine;
mod new;
#[cfg(any(test, not(feature = "linux")))]
mod no_linux;
mod ns2;
mod old;
mod output;
mod papers;
mod picture;
mod report;
mod run;
mod screen;
mod search;
mod serve;
mod signals;
mod sweep;
mod table;
mod trial;
mod version;
mod watch;

use std::path::Path;
use std::process::ExitCode;

use congestlab_scenario::diagnostic::Diagnostic;
use congestlab_scenario::seeds::SEED;
use congestlab_scenario::{Diagnostics, Measure, Scenario, memory, store};
use serde_json::{Map, Value, json};

use args::{
    BuildCommand, Changes, CheckArguments, CheckCommand, Command, NewCommand, OldCommand, ScenarioArguments,
};
use failure::{Failure, Message, tell_diagnostics};
#[cfg(not(feature = "linux"))]
use no_linux as linux;
use output::{Screen, print};

/// Runs the command with the arguments of the process. Returns its exit status.
pub fn main() -> ExitCode {
    let arguments = match args::parse() {
        Ok(arguments) => arguments,
        // Help and version are no mistakes.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            failure::tell_usage(&error, std::env::args_os().any(|argument| argument == "--json"));
            return ExitCode::from(2);
        }
    };
    let screen = arguments.common.screen();
    listen_to_panics(screen.clone());
    match execute(arguments.command, &screen) {
        Ok(code) => code,
        Err(failure) => {
            let failure = watch::or_exceeded(failure);
            failure.tell(&screen);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Runs the command, with more protocols on its list: each command knows them as its own.
///
/// Returns status 2, before anything is read, if one of them can not be on the list: if its name is taken, or is none.
#[cfg(feature = "outside")]
pub fn main_with(protocols: impl IntoIterator<Item = congestlab_core::law::Protocol>) -> ExitCode {
    if let Err(error) = congestlab_core::law::outside::add(protocols.into_iter().collect()) {
        output::say(&format!("error: {error}"));
        return ExitCode::from(2);
    }
    main()
}

/// A panic is a mistake of this program, unless the decoder of tables panics over a table.
fn listen_to_panics(screen: Screen) {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match congestlab_scenario::folder::panics_over() {
        Some(error) => {
            let failure = Failure::folder(error);
            failure.tell(&screen);
            std::process::exit(failure.exit_code().into());
        }
        None => tell(panic),
    }));
}

/// True for what listens to signals on its own.
fn is_on_real_packets(command: &Command) -> bool {
    match command {
        Command::Linux(_) | Command::Old(OldCommand::Doctor(_) | OldCommand::Scone(_)) => true,
        Command::Check(arguments) => matches!(arguments.what, Some(CheckCommand::Linux(_))),
        _ => false,
    }
}

fn execute(command: Command, screen: &Screen) -> Result<ExitCode, Failure> {
    // What is on real packets passes signals on, or asks for the flag.
    if !is_on_real_packets(&command) {
        signals::listen()?;
    }
    match command {
        Command::Linux(command) => return linux::execute(&command, screen),
        Command::Run(arguments) => run::run(&arguments, screen)?,
        Command::Check(CheckArguments { what: Some(CheckCommand::Law { name }), .. }) => {
            trial::trial(&name, screen)?;
        }
        Command::Check(CheckArguments { what: Some(CheckCommand::Linux(command)), .. }) => {
            linux::check(&command, screen)?;
        }
        Command::Check(CheckArguments { file, changes, print, .. }) => {
            // There is a file wherever nothing else is named.
            check(file.as_deref().unwrap_or(Path::new("")), &changes, print, screen)?;
        }
        Command::New(NewCommand::Law(arguments)) => new::law(&arguments, screen)?,
        Command::Build(BuildCommand::Law { name, output }) => build::law(&name, output.as_deref(), screen)?,
        Command::Sweep(arguments) => sweep::sweep(&arguments, screen)?,
        Command::Papers(command) => papers::papers(&command, screen)?,
        Command::Acceptance(arguments) => acceptance::acceptance(&arguments, screen)?,
        Command::Search(arguments) => search::search(&arguments, screen)?,
        Command::Report(arguments) => report::report(&arguments, screen)?,
        Command::Demo(arguments) => demo::demo(&arguments, screen)?,
        Command::Explain(arguments) => explain::explain(&arguments, screen)?,
        Command::Export(command) => export::export(&command, screen)?,
        Command::Serve(arguments) => serve::serve(&arguments, screen)?,
        Command::Compare(arguments) => compare::compare(&arguments, screen)?,
        Command::Old(command) => old::execute(command, screen)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a scenario and tells its warnings.
fn load(
    ScenarioArguments { file, changes }: &ScenarioArguments,
    screen: &Screen,
) -> Result<Scenario, Failure> {
    load_with(file, changes, screen)
}

fn load_with(file: &Path, changes: &Changes, screen: &Screen) -> Result<Scenario, Failure> {
    require_one_value(changes)?;
    let Changes { set, seed } = changes;
    let scenario = Scenario::load(file, set, *seed).map_err(Failure::Scenario)?;
    warn(scenario.warnings(), screen);
    Ok(scenario)
}

/// Refuses two options that give one path different values: the later one would win silently.
fn require_one_value(Changes { set, seed }: &Changes) -> Result<(), Failure> {
    let set = set.iter().map(|(path, value)| (path.as_str(), value.clone(), format!("--set {path}={value}")));
    let seed = seed.iter().map(|seed| (SEED, seed.to_string(), format!("--seed {seed}")));
    let all: Vec<_> = set.chain(seed).collect();
    for (place, (path, value, option)) in all.iter().enumerate() {
        let other = all[..place].iter().find(|(other, known, _)| other == path && known != value);
        if let Some((.., other)) = other {
            let text = format!("{other} and {option} give {path} two values");
            return Err(Failure::Input(Message::new(text, "leave one of them out")));
        }
    }
    Ok(())
}

/// Says which options change nothing, because the sweep has values of its own for their paths.
fn tell_without_effect(Changes { set, seed }: &Changes, scenario: &Scenario, screen: &Screen) {
    let axes = scenario.sweep().map_or(&[][..], |sweep| sweep.axes());
    let set = set.iter().map(|(path, _)| (path.as_str(), format!("--set {path}")));
    let seed = seed.iter().map(|seed| (SEED, format!("--seed {seed}")));
    for (path, option) in set.chain(seed).filter(|(path, _)| axes.iter().any(|axis| axis == path)) {
        screen.note(&format!("{option} changes nothing, since the sweep varies {path}"));
    }
}

/// Tells what may surprise.
fn warn(warnings: &Diagnostics, screen: &Screen) {
    if !warnings.is_empty() && !screen.quiet {
        tell_diagnostics(warnings, screen);
    }
}

/// Reads the scenario, its sweep and its claims; runs nothing.
fn check(file: &Path, changes: &Changes, is_printed: bool, screen: &Screen) -> Result<(), Failure> {
    let scenario = load_with(file, changes, screen)?;
    let of_sweep = scenario.check().map_err(Failure::Scenario)?;
    warn(&of_sweep, screen);
    let points = scenario.sweep().map_or(0, |sweep| sweep.points().len());
    let estimate = scenario.estimate(&Measure::default());
    // As `run` estimates it with these options.
    let with = |series, events| scenario.estimate(&Measure { series, events }).bytes;
    let with =
        [("--series", with(true, false)), ("--events", with(false, true)), ("--out", with(true, true))];
    if screen.json {
        let normalised = is_printed.then(|| scenario.normalised());
        let warnings = scenario.warnings().iter().chain(of_sweep.iter());
        return print(&store::pretty(&json!({
            "valid": true,
            "warnings": warnings.map(Diagnostic::to_json).collect::<Value>(),
            "points": points.max(1),
            "claims": scenario.claims().len(),
            "memory_bytes": estimate.bytes,
            "memory_bytes_with": with.iter().map(|&(option, bytes)| (option.into(), bytes.into())).collect::<Map<_, _>>(),
            "packet_hops": estimate.hops,
            "normalised": normalised,
        })));
    }
    if is_printed {
        return print(&scenario.normalised());
    }
    let sweep = if points == 0 { String::new() } else { format!(", sweep of {points} points") };
    let claims = match scenario.claims().len() {
        0 => String::new(),
        1 => ", 1 claim".into(),
        n => format!(", {n} claims"),
    };
    let file = file.display();
    // Only where it matters.
    let more = with.iter().filter(|&&(_, bytes)| bytes > estimate.bytes.saturating_mul(2));
    let more: Vec<_> =
        more.map(|&(option, bytes)| format!("{} with {option}", memory::text(bytes))).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    let (memory, hops) = (memory::text(estimate.bytes), table::count(estimate.hops as f64));
    print(&format!("{file}: valid{sweep}{claims}, up to {memory} of memory{more} and {hops} packet-hops\n"))
}
