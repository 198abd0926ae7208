//! XCP2: XCP with switches (docs/beyond.md).

#[path = "xcp/hostile.rs"]
mod hostile;
#[path = "xcp/random.rs"]
mod random;

use congestlab_core::law::xcp::{self, Header};
use congestlab_core::law::xcp2::{Hops, Link, LinkConfig, Sender, SenderConfig};
use congestlab_core::law::{
    Ack, Carried, EchoLaw, Header as _, LinkLaw, Listening, Packet as _, Reply, Send, SenderLaw,
};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, SECOND, Time};
use random::Random;

const MS: u64 = SECOND / 1000;
const MSS: u64 = 1500;
const ALL: i32 = i32::MAX;
/// 10 Mbit/s.
const CAPACITY: u64 = 1_250_000;

fn config() -> LinkConfig {
    let mut config = LinkConfig::DEFAULT;
    config.xcp.capacity = Rate(CAPACITY);
    config
}

fn start(config: &LinkConfig) -> Link {
    Link::start(config, Duration(100 * MS), Duration(50 * MS))
}

/// A packet with XCP's header, and word of hops if it states any.
fn packet(header: Header, size: u64, hops: Option<Hops>) -> Carried {
    let mut packet = Carried { size: Bytes(size), ..Carried::default() };
    packet.add_header(header);
    if let Some(hops) = hops {
        packet.add_header(hops);
    }
    packet
}

/// A packet of 1500 B of a flow that sends one in so many milliseconds, with a round trip of 100 ms, which another hop controls
/// or this one, the first.
fn of_flow(x_ms: u64, controls: u8) -> Carried {
    let header = Header {
        x: Duration(x_ms * MS).to_header(),
        rtt: Duration(100 * MS).to_header(),
        delta: ALL,
        reverse: 0,
    };
    packet(header, MSS, Some(Hops { passed: 0, controls: 0, stated: controls }))
}

#[test]
fn with_all_switches_off_the_link_is_xcp() {
    let mut random = Random::new(21);
    for _ in 0..300 {
        let mut off = LinkConfig::OFF;
        off.xcp.capacity = Rate(8000 << random.below(18));
        (off.xcp.capture, off.xcp.spread) = (random.coin(), random.coin());
        off.xcp.bound_headers = random.coin();
        let mut ours = start(&off);
        let mut theirs = xcp::Link::new(off.xcp, Duration(100 * MS), Duration(50 * MS));
        let mut now = 0;
        for _ in 0..400 {
            now += random.below(3 * MS);
            let backlog = Bytes(random.below(20_000));
            while LinkLaw::next_deadline(&theirs) <= Time(now) {
                let at = LinkLaw::next_deadline(&theirs);
                assert_eq!(LinkLaw::next_deadline(&ours), at);
                LinkLaw::on_deadline(&mut ours, at, backlog);
                LinkLaw::on_deadline(&mut theirs, at, backlog);
                assert_eq!(LinkLaw::report(&ours).xcp, LinkLaw::report(&theirs));
            }
            let hops = random.coin().then(|| Hops::read(&std::array::from_fn(|_| random.half())));
            let mut mine = packet(random.header(), 40 + random.below(1460), hops);
            let mut other = mine;
            LinkLaw::on_arrival(&mut ours, Time(now), &mine);
            LinkLaw::on_arrival(&mut theirs, Time(now), &other);
            LinkLaw::on_departure(&mut ours, Time(now), &mut mine, backlog);
            LinkLaw::on_departure(&mut theirs, Time(now), &mut other, backlog);
            assert_eq!(mine.header::<Header>(), other.header::<Header>());
        }
    }
}

