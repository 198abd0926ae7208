//! A link in user space: frames go in at one interface and come out of another, after what the
//! simulator's port does with them ([`congestlab_net::port`]) in real time.
//!
//! The port is the simulator's own, with its queue, disciplines, service (traces too), errors and
//! laws; its clock is the kernel's. A packet arrives at the time at which the kernel got it, not at
//! the time at which the link fetches it, and the port is only ever served up to the time by which
//! everything has been fetched. So a link that wakes up late computes what a punctual one would have;
//! what is late is what it sends, and how late is measured ([`Report`]).
//!
//! One thread for both directions. Sizes are those of IP packets. Frames that are none, such as ARP,
//! take the delay and nothing else.

mod behind;
mod clock;
mod frame;
mod report;

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use congestlab_core::law::Segment;
use congestlab_core::law::words::Chain;
use congestlab_core::law::xcp::Header;
use congestlab_core::units::{BitRate, Duration};
use congestlab_net::packet::{Kind, PS_PER_NS, Packet, Picos, flag};
use congestlab_net::port::{Output, Port, PortConfig, PortEvent, Streams};
use congestlab_net::queue::Limit;
use congestlab_net::random::Stream;
use congestlab_net::service::{PS_PER_S, Service};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use behind::Behind;
pub use clock::Clock;
pub use frame::Refused;
pub use report::{LATE_MAX, LATE_SHARE, Lateness, Load, Report, Traffic, Xcp, allowed};

use crate::error::{Context, Error, Result};
use crate::sys::offload::Offloads;
use crate::sys::packet::{BATCH, Frame, Socket};
use crate::sys::schedule::be_prior;
use frame::{ETHERNET, Look, TAGS, look};
use report::Tally;

/// A service without a limit in practice: a packet takes less than the nanosecond that clocks can tell.
pub const UNLIMITED: Service = Service::Fixed(BitRate(100_000_000_000_000));
/// Batches that are fetched at one interface before it is the other's turn.
const ROUNDS: usize = 8;
/// How often to look whether to stop.
const IDLE: Picos = PS_PER_S / 50;
/// Departures need not be served before their packets are due at the far end; but what is told of
/// them shall not be old.
const LAZY: Picos = PS_PER_S / 1000;
/// While packets come, they are fetched after a nap and not when the first arrives: being woken for
/// every packet costs its sender more than all the rest (160,000 packets/s and 30,000 on two busy
/// cores). They are stamped, so only a link whose delay is shorter than a nap is late by it.
const NAP: [Picos; 2] = [PS_PER_S / 20_000, PS_PER_S / 2_000];
/// Bytes of frames that a direction holds at most unless the caller says otherwise: a second at 8 Gbit/s.
const MEMORY: u64 = 1 << 30;

/// Settings of one direction of a link.
#[derive(Clone, Debug)]
pub struct Direction {
    /// The output port, as in a simulation. [`UNLIMITED`] is the service of a link that only delays.
    pub port: PortConfig,
    /// Random streams of the port.
    pub streams: Streams,
}

impl Direction {
    /// Makes a direction with the random streams of the link `name` in a simulation with this seed.
    pub fn new(port: PortConfig, seed: u64, name: &str) -> Self {
        let stream = |field: &str| Stream::named(seed, &format!("links.{name}.{field}"));
        let streams = Streams::new(stream);
        Self { port, streams }
    }
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the first interface to the second.
    Forward,
    /// From the second interface to the first.
    Back,
}

/// An event at a link, for those who listen.
#[derive(Clone, Debug)]
pub struct Event {
    /// Direction in which it happened.
    pub way: Way,
    /// Time by the link's clock, ps.
    pub at: Picos,
    /// The event, as a simulated port reports it.
    pub what: PortEvent,
    /// Largest lateness of a packet since the event before.
    pub lateness: Duration,
}

/// A frame on the wire.
#[derive(Debug)]
struct Flying {
    /// When it is at the far end.
    at: Picos,
    frame: Frame,
    is_packet: bool,
}

