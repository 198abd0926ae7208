//! A run's folder of somebody else's making: refused, or read, shown and told.
//!
//! Input: a byte that says what is of another's making, then that. Hashes are made right again: they keep mistakes out,
//! and nobody's intent.
#![no_main]

use congestlab_scenario::disk;
use congestlab_scenario::folder::{self, RunFolder};
use congestlab_scenario::recording::{Recording};
use congestlab_scenario::report::{self};
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::outcome::{Element, Event, Outcome, Sample};
use congestlab_scenario::{Measure, Scenario, store};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const VERSION: &str = "fuzz";
const BASE: &str = r#"
[run]
duration = "200 ms"
[links.a]
rate = "1 Mbit/s"
delay = "10 ms"
law = "xcp"
[flows.f]
law = "xcp"
count = 2
path = ["a"]
"#;

/// A folder that is right, and what its files have in them.
struct Run {
    scenario: Scenario,
    outcome: Outcome,
    out: PathBuf,
    path: PathBuf,
    files: Vec<(&'static str, Vec<u8>)>,
}

fn run() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| {
        // The library's panics are told apart (`folder::panics_over`); libFuzzer's hook ends the process.
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if folder::panics_over().is_none() {
                tell(panic);
            }
        }));
        // Several fuzz at a time.
        let out = std::env::temp_dir().join(format!("congestlab-fuzz-{}", std::process::id()));
        let scenario = Scenario::parse("base.toml", BASE, Path::new(""), &[], None).expect("a scenario");
        let model = scenario.model(&Measure { series: true, events: true });
        let outcome = congestlab_fuzz::run(&model);
        let path = write(&out, &scenario, &outcome);
        let names = [store::SUMMARY, store::SCENARIO, store::FLOWS, store::LINKS, store::EVENTS];
        let files = names.map(|name| (name, fs::read(path.join(name)).expect("a file"))).into();
        Run { scenario, outcome, out, path, files }
    })
}

fn write(out: &Path, scenario: &Scenario, outcome: &Outcome) -> PathBuf {
    let meta = Meta { version: VERSION.into(), ..Meta::default() };
    store::write_run(out, VERSION, scenario, outcome, &RunResult::new(scenario, outcome, meta))
        .expect("a folder")
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, bytes)) = input.split_first() else { return };
    let run = run();
    let which = usize::from(which) % (run.files.len() + 1);
    let changed: &[usize] = match which {
        0 => {
            put(run, store::SUMMARY, &summary(&run.files[0].1, bytes));
            &[0]
        }
        1..5 => {
            let name = run.files[which].0;
            put(run, name, bytes);
            let hash = disk::hash_file(&run.path.join(name)).expect("it is there");
            let hashes = serde_json::json!({ store::FILES: { name: hash } });
            put(run, store::SUMMARY, &summary(&run.files[0].1, hashes.to_string().as_bytes()));
            &[0, which]
        }
        _ => {
            let path = write(&run.out, &run.scenario, &with_rows(&run.outcome, bytes));
            assert_eq!(path, run.path);
            &[0, 2, 3, 4]
        }
    };
    match RunFolder::open(&run.path) {
        Err(error) => assert!(!error.to_string().is_empty()),
        // A panic that comes here is the library's.
        Ok(folder) => drop(panic::catch_unwind(panic::AssertUnwindSafe(|| show(&folder)))),
    }
    for &file in changed {
        put(run, run.files[file].0, &run.files[file].1);
    }
});

fn put(run: &Run, name: &str, bytes: &[u8]) {
    fs::write(run.path.join(name), bytes).expect("it can be written");
}

/// The summary with members replaced by those of an object, at any depth; or the text as it is.
fn summary(right: &[u8], bytes: &[u8]) -> Vec<u8> {
    let (Ok(mut all), Ok(some)) = (serde_json::from_slice(right), serde_json::from_slice(bytes)) else {
        return bytes.into();
    };
    merge(&mut all, some);
    all.to_string().into_bytes()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// The run with other values and events: any times in any order, flows that it has not, numbers that are none.
fn with_rows(outcome: &Outcome, bytes: &[u8]) -> Outcome {
    const METRICS: [&str; 8] = [
        "throughput_bps",
        "goodput_bps",
        "received_bps",
        "cwnd_packets",
        "rtt_ms",
        "queue_packets",
        "feedback_bps",
        "?",
    ];
    const KINDS: [&str; 4] = ["drop", "control-interval", "timeout", "?"];
    let mut outcome = Outcome { series: Vec::new(), events: Vec::new(), ..outcome.clone() };
    for row in bytes.chunks_exact(20) {
        let (head, numbers) = row.split_at(4);
        let (at, value) = numbers.split_at(8);
        let at = u64::from_le_bytes(at.try_into().expect("eight"));
        let value: [u8; 8] = value.try_into().expect("eight");
        let element = match head[1] % 4 {
            0 => Element::Link(0),
            1 => Element::Link(1),
            2 => Element::Cloud(0, u32::from(head[2])),
            _ => Element::Flow(0, u32::from(head[2])),
        };
        let metric = METRICS[usize::from(head[3]) % METRICS.len()];
        if head[0] % 4 > 0 {
            outcome.series.push(Sample { at, element, metric, value: f64::from_le_bytes(value) });
        } else {
            let kind = KINDS[usize::from(head[3]) % KINDS.len()];
            let flow = (head[0] > 127).then_some(u32::from(head[2] % 2));
            outcome.events.push(Event {
                at,
                element,
                kind,
                detail: "",
                flow,
                value: i64::from_le_bytes(value),
            });
        }
    }
    outcome
}

fn show(folder: &RunFolder) {
    let Ok(recording) = Recording::read(folder) else { return };
    let normalised = folder.scenario().normalised();
    let run = report::Run {
        name: &folder.name(),
        written: None,
        normalised: &normalised,
        summary: folder.summary(),
    };
    let page = report::html(&run, &recording);
    assert!(page.ends_with("</html>\n"));
    // What a file says can neither begin a program nor end the one that is there.
    assert_eq!(page.matches("<script").count(), SCRIPTS, "a script of somebody else's");
    assert_eq!(page.matches("</script").count(), SCRIPTS, "a script ends early");
    for metric in folder.scenario().metrics() {
        let _ = metric.read(folder.summary(), None).to_string();
    }
}

/// Data, the drawing library, and the page's own.
const SCRIPTS: usize = 3;
