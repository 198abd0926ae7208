//! The packet as the elements pass it on: 64 bytes, by value.
//!
//! One layout for every protocol, so that a queue is a plain ring and an engine can move packets
//! without looking inside. Sequence numbers count segments, modulo 2^32; the size of segment `n`
//! of a flow is known to its sender and receiver.

use congestlab_core::law::{self, mpcp, xcp, xcp_i, xcp_r};
use congestlab_core::units::Bytes;

/// Time inside the engine and the links: picoseconds since the run began, exact for the
/// serialisation of a byte at 1, 10, 40 and 100 Gbit/s. Laws and hosts see nanoseconds.
pub type Picos = u64;

/// Picoseconds in a nanosecond.
pub const PS_PER_NS: u64 = 1_000;

/// Purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Kind {
    /// A segment of a TCP-like flow.
    #[default]
    Data,
    /// A pure acknowledgment.
    Ack,
    /// A SYN, which opens a connection.
    Syn,
    /// A SYN-ACK, which answers a SYN.
    SynAck,
    /// A zero-window probe: asks for an acknowledgment, carries no data.
    WindowProbe,
    /// A datagram of a constant-rate or ON/OFF source.
    Datagram,
    /// A message between the edges of a cloud: [`crate::xcp_i::Message`].
    Control,
    /// A probe of an edge through a cloud, to learn its available bandwidth: [`crate::xcp_i::Probe`].
    Probe,
}

/// Flag bits of [`Packet::flags`].
pub mod flag {
    /// ECN field of the IP header, two low bits: 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168 §5); to MPCP's
    /// family 1 to 3 are digits of a load level.
    pub const ECN_MASK: u8 = 0b11;
    /// ECN-capable transport, codepoint ECT(0).
    pub const ECT0: u8 = 0b10;
    /// Congestion experienced.
    pub const CE: u8 = 0b11;
    /// TCP header flag: congestion experienced, echoed by the receiver (RFC 3168 §6.1).
    pub const ECE: u8 = 1 << 2;
    /// TCP header flag: congestion window reduced.
    pub const CWR: u8 = 1 << 3;
    /// XCP: the packet carries a congestion header of the standard format in `words[0..4]`.
    pub const XCP: u8 = 1 << 4;
    /// Retransmission: the segment was sent before (for statistics only; no element may act on it).
    pub const RETRANSMIT: u8 = 1 << 5;
    /// Low priority: the first to go in a priority-drop queue. Data with it is a probe of TCP-Peach's, and
    /// an ACK the answer to one.
    pub const LOW_PRIORITY: u8 = 1 << 6;
    /// XCP-i: the packet carries the extension in `words[5..7]`, so every router decrements its IP TTL.
    pub const XCP_I: u8 = 1 << 7;
}

/// Ranges of segments `[start, end)` that a selective acknowledgment can carry beside timestamps
/// (RFC 2018 §3).
pub const SACK_BLOCKS: usize = 3;

/// An advertised window without limit. Below it, as many segments as a window can have.
pub const UNLIMITED: u32 = (1 << 24) - 1;

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Packet {
    /// Time at which the packet reaches the element that it is on the way to, ps.
    pub at: Picos,
    /// Data, SYN, probe: time at which it was sent, ns (RFC 7323 TSval). ACK: the TSval that it echoes.
    pub stamp_ns: u64,
    /// Index of the flow, over the whole run.
    pub flow: u32,
    /// Data: number of the segment. ACK: the segment expected next.
    pub seq: u32,
    /// Position in the table of routes, for the engine.
    pub route: u32,
    /// Bytes of the whole IP packet.
    pub size: u16,
    /// Purpose of the packet.
    pub kind: Kind,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Fields that depend on the kind and the protocol.
    ///
    /// Data: X, RTT, Delta_Throughput, Reverse_Feedback; XCP-r's window in bytes; four bytes, low to
    /// high: IP TTL, xcp_ttl, XCP-r's epoch, its flag; XCP-i's last router; one word free. Of MPCP's family:
    /// the headers of IP and TCP, [`Packet::segment`].
    /// ACK: advertised window in segments (low 24 bits) and XCP-r's epoch (high 8); Reverse_Feedback,
    /// XCP-r's window in bytes, or MPCP's [`mpcp::Echoed`]; three SACK ranges.
    pub words: [u32; 8],
}

