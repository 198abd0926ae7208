//! Vectors and switches of the sender law.

use super::random::Random;
use super::*;
use congestlab_core::law::xcp::{Feedback, Returned, Sender};
use congestlab_core::law::{Ack, Carried, EchoLaw, Listening, Packet as _, Reply, Send, SenderLaw as _};

const MSS: u64 = 1000;

fn sender(window: u64) -> Sender {
    Sender::new(Bytes(MSS), Bytes(window))
}

/// A full packet of a sender that always has data and a receiver without limit.
fn send(srtt: u64) -> Send {
    Send {
        size: Bytes(MSS),
        srtt: Duration(srtt),
        awnd: Bytes(u64::MAX),
        backlog: Bytes(u64::MAX),
        ..Send::default()
    }
}

fn ack(srtt: u64, feedback: i32) -> Ack {
    Ack {
        acked: Bytes(MSS),
        awnd: Bytes(u64::MAX),
        srtt: Duration(srtt),
        reply: xcp::reply(feedback),
        ..Ack::default()
    }
}

/// The window after one ACK.
fn updated(mss: u64, window: u64, feedback: i32, srtt: u64) -> u64 {
    let mut sender = Sender::new(Bytes(mss), Bytes(window));
    sender.on_ack(&sender_config(), Time(0), &ack(srtt, feedback));
    sender.window().0
}

#[test]
fn v1_14_the_demand_is_spread_over_the_packets_of_a_round_trip() {
    let config = SenderConfig { desired_rate: Rate(1_000_000), ..sender_config() };
    // Throughput 10 B/ms is one packet per round trip of 100 ms.
    let header = sender(1000).header(&config, Time(0), &send(100 * MS));
    assert_eq!(header, Header { x: 26_843_546, rtt: 26_843_546, delta: 990_000, reverse: 0 });
    // Ten packets: 0.9 MB/s over ten.
    let header = sender(10_000).header(&config, Time(0), &send(100 * MS));
    assert_eq!(header, Header { x: 2_684_355, rtt: 26_843_546, delta: 90_000, reverse: 0 });
    // Faster than desired: asks to be slowed.
    let header = sender(200_000).header(&config, Time(0), &send(100 * MS));
    assert_eq!(header.delta, -5000);
}

#[test]
fn v1_15_feedback_moves_the_window_by_a_round_trip_of_its_rate() {
    assert_eq!(updated(1000, 1000, 900_000, 100 * MS), 91_000);
    assert_eq!(updated(1500, 3000, 1_000_000, 100 * MS), 103_000);
}

#[test]
fn v1_16_the_window_never_falls_below_one_segment() {
    assert_eq!(updated(1500, 3000, -1_000_000, 100 * MS), 1500);
    assert_eq!(updated(1500, 3000, i32::MIN, 16 * SECOND), 1500);
}

#[test]
fn v1_24_without_a_round_trip_time_feedback_changes_nothing_and_the_header_is_empty() {
    assert_eq!(updated(1000, 5000, -500, 0), 5000);
    assert_eq!(sender(1000).header(&sender_config(), Time(0), &send(0)), Header::default());
    let unlimited =
        SenderConfig { request: RequestPolicy::Unlimited, profile: Profile::Ns2, ..sender_config() };
    assert_eq!(sender(1000).header(&unlimited, Time(0), &send(0)), Header::default());
}

#[test]
fn v1_26_a_window_that_the_receiver_limits_is_stated_as_it_is_used() {
    let packet = Send { awnd: Bytes(65_536), ..send(SECOND / 2) };
    let header = sender(200_000).header(&sender_config(), Time(0), &packet);
    assert_eq!(header, Header { x: Duration(7_629_395).to_header(), rtt: 1 << 27, delta: 0, reverse: 0 });
    // At the limit exactly, too; below it there is something to ask for.
    let packet = Send { awnd: Bytes(200_000), ..packet };
    assert_eq!(sender(200_000).header(&sender_config(), Time(0), &packet).delta, 0);
    let packet = Send { awnd: Bytes(200_001), ..packet };
    assert!(sender(200_000).header(&sender_config(), Time(0), &packet).delta > 0);
    // What is not clamped is not stated either (docs/design/protocols.md 0.3); TH's sender alone does that (thesis.rs).
    let packet = Send { awnd: Bytes(65_536), ..packet };
    let plain = SenderConfig { clamp: false, ..sender_config() };
    assert_eq!(sender(200_000).header(&plain, Time(0), &packet).x, Duration(7_629_395).to_header());
}

