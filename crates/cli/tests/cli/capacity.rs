//! Where a router's capacity comes from: sources that speak, fall silent, end and are killed, at an interface of a namespace.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::apply::{Applied, Watch};
use crate::router::{router, state};

impl Applied {
    /// `router attach left` with a source, and with 10 Mbit/s for when that is stale.
    fn follow(&self, source: &str, rest: &[&str]) -> Watch {
        let mut command = Command::new("ip");
        let binary = env!("CARGO_BIN_EXE_congestlab");
        command
            .args(["netns", "exec", &self.room.0, binary, "router", "attach", "left", "--law", "xcp"])
            .args(["--rate", "10 Mbit/s", "--capacity-from", source])
            .args(rest)
            .current_dir(self.lab.path(""));
        Watch::start(&mut command)
    }

    /// Writes the rate that the command prints.
    fn say(&self, rate: &str) {
        let (new, file) = (self.lab.path("new"), self.lab.path("rate"));
        // The command runs as nobody, in this folder.
        let may_look = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.lab.path(""), may_look).expect("ours");
        std::fs::write(&new, format!("{rate}\n")).and_then(|()| std::fs::rename(&new, file)).expect("room");
    }

    /// Waits until the law has this capacity, Mbit/s, and its source this state.
    #[track_caller]
    fn becomes(&self, mbits: u64, state: Option<&str>) -> Value {
        for _ in 0..100 {
            let status = self.status();
            let has_state = status["source"]["state"].as_str() == state;
            if status["capacity_bps"] == mbits * 1_000_000 && has_state {
                return status;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("not {mbits} Mbit/s, {state:?}: {}", self.status());
    }
}

/// Tells the rate ten times a second.
const LOOP: &str = "command:while cat rate; do sleep 0.1; done";

#[test]
fn command_is_followed_by_law_and_shaper_and_rubbish_falls_back() {
    let Some(at) = Applied::new("command_is_followed_by_law_and_shaper_and_rubbish_falls_back") else {
        return;
    };
    at.say("20 Mbit/s");
    let mut watch = at.follow(LOOP, &[]);
    watch.says("left: the capacity comes from command, until this command ends");
    at.becomes(20, Some("fresh"));
    assert!(state(&at.room).1.contains("rate 20Mbit"));
    let shown = router(&at.room, &["status", "left"]).exits(0).stdout();
    assert!(shown.contains("capacity            20 Mbit/s, from command (process "), "{shown}");
    at.say("5 Mbit/s");
    at.becomes(5, Some("fresh"));
    // Somebody else's rate would not last.
    let error = router(&at.room, &["set", "left", "--rate", "7 Mbit/s"]).exits(2).stderr();
    assert!(error.contains("reads the capacity of left from command"), "{error}");

    for (rubbish, why) in [
        ("fast", "it printed \"fast\", which is no rate"),
        ("20", "it printed \"20\""),
        ("0 bit/s", "it printed 0 bit/s; allowed: 1 kbit/s to 1 Tbit/s"),
    ] {
        at.say(rubbish);
        let line = watch.says("is stale");
        assert!(line.contains(why) && line.contains("it is 10 Mbit/s now"), "{line}");
        let status = at.becomes(10, Some("stale"));
        assert!(
            status["warning"].as_str().is_some_and(|text| text.contains("command, is stale")),
            "{status}"
        );
        assert!(state(&at.room).1.contains("rate 10Mbit"));
        let finished = router(&at.room, &["status", "left"]).exits(0);
        let shown = finished.stdout();
        assert!(
            shown.contains("10 Mbit/s, fixed: command (process ") && shown.contains(") is stale"),
            "{shown}"
        );
        assert!(finished.stderr().contains("warning: left: the capacity is the fixed one"));
        at.say("5 Mbit/s");
        watch.says("left: the capacity comes from command again, 5 Mbit/s");
        at.becomes(5, Some("fresh"));
    }

    watch.signal(Signal::TERM);
    watch.says("left keeps its law, at 10 Mbit/s");
    assert!(watch.child.wait().expect("ours").success());
    at.becomes(10, None);
    assert!(state(&at.room).1.contains("rate 10Mbit"));
    router(&at.room, &["detach", "left"]).exits(0);
}

/// Processes that run this command line.
fn running(words: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("Linux").flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").trim() == words).count()
}

#[test]
fn hanging_and_ended_commands_are_stale_and_nothing_of_them_is_left() {
    let Some(at) = Applied::new("hanging_and_ended_commands_are_stale_and_nothing_of_them_is_left") else {
        return;
    };
    // A length of sleep of its own, by which it is found.
    let sleep = format!("sleep 9{}", std::process::id());
    let mut watch = at.follow(&format!("command:echo 20 Mbit/s; exec {sleep}"), &[]);
    watch.says("left: the capacity comes from command");
    at.becomes(20, Some("fresh"));
    watch.says("is stale: it has said nothing for 3 s; it is 10 Mbit/s now");
    // It is started again, and speaks.
    watch.says("comes from command again, 20 Mbit/s");
    at.becomes(20, Some("fresh"));
    assert_eq!(running(&sleep), 1);
    watch.signal(Signal::KILL);
    let _ = watch.child.wait();
    let status = at.becomes(20, Some("unread"));
    assert!(
        status["warning"].as_str().is_some_and(|text| text.ends_with("which read it, is gone")),
        "{status}"
    );
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(running(&sleep), 0);
    // Who sets a rate now takes its place.
    router(&at.room, &["set", "left", "--rate", "7 Mbit/s"]).exits(0);
    at.becomes(7, None);
    router(&at.room, &["detach", "left"]).exits(0);

    let mut watch = at.follow("command:echo 20 Mbit/s; echo no modem >&2; exit 3", &[]);
    watch.says("is stale: it ended with exit status: 3, saying \"no modem\"");
    drop(watch);
    router(&at.room, &["detach", "left"]).exits(0);
    // One that ends well is asked again each second, which is no silence.
    at.say("20 Mbit/s");
    let mut watch = at.follow("command:cat rate", &[]);
    watch.says("left: the capacity comes from command");
    at.becomes(20, Some("fresh"));
    std::thread::sleep(Duration::from_secs(4));
    at.say("30 Mbit/s");
    at.becomes(30, Some("fresh"));
    router(&at.room, &["detach", "left"]).exits(0);
    watch.says("has no router's law any more");
    assert_eq!(watch.child.wait().expect("ours").code(), Some(1));
}

#[test]
fn trace_is_replayed_in_steps_of_a_tenth_of_a_second() {
    let Some(at) = Applied::new("trace_is_replayed_in_steps_of_a_tenth_of_a_second") else { return };
    // 12 Mbit/s for half a second, then 3 Mbit/s.
    let lines = (0..500).chain((500..=1000).filter(|ms| ms % 4 == 0)).map(|ms: u32| format!("{ms}\n"));
    std::fs::write(at.lab.path("cell"), lines.collect::<String>()).expect("room");
    let mut watch = at.follow("trace:cell", &[]);
    watch.says("left: the capacity comes from trace");
    let (mut high, mut low) = (0, 0);
    for _ in 0..100 {
        let capacity = at.status()["capacity_bps"].as_u64().expect("a number");
        high += u32::from((11_800_000..=12_200_000).contains(&capacity));
        low += u32::from((2_900_000..=3_300_000).contains(&capacity));
        if high > 3 && low > 3 {
            break;
        }
    }
    assert!(high > 3 && low > 3, "{high} times 12 Mbit/s, {low} times 3");
    watch.signal(Signal::INT);
    watch.says("left keeps its law, at 10 Mbit/s");
    router(&at.room, &["detach", "left"]).exits(0);
    for (source, said) in [
        ("trace:nowhere", "can not read the trace nowhere"),
        ("drain", "drain would be that of the shaper which is to follow it"),
        ("bql", "bql would be that of the shaper which is to follow it"),
        ("bql --no-shape", "left keeps no byte queue limits: its driver does not say what is in flight"),
        ("modem", "`modem` is no source of a capacity; allowed: trace:FILE"),
    ] {
        let mut words = vec!["attach", "left", "--law", "xcp", "--rate", "10 Mbit/s", "--capacity-from"];
        words.extend(source.split(' '));
        let error = router(&at.room, &words).exits(2).stderr().replace('\n', " ");
        assert!(error.contains(said.split(';').next().unwrap_or_default()), "{error}");
        router(&at.room, &["status", "left"]).exits(2);
    }
}

#[test]
fn watched_file_has_sources_too() {
    let Some(at) = Applied::new("watched_file_has_sources_too") else { return };
    at.say("20 Mbit/s");
    let with = |rest: &str| format!("[routers.left]\nlaw = \"xcp\"\nrate = \"10 Mbit/s\"\n{rest}\n");
    let source = |rate: &Path| {
        with(&format!("capacity_from = \"command:while cat {}; do sleep 0.1; done\"", rate.display()))
    };
    at.write(&source(&at.lab.path("rate")));
    // Nobody would stay to read it.
    let error = at.apply(&["apply.toml"]).exits(2).stderr();
    assert!(error.contains("apply.toml:4:17: the capacity can not follow command:"), "{error}");
    let mut watch = Watch::start(&mut at.command(&["--watch", "apply.toml"]));
    watch.says("left: attached xcp at 10 Mbit/s");
    at.becomes(20, Some("fresh"));
    // What is applied again follows, too.
    at.ip("link set left mtu 9000");
    watch.says("left: xcp at 20 Mbit/s has a new shaper's bucket for an MTU of 9000");
    at.say("rubbish");
    watch.says("left: the source of the capacity, command, is stale");
    at.becomes(10, Some("stale"));
    at.say("30 Mbit/s");
    at.becomes(30, Some("fresh"));
    at.ip("link del left");
    watch.says("left: command tells nobody its rate: there is no interface left");
    at.ip("link add left type veth peer name right");
    watch.says("left: attached xcp at ");
    at.becomes(30, Some("fresh"));
    at.write(&with(""));
    watch.says("apply.toml has changed");
    at.becomes(10, None);
    at.write(&source(&at.lab.path("rate")));
    at.becomes(30, Some("fresh"));
    watch.signal(Signal::TERM);
    watch.says("what was applied stays");
    at.becomes(10, None);
}
