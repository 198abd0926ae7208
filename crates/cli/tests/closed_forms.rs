//! Cases that have an answer on paper: the scenarios of `tests/closed-forms`, run by the binary and
//! held against the formula (issue: "How right", closed forms).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// K02 §3.5; protocols.md 1.6.
const ALPHA: f64 = 0.4;
const BETA: f64 = 0.226;
const GAMMA: f64 = 0.1;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/closed-forms")
}

/// `congestlab run FILE --json` with `--set` for each change, and further arguments.
fn run_with(file: &str, changes: &[(&str, String)], arguments: &[&Path]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_congestlab"));
    command.arg("run").arg(directory().join(file)).arg("--json");
    for (path, value) in changes {
        command.arg("--set").arg(format!("{path}={value}"));
    }
    let output = command.args(arguments).output().expect("the binary of this package runs");
    assert!(
        output.status.success(),
        "{file} {changes:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("--json prints an object")
}

fn run(file: &str, changes: &[(&str, String)]) -> Value {
    run_with(file, changes, &[])
}

/// A row of the series (contract §5).
struct Sample {
    t: f64,
    element: String,
    index: usize,
    metric: String,
    value: f64,
}

/// The same with the time series.
fn run_with_series(file: &str, changes: &[(&str, String)]) -> (Value, Vec<Sample>) {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let name = format!("closed-forms-{}.csv", FILES.fetch_add(1, Ordering::Relaxed));
    let csv = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let result = run_with(file, changes, &[Path::new("--series"), &csv]);
    let text = std::fs::read_to_string(&csv).expect("--series wrote its file");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("t_s,element,index,metric,value"));
    let samples = lines.map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |i: usize| fields[i].parse::<f64>().unwrap_or_else(|_| panic!("field {i} of {line:?}"));
        Sample {
            t: number(0),
            element: fields[1].to_string(),
            index: fields[2].parse().unwrap_or(0),
            metric: fields[3].to_string(),
            value: number(4),
        }
    });
    (result, samples.collect())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

fn quoted(text: impl std::fmt::Display) -> String {
    format!("\"{text}\"")
}

/// Protocols.md 1.9: `Q = k d0 dC / (1 - k dC / C_true)`, `k = alpha / beta`, bytes.
fn standing_queue(d0: f64, capacity_true: f64, capacity_set: f64) -> f64 {
    let excess = ALPHA / BETA * (capacity_set - capacity_true);
    d0 * excess / (1.0 - excess / capacity_true)
}

#[test]
fn v1_10_a_capacity_set_too_high_keeps_the_queue_of_the_formula() {
    assert!((standing_queue(0.5, 1.219e6, 1.25e6) - 28.7e3).abs() < 100.0, "the vector itself");
    // Mbit/s of the link, Mbit/s set, ms one way.
    for (rate, set, delay) in
        [(9.752, 10.0, 250.0), (20.0, 21.0, 50.0), (50.0, 55.0, 40.0), (100.0, 105.0, 100.0)]
    {
        let result = run(
            "wrong-capacity.toml",
            &[
                ("links.bottleneck.rate", quoted(format!("{rate} Mbit/s"))),
                ("links.bottleneck.law.xcp.capacity", quoted(format!("{set} Mbit/s"))),
                ("links.bottleneck.delay", quoted(format!("{delay} ms"))),
            ],
        );
        let link = &result["links"]["bottleneck"];
        let expected = standing_queue(2e-3 * delay, rate * 1.25e5, set * 1.25e5);
        let measured = number(&link["queue_mean_packets"]) * 1500.0;
        println!("{rate} Mbit/s, set {set}: {measured:.0} B, formula {expected:.0} B");
        assert!(
            (measured / expected - 1.0).abs() <= 0.15,
            "{rate} Mbit/s set to {set}: mean queue {measured:.0} B, formula {expected:.0} B"
        );
        assert!(number(&link["utilization"]) > 0.999, "utilisation {}", link["utilization"]);
        assert_eq!(link["drops"], 0);
    }
}

#[test]
fn v1_10_a_capacity_set_too_low_is_the_utilisation() {
    let set = |rate: f64| ("links.bottleneck.law.xcp.capacity", quoted(format!("{rate} Mbit/s")));
    for rate in [9.44, 8.0] {
        let result = run("wrong-capacity.toml", &[set(rate)]);
        let link = &result["links"]["bottleneck"];
        let (measured, expected) = (number(&link["utilization"]), rate / 9.752);
        println!("set {rate}: utilisation {measured:.4}, formula {expected:.4}");
        assert!((measured - expected).abs() <= 0.01, "utilisation {measured:.4}, formula {expected:.4}");
        let queue = number(&link["queue_mean_packets"]);
        assert!(queue < 1.0, "a link that is never full has a queue of {queue} packets");
    }
}

