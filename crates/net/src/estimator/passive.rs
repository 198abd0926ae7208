//! Passive refinement: traffic that does not come out as it went in says by how much the cloud is
//! overloaded (ours, docs/design/protocols.md 11.5).
//!
//! An estimator of available bandwidth cannot say less than nothing, so an overloaded cloud would
//! never be told to slow down. What the upstream edge sent between two reports, by its clock,
//! against what arrived between them, by the other's, is the missing value below zero: reports
//! travel with the data, so a span that grew on the way is a queue that grew, and what is missing
//! was lost.

use congestlab_core::units::{Bytes, Duration, Ratio};

/// Settings of passive refinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Part of what was sent, 5 % (ours), below which a difference is jitter of the two reports.
    pub tolerance: Ratio,
}

impl Default for Config {
    fn default() -> Self {
        Self { tolerance: Ratio(50_000) }
    }
}

/// Traffic that passed an edge between two reports, by its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Amount of data, in whole IP packets.
    pub bytes: Bytes,
    /// Time between the reports.
    pub span: Duration,
}

impl Config {
    /// Returns received less sent, B/s, if that is clearly below zero: the overload.
    pub fn overload(&self, sent: Passed, received: Passed) -> Option<i64> {
        if sent.span == Duration(0) || received.span == Duration(0) {
            return None;
        }
        let (sent, received) = (sent.bytes.per(sent.span).0, received.bytes.per(received.span).0);
        let missing = sent.checked_sub(received)?;
        (missing > self.tolerance.of(sent)).then(|| -(missing.min(i64::MAX as u64) as i64))
    }
}
