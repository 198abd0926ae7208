//! Step marking: every packet of an ECN-capable transport that meets a queue longer than a threshold is marked, by the
//! queue as it is and no average of it. DCTCP wants it (RFC 8257 §3.1).
//!
//! The threshold is a number of packets or bytes that wait, looked at when a packet arrives or when it leaves, or the
//! time that the packet has waited when it leaves. A packet that can not be marked passes, or is dropped in place of the mark.

use super::egress::AtEgress;
use super::{Arrival, Departure, Draws, QueueLaw, Queues, Reason, Verdict};
use crate::law::Packet;
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
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

/// Settings of step marking at a router, whose threshold needs no link to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// T, the wait above which packets are marked; zero: `packets` says when.
    pub sojourn: Duration,
    /// K, the number of packets above which they are marked; 0: `sojourn` says when.
    pub packets: u32,
    /// True to drop a packet of a transport without ECN where it would be marked.
    pub drop: bool,
}

impl Default for Told {
    /// The step of a short queue that tc-dualpi2(8) has.
    fn default() -> Self {
        Self { sojourn: Duration(1_000_000), packets: 0, drop: false }
    }
}

impl Settings for Told {
    #[inline]
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("sojourn", "T, the wait above which packets are marked; 1 ms.", Field::Span(&mut self.sojourn));
        tell(
            "packets",
            "K, the number of packets that wait above which they are marked, in the place of a wait.",
            Field::Number(&mut self.packets, 1_000_000),
        );
        tell(
            "drop",
            "Drop packets of flows without ECN where others are marked; false.",
            Field::Switch(&mut self.drop),
        );
    }

    #[cfg(feature = "words")]
    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        if is_written("packets") && !is_written("sojourn") {
            self.sojourn = Duration(0);
        }
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        if (self.packets > 0) == (self.sojourn.0 > 0) {
            let text = if self.packets > 0 { "stands beside `packets`" } else { "is zero" };
            tell(Finding::range("sojourn", text, "allowed: sojourn=\"1 ms\" or packets=20, one of them"));
        }
    }
}

impl AtEgress for Step {
    type Told = Told;

    #[inline(always)]
    fn config(told: &Told) -> Config {
        let threshold = match told.packets {
            0 => Threshold::Sojourn(told.sojourn),
            packets => Threshold::Packets(packets.into()),
        };
        Config { threshold, at: At::Enqueue, drop: told.drop }
    }
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
