//! Elements that own the ports of several links: what happens at one of them may change another in
//! no time, so they share one clock and one order of events.
//!
//! An engine drives a device as it drives a port: [`Device::advance_to_arrival`], then
//! [`Device::arrive`]; at the end of a window [`Device::advance_before`]. A port that no device owns
//! is driven by itself, and pays nothing for this.

use congestlab_net::medium::Medium;
use congestlab_net::packet::{Packet, Picos};
use congestlab_net::port::Port;
use congestlab_net::xcp_i::Stats;

use crate::router::{Router, Surroundings};

/// An element that owns several ports.
pub(crate) enum Device {
    Router(Box<Router>),
    Medium(Box<Medium>),
}

impl Device {
    /// Calls `each` with every packet that it has, to be given another route.
    pub(crate) fn for_each_waiting(&mut self, each: &mut impl FnMut(&mut Packet)) {
        match self {
            Self::Router(router) => router.for_each_waiting(each),
            Self::Medium(medium) => medium.for_each_waiting(each),
        }
    }

    /// Earliest event that needs no arrival.
    pub(crate) fn next_event(&self) -> Picos {
        match self {
            Self::Router(router) => router.next_event(),
            Self::Medium(medium) => medium.next_event(),
        }
    }

    /// Serves what must come before an arrival at `t`: departures at `t` or before, timers before
    /// `t`. A device may leave to its ports what changes nothing for the others.
    pub(crate) fn advance_to_arrival(&mut self, t: Picos, out: &mut impl Surroundings) {
        match self {
            Self::Router(router) => router.advance_to_arrival(t, out),
            Self::Medium(medium) => medium.advance_to_arrival(t, out),
        }
    }

    /// Serves every event before `t`, the end of a window of time.
    pub(crate) fn advance_before(&mut self, t: Picos, out: &mut impl Surroundings) {
        match self {
            Self::Router(router) => router.advance_before(t, out),
            Self::Medium(medium) => medium.advance_before(t, out),
        }
    }

    /// A packet arrives at one of its ports. The device must have been advanced to `now`.
    pub(crate) fn arrive(&mut self, now: Picos, port: usize, packet: Packet, out: &mut impl Surroundings) {
        match self {
            Self::Router(router) => router.arrive(now, port, packet, out),
            Self::Medium(medium) => medium.arrive(now, port, packet, out),
        }
    }

    /// A packet for the device itself arrives.
    pub(crate) fn handle(&mut self, now: Picos, packet: &Packet, out: &mut impl Surroundings) {
        match self {
            Self::Router(router) => router.handle(now, packet, out),
            Self::Medium(_) => unreachable!("a medium has no address"),
        }
    }

    /// Packets that wait at one of its ports.
    pub(crate) fn queue_packets(&self, port: usize) -> u64 {
        match self {
            Self::Router(router) => router.queue_packets(port),
            Self::Medium(medium) => medium.queue_packets(port),
        }
    }

    /// A hash of what happened to the device itself; that of its ports is theirs.
    pub(crate) fn fingerprint(&self) -> u64 {
        match self {
            Self::Router(router) => router.fingerprint(),
            Self::Medium(medium) => medium.fingerprint(),
        }
    }

    /// Random words that the device itself drew.
    pub(crate) fn draws(&self) -> u64 {
        match self {
            Self::Router(router) => router.draws(),
            Self::Medium(medium) => medium.draws(),
        }
    }

    /// Returns the counts of its XCP-i agent, if it has one.
    pub(crate) fn stats(&self) -> Option<&Stats> {
        match self {
            Self::Router(router) => Some(router.stats()),
            Self::Medium(_) => None,
        }
    }

    /// Returns its ports, in order.
    pub(crate) fn into_ports(self) -> Vec<Port> {
        match self {
            Self::Router(router) => router.into_ports(),
            Self::Medium(medium) => medium.into_ports().into(),
        }
    }
}
