//! What tests of whole scenarios share.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

/// The scenario, which written out reads back as the same.
pub(crate) fn scenario(text: &str, settings: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, String)> =
        settings.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
    let scenario = Scenario::parse("test.toml", text, Path::new(""), &overrides, None)
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let written = scenario.normalised();
    let again = Scenario::parse("again.toml", &written, Path::new(""), &[], None)
        .unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.normalised(), written);
    scenario
}

/// What comes of it, on both engines.
pub(crate) fn run(scenario: &Scenario, measure: &Measure) -> Outcome {
    let model = scenario.model(measure);
    let run = |engine| sim::run(&model, engine, &AtomicBool::new(false), &mut |_| {});
    let reference = run(Engine::Reference);
    assert_eq!(run(Engine::Window { threads: 1, divisor: 1 }).fingerprint, reference.fingerprint);
    reference
}
