//! The language of scenario files: from a text to a model that the simulator runs.

pub(crate) mod capacity;
pub(crate) mod classes;
pub(crate) mod estimator;
pub(crate) mod file;
pub(crate) mod impairments;
pub mod law;
pub(crate) mod laws;
pub(crate) mod load;
pub(crate) mod measure;
pub(crate) mod medium;
pub mod memory;
pub(crate) mod queue;
pub(crate) mod resolve;
pub(crate) mod scenario;
pub mod schema;
pub(crate) mod settings;
pub mod wanted;
pub(crate) mod xcp_i;
