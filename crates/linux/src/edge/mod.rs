//! The agent of a node with XCP-i: what the edges of a cloud ask and tell each other, over UDP through the cloud itself.
//!
//! As the downstream edge it asks the routers in the table of this router ([`Table`]), finds what each cloud carries from what
//! it hears, and tells the virtual routers. As the upstream one it answers whoever asks, with trains of probes. What is sent, and when
//! an answer is overdue, is [`Entry`]'s decision, as in the simulator; what is not in XI is in docs/protocols/xcp-i.md, "On Linux".
//!
//! It refuses to probe for who has not shown that answers reach it, to send more than `BUSY` allows, to ask more than
//! `ASKED` routers, and to answer a peer more than `ANSWERS` times a second: packets, and the addresses in their headers, may be
//! anybody's. It listens at the addresses of its router that packets state, and at no other.

pub mod estimate;
pub mod message;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use congestlab_core::law::xcp_i::{Action, Config as Exchange, Entry, Period, State};
use congestlab_core::units::{BitRate, Duration, Rate, SECOND, Time};
use congestlab_net::xcp_i::SENDS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::CapabilitySet;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::error::{Context, Result};
use crate::router::clouds::{Sharing, Table, Told, now};
use crate::sys::user::User;
use crate::sys::{privilege, schedule, udp};
use estimate::Arrival;
use message::{HEADERS, Kind, Message, SIZE};

/// Port of UDP at which agents listen, of those that nobody is given (RFC 6335 §6).
pub const PORT: u16 = 58_430;

/// Times of an agent's requests where nobody says otherwise. XI gives none but three attempts; a period of 1 s is A-09's for
/// estimators that are none of a simulator's.
pub const EXCHANGE: Exchange = Exchange { period: Period::Every(Duration(SECOND)), ..Exchange::DEFAULT };
/// Time between two looks at the table, each with a short request that measures the way: half of the round trip that XCP's
/// virtual router needs a queue for, or less, on paths that are worth it.
const LOOK: u64 = SECOND / 10;
/// Packets that must have come before their router is asked: a forged header costs nothing then.
const WORTH: u64 = 16;
/// The most routers that are asked.
const ASKED: usize = 32;
/// Time for which packets of a cloud get no increase after its bandwidth holds no more, if nobody says otherwise.
const HELD: u64 = 10 * SECOND;
/// Time after which a place in a full table is taken from a router that is not asked.
const CROWDED: u64 = SECOND;
/// Packets of the trains that this edge asks for, and their sizes: long ones for a capacity, and shorter ones, of which more come
/// between others' packets, for what is available.
const TRAIN: u16 = 50;
const LONG: u16 = 1500;
const SHORT: u16 = 500;
/// Below this rate gaps between short probes are longer than a system call by far, 100 Mbit/s.
const FAST: f64 = 12.5e6;
/// One train of so many is one for the capacity: about every 10 s.
const CAPACITY_EVERY: u64 = 10;
/// The last so many results count: a median of capacities, a mean of what is available.
const CAPACITIES: usize = 3;
const RESULTS: usize = 4;
/// Bounds of the train that an upstream edge sends for one request.
const COUNT_MAX: u16 = 100;
const TRAIN_MAX: u64 = SECOND / 5;
/// An upstream edge rests after a train for so many times its length; and between two trains for the same edge this long.
const BUSY: u64 = 2;
const REST: u64 = SECOND * 3 / 10;
/// The most edges that an upstream one remembers.
const KNOWN: usize = 256;
/// Answers in a second to an edge that has shown its address, and to all others together. An edge asks eleven times.
const ANSWERS: u32 = 100;
const CHALLENGES: u32 = 1000;
/// The report follows the last probe by this much: one that is right behind a train which fills a queue is lost with it.
const AFTER: u64 = SECOND / 50;
/// A virtual router is told no less than the capacity divided by this (docs/protocols/xcp-i.md, On Linux).
const LEAST_PART: f64 = 50.0;
/// Time over which the least delay is looked for, twice: 10 to 20 s, as in the simulator.
const LEAST: u64 = 10 * SECOND;

