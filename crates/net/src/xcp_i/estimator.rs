//! The estimators of available bandwidth, one or the other: the oracle, or one that sends probes. `round` says what the two
//! halves of each do.

use super::message::Probe;
use super::oracle::{LinkView, Oracle};
pub use super::round::{Answer, Bandwidth, Listening, Probing, Report, Step};
use crate::estimator;
use alloc::boxed::Box;
use congestlab_core::units::{Bytes, Duration, Time};

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
