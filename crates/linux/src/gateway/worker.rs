//! A thread of the gateway: it accepts connections, continues each to where it was going, and moves their bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, acceptfrom_with, bind, connect, getsockname, listen, socket_with,
    sockopt,
};
use rustix::thread::CapabilitySet;
use rustix::time::{ClockId, clock_gettime};

use super::pair::{Broken, Origin, Pair, Pipes, Progress};
use super::places::{Displaced, Limits, Places};
use super::report::{Connection, Counters, Phase};
use super::rules::Ports;
use crate::error::{self, Context};
use crate::sys::{privilege, schedule, tcp};

/// Connections that are accepted before it is the others' turn.
const ACCEPTS: usize = 64;
/// Connections that wait for a thread to accept them; the kernel allows no more than `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// Bytes that may be written to a socket before they can be sent. Without a limit the gateway would take megabytes
/// from the faster side before that feels the slower one.
const UNSENT: u32 = 1 << 18;
/// Probes without an answer after which a silent peer is given up.
const PROBES: u32 = 3;
/// Sockets of a kind that are made before there is a connection for them. A thread has four kinds at most.
const READY: usize = 4;
/// Open files that these are, at most.
pub(super) const READY_FILES: u64 = 4 * READY as u64;
/// How often to look whether to stop when nothing happens.
const IDLE_NS: u64 = 1_000_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Data of the events of the wake-up call; listeners have the numbers below, sockets those above.
const WAKE: u64 = 8;
const FIRST: u64 = 16;

/// How sockets are made, and how many.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// Congestion control towards the satellite, and towards the ground.
    pub(super) satellite: String,
    pub(super) terrestrial: String,
    /// Pipes of a thread.
    pub(super) pipes: usize,
    pub(super) patience: Duration,
    pub(super) keepalive: Duration,
}

/// Switch, places and counts that all threads share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    places: Places,
    /// Connections that other threads hand over, by thread.
    boxes: Vec<Inbox>,
    accepted: AtomicU64,
    complete: AtomicU64,
    reset_by_client: AtomicU64,
    reset_by_server: AtomicU64,
    refused: AtomicU64,
    timed_out: AtomicU64,
    over_limit: AtomicU64,
    displaced: AtomicU64,
    failed: AtomicU64,
    to_server: AtomicU64,
    to_client: AtomicU64,
}

/// Connections of a thread that others have displaced, and a way to wake it.
#[derive(Debug)]
struct Inbox {
    wake: OwnedFd,
    displaced: Mutex<Vec<u64>>,
}

impl Shared {
    pub(super) fn new(limits: Limits, threads: usize) -> std::io::Result<Self> {
        let one = || {
            let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Inbox { wake, displaced: Mutex::default() })
        };
        Ok(Self {
            stop: AtomicBool::new(false),
            places: Places::new(limits, FIRST),
            boxes: std::iter::repeat_with(one).take(threads).collect::<std::io::Result<_>>()?,
            accepted: AtomicU64::new(0),
            complete: AtomicU64::new(0),
            reset_by_client: AtomicU64::new(0),
            reset_by_server: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            over_limit: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            to_server: AtomicU64::new(0),
            to_client: AtomicU64::new(0),
        })
    }

    /// Wakes a thread.
    fn wake(&self, thread: usize) {
        // It fails only where a wake-up call is on its way.
        let _ = self.boxes.get(thread).map(|one| rustix::io::write(&one.wake, &1u64.to_ne_bytes()));
    }

    /// Tells a thread that a connection of its has lost its place.
    fn displace(&self, Displaced { worker, number }: Displaced) {
        if let Some(one) = self.boxes.get(worker) {
            one.displaced.lock().unwrap_or_else(PoisonError::into_inner).push(number);
            self.wake(worker);
        }
    }

    pub(super) fn counters(&self) -> Counters {
        let (open, waiting) = self.places.taken();
        Counters {
            accepted: self.accepted.load(Relaxed),
            open: open as u64,
            waiting: waiting as u64,
            complete: self.complete.load(Relaxed),
            reset_by_client: self.reset_by_client.load(Relaxed),
            reset_by_server: self.reset_by_server.load(Relaxed),
            refused: self.refused.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
            over_limit: self.over_limit.load(Relaxed),
            displaced: self.displaced.load(Relaxed),
            failed: self.failed.load(Relaxed),
            to_server_bytes: self.to_server.load(Relaxed),
            to_client_bytes: self.to_client.load(Relaxed),
        }
    }
}

