//! TCP sockets as the kernel sees them: sock_diag(7), the interface behind `ss`.
//!
//! A dump is two netlink messages for each address family, whatever the number of sockets: cheap enough for
//! a sampler. It takes only calls that `rustix` has already, so nothing here is unsafe.
//!
//! The values that BPF programs keep about a socket (`BPF_MAP_TYPE_SK_STORAGE`) come with the same dump.

use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::{fmt, io};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use serde::Serialize;

use crate::error::{Context, Error, Result};

// linux/netlink.h
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
/// The two upper bits of an attribute's type are flags.
const NLA_TYPE_MASK: u16 = 0x3fff;
/// Length of nlmsghdr.
const HEADER: usize = 16;

// linux/sock_diag.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SOCK_DESTROY: u16 = 21;
const STORAGE_REQUEST_MAP_FD: u16 = 1;
const STORAGE: u16 = 1;
const STORAGE_MAP_VALUE: u16 = 3;

// linux/inet_diag.h
const INET_DIAG_REQ_SK_BPF_STORAGES: u16 = 2;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SK_BPF_STORAGES: u16 = 20;
const INET_DIAG_CGROUP_ID: u16 = 21;
/// Length of inet_diag_sockid, with which a socket is named.
const ID: usize = 48;
/// Length of inet_diag_msg, before its attributes.
const MESSAGE: usize = 72;

/// The kernel fills at most 32 KiB at once (`netlink_recvmsg`).
const BUFFER: usize = 64 << 10;

/// State of a connection (net/tcp_states.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The connection is open.
    Established = 1,
    /// A SYN is sent.
    SynSent,
    /// A SYN is received and answered.
    SynReceived,
    /// Closed here; the FIN is not acknowledged.
    FinWait1,
    /// Closed here; the peer's FIN is awaited.
    FinWait2,
    /// Closed by both sides; late segments are awaited.
    TimeWait,
    /// Not connected.
    Close,
    /// Closed by the peer.
    CloseWait,
    /// Closed by both sides; the last ACK is awaited.
    LastAck,
    /// Listening for connections.
    Listen,
    /// Closed by both sides at once.
    Closing,
    /// A request for a connection, before it has a socket (Linux).
    NewSynReceived,
    /// Bound to a port without a connection (Linux).
    BoundInactive,
}

impl State {
    const ALL: [Self; 13] = [
        Self::Established,
        Self::SynSent,
        Self::SynReceived,
        Self::FinWait1,
        Self::FinWait2,
        Self::TimeWait,
        Self::Close,
        Self::CloseWait,
        Self::LastAck,
        Self::Listen,
        Self::Closing,
        Self::NewSynReceived,
        Self::BoundInactive,
    ];
}

/// A set of states, to select sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(u32);

impl States {
    /// All states, with that of listeners.
    pub const ALL: Self = Self(u32::MAX);
    /// States in which data may be on the way to the peer: established, or closing and not all acknowledged.
    pub const SENDING: Self =
        Self::of(&[State::Established, State::CloseWait, State::FinWait1, State::LastAck, State::Closing]);

    /// Makes a set of these states.
    pub const fn of(states: &[State]) -> Self {
        let (mut bits, mut next) = (0, 0);
        // A constant function has no iterators.
        while next < states.len() {
            bits |= 1 << states[next] as u32;
            next += 1;
        }
        Self(bits)
    }
}

/// A TCP socket.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Socket {
    /// State of the connection.
    pub state: State,
    /// Local address and port. An IPv4 address of an IPv6 socket is written as IPv4.
    pub local: SocketAddr,
    /// The peer's address and port; port 0 if there is none.
    pub remote: SocketAddr,
    /// Number that no other socket has until the next boot.
    pub cookie: u64,
    /// Inode of the file, as in /proc/PID/fd; 0 without a file, such as after close().
    pub inode: u32,
    /// User id of the owner.
    pub uid: u32,
    /// Bytes that the application has not read yet.
    pub receive_queue: u32,
    /// Bytes that the application wrote and the peer has not acknowledged.
    pub send_queue: u32,
    /// Id of the control group of the process that made it.
    pub cgroup: Option<u64>,
    /// Name of its congestion control; empty in states without one.
    pub congestion: String,
    /// Counts and estimates of TCP; absent in states without a connection.
    pub info: Option<TcpInfo>,
    /// Value that BPF programs keep about it, if that was asked for and there is one.
    pub storage: Option<Vec<u8>>,
    #[serde(skip)]
    id: [u8; ID],
    #[serde(skip)]
    family: u8,
}

