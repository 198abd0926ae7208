//! Makes a network of namespaces: routers, hosts, and between them pairs of virtual interfaces whose
//! packets are queued by the kernel, delayed and lost by a link in user space, or all of it there.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use congestlab_core::law::{LinkConfig, mpcp};
use congestlab_core::units::BitRate;
use congestlab_scenario::net::packet::Picos;
use congestlab_scenario::net::port::{LawConfig, PortConfig};
use congestlab_scenario::net::queue::{Discipline, Limit};
use congestlab_scenario::net::random::Probability;
use congestlab_scenario::net::service::Service;
use congestlab_scenario::net::tcp;
use congestlab_scenario::sim::model::{Group, GroupKind, Model, Pipe};

use crate::Options;
use crate::nodes::Nodes;
use crate::topology::{Topology, segment};
use congestlab_linux::ETHERNET;
use congestlab_linux::error::{Context, Result};
use congestlab_linux::host::Encoding;
use congestlab_linux::link::{Direction, UNLIMITED};
use congestlab_linux::router::{self, Queue};
use congestlab_linux::supervisor::Guard;
use congestlab_linux::sys::command::run;
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::offload::Offloads;

/// The next hop of every route: no interface has an address in common with another, so any will do
/// that the neighbour table knows.
const GATEWAY: &str = "169.254.0.1";
/// Ethernet's usual MTU, for links that no larger packet crosses.
pub(super) const MTU: u16 = 1500;
/// Interfaces are numbered from here, in all namespaces: lo is 1.
const FIRST_INDEX: u32 = 10;
/// A bucket of this much time at the link's rate (docs/design/linux.md 4): a kernel that wakes up within it
/// loses no capacity, and no more than that can leave at once.
const BURST: Picos = 400_000_000;
/// Bytes that the bucket holds at least: three packets.
const BURST_MIN: u64 = 4_600;
/// Bytes in a queue without limit.
const UNLIMITED_QUEUE: u64 = 1 << 30;
/// A receiver without limit advertises this much, and a sender keeps so much: more than any path of
/// a lab has on its way.
const BUFFER_MAX: u32 = 64 << 20;
/// Bytes that a socket may hold unsent before a write waits.
const NOT_SENT: u32 = 1 << 17;

/// A network, ready.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) routers: Vec<Namespace>,
    pub(super) hosts: Vec<Namespace>,
    /// Where links in user space have their ends.
    pub(super) wire: Namespace,
    /// By direction of the model: where the kernel queues, if it does.
    pub(super) shaped: Vec<Option<Shaped>>,
    pub(super) cables: Vec<Cable>,
    /// By direction of the model: what was chosen, in words.
    pub(super) choices: Vec<String>,
    /// By direction of the model: its router.
    heads: Vec<usize>,
}

/// A token bucket at an interface.
#[derive(Clone, Debug)]
pub(super) struct Shaped {
    pub(super) router: usize,
    pub(super) interface: String,
    pub(super) index: i32,
    limit: Limit,
    mtu: u16,
    /// The router's program is there, too.
    pub(super) has_law: bool,
}

/// A link in user space.
#[derive(Clone, Debug)]
pub(super) struct Cable {
    pub(super) interfaces: [String; 2],
    pub(super) directions: [Option<Direction>; 2],
    /// The directions of the model that it carries; a host's own link is none.
    pub(super) lanes: [Option<u32>; 2],
    /// True for the directions whose queue is here, too.
    pub(super) has_queue: [bool; 2],
    /// For people.
    pub(super) name: String,
}

/// One end of a connection.
struct End<'a> {
    namespace: &'a Namespace,
    /// Number of the router, if the end is one.
    router: usize,
    interface: String,
    mtu: u16,
}

/// One direction of a connection.
struct Lane {
    port: PortConfig,
    /// Names its random streams.
    name: String,
    /// In the model; a host's own link has none.
    direction: Option<u32>,
    /// Address by which others know the port, if it runs XCP-i.
    own: Option<Ipv4Addr>,
}

/// Connects namespaces.
struct Builder<'a> {
    wire: &'a Namespace,
    seed: u64,
    sample_every: Picos,
    /// Interfaces keep theirs, but for those that lead into a link in user space.
    offloads: bool,
    encoding: Encoding,
    /// Connections so far.
    count: u32,
    shaped: Vec<Option<Shaped>>,
    cables: Vec<Cable>,
    choices: Vec<String>,
}

