//! BBR (draft-cardwell-iccrg-bbr-congestion-control-00).

use congestlab_core::law::bbr::{Bbr, Config, State};
use congestlab_core::law::{Delivery, SenderLaw as _};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, SECOND, Time};

use super::random::Random;
use super::{MS, MSS};

/// The draft's pseudo-code in floating point: bytes, seconds.
struct Oracle {
    cwnd: f64,
    prior_cwnd: f64,
    pacing_rate: f64,
    rtprop: f64,
    rtprop_stamp: f64,
    probe_rtt_done_stamp: Option<f64>,
    next_round_delivered: f64,
    cycle_stamp: f64,
    full_bw: f64,
    /// (round, rate), all of them.
    filter: Vec<(u64, f64)>,
    round_count: u64,
    state: State,
    cycle_index: usize,
    full_bw_count: u32,
    filled_pipe: bool,
    round_start: bool,
    probe_rtt_round_done: bool,
    packet_conservation: bool,
    in_recovery: bool,
}

const GAIN: f64 = 2.885_39;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const MIN_PIPE: f64 = 4.0 * MSS as f64;

impl Oracle {
    fn new(initial: f64) -> Self {
        Self {
            cwnd: initial,
            prior_cwnd: 0.0,
            pacing_rate: 0.0,
            rtprop: f64::INFINITY,
            rtprop_stamp: 0.0,
            probe_rtt_done_stamp: None,
            next_round_delivered: 0.0,
            cycle_stamp: 0.0,
            full_bw: 0.0,
            filter: vec![],
            round_count: 0,
            state: State::Startup,
            cycle_index: 0,
            full_bw_count: 0,
            filled_pipe: false,
            round_start: false,
            probe_rtt_round_done: false,
            packet_conservation: false,
            in_recovery: false,
        }
    }

