//! Units, wire formats and control laws: what packets mean and what each party decides.
//!
//! Pure integer state machines that the simulator, user space and the kernel (as BPF) all run.
//! Nothing in this crate knows the time, allocates, uses floats or can panic.
//!
//! - [`units`]: time, data and rates as types; rounding and the text of units.
//! - [`wire`]: headers as bytes.
//! - [`law`]: one file or folder per protocol, with up to three parts (link, sender, echo).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod law;
pub mod units;
pub mod wire;
