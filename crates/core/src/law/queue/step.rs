//! Step marking: every packet of an ECN-capable transport that meets a queue longer than a threshold is marked, by the
//! queue as it is and no average of it. DCTCP wants it (RFC 8257 §3.1).
//!
//! The threshold is a number of packets or bytes that wait, looked at when a packet arrives or when it leaves, or the
//! time that the packet has waited when it leaves. A packet that can not be marked passes, or is dropped in place of the mark.

use super::{Arrival, Departure, Draws, QueueLaw, Queues, Reason, Verdict};
use crate::law::Packet;
use crate::units::{Bytes, Duration};

/// Queue above which packets are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// A number of packets that wait, beside the packet itself.
    Packets(u64),
    /// Bytes that wait, beside the packet itself.
    Bytes(Bytes),
    /// Time that the packet waited, looked at when it leaves.
    Sojourn(Duration),
}

/// Moment at which the queue is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// The packet arrives.
    #[default]
    Enqueue,
    /// The packet leaves.
    Dequeue,
}

/// Settings of step marking in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// K, the queue above which packets are marked.
    pub threshold: Threshold,
    /// Moment at which the queue is looked at; a time that packets wait is known when they leave, whatever this is.
    pub at: At,
    /// True to drop a packet of a transport without ECN where it would be marked.
    pub drop: bool,
}

/// The law, which remembers nothing of what it saw.
#[derive(Clone, Debug)]
pub struct Step {
    config: Config,
}

impl Step {
    /// Marks a packet that meets a queue above the threshold, if it can be marked.
    #[inline]
    fn judge(&self, queue: usize, packet: &impl Packet, sojourn: Duration, queues: &impl Queues) -> Verdict {
        let is_above = match self.config.threshold {
            Threshold::Packets(most) => queues.packets(queue) > most,
            Threshold::Bytes(most) => queues.bytes(queue) > most,
            Threshold::Sojourn(most) => sojourn > most,
        };
        match packet.ecn() {
            1.. if is_above => Verdict::Mark,
            0 if is_above && self.config.drop => Verdict::Drop(Reason::QueueFull),
            _ => Verdict::Pass,
        }
    }

    #[inline]
    fn looks_at(&self) -> At {
        match self.config.threshold {
            Threshold::Sojourn(_) => At::Dequeue,
            _ => self.config.at,
        }
    }
}

impl QueueLaw for Step {
    type Config = Config;
    type Sample = ();

    fn start(config: &Config) -> Self {
        Self { config: *config }
    }

    fn marks(_config: &Config) -> bool {
        true
    }

    #[inline]
    fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        if !queues.has_room(arrival.queue, arrival.packet.size()) {
            return Verdict::Drop(Reason::QueueFull);
        }
        match self.looks_at() {
            At::Enqueue => self.judge(arrival.queue, arrival.packet, Duration(0), queues),
            At::Dequeue => Verdict::Pass,
        }
    }

    #[inline]
    fn on_dequeue(
        &mut self,
        departure: &Departure<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        match self.looks_at() {
            At::Enqueue => Verdict::Pass,
            At::Dequeue => self.judge(departure.queue, departure.packet, departure.sojourn, queues),
        }
    }

    fn sample(&mut self, _queues: &impl Queues) {}
}
