//! How congestion headers travel.

use serde::Serialize;

/// Where packets carry the congestion header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// A TCP option ([`congestlab_core::wire::option`]).
    #[default]
    Option,
    /// A protocol of its own between IP and TCP ([`congestlab_core::wire::xcp`], version 3), with peers that
    /// do so too.
    Shim,
}
