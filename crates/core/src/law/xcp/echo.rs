//! The receiver's part of XCP: the feedback that ACKs return (draft-03 §4.1.2).

use super::{Feedback, Header, PLACES, Profile, SenderConfig, forge, reply};
use crate::law::{EchoLaw, Heard, Lie, Packet, Receiving, Reply};
use crate::units::Bytes;

/// Receiver state: the feedback that no ACK has carried yet.
///
/// A sum, not K02's copy of the last header: with delayed ACKs a copy loses every second value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Echo {
    sum: i64,
}

impl Echo {
    /// Adds the feedback of a data packet with a standard header: in order or not, the first time or again.
    /// Each of them was given its share by the links, so each counts.
    #[inline]
    pub fn on_data(&mut self, header: &Header) {
        self.sum = self.sum.saturating_add(header.delta as i64);
    }

    /// Returns Reverse_Feedback of the ACK about to leave, B/s. The part that a field cannot hold stays for the next.
    #[inline]
    pub fn on_ack(&mut self) -> i32 {
        let feedback = self.sum.clamp(i32::MIN as i64, i32::MAX as i64);
        self.sum -= feedback;
        feedback as i32
    }
}

/// Receiver state where ACKs return bytes of window, as K02's H_feedback: the change that no ACK has carried yet.
///
/// With the round trip that the packet stated, not the sender's when the ACK comes, so that it does not matter to the sum
/// which ACKs bring it: a queue that has grown meanwhile makes nothing of it larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ByteEcho {
    /// With [`PLACES`] binary places.
    sum: i64,
}

impl ByteEcho {
    /// Adds the feedback of a data packet, as [`Echo::on_data`].
    #[inline]
    pub fn on_data(&mut self, header: &Header) {
        self.sum = self.sum.saturating_add(header.delta as i64 * header.rtt as i64);
    }

    /// Returns the change for the ACK about to leave, whole bytes; what is less, or more than a field can hold, stays
    /// for the next.
    #[inline]
    pub fn on_ack(&mut self) -> i32 {
        let bytes = (self.sum >> PLACES).clamp(i32::MIN as i64, i32::MAX as i64);
        self.sum -= bytes << PLACES;
        bytes as i32
    }
}

/// Binary places that a [`CumulativeEcho`] leaves out: its steps are of 16 B/s.
const STEP: u32 = 4;
/// Bits of the sum on the wire.
const BITS: u32 = 28;

/// Receiver state for headers that carry the sum of all feedback instead of what is new: whatever ACK arrives
/// says all that the lost ones said (XCP-r's concern, solved where the sum fits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CumulativeEcho {
    /// Feedback that is not yet part of `stated`, B/s.
    rest: i64,
    stated: u32,
    pad: u32,
}

impl CumulativeEcho {
    /// Adds the feedback of as many equal packets at once, as [`Echo::on_data`].
    #[inline]
    pub fn on_data(&mut self, header: &Header, packets: u32) {
        self.rest = self.rest.saturating_add(header.delta as i64 * packets as i64);
    }

    /// Returns the sum for the ACK about to leave, 28 bits in steps of 16 B/s. One ACK moves it by at most an eighth
    /// of the circle, so that the sender can tell up from down even when three in a row are lost; the rest waits.
    #[inline]
    pub fn on_ack(&mut self) -> u32 {
        let most = 1i64 << (BITS - 3);
        let steps = (self.rest >> STEP).clamp(-most, most);
        self.rest -= steps << STEP;
        self.stated = self.stated.wrapping_add(steps as u32) & ((1 << BITS) - 1);
        self.stated
    }
}

/// Sender's memory of a [`CumulativeEcho`]: the sum that was heard last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EchoReader {
    heard: u32,
}

impl EchoReader {
    /// Returns the feedback that this sum has and the one before had not, B/s. An ACK that was overtaken takes
    /// back what the next one gives again.
    #[inline]
    pub fn on_ack(&mut self, sum: u32) -> i32 {
        let steps = sum.wrapping_sub(self.heard) << (32 - BITS);
        self.heard = sum;
        // The sign is now at the top, and the steps are worth 16 B/s where they are.
        const { assert!(32 - BITS == STEP) };
        steps as i32
    }
}

/// Receiver of [`SenderConfig::feedback`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// ACKs return rates.
    Rate(Echo),
    /// ACKs return bytes of window.
    Bytes(ByteEcho),
    /// ACKs return the sum of all rates: a [`CumulativeEcho`] without its padding, so that a receiver stays in two cache lines.
    Sum {
        /// Feedback that is not yet part of `stated`, B/s.
        rest: i64,
        /// Sum on the wire, 28 bits in steps of 16 B/s.
        stated: u32,
    },
}

impl EchoLaw<SenderConfig> for Returned {
    #[inline(always)]
    fn start(config: &SenderConfig, _mss: Bytes) -> Self {
        match config.feedback {
            _ if matches!(config.profile, Profile::Thesis) => Self::Rate(Echo::default()),
            Feedback::Rate => Self::Rate(Echo::default()),
            Feedback::Bytes => Self::Bytes(ByteEcho::default()),
            Feedback::Sum => Self::Sum { rest: 0, stated: 0 },
        }
    }

    /// Each packet with a standard header was given its share by the links, so each counts.
    #[inline(always)]
    fn on_data(&mut self, _config: &SenderConfig, packet: &impl Packet, _receiver: impl Receiving) -> Heard {
        if let Some(header) = packet.header() {
            match self {
                Self::Rate(echo) => echo.on_data(&header),
                Self::Bytes(echo) => echo.on_data(&header),
                Self::Sum { rest, stated } => {
                    let mut echo = CumulativeEcho { rest: *rest, stated: *stated, pad: 0 };
                    echo.on_data(&header, 1);
                    *rest = echo.rest;
                }
            }
        }
        Heard::Taken
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &SenderConfig, _receiver: impl Receiving) -> Reply {
        reply(match self {
            Self::Rate(echo) => echo.on_ack(),
            Self::Bytes(echo) => echo.on_ack(),
            Self::Sum { rest, stated } => {
                let mut echo = CumulativeEcho { rest: *rest, stated: *stated, pad: 0 };
                echo.on_ack();
                (*rest, *stated) = (echo.rest, echo.stated);
                echo.stated as i32
            }
        })
    }

    #[inline]
    fn forge(config: &SenderConfig, lie: Lie, packet: &mut impl Packet) {
        forge(config, lie, packet);
    }
}
