//! Runs very many links and hosts against a virtual clock, the same way every time.
//!
//! [`run`] turns a [`model::Model`] into an [`outcome::Outcome`]. Two engines drive the same
//! elements of `congestlab-net`: the window engine ([`window`]), which executes entity by entity
//! inside conservative time windows, and a small globally ordered one ([`reference`]), its oracle.
//! Nothing here knows wall time or global state, and nothing iterates an unordered map.
#![forbid(unsafe_code)]

pub mod model;
pub mod outcome;

use std::sync::atomic::AtomicBool;

use model::Model;
use outcome::Outcome;

/// Which machine runs a model. All give the same outcome, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Window-batched on `threads` threads; the window is divided by `divisor` (1, 2, 4, ...).
    Window {
        /// Threads to use, at least 1.
        threads: usize,
        /// Divides the widest window that the model allows.
        divisor: u32,
    },
    /// One globally ordered event queue.
    Reference,
}

/// Runs the model. `stop` ends it early; the outcome is then marked incomplete. `progress` is told
/// the simulated time now and then.
pub fn run(_model: &Model, _engine: Engine, _stop: &AtomicBool, _progress: &mut dyn FnMut(u64)) -> Outcome {
    Outcome::default()
}
