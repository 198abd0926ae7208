//! What holds for any input.

use super::random::Random;
use super::*;
use congestlab_core::law::xcp::{Echo, Sender};
use congestlab_core::law::{Ack, Send, SenderLaw as _};

fn any_link_config(random: &mut Random) -> LinkConfig {
    LinkConfig {
        capacity: Rate(random.word()),
        alpha: Ratio(random.half()),
        beta: Ratio(random.half()),
        gamma: Ratio(random.half()),
        min_interval: Duration(random.word()),
        max_interval: Duration(if random.coin() { random.word() } else { 0 }),
        initial_interval: Duration(random.word()),
        allowed_queue: Duration(random.word()),
        capture: random.coin(),
        thesis: random.below(4) == 0,
        overdraw: random.below(4) == 0,
        bound_headers: random.coin(),
        spread: random.coin(),
        average_queue: random.coin(),
        remember_grants: random.coin(),
    }
}

/// No arithmetic of the link law overflows (tests run with overflow checks), deadlines lie in the
/// future, and no demand is raised.
#[test]
fn a_link_survives_any_input_and_never_raises_a_demand() {
    let mut random = Random::new(6);
    for _ in 0..3000 {
        let config =
            if random.below(3) == 0 { link_config(random.word()) } else { any_link_config(&mut random) };
        let phases = [Duration(random.word()), Duration(random.word())];
        let mut link = Link::new(config, phases[0], phases[1]);
        let mut now = 0u64;
        for _ in 0..100 {
            now = now.saturating_add(random.word() >> (20 + random.below(40)));
            let header = random.header();
            match random.below(8) {
                0..=2 => link.on_arrival(Time(now), &header, Bytes(random.word())),
                3 | 4 => {
                    let mut out = header;
                    link.on_departure(Time(now), &mut out, Bytes(random.word()), Bytes(random.word()));
                    assert!(out.delta <= header.delta);
                    assert_eq!(Header { delta: header.delta, ..out }, header);
                }
                5 => link.on_other_departure(Time(now), Bytes(random.word())),
                6 => link.set_capacity(Rate(random.word())),
                _ => {
                    now = now.max(link.next_deadline().0);
                    link.on_deadline(Time(now), Bytes(random.word()));
                    // A deadline at once only by a configuration of zeros.
                    let zeros = [config.min_interval, config.initial_interval, config.allowed_queue];
                    assert!(
                        link.next_deadline() > Time(now) || now == u64::MAX || zeros.contains(&Duration(0))
                    );
                }
            }
        }
    }
}

/// An interval hands out at most its pool of grants, and with all its packets asking for everything
/// almost exactly the aggregate.
#[test]
fn an_interval_never_grants_more_than_its_aggregate() {
    let mut random = Random::new(7);
    for round in 0..20_000 {
        let capacity = 8000 << random.below(18);
        let mut link =
            link(LinkConfig { capture: round % 2 == 0, ..link_config(capacity) }, 100 * MS, 100 * SECOND);
        let count = 1 + random.below(60);
        let packets: Vec<(Header, u64)> = (0..count)
            .map(|_| {
                let most = SECOND >> random.below(20);
                let x = 1000 + random.below(most);
                let header = header(x, MS + random.below(SECOND), ALL);
                (header, 40 + random.below(capacity / 20 + 1500))
            })
            .collect();
        packets.iter().for_each(|(header, size)| link.on_arrival(Time(0), header, Bytes(*size)));
        link.on_deadline(Time(100 * MS), Bytes(0));
        let (y, f) = (link.report().input.0 as i64, link.report().feedback);
        let shuffled = (y / 10 + 1 - f.abs()).max(0);

        // The same packets, all demanding: what left is F, less one rounding per interval.
        let mut same = link.clone();
        let granted: i64 =
            packets.iter().map(|(header, size)| i64::from(depart(&mut same, *header, *size))).sum();
        assert!(granted <= f + 1, "{granted} B/s granted of {f}");
        assert!(f - granted <= 2, "{granted} B/s granted of {f}");

        // Any packets, any demands: never more than F and all that was shuffled.
        let mut total = 0;
        for _ in 0..200 {
            let (mut header, size) = packets[random.below(count) as usize];
            header.x = header.x.saturating_mul(1 + random.below(3) as u32);
            header.delta = if random.below(3) == 0 { random.half() as i32 } else { ALL };
            total += i64::from(depart(&mut link, header, random.below(size)));
            assert!(total <= f.max(0) + shuffled + 1, "{total} B/s granted of {f} and {shuffled} shuffled");
        }
    }
}

