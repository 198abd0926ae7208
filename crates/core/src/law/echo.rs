//! What receivers send back, whichever the law.

use super::{mpcp, xcp, xcp_r};
use crate::units::Bytes;

/// The congestion headers of a data packet, as its receiver finds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// XCP's.
    pub header: xcp::Header,
    /// XCP-r's.
    pub window: xcp_r::Header,
    /// Size of a full packet.
    pub mss: Bytes,
    /// What the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
}

/// What an ACK returns to the sender's law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Reverse_Feedback, B/s.
    Feedback(i32),
    /// The window.
    Window(xcp_r::Reply),
    /// The code of a data packet, and its place in its chain.
    Code(mpcp::Echoed),
}

/// State of the receiver's part of a law for one flow: [`SenderLaw::echo`](super::SenderLaw::echo).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// XCP's: the sum of what no ACK has carried yet.
    Feedback(xcp::Echo),
    /// XCP-r's: the window.
    Window(xcp_r::Echo),
    /// MPCP's: the code of each data packet.
    Chain(mpcp::Echo),
}

impl Echo {
    /// What the ACK about to leave says.
    #[inline]
    pub fn on_ack(&mut self) -> Reply {
        match self {
            Self::Feedback(echo) => Reply::Feedback(echo.on_ack()),
            Self::Window(echo) => Reply::Window(echo.on_ack()),
            Self::Chain(echo) => Reply::Code(echo.on_ack()),
        }
    }
}
