//! Packet traces, read back by tshark with our dissector: somebody else's reading of every header.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use congestlab_scenario::laws::{xcp, xcp_r};
use congestlab_scenario::net::packet::{Kind, Packet, Picos, SACK_BLOCKS, flag};
use congestlab_scenario::sim::{Engine, Tap, run_tapped};
use congestlab_scenario::{Measure, Scenario};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A bit of everything: three links at two routers, losses by queues and on wires, marks, XCP with
/// and without room for options, short segments, both directions.
const MIXED: &str = r#"
[run]
duration = "4 s"
seed = 3
[links.first]
at = "R1"
rate = "8 Mbit/s"
delay = "5 ms"
queue = "25 packets"
law = "xcp"
error = { packet_error_rate = 0.004 }
reverse = { rate = "2 Mbit/s", ack_loss = 0.02 }
[links."second link"]
at = "R2"
rate = "6 Mbit/s"
delay = "10 ms"
queue = "40 packets"
discipline = { red = { min = "5 packets", max = "30 packets", max_p = 0.1, weight = 0.02, ecn = true } }
[links.third]
at = "R2"
rate = "5 Mbit/s"
delay = "5 ms"
queue = "25 packets"
law = "xcp"
[flows.xcp]
law = "xcp"
count = 2
path = ["first", "second link", "third"]
ack = "72 B"
app = { bursts = { size = "40100 B", pause = "20 ms" } }
[flows.marked]
law = "cubic"
ecn = true
path = ["first", "second link"]
[flows.dropped]
law = "newreno"
delayed_ack = true
path = ["first"]
size = "300100 B"
access = { rate = "100 Mbit/s", delay = "1 ms" }
[flows.back]
law = "sack"
path = ["first.reverse"]
awnd = "20 packets"
ack = "60 B"
[flows.datagrams]
law = { cbr = { rate = "500 kbit/s" } }
segment = "200 B"
path = ["second link", "third"]
"#;

