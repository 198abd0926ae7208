//! Reading of frames by a link, and the few changes that it makes to them.
//!
//! The same packets get the law as from the kernel's program: a TCP option of 20 bytes at an even offset
//! ([`congestlab_core::wire::option`]), or the header of its own IP protocol in draft-03's version
//! ([`congestlab_core::wire::xcp`]). All others pass as they are: a link may not punish traffic that it
//! does not understand. Laws of MPCP's family have the ECN field, and see the headers of TCP ([`Look::segment`]).

use congestlab_core::law::Segment;
use congestlab_core::law::xcp::Header;
use congestlab_core::wire::option::{self, Option as XcpOption, ROUTERS_MAX};
use congestlab_core::wire::xcp::{self as shim, Format, Version};
use congestlab_net::packet::{Kind, flag};
use serde::Serialize;

/// Length of an Ethernet header without tags.
pub(super) const ETHERNET: usize = crate::interface::ETHERNET as usize;
/// VLAN tags (IEEE 802.1Q, 802.1ad) that a frame may have.
pub(super) const TAGS: usize = 2;
/// IPv6 extension headers that are looked behind (RFC 8200 §4.1 recommends fewer kinds than that).
const EXTENSIONS: usize = 8;

mod ethertype {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const TAGS: [u16; 2] = [0x8100, 0x88a8];
}

mod protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const TCP: u8 = 6;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const UDP: u8 = 17;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const DESTINATION: u8 = 60;
}

/// Packets with a congestion header that was left alone, by reason, with the names of the kernel's program
/// ([`crate::router::Refused`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// TCP options that do not begin at an even byte, where no checksum can be corrected by words.
    pub odd_offset: u64,
    /// Headers whose length field has not the one allowed value.
    pub wrong_length: u64,
    /// Headers that end after the packet, or after TCP's options.
    pub truncated: u64,
    /// Packets whose TCP options can not be parsed.
    pub malformed: u64,
    /// Headers of a version other than draft-03's.
    pub version: u64,
    /// IP fragments of a protocol that could have a header.
    pub fragments: u64,
}

/// Why a congestion header was left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    OddOffset,
    WrongLength,
    Truncated,
    Malformed,
    Version,
    Fragment,
}

impl Refused {
    pub(super) fn count(&mut self, why: Refusal) {
        *match why {
            Refusal::OddOffset => &mut self.odd_offset,
            Refusal::WrongLength => &mut self.wrong_length,
            Refusal::Truncated => &mut self.truncated,
            Refusal::Malformed => &mut self.malformed,
            Refusal::Version => &mut self.version,
            Refusal::Fragment => &mut self.fragments,
        } += 1;
    }

    /// Returns the sum over all reasons.
    pub fn total(&self) -> u64 {
        let Self { odd_offset, wrong_length, truncated, malformed, version, fragments } = self;
        odd_offset + wrong_length + truncated + malformed + version + fragments
    }
}

/// Where a law may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The TCP option begins at `at`, the TCP checksum at `checksum`.
    Option { at: usize, checksum: usize },
    /// The header of protocol 253 begins at `at`.
    Shim { at: usize },
}

/// An IP packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Bytes of the whole IP packet.
    pub(super) size: u16,
    pub(super) kind: Kind,
    /// Bits of [`flag`]: ECN, and whether there is a header that a law may work on.
    pub(super) flags: u8,
    /// The congestion header that a law may work on.
    pub(super) header: Header,
    pub(super) refusal: Option<Refusal>,
    /// The same for all packets of a connection in a direction, and seldom for others: addresses, protocol and ports, hashed.
    pub(super) flow: u32,
    /// Where IP begins.
    ip: usize,
    /// Where TCP begins, in a packet whose header is whole and that nothing else stands before.
    tcp: Option<usize>,
    place: Option<Place>,
}

/// A deficit of the checksum that no place in a chain has.
const SHORT_MAX: u16 = 0xfffe;
/// Value of [`hash`] before the first byte.
const HASH: u32 = 0x811c_9dc5;