/// Why the kernel's own queues can not be this port.
pub(super) fn needs_user_space(port: &PortConfig) -> Option<&'static str> {
    if port.police.is_some() {
        return Some("a policer");
    }
    if port.capacity_from.is_some() {
        return Some("a law that is told its capacity");
    }
    if port.ecn.is_some() {
        return Some("an ECN field that is rewritten");
    }
    match (&port.service, &port.discipline, &port.law) {
        (Service::Trace(_), ..) => Some("a recorded trace"),
        (_, Discipline::Red(_), _) => Some("RED"),
        (_, Discipline::Step(_), _) => Some("step marking"),
        (_, Discipline::XcpTcp(_), _) => Some("two classes"),
        (_, discipline, _) if *discipline != Discipline::DropTail => Some(discipline.name()),
        (_, _, Some(LawConfig { config: LinkConfig::Mpcp(config), .. })) if config.n > 2 => {
            Some("chains that the checksum tells")
        }
        (_, _, Some(law)) if law_of(law, Encoding::Option, None).is_none() => {
            Some("a law that is neither XCP, P-XCP, VCP nor DPCP")
        }
        // The router's program learns of a new rate as its new capacity.
        (Service::Steps(_), _, Some(LawConfig { follows_service: false, .. })) => {
            Some("a law with a capacity of its own on a link with steps")
        }
        _ => None,
    }
}

/// The law as the kernel runs it, and where it travels: XCP's header as this says. `None`: the kernel has it not. A port with an
/// address of its own runs XCP-i.
fn law_of(law: &LawConfig, encoding: Encoding, own: Option<Ipv4Addr>) -> Option<(router::Law, Encoding)> {
    match (&law.config, own) {
        (LinkConfig::Xcp(config), Some(own)) => Some((router::Law::XcpI(*config, own), Encoding::Shim)),
        (LinkConfig::Xcp(config), None) => Some((router::Law::Xcp(*config), encoding)),
        (LinkConfig::Pxcp(config), None) => Some((router::Law::Pxcp(*config), encoding)),
        (LinkConfig::Mpcp(config), None) if config.n == 1 || is_dpcp(config) => {
            Some((router::Law::Mpcp(*config), Encoding::Ecn))
        }
        _ => None,
    }
}

/// True for chains of two as the kernel's program tells them apart and marks them.
fn is_dpcp(config: &mpcp::LinkConfig) -> bool {
    config.n == 2 && config.order == mpcp::Order::Swap && config.algorithm_2 == mpcp::Algorithm2::Corrected
}

/// The part of a port that is left for a link in user space when the kernel has the queue.
fn wire_of(port: &PortConfig) -> Option<PortConfig> {
    let has_wire = port.delay > 0 || port.errors.is_some() || port.ack_loss != Probability::ZERO;
    has_wire.then(|| PortConfig {
        errors: port.errors,
        ack_loss: port.ack_loss,
        ..PortConfig::new(UNLIMITED, port.delay, Limit::None)
    })
}

