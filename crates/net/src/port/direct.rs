//! Packets that nobody looks at but a law: they go in line, from where they are to where they come next.
//!
//! What there is to ask of a port is asked once, as it is made: `is_simple`, `is_direct`. All other packets go by what examines
//! them, which does the same with these.

use super::{Outcome, Output, Port, mix_departure, nanos};
use crate::packet::{PS_PER_NS, Packet, Picos};
use crate::service::NEVER;
use congestlab_core::units::{Bytes, Duration};

/// Manner in which a packet enters a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The packet waits as it is: [`Port::join`].
    Joins,
    /// The packet goes on at once: [`Port::pass`].
    Passes,
    /// Somebody looks at the packet, or drops it: [`Port::arrive_beside`].
    Examined,
}

impl Port {
    /// Returns how a packet that arrives enters. The port must have been advanced to `now`.
    #[inline(always)]
    pub fn entry(&self, now: Picos, packet: &Packet) -> Entry {
        if !self.is_simple || packet.shows_ttl() {
            Entry::Examined
        } else if self.line.busy_until > now || !self.queue.is_empty() {
            if self.queue.fits(packet.size) { Entry::Joins } else { Entry::Examined }
        } else if self.is_direct {
            Entry::Passes
        } else {
            Entry::Examined
        }
    }

    /// Takes a packet that joins the queue.
    #[inline(always)]
    pub fn join(&mut self, now: Picos, packet: &Packet) {
        self.meet(now, packet);
        let waiting = self.queue.len();
        self.begin_to_wait(now, waiting);
        self.queue.push(packet).at = now;
        self.meter.reach(waiting + 1);
    }

    /// Takes a packet that passes, for an output that does not watch; returns when it is at the far end, whereto the
    /// caller brings it.
    #[inline(always)]
    pub fn pass(&mut self, now: Picos, packet: &mut Packet) -> Picos {
        self.meet(now, packet);
        self.server.rest();
        let end = self.server.transmit_fixed(now, u32::from(packet.size));
        let at = self.line.begin(packet.size, end);
        self.line.deliver(at);
        if !self.is_plain
            && let Some(law) = &mut self.parts.law
        {
            law.on_departure(nanos(now), packet, Bytes(0));
            self.fingerprint = mix_departure(self.fingerprint, now, packet);
        }
        at
    }

    #[inline(always)]
    fn meet(&mut self, now: Picos, packet: &Packet) {
        debug_assert!(self.departure > now && self.timer >= now, "events before the arrival were not served");
        self.arrived += 1;
        if !self.is_plain
            && let Some(law) = &mut self.parts.law
        {
            law.on_arrival(nanos(now), packet);
        }
        self.mix_arrival(now, packet, Outcome::Accepted);
    }

    /// The first packet of a direct port leaves from where it waits.
    #[inline(always)]
    pub(super) fn depart_directly(&mut self, now: Picos, out: &mut impl Output) {
        let waiting = self.queue.len();
        let Some((packet, backlog)) = self.queue.call() else {
            debug_assert!(false, "a departure without a packet");
            self.departure = NEVER;
            return;
        };
        let size = packet.size;
        self.meter.note(now, waiting);
        self.waits.record(Duration((now - packet.at) / PS_PER_NS));
        let end = self.server.transmit_fixed(now, u32::from(size));
        self.departure = if waiting > 1 { end } else { NEVER };
        let at = self.line.begin(size, end);
        self.line.deliver(at);
        if let Some(law) = &mut self.parts.law {
            law.on_departure(nanos(now), packet, backlog);
            self.fingerprint = mix_departure(self.fingerprint, now, packet);
        }
        out.sent(now, &Packet { at, ..*packet }, false);
        out.deliver_at(at, packet);
        self.queue.release();
    }
}