#[test]
fn with_all_switches_off_the_sender_is_xcp() {
    let mut random = Random::new(22);
    for _ in 0..300 {
        let mut ours = Sender::start(&SenderConfig::OFF, Bytes(MSS), Bytes(4 * MSS));
        let mut theirs = xcp::Sender::new(Bytes(MSS), Bytes(4 * MSS));
        let config = SenderConfig::OFF.xcp;
        let mut now = 0;
        for _ in 0..200 {
            now += random.below(30 * MS);
            let (rtt, flight) = (Duration(random.below(300 * MS)), Bytes(random.below(100_000)));
            let ack = Ack {
                awnd: Bytes(1 << random.below(30)),
                rtt,
                srtt: rtt,
                reply: Reply { word: random.half(), byte: random.half() as u8 },
                ..Ack::default()
            };
            match random.below(20) {
                0 => {
                    ours.on_loss(&SenderConfig::OFF, Time(now), flight);
                    theirs.on_loss(&config, Time(now), flight);
                }
                1 => {
                    ours.on_timeout(&SenderConfig::OFF, Time(now), flight, true);
                    theirs.on_timeout(&config, Time(now), flight, true);
                }
                2..12 => {
                    ours.on_ack(&SenderConfig::OFF, Time(now), &ack);
                    theirs.on_ack(&config, Time(now), &ack);
                }
                _ => {
                    let send = Send {
                        size: Bytes(MSS),
                        srtt: rtt,
                        awnd: ack.awnd,
                        backlog: flight,
                        ..Send::default()
                    };
                    let (mut mine, mut other) = (Carried::default(), Carried::default());
                    ours.on_send(&SenderConfig::OFF, Time(now), &send, &mut mine);
                    theirs.on_send(&config, Time(now), &send, &mut other);
                    assert_eq!(mine, other);
                }
            }
            assert_eq!(ours.window(), theirs.window());
            assert_eq!(ours.pacing_rate(&SenderConfig::OFF, rtt), theirs.pacing_rate(&config, rtt));
        }
    }
}

/// Packets leave one after the other for so many intervals, at the rate that the link really has, with a backlog behind each or
/// none, and with a queue at each deadline.
fn drain(law: &mut Link, now: &mut u64, rate: u64, intervals: u64, backlog: u64, queue: u64) {
    let until = law.report().xcp.intervals + intervals;
    while law.report().xcp.intervals < until {
        let mut packet = of_flow(2, 0);
        LinkLaw::on_arrival(law, Time(*now), &packet);
        LinkLaw::on_departure(law, Time(*now), &mut packet, Bytes(backlog));
        *now += MSS * SECOND / rate;
        while law.next_deadline() <= Time(*now) {
            law.on_deadline(law.next_deadline(), Bytes(queue));
        }
    }
}

#[test]
fn the_capacity_is_that_of_the_drain_whatever_was_told() {
    for (told, rate) in [(100, 100), (110, 100), (95, 100), (400, 100), (100, 300)] {
        let mut config = config();
        config.xcp.capacity = Rate(CAPACITY * told / 100);
        let (mut law, mut now) = (start(&config), 1);
        drain(&mut law, &mut now, CAPACITY * rate / 100, 60, 10_000, 0);
        let (found, real) = (law.report().capacity.0, CAPACITY * rate / 100);
        assert!(found.abs_diff(real) <= real / 1000, "told {told} %: {found} of {real}");
    }
}

#[test]
fn no_belief_is_further_than_eight_times_from_what_was_told() {
    for (rate, bound) in [(100 * CAPACITY, 8 * CAPACITY), (CAPACITY / 100, CAPACITY / 8)] {
        let (mut law, mut now) = (start(&config()), 1);
        drain(&mut law, &mut now, rate, 1000, 10_000, 0);
        let found = law.report().capacity.0;
        assert!(found.abs_diff(bound) <= bound / 50, "{found}, {bound}");
    }
}

/// 1/256 in each interval; a link that is not used for what it is believed to carry says nothing.
#[test]
fn without_a_backlog_a_used_link_is_tried_for_more() {
    let (mut law, mut now) = (start(&config()), 1);
    drain(&mut law, &mut now, CAPACITY, 10, 0, 0);
    let found = law.report().capacity.0;
    assert!((CAPACITY * 102 / 100..=CAPACITY * 105 / 100).contains(&found), "{found}");
    let (mut law, mut now) = (start(&config()), 1);
    drain(&mut law, &mut now, CAPACITY * 9 / 10, 50, 0, 0);
    assert_eq!(law.report().capacity, Rate(CAPACITY));
}

/// 1/4096 for four intervals behind a sample, then 2/4096 and so on: what is tried shows a round trip later.
#[test]
fn what_was_measured_is_exceeded_by_little_at_first() {
    let (mut law, mut now) = (start(&config()), 1);
    drain(&mut law, &mut now, CAPACITY, 60, 10_000, 0);
    // The last of them left a backlog.
    drain(&mut law, &mut now, CAPACITY, 1, 0, 0);
    let measured = law.report().capacity.0;
    let more = |law: &Link| (law.report().capacity.0 - measured) * 4096 / measured;
    for (intervals, least, most) in [(4, 3, 4), (4, 9, 12), (8, 45, 60), (4, 90, 125)] {
        drain(&mut law, &mut now, CAPACITY * 21 / 20, intervals, 0, 0);
        assert!((least..=most).contains(&more(&law)), "{intervals} more: {}", more(&law));
    }
}