/// Protocols.md 2.5 with scale 1: utilisation when a share `r` of the connections, with a share
/// `phi` of the traffic, can not grow.
fn utilization_with_limited_flows(r: f64, phi: f64) -> f64 {
    1.0 / (1.0 + GAMMA / ALPHA * (1.0 - (1.0 - r) / (1.0 - phi)))
}

#[test]
fn p_xcp_figure_4_capture_and_request_decide_how_much_shuffling_wastes() {
    // One packet per 80 ms is 0.1 Mbit/s of about 8.9.
    let wasted = utilization_with_limited_flows(0.5, 0.0112);
    assert!((wasted - 0.8900).abs() < 1e-4, "V2.3 itself");
    // 0.995 is no closed form but the value of the dossier's table (protocols.md 2.6).
    for (request, capture, expected) in [
        ("unlimited", false, wasted),
        ("unlimited", true, wasted),
        ("demand", false, wasted),
        ("demand", true, 0.995),
    ] {
        let result = run(
            "limited-receiver.toml",
            &[
                ("links.bottleneck.law.xcp.capture", capture.to_string()),
                ("flows.large.law.xcp.request", quoted(request)),
                ("flows.small.law.xcp.request", quoted(request)),
            ],
        );
        let measured = number(&result["links"]["bottleneck"]["utilization"]);
        println!("request {request}, capture {capture}: {measured:.4}, expected {expected:.4}");
        assert!(
            (measured - expected).abs() <= 0.01,
            "request {request}, capture {capture}: utilisation {measured:.4}, expected {expected:.4}"
        );
    }
}

#[test]
fn v1_27_a_newcomer_has_nine_tenths_of_its_share_after_20_to_26_intervals() {
    // Mbit/s, round trip in ms.
    for (rate, rtt) in [(10.0, 40.0), (10.0, 100.0), (20.0, 80.0), (50.0, 40.0), (50.0, 100.0)] {
        let (_, samples) = run_with_series(
            "takeover.toml",
            &[
                ("links.bottleneck.rate", quoted(format!("{rate} Mbit/s"))),
                ("links.bottleneck.delay", quoted(format!("{} ms", rtt / 2.0))),
                ("measure.every", quoted(format!("{} ms", rtt / 4.0))),
            ],
        );
        let of = |element: &'static str, metric: &'static str| {
            samples.iter().filter(move |s| s.element == element && s.metric == metric)
        };
        // A round trip of 22.5 packets is 22 or 23: the mean of four bins, at every bin.
        let sent: Vec<&Sample> = of("second", "throughput_bps").collect();
        let share = 0.9 * rate * 1e6 / 2.0;
        let has_share = |bins: &[&Sample]| bins.iter().map(|s| s.value).sum::<f64>() / 4.0 >= share;
        let reached = sent.windows(4).find(|bins| has_share(bins)).map(|bins| bins[3].t);
        let reached = reached.unwrap_or_else(|| panic!("{rate} Mbit/s, {rtt} ms: never"));
        let meanwhile: Vec<f64> = of("bottleneck", "interval_ms")
            .filter(|s| (15.0..=reached).contains(&s.t))
            .map(|s| s.value)
            .collect();
        let interval = meanwhile.iter().sum::<f64>() / meanwhile.len() as f64;
        let intervals = (reached - 15.0) * 1e3 / interval;
        println!("{rate} Mbit/s, {rtt} ms: {intervals:.1} intervals of {interval:.1} ms");
        assert!(
            (20.0..=26.0).contains(&intervals),
            "{rate} Mbit/s, {rtt} ms: {intervals:.1} control intervals of {interval:.1} ms"
        );
    }
}

#[test]
fn ex1_1_each_newcomer_has_its_share_within_a_second() {
    let (result, samples) = run_with_series("staggered.toml", &[]);
    let link = &result["links"]["bottleneck"];
    assert!(number(&link["utilization"]) > 0.95, "utilisation {}", link["utilization"]);
    assert_eq!(link["drops"], 0);
    // Over the round trip (a bin) that ends one second after the newcomer's start.
    for flows in 2..=5 {
        let at = 2.0 * (flows as f64 - 1.0) + 1.0;
        let rates: Vec<f64> = samples
            .iter()
            .filter(|s| s.metric == "throughput_bps" && s.element == "bulk" && s.index < flows)
            .filter(|s| (s.t - at).abs() < 1e-6)
            .map(|s| s.value)
            .collect();
        assert_eq!(rates.len(), flows, "one sample of each flow at {at} s");
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|r| r * r).sum::<f64>());
        let jain = sum * sum / (flows as f64 * squares);
        println!("{flows} flows, {at} s: Jain {jain:.4}, {rates:.0?}");
        assert!(jain > 0.99, "{flows} flows at {at} s: Jain {jain:.4}, {rates:.0?}");
    }
}

