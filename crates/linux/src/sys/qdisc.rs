//! Queueing disciplines of an interface and their backlogs, and rates of HTB's classes, by netlink: no process is started for
//! it, so it can be asked and changed often.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use congestlab_core::units::{Rate, SECOND};

use crate::error::{Context, Result};

// <linux/rtnetlink.h>, <linux/netlink.h>, <linux/pkt_sched.h>
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
const NLM_F_REQUEST: u16 = 1;
/// An interface that is down has no qdisc to tell of: without this there would be no answer at all.
const NLM_F_ACK: u16 = 4;
/// Without it the answer goes to nobody but those who watch all changes.
const NLM_F_ECHO: u16 = 8;
const NLMSG_ERROR: u16 = 2;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS: u16 = 3;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// Frames are as long as they are; so the kernel wants no table of how long each takes.
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// The unit of a bucket is what passes in this time, ns (`PSCHED_SHIFT` in <net/pkt_sched.h>).
const TICK: u64 = 64;
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

/// A reader of one qdisc of an interface, in the network namespace in which it was opened.
#[derive(Debug)]
pub struct QdiscReader {
    socket: OwnedFd,
    index: i32,
    parent: u32,
}

/// Opens a socket of netlink.
fn open() -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC; // and no protocol: NETLINK_ROUTE is 0
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
        .context(|| "can not open a netlink socket".into())?;
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(5)))
        .context(|| "can not set up a netlink socket".into())?;
    Ok(socket)
}

/// A request about a qdisc or class of an interface, to which attributes can be added.
fn request(kind: u16, flags: u16, index: i32, handle: u32, parent: u32) -> Vec<u8> {
    let mut request = vec![0; 4]; // the length, which is told in the end
    request.extend(kind.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
    // Sequence and port: nobody else uses the socket. Family and padding.
    request.extend([0; 12]);
    request.extend(index.to_ne_bytes());
    request.extend(handle.to_ne_bytes());
    request.extend(parent.to_ne_bytes());
    request.extend([0; 4]);
    request
}

/// Adds an attribute.
fn put(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// Sends a request; returns what the kernel tells before it says how it went.
fn ask(socket: &OwnedFd, mut request: Vec<u8>) -> io::Result<Option<Answer>> {
    let length = request.len() as u32;
    request[..4].copy_from_slice(&length.to_ne_bytes());
    sendto(socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let (mut buffer, mut told) = ([0; 8192], None);
    loop {
        let (length, _) = recv(socket, &mut buffer, RecvFlags::empty())?;
        match read(&buffer[..length]).ok_or(io::ErrorKind::InvalidData)? {
            Answer::Done(0) => return Ok(told),
            Answer::Done(number) => return Err(io::Error::from_raw_os_error(-number)),
            found => told = Some(found),
        }
    }
}

impl QdiscReader {
    /// Opens a reader of the root qdisc of the interface with this index.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn open(index: i32) -> Result<Self> {
        Self::of_class(index, TC_H_ROOT)
    }

    /// Opens a reader of the qdisc of a class, such as `0x1_0010` for `1:10`.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn of_class(index: i32, class: u32) -> Result<Self> {
        Ok(Self { socket: open()?, index, parent: class })
    }

    /// Reads the present state.
    ///
    /// # Errors
    /// If the interface or the class is gone.
    pub fn read(&self) -> Result<Qdisc> {
        // Any handle.
        let request = request(RTM_GETQDISC, NLM_F_ECHO, self.index, 0, self.parent);
        let found = ask(&self.socket, request)
            .context(|| format!("can not ask for the qdisc of interface {}", self.index))?;
        Ok(match found {
            Some(Answer::Qdisc(qdisc)) => qdisc,
            _ => Qdisc { kind: "noop".into(), ..Qdisc::default() },
        })
    }
}

/// Settings of a class of HTB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// Handle of the class.
    pub handle: u32,
    /// Handle of the class, or qdisc, that it is in.
    pub parent: u32,
    /// Rate that the class has in any case.
    pub rate: Rate,
    /// Rate that the class may have while others leave it.
    pub ceil: Rate,
    /// Bytes that may pass at once.
    pub burst: u64,
    /// Bytes at a time of what others leave.
    pub quantum: u32,
}

/// The classes of HTB of an interface, in the network namespace in which they were opened.
#[derive(Debug)]
pub struct Classes {
    socket: OwnedFd,
    index: i32,
}

