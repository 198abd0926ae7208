//! What results look like: charts, reports, packets, and the story of one flow.

pub mod capture;
pub mod chart;
pub mod compare;
pub mod diff;
pub mod explain;
pub mod export;
pub mod measured;
pub mod qlog;
pub mod recording;
pub mod report;
pub mod style;
