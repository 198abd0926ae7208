//! Thin, safe wrappers of the kernel's interfaces. Only modules here have `unsafe` code.

pub mod attachment;
pub mod bpf;
pub mod bql;
pub mod cgroup;
pub mod command;
pub mod diag;
pub mod links;
pub mod netns;
pub mod offload;
pub mod packet;
pub(crate) mod privilege;
pub mod probe;
pub mod process;
pub mod qdisc;
pub mod schedule;
pub mod tcp;
pub mod udp;
pub mod user;
