//! What several targets do with their input.

use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use std::sync::atomic::AtomicBool;

/// No folder: a trace is always missing here, and nothing is read.
pub const BASE: &str = "/nonexistent";

/// A scenario and what `--set` changes of it: a text, after a zero byte a path, after another a TOML value. `None`: an
/// absolute path would leave [`BASE`].
pub fn scenario_and_set(input: &[u8]) -> Option<(&str, Option<(String, String)>)> {
    let input = str::from_utf8(input).ok()?;
    let mut parts = input.split('\0');
    let text = parts.next().unwrap_or_default();
    if input.contains("trace") && input.contains('/') {
        return None;
    }
    let set = parts.next().zip(parts.next());
    Some((text, set.map(|(path, value)| (path.to_owned(), value.to_owned()))))
}

/// Runs a model to its end.
pub fn run(model: &Model) -> Outcome {
    let engine = Engine::Window { threads: 1, divisor: 1 };
    sim::run(model, engine, &AtomicBool::new(false), &mut |_| {})
}
