//! What runs gave: results, their folders and tables, sweeps, the folders of papers, the trial of a law.

mod columns;
pub mod folder;
pub(crate) mod origin;
pub mod paper;
pub(crate) mod records;
pub mod result;
pub(crate) mod standing;
pub mod store;
pub mod sweep;
pub mod table;
pub(crate) mod tables;
pub mod trial;
