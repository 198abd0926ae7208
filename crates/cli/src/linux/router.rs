//! `congestlab router`: link laws at the interfaces of a router.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use congestlab_linux::edge::{Agent, Event};
use congestlab_linux::router::clouds::{self, Crossings, Known, Peer, Sharing, Table};
use congestlab_linux::router::police::{self, Held};
use congestlab_linux::router::{
    self, AnyLaw, Backlog, Beside, Config, Encoding, Fed, Feeder, Flows, Follower, Law, Load, Queue, Refused,
    Source, SourceState, Status, Weights,
};
use congestlab_linux::sys::command::{self, Mode};
use congestlab_linux::sys::user::User;
use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::laws::Protocol;
use congestlab_scenario::units::{BitRate, Ratio};
use congestlab_scenario::{disk, store};
use serde_json::json;

use super::args::{AttachArguments, RouterCommand, RouterEncoding};
use crate::build;
use crate::failure::{Failure, Message};
use crate::output::{Screen, print};
use crate::signals;

pub(crate) fn router(command: &RouterCommand, screen: &Screen) -> Result<(), Failure> {
    if screen.verbose {
        command::set_mode(Mode::Tell);
    }
    match command {
        RouterCommand::Attach(arguments) => attach(arguments, screen),
        RouterCommand::Set { interface, rate, dry_run } => set(interface, *rate, *dry_run, screen),
        RouterCommand::Detach { interface, dry_run } => {
            if *dry_run {
                command::set_mode(Mode::DryRun);
            }
            Ok(router::detach(interface)?)
        }
        RouterCommand::Agent { port, listen, user } => agent(*port, listen, user.as_deref(), screen),
        RouterCommand::Status { interface } => {
            let all = router::status(interface.as_deref())?;
            if screen.json {
                return print(&store::pretty(&json!({ "interfaces": all })));
            }
            if all.is_empty() {
                return print("no interface has a router's law\n");
            }
            print(&all.iter().map(table).collect::<Vec<_>>().join("\n"))?;
            for status in &all {
                if let Some(warning) = &status.warning {
                    screen.note(&format!("warning: {}: {warning}", status.interface));
                }
            }
            Ok(())
        }
    }
}

fn attach(arguments: &AttachArguments, screen: &Screen) -> Result<(), Failure> {
    if arguments.dry_run {
        command::set_mode(Mode::DryRun);
    }
    let config = config(arguments)?;
    let user = arguments.capacity_user.as_deref();
    let source = arguments.capacity_from.as_deref().map(|text| Source::parse(text, Path::new(""), user));
    let source = source.transpose()?;
    if let Some(source) = &source {
        source.check(&config)?;
        source.require(&arguments.interface)?;
    }
    // Ctrl-C must not leave half of it behind: it waits for the end, and then all is undone.
    let stop = signals::stop_flag()?;
    let (interface, rate) = (&arguments.interface, config.rate);
    let change = match arguments.replace {
        true => router::replace(interface, &config)?,
        false => router::attach(interface, &config).map(|()| router::Change::Attached)?,
    };
    if !arguments.dry_run {
        share(arguments)?;
    }
    if change != router::Change::Attached && !arguments.dry_run {
        screen.note(&match change {
            router::Change::None => {
                format!("{interface} runs {} at {rate} already, as this version has it", arguments.law)
            }
            router::Change::Set(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                format!("{interface} runs {} at {rate}: {}", arguments.law, parts.join(", "))
            }
            router::Change::Replaced(state) => format!(
                "{interface} runs {} at {rate}, in the place of what was there; its queue stayed, and {state}",
                arguments.law
            ),
            router::Change::Attached | router::Change::Again => {
                format!("{interface} runs {} at {rate}, attached again", arguments.law)
            }
        });
        return stay(interface, source.as_ref(), &config, &stop, screen);
    }
    if stop.load(Ordering::Relaxed) {
        router::detach(&arguments.interface)?;
        return Err(Failure::Interrupted("interrupted; nothing is attached".into()));
    }
    if !arguments.dry_run {
        let interface = &arguments.interface;
        screen.note(&format!(
            "{interface} runs {} at {rate}; see `congestlab router status {interface}`, undo with \
             `congestlab router detach {interface}`",
            arguments.law,
            rate = config.rate
        ));
        if let Law::Policed(_, records) = config.law {
            screen.note(&format!(
                "its policer has records of {records} flows: {:.1} MB, however many come",
                police::memory(records) as f64 / 1e6
            ));
        }
        return stay(interface, source.as_ref(), &config, &stop, screen);
    }
    Ok(())
}

