//! `congestlab export`: what other tools can read.

use std::collections::BTreeSet;

use congestlab_scenario::folder::RunFolder;
use qlog::events::EventData;
use qlog::events::quic::TimerEventType;

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

/// The crate of another implementation reads each event as what it is, and finds as many as the table has.
#[test]
fn others_read_the_qlog_of_a_run() {
    let (lab, folder) = lossy();
    lab.run(&["export", "qlog", &folder, "-o", "run.qlog"]).exits(0);
    let text = std::fs::read_to_string(lab.path("run.qlog")).expect("a file");
    let log: qlog::Qlog = serde_json::from_str(&text).expect("a qlog of the current draft");
    assert_eq!(log.file_schema, qlog::QLOGFILE_URI);
    assert_eq!(log.traces.len(), 2, "a trace for each flow");
    let run = RunFolder::open(&lab.path(&folder)).expect("a run");
    let (mut again, mut expired) = ([0_usize; 2], [0_usize; 2]);
    run.events(|row| match (row.event, row.index) {
        ("retransmit", Some(flow)) => again[flow as usize] += 1,
        ("timeout", Some(flow)) => expired[flow as usize] += 1,
        _ => {}
    })
    .expect("a table");
    assert!(again.iter().all(|&count| count > 0), "the scenario loses packets: {again:?}");
    for (flow, trace) in log.traces.iter().enumerate() {
        let (mut seen, mut bins, mut last) = ([0; 2], 0, 0.0);
        for event in &trace.events {
            assert!(event.time >= last, "{} comes after {last}", event.time);
            last = event.time;
            match &event.data {
                EventData::QuicPacketLost(lost) => {
                    assert!(lost.header.as_ref().is_some_and(|header| header.packet_number.is_some()));
                    seen[0] += 1;
                }
                EventData::QuicTimerUpdated(timer) => {
                    assert_eq!(timer.event_type, TimerEventType::Expired);
                    seen[1] += 1;
                }
                EventData::QuicMetricsUpdated(metrics) => {
                    assert!(metrics.congestion_window.is_some_and(|bytes| bytes >= 1500), "{metrics:?}");
                    assert!(
                        metrics.smoothed_rtt.is_none_or(|rtt| (20.0..200.0).contains(&rtt)),
                        "{metrics:?}"
                    );
                    bins += 1;
                }
                other => panic!("nobody wrote {other:?}"),
            }
        }
        assert_eq!(seen, [again[flow], expired[flow]], "{:?}", trace.title);
        assert_eq!(bins, 100, "one for each bin");
    }
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
