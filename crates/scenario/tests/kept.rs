//! What a run leaves on disk, and results of very many flows.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::result::{FLOWS_LISTED_MAX, Meta, RunResult, write_events_csv, write_series_csv};
use congestlab_scenario::sim::outcome::{Element, Event, FlowOutcome, LinkOutcome, Outcome, Sample};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario, disk, store};
use serde_json::{Value, json};

const TRACED: &str = r#"
[run]
duration = "1 s"
[links.lte]
rate = { trace = "lte.down" }
delay = "10 ms"
[flows.ftp]
law = "cubic"
path = ["lte"]
"#;

fn traced() -> Scenario {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    Scenario::parse("traced.toml", TRACED, &data, &[], None).unwrap_or_else(|error| panic!("{error}"))
}

fn simulate(scenario: &Scenario) -> Outcome {
    let model = scenario.model(&Measure { series: true, events: true });
    sim::run(&model, Engine::Window { threads: 1, divisor: 1 }, &AtomicBool::new(false), &mut |_| ())
}

#[test]
fn the_folder_of_a_run_is_enough_to_repeat_it() {
    let out = tempfile::tempdir().unwrap();
    let scenario = traced();
    let outcome = simulate(&scenario);
    let result = RunResult::new(&scenario, &outcome, Meta::default());
    let write = || store::write_run(out.path(), "v1", &scenario, &outcome, &result).unwrap();
    let folder = write();
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("traced-1-") && name.len() == "traced-1-".len() + 8, "{name}");
    let mut left: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(
        left,
        [
            "events.parquet",
            "flows.parquet",
            "link-0.trace",
            "link-1.trace",
            "links.parquet",
            "scenario.original.toml",
            "scenario.toml",
            "summary.json"
        ]
    );

    let again =
        Scenario::load(&folder.join("scenario.toml"), &[], None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(simulate(&again).fingerprint, outcome.fingerprint);
    let mut summary: Value =
        serde_json::from_slice(&std::fs::read(folder.join("summary.json")).unwrap()).unwrap();
    let files = summary.as_object_mut().and_then(|summary| summary.remove("files")).unwrap();
    assert_eq!(files.as_object().map(|files| files.len()), Some(7), "{files}");
    assert_eq!(summary, result.to_json());

    assert_eq!(write(), folder, "the same run has the same folder, written anew");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1, "nothing temporary is left");
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("x.csv");
    disk::write_atomically(&path, b"old").unwrap();
    let failed = disk::write_with(&path, |file| {
        file.write_all(b"half")?;
        Err(std::io::Error::other("full"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "full");
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1);
    assert!(disk::write_atomically(&out.path().join("no/such/folder"), b"").is_err());
}

/// Litter is looked for while others write: what is new, and not held yet, is theirs.
#[test]
fn who_clears_litter_away_takes_no_file_of_others() {
    let out = &tempfile::tempdir().unwrap();
    std::thread::scope(|threads| {
        let write = |name: &'static str| {
            let path = out.path().join(name);
            threads.spawn(move || {
                for _ in 0..500 {
                    disk::write_with(&path, |file| file.write_all(b"new")).unwrap();
                }
            })
        };
        let writers = ["a", "b"].map(write);
        threads.spawn(move || {
            while !writers.iter().all(|writer| writer.is_finished()) {
                disk::try_folder(out.path()).unwrap();
            }
        });
    });
}

/// Spreadsheets take these for formulae, and run them; numbers are left as they are.
#[test]
fn names_that_a_spreadsheet_would_run_are_text() {
    for (name, field) in [
        ("=1+1", "\"'=1+1\""),
        ("+x", "\"'+x\""),
        ("-x", "\"'-x\""),
        ("@SUM(A1)", "\"'@SUM(A1)\""),
        ("a=b", "a=b"),
    ] {
        let text = format!(
            "[run]\nduration = \"1 s\"\n[links.\"{name}\"]\nrate = \"1 Mbit/s\"\n[flows.f]\nlaw = \"sack\"\n\
             path = [\"{name}\"]\n"
        );
        let scenario = Scenario::parse("names.toml", &text, Path::new(""), &[], None).unwrap();
        let sample = Sample { at: 1, element: Element::Link(0), metric: "queue_packets", value: -1.0 };
        let outcome = Outcome { series: vec![sample], ..Outcome::default() };
        let mut series = Vec::new();
        write_series_csv(&mut series, &scenario, &outcome).unwrap();
        let series = String::from_utf8(series).unwrap();
        assert!(series.ends_with(&format!("\n0.000000000001,{field},,queue_packets,-1\n")), "{series}");
    }
}

