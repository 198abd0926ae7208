//! `congestlab apply` at interfaces of a namespace: what a file says is there, and nothing else is touched.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;

use crate::machine::Room;
use crate::router::{room, router, state};
use crate::{Finished, Lab, SCENARIO};

/// A file for `apply`, and the namespace in which it is applied.
pub(crate) struct Applied {
    pub(crate) room: Room,
    pub(crate) lab: Lab,
}

impl Applied {
    /// `None`: said why.
    pub(crate) fn new(test: &str) -> Option<Self> {
        Some(Self { room: room(test)?, lab: Lab::new(SCENARIO) })
    }

    pub(crate) fn write(&self, text: &str) {
        // As a whole, or a look would see a half.
        let (new, file) = (self.lab.path("new.toml"), self.lab.path("apply.toml"));
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file)).expect("room");
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        let binary = env!("CARGO_BIN_EXE_congestlab");
        command
            .args(["netns", "exec", &self.room.0, binary, "apply"])
            .args(words)
            .current_dir(self.lab.path(""));
        command
    }

    pub(crate) fn apply(&self, words: &[&str]) -> Finished {
        Finished(self.command(words).output().expect("ip has run before"))
    }

    /// Writes the file, applies it, and returns what it says.
    fn file(&self, text: &str) -> String {
        self.write(text);
        self.apply(&["apply.toml"]).exits(0).stdout()
    }

    pub(crate) fn ip(&self, words: &str) {
        let status = Command::new("ip").args(["-n", &self.room.0]).args(words.split(' ')).status();
        assert!(status.is_ok_and(|status| status.success()), "{words}");
    }

    pub(crate) fn status(&self) -> Value {
        router(&self.room, &["status", "left", "--json"]).exits(0).json()["interfaces"][0].clone()
    }
}

/// Whoever can write the file says what root runs.
#[test]
fn file_that_others_can_change_is_refused() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let Some(at) = Applied::new("file_that_others_can_change_is_refused") else { return };
    at.write("[routers.left]\nlaw = \"xcp\"\nrate = \"10 Mbit/s\"\n");
    let file = at.lab.path("apply.toml");
    let mode =
        |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("ours");
    let refused = |what: &str| {
        for words in [&["apply.toml"][..], &["--watch", "apply.toml"]] {
            let error = at.apply(words).exits(2).stderr();
            assert!(error.contains(what), "{error}");
        }
        // A draft may be checked by anybody.
        at.apply(&["--check", "apply.toml"]).exits(0);
    };
    mode(&file, 0o664);
    refused("can be written by other users than root");
    mode(&file, 0o644);
    mode(&at.lab.path(""), 0o777);
    refused("can be written by other users than root");
    mode(&at.lab.path(""), 0o755);
    chown(&file, Some(65534), None).expect("root");
    refused("apply.toml does not belong to root");
    chown(&file, Some(0), None).expect("root");
    // A link of somebody else leads to a file of root today.
    let link = at.lab.path("link.toml");
    std::os::unix::fs::symlink("apply.toml", &link).expect("ours");
    assert_eq!(at.apply(&["link.toml"]).exits(0).stdout(), "left: attached xcp at 10 Mbit/s\n");
    at.apply(&["--undo"]).exits(0);
    std::os::unix::fs::lchown(&link, Some(65534), None).expect("root");
    let error = at.apply(&["link.toml"]).exits(2).stderr();
    assert!(error.contains("link.toml does not belong to root"), "{error}");
    // A pipe of somebody else is refused before anybody waits for what comes out of it.
    let pipe = at.lab.path("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    chown(&pipe, Some(65534), None).expect("root");
    let error = at.apply(&["pipe.toml"]).exits(2).stderr();
    assert!(error.contains("pipe.toml does not belong to root"), "{error}");
    // Nothing was applied before.
    assert_eq!(at.apply(&["apply.toml"]).exits(0).stdout(), "left: attached xcp at 10 Mbit/s\n");
}