/// Nothing is lost, nothing is late.
const LOSSLESS: &str = r#"
[run]
duration = "4 s"
[links.bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
queue = "1000 packets"
law = "xcp"
[flows.endless]
law = "xcp"
count = 2
path = ["bottleneck"]
[flows.bursts]
law = "xcp"
path = ["bottleneck"]
segment = "1000 B"
ack = "80 B"
app = { bursts = { size = "30010 B", pause = "50 ms" } }
[flows.transfer]
law = "cubic"
path = ["bottleneck"]
size = "400001 B"
awnd = "30 packets"
"#;

/// The flows of `MIXED` that run XCP.
const XCP_FLOWS: std::ops::Range<u32> = 0..2;

/// What docs/design/contract.md 3 makes of `MIXED`: `second link` and `third` are ports of one router, and each
/// reverse is one of its own.
fn time_to_live(link: &str, flow: u32) -> u8 {
    match (link, flow) {
        ("second link", 0..=2) | ("third" | "second link.reverse", 0 | 1) | ("first.reverse", 2) => 62,
        ("first.reverse", 0 | 1) => 61,
        _ => 63,
    }
}

struct Lab {
    folder: TempDir,
}

impl Lab {
    /// A folder with the scenario and a home where the dissector is installed. `None`, and said so,
    /// if there is no tshark.
    fn new(test: &str, scenario: &str) -> Option<Self> {
        for tool in ["tshark", "mergecap"] {
            if let Err(error) = Command::new(tool).arg("--version").output() {
                eprintln!("SKIP {test}: {tool}: {error}");
                return None;
            }
        }
        let lab = Self::without_tshark(scenario);
        lab.congestlab(&["export", "wireshark", "install"], 0);
        if rustix::process::geteuid().is_root() {
            lab.demote_tshark();
        }
        Some(lab)
    }

    /// From Wireshark 4.4 on it loads no dissector for root: it runs as nobody, who reads what is here.
    fn demote_tshark(&self) {
        let own =
            "exec env PATH=/usr/local/bin:/usr/bin:/bin setpriv --reuid 65534 --regid 65534 --clear-groups";
        let script = format!("#!/bin/sh\n{own} tshark \"$@\"\n");
        let readable = || fs::Permissions::from_mode(0o755);
        fs::create_dir(self.path("bin")).expect("writable");
        fs::write(self.path("bin/tshark"), script).expect("writable");
        fs::set_permissions(self.path("bin/tshark"), readable()).expect("ours");
        fs::set_permissions(self.path(""), readable()).expect("ours");
    }

    fn without_tshark(scenario: &str) -> Self {
        // Everybody gets to it there; the target folder may be in somebody's home.
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        fs::create_dir(folder.path().join("home")).expect("writable");
        fs::write(folder.path().join("scenario.toml"), scenario).expect("writable");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).args(arguments);
        command.env("HOME", self.path("home")).env_remove("XDG_CONFIG_HOME");
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display()));
        command
    }

    #[track_caller]
    fn congestlab(&self, arguments: &[&str], status: i32) -> Output {
        let output =
            self.command(env!("CARGO_BIN_EXE_congestlab"), arguments).output().expect("the binary runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        output
    }

    /// `congestlab run scenario.toml --json --pcap pcap MORE`.
    fn capture(&self, more: &[&str]) -> Value {
        let arguments = [&["run", "scenario.toml", "--json", "--pcap", "pcap"], more].concat();
        serde_json::from_slice(&self.congestlab(&arguments, 0).stdout).expect("a result")
    }

    #[track_caller]
    fn tshark(&self, arguments: &[&str]) -> String {
        let output = self.command("tshark", arguments).output().expect("it ran before");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<&str> =
            stderr.lines().filter(|line| !line.starts_with("Running as user")).collect();
        assert!(output.status.success() && complaints.is_empty(), "tshark {arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The fields of each packet that the filter lets pass; all occurrences, by commas.
    #[track_caller]
    fn fields(&self, file: &str, options: &[&str], filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
        let mut arguments = vec!["-r", file, "-Y", filter, "-T", "fields"];
        arguments.extend(options);
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        let text = self.tshark(&arguments);
        // From Wireshark 4.4 on what is true is called so.
        let bit = |field: &str| match field {
            "True" => "1".to_owned(),
            "False" => "0".to_owned(),
            other => other.to_owned(),
        };
        text.lines().map(|line| line.split('\t').map(bit).collect()).collect()
    }
}

const CHECKED: [&str; 6] =
    ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];

/// When a packet was sent, what it was, and whether the wire lost it.
type Sent = (Picos, Packet, bool);

/// What the simulator sent, by link.
#[derive(Default)]
struct Heard(Mutex<BTreeMap<u32, Vec<Sent>>>);

impl Tap for Heard {
    fn sent(&self, link: u32, at: Picos, packet: &Packet, is_lost: bool) {
        let mut links = self.0.lock().expect("nobody panics");
        links.entry(link).or_default().push((at, *packet, is_lost));
    }
}

/// The packets of each link, by the link's name.
fn simulate(scenario: &str) -> BTreeMap<String, Vec<Sent>> {
    let scenario = Scenario::parse("scenario.toml", scenario, Path::new(""), &[], None).expect("valid");
    let model = scenario.model(&Measure::default());
    let heard = Heard::default();
    run_tapped(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| {}, Some(&heard));
    let links = heard.0.into_inner().expect("nobody panics");
    links.into_iter().map(|(link, packets)| (model.links[link as usize].name.clone(), packets)).collect()
}

#[test]
fn a_trace_holds_what_the_simulator_sent() {
    let Some(lab) = Lab::new("a_trace_holds_what_the_simulator_sent", MIXED) else { return };
    let result = lab.capture(&["--threads", "2"]);
    let files = [
        ("first", "first"),
        ("second link", "second-link"),
        ("third", "third"),
        ("third.reverse", "third.reverse"),
        ("second link.reverse", "second-link.reverse"),
        ("first.reverse", "first.reverse"),
    ];
    let names = [
        "frame.time_epoch",
        "frame.len",
        "ip.len",
        "ip.src",
        "ip.dst",
        "ip.ttl",
        "ip.dsfield.ecn",
        "ip.proto",
        "xcp_cc.x",
        "xcp_cc.rtt",
        "xcp_cc.delta_throughput",
        "xcp_cc.reverse_feedback",
        "tcp.flags.syn",
        "tcp.flags.ece",
        "tcp.flags.cwr",
        "tcp.len",
        "tcp.options.sack_le",
        "frame.comment",
    ];
    let mut seen = BTreeMap::<&str, usize>::new();
    let simulated = simulate(MIXED);
    assert_eq!(fs::read_dir(lab.path("pcap")).expect("a folder").count(), files.len());
    for (link, file) in files {
        let packets = &simulated[link];
        let rows = lab.fields(&format!("pcap/{file}.pcapng"), &[], "frame", &names);
        assert_eq!(rows.len(), packets.len(), "{link}");
        let sent = result["links"][link]["sent_packets"].as_u64().expect("a count") as usize;
        assert!(rows.len() == sent || rows.len() == sent + 1, "{link}: {} of {sent}", rows.len());
        for (number, (row, (at, packet, is_lost))) in rows.iter().zip(packets).enumerate() {
            let place = format!("{link}, packet {}: {packet:?}\n{row:?}", number + 1);
            let of = |name: &str| {
                row[names.iter().position(|other| *other == name).expect("one of the fields")].as_str()
            };
            let nanos = at / 1000;
            let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            assert_eq!(of("frame.time_epoch"), format!("{seconds}.{nanos:09}"), "{place}");

            let is_back = matches!(packet.kind, Kind::Ack | Kind::SynAck);
            let (sender, receiver) =
                (format!("10.0.0.{}", packet.flow + 1), format!("10.128.0.{}", packet.flow + 1));
            let ends = if is_back { (&receiver, &sender) } else { (&sender, &receiver) };
            assert_eq!((of("ip.src"), of("ip.dst")), (ends.0.as_str(), ends.1.as_str()), "{place}");
            assert_eq!(of("ip.ttl"), time_to_live(link, packet.flow).to_string(), "{place}");

            let size = usize::from(packet.size);
            let length: usize = of("frame.len").parse().expect("a number");
            let is_data = matches!(packet.kind, Kind::Data | Kind::Datagram);
            let needed = if is_data { size } else { 40 };
            assert!(length >= size && length <= size.max(100), "{place}");
            assert!(!is_data || size < 100 || length == size, "{place}");
            assert!(of("ip.len").parse::<usize>().expect("a number") >= needed, "{place}");
            assert_eq!(of("ip.dsfield.ecn"), (packet.flags & flag::ECN_MASK).to_string(), "{place}");
            assert_eq!(of("frame.comment").contains("broken"), *is_lost, "{place}");

            if packet.kind == Kind::Datagram {
                assert_eq!(of("ip.proto"), "17", "{place}");
                continue;
            }
            let has_minimal = packet.kind == Kind::Ack && XCP_FLOWS.contains(&packet.flow);
            let xcp = packet.header::<xcp::Header>().unwrap_or_default();
            let standard =
                |value: String| if packet.header::<xcp::Header>().is_some() { value } else { String::new() };
            let (x, rtt) = (standard(xcp.x.to_string()), standard(xcp.rtt.to_string()));
            let delta = standard(xcp.delta.to_string());
            let reverse = if has_minimal {
                xcp::feedback(packet.reply()).to_string()
            } else {
                standard(xcp.reverse.to_string())
            };
            assert_eq!(of("xcp_cc.x"), x, "{place}");
            assert_eq!(of("xcp_cc.rtt"), rtt, "{place}");
            assert_eq!(of("xcp_cc.delta_throughput"), delta, "{place}");
            assert_eq!(of("xcp_cc.reverse_feedback"), reverse, "{place}");
            let has_header = packet.header::<xcp::Header>().is_some() || has_minimal;
            assert_eq!(of("ip.proto"), if has_header { "253" } else { "6" }, "{place}");

            let is_opening = matches!(packet.kind, Kind::Syn | Kind::SynAck);
            assert_eq!(of("tcp.flags.syn"), if is_opening { "1" } else { "0" }, "{place}");
            if !is_opening {
                let bit = |bit| if packet.flags & bit != 0 { "1" } else { "0" };
                assert_eq!(of("tcp.flags.ece"), bit(flag::ECE), "{place}");
                assert_eq!(of("tcp.flags.cwr"), bit(flag::CWR), "{place}");
            }
            assert_eq!(of("tcp.len") != "0", packet.kind == Kind::Data, "{place}");
            let blocks = match packet.kind {
                Kind::Ack => {
                    (0..SACK_BLOCKS).filter(|&block| packet.sack(block).0 != packet.sack(block).1).count()
                }
                _ => 0,
            };
            let shown = of("tcp.options.sack_le").split(',').filter(|edge| !edge.is_empty()).count();
            assert_eq!(shown, blocks, "{place}");
            for (what, is_so) in [
                ("sack", blocks > 0),
                ("three blocks", blocks == 3),
                ("lost", *is_lost),
                ("marked", packet.flags & flag::ECN_MASK == flag::CE),
                ("echoed", packet.flags & flag::ECE != 0),
                ("reduced", packet.flags & flag::CWR != 0),
                (
                    "taken back",
                    packet.header::<xcp::Header>().is_some()
                        && packet.header::<xcp::Header>().unwrap_or_default().delta < 0,
                ),
                ("returned", has_minimal && xcp::feedback(packet.reply()) != 0),
                ("short", packet.kind == Kind::Data && packet.size == 100),
            ] {
                *seen.entry(what).or_default() += usize::from(is_so);
            }
        }
    }
    assert!(
        seen.len() == 9 && seen.values().all(|&count| count > 0),
        "the scenario shows too little: {seen:?}"
    );
    let bad = "_ws.malformed || _ws.expert.severity == error";
    for (_, file) in files {
        assert_eq!(
            lab.fields(&format!("pcap/{file}.pcapng"), &[], bad, &["frame.number"]).len(),
            0,
            "{file}"
        );
    }
}

#[test]
fn every_checksum_is_right() {
    let Some(lab) = Lab::new("every_checksum_is_right", MIXED) else { return };
    lab.capture(&["--snaplen", "65535"]);
    let mut count = 0;
    for entry in fs::read_dir(lab.path("pcap")).expect("a folder").flatten() {
        let file = entry.path().display().to_string();
        let status = [
            "ip.checksum.status",
            "tcp.checksum.status",
            "udp.checksum.status",
            "frame.cap_len",
            "frame.len",
        ];
        for row in lab.fields(&file, &CHECKED, "frame", &status) {
            // 1 is good.
            assert_eq!(row[0], "1", "{file}: {row:?}");
            assert_eq!(format!("{}{}", row[1], row[2]), "1", "{file}: {row:?}");
            assert_eq!(row[3], row[4], "{file}: the payload was wanted too");
            count += 1;
        }
    }
    assert!(count > 5000, "{count} packets");
}

#[test]
fn a_lossless_run_has_nothing_that_tcp_analysis_could_find() {
    let name = "a_lossless_run_has_nothing_that_tcp_analysis_could_find";
    let Some(lab) = Lab::new(name, LOSSLESS) else { return };
    let result = lab.capture(&[]);
    assert_eq!(result["links"]["bottleneck"]["drops"], 0);
    let merged = lab.command(
        "mergecap",
        &["-w", "both.pcapng", "pcap/bottleneck.pcapng", "pcap/bottleneck.reverse.pcapng"],
    );
    assert!({ merged }.status().is_ok_and(|status| status.success()));
    for file in ["both.pcapng", "pcap/bottleneck.pcapng", "pcap/bottleneck.reverse.pcapng"] {
        // A flow that its receiver's window holds back is said to fill it, and does.
        let filter = "tcp.analysis.flags && !tcp.analysis.window_full";
        let found =
            lab.fields(file, &CHECKED, filter, &["frame.number", "tcp.analysis.flags", "_ws.expert.message"]);
        assert_eq!(found, Vec::<Vec<String>>::new(), "{file}");
        let warned = lab.fields(file, &CHECKED, "_ws.expert.severity >= warning", &["frame.number"]);
        assert_eq!(warned, Vec::<Vec<String>>::new(), "{file}");
    }
    // The transfer is there to its last byte: 266 segments of 1500 B, one of 1001 B, 40 B of headers.
    let acks = lab.fields("both.pcapng", &[], "tcp.srcport == 50002", &["tcp.ack"]);
    assert_eq!(acks.last().expect("acknowledgments")[0], (1 + 266 * 1460 + 1001 - 40).to_string());
    // From the link to the receiver and back to the other direction: 2.4 ms for 1500 B, 20 ms on the way,
    // and what an acknowledgment waits for another one.
    let filter = "tcp.analysis.ack_rtt && ip.dst == 10.0.0.1 && tcp.ack > 1";
    let times = lab.fields("both.pcapng", &[], filter, &["tcp.analysis.ack_rtt"]);
    let times: Vec<f64> = times.iter().map(|row| row[0].parse().expect("seconds")).collect();
    assert!(times.len() > 100 && times.iter().all(|time| (0.0224..0.0228).contains(time)), "{times:?}");
    // Options of a SYN, and timestamps where an ACK has room for them.
    let options = [
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
        "tcp.options.sack_perm",
        "tcp.options.timestamp.tsval",
    ];
    let syns = lab.fields("both.pcapng", &[], "tcp.flags.syn == 1 && tcp.flags.ack == 1", &options);
    let stamped = syns.iter().filter(|row| !row[3].is_empty()).count();
    assert_eq!((syns.len(), stamped), (4, 1), "{syns:?}");
    assert!(syns.iter().all(|row| !row[0].is_empty() && !row[1].is_empty()), "{syns:?}");
    let echoed = lab.fields(
        "both.pcapng",
        &[],
        "tcp.srcport == 50001 && tcp.options.timestamp.tsecr > 100",
        &["frame.number"],
    );
    assert!(echoed.len() > 50, "{} echoes", echoed.len());
}

#[test]
fn retransmissions_are_recognised() {
    // Lost on the wire: the trace has what is repeated, as it must to tell.
    let queue = "queue = \"1000 packets\"\n";
    let scenario = LOSSLESS.replace(queue, &format!("{queue}error = {{ packet_error_rate = 0.02 }}\n"));
    let Some(lab) = Lab::new("retransmissions_are_recognised", &scenario) else { return };
    let result = lab.capture(&[]);
    assert!(result["links"]["bottleneck"]["errors"].as_u64() > Some(10));
    let merged = lab.command(
        "mergecap",
        &["-w", "both.pcapng", "pcap/bottleneck.pcapng", "pcap/bottleneck.reverse.pcapng"],
    );
    assert!({ merged }.status().is_ok_and(|status| status.success()));
    // Those that follow other packets closely it calls out of order, as on any network.
    let is_repeated = |filter| lab.fields("both.pcapng", &[], filter, &["frame.number"]).len();
    let found = is_repeated("tcp.analysis.retransmission || tcp.analysis.out_of_order");
    let sent = &simulate(&scenario)["bottleneck"];
    let sent = sent.iter().filter(|(_, packet, _)| packet.flags & flag::RETRANSMIT != 0).count();
    assert_eq!(found, sent);
    assert!(is_repeated("tcp.analysis.retransmission") > 10);
    // What an acknowledgment reports begins and ends where segments do.
    let edges = lab.fields(
        "both.pcapng",
        &[],
        "tcp.options.sack_le",
        &["tcp.stream", "tcp.options.sack_le", "tcp.options.sack_re"],
    );
    assert!(edges.len() > 20, "{} acknowledgments with ranges", edges.len());
    let segments = lab.fields("both.pcapng", &[], "tcp.len > 0", &["tcp.stream", "tcp.seq", "tcp.nxtseq"]);
    let begins: std::collections::BTreeSet<_> =
        segments.iter().map(|row| (&row[0], row[1].as_str())).collect();
    let ends: std::collections::BTreeSet<_> = segments.iter().map(|row| (&row[0], row[2].as_str())).collect();
    for row in &edges {
        assert!(row[1].split(',').all(|edge| begins.contains(&(&row[0], edge))), "{row:?}");
        assert!(row[2].split(',').all(|edge| ends.contains(&(&row[0], edge))), "{row:?}");
    }
}

#[test]
fn a_trace_is_the_same_on_any_number_of_threads_and_small() {
    let lab = Lab::without_tshark(MIXED);
    let read = || -> BTreeMap<_, _> {
        let entries = fs::read_dir(lab.path("pcap")).expect("a folder").flatten();
        entries.map(|entry| (entry.file_name(), fs::read(entry.path()).expect("a trace"))).collect()
    };
    let plain = lab.congestlab(&["run", "scenario.toml", "--json"], 0);
    let plain: Value = serde_json::from_slice(&plain.stdout).expect("a result");
    let one = lab.capture(&[]);
    assert_eq!(plain["fingerprint"], one["fingerprint"]);
    assert_eq!(plain["links"], one["links"]);
    let files = read();
    lab.capture(&["--threads", "2"]);
    assert!(read() == files, "two threads write something else");
    // Headers, not payloads: 100 bytes of them and 60 of pcapng at most.
    let packets: u64 = one["links"]
        .as_object()
        .expect("links")
        .values()
        .map(|link| link["sent_packets"].as_u64().expect("a count"))
        .sum();
    let bytes: usize = files.values().map(Vec::len).sum();
    assert!((bytes as u64) < packets * 160 + 6 * 500, "{bytes} bytes for {packets} packets");
}

/// A classic pcap file of raw IP packets, by hand: independent of what writes traces.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 101] {
        bytes.extend(word.to_le_bytes());
    }
    for packet in packets {
        for word in [0, 0, packet.len() as u32, packet.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}

fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let mut packet =
        vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend(payload);
    packet
}

