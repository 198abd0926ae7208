//! `congestlab link` as a shell sees it: exit codes, streams, what is left behind. What passes through
//! a link is judged in `crates/linux/tests/link.rs`. Needs root; skips without.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use std::{fs, thread};

use congestlab_linux::sys::command;
use congestlab_linux::sys::netns::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_congestlab");

/// True where links can be made; else says that the test is skipped.
fn can(test: &str) -> bool {
    let reason = if !rustix::process::geteuid().is_root() {
        "needs root"
    } else if !Path::new("/bin/bash").exists() {
        "needs bash, which connects without other tools"
    } else {
        return true;
    };
    eprintln!("SKIP {test}: {reason}");
    false
}

fn link(options: &[&str], script: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("link").args(options).args(["--", "bash", "-c", script]);
    command.stdin(Stdio::null()).env_remove("CONGESTLAB_BASE");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(mut command: Command, code: i32) -> Output {
    let output = command.output().expect("the binary of this package runs");
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    output
}

/// Says the name of the namespace that it is in, then what `script` says.
fn named(script: &str) -> String {
    format!("ip netns identify $$; {script}")
}

/// The identifier of a link from the name of its inside.
fn identifier(inside: &str) -> String {
    inside.trim().strip_prefix("cl-").and_then(|rest| rest.strip_suffix("-inside")).expect(inside).to_owned()
}

/// What is left of a link.
fn left(id: &str) -> Vec<String> {
    let paths = [
        format!("/run/netns/cl-{id}-inside"),
        format!("/run/netns/cl-{id}-wire"),
        format!("/sys/class/net/cl-{id}"),
        format!("/run/congestlab/{id}"),
    ];
    let mut left: Vec<String> = paths.into_iter().filter(|path| Path::new(path).exists()).collect();
    let tables = Command::new("nft").args(["list", "tables"]).output();
    if tables.is_ok_and(|output| text(&output.stdout).contains(id)) {
        left.push(format!("table {id}"));
    }
    left
}

/// Waits until nothing is left, which takes no longer than 2 s where nobody else is busy.
fn is_gone(id: &str) {
    for _ in 0..100 {
        if left(id).is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("left behind: {:?}", left(id));
}

/// Starts a link whose command waits; returns it with its identifier.
fn start(options: &[&str]) -> (Child, String) {
    use std::io::{BufRead, BufReader, Read as _, Seek as _};
    let mut command = link(options, &named("sleep 1000 & sleep 1000; echo not reached"));
    // A file, because nobody reads a pipe while the command waits.
    let mut words = tempfile::tempfile().expect("a file for what it says");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(words.try_clone().expect("a second handle"))
        .spawn()
        .expect("the binary of this package runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
    if line.trim().is_empty() {
        let _ = child.kill();
        let status = child.wait();
        let mut said = String::new();
        let _ = words.rewind().and_then(|()| words.read_to_string(&mut said));
        panic!("no name of a namespace: {status:?}, {said}");
    }
    (child, identifier(&line))
}

#[test]
fn the_command_has_its_streams_and_its_exit_code() {
    if !can("the_command_has_its_streams_and_its_exit_code") {
        return;
    }
    let output = run(link(&["--delay", "1 ms"], &named("echo $CONGESTLAB_BASE; echo oops >&2; exit 7")), 7);
    let said = text(&output.stdout);
    let (inside, base) = said.split_once('\n').unwrap();
    assert!(base.trim().starts_with("100."), "{said}");
    assert!(text(&output.stderr).contains("oops"));
    is_gone(&identifier(inside));
    run(link(&[], "kill -TERM $$"), 128 + 15);
    let output = run(link(&["-q"], "true"), 0);
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
}

/// The command is the user's, and looks at the link that it runs behind.
#[test]
fn the_thread_that_handles_frames_has_no_rights() {
    if !can("the_thread_that_handles_frames_has_no_rights") {
        return;
    }
    let look = "sleep 0.5; cat /proc/$PPID/task/*/status";
    let text = text(&run(link(&["--rate", "10 Mbit/s"], look), 0).stdout);
    let of = |name: &str| -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix(name)).map(str::trim).collect()
    };
    let none = "0000000000000000";
    let rights: Vec<_> = of("CapEff:").into_iter().zip(of("CapPrm:")).zip(of("Uid:")).collect();
    let is_free = |((effective, permitted), uid): &((&str, &str), &str)| {
        *effective == none && *permitted == none && uid.split_whitespace().all(|uid| uid != "0")
    };
    assert_eq!(rights.iter().filter(|one| is_free(one)).count(), 1, "{text}");
}

#[test]
fn links_nest_and_each_adds_its_delay() {
    if !can("links_nest_and_each_adds_its_delay") {
        return;
    }
    let server = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/$CONGESTLAB_BASE/{port} && cat <&3");
    let answer = thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, from) = server.accept().unwrap();
        stream.write_all(b"hello").unwrap();
        from
    });
    let mut command = Command::new(BINARY);
    let one = ["link", "--delay", "20 ms", "--rate", "50 Mbit/s", "--report"];
    let folder = tempfile::tempdir().unwrap();
    let report = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    command
        .arg("-q")
        .args(one)
        .arg(report("outer"))
        .args(["--", BINARY, "-q"])
        .args(one)
        .arg(report("inner"));
    command.args(["--", "bash", "-c", &script]).stdin(Stdio::null());
    let output = run(command, 0);
    assert_eq!(text(&output.stdout), "hello");
    assert!(answer.join().unwrap().ip().to_string().starts_with("100."));
    for name in ["outer", "inner"] {
        let report: Value = serde_json::from_slice(&fs::read(folder.path().join(name)).unwrap()).unwrap();
        assert!(report["up"]["sent_packets"].as_u64().unwrap() >= 2, "{report}");
        assert!(report["down"]["delivered_packets"].as_u64().unwrap() >= 2, "{report}");
        assert_eq!((&report["up"]["capacity_bps"], &report["exit_status"]), (&50_000_000.into(), &0.into()));
        // A connection and an answer: at least a round trip of both links.
        assert!(report["duration_s"].as_f64().unwrap() > 0.08, "{report}");
    }
}