#[test]
fn only_what_differs_is_changed_and_a_second_time_nothing() {
    let Some(at) = Applied::new("only_what_differs_is_changed_and_a_second_time_nothing") else { return };
    let left = |rest: &str| format!("[routers.left]\nlaw = \"xcp\"\n{rest}\n");
    let ten = left("rate = \"10 Mbit/s\"");
    assert_eq!(at.file(&ten), "left: attached xcp at 10 Mbit/s\n");
    let before = state(&at.room);
    assert_eq!(at.file(&ten), "left: as wanted\n");
    assert_eq!(state(&at.room), before);

    let twenty = left("rate = \"20 Mbit/s\"\nqueue = \"100 kB\"");
    assert_eq!(
        at.file(&twenty),
        "left: xcp at 20 Mbit/s has a new rate, before 10 Mbit/s; limit of the queue, before 125000\n"
    );
    let after = state(&at.room);
    assert!(
        after.0 == 20_000_000 && after.1.contains("rate 20Mbit") && after.1.contains("limit 100000b"),
        "{after:?}"
    );
    assert_eq!(at.file(&twenty), "left: as wanted\n");

    // The handle of the child says that the queue is the same one.
    let handle = |qdiscs: &str| qdiscs.lines().find(|line| line.contains("bfifo")).map(str::to_owned);
    let tuned = left("rate = \"20 Mbit/s\"\nqueue = \"100 kB\"\nset = { alpha = 0.3 }");
    let stayed = |law: &str, why: &str| {
        format!(
            "left: {law} at 20 Mbit/s in place of what was there; its queue stayed, and the law begins anew, for the one before {why}\n"
        )
    };
    assert_eq!(at.file(&tuned), stayed("xcp", "had other constants"));
    assert_eq!(handle(&state(&at.room).1), handle(&after.1));
    assert_eq!(at.file(&tuned), "left: as wanted\n");
    let rcp = "[routers.left]\nlaw = \"rcp\"\nrate = \"20 Mbit/s\"\nqueue = \"100 kB\"\nset = { interval = \"20 ms\" }\n";
    assert_eq!(at.file(rcp), stayed("rcp", "was another"));
    assert_eq!(at.file(rcp), "left: as wanted\n");
    assert_eq!(at.status()["law"], "rcp");
    assert_eq!(handle(&state(&at.room).1), handle(&after.1));
    let step = "[routers.left]\nlaw = \"step\"\nrate = \"20 Mbit/s\"\nqueue = \"100 kB\"\nset = { packets = 20, drop = true }\n";
    assert_eq!(at.file(step), stayed("step", "was another"));
    assert_eq!(at.file(step), "left: as wanted\n");
    assert_eq!(at.file(rcp), stayed("rcp", "was another"));
    let packets = rcp.replace("100 kB", "50 packets");
    assert_eq!(at.file(&packets), "left: attached rcp at 20 Mbit/s again, with another shaper\n");
    assert_eq!(at.file(&packets), "left: as wanted\n");

    // What the file names no more goes; what is not there is told with its place, and the others are applied.
    at.write("[routers.right]\nlaw = \"xcp\"\nrate = \"5 Mbit/s\"\n\n[routers.nowhere]\nlaw = \"xcp\"\nrate = \"5 Mbit/s\"\n");
    let finished = at.apply(&["apply.toml"]).exits(2);
    let said = finished.stdout();
    assert_eq!(said, "left: detached, for nobody wants it any more\nright: attached xcp at 5 Mbit/s\n");
    let error = finished.stderr();
    assert!(error.contains("apply.toml:5:10: there is no interface nowhere"), "{error}");
    let report = at.apply(&["apply.toml", "--json"]).exits(2).json();
    let states: Vec<&Value> =
        report["applied"].as_array().expect("a list").iter().map(|item| &item["state"]).collect();
    assert_eq!(states, ["as-wanted", "failed"]);
    assert_eq!(at.apply(&["--undo"]).exits(0).stdout(), "right: detached, for nobody wants it any more\n");
    assert_eq!(at.apply(&["--undo"]).exits(0).stdout(), "nothing was applied here\n");
    router(&at.room, &["status", "right"]).exits(2);
}

