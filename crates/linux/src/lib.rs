//! Puts the laws and machines of `core` and `net` on real packets.
//!
//! Everything here changes or measures a running Linux: namespaces and links ([`sys`]), the laws as
//! BPF programs, links in user space, and labs that run a scenario with real TCP. What changes the
//! system undoes it, or says how to.

pub mod doctor;
mod encoding;
pub mod error;
pub mod host;
mod interface;
pub mod lab;
pub mod link;
pub mod router;
pub mod supervisor;
pub mod sys;

pub use error::Error;
