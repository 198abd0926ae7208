//! What is asked of results: the points of a sweep, metrics, claims and their verdicts, figures.

pub mod claims;
pub mod fairness;
pub mod figure;
pub(crate) mod grid;
pub mod metric;
pub(crate) mod observation;
pub mod seeds;
pub mod sum;
pub(crate) mod tolerances;
