//! The two halves of an estimator: the prober, which sends probes, and the listener, which sees them arrive.

use super::path_chirp::Range;
use super::{
    Found, Last, Probe, Round, SLOWEST, bandwidth, code, decode, direct, passive, path_chirp, pathload,
    period,
};
use crate::random::Stream;
use crate::xcp_i;
use crate::xcp_i::estimator::{Answer, Bandwidth, Listening, Probing, Report, Step};
use alloc::vec::Vec;
use congestlab_core::law::xcp_i::LONGEST_ROUND;
use congestlab_core::units::{Bytes, Duration, Rate, Time};

/// Way to estimate bandwidth, known to both edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Kind of probes.
    pub method: Method,
    /// Switch by which traffic that went missing in the cloud overrides what probes say; `None`: off.
    pub passive: Option<passive::Config>,
}

/// Kind of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// No probes. As long as nothing goes missing, as much is said to be available as the
    /// upstream port can send.
    None,
    /// Chirps: packets ever closer to each other.
    PathChirp(path_chirp::Config),
    /// Fleets of streams of constant rate.
    Pathload(pathload::Config),
    /// Trains of one rate.
    Direct(direct::Config),
}

impl Method {
    /// The round that a request's parameter asks for, and the time until the next may begin.
    fn round(&self, parameter: u64) -> (Round, Duration) {
        let word = |number: u32| decode((parameter >> (16 * number)) as u16);
        match self {
            Self::None => (Round::default(), Duration(0)),
            Self::PathChirp(config) => {
                let round = config.chirp(Range { high: word(0), low: word(1) });
                let period = period(&round, config.load, word(2));
                (round, period)
            }
            Self::Pathload(config) => {
                // Who asks for less asks for a round without end.
                let rate = word(0).max(SLOWEST);
                let round = config.stream(rate);
                // A tenth of the cloud is as little as a stream is counted: else streams of next to
                // nothing would take minutes.
                let carried = word(1);
                let period = period(&round, config.load, rate.max(Rate(carried.0 / 10)).min(carried));
                (round, period)
            }
            Self::Direct(config) => {
                let round = config.train();
                let period = period(&round, config.load, config.capacity);
                (round, period)
            }
        }
    }
}

/// Rates as a request's parameter, the first in the low bits.
fn words<const N: usize>(rates: [Rate; N]) -> u64 {
    rates.into_iter().rev().fold(0, |words, rate| words << 16 | u64::from(code(rate)))
}

/// From the last probe to the end of the round (ours): a report right behind probes that fill the
/// queue would be lost with them, every time.
const GUARD: Duration = Duration(20_000_000);

/// Upstream half of an estimator: sends the rounds of probes that it is asked for.
#[derive(Clone, Debug)]
pub struct Prober {
    config: Config,
    stream: Stream,
    round: Round,
    /// Probes of this round that were sent.
    sent: u16,
    /// When the next one goes, or the round ends.
    next: Time,
    /// The next round may not begin before: the load that probes may be.
    rested: Time,
}

impl Prober {
    /// Creates a prober that has not been asked yet; `stream` varies the time between rounds.
    pub fn new(config: Config, stream: Stream) -> Self {
        Self { config, stream, round: Round::default(), sent: 0, next: Time::NEVER, rested: Time::ZERO }
    }

    /// Returns true if the listener compares what was sent with what arrives.
    pub const fn counts_sent(&self) -> bool {
        self.config.passive.is_some()
    }

    /// Returns the number of random words drawn.
    pub const fn draws(&self) -> u64 {
        self.stream.draws()
    }

    /// Draws a time from half of `period` to half as much again: rounds in step with traffic that comes and goes
    /// would meet only a part of it (ours).
    fn about(&mut self, period: Duration) -> Duration {
        Duration(period.0 / 2 + self.stream.below(period.0 + 1)).min(LONGEST_ROUND)
    }
}

impl Probing for Prober {
    /// The round begins when the rest after the one before is over. One that was asked for again before a
    /// probe of it left keeps its turn: else requests that do not wait would put it off for ever.
    fn begin(&mut self, now: Time, parameter: u64) -> Duration {
        let (round, period) = self.config.method.round(parameter);
        let has_turn = self.sent == 0 && self.next != Time::NEVER;
        let start = now.max(if has_turn { self.next } else { self.rested });
        self.next = start;
        self.rested = start + self.about(period);
        let lasts = round.gaps.iter().fold(GUARD, |sum, &gap| sum + gap);
        (self.round, self.sent) = (round, 0);
        (start + lasts) - now
    }

    fn next_deadline(&self) -> Time {
        self.next
    }

