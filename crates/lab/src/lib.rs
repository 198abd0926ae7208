//! A lab: a scenario with real packets. It has namespaces for the scenario's routers and hosts, its links
//! between them, and real TCP with the laws that it names.
//!
//! [`run`] makes the network, compares rate and delay of each path with the scenario, starts the flows,
//! samples sockets and queues, and returns the outcome with the simulator's names. All that it makes goes
//! with its [`Guard`].
//!
//! Real TCP over one link, which needs root:
//!
//! ```no_run
//! use congestlab_lab::Options;
//! use congestlab_scenario::Scenario;
//!
//! let text = r#"
//!     run = { duration = "10 s" }
//!     links.l = { rate = "10 Mbit/s", delay = "20 ms", law = "xcp" }
//!     flows.f = { law = "xcp", path = ["l"] }
//! "#;
//! let scenario = Scenario::parse("lab.toml", text, ".".as_ref(), &[], None)?;
//! let live = congestlab_lab::run(&scenario, &Options::default(), &false.into(), &|_| {})?;
//! assert!(live.report.trustworthy, "{:?}", live.report.doubts);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod apps;
pub mod clouds;
pub mod endpoint;
mod network;
mod nodes;
pub mod probe;
mod topology;
mod udp;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::{fs, thread};

use congestlab_core::law::{LinkReport, Protocol, SenderConfig, Series as _, mpcp, pxcp, xcp};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate};
use congestlab_scenario::net::errors::ErrorRate;
use congestlab_scenario::net::packet::{PS_PER_NS, Picos};
use congestlab_scenario::net::port::{PortConfig, PortEvent};
use congestlab_scenario::net::service::Service;
use congestlab_scenario::net::tcp::{self, Advertise};
use congestlab_scenario::sim::model::{Group, GroupKind, Model};
use congestlab_scenario::sim::outcome::{Element, Event, Outcome};
use congestlab_scenario::{Measure, Scenario};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use apps::Apps;
use clouds::Agents;
use congestlab_linux::error::{Context, Error, Result};
use congestlab_linux::host::{self, Encoding, Host};
use congestlab_linux::link::{self, Clock, Link, Report, Way};
use congestlab_linux::router;
use congestlab_linux::supervisor::Guard;
use congestlab_linux::sys::diag::{Diag, State, States};
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::qdisc::{Qdisc, QdiscReader};
use network::Network;
use nodes::Nodes;
use topology::{Topology, segment};
use watch::{FlowCounts, FlowHistory, FlowPoint, LinkHistory, LinkPoint};

/// Smaller packets leave no room for payload beside the headers of a kernel's TCP.
const SEGMENT_MIN: u16 = 128;
/// From the word to go until time zero: every process has heard it by then.
const COUNTDOWN: u64 = 100_000_000;

/// The program that sends the data of TCP flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum App {
    /// The project's own, whose starts, stops and sizes are exact.
    #[default]
    Bulk,
    /// iperf3, with one server for each flow.
    Iperf3,
    /// curl, which fetches a file from the project's server; the received bytes are compared with the sent ones.
    Curl,
}

/// Options of a lab.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program that sends.
    pub app: App,
    /// Folder for what tcpdump records of each link; `None`: nothing is recorded.
    pub pcap: Option<PathBuf>,
    /// True to leave interfaces the offloads that the kernel gives them, so that senders hand super-packets to
    /// the routers. Otherwise every frame is one packet.
    pub offloads: bool,
    /// Encoding of XCP's congestion headers.
    pub encoding: Encoding,
}

/// News of a lab while it works.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// A line of text on what it makes and finds.
    Line(&'a str),
    /// Progress of the run.
    Reached {
        /// Time of the run, ps.
        at: Picos,
        /// Duration of the run, ps.
        end: Picos,
    },
}

/// The result of a lab.
#[derive(Debug)]
pub struct Live {
    /// The outcome, as a simulation returns it.
    pub outcome: Outcome,
    /// The facts that only a lab has.
    pub report: LabReport,
    /// Output of the sending programs: the name of a file and its bytes.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Facts of a lab beside its outcome.
#[derive(Clone, Debug, Serialize)]
pub struct LabReport {
    /// True if the machine kept up, so that the lab was what the scenario asks for.
    pub trustworthy: bool,
    /// Reasons for which it was not.
    pub doubts: Vec<String>,
    /// Name of the program that sent.
    pub app: &'static str,
    /// Setting of the offloads: `on` if senders could hand super-packets to the routers, else `off`.
    pub offloads: &'static str,
    /// Place where each link direction is queued and delayed, by its name.
    pub links: BTreeMap<String, String>,
    /// Rate and delay of each group's path, asked for and measured before the run.
    pub self_check: Vec<probe::Check>,
    /// Lateness of the packets of each link in user space, for both directions.
    pub lateness: BTreeMap<String, [link::Lateness; 2]>,
    /// Congestion control and segment of each group of flows.
    pub flows: BTreeMap<String, FlowReport>,
    /// Counts of each agent of XCP-i, by its router's or host's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, clouds::AgentReport>,
    /// Counts of the law's program, for each link direction that has it.
    pub routers: BTreeMap<String, router::Sample>,
    /// TCP segments with a wrong checksum, as the hosts' kernels count them.
    pub checksum_errors: u64,
}

/// Congestion control and segment of a group of flows.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    /// Counts of hosts with a law of ours, with fallbacks; `None` for the kernel's laws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xcp: Option<host::Counters>,
    /// The kernel's name of the congestion control; `udp` for sources.
    pub congestion: String,
    /// Size of a whole IP packet, bytes.
    pub segment: u16,
    /// Payload of a whole IP packet, bytes: the kernel's timestamps take 12 B more than a simulated header.
    pub payload: u16,
}