/// TH Ex. 11, step 8: 134 packets allowed, 10 sent. The cure is any of the three.
#[test]
fn v1_20_a_sender_that_uses_less_than_its_window_gets_no_more() {
    let config = SenderConfig { rate_source: RateSource::Measured, ..sender_config() };
    let mut link = link(link_config(1_000_000), 500 * MS, 10 * SECOND);
    let mut sender = Sender::new(Bytes(1500), Bytes(134 * 1500));
    let packet = |left: u64| Send { size: Bytes(1500), backlog: Bytes(left * 1500), ..send(500 * MS) };
    let mut headers = vec![];
    for left in (1..=10).rev() {
        let header = sender.header(&config, Time(0), &packet(left));
        link.on_arrival(Time(0), &header, Bytes(1500));
        headers.push(header);
    }
    link.on_deadline(Time(500 * MS), Bytes(0));
    assert_eq!(link.report().feedback, 388_000);
    for header in &mut headers {
        link.on_departure(Time(500 * MS), header, Bytes(1500), Bytes(0));
        sender.on_ack(&config, Time(500 * MS), &ack(500 * MS, header.delta));
    }
    assert!(sender.window() <= Bytes(134 * 1500), "{:?}", sender.window());

    // The dishonest one would have opened to 263 packets (the oracle's figure).
    let greedy = SenderConfig { request: RequestPolicy::Unlimited, ..config };
    let mut other = Sender::new(Bytes(1500), Bytes(134 * 1500));
    (0..10).for_each(|_| other.on_ack(&greedy, Time(0), &ack(500 * MS, 38_800)));
    assert_eq!(other.window().0 / 1500, 263);
}

#[test]
fn the_measured_rate_is_what_the_header_states() {
    let config = SenderConfig { rate_source: RateSource::Measured, ..sender_config() };
    let mut sender = sender(100_000);
    // Before the first whole round trip there is nothing measured: the window.
    for i in 0..10 {
        let header = sender.header(&config, Time(i * 10 * MS), &send(100 * MS));
        assert_eq!(header.x, Duration(MS).to_header());
    }
    // 10 packets per 100 ms: one every 10 ms, not the window's one per ms.
    let header = sender.header(&config, Time(100 * MS), &send(100 * MS));
    assert_eq!(header.x, Duration(10 * MS).to_header());
    // Two packets in the next round trip, and 2 in the one after it.
    sender.header(&config, Time(150 * MS), &send(100 * MS));
    let header = sender.header(&config, Time(200 * MS), &send(100 * MS));
    assert_eq!(header.x, Duration(50 * MS).to_header());
    // Never slower than one segment per round trip, and never faster than the window.
    let header = sender.header(&config, Time(5 * SECOND), &send(100 * MS));
    assert_eq!(header.x, Duration(100 * MS).to_header());
    for _ in 0..500 {
        sender.header(&config, Time(5 * SECOND), &send(100 * MS));
    }
    let header = sender.header(&config, Time(5 * SECOND + 100 * MS), &send(100 * MS));
    assert_eq!(header.x, Duration(MS).to_header());
}

/// draft-03 §4.1.1.2, first and second case of not being able to use more.
#[test]
fn a_sender_without_enough_data_asks_for_nothing() {
    let packet = |backlog: u64| Send { backlog: Bytes(backlog), ..send(100 * MS) };
    let delta = |config: &SenderConfig, packet| sender(50_000).header(config, Time(0), &packet).delta;
    assert_eq!(delta(&sender_config(), packet(49_999)), 0);
    assert!(delta(&sender_config(), packet(50_000)) > 0);
    // But it may ask to be slowed.
    let slow = SenderConfig { desired_rate: Rate(400_000), ..sender_config() };
    assert_eq!(delta(&slow, packet(0)), -2000);
    let unlimited = SenderConfig { request: RequestPolicy::Unlimited, ..sender_config() };
    assert_eq!(delta(&unlimited, packet(0)), i32::MAX);
}