/// Nanoseconds of the monotonic clock.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

/// A socket that listens for connections of one origin.
#[derive(Debug)]
struct Listener {
    socket: OwnedFd,
    origin: Origin,
    at: SocketAddr,
}

/// The listeners of a thread. Those of several threads share their ports, and the kernel divides connections among
/// them by addresses and ports (SO_REUSEPORT, socket(7)).
#[derive(Debug)]
pub(super) struct Listeners {
    all: Vec<Listener>,
    /// Ports of the listeners of IPv4 and of IPv6.
    pub(super) ports: [Option<Ports>; 2],
}

impl Listeners {
    /// Listens at these ports, or at any.
    pub(super) fn open(
        manner: &Manner,
        families: [bool; 2],
        ports: [Option<Ports>; 2],
    ) -> error::Result<Self> {
        let mut all = Vec::new();
        let mut taken = [None; 2];
        // At loopback, where nothing comes in but by the rules.
        let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        for family in [0, 1].into_iter().filter(|&family| families[family]) {
            let mut open = |origin, port: Option<u16>| {
                let at = SocketAddr::new(addresses[family], port.unwrap_or(0));
                let socket = manner.listen(origin, at).context(|| "can not listen for connections".into())?;
                let at = local(&socket).context(|| "a listener has no address".into())?;
                all.push(Listener { socket, origin, at });
                Ok(at.port())
            };
            let of = |pick: fn(&Ports) -> u16| ports[family].as_ref().map(pick);
            taken[family] = Some(Ports {
                from_satellite: open(Origin::Satellite, of(|ports| ports.from_satellite))?,
                from_terrestrial: open(Origin::Terrestrial, of(|ports| ports.from_terrestrial))?,
            });
        }
        Ok(Self { all, ports: taken })
    }
}

fn local(socket: &OwnedFd) -> rustix::io::Result<SocketAddr> {
    SocketAddr::try_from(getsockname(socket)?)
}

impl Manner {
    /// Congestion control towards whom a connection comes from.
    fn towards(&self, origin: Origin) -> &str {
        match origin {
            Origin::Terrestrial => &self.terrestrial,
            Origin::Satellite => &self.satellite,
        }
    }

    /// A socket as both halves of a connection want it. Accepted ones inherit all of this from their listener.
    fn socket(&self, at: SocketAddr, law: &str) -> rustix::io::Result<OwnedFd> {
        let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        let os = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
        tcp::set_transparent(socket.as_fd(), at.is_ipv6()).map_err(os)?;
        tcp::set_unsent_max(socket.as_fd(), UNSENT).map_err(os)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
        sockopt::set_tcp_congestion(&socket, law)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        // Urgent data are ordinary data.
        sockopt::set_socket_oobinline(&socket, true)?;
        sockopt::set_socket_keepalive(&socket, true)?;
        sockopt::set_tcp_keepidle(&socket, self.keepalive)?;
        sockopt::set_tcp_keepintvl(&socket, self.keepalive)?;
        sockopt::set_tcp_keepcnt(&socket, PROBES)?;
        Ok(socket)
    }

    fn listen(&self, origin: Origin, at: SocketAddr) -> rustix::io::Result<OwnedFd> {
        let socket = self.socket(at, self.towards(origin))?;
        sockopt::set_socket_reuseport(&socket, true)?;
        bind(&socket, &at)?;
        listen(&socket, BACKLOG)?;
        Ok(socket)
    }

