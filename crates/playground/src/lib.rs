//! The simulator as a WebAssembly module, for `page/engine.js`: one question in, one answer out, no generated glue.
//!
//! The page writes a question in JSON where [`input`] says, calls [`answer`], and reads JSON at [`output`]. The only import
//! is told how far a run has come. A panic is a trap: its words are the output, and the instance is of no more use.
//! `examples/native.rs` asks the same code, built for this machine: what the module's speed is held against.
#![expect(unsafe_code, reason = "names that are exported and imported; nothing is dereferenced here")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use congestlab_scenario::diagnostic::Diagnostics;
use congestlab_scenario::explain::{self, ExplainError, Flow};
use congestlab_scenario::law::link_law_of;
use congestlab_scenario::recording::Recording;
use congestlab_scenario::report;
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::units::Time;
use congestlab_scenario::{Files, Measure, Scenario};
use serde_json::{Value as Json, json};

/// Bytes that a run may need. A browser gives a module 4 GiB at most; a scenario may be a stranger's.
const MEMORY: u64 = 1 << 30;

#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Takes note that this share of a run is done.
    safe fn progress(share: f64);
}

/// Nobody looks on.
#[cfg(not(target_family = "wasm"))]
fn progress(_: f64) {}

static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static OUTPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn bytes(buffer: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for a question of so many bytes; returns where it belongs.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    let mut input = bytes(&INPUT);
    *input = vec![0; length];
    input.as_mut_ptr()
}

/// Answers the question in [`input`]. Returns an exit code of the command: 0 done, 2 bad input, 4 more than this machine
/// can do.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> u32 {
    std::panic::set_hook(Box::new(|panic| *bytes(&OUTPUT) = panic.to_string().into_bytes()));
    let question = std::mem::take(&mut *bytes(&INPUT));
    let (status, answer) = ask(&question);
    *bytes(&OUTPUT) = answer.into_bytes();
    status
}

/// Answers a question in JSON, with a status as that of [`answer`].
pub fn ask(question: &[u8]) -> (u32, String) {
    let (status, answer) = match serde_json::from_slice(question) {
        Ok(question) => Question(question).answer(),
        Err(error) => refused(&error.to_string(), "the page asks in JSON"),
    };
    (status, answer.to_string())
}

/// Where the answer begins.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    bytes(&OUTPUT).as_ptr()
}

/// Its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    bytes(&OUTPUT).len()
}

type Answer = (u32, Json);

fn wrong(status: u32, diagnostics: &Diagnostics) -> Answer {
    (status, json!({ "errors": diagnostics.to_json() }))
}

/// An error without a place.
fn refused(message: &str, help: &str) -> Answer {
    (2, error(message, help))
}

fn error(message: &str, help: &str) -> Json {
    json!({ "errors": [{ "severity": "error", "message": message, "help": help }] })
}

/// `do`: `check`, `run` or `explain`. `text` is a scenario, `name` what errors call it, `files` what it may read; `law` takes
/// the place of its laws.
struct Question(Json);

impl Question {
    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    fn answer(&self) -> Answer {
        let scenario = match self.scenario() {
            Ok(scenario) => scenario,
            Err(diagnostics) => return wrong(2, &diagnostics),
        };
        match self.text("do") {
            "check" => check(&scenario),
            "run" => self.run(&scenario),
            "explain" => self.explain(&scenario),
            other => refused(&format!("`do` is \"{other}\""), "allowed: check, run, explain"),
        }
    }

