//! The work that threads would have to do, counted without having the cores.
//!
//! A network is shared as for so many threads, which then take turns on one. What each does between two meetings is counted
//! in instructions, as [`crate::run`] weighs it when it shares a network: a fixed number for each packet at each kind of
//! node, for each packet that goes from one thread to another, and for each meeting. So the count is the same everywhere.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use congestlab_net::packet::Picos;

use crate::barrier::{Exchange, Seat};
use crate::costs;
use crate::elements::Elements;
use crate::model::Model;
use crate::network::Network;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::store::Store;
use crate::tally::Tally;
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
    /// The longest way through the run: when the last thread has done its work, with what it handed over and took, and has
    /// waited for others.
    pub busiest: u64,
    /// Time of the meetings, as work.
    pub meeting: u64,
    /// The time from which on it is counted.
    from: Picos,
}

impl Counted {
    /// Returns how many times as fast as on one thread the network runs.
    pub fn speedup(&self) -> f64 {
        self.work as f64 / (self.busiest + self.meeting).max(1) as f64
    }

    /// Returns what the last thread had to do and to wait for, divided by the mean work of `threads`.
    pub fn imbalance(&self, threads: usize) -> f64 {
        self.busiest as f64 * threads as f64 / self.work.max(1) as f64
    }

    /// A leg of a run, to be counted.
    pub(crate) fn leg(&mut self, exchange: &Exchange<'_>) -> Leg<'_> {
        Leg { lead: exchange.lead as usize, ends: Vec::new(), told: VecDeque::new(), done: 0, counted: self }
    }
}

/// Counts of a leg: when threads would have done what they had, as work from the beginning of the run.
#[derive(Debug)]
pub(crate) struct Leg<'a> {
    lead: usize,
    /// When each thread has done what it has.
    ends: Vec<u64>,
    /// When all had told each of the last meetings.
    told: VecDeque<u64>,
    /// Work of its domains, counted or not.
    done: u64,
    counted: &'a mut Counted,
}

impl Leg<'_> {
    /// Threads have told of what they have done, or one that is alone has.
    pub(crate) fn add(&mut self, domains: &[Domain<'_>], seats: &[Seat<'_>]) {
        let done = domains.iter().map(|domain| domain.work).sum::<u64>();
        let new = done - std::mem::replace(&mut self.done, done);
        let counted = &mut *self.counted;
        if domains[0].reached <= counted.from {
            return;
        }
        counted.work += new;
        counted.threads = counted.threads.max(domains.len());
        // Who did this had heard of the meeting that was `lead` before the last, when all had told it.
        let heard = if self.told.len() > self.lead { self.told.pop_front() } else { None };
        self.ends.resize(domains.len(), counted.busiest);
        for (end, seat) in self.ends.iter_mut().zip(seats) {
            *end = (*end).max(heard.unwrap_or(0)) + seat.work;
        }
        counted.busiest = self.ends.iter().max().copied().unwrap_or(0);
        self.told.push_back(counted.busiest);
        if domains.len() > 1 {
            counted.meetings += 1;
            counted.meeting += costs::meeting(domains.len());
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
        domain.run_all(Exchange::new(1, 0, span.stop).seat(0), Tally::of_one(), &mut |_| {});
        counted.work += domain.work;
        let next = share::least(&done);
        done[next] += domain.work;
        store = domain.finish(elements);
    }
    counted.threads = done.len();
    counted.busiest = done.into_iter().max().unwrap_or(0);
}
