//! Tries that leave nothing.
#![expect(unsafe_code, reason = "a system call that may also take away files from a thread")]

use std::thread;

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

/// Does something in a network namespace without a name, which goes with the end of it.
///
/// # Errors
/// If there may be no namespace.
pub fn in_own_network<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Errno> {
    let inside = || {
        // SAFETY: open files stay shared, which is all that may be unsafe about the call.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
        Ok(work())
    };
    thread::scope(|scope| match scope.spawn(inside).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
