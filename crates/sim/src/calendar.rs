//! A calendar of things due, by window: a ring of near windows and an ordered map of far ones.

use std::collections::BTreeMap;

/// Number of a window: its time divided by the window's length.
pub(crate) type Window = u64;

/// One slot a window.
#[derive(Debug)]
pub(crate) struct Calendar<T> {
    ring: Vec<T>,
    /// Bit `n`: slot `n` of the ring is in use.
    used: Vec<u64>,
    far: BTreeMap<Window, T>,
    /// The first window that can still be written; the ring covers as many from here as it is long.
    now: Window,
}

impl<T: Default> Calendar<T> {
    /// `windows`: length of the ring, rounded up to a power of two of at least 64. `now`: the first window.
    pub(crate) fn new(windows: u64, now: Window) -> Self {
        let length = windows.next_power_of_two().clamp(64, 1 << 16) as usize;
        Self {
            ring: (0..length).map(|_| T::default()).collect(),
            used: vec![0; length / 64],
            far: BTreeMap::new(),
            now,
        }
    }

    /// The slot of a window that is not over, if it is near and already in use by the caller's own
    /// measure `is_used`; [`Calendar::slot`] is for all others.
    #[inline]
    pub(crate) fn used_slot(&mut self, window: Window, is_used: impl Fn(&T) -> bool) -> Option<&mut T> {
        let mask = self.ring.len() - 1;
        // A window that is over wraps to a distance that no ring is long.
        if window.wrapping_sub(self.now) >= self.ring.len() as u64 {
            return None;
        }
        self.ring.get_mut(window as usize & mask).filter(|slot| is_used(slot))
    }

    /// The slot of a window that is not over.
    #[inline]
    pub(crate) fn slot(&mut self, window: Window) -> &mut T {
        debug_assert!(window >= self.now, "window {window} is over, now {}", self.now);
        if window - self.now < self.ring.len() as u64 {
            let index = window as usize & (self.ring.len() - 1);
            self.used[index / 64] |= 1 << (index % 64);
            &mut self.ring[index]
        } else {
            self.far.entry(window).or_default()
        }
    }

    /// Opens a window: what was put off for it while it was far, then the rest. Earlier windows are
    /// over, and so is this one: later writes go to windows after it.
    pub(crate) fn open(&mut self, window: Window) -> (Option<T>, Option<T>) {
        let index = window as usize & (self.ring.len() - 1);
        let bit = 1 << (index % 64);
        let near = (window >= self.now
            && window - self.now < self.ring.len() as u64
            && self.used[index / 64] & bit != 0)
            .then(|| {
                self.used[index / 64] &= !bit;
                std::mem::take(&mut self.ring[index])
            });
        self.now = window + 1;
        (self.far.remove(&window), near)
    }

    /// The first window in use.
    pub(crate) fn first(&self) -> Option<Window> {
        let length = self.ring.len();
        let start = self.now as usize & (length - 1);
        let mut near = None;
        let words = self.used.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.used[word];
            if step == 0 {
                bits &= !0 << (start % 64);
            } else if step == words {
                bits &= !(!0 << (start % 64));
            }
            if bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                near = Some(self.now + ((index + length - start) & (length - 1)) as u64);
                break;
            }
        }
        let far = self.far.first_key_value().map(|(&w, _)| w);
        match (near, far) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_opens_windows_in_order_and_keeps_what_was_put_in_first() {
        let mut calendar: Calendar<Vec<u64>> = Calendar::new(64, 0);
        let mut oracle: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let (mut now, mut state) = (0, 1_u64);
        for n in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let window = now + 1 + (state >> 33) % 200;
            calendar.slot(window).push(n);
            oracle.entry(window).or_default().push(n);
            if state >> 62 == 0 {
                let first = calendar.first().expect("something is in it");
                let (window, expected) = oracle.pop_first().expect("something is in it");
                assert_eq!(first, window);
                let (far, near) = calendar.open(first);
                let mut got = far.unwrap_or_default();
                got.extend(near.unwrap_or_default());
                assert_eq!(got, expected);
                now = first;
            }
        }
    }

    #[test]
    fn an_empty_calendar_has_no_first_window() {
        assert_eq!(Calendar::<Vec<u8>>::new(100, 0).first(), None);
    }
}
