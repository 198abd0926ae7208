//! Echo of a kernel's receiver: the codes of all data packets, counted since the connection began.
//!
//! A simulated ACK returns the code of the packets that it acknowledges. A kernel merges and loses ACKs, and TCP decides
//! which of them carry an option; counts that only grow are made good by the next ACK, as XCP's cumulative echo is.

use super::echo::Echoed;
use super::level::{HIGH, LOW, OVERLOAD};

/// Receiver's counts: a byte for each code, 01 lowest, 00 highest, modulo 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// The counts, as ACKs carry them.
    pub word: u32,
}

impl Counts {
    /// Counts so many packets that came with the ECN field `code`; 00 says that the path clears codes.
    #[inline]
    pub const fn on_data(&mut self, code: u8, packets: u32) {
        let shift = 8 * ((code as u32).wrapping_sub(1) & 3);
        let count = (self.word >> shift).wrapping_add(packets) & 0xff;
        self.word = self.word & !(0xff << shift) | count << shift;
    }
}

/// Sender's memory of [`Counts`]: the counts that were heard last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CountsReader {
    /// The counts of the last ACK.
    pub heard: u32,
}

impl CountsReader {
    /// Returns the highest code among the packets that these counts have and the ones before had not, as an echo of the
    /// law's own receiver, 00 if all of them came with 00; [`Echoed::NONE`]: there are none, or the ACK was overtaken by
    /// one that counted more.
    #[inline]
    pub const fn on_ack(&mut self, word: u32) -> Echoed {
        let (low, high, over) = (self.news(word, 0), self.news(word, 8), self.news(word, 16));
        let cleared = self.news(word, 24);
        if low | high | over | cleared > 127 {
            return Echoed::NONE; // fewer than before
        }
        self.heard = word;
        if over > 0 {
            Echoed::new(OVERLOAD, Some(0))
        } else if high > 0 {
            Echoed::new(HIGH, Some(0))
        } else if low > 0 {
            Echoed::new(LOW, Some(0))
        } else if cleared > 0 {
            Echoed::new(0, Some(0))
        } else {
            Echoed::NONE
        }
    }

    /// By how much the byte at that place has grown, modulo 256.
    #[inline]
    const fn news(&self, word: u32, shift: u32) -> u32 {
        (word >> shift).wrapping_sub(self.heard >> shift) & 0xff
    }
}
