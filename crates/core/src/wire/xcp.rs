//! XCP's congestion header, 20 bytes between the IP header and the transport's.
//!
//! Three layouts: version 3 of draft-falk-xcp-spec-03 §3.2 (the default everywhere), version 2 of
//! drafts -01 and -02 §3.2, version 1 of draft -00 §2.2. Values are those of the wire: X and RTT in
//! 2^-28 s (version 1: RTT in ms and a throughput in B/ms), feedback in B/s.
//!
//! [`Packet`] looks at bytes that are known to be a header; [`Repr`] is a header that can be sent.
//! A router must not touch a header that is not [`Format::Standard`], and forwards what it cannot
//! read unprocessed, counting the [`Error`].

use crate::law::xcp::Header;
use crate::units::{Bytes, Wide};
use core::fmt::{self, Display, Formatter};

/// Bytes of every version's header, and the value of its length field.
pub const LENGTH: usize = 20;

/// IP protocol number: one for experiments (RFC 3692), since none was ever assigned. TH used 200.
pub const PROTOCOL_EXPERIMENTAL: u8 = 253;

mod field {
    use core::ops::Range;
    /// Versions 2 and 3: next protocol, length, version and format, unused.
    pub(super) const PROTOCOL: usize = 0;
    pub(super) const LENGTH: usize = 1;
    pub(super) const VERSION_FORMAT: usize = 2;
    /// Version 1: version and format, next protocol, length, unused.
    pub(super) const V1_VERSION_FORMAT: usize = 0;
    pub(super) const V1_PROTOCOL: usize = 1;
    pub(super) const V1_LENGTH: usize = 2;
    /// Four words; which is which depends on the version.
    pub(super) const WORDS: [Range<usize>; 4] = [4..8, 8..12, 12..16, 16..20];
}

/// Layout of a congestion header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// draft-falk-xcp-spec-00: throughput instead of X, coarse units.
    V1,
    /// Drafts -01 and -02: RTT before X, Delta_Throughput before Reverse_Feedback.
    V2,
    /// Draft -03.
    V3,
}

/// Format of a header: whether routers may work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// All fields count.
    Standard,
    /// Only Reverse_Feedback counts: pure ACKs. Unknown formats are taken as this.
    Minimal,
}

/// Reason why bytes are not a congestion header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Fewer bytes than a header has.
    Truncated {
        /// Number of bytes that are there.
        length: usize,
    },
    /// A version that nobody specified.
    Version {
        /// Version that the header states.
        version: u8,
    },
    /// A length field that is not 20.
    Length {
        /// Length in bytes that the header states.
        length: u8,
    },
}

impl core::error::Error for Error {}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { length } => {
                write!(f, "congestion header of {length} bytes where {LENGTH} are needed")
            }
            Self::Version { version } => {
                write!(f, "congestion header of unknown version {version}, not 1, 2 or 3")
            }
            Self::Length { length } => {
                write!(f, "congestion header that states a length of {length} instead of {LENGTH} bytes")
            }
        }
    }
}

