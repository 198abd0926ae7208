//! `congestlab live run` with real packets, and that nothing of it is left behind. Needs root.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const SCENARIO: &str = r#"
[run]
duration = "3 s"
warmup = "1 s"
[links.bottleneck]
rate = "20 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[flows.ftp]
law = "cubic"
count = 2
path = ["bottleneck"]
"#;

/// Two routers with XCP-i, and between them one without it.
const CLOUD: &str = r#"
[run]
duration = "12 s"
warmup = "4 s"
[links.a]
at = "A"
rate = "30 Mbit/s"
law = { xcp = { interoperable = true, estimator = { direct = { capacity = "10 Mbit/s" } } } }
[links.cloud]
at = "B"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "100 packets"
reverse = { at = "C" }
[links.c]
at = "C"
rate = "30 Mbit/s"
law = { xcp = { interoperable = true, period = "500 ms", signed = false } }
[flows.ftp]
law = { xcp = { interoperable = true } }
path = ["a", "cloud", "c"]
"#;

/// What a lab needs that this machine does not have.
fn missing() -> Option<&'static str> {
    match congestlab_linux::sys::process::require_privilege() {
        Err(_) => Some("not root"),
        Ok(()) if congestlab_linux::sys::cgroup::root().is_err() => Some("no cgroup version 2"),
        Ok(()) => None,
    }
}

macro_rules! require_lab {
    ($name:literal) => {
        if let Some(reason) = missing() {
            eprintln!("SKIP live/{}: {reason}", $name);
            return;
        }
    };
}

struct Folder(TempDir);

