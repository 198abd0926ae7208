//! Places of packets in header bytes, against an independent packet library: it builds packets, reads what
//! was written into them, and computes their checksums.

use congestlab_core::law::mpcp::Order;
use congestlab_core::law::{Expected, Segment};
use congestlab_core::wire::segment::{self, Error, Repr};
use etherparse::{
    IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice, TcpHeader, TcpHeaderSlice, TcpOptionElement,
};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A sequence number, often one at which something wraps.
    fn number(&mut self) -> u32 {
        match self.below(8) {
            0 => self.below(10) as u32,
            1 => u32::MAX - self.below(10) as u32,
            2 => 0x1_0000u32.wrapping_sub(self.below(4) as u32),
            _ => self.next() as u32,
        }
    }
}

/// A packet as the library makes it, with options and payload or without.
fn packet(random: &mut Random, sequence: u32, acknowledgment: u32) -> Vec<u8> {
    let payload: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
    let mut tcp = TcpHeader {
        acknowledgment_number: acknowledgment,
        ack: true,
        psh: random.below(2) == 0,
        ece: random.below(2) == 0,
        ..TcpHeader::new(random.next() as u16, random.next() as u16, sequence, random.next() as u16)
    };
    if random.below(2) == 0 {
        let stamps = TcpOptionElement::Timestamp(random.next() as u32, random.next() as u32);
        tcp.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, stamps]).unwrap();
    }
    let ip = Ipv4Header {
        dscp: IpDscp::try_new(random.below(64) as u8).unwrap(),
        ecn: IpEcn::try_new(random.below(4) as u8).unwrap(),
        identification: random.next() as u16,
        dont_fragment: random.below(2) == 0,
        ..Ipv4Header::new(
            (tcp.header_len() + payload.len()) as u16,
            random.next() as u8,
            IpNumber::TCP,
            (random.next() as u32).to_be_bytes(),
            (random.next() as u32).to_be_bytes(),
        )
        .unwrap()
    };
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, &payload).unwrap();
    let mut bytes = Vec::new();
    ip.write(&mut bytes).unwrap();
    tcp.write(&mut bytes).unwrap();
    bytes.extend(payload);
    bytes
}

/// Both headers and the payload, as the library reads them.
fn read(bytes: &[u8]) -> (Ipv4Header, TcpHeader, Vec<u8>) {
    let ip = Ipv4HeaderSlice::from_slice(bytes).unwrap().to_header();
    let tcp = TcpHeaderSlice::from_slice(&bytes[ip.header_len()..]).unwrap().to_header();
    let payload = bytes[ip.header_len() + tcp.header_len()..usize::from(ip.total_len)].to_vec();
    (ip, tcp, payload)
}

/// By how much the carried checksum's sum is short, by the checksum that the library computes.
fn deficit(bytes: &[u8]) -> u16 {
    let (ip, tcp, payload) = read(bytes);
    let computed = tcp.calc_checksum_ipv4(&ip, &payload).unwrap();
    ((u32::from(computed) + 65535 - u32::from(tcp.checksum)) % 65535) as u16
}

#[test]
fn headers_are_read_as_the_library_wrote_them() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let (sequence, acknowledgment) = (random.number(), random.number());
        let bytes = packet(&mut random, sequence, acknowledgment);
        let (ip, tcp, _) = read(&bytes);
        let repr = Repr::parse(&bytes).unwrap();
        let Repr { segment, ecn, dscp, ttl } = repr;
        assert_eq!(
            (segment.source.to_be_bytes(), segment.destination.to_be_bytes()),
            (ip.source, ip.destination)
        );
        assert_eq!(segment.ports, u32::from(tcp.source_port) << 16 | u32::from(tcp.destination_port));
        assert_eq!((segment.sequence, segment.acknowledgment), (sequence, acknowledgment));
        assert_eq!(segment.control as u16, tcp.window_size);
        assert_eq!(segment.control >> 28, (tcp.header_len() / 4) as u32);
        assert_eq!((segment.checksum, segment.identification), (tcp.checksum, ip.identification));
        assert_eq!((ecn, dscp, ttl), (ip.ecn.value(), ip.dscp.value(), ip.time_to_live));
        assert_eq!(segment.deficit(), 0, "as it was sent");
        assert_eq!(segment.is_pure_ack(), read(&bytes).2.is_empty());
    }
}

#[test]
fn headers_are_written_as_the_library_reads_them() {
    let mut random = Random(2);
    for _ in 0..20_000 {
        let payload = random.below(1000) as u16;
        let mut segment = Segment {
            source: random.next() as u32,
            destination: random.next() as u32,
            ports: random.next() as u32,
            sequence: random.number(),
            acknowledgment: random.number(),
            control: 5 << 28 | 0x10 << 16 | random.next() as u32 & 0xffff,
            identification: random.next() as u16,
            length: 40 + payload,
            ..Segment::default()
        };
        segment.seal();
        let repr = Repr {
            segment,
            ecn: random.below(4) as u8,
            dscp: random.below(64) as u8,
            ttl: random.next() as u8,
        };
        // The payload of the simulator's packets is zeros.
        let mut bytes = repr.emit().to_vec();
        bytes.resize(usize::from(segment.length), 0);
        let (ip, tcp, zeros) = read(&bytes);
        assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
        assert_eq!(tcp.calc_checksum_ipv4(&ip, &zeros).unwrap(), tcp.checksum);
        assert_eq!(
            (tcp.sequence_number, tcp.acknowledgment_number),
            (segment.sequence, segment.acknowledgment)
        );
        assert_eq!(
            (tcp.source_port, tcp.destination_port),
            ((segment.ports >> 16) as u16, segment.ports as u16)
        );
        assert!(tcp.ack && !tcp.syn && ip.dont_fragment);
        assert_eq!(Repr::parse(&bytes), Ok(repr));
    }
}

