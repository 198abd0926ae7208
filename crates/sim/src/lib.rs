//! Runs very many links and hosts against a virtual clock, the same way every time.
//!
//! [`run`] turns a [`model::Model`] into an [`outcome::Outcome`]. Two engines drive the same
//! elements of `congestlab-net`: the window engine (`window.rs`), which executes entity by entity
//! inside conservative time windows, and a small globally ordered one (`reference.rs`), its oracle.
//! Nothing here knows wall time or global state, and nothing iterates an unordered map.
//!
//! A source of 12 Mbit/s on a link of 10 Mbit/s with room for 50 packets, for 2 s after 1 s of warm-up:
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use congestlab_core::units::{BitRate, Time};
//! use congestlab_net::{port::PortConfig, queue::Limit, service::Service, source::Pattern, source::SourceConfig};
//! use congestlab_sim::model::{Group, GroupKind, Link, Model, Start};
//! use congestlab_sim::{Engine, run};
//!
//! const SECOND: u64 = 1_000_000_000_000;
//! let service = Service::Fixed(BitRate(10_000_000));
//! let port = PortConfig::new(service, SECOND / 100, Limit::Packets(50));
//! let source = SourceConfig { segment: 1000, rate: BitRate(12_000_000), pattern: Pattern::Constant };
//! let model = Model {
//!     seed: 1,
//!     duration: 3 * SECOND,
//!     warmup: SECOND,
//!     links: vec![Link { name: "bottleneck".into(), port }],
//!     devices: vec![],
//!     groups: vec![Group {
//!         name: "video".into(),
//!         kind: GroupKind::Source(source),
//!         count: 1,
//!         path: vec![0],
//!         back: vec![],
//!         switches: vec![],
//!         access: None,
//!         exit: None,
//!         start: Start::Every { from: Time(0), every: 0 },
//!         stop: Time::NEVER,
//!         schedule: vec![],
//!         sizes: None,
//!         interoperable: None,
//!     }],
//!     sample_every: None,
//!     record_events: false,
//! };
//! let outcome = run(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| {});
//! let link = &outcome.links[0];
//! assert_eq!(link.throughput_bps, Some(10e6));
//! assert!((499..=501).contains(&link.drops), "one packet of six is dropped: {}", link.drops);
//! ```

mod agents;
mod arrivals;
mod barrier;
pub mod bounds;
mod calendar;
pub mod cloud;
#[cfg(test)]
#[expect(dead_code, reason = "tests/engines.rs draws other models from it, too")]
#[path = "../tests/common/mod.rs"]
mod common;
mod costs;
mod crew;
mod cut;
mod device;
mod elements;
mod flows;
pub mod headers;
mod hosts;
mod mail;
pub mod model;
mod network;
mod order;
mod origin;
pub mod outcome;
pub mod parallel;
mod plan;
mod prefetch;
mod reference;
mod router;
mod share;
mod station;
mod store;
mod tally;
pub mod watch;
mod watched;
mod window;

// The models that tests draw are written for those outside.
#[cfg(test)]
extern crate self as congestlab_sim;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

pub use arrivals::REMEMBERED;
use barrier::Exchange;
use congestlab_net::packet::{Packet, Picos};
use elements::Elements;
pub use flows::is_fleeting;
use model::Model;
use network::Network;
pub use network::{measure_of, segments_of, starts_of};
use outcome::Outcome;
use parallel::Counted;
use plan::Plan;
use store::Store;
use tally::{Ending, RULE, Tally};
use watch::{Step, Watched, Watcher};
use window::Domain;

/// The engine that runs a model. All engines give the same outcome, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The window engine, which cuts time into windows and runs each element alone inside one. A model in which
    /// packets can go round a circle of elements without any delay has no window: the reference engine runs it.
    Window {
        /// The most threads to use, at least 1.
        threads: usize,
        /// Number that the widest window of the model is divided by: 1, 2, 4, ... The outcome is the same for each.
        divisor: u32,
    },
    /// The reference engine: one globally ordered event queue.
    Reference,
}

/// An observer of every packet whose transmission on a link begins.
///
/// The packets of one link come in order of time, the same for every engine; those of different links in
/// any order and from any thread.
pub trait Tap: Sync {
    /// Takes note that `packet` begins to leave through `link`, an index into [`Model::links`], at `at` (ps).
    /// It carries the header that the link's law gave it, and the time when it is at the far end. `is_lost` says that it will reach the far end broken.
    fn sent(&self, link: u32, at: Picos, packet: &Packet, is_lost: bool);
}

/// How long to simulate and what to write down.
#[derive(Clone, Copy)]
struct Span<'a> {
    /// The last instant of the run.
    end: Picos,
    /// Length of a bin of the series.
    bin: Option<Picos>,
    events: bool,
    tap: Option<&'a dyn Tap>,
    /// Raised by somebody who wants the run to end.
    stop: &'a AtomicBool,
}

impl Span<'_> {
    /// Somebody wants to know more than the outcome.
    fn is_probed(&self) -> bool {
        self.bin.is_some() || self.events || self.tap.is_some()
    }
}

/// Asked so often after somebody wants the run to end, it still goes on: to the end of the window of time that it is in, or until
/// all threads have heard of it, unless that is very much. So what comes of it is nearly always that of a shorter run.
const PATIENCE: u32 = 8192;

/// The flag that ends a run, and how long the run still lingers after it is raised.
struct Stop<'a> {
    flag: &'a AtomicBool,
    patience: Cell<u32>,
}

impl<'a> Stop<'a> {
    /// `lead`: meetings that threads may be ahead of what they have heard.
    fn new(flag: &'a AtomicBool, lead: u64) -> Self {
        Self { flag, patience: Cell::new(PATIENCE * (lead as u32 + 1)) }
    }

