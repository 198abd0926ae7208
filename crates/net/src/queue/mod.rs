//! Memory of packets that wait. Who gets in, who goes next and who is marked or dropped, a queue law of
//! [`congestlab_core::law::queue`] decides.
//!
//! The packet in transmission has left the queue: it counts in no limit and in no length (docs/design/contract.md 2).

pub(crate) mod meter;
mod row;

use crate::packet::{PS_PER_NS, Packet, Picos, flag};
use crate::random::{Probability, Stream};
use crate::service::{PS_PER_S, Service};
use alloc::vec;
use alloc::vec::Vec;
use congestlab_core::law::queue::{Chance, Draws, Queues};
pub use congestlab_core::law::queue::{Discipline, Limit, Reason, Record, red, step, xcp_tcp};
use congestlab_core::units::{Bytes, Duration};
use row::Row;

impl Draws for Stream {
    #[inline]
    fn draw(&mut self, chance: Chance) -> bool {
        self.bernoulli(Probability(chance.0))
    }
}

impl From<Probability> for Chance {
    fn from(probability: Probability) -> Self {
        Self(probability.0)
    }
}

impl From<Chance> for Probability {
    fn from(chance: Chance) -> Self {
        Self(chance.0)
    }
}

/// The queues of a port, as its law sees them.
pub(crate) struct Waiting<'a> {
    first: &'a Fifo,
    others: &'a mut Others,
    service: &'a Service,
    now: Picos,
    /// A packet that arrives must wait.
    waits: bool,
    /// Since when the link has had nothing to do; `None`: it has.
    idle_since: Option<Picos>,
}

impl<'a> Waiting<'a> {
    /// The queues of a busy port.
    pub(crate) fn new(first: &'a Fifo, others: &'a mut Others, service: &'a Service, now: Picos) -> Self {
        Self { first, others, service, now, waits: true, idle_since: None }
    }

    /// The queues as an arrival meets them.
    pub(crate) fn met(self, waits: bool, idle_since: Option<Picos>) -> Self {
        Self { waits, idle_since, ..self }
    }

    #[inline]
    fn of(&self, queue: usize) -> &Fifo {
        queue.checked_sub(1).and_then(|other| self.others.fifos.get(other)).unwrap_or(self.first)
    }
}

impl Queues for Waiting<'_> {
    #[inline]
    fn packets(&self, queue: usize) -> u64 {
        self.of(queue).len() as u64
    }

    #[inline]
    fn bytes(&self, queue: usize) -> Bytes {
        Bytes(self.of(queue).bytes())
    }

    #[inline]
    fn backlog(&self) -> Bytes {
        Bytes(self.first.bytes() + self.others.bytes)
    }

    #[inline]
    fn sojourn(&self, queue: usize) -> Duration {
        Duration(self.of(queue).packets.front().map_or(0, |first| (self.now - first.at) / PS_PER_NS))
    }

    #[inline]
    fn has_room(&self, queue: usize, size: Bytes) -> bool {
        let size = size.0 as u16;
        !self.waits || (self.of(queue).fits(size) && self.others.fit(self.first, size))
    }

    #[inline]
    fn has_room_behind_low_priority(&self, queue: usize, size: Bytes) -> bool {
        self.of(queue).has_room_behind_low_priority(size.0 as u16)
    }

    #[inline]
    fn unused(&self) -> Option<Bytes> {
        let span = self.now - self.idle_since?;
        let bits = u128::from(span) * u128::from(self.service.rate_at(self.now).0);
        Some(Bytes(u64::try_from(bits / (8 * u128::from(PS_PER_S))).unwrap_or(u64::MAX)))
    }

    #[inline]
    fn record(&mut self, queue: usize) -> Option<&mut Record> {
        self.others.records.get_mut(queue)
    }
}

/// The queues of a port beside its first, and what its law keeps of each queue.
#[derive(Clone, Debug)]
pub(crate) struct Others {
    fifos: Vec<Fifo>,
    /// Records of the law, one of every queue, the first too, and as many more as it wants; none where a queue is alone.
    records: Vec<Record>,
    /// Packets and bytes that wait here.
    packets: usize,
    bytes: u64,
    /// Limit of all queues together.
    total: Limit,
}

