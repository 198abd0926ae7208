//! `congestlab router` at an interface of a namespace: what each command says and does.

use std::process::Command;

use serde_json::Value;

use crate::apply::Watch;
use crate::machine::{Room, skip};
use crate::{Finished, Lab, SCENARIO};

/// A namespace with the interfaces `left` and `right`; or the reason why there is none.
pub(crate) fn room(test: &str) -> Option<Room> {
    let report = Lab::new(SCENARIO).run(&["check", "machine", "--json"]).exits(0).json();
    if report["able"]["router"] != true {
        skip(test, "no router here");
        return None;
    }
    let room = Room(format!("congestlab-router-{}-{}", std::process::id(), &test[..6]));
    let name = &room.0;
    let lines = [
        format!("netns add {name}"),
        format!("-n {name} link add left type veth peer name right"),
        format!("-n {name} link set left up"),
    ];
    for line in lines {
        if !Command::new("ip").args(line.split(' ')).status().is_ok_and(|status| status.success()) {
            skip(test, "no namespaces, or no veth");
            return None;
        }
    }
    Some(room)
}

/// `congestlab router WORDS` in there.
pub(crate) fn router(room: &Room, words: &[&str]) -> Finished {
    let binary = env!("CARGO_BIN_EXE_congestlab");
    let output = Command::new("ip").args(["netns", "exec", &room.0, binary, "router"]).args(words).output();
    Finished(output.expect("ip has run before"))
}

pub(crate) fn state(room: &Room) -> (Value, String) {
    let status = router(room, &["status", "left", "--json"]).exits(0).json();
    let line = ["netns", "exec", &room.0, "tc", "qdisc", "show", "dev", "left"];
    let qdiscs = Command::new("ip").args(line).output().expect("ip has run before").stdout;
    (status["interfaces"][0]["capacity_bps"].clone(), String::from_utf8_lossy(&qdiscs).into_owned())
}

#[test]
fn a_rate_is_set_while_the_law_runs_and_a_wrong_one_changes_nothing() {
    let Some(room) = room("a_rate_is_set_while_the_law_runs_and_a_wrong_one_changes_nothing") else { return };
    let set = |rate: &str| router(&room, &["set", "left", "--rate", rate]);
    let error = set("20 Mbit/s").exits(2).stderr();
    assert!(error.contains("left has no router's law") && error.contains("router attach left"), "{error}");

    for law in ["xcp", "pxcp", "vcp", "dpcp", "scone", "pi2"] {
        router(&room, &["attach", "left", "--law", law, "--rate", "10 Mbit/s"]).exits(0);
        let before = state(&room);
        assert!(before.0 == 10_000_000 && before.1.contains("rate 10Mbit"), "{before:?}");
        let wrong = [
            ("0 bit/s", 2, "a router can not hold a rate of 0 bit/s"),
            ("2 Tbit/s", 2, "1 kbit/s to 1 Tbit/s"),
            ("20", 2, "--rate"),
            ("-1 Mbit/s", 2, "--rate"),
        ];
        for (rate, code, said) in wrong {
            let error = set(rate).exits(code).stderr();
            assert!(error.contains(said), "{rate}: {error}");
        }
        let error = router(&room, &["set", "left"]).exits(2).stderr();
        assert!(error.contains("--rate"), "{error}");
        let error = router(&room, &["set", "nowhere", "--rate", "20 Mbit/s"]).exits(2).stderr();
        assert!(error.contains("nowhere"), "{error}");
        let printed = router(&room, &["set", "left", "--rate", "20 Mbit/s", "--dry-run"]).exits(0).stdout();
        assert!(printed.contains("tc qdisc change dev left") && printed.contains("20 Mbit/s"), "{printed}");
        assert_eq!(state(&room), before);

        let said = set("20 Mbit/s").exits(0).stderr();
        assert!(said.contains(&format!("left runs {law} at 20 Mbit/s")), "{said}");
        let after = state(&room);
        assert!(after.0 == 20_000_000 && after.1.contains("rate 20Mbit"), "{after:?}");
        let shown = router(&room, &["status", "left"]).exits(0).stdout();
        assert!(shown.contains("capacity            20 Mbit/s"), "{shown}");
        router(&room, &["detach", "left"]).exits(0);
    }
}