    fn btl_bw(&self) -> f64 {
        let recent = self.filter.iter().filter(|(round, _)| round + 10 > self.round_count);
        recent.fold(0.0, |best, &(_, rate)| rate.max(best))
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => GAIN,
            State::Drain => 1.0 / GAIN,
            State::ProbeBw => CYCLE[self.cycle_index],
            State::ProbeRtt => 1.0,
        }
    }

    fn inflight(&self, gain: f64) -> f64 {
        let quantum = match self.pacing_rate * 8.0 {
            rate if rate < 1.2e6 => MSS as f64,
            rate if rate < 24e6 => 2.0 * MSS as f64,
            _ => (self.pacing_rate * 1e-3).min(65_536.0),
        };
        gain * self.btl_bw() * self.rtprop + 3.0 * quantum
    }

    fn on_ack(&mut self, now: f64, rs: &Delivery, drawn: usize) {
        let [total, newly, prior] = [rs.total, rs.newly, rs.prior].map(|bytes| bytes.0 as f64);
        let [lost, prior_flight, flight] = [rs.lost, rs.prior_flight, rs.flight].map(|bytes| bytes.0 as f64);
        let [interval, rtt] = [rs.interval, rs.rtt].map(|span| span.0 as f64 / 1e9);
        // BBRUpdateBtlBw
        self.round_start = prior >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = total;
            self.round_count += 1;
        }
        if !self.rtprop.is_finite() || interval >= self.rtprop {
            let rate = (total - prior) / interval;
            if rate >= self.btl_bw() || !rs.is_app_limited {
                self.filter.push((self.round_count, rate));
            }
        }
        // BBRCheckCyclePhase
        if self.state == State::ProbeBw {
            let is_full_length = now - self.cycle_stamp > self.rtprop;
            let gain = self.pacing_gain();
            let is_next = if gain == 1.0 {
                is_full_length
            } else if gain > 1.0 {
                is_full_length && (lost > 0.0 || prior_flight >= self.inflight(gain))
            } else {
                is_full_length || prior_flight <= self.inflight(1.0)
            };
            if is_next {
                self.cycle_stamp = now;
                self.cycle_index = (self.cycle_index + 1) % 8;
            }
        }
        // BBRCheckFullPipe
        if !self.filled_pipe && self.round_start && !rs.is_app_limited {
            if self.btl_bw() >= self.full_bw * 1.25 {
                self.full_bw = self.btl_bw();
                self.full_bw_count = 0;
            } else {
                self.full_bw_count += 1;
                self.filled_pipe = self.full_bw_count >= 3;
            }
        }
        // BBRCheckDrain
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
        }
        if self.state == State::Drain && flight <= self.inflight(1.0) {
            self.enter_probe_bw(now, drawn);
        }
        // BBRUpdateRTprop
        let expired = now > self.rtprop_stamp + 10.0 && self.rtprop.is_finite();
        if rtt <= self.rtprop || expired {
            (self.rtprop, self.rtprop_stamp) = (rtt, now);
        }
        // BBRCheckProbeRTT
        if self.state != State::ProbeRtt && expired {
            self.prior_cwnd = if self.in_recovery { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
            (self.state, self.probe_rtt_done_stamp) = (State::ProbeRtt, None);
        }
        if self.state == State::ProbeRtt {
            if let Some(done) = self.probe_rtt_done_stamp {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && now > done {
                    self.rtprop_stamp = now;
                    self.cwnd = self.cwnd.max(self.prior_cwnd);
                    if self.filled_pipe {
                        self.enter_probe_bw(now, drawn);
                    } else {
                        self.state = State::Startup;
                    }
                }
            } else if flight <= MIN_PIPE {
                self.probe_rtt_done_stamp = Some(now + 0.2);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = total;
            }
        }
        // BBRSetPacingRate
        let rate = self.pacing_gain() * self.btl_bw();
        if self.filled_pipe || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
        // BBRSetCwnd
        if lost > 0.0 {
            self.cwnd = (self.cwnd - lost).max(MSS as f64);
        }
        if rs.in_recovery && !self.in_recovery {
            self.packet_conservation = true;
            self.next_round_delivered = total;
            self.cwnd = flight + newly.max(MSS as f64);
        } else if self.in_recovery && !rs.in_recovery {
            self.packet_conservation = false;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        } else if self.round_start {
            self.packet_conservation = false;
        }
        self.in_recovery = rs.in_recovery;
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(flight + newly);
        } else {
            let gain = match self.state {
                State::ProbeBw => 2.0,
                State::ProbeRtt => 1.0,
                _ => GAIN,
            };
            let target = self.inflight(gain);
            if self.filled_pipe {
                self.cwnd = (self.cwnd + newly).min(target);
            } else if self.cwnd < target || total < 10_000.0 {
                self.cwnd += newly;
            }
            self.cwnd = self.cwnd.max(MIN_PIPE);
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_PIPE);
        }
    }

    fn enter_probe_bw(&mut self, now: f64, drawn: usize) {
        self.state = State::ProbeBw;
        self.cycle_index = (7 - drawn + 1) % 8;
        self.cycle_stamp = now;
    }
}

fn start() -> Bbr {
    Bbr::new(Bytes(MSS), Bytes(10 * MSS))
}

/// What an ACK of one segment says over a pipe of this rate and round trip time, `flight` bytes after.
fn delivered(total: u64, flight: u64, rate: u64, rtt: Duration) -> Delivery {
    let since = Rate(rate).over(rtt).0.min(total);
    Delivery {
        total: Bytes(total),
        newly: Bytes(MSS),
        prior: Bytes(total - since),
        interval: rtt,
        prior_flight: Bytes(flight + MSS),
        flight: Bytes(flight),
        rtt,
        ..Delivery::default()
    }
}

#[test]
fn it_paces_the_initial_window_at_startups_gain_before_the_first_sample() {
    let rate = start().pacing_rate(&Config::default(), Duration(100 * MS));
    assert_eq!(rate, Some(Rate(288_539)));
    assert_eq!(start().window(), Bytes(10 * MSS));
}

