//! XCP's laws: the vectors of docs/design/protocols.md 1.10, the differential test against the float
//! transcription, properties, and closed loops.

mod any;
mod asked;
mod differential;
mod hostile;
mod liar;
mod link;
mod loops;
mod net;
mod oracle;
mod parts;
mod properties;
mod proportional;
mod random;
mod sender;
mod spread;
mod thesis;

use congestlab_core::law::LinkLaw as _;
use congestlab_core::law::xcp::{
    self, Header, Link, LinkConfig, LossPolicy, Profile, RateSource, RequestPolicy, SenderConfig,
};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, SECOND, Time};

/// 1 ms.
const MS: u64 = SECOND / 1000;
/// More than any link grants.
const ALL: i32 = i32::MAX;

/// K02's law, which takes headers as they come, and constants; MIN_INTERVAL as draft-03.
fn link_config(capacity: u64) -> LinkConfig {
    LinkConfig { capacity: Rate(capacity), bound_headers: false, ..LinkConfig::DEFAULT }
}

/// The default sender: draft-03 with TH's clamp and pacing, without aging.
fn sender_config() -> SenderConfig {
    SenderConfig { desired_rate: Rate(1_000_000_000), ..SenderConfig::DEFAULT }
}

/// A header with times in ns.
fn header(x: u64, rtt: u64, delta: i32) -> Header {
    Header { x: Duration(x).to_header(), rtt: Duration(rtt).to_header(), delta, reverse: 0 }
}

/// A link whose first interval is `interval` and that estimates no queue before `queue_phase`.
fn link(config: LinkConfig, interval: u64, queue_phase: u64) -> Link {
    Link::new(config, Duration(interval), Duration(queue_phase))
}

/// The feedback that a packet leaves with, and nothing else is of interest.
fn depart(link: &mut Link, header: Header, size: u64) -> i32 {
    let mut header = header;
    link.on_departure(Time(0), &mut header, Bytes(size), Bytes(0));
    header.delta
}

/// Lets the link see a persistent queue of `queue` bytes: a minimum over one whole estimate.
fn with_queue(link: &mut Link, queue: u64) {
    let mut at = link.next_deadline();
    link.on_deadline(at, Bytes(queue));
    at = link.next_deadline();
    link.on_deadline(at, Bytes(queue));
}
