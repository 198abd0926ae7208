//! The folder of a run: what was written is what is read, and what is not a run is refused.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use congestlab_scenario::folder::{FolderError, RunFolder};
use congestlab_scenario::result::{Meta, RunResult, write_events_csv, write_series_csv};
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario, disk, store};
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use serde_json::{Value, json};
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
        Self::of(&[])
    }

    fn of(changes: &[(&str, &str)]) -> Self {
        let changes: Vec<(String, String)> =
            changes.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
        let scenario = Scenario::parse("x.toml", SCENARIO, Path::new(""), &changes, Some(7))
            .unwrap_or_else(|error| panic!("{error}"));
        let model = scenario.model(&Measure { series: true, events: true });
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let outcome = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| ());
        let out = tempfile::tempdir().unwrap();
        let folder = write(out.path(), &scenario, &outcome);
        Self { scenario, outcome, out, folder }
    }

    fn refused(&self) -> FolderError {
        RunFolder::open(&self.folder).expect_err("it is no complete run")
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
    let folder = RunFolder::open(&run.folder).unwrap();
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

/// The rows of a table with all columns by name, and what its metadata say of the run.
fn table(path: &Path) -> (Vec<BTreeMap<String, Field>>, Value) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let of_run =
        metadata.iter().find(|entry| entry.key == "congestlab").and_then(|entry| entry.value.clone());
    let rows = reader.get_row_iter(None).unwrap();
    let rows = rows.map(|row| row.unwrap().into_columns().into_iter().collect()).collect();
    (rows, serde_json::from_str(&of_run.unwrap()).unwrap())
}

/// What a query over the tables of many runs tells them apart by, in columns of its own type.
#[test]
fn a_table_says_of_which_run_its_rows_are() {
    let run = Run::of(&[
        ("links.\"a, b\".rate", "\"6 Mbit/s\""),
        ("links.\"a, b\".law.xcp.alpha", "0.3"),
        ("links.\"a, b\".delay", "\"12 ms\""),
        ("flows.ftp.count", "2"),
        ("flows.ftp.law", "reno"),
        ("flows.ftp.delayed_ack", "true"),
    ]);
    let name = run.folder.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("x-7-"), "{name}");
    let text = |text: &str| Field::Str(text.into());
    let label = "links.\"a, b\".rate = \"6 Mbit/s\", links.\"a, b\".law.xcp.alpha = 0.3, links.\"a, b\".delay = \"12 ms\", \
                 flows.ftp.count = 2, flows.ftp.law = \"reno\", flows.ftp.delayed_ack = true";
    let settings = json!({
        "links.\"a, b\".rate": "6 Mbit/s",
        "links.\"a, b\".law.xcp.alpha": 0.3,
        "links.\"a, b\".delay": "12 ms",
        "flows.ftp.count": 2,
        "flows.ftp.law": "reno",
        "flows.ftp.delayed_ack": true,
    });
    for file in [store::FLOWS, store::LINKS, store::EVENTS] {
        let (rows, of_run) = table(&run.folder.join(file));
        assert!(rows.len() > 10, "{file}");
        for row in &rows {
            let law = match &row["element"] {
                Field::Str(name) if name == "ftp" => text("reno"),
                Field::Str(name) if name == "datagrams" => text("cbr"),
                Field::Str(name) if name == "a, b" => text("xcp"),
                // The way back has none.
                _ => Field::Null,
            };
            for (column, value) in [
                ("run", text(&name)),
                ("scenario", text("x")),
                ("seed", Field::Long(7)),
                ("label", text(label)),
                ("law", law),
                ("links.\"a, b\".rate_bps", Field::Double(6e6)),
                ("links.\"a, b\".law.xcp.alpha", Field::Double(0.3)),
                ("links.\"a, b\".delay_s", Field::Double(0.012)),
                ("flows.ftp.count", Field::Long(2)),
                ("flows.ftp.law", text("reno")),
                ("flows.ftp.delayed_ack", Field::Bool(true)),
            ] {
                assert_eq!(row.get(column), Some(&value), "{file}: {column}");
            }
        }
        let expected =
            json!({ "run": name, "scenario": "x", "seed": 7, "label": label, "settings": settings });
        assert_eq!(of_run, expected, "{file}");
    }
    // What nobody changed is in no column, and an empty label is one, too.
    let (rows, of_run) = table(&Run::new().folder.join(store::LINKS));
    assert_eq!(rows[0].keys().filter(|column| column.contains('.')).count(), 0, "{:?}", rows[0].keys());
    assert_eq!((&rows[0]["label"], &of_run["settings"]), (&text(""), &json!({})));
}

/// `--set run={...}` changes a path that is called as a column is.
#[test]
fn a_whole_table_that_was_set_hides_no_column() {
    let run = Run::of(&[("run", "{ duration = \"2 s\" }")]);
    let (rows, of_run) = table(&run.folder.join(store::FLOWS));
    let name = run.folder.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(rows[0]["run"], Field::Str(name));
    assert_eq!(of_run["settings"]["run"]["duration"], "2 s");
}

/// Many at once into one folder, where somebody looks all the time: all succeed, and nobody sees half of a run or none.
#[test]
fn equal_runs_that_are_written_at_once_are_never_away() {
    let run = Run::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..5).for_each(|_| {
                        assert_eq!(write(run.out.path(), &run.scenario, &run.outcome), run.folder)
                    });
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                RunFolder::open(&run.folder).unwrap_or_else(|error| panic!("{error}"));
            }
        });
        let written: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        assert!(written.iter().all(Result::is_ok));
    });
    assert_eq!(names(run.out.path()), [run.folder.file_name().unwrap().to_string_lossy()]);
}

