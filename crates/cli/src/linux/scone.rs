//! `congestlab check scone`: a tester of elements that lower the codes of SCONE.

use std::net::SocketAddr;
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use congestlab_linux::scone::{Claim, Config, Counts, Listener, Report, Tester};
use congestlab_linux::sys::netns::Namespace;
use congestlab_scenario::store;
use congestlab_scenario::units::{self, BitRate};

use crate::failure::{Failure, Message};
use crate::output::{Screen, print};
use crate::signals;
use crate::table::{NOTHING, Table};

#[derive(Debug, Args)]
pub(crate) struct SconeArguments {
    /// Address and port of the far end, such as 10.0.2.2:4433 or [fd00:2::2]:4433
    #[arg(value_name = "ADDRESS", required_unless_present = "listen", conflicts_with = "listen")]
    peer: Option<SocketAddr>,
    /// Be the far end at this address and port, until Ctrl-C: whatever comes goes back to whom it came from
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Be the far end, too, in this network namespace of `ip netns` (needs root)
    #[arg(long, value_name = "NAMESPACE", conflicts_with = "listen")]
    listen_in: Option<String>,
    /// Number of flows, each from a port of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000), conflicts_with = "listen")]
    flows: u16,
    /// Time without an answer after which a datagram counts as lost and is sent again, five times in all
    #[arg(long, value_name = "TIME", default_value = "500 ms", value_parser = time, conflicts_with = "listen")]
    wait: Duration,
    /// Before everything else, tell the element one rate after the other with this command of a shell, in which {rate} and
    /// {code} are replaced, and send all codes after each, so that all pairs of codes occur
    #[arg(long, value_name = "COMMAND", conflicts_with = "listen")]
    tell: Option<String>,
    /// Codes of the rates that --tell tells, such as 40,20,0 [default: 126 to 0]
    #[arg(long, value_name = "CODES", value_delimiter = ',', requires = "tell", value_parser = clap::value_parser!(u8).range(0..=126))]
    codes: Vec<u8>,
}

/// Sendings of a datagram at most, and questions until a rate that was told shows.
const TRIES: u32 = 5;
const QUESTIONS: u32 = 20;

fn time(text: &str) -> Result<Duration, String> {
    match text.parse::<units::Duration>() {
        Ok(units::Duration(nanoseconds @ 1_000_000..=60_000_000_000)) => {
            Ok(Duration::from_nanos(nanoseconds))
        }
        Ok(_) => Err("1 ms to 60 s are allowed".into()),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn scone(arguments: &SconeArguments, screen: &Screen) -> Result<(), Failure> {
    let stop = signals::stop_flag()?;
    if let Some(address) = arguments.listen {
        let listener = Listener::bind(address)?;
        screen.note(&format!("listening at {}; end with Ctrl-C", listener.address()?));
        return Ok(listener.run(&stop)?);
    }
    let Some(peer) = arguments.peer else { return Ok(()) };
    let report = match &arguments.listen_in {
        None => send(arguments, peer, &stop)?,
        Some(name) => between(arguments, peer, &Namespace::open(name)?, &stop)?,
    };
    if screen.json {
        print(&store::pretty(&report))?;
    } else {
        print(&table(&report))?;
    }
    let broken: Vec<&str> =
        report.claims.iter().filter(|claim| !claim.holds).map(|claim| claim.that).collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(Failure::Claim(Message::new(
        format!("{} of {} rules do not hold: {}", broken.len(), report.claims.len(), broken.join("; ")),
        "docs/protocols/scone.md says what each means",
    )))
}

/// Both ends in this process: the far one as a thread in another namespace.
fn between(
    arguments: &SconeArguments,
    peer: SocketAddr,
    space: &Namespace,
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    let listener = space.run(|| Listener::bind(peer))??;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let far = scope.spawn(|| space.run(|| listener.run(&over)));
        let report = send(arguments, peer, stop);
        over.store(true, Ordering::Relaxed);
        match far.join() {
            Ok(ended) => ended??,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        report
    })
}

fn send(arguments: &SconeArguments, peer: SocketAddr, stop: &AtomicBool) -> Result<Report, Failure> {
    let config = Config { peer, flows: arguments.flows, wait: arguments.wait, tries: TRIES };
    let mut tester = Tester::start(config)?;
    if let Some(command) = &arguments.tell {
        let all: Vec<u8> = (0..127).rev().collect();
        for &code in if arguments.codes.is_empty() { &all } else { &arguments.codes } {
            tester.tell(code, QUESTIONS, stop, |code, rate| tell(command, code, rate))?;
        }
    }
    Ok(tester.run(stop)?)
}

/// Runs the command that tells an element a rate.
fn tell(command: &str, code: u8, rate: BitRate) -> congestlab_linux::error::Result<()> {
    let line = command.replace("{rate}", &format!("{} bit/s", rate.0)).replace("{code}", &code.to_string());
    let failed = |message| congestlab_linux::Error::Command { command: line.clone(), message };
    let output =
        Process::new("sh").args(["-c", &line]).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().next().unwrap_or("it said nothing").to_owned()))
}

/// The report for people.
fn table(report: &Report) -> String {
    let mut kinds = Table::new(["datagrams", "sent", "arrived", "lowered", "raised", "changed", "lost"]);
    for (kind, counts) in &report.kinds {
        let Counts { sent, arrived, lowered, raised, changed, lost } = counts;
        let numbers = [sent, arrived, lowered, raised, changed, lost].map(u64::to_string);
        kinds.row([kind.title().to_owned()].into_iter().chain(numbers).collect::<Vec<_>>());
    }
    let mut flows = Table::new(["flow from port", "lowered to", "rate"]);
    for flow in &report.flows {
        let codes: Vec<String> = flow.codes.iter().map(u8::to_string).collect();
        let codes = if codes.is_empty() { NOTHING.to_owned() } else { codes.join(" ") };
        let rate = flow.rate_bps.map_or_else(|| NOTHING.to_owned(), |rate| BitRate(rate).to_string());
        flows.row(vec![flow.port.to_string(), codes, rate]);
    }
    let mut claims = Table::new(["rule", "found", "verdict"]);
    for Claim { that, holds, found } in &report.claims {
        claims.row(vec![
            (*that).to_owned(),
            found.clone(),
            if *holds { "holds" } else { "FAILS" }.to_owned(),
        ]);
    }
    format!("{}\n{}\n{}", kinds.render(), flows.render(), claims.render())
}