impl Network {
    pub(super) fn build(
        guard: &Guard,
        topology: &Topology,
        nodes: &Nodes,
        model: &Model,
        sample_every: Picos,
        options: &Options,
    ) -> Result<Self> {
        let mtu = model.groups.iter().map(|group| segment(&group.kind)).fold(MTU, u16::max);
        let routers =
            topology.routers.iter().map(|name| guard.namespace(name)).collect::<Result<Vec<_>>>()?;
        let hosts =
            topology.hosts.iter().map(|host| guard.namespace(&host.name)).collect::<Result<Vec<_>>>()?;
        let wire = guard.namespace("wire")?;
        for namespace in routers.iter().chain(&hosts).chain([&wire]) {
            namespace.run(quiet)??;
        }
        for router in &routers {
            router.run(forward)??;
        }
        let mut builder = Builder {
            wire: &wire,
            seed: model.seed,
            sample_every,
            offloads: options.offloads,
            encoding: options.encoding,
            count: 0,
            shaped: vec![None; model.links.len()],
            cables: Vec::new(),
            choices: vec![String::new(); model.links.len()],
        };
        for (index, ends) in topology.links.iter().enumerate() {
            let end = |side: usize| End {
                namespace: &routers[ends[side]],
                router: ends[side],
                interface: format!("link{index}{}", ["a", "b"][side]),
                mtu,
            };
            let lane = |side: usize| {
                let link = &model.links[2 * index + side];
                let direction = (2 * index + side) as u32;
                let own = nodes.address_at(model, ends[side], direction);
                Some(Lane {
                    port: link.port.clone(),
                    name: link.name.clone(),
                    direction: Some(direction),
                    own,
                })
            };
            builder.connect([end(0), end(1)], [lane(0), lane(1)])?;
        }
        for (number, host) in topology.hosts.iter().enumerate() {
            let group = &model.groups[host.group];
            let kind = &group.kind;
            let (near, far) = (format!("host{number}"), format!("host{number}r"));
            let own = segment(kind);
            let ends = [
                End { namespace: &hosts[number], router: 0, interface: near.clone(), mtu: own },
                End { namespace: &routers[host.router], router: host.router, interface: far.clone(), mtu },
            ];
            let lane = || {
                host.pipe.map(|pipe| Lane {
                    port: port_of(pipe),
                    name: host.name.clone(),
                    direction: None,
                    own: None,
                })
            };
            builder.connect(ends, [lane(), lane()])?;
            let (name, address) = (hosts[number].name(), host.address);
            run(&format!("ip -n {name} address add {address}/32 dev {near}"))?;
            let options = route_options(group, host.is_source);
            run(&format!(
                "ip -n {name} route add default via {GATEWAY} dev {near} onlink src {address}{options}"
            ))?;
            let router = routers[host.router].name();
            run(&format!("ip -n {router} route add {address}/32 via {GATEWAY} dev {far} onlink"))?;
            hosts[number].run(|| tune(kind))??;
        }
        for (&(router, host), &direction) in &topology.routes {
            let interface = format!("link{}{}", direction / 2, ["a", "b"][direction as usize % 2]);
            let (name, address) = (routers[router].name(), topology.hosts[host].address);
            run(&format!("ip -n {name} route add {address}/32 via {GATEWAY} dev {interface} onlink"))?;
        }
        for (&router, node) in &nodes.routers {
            let (name, address) = (routers[router].name(), node.address);
            run(&format!("ip -n {name} link set dev lo up"))?;
            run(&format!("ip -n {name} address add {address}/32 dev lo"))?;
        }
        for (&(router, node), &direction) in &nodes.ways {
            let interface = format!("link{}{}", direction / 2, ["a", "b"][direction as usize % 2]);
            let (name, address) = (routers[router].name(), nodes.routers[&node].address);
            run(&format!("ip -n {name} route add {address}/32 via {GATEWAY} dev {interface} onlink"))?;
        }
        let Builder { shaped, cables, choices, .. } = builder;
        let heads = topology.links.as_flattened().to_vec();
        Ok(Self { routers, hosts, wire, shaped, cables, choices, heads })
    }

    /// The router and interface at which a direction of the model begins.
    pub(super) fn head(&self, direction: usize) -> (&Namespace, String) {
        let interface = format!("link{}{}", direction / 2, ["a", "b"][direction % 2]);
        (&self.routers[self.heads[direction]], interface)
    }

    /// Gives a direction of the model another rate from now on.
    pub(super) fn set_rate(&self, direction: usize, rate: BitRate) -> Result<()> {
        let Some(shaped) = &self.shaped[direction] else { return Ok(()) };
        let router = &self.routers[shaped.router];
        if shaped.has_law {
            return router.run(|| router::set_rate(&shaped.interface, rate))?;
        }
        run(&shaped.line("change", router, rate)).map(drop)
    }
}

