//! Where packets wait for their window: chunks of 32 packets, recycled last in, first out.
//!
//! One growing `Vec` a window costs page faults; one large chunk a window costs memory when windows
//! hold few packets (docs/design/engine.md 7, pitfalls 1 and 2). Chunks of 2 KiB do neither. Each is in a box of its own, so
//! that who gives its packets out can hold it meanwhile.

use std::hint::black_box;

use congestlab_net::packet::Packet;

/// Packets in a chunk; a power of two.
pub(crate) const CHUNK: usize = 32;
const CHUNK_BITS: u32 = CHUNK.trailing_zeros();
/// Chunks that are made at once, 256 KiB: a small run stays small.
const GROWTH: u32 = 128;
const NONE: u32 = u32::MAX;

/// Position of a packet in the store: its chunk, then its slot.
pub(crate) type Place = u32;

pub(crate) type Chunk = [Packet; CHUNK];

/// Packets in the order in which they were pushed: a list of chunks of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    head: u32,
    /// The place after the last packet; the first of a chunk: there is no room left.
    cursor: Place,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { head: NONE, cursor: 0 }
    }
}

impl Bucket {
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// True if the next packet needs a new chunk.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.cursor & (CHUNK as u32 - 1) == 0
    }

    /// The last chunk of one that is not empty.
    #[inline]
    pub(crate) fn last_chunk(&self) -> u32 {
        self.tail().0
    }

    /// The last chunk of one that is not empty, and the packets in it.
    fn tail(&self) -> (u32, u32) {
        let last = self.cursor - 1;
        (last >> CHUNK_BITS, (last & (CHUNK as u32 - 1)) + 1)
    }
}

/// The chunks of all buckets.
#[derive(Debug)]
pub(crate) struct Store {
    #[expect(clippy::vec_box, reason = "a chunk is exchanged for another without moving its packets")]
    chunks: Vec<Box<Chunk>>,
    /// Chunk that follows in its bucket, or in the list of free ones.
    next: Vec<u32>,
    /// Packets in each chunk that another follows in its bucket.
    fill: Vec<u32>,
    free: u32,
    /// Free ones that came with mail, and are in no cache of this thread.
    cold: u32,
}

impl Default for Store {
    fn default() -> Self {
        Self { chunks: Vec::new(), next: Vec::new(), fill: Vec::new(), free: NONE, cold: NONE }
    }
}

impl Store {
    /// Appends a packet; returns it where it is.
    #[inline]
    pub(crate) fn push(&mut self, bucket: &mut Bucket, packet: &Packet) -> &mut Packet {
        if bucket.is_full() {
            self.extend(bucket);
        }
        let place = bucket.cursor;
        // The last place but one of all is never reached: `grow` stops before.
        bucket.cursor = place.wrapping_add(1);
        let to = &mut self.chunks[(place >> CHUNK_BITS) as usize][place as usize & (CHUNK - 1)];
        *to = *packet;
        to
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.next.len() as u32;
        assert!(
            first <= (NONE >> CHUNK_BITS) - 2 * GROWTH,
            "more packets in flight than the store can number"
        );
        // An allocator that asks the system for every few kilobytes, as glibc's does on all threads but the first, asks once.
        drop(black_box(Vec::<Chunk>::with_capacity(GROWTH as usize + 2)));
        self.chunks.extend((0..GROWTH).map(|_| Box::new([Packet::default(); CHUNK])));
        self.fill.resize(self.chunks.len(), CHUNK as u32);
        self.link(first, first + GROWTH);
    }

    #[inline(never)]
    fn extend(&mut self, bucket: &mut Bucket) {
        if self.free == NONE {
            self.free = std::mem::replace(&mut self.cold, NONE);
        }
        if self.free == NONE {
            self.grow();
        }
        let chunk = self.free;
        self.free = self.next[chunk as usize];
        self.append(bucket, chunk);
    }

    /// Appends a chunk that was free.
    #[inline]
    fn append(&mut self, bucket: &mut Bucket, chunk: u32) {
        self.next[chunk as usize] = NONE;
        if bucket.is_empty() {
            bucket.head = chunk;
        } else {
            self.next[bucket.tail().0 as usize] = chunk;
        }
        self.fill[chunk as usize] = CHUNK as u32;
        bucket.cursor = chunk << CHUNK_BITS;
    }

    /// Exchanges an empty chunk for one that was in use until now, if there is any: it is in the cache.
    pub(crate) fn warm(&mut self, empty: &mut Box<Chunk>) {
        let chunk = self.free;
        if chunk != NONE {
            self.free = std::mem::replace(&mut self.next[chunk as usize], self.cold);
            self.cold = chunk;
            self.swap(chunk, empty);
        }
    }

