//! `congestlab export`: what other tools can read.

use std::collections::{BTreeMap, BTreeSet};

use congestlab_scenario::folder::RunFolder;
use qlog::events::EventData;
use qlog::events::quic::{QuicFrame, TimerEventType};
use serde_json::Value;

use crate::{Lab, SCENARIO};

/// Two Reno flows whose queue is short, so that packets are lost; its folder.
fn lossy() -> (Lab, String) {
    let lab =
        Lab::new(&SCENARIO.replace("\"xcp\"", "\"none\"").replacen("\"50 packets\"", "\"5 packets\"", 1));
    std::fs::rename(lab.path("scenario.toml"), lab.path("lossy.toml")).expect("the folder is ours");
    let set = ["--set", "flows.ftp.law=reno", "--set", "run.duration=20 s"];
    let out =
        lab.run(&[&["run", "lossy.toml", "--out", "runs", "--json"], &set[..]].concat()).exits(0).json();
    let folder = out["folder"].as_str().map(str::to_owned);
    let folder = folder.unwrap_or_else(|| {
        let runs = std::fs::read_dir(lab.path("runs")).expect("a folder").flatten();
        format!(
            "runs/{}",
            runs.map(|run| run.file_name().to_string_lossy().into_owned()).next().expect("a run")
        )
    });
    (lab, folder)
}

/// Retransmissions and timeouts of each of two flows, from the table of a run.
fn recorded(lab: &Lab, folder: &str) -> [[usize; 2]; 2] {
    let run = RunFolder::open(&lab.path(folder)).expect("a run");
    let mut counts = [[0; 2]; 2];
    run.events(|row| match (row.event, row.index) {
        ("retransmit", Some(flow)) => counts[flow as usize][0] += 1,
        ("timeout", Some(flow)) => counts[flow as usize][1] += 1,
        _ => {}
    })
    .expect("a table");
    assert!(counts.iter().all(|&[again, _]| again > 0), "the scenario loses packets: {counts:?}");
    counts
}

/// Another implementation reads each event of the newest draft as what it is. Each packet is sent, and then acknowledged
/// or lost, once; as many are lost as the table of the run says.
#[test]
fn others_read_the_qlog_of_a_run() {
    let (lab, folder) = lossy();
    lab.run(&["export", "qlog", &folder, "--schema", "draft-14", "-o", "run.qlog"]).exits(0);
    let text = std::fs::read_to_string(lab.path("run.qlog")).expect("a file");
    let log: qlog::Qlog = serde_json::from_str(&text).expect("a qlog of the current draft");
    assert_eq!(log.file_schema, qlog::QLOGFILE_URI);
    assert_eq!(log.traces.len(), 2, "a trace for each flow");
    let counts = recorded(&lab, &folder);
    for (flow, trace) in log.traces.iter().enumerate() {
        assert_eq!(trace.event_schemas, ["urn:ietf:params:qlog:events:quic-13"]);
        let (mut flight, mut settled, mut last) = (BTreeSet::new(), BTreeSet::new(), 0.0);
        let [mut lost, mut expired, mut acked, mut metrics, mut named] = [0_usize; 5];
        for event in &trace.events {
            assert!(event.time >= last, "{} comes after {last}", event.time);
            last = event.time;
            match &event.data {
                EventData::QuicPacketSent(packet) => {
                    assert!(packet.raw.as_ref().is_some_and(|raw| raw.length.is_some()), "{packet:?}");
                    assert!(flight.insert(packet.header.packet_number.expect("a number")), "{packet:?}");
                }
                EventData::QuicPacketReceived(packet) => {
                    for frame in packet.frames.iter().flatten() {
                        let QuicFrame::Ack { acked_ranges: Some(ranges), .. } = frame else {
                            panic!("{frame:?}")
                        };
                        named += ranges.iter().map(|range| range.as_range_inclusive().count()).sum::<usize>();
                    }
                }
                EventData::QuicPacketsAcked(packets) => {
                    for number in packets.packet_numbers.iter().flatten() {
                        assert!(flight.remove(number) && settled.insert(*number), "{number}");
                        acked += 1;
                    }
                }
                EventData::QuicPacketLost(packet) => {
                    let number =
                        packet.header.as_ref().and_then(|header| header.packet_number).expect("a number");
                    assert!(flight.remove(&number) && settled.insert(number), "{packet:?}");
                    lost += 1;
                }
                EventData::QuicTimerUpdated(timer) => {
                    assert_eq!(timer.event_type, TimerEventType::Expired);
                    expired += 1;
                }
                EventData::QuicMetricsUpdated(found) => {
                    assert!(found.congestion_window.is_none_or(|bytes| bytes >= 1500), "{found:?}");
                    assert!(found.smoothed_rtt.is_none_or(|rtt| (20.0..200.0).contains(&rtt)), "{found:?}");
                    metrics += 1;
                }
                other => panic!("nobody wrote {other:?}"),
            }
        }
        assert_eq!([lost, expired], counts[flow], "{:?}", trace.title);
        assert!(acked > 1000 && named == acked && metrics > 1000, "{acked} {named} {metrics}");
        // The last window is under way when the run ends.
        assert!(flight.len() < 100, "{} packets met no end", flight.len());
    }
}

