//! The choice of who does what: nodes, and parts of classes of hosts, are spread over threads.
//!
//! Nodes that reach each other within a window stay together, the heaviest go first, each to the least loaded thread. Where
//! that leaves one with more than its share, classes of hosts are cut by flow and poured over what is left. How heavy a node
//! is is guessed from rates, until it was counted.

use std::cmp::Reverse;

use congestlab_net::packet::Picos;

use crate::costs::{HANDED, RECEIVER, SECOND, SENDER, costs, of_meetings};
use crate::cut::{Cut, Ends};
use crate::network::{DisjointSets, Hop, Network, Node};
use crate::plan::{Plan, Shift};

/// Most threads of a network.
const MOST: usize = 1024;
/// A load in a second that is enough for any: the sum of many is a number, too.
const LOAD_MAX: u64 = 1 << 43;

/// The load of each node, instructions in a second, if all links are full.
pub(crate) fn guess(network: &Network) -> Vec<u64> {
    let rates = network.class_rates();
    let rate = |node| match network.node(node) {
        Node::Link(link) => network.packet_rate[link as usize],
        Node::Class(class) => rates[class as usize],
        // Its links have it.
        Node::Device(_) => 0,
    };
    let load = |(node, &cost): (usize, &u32)| u64::from(cost).saturating_mul(rate(node)).min(LOAD_MAX);
    costs(network).iter().enumerate().map(load).collect()
}

/// A network, shared among threads.
pub(crate) struct Share {
    pub(crate) cut: Cut,
    pub(crate) plan: Plan,
    /// The load of the busiest thread, and of all of them.
    pub(crate) expected: (u64, u64),
    spread: Spread,
}

impl Share {
    /// The best that can be had among so many threads with such a load; `None`: one has to do it all.
    pub(crate) fn new(network: &Network, divisor: u32, threads: usize, load: &[u64]) -> Option<Self> {
        let can_be_cut = network.can_be_cut();
        let mut best: Option<(u64, Shift, Spread)> = None;
        // Fewer meet in less time.
        let mut threads = threads.min(MOST);
        while threads > 1 {
            for shift in Plan::shift(network, divisor, threads)?.and_shorter() {
                let window = shift.length();
                let spread = Spread::new(network, window, threads, load, &can_be_cut);
                let cost = spread.longest + spread.meetings(network, shift);
                if best.as_ref().is_none_or(|&(least, ..)| cost < least) {
                    best = Some((cost, shift, spread));
                }
                // Shorter ones keep no others apart.
                if !network.edges.iter().any(|edge| 0 < edge.latency && edge.latency < window) {
                    break;
                }
            }
            threads /= 2;
        }
        let (_, shift, spread) = best.filter(|(.., spread)| spread.threads > 1)?;
        let expected = (spread.longest, spread.total);
        let cut = Cut::new(network, spread.ends(network));
        let home = spread.homes(network, &cut);
        let plan = Plan::of(&cut.network, shift, home)?;
        Some(Self { cut, plan, expected, spread })
    }

    /// Learns what there is to do.
    pub(crate) fn expect(&mut self, network: &Network, load: &[u64]) {
        let mut loads = vec![0; self.plan.domains()];
        for (node, &load) in load.iter().enumerate() {
            for part in self.cut.nodes(network, node) {
                let load = match (network.node(node), self.cut.network.node(part)) {
                    (Node::Class(whole), Node::Class(part)) => {
                        let count = self.cut.network.classes[part as usize].count;
                        share_of(load, count, network.classes[whole as usize].count)
                    }
                    _ => load,
                };
                loads[usize::from(self.plan.home[part])] += load;
            }
        }
        self.expected = self.spread.with_handed(network, load, &loads);
    }

    /// Instructions that a second costs: the busiest thread's part, and meetings.
    pub(crate) fn cost(&self) -> u64 {
        self.expected.0 + self.plan.meetings()
    }
}

/// A load as that of a second; it was that of `time`.
pub(crate) fn in_a_second(load: u64, time: Picos) -> u64 {
    (u128::from(load) * SECOND / u128::from(time.max(1))).min(LOAD_MAX.into()) as u64
}

/// `count` of `all` equal parts of a load.
fn share_of(load: u64, count: u32, all: u32) -> u64 {
    (u128::from(load) * u128::from(count) / u128::from(all.max(1))) as u64
}

/// A way to spread nodes over threads.
#[derive(Clone)]
struct Spread {
    /// By node. Of a class that is cut it says nothing.
    home: Vec<u16>,
    /// By group: its parts, each with the flow with which it ends and where it lives; none: it is whole.
    parts: Vec<Vec<(u32, u16)>>,
    /// By node: it goes where the part lives. The others live with those whom they reach at once.
    is_free: Vec<bool>,
    threads: usize,
    longest: u64,
    total: u64,
}

