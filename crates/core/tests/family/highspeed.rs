//! HighSpeed TCP (RFC 3649).
#![expect(clippy::disallowed_methods, reason = "an oracle; its tolerances hold on every platform")]

use congestlab_core::law::SenderLaw as _;
use congestlab_core::law::highspeed::{Config, HighSpeed, decrease, increase};
use congestlab_core::units::{Bytes, Time};

use super::random::Random;
use super::{MSS, ack, as_reno_at_the_edges, packets, round_trip};

const CONFIG: Config = Config { limited_slow_start: false, ack_counting: false };

fn start(segments: u64) -> HighSpeed {
    HighSpeed::new(Bytes(MSS), Bytes(segments * MSS))
}

/// In congestion avoidance with a window of so many segments.
fn avoiding(segments: u64) -> HighSpeed {
    let mut law = start(1);
    law.on_loss(&CONFIG, Time(0), Bytes(segments * MSS * 2));
    while law.window().0 < segments * MSS {
        law.on_ack(&CONFIG, Time(0), &ack(MSS));
    }
    law
}

/// RFC 3649 §5 as printed, in floating point.
mod oracle {
    pub(super) fn b(w: f64) -> f64 {
        let w = w.clamp(38.0, 83_000.0);
        (0.1 - 0.5) * (w.ln() - 38f64.ln()) / (83_000f64.ln() - 38f64.ln()) + 0.5
    }

    pub(super) fn a(w: f64) -> f64 {
        let p = 0.078 / w.powf(1.2);
        if w <= 38.0 { 1.0 } else { w * w * p * 2.0 * b(w) / (2.0 - b(w)) }
    }
}

fn a(segments: u64) -> f64 {
    increase(segments) as f64 / 65_536.0
}

fn b(segments: u64) -> f64 {
    decrease(segments) as f64 / f64::from(1 << 24)
}

#[test]
fn v9_4_increase_and_decrease_follow_the_response_function() {
    let rows = [
        (38, 1.0, 0.5),
        (118, 2.006, 0.4411),
        (221, 3.005, 0.4084),
        (347, 4.005, 0.3849),
        (1058, 8.011, 0.3269),
        (10_661, 30.005, 0.2068),
        (83_000, 70.735, 0.1),
    ];
    for (segments, increase, decrease) in rows {
        // Half of the last digit that is given; what the law's table leaves is less (below 0.000_03 of b).
        assert!((a(segments) - increase).abs() < 0.000_5, "a({segments}) = {}", a(segments));
        assert!((b(segments) - decrease).abs() < 0.000_06, "b({segments}) = {}", b(segments));
    }
}

/// Appendix B of the RFC: at these windows a(w) has just passed 2, 3, 4, ... A segment adds 0.011 to it at 118 and
/// 0.005 at 851, of which the table is two late.
#[test]
fn the_breakpoints_are_those_of_the_rfcs_table() {
    for (segments, whole) in [(118, 2.0), (221, 3.0), (347, 4.0), (495, 5.0), (663, 6.0), (851, 7.0)] {
        assert!((whole..whole + 0.011).contains(&a(segments)), "{segments}: {}", a(segments));
    }
}

#[test]
fn integers_follow_the_formulas_at_every_window() {
    let mut worst: f64 = 0.0;
    for segments in (1..100_000).chain([1 << 20, 1 << 31, u64::from(u32::MAX)]) {
        let w = segments as f64;
        worst = worst.max((a(segments) / oracle::a(w) - 1.0).abs());
        worst = worst.max((b(segments) / oracle::b(w) - 1.0).abs());
    }
    // The logarithm's steps: 0.000_019 at most.
    assert!(worst < 0.000_02, "{worst}");
}

#[test]
fn as_reno_below_the_low_window_and_at_the_edges() {
    as_reno_at_the_edges(&CONFIG, start);
    let mut law = avoiding(20);
    for expected in 21..38 {
        round_trip(&mut law, &CONFIG);
        // One segment per round trip, to the few bytes by which w grows meanwhile.
        assert!((packets(&law) - f64::from(expected)).abs() < 0.5, "{} after {expected}", packets(&law));
    }
    let mut law = avoiding(30);
    law.on_loss(&CONFIG, Time(0), Bytes(30 * MSS));
    assert_eq!(law.window(), Bytes(15 * MSS));
}