#[test]
fn by_hand_is_left_alone_unless_a_rate_is_all_that_differs() {
    let Some(at) = Applied::new("by_hand_is_left_alone_unless_a_rate_is_all_that_differs") else { return };
    router(&at.room, &["attach", "left", "--law", "xcp", "--rate", "10 Mbit/s"]).exits(0);
    let file = |law: &str, rate: u32| {
        format!("[routers.left]\nlaw = \"{law}\"\nrate = \"{rate} Mbit/s\"\nqueue = \"125 kB\"\n")
    };
    assert_eq!(at.file(&file("xcp", 10)), "left: as wanted\n");
    let before = state(&at.room);
    at.write(&file("vcp", 10));
    let error = at.apply(&["apply.toml"]).exits(2).stderr();
    assert!(
        error.contains("apply.toml:1:10: left has the law xcp otherwise than wanted, attached by hand"),
        "{error}"
    );
    assert!(error.contains("congestlab router detach left"), "{error}");
    assert_eq!(state(&at.room), before);
    assert_eq!(at.file(&file("xcp", 12)), "left: xcp at 12 Mbit/s has a new rate, before 10 Mbit/s\n");
    let right = "[routers.right]\nlaw = \"xcp\"\nrate = \"5 Mbit/s\"\n";
    assert_eq!(at.file(right), "right: attached xcp at 5 Mbit/s\n");
    assert_eq!(at.status()["capacity_bps"], 12_000_000);
    assert_eq!(at.apply(&["--undo"]).exits(0).stdout(), "right: detached, for nobody wants it any more\n");
    assert_eq!(at.status()["law"], "xcp");
}

#[test]
fn mtu_that_was_raised_is_told_and_followed() {
    let Some(at) = Applied::new("mtu_that_was_raised_is_told_and_followed") else { return };
    let file = "[routers.left]\nlaw = \"xcp\"\nrate = \"10 Mbit/s\"\n";
    assert_eq!(at.file(file), "left: attached xcp at 10 Mbit/s\n");
    let status = at.status();
    assert!(
        status["mtu"] == 1500 && status["bucket_bytes"] == 5000 && status["warning"].is_null(),
        "{status}"
    );
    at.ip("link set left mtu 9000");
    let finished = router(&at.room, &["status", "left"]).exits(0);
    let warning =
        "warning: left: MTU is now 9000, the shaper's bucket holds 5000 B: longer packets are dropped";
    assert!(finished.stderr().contains(warning), "{}", finished.stderr());
    let report = at.lab.run(&["check", "machine", "--json"]).exits(0).json();
    let check =
        report["checks"].as_array().and_then(|all| all.iter().find(|check| check["name"] == "buckets"));
    let found = check.map(|check| check["found"].to_string()).unwrap_or_default();
    let here = format!("router xcp at left in {}: MTU is now 9000", at.room.0);
    assert!(found.contains(&here), "{found}");
    assert_eq!(
        at.file(file),
        "left: xcp at 10 Mbit/s has a new shaper's bucket for an MTU of 9000, before 5000 B\n"
    );
    assert_eq!(at.file(file), "left: as wanted\n");
    let status = at.status();
    assert!(status["bucket_bytes"].as_u64().is_some_and(|bytes| bytes >= 17_900), "{status}");
    assert!(status["warning"].is_null(), "{status}");
    // By hand the same is done by the rate that it has.
    at.ip("link set left mtu 20000");
    router(&at.room, &["set", "left", "--rate", "10 Mbit/s"]).exits(0);
    assert!(at.status()["warning"].is_null());
}

/// The lines that a child says, until one has the words.
pub(crate) struct Watch {
    pub(crate) child: Child,
    lines: BufReader<ChildStderr>,
}

