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

/// How a round ends at the upstream edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With this.
    Bandwidth(Bandwidth),
    /// All probes have left; the listener computes it.
    ComputeYourself,
}

/// What the prober has for the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a probe now, and ask again. The edge adds address, request and stamp.
    Send {
        /// Bytes of the whole IP packet.
        size: u16,
        /// As in [`Probe`].
        number: u16,
    },
    /// The round is over.
    Done(Answer),
}

/// The half at the upstream edge, for one downstream edge.
pub trait Probing {
    /// A request: a round begins, and one under way is given up. Returns how long it takes at most.
    fn begin(&mut self, now: Time, parameter: u64) -> Duration;

    /// When [`Probing::poll`] has something; [`Time::NEVER`] when no round is under way.
    fn next_deadline(&self) -> Time;

    /// What is due at `now`: asked until `None`. A late call gets all that is due.
    fn poll(&mut self, now: Time) -> Option<Step>;
}

/// What the report of a round says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the prober found.
    pub answer: Answer,
    /// Clock of the upstream edge then.
    pub stamp: Time,
    /// Bytes of data that it had sent towards this edge by then, in all.
    pub sent: Bytes,
}

/// The half at the downstream edge, for one upstream edge.
pub trait Listening {
    /// A request is about to leave, and a round begins; `interval` is the control interval of the
    /// virtual router. Returns the parameter for the prober.
    fn begin(&mut self, now: Time, interval: Duration) -> u64;

    /// A probe of this round arrived.
    fn on_probe(&mut self, now: Time, probe: &Probe);

    /// Data of the upstream edge arrived.
    fn on_data(&mut self, size: Bytes);

    /// The prober is done. `None`: this round gave no estimate, and the one before holds until it is
    /// stale.
    fn on_report(&mut self, now: Time, report: &Report) -> Option<Bandwidth>;
}

/// The half at the upstream edge.
// An estimator more is a variant here and in `Listener`, and a line in each `each!`.
#[derive(Clone, Debug)]
pub enum Prober<V> {
    /// Reads the links.
    Oracle(Oracle<V>),
    /// Sends probes.
    Probes(Box<estimator::Prober>),
}

/// The half at the downstream edge.
#[derive(Clone, Debug)]
pub enum Listener {
    /// Takes the prober's word.
    Told(Told),
    /// Looks at probes.
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
