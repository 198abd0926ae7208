//! A network whose classes of hosts are cut by flow, so that threads can share them.
//!
//! A part of a class is a class of its own, with a range of the flows and with routes of its own, which lead to the part
//! of the other class that has the same flows. So an engine knows nothing of cuts: they are made before it begins, and
//! undone when it is over.

use congestlab_net::packet::Packet;

use crate::elements::Elements;
use crate::hosts::Hosts;
use crate::network::{Class, Edge, Hop, Network, Node};

/// By group: the flows with which its parts end, counted from the group's first.
pub(crate) type Ends = Vec<Vec<u32>>;

/// A network with classes that are cut.
pub(crate) struct Cut {
    pub(crate) network: Network,
    ends: Ends,
    /// By group: the class of its first part's senders.
    first: Vec<u32>,
    /// For each place in the routes of the whole, which are the first: its place in the second copy, and how far it is to the
    /// third.
    copies: Vec<(u32, u32)>,
    /// For each place in the routes: that in the routes of the whole.
    origin: Vec<u32>,
}

impl Cut {
    pub(crate) fn new(whole: &Network, ends: Ends) -> Self {
        let parts_before = ends.iter().scan(0, |before, ends| {
            let first = *before;
            *before += 2 * ends.len() as u32;
            Some(first)
        });
        let network = Network {
            links: whole.links,
            link_ids: whole.link_ids.clone(),
            devices: whole.devices.clone(),
            device_ids: whole.device_ids.clone(),
            port: whole.port.clone(),
            flows: whole.flows,
            packet_rate: whole.packet_rate.clone(),
            reorders: whole.reorders.clone(),
            ..Network::default()
        };
        let first = parts_before.collect();
        let mut cut = Self { network, first, ends, copies: Vec::new(), origin: Vec::new() };
        cut.copy_routes(whole);
        cut.copy_classes(whole);
        cut.network.elect();
        cut.copy_courses(whole);
        cut.copy_edges(whole);
        cut
    }

    /// The part of a class of the whole.
    fn class(&self, class: u32, part: usize) -> u32 {
        self.first[class as usize / 2] + 2 * part as u32 + class % 2
    }

    /// The parts of a group.
    fn parts(&self, class: u32) -> usize {
        self.ends[class as usize / 2].len()
    }

    /// The node of a part. What is no class has one part.
    fn node(&self, whole: &Network, node: usize, part: usize) -> usize {
        match whole.node(node) {
            Node::Link(_) => node,
            Node::Class(class) => self.network.links + self.class(class, part) as usize,
            Node::Device(device) => self.network.node_of_device(device as usize),
        }
    }

    /// The nodes that a node of the whole is cut into.
    pub(crate) fn nodes(&self, whole: &Network, node: usize) -> impl Iterator<Item = usize> {
        let parts = match whole.node(node) {
            Node::Class(class) => self.parts(class),
            Node::Link(_) | Node::Device(_) => 1,
        };
        (0..parts).map(move |part| self.node(whole, node, part))
    }

    /// A route goes as many ways as the class that it leads to has parts; the first is the whole's.
    fn copy_routes(&mut self, whole: &Network) {
        self.network.routes.clone_from(&whole.routes);
        self.network.next.clone_from(&whole.next);
        self.network.came.clone_from(&whole.came);
        self.origin = (0..whole.routes.len() as u32).collect();
        let mut begin = 0;
        while begin < whole.routes.len() {
            let links = whole.routes[begin..].iter().take_while(|hop| matches!(hop, Hop::Link(_))).count();
            let route = begin..begin + links + 1;
            let (base, length) = (self.origin.len() as u32, links as u32 + 1);
            self.copies.extend((base..).take(links + 1).map(|place| (place, length)));
            if let Hop::Host(class) = whole.routes[begin + links] {
                self.network.routes[begin + links] = Hop::Host(self.class(class, 0));
                for part in 1..self.parts(class) {
                    self.network.routes.extend_from_slice(&whole.routes[begin..begin + links]);
                    self.network.routes.push(Hop::Host(self.class(class, part)));
                    self.network.next.extend_from_slice(&whole.next[route.clone()]);
                    self.network.came.extend_from_slice(&whole.came[route.clone()]);
                    self.origin.extend(begin as u32..route.end as u32);
                }
            }
            begin = route.end;
        }
    }

