//! Vectors of the link law.

use super::*;
use congestlab_core::law::xcp::{ByteEcho, Echo};
use congestlab_core::units::Bytes;
use congestlab_core::wire::xcp::HeaderV1;

/// Within the header's step.
fn near(found: i32, exact: f64) {
    assert!((f64::from(found) - exact).abs() <= 1.0, "{found} B/s is not within 1 B/s of {exact}");
}

/// TH 3.4.1, a packet of 1500 B at 2500 B/ms as version 1 states it: 0.6 ms, which whole
/// milliseconds would make 0.
#[test]
fn v1_8_an_inter_packet_time_below_a_millisecond_is_not_lost() {
    let stated = HeaderV1 { rtt: 100, throughput: 2500, delta: ALL, reverse: 0 }.to_header(Bytes(1500));
    let exact = 0.0006 * f64::from(1 << 28);
    assert!((f64::from(stated.x) - exact).abs() <= 1.0, "{} of {exact} units of 2^-28 s", stated.x);
    let sum = f64::from(stated.x) * 1000.0 / f64::from(1 << 28);
    assert!((sum - 0.6).abs() < 1e-5, "1000 packets state {sum} s");
}

/// TH 3.4.3: of 1000 such packets a numerator scaled by 1024 sums up to 599 ms, and each would get
/// 1/599 of what 0.6 ms are of 600 ms: 2003.3 B/s.
#[test]
fn v1_9_a_thousand_packets_share_what_there_is_without_a_rest() {
    let mut link = link(link_config(20_000_000), 100 * MS, 10 * SECOND);
    let stated = HeaderV1 { rtt: 100, throughput: 2500, delta: ALL, reverse: 0 }.to_header(Bytes(1500));
    (0..1000).for_each(|_| link.on_arrival(Time(0), &stated, Bytes(1500)));
    link.on_deadline(Time(100 * MS), Bytes(0));
    // F = 0.4 (20 - 15) MB/s, more than would be shuffled.
    assert_eq!(link.report().feedback, 2_000_000);
    let grants: Vec<i32> = (0..1000).map(|_| depart(&mut link, stated, 1500)).collect();
    grants.iter().for_each(|grant| near(*grant, 2000.0));
    assert!((1_999_000..=2_000_000).contains(&grants.iter().sum::<i32>()));
}

#[test]
fn v1_11_light_load_spreads_the_spare_capacity_equally_per_flow() {
    let mut link = link(link_config(1_250_000), 100 * MS, 10 * SECOND);
    let (a, b) = (header(2 * MS, 100 * MS, ALL), header(10 * MS, 100 * MS, ALL));
    (0..50).for_each(|_| link.on_arrival(Time(0), &a, Bytes(1500)));
    (0..10).for_each(|_| link.on_arrival(Time(0), &b, Bytes(1500)));
    link.on_deadline(Time(100 * MS), Bytes(0));

    let report = link.report();
    assert_eq!(report.intervals, 1);
    assert_eq!(report.input, Rate(900_000));
    assert_eq!(report.feedback, 140_000);
    assert_eq!(report.persistent_queue, Bytes(0));
    // d = 0.1 s as stated in 2^-28 s, rounded up to ns.
    assert_eq!(report.interval, Duration::from_header(a.rtt));
    assert_eq!(link.next_deadline(), Time(100 * MS) + report.interval);

    let to_a: Vec<i32> = (0..50).map(|_| depart(&mut link, a, 1500)).collect();
    let to_b: Vec<i32> = (0..10).map(|_| depart(&mut link, b, 1500)).collect();
    to_a.iter().for_each(|grant| near(*grant, 1400.0));
    to_b.iter().for_each(|grant| near(*grant, 7000.0));
    let sums = [to_a.iter().sum::<i32>(), to_b.iter().sum()];
    assert!(sums.iter().all(|sum| (69_998..=70_001).contains(sum)), "{sums:?}");
    assert!(sums[0] + sums[1] <= 140_000);
}

