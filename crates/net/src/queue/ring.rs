//! Packets in a row, in memory that is used again.

use crate::packet::Packet;
use alloc::vec::Vec;

/// Places at first.
const LEAST: usize = 4;

/// A queue whose first packet can be worked on where it is, and then left behind: a packet is written once as it joins.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    /// The places that had a packet: memory of others is not touched.
    places: Vec<Packet>,
    /// A power of two of places, or none.
    number: usize,
    /// The first packet's place, modulo their number.
    first: usize,
    len: usize,
}

impl Ring {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place of a packet by its position behind the first.
    #[inline]
    fn place(&self, position: usize) -> usize {
        self.first.wrapping_add(position) & self.number.wrapping_sub(1)
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&Packet> {
        if self.is_empty() { None } else { self.places.get(self.place(0)) }
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut Packet> {
        let place = self.place(0);
        if self.is_empty() { None } else { self.places.get_mut(place) }
    }

    /// Appends a packet; returns it as it waits.
    #[inline]
    pub(super) fn push(&mut self, packet: &Packet) -> &mut Packet {
        if self.len == self.number {
            self.grow();
        }
        let place = self.place(self.len);
        self.len += 1;
        // They fill in order until the first packet of all is left behind.
        if place == self.places.len() {
            self.places.push(*packet);
        } else {
            self.places[place] = *packet;
        }
        &mut self.places[place]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let first = self.place(0);
        self.places.rotate_left(first);
        self.number = (2 * self.len).max(LEAST);
        self.places.reserve_exact(self.number - self.len);
        self.first = 0;
    }

    /// Leaves the first packet, which is there, behind.
    #[inline]
    pub(super) fn release(&mut self) {
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
    }

    /// Takes out the packet at a position.
    pub(super) fn remove(&mut self, position: usize) -> Packet {
        let packet = self.places[self.place(position)];
        for position in position + 1..self.len {
            let (to, from) = (self.place(position - 1), self.place(position));
            self.places[to] = self.places[from];
        }
        self.len -= 1;
        packet
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Packet> + ExactSizeIterator {
        (0..self.len).map(|position| &self.places[self.place(position)])
    }

    pub(super) fn for_each(&mut self, each: impl FnMut(&mut Packet)) {
        let (place, len) = (self.place(0), self.len);
        let (end, begin) = self.places.split_at_mut(place);
        begin.iter_mut().chain(end).take(len).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;

    #[test]
    fn a_ring_holds_what_a_deque_holds() {
        let (mut ring, mut deque) = (Ring::default(), VecDeque::new());
        let mut state = 1_u64;
        for seq in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let choice = state >> 33;
            // Longer and longer, then shorter and shorter.
            let is_growing = seq % 1000 < 500;
            if choice.is_multiple_of(16) && !deque.is_empty() {
                let position = (choice >> 4) as usize % deque.len();
                assert_eq!(Some(ring.remove(position)), deque.remove(position));
            } else if choice.is_multiple_of(4) != is_growing {
                let packet = Packet { seq, ..Packet::default() };
                assert_eq!(*ring.push(&packet), packet);
                deque.push_back(packet);
            } else if let Some(packet) = deque.pop_front() {
                assert_eq!(ring.front_mut(), Some(&mut { packet }));
                ring.release();
            }
            assert_eq!((ring.len(), ring.is_empty()), (deque.len(), deque.is_empty()));
            assert_eq!(ring.front(), deque.front());
            assert!(ring.iter().eq(&deque));
            let mut seen = VecDeque::new();
            ring.for_each(|packet| seen.push_back(*packet));
            assert_eq!(seen, deque);
        }
    }
}