/// Writes how the virtual routers of this machine share what clouds have, if that is asked for.
pub(super) fn share(arguments: &AttachArguments) -> Result<(), Failure> {
    let AttachArguments { release, give_back, .. } = arguments;
    if (release.is_some() || give_back.is_some())
        && let Some(table) = Table::here()?
    {
        table.share(Sharing { release: *release, give_back: *give_back })?;
    }
    Ok(())
}

/// Serves until a signal. What virtual routers were told holds for some seconds more, and then packets pass as before.
fn agent(port: u16, listen: &[Ipv4Addr], user: Option<&str>, screen: &Screen) -> Result<(), Failure> {
    let stop = signals::stop_flag()?;
    let user = user.map_or_else(User::own, User::find)?;
    let mut agent = Agent::new(port, listen)?;
    agent.reduce(&user)?;
    screen.note(if agent.is_router() {
        "asks and answers for clouds until Ctrl-C; see `congestlab router status`"
    } else {
        "no interface here runs XCP-i: only answers, as a sending host before a cloud does, until Ctrl-C"
    });
    let is_loud = screen.verbose;
    let mut failed = None;
    agent.run(&stop, |event| {
        // Estimates come once a second for each cloud.
        let is_news = matches!(event, Event::Broken(_) | Event::Idle(_));
        if (is_news || is_loud) && failed.is_none() {
            failed = print(&format!("{event}\n")).err();
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// How long the end of a source's reader may be unseen.
const LOOK: Duration = Duration::from_millis(50);

/// Reads a source and counts flows, whatever is wanted of both, until a signal comes or the law is gone.
fn stay(
    interface: &str,
    source: Option<&Source>,
    config: &Config,
    stop: &AtomicBool,
    screen: &Screen,
) -> Result<(), Failure> {
    let follows = matches!(config.law, Law::Beside(_, Weights::Flows));
    let fixed = config.rate;
    let tell = || {
        let told = screen.clone();
        move |line: &str| told.note(line)
    };
    let feeder = source.map(|source| Feeder::start(interface, source, fixed, tell())).transpose()?;
    let follower = follows.then(|| Follower::start(interface, tell())).transpose()?;
    if let Some(source) = source {
        screen.note(&format!(
            "{interface}: the capacity comes from {}, until this command ends",
            source.kind()
        ));
    }
    if follower.is_some() {
        screen.note(&format!(
            "{interface}: XCP and all else share it by their numbers of flows, until this command ends"
        ));
    }
    if feeder.is_none() && follower.is_none() {
        return Ok(());
    }
    while !stop.load(Ordering::Relaxed) {
        let text = if feeder.as_ref().is_some_and(Feeder::is_gone) {
            format!("{interface} has no router's law any more, so nothing is told its capacity")
        } else if follower.as_ref().is_some_and(Follower::is_gone) {
            format!("{interface} has no classes of XCP and all else any more, so nothing is told their parts")
        } else {
            thread::sleep(LOOK);
            continue;
        };
        return Err(Failure::Run(Message::new(text, "")));
    }
    drop((feeder, follower));
    screen.note(&format!("{interface} keeps its law, at {fixed}; congestlab router detach {interface}"));
    Ok(())
}

/// The settings that arguments tell; without a rate the shaper that is there is asked for it.
pub(super) fn config(arguments: &AttachArguments) -> Result<Config, Failure> {
    let rate = match arguments.rate {
        Some(rate) => rate,
        None => router::shaped_rate(&arguments.interface)?,
    };
    config_at(arguments, rate)
}

/// The settings at a rate.
pub(super) fn config_at(arguments: &AttachArguments, rate: BitRate) -> Result<Config, Failure> {
    let law = law(arguments, rate)?;
    Ok(Config {
        rate,
        encoding: match (&law, arguments.encoding) {
            (law, None) if law.is_code() => Encoding::Ecn,
            (Law::Any(law), None) => law.encoding(),
            // It is refused: only XCP's header can be elsewhere.
            (Law::Any(_), Some(_)) => Encoding::Shim,
            (Law::XcpI(..), None) => Encoding::Shim,
            (_, None | Some(RouterEncoding::Option)) => Encoding::Option,
            (_, Some(RouterEncoding::Shim)) => Encoding::Shim,
            (_, Some(RouterEncoding::Both)) => Encoding::Both,
        },
        law,
        shape: (!arguments.no_shape).then(|| arguments.queue.unwrap_or(Queue::default_for(rate))),
    })
}

/// Changes the rate while the law runs, and says what somebody else has to change.
fn set(interface: &str, rate: BitRate, dry_run: bool, screen: &Screen) -> Result<(), Failure> {
    if dry_run {
        command::set_mode(Mode::DryRun);
    }
    router::set_rate(interface, rate)?;
    if dry_run {
        return Ok(());
    }
    let status = router::status(Some(interface))?;
    for Status { shaped, per_cpu, law, qdisc, .. } in &status {
        let queue = if *shaped || *per_cpu {
            String::new()
        } else {
            format!("; its shaper, {qdisc}, is not congestlab's and holds what it held")
        };
        screen.note(&format!("{interface} runs {law} at {rate} from the next control interval on{queue}"));
    }
    Ok(())
}

/// More than any program has, in bytes.
const PROGRAM_MAX: u64 = 16 << 20;

/// Laws with programs of their own; [`AnyLaw`] has the others.
pub(super) const OWN: [&str; 5] = ["xcp", "pxcp", "xcp-i", "vcp", "dpcp"];

/// The law of that name, with its usual constants.
fn named(arguments: &AttachArguments, rate: BitRate) -> Result<Law, Failure> {
    let name = arguments.law.as_str();
    let law = match name {
        _ if AnyLaw::queue_names().any(|queue| queue == name) => {
            Law::Any(Box::new(AnyLaw::queue(name, rate)?))
        }
        "xcp" => router::law(rate),
        "vcp" => router::vcp(rate),
        "dpcp" => router::dpcp(rate),
        "pxcp" => router::pxcp(rate),
        "xcp-i" => router::xcp_i(rate, clouds::address_of(&arguments.interface)?),
        _ => {
            let Some(protocol) = Protocol::of(name) else {
                let known =
                    choices(name, OWN.into_iter().chain(AnyLaw::names()).chain(AnyLaw::queue_names()));
                return Err(Failure::Input(Message::new(format!("there is no law `{name}`"), known)));
            };
            if protocol.sender.as_ref().is_some_and(|sender| sender.needs().writes_segments) {
                let text = format!("there is no program of the law {name} for the kernel");
                let help = "it tells places by TCP's checksum, and one that an interface has yet to make holds no deficit; of its \
                            family vcp and dpcp have programs, and congestlab link serves all of it in user space";
                return Err(Failure::Input(Message::new(text, help)));
            }
            let read = |path: &Path| {
                disk::read_file(path, PROGRAM_MAX).map_err(|error| {
                    let text = format!("can not read the program {}: {error}", path.display());
                    Failure::Input(Message::new(text, format!("congestlab build law {name} makes one")))
                })
            };
            let object = match (&arguments.object, protocol.link.as_ref().map(|link| link.name())) {
                (Some(path), _) => Some(read(path)?),
                (None, Some(law)) => match build::place(law).filter(|path| path.is_file()) {
                    Some(path) if !AnyLaw::names().any(|name| name == law) => Some(read(&path)?),
                    _ => None,
                },
                (None, None) => None,
            };
            return Ok(Law::Any(Box::new(AnyLaw::new(protocol, rate, object)?)));
        }
    };
    if let Some(path) = &arguments.object {
        let text = format!("{name} has its own program, so {} is not wanted", path.display());
        return Err(Failure::Input(Message::new(text, "--object is for laws of your own")));
    }
    Ok(law)
}

/// The law with the constants that were told.
pub(super) fn law(arguments: &AttachArguments, rate: BitRate) -> Result<Law, Failure> {
    let AttachArguments { alpha, beta, gamma, k, r_max, .. } = arguments;
    let mut law = named(arguments, rate)?;
    if arguments.police.is_some() && arguments.beside_tcp.is_some() {
        let text = "the kernel has no program with a policer and two classes, of XCP and of all else";
        return Err(Failure::Input(Message::new(text, "leave one of them out")));
    }
    if let Some(records) = arguments.police {
        let Some(policed) = law.policed(records) else {
            let text = format!("--police: the kernel has no policer before {}", arguments.law);
            let help = "it has one before XCP's law: --law xcp; before P-XCP's and XCP2's links in user space and simulations have one";
            return Err(Failure::Input(Message::new(text, help)));
        };
        law = policed;
    }
    match &mut law {
        Law::Any(law) => law.set(&arguments.set)?,
        _ if arguments.set.is_empty() => {}
        _ => {
            let text = format!("{} has no --set", arguments.law);
            return Err(Failure::Input(Message::new(text, "--alpha, --beta and --gamma are its constants")));
        }
    }
    if let Some(weights) = &arguments.beside_tcp {
        let Some(beside) = law.beside(Weights::parse(weights)?) else {
            let text = format!("{} has no class of its own beside TCP's", arguments.law);
            return Err(Failure::Input(Message::new(text, "--beside-tcp is for --law xcp")));
        };
        law = beside;
    }
    let told = [("--alpha", alpha), ("--beta", beta), ("--gamma", gamma), ("--k", k), ("--r-max", r_max)];
    for (name, value) in told {
        let Some(value) = *value else { continue };
        if !law.tell(&name[2..], value) {
            let text = format!("the law has no {name}, or not that value");
            let help = "--alpha, --beta and --gamma are XCP's and P-XCP's, --k and --r-max (below 1) P-XCP's; \
                        --set is for all others but VCP and DPCP";
            return Err(Failure::Input(Message::new(text, help)));
        }
    }
    let switches =
        [("--average-queue", arguments.average_queue), ("--remember-grants", arguments.remember_grants)];
    for (name, _) in switches.into_iter().filter(|(_, is_on)| *is_on) {
        if !law.switch_on(&name[2..]) {
            let text = format!("the law has no {name}");
            return Err(Failure::Input(Message::new(text, "it is a switch of XCP and of P-XCP")));
        }
    }
    for (name, part, is_wrong) in [
        (
            "--release",
            arguments.release,
            arguments.release.is_some_and(|part| part.0 == 0 || part > Ratio::ONE),
        ),
        ("--give-back", arguments.give_back, arguments.give_back.is_some_and(|part| part >= Ratio::ONE)),
    ] {
        if part.is_some() && (is_wrong || !matches!(law, Law::XcpI(..))) {
            let text = format!("the law has no {name}, or not that value");
            let help = "--release (above 0 up to 1) and --give-back (below 1) are XCP-i's";
            return Err(Failure::Input(Message::new(text, help)));
        }
    }
    Ok(law)
}

/// One interface for people.
fn table(status: &Status) -> String {
    let Status {
        interface,
        law,
        encoding,
        hook,
        shaped,
        shaper_gone,
        qdisc,
        per_cpu,
        sample,
        queue,
        series,
        peers,
        ..
    } = status;
    let bits = |bytes: u64| BitRate(bytes.saturating_mul(8));
    let head = format!(
        "{interface}: {law}, {}, {}, {}",
        match encoding {
            Encoding::Ecn if sample.load.is_some() => "load in the ECN field".into(),
            Encoding::Ecn => "no header".into(),
            Encoding::Quic => "codes in packets of QUIC".into(),
            Encoding::Both => "header as option or shim".into(),
            Encoding::Option | Encoding::Shim =>
                format!("header as {}", format!("{encoding:?}").to_lowercase()),
        },
        format!("{hook:?}").to_lowercase(),
        match (shaped, shaper_gone) {
            _ if *per_cpu => format!("not shaped ({qdisc}), each processor adds up by itself"),
            (true, _) => format!("shaped here ({qdisc})"),
            (_, true) => format!("no longer shaped here: somebody has removed the shaper ({qdisc})"),
            _ => format!("shaped elsewhere ({qdisc})"),
        }
    );
    if let Some(Load { load_factor, load_code, load_level }) = sample.load {
        let word = ["", "low", "high", "over"][usize::from(load_code.min(3))];
        let level = load_level.map_or_else(String::new, |level| format!(", level {} of 9", level + 1));
        let lines = [
            head,
            capacity(status),
            format!("  load factor         {load_factor:.3}, {word}{level}"),
            format!("  queue now           {} B, {} packets", queue.queue_bytes, queue.queue_packets),
            format!("  drops               {}", queue.drops),
            format!("  packets seen        {}, {} of them with a code", sample.packets, sample.xcp_packets),
        ];
        return lines.join("\n") + "\n";
    }
    if !series.is_empty() {
        return any_table(head, status);
    }
    let sign = if sample.feedback_Bps < 0 { "-" } else { "" };
    let mut lines = vec![
        head,
        capacity(status),
        format!("  input rate          {}", bits(sample.input_Bps)),
        format!("  control interval    {:.3} ms", sample.interval_ms),
        format!("  aggregate feedback  {sign}{}", bits(sample.feedback_Bps.unsigned_abs())),
        format!("  persistent queue    {} B", sample.persistent_queue_bytes),
        format!("  queue now           {} B, {} packets", queue.queue_bytes, queue.queue_packets),
        format!("  drops               {}", queue.drops),
        format!("  packets seen        {}, {} of them XCP", sample.packets, sample.xcp_packets),
        format!("  packets bounded     {}", sample.bounded_packets),
        format!("  packets refused     {}", sample.refused_packets),
    ];
    if let Some(beside) = &status.beside {
        lines.splice(6..7, classes(beside));
    }
    if let Some(Flows { pxcp_n, pxcp_n_lim, pxcp_r, .. }) = sample.flows {
        let flows = format!(
            "  flows               {pxcp_n:.1}, {pxcp_n_lim:.1} of them limited elsewhere, r {pxcp_r:.3}"
        );
        lines.insert(6, flows);
    }
    lines.extend(refused(&sample.refused));
    lines.extend(policed(status));
    if let Some(crossings) = &sample.crossings {
        lines.extend(across(crossings, peers.as_deref().unwrap_or_default()));
    }
    lines.join("\n") + "\n"
}

/// Lines about the classes of XCP and of all else.
fn classes(beside: &Beside) -> Vec<String> {
    let Beside { xcp_weight, follower, pid, xcp_flows, tcp_flows, xcp, tcp } = beside;
    let by = match follower {
        None => "for good".into(),
        Some(SourceState::Unread) if *pid == 0 => "by flows, which nobody counts".into(),
        Some(SourceState::Unread) => format!("by flows, which process {pid} counted until it ended"),
        Some(_) => format!("by {xcp_flows:.1} flows of XCP and {tcp_flows:.1} others (process {pid})"),
    };
    let queue = |queue: &Backlog| {
        format!("{} B, {} packets, {} dropped", queue.queue_bytes, queue.queue_packets, queue.drops)
    };
    vec![
        format!("  XCP's part          {xcp_weight:.3}, {by}"),
        format!("  XCP's queue now     {}", queue(xcp)),
        format!("  others' queue now   {}", queue(tcp)),
    ]
}

/// The most flows that a table names, and metrics.
pub(super) const HELD_SHOWN: usize = 20;

/// Lines about a policer, and the flows that it holds.
fn policed(status: &Status) -> Vec<String> {
    let (Some(counted), Some(table)) = (&status.sample.policed, &status.police) else { return vec![] };
    let share = counted
        .policed_share_Bps
        .map_or_else(String::new, |share| format!(", a share is {}", BitRate(share.saturating_mul(8))));
    let mut lines = vec![
        format!(
            "  policer             {} records, {:.1} MB{share}",
            table.records,
            table.memory_bytes as f64 / 1e6
        ),
        format!("  packets clamped     {}", counted.clamped_packets),
        format!("  packets policed     {}", counted.policed_packets),
        format!("  flows held          {}, since the start {}", table.held.len(), counted.policed_flows),
    ];
    for held in table.held.iter().take(HELD_SHOWN) {
        let Held { from, from_port, to, to_port, protocol, .. } = held;
        lines.push(format!(
            "    {from} port {from_port} to {to} port {to_port}, protocol {protocol}, sends {}",
            BitRate(held.rate_Bps.saturating_mul(8))
        ));
    }
    if table.held.len() > HELD_SHOWN {
        lines.push(format!("    and {} more (--json has all)", table.held.len() - HELD_SHOWN));
    }
    lines
}

/// The most routers before clouds that a table names.
const PEERS_SHOWN: usize = 20;

/// Lines about packets that crossed clouds, and the routers before these.
fn across(crossings: &Crossings, peers: &[Peer]) -> Vec<String> {
    let Crossings { direct_packets, cloud_packets, anomaly_packets, waiting_packets, held_packets } =
        crossings;
    let mut lines = vec![
        format!("  came directly       {direct_packets}"),
        format!("  came through clouds {}", cloud_packets + waiting_packets + held_packets),
    ];
    let some = [
        (anomaly_packets, "with a TTL above the header's"),
        (waiting_packets, "of routers that the table has no place for"),
        (held_packets, "without an increase"),
    ];
    lines.extend(
        some.iter().filter(|(count, _)| **count > 0).map(|(count, what)| format!("    {count:<10} {what}")),
    );
    for peer in peers.iter().take(PEERS_SHOWN) {
        let routers = if peer.hops == 1 { "router" } else { "routers" };
        let bandwidth = match (peer.known, peer.bandwidth_bps) {
            (_, Some(bandwidth)) => {
                format!("{} for it, {} B wait", BitRate(bandwidth), peer.cloud_queue_bytes)
            }
            (Known::Stale, _) => "its bandwidth is no longer known: no increase".into(),
            _ => "its bandwidth is not known: packets pass as they are".into(),
        };
        lines.push(format!(
            "    from {}, {} {routers} between, {} packets, the last {:.1} s ago; {bandwidth}",
            peer.address,
            peer.hops,
            peer.packets,
            peer.idle_ms / 1000.0
        ));
    }
    if peers.len() > PEERS_SHOWN {
        lines.push(format!("    and {} more (--json has all)", peers.len() - PEERS_SHOWN));
    }
    lines
}

/// The capacity, and where it comes from.
fn capacity(status: &Status) -> String {
    let from = status.source.map_or_else(String::new, |Fed { kind, state, pid }| match state {
        SourceState::Fresh => format!(", from {kind} (process {pid})"),
        SourceState::Stale => format!(", fixed: {kind} (process {pid}) is stale"),
        SourceState::Unread => format!(", from {kind} until process {pid} ended"),
    });
    format!("  capacity            {}{from}", BitRate(status.sample.capacity_bps))
}

/// Any law that tells its own series.
fn any_table(head: String, status: &Status) -> String {
    let Status { sample, queue, series, .. } = status;
    let mut lines = vec![head, capacity(status)];
    lines.extend(series.iter().map(|(name, value)| format!("  {name:<19} {value}")));
    lines.extend([
        format!("  intervals           {}", sample.intervals),
        format!("  queue now           {} B, {} packets", queue.queue_bytes, queue.queue_packets),
        format!("  drops               {}", queue.drops),
        format!("  packets seen        {}, {} of them the law's", sample.packets, sample.xcp_packets),
        format!("  packets refused     {}", sample.refused_packets),
    ]);
    lines.extend(refused(&sample.refused));
    lines.join("\n") + "\n"
}

/// Why headers were refused, each reason with its count.
fn refused(refused: &Refused) -> impl Iterator<Item = String> {
    let reasons = [
        (refused.odd_offset, "option at an odd offset"),
        (refused.wrong_length, "wrong length"),
        (refused.truncated, "truncated"),
        (refused.malformed, "unreadable options"),
        (refused.version, "unknown version"),
        (refused.unwritable, "no memory to change them"),
        (refused.fragments, "fragments"),
    ];
    let some = reasons.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, reason)| format!("    {count:<10} {reason}"))
}
