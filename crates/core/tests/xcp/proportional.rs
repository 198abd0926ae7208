//! P-XCP: the vectors of docs/design/protocols.md 2.8.

use super::differential::passing;
use super::*;
use congestlab_core::law::pxcp::{self, Scaling};
use congestlab_core::law::xcp::Sender;
use congestlab_core::law::{Ack, LinkLaw, Packet as _, Protocol, SenderConfig, SenderLaw as _, Series as _};

const CAPACITY: u64 = 1_250_000;

/// A link whose intervals are 0.1 s, the round trip time of all that comes.
fn proportional() -> pxcp::Link {
    let xcp = LinkConfig { initial_interval: Duration(100 * MS), capture: false, ..link_config(CAPACITY) };
    let config = pxcp::LinkConfig { xcp, ..pxcp::LinkConfig::DEFAULT };
    pxcp::Link::start(&config, Duration(100 * MS), Duration(100 * SECOND))
}

/// Sends `packets` of spacing `x`, each asking for `delta`, through the link.
fn pass(link: &mut pxcp::Link, packets: u32, x: u64, delta: i32) {
    for _ in 0..packets {
        through(link, header(x, 100 * MS, delta));
    }
}

/// The header that a packet of 1000 B leaves with.
fn through(link: &mut impl LinkLaw, header: Header) -> Header {
    let mut packet = passing(Some(header), 1000);
    link.on_arrival(Time(0), &packet);
    link.on_departure(Time(0), &mut packet, Bytes(0));
    packet.header().expect("its own")
}

/// The series of the link (docs/design/contract.md 5).
fn series(link: &pxcp::Link, name: &str) -> f64 {
    let mut found = None;
    link.report().each(&mut |metric, value, unit| {
        if metric == name {
            found = Some(value as f64 / f64::from(unit));
        }
    });
    found.unwrap_or_else(|| panic!("no series {name}"))
}

/// 40 packets of X = 2.5 ms and 10 of X = 10 ms in an interval of 0.1 s are two flows; the second asks
/// for less than it would get.
#[test]
fn v2_1_packets_count_flows_and_the_limited_ones() {
    let mut link = proportional();
    // An interval of the same packets first, so that there is something to give.
    for _ in 1..=2 {
        pass(&mut link, 40, 2_500_000, ALL);
        pass(&mut link, 10, 10 * MS, i32::MIN);
        link.on_deadline(link.next_deadline(), Bytes(0));
    }
    assert!((series(&link, "pxcp_n") - 2.0).abs() < 1e-5, "{}", series(&link, "pxcp_n"));
    assert!((series(&link, "pxcp_n_lim") - 1.0).abs() < 1e-5, "{}", series(&link, "pxcp_n_lim"));
    assert!((series(&link, "pxcp_r") - 0.5).abs() < 1e-5, "{}", series(&link, "pxcp_r"));
    let asking = passing(Some(header(10 * MS, 100 * MS, ALL)), 1000);
    let share = link.view(&asking).expect("one of XCP's family");
    assert!((share.factor as f64 / 2f64.powi(32) - 1.8).abs() < 1e-5);
    // What is in the pool is what XCP would have, scaled.
    let report = link.report().xcp;
    let shuffled = (0.1 * report.input.0 as f64 - report.feedback.abs() as f64).max(0.0);
    let pool = 1.8 * (shuffled + report.feedback.max(0) as f64);
    assert!((share.grants_left as f64 / 65536.0 - pool).abs() < 20.0, "{share:?} instead of {pool}");
}

/// The scale for shares r of limited flows.
#[test]
fn v2_2_the_scale_is_k_over_one_less_r_at_least_one_and_bounded() {
    let packet = Header { x: 1000, rtt: 1000, ..Header::default() };
    for (percent, expected) in [(0, 1.0), (5, 1.0), (10, 1.0), (50, 1.8), (75, 3.6), (100, 18.0)] {
        let mut scaling = Scaling::new(&pxcp::LinkConfig::DEFAULT);
        (0..100).for_each(|_| scaling.on_arrival(&packet, packet.x));
        (0..percent).for_each(|_| scaling.on_limited(&packet, packet.x));
        let pool = scaling.scale(1_000_000_000_000, Duration(100 * MS)) as f64 / 1e12;
        assert!((pool - expected).abs() < 1e-6, "r = {percent} %: {pool} instead of {expected}");
    }
    // Nothing came: r = 0, no division.
    assert_eq!(Scaling::new(&pxcp::LinkConfig::DEFAULT).scale(1000, Duration(0)), 1000);
    // r_max and k are configured.
    let config = pxcp::LinkConfig { k: Ratio::ONE, r_max: Ratio::ppm(500_000), ..pxcp::LinkConfig::DEFAULT };
    let mut scaling = Scaling::new(&config);
    scaling.on_arrival(&packet, packet.x);
    scaling.on_limited(&packet, packet.x);
    assert_eq!(scaling.scale(1_000_000, Duration(100 * MS)), 2_000_000);
}

