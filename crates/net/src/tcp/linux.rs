//! Memory of a sender with the ways of Linux's TCP (`profile = "linux"`), beside that of every sender.

use congestlab_core::units::Time;

use super::SlowStart;
use super::hystart::HyStart;
use super::hystart_plus::HyStartPlus;
use super::prr::Prr;
use super::rack::Rack;
use super::slow_start::{Heard, Step};
use super::tail::Tail;

/// State of such a sender.
#[derive(Clone, Debug)]
pub(super) struct Linux {
    pub(super) rack: Rack,
    pub(super) tail: Tail,
    /// The window is being reduced.
    pub(super) prr: Option<Prr>,
    /// Looks for the end of a slow start that goes on.
    pub(super) start: Option<Start>,
    /// When RACK may find a loss.
    pub(super) reorder_at: Time,
    /// When a tail loss probe is due.
    pub(super) probe_at: Time,
}

impl Linux {
    /// A connection begins.
    pub(super) fn new(slow_start: SlowStart) -> Self {
        Self {
            rack: Rack::new(),
            tail: Tail::new(),
            prr: None,
            start: Start::new(slow_start),
            reorder_at: Time::NEVER,
            probe_at: Time::NEVER,
        }
    }
}

/// The search for the end of a slow start before a loss.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    HyStart(HyStart),
    HyStartPlus(HyStartPlus),
}

impl Start {
    /// A connection begins.
    pub(super) fn new(slow_start: SlowStart) -> Option<Self> {
        match slow_start {
            SlowStart::Standard => None,
            SlowStart::HyStart => Some(Self::HyStart(HyStart::new())),
            SlowStart::HyStartPlus => Some(Self::HyStartPlus(HyStartPlus::new())),
        }
    }

    /// A timeout leads to another slow start: RFC 9406 §4.3 leaves that to standard slow start, Linux's CUBIC begins anew.
    pub(super) fn after_timeout(slow_start: SlowStart) -> Option<Self> {
        Self::new(slow_start).filter(|start| matches!(start, Self::HyStart(_)))
    }

    /// Takes an acknowledgment in slow start.
    pub(super) fn on_ack(&mut self, heard: &Heard) -> Step {
        match self {
            Self::HyStart(start) => start.on_ack(heard),
            Self::HyStartPlus(start) => {
                start.on_ack(heard.una, heard.next, heard.acked, heard.rtt, heard.mss)
            }
        }
    }
}