/// A TCP header with the options, a multiple of four bytes.
fn tcp(options: &[u8]) -> Vec<u8> {
    let mut header = vec![0x9c, 0x40, 0xc3, 0x50, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0x10, 0xff, 0xff, 0, 0, 0, 0];
    header[12] = (((20 + options.len()) / 4) << 4) as u8;
    header.extend(options);
    header
}

/// `name field=value ... = hex`.
fn vectors(file: &str) -> Vec<(String, BTreeMap<String, String>, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/wire").join(file);
    let text = fs::read_to_string(path).expect("vectors");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (fields, hex) = line.rsplit_once('=').expect("bytes");
            let mut words = fields.split_whitespace();
            let name = words.next().expect("a name").to_owned();
            let fields = words.filter_map(|word| word.split_once('='));
            let hex: String = hex.split_whitespace().collect();
            let bytes =
                (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"));
            (name, fields.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(), bytes.collect())
        })
        .collect()
}

/// V1.1 to V1.6, and ours.
#[test]
fn the_dissector_reads_the_vectors_of_every_version() {
    let Some(lab) = Lab::new("the_dissector_reads_the_vectors_of_every_version", "") else { return };
    let vectors = vectors("xcp.txt");
    let packets: Vec<_> =
        vectors.iter().map(|(_, _, bytes)| ip(253, &[bytes.clone(), tcp(&[])].concat())).collect();
    fs::write(lab.path("v.pcap"), pcap(&packets)).expect("writable");
    let fields = [
        "xcp_cc.version",
        "xcp_cc.format",
        "xcp_cc.protocol",
        "xcp_cc.length",
        "xcp_cc.reverse_feedback",
        "xcp_cc.delta_throughput",
        "xcp_cc.throughput",
        "xcp_cc.x_ms",
        "xcp_cc.rtt_ms",
        "tcp.srcport",
        "xcp_cc.x",
    ];
    let rows = lab.fields("v.pcap", &[], "frame", &fields);
    assert_eq!(rows.len(), vectors.len());
    for ((name, expected, _), row) in vectors.iter().zip(&rows) {
        let of = |key: &str| expected.get(key).map_or("", String::as_str);
        let format = if of("format") == "standard" { "1" } else { "2" };
        assert_eq!(row[..5], [of("version"), format, of("protocol"), "20", of("reverse")], "{name}");
        assert_eq!((row[5].as_str(), row[6].as_str()), (of("delta"), of("throughput")), "{name}");
        // The vectors say nanoseconds; 2^-28 s are 3.7 ns, rounded to the nearest.
        let same = |shown: &str, nanos: &str| match nanos {
            "" => shown.is_empty(),
            "max" => shown.parse::<f64>().is_ok_and(|ms| (ms - 16e3).abs() < 1e-5),
            _ => shown
                .parse::<f64>()
                .is_ok_and(|ms| (ms * 1e6 - nanos.parse::<f64>().expect("ns")).abs() < 4.0),
        };
        assert!(same(&row[7], of("x")), "{name}: x {row:?}");
        match of("rtt_ms") {
            "" => assert!(same(&row[8], of("rtt")), "{name}: rtt {row:?}"),
            ms => assert_eq!(row[8], ms, "{name}"),
        }
        assert_eq!(row[9], if of("protocol") == "6" { "40000" } else { "" }, "{name}: what follows");
    }
    assert_eq!(rows[3][10], u32::MAX.to_string());

    // Another protocol number, and nothing at the usual one.
    let moved: Vec<_> = vectors.iter().map(|(_, _, bytes)| ip(200, bytes)).collect();
    fs::write(lab.path("moved.pcap"), pcap(&moved)).expect("writable");
    assert_eq!(lab.fields("moved.pcap", &[], "xcp_cc", &["frame.number"]).len(), 0);
    let option = ["-o", "xcp_cc.protocol:200"];
    assert_eq!(lab.fields("moved.pcap", &option, "xcp_cc", &["frame.number"]).len(), moved.len());
    assert_eq!(lab.fields("v.pcap", &option, "xcp_cc", &["frame.number"]).len(), 0);
}

