//! A census of flows: how many have a part in what a queue carries, in memory of a fixed size.
//!
//! Bytes are counted in cells that flows are hashed to, and a cell makes a flow if it has at least an eighth of what the flow of
//! a byte has on average. So ACKs, senders that want next to nothing, and packets that each claim to be of another flow
//! make no number: who wants to be counted twice has to send twice.

use super::{Queues, mix};
use crate::units::Bytes;

/// Cells of a census.
pub const CELLS: usize = RECORDS * WORDS;
/// Records that the cells are kept in.
pub(super) const RECORDS: usize = 102;
/// Words of a record.
const WORDS: usize = 10;
/// A cell counts with so much of the mean or more.
const LEAST: u128 = 8;
/// Bytes of a packet that are headers and no data, with IPv6 and the options of an ACK.
const HEADERS: u64 = 80;
/// Binary places of numbers of flows.
pub const PLACES: u32 = 16;

/// Returns the cell in which the bytes of a flow are counted.
#[inline]
pub fn cell(flow: u32) -> usize {
    (((mix(flow.into()) >> 32) * CELLS as u64) >> 32) as usize
}

/// Returns the bytes that a packet of this size counts with.
#[inline]
pub fn data(size: Bytes) -> u32 {
    u32::try_from(size.0.saturating_sub(HEADERS)).unwrap_or(u32::MAX)
}

/// Returns the number of flows whose bytes are in these cells, with [`PLACES`].
pub fn flows(cells: impl Iterator<Item = u32> + Clone) -> u64 {
    let (mut sum, mut squares) = (0u128, 0u128);
    for bytes in cells.clone() {
        sum += u128::from(bytes);
        squares += u128::from(bytes) * u128::from(bytes);
    }
    let is_flow = |bytes: &u32| *bytes > 0 && LEAST * u128::from(*bytes) * sum >= squares;
    drawn(cells.filter(is_flow).count() as u64)
}

fn cells(queues: &mut impl Queues, first: usize, mut each: impl FnMut(&mut u32)) {
    for record in first..first + RECORDS {
        queues.record(record).into_iter().flatten().for_each(&mut each);
    }
}

/// Notes a packet of a flow in the census whose cells begin with that record.
pub(super) fn note(queues: &mut impl Queues, first: usize, flow: u32, size: Bytes) {
    let cell = cell(flow);
    if let Some(record) = queues.record(first + cell / WORDS) {
        let bytes = &mut record[cell % WORDS];
        *bytes = bytes.saturating_add(data(size));
    }
}

/// Ends the census whose cells begin with that record, which begins anew. Returns the number of flows, with [`PLACES`].
pub(super) fn take(queues: &mut impl Queues, first: usize) -> u64 {
    let mut counted = [0; CELLS];
    let mut places = counted.iter_mut();
    cells(queues, first, |bytes| {
        if let Some(place) = places.next() {
            *place = core::mem::take(bytes);
        }
    });
    flows(counted.into_iter())
}

/// Returns how many draws it takes on average to hit so many different cells, with [`PLACES`].
fn drawn(hit: u64) -> u64 {
    let cells = CELLS as u64;
    (0..hit.min(cells)).map(|before| (cells << PLACES) / (cells - before)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::*;
    use crate::units::Duration;

    struct Store([Record; RECORDS]);

    impl Queues for Store {
        fn packets(&self, _queue: usize) -> u64 {
            0
        }

        fn bytes(&self, _queue: usize) -> Bytes {
            Bytes(0)
        }

        fn backlog(&self) -> Bytes {
            Bytes(0)
        }

        fn sojourn(&self, _queue: usize) -> Duration {
            Duration(0)
        }

        fn has_room(&self, _queue: usize, _size: Bytes) -> bool {
            true
        }

        fn has_room_behind_low_priority(&self, _queue: usize, _size: Bytes) -> bool {
            true
        }

        fn unused(&self) -> Option<Bytes> {
            None
        }

        fn record(&mut self, queue: usize) -> Option<&mut Record> {
            self.0.get_mut(queue)
        }
    }

    fn count(store: &mut Store) -> f64 {
        take(store, 0) as f64 / f64::from(1 << PLACES)
    }

    fn store() -> Store {
        Store([Record::default(); RECORDS])
    }

    /// A draw for each of many flows leaves a cell empty with (1 - 1/m)^n, so that the number has a deviation of about
    /// sqrt(m (e^(n/m) - n/m - 1)): within four of them, and a packet.
    #[test]
    fn flows_are_counted_up_to_twice_as_many_as_cells() {
        let mut store = store();
        assert_eq!(count(&mut store), 0.0);
        let cells = CELLS as f64;
        for base in 0..50u32 {
            for flows in [1, 2, 3, 10, 30, 100, 300, 1000, 2000] {
                for packet in 0..3 * flows {
                    note(&mut store, 0, (base << 16) + packet % flows, Bytes(1080));
                }
                let (counted, load) = (count(&mut store), f64::from(flows) / cells);
                // Terms of e^load from the third on.
                let term = |(term, sum): (f64, f64), n: u32| (term * load / f64::from(n), sum + term);
                let (_, rest) = (3..40).fold((load * load / 2.0, 0.0), term);
                let deviation = (cells * rest).sqrt();
                let error = (counted - f64::from(flows)).abs();
                assert!(error <= 4.0 * deviation + 1.0, "{flows} flows from {base}: {counted}");
            }
        }
    }

    #[test]
    fn who_sends_next_to_nothing_or_no_data_is_not_counted() {
        let mut store = store();
        for packet in 0..1000 {
            note(&mut store, 0, packet % 10, Bytes(1500));
            note(&mut store, 0, 100 + packet % 10, Bytes(80));
            note(&mut store, 0, 1_000_000 + packet, Bytes(200));
        }
        let counted = count(&mut store);
        assert!((9.0..=10.1).contains(&counted), "{counted}");
    }

    #[test]
    fn full_cells_and_the_largest_packets_overflow_nothing() {
        let mut store = store();
        for flow in 0..100_000 {
            note(&mut store, 0, flow, Bytes(u64::MAX));
        }
        let counted = count(&mut store);
        assert!((7_000.0..8_000.0).contains(&counted), "{counted}");
        assert_eq!(count(&mut store), 0.0, "it begins anew");
    }
}
