//! Sweeps that resume, and claims over their runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use congestlab_scenario::Scenario;
use congestlab_scenario::claims::Verdict;
use congestlab_scenario::result::Meta;
use congestlab_scenario::sim::{self, Engine, model::Model, outcome::Outcome};
use congestlab_scenario::sweep::{self, Elsewhere, Options, PointResult, Progress, SweepError, standing};
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;

const SWEEP: &str = r#"
[run]
duration = "2 s"

[links.pipe]
rate = "1 Mbit/s"
delay = "10 ms"
queue = "20 packets"
law = "xcp"

[flows.ftp]
law = "xcp"
count = 2
path = ["pipe"]
access = { rate = "50 Mbit/s" }

[sweep]
grid = { "links.pipe.rate" = ["1 Mbit/s", "2 Mbit/s", "4 Mbit/s"], "run.seed" = [1, 2] }
"#;

fn read(claims: &str) -> Scenario {
    let text = format!("{SWEEP}\n{claims}");
    Scenario::parse("sweep.toml", &text, Path::new(""), &[], None).unwrap_or_else(|error| panic!("{error}"))
}

fn simulate(model: &Model, stop: &AtomicBool) -> Outcome {
    sim::run(model, Engine::Window { threads: 1, divisor: 1 }, stop, &mut |_| ())
}

/// Runs a sweep; returns what it gave and how many points were simulated.
fn run(scenario: &Scenario, folder: &Path, version: &str) -> (Result<Vec<PointResult>, SweepError>, usize) {
    let (stop, simulated) = (AtomicBool::new(false), AtomicUsize::new(0));
    let options = Options::new(folder, version, 2, &stop);
    let result = sweep::run(
        scenario,
        &options,
        &|_, model| {
            simulated.fetch_add(1, Ordering::Relaxed);
            (simulate(model, &stop), Meta::default())
        },
        &|_| (),
    );
    (result.and_then(|results| results.all()), simulated.into_inner())
}

fn verdicts(claims: &str) -> Vec<Verdict> {
    let folder = tempfile::tempdir().unwrap();
    let scenario = read(claims);
    let results = run(&scenario, folder.path(), "v").0.unwrap();
    let observations: Vec<_> = results.iter().map(PointResult::observation).collect();
    scenario.claims().iter().map(|claim| claim.verdict(&observations)).collect()
}

#[test]
fn points_are_a_grid_with_the_last_axis_fastest() {
    let scenario = read("");
    let labels: Vec<&str> =
        scenario.sweep().unwrap().points().iter().map(|point| point.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "links.pipe.rate = \"1 Mbit/s\", run.seed = 1",
            "links.pipe.rate = \"1 Mbit/s\", run.seed = 2",
            "links.pipe.rate = \"2 Mbit/s\", run.seed = 1",
            "links.pipe.rate = \"2 Mbit/s\", run.seed = 2",
            "links.pipe.rate = \"4 Mbit/s\", run.seed = 1",
            "links.pipe.rate = \"4 Mbit/s\", run.seed = 2",
        ]
    );
}

#[test]
fn zipped_lists_go_together_and_beside_a_grid() {
    let text = SWEEP.replace(
        "grid = {",
        "zip = { \"flows.ftp.count\" = [1, 2], \"links.pipe.delay\" = [\"1 ms\", \"2 ms\"] }\ngrid = {",
    );
    let scenario = Scenario::parse("z.toml", &text, Path::new(""), &[], None).unwrap();
    let points = scenario.sweep().unwrap().points();
    assert_eq!(points.len(), 12);
    assert!(points[0].label.starts_with("flows.ftp.count = 1, links.pipe.delay = \"1 ms\", links.pipe.rate"));
    assert!(
        points[11]
            .label
            .starts_with("flows.ftp.count = 2, links.pipe.delay = \"2 ms\", links.pipe.rate = \"4 Mbit/s\"")
    );
    let last = scenario.point(&points[11]).unwrap().normalised();
    assert!(
        last.contains("count = 2") && last.contains("delay = \"2 ms\"") && last.contains("seed = 2"),
        "{last}"
    );
}

