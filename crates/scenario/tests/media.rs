//! Links whose directions share a medium: docs/design/protocols.md 12.2, and the half-duplex runs of the thesis.

mod common;

use std::path::Path;

use congestlab_scenario::sim::outcome::{Element, Outcome};
use congestlab_scenario::{Measure, Scenario};

/// TH's bottleneck, told its nominal capacity, and its sender, which does not pace.
const BASE: &str = r#"
[run]
duration = "100 s"
warmup = "30 s"

[links.bottleneck]
rate = "10 Mbit/s"
delay = "250 ms"
medium = "shared_fair"
queue = "833 packets"
law = { xcp = { capacity = "10 Mbit/s" } }

[flows.ftp]
law = { xcp = { pacing = false } }
path = ["bottleneck"]
access = { rate = "100 Mbit/s" }
ack = "40 B"
"#;

/// On both engines: crates/sim/tests/engines.rs has windows and threads.
fn run(scenario: &Scenario) -> Outcome {
    common::run(scenario, &Measure { series: true, events: false })
}

fn outcome(settings: &[(&str, &str)]) -> Outcome {
    run(&common::scenario(BASE, settings))
}

/// B/ms of a link direction.
fn throughput(outcome: &Outcome, link: usize) -> f64 {
    outcome.links[link].throughput_bps.expect("it was measured") / 8e3
}

/// docs/design/protocols.md 1.9: 1156.0 B/ms of 1250 with an ACK per packet, 1186.7 with one per two; whatever sends.
#[test]
fn acknowledgments_take_their_part_of_the_medium() {
    let delayed = ("flows.ftp.delayed_ack", "true");
    let tcp = [("flows.ftp.law", "\"sack\""), ("flows.ftp.awnd", "\"500 packets\"")];
    let alone = [tcp[0], tcp[1], ("links.bottleneck.delay", "\"20 ms\"")];
    for (settings, expected) in [
        (&[][..], 1156.0),
        (&[delayed][..], 1186.7),
        (&alone[..], 1156.0),
        (&[alone[0], alone[1], alone[2], delayed][..], 1186.7),
    ] {
        let got = outcome(settings);
        let found = throughput(&got, 0);
        assert!((found - expected).abs() < 0.5, "{settings:?}: {found} B/ms, not {expected}");
        let acks = if settings.contains(&delayed) { 2.0 } else { 1.0 };
        assert!((throughput(&got, 1) - found / 1500.0 * 40.0 / acks).abs() < 0.1, "{settings:?}");
        assert_eq!(got.links[0].collisions, Some(0));
        assert!(!got.links[0].drops_by_reason.is_empty() && got.links[0].drops == 0);
    }
    // Each for itself, there is no framing: the rate is that of the IP packets.
    let own = outcome(&[("links.bottleneck.medium", "\"full-duplex\"")]);
    assert!((throughput(&own, 0) - 1250.0).abs() < 0.1);
    assert_eq!(own.links[0].collisions, None);
}

/// docs/design/protocols.md 12.2: XCP that is told the nominal capacity keeps the queue of a wrong capacity (1.9),
/// Q = (alpha / beta) d (C_set - C_true) with d = d0 + Q / C_true: 64 packets, 41 with delayed ACKs.
#[test]
fn xcp_that_does_not_know_of_the_acknowledgments_keeps_a_queue() {
    for (delayed, free, packets) in [("false", 1156.0, 64.2), ("true", 1186.7, 41.1)] {
        let (missing, d0): (f64, f64) = (1250.0 - free, 500.0);
        let queue = 1.77 * d0 * missing / (1.0 - 1.77 * missing / free) / 1500.0;
        assert!((queue - packets).abs() < 0.7, "the number of the page: {queue}");
        let got = outcome(&[("flows.ftp.delayed_ack", delayed)]);
        let found = got.links[0].queue_mean_packets.expect("it was measured");
        assert!((found / packets - 1.0).abs() < 0.05, "{found} packets, not {packets}");
        let told = outcome(&[
            ("flows.ftp.delayed_ack", delayed),
            ("links.bottleneck.law.xcp.capacity", "\"9.1 Mbit/s\""),
        ]);
        let found = told.links[0].queue_mean_packets.expect("it was measured");
        assert!(found < 2.0, "told less than there is, it keeps no queue: {found}");
    }
}

