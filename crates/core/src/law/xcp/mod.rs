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

mod asked;
mod echo;
mod forge;
mod header;
mod liar;
mod link;
mod sender;
mod settings;
mod spread;
mod thesis;
#[cfg(feature = "words")]
pub mod words;

pub use asked::Asked;
pub use echo::{ByteEcho, CumulativeEcho, Echo, EchoReader, Returned};
pub(in crate::law) use forge::forge;
pub(in crate::law) use header::PLACES;
pub use header::{Header, feedback, reply};
pub(in crate::law) use link::{Apart, Pool, weight};
pub use link::{Link, LinkConfig, MAX_INTERVAL, Part, Report, SHARE_PLACES, Share};
pub use sender::Sender;
pub(in crate::law) use sender::{UNANSWERED_TCP, with_places};
pub use settings::{Feedback, Lies, LossPolicy, Profile, RateSource, RequestPolicy, SenderConfig};
pub(in crate::law) use spread::Spread;

use super::protocol::Protocol;
use super::{Column, Hue, Look, Shape};

/// Returns the protocols of this folder: `xcp` alone.
pub(super) const fn protocols() -> &'static [Protocol<LinkConfig, SenderConfig>] {
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
            link: Some(LinkConfig::DEFAULT),
            sender: Some(SenderConfig::DEFAULT),
        }]
    }
}
