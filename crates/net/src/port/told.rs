//! The law of a port at the beginning, and words to it about its capacity while it runs.

use super::{FeedbackAt, NEVER, Parts, PortConfig};
use crate::packet::{PS_PER_NS, Picos};
use crate::random::Stream;
use crate::service::Service;
use congestlab_core::capacity::Counters;
use congestlab_core::law::Link;
use congestlab_core::law::queue::Queue;
use congestlab_core::units::{Bytes, Duration};

impl Parts {
    /// The law learns what it may use.
    pub(super) fn tell_capacity(&mut self) {
        if let Some(law) = &mut self.law {
            law.set_capacity(self.queue_law.as_ref().map_or(self.told, |queue| queue.share(self.told)));
        }
    }

    /// A law that watches a trace learns what it offered of late.
    #[inline(never)]
    pub(super) fn tell_offered(&mut self, now: Picos, window: Duration) {
        if let (Service::Trace(trace), Some(law)) = (&self.service, &mut self.law) {
            let from = now.saturating_sub(window.0.saturating_mul(PS_PER_NS));
            law.set_capacity(Bytes(trace.offered(from, now)).per(Duration(window.0.max(1))));
        }
    }

    /// Time of the next look at the source of the capacity; never where there is none.
    pub(super) fn look_at(&self) -> Picos {
        self.follower.as_ref().map_or(NEVER, |follower| follower.next())
    }

    /// Looks at the source of the capacity, which sees these counters; the law learns what it says.
    pub(super) fn follow(&mut self, counters: Counters) {
        let Some(follower) = &mut self.follower else { return };
        if let Some(told) = follower.look(counters, &self.service) {
            self.told = told;
            self.tell_capacity();
        }
    }
}

/// The law at the beginning of the run.
pub(super) fn start(config: &PortConfig, queue: Option<&Queue>, phase: &mut Stream) -> Option<Link> {
    let law = config.law.as_ref()?;
    let mut told = law.config.clone();
    // A packet that comes has not left, and a class sends in turns with others.
    if config.feedback_at == FeedbackAt::Enqueue || queue.and_then(Queue::of_link_law).is_some() {
        told.set_untimed();
    }
    if law.follows_service {
        told.set_capacity(config.service.capacity_at(0));
    }
    // In (0, T]: routers that start together must not decide together.
    let mut draw = || Duration(1 + phase.below(told.first_interval().0));
    Some(Link::new(&told, draw(), draw()))
}
