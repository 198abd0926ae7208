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
    for part in [
        "received throughput (Mbit/s)",
        "cwnd (packets)",
        "queue (packets)",
        ">xcp, flow 2</text>",
        ">cubic, flow 2</text>",
        "time (s)",
    ] {
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
    assert!(run(0)["convergence_s"].as_f64().is_some_and(|seconds| seconds < 5.0));
}

/// One phase of CUBIC's flows says nothing: the table has the median and the range of nine.
#[test]
fn the_demo_shows_the_range_of_convergence_and_agrees_with_the_metric() {
    let demo = std::fs::read_to_string(repository("crates/cli/data/demo.toml")).expect("readable");
    let claim = "[[claims]]\nthat = \"they share\"\nmetric = \"convergence_s\"\nat_most = 30\n";
    let lab = Lab::new(&format!("{demo}\n{claim}"));
    let json = lab.run(&["demo", "scenario.toml", "--json"]).exits(0).json();
    let swept = lab.run(&["sweep", "scenario.toml", "--json"]).exits(0).json();
    for index in 0..2 {
        let run = &json["runs"][index];
        assert_eq!(run["convergence_s"], swept["points"][index]["metrics"]["convergence_s"], "{index}");
        let phases = run["bottlenecks"][0]["convergence_of_phases_s"].as_array().expect("a list");
        assert_eq!((phases.len(), &phases[0]), (9, &run["convergence_s"]));
    }
    let text = lab.run(&["demo"]).exits(0).stdout();
    let line = |law: &str| text.lines().find(|line| line.trim_start().starts_with(law)).expect("a row");
    assert!(line("xcp").contains(" s (") && !line("xcp").contains("not within"), "{text}");
    assert!(line("cubic").ends_with(" s or more)") || line("cubic").contains(" to "), "{text}");
}

#[test]
fn the_demo_names_the_steps_of_a_rate() {
    let demo = std::fs::read_to_string(repository("crates/cli/data/demo.toml")).expect("readable");
    let lab = Lab::new(&demo);
    for (steps, says) in [
        (
            "[[\"0 s\", \"20 Mbit/s\"], [\"15 s\", \"5 Mbit/s\"]]",
            "20 Mbit/s, 5 Mbit/s from 15 s, 40 ms one way",
        ),
        (
            "[[\"0 s\", \"20 Mbit/s\"], [\"5 s\", \"5 Mbit/s\"], [\"9 s\", \"8 Mbit/s\"], [\"12 s\", \"2 Mbit/s\"]]",
            "2 Mbit/s to 20 Mbit/s in 4 steps, 40 ms one way",
        ),
    ] {
        let set = format!("links.bottleneck.rate={{ steps = {steps} }}");
        let text = lab.run(&["demo", "scenario.toml", "--set", &set]).exits(0).stdout();
        assert!(text.contains(says), "no {says} in\n{text}");
    }
}

/// Three groups of datagrams that share one link as 8, 1 and 1, and a second link for two of them that drops.
const UNEQUAL: &str = r#"
[run]
duration = "10 s"
[links.wide]
rate = "10 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[links.narrow]
rate = "1 Mbit/s"
delay = "5 ms"
queue = "5 packets"
[links.spare]
rate = "1 Gbit/s"
[flows.large]
law = { cbr = { rate = "8 Mbit/s" } }
path = ["spare", "wide"]
[flows.small]
law = { cbr = { rate = "0.9 Mbit/s" } }
path = ["wide", "narrow"]
[flows.other]
law = { cbr = { rate = "1 Mbit/s" } }
path = ["wide", "narrow"]
[sweep]
grid = { "run.seed" = [1] }
"#;