/// The link of V1.12 after its interval, and the oracle beside it.
fn shuffling_link() -> Link {
    let mut link = link(link_config(1_250_000), 100 * MS, 0);
    with_queue(&mut link, 6000);
    for (count, x, rtt) in [(60, 2000, 100), (20, 5000, 100), (40, 2500, 50)] {
        let header = header(x * 1000, rtt * MS, ALL);
        (0..count).for_each(|_| link.on_arrival(Time(0), &header, Bytes(1000)));
    }
    link.on_deadline(Time(100 * MS), Bytes(6000));
    link
}

#[test]
fn v1_12_shuffling_moves_rate_between_flows() {
    let link = shuffling_link();
    let report = link.report();
    assert_eq!(report.input, Rate(1_200_000));
    assert_eq!(report.persistent_queue, Bytes(6000));
    assert_eq!(report.feedback, 3928); // 3928.889
    let d = report.interval.0 as f64 / 1e9;
    assert!((d - 0.084375).abs() < 1e-7, "{d}");
    for (x, feedback) in [(2000, -217.259), (5000, 907.741), (2500, -29.759)] {
        near(depart(&mut link.clone(), header(x * 1000, 100 * MS, ALL), 1000), feedback);
    }
}

/// Pools are seen through what is left for packets that ask for everything.
fn left(link: &Link) -> (f64, f64) {
    let mut all = link.clone();
    let mut grants = 0.0;
    for _ in 0..200 {
        grants += f64::from(depart(&mut all, header(100 * MS, 100 * MS, ALL), 0));
    }
    let mut all = link.clone();
    let mut cuts = 0.0;
    for _ in 0..200 {
        cuts -= f64::from(depart(&mut all, Header { delta: ALL, ..Header::default() }, 100_000));
    }
    (grants, cuts)
}

#[test]
fn v1_13_a_demand_below_the_feedback_is_captured() {
    let mut link = shuffling_link();
    assert_eq!(depart(&mut link, header(5 * MS, 100 * MS, 10), 1000), 10);
    let (grants, cuts) = left(&link);
    assert!((grants - 118_125.0).abs() < 1.0, "{grants}");
    assert!((cuts - 114_206.111).abs() < 1.0, "{cuts}");

    // Without capture the packet has used its shares all the same (1.5, both min clamps).
    let mut config = link_config(1_250_000);
    config.capture = false;
    let mut plain = super::link(config, 100 * MS, 10 * SECOND);
    plain.on_arrival(Time(0), &header(5 * MS, 100 * MS, 0), Bytes(125_000));
    plain.on_deadline(Time(100 * MS), Bytes(0));
    assert_eq!(depart(&mut plain, header(MS, 100 * MS, 10), 1000), 10);
    let (grants, cuts) = left(&plain);
    assert!((grants - (125_000.0 - 25_000.0)).abs() < 1.0, "{grants}");
    assert!((cuts - (125_000.0 - 1000.0)).abs() < 1.0, "{cuts}");
}

