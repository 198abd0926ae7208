//! `congestlab link`: a command behind an emulated link, as mahimahi's shells have it.
//!
//! The link is described by the same words as in a scenario, and means the same: it is read as one,
//! with a flow that crosses it, so that "1 BDP" has its round trip.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueHint};
use congestlab_linux::link::{Behind, Clock, Direction, Event, Report, UNLIMITED, Way};
use congestlab_linux::supervisor::Guard;
use congestlab_linux::sys::{command, process};
use congestlab_scenario::laws::settings::Settings as _;
use congestlab_scenario::net::packet::Picos;
use congestlab_scenario::net::port::{PortConfig, PortEvent, Sample};
use congestlab_scenario::net::queue::Limit;
use congestlab_scenario::units::{self, BitRate};
use congestlab_scenario::{Measure, Scenario, store};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::{Failure, Message};
use crate::machine;
use crate::output::{Screen, print, require_file, say, write_file};

/// Packets that a queue holds at least unless it is said how many: a TCP flow in a short pipe needs
/// more than the pipe.
const QUEUE_MIN: u64 = 100;
/// Between two looks whether the command has ended.
const STEP: Duration = Duration::from_millis(10);
/// Time that a command has to end when it is told to.
const GRACE: Duration = Duration::from_secs(2);
/// A line of the meter.
const METER: Picos = 1_000_000_000_000;

#[derive(Debug, Args)]
#[command(after_help = "\
COMMAND runs in a network namespace of its own, behind the link. It reaches this machine at the
address in the variable CONGESTLAB_BASE, and other machines where nft can translate addresses.
Links nest. The exit status is COMMAND's; 130 if it was interrupted.

Example:
  sudo congestlab link --rate \"12 Mbit/s\" --delay \"40 ms\" --meter -- iperf3 -c 10.0.0.7")]
pub(crate) struct LinkArguments {
    /// Rate of both directions, such as "12 Mbit/s", in IP bits [default: unlimited]
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "trace")]
    rate: Option<String>,
    /// Rate of the direction out of the namespace
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "up_trace")]
    up_rate: Option<String>,
    /// Rate of the direction into the namespace
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "down_trace")]
    down_rate: Option<String>,
    /// Trace of delivery opportunities of both directions, in mahimahi's format
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
    /// Trace of the direction out of the namespace
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    up_trace: Option<PathBuf>,
    /// Trace of the direction into the namespace
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    down_trace: Option<PathBuf>,
    /// Propagation delay of each direction, such as "40 ms"
    #[arg(long, value_name = "TIME", default_value = "0 s", allow_hyphen_values = true, value_parser = delay)]
    delay: String,
    /// Limit of the queue of each direction, such as "100 packets", "1 BDP" or "250 kB" [default: 1 BDP,
    /// at least 100 packets]
    #[arg(long, value_name = "AMOUNT")]
    queue: Option<String>,
    /// Probability that a packet of 1500 bytes is lost to errors, such as 0.01; for other sizes by the bit
    /// error rate that it implies [default: 0]
    #[arg(long, value_name = "P", value_parser = probability, conflicts_with = "bit_error_rate")]
    packet_error_rate: Option<f64>,
    /// Probability that a bit is wrong, such as 1e-7 [default: 0]
    #[arg(long, value_name = "P", value_parser = probability)]
    bit_error_rate: Option<f64>,
    /// Probability that a pure ACK is lost besides, such as 0.05 [default: 0]
    #[arg(long, value_name = "P", value_parser = probability)]
    ack_loss: Option<f64>,
    /// Link law of both directions, such as xcp or tpcp [default: none]
    #[arg(long, value_name = "LAW")]
    law: Option<String>,
    /// Change a setting of the law, by its name in scenarios: --law mpcp --set n=4; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "law", value_parser = setting)]
    set: Vec<String>,
    /// Print a line each second with throughput, queue, drops and lateness
    #[arg(long)]
    meter: bool,
    /// Seed of errors and of all else that is random, a whole number
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the results of the link to FILE as JSON (--json prints them when COMMAND has ended)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
    /// Command to run, with its arguments [default: your shell]
    #[arg(value_name = "COMMAND", trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