impl Builder<'_> {
    fn connect(&mut self, ends: [End<'_>; 2], lanes: [Option<Lane>; 2]) -> Result<()> {
        let id = self.count;
        self.count += 1;
        let reasons =
            lanes.each_ref().map(|lane| lane.as_ref().and_then(|lane| needs_user_space(&lane.port)));
        let mut directions = [None, None];
        for (side, lane) in lanes.iter().enumerate() {
            let Some(Lane { port, name, direction, own }) = lane else { continue };
            let user = if reasons[side].is_some() {
                Some(PortConfig { sample_every: Some(self.sample_every), ..port.clone() })
            } else {
                wire_of(port)
            };
            if let Some(direction) = direction {
                self.choices[*direction as usize] = choice(port, reasons[side], own.is_some());
            }
            directions[side] = user.map(|port| Direction::new(port, self.seed, name));
        }

        let mac = |side: u32| format!("02:c1:00:{:02x}:{:02x}:{side:02x}", id / 256, id % 256);
        let [one, other] = &ends;
        let index = |side: u32| FIRST_INDEX + 2 * id + side;
        let end = |interface: &str, namespace: &Namespace, side: u32| {
            let (index, mac, netns) = (index(side), mac(side), namespace.name());
            format!("name {interface} index {index} address {mac} netns {netns}")
        };
        let pair = |a: String, b: String| run(&format!("ip link add {a} type veth peer {b}"));
        let near = end(&one.interface, one.namespace, 0);
        let far = end(&other.interface, other.namespace, 1);
        let is_wire = directions.iter().any(Option::is_some);
        if is_wire {
            let wires = [format!("wire{id}a"), format!("wire{id}b")];
            // The frames keep the addresses of the outer ends.
            pair(near, end(&wires[0], self.wire, 0).replace("02:c1:00", "02:c1:01"))?;
            pair(end(&wires[1], self.wire, 1).replace("02:c1:00", "02:c1:01"), far)?;
            let mtu = one.mtu.max(other.mtu);
            for wire in &wires {
                run(&format!("ip -n {} link set dev {wire} up mtu {mtu}", self.wire.name()))?;
            }
            let name = lanes.iter().flatten().next().map_or_else(String::new, |lane| lane.name.clone());
            self.cables.push(Cable {
                interfaces: wires,
                directions,
                lanes: lanes.each_ref().map(|lane| lane.as_ref().and_then(|lane| lane.direction)),
                has_queue: reasons.map(|reason| reason.is_some()),
                name,
            });
        } else {
            pair(near, far)?;
        }

        for (side, End { namespace, router, interface, mtu }) in ends.iter().enumerate() {
            let (name, peer) = (namespace.name(), mac(1 - side as u32));
            run(&format!("ip -n {name} link set dev {interface} up mtu {mtu}"))?;
            run(&format!(
                "ip -n {name} neighbour add {GATEWAY} dev {interface} lladdr {peer} nud permanent"
            ))?;
            // A wire carries packets one by one, with their checksums.
            if is_wire || !self.offloads {
                namespace.run(|| Offloads::off(interface).map(Offloads::keep))??;
            }
            let Some(Lane { port, direction, own, .. }) = &lanes[side] else { continue };
            if reasons[side].is_some() {
                continue;
            }
            let shaped = Shaped {
                router: *router,
                interface: interface.clone(),
                index: index(side as u32) as i32,
                limit: port.limit,
                mtu: *mtu,
                has_law: port.law.is_some(),
            };
            shaped.create(namespace, port, self.encoding, *own)?;
            if let Some(direction) = direction {
                self.shaped[*direction as usize] = Some(shaped);
            }
        }
        Ok(())
    }
}

impl Shaped {
    fn create(
        &self,
        namespace: &Namespace,
        port: &PortConfig,
        encoding: Encoding,
        own: Option<Ipv4Addr>,
    ) -> Result<()> {
        let rate = port.service.rate_at(0);
        let Some((law, encoding)) = port.law.as_ref().and_then(|law| law_of(law, encoding, own)) else {
            run(&self.line("add", namespace, rate))?;
            return run(&self.queue(namespace)).map(drop);
        };
        let queue = match self.limit {
            Limit::Packets(_) => Queue::Packets(self.room().try_into().unwrap_or(u32::MAX)),
            _ => Queue::Bytes(self.room()),
        };
        let config = router::Config { rate, law, encoding, shape: Some(queue) };
        namespace.run(|| router::attach(&self.interface, &config))?
    }

    /// The command that makes the token bucket, or changes its rate. The overhead makes it count IP
    /// bytes: it sees the Ethernet header, too.
    fn line(&self, verb: &str, namespace: &Namespace, rate: BitRate) -> String {
        let (netns, interface) = (namespace.name(), &self.interface);
        let burst = burst(rate, self.mtu);
        // A change also gives the queue below this limit, in its own unit.
        let limit = self.room();
        format!(
            "tc -n {netns} qdisc {verb} dev {interface} root handle 1: stab overhead -14 tbf rate {}bit \
             burst {burst} limit {limit}",
            rate.0
        )
    }

    /// The command that makes the queue.
    fn queue(&self, namespace: &Namespace) -> String {
        let kind = if matches!(self.limit, Limit::Packets(_)) { "pfifo" } else { "bfifo" };
        let (netns, interface, limit) = (namespace.name(), &self.interface, self.room());
        format!("tc -n {netns} qdisc add dev {interface} parent 1:1 handle 10: {kind} limit {limit}")
    }

    /// The queue holds the packet in service, too, which docs/design/contract.md 2 does not count.
    fn room(&self) -> u64 {
        match self.limit {
            Limit::Packets(packets) => packets + 1,
            Limit::Bytes(bytes) => bytes + u64::from(self.mtu),
            Limit::None => UNLIMITED_QUEUE,
        }
    }
}

