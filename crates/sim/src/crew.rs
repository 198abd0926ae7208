//! The choice of how a connected network runs: on several threads, each with a part of it, or on one.
//!
//! Threads meet as often as something may pass between their parts. Where little happens from one meeting
//! to the next, meeting costs more than the packets, most of all where one has to sleep until the others
//! have a processor. So the packets that threads take off each other are counted: that needs no clock and
//! is the same on every machine. After every so many meetings the network goes on the way that costs less.
//! The outcome is the same for both.

use congestlab_net::packet::Picos;

use crate::barrier::{Exchange, Meeting};
use crate::calendar::Window;
use crate::elements::Elements;
use crate::network::Network;
use crate::store::Store;
use crate::window::{Domain, Plan};
use crate::{Progress, Span};

/// When threads are worth while. Numbers are packets that a meeting takes off the busiest thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Meetings that are looked at together. A run begins with so many, on threads.
    pub(crate) stretch: u64,
    /// So many at best, and threads are tried.
    pub(crate) attempt: u64,
    /// So many, and threads stay.
    pub(crate) stay: u64,
    /// The network is taken apart for every turn. So each return to one thread makes the time until the
    /// next attempt so many times as long.
    pub(crate) patience: u64,
}

/// A packet takes 20 ns or more; a meeting 1 µs among threads that are awake, 10 to 50 µs where one
/// has to be woken.
pub(crate) const RULE: Rule = Rule { stretch: 64, attempt: 2000, stay: 1500, patience: 2 };

/// How a leg of a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// So does the run.
    Complete,
    /// Somebody stopped the run.
    Stopped,
    /// The network goes on the other way, from this window on.
    Turn(Window),
}

/// Counts what the threads of a leg take off each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    rule: Rule,
    /// Threads among which the network can be shared; 1: no other way.
    threads: u64,
    is_shared: bool,
    /// Meetings until it is decided how to go on.
    stretch: u64,
    meetings: u64,
    /// Packets that the busiest thread need not serve.
    spared: u64,
}

impl Tally {
    fn new(rule: Rule, threads: usize, is_shared: bool, stretch: u64) -> Self {
        Self { rule, threads: threads as u64, is_shared, stretch, meetings: 0, spared: 0 }
    }

    /// For a leg that never turns.
    pub(crate) fn of_one() -> Self {
        Self::new(RULE, 1, false, RULE.stretch)
    }

    /// True if it is time to go on the other way: the same on all threads that were at the meeting.
    pub(crate) fn turns(&mut self, meeting: &Meeting) -> bool {
        if self.threads == 1 {
            return false;
        }
        let busiest = if self.is_shared { meeting.most } else { meeting.packets / self.threads };
        self.meetings += 1;
        self.spared += meeting.packets - busiest;
        if self.meetings < self.stretch {
            return false;
        }
        let spared = self.spared / self.meetings;
        // Patience is over once and for all.
        (self.meetings, self.spared, self.stretch) = (0, 0, self.rule.stretch);
        if self.is_shared { spared < self.rule.stay } else { spared >= self.rule.attempt }
    }
}

