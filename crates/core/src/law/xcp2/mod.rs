//! XCP2: XCP with what its papers admit to be weak repaired, each repair a switch.
//!
//! The link is XCP's with two parts beside it. `calibrate` finds out what the link carries from how fast its queue drains.
//! `hops` keeps packets out of the shuffling that another hop of their path controls: each packet says which one that was
//! a round trip ago, by the number of the hop on its path, so that no hop needs a name. The sender is XCP's with aging and
//! pacing, and with `sparse` sends less than a packet in a round trip where there are more flows than packets in the pipe. `beside` runs
//! CUBIC where packets are lost behind a queue of which no link told.
//!
//! What of this is somebody else's idea: iXCP's controlling hop (IX); draft-03's aging; TH's pacing. docs/beyond.md has the
//! weaknesses, bounds and numbers. With all switches off it is XCP, packet by packet.

mod beside;
mod calibrate;
mod link;
mod sender;
#[cfg(feature = "words")]
mod words;

pub use link::{Link, LinkConfig, Report};
pub use sender::{Echo, Sender, SenderConfig};

use super::protocol::Protocol;
use super::{Column, Hue, Look, Shape, Tag, Words, xcp};

/// Returns the protocols of this folder: `xcp2` alone.
pub(super) const fn protocols() -> &'static [Protocol<LinkConfig, SenderConfig>] {
    const {
        &[Protocol {
            name: "xcp2",
            about: "XCP with its weaknesses repaired: unknown capacity, several bottlenecks, more flows than packets",
            page: "xcp2",
            look: Look::new(Hue::Blue, Shape::Up, 1),
            link_series: &[
                Column::new("xcp2_capacity_Bps", "Capacity that the XCP2 law believes in"),
                Column::new("xcp2_alarm", "Alarm of the XCP2 law: a queue stands"),
                Column::new("xcp2_apart", "Share of the traffic that other hops control"),
            ],
            flow_series: &[Column::new("xcp2_hop", "Hop of its path that controls the flow")],
            link: Some(LinkConfig::DEFAULT),
            sender: Some(SenderConfig::DEFAULT),
        }]
    }
}

/// Hops of a path, by their number from the sender on; beside XCP's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Hops {
    /// Hops that the packet has passed.
    pub passed: u8,
    /// The last one that lowered what the packet may add to its flow's rate; 0: none did.
    pub controls: u8,
    /// The one that controlled the flow as its sender heard last; 0: nothing was heard yet, [`Hops::NONE`]: no hop did.
    pub stated: u8,
}

impl Hops {
    /// States that no hop controls the flow: its application or its receiver does.
    pub const NONE: u8 = u8::MAX;

    /// Returns true if this hop, one behind those that the packet has passed, does not control its flow.
    #[inline(always)]
    fn is_elsewhere(self) -> bool {
        self.stated != 0 && self.stated != self.number()
    }

    /// The number of this hop, one behind those that the packet has passed. From the 254th on all are one.
    #[inline(always)]
    fn number(self) -> u8 {
        self.passed.saturating_add(1).min(Self::NONE - 1)
    }
}

/// Word 4.
impl super::Header for Hops {
    const TAG: Tag = Tag::beside("xcp2");

    #[inline(always)]
    fn read(words: &Words) -> Self {
        let word = words[4];
        Self { passed: word as u8, controls: (word >> 8) as u8, stated: (word >> 16) as u8 }
    }

    #[inline(always)]
    fn write(self, words: &mut Words) {
        words[4] = self.passed as u32 | (self.controls as u32) << 8 | (self.stated as u32) << 16;
    }
}
