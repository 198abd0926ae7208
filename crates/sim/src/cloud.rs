//! Clouds: runs of links without XCP-i between two XCP-i nodes on the path of a flow.
//!
//! The nodes are routers (all ports of the same [`Device`](crate::model::Device)) and both hosts of a
//! flow that is interoperable (XI III-B). What the two edges of a cloud say to each other travels on
//! the links between them, as data does: from the upstream edge on the path, from the downstream
//! edge on the way that acknowledgments take.

use std::collections::BTreeMap;

use congestlab_core::law::xcp_i::Address;

use crate::model::{Estimator, Model};

/// Number of addresses on each side of the network. Senders have addresses from 10.0.0.1 on, receivers from
/// 10.128.0.1 on; flows beyond that number use them again.
pub const HOSTS: u32 = (1 << 23) - 2;

/// Returns the address of the sender of `flow`, an index over the whole run.
pub const fn sender_address(flow: u32) -> Address {
    Address((10 << 24) + 1 + flow % HOSTS)
}

/// Returns the address of the receiver of `flow`, an index over the whole run.
pub const fn receiver_address(flow: u32) -> Address {
    Address((10 << 24 | 1 << 23) + 1 + flow % HOSTS)
}

/// Returns the address of the router `index`, an index into [`Model::devices`]: 172.16.0.1 for the first.
pub const fn router_address(index: u32) -> Address {
    Address((172 << 24 | 16 << 16) + 1 + index)
}

/// Maps the index of a router to the [`Packet::flow`](congestlab_net::packet::Packet::flow) of packets that
/// are addressed to it, and such a flow back to the index.
pub const fn router_flow(index: u32) -> u32 {
    u32::MAX - index
}

/// The XCP-i node at an edge of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A router: index into [`Model::devices`].
    Router(u32),
    /// The senders of the group with this index; each of them is a node.
    Sender(u32),
    /// The receivers of the group with this index; each of them is a node.
    Receiver(u32),
}

/// A cloud on the path of a group of flows: links without XCP-i between two XCP-i nodes. Links are indices
/// into [`Model::links`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cloud {
    /// Upstream edge; the papers' router k-1.
    pub up: Node,
    /// Downstream edge; the papers' router k.
    pub down: Node,
    /// Links from the upstream edge to the downstream one, in order; if the upstream edge is a router, its own
    /// port comes first.
    pub forward: Vec<u32>,
    /// Links from the downstream edge to the upstream one, in order.
    pub back: Vec<u32>,
    /// Links of `forward` that no XCP-i node owns: the cloud itself.
    pub inside: Vec<u32>,
    /// Links at the downstream edge through which the cloud's packets leave; empty at a receiver.
    pub exits: Vec<u32>,
}

impl Cloud {
    /// Returns the identity of the cloud: its edges, and the links between them there and back.
    pub(crate) fn ways(&self) -> (Node, Node, Vec<u32>, Vec<u32>) {
        (self.up, self.down, self.forward.clone(), self.back.clone())
    }

    /// Returns the links of routers at the cloud's edges: first the upstream edge's, whose estimator counts
    /// first, then those of the downstream edge.
    pub fn bounds(&self) -> impl Iterator<Item = u32> {
        let is_routers = matches!(self.up, Node::Router(_));
        let up = self.forward.first().filter(|_| is_routers);
        up.into_iter().chain(&self.exits).copied()
    }

    /// How its available bandwidth is estimated: as the upstream edge says, else the downstream one. `estimators`:
    /// those of the model ([`estimators`]).
    pub(crate) fn estimator(&self, estimators: &[Option<&Estimator>]) -> Estimator {
        self.bounds().find_map(|link| estimators[link as usize].cloned()).unwrap_or_default()
    }
}

/// By link: the estimator that its router has for the clouds there.
pub(crate) fn estimators(model: &Model) -> Vec<Option<&Estimator>> {
    let mut estimators = vec![None; model.links.len()];
    for device in &model.devices {
        let of_ports = device.router().into_iter().flat_map(|router| &router.estimators);
        for (&link, estimator) in device.links.iter().zip(of_ports) {
            estimators[link as usize] = estimator.as_ref();
        }
    }
    estimators
}

/// Returns the clouds of all groups, each once; two edges may have several clouds between them. The index
/// of a cloud is the [`Way`](congestlab_net::xcp_i::Way) through it.
pub fn clouds(model: &Model) -> Vec<Cloud> {
    let (mut known, mut clouds): (BTreeMap<_, usize>, Vec<Cloud>) = (BTreeMap::new(), Vec::new());
    for cloud in of_all_paths(model) {
        let at = *known.entry(cloud.ways()).or_insert(clouds.len());
        match clouds.get_mut(at) {
            None => clouds.push(cloud),
            Some(same) => cloud.exits.iter().for_each(|exit| {
                if !same.exits.contains(exit) {
                    same.exits.push(*exit);
                }
            }),
        }
    }
    clouds
}

/// Returns the clouds on all paths of all groups; a cloud that several paths cross comes several times.
pub fn of_all_paths(model: &Model) -> Vec<Cloud> {
    let router = routers(model);
    let groups = (0..).zip(&model.groups).filter(|(_, group)| group.interoperable.is_some());
    groups
        .flat_map(|(index, group)| group.paths().map(move |(path, back)| (index, path, back)))
        .flat_map(|(index, path, back)| along(&router, index, path, back))
        .map(|(_, cloud)| cloud)
        .collect()
}

/// Returns, for each link, the index in [`Model::devices`] of the XCP-i router that owns it.
pub fn routers(model: &Model) -> Vec<Option<u32>> {
    let mut router = vec![None; model.links.len()];
    for (index, device) in (0..).zip(&model.devices) {
        if device.router().is_some() {
            device.links.iter().for_each(|&link| router[link as usize] = Some(index));
        }
    }
    router
}

/// The clouds on a path of an interoperable group, each with the place in the path that is behind it.
pub(crate) fn along(router: &[Option<u32>], group: u32, path: &[u32], back: &[u32]) -> Vec<(usize, Cloud)> {
    let mut clouds = Vec::new();
    // The node behind, the place of its own port in the path, and where the links behind it begin.
    let (mut up, mut port, mut begin) = (Node::Sender(group), 0, 0);
    for end in 0..=path.len() {
        let down = match path.get(end).map(|&link| router[link as usize]) {
            None => Node::Receiver(group),
            Some(Some(device)) => Node::Router(device),
            Some(None) => continue,
        };
        if begin < end && up != down {
            let cloud = Cloud {
                up,
                down,
                forward: path[port..end].to_vec(),
                back: back[path.len() - end..path.len() - port].to_vec(),
                inside: path[begin..end].to_vec(),
                exits: path.get(end).copied().into_iter().collect(),
            };
            clouds.push((end, cloud));
        }
        (up, port, begin) = (down, end, end + 1);
    }
    clouds
}