    fn poll(&mut self, now: Time) -> Option<Step> {
        if now < self.next {
            return None;
        }
        let number = self.sent;
        if number >= self.round.probes() {
            self.next = Time::NEVER;
            return Some(Step::Done(Answer::ComputeYourself));
        }
        self.sent += 1;
        self.next = self.next + self.round.gaps.get(usize::from(number)).copied().unwrap_or(GUARD);
        Some(Step::Send { size: self.round.size, number })
    }
}

/// Evaluation of rounds, by the kind of probes.
#[derive(Clone, Debug)]
enum State {
    None,
    PathChirp(path_chirp::Listener),
    Pathload(pathload::Listener),
    Direct(direct::Config, Last),
}

/// Downstream half of an estimator: says what to send, and estimates what is available.
#[derive(Clone, Debug)]
pub struct Listener {
    config: Config,
    line: Rate,
    state: State,
    /// Probes of the round under way, by number.
    probes: Vec<Option<Probe>>,
    /// Data that arrived in all.
    received: Bytes,
    /// When the round under way began, and the data that had arrived by then.
    began: (Time, Bytes),
    /// Data that arrived in the last rounds, B/s.
    own: Last,
    /// The last report, and when it came with how much data before it.
    last: Option<(Report, Time, Bytes)>,
}

impl Listener {
    /// Creates a listener that knows nothing yet; `line` is the rate of the upstream edge's port to the cloud.
    pub fn new(config: Config, line: Rate) -> Self {
        let state = match config.method {
            Method::None => State::None,
            Method::PathChirp(config) => State::PathChirp(path_chirp::Listener::new(config, line)),
            Method::Pathload(config) => State::Pathload(pathload::Listener::new(config, line)),
            Method::Direct(config) => State::Direct(config, Last::of(config.smoothing)),
        };
        let smoothing = match config.method {
            Method::PathChirp(config) => config.smoothing,
            Method::Direct(config) => config.smoothing,
            Method::None | Method::Pathload(_) => 1,
        };
        Self {
            config,
            line,
            state,
            probes: Vec::new(),
            received: Bytes(0),
            began: (Time::ZERO, Bytes(0)),
            own: Last::of(smoothing),
            last: None,
        }
    }

    fn evaluate(&mut self) -> Option<Found> {
        match &mut self.state {
            State::None => Some(Found { bandwidth: bandwidth(self.line), rounds: 1 }),
            State::PathChirp(listener) => Some(listener.finish(&self.probes)),
            State::Pathload(listener) => listener.finish(&self.probes),
            State::Direct(config, last) => {
                last.push(config.evaluate(&self.probes)?);
                Some(last.found())
            }
        }
    }

    /// Takes the cloud's own traffic out: of a mean over rounds, what that grew above its own mean is
    /// no longer available. A smoothed estimate would be given away again and again meanwhile.
    fn without_own(&mut self, now: Time, found: Found) -> Bandwidth {
        let (began, before) = self.began;
        let rate = bandwidth((self.received - before).per((now - began).max(Duration(1))));
        self.own.push(rate);
        found.bandwidth.saturating_add(self.own.mean(found.rounds) - rate)
    }

    /// Returns what passed each edge between the last report and this one.
    fn passed(&mut self, now: Time, report: &Report) -> Option<[passive::Passed; 2]> {
        let (before, then, received) = self.last.replace((*report, now, self.received))?;
        let sent = passive::Passed { bytes: report.sent - before.sent, span: report.stamp - before.stamp };
        let received = passive::Passed { bytes: self.received - received, span: now - then };
        Some([sent, received])
    }
}

impl Listening for Listener {
    fn begin(&mut self, now: Time, _interval: Duration) -> u64 {
        self.began = (now, self.received);
        let parameter = match &self.state {
            State::None | State::Direct(..) => 0,
            State::PathChirp(listener) => {
                let Range { low, high } = listener.range();
                words([high, low, listener.capacity()])
            }
            State::Pathload(listener) => words([listener.rate(), listener.carried()]),
        };
        let (round, _) = self.config.method.round(parameter);
        self.probes.clear();
        self.probes.resize(usize::from(round.probes()), None);
        parameter
    }

    /// Takes a probe; a second one of its number counts nothing.
    fn on_probe(&mut self, now: Time, probe: &xcp_i::Probe) {
        if let Some(place @ None) = self.probes.get_mut(usize::from(probe.number)) {
            *place = Some(Probe { number: probe.number, sent: probe.stamp, arrived: now });
        }
    }

    #[inline]
    fn on_data(&mut self, size: Bytes) {
        self.received += size;
    }

    fn on_report(&mut self, now: Time, report: &Report) -> Option<Bandwidth> {
        let found = self.evaluate().map(|found| self.without_own(now, found));
        self.probes.clear();
        let passed = self.passed(now, report);
        let overload = self.config.passive.zip(passed);
        overload.and_then(|(passive, [sent, received])| passive.overload(sent, received)).or(found)
    }
}
