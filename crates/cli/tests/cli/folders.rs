//! What works on the folder of a run: `explain` and `diff`, and a disk that fills up before there is one.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use congestlab_scenario::disk;

use crate::{Finished, Lab, SCENARIO};

/// A run in `runs/`, and where it is.
fn run(lab: &Lab, more: &[&str]) -> String {
    let before = folders(lab);
    lab.run(&[&["run", "scenario.toml", "--out", "runs", "--quiet"][..], more].concat()).exits(0);
    let mut new = folders(lab);
    new.retain(|folder| !before.contains(folder));
    assert_eq!(new.len(), 1, "each run has a folder of its own");
    new.remove(0).strip_prefix(lab.path("")).expect("below the lab").display().to_string()
}

fn folders(lab: &Lab) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.path("runs")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn an_explanation_says_what_the_link_computed_and_what_the_sender_did() {
    let lab = Lab::new(SCENARIO);
    let folder = run(&lab, &[]);
    let text = lab.run(&["explain", &folder, "--flow", "ftp[1]", "--at", "1.08s"]).exits(0).stdout();
    for part in
        ["ftp[1]", "LINK bottleneck", "K02 eq. 1", "K02 eq. 2", "K02 eqs. 3-6", "Reverse_Feedback", "cwnd:"]
    {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains('\u{1b}'), "colours without a terminal");

    let ask = |run: &str, flow: &str, at: &str| {
        lab.run(&["explain", run, "--flow", flow, "--at", at, "--json"]).exits(0).json()
    };
    let json = ask(&folder, "ftp[1]", "1.08s");
    assert_eq!(json["hops"][0]["link"], "bottleneck");
    let feedback = &json["hops"][0]["feedback"];
    let number = |key: &str| feedback[key].as_f64().unwrap_or_else(|| panic!("no {key} in {feedback}"));
    assert!((number("grant_Bps") - number("cut_Bps") - number("offer_Bps")).abs() < 1e-6);
    assert_eq!(feedback["given_Bps"], json["ack"]["feedback_Bps"]);
    assert_eq!(json, ask(&folder, "ftp/1", "1080 ms"));
    assert_eq!(json, ask("scenario.toml", "ftp[1]", "1.08 s"));
}

#[test]
fn a_question_without_an_answer_says_what_can_be_asked() {
    let lab = Lab::new(SCENARIO);
    let folder = run(&lab, &[]);
    for (flow, at, link, says) in [
        ("fpt[0]", "1 s", None, "did you mean `ftp`?"),
        ("ftp", "1 s", None, "ftp[0] to ftp[1]"),
        ("ftp[2]", "1 s", None, "ftp[0] to ftp[1]"),
        ("ftp[0]", "3 s", None, "the run ends at 2 s"),
        ("ftp[0]", "1", None, "has no unit"),
        ("ftp[0]", "soon", None, "soon"),
        ("ftp[0]", "1 s", Some("middle"), "its data passes bottleneck"),
    ] {
        let mut arguments = vec!["explain", &folder, "--flow", flow, "--at", at];
        arguments.extend(link.iter().flat_map(|link| ["--link", link]));
        let finished = lab.run(&arguments).exits(2);
        assert!(finished.stderr().contains(says), "{}", finished.stderr());
        assert_eq!(finished.stdout(), "");
    }
    lab.run(&["explain", &folder, "--at", "1 s"]).exits(2);
}

