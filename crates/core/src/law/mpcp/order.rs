//! Places of packets in their chains: read from the bytes of IP and TCP headers, and written into them.
//!
//! - Swap (MP 3.2): the most significant packet has the larger sequence number, the other one the larger
//!   acknowledgment number; where nature has it otherwise, the two change places. A tie is broken by
//!   taking 1 off the one that should be smaller.
//! - Checksum (MP 5): the position is taken off the acknowledgment number of data, off the sequence
//!   number of pure acknowledgments, after the checksum was made; it is by how much the sum is short.
//! - IP-ID (MP 5, UNO): the lowest bit of the IP identification.
//!
//! Both sides, and every router, compare without sign.

use super::super::settings::words;

/// Encoding of a packet's position in its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By the order of sequence and acknowledgment number.
    #[default]
    Swap,
    /// By the difference of the checksum.
    Checksum,
    /// By the lowest bit of the IP identification.
    Ipid,
}

words!(Order { Swap = "swap", Checksum = "checksum", Ipid = "ipid", });

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

impl Order {
    /// Returns true if the encoding can tell places in chains of `n` packets.
    #[inline]
    pub const fn carries(self, n: u32) -> bool {
        match self {
            Self::Swap | Self::Ipid => n <= 2,
            Self::Checksum => true,
        }
    }

    /// Makes a segment with a right checksum packet `index` of its chain. Returns false, and changes nothing, where
    /// the bytes can not say it: the tie 0 = 0, whose 1 less would be more, and a number that the position can not
    /// be taken off without a borrow, which modulo 65535 would count one less.
    #[inline]
    pub const fn write(self, segment: &mut Segment, index: u8) -> bool {
        match self {
            Self::Ipid => {
                segment.identification = segment.identification & !1 | (index & 1) as u16;
                true
            }
            Self::Checksum => {
                let field =
                    if segment.is_pure_ack() { &mut segment.sequence } else { &mut segment.acknowledgment };
                if *field < index as u32 {
                    return false;
                }
                *field -= index as u32;
                true
            }
            Self::Swap => {
                let (sequence, acknowledgment) = (segment.sequence, segment.acknowledgment);
                let is_first = index == 0;
                if sequence == acknowledgment {
                    if sequence == 0 {
                        return false;
                    }
                    if is_first {
                        segment.acknowledgment -= 1;
                    } else {
                        segment.sequence -= 1;
                    }
                } else if (sequence > acknowledgment) != is_first {
                    (segment.sequence, segment.acknowledgment) = (acknowledgment, sequence);
                }
                true
            }
        }
    }

    /// Returns the position of a segment in a chain of `n`, the first being 0; `None`: it says none.
    #[inline(always)]
    pub const fn read(self, segment: &Segment, n: u32) -> Option<u8> {
        match self {
            Self::Swap if segment.sequence > segment.acknowledgment => Some(0),
            Self::Swap if segment.sequence < segment.acknowledgment => Some(1),
            Self::Swap => None,
            Self::Checksum => {
                let short = segment.deficit();
                if (short as u32) < n { Some(short as u8) } else { None }
            }
            Self::Ipid => Some((segment.identification & 1) as u8),
        }
    }

    /// Gives a segment of a chain of `n` its own numbers back, for TCP. Returns false for a broken segment, or one
    /// that can not be expected.
    #[inline]
    pub const fn restore(self, segment: &mut Segment, n: u32, expected: &Expected) -> bool {
        match self {
            Self::Ipid => segment.deficit() == 0 && expected.fits(segment.sequence, segment.acknowledgment),
            Self::Checksum => {
                let Some(index) = self.read(segment, n) else { return false };
                let field =
                    if segment.is_pure_ack() { &mut segment.sequence } else { &mut segment.acknowledgment };
                *field = field.wrapping_add(index as u32);
                expected.fits(segment.sequence, segment.acknowledgment)
            }
            Self::Swap => {
                // Swapping leaves the sum, a broken tie is one short.
                match segment.deficit() {
                    0 => {}
                    1 if segment.sequence.abs_diff(segment.acknowledgment) == 1 => {
                        if segment.sequence < segment.acknowledgment {
                            segment.sequence += 1;
                        } else {
                            segment.acknowledgment += 1;
                        }
                        return expected.fits(segment.sequence, segment.acknowledgment);
                    }
                    _ => return false,
                }
                let (first, second) = (segment.sequence, segment.acknowledgment);
                match (expected.fits(first, second), expected.fits(second, first)) {
                    (true, false) => true,
                    (false, true) => {
                        (segment.sequence, segment.acknowledgment) = (second, first);
                        true
                    }
                    (false, false) => false,
                    // Both: the connection's own order, as it stands.
                    (true, true) => {
                        if (expected.next > expected.newest) != (first > second) {
                            (segment.sequence, segment.acknowledgment) = (second, first);
                        }
                        true
                    }
                }
            }
        }
    }
}

impl Expected {
    #[inline]
    const fn fits(&self, sequence: u32, acknowledgment: u32) -> bool {
        let distance = sequence.wrapping_sub(self.next) as i32;
        distance.unsigned_abs() <= self.window
            && acknowledgment.wrapping_sub(self.oldest) <= self.newest.wrapping_sub(self.oldest)
    }
}
