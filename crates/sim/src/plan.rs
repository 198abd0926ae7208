//! The windows into which the engine cuts time, and the order in which nodes run inside one.

use congestlab_net::packet::Picos;

use crate::calendar::Window;
use crate::costs;
use crate::network::{Hop, Network};

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

/// Length of windows: a power of two. A sort key of 64 bits has the time in the window and the number of a packet there, so
/// windows have 2^1 ps at least, since a shift by 64 is none, and 2^36 at most, which leaves 28 bits for the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shift(u32);

impl Shift {
    const MIN: Self = Self(1);
    const MAX: Self = Self(36);

    /// The longest windows that are no longer than `longest`; `None` if all are.
    pub(crate) fn within(longest: Picos) -> Option<Self> {
        let shift = Self(longest.checked_ilog2()?);
        (shift >= Self::MIN).then(|| shift.min(Self::MAX))
    }

    /// Windows shorter by so many powers of two, as far as there are some.
    fn less(self, powers: u32) -> Self {
        Self(self.0.saturating_sub(powers)).max(Self::MIN)
    }

    /// These windows, then those of half the length, and so on.
    pub(crate) fn and_shorter(self) -> impl Iterator<Item = Self> {
        (Self::MIN.0..=self.0).rev().map(Self)
    }

    pub(crate) fn length(self) -> Picos {
        1 << self.0
    }

    /// The window of a time.
    #[inline(always)]
    pub(crate) fn window(self, at: Picos) -> Window {
        at >> self.0
    }

    /// When a window begins.
    #[inline(always)]
    pub(crate) fn begin(self, window: Window) -> Picos {
        window << self.0
    }

    /// Bits of a sort key below the time.
    #[inline(always)]
    pub(crate) fn number_bits(self) -> u32 {
        64 - self.0
    }
}

/// A way to cut time and to put nodes in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Length of the windows.
    pub(crate) shift: Shift,
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

    /// The longest windows for so many threads that share what is in one; `None` if some circle is shorter than any.
    pub(crate) fn shift(network: &Network, divisor: u32, threads: usize) -> Option<Shift> {
        let mut latencies: Vec<Picos> = network.edges.iter().map(|e| e.latency).filter(|&l| l > 0).collect();
        latencies.sort_unstable();
        latencies.dedup();
        let allowed = latencies.partition_point(|&l| network.order(l).is_some());
        let longest = match allowed {
            0 if latencies.is_empty() => network.order(1).map(|_| Shift::MAX.length())?,
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
        let crowded = Shift::within(crowded).unwrap_or(Shift::MIN);
        Some(Shift::within(longest)?.min(crowded).less(divisor.max(1).ilog2()))
    }

    /// Windows of this length, and who lives where; `None` if some circle is shorter.
    pub(crate) fn of(network: &Network, shift: Shift, home: Vec<u16>) -> Option<Self> {
        let order = network.order(shift.length())?;
        let mut rank = vec![0; order.len()];
        for (position, &node) in order.iter().enumerate() {
            rank[node] = position as u32;
        }
        for (node, &leader) in network.leader.iter().enumerate() {
            rank[node] = rank[leader as usize];
        }
        let mut is_late = vec![false; order.len()];
        for edge in network.edges.iter().filter(|e| e.latency < shift.length()) {
            is_late[edge.to] = true;
        }
        let is_mixed = network.is_mixed();
        is_late.iter_mut().zip(&is_mixed).for_each(|(is_late, is_mixed)| *is_late |= is_mixed);
        let between = network.edges.iter().filter(|e| home[e.from] != home[e.to]).map(|e| e.latency).min();
        let epoch = Self::epoch(between, shift);
        let threads = u64::from(home.iter().max().copied().unwrap_or(0)) + 1;
        let most = LEAD.min(LEADS / threads);
        let lead = between.map_or(0, |latency| ((shift.window(latency) >> epoch) - 1).min(most));
        let (cost, order) = (costs::costs(network), order.into_iter().map(|n| n as u32).collect());
        Some(Self { shift, order, rank, is_late, is_mixed, home, cost, epoch, lead })
    }

    /// Threads meet every so many windows, as a power of two, if what goes from one to another takes at least so long.
    pub(crate) fn epoch(between: Option<Picos>, shift: Shift) -> u32 {
        between.map_or(EPOCH, |latency| shift.window(latency).ilog2().min(EPOCH))
    }

    /// The same with a meeting where threads would have one, and the number of theirs for each.
    pub(crate) fn in_step(&self, shared: &Self) -> (Self, u64) {
        let theirs = shared.shift.0 + shared.epoch;
        let epoch = theirs.saturating_sub(self.shift.0);
        (Self { epoch, lead: 0, ..self.clone() }, 1 << self.shift.0.saturating_sub(theirs))
    }

    /// Threads that have something to do.
    pub(crate) fn domains(&self) -> usize {
        self.home.iter().max().map_or(1, |&d| usize::from(d) + 1)
    }

    /// Instructions that meetings cost in a second.
    pub(crate) fn meetings(&self) -> u64 {
        costs::of_meetings(self.domains(), self.shift.length() << self.epoch)
    }
}
