//! Sans-IO elements: queues, links, TCP-like sender and receiver.
//!
//! The machines that queue, pace, acknowledge and retransmit, and that carry the decisions of the
//! laws in `congestlab-core`. No clock, no thread, no I/O: whoever drives them passes the time in.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod errors;
pub mod estimator;
mod flows;
pub mod impairments;
pub mod medium;
pub mod packet;
pub mod port;
pub mod queue;
pub mod random;
pub mod service;
pub mod source;
pub mod stats;
pub mod tcp;
pub mod trace;
pub mod xcp_i;