/// What XCP-i and XCP-r add.
#[test]
fn the_dissector_reads_extended_headers() {
    let Some(lab) = Lab::new("the_dissector_reads_extended_headers", "") else { return };
    let vectors = vectors("xcp-extended.txt");
    let packets: Vec<_> =
        vectors.iter().map(|(_, _, bytes)| ip(253, &[bytes.clone(), tcp(&[])].concat())).collect();
    fs::write(lab.path("v.pcap"), pcap(&packets)).expect("writable");
    let keys = ["x", "rtt", "reverse", "delta", "xcp_ttl", "last", "cwnd", "epoch", "flag"];
    let fields = [
        "xcp_cc.x",
        "xcp_cc.rtt",
        "xcp_cc.reverse_feedback",
        "xcp_cc.delta_throughput",
        "xcp_cc.xcp_ttl",
        "xcp_cc.last_xcp_router",
        "xcp_cc.cwnd",
        "xcp_cc.epoch",
        "xcp_cc.congestion",
        "xcp_cc.length",
        "tcp.srcport",
    ];
    let rows = lab.fields("v.pcap", &[], "frame", &fields);
    assert_eq!(rows.len(), vectors.len());
    for ((name, expected, bytes), row) in vectors.iter().zip(&rows) {
        let wanted = keys.map(|key| expected.get(key).map_or("", String::as_str));
        assert_eq!(row[..keys.len()], wanted, "{name}");
        assert_eq!(row[9], bytes.len().to_string(), "{name}");
        assert_eq!(row[10], if expected["protocol"] == "6" { "40000" } else { "" }, "{name}: what follows");
    }
}

