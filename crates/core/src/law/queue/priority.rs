//! Drop-tail with two priorities (Morabito's mechanism for TCP-Peach; docs/design/protocols.md 10.4): data that arrives
//! at a full queue takes the place of the newest low-priority packets in it. More waiting than a threshold, and
//! low-priority packets that arrive are dropped (GTNetS).

use super::{Arrival, Draws, Limit, QueueLaw, Queues, Reason, Verdict};
use crate::law::Packet;

/// The law, which remembers its threshold alone.
#[derive(Clone, Debug)]
pub struct Priority {
    threshold: Limit,
}

impl Priority {
    fn exceeds(&self, queue: usize, queues: &impl Queues) -> bool {
        match self.threshold {
            Limit::Packets(packets) => queues.packets(queue) > packets,
            Limit::Bytes(bytes) => queues.bytes(queue).0 > bytes,
            Limit::None => false,
        }
    }
}

impl QueueLaw for Priority {
    /// The threshold.
    type Config = Limit;
    type Sample = ();

    const PASSES_IDLE: bool = true;

    fn start(config: &Limit) -> Self {
        Self { threshold: *config }
    }

    #[inline]
    fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        let (queue, size) = (arrival.queue, arrival.packet.size());
        if arrival.is_low_priority && self.exceeds(queue, queues) {
            Verdict::Drop(Reason::QueueFull)
        } else if queues.has_room(queue, size) {
            Verdict::Pass
        } else if !arrival.is_low_priority && queues.has_room_behind_low_priority(queue, size) {
            Verdict::PushOut
        } else {
            Verdict::Drop(Reason::QueueFull)
        }
    }

    fn sample(&mut self, _queues: &impl Queues) {}
}
