//! The two halves of an estimator: who sends the probes, and who looks at them.

use super::{Found, Probe, Round, code, decode, direct, passive, path_chirp, pathload, period};
use crate::estimator::Mean;
use crate::estimator::path_chirp::Range;
use alloc::vec::Vec;
use congestlab_core::units::{Duration, Time};

/// How bandwidth is estimated; both edges know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What the probes are.
    pub method: Method,
    /// Whether traffic that went missing in the cloud overrides what probes say.
    pub passive: Option<passive::Config>,
}

/// What the probes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// There are none.
    None,
    /// Chirps.
    PathChirp(path_chirp::Config),
    /// Fleets of streams.
    Pathload(pathload::Config),
    /// Trains.
    Direct(direct::Config),
}

impl Method {
    /// The round that a request's parameter asks for, and the time until the next may begin.
    fn round(&self, parameter: u64) -> (Round, Duration) {
        match self {
            Self::None => (Round::default(), Duration(0)),
            Self::PathChirp(config) => {
                let range = Range { low: decode((parameter >> 16) as u16), high: decode(parameter as u16) };
                let round = config.chirp(range);
                let period = period(&round, config.load, config.line);
                (round, period)
            }
            Self::Pathload(config) => {
                let rate = decode(parameter as u16);
                let round = config.stream(rate);
                let period = period(&round, config.load, rate);
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

/// From the last probe to the end of the round (ours): a report right behind probes that fill the
/// queue would be lost with them, every time.
const GUARD: Duration = Duration(20_000_000);

/// The half at the upstream edge: sends the rounds that it is asked for.
#[derive(Clone, Debug)]
pub struct Prober {
    config: Config,
    round: Round,
    /// Probes of this round that were sent.
    sent: u16,
    /// When the next one goes.
    next: Time,
    /// The next round may not begin before: the load that probes may be.
    rested: Time,
}

impl Prober {
    /// Nothing is asked for yet.
    pub fn new(config: Config) -> Self {
        Self { config, round: Round::default(), sent: 0, next: Time::NEVER, rested: Time::ZERO }
    }

    /// Asked for a round; it begins when the rest after the one before is over.
    pub fn begin(&mut self, now: Time, parameter: u64) {
        let (round, period) = self.config.method.round(parameter);
        let start = now.max(self.rested);
        self.next = if round.size == 0 { Time::NEVER } else { start };
        self.rested = start + period;
        (self.round, self.sent) = (round, 0);
    }

    /// When to call [`Prober::poll_transmit`]; `NEVER` when the round is done.
    pub fn next_deadline(&self) -> Time {
        self.next
    }

    /// The next probe that is due: its number and size. Call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(u16, u16)> {
        if now < self.next {
            return None;
        }
        let number = self.sent;
        if usize::from(number) > self.round.gaps.len() {
            self.next = Time::NEVER;
            return None;
        }
        self.sent += 1;
        self.next = self.next + self.round.gaps.get(usize::from(number)).copied().unwrap_or(GUARD);
        Some((number, self.round.size))
    }
}

/// What it makes of rounds.
#[derive(Clone, Debug)]
enum State {
    None,
    PathChirp(path_chirp::Listener),
    Pathload(pathload::Listener),
    Direct(direct::Config, Mean),
}

/// The half at the downstream edge: says what to send, and what is available.
#[derive(Clone, Debug)]
pub struct Listener {
    config: Config,
    state: State,
    /// Of the round under way, by number.
    probes: Vec<Option<Probe>>,
}

impl Listener {
    /// Nothing is known yet.
    pub fn new(config: Config) -> Self {
        let state = match config.method {
            Method::None => State::None,
            Method::PathChirp(config) => State::PathChirp(path_chirp::Listener::new(config)),
            Method::Pathload(config) => State::Pathload(pathload::Listener::new(config)),
            Method::Direct(config) => State::Direct(config, Mean::over(config.smoothing)),
        };
        Self { config, state, probes: Vec::new() }
    }

    /// What to ask for, and a new round.
    pub fn begin(&mut self) -> u64 {
        let parameter = match &self.state {
            State::None | State::Direct(..) => 0,
            State::PathChirp(listener) => {
                let Range { low, high } = listener.range();
                u64::from(code(low)) << 16 | u64::from(code(high))
            }
            State::Pathload(listener) => u64::from(code(listener.rate())),
        };
        let (round, _) = self.config.method.round(parameter);
        let probes = if round.size == 0 { 0 } else { round.gaps.len() + 1 };
        self.probes.clear();
        self.probes.resize(probes, None);
        parameter
    }

    /// A probe of this round has arrived; a second one of its number counts nothing.
    pub fn on_probe(&mut self, probe: Probe) {
        if let Some(place @ None) = self.probes.get_mut(usize::from(probe.number)) {
            *place = Some(probe);
        }
    }

    /// The round is over: what is available, if that is known yet. `sent` and `received` are what
    /// passed the edges between the last two reports.
    pub fn finish(&mut self, sent: passive::Passed, received: passive::Passed) -> Option<Found> {
        let found = match &mut self.state {
            State::None => None,
            State::PathChirp(listener) => Some(listener.finish(&self.probes)),
            State::Pathload(listener) => listener.finish(&self.probes),
            State::Direct(config, mean) => config
                .evaluate(&self.probes)
                .map(|found| Found { bandwidth: mean.with(found.bandwidth), ..found }),
        };
        self.probes.clear();
        let overload = self.config.passive.and_then(|passive| passive.overload(sent, received));
        let lost = found.map_or(0, |found| found.lost);
        overload.map(|bandwidth| Found { bandwidth, lost }).or(found)
    }
}
