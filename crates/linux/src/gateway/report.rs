//! Status of a gateway, and the way to ask for it: by a socket with a name that is valid in one network namespace.
//!
//! The name is abstract (unix(7)): it goes with the process that has it, and no second one can have it meanwhile. So it
//! is also what keeps two gateways out of one network namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{self, UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use super::Origin;
use crate::error::{Context, Error, Result};
use crate::host::{Flow, Host, Law, Prefix, Reason};
use crate::sys::diag::{Diag, Socket, States};

/// Name of the socket.
const NAME: &str = "congestlab-gateway";
/// Time that the other end of the socket has for what it does.
const PATIENCE: Duration = Duration::from_secs(5);

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
    /// The connections that there are, by the order in which they came.
    pub connections: Vec<Connection>,
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

fn address() -> Result<net::SocketAddr> {
    net::SocketAddr::from_abstract_name(NAME).context(|| "can not name a socket".into())
}

/// The place at which a gateway is asked.
#[derive(Debug)]
pub(super) struct Desk(UnixListener);

impl Desk {
    /// Takes the network namespace of this thread.
    pub(super) fn open() -> Result<Self> {
        match UnixListener::bind_addr(&address()?) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let who = UnixStream::connect_addr(&address()?).ok();
                let who = who.and_then(|stream| sockopt::socket_peercred(stream.as_fd()).ok());
                let who = who.map_or(String::new(), |who| format!(", process {}", who.pid.as_raw_pid()));
                Err(Error::input(
                    format!("a gateway runs in this network namespace already{who}"),
                    "congestlab gateway status tells of it",
                ))
            }
            listener => {
                let listener = listener.context(|| "can not make a socket".into())?;
                listener.set_nonblocking(true).context(|| "can not use a socket".into())?;
                Ok(Self(listener))
            }
        }
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
        if !sockopt::socket_peercred(stream.as_fd()).is_ok_and(|who| who.uid.is_root()) {
            return;
        }
        let text = status().ok().and_then(|status| serde_json::to_vec(&status).ok()).unwrap_or_default();
        let _ = stream.set_write_timeout(Some(PATIENCE)).and_then(|()| stream.write_all(&text));
    }
}

/// Asks the gateway of this thread's network namespace; `None`: there is none.
///
/// # Errors
/// If it does not answer, or answers root alone.
pub fn status() -> Result<Option<Status>> {
    let what = || "the gateway does not answer".to_owned();
    let mut stream = match UnixStream::connect_addr(&address()?) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(None),
        other => other.context(what)?,
    };
    stream.set_read_timeout(Some(PATIENCE)).context(what)?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).context(what)?;
    if text.is_empty() {
        return Err(Error::missing("the gateway does not answer", "run as root, such as with sudo"));
    }
    serde_json::from_slice(&text).context(|| "the gateway's answer can not be read".into()).map(Some)
}
