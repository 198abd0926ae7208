//! The receiver's part of the laws: the feedback that ACKs return.

use super::{mpcp, xcp, xcp_r};
use crate::units::Bytes;

/// The congestion headers of a data packet, as its receiver finds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// XCP's congestion header.
    pub header: xcp::Header,
    /// XCP-r's header, beside XCP's.
    pub window: xcp_r::Header,
    /// Size of the flow's full IP packets.
    pub mss: Bytes,
    /// Window that the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
}

/// Feedback that an ACK returns to the sender's law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// XCP: Reverse_Feedback, B/s, or the bytes that [`xcp::Feedback::Bytes`] asks for.
    Feedback(i32),
    /// XCP-r: the window that the receiver keeps for the sender.
    Window(xcp_r::Reply),
    /// MPCP: the ECN code of a data packet, and the packet's place in its chain.
    Code(mpcp::Echoed),
}

/// State of the receiver's part of a law for one flow: [`SenderLaw::echo`](super::SenderLaw::echo).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// XCP: the sum of the feedback that no ACK has carried yet.
    Feedback(xcp::Echo),
    /// XCP: the change of the window that no ACK has carried yet.
    Bytes(xcp::ByteEcho),
    /// XCP-r: the window that the sender should have.
    Window(xcp_r::Echo),
    /// MPCP: the code of the data packet that the next ACK reports.
    Chain(mpcp::Echo),
}

impl Echo {
    /// Returns the feedback for the ACK about to leave; XCP's and MPCP's is returned once.
    #[inline]
    pub fn on_ack(&mut self) -> Reply {
        match self {
            Self::Feedback(echo) => Reply::Feedback(echo.on_ack()),
            Self::Bytes(echo) => Reply::Feedback(echo.on_ack()),
            Self::Window(echo) => Reply::Window(echo.on_ack()),
            Self::Chain(echo) => Reply::Code(echo.on_ack()),
        }
    }
}
