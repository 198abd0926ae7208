//! A half-duplex medium: both directions of a link on one wire, one packet at a time (docs/design/protocols.md 12.2).
//!
//! TH 4.4 made the links of its testbed half duplex, and says no more. Two models of who sends: the
//! stations take turns, or IEEE 802.3 decides (clause 4: carrier sense, collisions, back-off). The ports
//! of the two directions keep their queues and laws; the medium says when the first packet of one
//! begins.
//!
//! The stations hear each other at once, so frames collide only where both begin at the same instant:
//! behind the end of a frame for which both waited, or after equal back-offs.

use congestlab_core::units::BitRate;

use crate::packet::{Packet, Picos};
use crate::port::{MIX, Output as _, Outputs, Port, fold};
use crate::random::Stream;
pub use crate::service::Frame;
use crate::service::{NEVER, time_of};

/// Carrier sense with collision detection, in bytes at the rate of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsmaCd {
    /// Unit of back-off, in bytes.
    pub slot: u16,
    /// Time for which a collision occupies the medium, before the gap, in bytes.
    pub jam: u16,
    /// Collisions after which a packet is dropped.
    pub attempts: u32,
    /// Number of collisions up to which the range of back-offs doubles.
    pub backoff_limit: u32,
}

impl CsmaCd {
    /// IEEE 802.3 table 4-2, at 10 Mbit/s: slot 51.2 us, jam 4.8 us (with what precedes it until the
    /// collision is seen; 3.2 us alone).
    pub const IEEE: Self = Self { slot: 64, jam: 6, attempts: 16, backoff_limit: 10 };
}

/// Rule for who sends if both want to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The two ends take turns.
    Fair,
    /// The end that begins first sends; if both begin together, neither gets through.
    CsmaCd(CsmaCd),
}

/// Settings of a medium in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that packets take on the wire.
    pub frame: Frame,
    /// Rule for who sends.
    pub access: Access,
}

/// One end of the medium.
#[derive(Clone, Debug)]
struct Station {
    port: Port,
    /// Time from which its first packet tries, when the medium is free; `NEVER` if nothing waits.
    ready: Picos,
    /// Collisions of that packet.
    collisions: u32,
    backoff: Stream,
}

/// A medium and the two ports that send on it.
#[derive(Clone, Debug)]
pub struct Medium {
    access: Access,
    stations: [Station; 2],
    /// End of what is on the wire, and of the gap behind it.
    free: Picos,
    /// Station that sent last.
    last: usize,
    rate: BitRate,
    gap: Picos,
    hash: u64,
}

impl Medium {
    /// Calls `each` with every packet that waits at its ports, to be given another route.
    pub fn for_each_waiting(&mut self, each: &mut impl FnMut(&mut Packet)) {
        self.stations.iter_mut().for_each(|station| station.port.for_each_waiting(&mut *each));
    }

    /// Creates a silent medium at the rate of its two ports, which is one and fixed. Each has a stream for its
    /// back-offs.
    pub fn new(config: &Config, stations: [(Port, Stream); 2]) -> Self {
        let rate = stations[0].0.rate();
        debug_assert_eq!(stations[1].0.rate(), rate, "one wire has one rate");
        let stations = stations.map(|(mut port, backoff)| {
            port.share(config.frame);
            Station { port, ready: NEVER, collisions: 0, backoff }
        });
        let gap = time_of(config.frame.gap.into(), rate.0);
        Self { access: config.access, stations, free: 0, last: 1, rate, gap, hash: MIX[0] }
    }

    /// Returns when a transmission begins next, if nothing arrives until then; [`NEVER`] if nothing waits.
    #[inline]
    fn next_access(&self) -> Picos {
        self.stations[0].ready.min(self.stations[1].ready).max(self.free)
    }

    /// Returns the time of the earliest event that needs no arrival; [`NEVER`] if there is none.
    pub fn next_event(&self) -> Picos {
        let ports = self.stations.iter().map(|station| station.port.next_event());
        ports.fold(self.next_access(), Picos::min)
    }

    /// Serves all that comes before an arrival at `t`: transmissions that begin at `t` or before. What else
    /// happens at a port until then is left to it.
    #[inline]
    pub fn advance_to_arrival(&mut self, t: Picos, out: &mut impl Outputs) {
        while self.next_access() <= t && out.of(self.last).goes_on() {
            self.contend(out);
        }
    }

