//! Changes of interfaces in a network namespace, by netlink: one that comes or goes, gets another MTU, goes up or down.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use crate::error::{Context, Result};

/// The group of interfaces (`RTMGRP_LINK` in <linux/rtnetlink.h>).
const LINKS: u32 = 1;

/// A watch over the interfaces of the network namespace in which it was opened.
#[derive(Debug)]
pub struct LinkEvents {
    socket: OwnedFd,
}

impl LinkEvents {
    /// Begins to watch.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn open() -> Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
            .context(|| "can not open a netlink socket".into())?;
        bind(&socket, &SocketAddrNetlink::new(0, LINKS)).context(|| "can not watch interfaces".into())?;
        Ok(Self { socket })
    }

    /// Waits for a change until the time is over or a signal comes. Returns true if there was one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        let what = || "can not watch interfaces".to_owned();
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            other => other.context(what)?,
        };
        let mut buffer = [0; 8192];
        loop {
            match recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                // Too many at once are changes, too.
                Ok(_) | Err(Errno::NOBUFS | Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(true),
                Err(error) => return Err(io::Error::from(error)).context(what),
            }
        }
    }
}