impl Packet {
    /// Returns true for pure acknowledgments: the only packets that `ack_loss` may take (docs/design/contract.md 2).
    #[inline]
    pub const fn is_pure_ack(&self) -> bool {
        matches!(self.kind, Kind::Ack)
    }

    /// Returns true if a standard XCP header rides along.
    #[inline]
    pub const fn has_xcp(&self) -> bool {
        self.flags & flag::XCP != 0
    }

    /// Returns the XCP header of a data packet; meaningless unless [`Packet::has_xcp`].
    #[inline]
    pub const fn xcp(&self) -> xcp::Header {
        xcp::Header {
            x: self.words[0],
            rtt: self.words[1],
            delta: self.words[2] as i32,
            reverse: self.words[3] as i32,
        }
    }

    /// Puts a standard XCP header on a data packet.
    #[inline]
    pub const fn set_xcp(&mut self, header: xcp::Header) {
        self.flags |= flag::XCP;
        self.words[0] = header.x;
        self.words[1] = header.rtt;
        self.words[2] = header.delta as u32;
        self.words[3] = header.reverse as u32;
    }

    /// Returns true if the XCP-i extension rides along.
    #[inline]
    pub const fn has_xcp_i(&self) -> bool {
        self.flags & flag::XCP_I != 0
    }

    /// Returns the XCP-i extension of a data packet; meaningless unless [`Packet::has_xcp_i`].
    #[inline]
    pub const fn xcp_i(&self) -> xcp_i::Extension {
        xcp_i::Extension {
            ttl: self.words[5] as u8,
            xcp_ttl: (self.words[5] >> 8) as u8,
            last: xcp_i::Address(self.words[6]),
        }
    }

    /// Puts the XCP-i extension on a data packet.
    #[inline]
    pub const fn set_xcp_i(&mut self, extension: xcp_i::Extension) {
        self.flags |= flag::XCP_I;
        self.words[5] = self.words[5] & 0xffff_0000 | (extension.xcp_ttl as u32) << 8 | extension.ttl as u32;
        self.words[6] = extension.last.0;
    }

    /// Decrements the IP TTL, as every router does with a packet that it forwards; stays at 0. Only packets with
    /// the XCP-i extension show theirs.
    #[inline]
    pub const fn decrement_ttl(&mut self) {
        self.words[5] -= (self.has_xcp_i() && self.words[5] & 0xff != 0) as u32;
    }

    /// Returns XCP-r's header of a data packet; meaningless without XCP-r.
    #[inline]
    pub const fn xcp_r(&self) -> xcp_r::Header {
        let word = self.words[5];
        xcp_r::Header { cwnd: self.words[4], epoch: (word >> 16) as u8, is_reset: word >> 24 & 1 != 0 }
    }

    /// Puts XCP-r's header on a data packet.
    #[inline]
    pub const fn set_xcp_r(&mut self, header: xcp_r::Header) {
        self.words[4] = header.cwnd;
        self.words[5] = self.words[5] & 0xffff | (header.epoch as u32) << 16 | (header.is_reset as u32) << 24;
    }

    /// Returns XCP-r's window and its epoch, of an ACK.
    #[inline]
    pub const fn reply(&self) -> xcp_r::Reply {
        xcp_r::Reply { cwnd: self.words[1], epoch: (self.words[0] >> 24) as u8 }
    }

    /// Puts XCP-r's window and its epoch on an ACK.
    #[inline]
    pub const fn set_reply(&mut self, reply: xcp_r::Reply) {
        self.words[0] = self.words[0] & UNLIMITED | (reply.epoch as u32) << 24;
        self.words[1] = reply.cwnd;
    }