/// An event that an agent reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A cloud has an estimate.
    Estimate {
        /// Router before the cloud.
        upstream: Ipv4Addr,
        /// Bandwidth that the cloud has for what comes through it from that router.
        bandwidth: BitRate,
        /// Capacity of its narrowest link.
        capacity: BitRate,
        /// The most by which a probe was sent late, ns.
        late: u32,
        /// Bytes of ours that wait in the cloud.
        queue: u64,
    },
    /// Nobody answers for a cloud: its packets pass as if there were none.
    Broken(Ipv4Addr),
    /// Nothing has come through a cloud for a while.
    Idle(Ipv4Addr),
    /// A train was sent for another edge.
    Probed {
        /// The edge.
        downstream: Ipv4Addr,
        /// Number of probes.
        probes: u16,
        /// The most by which one was late, ns.
        late: u32,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Estimate { upstream, bandwidth, capacity, late, queue } => write!(
                out,
                "cloud behind {upstream}: {bandwidth} of {capacity}, {queue} B wait in it; probes at most {:.1} us late",
                f64::from(*late) / 1e3
            ),
            Self::Broken(upstream) => {
                write!(out, "cloud behind {upstream}: no answer; its packets pass as if there were no cloud")
            }
            Self::Idle(upstream) => write!(out, "cloud behind {upstream}: nothing comes any more"),
            Self::Probed { downstream, probes, late } => {
                write!(out, "{probes} probes for {downstream}, at most {:.1} us late", f64::from(*late) / 1e3)
            }
        }
    }
}

/// Counts of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests sent, repeated ones too, and those that only measure the way.
    pub requests: u64,
    /// Estimates.
    pub estimates: u64,
    /// Trains from which nothing followed: too little of them came, or they were late.
    pub spoilt: u64,
    /// Exchanges that ended without an answer.
    pub broken: u64,
    /// Answers and probes that belong to no request under way: late, repeated or forged.
    pub unexpected: u64,
    /// Datagrams that say nothing known.
    pub foreign: u64,
    /// Requests of who had not shown that answers reach it.
    pub challenged: u64,
    /// Requests that were not answered: too many, too long, or too soon.
    pub refused: u64,
    /// Probes sent.
    pub probes: u64,
}

/// A train that this edge has asked for.
#[derive(Debug, Default)]
struct Round {
    is_capacity: bool,
    count: u16,
    size: u16,
    gap: u32,
    arrivals: Vec<Arrival>,
    /// Own bytes when its first probe came, and its last.
    own: [u64; 2],
}

/// A cloud, as its downstream edge knows it.
#[derive(Debug)]
struct Cloud {
    entry: Entry,
    cookie: u64,
    round: Round,
    rounds: u64,
    capacities: VecDeque<f64>,
    results: VecDeque<f64>,
    late: u32,
    /// The short request under way: its number, nonce and time.
    look: (u32, u64, u64),
    /// The least one-way delay of the running time and of the one before, and since when.
    least: [i64; 2],
    least_since: u64,
    queue: u64,
    /// Packets and bytes by the table, and when.
    seen: [u64; 3],
    /// B/s that come through it.
    own_rate: f64,
    /// Until when it counts as one that sends.
    sends_until: u64,
    /// B/s that the cloud has for what comes through it.
    bandwidth: f64,
    told: Told,
}

impl Cloud {
    fn new(now: u64) -> Self {
        Self {
            entry: Entry::new(Time(now), Duration(SECOND)),
            cookie: 0,
            round: Round::default(),
            rounds: 0,
            capacities: VecDeque::new(),
            results: VecDeque::new(),
            late: 0,
            look: (0, 0, 0),
            least: [i64::MAX; 2],
            least_since: now,
            queue: 0,
            seen: [0, 0, now],
            own_rate: 0.0,
            sends_until: now + SENDS.0,
            bandwidth: 0.0,
            told: Told::default(),
        }
    }

