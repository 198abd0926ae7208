//! The IP and TCP headers of a packet, for laws that look into them.

use super::{Header, Packet, Tag, Words};

/// Fields of an IPv4 packet with TCP that order, flow and checksum depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Both ports, the source's in the high half.
    pub ports: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Data offset, flags and window: the fourth word of the TCP header.
    pub control: u32,
    /// TCP checksum.
    pub checksum: u16,
    /// IP identification.
    pub identification: u16,
    /// IP total length.
    pub length: u16,
    /// Sum of all else that the checksum covers, modulo 65535: urgent pointer, options, payload.
    pub rest: u16,
}

/// Bounds within which the two numbers of an arriving segment must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// RCV.NXT, the sequence number expected next.
    pub next: u32,
    /// The most by which a sequence number may differ from `next`.
    pub window: u32,
    /// The oldest acknowledgment number that can still come (SND.UNA less a window, at least the first).
    pub oldest: u32,
    /// SND.NXT, the newest acknowledgment number that can come.
    pub newest: u32,
}

impl Segment {
    /// Returns the headers of a packet that shows them.
    #[inline(always)]
    pub fn of(packet: &impl Packet) -> Option<Self> {
        packet.header().map(|segment| Self { length: packet.size().0 as u16, ..segment })
    }

    /// Returns by how much the checksum's sum is short of the right one, modulo 65535: 0 for a packet as it was sent.
    /// 0x0000 and 0xffff are one value.
    #[inline(always)]
    pub const fn deficit(&self) -> u16 {
        let tcp = (self.length as u64).saturating_sub(20);
        // 2^16 = 1 modulo 65535, so words of any length may be added.
        let sum = self.source as u64
            + self.destination as u64
            + 6
            + tcp
            + self.ports as u64
            + self.sequence as u64
            + self.acknowledgment as u64
            + self.control as u64
            + self.checksum as u64
            + self.rest as u64;
        let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = ((sum & 0xffff) + (sum >> 16)) as u16;
        if sum == 0xffff || sum == 0 { 0 } else { 0xffff - sum }
    }

    /// Sets the checksum that the fields need.
    #[inline(always)]
    pub const fn seal(&mut self) {
        self.checksum = 0;
        self.checksum = self.deficit();
    }

    /// Returns true for a pure acknowledgment: nothing is behind its headers.
    #[inline(always)]
    pub const fn is_pure_ack(&self) -> bool {
        self.length as u32 <= 20 + (self.control >> 28) * 4
    }
}

impl Expected {
    /// Returns true if a segment can have these numbers.
    #[inline]
    pub const fn fits(&self, sequence: u32, acknowledgment: u32) -> bool {
        let distance = sequence.wrapping_sub(self.next) as i32;
        distance.unsigned_abs() <= self.window
            && acknowledgment.wrapping_sub(self.oldest) <= self.newest.wrapping_sub(self.oldest)
    }
}

/// The packet has no TCP options and a payload of zeros; its length is told by its size ([`Segment::of`]).
impl Header for Segment {
    const TAG: Tag = Tag::image("ip-tcp");

    #[inline(always)]
    fn read(words: &Words) -> Self {
        Self {
            sequence: words[0],
            acknowledgment: words[1],
            checksum: (words[2] >> 16) as u16,
            identification: words[2] as u16,
            ports: words[3],
            control: words[4],
            source: words[5],
            destination: words[6],
            length: 0,
            rest: 0,
        }
    }

    #[inline(always)]
    fn write(self, words: &mut Words) {
        *words = [
            self.sequence,
            self.acknowledgment,
            (self.checksum as u32) << 16 | self.identification as u32,
            self.ports,
            self.control,
            self.source,
            self.destination,
        ];
    }
}