fn rate(text: &str) -> Result<String, String> {
    match text.parse::<BitRate>() {
        Ok(BitRate(0)) => Err("nothing would ever be sent".into()),
        Ok(_) => Ok(text.into()),
        Err(error) => Err(error.to_string()),
    }
}

/// A line of TOML; what is no number, truth value or text in quotes is a text.
fn setting(text: &str) -> Result<String, String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("expected KEY=VALUE, such as n=4".into());
    };
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
        return Err(format!("{key:?} is no name of a setting"));
    }
    let is_bare =
        value.parse::<f64>().is_ok() || value == "true" || value == "false" || value.starts_with('"');
    Ok(format!("{key} = {}", if is_bare { value.to_owned() } else { Value::from(value).to_string() }))
}

fn delay(text: &str) -> Result<String, String> {
    text.parse::<units::Duration>().map(|_| text.into()).map_err(|error| error.to_string())
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("expected a probability from 0 to 1".into()),
    }
}

pub(crate) fn link(arguments: &LinkArguments, screen: &Screen) -> Result<ExitCode, Failure> {
    let [up, down] = directions(arguments)?;
    let words = command_line(arguments)?;
    arguments.report.as_deref().map_or(Ok(()), require_file)?;
    process::require_privilege()?;
    if screen.verbose {
        command::set_mode(command::Mode::Tell);
    }
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(number, signal.clone(), number as usize)
            .map_err(|error| failed(format!("can not listen for signals: {error}")))?;
    }
    let guard = Guard::start()?;
    let clock = Arc::new(Clock::start());
    let Behind { inside, mut link, base, address, confined } = Behind::new(&guard, up, down, clock)?;
    screen.detail(&format!("{} has the address {address}, outside is {base}", inside.name()));
    if let Some(reason) = confined {
        screen.note(&format!("note: only this machine can be reached, at {base}: {reason}"));
    }
    // Each direction may fill two fifths of the memory that can be had, so both together leave a fifth.
    let memory = machine::memory_available().map(|bytes| bytes / 5 * 2);
    link = match memory {
        Some(bytes) => link.with_memory(bytes),
        None => link,
    };
    let mut meter = arguments.meter.then(|| Meter::new(link.listen()));
    let stop = AtomicBool::new(false);
    let (ended, report) = thread::scope(|scope| {
        // The scope waits for the link, also after a panic.
        let stop_it = Raised(&stop);
        let running = scope.spawn(|| link.run(&stop));
        let spawned = inside.run(|| {
            Command::new(&words[0]).args(&words[1..]).env("CONGESTLAB_BASE", base.to_string()).spawn()
        });
        let ended = spawned.map_err(Failure::from).and_then(|child| {
            let child = child.map_err(|error| no_command(&words[0], &error.to_string()))?;
            wait(child, &guard, &signal, meter.as_mut())
        });
        drop(stop_it);
        let report = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (ended, report)
    });
    drop(link);
    let undone = guard.finish();
    let (ended, report) = (ended?, report?);
    undone?;
    tell(arguments, &ended, &report, screen)?;
    match ended {
        Ended::Interrupted => Err(Failure::Interrupted("interrupted".into())),
        Ended::Command(code) => Ok(code.into()),
    }
}

/// Raises a flag when it is dropped.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn failed(text: String) -> Failure {
    Failure::Run(Message::new(text, ""))
}

fn no_command(name: &OsString, reason: &str) -> Failure {
    let text = format!("can not run {}: {reason}", name.display());
    Failure::Input(Message::new(text, "give a command after --, or none for your shell"))
}

