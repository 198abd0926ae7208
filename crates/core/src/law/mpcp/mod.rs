//! MPCP: the load of the most loaded link, in the two ECN bits of n packets in a row (Li, Yousefi'zadeh, CCR
//! 39(5) 2009: MP). One packet is VCP (SIGCOMM 2005: VP; its ns-2 code: VNS), two are DPCP, three TPCP. A-n,
//! C-n: assumptions and contradictions, told on the pages `docs/protocols/vcp.md` and `mpcp.md`.

mod chains;
mod counts;
mod echo;
mod growth;
mod level;
mod link;
mod order;
mod sender;
mod settings;
#[cfg(feature = "words")]
mod words;

pub use chains::{Chains, ChainsReader, Heard};
pub use counts::{Counts, CountsReader};
pub use echo::{Echo, Echoed};
pub use level::{DIGITS_MAX, HIGH, LOW, Level, OVERLOAD};
pub use link::{Algorithm2, Flow, Link, LinkConfig, Report};
pub use order::Order;
pub use sender::{Sender, State};
pub use settings::{Cut, Hold, Loss, Repair, SenderConfig};

use super::protocol::Protocol;
use super::{Column, Hue, Look, Shape};

const _: () = {
    assert!(size_of::<Link>() <= size_of::<super::xcp::Link>(), "it makes every port larger");
};

impl Order {
    /// Returns the encoding that chains of `n` packets use unless told otherwise.
    #[inline]
    pub const fn of(n: u32) -> Self {
        if n <= 2 { Self::Swap } else { Self::Checksum }
    }
}

/// Returns the protocols of this folder: one law, by the length of the chain.
pub(super) const fn protocols() -> &'static [Protocol<LinkConfig, SenderConfig>] {
    const {
        &[
            preset(
                "vcp",
                Look::new(Hue::Amber, Shape::Circle, 1),
                "VCP: the zone of the load factor in the ECN bits",
                "vcp",
                1,
                true,
            ),
            preset(
                "dpcp",
                Look::new(Hue::Sky, Shape::Square, 4),
                "DPCP: nine levels of load in the ECN bits of two packets",
                "mpcp",
                2,
                true,
            ),
            preset(
                "tpcp",
                Look::new(Hue::Purple, Shape::Down, 3),
                "TPCP: 27 levels of load in the ECN bits of three packets",
                "mpcp",
                3,
                true,
            ),
            preset(
                "mpcp",
                Look::new(Hue::Green, Shape::Rhomb, 0),
                "MPCP: 3^n levels of load in the ECN bits of n packets",
                "mpcp",
                2,
                false,
            ),
        ]
    }
}

/// The name of the preset with such chains.
#[inline]
const fn name_of(n: u32, is_preset: bool) -> &'static str {
    match n {
        1 if is_preset => "vcp",
        2 if is_preset => "dpcp",
        3 if is_preset => "tpcp",
        _ => "mpcp",
    }
}

const fn preset(
    name: &'static str,
    look: Look,
    about: &'static str,
    page: &'static str,
    n: u32,
    is_preset: bool,
) -> Protocol<LinkConfig, SenderConfig> {
    Protocol {
        name,
        about,
        page,
        look,
        link_series: const {
            &[
                Column::new("load_factor", "Load factor of the law"),
                Column::new("load_code", "Zone of the load: 1 low, 2 high, 3 over"),
                Column::new("load_level", "Load level of the law"),
            ]
        },
        flow_series: const {
            &[
                Column::new("load_bound", "Load that flows act on, upper bound"),
                Column::new("downgrades", "Times that flows fell back to VCP"),
            ]
        },
        link: Some(LinkConfig::of(n, is_preset)),
        sender: Some(SenderConfig::of(n, is_preset)),
    }
}
