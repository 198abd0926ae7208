//! BBR, version 3 (draft-ietf-ccwg-bbr, "draft" below, whose names the functions here have; docs/design/modern.md 7): the model of
//! [`super::bbr`], a rate that was delivered and a least round trip time, with bounds: for long what probing showed to lose too
//! much, for short what was delivered when losses came.
//!
//! Not here: marks, for which the draft has no law yet, and taking back what a recovery did that was no recovery.

mod model;
#[cfg(feature = "words")]
mod words;

pub use model::{Bbr3, State, inflight_at_loss};

use super::protocol::Protocol;
#[cfg(feature = "words")]
use super::settings::Finding;
use super::settings::{Field, Settings};
use super::{Column, Hue, Look, Shape};
use crate::units::{Duration, Ratio, SECOND};
use core::convert::Infallible;

/// Constants of BBR version 3 that a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// BBR.LossThresh: part of what was in flight that may be lost.
    pub loss_threshold: Ratio,
    /// BBR.Beta: what stays of a bound when losses came.
    pub beta: Ratio,
    /// ProbeRTTInterval: time without a lower round trip after which the queue is emptied.
    pub probe_rtt_interval: Duration,
    /// The least time between two probes for bandwidth; a random second is added.
    pub probe_wait: Duration,
}

impl Config {
    /// The draft's.
    pub const DEFAULT: Self = Self {
        loss_threshold: Ratio::ppm(20_000),
        beta: Ratio::ppm(700_000),
        probe_rtt_interval: Duration(5 * SECOND),
        probe_wait: Duration(2 * SECOND),
    };
}

impl Default for Config {
    #[inline] // or it would be in each BPF object
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "loss_threshold",
            "part of what was in flight that may be lost in a probe; 0.02 (draft-ietf-ccwg-bbr).",
            Field::Share(&mut self.loss_threshold),
        );
        tell(
            "beta",
            "what stays of a bound when losses came; 0.7 (draft-ietf-ccwg-bbr).",
            Field::Share(&mut self.beta),
        );
        tell(
            "probe_rtt_interval",
            "time without a lower round trip after which the queue is emptied; 5 s (draft-ietf-ccwg-bbr).",
            Field::Span(&mut self.probe_rtt_interval),
        );
        tell(
            "probe_wait",
            "least time between two probes for bandwidth, to which up to a second is added; 2 s (draft-ietf-ccwg-bbr).",
            Field::Span(&mut self.probe_wait),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("probe_rtt_interval", self.probe_rtt_interval.0, "\"5 s\"", tell);
    }
}

/// Returns the protocols of this folder: `bbr3` alone.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "bbr3",
            about: "BBR version 3 (draft-ietf-ccwg-bbr)",
            page: "bbr3",
            look: Look::new(Hue::Green, Shape::Circle, 1),
            link_series: &[],
            flow_series: &[
                Column::new("bandwidth_Bps", "Bandwidth that flows estimate"),
                Column::new("long_bound_packets", "Bound that probing found"),
            ],
            link: None,
            sender: Some(Config::DEFAULT),
        }]
    }
}