    /// The capacity, B/s, as far as it is known.
    fn capacity(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.capacities.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    /// The train that comes next.
    fn next_round(&mut self) {
        let capacity = self.capacity();
        self.rounds += 1;
        self.round = match capacity {
            Some(capacity) if self.rounds % CAPACITY_EVERY != 1 => {
                let size = if capacity < FAST { SHORT } else { LONG };
                let gap = f64::from(size) * 1e9 / capacity.max(1.0);
                // A train that took longer would be refused; fewer probes would say too little.
                let gap = gap.min((TRAIN_MAX / u64::from(TRAIN)) as f64) as u32;
                Round { count: TRAIN, size, gap, ..Round::default() }
            }
            _ => Round { is_capacity: true, count: TRAIN, size: LONG, ..Round::default() },
        };
    }

    /// Takes a one-way delay, by two clocks.
    fn on_delay(&mut self, now: u64, delay: i64) {
        if now - self.least_since > LEAST {
            self.least = [i64::MAX, self.least[0]];
            self.least_since = now;
        }
        self.least[0] = self.least[0].min(delay);
        let above = delay - self.least[0].min(self.least[1]);
        self.queue = (above as f64 / 1e9 * self.own_rate) as u64;
    }

    /// The train is over: what follows from it, B/s. `None`: nothing.
    fn evaluate(&mut self, late: u32) -> Option<f64> {
        let Round { is_capacity, count, size, gap, arrivals, own } = &self.round;
        if *is_capacity {
            let found = estimate::capacity(arrivals, *count, *size)?;
            self.capacities.push_front(found);
            self.capacities.truncate(CAPACITIES);
            let capacity = self.capacity()?;
            self.results.iter_mut().for_each(|result| *result = result.min(capacity));
        } else {
            // One that stood still for two gaps and more went out as a burst afterwards.
            if late > 3 * *gap {
                return None;
            }
            let found = estimate::available(
                arrivals,
                *count,
                *size,
                own[1].saturating_sub(own[0]),
                self.capacity()?,
            )?;
            self.results.push_front(found);
            self.results.truncate(RESULTS);
        }
        self.late = late;
        match self.results.len() {
            0 => self.capacity(),
            count => Some(self.results.iter().sum::<f64>() / count as f64),
        }
    }
}

/// An edge that has asked this one.
#[derive(Clone, Copy, Debug)]
struct Downstream {
    address: Ipv4Addr,
    free_at: u64,
}

/// A report that is due.
#[derive(Debug)]
struct Due {
    at: u64,
    /// Address from which it goes.
    own: Ipv4Addr,
    to: SocketAddrV4,
    message: Message,
}

/// Answers within the running second.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    since: u64,
    answers: u32,
}

impl Budget {
    /// True if one more answer is within the limit; it is counted.
    fn take(&mut self, now: u64, limit: u32) -> bool {
        if now - self.since >= SECOND {
            *self = Self { since: now, answers: 0 };
        }
        self.answers = self.answers.saturating_add(1);
        self.answers <= limit
    }
}

/// Answers to edges that have shown their address, at most [`KNOWN`], and to all others.
#[derive(Debug, Default)]
struct Budgets {
    known: BTreeMap<Ipv4Addr, Budget>,
    others: Budget,
}

impl Budgets {
    fn allow(&mut self, from: Ipv4Addr, is_shown: bool, now: u64) -> bool {
        if !is_shown {
            return self.others.take(now, CHALLENGES);
        }
        if self.known.len() >= KNOWN && !self.known.contains_key(&from) {
            self.known.retain(|_, budget| now - budget.since < SECOND);
            if self.known.len() >= KNOWN {
                return false;
            }
        }
        self.known.entry(from).or_insert(Budget { since: now, answers: 0 }).take(now, ANSWERS)
    }
}

