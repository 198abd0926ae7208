//! A link or a sender that somebody else decides for, once in each control interval: the world of a Gymnasium environment.
//!
//! The engine runs on a thread of its own. At the end of an interval the law there tells what it has seen and waits for an
//! answer; whoever is asked has the GIL, the law has not. Only one of the two ever works, so equal answers give equal runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as Span;

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::words::{LinkWords, SenderWords};
use congestlab_core::law::{self, LinkLaw, Needs, SenderLaw, Series, Steered, outside};
use congestlab_scenario::Measure;
use congestlab_scenario::net::port::LawConfig;
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::model::{GroupKind, Model};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::units::{Bytes, Duration, Rate, Time};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::scenario::Scenario;
use crate::wait::SIGNALS_EVERY;
use crate::{VERSION, refused};

/// The window of an agent grows to so many segments at most: what is in flight takes memory.
const WINDOW_MAX: u64 = 1 << 14;

/// What is seen of an interval. The names are in `env.py`.
type Seen = [f64; 6];

/// Where engine and agent meet.
#[derive(Debug, Default)]
struct Meeting {
    place: Mutex<Place>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Place {
    seen: Option<Seen>,
    action: Option<f64>,
    /// The object of results, once the run has ended.
    result: Option<String>,
    is_over: bool,
    is_closed: bool,
}

impl Meeting {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's part: `None` once nobody answers any more.
    fn ask(&self, seen: Seen) -> Option<f64> {
        let mut place = self.place();
        place.seen = Some(seen);
        self.changed.notify_all();
        loop {
            if place.is_closed {
                return None;
            }
            if let Some(action) = place.action.take() {
                return Some(action);
            }
            place = self.changed.wait(place).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, result: Option<String>) {
        let mut place = self.place();
        place.is_over = true;
        place.result = place.result.take().or(result);
        self.changed.notify_all();
    }

    /// The agent's part: `None` after a while without news, `Some(None)` once the run is over.
    fn wait(&self, longest: Span) -> Option<Option<Seen>> {
        let place = self.place();
        let (mut place, _) = self
            .changed
            .wait_timeout_while(place, longest, |place| place.seen.is_none() && !place.is_over)
            .unwrap_or_else(PoisonError::into_inner);
        match place.seen.take() {
            Some(seen) => Some(Some(seen)),
            None => place.is_over.then_some(None),
        }
    }

    fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.place().is_closed = true;
        self.changed.notify_all();
    }
}

/// An agent in one run.
#[derive(Clone, Debug)]
struct Config {
    meeting: Arc<Meeting>,
    interval: Duration,
    /// Of a link.
    capacity: Rate,
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.meeting, &other.meeting)
    }
}

impl Settings for Config {
    fn each(&mut self, _tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {}
}

fn seconds(span: Duration) -> f64 {
    span.0 as f64 / 1e9
}

/// A sender whose window the agent sets: an answer `a` multiplies it by 2^a.
#[derive(Clone, Debug)]
struct Sender {
    mss: Bytes,
    window: Bytes,
    rtt_min: Duration,
    srtt: Duration,
    began: Option<Time>,
    acked: Bytes,
    losses: u32,
}

impl Sender {
    fn decide(&mut self, config: &Config, now: Time) {
        let began = *self.began.get_or_insert(now);
        let passed = now - began;
        if passed < config.interval {
            return;
        }
        let per = seconds(passed);
        let seen = [
            self.window.0 as f64 / self.mss.0 as f64,
            seconds(self.srtt) * 1e3,
            seconds(self.rtt_min) * 1e3,
            self.acked.0 as f64 * 8e-6 / per,
            self.losses.into(),
            per * 1e3,
        ];
        (self.began, self.acked, self.losses) = (Some(now), Bytes(0), 0);
        if let Some(action) = config.meeting.ask(seen) {
            let window = self.window.0 as f64 * libm::exp2(action.clamp(-1.0, 1.0));
            self.window = Bytes((window as u64).clamp(self.mss.0, self.mss.0 * WINDOW_MAX));
        }
    }
}

impl SenderWords for Sender {}

impl SenderLaw for Sender {
    type Config = Config;
    type Echo = ();

    fn name(_config: &Config) -> &'static str {
        "agent"
    }