/// TH Ex. 5 and 6, whose shares need no header: equal per flow up, in proportion down.
#[test]
fn v1_17_increases_are_equal_and_decreases_proportional() {
    // Eleven flows of one packet per interval each... ten at 1 MB/s and one at 10 kB/s.
    let up = |rate: u64| header(SECOND * 1000 / rate, SECOND, ALL);
    let mut link = link(link_config(10_000_000 + 1_110_000), SECOND, 10 * SECOND);
    let mut packets = vec![];
    for rate in [[1_000_000; 10].as_slice(), &[10_000]].concat() {
        packets.extend((0..rate / 1000).map(|_| up(rate)));
    }
    packets.iter().for_each(|header| link.on_arrival(Time(0), header, Bytes(1000)));
    link.on_deadline(Time(SECOND), Bytes(0));
    // F = 0.4 (11.11 - 10.01) MB/s = 440000 B/s; the shuffle takes as much as it gives per rate.
    let report = link.report();
    assert_eq!((report.input, report.feedback), (Rate(10_010_000), 440_000));
    let mut change = [0i64; 11];
    for (i, header) in packets.iter().enumerate() {
        let flow = (i / 1000).min(10);
        change[flow] += i64::from(depart(&mut link, *header, 1000));
    }
    // Shuffled: 561000 taken in proportion, given equally.
    let shuffled = 561_000.0;
    for (flow, rate) in [(0, 1e6), (9, 1e6), (10, 1e4)] {
        let exact = 440_000.0 / 11.0 + shuffled / 11.0 - shuffled * rate / 10_010_000.0;
        assert!((change[flow] as f64 - exact).abs() <= 2.0, "flow {flow}: {} of {exact}", change[flow]);
    }

    // -10 % of all: F = 0.4 (C - y) beyond the shuffle, nothing to give.
    let mut link = super::link(link_config(7_507_500), SECOND, 10 * SECOND);
    packets.iter().for_each(|header| link.on_arrival(Time(0), header, Bytes(1000)));
    link.on_deadline(Time(SECOND), Bytes(0));
    assert_eq!(link.report().feedback, -1_001_000);
    let mut change = [0i64; 11];
    for (i, header) in packets.iter().enumerate() {
        change[(i / 1000).min(10)] += i64::from(depart(&mut link, *header, 1000));
    }
    assert!((change[0] + 100_000).abs() <= 1, "{}", change[0]);
    assert!((change[10] + 1000).abs() <= 1, "{}", change[10]);
}

/// TH Ex. 4 prints a tenth, in bytes of window, as a rate (C-02).
#[test]
fn v1_18_the_aggregate_is_a_rate_per_control_interval() {
    let mut link = link(link_config(1_100_000), 100 * MS, 10 * SECOND);
    (0..10).for_each(|_| link.on_arrival(Time(0), &header(10 * MS, 100 * MS, 0), Bytes(1000)));
    link.on_deadline(Time(100 * MS), Bytes(0));
    assert_eq!((link.report().input, link.report().feedback), (Rate(100_000), 400_000));
}

#[test]
fn v1_19_the_queue_is_estimated_over_half_a_round_trip_less_the_queueing() {
    for (rtt, backlog, expected) in
        [(100, 12_500, 45_000_000), (10, 12_500, 2_000_000), (100, 0, 50_000_000), (100, 120_000, 2 * MS)]
    {
        let mut link = link(link_config(1_250_000), 100 * MS, 100 * MS);
        link.on_arrival(Time(0), &header(MS, rtt * MS, 0), Bytes(1000));
        link.on_deadline(Time(100 * MS), Bytes(backlog));
        // The control deadline of the same moment moved far away: the next is the queue's.
        let control = Time(100 * MS) + link.report().interval;
        let queue = link.next_deadline().min(control) - Time(100 * MS);
        let expected = expected.min(link.report().interval.0);
        assert!(queue.0.abs_diff(expected) <= 2, "{queue:?} for {rtt} ms and {backlog} B");
    }
}

/// draft-03 §4.2.5: a queue that drained at any moment of the period is not persistent.
#[test]
fn the_persistent_queue_is_the_least_backlog_of_its_period() {
    let mut link = link(link_config(1_250_000), SECOND, 10 * MS);
    let far = Time(SECOND);
    let estimate = |link: &mut Link, backlog: u64| {
        let at = link.next_deadline();
        assert!(at < far);
        link.on_deadline(at, Bytes(backlog));
    };
    estimate(&mut link, 9000);
    link.on_other_departure(Time(0), Bytes(7000));
    link.on_departure(Time(0), &mut Header::default(), Bytes(1000), Bytes(4000));
    link.on_other_departure(Time(0), Bytes(6000));
    estimate(&mut link, 5000);
    link.on_deadline(far, Bytes(5000));
    assert_eq!(link.report().persistent_queue, Bytes(4000));
}

