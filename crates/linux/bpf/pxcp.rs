// SPDX-License-Identifier: MIT OR Apache-2.0
//! P-XCP's link law as functions that C can call in BPF, as `laws.rs` has XCP's: names and rules are the same. Its
//! senders and receivers are XCP's.
#![no_std]

#[macro_use]
mod exported;
#[path = "../../core/src/law/mod.rs"]
mod law;
#[path = "../../core/src/units/mod.rs"]
mod units;

use law::pxcp::{Link, LinkConfig};
use law::xcp::{Header, Report};
use law::{Carried, LinkLaw as _, Packet as _};
use units::{Bytes, Duration, Rate, Time};

#[inline(always)]
fn packet(header: &Header, size: u64) -> Carried {
    let mut packet = Carried { size: Bytes(size), ..Carried::default() };
    packet.add_header(*header);
    packet
}

exported! {
    fn law_link_init(link: &mut Link, config: &LinkConfig, phase: u64, queue_phase: u64) -> u64 {
        *link = Link::start(config, Duration(phase), Duration(queue_phase));
        0
    }
    fn law_link_set_capacity(link: &mut Link, capacity: u64) -> u64 {
        link.set_capacity(Rate(capacity));
        0
    }
    fn law_link_on_arrival(link: &mut Link, now: u64, header: &Header, size: u64) -> u64 {
        link.on_arrival(Time(now), &packet(header, size));
        0
    }
    fn law_link_on_departure(link: &mut Link, now: u64, header: &mut Header, size: u64, backlog: u64) -> u64 {
        let mut packet = packet(header, size);
        link.on_departure(Time(now), &mut packet, Bytes(backlog));
        *header = packet.header().unwrap_or_default();
        0
    }
    fn law_link_on_other_departure(link: &mut Link, now: u64, backlog: u64) -> u64 {
        link.on_departure(Time(now), &mut Carried::default(), Bytes(backlog));
        0
    }
    fn law_link_next_deadline(link: &Link) -> u64 {
        link.next_deadline().0
    }
    fn law_link_on_deadline(link: &mut Link, now: u64, backlog: u64) -> u64 {
        link.on_deadline(Time(now), Bytes(backlog));
        0
    }
    fn law_link_report(link: &Link, report: &mut Report) -> u64 {
        *report = link.report().xcp;
        0
    }
}
