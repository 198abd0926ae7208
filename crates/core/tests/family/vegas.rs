//! Vegas (Brakmo, Peterson 1995).

use congestlab_core::law::vegas::{Config, Vegas};
use congestlab_core::law::{Ack, SenderLaw as _};
use congestlab_core::units::{Bytes, Duration, Ratio, Time};

use super::random::Random;
use super::{MS, MSS, ack, as_reno_at_the_edges, packets, rtt};

const BASE: Duration = Duration(100 * MS);

fn start(segments: u64) -> Vegas {
    Vegas::new(Bytes(MSS), Bytes(segments * MSS))
}

/// In congestion avoidance, with a base RTT of 100 ms.
fn avoiding(segments: u64) -> Vegas {
    let config = Config { decrease: Ratio(0), ..Config::default() };
    let mut law = start(segments);
    law.on_loss(&config, Time(0), Bytes(segments * MSS));
    round_trip(&mut law, &config, BASE);
    law
}

/// The ACKs of one window, all with this RTT.
fn round_trip(law: &mut Vegas, config: &Config, rtt: Duration) {
    let flight = law.window();
    for _ in 0..flight.0 / MSS {
        let ack = Ack { flight, rtt, ..ack(MSS) };
        law.on_ack(config, Time(0), &ack);
    }
}

#[test]
fn as_reno_at_its_edges() {
    as_reno_at_the_edges(&Config::default(), start);
}

/// What a window of 40 packets has queued: 40 (1 - base / RTT).
#[test]
fn the_window_moves_by_one_packet_a_round_trip_towards_alpha_and_beta() {
    let config = Config::default();
    let after = |rtt_ms: u64| {
        let mut law = avoiding(40);
        // A round trip with samples of both kinds.
        round_trip(&mut law, &config, Duration(rtt_ms * MS));
        law.on_loss(&Config { decrease: Ratio(0), ..config }, Time(0), Bytes(40 * MSS));
        let before = law.window();
        round_trip(&mut law, &config, Duration(rtt_ms * MS));
        round_trip(&mut law, &config, Duration(rtt_ms * MS));
        (law.window().0 as i64 - before.0 as i64) / MSS as i64
    };
    // Two round trips; 0, 0.8, 1.2, 2.7, 3.7 and 20 packets in the queue.
    let found = [100, 102, 103, 107, 110, 200].map(after);
    assert_eq!(found, [2, 2, 0, 0, -2, -2]);
}

#[test]
fn slow_start_doubles_every_other_round_trip_and_ends_at_gamma() {
    let config = Config::default();
    let mut law = start(2);
    let mut windows = vec![];
    for _ in 0..8 {
        round_trip(&mut law, &config, BASE);
        windows.push(law.window().0 / MSS);
    }
    let doubled: Vec<u64> =
        windows.windows(2).filter(|pair| pair[0] != pair[1]).map(|pair| pair[1]).collect();
    assert!(doubled.len() <= 4 && *windows.last().unwrap() >= 16, "{windows:?}");
    while law.ssthresh() == Bytes(u64::MAX) {
        let window = packets(&law);
        assert!(window < 200.0, "slow start never ends");
        round_trip(&mut law, &config, rtt(50.0, BASE, window));
    }
    let found = packets(&law);
    assert!((45.0..=112.0).contains(&found), "at most a doubling beyond the pipe, less an eighth: {found}");
}

/// One sample in four holds the wait of a delayed ACK: the least is the path's, and the mean is not.
#[test]
fn the_wait_of_a_delayed_ack_is_no_queue() {
    for (mean_rtt, moved) in [(false, 1), (true, -1)] {
        let config = Config { mean_rtt, ..Config::default() };
        let mut law = avoiding(10);
        let before = packets(&law);
        for number in 0..40 {
            let rtt = if number % 4 == 0 { Duration(1000 * MS) } else { BASE };
            law.on_ack(&config, Time(0), &Ack { flight: law.window(), rtt, ..ack(MSS) });
        }
        assert_eq!((packets(&law) - before).signum(), f64::from(moved), "{mean_rtt}");
    }
}

/// Step response: from below and from above to where alpha <= W - BDP <= beta, one packet a round
/// trip.
#[test]
fn it_settles_with_alpha_to_beta_packets_in_the_queue() {
    let config = Config::default();
    for bdp in [20.0, 50.0, 333.0] {
        for from in [0.5, 1.5] {
            let mut law = avoiding((bdp * from) as u64);
            let mut rounds = 0.0;
            loop {
                let window = packets(&law);
                round_trip(&mut law, &config, rtt(bdp, BASE, window));
                if packets(&law) == window && law.queued() >= 1_000_000 {
                    break;
                }
                rounds += 1.0;
                assert!(rounds < 2.0 * bdp, "no rest at {window} of {bdp}");
            }
            let queued = packets(&law) - bdp;
            assert!((1.0..=3.0).contains(&queued), "{queued} of {bdp}");
            // One packet a round trip, to where it rests: up to beta beside the pipe.
            assert!((rounds - 0.5 * bdp).abs() <= 3.0, "{rounds} round trips");
        }
    }
}

#[test]
fn a_loss_takes_a_quarter_or_what_is_said() {
    for (decrease, left) in [(250_000, 30), (500_000, 20)] {
        let config = Config { decrease: Ratio(decrease), ..Config::default() };
        let mut law = avoiding(40);
        law.on_loss(&config, Time(0), Bytes(40 * MSS));
        assert_eq!(law.window(), Bytes(left * MSS));
    }
}

/// Against floating point, over pipes whose length varies.
#[test]
fn the_law_follows_its_transcription() {
    let config = Config::default();
    let mut random = Random::new(33);
    for _ in 0..100 {
        let mut law = avoiding(10 + random.below(100));
        let rest = Ack { flight: law.window(), rtt: BASE, ..ack(law.window().0) };
        law.on_ack(&config, Time(0), &rest);
        let (mut w, mut base) = (packets(&law), f64::INFINITY);
        base = base.min(BASE.0 as f64);
        for _ in 0..200 {
            let rtt = Duration(90 * MS + random.below(40 * MS));
            base = base.min(rtt.0 as f64);
            let diff = (w / base - w / rtt.0 as f64) * base;
            // One ACK that ends the round trip: all that was in flight, and the distinguished segment.
            let acked = law.window() + Bytes(MSS);
            law.on_ack(&config, Time(0), &Ack { flight: law.window(), rtt, ..ack(acked.0) });
            if [1.0, 3.0].iter().any(|bound: &f64| (diff - bound).abs() < 1e-5) {
                w = packets(&law); // millionths decide
            } else if diff < 1.0 {
                w += 1.0;
            } else if diff > 3.0 {
                w = (w - 1.0).max(2.0);
            }
            assert_eq!(packets(&law), w);
        }
    }
}