/// TH 4.6: a burst of 10 kB drains within 10 ms of an interval of 100 ms, in which nothing else comes. Nothing looks at the
/// queue behind the burst, as at a router that computes feedback before the queue.
#[test]
fn the_average_queue_is_the_area_under_the_backlog_over_the_interval() {
    let config = LinkConfig { average_queue: true, ..link_config(1_000_000) };
    let mut link = link(config, 100 * MS, 10 * MS);
    link.on_arrival(Time(0), &header(MS, 100 * MS, 0), Bytes(10_000));
    link.on_other_departure(Time(0), Bytes(10_000));
    let burst = Bytes(10_000 * 10 / 2 / 100);
    link.on_deadline(Time(100 * MS), Bytes(0));
    let average = link.report().persistent_queue;
    assert!(average.0.abs_diff(burst.0) <= 1, "{average:?}, where {burst:?} were expected");
    // A queue that lasts is its own average.
    let begin = Time(100 * MS);
    for ms in 0..=110 {
        link.on_other_departure(begin + Duration(ms * MS), Bytes(7000));
    }
    link.on_arrival(begin, &header(MS, 100 * MS, 0), Bytes(10_000));
    link.on_deadline(begin + Duration(110 * MS), Bytes(7000));
    let average = link.report().persistent_queue;
    // Between two looks it drains by 1000 B, as far as the law knows.
    assert!((6450..=6550).contains(&average.0), "{average:?}");
}

/// TH 4.6: what an interval granted counts as used in the next ones, until flows use it or an eighth of it in each is forgotten.
#[test]
fn what_was_granted_and_is_not_used_is_not_granted_again() {
    let decisions = |remember_grants| {
        let config = LinkConfig { remember_grants, bound_headers: false, ..link_config(1_000_000) };
        let mut link = link(config, 100 * MS, 10 * SECOND);
        let mut feedback = Vec::new();
        for interval in 1..=40 {
            // A flow of 100 kB/s that never uses what it is granted.
            for _ in 0..10 {
                let asking = header(10 * MS, 100 * MS, i32::MAX);
                link.on_arrival(Time((interval - 1) * 100 * MS), &asking, Bytes(1000));
                depart(&mut link, asking, 1000);
            }
            link.on_deadline(Time(interval * 100 * MS), Bytes(0));
            feedback.push(link.report().feedback);
        }
        feedback
    };
    let plain = decisions(false);
    assert!(plain.iter().all(|feedback| *feedback == 360_000), "{plain:?}");
    let remembering = decisions(true);
    assert_eq!(remembering[0], 360_000);
    // At a rest p + F less an eighth of what is unused is p again: 7 * 0.4 (1000 - p) = p - 100, in kB/s.
    let last = *remembering.last().unwrap();
    assert!((94_000..95_500).contains(&last), "{remembering:?}");
}

/// TH Ex. 11 in its own units: C 1000 B/ms, RTT 500 ms, 1500-byte packets, version 1 of the header.
#[test]
fn v1_20_the_thesis_example_through_version_1_headers() {
    let interval = |packets: u64, throughput: u32| {
        let mut link = link(link_config(1_000_000), 500 * MS, 10 * SECOND);
        let stated = HeaderV1 { rtt: 500, throughput, delta: ALL, reverse: 0 }.to_header(Bytes(1500));
        (0..packets).for_each(|_| link.on_arrival(Time(0), &stated, Bytes(1500)));
        link.on_deadline(Time(500 * MS), Bytes(0));
        let grants: Vec<i32> = (0..packets).map(|_| depart(&mut link, stated, 1500)).collect();
        let window =
            |before: f64| before + grants.iter().map(|grant| f64::from(*grant)).sum::<f64>() * 0.5 / 1500.0;
        (link.report().feedback, grants[0], window(packets as f64))
    };
    // Step 2: one packet whose throughput was truncated to 1 B/ms.
    let (feedback, grant, window) = interval(1, 1);
    assert_eq!((feedback, grant), (398_800, 398_799)); // X is not a whole number of 2^-28 s
    assert!((window - 133.9).abs() < 0.1, "{window}");
    // Step 5: 134 packets at 400 B/ms.
    let (feedback, grant, window) = interval(134, 400);
    assert_eq!(feedback, 239_200);
    near(grant, 1785.1);
    assert!((window - 213.7).abs() < 0.1, "{window}");
    // Step 8: the sender uses 10 of its 134 packets and still says 400 B/ms.
    let (feedback, grant, _) = interval(10, 400);
    assert_eq!(feedback, 388_000);
    near(grant, 38_800.0);
}

