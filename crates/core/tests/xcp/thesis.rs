//! The sender and the router that TH built.

use crate::{MS, link_config};
use congestlab_core::law::xcp::{Header, Link, LinkConfig, Sender, SenderConfig, reply};
use congestlab_core::law::{Ack, LinkLaw as _, Send, SenderLaw};
use congestlab_core::units::{Bytes, Duration, Rate, SECOND, Time};
use congestlab_core::wire::xcp::HeaderV1;

const PACKET: Bytes = Bytes(1500);

/// TH Ex. 11: an interface of 10000 B/ms.
fn config(clamp: bool) -> SenderConfig {
    SenderConfig {
        clamp,
        desired_rate: Rate(10_000_000),
        profile: super::Profile::Thesis,
        pacing: false,
        ..SenderConfig::DEFAULT
    }
}

fn ack(srtt: u64, feedback: i32) -> Ack {
    Ack { awnd: Bytes(u64::MAX), srtt: Duration(srtt), reply: reply(feedback), ..Ack::default() }
}

fn send(srtt: u64) -> Send {
    Send { size: PACKET, srtt: Duration(srtt), awnd: Bytes(u64::MAX), ..Send::default() }
}

/// What a router of 1000 B/ms grants each of `packets` that come in its interval of 500 ms.
fn route(packets: u64, stated: Header) -> (i64, i32) {
    let config = LinkConfig { thesis: true, ..link_config(1_000_000) };
    let mut link = Link::new(config, Duration(500 * MS), Duration(10 * SECOND));
    (0..packets).for_each(|_| link.on_arrival(Time(0), &stated, PACKET));
    link.on_deadline(Time(500 * MS), Bytes(0));
    let mut header = stated;
    link.on_departure(Time(500 * MS), &mut header, PACKET, Bytes(0));
    (link.report().feedback, header.delta)
}

fn near(found: impl Into<f64>, expected: f64, within: f64) {
    let found = found.into();
    assert!((found / expected - 1.0).abs() < within, "{found}, {expected} expected");
}

/// TH Ex. 11 with the window in whole packets: 1, 134, 214 if all is sent, 267 if ten are; TH rounds F
/// up, so we find 1, 133, 213, 263. TH states 1 B/ms for 1500 B in 500 ms, which are 3.
#[test]
fn v1_20_the_example_step_by_step() {
    let config = config(false);
    let mut sender = Sender::new(PACKET, PACKET);
    let ask = |sender: &mut Sender| sender.header(&config, Time(0), &send(500 * MS));
    let answer = |sender: &mut Sender, packets: u64, grant: i32| {
        (0..packets).for_each(|_| sender.on_ack(&config, Time(0), &ack(500 * MS, grant)));
        sender.window().0 / PACKET.0
    };
    // 1 to 3
    let header = ask(&mut sender);
    let stated = HeaderV1::from_header(&header, PACKET);
    assert_eq!((stated.rtt, stated.throughput, stated.delta), (500, 3, 9_997_000));
    let (feedback, grant) = route(1, header);
    assert_eq!(feedback, 398_800);
    assert_eq!(answer(&mut sender, 1, grant), 133);
    // 4 to 6
    let header = ask(&mut sender);
    let stated = HeaderV1::from_header(&header, PACKET);
    assert_eq!((stated.rtt, stated.throughput), (500, 399));
    near(stated.delta, 72_000.0, 0.005);
    let (feedback, grant) = route(133, header);
    near(feedback as f64, 240_000.0, 0.005);
    near(grant, 1788.0, 0.012);
    assert_eq!(answer(&mut sender.clone(), 133, grant), 213);
    // 7 to 9: ten of them, and the header says what it said before.
    let (feedback, grant) = route(10, header);
    assert_eq!(feedback, 388_000);
    near(grant, 38_800.0, 0.001);
    assert_eq!(answer(&mut sender, 10, grant), 263);
}

/// TH 4.1: the remedy. The receiver takes ten packets, and that is what is stated.
#[test]
fn v1_20_a_clamped_window_gets_no_more_than_it_uses() {
    let mut sender = Sender::new(PACKET, PACKET);
    for _ in 0..10 {
        let packet = Ack { awnd: Bytes(15_000), ..ack(500 * MS, 38_800) };
        sender.on_ack(&config(true), Time(0), &packet);
    }
    assert_eq!(sender.window(), Bytes(15_000));
    let header = sender.header(&config(true), Time(0), &send(500 * MS));
    assert_eq!(HeaderV1::from_header(&header, PACKET).throughput, 30);
}

/// TH 3.1: neither drops nor timeouts; only negative feedback, and not below a segment.
#[test]
fn nothing_but_feedback_closes_the_window() {
    let config = config(true);
    let mut sender = Sender::new(PACKET, Bytes(150_000));
    sender.on_loss(&config, Time(0), Bytes(150_000));
    sender.on_timeout(&config, Time(0), Bytes(150_000), true);
    sender.on_restart(&config, Time(0), PACKET);
    assert_eq!(sender.window(), Bytes(150_000));
    sender.on_ack(&config, Time(0), &ack(500 * MS, -100_001));
    assert_eq!(sender.window(), Bytes(100_000)); // 50000.5 truncated
    sender.on_ack(&config, Time(0), &ack(500 * MS, -1_000_000));
    assert_eq!(sender.window(), PACKET);
    assert_eq!(sender.pacing_rate(&config, Duration(500 * MS)), None);
}

/// What the header says is what version 1 can say: whole milliseconds up, whole bytes per millisecond
/// down, at least one.
#[test]
fn the_header_has_the_units_of_version_1() {
    let config = config(true);
    for (window, rtt_us, ms, throughput) in
        [(150_000, 500_001, 501, 299), (1500, 2_000_000, 2000, 1), (151_000, 10_000, 10, 15_000)]
    {
        let mut sender = Sender::new(PACKET, Bytes(window));
        let header = sender.header(&config, Time(0), &send(rtt_us * 1000));
        let stated = HeaderV1 { rtt: ms, throughput, delta: header.delta, reverse: 0 };
        assert_eq!(header, stated.to_header(PACKET));
    }
    let mut sender = Sender::new(PACKET, PACKET);
    assert_eq!(sender.header(&config, Time(0), &send(0)), Header::default());
}

/// TH 3.4.2, Code 2: F of an interval in which nothing came is alpha C, for whoever comes next; NS2's
/// router grants that one nothing.
#[test]
fn an_empty_interval_grants_what_it_has_to_the_next_packet() {
    for (thesis, expected, interval) in [(true, 400_000, 500), (false, 0, 50)] {
        let config = LinkConfig { thesis, ..link_config(1_000_000) };
        let mut link = Link::new(config, Duration(500 * MS), Duration(100 * SECOND));
        let mut header =
            HeaderV1 { rtt: 500, throughput: 400, delta: i32::MAX, reverse: 0 }.to_header(PACKET);
        (0..100).for_each(|_| link.on_arrival(Time(0), &header, PACKET));
        link.on_deadline(Time(500 * MS), Bytes(0));
        link.on_deadline(Time(1000 * MS), Bytes(0));
        assert_eq!(link.report().interval, Duration(interval * MS), "thesis {thesis}");
        link.on_departure(Time(1001 * MS), &mut header, PACKET, Bytes(0));
        assert_eq!(header.delta, expected, "thesis {thesis}");
    }
}
