//! Ctrl-C and SIGTERM: status 130, and a result that says it is incomplete, or none.

use std::fs::File;
use std::process::{Child, Command, Stdio};
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

/// Waits until it is well past its beginning, however slow the machine is: it has worked for so long.
fn wait_until_busy(child: &Child) {
    // In ticks of a hundredth of a second, behind the name in parentheses: user and system.
    const ENOUGH: u64 = 30;
    let path = format!("/proc/{}/stat", child.id());
    for _ in 0..6000 {
        let stat = std::fs::read_to_string(&path).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split(' ').skip(12).take(2);
        if fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() >= ENOUGH {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it has done nothing for a minute");
}

/// Interrupts a command that computes.
fn interrupt(lab: &Lab, arguments: &[&str], signal: Signal) -> Finished {
    interrupt_when(lab, arguments, signal, wait_until_busy)
}

fn interrupt_when(lab: &Lab, arguments: &[&str], signal: Signal, wait: fn(&Child)) -> Finished {
    let mut command = lab.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    // Open for as long as the command is.
    let _stdin = child.stdin.take();
    wait_until_caught(&child, signal);
    wait(&child);
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

/// A list of millions took 14 s. Where even distributions take longer than a second there is no result at all.
#[test]
fn an_interrupted_run_of_many_flows_lists_none() {
    let lab = endless();
    let arguments = ["run", "scenario.toml", "--json", "--set", "flows.ftp.count=20000"];
    let finished = interrupt(&lab, &arguments, Signal::INT).exits(130);
    assert!(finished.stderr().contains("interrupted"), "{}", finished.stderr());
    if !finished.stdout().is_empty() {
        let result = finished.json();
        assert_eq!((&result["complete"], &result["flows"]["ftp"]["count"]), (&false.into(), &20_000.into()));
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
    let shorter = ["--set", "sweep.grid={ \"run.duration\" = [\"2 s\", \"3 s\"] }"];
    let again = lab.run(&[&arguments[..], &shorter[..]].concat()).exits(0).stderr();
    assert!(again.contains("1 run in") && again.contains("1 kept"), "{again}");
}

#[test]
fn an_interrupted_search_keeps_what_it_found() {
    let lab = Lab::new(SCENARIO);
    let arguments = ["search", "xcp", "--budget", "1000000", "--threads", "1", "--json", "--out", "found"];
    let finished = interrupt(&lab, &arguments, Signal::INT).exits(130);
    let list = finished.json();
    assert_eq!(list["complete"], false);
    assert!(finished.stderr().contains("interrupted after"), "{}", finished.stderr());
    for found in list["found"].as_array().expect("a list") {
        lab.run(&["check", &format!("found/{}", found["file"].as_str().expect("a name"))]).exits(0);
    }
    let left = std::fs::read_dir(lab.path("found")).expect("it is there");
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().ends_with(".part")));
}

/// What only reads has nothing to finish, and the same status.
#[test]
fn what_reads_results_is_interrupted_too() {
    let lab = Lab::new(SCENARIO);
    lab.run(&["run", "scenario.toml", "--out", "runs", "--quiet"]).exits(0);
    let runs = std::fs::read_dir(lab.path("runs")).expect("it was written");
    let folder = runs.map(|entry| entry.expect("readable").path()).next().expect("one run");
    // To see that it is not what was written takes longer than anybody waits.
    let table = std::fs::File::options().write(true).open(folder.join("events.parquet"));
    table.and_then(|table| table.set_len(1 << 42)).expect("a file system with holes");
    let folder = folder.display().to_string();
    for arguments in [
        &["report", &folder][..],
        &["compare", &folder, &folder, "--exact"],
        &["compare", &folder, &folder],
        &["explain", &folder, "--flow", "ftp[0]", "--at", "1 s"],
        // A pipe to which nobody writes.
        &["check", "/dev/stdin"],
    ] {
        let finished = interrupt_when(&lab, arguments, Signal::INT, |_| ()).exits(130);
        assert_eq!(finished.stdout(), "", "{arguments:?}");
    }
}

/// Nobody asks for the flag while results are written, perhaps into a pipe whose reader has other things to do.
#[test]
fn a_run_that_writes_its_results_is_interrupted_at_once() {
    let lab = Lab::new(SCENARIO);
    let pipe = lab.path("series");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("coreutils").success());
    let arguments =
        ["run", "scenario.toml", "--quiet", "--series", "series", "--set", "measure.every=\"1 ms\""];
    let mut command = lab.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    // Opens once the command has; far more is written than a pipe holds.
    let reader = File::open(&pipe).expect("ours");
    kill_process(Pid::from_child(&child), Signal::INT).expect("the child is ours and alive");
    for _ in 0..1000 {
        if child.try_wait().expect("the child is ours").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(reader);
    let finished = Finished(child.wait_with_output().expect("it ends")).exits(130);
    assert_eq!(finished.stdout(), "");
}

/// A kill leaves what was half-written, hidden; the next command that writes there clears it away.
#[test]
fn what_a_kill_leaves_goes_with_the_next_run() {
    let lab = endless();
    let arguments =
        ["run", "scenario.toml", "--quiet", "--pcap", "traces", "--set", "measure.every=\"1000 s\""];
    let mut child = lab.command(&arguments).stdout(Stdio::null()).spawn().expect("the binary runs");
    let hidden = || {
        let entries = std::fs::read_dir(lab.path("traces")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('.')).count()
    };
    for _ in 0..1000 {
        if hidden() > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let short = ["run", "scenario.toml", "--quiet", "--pcap", "traces", "--set", "run.duration=\"2 s\""];
    lab.run(&short).exits(0);
    assert_eq!(hidden(), 1, "what is still being written was taken for litter");
    child.kill().and_then(|()| child.wait()).expect("the child is ours");
    assert_eq!(hidden(), 1, "a kill clears nothing away");
    lab.run(&short).exits(0);
    assert_eq!(hidden(), 0);
}
