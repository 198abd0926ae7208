//! An estimator of available bandwidth in two halves: a prober at the upstream edge of a cloud, a
//! listener at the downstream edge. They see packets and their own clocks.
//!
//! One round: the parameter that [`Listening::begin`] returns travels in the request; the prober
//! [begins](Probing::begin), gives packets to send at their times, and ends with an [`Answer`]. The
//! listener sees the probes and the data that arrive, and makes an estimate of the report.

use congestlab_core::units::{Bytes, Duration, Time};

use super::message::Probe;

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
