//! Ctrl-C and SIGTERM: status 130, and a result that says it is incomplete, or none.

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{Finished, Lab, SCENARIO};

/// Longer than anybody waits for.
fn endless() -> Lab {
    Lab::new(&SCENARIO.replace("duration = \"2 s\"", "duration = \"1000000 s\""))
}

/// Waits until the process has taken charge of the signal, so that it can not die of it.
fn wait_until_caught(child: &Child, signal: Signal) {
    let path = format!("/proc/{}/status", child.id());
    for _ in 0..1000 {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        if mask & (1 << (signal.as_raw() - 1)) != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no handler for {signal:?} after ten seconds");
}

fn interrupt(lab: &Lab, arguments: &[&str], signal: Signal) -> Finished {
    let mut command = lab.command(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    wait_until_caught(&child, signal);
    std::thread::sleep(Duration::from_millis(300));
    let pid = Pid::from_child(&child);
    kill_process(pid, signal).expect("the child is ours and alive");
    Finished(child.wait_with_output().expect("it ends"))
}

#[test]
fn an_interrupted_run_says_that_it_is_incomplete() {
    for signal in [Signal::INT, Signal::TERM] {
        let lab = endless();
        let arguments =
            ["run", "scenario.toml", "--json", "--events", "e.csv", "--set", "measure.every=\"1000 s\""];
        let finished = interrupt(&lab, &arguments, signal).exits(130);
        let result = finished.json();
        assert_eq!(result["complete"], false);
        assert!(result["packet_hops"].as_u64().is_some_and(|hops| hops > 0), "it did not run at all");
        assert!(finished.stderr().contains("interrupted"), "{}", finished.stderr());
        assert_eq!(lab.files(), ["scenario.toml"], "half a table is left");
    }
}

#[test]
fn an_interrupted_run_is_told_to_people_too() {
    let finished = interrupt(&endless(), &["run", "scenario.toml", "--threads", "2"], Signal::INT).exits(130);
    assert!(finished.stdout().starts_with("INCOMPLETE"), "{}", finished.stdout());
}

#[test]
fn an_interrupted_sweep_keeps_what_is_complete_and_goes_on_from_there() {
    let sweep = "\n[sweep]\ngrid = { \"run.duration\" = [\"2 s\", \"1000000 s\"] }\n";
    let lab = Lab::new(&format!("{SCENARIO}{sweep}"));
    let arguments = ["sweep", "scenario.toml", "--threads", "1", "--out", "kept"];
    let finished = interrupt(&lab, &arguments, Signal::INT).exits(130);
    assert_eq!(finished.stdout(), "");
    assert!(finished.stderr().contains("1 of 2 points"), "{}", finished.stderr());
    let kept = std::fs::read_dir(lab.path("kept")).expect("the folder was made").count();
    assert_eq!(kept, 1);
}
