//! Memory of a sender with the ways of Linux's TCP (`profile = "linux"`), beside that of every sender.

use congestlab_core::units::Time;

use super::SlowStart;
use super::hystart::HyStart;
use super::prr::Prr;
use super::rack::Rack;
use super::tail::Tail;

/// State of such a sender.
#[derive(Clone, Debug)]
pub(super) struct Linux {
    pub(super) rack: Rack,
    pub(super) tail: Tail,
    /// The window is being reduced.
    pub(super) prr: Option<Prr>,
    /// The first slow start goes on.
    pub(super) start: Option<HyStart>,
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
            start: (slow_start == SlowStart::HyStart).then(HyStart::new),
            reorder_at: Time::NEVER,
            probe_at: Time::NEVER,
        }
    }
}