/// The command, which is there.
fn command_line(arguments: &LinkArguments) -> Result<Vec<OsString>, Failure> {
    let mut words = arguments.command.clone();
    if words.is_empty() {
        words.push(std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or("/bin/sh".into()));
    }
    let name = Path::new(&words[0]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = if name.components().count() > 1 || name.is_absolute() {
        name.is_file()
    } else {
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    if is_there { Ok(words) } else { Err(no_command(&words[0], "there is no such command")) }
}

/// Up and down; `None`: unlimited and without delay, law, errors.
fn directions(arguments: &LinkArguments) -> Result<[Option<Direction>; 2], Failure> {
    let quoted = |text: &str| Value::from(text).to_string();
    let service = |rate: &Option<String>, trace: &Option<PathBuf>| match (rate, trace) {
        (Some(rate), _) => Ok(Some(quoted(rate))),
        (None, Some(trace)) => {
            let path = std::path::absolute(trace).unwrap_or_else(|_| trace.clone());
            match path.to_str() {
                Some(path) => Ok(Some(format!("{{ trace = {} }}", quoted(path)))),
                None => Err(Failure::Input(Message::new(
                    format!("the name of the trace {} is not UTF-8", trace.display()),
                    "",
                ))),
            }
        }
        (None, None) => Ok(None),
    };
    let both = service(&arguments.rate, &arguments.trace)?;
    let up = service(&arguments.up_rate, &arguments.up_trace)?.or(both.clone());
    let down = service(&arguments.down_rate, &arguments.down_trace)?.or(both);
    if up.is_none() && down.is_none() {
        let needs = [("--queue", arguments.queue.is_some()), ("--law", arguments.law.is_some())];
        if let Some((option, _)) = needs.iter().find(|(_, given)| *given) {
            let text = format!("{option} needs a rate: on an unlimited link nothing waits");
            return Err(Failure::Input(Message::new(text, "give --rate, --trace, or one for a direction")));
        }
    }
    let table = |service: &Option<String>| {
        let mut keys = vec![format!("delay = {}", quoted(&arguments.delay))];
        keys.push(format!("rate = {}", service.clone().unwrap_or("\"100 Tbit/s\"".into())));
        let queue = arguments.queue.as_deref().filter(|_| service.is_some());
        let default = if service.is_some() { "1 BDP" } else { "1 packet" };
        keys.push(format!("queue = {}", quoted(queue.unwrap_or(default))));
        let numbers = [
            ("error.packet_error_rate", arguments.packet_error_rate),
            ("error.bit_error_rate", arguments.bit_error_rate),
            ("ack_loss", arguments.ack_loss),
        ];
        let given = numbers.iter().filter_map(|(key, value)| Some(format!("{key} = {:?}", (*value)?)));
        keys.extend(given);
        if let Some(law) = arguments.law.as_deref().filter(|_| service.is_some()) {
            keys.push(match &*arguments.set {
                [] => format!("law = {}", quoted(law)),
                set => format!("law = {{ {} = {{ {} }} }}", quoted(law), set.join(", ")),
            });
        }
        keys.join("\n")
    };
    let text = format!(
        "[run]\nduration = \"1 s\"\n[links.link]\n{}\n[links.link.reverse]\n{}\n\
         [flows.any]\nlaw = \"cubic\"\npath = [\"link\"]\n",
        table(&up),
        table(&down)
    );
    let scenario = Scenario::parse("link", &text, Path::new("/"), &[], Some(arguments.seed))
        .map_err(|diagnostics| refuse(&diagnostics))?;
    let ports = scenario.model(&Measure::default()).links;
    let direction = |service: &Option<String>, port: &PortConfig, name: &str| {
        let mut port = port.clone();
        if service.is_none() {
            (port.service, port.limit) = (UNLIMITED, Limit::None);
        } else if arguments.queue.is_none()
            && let Limit::Packets(packets) = &mut port.limit
        {
            *packets = (*packets).max(QUEUE_MIN);
        }
        if let Some(law) = &mut port.law {
            // The round trips of the flows that will come are not known.
            let is_set = |key: &str| arguments.set.iter().any(|set| set.trim_start().starts_with(key));
            law.config.set_round_trip(units::Duration(0), &is_set);
        }
        port.sample_every = arguments.meter.then_some(METER);
        Some(Direction::new(port, arguments.seed, name))
    };
    Ok([direction(&up, &ports[0].port, "up"), direction(&down, &ports[1].port, "down")])
}

/// Names the errors of the link by the arguments that describe it.
fn refuse(diagnostics: &congestlab_scenario::Diagnostics) -> Failure {
    let Some(first) = diagnostics.iter().next() else { return failed("the link can not be read".into()) };
    let text = first.message().replace("links.link.reverse.", "--down-").replace("links.link.", "--");
    // No option describes a discipline.
    let is_discipline = first.help().contains("discipline = ");
    let help =
        if is_discipline { "only a scenario can give a link a queue discipline" } else { first.help() };
    Failure::Input(Message::new(text.replace("rate.trace", "trace"), help))
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// With this status, as a shell has it.
    Command(u8),
    /// Because we were told to.
    Interrupted,
}

/// Waits for the command to end, or for us to be told to.
fn wait(
    mut child: Child,
    guard: &Guard,
    signal: &AtomicUsize,
    mut meter: Option<&mut Meter>,
) -> Result<Ended, Failure> {
    let mut left = None;
    loop {
        let ended = child.try_wait().map_err(|error| failed(format!("can not wait for COMMAND: {error}")))?;
        if let Some(status) = ended {
            let is_told = left.is_some() && status.signal().is_some();
            return Ok(if is_told { Ended::Interrupted } else { Ended::Command(code(status)) });
        }
        if let Some(meter) = &mut meter {
            meter.tell();
        }
        let number = signal.swap(0, Ordering::Relaxed) as i32;
        // Ctrl-C goes to all that have the terminal: whether it ends, the command decides.
        if number != 0 && !(number == SIGINT && has_terminal()) {
            pass_on(number, guard);
            left = left.or(Some(GRACE));
        }
        if let Some(left) = &mut left {
            if left.is_zero() {
                // The guard kills what is left.
                return Ok(Ended::Interrupted);
            }
            *left = left.saturating_sub(STEP);
        }
        thread::sleep(STEP);
    }
}

/// 128 and the signal's number if it died of one.
fn code(status: ExitStatus) -> u8 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) as u8
}