/// Fields of `struct tcp_info` (linux/tcp.h), and their offsets: kernels append to it.
macro_rules! tcp_info {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $field:ident,)+) => {
        /// Counts and estimates of TCP for a connection. A field that the kernel does not have yet is 0.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct TcpInfo {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        impl TcpInfo {
            fn parse(bytes: &[u8]) -> Self {
                Self { $($name: <$type>::from_ne_bytes(array(bytes, offset_of!(libc::tcp_info, $field))),)+ }
            }
        }
    };
}

tcp_info! {
    /// State of the connection, as a number of [`State`].
    state: u8 = tcpi_state,
    /// State of loss recovery: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    ca_state: u8 = tcpi_ca_state,
    /// Timeouts in a row of the first unacknowledged segment.
    retransmits: u8 = tcpi_retransmits,
    /// Doublings of the timeout.
    backoff: u8 = tcpi_backoff,
    /// Options in use, as bits: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN.
    options: u8 = tcpi_options,
    /// Retransmission timeout, microseconds.
    rto: u32 = tcpi_rto,
    /// Payload of a sent segment, bytes.
    snd_mss: u32 = tcpi_snd_mss,
    /// Payload of a received segment, bytes.
    rcv_mss: u32 = tcpi_rcv_mss,
    /// Segments sent and not acknowledged.
    unacked: u32 = tcpi_unacked,
    /// Unacknowledged segments that are selectively acknowledged.
    sacked: u32 = tcpi_sacked,
    /// Unacknowledged segments that are thought to be lost.
    lost: u32 = tcpi_lost,
    /// Unacknowledged segments that were sent again.
    retrans: u32 = tcpi_retrans,
    /// Largest packet on the path (path MTU), bytes.
    pmtu: u32 = tcpi_pmtu,
    /// Smoothed round-trip time, microseconds.
    rtt: u32 = tcpi_rtt,
    /// Mean deviation of the round-trip time, microseconds.
    rttvar: u32 = tcpi_rttvar,
    /// Slow-start threshold, segments; 2^31 - 1 before the first loss.
    snd_ssthresh: u32 = tcpi_snd_ssthresh,
    /// Congestion window, segments.
    snd_cwnd: u32 = tcpi_snd_cwnd,
    /// The receiver's estimate of the round-trip time, microseconds.
    rcv_rtt: u32 = tcpi_rcv_rtt,
    /// The receiver's estimate of the buffer that it needs, bytes.
    rcv_space: u32 = tcpi_rcv_space,
    /// Segments sent again since the beginning.
    total_retrans: u32 = tcpi_total_retrans,
    /// Pacing rate, B/s; 2^64 - 1 without pacing.
    pacing_rate: u64 = tcpi_pacing_rate,
    /// Limit of the pacing rate, B/s.
    max_pacing_rate: u64 = tcpi_max_pacing_rate,
    /// Bytes of payload that the peer acknowledged since the beginning; SYN and FIN count as one each.
    bytes_acked: u64 = tcpi_bytes_acked,
    /// Bytes of payload received in order since the beginning; a FIN counts as one.
    bytes_received: u64 = tcpi_bytes_received,
    /// Segments sent since the beginning, with pure ACKs and retransmissions.
    segs_out: u32 = tcpi_segs_out,
    /// Segments received since the beginning.
    segs_in: u32 = tcpi_segs_in,
    /// Bytes that are written and not yet sent.
    notsent_bytes: u32 = tcpi_notsent_bytes,
    /// Smallest recent round-trip time, microseconds; 2^32 - 1 if none was measured.
    min_rtt: u32 = tcpi_min_rtt,
    /// Segments with data received since the beginning.
    data_segs_in: u32 = tcpi_data_segs_in,
    /// Segments with data sent since the beginning, with retransmissions.
    data_segs_out: u32 = tcpi_data_segs_out,
    /// Recent rate of delivery to the peer, B/s.
    delivery_rate: u64 = tcpi_delivery_rate,
    /// Time with data to send, microseconds.
    busy_time: u64 = tcpi_busy_time,
    /// Part of that time in which the receiver's window was the limit, microseconds.
    rwnd_limited: u64 = tcpi_rwnd_limited,
    /// Part of that time in which the send buffer was the limit, microseconds.
    sndbuf_limited: u64 = tcpi_sndbuf_limited,
    /// Segments delivered since the beginning, with spurious retransmissions.
    delivered: u32 = tcpi_delivered,
    /// Delivered segments with the ECN mark.
    delivered_ce: u32 = tcpi_delivered_ce,
    /// Bytes of payload sent since the beginning, with retransmissions.
    bytes_sent: u64 = tcpi_bytes_sent,
    /// Bytes of payload sent again since the beginning.
    bytes_retrans: u64 = tcpi_bytes_retrans,
    /// Duplicates that the peer reported: spurious retransmissions.
    dsack_dups: u32 = tcpi_dsack_dups,
    /// Reorderings seen.
    reord_seen: u32 = tcpi_reord_seen,
    /// Segments received out of order.
    rcv_ooopack: u32 = tcpi_rcv_ooopack,
    /// Window that the peer offers, bytes.
    snd_wnd: u32 = tcpi_snd_wnd,
    /// Window that is offered to the peer, bytes.
    rcv_wnd: u32 = tcpi_rcv_wnd,
    /// Timeouts since the beginning (Linux 6.7 and later).
    total_rto: u16 = tcpi_total_rto,
}

