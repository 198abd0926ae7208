//! Echo of a kernel's receiver of chains of two packets and more: the last complete chain, and counts of the chains that began.
//!
//! A simulated receiver acknowledges each packet, with its code and its place. A kernel merges and loses ACKs; so here the
//! receiver puts the digits of a chain together, and an ACK tells the newest level whole. First packets are counted by their
//! codes, as VCP's are: a sender that has given up chains hears zones, and one whose other packets do not arrive notices. Digits
//! between the first and the last are told with the last: an ACK has four bytes for all of it.
//!
//! ```text
//! bit  31            32-2n  31-2n  30-2n      28-2n            0
//!      | digits of the last | waits | number of | counts of first  |
//!      | complete chain     |       | the chain | packets by code  |
//! ```

use super::echo::Echoed;
use super::level::{DIGITS_MAX, HIGH, LOW, OVERLOAD};
use super::sender::Sender;
use super::settings::SenderConfig;
use crate::law::{Ack, SenderLaw as _};
use crate::units::{Bytes, Time};

/// So many chains make the number ambiguous.
const AROUND: u32 = 8;
/// First packets alone of which a sender is told at once; its patience is no longer.
const TOLD_MAX: u32 = 3;

/// The length of chains that there are.
#[inline(always)]
const fn within(n: u32) -> u32 {
    if n == 0 {
        1
    } else if n > DIGITS_MAX {
        DIGITS_MAX
    } else {
        n
    }
}

/// Places of the parts of an echo, for chains of so many packets.
#[derive(Clone, Copy)]
struct Parts {
    /// Lowest bit of the digits.
    digits: u32,
    /// The bit that says that a chain has begun since the last complete one.
    waits: u32,
    /// Lowest bit of the number of the complete chain, modulo 8.
    number: u32,
    /// Bits of each of the three counts.
    count: u32,
}

impl Parts {
    #[inline(always)]
    const fn of(n: u32) -> Self {
        let n = within(n);
        Self { digits: 32 - 2 * n, waits: 1 << (31 - 2 * n), number: 28 - 2 * n, count: (28 - 2 * n) / 3 }
    }

    /// The largest value of a count.
    #[inline(always)]
    const fn most(self) -> u32 {
        (1 << self.count) - 1
    }

    #[inline(always)]
    const fn counts(self) -> u32 {
        (1 << self.number) - 1
    }

    /// The number of the chain behind that of the word, at its place.
    #[inline(always)]
    const fn next(self, word: u32) -> u32 {
        word.wrapping_add(1 << self.number) & (AROUND - 1) << self.number
    }

    /// True if the last data packet came with 00: a complete chain without digits.
    #[inline(always)]
    const fn is_cleared(self, word: u32) -> bool {
        word >> self.digits == 0 && word >> self.number & (AROUND - 1) != 0
    }
}

/// Receiver's memory of chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Chains {
    /// Echo that ACKs carry: from the top the digits of the last complete chain, two bits each, the first one lowest; whether one
    /// has begun since; the number of the chain modulo 8; three counts of first packets, of 01 lowest.
    pub word: u32,
    /// Digits of the chain that is arriving, as in the word; 0: none is.
    waiting: u32,
}

impl Chains {
    /// Takes in so many packets that came with the ECN field `code` at the place `index` of their chain of `n`. Those of no place,
    /// `n` or more, count as nothing. One with 00 stands for a complete chain without digits: the path clears codes.
    #[inline]
    pub const fn on_data(&mut self, n: u32, code: u8, index: u32, packets: u32) {
        let (n, parts, code) = (within(n), Parts::of(n), code as u32 & 3);
        if code == 0 {
            self.waiting = 0;
            if !parts.is_cleared(self.word) {
                let number = parts.next(self.word);
                // 0 without digits is the word before any chain.
                let number = if number == 0 { 1 << parts.number } else { number };
                self.word = number | self.word & parts.counts();
            }
            return;
        }
        if index >= n {
            return;
        }
        if index == 0 {
            let shift = parts.count * (code - 1);
            let count = (self.word >> shift).wrapping_add(packets) & parts.most();
            self.word = self.word & !(parts.most() << shift) | count << shift | parts.waits;
            self.waiting = code;
            return;
        }
        let shift = 2 * index;
        if self.waiting >> shift != 0 || self.waiting >> (shift - 2) == 0 {
            self.waiting = 0; // a gap, or what came before
            return;
        }
        self.waiting |= code << shift;
        if index + 1 == n {
            self.word = self.waiting << parts.digits | parts.next(self.word) | self.word & parts.counts();
            self.waiting = 0;
        }
    }
}

/// Chains of which an ACK tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Digits of a chain that is complete since, two bits each, the first one lowest, which is 0 where it was told before; 0: none
    /// is.
    pub digits: u16,
    /// Highest code of first packets that are new and of no such chain; 0: there are none.
    pub alone: u8,
    /// Number of them, 3 at most.
    pub count: u8,
    /// True if all packets that are new came with 00: the path clears codes.
    pub is_cleared: bool,
}