/// Bytes in a token bucket of ours.
fn burst(rate: BitRate, mtu: u16) -> u64 {
    let bytes = u128::from(rate.0) * u128::from(BURST) / 8 / 1_000_000_000_000;
    (bytes as u64).max(BURST_MIN).max(2 * u64::from(mtu))
}

/// Bytes that leave a port at once when the kernel queues for it.
pub(super) fn bucket(port: &PortConfig, rate: BitRate, mtu: u16) -> u64 {
    match port.law {
        Some(_) => router::burst(rate, u32::from(mtu) + ETHERNET),
        None => burst(rate, mtu),
    }
}

/// A host's own link, as docs/design/contract.md 3 has it.
pub(super) fn port_of(pipe: Pipe) -> PortConfig {
    PortConfig::new(Service::Fixed(pipe.rate), pipe.delay, Limit::None)
}

/// Says in words where a direction is queued and delayed.
fn choice(port: &PortConfig, reason: Option<&str>, is_interoperable: bool) -> String {
    let ms = port.delay as f64 / 1e9;
    let kernel = match port.law.as_ref().map(|law| &law.config) {
        Some(_) if is_interoperable => "kernel (tbf and the XCP-i program)",
        Some(LinkConfig::Mpcp(config)) if config.n > 1 => "kernel (tbf and the DPCP program)",
        Some(LinkConfig::Mpcp(_)) => "kernel (tbf and the VCP program)",
        Some(LinkConfig::Pxcp(_)) => "kernel (tbf and the P-XCP program)",
        Some(_) => "kernel (tbf and the XCP program)",
        None => "kernel (tbf)",
    };
    match (reason, wire_of(port)) {
        (Some(reason), _) => format!("user-space link, for {reason}"),
        (None, None) => kernel.into(),
        (None, Some(wire)) => {
            let loss =
                if wire.errors.is_some() || wire.ack_loss != Probability::ZERO { " and losses" } else { "" };
            format!("{kernel}, user-space link for {ms} ms{loss}")
        }
    }
}

/// Sets a parameter of the calling thread's namespace.
fn set(key: &str, value: &str) -> Result<()> {
    match fs::write(format!("/proc/sys/net/{key}"), value) {
        // Such as IPv6 where the kernel has none.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.context(|| format!("can not set net/{key} to {value}")),
    }
}

/// Nothing of its own on the wire, and everything is forwarded whichever way it came.
fn quiet() -> Result<()> {
    for scope in ["all", "default"] {
        set(&format!("ipv6/conf/{scope}/disable_ipv6"), "1")?;
        set(&format!("ipv4/conf/{scope}/rp_filter"), "0")?;
    }
    Ok(())
}

fn forward() -> Result<()> {
    set("ipv4/ip_forward", "1")?;
    set("ipv4/conf/all/send_redirects", "0")?;
    set("ipv4/conf/default/send_redirects", "0")
}

/// TCP of a host, as the scenario has it where a namespace can say so.
fn tune(kind: &GroupKind) -> Result<()> {
    let GroupKind::Tcp(config) = kind else { return Ok(()) };
    let has_sack = config.recovery.has_sack();
    set("ipv4/tcp_sack", if has_sack { "1" } else { "0" })?;
    set("ipv4/tcp_ecn", if config.ecn { "1" } else { "0" })?;
    // One flow learns nothing from another.
    set("ipv4/tcp_no_metrics_save", "1")?;
    set("ipv4/tcp_rmem", &format!("4096 {BUFFER_MAX} {BUFFER_MAX}"))?;
    set("ipv4/tcp_wmem", &format!("4096 1048576 {BUFFER_MAX}"))?;
    if !matches!(config.app, tcp::App::Bursts { .. }) {
        // What was written and not sent is sent after the flow's stop: little.
        set("ipv4/tcp_notsent_lowat", &NOT_SENT.to_string())?;
    }
    Ok(())
}

/// Options by which a host's route tells TCP about the path (ip-route(8)).
fn route_options(group: &Group, is_source: bool) -> String {
    let GroupKind::Tcp(config) = &group.kind else { return String::new() };
    let mut options = String::new();
    if is_source {
        // The kernel has whole milliseconds.
        let rto = config.min_rto.0.div_ceil(1_000_000);
        options += &format!(" initcwnd {} rto_min {rto}ms", config.initial_window);
    } else if !config.delayed_ack {
        options += " quickack 1";
    }
    options
}
