//! BBR version 3 (draft-ietf-ccwg-bbr; docs/design/modern.md 7).

use std::collections::VecDeque;

use super::random::Random;
use super::{MS, MSS, packets};
use congestlab_core::law::bbr3::{Bbr3, Config, State, inflight_at_loss};
use congestlab_core::law::{Ack, Delivery, SenderLaw};
use congestlab_core::units::{Bytes, Duration, Ratio, SECOND, Time};

const CONFIG: Config = Config::DEFAULT;
const RTT: Duration = Duration(100 * MS);
const RATE: u64 = 1_000_000;

/// VM7.1: ten packets go at once, the last of them with 110 in flight; eleven are lost with it.
#[test]
fn vm7_1_the_flight_at_which_losses_were_too_many() {
    let (packet, burst) = (1_000_000, 10_000_000);
    let at = inflight_at_loss(Ratio::ppm(20_000), Bytes(110 * packet), Bytes(11 * packet), Bytes(burst));
    assert_eq!(at, 100 * packet + (2 * packet - packet) * 100 / 98);
}

/// A packet in flight.
struct Sent {
    at: u64,
    delivered: u64,
    delivered_at: u64,
    lost: u64,
    flight: u64,
    is_lost: bool,
}

/// A pipe of [`RATE`] and [`RTT`], a hundred packets, with a sender that paces into it as its window lets it: what stands beyond the
/// pipe queues. Of the packets that are sent with more than `limit` in flight every fifth is lost.
struct Pipe {
    law: Bbr3,
    total: u64,
    delivered_at: u64,
    lost: u64,
    now: u64,
    credit: u64,
    sent: u64,
    flight: VecDeque<Sent>,
    limit: u64,
    states: Vec<(u64, State)>,
}

impl Pipe {
    fn new(seed: u64, limit: u64) -> Self {
        let mut law = Bbr3::new(Bytes(MSS), Bytes(10 * MSS));
        law.seed(seed);
        Self {
            law,
            total: 0,
            delivered_at: 0,
            lost: 0,
            now: 0,
            credit: 0,
            sent: 0,
            flight: VecDeque::new(),
            limit,
            states: vec![(0, State::Startup)],
        }
    }

    /// The time in which the pipe carries a packet passes.
    fn step(&mut self, rate: u64) {
        let tick = MSS * SECOND / rate;
        self.now += tick;
        let mut newly_lost = (0, 0, 0);
        while self.flight.front().is_some_and(|first| first.is_lost && first.at + RTT.0 <= self.now) {
            let gone = self.flight.pop_front().unwrap();
            self.lost += MSS;
            newly_lost = (newly_lost.0 + MSS, self.lost - gone.lost, gone.flight);
        }
        if self.flight.front().is_some_and(|first| first.at + RTT.0 <= self.now) {
            let first = self.flight.pop_front().unwrap();
            self.total += MSS;
            self.delivered_at = self.now;
            let flight = self.flight.len() as u64 * MSS;
            let delivery = Delivery {
                total: Bytes(self.total),
                newly: Bytes(MSS),
                prior: Bytes(first.delivered),
                interval: Duration(self.now - first.delivered_at),
                lost: Bytes(newly_lost.0),
                lost_since: Bytes(self.lost - first.lost),
                sent_flight: Bytes(first.flight),
                lost_until: Bytes(newly_lost.1),
                lost_flight: Bytes(newly_lost.2),
                prior_flight: Bytes(flight + MSS),
                flight: Bytes(flight),
                rtt: Duration(self.now - first.at),
                ..Delivery::default()
            };
            let is_window_limited = flight + MSS >= self.law.window().0;
            self.law.on_ack(&CONFIG, Time(self.now), &Ack { is_window_limited, ..Ack::default() });
            self.law.on_delivery(&CONFIG, Time(self.now), &delivery);
            if self.states.last().is_none_or(|(_, last)| *last != self.law.state()) {
                self.states.push((self.now, self.law.state()));
            }
        }
        self.credit += self.law.pacing_rate(&CONFIG, RTT).unwrap().over(Duration(tick)).0;
        while self.credit >= MSS && (self.flight.len() as u64 + 1) * MSS <= self.law.window().0 {
            self.credit -= MSS;
            self.sent += 1;
            let flight = (self.flight.len() as u64 + 1) * MSS;
            if self.flight.is_empty() {
                self.delivered_at = self.now;
            }
            self.flight.push_back(Sent {
                at: self.now,
                delivered: self.total,
                delivered_at: self.delivered_at,
                lost: self.lost,
                flight,
                is_lost: flight > self.limit && self.sent.is_multiple_of(5),
            });
        }
        self.credit = self.credit.min(4 * MSS);
    }

