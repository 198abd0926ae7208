//! Recordings of other programs: what is read of them, and what is refused with its place.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use congestlab_scenario::measured::{self, MEASURED_BYTES_MAX, MeasuredFlow, Measurement, Recorder};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// A file that the program itself wrote (docs/compare.md says how).
fn recorded(name: &str) -> (PathBuf, Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/measured").join(name);
    let bytes = fs::read(&path).expect("a file of the repository");
    (path, bytes)
}

fn parse(bytes: &[u8]) -> Measurement {
    measured::parse(Path::new("it"), bytes).unwrap_or_else(|error| panic!("{error}; {}", error.help))
}

fn refused(bytes: &[u8]) -> String {
    let error = measured::parse(Path::new("it"), bytes).expect_err("it is wrong");
    format!("{error}; {}", error.help)
}

fn sum(flow: &MeasuredFlow) -> f64 {
    flow.bytes.iter().map(|span| span.amount).sum()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_receivers_bytes_and_the_senders_windows_are_taken_of_iperf3() {
    let (path, bytes) = recorded("iperf3.json");
    let read = measured::read(&path).expect("it is a recording");
    assert_eq!((read.by, read.flows.len(), &read.notes), (Recorder::Iperf3, 2, &Vec::new()));
    let file: Value = serde_json::from_slice(&bytes).expect("JSON");
    for (index, flow) in read.flows.iter().enumerate() {
        // What arrived in all, as the server told the client at the end, without what came after the last interval.
        let arrived = number(&file["end"]["streams"][index]["receiver"]["bytes"]);
        let total = sum(flow);
        assert!(total <= arrived && total > arrived * 0.98, "{total} of {arrived}");
        let again = number(&file["end"]["streams"][index]["sender"]["retransmits"]);
        assert_eq!(flow.retransmits_total, Some(again));
        let largest = flow.cwnd_packets.iter().map(|(_, cwnd)| *cwnd).fold(0.0, f64::max);
        let told = number(&file["end"]["streams"][index]["sender"]["max_snd_cwnd"]) / 1448.0;
        assert!((largest - told).abs() < 1e-9, "{largest} of {told}");
        let port = number(&file["start"]["connected"][index]["local_port"]);
        assert!(flow.name.ends_with(&format!(":{port}")), "{}", flow.name);
        assert_eq!(flow.from_s, number(&file["start"]["timestamp"]["timesecs"]));
    }
    // Without what the server saw, the sender's bytes are told from it.
    let mut alone = file;
    alone.as_object_mut().expect("an object").remove("server_output_json");
    let read = parse(alone.to_string().as_bytes());
    assert!(read.notes[0].contains("--get-server-output"), "{:?}", read.notes);
    assert_eq!(sum(&read.flows[0]), number(&alone["end"]["streams"][0]["sender"]["bytes"]));
}

#[test]
fn ss_and_iperf3_saw_the_same() {
    let (_, bytes) = recorded("ss.txt");
    let ss = parse(&bytes);
    let iperf3 = parse(&recorded("iperf3.json").1);
    assert_eq!((ss.by, ss.flows.len()), (Recorder::Ss, 2));
    assert!(ss.notes[0].contains("left out: 1 connection"), "{:?}", ss.notes);
    for (ss, iperf3) in ss.flows.iter().zip(&iperf3.flows) {
        assert!(ss.name.starts_with(&iperf3.name), "{} and {}", ss.name, iperf3.name);
        assert_eq!(ss.retransmits_total, iperf3.retransmits_total);
        // In the seconds that both saw whole.
        let [one, other] =
            [ss, iperf3].map(|flow| flow.bytes_between(iperf3.from_s + 2.0, iperf3.from_s + 7.0));
        assert!((one - other).abs() < 0.03 * one, "{one} and {other} bytes");
    }
}

#[test]
fn goodputs_and_windows_are_taken_of_flent() {
    let read = parse(&recorded("tcp_nup.flent.gz").1);
    let names: Vec<&str> = read.flows.iter().map(|flow| flow.name.as_str()).collect();
    // Neither sums nor means, nor pings.
    assert_eq!((read.by, names), (Recorder::Flent, vec!["TCP upload::1", "TCP upload::2"]));
    for (flow, (mean, again)) in read.flows.iter().zip([(4.23, 12.0), (5.33, 13.0)]) {
        // What netperf says at its end is in the file's metadata, which nothing reads.
        let rate = sum(flow) * 8e-6 / (flow.until_s() - flow.from_s);
        assert!((rate - mean).abs() < 0.05 * mean, "{rate} of {mean}");
        assert_eq!(flow.retransmits_total, Some(again));
        assert!(flow.rtt_ms.len() > 30 && flow.rtt_ms.iter().all(|(_, rtt)| (40.0..110.0).contains(rtt)));
        assert!(flow.cwnd_packets.len() > 30);
    }
}

/// One stream of a client in two intervals.
fn iperf3() -> Value {
    let interval = |from: f64, to: f64| {
        json!({ "streams": [{ "socket": 5, "start": from, "end": to, "bytes": 125_000, "retransmits": 2,
                "snd_cwnd": 14480, "rtt": 40_000, "omitted": false, "sender": true }] })
    };
    json!({
        "start": {
            "connected": [{ "socket": 5, "local_host": "10.0.0.1", "local_port": 4000,
                            "remote_host": "10.0.0.2", "remote_port": 5201 }],
            "timestamp": { "timesecs": 1_000_000 }, "tcp_mss_default": 1448,
            "test_start": { "protocol": "TCP", "omit": 0 },
        },
        "intervals": [interval(0.0, 1.0), interval(1.0, 2.0)],
        "end": {},
    })
}

/// Recordings with one thing changed.
fn changed(pointer: &str, value: Value) -> Vec<u8> {
    let mut file = iperf3();
    *file.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    file.to_string().into_bytes()
}

#[test]
fn numbers_of_iperf3_are_on_one_clock() {
    let flow = &parse(iperf3().to_string().as_bytes()).flows[0];
    assert_eq!(flow.bytes_between(1_000_000.5, 1_000_001.5), 125_000.0);
    assert_eq!((flow.cwnd_packets[0], flow.rtt_ms[1]), ((1_000_001.0, 10.0), (1_000_002.0, 40.0)));
    assert_eq!(flow.retransmits_between(1_000_001.0, 1_000_002.0), Some(2.0));
    // What was omitted is gone, and took its time.
    let mut omitted = iperf3();
    omitted["start"]["test_start"]["omit"] = json!(1);
    omitted["intervals"][0]["streams"][0]["omitted"] = json!(true);
    omitted["intervals"][1]["streams"][0]["start"] = json!(0);
    omitted["intervals"][1]["streams"][0]["end"] = json!(1);
    let read = parse(omitted.to_string().as_bytes());
    assert_eq!(read.flows[0].bytes[0].from_s, 1_000_001.0);
    assert!(read.notes[0].contains("omit"), "{:?}", read.notes);
    // Newer versions know it sharper; an interrupted one says so.
    let mut newer = iperf3();
    newer["start"]["timestamp"]["timemillisecs"] = json!(1_000_000_250_u64);
    newer["error"] = json!("interrupt - the client has terminated");
    let read = parse(newer.to_string().as_bytes());
    assert_eq!(read.flows[0].from_s, 1_000_000.25);
    assert!(read.notes[0].contains("interrupt"), "{:?}", read.notes);
}

#[test]
fn wrong_recordings_of_iperf3_are_refused_with_their_place() {
    let stream = "/intervals/1/streams/0";
    let at = |key: &str| format!("{stream}/{key}");
    for (bytes, says) in [
        (changed(&at("bytes"), json!(-5)), "intervals[1].streams[0].bytes: -5 stands where a number from 0"),
        (changed(&at("bytes"), json!("many")), "\"many\" stands where a number"),
        (changed(&at("bytes"), json!(1e300)), "1e+300 stands where"),
        (
            changed(&at("end"), json!(0.5)),
            "intervals[1].streams[0].end: 0.5 stands where a time that is not before",
        ),
        (changed(&at("socket"), json!(6)), "socket: 6 stands where a socket of start.connected"),
        (changed(&at("sender"), json!(1)), "sender: 1 stands where true or false"),
        (changed(&at("bytes"), Value::Null), "intervals[1].streams[0]: `bytes` is missing"),
        (changed(stream, json!([])), "intervals[1].streams[0]: `socket` is missing"),
        (changed("/intervals", json!({})), "intervals: {} stands where a list"),
        (changed("/intervals", json!([])), "no flow of TCP was measured"),
        (
            changed("/start/connected/0/local_port", Value::Null),
            "start.connected[0]: `local_port` is missing",
        ),
        (changed("/start/test_start/protocol", json!("UDP")), "protocol: \"UDP\" stands where \"TCP\""),
        (changed("/start", Value::Null), "`start` is missing"),
        (
            br#"{"start":{"connected":[]},"intervals":[],"error":"unable to connect"}"#.to_vec(),
            "unable to connect",
        ),
        (br#"{"event":"start","data":{}}"#.to_vec(), "--json-stream"),
    ] {
        let said = refused(&bytes);
        assert!(said.starts_with("it") && said.contains(says), "no {says} in {said}");
    }
    let text = String::from_utf8(changed(&at("rtt"), json!(12345))).expect("a text");
    for (number, says) in
        [("NaN", "it, line 1, column"), ("1e999", "out of range"), ("-Infinity", "it is no JSON")]
    {
        let said = refused(text.replace("12345", number).as_bytes());
        assert!(said.contains(says), "{number}: {said}");
    }
    let cut = refused(&text.as_bytes()[..text.len() / 2]);
    assert!(cut.contains("EOF") && cut.contains("cut off"), "{cut}");
}

/// Output of `ss` at a time.
fn ss(at: f64, acked: u64) -> String {
    format!(
        "{at}\nState Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
         ESTAB 0 9 [fe80::1%eth0]:4000 [fe80::2]:5201\n\t cubic rtt:40.5/2 mss:1448 cwnd:10 \
         bytes_acked:{acked} retrans:0/3 lastsnd:1\n"
    )
}

#[test]
fn connections_are_followed_from_one_output_of_ss_to_the_next() {
    let text = [ss(10.0, 1000), ss(10.5, 3000), ss(11.0, 9000)].concat();
    let flow = parse(text.as_bytes()).flows.remove(0);
    // What was there at first came at times that nobody knows.
    assert_eq!((flow.from_s, sum(&flow), flow.until_s()), (10.0, 8000.0, 11.0));
    assert_eq!((flow.bytes_between(10.25, 10.75), flow.retransmits_total), (4000.0, Some(0.0)));
    assert_eq!(flow.name, "[fe80::1%eth0]:4000 > [fe80::2]:5201");
    // A connection that an output has not yet is new.
    let text = format!("9\n{text}");
    let flow = parse(text.as_bytes()).flows.remove(0);
    assert_eq!((flow.from_s, sum(&flow), flow.retransmits_total), (9.0, 9000.0, Some(3.0)));
    // Fewer bytes behind the same ports are another's, and on one line it is the same.
    let text = [ss(10.0, 5000), ss(11.0, 9000), ss(12.0, 700), ss(13.0, 8000)].concat();
    let one_line = text.replace("5201\n\t", "5201 users:((\"a b\",pid=1,fd=3))");
    for text in [&text, &one_line, &text.replace("ESTAB ", ""), &text.replace("ESTAB", "tcp ESTAB")] {
        let flows = parse(text.as_bytes()).flows;
        assert_eq!(flows.iter().map(sum).collect::<Vec<_>>(), [4000.0, 8000.0], "{text}");
    }
    // A receiver's window and round-trip time are not the flow's.
    let flow = parse(text.replace("bytes_acked", "bytes_received").as_bytes()).flows.remove(0);
    assert!(flow.cwnd_packets.is_empty() && flow.retransmits.is_none());
}

#[test]
fn wrong_outputs_of_ss_are_refused_with_their_line() {
    let good = [ss(10.0, 1000), ss(11.0, 3000)].concat();
    for (text, says) in [
        (good.replace("cwnd:10", "cwnd:NaN"), "it, line 4: `cwnd:NaN` has no number"),
        (good.replace("rtt:40.5/2", "rtt:-1/2"), "`rtt:-1/2` has no number"),
        (good.replace("bytes_acked:3000", "bytes_acked:"), "line 8: `bytes_acked:` has no number"),
        (good.replace("retrans:0/3", "retrans:0/1e99"), "`retrans:0/1e99`"),
        (good.replacen("10\n", "12\n", 1), "line 5: 11 is before the time above it"),
        (good.replacen("10\n", "1.2.3\n", 1), "line 1: `1.2.3` is no time"),
        (good.replacen("10\n", "", 1), "line 2: a connection stands before the first time"),
        (good.replacen("ESTAB", "HELLO", 1), "line 3: `HELLO 0 9"),
        (good.replacen("10\n", "ten\n", 1), "`ten` is neither a time nor a connection"),
        (String::new(), "no flow of TCP was measured"),
        ("10\n11\n".into(), "no flow of TCP was measured"),
    ] {
        let said = refused(text.as_bytes());
        assert!(said.contains(says), "no {says} in {said}");
    }
    assert!(refused(b"10\n\xff\n").contains("line 2: it is no text"));
    assert!(refused(b"PAR1\0\0").contains("allowed: what `iperf3 -J` prints"));
}

fn flent() -> Value {
    json!({
        "version": 4, "x_values": [], "results": {},
        "metadata": { "SERIES_META": { "TCP upload": { "UNITS": "Mbits/s", "TCP_RETRANSMIT": "7" },
                                       "TCP sum": { "UNITS": "Idx" } } },
        "raw_values": {
            "TCP upload": [{ "t": 10.5, "val": 8.0, "dur": 0.5 }, { "t": 11.0, "val": 16.0 },
                           { "t": 10.7, "tcp_cwnd": 12.0, "tcp_rtt": 33.5 }],
            "TCP sum": [{ "t": 10.0, "val": 1.0 }], "TCP totals": [], "Ping": [{ "t": 10.0, "val": 3.0 }],
        },
    })
}

#[test]
fn series_of_flent_that_are_no_flows_are_left_alone() {
    let read = parse(flent().to_string().as_bytes());
    assert_eq!(read.flows.len(), 1);
    let flow = &read.flows[0];
    assert_eq!((flow.from_s, sum(flow)), (10.0, 1_500_000.0));
    assert_eq!((flow.retransmits_total, flow.retransmits_between(0.0, 99.0)), (Some(7.0), None));
    assert_eq!((flow.rtt_ms[0], flow.cwnd_packets[0]), ((10.7, 33.5), (10.7, 12.0)));
}

#[test]
fn wrong_files_of_flent_are_refused_with_their_place() {
    for (pointer, value, says) in [
        ("/raw_values/TCP upload/0/val", json!(-1), "raw_values[\"TCP upload\"][0].val: -1 stands where"),
        ("/raw_values/TCP upload/0/t", Value::Null, "raw_values[\"TCP upload\"][0]: `t` is missing"),
        ("/raw_values/TCP upload/1/t", json!(10.0), "[1].t: 10.0 stands where a time that is not before"),
        ("/raw_values/TCP upload/2/tcp_cwnd", json!("x"), "tcp_cwnd: \"x\" stands where"),
        ("/raw_values/TCP upload", json!(3), "raw_values[\"TCP upload\"]: 3 stands where a list"),
        ("/raw_values", Value::Null, "`raw_values` is missing"),
        ("/raw_values", json!({}), "no flow of TCP was measured"),
        (
            "/metadata/SERIES_META/TCP upload/TCP_RETRANSMIT",
            json!("-3"),
            "TCP_RETRANSMIT: \"-3\" stands where",
        ),
    ] {
        let mut file = flent();
        *file.pointer_mut(pointer).expect(pointer) = value;
        let said = refused(file.to_string().as_bytes());
        assert!(said.contains(says), "no {says} in {said}");
    }
    assert!(refused(br#"{"a": 1}"#).contains("neither `intervals`"));
    let nested = format!("{{\"intervals\":{}", "[".repeat(100_000));
    assert!(refused(nested.as_bytes()).contains("recursion limit"));
}

#[test]
fn a_packed_file_is_unpacked_within_its_limit() {
    let pack = |bytes: &[u8]| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).expect("in memory");
        packed.finish().expect("in memory")
    };
    assert_eq!(parse(&pack(flent().to_string().as_bytes())).flows.len(), 1);
    let huge = pack(&vec![b' '; usize::try_from(MEASURED_BYTES_MAX).expect("it fits") + 1]);
    assert!(huge.len() < 1 << 20 && refused(&huge).contains("larger than 32 MiB"));
    let cut = pack(b"{}");
    assert!(refused(&cut[..cut.len() - 4]).contains("can not be unpacked"));
    let folder = measured::read(Path::new(env!("CARGO_MANIFEST_DIR"))).expect_err("it is a folder");
    assert!(folder.to_string().contains("can not be read: it is a folder"), "{folder}");
}
