//! Folders that an older build wrote: `tests/older` has a run and a sweep of commit 78b5d5fb. The keys in
//! `sweep.json` were added: that build named none, and there the fingerprints find the points.

#[path = "../../code.rs"]
mod code;

use std::fs;
use std::path::Path;

use crate::{Lab, SCENARIO};

/// A lab with both folders.
fn lab() -> Lab {
    let lab = Lab::new(SCENARIO);
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/older"), &lab.path(""));
    lab
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(path, to).expect("a file");
        }
    }
}

/// Computed by another program from the specification in docs/results.md.
const KEY: &str = "ddd191475ca954ae";
const RUN: &str = "version 0.1.0 (78b5d5fbdb) made the results in run, and this is ";

#[test]
fn the_run_of_an_older_build_is_read_with_a_warning() {
    let lab = lab();
    for arguments in [
        &["report", "run", "--out", "r.html"][..],
        &["export", "figure", "run", "-o", "a.svg"],
        &["export", "qlog", "run", "-o", "a.qlog"],
        &["export", "openmetrics", "run"],
        &["compare", "run", "run"],
        &["compare", "run", "run", "--exact"],
    ] {
        let stderr = lab.run(arguments).exits(0).stderr();
        assert!(stderr.contains(&format!("warning: {RUN}")), "{arguments:?}: {stderr}");
        assert_eq!(lab.run(&[arguments, &["--quiet"]].concat()).exits(0).stderr(), "");
    }
    let warned = lab.run(&["report", "run", "--out", "r.html", "--json"]).exits(0).stderr();
    assert!(warned.contains("folder::version") && warned.contains(RUN), "{warned}");
    // `serve` shows the warnings of this object.
    let compared = lab.run(&["compare", "run", "run", "--json", "--quiet"]).exits(0).json();
    assert!(compared["warnings"][0].as_str().is_some_and(|text| text.starts_with(RUN)), "{compared}");
}

/// A run that is simulated again must be of this version: `explain` refuses another, and `diff` says which part it leaves out.
#[test]
fn the_run_of_an_older_build_is_not_simulated_again() {
    let lab = lab();
    let refused = lab.run(&["explain", "run", "--flow", "f", "--at", "500 ms"]).exits(2).stderr();
    assert!(refused.contains("only the same version simulates the run again"), "{refused}");
    lab.run(&[
        "run",
        "run/scenario.toml",
        "--seed",
        "2",
        "--set",
        "links.l.rate=3 Mbit/s",
        "--out",
        "new",
        "--quiet",
    ])
    .exits(0);
    let new = fs::read_dir(lab.path("new")).expect("a folder").flatten().next().expect("a run").path();
    let new = new.to_str().expect("text");
    let text = lab.run(&["compare", "run", new, "--exact"]).exits(3).stdout();
    for part in [
        "links.l.rate",
        "metrics: ",
        "first event on record",
        "packets are not compared: version 0.1.0 (78b5d5fbdb)",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    let json = lab.run(&["compare", new, "run", "--json", "--exact"]).exits(3).json();
    assert!(json["packets_refused"].is_string() && json["first_packet"].is_null(), "{json}");
}

/// The points that another build kept are shown, and not taken for those of this build.
#[test]
fn the_sweep_of_an_older_build_is_read_with_a_warning_and_run_again() {
    let lab = lab();
    for arguments in
        [&["report", "sweep", "--out", "r.html"][..], &["export", "figure", "sweep", "-o", "a.svg"]]
    {
        let stderr = lab.run(arguments).exits(0).stderr();
        assert!(stderr.contains("made the results in sweep, and this is "), "{arguments:?}: {stderr}");
    }
    let page = fs::read_to_string(lab.path("r.html")).expect("a page");
    assert!(page.contains("78b5d5fbdb"), "the page names the version that made the sweep");
    // As that build wrote it, without keys.
    let content = fs::read_to_string(lab.path("sweep/sweep.json")).expect("a file");
    fs::write(lab.path("sweep/sweep.json"), content.replace("\"keys\"", "\"other\"")).expect("writable");
    lab.run(&["report", "sweep", "--out", "again.html"]).exits(0);
    assert_eq!(fs::read_to_string(lab.path("again.html")).expect("a page"), page);
    // A point that is not there.
    fs::rename(lab.path("sweep/points"), lab.path("points")).expect("a folder");
    let refused = lab.run(&["report", "sweep", "--out", "r.html"]).exits(1).stderr();
    fs::rename(lab.path("points"), lab.path("sweep/points")).expect("a folder");
    assert!(refused.contains("are missing, or of another build"), "{refused}");
    lab.run(&["export", "figure", "sweep", "-o", "a.svg"]).exits(0);

    let again = ["sweep", "sweep/scenario.toml", "--out", "sweep"];
    assert!(lab.run(&again).exits(0).stderr().contains("2 run in"), "points of other code are run again");
    assert!(lab.run(&again).exits(0).stderr().contains(" 2 kept from before"), "and then kept");
    let stderr = lab.run(&["report", "sweep", "--out", "r.html"]).exits(0).stderr();
    assert!(!stderr.contains("warning"), "{stderr}");
}

/// The key of kept points is specified: equal sources have the key that docs/results.md computes, on every machine and by
/// every compiler. All that decides results moves it, and nothing else.
#[test]
fn the_key_of_kept_points_is_of_all_that_decides_results() {
    let _ = (code::name, code::files);
    let lab = Lab::new(SCENARIO);
    let lock = |libm: &str| {
        format!(
            "[[package]]\nname = \"libm\"\nversion = \"{libm}\"\n\n[[package]]\nname = \"png\"\nversion = \"1.0.0\"\n"
        )
    };
    let write = |name: &str, text: &str| {
        let path = lab.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("writable");
    };
    let key = || code::key(&lab.path(""), &lab.path("Cargo.lock"));
    write("Cargo.lock", &lock("0.2.16"));
    let sources = [
        "core/src/lib.rs",
        "net/src/port.rs",
        "sim/src/lib.rs",
        "text/src/decode.rs",
        "scenario/src/judging/metric.rs",
        "scenario/src/language/file.rs",
        "scenario/src/results/result.rs",
    ];
    for name in sources {
        write(&format!("crates/{name}"), name);
    }
    write("crates/scenario/src/showing/style.rs", "red");
    // FNV-1a of name, length, text and length, file by file.
    assert_eq!(key(), KEY);
    for (name, other) in
        [("crates/scenario/src/showing/style.rs", "blue"), ("crates/cli/src/picture.rs", "new")]
    {
        write(name, other);
        assert_eq!(key(), KEY, "{name} draws");
    }
    write("Cargo.lock", &lock("0.2.16").replace("1.0.0", "1.0.1"));
    assert_eq!(key(), KEY, "a library that draws");
    write("Cargo.lock", &lock("0.2.17"));
    assert_ne!(key(), KEY, "a library that decides results");
    write("Cargo.lock", &lock("0.2.16"));
    for name in sources {
        write(&format!("crates/{name}"), "changed");
        assert_ne!(key(), KEY, "{name} decides results");
        write(&format!("crates/{name}"), name);
    }
    write("crates/core/src/new.rs", "");
    assert_ne!(key(), KEY, "a file more");
    fs::remove_file(lab.path("crates/core/src/new.rs")).expect("it is there");
    assert_eq!(key(), KEY);
}
