//! BIC (Xu, Harfoush, Rhee 2004).

use congestlab_core::law::SenderLaw as _;
use congestlab_core::law::bic::{Bic, Config};
use congestlab_core::units::{Bytes, Ratio, Time};

use super::random::Random;
use super::{MSS, ack, as_reno_at_the_edges, packets, round_trip};

fn start(segments: u64) -> Bic {
    Bic::new(Bytes(MSS), Bytes(segments * MSS))
}

/// After a loss at so many segments.
fn searching(segments: u64, config: &Config) -> Bic {
    let mut law = start(segments);
    law.on_loss(config, Time(0), Bytes(segments * MSS));
    law
}

/// The paper's pseudo-code in floating point, in segments; with fast convergence only below a
/// maximum that is known.
struct Oracle {
    cwnd: f64,
    ssthresh: f64,
    max_win: f64,
    target_win: f64,
    ss: Option<(f64, f64)>,
}

impl Oracle {
    fn ack(&mut self) {
        if self.cwnd < self.ssthresh {
            self.cwnd += 1.0;
        } else if self.cwnd < 14.0 {
            self.cwnd += 1.0 / self.cwnd;
        } else if let Some((ss_cwnd, ss_target)) = &mut self.ss {
            self.cwnd += *ss_cwnd / self.cwnd;
            if self.cwnd >= *ss_target {
                *ss_cwnd *= 2.0;
                *ss_target = self.cwnd + *ss_cwnd;
            }
            if *ss_cwnd >= 32.0 {
                self.ss = None;
            }
        } else {
            self.cwnd += (self.target_win - self.cwnd).clamp(0.01, 32.0) / self.cwnd;
            if self.max_win > self.cwnd {
                self.target_win = (self.max_win + self.cwnd) / 2.0;
            } else {
                self.ss = Some((1.0, self.cwnd + 1.0));
                (self.max_win, self.target_win) = (f64::INFINITY, f64::INFINITY);
            }
        }
    }

    fn loss(&mut self, flight: f64) {
        self.ss = None;
        if self.cwnd < 14.0 {
            self.ssthresh = (flight * 0.5).max(2.0);
        } else {
            let previous = self.max_win;
            self.ssthresh = (flight * 0.875).max(2.0);
            self.max_win = self.cwnd.max(self.ssthresh);
            if previous.is_finite() && self.cwnd < previous {
                self.max_win = (self.max_win + self.ssthresh) / 2.0;
            }
            self.target_win = (self.max_win + self.ssthresh) / 2.0;
        }
        self.cwnd = self.ssthresh;
    }
}

#[test]
fn as_reno_below_the_low_window_and_at_the_edges() {
    let config = Config::default();
    as_reno_at_the_edges(&config, start);
    let mut law = searching(12, &config);
    assert_eq!(law.window(), Bytes(6 * MSS), "half");
    (0..5).for_each(|_| round_trip(&mut law, &config));
    assert!((10.3..=11.0).contains(&packets(&law)), "a segment per round trip: {}", packets(&law));
}

#[test]
fn a_loss_takes_beta_and_is_searched_for() {
    let law = searching(1000, &Config::default());
    assert_eq!((law.window(), law.max_win()), (Bytes(875 * MSS), Bytes(1000 * MSS)));
    let law = searching(1000, &Config { beta: Ratio::ppm(200_000), ..Config::default() });
    assert_eq!(law.window(), Bytes(800 * MSS));
}

/// A second loss below the first one searches up to half way only.
#[test]
fn fast_convergence_makes_room() {
    for (fast_convergence, expected) in [(true, 820_312), (false, 875_000)] {
        let config = Config { fast_convergence, ..Config::default() };
        let mut law = searching(1000, &config);
        law.on_loss(&config, Time(0), law.window());
        assert_eq!(law.window(), Bytes(765_625));
        assert_eq!(law.max_win(), Bytes(expected));
    }
}

/// Step response: Smax a round trip while half the distance is more, then a distance that shrinks
/// by e^(-1/2) a round trip (half of it is added, continuously), at last Smin.
#[test]
fn the_search_is_additive_then_binary_then_over() {
    let config = Config::default();
    let mut law = searching(4000, &config); // from 3500
    for round in 1..=13 {
        round_trip(&mut law, &config);
        let expected = 3500.0 + 32.0 * f64::from(round);
        assert!((packets(&law) - expected).abs() < 3.0, "{} instead of {expected}", packets(&law));
    }
    while 4000.0 - packets(&law) > 50.0 {
        law.on_ack(&config, Time(0), &ack(MSS));
    }
    for _ in 0..10 {
        let before = 4000.0 - packets(&law);
        round_trip(&mut law, &config);
        let ratio = (4000.0 - packets(&law)) / before;
        assert!((ratio - 0.606_53).abs() < 0.01, "{ratio} of {before}");
    }
    let mut rounds = 0;
    while law.max_win() == Bytes(4000 * MSS) {
        round_trip(&mut law, &config);
        rounds += 1;
    }
    // From 0.34 packets to 0.02, 6 round trips; then 0.01 each.
    assert!((5..=10).contains(&rounds), "{rounds}");
    assert_eq!(law.max_win(), Bytes(u64::MAX), "beyond nothing is known");
}

/// Past the maximum 1, 2, 4, 8, 16 segments a round trip, then Smax.
#[test]
fn beyond_the_maximum_it_leaves_slowly_then_fast() {
    let config = Config::default();
    let mut law = searching(4000, &config);
    while law.max_win() == Bytes(4000 * MSS) {
        law.on_ack(&config, Time(0), &ack(MSS));
    }
    let mut grown = Vec::new();
    for _ in 0..8 {
        let before = packets(&law);
        round_trip(&mut law, &config);
        grown.push(packets(&law) - before);
    }
    for (found, expected) in grown.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0]) {
        // A step lasts a little more than a round trip of the window that it enlarges.
        assert!((found / expected - 1.0).abs() < 0.15, "{grown:?}");
    }
}

/// Through losses and growth, ACK by ACK.
#[test]
fn the_law_follows_its_transcription() {
    let config = Config::default();
    let mut random = Random::new(32);
    for _ in 0..60 {
        let limit = (10 + random.below(2000)) as f64;
        let mut law = start(2);
        let mut float = Oracle {
            cwnd: 2.0,
            ssthresh: f64::INFINITY,
            max_win: f64::INFINITY,
            target_win: f64::INFINITY,
            ss: None,
        };
        for _ in 0..20_000 {
            law.on_ack(&config, Time(0), &ack(MSS));
            float.ack();
            if float.cwnd > limit * (1.0 + random.below(100) as f64 / 200.0) {
                let flight = law.window();
                law.on_loss(&config, Time(0), flight);
                float.loss(flight.0 as f64 / 1e3);
            }
            let difference = (packets(&law) - float.cwnd).abs();
            assert!(difference <= 0.001 * float.cwnd + 0.002, "{} instead of {}", packets(&law), float.cwnd);
        }
    }
}