impl Watch {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("ip has run before");
        let lines = BufReader::new(child.stderr.take().expect("piped"));
        Self { child, lines }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    #[track_caller]
    pub(crate) fn says(&mut self, words: &str) -> String {
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let count = self.lines.read_line(&mut line).expect("text");
            said.push_str(&line);
            assert!(count > 0, "it ended, and has not said {words:?}, but\n{said}");
            if line.contains(words) {
                return line;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_classes_are_applied_and_followed_by_who_stays() {
    let Some(at) = Applied::new("two_classes_are_applied_and_followed_by_who_stays") else { return };
    let left = |rest: &str| format!("[routers.left]\nlaw = \"xcp\"\nrate = \"10 Mbit/s\"\n{rest}\n");
    assert_eq!(at.file(&left("")), "left: attached xcp at 10 Mbit/s\n");
    let fixed = left("beside_tcp = \"0.3\"");
    assert_eq!(at.file(&fixed), "left: attached xcp at 10 Mbit/s again, with another shaper\n");
    assert_eq!(at.file(&fixed), "left: as wanted\n");
    let faster = fixed.replace("10 Mbit", "20 Mbit");
    assert_eq!(
        at.file(&faster),
        "left: xcp at 20 Mbit/s has a new rate, before 10 Mbit/s; limit of the queue, before 125000\n"
    );
    let other = faster.replace("0.3", "0.4");
    assert_eq!(
        at.file(&other),
        "left: xcp at 20 Mbit/s in place of what was there; its queue stayed, and the law begins anew, for the one before had other constants\n"
    );
    assert_eq!(
        (at.file(&other), &at.status()["beside"]["xcp_weight"]),
        ("left: as wanted\n".into(), &0.4.into())
    );

    let flows = left("beside_tcp = \"flows\"");
    at.write(&flows);
    let error = at.apply(&["apply.toml"]).exits(2).stderr();
    assert!(error.contains("apply.toml:4:14: weights can not follow flows when nobody stays"), "{error}");
    let mut watch = Watch::start(&mut at.command(&["--watch", "apply.toml"]));
    watch.says("left: xcp at 10 Mbit/s in place of what was there");
    let becomes = |state: &Value| {
        let is_so = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            at.status()["beside"]["follower"] == *state
        });
        assert!(is_so, "not {state}: {}", at.status());
    };
    becomes(&"fresh".into());
    at.write(&fixed);
    watch.says("left: xcp at 10 Mbit/s in place of what was there");
    becomes(&Value::Null);
    at.write(&flows);
    watch.says("left: xcp at 10 Mbit/s in place of what was there");
    becomes(&"fresh".into());
    drop(watch);
    becomes(&"unread".into());
    assert_eq!(at.apply(&["--undo"]).exits(0).stdout(), "left: detached, for nobody wants it any more\n");

    // Who counts by hand is left alone.
    let mut command = Command::new("ip");
    let line = ["netns", "exec", &at.room.0, env!("CARGO_BIN_EXE_congestlab"), "router", "attach", "left"];
    let mut by_hand =
        Watch::start(command.args(line).args("--law xcp --rate 10Mbit/s --beside-tcp".split(' ')));
    by_hand.says("left: XCP and all else share it");
    let mut watch = Watch::start(&mut at.command(&["--watch", "apply.toml"]));
    let line = watch.says("left: failed: process ");
    assert!(line.contains("counts the flows of left, and changes its classes by them"), "{line}");
    becomes(&"fresh".into());
}

#[test]
fn watch_applies_again_when_interfaces_or_the_file_change() {
    const TEST: &str = "watch_applies_again_when_interfaces_or_the_file_change";
    let Some(at) = Applied::new(TEST) else { return };
    at.ip("link set lo up");
    let file = "[routers.left]\nlaw = \"xcp\"\nrate = \"10 Mbit/s\"\nset = { police = 1024 }\n";
    at.write(file);
    let mut watch = Watch::start(&mut at.command(&["--watch", "apply.toml", "--metrics", "0"]));
    let place = watch.says("metrics are at http://127.0.0.1:");
    watch.says("left: attached xcp at 10 Mbit/s");
    assert_has_no_rights(watch.child.id(), "metrics");
    let url = place.trim().rsplit(' ').next().unwrap_or_default();
    let curl = Command::new("ip").args(["netns", "exec", &at.room.0, "curl", "-sS", url]).output();
    match curl {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            for line in [
                "# TYPE congestlab_router_packets_total counter",
                "congestlab_router_capacity_bytes_per_second{interface=\"left\"} 1250000",
                "congestlab_router_info{interface=\"left\",law=\"xcp\",encoding=\"option\",qdisc=\"tbf\"} 1",
                "congestlab_router_police_memory_bytes{interface=\"left\"} 139264",
                "congestlab_router_policed_packets_total{interface=\"left\"} 0",
                "congestlab_router_held_flows{interface=\"left\"} 0",
                "congestlab_router_bucket_too_small{interface=\"left\"} 0",
                "congestlab_router_refused_packets_total{interface=\"left\",reason=\"truncated\"} 0",
                "congestlab_apply_failing 0",
            ] {
                assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
            }
        }
        _ => println!("SKIP {TEST}: no curl, so nobody reads the metrics"),
    }
    at.ip("link set left mtu 9000");
    watch.says("left: xcp at 10 Mbit/s has a new shaper's bucket for an MTU of 9000");
    at.ip("link del left");
    watch.says("left: failed: there is no interface left");
    at.ip("link add left type veth peer name right");
    watch.says("left: attached xcp at 10 Mbit/s");
    at.write("[routers.left]\nlaw = \"xcp\"\nrate = \"10 Mbits\"\n");
    watch.says("apply.toml:3:8: `routers.left.rate`");
    at.write(&file.replace("10 Mbit", "20 Mbit"));
    watch.says("apply.toml has changed");
    watch.says("left: xcp at 20 Mbit/s has a new rate, before 10 Mbit/s");
    watch.signal(rustix::process::Signal::TERM);
    watch.says("what was applied stays");
    assert!(watch.child.wait().expect("ours").success());
    assert_eq!(at.status()["capacity_bps"], 20_000_000);
}

