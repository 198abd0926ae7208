//! Any bytes as a congestion header: refused for a reason that holds, or read as the drafts lay it
//! out, written, and read again; a router's change touches nothing else.
#![no_main]

use congestlab_core::law::xcp::Header;
use congestlab_core::units::Bytes;
use congestlab_core::wire::xcp::{Error, Format, HeaderV1, LENGTH, Layout, Packet, Repr, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let packet = match Packet::new_checked(input) {
        Ok(packet) => packet,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let is_v1 = |bytes: &[u8]| bytes[0] >> 4 == 1 && bytes[2] == 20;
            match error {
                Error::Truncated { length } => assert!(length == input.len() && length < LENGTH),
                Error::Version { version } => {
                    assert!(version == input[2] >> 4 && ![2, 3].contains(&version) && !is_v1(input));
                }
                Error::Length { length } => {
                    assert!(length == input[1] && length != 20 && !is_v1(input));
                }
            }
            return;
        }
    };
    let word = |at: usize| u32::from_be_bytes([input[at], input[at + 1], input[at + 2], input[at + 3]]);
    // Where each version has X (throughput), RTT, Delta_Throughput, Reverse_Feedback; byte 3 is unused.
    let (protocol, format, [x, rtt, delta, reverse]) = match packet.version() {
        Version::V1 => (input[1], input[0] & 15, [8, 4, 12, 16]),
        Version::V2 => (input[0], input[2] & 15, [8, 4, 12, 16]),
        Version::V3 => (input[0], input[2] & 15, [4, 8, 16, 12]),
    };
    assert_eq!(packet.protocol(), protocol);
    assert_eq!(packet.format() == Format::Standard, format == 1);
    assert_eq!((packet.x(), packet.rtt()), (word(x), word(rtt)));
    assert_eq!((packet.delta() as u32, packet.reverse() as u32), (word(delta), word(reverse)));

    let repr = Repr::parse(&packet);
    let bytes = repr.emit();
    let again = Packet::new_checked(bytes).expect("what was written can be read");
    assert_eq!(Repr::parse(&again), repr);
    assert_eq!(again.version(), packet.version());
    assert!(!repr.to_string().is_empty());
    match repr {
        Repr::Minimal { reverse, .. } => {
            assert_eq!((again.x(), again.rtt(), again.delta(), again.reverse()), (0, 0, 0, reverse));
        }
        Repr::Standard { layout, header, .. } => {
            assert_eq!((&bytes[..3], &bytes[4..]), (&input[..3], &input[4..LENGTH]));
            assert_eq!(layout == Layout::V3, packet.version() == Version::V3);
            // To version 1 and back: its units are coarser, its feedback the same.
            let size = Bytes(u64::from(protocol) * 257);
            convert(HeaderV1::from_header(&header, size), header, size);
        }
        Repr::StandardV1 { header, .. } => {
            assert_eq!((&bytes[..3], &bytes[4..]), (&input[..3], &input[4..LENGTH]));
            let size = Bytes(u64::from(protocol) * 257);
            convert(header, header.to_header(size), size);
        }
    }

    let mut changed = Packet::new_checked(input[..LENGTH].to_vec()).expect("as before");
    changed.set_delta(!packet.delta());
    assert_eq!(changed.delta(), !packet.delta());
    assert_eq!((changed.x(), changed.rtt(), changed.reverse()), (packet.x(), packet.rtt(), packet.reverse()));
    changed.set_delta(packet.delta());
    assert_eq!(changed, Packet::new_checked(input[..LENGTH].to_vec()).expect("as before"));
});

/// Whatever a header says, the other form of it says no more and no less: unknown stays unknown.
fn convert(v1: HeaderV1, header: Header, size: Bytes) {
    assert_eq!((v1.delta, v1.reverse), (header.delta, header.reverse));
    let back = v1.to_header(size);
    assert_eq!(back.rtt == 0, v1.rtt == 0);
    assert_eq!(back.x == 0, v1.throughput == 0);
    if header.x == 0 {
        assert_eq!(v1.throughput, 0);
    }
    if header.rtt == 0 {
        assert_eq!(v1.rtt, 0);
    }
}
