//! XCP-r beside XCP in whole networks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::net::random::Stream;
use congestlab_scenario::sim::outcome::{Element, Outcome};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

fn outcome(text: &str) -> Outcome {
    let scenario = Scenario::parse("test.toml", text, Path::new(""), &[], None)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let model = scenario.model(&Measure { series: true, events: false });
    sim::run(&model, Engine::Window { threads: 1, divisor: 1 }, &AtomicBool::new(false), &mut |_| {})
}

/// A chain of links with XCP and flows over parts of it. The links can carry much more than their laws
/// are told, so that no queue changes the round trip times: XCP's sender multiplies feedback by what it
/// knows of them when the ACK comes, XCP-r's receiver by what it knew when the packet left.
fn network(seed: u64, law: &str) -> String {
    let mut draw = Stream::named(seed, "networks");
    let mut text = format!("[run]\nduration = \"12 s\"\nseed = {seed}\n[measure]\nevery = \"20 ms\"\n");
    let links = 1 + draw.below(3);
    for link in 0..links {
        let (rate, delay) = (4 + draw.below(200), 5 + draw.below(40));
        let _ = write!(
            text,
            "[links.l{link}]\nrate = \"10 Gbit/s\"\ndelay = \"{delay} ms\"\nqueue = \"100000 packets\"\n\
             law = {{ xcp = {{ capacity = \"{rate} Mbit/s\" }} }}\n"
        );
    }
    let flows = if seed.is_multiple_of(2) { 1 } else { 2 + draw.below(4) };
    for flow in 0..flows {
        let first = draw.below(links);
        let last = first + draw.below(links - first);
        let path: Vec<String> = (first..=last).map(|link| format!("\"l{link}\"")).collect();
        let request = ["demand", "unlimited"][draw.below(2) as usize];
        let _ = write!(
            text,
            "[flows.f{flow}]\nlaw = {{ {law} = {{ request = \"{request}\", pacing = true }} }}\npath = [{}]\n\
             segment = \"1000 B\"\nstart = \"{} ms\"\n",
            path.join(", "),
            draw.below(4000)
        );
        if draw.below(4) == 0 {
            let _ = writeln!(text, "awnd = \"{} packets\"", 5 + draw.below(60));
        }
    }
    text
}

/// EX4.9 (XR IV-A): if no ACK is lost, and no queue changes the round trip times, the windows are XCP's
/// within a segment: of a flow alone at every moment. Flows that share links are shuffled by routers whose
/// intervals end a little earlier or later, so theirs are so on average over time. No packet is lost: after a
/// loss XCP's sender goes on with the feedback on its way, XCP-r's begins anew.
#[test]
fn without_lost_acks_and_queues_one_xcp_r_flow_is_xcp_and_several_are_on_average() {
    let mut windows = 0;
    for seed in 0..60 {
        let [plain, ours] = ["xcp", "xcp-r"].map(|law| outcome(&network(seed, law)));
        assert!(plain.links.iter().chain(&ours.links).all(|link| link.drops == 0), "seed {seed}");
        let [one, other] = [&plain, &ours].map(|outcome| {
            let mut traces: BTreeMap<Element, Vec<f64>> = BTreeMap::new();
            for sample in outcome.series.iter().filter(|sample| sample.metric == "cwnd_packets") {
                traces.entry(sample.element).or_default().push(sample.value);
            }
            traces
        });
        for (flow, trace) in &one {
            windows += trace.iter().filter(|&&window| window > 2.0).count();
            let pairs = trace.iter().zip(&other[flow]);
            let apart: Vec<f64> = pairs.map(|(one, other)| (one - other).abs()).collect();
            let worst = apart.iter().copied().fold(0.0, f64::max);
            let mean = apart.iter().sum::<f64>() / apart.len() as f64;
            assert!(mean <= 1.0, "seed {seed}, {flow:?}: {mean} segments apart on average");
            assert!(one.len() > 1 || worst <= 1.0, "seed {seed}: {worst} segments apart");
        }
    }
    assert!(windows > 10_000, "the windows were small: {windows}");
}

/// Mbit/s that three flows bring over 30 Mbit/s, on average of two seeds: errors of data, lost ACKs, reordering by 2 ms.
fn carried(law: &str, delay: u32, error: f64, ack_loss: f64, reorder: f64) -> f64 {
    let run = |seed: u64| {
        let text = format!(
            "run = {{ duration = \"80 s\", warmup = \"20 s\", seed = {seed} }}\n\
             links.l = {{ rate = \"30 Mbit/s\", delay = \"{delay} ms\", packet_size = \"1000 B\", law = \"xcp\", \
             error = {{ packet_error_rate = {error} }}, reorder = {{ probability = {reorder}, delay = \"2 ms\" }}, \
             reverse = {{ law = \"xcp\", ack_loss = {ack_loss} }} }}\n\
             flows.f = {{ law = {law}, path = [\"l\"], segment = \"1000 B\", access = {{ rate = \"100 Mbit/s\" }}, \
             count = 3, start = {{ every = \"1 s\" }} }}\n"
        );
        let scenario = Scenario::parse("test.toml", &text, Path::new(""), &[], None)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let model = scenario.model(&Measure { series: false, events: false });
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let outcome = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| {});
        outcome.groups.iter().flatten().map(|flow| flow.received_packets as f64).sum::<f64>()
    };
    run(1) + run(2)
}

/// A change that the sender makes on its own costs XCP-r nothing that links grant meanwhile: it carries what XCP carries where
/// data are lost or overtake each other, and where half of the ACKs are lost nearly as much as XCP with sums.
#[test]
fn xcp_r_carries_what_xcp_carries_where_data_are_lost_or_reordered() {
    for (delay, error, ack_loss, reorder) in [
        (50, 0.01, 0.0, 0.0),
        (50, 0.0, 0.0, 0.01),
        (10, 0.003, 0.1, 0.01),
        (300, 0.003, 0.1, 0.0),
        (50, 0.01, 0.5, 0.0),
    ] {
        let of = |law: &str| carried(law, delay, error, ack_loss, reorder);
        let (xcp, ours) = (of("\"xcp\""), of("\"xcp-r\""));
        let at = format!("{delay} ms, {error}, {ack_loss}, {reorder}: {ours} of {xcp}");
        assert!(ours >= 0.98 * xcp, "{at}");
        if ack_loss == 0.5 {
            let sum = of("{ xcp = { feedback = \"sum\" } }");
            assert!(ours >= 0.95 * sum, "{at}, {sum}");
        }
        if error == 0.01 && ack_loss == 0.0 {
            let reset = of("{ xcp-r = { own = \"reset\" } }");
            assert!(reset < 0.9 * xcp, "a reset loses the grants of its round trip: {reset}; {at}");
        }
    }
}
