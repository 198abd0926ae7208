//! The records that a run makes beside its results.

/// Selects the records of a run beside its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// True to record the time series.
    pub series: bool,
    /// True to record every event.
    pub events: bool,
}