#[test]
fn v1_21_the_tightest_of_several_hops_decides() {
    // A hop with pools (grants, cuts) whose first packet of X = 1 ms and 1000 B gets pos and neg.
    let hop = |pos: f64, neg: f64| {
        // y = C, so F = 0 and both pools are gamma y = 100000.
        let mut link = link(link_config(1_000_000), SECOND, 10 * SECOND);
        let (packets, size) = (1000, 1000);
        // neg = 100000 * size / 1e6 per byte; pos = 100000 * X / sum_x.
        assert_eq!(neg, 100.0);
        let x = MS as f64;
        let rest = x * 100_000.0 / pos - x; // what the other packets must state together
        link.on_arrival(Time(0), &header(x as u64, SECOND, ALL), Bytes(size));
        for _ in 1..packets {
            link.on_arrival(Time(0), &header((rest / 999.0) as u64, SECOND, ALL), Bytes(size));
        }
        link.on_deadline(Time(SECOND), Bytes(0));
        link
    };
    let mut packet = header(MS, SECOND, 5000);
    for (pos, expected) in [(1000.0, 900), (500.0, 400), (800.0, 400)] {
        let mut link = hop(pos, 100.0);
        let before = left(&link);
        link.on_departure(Time(0), &mut packet, Bytes(1000), Bytes(0));
        assert!((packet.delta - expected).abs() <= 1, "{} of {expected}", packet.delta);
        if pos == 800.0 {
            // fb = +700 > 400: neg' = 100 + 300 = 400, pos' = 800.
            let after = left(&link);
            assert!((before.0 - after.0 - 800.0).abs() < 3.0, "{before:?} {after:?}");
            assert!((before.1 - after.1 - 400.0).abs() < 3.0, "{before:?} {after:?}");
        }
    }
    let mut echo = Echo::default();
    echo.on_data(&packet);
    assert_eq!(echo.on_ack(), packet.delta);
}

/// K02 §3.4: H_feedback is bytes of window. A packet that stated half a second at 1000 B/s brings 500 bytes.
#[test]
fn a_receiver_of_bytes_keeps_what_is_less_than_one() {
    let data =
        |echo: &mut ByteEcho, delta: i32, rtt: u32| echo.on_data(&Header { delta, rtt, ..Header::default() });
    let mut echo = ByteEcho::default();
    data(&mut echo, 1000, 1 << 27);
    assert_eq!((echo.on_ack(), echo), (500, ByteEcho::default()));
    // Three quarters of a byte, twice; then down again.
    data(&mut echo, 3, 1 << 26);
    assert_eq!(echo.on_ack(), 0);
    data(&mut echo, 3, 1 << 26);
    assert_eq!(echo.on_ack(), 1);
    data(&mut echo, -6, 1 << 26);
    assert_eq!(echo.on_ack(), -1);
    assert_eq!(echo, ByteEcho::default(), "nothing is lost to rounding");
    // More than a field holds stays for the next.
    data(&mut echo, i32::MAX, 1 << 29);
    assert_eq!((echo.on_ack(), echo.on_ack(), echo.on_ack()), (i32::MAX, i32::MAX, 0));
}

#[test]
fn v1_22_the_receiver_returns_the_sum_and_keeps_what_does_not_fit() {
    let data = |echo: &mut Echo, delta: i32| echo.on_data(&Header { delta, ..Header::default() });
    let mut echo = Echo::default();
    [100, -40, 7].into_iter().for_each(|delta| data(&mut echo, delta));
    assert_eq!((echo.on_ack(), echo), (67, Echo::default()));

    [i32::MAX; 2].into_iter().for_each(|delta| data(&mut echo, delta));
    assert_eq!((echo.on_ack(), echo.on_ack(), echo.on_ack()), (i32::MAX, i32::MAX, 0));

    [i32::MIN, 1].into_iter().for_each(|delta| data(&mut echo, delta));
    assert_eq!((echo.on_ack(), echo.on_ack()), (-2_147_483_647, 0));

    [i32::MIN; 3].into_iter().for_each(|delta| data(&mut echo, delta));
    assert_eq!(
        (echo.on_ack(), echo.on_ack(), echo.on_ack(), echo.on_ack()),
        (i32::MIN, i32::MIN, i32::MIN, 0)
    );
}