/// Everything of a direction but its port.
#[derive(Debug)]
struct Wire {
    way: Way,
    has_law: bool,
    /// Chains of packets whose ECN fields tell a load, if the law is of MPCP's family.
    chain: Option<Chain>,
    /// Frames of packets that the port holds, by [`Packet::seq`].
    held: Vec<Option<(Frame, Look)>>,
    free: Vec<u32>,
    /// In order of time.
    flying: VecDeque<Flying>,
    /// Memory for frames to come.
    spare: Vec<Frame>,
    /// Bytes of a frame's memory.
    room: usize,
    /// Frames that the direction holds at most.
    most: usize,
    /// Bytes of the largest IP packet that the interface behind takes.
    mtu: usize,
    /// Events before that are none: the port begins at time zero, the link later.
    begin: Picos,
    listener: Option<mpsc::Sender<Event>>,
    lateness: Duration,
    tally: Tally,
}

impl Output for Wire {
    fn deliver(&mut self, packet: &mut Packet) {
        let Some((mut frame, look)) = self.release(packet) else { return };
        let is_partial = frame.has_partial_checksum();
        let delta = packet.header::<Header>().map(|header| header.delta);
        look.write(frame.bytes_mut(), delta, packet.flags & flag::ECN_MASK, is_partial);
        self.fly(packet.at, frame, true);
    }

    fn event(&mut self, at: Picos, what: PortEvent) {
        if let PortEvent::Dropped { packet, .. } | PortEvent::Errored { packet } = &what
            && let Some((frame, _)) = self.release(packet)
        {
            self.spare.push(frame);
        }
        if let Some(listener) = &self.listener
            && at >= self.begin
        {
            let lateness = mem::take(&mut self.lateness);
            // A listener that left wants to hear no more.
            let _ = listener.send(Event { way: self.way, at, what, lateness });
        }
    }
}

impl Wire {
    /// The frame of a packet that leaves the port.
    fn release(&mut self, packet: &Packet) -> Option<(Frame, Look)> {
        let held = self.held.get_mut(packet.seq as usize)?.take()?;
        self.free.push(packet.seq);
        Some(held)
    }

    /// Memory for one more frame; `None` if the direction holds too much.
    fn spare(&mut self) -> Option<Frame> {
        let count = self.held.len() + self.flying.len();
        self.spare.pop().or_else(|| (count < self.most).then(|| Frame::new(self.room)))
    }

    /// Takes a frame, which is a packet of the port's from now on.
    fn hold(&mut self, frame: Frame, look: Look) -> Packet {
        let segment = self.chain.and_then(|chain| self.place(chain, &frame, &look));
        let slot = self.free.pop().unwrap_or_else(|| {
            self.held.push(None);
            self.held.len() as u32 - 1
        });
        self.held[slot as usize] = Some((frame, look));
        let Look { size, kind, flags, flow, .. } = look;
        let mut packet = Packet { seq: slot, size, kind, flags, flow, ..Packet::default() };
        if packet.flags & flag::HEADER != 0 {
            if self.has_law && self.chain.is_none() {
                packet.set_header(look.header);
                self.tally.xcp_packets += 1;
            } else {
                packet.flags &= !flag::HEADER;
            }
        }
        if let Some(segment) = segment {
            packet.set_header(segment);
        }
        packet
    }

    /// Returns the headers that say which packet of its chain a coded one is; `None`: its code says all, or it is no data of
    /// TCP's.
    fn place(&mut self, chain: Chain, frame: &Frame, look: &Look) -> Option<Segment> {
        if look.flags & flag::ECN_MASK == 0 {
            return None;
        }
        self.tally.coded_packets += 1;
        if chain.packets == 1 || look.kind != Kind::Data {
            return None;
        }
        let is_partial = frame.has_partial_checksum();
        let segment = look.segment(frame.bytes(), is_partial)?;
        let is_told = chain.place(|| Some(segment)).is_some();
        self.tally.unplaced_packets += u64::from(!is_told);
        self.tally.partial_packets += u64::from(!is_told && is_partial);
        Some(segment)
    }

