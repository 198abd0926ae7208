//! Receiver of MPCP: returns the code of each data packet and its place in the chain, as it arrived. The code 00 is
//! returned too: it tells the sender that the path clears codes (docs/design/protocols.md 5.5).

use super::level::LOW;
use super::order::Order;
use super::settings::SenderConfig;
use crate::law::{EchoLaw, Heard, Lie, Packet, Receiving, Reply, Segment};
use crate::units::Bytes;

/// Echo of a data packet in an ACK: bits 0 and 1 its ECN field, 2 to 4 its place in the chain, 5 that the
/// place is known, 6 that there is an echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Echoed(pub u32);

impl Echoed {
    /// The echo of an ACK that returns nothing.
    pub const NONE: Self = Self(0);

    /// Creates the echo of a packet with the ECN field `code` and the place `index`; `None`: it told no place.
    #[inline(always)]
    pub const fn new(code: u8, index: Option<u8>) -> Self {
        let place = match index {
            Some(index) => (index as u32 & 7) << 2 | 1 << 5,
            None => 0,
        };
        Self(code as u32 & 3 | place | 1 << 6)
    }

    /// Returns the ECN field; `None`: there is no echo.
    #[inline(always)]
    pub const fn code(self) -> Option<u8> {
        if self.0 >> 6 & 1 != 0 { Some((self.0 & 3) as u8) } else { None }
    }

    /// Returns the place in the chain; `None`: it is unknown.
    #[inline(always)]
    pub const fn index(self) -> Option<u8> {
        if self.0 >> 5 & 1 != 0 { Some((self.0 >> 2 & 7) as u8) } else { None }
    }
}

impl From<Reply> for Echoed {
    #[inline(always)]
    fn from(reply: Reply) -> Self {
        Self(reply.word)
    }
}

impl From<Echoed> for Reply {
    #[inline(always)]
    fn from(echoed: Echoed) -> Self {
        Self { word: echoed.0, byte: 0 }
    }
}

/// State of the receiver: the echo for the next ACK; of several packets (delayed ACKs) that of the highest code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    waiting: Echoed,
}

impl Echo {
    /// Takes the code and the place of a data packet that arrived.
    #[inline]
    pub fn take(&mut self, came: Echoed) {
        let (Some(code), held) = (came.code(), self.waiting.code()) else { return };
        if held.is_none_or(|held| held <= code) {
            self.waiting = came;
        }
    }

    /// Returns the echo for the ACK about to leave, and forgets it.
    #[inline]
    pub fn give(&mut self) -> Echoed {
        let waiting = self.waiting;
        self.waiting = Echoed::NONE;
        waiting
    }
}

/// Returns what a receiver reads from a packet with a code; `None`: it took the headers for another segment's, and
/// drops it.
#[inline]
fn read(config: &SenderConfig, code: u8, packet: &impl Packet, receiver: impl Receiving) -> Option<Echoed> {
    let (Some(mut segment), Some((n, order))) = (Segment::of(packet), chain(config)) else {
        return Some(Echoed::new(code, Some(0)));
    };
    let place = order.read(&segment, n);
    let numbers = receiver.numbers()?; // before the beginning there is nothing that headers could say
    let is_itself = order.restore(&mut segment, n, &numbers.expected)
        && segment.sequence == numbers.sequence
        && segment.acknowledgment == numbers.acknowledgment;
    is_itself.then(|| Echoed::new(code, place))
}

/// How many packets a chain has, and how their places are told; `None`: there are no chains.
#[inline]
fn chain(config: &SenderConfig) -> Option<(u32, Order)> {
    (config.n > 1).then_some((config.n, config.order))
}

impl SenderConfig {
    /// Returns an acknowledgment as it tells the place that it echoes; `None`: it can tell none.
    #[inline(always)]
    pub fn acknowledge(&self, mut acknowledgment: Segment, echoed: Echoed) -> Option<Segment> {
        let (Some((_, order)), Some(place)) = (chain(self), echoed.index()) else { return None };
        acknowledgment.seal();
        order.write(&mut acknowledgment, place).then_some(acknowledgment)
    }
}

impl EchoLaw<SenderConfig> for Echo {
    #[inline(always)]
    fn start(_config: &SenderConfig, _mss: Bytes) -> Self {
        Self::default()
    }

    #[inline]
    fn on_data(&mut self, config: &SenderConfig, packet: &impl Packet, receiver: impl Receiving) -> Heard {
        match read(config, packet.ecn(), packet, receiver) {
            Some(came) => {
                self.take(came);
                Heard::Taken
            }
            None => Heard::Unreadable,
        }
    }

    /// Returns the echo with its place, if the acknowledgment can tell that: a matter of its numbers alone.
    #[inline]
    fn on_ack(&mut self, config: &SenderConfig, receiver: impl Receiving) -> Reply {
        let came = self.give();
        let (Some(code), Some((_, order)), Some(mut segment)) =
            (came.code(), chain(config), receiver.acknowledgment())
        else {
            return came.into();
        };
        Echoed::new(code, came.index().filter(|&place| order.write(&mut segment, place))).into()
    }

    /// The lowest load, of a chain its lowest digit.
    #[inline]
    fn forge(_config: &SenderConfig, _lie: Lie, packet: &mut impl Packet) {
        packet.set_ecn(LOW);
    }
}
