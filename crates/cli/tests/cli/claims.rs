//! Sweeps: every point once, claims judged, only what is missing run again.

use crate::{Lab, SCENARIO};

fn lab(at_least: &str) -> Lab {
    let sweep = r#"
[sweep]
grid = { "links.bottleneck.rate" = ["5 Mbit/s", "10 Mbit/s"], "run.seed" = [1, 2] }

[[claims]]
that = "the pipe is full"
metric = "links.bottleneck.utilization"
at_least = "#;
    Lab::new(&format!("{SCENARIO}{sweep}{at_least}\n"))
}

#[test]
fn claims_that_hold_end_well_and_claims_that_fail_end_with_three() {
    let holds = lab("0.5").run(&["sweep", "scenario.toml", "--check"]).exits(0);
    assert!(holds.stdout().contains("holds  the pipe is full"), "{}", holds.stdout());
    let lab = lab("1.5");
    let fails = lab.run(&["sweep", "scenario.toml", "--check"]).exits(3);
    assert!(fails.stdout().contains("FAILS  the pipe is full"), "{}", fails.stdout());
    assert!(fails.stderr().contains("1 of 1 claims do not hold"), "{}", fails.stderr());
    lab.run(&["sweep", "scenario.toml"]).exits(0);
    let json = lab.run(&["sweep", "scenario.toml", "--check", "--json"]).exits(3).json();
    assert_eq!(json["claims"][0]["holds"], false);
    assert_eq!(json["points"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_sweep_is_the_same_on_every_number_of_threads() {
    let lab = lab("0.5");
    let run = |threads: &str, out: &str| {
        let arguments = ["sweep", "scenario.toml", "--json", "--threads", threads, "--out", out];
        let json = lab.run(&arguments).exits(0).json();
        let points = json["points"].as_array().expect("an array");
        points.iter().map(|point| point["result"]["fingerprint"].to_string()).collect::<Vec<_>>()
    };
    let fingerprints = run("1", "one");
    assert_eq!(run("3", "three"), fingerprints);
    let distinct: std::collections::BTreeSet<_> = fingerprints.iter().collect();
    assert_eq!(distinct.len(), 4, "points are not different runs: {fingerprints:?}");
}

#[test]
fn what_is_complete_is_kept_and_what_is_missing_is_run() {
    let lab = lab("0.5");
    let sweep = || lab.run(&["sweep", "scenario.toml", "--out", "kept"]).exits(0).stderr();
    assert!(sweep().contains("4 run in"));
    assert!(sweep().contains("0 run in") && sweep().contains("4 kept"));
    let log = lab.path("kept/points/1.log");
    let whole = std::fs::read(&log).expect("a file");
    std::fs::write(&log, &whole[..whole.len() - 1]).expect("it can be written");
    assert!(sweep().contains("1 run in"), "half a record is taken for a result");
    std::fs::remove_file(&log).expect("it can be removed");
    assert!(sweep().contains("3 run in"), "the fourth is in the file of the command that ran it");
}
