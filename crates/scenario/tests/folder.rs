//! The folder of a run: what was written is what is read, and what is not a run is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use congestlab_scenario::folder::{FolderError, RunFolder};
use congestlab_scenario::result::{Meta, RunResult, write_events_csv, write_series_csv};
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario, store};
use tempfile::TempDir;

/// Names that CSV must quote, a queue that overflows, series and events of links and flows.
const SCENARIO: &str = r#"
[run]
duration = "3 s"
[measure]
every = "100 ms"
[links."a, b"]
rate = "5 Mbit/s"
delay = "10 ms"
queue = "5 packets"
law = "xcp"
[flows.ftp]
law = "cubic"
count = 3
path = ["a, b"]
[flows.datagrams]
law = { cbr = { rate = "3 Mbit/s" } }
path = ["a, b"]
"#;

struct Run {
    scenario: Scenario,
    outcome: Outcome,
    out: TempDir,
    folder: PathBuf,
}

impl Run {
    fn new() -> Self {
        let scenario = Scenario::parse("x.toml", SCENARIO, Path::new(""), &[], None)
            .unwrap_or_else(|error| panic!("{error}"));
        let model = scenario.model(&Measure { series: true, events: true });
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let outcome = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| ());
        let out = tempfile::tempdir().unwrap();
        let folder = write(out.path(), &scenario, &outcome);
        Self { scenario, outcome, out, folder }
    }

    fn refused(&self) -> FolderError {
        RunFolder::open(&self.folder, "v1").expect_err("it is no complete run")
    }
}

fn write(out: &Path, scenario: &Scenario, outcome: &Outcome) -> PathBuf {
    let result = RunResult::new(scenario, outcome, Meta { version: "v1".into(), ..Meta::default() });
    store::write_run(out, "v1", scenario, outcome, &result).unwrap()
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A field of the CSV: only the one name above needs quotes.
fn quoted(name: &str) -> String {
    if name.contains(',') { format!("\"{name}\"") } else { name.into() }
}

#[test]
fn the_tables_have_the_rows_of_the_csv() {
    let run = Run::new();
    let folder = RunFolder::open(&run.folder, "v1").unwrap();
    let csv = |write: fn(&mut dyn std::io::Write, &Scenario, &Outcome) -> std::io::Result<()>| {
        let mut text = Vec::new();
        write(&mut text, &run.scenario, &run.outcome).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let (mut flows, mut links) = (Vec::new(), Vec::new());
    for (rows, is_flows) in [(&mut flows, true), (&mut links, false)] {
        let each = |row: congestlab_scenario::folder::SeriesRow<'_>| {
            let (element, index) = (quoted(row.element), optional(row.index));
            rows.push(format!("{},{element},{index},{},{}", row.t_s, row.metric, row.value));
        };
        if is_flows { folder.flow_series(each) } else { folder.link_series(each) }.unwrap();
    }
    let series = csv(write_series_csv);
    let (of_links, of_flows): (Vec<_>, Vec<_>) = series.into_iter().partition(|row| row.contains("a, b"));
    assert!(of_flows.len() > 300 && of_links.len() > 300);
    assert_eq!((flows, links), (of_flows, of_links));

    let mut events = Vec::new();
    folder
        .events(|row| {
            let (element, index) = (quoted(row.element), optional(row.index));
            let (flow, flow_index) = (optional(row.flow.map(quoted)), optional(row.flow_index));
            let detail = optional(row.detail);
            let value = row.value;
            events.push(format!(
                "{},{element},{index},{},{detail},{flow},{flow_index},{value}",
                row.t_s, row.event
            ));
        })
        .unwrap();
    assert!(events.iter().any(|row| row.contains(",drop,queue-full,ftp,2,")), "{events:?}");
    assert_eq!(events, csv(write_events_csv));
}

#[test]
fn equal_runs_give_equal_bytes() {
    let (one, other) = (Run::new(), Run::new());
    for name in [store::FLOWS, store::LINKS, store::EVENTS, store::SCENARIO] {
        let bytes = |run: &Run| fs::read(run.folder.join(name)).unwrap();
        assert!(bytes(&one) == bytes(&other), "{name} differs");
    }
}

#[test]
fn more_rows_than_a_group_come_back_in_order() {
    let mut run = Run::new();
    let samples = run.outcome.series.clone();
    while run.outcome.series.len() < 300_000 {
        run.outcome.series.extend(&samples);
    }
    let folder = write(run.out.path(), &run.scenario, &run.outcome);
    let folder = RunFolder::open(&folder, "v1").unwrap();
    let mut values = Vec::new();
    folder.flow_series(|row| values.push(row.value)).unwrap();
    let is_flow = |element| matches!(element, sim::outcome::Element::Flow(..));
    let written = run.outcome.series.iter().filter(|sample| is_flow(sample.element));
    assert!(values.len() > 1 << 17);
    assert!(written.map(|sample| sample.value).eq(values));
}

#[test]
fn a_folder_that_is_no_complete_run_of_this_version_is_refused_with_the_reason() {
    let run = Run::new();
    let open = |path: &Path, version| RunFolder::open(path, version).expect_err("refused").to_string();
    assert!(open(&run.out.path().join("nowhere"), "v1").contains("there is no folder"));
    assert!(open(run.out.path(), "v1").contains("is not the folder of a run"));
    assert!(open(&run.folder, "v2").contains("was made by version v1, and this is v2"));

    let summary = run.folder.join(store::SUMMARY);
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(&summary, text.replace("\"complete\": true", "\"complete\": false")).unwrap();
    assert!(matches!(run.refused(), FolderError::Interrupted(_)));
    fs::write(&summary, text.replace("\"schema\": 1,", "\"schema\": 7,")).unwrap();
    assert!(run.refused().to_string().contains("results schema 7"));
    fs::write(&summary, &text[..text.len() / 2]).unwrap();
    assert!(matches!(run.refused(), FolderError::Damaged { .. }));
    fs::write(&summary, &text).unwrap();

    let scenario = run.folder.join(store::SCENARIO);
    fs::write(&scenario, "[run]\nduration = 7\n").unwrap();
    assert!(run.refused().to_string().contains("scenario.toml is damaged: it is not the file"));
    fs::remove_file(run.folder.join(store::LINKS)).unwrap();
    fs::remove_file(scenario).unwrap();
    let missing = run.refused().to_string();
    assert!(missing.contains("incomplete: it has no scenario.toml, links.parquet"), "{missing}");
}

#[test]
fn a_damaged_table_is_refused_and_panics_nowhere() {
    let run = Run::new();
    let path = run.folder.join(store::EVENTS);
    let bytes = fs::read(&path).unwrap();
    let refused = |damaged: &[u8]| {
        fs::write(&path, damaged).unwrap();
        run.refused().to_string()
    };
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        let error = refused(&damaged);
        assert!(error.contains("events.parquet is damaged: it is not the file"), "{error}");
    }
    for length in [0, 3, bytes.len() / 2, bytes.len() - 1] {
        refused(&bytes[..length]);
    }
    fs::write(&path, &bytes).unwrap();
    RunFolder::open(&run.folder, "v1").unwrap().events(|_| ()).unwrap();
}