    /// Serves every event before `t`, the end of a window of time.
    pub fn advance_before(&mut self, t: Picos, out: &mut impl Outputs) {
        self.advance_to_arrival(t - 1, out);
        for (index, station) in self.stations.iter_mut().enumerate() {
            station.port.advance_before(t, &mut out.of(index));
        }
    }

    /// Takes a packet that arrives at port `index`. The medium must have been advanced to `now`.
    pub fn arrive(&mut self, now: Picos, index: usize, packet: Packet, out: &mut impl Outputs) {
        let station = &mut self.stations[index];
        let is_free = self.free <= now && station.ready == NEVER;
        station.port.advance_to_arrival(now, &mut out.of(index));
        station.port.set_free(is_free);
        station.port.arrive(now, packet, &mut out.of(index));
        if is_free && station.port.busy_until() > now {
            self.occupy(index);
        } else if station.ready == NEVER && station.port.queue_packets() > 0 {
            station.ready = now;
        }
    }

    /// Somebody's turn has come, or that of both.
    fn contend(&mut self, out: &mut impl Outputs) {
        let now = self.next_access();
        for (index, station) in self.stations.iter_mut().enumerate() {
            station.port.advance_to_arrival(now, &mut out.of(index));
        }
        let wants = |index: usize| self.stations[index].ready <= now;
        let (both, second) = (wants(0) && wants(1), usize::from(wants(1)));
        self.hash = fold(self.hash ^ now, MIX[1] ^ (2 * u64::from(both) + second as u64));
        match (both, self.access) {
            (false, _) => self.transmit(now, second, out),
            (true, Access::Fair) => self.transmit(now, 1 - self.last, out),
            (true, Access::CsmaCd(csma)) => self.collide(now, csma, out),
        }
    }

    /// The first packet of a station gets through.
    fn transmit(&mut self, now: Picos, index: usize, out: &mut impl Outputs) {
        let station = &mut self.stations[index];
        station.port.grant(now, &mut out.of(index));
        station.collisions = 0;
        station.wait(now);
        // A queue law may have dropped all that waited. Then nothing was sent, and what comes next is not before now.
        self.free = self.free.max(now);
        if station.port.busy_until() > now {
            self.occupy(index);
        }
    }

    /// A transmission has begun.
    fn occupy(&mut self, index: usize) {
        self.last = index;
        self.free = self.stations[index].port.busy_until().saturating_add(self.gap);
    }

    /// Both began at once: they notice, jam, and try again after times of their own.
    fn collide(&mut self, now: Picos, csma: CsmaCd, out: &mut impl Outputs) {
        let end = now.saturating_add(time_of(csma.jam.into(), self.rate.0));
        let slot = time_of(csma.slot.into(), self.rate.0);
        self.free = end.saturating_add(self.gap);
        for (index, station) in self.stations.iter_mut().enumerate() {
            station.port.note_collision();
            station.collisions += 1;
            if station.collisions >= csma.attempts {
                station.port.give_up(now, &mut out.of(index));
                station.collisions = 0;
                station.wait(now);
            } else {
                let slots = station.backoff.below(1 << station.collisions.min(csma.backoff_limit));
                station.ready = end.saturating_add(slots.saturating_mul(slot));
            }
        }
    }

    /// Returns a hash of who contended when; the ports have hashes of what happened at them.
    pub const fn fingerprint(&self) -> u64 {
        self.hash
    }

    /// Returns the number of packets that wait at port `index`.
    pub fn queue_packets(&self, index: usize) -> u64 {
        self.stations[index].port.queue_packets()
    }

    /// Returns the number of random words drawn for back-offs.
    pub fn draws(&self) -> u64 {
        self.stations.iter().map(|station| station.backoff.draws()).sum()
    }

    /// Returns the two ports, in order.
    pub fn into_ports(self) -> [Port; 2] {
        self.stations.map(|station| station.port)
    }
}

impl Station {
    /// The next packet, if there is one, tries as soon as the medium is free.
    fn wait(&mut self, now: Picos) {
        self.ready = if self.port.queue_packets() > 0 { now } else { NEVER };
    }
}
