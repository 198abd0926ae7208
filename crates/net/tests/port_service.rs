//! Service: exact transmission times, integrals of the rate, traces and what is refused.

use congestlab_core::units::{BitRate, Rate};
use congestlab_net::packet::Picos;
use congestlab_net::random::Stream;
use congestlab_net::service::{PS_PER_S, RateError, Server, Service, Steps};
use congestlab_net::trace::{Trace, TraceError};

const MS: Picos = 1_000_000_000;

/// Work of a busy period so far, 10^-12 bit.
fn work(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * u128::from(PS_PER_S)
}

#[test]
fn a_kilobyte_at_10_mbit_per_s_takes_800_microseconds() {
    let mut server = Server::new(&Service::Fixed(BitRate(10_000_000)));
    assert_eq!(server.transmit(5, 1000), 800_000_000 + 5);
}

/// However odd the rate: after n packets the end is the exact sum, rounded up once.
#[test]
fn transmission_times_do_not_drift() {
    for seed in 0..200 {
        let mut draw = Stream::named(seed, "test");
        let digits = draw.below(60);
        let rate = 1 + draw.below(1 << digits);
        let mut server = Server::new(&Service::Fixed(BitRate(rate)));
        let begin = draw.below(PS_PER_S);
        let mut end = begin;
        let mut sum = 0;
        for _ in 0..1000 {
            let size = [40, 1000, 1 + draw.below(65_535) as u32][draw.below(3) as usize];
            sum += u64::from(size);
            let Ok(exact) = u64::try_from(u128::from(begin) + work(sum).div_ceil(u128::from(rate))) else {
                assert_eq!(
                    server.transmit(end, size),
                    u64::MAX,
                    "seed {seed}, rate {rate}: beyond all times"
                );
                break;
            };
            end = server.transmit(end, size);
            assert_eq!(end, exact, "seed {seed}, rate {rate}, {sum} bytes");
        }
        // Idle capacity is not saved.
        server.rest();
        let alone = work(1000).div_ceil(u128::from(rate)) as u64;
        assert_eq!(server.transmit(0, 1000), alone, "seed {seed}, rate {rate}");
    }
}

#[test]
fn a_packet_goes_on_at_the_new_rate_when_it_steps() {
    let steps =
        Steps::new(vec![(0, BitRate(8_000_000)), (MS, BitRate(4_000_000)), (4 * MS, BitRate(80_000_000))]);
    let service = Service::Steps(steps.unwrap());
    let mut server = Server::new(&service);
    // 1 ms at 1 kB/ms, the other 500 B at 0.5 kB/ms.
    assert_eq!(server.transmit(0, 1500), 2 * MS);
    // 1000 B until 4 ms, then 500 B at 10 kB/ms.
    assert_eq!(server.transmit(2 * MS, 1500), 4 * MS + MS / 20);
    assert_eq!(service.rate_at(MS - 1), BitRate(8_000_000));
    assert_eq!(service.rate_at(MS), BitRate(4_000_000));
    assert_eq!(service.capacity_at(MS), Rate(500_000));
    assert_eq!(service.work(0, 5 * MS), work(1000 + 3 * 500 + 10_000));
    assert_eq!(service.work(MS / 2, 3 * MS / 2), work(750));
    assert_eq!(service.mean_rate(0, 2 * MS), BitRate(6_000_000));
    assert_eq!(service.mean_rate(MS, MS), BitRate(4_000_000));
    assert_eq!(service.shortest(1000), MS / 10);
}

/// The end of each packet is the first instant by which the integral of the rate covers it.
#[test]
fn stepping_service_is_the_integral_of_its_rate() {
    for seed in 0..300 {
        let mut draw = Stream::named(seed, "test");
        let mut at = 0;
        let steps = (0..2 + draw.below(20)).map(|_| {
            let digits = 15 + draw.below(16);
            let step = (at, BitRate(1 + draw.below(1 << digits)));
            at += 1 + draw.below(20 * MS);
            step
        });
        let service = Service::Steps(Steps::new(steps.collect()).unwrap());
        let mut server = Server::new(&service);
        let mut end = draw.below(10 * MS);
        for _ in 0..20 {
            // A busy period of a few packets after some idle time.
            let begin = end + draw.below(5 * MS);
            let mut sum = 0;
            server.rest();
            end = begin;
            for _ in 0..1 + draw.below(6) {
                let size = 1 + draw.below(1500) as u32;
                sum += u64::from(size);
                end = server.transmit(end, size);
                let enough = service.work(begin, end) >= work(sum);
                assert!(enough && service.work(begin, end - 1) < work(sum), "seed {seed}: {sum} B by {end}");
            }
        }
    }
}

