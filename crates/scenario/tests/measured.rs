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
    let flow = &read.flows[0];
    assert_eq!((flow.began_s, flow.from_s, flow.bytes[0].from_s), (1_000_000.0, 1_000_001.0, 1_000_001.0));
    assert!(read.notes[0].contains("omit"), "{:?}", read.notes);
    // The first interval after it begins on the clock of before, in version 3.12.
    omitted["intervals"][1]["streams"][0]["start"] = json!(1.999_996);
    let flow = &parse(omitted.to_string().as_bytes()).flows[0];
    assert_eq!((flow.bytes[0].from_s, flow.bytes[0].to_s), (1_000_001.0, 1_000_002.0));
    // Newer versions know it sharper; an interrupted one says so.
    let mut newer = iperf3();
    newer["start"]["timestamp"]["timemillisecs"] = json!(1_000_000_250_u64);
    newer["error"] = json!("interrupt - the client has terminated");
    let read = parse(newer.to_string().as_bytes());
    assert_eq!(read.flows[0].from_s, 1_000_000.25);
    assert!(read.notes[0].contains("interrupt"), "{:?}", read.notes);
}

/// The same recording with what the server saw: 1000 bytes less in each interval, on a clock that is `late` seconds late.
fn with_server(late: i64) -> Value {
    let mut file = iperf3();
    let mut server = iperf3();
    server["start"]["timestamp"]["timesecs"] = json!(1_000_000 + late);
    let ends = json!([{ "socket": 6, "local_host": "10.0.0.2", "local_port": 5201,
                        "remote_host": "10.0.0.1", "remote_port": 4000 }]);
    server["start"]["connected"] = ends;
    for interval in 0..2 {
        let stream = &mut server["intervals"][interval]["streams"][0];
        (stream["socket"], stream["sender"], stream["bytes"]) = (json!(6), json!(false), json!(124_000));
    }
    file["server_output_json"] = server;
    file
}

#[test]
fn the_servers_intervals_are_on_the_clients_clock() {
    let right = parse(with_server(0).to_string().as_bytes());
    assert_eq!((sum(&right.flows[0]), &right.notes), (248_000.0, &Vec::new()));
    for late in [-20, -1, 1, 20, 100_000] {
        assert_eq!(parse(with_server(late).to_string().as_bytes()), right, "{late}");
    }
}

#[test]
fn versions_of_iperf3_that_do_not_say_who_sends_have_a_role() {
    let of = |reverse: bool, is_server: bool, is_linux: bool| {
        let mut file = iperf3();
        let role = if is_server { "accepted_connection" } else { "connecting_to" };
        file["start"][role] = json!({ "host": "10.0.0.2", "port": 5201 });
        file["start"]["test_start"]["reverse"] = json!(i32::from(reverse));
        for interval in 0..2 {
            let stream = file["intervals"][interval]["streams"][0].as_object_mut().expect("an object");
            stream.remove("sender");
            // Linux alone counts them, at senders.
            if !is_linux || reverse != is_server {
                stream.remove("retransmits");
            }
        }
        parse(file.to_string().as_bytes()).notes.iter().any(|note| note.contains("--get-server-output"))
    };
    for is_linux in [true, false] {
        assert!(of(false, false, is_linux) && of(true, true, is_linux), "a sender's bytes did not arrive");
        assert!(!of(true, false, is_linux) && !of(false, true, is_linux));
    }
    // Without its role, too.
    let mut file = iperf3();
    for interval in 0..2 {
        file["intervals"][interval]["streams"][0].as_object_mut().expect("an object").remove("sender");
    }
    assert!(parse(file.to_string().as_bytes()).notes[0].contains("--get-server-output"));
}