/// Runs a network in windows, on as many threads as the plan has where that is worth while. Returns
/// false if it was stopped early.
pub(crate) fn run(
    network: &Network,
    plan: &Plan,
    elements: &mut Elements,
    span: &Span<'_>,
    rule: Rule,
    progress: &mut dyn FnMut(Progress),
) -> bool {
    let of_one = plan.of_one();
    let threads = plan.domains();
    let (mut is_shared, mut from, mut packets) = (threads > 1, 0, 0);
    let mut until_attempt = rule.stretch;
    let mut on_their_way = Vec::new();
    loop {
        let (plan, stretch) = if is_shared { (plan, rule.stretch) } else { (&of_one, until_attempt) };
        let mut domains: Vec<Domain<'_>> = (0..plan.domains())
            .map(|id| Domain::new(network, plan, id, elements, span, Store::default(), from))
            .collect();
        domains.iter_mut().for_each(|domain| domain.load(&on_their_way));
        on_their_way.clear();
        let tally = Tally::new(rule, threads, is_shared, stretch);
        let mut tell = |leg: Progress| progress(Progress { packets: packets + leg.packets, ..leg });
        let ending = run_leg(&mut domains, tally, span, &mut tell);
        if matches!(ending, Ending::Turn(_)) {
            // What another thread has yet to receive was sent after what it has.
            domains.iter_mut().for_each(|domain| domain.unload(&mut on_their_way));
            domains.iter_mut().for_each(|domain| domain.unload_mail(&mut on_their_way));
        }
        elements.reached = Picos::MAX;
        for domain in domains {
            packets += domain.packets;
            domain.finish(elements);
        }
        match ending {
            Ending::Complete => return true,
            Ending::Stopped => return false,
            Ending::Turn(window) => from = window,
        }
        until_attempt *= if is_shared { rule.patience } else { 1 };
        is_shared = !is_shared;
    }
}

/// Runs domains, each on a thread.
fn run_leg(
    domains: &mut [Domain<'_>],
    tally: Tally,
    span: &Span<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Ending {
    let exchange = Exchange::new(domains.len(), span.stop);
    let (first, others) = domains.split_first_mut().expect("a plan has a domain");
    std::thread::scope(|scope| {
        for domain in others {
            let exchange = &exchange;
            scope.spawn(move || domain.run_all(exchange, tally, &mut |_| {}));
        }
        first.run_all(&exchange, tally, progress)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::thread::{self, ThreadId};

    use congestlab_net::packet::Packet;

    use super::*;
    use crate::common::{self, Draw};
    use crate::model::Model;
    use crate::outcome::Outcome;
    use crate::{Engine, Tap};

    /// When packets were sent, and whether by a thread that was started for it.
    struct Hands(ThreadId, Mutex<Vec<(Picos, bool)>>);

    impl Tap for Hands {
        fn sent(&self, _: u32, at: Picos, _: &Packet, _: bool) {
            self.1.lock().expect("no panic with it").push((at, thread::current().id() != self.0));
        }
    }

    fn outcome(model: &Model, threads: usize, rule: Rule, tap: Option<&dyn Tap>) -> Outcome {
        let network = Network::new(model);
        let stop = AtomicBool::new(false);
        let mut elements = Elements::new(model, &network, false, &stop);
        let (end, bin, events) = (model.duration, model.sample_every, model.record_events);
        let span = Span { end, bin, events, tap, stop: &stop };
        let plan = Plan::new(&network, 1, threads).expect("a network with windows");
        assert!(run(&network, &plan, &mut elements, &span, rule, &mut |_| {}));
        elements.finish(model, true)
    }

    #[test]
    fn a_network_that_changes_hands_again_and_again_runs_as_in_one() {
        let (mut networks, mut returns) = (0, 0);
        for seed in 0..120 {
            let mut model = common::random_model(&mut Draw::new(seed), seed);
            if seed % 4 == 0 {
                (model.sample_every, model.record_events) = (Some(7_000_000_000), true);
            }
            if Plan::new(&Network::new(&model), 1, 3).is_none_or(|plan| plan.domains() == 1) {
                continue;
            }
            networks += 1;
            let expected = crate::run(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| {});
            let hands = Hands(thread::current().id(), Mutex::default());
            let restless = Rule { stretch: 3, attempt: 0, stay: u64::MAX, patience: 1 };
            let got = outcome(&model, 3, restless, Some(&hands));
            assert_eq!(got.fingerprint, expected.fingerprint, "seed {seed}");
            assert!(got == expected, "seed {seed}: equal fingerprint, but not equal");
            // Threads leave after three meetings.
            let sent = hands.1.into_inner().expect("no panic with it");
            returns += usize::from(sent.iter().any(|&(at, is_other)| is_other && at > model.duration / 2));
        }
        assert!(networks > 80 && returns > 60, "{returns} of {networks} networks on threads once more");
    }
}