impl FlowReport {
    /// Returns what to say of flows that fell back to CUBIC after losses; `None` if none did.
    pub fn fallbacks(&self) -> Option<String> {
        let count = self.xcp.as_ref()?.fallbacks_loss;
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        (count > 0).then(|| {
            format!("fell back to CUBIC after losses {times}: until they returned, CUBIC was measured")
        })
    }
}

/// Nanoseconds of the kernel's monotonic clock, the same for all processes.
pub(crate) fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until then.
pub(crate) fn sleep_until(at: u64) {
    loop {
        let left = at.saturating_sub(monotonic());
        if left == 0 {
            return;
        }
        thread::sleep(std::time::Duration::from_nanos(left));
    }
}

/// Bytes of a segment that are no payload.
pub(crate) fn headers(group: &Group) -> u16 {
    // TTL and address of XCP-i stand behind the header.
    let more = if group.interoperable.is_some() { 8 } else { 0 };
    match &group.kind {
        // IP, TCP, timestamps (RFC 7323, padded), and XCP's header, either way, or the echo of laws with codes.
        GroupKind::Tcp(config) if coded(&config.law).is_some() => 60,
        // XCP-r's receivers are told, and tell, in an option more.
        GroupKind::Tcp(tcp::Config { law: law @ SenderConfig::XcpR(_), .. }) => 60 + law.needs().header_bytes,
        GroupKind::Tcp(config) => 52 + config.law.needs().header_bytes + more,
        GroupKind::Source(_) => 0,
    }
}

/// Runs a scenario with real packets and returns its result. `tell` is called with the news; raising `stop`
/// ends the run.
///
/// # Errors
/// If a lab can not run such a scenario, the machine can not run labs, something fails on the way, or
/// `stop` was raised.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    stop: &AtomicBool,
    tell: &dyn Fn(News<'_>),
) -> Result<Live> {
    let model = scenario.model(&Measure { series: true, events: true });
    let topology = Topology::new(scenario, &model)?;
    let nodes = Nodes::new(&model, &topology)?;
    for link in &model.links {
        require_calm(&link.name, &link.port)?;
    }
    require_kernel(&model)?;
    // Only the draft's header has room for what XCP-i's routers want to know; a router reads one encoding.
    let is_interoperable = model.groups.iter().any(|group| group.interoperable.is_some());
    let encoding = if is_interoperable { Encoding::Shim } else { options.encoding };
    let options = &Options { encoding, ..options.clone() };
    for group in &model.groups {
        require_law(&group.name, &group.kind)?;
        require_load(group)?;
        require_window(group, options.app)?;
        if options.encoding == Encoding::Shim
            && matches!(&group.kind, GroupKind::Tcp(tcp::Config { law: SenderConfig::XcpR(_), .. }))
        {
            let what =
                format!("flows.{}.law = \"xcp-r\": its receivers tell windows in a TCP option", group.name);
            let help = if is_interoperable {
                "leave interoperable flows beside them out, whose header is a shim, or simulate it"
            } else {
                "leave --encoding shim out, or simulate it"
            };
            return Err(Error::input(what, help));
        }
        if !group.switches.is_empty() {
            return Err(Error::input(
                format!("flows.{}.switch: a live lab has one path for each flow", group.name),
                "leave it out, or simulate it",
            ));
        }
    }
    apps::require(options)?;
    let guard = Guard::start()?;
    let lab = Lab::build(&guard, &model, topology, nodes, options, tell);
    let result = lab.and_then(|mut lab| lab.run(stop, tell));
    // What the lab holds open is closed by now: its namespaces go at once.
    guard.finish().and(result)
}

/// Refuses loads that the endpoints of a lab do not make.
fn require_load(group: &Group) -> Result<()> {
    let (key, why) = match &group.kind {
        _ if !group.schedule.is_empty() => ("schedule", "a lab's sources send from start to stop"),
        _ if group.sizes.is_some() => ("size.pareto", "a lab's flows are of one size"),
        GroupKind::Tcp(config) => match config.advertise {
            Advertise::Always => return Ok(()),
            Advertise::Growing { .. } => ("awnd", "the kernel decides how its window grows"),
            Advertise::Reading { .. } => ("receiver", "a lab's receivers read at once"),
        },
        GroupKind::Source(_) => return Ok(()),
    };
    Err(Error::input(format!("flows.{}.{key}: {why}", group.name), "leave it out, or simulate it"))
}

