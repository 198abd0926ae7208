//! The root queueing discipline of an interface and its backlog, by netlink: no process is started for it,
//! so it can be asked often.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::error::{Context, Result};

// <linux/rtnetlink.h>, <linux/netlink.h>, <linux/pkt_sched.h>
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLM_F_REQUEST: u16 = 1;
/// An interface that is down has no qdisc to tell of: without this there would be no answer at all.
const NLM_F_ACK: u16 = 4;
/// Without it the answer goes to nobody but those who watch all changes.
const NLM_F_ECHO: u16 = 8;
const NLMSG_ERROR: u16 = 2;
const TCA_KIND: u16 = 1;
const TCA_STATS: u16 = 3;
const TC_H_ROOT: u32 = u32::MAX;
/// Lengths of `struct nlmsghdr` and `struct tcmsg`.
const NLMSGHDR: usize = 16;
const TCMSG: usize = 20;

/// State of an interface's root qdisc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// Kind of the qdisc, such as `tbf`.
    pub kind: String,
    /// Handle, such as `0xcc1_0000` for `cc1:`; 0 if the kernel made the qdisc by itself.
    pub handle: u32,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u32,
    /// Packets refused because the queue was full.
    pub drops: u32,
    /// Packets that wait.
    pub queue_packets: u32,
    /// Bytes that wait, as the qdisc counts them.
    pub queue_bytes: u32,
}

/// A reader of one interface's root qdisc, in the network namespace in which it was opened.
#[derive(Debug)]
pub struct QdiscReader {
    socket: OwnedFd,
    index: i32,
}

impl QdiscReader {
    /// Opens a reader for the interface with this index.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn open(index: i32) -> Result<Self> {
        let flags = SocketFlags::CLOEXEC; // and no protocol: NETLINK_ROUTE is 0
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
            .context(|| "can not open a netlink socket".into())?;
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(5)))
            .context(|| "can not set up a netlink socket".into())?;
        Ok(Self { socket, index })
    }

    /// Reads the present state.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn read(&self) -> Result<Qdisc> {
        self.ask().context(|| format!("can not ask for the qdisc of interface {}", self.index))
    }

    fn ask(&self) -> io::Result<Qdisc> {
        let mut request = Vec::with_capacity(NLMSGHDR + TCMSG);
        request.extend(((NLMSGHDR + TCMSG) as u32).to_ne_bytes());
        request.extend(RTM_GETQDISC.to_ne_bytes());
        request.extend((NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO).to_ne_bytes());
        // Sequence and port: nobody else uses the socket. Family and padding.
        request.extend([0; 12]);
        request.extend(self.index.to_ne_bytes());
        request.extend([0; 4]); // any handle
        request.extend(TC_H_ROOT.to_ne_bytes());
        request.extend([0; 4]);
        sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let (mut buffer, mut qdisc) = ([0; 8192], Qdisc { kind: "noop".into(), ..Qdisc::default() });
        loop {
            let (length, _) = recv(&self.socket, &mut buffer, RecvFlags::empty())?;
            match read(&buffer[..length]).ok_or(io::ErrorKind::InvalidData)? {
                Answer::Qdisc(found) => qdisc = found,
                Answer::Done(0) => return Ok(qdisc),
                Answer::Done(number) => return Err(io::Error::from_raw_os_error(-number)),
            }
        }
    }
}

/// A message of the kernel; the last one says how it went.
#[derive(Debug)]
enum Answer {
    Qdisc(Qdisc),
    Done(i32),
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Reads an answer; `None` if it is none.
fn read(message: &[u8]) -> Option<Answer> {
    match u16_at(message, 4)? {
        RTM_NEWQDISC => {}
        NLMSG_ERROR => return Some(Answer::Done(u32_at(message, NLMSGHDR)? as i32)),
        _ => return None,
    }
    let mut qdisc = Qdisc { handle: u32_at(message, NLMSGHDR + 8)?, ..Qdisc::default() };
    let mut rest = message.get(NLMSGHDR + TCMSG..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let length = usize::from(length);
        let value = rest.get(4..length)?;
        match kind {
            TCA_KIND => {
                qdisc.kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
            }
            TCA_STATS => {
                qdisc.bytes = value.get(..8)?.try_into().map(u64::from_ne_bytes).ok()?;
                qdisc.packets = u32_at(value, 8)?;
                qdisc.drops = u32_at(value, 12)?;
                qdisc.queue_packets = u32_at(value, 28)?;
                qdisc.queue_bytes = u32_at(value, 32)?;
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Answer::Qdisc(qdisc))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every interface has one, also loopback.
    #[test]
    fn the_root_qdisc_of_loopback_has_a_name() {
        let qdisc = QdiscReader::open(1).and_then(|reader| reader.read()).unwrap();
        assert!(!qdisc.kind.is_empty(), "{qdisc:?}");
        assert!(QdiscReader::open(i32::MAX).and_then(|reader| reader.read()).is_err());
    }

    #[test]
    fn an_answer_that_is_cut_off_is_none() {
        assert!(read(&[]).is_none());
        assert!(read(&[0; 16]).is_none());
        let mut answer = vec![0; 36];
        answer[4] = 36;
        answer.extend([200, 0, 1, 0]); // an attribute longer than what is there
        assert!(read(&answer).is_none());
    }
}
