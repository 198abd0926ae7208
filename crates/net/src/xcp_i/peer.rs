//! A downstream edge as its upstream edge knows it: its right to ask, and the round that it asked for.

use super::estimator::{Answer, Prober, Probing, Step};
use super::message::{Message, Probe, Verb};
use super::oracle::LinkView;
use super::{Address, Neighbour};
use crate::packet::Packet;
use congestlab_core::units::{Duration, Time};

/// A downstream edge that may ask this node for estimates.
#[derive(Clone, Debug)]
pub(super) struct Peer<V> {
    /// The edge, and the way by which it asks.
    pub(super) neighbour: Neighbour,
    prober: Prober<V>,
    /// Number and nonce of the last request; `None`: it never asked.
    asked: Option<(u32, u64)>,
    /// When the round is over at the latest.
    ends: Time,
    /// How the last round ended; `None`: it is under way.
    answer: Option<Answer>,
    /// Bytes of data sent towards it.
    pub(super) sent: u64,
}

impl<V: LinkView> Peer<V> {
    pub(super) const fn new(neighbour: Neighbour, prober: Prober<V>) -> Self {
        Self { neighbour, prober, asked: None, ends: Time::ZERO, answer: None, sent: 0 }
    }

    pub(super) fn counts_sent(&self) -> bool {
        match &self.prober {
            Prober::Oracle(_) => false,
            Prober::Probes(prober) => prober.counts_sent(),
        }
    }

    pub(super) fn next_deadline(&self) -> Time {
        match (self.asked, self.answer) {
            (Some(_), None) => self.prober.next_deadline(),
            _ => Time::NEVER,
        }
    }

    /// Gives up the round under way: the edge asks by another way.
    pub(super) fn give_up(&mut self) {
        self.asked = None;
    }

    /// A request. One that was there before is acknowledged again, and its answer repeated: one of
    /// both was lost. Any other begins a new round. Requests cannot be authenticated; a forged one
    /// costs one round, because the true one is repeated.
    pub(super) fn on_request(
        &mut self,
        own: Address,
        now: Time,
        request: &Message,
        parameter: u64,
        mut send: impl FnMut(Packet),
    ) {
        let asked = Some((request.id, request.nonce));
        let is_new = self.asked != asked;
        if is_new {
            self.asked = asked;
            self.answer = None;
            self.ends = now + self.prober.begin(now, parameter);
        }
        let takes = if self.answer.is_some() { Duration(0) } else { self.ends - now };
        let verb = Verb::Ack { takes, echo: request.stamp };
        send(self.message(own, now, verb).to_packet());
        if is_new {
            self.poll(own, now, send);
        } else if let Some(answer) = self.answer {
            send(self.report(own, now, answer));
        }
    }

    /// Sends what the round under way has to send at `now`.
    pub(super) fn poll(&mut self, own: Address, now: Time, mut send: impl FnMut(Packet)) {
        let Some((id, nonce)) = self.asked else { return };
        while self.answer.is_none()
            && let Some(step) = self.prober.poll(now)
        {
            match step {
                Step::Send { size, number } => {
                    send(Probe { from: own, id, nonce, number, size, stamp: now }.to_packet());
                }
                Step::Done(answer) => {
                    self.answer = Some(answer);
                    send(self.report(own, now, answer));
                }
            }
        }
    }

    fn report(&self, own: Address, now: Time, answer: Answer) -> Packet {
        let bandwidth = match answer {
            Answer::Bandwidth(bandwidth) => Some(bandwidth),
            Answer::ComputeYourself => None,
        };
        self.message(own, now, Verb::Report { bandwidth, sent: self.sent }).to_packet()
    }

    fn message(&self, from: Address, now: Time, verb: Verb) -> Message {
        let (id, nonce) = self.asked.unwrap_or_default();
        Message { verb, from, id, nonce, stamp: now }
    }
}
