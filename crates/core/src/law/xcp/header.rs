//! XCP's congestion header, and the feedback that ACKs bring back.

use crate::law::{self, Reply, Tag, Words};

/// Binary places of the window in bytes. The header's times have as many, so feedback (B/s) times
/// round trip time (2^-28 s) adds to the window without rounding.
pub(in crate::law) const PLACES: u32 = 28;

/// The congestion header as the laws see it, in the units of the wire (draft-03 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// X, the inter-packet time of the flow, 2^-28 s; 0: unknown.
    pub x: u32,
    /// Round trip time, 2^-28 s; 0: unknown.
    pub rtt: u32,
    /// Delta_Throughput, the change of rate that is asked for and granted, B/s.
    pub delta: i32,
    /// Reverse_Feedback, the granted change of rate on its way back to the sender, B/s.
    pub reverse: i32,
}

impl law::Header for Header {
    const TAG: Tag = Tag::header("xcp");

    #[inline(always)]
    fn read(words: &Words) -> Self {
        Self { x: words[0], rtt: words[1], delta: words[2] as i32, reverse: words[3] as i32 }
    }

    #[inline(always)]
    fn write(self, words: &mut Words) {
        words[0] = self.x;
        words[1] = self.rtt;
        words[2] = self.delta as u32;
        words[3] = self.reverse as u32;
    }
}

/// Returns what an ACK brings to the sender: Reverse_Feedback, B/s, or the bytes that
/// [`Feedback::Bytes`](super::Feedback::Bytes) asks for.
#[inline(always)]
pub const fn feedback(reply: Reply) -> i32 {
    reply.word as i32
}

/// Returns the reply that brings so much feedback.
#[inline(always)]
pub const fn reply(feedback: i32) -> Reply {
    Reply { word: feedback as u32, byte: 0 }
}