/// Protocols.md 13.5 (K02 fig. 13): a flow of XCP gets as much as one of TCP, however many there are of
/// each. With weights that stay, the ratio is that of the numbers.
#[test]
fn dynamic_weights_let_xcp_and_tcp_share_a_link() {
    let dynamic = "links.bottleneck.discipline.xcp-tcp.dynamic";
    for (xcp, tcp) in [(3, 30), (15, 30), (30, 30), (30, 15), (30, 3)] {
        let ratio = |is_dynamic: bool, seed: u64| {
            let result = run(
                "two-classes.toml",
                &[
                    ("flows.xcp.count", xcp.to_string()),
                    ("flows.tcp.count", tcp.to_string()),
                    ("run.seed", seed.to_string()),
                    (dynamic, is_dynamic.to_string()),
                ],
            );
            assert!(number(&result["links"]["bottleneck"]["utilization"]) > 0.98);
            let mean = |group: &str| {
                let flows = result["flows"][group].as_array().expect("an array of flows");
                flows.iter().map(|flow| number(&flow["throughput_bps"])).sum::<f64>() / flows.len() as f64
            };
            mean("xcp") / mean("tcp")
        };
        for seed in [1, 2] {
            let measured = ratio(true, seed);
            println!("{xcp} XCP, {tcp} TCP, seed {seed}: {measured:.2}");
            assert!((0.7..=1.4).contains(&measured), "{xcp} XCP, {tcp} TCP, seed {seed}: {measured:.2}");
        }
        let (still, expected) = (ratio(false, 1), f64::from(tcp) / f64::from(xcp));
        println!("{xcp} XCP, {tcp} TCP, weights that stay: {still:.2}");
        assert!((still / expected - 1.0).abs() < 0.1, "{xcp} XCP, {tcp} TCP: {still:.2}, not {expected:.2}");
    }
}

/// Protocols.md 3.8 without capture: the rate of `i`, from the balance solved for y by bisection.
fn merge_rate_of_i(capacity: f64, rate_of_j: f64) -> f64 {
    let balance = |y: f64| {
        let f = ALPHA * (capacity - y);
        (GAMMA * y - f) * (y - rate_of_j) / y - GAMMA * y / 2.0
    };
    let (mut low, mut high) = (capacity * ALPHA / (ALPHA + GAMMA), capacity);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if balance(middle) > 0.0 { high = middle } else { low = middle }
    }
    low - rate_of_j
}

#[test]
fn v3_5_a_flow_held_upstream_costs_the_other_what_capture_does_not_save() {
    let expected = merge_rate_of_i(40.0, 10.0);
    assert!((expected - 27.08).abs() < 0.005, "V3.5 itself: {expected:.3}");
    // With capture there is no closed form: the dossier's simulation (protocols.md 3.8).
    for (capture, expected) in [(false, expected), (true, 27.94)] {
        for scale in [1.0, 10.0] {
            let mut changes = Vec::new();
            for (capacity, rate, law) in [
                (30.0, "links.input-i.rate", "links.input-i.law.xcp.capture"),
                (10.0, "links.input-j.rate", "links.input-j.law.xcp.capture"),
                (40.0, "links.output.rate", "links.output.law.xcp.capture"),
            ] {
                changes.push((rate, quoted(format!("{} Mbit/s", capacity * scale))));
                changes.push((law, capture.to_string()));
            }
            let result = run("merge.toml", &changes);
            let rate = |flow: &str| number(&result["flows"][flow][0]["throughput_bps"]) / 1e6 / scale;
            println!(
                "capture {capture}, x{scale}: i {:.3}, expected {expected:.2}; j {:.3}",
                rate("i"),
                rate("j")
            );
            assert!(
                (rate("i") - expected).abs() <= 0.1,
                "capture {capture}, x{scale}: i {:.3} Mbit/s, expected {expected:.2}",
                rate("i")
            );
            assert!(
                (rate("j") - 10.0).abs() <= 0.2,
                "capture {capture}, x{scale}: j {:.3} Mbit/s",
                rate("j")
            );
        }
    }
}
