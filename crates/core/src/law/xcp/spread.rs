//! Packets whose round trips are much longer than the control interval count in several of them.
//!
//! A flow without pacing sends its window in a burst and is silent until the ACKs are back. Where the control interval
//! is much shorter than its round trip, plain XCP meets it in one interval of many: there the flow is most of what
//! arrives and nearly all of d, and in the others it does not exist (docs/stability.md). Spread, its packets count in
//! each interval with the part `interval / RTT` of what is left of them, about as if the flow paced.

use crate::units::{Duration, Wide};

/// Classes of round trip times, by how many intervals they are longer than: 2, 8, 32 and 128. Those of flows with
/// equal ones differ by what the queue adds, and count at once.
const CLASSES: usize = 4;
/// Binary places of a part: one is 2^32.
const PART: u32 = 32;
/// Binary places of what is summed, for parts of packets count: a million round trips of a second fill 64 bits.
pub(super) const PLACES: u32 = 16;
/// Least rest of a class that is divided, a sixteenth of a packet: of less, the means would be of few places.
const REST: u64 = 1 << (PLACES - 4);
/// Binary places that the sum of X RTT goes without: a million flows whose round trip is a second fill 64 bits.
const COARSE: u32 = 12;

/// Sums over packets. Times are in 2^-28 s; all but `x_rtt` with [`PLACES`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Sums {
    bytes: u64,
    x: u64,
    /// X RTT without its last [`COARSE`] places.
    x_rtt: u64,
    rtt: u64,
    packets: u64,
}

impl Sums {
    // What packets claim may be too much for 64 bits; it ends at the top.
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.x = self.x.saturating_add(other.x);
        self.x_rtt = self.x_rtt.saturating_add(other.x_rtt);
        self.rtt = self.rtt.saturating_add(other.rtt);
        self.packets = self.packets.saturating_add(other.packets);
    }

    /// Takes a part out, with [`PART`] places and at most one.
    #[inline(always)]
    fn take(&mut self, part: u64) -> Self {
        let of = |sum: &mut u64| {
            let taken = (*sum >> PART) * part + (((*sum & u32::MAX as u64) * part) >> PART);
            *sum -= taken;
            taken
        };
        Self {
            bytes: of(&mut self.bytes),
            x: of(&mut self.x),
            x_rtt: of(&mut self.x_rtt),
            rtt: of(&mut self.rtt),
            packets: of(&mut self.packets),
        }
    }
}

/// Sums that count in one interval, of packets with long round trips.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Counted {
    pub(in crate::law) bytes: u64,
    /// X, 2^-28 s.
    pub(in crate::law) x: u64,
    /// X RTT, 2^-56 s^2.
    pub(super) x_rtt: Wide,
    /// RTT, 2^-28 s, and how many packets; both with [`PLACES`].
    pub(super) rtt: u64,
    pub(super) packets: u64,
}

/// Packets that have come and not counted in full, by the class of their round trip time.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(in crate::law) struct Spread {
    waiting: [Sums; CLASSES],
}

impl Spread {
    /// Takes a packet with its X and RTT, as they count, in an interval of that length; all in 2^-28 s. False: its
    /// round trip is no longer than two intervals, and the packet counts at once.
    #[inline(always)]
    pub(in crate::law) fn on_arrival(&mut self, x: u32, rtt: u32, bytes: u64, interval: u32) -> bool {
        let is_above = |times: u32| (rtt > interval.saturating_mul(times)) as usize;
        if is_above(2) == 0 {
            return false;
        }
        if let Some(waiting) = self.waiting.get_mut(is_above(8) + is_above(32) + is_above(128)) {
            waiting.add(&Sums {
                bytes: bytes.saturating_mul(1 << PLACES),
                x: (x as u64) << PLACES,
                x_rtt: (x as u64 * rtt as u64) >> COARSE,
                rtt: (rtt as u64) << PLACES,
                packets: 1 << PLACES,
            });
        }
        true
    }

    /// Takes out what counts in an interval of that length.
    #[inline(always)]
    pub(in crate::law) fn count(&mut self, interval: Duration) -> Counted {
        let interval = (interval.to_header() as u64) << PART;
        let mut sums = Sums::default();
        for waiting in &mut self.waiting {
            // Without packets there is no mean and nothing to take.
            let Some(mean) = waiting.rtt.checked_div(waiting.packets) else { continue };
            let part = if waiting.packets < REST { 1 << PART } else { interval / mean.max(1) };
            sums.add(&waiting.take(part.min(1 << PART)));
        }
        Counted {
            bytes: sums.bytes >> PLACES,
            x: sums.x >> PLACES,
            x_rtt: Wide::shifted(sums.x_rtt, COARSE),
            rtt: sums.rtt,
            packets: sums.packets,
        }
    }
}
