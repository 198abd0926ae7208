//! The arguments of what runs on real packets.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use congestlab_linux::router::{Queue, police};
use congestlab_linux::{edge, supervisor};
use congestlab_scenario::units::{BitRate, Bytes, Ratio};

use super::gateway::GatewayCommand;
use super::link::LinkArguments;
use super::scone::SconeArguments;
use crate::args::ScenarioArguments;

const LIVE_EXAMPLE: &str = "\
Example:
  sudo congestlab live run scenarios/live/shares.toml --out runs";
const ATTACH_EXAMPLE: &str = "\
Examples:
  sudo congestlab router attach eth1 --law xcp --rate \"1 Gbit/s\"
  sudo congestlab router attach wwan0 --law xcp --rate \"20 Mbit/s\" --capacity-from command:modem-rate
  sudo congestlab router attach eth1 --law xcp --rate \"100 Mbit/s\" --beside-tcp";
const AGENT_EXAMPLE: &str = "\
Example:
  sudo congestlab router attach eth1 --law xcp-i --rate \"1 Gbit/s\"
  sudo congestlab router agent";
const SET_EXAMPLE: &str = "\
Example:
  sudo congestlab router set eth1 --rate \"500 Mbit/s\"";
const APPLY_EXAMPLE: &str = "\
Example:
  sudo congestlab apply /etc/congestlab/apply.toml --watch --metrics 127.0.0.1:9417";
const SCONE_EXAMPLES: &str = "\
Examples:
  far$  congestlab check scone --listen 10.0.2.2:4433
  near$ congestlab check scone 10.0.2.2:4433
  sudo ip netns exec near congestlab check scone 10.0.2.2:4433 --listen-in far";
const ENABLE_EXAMPLE: &str = "\
Example:
  sudo congestlab host enable --law xcp --to 10.0.2.0/24";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command, or your shell, behind an emulated link
    Link(Box<LinkArguments>),
    /// Run a scenario with real TCP in network namespaces
    #[command(subcommand)]
    Live(LiveCommand),
    /// Send and receive in a live lab
    #[command(hide = true, name = congestlab_lab::endpoint::SUBCOMMAND)]
    Endpoint,
    /// Become another program in a control group
    #[command(hide = true, name = congestlab_lab::apps::ENTER)]
    Enter {
        /// The control group
        group: PathBuf,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Undo the changes of another congestlab when that has ended
    #[command(hide = true, name = supervisor::SUBCOMMAND)]
    Supervise {
        /// Name of its folder in /run/congestlab
        id: String,
    },
    /// Run a link law on the outgoing traffic of an interface
    #[command(subcommand)]
    Router(RouterCommand),
    /// Use XCP or another law on this machine's own connections
    ///
    /// Applications need no change.
    #[command(subcommand)]
    Host(HostCommand),
    /// Give this machine the routers and the host of a file
    ///
    /// Takes away those that the file no longer names.
    #[command(after_help = APPLY_EXAMPLE)]
    Apply(ApplyArguments),
    /// Split the TCP connections that cross a satellite link
    ///
    /// The ends of a connection do not see it.
    #[command(subcommand)]
    Gateway(GatewayCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Check what this machine can do with real packets, and tell how to get what is missing
    Machine(MachineArguments),
    /// Check elements that lower the codes of SCONE, congestlab's or others': send through them what they may meet, and judge
    /// what arrives; status 3 if they break a rule
    #[command(after_help = SCONE_EXAMPLES)]
    Scone(SconeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// File in TOML with [routers.IFACE] and [host], such as /etc/congestlab/apply.toml
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "undo")]
    pub(crate) file: Option<PathBuf>,
    /// Only judge the file
    #[arg(long, conflicts_with = "watch")]
    pub(crate) check: bool,
    /// Stay, and apply again when the file, an interface or its MTU changes; what is applied stays after the end
    #[arg(long)]
    pub(crate) watch: bool,
    /// With --watch: serve numbers of routers and host over HTTP, as Prometheus reads them, at an address and port, or at a port of
    /// loopback
    #[arg(long, value_name = "ADDR", requires = "watch", value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Take away all that `apply` has attached and enabled here
    #[arg(long, conflicts_with_all = ["file", "check", "watch"])]
    pub(crate) undo: bool,
}

