//! Vectors and rules of XCP-i's per-packet and per-neighbour decisions (docs/design/protocols.md 3.3 to 3.10).

use congestlab_core::law::xcp::{Header, Link, LinkConfig};
use congestlab_core::law::xcp_i::{Action, Address, Config, Crossed, Entry, Extension, Period, State};
use congestlab_core::law::{LinkLaw as _, Steered as _, Told};
use congestlab_core::units::{Bytes, Duration, SECOND, Time};

const MS: u64 = 1_000_000;
const CONFIG: Config = Config::DEFAULT;
const HOST: Address = Address(1);
const R1: Address = Address(2);
const R2: Address = Address(3);

/// A router without XCP-i.
fn legacy(mut extension: Extension) -> Extension {
    extension.ttl -= 1;
    extension
}

/// A router with it.
fn router(extension: Extension, own: Address) -> Extension {
    legacy(extension.forwarded(own))
}

fn ttls(extension: Extension) -> (u8, u8) {
    (extension.ttl, extension.xcp_ttl)
}

#[test]
fn v3_1_a_legacy_router_shows_in_the_ttl_once() {
    let sent = Extension::new(HOST);
    assert_eq!(ttls(sent), (64, 64));
    assert_eq!(sent.crossed(), Crossed::Nothing);
    let after_r1 = router(sent, R1);
    assert_eq!(ttls(after_r1), (63, 63));
    let at_r2 = legacy(after_r1);
    assert_eq!(ttls(at_r2), (62, 63));
    assert_eq!((at_r2.crossed(), at_r2.last), (Crossed::Cloud, R1));
    let at_r3 = router(at_r2, R2);
    assert_eq!(ttls(at_r3), (61, 61));
    assert_eq!((at_r3.crossed(), at_r3.last), (Crossed::Nothing, R2));
}

#[test]
fn v3_2_two_legacy_routers_are_one_cloud() {
    let at_r2 = legacy(legacy(router(Extension::new(HOST), R1)));
    assert_eq!(at_r2.xcp_ttl - at_r2.ttl, 2);
    assert_eq!((at_r2.crossed(), at_r2.last), (Crossed::Cloud, R1));
    assert_eq!(router(at_r2, R2).crossed(), Crossed::Nothing);
}

#[test]
fn a_cloud_may_begin_at_the_sender() {
    let at_r1 = legacy(Extension::new(HOST));
    assert_eq!((at_r1.crossed(), at_r1.last), (Crossed::Cloud, HOST));
}

#[test]
fn a_greater_ip_ttl_is_an_anomaly_and_no_cloud() {
    let tunnelled = Extension { ttl: 200, ..Extension::new(HOST) };
    assert_eq!(tunnelled.crossed(), Crossed::Anomaly);
    assert_eq!(router(tunnelled, R1).crossed(), Crossed::Nothing);
}

#[test]
fn a_ttl_at_its_end_does_not_wrap() {
    let last = Extension { ttl: 0, xcp_ttl: 0, last: HOST };
    assert_eq!(last.forwarded(R1).xcp_ttl, 0);
}

/// A virtual router of the published constants.
fn virtual_router() -> Link {
    let config = LinkConfig::DEFAULT;
    Link::new(config, Duration(u64::MAX), Duration(u64::MAX))
}

#[test]
fn v3_3_the_estimate_takes_the_place_of_the_spare_capacity() {
    let mut link = virtual_router();
    let stated = Header { x: 1 << 18, rtt: Duration(100 * MS).to_header(), delta: i32::MAX, reverse: 0 };
    link.on_arrival(Time(0), &stated, Bytes(1000));
    let told = Told { spare: 1_000_000, mean_rtt: Duration(100 * MS), queue: Bytes(5000) };
    link.close_told(Time(100 * MS), &told);
    let report = link.report();
    // F_v = 0.4 * 1e6 - 0.226 * 5000 / 0.1; times d that is XI eq. 1, 38870 B. One is lost to the
    // rounding of d.
    assert!((388_699..=388_700).contains(&report.feedback), "{}", report.feedback);
    let bytes = report.feedback as u64 * report.interval.0 / SECOND;
    assert!((38_869..=38_870).contains(&bytes), "{bytes}");
    assert_eq!(report.interval, Duration(100 * MS));
    // And it is granted, to a packet that asks for everything.
    let mut header = stated;
    link.on_departure(Time(101 * MS), &mut header, Bytes(1000), Bytes(0));
    assert!((388_698..=388_700).contains(&header.delta), "{}", header.delta);
}