/// A reader of the TCP sockets of one network namespace: that of the thread which opened it.
pub struct Diag {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

impl fmt::Debug for Diag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diag").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Diag {
    /// Opens a reader for the namespace in which the calling thread is now, wherever it is used later.
    ///
    /// # Errors
    /// If the kernel has no sock_diag.
    pub fn open() -> Result<Self> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG));
        match socket {
            Ok(socket) => Ok(Self { socket, buffer: vec![0; BUFFER], sequence: 0 }),
            Err(Errno::PROTONOSUPPORT | Errno::NOSYS) => Err(Error::missing(
                "the kernel has no sock_diag",
                "a kernel with CONFIG_INET_DIAG, or `modprobe inet_diag`",
            )),
            Err(error) => Err(error).context(|| "can not open a netlink socket".into()),
        }
    }

    /// Returns all TCP sockets in one of the states, IPv4 before IPv6, otherwise in the kernel's order.
    /// `storage` is the file of a map of type `BPF_MAP_TYPE_SK_STORAGE`; each socket then comes with its value
    /// in it.
    ///
    /// # Errors
    /// If the kernel does not list its sockets, or CAP_BPF is missing for the storage.
    pub fn sockets(&mut self, states: States, storage: Option<BorrowedFd<'_>>) -> Result<Vec<Socket>> {
        let mut sockets = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut request = request(family as u8, states.0, &[0; ID]);
            if let Some(map) = storage {
                let fd = map.as_raw_fd().to_ne_bytes();
                attribute(&mut request, INET_DIAG_REQ_SK_BPF_STORAGES, &nested(STORAGE_REQUEST_MAP_FD, &fd));
            }
            self.send(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request).context(dump_failed)?;
            self.receive(&mut |message| sockets.extend(Socket::parse(message))).context(dump_failed)?;
        }
        Ok(sockets)
    }

    /// Ends the connection, or the listening, of every socket in these states for which `is_meant` returns
    /// true: its owner gets ECONNABORTED, its peer a RST. Returns their number.
    ///
    /// # Errors
    /// If CAP_NET_ADMIN or the kernel's CONFIG_INET_DIAG_DESTROY is missing.
    pub fn destroy(&mut self, states: States, is_meant: impl Fn(&Socket) -> bool) -> Result<usize> {
        let mut count = 0;
        for socket in self.sockets(states, None)?.iter().filter(|socket| is_meant(socket)) {
            let request = request(socket.family, States::ALL.0, &socket.id);
            let ended = self.send(SOCK_DESTROY, NLM_F_ACK, &request).and_then(|()| self.receive(&mut |_| {}));
            match ended.map_err(|error| Errno::from_io_error(&error)) {
                Ok(()) => count += 1,
                // It ended by itself meanwhile.
                Err(Some(Errno::NOENT)) => {}
                Err(Some(Errno::PERM)) => {
                    return Err(Error::missing(
                        "may not end other processes' connections",
                        "run as root, or with CAP_NET_ADMIN",
                    ));
                }
                Err(Some(Errno::OPNOTSUPP)) => {
                    return Err(Error::missing(
                        "the kernel can not end connections from outside",
                        "a kernel with CONFIG_INET_DIAG_DESTROY",
                    ));
                }
                Err(error) => {
                    let error = error.map_or_else(invalid, io::Error::from);
                    return Err(error).context(|| format!("can not end the connection {}", socket.local));
                }
            }
        }
        Ok(count)
    }

    fn send(&mut self, kind: u16, flags: u16, request: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut message = Vec::with_capacity(HEADER + request.len());
        message.extend(((HEADER + request.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(request);
        // To the kernel, whose address is that of an unconnected netlink socket.
        retry_on_intr(|| rustix::net::send(&self.socket, &message, SendFlags::empty()))?;
        Ok(())
    }

    /// Calls `each` with every message until the kernel is done or says an error.
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        loop {
            let (_, length) =
                retry_on_intr(|| rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::TRUNC))?;
            let mut rest = self.buffer.get(..length).ok_or_else(invalid)?;
            while rest.len() >= HEADER {
                let size = u32::from_ne_bytes(array(rest, 0)) as usize;
                let kind = u16::from_ne_bytes(array(rest, 4));
                let body = rest.get(HEADER..size).ok_or_else(invalid)?;
                let is_ours = u32::from_ne_bytes(array(rest, 8)) == self.sequence;
                match kind {
                    _ if !is_ours => {}
                    // A dump ends with the error that it met, if any.
                    NLMSG_DONE | NLMSG_ERROR => {
                        return match i32::from_ne_bytes(array(body, 0)) {
                            0 => Ok(()),
                            error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
                        };
                    }
                    _ => each(body),
                }
                rest = rest.get(align(size)..).unwrap_or_default();
            }
        }
    }
}