/// What was dropped came, too: a queue that never leaves a backlog, because it is of one packet, does not mean that there is room.
#[test]
fn a_link_that_drops_is_tried_for_no_more() {
    let (mut law, mut now) = (start(&config()), 1);
    for _ in 0..50 {
        for _ in 0..9 {
            LinkLaw::on_arrival(&mut law, Time(now), &of_flow(2, 0));
        }
        drain(&mut law, &mut now, CAPACITY, 1, 0, 0);
    }
    assert_eq!(law.report().capacity, Rate(CAPACITY));
}

#[test]
fn a_queue_that_stands_is_alarmed_of() {
    let (mut law, mut now) = (start(&config()), 1);
    drain(&mut law, &mut now, CAPACITY, 9, 10_000, 50_000);
    assert!(!law.report().is_alarmed);
    drain(&mut law, &mut now, CAPACITY, 5, 10_000, 50_000);
    assert!(law.report().is_alarmed);
    drain(&mut law, &mut now, CAPACITY, 3, 10_000, 0);
    assert!(!law.report().is_alarmed);
}

/// Twenty milliseconds between packets of flows that this link controls: four of them, and one of another hop's.
fn shared(other_x: u64) -> Link {
    let mut law = start(&LinkConfig { calibrate: false, ..config() });
    for _ in 0..5 {
        (0..4).for_each(|_| LinkLaw::on_arrival(&mut law, Time(0), &of_flow(20, 1)));
    }
    for _ in 0..100 / other_x {
        LinkLaw::on_arrival(&mut law, Time(0), &of_flow(other_x, 2));
    }
    law.on_deadline(Time(100 * MS), Bytes(0));
    law
}

fn leaves(law: &mut Link, mut packet: Carried) -> (i32, Hops) {
    LinkLaw::on_departure(law, Time(100 * MS), &mut packet, Bytes(0));
    (packet.header::<Header>().unwrap().delta, packet.header::<Hops>().unwrap())
}

#[test]
fn a_flow_that_another_hop_controls_is_not_cut_and_grows_as_the_others() {
    let mut law = shared(25);
    let (mine, hops) = leaves(&mut law, of_flow(20, 1));
    assert_eq!((hops.passed, hops.controls), (1, 1));
    let (theirs, hops) = leaves(&mut law, of_flow(25, 2));
    // A packet of a longer X stands for more of its flow, and nothing is taken from it.
    assert!(theirs > mine, "{theirs}, {mine}");
    assert_eq!((hops.passed, hops.controls, hops.stated), (1, 0, 2));
    // What another hop wants less of stays.
    let mut less = of_flow(25, 2);
    less.set_header(Header { delta: -5000, ..less.header().unwrap() });
    assert_eq!(leaves(&mut law, less).0, -5000);
    // The bytes of the other one take no part in the shuffling, but in y.
    assert_eq!(law.report().apart, Bytes(4 * MSS));
    assert_eq!(law.report().xcp.input, Rate(24 * MSS * 10));
}

#[test]
fn a_flow_with_more_than_a_fair_share_is_the_links_own_whatever_it_states() {
    let mut law = shared(25);
    let (delta, hops) = leaves(&mut law, of_flow(10, 2));
    let (fair, _) = leaves(&mut law, of_flow(20, 1));
    assert!(delta < fair, "{delta}, {fair}");
    assert_eq!(hops.controls, 1);
    // As much as a fair share is not more.
    assert_eq!(leaves(&mut law, of_flow(20, 2)).1.controls, 0);
}

/// ACKs on a link that controls nobody are no flows of its own, for which its room would be kept.
#[test]
fn packets_without_a_header_are_nobody_that_a_link_controls() {
    let grown = |acks: u32| {
        let mut law = start(&LinkConfig { calibrate: false, ..config() });
        for _ in 0..5 {
            LinkLaw::on_arrival(&mut law, Time(0), &of_flow(20, Hops::NONE));
        }
        for _ in 0..acks {
            LinkLaw::on_arrival(&mut law, Time(0), &Carried { size: Bytes(40), ..Carried::default() });
        }
        law.on_deadline(Time(100 * MS), Bytes(0));
        leaves(&mut law, of_flow(20, Hops::NONE)).0
    };
    let alone = grown(0);
    assert!(alone > 0 && grown(2) > alone / 2, "{alone}, {}", grown(2));
}