/// The agent of a node.
pub struct Agent {
    /// By address; the one of all addresses is alone.
    sockets: BTreeMap<Ipv4Addr, UdpSocket>,
    budgets: Budgets,
    port: u16,
    exchange: Exchange,
    /// For nonces and cookies, which nobody can guess.
    random: RandomState,
    id: u32,
    table: Option<Table>,
    /// How virtual routers share what clouds have, by the router's table.
    sharing: Sharing,
    clouds: BTreeMap<Ipv4Addr, Cloud>,
    downstream: VecDeque<Downstream>,
    free_at: u64,
    due: Vec<Due>,
    stats: Stats,
    buffer: Vec<u8>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Agent")
            .field("port", &self.port)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// A socket at an address and port of this machine.
fn listen(address: Ipv4Addr, port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((address, port)).context(|| {
        format!("can not listen at port {port} of UDP, address {address}; is there an agent already?")
    })?;
    udp::set_stamped(socket.as_fd()).context(|| "can not have datagrams stamped".into())?;
    Ok(socket)
}

impl Agent {
    /// Makes the agent of the node in the network namespace of this thread, at a port of UDP that the others have, too: [`PORT`]. It
    /// listens at these addresses. If there are none, a router listens at those of its interfaces that run XCP-i, and a host at all.
    ///
    /// # Errors
    /// If the port is in use, or the privilege to look at the router's table is missing.
    pub fn new(port: u16, addresses: &[Ipv4Addr]) -> Result<Self> {
        Self::asking(port, addresses, EXCHANGE)
    }

    /// Makes an agent whose requests have these times; a period of [`Period::Interval`] is one of a second, for no agent hears of the
    /// control intervals of a kernel's virtual router.
    ///
    /// # Errors
    /// As [`Agent::new`].
    pub fn asking(port: u16, addresses: &[Ipv4Addr], exchange: Exchange) -> Result<Self> {
        let period = match exchange.period {
            Period::Interval => EXCHANGE.period,
            every @ Period::Every(_) => every,
        };
        let mut addresses = addresses.to_vec();
        if addresses.is_empty() {
            addresses = Table::addresses()?;
        }
        if addresses.is_empty() {
            addresses.push(Ipv4Addr::UNSPECIFIED);
        }
        let sockets = addresses.into_iter().map(|at| Ok((at, listen(at, port)?)));
        Ok(Self {
            sockets: sockets.collect::<Result<_>>()?,
            budgets: Budgets::default(),
            port,
            exchange: Exchange { period, ..exchange },
            random: RandomState::new(),
            id: 0,
            table: Table::here()?,
            sharing: Sharing::default(),
            clouds: BTreeMap::new(),
            downstream: VecDeque::new(),
            free_at: 0,
            due: vec![],
            stats: Stats::default(),
            buffer: vec![0; 2048],
        })
    }

    /// Gives up the rights of root, for the calling thread and all others of this process, and becomes another user. What is left is
    /// CAP_BPF, to read and write the router's table. Call this last before [`Agent::run`], in a process that does nothing else.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn reduce(&self, user: &User) -> Result<()> {
        // Without the privilege it says so by how late its probes are.
        let _ = schedule::be_punctual();
        let table = if self.table.is_some() { CapabilitySet::BPF } else { CapabilitySet::empty() };
        privilege::reduce(user, table, CapabilitySet::empty())
    }