impl Socket {
    /// An inet_diag_msg with its attributes.
    fn parse(message: &[u8]) -> Option<Self> {
        let (head, attributes) = message.split_at_checked(MESSAGE)?;
        let number = |at| u32::from_ne_bytes(array(head, at));
        let address = |port: usize, host: usize| {
            let ip = match i32::from(head[0]) {
                libc::AF_INET => IpAddr::V4(Ipv4Addr::from(array(head, host))),
                _ => IpAddr::V6(Ipv6Addr::from(array(head, host))).to_canonical(),
            };
            SocketAddr::new(ip, u16::from_be_bytes(array(head, port)))
        };
        let mut socket = Self {
            state: State::ALL.into_iter().find(|&state| state as u8 == head[1])?,
            local: address(4, 8),
            remote: address(6, 24),
            cookie: u64::from(number(44)) | u64::from(number(48)) << 32,
            receive_queue: number(56),
            send_queue: number(60),
            uid: number(64),
            inode: number(68),
            cgroup: None,
            congestion: String::new(),
            info: None,
            storage: None,
            id: array(head, 4),
            family: head[0],
        };
        for (kind, value) in Attributes(attributes) {
            match kind {
                INET_DIAG_INFO => socket.info = Some(TcpInfo::parse(value)),
                INET_DIAG_CONG => {
                    let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                    socket.congestion = String::from_utf8_lossy(name).into_owned();
                }
                INET_DIAG_CGROUP_ID => socket.cgroup = Some(u64::from_ne_bytes(array(value, 0))),
                INET_DIAG_SK_BPF_STORAGES => {
                    let storages = Attributes(value).filter(|(kind, _)| *kind == STORAGE);
                    let values = storages.flat_map(|(_, storage)| Attributes(storage));
                    let mut values = values.filter(|(kind, _)| *kind == STORAGE_MAP_VALUE);
                    socket.storage = values.next().map(|(_, value)| value.to_vec());
                }
                _ => {}
            }
        }
        Some(socket)
    }
}

/// An inet_diag_req_v2.
fn request(family: u8, states: u32, id: &[u8; ID]) -> Vec<u8> {
    let extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    let mut request = vec![family, libc::IPPROTO_TCP as u8, extensions, 0];
    request.extend(states.to_ne_bytes());
    request.extend(id);
    request
}

/// Appends an attribute: length and type, value, padding.
fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(align(message.len()), 0);
}

fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut inside = Vec::new();
    attribute(&mut inside, kind, value);
    inside
}

/// Type and value of each attribute; ends where one is damaged.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, _) = self.0.split_at_checked(4)?;
        let size = usize::from(u16::from_ne_bytes(array(head, 0)));
        let kind = u16::from_ne_bytes(array(head, 2)) & NLA_TYPE_MASK;
        let value = self.0.get(4..size)?;
        self.0 = self.0.get(align(size)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// Messages and attributes begin at multiples of four.
fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// The bytes from `at` on; zeros where there are none.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes.get(at + index).copied().unwrap_or(0))
}

fn dump_failed() -> String {
    "the kernel does not list its TCP sockets".into()
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is too short or too long")
}