    /// Makes a socket for the other half of connections of this kind.
    fn other_half(&self, kind: Kind) -> rustix::io::Result<OwnedFd> {
        let other = match kind.origin {
            Origin::Terrestrial => Origin::Satellite,
            Origin::Satellite => Origin::Terrestrial,
        };
        let any = if kind.is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        self.socket(SocketAddr::new(any, 0), self.towards(other))
    }

    /// Continues a connection from its client's address and port.
    fn onward(
        &self,
        ready: &mut Ready,
        origin: Origin,
        client: SocketAddr,
        server: SocketAddr,
    ) -> rustix::io::Result<OwnedFd> {
        let kind = Kind { origin, is_ipv6: client.is_ipv6() };
        let socket = match ready.take(kind) {
            Some(socket) => socket,
            None => self.other_half(kind)?,
        };
        bind(&socket, &client)?;
        match connect(&socket, &server) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(error) => Err(error),
        }
    }
}

/// Kind of a connection, by what its other half needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    origin: Origin,
    is_ipv6: bool,
}

/// Sockets for connections that are yet to come. To make one takes a dozen system calls, which a client would wait for.
#[derive(Debug, Default)]
struct Ready {
    /// By kind, those that connections came of so far.
    kinds: Vec<(Kind, Vec<OwnedFd>)>,
}

impl Ready {
    fn take(&mut self, kind: Kind) -> Option<OwnedFd> {
        match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sockets)) => sockets.pop(),
            None => {
                self.kinds.push((kind, vec![]));
                None
            }
        }
    }

    /// Returns a kind of which there should be more.
    fn wanted(&self) -> Option<Kind> {
        self.kinds.iter().find(|(_, sockets)| sockets.len() < READY).map(|(kind, _)| *kind)
    }

    fn put(&mut self, kind: Kind, socket: OwnedFd) {
        if let Some((_, sockets)) = self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            sockets.push(socket);
        }
    }
}

/// Asker for a list of the connections.
pub(super) type Question = mpsc::Sender<Vec<Connection>>;

/// A way to ask a thread, or to wake it.
#[derive(Debug)]
pub(super) struct Line<'a> {
    questions: mpsc::Sender<Question>,
    shared: &'a Shared,
    worker: usize,
}

impl Line<'_> {
    pub(super) fn wake(&self) {
        self.shared.wake(self.worker);
    }

    pub(super) fn ask(&self, question: Question) {
        // A thread that has ended has no connections.
        let _ = self.questions.send(question);
        self.wake();
    }
}

