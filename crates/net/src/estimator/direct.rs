//! Direct probing: a train at a known rate comes out slower by as much as others use.
//!
//! In a first-in first-out queue of capacity C that a train of rate Ri fills, the train gets Ri of
//! Ri + y, so it leaves at Ro = C Ri / (Ri + y) and A = C - y = C - Ri (C / Ro - 1) (Strauss, Katabi,
//! Kaashoek, "A measurement study of available bandwidth estimation tools", IMC 2003: Spruce is the
//! same with Ri = C and pairs).

use super::{Probe, Round, bandwidth, rate};
use congestlab_core::units::{Bytes, Rate, Ratio};

/// Settings of direct probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// C, the capacity of the tight link, which no probe can tell.
    pub capacity: Rate,
    /// Ri, the rate of a train; `capacity`. Must be above what is available, or the train says no more than that.
    pub rate: Option<Rate>,
    /// Size of probes as whole IP packets; 500 B (ours). Shorter trains are more for the same load; the least that
    /// own bursts do not hide is some ms.
    pub packet: u16,
    /// Packets of a train; 50 (ours). A packet of cross traffic more or less between the first and
    /// the last is an error of C / packets times what it is longer; the mean has next to none.
    pub packets: u16,
    /// Number of trains over which the estimate is the mean; 11 (ours, as pathChirp).
    pub smoothing: u16,
    /// Part of `capacity` that trains take on average, resting in between; 1 % (assumed, A-22).
    pub load: Ratio,
}

impl Config {
    /// Returns the defaults for a tight link of this capacity.
    pub const fn new(capacity: Rate) -> Self {
        Self { capacity, rate: None, packet: 500, packets: 50, smoothing: 11, load: Ratio(10_000) }
    }

    /// Returns the available bandwidth, B/s, by a train of rate `sent` that arrives at rate `arrived`: A, or `sent`
    /// where it came through as it was and so no more is known. Below zero where others send more than C; not below
    /// -C (ours): a train of which next to nothing comes through has met full queues and measures no rate.
    pub fn available(&self, sent: Rate, arrived: Rate) -> i64 {
        if arrived >= sent || arrived.0 == 0 {
            return bandwidth(sent.min(self.capacity));
        }
        let (capacity, sent) = (i128::from(self.capacity.0), i128::from(sent.0));
        let others = sent * capacity / i128::from(arrived.0) - sent;
        (capacity - others).max(-capacity) as i64
    }

    pub(super) fn train(&self) -> Round {
        let gap = Bytes(u64::from(self.packet)).at(self.rate.unwrap_or(self.capacity).max(Rate(1)));
        Round { size: self.packet, gaps: alloc::vec![gap; usize::from(self.packets.max(2)) - 1] }
    }

    /// Evaluates a train that has passed. Packets that were lost are missing from its rate, as they should be; the
    /// rates are those of what came between the first and the last that did.
    pub(super) fn evaluate(&self, probes: &[Option<Probe>]) -> Option<i64> {
        let mut arrived = probes.iter().flatten();
        let first = arrived.next()?;
        let (last, between) = arrived.fold((first, 0), |(_, count), probe| (probe, count + 1));
        if between == 0 {
            return None;
        }
        let spaces = usize::from(last.number - first.number);
        let sent = rate(spaces, self.packet, last.sent - first.sent);
        let arrived = rate(between, self.packet, last.arrived - first.arrived);
        Some(self.available(sent, arrived))
    }
}
