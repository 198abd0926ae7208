//! The packet as the elements pass it on: 64 bytes, by value.
//!
//! One layout for every protocol, so that a queue is a plain ring and an engine can move packets
//! without looking inside. Sequence numbers count segments, modulo 2^32; the size of segment `n`
//! of a flow is known to its sender and receiver.

use congestlab_core::law::{self, Header, Reply, Tag, Words};
use congestlab_core::units::{Bytes, Time};

/// Time inside the engine and the links: picoseconds since the run began, exact for the
/// serialisation of a byte at 1, 10, 40 and 100 Gbit/s. Laws and hosts see nanoseconds.
pub type Picos = u64;

/// Picoseconds in a nanosecond.
pub const PS_PER_NS: u64 = 1_000;

/// Picoseconds in a second. A rate in bit/s times picoseconds gives *work* in units of 10^-12 bit.
pub const PS_PER_S: u64 = 1_000_000_000_000;

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
    /// ECN field of the IP header, two low bits: 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168 §5); a
    /// law may read them otherwise.
    pub const ECN_MASK: u8 = 0b11;
    /// ECN-capable transport, codepoint ECT(0).
    pub const ECT0: u8 = 0b10;
    /// Congestion experienced.
    pub const CE: u8 = 0b11;
    /// TCP header flag: congestion experienced, echoed by the receiver (RFC 3168 §6.1).
    pub const ECE: u8 = 1 << 2;
    /// TCP header flag: congestion window reduced.
    pub const CWR: u8 = 1 << 3;
    /// A congestion header of its own rides along, beside those of IP and TCP.
    pub const HEADER: u8 = 1 << 4;
    /// Retransmission: the segment was sent before (for statistics only; no element may act on it).
    pub const RETRANSMIT: u8 = 1 << 5;
    /// Low priority: the first to go in a priority-drop queue. Data with it is a law's probe, and
    /// an ACK the answer to one.
    pub const LOW_PRIORITY: u8 = 1 << 6;
    /// The packet shows its IP TTL, in the lowest byte of `words[5]`: every router decrements it.
    pub const TTL: u8 = 1 << 7;
}

/// Ranges of segments `[start, end)` that a selective acknowledgment can carry beside timestamps
/// (RFC 2018 §3).
pub const SACK_BLOCKS: usize = 3;

/// An advertised window without limit. Below it, as many segments as a window can have.
pub const UNLIMITED: u32 = (1 << 24) - 1;

/// The word of a data packet that says whose headers it carries.
const TAG: usize = 7;

/// Bits of a time in the stamp of a connection's packet: 78 hours in nanoseconds, longer than any packet is under way.
pub const STAMP_BITS: u32 = 48;

/// Returns the stamp of a packet of a connection: a time, and the number of the transmission among all of its sender.
#[inline(always)]
pub const fn stamp(time: Time, number: u16) -> u64 {
    time.0 & ((1 << STAMP_BITS) - 1) | (number as u64) << STAMP_BITS
}

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Packet {
    /// Time at which the packet reaches the element that it is on the way to, or began to wait there, ps.
    pub at: Picos,
    /// Data, SYN, probe: time at which it was sent, ns (RFC 7323 TSval). ACK: the TSval that it echoes. Packets of
    /// connections have the low [`STAMP_BITS`] bits of that time ([`Packet::sent_at`]) and the number of their
    /// transmission above ([`stamp`]); all others have the whole time.
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
    /// Fields that depend on the kind.
    ///
    /// Data and SYN: seven words for headers of laws, as each law lays out its own, and the tag that says whose they
    /// are ([`law::Tag`]).
    /// ACK and SYN-ACK: advertised window in segments (low 24 bits) and the byte of the [`Reply`] (high 8); the word of
    /// the reply; three SACK ranges.
    pub words: [u32; 8],
}

impl Packet {
    /// Returns true for pure acknowledgments: the only packets that `ack_loss` may take (docs/design/contract.md 2).
    #[inline]
    pub const fn is_pure_ack(&self) -> bool {
        matches!(self.kind, Kind::Ack)
    }

