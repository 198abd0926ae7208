//! Queue laws: which queue a packet waits in, which queue goes next, and who is marked or dropped, on the way in and on
//! the way out.
//!
//! One file for each law, and [`Discipline`] is the list of them. A law keeps no packets: whoever drives it stores them,
//! shows it the queues ([`Queues`]) with a record beside each where there are several, gives it draws ([`Draws`]) and does
//! what it says ([`Verdict`], [`Victim`]). So one law serves a simulated port, a link in user space and a test alike, and where
//! the kernel stores the packets, one of a single queue judges before it ([`egress`]).

pub mod census;
// Those that no program of the kernel runs have arithmetic that it has not.
#[cfg(not(target_arch = "bpf"))]
pub mod codel;
pub mod dualpi2;
pub mod egress;
#[cfg(not(target_arch = "bpf"))]
pub mod fq_codel;
#[cfg(not(target_arch = "bpf"))]
mod list;
pub mod pi2;
pub mod pie;
#[cfg(not(target_arch = "bpf"))]
pub mod priority;
#[cfg(not(target_arch = "bpf"))]
pub mod red;
pub mod step;
mod updates;
#[cfg(not(target_arch = "bpf"))]
pub mod xcp_tcp;

use crate::law::{Column, Packet};
use crate::units::{Bytes, Duration, Rate, Time};
#[cfg(not(target_arch = "bpf"))]
pub use list::{Discipline, Marker, Queue, QueueSample};

/// Limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets of any size.
    Packets(u64),
    /// A number of bytes of whole IP packets.
    Bytes(u64),
    /// No limit: access and exit links.
    None,
}

/// Reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// The queue was full, for packets of its priority or without ECN.
    QueueFull,
    /// RED chose the packet.
    RedEarly,
    /// RED's average is above its upper threshold, where everything goes.
    RedForced,
    /// Low priority: data took its place in a full queue.
    PushedOut,
    /// XCP's own queue was full when the packet arrived.
    XcpQueueFull,
    /// The packet collided with the other direction of a shared medium too often.
    ExcessiveCollisions,
    /// Active queue management chose the packet, although there was room for it.
    Aqm,
    /// The packet was of a flow that the link's policer holds to its share.
    Policed,
}

impl Reason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 8] = [
        Self::QueueFull,
        Self::RedEarly,
        Self::RedForced,
        Self::PushedOut,
        Self::XcpQueueFull,
        Self::ExcessiveCollisions,
        Self::Aqm,
        Self::Policed,
    ];

    /// Returns the reason's name in results and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::RedEarly => "red-early",
            Self::RedForced => "red-forced",
            Self::PushedOut => "pushed-out",
            Self::XcpQueueFull => "xcp-queue-full",
            Self::ExcessiveCollisions => "excessive-collisions",
            Self::Aqm => "aqm",
            Self::Policed => "policed",
        }
    }
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on.
    Pass,
    /// The packet goes on with Congestion Experienced. Only for packets of ECN-capable transports.
    Mark,
    /// The packet is dropped.
    Drop(Reason),
    /// The packet goes on in the place of the newest packets of low priority, as many as it needs, which are dropped. On
    /// the way in only, where [`Queues::has_room_behind_low_priority`] says so.
    PushOut,
}

/// The packets that go when more waits than may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Queue that loses them, from its head.
    pub queue: usize,
    /// The most packets that go; at least one does.
    pub packets: u64,
    /// No further packet goes once so much has gone.
    pub bytes: Bytes,
}

/// Words that a law of several queues keeps of each.
pub type Record = [u32; 10];

/// A chance in units of 2^-64. The greatest value means certainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(pub u64);

impl Chance {
    /// Chance 0: never.
    pub const NEVER: Self = Self(0);
    /// Chance 1: always.
    pub const CERTAIN: Self = Self(u64::MAX);
}

/// splitmix64's mixing of 64 bits: neighbours are far apart.
#[inline(always)]
const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Source of the chance decisions of a law.
pub trait Draws {
    /// Draws true with this chance. Certain outcomes draw nothing.
    fn draw(&mut self, chance: Chance) -> bool;
}

/// The queues of a port, as its law sees them. What is in transmission has left its queue.
pub trait Queues {
    /// Returns the number of packets that wait.
    fn packets(&self, queue: usize) -> u64;

    /// Returns what waits.
    fn bytes(&self, queue: usize) -> Bytes;

    /// Returns what waits in all queues.
    fn backlog(&self) -> Bytes;

    /// Returns how long the first packet has waited; zero if none waits.
    fn sojourn(&self, queue: usize) -> Duration;

    /// Returns true if a packet of this size finds room, in its queue and in all together, or need not wait.
    fn has_room(&self, queue: usize, size: Bytes) -> bool;

    /// Returns true if pushing out packets of low priority would make room for a packet of this size.
    fn has_room_behind_low_priority(&self, queue: usize, size: Bytes) -> bool;

    /// Returns what the link could have carried since it has had nothing to do; `None`: it has.
    fn unused(&self) -> Option<Bytes>;