/// 20,001 flows that got 0, 1, 2, ... bit/s, the last of them nothing at all.
#[test]
fn many_flows_become_distributions_only_when_asked() {
    let count = 20_001;
    let text = format!(
        "[run]\nduration = \"1 s\"\n[links.a]\nrate = \"1 Mbit/s\"\n[flows.many]\nlaw = \"sack\"\ncount = {count}\n\
         path = [\"a\"]\n[flows.few]\nlaw = \"sack\"\npath = [\"a\"]\n"
    );
    let scenario = Scenario::parse("many.toml", &text, Path::new(""), &[], None).unwrap();
    let flow =
        |i: u32| FlowOutcome { goodput_bps: (i + 1 < count).then_some(i.into()), ..FlowOutcome::default() };
    let outcome = Outcome {
        links: vec![LinkOutcome::default(); 2],
        groups: vec![(0..count).map(flow).collect(), vec![FlowOutcome::default()].into()],
        ..Outcome::default()
    };
    let result = RunResult::new(&scenario, &outcome, Meta::default());
    assert_eq!(result.to_json()["flows"]["many"].as_array().map(Vec::len), Some(count as usize));
    let summary = result.summarised().to_json();
    assert!(count as usize > FLOWS_LISTED_MAX && summary["flows"]["few"].is_array());
    assert_eq!(summary["flows"]["many"]["count"], json!(count));
    assert_eq!(
        summary["flows"]["many"]["goodput_bps"],
        json!({ "count": 20_000, "mean": 9_999.5, "min": 0.0, "p05": 999.0, "p25": 4_999.0, "p50": 9_999.0,
                "p75": 14_999.0, "p95": 18_999.0, "max": 19_999.0 })
    );
    let nothing = &summary["flows"]["many"]["completion_s"];
    assert!(nothing["count"] == 0 && nothing["mean"].is_null() && nothing["p50"].is_null());
    // Jain: (sum x)^2 / (n sum x^2) of 0..20000 is 3 (n - 1) / (2 (2 n - 1)).
    let jain = summary["jain"]["many"].as_f64().unwrap();
    assert!((jain - 3.0 * 19_999.0 / (2.0 * 39_999.0)).abs() < 1e-12, "{jain}");
    assert!(summary["jain"]["few"].is_null());
}

#[test]
fn tables_quote_names_and_round_no_time() {
    let text = "[run]\nduration = \"1 s\"\n[links.\"a,b\"]\nrate = \"1 Mbit/s\"\n\
                [flows.one]\nlaw = \"sack\"\ncount = 2\npath = [\"a,b\"]\n[flows.two]\nlaw = \"sack\"\npath = [\"a,b\"]\n";
    let scenario = Scenario::parse("names.toml", text, Path::new(""), &[], None).unwrap();
    let event = |at, element, flow| Event { at, element, kind: "drop", detail: "queue-full", flow, value: 7 };
    let outcome = Outcome {
        series: vec![
            Sample { at: 1, element: Element::Link(0), metric: "queue_packets", value: 0.1 + 0.2 },
            Sample {
                at: 1_500_000_000_000,
                element: Element::Flow(0, 1),
                metric: "cwnd_packets",
                value: 3.0,
            },
        ],
        events: vec![
            event(2_000_000_000_000, Element::Link(1), Some(2)),
            event(10, Element::Flow(1, 0), None),
        ],
        ..Outcome::default()
    };
    let (mut series, mut events) = (Vec::new(), Vec::new());
    write_series_csv(&mut series, &scenario, &outcome).unwrap();
    write_events_csv(&mut events, &scenario, &outcome).unwrap();
    assert_eq!(
        String::from_utf8(series).unwrap(),
        "t_s,element,index,metric,value\n\
         0.000000000001,\"a,b\",,queue_packets,0.30000000000000004\n\
         1.5,one,1,cwnd_packets,3\n"
    );
    assert_eq!(
        String::from_utf8(events).unwrap(),
        "t_s,element,index,event,detail,flow,flow_index,value\n\
         2,\"a,b.reverse\",,drop,queue-full,two,0,7\n\
         0.00000000001,two,0,drop,queue-full,,,7\n"
    );
}