/// True if Ctrl-C at the terminal reaches us and what we started.
fn has_terminal() -> bool {
    fs::read_to_string("/proc/self/stat").is_ok_and(|stat| is_in_foreground(&stat))
}

/// A line of /proc/PID/stat says that the process' group has the terminal. A group outside of the namespace of processes
/// is 0, and -1 is no terminal.
fn is_in_foreground(stat: &str) -> bool {
    // Only the name of the command can hold a bracket: proc_pid_stat(5). Then state, parent, group, session, terminal, its group.
    let words: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<i32>().ok());
    matches!((number(2), number(5)), (Some(own), Some(foreground)) if own > 0 && own == foreground)
}

/// A signal that only we got is for all that we started.
fn pass_on(number: i32, guard: &Guard) {
    let Some(signal) = Signal::from_named_raw(number) else { return };
    let text = fs::read_to_string(guard.cgroup().join("cgroup.procs")).unwrap_or_default();
    let own = rustix::process::getpid();
    for pid in text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).filter(|&pid| pid != own) {
        // It may be gone by now.
        let _ = kill_process(pid, signal);
    }
}

/// A line a second about what passes.
#[derive(Debug)]
struct Meter {
    events: mpsc::Receiver<Event>,
    ways: [Gauge; 2],
}

/// A direction since the line before.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    sample: Option<Sample>,
    drops: u64,
    errors: u64,
    lateness: units::Duration,
}

impl Meter {
    fn new(events: mpsc::Receiver<Event>) -> Self {
        Self { events, ways: Default::default() }
    }