#[test]
fn the_demo_has_a_row_for_each_bottleneck_and_judges_all_flows_that_cross_it() {
    let lab = Lab::new(UNEQUAL);
    let json = lab.run(&["demo", "scenario.toml", "--json"]).exits(0).json();
    let rows = json["runs"][0]["bottlenecks"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["link"].as_str()).collect();
    assert_eq!(names, ["wide", "narrow"], "the spare one decides nothing");
    assert_eq!((&rows[0]["flows"], &rows[1]["flows"]), (&3.into(), &2.into()));
    // Groups of one flow are fair to themselves, whatever the others get: 8, 0.5 and 0.5.
    let index = rows[0]["jain"].as_f64().expect("a number");
    assert!((index - 81.0 / (3.0 * 64.5)).abs() < 0.01, "{index}");
    let rate = |group: &str| json["runs"][0]["result"]["flows"][group][0]["goodput_bps"].as_f64();
    let (one, other) = (rate("small").expect("a rate"), rate("other").expect("a rate"));
    let index = (one + other).powi(2) / (2.0 * (one * one + other * other));
    assert!(rows[1]["jain"].as_f64().is_some_and(|jain| (jain - index).abs() < 1e-9), "{index}: {rows:#?}");
    assert!(rows[0]["loss"] == 0.0 && rows[1]["loss"].as_f64().is_some_and(|loss| loss > 0.4), "{rows:#?}");
    let text = lab.run(&["demo", "scenario.toml"]).exits(0).stdout();
    for part in ["1, wide", "1, narrow", "0.41"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let svg = std::fs::read_to_string(lab.path("scenario.svg")).expect("it was written");
    assert!(svg.contains("capacity of narrow") && !svg.contains("capacity of spare"));
}

/// A flow that is complete after a fifth of the run: its lines end there, those of the other go on.
#[test]
fn lines_of_the_demo_end_with_their_flow() {
    let text = SCENARIO.replace("duration = \"2 s\"", "duration = \"20 s\"")
        + "\n[flows.short]\nlaw = \"xcp\"\npath = [\"bottleneck\"]\nsize = \"500 kB\"\n\
           [sweep]\ngrid = { \"run.seed\" = [1] }\n";
    let lab = Lab::new(&text);
    let json = lab.run(&["demo", "scenario.toml", "--json"]).exits(0).json();
    let done = &json["runs"][0]["result"]["flows"]["short"][0]["completion_s"];
    let done = done.as_f64().expect("it is complete");
    assert!(done < 10.0, "{done}");
    let svg = std::fs::read_to_string(lab.path("scenario.svg")).expect("it was written");
    let lines = svg.lines().filter(|line| line.contains("data-name=\"xcp, short 1\""));
    let ends: Vec<f64> = lines.map(last_x).collect();
    let others = svg.lines().filter(|line| line.contains("data-name=\"xcp, ftp 1\""));
    let whole = others.map(last_x).fold(0.0, f64::max);
    assert_eq!(ends.len(), 2, "throughput and window");
    assert!(ends.iter().all(|end| *end < whole * 0.7), "{ends:?} of {whole}");
}

/// Where the line of an SVG path ends.
fn last_x(line: &str) -> f64 {
    let (_, rest) = line.split_once("d=\"").expect("a path");
    let (path, _) = rest.split_once('"').expect("it ends");
    let last = path.rsplit(['M', 'L']).next().expect("a point");
    last.split([' ', ',']).next().and_then(|x| x.parse().ok()).unwrap_or_else(|| panic!("{path}"))
}

/// A file without a sweep is one column. More points than a picture has room for are refused.
#[test]
fn a_scenario_without_a_sweep_is_the_picture_of_one_run() {
    let lab = Lab::new(SCENARIO);
    let json = lab.run(&["demo", "scenario.toml", "--json"]).exits(0).json();
    let runs = json["runs"].as_array().expect("an array");
    assert_eq!((runs.len(), &runs[0]["label"]), (1, &"scenario".into()));
    assert_eq!(lab.files(), ["runs", "scenario.png", "scenario.svg", "scenario.toml"]);
    let svg = std::fs::read_to_string(lab.path("scenario.svg")).expect("it was written");
    assert!(svg.contains(">scenario</text>"), "the column is named");

    let five = format!("{SCENARIO}\n[sweep]\ngrid = {{ \"flows.ftp.count\" = [1, 2, 3, 4, 5] }}\n");
    std::fs::write(lab.path("five.toml"), five).expect("writable");
    let stderr = lab.run(&["demo", "five.toml"]).exits(2).stderr();
    assert!(
        stderr.contains("4 points, and the sweep has 5") && stderr.contains("congestlab export figure"),
        "{stderr}"
    );
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
        assert!((0.3..1.001).contains(&used), "{}: utilisation {used}", run["label"]);
        assert_eq!(link["queue_max_packets"], 250, "{}: the capacity does not vary", run["label"]);
        let flows = run["result"]["flows"]["download"].as_array().expect("an array");
        assert!(
            flows.iter().all(|flow| flow["goodput_bps"].as_f64().is_some_and(|rate| rate > 2e5)),
            "{flows:?}"
        );
    }
}
