//! A policer at a port: the law of [`congestlab_core::law::police`], with a record for each flow of a table that does not
//! grow. Who has no place there is one flow together with all others that have none.

use crate::flows::place;
use crate::packet::Packet;
use alloc::vec::Vec;
use congestlab_core::law::police::{Bucket, Counts, Police, Record, WAYS};
use congestlab_core::units::{Bytes, Rate, Time};

/// Policing of a port.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    police: Police,
    table: Table,
}

/// Records of flows: a flow has one of its bucket's, or none.
#[derive(Clone, Debug)]
struct Table {
    count: u32,
    /// Records of a bucket that are used.
    ways: usize,
    /// Empty until the first packet comes.
    buckets: Vec<Bucket>,
}

/// The name of a packet's flow in a bucket.
fn name(packet: &Packet) -> u64 {
    u64::from(packet.flow) + 1
}

impl Table {
    /// The bucket in which a packet's flow may be.
    #[inline]
    fn bucket(&mut self, packet: &Packet) -> Option<&mut Bucket> {
        if self.buckets.is_empty() {
            self.buckets.resize(self.count as usize, Bucket::default());
        }
        self.buckets.get_mut(place([packet.flow, 0, 0], self.count))
    }
}

impl Policer {
    /// Creates a policer with so many records.
    pub(crate) fn new(records: u32) -> Self {
        let ways = records.clamp(1, WAYS as u32);
        let table = Table { count: (records / ways).max(1), ways: ways as usize, buckets: Vec::new() };
        Self { police: Police::new(), table }
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.police.counts()
    }

    /// Judges a packet that arrives at a link of so much capacity. False: it is to be dropped. May lower what its header
    /// states.
    pub(crate) fn judge(&mut self, now: Time, capacity: Rate, packet: &mut Packet) -> bool {
        let Self { police, table } = self;
        let (name, ways) = (name(packet), table.ways);
        let mut record = None;
        if let Some(bucket) = table.bucket(packet) {
            match bucket.find(name) {
                Some(at) => record = bucket.records.get_mut(at),
                None => drop(bucket.begin(ways, name, now, Bytes(packet.size.into()))),
            }
        }
        police.judge_packet(now, capacity, record, packet)
    }

    /// The record of a packet's flow.
    fn record(&mut self, packet: &Packet) -> Option<&mut Record> {
        let bucket = self.table.bucket(packet)?;
        let at = bucket.find(name(packet))?;
        bucket.records.get_mut(at)
    }

    /// Notes what a packet was granted that leaves.
    pub(crate) fn note_departure(&mut self, packet: &Packet) {
        if let Some(record) = self.record(packet) {
            record.note_departure(packet);
        }
    }

    /// Notes that a packet found no room.
    pub(crate) fn note_drop(&mut self, packet: &Packet) {
        if let Some(record) = self.record(packet) {
            record.note_drop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use congestlab_core::units::SECOND;

    const CAPACITY: Rate = Rate(1_250_000);

    fn packet(flow: u32) -> Packet {
        Packet { flow, size: 1000, ..Packet::default() }
    }

    fn knows(policer: &Policer, flow: u32) -> bool {
        names(policer).any(|name| name == u64::from(flow) + 1)
    }

    fn names(policer: &Policer) -> impl Iterator<Item = u64> {
        policer.table.buckets.iter().flat_map(|bucket| bucket.flows).filter(|name| *name != 0)
    }

    /// A million names of one packet each neither grow the table nor take the place of a flow that sends.
    #[test]
    fn made_up_names_take_nobodys_place() {
        for records in [1, 7, 64] {
            let mut policer = Policer::new(records);
            for at in 0..2 {
                assert!(policer.judge(Time(at), CAPACITY, &mut packet(0)));
            }
            for name in 1..1_000_000_u32 {
                let now = Time(u64::from(name) * 10_000);
                policer.judge(now, CAPACITY, &mut packet(name));
                if name % 1000 == 0 {
                    policer.judge(now, CAPACITY, &mut packet(0));
                }
            }
            let known = names(&policer).count();
            assert!(known <= records as usize, "{known} of {records}");
            assert_eq!(policer.table.buckets.len(), records.div_ceil(8) as usize);
            assert!(knows(&policer, 0), "{records}");
        }
    }

    #[test]
    fn a_record_is_anothers_once_its_flow_is_silent_for_long() {
        let mut policer = Policer::new(1);
        for at in 0..2 {
            policer.judge(Time(at), CAPACITY, &mut packet(7));
        }
        policer.judge(Time(10 * SECOND), CAPACITY, &mut packet(8));
        assert!(knows(&policer, 7) && !knows(&policer, 8));
        policer.judge(Time(10 * SECOND + 2), CAPACITY, &mut packet(8));
        assert!(!knows(&policer, 7) && knows(&policer, 8));
    }

    /// Flows in the table are held to a share each, and those that found no room in it together.
    #[test]
    fn datagrams_beyond_the_link_are_held_known_or_not() {
        for records in [1, 64] {
            let mut policer = Policer::new(records);
            // One flow has the only record, if there is one only; the two others send more than the link's rate each.
            let (mut passed, mut held) = ([0; 3], false);
            for at in 0..2 {
                assert!(policer.judge(Time(at), CAPACITY, &mut packet(0)));
            }
            for at in 1..40_000_u64 {
                let now = Time(at * 500_000);
                for flow in 0..3 {
                    let is_due = flow > 0 || at % 40 == 0;
                    if is_due && policer.judge(now, CAPACITY, &mut packet(flow)) {
                        passed[flow as usize] += 1;
                    } else if is_due {
                        assert!(flow > 0, "the flow that has less than a share is let through");
                        held = true;
                    }
                }
            }
            assert!(held && policer.counts().dropped > 10_000, "{records}: {:?}", policer.counts());
            assert_eq!(passed[0], 999, "{records}");
        }
    }
}
