//! `congestlab compare RUN FILE`: a run held against what iperf3, ss and flent recorded.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{Finished, Lab, repository};

/// A lab with a run of two CUBIC flows in the folder `run`, and the recordings of the same.
fn lab() -> Lab {
    let scenario = fs::read_to_string(recorded("two.toml")).expect("a file of the repository");
    let lab = Lab::new(&scenario);
    lab.run(&["run", "scenario.toml", "--out", "new", "--quiet"]).exits(0);
    let folder = fs::read_dir(lab.path("new")).expect("a folder").flatten().next().expect("a run").path();
    fs::rename(folder, lab.path("run")).expect("below the lab");
    for (name, short) in [("iperf3.json", "i.json"), ("ss.txt", "ss.txt"), ("tcp_nup.flent.gz", "f.flent.gz")]
    {
        fs::copy(recorded(name), lab.path(short)).expect("writable");
    }
    lab
}

fn recorded(name: &str) -> PathBuf {
    repository("scenarios/measured").join(name)
}

fn rows(finished: &Finished) -> Vec<Value> {
    finished.json()["rows"].as_array().expect("rows").clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Shares of two CUBIC flows are chance, so all shares agree here.
const LENIENT: [&str; 2] = ["--tolerance", "goodput=2"];

#[test]
fn each_recorder_gives_a_table_of_what_both_know() {
    let lab = lab();
    for (file, last) in
        [("i.json", "retransmits"), ("ss.txt", "retransmits"), ("f.flent.gz", "retransmits_total")]
    {
        let there = lab.run(&[&["compare", "run", file, "--json"][..], &LENIENT].concat()).exits(0);
        let all = rows(&there);
        let metrics: Vec<_> =
            all.iter().map(|row| row["metric"].as_str().expect("a text").to_owned()).collect();
        let keys = ["payload_bps", "rtt_mean_ms", "cwnd_mean_packets", last];
        let expected: Vec<String> =
            keys.iter().flat_map(|key| (0..2).map(move |flow| format!("flows.up[{flow}].{key}"))).collect();
        assert_eq!(metrics, [&expected[..], &["convergence_s".to_owned()]].concat(), "{file}");
        let summary: Value =
            serde_json::from_slice(&fs::read(lab.path("run/summary.json")).expect("a file")).expect("JSON");
        for (row, key) in all[..8].iter().zip(keys.iter().flat_map(|key| [key, key])) {
            let index = usize::from(row["metric"].as_str().is_some_and(|metric| metric.contains("[1]")));
            assert_eq!(row["one"], json!(number(&summary["flows"]["up"][index][key])), "{row}");
            assert!(number(&row["other"]) > 0.0, "{row}");
        }
        // Half of the link each, of which headers take their part, and a queue that is never empty for long.
        let together: f64 = all[..2].iter().map(|row| number(&row["other"])).sum();
        assert!((9e6..9.7e6).contains(&together), "{file}: {together}");
        assert!(all[2..4].iter().all(|row| (80.0..102.0).contains(&number(&row["other"]))), "{file}");

        // The order changes no verdict.
        let back = rows(&lab.run(&[&["compare", file, "run", "--json"][..], &LENIENT].concat()).exits(0));
        for (there, back) in all.iter().zip(&back) {
            assert_eq!((&there["one"], &there["other"]), (&back["other"], &back["one"]));
            assert_eq!((&there["difference"], &there["holds"]), (&back["difference"], &back["holds"]));
        }
    }
}

#[test]
fn the_table_says_what_was_held_against_what_and_the_picture_shows_both() {
    let lab = lab();
    let finished =
        lab.run(&["compare", "run", "ss.txt", "--plot", "two", "--tolerance", "goodput=0.001"]).exits(3);
    let said = finished.stdout();
    for part in ["measured   ss.txt, ss", "simulated  run, simulated, seed 1", "up[1] and 100.64.0.2:", " NO"]
    {
        assert!(said.contains(part), "no {part} in\n{said}");
    }
    assert!(finished.stderr().contains("left out: 1 connection"), "{}", finished.stderr());
    let svg = fs::read_to_string(lab.path("two.svg")).expect("drawn");
    let place =
        |name: &str| svg.find(&format!("data-name=\"{name}\"")).unwrap_or_else(|| panic!("no {name}"));
    for flow in ["up[0]", "up[1]"] {
        assert!(place(&format!("{flow}, measured")) < place(&format!("{flow}, simulated")));
    }
    assert!(svg.contains("bottleneck, simulated") && !svg.contains("bottleneck, measured"));
    assert_eq!(&fs::read(lab.path("two.png")).expect("drawn")[..8], b"\x89PNG\r\n\x1a\n");
}

#[test]
fn flows_are_paired_as_told_and_recordings_add_up() {
    let lab = lab();
    let compare =
        |more: &[&str]| lab.run(&[&["compare", "run", "f.flent.gz", "--json"][..], &LENIENT, more].concat());
    let straight = rows(&compare(&[]).exits(0));
    let crossed = compare(&["--pair", "up[0]=1", "--pair", "up[1]=TCP upload::1"]).exits(0);
    assert_eq!(
        crossed.json()["runs"][1]["pairs"][1],
        json!({ "flow": "up[1]", "measured": "TCP upload::1" })
    );
    let crossed = rows(&crossed);
    for (one, other) in [(0, 1), (1, 0), (4, 5), (5, 4)] {
        assert_eq!(straight[one]["other"], crossed[other]["other"]);
    }
    // Alone: convergence is that of all.
    let alone = rows(&compare(&["--pair", "up[1]=0"]).exits(0));
    assert_eq!(alone.len(), 4);
    // Two flows each, of two recordings: four, of which two are named.
    let both = compare(&["--with", "f.flent.gz", "--pair", "up[0]=0", "--pair", "up[1]=2"]).exits(0);
    assert_eq!(rows(&both)[0]["other"], rows(&both)[1]["other"]);
    // Later by a second: what is measured in the warm-up then counts.
    let late = rows(&compare(&["--at", "1"]).exits(0));
    assert_ne!(late[0]["other"], straight[0]["other"]);
    let never = compare(&["--at", "9"]).exits(3);
    assert!(never.json()["warnings"][1].as_str().is_some_and(|text| text.contains("is measured for 0.0 s")));
    for (more, says) in [
        (&["--pair", "up[2]=0"][..], "the run has no flow up[2]; there are: up[0], up[1]"),
        (&["--pair", "up[0]=2"], "no measured flow is 2; there are: 0 (TCP upload::1), 1 (TCP upload::2)"),
        (&["--pair", "up[0]=0", "--pair", "up[1]=0"], "is paired twice"),
        (
            &["--with", "f.flent.gz"],
            "the run has 2 flows (up[0], up[1]), measured are 4 flows (0 (TCP upload::1), 1",
        ),
        (
            &["--with", "f.flent.gz", "--pair", "up[0]=TCP upload::1"],
            "several measured flows are called TCP upload::1",
        ),
        (
            &["--tolerance", "queue=3"],
            "queue is not compared between a run and a measurement; allowed: goodput, rtt, cwnd",
        ),
        (&["--with", "run"], "run: can not be read: it is a folder"),
        (&["--at", "nan"], "`nan` is no time"),
    ] {
        let arguments = [&["compare", "run", "f.flent.gz"][..], more].concat();
        let finished = lab.run(&arguments).exits(2);
        assert!(finished.stderr().contains(says), "no {says} in {}", finished.stderr());
        assert_eq!(finished.stdout(), "");
    }
}

#[test]
fn what_is_no_recording_or_no_run_is_refused() {
    let lab = lab();
    // The same outputs on a clock of thousandths: since 1970, and since the first.
    let text = fs::read_to_string(recorded("ss.txt")).expect("a text");
    let clock = |since: f64| -> String {
        let line = |line: &str| match line.parse::<f64>() {
            Ok(at) => format!("{:.0}\n", (at - since) * 1e3),
            Err(_) => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    };
    let first: f64 = text.lines().next().and_then(|line| line.parse().ok()).expect("a time");
    fs::write(lab.path("millis.txt"), clock(0.0)).expect("writable");
    fs::write(lab.path("relative.txt"), clock(first)).expect("writable");
    // Thousandths that are shorter than two runs: 12 ms, for 1.2 s.
    let points: Vec<_> = (0..100).map(|number| serde_json::json!({ "t": 12 * number, "val": 1.5 })).collect();
    let flent = serde_json::json!({ "version": 4, "metadata": {}, "raw_values": { "TCP upload": points } });
    fs::write(lab.path("sparse.flent"), flent.to_string()).expect("writable");
    fs::write(lab.path("nan.json"), "{\"start\": {},\n \"intervals\": [NaN]}").expect("writable");
    fs::write(lab.path("escape.txt"), "10\n\u{1b}[2J bytes\nx\u{202e}y\n").expect("writable");
    fs::File::create(lab.path("huge.json")).and_then(|file| file.set_len(40 << 20)).expect("sparse");
    for (arguments, says) in [
        (&["run", "nan.json"][..], "nan.json, line 2, column 16: it is no JSON: expected value"),
        (&["run", "escape.txt"], "escape.txt, line 2: `\\u{1b}[2J bytes` is neither a time nor a connection"),
        (&["run", "millis.txt"], "is no time in seconds; allowed: seconds, as `date +%s.%N` prints them"),
        (&["run", "relative.txt"], " s, and the run has 8.0 s; times are seconds, and not thousandths"),
        (&["run", "sparse.flent"], "the shortest interval has 12 s, and the run has 8.0 s"),
        (&["run", "huge.json"], "huge.json: can not be read: it is larger than 32 MiB"),
        (&["run", "none.json"], "there is no folder none.json"),
        (&["i.json", "ss.txt"], "i.json and ss.txt are both files; name the folder of a run and one file"),
        (&["run", "run", "--at", "1"], "--at is about a measurement, and both are runs"),
        (
            &["run", "run", "--tolerance", "cwnd=1"],
            "cwnd is not compared between two runs; allowed: goodput, completion, rtt",
        ),
    ] {
        let finished = lab.run(&[&["compare"], arguments].concat()).exits(2);
        assert!(finished.stderr().contains(says), "no {says} in {}", finished.stderr());
        assert_eq!(finished.stdout(), "");
    }
}

/// What a scenario allows between it and real TCP is allowed here, too.
#[test]
fn a_tolerance_of_the_scenario_is_for_measurements_as_for_live_runs() {
    let scenario = fs::read_to_string(recorded("two.toml")).expect("a file of the repository");
    let told = "[[tolerances]]\nof = \"goodput\"\nat_most = 1.5\nbecause = \"it is chance\"\n\
                [[tolerances]]\nof = \"queue\"\nat_most = 100.0\nbecause = \"nobody measured it\"\n";
    let lab = Lab::new(&format!("{scenario}{told}"));
    lab.run(&["run", "scenario.toml", "--out", "new", "--quiet"]).exits(0);
    let run = format!(
        "new/{}",
        fs::read_dir(lab.path("new"))
            .expect("a folder")
            .flatten()
            .next()
            .expect("a run")
            .file_name()
            .to_string_lossy()
    );
    fs::copy(recorded("iperf3.json"), lab.path("i.json")).expect("writable");
    let said = lab.run(&["compare", &run, "i.json"]).exits(0).stdout();
    assert!(
        said.contains("allowed   goodput: 1.5, because it is chance\n") && !said.contains("queue"),
        "{said}"
    );
}

/// iperf3 and ss record a flow behind an emulated link, in namespaces of their own.
#[cfg(feature = "linux")]
#[test]
fn a_recording_of_today_is_read() {
    use std::process::{Command, Stdio};

    let test = "a_recording_of_today_is_read";
    let has = |tool: &str| {
        let found =
            Command::new("sh").args(["-c", &format!("command -v {tool}")]).stdout(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    if !rustix::process::geteuid().is_root() {
        return println!("SKIP {test}: not root");
    }
    if let Some(tool) = ["iperf3", "ss", "unshare", "ip"].into_iter().find(|tool| !has(tool)) {
        return println!("SKIP {test}: there is no {tool}");
    }
    let scenario = fs::read_to_string(recorded("two.toml")).expect("a file of the repository");
    let lab = Lab::new(
        &scenario
            .replace("count = 2", "count = 1")
            .replace("\"8 s\"", "\"4 s\"")
            .replace("\"2 s\"", "\"1 s\""),
    );
    lab.run(&["run", "scenario.toml", "--out", "new", "--quiet"]).exits(0);
    let folder = fs::read_dir(lab.path("new")).expect("a folder").flatten().next().expect("a run").path();
    fs::rename(folder, lab.path("run")).expect("below the lab");
    let inside = "(for i in 1 2 3 4 5 6 7 8 9 10; do date +%s.%N; ss -tin dst $CONGESTLAB_BASE; sleep 0.5; done > ss.txt) & \
                  sleep 0.3; iperf3 -c $CONGESTLAB_BASE -C reno -t 4 -i 0.5 -J --get-server-output > i.json; wait";
    // Names of namespaces are those of the machine, unless the folder is another.
    let outside = "mount -t tmpfs tmpfs /run && ip link set lo up || exit; iperf3 -s -J > server.json & \
                   until ss -tln | grep -q :5201; do sleep 0.1; done; \
                   \"$0\" link --quiet --rate '10 Mbit/s' --delay '20 ms' --queue '50 packets' -- sh -c \"$1\"";
    let recorded = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", outside])
        .args([env!("CARGO_BIN_EXE_congestlab"), inside])
        .current_dir(lab.path(""))
        .output()
        .expect("unshare runs");
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let read = |name: &str| fs::read(lab.path(name)).expect("a recording");
    let file: Value = serde_json::from_slice(&read("i.json")).expect("JSON");
    assert!(file["server_output_json"].is_object(), "{file}");
    for name in ["i.json", "ss.txt"] {
        let arguments = ["compare", "run", name, "--json", "--tolerance", "goodput=2"];
        let all = rows(&lab.run(&arguments).exits(0));
        let value = |key: &str| {
            let row = all.iter().find(|row| row["metric"] == format!("flows.up[0].{key}"));
            number(&row.unwrap_or_else(|| panic!("no {key} in {all:?}"))["other"])
        };
        // Neither more than the link carries, nor less delay than it has.
        assert!(value("payload_bps") > 0.0 && value("payload_bps") <= 1.05e7, "{all:?}");
        assert!(value("rtt_mean_ms") >= 40.0 && value("cwnd_mean_packets") >= 1.0, "{all:?}");
        assert!(value("retransmits") >= 0.0);
    }
}