/// Swap, ties, wrap-around, and the difference modulo 65535, as the library sees them.
#[test]
fn places_are_written_and_read_as_the_library_sees_them() {
    let mut random = Random(3);
    let mut ties = 0;
    for _ in 0..60_000 {
        let sequence = random.number();
        let acknowledgment = if random.below(3) == 0 { sequence } else { random.number() };
        let natural = packet(&mut random, sequence, acknowledgment);
        let (n, order) = match random.below(3) {
            0 => (2, Order::Swap),
            1 => (2, Order::Ipid),
            _ => (1 + random.below(8) as u32, Order::Checksum),
        };
        let index = random.below(n.into()) as u8;
        let mut bytes = natural.clone();
        let says = segment::write(&mut bytes, order, index).unwrap();
        let (ip, tcp, payload) = read(&bytes);
        assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
        let (was_ip, was, _) = read(&natural);
        let is_tie = sequence == acknowledgment;
        if !says {
            let field = if payload.is_empty() { sequence } else { acknowledgment };
            assert!(order == Order::Swap && is_tie && sequence == 0 || field < u32::from(index));
            assert_eq!(bytes, natural);
            continue;
        }
        match order {
            Order::Swap => {
                assert_eq!(tcp.sequence_number > tcp.acknowledgment_number, index == 0);
                assert_eq!(deficit(&bytes), u16::from(is_tie));
                ties += u32::from(is_tie);
                let (mut wire, mut own) =
                    ([tcp.sequence_number, tcp.acknowledgment_number], [sequence, acknowledgment]);
                wire.sort_unstable();
                own.sort_unstable();
                assert_eq!(wire, if is_tie { [own[0] - 1, own[1]] } else { own });
            }
            Order::Checksum => {
                assert_eq!(deficit(&bytes), u16::from(index));
                let less = u32::from(index);
                let (sequence, acknowledgment) = if payload.is_empty() {
                    (sequence - less, acknowledgment)
                } else {
                    (sequence, acknowledgment - less)
                };
                assert_eq!((tcp.sequence_number, tcp.acknowledgment_number), (sequence, acknowledgment));
            }
            Order::Ipid => {
                assert_eq!(ip.identification, was_ip.identification & !1 | u16::from(index));
                assert_eq!(tcp, was);
            }
        }
        assert_eq!(order.read(&Repr::parse(&bytes).unwrap().segment, n), Some(index));
        let expected = Expected { next: sequence, window: 0, oldest: acknowledgment, newest: acknowledgment };
        assert_eq!(segment::restore(&mut bytes, order, n, &expected), Ok(true));
        let (_, tcp, _) = read(&bytes);
        assert_eq!((tcp.sequence_number, tcp.acknowledgment_number), (sequence, acknowledgment));
        assert_eq!(deficit(&bytes), 0);
    }
    assert!(ties > 3000);
}

/// A router changes the ECN field, the IP checksum with it, and nothing else.
#[test]
fn codes_are_written_with_the_checksum_of_ip() {
    let mut random = Random(4);
    for _ in 0..20_000 {
        let mut bytes = packet(&mut random, 1, 2);
        let (was_ip, was_tcp, _) = read(&bytes);
        let code = random.below(4) as u8;
        segment::set_ecn(&mut bytes, code);
        let (ip, tcp, _) = read(&bytes);
        assert_eq!(ip.calc_header_checksum(), ip.header_checksum, "{was_ip:?}");
        assert_eq!(ip.ecn.value(), code);
        assert_eq!(
            (Ipv4Header { ecn: was_ip.ecn, header_checksum: was_ip.header_checksum, ..ip }, tcp),
            (was_ip, was_tcp)
        );
    }
}

#[test]
fn what_is_no_segment_is_refused() {
    let mut random = Random(5);
    let good = packet(&mut random, 7, 9);
    let broken = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Repr::parse(&bytes).unwrap_err()
    };
    assert_eq!(Repr::parse(&good[..39]), Err(Error::Truncated { length: 39 }));
    assert_eq!(broken(0, 0x65), Error::Ip { first: 0x65 });
    assert_eq!(broken(0, 0x44), Error::Ip { first: 0x44 });
    assert_eq!(broken(9, 17), Error::Protocol { protocol: 17 });
    assert_eq!(broken(6, 0x20), Error::Fragment);
    assert_eq!(broken(7, 1), Error::Fragment);
    assert_eq!(broken(3, 39), Error::Length { length: 39 });
    assert!(matches!(broken(32, 0x40), Error::Length { .. }));
    assert!(matches!(broken(32, 0xf0), Error::Length { .. } | Error::Truncated { .. }));
    assert!(matches!(broken(2, 0xff), Error::Truncated { .. }));
    // Anything at all is refused or read.
    for _ in 0..50_000 {
        let mut bytes = packet(&mut random, 7, 9);
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
        if let Ok(repr) = Repr::parse(&bytes) {
            let _ = (repr.segment.deficit(), repr.segment.is_pure_ack());
        }
    }
}
