//! One sweep, whoever runs it: threads, parts, processes side by side, and what is killed on the way leave one table.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use congestlab_scenario::table::{Table, TableError};

use crate::{Finished, Lab, SCENARIO};

/// Twelve points: three rates, four seeds.
const OPTIONS: [&str; 6] = [
    "sweep",
    "scenario.toml",
    "--grid",
    "links.bottleneck.rate=5 Mbit/s,10 Mbit/s,20 Mbit/s",
    "--seeds",
    "4",
];

fn sweep(lab: &Lab, more: &[&str]) -> Finished {
    lab.run(&[&OPTIONS[..], more].concat())
}

/// What is the same for equal sweeps.
fn tables(lab: &Lab, folder: &str) -> Vec<Vec<u8>> {
    let names = ["results.parquet", "results.csv", "scenario.toml", "sweep.json"];
    names.map(|name| std::fs::read(lab.path(&format!("{folder}/{name}"))).expect(name)).to_vec()
}

/// `4 run in`, as stderr says it.
fn count(text: &str, what: &str) -> usize {
    let before = text.split(what).next().expect("text");
    let number = before.rsplit([' ', '\n']).next().expect("a word");
    number.parse().unwrap_or_else(|_| panic!("no number before `{what}` in {text}"))
}

#[test]
fn a_seed_beside_seeds_that_are_swept_is_said_to_change_nothing() {
    let lab = Lab::new(SCENARIO);
    let two = ["sweep", "scenario.toml", "--grid", "run.seed=1,2", "--out", "kept"];
    let told = lab.run(&[&two[..], &["--seed", "9"]].concat()).exits(0).stderr();
    assert!(told.contains("--seed 9 changes nothing, since the sweep varies run.seed"), "{told}");
    let told = lab.run(&two).exits(0).stderr();
    assert!(!told.contains("changes nothing"), "{told}");
    assert_eq!(count(&told, " kept from"), 2, "the same points: {told}");
}

/// A path that the sweep varies, and a path with two values: an option that would be ignored silently is named.
#[test]
fn an_option_that_changes_nothing_is_named() {
    let lab = Lab::new(SCENARIO);
    let two = ["sweep", "scenario.toml", "--grid", "flows.ftp.count=1,2", "--out", "kept"];
    let told = lab.run(&[&two[..], &["--set", "flows.ftp.count=3"]].concat()).exits(0).stderr();
    assert!(
        told.contains("--set flows.ftp.count changes nothing, since the sweep varies flows.ftp.count"),
        "{told}"
    );
    for command in ["run", "check", "sweep", "demo"] {
        let conflict = [command, "scenario.toml", "--seed", "3", "--set", "run.seed=4"];
        let told = lab.run(&conflict).exits(2).stderr();
        assert!(told.contains("--set run.seed=4 and --seed 3 give run.seed two values"), "{command}: {told}");
    }
    let twice = ["run", "scenario.toml", "--set", "flows.ftp.count=1", "--set", "flows.ftp.count=2"];
    let told = lab.run(&twice).exits(2).stderr();
    assert!(told.contains("--set flows.ftp.count=1 and --set flows.ftp.count=2 give"), "{told}");
    lab.run(&["run", "scenario.toml", "--seed", "4", "--set", "run.seed=4"]).exits(0);
}