/// A view of bytes as a congestion header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
    version: Version,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the buffer begins with a header. The accessors rely on the buffer keeping its
    /// length and first word.
    ///
    /// # Errors
    /// If the buffer is too short, or states another version or length.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let bytes = buffer.as_ref();
        if bytes.len() < LENGTH {
            return Err(Error::Truncated { length: bytes.len() });
        }
        // The versions put their number in different places. Version 1 has its length, 0x14, where
        // the others have theirs, so the two cannot be mistaken for each other.
        let is_v1 =
            bytes[field::V1_VERSION_FORMAT] >> 4 == 1 && usize::from(bytes[field::V1_LENGTH]) == LENGTH;
        let version = match bytes[field::VERSION_FORMAT] >> 4 {
            _ if is_v1 => Version::V1,
            2 => Version::V2,
            3 => Version::V3,
            version => return Err(Error::Version { version }),
        };
        let length = bytes[field::LENGTH];
        if version != Version::V1 && usize::from(length) != LENGTH {
            return Err(Error::Length { length });
        }
        Ok(Self { buffer, version })
    }

    /// Returns the layout.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the format: whether routers may work on the header.
    pub fn format(&self) -> Format {
        let byte = match self.version {
            Version::V1 => field::V1_VERSION_FORMAT,
            Version::V2 | Version::V3 => field::VERSION_FORMAT,
        };
        match self.buffer.as_ref()[byte] & 0xf {
            1 => Format::Standard,
            _ => Format::Minimal,
        }
    }

    /// Returns the number of the transport protocol that follows.
    pub fn protocol(&self) -> u8 {
        match self.version {
            Version::V1 => self.buffer.as_ref()[field::V1_PROTOCOL],
            Version::V2 | Version::V3 => self.buffer.as_ref()[field::PROTOCOL],
        }
    }

    /// Returns X in 2^-28 s; in version 1 the throughput in B/ms.
    pub fn x(&self) -> u32 {
        self.word(match self.version {
            Version::V1 | Version::V2 => 1,
            Version::V3 => 0,
        })
    }

    /// Returns the round trip time in 2^-28 s; in version 1 in ms.
    pub fn rtt(&self) -> u32 {
        self.word(match self.version {
            Version::V1 | Version::V2 => 0,
            Version::V3 => 1,
        })
    }

    /// Returns Delta_Throughput, B/s.
    pub fn delta(&self) -> i32 {
        self.word(self.delta_word()) as i32
    }

    /// Returns Reverse_Feedback, B/s.
    pub fn reverse(&self) -> i32 {
        self.word(5 - self.delta_word()) as i32
    }

    fn delta_word(&self) -> usize {
        match self.version {
            Version::V1 | Version::V2 => 2,
            Version::V3 => 3,
        }
    }

    fn word(&self, index: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.buffer.as_ref()[field::WORDS[index].clone()]);
        u32::from_be_bytes(word)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Sets Delta_Throughput, B/s: the one field that a router writes.
    pub fn set_delta(&mut self, delta: i32) {
        let range = field::WORDS[self.delta_word()].clone();
        self.buffer.as_mut()[range].copy_from_slice(&delta.to_be_bytes());
    }
}

/// A header that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Header of a data packet, in version 2 or 3.
    Standard {
        /// Version, 2 or 3.
        layout: Layout,
        /// Number of the transport protocol that follows.
        protocol: u8,
        /// The fields.
        header: Header,
    },
    /// Header of a data packet, in version 1.
    StandardV1 {
        /// Number of the transport protocol that follows.
        protocol: u8,
        /// The fields.
        header: HeaderV1,
    },
    /// Header of a pure ACK: routers leave it alone.
    Minimal {
        /// Version.
        version: Version,
        /// Number of the transport protocol that follows.
        protocol: u8,
        /// Reverse_Feedback, B/s.
        reverse: i32,
    },
}

/// Versions whose fields are [`Header`]'s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Drafts -01 and -02.
    V2,
    /// Draft -03.
    #[default]
    V3,
}

/// The fields of version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderV1 {
    /// Round trip time in ms, rounded up; 0 unknown.
    pub rtt: u32,
    /// Throughput in B/ms, rounded up.
    pub throughput: u32,
    /// Delta_Throughput, B/s.
    pub delta: i32,
    /// Reverse_Feedback, B/s.
    pub reverse: i32,
}

impl HeaderV1 {
    /// Converts the laws' fields, for packets of `size`.
    pub fn from_header(header: &Header, size: Bytes) -> Self {
        let round_up = |n: Wide, d: u64| n.plus(d - 1).over(d).to_u64().min(u64::from(u32::MAX)) as u32;
        let throughput = match header.x {
            0 => 0,
            x => round_up(Wide::product(size.0, 1 << 28), u64::from(x) * 1000),
        };
        let rtt = round_up(Wide::product(u64::from(header.rtt), 1000), 1 << 28);
        Self { rtt, throughput, delta: header.delta, reverse: header.reverse }
    }