/// Refuses a window that receivers of other programs do not keep.
fn require_window(group: &Group, app: App) -> Result<()> {
    match (&group.kind, app) {
        (GroupKind::Tcp(tcp::Config { awnd: Some(_), .. }), App::Iperf3 | App::Curl) => Err(Error::input(
            format!(
                "flows.{}.awnd: receivers of other programs advertise what the kernel chooses",
                group.name
            ),
            "leave it, or --app, out",
        )),
        _ => Ok(()),
    }
}

/// Refuses ports of XCP-i that the kernel can not serve: no link in user space finds clouds.
fn require_kernel(model: &Model) -> Result<()> {
    let routers = model.devices.iter().filter(|device| device.router().is_some());
    for &direction in routers.flat_map(|router| &router.links) {
        let link = &model.links[direction as usize];
        if let Some(reason) = network::needs_user_space(&link.port) {
            return Err(Error::input(
                format!("links.{}: {reason} wants a link in user space, which does not run XCP-i", link.name),
                "leave it, or interoperable, out; or simulate it",
            ));
        }
    }
    Ok(())
}

/// Refuses what neither the kernel nor a link in user space does to packets on their way.
fn require_calm(name: &str, port: &PortConfig) -> Result<()> {
    let key = match port.errors {
        _ if !port.ack_blackout.is_empty() => "ack_blackout",
        _ if port.reorder.is_some() => "reorder",
        Some(ErrorRate::GilbertElliott(_)) => "error.gilbert_elliott",
        _ => return Ok(()),
    };
    Err(Error::input(
        format!("links.{name}.{key}: a live lab's links have no such trouble"),
        "allowed in a live lab: ack_loss, error = { packet_error_rate = ... } or { bit_error_rate = ... }",
    ))
}

/// Refuses what no kernel's TCP can do, and a kernel without what is asked for.
fn require_law(name: &str, kind: &GroupKind) -> Result<()> {
    let GroupKind::Tcp(config) = kind else { return Ok(()) };
    if config.segment < SEGMENT_MIN {
        return Err(Error::input(
            format!("flows.{name}.segment is {} B, too small for a kernel's TCP", config.segment),
            format!("allowed in a live lab: {SEGMENT_MIN} B to 65535 B"),
        ));
    }
    if config.ns2 {
        return Err(Error::input(
            format!("flows.{name}.profile = \"ns2\": no kernel's TCP has the ways of ns-2"),
            "leave it out, or simulate it",
        ));
    }
    if config.lie.is_some() {
        return Err(Error::input(
            format!("flows.{name}.lie: no kernel's receiver lies about what links say"),
            "leave it out, or simulate it",
        ));
    }
    if config.law.part::<xcp::SenderConfig>().is_some_and(|xcp| xcp.profile == xcp::Profile::Thesis) {
        return Err(Error::input(
            format!("flows.{name}.profile = \"thesis\": the host agent runs XCP's sender, not the thesis's"),
            "leave it out, or simulate it",
        ));
    }
    if let Some(xcp::SenderConfig { profile: xcp::Profile::Liar(_), .. }) = config.law.part() {
        return Err(Error::input(
            format!("flows.{name}.law has stated_rtt, forged or deaf: no host agent lies to links"),
            "leave them out, or simulate it",
        ));
    }
    if config.recovery == tcp::Recovery::Fack {
        return Err(Error::input(
            format!("flows.{name}: no kernel repairs losses by FACK since Linux 4.15, which has RACK"),
            "write law = \"sack\", which there is what the kernel does, or simulate it",
        ));
    }
    match (kernel_law(kind), &config.law) {
        (Some(law), told) if *told != as_named(told) => Err(Error::input(
            format!(
                "flows.{name}.law.{law}: the kernel's {law} has numbers of its own and can not be told any"
            ),
            "leave its keys out, or simulate it",
        )),
        (Some(law), _) => require_congestion(law),
        (None, SenderConfig::Xcp(xcp)) if xcp.feedback == xcp::Feedback::Bytes => Err(Error::input(
            format!(
                "flows.{name}.law.xcp.feedback = \"bytes\": ACKs of a live lab return rates, as draft-03 says"
            ),
            "leave it out, or simulate it",
        )),
        (None, SenderConfig::Xcp(_)) => Ok(()),
        (None, law) if coded(law).is_some() => Ok(()),
        (None, SenderConfig::XcpR(config)) if !config.epochs => Err(Error::input(
            format!("flows.{name}.law.xcp-r.epochs = false: the host agent numbers a sender's own changes"),
            "leave it out, or simulate it",
        )),
        (None, SenderConfig::XcpR(_)) => Ok(()),
        (None, law) => Err(Error::input(
            format!("flows.{name}.law = \"{}\": neither the kernel nor the host agent has it", law.name()),
            "allowed in a live lab: xcp, xcp-r, pxcp, vcp, dpcp, tpcp, dctcp, prague, abc and the kernel's own; or simulate it",
        )),
    }
}

