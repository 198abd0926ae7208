//! The XCP-i agents of routers and hosts, built from the model.

use std::collections::{BTreeMap, BTreeSet};

use congestlab_core::units::Rate;
use congestlab_net::estimator;
use congestlab_net::packet::Picos;
use congestlab_net::random::Stream;
use congestlab_net::xcp_i::{Address, Edge, Listener, Neighbour, Oracle, Prober, Role, Way};

use crate::arrivals::{Arrivals, View};
use crate::cloud::{self, Cloud, Node, receiver_address, router_address, sender_address};
use crate::model::{Estimator, Group, Model, Router};
use crate::outcome::Element;
use crate::station::Agent;
use crate::watched::Watched;

/// Tables that all agents of a run share.
pub(crate) struct Agents<'a> {
    model: &'a Model,
    /// By their ways, with how each is estimated.
    clouds: Vec<(Cloud, Estimator)>,
    /// The ways from, to and between nodes, in order.
    up: BTreeMap<Node, Vec<Way>>,
    down: BTreeMap<Node, Vec<Way>>,
    between: BTreeMap<(Node, Node), Vec<Way>>,
    /// First flow of each group, over the whole run.
    first_flows: Vec<u32>,
    /// By link: the XCP-i router that owns it.
    routers: Vec<Option<u32>>,
    /// By link: what arrives there, if it is of a cloud.
    pub(crate) arrivals: Vec<Option<Arrivals>>,
}

impl<'a> Agents<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        let estimators = cloud::estimators(model);
        let clouds = cloud::clouds(model).into_iter().map(|cloud| {
            let estimator = cloud.estimator(&estimators);
            (cloud, estimator)
        });
        let first_flows = model.groups.iter().scan(0, |next, group| {
            let first = *next;
            *next += group.count;
            Some(first)
        });
        let mut agents = Self {
            model,
            clouds: clouds.collect(),
            up: BTreeMap::new(),
            down: BTreeMap::new(),
            between: BTreeMap::new(),
            first_flows: first_flows.collect(),
            routers: cloud::routers(model),
            arrivals: vec![None; model.links.len()],
        };
        for (way, (cloud, _)) in (0..).map(Way).zip(&agents.clouds) {
            agents.up.entry(cloud.up).or_default().push(way);
            agents.down.entry(cloud.down).or_default().push(way);
            agents.between.entry((cloud.up, cloud.down)).or_default().push(way);
            for &link in &cloud.inside {
                agents.arrivals[link as usize].get_or_insert_with(Arrivals::default);
            }
        }
        agents
    }

    fn view(&self, cloud: &Cloud) -> View {
        let link = |&link: &u32| {
            let arrivals = self.arrivals[link as usize].clone().unwrap_or_default();
            (arrivals, self.model.links[link as usize].port.service.clone())
        };
        View(cloud.inside.iter().map(link).collect())
    }

    /// Addresses of an edge: of a router, or of all hosts of a group.
    fn addresses(&self, node: Node) -> impl Iterator<Item = Address> + use<> {
        let (address, group): (fn(u32) -> Address, _) = match node {
            Node::Router(device) => return (device..device + 1).map(router_address as fn(u32) -> Address),
            Node::Sender(group) => (sender_address, group),
            Node::Receiver(group) => (receiver_address, group),
        };
        let first = self.first_flows[group as usize];
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

    /// Ways, with the clouds on them and how each is estimated.
    fn on(&self, ways: Option<&Vec<Way>>) -> impl Iterator<Item = (Way, &Cloud, &Estimator)> {
        ways.cloned().into_iter().flatten().map(|way| {
            let (cloud, estimator) = &self.clouds[way.0 as usize];
            (way, cloud, estimator)
        })
    }

    /// The prober of flow `flow` for `peer`, the other edge of the cloud.
    fn prober(&self, cloud: &Cloud, estimator: &Estimator, flow: u32, peer: Neighbour) -> Prober<View> {
        let stream = |what: &str| {
            // One for each pair of edges, and one for each further way between them.
            let before = self.between[&(cloud.up, cloud.down)].iter().take_while(|&&way| way < peer.way);
            let further = Some(before.count()).filter(|&count| count > 0);
            let further = further.map_or(String::new(), |further| format!(".{further}"));
            let name = format!("{}.{what}.{}{further}", self.name(cloud.up, flow), peer.address.0);
            Stream::named(self.model.seed, &name)
        };
        match estimator.clone() {
            Estimator::Oracle(config) => {
                Prober::Oracle(Oracle::new(config, self.view(cloud), stream("oracle")))
            }
            Estimator::Probes(config) => {
                Prober::Probes(Box::new(estimator::Prober::new(config, stream("probes"))))
            }
        }
    }

    /// The listener at the downstream edge, where it is not the prober that answers.
    fn listener(&self, cloud: &Cloud, estimator: &Estimator) -> Option<Listener> {
        match estimator.clone() {
            Estimator::Oracle(_) => None,
            Estimator::Probes(config) => {
                Some(Listener::Probes(Box::new(estimator::Listener::new(config, self.line(cloud)))))
            }
        }
    }

    /// Returns the rate at which the upstream edge can send into a cloud: its port's, or that of a host's
    /// access or of the link behind it.
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
        for (way, cloud, estimator) in self.on(self.up.get(&node)) {
            for address in self.addresses(cloud.down) {
                let peer = Neighbour { address, way };
                edge.answer(peer, self.prober(cloud, estimator, 0, peer));
            }
        }
        let (mut watched, mut known) = (Vec::new(), BTreeSet::new());
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        for (way, cloud, estimator) in self.on(self.down.get(&node)) {
            for address in self.addresses(cloud.up) {
                let upstream = Neighbour { address, way };
                if let Some(listener) = self.listener(cloud, estimator) {
                    edge.listen(upstream, listener);
                }
                for &exit in &cloud.exits {
                    if known.insert((exit, address)) {
                        let number = numbers.entry(exit).or_default();
                        let mut new = Watched::new(Element::Cloud(exit, *number));
                        *number += 1;
                        // Its other ways may lead to other exits: it is one entry.
                        for (way, cloud, _) in self.on(self.between.get(&(cloud.up, node))) {
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
        for (way, cloud, estimator) in self.on(self.up.get(&node)) {
            let peer = Neighbour { address: neighbour(cloud.down), way };
            edge.answer(peer, self.prober(cloud, estimator, flow, peer));
        }
        let mut watched = None;
        for (way, cloud, estimator) in self.on(self.down.get(&node)) {
            let upstream = Neighbour { address: neighbour(cloud.up), way };
            if let Some(listener) = self.listener(cloud, estimator) {
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
        let mut estimators = self.on(self.up.get(&node)).map(|(_, _, estimator)| estimator);
        let is_oracle = estimators.any(|estimator| matches!(estimator, Estimator::Oracle(_)));
        let looks = is_oracle || (watched.is_some() && self.model.sample_every.is_some());
        Some(Agent::new(edge, role, next, watched, looks))
    }
}
