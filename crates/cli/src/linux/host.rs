//! `congestlab host`: XCP or another law on this machine's own connections.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use congestlab_linux::host::{
    self, Config, Counters, Details, Encoding, Flow, Law, LossPolicy, Sender, Socket, Status,
};
use congestlab_linux::sys::command::{self, Mode};
use congestlab_scenario::laws::mpcp;
use congestlab_scenario::store;

use super::args::{HostCommand, HostEnableArguments};
use crate::failure::{Failure, Message};
use crate::output::{Screen, print, say};
use crate::signals;
use crate::table::{NOTHING, Table};

/// Exit code 4 where the machine can not.
pub(crate) fn host(command: &HostCommand, screen: &Screen) -> Result<(), Failure> {
    let mode = |is_dry_run: bool| match (is_dry_run, screen.verbose) {
        (true, _) => Mode::DryRun,
        (false, false) => Mode::Run,
        (false, true) => Mode::Tell,
    };
    match command {
        HostCommand::Enable(arguments) => {
            command::set_mode(mode(arguments.dry_run));
            enable(arguments, screen)
        }
        HostCommand::Status => {
            let status = host::status()?;
            if screen.json {
                print(&store::pretty(&serde_json::json!(status)))
            } else {
                print(&text(&status))
            }
        }
        HostCommand::Disable { to, dry_run } => {
            command::set_mode(mode(*dry_run));
            let _waits = signals::stop_flag()?;
            if !to.is_empty() {
                host::remove(&to.iter().map(|prefix| prefix.parse()).collect::<Result<Vec<_>, _>>()?)?;
                if !dry_run {
                    screen.note(&format!("new connections to {} no longer use the law", to.join(", ")));
                }
                return Ok(());
            }
            host::disable()?;
            if !screen.quiet && !dry_run {
                say("the law is disabled; connections that use it fall back by themselves");
            }
            Ok(())
        }
    }
}

/// The settings that arguments tell.
pub(super) fn config(arguments: &HostEnableArguments) -> Result<Config, Failure> {
    let sender = sender(&arguments.law, &arguments.loss)?;
    let is_coded = sender.owns_ecn();
    let is_interoperable = arguments.law == "xcp-i";
    let encoding = match arguments.encoding.as_deref() {
        None if is_coded => Encoding::Ecn,
        Some("shim") => Encoding::Shim,
        None if is_interoperable => Encoding::Shim,
        _ => Encoding::Option,
    };
    Ok(Config {
        name: sender.name().into(),
        to: arguments.to.iter().map(|prefix| prefix.parse()).collect::<Result<_, _>>()?,
        default: !arguments.opt_in,
        encoding,
        interoperable: is_interoperable,
        interfaces: match encoding {
            Encoding::Shim | Encoding::Ecn if arguments.interface.is_empty() => host::interfaces()?,
            _ => arguments.interface.clone(),
        },
        initial_window: arguments.initial_window.unwrap_or(sender.initial_window()),
        sender,
        cgroup: host::everything()?,
        fallback: arguments.fallback.clone(),
    })
}

fn enable(arguments: &HostEnableArguments, screen: &Screen) -> Result<(), Failure> {
    let config = config(arguments)?;
    let title = config.sender.title();
    // From here on a signal waits: half of it would be hard to find.
    let stop = signals::stop_flag()?;
    let Some(host) = patiently(screen, || host::enable(&config, true))? else { return Ok(()) };
    if host.has_more_peers() {
        screen.note(&format!("{title} is enabled for new connections to {}, too", arguments.to.join(", ")));
        return Ok(());
    }
    if stop.load(Ordering::Relaxed) {
        host::disable()?;
        return Err(Failure::Interrupted(format!("interrupted; {title} is not enabled")));
    }
    if !screen.quiet {
        say(&format!("{title} is enabled for new connections; congestlab host disable undoes it"));
        if host.deaf_listeners() > 0 {
            say(&format!(
                "{} sockets listen already and speak plain TCP until their servers are started again \
                 (not so from Linux 6.12 on)",
                host.deaf_listeners()
            ));
        }
    }
    Ok(())
}

/// How long nobody says anything while the kernel verifies programs: on an idle machine it takes a second of a processor.
const PATIENCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(100);

/// Does the work, and says what takes so long where it does.
pub(super) fn patiently<T>(screen: &Screen, work: impl FnOnce() -> T) -> T {
    let words = "the kernel verifies the programs";
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut line = screen.progress();
            // The other end is dropped when the work is done, or has panicked.
            if is_done.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            if !screen.is_terminal {
                screen.note(&format!("{words}; on a busy machine that takes a while"));
            }
            while is_done.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                line.tell(|seconds| format!("{words}  {seconds:.0} s"));
            }
            line.clear();
        });
        let result = work();
        drop(done);
        result
    })
}