    /// A place in the routes of the whole, on the way to a part.
    fn place(&self, place: u32, part: usize) -> u32 {
        let (second, length) = self.copies[place as usize];
        part.checked_sub(1).map_or(place, |copies| second + copies as u32 * length)
    }

    fn copy_classes(&mut self, whole: &Network) {
        for (pair, ends) in whole.classes.chunks(2).zip(&self.ends) {
            for (part, &end) in ends.iter().enumerate() {
                let begin = part.checked_sub(1).map_or(0, |before| ends[before]);
                for class in pair {
                    let switches = class.switches.iter().map(|&(at, route)| (at, self.place(route, part)));
                    self.network.classes.push(Class {
                        first_flow: class.first_flow + begin,
                        count: end - begin,
                        pipe: class.pipe,
                        route: self.place(class.route, part),
                        switches: switches.collect(),
                        offered: class.offered / ends.len() as u64,
                    });
                }
            }
        }
        self.network.class_ids = (0..self.network.classes.len() as u32).collect();
    }

    fn copy_courses(&mut self, whole: &Network) {
        self.network.courses = vec![Vec::new(); self.network.nodes()];
        for (node, courses) in whole.courses.iter().enumerate() {
            debug_assert!(courses.is_empty() || self.nodes(whole, node).count() == 1);
            let at = self.node(whole, node, 0);
            self.network.courses[at].clone_from(courses);
        }
    }

    fn copy_edges(&mut self, whole: &Network) {
        for edge in &whole.edges {
            let ends = [edge.from, edge.to];
            let parts = ends.map(|node| self.nodes(whole, node).count());
            for part in 0..parts[0].max(parts[1]) {
                // Hosts send to those of their own flows.
                let [from, to] = [0, 1].map(|end| self.node(whole, ends[end], part.min(parts[end] - 1)));
                self.network.edges.push(Edge { from, to, latency: edge.latency });
            }
        }
        self.network.edges.sort_unstable_by_key(|e| (e.from, e.to, e.latency));
    }

    /// Puts a packet that was on its way in the whole on its way here.
    pub(crate) fn enter(&self, whole: &Network, packet: &mut Packet) {
        let end = whole.routes[packet.route as usize..].iter().find(|hop| !matches!(hop, Hop::Link(_)));
        let part = match end {
            Some(&Hop::Host(class)) if self.parts(class) > 1 => {
                let flow = packet.flow - whole.classes[class as usize].first_flow;
                self.ends[class as usize / 2].partition_point(|&end| end <= flow)
            }
            _ => 0,
        };
        packet.route = self.place(packet.route, part);
    }

    /// Puts a packet that is on its way here on its way in the whole.
    pub(crate) fn leave(&self, packet: &mut Packet) {
        packet.route = self.origin[packet.route as usize];
    }

    /// Cuts the hosts of all classes, and puts the packets that wait at ports on their way here.
    pub(crate) fn part(&self, whole: &Network, elements: &mut Elements) {
        if self.origin.len() > whole.routes.len() {
            elements.for_each_waiting(|packet| self.enter(whole, packet));
        }
        let mut whole = std::mem::take(&mut elements.hosts).into_iter();
        for ends in &self.ends {
            let pair = whole.by_ref().take(2).map(|hosts| hosts.cut(ends));
            let mut pair: Vec<_> = pair.map(Vec::into_iter).collect();
            for _ in ends {
                elements.hosts.extend(pair.iter_mut().filter_map(Iterator::next));
            }
        }
    }

