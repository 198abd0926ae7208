//! VCP, DPCP, TPCP and MPCP against the vectors of docs/design/protocols.md 5.6, 6.8 and 7.5, and transcriptions in
//! `f64`.

#![expect(clippy::disallowed_methods, reason = "powers of an oracle, whose last digits decide nothing")]

#[path = "../xcp/random.rs"]
mod random;

mod chains;
mod link;
mod order;
mod sender;
mod uno;

use congestlab_core::law::mpcp::{Flow, Segment};
use congestlab_core::law::{Packet, xcp};
use congestlab_core::units::{Bytes, Time};

/// A data packet before a router that knows its flow.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    size: u64,
    ecn: u8,
    segment: Option<Segment>,
    /// What the router keeps of the flow; `None`: it has never seen it.
    flow: Option<Flow>,
}

impl Packet for Seen {
    fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    fn xcp(&self) -> Option<xcp::Header> {
        None
    }

    fn set_xcp(&mut self, _: xcp::Header) {}

    fn ecn(&self) -> u8 {
        self.ecn
    }

    fn set_ecn(&mut self, code: u8) {
        self.ecn = code;
    }

    fn segment(&self) -> Option<Segment> {
        self.segment
    }

    fn flow(&mut self, _: Time, is_new: bool) -> Option<&mut Flow> {
        if is_new {
            self.flow.get_or_insert_default();
        }
        self.flow.as_mut()
    }
}
