//! A set of segment numbers, kept as ranges: those that a sender knows to be SACKed, or that a receiver
//! holds out of order.

use alloc::vec::Vec;
use core::ops::Range;

/// Places at the front that are left empty before the rest moves down, at least.
const SLACK: usize = 32;

/// Sorted, disjoint, never adjacent half-open ranges.
///
/// Holes close at the front, new ranges open at the back, and whichever side is shorter moves: with
/// 10^6 segments in flight and 1 % of them lost there are 10^4 ranges, and an acknowledgment costs a
/// binary search. They are in one piece, since a search in a ring takes half as long again.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    list: Vec<(u64, u64)>,
    /// The first range; those before it are removed.
    begin: usize,
    /// Where [`Ranges::skip`] ended last, or nowhere.
    hint: usize,
}

impl Ranges {
    #[inline]
    fn as_slice(&self) -> &[(u64, u64)] {
        &self.list[self.begin..]
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.begin == self.list.len()
    }

    #[inline]
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.as_slice().first().copied()
    }

    #[inline]
    pub(super) fn last(&self) -> Option<(u64, u64)> {
        self.as_slice().last().copied()
    }

    /// From the highest range down.
    pub(super) fn iter_down(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.as_slice().iter().rev().copied()
    }

    /// The range that holds `segment`.
    pub(super) fn around(&self, segment: u64) -> Option<(u64, u64)> {
        let list = self.as_slice();
        let at = list.partition_point(|range| range.1 <= segment);
        list.get(at).copied().filter(|range| range.0 <= segment)
    }

    /// The end of the range that holds `segment`, else `segment`: for calls that go up step by step.
    #[inline]
    pub(super) fn skip(&mut self, segment: u64) -> u64 {
        if self.is_empty() {
            return segment;
        }
        let (begin, list) = (self.begin, &self.list);
        let is_it = |at: usize| {
            (at == begin || at > begin && list.get(at - 1).is_some_and(|below| below.1 <= segment))
                && list.get(at).is_some_and(|range| segment < range.1)
        };
        let at = match self.hint {
            hint if is_it(hint) => hint,
            hint if is_it(hint + 1) => hint + 1,
            _ => begin + self.as_slice().partition_point(|range| range.1 <= segment),
        };
        self.hint = at;
        match self.list.get(at) {
            Some(range) if range.0 <= segment => range.1,
            _ => segment,
        }
    }

    /// Adds `start..end`, which is not empty; returns how many of these segments are new, and the range that holds
    /// them now.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> (u64, (u64, u64)) {
        debug_assert!(start < end);
        // Most news extends the highest range, or opens a new one above it.
        match self.list[self.begin..].last_mut() {
            Some(last) if last.0 <= start && start <= last.1 => {
                let new = end.saturating_sub(last.1);
                last.1 += new;
                return (new, *last);
            }
            Some(last) if start < last.0 => {}
            _ => {
                self.list.push((start, end));
                return (end - start, (start, end));
            }
        }
        // Holes close at the front.
        let is_first = start <= self.list[self.begin].1;
        let above = |list: &[(u64, u64)]| list.partition_point(|range| range.1 < start);
        let first = self.begin + if is_first { 0 } else { above(self.as_slice()) };
        let mut merged = (start, end);
        let mut known = 0;
        let mut after = first;
        while let Some(&range) = self.list.get(after)
            && range.0 <= end
        {
            known += range.1.min(end).saturating_sub(range.0.max(start));
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            after += 1;
        }
        if after == first {
            self.open(first, merged);
        } else {
            self.list[first] = merged;
            self.close(first + 1..after);
        }
        (end - start - known, merged)
    }

    /// Puts a range before the one at `at`.
    fn open(&mut self, at: usize, range: (u64, u64)) {
        if self.begin > 0 && at - self.begin < self.list.len() - at {
            self.list.copy_within(self.begin..at, self.begin - 1);
            self.begin -= 1;
            self.list[at - 1] = range;
        } else {
            self.list.insert(at, range);
        }
    }

    /// Takes out the ranges at these places.
    fn close(&mut self, gone: Range<usize>) {
        if gone.is_empty() {
            return;
        }
        if gone.start - self.begin < self.list.len() - gone.end {
            self.list.copy_within(self.begin..gone.start, self.begin + gone.len());
            self.begin += gone.len();
        } else {
            self.list.drain(gone);
        }
    }

    /// Removes everything below `segment`; returns how many segments that were.
    pub(super) fn remove_below(&mut self, segment: u64) -> u64 {
        let mut removed = 0;
        while let Some(first) = self.list.get_mut(self.begin)
            && first.0 < segment
        {
            if first.1 <= segment {
                removed += first.1 - first.0;
                self.begin += 1;
            } else {
                removed += segment - first.0;
                first.0 = segment;
            }
        }
        if self.begin >= SLACK && self.begin >= self.list.len() / 2 {
            self.list.drain(..self.begin);
            self.begin = 0;
        }
        removed
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.begin = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;
    use crate::tcp::tests::Random;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn neighbours_merge_and_holes_stay() {
        let mut set = Ranges::default();
        assert_eq!(set.insert(5, 7), (2, (5, 7)));
        assert_eq!(set.insert(9, 10), (1, (9, 10)));
        assert_eq!(set.insert(7, 8), (1, (5, 8)));
        assert_eq!(set.iter_down().collect::<Vec<_>>(), [(9, 10), (5, 8)]);
        assert_eq!(set.insert(6, 12), (3, (5, 12)));
        assert_eq!(set.iter_down().collect::<Vec<_>>(), [(5, 12)]);
        assert_eq!(set.insert(6, 12), (0, (5, 12)));
        assert_eq!(set.remove_below(8), 3);
        assert_eq!((set.first(), set.last()), (Some((8, 12)), Some((8, 12))));
    }

    #[test]
    fn a_range_set_is_a_set_of_segments() {
        let mut random = Random(1);
        let mut draw = |below| random.below(below);
        for _ in 0..200 {
            let (mut set, mut naive) = (Ranges::default(), BTreeSet::new());
            for _ in 0..60 {
                if draw(10) == 0 {
                    let edge = draw(80);
                    let below = naive.iter().filter(|&&s| s < edge).count() as u64;
                    assert_eq!(set.remove_below(edge), below);
                    naive.retain(|&s| s >= edge);
                } else {
                    let start = draw(80);
                    let end = start + 1 + draw(8);
                    let new = (start..end).filter(|&s| naive.insert(s)).count() as u64;
                    let (count, range) = set.insert(start, end);
                    assert_eq!((count, Some(range)), (new, set.around(start)));
                }
                let ranges: Vec<_> = set.iter_down().collect();
                assert!(ranges.windows(2).all(|pair| pair[1].1 < pair[0].0), "{ranges:?}");
                for s in 0..90 {
                    assert_eq!(set.around(s).is_some(), naive.contains(&s));
                }
                let mut at = draw(40);
                while at < 90 {
                    let next = set.skip(at);
                    assert!((at..next).all(|s| naive.contains(&s)) && !naive.contains(&next));
                    at = next + 1 + draw(2);
                }
            }
        }
    }
}
