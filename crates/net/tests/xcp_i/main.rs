//! XCP-i's agents on both sides of clouds: the rules of docs/design/protocols.md 3.3 to 3.9, with control packets that
//! are lost, late, repeated and forged.

mod closed;
mod world;

use congestlab_core::law::xcp;
use congestlab_core::law::xcp_i::{Extension, Period};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, SECOND, Time};
use congestlab_net::packet::{Kind, Packet};
use congestlab_net::random::Stream;
use congestlab_net::xcp_i::{
    Address, Edge, ErrorBase, Message, Neighbour, NoEstimate, Oracle, OracleConfig, PortView, Probe, Prober,
    Role, State, Verb, VirtualQueue, Way,
};
use world::{CLOUD_DELAY, Fate, MS, View, World, at, config, data, verb};

/// k-1 and k of most tests.
const U: Address = Address(1);
const K: Address = Address(2);
/// The way between them in most tests.
const ONE: Way = Way(0);

/// A cloud between U and K with 30 Mbit/s of which a third is used.
fn pair() -> World {
    let mut world = World::new();
    world.add(Edge::new(config(), U, Role::Router, Stream::named(1, "u")));
    world.add(Edge::new(config(), K, Role::Router, Stream::named(1, "k")));
    world.cloud(U, K, View { capacity: 3_750_000, load: 1_250_000 });
    world
}

#[test]
fn the_first_packet_asks_and_the_oracle_answers_within_a_round_trip() {
    let mut world = pair();
    world.data(K, &mut data(U, 1));
    let cloud = world.only_cloud(K);
    assert_eq!(cloud.state(at(0)), State::Req);
    assert_eq!(cloud.upstream(), U);
    world.run(at(39));
    assert_eq!(world.only_cloud(K).state(world.now), State::Req);
    world.run(at(40));
    let cloud = world.only_cloud(K);
    assert_eq!(cloud.state(world.now), State::Valid);
    assert_eq!(cloud.rtt(), Duration(2 * CLOUD_DELAY));
    assert_eq!(cloud.estimate(world.now), Some(2_500_000));
    // Request, acknowledgment and report.
    assert_eq!(cloud.probe_bytes(), 3 * 40);
}

#[test]
fn estimates_follow_once_per_control_interval() {
    let mut world = pair();
    world.port = PortView { port: 3, mean_rtt: Duration(100 * MS), queue: Bytes(0) };
    world.stream_of_data(U, K, at(10_000));
    let stats = *world.edges[&K].stats();
    // The first interval is 50 ms, and a request is one per interval.
    assert!((98..=101).contains(&stats.requests), "{stats:?}");
    assert!(stats.requests - stats.estimates <= 1, "{stats:?}: one may be under way");
    assert_eq!(world.only_cloud(K).port(), 3);
    // And each of them closed an interval of the virtual router: decisions are not older than they.
    let intervals = world.only_cloud(K).report().intervals;
    assert!((99..=103).contains(&intervals), "{intervals}");
    assert_eq!(stats.unexpected + stats.foreign + stats.broken + stats.anomalies, 0);
}

#[test]
fn the_virtual_router_gives_what_the_cloud_has_left() {
    let mut world = pair();
    world.port = PortView { mean_rtt: Duration(100 * MS), ..PortView::default() };
    let grants = world.grants(U, K, at(2001), at(2100));
    // alpha BW = 0.4 * 2.5 MB/s, more than would be shuffled; over an interval of packets.
    let report = world.only_cloud(K).report();
    assert_eq!(report.feedback, 1_000_000);
    assert!((900_000..=1_000_100).contains(&grants), "{grants}");
}

/// P-XCP in the place of the cloud: r is measured over its packets, and what the limited leave is scaled
/// to the others. Here every second packet asks for nothing, r = 1/2, and k / (1 - r) = 1.8.
#[test]
fn a_virtual_router_may_be_p_xcp() {
    use congestlab_core::law::{LinkConfig, pxcp, xcp};
    let scaled = pxcp::LinkConfig { xcp: world::link_config(), ..pxcp::LinkConfig::DEFAULT };
    let granted = |law| {
        let mut world = pair();
        let config = congestlab_net::xcp_i::Config { law, ..config() };
        world.add(Edge::new(config, K, Role::Router, Stream::named(1, "k")));
        world.cloud(U, K, View { capacity: 3_750_000, load: 3_740_000 });
        world.port = PortView { mean_rtt: Duration(100 * MS), ..PortView::default() };
        let mut granted = 0;
        for n in 0..400 {
            world.run(at(5 * n));
            let mut packet = data(U, 1);
            let demand = if n % 2 == 0 { i32::MAX } else { 0 };
            packet.set_header(xcp::Header {
                delta: demand,
                ..packet.header::<xcp::Header>().unwrap_or_default()
            });
            world.data(K, &mut packet);
            if n >= 300 && n % 2 == 0 {
                granted += i64::from(packet.header::<xcp::Header>().unwrap_or_default().delta);
            }
        }
        granted
    };
    let (plain, proportional) =
        (granted(LinkConfig::Xcp(world::link_config())), granted(LinkConfig::Pxcp(scaled)));
    assert!(plain > 0 && proportional as f64 > 1.5 * plain as f64, "{plain} {proportional}");
}

#[test]
fn an_overloaded_cloud_takes() {
    let mut world = pair();
    world.cloud(U, K, View { capacity: 3_750_000, load: 5_000_000 });
    world.port = PortView { mean_rtt: Duration(100 * MS), ..PortView::default() };
    let grants = world.grants(U, K, at(2001), at(2100));
    assert_eq!(world.only_cloud(K).estimate(world.now).unwrap(), -1_250_000);
    assert_eq!(world.only_cloud(K).report().feedback, -500_000);
    assert!((-500_100..=-450_000).contains(&grants), "{grants}");
}

#[test]
fn an_unsigned_estimate_of_an_overloaded_cloud_only_shuffles() {
    let mut world = pair();
    let unsigned = congestlab_net::xcp_i::Config { signed: false, ..config() };
    world.add(Edge::new(unsigned, K, Role::Router, Stream::named(1, "k")));
    world.cloud(U, K, View { capacity: 3_750_000, load: 5_000_000 });
    let grants = world.grants(U, K, at(2001), at(2100));
    assert_eq!(world.only_cloud(K).estimate(world.now).unwrap(), 0);
    assert_eq!(world.only_cloud(K).report().feedback, 0);
    // What the shuffle takes of a lone flow it gets back.
    assert!((-5_000..=5_000).contains(&grants), "{grants}");
}

