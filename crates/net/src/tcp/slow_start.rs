//! Input and output of the searches for the end of a slow start.

use congestlab_core::units::{Duration, Time};

/// An acknowledgment in slow start, and the sender that takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) now: Time,
    /// SND.UNA and SND.NXT, segments.
    pub(super) una: u64,
    pub(super) next: u64,
    /// Bytes newly acknowledged.
    pub(super) acked: u64,
    pub(super) rtt: Duration,
    pub(super) srtt: Duration,
    /// Bytes.
    pub(super) window: u64,
    pub(super) mss: u64,
}

/// An acknowledgment's part in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes by which the window grows.
    pub(super) growth: u64,
    /// Slow start is over: ssthresh = cwnd.
    pub(super) is_over: bool,
}
