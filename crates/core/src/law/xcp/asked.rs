//! Requests of a sender that no ACK has answered. A link may lower a request and never raises it (draft-03 §4.2.3), so a receiver
//! that returns more than was asked for lies. The sender then takes nothing of what the ACK brings, and counts it.

/// Sum of the requests, and the lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Asked {
    /// Requests that are not answered, in the unit of the feedback.
    open: u64,
    /// ACKs that claimed more, modulo 2^32.
    lies: u32,
}

impl Asked {
    /// Adds a request; `most` is what a flow asks for in a round trip. More than twice of that is never open: links leave most
    /// requests unanswered, and a receiver could claim them later. Two round trips' may be open after a timeout.
    #[inline(always)]
    pub(in crate::law) fn ask(&mut self, amount: u64, most: u64) {
        self.open = self.open.saturating_add(amount).min(most.saturating_mul(2));
    }

    /// Returns true if an ACK claims more than is open, or than one ACK can truthfully bring.
    #[inline(always)]
    fn is_lie(&self, claim: i64, limit: u64) -> bool {
        claim > 0 && claim as u64 > self.open.min(limit)
    }

    /// Returns the part of a claim that counts: all of it, or nothing.
    #[inline(always)]
    pub(super) fn granted(&self, claim: i64, limit: u64) -> i64 {
        if self.is_lie(claim, limit) { 0 } else { claim }
    }

    /// Takes note of a claim. What an ACK takes back, such as one that another ACK overtook, is open again.
    #[inline(always)]
    pub(super) fn note(&mut self, claim: i64, limit: u64, most: u64) {
        if self.is_lie(claim, limit) {
            self.lies = self.lies.wrapping_add(1);
        } else if claim >= 0 {
            self.open -= claim as u64;
        } else {
            self.ask(claim.unsigned_abs(), most);
        }
    }

    /// Takes a claim that two ends computed, each with a rounding of its own: up to `slack` beyond the requests is cut off, and no
    /// lie. Returns what counts.
    #[inline(always)]
    pub(in crate::law) fn take(&mut self, claim: i64, slack: u64) -> i64 {
        let Ok(amount) = u64::try_from(claim) else { return claim };
        if amount > self.open.saturating_add(slack) {
            self.lies = self.lies.wrapping_add(1);
            return 0;
        }
        let counts = amount.min(self.open);
        self.open -= counts;
        counts as i64
    }

    /// Returns the number of ACKs that claimed more than was asked for, modulo 2^32.
    #[inline(always)]
    pub fn lies(&self) -> u32 {
        self.lies
    }
}