#[test]
fn v1_23_an_idle_router_does_nothing_and_then_begins_again() {
    let mut link = link(link_config(1_250_000), 30 * MS, 20 * MS);
    let mut intervals = 0;
    while intervals < 10 {
        let at = link.next_deadline();
        link.on_deadline(at, Bytes(0));
        if link.report().intervals > intervals {
            intervals += 1;
            let report = link.report();
            assert_eq!((report.input, report.feedback, report.interval), (Rate(0), 0, Duration(50 * MS)));
        }
    }
    // 30 ms, then nine more intervals of 50 ms.
    let began = Time(480 * MS);
    assert_eq!(link.next_deadline().max(began + Duration(50 * MS)), began + Duration(50 * MS));
    let packet = header(10 * MS, 50 * MS, ALL);
    link.on_arrival(began, &packet, Bytes(1000));
    assert_eq!(depart(&mut link, packet, 1000), 0);
    link.on_deadline(began + Duration(50 * MS), Bytes(0));
    // F = 0.4 (1250000 - 20000).
    assert_eq!(link.report().feedback, 492_000);
}

/// A router that nobody woke for a second closes one interval of that length (G6, TH 3.4.2).
#[test]
fn a_late_deadline_counts_the_time_that_really_passed() {
    let mut link = link(link_config(1_250_000), 50 * MS, 50 * MS);
    (0..100).for_each(|_| link.on_arrival(Time(0), &header(MS, 100 * MS, 0), Bytes(1000)));
    link.on_deadline(Time(SECOND), Bytes(0));
    assert_eq!((link.report().intervals, link.report().input), (1, Rate(100_000)));
    assert!(link.next_deadline() > Time(SECOND));
}

/// A first deadline at the beginning closes an interval in which nothing can have been measured.
#[test]
fn an_interval_without_length_decides_nothing() {
    let mut link = link(link_config(1_250_000), 0, SECOND);
    link.on_arrival(Time(0), &header(MS, 100 * MS, 0), Bytes(1000));
    link.on_deadline(Time(0), Bytes(0));
    assert_eq!((link.report().input, link.report().feedback), (Rate(0), 0));
    assert_eq!(depart(&mut link, header(MS, 100 * MS, ALL), 1000), 0);
}

#[test]
fn v1_24_a_packet_of_unknown_rtt_may_be_cut() {
    // Only such traffic: Cp = 0, Cn usable, d = the initial interval (1.7). y = 1 MB/s, and F must be
    // -0.4 MB/s + ... so that Cn = 0.5: neg = 0.5 * input.
    let mut link = link(link_config(2_000_000), SECOND, 10 * SECOND);
    (0..4000).for_each(|_| link.on_arrival(Time(0), &Header::default(), Bytes(1000)));
    link.on_deadline(Time(SECOND), Bytes(0));
    // F = 0.4 (2 - 4) = -0.8 MB/s, h = 0: Cn = 0.8 / 4 = 0.2.
    assert_eq!(link.report().feedback, -800_000);
    assert_eq!(link.report().interval, Duration(50 * MS));
    assert_eq!(depart(&mut link, Header::default(), 2500), -500);
    let (grants, cuts) = left(&link);
    assert_eq!((grants, cuts), (0.0, 799_500.0));
    // X without RTT: as unknown (C-10).
    link.on_arrival(Time(0), &header(MS, 0, 0), Bytes(1000));
    link.on_arrival(Time(0), &Header { x: 0, ..header(MS, 3 * SECOND, 0) }, Bytes(1000));
    link.on_deadline(Time(2 * SECOND), Bytes(0));
    assert_eq!(link.report().interval, Duration(50 * MS));
}