    /// False once it is given up.
    #[inline]
    fn goes_on(&self) -> bool {
        !self.flag.load(Relaxed) || self.lingers()
    }

    #[cold]
    fn lingers(&self) -> bool {
        self.patience.set(self.patience.get().saturating_sub(1));
        !self.is_given_up()
    }

    #[inline]
    fn is_given_up(&self) -> bool {
        self.patience.get() == 0
    }
}

/// How far a run has come, for a progress display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time, ps. Where parts of the network run one after the other, it is the share of them that is
    /// done, times the duration.
    pub at: Picos,
    /// Packets that reached a link or a host so far, approximately.
    pub packets: u64,
}

/// From this many parts on, which no packet connects, a network is run part by part: what a part
/// needs stays in the cache, and threads need not wait for each other. With fewer, threads would
/// have too little choice.
const MANY_PARTS: usize = 16;

/// Runs the model and returns its outcome. Raising `stop` ends the run early; the outcome is then marked
/// incomplete. `progress` is called now and then.
pub fn run(model: &Model, engine: Engine, stop: &AtomicBool, progress: &mut dyn FnMut(Progress)) -> Outcome {
    run_tapped(model, engine, stop, progress, None)
}

/// Runs the model as [`run`] does and shows every packet on a link to `tap`. The outcome is the same.
pub fn run_tapped(
    model: &Model,
    engine: Engine,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
    tap: Option<&dyn Tap>,
) -> Outcome {
    run_counted(model, engine, stop, progress, tap, None)
}

/// Runs the model; with `counted` threads take turns, and what they do is counted.
fn run_counted(
    model: &Model,
    engine: Engine,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
    tap: Option<&dyn Tap>,
    counted: Option<&mut Counted>,
) -> Outcome {
    let network = Network::new(model);
    let mut elements = Elements::new(model, &network, false, stop);
    let span = Span { end: model.duration, bin: model.sample_every, events: model.record_events, tap, stop };
    let complete = match engine {
        // Some hosts may never have been built.
        _ if stop.load(Relaxed) => {
            elements.reached = 0;
            false
        }
        Engine::Window { threads, divisor } => {
            let parts = Some(network.parts()).filter(|parts| parts.len() >= MANY_PARTS);
            let parts = parts.filter(|parts| share::is_even(parts, threads));
            let of_parts = parts.as_ref().and_then(|parts| {
                let plan = |part| Plan::new(part, divisor);
                parts.iter().map(|part| plan(part).map(|plan| (part, plan))).collect::<Option<Vec<_>>>()
            });
            match (of_parts, counted) {
                (Some(parts), None) => run_parts(&parts, threads, &mut elements, &span, progress),
                (Some(parts), Some(counted)) => {
                    parallel::run_parts(&parts, threads, &mut elements, &span, counted);
                    true
                }
                (None, counted) => match Plan::new(&network, divisor) {
                    Some(alone) => {
                        let way = (threads, divisor);
                        crew::run(&network, &alone, way, &mut elements, &span, RULE, counted, progress)
                    }
                    None => reference::run(&network, &mut elements, &span, progress, None),
                },
            }
        }
        Engine::Reference => reference::run(&network, &mut elements, &span, progress, None),
    };
    if complete {
        elements.finish(model, complete)
    } else {
        // What there is belongs to the time that was simulated.
        let duration = elements.reached.min(model.duration);
        elements.finish(&Model { duration, ..model.clone() }, complete)
    }
}

/// Runs the model on the reference engine and calls `each` with every step of every packet, in order of
/// time, until it returns `Break`. The states of the `watched` senders come along. Returns false if `stop` ended the run.
pub fn watch(
    model: &Model,
    watched: Watched,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
    each: &mut dyn FnMut(Picos, &Step) -> ControlFlow<()>,
) -> bool {
    let network = Network::new(model);
    let mut elements = Elements::new(model, &network, true, stop);
    let span = Span { end: model.duration, bin: None, events: false, tap: None, stop };
    if stop.load(Relaxed) {
        return false;
    }
    let watcher = Watcher { watched, each, is_done: false };
    reference::run(&network, &mut elements, &span, progress, Some(watcher))
}

/// Runs parts that no packet connects, each from the beginning to the end, on as many threads.
fn run_parts(
    parts: &[(&Network, Plan)],
    threads: usize,
    elements: &mut Elements,
    span: &Span<'_>,
    progress: &mut dyn FnMut(Progress),
) -> bool {
    let elements = Mutex::new(elements);
    let (next, done, packets) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
    let work = |tell: &mut dyn FnMut(Progress)| {
        let mut store = Store::default();
        // Each part begins at the first meeting again, which nobody else tells.
        let alone = Exchange::new(1, 0, span.stop);
        while let Some((network, plan)) = parts.get(next.fetch_add(1, Relaxed)) {
            let take = || elements.lock().expect("no thread panics with the elements in hand");
            let mut domain = Domain::new(network, plan, 0, &mut take(), span, store, 0);
            let ending = domain.run_all(alone.seat(0), Tally::of_one(), &mut |_| {});
            let packets = packets.fetch_add(domain.packets, Relaxed) + domain.packets;
            store = domain.finish(&mut take());
            if ending != Ending::Complete {
                return;
            }
            let share = (done.fetch_add(1, Relaxed) + 1) as u128;
            tell(Progress { at: (u128::from(span.end) * share / parts.len() as u128) as Picos, packets });
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| work(&mut |_| {}));
        }
        work(progress);
    });
    let is_complete = done.into_inner() == parts.len();
    if !is_complete {
        // Parts that never began have no time in common with the others.
        elements.into_inner().expect("no thread panics with the elements in hand").reached = 0;
    }
    is_complete
}
