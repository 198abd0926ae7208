//! The XCP-i agents of routers and hosts, built from the model.

use congestlab_core::units::Rate;
use congestlab_net::estimator;
use congestlab_net::random::Stream;
use congestlab_net::xcp_i::{Address, Edge, Listener, Oracle, Prober, Role};

use crate::arrivals::{Arrivals, View};
use crate::cloud::{self, Cloud, Node, receiver_address, router_address, sender_address};
use crate::model::{Estimator, Group, Model, Router};
use crate::outcome::Element;
use crate::router::Watched;
use crate::station::Agent;

/// What agents have in common.
pub(crate) struct Agents<'a> {
    model: &'a Model,
    clouds: Vec<Cloud>,
    /// By link: what arrives there, if it is of a cloud.
    pub(crate) arrivals: Vec<Option<Arrivals>>,
}

impl<'a> Agents<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        let clouds = cloud::clouds(model);
        let mut arrivals = vec![None; model.links.len()];
        for &link in clouds.iter().flat_map(|cloud| &cloud.inside) {
            arrivals[link as usize].get_or_insert_with(Arrivals::default);
        }
        Self { model, clouds, arrivals }
    }

    fn view(&self, cloud: &Cloud) -> View {
        let link = |&link: &u32| {
            let arrivals = self.arrivals[link as usize].clone().unwrap_or_default();
            (arrivals, self.model.links[link as usize].port.service.clone())
        };
        View(cloud.inside.iter().map(link).collect())
    }

    /// First flow of a group, over the whole run.
    fn first_flow(&self, group: u32) -> u32 {
        self.model.groups[..group as usize].iter().map(|group| group.count).sum()
    }

    /// Addresses of an edge: of a router, or of all hosts of a group.
    fn addresses(&self, node: Node) -> impl Iterator<Item = Address> + use<> {
        let (address, group): (fn(u32) -> Address, _) = match node {
            Node::Router(device) => return (device..device + 1).map(router_address as fn(u32) -> Address),
            Node::Sender(group) => (sender_address, group),
            Node::Receiver(group) => (receiver_address, group),
        };
        let first = self.first_flow(group);
        (first..first + self.model.groups[group as usize].count).map(address)
    }

    /// Names the random streams of a node.
    fn name(&self, node: Node, flow: u32) -> String {
        let flow = |group: u32| format!("flows.{}/{flow}", self.model.groups[group as usize].name);
        match node {
            Node::Router(device) => {
                let link = self.model.devices[device as usize].links[0];
                format!("links.{}", self.model.links[link as usize].name)
            }
            Node::Sender(group) | Node::Receiver(group) => flow(group),
        }
    }

    /// The prober of flow `flow` for `peer`, the other edge of the cloud.
    fn prober(&self, cloud: &Cloud, flow: u32, peer: Address) -> Prober<View> {
        match cloud.estimator(self.model) {
            Estimator::Oracle(config) => {
                // One stream for each pair of edges.
                let name = format!("{}.oracle.{}", self.name(cloud.up, flow), peer.0);
                Prober::Oracle(Oracle::new(config, self.view(cloud), Stream::named(self.model.seed, &name)))
            }
            Estimator::Probes(config) => {
                let name = format!("{}.probes.{}", self.name(cloud.up, flow), peer.0);
                let stream = Stream::named(self.model.seed, &name);
                Prober::Probes(Box::new(estimator::Prober::new(config, stream)))
            }
        }
    }

    /// The listener at the downstream edge, where it is not the prober that answers.
    fn listener(&self, cloud: &Cloud) -> Option<Listener> {
        match cloud.estimator(self.model) {
            Estimator::Oracle(_) => None,
            Estimator::Probes(config) => {
                Some(Listener::Probes(Box::new(estimator::Listener::new(config, self.line(cloud)))))
            }
        }
    }

    /// What the upstream edge can send into a cloud: its port's rate, a host's access or what that
    /// leads to.
    fn line(&self, cloud: &Cloud) -> Rate {
        let access = match cloud.up {
            Node::Sender(group) => self.model.groups[group as usize].access,
            Node::Router(_) | Node::Receiver(_) => None,
        };
        let port = |&link: &u32| self.model.links[link as usize].port.service.capacity_at(0);
        let port = cloud.forward.first().map_or(Rate(1), port);
        access.map_or(port, |access| access.rate.bytes())
    }

    /// The agent of a router and what is sampled there.
    pub(crate) fn router(&self, index: u32, router: &Router) -> (Edge<View>, Vec<Watched>) {
        let (node, own) = (Node::Router(index), router_address(index));
        let nonces = Stream::named(self.model.seed, &format!("{}.xcp-i", self.name(node, 0)));
        let mut edge = Edge::new(router.config.clone(), own, Role::Router, nonces);
        for cloud in self.clouds.iter().filter(|cloud| cloud.up == node) {
            for peer in self.addresses(cloud.down) {
                edge.answer(peer, self.prober(cloud, 0, peer));
            }
        }
        let mut watched: Vec<Watched> = Vec::new();
        for cloud in self.clouds.iter().filter(|cloud| cloud.down == node) {
            let Some(exit) = cloud.exit else { continue };
            for upstream in self.addresses(cloud.up) {
                if let Some(listener) = self.listener(cloud) {
                    edge.listen(upstream, listener);
                }
                let same =
                    |other: &&Watched| matches!(other.element, Element::Cloud(link, _) if link == exit);
                let number = watched.iter().filter(same).count() as u32;
                watched.push(Watched::new(upstream, Element::Cloud(exit, number), self.view(cloud)));
            }
        }
        (edge, watched)
    }

    /// The agent of a host of flow `flow` of a group, if it has one.
    pub(crate) fn host(
        &self,
        index: u32,
        group: &Group,
        first_flow: u32,
        flow: u32,
        is_sender: bool,
    ) -> Option<Agent> {
        let config = group.interoperable.clone()?;
        let (node, own, role) = if is_sender {
            (Node::Sender(index), sender_address(first_flow + flow), Role::Sender)
        } else {
            (Node::Receiver(index), receiver_address(first_flow + flow), Role::Receiver)
        };
        // At one end of a group all hosts have the same neighbour, or each its own flow's other host.
        let neighbour = |other: Node| match other {
            Node::Router(device) => router_address(device),
            Node::Sender(_) => sender_address(first_flow + flow),
            Node::Receiver(_) => receiver_address(first_flow + flow),
        };
        let name = format!("flows.{}/{flow}.xcp-i", group.name);
        let mut edge = Edge::new(config, own, role, Stream::named(self.model.seed, &name));
        // More than one where a path is switched.
        for cloud in self.clouds.iter().filter(|cloud| cloud.up == node) {
            let peer = neighbour(cloud.down);
            edge.answer(peer, self.prober(cloud, flow, peer));
        }
        for cloud in self.clouds.iter().filter(|cloud| cloud.down == node) {
            if let Some(listener) = self.listener(cloud) {
                edge.listen(neighbour(cloud.up), listener);
            }
        }
        let down = self.clouds.iter().find(|cloud| cloud.up == node);
        let up = self.clouds.iter().find(|cloud| cloud.down == node);
        let element = Element::Flow(index, flow);
        let watched = up.map(|cloud| Watched::new(neighbour(cloud.up), element, self.view(cloud)));
        let asks = |cloud: &Cloud| matches!(cloud.estimator(self.model), Estimator::Oracle(_));
        let is_oracle = self.clouds.iter().any(|cloud| cloud.up == node && asks(cloud));
        let looks = is_oracle || (watched.is_some() && self.model.sample_every.is_some());
        Some(Agent::new(edge, role, down.map(|cloud| neighbour(cloud.down)), watched, looks))
    }
}