/// The agent's law with codes in the ECN field: VCP, which is MPCP with chains of one packet, DPCP and TPCP with the numbers that their
/// programs have, and laws that count marks.
fn coded(law: &SenderConfig) -> Option<host::Sender> {
    match law {
        SenderConfig::Mpcp(config) => {
            let usual = mpcp::SenderConfig::of(config.n, true);
            let own =
                |of: &mpcp::SenderConfig| (of.order, of.kappa, of.eta, of.strikes, of.resume, of.relapses);
            let all = |of: &mpcp::SenderConfig| (of.undo, of.zones || of.n == 1, of.repair);
            let has = config.n == 1 || config.n <= 3 && own(config) == own(&usual);
            (has && all(config) == all(&usual)).then_some(host::Sender::Mpcp(*config))
        }
        SenderConfig::Dctcp(config) => Some(host::Sender::Dctcp(*config)),
        SenderConfig::Prague(config) => Some(host::Sender::Prague(*config)),
        SenderConfig::Abc(config) => Some(host::Sender::Abc(*config)),
        _ => None,
    }
}

/// The law as it is when nothing but its name is said, or what the kernel does in any case.
fn as_named(law: &SenderConfig) -> SenderConfig {
    if let SenderConfig::Reno(_) = law {
        return law.clone();
    }
    Protocol::of(law.name()).and_then(|protocol| protocol.sender.clone()).unwrap_or_else(|| law.clone())
}

/// The kernel's own name of a law; `None` for ours.
fn kernel_law(kind: &GroupKind) -> Option<&'static str> {
    match kind {
        GroupKind::Source(_) => None,
        GroupKind::Tcp(config) => match config.law {
            SenderConfig::Cubic(_) => Some("cubic"),
            SenderConfig::Reno(_) => Some("reno"),
            SenderConfig::HighSpeed(_) => Some("highspeed"),
            SenderConfig::Bic(_) => Some("bic"),
            SenderConfig::Vegas(_) => Some("vegas"),
            SenderConfig::Bbr(_) => Some("bbr"),
            _ => None,
        },
    }
}

/// Gives each group a control group and its law. Returns names of the kernel's congestion controls,
/// and what holds ours.
fn enable(
    guard: &Guard,
    model: &Model,
    topology: &Topology,
    network: &Network,
    encoding: Encoding,
) -> Result<(Vec<String>, Vec<Option<Host>>)> {
    let (mut names, mut hosts) = (Vec::new(), Vec::new());
    let insert = |host: &mut Host, index: usize| -> Result<()> {
        let all = topology.hosts.iter().zip(&network.hosts).enumerate();
        for (number, (_, namespace)) in all.filter(|(_, (one, _))| one.group == index) {
            namespace.run(|| host.insert_at(&format!("host{number}")))??;
        }
        Ok(())
    };
    for (index, group) in model.groups.iter().enumerate() {
        let cgroup = apps::cgroup(guard, index);
        fs::create_dir(&cgroup).context(|| format!("can not make {}", cgroup.display()))?;
        let mut host = None;
        let own = if let GroupKind::Tcp(config) = &group.kind { coded(&config.law) } else { None };
        names.push(match (&group.kind, own) {
            (GroupKind::Tcp(tcp::Config { initial_window, .. }), Some(sender)) => {
                // A name has 15 bytes.
                let law = sender.name();
                let name = format!("{law}{}{}.{index}", if law.len() < 4 { "." } else { "" }, guard.id());
                let mut coded = host::enable(
                    &host::Config {
                        default: false,
                        encoding: Encoding::Ecn,
                        sender,
                        initial_window: *initial_window,
                        ..host::Config::new(&name, cgroup)
                    },
                    false,
                )?;
                if let Some(coded) = &mut coded {
                    insert(coded, index)?;
                }
                host = coded;
                name
            }
            (
                GroupKind::Tcp(tcp::Config {
                    law: law @ (SenderConfig::Xcp(_) | SenderConfig::XcpR(_)),
                    initial_window,
                    ..
                }),
                _,
            ) => {
                let sender = match law {
                    SenderConfig::XcpR(config) => host::Sender::XcpR(*config),
                    law => host::Sender::Xcp(law.part::<xcp::SenderConfig>().cloned().unwrap_or_default()),
                };
                let interoperable = group.interoperable.is_some();
                let name = format!("{}.{}.{index}", sender.name(), guard.id());
                host = host::enable(
                    &host::Config {
                        default: false,
                        encoding,
                        interoperable,
                        sender,
                        initial_window: *initial_window,
                        ..host::Config::new(&name, cgroup)
                    },
                    false,
                )?;
                if let (Some(host), Encoding::Shim) = (&mut host, encoding) {
                    insert(host, index)?;
                }
                name
            }
            (kind, _) => kernel_law(kind).unwrap_or("udp").into(),
        });
        hosts.push(host);
    }
    Ok((names, hosts))
}