/// A thread of the gateway.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    manner: &'a Manner,
    shared: &'a Shared,
    /// Number of this thread.
    own: usize,
    epoll: OwnedFd,
    listeners: Listeners,
    pairs: BTreeMap<u64, Pair>,
    pipes: Pipes,
    ready: Ready,
    /// Connections that have more to move at once.
    busy: BTreeSet<u64>,
    /// Connections whose server has not answered yet, with the time at which they are given up; numbers grow with time.
    waiting: BTreeMap<u64, u64>,
    questions: mpsc::Receiver<Question>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        manner: &'a Manner,
        shared: &'a Shared,
        own: usize,
        listeners: Listeners,
    ) -> std::io::Result<(Self, Line<'a>)> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, listener) in listeners.all.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, &listener.socket, data, epoll::EventFlags::IN)?;
        }
        let wake = &shared.boxes.get(own).ok_or(Errno::INVAL)?.wake;
        epoll::add(&epoll, wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let (asker, questions) = mpsc::channel();
        let line = Line { questions: asker, shared, worker: own };
        let worker = Self {
            manner,
            shared,
            own,
            epoll,
            listeners,
            pairs: BTreeMap::new(),
            pipes: Pipes::new(manner.pipes),
            ready: Ready::default(),
            busy: BTreeSet::new(),
            waiting: BTreeMap::new(),
            questions,
        };
        Ok((worker, line))
    }

    /// Works until it is told to stop. Its connections break then.
    pub(super) fn run(mut self) -> std::io::Result<()> {
        // Whoever opens a connection waits for this thread several times. Where the kernel knows no slices, it waits its turn.
        let _ = schedule::be_prompt();
        privilege::limit(super::WORKERS, CapabilitySet::empty())?;
        let mut events = Vec::with_capacity(256);
        while !self.shared.stop.load(Relaxed) {
            // Sockets for later are made when there is nothing else to do.
            let wanted = self.ready.wanted();
            let is_idle = self.busy.is_empty() && wanted.is_none();
            let wait = if is_idle { self.until_next(now()) } else { 0 };
            let timeout = Timespec { tv_sec: (wait / NS_PER_S) as i64, tv_nsec: (wait % NS_PER_S) as i64 };
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let (Some(kind), true, true) = (wanted, events.is_empty(), self.busy.is_empty()) {
                // None left, or no memory: a connection that comes will say so.
                match self.manner.other_half(kind) {
                    Ok(socket) => self.ready.put(kind, socket),
                    Err(_) => self.ready = Ready::default(),
                }
            }
            for busy in std::mem::take(&mut self.busy) {
                self.advance(busy, [true; 2]);
            }
            for &epoll::Event { flags, data } in &events {
                match data.u64() {
                    WAKE => self.answer(),
                    number if number < WAKE => self.accept(number as usize),
                    socket => self.on_event(socket / 2, (socket % 2) as usize, flags),
                }
            }
            self.give_up(now());
        }
        Ok(())
    }

    fn until_next(&self, now: u64) -> u64 {
        self.waiting
            .first_key_value()
            .map_or(IDLE_NS, |(_, at)| at.saturating_sub(now).clamp(1_000_000, IDLE_NS))
    }

    fn answer(&mut self) {
        if let Some(own) = self.shared.boxes.get(self.own) {
            let _ = rustix::io::read(&own.wake, &mut [0; 8]);
            let displaced =
                std::mem::take(&mut *own.displaced.lock().unwrap_or_else(PoisonError::into_inner));
            for number in displaced {
                self.remove(number, Err(Broken::Displaced));
            }
        }
        while let Ok(question) = self.questions.try_recv() {
            let now = now();
            // Who asked may have gone.
            let _ = question.send(self.pairs.values().map(|pair| connection(pair, now)).collect());
        }
    }

    fn accept(&mut self, listener: usize) {
        let Some(Listener { socket, origin, at }) = self.listeners.all.get(listener) else { return };
        let (origin, at) = (*origin, *at);
        for _ in 0..ACCEPTS {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (near, client) = match acceptfrom_with(socket, flags) {
                Ok((near, Some(client))) => (near, client),
                Err(Errno::AGAIN) => return,
                // Gone again, or no descriptors in the whole system: the next one may fare better.
                _ => {
                    self.shared.failed.fetch_add(1, Relaxed);
                    return;
                }
            };
            self.shared.accepted.fetch_add(1, Relaxed);
            // No rule changes the address, so that of this end is where the connection was going.
            let (Ok(client), Ok(server)) = (SocketAddr::try_from(client), local(&near)) else { continue };
            // Somebody on this machine calls the listener itself: its own server would be this gateway.
            if server == at {
                continue;
            }
            // What is dropped is reset.
            let Some((place, displaced)) = self.shared.places.reserve(client.ip(), self.own) else {
                self.shared.over_limit.fetch_add(1, Relaxed);
                continue;
            };
            displaced.into_iter().for_each(|one| self.shared.displace(one));
            let far = match self.manner.onward(&mut self.ready, origin, client, server) {
                Ok(far) => far,
                Err(_) => {
                    self.shared.failed.fetch_add(1, Relaxed);
                    continue;
                }
            };
            let number = place.number;
            let interest = epoll::EventFlags::IN
                | epoll::EventFlags::PRI
                | epoll::EventFlags::OUT
                | epoll::EventFlags::RDHUP
                | epoll::EventFlags::ET;
            let watch = |socket: BorrowedFd<'_>, side| {
                epoll::add(&self.epoll, socket, epoll::EventData::new_u64(2 * number + side), interest)
            };
            if watch(near.as_fd(), 0).and_then(|()| watch(far.as_fd(), 1)).is_err() {
                self.shared.failed.fetch_add(1, Relaxed);
                continue;
            }
            let now = now();
            self.pairs.insert(number, Pair::new([near, far], (client, server), origin, now));
            place.keep();
            let patience = u64::try_from(self.manner.patience.as_nanos()).unwrap_or(u64::MAX);
            self.waiting.insert(number, now.saturating_add(patience));
        }
    }

    fn on_event(&mut self, number: u64, side: usize, flags: epoll::EventFlags) {
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        if flags.contains(epoll::EventFlags::ERR) {
            // A server may answer and reset before anybody looks: whoever refuses does it with another error.
            let is_reset = || {
                let error = sockopt::socket_error(&pair.sockets[1]);
                error.is_ok_and(|error| error == Err(Errno::CONNRESET) || error == Err(Errno::PIPE))
            };
            let broken = match side {
                0 => Broken::Client,
                _ if pair.is_connected || is_reset() => Broken::Server,
                _ => Broken::Refused,
            };
            return self.remove(number, Err(broken));
        }
        let mut due = [false; 2];
        let comes = epoll::EventFlags::IN
            | epoll::EventFlags::PRI
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::HUP;
        due[side] = flags.intersects(comes);
        // Until recv(2) has passed urgent data, each event of the socket says so.
        pair.set_urgent(side, flags.contains(epoll::EventFlags::PRI));
        due[1 - side] = flags.contains(epoll::EventFlags::OUT) && pair.is_stuck(1 - side);
        if side == 1 && !pair.is_connected && flags.contains(epoll::EventFlags::OUT) {
            pair.is_connected = true;
            self.waiting.remove(&number);
            self.shared.places.connected(number);
            // What the client has sent has waited; what the server sends from now on is told.
            due[0] = true;
        }
        self.advance(number, due);
    }

    fn advance(&mut self, number: u64, due: [bool; 2]) {
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        let before = pair.moved();
        let progress = pair.advance(due, &mut self.pipes);
        let after = pair.moved();
        self.shared.to_server.fetch_add(after[0] - before[0], Relaxed);
        self.shared.to_client.fetch_add(after[1] - before[1], Relaxed);
        match progress {
            Ok(Progress::Waits) => {}
            Ok(Progress::HasMore) => _ = self.busy.insert(number),
            Ok(Progress::Over) => self.remove(number, Ok(())),
            Err(broken) => self.remove(number, Err(broken)),
        }
    }

    /// Forgets a connection: what is not over is reset at both ends.
    fn remove(&mut self, number: u64, end: Result<(), Broken>) {
        let Some(pair) = self.pairs.remove(&number) else { return };
        pair.give_back(&mut self.pipes);
        self.waiting.remove(&number);
        self.shared.places.release(number);
        let counter = match end {
            Ok(()) => &self.shared.complete,
            Err(Broken::Client) => &self.shared.reset_by_client,
            Err(Broken::Server) => &self.shared.reset_by_server,
            Err(Broken::Refused) => &self.shared.refused,
            Err(Broken::Silent) => &self.shared.timed_out,
            Err(Broken::Displaced) => &self.shared.displaced,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Gives up servers that have been silent for too long.
    fn give_up(&mut self, now: u64) {
        while let Some((&number, _)) = self.waiting.first_key_value().filter(|(_, at)| **at <= now) {
            self.remove(number, Err(Broken::Silent));
            self.waiting.remove(&number);
        }
    }
}

fn connection(pair: &Pair, now: u64) -> Connection {
    let [to_server_bytes, to_client_bytes] = pair.moved();
    Connection {
        client: pair.client,
        server: pair.server,
        origin: pair.origin,
        phase: match (pair.is_connected, pair.is_ending()) {
            (false, _) => Phase::Waiting,
            (true, false) => Phase::Open,
            (true, true) => Phase::Ending,
        },
        age_s: now.saturating_sub(pair.begun) as f64 / NS_PER_S as f64,
        to_server_bytes,
        to_client_bytes,
        held_bytes: pair.held() as u64,
        terrestrial: None,
        satellite: None,
    }
}
