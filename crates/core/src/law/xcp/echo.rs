//! What a receiver sends back (draft-03 §4.1.2).

use super::Header;

/// Receiver state: the feedback that no ACK has carried yet.
///
/// A sum, not K02's copy of the last header: with delayed ACKs a copy loses every second value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Echo {
    sum: i64,
}

impl Echo {
    /// A data packet with a standard header arrived: in order or not, the first time or again.
    /// Each of them was given its share by the links, so each counts.
    #[inline]
    pub fn on_data(&mut self, header: &Header) {
        self.sum = self.sum.saturating_add(header.delta as i64);
    }

    /// Reverse_Feedback of the ACK about to leave, B/s. What a field cannot hold stays for the next.
    #[inline]
    pub fn on_ack(&mut self) -> i32 {
        let feedback = self.sum.clamp(i32::MIN as i64, i32::MAX as i64);
        self.sum -= feedback;
        feedback as i32
    }
}
