//! Packets that count over their round trips (`spread`): against the transcription, and what must be kept.

use super::random::Random;
use super::*;

/// Flows of round trips between a third of a millisecond and three seconds, each with an X; about any load.
fn flows(random: &mut Random) -> Vec<(u64, u64)> {
    (0..1 + random.below(6))
        .map(|_| {
            let most = (3 * SECOND) >> random.below(14);
            let rtt = MS / 3 + random.below(most);
            (rtt / (1 + random.below(300)) + MS / 10, rtt)
        })
        .collect()
}

/// d, y, F and both pools of a link over 40 intervals in which packets come, as the float transcription has them.
/// Of a sixteenth of a packet, the least that is divided, two thousandths may be rounded away.
#[test]
fn spread_sums_are_those_of_the_transcription() {
    const STEP: f64 = 1.0 / (1u64 << 28) as f64;
    let mut random = Random::new(21);
    let (mut intervals, mut longer, mut worst) = (0, 0, 0.0f64);
    for _ in 0..1500 {
        let capacity = 100_000 << random.below(12);
        let config = LinkConfig { spread: true, bound_headers: random.coin(), ..link_config(capacity) };
        let mut oracle = oracle::Link::new((&config).into());
        // No estimate of a queue: it is the same as ever.
        let mut link = link(config, 50 * MS, 1000 * SECOND);
        let mut began = 0;
        let mut some = flows(&mut random);
        for _ in 0..40 {
            if random.below(6) == 0 {
                some = flows(&mut random);
            }
            for _ in 0..1 + random.below(60) {
                let (x, rtt) = some[random.below(some.len() as u64) as usize];
                let (header, size) = (header(x, rtt, 0), 40 + random.below(1461));
                longer += u64::from(header.rtt > 2 * link.report().interval.to_header());
                link.on_arrival(Time(began), &header, Bytes(size));
                oracle.arrival(f64::from(header.x) * STEP, f64::from(header.rtt) * STEP, size as f64);
            }
            let now = link.next_deadline().0 + if random.coin() { 0 } else { random.below(20 * MS) };
            // No comparison beyond what hangs on a last place: whether the last sixteenth of a packet counts, and what
            // is left of packets that count nearly whole.
            let part = |sums: &[f64; 5]| (now - began) as f64 / 1e9 * sums[4] / sums[3];
            let mut waiting = oracle.waiting.iter();
            if waiting.any(|sums| (sums[4] * 16.0 - 1.0).abs() < 0.01 || (0.9..1.0).contains(&part(sums))) {
                break;
            }
            link.on_deadline(Time(now), Bytes(0));
            oracle.control_timeout((now - began) as f64 / 1e9);
            let report = link.report();
            let share = link.share(&header(MS, 100 * MS, ALL), Bytes(1000));
            let places = f64::from(1u32 << congestlab_core::law::xcp::SHARE_PLACES);
            for (name, found, exact, least) in [
                ("d", report.interval.0 as f64 / 1e9, oracle.ci, 0.001),
                ("y", report.input.0 as f64, oracle.y, capacity as f64),
                ("F", report.feedback as f64, oracle.f, capacity as f64),
                ("grants", share.grants_left as f64 / places, oracle.res_pos, capacity as f64),
                ("cuts", share.cuts_left as f64 / places, oracle.res_neg, capacity as f64),
            ] {
                let difference = (found - exact).abs() / exact.abs().max(least);
                worst = worst.max(difference);
                assert!(difference < 2e-3, "{name} {found} instead of {exact}, {capacity} B/s");
            }
            // On with the same d: at the edge of two classes its last place decides.
            oracle.ci = report.interval.0 as f64 / 1e9;
            began = now;
            intervals += 1;
        }
    }
    println!("{intervals} intervals, {longer} packets with longer round trips, worst {worst:e}");
    assert!(intervals > 10_000 && longer > 50_000);
}

/// What came counts, all of it and once, however long it takes.
#[test]
fn no_byte_is_lost_or_counted_twice() {
    let mut random = Random::new(22);
    for _ in 0..200 {
        let config = LinkConfig { spread: true, ..link_config(1_000_000) };
        let mut link = link(config, 50 * MS, 100_000 * SECOND);
        let (mut came, mut counted, mut began) = (0, 0.0, 0);
        let some = flows(&mut random);
        for interval in 0..3000 {
            for _ in 0..if interval < 20 { random.below(40) } else { 0 } {
                let (x, rtt) = some[random.below(some.len() as u64) as usize];
                link.on_arrival(Time(began), &header(x, rtt, 0), Bytes(1500));
                came += 1500;
            }
            let now = link.next_deadline().0;
            link.on_deadline(Time(now), Bytes(0));
            counted += link.report().input.0 as f64 * (now - began) as f64 / 1e9;
            began = now;
        }
        // A byte is left over in each class and interval at most, and the report leaves out less than 1 B/s.
        let difference = f64::from(came) - counted;
        assert!((0.0..0.01 * f64::from(came) + 200.0).contains(&difference), "{counted} of {came}");
    }
}

/// Where round trips are up to twice the interval, d and y are plain XCP's to the last bit.
#[test]
fn equal_round_trips_are_measured_as_ever() {
    let mut random = Random::new(23);
    let links = [false, true].map(|spread| LinkConfig { spread, ..link_config(10_000_000) });
    let [mut plain, mut spread] = links.map(|config| link(config, 50 * MS, 1000 * SECOND));
    for _ in 0..1000 {
        for _ in 0..random.below(100) {
            // The first interval is 50 ms, and no other is shorter.
            let packet = header(MS + random.below(MS), (50 + random.below(50)) * MS, 0);
            for link in [&mut plain, &mut spread] {
                link.on_arrival(Time(0), &packet, Bytes(1500));
            }
        }
        let now = plain.next_deadline();
        assert_eq!(now, spread.next_deadline());
        plain.on_deadline(now, Bytes(0));
        spread.on_deadline(now, Bytes(0));
        assert_eq!(plain.report(), spread.report());
    }
}