    /// Returns the law's record of a queue, zeros at first, or one of those behind them that [`QueueLaw::records`] asks for;
    /// `None` where there is one queue only.
    fn record(&mut self, queue: usize) -> Option<&mut Record>;
}

/// A packet on its way into a queue.
#[derive(Debug)]
pub struct Arrival<'a, P> {
    /// Time of the arrival.
    pub now: Time,
    /// Queue that the law chose for it.
    pub queue: usize,
    /// Number of its flow.
    pub flow: u32,
    /// The packet.
    pub packet: &'a P,
    /// True for packets that are the first to go.
    pub is_low_priority: bool,
}

/// A packet on its way out of a queue, which it has left, or past an idle port.
#[derive(Debug)]
pub struct Departure<'a, P> {
    /// Time of the departure.
    pub now: Time,
    /// Queue of the packet.
    pub queue: usize,
    /// The packet.
    pub packet: &'a P,
    /// How long the packet waited.
    pub sojourn: Duration,
}

/// A value of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number: numerator and denominator, so that a law needs no floats.
    Number(i64, u32),
    /// Data since the sample before, to be shown as a rate.
    Data(Bytes),
}

/// State of a law at an instant and its counts since the sample before, as columns of a time series.
pub trait QueueSeries: Copy {
    /// Calls `tell` with each metric.
    fn each(&self, tell: &mut impl FnMut(&'static str, Value));
}

/// For laws that show nothing of their own.
impl QueueSeries for () {
    #[inline]
    fn each(&self, _tell: &mut impl FnMut(&'static str, Value)) {}
}

/// A queue law: the state of one port's queues.
pub trait QueueLaw: Sized {
    /// Settings of the law.
    type Config;
    /// Values of the law in a sample.
    type Sample: QueueSeries;

    /// True if a packet that finds the port idle passes whatever it is, and nothing is remembered of it.
    const PASSES_IDLE: bool = false;
    /// One line of meaning, for a law that tells its settings itself.
    const ABOUT: &'static str = "";
    /// Time series that the law's samples add to those of its link.
    const SERIES: &'static [Column] = &[];

    /// Creates the state of an empty port.
    fn start(config: &Self::Config) -> Self;

    /// Returns the number of queues.
    #[inline]
    fn queues(_config: &Self::Config) -> usize {
        1
    }

    /// Returns the number of records that the law keeps where it has several queues: one of each, and as many more as it needs.
    #[inline]
    fn records(config: &Self::Config) -> usize {
        Self::queues(config)
    }

    /// Returns the limit of a queue, `port` being that of the port.
    #[inline]
    fn limit(_config: &Self::Config, _queue: usize, port: Limit) -> Limit {
        port
    }

    /// Returns the limit of all queues together, above which [`QueueLaw::on_overflow`] says who goes.
    #[inline]
    fn total(_config: &Self::Config, _port: Limit) -> Limit {
        Limit::None
    }

    /// Returns true if the law marks packets of ECN-capable transports.
    #[inline]
    fn marks(_config: &Self::Config) -> bool {
        false
    }

    /// Returns the queue whose packets the port's link law deals with; `None`: all.
    #[inline]
    fn of_link_law(&self) -> Option<usize> {
        None
    }

    /// Returns the part of the port's capacity that the link law may use.
    #[inline]
    fn share(&self, capacity: Rate) -> Rate {
        capacity
    }

    /// Hears that the link law of a port of this capacity has ended a control interval. Returns true if
    /// [`QueueLaw::share`] changed.
    #[inline]
    fn on_interval(&mut self, _capacity: Rate) -> bool {
        false
    }

    /// Chooses the queue of a packet that arrives, of the flow of that number.
    #[inline]
    fn classify(&self, _packet: &impl Packet, _flow: u32) -> usize {
        0
    }

    /// Decides on a packet that arrives: it waits if there is room.
    #[inline]
    fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        if queues.has_room(arrival.queue, arrival.packet.size()) {
            Verdict::Pass
        } else {
            Verdict::Drop(Reason::QueueFull)
        }
    }

    /// Chooses who goes, of queues that have more than [`QueueLaw::total`].
    #[inline]
    fn on_overflow(&mut self, _queues: &mut impl Queues) -> Victim {
        Victim { queue: 0, packets: 1, bytes: Bytes(0) }
    }

    /// Chooses the queue whose first packet leaves next. Some queue has one.
    #[inline]
    fn next(&mut self, _queues: &mut impl Queues) -> usize {
        0
    }

    /// Decides on a packet that leaves. `queues` are without it; after a drop the next packet has its turn.
    #[inline]
    fn on_dequeue(
        &mut self,
        _departure: &Departure<'_, impl Packet>,
        _queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        Verdict::Pass
    }

    /// Hears that a packet was dropped, for whatever reason.
    #[inline]
    fn on_drop(&mut self, _queue: usize, _reason: Reason, _queues: &mut impl Queues) {}

    /// Returns the earliest deadline.
    #[inline]
    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    /// Serves every deadline that is due at `now`.
    #[inline]
    fn on_deadline(&mut self, _now: Time, _queues: &impl Queues) {}

    /// Returns the values of a sample; what is counted from one to the next begins anew.
    fn sample(&mut self, queues: &impl Queues) -> Self::Sample;
}
