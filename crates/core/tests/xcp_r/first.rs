//! The version that XR rejects.

use super::*;
use congestlab_core::law::{Carried, Echo, Listening, Packet as _, Protocol};

/// docs/design/protocols.md 4.3: cwnd = H_feedback H_cwnd + H_cwnd, H_cwnd in packets in the product (C-39).
#[test]
fn one_packet_speaks_for_its_window() {
    let config = Protocol::of("xcp-r-v0").and_then(|protocol| protocol.sender.clone()).expect("it is listed");
    let mut echo = Echo::new(&config, MSS);
    let mut told = |cwnd: u32, bytes: i32, awnd: u64| {
        let window = Header { cwnd, epoch: 3, is_reset: true, is_difference: false };
        let mut packet = Carried::default();
        packet.add_header(granted(bytes));
        packet.add_header(window);
        let receiver = Listening { mss: MSS, awnd: Bytes(awnd), ..Listening::default() };
        echo.on_data(&config, &packet, receiver);
        Reply::from(echo.on_ack(&config, receiver)).cwnd
    };
    // Ten packets, 300 bytes each: 13,000, whatever came before; XCP-r adds up 300 per packet.
    assert_eq!(told(10_000, 300, u64::MAX), 13_000);
    assert_eq!(told(10_000, 300, u64::MAX), 13_000);
    assert_eq!(told(10_000, -300, u64::MAX), 7000);
    assert_eq!(told(10_000, -1500, u64::MAX), 1000);
    assert_eq!(told(10_000, 300, 12_000), 12_000);
    assert_eq!(told(u32::MAX, 300, u64::MAX), u32::MAX);
}