    fn needs(_config: &Config) -> Needs {
        Needs::NONE
    }

    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        let window = initial_window.max(mss);
        let none = Duration(0);
        Self { mss, window, rtt_min: none, srtt: none, began: None, acked: Bytes(0), losses: 0 }
    }

    fn on_ack(&mut self, config: &Config, now: Time, ack: &law::Ack) {
        self.acked += ack.acked;
        self.srtt = ack.srtt;
        if ack.rtt.0 > 0 && (self.rtt_min.0 == 0 || ack.rtt < self.rtt_min) {
            self.rtt_min = ack.rtt;
        }
        self.decide(config, now);
    }

    fn on_loss(&mut self, _config: &Config, _now: Time, _flight: Bytes) {
        self.losses += 1;
    }

    /// A path that is silent for so long is not asked about: the window begins anew.
    fn on_timeout(&mut self, config: &Config, now: Time, _flight: Bytes, _is_first: bool) {
        self.losses += 1;
        self.window = self.mss;
        self.decide(config, now);
    }

    fn on_restart(&mut self, _config: &Config, _now: Time, _initial_window: Bytes) {}

    fn window(&self) -> Bytes {
        self.window
    }
}

/// A link whose share of marked packets the agent sets.
#[derive(Clone, Debug)]
struct Link {
    config: Config,
    share: f64,
    /// What is owed of the next mark: a share of 1/4 marks each fourth packet, nothing is drawn.
    owed: f64,
    arrived: Bytes,
    departed: Bytes,
    markable: u32,
    marked: u32,
    deadline: Time,
    intervals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Report(u64);

impl Series for Report {
    fn intervals(&self) -> u64 {
        self.0
    }

    fn decision(&self) -> i64 {
        0
    }

    fn each(&self, _tell: &mut impl FnMut(&'static str, i64, u32)) {}
}

impl Steered for Link {}
impl LinkWords for Link {}

/// Codes of the ECN field (RFC 3168).
const NOT_CAPABLE: u8 = 0;
const MARKED: u8 = 3;

impl LinkLaw for Link {
    type Config = Config;
    type Report = Report;
    type View = ();

    fn name(_config: &Config) -> &'static str {
        "agent"
    }

    fn start(config: &Config, _phase: Duration, _second_phase: Duration) -> Self {
        Self {
            config: config.clone(),
            share: 0.0,
            owed: 0.0,
            arrived: Bytes(0),
            departed: Bytes(0),
            markable: 0,
            marked: 0,
            // Alone with its agent, it keeps step with nobody.
            deadline: Time::ZERO + config.interval,
            intervals: 0,
        }
    }

    fn first_interval(config: &Config) -> Duration {
        config.interval
    }

    fn shortest_interval(config: &Config, _round_trip: Duration) -> Duration {
        config.interval
    }

    fn capacity(config: &Config) -> Rate {
        config.capacity
    }

    fn configure_capacity(config: &mut Config, capacity: Rate) {
        config.capacity = capacity;
    }

    fn set_capacity(&mut self, capacity: Rate) {
        self.config.capacity = capacity;
    }

    fn on_arrival(&mut self, _now: Time, packet: &impl law::Packet) {
        self.arrived += packet.size();
    }

    fn on_departure(&mut self, _now: Time, packet: &mut impl law::Packet, _backlog: Bytes) {
        self.departed += packet.size();
        if packet.ecn() == NOT_CAPABLE {
            return;
        }
        self.markable += 1;
        self.owed += self.share;
        if self.owed >= 1.0 {
            self.owed -= 1.0;
            self.marked += 1;
            packet.set_ecn(MARKED);
        }
    }

    fn only_lowers(&self, _came: &impl law::Packet, _left: &impl law::Packet) -> bool {
        true
    }

    fn next_deadline(&self) -> Time {
        self.deadline
    }

    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        let per = seconds(self.config.interval);
        let capacity = self.config.capacity.0 as f64;
        let seen = [
            capacity * 8e-6,
            self.arrived.0 as f64 * 8e-6 / per,
            self.departed.0 as f64 * 8e-6 / per,
            if capacity > 0.0 { backlog.0 as f64 / capacity * 1e3 } else { 0.0 },
            f64::from(self.marked) / f64::from(self.markable.max(1)),
            per * 1e3,
        ];
        (self.arrived, self.departed, self.markable, self.marked) = (Bytes(0), Bytes(0), 0, 0);
        if let Some(action) = self.config.meeting.ask(seen) {
            self.share = action.clamp(0.0, 1.0);
        }
        self.intervals += 1;
        self.deadline = now + self.config.interval;
    }

