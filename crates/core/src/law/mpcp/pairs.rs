//! Echo of a kernel's receiver of chains of two packets: the last complete chain, and counts of the chains that began.
//!
//! A simulated receiver acknowledges each packet, with its code and its place. A kernel merges and loses ACKs; so here the
//! receiver puts the digits of a chain together, and an ACK tells the newest level whole. First packets are counted by their
//! codes, as VCP's are: a sender that has given up chains hears zones, and one whose second packets do not arrive notices.

use super::counts::Counts;
use super::echo::Echoed;
use super::sender::{Sender, SenderConfig};
use crate::law::{Ack, SenderLaw as _};
use crate::units::Time;

/// Bits of the highest byte: the number of complete chains modulo 8, and that a first packet waits for its second.
const NUMBER: u32 = 7 << 24;
const WAITS: u32 = 1 << 27;
const SECOND: u32 = 28;
const FIRST: u32 = 30;
/// So many chains make the number ambiguous.
const AROUND: u32 = 8;
/// First packets alone of which a sender is told at once; its patience is no longer.
const TOLD_MAX: u32 = 3;

/// Receiver's memory of chains of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pairs {
    /// Echo that ACKs carry: three counts of first packets as in [`Counts`], and in the highest byte, from the top, both digits
    /// of the last complete chain, whether a first packet waits, and the number of the chain.
    pub word: u32,
    /// Code of the first packet that waits; 0: none does.
    waiting: u32,
}

impl Pairs {
    /// Takes in so many packets that came with the ECN field `code` at the place `index` of their chain. Those with 00 and
    /// those of no place, 2 or more, count as nothing.
    #[inline]
    pub const fn on_data(&mut self, code: u8, index: u32, packets: u32) {
        let code = code as u32 & 3;
        if code == 0 {
            return;
        }
        if index == 0 {
            let mut counts = Counts { word: self.word };
            counts.on_data(code as u8, packets);
            self.word = (self.word & !0xff_ffff) | (counts.word & 0xff_ffff) | WAITS;
            self.waiting = code;
        } else if index == 1 && self.waiting > 0 {
            let number = self.word.wrapping_add(1 << 24) & NUMBER;
            self.word = (self.word & 0xff_ffff) | number | code << SECOND | self.waiting << FIRST;
            self.waiting = 0;
        }
    }
}

/// Chains of which an ACK tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// First digit of a chain that is complete since; 0: it was told before, or none is.
    pub first: u8,
    /// Second digit of the chain; 0: none is complete since.
    pub second: u8,
    /// Highest code of first packets that are new and of no such chain; 0: there are none.
    pub alone: u8,
    /// Number of them, 3 at most.
    pub count: u8,
}

impl Heard {
    /// Returns it as one word; 0: nothing was told.
    #[inline]
    pub const fn to_word(self) -> u32 {
        self.first as u32 | (self.second as u32) << 8 | (self.alone as u32) << 16 | (self.count as u32) << 24
    }

    /// Returns what such a word says.
    #[inline]
    pub const fn from_word(word: u32) -> Self {
        let [first, second, alone, count] = word.to_le_bytes();
        Self { first, second, alone, count }
    }
}

/// Sender's memory of [`Pairs`]: the word that was heard last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PairsReader {
    /// The word of the last ACK.
    pub heard: u32,
}

impl PairsReader {
    /// Returns what this word says and the one before did not; nothing, if the ACK was overtaken by one that said more.
    #[inline]
    pub const fn on_ack(&mut self, word: u32) -> Heard {
        const NOTHING: Heard = Heard { first: 0, second: 0, alone: 0, count: 0 };
        let (low, high, over) = (self.news(word, 0), self.news(word, 8), self.news(word, 16));
        if low | high | over > 127 {
            return NOTHING;
        }
        let began = low + high + over;
        let chains = (word & NUMBER).wrapping_sub(self.heard & NUMBER) >> 24 & 7;
        let waited = self.heard & WAITS != 0;
        if began == 0 && !(waited && chains == 1) {
            return NOTHING; // the same, or older
        }
        let waits = word & WAITS != 0;
        self.heard = word;
        let is_complete = chains > 0 || began >= AROUND;
        let highest = if over > 0 {
            3
        } else if high > 0 {
            2
        } else {
            1
        };
        let mut heard = NOTHING;
        if is_complete {
            heard.second = (word >> SECOND & 3) as u8;
            // One that waited was told when it came, and none has come since but the one that waits now.
            let is_told = waited && began == waits as u32;
            heard.first = if is_told { 0 } else { (word >> FIRST & 3) as u8 };
        }
        let alone = if is_complete { (waits && began > 0) as u32 } else { began };
        if alone > 0 {
            heard.alone = highest;
            heard.count = if alone > TOLD_MAX { TOLD_MAX as u8 } else { alone as u8 };
        }
        heard
    }

    /// By how much the byte at that place has grown, modulo 256.
    #[inline]
    const fn news(&self, word: u32, shift: u32) -> u32 {
        (word >> shift).wrapping_sub(self.heard >> shift) & 0xff
    }
}

impl Heard {
    /// Returns the complete chain alone.
    #[inline]
    pub const fn chain(self) -> Self {
        Self { alone: 0, count: 0, ..self }
    }

    /// Returns the first packets alone.
    #[inline]
    pub const fn behind(self) -> Self {
        Self { first: 0, second: 0, ..self }
    }
}

impl Sender {
    /// Processes an ACK that tells of chains: of the complete one first, then of the one that has begun behind it, to which
    /// the last packet is counted. `ack.reply` is not looked at.
    #[inline]
    pub fn on_pairs(&mut self, config: &SenderConfig, now: Time, ack: &Ack, heard: Heard) {
        if heard.second == 0 || heard.count == 0 {
            return self.on_part(config, now, ack, heard);
        }
        let behind = ack.acked.min(self.segment());
        self.on_part(config, now, &Ack { acked: ack.acked - behind, ..*ack }, heard.chain());
        self.on_part(config, now, &Ack { acked: behind, ..*ack }, heard.behind());
    }

    /// Processes an ACK, or a part of one, that tells of a complete chain or of first packets, but not of both.
    #[inline(always)] // a BPF function has five arguments
    pub fn on_part(&mut self, config: &SenderConfig, now: Time, ack: &Ack, heard: Heard) {
        let echoed = if heard.second > 0 {
            if heard.first > 0 {
                self.take_first(config, now, ack, heard.first);
            }
            Echoed::new(heard.second, Some(1))
        } else if heard.count > 0 {
            self.note_firsts(now, heard.count as u32 - 1);
            Echoed::new(heard.alone, Some(0))
        } else {
            Echoed::NONE
        };
        self.on_ack(config, now, &Ack { reply: echoed.into(), ..*ack });
    }
}
