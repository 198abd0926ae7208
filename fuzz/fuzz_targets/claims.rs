//! Any metrics and claims over the results of a run: diagnostics, or verdicts that can be told.
//!
//! Input: what follows the links and flows of a scenario.
#![no_main]

use congestlab_scenario::claims::Observation;
use congestlab_scenario::metric::{Metric, Reading, Series};
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::{Measure, Scenario};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

const BASE: &str = r#"
[run]
duration = "300 ms"
[links.a]
rate = "2 Mbit/s"
delay = "10 ms"
law = "xcp"
[flows.f]
law = "xcp"
count = 2
path = ["a"]
[flows.late]
law = "sack"
path = ["a"]
size = "20 kB"
start = { uniform = "400 ms" }
"#;

/// Two runs of it: by model, outcome and result.
fn runs() -> &'static [(Model, Outcome, Value)] {
    static RUNS: OnceLock<Vec<(Model, Outcome, Value)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let run = |seed| {
            let scenario =
                Scenario::parse("base.toml", BASE, Path::new(""), &[], Some(seed)).expect("a scenario");
            let model = scenario.model(&Measure { series: true, events: false });
            let outcome = congestlab_fuzz::run(&model);
            let result = RunResult::new(&scenario, &outcome, Meta::default()).to_json();
            (model, outcome, result)
        };
        [1, 2].map(run).into()
    })
}

fuzz_target!(|input: &[u8]| {
    let Ok(input) = str::from_utf8(input) else { return };
    if let Ok(metric) = Metric::parse(input) {
        assert_eq!(
            Metric::parse(metric.text()).map(|again| again.text().to_owned()),
            Ok(metric.text().to_owned())
        );
        runs().iter().for_each(|run| tell(&read(&metric, run)));
    }
    let text = format!("{BASE}{input}");
    let Ok(mut scenario) = Scenario::parse("fuzz.toml", &text, Path::new(congestlab_fuzz::BASE), &[], None)
    else {
        return;
    };
    let observe = |run: &(Model, Outcome, Value), seed: usize| Observation {
        is_random: true,
        settings: vec![("run.seed".into(), seed.to_string())],
        readings: scenario.metrics().map(|metric| (metric.text().to_owned(), read(metric, run))).collect(),
    };
    let observations: Vec<Observation> =
        runs().iter().zip(1..).map(|(run, seed)| observe(run, seed)).collect();
    for claim in scenario.claims() {
        for some in [&observations[..], &observations[..1], &[]] {
            let verdict = claim.verdict(some);
            assert_eq!(verdict.that, claim.that());
        }
        claim.lacks_runs(&observations, &observations[..1]);
    }
    scenario.leave_out_unread(&observations);
});

fn read(metric: &Metric, (model, outcome, result): &(Model, Outcome, Value)) -> Reading {
    metric.read(result, Some(&Series::new(outcome, model)))
}

/// What is kept is read again.
fn tell(reading: &Reading) {
    assert!(!reading.to_string().contains("NaN"), "{reading}");
    if let Reading::Number(number) = reading {
        assert!(number.is_finite(), "{number}");
        assert_eq!(Reading::from_json(&reading.to_json()), *reading);
    }
}