impl Spread {
    fn new(network: &Network, window: Picos, threads: usize, load: &[u64], can_be_cut: &[bool]) -> Self {
        let nodes = network.nodes();
        let set = near(network, window);
        let (mut weight, mut members) = (vec![0_u64; nodes], vec![0_u32; nodes]);
        for (node, &set) in set.iter().enumerate() {
            weight[set] += load[node].max(1);
            members[set] += 1;
        }
        let total: u64 = weight.iter().sum();
        let even = total.div_ceil(threads as u64);
        let mut sets: Vec<usize> = (0..nodes).filter(|&n| members[n] > 0).collect();
        sets.sort_by_key(|&n| (Reverse(weight[n]), n));
        let mut spread = Self {
            home: vec![0; nodes],
            parts: vec![Vec::new(); network.classes.len() / 2],
            is_free: vec![false; nodes],
            threads: 1,
            longest: 0,
            total,
        };
        let mut loads = spread.place(&set, &sets, &weight, threads);
        let mut with_handed = spread.with_handed(network, load, &loads);
        // Neighbours together may be less even, but hand less over.
        let mut ordered = spread.clone();
        let in_order = ordered.line_up(network, &set, &weight, even, threads);
        let of_ordered = ordered.with_handed(network, load, &in_order);
        if of_ordered.0 < with_handed.0 {
            (spread, loads, with_handed) = (ordered, in_order, of_ordered);
        }
        let longest = with_handed.0;
        // Groups whose hosts can live anywhere, and do too much to be moved as they are.
        let free = |group: usize| {
            [0, 1].map(|end| network.links + 2 * group + end).map(|n| (n, members[set[n]] == 1))
        };
        let weight_of = |group| {
            free(group).iter().filter(|(_, is_free)| *is_free).map(|&(n, _)| weight[set[n]]).sum::<u64>()
        };
        let mut groups: Vec<(u64, usize)> = (0..network.classes.len() / 2)
            .filter(|&group| can_be_cut[group])
            .map(|group| (weight_of(group), group))
            .filter(|&(weight, _)| weight > even / 16)
            .collect();
        if longest <= even + even / 20 || groups.is_empty() {
            return spread.settle(loads, with_handed);
        }
        groups.sort_by_key(|&(weight, group)| (Reverse(weight), group));
        let whole = spread.clone();
        for &(_, group) in &groups {
            for (node, is_free) in free(group) {
                spread.is_free[node] = is_free;
                spread.home[node] = if is_free { 0 } else { spread.home[node] };
            }
        }
        sets.retain(|&set| !spread.is_free[set]);
        let count = |group: usize| network.classes[2 * group].count;
        let flow = groups.iter().map(|&(weight, group)| weight.div_ceil(count(group).into())).max();
        // No thread can have less than what is in one piece.
        let part = even.max(sets.first().map_or(0, |&set| weight[set])).max(flow.unwrap_or(0)).max(1);
        let threads = threads.min(total.div_ceil(part) as usize + 1);
        let mut cut_loads = spread.place(&set, &sets, &weight, threads);
        for (weight, group) in groups {
            spread.pour(group, weight, count(group), part, &mut cut_loads);
            if let [(_, home)] = spread.parts[group][..] {
                free(group)
                    .iter()
                    .filter(|(_, is_free)| *is_free)
                    .for_each(|&(node, _)| spread.home[node] = home);
            }
        }
        let of_cut = spread.with_handed(network, load, &cut_loads);
        if of_cut.0 >= longest - longest / 20 {
            return whole.settle(loads, with_handed);
        }
        spread.settle(cut_loads, of_cut)
    }

    /// Puts each set of nodes on the thread that has least to do. Returns what each has.
    fn place(&mut self, set: &[usize], sets: &[usize], weight: &[u64], threads: usize) -> Vec<u64> {
        let mut loads = vec![0_u64; threads];
        for &set in sets {
            let thread = least(&loads);
            loads[thread] += weight[set];
            self.home[set] = thread as u16;
        }
        self.gather(set);
        loads
    }

    /// All members of a set live where the set does.
    fn gather(&mut self, set: &[usize]) {
        (0..set.len()).for_each(|node| self.home[node] = self.home[set[node]]);
    }

