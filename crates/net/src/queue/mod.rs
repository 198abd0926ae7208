//! Queue disciplines: the fate of a packet that arrives at a full or filling queue.
//!
//! One FIFO per port ([`crate::port`]); a discipline only decides who gets in. The packet in
//! transmission has left the queue: it counts in no limit and in no length (docs/design/contract.md 2).

pub mod classes;
pub mod red;

use crate::packet::{Packet, flag};
use alloc::collections::VecDeque;

/// Limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets of any size.
    Packets(u64),
    /// A number of bytes of whole IP packets.
    Bytes(u64),
    /// No limit: access and exit links.
    None,
}

/// Rule by which a port chooses between waiting, marking and dropping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Drop-tail: the arrival is dropped when the queue is full.
    DropTail,
    /// As drop-tail, but data that arrives at a full queue takes the place of the newest
    /// low-priority packets in it (Morabito's priority mechanism for TCP-Peach; protocols 10.4). More
    /// waiting than this, and low-priority packets that arrive are dropped (GTNetS).
    PrioDropTail(Limit),
    /// Random early detection.
    Red(red::Config),
    /// Two classes: XCP's packets apart from all others, which RED manages.
    XcpTcp(classes::Config),
}

/// Reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// The queue was full when the packet arrived, for packets of its priority.
    QueueFull,
    /// RED chose the packet.
    RedEarly,
    /// RED's average is above its upper threshold, where everything goes.
    RedForced,
    /// Low priority: data took its place in a full queue.
    PushedOut,
    /// XCP's own queue was full when the packet arrived.
    XcpQueueFull,
    /// The packet collided with the other direction of a shared medium too often.
    ExcessiveCollisions,
}

impl Reason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::QueueFull,
        Self::RedEarly,
        Self::RedForced,
        Self::PushedOut,
        Self::XcpQueueFull,
        Self::ExcessiveCollisions,
    ];

    /// Returns the reason's name in results and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::RedEarly => "red-early",
            Self::RedForced => "red-forced",
            Self::PushedOut => "pushed-out",
            Self::XcpQueueFull => "xcp-queue-full",
            Self::ExcessiveCollisions => "excessive-collisions",
        }
    }
}

/// A FIFO that knows its bytes and its limit.
#[derive(Clone, Debug)]
pub(crate) struct Fifo {
    packets: VecDeque<Packet>,
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
        Self { packets: VecDeque::new(), bytes: 0, low: 0, packets_max, bytes_max }
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

    #[inline]
    pub(crate) fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.size);
        self.low += u64::from(is_low_priority(&packet));
        self.packets.push_back(packet);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        self.low -= u64::from(is_low_priority(&packet));
        Some(packet)
    }

    /// True if more waits than that.
    #[inline]
    pub(crate) fn exceeds(&self, threshold: Limit) -> bool {
        match threshold {
            Limit::Packets(packets) => self.len() as u64 > packets,
            Limit::Bytes(bytes) => self.bytes > bytes,
            Limit::None => false,
        }
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

    /// Takes out the newest low-priority packet.
    pub(crate) fn push_out(&mut self) -> Option<Packet> {
        let newest = self.packets.iter().rposition(is_low_priority)?;
        let packet = self.packets.remove(newest)?;
        self.bytes -= u64::from(packet.size);
        self.low -= 1;
        Some(packet)
    }
}

#[inline]
pub(crate) fn is_low_priority(packet: &Packet) -> bool {
    packet.flags & flag::LOW_PRIORITY != 0
}