    /// Returns the addresses at which the agent listens.
    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        self.sockets.keys().copied().collect()
    }

    /// Returns true if an interface here runs XCP-i; otherwise the agent only answers, as that of a sending host.
    pub fn is_router(&self) -> bool {
        self.table.is_some()
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Serves until `stop`, and says what happens. What virtual routers were told holds no longer than it would have without this
    /// agent: a few seconds.
    ///
    /// The thread becomes one that runs before all ordinary ones, if the privilege is there: else trains have holes of 20 ms
    /// (docs/design/kernel-family.md 5).
    ///
    /// # Errors
    /// If the kernel refuses to read a map or to wait.
    pub fn run(&mut self, stop: &AtomicBool, mut tell: impl FnMut(Event)) -> Result<()> {
        // Without the privilege it says so by how late its probes are.
        let _ = schedule::be_punctual();
        let mut look_at = now();
        while !stop.load(Ordering::Relaxed) {
            if look_at <= now() {
                self.look(&mut tell)?;
                look_at = (look_at + LOOK).max(now());
            }
            self.report();
            let next = self.due.iter().map(|due| due.at).fold(look_at, u64::min);
            let wait = next.saturating_sub(now());
            let wait = Timespec { tv_sec: 0, tv_nsec: wait.min(LOOK) as i64 };
            let mut files: Vec<PollFd<'_>> =
                self.sockets.values().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            match poll(&mut files, Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error)).context(|| "can not wait".into()),
            }
            let addresses = self.addresses();
            for at in addresses {
                // A flood must not keep the rest waiting.
                for _ in 0..1000 {
                    let Some(socket) = self.sockets.get(&at) else { break };
                    let came = udp::receive(socket.as_fd(), &mut self.buffer);
                    let length = came.as_ref().map_or(0, |came| came.0);
                    let message = Message::parse(&self.buffer[..length]);
                    let Ok((_, from, wall)) = came else { break };
                    match message {
                        Some(message) => self.handle(&message, (at, from), wall, &mut tell)?,
                        None => self.stats.foreign += 1,
                    }
                }
            }
        }
        Ok(())
    }

    fn handle(
        &mut self,
        message: &Message,
        (at, from): (Ipv4Addr, SocketAddrV4),
        wall: u64,
        tell: &mut impl FnMut(Event),
    ) -> Result<()> {
        if message.kind == Kind::Request {
            self.answer(message, (at, from), tell);
            return Ok(());
        }
        let exchange = self.exchange;
        let period = if let Period::Every(period) = exchange.period { period.0 } else { SECOND };
        // The monotonic time at which it came; the wall clock may be set at any time, but hardly in between.
        let here = now();
        let time = clock_gettime(ClockId::Realtime);
        let wall_now = time.tv_sec as u64 * SECOND + time.tv_nsec as u64;
        let arrived = if wall == 0 { here } else { here - wall_now.saturating_sub(wall).min(SECOND) };
        let answers = |cloud: &Cloud| {
            (cloud.entry.id(), cloud.entry.nonce()) == (message.id, message.nonce)
                || (cloud.look.0, cloud.look.1) == (message.id, message.nonce)
        };
        let Some((&address, cloud)) = self.clouds.iter_mut().find(|(_, cloud)| answers(cloud)) else {
            self.stats.unexpected += 1;
            return Ok(());
        };
        let is_look = (cloud.look.0, cloud.look.1) == (message.id, message.nonce);
        match message.kind {
            Kind::Challenge if !is_look => {
                cloud.cookie = message.cookie;
                self.request(address);
            }
            Kind::Challenge => cloud.cookie = message.cookie,
            Kind::Ack => {
                cloud.on_delay(arrived, arrived.wrapping_sub(message.stamp) as i64);
                if is_look {
                    cloud.look = (0, 0, 0);
                } else {
                    let takes = Duration(u64::from(message.gap) * u64::from(message.count) + AFTER);
                    cloud.entry.on_ack(&exchange, Time(here), message.id, message.nonce, takes);
                    cloud.entry.set_rtt(Duration(here.saturating_sub(message.echo)));
                }
            }
            Kind::Probe if cloud.entry.expects(message.id, message.nonce) && !is_look => {
                let own = match &self.table {
                    Some(table) => table.bytes_from(address)?,
                    None => 0,
                };
                let round = &mut cloud.round;
                // Packets that were overtaken say nothing of a first-in first-out queue.
                let is_next = round.arrivals.last().is_none_or(|last| last.number < message.count);
                if message.count < round.count && is_next {
                    if round.arrivals.is_empty() {
                        round.own[0] = own;
                    }
                    round.own[1] = own;
                    round.arrivals.push(Arrival { number: message.count, sent: message.stamp, arrived });
                }
            }
            Kind::Report if cloud.entry.expects(message.id, message.nonce) && !is_look => {
                match cloud.evaluate(message.gap) {
                    Some(bandwidth) => {
                        let capacity = cloud.capacity().unwrap_or(bandwidth);
                        cloud.entry.on_bandwidth(&exchange, Time(here), bandwidth as i64);
                        cloud.bandwidth = bandwidth;
                        cloud.told.valid_until = here + u64::from(exchange.stale) * period;
                        cloud.told.held_until = cloud.told.valid_until + HELD;
                        self.stats.estimates += 1;
                        tell(Event::Estimate {
                            upstream: address,
                            bandwidth: Rate(bandwidth as u64).bits(),
                            capacity: Rate(capacity as u64).bits(),
                            late: message.gap,
                            queue: cloud.queue,
                        });
                    }
                    None => {
                        cloud.entry.on_nothing(&exchange, Time(here));
                        self.stats.spoilt += 1;
                    }
                }
                self.impose(address)?;
            }
            _ => self.stats.unexpected += 1,
        }
        Ok(())
    }

    /// Tells the virtual router of a cloud what is known.
    fn impose(&mut self, address: Ipv4Addr) -> Result<()> {
        let here = now();
        let sending = self.clouds.values().filter(|cloud| here < cloud.sends_until).count();
        if let (Some(table), Some(cloud)) = (&self.table, self.clouds.get_mut(&address))
            && cloud.entry.was_valid()
        {
            let bandwidth = self.sharing.apply(cloud.bandwidth, cloud.own_rate, sending);
            let least = cloud.capacity().unwrap_or(0.0) / LEAST_PART;
            cloud.told.bandwidth = bandwidth.max(least.min(cloud.bandwidth)) as u64;
            cloud.told.queue = cloud.queue;
            table.tell(address, &cloud.told)?;
        }
        Ok(())
    }

    /// Looks at the table, asks whom it is worth, and serves what is due.
    fn look(&mut self, tell: &mut impl FnMut(Event)) -> Result<()> {
        let Some(table) = &self.table else { return Ok(()) };
        let (exchange, here) = (self.exchange, now());
        self.sharing = table.sharing()?;
        table.greet(here + 3 * LOOK + SECOND)?;
        let peers = table.peers()?;
        let is_full = peers.len() >= PLACES;
        let mut begin = vec![];
        for peer in &peers {
            let idle = (peer.idle_ms * 1e6) as u64;
            let Some(cloud) = self.clouds.get_mut(&peer.address) else {
                let limit = if is_full { CROWDED } else { exchange.idle.0 };
                if idle > limit {
                    table.forget(peer.address)?;
                } else if peer.packets >= WORTH && idle < SECOND && self.clouds.len() < ASKED {
                    let mut cloud = Cloud::new(here);
                    cloud.seen = [peer.packets, peer.bytes, here];
                    if cloud.entry.on_packet(Time(here)) == Action::Begin {
                        begin.push(peer.address);
                    }
                    self.clouds.insert(peer.address, cloud);
                }
                continue;
            };
            let [packets, bytes, at] = cloud.seen;
            if here > at {
                cloud.own_rate = peer.bytes.saturating_sub(bytes) as f64 * 1e9 / (here - at) as f64;
            }
            cloud.seen = [peer.packets, peer.bytes, here];
            if peer.packets != packets {
                cloud.sends_until = here + SENDS.0;
            }
            if peer.packets != packets && cloud.entry.on_packet(Time(here)) == Action::Begin {
                begin.push(peer.address);
            }
        }
        let mut repeat = vec![];
        let mut gone = vec![];
        for (address, cloud) in &mut self.clouds {
            match cloud.entry.on_deadline(&exchange, Time(here)) {
                Action::Nothing => {}
                Action::Begin => begin.push(*address),
                Action::Repeat => repeat.push(*address),
                Action::Broken => {
                    self.stats.broken += 1;
                    table.tell(*address, &Told::default())?;
                    cloud.told = Told::default();
                    tell(Event::Broken(*address));
                }
                Action::Remove => gone.push(*address),
            }
        }
        for address in gone {
            table.forget(address)?;
            self.clouds.remove(&address);
            tell(Event::Idle(address));
        }
        for address in begin {
            let (id, nonce) = self.draw();
            if let Some(cloud) = self.clouds.get_mut(&address) {
                cloud.entry.begin(&exchange, Time(here), id, nonce);
                cloud.next_round();
                repeat.push(address);
            }
        }
        for address in repeat {
            self.request(address);
        }
        self.measure(here)
    }

    /// Asks the routers that answer for no probes: what comes back says how much waits on the way.
    fn measure(&mut self, here: u64) -> Result<()> {
        let asked: Vec<Ipv4Addr> =
            self.clouds.iter().filter(|(_, cloud)| cloud.cookie != 0).map(|(at, _)| *at).collect();
        for address in asked {
            let (id, nonce) = self.draw();
            let Some(cloud) = self.clouds.get_mut(&address) else { continue };
            // One that has not come back yet is still waiting in a long queue.
            if cloud.entry.state(Time(here)) != State::Broken
                && (cloud.look.0 == 0 || cloud.look.2 + SECOND < here)
            {
                cloud.look = (id, nonce, here);
                let message = Message { id, nonce, cookie: cloud.cookie, stamp: here, ..EMPTY };
                self.send(&message, address, 0);
            }
            self.impose(address)?;
        }
        Ok(())
    }

    /// A number and a nonce for a request.
    fn draw(&mut self) -> (u32, u64) {
        self.id = self.id.wrapping_add(1).max(1);
        (self.id, self.random.hash_one(("nonce", self.id, now())))
    }

    /// Sends the request of a cloud's round.
    fn request(&mut self, address: Ipv4Addr) {
        let Some(cloud) = self.clouds.get_mut(&address) else { return };
        let Round { count, size, gap, .. } = cloud.round;
        let (id, nonce) = (cloud.entry.id(), cloud.entry.nonce());
        cloud.round.arrivals.clear();
        let message = Message { count, id, gap, nonce, cookie: cloud.cookie, stamp: now(), size, ..EMPTY };
        self.send(&message, address, 0);
    }

    fn send(&mut self, message: &Message, address: Ipv4Addr, more: usize) {
        self.stats.requests += u64::from(message.kind == Kind::Request);
        let to = SocketAddrV4::new(address, self.port);
        let Some(at) = self.towards(to) else { return };
        self.send_from(at, message, to, more);
    }

    /// The address from which the routes send to another: answers come to that, so the agent listens there from now on.
    fn towards(&mut self, to: SocketAddrV4) -> Option<Ipv4Addr> {
        if self.sockets.contains_key(&Ipv4Addr::UNSPECIFIED) {
            return Some(Ipv4Addr::UNSPECIFIED);
        }
        let route = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        route.connect(to).ok()?;
        let SocketAddr::V4(own) = route.local_addr().ok()? else { return None };
        if !self.sockets.contains_key(own.ip()) {
            // One that is as many as routers are asked at most, for each asks by one route.
            let socket = listen(*own.ip(), self.port).ok().filter(|_| self.sockets.len() < 2 * ASKED)?;
            self.sockets.insert(*own.ip(), socket);
        }
        Some(*own.ip())
    }

    /// Lost or refused by the kernel, it is repeated as if lost on the way.
    fn send_from(&self, at: Ipv4Addr, message: &Message, to: SocketAddrV4, more: usize) {
        let mut bytes = [0; LONG as usize];
        bytes[..SIZE].copy_from_slice(&message.emit());
        if let Some(socket) = self.sockets.get(&at) {
            let _ = socket.send_to(&bytes[..SIZE + more], to);
        }
    }

    /// Answers as the upstream edge.
    fn answer(
        &mut self,
        message: &Message,
        (at, from): (Ipv4Addr, SocketAddrV4),
        tell: &mut impl FnMut(Event),
    ) {
        let cookie = self.random.hash_one(("cookie", from.ip().octets(), from.port())).max(1);
        let is_shown = message.cookie == cookie;
        if !self.budgets.allow(*from.ip(), is_shown, now()) {
            self.stats.refused += 1;
            return;
        }
        if !is_shown {
            // As short as the request: who asks in another's name makes nobody send more than it does itself.
            self.stats.challenged += 1;
            let message =
                Message { kind: Kind::Challenge, cookie, stamp: now(), echo: message.stamp, ..*message };
            self.send_from(at, &message, from, 0);
            return;
        }
        let here = now();
        let takes = u64::from(message.count) * u64::from(message.gap);
        let sizes = SIZE + usize::from(HEADERS)..=usize::from(LONG);
        let ack = Message { kind: Kind::Ack, cookie: 0, stamp: here, echo: message.stamp, ..*message };
        if message.count == 0 {
            self.send_from(at, &ack, from, 0);
            return;
        }
        self.downstream.retain(|known| known.free_at > here);
        let is_known = self.downstream.iter().any(|known| known.address == *from.ip());
        if message.count > COUNT_MAX
            || takes > TRAIN_MAX
            || !sizes.contains(&usize::from(message.size))
            || here < self.free_at
            || is_known
            || self.downstream.len() >= KNOWN
        {
            self.stats.refused += 1;
            return;
        }
        self.send_from(at, &ack, from, 0);
        let more = usize::from(message.size) - usize::from(HEADERS) - SIZE;
        let began = now();
        let mut late = 0;
        for number in 0..message.count {
            let due = began + u64::from(number) * u64::from(message.gap);
            // To sleep would be late by tens of microseconds where probes are 200 apart.
            while now() < due {
                std::hint::spin_loop();
            }
            let stamp = now();
            late = late.max(stamp - due);
            let probe = Message { kind: Kind::Probe, count: number, cookie: 0, stamp, echo: 0, ..*message };
            self.send_from(at, &probe, from, more);
        }
        let end = now();
        // Of a burst the last is late by the time that all of them take.
        let late = if message.gap == 0 { 0 } else { u32::try_from(late).unwrap_or(u32::MAX) };
        self.stats.probes += u64::from(message.count);
        self.free_at = end + (BUSY - 1) * (end - began);
        self.downstream.push_back(Downstream { address: *from.ip(), free_at: end + REST });
        self.due.push(Due {
            at: end + AFTER,
            own: at,
            to: from,
            message: Message { kind: Kind::Report, gap: late, ..ack },
        });
        tell(Event::Probed { downstream: *from.ip(), probes: message.count, late });
    }

    /// Sends the reports that are due.
    fn report(&mut self) {
        let here = now();
        let due = std::mem::take(&mut self.due).into_iter();
        let (ready, later): (Vec<Due>, _) = due.partition(|due| due.at <= here);
        self.due = later;
        for due in ready {
            self.send_from(due.own, &Message { stamp: here, ..due.message }, due.to, 0);
        }
    }
}

