//! docs/design/contract.md, held word for word where it can be.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::result::{Meta, RunResult, write_events_csv, write_series_csv};
use congestlab_scenario::sim::outcome::{Element, Outcome};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Files, Measure, Scenario, schema};
use serde_json::Value;

/// docs/design/contract.md 1, the example as written.
const EXAMPLE: &str = include_str!("data/contract.toml");

fn read(text: &str) -> Scenario {
    read_with(text, &[])
}

fn read_with(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    match Scenario::parse("test.toml", text, &folder, &overrides, None) {
        Ok(scenario) => scenario,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn simulate(scenario: &Scenario) -> Outcome {
    let model = scenario.model(&Measure { series: true, events: true });
    sim::run(&model, Engine::Window { threads: 1, divisor: 1 }, &AtomicBool::new(false), &mut |_| ())
}

fn same(a: &Scenario, b: &Scenario) -> bool {
    let all = Measure { series: true, events: true };
    format!("{:?}", a.model(&all)) == format!("{:?}", b.model(&all)) && a.normalised() == b.normalised()
}

#[test]
fn the_example_is_accepted_as_written() {
    let scenario = read(EXAMPLE);
    assert!(scenario.warnings().is_empty(), "{}", scenario.warnings());
    assert!(scenario.check().is_ok());
    assert_eq!(scenario.sweep().map(|sweep| sweep.points().len()), Some(6));
    assert_eq!(scenario.claims().len(), 1);
}

/// Every form that a comment of the example offers instead.
#[test]
fn every_alternative_in_the_example_is_accepted() {
    let alternatives = [
        ("links.bottleneck.rate", "{ steps = [[\"0 s\", \"100 Mbit/s\"], [\"20 s\", \"50 Mbit/s\"]] }"),
        ("links.bottleneck.rate", "{ trace = \"lte.down\" }"),
        ("links.bottleneck.queue", "\"1 BDP\""),
        ("links.bottleneck.queue", "\"250 kB\""),
        ("links.bottleneck.discipline", "\"prio-droptail\""),
        ("links.bottleneck.discipline", "{ prio-droptail = { probe_threshold = \"1 packet\" } }"),
        (
            "links.bottleneck.discipline",
            "{ red = { min = \"50 packets\", max = \"100 packets\", max_p = 0.1, weight = 0.002, gentle = false, ecn = false } }",
        ),
        ("links.bottleneck.discipline", "{ step = { above = \"20 packets\" } }"),
        ("links.bottleneck.discipline", "{ step = { above = \"30 kB\", at = \"dequeue\" } }"),
        ("links.bottleneck.discipline", "{ step = { sojourn = \"1 ms\", drop = true } }"),
        ("links.bottleneck.discipline", "\"codel\""),
        ("links.bottleneck.discipline", "{ fq-codel = { flows = 16, ecn = false, target = \"4 ms\" } }"),
        (
            "links.bottleneck.law",
            "{ xcp = { alpha = 0.4, beta = 0.226, gamma = 0.1, capacity = \"9.9 Mbit/s\", capture = false } }",
        ),
        ("links.bottleneck.error", "{ bit_error_rate = 1e-7 }"),
        (
            "flows.ftp.law",
            "{ xcp = { loss = \"maintain\", request = \"demand\", clamp = true, aging = true, pacing = true } }",
        ),
        ("flows.ftp.law", "\"pxcp\""),
        ("flows.ftp.law", "xcp"),
        ("flows.ftp.law", "xcp-r"),
        ("flows.ftp.law", "xcp-r-v0"),
        ("flows.ftp.law", "vcp"),
        ("flows.ftp.law", "dpcp"),
        ("flows.ftp.law", "tpcp"),
        ("flows.ftp.law", "mpcp"),
        ("flows.ftp.law", "{ cbr = { rate = \"1 Mbit/s\" } }"),
        ("links.bottleneck.law", "xcp"),
        ("links.bottleneck.law", "pxcp"),
        (
            "links.bottleneck.law",
            "{ xcp2 = { calibrate = false, headroom = 2, hops = false, sparse = false, spread = false } }",
        ),
        ("flows.ftp.law", "{ xcp2 = { hops = false, sparse = false, beside = false, aging = false } }"),
        ("links.bottleneck.law", "vcp"),
        ("links.bottleneck.law", "dpcp"),
        ("links.bottleneck.law", "tpcp"),
        ("links.bottleneck.law", "mpcp"),
        ("flows.ftp.law", "{ onoff = { rate = \"10 Mbit/s\", on = \"2 s\", off = \"3 s\" } }"),
        ("flows.ftp.law", "{ onoff = { rate = \"10 Mbit/s\", on = \"2 s\", off = \"3 s\", random = true } }"),
        ("flows.ftp.law", "reno"),
        ("flows.ftp.law", "newreno"),
        ("flows.ftp.law", "sack"),
        ("flows.ftp.law", "{ sack = { byte_counting = true } }"),
        ("flows.ftp.law", "cubic"),
        ("flows.ftp.law", "fack"),
        ("flows.ftp.law", "highspeed"),
        ("flows.ftp.law", "{ highspeed = { limited_slow_start = true } }"),
        (
            "flows.ftp.law",
            "{ bic = { low_window = 20, max_increment = 16, min_increment = 0.5, beta = 0.2 } }",
        ),
        ("flows.ftp.law", "{ vegas = { alpha = 2, beta = 4.5, gamma = 1, decrease = 0.5 } }"),
        ("flows.ftp.law", "bbr"),
        ("flows.ftp.law", "dctcp"),
        ("flows.ftp.law", "{ dctcp = { linux = true } }"),
        (
            "flows.ftp.law",
            "{ bbr3 = { loss_threshold = 0.05, beta = 0.5, probe_rtt_interval = \"10 s\", probe_wait = \"1 s\" } }",
        ),
        ("flows.ftp.law", "prague"),
        ("flows.ftp.law", "abc"),
        (
            "flows.ftp.law",
            "{ hpcc = { base_rtt = \"20 us\", eta = 0.9, additive = 0.001, desired_rate = \"25 Gbit/s\" } }",
        ),
        ("flows.ftp.law", "{ csig = { step = \"1 ms\" } }"),
        ("links.bottleneck.law", "{ hpcc = { base_rtt = \"20 us\", capacity = \"5 Mbit/s\" } }"),
        ("links.bottleneck.law", "{ csig = { window = \"128 us\" } }"),
        ("flows.ftp.law", "{ scone = { period = \"10 s\", every = \"3 s\" } }"),
        (
            "links.bottleneck.law",
            "{ scone = { eta = 0.9, interval = \"1 s\", hold = \"10 s\", updates = 8, capacity = \"5 Mbit/s\" } }",
        ),
        (
            "links.bottleneck.law",
            "{ abc = { eta = 0.9, delta = \"100 ms\", threshold = \"50 ms\", window = \"40 ms\", capacity = \"5 Mbit/s\" } }",
        ),
        ("flows.ftp.law", "{ prague = { rtt_independent = false, rtt_target = \"10 ms\", transition = 1 } }"),
        ("flows.ftp.law", "peach"),
        ("flows.ftp.law", "peach-plus"),
        ("flows.ftp.law", "{ peach-plus = { variant = \"peach\", rwnd = 128, probes_per_ack = 1 } }"),
        (
            "flows.ftp.law",
            "{ bbr = { startup_gain = 2.77, cwnd_gain = 2, rtprop_window = \"5 s\", probe_rtt = \"100 ms\" } }",
        ),
        ("flows.ftp.recovery", "fack"),
        ("flows.ftp.recovery", "newreno"),
        ("flows.ftp.profile", "ns2"),
        ("links.bottleneck.profile", "ns2"),
        ("links.bottleneck.feedback_at", "enqueue"),
        ("links.bottleneck.capacity_from", "drain"),
        ("links.bottleneck.capacity_from", "qdisc"),
        ("flows.ftp.path", "[\"bottleneck.reverse\"]"),
        ("flows.ftp.start", "{ every = \"2 s\", from = \"0 s\" }"),
        ("flows.ftp.start", "{ uniform = \"1 s\" }"),
        ("links.bottleneck.reverse.law", "xcp"),
        ("links.\"bottleneck.reverse\".rate", "2 Mbit/s"),
    ];
    for (path, value) in alternatives {
        let scenario = read_with(EXAMPLE, &[(path, value)]);
        assert!(same(&scenario, &read(&scenario.normalised())), "{path} = {value}");
    }
}

#[test]
fn the_normal_form_reads_back_as_the_same_scenario() {
    let scenario = read(EXAMPLE);
    let again = read(&scenario.normalised());
    assert!(same(&scenario, &again));
    assert_eq!(scenario.hash("1"), again.hash("1"));
    assert_ne!(scenario.hash("1"), scenario.hash("2"), "other code is another run");
    assert_ne!(scenario.hash("1"), read_with(EXAMPLE, &[("run.seed", "2")]).hash("1"));
}

#[test]
fn a_set_value_needs_no_quotes_where_a_shell_took_them() {
    let quoted = read_with(EXAMPLE, &[("links.bottleneck.rate", "\"1 Gbit/s\"")]);
    let bare = read_with(EXAMPLE, &[("links.bottleneck.rate", "1 Gbit/s")]);
    assert!(same(&quoted, &bare));
    assert!(quoted.normalised().contains("rate = \"1 Gbit/s\""));
}

/// docs/design/contract.md 5, each list in its order.
#[test]
fn a_result_has_exactly_the_keys_of_the_contract() {
    let scenario = read(EXAMPLE);
    let result = RunResult::new(&scenario, &simulate(&scenario), Meta::default()).to_json();
    let keys =
        |value: &Value| value.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    assert_eq!(
        keys(&result),
        [
            "schema",
            "complete",
            "seed",
            "seed_used",
            "fingerprint",
            "duration_s",
            "warmup_s",
            "packet_hops",
            "links",
            "flows",
            "jain",
            "meta"
        ]
    );
    assert_eq!(keys(&result["links"]), ["bottleneck", "bottleneck.reverse"]);
    assert_eq!(
        keys(&result["links"]["bottleneck.reverse"]),
        [
            "capacity_bps",
            "throughput_bps",
            "utilization",
            "sent_packets",
            "arrived_packets",
            "drops",
            "drops_by_reason",
            "errors",
            "marks",
            "in_flight_end",
            "queue_mean_packets",
            "queue_p95_packets",
            "queue_max_packets",
            "queue_end_packets",
            "queue_delay_mean_ms",
            "queue_delay_p50_ms",
            "queue_delay_p95_ms",
            "queue_delay_p99_ms",
            "queue_delay_max_ms",
            "sent_packets_total",
            "arrived_packets_total",
            "drops_total",
            "drops_by_reason_total",
            "errors_total",
            "marks_total",
            "queue_max_packets_total"
        ]
    );
    assert_eq!(keys(&result["flows"]), ["ftp", "background"]);
    assert_eq!(result["flows"]["ftp"].as_array().map(Vec::len), Some(20));
    assert_eq!(
        keys(&result["flows"]["background"][8]),
        [
            "goodput_bps",
            "payload_bps",
            "throughput_bps",
            "sent_packets",
            "received_packets",
            "arrived_bytes",
            "delivered_bytes",
            "retransmits",
            "spurious_retransmits",
            "timeouts",
            "window_cuts",
            "rtt_mean_ms",
            "rtt_p95_ms",
            "cwnd_mean_packets",
            "cwnd_max_packets",
            "idle_max_s",
            "start_s",
            "stop_s",
            "completion_s",
            "size_bytes",
            "slowdown",
            "sent_packets_total",
            "received_packets_total",
            "arrived_bytes_total",
            "delivered_bytes_total",
            "retransmits_total",
            "spurious_retransmits_total",
            "timeouts_total",
            "window_cuts_total",
            "cwnd_max_packets_total",
            "idle_max_s_total"
        ]
    );
    assert_eq!(keys(&result["jain"]), ["ftp", "background"]);
    assert!(result["flows"]["background"][0]["rtt_mean_ms"].is_null(), "nulls are explicit");
}

#[test]
fn two_runs_are_equal_to_the_byte() {
    let scenario = read(EXAMPLE);
    let text = || {
        let outcome = simulate(&scenario);
        let (mut series, mut events) = (Vec::new(), Vec::new());
        write_series_csv(&mut series, &scenario, &outcome).unwrap();
        write_events_csv(&mut events, &scenario, &outcome).unwrap();
        let result = RunResult::new(&scenario, &outcome, Meta::default()).to_json().to_string();
        (result, series, events)
    };
    assert_eq!(text(), text());
}

#[test]
fn tables_have_the_columns_and_names_of_the_contract() {
    let scenario = read(EXAMPLE);
    let outcome = simulate(&scenario);
    let mut series = Vec::new();
    write_series_csv(&mut series, &scenario, &outcome).unwrap();
    let series = String::from_utf8(series).unwrap();
    let mut lines = series.lines();
    assert_eq!(lines.next(), Some("t_s,element,index,metric,value"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == 5));
    let of = |element: &str| {
        rows.iter().filter(|row| row[1] == element).map(|row| row[3]).collect::<BTreeSet<_>>()
    };
    let link = [
        "feedback_Bps",
        "input_Bps",
        "interval_ms",
        "persistent_queue_bytes",
        "queue_bytes",
        "queue_delay_ms",
        "queue_max_packets",
        "queue_packets",
        "throughput_bps",
    ];
    assert_eq!(of("bottleneck"), BTreeSet::from(link));
    for metric in ["goodput_bps", "cwnd_packets", "srtt_ms"] {
        assert!(of("ftp").contains(metric), "{metric}");
    }
    let first: Vec<&str> = rows.iter().map(|row| row[0]).take(1).collect();
    assert_eq!(first, ["0.1"], "measure.every is 100 ms");
    assert_eq!(rows.last().map(|row| row[0]), Some("60"));
    assert!(
        rows.iter().all(|row| (row[2].is_empty()) == row[1].starts_with("bottleneck")),
        "links have no index"
    );

    let mut events = Vec::new();
    write_events_csv(&mut events, &scenario, &outcome).unwrap();
    let events = String::from_utf8(events).unwrap();
    assert_eq!(events.lines().next(), Some("t_s,element,index,event,detail,flow,flow_index,value"));
    let count =
        |kind: &str| events.lines().filter(|line| line.split(',').nth(3) == Some(kind)).count() as u64;
    let dropped: u64 = outcome.links.iter().map(|link| link.drops_total).sum();
    let errors: u64 = outcome.links.iter().map(|link| link.errors_total).sum();
    assert!(dropped > 0 && errors > 0, "the example is lossy");
    assert_eq!((count("drop"), count("error")), (dropped, errors), "each event once");
}

/// What came until `warmup` is in the names that end in `_total` alone, to the packet.
#[test]
fn counts_and_maxima_begin_with_the_measured_time() {
    let text = EXAMPLE.replace("[flows.ftp]\nlaw = \"xcp\"", "[flows.ftp]\nlaw = \"cubic\"");
    assert_ne!(text, EXAMPLE);
    let scenario = read(&text);
    let outcome = simulate(&scenario);
    let model = scenario.model(&Measure::default());
    assert_eq!(model.warmup, 10_000_000_000_000);
    let count = |kind: &str, from: u64, is_of: &dyn Fn(&Element) -> bool| {
        let events = outcome.events.iter();
        events.filter(|e| e.kind == kind && e.at > from && is_of(&e.element)).count() as u64
    };
    let (mut early, mut late) = (0, 0);
    for (index, link) in (0..).zip(&outcome.links) {
        let is_of = |element: &Element| *element == Element::Link(index);
        for (kind, measured, total) in [
            ("drop", link.drops, link.drops_total),
            ("error", link.errors, link.errors_total),
            ("mark", link.marks, link.marks_total),
        ] {
            assert_eq!(measured, count(kind, model.warmup, &is_of), "{kind} of link {index}");
            assert_eq!(total, count(kind, 0, &is_of), "{kind} of link {index}, in all");
            (early, late) = (early + total - measured, late + measured);
        }
        assert_eq!(link.drops_by_reason.values().sum::<u64>(), link.drops);
        assert_eq!(link.drops_by_reason_total.values().sum::<u64>(), link.drops_total);
        // The first of the samples after the warmup is of a bin that began with it.
        let longest = |from: u64| {
            let of = outcome.series.iter().filter(|s| s.element == Element::Link(index) && s.at > from);
            of.filter(|s| s.metric == "queue_max_packets").map(|s| s.value as u64).max()
        };
        assert_eq!(Some(link.queue_max_packets), longest(model.warmup), "link {index}");
        assert_eq!(Some(link.queue_max_packets_total), longest(0), "link {index}");
        assert!(link.sent_packets < link.sent_packets_total || link.sent_packets_total == 0);
        let utilised = link.throughput_bps.unwrap();
        assert!(link.sent_packets as f64 * 1500.0 * 8.0 >= utilised * 50.0, "link {index}");
    }
    assert!(early > 100 && late > 100, "{early} before, {late} after");
    let mut repeated = (0, 0);
    for (group, flows) in (0..).zip(&outcome.groups) {
        for (index, flow) in (0..).zip(flows) {
            let is_of = |element: &Element| *element == Element::Flow(group, index);
            assert_eq!(flow.retransmits, count("retransmit", model.warmup, &is_of), "{group}[{index}]");
            assert_eq!(flow.timeouts, count("timeout", model.warmup, &is_of), "{group}[{index}]");
            assert_eq!(flow.retransmits_total, count("retransmit", 0, &is_of), "{group}[{index}]");
            assert_eq!(flow.timeouts_total, count("timeout", 0, &is_of), "{group}[{index}]");
            assert!(flow.cwnd_max_packets <= flow.cwnd_max_packets_total);
            assert!(flow.idle_max_s <= flow.idle_max_s_total);
            repeated.0 += flow.retransmits_total - flow.retransmits;
            repeated.1 += flow.retransmits;
        }
    }
    assert!(repeated.0 > 10 && repeated.1 > 10, "{repeated:?}");
}

/// CUBIC behind a drop-tail queue: what is sent exceeds the link. What arrives at the receivers is what the link carried,
/// a packet that crosses the border of a bin aside, also where a repaired hole delivers many segments at once.
#[test]
fn what_arrives_never_exceeds_the_capacity_as_sending_does() {
    let scenario = read(
        "[run]\nduration = \"20 s\"\n[measure]\nevery = \"100 ms\"\n\
         [links.pipe]\nrate = \"20 Mbit/s\"\ndelay = \"40 ms\"\nqueue = \"1 BDP\"\n\
         [flows.ftp]\nlaw = \"cubic\"\ncount = 2\npath = [\"pipe\"]\nstart = { every = \"5 s\" }\n",
    );
    let model = scenario.model(&Measure { series: true, events: true });
    let outcome = simulate(&scenario);
    let reference = sim::run(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| ());
    assert!(outcome == reference, "both engines see the same arrive");
    let most = |metric: &str| {
        let mut bins = std::collections::BTreeMap::<u64, f64>::new();
        for sample in outcome.series.iter().filter(|sample| sample.metric == metric) {
            if matches!(sample.element, Element::Flow(..)) {
                *bins.entry(sample.at).or_default() += sample.value;
            }
        }
        assert_eq!(bins.len(), 200, "{metric}");
        (bins.values().copied().fold(0.0, f64::max), bins.values().sum::<f64>() / 80.0)
    };
    let a_packet = 1500.0 * 8.0 / 0.1;
    let (rate, bytes) = most("received_bps");
    assert!(rate <= 20e6 + a_packet, "{rate} of 20 Mbit/s");
    let received: u64 = outcome.groups.iter().flatten().map(|flow| flow.received_packets).sum();
    assert!((bytes - received as f64 * 1500.0).abs() < 1.0, "{bytes} of {received} packets");
    assert!(most("throughput_bps").0 > 22e6, "nothing exceeds it");
    let (goodput, first) = most("goodput_bps");
    assert!(goodput <= rate && first <= bytes, "each byte counts once: {goodput}, {rate}");
    let arrived: u64 = outcome.groups.iter().flatten().map(|flow| flow.arrived_bytes).sum();
    assert!((first - arrived as f64).abs() < 1.0, "{first} of {arrived} bytes");
}

#[test]
fn results_agree_with_each_other() {
    let scenario = read(EXAMPLE);
    let outcome = simulate(&scenario);
    let bottleneck = &outcome.links[0];
    // The measured window is 50 s of 10 Mbit/s.
    let utilization = bottleneck.utilization.unwrap();
    assert!(
        (bottleneck.throughput_bps.unwrap() / bottleneck.capacity_bps.unwrap() - utilization).abs() < 1e-12
    );
    assert_eq!(bottleneck.capacity_bps, Some(10e6));
    // What flows received crossed the link and was not broken there.
    let received: u64 = outcome.groups.iter().flatten().map(|flow| flow.received_packets_total).sum();
    let arrived_end_to_end = bottleneck.sent_packets_total - bottleneck.errors_total;
    assert!(received <= arrived_end_to_end, "{received} of {arrived_end_to_end}");
    let syns = 40; // at most one connection and one probe for each of 20 flows
    assert!(arrived_end_to_end - received <= bottleneck.in_flight_end + syns);
}

#[test]
fn the_schema_accepts_what_the_decoder_accepts_and_refuses_typing_errors() {
    let schema = schema::schema();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let to_json = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    for text in [EXAMPLE, &read(EXAMPLE).normalised()] {
        let errors: Vec<String> =
            validator.iter_errors(&to_json(text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    for (right, wrong) in
        [("law = \"xcp\"", "lwa = \"xcp\""), ("seed = 1", "seed = \"1\""), ("law = \"xcp\"", "law = \"xpc\"")]
    {
        let text = EXAMPLE.replacen(right, wrong, 1);
        assert_ne!(text, EXAMPLE);
        assert!(!validator.is_valid(&to_json(&text)), "{wrong}");
    }
}

/// What an editor marks is what the decoder refuses: one grammar. A quantity may still be too fine, or out of range.
#[test]
fn the_patterns_of_the_schema_and_the_decoder_agree() {
    let schema = schema::schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let units = [
        "bit/s", "Mbit/s", "mbps", "Mbps", "kB/s", "KiB/s", "Kbit/s", "B", "kB", "KB", "MiB", "ms", "us",
        "µs", "min", "m", "s", "ns", "h", "packets", "packet", "BDP", "bdp", "%", "/s", "",
    ];
    let numbers =
        ["10", "1.5", "0.25", "007", "1e3", "-1", "+1", ".5", "5.", "1.2.3", "1,5", "1_000", "", " 20", "١"];
    let keys = [
        "links.bottleneck.rate",
        "links.bottleneck.delay",
        "links.bottleneck.queue",
        "links.bottleneck.packet_size",
        "flows.ftp.size",
        "flows.background.law.cbr.rate",
        "run.duration",
    ];
    let mut texts = Vec::new();
    for number in numbers {
        // What is written well may still be too fine for its unit: nanoseconds, bytes and packets are whole.
        let digits = number.trim();
        let is_decimal = digits.split('.').count() < 3
            && digits
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        for unit in units {
            let forms =
                [format!("{number} {unit}"), format!("{number}{unit}"), format!("{number}\t{unit}  ")];
            texts.extend(forms.map(|text| (text, is_decimal)));
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let table: toml::Table = EXAMPLE.parse().unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for key in keys {
        let steps: Vec<&str> = key.split('.').collect();
        for (text, is_decimal) in &texts {
            let mut table = table.clone();
            let mut place = &mut table;
            for step in &steps[..steps.len() - 1] {
                place = place.get_mut(*step).and_then(toml::Value::as_table_mut).unwrap();
            }
            place.insert(steps[steps.len() - 1].into(), text.clone().into());
            let is_drawn = validator.is_valid(&serde_json::to_value(&table).unwrap());
            let set = [(key.to_owned(), format!("'{text}'"))];
            let read = Scenario::parse("test.toml", EXAMPLE, &folder, &set, None);
            let is_too_fine = |message: &str| {
                message.contains("is finer than") || *is_decimal && message.contains("is no number of")
            };
            let wrong_grammar = read.err().is_some_and(|found| {
                found.iter().any(|one| one.code() == "scenario::unit" && !is_too_fine(one.message()))
            });
            assert_eq!(is_drawn, !wrong_grammar, "{key} = {text:?}");
            *(if is_drawn { &mut accepted } else { &mut refused }) += 1;
        }
    }
    assert!(accepted > 200 && refused > 2000, "{accepted} accepted, {refused} refused");
}

#[test]
fn the_schema_refuses_what_the_contract_does() {
    let validator = jsonschema::validator_for(&schema::schema()).unwrap();
    for (right, wrong) in [
        ("rate = \"10 Mbit/s\"", "rate = \"10 mbps\""),
        ("queue = \"200 packets\"", "queue = \"200\""),
        ("delay = \"40 ms\"", "delay = 40"),
    ] {
        let text = EXAMPLE.replacen(right, wrong, 1);
        assert_ne!(text, EXAMPLE);
        let table = serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap();
        assert!(!validator.is_valid(&table), "{wrong}");
    }
}

/// docs/scenario.md, Metrics: the completion time over a round trip and the size at the slowest hop.
#[test]
fn a_slowdown_is_over_the_least_that_the_path_takes() {
    let text = "[run]\nduration = \"40 s\"\nwarmup = \"1 s\"\n\
                [links.a]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"100 packets\"\n\
                [flows.file]\nlaw = \"sack\"\ncount = 3\npath = [\"a\"]\nsize = \"150 kB\"\n\
                start = { every = \"5 s\" }\naccess = { rate = \"4 Mbit/s\", delay = \"5 ms\" }\n\
                [flows.web]\nlaw = \"sack\"\ncount = 2\npath = [\"a\"]\nstart = \"20 s\"\n\
                size = { pareto = { shape = 1.35, mean = \"30 packets\" } }\n\
                [flows.cut]\nlaw = \"sack\"\npath = [\"a\"]\nsize = \"150 kB\"\nstart = \"39 s\"\nstop = \"39.1 s\"\n\
                [flows.endless]\nlaw = \"sack\"\npath = [\"a\"]\nstart = \"39 s\"\n";
    let scenario = Scenario::parse("sizes.toml", text, Path::new(""), &[], None)
        .unwrap_or_else(|error| panic!("{error}"));
    let outcome = simulate(&scenario);
    let result = RunResult::new(&scenario, &outcome, Meta::default()).to_json();
    for flow in result["flows"]["file"].as_array().expect("flows") {
        assert_eq!(flow["size_bytes"], 150_000);
        let (completion, slowdown) =
            (flow["completion_s"].as_f64().expect("it ends"), flow["slowdown"].as_f64());
        // Two ways of 15 ms, 150 kB at 4 Mbit/s.
        assert_eq!(slowdown, Some(completion / 0.33));
        assert!(slowdown.is_some_and(|slowdown| (1.0..3.0).contains(&slowdown)), "{flow}");
    }
    for flow in result["flows"]["web"].as_array().expect("flows") {
        assert!(flow["size_bytes"].as_u64().is_some_and(|size| size > 0 && size % 1500 == 0), "{flow}");
        assert_eq!(flow["size_bytes"], flow["delivered_bytes_total"], "{flow}");
        assert!(flow["slowdown"].as_f64().is_some_and(|slowdown| slowdown > 1.0), "{flow}");
    }
    for name in ["cut", "endless"] {
        let flow = &result["flows"][name][0];
        assert!(flow["size_bytes"].is_null() && flow["slowdown"].is_null(), "{flow}");
    }
    let link = &result["links"]["a"];
    let delay = |name: &str| link[format!("queue_delay_{name}_ms")].as_f64().expect(name);
    let order = ["mean", "p50", "p95", "p99", "max"].map(delay);
    assert!(order[1..].is_sorted() && order[0] > 0.0 && order[0] <= order[4], "{order:?}");
}

/// A page in a browser has no folders.
#[test]
fn a_trace_is_read_from_where_it_is_told() {
    let trace = [("links.bottleneck.rate", "{ trace = \"lte.down\" }")];
    let overrides = trace.map(|(path, value)| (path.to_owned(), value.to_owned()));
    let read = |files| Scenario::parse_with("test.toml", EXAMPLE, files, &overrides, None);
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lte.down")).unwrap();
    let given = Files::Given(Arc::new([("lte.down".to_owned(), bytes)].into()));
    let scenario = read(given).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert!(same(&scenario, &read_with(EXAMPLE, &trace)));

    let refused = read(Files::Given(Arc::new([("other".to_owned(), Vec::new())].into()))).unwrap_err();
    let wanted = "\"lte.down\": can not be read: there is no such file, but other";
    assert!(refused.to_string().contains(wanted), "{refused}");
}