/// With nobody of its own a link with room hinders none, and one without cuts who has most.
#[test]
fn a_link_that_controls_nobody_begins_with_the_largest() {
    for (capacity, controls) in [(CAPACITY * 10, 0), (CAPACITY / 10, 1)] {
        let mut config = LinkConfig { calibrate: false, ..config() };
        config.xcp.capacity = Rate(capacity);
        let mut law = start(&config);
        for x in [10, 40] {
            (0..100 / x).for_each(|_| LinkLaw::on_arrival(&mut law, Time(0), &of_flow(x, 2)));
        }
        law.on_deadline(Time(100 * MS), Bytes(0));
        assert_eq!(leaves(&mut law, of_flow(10, 2)).1.controls, controls);
        assert_eq!(leaves(&mut law, of_flow(40, 2)).1.controls, 0);
    }
}

/// A flow that nobody controls has no link to wait for: a full one takes it, one with room leaves it alone.
#[test]
fn a_full_link_takes_a_flow_that_nobody_controls() {
    for (capacity, controls) in [(CAPACITY * 10, 0), (CAPACITY / 40, 1)] {
        let mut config = LinkConfig { calibrate: false, ..config() };
        config.xcp.capacity = Rate(capacity);
        let mut law = start(&config);
        (0..5).for_each(|_| LinkLaw::on_arrival(&mut law, Time(0), &of_flow(20, Hops::NONE)));
        law.on_deadline(Time(100 * MS), Bytes(0));
        let (delta, hops) = leaves(&mut law, of_flow(20, Hops::NONE));
        assert_eq!((hops.controls, delta > 0), (controls, controls == 0));
    }
}

/// Ten packets that state the longest X are no crowd; a hundred are, and ten that fill the link alone.
#[test]
fn long_times_between_packets_are_believed_of_many_and_of_a_full_link() {
    for (packets, capacity, is_crowd) in
        [(10, CAPACITY, false), (100, CAPACITY, true), (10, CAPACITY / 8, true)]
    {
        let mut config = config();
        config.xcp.capacity = Rate(capacity);
        let mut law = start(&config);
        let mut grants = [0; 2];
        for _ in 0..4 {
            (0..packets).for_each(|_| LinkLaw::on_arrival(&mut law, Time(0), &of_flow(300, 0)));
            let at = law.next_deadline();
            while law.next_deadline() <= at {
                law.on_deadline(at, Bytes(0));
            }
            while law.report().xcp.intervals == 0 {
                law.on_deadline(law.next_deadline(), Bytes(0));
            }
        }
        for (grant, x) in grants.iter_mut().zip([50, 200]) {
            *grant = leaves(&mut law, of_flow(x, 0)).0;
        }
        assert_eq!(grants[1] > grants[0] + grants[0] / 2, is_crowd, "{packets}, {capacity}: {grants:?}");
    }
}

/// Small packets that state the longest X do not say what those weigh that fill the link, however many they are.
#[test]
fn small_packets_do_not_raise_what_a_full_link_believes() {
    let mut law = start(&config());
    let all = [(75, 1000), (50, 1)];
    let small = packet(of_flow(1000, 0).header().unwrap(), 60, None);
    for _ in 0..20 {
        for (count, x) in all {
            let of = if x == 1 { of_flow(x, 0) } else { small };
            (0..count).for_each(|_| LinkLaw::on_arrival(&mut law, Time(0), &of));
        }
        law.on_deadline(law.next_deadline(), Bytes(0));
        law.on_deadline(law.next_deadline(), Bytes(0));
    }
    let grants = [50, 1000].map(|x| leaves(&mut law, of_flow(x, 0)).0);
    // 50 ms are what counts at most; a part is rounded as the pool is emptied.
    assert!(grants[0] > 0 && grants[0].abs_diff(grants[1]) <= 1, "{grants:?}");
}

