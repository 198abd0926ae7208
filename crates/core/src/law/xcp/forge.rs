//! A receiver that lies to its sender (docs/design/protocols.md 13.4). The lie is written into the header of a data packet before
//! the echo law reads it.

use super::{Header, SenderConfig};
use crate::law::{Lie, Packet};
use crate::units::{Bytes, Wide};

/// Rewrites the header of a data packet for a receiver that lies.
#[inline]
pub(in crate::law) fn forge(config: &SenderConfig, lie: Lie, packet: &mut impl Packet) {
    let Some(header) = packet.header::<Header>() else { return };
    let delta = match lie {
        Lie::Most => i32::MAX,
        Lie::Asked => asked(config, &header, packet.size()),
        Lie::Increases => header.delta.max(0),
    };
    packet.add_header(Header { delta, ..header });
}

/// Returns what a sender with this configuration asked for in a header, of a flow whose data wait; never more. The receiver
/// computes it from X and the round trip, whatever links have made of the request.
#[inline]
fn asked(config: &SenderConfig, header: &Header, size: Bytes) -> i32 {
    // X is rounded, and the round trip cut off.
    let (x, rtt) = (header.x.saturating_sub(1) as u64, header.rtt as u64 + 1);
    let share = Wide::product(config.desired_rate.0, x).over(rtt).to_u64();
    let own = Wide::shifted(size.0, 28).over(rtt).to_u64();
    share.saturating_sub(own + 1).min(i32::MAX as u64) as i32
}
