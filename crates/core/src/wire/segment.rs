//! IPv4 packets with TCP, as far as protocols look at them that tell a packet's place in a chain by its
//! headers ([`Order`]), or write into its ECN field.
//!
//! ```text
//! IP:  version, length | DSCP, ECN | total length || identification | fragment ||
//!      TTL | protocol 6 | checksum || source || destination
//! TCP: ports || sequence number || acknowledgment number || offset, flags | window || checksum | urgent
//! ```

use core::fmt::{self, Display, Formatter};

use crate::law::mpcp::Order;
use crate::law::{Expected, Segment};

/// Bytes of the IP and the TCP header without options.
pub const LENGTH: usize = 40;
const IP: usize = 20;
const TCP: usize = 20;
/// Protocol number of TCP.
const PROTOCOL: u8 = 6;

/// Reason why bytes are no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Fewer bytes than the headers state.
    Truncated {
        /// Number of bytes that are there.
        length: usize,
    },
    /// Not IPv4, or an impossible header length.
    Ip {
        /// The first byte.
        first: u8,
    },
    /// Not TCP.
    Protocol {
        /// IP protocol number.
        protocol: u8,
    },
    /// A fragment, over which the checksum can not be summed.
    Fragment,
    /// Total length or data offset leave no room for the headers.
    Length {
        /// Total length in bytes that the IP header states.
        length: u16,
    },
}

impl core::error::Error for Error {}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { length } => write!(f, "segment cut to {length} bytes"),
            Self::Ip { first } => write!(f, "no IPv4 header begins with {first:#04x}"),
            Self::Protocol { protocol } => write!(f, "IP protocol {protocol}, not TCP"),
            Self::Fragment => write!(f, "a fragment"),
            Self::Length { length } => write!(f, "{length} bytes do not hold the headers"),
        }
    }
}

/// Headers of an IPv4 packet with TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// Fields that orders, flows and checksums depend on.
    pub segment: Segment,
    /// ECN field.
    pub ecn: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Time to live.
    pub ttl: u8,
}

impl Repr {
    /// Reads a whole packet; bytes behind its total length are padding.
    ///
    /// # Errors
    /// If the bytes are no whole, unfragmented IPv4 packet with TCP.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let length = bytes.len();
        if length < LENGTH {
            return Err(Error::Truncated { length });
        }
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let ip = usize::from(bytes[0] & 15) * 4;
        if bytes[0] >> 4 != 4 || ip < IP {
            return Err(Error::Ip { first: bytes[0] });
        }
        if bytes[9] != PROTOCOL {
            return Err(Error::Protocol { protocol: bytes[9] });
        }
        // More fragments, or an offset.
        if half(6) & 0x3fff != 0 {
            return Err(Error::Fragment);
        }
        let total = half(2);
        if usize::from(total) < ip + TCP {
            return Err(Error::Length { length: total });
        }
        if length < usize::from(total) {
            return Err(Error::Truncated { length });
        }
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let offset = usize::from(bytes[ip + 12] >> 4) * 4;
        if offset < TCP || ip + offset > usize::from(total) {
            return Err(Error::Length { length: total });
        }
        Ok(Self {
            segment: Segment {
                source: word(12),
                destination: word(16),
                ports: word(ip),
                sequence: word(ip + 4),
                acknowledgment: word(ip + 8),
                control: word(ip + 12),
                checksum: half(ip + 16),
                identification: half(4),
                // As if IP had no options: they are no part of the sum.
                length: total - (ip - IP) as u16,
                rest: sum(&bytes[ip + 18..usize::from(total)]),
            },
            ecn: bytes[1] & 3,
            dscp: bytes[1] >> 2,
            ttl: bytes[8],
        })
    }

    /// Returns the forty bytes of a segment without options, with "don't fragment" and IP's checksum. TCP's is that
    /// of the segment, whose length counts the payload.
    pub fn emit(&self) -> [u8; LENGTH] {
        let segment = &self.segment;
        let mut bytes = [0; LENGTH];
        let mut put = |at: usize, word: u32| bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        put(
            0,
            0x45 << 24
                | u32::from(self.dscp & 63) << 18
                | u32::from(self.ecn & 3) << 16
                | u32::from(segment.length),
        );
        put(4, u32::from(segment.identification) << 16 | 0x4000);
        put(8, u32::from(self.ttl) << 24 | u32::from(PROTOCOL) << 16);
        put(12, segment.source);
        put(16, segment.destination);
        put(20, segment.ports);
        put(24, segment.sequence);
        put(28, segment.acknowledgment);
        put(32, segment.control);
        put(36, u32::from(segment.checksum) << 16);
        let checksum = !sum(&bytes[..IP]);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }
}

/// Changes the ECN field of a packet that can be parsed, and with it the IP checksum (RFC 1624).
///
/// # Panics
/// If there are fewer than 12 bytes.
pub fn set_ecn(bytes: &mut [u8], code: u8) {
    let [_, tos, .., high, low] = &mut bytes[..12] else { return };
    let (old, new) = (*tos, *tos & !3 | code & 3);
    *tos = new;
    let sum = u32::from(!u16::from_be_bytes([*high, *low])) + u32::from(!u16::from(old)) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    [*high, *low] = (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes();
}

/// Makes a packet with a right checksum packet `index` of its chain, in its bytes: see [`Order::write`].
///
/// # Errors
/// If the bytes can not be parsed: [`Repr::parse`].
pub fn write(bytes: &mut [u8], order: Order, index: u8) -> Result<bool, Error> {
    let mut repr = Repr::parse(bytes)?;
    let says = order.write(&mut repr.segment, index);
    put(bytes, &repr.segment);
    Ok(says)
}

/// Gives a packet of a chain of `n` its own numbers back, in its bytes: see [`Order::restore`].
///
/// # Errors
/// If the bytes can not be parsed: [`Repr::parse`].
pub fn restore(bytes: &mut [u8], order: Order, n: u32, expected: &Expected) -> Result<bool, Error> {
    let mut repr = Repr::parse(bytes)?;
    let is_understood = order.restore(&mut repr.segment, n, expected);
    if is_understood {
        put(bytes, &repr.segment);
    }
    Ok(is_understood)
}

/// Puts what an order may change back into the packet that the segment was read from.
fn put(bytes: &mut [u8], segment: &Segment) {
    let ip = usize::from(bytes[0] & 15) * 4;
    bytes[ip + 4..ip + 8].copy_from_slice(&segment.sequence.to_be_bytes());
    bytes[ip + 8..ip + 12].copy_from_slice(&segment.acknowledgment.to_be_bytes());
    bytes[4..6].copy_from_slice(&segment.identification.to_be_bytes());
    bytes[10..12].fill(0);
    let checksum = !sum(&bytes[..ip]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum of RFC 1071, an odd last byte being the high half of its word.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