/// XCP-r's windows, both ways, with epochs: the path loses packets.
#[test]
fn a_trace_of_xcp_r_holds_its_windows() {
    let scenario = "[run]\nduration = \"5 s\"\n[links.a]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nlaw = \"xcp\"\n\
                    error = { packet_error_rate = 0.01 }\n[flows.f]\nlaw = { xcp-r = { own = \"reset\" } }\npath = [\"a\"]\nsegment = \"1000 B\"\n";
    let Some(lab) = Lab::new("a_trace_of_xcp_r_holds_its_windows", scenario) else { return };
    lab.capture(&[]);
    let simulated = simulate(scenario);
    let fields = ["xcp_cc.format", "xcp_cc.cwnd", "xcp_cc.epoch", "xcp_cc.congestion", "ip.len", "tcp.len"];
    let mut flagged = 0;
    for link in ["a", "a.reverse"] {
        let rows = lab.fields(&format!("pcap/{link}.pcapng"), &[], "frame", &fields);
        assert_eq!(rows.len(), simulated[link].len());
        for (row, (_, packet, _)) in rows.iter().zip(&simulated[link]) {
            let (cwnd, epoch, is_reset) = match packet.kind {
                Kind::Data => {
                    let xcp_r::Header { cwnd, epoch, is_reset, .. } = packet.header().unwrap_or_default();
                    (cwnd, epoch, is_reset)
                }
                Kind::Ack => (packet.reply().word, packet.reply().byte, false),
                _ => {
                    assert_eq!(row[0], "");
                    continue;
                }
            };
            flagged += usize::from(is_reset);
            let wanted = ["4".into(), cwnd.to_string(), epoch.to_string(), u8::from(is_reset).to_string()];
            assert_eq!(row[..4], wanted, "{packet:?}");
            if packet.kind == Kind::Data {
                assert_eq!((row[4].as_str(), row[5].as_str()), ("1000", "932"), "28 bytes of header");
            }
        }
    }
    assert!(flagged > 10, "{flagged} flags");
}

