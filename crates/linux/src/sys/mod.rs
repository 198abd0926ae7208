//! Thin, safe wrappers of what the kernel offers. The only modules with `unsafe` lie here.

pub mod attachment;
pub mod bpf;
pub mod cgroup;
pub mod command;
pub mod diag;
pub mod netns;
pub mod offload;
pub mod packet;
pub mod probe;
pub mod process;
pub mod qdisc;
pub mod schedule;
pub mod tcp;