/// Collisions make it larger and irregular (docs/design/protocols.md 12.2; TH 4.4).
#[test]
fn collisions_make_the_queue_larger_and_irregular() {
    let fair = outcome(&[]);
    let csma = outcome(&[("links.bottleneck.medium", "\"csma_cd\"")]);
    let mean = |outcome: &Outcome| outcome.links[0].queue_mean_packets.expect("it was measured");
    let p95 = |outcome: &Outcome| outcome.links[0].queue_p95_packets.expect("it was measured") as f64;
    assert!(mean(&csma) > 3.0 * mean(&fair), "{} of {}", mean(&csma), mean(&fair));
    assert!(p95(&fair) < 1.05 * mean(&fair) && p95(&csma) > 1.4 * mean(&csma));
    assert!(fair.seed_used && throughput(&csma, 0) < throughput(&fair, 0));
    // Both directions are in every collision, and the series tells of them.
    let collisions = csma.links[0].collisions_total.expect("a shared medium");
    assert_eq!(csma.links[1].collisions_total, Some(collisions));
    let of = |link| {
        let series = csma.series.iter();
        let here = series.filter(|s| s.element == Element::Link(link) && s.metric == "collisions");
        here.map(|sample| sample.value).sum::<f64>()
    };
    assert!(collisions > 5_000 && of(0) == collisions as f64 && of(1) == of(0), "{collisions}, {}", of(0));
    // Packets that collide 16 times are ACKs here: their station is the one that waits.
    let given_up = |link: usize| csma.links[link].drops_by_reason_total["excessive-collisions"];
    assert!(given_up(0) == 0 && given_up(1) > 100 && csma.links[1].drops_total == given_up(1));
    let stubborn = "{ csma-cd = { attempts = 1000 } }";
    let got = outcome(&[("links.bottleneck.medium", stubborn)]);
    assert_eq!(got.links[1].drops_by_reason_total["excessive-collisions"], 0);
}

/// A cloud of XCP-i may be half duplex: its oracle does not know of the acknowledgments either, and the
/// queue that one-way delays show makes up for it.
#[test]
fn xcp_i_bridges_a_half_duplex_link() {
    let text = r#"
        [run]
        duration = "20 s"
        warmup = "5 s"
        [links.in]
        rate = "100 Mbit/s"
        delay = "5 ms"
        law = { xcp = { interoperable = true } }
        [links.half]
        rate = "10 Mbit/s"
        delay = "5 ms"
        queue = "100 packets"
        medium = "shared-fair"
        [links.out]
        rate = "100 Mbit/s"
        delay = "5 ms"
        law = { xcp = { interoperable = true, virtual_queue = "cloud" } }
        [flows.ftp]
        law = { xcp = { interoperable = true } }
        path = ["in", "half", "out"]
        delayed_ack = true
    "#;
    let got = run(&common::scenario(text, &[]));
    // 1186.7 B/ms, less what the edges say to each other.
    let found = throughput(&got, 2);
    assert!((1175.0..1186.7).contains(&found) && got.links[2].drops == 0, "{found} B/ms");
    assert!(got.series.iter().any(|sample| sample.metric == "estimate_bps"));
}

/// Coefficients of variation of what each flow sends, from `from` on.
fn variation(outcome: &Outcome, from: f64) -> Vec<f64> {
    let flows = outcome.groups[0].len() as u32;
    let of = |flow| {
        let series = outcome.series.iter();
        let own = series.filter(|s| s.element == Element::Flow(0, flow) && s.metric == "throughput_bps");
        let values: Vec<f64> = own.filter(|s| s.at as f64 > from * 1e12).map(|sample| sample.value).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        variance.sqrt() / mean
    };
    (0..flows).map(of).collect()
}

/// EX1.11, EX1.12 (TH figs. 17, 18): four flows fluctuate little on a full-duplex link and much on a
/// half-duplex one. What each sends in a second.
#[test]
fn four_flows_lose_their_constant_rates_on_a_half_duplex_link() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/thesis/half-duplex-shares.toml");
    let variation = |medium: &str, rate: &str, seed: u64| {
        let set = |path: &str, value: &str| (path.to_owned(), format!("\"{value}\""));
        let settings = [
            set("links.bottleneck.medium", medium),
            set("links.cd.medium", medium),
            set("links.bottleneck.rate", rate),
            set("measure.every", "1 s"),
        ];
        let scenario = Scenario::load(&file, &settings, Some(seed)).unwrap_or_else(|error| panic!("{error}"));
        variation(&run(&scenario), 30.0)
    };
    for seed in 1..=5 {
        // Of the 10 Mbit/s of the line, frames leave this to packets of 1500 B.
        let full = variation("full-duplex", "9.753 Mbit/s", seed);
        let half = variation("csma-cd", "10 Mbit/s", seed);
        let most = |list: &[f64]| list.iter().copied().fold(0.0, f64::max);
        let least = half.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(most(&full) < 0.1, "seed {seed}: {full:?}");
        assert!(least >= 2.0 * most(&full), "seed {seed}: {half:?}, full duplex {full:?}");
    }
}