    /// Returns the IP and TCP headers of a data packet of MPCP's family, without options and with a payload of
    /// zeros; `None`: the packet does not show them.
    #[inline(always)]
    pub const fn segment(&self) -> Option<mpcp::Segment> {
        // No TCP port is 0, and with an XCP header the words are XCP's.
        if !matches!(self.kind, Kind::Data) || self.has_xcp() || self.words[3] == 0 {
            return None;
        }
        Some(mpcp::Segment {
            sequence: self.words[0],
            acknowledgment: self.words[1],
            checksum: (self.words[2] >> 16) as u16,
            identification: self.words[2] as u16,
            ports: self.words[3],
            control: self.words[4],
            source: self.words[5],
            destination: self.words[6],
            length: self.size,
            rest: 0,
        })
    }

    /// Puts the IP and TCP headers on a data packet.
    #[inline]
    pub const fn set_segment(&mut self, segment: &mpcp::Segment) {
        self.words = [
            segment.sequence,
            segment.acknowledgment,
            (segment.checksum as u32) << 16 | segment.identification as u32,
            segment.ports,
            segment.control,
            segment.source,
            segment.destination,
            0,
        ];
    }

    /// Returns the IP identification: tells transmissions apart and names the same one on every link; what never is
    /// fragmented may have any (RFC 6864 §4.1). Fibonacci hashing, for no better reason than that it spreads.
    /// Packets that show their headers may say another one.
    #[inline]
    pub const fn identification(&self) -> u16 {
        let name = self.stamp_ns ^ (self.seq as u64) << 32;
        (name.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16
    }

    /// Returns the echo of a data packet's code, of an ACK.
    #[inline]
    pub const fn echoed(&self) -> mpcp::Echoed {
        mpcp::Echoed(self.words[1])
    }

    /// Returns the advertised window of an ACK in segments; [`UNLIMITED`] is unlimited.
    #[inline]
    pub const fn window(&self) -> u32 {
        self.words[0] & UNLIMITED
    }

    /// Puts an advertised window, segments, on an ACK; a wider one than can be told is told as the widest.
    #[inline]
    pub fn set_window(&mut self, segments: Option<u32>) {
        let segments = segments.map_or(UNLIMITED, |segments| segments.min(UNLIMITED - 1));
        self.words[0] = self.words[0] & !UNLIMITED | segments;
    }

    /// Returns the feedback that an ACK brings to the sender, B/s (draft-03 Reverse_Feedback).
    #[inline]
    pub const fn reverse(&self) -> i32 {
        self.words[1] as i32
    }

    /// Returns a SACK range of an ACK, the most recent at 0; an empty range (`start == end`) ends the list.
    #[inline]
    pub const fn sack(&self, block: usize) -> (u32, u32) {
        (self.words[2 + 2 * block], self.words[3 + 2 * block])
    }

    /// Puts a SACK range on an ACK.
    #[inline]
    pub const fn set_sack(&mut self, block: usize, start: u32, end: u32) {
        self.words[2 + 2 * block] = start;
        self.words[3 + 2 * block] = end;
    }
}

impl law::Packet for Packet {
    #[inline(always)]
    fn size(&self) -> Bytes {
        Bytes(u64::from(self.size))
    }

    #[inline(always)]
    fn xcp(&self) -> Option<xcp::Header> {
        self.has_xcp().then(|| Self::xcp(self))
    }

    #[inline(always)]
    fn set_xcp(&mut self, header: xcp::Header) {
        Self::set_xcp(self, header);
    }

    #[inline(always)]
    fn ecn(&self) -> u8 {
        self.flags & flag::ECN_MASK
    }

    #[inline(always)]
    fn set_ecn(&mut self, code: u8) {
        self.flags = self.flags & !flag::ECN_MASK | code & flag::ECN_MASK;
    }

    #[inline(always)]
    fn segment(&self) -> Option<mpcp::Segment> {
        Self::segment(self)
    }
}

const _: () = assert!(size_of::<Packet>() == 64, "one cache line");