/// docs/design/protocols.md 1.3: the remainder goes to the next packet.
#[test]
fn demands_below_a_byte_per_second_are_not_lost() {
    // 1000001 B/s wanted at 1 MB/s and 0.1 s: 1 B/s over 100 packets; then 1.37 over 100 below.
    for (desired, total) in [(1_000_001, 10), (1_000_137, 1370), (999_999, -10), (999_863, -1370)] {
        let config = SenderConfig { desired_rate: Rate(desired), ..sender_config() };
        let mut sender = sender(100_000);
        let deltas: Vec<i32> =
            (0..1000).map(|_| sender.header(&config, Time(0), &send(100 * MS)).delta).collect();
        let (least, most) = (deltas.iter().min().unwrap(), deltas.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most}");
        let sum: i32 = deltas.iter().sum();
        assert!((sum - total).abs() <= 1, "{sum} of {total}");
        assert_eq!(deltas[0], total / 1000, "the first is rounded toward zero");
    }
}

/// X to the nearest, the demand within 1 B/s and the window within a byte of the formulas.
#[test]
fn the_sender_computes_the_formulas_of_the_draft() {
    let mut random = Random::new(10);
    for _ in 0..100_000 {
        let mss = 40 + random.below(9000);
        let window = mss + (random.next() >> (28 + random.below(26)));
        let srtt = MS / 10 + (random.next() >> (31 + random.below(16)));
        let desired = 1000 + (random.next() >> (30 + random.below(20)));
        let config = SenderConfig { desired_rate: Rate(desired), ..sender_config() };
        let mut sender = Sender::new(Bytes(mss), Bytes(window));
        let header = sender.header(&config, Time(0), &send(srtt));

        let (w, s, m) = (window as f64, srtt as f64 / 1e9, mss as f64);
        let x = f64::from(Duration(srtt).to_header()) * m / w;
        assert!((f64::from(header.x) - x).abs() <= 0.5 + 1e-6 || header.x == 1, "{} for {x}", header.x);
        let delta = ((desired as f64 - w / s) / (w / m)).clamp(f64::from(i32::MIN), f64::from(i32::MAX));
        assert!((f64::from(header.delta) - delta).abs() <= 1.001, "{} for {delta}", header.delta);

        let feedback = (random.next() as i32) >> random.below(30);
        sender.on_ack(&config, Time(0), &ack(srtt, feedback));
        let stated = f64::from(Duration(srtt).to_header()) / 268_435_456.0;
        let change = f64::from(feedback) * stated;
        let limit = (desired as f64 * stated).max(w);
        let exact = (w + change).min(if change > 0.0 { limit } else { f64::MAX }).max(m);
        let found = sender.window().0 as f64;
        assert!((found - exact).abs() <= 1.0, "{found} for {exact}");
    }
}

/// docs/design/linux.md 10: a thousand times -7 B/s at 40 ms is -280 bytes.
#[test]
fn small_feedback_adds_up_without_rounding() {
    for feedback in [7, -7] {
        let mut sender = sender(100_000);
        for _ in 0..1000 {
            sender.on_ack(&sender_config(), Time(0), &ack(SECOND / 32, feedback));
        }
        // 7000 / 32 = 218.75; windows are whole bytes downwards.
        assert_eq!(sender.window().0, if feedback > 0 { 100_218 } else { 99_781 });
        sender.on_ack(&sender_config(), Time(0), &ack(SECOND / 32, 8));
        assert_eq!(sender.window().0, if feedback > 0 { 100_219 } else { 99_781 });
    }
}

/// A queue that grew while the packet was on its way makes a rate larger in bytes, and no byte.
#[test]
fn bytes_move_the_window_whatever_the_round_trip_is_now() {
    let config = SenderConfig { feedback: Feedback::Bytes, ..sender_config() };
    for rtt in [SECOND, SECOND / 2, 3 * SECOND] {
        let mut sender = sender(10_000);
        sender.on_ack(&config, Time(0), &ack(rtt, 500));
        assert_eq!(sender.window(), Bytes(10_500));
        sender.on_ack(&config, Time(0), &ack(rtt, -700));
        assert_eq!(sender.window(), Bytes(9800));
    }
    assert!(matches!(config_echo(&config), Returned::Bytes(_)));
    let thesis = SenderConfig { profile: Profile::Thesis, ..config };
    assert!(matches!(config_echo(&thesis), Returned::Rate(_)), "it knows no such switch");
}

