//! A router's table of flows, which does not grow: for laws that want them remembered
//! ([`LinkLaw::remembers`](congestlab_core::law::LinkLaw::remembers)). What is kept of a flow, and by what name, is the
//! law's.

use crate::packet::Packet;
use alloc::vec::Vec;
use congestlab_core::law::{self, Remembers, Tag, Words};
use congestlab_core::units::{Bytes, Duration, Time};

/// Flows whose hashes fall together: the least recently seen of so many gives way.
pub(crate) const WAYS: u32 = 8;

/// A bounded table of flows.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    buckets: u32,
    ways: u32,
    idle: Duration,
    /// Words of a record.
    words: usize,
    /// Empty until the first flow comes.
    entries: Vec<Entry>,
    /// The records, in the order of the entries.
    records: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Name of the flow; none has zeros.
    key: [u32; 3],
    seen: Time,
}

/// Returns the bucket of a flow among so many.
#[inline]
pub(crate) fn place(key: [u32; 3], buckets: u32) -> usize {
    let word = (u64::from(key[0]) << 32 | u64::from(key[1])) ^ u64::from(key[2]) << 16;
    let hash = word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32; // Fibonacci hashing
    ((hash * u64::from(buckets)) >> 32) as usize
}

impl Flows {
    /// A table for a law that remembers nothing.
    pub(crate) const fn none() -> Self {
        Self { buckets: 1, ways: 1, idle: Duration(0), words: 0, entries: Vec::new(), records: Vec::new() }
    }

    pub(crate) fn new(wanted: Remembers) -> Self {
        let Remembers { flows, idle, words } = wanted;
        let ways = flows.clamp(1, WAYS);
        let buckets = (flows / ways).max(1);
        Self { buckets, ways, idle, words: words as usize, entries: Vec::new(), records: Vec::new() }
    }

    /// Returns the record of a flow; `is_new`: begins one, if there is none.
    #[inline]
    fn find(&mut self, key: [u32; 3], now: Time, is_new: bool) -> Option<&mut [u32]> {
        if self.entries.is_empty() {
            let most = (self.buckets * self.ways) as usize;
            self.entries.resize(most, Entry::default());
            self.records.resize(most * self.words, 0);
        }
        let first = place(key, self.buckets) * self.ways as usize;
        let bucket = self.entries.get_mut(first..first + self.ways as usize)?;
        let (at, is_known) = match bucket.iter().position(|entry| entry.key == key) {
            Some(at) => (at, true),
            None if !is_new => return None,
            None => {
                // An empty one first.
                let age = |at: &usize| (bucket[*at].key != [0; 3], bucket[*at].seen);
                ((0..bucket.len()).min_by_key(age)?, false)
            }
        };
        let entry = bucket.get_mut(at)?;
        let record = (first + at) * self.words;
        let record = self.records.get_mut(record..record + self.words)?;
        if !is_known || now - entry.seen > self.idle {
            record.fill(0);
        }
        *entry = Entry { key, seen: now };
        Some(record)
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
    fn ecn(&self) -> u8 {
        law::Packet::ecn(self.packet)
    }

    #[inline(always)]
    fn set_ecn(&mut self, code: u8) {
        law::Packet::set_ecn(self.packet, code);
    }

    #[inline(always)]
    fn words(&self, tag: Tag) -> Option<&Words> {
        law::Packet::words(self.packet, tag)
    }

    #[inline(always)]
    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        law::Packet::words_mut(self.packet, tag)
    }

    #[inline(always)]
    fn add(&mut self, tag: Tag) -> Option<&mut Words> {
        law::Packet::add(self.packet, tag)
    }

    #[inline(always)]
    fn memory(&mut self, flow: [u32; 3], now: Time, is_new: bool) -> Option<&mut [u32]> {
        self.flows.find(flow, now, is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn key(flow: u32) -> [u32; 3] {
        [0x0a00_0001 + flow, 0x0a80_0001 + flow, 40_000 << 16 | 50_000]
    }

    fn table(most: u32) -> Flows {
        Flows::new(Remembers { flows: most, idle: Duration(10 * SECOND), words: 2 })
    }

    /// A flow that comes for the first time; its record says so from then on.
    fn meet(flows: &mut Flows, flow: u32, now: u64) {
        let found = flows.find(key(flow), Time(now), true).unwrap();
        assert_eq!(found, [0, 0]);
        found.copy_from_slice(&[flow, 1]);
    }

    fn knows(flows: &mut Flows, flow: u32, now: u64) -> bool {
        flows.find(key(flow), Time(now), false).is_some_and(|found| found == [flow, 1])
    }

    #[test]
    fn a_full_bucket_forgets_the_flow_seen_least_recently() {
        for most in [1, 3, 8] {
            let mut flows = table(most);
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
            let mut flows = table(most);
            (0..5000).for_each(|flow| meet(&mut flows, flow, u64::from(flow)));
            let kept = (0..5000).filter(|&flow| knows(&mut flows, flow, 6000)).count();
            assert!(kept <= most as usize, "{kept} of {most}");
            assert!(kept > most as usize / 2, "{kept} of {most}: buckets stay empty");
        }
    }

    #[test]
    fn a_flow_that_is_silent_for_too_long_is_forgotten() {
        let mut flows = table(1024);
        meet(&mut flows, 5, SECOND);
        assert!(knows(&mut flows, 5, 11 * SECOND));
        assert!(!knows(&mut flows, 5, 22 * SECOND));
        assert!(!knows(&mut flows, 6, 22 * SECOND));
    }
}
