//! Questions to TCP sockets, and options of theirs, that `rustix` does not have.
#![expect(unsafe_code, reason = "ioctl and socket options of one integer")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;

use super::diag::State;

/// Returns the number of bytes written that the peer has not acknowledged (SIOCOUTQ, tcp(7)). A FIN counts as one.
///
/// # Errors
/// If the socket is not a TCP socket.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: TIOCOUTQ is SIOCOUTQ and writes one integer, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes.unsigned_abs()) }
}

/// Returns true if the connection is over: it ended in both directions and all is acknowledged, or it broke.
///
/// # Errors
/// If the socket is not a TCP socket.
pub fn is_over(socket: BorrowedFd<'_>) -> io::Result<bool> {
    // The state is the first byte of struct tcp_info, and the kernel writes no more than it is asked for.
    let (mut state, mut size) = (0u8, 1 as libc::socklen_t);
    // SAFETY: the kernel writes at most `size` bytes to `state`; both live on.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &raw mut size,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(state == State::Close as u8) }
}

/// Lets the socket have addresses that are not this machine's (`IP_TRANSPARENT`, ip(7)).
///
/// # Errors
/// If CAP_NET_ADMIN is missing.
pub fn set_transparent(socket: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<()> {
    match is_ipv6 {
        true => set(socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1),
        false => set(socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1),
    }
}

/// Limits what may be written before it can be sent (`TCP_NOTSENT_LOWAT`).
///
/// # Errors
/// If the socket is not a TCP socket.
pub fn set_unsent_max(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes as c_int)
}

/// Bounds the window that a socket advertises (`TCP_WINDOW_CLAMP`).
///
/// # Errors
/// If the socket is not a TCP socket.
pub fn clamp_window(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes.min(1 << 30) as c_int)
}

pub(super) fn set(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads one integer, which lives until the call returns.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