/// Adds bytes to a hash (FNV-1a).
fn hash(begun: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(begun, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

mod tcp {
    pub(super) const FIN: u8 = 1;
    pub(super) const SYN: u8 = 2;
    pub(super) const RST: u8 = 4;
    pub(super) const ACK: u8 = 16;
    pub(super) const SYN_ACK: u8 = SYN | ACK;
}

/// Two bytes, if there are any.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Looks at a frame; `None` if it is no IP packet.
pub(super) fn look(bytes: &[u8]) -> Option<Look> {
    let mut ip = ETHERNET;
    let mut kind = word(bytes, ip - 2)?;
    for _ in 0..TAGS {
        if ethertype::TAGS.contains(&kind) {
            ip += 4;
            kind = word(bytes, ip - 2)?;
        }
    }
    let rest = bytes.get(ip..)?;
    match (kind, rest.first()? >> 4) {
        (ethertype::IPV4, 4) => look_ipv4(bytes, ip),
        (ethertype::IPV6, 6) => look_ipv6(bytes, ip),
        _ => None,
    }
}

fn look_ipv4(bytes: &[u8], ip: usize) -> Option<Look> {
    let header = usize::from(bytes[ip] & 0xf) * 4;
    let size = match usize::from(word(bytes, ip + 2)?) {
        0 => bytes.len() - ip, // a super-packet that was too long for the field
        stated => stated.min(bytes.len() - ip),
    };
    if header < 20 || size < header {
        return None;
    }
    let mut look = Look::new(ip, size, bytes[ip + 1]);
    let protocol = bytes[ip + 9];
    look.belongs(&bytes[ip + 12..ip + 20]);
    // More fragments, or an offset.
    if word(bytes, ip + 6)? & 0x3fff != 0 {
        look.fragment(protocol);
    } else {
        look.transport(&bytes[..ip + size], protocol, ip + header);
    }
    Some(look)
}

fn look_ipv6(bytes: &[u8], ip: usize) -> Option<Look> {
    let size = (40 + usize::from(word(bytes, ip + 4)?)).min(bytes.len() - ip);
    let traffic_class = (word(bytes, ip)? >> 4) as u8;
    let mut look = Look::new(ip, size, traffic_class);
    let bytes = &bytes[..ip + size];
    let mut next = *bytes.get(ip + 6)?;
    look.belongs(bytes.get(ip + 8..ip + 40).unwrap_or_default());
    let mut at = ip + 40;
    for _ in 0..EXTENSIONS {
        match next {
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION => {
                let (Some(&after), Some(&length)) = (bytes.get(at), bytes.get(at + 1)) else {
                    return Some(look);
                };
                (next, at) = (after, at + 8 + 8 * usize::from(length));
            }
            protocol::FRAGMENT => {
                // What follows may be from anywhere in the packet.
                if let (Some(&of), Some(_)) = (bytes.get(at), bytes.get(at + 1)) {
                    look.fragment(of);
                }
                return Some(look);
            }
            _ => break,
        }
    }
    look.transport(bytes, next, at);
    Some(look)
}

impl Look {
    fn new(ip: usize, size: usize, traffic_class: u8) -> Self {
        Self {
            // An IPv6 packet with the largest payload is 40 bytes longer than a u16 can say.
            size: size.min(usize::from(u16::MAX)) as u16,
            kind: Kind::Datagram,
            flags: traffic_class & flag::ECN_MASK,
            header: Header::default(),
            refusal: None,
            flow: HASH,
            ip,
            tcp: None,
            place: None,
        }
    }

    /// The flow is of packets with these bytes.
    fn belongs(&mut self, bytes: &[u8]) {
        self.flow = hash(self.flow, bytes);
    }

    /// A part of a packet of this protocol.
    fn fragment(&mut self, protocol: u8) {
        if [protocol::TCP, shim::PROTOCOL_EXPERIMENTAL].contains(&protocol) {
            self.refusal = Some(Refusal::Fragment);
        }
    }

    /// The transport header begins at `at`; `bytes` ends with the packet.
    fn transport(&mut self, bytes: &[u8], protocol: u8, at: usize) {
        self.belongs(&[protocol]);
        if [protocol::TCP, protocol::UDP].contains(&protocol) {
            self.belongs(bytes.get(at..at + 4).unwrap_or_default());
        }
        match protocol {
            protocol::TCP => self.tcp(bytes, at, true),
            shim::PROTOCOL_EXPERIMENTAL => self.shim(bytes, at),
            _ => {}
        }
    }

    fn shim(&mut self, bytes: &[u8], at: usize) {
        match shim::Packet::new_checked(bytes.get(at..).unwrap_or_default()) {
            Ok(header) => {
                match (header.version(), header.format()) {
                    (Version::V3, Format::Standard) => {
                        self.accept(
                            Header {
                                x: header.x(),
                                rtt: header.rtt(),
                                delta: header.delta(),
                                reverse: header.reverse(),
                            },
                            Place::Shim { at },
                        );
                    }
                    // The law does not touch it: not a refusal but the format of ACKs.
                    (Version::V3, Format::Minimal) => {}
                    _ => self.refusal = Some(Refusal::Version),
                }
                if header.protocol() == protocol::TCP {
                    self.tcp(bytes, at + shim::LENGTH, false);
                }
            }
            Err(shim::Error::Truncated { .. }) => self.refusal = Some(Refusal::Truncated),
            Err(shim::Error::Length { .. }) => self.refusal = Some(Refusal::WrongLength),
            Err(shim::Error::Version { .. }) => self.refusal = Some(Refusal::Version),
        }
    }

    /// Finds the kind of a segment and, if `wanted`, its option.
    fn tcp(&mut self, bytes: &[u8], at: usize, wanted: bool) {
        let Some(&[offset, flags]) = bytes.get(at + 12..at + 14).and_then(|two| two.first_chunk()) else {
            return;
        };
        let end = at + usize::from(offset >> 4) * 4;
        if end < at + 20 {
            return;
        }
        if end > bytes.len() {
            self.refusal = self.refusal.or(Some(Refusal::Truncated));
            return;
        }
        self.kind = match flags & tcp::SYN_ACK {
            tcp::SYN => Kind::Syn,
            tcp::SYN_ACK => Kind::SynAck,
            tcp::ACK if flags & (tcp::FIN | tcp::RST) == 0 && end == bytes.len() => Kind::Ack,
            _ => Kind::Data,
        };
        if wanted {
            self.tcp = Some(at);
            self.options(&bytes[..end], at);
        }
    }

    /// Returns the headers of a TCP packet, for laws that look into them: its own numbers, and a checksum that is as much short
    /// as the packet's, which covers options and payload, too. Addresses of IPv6 are told by hashes. `is_partial`: the
    /// checksum is yet to be made and holds no deficit; then it is short by more than any place.
    pub(super) fn segment(&self, bytes: &[u8], is_partial: bool) -> Option<Segment> {
        let (ip, at) = (self.ip, self.tcp?);
        let end = ip + usize::from(self.size);
        let (addresses, tcp) = (bytes.get(ip..at)?, bytes.get(at..end)?);
        let is_ipv6 = bytes[ip] >> 4 == 6;
        let addresses = addresses.get(if is_ipv6 { 8..40 } else { 12..20 })?;
        let number = |at: usize| tcp.get(at..at + 4)?.first_chunk().map(|&four| u32::from_be_bytes(four));
        let (source, destination) = addresses.split_at(addresses.len() / 2);
        let name = |address: &[u8]| match address.first_chunk() {
            Some(&four) if !is_ipv6 => u32::from_be_bytes(four),
            _ => hash(HASH, address),
        };
        let mut segment = Segment {
            source: name(source),
            destination: name(destination),
            ports: number(0)?,
            sequence: number(4)?,
            acknowledgment: number(8)?,
            control: number(12)?,
            identification: if is_ipv6 { 0 } else { word(bytes, ip + 4)? },
            length: self.size,
            ..Segment::default()
        };
        segment.seal();
        let short = if is_partial { SHORT_MAX } else { deficit(addresses, tcp) };
        segment.checksum = ((u32::from(segment.checksum) + 0xffff - u32::from(short)) % 0xffff) as u16;
        Some(segment)
    }

    /// Looks for the option in the TCP header that begins at `tcp` and ends where `bytes` does.
    fn options(&mut self, bytes: &[u8], tcp: usize) {
        let mut at = tcp + 20;
        while at < bytes.len() {
            let length = match (bytes[at], bytes.get(at + 1)) {
                (0, _) => return,
                (1, _) => 1,
                (_, Some(&length)) if length >= 2 => usize::from(length),
                _ => return self.refusal = Some(Refusal::Malformed),
            };
            let is_ours =
                bytes[at] == option::KIND && length >= 4 && word(bytes, at + 2) == Some(option::EXID);
            if is_ours {
                let Some(bytes) = bytes.get(at..at + length) else {
                    return self.refusal = Some(Refusal::Truncated);
                };
                return match XcpOption::parse(bytes) {
                    None => self.refusal = Some(Refusal::WrongLength),
                    Some(XcpOption::Ack { .. }) => {}
                    Some(XcpOption::Data { header, .. }) if (at - tcp).is_multiple_of(2) => {
                        self.accept(header, Place::Option { at, checksum: tcp + 16 });
                    }
                    Some(XcpOption::Data { .. }) => self.refusal = Some(Refusal::OddOffset),
                };
            }
            at += length;
        }
        if at > bytes.len() {
            self.refusal = Some(Refusal::Malformed);
        }
    }

    fn accept(&mut self, header: Header, place: Place) {
        self.header = header;
        self.flags |= flag::HEADER;
        self.place = Some(place);
    }

    /// Writes what became of the packet: the law's verdict on its congestion header, which counts this router, if there is one,
    /// and its ECN field. `is_partial`: the transport checksum covers no header yet.
    pub(super) fn write(&self, bytes: &mut [u8], delta: Option<i32>, code: u8, is_partial: bool) {
        match (self.place, delta) {
            (Some(Place::Option { at, checksum }), Some(delta)) => {
                let field = at + option::field::RTT.start..at + option::field::DELTA.end;
                let mut old = [0; 8];
                old.copy_from_slice(&bytes[field.clone()]);
                let routers = old[3] & 0xf;
                let mut new = old;
                new[3] = (old[3] & 0xf0) | (routers + 1).min(ROUTERS_MAX);
                new[4..].copy_from_slice(&delta.to_be_bytes());
                bytes[field].copy_from_slice(&new);
                if !is_partial {
                    mend(bytes, checksum, &old, &new);
                }
            }
            // No checksum covers it.
            (Some(Place::Shim { at }), Some(delta)) => {
                if let Ok(mut header) = shim::Packet::new_checked(&mut bytes[at..]) {
                    header.set_delta(delta);
                }
            }
            _ => {}
        }
        if code != self.flags & flag::ECN_MASK {
            self.set_ecn(bytes, code);
        }
    }

    /// Sets the ECN field, which IPv4's header checksum covers and no other (RFC 3168 §5).
    fn set_ecn(&self, bytes: &mut [u8], code: u8) {
        let ip = self.ip;
        if bytes[ip] >> 4 == 6 {
            bytes[ip + 1] = bytes[ip + 1] & !(flag::ECN_MASK << 4) | code << 4;
        } else {
            let old = [bytes[ip], bytes[ip + 1]];
            bytes[ip + 1] = bytes[ip + 1] & !flag::ECN_MASK | code;
            let new = [bytes[ip], bytes[ip + 1]];
            mend(bytes, ip + 10, &old, &new);
        }
    }
}

/// Sum of the 16-bit words in `bytes`, the last byte padded by a zero (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|&two| u64::from(u16::from_be_bytes(two))).sum();
    words + rest.first().map_or(0, |&last| u64::from(last) << 8)
}

/// By how much the sum over a TCP packet is short of that with a right checksum, modulo 65535.
fn deficit(addresses: &[u8], tcp: &[u8]) -> u16 {
    let sum = sum(addresses) + u64::from(protocol::TCP) + tcp.len() as u64 + sum(tcp);
    ((0xffff - sum % 0xffff) % 0xffff) as u16
}

/// Brings the Internet checksum at `at` up to date after whole words that it covers have changed
/// (RFC 1624 eq. 3).
fn mend(bytes: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let words = |bytes: &[u8], flip: u16| -> u32 {
        bytes.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]) ^ flip)).sum()
    };
    let mut sum = words(&bytes[at..at + 2], 0xffff) + words(old, 0xffff) + words(new, 0);
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use congestlab_core::law::mpcp::Order;

    /// A frame with TCP data of 3 bytes, whose checksum is short by so much.
    fn frame(is_ipv6: bool, short: u8) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        if is_ipv6 {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 23, 6, 9]);
            bytes.extend([0xfd; 16]);
            bytes.extend([0xfc; 16]);
        } else {
            bytes.extend([8, 0, 0x45, 0, 0, 43, 0x12, 0x35, 0, 0, 9, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let tcp = bytes.len();
        bytes.extend([0, 80, 0, 90, 0, 1, 0, 0, 0xff, 0xff, 0, 99, 0x50, 0x10, 1, 0, 0, 0, 0, 0, 7, 8, 9]);
        let addresses = if is_ipv6 { 22..54 } else { 26..34 };
        let checksum = deficit(&bytes[addresses], &bytes[tcp..]);
        bytes[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
        bytes[tcp + 11] -= short;
        bytes
    }

    #[test]
    fn a_segment_is_as_much_short_as_the_packet_unless_its_checksum_is_yet_to_be_made() {
        for is_ipv6 in [false, true] {
            for short in 0..9 {
                let bytes = frame(is_ipv6, short);
                let look = look(&bytes).unwrap();
                let segment = look.segment(&bytes, false).unwrap();
                assert_eq!(segment.deficit(), u16::from(short));
                assert_eq!((segment.ports, segment.sequence), (80 << 16 | 90, 65_536));
                assert_eq!(segment.acknowledgment, 0xffff_0063 - u32::from(short));
                assert_eq!(Order::Checksum.read(&segment, 8), (short < 8).then_some(short));
                let partial = look.segment(&bytes, true).unwrap();
                assert_eq!(Order::Checksum.read(&partial, 8), None);
                assert_eq!(Order::Swap.read(&partial, 2), Some(1));
            }
        }
    }

    #[test]
    fn a_packet_that_is_cut_anywhere_is_read_without_harm() {
        for is_ipv6 in [false, true] {
            let bytes = frame(is_ipv6, 1);
            for length in 0..bytes.len() {
                if let Some(look) = look(&bytes[..length]) {
                    let _ = look.segment(&bytes[..length], false);
                }
            }
        }
    }
}
