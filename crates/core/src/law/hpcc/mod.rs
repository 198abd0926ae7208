//! HPCC (Li and others, "HPCC: High Precision Congestion Control", SIGCOMM 2019; docs/design/modern.md 8): links tell how loaded they
//! are, and a sender multiplies its window by what is aimed at over the load of the worst of them, so that a data centre's queues
//! are nearly empty. The paper has every hop append eight bytes of telemetry. Here a packet has a field of fixed size, in which hops
//! compare and replace: `hpcc` the largest load in two bytes, as HPCC-PINT's authors do with chance and logarithms, and `csig` one
//! of two signals at a time in a tag of eight bytes, the least capacity that is free and the longest wait (draft-ravi-ippm-csig).
//!
//! Not here: telemetry of all hops, priority flow control, the compact tag of four bytes.

mod link;
mod sender;
#[cfg(feature = "words")]
mod words;

pub use link::{Link, LinkConfig, Report};
pub use sender::{Echo, Sender, SenderConfig};

use super::protocol::Protocol;
use super::settings::words;
use super::{Column, Hue, Look, Reply, Shape, Tag, Words};
use crate::units::{Duration, mul_div};

/// Returns the protocols of this folder: one law with the telemetry of HPCC, and with that of CSIG.
pub(super) const fn protocols() -> &'static [Protocol<LinkConfig, SenderConfig>] {
    const {
        &[
            Protocol {
                name: "hpcc",
                about: "HPCC: windows by the load of the worst hop, which packets tell in two bytes (SIGCOMM 2019)",
                page: "hpcc",
                look: Look::new(Hue::Ink, Shape::Circle, 1),
                link_series: &[Column::new("load_share", "Load that the law tells")],
                flow_series: &[Column::new("path_load_share", "Load of the worst hop that flows are told")],
                link: Some(LinkConfig::of(Telemetry::Load)),
                sender: Some(SenderConfig::of(Telemetry::Load)),
            },
            Protocol {
                name: "csig",
                about: "HPCC's windows by two signals of a CSIG tag, free capacity and wait, in turns",
                page: "hpcc",
                look: Look::new(Hue::Ink, Shape::Square, 0),
                link_series: &[Column::new("load_share", "Load that the law tells")],
                flow_series: &[Column::new("path_load_share", "Load of the worst hop that flows are told")],
                link: Some(LinkConfig::of(Telemetry::Csig)),
                sender: Some(SenderConfig::of(Telemetry::Csig)),
            },
        ]
    }
}

/// Telemetry of hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Telemetry {
    /// The largest load, in two bytes.
    Load,
    /// The least free capacity or the longest wait, in a tag of eight bytes.
    Csig,
}

words!(Telemetry {
    Load = "load",
    Csig = "csig",
});

impl Telemetry {
    /// Bytes of a packet.
    const fn bytes(self) -> u16 {
        match self {
            Self::Load => 2,
            Self::Csig => 8,
        }
    }

    /// Name of the protocol with it.
    const fn name(self) -> &'static str {
        match self {
            Self::Load => "hpcc",
            Self::Csig => "csig",
        }
    }
}

/// Binary places of loads and of parts of a capacity.
pub const PLACES: u32 = 20;
/// Binary places that a packet has of a load: up to 16 in 16 bits.
const TOLD: u32 = 12;
/// The largest value of a tag, which says of free capacity that no hop wrote one.
const MOST: u32 = (1 << 20) - 1;
/// Nanoseconds of a unit of waits in tags, 2^4: up to 16.8 ms.
const WAIT: u32 = 4;

/// Signal that a packet asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Signal {
    /// Load, 2^-12, the largest of the path; 0: no hop told one.
    #[default]
    Load,
    /// Free part of the capacity, 2^-20, the least of the path.
    Free,
    /// Wait, 16 ns, the longest of the path.
    Wait,
}

/// Telemetry of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// Signal that hops tell.
    pub signal: Signal,
    /// Value, of as many bits as the signal has.
    pub value: u32,
}

impl Header {
    /// Returns what a packet asks with.
    #[inline(always)]
    pub const fn asking(signal: Signal) -> Self {
        Self { signal, value: if matches!(signal, Signal::Free) { MOST } else { 0 } }
    }

    /// Returns true if this value says less of a path than the other one, or as much.
    #[inline(always)]
    pub const fn is_within(self, other: Self) -> bool {
        match self.signal {
            Signal::Load | Signal::Wait => self.value <= other.value,
            Signal::Free => self.value >= other.value,
        }
    }
}

/// Word 1, and word 2, which links change.
impl super::Header for Header {
    const TAG: Tag = Tag::header("hpcc");

    #[inline(always)]
    fn read(words: &Words) -> Self {
        let (signal, most) = match words[1] & 3 {
            0 => (Signal::Load, u16::MAX as u32),
            1 => (Signal::Free, MOST),
            _ => (Signal::Wait, MOST),
        };
        let value = words[2];
        Self { signal, value: if value < most { value } else { most } }
    }

    #[inline(always)]
    fn write(self, words: &mut Words) {
        (words[1], words[2]) = (self.signal as u32, self.value);
    }
}

/// Reply of an ACK: 20 bits of a load or of free capacity, and 20 of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct News {
    first: u32,
    wait: u32,
}

impl News {
    #[inline(always)]
    const fn reply(self) -> Reply {
        Reply { word: (self.wait & 0xfff) << 20 | self.first & MOST, byte: (self.wait >> 12) as u8 }
    }

    #[inline(always)]
    const fn of(reply: Reply) -> Self {
        Self { first: reply.word & MOST, wait: (reply.byte as u32) << 12 | reply.word >> 20 }
    }

    /// Returns the load of the worst hop; `None`: no hop told one. Of a tag's two signals it is a bound: what is in use of the fullest hop
    /// and the longest wait in round trips, exact where both are of one hop.
    #[inline]
    fn load(self, telemetry: Telemetry, base_rtt: Duration) -> Option<u64> {
        match (telemetry, self.first) {
            (Telemetry::Load, 0) | (Telemetry::Csig, MOST) => None,
            (Telemetry::Load, load) => Some((load as u64) << (PLACES - TOLD)),
            (Telemetry::Csig, free) => {
                let wait = mul_div((self.wait as u64) << WAIT, 1 << PLACES, base_rtt.0.max(1));
                Some(((1 << PLACES) - free as u64).saturating_add(wait).min(1 << (PLACES + 4)))
            }
        }
    }
}
