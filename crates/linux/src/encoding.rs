//! The ways in which a law's congestion header travels in a real packet.

use serde::Serialize;

/// The place of the congestion header in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// A TCP option ([`congestlab_core::wire::option`]).
    #[default]
    Option,
    /// A header of its own between IP and TCP ([`congestlab_core::wire::xcp`], version 3), if the peer uses it too.
    Shim,
    /// Either of these two, as each packet has it: of routers alone, for hosts say which.
    Both,
    /// The ECN field of IP, echoed in a TCP option: the only one of VCP and DPCP.
    Ecn,
    /// A packet of QUIC before others in a datagram of UDP: the only one of SCONE.
    Quic,
}