#[test]
fn a_sweep_does_only_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = read("");
    let (first, simulated) = run(&scenario, folder.path(), "v1");
    assert_eq!((first.unwrap().len(), simulated), (6, 6));
    assert_eq!(run(&scenario, folder.path(), "v1").1, 0, "all is there");
    assert_eq!(run(&scenario, folder.path(), "v2").1, 6, "other code");

    let points = folder.path().join("points");
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(&points).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    let mut all = names();
    all.sort();
    let expected = ["1.log", "2.log", "plan.json"];
    assert_eq!(all, expected, "one file for each command that ran something, and no claim is left");
    // Records of other code are none of this sweep's.
    let standing = standing(folder.path()).unwrap().unwrap();
    assert_eq!((standing.done, standing.all), (6, Some(6)));
    assert_eq!(standing.scenario.as_deref(), Some(scenario.name()));
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(run(&scenario, folder.path(), "v1").1, 6);
    let log = points.join("1.log");
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, &whole[..whole.len() - 1]).unwrap();
    let (again, simulated) = run(&scenario, folder.path(), "v1");
    assert_eq!(simulated, 1, "the one of which a byte is missing");
    assert_eq!(run(&scenario, folder.path(), "v1").1, 0, "it is in a file of its own");
    let values: Vec<_> = again.unwrap().iter().map(|point| point.result["fingerprint"].clone()).collect();
    let fresh = tempfile::tempdir().unwrap();
    let expected: Vec<_> = run(&scenario, fresh.path(), "v1")
        .0
        .unwrap()
        .iter()
        .map(|point| point.result["fingerprint"].clone())
        .collect();
    assert_eq!(values, expected, "in the order of the sweep");
}

/// Settings are columns of their types, beside the object that has them all, and the run that a row is of.
/// Points that others have run are those of the sweep: half by others, half here, and nothing is left for either.
#[test]
fn points_that_others_run_are_the_same() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (scenario, stop) = (read(""), AtomicBool::new(false));
    let (expected, _) = run(&scenario, other.path(), "v");
    let simulate = |_: &Scenario, model: &Model| (simulate(model, &stop), Meta::default());
    let point = |place| sweep::run_point(&scenario, place, "v", &simulate);
    let options = Options::new(folder.path(), "v", 1, &stop);

    let mut elsewhere = Elsewhere::open(&scenario, &options).unwrap();
    assert_eq!((elsewhere.points(), elsewhere.missing()), (6, vec![0, 1, 2, 3, 4, 5]));
    let done: Vec<_> = [4, 1].map(|place| (place, point(place).unwrap().unwrap())).into();
    elsewhere.keep(&done).unwrap();
    assert_eq!(elsewhere.missing(), [0, 2, 3, 5]);
    // All of it, or none: what is damaged, and a point that there is not.
    let third = point(3).unwrap().unwrap();
    assert!(elsewhere.keep(&[(3, third.clone()), (2, third[..third.len() / 2].to_vec())]).is_err());
    assert!(elsewhere.keep(&[(3, third), (6, done[0].1.clone())]).is_err());
    assert!(point(6).is_err());
    assert_eq!(elsewhere.finish().missing(), 4);

    let (results, simulated) = run(&scenario, folder.path(), "v");
    assert_eq!(simulated, 4, "two were there");
    let facts = |results: &[PointResult]| -> Vec<_> {
        results.iter().map(|point| (point.run.clone(), point.result.clone(), point.readings.len())).collect()
    };
    assert_eq!(facts(&results.unwrap()), facts(&expected.unwrap()));
    let elsewhere = Elsewhere::open(&scenario, &options).unwrap();
    assert!(elsewhere.missing().is_empty());
    assert_eq!(elsewhere.finish().all().unwrap().len(), 6);
    // Other code has run none of them.
    assert_eq!(
        Elsewhere::open(&scenario, &Options::new(folder.path(), "w", 1, &stop)).unwrap().missing().len(),
        6
    );
}