/// An address with a port, or a port of loopback.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    port.or_else(|_| text.parse())
        .map_err(|_| "expected an address with a port, such as 127.0.0.1:9417, [::1]:9417 or 9417".into())
}

#[derive(Debug, Subcommand)]
pub(crate) enum HostCommand {
    /// Load a law into the kernel, for new connections, until it is disabled or the machine restarts; where it is enabled already
    /// with the same settings, for more peers
    #[command(after_help = ENABLE_EXAMPLE)]
    Enable(HostEnableArguments),
    /// Print what is enabled, for which peers, and the state of its connections
    Status,
    /// Remove the law from the kernel; connections that use it go on with the fallback
    Disable {
        /// Only stop using it for new connections to these peers; may be repeated
        #[arg(long, value_name = "PREFIX")]
        to: Vec<String>,
        /// Only print the commands
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct HostEnableArguments {
    /// Law of the senders
    #[arg(long, value_parser = ["xcp", "xcp-r", "xcp-i", "vcp", "dpcp", "tpcp", "dctcp", "prague", "abc"])]
    pub(crate) law: String,
    /// Peers to use the law with, such as 10.0.2.0/24 or 2001:db8::/32; may be repeated [default: all]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) to: Vec<String>,
    /// Use the law only for sockets that choose it themselves (TCP_CONGESTION, iperf3 -C xcp)
    #[arg(long)]
    pub(crate) opt_in: bool,
    /// Place of XCP's congestion header: a TCP option, or a header of its own between IP and TCP
    /// [default: option]
    #[arg(long, value_parser = ["option", "shim"])]
    pub(crate) encoding: Option<String>,
    /// Interface at which --encoding shim puts headers in, or laws with the ECN field their codes; may be repeated [default: all that are up,
    /// but lo]
    #[arg(long, value_name = "IFACE")]
    pub(crate) interface: Vec<String>,
    /// Reaction to loss: halve the window as TCP does, maintain it, or run TCP beside XCP and follow the
    /// smaller window (XCP and XCP-r alone); DCTCP, Prague and ABC have tcp alone
    #[arg(long, value_parser = ["tcp", "maintain", "fallback"], default_value = "tcp")]
    pub(crate) loss: String,
    /// Initial congestion window, packets [default: 1; 10 with DCTCP, Prague and ABC]
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) initial_window: Option<u32>,
    /// The kernel's congestion control for connections that get no answer
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) fallback: String,
    /// Only print the commands
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LiveCommand {
    /// Make the network of a scenario, let real flows go, and print the results; nothing is left behind
    #[command(after_help = LIVE_EXAMPLE)]
    Run(LiveArguments),
}

#[derive(Debug, Args)]
pub(crate) struct LiveArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Program that sends the data of TCP flows
    #[arg(long, value_enum, default_value_t = LiveApp::Bulk, value_name = "PROGRAM")]
    pub(crate) app: LiveApp,
    /// Segmentation and checksum offloads of the hosts' interfaces
    #[arg(long, value_enum, default_value_t = Offloads::Off, value_name = "STATE")]
    pub(crate) offloads: Offloads,
    /// Place of the congestion header in packets of XCP's flows
    #[arg(long, value_enum, default_value_t = EncodingShown::Option)]
    pub(crate) encoding: EncodingShown,
    /// Write DIR/<scenario>-<seed>-<hash>-live/ with the files that `run` writes
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// --out is the folder of the run itself, for make and Snakemake: an older run there is replaced
    #[arg(long, requires = "out")]
    pub(crate) exact: bool,
    /// Write the time series to FILE as CSV: t_s,element,index,metric,value
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) series: Option<PathBuf>,
    /// Write drops, errors, marks and control intervals of user-space links to FILE as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    /// Write the packets of every link to DIR/<link>.pcap, by tcpdump
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) pcap: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LiveApp {
    /// Congestlab's own sender and receiver
    Bulk,
    /// iperf3, with one server for each flow; a flow of a given size ends when it is written, so the last
    /// data may not arrive
    Iperf3,
    /// curl, which fetches a file from congestlab's server; the received bytes are verified
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
    /// Put a link law on an interface's outgoing traffic, until it is detached or the interface is gone
    #[command(after_help = ATTACH_EXAMPLE)]
    Attach(Box<AttachArguments>),
    /// Print the measurements and decisions of the law of an interface, or of all
    Status {
        /// Interface, such as eth1 [default: all that have a law]
        #[arg(value_name = "IFACE")]
        interface: Option<String>,
    },
    /// Tell the law of an interface, and the shaper that was attached with it, another rate, while traffic goes on
    #[command(after_help = SET_EXAMPLE)]
    Set {
        /// Interface, such as eth1
        #[arg(value_name = "IFACE")]
        interface: String,
        /// Rate of the link from now on, in bits of IP packets, such as "500 Mbit/s"
        #[arg(long)]
        rate: BitRate,
        /// Only print the commands
        #[arg(long)]
        dry_run: bool,
    },
    /// Ask, and answer, for the bandwidth of clouds between routers with XCP-i, until Ctrl-C: one for each such router, and for
    /// each sending host before a cloud
    #[command(after_help = AGENT_EXAMPLE)]
    Agent {
        /// Port of UDP; the same on all nodes
        #[arg(long, default_value_t = edge::PORT)]
        port: u16,
        /// Address to listen at; may be repeated [default: of a router those of its interfaces with XCP-i, of a host all]
        #[arg(long, value_name = "ADDRESS")]
        listen: Vec<std::net::Ipv4Addr>,
        /// User that the agent becomes [default: congestlab if there is such a user, or else nobody]
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Take the law off, and leave the interface as it was before
    Detach {
        /// Interface, such as eth1
        #[arg(value_name = "IFACE")]
        interface: String,
        /// Only print the commands
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// Interface whose outgoing traffic is controlled, such as eth1
    #[arg(value_name = "IFACE")]
    pub(crate) interface: String,
    /// Law of the link: xcp, pxcp, xcp-i, vcp, dpcp, any other link law whose program is part of this command (abc, csig, rcp, scone), a queue law
    /// that marks before the queue (step, pie, pi2), or a law of your own that `build law` made a program of
    #[arg(long, value_name = "LAW")]
    pub(crate) law: String,
    /// Program of a law of your own [default: where `build law` puts it]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) object: Option<PathBuf>,
    /// Change a setting of a law that is neither xcp, pxcp, vcp nor dpcp, by its name in scenarios: --set interval="20 ms"; may
    /// be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Rate of the link, in bits of IP packets, such as "1 Gbit/s" [default: with --no-shape that of the
    /// shaper, or of a device with several hardware queues]
    #[arg(long, required_unless_present = "no_shape")]
    pub(crate) rate: Option<BitRate>,
    /// Stay, and let the capacity follow a source: trace:FILE (a recorded trace), command:'CMD' (rates that a command prints), drain
    /// (measured at the queue), bql (measured at the driver) or qdisc (stated by the shaper), these with --no-shape; the rate holds
    /// whenever that is stale
    #[arg(long, value_name = "SOURCE")]
    pub(crate) capacity_from: Option<String>,
    /// User that the command of --capacity-from runs as [default: nobody]
    #[arg(long, value_name = "NAME", requires = "capacity_from")]
    pub(crate) capacity_user: Option<String>,
    /// XCP: give XCP's packets and all others a class each of the shaper, so that TCP may share the link. With flows, stay, and let the
    /// classes' parts follow the numbers of flows in them; a number from 0.05 to 0.95 is XCP's part for good [default: flows]
    #[arg(long, value_name = "WEIGHTS", num_args = 0..=1, require_equals = true, default_missing_value = "flows")]
    pub(crate) beside_tcp: Option<String>,
    /// Place of XCP's congestion header in packets [default: option]
    #[arg(long, value_enum)]
    pub(crate) encoding: Option<RouterEncoding>,
    /// XCP, P-XCP: share of the spare capacity that is given away per interval; 0.4
    #[arg(long, value_parser = ratio)]
    pub(crate) alpha: Option<Ratio>,
    /// XCP, P-XCP: share of a standing queue that is drained per interval; 0.226
    #[arg(long, value_parser = ratio)]
    pub(crate) beta: Option<Ratio>,
    /// XCP, P-XCP: share of the traffic that is shuffled between flows per interval; 0.1
    #[arg(long, value_parser = ratio)]
    pub(crate) gamma: Option<Ratio>,
    /// XCP, P-XCP: drain the average queue of an interval instead of the least one, for senders that write in bursts
    #[arg(long)]
    pub(crate) average_queue: bool,
    /// XCP, P-XCP: count what earlier intervals granted and flows do not use yet as used, for senders that write in bursts
    #[arg(long)]
    pub(crate) remember_grants: bool,
    /// P-XCP: part of the compensation for limited flows that is given; 0.9
    #[arg(long, value_parser = ratio)]
    pub(crate) k: Option<Ratio>,
    /// P-XCP: largest share of limited flows that is believed, below 1; 0.95
    #[arg(long, value_parser = ratio)]
    pub(crate) r_max: Option<Ratio>,
    /// XCP-i: part of what a cloud has left that is there to give away, above 0 up to 1, for all ports of this router; left out, all of
    /// it, divided by the number of upstream nodes that send
    #[arg(long, value_parser = ratio)]
    pub(crate) release: Option<Ratio>,
    /// XCP-i: part of a cloud's own traffic that is given back per interval, below 1, for all ports of this router; left out, 0.03
    /// where several upstream nodes send, otherwise 0
    #[arg(long, value_parser = ratio)]
    pub(crate) give_back: Option<Ratio>,
    /// XCP: police senders that lie to the law or do not listen, with records of so many flows, 8 to 1000000, of 136 B each
    #[arg(long, value_name = "RECORDS", value_parser = records)]
    pub(crate) police: Option<u32>,
    /// Use the queue that is there instead of holding the rate. Where that is one for each of several hardware queues (mq), XCP's
    /// law has a part on each processor, and none waits for another
    #[arg(long)]
    pub(crate) no_shape: bool,
    /// Limit of the queue, such as "200 packets" or "250 kB" [default: 100 ms at the rate, at least 100 kB]
    #[arg(long, conflicts_with = "no_shape", value_parser = queue)]
    pub(crate) queue: Option<Queue>,
    /// Put the law in the place of one that is attached, such as another version's: connections and what waits in the queue stay,
    /// and a law with the same constants goes on where it was
    #[arg(long)]
    pub(crate) replace: bool,
    /// Only print the commands
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncodingShown {
    /// As a TCP option
    Option,
    /// As a protocol of its own between IP and TCP (draft-03)
    Shim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RouterEncoding {
    /// As a TCP option
    Option,
    /// As a protocol of its own between IP and TCP (draft-03)
    Shim,
    /// As either of these, each packet as its host sends it
    Both,
}

#[derive(Debug, Args)]
pub(crate) struct MachineArguments {
    /// Undo the changes of labs and links that were killed together with their supervisors
    #[arg(long)]
    pub(crate) clean: bool,
}

/// Records of a policer.
pub(super) fn records(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(records) if police::RECORDS.contains(&records) => Ok(records),
        _ => Err(format!(
            "expected a whole number from {} to {}",
            police::RECORDS.start(),
            police::RECORDS.end()
        )),
    }
}

/// A share from 0 to 1.
pub(super) fn ratio(text: &str) -> Result<Ratio, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(Ratio::ppm((value * 1e6).round() as u32)),
        _ => Err("expected a number from 0 to 1, such as 0.4".into()),
    }
}

/// A limit in packets or bytes.
pub(super) fn queue(text: &str) -> Result<Queue, String> {
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
