//! Congestion headers as bytes, held against `vectors/wire`.

use congestlab_core::law::xcp::Header;
use congestlab_core::units::{Bytes, Duration};
use congestlab_core::wire::xcp::{Error, Format, HeaderV1, LENGTH, Layout, Packet, Repr, Version};
use std::collections::BTreeMap;

const VECTORS: &str = include_str!("../../../vectors/wire/xcp.txt");
const REJECTED: &str = include_str!("../../../vectors/wire/xcp-rejected.txt");

fn lines(text: &str) -> impl Iterator<Item = (&str, Vec<&str>, Vec<u8>)> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (fields, hex) = line.rsplit_once('=').unwrap();
        let mut words = fields.split_whitespace();
        let hex: String = hex.split_whitespace().collect();
        let bytes = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap());
        (words.next().unwrap(), words.collect(), bytes.collect())
    })
}

fn time(text: &str) -> u32 {
    if text == "max" { Duration(u64::MAX).to_header() } else { Duration(text.parse().unwrap()).to_header() }
}

fn repr(fields: &[&str]) -> Repr {
    let of: BTreeMap<&str, &str> = fields.iter().map(|field| field.split_once('=').unwrap()).collect();
    let protocol = of["protocol"].parse().unwrap();
    let reverse = of["reverse"].parse().unwrap();
    let delta = of.get("delta").map_or(0, |delta| delta.parse().unwrap());
    let header = || Header { x: time(of["x"]), rtt: time(of["rtt"]), delta, reverse };
    match (of["version"], of["format"]) {
        ("3", "standard") => Repr::Standard { layout: Layout::V3, protocol, header: header() },
        ("2", "standard") => Repr::Standard { layout: Layout::V2, protocol, header: header() },
        ("1", "standard") => {
            let (rtt, throughput) = (of["rtt_ms"].parse().unwrap(), of["throughput"].parse().unwrap());
            Repr::StandardV1 { protocol, header: HeaderV1 { rtt, throughput, delta, reverse } }
        }
        ("1", "minimal") => Repr::Minimal { version: Version::V1, protocol, reverse },
        ("2", "minimal") => Repr::Minimal { version: Version::V2, protocol, reverse },
        ("3", "minimal") => Repr::Minimal { version: Version::V3, protocol, reverse },
        other => panic!("{other:?}"),
    }
}

/// V1.1 to V1.6.
#[test]
fn fields_become_bytes_and_bytes_become_fields() {
    assert_eq!(lines(VECTORS).count(), 10);
    for (name, fields, bytes) in lines(VECTORS) {
        let repr = repr(&fields);
        assert_eq!(repr.emit().as_slice(), bytes, "{name}");
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet), repr, "{name}");
    }
}

/// docs/design/protocols.md 1.2.1, below the vectors.
#[test]
fn what_is_no_header_is_refused_with_the_reason() {
    assert_eq!(lines(REJECTED).count(), 10);
    for (name, reason, bytes) in lines(REJECTED) {
        let value: u8 = reason[1].parse().unwrap();
        let (expected, text) = match reason[0] {
            "truncated" => (
                Error::Truncated { length: value.into() },
                format!("congestion header of {value} bytes where 20 are needed"),
            ),
            "version" => (
                Error::Version { version: value },
                format!("congestion header of unknown version {value}, not 1, 2 or 3"),
            ),
            _ => (
                Error::Length { length: value },
                format!("congestion header that states a length of {value} instead of 20 bytes"),
            ),
        };
        let error = Packet::new_checked(&bytes).unwrap_err();
        assert_eq!((name, error, error.to_string()), (name, expected, text));
    }
}

/// draft-03 §3.2: only formats 1 and 2 exist; routers must leave alone what is not standard.
#[test]
fn an_unknown_format_is_read_as_minimal() {
    for format in (0..16).filter(|format| *format != 1) {
        let mut bytes = repr(&lines(VECTORS).next().unwrap().1).emit();
        bytes[2] = 0x30 | format;
        let packet = Packet::new_checked(bytes).unwrap();
        assert_eq!(packet.format(), Format::Minimal, "format {format}");
        let expected = Repr::Minimal { version: Version::V3, protocol: 6, reverse: 0 };
        assert_eq!(Repr::parse(&packet), expected, "format {format}");
    }
}

#[test]
fn what_follows_the_header_and_the_unused_byte_do_not_matter() {
    for (name, fields, mut bytes) in lines(VECTORS) {
        bytes[3] = 0xa5;
        bytes.extend([1, 2, 3]);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet), repr(&fields), "{name}");
    }
}

#[test]
fn a_router_writes_the_feedback_and_nothing_else() {
    for (name, _, bytes) in lines(VECTORS).filter(|(_, fields, _)| fields.contains(&"format=standard")) {
        let mut packet = Packet::new_checked(bytes.clone()).unwrap();
        let (x, rtt, reverse) = (packet.x(), packet.rtt(), packet.reverse());
        packet.set_delta(-77);
        assert_eq!(
            (packet.x(), packet.rtt(), packet.delta(), packet.reverse()),
            (x, rtt, -77, reverse),
            "{name}"
        );
        assert_eq!(
            (packet.version(), packet.format()),
            (Packet::new_checked(&bytes).unwrap().version(), Format::Standard)
        );
    }
}

