//! Packets in a row, in blocks of memory that are used again.
//!
//! A long row takes little more memory than its packets, and gives it back as it becomes shorter; a short one stays in one block, and
//! in the cache. One ring would be as long as the row ever was, and more, and go round through all of it.

use crate::packet::Packet;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

/// Packets in a block, 8 KiB: of smaller ones a thread asks the system too often for more.
const BLOCK: usize = 128;
/// Places of a block at first.
const LEAST: usize = 4;

/// A queue whose first packet can be worked on where it is, and then left behind: a packet is written once as it joins.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// The block of the first packet; those before it were left behind.
    head: Vec<Packet>,
    first: usize,
    len: usize,
    /// There are packets behind the head.
    is_long: bool,
    /// The packets that joined last, of a long row.
    tail: Vec<Packet>,
    /// Full blocks between both.
    middle: VecDeque<Vec<Packet>>,
    /// An empty block, for the next tail.
    spare: Vec<Packet>,
}

impl Row {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&Packet> {
        self.head.get(self.first)
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut Packet> {
        self.head.get_mut(self.first)
    }

    /// The block that packets join.
    #[inline]
    fn last(&mut self) -> &mut Vec<Packet> {
        if self.is_long { &mut self.tail } else { &mut self.head }
    }

    /// Appends a packet; returns it as it waits.
    #[inline]
    pub(super) fn push(&mut self, packet: &Packet) -> &mut Packet {
        let last = self.last();
        if last.len() == last.capacity() {
            self.make_room();
        }
        self.len += 1;
        let block = self.last();
        let place = block.len();
        block.push(*packet);
        &mut block[place]
    }

    #[inline(never)]
    fn make_room(&mut self) {
        if !self.is_long && self.first > self.head.len() / 2 {
            self.head.drain(..mem::take(&mut self.first));
        } else if self.last().len() < BLOCK {
            let len = self.last().len();
            self.last().reserve_exact(len.max(LEAST).min(BLOCK - len));
        } else {
            let mut next = mem::take(&mut self.spare);
            next.reserve_exact(BLOCK);
            let full = mem::replace(&mut self.tail, next);
            if mem::replace(&mut self.is_long, true) {
                self.middle.push_back(full);
            }
        }
    }

    /// Leaves the first packet, which is there, behind.
    #[inline]
    pub(super) fn release(&mut self) {
        self.first += 1;
        self.len -= 1;
        if self.first == self.head.len() {
            self.first = 0;
            self.head.clear();
            if self.is_long {
                self.leave_block();
            }
        }
    }

    /// The block behind the head, which has nothing more, is the head.
    #[inline(never)]
    fn leave_block(&mut self) {
        if let Some(next) = self.middle.pop_front() {
            self.spare = mem::replace(&mut self.head, next);
        } else {
            self.is_long = false;
            self.head = mem::take(&mut self.tail);
            self.spare = Vec::new();
        }
    }

    /// The packet at a position behind the first, which is there.
    fn at(&mut self, position: usize) -> &mut Packet {
        let position = self.first + position;
        let Some(position) = position.checked_sub(self.head.len()) else { return &mut self.head[position] };
        match position.checked_sub(BLOCK * self.middle.len()) {
            None => &mut self.middle[position / BLOCK][position % BLOCK],
            Some(position) => &mut self.tail[position],
        }
    }

    /// Takes out the packet at a position, which is there.
    pub(super) fn remove(&mut self, position: usize) -> Packet {
        let packet = *self.at(position);
        for position in position + 1..self.len {
            *self.at(position - 1) = *self.at(position);
        }
        // One less of the last ones.
        self.last().pop();
        self.len -= 1;
        if self.is_long && self.tail.is_empty() {
            let before = self.middle.pop_back();
            self.is_long = before.is_some();
            self.tail = before.unwrap_or_default();
        }
        if self.is_empty() {
            self.first = 0;
            self.head.clear();
        }
        packet
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Packet> {
        let head = self.head.get(self.first..).unwrap_or_default();
        head.iter().chain(self.middle.iter().flatten()).chain(&self.tail)
    }

    pub(super) fn for_each(&mut self, each: impl FnMut(&mut Packet)) {
        let head = self.head.get_mut(self.first..).unwrap_or_default();
        head.iter_mut().chain(self.middle.iter_mut().flatten()).chain(&mut self.tail).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;

    #[test]
    fn a_row_holds_what_a_deque_holds() {
        let (mut row, mut deque) = (Row::default(), VecDeque::new());
        let mut state = 1_u64;
        for seq in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let choice = state >> 33;
            // Longer and longer, then shorter and shorter.
            let is_growing = seq % 1000 < 500;
            if choice.is_multiple_of(16) && !deque.is_empty() {
                let position = (choice >> 4) as usize % deque.len();
                assert_eq!(Some(row.remove(position)), deque.remove(position));
            } else if choice.is_multiple_of(4) != is_growing {
                let packet = Packet { seq, ..Packet::default() };
                assert_eq!(*row.push(&packet), packet);
                deque.push_back(packet);
            } else if let Some(packet) = deque.pop_front() {
                assert_eq!(row.front_mut(), Some(&mut { packet }));
                row.release();
            }
            assert_eq!((row.len(), row.is_empty()), (deque.len(), deque.is_empty()));
            assert_eq!(row.front(), deque.front());
            assert!(row.iter().eq(&deque));
            let mut seen = VecDeque::new();
            row.for_each(|packet| seen.push_back(*packet));
            assert_eq!(seen, deque);
            if seq.is_multiple_of(97) {
                row = row.clone();
            }
        }
    }
}
