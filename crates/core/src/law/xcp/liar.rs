//! A sender that lies to links, for trying what polices it (docs/design/protocols.md 13.4, TH 5). X is overstated by
//! [`SenderConfig::price`] and demand by [`RequestPolicy::Unlimited`](super::RequestPolicy::Unlimited), as honest weights
//! and ns-2 do; the rest is here. No profile is followed beside, and no honest sender runs a line of it.

use super::Header;
use super::sender::{Profile, Sender, SenderConfig};
use crate::law::settings::Field;
use crate::law::{Ack, Send};
use crate::units::{Ratio, Time};

/// Lies of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lies {
    /// Factor of the round trip time that headers state.
    pub stated_rtt: Ratio,
    /// Factor of positive feedback, as if whoever receives forged it in ACKs.
    pub forged: Ratio,
    /// True: negative feedback is not heard.
    pub deaf: bool,
}

impl Lies {
    /// The truth.
    pub const NONE: Self = Self { stated_rtt: Ratio::ONE, forged: Ratio::ONE, deaf: false };

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

impl Profile {
    /// Tells the lies of a sender that follows no implementation, to change them.
    pub(super) fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        let mut lies = if let Self::Liar(lies) = *self { lies } else { Lies::NONE };
        tell(
            "stated_rtt",
            "Factor of the round trip that headers state: above 1 the sender lies; 1.",
            Field::Factor(&mut lies.stated_rtt),
        );
        tell(
            "forged",
            "Factor of positive feedback, as if ACKs were forged: above 1 the sender takes more than it was granted; 1.",
            Field::Factor(&mut lies.forged),
        );
        tell("deaf", "Do not hear negative feedback; false.", Field::Switch(&mut lies.deaf));
        match self {
            Self::Standard | Self::Liar(_) if lies == Lies::NONE => *self = Self::Standard,
            Self::Standard | Self::Liar(_) => *self = Self::Liar(lies),
            Self::Ns2 | Self::Thesis => {}
        }
    }
}

impl Sender {
    /// Takes an acknowledgment as a liar does.
    #[inline]
    pub(super) fn liar_on_ack(&mut self, config: &SenderConfig, lies: Lies, now: Time, ack: &Ack) {
        let change = lies.heard(self.change(config, ack));
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