/// The threads of a process with this name exist, are not root's, and have no capability.
fn assert_has_no_rights(process: u32, name: &str) {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let statuses = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let named: Vec<String> = statuses.filter(|text| text.starts_with(&format!("Name:\t{name}\n"))).collect();
    assert!(!named.is_empty(), "no thread {name}");
    for text in named {
        let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        let uids: Vec<&str> = field("Uid:").split_whitespace().collect();
        assert!(uids.len() == 4 && !uids.contains(&"0"), "{text}");
        for set in ["CapEff:", "CapPrm:", "CapAmb:"] {
            assert_eq!(field(set).trim().trim_start_matches('0'), "", "{text}");
        }
    }
}

/// Needs neither a kernel nor a privilege.
#[test]
fn a_wrong_file_is_refused_with_the_place_and_what_is_allowed() {
    let lab = Lab::new(SCENARIO);
    let check = |text: &str, code: i32| {
        std::fs::write(lab.path("apply.toml"), text).expect("room");
        lab.run(&["apply", "--check", "apply.toml"]).exits(code)
    };
    let right = "[routers.eth1]\nlaw = \"rcp\"\nrate = \"1 Gbit/s\"\nset = { interval = \"20 ms\" }\n[host]\nlaw = \"xcp\"\n";
    assert_eq!(check(right, 0).stdout(), "apply.toml: valid, 1 routers, a host\n");
    for law in ["xcp-r", "vcp", "dpcp", "tpcp"] {
        let host = format!("[host]\nlaw = \"{law}\"\n");
        assert_eq!(check(&host, 0).stdout(), "apply.toml: valid, 0 routers, a host\n", "{law}");
    }
    let router = |rest: &str| format!("[routers.eth1]\nrate = \"1 Gbit/s\"\n{rest}\n");
    for (text, expected) in [
        (router("law = \"xpc\""), "apply.toml:3:7: there is no law `xpc`; did you mean `xcp`?"),
        (router("law = \"tpcp\""), "apply.toml:3:7: there is no program of the law tpcp for the kernel"),
        (router("law = \"xcp\"\nset = { k = 0.5 }"), "apply.toml:4:13: the law has no --k"),
        (
            router("law = \"xcp\"\nset = { kappa = 5 }"),
            "apply.toml:4:17: xcp has no such setting as `kappa`; allowed: alpha",
        ),
        (
            router("law = \"xcp\"\nset = { alpha = 5 }"),
            "apply.toml:4:17: `alpha` is 5; expected a number from 0 to 1",
        ),
        (
            router("law = \"rcp\"\nset = { interval = \"5 furlongs\" }"),
            "apply.toml:4:20: `5 furlongs` is not a time",
        ),
        (
            router("law = \"xcp\"\nset = { police = 7 }"),
            "apply.toml:4:18: `police` is 7; expected a whole number from 8 to 1000000",
        ),
        (
            router("law = \"pxcp\"\nset = { police = 1024 }"),
            "apply.toml:4:18: --police: the kernel has no policer before pxcp",
        ),
        (
            router("law = \"rcp\"\nset = { intervals = 5 }"),
            "apply.toml:4:21: rcp has no such setting; allowed:",
        ),
        (
            router("law = \"step\"\nset = { packets = 20, sojourn = \"1 ms\" }"),
            "apply.toml:4:19: step: sojourn stands beside `packets`; allowed:",
        ),
        (router("law = \"vcp\"\nencoding = \"shim\""), "apply.toml:4:12: "),
        (
            router("law = \"pxcp\"\nbeside_tcp = \"flows\""),
            "apply.toml:4:14: pxcp has no class of its own beside TCP's; allowed: law = \"xcp\"",
        ),
        (
            router("law = \"xcp\"\nbeside_tcp = \"0.99\""),
            "apply.toml:4:14: `0.99` is no weight of XCP's class; allowed: flows, or XCP's part",
        ),
        (
            "[routers.eth1]\nlaw = \"xcp\"\nrate = \"50 kbit/s\"\nbeside_tcp = \"0.5\"\n".into(),
            "apply.toml:4:14: 50 kbit/s is too little for two classes",
        ),
        (router("law = \"xcp\"\nqueue = \"much\""), "apply.toml:4:9: \"much\" is no limit of a queue;"),
        (
            "[routers.eth1]\nlaw = \"xcp\"\nrate = \"2 Tbit/s\"\n".into(),
            "apply.toml:3:8: a router can not hold a rate of 2 Tbit/s",
        ),
        (
            router("law = \"xcp\"\ncapacity_from = \"modem\""),
            "apply.toml:4:17: `modem` is no source of a capacity; allowed: trace:FILE, command:'CMD', drain, qdisc",
        ),
        (
            router("law = \"xcp\"\ncapacity_from = \"drain\""),
            "apply.toml:4:17: drain would be that of the shaper which is to follow it; --no-shape",
        ),
        (
            "[host]\nlaw = \"xcp\"\nto = [\"10.0.0.0/33\"]\n".into(),
            "apply.toml:3:7: \"10.0.0.0/33\" is no prefix of addresses",
        ),
        ("[host]\nlaw = \"vcp\"\nloss = \"fallback\"\n".into(), "apply.toml:3:8: VCP has no --loss fallback"),
        (
            "[host]\nlaw = \"vcp\"\nencoding = \"shim\"\n".into(),
            "apply.toml:3:12: vcp tells the load in the ECN field",
        ),
        (
            "[host]\nlaw = \"xcp-r\"\nencoding = \"shim\"\n".into(),
            "apply.toml:3:12: xcp-r tells windows in a TCP option",
        ),
        (
            "[host]\nlaw = \"tpcp\"\nencoding = \"option\"\n".into(),
            "apply.toml:3:12: tpcp tells the load in the ECN field",
        ),
        (
            "[host]\nlaw = \"xcp\"\ninterfaces = [\"eth0\"]\n".into(),
            "apply.toml:3:15: the encoding option needs no interface",
        ),
    ] {
        let error = check(&text, 2).stderr();
        assert!(error.contains(expected), "{text}: {error}");
    }
    for words in [&["apply"][..], &["apply", "x.toml", "--metrics", "9417"], &["apply", "x.toml", "--undo"]] {
        lab.run(words).exits(2);
    }
    lab.run(&["apply", "--check", "nowhere.toml"]).exits(2);
}
