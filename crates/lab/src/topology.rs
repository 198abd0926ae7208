//! The network of a scenario: its routers, the places of its hosts, and the routes of its flows.
//!
//! A simulated packet follows its flow's list of links. A real one is forwarded by address, so links need
//! two ends: the far end of a link is the router where the next link of every path that crosses it begins.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use congestlab_core::units::Time;
use congestlab_scenario::Scenario;
use congestlab_scenario::net::packet::Picos;
use congestlab_scenario::sim;
use congestlab_scenario::sim::model::{GroupKind, Model, Pipe};

use congestlab_linux::error::{Error, Result};

/// More flows than this on one machine measure the machine.
pub(super) const FLOWS_MAX: u32 = 64;
/// Port of the first flow's receiver; the others follow.
const PORT: u16 = 5201;

/// A network of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Topology {
    /// Names of routers.
    pub routers: Vec<String>,
    /// For each link of the scenario (two directions of the model) the routers at its ends: where it
    /// begins, where it ends.
    pub links: Vec<[usize; 2]>,
    /// Where flows come from and go to.
    pub hosts: Vec<Host>,
    /// All flows, in the order of the model.
    pub flows: Vec<Flow>,
    /// By router and host: the direction of the model that leads there.
    pub routes: BTreeMap<(usize, usize), u32>,
}

/// A namespace with one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// `ftp-src`, `ftp-3-dst`.
    pub name: String,
    /// Index of its group of flows.
    pub group: usize,
    /// Data come from here.
    pub is_source: bool,
    /// Where it is attached.
    pub router: usize,
    /// The link between it and the router, if it has one of its own.
    pub pipe: Option<Pipe>,
    /// Address of the host.
    pub address: Ipv4Addr,
}

/// One flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    /// Index of its group.
    pub group: usize,
    /// Number in its group.
    pub index: u32,
    /// Host that data come from.
    pub source: usize,
    /// Host that data go to.
    pub sink: usize,
    /// Port of whoever listens.
    pub port: u16,
    /// When it starts.
    pub start: Time,
}

impl Topology {
    /// The network for a scenario.
    ///
    /// # Errors
    /// [`Error::Input`] if real packets could not follow the paths.
    pub(super) fn new(scenario: &Scenario, model: &Model) -> Result<Self> {
        let total: u64 = model.groups.iter().map(|group| u64::from(group.count)).sum();
        if total > FLOWS_MAX.into() {
            return Err(Error::input(
                format!("{total} flows are more than a live lab can hold"),
                format!(
                    "allowed: up to {FLOWS_MAX}, each of which takes its share of this machine; or simulate them"
                ),
            ));
        }
        let (routers, tails) = routers(scenario, model)?;
        let links = tails.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        let mut topology = Self { routers, links, ..Self::default() };
        for index in 0..model.groups.len() {
            topology.add_group(model, index)?;
        }
        Ok(topology)
    }

    fn add_group(&mut self, model: &Model, index: usize) -> Result<()> {
        let group = &model.groups[index];
        let first = group.path.first().copied().unwrap_or(0) as usize;
        let last = group.path.last().copied().unwrap_or(0) as usize;
        // The end of a direction is where the other one begins.
        let ends = [self.router_of(first), self.router_of(last ^ 1)];
        let mut shared = [None; 2];
        for (flow, start) in (0..).zip(sim::starts_of(group, model.seed)) {
            let mut hosts = [0; 2];
            for (side, pipe) in [group.access, group.exit].into_iter().enumerate() {
                hosts[side] = match (pipe, shared[side]) {
                    (None, Some(host)) => host,
                    _ => self.add_host(&group.name, index, flow, side, ends[side], pipe)?,
                };
                shared[side] = Some(hosts[side]);
                self.add_routes(&group.name, if side == 0 { &group.back } else { &group.path }, hosts[side])?;
            }
            self.flows.push(Flow {
                group: index,
                index: flow,
                source: hosts[0],
                sink: hosts[1],
                port: PORT + self.flows.len() as u16,
                start,
            });
        }
        Ok(())
    }