#[test]
fn a_shaper_of_somebody_else_keeps_its_rate_and_one_that_is_gone_is_told() {
    let Some(room) = room("a_shaper_of_somebody_else_keeps_its_rate_and_one_that_is_gone_is_told") else {
        return;
    };
    let tc = |words: &str| {
        let line = ["netns", "exec", &room.0, "tc", "qdisc"];
        let status = Command::new("ip").args(line).args(words.split(' ')).status();
        assert!(status.is_ok_and(|status| status.success()), "{words}");
    };
    let set = |rate: &str| router(&room, &["set", "left", "--rate", rate]);
    tc("add dev left root handle 7: tbf rate 30mbit burst 5kb latency 50ms");
    router(&room, &["attach", "left", "--law", "xcp", "--no-shape"]).exits(0);
    let said = set("20 Mbit/s").exits(0).stderr();
    assert!(said.contains("its shaper, tbf, is not congestlab's"), "{said}");
    let (capacity, qdiscs) = state(&room);
    assert!(capacity == 20_000_000 && qdiscs.contains("rate 30Mbit"), "{capacity} {qdiscs}");
    router(&room, &["detach", "left"]).exits(0);
    tc("del dev left root");

    router(&room, &["attach", "left", "--law", "xcp", "--rate", "10 Mbit/s"]).exits(0);
    tc("del dev left root");
    let error = set("20 Mbit/s").exits(2).stderr();
    assert!(error.contains("the shaper of left is gone"), "{error}");
    assert_eq!(state(&room).0, 10_000_000);
}

/// Settings and counts of a queue law, in the words of scenarios.
#[test]
fn a_queue_law_is_told_its_settings_and_tells_its_counts() {
    let Some(room) = room("a_queue_law_is_told_its_settings_and_tells_its_counts") else { return };
    let attach = |law: &str, words: &[&str]| {
        router(&room, &[&["attach", "left", "--law", law, "--rate", "10 Mbit/s"], words].concat())
    };
    for (law, words, says) in [
        ("step", &["--set", "above=20"][..], "step has no such setting"),
        ("step", &["--set", "packets=20", "--set", "sojourn=1 ms"], "sojourn stands beside `packets`"),
        ("step", &["--encoding", "shim"], "--encoding is for XCP and P-XCP"),
        ("step", &["--alpha", "0.5"], "the law has no --alpha"),
        ("step", &["--object", "own.o"], "step has its own program, so own.o is not wanted"),
        ("pie", &["--set", "target=0 s"], "target is zero"),
        ("codel", &[], "there is no law `codel`"),
    ] {
        let error = attach(law, words).exits(2).stderr();
        assert!(error.contains(says), "{law} {words:?}: {error}");
    }
    let left = router(&room, &["status"]).exits(0).stdout();
    assert_eq!(left, "no interface has a router's law\n", "of what was refused");
    attach("step", &["--set", "packets=20", "--set", "drop=true"]).exits(0);
    let shown = router(&room, &["status", "left"]).exits(0).stdout();
    for line in
        ["left: step, no header", "dropped_packets     0", "marked_packets      0", "wait_ms             0"]
    {
        assert!(shown.contains(line), "{shown}");
    }
    let json = router(&room, &["status", "left", "--json"]).exits(0).json();
    assert_eq!(json["interfaces"][0]["series"]["marked_packets"], 0.0, "{json:#}");
    assert_eq!(json["interfaces"][0]["other_build"], false);
}