#[test]
fn a_negative_estimate_cuts() {
    let mut link = virtual_router();
    let stated = Header { x: 1 << 18, rtt: Duration(100 * MS).to_header(), delta: i32::MAX, reverse: 0 };
    link.on_arrival(Time(0), &stated, Bytes(1000));
    let told = Told { spare: -1_000_000, mean_rtt: Duration(100 * MS), queue: Bytes(0) };
    link.close_told(Time(100 * MS), &told);
    assert_eq!(link.report().feedback, -400_000);
    let mut header = stated;
    link.on_departure(Time(101 * MS), &mut header, Bytes(1000), Bytes(0));
    assert!((-400_001..=-399_999).contains(&header.delta), "{}", header.delta);
}

/// An entry at `now`, asked for the first time.
fn asked(now: Time) -> Entry {
    let mut entry = Entry::new(now, Duration(50 * MS));
    assert_eq!(entry.state(now), State::Idle);
    assert_eq!(entry.on_packet(now), Action::Begin);
    entry.begin(&CONFIG, now, 1, 77);
    entry
}

#[test]
fn v3_4_three_lost_requests_break_the_path_until_a_packet_after_the_backoff() {
    let at = |ms| Time(ms * MS);
    let mut entry = asked(at(0));
    let mut sent = vec![0];
    for ms in (0..=4200).step_by(100) {
        // The upstream neighbour's data comes all the time, or the entry would just be idle.
        let on_packet = entry.on_packet(at(ms));
        if entry.next_deadline(&CONFIG) <= at(ms) {
            match entry.on_deadline(&CONFIG, at(ms)) {
                Action::Repeat => sent.push(ms),
                Action::Broken => assert_eq!(ms, 3000),
                action => panic!("{action:?} at {ms} ms"),
            }
        }
        let expected = if ms < 3000 { State::Req } else { State::Broken };
        assert_eq!(entry.state(at(ms)), expected, "{ms} ms");
        // 3.5 s is within the back-off; the first packet after it restarts.
        assert_eq!(on_packet == Action::Begin, ms >= 4000, "{ms} ms");
    }
    assert_eq!(sent, [0, 1000, 2000]);
    entry.begin(&CONFIG, at(4200), 2, 78);
    assert_eq!(entry.state(at(4200)), State::Req);
}

#[test]
fn the_life_of_an_entry() {
    let at = |ms| Time(ms * MS);
    let mut entry = asked(at(0));
    assert_eq!(entry.state(at(1)), State::Req);
    assert!(entry.on_ack(&CONFIG, at(20), 1, 77, Duration(0)));
    assert_eq!(entry.state(at(20)), State::Est);
    assert!(entry.expects(1, 77));
    entry.on_bandwidth(&CONFIG, at(25), -5);
    assert_eq!(entry.state(at(25)), State::Valid);
    assert_eq!(entry.bandwidth(at(25)), Some(-5));
    // The next request a period after the first.
    assert_eq!(entry.next_deadline(&CONFIG), at(50));
    assert_eq!(entry.on_deadline(&CONFIG, at(50)), Action::Begin);
    entry.begin(&CONFIG, at(50), 2, 78);
    assert_eq!(entry.state(at(50)), State::Valid, "what is known holds meanwhile");
    // Stale after three periods.
    assert_eq!(entry.bandwidth(at(174)), Some(-5));
    assert_eq!(entry.bandwidth(at(175)), None);
    assert_eq!(entry.state(at(175)), State::Req);
}

#[test]
fn an_idle_entry_is_removed_and_packets_postpone_it() {
    let at = |ms| Time(ms * MS);
    let mut entry = asked(at(0));
    entry.on_bandwidth(&CONFIG, at(10), 0);
    entry.on_packet(at(5000));
    let mut now = at(10);
    let removed = loop {
        now = entry.next_deadline(&CONFIG).max(now);
        match entry.on_deadline(&CONFIG, now) {
            Action::Begin => {
                entry.begin(&CONFIG, now, 9, 9);
                entry.on_bandwidth(&CONFIG, now, 0);
            }
            Action::Remove => break now,
            action => panic!("{action:?}"),
        }
    };
    assert_eq!(removed, at(15_000));
}