    /// Puts a frame on the wire, which keeps the order of time.
    fn fly(&mut self, at: Picos, frame: Frame, is_packet: bool) {
        let position = match self.flying.back() {
            // Frames that are no IP packets overtake those that wait.
            Some(last) if last.at > at => self.flying.partition_point(|other| other.at <= at),
            _ => self.flying.len(),
        };
        self.flying.insert(position, Flying { at, frame, is_packet });
    }
}

/// A direction at work.
#[derive(Debug)]
struct Track {
    config: PortConfig,
    port: Port,
    wire: Wire,
    /// The port has been served up to here.
    served: Picos,
    /// Where the next frames are received.
    staged: Vec<Frame>,
}

impl Track {
    fn new(direction: Option<&Direction>, way: Way, [room, most, mtu]: [usize; 3], begin: Picos) -> Self {
        let plain = || Direction::new(PortConfig::new(UNLIMITED, 0, Limit::None), 0, "");
        let Direction { port: config, streams } = direction.cloned().unwrap_or_else(plain);
        // A port that begins to measure at 0 does so before the first event.
        let port = Port::new(&config, streams, begin.max(1), u64::MAX);
        let wire = Wire {
            way,
            has_law: config.law.is_some(),
            chain: config.law.as_ref().and_then(|law| law.config.chain()),
            held: Vec::new(),
            free: Vec::new(),
            flying: VecDeque::new(),
            spare: Vec::new(),
            room,
            most,
            mtu,
            begin,
            listener: None,
            lateness: Duration(0),
            tally: Tally::default(),
        };
        Self { config, port, wire, served: 0, staged: (0..BATCH).map(|_| Frame::new(room)).collect() }
    }

    /// Serves the port up to and with `now`.
    fn serve(&mut self, now: Picos) {
        self.port.advance_before(now + 1, &mut self.wire);
        self.served = now + 1;
    }

    /// Fetches what has come by `now`, then serves the port up to then. Returns how much it was.
    fn fetch(&mut self, from: &Socket, clock: &Clock, now: Picos) -> Result<usize> {
        let offset = clock.wall_offset();
        let mut fetched = 0;
        for _ in 0..ROUNDS {
            let count = from.receive(&mut self.staged).or_else(down).context(|| "can not receive".into())?;
            for i in 0..count {
                let stamp = self.staged[i].stamp().wrapping_sub(offset).saturating_mul(PS_PER_NS);
                // A stamp in the future: the wall clock was set.
                let at = if stamp > now { now } else { stamp }.max(self.served);
                self.arrive(i, at);
            }
            fetched += count;
            if count < BATCH {
                self.serve(now.max(self.served));
                return Ok(fetched);
            }
        }
        // There is more, which is to arrive before later events are served.
        Ok(fetched)
    }

    /// A frame has come.
    fn arrive(&mut self, staged: usize, at: Picos) {
        if self.staged[staged].is_merged() {
            self.wire.tally.oversized_frames += 1;
            return;
        }
        let look = look(self.staged[staged].bytes());
        let is_long = |look: Look| usize::from(look.size) > self.wire.mtu;
        if self.staged[staged].is_cut() || look.is_some_and(is_long) {
            self.wire.tally.long_drops += 1;
            return;
        }
        let Some(spare) = self.wire.spare() else {
            // A queue that may be longer than the memory is full when the memory is.
            self.wire.tally.memory_drops += 1;
            return;
        };
        let frame = mem::replace(&mut self.staged[staged], spare);
        match look {
            Some(look) => {
                if let Some(why) = look.refusal.filter(|_| self.wire.has_law) {
                    self.wire.tally.refused.count(why);
                }
                self.port.advance_to_arrival(at, &mut self.wire);
                self.served = self.served.max(at);
                let packet = self.wire.hold(frame, look);
                self.port.arrive(at, packet, &mut self.wire);
            }
            None => {
                self.wire.tally.other_frames += 1;
                self.wire.fly(at.saturating_add(self.config.delay), frame, false);
            }
        }
    }

