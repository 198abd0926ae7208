//! A run watched packet by packet: the steps that no result keeps, for tools that explain a run.
//!
//! Only the reference engine tells an observer. Its events are those of the window engine, in one order,
//! and the window engine pays nothing for observers.

use std::ops::ControlFlow;

use congestlab_net::packet::{Packet, Picos};
use congestlab_net::port::PortEvent;
use congestlab_net::tcp;
use congestlab_net::xcp_i::Passage;

use crate::hosts::Hosts;

/// Something that happened to a packet, at a link or at a host.
#[derive(Clone, Debug)]
pub enum Step {
    /// A host sends a packet.
    Sent {
        /// The packet as it leaves the host.
        packet: Packet,
    },
    /// A packet comes to a link; its queue and law have decided nothing about it yet.
    Entered {
        /// Index into the model's links.
        link: u32,
        /// The packet as it arrives.
        packet: Packet,
        /// Packets that wait in the link's queue.
        queue_packets: u64,
    },
    /// A link's port drops, marks, serves or changes a packet, or ends a control interval.
    Port {
        /// Index into the model's links.
        link: u32,
        /// Event at the port, with its packet or report.
        event: Box<PortEvent>,
    },
    /// A packet reached the host that it was sent to.
    Received {
        /// The packet as it arrives.
        packet: Packet,
    },
    /// A packet has crossed a cloud before its receiver, whose agent has dealt with its header. After [`Step::Received`].
    Crossed {
        /// Passage of the packet through the receiver's virtual router.
        passage: Box<Passage>,
    },
    /// A watched sender has dealt with a packet or a deadline.
    Acted {
        /// Index of its flow over the whole run.
        flow: u32,
        /// Packet that it dealt with; `None`: a deadline.
        packet: Option<Packet>,
        /// State of the sender before.
        before: Box<tcp::View>,
        /// State of the sender afterwards, when it has sent what it may send.
        after: Box<tcp::View>,
    },
}

/// The senders whose states an observer sees, beside the packets of all flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// No sender.
    Packets,
    /// The sender of one flow, by its index over the whole run.
    Sender(u32),
    /// All senders.
    Senders,
}

/// The observer of a run, and the senders that it looks at.
pub(crate) struct Watcher<'a> {
    pub(crate) watched: Watched,
    pub(crate) each: &'a mut dyn FnMut(Picos, &Step) -> ControlFlow<()>,
    /// True once the observer has asked for no more.
    pub(crate) is_done: bool,
}

impl Watcher<'_> {
    pub(crate) fn tell(&mut self, at: Picos, step: &Step) {
        if !self.is_done {
            self.is_done = (self.each)(at, step).is_break();
        }
    }

    fn sees(&self, flow: u32) -> bool {
        match self.watched {
            Watched::Packets => false,
            Watched::Sender(one) => one == flow,
            Watched::Senders => true,
        }
    }

    /// The state of this host, if it is a sender that is looked at.
    pub(crate) fn view(&self, hosts: &Hosts, first_flow: u32, index: u32) -> Option<Box<tcp::View>> {
        match hosts {
            // All of a run that is watched live to the end.
            Hosts::Senders(crowd) if self.sees(first_flow + index) => {
                Some(Box::new(crowd.stations[index as usize].endpoint.view()))
            }
            _ => None,
        }
    }
}