    fn router_of(&self, direction: usize) -> usize {
        self.links[direction / 2][direction % 2]
    }

    fn add_host(
        &mut self,
        group_name: &str,
        group: usize,
        flow: u32,
        side: usize,
        router: usize,
        pipe: Option<Pipe>,
    ) -> Result<usize> {
        let number = self.hosts.len();
        let kind = ["src", "dst"][side];
        let name = match pipe {
            None => format!("{}-{kind}", label(group_name)),
            Some(_) => format!("{}-{flow}-{kind}", label(group_name)),
        };
        // At most two for each flow, which are few.
        let address = Ipv4Addr::new(10, 77, number as u8, 1);
        self.hosts.push(Host { name, group, is_source: side == 0, router, pipe, address });
        Ok(number)
    }

    /// Along a path, every router knows by which direction to reach the host at its end.
    fn add_routes(&mut self, group: &str, path: &[u32], host: usize) -> Result<()> {
        let mut visited = vec![self.hosts[host].router];
        for &direction in path.iter().rev() {
            let router = self.router_of(direction as usize);
            if visited.contains(&router) {
                return Err(Error::input(
                    format!("the path of flows.{group} crosses the router {} twice", self.routers[router]),
                    "packets are forwarded by their address, which leads one way from each router; simulate it",
                ));
            }
            visited.push(router);
            self.routes.insert((router, host), direction);
        }
        Ok(())
    }

    /// Propagation to the host's router and on, one way, by the flow's path; access and exit included.
    pub(super) fn delay(model: &Model, group: usize) -> Picos {
        let group = &model.groups[group];
        let links: Picos = group.path.iter().map(|&at| model.links[at as usize].port.delay).sum();
        links + [group.access, group.exit].into_iter().flatten().map(|pipe| pipe.delay).sum::<Picos>()
    }
}

/// Bytes of a whole data packet of a group.
pub(super) fn segment(kind: &GroupKind) -> u16 {
    match kind {
        GroupKind::Tcp(config) => config.segment,
        GroupKind::Source(config) => config.segment,
    }
}

/// A name as part of a namespace's.
fn label(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    name.chars().take(24).map(plain).collect()
}

/// Names of routers, and at which of them each direction begins.
fn routers(scenario: &Scenario, model: &Model) -> Result<(Vec<String>, Vec<usize>)> {
    let names = scenario.routers();
    let mut same: Vec<usize> = (0..model.links.len()).collect();
    fn find(same: &[usize], mut at: usize) -> usize {
        while same[at] != at {
            at = same[at];
        }
        at
    }
    let mut join = |one: usize, other: usize| {
        let (one, other) = (find(&same, one), find(&same, other));
        same[one.max(other)] = one.min(other);
    };
    for (index, name) in names.iter().enumerate() {
        if let Some(first) = names[..index].iter().position(|other| other == name) {
            join(first, index);
        }
    }
    for group in &model.groups {
        for hop in group.path.windows(2) {
            // Where the first ends its opposite begins.
            join(hop[0] as usize ^ 1, hop[1] as usize);
        }
    }
    let mut routers: Vec<String> = Vec::new();
    let mut number = BTreeMap::new();
    let mut tails = Vec::new();
    for direction in 0..model.links.len() {
        let root = find(&same, direction);
        let router = *number.entry(root).or_insert_with(|| {
            let plain = label(names[root]);
            let is_taken = routers.contains(&plain);
            routers.push(if is_taken { format!("{plain}-{root}") } else { plain });
            routers.len() - 1
        });
        tails.push(router);
    }
    for (index, ends) in tails.chunks_exact(2).enumerate() {
        if ends[0] == ends[1] {
            return Err(Error::input(
                format!(
                    "links.{} begins and ends at the router {}",
                    model.links[2 * index].name,
                    routers[ends[0]]
                ),
                "two links of one path that have the same `at` follow each other at one router, which real \
                 packets can not; give them routers of their own",
            ));
        }
    }
    Ok((routers, tails))
}
