//! Frames with TCP in them, and what an independent library reads there.

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{NetHeaders, PacketHeaders, TcpHeader, TransportHeader};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ip {
    V4,
    V4WithOptions,
    V6,
    V6WithExtensions,
}

pub(crate) const IPS: [Ip; 4] = [Ip::V4, Ip::V4WithOptions, Ip::V6, Ip::V6WithExtensions];
pub(crate) const TAGS: [&[u16]; 3] = [&[], &[0x8100], &[0x88a8, 0x8100]];

/// NOP NOP, timestamps; NOP NOP, a SACK block.
pub(crate) const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
pub(crate) const SACK: [u8; 12] = [1, 1, 5, 10, 1, 2, 3, 4, 5, 6, 7, 8];

/// IP and what follows, in a frame.
pub(crate) fn frame(tags: &[u16], ip: Ip, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    for tag in tags {
        bytes.extend(tag.to_be_bytes());
        bytes.extend([0, 5]);
    }
    let kind: u16 = if matches!(ip, Ip::V4 | Ip::V4WithOptions) { 0x0800 } else { 0x86dd };
    bytes.extend(kind.to_be_bytes());
    match ip {
        Ip::V4 | Ip::V4WithOptions => {
            let mut header = etherparse::Ipv4Header::new(
                payload.len() as u16,
                9,
                protocol.into(),
                V4[0].octets(),
                V4[1].octets(),
            )
            .unwrap();
            if ip == Ip::V4WithOptions {
                header.options = [1, 1, 1, 1, 1, 1, 1, 0].into();
                header.set_payload_len(payload.len()).unwrap();
            }
            header.header_checksum = header.calc_header_checksum();
            header.write(&mut bytes).unwrap();
        }
        Ip::V6 | Ip::V6WithExtensions => {
            // Hop-by-hop options of 8 bytes and destination options of 16, padding both.
            let extensions: &[u8] = if ip == Ip::V6 { &[] } else { &EXTENSIONS };
            bytes.extend([0x60, 0, 0, 0]);
            bytes.extend(((payload.len() + extensions.len()) as u16).to_be_bytes());
            bytes.extend([if ip == Ip::V6 { protocol } else { 0 }, 9]);
            bytes.extend(V6.iter().flat_map(|address| address.octets()));
            let at = bytes.len() + 8;
            bytes.extend(extensions);
            if ip == Ip::V6WithExtensions {
                bytes[at] = protocol;
            }
        }
    }
    bytes.extend(payload);
    bytes
}

pub(crate) const V4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(10, 9, 8, 7)];
pub(crate) const V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)];
pub(crate) const EXTENSIONS: [u8; 24] =
    [60, 0, 1, 4, 0, 0, 0, 0, 6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A TCP segment with these options and a right checksum.
pub(crate) fn tcp(ip: Ip, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut header = TcpHeader::new(5001, 43210, 0x1234_5678, 777);
    header.ack = true;
    let mut options = options.to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    header.set_options_raw(&options).unwrap();
    header.checksum = match ip {
        Ip::V4 | Ip::V4WithOptions => {
            header.calc_checksum_ipv4_raw(V4[0].octets(), V4[1].octets(), payload).unwrap()
        }
        Ip::V6 | Ip::V6WithExtensions => {
            header.calc_checksum_ipv6_raw(V6[0].octets(), V6[1].octets(), payload).unwrap()
        }
    };
    let mut bytes = vec![];
    header.write(&mut bytes).unwrap();
    bytes.extend(payload);
    bytes
}

pub(crate) fn segment(tags: &[u16], ip: Ip, options: &[u8], payload: &[u8]) -> Vec<u8> {
    frame(tags, ip, 6, &tcp(ip, options, payload))
}

/// What a library reads in a frame: TCP's options, after it has found its checksum right.
pub(crate) fn judged(frame: &[u8]) -> Vec<u8> {
    let parsed = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let Some(TransportHeader::Tcp(tcp)) = parsed.transport else { panic!("no TCP in {parsed:?}") };
    let payload = parsed.payload.slice();
    let checksum = match parsed.net.unwrap() {
        NetHeaders::Ipv4(ip, _) => tcp.calc_checksum_ipv4(&ip, payload),
        NetHeaders::Ipv6(ip, _) => tcp.calc_checksum_ipv6(&ip, payload),
        other => panic!("{other:?}"),
    };
    assert_eq!(tcp.checksum, checksum.unwrap(), "TCP's checksum is wrong");
    tcp.options.as_slice().to_vec()
}

/// The bytes in which two packets differ.
pub(crate) fn differences(one: &[u8], other: &[u8]) -> Vec<usize> {
    assert_eq!(one.len(), other.len());
    (0..one.len()).filter(|&at| one[at] != other[at]).collect()
}