/// Demands of qvis (quiclog/qvis@72c8c4b): `FileLoader.ts` looks for the version among the first 1,024 characters,
/// `QlogLoaderV2.ts` for a version that it knows, events in each trace, in order, and nothing of older drafts; its congestion
/// graph wants a length and one type of packets, and acknowledged ranges of numbers that were sent.
#[test]
fn qvis_opens_the_qlog_of_a_run() {
    let (lab, folder) = lossy();
    let text = lab.run(&["export", "qlog", &folder]).exits(0).stdout();
    assert!(text[..1024].contains("qlog_version") && text[..1024].contains("\"qlog_format\":\"JSON\""));
    let log: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(log["qlog_version"], "0.3");
    let traces = log["traces"].as_array().expect("a list");
    assert_eq!(traces.len(), 2);
    let counts = recorded(&lab, &folder);
    for (flow, trace) in traces.iter().enumerate() {
        assert_eq!(trace["vantage_point"]["type"], "server");
        assert_eq!(trace["description"], "law reno");
        assert_eq!(trace["common_fields"]["time_format"], "relative");
        assert_eq!(trace["common_fields"]["reference_time"], "0");
        let events = trace["events"].as_array().expect("a list");
        assert!(!events.is_empty() && events[0].get("group_id").is_none());
        let times = events.iter().map(|event| event["time"].as_f64().expect("ms"));
        assert!(times.is_sorted());
        let (mut sent, mut kinds) = (BTreeSet::new(), BTreeMap::<&str, usize>::new());
        for event in events {
            let (name, data) = (event["name"].as_str().expect("a name"), &event["data"]);
            *kinds.entry(name).or_default() += 1;
            assert!(
                data.get("packet_type").is_none() && data["header"].get("packet_size").is_none(),
                "{event}"
            );
            if let Some(header) = data.get("header") {
                assert_eq!(header["packet_type"], "1RTT", "{event}");
            }
            match name {
                "transport:packet_sent" => {
                    assert!(data["raw"]["length"].as_u64() > Some(0), "{event}");
                    sent.insert(data["header"]["packet_number"].as_u64().expect("a number"));
                }
                "transport:packet_received" => {
                    for range in data["frames"].as_array().into_iter().flatten().flat_map(|frame| {
                        assert_eq!(frame["frame_type"], "ack");
                        frame["acked_ranges"].as_array().expect("ranges")
                    }) {
                        let [from, to] = [0, 1].map(|end| range[end].as_u64().expect("a number"));
                        assert!((from..=to).all(|number| sent.contains(&number)), "{event}");
                    }
                }
                _ => {}
            }
        }
        let expired = kinds.remove("recovery:loss_timer_updated").unwrap_or(0);
        assert_eq!([kinds["recovery:packet_lost"], expired], counts[flow]);
        let names: Vec<&str> = kinds.into_keys().collect();
        assert_eq!(
            names,
            [
                "recovery:metrics_updated",
                "recovery:packet_lost",
                "transport:packet_received",
                "transport:packet_sent",
                "transport:packets_acked",
            ]
        );
    }
    assert!(
        lab.run(&["export", "openmetrics", &folder, "--schema", "0.3"])
            .exits(2)
            .stderr()
            .contains("--schema")
    );
}

