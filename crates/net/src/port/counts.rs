//! Counts of a port, in the whole run and while measuring.

use crate::capacity::CapacityCounts;
use crate::queue::Reason;
use crate::stats::Histogram;
use congestlab_core::law::police::Counts;
use congestlab_core::law::{LinkReport, Series};
use congestlab_core::units::Duration;

/// Counts of a port, since the beginning of the run. Complete after [`Port::finish`](super::Port::finish).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortStats {
    /// Packets that came, dropped or not.
    pub arrived_packets: u64,
    /// Packets whose last bit left.
    pub sent_packets: u64,
    /// Packets that reached the far end unbroken.
    pub delivered_packets: u64,
    /// Packets that reached the far end broken.
    pub errors: u64,
    /// Packets dropped, by [`Reason`].
    pub drops: [u64; Reason::ALL.len()],
    /// Packets marked.
    pub marks: u64,
    /// Transmissions that collided; `None`: the wire is the port's own.
    pub collisions: Option<u64>,
    /// Packets that wait, are in transmission or on the wire at the end.
    pub in_flight_end: u64,
    /// Bytes of packets whose last bit left while measuring.
    pub measured_bytes: u64,
    /// Time-weighted mean of the packets waiting while measuring; `None` if that was no time.
    pub queue_mean_packets: Option<f64>,
    /// The least length that the queue did not exceed for 95 % of the measured time.
    pub queue_p95_packets: Option<u64>,
    /// The most packets that waited at once in the whole run.
    pub queue_max_packets: u64,
    /// The most packets that waited at once while measuring.
    pub measured_max_packets: u64,
    /// Packets waiting at the end.
    pub queue_end_packets: u64,
    /// Waiting times of the packets whose transmission began while measuring; `None` without any.
    pub queue_delay: Option<QueueDelay>,
    /// Counts when the measurement began.
    pub before: PortCounts,
    /// Last report of the law, if there is one.
    pub law: Option<LinkReport>,
    /// Counts of the policer, if there is one.
    pub police: Option<Counts>,
    /// Counts of the source of the law's capacity, if there is one.
    pub capacity: Option<CapacityCounts>,
}

/// Times that packets waited, from their arrival until their transmission began. Percentiles are those of [`Histogram`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueDelay {
    /// Mean, ns.
    pub mean_ns: f64,
    /// Half of the packets waited no longer.
    pub p50: Duration,
    /// 95 % of the packets waited no longer.
    pub p95: Duration,
    /// 99 % of the packets waited no longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl PortStats {
    /// Returns the counts since the beginning of the run.
    pub fn counts(&self) -> PortCounts {
        PortCounts {
            arrived_packets: self.arrived_packets,
            sent_packets: self.sent_packets,
            errors: self.errors,
            drops: self.drops,
            marks: self.marks,
            collisions: self.collisions,
            bounded_packets: self.law.as_ref().and_then(Series::bounded_packets),
            police: self.police,
            capacity: self.capacity,
            queue_max_packets: self.queue_max_packets,
        }
    }

    /// Returns the counts while measuring.
    pub fn measured(&self) -> PortCounts {
        let (all, before) = (self.counts(), &self.before);
        PortCounts {
            arrived_packets: all.arrived_packets - before.arrived_packets,
            sent_packets: all.sent_packets - before.sent_packets,
            errors: all.errors - before.errors,
            drops: core::array::from_fn(|reason| all.drops[reason] - before.drops[reason]),
            marks: all.marks - before.marks,
            collisions: all.collisions.map(|all| all - before.collisions.unwrap_or(0)),
            bounded_packets: all.bounded_packets.map(|all| all - before.bounded_packets.unwrap_or(0)),
            police: all.police.map(|all| all.since(before.police.unwrap_or_default())),
            capacity: all.capacity.map(|all| all.since(before.capacity.unwrap_or_default())),
            queue_max_packets: self.measured_max_packets,
        }
    }

    /// So many packets waited.
    pub(super) fn note_queue(&mut self, longest: usize) {
        self.queue_max_packets = self.queue_max_packets.max(longest as u64);
        self.measured_max_packets = self.measured_max_packets.max(longest as u64);
    }
}

/// Counts and the maximum of a port over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Packets that came, dropped or not.
    pub arrived_packets: u64,
    /// Packets whose last bit left.
    pub sent_packets: u64,
    /// Packets that reached the far end broken.
    pub errors: u64,
    /// Packets dropped, by [`Reason`].
    pub drops: [u64; Reason::ALL.len()],
    /// Packets marked.
    pub marks: u64,
    /// Transmissions that collided; `None`: the wire is the port's own.
    pub collisions: Option<u64>,
    /// Packets that counted for less than they stated; `None`: the law has no such bound.
    pub bounded_packets: Option<u64>,
    /// Counts of the policer; `None`: there is none.
    pub police: Option<Counts>,
    /// Counts of the source of the law's capacity, if there is one.
    pub capacity: Option<CapacityCounts>,
    /// The most packets that waited at once.
    pub queue_max_packets: u64,
}

impl PortCounts {
    /// Returns the number of packets dropped, for all reasons.
    pub fn dropped_packets(&self) -> u64 {
        self.drops.iter().sum()
    }
}

/// Returns the waiting times of so many packets, of which `waits` has those that waited.
pub(super) fn delay(waits: &Histogram, packets: u64) -> Option<QueueDelay> {
    let zeros = packets.checked_sub(waits.count()).filter(|_| packets > 0)?;
    Some(QueueDelay {
        mean_ns: waits.sum().0 as f64 / packets as f64,
        p50: waits.percentile_beside(zeros, 50)?,
        p95: waits.percentile_beside(zeros, 95)?,
        p99: waits.percentile_beside(zeros, 99)?,
        max: waits.max(),
    })
}
