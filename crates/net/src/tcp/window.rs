//! The window that a receiver advertises: always the same, more with every ACK, or what its reader leaves free.

use congestlab_core::units::{Duration, Time};

use super::config::{Advertise, Config};

/// State of a window that changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    acks: u64,
    /// When everything delivered so far will have been read, and by how much the rounding up of that
    /// is too late, in 10^-9 bit of the rate.
    read_at: Time,
    credit: u64,
}

/// Work of reading a byte, in 10^-9 bit: a rate in bit/s times nanoseconds.
const WORK_PER_BYTE: u64 = 8_000_000_000;

impl Window {
    /// `bytes` were delivered in order.
    pub(super) fn deliver(&mut self, config: &Config, now: Time, bytes: u64) {
        if let Advertise::Reading { rate, .. } = config.advertise {
            if self.read_at <= now {
                (self.read_at, self.credit) = (now, 0);
            }
            // A filled gap delivers much at once.
            let work = u128::from(bytes) * u128::from(WORK_PER_BYTE);
            let work = work.saturating_sub(self.credit.into());
            let span = work.div_ceil(rate.0.into());
            self.credit = (span * u128::from(rate.0) - work) as u64;
            self.read_at = self.read_at + Duration(u64::try_from(span).unwrap_or(u64::MAX));
        }
    }

    /// An ACK is sent.
    pub(super) fn note_ack(&mut self) {
        self.acks += 1;
    }

    /// The window, segments; `None`: unlimited.
    pub(super) fn segments(&self, config: &Config, now: Time) -> Option<u32> {
        let own = match config.advertise {
            Advertise::Always => return config.awnd,
            Advertise::Growing { from, per_ack } => {
                u64::from(from).saturating_add(self.acks.saturating_mul(per_ack.into()))
            }
            Advertise::Reading { rate, buffer } => {
                let left = u128::from((self.read_at - now).0) * u128::from(rate.0);
                let unread = u64::try_from(left.div_ceil(WORK_PER_BYTE.into())).unwrap_or(u64::MAX);
                buffer.0.saturating_sub(unread) / u64::from(config.segment.max(1))
            }
        };
        let own = u32::try_from(own).unwrap_or(u32::MAX - 1);
        Some(config.awnd.map_or(own, |awnd| awnd.min(own)))
    }

    /// When a closed window opens: as soon as a segment fits (RFC 9293 §3.8.6.2.2). The sender probes
    /// too, in case that the update is lost.
    pub(super) fn opens_at(&self, config: &Config) -> Time {
        match config.advertise {
            Advertise::Reading { rate, buffer } => {
                let full = buffer.0.saturating_sub(config.segment.into());
                let span = u128::from(full) * u128::from(WORK_PER_BYTE) / u128::from(rate.0);
                Time(self.read_at.0.saturating_sub(u64::try_from(span).unwrap_or(u64::MAX)))
            }
            _ => Time::NEVER,
        }
    }
}
