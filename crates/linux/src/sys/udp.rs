//! Options of UDP sockets that neither the standard library nor `rustix` has.

use std::io;
use std::os::fd::BorrowedFd;

use super::tcp::set;

/// Sends datagrams over IPv4 without a checksum, or with one again (`SO_NO_CHECK`, socket(7)).
///
/// # Errors
/// If the kernel refuses.
pub fn set_unsummed(socket: BorrowedFd<'_>, is_unsummed: bool) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, is_unsummed.into())
}

/// Makes datagrams of so many bytes of what is sent at once, 0: none (`UDP_SEGMENT`, udp(7)).
///
/// # Errors
/// If the kernel is older than Linux 4.18.
pub fn set_segment(socket: BorrowedFd<'_>, bytes: u16) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes.into())
}