#[test]
fn the_report_is_the_last_line_of_stdout_or_a_file() {
    if !can("the_report_is_the_last_line_of_stdout_or_a_file") {
        return;
    }
    let script = "for i in 1 2 3 4 5; do echo x > /dev/udp/$CONGESTLAB_BASE/9; done; sleep 1.3; echo said";
    let output =
        run(link(&["--json", "--meter", "--up-rate", "1 Mbit/s", "--packet-error-rate", "1"], script), 0);
    let said = text(&output.stdout);
    assert!(said.starts_with("said\n"), "{said}");
    let report: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!((&report["up"]["arrived_packets"], &report["up"]["errors"]), (&5.into(), &5.into()));
    assert_eq!(
        (&report["up"]["capacity_bps"], &report["down"]["capacity_bps"]),
        (&1_000_000.into(), &Value::Null)
    );
    assert_eq!(report["up"]["delivered_packets"], 0);
    assert!(report["up"]["lateness"]["p99_ms"].is_number() && report["trustworthy"].is_boolean(), "{report}");
    assert!(text(&output.stderr).contains(" up 0.00 Mbit/s, queue 0 packets"), "{}", text(&output.stderr));
}

/// A command that sends nothing measures nothing, however punctual the machine was.
#[test]
fn a_link_without_a_packet_is_not_trusted() {
    if !can("a_link_without_a_packet_is_not_trusted") {
        return;
    }
    let output = run(link(&["--json"], "true"), 0);
    let report: Value = serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap();
    assert_eq!(
        (&report["up"]["arrived_packets"], &report["down"]["arrived_packets"]),
        (&0.into(), &0.into())
    );
    assert_eq!(report["trustworthy"], false, "{report}");
    let told = text(&run(link(&[], "true"), 0).stderr);
    assert!(told.contains("no packet came to the link, so nothing was measured"), "{told}");
    assert!(!told.contains("trust"), "{told}");
}