#[test]
fn the_queue_of_the_router_counts_unless_told_otherwise() {
    for (queue, expected) in [
        (VirtualQueue::Host, 1_000_000 - 113_000),
        (VirtualQueue::None, 1_000_000),
        (VirtualQueue::Cloud, 1_000_000),
    ] {
        let mut world = pair();
        let config = congestlab_net::xcp_i::Config { virtual_queue: queue, ..config() };
        world.add(Edge::new(config, K, Role::Router, Stream::named(1, "k")));
        world.cloud(U, K, View { capacity: 3_750_000, load: 1_250_000 });
        world.port = PortView { mean_rtt: Duration(100 * MS), queue: Bytes(50_000), port: 0 };
        world.stream_of_data(U, K, at(2000));
        // beta Q / d = 0.226 * 50 kB / 0.1 s.
        assert_eq!(world.only_cloud(K).report().feedback, expected, "{queue:?}");
    }
}

#[test]
fn the_queue_of_the_cloud_is_what_delays_its_control_packets() {
    let mut world = pair();
    let config = congestlab_net::xcp_i::Config { virtual_queue: VirtualQueue::Cloud, ..config() };
    world.add(Edge::new(config, K, Role::Router, Stream::named(1, "k")));
    world.cloud(U, K, View { capacity: 3_750_000, load: 1_250_000 });
    world.port = PortView { mean_rtt: Duration(100 * MS), ..PortView::default() };
    // The clocks of the edges are a year apart.
    world.skew = 31_536_000 * SECOND;
    world.stream_of_data(U, K, at(2000));
    assert_eq!(world.only_cloud(K).report().feedback, 1_000_000);
    // From now on each packet towards K waits for 30 ms more: 30 ms of 100 kB/s are 3 kB of this traffic,
    // and 0.226 * 3 kB / 0.1 s = 6780 B/s.
    world.fate(|_, to, _| if to.address == K { Fate::Late(30 * MS) } else { Fate::Arrives });
    world.stream_of_data(U, K, at(4000));
    let feedback = world.only_cloud(K).report().feedback;
    assert!((993_000..=993_500).contains(&feedback), "{feedback}");
}

#[test]
fn without_an_estimate_packets_pass_or_are_held() {
    for (policy, delta, expected) in [
        (NoEstimate::Pass, 5000, 5000),
        (NoEstimate::Pass, -5000, -5000),
        (NoEstimate::Hold, 5000, 0),
        (NoEstimate::Hold, -5000, -5000),
    ] {
        let mut world = pair();
        let config = congestlab_net::xcp_i::Config { no_estimate: policy, ..config() };
        world.add(Edge::new(config, K, Role::Router, Stream::named(1, "k")));
        let mut packet = data(U, 1);
        let header = xcp::Header { delta, ..packet.header::<xcp::Header>().unwrap_or_default() };
        packet.set_header(header);
        world.data(K, &mut packet);
        assert_eq!(packet.header::<xcp::Header>().unwrap_or_default().delta, expected, "{policy:?}");
    }
}

/// Reports that came and come no more: nobody is let in on `pass` either, until one comes again or the
/// path is broken.
#[test]
fn a_stale_estimate_lets_nobody_in_whatever_the_policy() {
    let mut world = pair();
    world.port.mean_rtt = Duration(100 * MS);
    world.stream_of_data(U, K, at(1_000));
    let is_report = |packet: &Packet| matches!(verb(packet), Some(Verb::Report { .. }));
    world.fate(move |packet, _, _| if is_report(packet) { Fate::Lost } else { Fate::Arrives });
    world.stream_of_data(U, K, at(1_500));
    assert_eq!(world.only_cloud(K).state(world.now), State::Est);
    let granted = world.grants(U, K, at(1_500), at(2_000));
    assert!(granted < 0, "{granted} B/s: some is taken back while an answer is overdue");
    // Three attempts of 1 s after the last answer the path counts as broken, and as one that is new.
    world.stream_of_data(U, K, at(4_300));
    assert_eq!(world.edges[&K].stats().broken, 1);
    assert!(world.grants(U, K, at(4_300), at(4_400)) > 0);
    world.fate(|_, _, _| Fate::Arrives);
    world.stream_of_data(U, K, at(6_000));
    assert_eq!(world.only_cloud(K).state(world.now), State::Valid);
}

#[test]
fn a_router_hides_the_cloud_and_a_receiver_leaves_the_header() {
    let mut world = pair();
    let mut packet = data(U, 1);
    assert_eq!(packet.header::<Extension>().unwrap_or_default(), Extension { ttl: 62, xcp_ttl: 63, last: U });
    world.data(K, &mut packet);
    packet.decrement_ttl();
    assert_eq!(packet.header::<Extension>().unwrap_or_default(), Extension { ttl: 61, xcp_ttl: 61, last: K });

    let mut receiver = Edge::<View>::new(config(), K, Role::Receiver, Stream::named(1, "k"));
    let mut packet = data(U, 1);
    receiver.on_data(at(0), &mut packet, ONE, &PortView::default());
    assert_eq!(packet.header::<Extension>().unwrap_or_default(), Extension { ttl: 62, xcp_ttl: 63, last: U });
    assert_eq!(receiver.clouds().count(), 1);
}

#[test]
fn packets_without_the_extension_are_nobodys() {
    let mut world = pair();
    let mut packet = Packet { size: 1000, kind: Kind::Data, ..Packet::default() };
    let before = packet;
    world.data(K, &mut packet);
    assert_eq!(packet, before);
    assert_eq!(world.edges[&K].clouds().count(), 0);
}

#[test]
fn an_anomaly_is_counted_and_is_no_cloud() {
    let mut world = pair();
    let mut packet = data(U, 0);
    packet.set_header(Extension { ttl: 255, xcp_ttl: 63, last: U });
    world.data(K, &mut packet);
    assert_eq!(world.edges[&K].stats().anomalies, 1);
    assert_eq!(world.edges[&K].clouds().count(), 0);
    packet.decrement_ttl();
    assert_eq!(
        packet.header::<Extension>().unwrap_or_default(),
        Extension { ttl: 254, xcp_ttl: 254, last: K }
    );
}

