//! Whole Ethernet frames, many in one call, by AF_PACKET sockets (packet(7)).
//!
//! Every frame carries a `struct virtio_net_hdr` (PACKET_VNET_HDR), in which the kernel says whether the
//! transport checksum is still to be filled in and whether the frame is one packet or many, and hears the
//! same when it is sent on. A VLAN tag, which the kernel takes out of the frame, is put back.
#![expect(unsafe_code, reason = "calls of the kernel with buffers, and structures that it fills")]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, c_uint, c_void};

use crate::error::{Context, Error, Result};

/// Most frames that one call receives or sends.
pub const BATCH: usize = 64;
/// Bytes that may wait for us at an interface, as the kernel counts them (about 2.3 kB for a frame of
/// 1,500): 10,000 frames, more than a tenth of a second of the fastest that a link can forward.
const BUFFER: c_int = 24 << 20;

/// Length of `struct virtio_net_hdr` (linux/virtio_net.h): flags, segmentation, header length,
/// segment size, where the checksum begins and where in that it is stored.
const VNET: usize = 10;
const VNET_NEEDS_CHECKSUM: u8 = 1;
/// Length of a VLAN tag.
const TAG: usize = 4;
/// Length of the two addresses before the tag.
const ADDRESSES: usize = 12;

/// A frame, in memory that can be filled again.
#[derive(Debug)]
pub struct Frame {
    /// Room for a tag, `struct virtio_net_hdr`, the frame.
    buffer: Box<[u8]>,
    /// Where `virtio_net_hdr` begins: [`TAG`], or 0 if a tag was put back.
    begin: usize,
    end: usize,
    stamp: u64,
    is_cut: bool,
}

impl Frame {
    /// Makes room for a frame of up to `capacity` bytes, tags included.
    pub fn new(capacity: usize) -> Self {
        let buffer = vec![0; TAG + VNET + capacity].into_boxed_slice();
        Self { buffer, begin: TAG, end: TAG + VNET, stamp: 0, is_cut: false }
    }

    /// Returns the frame, from its destination address on.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.begin + VNET..self.end]
    }

    /// Returns the frame to be changed, from its destination address on.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.begin + VNET..self.end]
    }

    /// Copies a frame whose checksums are right into this one.
    pub fn fill(&mut self, frame: &[u8]) {
        self.buffer[TAG..TAG + VNET].fill(0);
        self.buffer[TAG + VNET..][..frame.len()].copy_from_slice(frame);
        (self.begin, self.end) = (TAG, TAG + VNET + frame.len());
    }

    /// Returns the time at which the kernel received the frame, ns of the wall clock.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Returns true if the transport checksum is only that of the pseudo header; the receiver fills in the
    /// rest, or does not care.
    pub fn has_partial_checksum(&self) -> bool {
        self.buffer[self.begin] & VNET_NEEDS_CHECKSUM != 0
    }

    /// Returns true if the frame holds several packets (segmentation offload).
    pub fn is_merged(&self) -> bool {
        self.buffer[self.begin + 1] != 0
    }

    /// Returns true if the frame was larger than the room, and cut.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Takes note of a frame that a call received into the buffer.
    fn set(&mut self, length: usize, is_cut: bool, stamp: u64, tag: Option<[u8; TAG]>) {
        (self.begin, self.end) = (TAG, (TAG + length).min(self.buffer.len()));
        (self.stamp, self.is_cut) = (stamp, is_cut);
        if let Some(tag) = tag
            && self.end >= TAG + VNET + ADDRESSES
        {
            self.buffer.copy_within(TAG..TAG + VNET + ADDRESSES, 0);
            self.buffer[VNET + ADDRESSES..][..TAG].copy_from_slice(&tag);
            self.begin = 0;
            if self.has_partial_checksum() {
                let start = u16::from_ne_bytes([self.buffer[6], self.buffer[7]]) + TAG as u16;
                self.buffer[6..8].copy_from_slice(&start.to_ne_bytes());
            }
        }
    }
}

/// A packet socket at an interface: receives the frames that come in, and sends frames out.
#[derive(Debug)]
pub struct Socket {
    file: OwnedFd,
}

/// Room for the control messages of a frame: a time stamp and `tpacket_auxdata`.
// SAFETY: CMSG_SPACE only computes.
const CONTROL: usize = unsafe {
    libc::CMSG_SPACE(size_of::<libc::timespec>() as c_uint)
        + libc::CMSG_SPACE(size_of::<libc::tpacket_auxdata>() as c_uint)
} as usize
    / 8;

