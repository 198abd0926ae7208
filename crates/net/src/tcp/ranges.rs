//! A set of segment numbers, kept as ranges: those that a sender knows to be SACKed, or that a receiver
//! holds out of order.

use alloc::collections::VecDeque;

/// Sorted, disjoint, never adjacent half-open ranges.
///
/// Holes close at the front, new ranges open at the back, so that a ring moves few entries: with
/// 10^6 segments in flight and 1 % of them lost it holds 10^4 ranges, and an acknowledgment costs a
/// binary search.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    list: VecDeque<(u64, u64)>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.list.front().copied()
    }

    pub(super) fn last(&self) -> Option<(u64, u64)> {
        self.list.back().copied()
    }

    /// From the highest range down.
    pub(super) fn iter_down(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.list.iter().rev().copied()
    }

    /// The range that holds `segment`.
    pub(super) fn around(&self, segment: u64) -> Option<(u64, u64)> {
        let at = self.list.partition_point(|range| range.1 <= segment);
        self.list.get(at).copied().filter(|range| range.0 <= segment)
    }

    /// Adds `start..end`; returns how many of these segments are new.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // Most news extends the highest range.
        if let Some(last) = self.list.back_mut()
            && last.0 <= start
            && start <= last.1
        {
            let new = end.saturating_sub(last.1);
            last.1 += new;
            return new;
        }
        let first = self.list.partition_point(|range| range.1 < start);
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
            self.list.insert(first, merged);
        } else {
            self.list[first] = merged;
            self.list.drain(first + 1..after);
        }
        end - start - known
    }

    /// Removes everything below `segment`; returns how many segments that were.
    pub(super) fn remove_below(&mut self, segment: u64) -> u64 {
        let mut removed = 0;
        while let Some(first) = self.list.front_mut()
            && first.0 < segment
        {
            if first.1 <= segment {
                removed += first.1 - first.0;
                self.list.pop_front();
            } else {
                removed += segment - first.0;
                first.0 = segment;
            }
        }
        removed
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
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
        assert_eq!(set.insert(5, 7), 2);
        assert_eq!(set.insert(9, 10), 1);
        assert_eq!(set.insert(7, 8), 1);
        assert_eq!(set.iter_down().collect::<Vec<_>>(), [(9, 10), (5, 8)]);
        assert_eq!(set.insert(6, 12), 3);
        assert_eq!(set.iter_down().collect::<Vec<_>>(), [(5, 12)]);
        assert_eq!(set.insert(6, 12), 0);
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
                    let end = start + draw(9);
                    let new = (start..end).filter(|&s| naive.insert(s)).count() as u64;
                    assert_eq!(set.insert(start, end), new);
                }
                let ranges: Vec<_> = set.iter_down().collect();
                assert!(ranges.windows(2).all(|pair| pair[1].1 < pair[0].0), "{ranges:?}");
                for s in 0..90 {
                    assert_eq!(set.around(s).is_some(), naive.contains(&s));
                }
            }
        }
    }
}
