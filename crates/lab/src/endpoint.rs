//! The sending and receiving program of a lab, in a process of its own for each host.
//!
//! It reads two lines of JSON from its standard input, its orders and time zero, and writes a line to its
//! standard output when it is ready and whenever a flow is complete. Closing its input ends it.

use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;
use std::{io, thread};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use serde::{Deserialize, Serialize};

use crate::{monotonic, sleep_until};
use congestlab_linux::error::{Context, Error, Result};
use congestlab_linux::sys::{cgroup, tcp};

/// Name of the hidden subcommand that is this program.
pub const SUBCOMMAND: &str = "endpoint";
/// Bytes of a write.
const CHUNK: usize = 1 << 14;

/// The orders for a process.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Orders {
    /// Control group to enter before any socket is made.
    pub cgroup: PathBuf,
    /// Flows to send.
    pub senders: Vec<Sender>,
    /// Receivers that listen and discard all data.
    pub receivers: Vec<Receiver>,
    /// Files to serve.
    pub servers: Vec<Server>,
}

/// A receiver that discards all data.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Receiver {
    /// Address at which to listen.
    pub at: SocketAddrV4,
    /// Largest window to advertise, bytes; the kernel's choice if absent.
    pub window: Option<u32>,
}

/// A flow that is sent.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Sender {
    /// Number of the flow over the whole lab.
    pub flow: usize,
    /// Address of the receiver.
    pub to: SocketAddrV4,
    /// Name of the congestion control.
    pub congestion: String,
    /// Time of the connect, ns after time zero.
    pub start: u64,
    /// Time from which nothing more is written, ns after time zero; without end if absent.
    pub stop: Option<u64>,
    /// Payload bytes to send; without end if absent.
    pub size: Option<u64>,
    /// Pattern of the writes; one long write if absent.
    pub bursts: Option<Bursts>,
}

/// Writes with pauses in between.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Bursts {
    /// Payload bytes of each write.
    pub size: u64,
    /// Time between the end of a write and the next one, ns.
    pub pause: u64,
    /// True if a write ends when it is acknowledged, not when the send buffer takes it.
    pub awaits_ack: bool,
    /// Size of the send buffer, bytes of payload.
    pub buffer: u64,
}

/// A file that is served by HTTP to whoever asks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Server {
    /// Address at which to listen.
    pub at: SocketAddrV4,
    /// Name of the congestion control.
    pub congestion: String,
    /// Number of the flow over the whole lab; each has another file.
    pub flow: usize,
    /// Size of the file, bytes; without end if absent.
    pub size: Option<u64>,
}

/// A message of a process to the lab.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// The process listens and waits for time zero.
    Ready,
    /// The receiver of a flow has confirmed that it has all data.
    Completed {
        /// Number of the flow over the whole lab.
        flow: usize,
        /// Time of the confirmation, ns after time zero.
        at: u64,
    },
    /// A flow failed.
    Failed {
        /// Number of the flow over the whole lab.
        flow: usize,
        /// Reason of the failure.
        why: String,
    },
}

