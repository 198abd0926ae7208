//! The demo: a table, a picture, and the data of both on disk.

use crate::{Lab, SCENARIO, repository};

#[test]
fn the_demo_leaves_a_picture_and_its_data() {
    let lab = Lab::new(SCENARIO);
    let text = lab.run(&["demo"]).exits(0).stdout();
    for part in ["xcp", "cubic", "utilisation", "demo.png"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(lab.files(), ["demo.png", "demo.svg", "runs", "scenario.toml"]);
    let png = std::fs::read(lab.path("demo.png")).expect("it was written");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let svg = std::fs::read_to_string(lab.path("demo.svg")).expect("it was written");
    for part in ["throughput (Mbit/s)", "cwnd (packets)", "queue (packets)", ">flow 2</text>", "time (s)"] {
        assert!(svg.contains(part), "{part} is missing");
    }
    let runs: Vec<_> = std::fs::read_dir(lab.path("runs")).expect("a folder").flatten().collect();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run.path().join("links.parquet").is_file()));
}

/// K02 §5: XCP keeps the queue near empty and drops nothing where a loss-based law fills it.
#[test]
fn the_demo_shows_what_explicit_control_is_for() {
    let lab = Lab::new(SCENARIO);
    let json = lab.run(&["demo", "--json"]).exits(0).json();
    let run = |index: usize| &json["runs"][index];
    let link = |index: usize, key: &str| {
        run(index)["result"]["links"]["bottleneck"][key].as_f64().unwrap_or(f64::NAN)
    };
    assert_eq!((run(0)["label"].as_str(), run(1)["label"].as_str()), (Some("xcp"), Some("cubic")));
    assert!(link(0, "utilization") > 0.98 && link(1, "utilization") > 0.9);
    assert!(link(0, "queue_mean_packets") < 5.0 && link(1, "queue_mean_packets") > 20.0);
    assert!(link(0, "drops") == 0.0 && link(1, "drops") > 0.0);
    assert!(run(0)["fair_share_s"].as_f64().is_some_and(|seconds| seconds < 5.0));
}

#[test]
fn a_scenario_without_a_sweep_has_no_columns() {
    let lab = Lab::new(SCENARIO);
    let stderr = lab.run(&["demo", "scenario.toml"]).exits(2).stderr();
    assert!(stderr.contains("[sweep]"), "{stderr}");
    assert_eq!(lab.files(), ["scenario.toml"]);
}

/// The recorded trace where it is at hand, the repository's own elsewhere.
#[test]
fn both_laws_run_on_a_link_whose_capacity_varies() {
    let lab = Lab::new(SCENARIO);
    let recorded = repository("../shared/data/mahimahi/ATT-LTE-driving-2016.down");
    let scenario = repository("scenarios/lte.toml");
    let scenario = scenario.to_string_lossy();
    let trace = format!("links.lte.rate={{ trace = \"{}\" }}", recorded.display());
    let mut arguments = vec!["demo", &scenario, "--json"];
    if recorded.is_file() {
        arguments.extend(["--set", &trace, "--set", "run.duration=120 s"]);
    }
    let json = lab.run(&arguments).exits(0).json();
    for index in [0, 1] {
        let run = &json["runs"][index];
        let link = &run["result"]["links"]["lte"];
        let used = link["utilization"].as_f64().unwrap_or(f64::NAN);
        assert!((0.3..1.2).contains(&used), "{}: utilisation {used}", run["label"]);
        assert_eq!(link["queue_max_packets"], 250, "{}: the capacity does not vary", run["label"]);
        let flows = run["result"]["flows"]["download"].as_array().expect("an array");
        assert!(
            flows.iter().all(|flow| flow["goodput_bps"].as_f64().is_some_and(|rate| rate > 2e5)),
            "{flows:?}"
        );
    }
}
