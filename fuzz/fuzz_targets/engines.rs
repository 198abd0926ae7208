//! An accepted scenario ends, and both engines say the same of it.
//!
//! Input as for `scenario`. The run is made short; what is still long by then is given up.
#![no_main]

use congestlab_fuzz::{BASE, scenario_and_set};
use congestlab_scenario::sim::{self, Engine, Progress};
use congestlab_scenario::{Measure, Scenario};
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// So much of a scenario is run.
const DURATION: &str = "200 ms";
/// Events of the reference engine after which a run is given up: some ms.
const EVENTS_MAX: u64 = 20_000;
/// Flows and links, which cost before anything happens.
const ELEMENTS_MAX: u64 = 100;

fuzz_target!(|input: &[u8]| {
    let Some((text, set)) = scenario_and_set(input) else { return };
    let short = [("run.duration".into(), format!("{DURATION:?}")), ("run.warmup".into(), "\"0 s\"".into())];
    let overrides: Vec<(String, String)> = set.into_iter().chain(short).collect();
    let Ok(scenario) = Scenario::parse("fuzz.toml", text, Path::new(BASE), &overrides, None) else {
        return;
    };
    let measure = Measure { series: false, events: true };
    let model = scenario.model(&measure);
    let flows: u64 = model.groups.iter().map(|group| u64::from(group.count)).sum();
    if flows + model.links.len() as u64 > ELEMENTS_MAX {
        return;
    }
    let run = |engine, most: u64| {
        let stop = AtomicBool::new(false);
        let outcome = sim::run(&model, engine, &stop, &mut |progress: Progress| {
            stop.fetch_or(progress.packets > most, Ordering::Relaxed);
        });
        (!stop.into_inner()).then_some(outcome)
    };
    let Some(reference) = run(Engine::Reference, EVENTS_MAX) else { return };
    assert!(reference.complete, "it was not stopped");
    for divisor in [1, 3] {
        let window = run(Engine::Window { threads: 1, divisor }, u64::MAX).expect("nobody stops it");
        assert_eq!(window.fingerprint, reference.fingerprint, "divisor {divisor}");
        assert_eq!(window.packet_hops, reference.packet_hops, "divisor {divisor}");
    }
    let kept = size_of_val(&*reference.events) as u64;
    assert!(scenario.memory_needed(&measure) >= kept, "{kept} bytes of events");
});
