//! Messages between the edges of a cloud, and the probes: ordinary packets of the network.

use super::Address;
use crate::packet::{Kind, Packet};
use congestlab_core::units::{Duration, Time};

/// Bytes of a control packet: a whole IP packet of 40 B (docs/design/protocols.md 3.4).
pub const CONTROL_SIZE: u16 = 40;

/// Value of [`Packet::flow`] for control packets and probes, which are of no flow.
pub const NO_FLOW: u32 = u32::MAX;

/// Statement of a control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The downstream edge k asks the upstream one, k-1, for an estimate.
    Request {
        /// The listener's word to the prober; meaning and unit are the estimator's.
        parameter: u64,
    },
    /// The upstream edge k-1 has the request.
    Ack {
        /// Longest time that the estimate takes.
        takes: Duration,
        /// The clock of k that the request carried.
        echo: Time,
    },
    /// The upstream edge k-1 has finished the round.
    Report {
        /// Available bandwidth, B/s, signed; `None`: the listener has seen the probes and computes it.
        bandwidth: Option<i64>,
        /// Bytes of data that k-1 has sent towards k so far.
        sent: u64,
    },
}

/// Content of a control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Statement of the message.
    pub verb: Verb,
    /// Address of the node that says it.
    pub from: Address,
    /// Number of the request; [`Packet::seq`].
    pub id: u32,
    /// Nonce that k chose for the request and every answer repeats. Who has not seen the request cannot forge
    /// an answer.
    pub nonce: u64,
    /// Clock of the sender of this message.
    pub stamp: Time,
}

/// Kinds of message in `words[0]`.
const REQUEST: u32 = 1;
const ACK: u32 = 2;
/// A report without a bandwidth.
const FINISHED: u32 = 3;
const REPORT: u32 = 4;

const fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

const fn whole(words: &[u32; 8], at: usize) -> u64 {
    words[at] as u64 | (words[at + 1] as u64) << 32
}

impl Message {
    /// Returns the message as a packet.
    pub fn to_packet(&self) -> Packet {
        let (code, first, second) = match self.verb {
            Verb::Request { parameter } => (REQUEST, parameter, 0),
            Verb::Ack { takes, echo } => (ACK, takes.0, echo.0),
            Verb::Report { bandwidth: None, sent } => (FINISHED, 0, sent),
            Verb::Report { bandwidth: Some(bandwidth), sent } => (REPORT, bandwidth as u64, sent),
        };
        let ([n0, n1], [a0, a1], [b0, b1]) = (halves(self.nonce), halves(first), halves(second));
        Packet {
            stamp_ns: self.stamp.0,
            flow: NO_FLOW,
            seq: self.id,
            size: CONTROL_SIZE,
            kind: Kind::Control,
            words: [code, self.from.0, n0, n1, a0, a1, b0, b1],
            ..Packet::default()
        }
    }

    /// Reads a control packet; `None` if it says nothing known.
    pub fn from_packet(packet: &Packet) -> Option<Self> {
        let words = &packet.words;
        let (first, second) = (whole(words, 4), whole(words, 6));
        let verb = match words[0] {
            REQUEST => Verb::Request { parameter: first },
            ACK => Verb::Ack { takes: Duration(first), echo: Time(second) },
            FINISHED => Verb::Report { bandwidth: None, sent: second },
            REPORT => Verb::Report { bandwidth: Some(first as i64), sent: second },
            _ => return None,
        };
        (packet.kind == Kind::Control).then_some(Self {
            verb,
            from: Address(words[1]),
            id: packet.seq,
            nonce: whole(words, 2),
            stamp: Time(packet.stamp_ns),
        })
    }
}

/// A probe of an estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Address of the node that sends it.
    pub from: Address,
    /// Number of the request that it is sent for.
    pub id: u32,
    /// Nonce of that request.
    pub nonce: u64,
    /// Number of the probe in its round, from 0.
    pub number: u16,
    /// Bytes of the whole IP packet.
    pub size: u16,
    /// Clock of k-1 when the probe was sent.
    pub stamp: Time,
}

impl Probe {
    /// Returns the probe as a packet.
    pub fn to_packet(&self) -> Packet {
        let [n0, n1] = halves(self.nonce);
        Packet {
            stamp_ns: self.stamp.0,
            flow: NO_FLOW,
            seq: self.id,
            size: self.size,
            kind: Kind::Probe,
            words: [0, self.from.0, n0, n1, self.number.into(), 0, 0, 0],
            ..Packet::default()
        }
    }

    /// Reads a probe; `None` if the packet is none.
    pub fn from_packet(packet: &Packet) -> Option<Self> {
        let words = &packet.words;
        (packet.kind == Kind::Probe).then_some(Self {
            from: Address(words[1]),
            id: packet.seq,
            nonce: whole(words, 2),
            number: words[4] as u16,
            size: packet.size,
            stamp: Time(packet.stamp_ns),
        })
    }
}