    fn report(&self) -> Report {
        Report(self.intervals)
    }
}

/// A run, interval by interval.
#[pyclass(module = "congestlab._native")]
pub(crate) struct Episode {
    meeting: Arc<Meeting>,
    engine: Option<JoinHandle<()>>,
}

#[pymethods]
impl Episode {
    /// Begins a run in which `agent`, `links.NAME` or `flows.NAME`, is decided for.
    #[new]
    fn new(scenario: &Scenario, agent: &str, interval_ns: u64) -> PyResult<Self> {
        scenario.laws.require_none("an environment")?;
        if interval_ns == 0 {
            return Err(PyValueError::new_err("interval is 0; allowed: 1 ns and more"));
        }
        let meeting = Arc::new(Meeting::default());
        let config =
            Config { meeting: Arc::clone(&meeting), interval: Duration(interval_ns), capacity: Rate(0) };
        let mut model = scenario.parsed.model(&Measure::default());
        put(&mut model, agent, config)?;
        let (scenario, of_engine) = (Arc::clone(&scenario.parsed), Arc::clone(&meeting));
        let engine = std::thread::Builder::new().name("congestlab".into()).spawn(move || {
            // Whoever waits is told, however this ends.
            let _guard = Ending(&of_engine);
            let outcome = sim::run(&model, Engine::Reference, &of_engine.stop, &mut |_| {});
            let meta = Meta { version: VERSION.to_owned(), ..Meta::default() };
            of_engine.end(Some(RunResult::new(&scenario, &outcome, meta).to_json().to_string()));
        })?;
        Ok(Self { meeting, engine: Some(engine) })
    }

    /// Answers with `action`, if something was asked, and goes on to the next interval; `None`: the run is over.
    fn next(&self, py: Python<'_>, action: Option<f64>) -> PyResult<Option<Seen>> {
        if let Some(action) = action {
            self.meeting.place().action = Some(action);
            self.meeting.changed.notify_all();
        }
        loop {
            if let Some(seen) = py.detach(|| self.meeting.wait(SIGNALS_EVERY)) {
                return Ok(seen);
            }
            if let Err(error) = py.check_signals() {
                self.meeting.close();
                return Err(error);
            }
        }
    }

    /// The object of results, as JSON, once the run is over.
    fn json(&self) -> PyResult<String> {
        self.meeting.place().result.clone().ok_or_else(|| PyRuntimeError::new_err("the run is not over"))
    }

    /// Ends the run.
    fn close(&mut self, py: Python<'_>) {
        self.meeting.close();
        if let Some(engine) = self.engine.take() {
            // A panic was told on stderr.
            let _ = py.detach(|| engine.join());
        }
    }
}

impl Drop for Episode {
    fn drop(&mut self) {
        // The engine needs no GIL to end, and nobody to wait for it.
        self.meeting.close();
    }
}

/// Tells who waits that the run is over, if the engine panics.
struct Ending<'a>(&'a Meeting);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end(None);
    }
}

/// Puts the agent where it belongs.
fn put(model: &mut Model, agent: &str, config: Config) -> PyResult<()> {
    if let Some(name) = agent.strip_prefix("links.")
        && let Some(link) = model.links.iter_mut().find(|link| link.name == name)
    {
        let config = outside::link::<Link>(config);
        link.port.law = Some(LawConfig { config, follows_service: true });
        return Ok(());
    }
    if let Some(name) = agent.strip_prefix("flows.")
        && let Some(group) = model.groups.iter_mut().find(|group| group.name == name)
    {
        let GroupKind::Tcp(tcp) = &mut group.kind else {
            let text = format!("`{name}` sends datagrams at its own rate");
            return Err(refused(text, "a group whose law is one of TCP's, such as \"sack\""));
        };
        if group.count != 1 {
            let text = format!("`{name}` is {} flows, and an agent decides for one", group.count);
            return Err(refused(text, "a group of its own, with count = 1"));
        }
        tcp.law = outside::sender::<Sender>(config);
        return Ok(());
    }
    let links = model.links.iter().map(|link| format!("links.{}", link.name));
    let flows = model.groups.iter().map(|group| format!("flows.{}", group.name));
    let all: Vec<String> = links.chain(flows).collect();
    Err(refused(format!("there is no `{agent}` to decide for"), format!("allowed: {}", all.join(", "))))
}
