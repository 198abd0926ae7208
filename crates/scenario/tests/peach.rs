//! TCP-Peach and TCP-Peach+ on a satellite link (docs/design/protocols.md 8.7).

mod common;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::sim::outcome::{Element, Outcome, Sample};
use congestlab_scenario::sim::{Engine, run};
use congestlab_scenario::{Measure, Scenario};

fn scenario(law: &str, link: &str, flow: &str, duration: &str) -> Scenario {
    let text = format!(
        "[run]\nduration = \"{duration}\"\n[measure]\nevery = \"10 ms\"\n\
         [links.l]\nrate = \"10.4 Mbit/s\"\ndelay = \"275 ms\"\nqueue = \"200 packets\"\npacket_size = \"1000 B\"\n{link}\n\
         [flows.f]\nlaw = \"{law}\"\npath = [\"l\"]\nsegment = \"1000 B\"\nawnd = \"64 packets\"\n{flow}\n"
    );
    common::scenario(&text, &[])
}

fn outcome(scenario: &Scenario) -> Outcome {
    common::run(scenario, &Measure::default())
}

const PRIORITY: &str = "discipline = \"prio-droptail\"";

fn goodput(outcome: &Outcome) -> f64 {
    outcome.groups[0][0].goodput_bps.expect("it was measured")
}

/// Round trips from the end of the handshake until the window is 60 packets.
fn round_trips_to_60(law: &str, flow: &str) -> f64 {
    let scenario = scenario(law, PRIORITY, flow, "6 s");
    let model = scenario.model(&Measure { series: true, ..Measure::default() });
    let engine = Engine::Window { threads: 1, divisor: 1 };
    let outcome = run(&model, engine, &AtomicBool::new(false), &mut |_| {});
    let is_there = |sample: &&Sample| {
        sample.element == Element::Flow(0, 0) && sample.metric == "cwnd_packets" && sample.value >= 60.0
    };
    let at = outcome.series.iter().find(is_there).expect("it gets there").at;
    at as f64 / 0.55e12 - 1.0
}

/// EX8.1: within 2.2 round trips, where slow start from the same single segment needs 6.
#[test]
fn ex8_1_sudden_start_fills_the_window_in_two_round_trips() {
    for law in ["peach", "peach-plus"] {
        let took = round_trips_to_60(law, "");
        println!("{law}: {took:.3}");
        assert!((1.0..=2.2).contains(&took), "{law}: {took}");
    }
    let took = round_trips_to_60("sack", "initial_window = 1");
    println!("sack: {took:.3}");
    assert!((5.9..=6.2).contains(&took), "{took}");
}

/// EX8.2: one packet in a hundred is lost, and goodput is at least twice that of SACK, seed by seed.
#[test]
fn ex8_2_losses_that_are_no_congestion_cost_little() {
    let lossy = format!("{PRIORITY}\nerror = {{ packet_error_rate = 0.01 }}");
    for law in ["peach", "peach-plus"] {
        for seed in [1, 2, 3] {
            let of = |law| goodput(&outcome(&seeded(&scenario(law, &lossy, "", "200 s"), seed)));
            let (peach, sack) = (of(law), of("sack"));
            println!("{law}, seed {seed}: {peach:.0} and {sack:.0} bit/s");
            assert!(peach >= 2.0 * sack, "{law}, seed {seed}: {peach} and {sack}");
        }
    }
}

fn seeded(scenario: &Scenario, seed: u64) -> Scenario {
    Scenario::parse("peach.toml", scenario.written(), Path::new("."), &[], Some(seed)).expect("as before")
}

/// With a full link probes are what is lost: data pushes them out, and with a threshold they do not get in.
#[test]
fn probes_make_room_for_data() {
    let drops = |link: &str| {
        let link = format!("{link}\nerror = {{ packet_error_rate = 0.01 }}");
        let outcome = outcome(&scenario("peach-plus", &link, "count = 30", "60 s"));
        outcome.links[0].drops_by_reason.clone()
    };
    let open = drops(PRIORITY);
    let strict = drops("discipline = { prio-droptail = { probe_threshold = \"1 packet\" } }");
    println!("{open:?} {strict:?}");
    assert!(open["pushed-out"] > 0);
    assert!(strict["queue-full"] > open["queue-full"] + open["pushed-out"]);
}

/// Every byte of a transfer arrives, in both engines alike.
#[test]
fn it_rides_on_every_recovery_and_application() {
    let lossy = format!("{PRIORITY}\nerror = {{ packet_error_rate = 0.05 }}");
    for law in ["peach", "peach-plus"] {
        for flow in [
            "size = \"500 kB\"\nrecovery = \"reno\"",
            "size = \"500 kB\"\nrecovery = \"newreno\"\ndelayed_ack = true",
            "size = \"500 kB\"\nrecovery = \"fack\"",
            "app = { bursts = { size = \"100 kB\", pause = \"3 s\" } }\nsize = \"500 kB\"",
        ] {
            let outcome = outcome(&scenario(law, &lossy, flow, "400 s"));
            let flow_outcome = &outcome.groups[0][0];
            assert_eq!(flow_outcome.delivered_bytes, 500_000, "{law} {flow}");
            assert!(flow_outcome.completion_s.is_some());
        }
    }
}