#[test]
fn the_table_of_points_says_what_varied_in_columns_of_its_type() {
    let grid = r#"grid = { "links.pipe.rate" = ["1 Mbit/s", "2 Mbit/s"], "links.pipe.law.xcp.alpha" = [0.4, 1],
        "links.pipe.queue" = ["20 packets", "30 kB"], "run.seed" = [3] }"#;
    let claim = "[[claims]]\nthat = \"x\"\nmetric = \"links.pipe.drops\"\nat_least = 0\n";
    let text = format!("{}{}\n{claim}", SWEEP.split("grid").next().unwrap(), grid.replace('\n', " "));
    let scenario = Scenario::parse("sweep.toml", &text, Path::new(""), &[], None)
        .unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir().unwrap();
    let results = run(&scenario, folder.path(), "v").0.unwrap_or_else(|error| panic!("{error}"));
    let path = folder.path().join("points.parquet");
    sweep::write_points(&path, "sweep", &results).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let rows: Vec<BTreeMap<String, Field>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().into_columns().into_iter().collect())
        .collect();
    assert_eq!(rows.len(), 8);
    let text = |text: &str| Field::Str(text.into());
    let last = &rows[7];
    for (column, value) in [
        ("seed", Field::Long(3)),
        ("metric", text("links.pipe.drops")),
        ("scenario", text("sweep")),
        ("run", text(&results[7].run)),
        (
            "label",
            text(
                "links.pipe.rate = \"2 Mbit/s\", links.pipe.law.xcp.alpha = 1, links.pipe.queue = \"30 kB\"",
            ),
        ),
        (
            "settings",
            text(r#"{"links.pipe.rate":"2 Mbit/s","links.pipe.law.xcp.alpha":1,"links.pipe.queue":"30 kB"}"#),
        ),
        ("links.pipe.rate_bps", Field::Double(2e6)),
        ("links.pipe.law.xcp.alpha", Field::Double(1.0)),
        ("links.pipe.queue", text("30 kB")),
    ] {
        assert_eq!(last.get(column), Some(&value), "{column}");
    }
    assert_eq!(rows[0]["links.pipe.law.xcp.alpha"], Field::Double(0.4));
    assert!(results[7].run.starts_with("sweep-3-"), "{}", results[7].run);
}

/// One scenario has one file: two points that say the same may not write it at once.
#[test]
fn points_that_say_the_same_are_one_run() {
    let grid = r#"grid = { "links.pipe.rate" = ["1 Mbit/s", "1000 kbit/s"], "run.seed" = [1, 2, 1] }"#;
    let text = format!("{}{grid}", SWEEP.split("grid").next().unwrap());
    let scenario = Scenario::parse("sweep.toml", &text, Path::new(""), &[], None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (results, simulated) = run(&scenario, folder.path(), "v");
    assert_eq!(simulated, 2, "one for each seed");
    let results = results.unwrap();
    let points = scenario.sweep().unwrap().points();
    let settings = |result: &PointResult| result.settings.clone();
    assert_eq!(
        results.iter().map(settings).collect::<Vec<_>>(),
        points.iter().map(|point| point.settings.clone()).collect::<Vec<_>>(),
        "every point has its result, in order and by its own words"
    );
    for (index, result) in results.iter().enumerate() {
        assert_eq!(result.result["seed"], [1, 2, 1][index % 3]);
    }
    assert_eq!(run(&scenario, folder.path(), "v").1, 0, "all is there");
}

/// Names that only the process tells apart would meet in one temporary file.
#[test]
fn threads_that_write_one_file_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let write = |byte: u8| {
        let path = path.clone();
        move || {
            for _ in 0..20 {
                congestlab_scenario::disk::write_atomically(&path, &[byte; 4096]).unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        for byte in [b'a', b'b', b'c', b'd'] {
            scope.spawn(write(byte));
        }
    });
    let text = std::fs::read(&path).unwrap();
    assert!(text.len() == 4096 && text.iter().all(|&byte| byte == text[0]));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing temporary is left");
}

#[test]
fn one_more_value_costs_one_more_run() {
    let folder = tempfile::tempdir().unwrap();
    run(&read(""), folder.path(), "v").0.unwrap();
    let more = SWEEP.replace("[1, 2]", "[1, 2, 3]");
    let scenario = Scenario::parse("sweep.toml", &more, Path::new(""), &[], None).unwrap();
    assert_eq!(run(&scenario, folder.path(), "v").1, 3, "three rates with the new seed");
}

#[test]
fn an_interrupted_sweep_keeps_what_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = read("");
    let stop = AtomicBool::new(false);
    let finished = Mutex::new(0);
    let options = Options::new(folder.path(), "v", 1, &stop);
    let result =
        sweep::run(&scenario, &options, &|_, model| (simulate(model, &stop), Meta::default()), &|progress| {
            if let Progress::Finished(_) = progress {
                let mut finished = finished.lock().unwrap();
                *finished += 1;
                stop.store(*finished == 2, Ordering::Relaxed);
            }
        });
    assert!(matches!(result, Err(SweepError::Interrupted { done: 2, all: 6 })), "{result:?}");
    assert_eq!(run(&scenario, folder.path(), "v").1, 4);
}

