//! The facts about a machine on other systems, as the standard library tells them. Nothing but comfort is missing.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Nobody raises the flag: Ctrl-C ends the process at once, and what is on disk is whole as ever.
pub(super) fn listen(_flag: &Arc<AtomicBool>) -> io::Result<()> {
    Ok(())
}

/// 0: not measured.
pub(super) fn process_seconds() -> f64 {
    0.0
}

/// 0: not measured.
pub(super) fn thread_seconds() -> f64 {
    0.0
}

pub(super) fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or("unknown".into())
}

/// No limit that is known.
pub(super) fn address_space() -> Option<u64> {
    None
}

/// 0: it does not say.
pub(super) fn columns() -> u16 {
    0
}

/// No child ends by a signal.
pub(super) fn signal(_status: ExitStatus) -> Option<i32> {
    None
}