    /// Puts sets of nodes on threads as they follow each other on routes. Returns what each has.
    fn line_up(
        &mut self,
        network: &Network,
        set: &[usize],
        weight: &[u64],
        even: u64,
        threads: usize,
    ) -> Vec<u64> {
        let hosts = (0..network.classes.len()).flat_map(|class| {
            let class_of = &network.classes[class];
            core::iter::once(network.links + class).chain(network.links_of(class_of))
        });
        let (mut loads, mut sum) = (vec![0_u64; threads], 0);
        let mut is_placed = vec![false; set.len()];
        for set in hosts.chain(0..set.len()).map(|node| set[node]) {
            if !std::mem::replace(&mut is_placed[set], true) {
                let thread = (((sum + weight[set] / 2) / even.max(1)) as usize).min(threads - 1);
                sum += weight[set];
                loads[thread] += weight[set];
                self.home[set] = thread as u16;
            }
        }
        self.gather(set);
        loads
    }

    /// The most that a thread has to do, with what it hands over and takes, and what all have.
    fn with_handed(&self, network: &Network, load: &[u64], loads: &[u64]) -> (u64, u64) {
        let mut loads = loads.to_vec();
        let home = |node: usize, part: usize| {
            let parts = network.group_of(node).filter(|_| self.is_free[node]).map(|group| &self.parts[group]);
            parts.and_then(|parts| parts.get(part)).map_or(self.home[node], |&(_, home)| home)
        };
        for (class, class_of) in network.classes.iter().enumerate() {
            let (node, other) = (network.links + class, network.links + (class ^ 1));
            let cost = if class % 2 == 0 { SENDER } else { RECEIVER };
            let handed = HANDED * (load[node] / u64::from(cost));
            let (parts, mut begin) = (self.parts[class / 2].len().max(1), 0);
            for part in 0..parts {
                let end = self.parts[class / 2].get(part).map_or(class_of.count, |&(end, _)| end);
                let handed = share_of(handed, end - begin, class_of.count);
                begin = end;
                let mut last = home(node, part);
                let links =
                    network.links_from(class_of.route).map(|link| home(network.leader[link] as usize, 0));
                for next in links.chain([home(other, part)]) {
                    if next != last {
                        loads[usize::from(last)] += handed;
                        loads[usize::from(next)] += handed;
                    }
                    last = next;
                }
            }
        }
        (loads.iter().max().copied().unwrap_or(0), loads.iter().sum())
    }

    /// Fills threads up to `level` with the flows of a group, each with a range.
    fn pour(&mut self, group: usize, weight: u64, count: u32, level: u64, loads: &mut [u64]) {
        let mut next = 0;
        while next < count {
            let thread = least(loads);
            let room = u128::from(level.saturating_sub(loads[thread]));
            let rest = count - next;
            let flows = match (room * u128::from(count)).div_ceil(u128::from(weight.max(1))) {
                // Full, all but for what was rounded.
                0 => rest,
                flows => flows.min(rest.into()) as u32,
            };
            next += flows;
            loads[thread] += share_of(weight, flows, count);
            self.parts[group].push((next, thread as u16));
        }
    }

    /// Threads that have nothing to do are none.
    fn settle(mut self, loads: Vec<u64>, (longest, total): (u64, u64)) -> Self {
        let mut number = 0;
        let numbers: Vec<u16> = loads
            .iter()
            .map(|&load| {
                number += u16::from(load > 0);
                number.saturating_sub(1)
            })
            .collect();
        self.home.iter_mut().for_each(|home| *home = numbers[usize::from(*home)]);
        self.parts.iter_mut().flatten().for_each(|(_, home)| *home = numbers[usize::from(*home)]);
        self.threads = usize::from(number.max(1));
        (self.longest, self.total) = (longest, total);
        self
    }

    /// Instructions that meetings cost in a second, with windows of this length.
    fn meetings(&self, network: &Network, shift: Shift) -> u64 {
        let is_cut = |node: usize| {
            self.is_free[node] && network.group_of(node).is_some_and(|g| self.parts[g].len() > 1)
        };
        let parts = |edge: &crate::network::Edge| {
            self.home[edge.from] != self.home[edge.to] || is_cut(edge.from) || is_cut(edge.to)
        };
        let between = network.edges.iter().filter(|edge| parts(edge)).map(|edge| edge.latency).min();
        of_meetings(self.threads, shift.length() << Plan::epoch(between, shift))
    }

    fn ends(&self, network: &Network) -> Ends {
        let ends = |(group, parts): (usize, &Vec<(u32, u16)>)| match parts.len() {
            0 => vec![network.classes[2 * group].count],
            _ => parts.iter().map(|&(end, _)| end).collect(),
        };
        self.parts.iter().enumerate().map(ends).collect()
    }