#[test]
fn a_path_of_interoperable_routers_alone_has_no_clouds() {
    let mut world = pair();
    world.data(K, &mut data(U, 0));
    assert_eq!(world.edges[&K].clouds().count(), 0);
    assert_eq!(world.edges[&K].stats().requests, 0);
}

/// Dossier 3.9: the first packets do not know their round trip time.
#[test]
fn packets_that_do_not_know_their_round_trip_time_are_detected() {
    let mut world = pair();
    let mut packet = data(U, 1);
    packet.set_header(xcp::Header::default());
    world.data(K, &mut packet);
    assert_eq!(world.only_cloud(K).state(at(0)), State::Req);
    assert_eq!(packet.header::<xcp::Header>().unwrap_or_default().delta, 0);
}

#[test]
fn v3_2_clouds_of_one_and_of_two_routers_behind_one_upstream_share_an_entry() {
    let mut world = pair();
    world.data(K, &mut data(U, 1));
    world.data(K, &mut data(U, 2));
    assert_eq!(world.edges[&K].clouds().count(), 1);
    assert_eq!(world.edges[&K].stats().crossed, 2);
}

#[test]
fn two_clouds_in_series_are_two_virtual_routers() {
    let (r1, r2, r3) = (Address(1), Address(2), Address(3));
    let mut world = World::new();
    for address in [r1, r2, r3] {
        world.add(Edge::new(config(), address, Role::Router, Stream::named(1, "n")));
    }
    world.cloud(r1, r2, View { capacity: 3_750_000, load: 0 });
    world.cloud(r2, r3, View { capacity: 1_250_000, load: 0 });
    let mut last = Packet::default();
    for ms in (0..3000).step_by(10) {
        world.run(at(ms));
        last = data(r1, 1);
        world.data(r2, &mut last);
        let at_r2 = last.header::<xcp::Header>().unwrap_or_default().delta;
        // The router r2's own decrement, and the second cloud's.
        last.decrement_ttl();
        last.decrement_ttl();
        world.data(r3, &mut last);
        assert!(last.header::<xcp::Header>().unwrap_or_default().delta <= at_r2);
    }
    let found = |k| world.only_cloud(k).estimate(world.now).unwrap();
    assert_eq!((found(r2), found(r3)), (3_750_000, 1_250_000));
    assert_eq!((world.only_cloud(r2).upstream(), world.only_cloud(r3).upstream()), (r1, r2));
    assert_eq!(last.header::<Extension>().unwrap_or_default().last, r3);
    let feedback = world.only_cloud(r3).report().feedback;
    assert!((499_995..=500_000).contains(&feedback), "{feedback}");
}

/// XI fig. 7: clouds that merge are a virtual router each.
#[test]
fn each_upstream_neighbour_has_an_entry_of_its_own() {
    let (i, j) = (Address(10), Address(11));
    let mut world = pair();
    for (upstream, capacity) in [(i, 3_750_000), (j, 1_250_000)] {
        world.add(Edge::new(config(), upstream, Role::Sender, Stream::named(1, "s")));
        world.cloud(upstream, K, View { capacity, load: 0 });
    }
    for ms in (0..1000).step_by(10) {
        world.run(at(ms));
        world.data(K, &mut data(i, 1));
        world.data(K, &mut data(j, 1));
    }
    let found: Vec<_> = world.edges[&K]
        .clouds()
        .map(|(slot, cloud)| (slot, cloud.upstream(), cloud.estimate(world.now).unwrap()))
        .collect();
    assert_eq!(found, [(0, i, 3_750_000), (1, j, 1_250_000)]);
}

/// XI fig. 11: k-1 answers every edge that asks, each with a round of its own.
#[test]
fn a_fork_is_answered_on_both_sides() {
    let (left, right) = (Address(20), Address(21));
    let mut world = pair();
    for k in [left, right] {
        world.add(Edge::new(config(), k, Role::Router, Stream::named(1, "k")));
        world.cloud(U, k, View { capacity: 6_250_000, load: 1_000_000 });
    }
    for ms in (0..1000).step_by(10) {
        world.run(at(ms));
        world.data(left, &mut data(U, 1));
        world.data(right, &mut data(U, 1));
    }
    for k in [left, right] {
        let bandwidth = world.only_cloud(k).estimate(world.now).unwrap();
        // The load was rounded down twice.
        assert!((5_250_000..=5_250_001).contains(&bandwidth), "{bandwidth}");
    }
}

#[test]
fn a_sending_host_answers_the_first_router_behind_a_cloud() {
    let host = Address(9);
    let mut world = pair();
    let sender = Edge::<View>::new(config(), host, Role::Sender, Stream::named(1, "h"));
    let mut packet = data(U, 1);
    sender.originate(&mut packet);
    assert_eq!(
        packet.header::<Extension>().unwrap_or_default(),
        Extension { ttl: 64, xcp_ttl: 64, last: host }
    );
    world.add(sender);
    world.cloud(host, K, View { capacity: 1_000_000, load: 0 });
    packet.decrement_ttl();
    world.data(K, &mut packet);
    world.run(at(40));
    assert_eq!(world.only_cloud(K).estimate(world.now).unwrap(), 1_000_000);
}

/// XI III-B: a receiver lowers Delta_Throughput before it is returned; Q is 0 and d is what the
/// headers say (docs/design/protocols.md 3.6).
#[test]
fn a_receiving_host_is_an_edge_without_a_port() {
    let mut world = pair();
    world.add(Edge::new(config(), K, Role::Receiver, Stream::named(1, "k")));
    world.cloud(U, K, View { capacity: 3_750_000, load: 1_250_000 });
    let grants = world.grants(U, K, at(2001), at(2100));
    let report = world.only_cloud(K).report();
    // Rates of two spans were compared, each rounded down.
    assert!((999_995..=1_000_000).contains(&report.feedback), "{report:?}");
    assert_eq!(report.interval, Duration::from_header(Duration(100 * MS).to_header()));
    assert!((900_000..=1_000_100).contains(&grants), "{grants}");
}