/// Step responses: a(w) per round trip, b(w) per loss.
#[test]
fn a_round_trip_adds_a_and_a_loss_takes_b() {
    for segments in [100, 500, 3000, 20_000] {
        let mut law = avoiding(segments);
        let before = packets(&law);
        round_trip(&mut law, &CONFIG);
        let (grown, expected) = (packets(&law) - before, oracle::a(before));
        // The window that is divided by grows meanwhile, by half of a(w) / w in the mean.
        assert!(
            (grown / expected - 1.0).abs() < 0.5 * expected / before,
            "{grown} instead of {expected} at {segments}"
        );
        let before = law.window().0;
        law.on_loss(&CONFIG, Time(0), Bytes(before));
        let expected = before as f64 * (1.0 - oracle::b((before / MSS) as f64));
        // b(w) to 0.000_02, and a byte of 50 000.
        assert!((law.window().0 as f64 / expected - 1.0).abs() < 0.000_04, "{:?}", law.window());
    }
}

/// §5: the mean window at a loss rate p is 0.12 / p^0.835 segments.
#[test]
fn the_mean_window_is_that_of_the_response_function() {
    for p in [1e-4, 1e-5, 1e-6] {
        let mut law = start(1);
        law.on_loss(&CONFIG, Time(0), Bytes(100 * MSS));
        let (mut sum, mut rounds, mut acked) = (0.0, 0u32, 0.0);
        let mut losses = 0;
        while losses < 60 {
            let window = law.window().0 / MSS;
            law.on_ack(&CONFIG, Time(0), &ack(window * MSS));
            acked += window as f64;
            if losses >= 30 {
                sum += packets(&law);
                rounds += 1;
            }
            if acked * p >= 1.0 {
                law.on_loss(&CONFIG, Time(0), law.window());
                (acked, losses) = (0.0, losses + 1);
            }
        }
        let (mean, expected) = (sum / f64::from(rounds), 0.12 / f64::powf(p, 0.835));
        // 0.12 and 0.835 are rounded: 83 900 segments for 83 000 at the end of the line. And losses come at the
        // end of a round trip, half of one late in the mean, of 1 / (p W) between two.
        assert!(
            (mean / expected - 1.0).abs() < 0.01 + 0.5 * p * expected,
            "{mean} instead of {expected} at {p}"
        );
    }
}

/// RFC 3742 §2: at most max_ssthresh / 2 = 50 segments per round trip above 100.
#[test]
fn limited_slow_start_adds_fifty_segments_a_round_trip() {
    let limited = Config { limited_slow_start: true, ..CONFIG };
    let mut law = start(100);
    (0..20).for_each(|_| round_trip(&mut law, &limited));
    let found = packets(&law);
    assert!((900.0..=1120.0).contains(&found), "{found}");
    let mut law = start(100);
    (0..3).for_each(|_| round_trip(&mut law, &CONFIG));
    assert_eq!(law.window(), Bytes(800 * MSS));
}

/// Through losses, timeouts and growth, ACK by ACK.
#[test]
fn the_law_follows_its_transcription() {
    let mut random = Random::new(31);
    for _ in 0..40 {
        let limit = (20 + random.below(3000)) as f64;
        let mut law = start(2);
        let (mut w, mut ssthresh) = (2.0f64, f64::INFINITY);
        for _ in 0..20_000 {
            law.on_ack(&CONFIG, Time(0), &ack(MSS));
            w += if w < ssthresh { 1.0 } else { oracle::a(w.floor()) / w };
            if w > limit * (1.0 + random.below(100) as f64 / 200.0) {
                let flight = law.window();
                let left = flight.0 as f64 / 1e3 * (1.0 - oracle::b((flight.0 / MSS) as f64));
                ssthresh = left.max(2.0);
                if random.below(20) == 0 {
                    law.on_timeout(&CONFIG, Time(0), flight, true);
                    w = 1.0;
                } else {
                    law.on_loss(&CONFIG, Time(0), flight);
                    w = ssthresh;
                }
            }
            let difference = (packets(&law) - w).abs();
            // A whole segment sooner or later changes a(w).
            assert!(difference <= 0.001 * w + 0.002, "{} instead of {w}", packets(&law));
        }
    }
}
