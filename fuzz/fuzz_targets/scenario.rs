//! Any text as a scenario: diagnostics that point into it, or a scenario whose normal form is its own.
//!
//! After a zero byte may follow a path, after another a TOML value: `--set`.
#![no_main]

use congestlab_fuzz::{BASE, scenario_and_set};
use congestlab_scenario::{Diagnostics, Measure, Scenario};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|input: &[u8]| {
    let Some((text, set)) = scenario_and_set(input) else { return };
    let overrides: Vec<(String, String)> = set.into_iter().collect();
    let scenario = match Scenario::parse("fuzz.toml", text, Path::new(BASE), &overrides, None) {
        Ok(scenario) => scenario,
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a reason");
            check(&diagnostics, text);
            return;
        }
    };
    check(scenario.warnings(), text);
    if let Err(diagnostics) = scenario.check() {
        check(&diagnostics, text);
    }
    let everything = Measure { series: true, events: true };
    assert!(scenario.memory_needed(&everything) >= scenario.memory_needed(&Measure::default()));
    assert_eq!(scenario.model(&everything).groups.len(), scenario.model(&Measure::default()).groups.len());

    let normal = scenario.normalised();
    match Scenario::parse("normal.toml", &normal, Path::new(BASE), &[], None) {
        Ok(again) => assert_eq!(again.normalised(), normal, "the normal form changes when read again"),
        Err(diagnostics) => {
            let messages: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.message()).collect();
            panic!("the normal form is refused: {messages:?}\n{normal}");
        }
    }
});

fn check(diagnostics: &Diagnostics, text: &str) {
    for diagnostic in diagnostics.iter() {
        assert!(!diagnostic.message().is_empty() && !diagnostic.help().is_empty(), "{diagnostic:?}");
        assert!(diagnostic.report().is_none_or(|report| !format!("{report:?}").is_empty()));
        let (line, column) = diagnostic.position();
        if diagnostic.file() == "fuzz.toml" {
            assert!(line <= text.matches('\n').count() + 1 && column >= 1, "{line}:{column} is outside");
        }
    }
    assert_eq!(diagnostics.to_json().as_array().map(Vec::len), Some(diagnostics.iter().count()));
}