    fn tell(&mut self) {
        while let Ok(Event { way, at, what, lateness }) = self.events.try_recv() {
            let gauge = &mut self.ways[usize::from(way == Way::Back)];
            gauge.lateness = gauge.lateness.max(lateness);
            match what {
                PortEvent::Dropped { .. } => gauge.drops += 1,
                PortEvent::Errored { .. } => gauge.errors += 1,
                PortEvent::Sample(sample) => gauge.sample = Some(sample),
                _ => {}
            }
            if let [Gauge { sample: Some(up), .. }, Gauge { sample: Some(down), .. }] = self.ways {
                let mut line = format!("{:>5} s", at / METER);
                for ((name, sample), gauge) in [("up", up), ("down", down)].into_iter().zip(&self.ways) {
                    let _ = write!(
                        line,
                        "  {name} {:.2} Mbit/s, queue {} packets {} B, {} drops, {} errors",
                        sample.sent_bytes as f64 * 8.0 / 1e6,
                        sample.queue_packets,
                        sample.queue_bytes,
                        gauge.drops,
                        gauge.errors
                    );
                }
                let late = self.ways[0].lateness.max(self.ways[1].lateness);
                say(&format!("{line}  late {:.1} ms", late.0 as f64 / 1e6));
                self.ways = Default::default();
            }
        }
    }
}

/// The report, where it was asked for, or else in words.
fn tell(arguments: &LinkArguments, ended: &Ended, report: &Report, screen: &Screen) -> Result<(), Failure> {
    let status = match ended {
        Ended::Command(code) => Some(code),
        Ended::Interrupted => None,
    };
    let value = json!({
        "schema": 1,
        "exit_status": status,
        "seed": arguments.seed,
        "duration_s": report.duration_s,
        "up": report.forward,
        "down": report.back,
        "trustworthy": report.trustworthy,
        "verdict": report.verdict(),
        "doubts": report.doubts,
    });
    if let Some(path) = &arguments.report {
        write_file(path, |out| out.write_all(store::pretty(&value).as_bytes()))?;
    }
    if screen.json {
        // One line, so that it can be told from what COMMAND printed before.
        return print(&format!("{value}\n"));
    }
    screen.note(&summary(report));
    Ok(())
}

fn summary(report: &Report) -> String {
    let mut text = format!(
        "link   {:>8} {:>7} {:>7} {:>12} {:>12} {:>10} {:>12}\n",
        "sent", "drops", "errors", "Mbit/s", "utilisation", "mean queue", "late (p99)"
    );
    for (name, traffic) in [("up", &report.forward), ("down", &report.back)] {
        let share = traffic.utilization.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share));
        let queue = traffic.queue_mean_packets.map_or("-".into(), |mean| format!("{mean:.1}"));
        let _ = writeln!(
            text,
            "{name:<6} {:>8} {:>7} {:>7} {:>12.3} {share:>12} {queue:>10} {:>9.2} ms",
            traffic.sent_packets,
            traffic.drops,
            traffic.errors,
            traffic.throughput_bps as f64 / 1e6,
            traffic.lateness.p99_ms
        );
    }
    text.push_str(report.verdict());
    if !report.doubts.is_empty() {
        let _ = write!(text, ": {}", report.doubts.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_of_the_group_in_the_foreground() {
        for (stat, is_in) in [
            ("7 (congestlab) S 6 7 6 34816 7 4194304", true),
            ("7 (congestlab) S 6 7 6 34816 6 4194304", false),
            // Without a terminal, and in a namespace of processes whose shell is outside.
            ("7 (congestlab) S 6 7 6 0 -1 4194304", false),
            ("7 (congestlab) S 0 0 0 0 -1 4194304", false),
            ("7 (congestlab) S 0 0 0 34816 0 4194304", false),
            ("7 (a) b) S 6 7 6 34816 7 4194304", true),
            ("", false),
        ] {
            assert_eq!(is_in_foreground(stat), is_in, "{stat}");
        }
    }
}