    /// Joins the hosts of all classes again, and puts the packets that wait at ports on their way in the whole.
    pub(crate) fn join(&self, elements: &mut Elements) {
        elements.for_each_waiting(|packet| self.leave(packet));
        let mut parts = std::mem::take(&mut elements.hosts).into_iter();
        for ends in &self.ends {
            let mut pair: Vec<Hosts> = parts.by_ref().take(2).collect();
            for _ in 1..ends.len() {
                pair.iter_mut().zip(parts.by_ref()).for_each(|(hosts, more)| hosts.append(more));
            }
            elements.hosts.append(&mut pair);
        }
    }
}

impl Elements {
    /// Calls `each` with every packet that waits at a port.
    fn for_each_waiting(&mut self, mut each: impl FnMut(&mut Packet)) {
        self.ports.iter_mut().flatten().for_each(|port| port.for_each_waiting(&mut each));
        self.devices.iter_mut().flatten().for_each(|device| device.for_each_waiting(&mut each));
    }
}

impl Hosts {
    /// Cuts them at these ends.
    fn cut(mut self, ends: &[u32]) -> Vec<Self> {
        let starts = ends.iter().rev().skip(1);
        let mut parts: Vec<Self> = starts.map(|&start| self.split_off(start)).collect();
        parts.push(self);
        parts.reverse();
        parts
    }

    /// Takes all but the first `at` away.
    fn split_off(&mut self, at: u32) -> Self {
        match self {
            Self::Away => Self::Away,
            Self::Senders(crowd) => Self::Senders(crowd.split_off(at)),
            Self::Receivers(crowd) => Self::Receivers(crowd.split_off(at)),
            Self::Sources(crowd) => Self::Sources(crowd.split_off(at)),
            Self::Sinks(crowd) => Self::Sinks(crowd.split_off(at)),
        }
    }

    /// Adds others of the same kind.
    fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Senders(crowd), Self::Senders(more)) => crowd.append(more),
            (Self::Receivers(crowd), Self::Receivers(more)) => crowd.append(more),
            (Self::Sources(crowd), Self::Sources(more)) => crowd.append(more),
            (Self::Sinks(crowd), Self::Sinks(more)) => crowd.append(more),
            _ => unreachable!("parts of a class are of one kind"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{self, Draw};

    #[test]
    fn a_packet_comes_to_the_part_with_its_flow_and_back_to_where_it_was() {
        let mut cuts = 0;
        for seed in 0..60 {
            let mut draw = Draw::new(seed);
            let model = common::random_model(&mut draw, seed);
            let whole = Network::new(&model);
            let ends = model.groups.iter().map(|group| {
                let parts = draw.between(1, 5).min(u64::from(group.count)).max(1) as u32;
                cuts += u32::from(parts > 1);
                (1..=parts).map(|part| group.count * part / parts).collect()
            });
            let cut = Cut::new(&whole, ends.collect());
            let hosts = |network: &Network| network.classes.iter().map(|class| class.count).sum::<u32>();
            assert_eq!(hosts(&whole), hosts(&cut.network), "seed {seed}");
            for class in &whole.classes {
                let hops = whole.routes[class.route as usize..].iter();
                let links = hops.take_while(|hop| matches!(hop, Hop::Link(_))).count() as u32;
                for flow in class.first_flow..class.first_flow + class.count {
                    for route in class.route..=class.route + links {
                        let mut packet = Packet { flow, route, ..Packet::default() };
                        cut.enter(&whole, &mut packet);
                        let hops = &cut.network.routes[packet.route as usize..];
                        let end = hops.iter().find_map(|hop| match hop {
                            Hop::Host(class) => Some(&cut.network.classes[*class as usize]),
                            Hop::Link(_) | Hop::Device(_) => None,
                        });
                        let end = end.expect("routes lead to hosts");
                        assert!(
                            (end.first_flow..end.first_flow + end.count).contains(&flow),
                            "seed {seed}, flow {flow}"
                        );
                        cut.leave(&mut packet);
                        assert_eq!(packet.route, route, "seed {seed}");
                    }
                }
            }
        }
        assert!(cuts > 50, "{cuts} groups were cut");
    }
}