impl Classes {
    /// Opens those of the interface with this index.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn open(index: i32) -> Result<Self> {
        Ok(Self { socket: open()?, index })
    }

    /// Changes a class that is there.
    ///
    /// # Errors
    /// If it is not, or the privilege is missing.
    pub fn change(&self, class: &HtbClass) -> Result<()> {
        let HtbClass { handle, parent, rate, ceil, burst, quantum } = *class;
        // `struct tc_htb_opt` of <linux/pkt_sched.h>: two `struct tc_ratespec`, and the buckets of both in ticks.
        let mut words = vec![];
        for Rate(rate) in [rate, ceil] {
            words.extend([0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0]);
            words.extend(u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
        }
        for Rate(rate) in [rate, ceil] {
            let ticks = u128::from(burst) * u128::from(SECOND / TICK) / u128::from(rate.max(1));
            words.extend(u32::try_from(ticks).unwrap_or(u32::MAX).to_ne_bytes());
        }
        words.extend(quantum.to_ne_bytes());
        words.extend([0; 8]); // its level is the kernel's affair, and there is one priority
        let mut options = vec![];
        put(&mut options, TCA_HTB_PARMS, &words);
        put(&mut options, TCA_HTB_RATE64, &rate.0.to_ne_bytes());
        put(&mut options, TCA_HTB_CEIL64, &ceil.0.to_ne_bytes());
        let mut request = request(RTM_NEWTCLASS, 0, self.index, handle, parent);
        put(&mut request, TCA_KIND, b"htb\0");
        put(&mut request, TCA_OPTIONS, &options);
        ask(&self.socket, request).map(drop).context(|| self.failed("change", handle))
    }

    /// Reads the rate of a class, to the byte, where tc prints four digits; `None`: it is none of HTB's.
    ///
    /// # Errors
    /// If there is no such class.
    pub fn rate(&self, handle: u32) -> Result<Option<Rate>> {
        let request = request(RTM_GETTCLASS, NLM_F_ECHO, self.index, handle, 0);
        let found = ask(&self.socket, request).context(|| self.failed("ask for", handle))?;
        Ok(if let Some(Answer::Class(rate)) = found { Some(rate) } else { None })
    }

    fn failed(&self, verb: &str, handle: u32) -> String {
        format!("can not {verb} class {:x}:{:x} of interface {}", handle >> 16, handle & 0xffff, self.index)
    }
}

/// A message of the kernel; the last one says how it went.
#[derive(Debug)]
enum Answer {
    Qdisc(Qdisc),
    /// With the rate that it has in any case.
    Class(Rate),
    Done(i32),
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

/// The attributes in these bytes; `None` if one is longer than what is there.
fn attributes(mut rest: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut found = vec![];
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let length = usize::from(length);
        found.push((kind, rest.get(4..length)?));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(found)
}

/// Reads an answer; `None` if it is none.
fn read(message: &[u8]) -> Option<Answer> {
    let kind = u16_at(message, 4)?;
    if kind == NLMSG_ERROR {
        return Some(Answer::Done(u32_at(message, NLMSGHDR)? as i32));
    }
    let attributes = attributes(message.get(NLMSGHDR + TCMSG..)?)?;
    match kind {
        RTM_NEWQDISC => read_qdisc(message, &attributes).map(Answer::Qdisc),
        RTM_NEWTCLASS => read_class(&attributes).map(Answer::Class),
        _ => None,
    }
}

fn read_qdisc(message: &[u8], attributes: &[(u16, &[u8])]) -> Option<Qdisc> {
    let mut qdisc = Qdisc { handle: u32_at(message, NLMSGHDR + 8)?, ..Qdisc::default() };
    for (kind, value) in attributes {
        match *kind {
            TCA_KIND => {
                qdisc.kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
            }
            TCA_STATS => {
                qdisc.bytes = u64_at(value, 0)?;
                qdisc.packets = u32_at(value, 8)?;
                qdisc.drops = u32_at(value, 12)?;
                qdisc.queue_packets = u32_at(value, 28)?;
                qdisc.queue_bytes = u32_at(value, 32)?;
            }
            _ => {}
        }
    }
    Some(qdisc)
}

/// The rate of HTB's class: 32 bits behind eight bytes, and 64 where these are too few.
fn read_class(told: &[(u16, &[u8])]) -> Option<Rate> {
    let find = |list: &[(u16, &[u8])], wanted| {
        list.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| value.to_vec())
    };
    let options = find(told, TCA_OPTIONS)?;
    let options = attributes(&options)?;
    let rate = u32_at(&find(&options, TCA_HTB_PARMS)?, 8)?;
    let large = find(&options, TCA_HTB_RATE64).and_then(|value| u64_at(&value, 0));
    Some(Rate(large.unwrap_or(0).max(rate.into())))
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