/// Two greedy flows draw nothing, so all seeds are one run; random errors make each seed another run.
#[test]
fn seeds_that_change_nothing_are_said_to_and_have_no_interval() {
    let claim = "[[claims]]\nthat = \"used\"\nmetric = \"links.bottleneck.utilization\"\nat_least = 0.1\n";
    // XCP's links draw.
    let cubic = SCENARIO.replace("\"xcp\"", "\"cubic\"").replacen("law = \"cubic\"\n", "", 1);
    let lab = Lab::new(&format!("{cubic}\n{claim}decide = \"mean\"\n"));
    let options = ["sweep", "scenario.toml", "--seeds", "5", "--check", "--out"];
    let same = lab.run(&[&options[..], &["same"]].concat()).exits(0);
    let told = "seeds changed nothing: no run drew a random number";
    assert!(same.stderr().contains(told), "{}", same.stderr());
    let table = same.stdout();
    assert!(table.contains("(one run: seeds changed nothing)") && !table.contains('±'), "{table}");
    let page = std::fs::read_to_string(lab.path("same/report.html")).expect("a report");
    assert!(page.contains("Seeds changed nothing: no run drew a random number"));

    let errors = ["--set", "links.bottleneck.error.packet_error_rate=0.01"];
    let random = lab.run(&[&options[..], &["random"], &errors].concat()).exits(0);
    assert!(!random.stderr().contains("seeds changed nothing"), "{}", random.stderr());
    assert!(random.stdout().contains('±') && !random.stdout().contains("one run"), "{}", random.stdout());

    // One of two points draws.
    let grid = ["--grid", "links.bottleneck.error.packet_error_rate=0,0.01"];
    let both = lab.run(&[&options[..], &["both"], &grid, &["--json"]].concat()).exits(0);
    assert!(both.stderr().contains("seeds changed nothing at 1 of 2 points"), "{}", both.stderr());
    assert_eq!(both.json()["unused_seeds"], serde_json::json!({ "points": 1, "of": 2 }));
}

/// A table for people has one row for each point, with the mean over its seeds; results.csv has every run.
#[test]
fn a_point_is_one_row_whatever_the_number_of_its_seeds() {
    let lab = Lab::new(SCENARIO);
    let errors = ["--set", "links.bottleneck.error.packet_error_rate=0.01", "--out", "kept"];
    let table = sweep(&lab, &errors).exits(0).stdout();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 4, "a heading and three rates:\n{table}");
    let heading: Vec<&str> = rows[0].split_whitespace().collect();
    assert_eq!(heading[..2], ["bottleneck.rate", "seeds"], "{table}");
    assert!(!heading.contains(&"seed"), "{table}");
    for row in &rows[1..] {
        assert!(row.split_whitespace().nth(2) == Some("4") && row.contains('±'), "{table}");
    }
    // Seeds that go along with another axis are points, and stay.
    let zip = "\n[sweep.zip]\n\"run.seed\" = [1, 2]\n\"flows.ftp.count\" = [1, 2]\n";
    std::fs::write(lab.path("zip.toml"), format!("{SCENARIO}{zip}")).expect("writable");
    let table = lab.run(&["sweep", "zip.toml"]).exits(0).stdout();
    assert!(table.lines().count() == 3 && table.contains("seed ") && !table.contains("seeds"), "{table}");
}

