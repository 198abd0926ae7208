//! What goes where, and what each way to fail looks like.

use std::process::Stdio;

use serde_json::Value;

use crate::{Finished, Lab, SCENARIO};

#[test]
fn a_run_prints_one_object_with_the_keys_of_the_contract() {
    let lab = Lab::new(SCENARIO);
    let finished = lab.run(&["run", "scenario.toml", "--json"]).exits(0);
    let result = finished.json();
    for key in ["schema", "complete", "seed", "seed_used", "fingerprint", "duration_s", "packet_hops", "meta"]
    {
        assert!(result.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(result["complete"], true);
    assert_eq!(result["flows"]["ftp"].as_array().map(Vec::len), Some(2));
    assert!(result["links"]["bottleneck.reverse"].is_object());
    for key in ["wall_s", "cpu_s", "host", "version", "date"] {
        assert!(result["meta"].get(key).is_some(), "meta.{key} is missing");
    }
    assert_eq!(finished.stderr(), "");
    assert_eq!(lab.files(), ["scenario.toml"]);
}

#[test]
fn two_equal_runs_differ_in_meta_alone() {
    let lab = Lab::new(SCENARIO);
    let run = || {
        let mut result = lab.run(&["run", "scenario.toml", "--json", "--seed", "7"]).exits(0).json();
        assert_eq!(result["seed"], 7);
        result["meta"] = Value::Null;
        result
    };
    assert_eq!(run(), run());
}

#[test]
fn people_get_a_table_and_the_seed() {
    let lab = Lab::new(SCENARIO);
    let text = lab.run(&["run", "scenario.toml"]).exits(0).stdout();
    assert!(text.contains("bottleneck") && text.contains("ftp[1]") && text.contains("seed 1"), "{text}");
    let plain = SCENARIO.replace("law = \"xcp\"", "law = \"cubic\"").replacen("law = \"cubic\"\n", "", 1);
    let text = Lab::new(&plain).run(&["run", "scenario.toml"]).exits(0).stdout();
    assert!(text.contains("seed 1 (nothing random was drawn)"), "{text}");
}

#[test]
fn many_flows_are_shown_by_group() {
    let lab = Lab::new(SCENARIO);
    let text = lab.run(&["run", "scenario.toml", "--set", "flows.ftp.count=21"]).exits(0).stdout();
    assert!(text.contains("goodput sum") && !text.contains("ftp[0]"), "{text}");
}

/// Short flows one after the other, each fast while it lives: together they get no more than the link carries.
#[test]
fn what_a_group_gets_together_is_bytes_over_the_measured_time() {
    let text =
        SCENARIO.replace("duration = \"2 s\"", "duration = \"20 s\"").replace("count = 2", "count = 40")
            + "size = \"100 kB\"\nstart = { every = \"300 ms\" }\n";
    let lab = Lab::new(&text);
    let text = lab.run(&["run", "scenario.toml", "--out", "runs"]).exits(0).stdout();
    let run = std::fs::read_dir(lab.path("runs")).expect("a folder").flatten().next().expect("a run").path();
    let summary = std::fs::read_to_string(run.join("summary.json")).expect("readable");
    let result: Value = serde_json::from_str(&summary).expect("JSON");
    let flows = result["flows"]["ftp"].as_array().expect("a list");
    let sum = |key: &str| flows.iter().filter_map(|flow| flow[key].as_f64()).sum::<f64>();
    let capacity = result["links"]["bottleneck"]["capacity_bps"].as_f64().expect("a number");
    assert!(sum("goodput_bps") > 2.0 * capacity, "rates of flows that never met: {}", sum("goodput_bps"));
    let together = sum("arrived_bytes") * 8.0 / 19.0;
    assert!(together < capacity);
    let shown = congestlab_scenario::number::rate(Some(together));
    let row = text.lines().find(|line| line.trim_start().starts_with("ftp")).expect("a row");
    assert!(row.contains(&format!("  {shown}  ")), "{shown} is not in {row}");
    let page = std::fs::read_to_string(run.join("report.html")).expect("readable");
    assert!(page.contains(&format!("<th scope=\"row\">ftp</th><td>40</td><td>{shown}</td>")), "{shown}");
}

#[test]
fn above_ten_thousand_flows_a_summary_replaces_the_arrays() {
    let lab = Lab::new(SCENARIO);
    let few = ["run", "scenario.toml", "--json", "--flows", "summary"];
    assert!(lab.run(&few).exits(0).json()["flows"]["ftp"].is_array());
    let many = ["--set", "flows.ftp.count=10001", "--set", "run.duration=20 ms", "--set", "run.warmup=0 s"];
    let result = lab.run(&[&few[..], &many].concat()).exits(0).json();
    assert_eq!(result["flows"]["ftp"]["count"], 10_001);
    assert!(result["flows"]["ftp"]["sent_packets"]["p95"].is_number());
}

#[test]
fn series_and_events_are_tables() {
    let lab = Lab::new(SCENARIO);
    lab.run(&["run", "scenario.toml", "--json", "--series", "s.csv", "--events", "e.csv"]).exits(0);
    let series = std::fs::read_to_string(lab.path("s.csv")).expect("it was written");
    assert!(series.starts_with("t_s,element,index,metric,value\n"));
    assert!(series.contains(",bottleneck,,queue_packets,") && series.contains(",ftp,1,cwnd_packets,"));
    let events = std::fs::read_to_string(lab.path("e.csv")).expect("it was written");
    assert!(
        events.starts_with("t_s,element,index,event,") && events.contains(",control-interval,"),
        "{events}"
    );
    assert_eq!(lab.files(), ["e.csv", "s.csv", "scenario.toml"], "a temporary file is left");
}

#[test]
fn a_device_is_written_to_and_not_replaced() {
    let lab = Lab::new(SCENARIO);
    let link = lab.path("null");
    std::os::unix::fs::symlink("/dev/null", &link).expect("the folder is writable");
    lab.run(&["run", "scenario.toml", "--series", "null"]).exits(0);
    assert!(link.is_symlink(), "the link was replaced by a file");
    assert_eq!(std::fs::metadata("/dev/null").map(|metadata| metadata.is_file()).ok(), Some(false));
}

#[test]
fn a_folder_of_results_holds_everything_that_repeats_the_run() {
    let lab = Lab::new(SCENARIO);
    let first = lab.run(&["run", "scenario.toml", "--json", "--out", "runs"]).exits(0).json();
    let mut folders = std::fs::read_dir(lab.path("runs")).expect("it was written");
    let folder = folders.next().expect("one run").expect("readable").path();
    assert!(folders.next().is_none());
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    assert!(name.starts_with("scenario-1-"), "{name}");
    for file in ["summary.json", "flows.parquet", "links.parquet", "events.parquet", "scenario.toml"] {
        assert!(folder.join(file).is_file(), "{file} is missing");
    }
    let copy = folder.join("scenario.toml");
    let again = lab.run(&["run", &copy.to_string_lossy(), "--json"]).exits(0).json();
    assert_eq!(again["fingerprint"], first["fingerprint"]);
}

#[test]
fn every_engine_agrees() {
    let lab = Lab::new(SCENARIO);
    let finished = lab.run(&["run", "scenario.toml", "--json", "--verify"]).exits(0);
    assert!(finished.json().is_object());
    assert!(finished.stderr().starts_with("verified: "), "{}", finished.stderr());
    let quiet = lab.run(&["run", "scenario.toml", "--verify", "--quiet", "--threads", "3"]).exits(0);
    assert_eq!(quiet.stderr(), "");
    let many = lab.run(&["run", "scenario.toml", "--verbose", "--threads", "1024"]).exits(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(many.stderr().contains(&format!("at most {cores} threads")), "{}", many.stderr());
}

/// Bad input: status 2, file, line and column, and nothing written.
#[test]
fn a_misspelt_key_is_shown_with_the_nearest_one() {
    let lab = Lab::new(&SCENARIO.replace("queue =", "quue ="));
    let arguments = ["run", "scenario.toml", "--series", "s.csv", "--out", "runs"];
    let finished = lab.run(&arguments).exits(2);
    let stderr = finished.stderr();
    assert!(stderr.starts_with("error: scenario.toml:9:1: "), "{stderr}");
    assert!(stderr.contains("`quue`") && stderr.contains("`queue`"), "{stderr}");
    assert!(!stderr.contains('\u{1b}'), "colours without a terminal");
    assert_eq!(finished.stdout(), "");
    assert_eq!(lab.files(), ["scenario.toml"]);
}

#[test]
fn programs_get_diagnostics_as_json() {
    let lab = Lab::new(&SCENARIO.replace("10 Mbit/s", "10 mbps"));
    for command in ["run", "check", "sweep"] {
        let finished = lab.run(&[command, "scenario.toml", "--json"]).exits(2);
        assert_eq!(finished.stdout(), "");
        let told: Value = serde_json::from_str(&finished.stderr()).expect("one object");
        let diagnostic = &told["diagnostics"][0];
        assert_eq!(diagnostic["severity"], "error");
        assert_eq!(diagnostic["file"], "scenario.toml");
        assert_eq!(diagnostic["line"], 7);
        assert!(diagnostic["help"].as_str().is_some_and(|help| help.contains("Mbit/s")), "{diagnostic}");
    }
    assert_eq!(lab.files(), ["scenario.toml"]);
}

#[test]
fn an_override_is_judged_like_the_file() {
    let lab = Lab::new(SCENARIO);
    let run = |set: &str| lab.run(&["run", "scenario.toml", "--json", "--set", set]);
    let result = run("links.bottleneck.rate=\"1 Mbit/s\"").exits(0).json();
    assert_eq!(result["links"]["bottleneck"]["capacity_bps"], 1e6);
    for bad in [
        "links.bottlneck.rate=\"1 Mbit/s\"",
        "links.bottleneck.rat=\"1 Mbit/s\"",
        "links.bottleneck.rate=-1 Mbit/s",
        "links.bottleneck.rate=[1",
        "flows.ftp.path=[\"nowhere\"]",
        "flows.ftp.law=\"no-such-law\"",
        "run.duration=0 s",
        "flows.ftp.start=2 s",
        "no assignment",
    ] {
        let finished = run(bad).exits(2);
        assert_eq!(finished.stdout(), "", "{bad}");
        assert!(!finished.stderr().is_empty(), "{bad}");
    }
}

#[test]
fn wrong_usage_has_the_status_of_bad_input() {
    let lab = Lab::new(SCENARIO);
    for arguments in
        [&["rum"][..], &["run"], &["run", "scenario.toml", "--threads", "0"], &["run", "a", "--sed", "1"]]
    {
        lab.run(arguments).exits(2);
    }
    lab.run(&["run", "no-such-file.toml"]).exits(2);
    lab.run(&["run", "."]).exits(2);
    lab.run(&["run", "scenario.toml", "--series", "no-folder/s.csv"]).exits(2);
    lab.run(&["sweep", "scenario.toml", "--check"]).exits(2);
    assert_eq!(lab.files(), ["scenario.toml"]);
}

#[test]
fn wrong_usage_is_json_too_if_asked_for() {
    let lab = Lab::new(SCENARIO);
    for arguments in
        [&["run", "--json"][..], &["run", "scenario.toml", "--sed", "1", "--json"], &["--json", "rum"]]
    {
        let finished = lab.run(arguments).exits(2);
        let told: Value = serde_json::from_str(&finished.stderr()).expect("one object");
        let diagnostic = &told["diagnostics"][0];
        assert_eq!((&diagnostic["severity"], &diagnostic["code"]), (&"error".into(), &"input::usage".into()));
        assert!(!diagnostic["message"].as_str().is_none_or(str::is_empty), "{diagnostic}");
        assert!(diagnostic["help"].as_str().is_some_and(|help| help.contains("Usage")), "{diagnostic}");
        assert_eq!(finished.stdout(), "");
    }
    let help = lab.run(&["run", "--json", "--help"]).exits(0);
    assert!(help.stdout().contains("Usage"), "help is no mistake");
}

/// A device has no length to look at, and this one no end.
#[test]
fn an_endless_scenario_is_refused() {
    let lab = Lab::new(SCENARIO);
    let stderr = lab.run(&["check", "/dev/zero"]).exits(2).stderr();
    assert!(stderr.contains("larger than 16 MiB"), "{stderr}");
    let mut child = lab.command(&["check", "/dev/stdin"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, SCENARIO.as_bytes()).expect("it reads");
    drop(stdin);
    assert_eq!(child.wait().ok().and_then(|status| status.code()), Some(0), "a pipe that ends is a scenario");
}

/// docs/design/contract.md 1: `run` ignores both tables, whatever is wrong with them; who uses them does not.
#[test]
fn a_run_is_only_warned_of_what_it_ignores() {
    for (plan, line) in [
        ("[sweep]\ngird = 3", 18),
        ("[sweep]\ngrid = 3", 18),
        ("[[claims]]\nmetric = \"links.bottleneck.drops\"\natmost = 1", 17),
        ("[[claims]]\nthat = \"x\"\nmetric = \"links.nowhere.drops\"\nat_most = 1", 19),
        ("[[claims]]\nthat = \"x\"\nmetric = 3\nat_most = 1", 19),
    ] {
        let lab = Lab::new(&format!("{SCENARIO}\n{plan}\n"));
        let place = format!("scenario.toml:{line}:");
        let finished = lab.run(&["run", "scenario.toml", "--json"]).exits(0);
        let told: Value = serde_json::from_str(&finished.stderr()).expect("one object");
        for diagnostic in told["diagnostics"].as_array().expect("a list") {
            assert_eq!(diagnostic["severity"], "warning", "{plan}");
        }
        assert_eq!(told["diagnostics"][0]["line"], line, "{plan}");
        assert_eq!(lab.run(&["run", "scenario.toml", "--quiet"]).exits(0).stderr(), "");
        for command in [&["check", "scenario.toml"][..], &["sweep", "scenario.toml", "--check"]] {
            let stderr = lab.run(command).exits(2).stderr();
            assert!(stderr.starts_with(&format!("error: {place}")), "{plan}: {stderr}");
        }
        assert_eq!(lab.files(), ["scenario.toml"]);
    }
}

/// Line and column of what asks for the memory, and what would fit.
#[test]
fn a_run_that_would_not_fit_names_the_cause_and_starts_nothing() {
    let lab = Lab::new(&SCENARIO.replace("count = 2", "count = 1000000000"));
    for command in ["run", "sweep"] {
        let stderr = lab.run(&[command, "scenario.toml"]).exits(4).stderr();
        assert!(stderr.starts_with("error: scenario.toml:14:9: this run may need "), "{stderr}");
        assert!(stderr.contains("`flows.ftp.count` is 1000000000; allowed here: about "), "{stderr}");
        let told = lab.run(&[command, "scenario.toml", "--json"]).exits(4).stderr();
        let told: Value = serde_json::from_str(&told).expect("one object");
        assert_eq!(
            (&told["diagnostics"][0]["line"], &told["diagnostics"][0]["column"]),
            (&14.into(), &9.into())
        );
    }
    assert_eq!(lab.files(), ["scenario.toml"]);
}

/// More drops than memory holds are foreseen: a source sends on, whatever is dropped of it.
#[test]
fn events_that_would_not_fit_are_refused() {
    let source = "law = { cbr = { rate = \"100 Gbit/s\" } }\nsegment = \"100 B\"\ncount";
    let lab = Lab::new(&SCENARIO.replace("law = \"xcp\"\ncount", source).replace("\"2 s\"", "\"100 s\""));
    let stderr = lab.run(&["run", "scenario.toml", "--events", "e.csv"]).exits(4).stderr();
    assert!(stderr.starts_with("error: scenario.toml:3:12: ") && stderr.contains("--events"), "{stderr}");
    assert_eq!(lab.files(), ["scenario.toml"]);
}

/// Commands that read a folder say that it does not exist, not that something in it cannot be written.
#[test]
fn a_folder_that_does_not_exist_is_named() {
    let lab = Lab::new(SCENARIO);
    for arguments in [
        &["report", "nope"][..],
        &["report", "nope", "--out", "page.html"],
        &["export", "figure", "nope"],
        &["export", "qlog", "nope"],
        &["compare", "nope", "nope"],
        &["compare", "nope", "nope", "--exact"],
        &["explain", "nope", "--flow", "ftp", "--at", "1 s"],
        &["serve", "nope"],
        &["sweep", "scenario.toml", "--merge", "nope"],
    ] {
        let told = lab.run(arguments).exits(2).stderr();
        assert!(told.contains("nope") && !told.contains("can not write"), "{arguments:?}: {told}");
        let is_named = ["there is no", "no such file", "does not exist", "is not the folder"]
            .iter()
            .any(|words| told.to_lowercase().contains(words));
        assert!(is_named, "{arguments:?}: {told}");
    }
}

/// The first mistake of a newcomer is answered by what to write.
#[test]
fn a_file_without_a_table_that_it_needs_is_shown_an_example() {
    let lab = Lab::new(SCENARIO);
    let cases = [
        (
            "[run]\nduration = \"2 s\"\nwarmup = \"1 s\"\n",
            "Write `[run]`, and below it `duration = \"20 s\"`",
        ),
        ("duration = \"2 s\"\n", "Write `duration = \"20 s\"`"),
        ("law = \"xcp\"\ncount = 2\n", "Write `law = \"cubic\"`"),
        ("path = [\"bottleneck\"]\n", "Write `path = [\"bottleneck\"]`"),
    ];
    for (part, example) in cases {
        let text = SCENARIO.replacen(part, "", 1);
        assert_ne!(text, SCENARIO, "{part}");
        std::fs::write(lab.path("part.toml"), text).expect("writable");
        for command in ["run", "check", "sweep", "demo"] {
            let told = lab.run(&[command, "part.toml"]).exits(2).stderr();
            assert!(told.contains(example), "{command}: {told}");
        }
    }
}

/// A queue that nothing can fill costs nothing.
#[test]
fn a_huge_queue_on_a_slow_link_is_run() {
    let lab = Lab::new(&SCENARIO.replace("\"xcp\"", "\"cubic\"").replacen("law = \"cubic\"\n", "", 1));
    for queue in ["1 TB", "100000000 packets"] {
        let set = format!("links.bottleneck.queue={queue}");
        lab.run(&["run", "scenario.toml", "--set", &set]).exits(0);
    }
}

/// Outputs are judged before the run: none is written if one can not be.
#[test]
fn what_can_not_be_written_is_refused_before_anything_is() {
    let lab = Lab::new(SCENARIO);
    std::fs::write(lab.path("old.csv"), "old").expect("the folder is writable");
    for out in ["scenario.toml", "scenario.toml/runs", "old.csv", "/proc/runs"] {
        for arguments in [
            &["run", "scenario.toml", "--series", "old.csv", "--events", "e.csv", "--out", out][..],
            &["sweep", "scenario.toml", "--out", out],
            &["demo", "scenario.toml", "--out", out],
        ] {
            let finished = lab.run(arguments).exits(2);
            assert!(finished.stderr().contains("can not write"), "{arguments:?}: {}", finished.stderr());
            assert_eq!(finished.stdout(), "");
        }
    }
    for series in ["/proc/s.csv", "old.csv/s.csv", "none/s.csv", "."] {
        lab.run(&["run", "scenario.toml", "--events", "old.csv", "--series", series]).exits(2);
    }
    assert_eq!(std::fs::read_to_string(lab.path("old.csv")).ok().as_deref(), Some("old"));
    assert_eq!(std::fs::read_to_string(lab.path("scenario.toml")).ok().as_deref(), Some(SCENARIO));
    assert_eq!(lab.files(), ["old.csv", "scenario.toml"]);
}

#[test]
fn one_file_can_not_be_two_outputs_or_the_scenario() {
    let lab = Lab::new(SCENARIO);
    std::fs::create_dir(lab.path("folder")).expect("the folder is writable");
    std::os::unix::fs::symlink("same.csv", lab.path("link.csv")).expect("the folder is writable");
    let events = ["same.csv", "./same.csv", "folder/../same.csv"];
    for events in events.into_iter().chain(["scenario.toml", "folder/../scenario.toml"]) {
        let finished =
            lab.run(&["run", "scenario.toml", "--series", "same.csv", "--events", events]).exits(2);
        assert!(finished.stderr().contains("same file"), "{}", finished.stderr());
    }
    assert_eq!(lab.files(), ["folder", "link.csv", "scenario.toml"]);
    std::fs::write(lab.path("same.csv"), "").expect("the folder is writable");
    lab.run(&["run", "scenario.toml", "--series", "link.csv", "--events", "same.csv"]).exits(2);
    lab.run(&["run", "scenario.toml", "--series", "/dev/null", "--events", "/dev/null"]).exits(0);
    assert_eq!(std::fs::read_to_string(lab.path("scenario.toml")).ok().as_deref(), Some(SCENARIO));
}

#[test]
fn a_full_disk_is_a_failure_and_not_a_panic() {
    let lab = Lab::new(SCENARIO);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
    let output = lab.command(&["run", "scenario.toml"]).stdout(full).stderr(Stdio::piped()).output();
    let finished = crate::Finished(output.expect("the binary runs")).exits(1);
    assert!(finished.stderr().contains("can not write the standard output"), "{}", finished.stderr());
    let finished = lab.run(&["run", "scenario.toml", "--series", "/dev/full"]).exits(1);
    assert!(finished.stderr().contains("/dev/full"), "{}", finished.stderr());
}

#[test]
fn a_reader_who_has_enough_is_no_failure() {
    let lab = Lab::new(SCENARIO);
    for arguments in [
        &["export", "schema"][..],
        &["export", "man"],
        &["export", "completions", "bash"],
        &["run", "scenario.toml", "--json"],
    ] {
        let mut child =
            lab.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn check_judges_every_point_and_writes_the_defaults_out() {
    let sweep = "\n[sweep]\ngrid = { \"links.bottleneck.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"] }\n";
    let lab = Lab::new(&format!("{SCENARIO}{sweep}"));
    let text = lab.run(&["check", "scenario.toml"]).exits(0).stdout();
    assert!(text.starts_with("scenario.toml: valid, sweep of 2 points"), "{text}");
    let json = lab.run(&["check", "scenario.toml", "--json"]).exits(0).json();
    assert_eq!((&json["valid"], &json["points"]), (&true.into(), &2.into()));

    let normalised = lab.run(&["check", "scenario.toml", "--print"]).exits(0).stdout();
    assert!(normalised.contains("initial_window"), "{normalised}");
    std::fs::write(lab.path("normalised.toml"), &normalised).expect("the folder is writable");
    let again = lab.run(&["check", "normalised.toml", "--print"]).exits(0).stdout();
    assert_eq!(again, normalised);
    let fingerprint = |file| lab.run(&["run", file, "--json"]).exits(0).json()["fingerprint"].clone();
    assert_eq!(fingerprint("normalised.toml"), fingerprint("scenario.toml"));

    let lab = Lab::new(&format!("{SCENARIO}{}", sweep.replace("2 Mbit/s", "0 Mbit/s")));
    let stderr = lab.run(&["check", "scenario.toml"]).exits(2).stderr();
    assert!(stderr.contains("scenario.toml:18:"), "{stderr}");
    lab.run(&["run", "scenario.toml"]).exits(0);
}

#[test]
fn the_schema_is_json_and_the_version_says_what_was_built() {
    let lab = Lab::new(SCENARIO);
    let schema = lab.run(&["export", "schema"]).exits(0).json();
    assert!(schema["$schema"].as_str().is_some_and(|id| id.contains("json-schema.org")));
    let version = lab.run(&["--version"]).exits(0).stdout();
    for part in ["congestlab 0.", "commit ", "code ", "results schema 1"] {
        assert!(version.contains(part), "{version}");
    }
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let lab = Lab::new(SCENARIO);
    for shell in ["bash", "zsh", "fish"] {
        let text = lab.run(&["export", "completions", shell]).exits(0).stdout();
        assert!(text.contains("sweep") && text.contains("--verify") | text.contains("-l verify"), "{shell}");
    }
    assert!(lab.run(&["export", "man"]).exits(0).stdout().contains("Exit status"));
    lab.run(&["export", "man", "--out", "man1"]).exits(0);
    for page in
        ["congestlab.1", "congestlab-run.1", "congestlab-sweep.1", "congestlab-check.1", "congestlab-demo.1"]
    {
        assert!(lab.path("man1").join(page).is_file(), "{page} is missing");
    }
}

/// Whatever reads a scenario says the same of it: what a point of the sweep may surprise with, once.
#[test]
fn every_command_gives_the_warnings_of_a_run() {
    let unstable = SCENARIO.replacen("law = \"xcp\"", "law = { xcp = { alpha = 0.9 } }", 1);
    let lab = Lab::new(&format!("{unstable}\n[sweep]\ngrid = {{ \"run.seed\" = [1, 2, 3] }}\n"));
    let of_run = lab.run(&["run", "scenario.toml"]).exits(0).stderr();
    assert!(of_run.starts_with("warning: scenario.toml:") && of_run.contains("unstable"), "{of_run}");
    let warnings = |arguments: &[&str]| -> Vec<String> {
        let stderr = lab.run(arguments).exits(0).stderr();
        stderr.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
    };
    for arguments in [
        &["check", "scenario.toml"][..],
        &["sweep", "scenario.toml", "--out", "kept"],
        &["explain", "scenario.toml", "--flow", "ftp[0]", "--at", "1 s"],
        &["demo", "scenario.toml", "--out", "pictures"],
    ] {
        assert_eq!(warnings(arguments), [of_run.trim_end()], "{arguments:?}");
    }

    let grid = "grid = { \"links.bottleneck.law.xcp.alpha\" = [0.4, 0.9], \"run.seed\" = [1, 2, 3] }";
    std::fs::write(lab.path("scenario.toml"), format!("{SCENARIO}\n[sweep]\n{grid}\n")).expect("writable");
    assert_eq!(lab.run(&["run", "scenario.toml"]).exits(0).stderr(), "");
    for arguments in [&["check", "scenario.toml"][..], &["sweep", "scenario.toml", "--out", "kept"]] {
        let told = warnings(arguments);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("warning: scenario.toml:18:51: ") && told[0].contains("unstable"),
            "{told:?}"
        );
    }
    let json = lab.run(&["check", "scenario.toml", "--json"]).exits(0).json();
    assert_eq!(json["warnings"].as_array().map(Vec::len), Some(1), "{json}");
}

/// Numbers are numbers and texts are texts, each quoted once.
#[test]
fn the_settings_of_a_sweep_have_their_types() {
    let grid = "\"links.bottleneck.rate\" = [\"5 Mbit/s\"], \"flows.ftp.count\" = [3], \"flows.ftp.law\" = [\"cubic\"]";
    let lab = Lab::new(&format!("{SCENARIO}\n[sweep]\ngrid = {{ {grid} }}\n"));
    let json = lab.run(&["sweep", "scenario.toml", "--out", "kept", "--json"]).exits(0).json();
    let expected = serde_json::json!({
        "links.bottleneck.rate": "5 Mbit/s", "flows.ftp.count": 3, "flows.ftp.law": "cubic",
    });
    assert_eq!(json["points"][0]["settings"], expected);
    let table = congestlab_scenario::table::Table::open(&lab.path("kept")).expect("a table");
    let first = |column: &str| table.texts(column).expect(column)[0].clone();
    assert_eq!(first("flows.ftp.law").as_deref(), Some("cubic"));
    assert_eq!(table.numbers("flows.ftp.count").expect("a column")[0], Some(3.0));
    assert_eq!(table.numbers("links.bottleneck.rate_bps").expect("a column")[0], Some(5e6));
    assert_eq!(first("run").as_deref(), json["points"][0]["run"].as_str());
    assert!(first("run").is_some_and(|run| run.starts_with("scenario-1-")));
}

/// Nothing that stands in a file or an argument moves the cursor, or fills the screen.
#[test]
fn what_is_echoed_is_printable_and_short() {
    let long = "k".repeat(10 << 20);
    let lab = Lab::new(&format!("{SCENARIO}\"\\u001b[2J\\u009b\\u202e{long}\" = 1\n"));
    let shown = |finished: Finished| {
        let text = finished.stdout() + &finished.stderr();
        let hidden = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(hidden), "{text:?}");
        assert!(text.len() < 20_000, "{} bytes", text.len());
        text
    };
    let text = shown(lab.run(&["run", "scenario.toml"]).exits(2));
    assert!(
        text.starts_with("error: scenario.toml:16:1: unknown key `\\u{1b}[2J\\u{9b}\\u{202e}kkk"),
        "{text}"
    );
    assert!(text.contains("kkk` in `flows.ftp`"), "{text}");
    shown(lab.run(&["run", "scenario.toml", "--json"]).exits(2));
    for arguments in [
        &["run", "\u{1b}[2J\u{9b}.toml"][..],
        &["run", "scenario.toml", "--set", "\u{1b}[2J=1"],
        &["compare", "\u{1b}[2J", "\u{1b}[2J", "--exact"],
        &["papers", "run", "\u{1b}[2J"],
    ] {
        let text = shown(lab.run(arguments).exits(2));
        assert!(text.contains("\\u{1b}[2J"), "{text}");
    }

    // Clap leaves ESC out by itself where it writes without colours.
    shown(lab.run(&["\u{1b}[2J\u{9b}"]).exits(2));

    // A name that no terminal shows as it is, and one that is as long as a book.
    let name = format!("\u{202e}{}", &long[..200_000]);
    let named = SCENARIO.replace("[links.bottleneck]", &format!("[links.\"{name}\"]"));
    let lab = Lab::new(&named.replace("\"bottleneck\"", &format!("\"{name}\"")));
    let text = shown(lab.run(&["run", "scenario.toml"]).exits(0));
    assert!(text.contains("\\u{202e}kkk") && text.contains('…'), "{text}");
    shown(lab.run(&["check", "scenario.toml"]).exits(0));
}

/// Names of version 0.1 do what they did, and say the new ones on stderr alone.
#[test]
fn old_names_work_and_name_the_new_ones() {
    let lab = Lab::new(SCENARIO);
    let run = |seed: &str| -> String {
        let out =
            lab.run(&["run", "scenario.toml", "--seed", seed, "--out", "runs", "--json"]).exits(0).json();
        out["folder"].as_str().expect("a folder").to_owned()
    };
    let (one, other) = (run("1"), run("2"));
    for (old, new) in [
        (&["schema"][..], &["export", "schema"][..]),
        (&["man"], &["export", "man"]),
        (&["completions", "fish"], &["export", "completions", "fish"]),
        (&["wireshark", "print"], &["export", "wireshark", "print"]),
        (&["plot", &one, "-o", "a.svg"], &["export", "figure", &one, "-o", "a.svg"]),
        (&["diff", &one, &one, "--check"], &["compare", &one, &one, "--exact"]),
    ] {
        let (before, after) = (lab.run(old).exits(0), lab.run(new).exits(0));
        assert_eq!(before.stdout(), after.stdout(), "{old:?}");
        assert!(!after.stderr().contains("version 0.3"), "{new:?}: {}", after.stderr());
        let told = before.stderr();
        assert!(told.contains(&format!("`congestlab {}", new[0])) && told.contains("version 0.3"), "{told}");
    }
    lab.run(&["diff", &one, &other]).exits(0);
    lab.run(&["diff", &one, &other, "--check"]).exits(3);
    lab.run(&["compare", &one, &other, "--exact"]).exits(3);
    let told = lab.run(&["schema", "--json"]).exits(0).stderr();
    let told: Value = serde_json::from_str(told.trim()).expect("one object");
    assert_eq!(told["diagnostics"][0]["code"], "input::renamed");
    assert_eq!(lab.run(&["schema", "--quiet"]).exits(0).stderr(), "");
    assert!(!lab.run(&["--help"]).exits(0).stdout().contains("diff"));
}