#[test]
fn a_mistake_at_the_last_point_costs_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = SWEEP.replace("\"4 Mbit/s\"]", "\"4 mbps\"]");
    let scenario = Scenario::parse("sweep.toml", &text, Path::new(""), &[], None).unwrap();
    let (result, simulated) = run(&scenario, folder.path(), "v");
    let Err(SweepError::Scenario(diagnostics)) = result else { panic!("{result:?}") };
    assert_eq!(simulated, 0);
    assert_eq!(
        diagnostics.iter().next().map(|d| (d.file().to_owned(), d.position().0)),
        Some(("sweep.toml".into(), 18))
    );
}

#[test]
fn claims_that_hold_and_claims_that_do_not() {
    let holding = [
        ("links.pipe.utilization", "at_least = 0.5"),
        ("links.pipe.utilization", "at_most = 1"),
        ("links.pipe.utilization", "within = [0.5, 1]"),
        ("complete", "equals = true"),
        ("duration_s", "equals = 2"),
        ("links.pipe.drops", "never = true"),
        ("links.pipe.drops", "equals = 0"),
        ("links.pipe.drops_by_reason.queue-full", "at_most = 0"),
        ("links.pipe.drops_by_reason.red-early", "equals = 0"),
        ("links.pipe.queue_max_packets", "never = '> 20'"),
        ("sum(flows.ftp.goodput_bps)", "at_least = '0.4 Mbit/s'"),
        ("flows.ftp.goodput_bps", "at_least = 1"),
        ("flows.ftp[0].goodput_bps", "at_most = 1\nratio_to = 'links.pipe.capacity_bps'"),
        (
            "links.pipe.throughput_bps",
            "ordered = ['sum(flows.ftp.goodput_bps)', 'min(flows.ftp.goodput_bps)']",
        ),
        ("links.pipe.throughput_bps", "monotone = 'increasing'"),
        ("links.pipe.throughput_bps", "monotone = 'increasing'\nover = 'links.pipe.rate'"),
        ("duration_s", "ratio_to = 'links.pipe.capacity_bps'\nmonotone = 'decreasing'"),
        ("links.pipe.capacity_bps", "equals = '4 Mbit/s'\nonly = { 'links.pipe.rate' = ['4 Mbit/s'] }"),
        ("links.pipe.throughput_bps first time > 0.1 Mbit/s", "at_most = '1 s'"),
        ("links.pipe.throughput_bps mean over [1 s, 2 s]", "at_least = 4e5"),
    ];
    let failing = [
        ("links.pipe.utilization", "at_least = 1.5"),
        ("links.pipe.utilization", "at_most = 0.1"),
        ("links.pipe.utilization", "within = [0, 0.1]"),
        ("complete", "equals = false"),
        ("links.pipe.sent_packets", "never = true"),
        ("links.pipe.utilization", "never = '> 0.1'"),
        ("flows.ftp.completion_s", "at_least = 0"),
        ("sum(flows.ftp.goodput_bps)", "ordered = ['links.pipe.throughput_bps']"),
        ("links.pipe.throughput_bps", "monotone = 'decreasing'"),
        ("duration_s", "ratio_to = 'links.pipe.capacity_bps'\nmonotone = 'increasing'"),
        ("links.pipe.throughput_bps", "crossover = 'sum(flows.ftp.goodput_bps)'"),
        ("links.pipe.capacity_bps", "equals = '4 Mbit/s'"),
        ("links.pipe.throughput_bps first time > 1 Gbit/s", "at_most = 2"),
        // What is divided by 0 is neither more nor less than anything.
        ("links.pipe.throughput_bps", "at_least = 5\nratio_to = 'links.pipe.reverse.drops'"),
        ("links.pipe.drops", "never = '> 5'\nratio_to = 'links.pipe.reverse.drops'"),
    ];
    let all: String = holding.iter().chain(&failing).map(|(metric, says)| claim_text(metric, says)).collect();
    let verdicts = verdicts(&all);
    assert_eq!(verdicts.len(), holding.len() + failing.len());
    for (verdict, (metric, says)) in verdicts.iter().zip(holding.iter().chain(&failing)) {
        let expected = holding.contains(&(metric, says));
        assert_eq!(verdict.holds(), expected, "{metric}: {says}: {}", verdict.text);
        assert!(!verdict.text.is_empty());
    }
    let told = &verdicts[holding.len()].text;
    assert!(
        told.starts_with("links.pipe.utilization is 0.") && told.ends_with("at_least 1.5 (6 of 6)"),
        "{told}"
    );
    assert!(told.contains("at links.pipe.rate = \"1 Mbit/s\", run.seed = 1"), "{told}");
}