fn require_congestion(name: &str) -> Result<()> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = fs::read_to_string(path).context(|| format!("can not read {path}"))?;
    if available.split_whitespace().any(|other| other == name) {
        return Ok(());
    }
    Err(Error::missing(
        format!("the kernel has no congestion control named {name}, only {}", available.trim()),
        format!("modprobe tcp_{name}"),
    ))
}

/// A lab that is ready to go.
struct Lab<'a> {
    model: &'a Model,
    topology: Topology,
    nodes: Nodes,
    network: Network,
    congestion: Vec<String>,
    /// By group, where its law is one of ours.
    xcp: Vec<Option<Host>>,
    /// By direction, where the kernel runs a law.
    samplers: Vec<Option<router::Reader>>,
    options: &'a Options,
    apps: Apps,
    /// Time between two looks.
    tick: Picos,
    /// By host.
    diags: Vec<Diag>,
    /// By direction, where the kernel queues.
    qdiscs: Vec<Option<QdiscReader>>,
    links: Vec<LinkHistory>,
    flows: Vec<FlowHistory>,
    /// Repairs under way, by flow.
    in_repair: Vec<bool>,
    events: Vec<Event>,
    /// Counts of the kernel's queues at time zero.
    base: Vec<Option<Qdisc>>,
}