    /// Appends a full chunk, and gives an empty one for it, which need not be in the cache.
    pub(crate) fn exchange(&mut self, bucket: &mut Bucket, full: &mut Box<Chunk>) {
        if !bucket.is_full() {
            let (tail, fill) = bucket.tail();
            self.fill[tail as usize] = fill;
        }
        let chunk = self.cold;
        if chunk == NONE {
            self.extend(bucket);
        } else {
            self.cold = self.next[chunk as usize];
            self.append(bucket, chunk);
        }
        self.swap(bucket.cursor >> CHUNK_BITS, full);
        bucket.cursor += CHUNK as u32;
    }

    /// Size of all chunks.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.len() * size_of::<Chunk>()
    }

    /// Takes every chunk back.
    pub(crate) fn clear(&mut self) {
        let end = self.next.len() as u32;
        self.next.clear();
        self.link(0, end);
    }

    /// Appends chunks `first..end`, which follow each other and are all that is free.
    fn link(&mut self, first: u32, end: u32) {
        self.next.extend((first + 1..=end).map(|n| if n == end { NONE } else { n }));
        self.free = if first < end { first } else { NONE };
        self.cold = NONE;
    }

    /// The packet at a place.
    #[inline]
    pub(crate) fn get(&self, place: Place) -> &Packet {
        &self.chunks[(place >> CHUNK_BITS) as usize][place as usize & (CHUNK - 1)]
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, place: Place) -> &mut Packet {
        &mut self.chunks[(place >> CHUNK_BITS) as usize][place as usize & (CHUNK - 1)]
    }

    /// The first `fill` packets of a chunk.
    #[inline]
    pub(crate) fn chunk(&self, chunk: u32, fill: u32) -> &[Packet] {
        &self.chunks[chunk as usize][..fill as usize]
    }

    /// Exchanges a chunk for another, and back again.
    #[inline]
    pub(crate) fn swap(&mut self, chunk: u32, other: &mut Box<Chunk>) {
        std::mem::swap(&mut self.chunks[chunk as usize], other);
    }

    /// Appends the chunks of a bucket to `chunks` with the number of packets in each.
    pub(crate) fn chunks(&self, bucket: &Bucket, chunks: &mut Vec<(u32, u32)>) {
        if bucket.is_empty() {
            return;
        }
        let (tail, fill) = bucket.tail();
        let mut chunk = bucket.head;
        while chunk != tail {
            chunks.push((chunk, self.fill[chunk as usize]));
            chunk = self.next[chunk as usize];
        }
        chunks.push((tail, fill));
    }

    /// Takes a bucket's chunks back.
    pub(crate) fn take_back(&mut self, bucket: Bucket) {
        if !bucket.is_empty() {
            self.next[bucket.tail().0 as usize] = self.free;
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
                store.push(&mut a, &Packet { seq: round * 10_000 + n, ..Packet::default() });
                if n % 3 == 0 {
                    store.push(&mut b, &Packet { seq: n, ..Packet::default() });
                }
            }
            assert_eq!(contents(&store, &a), (0..1000).map(|n| round * 10_000 + n).collect::<Vec<_>>());
            assert_eq!(contents(&store, &b), (0..1000).step_by(3).collect::<Vec<_>>());
            store.take_back(a);
            store.take_back(b);
        }
        assert_eq!(store.chunks.len(), GROWTH as usize, "chunks are used again");
    }

    #[test]
    fn a_chunk_that_is_exchanged_comes_after_what_was_pushed_before() {
        let (mut store, mut bucket) = (Store::default(), Bucket::default());
        let (mut chunk, mut expected) = (Box::new([Packet::default(); CHUNK]), Vec::new());
        for round in 0..9 {
            chunk.iter_mut().zip(1000 * round..).for_each(|(packet, seq)| packet.seq = seq);
            expected.extend(chunk.iter().map(|packet| packet.seq));
            store.exchange(&mut bucket, &mut chunk);
            // As many as a chunk holds, or some, or none.
            for seq in (1000 * round + 100..).take(round as usize % 3 * CHUNK / 2) {
                store.push(&mut bucket, &Packet { seq, ..Packet::default() });
                expected.push(seq);
            }
        }
        assert_eq!(contents(&store, &bucket), expected);
        store.take_back(bucket);
        let mut again = Bucket::default();
        (0..100).for_each(|seq| _ = store.push(&mut again, &Packet { seq, ..Packet::default() }));
        assert_eq!(contents(&store, &again), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn an_ordinal_names_one_packet() {
        for (index, slot) in [(0, 0), (0, 15), (7, 3), (1 << 20, 9)] {
            assert_eq!(locate(ordinal(index, slot)), (index, slot));
        }
    }
}