#[test]
fn a_route_change_makes_a_new_entry_and_the_old_one_times_out() {
    let other = Address(5);
    let mut world = pair();
    world.add(Edge::new(config(), other, Role::Router, Stream::named(1, "o")));
    world.cloud(other, K, View { capacity: 1_250_000, load: 0 });
    world.stream_of_data(U, K, at(1000));
    world.stream_of_data(other, K, at(10_985));
    assert_eq!(world.edges[&K].clouds().count(), 2);
    world.stream_of_data(other, K, at(11_100));
    let left: Vec<_> = world.edges[&K].clouds().map(|(slot, cloud)| (slot, cloud.upstream())).collect();
    assert_eq!(left, [(1, other)]);
    assert_eq!(world.edges[&K].stats().idle, 1);
    // Nobody asks on: all control packets of the old cloud have been sent by then.
    let asked = world.edges[&K].stats().requests;
    world.run(at(40_000));
    assert_eq!(world.edges[&K].clouds().count(), 0);
    assert!(world.edges[&K].stats().requests > asked, "the other entry asked until it was idle");
    assert_eq!(world.edges[&K].next_deadline(), Time::NEVER);
}

#[test]
fn v3_4_lost_requests_are_repeated_and_break_the_path() {
    let mut world = pair();
    world.fate(|packet, _, _| match verb(packet) {
        Some(Verb::Request { .. }) => Fate::Lost,
        _ => Fate::Arrives,
    });
    for ms in (0..=3500).step_by(100) {
        world.run(at(ms));
        world.data(K, &mut data(U, 1));
        let state = world.only_cloud(K).state(world.now);
        assert_eq!(state, if ms < 3000 { State::Req } else { State::Broken }, "{ms} ms");
    }
    assert_eq!(world.sent_at(Kind::Control), [at(0), at(1000), at(2000)]);
    assert_eq!(world.edges[&K].stats().broken, 1);
    // 3.5 s was within the back-off; the packet at 4.2 s restarts.
    world.run(at(4200));
    assert_eq!(world.sent_at(Kind::Control).len(), 3);
    world.fate(|_, _, _| Fate::Arrives);
    world.data(K, &mut data(U, 1));
    assert_eq!(world.only_cloud(K).state(world.now), State::Req);
    world.run(at(4300));
    assert_eq!(world.only_cloud(K).state(world.now), State::Valid);
}

#[test]
fn a_lost_acknowledgment_does_not_matter_when_the_report_comes() {
    let mut world = pair();
    world.fate(|packet, _, _| match verb(packet) {
        Some(Verb::Ack { .. }) => Fate::Lost,
        _ => Fate::Arrives,
    });
    world.data(K, &mut data(U, 1));
    world.run(at(40));
    assert_eq!(world.only_cloud(K).state(world.now), State::Valid);
    assert_eq!(world.only_cloud(K).rtt(), Duration(0));
}

#[test]
fn a_lost_report_is_repeated_on_demand() {
    let mut world = pair();
    let mut lost = 0;
    world.fate(move |packet, _, _| match verb(packet) {
        Some(Verb::Report { .. }) if lost == 0 => {
            lost += 1;
            Fate::Lost
        }
        _ => Fate::Arrives,
    });
    world.data(K, &mut data(U, 1));
    world.run(at(40));
    assert_eq!(world.only_cloud(K).state(world.now), State::Est);
    world.run(at(1000));
    world.data(K, &mut data(U, 1));
    // A time-out behind the acknowledgment, and a round trip.
    world.run(at(1079));
    assert_eq!(world.only_cloud(K).state(world.now), State::Est);
    world.run(at(1080));
    assert_eq!(world.only_cloud(K).state(world.now), State::Valid);
    // One repetition, and the next request, whose time has come long ago.
    assert_eq!(world.edges[&K].stats().requests, 3);
}

#[test]
fn an_estimator_that_never_answers_breaks_the_path() {
    let mut world = pair();
    world.fate(|packet, _, _| match verb(packet) {
        Some(Verb::Report { .. }) => Fate::Lost,
        _ => Fate::Arrives,
    });
    let mut states = Vec::new();
    for ms in (0..=9000).step_by(10) {
        world.run(at(ms));
        world.data(K, &mut data(U, 1));
        let state = world.only_cloud(K).state(world.now);
        if states.last() != Some(&state) {
            states.push(state);
        }
    }
    use State::{Broken, Est, Req};
    assert_eq!(states, [Req, Est, Broken, Req, Est, Broken, Req, Est]);
    assert_eq!(world.edges[&K].stats().estimates, 0);
}

#[test]
fn one_control_packet_in_ten_lost_leaves_the_estimate_standing() {
    let mut world = pair();
    world.port = PortView { mean_rtt: Duration(100 * MS), ..PortView::default() };
    let mut draw = Stream::named(1, "loss");
    world.fate(move |_, _, _| if draw.below(10) == 0 { Fate::Lost } else { Fate::Arrives });
    let mut invalid = 0;
    for ms in (0..60_000).step_by(10) {
        world.run(at(ms));
        world.data(K, &mut data(U, 1));
        invalid += u32::from(world.only_cloud(K).state(world.now) != State::Valid);
    }
    // A request or its report is lost with 0.19, and repeated after three round trips, 120 ms. The
    // estimate is stale, after 300 ms, when that happens twice in a row: 8 times a second 0.036, each for
    // about 100 ms, is 3 % of the time.
    assert!((60..300).contains(&invalid), "{invalid} of 6000");
    assert_eq!(world.edges[&K].stats().broken, 0);
}

#[test]
fn answers_that_queued_for_long_still_count() {
    let mut world = pair();
    world.fate(|_, to, _| if to.address == K { Fate::Late(700 * MS) } else { Fate::Arrives });
    world.data(K, &mut data(U, 1));
    world.run(at(739));
    assert_eq!(world.only_cloud(K).state(world.now), State::Req);
    world.run(at(740));
    assert_eq!(world.only_cloud(K).state(world.now), State::Valid);
    assert_eq!(world.only_cloud(K).rtt(), Duration(740 * MS));
}

#[test]
fn answers_behind_the_timeout_still_count() {
    let mut world = pair();
    world.fate(|_, to, _| if to.address == K { Fate::Late(1200 * MS) } else { Fate::Arrives });
    world.data(K, &mut data(U, 1));
    world.run(at(1200));
    assert_eq!(world.edges[&K].stats().requests, 2, "it was repeated");
    world.run(at(1240));
    assert_eq!(world.only_cloud(K).state(world.now), State::Valid);
    world.data(K, &mut data(U, 1));
    // The answers to the repetition come later, when another request may be under way.
    world.run(at(2300));
    assert_eq!(world.edges[&K].stats().unexpected, 2);
}