    /// Returns the laws' fields, for packets of `size`: X = size / throughput to the nearest, at least 1,
    /// unknown where the throughput is.
    pub fn to_header(&self, size: Bytes) -> Header {
        let limit = |n: u64| n.min(u64::from(u32::MAX)) as u32;
        let x = match u64::from(self.throughput) * 1000 {
            0 => 0,
            rate => limit(Wide::product(size.0, 1 << 28).plus(rate / 2).over(rate).to_u64()).max(1),
        };
        let rtt = limit(Wide::product(u64::from(self.rtt), 1 << 28).plus(500).over(1000).to_u64());
        Header { x, rtt, delta: self.delta, reverse: self.reverse }
    }
}

impl Repr {
    /// Reads a header. Fields of a minimal header beside its feedback are ignored.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        let (version, protocol, reverse) = (packet.version(), packet.protocol(), packet.reverse());
        let layout = match (packet.format(), version) {
            (Format::Minimal, _) => return Self::Minimal { version, protocol, reverse },
            (Format::Standard, Version::V1) => {
                let (rtt, throughput, delta) = (packet.rtt(), packet.x(), packet.delta());
                return Self::StandardV1 { protocol, header: HeaderV1 { rtt, throughput, delta, reverse } };
            }
            (Format::Standard, Version::V2) => Layout::V2,
            (Format::Standard, Version::V3) => Layout::V3,
        };
        let header = Header { x: packet.x(), rtt: packet.rtt(), delta: packet.delta(), reverse };
        Self::Standard { layout, protocol, header }
    }

    /// Returns the bytes of the header.
    pub fn emit(&self) -> [u8; LENGTH] {
        let (version, format, protocol, words) = match *self {
            Self::Standard { layout, protocol, header: Header { x, rtt, delta, reverse } } => {
                let (delta, reverse) = (delta as u32, reverse as u32);
                match layout {
                    Layout::V2 => (Version::V2, 1, protocol, [rtt, x, delta, reverse]),
                    Layout::V3 => (Version::V3, 1, protocol, [x, rtt, reverse, delta]),
                }
            }
            Self::StandardV1 { protocol, header: HeaderV1 { rtt, throughput, delta, reverse } } => {
                (Version::V1, 1, protocol, [rtt, throughput, delta as u32, reverse as u32])
            }
            Self::Minimal { version, protocol, reverse } => {
                let reverse = reverse as u32;
                let words = if version == Version::V3 { [0, 0, reverse, 0] } else { [0, 0, 0, reverse] };
                (version, 2, protocol, words)
            }
        };
        let mut bytes = [0; LENGTH];
        let length = LENGTH as u8;
        bytes[..3].copy_from_slice(&match version {
            Version::V1 => [0x10 | format, protocol, length],
            Version::V2 => [protocol, length, 0x20 | format],
            Version::V3 => [protocol, length, 0x30 | format],
        });
        for (range, word) in field::WORDS.into_iter().zip(words) {
            bytes[range].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

/// One line, as `tcpdump` would print it.
impl Display for Repr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard { protocol, header: Header { x, rtt, delta, reverse }, .. } => {
                write!(f, "xcp x {x} rtt {rtt} delta {delta} reverse {reverse} next {protocol}")
            }
            Self::StandardV1 { protocol, header: HeaderV1 { rtt, throughput, delta, reverse } } => {
                write!(
                    f,
                    "xcp v1 throughput {throughput} rtt {rtt} delta {delta} reverse {reverse} next {protocol}"
                )
            }
            Self::Minimal { protocol, reverse, .. } => write!(f, "xcp reverse {reverse} next {protocol}"),
        }
    }
}
