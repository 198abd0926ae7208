//! Status of a gateway, and the way to ask for it: a socket in the folder of its supervisor, below /run.
//!
//! The socket belongs to root and has mode 0600, so no other user can make one in its place or ask. Its name has the
//! number of the network namespace: a gateway that answers keeps a second one out of it. Whoever asks checks that root
//! answers, and reads no more than [`ANSWER_MAX`].

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, sockopt,
};
use serde::{Deserialize, Serialize};

use super::Origin;
use crate::error::{Context, Error, Result};
use crate::host::{Flow, Host, Law, Prefix, Reason};
use crate::supervisor::{self, Guard};
use crate::sys::diag::{Diag, Socket, States};
use crate::sys::netns::Namespace;

/// Time that the other end of the socket has for what it does.
const PATIENCE: Duration = Duration::from_secs(5);
/// Askers that wait for an answer at a time.
const BACKLOG: i32 = 16;
/// Connections in an answer; more are counted. Of each, an answer has about 1 KB.
const LISTED_MAX: usize = 20_000;
/// Bytes of an answer.
const ANSWER_MAX: u64 = 64 << 20;

/// How often to look whether to stop.
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// State of a gateway.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Status {
    /// Process of the gateway.
    pub pid: u32,
    /// Interface towards the satellite.
    pub satellite: String,
    /// Law of senders towards the satellite.
    pub law: String,
    /// The kernel's name of that law; `None`: the law is being loaded.
    pub congestion_control: Option<String>,
    /// True if new connections are split. Before, the law is being loaded, and new connections wait for it.
    pub ready: bool,
    /// Congestion control towards the ground.
    pub terrestrial_law: String,
    /// Destinations whose connections are split; empty: all.
    pub to: Vec<String>,
    /// Families of addresses whose connections are split.
    pub families: Vec<String>,
    /// Number of threads.
    pub threads: usize,
    /// Limit of connections at a time.
    pub connections_max: usize,
    /// Limit of connections that wait for their server at a time.
    pub waiting_max: usize,
    /// Counts since the start.
    pub counters: Counters,
    /// The connections that there are, by the order in which they came; the oldest 20,000 at most.
    pub connections: Vec<Connection>,
    /// Number of further connections, which `connections` does not list.
    pub connections_omitted: u64,
    /// Connections over the satellite link that are not split and sent something within the last minute, at most 1024 of each
    /// family. `None`: the gateway is not ready, or nft fails.
    pub passing: Option<Vec<Passing>>,
}

/// A connection over the satellite link that is not split.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Passing {
    /// Address and port of the end behind the satellite.
    pub satellite: SocketAddr,
    /// Address and port of the end on the ground.
    pub ground: SocketAddr,
    /// Reason for which it is not split.
    pub why: Why,
}

/// The reason for which a connection is not split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The connection began before the gateway, or while its route led past the satellite.
    Early,
    /// The server is none of the destinations that are split. The end with the lower port is taken for the server.
    Unlisted,
    /// Connections of its family of addresses are not split: the interface lo has none.
    Family,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Early => "it began before the gateway",
            Self::Unlisted => "its server is not in --to",
            Self::Family => "lo has no IPv6",
        })
    }
}

/// Adds to connections that pass as they are the reason. `families`: whether those of IPv4 and of IPv6 are split.
pub(super) fn passing(
    passing: Vec<(SocketAddr, SocketAddr)>,
    to: &[Prefix],
    families: [bool; 2],
) -> Vec<Passing> {
    let of = |(satellite, ground): (SocketAddr, SocketAddr)| {
        let server = if satellite.port() <= ground.port() { satellite } else { ground };
        let is_listed = to.is_empty() || to.iter().any(|prefix| prefix.contains(server.ip()));
        let why = match (families[usize::from(server.is_ipv6())], is_listed) {
            (false, _) => Why::Family,
            (true, false) => Why::Unlisted,
            (true, true) => Why::Early,
        };
        Passing { satellite, ground, why }
    };
    passing.into_iter().map(of).collect()
}