/// Whatever ACK comes says all that the lost ones said; one that was overtaken takes back what the next gives again.
#[test]
fn a_sum_outlasts_lost_acks() {
    let config = SenderConfig { feedback: Feedback::Sum, ..sender_config() };
    let header = Header { delta: 1600, ..Header::default() };
    let mut echo = config_echo(&config);
    let mut packet = Carried::default();
    packet.add_header(header);
    let sums = [(); 6].map(|()| {
        echo.on_data(&config, &packet, Listening::default());
        echo.on_ack(&config, Listening::default()).word
    });
    assert_eq!(sums, [100, 200, 300, 400, 500, 600], "steps of 16 B/s");
    let mut sender = sender(10_000);
    let hear = |sender: &mut Sender, sum: u32| {
        let ack = Ack { reply: Reply { word: sum, byte: 0 }, ..ack(SECOND, 0) };
        sender.on_ack(&config, Time(0), &ack);
        sender.window().0
    };
    // The second and third are lost; the fifth overtakes the fourth.
    let windows = [0, 3, 4, 5].map(|ack| hear(&mut sender, sums[ack]));
    assert_eq!(windows, [11_600, 16_400, 18_000, 19_600]);
    assert_eq!([sums[3], sums[5]].map(|sum| hear(&mut sender, sum)), [16_400, 19_600]);
    assert_eq!(hear(&mut sender, 50), 10_800, "less is asked for");
}

fn config_echo(config: &SenderConfig) -> Returned {
    EchoLaw::start(config, Bytes(1000))
}

/// TH 4.1.
#[test]
fn the_window_is_kept_within_what_the_receiver_advertises() {
    let limited = |config: &SenderConfig, awnd| {
        let mut sender = sender(10_000);
        sender.on_ack(config, Time(0), &Ack { awnd: Bytes(awnd), ..ack(100 * MS, 1_000_000) });
        sender.window().0
    };
    assert_eq!(limited(&sender_config(), 50_000), 50_000);
    assert_eq!(limited(&sender_config(), 5000), 5000);
    assert_eq!(limited(&sender_config(), 500), 1000, "one segment at least");
    assert_eq!(limited(&SenderConfig { clamp: false, ..sender_config() }, 50_000), 110_000);
}

/// draft-03 §5.6: host to host without any router, the demand comes back as it left.
#[test]
fn feedback_cannot_open_the_window_beyond_the_desired_rate() {
    let config =
        SenderConfig { request: RequestPolicy::Unlimited, desired_rate: Rate(1_000_000), ..sender_config() };
    let mut sender = sender(1000);
    sender.on_ack(&config, Time(0), &ack(SECOND / 8, i32::MAX));
    assert_eq!(sender.window(), Bytes(125_000));
    // A window beyond stays, it just does not grow.
    sender.on_ack(&config, Time(0), &ack(SECOND / 16, 5));
    assert_eq!(sender.window(), Bytes(125_000));
    sender.on_ack(&config, Time(0), &ack(SECOND / 16, -16_000));
    assert_eq!(sender.window(), Bytes(124_000));
    // ns-2 knows no such bound.
    let mut sender = Sender::new(Bytes(1000), Bytes(1000));
    sender.on_ack(&SenderConfig { profile: Profile::Ns2, ..config }, Time(0), &ack(SECOND / 8, 16_000_000));
    assert_eq!(sender.window(), Bytes(2_001_000));
}

#[test]
fn pacing_spreads_the_window_over_the_round_trip() {
    let config = SenderConfig { pacing: true, ..sender_config() };
    let mut sender = sender(100_000);
    assert_eq!(sender.pacing_rate(&config, Duration(100 * MS)), Some(Rate(1_000_000)));
    assert_eq!(sender.pacing_rate(&config, Duration(0)), None);
    let bursts = SenderConfig { pacing: false, ..sender_config() };
    assert_eq!(sender.pacing_rate(&bursts, Duration(100 * MS)), None);
    // What the receiver does not take need not be paced; a segment always is.
    sender.header(&config, Time(0), &Send { awnd: Bytes(50_000), ..send(100 * MS) });
    assert_eq!(sender.pacing_rate(&config, Duration(100 * MS)), Some(Rate(500_000)));
    sender.header(&config, Time(0), &Send { awnd: Bytes(0), ..send(100 * MS) });
    assert_eq!(sender.pacing_rate(&config, Duration(100 * MS)), Some(Rate(10_000)));
    let free = SenderConfig { clamp: false, ..config };
    assert_eq!(sender.pacing_rate(&free, Duration(100 * MS)), Some(Rate(10_000)));
}