/// The encoding rule of docs/design/protocols.md 1.2.1.
#[test]
fn times_round_to_the_nearest_and_never_to_unknown() {
    let step = 1e9 / 268_435_456.0; // ns
    assert_eq!(Duration(0).to_header(), 0);
    for ns in [1, 2, 3, 4, 5, 6, 7, 931, 12_345_678, 1_000_000_000, 15_999_999_990] {
        let units = Duration(ns).to_header();
        assert_eq!(f64::from(units), (ns as f64 / step).round().max(1.0), "{ns} ns");
        let error = f64::from(units) * step - ns as f64;
        assert!(error.abs() <= step / 2.0 || units == 1, "{ns} ns is off by {error} ns");
    }
    assert_eq!(Duration(15_999_999_998).to_header(), u32::MAX);
    for ns in [16_000_000_000, 1 << 44, (1 << 45) - 1, 1 << 45, (1 << 45) + 1, u64::MAX] {
        assert_eq!(Duration(ns).to_header(), u32::MAX, "{ns} ns");
    }
    // Back: up to the next nanosecond.
    assert_eq!(Duration::from_header(0), Duration(0));
    assert_eq!(Duration::from_header(1), Duration(4));
    assert_eq!(Duration::from_header(1 << 28), Duration(1_000_000_000));
    assert_eq!(Duration::from_header(u32::MAX), Duration(15_999_999_997));
}

/// draft-00 §2.2: both of version 1's fields are rounded up.
#[test]
fn version_1_states_throughput_instead_of_x() {
    let header = Header { x: Duration(12_000_000).to_header(), rtt: 1 << 27, delta: 5, reverse: -6 };
    let old = HeaderV1::from_header(&header, Bytes(1500));
    assert_eq!(old, HeaderV1 { rtt: 500, throughput: 126, delta: 5, reverse: -6 }); // 125.00001
    let slow = Header { x: u32::MAX, rtt: 1, ..header };
    assert_eq!(HeaderV1::from_header(&slow, Bytes(40)), HeaderV1 { rtt: 1, throughput: 1, ..old });
    assert_eq!(HeaderV1::from_header(&Header::default(), Bytes(1500)), HeaderV1::default());
    let fast = HeaderV1::from_header(&Header { x: 1, ..header }, Bytes(u64::MAX));
    assert_eq!(fast.throughput, u32::MAX);

    let new = HeaderV1 { rtt: 500, throughput: 125, delta: 5, reverse: -6 }.to_header(Bytes(1500));
    assert_eq!(new, Header { x: Duration(12_000_000).to_header(), rtt: 1 << 27, delta: 5, reverse: -6 });
    assert_eq!(HeaderV1::default().to_header(Bytes(1500)), Header::default());
    let slow = HeaderV1 { rtt: u32::MAX, throughput: 1, ..HeaderV1::default() };
    assert_eq!(slow.to_header(Bytes(1 << 40)), Header { x: u32::MAX, rtt: u32::MAX, ..Header::default() });
    let fast = HeaderV1 { rtt: 1, throughput: u32::MAX, ..HeaderV1::default() };
    assert_eq!(fast.to_header(Bytes(1)), Header { x: 1, rtt: 268_435, ..Header::default() });
    // 1e7 / 3e6 s to the nearest.
    let third = HeaderV1 { throughput: 3, ..HeaderV1::default() };
    assert_eq!(third.to_header(Bytes(20)).x, 1_789_570);
}

#[test]
fn a_header_prints_as_one_line() {
    let print = |index: usize| repr(&lines(VECTORS).nth(index).unwrap().1).to_string();
    assert_eq!(print(1), "xcp x 26844 rtt 26843546 delta -250000 reverse 1000 next 6");
    assert_eq!(print(2), "xcp reverse -5000 next 6");
    assert_eq!(print(5), "xcp v1 throughput 125 rtt 500 delta 1234567 reverse 0 next 6");
}

/// Every version keeps every field, whatever its value, and the length is the constant's.
#[test]
fn any_fields_survive_the_wire() {
    let extremes = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0x0102_0304];
    for (i, a) in extremes.into_iter().enumerate() {
        let [b, c, d] = [1, 2, 3].map(|k| extremes[(i + k) % extremes.len()]);
        let header = Header { x: a, rtt: b, delta: c as i32, reverse: d as i32 };
        let v1 = HeaderV1 { rtt: a, throughput: b, delta: c as i32, reverse: d as i32 };
        for repr in [
            Repr::Standard { layout: Layout::V2, protocol: 0xff, header },
            Repr::Standard { layout: Layout::V3, protocol: 0, header },
            Repr::StandardV1 { protocol: 17, header: v1 },
            Repr::Minimal { version: Version::V1, protocol: 6, reverse: a as i32 },
            Repr::Minimal { version: Version::V2, protocol: 6, reverse: a as i32 },
            Repr::Minimal { version: Version::V3, protocol: 6, reverse: a as i32 },
        ] {
            let bytes = repr.emit();
            assert_eq!(
                usize::from(
                    bytes[if matches!(Packet::new_checked(bytes).unwrap().version(), Version::V1) {
                        2
                    } else {
                        1
                    }]
                ),
                LENGTH
            );
            assert_eq!(Repr::parse(&Packet::new_checked(bytes).unwrap()), repr);
        }
    }
}
