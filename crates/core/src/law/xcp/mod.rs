//! XCP: the law of a link, of a sender and of a receiver.
//!
//! Each link computes, once per average round trip, how much the sum of its traffic should change
//! (efficiency controller) and writes each packet's share of that change into its congestion
//! header (fairness controller), where a later link may lower it. The receiver sends the change
//! back, the sender applies it. No link keeps state per flow.
//!
//! Sources: K02 = Katabi, Handley, Rohrs, SIGCOMM 2002; draft-03 = draft-falk-xcp-spec-03 (the
//! header, and feedback as a change of rate); NS2 = the `xcp` folder of ns-2.35; TH = a Linux
//! implementation's thesis. Where they disagree, `docs/protocols/xcp.md` says whom we follow.

mod echo;
mod liar;
mod link;
mod sender;
mod spread;
mod thesis;
#[cfg(feature = "words")]
pub mod words;

pub use echo::{ByteEcho, CumulativeEcho, Echo, EchoReader, Returned};
pub use liar::Lies;
pub(in crate::law) use link::{Apart, Pool};
pub use link::{Link, LinkConfig, MAX_INTERVAL, Part, Report, SHARE_PLACES, Share};
pub use sender::{Feedback, LossPolicy, Profile, RateSource, RequestPolicy, Sender, SenderConfig};
pub(in crate::law) use sender::{PLACES, UNANSWERED_TCP, with_places};
pub(in crate::law) use spread::Spread;

use super::{
    Column, Hue, LinkConfig as Links, Look, Protocol, Reply, SenderConfig as Senders, Shape, Tag, Words,
};

/// Returns the protocols of this folder: `xcp` alone.
pub const fn protocols() -> &'static [Protocol] {
    const {
        &[Protocol {
            name: "xcp",
            about: "XCP: links write each packet's share of the spare capacity into its header",
            page: "xcp",
            look: Look::new(Hue::Blue, Shape::Circle, 0),
            link_series: &[
                Column::new("feedback_Bps", "Feedback of the law"),
                Column::new("interval_ms", "Control interval of the law"),
                Column::new("input_Bps", "Input traffic of the law"),
                Column::new("persistent_queue_bytes", "Persistent queue of the law"),
            ],
            flow_series: &[],
            link: Some(Links::Xcp(LinkConfig::DEFAULT)),
            sender: Some(Senders::Xcp(SenderConfig::DEFAULT)),
        }]
    }
}

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

impl super::Header for Header {
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

/// Returns what an ACK brings to the sender: Reverse_Feedback, B/s, or the bytes that [`Feedback::Bytes`] asks for.
#[inline(always)]
pub const fn feedback(reply: Reply) -> i32 {
    reply.word as i32
}

/// Returns the reply that brings so much feedback.
#[inline(always)]
pub const fn reply(feedback: i32) -> Reply {
    Reply { word: feedback as u32, byte: 0 }
}