#[test]
fn v1_25_a_pool_gives_what_is_left_and_then_nothing() {
    // sum_x = 2.5 X, F = 1000: Cp X = 400. y = C - 2500.
    let mut link = link(link_config(10_000), SECOND, 10 * SECOND);
    let packet = Header { x: 1 << 20, rtt: 1 << 28, delta: ALL, reverse: 0 };
    (0..2).for_each(|_| link.on_arrival(Time(0), &packet, Bytes(3000)));
    link.on_arrival(Time(0), &Header { x: 1 << 19, ..packet }, Bytes(1500));
    link.on_deadline(Time(SECOND), Bytes(0));
    assert_eq!(link.report().feedback, 1000);
    let grants: Vec<i32> = (0..5).map(|_| depart(&mut link, packet, 0)).collect();
    assert!(grants[0] >= 399 && grants[1] >= 399, "{grants:?}");
    assert!((grants.iter().sum::<i32>() - 1000).abs() <= 1 && grants[3..] == [0, 0], "{grants:?}");
}

/// docs/design/protocols.md 1.7: K02's MAX_INTERVAL bounds the interval, not the header.
#[test]
fn a_round_trip_above_the_largest_interval_counts_as_that() {
    let mut link = link(link_config(1_250_000), 50 * MS, 10 * SECOND);
    let packet = header(MS, 2 * SECOND, 7);
    let mut seen = packet;
    link.on_arrival(Time(0), &seen, Bytes(1000));
    link.on_departure(Time(0), &mut seen, Bytes(1000), Bytes(0));
    link.on_deadline(Time(50 * MS), Bytes(0));
    assert_eq!(link.report().interval, Duration(SECOND));
    assert_eq!((seen.x, seen.rtt), (packet.x, packet.rtt));
}

#[test]
fn a_round_trip_below_the_least_interval_stretches_the_interval_only() {
    let mut link = link(link_config(1_250_000), 50 * MS, 10 * SECOND);
    link.on_arrival(Time(0), &header(MS, MS, 0), Bytes(1000));
    link.on_deadline(Time(50 * MS), Bytes(0));
    assert_eq!(link.report().interval, Duration(5 * MS));
}

#[test]
fn a_new_capacity_counts_from_the_next_interval() {
    let mut link = link(link_config(1_250_000), 100 * MS, 10 * SECOND);
    let packet = header(MS, 100 * MS, ALL);
    (0..100).for_each(|_| link.on_arrival(Time(0), &packet, Bytes(1000)));
    link.on_deadline(Time(100 * MS), Bytes(0));
    assert_eq!(link.report().feedback, 100_000);
    link.set_capacity(Rate(500_000));
    near(depart(&mut link, packet, 1000), 1000.0);
    (0..100).for_each(|_| link.on_arrival(Time(0), &packet, Bytes(1000)));
    let end = link.next_deadline();
    link.on_deadline(end, Bytes(0));
    let y = 100_000.0 / ((end - Time(100 * MS)).0 as f64 / 1e9);
    let feedback = link.report().feedback as f64;
    assert!((feedback - 0.4 * (500_000.0 - y)).abs() <= 1.0, "{feedback}");
}

