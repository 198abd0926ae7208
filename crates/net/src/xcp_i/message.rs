//! What the edges of a cloud say to each other, and the probes: ordinary packets of the network.

use super::Address;
use crate::packet::{Kind, Packet};
use congestlab_core::units::{Duration, Time};

/// Bytes of a control packet: a whole IP packet of 40 B (docs/design/protocols.md 3.4).
pub const CONTROL_SIZE: u16 = 40;

/// [`Packet::flow`] of control packets and probes, which are of no flow.
pub const NO_FLOW: u32 = u32::MAX;

/// What a control packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// k asks k-1 for an estimate; the parameter is the listener's word to the prober.
    Request {
        /// Meaning and unit are the estimator's.
        parameter: u64,
    },
    /// k-1 has the request.
    Ack {
        /// How long the estimate takes at most.
        takes: Duration,
        /// The clock of k that the request carried.
        echo: Time,
    },
    /// k-1 has finished.
    Report {
        /// The bandwidth, B/s, signed; `None`: the listener has seen the probes and computes it.
        bandwidth: Option<i64>,
        /// Bytes of data that k-1 has sent towards k so far.
        sent: u64,
    },
}

/// A control packet's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub verb: Verb,
    /// Who says it.
    pub from: Address,
    /// Number of the request; [`Packet::seq`].
    pub id: u32,
    /// Chosen by k for the request; every answer repeats it. Who has not seen the request cannot forge
    /// an answer.
    pub nonce: u64,
    /// Clock of the sender of this message.
    pub stamp: Time,
}

/// `words[0]`: what it is.
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
    /// As a packet.
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

    /// What a control packet says; `None` if that is nothing known.
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

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Who sends it.
    pub from: Address,
    /// Number of the request that it is sent for.
    pub id: u32,
    /// Of that request.
    pub nonce: u64,
    /// Which one of the round, from 0.
    pub number: u16,
    /// Bytes of the whole IP packet.
    pub size: u16,
    /// Clock of k-1 when it was sent.
    pub stamp: Time,
}

impl Probe {
    /// As a packet.
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

    /// What a probe carries; `None` if it is none.
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