#[test]
fn the_table_has_a_row_for_each_point_and_element() {
    let lab = Lab::new(SCENARIO);
    sweep(&lab, &["--out", "kept"]).exits(0);
    let table = Table::open(&lab.path("kept")).expect("a table");
    // The run, the link and its reverse, the group, two flows.
    assert_eq!((table.points(), table.rows()), (12, 12 * 6));
    let texts = |column: &str| table.texts(column).expect(column);
    let numbers = |column: &str| table.numbers(column).expect(column);
    let kinds: Vec<_> = texts("kind").into_iter().take(6).flatten().collect();
    assert_eq!(kinds, ["run", "link", "link", "group", "flow", "flow"]);
    let elements: Vec<_> = texts("element").into_iter().take(6).collect();
    let some = |text: &str| Some(text.to_owned());
    let expected =
        [None, some("bottleneck"), some("bottleneck.reverse"), some("ftp"), some("ftp"), some("ftp")];
    assert_eq!(elements, expected);
    assert_eq!(texts("law")[..4], [None, some("xcp"), None, some("xcp")]);
    assert_eq!(numbers("index")[3..6], [None, Some(0.0), Some(1.0)]);
    assert_eq!(numbers("links.bottleneck.rate_bps")[0], Some(5e6), "a rate is a number of bit/s");
    assert_eq!(numbers("links.bottleneck.rate_bps")[71], Some(20e6));
    assert_eq!((numbers("seed")[0], numbers("seed")[71]), (Some(1.0), Some(4.0)));
    assert_eq!(numbers("flows")[3], Some(2.0));
    assert_eq!(texts("label")[0], some("links.bottleneck.rate = \"5 Mbit/s\""));
    // What `run` says of the same.
    let one = ["run", "scenario.toml", "--json", "--seed", "4", "--set", "links.bottleneck.rate=20 Mbit/s"];
    let result = lab.run(&one).exits(0).json();
    assert_eq!(numbers("utilization")[67], result["links"]["bottleneck"]["utilization"].as_f64());
    assert_eq!(numbers("goodput_bps")[71], result["flows"]["ftp"][1]["goodput_bps"].as_f64());
    assert_eq!(numbers("drops_by_reason.queue-full")[67], Some(0.0));
    assert_eq!(numbers("jain")[69], result["jain"]["ftp"].as_f64());
    assert_eq!(texts("fingerprint")[66].as_deref(), result["fingerprint"].as_str());
    let bytes: f64 =
        [0, 1].map(|flow| result["flows"]["ftp"][flow]["arrived_bytes"].as_f64().unwrap()).iter().sum();
    assert_eq!(numbers("goodput_sum_bps")[69], Some(bytes * 8.0), "one second is measured");
    assert!(numbers("goodput_bps")[67].is_none(), "a link has none");
    let axes: Vec<_> = table.axes().iter().map(|axis| (axis.path.as_str(), axis.column.as_str())).collect();
    assert_eq!(axes, [("links.bottleneck.rate", "links.bottleneck.rate_bps"), ("run.seed", "seed")]);
    let wrong = table.numbers("utilisation").expect_err("no such column").to_string();
    assert!(wrong.contains("did you mean `utilization`?"), "{wrong}");

    // The CSV has the same rows and columns.
    let csv = std::fs::read_to_string(lab.path("kept/results.csv")).expect("a file");
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    assert_eq!(names, table.columns());
    assert_eq!(lines.clone().count(), table.rows());
    let place = names.iter().position(|name| *name == "goodput_bps").expect("a column");
    let last: Vec<&str> = lines.next_back().expect("a row").split(',').collect();
    // The label has quotes and no comma.
    assert_eq!(last.len(), names.len());
    assert_eq!(last[place].parse().ok(), numbers("goodput_bps")[71]);

    // A table that is another than was written is refused, and made anew by the same command.
    let parquet = lab.path("kept/results.parquet");
    let mut bytes = std::fs::read(&parquet).expect("a file");
    bytes[100] ^= 1;
    std::fs::write(&parquet, bytes).expect("it can be written");
    assert!(matches!(Table::open(&lab.path("kept")), Err(TableError::Damaged { .. })));
    assert!(sweep(&lab, &["--out", "kept"]).exits(0).stderr().contains("12 kept"));
    assert!(Table::open(&lab.path("kept")).is_ok());
    assert!(matches!(Table::open(Path::new("/nowhere")), Err(TableError::NotASweep(_))));
}

#[test]
fn the_table_is_the_same_bytes_on_one_thread_and_on_two() {
    let lab = Lab::new(SCENARIO);
    for threads in ["1", "2"] {
        sweep(&lab, &["--threads", threads, "--out", threads]).exits(0);
    }
    assert_eq!(tables(&lab, "1"), tables(&lab, "2"));
}