/// By tcx, and by the filter that kernels before it have.
#[test]
fn a_law_is_put_in_the_place_of_another_and_its_queue_stays() {
    let Some(room) = room("a_law_is_put_in_the_place_of_another_and_its_queue_stays") else { return };
    for way in ["tcx", "clsact"] {
        let attach = |words: &str| {
            let line =
                ["netns", "exec", &room.0, env!("CARGO_BIN_EXE_congestlab"), "router", "attach", "left"];
            let mut command = Command::new("ip");
            command.args(line).args(words.split(' '));
            if way == "clsact" {
                command.env("CONGESTLAB_CLSACT", "1");
            }
            Finished(command.output().expect("ip has run before"))
        };
        let law = || {
            let status = router(&room, &["status", "left", "--json"]).exits(0).json();
            let one = &status["interfaces"][0];
            assert_eq!((&one["hook"], &one["other_build"]), (&way.into(), &false.into()), "{one:#}");
            one["law"].as_str().expect("a name").to_owned()
        };
        attach("--law xcp --rate 10Mbit/s --replace").exits(0);
        let before = state(&room);
        let error = attach("--law pxcp --rate 10Mbit/s").exits(2).stderr();
        assert!(error.contains("with --replace"), "{error}");
        let said = attach("--law xcp --rate 10Mbit/s --replace").exits(0).stderr();
        assert!(said.contains("left runs xcp at 10 Mbit/s already"), "{said}");
        let printed = attach("--law pxcp --rate 10Mbit/s --replace --dry-run").exits(0).stdout();
        assert!(printed.contains("bpf replace cl_router"), "{printed}");
        assert_eq!(law(), "xcp");
        for (other, state_of) in [
            ("xcp --encoding both", "the law goes on where it was"),
            ("xcp --alpha 0.3", "the law begins anew, for the one before had other constants"),
            ("pxcp", "the law begins anew, for the one before was another"),
            ("vcp", "begins anew"),
            ("scone", "begins anew"),
            ("step", "begins anew"),
            ("pie", "the law begins anew, for the one before was another"),
            ("xcp", "begins anew"),
        ] {
            let said = attach(&format!("--law {other} --rate 10Mbit/s --replace")).exits(0).stderr();
            assert!(said.contains("in the place of what was there; its queue stayed"), "{said}");
            assert!(said.contains(state_of), "{said}");
            let other = other.split(' ').next().expect("a name");
            assert_eq!((law(), state(&room)), (other.into(), before.clone()));
        }
        let said = attach("--law xcp --rate 20Mbit/s --replace").exits(0).stderr();
        assert!(said.contains("rate, before 10 Mbit/s"), "{said}");
        let error = attach("--law xcp --rate 20Mbit/s --replace --no-shape").exits(2).stderr();
        assert!(error.contains("congestlab router detach left"), "{error}");
        assert_eq!(state(&room).0, 20_000_000);
        router(&room, &["detach", "left"]).exits(0);
        let qdiscs = qdiscs_of_nothing(&room);
        assert!(!qdiscs.contains("tbf") && !qdiscs.contains("clsact"), "{qdiscs}");
    }
}

