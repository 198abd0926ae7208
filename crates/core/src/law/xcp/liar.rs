//! A sender that lies to links, for trying what polices it (docs/design/protocols.md 13.4, TH 5). X is overstated by
//! [`SenderConfig::price`] and demand by [`RequestPolicy::Unlimited`](super::RequestPolicy::Unlimited), as honest weights
//! and ns-2 do; the rest is here. A liar follows no other profile, and no honest sender runs a line of this file.

use super::{Header, Lies, Sender, SenderConfig};
use crate::law::{Ack, Send};
use crate::units::Time;

impl Lies {
    /// Returns the change of the window that is taken for one that was granted.
    #[inline]
    fn heard(self, change: i64) -> i64 {
        match u64::try_from(change) {
            Ok(change) => self.forged.of(change).min(i64::MAX as u64) as i64,
            Err(_) if self.deaf => 0,
            Err(_) => change,
        }
    }
}

impl Sender {
    /// Takes an acknowledgment as a liar does.
    #[inline]
    pub(super) fn liar_on_ack(&mut self, config: &SenderConfig, lies: Lies, now: Time, ack: &Ack) {
        let change = lies.heard(self.change(config, ack));
        self.note_reply(config, ack);
        self.note_ack(config, now, ack);
        self.apply(config, now, ack, change);
    }

    /// Returns the header that a liar sends.
    #[inline(always)]
    pub(super) fn liar_header(
        &mut self,
        config: &SenderConfig,
        lies: Lies,
        now: Time,
        send: &Send,
    ) -> Header {
        let header = self.standard_header(config, now, send);
        if header.rtt == 0 {
            return header;
        }
        let rtt = lies.stated_rtt.of(header.rtt.into()).clamp(1, u32::MAX.into());
        Header { rtt: rtt as u32, ..header }
    }
}