#[test]
fn parts_have_no_point_in_common_and_are_the_whole() {
    let lab = Lab::new(SCENARIO);
    sweep(&lab, &["--out", "whole"]).exits(0);
    let mut ran = Vec::new();
    for part in ["1", "2", "3"] {
        // In one folder.
        let stderr = sweep(&lab, &["--out", "shared", "--shard", &format!("{part}/3")]).exits(0).stderr();
        ran.push(count(&stderr, " run in"));
        assert_eq!(count(&stderr, " kept from"), 0, "{stderr}");
        // And each on a machine of its own.
        let alone = sweep(&lab, &["--out", part, "--shard", &format!("{part}/3"), "--threads", "1"]).exits(0);
        assert_eq!(count(&alone.stderr(), " run in"), ran[ran.len() - 1], "others' points change no part");
        assert!(alone.stderr().contains("are left to other parts"), "{}", alone.stderr());
        assert!(!lab.path(&format!("{part}/results.parquet")).exists());
    }
    assert_eq!(ran.iter().sum::<usize>(), 12, "{ran:?}");
    // A hash shares them out: few points may leave a part without one.
    assert!(ran.iter().all(|&count| count < 12), "{ran:?}");
    assert_eq!(tables(&lab, "shared"), tables(&lab, "whole"), "the last part makes the table");
    std::fs::remove_file(lab.path("shared/results.parquet")).expect("it is there");
    sweep(&lab, &["--out", "shared", "--merge"]).exits(0);
    assert_eq!(tables(&lab, "shared"), tables(&lab, "whole"));

    // Of whom the hash gave something: it is another with each change of the code.
    let missing = ran.iter().position(|&count| count > 0).expect("12 points were run");
    let mut others = vec!["1", "2", "3"];
    others.remove(missing);
    let lacking = sweep(&lab, &["--out", "merged", "--merge", others[0], others[1]]).exits(1).stderr();
    assert!(lacking.contains(&format!("{} of 12 points are not complete", ran[missing])), "{lacking}");
    sweep(&lab, &["--out", "merged", "--merge", "1", "2", "3"]).exits(0);
    assert_eq!(tables(&lab, "merged"), tables(&lab, "whole"));
    let again = sweep(&lab, &["--out", "merged"]).exits(0).stderr();
    assert!(again.contains("0 run in") && again.contains("12 kept"), "{again}");
    let none = sweep(&lab, &["--merge", "nowhere"]).exits(2).stderr();
    assert!(none.contains("nowhere is not the folder of a sweep"), "{none}");
}

fn start(lab: &Lab, more: &[&str]) -> Child {
    let mut command = lab.command(&[&OPTIONS[..], more].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary runs")
}

#[test]
fn two_at_once_in_one_folder_run_each_point_once() {
    let lab = Lab::new(SCENARIO);
    sweep(&lab, &["--out", "alone"]).exits(0);
    let both = [(); 2].map(|()| start(&lab, &["--out", "shared", "--threads", "2", "-v"]));
    let mut seen = BTreeSet::new();
    let mut ran = 0;
    for child in both {
        let finished = Finished(child.wait_with_output().expect("it ends")).exits(0);
        for line in finished.stderr().lines().filter_map(|line| line.strip_prefix("done: ")) {
            assert!(seen.insert(line.to_owned()), "{line} was run twice");
            ran += 1;
        }
    }
    assert_eq!(ran, 12);
    assert_eq!(tables(&lab, "shared"), tables(&lab, "alone"));
    let left = std::fs::read_dir(lab.path("shared/points")).expect("a folder").flatten();
    let names: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(
        names.iter().all(|name| name.ends_with(".log") || name == "plan.json"),
        "a claim is left: {names:?}"
    );
}

/// Killed at any moment: what was complete is kept, nothing is damaged, and the table is the one of a sweep that nobody killed.
#[test]
fn a_killed_sweep_goes_on_from_where_it_was() {
    let lab = Lab::new(SCENARIO);
    sweep(&lab, &["--out", "alone"]).exits(0);
    let mut kept = 0;
    for moment in 0..12_u64 {
        let mut child = start(&lab, &["--out", "killed", "--threads", "2"]);
        std::thread::sleep(Duration::from_millis(5 + 13 * moment));
        child.kill().and_then(|()| child.wait()).expect("the child is ours");
        let counted = sweep(&lab, &["--out", "killed", "--shard", "1/1000000"]).exits(0).stderr();
        let left = if counted.contains("left to other parts") {
            count(&counted, " of 12 points are left")
        } else {
            0
        };
        assert!(12 - left >= kept, "a result was lost: {counted}");
        kept = 12 - left;
    }
    let stderr = sweep(&lab, &["--out", "killed"]).exits(0).stderr();
    assert_eq!(count(&stderr, " run in") + count(&stderr, " kept from"), 12);
    assert!(count(&stderr, " kept from") >= kept, "{stderr}");
    assert_eq!(tables(&lab, "killed"), tables(&lab, "alone"));
}

#[test]
fn the_folders_of_runs_are_kept_when_asked() {
    let lab = Lab::new(SCENARIO);
    let few = ["sweep", "scenario.toml", "--seeds", "2", "--out", "kept"];
    lab.run(&few).exits(0);
    let before = std::fs::read(lab.path("kept/results.parquet")).expect("a table");
    assert!(!lab.path("kept/runs").exists());
    let with_folders = || lab.run(&[&few[..], &["--folders"]].concat()).exits(0).stderr();
    assert!(with_folders().contains("2 run in"), "they have no folders yet");
    assert!(with_folders().contains("2 kept"));
    let table = Table::open(&lab.path("kept")).expect("a table");
    let runs: BTreeSet<String> = table.texts("run").expect("a column").into_iter().flatten().collect();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let folder = format!("kept/runs/{run}");
        lab.run(&["report", &folder]).exits(0);
    }
    assert_eq!(std::fs::read(lab.path("kept/results.parquet")).expect("a table"), before, "the same table");
    std::fs::remove_dir_all(lab.path(&format!("kept/runs/{}", runs.first().expect("one"))))
        .expect("it is there");
    assert!(with_folders().contains("1 run in"));
}

