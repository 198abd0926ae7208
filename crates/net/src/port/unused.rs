//! Ports that no packet ever comes to.

use super::{Output, Port};
use crate::packet::{Packet, Picos};

/// A far end that nothing reaches.
struct Nobody;

impl Output for Nobody {
    fn deliver(&mut self, _: &mut Packet) {}
}

impl Port {
    /// As [`Port::advance_before`], from the beginning on, where no packet has come and nobody hears of events: a law's
    /// intervals, which then are nobody's business, do not pass.
    pub fn pass_unused(&mut self, t: Picos) {
        let laws = (self.parts.law.take(), self.parts.queue_law.take());
        self.timer = self.parts.timer();
        self.advance_before(t, &mut Nobody);
        (self.parts.law, self.parts.queue_law) = laws;
        self.timer = self.parts.timer();
    }
}