#[test]
fn texts_around_a_recording_are_refused_with_their_beginning() {
    let good = iperf3().to_string();
    let pretty = serde_json::to_string_pretty(&iperf3()).expect("JSON");
    // A mark that editors put before a text means nothing.
    assert_eq!(parse(format!("\u{feff}{good}").as_bytes()), parse(good.as_bytes()));
    let events = "{\"event\":\"start\",\"data\":{}}\n{\"event\":\"interval\",\"data\":{}}\n";
    let utf16: Vec<u8> = [0xfeff].into_iter().chain(good.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for (bytes, says) in [
        (format!("[{good}]").into_bytes(), "it: `[{\""),
        (
            format!("[\n{pretty}\n]").into_bytes(),
            "` is a list, not one recording; give each recording a file",
        ),
        (events.as_bytes().to_vec(), "`{\"event\":\"start\",\"data\":{}}` is a stream of iperf3's events"),
        (format!("{pretty}\n\n{pretty}").into_bytes(), "begins a second recording; give each"),
        (format!("{good}\n{good}").into_bytes(), "it, line 2: `{\""),
        (
            format!("{good}\niperf3: exiting\n").into_bytes(),
            "it, line 2: `iperf3: exiting` stands behind the JSON",
        ),
        (
            format!("\nwarning: this system has no IPv6\n{pretty}").into_bytes(),
            "it, line 2: `warning: this system has no IPv6` stands before the JSON; remove",
        ),
        (
            changed("/intervals", json!([])),
            "it, intervals: iperf3 recorded no interval; record with an interval",
        ),
        (b"BZh91AY&SY".to_vec(), "it is packed by bzip2; unpack it with bunzip2"),
        (utf16, "it is a text in UTF-16; write it as UTF-8"),
        (format!("{{\"a\": \"{}\"}}", "b".repeat(2000)).into_bytes(), "b...` has neither `intervals`"),
        (good.replace("40000", "4OOOO").into_bytes(), " in `OOOO,\""),
    ] {
        let said = refused(&bytes);
        assert!(said.contains(says), "no {says} in {said}");
        assert!(said.len() < 400, "{} bytes: {said}", said.len());
    }
    // One interval is read, and means less.
    let one = parse(&changed("/intervals", json!([iperf3()["intervals"][0].clone()])));
    assert!(one.notes.iter().any(|note| note.contains("one interval is all")), "{:?}", one.notes);
}

#[test]
fn times_that_are_no_seconds_are_refused() {
    let millis = 1_795_841_022_123_u64;
    let said = refused(ss(millis as f64, 1000).as_bytes());
    assert!(
        said.contains("line 1: `1795841022123` is no time in seconds; allowed: seconds, as `date"),
        "{said}"
    );
    let said = refused(&changed("/start/timestamp/timesecs", json!(millis)));
    assert!(
        said.contains("start.timestamp.timesecs: 1795841022123 stands where a time in seconds"),
        "{said}"
    );
    let mut file = flent();
    file["raw_values"]["TCP upload"][0]["t"] = json!(millis);
    let said = refused(file.to_string().as_bytes());
    assert!(said.contains("t: 1795841022123 stands where a time in seconds"), "{said}");
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
    // Outputs within one second of a clock of seconds lose no bytes.
    let text = [ss(10.0, 0), ss(10.0, 1000), ss(11.0, 2000), ss(11.0, 3000), ss(12.0, 4000)].concat();
    let flow = parse(text.as_bytes()).flows.remove(0);
    assert_eq!((sum(&flow), flow.until_s()), (4000.0, 12.0));
    assert_eq!((flow.bytes_between(10.0, 11.0), flow.bytes_between(11.0, 12.0)), (2000.0, 2000.0));
    // Nothing is 0, and not -0.
    let none = flow.retransmits_between(20.0, 30.0).expect("they are known");
    assert!(none == 0.0 && none.is_sign_positive() && flow.bytes_between(20.0, 30.0).is_sign_positive());
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
    assert!(refused(b"10\n\xff\n").contains("line 2: `\u{fffd}` is no text"));
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
fn flows_of_flent_are_in_the_order_of_their_numbers() {
    let mut file = flent();
    let values = file["raw_values"]["TCP upload"].take();
    let names: Vec<String> = (1..=11).map(|number| format!("TCP upload::{number}")).collect();
    file["raw_values"] = names.iter().rev().map(|name| (name.clone(), values.clone())).collect();
    let read = parse(file.to_string().as_bytes());
    assert_eq!(
        read.flows.iter().map(|flow| &flow.name).collect::<Vec<_>>(),
        names.iter().collect::<Vec<_>>()
    );
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
