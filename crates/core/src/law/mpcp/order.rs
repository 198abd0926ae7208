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

#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::words;
use crate::law::{Expected, Segment};

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

#[cfg(feature = "words")]
impl Order {
    /// Sets the encoding that chains of `n` packets use, unless a scenario writes one.
    pub(super) fn settle(&mut self, n: u32, is_written: &dyn Fn(&str) -> bool) {
        if !is_written("order") {
            *self = Self::of(n);
        }
    }

    /// Tells of an encoding that cannot say the places of `n` packets.
    pub(super) fn check(self, n: u32, tell: &mut dyn FnMut(Finding)) {
        if !self.carries(n) {
            let (word, bytes) = match self {
                Self::Swap => ("swap", "two numbers have two orders"),
                _ => ("ipid", "one bit has two values"),
            };
            let text = alloc::format!("\"{word}\" can not tell the places of {n} packets");
            let help = alloc::format!("{bytes}; allowed for more than 2 packets: \"checksum\"");
            tell(Finding { kind: "mpcp", ..Finding::range("order", text, help) });
        }
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
