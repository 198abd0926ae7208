//! The part of a law that links run.

use super::Packet;
use super::settings::Settings;
use crate::units::{Bytes, Duration, Rate, Time};
use core::any::Any;
use core::fmt::Debug;

/// Memory for flows that a router keeps beside the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembers {
    /// The most flows.
    pub flows: u32,
    /// Time without packets after which a flow is forgotten.
    pub idle: Duration,
    /// Words for each: [`Packet::memory`].
    pub words: u32,
}

/// Estimate that somebody who times a link law has in place of a capacity: [`Steered::close_told`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Told {
    /// Spare bandwidth of the bottleneck, B/s; negative where more arrives than it carries.
    pub spare: i64,
    /// d, the mean round trip time; zero: that of the packets that came.
    pub mean_rtt: Duration,
    /// Q, the persistent queue.
    pub queue: Bytes,
}

/// Abilities of a link law that stands for a link elsewhere, as in a virtual router of XCP-i. Laws that can do nothing
/// of it leave it as it is.
pub trait Steered {
    /// True if the law can be timed and told what is spare.
    const IS_STEERED: bool = false;

    /// Closes the control interval now, with the spare bandwidth of an estimate in the place of C - y
    /// (XI eq. 1 as a rate: F = alpha BW - beta Q / d). So a virtual router is a link that its owner
    /// times: it serves no deadline of its own.
    #[inline(always)]
    fn close_told(&mut self, _now: Time, _told: &Told) {}

    /// Returns y, the input rate, of the running interval so far.
    #[inline(always)]
    fn input(&self, _now: Time) -> Rate {
        Rate(0)
    }

    /// Returns d, the mean round trip time; zero: none.
    #[inline(always)]
    fn mean_rtt(&self) -> Duration {
        Duration(0)
    }

    /// Returns Q, the persistent queue.
    #[inline(always)]
    fn persistent_queue(&self) -> Bytes {
        Bytes(0)
    }
}

/// Pool that a law hands out in a control interval, and a packet's part of it, in the law's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Rest of the pool.
    pub left: u64,
    /// The packet's part.
    pub part: u64,
}

/// A link law: the state of one output port.
pub trait LinkLaw: Sized + Steered {
    /// Constants and switches of the law.
    type Config: Settings;
    /// Report of the last control interval: what it measured and decided.
    type Report: Series;
    /// View of the law on a packet, for observers.
    type View: Clone + Debug + Eq + 'static;

    /// Returns the name of the law, that of a protocol of its file.
    fn name(config: &Self::Config) -> &'static str;

    /// Returns the name of the signal that the law gives to senders ([`super::Giver::Law`]), that of the first law which gave it.
    #[inline(always)]
    fn signal(config: &Self::Config) -> &'static str {
        Self::name(config)
    }

    /// Creates the state of a port. `phase` is the first deadline: where in its first interval the port begins;
    /// `second_phase` the same for the second timer of laws that have two. Ports must not act in step.
    fn start(config: &Self::Config, phase: Duration, second_phase: Duration) -> Self;

    /// Returns the length of the first control interval, in which the phases lie.
    fn first_interval(config: &Self::Config) -> Duration;

    /// Returns the least length of a control interval but the first, where no packet states a shorter round trip than
    /// `round_trip`.
    fn shortest_interval(config: &Self::Config, round_trip: Duration) -> Duration;

    /// Returns the capacity of the link that the law computes with.
    fn capacity(config: &Self::Config) -> Rate;

    /// Sets the capacity of the link that the law computes with.
    fn configure_capacity(config: &mut Self::Config, capacity: Rate);

    /// Takes note that the times of departures do not tell how fast the link is: the law hears of a packet as it comes, or a
    /// class that it does not see sends between its own.
    #[inline(always)]
    fn configure_untimed(_config: &mut Self::Config) {}

    /// Changes the capacity from the next control interval on.
    fn set_capacity(&mut self, capacity: Rate);

    /// Returns the time over which the law wants to know what a link offered whose capacity is a recorded trace, before each
    /// packet that leaves, by [`LinkLaw::set_capacity`]; `None`: the mean of the trace will do.
    #[inline(always)]
    fn watches(_config: &Self::Config) -> Option<Duration> {
        None
    }

    /// Takes a packet before it is queued, also if it is then dropped: it asked for capacity.
    fn on_arrival(&mut self, now: Time, packet: &impl Packet);

    /// Writes the link's feedback into a packet just before transmission; `backlog` is what stays queued.
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes);

    /// Returns true if a packet that came may leave so: a link may lower what another hop granted, and never raises it.
    /// What lower means is the law's; the tests of all laws ask.
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool;

    /// Returns the pool from which the packet would be granted something now; `None`: the law has no such pool. The tests
    /// of all laws ask.
    #[inline(always)]
    fn pool(&self, _packet: &impl Packet) -> Option<Pool> {
        None
    }

    /// Returns the earliest deadline.
    fn next_deadline(&self) -> Time;

    /// Serves every deadline that is due at `now`; `backlog` is what is queued.
    fn on_deadline(&mut self, now: Time, backlog: Bytes);

    /// Returns the report of the last control interval, for series and events.
    fn report(&self) -> Self::Report;

    /// Returns what [`LinkLaw::on_departure`] would give the packet now, for observers.
    #[inline(always)]
    fn view(&self, _packet: &impl Packet) -> Option<Self::View> {
        None
    }

    /// Returns what the router shall remember of flows; `None`: nothing.
    #[inline(always)]
    fn remembers(_config: &Self::Config) -> Option<Remembers> {
        None
    }

    /// Returns the configuration of the law that this one is a variant of, else its own.
    #[inline(always)]
    fn base(config: &Self::Config) -> &dyn Any {
        config
    }

    /// Returns the configuration of the law that this one is a variant of, else its own, to change it.
    #[inline(always)]
    fn base_mut(config: &mut Self::Config) -> &mut dyn Any {
        config
    }
}

/// Report of a link law as columns of a time series.
pub trait Series: Copy + 'static {
    /// Returns the number of control intervals so far.
    fn intervals(&self) -> u64;
    /// Returns the decision of the last interval, for its event: XCP's F, B/s.
    fn decision(&self) -> i64;
    /// Calls `tell` with each metric: name, numerator and denominator, so that a law needs no floats.
    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32));
    /// Returns the number of packets so far that counted for less than they stated; `None`: the law has no such bound.
    #[inline]
    fn bounded_packets(&self) -> Option<u64> {
        None
    }
    /// Returns the report of the law that this one's is a variant of, else its own.
    #[inline]
    fn base(&self) -> &dyn Any {
        self
    }
}
