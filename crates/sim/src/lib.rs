//! Runs very many links and hosts against a virtual clock, the same way every time.
//!
//! [`run`] turns a [`model::Model`] into an [`outcome::Outcome`]. Two engines drive the same
//! elements of `congestlab-net`: the window engine (`window.rs`), which executes entity by entity
//! inside conservative time windows, and a small globally ordered one (`reference.rs`), its oracle.
//! Nothing here knows wall time or global state, and nothing iterates an unordered map.
#![forbid(unsafe_code)]

mod barrier;
mod calendar;
mod elements;
pub mod model;
mod network;
pub mod outcome;
mod reference;
mod station;
mod store;
mod window;

use std::sync::atomic::AtomicBool;

use barrier::Exchange;
use congestlab_net::packet::Picos;
use elements::Elements;
use model::Model;
use network::Network;
use outcome::Outcome;
use window::{Domain, Plan};

/// Which machine runs a model. All give the same outcome, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Window-batched on at most `threads` threads; the window is divided by `divisor` (1, 2, 4, ...).
    /// A model in which a circle of elements passes packets on in no time at all has no window: the
    /// reference engine runs it.
    Window {
        /// Threads to use, at least 1.
        threads: usize,
        /// Divides the widest window that the model allows.
        divisor: u32,
    },
    /// One globally ordered event queue.
    Reference,
}

/// How long to simulate and what to write down.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// The last instant of the run.
    end: Picos,
    /// Length of a bin of the series.
    bin: Option<Picos>,
    events: bool,
}

/// Runs the model. `stop` ends it early; the outcome is then marked incomplete. `progress` is told
/// the simulated time now and then.
pub fn run(model: &Model, engine: Engine, stop: &AtomicBool, progress: &mut dyn FnMut(Picos)) -> Outcome {
    let network = Network::new(model);
    let mut elements = Elements::new(model, &network);
    let span = Span { end: model.duration, bin: model.sample_every, events: model.record_events };
    let plan = match engine {
        Engine::Window { threads, divisor } => Plan::new(&network, divisor, threads),
        Engine::Reference => None,
    };
    let complete = match &plan {
        Some(plan) => run_windows(&network, plan, &mut elements, &span, stop, progress),
        None => reference::run(&network, &mut elements, &span, stop, progress),
    };
    elements.finish(model, complete)
}

fn run_windows(
    network: &Network,
    plan: &Plan,
    elements: &mut Elements,
    span: &Span,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Picos),
) -> bool {
    let threads = plan.domains();
    let exchange = Exchange::new(threads, stop);
    let mut domains: Vec<Domain<'_>> =
        (0..threads).map(|id| Domain::new(network, plan, id, elements, span)).collect();
    let (first, others) = domains.split_first_mut().expect("a plan has a domain");
    let complete = std::thread::scope(|scope| {
        for domain in others {
            let exchange = &exchange;
            scope.spawn(move || domain.run_all(exchange, &mut |_| {}));
        }
        first.run_all(&exchange, progress)
    });
    for domain in domains {
        domain.finish(elements);
    }
    complete
}