/// Step response: a pipe of 1 MB/s and 100 ms. Startup ends three round trips after the rate stops
/// growing; Drain when the queue is gone; then cwnd is 2 BDP + 3 quanta and the gains go round.
#[test]
fn the_states_follow_each_other() {
    let config = Config::default();
    let mut law = start();
    law.seed(1);
    let rtt = Duration(100 * MS);
    let (mut total, mut states) = (0, vec![law.state()]);
    let mut gains = std::collections::BTreeSet::new();
    for step in 0..3000u64 {
        total += MSS;
        let flight = if law.state() == State::Drain { 90_000 } else { 130_000 };
        let silent = law.on_delivery(&config, Time(step * MS), &delivered(total, flight, 1_000_000, rtt));
        assert!(!silent);
        if states.last() != Some(&law.state()) {
            states.push(law.state());
        }
        if law.state() == State::ProbeBw {
            gains.insert(law.pacing_gain(&config));
        }
    }
    assert_eq!(states, [State::Startup, State::Drain, State::ProbeBw]);
    assert_eq!(law.btl_bw(), Rate(1_000_000));
    assert_eq!(law.rtprop(), rtt);
    // 8 to 10 Mbit/s: a quantum of two segments.
    assert_eq!(law.window(), Bytes(2 * 100_000 + 3 * 2 * MSS));
    assert_eq!(gains, [750_000, 1_000_000, 1_250_000].map(Ratio::ppm).into());
}

/// Ten seconds without a lower round trip time: four packets in flight for 200 ms and a round trip,
/// whose samples count for nothing, then the window of before.
#[test]
fn probe_rtt_keeps_four_packets_for_a_fifth_of_a_second() {
    let config = Config::default();
    let mut law = start();
    let (mut total, mut began, mut ended) = (0, None, None);
    let mut before = Bytes(0);
    for step in 0..11_000u64 {
        total += MSS;
        let rtt = Duration(100 * MS + u64::from(step > 0));
        let flight = law.window().0.min(100_000);
        let now = Time(step * MS);
        let is_probing = law.state() == State::ProbeRtt;
        if !is_probing && began.is_none() {
            before = law.window();
        }
        let silent = law.on_delivery(&config, now, &delivered(total, flight, 1_000_000, rtt));
        match (is_probing, law.state() == State::ProbeRtt) {
            (false, true) => began = Some(now),
            (true, false) => ended = Some(now),
            (true, true) => assert_eq!((law.window(), silent), (Bytes(4 * MSS), true)),
            _ => {}
        }
    }
    let (began, ended) = (began.expect("it began"), ended.expect("it ended"));
    // In steps of 1 ms: the first one beyond ten seconds. Then one until four packets are in flight, and the first
    // one beyond 200 ms.
    assert!((began.0 as i64 - 10 * SECOND as i64).abs() <= MS as i64, "{began:?}");
    assert!((200 * MS..=202 * MS).contains(&(ended - began).0), "{:?}", ended - began);
    assert_eq!(law.window(), before);
}

#[test]
fn a_timeout_leaves_one_segment_and_the_window_comes_back() {
    let config = Config::default();
    let mut law = start();
    for step in 1..3000u64 {
        law.on_delivery(
            &config,
            Time(step * MS),
            &delivered(step * MSS, 80_000, 1_000_000, Duration(100 * MS)),
        );
    }
    let before = law.window();
    law.on_timeout(&config, Time(3000 * MS), before, true);
    assert_eq!(law.window(), Bytes(MSS));
    let repairing = Delivery { in_recovery: true, ..delivered(3_001_000, 0, 1_000_000, Duration(100 * MS)) };
    law.on_delivery(&config, Time(3100 * MS), &repairing);
    assert_eq!(law.window(), Bytes(4 * MSS));
    law.on_delivery(&config, Time(3101 * MS), &delivered(3_002_000, 0, 1_000_000, Duration(100 * MS)));
    assert_eq!(law.window(), before);
    assert_eq!(law.btl_bw(), Rate(1_000_000), "losses do not lower the rate");
}

/// In recovery what is sent is what is delivered, for a round trip; afterwards the window is as before.
#[test]
fn recovery_conserves_packets_for_a_round_trip() {
    let config = Config::default();
    let mut law = start();
    let rtt = Duration(100 * MS);
    for step in 1..3000u64 {
        law.on_delivery(&config, Time(step * MS), &delivered(step * MSS, 80_000, 1_000_000, rtt));
    }
    let before = law.window();
    law.on_loss(&config, Time(3000 * MS), before);
    let mut total = 3_000_000;
    for step in 0..100u64 {
        total += MSS;
        let report = Delivery { in_recovery: true, ..delivered(total, 70_000, 1_000_000, rtt) };
        law.on_delivery(&config, Time((3000 + step) * MS), &report);
        assert_eq!(law.window(), Bytes(71_000), "{step}");
    }
    law.on_delivery(&config, Time(3101 * MS), &delivered(total + MSS, 80_000, 1_000_000, rtt));
    assert_eq!(law.window(), before);
}

