//! Reno (RFC 5681) and CUBIC (RFC 9438): the windows, without the machinery that detects losses.

use congestlab_core::law;
use congestlab_core::law::cubic::{self, Cubic};
use congestlab_core::law::reno::{self, Reno};
use congestlab_core::law::{Ack, Sender, SenderConfig, SenderLaw as _};
use congestlab_core::units::{Bytes, Duration, SECOND, Time};

#[path = "xcp/random.rs"]
mod random;
use random::Random;

const MSS: u64 = 1000;
const MS: u64 = SECOND / 1000;

/// An ACK of a sender that uses its whole window.
fn ack(acked: u64) -> Ack {
    Ack { acked: Bytes(acked), is_window_limited: true, ..Ack::default() }
}

mod reno_law {
    use super::*;

    const CONFIG: reno::Config = reno::Config::DEFAULT;

    fn reno(window: u64) -> Reno {
        Reno::new(Bytes(MSS), Bytes(window))
    }

    /// In congestion avoidance with this window.
    fn avoiding(window: u64) -> Reno {
        let mut reno = reno(window);
        reno.on_loss(&CONFIG, Time(0), Bytes(2 * window));
        assert_eq!(reno.window(), Bytes(window));
        reno
    }

    fn grow(reno: &mut Reno, acks: u64, ack: Ack) -> u64 {
        (0..acks).for_each(|_| reno.on_ack(&CONFIG, Time(0), &ack));
        reno.window().0
    }

    #[test]
    fn slow_start_adds_what_was_acknowledged_and_a_segment_at_most() {
        assert_eq!(grow(&mut reno(1000), 1, ack(1000)), 2000);
        assert_eq!(grow(&mut reno(4000), 4, ack(1000)), 8000);
        assert_eq!(grow(&mut reno(4000), 2, ack(2000)), 6000, "delayed ACKs");
        assert_eq!(grow(&mut reno(4000), 1, ack(300)), 4300);
        assert_eq!(reno(10).window(), Bytes(1000), "one segment at least");
    }

    #[test]
    fn slow_start_that_counts_bytes_adds_all_that_was_acknowledged_up_to_the_threshold() {
        let counting = reno::Config { byte_counting: true, ..reno::Config::DEFAULT };
        let mut reno = reno(4000);
        reno.on_ack(&counting, Time(0), &ack(2000));
        reno.on_ack(&counting, Time(0), &ack(2000));
        assert_eq!(reno.window(), Bytes(8000), "delayed ACKs");
        reno.on_timeout(&counting, Time(0), Bytes(8000), true);
        reno.on_ack(&counting, Time(0), &ack(8000));
        assert_eq!(reno.window(), Bytes(4000), "the threshold");
        reno.on_ack(&counting, Time(0), &ack(4000));
        assert_eq!(reno.window(), Bytes(5000), "avoidance");
    }

