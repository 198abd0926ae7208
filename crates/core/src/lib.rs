//! Units, wire formats and control laws: what packets mean and what each party decides.
//!
//! Pure integer state machines that the simulator, user space and the kernel (as BPF) all run.
//! Nothing in this crate knows the time, allocates, uses floats or can panic.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod law;
pub mod units;
