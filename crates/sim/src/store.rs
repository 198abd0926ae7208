//! Where packets wait for their window: chunks of 16 packets, recycled last in, first out.
//!
//! One growing `Vec` a window costs page faults; one large chunk a window costs memory when windows
//! hold few packets (engine.md §7, pitfalls 1 and 2). Chunks of 1 KiB from larger slabs do neither.

use congestlab_net::packet::Packet;

/// Packets in a chunk; a power of two.
const CHUNK: usize = 16;
const CHUNK_BITS: u32 = CHUNK.trailing_zeros();
/// Chunks in a slab of 256 KiB: a small run stays small.
const SLAB: usize = 256;
const SLAB_BITS: u32 = SLAB.trailing_zeros();
const NONE: u32 = u32::MAX;

type Chunk = [Packet; CHUNK];

/// Position of a packet in the store.
pub(crate) type Place = u32;

/// Packets in the order in which they were pushed: a list of chunks of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    head: u32,
    tail: u32,
    /// Packets in the last chunk.
    fill: u32,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, fill: CHUNK as u32 }
    }
}

impl Bucket {
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The last chunk, if it is not the one that was last in `before`.
    #[inline]
    pub(crate) fn grown(&self, before: &Self) -> Option<u32> {
        (self.tail != before.tail).then_some(self.tail)
    }
}

/// The chunks of all buckets.
#[derive(Debug, Default)]
pub(crate) struct Store {
    slabs: Vec<Box<[Chunk]>>,
    /// Chunk that follows in its bucket, or in the list of free ones.
    next: Vec<u32>,
    free: u32,
    ready: bool,
}

impl Store {
    #[inline]
    pub(crate) fn push(&mut self, bucket: &mut Bucket, packet: Packet) {
        if bucket.fill == CHUNK as u32 {
            self.extend(bucket);
        }
        let place = (bucket.tail << CHUNK_BITS) | bucket.fill;
        bucket.fill += 1;
        let chunk = place >> CHUNK_BITS;
        self.slabs[(chunk >> SLAB_BITS) as usize][chunk as usize & (SLAB - 1)]
            [place as usize & (CHUNK - 1)] = packet;
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.next.len() as u32;
        assert!(
            first <= (NONE >> CHUNK_BITS) - SLAB as u32,
            "more packets in flight than the store can number"
        );
        self.slabs.push(vec![[Packet::default(); CHUNK]; SLAB].into_boxed_slice());
        self.next.extend(
            (first + 1..=first + SLAB as u32).map(|n| if n == first + SLAB as u32 { NONE } else { n }),
        );
        self.free = first;
        self.ready = true;
    }

    fn extend(&mut self, bucket: &mut Bucket) {
        if !self.ready || self.free == NONE {
            self.grow();
        }
        let chunk = self.free;
        self.free = self.next[chunk as usize];
        self.next[chunk as usize] = NONE;
        if bucket.head == NONE {
            bucket.head = chunk;
        } else {
            self.next[bucket.tail as usize] = chunk;
        }
        (bucket.tail, bucket.fill) = (chunk, 0);
    }

    /// The packet at a place.
    #[inline]
    pub(crate) fn get(&self, place: Place) -> &Packet {
        let chunk = place >> CHUNK_BITS;
        &self.slabs[(chunk >> SLAB_BITS) as usize][chunk as usize & (SLAB - 1)][place as usize & (CHUNK - 1)]
    }

    /// Appends the chunks of a bucket to `chunks` with the number of packets in each.
    pub(crate) fn chunks(&self, bucket: &Bucket, chunks: &mut Vec<(u32, u32)>) {
        let mut chunk = bucket.head;
        while chunk != NONE {
            let fill = if chunk == bucket.tail { bucket.fill } else { CHUNK as u32 };
            chunks.push((chunk, fill));
            chunk = self.next[chunk as usize];
        }
    }

    /// Takes a bucket's chunks back.
    pub(crate) fn release(&mut self, bucket: Bucket) {
        if !bucket.is_empty() {
            self.next[bucket.tail as usize] = self.free;
            self.free = bucket.head;
        }
    }
}

/// Place of packet `slot` of a chunk.
#[inline]
pub(crate) const fn place(chunk: u32, slot: u32) -> Place {
    (chunk << CHUNK_BITS) | slot
}

/// Number of a packet within a list of chunks; [`locate`] is its inverse.
#[inline]
pub(crate) const fn ordinal(chunk_index: usize, slot: u32) -> u64 {
    ((chunk_index as u64) << CHUNK_BITS) | slot as u64
}

/// Index into the list of chunks and slot of an ordinal.
#[inline]
pub(crate) const fn locate(ordinal: u64) -> (usize, u32) {
    ((ordinal >> CHUNK_BITS) as usize, ordinal as u32 & (CHUNK as u32 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(store: &Store, bucket: &Bucket) -> Vec<u32> {
        let mut chunks = Vec::new();
        store.chunks(bucket, &mut chunks);
        chunks
            .iter()
            .flat_map(|&(chunk, fill)| (0..fill).map(move |slot| place(chunk, slot)))
            .map(|p| store.get(p).seq)
            .collect()
    }

    #[test]
    fn a_bucket_returns_its_packets_in_the_order_of_pushes_after_others_were_recycled() {
        let mut store = Store::default();
        for round in 0..5_u32 {
            let (mut a, mut b) = (Bucket::default(), Bucket::default());
            for n in 0..1000 {
                store.push(&mut a, Packet { seq: round * 10_000 + n, ..Packet::default() });
                if n % 3 == 0 {
                    store.push(&mut b, Packet { seq: n, ..Packet::default() });
                }
            }
            assert_eq!(contents(&store, &a), (0..1000).map(|n| round * 10_000 + n).collect::<Vec<_>>());
            assert_eq!(contents(&store, &b), (0..1000).step_by(3).collect::<Vec<_>>());
            store.release(a);
            store.release(b);
        }
        assert_eq!(store.slabs.len(), 1, "chunks are used again");
    }

    #[test]
    fn an_ordinal_names_one_packet() {
        for (index, slot) in [(0, 0), (0, 15), (7, 3), (1 << 20, 9)] {
            assert_eq!(locate(ordinal(index, slot)), (index, slot));
        }
    }
}
