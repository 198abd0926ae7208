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