/// What a second command, a killed one and a wrong one find.
#[test]
fn classes_beside_tcp_are_followed_until_the_command_ends_or_is_killed() {
    let Some(room) = room("beside_tcp_classes_are_followed_until_the_command_ends") else { return };
    let words = |words: &str| {
        let line = format!("attach left --law xcp --rate 10Mbit/s {words}");
        router(&room, &line.split(' ').collect::<Vec<_>>())
    };
    for (line, said) in [
        ("--beside-tcp=2", "`2` is no weight of XCP's class"),
        ("--beside-tcp=windows", "allowed: flows, or XCP's part of the link from 0.05 to 0.95"),
        ("--beside-tcp --no-shape", "two classes are parts of a shaper"),
        ("--beside-tcp --rate 50kbit/s", "cannot be used multiple times"),
        ("--beside-tcp --capacity-from drain", "would be that of the shaper"),
    ] {
        let error = words(line).exits(2).stderr();
        assert!(error.contains(said), "{line}: {error}");
    }
    for law in ["pxcp", "xcp-i", "vcp", "step", "rcp"] {
        let line = ["attach", "left", "--law", law, "--rate", "10 Mbit/s", "--beside-tcp"];
        let error = router(&room, &line).exits(2).stderr();
        // An address is asked for before.
        let said = if law == "xcp-i" { "left" } else { "no class of its own beside TCP's" };
        assert!(error.contains(said), "{law}: {error}");
    }
    assert!(!qdiscs_of_nothing(&room).contains("cc1"));
    let printed = words("--beside-tcp --dry-run").exits(0).stdout();
    assert!(printed.contains("classid cc1:10 htb rate 5000000bit ceil 10000000bit"), "{printed}");
    assert!(!qdiscs_of_nothing(&room).contains("cc1"));

    words("--beside-tcp=0.3").exits(0);
    let shown = || router(&room, &["status", "left"]).exits(0);
    assert!(shown().stdout().contains("XCP's part          0.300, for good"), "{}", shown().stdout());
    router(&room, &["detach", "left"]).exits(0);

    let follow = |more: &[&str]| {
        let mut command = Command::new("ip");
        let line = ["netns", "exec", &room.0, env!("CARGO_BIN_EXE_congestlab"), "router", "attach", "left"];
        let line = line.iter().chain(&["--law", "xcp", "--rate", "10 Mbit/s", "--beside-tcp"]).chain(more);
        Watch::start(command.args(line))
    };
    let mut watch = follow(&[]);
    watch.says("left: XCP and all else share it by their numbers of flows, until this command ends");
    assert!(
        shown().stdout().contains("XCP's part          0.500, by 0.0 flows of XCP and 0.0 others (process ")
    );
    let error = words("--beside-tcp --replace").exits(2).stderr();
    assert!(error.contains("counts the flows of left"), "{error}");
    // SIGKILL, which nobody can clean up after.
    watch.child.kill().expect("it runs");
    let _ = watch.child.wait();
    let warns = |said: &str| {
        let text = shown().stderr();
        assert!(text.contains(said), "{text}");
    };
    warns("XCP's part of the link stays 0.500 whatever flows there are: process ");
    let mut watch = follow(&["--replace"]);
    watch.says("left: XCP and all else share it by their numbers of flows");
    assert_eq!(shown().stderr(), "");
    watch.signal(rustix::process::Signal::TERM);
    watch.says("left keeps its law, at 10 Mbit/s");
    assert!(watch.child.wait().expect("ours").success());
    warns("nobody counts them");
    let mut watch = follow(&["--replace"]);
    watch.says("left: XCP and all else share it by their numbers of flows");
    router(&room, &["detach", "left"]).exits(0);
    watch.says("left has no classes of XCP and all else any more");
    assert_eq!(watch.child.wait().expect("ours").code(), Some(1));
    assert!(!qdiscs_of_nothing(&room).contains("cc1"));
}

/// Qdiscs of an interface without a law.
fn qdiscs_of_nothing(room: &Room) -> String {
    let status = router(room, &["status", "--json"]).exits(0).json();
    assert_eq!(status["interfaces"], Value::Array(vec![]));
    let line = ["netns", "exec", &room.0, "tc", "qdisc", "show", "dev", "left"];
    let qdiscs = Command::new("ip").args(line).output().expect("ip has run before").stdout;
    String::from_utf8_lossy(&qdiscs).into_owned()
}

#[test]
fn police_is_told_and_shown_and_refused_where_there_is_none() {
    let Some(room) = room("police_is_told_and_shown_and_refused_where_there_is_none") else { return };
    let attach = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        router(&room, &[&["attach", "left", "--rate", "10 Mbit/s", "--law"], &words[..]].concat())
    };
    for (words, said) in [
        ("pxcp --police 1024", "no policer before pxcp"),
        ("vcp --police 1024", "no policer before vcp"),
        ("rcp --police 1024", "no policer before rcp"),
        ("xcp --police 7", "a whole number from 8 to 1000000"),
        ("xcp --police 1000001", "a whole number from 8 to 1000000"),
        ("xcp --police many", "a whole number from 8 to 1000000"),
    ] {
        let error = attach(words).exits(2).stderr();
        assert!(error.contains(said), "{words}: {error}");
    }
    let said = attach("xcp --police 100000 --alpha 0.3").exits(0).stderr();
    assert!(said.contains("records of 100000 flows: 13.6 MB"), "{said}");
    let shown = router(&room, &["status", "left"]).exits(0).stdout();
    for line in [
        "left: xcp,",
        "policer             100000 records, 13.6 MB",
        "flows held          0, since the start 0",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    router(&room, &["set", "left", "--rate", "20 Mbit/s"]).exits(0);
    let status = router(&room, &["status", "left", "--json"]).exits(0).json();
    let status = &status["interfaces"][0];
    assert_eq!(
        (&status["police"]["records"], &status["capacity_bps"]),
        (&100_000.into(), &20_000_000.into())
    );
    for count in ["policed_flows", "policed_packets", "clamped_packets"] {
        assert_eq!(status[count], 0, "{status}");
    }
    let again = ["attach", "left", "--law", "xcp", "--rate", "20 Mbit/s", "--replace"];
    router(&room, &again).exits(0);
    let status = router(&room, &["status", "left", "--json"]).exits(0).json();
    assert!(status["interfaces"][0].get("police").is_none(), "{status}");
    router(&room, &["detach", "left"]).exits(0);
}

