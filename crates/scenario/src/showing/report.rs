//! What a run looks like: `report.html`, and the same charts for other pictures.
//!
//! [`html`] makes of a [`Recording`](crate::recording::Recording), the results and the scenario one file that needs nothing
//! else. Nothing here reads or writes files.

mod page;
mod picture;
mod sweep;
#[cfg(test)]
mod tests;
mod topology;
mod verdicts;

pub use congestlab_text::printable::escape;
pub use page::{POLICY, begin, described, end, html, table};
pub use picture::{Drawn, figure};
use serde_json::Value as Json;
pub use sweep::{SweepRun, over_seeds, sweep_html};
pub use verdicts::{judged, verdict_mark};

/// Whose report it is.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Of the scenario.
    pub name: &'a str,
    /// The scenario as somebody wrote it, if that was kept.
    pub written: Option<&'a str>,
    /// The scenario with every default.
    pub normalised: &'a str,
    /// The object of docs/design/contract.md 5.
    pub summary: &'a Json,
}