impl Socket {
    /// Listens to all frames that come in at the interface with this index, in the network namespace of the thread.
    ///
    /// # Errors
    /// If the privilege is missing, or there is no such interface.
    pub fn open(interface: u32) -> Result<Self> {
        // SAFETY: no pointers; a descriptor that nobody else has.
        let file = unsafe {
            let descriptor = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            if descriptor < 0 {
                let error = io::Error::last_os_error();
                return Err(match error.raw_os_error() {
                    Some(libc::EPERM) => Error::missing(
                        format!("can not open a packet socket: {error}"),
                        "run as root, or with CAP_NET_RAW",
                    ),
                    _ => Error::Io { what: "can not open a packet socket".into(), source: error },
                });
            }
            OwnedFd::from_raw_fd(descriptor)
        };
        let socket = Self { file };
        let option = |level, name, value, what: &str| {
            socket.set(level, name, value).context(|| format!("can not set {what} on a packet socket"))
        };
        option(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING")?;
        option(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1, "PACKET_VNET_HDR")?;
        option(libc::SOL_PACKET, libc::PACKET_AUXDATA, 1, "PACKET_AUXDATA")?;
        option(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS")?;
        option(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER, "SO_RCVBUFFORCE")?;
        option(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER, "SO_SNDBUFFORCE")?;
        // SAFETY: all zeros is a valid address; the length is that of the structure.
        let bound = unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = interface as c_int;
            let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            libc::bind(socket.file.as_raw_fd(), (&raw const address).cast(), length)
        };
        if bound < 0 {
            return Err(io::Error::last_os_error())
                .context(|| format!("can not listen at the interface with index {interface}"));
        }
        Ok(socket)
    }

    fn set(&self, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
        // SAFETY: the kernel reads an int of that size.
        let result = unsafe {
            let length = size_of::<c_int>() as libc::socklen_t;
            libc::setsockopt(self.file.as_raw_fd(), level, name, (&raw const value).cast(), length)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Fills `frames`, from the first on, with received frames and returns their number; 0 if none has come.
    ///
    /// # Errors
    /// Returns the interface's error, such as that it is down.
    pub fn receive(&self, frames: &mut [Frame]) -> io::Result<usize> {
        let count = frames.len().min(BATCH);
        let mut control = [[0u64; CONTROL]; BATCH];
        // SAFETY: structures of integers and pointers, for which zeros are valid.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { zeroed() };
        for (i, frame) in frames[..count].iter_mut().enumerate() {
            let room = &mut frame.buffer[TAG..];
            parts[i] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            let header = &mut messages[i].msg_hdr;
            (header.msg_iov, header.msg_iovlen) = (&raw mut parts[i], 1);
            header.msg_control = control[i].as_mut_ptr().cast();
            header.msg_controllen = 8 * CONTROL;
        }
        // SAFETY: every message points to memory of the stated lengths that lives until the end of
        // this function: its part of `parts` and `control`, and the buffer of its frame.
        let received = unsafe {
            let descriptor = self.file.as_raw_fd();
            libc::recvmmsg(
                descriptor,
                messages.as_mut_ptr(),
                count as c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        if received < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        for (frame, message) in frames.iter_mut().zip(&messages[..received as usize]) {
            let (stamp, tag) = read_control(&message.msg_hdr);
            let is_cut = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            frame.set(message.msg_len as usize, is_cut, stamp, tag);
        }
        Ok(received as usize)
    }

    /// Sends frames, at most the first [`BATCH`], and returns how many were sent.
    ///
    /// # Errors
    /// Returns the error of the first frame: `WouldBlock` if it may be sent later.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a Frame>) -> io::Result<usize> {
        // SAFETY: structures of integers and pointers, for which zeros are valid.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { zeroed() };
        let mut count = 0;
        for (i, frame) in frames.take(BATCH).enumerate() {
            let bytes = &frame.buffer[frame.begin..frame.end];
            parts[i] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            (messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen) = (&raw mut parts[i], 1);
            count = i + 1;
        }
        // SAFETY: as in `receive`; the kernel only reads the frames, which the caller lends for 'a.
        let sent = unsafe {
            let descriptor = self.file.as_raw_fd();
            libc::sendmmsg(descriptor, messages.as_mut_ptr(), count as c_uint, libc::MSG_DONTWAIT)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }

    /// Returns the number of frames that the kernel dropped since the last call, because earlier ones were not fetched.
    ///
    /// # Errors
    /// If the kernel refuses, for which no reason is known.
    pub fn drops(&self) -> io::Result<u64> {
        // SAFETY: the kernel fills a structure of integers of at most that length.
        unsafe {
            let mut counts: libc::tpacket_stats = zeroed();
            let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
            let (descriptor, counts_at) = (self.file.as_raw_fd(), (&raw mut counts).cast::<c_void>());
            match libc::getsockopt(
                descriptor,
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counts_at,
                &raw mut length,
            ) {
                0 => Ok(counts.tp_drops.into()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Time stamp in nanoseconds (0 if there is none) and VLAN tag of a received frame.
fn read_control(header: &libc::msghdr) -> (u64, Option<[u8; TAG]>) {
    let (mut stamp, mut tag) = (0, None);
    // SAFETY: the kernel has filled `msg_control` with `msg_controllen` bytes of control messages,
    // which the CMSG functions walk within these bounds; their data need not be aligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    stamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    let about = data.cast::<libc::tpacket_auxdata>().read_unaligned();
                    if about.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                        let has_type = about.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                        let ethertype = if has_type { about.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
                        let ([a, b], [c, d]) = (ethertype.to_be_bytes(), about.tp_vlan_tci.to_be_bytes());
                        tag = Some([a, b, c, d]);
                    }
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    (stamp, tag)
}
