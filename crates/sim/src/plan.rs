//! The windows into which the engine cuts time, and the order in which nodes run inside one.

use congestlab_net::packet::Picos;

use crate::network::{Hop, Network};
use crate::share;

/// Longest window: leaves 28 bits of a sort key to number the packets of a window.
const SHIFT_MAX: u32 = 36;
/// Packets that a window should hold: more do not help, and leave the L2 cache (docs/design/engine.md 2.3).
const WINDOW_PACKETS: u64 = 4096;
/// Where there are many links: packets that each should get, once it is in the cache.
const LINK_PACKETS: u64 = 32;

/// At most `2^EPOCH` windows pass between two meetings of threads: more would only fill the cache.
const EPOCH: u32 = 4;
/// Meetings that a thread may be ahead of what it has heard: more would only take memory, as they do with many threads, each
/// of which has mail for each other at each.
const LEAD: u64 = 3;
const LEADS: u64 = 256;

/// A way to cut time and to put nodes in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Windows are `2^shift` ps long.
    pub(crate) shift: u32,
    /// Nodes in the order in which they run.
    pub(crate) order: Vec<u32>,
    /// Position in `order` of the node that acts for each node.
    pub(crate) rank: Vec<u32>,
    /// Nodes that something may reach in the window in which it was sent, and mixed ones.
    pub(crate) is_late: Vec<bool>,
    /// Hosts whose packets have to be put in order: see [`Network::is_mixed`].
    pub(crate) is_mixed: Vec<bool>,
    /// Which thread each node lives on.
    pub(crate) home: Vec<u16>,
    /// Instructions that a packet takes at each node.
    pub(crate) cost: Vec<u32>,
    /// Threads meet every `2^epoch` windows: what goes from one to another takes at least as long.
    pub(crate) epoch: u32,
    /// So many meetings more fit into that time.
    pub(crate) lead: u64,
}

impl Plan {
    /// For one thread: the longest windows that the network allows, divided by `divisor`; `None` if some circle of
    /// entities passes packets on in no time at all.
    pub(crate) fn new(network: &Network, divisor: u32) -> Option<Self> {
        Self::of(network, Self::shift(network, divisor, 1)?, vec![0; network.nodes()])
    }

    /// The longest windows for so many threads that share what is in one: `2^shift` ps.
    pub(crate) fn shift(network: &Network, divisor: u32, threads: usize) -> Option<u32> {
        let mut latencies: Vec<Picos> = network.edges.iter().map(|e| e.latency).filter(|&l| l > 0).collect();
        latencies.sort_unstable();
        latencies.dedup();
        let allowed = latencies.partition_point(|&l| network.order(l).is_some());
        let longest = match allowed {
            0 if latencies.is_empty() => network.order(1).map(|_| 1 << SHIFT_MAX)?,
            0 => return None,
            n => latencies[n - 1],
        };
        // Datagrams that no link can carry have to be held all the same, until the link drops them.
        let offered = network.classes.iter().fold(0, |sum: u64, class| sum.saturating_add(class.offered));
        // Links that no flow crosses have no packets, so they make no window fuller.
        let mut is_crossed = vec![false; network.links];
        for hop in &network.routes {
            if let Hop::Link(link) = *hop {
                is_crossed[link as usize] = true;
            }
        }
        let crossed = || network.packet_rate.iter().zip(&is_crossed).filter(|&(_, &is_crossed)| is_crossed);
        let packets = crossed().map(|(&rate, _)| rate).sum::<u64>().max(offered).max(1);
        let wanted = (WINDOW_PACKETS * threads as u64).max(crossed().count() as u64 * LINK_PACKETS);
        let crowded = (wanted.saturating_mul(1_000_000_000_000) / packets).max(1);
        Some(longest.min(crowded).ilog2().min(SHIFT_MAX).saturating_sub(divisor.max(1).ilog2()))
    }

    /// Windows of `2^shift` ps, and who lives where; `None` if some circle is shorter.
    pub(crate) fn of(network: &Network, shift: u32, home: Vec<u16>) -> Option<Self> {
        let order = network.order(1 << shift)?;
        let mut rank = vec![0; order.len()];
        for (position, &node) in order.iter().enumerate() {
            rank[node] = position as u32;
        }
        for (node, &leader) in network.leader.iter().enumerate() {
            rank[node] = rank[leader as usize];
        }
        let mut is_late = vec![false; order.len()];
        for edge in network.edges.iter().filter(|e| e.latency < 1 << shift) {
            is_late[edge.to] = true;
        }
        let is_mixed = network.is_mixed();
        is_late.iter_mut().zip(&is_mixed).for_each(|(is_late, is_mixed)| *is_late |= is_mixed);
        let between = network.edges.iter().filter(|e| home[e.from] != home[e.to]).map(|e| e.latency).min();
        let epoch = Self::epoch(between, shift);
        let threads = u64::from(home.iter().max().copied().unwrap_or(0)) + 1;
        let most = LEAD.min(LEADS / threads);
        let lead = between.map_or(0, |latency| ((latency >> (shift + epoch)) - 1).min(most));
        let (cost, order) = (share::costs(network), order.into_iter().map(|n| n as u32).collect());
        Some(Self { shift, order, rank, is_late, is_mixed, home, cost, epoch, lead })
    }

    /// Threads meet every so many windows, as a power of two, if what goes from one to another takes at least so long.
    pub(crate) fn epoch(between: Option<Picos>, shift: u32) -> u32 {
        between.map_or(EPOCH, |latency| (latency.ilog2() - shift).min(EPOCH))
    }

    /// The same with a meeting where threads would have one, and the number of theirs for each.
    pub(crate) fn in_step(&self, shared: &Self) -> (Self, u64) {
        let theirs = shared.shift + shared.epoch;
        let epoch = theirs.saturating_sub(self.shift);
        (Self { epoch, lead: 0, ..self.clone() }, 1 << self.shift.saturating_sub(theirs))
    }

    /// Threads that have something to do.
    pub(crate) fn domains(&self) -> usize {
        self.home.iter().max().map_or(1, |&d| usize::from(d) + 1)
    }

    /// Instructions that meetings cost in a second.
    pub(crate) fn meetings(&self) -> u64 {
        share::of_meetings(self.domains(), 1 << (self.shift + self.epoch))
    }
}