#[test]
fn a_link_that_was_held_up_is_not_to_be_trusted() {
    if !can("a_link_that_was_held_up_is_not_to_be_trusted") {
        return;
    }
    let script = "for i in {1..60}; do echo x > /dev/udp/$CONGESTLAB_BASE/9; sleep 0.01; done";
    let mut command = link(&["--json", "--delay", "5 ms"], &format!("echo; {script}; sleep 0.5"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    use std::io::{BufRead, BufReader};
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().expect("the command has begun").unwrap();
    let pid = Pid::from_child(&child);
    thread::sleep(Duration::from_millis(100));
    kill_process(pid, Signal::STOP).unwrap();
    thread::sleep(Duration::from_millis(300));
    kill_process(pid, Signal::CONT).unwrap();
    let report: Value = serde_json::from_str(&lines.last().unwrap().unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(report["up"]["delivered_packets"], 60, "late, but all of them");
    assert!(report["up"]["lateness"]["max_ms"].as_f64().unwrap() > 100.0, "{report}");
    assert_eq!((&report["trustworthy"], &report["verdict"]), (&false.into(), &"too busy to trust".into()));
    assert!(report["doubts"][0].as_str().unwrap().contains("late"), "{report}");
}

#[test]
fn two_links_at_once_have_addresses_of_their_own() {
    if !can("two_links_at_once_have_addresses_of_their_own") {
        return;
    }
    let started = [(); 2].map(|()| start(&["--delay", "1 ms"]));
    let routes = text(&Command::new("ip").args(["-4", "route"]).output().unwrap().stdout);
    for (_, id) in &started {
        assert!(routes.contains(&format!("dev cl-{id}")), "{routes}");
    }
    for (mut child, id) in started {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        is_gone(&id);
    }
}

#[test]
fn nothing_is_left_behind_whatever_ends_it() {
    if !can("nothing_is_left_behind_whatever_ends_it") {
        return;
    }
    for (signal, code) in [(Signal::TERM, Some(130)), (Signal::HUP, Some(130)), (Signal::KILL, None)] {
        let (mut child, id) = start(&["--rate", "10 Mbit/s", "--meter"]);
        assert!(!left(&id).is_empty());
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        is_gone(&id);
    }
}

/// A namespace with a way out, so that a link in it forwards.
struct Inside(Namespace);

impl Inside {
    fn new(name: &str, forwards: &str) -> Self {
        let name = format!("cl-{name}{}", std::process::id());
        let inside = Self(Namespace::create(&name).unwrap());
        for line in ["link add out type veth peer other", "link set out up", "link set other up"] {
            command::query(&format!("ip -n {name} {line}")).unwrap();
        }
        command::query(&format!("ip -n {name} route add default dev out")).unwrap();
        inside.0.run(|| fs::write(FORWARD, forwards)).unwrap().unwrap();
        inside
    }

    fn forwards(&self) -> String {
        self.0.run(|| fs::read_to_string(FORWARD)).unwrap().unwrap().trim().to_owned()
    }

    fn start(&self) -> (Child, String) {
        self.0.run(|| start(&["--delay", "1 ms"])).unwrap()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = Namespace::remove(self.0.name());
    }
}

const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

#[test]
fn the_last_link_puts_forwarding_back_and_only_where_it_was_set() {
    if !can("the_last_link_puts_forwarding_back_and_only_where_it_was_set") {
        return;
    }
    let end = |(mut child, id): (Child, String), signal: Signal| {
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        is_gone(&id);
    };
    // What another namespace has is not what this one gets back.
    let (elsewhere, here) = (Inside::new("e", "1"), Inside::new("h", "0"));
    let other = elsewhere.start();
    let links = [here.start(), here.start()];
    if here.forwards() == "0" {
        links.into_iter().chain([other]).for_each(|link| end(link, Signal::INT));
        return eprintln!("SKIP the_last_link_puts_forwarding_back_and_only_where_it_was_set: no nft");
    }
    let [first, last] = links;
    end(first, Signal::KILL);
    assert_eq!(here.forwards(), "1", "the other link needs it");
    end(last, Signal::KILL);
    assert_eq!(here.forwards(), "0");
    end(other, Signal::INT);
    assert_eq!(elsewhere.forwards(), "1");
}

/// Inside, where /sys shows the interfaces of the machine.
#[test]
fn the_interface_is_gone_when_a_link_in_a_namespace_returns() {
    if !can("the_interface_is_gone_when_a_link_in_a_namespace_returns") {
        return;
    }
    let inside = Inside::new("i", "0");
    let (mut child, id) = inside.start();
    let interfaces = || inside.0.run(|| command::query("ip -o link show")).unwrap().unwrap();
    assert!(interfaces().contains(&id), "{}", interfaces());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap();
    assert!(!interfaces().contains(&id), "{}", interfaces());
}

/// The process that undoes what the link with this identifier did.
fn supervisor(id: &str) -> Pid {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let found = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).find(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).skip(1).take(2).eq([&b"supervise"[..], id.as_bytes()])
    });
    found.and_then(Pid::from_raw).expect("it has one")
}