    /// Returns true if the packet carries that header.
    #[inline(always)]
    pub const fn has(&self, tag: Tag) -> bool {
        let is_there =
            if tag.is_added { self.flags & flag::HEADER != 0 } else { matches!(self.kind, Kind::Data) };
        is_there && self.words[TAG] & tag.mask == tag.name
    }

    /// Returns the header, if the packet carries it.
    #[inline(always)]
    pub fn header<H: Header>(&self) -> Option<H> {
        law::Packet::header(self)
    }

    /// Puts a header on the packet.
    #[inline(always)]
    pub fn set_header<H: Header>(&mut self, header: H) {
        law::Packet::add_header(self, header);
    }

    /// Decrements the IP TTL of a packet that shows it, as every router does with a packet that it forwards; stays at 0.
    #[inline]
    pub const fn decrement_ttl(&mut self) {
        self.words[5] -= (self.shows_ttl() && self.words[5] & 0xff != 0) as u32;
    }

    /// Returns true if the packet shows its IP TTL.
    #[inline]
    pub const fn shows_ttl(&self) -> bool {
        self.flags & flag::TTL != 0
    }

    /// Returns the reply that an ACK brings to the sender's law.
    #[inline]
    pub const fn reply(&self) -> Reply {
        Reply { word: self.words[1], byte: (self.words[0] >> 24) as u8 }
    }

    /// Puts the reply on an ACK.
    #[inline]
    pub const fn set_reply(&mut self, reply: Reply) {
        self.words[0] = self.words[0] & UNLIMITED | (reply.byte as u32) << 24;
        self.words[1] = reply.word;
    }

    /// Returns the time in the stamp of a connection's packet: the latest that is not after `now`, where there is one.
    #[inline(always)]
    pub const fn sent_at(&self, now: Time) -> Time {
        let past = now.0 >> STAMP_BITS << STAMP_BITS;
        let time = past | self.stamp_ns & ((1 << STAMP_BITS) - 1);
        Time(if time > now.0 && past > 0 { time - (1 << STAMP_BITS) } else { time })
    }

    /// Returns the IP identification, which names one transmission on every link: the number of the transmission, so that
    /// the next 65,535 packets of the same sender have others, repeated ones included. Atomic datagrams may have
    /// any (RFC 6864 §4.1). The number's highest bit comes last, because laws of the order `ipid` write that bit.
    #[inline]
    pub const fn identification(&self) -> u16 {
        match self.kind {
            // A source sends each number once.
            Kind::Datagram => self.seq as u16,
            // Each message has a time of its own. Fibonacci hashing spreads times.
            Kind::Control | Kind::Probe => {
                let name = self.stamp_ns ^ (self.seq as u64) << 32;
                (name.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16
            }
            _ => ((self.stamp_ns >> STAMP_BITS) as u16).rotate_left(1),
        }
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
    fn ecn(&self) -> u8 {
        self.flags & flag::ECN_MASK
    }

    #[inline(always)]
    fn set_ecn(&mut self, code: u8) {
        self.flags = self.flags & !flag::ECN_MASK | code & flag::ECN_MASK;
    }

    #[inline(always)]
    fn words(&self, tag: Tag) -> Option<&Words> {
        if self.has(tag) { self.words.first_chunk() } else { None }
    }

    #[inline(always)]
    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        if self.has(tag) { self.words.first_chunk_mut() } else { None }
    }

    #[inline(always)]
    fn add(&mut self, tag: Tag) -> Option<&mut Words> {
        if tag.is_added {
            self.flags |= flag::HEADER;
        }
        if tag.mask == Tag::ON_PATH {
            self.flags |= flag::TTL;
        }
        self.words[TAG] = self.words[TAG] & !tag.mask | tag.name;
        self.words.first_chunk_mut()
    }

    /// Nothing: a router that remembers flows is another one (`flows`).
    #[inline(always)]
    fn memory(&mut self, _flow: [u32; 3], _now: Time, _is_new: bool) -> Option<&mut [u32]> {
        None
    }
}

const _: () = assert!(size_of::<Packet>() == 64, "one cache line");