/// A packet of a flow that sends less than one per interval counts as one flow; none counts that does
/// not know its round trip time, nor one that asks for just what it gets.
#[test]
fn a_packet_counts_for_at_most_one_flow() {
    let mut link = proportional();
    pass(&mut link, 3, 700 * MS, i32::MIN);
    for unknown in [header(0, 100 * MS, i32::MIN), header(10 * MS, 0, i32::MIN), Header::default()] {
        through(&mut link, unknown);
    }
    pass(&mut link, 1, 100 * MS, 0); // gets 0: nothing has been measured
    link.on_deadline(Time(100 * MS), Bytes(0));
    assert_eq!((series(&link, "pxcp_n"), series(&link, "pxcp_n_lim")), (4.0, 3.0));
}

/// A link that counts over so many intervals of 0.1 s, and bounds X in the pool by that.
fn counting_over(counted_over: u32) -> pxcp::Link {
    let xcp = LinkConfig {
        initial_interval: Duration(100 * MS),
        capture: false,
        bound_headers: true,
        ..link_config(CAPACITY)
    };
    let config = pxcp::LinkConfig { xcp, counted_over, ..pxcp::LinkConfig::DEFAULT };
    pxcp::Link::start(&config, Duration(100 * MS), Duration(100 * SECOND))
}

/// A flow with a packet in every fourth interval is one flow. In the pool its packet has X = 100 ms, a quarter of what it states,
/// and the scale goes by that.
#[test]
fn slow_flows_are_counted_over_four_intervals() {
    for (counted_over, n, n_lim, r) in [(4, 2.0, 1.0, 0.5), (1, 1.0, 0.0, 0.0)] {
        let mut link = counting_over(counted_over);
        for interval in 0..12 {
            if interval % 4 == 0 {
                pass(&mut link, 1, 400 * MS, i32::MIN);
            }
            pass(&mut link, 40, 2_500_000, ALL);
            link.on_deadline(link.next_deadline(), Bytes(0));
        }
        let found = ["pxcp_n", "pxcp_n_lim", "pxcp_r"].map(|name| series(&link, name));
        let near = |found: f64, expected: f64| (found - expected).abs() < 0.01;
        let all = near(found[0], n) && near(found[1], n_lim) && near(found[2], r);
        assert!(all, "{found:?} over {counted_over}");
        let scale = link.view(&passing(Some(header(MS, MS, ALL)), 1000)).expect("its own").factor;
        let pool_r = if counted_over == 1 { 0.0 } else { 0.25 / 1.25 };
        assert!(near(scale as f64 / 2f64.powi(32), (0.9f64 / (1.0 - pool_r)).max(1.0)), "{scale}");
    }
}

/// A packet that asks for less than its share is of a limited flow, also when others have emptied the pool.
#[test]
fn who_finds_the_pool_empty_is_limited_as_before() {
    let limited = |counted_over| {
        let mut link = counting_over(counted_over);
        for interval in 0..8 {
            // Every other time more come than in the interval before, and take all that there is.
            pass(&mut link, if interval % 2 == 0 { 20 } else { 80 }, 2_500_000, ALL);
            pass(&mut link, 10, 10 * MS, 0);
            link.on_deadline(link.next_deadline(), Bytes(0));
        }
        series(&link, "pxcp_n_lim")
    };
    assert!((limited(2) - 1.0).abs() < 0.01, "{}", limited(2));
    assert!(limited(1) < 0.5, "the paper's link does not find it: {}", limited(1));
}

/// With r of at most 0.1 it is XCP's link.
#[test]
fn without_limited_flows_it_is_xcp() {
    let mut link = proportional();
    let mut plain = Link::new(
        LinkConfig { initial_interval: Duration(100 * MS), capture: false, ..link_config(CAPACITY) },
        Duration(100 * MS),
        Duration(100 * SECOND),
    );
    for interval in 1..=5 {
        for _ in 0..40 {
            let asking = header(2_500_000, 100 * MS, ALL);
            assert_eq!(through(&mut link, asking), through(&mut plain, asking));
        }
        let at = link.next_deadline();
        link.on_deadline(at, Bytes(0));
        plain.on_deadline(at, Bytes(0));
        assert_eq!(link.report().xcp, plain.report());
        assert_eq!(plain.report().intervals, interval);
    }
}

/// `pxcp` on a flow keeps its window on three duplicate ACKs: 64 packets stay 64. That it sends the lost
/// one once is TCP's machinery (net's packet script `v2_5_maintain_keeps_the_window_and_repeats_once`).
#[test]
fn v2_5_a_loss_leaves_the_window() {
    let Some(SenderConfig::Xcp(config)) = &Protocol::of("pxcp").unwrap().sender else { panic!("XCP's") };
    let mut sender = Sender::new(Bytes(1000), Bytes(64_000));
    let duplicate = Ack { awnd: Bytes(u64::MAX), is_duplicate: true, ..Ack::default() };
    (0..3).for_each(|_| sender.on_ack(config, Time(0), &duplicate));
    sender.on_loss(config, Time(0), Bytes(64_000));
    assert_eq!(sender.window(), Bytes(64_000));
    sender.on_timeout(config, Time(0), Bytes(64_000), true);
    assert_eq!(sender.window(), Bytes(1000), "assumed: a timeout is one segment");
}