    fn run(&mut self, rate: u64, seconds: u64) {
        let end = self.now + seconds * SECOND;
        while self.now < end {
            self.step(rate);
        }
    }

    fn names(&self) -> Vec<State> {
        self.states.iter().map(|(_, state)| *state).collect()
    }
}

/// Startup, Drain, then the four parts of ProbeBW, and ProbeRTT once no lower round trip came for five seconds.
#[test]
fn the_states_follow_each_other() {
    let mut pipe = Pipe::new(1, u64::MAX);
    pipe.run(RATE, 30);
    let names = pipe.names();
    assert_eq!(names[..2], [State::Startup, State::Drain], "{:?}", pipe.states);
    for pair in names.windows(2) {
        let allowed: &[State] = match pair[0] {
            State::Startup => &[State::Drain],
            // DOWN ends with the acknowledgment that begins it where the queue is gone.
            State::Drain => &[State::Down, State::Cruise],
            State::Down => &[State::Cruise, State::Refill, State::ProbeRtt],
            State::Cruise => &[State::Refill, State::ProbeRtt],
            State::Refill => &[State::Up, State::ProbeRtt],
            State::Up => &[State::Down, State::ProbeRtt],
            State::ProbeRtt => &[State::Cruise],
        };
        assert!(allowed.contains(&pair[1]), "{pair:?}");
    }
    for state in [State::Cruise, State::Refill, State::Up, State::ProbeRtt] {
        assert!(names.contains(&state), "{state:?} never came: {:?}", pipe.states);
    }
    let rate = pipe.law.max_bw().0;
    assert!((RATE * 97 / 100..=RATE * 101 / 100).contains(&rate), "{rate}");
    assert_eq!(pipe.law.long_bound(), None, "nothing was lost");
}

/// The first acknowledgment of a round trip of Startup comes after the least round trip time to the nanosecond, whether that
/// is a multiple of the unit in which it is kept or not: it is a sample, and Startup goes on until the pipe is full.
#[test]
fn no_nanosecond_of_a_round_trip_ends_startup() {
    for nanoseconds in 0..16 {
        let mut pipe = Pipe::new(1, u64::MAX);
        // A packet takes 1 ms and so many nanoseconds.
        pipe.run(RATE - nanoseconds, 3);
        let rate = pipe.law.max_bw().0;
        assert!(rate > RATE * 97 / 100, "{nanoseconds} ns: {rate} B/s, {:?}", pipe.states);
    }
}

/// Startup ends after rounds that bring no more, and a round without a sample is none of these.
#[test]
fn a_round_without_a_sample_is_not_judged() {
    let mut law = Bbr3::new(Bytes(MSS), Bytes(10 * MSS));
    let (mut total, mut now) = (0, 0);
    for round in 0..20_u64 {
        now += RTT.0;
        let prior = Bytes(total);
        total += 10 * MSS;
        // From the second on each is compressed.
        let interval = if round == 0 { RTT } else { Duration(RTT.0 / 2) };
        let newly = Bytes(10 * MSS);
        let delivery =
            Delivery { total: Bytes(total), newly, prior, interval, rtt: RTT, ..Delivery::default() };
        law.on_delivery(&CONFIG, Time(now), &delivery);
        assert_eq!(law.state(), State::Startup, "{round}");
    }
}

/// VM7.5: a pipe of 100 packets and 100 ms is probed after 2 to 3 s of wall clock.
#[test]
fn vm7_5_probes_come_after_two_to_three_seconds() {
    let mut pipe = Pipe::new(3, u64::MAX);
    pipe.run(RATE, 60);
    let mut probes = 0;
    for (index, (at, state)) in pipe.states.iter().enumerate() {
        if *state != State::Refill {
            continue;
        }
        // Back to where a cycle began: after a probe, after Drain, or after ProbeRTT.
        let begins =
            |index: &usize| matches!(pipe.states[index - 1].1, State::Up | State::Drain | State::ProbeRtt);
        let begin = pipe.states[(1..index).rev().find(begins).unwrap()].0;
        let wait = at - begin;
        assert!((2 * SECOND..31 * SECOND / 10).contains(&wait), "{wait} ns before {at}");
        probes += 1;
    }
    assert!(probes >= 10, "{probes}");
}

