//! Memory of flows beside a port: the law's, and the policer's.

use super::PortConfig;
use crate::flows::{Flows, Known};
use crate::packet::Packet;
use crate::policer::Policer;
use alloc::boxed::Box;
use congestlab_core::law::Link;
use congestlab_core::law::police::Counts;
use congestlab_core::units::{Bytes, Rate, Time};

/// Whatever somebody wants remembered of flows.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    flows: Flows,
    policer: Option<Policer>,
}

impl Beside {
    /// `None`: nobody remembers anything.
    pub(super) fn new(config: &PortConfig) -> Option<Box<Self>> {
        let wanted = config.law.as_ref().and_then(|law| law.config.remembers());
        let flows = wanted.map_or(Flows::none(), Flows::new);
        let policer = config.police.map(Policer::new);
        (wanted.is_some() || policer.is_some()).then(|| Box::new(Self { flows, policer }))
    }

    /// The law edits a packet whose flow the router may know.
    pub(super) fn edit(&mut self, law: &mut Link, now: Time, packet: &mut Packet, backlog: Bytes) {
        law.on_departure(now, &mut Known { packet, flows: &mut self.flows }, backlog);
        if let Some(policer) = &mut self.policer {
            policer.note_departure(packet);
        }
    }

    /// Asks the policer, if there is one, about a packet that arrives at a link of so much capacity. False: it is to be
    /// dropped.
    pub(super) fn judge(&mut self, now: Time, capacity: Rate, packet: &mut Packet) -> bool {
        self.policer.as_mut().is_none_or(|policer| policer.judge(now, capacity, packet))
    }

    /// Tells the policer, if there is one, of a packet that found no room.
    pub(super) fn note_drop(&mut self, packet: &Packet) {
        if let Some(policer) = &mut self.policer {
            policer.note_drop(packet);
        }
    }

    /// Counts of the policer, if there is one.
    pub(super) fn counts(&self) -> Option<Counts> {
        self.policer.as_ref().map(Policer::counts)
    }
}