impl Folder {
    fn new(scenario: &str) -> Self {
        let folder =
            tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target directory is writable");
        fs::write(folder.path().join("scenario.toml"), scenario).expect("the target directory is writable");
        Self(folder)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_congestlab"));
        command.current_dir(self.0.path()).args(["live", "run", "scenario.toml"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary of this package runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn result(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The digits by which everything is named that belongs to this process; `None` before it has begun.
fn lab_of(child: &Child) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).ok()?;
    let (_, rest) = groups.split_once("congestlab-")?;
    rest.get(..6).map(str::to_owned)
}

fn names(folder: impl AsRef<Path>) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// What there is of a lab.
fn left(id: &str) -> Vec<String> {
    let root = congestlab_linux::sys::cgroup::root().expect("it was there");
    let current = congestlab_linux::sys::cgroup::current().expect("it was there");
    let control = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("Linux");
    let mut all: Vec<String> = control.split_whitespace().map(str::to_owned).collect();
    for folder in
        [PathBuf::from("/run/netns"), "/run/congestlab".into(), "/sys/class/net".into(), root, current]
    {
        all.extend(names(folder));
    }
    all.into_iter().filter(|name| name.contains(id)).collect()
}

/// Fails if a lab is still there after so many milliseconds.
fn expect_nothing_left(id: &str, patience: u64) {
    for _ in 0..patience / 50 {
        if left(id).is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(left(id), Vec::<String>::new(), "left behind of lab {id}");
}

/// Waits until a process has its lab.
fn await_lab(child: &mut Child) -> String {
    for _ in 0..500 {
        if let Some(id) = lab_of(child) {
            return id;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let mut said = String::new();
    let _ = child.kill();
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
    panic!("no lab after ten seconds: {said}");
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it is ours");
}

/// 10 packets in 40 ms are 3 Mbit/s at most, whatever the machine does.
#[test]
fn a_receiver_advertises_no_more_than_its_window() {
    require_lab!("awnd");
    let scenario = "[run]\nduration = \"3 s\"\n[measure]\nevery = \"100 ms\"\n[links.bottleneck]\nrate = \"20 Mbit/s\"\n\
                    delay = \"40 ms\"\nqueue = \"100 packets\"\n[flows.ftp]\nlaw = \"cubic\"\npath = [\"bottleneck\"]\n\
                    awnd = \"10 packets\"\n";
    let folder = Folder::new(scenario);
    let result = result(&folder.run(&["--json"]));
    let flow = &result["flows"]["ftp"][0];
    let goodput = flow["goodput_bps"].as_f64().expect("a number");
    // The delay of the link is there and back.
    let rtt = flow["rtt_mean_ms"].as_f64().expect("a number");
    assert!(rtt > 39.0, "{flow:#}");
    let most = 10.0 * 1500.0 * 8.0 / 0.08;
    assert!(goodput > 0.3 * most && goodput < 1.02 * most, "{goodput} of {most} bit/s: {flow:#}");
    let refused = folder.run(&["--app", "iperf3"]);
    assert!(text(&refused.stderr).contains("flows.ftp.awnd"), "{}", text(&refused.stderr));
}

/// Two losses in a hundred make XCP's hosts fall back, and a round trip later return.
#[test]
fn flows_that_fall_back_after_losses_are_named() {
    require_lab!("fallbacks");
    let scenario = "[run]\nduration = \"5 s\"\n[links.bottleneck]\nrate = \"20 Mbit/s\"\ndelay = \"15 ms\"\nqueue = \"100 packets\"\n\
                    law = \"xcp\"\nfeedback_at = \"enqueue\"\nerror = { packet_error_rate = 0.02 }\n[flows.ftp]\nlaw = \"xcp\"\n\
                    path = [\"bottleneck\"]\n";
    let folder = Folder::new(scenario);
    let output = folder.run(&["--json"]);
    let live = result(&output)["live"].clone();
    let count = live["flows"]["ftp"]["xcp"]["fallbacks_loss"].as_u64().expect("a number");
    assert!(count > 0, "{live:#}");
    let doubts = live["doubts"].to_string();
    assert!(doubts.contains("flows.ftp fell back to CUBIC"), "{doubts}");
    assert!(
        text(&output.stderr).contains("warning: flows.ftp fell back to CUBIC"),
        "{}",
        text(&output.stderr)
    );
    let table = text(&folder.run(&[]).stdout);
    assert!(table.contains("fell back to CUBIC after losses"), "{table}");
}

#[test]
fn two_cubic_flows_fill_a_link_and_the_results_have_the_simulators_names() {
    require_lab!("two-cubic-flows");
    let folder = Folder::new(SCENARIO);
    let output = folder.run(&["--json", "--series", "series.csv", "--out", "runs"]);
    let result = result(&output);
    let link = &result["links"]["bottleneck"];
    assert_eq!(link["capacity_bps"], 20e6);
    // Other programs may be running: only what can not be wrong on any machine that did it at all.
    let utilization = link["utilization"].as_f64().expect("a number");
    assert!((0.5..1.05).contains(&utilization), "{link:#}");
    assert!(link["queue_max_packets"].as_u64().is_some_and(|most| (1..=50).contains(&most)), "{link:#}");
    let flows = result["flows"]["ftp"].as_array().expect("a list");
    assert_eq!(flows.len(), 2);
    let goodput: f64 = flows.iter().map(|flow| flow["goodput_bps"].as_f64().expect("a number")).sum();
    assert!((0.5 * 20e6..1.05 * 20e6).contains(&goodput), "{flows:#?}");
    for flow in flows {
        let ratio = flow["payload_bps"].as_f64().unwrap() / flow["goodput_bps"].as_f64().unwrap();
        // 1448 B of payload in 1500 B.
        assert!((ratio - 1448.0 / 1500.0).abs() < 1e-9, "{ratio}");
        assert!(flow["rtt_mean_ms"].as_f64().is_some_and(|rtt| rtt >= 19.0), "{flow:#}");
        // Nothing sent is lost elsewhere than at the queue.
        assert!(flow["sent_packets"].as_u64().is_some_and(|sent| sent > 500), "{flow:#}");
    }
    let live = &result["live"];
    assert_eq!(live["flows"]["ftp"]["congestion"], "cubic");
    assert_eq!(live["checksum_errors"], 0);
    assert!(live["trustworthy"].is_boolean());
    let check = &live["self_check"][0];
    assert_eq!(check["rtt_ms"], 20.0, "a token bucket sends so small a packet at once: {check:#}");
    assert!(live["links"]["bottleneck"].as_str().is_some_and(|choice| choice.contains("tbf")));

    // The series adds up to what the sockets counted, and a run folder is one that others read.
    let series = fs::read_to_string(folder.0.path().join("series.csv")).expect("it was written");
    let bins = series.lines().filter(|line| line.contains(",ftp,0,goodput_bps,"));
    assert_eq!(bins.count(), 100, "{series}");
    let runs = names(folder.0.path().join("runs"));
    let run = runs.first().filter(|_| runs.len() == 1).expect("one run");
    assert!(run.starts_with("scenario-1-") && run.ends_with("-live"), "{run}");
    let report = Command::new(env!("CARGO_BIN_EXE_congestlab"))
        .args(["report", "--quiet"])
        .arg(folder.0.path().join("runs").join(run))
        .output()
        .expect("the binary of this package runs");
    assert!(report.status.success(), "{}", text(&report.stderr));
}

#[test]
fn a_transfer_over_two_links_completes_with_every_program() {
    require_lab!("transfer");
    let scenario = r#"
[run]
duration = "8 s"
[links.a]
at = "R1"
rate = "20 Mbit/s"
delay = "5 ms"
[links.b]
at = "R2"
rate = "10 Mbit/s"
discipline = { red = { min = "20 packets", max = "60 packets" } }
[flows.file]
law = "reno"
path = ["a", "b"]
size = "500 kB"
segment = "1000 B"
access = { rate = "100 Mbit/s", delay = "1 ms" }
[flows.noise]
law = { cbr = { rate = "1 Mbit/s" } }
path = ["b"]
"#;
    let folder = Folder::new(scenario);
    for app in ["bulk", "curl", "iperf3"] {
        let output = folder.run(&["--json", "--app", app]);
        if output.status.code() == Some(4) && text(&output.stderr).contains("is not installed") {
            eprintln!("SKIP live/transfer-{app}: {}", text(&output.stderr));
            continue;
        }
        let result = result(&output);
        let flow = &result["flows"]["file"][0];
        let delivered = flow["delivered_bytes"].as_f64().expect("a number");
        // curl's file is 500 kB of payload. iperf3 writes blocks of 128 KiB, four of them, with their headers
        // 553 kB; it ends when all is written, and what has not arrived by then never does: up to 128 kB that are
        // not sent, and a window.
        let allowed = if app == "iperf3" { 250e3..554e3 } else { 450e3..550e3 };
        assert!(allowed.contains(&delivered), "{app}: {flow:#}");
        assert!(flow["sent_packets"].as_u64().is_some_and(|sent| sent > 200), "{app}: {flow:#}");
        if app != "iperf3" {
            assert!(flow["completion_s"].as_f64().is_some(), "{app}: {flow:#}");
        }
        let noise = &result["flows"]["noise"][0];
        let sent = noise["sent_packets"].as_f64().expect("a number");
        assert!(sent >= 200.0, "{app}: {noise:#}");
        // No more than its rate and the first packet, over the time that it ran: on a busy machine a run
        // ends late.
        let rate = noise["throughput_bps"].as_f64().expect("a number");
        assert!(rate * (sent - 1.0) / sent <= 1e6, "{app}: {noise:#}");
    }
}

#[test]
fn the_self_check_believes_links_that_are_slow_or_have_short_queues() {
    require_lab!("self-check");
    let folder = Folder::new(SCENARIO);
    for (rate, delay, queue) in
        [("500 kbit/s", "5 ms", "50 packets"), ("100 kbit/s", "5 ms", "1 BDP"), ("20 Mbit/s", "0 s", "1 BDP")]
    {
        let mut arguments = vec!["--json", "--set", "run.duration=\"1 s\"", "--set", "run.warmup=\"0 s\""];
        let keys = [("rate", rate), ("delay", delay), ("queue", queue)];
        let sets = keys.map(|(key, value)| format!("links.bottleneck.{key}=\"{value}\""));
        sets.iter().for_each(|set| arguments.extend(["--set", set]));
        let check = &result(&folder.run(&arguments))["live"]["self_check"][0];
        let ratio =
            check["measured_rate_bps"].as_f64().expect("a number") / check["rate_bps"].as_f64().unwrap();
        // Others may make this machine slow; a bucket that was counted made it 1.2 and more.
        assert!((0.5..1.1).contains(&ratio), "{check:#}");
    }
}

#[test]
fn with_offloads_xcp_keeps_its_link_and_checksums_are_right() {
    require_lab!("offloads");
    let folder =
        Folder::new(&SCENARIO.replace("rate", "law = \"xcp\"\nrate").replace("\"cubic\"", "\"xcp\""));
    let output = folder.run(&["--json", "--quiet", "--offloads", "on"]);
    assert_eq!(text(&output.stderr), "");
    let result = result(&output);
    assert_eq!(result["live"]["offloads"], "on");
    assert_eq!(result["live"]["checksum_errors"], 0);
    // A super-packet counts as its segments, and a wire has seen no frame with several.
    let router = &result["live"]["routers"]["bottleneck"];
    assert!(router["xcp_packets"].as_u64().is_some_and(|count| count > 1000), "{router:#}");
    let bytes = router["bytes"].as_f64().unwrap() / router["packets"].as_f64().unwrap();
    assert!(bytes <= 1500.0, "{router:#}");
    let doubts = result["live"]["doubts"].to_string();
    assert!(!doubts.contains("several packets"), "{doubts}");
}

#[test]
fn what_can_not_run_live_is_refused_before_anything_is_made() {
    require_lab!("refused");
    let folder = Folder::new(SCENARIO);
    let cases: [(&[&str], &str); 14] = [
        (&["--set", "flows.ftp.law={ mpcp = { n = 4 } }"], "mpcp"),
        (&["--set", "flows.ftp.count=65"], "65 flows"),
        (&["--set", "flows.ftp.segment=\"100 B\""], "100 B"),
        (&["--set", "flows.ftp.profile=\"ns2\""], "ns2"),
        (&["--set", "flows.ftp.law={ xcp-r = { epochs = false } }"], "xcp-r.epochs"),
        (&["--set", "flows.ftp.law=\"xcp-r\"", "--encoding", "shim"], "leave --encoding shim out"),
        (&["--set", "flows.ftp.law=\"fack\""], "FACK"),
        (&["--set", "flows.ftp.law={ bbr = { cwnd_gain = 3 } }"], "the kernel's bbr has numbers of its own"),
        (&["--set", "flows.ftp.switch=[{ at = \"1 s\", path = [\"bottleneck\"] }]"], "switch"),
        (&["--set", "links.bottleneck.ack_blackout=[{ at = \"1 s\", for = \"1 s\" }]"], "ack_blackout"),
        (&["--set", "links.bottleneck.medium=csma-cd"], "full duplex"),
        (&["--set", "links.bottleneck.reorder={ probability = 0.1, delay = \"1 ms\" }"], "reorder"),
        (
            &[
                "--set",
                "links.bottleneck.error={ gilbert_elliott = { good = \"1 s\", bad = \"1 s\", packet_error_rate = 1 } }",
            ],
            "gilbert_elliott",
        ),
        (&["--app", "netperf"], "netperf"),
    ];
    for (arguments, names) in cases {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(names), "{arguments:?}: {}", text(&output.stderr));
    }
    let circle = format!(
        "{SCENARIO}[links.a]\nat = \"R\"\nrate = \"1 Mbit/s\"\n[links.b]\nat = \"R\"\nrate = \"1 Mbit/s\"\n\
         [flows.round]\nlaw = \"cubic\"\npath = [\"a\", \"b\"]\n"
    );
    let output = Folder::new(&circle).run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("begins and ends at the router R"), "{}", text(&output.stderr));
}

#[test]
fn routers_with_xcp_i_find_a_cloud_and_what_it_carries() {
    require_lab!("xcp-i");
    let folder = Folder::new(CLOUD);
    let result = result(&folder.run(&["--json"]));
    let (live, flow) = (&result["live"], &result["flows"]["ftp"][0]);
    assert!(live["links"]["c"].as_str().is_some_and(|choice| choice.contains("XCP-i")), "{live:#}");
    // 8 bytes of header more than XCP: 1420 B of payload in 1500 B.
    let ratio = flow["payload_bps"].as_f64().unwrap() / flow["goodput_bps"].as_f64().unwrap();
    assert!((ratio - 1420.0 / 1500.0).abs() < 1e-9, "{ratio}");
    assert_eq!(live["checksum_errors"], 0);
    // The sender is next to A; what comes to C has crossed the cloud.
    let crossings = |link: &str, count: &str| live["routers"][link][count].as_u64().unwrap();
    assert!(crossings("a", "direct_packets") > 1000 && crossings("a", "cloud_packets") == 0, "{live:#}");
    assert!(crossings("c", "cloud_packets") > 1000 && crossings("c", "direct_packets") == 0, "{live:#}");
    let (before, behind) = (&live["agents"]["A"], &live["agents"]["C"]);
    assert!(before["probes"].as_u64().is_some_and(|probes| probes >= 150), "{before:#}");
    assert!(behind["estimates"].as_u64().is_some_and(|estimates| estimates >= 3), "{behind:#}");
    let peers = behind["peers"].as_array().expect("a list");
    assert_eq!((peers.len(), &peers[0]["hops"]), (1, &Value::from(1)), "{behind:#}");
    assert!(peers[0]["ruled_packets"].as_u64().is_some_and(|ruled| ruled > 500), "{behind:#}");
    // Others may make this machine slow, and its estimates low.
    let utilization = result["links"]["cloud"]["utilization"].as_f64().expect("a number");
    assert!((0.5..1.05).contains(&utilization), "{:#}", result["links"]);
}

#[test]
fn what_xcp_i_can_not_do_live_is_refused_with_its_place() {
    require_lab!("xcp-i-refused");
    let folder = Folder::new(CLOUD);
    let cases: [(&[&str], &str); 11] = [
        (&["links.a.law.xcp.estimator=\"oracle\""], "the cloud of `links.cloud` is not probed directly"),
        (&["links.a.law.xcp.estimator=\"pathchirp\""], "estimator = { direct ="),
        (
            &["links.a.law.xcp.estimator={ direct = { capacity = \"10 Mbit/s\", passive = true } }"],
            "without `passive`",
        ),
        (&["links.c.law.xcp.signed=true"], "`links.c.law.xcp.signed`"),
        (&["links.c.law.xcp.period=\"interval\""], "allowed: \"500 ms\" and more"),
        (&["links.c.law.xcp.period=\"400 ms\""], "`links.c.law.xcp.period`"),
        (&["links.c.law.xcp.virtual_queue=\"host\""], "`links.c.law.xcp.virtual_queue`"),
        (&["links.c.law.xcp.no_estimate=\"hold\""], "`links.c.law.xcp.no_estimate`"),
        (&["links.c.law={ pxcp = { interoperable = true } }"], "`links.c.law` is pxcp with XCP-i"),
        (&["flows.ftp.path=[\"a\", \"cloud\"]"], "the path of `flows.ftp` ends with links without XCP-i"),
        (
            &["links.c.discipline={ red = { min = \"20 packets\", max = \"60 packets\" } }"],
            "links.c: RED wants a link in user space, which does not run XCP-i",
        ),
    ];
    for (sets, names) in cases {
        let arguments: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output = folder.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{sets:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(names), "{sets:?}: {}", text(&output.stderr));
    }
    let output = folder.run(&["--set", "links.c.law.xcp.no_estimate=\"hold\""]);
    assert!(text(&output.stderr).contains("--set"), "{}", text(&output.stderr));
    // Which of two clouds would the requests of C take?
    let second = CLOUD[CLOUD.find("[links.cloud]").unwrap()..CLOUD.find("[links.c]").unwrap()]
        .replace("links.cloud", "links.other")
        .replace("at = \"B\"", "at = \"D\"");
    let other = "[flows.two]\nlaw = { xcp = { interoperable = true } }\npath = [\"a\", \"other\", \"c\"]\n";
    let output = Folder::new(&format!("{CLOUD}{second}{other}")).run(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("two ways lead from the router C to A"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn without_privilege_the_status_is_4() {
    require_lab!("without-privilege");
    let folder = Folder::new(SCENARIO);
    let output = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_congestlab")])
        .args(["live", "run", "scenario.toml"])
        .current_dir(folder.0.path())
        .output();
    let Ok(output) = output else {
        eprintln!("SKIP live/without-privilege: no setpriv");
        return;
    };
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("CAP_NET_ADMIN"), "{}", text(&output.stderr));
}

#[test]
fn ctrl_c_ends_a_lab_with_status_130_and_leaves_nothing() {
    require_lab!("ctrl-c");
    let folder = Folder::new(SCENARIO);
    let mut child = folder.command(&["--set", "run.duration=\"60 s\""]).spawn().expect("it runs");
    let id = await_lab(&mut child);
    thread::sleep(Duration::from_secs(3));
    assert_ne!(left(&id), Vec::<String>::new());
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    expect_nothing_left(&id, 50);
}

#[test]
fn a_lab_that_is_killed_is_removed_by_its_supervisor() {
    require_lab!("killed");
    let folders = [SCENARIO.replace("law = \"cubic\"", "law = \"xcp\""), CLOUD.into()];
    let folders = folders.each_ref().map(|scenario| Folder::new(scenario));
    for moment in 0..8 {
        let folder = &folders[moment % 2];
        let mut child = folder.command(&["--set", "run.duration=\"60 s\""]).spawn().expect("it runs");
        let id = await_lab(&mut child);
        // Some moment of building, checking and running.
        let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("Linux");
        let random = u64::from_str_radix(&uuid[..4], 16).expect("hexadecimal digits");
        let wait = random % 4000;
        thread::sleep(Duration::from_millis(wait));
        signal(&child, Signal::KILL);
        let _ = child.wait();
        eprintln!("killed lab {id} ({moment}) after {wait} ms");
        // Two seconds on a machine that does nothing else.
        expect_nothing_left(&id, 6000);
    }
}

#[test]
fn a_lab_whose_supervisor_was_killed_too_is_removed_by_the_next_one() {
    require_lab!("both-killed");
    let folder = Folder::new(SCENARIO);
    let mut child = folder.command(&["--set", "run.duration=\"60 s\""]).spawn().expect("it runs");
    let id = await_lab(&mut child);
    thread::sleep(Duration::from_secs(1));
    let supervisor = names("/proc").into_iter().filter_map(|name| name.parse::<i32>().ok()).find(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).skip(1).take(2).eq([&b"supervise"[..], id.as_bytes()])
    });
    let supervisor = supervisor.and_then(Pid::from_raw).expect("it has one");
    kill_process(supervisor, Signal::KILL).expect("it is ours");
    signal(&child, Signal::KILL);
    let _ = child.wait();
    // Or the lab of another test has begun to in this moment.
    congestlab_linux::supervisor::clean().expect("it can be removed");
    expect_nothing_left(&id, 6000);
}

#[test]
fn two_labs_run_at_the_same_time() {
    require_lab!("two-labs");
    let folder = Folder::new(SCENARIO);
    let mut labs = [0, 1].map(|_| folder.command(&["--json"]).spawn().expect("it runs"));
    let ids = labs.each_mut().map(await_lab);
    assert_ne!(ids[0], ids[1]);
    for lab in labs {
        let output = lab.wait_with_output().expect("it ends");
        // Two at once may be too much for a small machine, which then says so.
        if output.status.code() != Some(4) {
            let result = result(&output);
            assert!(result["links"]["bottleneck"]["sent_packets"].as_u64().is_some_and(|sent| sent > 1000));
        }
    }
    ids.iter().for_each(|id| expect_nothing_left(id, 50));
}
