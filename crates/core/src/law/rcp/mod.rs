//! RCP, the rate control protocol (Dukkipati, Kobayashi, Zhang-Shen, McKeown, "Processor sharing flows in the Internet",
//! IWQoS 2005: RC; its code for ns-2: RNS). Each link keeps one rate for all flows and moves it every few milliseconds
//! by what is free and what waits; packets collect the least rate of their path, ACKs bring it back, and a sender paces
//! at it from its first round trip on. What the sources leave open is said on the page `docs/protocols/rcp.md`.

mod link;
mod option;
mod sender;
#[cfg(feature = "words")]
mod words;

pub use link::{Link, LinkConfig, Report};
pub use option::{Error as OptionError, TcpOption};
pub use sender::{Echo, Sender, SenderConfig};

use super::protocol::Protocol;
use super::{Column, Hue, Look, Reply, Shape, Tag, Words};
use crate::units::Rate;

/// Returns the protocols of this folder: `rcp` alone.
pub(super) const fn protocols() -> &'static [Protocol<LinkConfig, SenderConfig>] {
    const {
        &[Protocol {
            name: "rcp",
            about: "RCP: each link offers one rate to all flows, and packets collect the least of their path",
            page: "rcp",
            look: Look::new(Hue::Amber, Shape::Rhomb, 0),
            link_series: &[
                Column::new("offered_rate_Bps", "Rate that the law offers"),
                Column::new("input_Bps", "Input traffic of the law"),
                Column::new("mean_rtt_ms", "Mean round-trip time of the law"),
            ],
            flow_series: &[Column::new("told_rate_Bps", "Rate that flows are told")],
            link: Some(LinkConfig::DEFAULT),
            sender: Some(SenderConfig {}),
        }]
    }
}

/// Bytes per second of a step of rates in headers: with 32 bits up to 2.2 Tbit/s, in steps of 512 bit/s.
const STEP: u64 = 64;
/// Rate of a header that no link has lowered: the sender wishes for all that the path has.
const UNLIMITED: u32 = u32::MAX;

/// Header of data and SYN packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// Round trip time, 2^-28 s; 0: unknown.
    pub rtt: u32,
    /// The rate that the sender wishes and links lower, in steps of 64 B/s; all ones: unlimited.
    pub rate: u32,
}

/// Word 1, and word 2, which links change.
impl super::Header for Header {
    const TAG: Tag = Tag::header("rcp");

    #[inline(always)]
    fn read(words: &Words) -> Self {
        Self { rtt: words[1], rate: words[2] }
    }

    #[inline(always)]
    fn write(self, words: &mut Words) {
        (words[1], words[2]) = (self.rtt, self.rate);
    }
}

/// Returns a rate in the steps of headers, rounded down: at least one, and less than [`UNLIMITED`], which would say nothing.
#[inline(always)]
fn stated(rate: Rate) -> u32 {
    (rate.0 / STEP).max(1).min(UNLIMITED as u64 - 1) as u32
}

/// Returns the rate that an ACK brings; `None`: it brings none, or a wish that no link of the path answered.
#[inline(always)]
pub const fn told(reply: Reply) -> Option<Rate> {
    if reply.word == 0 || is_ungranted(reply) { None } else { Some(Rate(reply.word as u64 * STEP)) }
}

/// Returns true if the wish came back as it left: no link of the path runs RCP.
#[inline(always)]
const fn is_ungranted(reply: Reply) -> bool {
    reply.word == UNLIMITED
}