/// The IP TTL says how many links a packet has crossed, also where two paths of one flow meet again.
#[test]
fn a_trace_of_xcp_i_holds_the_ttl_of_the_path_in_use() {
    let scenario = "[run]\nduration = \"2 s\"\n[links.a]\nrate = \"8 Mbit/s\"\ndelay = \"5 ms\"\n\
                    law = { xcp = { interoperable = true } }\n\
                    [links.b]\nrate = \"6 Mbit/s\"\ndelay = \"5 ms\"\n[links.c]\nrate = \"6 Mbit/s\"\ndelay = \"5 ms\"\n\
                    [flows.f]\nlaw = { xcp = { interoperable = true } }\npath = [\"a\", \"c\"]\n\
                    switch = [{ at = \"1 s\", path = [\"a\", \"b\", \"c\"] }]\n";
    let Some(lab) = Lab::new("a_trace_of_xcp_i_holds_the_ttl_of_the_path_in_use", scenario) else { return };
    lab.capture(&[]);
    let rows = lab.fields("pcap/c.pcapng", &[], "xcp_cc", &["ip.ttl", "xcp_cc.xcp_ttl", "tcp.len"]);
    let data: Vec<&str> = rows.iter().filter(|row| row[2] != "0").map(|row| row[0].as_str()).collect();
    let count = |ttl: &str| data.iter().filter(|other| **other == ttl).count();
    assert!(count("62") > 100 && count("61") > 100, "two links, then three: {data:?}");
    assert_eq!(count("62") + count("61"), data.len());
}

