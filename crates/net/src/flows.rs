//! A router's table of flows, which does not grow: for laws that want them remembered
//! ([`LinkLaw::flows`](congestlab_core::law::LinkLaw::flows)). Flows are told apart by addresses and ports.

use crate::packet::Packet;
use alloc::vec::Vec;
use congestlab_core::law::{self, mpcp, xcp};
use congestlab_core::units::{Bytes, Duration, Time};

/// Flows whose hashes fall together: the least recently seen of so many gives way.
const WAYS: u32 = 8;

/// A bounded table of flows.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    buckets: u32,
    ways: u32,
    idle: Duration,
    /// Empty until the first flow comes.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Source, destination, ports; no flow has zeros.
    key: [u32; 3],
    flow: mpcp::Flow,
    seen: Time,
}

impl Flows {
    pub(crate) fn new(most: u32, idle: Duration) -> Self {
        let ways = most.clamp(1, WAYS);
        Self { buckets: (most / ways).max(1), ways, idle, entries: Vec::new() }
    }

    /// Returns the record of a flow; `is_new`: begins one, if there is none.
    #[inline]
    fn find(&mut self, key: [u32; 3], now: Time, is_new: bool) -> Option<&mut mpcp::Flow> {
        if self.entries.is_empty() {
            self.entries.resize((self.buckets * self.ways) as usize, Entry::default());
        }
        let word = (u64::from(key[0]) << 32 | u64::from(key[1])) ^ u64::from(key[2]) << 16;
        let hash = word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32; // Fibonacci hashing
        let first = ((hash * u64::from(self.buckets)) >> 32) as usize * self.ways as usize;
        let bucket = self.entries.get_mut(first..first + self.ways as usize)?;
        let at = match bucket.iter().position(|entry| entry.key == key) {
            Some(at) => at,
            None if !is_new => return None,
            None => {
                // An empty one first.
                let age = |at: &usize| (bucket[*at].key != [0; 3], bucket[*at].seen);
                let oldest = (0..bucket.len()).min_by_key(age)?;
                bucket[oldest] = Entry { key, ..Entry::default() };
                oldest
            }
        };
        let entry = bucket.get_mut(at)?;
        if now - entry.seen > self.idle {
            entry.flow = mpcp::Flow::default();
        }
        entry.seen = now;
        Some(&mut entry.flow)
    }
}

/// A packet before a router that remembers flows.
pub(crate) struct Known<'a> {
    pub(crate) packet: &'a mut Packet,
    pub(crate) flows: &'a mut Flows,
}

impl law::Packet for Known<'_> {
    #[inline(always)]
    fn size(&self) -> Bytes {
        law::Packet::size(self.packet)
    }

    #[inline(always)]
    fn xcp(&self) -> Option<xcp::Header> {
        law::Packet::xcp(self.packet)
    }

    #[inline(always)]
    fn set_xcp(&mut self, header: xcp::Header) {
        self.packet.set_xcp(header);
    }

    #[inline(always)]
    fn ecn(&self) -> u8 {
        law::Packet::ecn(self.packet)
    }

    #[inline(always)]
    fn set_ecn(&mut self, code: u8) {
        law::Packet::set_ecn(self.packet, code);
    }

    #[inline(always)]
    fn segment(&self) -> Option<mpcp::Segment> {
        self.packet.segment()
    }

    #[inline(always)]
    fn flow(&mut self, now: Time, is_new: bool) -> Option<&mut mpcp::Flow> {
        let key = [self.packet.words[5], self.packet.words[6], self.packet.words[3]];
        self.flows.find(key, now, is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn key(flow: u32) -> [u32; 3] {
        [0x0a00_0001 + flow, 0x0a80_0001 + flow, 40_000 << 16 | 50_000]
    }

    /// A flow that has been told apart: the first packet of a chain leaves the second one to it.
    fn meet(flows: &mut Flows, flow: u32, now: u64) {
        let own = mpcp::Level::of(990_000, 2);
        let found = flows.find(key(flow), Time(now), true).unwrap();
        assert_eq!(found.mark(0, 1, &own, mpcp::Algorithm2::Corrected), 2);
    }

    fn knows(flows: &mut Flows, flow: u32, now: u64) -> bool {
        flows.find(key(flow), Time(now), false).is_some_and(|found| *found != mpcp::Flow::default())
    }

    #[test]
    fn a_full_bucket_forgets_the_flow_seen_least_recently() {
        for most in [1, 3, 8] {
            let mut flows = Flows::new(most, Duration(10 * SECOND));
            (0..most).for_each(|flow| meet(&mut flows, flow, u64::from(flow)));
            assert!((0..most).all(|flow| knows(&mut flows, flow, 100 + u64::from(flow))), "{most}");
            meet(&mut flows, most, 200);
            let left: Vec<u32> = (0..=most).filter(|&flow| knows(&mut flows, flow, 300)).collect();
            assert_eq!(left, (1..=most).collect::<Vec<_>>(), "flow 0 gives way");
        }
    }

    #[test]
    fn the_table_never_holds_more_than_it_may() {
        for most in [1, 7, 8, 9, 100, 1024] {
            let mut flows = Flows::new(most, Duration(10 * SECOND));
            (0..5000).for_each(|flow| meet(&mut flows, flow, u64::from(flow)));
            let kept = (0..5000).filter(|&flow| knows(&mut flows, flow, 6000)).count();
            assert!(kept <= most as usize, "{kept} of {most}");
            assert!(kept > most as usize / 2, "{kept} of {most}: buckets stay empty");
        }
    }

    #[test]
    fn a_flow_that_is_silent_for_too_long_is_forgotten() {
        let mut flows = Flows::new(1024, Duration(10 * SECOND));
        meet(&mut flows, 5, SECOND);
        assert!(knows(&mut flows, 5, 11 * SECOND));
        assert!(!knows(&mut flows, 5, 22 * SECOND));
        assert!(!knows(&mut flows, 6, 22 * SECOND));
    }
}