#[test]
fn what_is_left_in_another_namespace_is_undone_there() {
    if !can("what_is_left_in_another_namespace_is_undone_there") {
        return;
    }
    let there = Inside::new("t", "0");
    let (mut child, id) = there.start();
    kill_process(supervisor(&id), Signal::KILL).unwrap();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    // Or another test begins a link in this moment, which cleans up, too.
    let mut clean = Command::new(BINARY);
    clean.args(["check", "machine", "--clean"]);
    run(clean, 0);
    is_gone(&id);
    assert_eq!(there.forwards(), "0");
    let left = there.0.run(|| {
        let tables = command::query("nft list tables").unwrap_or_default();
        format!("{tables}{}", command::query("ip -o link show").unwrap())
    });
    assert!(!left.as_ref().unwrap().contains(&id), "{left:?}");
}

#[test]
fn a_folder_whose_maker_was_killed_before_it_wrote_to_it_is_removed() {
    if !can("a_folder_whose_maker_was_killed_before_it_wrote_to_it_is_removed") {
        return;
    }
    let folder = format!("/run/congestlab/{:06x}", std::process::id());
    fs::create_dir_all(&folder).unwrap();
    congestlab_linux::supervisor::clean().unwrap();
    assert!(!Path::new(&folder).exists());
}

#[test]
fn an_unknown_option_is_no_command_and_a_command_has_its_own_options() {
    let mut command = Command::new(BINARY);
    command.args(["link", "--rat", "1 Mbit/s", "--", "true"]);
    let said = text(&run(command, 2).stderr);
    assert!(said.contains("unexpected argument '--rat'") && said.contains("Usage"), "{said}");
    let mut command = Command::new(BINARY);
    command.args(["link", "--", "--rat"]);
    assert!(text(&run(command, 2).stderr).contains("can not run --rat"));
    if can("an_unknown_option_is_no_command_and_a_command_has_its_own_options") {
        let mut command = Command::new(BINARY);
        command.args(["link", "--delay", "1 ms", "bash", "-c", "exit 3", "--rate"]);
        run(command, 3);
    }
}

#[test]
fn mistakes_are_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("bad");
    fs::write(&trace, "5\n3\n").unwrap();
    let trace = trace.to_str().unwrap();
    for (options, hint) in [
        (&["--rate", "12 mbps"][..], "12 mbps"),
        (&["--rate", "12"], "no unit"),
        (&["--rate", "0 bit/s"], "0 bit/s"),
        (&["--delay", "-1 ms"], "-1 ms"),
        (&["--delay", "40"], "no unit"),
        (&["--queue", "10 packets"], "--rate"),
        (&["--rate", "1 Mbit/s", "--queue", "10 apples"], "apples"),
        (&["--rate", "1 Mbit/s", "--queue", "0 packets"], "0 packets"),
        (&["--rate", "1 Mbit/s", "--law", "wonder"], "wonder"),
        (&["--law", "xcp"], "--rate"),
        (&["--rate", "1 Mbit/s", "--trace", trace], "--trace"),
        (&["--trace", trace], "line 2"),
        (&["--up-trace", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["--packet-error-rate", "1.5"], "1.5"),
        (&["--bit-error-rate", "-1"], "-1"),
        (&["--ack-loss", "much"], "much"),
        (&["--packet-error-rate", "0.1", "--bit-error-rate", "0.1"], "--bit-error-rate"),
        (&["--report", "/nowhere/report.json"], "/nowhere"),
        (&["--seed", "x"], "x"),
    ] {
        let said = text(&run(link(options, "echo not reached"), 2).stderr);
        assert!(said.contains(hint), "{options:?}: {said}");
    }
    let mut command = Command::new(BINARY);
    command.args(["link", "--", "/no/such/command"]);
    assert!(text(&run(command, 2).stderr).contains("/no/such/command"));
}

#[test]
fn without_the_privilege_it_says_what_is_missing() {
    let test = "without_the_privilege_it_says_what_is_missing";
    if !can(test) {
        return;
    }
    let mut command = link(&[], "true");
    match command.uid(65_534).output() {
        Ok(output) => {
            assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
            assert!(text(&output.stderr).contains("CAP_NET_ADMIN"), "{}", text(&output.stderr));
        }
        Err(error) => eprintln!("SKIP {test}: nobody may not run the binary: {error}"),
    }
}