/// A run that is not what is there, such as a live one, takes its place, whoever else does the same.
#[test]
fn runs_that_differ_replace_each_other_at_once() {
    let run = Run::new();
    let texts: Vec<Scenario> = (0..4)
        .map(|comment| {
            let text = format!("# {comment}{SCENARIO}");
            Scenario::parse("x.toml", &text, Path::new(""), &[], Some(7)).unwrap()
        })
        .collect();
    std::thread::scope(|scope| {
        for scenario in &texts {
            scope.spawn(|| {
                (0..5).for_each(|_| assert_eq!(write(run.out.path(), scenario, &run.outcome), run.folder))
            });
        }
    });
    let folder = RunFolder::open(&run.folder).unwrap_or_else(|error| panic!("{error}"));
    assert!(texts.iter().any(|scenario| folder.written().as_deref() == Some(scenario.written())));
    assert_eq!(names(run.out.path()), [run.folder.file_name().unwrap().to_string_lossy()]);
    assert!(!run.folder.join(".lock").exists());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What a process that was killed left: nobody holds it any more.
#[test]
fn what_was_half_written_is_cleared_and_what_is_being_written_is_not() {
    let out = tempfile::tempdir().unwrap();
    let path = |name: &str| out.path().join(name);
    fs::write(path(".flows.csv.4194305-0.part"), "half").unwrap();
    fs::write(path(".mine.part"), "of somebody else").unwrap();
    for folder in [".x-1-00000000.4194305-1.part", ".x-1-11111111.4194305-2.part"] {
        fs::create_dir(path(folder)).unwrap();
        fs::write(path(folder).join(".lock"), "").unwrap();
        fs::write(path(folder).join("summary.json"), "half").unwrap();
    }
    // It was about to take the place of an older one when it was killed: that is still there.
    fs::create_dir_all(path(".x-1-22222222.4194305-3.part/older")).unwrap();
    fs::write(path(".x-1-22222222.4194305-3.part/.lock"), "").unwrap();
    fs::write(path(".x-1-22222222.4194305-3.part/older/summary.json"), "whole").unwrap();
    let held = File::open(path(".x-1-11111111.4194305-2.part/.lock")).unwrap();
    held.try_lock().unwrap();
    disk::try_folder(out.path()).unwrap();
    assert_eq!(names(out.path()), [".mine.part", ".x-1-11111111.4194305-2.part", "x-1-22222222"]);
    assert_eq!(fs::read_to_string(path("x-1-22222222/summary.json")).unwrap(), "whole");
    drop(held);
    disk::try_folder(out.path()).unwrap();
    assert_eq!(names(out.path()), [".mine.part", "x-1-22222222"]);
}

/// Links to what never ends, pipes that nobody writes to, and files of other folders.
#[cfg(unix)]
#[test]
fn a_folder_whose_files_are_none_is_refused() {
    let run = Run::new();
    let summary = run.folder.join(store::SUMMARY);
    let text = fs::read_to_string(&summary).unwrap();
    let refused = |name: &str, says: &str| {
        let mut json: Value = serde_json::from_str(&text).unwrap();
        json["files"][name] = "0000000000000000".into();
        fs::write(&summary, json.to_string()).unwrap();
        let error = run.refused().to_string();
        assert!(error.contains(says), "{name}: {error}");
    };
    std::os::unix::fs::symlink("/dev/zero", run.folder.join("zero.trace")).unwrap();
    refused("zero.trace", "a device or a pipe, not a file");
    let made = std::process::Command::new("mkfifo").arg(run.folder.join("pipe.trace")).status();
    if made.is_ok_and(|status| status.success()) {
        refused("pipe.trace", "a device or a pipe, not a file");
    }
    refused("/etc/hostname", "names a file that is not of this folder");
    refused("../x", "names a file that is not of this folder");
    fs::remove_file(&summary).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &summary).unwrap();
    assert!(run.refused().to_string().contains("incomplete: it has no summary.json"));
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
    let folder = RunFolder::open(&folder).unwrap();
    let mut values = Vec::new();
    folder.flow_series(|row| values.push(row.value)).unwrap();
    let is_flow = |element| matches!(element, sim::outcome::Element::Flow(..));
    let written = run.outcome.series.iter().filter(|sample| is_flow(sample.element));
    assert!(values.len() > 1 << 17);
    assert!(written.map(|sample| sample.value).eq(values));
}

#[test]
fn a_folder_that_is_no_complete_run_of_this_schema_is_refused_with_the_reason() {
    let run = Run::new();
    let open = |path: &Path| RunFolder::open(path).expect_err("refused").to_string();
    assert!(open(&run.out.path().join("nowhere")).contains("there is no folder"));
    assert!(open(run.out.path()).contains("is not the folder of a run"));
    let folder = RunFolder::open(&run.folder).unwrap();
    assert_eq!(folder.version(), "v1");
    folder.require_version("v1").unwrap();
    let refused = folder.require_version("v2").expect_err("another version").to_string();
    assert!(
        refused.contains("version v1 made the run in") && refused.contains("and this is v2"),
        "{refused}"
    );

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
    RunFolder::open(&run.folder).unwrap().events(|_| ()).unwrap();
}
