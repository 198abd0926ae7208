//! `congestlab check machine`: information for everybody, and what it may not change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Finished, Lab, SCENARIO};

const PARTS: [&str; 5] = ["host", "router", "link", "live", "gateway"];

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn skip(test: &str, reason: &str) {
    eprintln!("SKIP {test}: {reason}");
}

#[test]
fn every_part_has_a_verdict_and_every_question_an_answer() {
    let lab = Lab::new(SCENARIO);
    let report = lab.run(&["check", "machine", "--json"]).exits(0).json();
    for part in PARTS {
        let able = report["able"][part].as_bool().unwrap_or_else(|| panic!("no verdict on {part}"));
        let checks = report["checks"].as_array().expect("checks");
        let needs =
            |check: &&Value| check["needed_for"].as_array().is_some_and(|parts| parts.contains(&part.into()));
        let missing = checks.iter().filter(needs).filter(|check| check["mark"] == "no").count();
        assert_eq!(able, missing == 0, "{part}");
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
    assert_eq!(check(&report, "kernel")["found"], format!("Linux {}", release.trim()));
    let has_types = Path::new("/sys/kernel/btf/vmlinux").exists();
    assert_eq!(check(&report, "btf")["mark"] == "yes", has_types);
    assert_eq!(check(&report, "privilege")["mark"] == "yes", report["able"]["link"] == true);

    let text = lab.run(&["check", "machine"]).exits(0).stdout();
    for part in [
        "host  ",
        "router  ",
        "user-space link  ",
        "live lab  ",
        "gateway  ",
        release.trim(),
        "threads wake up",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    let lines = text.lines().filter(|line| line.contains("NO ")).count();
    assert_eq!(lines, text.matches("\n  NO   ").count(), "{text}");
    assert!(text.matches("get it  ").count() >= lines, "{text}");
}

/// Status 0 all the same: it is information.
#[test]
fn what_is_missing_is_named_with_the_way_to_get_it() {
    let lab = Lab::new(SCENARIO);
    let run = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        Finished(command.env("PATH", "/nowhere").output().expect("the binary of this package runs")).exits(0)
    };
    let report = run(&["check", "machine", "--json"]).json();
    let curl = check(&report, "curl");
    assert_eq!((&curl["mark"], &curl["help"]), (&"no".into(), &"apt-get install curl".into()));
    let text = run(&["check", "machine"]).stdout();
    let (_, after) = text.split_once("\n  NO   curl\n").unwrap_or_else(|| panic!("curl is there:\n{text}"));
    assert!(after.lines().nth(1).is_some_and(|line| line.contains("get it  apt-get install curl")), "{text}");
}

#[test]
fn somebody_without_privilege_learns_what_that_takes() {
    const TEST: &str = "somebody_without_privilege_learns_what_that_takes";
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("congestlab");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    fs::copy(env!("CARGO_BIN_EXE_congestlab"), &binary).expect("room");
    let run = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        Finished(command.arg(&binary).args(arguments).current_dir("/").output().expect("setpriv runs"))
    };
    if !is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        return skip(TEST, "not root, or no setpriv");
    }
    let report = run(&["check", "machine", "--json"]).exits(0).json();
    for part in PARTS {
        assert_eq!(report["able"][part], false, "{report}");
    }
    let privilege = check(&report, "privilege");
    assert_eq!(privilege["mark"], "no");
    assert!(privilege["found"].as_str().is_some_and(|found| found.contains("CAP_NET_ADMIN")), "{privilege}");
    // What can be read is told all the same, and what can only be tried is left open.
    for name in ["btf", "egress", "struct-ops", "tbf", "clock"] {
        assert_ne!(check(&report, name)["mark"], "unknown", "{name}");
    }
    assert_eq!(check(&report, "namespaces")["mark"], "unknown");
    let text = run(&["check", "machine"]).exits(0).stdout();
    assert!(text.contains("live lab         no, it lacks privilege\n"), "{text}");
    let finished = run(&["check", "machine", "--clean"]).exits(4);
    assert!(finished.stderr().contains("run as root"), "{}", finished.stderr());
}