#[test]
fn steps_that_can_not_be_served_are_refused() {
    let rate = BitRate(1_000_000);
    assert_eq!(Steps::new(vec![]), Err(RateError::NoStep));
    assert_eq!(Steps::new(vec![(1, rate)]), Err(RateError::LateFirstStep));
    assert_eq!(Steps::new(vec![(0, rate), (5, BitRate(0))]), Err(RateError::ZeroRate { step: 1 }));
    assert_eq!(Steps::new(vec![(0, rate), (5, rate), (5, rate)]), Err(RateError::NotIncreasing { step: 2 }));
    assert_eq!(RateError::LateFirstStep.to_string(), "the first step must begin at 0 s");
}

#[test]
fn small_packets_share_an_opportunity_and_a_large_one_takes_several() {
    let service = Service::Trace(Trace::parse(b"1\n3\n3\n10\n").unwrap());
    let mut server = Server::new(&service);
    assert!(server.is_closed());
    // Waits from 0 for the first; 300 B of it are left.
    assert_eq!(server.opening(0, 0), MS);
    assert_eq!(server.transmit(MS, 1200), MS);
    // Queued behind it: begins in the rest, ends with the first of two at 3 ms.
    assert_eq!(server.next_opening(MS), MS);
    assert_eq!(server.transmit(MS, 1800), 3 * MS);
    // That is used up; the next begins with the second at 3 ms and goes on at 10 ms.
    assert_eq!(server.next_opening(3 * MS), 3 * MS);
    assert_eq!(server.transmit(3 * MS, 1501), 10 * MS);
    // Nothing queued: the rest of 10 ms is wasted, and so is what falls on the instant of arrival.
    assert_eq!(server.opening(11 * MS, 10 * MS), 13 * MS);
    assert_eq!(server.transmit(13 * MS, 40), 13 * MS);
    assert_eq!(server.opening(13 * MS, 13 * MS), 20 * MS);
    // After a long silence, in a later period.
    assert_eq!(server.transmit(20 * MS, 40), 20 * MS);
    assert_eq!(server.opening(12_345 * MS, 20 * MS), 12_350 * MS);
    assert_eq!(server.opening(12_350 * MS - 1, 20 * MS), 12_350 * MS);
}

#[test]
fn a_trace_offers_its_opportunities() {
    let trace = Trace::parse(b"0\n1\n3\n3\n7\n").unwrap();
    assert_eq!((trace.period(), trace.bits_per_period()), (7 * MS, 60_000));
    let service = Service::Trace(trace);
    // 5 times 12 kbit in 7 ms.
    assert_eq!(service.rate_at(0), BitRate(60_000_000 / 7));
    // The opportunity at 0 ends before any packet can begin; that at 7 ms is followed by that at 0 of the next period.
    assert_eq!(service.work(0, 7 * MS), work(4 * 1500 + 1500));
    assert_eq!(service.work(3 * MS, 3 * MS + 7_000_000 * MS), work(7_500_000_000));
    assert_eq!(service.work(0, MS), work(1500));
    assert_eq!(service.work(MS, 3 * MS - 1), 0);
    assert_eq!(service.work(MS, 3 * MS), work(3000));
    assert_eq!(service.work(3 * MS, MS), 0);
    assert_eq!(service.mean_rate(3 * MS, 6 * MS), BitRate(0));
    assert_eq!(service.shortest(1500), 0);
}