#[test]
fn a_request_that_comes_twice_is_answered_twice_from_one_round() {
    let mut world = pair();
    world.fate(|packet, _, _| match verb(packet) {
        Some(Verb::Request { .. }) => Fate::Twice(5 * MS),
        _ => Fate::Arrives,
    });
    world.data(K, &mut data(U, 1));
    world.run(at(45));
    let stats = world.edges[&K].stats();
    assert_eq!((stats.estimates, stats.unexpected), (1, 2));
    let bandwidths: Vec<_> = world
        .log
        .iter()
        .filter_map(|(_, packet)| match verb(packet) {
            Some(Verb::Report { bandwidth, .. }) => bandwidth,
            _ => None,
        })
        .collect();
    assert_eq!(bandwidths, [2_500_000, 2_500_000]);
}

#[test]
fn forged_answers_are_counted_and_change_nothing() {
    let mut world = pair();
    world.data(K, &mut data(U, 1));
    let (_, request) = *world.log.last().unwrap();
    let request = Message::from_packet(&request).unwrap();
    let report = Verb::Report { bandwidth: Some(i64::MAX), sent: 0 };
    let forge = |from: Address, id: u32, nonce: u64, verb: Verb| {
        Message { verb, from, id, nonce, stamp: at(1) }.to_packet()
    };
    let ack = Verb::Ack { takes: Duration(u64::MAX), echo: Time(0) };
    let edge = world.edges.get_mut(&K).unwrap();
    // Who has not seen the nonce, who knows another number, and a request of before.
    edge.handle_control(at(1), &forge(U, request.id, request.nonce ^ 1, report), ONE);
    edge.handle_control(at(1), &forge(U, request.id, request.nonce ^ 1, ack), ONE);
    edge.handle_control(at(1), &forge(U, request.id.wrapping_sub(1), request.nonce, report), ONE);
    assert_eq!(edge.stats().unexpected, 3);
    // A node without an entry, and a request of somebody who may not ask.
    edge.handle_control(at(1), &forge(Address(666), request.id, request.nonce, report), ONE);
    edge.handle_control(at(1), &forge(Address(666), 1, 1, Verb::Request { parameter: 1 }), ONE);
    // Rubbish, and a probe of no round.
    edge.handle_control(at(1), &Packet { kind: Kind::Control, ..Packet::default() }, ONE);
    edge.handle_control(
        at(1),
        &Packet { kind: Kind::Data, words: [4, U.0, 0, 0, 0, 0, 0, 0], ..Packet::default() },
        ONE,
    );
    assert_eq!(edge.stats().foreign, 4);
    let probe = Probe { from: U, id: request.id, nonce: 0, number: 0, size: 1000, stamp: at(1) };
    edge.handle_probe(at(1), &probe.to_packet());
    assert_eq!(edge.stats().unexpected, 4);
    assert!(edge.poll_transmit().is_none(), "none of them is answered");
    assert_eq!(world.only_cloud(K).state(at(1)), State::Req);
    world.run(at(40));
    assert_eq!(world.only_cloud(K).estimate(world.now).unwrap(), 2_500_000);
}

/// A forged request costs the true one a round, which it gets when it is repeated.
#[test]
fn a_forged_request_does_not_lock_the_true_edge_out() {
    let mut world = pair();
    let forged =
        Message { verb: Verb::Request { parameter: 1 }, from: K, id: u32::MAX / 2, nonce: 5, stamp: at(0) };
    world.control(U, &forged.to_packet());
    world.run(at(100));
    assert_eq!(world.edges[&K].stats().foreign, 2, "answers to the forged one; there is no entry yet");
    world.data(K, &mut data(U, 1));
    world.run(at(140));
    assert_eq!(world.only_cloud(K).state(world.now), State::Valid);
}

#[test]
fn a_report_of_an_old_number_does_not_count() {
    let mut world = pair();
    world.stream_of_data(U, K, at(95));
    let old =
        *world.log.iter().find(|(_, packet)| matches!(verb(packet), Some(Verb::Report { .. }))).unwrap();
    let before = *world.edges[&K].stats();
    world.edges.get_mut(&K).unwrap().handle_control(at(95), &old.1, ONE);
    let after = *world.edges[&K].stats();
    assert_eq!(after.unexpected, before.unexpected + 1);
    assert_eq!(after.estimates, before.estimates);
}

#[test]
fn a_full_table_forgets_the_least_recently_seen() {
    let mut world = World::new();
    world.add(Edge::new(config(), K, Role::Router, Stream::named(1, "k")));
    for n in 0..1024 {
        world.now = Time(u64::from(n));
        world.data(K, &mut data(Address(1000 + n), 1));
    }
    // The first is seen again, so the second is the one to go.
    world.now = Time(2000);
    world.data(K, &mut data(Address(1000), 1));
    assert_eq!(world.edges[&K].clouds().count(), 1024);
    // All of them have sent something within a control interval.
    let mut packet = data(Address(7), 1);
    world.data(K, &mut packet);
    assert_eq!((world.edges[&K].stats().evicted, world.edges[&K].stats().waiting), (0, 1));
    assert_eq!(
        (
            packet.header::<xcp::Header>().unwrap_or_default().delta,
            packet.header::<Extension>().unwrap_or_default().last
        ),
        (0, K),
        "no increase without an entry"
    );
    world.now = at(51);
    world.data(K, &mut data(Address(1000), 1));
    world.data(K, &mut data(Address(7), 1));
    let edge = &world.edges[&K];
    assert_eq!(edge.clouds().count(), 1024);
    assert_eq!(edge.stats().evicted, 1);
    assert!(edge.clouds().any(|(_, cloud)| cloud.upstream() == Address(1000)));
    assert!(edge.clouds().all(|(_, cloud)| cloud.upstream() != Address(1001)));
    // What the evicted one was asked for comes too late; when it comes back it is a new entry, whose
    // requests are not mistaken for old ones.
    let (_, request) = world.log[1];
    let request = Message::from_packet(&request).unwrap();
    let report =
        Message { verb: Verb::Report { bandwidth: Some(1), sent: 0 }, from: Address(1001), ..request };
    let edge = world.edges.get_mut(&K).unwrap();
    edge.handle_control(world.now, &report.to_packet(), ONE);
    assert_eq!(edge.stats().foreign, 1);
    world.data(K, &mut data(Address(1001), 1));
    let (_, again) = *world.log.last().unwrap();
    assert!(again.seq > request.id);
    world.edges.get_mut(&K).unwrap().handle_control(world.now, &report.to_packet(), ONE);
    assert_eq!(world.edges[&K].stats().unexpected, 1);
}