    /// Sends what is due. Returns whether the interface can take no more for now.
    fn flush(&mut self, to: &Socket, clock: &Clock) -> Result<bool> {
        let allowed = report::allowed(self.config.delay);
        loop {
            let now = clock.now();
            let due = self.wire.flying.partition_point(|flying| flying.at <= now);
            if due == 0 {
                return Ok(false);
            }
            let sent = match to.send(self.wire.flying.iter().take(due).map(|flying| &flying.frame)) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    self.wire.tally.refused_frames += 1;
                    let refused = self.wire.flying.pop_front();
                    self.wire.spare.extend(refused.map(|flying| flying.frame));
                    continue;
                }
            };
            for Flying { at, frame, .. } in self.wire.flying.drain(..sent) {
                let lateness = Duration((now - at) / PS_PER_NS);
                self.wire.tally.lateness.record(lateness);
                self.wire.tally.late += u64::from(lateness > allowed);
                self.wire.lateness = self.wire.lateness.max(lateness);
                self.wire.spare.push(frame);
            }
        }
    }

    /// When there is something to do again if nothing arrives.
    fn next(&self) -> Picos {
        let departure = self.port.next_event().saturating_add(self.config.delay.min(LAZY));
        self.wire.flying.front().map_or(departure, |flying| flying.at.min(departure))
    }

    fn finish(mut self, from: &Socket, end: Picos) -> Traffic {
        self.serve(end.max(self.served));
        self.port.finish(self.served);
        self.wire.tally.kernel_drops += from.drops().unwrap_or(0);
        let is_limited = self.config.service != UNLIMITED;
        // A port takes what is on the wire for delivered.
        let flying = self.wire.flying.iter().filter(|flying| flying.is_packet).count() as u64;
        let mut stats = self.port.stats().clone();
        stats.delivered_packets -= flying;
        stats.in_flight_end += flying;
        Traffic::new(
            is_limited.then_some(&self.config.service),
            self.config.delay,
            (self.wire.begin, end),
            stats,
            &self.wire.tally,
        )
    }
}

/// An interface that is down has nothing, and may come up again.
fn down(error: io::Error) -> io::Result<usize> {
    if error.raw_os_error() == Some(libc::ENETDOWN) { Ok(0) } else { Err(error) }
}

/// A link between two interfaces.
#[derive(Debug)]
pub struct Link {
    clock: Arc<Clock>,
    sockets: [Socket; 2],
    directions: [Option<Direction>; 2],
    room: usize,
    /// Bytes of frames that a direction holds at most.
    memory: u64,
    /// Bytes of the largest IP packet of each interface.
    mtus: [usize; 2],
    listener: Option<mpsc::Sender<Event>>,
    /// Puts the interfaces' settings back.
    _offloads: [Offloads; 2],
}

impl Link {
    /// Connects two interfaces of the calling thread's network namespace. Packets that arrive at `a` leave at
    /// `b` by `forward`, and the other way by `back`; without a direction they pass at once. Frames wait from
    /// now on; [`Link::run`] moves them. The link's own interfaces have their offloads switched off until it
    /// ends; the ends of the veth pairs behind them are the caller's ([`Offloads::off`]).
    ///
    /// # Errors
    /// If the privilege is missing, or there is no such interface.
    pub fn new(
        a: &str,
        b: &str,
        forward: Option<Direction>,
        back: Option<Direction>,
        clock: Arc<Clock>,
    ) -> Result<Self> {
        let open = |name: &str| -> Result<(Socket, Offloads, usize)> {
            let index = interface_number(name, "ifindex")?;
            let mtu = interface_number(name, "mtu")?;
            Ok((Socket::open(index)?, Offloads::off(name)?, mtu as usize))
        };
        let (socket_a, offloads_a, mtu_a) = open(a)?;
        let (socket_b, offloads_b, mtu_b) = open(b)?;
        Ok(Self {
            clock,
            sockets: [socket_a, socket_b],
            directions: [forward, back],
            room: ETHERNET + 4 * TAGS + mtu_a.max(mtu_b),
            memory: MEMORY,
            mtus: [mtu_a, mtu_b],
            listener: None,
            _offloads: [offloads_a, offloads_b],
        })
    }