/// The end of a transmission is the first instant by which the link has offered its bytes.
#[test]
fn a_transmission_ends_once_its_bytes_were_offered() {
    for seed in 0..300 {
        let mut draw = Stream::named(seed, "test");
        let service = match seed % 3 {
            0 => Service::Fixed(BitRate(1 + draw.below(1_000_000_000))),
            1 => {
                let mut at = 0;
                let step = |_| {
                    let begin = at;
                    at += 1 + draw.below(30 * MS);
                    (begin, BitRate(1 + draw.below(100_000_000)))
                };
                Service::Steps(Steps::new((0..5).map(step).collect()).unwrap())
            }
            _ => {
                let mut stamps: Vec<u32> = (0..=draw.below(30)).map(|_| draw.below(100) as u32).collect();
                stamps.sort_unstable();
                stamps.push(100);
                Service::Trace(Trace::new(stamps).unwrap())
            }
        };
        for _ in 0..20 {
            let (from, bytes) = (draw.below(500 * MS), 1 + draw.below(100_000));
            let end = service.end(from, bytes);
            let (until, before) = (service.work(from, end), service.work(from, end - 1));
            assert!(
                until >= work(bytes) && before < work(bytes),
                "seed {seed}: {bytes} B from {from} to {end}"
            );
        }
        assert_eq!(service.end(5 * MS, 0), 5 * MS);
    }
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    let refused = |text: &str| Trace::parse(text.as_bytes()).unwrap_err();
    assert_eq!(refused(""), TraceError::Empty);
    assert_eq!(refused(" \n\n"), TraceError::Empty);
    for (text, line, shown) in [
        ("1\nx\n", 2, "x"),
        ("1\n\n2\n", 2, ""),
        ("-1\n", 1, "-1"),
        ("1.5", 1, "1.5"),
        ("1\n2x 3 4", 2, "2x 3 4"),
        ("4294967296", 1, "4294967296"),
        ("1\ntime rate\n", 2, "time rate"),
    ] {
        assert_eq!(refused(text), TraceError::NotANumber { line, text: shown.into() }, "{text:?}");
    }
    let long = refused(&format!("1\n{}", "x".repeat(2000))).to_string();
    assert_eq!(
        long,
        format!("line 2, `{}...`, is not a whole number of milliseconds below 4294967296", "x".repeat(80))
    );
    // Seconds and Mbit/s, as studies of bit rates have links.
    for (text, line, count) in [
        ("0.0 4.2\n0.5 3.9", 1, 2),
        ("0.0\t4.2", 1, 2),
        ("0,4.2", 1, 2),
        ("0; 4.2; 7", 1, 3),
        ("time,rate\n0,4.2", 1, 2),
        ("1\n0 4.2", 2, 2),
    ] {
        let shown = text.lines().nth(line - 1).unwrap();
        assert_eq!(refused(text), TraceError::Columns { line, count, text: shown.into() }, "{text:?}");
        let said = refused(text).to_string();
        assert!(said.contains(&format!("{count} columns, as files with seconds and Mbit/s have")), "{said}");
    }
    assert_eq!(refused("1\n5\n4\n9"), TraceError::NotMonotone { line: 3, stamp: 4, before: 5 });
    assert_eq!(refused("0\n0\n"), TraceError::ZeroPeriod { line: 2 });
    assert_eq!(refused("7\n3").line(), Some(2));
    assert_eq!(refused("").line(), None);
    assert_eq!(
        refused("7\n3").to_string(),
        "line 2, `3`, is earlier than the line before, `7`: timestamps may not decrease"
    );
    let tolerated = Trace::parse(b"  1\r\n 2 \r\n\r\n").unwrap();
    assert_eq!(tolerated.stamps(), [1, 2]);
    assert_eq!(Trace::parse(b"4294967295").unwrap().period(), 4_294_967_295 * MS);
}

/// 12 kbit in 49 days: less than 1 bit/s, but not nothing.
#[test]
fn a_trace_may_be_slower_than_a_bit_per_second() {
    let service = Service::Trace(Trace::parse(b"4294967295\n").unwrap());
    assert_eq!(service.rate_at(0), BitRate(0));
    let mut server = Server::new(&service);
    assert_eq!(server.opening(0, 0), 4_294_967_295 * MS);
    assert_eq!(server.transmit(4_294_967_295 * MS, 1501), 2 * 4_294_967_295 * MS);
}
