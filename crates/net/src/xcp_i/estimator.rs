//! An estimator of available bandwidth in two halves: a prober at the upstream edge of a cloud, a
//! listener at the downstream edge. They see packets and their own clocks.
//!
//! One round: the parameter that [`Listening::begin`] returns travels in the request; the prober
//! [begins](Probing::begin), gives packets to send at their times, and ends with an [`Answer`]. The
//! listener sees the probes and the data that arrive, and makes an estimate of the report.

use super::message::Probe;
use super::oracle::{LinkView, Oracle};
use crate::estimator;
use alloc::boxed::Box;
use congestlab_core::units::{Bytes, Duration, Time};

/// Available bandwidth, B/s; negative: more arrives at the bottleneck than it carries.
pub type Bandwidth = i64;

/// Outcome of a round at the upstream edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The prober knows the available bandwidth.
    Bandwidth(Bandwidth),
    /// All probes have left; the listener computes it.
    ComputeYourself,
}

/// Next step of a prober, for the edge to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a probe now, and ask again. The edge adds address, request and stamp.
    Send {
        /// Bytes of the whole IP packet.
        size: u16,
        /// Number of the probe in its round, as in [`Probe`].
        number: u16,
    },
    /// The round is over.
    Done(Answer),
}

/// The upstream half of an estimator, for one downstream edge.
pub trait Probing {
    /// Begins a round, which gives up one under way. Returns how long it takes at most.
    fn begin(&mut self, now: Time, parameter: u64) -> Duration;

    /// Returns when [`Probing::poll`] has something; [`Time::NEVER`] when no round is under way.
    fn next_deadline(&self) -> Time;

    /// Returns a step that is due at `now`: asked until `None`. A late call gets all that is due.
    fn poll(&mut self, now: Time) -> Option<Step>;
}

/// Report of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Outcome of the round.
    pub answer: Answer,
    /// Clock of the upstream edge when it reported.
    pub stamp: Time,
    /// Bytes of data that the upstream edge had sent towards this edge by then, in all.
    pub sent: Bytes,
}

/// The downstream half of an estimator, for one upstream edge.
pub trait Listening {
    /// Begins a round, whose request is about to leave; `interval` is the control interval of the
    /// virtual router. Returns the parameter for the prober.
    fn begin(&mut self, now: Time, interval: Duration) -> u64;

    /// Takes a probe of this round that arrived.
    fn on_probe(&mut self, now: Time, probe: &Probe);

    /// Takes data of the upstream edge that arrived.
    fn on_data(&mut self, size: Bytes);

    /// Takes the report of the prober, which is done. `None`: this round gave no estimate, and the one before holds
    /// until it is stale.
    fn on_report(&mut self, now: Time, report: &Report) -> Option<Bandwidth>;
}

/// The upstream half of an estimator, of any kind.
// An estimator more is a variant here and in `Listener`, and a line in each `each!`.
#[derive(Clone, Debug)]
pub enum Prober<V> {
    /// The prober reads the links.
    Oracle(Oracle<V>),
    /// The prober sends probes.
    Probes(Box<estimator::Prober>),
}

/// The downstream half of an estimator, of any kind.
#[derive(Clone, Debug)]
pub enum Listener {
    /// The listener takes the prober's word.
    Told(Told),
    /// The listener looks at probes.
    Probes(Box<estimator::Listener>),
}

macro_rules! each {
    ($self:expr, $half:ident => $body:expr) => {
        match $self {
            Prober::Oracle($half) => $body,
            Prober::Probes($half) => $body,
        }
    };
}

impl<V: LinkView> Probing for Prober<V> {
    fn begin(&mut self, now: Time, parameter: u64) -> Duration {
        each!(self, half => half.begin(now, parameter))
    }

    fn next_deadline(&self) -> Time {
        each!(self, half => half.next_deadline())
    }

    fn poll(&mut self, now: Time) -> Option<Step> {
        each!(self, half => half.poll(now))
    }
}

macro_rules! each_listener {
    ($self:expr, $half:ident => $body:expr) => {
        match $self {
            Listener::Told($half) => $body,
            Listener::Probes($half) => $body,
        }
    };
}

impl Listening for Listener {
    fn begin(&mut self, now: Time, interval: Duration) -> u64 {
        each_listener!(self, half => half.begin(now, interval))
    }

    fn on_probe(&mut self, now: Time, probe: &Probe) {
        each_listener!(self, half => half.on_probe(now, probe))
    }

    #[inline]
    fn on_data(&mut self, size: Bytes) {
        each_listener!(self, half => half.on_data(size))
    }

    fn on_report(&mut self, now: Time, report: &Report) -> Option<Bandwidth> {
        each_listener!(self, half => half.on_report(now, report))
    }
}

/// The listener of a prober that answers itself, as the oracle does. The parameter is the control
/// interval, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told;

impl Listening for Told {
    fn begin(&mut self, _now: Time, interval: Duration) -> u64 {
        interval.0
    }

    fn on_probe(&mut self, _now: Time, _probe: &Probe) {}

    #[inline]
    fn on_data(&mut self, _size: Bytes) {}

    fn on_report(&mut self, _now: Time, report: &Report) -> Option<Bandwidth> {
        match report.answer {
            Answer::Bandwidth(bandwidth) => Some(bandwidth),
            Answer::ComputeYourself => None,
        }
    }
}
