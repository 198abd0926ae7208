//! What a receiver returns: the code of each data packet and its place in the chain, as it arrived.

/// What an ACK says of a data packet: bits 0 and 1 its ECN field, 2 to 4 its place in the chain, 5 that the
/// place is known, 6 that there is anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Echoed(pub u32);

impl Echoed {
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// `index`: the place; `None`: the packet did not say.
    #[inline(always)]
    pub const fn new(code: u8, index: Option<u8>) -> Self {
        let place = match index {
            Some(index) => (index as u32 & 7) << 2 | 1 << 5,
            None => 0,
        };
        Self(code as u32 & 3 | place | 1 << 6)
    }

    /// The ECN field; `None`: the ACK says nothing.
    #[inline(always)]
    pub const fn code(self) -> Option<u8> {
        if self.0 >> 6 & 1 != 0 { Some((self.0 & 3) as u8) } else { None }
    }

    /// The place in the chain.
    #[inline(always)]
    pub const fn index(self) -> Option<u8> {
        if self.0 >> 5 & 1 != 0 { Some((self.0 >> 2 & 7) as u8) } else { None }
    }
}

/// The receiver's part. It keeps what arrived until an ACK takes it: with VCP and delayed ACKs the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    waiting: Echoed,
}

impl Echo {
    /// A data packet came with this code and place.
    #[inline]
    pub fn on_data(&mut self, came: Echoed) {
        let (Some(code), held) = (came.code(), self.waiting.code()) else { return };
        if held.is_none_or(|held| held <= code) {
            self.waiting = came;
        }
    }

    /// What the ACK about to leave says.
    #[inline]
    pub fn on_ack(&mut self) -> Echoed {
        let waiting = self.waiting;
        self.waiting = Echoed::NONE;
        waiting
    }
}
