//! VCP, DPCP, TPCP and MPCP against the vectors of docs/design/protocols.md 5.6, 6.8 and 7.5, and transcriptions in
//! `f64`.

#![expect(clippy::disallowed_methods, reason = "powers of an oracle, whose last digits decide nothing")]

#[path = "../xcp/random.rs"]
mod random;

mod chains;
mod counts;
mod link;
mod merged;
mod mixed;
mod order;
mod sender;
mod uno;
#[cfg(feature = "words")]
mod words;

use congestlab_core::law::{Header as _, Packet, Segment, Tag, Words};
use congestlab_core::units::{Bytes, Time};

/// A data packet before a router that knows its flow.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    size: u64,
    ecn: u8,
    words: Option<Words>,
    /// What the router keeps of the flow; `None`: it has never seen it.
    flow: Option<[u32; 1]>,
}

/// The words of a packet that shows its headers.
fn shown(segment: Segment) -> Option<Words> {
    let mut words = Words::default();
    segment.write(&mut words);
    Some(words)
}

impl Packet for Seen {
    fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    fn ecn(&self) -> u8 {
        self.ecn
    }

    fn set_ecn(&mut self, code: u8) {
        self.ecn = code;
    }

    fn words(&self, _: Tag) -> Option<&Words> {
        self.words.as_ref()
    }

    fn words_mut(&mut self, _: Tag) -> Option<&mut Words> {
        None
    }

    fn add(&mut self, _: Tag) -> Option<&mut Words> {
        None
    }

    fn memory(&mut self, _: [u32; 3], _: Time, is_new: bool) -> Option<&mut [u32]> {
        if is_new {
            self.flow.get_or_insert_default();
        }
        self.flow.as_mut().map(|flow| &mut flow[..])
    }
}
