//! Receiver of MPCP: returns the code of each data packet and its place in the chain, as it arrived.

/// Echo of a data packet in an ACK: bits 0 and 1 its ECN field, 2 to 4 its place in the chain, 5 that the
/// place is known, 6 that there is an echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Echoed(pub u32);

impl Echoed {
    /// The echo of an ACK that returns nothing.
    pub const NONE: Self = Self(0);

    /// Creates the echo of a packet with the ECN field `code` and the place `index`; `None`: it told no place.
    #[inline(always)]
    pub const fn new(code: u8, index: Option<u8>) -> Self {
        let place = match index {
            Some(index) => (index as u32 & 7) << 2 | 1 << 5,
            None => 0,
        };
        Self(code as u32 & 3 | place | 1 << 6)
    }

    /// Returns the ECN field; `None`: there is no echo.
    #[inline(always)]
    pub const fn code(self) -> Option<u8> {
        if self.0 >> 6 & 1 != 0 { Some((self.0 & 3) as u8) } else { None }
    }

    /// Returns the place in the chain; `None`: it is unknown.
    #[inline(always)]
    pub const fn index(self) -> Option<u8> {
        if self.0 >> 5 & 1 != 0 { Some((self.0 >> 2 & 7) as u8) } else { None }
    }
}

/// State of the receiver: the echo for the next ACK; of several packets (delayed ACKs) that of the highest code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    waiting: Echoed,
}

impl Echo {
    /// Takes the code and the place of a data packet that arrived.
    #[inline]
    pub fn on_data(&mut self, came: Echoed) {
        let (Some(code), held) = (came.code(), self.waiting.code()) else { return };
        if held.is_none_or(|held| held <= code) {
            self.waiting = came;
        }
    }

    /// Returns the echo for the ACK about to leave, and forgets it.
    #[inline]
    pub fn on_ack(&mut self) -> Echoed {
        let waiting = self.waiting;
        self.waiting = Echoed::NONE;
        waiting
    }
}