/// K02 §6.
#[test]
fn a_price_multiplies_the_stated_inter_packet_time() {
    let priced = |price: u32| {
        let config = SenderConfig { price: Ratio(price), ..sender_config() };
        sender(10_000).header(&config, Time(0), &send(100 * MS)).x
    };
    assert_eq!(priced(1_000_000), 2_684_355);
    assert_eq!(priced(2_000_000), 5_368_710);
    assert_eq!(priced(500_000), 1_342_177);
    assert_eq!(priced(0), 1, "0 would be unknown");
}

/// docs/ns2.md 3: x from `min(floor(cwnd) + dupwnd, awnd)` packets.
#[test]
fn ns2_states_whole_packets() {
    let config = SenderConfig { profile: Profile::Ns2, request: RequestPolicy::Unlimited, ..sender_config() };
    let stated = |window: u64, inflation: u64, awnd: u64| {
        let packet = Send { inflation: Bytes(inflation), awnd: Bytes(awnd), ..send(SECOND) };
        let header = sender(window).header(&config, Time(0), &packet);
        assert_eq!(header.delta, i32::MAX);
        (1 << 28) as f64 / f64::from(header.x)
    };
    let near =
        |found: f64, packets: f64| assert!((found / packets - 1.0).abs() < 1e-6, "{found} of {packets}");
    near(stated(7999, 0, u64::MAX), 7.0);
    near(stated(7999, 3000, u64::MAX), 10.0);
    near(stated(7999, 3000, 9000), 9.0);
    near(stated(3_000_000, 0, 1000), 1.0);
    near(stated(7999, 0, 0), 1.0);
    // By default only the window counts, as it is.
    let packet = Send { inflation: Bytes(3000), ..send(SECOND) };
    let header = sender(8000).header(&sender_config(), Time(0), &packet);
    assert_eq!(header.x, 1 << 25);
}

/// docs/ns2.md 5; otherwise every ACK's feedback counts (docs/design/protocols.md 1.3.2).
#[test]
fn ns2_drops_the_feedback_of_duplicate_acks() {
    let after = |ns2: bool, is_duplicate: bool| {
        let mut sender = sender(10_000);
        let ack = Ack { is_duplicate, ..ack(SECOND, 1000) };
        sender.on_ack(
            &SenderConfig { profile: if ns2 { Profile::Ns2 } else { Profile::Standard }, ..sender_config() },
            Time(0),
            &ack,
        );
        sender.window().0
    };
    assert_eq!((after(true, false), after(true, true)), (11_000, 10_000));
    assert_eq!((after(false, false), after(false, true)), (11_000, 11_000));
}

mod loss {
    use super::*;

    fn after_loss(loss: LossPolicy, window: u64) -> Sender {
        let mut sender = sender(window);
        sender.on_loss(&SenderConfig { loss, ..sender_config() }, Time(0), Bytes(window));
        sender
    }