#[test]
fn what_is_wrong_with_the_options_is_said() {
    let lab = Lab::new(SCENARIO);
    for (options, words) in [
        (&["--grid", "links.bottleneck.rate"][..], "expected PATH=A,B,C"),
        (&["--grid", "links.bottleneck.rate="], "a value of `links.bottleneck.rate` is empty"),
        (&["--grid", "links.bottleneck.rate=5 Mbit/s,"], "a value of `links.bottleneck.rate` is empty"),
        (&["--grid", "links.bottleneck.rate=5 mbps"], "5 mbps"),
        (&["--grid", "links.bottleneck.rat=5 Mbit/s"], "did you mean `rate`?"),
        (&["--grid", "links.pipe.rate=5 Mbit/s"], "there is no `pipe`"),
        (&["--grid", "flows.ftp.law=xcp,{ a"], "--grid:1:"),
        (&["--grid", "claims[0].at_least=1,2"], "`claims[0].at_least` is no part of a run"),
        (&["--grid", "links..rate=1 Mbit/s"], "lacks a key"),
        (&["--shard", "5/3"], "expected I/N with I from 1 to N"),
        (&["--shard", "0/3"], "expected I/N with I from 1 to N"),
        (&["--shard", "1"], "expected I/N with I from 1 to N"),
        (&["--shard", "1/2", "--merge"], "cannot be used with"),
        (&["--shard", "1/2", "--check"], "cannot be used with"),
        (&["--seeds", "0"], "expected a number from 1 to 100000"),
        (&["--seeds", "3", "--seed", "1"], "cannot be used with"),
        (&["elsewhere"], "--merge"),
    ] {
        let stderr = lab.run(&[&["sweep", "scenario.toml"][..], options].concat()).exits(2).stderr();
        assert!(stderr.contains(words), "{options:?}: {stderr}");
    }
    assert_eq!(lab.files(), ["scenario.toml"], "nothing is left of it");
}

/// Of the command line are an axis that the file has not, and other values for one that it has.
#[test]
fn the_command_line_varies_beside_what_the_file_varies() {
    let grid = "\n[sweep]\ngrid = { \"flows.ftp.count\" = [1, 2, 3], \"run.seed\" = [7] }\n";
    let lab = Lab::new(&format!("{SCENARIO}{grid}"));
    let arguments =
        ["sweep", "scenario.toml", "--grid", "flows.ftp.count=2,4", "--grid", "flows.ftp.law=xcp,cubic"];
    lab.run(&[&arguments[..], &["--out", "kept"]].concat()).exits(0);
    let table = Table::open(&lab.path("kept")).expect("a table");
    let axes: Vec<_> =
        table.axes().iter().map(|axis| (axis.column.as_str(), axis.values.join(" "))).collect();
    let expected = [("flows.ftp.count", "2 4"), ("seed", "7"), ("flows.ftp.law", "\"xcp\" \"cubic\"")];
    assert_eq!(axes, expected.map(|(column, values)| (column, values.to_owned())));
    assert_eq!(table.texts("flows.ftp.law").expect("a column")[0].as_deref(), Some("xcp"));
    // The folder has the scenario with its sweep, which gives the same.
    let scenario = lab.path("kept/scenario.toml").display().to_string();
    let again = lab.run(&["sweep", &scenario, "--out", "again"]).exits(0);
    assert!(again.stderr().contains("4 run in"), "{}", again.stderr());
}

