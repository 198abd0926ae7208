//! A run watched packet by packet: what no result keeps, for whoever wants to explain one.
//!
//! The reference engine tells; it gives the same events as the other, in one order, and an observer
//! there costs the other nothing.

use std::ops::ControlFlow;

use congestlab_net::packet::{Packet, Picos};
use congestlab_net::port::PortEvent;
use congestlab_net::tcp;

use crate::elements::Hosts;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Step {
    /// A host sends a packet.
    Sent {
        /// The packet.
        packet: Packet,
    },
    /// A packet comes to a link, before anything is decided about it.
    Entered {
        /// Index into the model's links.
        link: u32,
        /// The packet.
        packet: Packet,
        /// Packets that wait there.
        queue_packets: u64,
    },
    /// Something happened at a link.
    Port {
        /// Index into the model's links.
        link: u32,
        /// What.
        event: PortEvent,
    },
    /// A packet reached the host that it was sent to.
    Received {
        /// The packet.
        packet: Packet,
    },
    /// The sender of the flow that is looked at has dealt with a packet, or with a deadline.
    Acted {
        /// What it dealt with; `None`: a deadline.
        packet: Option<Packet>,
        /// Before.
        before: Box<tcp::View>,
        /// After, with what it could send sent.
        after: Box<tcp::View>,
    },
}

/// Who is told.
pub(crate) struct Watcher<'a> {
    /// Flow over the whole run, whose sender is looked at.
    pub(crate) flow: Option<u32>,
    pub(crate) each: &'a mut dyn FnMut(Picos, &Step) -> ControlFlow<()>,
    /// It has seen enough.
    pub(crate) is_done: bool,
}

impl Watcher<'_> {
    pub(crate) fn tell(&mut self, at: Picos, step: &Step) {
        if !self.is_done {
            self.is_done = (self.each)(at, step).is_break();
        }
    }

    /// The state of the sender that is looked at, if it is this host.
    pub(crate) fn view(&self, hosts: &Hosts, first_flow: u32, index: u32) -> Option<Box<tcp::View>> {
        match hosts {
            Hosts::Senders(_, stations) if self.flow == Some(first_flow + index) => {
                Some(Box::new(stations[index as usize].endpoint.view()))
            }
            _ => None,
        }
    }
}
