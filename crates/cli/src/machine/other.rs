//! The facts about a machine on other systems, as the standard library tells them. Nothing but comfort is missing.

use std::hash::{BuildHasher as _, RandomState};
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

/// Bits that nobody can guess: the keys of the standard library's hash tables are the system's random numbers, and it keeps
/// them to itself.
pub(super) fn secret() -> io::Result<u128> {
    let half = |which: u8| u128::from(RandomState::new().hash_one(which));
    Ok(half(0) << 64 | half(1))
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
