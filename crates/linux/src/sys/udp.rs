//! Options of UDP sockets that neither the standard library nor `rustix` has.

#![expect(unsafe_code, reason = "neither has the times at which datagrams come")]

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd as _, BorrowedFd};

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

/// Has the kernel say with each datagram when it came (`SO_TIMESTAMPNS`, socket(7)), for [`receive`].
///
/// # Errors
/// If the kernel refuses.
pub fn set_stamped(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Receives a datagram without waiting: its length, who sent it, and when it came, ns of the wall clock; 0 if the kernel does not say
/// that.
///
/// # Errors
/// `WouldBlock` if there is none, or what the kernel refuses.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, SocketAddrV4, u64)> {
    // Aligned as control messages must be.
    let mut control = [0u64; 16];
    // SAFETY: zeros are valid for both, and the kernel fills them within the lengths that stand there.
    let (mut from, mut message): (libc::sockaddr_in, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = size_of_val(&from) as _;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: all that the message points to lives on, and is as long as it says.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut stamp = 0;
    // SAFETY: the macros walk what the kernel has written into `control`, and a time is read where one says that it is.
    unsafe {
        let mut each = libc::CMSG_FIRSTHDR(&raw const message);
        while !each.is_null() {
            if ((*each).cmsg_level, (*each).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time: libc::timespec = libc::CMSG_DATA(each).cast::<libc::timespec>().read_unaligned();
                stamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            }
            each = libc::CMSG_NXTHDR(&raw const message, each);
        }
    }
    let address = Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr));
    Ok((length as usize, SocketAddrV4::new(address, u16::from_be(from.sin_port)), stamp))
}