/// Places in the table of a router: `PEERS_MAX` of `bpf/xcpi.h`.
const PLACES: usize = 1024;

/// A request for nothing.
const EMPTY: Message =
    Message { kind: Kind::Request, count: 0, id: 0, gap: 0, nonce: 0, cookie: 0, stamp: 0, echo: 0, size: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_no_more_answers_than_its_own_and_takes_no_others() {
        let mut budgets = Budgets::default();
        let peer = |number: u32| Ipv4Addr::from(0x0a00_0000 + number);
        let count = |budgets: &mut Budgets, from, is_shown, at| {
            (0..2000).filter(|_| budgets.allow(from, is_shown, at)).count()
        };
        assert_eq!(count(&mut budgets, peer(1), true, SECOND), ANSWERS as usize);
        assert_eq!(count(&mut budgets, peer(2), true, SECOND), ANSWERS as usize);
        // Whoever shows no address, as many as they are, have their own, and no place in the table.
        assert_eq!(count(&mut budgets, peer(3), false, SECOND), CHALLENGES as usize);
        assert_eq!(budgets.known.len(), 2);
        assert!(budgets.allow(peer(1), true, 2 * SECOND));
        for number in 0..10_000 {
            budgets.allow(peer(number), true, 2 * SECOND);
        }
        assert_eq!(budgets.known.len(), KNOWN);
        assert!(budgets.allow(peer(20_000), true, 4 * SECOND), "old ones make room");
    }
}