impl Others {
    pub(crate) fn new(discipline: &Discipline, port: Limit) -> Self {
        let queues = discipline.queues();
        Self {
            fifos: (1..queues).map(|queue| Fifo::new(discipline.limit(queue, port))).collect(),
            records: if queues > 1 { vec![Record::default(); discipline.records()] } else { Vec::new() },
            packets: 0,
            bytes: 0,
            total: discipline.total(port),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.fifos.is_empty()
    }

    #[inline]
    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of one of them.
    #[inline]
    pub(crate) fn bytes_of(&self, other: usize) -> u64 {
        self.fifos.get(other).map_or(0, Fifo::bytes)
    }

    /// True if a packet of this size may wait too, by the limit of all queues.
    #[inline]
    fn fit(&self, first: &Fifo, size: u16) -> bool {
        match self.total {
            Limit::Packets(most) => ((first.len() + self.packets) as u64) < most,
            Limit::Bytes(most) => first.bytes() + self.bytes + u64::from(size) <= most,
            Limit::None => true,
        }
    }

    /// True if more waits, with the first queue, than may.
    #[inline]
    pub(crate) fn overflows(&self, first: &Fifo) -> bool {
        match self.total {
            Limit::Packets(most) => (first.len() + self.packets) as u64 > most,
            Limit::Bytes(most) => first.bytes() + self.bytes > most,
            Limit::None => false,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, other: usize, packet: &Packet) {
        if let Some(fifo) = self.fifos.get_mut(other) {
            self.packets += 1;
            self.bytes += u64::from(packet.size);
            fifo.push(packet);
        } else {
            debug_assert!(false, "a queue that is not there");
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self, other: usize) -> Option<Packet> {
        let packet = self.fifos.get_mut(other)?.pop()?;
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    pub(crate) fn for_each(&mut self, each: &mut impl FnMut(&mut Packet)) {
        self.fifos.iter_mut().for_each(|fifo| fifo.for_each(&mut *each));
    }

    /// As [`Fifo::make_room`].
    pub(crate) fn make_room(&mut self, other: usize, size: u16) -> Option<Packet> {
        let packet = self.fifos.get_mut(other)?.make_room(size)?;
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }
}

/// A FIFO that knows its bytes and its limit.
#[derive(Clone, Debug)]
pub(crate) struct Fifo {
    packets: Row,
    bytes: u64,
    /// Packets of low priority among them.
    low: u64,
    packets_max: u64,
    bytes_max: u64,
}

impl Fifo {
    pub(crate) fn new(limit: Limit) -> Self {
        let (packets_max, bytes_max) = match limit {
            Limit::Packets(packets) => (packets, u64::MAX),
            Limit::Bytes(bytes) => (u64::MAX, bytes),
            Limit::None => (u64::MAX, u64::MAX),
        };
        Self { packets: Row::default(), bytes: 0, low: 0, packets_max, bytes_max }
    }

    pub(crate) fn for_each(&mut self, each: impl FnMut(&mut Packet)) {
        self.packets.for_each(each);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if a packet of this size may wait too.
    #[inline]
    pub(crate) fn fits(&self, size: u16) -> bool {
        (self.len() as u64) < self.packets_max && self.bytes + u64::from(size) <= self.bytes_max
    }

    /// Appends a packet; returns it as it waits.
    #[inline]
    pub(crate) fn push(&mut self, packet: &Packet) -> &mut Packet {
        self.bytes += u64::from(packet.size);
        // Hardly ever: a branch is cheaper than a sum.
        if is_low_priority(packet) {
            self.low += 1;
        }
        self.packets.push(packet)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = *self.call()?.0;
        self.release();
        Some(packet)
    }

    /// Counts the first packet out, which stays where it is until [`Fifo::release`]; with the bytes that wait behind it.
    #[inline]
    pub(crate) fn call(&mut self) -> Option<(&mut Packet, Bytes)> {
        let packet = self.packets.front_mut()?;
        self.bytes -= u64::from(packet.size);
        if is_low_priority(packet) {
            self.low -= 1;
        }
        Some((packet, Bytes(self.bytes)))
    }

    /// The first packet has left.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.packets.release();
    }

    /// True if pushing out low-priority packets would make room for `size` bytes.
    pub(crate) fn has_room_behind_low_priority(&self, size: u16) -> bool {
        if self.low == 0 {
            return false;
        }
        let (mut packets, mut bytes) = (self.len() as u64, self.bytes + u64::from(size));
        for low in self.packets.iter().rev().filter(|packet| is_low_priority(packet)) {
            packets -= 1;
            bytes -= u64::from(low.size);
            if packets < self.packets_max && bytes <= self.bytes_max {
                return true;
            }
        }
        false
    }

    /// Takes out the newest low-priority packet, while there is no room for `size` bytes.
    pub(crate) fn make_room(&mut self, size: u16) -> Option<Packet> {
        if self.fits(size) { None } else { self.push_out() }
    }

    fn push_out(&mut self) -> Option<Packet> {
        let behind = self.packets.iter().rev().position(is_low_priority)?;
        let packet = self.packets.remove(self.len() - 1 - behind);
        self.bytes -= u64::from(packet.size);
        self.low -= 1;
        Some(packet)
    }
}

#[inline]
pub(crate) fn is_low_priority(packet: &Packet) -> bool {
    packet.flags & flag::LOW_PRIORITY != 0
}