/// A star is every link or group; a link without a law is one of the laws to compare.
#[test]
fn laws_are_swept_for_all_at_once_and_none_is_one_of_them() {
    let more = "[flows.web]\nlaw = \"sack\"\npath = [\"bottleneck\"]\nsize = \"30 kB\"\n";
    let lab = Lab::new(&format!("{SCENARIO}\n{more}"));
    let laws = ["--grid", "links.*.law=none,xcp", "--grid", "flows.*.law=cubic,xcp", "--out", "kept"];
    lab.run(&[&["sweep", "scenario.toml"][..], &laws].concat()).exits(0);
    let table = Table::open(&lab.path("kept")).expect("a table");
    let texts = |column: &str| table.texts(column).expect(column);
    let (kinds, elements, laws) = (texts("kind"), texts("element"), texts("law"));
    let of = |kind: &str, element: &str| -> Vec<Option<&str>> {
        let rows = (0..table.rows())
            .filter(|&row| kinds[row].as_deref() == Some(kind) && elements[row].as_deref() == Some(element));
        rows.map(|row| laws[row].as_deref()).collect()
    };
    assert_eq!(of("link", "bottleneck"), [None, None, Some("xcp"), Some("xcp")]);
    for group in ["ftp", "web"] {
        assert_eq!(of("group", group), [Some("cubic"), Some("xcp"), Some("cubic"), Some("xcp")]);
    }
    assert_eq!(texts("links.*.law")[0].as_deref(), Some("none"));
    // As written, and as left out.
    let run = |set: &str| {
        lab.run(&["run", "scenario.toml", "--json", "--set", set]).exits(0).json()["fingerprint"].clone()
    };
    std::fs::write(lab.path("scenario.toml"), SCENARIO.replace("law = \"xcp\"\n\n", "\n")).expect("writable");
    let without = run("run.seed=1");
    std::fs::write(lab.path("scenario.toml"), SCENARIO).expect("writable");
    assert_eq!(run("links.bottleneck.law=none"), without);
    assert_ne!(run("run.seed=1"), without);
    for (option, words) in [
        ("run.*=3", "`*` is not below links or flows"),
        ("flows.*.law=none", "unknown law `none`"),
        ("flows.*.low=xcp", "did you mean `law`?"),
    ] {
        let stderr = lab.run(&["run", "scenario.toml", "--set", option]).exits(2).stderr();
        assert!(stderr.contains(words), "{option}: {stderr}");
    }
}

/// Metrics that ask more than the results have are columns too; a wrong word lists the right ones.
#[test]
fn claims_ask_percentiles_across_groups() {
    let claims = |metric: &str| {
        format!(
            "{SCENARIO}\n[flows.web]\nlaw = \"sack\"\ncount = 3\npath = [\"bottleneck\"]\nsize = \"30 kB\"\n\
                 [[claims]]\nthat = \"x\"\nmetric = \"{metric}\"\nat_least = 0\n"
        )
    };
    for metric in [
        "p99.9(flows.web.fct_s)",
        "p50(flows.*.slowdown)",
        "jain(flows.*.goodput_bps)",
        "sum(links.*.drops)",
        "links.bottleneck.queue_delay_ms p95 over [1 s, 2 s]",
        "flows.web.slowdown",
    ] {
        let lab = Lab::new(&claims(metric));
        lab.run(&["sweep", "scenario.toml", "--seeds", "2", "--check", "--out", "kept"]).exits(0);
        let table = Table::open(&lab.path("kept")).expect("a table");
        let is_there = table.columns().iter().any(|column| column == metric);
        assert_eq!(is_there, metric != "flows.web.slowdown", "{metric}: what the results have is there once");
        if is_there {
            let values = table.numbers(metric).expect("a column");
            assert!(
                values[0].is_some_and(|value| value >= 0.0) && values[1].is_none(),
                "{metric}: {values:?}"
            );
        }
    }
    for (metric, words) in [
        ("avg(flows.web.fct_s)", "`avg` is no function: allowed: sum, mean, min, max, jain, p50, p99.9"),
        ("p101(flows.web.fct_s)", "percentiles from p0 to p100"),
        ("p50(flows.web.slowdwon)", "did you mean `slowdown`?"),
        ("links.bottleneck.queue_delay_p96_ms", "did you mean `queue_delay_p95_ms`?"),
        ("links.bottleneck.queue_delay_ms median over [1 s, 2 s]", "p50 to p99.9"),
        ("jain(flow.*.goodput_bps)", "did you mean `flows`?"),
        ("jain.*", "jain(flows.*.goodput_bps)"),
    ] {
        let stderr = Lab::new(&claims(metric)).run(&["check", "scenario.toml"]).exits(2).stderr();
        assert!(stderr.contains(words), "{metric}: {stderr}");
    }
}