/// However large X and RTT are: no packet gets more than one that is sent once in an interval, and the interval is
/// at most twice the mean round trip over packets.
#[test]
fn what_a_header_states_counts_for_no_more_than_could_be_true() {
    let mut random = Random::new(16);
    for _ in 0..20_000 {
        let config = LinkConfig { bound_headers: true, ..link_config(8000 << random.below(18)) };
        let mut link = link(config, 50 * MS, 100 * SECOND);
        let (honest, lies) = (1 + random.below(60), random.below(10));
        let (mut sum, mut bounded) = (0, 0);
        let most = |link: &Link| link.report().interval.min(config.initial_interval).to_header();
        for i in 0..honest + lies {
            let rtt = MS + random.below(500 * MS);
            let mut packet = header(1000 + random.below(rtt), rtt, ALL);
            if i >= honest {
                packet = Header { x: random.half().max(1), rtt: random.half().max(1), ..packet };
            }
            bounded += u64::from(packet.x > most(&link));
            sum += Duration::from_header(packet.rtt).min(config.max_interval).0;
            link.on_arrival(Time(0), &packet, Bytes(40 + random.below(1460)));
        }
        link.on_deadline(Time(50 * MS), Bytes(0));
        let report = link.report();
        let mean = Duration(2 * sum / (honest + lies)).max(config.min_interval);
        assert!(report.interval.0 <= mean.0 + 10, "{report:?} after packets that state {mean:?}");
        assert_eq!(report.bounded, bounded);

        let size = random.below(1500);
        let got = |x: u32| depart(&mut link.clone(), Header { x, ..header(0, MS, ALL) }, size);
        assert_eq!(got(u32::MAX), got(most(&link)));
        assert!(got(random.half()) <= got(most(&link)));
    }
}

/// The echo law returns every byte per second that arrived, whatever the grouping.
#[test]
fn the_receiver_returns_all_that_arrived() {
    let mut random = Random::new(8);
    let mut echo = Echo::default();
    let (mut arrived, mut returned) = (0i64, 0i64);
    for _ in 0..100_000 {
        let header = random.header();
        arrived += i64::from(header.delta);
        echo.on_data(&header);
        if random.below(3) == 0 {
            returned += i64::from(echo.on_ack());
        }
    }
    while echo != Echo::default() {
        returned += i64::from(echo.on_ack());
    }
    assert_eq!(returned, arrived);
}

fn any_sender_config(random: &mut Random) -> SenderConfig {
    let config = any::sender_config(random);
    let profile = [Profile::Standard, Profile::Ns2, Profile::Thesis][random.below(3) as usize];
    SenderConfig { profile, ..config }
}