/// More neighbours than places, all of them busy: they take turns, and each turn is long enough for an
/// estimate and what comes of it.
#[test]
fn neighbours_take_turns_in_a_table_that_is_too_small() {
    let mut world = World::new();
    let config = congestlab_net::xcp_i::Config { table: 1, ..config() };
    world.add(Edge::new(config.clone(), K, Role::Router, Stream::named(1, "k")));
    world.port.mean_rtt = Duration(100 * MS);
    let ups = [Address(11), Address(12), Address(13)];
    for up in ups {
        world.add(Edge::new(config.clone(), up, Role::Router, Stream::named(1, "u")));
        world.cloud(up, K, View { capacity: 3_750_000, load: 1_250_000 });
    }
    let mut granted = [0; 3];
    for n in 0..2000 {
        world.run(at(5 * n));
        for (up, granted) in ups.iter().zip(&mut granted) {
            let mut packet = data(*up, 1);
            world.data(K, &mut packet);
            *granted += i64::from(packet.header::<xcp::Header>().unwrap_or_default().delta.min(1_000_000));
        }
    }
    let stats = world.edges[&K].stats();
    // A turn is three intervals.
    assert!((25..60).contains(&stats.evicted), "{stats:?}");
    assert!(stats.estimates > stats.evicted, "{stats:?}");
    assert!(stats.requests < 300, "{stats:?}: no more than for one neighbour at a time");
    assert!(granted.iter().all(|&granted| granted > 0), "{granted:?}");
}

#[test]
fn slots_are_used_again() {
    let mut world = World::new();
    let config = congestlab_net::xcp_i::Config { table: 2, ..config() };
    world.add(Edge::new(config, K, Role::Router, Stream::named(1, "k")));
    for n in 0..100u32 {
        world.now = at(2_000 * u64::from(n));
        world.data(K, &mut data(Address(1000 + n), 1));
        assert!(world.edges[&K].clouds().all(|(slot, _)| slot < 2));
    }
    assert_eq!(world.edges[&K].stats().evicted, 98);
}

#[test]
fn a_bandwidth_used_again_is_less_by_what_own_traffic_grew() {
    let mut world = pair();
    let exchange =
        congestlab_core::law::xcp_i::Config { period: Period::Every(Duration(SECOND)), ..config().exchange };
    let config = congestlab_net::xcp_i::Config { exchange, ..config() };
    world.add(Edge::new(config, K, Role::Router, Stream::named(1, "k")));
    world.cloud(U, K, View { capacity: 3_750_000, load: 1_250_000 });
    world.port = PortView { mean_rtt: Duration(100 * MS), ..PortView::default() };
    // Reports at 50 ms, 1050 ms, ..; 100 kB/s until the one at 5 s, 2 MB/s from then on.
    world.stream_of_data(U, K, at(5051));
    assert_eq!(world.only_cloud(K).report().feedback, 1_000_000);
    for _ in 0..600 {
        world.run(Time(world.now.0 + MS / 2));
        world.data(K, &mut data(U, 1));
    }
    // 1.9 MB/s of the 2.5 are used up since; a packet more or less in an interval are 10 kB/s.
    let feedback = world.only_cloud(K).report().feedback;
    assert!((236_000..=244_000).contains(&feedback), "{feedback}");
}

#[test]
fn what_is_sent_towards_a_peer_is_reported_to_it() {
    let mut world = pair();
    let upstream = world.edges.get_mut(&U).unwrap();
    upstream.on_sent(K, Bytes(1000));
    upstream.on_sent(K, Bytes(500));
    upstream.on_sent(Address(99), Bytes(1));
    world.data(K, &mut data(U, 1));
    world.run(at(40));
    let sent: Vec<_> = world
        .log
        .iter()
        .filter_map(|(_, packet)| match verb(packet) {
            Some(Verb::Report { sent, .. }) => Some(sent),
            _ => None,
        })
        .collect();
    assert_eq!(sent, [1500]);
}

#[test]
fn messages_and_probes_survive_their_packets() {
    for verb in [
        Verb::Request { parameter: u64::MAX },
        Verb::Ack { takes: Duration(1 << 40), echo: Time(u64::MAX - 1) },
        Verb::Report { bandwidth: None, sent: 1 << 50 },
        Verb::Report { bandwidth: Some(i64::MIN), sent: 3 },
        Verb::Report { bandwidth: Some(-1), sent: 0 },
    ] {
        let message =
            Message { verb, from: Address(0x0a00_0001), id: 7, nonce: u64::MAX - 5, stamp: Time(9) };
        let packet = message.to_packet();
        assert_eq!(packet.size, 40);
        assert_eq!(Message::from_packet(&packet), Some(message));
        assert_eq!(Probe::from_packet(&packet), None);
    }
    let probe =
        Probe { from: Address(3), id: 4, nonce: 1 << 63, number: u16::MAX, size: 1500, stamp: Time(1 << 60) };
    assert_eq!(Probe::from_packet(&probe.to_packet()), Some(probe));
    assert_eq!(Message::from_packet(&probe.to_packet()), None);
}

mod oracle {
    use super::*;
    use congestlab_net::xcp_i::estimator::{Answer, Probing, Step};

    fn round(oracle: &mut Oracle<View>) -> i64 {
        assert_eq!(oracle.begin(at(500), 100 * MS), Duration(0));
        assert_eq!(oracle.next_deadline(), at(500));
        let Some(Step::Done(Answer::Bandwidth(bandwidth))) = oracle.poll(at(500)) else { panic!() };
        assert_eq!((oracle.poll(at(500)), oracle.next_deadline()), (None, Time::NEVER));
        bandwidth
    }