/// A metric that no run can have is no metric that is never anything.
#[test]
fn a_claim_about_nothing_is_refused() {
    let read = |metric: &str, axes: &str| {
        let text = SWEEP.replace("\"run.seed\" = [1, 2]", axes);
        let text = format!("{text}\n{}", claim_text(metric, "never = true"));
        let scenario = Scenario::parse("c.toml", &text, Path::new(""), &[], None).unwrap();
        scenario.check().map(drop).map_err(|diagnostics| diagnostics.to_string())
    };
    let seeds = "\"run.seed\" = [1, 2]";
    for (metric, reason) in [
        ("links.pipe.drops_by_reason.quue-full", "did you mean `queue-full`?"),
        (
            "links.pipe.drops_by_reason",
            "allowed: queue-full, red-early, red-forced, pushed-out, xcp-queue-full, excessive-collisions, aqm, policed",
        ),
        ("links.pipe.drops_by_reason.queue-full.x", "`queue-full` has nothing below it"),
        ("flows.ftp[2].timeouts", "no [2] in `ftp`, which has 2; allowed: [0] to [1]"),
        ("flows.ftp[9].goodput_bps at 1 s", "no [9] in `ftp`"),
        ("flows.ftp.timeouts[0]", "`timeouts` has nothing below it"),
        ("links.pipe[0].drops", "links have no [0]"),
        ("jain(flows.ftp)", "it names no value of flows"),
    ] {
        let refused = read(metric, seeds).expect_err(metric);
        assert!(refused.contains(reason), "{metric}: {refused}");
    }
    for metric in ["flows.ftp[1].timeouts", "links.\"pipe.reverse\".drops_by_reason.pushed-out"] {
        assert_eq!(read(metric, seeds), Ok(()), "{metric}");
    }
    // A sweep may have more flows than the file.
    let counts = "\"flows.ftp.count\" = [1, 4]";
    assert_eq!(read("flows.ftp[3].timeouts", counts), Ok(()));
    assert!(read("flows.ftp[4].timeouts", counts).is_err());
}