#[test]
fn a_look_leaves_nothing() {
    const TEST: &str = "a_look_leaves_nothing";
    let lab = Lab::new(SCENARIO);
    let script =
        format!("{} check machine -q > report && ip -o link && ls", env!("CARGO_BIN_EXE_congestlab"));
    let inside = Command::new("unshare").args(["-n", "sh", "-c", &script]).current_dir(lab.path("")).output();
    match inside {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(!text.contains("cl-"), "{text}");
            assert!(text.ends_with("report\nscenario.toml\n"), "{text}");
        }
        _ => skip(TEST, "no network namespace of its own"),
    }
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    assert!(named.into_iter().all(|entry| entry.file_name() != "cl-one" && entry.file_name() != "cl-other"));
}

/// Removed by the test if the command does not.
struct Dead {
    id: String,
    folder: std::path::PathBuf,
}

impl Drop for Dead {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &format!("cl-{}-x", self.id)]).output();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn what_a_dead_lab_left_is_told_and_cleaned_on_demand() {
    const TEST: &str = "what_a_dead_lab_left_is_told_and_cleaned_on_demand";
    if !is_root() {
        return skip(TEST, "not root");
    }
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("Linux");
    let id = uuid[..6].to_owned();
    let dead = Dead { folder: Path::new("/run/congestlab").join(&id), id };
    let namespace = format!("cl-{}-x", dead.id);
    let made = Command::new("ip").args(["netns", "add", &namespace]).output();
    if !made.is_ok_and(|output| output.status.success()) {
        return skip(TEST, "no namespaces");
    }
    // As its processes would have left it: a journal, and a log that nobody has locked.
    fs::create_dir_all(&dead.folder).expect("root");
    fs::write(dead.folder.join("journal"), format!("namespace {namespace}\n")).expect("root");
    fs::write(dead.folder.join("supervisor.log"), "").expect("root");

    let lab = Lab::new(SCENARIO);
    let report = lab.run(&["check", "machine", "--json"]).exits(0).json();
    // Another lab that starts in this moment cleans it, too.
    if dead.folder.exists() {
        let leftovers = report["leftovers"].as_array().expect("a list");
        assert!(leftovers.contains(&Value::from(dead.id.as_str())), "{report}");
        assert_eq!(check(&report, "leftovers")["mark"], "doubt");
    }
    let report = lab.run(&["check", "machine", "--clean", "--json"]).exits(0).json();
    assert!(report["cleaned"].is_array(), "{report}");
    assert!(!dead.folder.exists(), "the journal is still there");
    assert!(!Path::new("/run/netns").join(&namespace).exists(), "the namespace is still there");
}

/// A network namespace of this test's, which goes with its owner.
pub(crate) struct Room(pub(crate) String);

impl Drop for Room {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

#[test]
fn a_router_that_somebody_left_attached_is_named_with_its_place() {
    const TEST: &str = "a_router_that_somebody_left_attached_is_named_with_its_place";
    let lab = Lab::new(SCENARIO);
    let report = lab.run(&["check", "machine", "--json"]).exits(0).json();
    if report["able"]["router"] != true {
        return skip(TEST, "no router here");
    }
    let room = Room(format!("congestlab-doctor-{}", std::process::id()));
    let ip =
        |line: &str| Command::new("ip").args(line.split(' ')).status().is_ok_and(|status| status.success());
    let name = &room.0;
    if !ip(&format!("netns add {name}")) || !ip(&format!("-n {name} link add left type veth peer name right"))
    {
        return skip(TEST, "no namespaces, or no veth");
    }
    let attach = format!(
        "netns exec {name} {} router attach left --law xcp --rate 10Mbit/s",
        env!("CARGO_BIN_EXE_congestlab")
    );
    assert!(ip(&attach), "{attach}");
    let said = format!("router xcp at left in {name}");
    let names = |report: &Value| {
        let found = check(report, "standing")["found"].as_str().unwrap_or_default().to_owned();
        found.split(", ").any(|thing| thing == said)
    };
    let report = lab.run(&["check", "machine", "--json"]).exits(0).json();
    assert!(names(&report), "{report}");
    let thing = serde_json::json!({ "namespace": name, "kind": "router", "interface": "left", "law": "xcp" });
    assert!(report["standing"].as_array().is_some_and(|list| list.contains(&thing)), "{report}");
    assert_eq!(check(&report, "standing")["mark"], "doubt");
    drop(room);
    assert!(!names(&lab.run(&["check", "machine", "--json"]).exits(0).json()));
}