#[test]
fn only_the_answer_to_the_request_under_way_counts() {
    let at = |ms| Time(ms * MS);
    let mut entry = asked(at(0));
    assert!(!entry.on_ack(&CONFIG, at(1), 1, 76, Duration(0)), "a forged nonce");
    assert!(!entry.on_ack(&CONFIG, at(1), 0, 77, Duration(0)), "an old number");
    assert!(!entry.expects(2, 77));
    assert_eq!(entry.state(at(1)), State::Req);
    entry.on_bandwidth(&CONFIG, at(2), 1);
    assert!(!entry.expects(1, 77), "a report that comes twice");
    assert!(!entry.on_ack(&CONFIG, at(3), 1, 77, Duration(0)), "an acknowledgment behind its report");
}

#[test]
fn an_acknowledged_estimate_has_the_time_that_it_takes() {
    let at = |ms| Time(ms * MS);
    let mut entry = asked(at(0));
    entry.on_ack(&CONFIG, at(10), 1, 77, Duration(5 * SECOND));
    for ms in [1010, 2010, 5009] {
        entry.on_packet(at(ms));
        assert_eq!(entry.on_deadline(&CONFIG, at(ms)), Action::Nothing, "{ms} ms");
    }
    assert_eq!(entry.next_deadline(&CONFIG), at(6010));
    assert_eq!(entry.on_deadline(&CONFIG, at(6010)), Action::Repeat);
    // A repeated acknowledgment does not begin the time anew.
    entry.on_ack(&CONFIG, at(6020), 1, 77, Duration(5 * SECOND));
    assert_eq!(entry.on_deadline(&CONFIG, at(7010)), Action::Repeat);
    assert_eq!(entry.on_deadline(&CONFIG, at(8010)), Action::Broken);
}

#[test]
fn no_acknowledgment_silences_an_entry_for_more_than_a_minute() {
    let mut entry = asked(Time(0));
    entry.on_ack(&CONFIG, Time(0), 1, 77, Duration(u64::MAX));
    assert_eq!(entry.next_deadline(&Config { idle: Duration(u64::MAX), ..CONFIG }), Time(61 * SECOND));
}

#[test]
fn the_timeout_is_at_least_three_round_trips() {
    let mut entry = asked(Time(0));
    entry.set_rtt(Duration(600 * MS));
    entry.on_packet(Time(SECOND));
    assert_eq!(entry.on_deadline(&CONFIG, Time(SECOND)), Action::Repeat);
    assert_eq!(entry.next_deadline(&CONFIG), Time(SECOND + 1800 * MS));
}

#[test]
fn on_a_path_that_has_answered_a_lost_request_is_repeated_after_a_period() {
    let at = |ms| Time(ms * MS);
    let mut entry = asked(at(0));
    entry.set_rtt(Duration(20 * MS));
    entry.set_interval(Duration(100 * MS));
    entry.on_bandwidth(&CONFIG, at(20), 1);
    assert_eq!(entry.on_deadline(&CONFIG, at(100)), Action::Begin);
    entry.begin(&CONFIG, at(100), 2, 78);
    assert_eq!(entry.on_deadline(&CONFIG, at(200)), Action::Repeat);
    assert_eq!(entry.on_deadline(&CONFIG, at(300)), Action::Repeat);
    // It is stale after 320 ms, and the path counts as broken 3 s after the first, as ever.
    assert_eq!(entry.on_deadline(&CONFIG, at(400)), Action::Repeat);
    assert_eq!(entry.state(at(400)), State::Req);
    for ms in (500..3100).step_by(100) {
        entry.on_packet(at(ms));
        assert_eq!(entry.on_deadline(&CONFIG, at(ms)), Action::Repeat, "{ms} ms");
    }
    assert_eq!(entry.on_deadline(&CONFIG, at(3100)), Action::Broken);
}

#[test]
fn a_period_of_its_own_replaces_the_interval() {
    let at = |ms| Time(ms * MS);
    let config = Config { period: Period::Every(Duration(SECOND)), ..CONFIG };
    let mut entry = Entry::new(at(0), Duration(50 * MS));
    entry.on_packet(at(0));
    entry.begin(&config, at(0), 1, 1);
    entry.on_bandwidth(&config, at(700), 1);
    assert_eq!(entry.next_deadline(&config), at(1000));
    assert_eq!(entry.bandwidth(at(3699)), Some(1));
    assert_eq!(entry.bandwidth(at(3700)), None);
    // An estimate that takes longer than a period holds accordingly, and the next follows at once.
    entry.begin(&config, at(1000), 2, 2);
    entry.on_bandwidth(&config, at(5000), 2);
    assert_eq!(entry.next_deadline(&config), at(5000));
    assert_eq!(entry.bandwidth(at(16_999)), Some(2));
}
