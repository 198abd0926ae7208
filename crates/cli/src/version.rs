//! The version that results state.

/// Number, commit and schema: what a result depends on.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CONGESTLAB_COMMIT"), ")");
