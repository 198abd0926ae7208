//! Questions to a TCP socket by ioctl.
#![expect(unsafe_code, reason = "an ioctl that fills in an integer")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Returns the number of bytes written that the peer has not acknowledged (SIOCOUTQ, tcp(7)).
///
/// # Errors
/// If the socket is not a TCP socket.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ is SIOCOUTQ and writes one integer, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes.unsigned_abs()) }
}