fn say(message: &Message) {
    let text = serde_json::to_string(message).unwrap_or_default();
    // Whoever closed the pipe wants to hear no more.
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Runs the process until its input is closed.
///
/// # Errors
/// If it gets no orders, or can not prepare them.
pub fn run() -> Result<()> {
    let mut lines = io::stdin().lock().lines();
    let mut line = || lines.next().and_then(std::result::Result::ok);
    let orders: Orders = line()
        .and_then(|line| serde_json::from_str(&line).ok())
        .ok_or_else(|| Error::input("no orders on the standard input", "`congestlab live run` gives them"))?;
    cgroup::enter(&orders.cgroup)?;
    for &Receiver { at, window } in &orders.receivers {
        let what = || format!("can not listen at {at}");
        let listener = TcpListener::bind(at).context(what)?;
        if let Some(window) = window {
            // The SYN-ACK states it already, and the scale of all windows goes by it.
            tcp::clamp_window(listener.as_fd(), window).context(what)?;
        }
        thread::spawn(move || {
            listener.incoming().flatten().for_each(|peer| drop(thread::spawn(move || receive(peer, window))))
        });
    }
    for server in orders.servers {
        let listener = listen(&server)?;
        thread::spawn(move || {
            for peer in listener.incoming().flatten() {
                // A client that went away is no failure of the server.
                let server = server.clone();
                thread::spawn(move || serve(peer, &server));
            }
        });
    }
    say(&Message::Ready);
    let Some(zero) = line().and_then(|line| line.parse::<u64>().ok()) else { return Ok(()) };
    for sender in orders.senders {
        thread::spawn(move || {
            let flow = sender.flow;
            match send(&sender, zero) {
                Ok(Some(at)) => say(&Message::Completed { flow, at: at.saturating_sub(zero) }),
                Ok(None) => {}
                Err(error) => say(&Message::Failed { flow, why: error.to_string() }),
            }
        });
    }
    // Until the lab is over; then all sockets go with the process.
    while line().is_some() {}
    Ok(())
}

/// Reads to the end, says so by one byte, and keeps the connection: what the kernel counted is read
/// until the lab is over.
fn receive(mut peer: TcpStream, window: Option<u32>) {
    let mut buffer = vec![0; 1 << 18];
    loop {
        if let Some(window) = window {
            // The kernel takes its own again when it has learned how much memory a segment needs (tcp_measure_rcv_mss).
            let _ = tcp::clamp_window(peer.as_fd(), window);
        }
        if !peer.read(&mut buffer).is_ok_and(|count| count > 0) {
            break;
        }
    }
    let _ = peer.write(&[1]);
    loop {
        thread::park();
    }
}

/// A socket that runs the congestion control from its first packet on.
fn socket(congestion: &str) -> Result<OwnedFd> {
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .context(|| "can not make a socket".into())?;
    sockopt::set_tcp_congestion(&socket, congestion)
        .context(|| format!("the kernel has no congestion control named {congestion}"))?;
    Ok(socket)
}

/// Sends a flow. Returns when the receiver had it all, if it has an end.
fn send(sender: &Sender, zero: u64) -> Result<Option<u64>> {
    let socket = socket(&sender.congestion)?;
    if let Some(bursts) = sender.bursts {
        // The kernel keeps twice the size, half of it for its own books.
        let size = bursts.buffer.min(1 << 30) as usize;
        sockopt::set_socket_send_buffer_size_force(&socket, size)
            .context(|| "can not size the send buffer".into())?;
    }
    sleep_until(zero + sender.start);
    rustix::net::connect(&socket, &SocketAddr::V4(sender.to))
        .context(|| format!("can not connect to {}", sender.to))?;
    let mut stream = TcpStream::from(socket);
    let what = || format!("the connection to {} failed", sender.to);
    stream.set_nodelay(true).context(what)?;
    let stop = sender.stop.map(|stop| zero + stop);
    let mut left = sender.size.unwrap_or(u64::MAX);
    loop {
        let burst = sender.bursts.map_or(left, |bursts| bursts.size.min(left));
        if !write(&mut stream, burst, stop).context(what)? {
            left = 0;
        }
        left = left.saturating_sub(burst);
        let Some(bursts) = sender.bursts.filter(|_| left > 0) else { break };
        while bursts.awaits_ack && tcp::unacknowledged(stream.as_fd()).context(what)? > 0 {
            thread::sleep(Duration::from_micros(500));
        }
        sleep_until(monotonic() + bursts.pause);
        if stop.is_some_and(|stop| monotonic() >= stop) {
            break;
        }
    }
    stream.shutdown(std::net::Shutdown::Write).context(what)?;
    let arrived = stream.read(&mut [0]).context(what)?;
    let at = (arrived == 1 && sender.size.is_some()).then(monotonic);
    // The socket stays until the process ends: it is looked at.
    std::mem::forget(stream);
    Ok(at)
}

/// Writes so many bytes; false if it had to stop before.
fn write(stream: &mut TcpStream, mut count: u64, stop: Option<u64>) -> io::Result<bool> {
    let chunk = [0; CHUNK];
    while count > 0 {
        if let Some(stop) = stop {
            let left = Duration::from_nanos(stop.saturating_sub(monotonic()));
            if left.is_zero() {
                return Ok(false);
            }
            stream.set_write_timeout(Some(left.max(Duration::from_micros(1))))?;
        }
        match stream.write(&chunk[..count.min(CHUNK as u64) as usize]) {
            Ok(written) => count -= written as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn listen(server: &Server) -> Result<TcpListener> {
    // What a connection inherits from its listener is its congestion control, too.
    let socket = socket(&server.congestion)?;
    let what = || format!("can not listen at {}", server.at);
    rustix::net::bind(&socket, &SocketAddr::V4(server.at)).context(what)?;
    rustix::net::listen(&socket, 16).context(what)?;
    Ok(TcpListener::from(socket))
}

/// Answers one request for anything with the file (RFC 9110; HTTP/1.0, so that its end is the
/// connection's).
fn serve(mut peer: TcpStream, server: &Server) -> io::Result<()> {
    let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match peer.read(&mut buffer)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    let length = server.size.map(|size| format!("Content-Length: {size}\r\n")).unwrap_or_default();
    peer.write_all(
        format!("HTTP/1.0 200 OK\r\n{length}Content-Type: application/octet-stream\r\n\r\n").as_bytes(),
    )?;
    let mut file = File::new(server.flow);
    let (mut left, mut chunk) = (server.size.unwrap_or(u64::MAX), vec![0; CHUNK]);
    while left > 0 {
        let part = &mut chunk[..left.min(CHUNK as u64) as usize];
        file.fill(part);
        peer.write_all(part)?;
        left -= part.len() as u64;
    }
    Ok(())
}

/// The bytes of a flow's file. They differ from flow to flow, and no part is like another, so that no loss,
/// repetition or change goes unseen.
#[derive(Clone, Debug)]
pub struct File {
    state: u64,
    at: usize,
}

impl File {
    /// Makes the file of a flow, at its beginning.
    pub fn new(flow: usize) -> Self {
        Self { state: 0x9e37_79b9_7f4a_7c15 ^ (flow as u64 + 1), at: 0 }
    }

    /// Fills `bytes` with the file's next bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.at == 0 {
                // xorshift64 (Marsaglia 2003): period 2^64 - 1 words.
                self.state ^= self.state << 13;
                self.state ^= self.state >> 7;
                self.state ^= self.state << 17;
            }
            *byte = self.state.to_le_bytes()[self.at];
            self.at = (self.at + 1) % 8;
        }
    }
}