/// A flow has no metrics before it starts, and none after its last byte: simulated again, or as the folder recorded it.
#[test]
fn the_qlog_of_a_flow_is_of_its_life() {
    let text = "[run]\nduration = \"10 s\"\n[links.b]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"40 packets\"\n\
                [flows.a]\nlaw = \"sack\"\npath = [\"b\"]\ncount = 2\nsize = \"2 MB\"\nstart = { every = \"1 s\" }\n";
    let lab = Lab::new(text);
    let out = lab.run(&["run", "scenario.toml", "--out", "runs", "--json"]).exits(0).json();
    let folder =
        std::fs::read_dir(lab.path("runs")).expect("a folder").flatten().next().expect("a run").path();
    let completion = out["flows"]["a"][1]["completion_s"].as_f64().expect("it is complete");
    let life = |packets: usize| {
        let log = lab.run(&["export", "qlog", folder.to_str().expect("text")]).exits(0).json();
        let events = log["traces"][1]["events"].as_array().expect("a list").clone();
        let times: Vec<f64> = events.iter().map(|event| event["time"].as_f64().expect("ms")).collect();
        let count = events.iter().filter(|event| event["name"] == "transport:packet_sent").count();
        assert!(count >= packets, "{count}");
        assert!(times[0] >= 1000.0 && times[times.len() - 1] <= 1e3 + completion * 1e3 + 1e-6, "{times:?}");
    };
    life(1300);
    let summary = folder.join("summary.json");
    let text = std::fs::read_to_string(&summary).expect("it was written");
    let version =
        serde_json::from_str::<Value>(&text).expect("JSON")["meta"]["version"].as_str().map(str::to_owned);
    std::fs::write(&summary, text.replace(&version.expect("a version"), "0.0.1 (0000000000)"))
        .expect("writable");
    life(0);
}

/// The grammar of the text format: families in one piece, names and labels of letters that are allowed, an end.
#[test]
fn openmetrics_has_every_number_once() {
    let (lab, folder) = lossy();
    let text = lab.run(&["export", "openmetrics", &folder]).exits(0).stdout();
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let (mut family, mut families, mut samples) = ("", BTreeSet::new(), BTreeSet::new());
    for line in text.lines().take_while(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.strip_suffix(" gauge").expect("gauges alone");
            assert!(is_name(family) && families.insert(family), "{family} comes twice, or is no name");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect("a sample");
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        let (name, labels) = sample.split_once('{').expect("labels");
        assert_eq!(name, family, "{line}");
        for label in labels.strip_suffix('}').expect("their end").split("\",") {
            assert!(label.split_once("=\"").is_some_and(|(name, _)| is_name(name)), "{line}");
        }
        assert!(samples.insert(sample), "{sample} comes twice");
    }
    for sample in [
        "congestlab_link_utilization{scenario=\"lossy\",seed=\"1\",link=\"bottleneck\"}",
        "congestlab_flow_goodput_bps{scenario=\"lossy\",seed=\"1\",flow=\"ftp\",index=\"1\"}",
        "congestlab_flows_jain{scenario=\"lossy\",seed=\"1\",flow=\"ftp\"}",
        "congestlab_link_drops_by_reason{scenario=\"lossy\",seed=\"1\",link=\"bottleneck\",reason=\"queue-full\"}",
    ] {
        assert!(samples.contains(sample), "{sample} is missing in\n{text}");
    }
}

#[test]
fn what_is_no_run_is_refused_and_nothing_is_written() {
    let lab = Lab::new(SCENARIO);
    let refused = lab.run(&["export", "qlog", "..", "-o", "x.qlog"]).exits(2);
    assert!(refused.stderr().contains("is not the folder of a run"), "{}", refused.stderr());
    assert!(lab.run(&["export", "pcap", "."]).exits(2).stderr().contains("openmetrics"));
    assert_eq!(lab.files(), ["scenario.toml"]);
}
