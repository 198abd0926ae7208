//! The wire of a port, and what has gone on it.

use crate::packet::Picos;

/// Counts of transmissions.
#[derive(Clone, Debug)]
pub(super) struct Line {
    // Each beside one that stays as it is: compilers would change two neighbours at once, which takes longer.
    /// Transmissions that have begun.
    pub(super) started: u64,
    /// Propagation delay, ps.
    delay: Picos,
    /// Bytes whose transmission has begun.
    pub(super) started_bytes: u64,
    /// End of the run.
    pub(super) to: Picos,
    /// End of the transmission that began last.
    pub(super) busy_until: Picos,
    /// Packets that come to the far end within the run.
    pub(super) delivered: u64,
    /// Size of the packet that began transmission last.
    current: u16,
}

impl Line {
    pub(super) fn new(delay: Picos, to: Picos) -> Self {
        Self { started: 0, delay, started_bytes: 0, to, busy_until: 0, delivered: 0, current: 0 }
    }

    /// Counts a transmission of `size` bytes that ends at `end`; returns when it is at the far end.
    #[inline]
    pub(super) fn begin(&mut self, size: u16, end: Picos) -> Picos {
        self.busy_until = end;
        self.current = size;
        self.started += 1;
        self.started_bytes += u64::from(size);
        end.saturating_add(self.delay)
    }

    /// Counts a packet that comes to the far end at `at`.
    #[inline]
    pub(super) fn deliver(&mut self, at: Picos) {
        self.delivered += u64::from(at <= self.to);
    }

    /// Bytes of the packets whose last bit left by `t`, when everything up to `t` is served.
    pub(super) fn sent_bytes(&self, t: Picos) -> u64 {
        self.started_bytes - if self.busy_until > t { u64::from(self.current) } else { 0 }
    }
}