/// Counts of a gateway since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Counters {
    /// Connections that clients have opened.
    pub accepted: u64,
    /// Connections that there are now.
    pub open: u64,
    /// Connections whose server has not answered yet.
    pub waiting: u64,
    /// Connections that ended in both directions, with all data acknowledged.
    pub complete: u64,
    /// Connections that broke at the client's side: it reset them, or was silent for too long.
    pub reset_by_client: u64,
    /// Connections that broke at the server's side.
    pub reset_by_server: u64,
    /// Connections whose server can not be reached, or refused them.
    pub refused: u64,
    /// Connections whose server did not answer in time.
    pub timed_out: u64,
    /// Connections that were reset because there were too many.
    pub over_limit: u64,
    /// Connections that were reset because another client needed their place: those that had waited longest, or were of
    /// the client with the most.
    pub displaced: u64,
    /// Connections that this machine could not continue.
    pub failed: u64,
    /// Bytes passed on to servers.
    pub to_server_bytes: u64,
    /// Bytes passed on to clients.
    pub to_client_bytes: u64,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The server has not answered yet.
    Waiting,
    /// Both directions are open.
    Open,
    /// One or both directions have ended.
    Ending,
}

/// A connection that is split.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Connection {
    /// Address and port of who opened it.
    pub client: SocketAddr,
    /// Address and port that it was opened to.
    pub server: SocketAddr,
    /// The client's side.
    pub origin: Origin,
    /// How far it is.
    pub phase: Phase,
    /// Time since it was accepted, s.
    pub age_s: f64,
    /// Bytes passed on to the server.
    pub to_server_bytes: u64,
    /// Bytes passed on to the client.
    pub to_client_bytes: u64,
    /// Bytes between the two halves, in neither socket.
    pub held_bytes: u64,
    /// The half on the ground.
    pub terrestrial: Option<Half>,
    /// The half over the satellite.
    pub satellite: Option<Half>,
}

/// A half of a connection, as TCP sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Half {
    /// Congestion control in force.
    pub congestion_control: String,
    /// Reason for which that is the fallback, CUBIC, in the place of the law towards the satellite.
    pub fallback: Option<Reason>,
    /// Congestion window, segments.
    pub cwnd_packets: u32,
    /// Smoothed round-trip time, ms.
    pub srtt_ms: f64,
    /// Recent rate of delivery to the peer, B/s.
    #[serde(rename = "delivery_rate_Bps")]
    pub delivery_rate: u64,
    /// Segments sent again.
    pub retransmits: u32,
    /// Bytes received and not passed on yet.
    pub receive_queue_bytes: u32,
    /// Bytes passed on and not acknowledged yet.
    pub send_queue_bytes: u32,
}

impl Half {
    fn of(socket: &Socket) -> Self {
        let info = socket.info.unwrap_or_default();
        let flow = socket.storage.as_deref().and_then(Flow::parse).filter(|flow| flow.law == Law::Fallback);
        Self {
            congestion_control: socket.congestion.clone(),
            fallback: flow.and_then(|flow| flow.reason),
            cwnd_packets: info.snd_cwnd,
            srtt_ms: f64::from(info.rtt) / 1000.0,
            delivery_rate: info.delivery_rate,
            retransmits: info.total_retrans,
            receive_queue_bytes: socket.receive_queue,
            send_queue_bytes: socket.send_queue,
        }
    }
}

/// Adds to connections what the kernel and the programs of the explicit law know of their halves.
pub(super) fn add_halves(connections: &mut [Connection], host: Option<&Host>) -> Result<()> {
    let sockets = Diag::open()?.sockets(States::ALL, host.map(Host::storage))?;
    let mut halves: BTreeMap<_, _> =
        sockets.iter().map(|socket| ((socket.local, socket.remote), Half::of(socket))).collect();
    for one in connections {
        // Each half has the address of the end that it stands for.
        let at_client = halves.remove(&(one.server, one.client));
        let at_server = halves.remove(&(one.client, one.server));
        (one.terrestrial, one.satellite) = match one.origin {
            Origin::Terrestrial => (at_client, at_server),
            Origin::Satellite => (at_server, at_client),
        };
    }
    Ok(())
}

/// Leaves out of a list of connections what no answer has room for. Returns how many those are.
pub(super) fn shorten(connections: &mut Vec<Connection>) -> u64 {
    let omitted = connections.len().saturating_sub(LISTED_MAX);
    connections.truncate(LISTED_MAX);
    omitted as u64
}

/// Name of the socket in its folder.
fn name() -> Result<String> {
    Ok(format!("gateway-{}", Namespace::current()?.inode()?))
}