    #[test]
    fn tcp_halves_the_window_in_use() {
        assert_eq!(after_loss(LossPolicy::Tcp, 64_000).window(), Bytes(32_000));
        assert_eq!(after_loss(LossPolicy::Tcp, 1500).window(), Bytes(1000));
        // A window beyond what the receiver takes was not in use.
        let config = SenderConfig { clamp: false, ..sender_config() };
        let mut sender = sender(64_000);
        sender.header(&config, Time(0), &Send { awnd: Bytes(20_000), ..send(SECOND) });
        sender.on_loss(&config, Time(0), Bytes(20_000));
        assert_eq!(sender.window(), Bytes(10_000));
        // Feedback goes on meanwhile.
        sender.on_ack(&config, Time(0), &Ack { in_recovery: true, ..ack(SECOND, 500) });
        assert_eq!(sender.window(), Bytes(10_500));
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_feedback_builds_on_it() {
        for loss in [LossPolicy::Tcp, LossPolicy::Maintain, LossPolicy::Fallback] {
            let config = SenderConfig { loss, ..sender_config() };
            let mut sender = sender(64_000);
            sender.on_timeout(&config, Time(0), Bytes(64_000), true);
            assert_eq!(sender.window(), Bytes(1000), "{loss:?}");
            sender.on_ack(&config, Time(0), &Ack { in_recovery: true, ..ack(SECOND, 500) });
            let expected = if loss == LossPolicy::Fallback { 1000 } else { 1500 };
            assert_eq!(sender.window(), Bytes(expected), "{loss:?}");
        }
    }

    /// draft-03 §5.1: Reno rules from the loss until XCP's feedback over a round trip is less than
    /// Reno's growth.
    #[test]
    fn fallback_follows_reno_until_xcp_is_the_stricter() {
        let config = SenderConfig { loss: LossPolicy::Fallback, ..sender_config() };
        let mut sender = after_loss(LossPolicy::Fallback, 64_000);
        assert_eq!(sender.window(), Bytes(32_000));
        let mut now = 0;
        let mut round = |sender: &mut Sender, feedback: i32, in_recovery: bool| {
            let packets = sender.window().0 / MSS;
            for _ in 0..packets {
                now += SECOND / packets + 1;
                let ack = Ack { is_window_limited: true, in_recovery, ..ack(SECOND, feedback) };
                sender.on_ack(&config, Time(now), &ack);
            }
            sender.window().0
        };
        // In recovery nothing grows and nothing is compared.
        assert_eq!(round(&mut sender, -100, true), 32_000);
        // XCP would open by 32 * 1000 B per round trip, Reno by a segment.
        assert_eq!(round(&mut sender, 1000, false), 33_000);
        assert_eq!(round(&mut sender, 1000, false), 34_000);
        // XCP wants to open by less than a segment in all: it takes over where Reno stands.
        let window = round(&mut sender, 10, false);
        assert!((34_000..=35_000).contains(&window), "{window}");
        assert_eq!(round(&mut sender, 1000, false), window + window / 1000 * 1000);
        // The next loss brings Reno back.
        sender.on_loss(&config, Time(now), Bytes(40_000));
        assert_eq!(sender.window(), Bytes(20_000));
        // Idle for long, TCP's window restarts; XCP's would not.
        sender.on_restart(&config, Time(now), Bytes(4000));
        assert_eq!(sender.window(), Bytes(4000));
    }

    #[test]
    fn an_idle_window_does_not_restart() {
        let mut sender = sender(64_000);
        sender.on_restart(&sender_config(), Time(0), Bytes(4000));
        assert_eq!(sender.window(), Bytes(64_000));
    }

    /// RFC 5681 eq. 4: the flight counts, and a repeated timeout does not lower the threshold again.
    #[test]
    fn fallback_slow_starts_to_the_threshold_after_a_timeout() {
        let config = SenderConfig { loss: LossPolicy::Fallback, ..sender_config() };
        let mut sender = sender(64_000);
        sender.on_timeout(&config, Time(0), Bytes(16_000), true);
        sender.on_timeout(&config, Time(0), Bytes(1000), false);
        let mut windows = vec![];
        for i in 0..20 {
            let ack = Ack { is_window_limited: true, in_recovery: true, ..ack(SECOND, 1_000_000) };
            sender.on_ack(&config, Time(i), &ack);
            windows.push(sender.window().0 / MSS);
        }
        assert_eq!(windows[..8], [2, 3, 4, 5, 6, 7, 8, 8]);
    }
}

mod aging {
    use super::*;

    fn config() -> SenderConfig {
        SenderConfig { aging: Some(Ratio::ppm(500_000)), ..sender_config() }
    }

    /// V1.7: allowed 1 MB/s, actual 0.2 MB/s, weight a half.
    #[test]
    fn v1_7_an_unused_rate_ages_towards_what_is_sent() {
        let mut sender = sender(100_000);
        let mut rates = vec![];
        for round in 0..6 {
            for packet in 0..20 {
                sender.header(&config(), Time((round * 20 + packet) * 5 * MS), &send(100 * MS));
                if packet == 0 && round > 0 {
                    rates.push(sender.window().0 * 10);
                }
            }
        }
        assert_eq!(rates, [600_000, 400_000, 300_000, 250_000, 225_000]);
    }

    /// A busy sender's last segment below its window is rounding.
    #[test]
    fn a_segment_below_the_window_is_not_unused() {
        let mut sender = sender(20_500);
        for i in 0..100 {
            sender.header(&config(), Time(i * 5 * MS), &send(100 * MS));
        }
        assert_eq!(sender.window(), Bytes(20_500));
        // But more than a segment is.
        let mut sender = super::sender(21_001);
        for i in 0..=20 {
            sender.header(&config(), Time(i * 5 * MS), &send(100 * MS));
        }
        assert_eq!(sender.window(), Bytes(20_500));
    }