/// As JSON, one file a point, a hundred flows took 100 kB.
#[test]
fn a_point_takes_what_the_tables_need() {
    let many = SCENARIO.replace("count = 2", "count = 100").replace("10 Mbit/s", "100 Mbit/s");
    let lab = Lab::new(&many);
    lab.run(&["sweep", "scenario.toml", "--seeds", "20", "--out", "kept"]).exits(0);
    let size = |name: &str| std::fs::metadata(lab.path(&format!("kept/{name}"))).expect(name).len() / 20;
    let (record, parquet, csv) = (size("points/1.log"), size("results.parquet"), size("results.csv"));
    assert!(
        record < 15_000 && parquet < 15_000 && csv < 60_000,
        "{record} + {parquet} + {csv} bytes a point"
    );
}

/// A folder is that of the sweep that ran in it last: an older table is not taken for its.
#[test]
fn a_table_of_another_sweep_is_left_out() {
    let lab = Lab::new(SCENARIO);
    let rates = |rates: &str| format!("links.bottleneck.rate={rates}");
    let sweep = |rates: &str, more: &[&str]| {
        let arguments =
            [&["sweep", "scenario.toml", "--quiet", "--out", "kept", "--grid", rates], more].concat();
        lab.run(&arguments)
    };
    sweep(&rates("5 Mbit/s,10 Mbit/s"), &[]).exits(0);
    // A part of another one is no whole.
    sweep(&rates("6 Mbit/s,7 Mbit/s,8 Mbit/s"), &["--shard", "1/3"]).exits(0);
    for command in [&["export", "figure"][..], &["report"]] {
        let stderr = lab.run(&[command, &["kept"]].concat()).exits(2).stderr();
        assert!(stderr.contains("is not complete"), "{command:?}: {stderr}");
    }
    // What ran before is kept.
    let again = lab.run(&["sweep", "scenario.toml", "--out", "kept", "--grid", &rates("5 Mbit/s,10 Mbit/s")]);
    let stderr = again.exits(0).stderr();
    assert!(stderr.contains("0 run in") && stderr.contains("2 kept from before"), "{stderr}");
    lab.run(&["export", "figure", "kept"]).exits(0);
}

#[test]
fn an_axis_is_given_once_and_parts_are_of_one_sweep() {
    let lab = Lab::new(SCENARIO);
    let sweep = |arguments: &[&str]| lab.run(&[&["sweep", "scenario.toml", "--quiet"], arguments].concat());
    for arguments in [
        ["--grid", "links.bottleneck.rate=5 Mbit/s", "--grid", "links.bottleneck.rate=6 Mbit/s,7 Mbit/s"],
        ["--seeds", "3", "--grid", "run.seed=7,8"],
    ] {
        let stderr = sweep(&arguments).exits(2).stderr();
        assert!(stderr.contains("once more"), "{stderr}");
    }
    sweep(&["--out", "one", "--seeds", "2"]).exits(0);
    sweep(&["--out", "other", "--grid", "links.bottleneck.rate=5 Mbit/s,6 Mbit/s"]).exits(0);
    let stderr = sweep(&["--out", "all", "--seeds", "2", "--merge", "one", "other"]).exits(2).stderr();
    assert!(stderr.contains("other has points of another sweep, and none of this one"), "{stderr}");
}
