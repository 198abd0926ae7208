//! Trials of kernel features that leave no trace.
#![expect(unsafe_code, reason = "a system call that may also take away files from a thread")]

use std::thread;

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

/// Runs `work` in a new network namespace without a name, which ends with it, and returns its result.
///
/// # Errors
/// If the kernel does not allow a new namespace.
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