#[test]
fn the_dissector_says_what_is_wrong_with_a_header() {
    let Some(lab) = Lab::new("the_dissector_says_what_is_wrong_with_a_header", "") else { return };
    let rejected = vectors("xcp-rejected.txt");
    let mut packets: Vec<_> = rejected
        .iter()
        .filter(|(_, _, bytes)| !bytes.is_empty())
        .map(|(name, _, bytes)| (name.as_str(), ip(253, bytes)))
        .collect();
    let header = |format: u8, protocol: u8| {
        let mut header = vec![protocol, 20, 0x30 | format, 0];
        header.extend([0; 16]);
        header
    };
    packets.push(("format-6", ip(253, &[header(6, 6), tcp(&[])].concat())));
    packets.push(("nested", ip(253, &[header(1, 253), header(1, 6)].concat())));
    let bytes: Vec<_> = packets.iter().map(|(_, packet)| packet.clone()).collect();
    fs::write(lab.path("bad.pcap"), pcap(&bytes)).expect("writable");
    let fields = [
        "xcp_cc.truncated",
        "xcp_cc.version.unknown",
        "xcp_cc.length.invalid",
        "xcp_cc.format.unknown",
        "xcp_cc.nested",
    ];
    for ((name, _), row) in packets.iter().zip(lab.fields("bad.pcap", &[], "frame", &fields)) {
        let expected = match *name {
            "one-short" => 0,
            name if name.starts_with("version") => 1,
            name if name.starts_with("length") => 2,
            "format-6" => 3,
            _ => 4,
        };
        let found: Vec<usize> = (0..5).filter(|&at| !row[at].is_empty()).collect();
        assert!(found.contains(&expected), "{name}: {row:?}");
        assert!(found.len() == 1 || *name == "nested", "{name}: {row:?}");
    }
}

/// docs/design/linux.md 2: kind, length, ExID 0x5843, RTT in us, X in ns, delta, reverse; on ACKs the last alone.
#[test]
fn the_dissector_reads_the_tcp_option() {
    let Some(lab) = Lab::new("the_dissector_reads_the_tcp_option", "") else { return };
    let long = [
        &[253, 20, 0x58, 0x43][..],
        &40_000_u32.to_be_bytes(),
        &1_200_000_u32.to_be_bytes(),
        &(-250_000_i32).to_be_bytes(),
        &77_i32.to_be_bytes(),
    ]
    .concat();
    let short = [&[253, 8, 0x58, 0x43][..], &(-5000_i32).to_be_bytes()].concat();
    // Behind timestamps, as Linux puts it.
    let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let other = [254, 4, 0x12, 0x34];
    let packets = [
        ip(6, &tcp(&[&stamps[..], &long].concat())),
        ip(6, &tcp(&short)),
        ip(6, &tcp(&other)),
        ip(6, &tcp(&[253, 12, 0x58, 0x43, 0, 0, 0, 0, 0, 0, 0, 0])),
    ];
    fs::write(lab.path("option.pcap"), pcap(&packets)).expect("writable");
    let fields = [
        "xcp_cc.option.kind",
        "xcp_cc.option.length",
        "xcp_cc.option.exid",
        "xcp_cc.rtt_ms",
        "xcp_cc.x_ms",
        "xcp_cc.delta_throughput",
        "xcp_cc.reverse_feedback",
        "xcp_cc.option.length.invalid",
    ];
    let rows = lab.fields("option.pcap", &[], "frame", &fields);
    assert_eq!(rows[0][..7], ["253", "20", "0x5843", "40", "1.2", "-250000", "77"], "{rows:?}");
    assert_eq!(rows[1][..7], ["253", "8", "0x5843", "", "", "", "-5000"], "{rows:?}");
    assert!(rows[2].iter().all(String::is_empty), "another experiment's: {rows:?}");
    assert!(!rows[3][7].is_empty() && rows[3][6].is_empty(), "{rows:?}");
    assert_eq!(lab.fields("option.pcap", &[], "xcp_cc", &["frame.number"]).len(), 3);
    let off = ["-o", "xcp_cc.option_enabled:FALSE"];
    assert_eq!(lab.fields("option.pcap", &off, "xcp_cc", &["frame.number"]).len(), 0);
    let moved = ["-o", "xcp_cc.option_kind:254", "-o", "xcp_cc.option_exid:4660"];
    assert_eq!(lab.fields("option.pcap", &moved, "xcp_cc", &["frame.number"]), [["3"]]);
}

