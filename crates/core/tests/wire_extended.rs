//! Extended congestion headers as bytes, held against `vectors/wire/xcp-extended.txt`.

use congestlab_core::law::{xcp, xcp_r};
use congestlab_core::wire::xcp::{Format, Packet};
use congestlab_core::wire::xcp_extended::{Error, Interoperable, Repr, length_of};
use std::collections::BTreeMap;

const VECTORS: &str = include_str!("../../../vectors/wire/xcp-extended.txt");

/// Name, what it says, bytes.
fn vectors() -> Vec<(&'static str, Repr, Vec<u8>)> {
    let lines = VECTORS.lines().filter(|line| !line.starts_with('#'));
    let vector = |line: &'static str| {
        let (fields, hex) = line.rsplit_once('=').unwrap();
        let (name, fields) = fields.split_once(' ').unwrap();
        let of: BTreeMap<&str, &str> =
            fields.split_whitespace().map(|field| field.split_once('=').unwrap()).collect();
        let number = |key: &str| of[key].parse::<i64>().unwrap();
        let repr = Repr {
            protocol: number("protocol") as u8,
            header: xcp::Header {
                x: number("x") as u32,
                rtt: number("rtt") as u32,
                delta: number("delta") as i32,
                reverse: number("reverse") as i32,
            },
            interoperable: of.get("last").map(|address| {
                let bytes: Vec<u8> = address.split('.').map(|byte| byte.parse().unwrap()).collect();
                let last_xcp_router = bytes.try_into().unwrap();
                Interoperable { xcp_ttl: number("xcp_ttl") as u8, last_xcp_router }
            }),
            window: of.get("cwnd").map(|_| xcp_r::Header {
                cwnd: number("cwnd") as u32,
                epoch: number("epoch") as u8,
                is_reset: number("flag") == 1,
                is_difference: of.contains_key("own"),
            }),
        };
        let hex: String = hex.split_whitespace().collect();
        let bytes = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap());
        (name, repr, bytes.collect())
    };
    lines.map(vector).collect()
}

#[test]
fn fields_become_bytes_and_bytes_become_fields() {
    assert_eq!(vectors().len(), 8);
    for (name, repr, bytes) in vectors() {
        let (emitted, length) = repr.emit();
        assert_eq!(emitted[..length], bytes, "{name}");
        assert_eq!(Repr::parse(&bytes), Ok(repr), "{name}");
        // What follows, and what must be zero, is not looked at.
        let mut more = bytes.clone();
        more[3] = 0xa5;
        more.extend([1, 2, 3]);
        assert_eq!(Repr::parse(&more), Ok(repr), "{name}");
    }
    let shown: Vec<String> = vectors().iter().map(|(_, repr, _)| repr.to_string()).collect();
    assert_eq!(
        shown[6],
        "xcp x 3221225 rtt 134217728 delta 1234567 reverse 0 ttl 64 last 10.128.0.1 cwnd 9000 epoch 7 next 6"
    );
    assert!(shown[3].ends_with("cwnd 1000 epoch 1 congestion next 6"));
}

#[test]
fn what_is_no_extended_header_is_refused_with_the_reason() {
    for (name, _, bytes) in vectors() {
        for length in 0..bytes.len() {
            assert_eq!(Repr::parse(&bytes[..length]), Err(Error::Truncated { length }), "{name}");
        }
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            Repr::parse(&bytes)
        };
        for version in (0..16).filter(|&version| version != 3) {
            assert_eq!(with(2, version << 4 | 3), Err(Error::Version { version }), "{name}");
        }
        for format in (0..16).filter(|&format| length_of(format).is_none()) {
            assert_eq!(with(2, 0x30 | format), Err(Error::Format { format }), "{name}");
        }
        for length in (0..=255).filter(|&length| length != bytes[1]) {
            assert_eq!(with(1, length), Err(Error::Length { length }), "{name}");
        }
    }
    assert_eq!(Error::Format { format: 2 }.to_string(), "congestion header of format 2, not 3, 4 or 5");
}

/// Whoever knows draft-03 only takes none of them for a header to work on.
#[test]
fn routers_of_draft_03_leave_them_alone() {
    for (name, _, bytes) in vectors() {
        let standard = Packet::new_checked(&bytes).is_ok_and(|packet| packet.format() == Format::Standard);
        assert!(!standard, "{name}");
    }
}
