//! Settings that the flows of a group have in common: how they send, repair and stop, and when they are measured.

use congestlab_core::law;
use congestlab_core::units::{BitRate, Bytes, Duration, Time};

/// Duplicates that mean loss (RFC 6675 §2).
pub(super) const DUP_THRESH: u64 = 3;

/// Method by which losses are found and repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Selective acknowledgments (RFC 2018, RFC 6675).
    #[default]
    Sack,
    /// The information of SACK, read forwards: all below the highest segment SACKed and not SACKed itself
    /// has left the network (Mathis and Mahdavi, "Forward acknowledgment", 1996).
    Fack,
    /// Fast recovery that stays until everything lost is repaired, one per round trip (RFC 6582).
    NewReno,
    /// Fast recovery that ends with the first new acknowledgment (RFC 5681).
    Reno,
}

impl Recovery {
    /// Returns true if the receiver sends selective acknowledgments.
    #[inline]
    pub fn has_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Fack)
    }
}

/// Slow start of a sender with the ways of Linux, which adds all that an ACK acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// Until something is lost.
    Standard,
    /// HyStart, until round trips become longer or ACKs come for half of one (Ha and Rhee, 2008).
    HyStart,
    /// HyStart++, until round trips become longer for a while (RFC 9406); at most eight segments an ACK.
    HyStartPlus,
}

/// Limit of the advertised window beside [`Config::awnd`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advertise {
    /// No limit besides.
    #[default]
    Always,
    /// The window grows, as Linux lets it while a connection is young (TH 4.1).
    Growing {
        /// Segments of the first window.
        from: u32,
        /// Segments by which every ACK sent widens it.
        per_ack: u32,
    },
    /// An application reads at a rate from a buffer: the window is what is free of that.
    Reading {
        /// Rate at which it reads; above zero.
        rate: BitRate,
        /// Size of the buffer, which holds what is not read yet.
        buffer: Bytes,
    },
}

/// Moment at which the pause between two bursts begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// The burst fits into the send buffer: the write returns.
    #[default]
    Write,
    /// The burst is acknowledged.
    Ack,
}

/// Data that the application sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum App {
    /// The application always has data.
    #[default]
    Endless,
    /// A number of whole segments that each flow is given: [`Sender::with_segments`](super::Sender::with_segments).
    Own,
    /// The application has this much data.
    Transfer(Bytes),
    /// The application writes `size`, pauses, and again (docs/design/protocols.md 12.3; TH 4.5).
    Bursts {
        /// Size of a write.
        size: Bytes,
        /// Time between the completion of a write and the next one.
        pause: Duration,
        /// Moment that completes a write.
        wait: Wait,
        /// Send buffer: unsent and unacknowledged data that the connection takes.
        buffer: Bytes,
        /// Sum of all bursts, the last one short; `None`: no end.
        total: Option<Bytes>,
    },
}

/// Settings that the flows of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of a full data packet, headers included.
    pub segment: u16,
    /// Bytes of a SYN, a SYN-ACK, a pure ACK and a window probe.
    pub ack: u16,
    /// The law that sets the window.
    pub law: law::SenderConfig,
    /// Initial window, segments.
    pub initial_window: u32,
    /// Most of the law's window that the sender uses. The simulator sets it by what the path can hold, so that no law can
    /// send without bound; `u64::MAX`: all of it.
    pub window_most: Bytes,
    /// Window that the receiver advertises, segments; `None`: unlimited.
    pub awnd: Option<u32>,
    /// Limit of the advertised window beside `awnd`.
    pub advertise: Advertise,
    /// Method by which losses are found and repaired.
    pub recovery: Recovery,
    /// Lower bound of the retransmission timeout; 1 s (RFC 6298 §2.4) unless told otherwise.
    pub min_rto: Duration,
    /// True to acknowledge every second segment (RFC 5681 §4.2) instead of each.
    pub delayed_ack: bool,
    /// True for explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Lie of the receivers about what links say; `None`: they tell the truth.
    pub lie: Option<law::Lie>,
    /// True for the ways of ns-2.35's `Agent/TCP/Reno/XCP` and its sink (docs/design/contract.md 1, `profile = "ns2"`).
    pub ns2: bool,
    /// The ways of Linux's TCP, with `recovery` by SACK and a law that lets slow start be run
    /// ([`law::Needs::slow_start`]): losses found by RACK and TLP (RFC 8985), repaired by PRR (RFC 9937), this slow start,
    /// `min_rto` a floor of the variation, delayed ACKs and DSACK as there; `None`: what the RFCs above say.
    pub linux: Option<SlowStart>,
    /// Data that the application sends.
    pub app: App,
    /// No new data is sent from then on; [`Time::NEVER`]: no end.
    pub stop: Time,
    /// Time over which rates, means and percentiles of the flows are taken: of each from its own beginning, if that is later.
    pub measure: Measure,
}

/// Time over which rates, means and percentiles of a flow are taken. A sender counts a packet at either end. A receiver
/// counts a packet at the end alone, as a link does: packets at both ends would be one more than the link can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Beginning.
    pub from: Time,
    /// End, included.
    pub to: Time,
}

impl Measure {
    /// All the time that there is.
    pub const ALWAYS: Self = Self { from: Time::ZERO, to: Time::NEVER };

    /// Returns true if a packet that arrives at `now` is not counted.
    #[inline(always)]
    pub const fn is_outside(self, now: Time) -> bool {
        now.0 <= self.from.0 || self.to.0 < now.0
    }
}

impl Config {
    /// Returns the bytes of the first `count` segments of the stream.
    pub fn bytes_of(&self, count: u64) -> Bytes {
        let segment = u64::from(self.segment);
        Bytes(match self.app {
            App::Endless | App::Own => count.saturating_mul(segment),
            App::Transfer(total) => count.saturating_mul(segment).min(total.0),
            App::Bursts { size, total, .. } => {
                let per_burst = self.segments_in(size);
                let (bursts, rest) = (count / per_burst, count % per_burst);
                let bytes = bursts.saturating_mul(size.0).saturating_add((rest * segment).min(size.0));
                bytes.min(total.map_or(u64::MAX, |total| total.0))
            }
        })
    }

    /// A retransmission that is lost is repeated without waiting for the timer: by who would not send less for it.
    pub(super) fn repeats_again(&self) -> bool {
        self.recovery == Recovery::Sack && self.law.needs().withstands_loss
    }

    /// Segments of all that the application will ever write.
    pub(super) fn segments(&self) -> u64 {
        match self.app {
            App::Endless
            | App::Own
            | App::Bursts { total: None, .. }
            | App::Bursts { size: Bytes(0), .. } => u64::MAX,
            App::Transfer(Bytes(0)) => 0,
            App::Transfer(total) => self.segments_in(total),
            App::Bursts { size, total: Some(total), .. } => {
                let last = Bytes(total.0 % size.0);
                let whole = (total.0 / size.0).saturating_mul(self.segments_in(size));
                if last.0 == 0 { whole } else { whole.saturating_add(self.segments_in(last)) }
            }
        }
    }

    /// Bytes of one segment.
    #[inline]
    pub(super) fn size_of(&self, index: u64) -> u16 {
        match self.app {
            App::Endless | App::Own => self.segment,
            // At most `segment`: the next segment ends at most that much later.
            _ => (self.bytes_of(index.saturating_add(1)) - self.bytes_of(index)).0 as u16,
        }
    }

    /// Segments that `size` bytes need; at least one, so that it may divide.
    pub(super) fn segments_in(&self, size: Bytes) -> u64 {
        size.0.div_ceil(u64::from(self.segment.max(1))).max(1)
    }
}
