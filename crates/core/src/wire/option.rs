//! XCP's congestion header as a TCP option, for hosts and routers whose kernels are not changed.
//!
//! Kind 253 with an experiment identifier (RFC 6994). Data packets carry 20 bytes, which routers
//! read and edit; ACKs carry 8, which they leave alone:
//!
//! ```text
//! | kind 253 | length 20 | ExID 0x5843 | X | RTT, routers | Delta_Throughput | echo |
//! | kind 253 | length  8 | ExID 0x5843 | echo |
//! ```
//!
//! X and Delta_Throughput are those of draft-03 §3.2. The RTT has 28 bits of 2^-24 s; in the four
//! bits below, each router that worked on the header counts itself. An echo repeats that count in its
//! top four bits; the rest is the *sum* of all feedback since the connection began, in steps of
//! 16 B/s, modulo 2^28: an ACK that gets lost is made good by the next one, which the draft's
//! Reverse_Feedback can not do.
//!
//! SYN and SYN-ACK carry the short form with [`Hello`] for an echo.

use crate::law::xcp::Header;

/// TCP option kind for experiments (RFC 4727).
pub const KIND: u8 = 253;
/// Experiment identifier: `XC`.
pub const EXID: u16 = 0x5843;
/// Bytes of the option of a data packet.
pub const DATA: usize = 20;
/// Bytes of the option of an ACK.
pub const ACK: usize = 8;
/// Largest count of routers: it stands for so many, or more.
pub const ROUTERS_MAX: u8 = 15;

/// Bytes of [`Option::Data`] that a router reads and writes: RTT with routers, and feedback.
pub mod field {
    use core::ops::Range;
    /// Bytes of X.
    pub const X: Range<usize> = 4..8;
    /// Bytes of RTT and the count of routers.
    pub const RTT: Range<usize> = 8..12;
    /// Bytes of Delta_Throughput.
    pub const DELTA: Range<usize> = 12..16;
    /// Bytes of the echo of a data packet.
    pub const ECHO: Range<usize> = 16..20;
    /// Bytes of the echo of an ACK.
    pub const ACK_ECHO: Range<usize> = 4..8;
}

/// Echo of a receiver: routers and feedback of the data that it got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// Routers that worked on the last data packet; at most [`ROUTERS_MAX`].
    pub routers: u8,
    /// Sum of all feedback, modulo 2^28, in 16 B/s: see [`crate::law::xcp::CumulativeEcho`].
    pub sum: u32,
}

impl Echo {
    const fn from_word(word: u32) -> Self {
        Self { routers: (word >> 28) as u8, sum: word & 0x0fff_ffff }
    }

    const fn to_word(self) -> u32 {
        ((self.routers as u32) << 28) | (self.sum & 0x0fff_ffff)
    }
}

/// Abilities that a host states in its SYN or SYN-ACK: the echo word's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// True if the host also understands the header between IP and TCP ([`super::xcp`]).
    pub shim: bool,
}

/// TCP option of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Option {
    /// Option of a packet with data.
    Data {
        /// X, RTT and feedback; the RTT loses its lowest four bits, and `reverse` is not sent.
        header: Header,
        /// Routers that worked on the packet so far.
        routers: u8,
        /// Echo for the data of the other direction.
        echo: Echo,
    },
    /// Option of a packet without data.
    Ack {
        /// Echo for the data of the other direction.
        echo: Echo,
    },
}

impl Option {
    /// Reads an option from its kind on. `None`: another option, or one of a wrong length.
    pub fn parse(bytes: &[u8]) -> core::option::Option<Self> {
        let word = |at: core::ops::Range<usize>| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at]);
            u32::from_be_bytes(word)
        };
        let [KIND, length, high, low, ..] = *bytes else { return None };
        let length = usize::from(length);
        if u16::from_be_bytes([high, low]) != EXID || bytes.len() < length {
            return None;
        }
        match length {
            DATA => {
                let rtt = word(field::RTT);
                let (x, delta) = (word(field::X), word(field::DELTA) as i32);
                let header = Header { x, rtt: rtt & !0xf, delta, reverse: 0 };
                Some(Self::Data {
                    header,
                    routers: (rtt & 0xf) as u8,
                    echo: Echo::from_word(word(field::ECHO)),
                })
            }
            ACK => Some(Self::Ack { echo: Echo::from_word(word(field::ACK_ECHO)) }),
            _ => None,
        }
    }

    /// Returns the bytes of the option, and how many count: [`DATA`] or [`ACK`].
    pub fn emit(&self) -> ([u8; DATA], usize) {
        let mut bytes = [0; DATA];
        bytes[0] = KIND;
        bytes[2..4].copy_from_slice(&EXID.to_be_bytes());
        let mut put = |at: core::ops::Range<usize>, word: u32| bytes[at].copy_from_slice(&word.to_be_bytes());
        let length = match *self {
            Self::Data { header, routers, echo } => {
                put(field::X, header.x);
                put(field::RTT, (header.rtt & !0xf) | u32::from(routers.min(ROUTERS_MAX)));
                put(field::DELTA, header.delta as u32);
                put(field::ECHO, echo.to_word());
                DATA
            }
            Self::Ack { echo } => {
                put(field::ACK_ECHO, echo.to_word());
                ACK
            }
        };
        bytes[1] = length as u8;
        (bytes, length)
    }
}

impl Hello {
    /// Reads the echo of a SYN or SYN-ACK.
    pub const fn from_echo(echo: Echo) -> Self {
        Self { shim: echo.sum & 1 == 1 }
    }

    /// Returns the echo of a SYN or SYN-ACK.
    pub const fn to_echo(self) -> Echo {
        Echo { routers: 0, sum: self.shim as u32 }
    }
}