impl Heard {
    /// Returns it as one word; 0: nothing was told.
    #[inline]
    pub const fn to_word(self) -> u32 {
        self.digits as u32
            | (self.alone as u32) << 16
            | (self.count as u32) << 24
            | (self.is_cleared as u32) << 31
    }

    /// Returns digit `index` of the complete chain; 0: it was told before, or no chain is complete.
    #[inline]
    pub const fn digit(self, index: u8) -> u8 {
        (self.digits >> (2 * (index & (DIGITS_MAX as u8 - 1))) & 3) as u8
    }
}

/// Sender's memory of [`Chains`]: the word that was heard last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ChainsReader {
    /// The word of the last ACK.
    pub heard: u32,
}

impl ChainsReader {
    /// Returns what this word of chains of `n` says and the one before did not; nothing, if the ACK was overtaken by one that
    /// said more.
    #[inline]
    pub const fn on_ack(&mut self, n: u32, word: u32) -> Heard {
        const NOTHING: Heard = Heard { digits: 0, alone: 0, count: 0, is_cleared: false };
        let parts = Parts::of(n);
        let low = self.news(parts, word, LOW);
        let high = self.news(parts, word, HIGH);
        let over = self.news(parts, word, OVERLOAD);
        if low | high | over > parts.most() / 2 {
            return NOTHING;
        }
        let began = low + high + over;
        let chains = (word >> parts.number).wrapping_sub(self.heard >> parts.number) & (AROUND - 1);
        let waited = self.heard & parts.waits != 0;
        if began == 0 && chains != 0 && chains < AROUND / 2 && parts.is_cleared(word) {
            self.heard = word;
            return Heard { is_cleared: true, ..NOTHING };
        }
        if began == 0 && !(waited && chains == 1) {
            return NOTHING; // the same, or older
        }
        let waits = word & parts.waits != 0;
        self.heard = word;
        let is_complete = (chains > 0 || began >= AROUND) && word >> parts.digits != 0;
        let highest = if over > 0 {
            OVERLOAD
        } else if high > 0 {
            HIGH
        } else {
            LOW
        };
        let mut heard = NOTHING;
        if is_complete {
            // One that waited was told when it came, and none has come since but the one that waits now.
            let is_told = waited && began == waits as u32;
            heard.digits = (word >> parts.digits) as u16;
            if is_told {
                heard.digits &= !3;
            }
        }
        let alone = if is_complete { (waits && began > 0) as u32 } else { began };
        if alone > 0 {
            heard.alone = highest;
            heard.count = if alone > TOLD_MAX { TOLD_MAX as u8 } else { alone as u8 };
        }
        heard
    }

    /// By how much the count of that code has grown, as far as it counts.
    #[inline(always)]
    const fn news(&self, parts: Parts, word: u32, code: u8) -> u32 {
        let shift = parts.count * (code as u32 - 1);
        (word >> shift).wrapping_sub(self.heard >> shift) & parts.most()
    }
}

impl Sender {
    /// Processes an ACK that tells of chains: of the complete one first, digit by digit, then of the one that has begun behind it,
    /// to which the last packet is counted. `ack.reply` is not looked at.
    #[inline]
    pub fn on_chains(&mut self, config: &SenderConfig, now: Time, ack: &Ack, heard: Heard) {
        if heard.is_cleared {
            return self.on_part(config, now, ack, Echoed::new(0, Some(0)), 0);
        }
        let is_complete = heard.digits > 0;
        let behind = match (is_complete, heard.count) {
            (false, _) => ack.acked,
            (true, 0) => Bytes(0),
            (true, _) => ack.acked.min(self.segment()),
        };
        for index in 0..config.digits() {
            let code = heard.digit(index);
            if code > 0 {
                let is_last = index + 1 == config.digits();
                let acked = if is_last { ack.acked - behind } else { Bytes(0) };
                self.on_part(config, now, &Ack { acked, ..*ack }, Echoed::new(code, Some(index)), 0);
            }
        }
        if heard.count > 0 {
            let echoed = Echoed::new(heard.alone, Some(0));
            let before = heard.count as u32 - 1;
            self.on_part(config, now, &Ack { acked: behind, ..*ack }, echoed, before);
        } else if !is_complete {
            self.on_part(config, now, ack, Echoed::NONE, 0);
        }
    }

    /// Processes a part of an ACK: one digit, and first packets alone before it, so many.
    #[inline(always)] // a BPF function has five arguments
    pub fn on_part(&mut self, config: &SenderConfig, now: Time, ack: &Ack, echoed: Echoed, before: u32) {
        self.note_firsts(config, now, before);
        self.on_ack(config, now, &Ack { reply: echoed.into(), ..*ack });
    }
}