fn claim_text(metric: &str, says: &str) -> String {
    format!("[[claims]]\nthat = 'a test'\nmetric = '{metric}'\n{says}\n")
}

/// The capacity rises by the axis, the flows' limit does not: they cross where both are 1.5 Mbit/s.
#[test]
fn a_crossover_is_found_between_two_points() {
    let awnd = SWEEP.replace("access =", "awnd = \"1 packet\"\naccess =");
    let claims = claim_text("links.pipe.capacity_bps", "crossover = 'flows.ftp[0].sent_packets'");
    let text = format!("{awnd}\n{claims}");
    let scenario = Scenario::parse("c.toml", &text, Path::new(""), &[], None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut results = run(&scenario, folder.path(), "v").0.unwrap();
    for point in &mut results {
        // 1, 2 and 4 Mbit/s against 1.5 Mbit/s.
        point.readings[1].1 = congestlab_scenario::metric::Reading::Number(1.5e6);
    }
    let observations: Vec<_> = results.iter().map(PointResult::observation).collect();
    let verdict = scenario.claims()[0].verdict(&observations);
    assert!(verdict.holds() && verdict.text == "crossover at links.pipe.rate = 1500000", "{verdict:?}");
}

/// What a point is read from is the run that it is: with the plan in it, reading all points would take time that grows
/// with the square of their number.
#[test]
fn a_point_is_no_larger_for_having_many_beside_it() {
    let read = |count: usize| {
        let seeds: Vec<String> = (1..=count).map(|seed| seed.to_string()).collect();
        let figure = "[figure]\nof = \"fig. 1\"\ntitle = \"x\"\nx = \"run.seed\"\nlines = [{ name = \"a\", \
                      metric = \"links.pipe.drops\", y = \"b\" }]";
        let claim = "[[claims]]\nthat = \"none\"\nmetric = \"links.pipe.drops\"\nequals = 0";
        let text = SWEEP.replace("\"run.seed\" = [1, 2]", &format!("\"run.seed\" = [{}]", seeds.join(", ")));
        let text = format!("{text}\n{claim}\n{figure}");
        let scenario = Scenario::parse("sweep.toml", &text, Path::new(""), &[], None)
            .unwrap_or_else(|error| panic!("{error}"));
        let points = scenario.sweep().expect("a sweep").points();
        assert_eq!(points.len(), 3 * count);
        let first = scenario.point(&points[0]).expect("valid");
        assert_eq!(first.claims().len(), 1, "the claims go with it");
        assert!(first.metrics().count() > 1, "and so does the figure");
        (scenario.check().is_ok(), first.normalised())
    };
    assert_eq!(read(2), read(20_000));
}

/// A column says what was run: no other path, however it is written, takes the place of a path.
#[test]
fn a_place_is_swept_once() {
    let base = SWEEP.split("[sweep]").next().unwrap();
    let parse = |sweep: &str| {
        let text = format!("{base}[sweep]\n{sweep}");
        Scenario::parse("sweep.toml", &text, Path::new(""), &[], None)
            .and_then(|scenario| scenario.check())
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let grid = "grid = { \"flows.ftp.count\" = [1, 2] }";
    for (other, why) in [
        ("zip = { \"flows.ftp.count\" = [3, 4] }", "swept twice"),
        ("zip = { \"flows.\\\"ftp\\\".count\" = [3, 4] }", "swept twice"),
    ] {
        let error = parse(&format!("{grid}\n{other}")).expect_err(other);
        assert!(error.contains(why), "{error}");
    }
    let grid = "grid = { \"flows.*.count\" = [1] }\nzip = { \"flows.ftp.count\" = [3] }";
    let error = parse(grid).expect_err("the wider one comes later");
    assert!(error.contains("`flows.*.count` would overwrite"), "{error}");
    assert_eq!(parse("zip = { \"flows.*.count\" = [1], \"flows.ftp.count\" = [3] }"), Ok(()));
}
