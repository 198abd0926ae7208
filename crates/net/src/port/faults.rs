//! Things that happen to packets on the wire.

use super::{PortConfig, Streams};
use crate::impairments::{EcnRewrite, Errors, Reorder, Spans};
use crate::packet::Packet;
use crate::random::Probability;
use alloc::boxed::Box;
use congestlab_core::law::Packet as _;

/// Errors, losses of ACKs, packets that come later and ECN fields that are rewritten, as they are drawn.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    errors: Option<Errors>,
    ack_loss: Probability,
    ack_blackout: Spans,
    reorder: Option<Reorder>,
    ecn: Option<EcnRewrite>,
    streams: Streams,
}

impl Faults {
    /// `None`: whatever is sent reaches the far end, at its time.
    pub(super) fn new(config: &PortConfig, streams: Streams) -> Option<Box<Self>> {
        let is_faultless = config.errors.is_none()
            && config.ack_loss == Probability::ZERO
            && config.ack_blackout.is_empty()
            && config.reorder.is_none()
            && config.ecn.is_none();
        (!is_faultless).then(|| {
            Box::new(Self {
                errors: config.errors.map(Errors::new),
                ack_loss: config.ack_loss,
                ack_blackout: config.ack_blackout.clone(),
                reorder: config.reorder,
                ecn: config.ecn,
                streams,
            })
        })
    }

    /// True if a packet that would reach the far end at `packet.at` is lost on its way; it may come later, and with another
    /// ECN field.
    #[inline]
    pub(super) fn befall(&mut self, packet: &mut Packet) -> bool {
        let has_error = match &mut self.errors {
            Some(errors) => {
                let probability = errors.probability(packet.at, packet.size, &mut self.streams.bursts);
                self.streams.errors.bernoulli(probability)
            }
            None => false,
        };
        if let Some(reorder) = &self.reorder
            && self.streams.reorder.bernoulli(reorder.probability)
        {
            packet.at = packet.at.saturating_add(reorder.delay);
        }
        if let Some(ecn) = &self.ecn
            && self.streams.ecn.bernoulli(ecn.probability)
        {
            packet.set_ecn(ecn.of(packet.ecn()));
        }
        let is_lost = packet.is_pure_ack()
            && (self.streams.ack_loss.bernoulli(self.ack_loss) | self.ack_blackout.contains(packet.at));
        has_error || is_lost
    }

    /// Random words drawn so far.
    pub(super) fn draws(&self) -> u64 {
        let Streams { errors, ack_loss, bursts, reorder, ecn, .. } = &self.streams;
        [errors, ack_loss, bursts, reorder, ecn].iter().map(|stream| stream.draws()).sum()
    }
}