/// What does not fit into a header stays in the pool for later packets.
#[test]
fn a_cut_beyond_the_field_is_spread_over_packets() {
    let mut link = link(link_config(1), SECOND, 10 * SECOND);
    link.on_arrival(Time(0), &header(MS, SECOND, 0), Bytes(20_000_000_000));
    link.on_deadline(Time(SECOND), Bytes(0));
    assert_eq!(link.report().feedback, -7_999_999_999);
    let big = 4_000_000_000; // a fifth of the traffic: -1.6e9
    assert_eq!(depart(&mut link, Header { delta: 0, ..Header::default() }, big), -1_600_000_000);
    let mut cuts: Vec<i64> = vec![];
    for _ in 0..4 {
        let mut all = header(0, 0, 0);
        link.on_departure(Time(0), &mut all, Bytes(u64::MAX), Bytes(0)); // 2^32 at most: -1.7e9
        cuts.push(all.delta.into());
    }
    assert_eq!(cuts.iter().sum::<i64>(), -6_400_000_000); // 6399999999.6, rounded down as credit
    let mut link = super::link(LinkConfig { gamma: Ratio::ppm(0), ..link_config(1) }, SECOND, 10 * SECOND);
    link.on_arrival(Time(0), &header(MS, SECOND, 0), Bytes(10_000_000_000));
    link.on_deadline(Time(SECOND), Bytes(0)); // -4e9, Cn 0.4
    (0..2).for_each(|_| link.on_arrival(Time(0), &Header::default(), Bytes(4_000_000_000)));
    let end = link.next_deadline();
    link.on_deadline(end, Bytes(0)); // 8e9 in 1 s: -3.2e9, half per packet
    assert_eq!(depart(&mut link, Header::default(), 4_294_967_295), -1_717_986_918);
}

/// draft-03 L 27-28: what upstream took from a flow beyond this link's cuts is free for others.
#[test]
fn what_upstream_takes_can_be_granted_to_others() {
    let mut link = link(link_config(1_000_000), 100 * MS, 10 * SECOND);
    let packet = header(10 * MS, 100 * MS, ALL);
    (0..10).for_each(|_| link.on_arrival(Time(0), &packet, Bytes(1000)));
    link.on_deadline(Time(100 * MS), Bytes(0));
    // F = 0.4 * 0.9 MB/s, nothing shuffled.
    assert_eq!(link.report().feedback, 360_000);
    assert_eq!(depart(&mut link, Header { delta: -5000, ..packet }, 1000), -5000);
    let granted: i32 = (0..20).map(|_| depart(&mut link, packet, 1000)).sum();
    assert!((364_999..=365_000).contains(&granted), "{granted}");
}

/// G5: the feedback of one interval is not the next one's.
#[test]
fn an_interval_forgets_what_the_last_one_did_not_hand_out() {
    let mut link = link(link_config(1_000_000), 100 * MS, 10 * SECOND);
    let packet = header(10 * MS, 100 * MS, ALL);
    (0..10).for_each(|_| link.on_arrival(Time(0), &packet, Bytes(1000)));
    link.on_deadline(Time(100 * MS), Bytes(0));
    let end = link.next_deadline();
    link.on_deadline(end, Bytes(0));
    assert_eq!(link.report().feedback, 0);
    assert_eq!(depart(&mut link, packet, 1000), 0);
    assert_eq!(depart(&mut link, Header { delta: -3, ..packet }, 1000), -3);
    assert_eq!(depart(&mut link, packet, 1000), 0);
}

/// Without a bound of its own a link takes the longest interval from what packets state: twice their mean while all state more than
/// a second. One that states less keeps every interval short, whatever a liar states.
#[test]
fn a_link_without_a_longest_interval_takes_it_from_packets() {
    let intervals = |stated: &[u64]| {
        let config = LinkConfig { max_interval: Duration(0), ..link_config(1_000_000) };
        let mut link = link(config, 50 * MS, 1000 * SECOND);
        let mut now = 0;
        (0..6)
            .map(|_| {
                stated.iter().for_each(|&rtt| link.on_arrival(Time(now), &header(MS, rtt, ALL), Bytes(1000)));
                now = link.next_deadline().0;
                link.on_deadline(Time(now), Bytes(0));
                link.report().interval.0 / MS
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(intervals(&[500 * MS]), [500; 6]);
    assert_eq!(intervals(&[1300 * MS]), [1000, 1300, 1300, 1300, 1300, 1300]);
    assert_eq!(intervals(&[6 * SECOND]), [1000, 2000, 4000, 6000, 6000, 6000]);
    // Nine of ten packets are a liar's.
    let lies = [[15 * SECOND; 9].as_slice(), &[100 * MS]].concat();
    assert!(intervals(&lies).iter().all(|&interval| interval <= 1000), "{:?}", intervals(&lies));
}