/// The agent of XCP-i answers strangers: it has no more than it needs, at no other address than packets state.
#[test]
fn agent_listens_at_its_interface_as_another_user() {
    let Some(room) = room("agent_listens_at_its_interface_as_another_user") else { return };
    let ip = |words: &str| {
        let status = Command::new("ip").args(["-n", &room.0]).args(words.split(' ')).status();
        assert!(status.is_ok_and(|status| status.success()), "{words}");
    };
    ip("addr add 10.9.0.1/24 dev left");
    ip("addr add 10.9.1.1/24 dev right");
    router(&room, &["attach", "left", "--law", "xcp-i", "--rate", "10 Mbit/s"]).exits(0);
    let binary = env!("CARGO_BIN_EXE_congestlab");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &room.0, binary, "router", "agent"]);
    let mut agent = crate::apply::Watch::start(&mut command);
    agent.says("asks and answers for clouds");
    let of =
        |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", agent.child.id())).expect("it runs");
    let status = of("status");
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).expect(name).trim();
    assert!(line("Uid:").split_whitespace().all(|uid| uid != "0"), "{status}");
    // CAP_BPF, for the table of the router.
    assert_eq!(
        (line("CapEff:"), line("CapPrm:"), line("CapBnd:")),
        ("0000008000000000", "0000008000000000", "0000008000000000")
    );
    assert_eq!((line("Groups:"), line("NoNewPrivs:")), ("", "1"));
    // 10.9.0.1, port 58430.
    let sockets = of("net/udp");
    let own: Vec<&str> = sockets.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(own, ["0100090A:E43E"], "{sockets}");
    agent.signal(rustix::process::Signal::INT);
    assert_eq!(agent.child.wait().expect("ours").code(), Some(0));
    // At another address, if that is said.
    let mut command = Command::new("ip");
    command.args([
        "netns", "exec", &room.0, binary, "router", "agent", "--listen", "10.9.1.1", "--user", "daemon",
    ]);
    let mut agent = crate::apply::Watch::start(&mut command);
    agent.says("asks and answers for clouds");
    let sockets = std::fs::read_to_string(format!("/proc/{}/net/udp", agent.child.id())).expect("it runs");
    assert!(sockets.contains("0101090A:E43E") && !sockets.contains("0100090A:E43E"), "{sockets}");
    drop(agent);
}

/// `ip netns exec` hides the hierarchy of control groups.
#[test]
fn status_of_a_host_in_a_namespace_names_its_group_and_its_own_connections() {
    let Some(room) = room("status_of_a_host_in_a_namespace_names_its_group_and_its_own_connections") else {
        return;
    };
    let host = |words: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &room.0, env!("CARGO_BIN_EXE_congestlab"), "host"]).args(words);
        Finished(command.output().expect("ip has run before"))
    };
    let enabled = host(&["enable", "--law", "xcp", "--to", "10.99.0.0/24"]);
    if enabled.0.status.code() == Some(4) {
        return println!(
            "SKIP status_of_a_host_in_a_namespace_names_its_group_and_its_own_connections: {}",
            enabled.stderr()
        );
    }
    let shown = host(&["status"]).exits(0).stdout();
    host(&["disable"]).exits(0);
    assert!(shown.contains("\nprocesses in  /sys/fs/cgroup, in"), "{shown}");
    assert!(shown.contains(" since it was enabled; now 0 of this namespace\n"), "{shown}");
}