    /// ns-2 adds 1/cwnd for each ACK: with delayed ACKs a segment in two round trips.
    #[test]
    fn avoidance_that_counts_acks_adds_half_as_much_with_delayed_acks() {
        let counting = reno::Config { ack_counting: true, ..CONFIG };
        for (acked, acks) in [(1000, 10), (2000, 10), (500, 20)] {
            let mut reno = avoiding(10_000);
            (1..acks).for_each(|_| reno.on_ack(&counting, Time(0), &ack(acked)));
            assert_eq!(reno.window(), Bytes(10_000), "{acked}");
            reno.on_ack(&counting, Time(0), &ack(acked));
            assert_eq!(reno.window(), Bytes(11_000), "{acked}");
        }
        let mut law = reno(4000);
        law.on_ack(&counting, Time(0), &ack(2000));
        assert_eq!(law.window(), Bytes(5000), "slow start is as before");
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_per_window() {
        let mut reno = avoiding(10_000);
        assert_eq!(grow(&mut reno, 9, ack(1000)), 10_000);
        assert_eq!(grow(&mut reno, 1, ack(1000)), 11_000);
        assert_eq!(grow(&mut reno, 10, ack(1000)), 11_000);
        assert_eq!(grow(&mut reno, 1, ack(1000)), 12_000);
        // Half as many ACKs of twice as much make no difference.
        assert_eq!(grow(&mut reno, 6, ack(2000)), 13_000);
        // What is left over counts for the next window: 12600 of 12000, then 12500 of 13000.
        let mut reno = avoiding(12_000);
        assert_eq!(grow(&mut reno, 9, ack(1400)), 13_000);
        assert_eq!(grow(&mut reno, 1, ack(12_399)), 13_000);
        assert_eq!(grow(&mut reno, 1, ack(1)), 14_000);
    }

    #[test]
    fn slow_start_ends_at_the_threshold() {
        let mut reno = reno(64_000);
        reno.on_timeout(&CONFIG, Time(0), Bytes(8000), true);
        assert_eq!(grow(&mut reno, 3, ack(1000)), 4000);
        assert_eq!(grow(&mut reno, 3, ack(1000)), 4000);
        assert_eq!(grow(&mut reno, 1, ack(1000)), 5000);
    }

    /// V9.2 but for the inflation, which is the sender's.
    #[test]
    fn v9_2_a_loss_halves_the_flight() {
        let after = |flight| {
            let mut reno = reno(50_000);
            reno.on_loss(&CONFIG, Time(0), Bytes(flight));
            reno.window().0
        };
        assert_eq!((after(20_000), after(4001), after(3000), after(0)), (10_000, 2000, 2000, 2000));
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_lowers_the_threshold_once() {
        let mut reno = reno(50_000);
        reno.on_timeout(&CONFIG, Time(0), Bytes(20_000), true);
        assert_eq!(reno.window(), Bytes(1000));
        reno.on_timeout(&CONFIG, Time(0), Bytes(1000), false);
        assert_eq!(grow(&mut reno, 9, ack(1000)), 10_000);
        assert_eq!(grow(&mut reno, 1, ack(1000)), 10_000);
        reno.on_timeout(&CONFIG, Time(0), Bytes(5000), true);
        assert_eq!(grow(&mut reno, 3, ack(1000)), 3000);
    }

    #[test]
    fn neither_an_unused_window_nor_one_in_recovery_grows() {
        let unused = Ack { is_window_limited: false, ..ack(1000) };
        assert_eq!(grow(&mut reno(4000), 100, unused), 4000);
        assert_eq!(grow(&mut avoiding(4000), 100, unused), 4000);
        let recovering = Ack { in_recovery: true, ..ack(1000) };
        assert_eq!(grow(&mut avoiding(4000), 100, recovering), 4000);
        // But after a timeout slow start sends the lost window again.
        let mut reno = reno(50_000);
        reno.on_timeout(&CONFIG, Time(0), Bytes(20_000), true);
        assert_eq!(grow(&mut reno, 100, recovering), 10_000);
    }

    #[test]
    fn a_loss_or_timeout_or_restart_forgets_what_was_acknowledged() {
        for event in 0..3 {
            let mut reno = avoiding(10_000);
            grow(&mut reno, 9, ack(1000));
            match event {
                0 => reno.on_loss(&CONFIG, Time(0), Bytes(20_000)),
                1 => {
                    reno.on_timeout(&CONFIG, Time(0), Bytes(4000), true);
                    assert_eq!(grow(&mut reno, 1, ack(1000)), 2000);
                    assert_eq!(grow(&mut reno, 1, ack(1000)), 2000);
                    continue;
                }
                _ => reno.on_restart(&CONFIG, Time(0), Bytes(20_000)),
            }
            assert_eq!(grow(&mut reno, 9, ack(1000)), 10_000, "event {event}");
            assert_eq!(grow(&mut reno, 1, ack(1000)), 11_000, "event {event}");
        }
    }

    #[test]
    fn a_restart_goes_back_to_the_initial_window_at_most() {
        let mut reno = avoiding(10_000);
        reno.on_restart(&CONFIG, Time(0), Bytes(4000));
        assert_eq!(reno.window(), Bytes(4000));
        assert_eq!(grow(&mut reno, 1, ack(1000)), 5000, "slow start to the threshold");
        reno.on_restart(&CONFIG, Time(0), Bytes(40_000));
        assert_eq!(reno.window(), Bytes(5000));
        reno.on_restart(&CONFIG, Time(0), Bytes(0));
        assert_eq!(reno.window(), Bytes(1000));
    }
}

/// RFC 9438 in floating point, in segments and seconds; every formula as printed.
mod oracle {
    pub(crate) const C: f64 = 0.4;
    pub(crate) const BETA: f64 = 0.7;

    pub(crate) fn cube_root(value: f64) -> f64 {
        let mut root = value.max(1.0);
        (0..200).for_each(|_| root -= (root * root * root - value) / (3.0 * root * root));
        root
    }

    pub(crate) struct Cubic {
        pub(crate) cwnd: f64,
        pub(crate) ssthresh: f64,
        w_max: f64,
        cwnd_prior: f64,
        w_est: f64,
        epoch_start: Option<f64>,
        k: f64,
        after_loss: bool,
    }

    impl Cubic {
        pub(crate) fn new(cwnd: f64) -> Self {
            let (ssthresh, w_max, cwnd_prior, w_est, k) = (f64::INFINITY, 0.0, 0.0, 0.0, 0.0);
            Self { cwnd, ssthresh, w_max, cwnd_prior, w_est, epoch_start: None, k, after_loss: false }
        }

        pub(crate) fn w_cubic(&self, t: f64) -> f64 {
            let from_k = t - self.k;
            C * from_k * from_k * from_k + self.w_max
        }

        pub(crate) fn ack(&mut self, now: f64, segments_acked: f64, rtt: f64) {
            if self.cwnd < self.ssthresh {
                self.cwnd += segments_acked.min(1.0);
                return;
            }
            let start = *self.epoch_start.get_or_insert_with(|| {
                self.w_est = self.cwnd;
                if !self.after_loss || self.w_max < self.cwnd {
                    self.w_max = self.cwnd;
                }
                self.k = cube_root((self.w_max - self.cwnd) / C);
                if self.w_max == self.cwnd {
                    self.k = 0.0;
                }
                now
            });
            let t = now - start;
            let alpha = if self.w_est < self.cwnd_prior { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
            self.w_est += alpha * segments_acked / self.cwnd;
            if self.w_cubic(t) < self.w_est {
                self.cwnd = self.cwnd.max(self.w_est);
            } else {
                let target = self.w_cubic(t + rtt).clamp(self.cwnd, 1.5 * self.cwnd);
                self.cwnd += (target - self.cwnd) / self.cwnd * segments_acked;
            }
        }

        pub(crate) fn loss(&mut self, flight: f64) {
            self.w_max = if self.cwnd < self.w_max { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd };
            self.cwnd_prior = self.cwnd;
            self.ssthresh = (flight * BETA).max(2.0);
            self.cwnd = self.ssthresh;
            (self.epoch_start, self.after_loss) = (None, true);
        }

        pub(crate) fn timeout(&mut self, flight: f64) {
            self.loss(flight);
            self.cwnd = 1.0;
            self.after_loss = false;
        }
    }
}

mod cubic_law {
    use super::*;

    const CONFIG: cubic::Config = cubic::Config {};

    fn cubic(segments: u64) -> Cubic {
        Cubic::new(Bytes(MSS), Bytes(segments * MSS))
    }

    /// Segments after an ACK of the whole window at this time, which opens it to the target.
    fn opened(cubic: &mut Cubic, at: f64) -> f64 {
        let whole = Ack { acked: cubic.window(), ..ack(0) };
        cubic.on_ack(&CONFIG, Time((at * 1e9) as u64), &whole);
        cubic.window().0 as f64 / 1e3
    }

    #[test]
    fn v9_5_the_window_returns_to_its_maximum_after_k() {
        for (segments, k) in [(100, 4.217), (1000, 9.086)] {
            let mut cubic = cubic(segments);
            cubic.on_loss(&CONFIG, Time(0), Bytes(segments * MSS));
            assert_eq!(cubic.window(), Bytes(segments * 700));
            cubic.on_ack(&CONFIG, Time(0), &ack(1)); // the epoch begins
            let w_max = segments as f64;
            // W_cubic is flat at K and known around it.
            for t in [k - 2.0, k - 1.0, k - 0.5, k] {
                let expected = w_max - 0.4 * (k - t) * (k - t) * (k - t);
                let found = opened(&mut cubic, t);
                assert!((found - expected).abs() < 0.01, "{found} instead of {expected} at {t}");
            }
            for after in [0.1, 1.0, 3.0] {
                let expected = w_max + 0.4 * after * after * after;
                let found = opened(&mut cubic, k + after);
                assert!((found - expected).abs() < 0.03, "{found} instead of {expected} at K + {after}");
            }
        }
    }

    #[test]
    fn a_loss_takes_three_tenths_of_the_flight() {
        let after = |flight| {
            let mut cubic = cubic(50);
            cubic.on_loss(&CONFIG, Time(0), Bytes(flight));
            cubic.window().0
        };
        assert_eq!((after(50_000), after(20_000), after(2500), after(0)), (35_000, 14_000, 2000, 2000));
    }

    /// §4.7: the second loss came below the first's window, so the flow makes room.
    #[test]
    fn fast_convergence_remembers_less() {
        let mut cubic = cubic(1000);
        cubic.on_loss(&CONFIG, Time(0), Bytes(1_000_000));
        cubic.on_loss(&CONFIG, Time(0), Bytes(700_000));
        assert_eq!(cubic.window(), Bytes(490_000));
        cubic.on_ack(&CONFIG, Time(0), &ack(1));
        // W_max = 700 * 0.85 = 595, K = cbrt(105 / 0.4) = 6.403 s.
        let found = opened(&mut cubic, 6.403);
        assert!((found - 595.0).abs() < 0.01, "{found}");
    }

    /// A flow that lost at exactly its plateau need not make room.
    #[test]
    fn a_loss_at_the_maximum_keeps_it() {
        let mut cubic = cubic(100);
        cubic.on_timeout(&CONFIG, Time(0), Bytes(100_000), true);
        (0..69).for_each(|_| cubic.on_ack(&CONFIG, Time(0), &ack(MSS)));
        cubic.on_ack(&CONFIG, Time(0), &ack(0)); // congestion avoidance begins at 70 segments
        cubic.on_loss(&CONFIG, Time(0), Bytes(70_000));
        cubic.on_ack(&CONFIG, Time(0), &ack(1));
        // K = cbrt(21 / 0.4).
        let found = opened(&mut cubic, 3.744);
        assert!((found - 70.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn slow_start_adds_a_segment_per_ack() {
        let mut cubic = cubic(1);
        for expected in 2..100 {
            cubic.on_ack(&CONFIG, Time(0), &ack(MSS));
            assert_eq!(cubic.window(), Bytes(expected * MSS));
        }
        cubic.on_ack(&CONFIG, Time(0), &ack(2 * MSS));
        assert_eq!(cubic.window(), Bytes(100 * MSS));
        assert_eq!(Cubic::new(Bytes(MSS), Bytes(1)).window(), Bytes(MSS));
    }

    /// §4.8: K = 0 and W_max is where congestion avoidance begins.
    #[test]
    fn after_a_timeout_the_window_grows_from_its_plateau() {
        let mut cubic = cubic(100);
        cubic.on_timeout(&CONFIG, Time(0), Bytes(100_000), true);
        assert_eq!(cubic.window(), Bytes(1000));
        cubic.on_timeout(&CONFIG, Time(0), Bytes(1000), false);
        // Slow start while repairing, to the threshold that only the first expiry set.
        for _ in 0..100 {
            cubic.on_ack(&CONFIG, Time(SECOND), &Ack { in_recovery: true, ..ack(MSS) });
        }
        assert_eq!(cubic.window(), Bytes(70_000));
        cubic.on_ack(&CONFIG, Time(10 * SECOND), &ack(1));
        let found = opened(&mut cubic, 13.0);
        assert!((found - (70.0 + 0.4 * 27.0)).abs() < 0.01, "{found}");
    }

    #[test]
    fn neither_an_unused_window_nor_one_in_recovery_grows() {
        let unused = Ack { is_window_limited: false, ..ack(MSS) };
        let mut cubic = cubic(100);
        cubic.on_ack(&CONFIG, Time(0), &unused);
        assert_eq!(cubic.window(), Bytes(100_000));
        cubic.on_loss(&CONFIG, Time(0), Bytes(100_000));
        for t in 0..100 {
            cubic.on_ack(&CONFIG, Time(t * SECOND), &Ack { in_recovery: true, ..ack(MSS) });
        }
        assert_eq!(cubic.window(), Bytes(70_000));
        // §5.8: the time without use does not count, so the cubic goes on where it was.
        cubic.on_ack(&CONFIG, Time(100 * SECOND), &ack(1));
        opened(&mut cubic, 101.0);
        for t in 102..200 {
            cubic.on_ack(&CONFIG, Time(t * SECOND), &unused);
        }
        cubic.on_ack(&CONFIG, Time(199 * SECOND), &ack(0)); // acknowledges nothing, but time runs again
        let found = opened(&mut cubic, 200.0);
        let from_k: f64 = 4.217 - 2.0;
        let expected = 100.0 - 0.4 * from_k * from_k * from_k;
        assert!((found - expected).abs() < 0.01, "{found} instead of {expected}");
    }

    #[test]
    fn a_restart_goes_back_to_the_initial_window_at_most_and_begins_a_new_epoch() {
        let mut cubic = cubic(100);
        cubic.on_loss(&CONFIG, Time(0), Bytes(100_000));
        cubic.on_ack(&CONFIG, Time(0), &ack(1));
        cubic.on_restart(&CONFIG, Time(60 * SECOND), Bytes(200_000));
        assert_eq!(cubic.window(), Bytes(70_000));
        cubic.on_ack(&CONFIG, Time(60 * SECOND), &ack(1));
        let found = opened(&mut cubic, 64.217);
        assert!((found - 100.0).abs() < 0.01, "{found}");
        cubic.on_restart(&CONFIG, Time(70 * SECOND), Bytes(4000));
        assert_eq!(cubic.window(), Bytes(4000));
        cubic.on_ack(&CONFIG, Time(70 * SECOND), &ack(MSS));
        assert_eq!(cubic.window(), Bytes(5000), "slow start to the threshold");
        cubic.on_restart(&CONFIG, Time(70 * SECOND), Bytes(0));
        assert_eq!(cubic.window(), Bytes(1000));
    }

    /// A hundred flows through losses, timeouts and long growth, ACK by ACK.
    #[test]
    fn the_law_follows_its_transcription() {
        let mut random = Random::new(11);
        let mut worst: f64 = 0.0;
        for _ in 0..100 {
            let rtt = MS + random.below(300 * MS);
            let limit = (20 + random.below(3000)) as f64;
            let initial = 1 + random.below(10);
            let (mut law, mut float) = (cubic(initial), oracle::Cubic::new(initial as f64));
            let mut now = 0;
            for _ in 0..20_000 {
                let segments = 1 + random.below(2);
                now += segments * rtt / (law.window().0 / MSS);
                law.on_ack(&CONFIG, Time(now), &Ack { srtt: Duration(rtt), ..ack(segments * MSS) });
                float.ack(now as f64 / 1e9, segments as f64, rtt as f64 / 1e9);
                if float.cwnd > limit * (1.0 + random.below(100) as f64 / 200.0) {
                    let flight = law.window();
                    if random.below(20) == 0 {
                        law.on_timeout(&CONFIG, Time(now), flight, true);
                        float.timeout(flight.0 as f64 / 1e3);
                    } else {
                        law.on_loss(&CONFIG, Time(now), flight);
                        float.loss(flight.0 as f64 / 1e3);
                    }
                }
                let difference = (law.window().0 as f64 / 1e3 - float.cwnd).abs();
                worst = worst.max(difference / float.cwnd);
                assert!(
                    difference <= 0.0001 * float.cwnd,
                    "{:?} instead of {} segments at {now} ns, rtt {rtt}",
                    law.window(),
                    float.cwnd
                );
            }
        }
        println!("at most {worst:.6} of the window");
    }

    /// §4.3: on short paths and with small windows CUBIC is no slower than Reno.
    #[test]
    fn in_its_friendly_region_cubic_grows_as_reno_would() {
        // Ten segments at 10 ms: K = 1.96 s, 196 round trips for a curve that Reno draws in 6.
        let mut cubic = cubic(10);
        cubic.on_loss(&CONFIG, Time(0), Bytes(10_000));
        let mut now = 0;
        let mut rounds = 0;
        while cubic.window() < Bytes(10_000) {
            let packets = cubic.window().0 / MSS;
            for _ in 0..packets {
                now += 10 * MS / packets;
                cubic.on_ack(&CONFIG, Time(now), &Ack { srtt: Duration(10 * MS), ..ack(MSS) });
            }
            rounds += 1;
        }
        // 3 segments at 9/17 per round trip.
        assert!((5..=7).contains(&rounds), "{rounds}");
        // From where the last loss was, a whole segment per round trip.
        let before = cubic.window().0;
        for _ in 0..10 {
            now += MS;
            cubic.on_ack(&CONFIG, Time(now), &Ack { srtt: Duration(10 * MS), ..ack(MSS) });
        }
        let grown = cubic.window().0 - before;
        assert!((900..=1100).contains(&grown), "{grown}");
    }
}

/// Whatever happens, no arithmetic overflows and one segment may be sent.
#[test]
fn windows_survive_any_input() {
    let mut random = Random::new(12);
    let word = |random: &mut Random| match random.below(8) {
        0 => 0,
        1 => u64::MAX - random.below(2),
        _ => random.next() >> random.below(64),
    };
    for round in 0..4000 {
        let config = [SenderConfig::Reno(reno::Config::DEFAULT), SenderConfig::Cubic(cubic::Config {})]
            [round % 2]
            .clone();
        let mss = if random.below(2) == 0 { 1500 } else { word(&mut random) };
        let mut law = Sender::new(&config, Bytes(mss), Bytes(word(&mut random)));
        let mut now = 0u64;
        for _ in 0..100 {
            now = now.saturating_add(word(&mut random) >> (20 + random.below(40)));
            let flight = Bytes(word(&mut random));
            match random.below(8) {
                0..=4 => {
                    let ack = Ack {
                        acked: Bytes(word(&mut random)),
                        flight,
                        srtt: Duration(word(&mut random)),
                        in_recovery: random.below(4) == 0,
                        is_window_limited: random.below(4) > 0,
                        ..Ack::default()
                    };
                    law.on_ack(&config, Time(now), &ack);
                }
                5 => law.on_loss(&config, Time(now), flight),
                6 => law.on_timeout(&config, Time(now), flight, random.below(2) == 0),
                _ => law.on_restart(&config, Time(now), Bytes(word(&mut random))),
            }
            assert!(law.window() >= Bytes(mss.min(u64::from(u32::MAX))));
            assert_eq!(law.pacing_rate(&config, Duration(MS)), None);
            let (send, mut packet) = (law::Send::default(), law::Carried::default());
            assert_eq!(law.on_send(&config, Time(now), &send, Duration(MS), &mut packet), None);
            assert_eq!(packet, law::Carried::default(), "no header");
        }
    }
}
