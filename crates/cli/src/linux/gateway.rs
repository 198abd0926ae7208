//! `congestlab gateway`: TCP connections that cross a satellite link, split in two.

use std::time::Duration;

use clap::{Args, Subcommand};
use congestlab_linux::gateway::{self, Config, Connection, Law, Origin, Passing, Phase, Status};
use congestlab_linux::host::LossPolicy;
use congestlab_linux::sys::command::{self, Mode};
use congestlab_scenario::store;
use congestlab_scenario::units;
use serde_json::json;

use crate::failure::Failure;
use crate::machine;
use crate::output::{Screen, print, say};
use crate::signals;
use crate::table::{NOTHING, Table};

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Split connections until Ctrl-C; then, or however it ends, they are reset and everything is undone
    #[command(after_help = "\
Example:
  sudo congestlab gateway run --satellite eth1 --law pxcp --to 10.0.2.0/24")]
    Run(RunArguments),
    /// Print the gateway of this network namespace, its counts and its connections
    Status,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Interface towards the satellite link, such as eth1: what routes send there, and what comes from there, is
    /// split
    #[arg(long, value_name = "IFACE")]
    satellite: String,
    /// Law of the senders towards the satellite: xcp, pxcp (which keeps its window when a packet is lost), or a
    /// congestion control of the kernel, such as cubic
    #[arg(long)]
    law: String,
    /// Congestion control of the senders towards the ground
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    terrestrial_law: String,
    /// Initial congestion window of xcp and pxcp, packets
    #[arg(long, value_name = "PACKETS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    initial_window: u32,
    /// Destinations whose connections are split, such as 10.0.2.0/24 or 2001:db8::/32; others pass as they are;
    /// may be repeated [default: all]
    #[arg(long, value_name = "PREFIX")]
    to: Vec<String>,
    /// Connections at a time; a client with more than a quarter of them gives way to others [default: 16384, or as many as half of the open files allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: Option<u32>,
    /// Connections at a time whose server has not answered yet; then the oldest of them is reset, first of a client
    /// with more than a quarter
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    waiting: u32,
    /// Time that a server has to answer, such as "30 s"; then its client is reset
    #[arg(long, value_name = "TIME", default_value = "30 s", value_parser = time)]
    connect_timeout: Duration,
    /// Time of silence after which a peer is asked whether it is there, whole seconds; after three questions
    /// without an answer, that far apart, the connection is reset
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = seconds)]
    keepalive: Duration,
    /// User that the gateway becomes when it is ready [default: congestlab if there is such a user, or else nobody]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Threads that move data [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

fn time(text: &str) -> Result<Duration, String> {
    match text.parse::<units::Duration>() {
        Ok(units::Duration(0)) => Err("no server answers in no time".into()),
        Ok(time) => Ok(Duration::from_nanos(time.0)),
        Err(error) => Err(error.to_string()),
    }
}

/// As the kernel counts it (TCP_KEEPIDLE, tcp(7)).
fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse::<units::Duration>().map_err(|error| error.to_string())?;
    let time = Duration::from_nanos(time.0);
    match time.as_secs() {
        1..=32_767 if time.subsec_nanos() == 0 => Ok(time),
        _ => Err("expected whole seconds, from 1 s to 32767 s".into()),
    }
}

pub(crate) fn gateway(command: &GatewayCommand, screen: &Screen) -> Result<(), Failure> {
    if screen.verbose {
        command::set_mode(Mode::Tell);
    }
    match command {
        GatewayCommand::Run(arguments) => run(arguments, screen),
        GatewayCommand::Status => {
            let status = gateway::status()?;
            if screen.json {
                return print(&store::pretty(&json!({ "gateway": status })));
            }
            match status {
                Some(status) => print(&text(&status)),
                None => print("no gateway runs in this network namespace\n"),
            }
        }
    }
}

fn run(arguments: &RunArguments, screen: &Screen) -> Result<(), Failure> {
    let law = match arguments.law.as_str() {
        "xcp" => Law::Explicit(LossPolicy::Tcp, arguments.initial_window),
        "pxcp" => Law::Explicit(LossPolicy::Maintain, arguments.initial_window),
        name => Law::Kernel(name.into()),
    };
    let config = Config {
        satellite: arguments.satellite.clone(),
        law,
        law_name: arguments.law.clone(),
        terrestrial_law: arguments.terrestrial_law.clone(),
        to: arguments.to.iter().map(|prefix| prefix.parse()).collect::<Result<_, _>>()?,
        threads: arguments.threads.map_or_else(machine::cores, usize::from),
        connections: arguments.connections.map(|connections| connections as usize),
        waiting: arguments.waiting as usize,
        patience: arguments.connect_timeout,
        keepalive: arguments.keepalive,
        user: arguments.user.clone(),
    };
    let stop = signals::stop_flag()?;
    gateway::run(&config, &stop, |status| {
        let Status { satellite, law, families, .. } = status;
        let families = families.join(" and ");
        if !screen.quiet {
            say(&format!(
                "connections over {satellite} are split, {families}, with {law} towards it; \
                 `congestlab gateway status` shows them, Ctrl-C ends it"
            ));
        }
    })?;
    Err(Failure::Interrupted("interrupted; connections are reset, and no more are split".into()))
}