#[test]
fn the_dissector_is_installed_and_removed_and_nobody_elses_file_is_touched() {
    let lab = Lab::without_tshark("");
    let place = lab.path("home/.local/lib/wireshark/plugins/xcp_cc.lua");
    let text = |output: Output| String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text(lab.congestlab(&["export", "wireshark", "install"], 0)).contains("installed"));
    let printed = text(lab.congestlab(&["export", "wireshark", "print"], 0));
    assert_eq!(fs::read_to_string(&place).expect("it is there"), printed);
    let again: Value =
        serde_json::from_slice(&lab.congestlab(&["export", "wireshark", "install", "--json"], 0).stdout)
            .expect("JSON");
    assert_eq!(again["changed"], false);
    assert_eq!(again["path"], place.display().to_string());
    fs::write(&place, printed.replace("0x5843", "0x1234")).expect("writable");
    assert!(text(lab.congestlab(&["export", "wireshark", "install"], 0)).contains("older"));
    assert_eq!(fs::read_to_string(&place).expect("it is there"), printed);
    assert!(text(lab.congestlab(&["export", "wireshark", "uninstall"], 0)).contains("removed"));
    assert!(!place.exists());
    lab.congestlab(&["export", "wireshark", "uninstall"], 0);

    let other = lab.path("other/xcp_cc.lua");
    fs::create_dir(lab.path("other")).expect("writable");
    fs::write(&other, "-- mine").expect("writable");
    for command in ["install", "uninstall"] {
        let output = lab.congestlab(&["export", "wireshark", command, "--dir", "other"], 2);
        assert!(String::from_utf8_lossy(&output.stderr).contains("other/xcp_cc.lua"));
        assert_eq!(fs::read_to_string(&other).expect("it is there"), "-- mine");
    }
    lab.congestlab(&["export", "wireshark", "install", "--dir", "other/xcp_cc.lua/below"], 2);
    lab.congestlab(&["export", "wireshark", "install", "--dir", "new/folder"], 0);
    assert!(lab.path("new/folder/xcp_cc.lua").exists());
}

#[test]
fn a_trace_that_is_not_complete_is_not_there() {
    let lab = Lab::without_tshark(&MIXED.replace("duration = \"4 s\"", "duration = \"400 s\""));
    // A file where the folder should be.
    lab.congestlab(&["run", "scenario.toml", "--pcap", "scenario.toml"], 2);
    lab.congestlab(&["run", "scenario.toml", "--pcap", "scenario.toml/pcap"], 2);
    lab.congestlab(&["run", "scenario.toml", "--snaplen", "100"], 2);

    // A disk that fills up: the shell lets no file grow beyond 100 blocks, and nothing dies of it.
    let binary = env!("CARGO_BIN_EXE_congestlab");
    let line = format!("trap '' XFSZ; ulimit -f 100; exec {binary} run scenario.toml --json --pcap pcap");
    let output = lab.command("/bin/sh", &["-c", &line]).output().expect("there is a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(".pcapng") && stderr.contains("can not write"), "{stderr}");
    assert!(!lab.path("pcap").exists(), "something is left");

    // Ctrl-C while packets are written.
    let mut command = lab.command(
        binary,
        &["run", "scenario.toml", "--pcap", "new/pcap", "--set", "run.duration=\"1000000 s\""],
    );
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let has_grown = || {
        let entries = fs::read_dir(lab.path("new/pcap")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).any(|metadata| metadata.len() > 0)
    };
    for _ in 0..1000 {
        if has_grown() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(has_grown(), "nothing was written while it ran");
    kill_process(Pid::from_child(&child), Signal::INT).expect("the child is ours and alive");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!lab.path("new").exists(), "something is left");
}

#[test]
fn the_examples_of_the_page_on_traces_work() {
    let Some(lab) = Lab::new("the_examples_of_the_page_on_traces_work", "") else { return };
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::os::unix::fs::symlink(top.join("scenarios"), lab.path("scenarios")).expect("writable");
    let page = fs::read_to_string(top.join("docs/traces.md")).expect("a document of the repository");
    let binaries = Path::new(env!("CARGO_BIN_EXE_congestlab")).parent().expect("a folder").display();
    let mut count = 0;
    for block in page.split("\n```sh\n").skip(1) {
        for line in block.split("\n```").next().unwrap_or_default().lines() {
            let mut command = lab.command("/bin/sh", &["-c", line]);
            let path = format!("{}:{binaries}:/usr/bin:/bin", lab.path("bin").display());
            let output = command.env("PATH", path).output().expect("a shell");
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            let shown = String::from_utf8_lossy(&output.stdout);
            let is_full =
                line.starts_with("mergecap") || shown.lines().filter(|line| line.len() > 2).count() > 1;
            assert!(is_full, "{line} shows nothing: {shown}");
            count += 1;
        }
    }
    assert!(count >= 10, "{count} examples");
}