/// What TCP's machinery calls is the law that the configuration names, for every event.
#[test]
fn the_machinery_reaches_the_configured_law() {
    use congestlab_core::law::{self, Carried, Packet as _, cubic, reno};
    let mut random = Random::new(13);
    let xcp = SenderConfig { pacing: true, ..sender_config() };
    let configs = [
        law::SenderConfig::Reno(reno::Config::DEFAULT),
        law::SenderConfig::Cubic(cubic::Config {}),
        law::SenderConfig::Xcp(xcp),
    ];
    let (mss, initial) = (Bytes(1000), Bytes(10_000));
    let mut laws = configs.each_ref().map(|config| law::Sender::new(config, mss, initial));
    let (mut reno, mut cubic) = (reno::Reno::new(mss, initial), cubic::Cubic::new(mss, initial));
    let mut sender = Sender::new(mss, initial);
    for i in 0..2000 {
        let (now, flight) = (Time(i * MS), Bytes(5000 + random.below(50_000)));
        let (rtt, awnd) = (Duration((20 + random.below(10)) * MS), Bytes(200_000));
        let ack = Ack {
            acked: mss,
            flight,
            awnd,
            rtt,
            srtt: rtt,
            reply: xcp::reply(random.below(20_000) as i32 - 10_000),
            is_window_limited: true,
            ..Ack::default()
        };
        let send = Send { size: mss, srtt: rtt, awnd, backlog: Bytes(u64::MAX), ..Send::default() };
        let event = random.below(60);
        let is_first = random.coin();
        for (law, config) in laws.iter_mut().zip(&configs) {
            match event {
                0 => law.on_loss(config, now, flight),
                1 => law.on_timeout(config, now, flight, is_first),
                2 => law.on_restart(config, now, initial),
                _ => law.on_ack(config, now, &ack),
            }
        }
        match event {
            0 => {
                reno.on_loss(&reno::Config::DEFAULT, now, flight);
                cubic.on_loss(&cubic::Config {}, now, flight);
                sender.on_loss(&xcp, now, flight);
            }
            1 => {
                reno.on_timeout(&reno::Config::DEFAULT, now, flight, is_first);
                cubic.on_timeout(&cubic::Config {}, now, flight, is_first);
                sender.on_timeout(&xcp, now, flight, is_first);
            }
            2 => {
                reno.on_restart(&reno::Config::DEFAULT, now, initial);
                cubic.on_restart(&cubic::Config {}, now, initial);
                sender.on_restart(&xcp, now, initial);
            }
            _ => {
                reno.on_ack(&reno::Config::DEFAULT, now, &ack);
                cubic.on_ack(&cubic::Config {}, now, &ack);
                sender.on_ack(&xcp, now, &ack);
            }
        }
        let windows = [reno.window(), cubic.window(), sender.window()];
        assert_eq!(laws.each_ref().map(law::Sender::window), windows, "event {event}");
        let mut headers = vec![];
        for (law, config) in laws.iter_mut().zip(&configs) {
            let mut packet = Carried::default();
            let rate = law.on_send(config, now, &send, rtt, &mut packet);
            assert_eq!(rate, law.pacing_rate(config, rtt));
            headers.push(packet.header::<Header>());
        }
        assert_eq!(headers, [None, None, Some(sender.header(&xcp, now, &send))]);
        let paces: Vec<_> =
            laws.iter().zip(&configs).map(|(law, config)| law.pacing_rate(config, rtt)).collect();
        assert_eq!(paces, [None, None, Some(sender.window().per(rtt))]);
    }
}

/// No arithmetic of the sender law overflows, and the window never falls below one segment.
#[test]
fn a_sender_survives_any_input_and_keeps_one_segment() {
    let mut random = Random::new(9);
    for _ in 0..3000 {
        let config = any_sender_config(&mut random);
        let mss = if random.coin() { 1500 } else { random.word() };
        let mut sender = Sender::new(Bytes(mss), Bytes(random.word()));
        let mut now = 0u64;
        for _ in 0..100 {
            now = now.saturating_add(random.word() >> (20 + random.below(40)));
            let flight = Bytes(random.word());
            match random.below(8) {
                0..=2 => {
                    let ack = Ack {
                        acked: Bytes(random.word()),
                        flight,
                        awnd: Bytes(random.word()),
                        rtt: Duration(random.word()),
                        srtt: Duration(random.word()),
                        reply: xcp::reply(random.half() as i32),
                        is_duplicate: random.below(4) == 0,
                        in_recovery: random.below(4) == 0,
                        is_window_limited: random.coin(),
                        ..Ack::default()
                    };
                    sender.on_ack(&config, Time(now), &ack);
                }
                3 | 4 => {
                    let send = Send {
                        size: Bytes(random.word()),
                        srtt: Duration(random.word()),
                        awnd: Bytes(random.word()),
                        backlog: Bytes(random.word()),
                        inflation: Bytes(random.word()),
                        is_window_limited: random.coin(),
                    };
                    let header = sender.header(&config, Time(now), &send);
                    let srtt = match send.srtt.0 {
                        ns if config.profile == Profile::Thesis => {
                            Duration(ns.div_ceil(1_000_000).saturating_mul(1_000_000))
                        }
                        ns => Duration(ns),
                    };
                    assert_eq!(header.rtt, srtt.to_header());
                    assert_eq!(header.x == 0, send.srtt == Duration(0));
                }
                5 => sender.on_loss(&config, Time(now), flight),
                6 => sender.on_timeout(&config, Time(now), flight, random.coin()),
                _ => sender.on_restart(&config, Time(now), Bytes(random.word())),
            }
            let _ = sender.pacing_rate(&config, Duration(random.word()));
            // No segment is longer than an IP packet.
            assert!(sender.window() >= Bytes(mss.clamp(1, 65_535)), "{:?} with {config:?}", sender.window());
        }
    }
}