    /// By node of the network that is cut.
    fn homes(&self, network: &Network, cut: &Cut) -> Vec<u16> {
        let mut home = vec![0; cut.network.nodes()];
        for node in 0..network.nodes() {
            let parts = network.group_of(node).filter(|_| self.is_free[node]).map(|group| &self.parts[group]);
            for (at, part) in cut.nodes(network, node).enumerate() {
                home[part] = parts.map_or(self.home[node], |parts| parts[at].1);
            }
        }
        home
    }
}

/// True if threads that take the next of these parts as soon as they have done one end at about the same time.
pub(crate) fn is_even(parts: &[Network], threads: usize) -> bool {
    let mut loads = vec![0_u64; threads.max(1)];
    for part in parts {
        let thread = least(&loads);
        loads[thread] += guess(part).iter().sum::<u64>().max(1);
    }
    let longest = loads.iter().max().copied().unwrap_or(0);
    let even = loads.iter().sum::<u64>() / loads.len() as u64;
    threads < 2 || longest <= even + even / 4
}

/// The thread that has least to do.
pub(crate) fn least(loads: &[u64]) -> usize {
    (0..loads.len()).min_by_key(|&thread| (loads[thread], thread)).unwrap_or(0)
}

/// By node the first of those with which it has to stay.
fn near(network: &Network, window: Picos) -> Vec<usize> {
    let mut sets = DisjointSets::new(network.nodes());
    for edge in network.edges.iter().filter(|edge| edge.latency < window) {
        sets.join(edge.from, edge.to);
    }
    for (node, &leader) in network.leader.iter().enumerate() {
        sets.join(node, leader as usize);
    }
    (0..network.nodes()).map(|node| sets.find(node)).collect()
}

impl Network {
    /// The group of hosts.
    fn group_of(&self, node: usize) -> Option<usize> {
        match self.node(node) {
            Node::Class(class) => Some(class as usize / 2),
            Node::Link(_) | Node::Device(_) => None,
        }
    }

    /// By group: it has flows to share out, and no agents, which know each other by the addresses of all.
    fn can_be_cut(&self) -> Vec<bool> {
        let mut can = self.classes.chunks(2).map(|pair| pair[0].count > 1).collect::<Vec<_>>();
        for (node, courses) in self.courses.iter().enumerate() {
            let ends = courses.iter().filter_map(|course| {
                let mut hops = self.routes[course.route as usize..].iter();
                hops.find_map(|hop| match hop {
                    Hop::Link(_) => None,
                    other => Some(self.node_of(*other)),
                })
            });
            let agents = ends.chain((!courses.is_empty()).then_some(node));
            agents.filter_map(|node| self.group_of(node)).for_each(|group| can[group] = false);
        }
        can
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{self, Draw};

    #[test]
    fn what_each_thread_is_said_to_have_is_what_lives_there() {
        let (mut shared, mut cuts) = (0, 0);
        for seed in 0..200 {
            let mut draw = Draw::new(seed);
            let mut model = common::random_model(&mut draw, seed);
            if seed % 4 == 0 {
                common::interoperate(&mut draw, &mut model);
            }
            let network = Network::new(&model);
            let mut load = guess(&network);
            // Hosts are most of the work in every other one.
            let busy = if seed % 2 == 0 { 1 } else { 1 << 16 };
            load[network.links..].iter_mut().for_each(|load| *load *= busy);
            for threads in [2, 3, 16, 64, 5000] {
                let Some(mut share) = Share::new(&network, 1, threads, &load) else { continue };
                let domains = share.plan.domains();
                assert!((2..=threads).contains(&domains), "seed {seed}: {domains} of {threads} threads");
                let mut lives = vec![false; domains];
                share.plan.home.iter().for_each(|&home| lives[usize::from(home)] = true);
                assert!(!lives.contains(&false), "seed {seed}: nobody lives on a thread");
                let said = share.expected;
                share.expect(&network, &load);
                // Parts of a load are rounded, and nothing is never quite nothing.
                let slack = 64 + share.plan.home.len() as u64;
                assert!(
                    share.expected.0.abs_diff(said.0) <= slack,
                    "seed {seed}: {:?}, {said:?}",
                    share.expected
                );
                assert!(
                    share.expected.1.abs_diff(said.1) <= slack,
                    "seed {seed}: {:?}, {said:?}",
                    share.expected
                );
                shared += 1;
                cuts += usize::from(share.cut.network.classes.len() > network.classes.len());
            }
        }
        assert!(shared > 300 && cuts > 100, "{shared} shared, {cuts} with classes that were cut");
    }
}
