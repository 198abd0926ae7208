//! The one TCP-like sender and receiver that every window protocol rides on.
//!
//! [`Sender`] opens the connection, keeps the timers, finds and repairs losses and obeys the
//! receiver; how large its window is and what its congestion headers say is decided by a law of
//! `congestlab_core::law`. [`Receiver`] reorders, acknowledges and returns feedback. Neither knows
//! a clock or a wire. Whoever drives them calls
//!
//! - `handle_packet` with what arrives, `handle_deadline` when `next_deadline` has come (later is
//!   allowed, earlier and twice are harmless),
//! - then, for a sender, `poll_transmit` until it returns `None`, all with the same `now`.
//!
//! Data is counted in segments of [`Config::segment`] bytes; sequence numbers are their numbers
//! modulo 2^32, the SYN taking the first. The last segment of a transfer or of a burst is short.
//! Timestamps (RFC 7323) are always on. There is no FIN, no data on the way back, no urgent data.
//!
//! A [`Config`] is shared by all flows of a group and lent to every call, which keeps a flow below
//! 350 bytes: scenarios have 10^5 of them.

mod config;
mod delivery;
mod headers;
mod hystart;
mod hystart_plus;
mod linux;
mod prr;
mod rack;
mod ranges;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod slow_start;
mod tail;
#[cfg(test)]
mod tests;
mod window;

pub use config::{Advertise, App, Config, Measure, Recovery, SlowStart, Wait};
pub use headers::Connection;
pub use receiver::{Receiver, ReceiverCounts, ReceiverStats};
pub use sender::{Mode, Sender, SenderCounts, SenderStats, View};

use congestlab_core::law;
use congestlab_core::units::Bytes;

const _: () = {
    assert!(size_of::<Sender>() - size_of::<law::Sender>() <= 200, "a sender grew");
    assert!(size_of::<Receiver>() <= 80, "a receiver grew");
};

/// The absolute number of the segment that has sequence number `seq`, if it is within 2^31 of
/// `near`; `base` is the sequence number of segment 0. `None` before the beginning.
#[inline]
fn absolute(seq: u32, base: u32, near: u64) -> Option<u64> {
    let distance = seq.wrapping_sub(base.wrapping_add(near as u32)) as i32;
    // No run sends 2^63 segments.
    let number = near as i64 + i64::from(distance);
    (number >= 0).then_some(number as u64)
}

/// As [`in_bytes`], of segments that were sent: no run sends so many that their bytes need more than 64 bits.
#[inline]
fn sent_bytes(config: &Config, segments: u64) -> Bytes {
    Bytes(segments * u64::from(config.segment))
}

/// Whole segments count in windows, however short the last of them is.
#[inline]
fn in_bytes(config: &Config, segments: u64) -> Bytes {
    Bytes(segments.saturating_mul(u64::from(config.segment)))
}
