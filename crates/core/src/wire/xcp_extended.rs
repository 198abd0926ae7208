//! XCP's congestion header with what XCP-i and XCP-r add to it, behind the 20 bytes of version 3.
//!
//! Neither paper gives a layout; formats, lengths and places are ours (docs/design/protocols.md 3.2, 4.2; A-10):
//!
//! ```text
//! format 3, XCP-i, 28 bytes:  20 xcp_ttl | 21 flags, 0 | 22 0, 0 | 24 last_xcp_router, IPv4
//! format 4, XCP-r, 28 bytes:  20 Cwnd, bytes | 24 flags: bit 0 congestion, bit 1 difference | 25 epoch | 26 0, 0
//! format 5, both,  36 bytes:  20 as format 3 | 28 as format 4
//! ```
//!
//! With bit 1, Cwnd of data is the sum of the changes that the sender has made on its own.
//!
//! An ACK of XCP-r has format 4 too: X, RTT and Delta_Throughput are 0, so that no router gives it
//! anything, and Cwnd is the window that the receiver keeps. A router that knows only formats 1 and 2
//! takes these for unknown ones, which it forwards as they are ([`super::xcp`]).

use core::fmt::{self, Display, Formatter};

use super::xcp::LENGTH as BASE;
use crate::law::xcp::Header;
use crate::law::xcp_r;

/// Bytes of the longest extended header.
pub const LENGTH_MAX: usize = BASE + 16;

/// Fields that XCP-i adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interoperable {
    /// Time to live as the last XCP-i node set it.
    pub xcp_ttl: u8,
    /// Address of the last XCP-i node.
    pub last_xcp_router: [u8; 4],
}

/// Reason why bytes are no extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Fewer bytes than the header has.
    Truncated {
        /// Number of bytes that are there.
        length: usize,
    },
    /// The version is not 3, the only one with extensions.
    Version {
        /// Version that the header states.
        version: u8,
    },
    /// The format is not 3, 4 or 5: see [`super::xcp`].
    Format {
        /// Format that the header states.
        format: u8,
    },
    /// The length is not that of the format.
    Length {
        /// Length in bytes that the header states.
        length: u8,
    },
}

impl core::error::Error for Error {}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { length } => write!(f, "extended congestion header cut to {length} bytes"),
            Self::Version { version } => write!(f, "extended congestion header of version {version}, not 3"),
            Self::Format { format } => write!(f, "congestion header of format {format}, not 3, 4 or 5"),
            Self::Length { length } => {
                write!(
                    f,
                    "extended congestion header that states a length of {length} bytes, not its format's"
                )
            }
        }
    }
}

/// An extended header that can be sent: at least one of the two extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Number of the transport protocol that follows.
    pub protocol: u8,
    /// The fields of version 3.
    pub header: Header,
    /// XCP-i's fields: formats 3 and 5.
    pub interoperable: Option<Interoperable>,
    /// XCP-r's fields: formats 4 and 5.
    pub window: Option<xcp_r::Header>,
}

/// Returns the bytes of a header of this format; `None`: it has no extension.
pub const fn length_of(format: u8) -> Option<usize> {
    match format {
        3 | 4 => Some(BASE + 8),
        5 => Some(LENGTH_MAX),
        _ => None,
    }
}

impl Repr {
    /// Returns the format that says what is there; 1, which is draft-03's, without an extension.
    pub const fn format(&self) -> u8 {
        match (self.interoperable.is_some(), self.window.is_some()) {
            (false, false) => 1,
            (true, false) => 3,
            (false, true) => 4,
            (true, true) => 5,
        }
    }

    /// Reads a header. Fields that must be zero are not looked at.
    ///
    /// # Errors
    /// If the bytes do not begin with an extended header.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let [protocol, length, version_format, ..] = *bytes else {
            return Err(Error::Truncated { length: bytes.len() });
        };
        let (version, format) = (version_format >> 4, version_format & 0xf);
        if version != 3 {
            return Err(Error::Version { version });
        }
        let Some(needed) = length_of(format) else { return Err(Error::Format { format }) };
        if usize::from(length) != needed {
            return Err(Error::Length { length });
        }
        if bytes.len() < needed {
            return Err(Error::Truncated { length: bytes.len() });
        }
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            word
        };
        let number = |at: usize| u32::from_be_bytes(word(at));
        let header =
            Header { x: number(4), rtt: number(8), reverse: number(12) as i32, delta: number(16) as i32 };
        let at_window = if format == 5 { BASE + 8 } else { BASE };
        Ok(Self {
            protocol,
            header,
            interoperable: (format != 4)
                .then(|| Interoperable { xcp_ttl: bytes[BASE], last_xcp_router: word(BASE + 4) }),
            window: (format != 3).then(|| xcp_r::Header {
                cwnd: number(at_window),
                is_reset: bytes[at_window + 4] & 1 != 0,
                is_difference: bytes[at_window + 4] & 2 != 0,
                epoch: bytes[at_window + 5],
            }),
        })
    }

    /// Returns the bytes of the header, and how many count.
    pub fn emit(&self) -> ([u8; LENGTH_MAX], usize) {
        let mut bytes = [0; LENGTH_MAX];
        let length = length_of(self.format()).unwrap_or(BASE);
        let mut put = |at: usize, word: [u8; 4]| bytes[at..at + 4].copy_from_slice(&word);
        let Header { x, rtt, delta, reverse } = self.header;
        put(0, [self.protocol, length as u8, 0x30 | self.format(), 0]);
        for (at, word) in [(4, x), (8, rtt), (12, reverse as u32), (16, delta as u32)] {
            put(at, word.to_be_bytes());
        }
        let mut at = BASE;
        if let Some(ours) = &self.interoperable {
            put(at, [ours.xcp_ttl, 0, 0, 0]);
            put(at + 4, ours.last_xcp_router);
            at += 8;
        }
        if let Some(window) = &self.window {
            put(at, window.cwnd.to_be_bytes());
            let flags = window.is_reset as u8 | (window.is_difference as u8) << 1;
            put(at + 4, [flags, window.epoch, 0, 0]);
        }
        (bytes, length)
    }
}

/// One line, as `tcpdump` would print it.
impl Display for Repr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Header { x, rtt, delta, reverse } = self.header;
        write!(f, "xcp x {x} rtt {rtt} delta {delta} reverse {reverse}")?;
        if let Some(Interoperable { xcp_ttl, last_xcp_router: [a, b, c, d] }) = self.interoperable {
            write!(f, " ttl {xcp_ttl} last {a}.{b}.{c}.{d}")?;
        }
        if let Some(window) = self.window {
            let flag = if window.is_reset { " congestion" } else { "" };
            let name = if window.is_difference { "own" } else { "cwnd" };
            write!(f, " {name} {} epoch {}{flag}", window.cwnd, window.epoch)?;
        }
        write!(f, " next {}", self.protocol)
    }
}