    #[test]
    fn is_exact_and_draws_nothing_without_an_error() {
        let view = View { capacity: 3_750_000, load: 1_250_000 };
        let mut oracle = Oracle::new(OracleConfig::default(), view, Stream::named(1, "e"));
        assert_eq!(round(&mut oracle), 2_500_000);
        assert_eq!(oracle.draws(), 0);
    }

    /// C-16: ten per cent of the capacity are three times ten per cent of this residual.
    #[test]
    fn errors_are_uniform_on_what_they_are_a_part_of() {
        let view = View { capacity: 3_750_000, load: 2_500_000 };
        for (base, most) in [(ErrorBase::Capacity, 375_000), (ErrorBase::Residual, 125_000)] {
            let config = OracleConfig { error: Ratio::ppm(100_000), base };
            let mut oracle = Oracle::new(config, view, Stream::named(1, "e"));
            let errors: Vec<i64> = (0..10_000).map(|_| round(&mut oracle) - 1_250_000).collect();
            let (low, high) = (*errors.iter().min().unwrap(), *errors.iter().max().unwrap());
            assert!(-most <= low && low < -most * 99 / 100, "{low}");
            assert!(most * 99 / 100 < high && high <= most, "{high}");
            // The mean of a uniform distribution, within 4 standard errors of 10^4 draws.
            let mean = errors.iter().sum::<i64>() / 10_000;
            assert!(mean.abs() < most * 231 / 10_000, "{mean}");
            assert_eq!(oracle.draws(), 10_000);
        }
    }

    /// The least residual of all links, which need not be that of the narrowest.
    #[test]
    fn the_tightest_link_counts() {
        #[derive(Debug)]
        struct Two;
        impl congestlab_net::xcp_i::LinkView for Two {
            fn read(&mut self, since: Time, now: Time, mut each: impl FnMut(Rate, Bytes)) {
                let bytes = |rate: u64| Rate(rate).over(now - since);
                each(Rate(1_000_000), bytes(0));
                each(Rate(2_000_000), bytes(2_500_000));
            }
        }
        let mut prober = Prober::Oracle(Oracle::new(OracleConfig::default(), Two, Stream::named(1, "e")));
        prober.begin(at(500), 100 * MS);
        assert_eq!(prober.poll(at(500)), Some(Step::Done(Answer::Bandwidth(-500_000))));
    }

    #[test]
    fn a_run_that_has_just_begun_has_no_load() {
        let view = View { capacity: 3_750_000, load: 1_250_000 };
        let mut oracle = Oracle::new(OracleConfig::default(), view, Stream::named(1, "e"));
        oracle.begin(Time(0), 100 * MS);
        assert_eq!(oracle.poll(Time(0)), Some(Step::Done(Answer::Bandwidth(3_750_000))));
    }
}

/// A second way between U and K, with 4 Mbit/s left.
const OTHER: Way = Way(9);

fn pair_of_ways() -> World {
    let mut world = pair();
    world.cloud_by(OTHER, U, K, View { capacity: 3_750_000, load: 3_250_000 });
    world.port.mean_rtt = Duration(100 * MS);
    world
}

/// What U's last report says, while it holds.
fn estimate(world: &World) -> Option<i64> {
    world.only_cloud(K).estimate(world.now)
}

/// At least three measured round trips (docs/design/protocols.md 3.4), whatever the time-out: what comes after all
/// attempts shows how long they must last.
#[test]
fn a_time_out_below_the_round_trip_is_found_out() {
    let mut world = pair();
    let mut config = config();
    config.exchange.timeout = Duration(10 * MS);
    world.add(Edge::new(config, K, Role::Router, Stream::named(1, "k")));
    world.port.mean_rtt = Duration(100 * MS);
    world.data(K, &mut data(U, 1));
    world.run(at(39));
    assert_eq!(world.only_cloud(K).state(world.now), State::Broken);
    world.run(at(40));
    assert_eq!(world.only_cloud(K).state(world.now), State::Valid);
    let before = *world.edges[&K].stats();
    world.stream_of_data(U, K, at(10_000));
    let after = *world.edges[&K].stats();
    assert_eq!(after.broken, before.broken);
    assert_eq!(after.requests - before.requests, after.estimates - before.estimates, "none is repeated");
}

#[test]
fn a_route_change_is_followed_within_a_control_interval() {
    let mut world = pair_of_ways();
    world.stream_of_data(U, K, at(2_000));
    assert_eq!((world.only_cloud(K).way(), estimate(&world)), (ONE, Some(2_500_000)));
    world.way = OTHER;
    // A request may just have left; then an interval, and the round trip of the next.
    world.stream_of_data(U, K, at(2_010));
    assert_eq!(world.only_cloud(K).way(), OTHER);
    world.stream_of_data(U, K, at(2_200));
    assert_eq!(estimate(&world), Some(500_000));
    // And back: the same entry.
    world.way = ONE;
    world.stream_of_data(U, K, at(2_400));
    assert_eq!(estimate(&world), Some(2_500_000));
    assert_eq!(world.edges[&K].stats().requests, world.edges[&K].stats().estimates, "each was answered");
}

#[test]
fn a_route_change_does_not_wait_for_a_long_period() {
    let mut world = pair_of_ways();
    let mut config = config();
    config.exchange.period = Period::Every(Duration(30 * SECOND));
    world.add(Edge::new(config, K, Role::Router, Stream::named(1, "k")));
    world.stream_of_data(U, K, at(2_000));
    assert_eq!(estimate(&world), Some(2_500_000));
    world.way = OTHER;
    world.stream_of_data(U, K, at(2_060));
    assert_eq!(estimate(&world), Some(500_000));
}

/// The path that was asked is gone with the request. The next attempt takes the other, and the back-off
/// of a broken path is not that of another one.
#[test]
fn a_request_that_is_lost_with_its_path_is_repeated_on_the_next() {
    for (turns, asks) in [(1_500, 2_000), (3_200, 3_200)] {
        let mut world = pair_of_ways();
        world.fate(|_, to, _| if to.way == ONE { Fate::Lost } else { Fate::Arrives });
        world.data(K, &mut data(U, 1));
        world.run(at(turns));
        world.way = OTHER;
        world.data(K, &mut data(U, 1));
        world.run(at(asks + 39));
        assert_eq!(estimate(&world), None);
        world.run(at(asks + 40));
        assert_eq!(estimate(&world), Some(500_000), "turned at {turns} ms");
    }
}

