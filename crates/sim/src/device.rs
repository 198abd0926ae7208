//! Elements that own the ports of several links: what happens at one of them may change another in
//! no time, so they share one clock and one order of events.
//!
//! An engine drives a device as it drives a port: [`Device::advance_to_arrival`], then
//! [`Device::arrive`]; at the end of a window [`Device::advance_before`]. A port that no device owns
//! is driven by itself, and pays nothing for this.

use congestlab_net::packet::{Packet, Picos};
use congestlab_net::port::{Outputs, Port};

use crate::model;

/// What owns several ports.
pub(crate) enum Device {
    Router(Router),
}

impl Device {
    /// Takes its ports out of those of all links.
    pub(crate) fn new(model: &model::Device, ports: &mut [Option<Box<Port>>]) -> Self {
        let ports =
            model.links.iter().filter_map(|&link| ports[link as usize].take()).map(|port| *port).collect();
        match model.kind {
            model::DeviceKind::Router => Self::Router(Router { ports }),
        }
    }

    /// Earliest event that needs no arrival.
    pub(crate) fn next_event(&self) -> Picos {
        match self {
            Self::Router(router) => router.next_event(),
        }
    }

    /// Serves what comes before an arrival at `t`: departures at `t` or before, timers before `t`.
    pub(crate) fn advance_to_arrival(&mut self, t: Picos, out: &mut impl Outputs) {
        match self {
            Self::Router(router) => router.advance_to_arrival(t, out),
        }
    }

    /// Serves every event before `t`, the end of a window of time.
    pub(crate) fn advance_before(&mut self, t: Picos, out: &mut impl Outputs) {
        match self {
            Self::Router(router) => router.advance_before(t, out),
        }
    }

    /// A packet arrives at one of its ports. The device must have been advanced to `now`.
    pub(crate) fn arrive(&mut self, now: Picos, port: usize, packet: Packet, out: &mut impl Outputs) {
        match self {
            Self::Router(router) => router.arrive(now, port, packet, out),
        }
    }

    /// Packets that wait at one of its ports.
    pub(crate) fn queue_packets(&self, port: usize) -> u64 {
        match self {
            Self::Router(router) => router.ports[port].queue_packets(),
        }
    }

    /// Its ports, in order.
    pub(crate) fn into_ports(self) -> Vec<Port> {
        match self {
            Self::Router(router) => router.ports,
        }
    }
}

/// A router: its ports know nothing of each other.
pub(crate) struct Router {
    ports: Vec<Port>,
}

impl Router {
    fn next_event(&self) -> Picos {
        self.ports.iter().map(|port| port.next_event()).min().unwrap_or(Picos::MAX)
    }

    fn advance_to_arrival(&mut self, t: Picos, out: &mut impl Outputs) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.advance_to_arrival(t, &mut out.of(index));
        }
    }

    fn advance_before(&mut self, t: Picos, out: &mut impl Outputs) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.advance_before(t, &mut out.of(index));
        }
    }

    fn arrive(&mut self, now: Picos, port: usize, packet: Packet, out: &mut impl Outputs) {
        self.ports[port].arrive(now, packet, &mut out.of(port));
    }
}
