//! ABC, accelerate-brake control (Goyal, Agarwal, Netravali, Alizadeh, Balakrishnan, "ABC: a simple explicit congestion controller
//! for wireless networks", NSDI 2020; docs/design/modern.md 2): one bit per packet tells a sender to send two packets for it or
//! none, so that a link of varying rate has, a round trip later, as much as it can carry then. The bit is in the ECN field, which
//! other queues may use beside it.
//!
//! Not here: two queues for flows of ABC and others on one link, and the rounding of the released code
//! ([CM-04](../../../../../docs/design/modern.md#cm-04)).

mod link;
mod sender;
#[cfg(feature = "words")]
mod words;

pub use link::{Link, LinkConfig, Report};
pub use sender::{Echo, Sender, SenderConfig};

use super::protocol::Protocol;
use super::{Column, Hue, Look, Shape};

/// Returns the protocols of this folder: `abc` alone.
pub(super) const fn protocols() -> &'static [Protocol<LinkConfig, SenderConfig>] {
    const {
        &[Protocol {
            name: "abc",
            about: "ABC: each packet tells its sender to send two for it or none (NSDI 2020)",
            page: "abc",
            look: Look::new(Hue::Vermilion, Shape::Down, 2),
            link_series: &[
                Column::new("accelerated_share", "Share of packets that accelerate"),
                Column::new("carried_Bps", "Output of the law"),
                Column::new("possible_Bps", "Capacity that the law measured"),
            ],
            flow_series: &[
                Column::new("abc_window_packets", "Window by ABC's marks"),
                Column::new("loss_window_packets", "Window by losses"),
            ],
            link: Some(LinkConfig::DEFAULT),
            sender: Some(SenderConfig {}),
        }]
    }
}

/// ECN field of a packet whose sender may send two for it, of one for which it sends none, and of one that met congestion at a queue
/// of others (CM-03).
const ACCELERATE: u8 = 0b01;
const BRAKE: u8 = 0b10;
const CE: u8 = 0b11;