/// The law, with a reaction to loss that it has.
pub(super) fn sender(law: &str, loss: &str) -> Result<Sender, Failure> {
    if law.starts_with(host::NAME) {
        // XCP-i is its routers' affair: its senders are XCP's.
        let config = if law == "xcp-r" { host::xcp_r_config } else { host::sender_config };
        return Ok(config(match loss {
            "maintain" => LossPolicy::Maintain,
            "fallback" => LossPolicy::Fallback,
            _ => LossPolicy::Tcp,
        }));
    }
    let marked = match law {
        "dctcp" => Some(host::dctcp_config()),
        "prague" => Some(host::prague_config()),
        "abc" => Some(host::abc_config()),
        _ => None,
    };
    if let Some(marked) = marked {
        if loss != "tcp" {
            let text = format!("{} has no --loss {loss}", marked.title());
            return Err(Failure::Input(Message::new(text, "--loss tcp")));
        }
        return Ok(marked);
    }
    let loss = match loss {
        "maintain" => mpcp::Loss::Maintain,
        "fallback" => {
            let text = format!("{} has no --loss fallback", law.to_uppercase());
            return Err(Failure::Input(Message::new(text, "--loss tcp or --loss maintain")));
        }
        _ => mpcp::Loss::Tcp,
    };
    Ok(match law {
        host::DPCP => host::dpcp_config(loss),
        host::TPCP => host::tpcp_config(loss),
        _ => host::vcp_config(loss),
    })
}

fn text(status: &Status) -> String {
    let Some(details) = &status.details else { return "no law is enabled on this host\n".into() };
    let Details { law, scope, to, opt_in, encoding, interfaces, loss, fallback, cgroup, counters, sockets } =
        details;
    let mut text = String::new();
    // Writing to a string fails in no way.
    let mut line = |name: &str, value: String| _ = writeln!(text, "{name:<13} {value}");
    line("law", format!("{law}, on loss {loss}, without an answer {fallback}"));
    let choice = if *opt_in { ", where a socket chooses it" } else { "" };
    line("peers", to.join(", ").replace("::/0", "all") + choice);
    line(
        "encoding",
        match encoding {
            // Hosts have one of the two.
            Encoding::Option | Encoding::Both => "option".into(),
            Encoding::Shim => format!("shim at {}", interfaces.join(", ")),
            Encoding::Ecn => format!("codes in the ECN field at {}", interfaces.join(", ")),
            Encoding::Quic => "packets of QUIC".into(),
        },
    );
    let namespaces = if *scope == "machine" { "" } else { ", in single network namespaces" };
    line("processes in", format!("{}{namespaces}", cgroup.display()));
    let spoken = counters.connections;
    line("connections", format!("{spoken} since it was enabled; now {} of this namespace", sockets.len()));
    let fallbacks = format!(
        "{} no option from the peer, {} no router, {} options stripped, {} losses; {} returns",
        counters.fallbacks_no_option,
        counters.fallbacks_no_router,
        counters.fallbacks_stripped,
        counters.fallbacks_loss,
        counters.returns
    );
    line("fallbacks", fallbacks);
    if counters.lies > 0 {
        let value =
            format!("{} ACKs claimed more than was asked for; nothing of them counted", counters.lies);
        line("lies", value);
    }
    if *encoding == Encoding::Shim {
        let Counters { shims_sent, shims_received, shims_refused, .. } = counters;
        let headers = format!("{shims_sent} put in, {shims_received} taken out, {shims_refused} refused");
        line("headers", headers);
    }
    if *encoding == Encoding::Ecn {
        let Counters { shims_sent, shims_received, .. } = counters;
        line("codes", format!("{shims_sent} written, {shims_received} read and cleared"));
    }
    if !sockets.is_empty() {
        text.push('\n');
        text.push_str(&connections(sockets));
    }
    text
}

fn connections(sockets: &[Socket]) -> String {
    let mut table = Table::new(["peer", "law", "cwnd", "srtt", "feedback", "routers", "fallback"]);
    for socket in sockets {
        let Flow { law, reason, feedback, routers, load, epochs, lies, .. } = &socket.flow;
        table.row(vec![
            socket.peer.to_string(),
            socket.congestion_control.clone(),
            socket.cwnd_packets.to_string(),
            format!("{:.1} ms", socket.srtt_ms),
            match (law, load) {
                (Law::Xcp, Some(code)) => {
                    format!("load {}", ["", "low", "high", "over"][usize::from((*code).min(3))])
                }
                (Law::Xcp, None) => {
                    let epoch = epochs.map_or_else(String::new, |epochs| format!(", epoch {epochs}"));
                    let lies = if *lies == 0 { String::new() } else { format!(", {lies} lies") };
                    format!("{feedback:+} B/s{epoch}{lies}")
                }
                (Law::Other | Law::Fallback, _) => NOTHING.into(),
            },
            if *routers == 15 { "15 or more".into() } else { routers.to_string() },
            match (law, reason) {
                (Law::Fallback, Some(reason)) => format!("yes: {reason}"),
                (_, Some(reason)) => format!("no; was: {reason}"),
                (_, None) => "no".into(),
            },
        ]);
    }
    table.render()
}