#[test]
fn what_is_no_complete_run_of_this_schema_is_refused() {
    let lab = Lab::new(SCENARIO);
    let folder = run(&lab, &[]);
    let refused = |folder: &str, says: &str| {
        for arguments in [
            &["explain", folder, "--flow", "ftp[0]", "--at", "1 s"][..],
            &["compare", folder, folder, "--exact"],
            &["compare", folder, folder, "--json", "--exact"],
        ] {
            let finished = lab.run(arguments).exits(2);
            assert!(finished.stderr().contains(says), "{}", finished.stderr());
            assert_eq!(finished.stdout(), "");
        }
    };
    refused("nowhere", "there is no folder nowhere");
    refused("runs", "is not the folder of a run");
    let summary = lab.path(&folder).join("summary.json");
    let text = fs::read_to_string(&summary).expect("it was written");
    for (from, to, says) in [
        ("\"schema\": 1", "\"schema\": 2", "results schema 2"),
        ("\"complete\": true", "\"complete\": false", "incomplete"),
        ("\"seed\": 1,", "\"seed\": 1", "summary.json is damaged"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&summary, text.replace(from, to)).expect("writable");
        refused(&folder, says);
    }
    fs::write(&summary, text).expect("writable");
    let events = lab.path(&folder).join("events.parquet");
    fs::write(&events, "PAR1").expect("writable");
    refused(&folder, "events.parquet is damaged");
    fs::remove_file(events).expect("it is there");
    refused(&folder, "incomplete: it has no events.parquet");
}

/// Who damages a table on purpose makes its hash right again, and the decoder trusts what it reads.
/// Sets a byte of the header of the table's first dictionary, and makes the hash in `names` right again.
fn damage(lab: &Lab, table: &str, names: &str, place: usize, byte: u8) {
    forge(lab, table, names, |mut bytes| {
        // A page begins with its type and two sizes; a dictionary is 2, and states how many values it has.
        let is_dictionary = |header: &[u8]| matches!(header, [0x15, 4, 0x15, _, 0x15, _, 0x4c, 0x15]);
        let at = bytes.windows(8).position(is_dictionary).expect("texts have one");
        bytes[at + place] = byte;
        bytes
    });
}

/// An index of the dictionary is left out, and missed when it is wanted: the library panics.
const PANICS: (usize, u8, &str) = (1, 2, "it can not be decoded");
/// The library takes memory for as many as are stated, which may be gigabytes.
const BOMB: (usize, u8, &str) = (8, 0x7e, "a dictionary states more values than it has");

#[test]
fn a_table_that_only_malice_makes_is_refused_by_its_name() {
    for (place, byte, reason) in [PANICS, BOMB] {
        let lab = Lab::new(SCENARIO);
        let folder = run(&lab, &[]);
        damage(&lab, &format!("{folder}/events.parquet"), &format!("{folder}/summary.json"), place, byte);
        for arguments in [&["report", &folder][..], &["report", &folder, "--json"]] {
            let finished = lab.run(arguments).exits(2);
            let stderr = finished.stderr();
            assert!(stderr.contains("events.parquet is damaged: ") && stderr.contains(reason), "{stderr}");
            assert_eq!((stderr.lines().count(), finished.stdout().as_str()), (1, ""), "{stderr}");
        }
        let grid = ["--grid", "links.bottleneck.rate=10 Mbit/s,20 Mbit/s"];
        lab.run(&[&["sweep", "scenario.toml", "--out", "kept", "--quiet"][..], &grid].concat()).exits(0);
        damage(&lab, "kept/results.parquet", "kept/sweep.json", place, byte);
        let finished = lab.run(&["export", "figure", "kept", "-o", "a.svg"]).exits(2);
        let stderr = finished.stderr();
        assert!(stderr.contains("results.parquet is damaged: ") && stderr.contains(reason), "{stderr}");
    }
}

/// Makes the hash in `names` right again after `change`.
fn forge(lab: &Lab, table: &str, names: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let (table, names) = (lab.path(table), lab.path(names));
    let before = disk::hash_file(&table).expect("it was written");
    let bytes = change(fs::read(&table).expect("it was written"));
    fs::write(&table, bytes).expect("writable");
    let text = fs::read_to_string(&names).expect("it was written");
    let after = disk::hash_file(&table).expect("it is there");
    fs::write(&names, text.replace(&before, &after)).expect("writable");
}

