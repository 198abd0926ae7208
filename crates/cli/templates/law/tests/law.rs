//! The law on paper and the law in code; and all that every law must satisfy.

use std::process::Command;

use congestlab_core::law::{Carried, LinkLaw, Packet};
use congestlab_core::units::{Bytes, Duration, Rate, Time};
use law::law::{Header, Link, LinkSettings};

/// A vector: 95 % of 1,250,000 B/s for two flows are 593,750 B/s each, and no more than another link left.
#[test]
fn two_flows_get_a_half_each() {
    let settings = LinkSettings { capacity: Rate(1_250_000), ..LinkSettings::DEFAULT };
    let mut link = Link::start(&settings, settings.interval, settings.interval);
    let mut packets = [1, 2].map(|flow| {
        let mut packet = Carried { size: Bytes(1500), ..Carried::default() };
        packet.add_header(Header { flow, share: u32::MAX });
        packet
    });
    packets.iter_mut().for_each(|packet| link.on_departure(Time(1), packet, Bytes(0)));
    link.on_deadline(Time::ZERO + Duration(100_000_000), Bytes(0));
    for (share, left) in [(u32::MAX, 593_750), (1000, 1000)] {
        packets[0].set_header(Header { flow: 1, share });
        link.on_departure(Time(100_000_001), &mut packets[0], Bytes(0));
        assert_eq!(packets[0].header(), Some(Header { flow: 1, share: left }));
    }
}

/// Any input, intervals, pools, windows, both engines, slow links and fast ones, the kernel's compiler.
#[test]
fn it_passes_its_trial() {
    let output = Command::new(env!("CARGO_BIN_EXE_law-shares")).args(["check", "law", "shares"]).output();
    let output = output.expect("cargo has built it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
