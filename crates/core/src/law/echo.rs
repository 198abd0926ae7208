//! The receiver's part of the laws: what ACKs return.

use super::{Expected, Packet, Reply, Segment};
use crate::units::Bytes;

/// Answer of a receiver's law to a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The packet is TCP's now.
    Taken,
    /// The packet is TCP's now, and an ACK goes at once.
    Urgent,
    /// The law changed what TCP reads in it, and can not tell what that was: it is dropped.
    Unreadable,
}

/// The numbers that a data packet's TCP header may have, and those that it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Bounds of the two.
    pub expected: Expected,
    /// The sequence number of the segment that the packet is.
    pub sequence: u32,
    /// The acknowledgment number of all data.
    pub acknowledgment: u32,
}

/// A receiver when a data packet has come, or an ACK is about to leave.
pub trait Receiving: Copy {
    /// Returns the size of the flow's full IP packets.
    fn mss(&self) -> Bytes;

    /// Returns the window that the receiver advertises; `u64::MAX` is unlimited.
    fn awnd(&self) -> Bytes;

    /// Returns the numbers for the data packet that has come; `None`: the connection begins behind it.
    fn numbers(&self) -> Option<Numbers>;

    /// Returns the IP and TCP headers of the ACK that is about to leave; `None`: nobody looks at them.
    fn acknowledgment(&self) -> Option<Segment>;
}

/// A receiver that is nothing but what echo laws see of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Listening {
    /// Size of the flow's full IP packets.
    pub mss: Bytes,
    /// Window that the receiver advertises.
    pub awnd: Bytes,
    /// Numbers for the data packet that has come.
    pub numbers: Option<Numbers>,
    /// Headers of the ACK that is about to leave.
    pub acknowledgment: Option<Segment>,
}

impl Receiving for Listening {
    #[inline(always)]
    fn mss(&self) -> Bytes {
        self.mss
    }

    #[inline(always)]
    fn awnd(&self) -> Bytes {
        self.awnd
    }

    #[inline(always)]
    fn numbers(&self) -> Option<Numbers> {
        self.numbers
    }

    #[inline(always)]
    fn acknowledgment(&self) -> Option<Segment> {
        self.acknowledgment
    }
}

/// Lie of a receiver that wants its sender to send more than the links granted ([`EchoLaw::forge`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// The best that a header can say.
    Most,
    /// The request of a data packet, as if no link had lowered it. Of laws whose packets ask for nothing, the best that a header can
    /// say.
    Asked,
    /// The increases alone: a decrease is left out. Of laws whose headers state levels, not changes, the best that a header can say.
    Increases,
}

/// An echo law: the state of one flow's receiver.
pub trait EchoLaw<Config>: Sized {
    /// False if it keeps nothing and says nothing, so that nobody need call it.
    const TAKES_PART: bool = true;

    /// Creates the state of a new connection. `mss` counts the whole IP packet.
    fn start(config: &Config, mss: Bytes) -> Self;

    /// Takes a data packet: in order or not, the first time or again.
    fn on_data(&mut self, config: &Config, packet: &impl Packet, receiver: impl Receiving) -> Heard;

    /// Returns the reply of the ACK that is about to leave.
    fn on_ack(&mut self, config: &Config, receiver: impl Receiving) -> Reply;

    /// Rewrites a data packet for a receiver that lies, before [`EchoLaw::on_data`] takes it.
    #[inline]
    fn forge(_config: &Config, _lie: Lie, _packet: &mut impl Packet) {}
}

/// The receivers of laws that need nothing of theirs.
impl<Config> EchoLaw<Config> for () {
    const TAKES_PART: bool = false;

    #[inline(always)]
    fn start(_config: &Config, _mss: Bytes) -> Self {}

    #[inline(always)]
    fn on_data(&mut self, _config: &Config, _packet: &impl Packet, _receiver: impl Receiving) -> Heard {
        Heard::Taken
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &Config, _receiver: impl Receiving) -> Reply {
        Reply::default()
    }
}
