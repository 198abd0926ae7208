//! Experiments of a paper, run as people run them: the scenarios of a folder with their claims, and others.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::FOLDER;

pub(crate) fn congestlab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_congestlab"))
}

/// The scenarios of the paper.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(FOLDER)
}

pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(FOLDER).join(name);
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder for tests");
    path
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The claims of a file of the folder held against its runs.
pub(crate) fn check(name: &str) -> Output {
    let out = scratch(name);
    let _ = std::fs::remove_dir_all(&out);
    let file = directory().join(format!("{name}.toml"));
    let sweep = congestlab().args(["sweep", "--check", "--out"]).arg(&out).arg(file).output();
    sweep.expect("the binary of this package runs")
}

/// Every claim of a file of the folder holds.
pub(crate) fn holds(name: &str) {
    let sweep = check(name);
    assert!(sweep.status.success(), "{}", text(&sweep));
}

/// Runs a scenario with these changes, and the other engines too; the result.
pub(crate) fn run(file: &Path, changes: &[(&str, &str)]) -> Value {
    let mut command = congestlab();
    command.arg("run").arg(file).args(["--json", "--verify"]);
    for (path, value) in changes {
        command.arg("--set").arg(format!("{path}={value}"));
    }
    let output = command.output().expect("the binary of this package runs");
    assert!(output.status.success(), "{file:?} {changes:?}\n{}", text(&output));
    serde_json::from_slice(&output.stdout).expect("--json prints an object")
}

/// A scenario of this text.
pub(crate) fn run_text(name: &str, scenario: &str) -> Value {
    let file = scratch(&format!("{name}.toml"));
    std::fs::write(&file, scenario).expect("a place for it");
    run(&file, &[])
}

pub(crate) fn number(result: &Value, path: &str) -> f64 {
    result.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {path} in {result}"))
}