/// Two flows of one scenario do not probe in step, and one flow does not always begin alike.
#[test]
fn the_first_phase_is_drawn_and_never_the_one_that_drains() {
    let config = Config::default();
    let mut seen = std::collections::BTreeMap::new();
    for seed in 0..700u64 {
        let mut law = start();
        law.seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut step = 0;
        while law.state() != State::ProbeBw {
            step += 1;
            law.on_delivery(
                &config,
                Time(step * MS),
                &delivered(step * MSS, 50_000, 1_000_000, Duration(100 * MS)),
            );
        }
        *seen.entry(law.pacing_gain(&config)).or_insert(0u32) += 1;
    }
    assert!(!seen.contains_key(&Ratio::ppm(750_000)), "{seen:?}");
    let probing = seen[&Ratio::ppm(1_250_000)];
    assert!((70..=130).contains(&probing), "one in seven of 700: {seen:?}");
}

/// Over pipes whose rate, round trip time, losses and applications vary.
#[test]
fn the_law_follows_its_transcription() {
    let config = Config::default();
    let mut random = Random::new(34);
    let mut seen = [0u32; 4];
    for _ in 0..60 {
        let (mut law, mut float) = (start(), Oracle::new(10_000.0));
        let (mut now, mut total) = (0, 0);
        let base = MS + random.below(300 * MS);
        let mut rate = 20_000 + random.below(20_000_000);
        for step in 0..3000 {
            now += 1 + random.below(20 * MS);
            total += MSS * (1 + random.below(3));
            if random.below(300) == 0 {
                rate = 20_000 + random.below(20_000_000);
            }
            let in_recovery = step % 500 > 450;
            let rtt = Duration(base + random.below(base));
            let since = Rate(rate).over(rtt).0.clamp(1, total);
            let report = Delivery {
                total: Bytes(total),
                newly: Bytes(MSS),
                prior: Bytes(total - since),
                interval: rtt,
                lost: Bytes(if random.below(50) == 0 { MSS } else { 0 }),
                prior_flight: Bytes(random.below(3 * rate / 10)),
                flight: Bytes(if random.below(20) == 0 { 0 } else { random.below(3 * rate / 10) }),
                rtt,
                is_app_limited: random.below(5) == 0,
                in_recovery,
                ..Delivery::default()
            };
            if in_recovery && step % 500 == 451 {
                law.on_loss(&config, Time(now), Bytes(0));
                float.prior_cwnd = if float.in_recovery || float.state == State::ProbeRtt {
                    float.prior_cwnd.max(float.cwnd)
                } else {
                    float.cwnd
                };
            }
            law.on_delivery(&config, Time(now), &report);
            // Only the phase that the law draws comes from it.
            float.on_ack(now as f64 / 1e9, &report, (8 - usize::from(law.cycle_index())) % 8);
            let paced = law.pacing_rate(&config, rtt).unwrap();
            seen[law.state() as usize] += 1;
            assert_eq!(
                (law.state(), law.cycle_index().into()),
                (float.state, float.cycle_index),
                "step {step}"
            );
            // The filter counts in units of 8 B/s; Startup takes 2.885 times as much, in windows over up to 0.6 s.
            let gained = 8.0 * 2.885_39;
            let difference = (law.window().0 as f64 - float.cwnd).abs();
            assert!(difference <= 0.6 * gained + 1.0, "{:?} instead of {}", law.window(), float.cwnd);
            let close = |found: Rate, expected: f64, by: f64| (found.0 as f64 - expected).abs() <= by + 1.0;
            assert!(
                close(law.btl_bw(), float.btl_bw(), 8.0),
                "{:?} instead of {}",
                law.btl_bw(),
                float.btl_bw()
            );
            assert!(close(paced, float.pacing_rate, gained), "{paced:?} instead of {}", float.pacing_rate);
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}
