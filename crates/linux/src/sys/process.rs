//! Calls of the kernel about processes that the standard library does not offer.
#![expect(unsafe_code, reason = "dispositions of signals")]

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, capabilities};

use crate::error::{Context, Error, Result};

/// Ignores the signals with which people end a command, for as long as this process lives.
pub fn ignore_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
        // SAFETY: SIG_IGN runs no code of ours, and these are signals that may be ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// The command is killed when the thread that starts it ends, also by `kill -9` of its process.
pub(crate) fn die_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec one system call is made, and nothing is allocated.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// Returns true if a process with this number is there and is a congestlab, or is this one.
pub(crate) fn is_ours(pid: u32) -> bool {
    let name = std::fs::read(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.starts_with(b"congestlab") || pid == std::process::id())
}

/// Checks that this process may change the network.
///
/// # Errors
/// Returns [`Error::Missing`] without the capabilities.
pub fn require_privilege() -> Result<()> {
    let have = capabilities(None).context(|| "can not ask for capabilities".into())?.effective;
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if have.contains(needed) {
        return Ok(());
    }
    Err(Error::missing(
        "changing the network needs the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN",
        "run as root, such as with sudo",
    ))
}