impl<'a> Lab<'a> {
    fn build(
        guard: &Guard,
        model: &'a Model,
        topology: Topology,
        nodes: Nodes,
        options: &'a Options,
        tell: &dyn Fn(News<'_>),
    ) -> Result<Self> {
        let tick = tick(model);
        let network = Network::build(guard, &topology, &nodes, model, tick, options)?;
        for (link, choice) in model.links.iter().zip(&network.choices) {
            tell(News::Line(&format!("link {}: {choice}", link.name)));
        }
        let (congestion, xcp) = enable(guard, model, &topology, &network, options.encoding)?;
        for (group, congestion) in model.groups.iter().zip(&congestion) {
            tell(News::Line(&format!("flows {}: {} x {congestion}", group.name, group.count)));
        }
        let apps = Apps::start(guard, model, &topology, &network, &congestion, options)?;
        let inside = |namespace: &Namespace| namespace.run(Diag::open)?;
        let diags = network.hosts.iter().map(inside).collect::<Result<_>>()?;
        let reader = |shaped: &network::Shaped| {
            network.routers[shaped.router].run(|| QdiscReader::open(shaped.index))?
        };
        let sampler = |shaped: &network::Shaped| {
            network.routers[shaped.router].run(|| router::Reader::open(&shaped.interface))?
        };
        let with_law = |shaped: &Option<network::Shaped>| shaped.clone().filter(|shaped| shaped.has_law);
        let samplers = network.shaped.iter().map(|shaped| with_law(shaped).as_ref().map(sampler).transpose());
        let samplers = samplers.collect::<Result<_>>()?;
        let shaped = network.shaped.iter();
        let qdiscs = shaped.map(|shaped| shaped.as_ref().map(reader).transpose()).collect::<Result<_>>()?;
        Ok(Self {
            links: vec![LinkHistory::default(); model.links.len()],
            flows: vec![FlowHistory::default(); topology.flows.len()],
            in_repair: vec![false; topology.flows.len()],
            base: Vec::new(),
            events: Vec::new(),
            model,
            topology,
            nodes,
            network,
            congestion,
            xcp,
            samplers,
            options,
            apps,
            tick,
            diags,
            qdiscs,
        })
    }

    fn run(&mut self, stop: &AtomicBool, tell: &dyn Fn(News<'_>)) -> Result<Live> {
        let (checks, _) = self.with_cables(Clock::start(), |lab, _| lab.check(stop, tell))?;
        self.base = self.queues()?;
        let agents = Agents::start(&self.nodes, &self.topology, &self.network)?;
        let zero = monotonic() + COUNTDOWN;
        let (reached, reports) =
            self.with_cables(Clock::at(zero), |lab, events| lab.watch(zero, events, stop, tell))?;
        let agents = agents.end()?;
        let errors = self.checksum_errors()?;
        self.apps.end(&mut self.flows);
        let report = self.report(checks, &reports, agents, errors)?;
        self.absorb(&reports);
        let outcome =
            watch::outcome(self.model, &self.links, &self.flows, std::mem::take(&mut self.events), reached);
        Ok(Live { outcome, report, files: self.apps.files()? })
    }

    /// Does something while the links in user space run.
    fn with_cables<T>(
        &mut self,
        clock: Clock,
        work: impl FnOnce(&mut Self, &[mpsc::Receiver<link::Event>]) -> Result<T>,
    ) -> Result<(T, Vec<Report>)> {
        let clock = Arc::new(clock);
        let over = AtomicBool::new(false);
        let open = |cable: &network::Cable| -> Result<Link> {
            let [a, b] = &cable.interfaces;
            let [forward, back] = cable.directions.clone();
            self.network.wire.run(|| Link::new(a, b, forward, back, clock.clone()))?
        };
        let mut links = self.network.cables.iter().map(open).collect::<Result<Vec<_>>>()?;
        let events: Vec<_> = links.iter_mut().map(Link::listen).collect();
        thread::scope(|scope| {
            let over = &over;
            let running: Vec<_> = links.iter_mut().map(|link| scope.spawn(move || link.run(over))).collect();
            let result = work(self, &events);
            over.store(true, Ordering::Relaxed);
            let ended = running.into_iter().map(|link| match link.join() {
                Ok(report) => report,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let reports = ended.collect::<Result<Vec<_>>>();
            Ok((result?, reports?))
        })
    }

    /// Holds every path against what was asked for.
    fn check(&mut self, stop: &AtomicBool, tell: &dyn Fn(News<'_>)) -> Result<Vec<probe::Check>> {
        let mut checks = Vec::new();
        for group in 0..self.model.groups.len() {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let flow = self.topology.flows.iter().find(|flow| flow.group == group);
            let Some(flow) = flow else { continue };
            let ends = [flow.source, flow.sink]
                .map(|host| (&self.network.hosts[host], self.topology.hosts[host].address));
            let check = probe::check(self.model, group, ends, stop)?;
            tell(News::Line(&check.to_string()));
            check.require()?;
            checks.push(check);
        }
        Ok(checks)
    }

    /// Lets the flows go and looks on until the end. Returns how far it came.
    fn watch(
        &mut self,
        zero: u64,
        events: &[mpsc::Receiver<link::Event>],
        stop: &AtomicBool,
        tell: &dyn Fn(News<'_>),
    ) -> Result<Picos> {
        let mut steps = self.steps();
        let sources = udp::Sources::start(self.model, &self.topology, &self.network, zero)?;
        self.apps.go(zero)?;
        let mut next = 0;
        loop {
            sleep_until(zero + next / PS_PER_NS);
            let now = (monotonic() - zero) * PS_PER_NS;
            while let Some(&(_, direction, rate)) = steps.last().filter(|step| step.0 <= now) {
                self.network.set_rate(direction, rate)?;
                steps.pop();
            }
            self.apps.poll(now, &mut self.flows)?;
            self.look(zero, &sources)?;
            self.listen(events);
            tell(News::Reached { at: now, end: self.model.duration });
            if now >= self.model.duration {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            // What was missed is missed.
            next = (next + self.tick).max(now);
        }
        Ok(self.model.duration)
    }

    /// Changes of rate that the kernel's queues are told of, the first one last.
    fn steps(&self) -> Vec<(Picos, usize, BitRate)> {
        let mut steps = Vec::new();
        for (direction, link) in self.model.links.iter().enumerate() {
            if let (Service::Steps(list), Some(_)) = (&link.port.service, &self.network.shaped[direction]) {
                steps.extend(list.as_slice().iter().skip(1).map(|&(at, rate)| (at, direction, rate)));
            }
        }
        steps.sort_by_key(|&(at, ..)| std::cmp::Reverse(at));
        steps
    }

    /// Reads the counts of the kernel's queues.
    fn queues(&self) -> Result<Vec<Option<Qdisc>>> {
        self.qdiscs.iter().map(|reader| reader.as_ref().map(QdiscReader::read).transpose()).collect()
    }

    /// One look at everything that the kernel counts.
    fn look(&mut self, zero: u64, sources: &udp::Sources) -> Result<()> {
        for direction in 0..self.qdiscs.len() {
            let (Some(reader), Some(base)) = (&self.qdiscs[direction], &self.base[direction]) else {
                continue;
            };
            let now = reader.read()?;
            let at = (monotonic() - zero) * PS_PER_NS;
            // The packet in service waits in there, too.
            let queue_packets = u64::from(now.queue_packets.saturating_sub(1));
            let mean = u64::from(now.queue_bytes / now.queue_packets.max(1));
            let history = &mut self.links[direction];
            history.points.push(LinkPoint {
                at,
                sent: now.bytes - base.bytes,
                queue_packets,
                queue_bytes: u64::from(now.queue_bytes).saturating_sub(mean),
                queue_max: queue_packets,
                law: law_of(self.samplers[direction].as_ref())?,
            });
            history.counts.sent_packets = now.packets.wrapping_sub(base.packets).into();
            let drops = now.drops.wrapping_sub(base.drops);
            if drops > 0 {
                history.counts.drops.insert("full", drops.into());
            }
            if at <= self.model.warmup {
                history.before.sent_packets = history.counts.sent_packets;
                history.before.drops.clone_from(&history.counts.drops);
            }
        }
        self.look_at_sockets(zero)?;
        for (flow, counts) in sources.counts() {
            let at = (monotonic() - zero) * PS_PER_NS;
            let history = &mut self.flows[flow];
            history.points.push(FlowPoint {
                at,
                sent: counts[0],
                delivered: counts[1],
                received: counts[3],
                ..FlowPoint::default()
            });
            history.counts.packets = [counts[2], counts[3]];
            if at <= self.model.warmup {
                history.before = history.counts;
            }
        }
        Ok(())
    }

    fn look_at_sockets(&mut self, zero: u64) -> Result<()> {
        let states = States::of(&[
            State::Established,
            State::FinWait1,
            State::FinWait2,
            State::CloseWait,
            State::LastAck,
            State::Closing,
        ]);
        let mut seen = Vec::with_capacity(self.diags.len());
        for diag in &mut self.diags {
            seen.push((diag.sockets(states, None)?, (monotonic() - zero) * PS_PER_NS));
        }
        for (number, flow) in self.topology.flows.iter().enumerate() {
            let address = self.topology.hosts[flow.sink].address;
            // Whoever has the port: the receiver, or with curl the server. Of several connections
            // (iperf3 has one for its own words, which outlives the data's) the one that carries the data.
            let at = |host: usize| {
                seen[host]
                    .0
                    .iter()
                    .filter(|socket| [socket.local.port(), socket.remote.port()].contains(&flow.port))
                    .filter_map(|socket| socket.info.map(|info| (socket, info)))
            };
            let sender = at(flow.source)
                .filter(|(socket, _)| socket.remote.ip() == address)
                .max_by_key(|(_, info)| info.bytes_sent);
            let last = self.flows[number].points.last().copied().unwrap_or_default();
            let Some((socket, info)) = sender.filter(|(_, info)| info.bytes_sent >= last.sent) else {
                continue;
            };
            let receiver =
                at(flow.sink).find(|(other, _)| other.local == socket.remote && other.remote == socket.local);
            let history = &mut self.flows[number];
            // A FIN counts as a byte.
            let (delivered, received) =
                receiver.map_or((last.delivered, history.counts.packets[1]), |(other, info)| {
                    let fin = u64::from(other.state != State::Established);
                    (info.bytes_received.saturating_sub(fin), info.data_segs_in.into())
                });
            let at = seen[flow.source].1;
            history.points.push(FlowPoint {
                at,
                sent: info.bytes_sent,
                delivered: delivered.max(last.delivered),
                received,
                cwnd: info.snd_cwnd,
                srtt: info.rtt,
            });
            let is_repairing = info.ca_state >= 2;
            history.counts = FlowCounts {
                packets: [info.data_segs_out.into(), received],
                retransmits: info.total_retrans.into(),
                spurious_retransmits: info.dsack_dups.into(),
                timeouts: info.total_rto.into(),
                window_cuts: history.counts.window_cuts + u64::from(is_repairing && !self.in_repair[number]),
            };
            self.in_repair[number] = is_repairing;
            if at <= self.model.warmup {
                history.before = history.counts;
            }
        }
        Ok(())
    }

    /// Takes in the events of the links in user space.
    fn listen(&mut self, events: &[mpsc::Receiver<link::Event>]) {
        for (cable, events) in self.network.cables.iter().zip(events) {
            for event in events.try_iter() {
                let side = usize::from(event.way == Way::Back);
                let Some(direction) = cable.lanes[side] else { continue };
                let mut put = |kind, detail, value| {
                    let element = Element::Link(direction);
                    let event = Event { at: event.at, element, kind, detail, flow: None, value };
                    self.links[direction as usize].note(&event, self.model.warmup);
                    self.events.push(event);
                };
                match event.what {
                    PortEvent::Dropped { reason, .. } => put("drop", reason.name(), 0),
                    PortEvent::Errored { .. } => put("error", "", 0),
                    PortEvent::Marked { .. } => put("mark", "", 0),
                    PortEvent::ControlInterval { report } => {
                        put("control-interval", "", report.decision());
                    }
                    PortEvent::Sample(sample) if cable.has_queue[side] => {
                        let points = &mut self.links[direction as usize].points;
                        let sent = points.last().map_or(0, |last| last.sent) + sample.sent_bytes;
                        points.push(LinkPoint {
                            at: event.at,
                            sent,
                            queue_packets: sample.queue_packets,
                            queue_bytes: sample.queue_bytes,
                            queue_max: sample.queue_max_packets,
                            law: sample.law,
                        });
                    }
                    _ => {}
                }
            }
        }
    }

    /// Takes in the counts of the links in user space.
    fn absorb(&mut self, reports: &[Report]) {
        for (cable, report) in self.network.cables.iter().zip(reports) {
            for (side, traffic) in [&report.forward, &report.back].into_iter().enumerate() {
                let Some(direction) = cable.lanes[side] else { continue };
                let history = &mut self.links[direction as usize];
                history.counts.errors = traffic.errors;
                history.in_flight = traffic.in_flight_end;
                if cable.has_queue[side] {
                    history.counts.sent_packets = traffic.sent_packets;
                    history.counts.drops = traffic.drops_by_reason.clone();
                    history.counts.marks = traffic.marks;
                    let waiting = history.points.last().map_or(0, |point| point.queue_packets);
                    history.in_flight = history.in_flight.saturating_sub(waiting);
                }
            }
        }
    }

    fn checksum_errors(&self) -> Result<u64> {
        let mut sum = 0;
        for host in &self.network.hosts {
            // Of the thread's namespace.
            let text = host.run(|| fs::read_to_string("/proc/thread-self/net/snmp"))?.unwrap_or_default();
            let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
            let (Some(names), Some(values)) = (lines.next(), lines.next()) else { continue };
            let pairs = names.split_whitespace().zip(values.split_whitespace());
            let errors =
                pairs.filter(|(name, _)| *name == "InCsumErrors").map(|(_, value)| value.parse::<u64>());
            sum += errors.flatten().sum::<u64>();
        }
        Ok(sum)
    }

    fn report(
        &self,
        self_check: Vec<probe::Check>,
        reports: &[Report],
        agents: BTreeMap<String, clouds::AgentReport>,
        checksum_errors: u64,
    ) -> Result<LabReport> {
        let mut doubts: Vec<String> = self_check.iter().filter_map(probe::Check::doubt).collect();
        let mut lateness = BTreeMap::new();
        for (cable, report) in self.network.cables.iter().zip(reports) {
            doubts.extend(report.doubts.iter().map(|doubt| format!("link {}, {doubt}", cable.name)));
            lateness.insert(cable.name.clone(), [report.forward.lateness, report.back.lateness]);
        }
        doubts.extend(self.apps.failures());
        doubts.extend(agents.iter().filter_map(|(name, agent)| agent.doubt(name)));
        // What follows says what was measured, not that the machine failed.
        let trustworthy = doubts.is_empty();
        let links = self.model.links.iter().map(|link| link.name.clone()).zip(self.network.choices.clone());
        let mut flows = BTreeMap::new();
        for ((group, congestion), xcp) in self.model.groups.iter().zip(&self.congestion).zip(&self.xcp) {
            let segment = segment(&group.kind);
            let is_source = matches!(group.kind, GroupKind::Source(_));
            let headers = if is_source { udp::HEADERS } else { headers(group) };
            let report = FlowReport {
                congestion: congestion.clone(),
                segment,
                payload: segment.saturating_sub(headers),
                xcp: xcp.as_ref().map(Host::counters).transpose()?,
            };
            doubts.extend(report.fallbacks().map(|text| format!("flows.{} {text}", group.name)));
            flows.insert(group.name.clone(), report);
        }
        let mut routers = BTreeMap::new();
        for (link, sampler) in self.model.links.iter().zip(&self.samplers) {
            if let Some(sampler) = sampler {
                routers.insert(link.name.clone(), sampler.sample()?.0);
            }
        }
        Ok(LabReport {
            trustworthy,
            doubts,
            app: match self.options.app {
                App::Bulk => "bulk",
                App::Iperf3 => "iperf3",
                App::Curl => "curl",
            },
            offloads: if self.options.offloads { "on" } else { "off" },
            links: links.collect(),
            self_check,
            lateness,
            flows,
            agents,
            routers,
            checksum_errors,
        })
    }
}

/// Returns the last decision of a router's program as the simulator reports it.
fn law_of(sampler: Option<&router::Reader>) -> Result<Option<LinkReport>> {
    let Some(sampler) = sampler else { return Ok(None) };
    let (sample, _) = sampler.sample()?;
    if let Some(load) = sample.load {
        let load_factor = (load.load_factor * 1e6).round() as u32;
        return Ok(Some(LinkReport::Mpcp(mpcp::Report {
            intervals: sample.intervals,
            load: load_factor,
            level: u16::from(load.load_code).saturating_sub(1),
            zone: load.load_code,
        })));
    }
    let xcp = xcp::Report {
        intervals: sample.intervals,
        input: Rate(sample.input_Bps),
        feedback: sample.feedback_Bps,
        interval: Duration((sample.interval_ms * 1e6) as u64),
        persistent_queue: Bytes(sample.persistent_queue_bytes),
        bounded: sample.bounded_packets,
    };
    Ok(Some(match sample.flows {
        Some(router::Flows { counted, .. }) => LinkReport::Pxcp(pxcp::PxcpReport { xcp, counted }),
        None => LinkReport::Xcp(xcp),
    }))
}

/// Time between two looks: a fifth of a bin, so that its end is never far from one, and not so many in
/// all that a long run fills the memory.
fn tick(model: &Model) -> Picos {
    const MS: Picos = 1_000_000_000;
    let every = model.sample_every.unwrap_or(model.duration);
    (every / 5).clamp(10 * MS, 50 * MS).max(model.duration / 20_000)
}
