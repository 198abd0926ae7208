//! A control law of its own for congestlab. `src/law.rs` is the law; README.md is its page.
#![forbid(unsafe_code)]

extern crate alloc;

pub mod law;

use congestlab_core::law::{Column, Hue, Look, Protocol, Shape, outside};
use law::{Link, LinkSettings, Sender, SenderSettings};

/// Series that results get from links (`Report`) and from flows (`Sender::each`), with the titles of their charts.
const LINK_SERIES: &[Column] =
    &[Column::new("share_Bps", "Share of a flow"), Column::new("counted_flows", "Flows that were counted")];
const FLOW_SERIES: &[Column] = &[Column::new("told_Bps", "Share that flows were told")];

/// Returns what scenarios call the law, with its defaults.
pub fn protocols() -> Vec<Protocol> {
    vec![Protocol {
        name: "shares",
        about: "equal parts of each link, counted there and carried back by the receivers",
        page: "shares",
        look: Look::new(Hue::Ink, Shape::Square, 4),
        link_series: LINK_SERIES,
        flow_series: FLOW_SERIES,
        // Either may be `None`: a law for links alone, or for senders alone.
        link: Some(outside::link::<Link>(LinkSettings::DEFAULT)),
        sender: Some(outside::sender::<Sender>(SenderSettings)),
    }]
}
