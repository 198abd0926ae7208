//! XCP-i in a lab: which routers are its nodes, by which addresses they know each other and how these are reached, and an agent at each.
//!
//! A simulated message takes the links that its cloud has. A real one is forwarded by its address, so that it is refused where two ways
//! lead from a router to a node.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use congestlab_core::law::xcp_i::Config as Exchange;
use congestlab_scenario::sim::cloud;
use congestlab_scenario::sim::model::Model;
use serde::Serialize;

use super::network::Network;
use super::topology::Topology;
use crate::edge::{Agent, EXCHANGE, PORT, Stats};
use crate::error::{Error, Result};
use crate::router::clouds::{Peer, Table};
use crate::sys::netns::Namespace;

/// Trains from which nothing followed, of ten, that are reason for doubt: their probes were late, or too few came.
const SPOILT: u64 = 3;

/// A router that is a node of XCP-i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Address by which other nodes know it, and ask it.
    pub(super) address: Ipv4Addr,
    /// Times of what it asks.
    exchange: Exchange,
}

/// The nodes of a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nodes {
    /// Routers, by their number.
    pub(super) routers: BTreeMap<usize, Node>,
    /// Hosts that are asked by the router behind their cloud.
    hosts: Vec<usize>,
    /// By router, and the node to reach from it: the direction of the model that leads there.
    pub(super) ways: BTreeMap<(usize, usize), u32>,
}

impl Nodes {
    /// Finds the nodes of a scenario, and the ways between those that follow each other on a path.
    ///
    /// # Errors
    /// [`Error::Input`] if two ways lead from a router to a node, or two nodes of the scenario are one router that asks at different times.
    pub(super) fn new(model: &Model, topology: &Topology) -> Result<Self> {
        let mut nodes = Self::default();
        let owners = cloud::routers(model);
        let head = |direction: u32| topology.links[direction as usize / 2][direction as usize % 2];
        for device in &model.devices {
            let Some(router) = device.router() else { continue };
            for &link in &device.links {
                let number = head(link);
                // One network holds them all: a link is two bytes of it.
                let [.., high, low] = (number as u32).to_be_bytes();
                let node =
                    Node { address: Ipv4Addr::new(10, 78, high, low), exchange: router.config.exchange };
                let known = *nodes.routers.entry(number).or_insert(node);
                if known.exchange != node.exchange {
                    return Err(Error::input(
                        format!(
                            "links.{}: XCP-i asks at other times than at other ports of its router {}",
                            model.links[link as usize].name, topology.routers[number]
                        ),
                        "a router has one agent: write period, request_timeout, attempts, backoff, idle and stale alike",
                    ));
                }
            }
        }
        for (index, group) in
            model.groups.iter().enumerate().filter(|(_, group)| group.interoperable.is_some())
        {
            let is_node = |direction: u32| owners[direction as usize].is_some();
            if group.path.first().is_some_and(|&first| !is_node(first)) {
                let hosts = topology.hosts.iter().enumerate();
                let of = hosts.filter(|(_, host)| host.group == index && host.is_source);
                nodes.hosts.extend(of.map(|(number, _)| number));
            }
            // Everything that a node sends to one on the same path goes along the path, or back along it.
            for (place, &direction) in group.path.iter().enumerate().filter(|(_, at)| is_node(**at)) {
                let node = head(direction);
                let there = group.path[..place].iter().map(|&before| (head(before), before));
                let back = group.path[place..].iter().map(|&behind| (head(behind ^ 1), behind ^ 1));
                for (router, way) in there.chain(back) {
                    let known = *nodes.ways.entry((router, node)).or_insert(way);
                    if known != way {
                        return Err(Error::input(
                            format!(
                                "two ways lead from the router {} to {}, which is asked for what a cloud carries: links.{} and links.{}",
                                topology.routers[router],
                                topology.routers[node],
                                model.links[known as usize].name,
                                model.links[way as usize].name
                            ),
                            "packets are forwarded by their address, which leads one way; give it one, or simulate it",
                        ));
                    }
                }
            }
        }
        Ok(nodes)
    }

    /// Returns the address of the router at which a direction begins, if it is a node and the direction is one of XCP-i.
    pub(super) fn address_at(&self, model: &Model, router: usize, direction: u32) -> Option<Ipv4Addr> {
        let is_own =
            model.devices.iter().any(|device| device.router().is_some() && device.links.contains(&direction));
        self.routers.get(&router).filter(|_| is_own).map(|node| node.address)
    }
}

/// Counts of an agent, and what it knows at the end.
#[derive(Clone, Debug, Serialize)]
pub struct AgentReport {
    /// Counts of the agent.
    #[serde(flatten)]
    pub stats: Stats,
    /// Routers before clouds; none of a host.
    pub peers: Vec<Peer>,
}

impl AgentReport {
    /// Returns why what it found is not to be trusted.
    pub(super) fn doubt(&self, name: &str) -> Option<String> {
        let Stats { estimates, spoilt, broken, .. } = self.stats;
        if spoilt > 0 && spoilt * 10 > SPOILT * (estimates + spoilt) {
            return Some(format!(
                "agent of {name}: nothing followed from {spoilt} of {} trains, whose probes were late or did not come",
                estimates + spoilt
            ));
        }
        (broken > 0).then(|| format!("agent of {name}: {broken} requests had no answer"))
    }
}

/// Agents that run, each in its namespace, until they are ended or dropped.
#[derive(Debug)]
pub(super) struct Agents {
    stop: Arc<AtomicBool>,
    running: Vec<(String, JoinHandle<Result<AgentReport>>)>,
}

impl Agents {
    pub(super) fn start(nodes: &Nodes, topology: &Topology, network: &Network) -> Result<Self> {
        let mut agents = Self { stop: Arc::default(), running: vec![] };
        for (&router, node) in &nodes.routers {
            agents.add(&topology.routers[router], &network.routers[router], node.exchange)?;
        }
        for &host in &nodes.hosts {
            agents.add(&topology.hosts[host].name, &network.hosts[host], EXCHANGE)?;
        }
        Ok(agents)
    }

    fn add(&mut self, name: &str, namespace: &Namespace, exchange: Exchange) -> Result<()> {
        // Its socket and its table belong to the namespace, whoever uses them.
        let mut agent = namespace.run(|| Agent::asking(PORT, exchange))??;
        let table = namespace.run(Table::here)??;
        let stop = self.stop.clone();
        let running = thread::spawn(move || {
            agent.run(&stop, |_| ())?;
            let peers = table.map_or(Ok(vec![]), |table| table.peers())?;
            Ok(AgentReport { stats: agent.stats(), peers })
        });
        self.running.push((name.into(), running));
        Ok(())
    }

    /// Ends them, and returns what they did, by their routers' and hosts' names.
    pub(super) fn end(mut self) -> Result<BTreeMap<String, AgentReport>> {
        self.stop.store(true, Ordering::Relaxed);
        let running = std::mem::take(&mut self.running).into_iter();
        running
            .map(|(name, agent)| match agent.join() {
                Ok(report) => Ok((name, report?)),
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for (_, agent) in self.running.drain(..) {
            let _ = agent.join();
        }
    }
}
