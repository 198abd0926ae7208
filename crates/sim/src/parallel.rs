//! The work that threads would have to do, counted without having the cores.
//!
//! A network is shared as for so many threads, which then take turns on one. What each does between two meetings is counted
//! in instructions, as [`crate::run`] weighs it when it shares a network: a fixed number for each packet at each kind of
//! node, for each packet that goes from one thread to another, and for each meeting. So the count is the same everywhere.

use std::sync::atomic::AtomicBool;

use congestlab_net::packet::Picos;

use crate::barrier::{Exchange, Meeting};
use crate::crew::Tally;
use crate::elements::Elements;
use crate::model::Model;
use crate::network::Network;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::store::Store;
use crate::window::Domain;
use crate::{Engine, Span, share};

/// The work of a run and the way through it that can not be shared, in instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Most threads that had something to do.
    pub threads: usize,
    /// Meetings of threads.
    pub meetings: u64,
    /// Work of packets at all nodes.
    pub work: u64,
    /// Work of the busiest thread, from each meeting to the next, with what it handed over and took.
    pub busiest: u64,
    /// Time of the meetings, as work.
    pub meeting: u64,
    /// The time from which on it is counted.
    from: Picos,
    /// Work of the domains of this leg, counted or not.
    done: u64,
}

impl Counted {
    /// Returns how many times as fast as on one thread the network runs.
    pub fn speedup(&self) -> f64 {
        self.work as f64 / (self.busiest + self.meeting).max(1) as f64
    }

    /// Returns what the busiest thread had to do, from each meeting to the next, divided by the mean of `threads`.
    pub fn imbalance(&self, threads: usize) -> f64 {
        self.busiest as f64 * threads as f64 / self.work.max(1) as f64
    }

    /// A meeting of threads at a time, or the next stretch of one that is alone.
    pub(crate) fn add(&mut self, at: Picos, domains: &[Domain<'_>], meeting: &Meeting) {
        let done = domains.iter().map(|domain| domain.work).sum::<u64>();
        // Those of another leg begin with nothing.
        let new = done.checked_sub(std::mem::replace(&mut self.done, done)).unwrap_or(done);
        if at <= self.from {
            return;
        }
        self.work += new;
        self.threads = self.threads.max(domains.len());
        self.busiest += meeting.longest;
        if domains.len() > 1 {
            self.meetings += 1;
            self.meeting += share::meeting(domains.len());
        }
    }
}

/// Runs a model as [`crate::run`] does on so many threads, but on one, and counts what each would do after the warm-up.
/// Returns the outcome, too, which is that of any run.
pub fn count(model: &Model, threads: usize) -> (Outcome, Counted) {
    let mut counted = Counted { from: model.warmup, ..Counted::default() };
    let engine = Engine::Window { threads, divisor: 1 };
    let outcome =
        crate::run_counted(model, engine, &AtomicBool::new(false), &mut |_| {}, None, Some(&mut counted));
    (outcome, counted)
}

/// Runs parts that no packet connects, one after the other, all of which is counted. Threads take the next as soon as they
/// have done one, and never meet.
pub(crate) fn run_parts(
    parts: &[(&Network, Plan)],
    threads: usize,
    elements: &mut Elements,
    span: &Span<'_>,
    counted: &mut Counted,
) {
    let mut done = vec![0_u64; threads.clamp(1, parts.len().max(1))];
    let mut store = Store::default();
    for (network, plan) in parts {
        let mut domain = Domain::new(network, plan, 0, elements, span, store, 0);
        domain.run_all(&Exchange::new(1, span.stop), Tally::of_one(), &mut |_| {});
        counted.work += domain.work;
        let next = share::least(&done);
        done[next] += domain.work;
        store = domain.finish(elements);
    }
    counted.threads = done.len();
    counted.busiest = done.into_iter().max().unwrap_or(0);
}
