//! The arguments of what runs on real packets.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use congestlab_linux::router::Queue;
use congestlab_linux::{lab, supervisor};
use congestlab_scenario::units::{BitRate, Bytes};

use super::link::LinkArguments;
use crate::args::ScenarioArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command, or your shell, behind an emulated link
    Link(Box<LinkArguments>),
    /// Run a scenario with real TCP in network namespaces (needs root)
    #[command(subcommand)]
    Live(LiveCommand),
    /// Send and receive in a live lab
    #[command(hide = true, name = lab::endpoint::SUBCOMMAND)]
    Endpoint,
    /// Become another program in a control group
    #[command(hide = true, name = lab::apps::ENTER)]
    Enter {
        /// The control group
        group: PathBuf,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Say what this machine can do with real packets, and how to get what is missing
    Doctor(DoctorArguments),
    /// Undo what another congestlab did, when that has ended
    #[command(hide = true, name = supervisor::SUBCOMMAND)]
    Supervise {
        /// Its folder in /run/congestlab
        id: String,
    },
    /// Run XCP at an interface of this machine
    #[command(subcommand)]
    Router(RouterCommand),
    /// Use XCP on this machine's own connections, without a change to applications
    #[command(subcommand)]
    Host(HostCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum HostCommand {
    /// Load XCP into the kernel, for new connections; stays until it is disabled or a reboot
    Enable(HostEnableArguments),
    /// Say what is enabled, for whom, and how its connections fare
    Status,
    /// Remove what was enabled; connections that use it go on
    Disable {
        /// Print what would be done, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct HostEnableArguments {
    /// Law of the sender
    #[arg(long, value_parser = ["xcp"])]
    pub(crate) law: String,
    /// Peers, such as 10.0.2.0/24 or 2001:db8::/32; may be repeated; absent: all
    #[arg(long, value_name = "PREFIX")]
    pub(crate) to: Vec<String>,
    /// Only for sockets that choose `xcp` themselves (TCP_CONGESTION, iperf3 -C xcp)
    #[arg(long)]
    pub(crate) opt_in: bool,
    /// How headers travel
    #[arg(long, value_parser = ["option", "shim"], default_value = "option")]
    pub(crate) encoding: String,
    /// Where --encoding shim puts headers in; may be repeated; absent: all interfaces that are up, but lo
    #[arg(long, value_name = "IFACE")]
    pub(crate) interface: Vec<String>,
    /// On loss: halve the window, maintain it, or run TCP beside and follow the stricter
    #[arg(long, value_parser = ["tcp", "maintain", "fallback"], default_value = "tcp")]
    pub(crate) loss: String,
    /// First window, in packets
    #[arg(long, value_name = "PACKETS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) initial_window: u32,
    /// The kernel's congestion control for connections that no XCP router answers
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) fallback: String,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LiveCommand {
    /// Make the network of a scenario, let real flows go, and print what came out; nothing is left
    /// behind
    Run(LiveArguments),
}

#[derive(Debug, Args)]
pub(crate) struct LiveArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Which program sends
    #[arg(long, value_enum, default_value_t = LiveApp::Bulk, value_name = "PROGRAM")]
    pub(crate) app: LiveApp,
    /// Segmentation and checksum offloads of the hosts' interfaces
    #[arg(long, value_enum, default_value_t = Offloads::Off, value_name = "STATE")]
    pub(crate) offloads: Offloads,
    /// Where packets of XCP's flows carry the congestion header
    #[arg(long, value_enum, default_value_t = EncodingShown::Option)]
    pub(crate) encoding: EncodingShown,
    /// Write DIR/<scenario>-<seed>-<hash>-live/, as `run` does
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Write the time series as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) series: Option<PathBuf>,
    /// Write drops, errors, marks and control intervals of user-space links as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    /// Write what every link carries to DIR/<link>.pcap, by tcpdump
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) pcap: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LiveApp {
    /// Sender and receiver of congestlab
    Bulk,
    /// iperf3, one server for each flow; it ends when a size is written: the end of it may never arrive
    Iperf3,
    /// curl, which fetches a file from a server of congestlab; what arrives is verified
    Curl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Offloads {
    /// Senders hand super-packets to the routers, as on a machine whose offloads nobody switched off
    On,
    /// Every frame is one packet, as on a wire
    Off,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RouterCommand {
    /// Put a link law at an interface's egress; stays until detached or until the interface goes
    Attach(AttachArguments),
    /// Say what the law of an interface, or of all, measures and decides
    Status {
        /// The interface [default: all that have a law]
        #[arg(value_name = "IFACE")]
        interface: Option<String>,
    },
    /// Take the law off, and leave the interface as it was
    Detach {
        /// The interface
        #[arg(value_name = "IFACE")]
        interface: String,
        /// Only print what would be done
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// The interface whose outgoing traffic is controlled
    #[arg(value_name = "IFACE")]
    pub(crate) interface: String,
    /// The law
    #[arg(long, value_enum)]
    pub(crate) law: RouterLaw,
    /// What the link carries, in bits of IP packets: "1 Gbit/s" [default: with --no-shape that of the
    /// shaper]
    #[arg(long, required_unless_present = "no_shape")]
    pub(crate) rate: Option<BitRate>,
    /// Where packets carry the congestion header
    #[arg(long, value_enum, default_value_t = EncodingShown::Option)]
    pub(crate) encoding: EncodingShown,
    /// Use the queue that is there instead of holding the rate
    #[arg(long)]
    pub(crate) no_shape: bool,
    /// Limit of the queue, "200 packets" or "250 kB" [default: what 100 ms bring]
    #[arg(long, conflicts_with = "no_shape", value_parser = queue)]
    pub(crate) queue: Option<Queue>,
    /// Only print what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Laws that a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RouterLaw {
    /// XCP
    Xcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncodingShown {
    /// As a TCP option
    Option,
    /// As a protocol of its own between IP and TCP (draft-03)
    Shim,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Undo what labs and links did that were killed with their supervisors
    #[arg(long)]
    pub(crate) clean: bool,
}

/// A limit in packets or bytes.
fn queue(text: &str) -> Result<Queue, String> {
    let wrong =
        || "expected a number of packets or an amount, such as \"200 packets\" or \"250 kB\"".to_owned();
    if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
        return match number.trim().parse() {
            Ok(packets) if packets > 0 => Ok(Queue::Packets(packets)),
            _ => Err(wrong()),
        };
    }
    match text.parse::<Bytes>() {
        Ok(Bytes(bytes)) if (1..=u64::from(u32::MAX)).contains(&bytes) => Ok(Queue::Bytes(bytes)),
        Ok(_) => Err("expected 1 B to 4.29 GB".into()),
        Err(error) => Err(format!("{error}; {}", wrong())),
    }
}
