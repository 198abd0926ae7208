//! XCP-i in a lab: which routers are its nodes, by which addresses they know each other and how these are reached, and an agent at each.
//!
//! A simulated message takes the links that its cloud has. A real one is forwarded by its address, so that it is refused where two ways
//! lead from a router to a node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde::Serialize;

use crate::network::Network;
use crate::nodes::{Exchange, Nodes};
use crate::topology::Topology;
use congestlab_linux::edge::{Agent, EXCHANGE, PORT, Stats};
use congestlab_linux::error::Result;
use congestlab_linux::router::clouds::{Peer, Sharing, Table};
use congestlab_linux::sys::netns::Namespace;

/// Trains from which nothing followed, of ten, that are reason for doubt: their probes were late, or too few came.
const SPOILT: u64 = 3;

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
            agents.add(&topology.routers[router], &network.routers[router], node.exchange, node.sharing)?;
        }
        for &host in &nodes.hosts {
            agents.add(&topology.hosts[host].name, &network.hosts[host], EXCHANGE, Sharing::default())?;
        }
        Ok(agents)
    }

    fn add(&mut self, name: &str, namespace: &Namespace, exchange: Exchange, sharing: Sharing) -> Result<()> {
        // Its socket and its table belong to the namespace, whoever uses them.
        let mut agent = namespace.run(|| Agent::asking(PORT, &[], exchange))??;
        let table = namespace.run(Table::here)??;
        table.as_ref().map_or(Ok(()), |table| table.share(sharing))?;
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