/// Losses beyond 120 packets: a probe that loses too much finds the bound, which later stays about there; CRUISE keeps room below it.
#[test]
fn a_probe_that_loses_finds_a_bound() {
    let mut pipe = Pipe::new(5, 120_000);
    pipe.run(RATE, 40);
    let bound = pipe.law.long_bound().expect("losses came").0;
    assert!((90_000..160_000).contains(&bound), "{bound}");
    let mut cruised = 0;
    for _ in 0..20_000 {
        pipe.step(RATE);
        if pipe.law.state() == State::Cruise {
            cruised += 1;
            assert!(pipe.law.window().0 <= pipe.law.with_headroom());
        }
    }
    assert!(cruised > 1000, "{cruised}");
}

/// VM7.3: 15 % of the bound, a segment at least, and four segments stay.
#[test]
fn vm7_3_headroom() {
    let mut pipe = Pipe::new(5, 120_000);
    pipe.run(RATE, 40);
    let bound = pipe.law.long_bound().expect("losses came").0;
    assert_eq!(pipe.law.with_headroom(), bound - (bound - bound * 85 / 100).max(MSS));
    assert_eq!(Bbr3::new(Bytes(MSS), Bytes(MSS)).with_headroom(), u64::MAX);
}

/// VM7.2: while it does not probe, a round trip with losses lowers the short bounds to seven tenths, or to what was delivered.
#[test]
fn vm7_2_losses_bound_for_a_short_time() {
    let mut pipe = Pipe::new(7, u64::MAX);
    pipe.run(RATE, 20);
    while pipe.law.state() != State::Cruise {
        pipe.step(RATE);
    }
    assert_eq!(pipe.law.short_bounds(), None);
    // Losses from now on, and a third of the rate: after some round trips the bound is what arrives.
    pipe.limit = 0;
    let mut bounds = Vec::new();
    for _ in 0..400 {
        pipe.step(RATE / 2);
        if let Some((rate, _)) = pipe.law.short_bounds() {
            bounds.push(rate.0);
        }
        if pipe.law.state() != State::Cruise {
            break;
        }
    }
    let least = *bounds.iter().min().expect("bounds");
    assert!(bounds.windows(2).all(|pair| pair[1] <= pair[0] || pair[1] * 10 >= pair[0] * 7), "{bounds:?}");
    assert!(least >= RATE / 2 * 9 / 10, "never below what is delivered: {least}");
    assert!(least < RATE * 8 / 10, "{least}");
}

/// The window is within the bounds of its state, and the state survives anything.
#[test]
fn nothing_moves_it_out_of_its_bounds() {
    let mut random = Random::new(77);
    let mut law = Bbr3::new(Bytes(MSS), Bytes(10 * MSS));
    law.seed(9);
    let (mut now, mut total) = (0, 0);
    let mut seen = [false; 7];
    for step in 0..200_000u64 {
        now += random.below(20 * MS);
        let newly = MSS * random.below(4);
        total += newly;
        let rtt = Duration(10 * MS + random.below(50 * MS));
        let flight = law.window().0;
        let lost = if random.below(40) == 0 { MSS } else { 0 };
        let delivery = Delivery {
            total: Bytes(total),
            newly: Bytes(newly),
            prior: Bytes(total.saturating_sub(random.below(flight + MSS))),
            interval: Duration(rtt.0 * random.below(2)),
            lost: Bytes(lost),
            lost_since: Bytes(random.below(flight / 40 + 1)),
            sent_flight: Bytes(flight),
            lost_until: Bytes(random.below(flight / 40 + 1)),
            lost_flight: Bytes(if lost > 0 { flight } else { 0 }),
            prior_flight: Bytes(flight),
            flight: Bytes(random.below(flight + 1)),
            rtt,
            is_app_limited: random.below(5) == 0,
            in_recovery: step % 500 > 450,
        };
        law.on_ack(&CONFIG, Time(now), &Ack { is_window_limited: random.below(2) == 0, ..Ack::default() });
        match random.below(2000) {
            0 => law.on_timeout(&CONFIG, Time(now), Bytes(flight), true),
            1 => law.on_restart(&CONFIG, Time(now), Bytes(10 * MSS)),
            2..10 => law.on_loss(&CONFIG, Time(now), Bytes(flight)),
            _ => {}
        }
        law.on_delivery(&CONFIG, Time(now), &delivery);
        seen[law.state() as usize] = true;
        assert!(packets(&law) >= 1.0);
        let bound = match law.state() {
            State::Cruise | State::ProbeRtt => law.with_headroom(),
            State::Down | State::Refill | State::Up => law.long_bound().map_or(u64::MAX, |bound| bound.0),
            State::Startup | State::Drain => u64::MAX,
        };
        assert!(law.window().0 <= bound.max(4 * MSS), "{step}: {:?} over {bound}", law.window());
        assert!(law.bandwidth() <= law.max_bw());
    }
    assert_eq!(seen, [true; 7]);
}