/// For people.
fn text(status: &Status) -> String {
    let Status { pid, satellite, law, terrestrial_law, to, families, threads, counters, connections, .. } =
        status;
    let to = if to.is_empty() { "all".into() } else { to.join(", ") };
    let state = match (&status.congestion_control, status.ready) {
        (Some(name), true) => format!("{name}, ready"),
        _ => "not ready: it is being loaded, and new connections wait for it".into(),
    };
    let not_split = match &status.passing {
        Some(passing) => passing.len().to_string(),
        None if status.ready => "unknown: nft does not list them".into(),
        None => NOTHING.into(),
    };
    let lines = [
        format!(
            "{satellite}: {law} towards the satellite, {terrestrial_law} towards the ground, process {pid}"
        ),
        format!("  law              {state}"),
        format!("  destinations     {to} ({})", families.join(", ")),
        format!("  threads          {threads}"),
        format!("  open             {} of {} at most", counters.open, status.connections_max),
        format!("  waiting          {} of {} at most", counters.waiting, status.waiting_max),
        format!("  accepted         {}", counters.accepted),
        format!("  complete         {}", counters.complete),
        format!(
            "  reset            {} by clients, {} by servers",
            counters.reset_by_client, counters.reset_by_server
        ),
        format!("  not reached      {} refused, {} silent", counters.refused, counters.timed_out),
        format!(
            "  not continued    {} over a limit, {} displaced, {} failed",
            counters.over_limit, counters.displaced, counters.failed
        ),
        format!(
            "  bytes            {} to servers, {} to clients",
            counters.to_server_bytes, counters.to_client_bytes
        ),
        format!("  not split        {not_split}"),
    ];
    let mut text = lines.join("\n") + "\n";
    if !connections.is_empty() {
        text.push('\n');
        text.push_str(&table(connections));
        if status.connections_omitted > 0 {
            text.push_str(&format!("and {} more connections\n", status.connections_omitted));
        }
    }
    if let Some(passing) = status.passing.as_deref().filter(|passing| !passing.is_empty()) {
        text.push_str("\nnot split, with packets within the last minute:\n");
        text.push_str(&table_of_passing(passing));
    }
    text
}

fn table_of_passing(passing: &[Passing]) -> String {
    let mut table = Table::new(["behind the satellite", "on the ground", "why"]);
    for Passing { satellite, ground, why } in passing {
        table.row(vec![satellite.to_string(), ground.to_string(), why.to_string()]);
    }
    table.render()
}

fn table(connections: &[Connection]) -> String {
    let mut table = Table::new([
        "client",
        "server",
        "from",
        "state",
        "age",
        "to server",
        "to client",
        "held",
        "satellite",
        "cwnd",
        "srtt",
        "unacknowledged",
        "fallback",
    ]);
    for one in connections {
        let half = one.satellite.as_ref();
        let of = |show: &dyn Fn(&gateway::Half) -> String| half.map_or(NOTHING.into(), show);
        table.row(vec![
            one.client.to_string(),
            one.server.to_string(),
            match one.origin {
                Origin::Terrestrial => "ground".into(),
                Origin::Satellite => "satellite".into(),
            },
            match one.phase {
                Phase::Waiting => "waiting".into(),
                Phase::Open => "open".into(),
                Phase::Ending => "ending".into(),
            },
            format!("{:.1} s", one.age_s),
            format!("{} B", one.to_server_bytes),
            format!("{} B", one.to_client_bytes),
            format!("{} B", one.held_bytes),
            of(&|half| half.congestion_control.clone()),
            of(&|half| half.cwnd_packets.to_string()),
            of(&|half| format!("{:.1} ms", half.srtt_ms)),
            of(&|half| format!("{} B", half.send_queue_bytes)),
            of(&|half| half.fallback.map_or(NOTHING.into(), |reason| reason.to_string())),
        ]);
    }
    table.render()
}