/// One entry: the estimate mixes the paths (docs/design/protocols.md 3.9), and asks no more often for it.
#[test]
fn two_paths_at_once_share_an_entry() {
    let mut world = pair_of_ways();
    let mut found = Vec::new();
    for n in 1..=200 {
        world.run(at(50 * n));
        for way in [ONE, OTHER] {
            // In turn the one and the other is the newest.
            world.way = if n % 3 == 0 { way } else { Way(OTHER.0 - way.0) };
            world.data(K, &mut data(U, 1));
        }
        found.extend(estimate(&world));
    }
    let count = |bandwidth| found.iter().filter(|&&found| found == bandwidth).count();
    let (one, other) = (count(2_500_000), count(500_000));
    assert_eq!(one + other, found.len());
    assert!(one > 50 && other > 50, "{one} {other}");
    let stats = world.edges[&K].stats();
    assert!((98..=101).contains(&stats.requests), "{stats:?}");
    assert_eq!(world.edges[&K].clouds().count(), 1);
}

/// Whatever arrives, in whatever order and at whatever time: the table stays within its bound, time
/// goes on, and nothing panics.
#[test]
fn a_hundred_thousand_random_operations() {
    let mut draw = Stream::named(1, "operations");
    let table = 8;
    let config = congestlab_net::xcp_i::Config { table, ..config() };
    let mut edge = Edge::new(config, K, Role::Router, Stream::named(1, "k"));
    for n in 0..6 {
        let view = View { capacity: draw.below(1 << 40), load: draw.below(1 << 40) };
        let oracle = Oracle::new(
            OracleConfig { error: Ratio::ppm(500_000), base: ErrorBase::Capacity },
            view,
            Stream::named(n, "e"),
        );
        let (address, way) = (Address(n as u32 % 4), Way(n as u32 / 4));
        edge.answer(Neighbour { address, way }, Prober::Oracle(oracle));
    }
    let mut now = Time(0);
    let mut sent: Vec<Packet> = Vec::new();
    let mut answered = 0;
    for _ in 0..100_000 {
        let step = [0, 1, 1_000, 1_000_000, 300_000_000][draw.below(5) as usize];
        now = Time(now.0 + if draw.below(1000) == 0 { 11 * SECOND } else { step });
        if draw.below(3) > 0 && edge.next_deadline() <= now {
            edge.handle_deadline(now);
            assert!(edge.next_deadline() > now, "what was due is served");
        }
        let upstream = Address(draw.below(16) as u32);
        let way = Way(draw.below(40).saturating_sub(36) as u32);
        match draw.below(8) {
            0..3 => {
                let mut packet = data(upstream, draw.below(3) as u8);
                if draw.below(4) == 0 {
                    // Rubbish in its headers, which stay what they are.
                    let tag = packet.words[7];
                    packet.words = core::array::from_fn(|_| draw.next_u32());
                    packet.words[7] = tag;
                }
                let asked = packet.header::<xcp::Header>().unwrap_or_default().delta;
                edge.on_data(
                    now,
                    &mut packet,
                    way,
                    &PortView {
                        port: 0,
                        mean_rtt: Duration(draw.below(2) * draw.below(3 * SECOND)),
                        queue: Bytes(draw.below(1 << 30)),
                    },
                );
                assert!(
                    packet.header::<xcp::Header>().unwrap_or_default().delta <= asked,
                    "no router raises what another granted"
                );
                let extension = packet.header::<Extension>().unwrap_or_default();
                assert_eq!((extension.last, extension.xcp_ttl), (K, extension.ttl.saturating_sub(1)));
            }
            3 => {
                // Rubbish of either kind.
                let kind = if draw.below(2) == 0 { Kind::Control } else { Kind::Probe };
                let mut packet =
                    Packet { kind, seq: draw.next_u32(), stamp_ns: draw.next_u64(), ..Packet::default() };
                packet.words = core::array::from_fn(|_| draw.next_u32());
                packet.words[0] = draw.below(6) as u32;
                packet.words[1] = draw.below(16) as u32;
                if kind == Kind::Control {
                    edge.handle_control(now, &packet, way)
                } else {
                    edge.handle_probe(now, &packet)
                }
            }
            4..7 => {
                // An answer to a request that was sent at some time, which may be long ago.
                if let Some(at) = (!sent.is_empty()).then(|| draw.below(sent.len() as u64) as usize) {
                    let (to, request) = (Address(sent[at].words[7]), Message::from_packet(&sent[at]));
                    if let Some(request) = request {
                        let verb = match draw.below(3) {
                            0 => Verb::Ack {
                                takes: Duration(draw.next_u64() >> draw.below(64)),
                                echo: request.stamp,
                            },
                            1 => Verb::Report { bandwidth: None, sent: draw.next_u64() },
                            _ => Verb::Report {
                                bandwidth: Some(draw.next_u64() as i64 >> draw.below(64)),
                                sent: 0,
                            },
                        };
                        let before = edge.stats().estimates;
                        edge.handle_control(
                            now,
                            &Message { verb, from: to, stamp: now, ..request }.to_packet(),
                            way,
                        );
                        answered += edge.stats().estimates - before;
                    }
                }
            }
            _ => {
                let request = Message {
                    verb: Verb::Request { parameter: draw.next_u64() >> draw.below(64) },
                    from: upstream,
                    id: draw.below(4) as u32,
                    nonce: draw.below(4),
                    stamp: now,
                };
                edge.handle_control(now, &request.to_packet(), way);
            }
        }
        while let Some((mut packet, to)) = edge.poll_transmit() {
            if matches!(verb(&packet), Some(Verb::Request { .. })) {
                packet.words[7] = to.address.0;
                sent.push(packet);
                if sent.len() > 20 {
                    sent.remove(0);
                }
            }
        }
        assert!(edge.clouds().count() <= table);
        for (_, cloud) in edge.clouds() {
            let is_valid = cloud.state(now) == State::Valid;
            assert_eq!(is_valid, cloud.estimate(now).is_some());
        }
    }
    // It has been everywhere.
    let stats = edge.stats();
    assert!(answered > 500, "{stats:?}");
    assert!(stats.evicted > 100 && stats.idle > 0 && stats.broken > 10, "{stats:?}");
    assert!(stats.unexpected > 100 && stats.foreign > 100 && stats.anomalies > 100, "{stats:?}");
}