    fn scenario(&self) -> Result<Scenario, Diagnostics> {
        let files = self.0["files"].as_object().into_iter().flatten();
        let files = files.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.as_bytes().to_vec())));
        let files = Files::Given(Arc::new(files.collect::<BTreeMap<_, _>>()));
        let read = |overrides: &[(String, String)]| {
            Scenario::parse_with(self.text("name"), self.text("text"), files.clone(), overrides, None)
        };
        let scenario = read(&[])?;
        match self.0["law"].as_str() {
            Some(law) => read(&laws(&scenario, law)),
            None => Ok(scenario),
        }
    }

    fn run(&self, scenario: &Scenario) -> Answer {
        let is_shown = self.0["report"].as_bool().unwrap_or(true);
        let measure = Measure { series: is_shown, events: is_shown };
        if let Err(diagnostics) = scenario.require_memory(&measure, MEMORY) {
            return wrong(4, &diagnostics);
        }
        let model = scenario.model(&measure);
        // One thread: the engine then starts none, and there is none to start.
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let (stop, estimate, mut excess) = (AtomicBool::new(false), scenario.estimate(&measure), None);
        let mut tell = |now: sim::Progress| {
            progress(now.at as f64 / model.duration as f64);
            if let Some(text) = estimate.stopped(scenario.name(), now, None, None) {
                excess.get_or_insert(text);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let outcome = sim::run(&model, engine, &stop, &mut tell);
        if let Some(text) = excess {
            return (4, error(&text, ""));
        }
        let meta = Meta { version: env!("CARGO_PKG_VERSION").into(), ..Meta::default() };
        let summary = RunResult::new(scenario, &outcome, meta).to_json();
        let report = is_shown.then(|| {
            let normalised = scenario.normalised();
            let (name, written) = (scenario.name(), Some(scenario.written()));
            let run = report::Run { name, written, normalised: &normalised, summary: &summary };
            report::html(&run, &Recording::of(scenario, &outcome))
        });
        (0, json!({ "result": summary, "warnings": scenario.warnings().to_json(), "report": report }))
    }

    fn explain(&self, scenario: &Scenario) -> Answer {
        let flow = match Flow::parse(scenario, self.text("flow")) {
            Ok(flow) => flow,
            Err(error) => return refused(&error.message, &error.help),
        };
        let at: Time = match self.text("at").parse() {
            Ok(at) => at,
            Err(error) => return refused(&format!("{error}"), "a time, such as \"20 s\""),
        };
        if let Err(diagnostics) = scenario.require_memory(&Measure::default(), MEMORY) {
            return wrong(4, &diagnostics);
        }
        let end = at.0 as f64 * 1e3;
        let mut tell = |now| progress(if end > 0.0 { now as f64 / end } else { 0.0 });
        let link = self.0["link"].as_str();
        match explain::explain(scenario, None, flow, at, link, &AtomicBool::new(false), &mut tell) {
            Ok(Some(explanation)) => (0, json!({ "told": explanation.to_string() })),
            Ok(None) => refused("the run was interrupted", ""),
            Err(ExplainError::Refused(error)) => refused(&error.message, &error.help),
            Err(error) => refused(&error.to_string(), ""),
        }
    }
}

/// Findings, and the flows of which [`Question::explain`] can be asked.
fn check(scenario: &Scenario) -> Answer {
    let (plan, status) = match scenario.check() {
        Ok(warnings) => (warnings, 0),
        Err(errors) => (errors, 2),
    };
    let groups = scenario.model(&Measure::default()).groups;
    let groups: Vec<Json> = groups.iter().map(|group| json!([group.name, group.count])).collect();
    let own = if status == 0 { "warnings" } else { "errors" };
    let mut answer = json!({ "groups": groups, "warnings": [] });
    answer[own] = plan.to_json();
    if let (Some(all), Json::Array(of_run)) =
        (answer["warnings"].as_array_mut(), scenario.warnings().to_json())
    {
        all.extend(of_run);
    }
    (status, answer)
}

/// What gives all flows another law, and the links what belongs to it. Links of a law that flows do not use are in nobody's
/// way.
fn laws(scenario: &Scenario, law: &str) -> Vec<(String, String)> {
    let word = |text: &str| Json::from(text).to_string();
    let model = scenario.model(&Measure::default());
    let named = model.groups.iter().zip(scenario.flow_laws());
    let flows = named
        .filter(|(_, own)| !matches!(own, None | Some("cbr" | "onoff")))
        .map(|(group, _)| (format!("flows.{}.law", word(&group.name)), word(law)));
    let links = link_law_of(law).map(|of_link| ("links.*.law".to_owned(), word(of_link)));
    flows.chain(links).collect()
}
