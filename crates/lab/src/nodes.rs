//! The nodes of XCP-i in a lab: routers that run it, and the ways between them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub(super) use congestlab_core::law::xcp_i::Config as Exchange;
use congestlab_linux::error::{Error, Result};
use congestlab_linux::router::clouds::Sharing;
use congestlab_scenario::sim::cloud;
use congestlab_scenario::sim::model::Model;

use crate::topology::Topology;

/// A router that is a node of XCP-i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Address by which other nodes know it, and ask it.
    pub(super) address: Ipv4Addr,
    /// Times of what it asks.
    pub(super) exchange: Exchange,
    /// How its virtual routers share what clouds have.
    pub(super) sharing: Sharing,
}

/// The nodes of a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nodes {
    /// Routers, by their number.
    pub(super) routers: BTreeMap<usize, Node>,
    /// Hosts that are asked by the router behind their cloud.
    pub(super) hosts: Vec<usize>,
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
                let (release, give_back) = (router.config.release, router.config.give_back);
                let node = Node {
                    address: Ipv4Addr::new(10, 78, high, low),
                    exchange: router.config.exchange,
                    sharing: Sharing { release, give_back },
                };
                let known = *nodes.routers.entry(number).or_insert(node);
                if known != node {
                    return Err(Error::input(
                        format!(
                            "links.{}: XCP-i asks at other times, or shares otherwise, than at other ports of its router {}",
                            model.links[link as usize].name, topology.routers[number]
                        ),
                        "a router has one agent: write release, give_back, period, request_timeout, attempts, backoff, idle and stale alike",
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