/// The library takes memory for as many groups of rows as the footer states: 200 GB.
#[test]
fn a_footer_that_states_more_than_it_has_is_refused() {
    let footer = [0x15, 2, 0x19, 0x1c, 0x48, 1, b'a', 0, 0x16, 0, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0];
    let hostile = [b"PAR1".as_slice(), &footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat();
    let lab = Lab::new(SCENARIO);
    let folder = run(&lab, &[]);
    forge(&lab, &format!("{folder}/events.parquet"), &format!("{folder}/summary.json"), |_| hostile.clone());
    let grid = ["--grid", "links.bottleneck.rate=10 Mbit/s,20 Mbit/s"];
    lab.run(&[&["sweep", "scenario.toml", "--out", "kept", "--quiet"][..], &grid].concat()).exits(0);
    forge(&lab, "kept/results.parquet", "kept/sweep.json", |_| hostile.clone());
    for arguments in [&["report", &folder][..], &["report", "kept"], &["export", "figure", "kept"]] {
        let stderr = lab.run(arguments).exits(2).stderr();
        assert!(stderr.contains(".parquet is damaged: ") && stderr.contains("more than it has"), "{stderr}");
    }
}

/// What a sweep kept is drawn as it was run: its scenario says which figure, and which files.
#[test]
fn a_kept_scenario_that_was_changed_is_refused() {
    let lab = Lab::new(SCENARIO);
    let grid = ["--grid", "links.bottleneck.rate=10 Mbit/s,20 Mbit/s"];
    lab.run(&[&["sweep", "scenario.toml", "--out", "kept", "--quiet"][..], &grid].concat()).exits(0);
    let refused = |says: &str| {
        for arguments in [&["report", "kept"][..], &["export", "figure", "kept"]] {
            let stderr = lab.run(arguments).exits(2).stderr();
            assert!(stderr.contains(says), "{stderr}");
        }
    };
    let [scenario, names] = ["kept/scenario.toml", "kept/sweep.json"].map(|name| lab.path(name));
    let [own, named] = [&scenario, &names].map(|path| fs::read_to_string(path).expect("it was written"));
    fs::write(&scenario, own.replace("20 Mbit/s", "30 Mbit/s")).expect("writable");
    refused("scenario.toml is damaged: it is not the file that sweep.json names");
    fs::remove_file(&scenario).expect("it is there");
    refused("scenario.toml is damaged: ");
    fs::write(&scenario, own).expect("writable");
    fs::write(&names, named.replace("\"scenario.toml\"", "\"../scenario.toml\"")).expect("writable");
    refused("sweep.json is damaged: it does not name scenario.toml");
    let outside = named.replace("\"files\": {", "\"files\": {\n    \"../scenario.toml\": \"\",");
    fs::write(&names, outside).expect("writable");
    refused("sweep.json is damaged: it names \"../scenario.toml\", which is not in the folder");
}

#[test]
fn equal_runs_have_no_differences() {
    let lab = Lab::new(SCENARIO);
    let one = run(&lab, &[]);
    lab.run(&["run", "scenario.toml", "--out", "again", "--quiet", "--threads", "2"]).exits(0);
    let other = one.replace("runs/", "again/");
    let text = lab.run(&["compare", &one, &other, "--exact"]).exits(0).stdout();
    assert!(text.contains("are equal"), "{text}");
    let json = lab.run(&["compare", &one, &other, "--json", "--exact"]).exits(0).json();
    assert_eq!(json["equal"], true);
    assert!(json["first_event"].is_null() && json["first_packet"].is_null());
}

#[test]
fn runs_differ_in_configuration_metrics_and_from_a_packet_on() {
    let lab = Lab::new(SCENARIO);
    let one = run(&lab, &[]);
    let other = run(&lab, &["--set", "links.bottleneck.rate=\"8 Mbit/s\""]);
    let json = lab.run(&["compare", &one, &other, "--json", "--exact"]).exits(3).json();
    assert_eq!(json["equal"], false);
    let setting = &json["configuration"][0];
    assert_eq!(setting["path"], "links.bottleneck.rate");
    assert_eq!((&setting["one"], &setting["other"]), (&"10 Mbit/s".into(), &"8 Mbit/s".into()));
    let metrics = json["metrics"].as_array().expect("a list");
    let capacity = metrics.iter().find(|metric| metric["path"] == "links.bottleneck.capacity_bps");
    assert_eq!(capacity.expect("it differs")["difference"], -2e6);
    let relative: Vec<f64> = metrics.iter().filter_map(|metric| metric["relative"].as_f64()).collect();
    assert!(relative.is_sorted_by(|one, other| one >= other), "{relative:?}");
    // The SYN takes longer at 8 Mbit/s: 10 ms and 32 or 40 us.
    assert_eq!(json["first_packet"]["t_s"], 0.010032);
    let time = |key: &str| json[key]["t_s"].as_f64().expect("a time");
    assert!(time("first_packet") <= time("first_event"), "{json}");

    let finished = lab.run(&["compare", &one, &other, "--exact"]).exits(3);
    let text = finished.stdout();
    for part in ["links.bottleneck.rate", "first event", "first packet that differs, at 0.010032 s", "SYN"] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(finished.stderr().contains("differ"), "{}", finished.stderr());
    let tolerant = lab.run(&["compare", &one, &other, "--exact=1", "--json"]).exits(3).json();
    assert_eq!(tolerant["metrics"].as_array().map(Vec::len), Some(0));
    lab.run(&["compare", &one, &other, "--exact=-1"]).exits(2);
    lab.run(&["compare", &one, "--exact"]).exits(2);
}

#[test]
fn another_seed_is_seen_on_the_first_draw() {
    let lab = Lab::new(SCENARIO);
    let (one, other) = (run(&lab, &[]), run(&lab, &["--seed", "2"]));
    let json = lab.run(&["compare", &one, &other, "--json", "--exact"]).exits(3).json();
    assert_eq!(json["configuration"][0]["path"], "run.seed");
    assert_eq!(json["configuration"].as_array().map(Vec::len), Some(1));
    let first = json["first_packet"]["one"].as_str().or(json["first_packet"]["other"].as_str());
    assert!(first.is_some_and(|first| first.contains("control interval")), "{json}");
}

/// The file system of `folder` takes no more than `size`: a small one of its own, which a mount
/// namespace keeps from everybody else. `None` where that is not allowed.
fn on_a_small_disk(lab: &Lab, arguments: &str) -> Option<Finished> {
    let binary = env!("CARGO_BIN_EXE_congestlab");
    let script = format!(
        "mkdir -p disk && mount -t tmpfs -o size=64k none disk || exit 99
         {binary} {arguments} >stdout 2>stderr; status=$?; ls -A disk >left; ls -A disk/points >points 2>/dev/null; exit $status"
    );
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script])
        .current_dir(lab.path(""))
        .output()
        .ok()?;
    (output.status.code() != Some(99) && output.status.signal().is_none() && lab.path("left").exists())
        .then_some(Finished(output))
}