/// Connections to the gateways of this network namespace; there is one at most, but for sockets of dead ones.
fn connect() -> Result<Option<UnixStream>> {
    let name = name()?;
    for folder in supervisor::folders()? {
        match UnixStream::connect(folder.join(&name)) {
            // No gateway, or one that is dead and not undone yet.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(Error::missing(
                    "the gateway answers root alone",
                    "run as root, such as with sudo",
                ));
            }
            other => return other.context(|| "the gateway does not answer".into()).map(Some),
        }
    }
    Ok(None)
}

/// The place at which a gateway is asked.
#[derive(Debug)]
pub(super) struct Desk(UnixListener);

impl Desk {
    /// Takes the network namespace of this thread. The socket goes with the guard's folder.
    pub(super) fn open(guard: &Guard) -> Result<Self> {
        // No other gateway comes between question and answer.
        let _lock = supervisor::lock()?;
        if let Some(stream) = connect()? {
            let who = sockopt::socket_peercred(stream.as_fd());
            let who = who.map_or(String::new(), |who| format!(", process {}", who.pid.as_raw_pid()));
            return Err(Error::input(
                format!("a gateway runs in this network namespace already{who}"),
                "congestlab gateway status tells of it",
            ));
        }
        let what = || "can not make a socket".to_owned();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).context(what)?;
        // Before it has a name: the name gets this mode.
        fchmod(&socket, Mode::RUSR | Mode::WUSR).context(what)?;
        let path: PathBuf = guard.folder().join(name()?);
        bind(&socket, &SocketAddrUnix::new(&path).context(what)?).context(what)?;
        listen(&socket, BACKLOG).context(what)?;
        Ok(Self(socket.into()))
    }

    /// Answers questions until this is over.
    pub(super) fn serve_until(&self, is_over: impl Fn() -> bool, status: impl Fn() -> Result<Status>) {
        while !is_over() {
            let mut sockets = [PollFd::new(&self.0, PollFlags::IN)];
            // A signal may have come.
            if poll(&mut sockets, Some(&STEP)).is_ok_and(|count| count > 0) {
                self.serve(&status);
            }
        }
    }

    /// Answers who has come: root alone, for it shows who talks to whom.
    /// Whoever does not read it, or has gone, has no answer.
    fn serve(&self, status: impl Fn() -> Result<Status>) {
        let Ok((mut stream, _)) = self.0.accept() else { return };
        if !is_root(&stream) {
            return;
        }
        let text = status().ok().and_then(|status| serde_json::to_vec(&status).ok()).unwrap_or_default();
        let _ = stream.set_write_timeout(Some(PATIENCE)).and_then(|()| stream.write_all(&text));
    }
}

/// True if the process at the other end runs as root, or did so when it began to listen.
fn is_root(stream: &UnixStream) -> bool {
    sockopt::socket_peercred(stream.as_fd()).is_ok_and(|who| who.uid.is_root())
}

/// Asks the gateway of this thread's network namespace; `None`: there is none.
///
/// # Errors
/// If it does not answer, or answers root alone, or another user answers in its place.
pub fn status() -> Result<Option<Status>> {
    let Some(stream) = connect()? else { return Ok(None) };
    if !is_root(&stream) {
        return Err(Error::missing("another user than root answers in the place of the gateway", ""));
    }
    let text = read(&stream, ANSWER_MAX).context(|| "the gateway does not answer".into())?;
    if text.is_empty() {
        return Err(Error::missing("the gateway does not answer", "run as root, such as with sudo"));
    }
    serde_json::from_slice(&text).context(|| "the gateway's answer can not be read".into()).map(Some)
}

/// Reads an answer to its end.
///
/// # Errors
/// If it is longer than allowed, or pauses for longer than [`PATIENCE`].
fn read(stream: &UnixStream, most: u64) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.take(most + 1).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it sends more than {most} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_end_is_read_to_its_limit() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let endless = std::thread::spawn(move || while theirs.write_all(&[b' '; 4096]).is_ok() {});
        assert_eq!(read(&ours, 100_000).unwrap_err().kind(), ErrorKind::FileTooLarge);
        drop(ours);
        endless.join().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"{}").unwrap();
        drop(theirs);
        assert_eq!(read(&ours, 2).unwrap(), b"{}");
    }
}