/// What packets take out of an interval's pool is no more than it had, whatever they ask for.
#[test]
fn no_interval_grants_more_than_its_pool() {
    let mut random = Random::new(5);
    let mut granted_some = 0;
    for _ in 0..2000 {
        let mut config = LinkConfig::DEFAULT;
        config.xcp.capacity = Rate(random.word());
        (config.xcp.alpha, config.xcp.gamma) = (Ratio(random.half()), Ratio(random.half()));
        config.xcp.capture = random.coin();
        let mut law = start(&config);
        let came: Vec<Carried> = (0..1 + random.below(40))
            .map(|_| {
                // Who asks for less than nothing gives back.
                let header = Header { delta: random.half() as i32 & i32::MAX, ..random.header() };
                packet(header, 40 + random.below(1460), random.coin().then(Hops::default))
            })
            .collect();
        came.iter().for_each(|packet| LinkLaw::on_arrival(&mut law, Time(0), packet));
        law.on_deadline(Time(100 * MS), Bytes(0));
        let (mut whole, mut granted) = (None, 0);
        for _ in 0..100 {
            let mut packet = came[random.below(came.len() as u64) as usize];
            let pool = law.pool(&packet).expect("this hop controls it");
            let whole = *whole.get_or_insert(u128::from(pool.left));
            LinkLaw::on_departure(&mut law, Time(100 * MS), &mut packet, Bytes(0));
            granted += u128::from(pool.part);
            assert!(pool.part <= pool.left && granted <= whole, "{granted} of {whole}");
            granted_some += u32::from(pool.part > 0);
        }
    }
    assert!(granted_some > 1000, "{granted_some}");
}

const FLOW: SenderConfig = SenderConfig { beside: true, ..SenderConfig::DEFAULT };

fn ack(feedback: i32) -> Ack {
    Ack {
        awnd: Bytes(u64::MAX),
        rtt: Duration(100 * MS),
        srtt: Duration(100 * MS),
        reply: Reply { word: feedback as u32, byte: 3 },
        is_window_limited: true,
        ..Ack::default()
    }
}

fn sent(law: &mut Sender, now: u64) -> (Header, Hops) {
    let mut packet = Carried::default();
    let (size, awnd) = (Bytes(MSS), Bytes(u64::MAX));
    let send = Send { size, awnd, srtt: Duration(100 * MS), backlog: awnd, ..Send::default() };
    law.on_send(&FLOW, Time(now), &send, &mut packet);
    (packet.header().unwrap(), packet.header().unwrap())
}

/// A quarter of a segment in 100 ms is a packet in 400 ms.
#[test]
fn a_window_below_a_segment_is_paced_and_stated() {
    let mut law = Sender::start(&FLOW, Bytes(MSS), Bytes(MSS));
    law.on_ack(&FLOW, Time(0), &ack(-11_250));
    assert_eq!(law.window(), Bytes(MSS), "TCP's machinery has one segment in flight");
    let part = law.part() as f64 / 65_536.0;
    assert!((part - 0.25).abs() < 0.001, "{part}");
    let rate = law.pacing_rate(&FLOW, Duration(100 * MS)).unwrap();
    assert!(rate.0.abs_diff(3750) <= 10, "{rate:?}");
    let (header, hops) = sent(&mut law, 1);
    let x = Duration::from_header(header.x);
    assert!(x.0.abs_diff(400 * MS) < MS, "{x:?}");
    assert_eq!((header.rtt, hops.stated), (header.x, 3), "what it is told it does with the next packet");
    // Back above a segment.
    law.on_ack(&FLOW, Time(2), &ack(26_250));
    assert_eq!((law.part(), law.window()), (1 << 16, Bytes(2 * MSS)));
    // Never less than a packet in 0.75 s.
    (0..10).for_each(|n| law.on_ack(&FLOW, Time(n), &ack(-1_000_000)));
    let least = law.part();
    assert!(least.abs_diff((1 << 16) * 100 / 750) <= 1, "{least}");
    // A timeout leaves a half, or what is less.
    law.on_timeout(&FLOW, Time(22), Bytes(MSS), true);
    assert_eq!(law.part(), least);
    law.on_ack(&FLOW, Time(23), &ack(26_250));
    law.on_timeout(&FLOW, Time(24), Bytes(MSS), true);
    assert_eq!(law.part(), 1 << 15);
}

/// The receiver says which hop lowered the last packet, or that none did.
#[test]
fn the_receiver_says_who_controls() {
    let mut echo = <Sender as SenderLaw>::Echo::start(&FLOW, Bytes(MSS));
    assert_eq!(echo.on_ack(&FLOW, Listening::default()).byte, 0);
    for (controls, told) in [(2, 2), (0, Hops::NONE), (254, 254)] {
        let hops = Hops { passed: 254, controls, stated: 0 };
        let came = packet(Header { delta: 100, ..Header::default() }, MSS, Some(hops));
        echo.on_data(&FLOW, &came, Listening::default());
        assert_eq!(echo.on_ack(&FLOW, Listening::default()), Reply { word: 100, byte: told });
    }
}