    /// Sets the bytes of frames that each direction holds at most, 1 GiB by default. Packets that come beyond are dropped, with
    /// the reason `memory`.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Returns a channel of the events from now on, with samples if the ports' configuration has a period for them.
    pub fn listen(&mut self) -> mpsc::Receiver<Event> {
        let (sender, receiver) = mpsc::channel();
        self.listener = Some(sender);
        receiver
    }

    /// Moves frames until `stop` is raised, which it notices within 20 ms, and returns its counts. The calling thread gives up
    /// all capabilities, and the user root, for good: frames are strangers'. Settings of the interfaces are put back when the
    /// link is dropped, which a thread with the privilege must do.
    ///
    /// # Errors
    /// If the kernel takes the interfaces away.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<Report> {
        // Where that is not allowed, the lateness will tell.
        let _ = be_prior();
        crate::give_up_rights()?;
        let listener = self.listener.take();
        let Self { clock, sockets, directions, room, memory, mtus, .. } = &*self;
        let room = *room;
        let most = usize::try_from(memory / room as u64).unwrap_or(usize::MAX).max(BATCH);
        let begin = clock.now();
        let [forward, back] = directions;
        let mut tracks = [(forward, Way::Forward, mtus[1]), (back, Way::Back, mtus[0])]
            .map(|(direction, way, mtu)| Track::new(direction.as_ref(), way, [room, most, mtu], begin));
        for track in &mut tracks {
            track.serve(begin);
            track.wire.listener.clone_from(&listener);
        }
        let [a, b] = sockets;
        let ways = [(a, b), (b, a)];
        let nap = (tracks[0].config.delay.min(tracks[1].config.delay) / 2).clamp(NAP[0], NAP[1]);
        while !stop.load(Ordering::Relaxed) {
            // Everything that came by now is there to be fetched.
            let now = clock.now();
            let (mut fetched, mut wake) = ([0; 2], now + IDLE);
            let mut events = [PollFlags::IN; 2];
            for (way, (from, to)) in ways.into_iter().enumerate() {
                let track = &mut tracks[way];
                fetched[way] = track.fetch(from, clock, now)?;
                if track.flush(to, clock)? {
                    events[1 - way] |= PollFlags::OUT;
                } else {
                    wake = wake.min(track.next());
                }
            }
            if fetched.iter().any(|&count| count >= BATCH * ROUNDS) {
                continue;
            }
            if fetched != [0, 0] {
                wake = wake.min(now + nap);
                events = events.map(|events| events - PollFlags::IN);
            }
            let mut files = [
                PollFd::from_borrowed_fd(a.as_fd(), events[0]),
                PollFd::from_borrowed_fd(b.as_fd(), events[1]),
            ];
            let nanos = wake.saturating_sub(clock.now()).div_ceil(PS_PER_NS);
            let timeout = Timespec { tv_sec: 0, tv_nsec: nanos as i64 };
            match poll(&mut files, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context(|| "can not wait for packets".into()),
            }
        }
        let end = clock.now();
        let [forward, back] = tracks;
        let (forward, back) = (forward.finish(a, end), back.finish(b, end));
        Ok(Report::new((begin, end), forward, back))
    }
}

/// Reads a number that the kernel has about an interface in the thread's network namespace.
fn interface_number(name: &str, what: &str) -> Result<u32> {
    let text = crate::sys::command::query("ip -j link show")?;
    let links: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
    let known = |link: &serde_json::Value| link["ifname"].as_str().unwrap_or_default().to_owned();
    let link = links.iter().find(|link| known(link) == name);
    let number = link.and_then(|link| link[what].as_u64()).and_then(|number| number.try_into().ok());
    number.ok_or_else(|| {
        let names: Vec<String> = links.iter().map(known).collect();
        Error::input(format!("there is no interface {name}"), format!("there are: {}", names.join(", ")))
    })
}
