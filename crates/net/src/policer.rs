//! A policer at a port: the law of [`congestlab_core::law::police`], with a record for each flow of a table that does not
//! grow. Who has no place there is one flow together with all others that have none: a flow keeps its place while it sends,
//! so that nobody gets rid of his record, or of another one's, by names that he makes up.

use crate::flows::{WAYS, place};
use crate::packet::Packet;
use alloc::vec::Vec;
use congestlab_core::law::police::{Counts, Police, Record};
use congestlab_core::units::{Bytes, Duration, Rate, SECOND, Time};

/// Time without packets after which a flow's record may be another's. An offender is forgiven as soon: that is twenty
/// windows of the shortest round trips.
const IDLE: Duration = Duration(10 * SECOND);

/// Policing of a port.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    police: Police,
    table: Table,
}

/// Records of flows: a flow has one of its bucket's slots, or none.
#[derive(Clone, Debug)]
struct Table {
    buckets: u32,
    ways: u32,
    /// Empty until the first packet comes.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    flow: Option<u32>,
    record: Record,
}

impl Slot {
    /// How little would be lost, if another flow had the slot; `None`: it is in use.
    fn room(&self, now: Time) -> Option<(u8, Time)> {
        let seen = self.record.seen();
        match self.flow {
            None => Some((0, seen)),
            Some(_) if now - seen > IDLE => Some((1, seen)),
            Some(_) if !self.record.is_established() => Some((2, seen)),
            Some(_) => None,
        }
    }
}

impl Table {
    /// The slots in which a flow may be.
    #[inline]
    fn bucket(&mut self, flow: u32) -> &mut [Slot] {
        let ways = self.ways as usize;
        if self.slots.is_empty() {
            self.slots.resize(self.buckets as usize * ways, Slot::default());
        }
        let first = place([flow, 0, 0], self.buckets) * ways;
        self.slots.get_mut(first..first + ways).unwrap_or_default()
    }
}

impl Policer {
    /// Creates a policer with so many records.
    pub(crate) fn new(records: u32) -> Self {
        let ways = records.clamp(1, WAYS);
        let table = Table { buckets: (records / ways).max(1), ways, slots: Vec::new() };
        Self { police: Police::new(), table }
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.police.counts()
    }

    /// Judges a packet that arrives at a link of so much capacity. False: it is to be dropped. May lower what its header
    /// states.
    pub(crate) fn judge(&mut self, now: Time, capacity: Rate, packet: &mut Packet) -> bool {
        let Self { police, table } = self;
        let bucket = table.bucket(packet.flow);
        let known = bucket.iter_mut().find(|slot| slot.flow == Some(packet.flow));
        match known {
            Some(slot) => police.judge_packet(now, capacity, Some(&mut slot.record), packet),
            None => {
                let free = bucket.iter_mut().filter_map(|slot| Some((slot.room(now)?, slot)));
                if let Some((_, slot)) = free.min_by_key(|&(room, _)| room) {
                    let record = Record::first(now, Bytes(packet.size.into()));
                    *slot = Slot { flow: Some(packet.flow), record };
                }
                police.judge_packet(now, capacity, None, packet)
            }
        }
    }

    /// The record of a packet's flow.
    fn record(&mut self, packet: &Packet) -> Option<&mut Record> {
        let slot = self.table.bucket(packet.flow).iter_mut().find(|slot| slot.flow == Some(packet.flow));
        slot.map(|slot| &mut slot.record)
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

    const CAPACITY: Rate = Rate(1_250_000);

    fn packet(flow: u32) -> Packet {
        Packet { flow, size: 1000, ..Packet::default() }
    }

    fn knows(policer: &Policer, flow: u32) -> bool {
        policer.table.slots.iter().any(|slot| slot.flow == Some(flow))
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
            assert!(
                policer.table.slots.len() <= records as usize,
                "{} of {records}",
                policer.table.slots.len()
            );
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
