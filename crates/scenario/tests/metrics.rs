//! Numbers of a result that must hold for every scenario: goodput, utilisation, slowdown.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::metric::{Metric, Reading, Series};
use congestlab_scenario::net::random::Stream;
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::outcome::{Element, Outcome};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};
use serde_json::Value;

fn read(text: &str, settings: &[(&str, &str)]) -> Scenario {
    let settings: Vec<(String, String)> =
        settings.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
    Scenario::parse("test.toml", text, Path::new(""), &settings, None)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn run(scenario: &Scenario, measure: &Measure) -> (Outcome, Value) {
    let engine = Engine::Window { threads: 1, divisor: 1 };
    let outcome = sim::run(&scenario.model(measure), engine, &AtomicBool::new(false), &mut |_| {});
    let result = RunResult::new(scenario, &outcome, Meta::default()).to_json();
    (outcome, result)
}

fn number(result: &Value, metric: &str) -> f64 {
    let metric = Metric::parse(metric).unwrap_or_else(|error| panic!("{metric}: {error}"));
    metric.read(result, None).number().unwrap_or_else(|| panic!("{} is null in {result}", metric.text()))
}

/// A flow on one link.
const ONE: &str = r#"
run = { duration = "30 s", warmup = "5 s" }
links.l = { rate = "12 Mbit/s", delay = "30 ms", queue = "400 packets" }
flows.f = { law = "cubic", path = ["l"] }
"#;

/// Flows of several laws on a link that loses packets, so that the warm-up ends within a repair.
fn random_link(draw: &mut Stream) -> (String, u64) {
    let delay_ms = 1 + draw.below(120);
    let rate = 300 + draw.below(20_000);
    let queue = 2 + draw.below(300);
    let warmup_ms = 1000 + draw.below(4000);
    let mut text = format!(
        "run = {{ duration = \"8 s\", warmup = \"{warmup_ms} ms\", seed = {} }}\n\
         measure = {{ every = \"100 ms\" }}\n\
         links.l = {{ rate = \"{rate} kbit/s\", delay = \"{delay_ms} ms\", queue = \"{queue} packets\"",
        draw.below(1 << 30)
    );
    if draw.below(2) == 0 {
        text +=
            &format!(", error = {{ packet_error_rate = {} }}", [0.001, 0.01, 0.05][draw.below(3) as usize]);
    }
    text += " }\n";
    for group in 0..=draw.below(3) {
        let law = ["sack", "newreno", "reno", "cubic", "bbr", "vegas"][draw.below(6) as usize];
        let (count, segment) = (1 + draw.below(4), [576, 1000, 1500][draw.below(3) as usize]);
        let mut more = String::new();
        if draw.below(3) == 0 {
            more += &format!(", size = \"{} kB\"", 20 + draw.below(2000));
        }
        if law != "bbr" && draw.below(3) == 0 {
            more += ", delayed_ack = true";
        }
        let every = draw.below(700);
        text += &format!(
            "flows.g{group} = {{ law = \"{law}\", count = {count}, path = [\"l\"], segment = \"{segment} B\", \
             start = {{ every = \"{every} ms\" }}{more} }}\n"
        );
    }
    (text, delay_ms)
}

/// A byte arrives once, and only after the link carried it: also where a repair delivers in one moment data that
/// arrived before the warm-up.
#[test]
fn goodputs_of_a_link_are_never_above_what_it_carried() {
    let mut held = 0;
    for seed in 0..150 {
        let mut draw = Stream::named(seed, "goodput");
        let (text, delay_ms) = random_link(&mut draw);
        let scenario = read(&text, &[]);
        let (outcome, result) = run(&scenario, &Measure { series: true, events: false });
        let model = scenario.model(&Measure::default());
        // Packets that arrive in the measured time left the link a propagation delay earlier.
        let earlier = format!("\"{} ms\"", model.warmup / 1_000_000_000 - delay_ms);
        let (_, shifted) = run(&read(&text, &[("run.warmup", &earlier)]), &Measure::default());
        let carried = number(&shifted, "links.l.throughput_bps")
            * (number(&shifted, "duration_s") - shifted["warmup_s"].as_f64().unwrap());
        let measured_s = number(&result, "duration_s") - result["warmup_s"].as_f64().unwrap();
        let goodput = number(&result, "sum(flows.*.goodput_bps)") * measured_s;
        assert!(goodput <= carried * (1.0 + 1e-12), "seed {seed}: {goodput} of {carried} bits\n{text}");

        let mut bits = 0.0;
        let mut in_order = 0.0;
        for flow in outcome.groups.iter().flatten() {
            assert!(flow.payload_bps <= flow.goodput_bps, "seed {seed}: {flow:?}");
            assert!(flow.delivered_bytes_total <= flow.arrived_bytes_total, "seed {seed}: {flow:?}");
            bits += flow.arrived_bytes as f64 * 8.0;
            in_order += flow.delivered_bytes as f64 * 8.0;
        }
        assert!((goodput - bits).abs() <= 1e-6 * bits.max(1.0), "seed {seed}: one rule for sums");
        held += usize::from(in_order > carried);

        // Bins have the same rule: one packet more than the link carries in a bin, at most.
        let mut bins = std::collections::BTreeMap::<u64, f64>::new();
        for sample in &outcome.series {
            if let (Element::Flow(..), "goodput_bps") = (sample.element, sample.metric) {
                *bins.entry(sample.at).or_default() += sample.value / 10.0;
            }
        }
        let most = model.links[0].port.service.rate_at(0).0 as f64 / 10.0 + 1500.0 * 8.0;
        for (at, bits) in &bins {
            assert!(*bits <= most, "seed {seed}: {bits} of {most} bits by {at}\n{text}");
        }
        let all: u64 = outcome.groups.iter().flatten().map(|flow| flow.arrived_bytes_total).sum();
        let series: f64 = bins.values().sum();
        assert!(
            (series - all as f64 * 8.0).abs() <= 1.0,
            "seed {seed}: the bins have {series}, the totals {all} B"
        );
    }
    assert!(held > 3, "delivery in order exceeds the link in {held} scenarios alone");
}

#[test]
fn goodput_ignores_bytes_that_arrived_before_the_warm_up() {
    let settings = [
        ("flows.f.law", "sack"),
        ("links.l.rate", "10 Mbit/s"),
        ("links.l.delay", "50 ms"),
        ("links.l.queue", "5 BDP"),
        ("run.duration", "10 s"),
        ("run.warmup", "3.5 s"),
    ];
    let (outcome, result) = run(&read(ONE, &settings), &Measure::default());
    let (goodput, carried) =
        (number(&result, "flows.f[0].goodput_bps"), number(&result, "links.l.throughput_bps"));
    assert!(goodput <= carried && goodput > 0.95 * carried, "{goodput} of {carried}");
    let flow = &outcome.groups[0][0];
    assert!(flow.delivered_bytes > flow.arrived_bytes, "delivery in order keeps its name: {flow:?}");
}

/// A recording that is dense in its first thirty seconds and has one opportunity in the other 270.
#[test]
fn a_recorded_link_is_never_used_to_more_than_it_offered() {
    let stamps: String = (5000..=30_000).chain([300_000]).map(|ms| format!("{ms}\n")).collect();
    let folder = std::env::temp_dir().join(format!("congestlab-metrics-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("dense.down"), stamps).expect("a trace");
    let settings = [
        ("links.l.rate", "{ trace = \"dense.down\" }"),
        ("flows.f.law", "{ cbr = { rate = \"20 Mbit/s\" } }"),
        ("measure.every", "1 s"),
    ]
    .map(|(path, value)| (path.to_owned(), value.to_owned()));
    let scenario = Scenario::parse("test.toml", ONE, &folder, &settings, None);
    std::fs::remove_dir_all(&folder).expect("it is ours");
    let (_, result) = run(&scenario.unwrap_or_else(|error| panic!("{error}")), &Measure::default());
    let link = &result["links"]["l"];
    // 25,000 opportunities of 1500 bytes in 25 s; the one at 5 s belongs to the warm-up.
    assert_eq!(link["capacity_bps"], 12e6);
    let used = link["utilization"].as_f64().expect("a share");
    assert!((0.99..=1.0).contains(&used), "{used}");
}

#[test]
fn a_slowdown_is_over_the_least_at_the_rates_that_held_while_the_flow_ran() {
    let steps = ("links.l.rate", "{ steps = [[\"0 s\", \"40 Mbit/s\"], [\"5 s\", \"2 Mbit/s\"]] }");
    let (_, result) = run(&read(ONE, &[steps, ("flows.f.size", "4 MB")]), &Measure::default());
    let flow = &result["flows"]["f"][0];
    // 32 Mbit at 40 Mbit/s, and a round trip of 60 ms.
    let least = flow["completion_s"].as_f64().unwrap() / flow["slowdown"].as_f64().unwrap();
    assert!((least - 0.86).abs() < 1e-9, "{least}");
    for seed in 0..60 {
        let mut draw = Stream::named(seed, "slowdown");
        let mut at = 0;
        let mut step = |_| {
            let begin = at;
            at += 1 + draw.below(1500);
            format!("[\"{begin} ms\", \"{} kbit/s\"]", 200 + draw.below(40_000))
        };
        let steps = format!("{{ steps = [{}] }}", (0..6).map(&mut step).collect::<Vec<_>>().join(", "));
        let settings = [
            ("links.l.rate", steps.as_str()),
            ("links.l.delay", "7 ms"),
            ("flows.f.size", "300 kB"),
            ("flows.f.count", "5"),
            ("flows.f.start", "{ every = \"900 ms\" }"),
        ];
        let (outcome, _) = run(&read(ONE, &settings), &Measure::default());
        for flow in outcome.groups.iter().flatten() {
            assert!(flow.slowdown.is_none_or(|slowdown| slowdown >= 1.0), "seed {seed}: {steps}: {flow:?}");
        }
    }
}

/// A datagram has 28 bytes of headers, a segment 40, and more with a header of its law.
#[test]
fn payload_is_without_the_headers_that_the_packets_have() {
    for (law, segment, headers) in [
        ("{ cbr = { rate = \"1 Mbit/s\" } }", "200 B", 28.0 / 200.0),
        ("\"sack\"", "1000 B", 40.0 / 1000.0),
        ("\"xcp\"", "1000 B", 60.0 / 1000.0),
    ] {
        let (_, result) =
            run(&read(ONE, &[("flows.f.law", law), ("flows.f.segment", segment)]), &Measure::default());
        let (goodput, payload) =
            (number(&result, "flows.f[0].goodput_bps"), number(&result, "flows.f[0].payload_bps"));
        assert!((1.0 - payload / goodput - headers).abs() < 1e-9, "{law}: {payload} of {goodput}");
    }
}

/// `convergence_s` is a metric as others are. Fair shares at the very end are chance.
#[test]
fn the_convergence_time_is_a_metric_and_not_within_the_run_if_little_of_it_is_left() {
    let text = |claim: &str| {
        format!(
            "run = {{ duration = \"30 s\", warmup = \"10 s\" }}\nmeasure = {{ every = \"100 ms\" }}\n\
             links.l = {{ rate = \"20 Mbit/s\", delay = \"40 ms\", queue = \"1 BDP\", packet_size = \"1500 B\", law = \"xcp\" }}\n\
             [flows.ftp]\nlaw = \"xcp\"\ncount = 2\npath = [\"l\"]\nsegment = \"1500 B\"\nstart = {{ every = \"5 s\" }}\n\
             [[claims]]\nthat = \"they share\"\nmetric = \"{claim}\"\nat_most = 5\n"
        )
    };
    let ask = |settings: &[(&str, &str)]| {
        let scenario = read(&text("convergence_s"), settings);
        assert!(scenario.wants_series(), "the metric needs the series");
        let measure = Measure { series: true, events: false };
        let (outcome, result) = run(&scenario, &measure);
        let model = scenario.model(&measure);
        let series = Series::new(&outcome, &model);
        let read = |metric: &str| Metric::parse(metric).unwrap().read(&result, Some(&series));
        assert_eq!(read("convergence_s"), read("convergence_s.ftp"));
        read("convergence_s")
    };
    let xcp = ask(&[]).number().expect("XCP converges");
    assert!((1.0..4.0).contains(&xcp), "{xcp}");
    // At 24.9 s of 25 s CUBIC's flows were within 20 % of their mean.
    assert_eq!(ask(&[("flows.ftp.law", "cubic")]), Reading::Nothing);
    let drawn = [
        ("sweep.grid", "{ \"links.l.delay\" = [\"10 ms\", \"30 ms\"] }"),
        ("figure", "{ x = \"links.l.delay\", y = \"convergence_s\" }"),
    ];
    assert!(read(ONE, &drawn).wants_series(), "a figure over the axis of a sweep reads it");
    let warned = read(&text("convergence_s.web"), &[]);
    let told = warned.check().map_or_else(|error| error.to_string(), |warnings| warnings.to_string());
    assert!(told.contains("convergence_s is of all flows or of a group"), "{told}");
}
