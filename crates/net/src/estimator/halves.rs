//! The two halves of an estimator: who sends the probes, and who looks at them.

use super::{Found, Mean, Probe, Round, code, decode, direct, passive, path_chirp, pathload, period};
use crate::estimator::path_chirp::Range;
use crate::xcp_i;
use crate::xcp_i::estimator::{Answer, Estimate, Listening, Probing, Quality, Report, Step, ToSend};
use alloc::vec::Vec;
use congestlab_core::units::{Bytes, Duration, Rate, Time};

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
    /// There are none. As long as nothing goes missing, as much is said to be available as the
    /// upstream port can send.
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
    fn round(&self, parameter: u64, line: Rate) -> (Round, Duration) {
        match self {
            Self::None => (Round::default(), Duration(0)),
            Self::PathChirp(config) => {
                let range = Range { low: decode((parameter >> 16) as u16), high: decode(parameter as u16) };
                let round = config.chirp(range);
                let period = period(&round, config.load, line);
                (round, period)
            }
            Self::Pathload(config) => {
                // Who asks for less asks for a round without end.
                let rate = decode(parameter as u16).max(SLOWEST);
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

/// The least rate of a stream that is asked for, 10 kbit/s (ours).
const SLOWEST: Rate = Rate(1250);

/// The half at the upstream edge: sends the rounds that it is asked for.
#[derive(Clone, Debug)]
pub struct Prober {
    config: Config,
    line: Rate,
    round: Round,
    /// Probes of this round that were sent.
    sent: u16,
    /// When the next one goes, or the round ends.
    next: Time,
    /// The next round may not begin before: the load that probes may be.
    rested: Time,
}

impl Prober {
    /// Nothing is asked for yet. The port to the cloud can send `line`.
    pub fn new(config: Config, line: Rate) -> Self {
        Self { config, line, round: Round::default(), sent: 0, next: Time::NEVER, rested: Time::ZERO }
    }
}

impl Probing for Prober {
    /// The round begins when the rest after the one before is over. One that was asked for again before a
    /// probe of it left keeps its turn: else requests that do not wait would put it off for ever.
    fn begin(&mut self, now: Time, parameter: u64) -> Duration {
        let (round, period) = self.config.method.round(parameter, self.line);
        let has_turn = self.sent == 0 && self.next != Time::NEVER;
        let start = now.max(if has_turn { self.next } else { self.rested });
        self.next = start;
        self.rested = start + period;
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
        let size = Bytes(u64::from(self.round.size));
        Some(Step::Send(ToSend { size, stream: 0, number, of: self.round.probes(), tag: 0 }))
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
    line: Rate,
    state: State,
    /// Of the round under way, by number.
    probes: Vec<Option<Probe>>,
    /// What the round under way sends.
    bytes: Bytes,
    /// Data that arrived in all.
    received: Bytes,
    /// When the round under way began, and the data that had arrived by then.
    began: (Time, Bytes),
    /// Data that arrived in the rounds which the estimate is a mean of, B/s.
    own: Mean,
    /// The last report, and when it came with how much data before it.
    last: Option<(Report, Time, Bytes)>,
}

impl Listener {
    /// Nothing is known yet. The upstream edge's port to the cloud can send `line`.
    pub fn new(config: Config, line: Rate) -> Self {
        let state = match config.method {
            Method::None => State::None,
            Method::PathChirp(config) => State::PathChirp(path_chirp::Listener::new(config, line)),
            Method::Pathload(config) => State::Pathload(pathload::Listener::new(config, line)),
            Method::Direct(config) => State::Direct(config, Mean::over(config.smoothing)),
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
            bytes: Bytes(0),
            received: Bytes(0),
            began: (Time::ZERO, Bytes(0)),
            own: Mean::over(smoothing),
            last: None,
        }
    }

    fn evaluate(&mut self) -> Option<Found> {
        match &mut self.state {
            State::None => {
                let bandwidth = self.line.0.min(i64::MAX as u64) as i64;
                Some(Found { bandwidth, quality: Quality::AtLeast })
            }
            State::PathChirp(listener) => Some(listener.finish(&self.probes)),
            State::Pathload(listener) => listener.finish(&self.probes),
            State::Direct(config, mean) => config
                .evaluate(&self.probes)
                .map(|found| Found { bandwidth: mean.with(found.bandwidth), ..found }),
        }
    }

    /// The cloud's own traffic is no news: of a mean over rounds, what it grew above its own mean is
    /// no longer available. A smoothed estimate would be given away again and again meanwhile.
    fn without_own(&mut self, now: Time, found: Found) -> Found {
        let (began, before) = self.began;
        let rate = (self.received - before).per((now - began).max(Duration(1)));
        let rate = rate.0.min(i64::MAX as u64 / 2) as i64;
        Found { bandwidth: found.bandwidth.saturating_add(self.own.with(rate) - rate), ..found }
    }

    /// What passed both edges between the last report and this one.
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
                u64::from(code(low)) << 16 | u64::from(code(high))
            }
            State::Pathload(listener) => u64::from(code(listener.rate())),
        };
        let (round, _) = self.config.method.round(parameter, self.line);
        self.bytes = round.bytes();
        self.probes.clear();
        self.probes.resize(usize::from(round.probes()), None);
        parameter
    }

    /// A second one of its number counts nothing.
    fn on_probe(&mut self, now: Time, probe: &xcp_i::Probe) {
        if let Some(place @ None) = self.probes.get_mut(usize::from(probe.number)) {
            *place = Some(Probe { number: probe.number, sent: probe.stamp, arrived: now });
        }
    }

    #[inline]
    fn on_data(&mut self, _now: Time, size: Bytes) {
        self.received += size;
    }

    fn on_report(&mut self, now: Time, report: &Report) -> Option<Estimate> {
        let found = self.evaluate().map(|found| self.without_own(now, found));
        self.probes.clear();
        let passed = self.passed(now, report);
        let overload = self.config.passive.zip(passed).and_then(|(passive, [sent, received])| {
            let bandwidth = passive.overload(sent, received)?;
            Some(Found { bandwidth, quality: Quality::Exact })
        });
        overload.or(found).map(|Found { bandwidth, quality }| Estimate {
            bandwidth,
            quality,
            bytes_sent: self.bytes,
            duration: report.duration,
        })
    }
}
