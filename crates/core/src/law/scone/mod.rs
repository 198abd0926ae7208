//! SCONE (draft-ietf-scone-protocol; docs/design/modern.md 9): a router lowers a rate of seven bits in a packet, and the sender
//! keeps below it what it sends over a minute. Advice and no control: CUBIC, or whatever else the sender runs, stays in charge of
//! queues and losses. The draft says what the bits mean and leaves open how a router comes to a rate; that is ours.
//!
//! Not here: the bytes of the packet, and renditions of a video that are chosen by the advice.

mod code;
mod link;
mod sender;
#[cfg(feature = "words")]
mod words;

pub use code::{UNKNOWN, code, rate};
pub use link::{Held, Link, LinkConfig, Report};
pub use sender::{Echo, Sender, SenderConfig};

use super::protocol::Protocol;
use super::{Column, Hue, Look, Shape, Tag, Words};

/// Returns the protocols of this folder: `scone` alone.
pub(super) const fn protocols() -> &'static [Protocol<LinkConfig, SenderConfig>] {
    const {
        &[Protocol {
            name: "scone",
            about: "SCONE: links advise rates of seven bits, and CUBIC stays below them (draft-ietf-scone-protocol)",
            page: "scone",
            look: Look::new(Hue::Purple, Shape::Plus, 0),
            link_series: &[
                Column::new("advice_Bps", "Rate that the law advises"),
                Column::new("advised_flows", "Flows that the law counted"),
            ],
            flow_series: &[Column::new("advice_heard_Bps", "Advice that holds for the flow")],
            link: Some(LinkConfig::DEFAULT),
            sender: Some(SenderConfig::DEFAULT),
        }]
    }
}

/// Signal of a packet that asks for no advice.
const NONE: u8 = 0xff;

/// Header of a flow's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// Name of the flow: it stands for addresses and ports, by which a router knows one.
    pub flow: u32,
    /// Rate code that links lower, [`UNKNOWN`] as it is sent; above it: the datagram has no packet of SCONE.
    pub signal: u8,
}

impl Header {
    /// Returns the code, if the packet carries one.
    #[inline(always)]
    pub const fn asked(self) -> Option<u8> {
        if self.signal <= UNKNOWN { Some(self.signal) } else { None }
    }
}

/// Word 1, and word 2, which links change.
impl super::Header for Header {
    const TAG: Tag = Tag::header("scone");

    #[inline(always)]
    fn read(words: &Words) -> Self {
        Self { flow: words[1], signal: words[2] as u8 }
    }

    #[inline(always)]
    fn write(self, words: &mut Words) {
        (words[1], words[2]) = (self.flow, self.signal as u32);
    }
}