    #[test]
    fn idle_round_trips_each_age_the_window() {
        let mut sender = sender(64_000);
        sender.header(&config(), Time(0), &send(100 * MS));
        sender.header(&config(), Time(350 * MS), &send(100 * MS));
        // First to (64 + 1) / 2, then two idle: / 4.
        assert_eq!(sender.window(), Bytes(8125));
        sender.header(&config(), Time(1000 * SECOND), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(1000));
        // With a small weight the number of round trips counts exactly.
        let slow = SenderConfig { aging: Some(Ratio::ppm(10_000)), ..sender_config() };
        for rounds in [2, 11, 101, 301] {
            let mut sender = super::sender(64_000);
            sender.header(&slow, Time(0), &send(100 * MS));
            sender.header(&slow, Time(rounds * 100 * MS), &send(100 * MS));
            let mut exact = 64_000.0 - 0.01 * 63_000.0;
            (1..rounds).for_each(|_| exact *= 0.99);
            assert!((sender.window().0 as f64 - exact).abs() < 1.0, "{:?} for {exact}", sender.window());
        }
    }

    #[test]
    fn a_sender_that_the_window_stops_is_not_idle() {
        let limited = Send { is_window_limited: true, ..send(100 * MS) };
        // Stopped when the epoch ends: neither its first nor its later round trips count.
        let mut sender = sender(64_000);
        sender.header(&config(), Time(0), &limited);
        sender.on_ack(&config(), Time(350 * MS), &ack(100 * MS, 0));
        assert_eq!(sender.window(), Bytes(64_000));
        // Stopped at some moment, then out of data: only the later ones do.
        let mut sender = super::sender(64_000);
        sender.header(&config(), Time(0), &limited);
        sender.on_ack(&config(), Time(50 * MS), &ack(100 * MS, 0));
        sender.header(&config(), Time(350 * MS), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(16_000));
        // As the ACK tells it.
        let mut sender = super::sender(64_000);
        sender.header(&config(), Time(0), &send(100 * MS));
        sender.on_ack(&config(), Time(50 * MS), &Ack { is_window_limited: true, ..ack(100 * MS, 0) });
        sender.header(&config(), Time(150 * MS), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(64_000));
        // A sender still stopped begins the next epoch so.
        let mut sender = super::sender(64_000);
        sender.header(&config(), Time(0), &limited);
        sender.header(&config(), Time(100 * MS), &limited);
        sender.on_ack(&config(), Time(150 * MS), &ack(100 * MS, 0));
        sender.header(&config(), Time(200 * MS), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(64_000));
    }

    #[test]
    fn nothing_ages_while_a_loss_is_repaired() {
        let mut sender = sender(64_000);
        let keep = SenderConfig { loss: LossPolicy::Maintain, ..config() };
        sender.header(&keep, Time(0), &send(100 * MS));
        sender.on_loss(&keep, Time(50 * MS), Bytes(64_000));
        sender.on_ack(&keep, Time(150 * MS), &Ack { in_recovery: true, ..ack(100 * MS, 0) });
        sender.header(&keep, Time(300 * MS), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(64_000));
        sender.on_ack(&keep, Time(310 * MS), &ack(100 * MS, 0));
        sender.header(&keep, Time(400 * MS), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(32_500));
        // After a timeout the window is one segment already, and stays.
        sender.on_timeout(&keep, Time(400 * MS), Bytes(1000), true);
        sender.header(&keep, Time(900 * MS), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(1000));
        // TCP's window is not XCP's to age.
        let fallback = SenderConfig { loss: LossPolicy::Fallback, ..config() };
        let mut sender = super::sender(64_000);
        sender.on_loss(&fallback, Time(0), Bytes(64_000));
        sender.on_ack(&fallback, Time(0), &ack(100 * MS, i32::MAX));
        sender.header(&fallback, Time(350 * MS), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(32_000));
    }

    #[test]
    fn nothing_ages_while_the_round_trip_time_is_unknown_or_aging_is_off() {
        let mut sender = sender(64_000);
        sender.header(&config(), Time(0), &send(0));
        sender.header(&config(), Time(SECOND), &send(0));
        assert_eq!(sender.window(), Bytes(64_000));
        sender.header(&sender_config(), Time(2 * SECOND), &send(100 * MS));
        assert_eq!(sender.window(), Bytes(64_000));
    }
}
