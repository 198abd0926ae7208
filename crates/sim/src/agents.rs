//! The XCP-i agents of routers and hosts, built from the model.

use congestlab_core::units::Rate;
use congestlab_net::estimator;
use congestlab_net::packet::Picos;
use congestlab_net::random::Stream;
use congestlab_net::xcp_i::{Address, Edge, Listener, Neighbour, Oracle, Prober, Role, Way};

use crate::arrivals::{Arrivals, View};
use crate::cloud::{self, Cloud, Node, receiver_address, router_address, sender_address};
use crate::model::{Estimator, Group, Model, Router};
use crate::outcome::Element;
use crate::router::Watched;
use crate::station::Agent;

/// What agents have in common.
pub(crate) struct Agents<'a> {
    model: &'a Model,
    /// By their ways.
    clouds: Vec<Cloud>,
    /// By link: the XCP-i router that owns it.
    routers: Vec<Option<u32>>,
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
        Self { model, clouds, routers: cloud::routers(model), arrivals }
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

    /// Those that begin or end at a node, with the ways through them.
    fn clouds_at(&self, is_at: impl Fn(&Cloud) -> bool) -> impl Iterator<Item = (Way, &Cloud)> {
        (0..).map(Way).zip(&self.clouds).filter(move |(_, cloud)| is_at(cloud))
    }

    /// The prober of flow `flow` for `peer`, the other edge of the cloud.
    fn prober(&self, cloud: &Cloud, flow: u32, peer: Neighbour) -> Prober<View> {
        let stream = |what: &str| {
            // One for each pair of edges, and one for each further way between them.
            let of_pair = |(_, other): &(Way, &Cloud)| (other.up, other.down) == (cloud.up, cloud.down);
            let before = self.clouds_at(|_| true).take_while(|(way, _)| *way < peer.way).filter(of_pair);
            let further = Some(before.count()).filter(|&count| count > 0);
            let further = further.map_or(String::new(), |further| format!(".{further}"));
            let name = format!("{}.{what}.{}{further}", self.name(cloud.up, flow), peer.address.0);
            Stream::named(self.model.seed, &name)
        };
        match cloud.estimator(self.model) {
            Estimator::Oracle(config) => {
                Prober::Oracle(Oracle::new(config, self.view(cloud), stream("oracle")))
            }
            Estimator::Probes(config) => {
                Prober::Probes(Box::new(estimator::Prober::new(config, stream("probes"))))
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
        for (way, cloud) in self.clouds_at(|cloud| cloud.up == node) {
            for address in self.addresses(cloud.down) {
                let peer = Neighbour { address, way };
                edge.answer(peer, self.prober(cloud, 0, peer));
            }
        }
        let mut watched: Vec<Watched> = Vec::new();
        for (way, cloud) in self.clouds_at(|cloud| cloud.down == node) {
            for address in self.addresses(cloud.up) {
                let upstream = Neighbour { address, way };
                if let Some(listener) = self.listener(cloud) {
                    edge.listen(upstream, listener);
                }
                for &exit in &cloud.exits {
                    let of_exit =
                        |other: &&Watched| matches!(other.element, Element::Cloud(link, _) if link == exit);
                    if !watched.iter().filter(of_exit).any(|other| other.watches(address)) {
                        let number = watched.iter().filter(of_exit).count() as u32;
                        let mut new = Watched::new(Element::Cloud(exit, number));
                        // Its other ways may lead to other exits: it is one entry.
                        for (way, cloud) in self.clouds_at(|other| (other.up, other.down) == (cloud.up, node))
                        {
                            new.add(Neighbour { address, way }, self.view(cloud));
                        }
                        watched.push(new);
                    }
                }
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
        for (way, cloud) in self.clouds_at(|cloud| cloud.up == node) {
            let peer = Neighbour { address: neighbour(cloud.down), way };
            edge.answer(peer, self.prober(cloud, flow, peer));
        }
        let mut watched = None;
        for (way, cloud) in self.clouds_at(|cloud| cloud.down == node) {
            let upstream = Neighbour { address: neighbour(cloud.up), way };
            if let Some(listener) = self.listener(cloud) {
                edge.listen(upstream, listener);
            }
            let watched = watched.get_or_insert_with(|| Watched::new(Element::Flow(index, flow)));
            watched.add(upstream, self.view(cloud));
        }
        let times = core::iter::once(0).chain(group.switches.iter().map(|switch| switch.at));
        let first = |(path, back): (&Vec<u32>, &Vec<u32>)| {
            let clouds = cloud::along(&self.routers, index, path, back);
            clouds.first().filter(|(_, cloud)| cloud.up == node).map(|(_, cloud)| neighbour(cloud.down))
        };
        let next: Vec<(Picos, _)> = times.zip(group.paths().map(first)).collect();
        let asks = |cloud: &Cloud| matches!(cloud.estimator(self.model), Estimator::Oracle(_));
        let is_oracle = self.clouds.iter().any(|cloud| cloud.up == node && asks(cloud));
        let looks = is_oracle || (watched.is_some() && self.model.sample_every.is_some());
        Some(Agent::new(edge, role, next, watched, looks))
    }
}