#[test]
fn a_disk_that_fills_up_leaves_no_half_of_a_run() {
    let lab = Lab::new(&SCENARIO.replace("count = 2", "count = 40"));
    let arguments = "run scenario.toml --out disk --set measure.every='\"5 ms\"'";
    let Some(finished) = on_a_small_disk(&lab, arguments) else {
        println!("SKIP cli/full-disk: no mount namespaces here");
        return;
    };
    let stderr = fs::read_to_string(lab.path("stderr")).expect("the shell wrote it");
    assert_eq!(finished.0.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: can not write disk: "), "{stderr}");
    assert!(stderr.contains("No space left on device"), "{stderr}");
    assert_eq!(fs::read_to_string(lab.path("left")).ok().as_deref(), Some(""), "something is left");
}

/// It went on to compute what it could not keep, and left a file for each of those points.
#[test]
fn a_sweep_ends_when_the_disk_is_full() {
    let lab = Lab::new(SCENARIO);
    let arguments = "sweep scenario.toml --out disk --seeds 1500 --set 'run.duration=\"1100 ms\"'";
    let Some(finished) = on_a_small_disk(&lab, arguments) else {
        println!("SKIP cli/full-disk: no mount namespaces here");
        return;
    };
    let stderr = fs::read_to_string(lab.path("stderr")).expect("the shell wrote it");
    assert_eq!(finished.0.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("error: can not write ") && stderr.contains("No space left on device"),
        "{stderr}"
    );
    let points = fs::read_to_string(lab.path("points")).expect("the shell wrote it");
    let points: Vec<&str> = points.lines().collect();
    assert!(points.iter().any(|name| name.ends_with(".log")), "what is complete stays: {points:?}");
    assert!(points.len() < 5 && !points.iter().any(|name| name.ends_with(".claim")), "{points:?}");
}

/// Nobody is in anybody's way, and what is there is one whole run.
#[test]
fn runs_of_one_scenario_at_once_all_succeed() {
    let lab = Lab::new(SCENARIO);
    let start = || {
        let mut command = lab.command(&["run", "scenario.toml", "--out", "runs", "--quiet"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs")
    };
    for _ in 0..4 {
        let children: Vec<_> = (0..6).map(|_| start()).collect();
        for child in children {
            Finished(child.wait_with_output().expect("it ends")).exits(0);
        }
    }
    let runs = folders(&lab);
    assert_eq!(runs.len(), 1, "{runs:?}");
    let folder = runs[0].display().to_string();
    lab.run(&["compare", &folder, &folder, "--exact"]).exits(0);
}

/// `ulimit -f`: the signal would kill, and say nothing.
#[test]
fn a_limit_of_file_sizes_is_told_and_leaves_nothing() {
    let lab = Lab::new(SCENARIO);
    let binary = env!("CARGO_BIN_EXE_congestlab");
    for output in ["--series s.csv", "--events e.csv", "--out runs", "--pcap traces"] {
        let script = format!("ulimit -f 1; {binary} run scenario.toml --quiet {output}");
        let finished = Command::new("sh").args(["-c", &script]).current_dir(lab.path("")).output();
        let finished = Finished(finished.expect("there is a shell")).exits(1);
        let stderr = finished.stderr();
        assert!(stderr.starts_with("error: can not write ") && stderr.contains("File too large"), "{stderr}");
    }
    assert!(folders(&lab).is_empty());
    let left: Vec<String> = lab.files().into_iter().filter(|name| name != "runs").collect();
    assert_eq!(left, ["scenario.toml"], "something is left");
}

/// A program that runs the command finds the folder in its answer, or names it beforehand.
#[test]
fn a_run_tells_its_folder_and_takes_an_exact_name() {
    let lab = Lab::new(SCENARIO);
    let json = lab.run(&["run", "scenario.toml", "--out", "runs", "--json", "--quiet"]).exits(0).json();
    let folder = json["folder"].as_str().expect("a path");
    let summary =
        |folder: &str| fs::read_to_string(lab.path(folder).join("summary.json")).expect("it was written");
    assert!(folder.starts_with("runs/scenario-1-") && !summary(folder).contains("\"folder\""), "{folder}");
    assert!(lab.run(&["run", "scenario.toml", "--json"]).exits(0).json().get("folder").is_none());

    for seed in ["1", "2"] {
        let exact =
            ["run", "scenario.toml", "--seed", seed, "--out", "made/one", "--exact", "--json", "--quiet"];
        assert_eq!(lab.run(&exact).exits(0).json()["folder"], "made/one");
        assert!(summary("made/one").contains(&format!("\"seed\": {seed},")));
    }
    assert_eq!(fs::read_dir(lab.path("made")).expect("a folder").count(), 1, "nothing is left beside it");
    lab.run(&["report", "made/one"]).exits(0);

    fs::create_dir(lab.path("mine")).expect("a folder");
    fs::write(lab.path("mine/thesis.tex"), "x").expect("writable");
    let refused = lab.run(&["run", "scenario.toml", "--out", "mine", "--exact"]).exits(2);
    assert!(refused.stderr().contains("is not the folder of a run"), "{}", refused.stderr());
    assert!(lab.path("mine/thesis.tex").is_file());
    assert!(lab.run(&["run", "scenario.toml", "--exact"]).exits(2).stderr().contains("--out"));
}