/// A flow of fifty packets in flight; round trips of 100 ms, and one that took so long before a loss.
fn after_a_loss(last_rtt: u64) -> Sender {
    let mut law = Sender::start(&FLOW, Bytes(MSS), Bytes(50 * MSS));
    law.on_ack(&FLOW, Time(0), &ack(0));
    law.on_ack(&FLOW, Time(MS), &Ack { rtt: Duration(last_rtt * MS), ..ack(0) });
    law.on_loss(&FLOW, Time(2 * MS), Bytes(50 * MSS));
    law
}

/// Feedback would open the window at once, as before; its changing signs end nothing.
#[test]
fn a_loss_behind_a_queue_brings_cubic_and_feedback_does_not_send_it_away() {
    let mut law = after_a_loss(200);
    for n in 1..200u64 {
        law.on_ack(&FLOW, Time(n * 50 * MS), &ack(if n % 2 == 0 { 10_000_000 } else { -1_000 }));
        assert!(law.window() <= Bytes(40 * MSS), "{n}: {:?}", law.window());
    }
    // An error on the wire is none of it.
    let mut law = after_a_loss(110);
    law.on_ack(&FLOW, Time(3 * MS), &ack(10_000_000));
    assert!(law.window() > Bytes(100 * MSS), "{:?}", law.window());
}

#[test]
fn eight_round_trips_with_less_end_cubic() {
    let mut law = after_a_loss(200);
    for n in 1..20 {
        law.on_ack(
            &FLOW,
            Time(n * 101 * MS),
            &Ack { acked: Bytes(MSS), flight: Bytes(20 * MSS), ..ack(-1000) },
        );
    }
    law.on_ack(&FLOW, Time(3 * SECOND), &ack(10_000_000));
    assert!(law.window() > Bytes(100 * MSS), "{:?}", law.window());
}

/// Any settings, times, sizes, capacities and headers: nothing overflows, and demand is never raised.
#[test]
fn nothing_overflows() {
    let mut random = Random::new(33);
    for _ in 0..2000 {
        let mut config = LinkConfig::DEFAULT;
        config.xcp.capacity = Rate(random.word());
        config.headroom = Ratio(random.half());
        (config.calibrate, config.hops) = (random.coin(), random.coin());
        (config.xcp.bound_headers, config.xcp.capture) = (random.coin(), random.coin());
        let mut law = start(&config);
        let mut now = 0u64;
        for _ in 0..60 {
            now = now.saturating_add(random.next() >> (10 + random.below(54)));
            if random.below(30) == 0 {
                law.set_capacity(Rate(random.word()));
            }
            let hops = random.coin().then(|| Hops::read(&std::array::from_fn(|_| random.half())));
            let came = packet(random.header(), random.word(), hops);
            let mut left = came;
            LinkLaw::on_arrival(&mut law, Time(now), &came);
            LinkLaw::on_departure(&mut law, Time(now), &mut left, Bytes(random.word()));
            assert!(law.only_lowers(&came, &left));
            if law.next_deadline() <= Time(now) {
                law.on_deadline(Time(now), Bytes(random.word()));
            }
        }
        let mut law = Sender::start(&FLOW, Bytes(random.word()), Bytes(random.word()));
        for _ in 0..60 {
            let (now, size) = (Time(random.word()), Bytes(random.word()));
            let mut any = || Duration(random.word());
            let (rtt, srtt) = (any(), any());
            let reply = Reply { word: random.half(), byte: random.half() as u8 };
            law.on_ack(&FLOW, now, &Ack { acked: size, awnd: size, rtt, srtt, reply, ..Ack::default() });
            match random.below(8) {
                0 => law.on_loss(&FLOW, now, size),
                1 => law.on_timeout(&FLOW, now, size, random.coin()),
                _ => {}
            }
            let send = Send { size, srtt, awnd: size, backlog: size, ..Send::default() };
            law.on_send(&FLOW, now, &send, &mut Carried::default());
            law.pacing_rate(&FLOW, srtt);
            assert!(law.part() <= 1 << 16);
        }
    }
}
