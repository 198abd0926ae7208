//! Numbers that nobody should send.

use super::random::Random;
use congestlab_core::law::xcp::Header;

impl Random {
    /// Numbers that a field can hold: the extremes often.
    pub(crate) fn word(&mut self) -> u64 {
        match self.below(10) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX - self.below(5),
            3 => 1 << self.below(64),
            _ => self.next() >> self.below(64),
        }
    }

    /// As [`Random::word`], of 32 bits.
    pub(crate) fn half(&mut self) -> u32 {
        (self.word() >> (32 * self.below(2))) as u32
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(crate) fn header(&mut self) -> Header {
        Header { x: self.half(), rtt: self.half(), delta: self.half() as i32, reverse: self.half() as i32 }
    }
}
