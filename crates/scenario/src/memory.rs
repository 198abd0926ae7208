//! How much memory a run may take: to refuse what can not fit before it fails.

use congestlab_net::packet::Picos;
use congestlab_net::queue::Limit;
use congestlab_net::service::PS_PER_S;
use congestlab_net::tcp::App;
use congestlab_sim::model::{Group, GroupKind, Model};

use crate::Measure;

/// A packet on its way or in a queue, with the room that a growing ring keeps.
const PACKET: u64 = 2 * 64;
/// Sender, receiver, histogram of round trip times, result.
const FLOW: u64 = 2_048;
/// A value of the series: 40 bytes, and as a row.
const SAMPLE: u64 = 64;
/// An event.
const EVENT: u64 = 96;
/// Values in a bin for each link and each flow.
const SAMPLES: [u64; 2] = [8, 4];

/// Bytes, at most and roughly. Packets are counted where they can be at once: as many as the links
/// hold in queues and on wires, but not more than the flows can have outstanding.
pub(crate) fn needed(model: &Model, measure: &Measure) -> u64 {
    let flows: u64 = model.groups.iter().map(|group| u64::from(group.count)).sum();
    let mut packets = 0_u64;
    for (index, link) in model.links.iter().enumerate() {
        let crossing = || {
            model.groups.iter().filter(move |group| {
                group.path.contains(&(index as u32)) || group.back.contains(&(index as u32))
            })
        };
        let outstanding =
            crossing().map(|group| outstanding(group, model.duration)).fold(0, u64::saturating_add);
        let smallest = crossing().map(packet_size).min().unwrap_or(u64::MAX);
        let rate = link.port.service.mean_rate(0, model.duration).0;
        let on_wire = carried(rate, link.port.delay.min(model.duration)) / smallest;
        let queued = match link.port.limit {
            Limit::Packets(packets) => packets,
            Limit::Bytes(bytes) => bytes / smallest,
            Limit::None => u64::MAX,
        };
        packets = packets.saturating_add(on_wire.saturating_add(queued).min(outstanding));
    }
    let mut bytes = flows.saturating_mul(FLOW).saturating_add(packets.saturating_mul(PACKET));
    if let Some(every) = model.sample_every.filter(|&every| measure.series && every > 0) {
        let values = (model.links.len() as u64 * SAMPLES[0]).saturating_add(flows.saturating_mul(SAMPLES[1]));
        bytes = bytes.saturating_add((model.duration / every).saturating_mul(values).saturating_mul(SAMPLE));
    }
    if measure.events {
        // What happens most is a drop or an error of a packet; more than one in ten is not a link.
        let sent: u64 = model
            .links
            .iter()
            .map(|link| {
                carried(link.port.service.mean_rate(0, model.duration).0, model.duration) / 1_500 / 10
            })
            .fold(0, u64::saturating_add);
        bytes = bytes.saturating_add(sent.saturating_mul(EVENT));
    }
    bytes
}

/// Bytes that a rate carries in a span.
fn carried(bits_per_second: u64, span: Picos) -> u64 {
    let bytes = u128::from(bits_per_second) * u128::from(span) / u128::from(PS_PER_S) / 8;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// ACKs are smaller, but there are no more of them than of the data that they acknowledge.
fn packet_size(group: &Group) -> u64 {
    match &group.kind {
        GroupKind::Tcp(config) => u64::from(config.segment).max(1),
        GroupKind::Source(config) => u64::from(config.segment).max(1),
    }
}

/// Packets that a group can have in the network at once.
fn outstanding(group: &Group, duration: Picos) -> u64 {
    let each = match &group.kind {
        GroupKind::Source(config) => carried(config.rate.0, duration) / u64::from(config.segment).max(1) + 1,
        GroupKind::Tcp(config) => {
            let size = match config.app {
                App::Transfer(size) | App::Bursts { total: Some(size), .. } => {
                    size.0 / u64::from(config.segment).max(1) + 1
                }
                _ => u64::MAX,
            };
            config.awnd.map_or(u64::MAX, u64::from).min(size)
        }
    };
    each.saturating_mul(group.count.into())
}
