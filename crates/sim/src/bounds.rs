//! Bounds of what senders send, by what their paths can hold.
//!
//! A law may ask for any window: one that begins at the rate of its line, one that reads a rate that was meant for another
//! link, one from outside with a fault. What a path cannot hold is dropped in any case. So the hosts of every law use no more
//! than several times what all queues and wires of the path hold together, and need no bound of their own.

use congestlab_core::units::Bytes;
use congestlab_net::packet::Picos;
use congestlab_net::queue::Limit;
use congestlab_net::service::{PS_PER_S, Service};

use crate::model::{Group, GroupKind, Link, Model, Pipe};

/// A window may be so many times what the path holds. Slow start doubles what fills it, and queues that are found full need
/// time to say so.
const TIMES: u64 = 4;
/// Segments that any window may have beside that.
const BESIDE: u64 = 64;
/// The rate of a trace at its best, in multiples of its mean.
const PEAK: u64 = 8;

/// Capacity of a link for packets: its rate, its wire, its queues.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Most that it serves at any time, bit/s.
    rate: u64,
    /// Time on the wire, packets that are late included, ps.
    delay: Picos,
    /// Packets, and bytes, in its queues; one of both is 0. The largest number: no limit.
    packets: u64,
    bytes: u64,
}

impl Held {
    fn new(link: &Link) -> Self {
        let port = &link.port;
        let rate = match &port.service {
            Service::Fixed(rate) => rate.0,
            Service::Steps(steps) => steps.as_slice().iter().map(|&(_, rate)| rate.0).max().unwrap_or(0),
            Service::Trace(trace) => trace.mean_rate().0.saturating_mul(PEAK),
        };
        let queues = (0..port.discipline.queues()).map(|queue| port.discipline.limit(queue, port.limit));
        let sum = queues.fold((0, 0), |(packets, bytes): (u64, u64), limit| match limit {
            Limit::Packets(more) => (packets.saturating_add(more), bytes),
            Limit::Bytes(more) => (packets, bytes.saturating_add(more)),
            Limit::None => (u64::MAX, u64::MAX),
        });
        let (packets, bytes) = match port.discipline.total(port.limit) {
            Limit::Packets(total) => (total, 0),
            Limit::Bytes(total) => (0, total),
            Limit::None => sum,
        };
        let late = port.reorder.map_or(0, |reorder| reorder.delay);
        Self { rate, delay: port.delay.saturating_add(late), packets, bytes }
    }

    /// Packets of this size that its queues hold.
    fn queued(&self, size: u64) -> u64 {
        self.packets.saturating_add(self.bytes.div_ceil(size))
    }
}

/// Bounds of what flows of a model send, from the capacity of every link for packets.
#[derive(Clone, Debug)]
pub struct Bounds<'a> {
    model: &'a Model,
    links: Vec<Held>,
}

impl<'a> Bounds<'a> {
    /// Looks at every link once.
    pub fn new(model: &'a Model) -> Self {
        Self { model, links: model.links.iter().map(Held::new).collect() }
    }

    /// Returns the most that the window of a flow of the group may count: `TIMES` what its path holds, which is no more than
    /// it delivers in the whole run.
    pub fn window(&self, group: &Group) -> Bytes {
        let GroupKind::Tcp(config) = &group.kind else { return Bytes(u64::MAX) };
        let segment = u64::from(config.segment).max(1);
        Bytes(self.segments(group).saturating_mul(segment))
    }

    /// Returns the same in segments.
    pub fn segments(&self, group: &Group) -> u64 {
        self.holds(group).saturating_mul(TIMES).saturating_add(BESIDE)
    }

    /// Returns the segments of a flow of the group that its path holds where it holds most.
    pub fn holds(&self, group: &Group) -> u64 {
        let GroupKind::Tcp(config) = &group.kind else { return u64::MAX };
        let (segment, ack) = (u64::from(config.segment).max(1), u64::from(config.ack).max(1));
        let held =
            |links: &[u32]| -> Vec<Held> { links.iter().map(|&link| self.links[link as usize]).collect() };
        let on = |(path, back): (&Vec<u32>, &Vec<u32>)| {
            let (path, back) = (held(path), held(back));
            let links = path.iter().map(|link| link.rate).min().unwrap_or(u64::MAX);
            let is_slower = |pipe: &Pipe| pipe.rate.0 <= links;
            let pipes = || [group.access, group.exit].into_iter().flatten();
            let slowest = pipes().map(|pipe| pipe.rate.0).fold(links, u64::min);
            let delays = path.iter().chain(&back).map(|link| link.delay);
            // Access and exit are there both ways.
            let delay =
                delays.chain(pipes().map(|pipe| pipe.delay.saturating_mul(2))).fold(0, Picos::saturating_add);
            let delivered = carried(slowest, self.model.duration) / segment;
            if pipes().any(|pipe| is_slower(&pipe)) {
                // Its queue has no limit.
                return delivered;
            }
            let in_queues = path.iter().map(|link| link.queued(segment));
            // One acknowledges two segments.
            let of_acks = back.iter().map(|link| link.queued(ack).saturating_mul(2));
            let hops = (path.len() + back.len()) as u64;
            let on_wires = carried(slowest, delay) / segment + hops;
            in_queues.chain(of_acks).fold(on_wires, u64::saturating_add).min(delivered)
        };
        group.paths().map(on).max().unwrap_or(u64::MAX)
    }
}

/// Bytes that a rate carries in a span.
fn carried(bits_per_second: u64, span: Picos) -> u64 {
    let bytes = u128::from(bits_per_second) * u128::from(span) / u128::from(PS_PER_S) / 8;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
