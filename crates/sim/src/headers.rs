//! Addresses, ports and initial sequence numbers of flows, for laws and readers that look at IP and TCP headers.

use congestlab_net::tcp::Connection;

use crate::cloud::{HOSTS, receiver_address, sender_address};
use crate::model::{Group, GroupKind};
use crate::network::stream_of;

const SENDER_PORT: u32 = 40_000;
/// Ports that no dissector claims: 50000 to 53999, by group.
const RECEIVER_PORT: u32 = 50_000;
const RECEIVER_PORTS: u32 = 4_000;

/// A law may take as much off the first numbers of a connection (V7.2).
const SPARE: u32 = 8;

/// Returns the TCP ports of the sender and of the receiver of `flow`, an index over the whole run, in group
/// number `group`. Beyond [`HOSTS`] flows, addresses repeat with the next sender's port.
pub fn ports(group: usize, flow: u32) -> (u16, u16) {
    ((SENDER_PORT + flow / HOSTS) as u16, (RECEIVER_PORT + group as u32 % RECEIVER_PORTS) as u16)
}

/// Returns the header fields of a flow: number `index` in group number `number`, `flow` over the whole run.
/// Returns `None` if no law of the flow looks at headers. Initial sequence numbers are drawn from the
/// stream `flows.<name>/<index>.isn`.
pub fn connection(group: &Group, number: usize, index: u32, flow: u32, seed: u64) -> Option<Connection> {
    let GroupKind::Tcp(config) = &group.kind else { return None };
    if !config.law.needs().segments {
        return None;
    }
    let mut stream = stream_of(group, index, "isn", seed);
    let mut draw = || stream.next_u64() as u32;
    let isn = draw();
    let peer_isn = draw().clamp(SPARE, u32::MAX - 1);
    let (from, to) = ports(number, flow);
    Some(Connection {
        source: sender_address(flow).0,
        destination: receiver_address(flow).0,
        ports: u32::from(from) << 16 | u32::from(to),
        isn,
        peer_isn,
    })
}
