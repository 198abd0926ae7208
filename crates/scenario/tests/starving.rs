//! No law starves for good: a flow alone on a path gets on, whatever slow start has lost.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_core::law::Protocol;
use congestlab_net::random::Stream;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

/// Networks for each law.
const NETWORKS: u64 = 50;
/// Round trips of a run; the second half is measured.
const ROUND_TRIPS: u64 = 200;
/// Least part of the link that a flow uses in 100 round trips.
const LEAST: f64 = 0.01;

/// Returns a draw from `low` to `high`, every factor equally likely.
fn scaled(random: &mut Stream, low: f64, high: f64) -> f64 {
    let part = random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    low * libm::pow(high / low, part)
}

/// Returns one flow of the law on one link whose pipe has at most 1,000 packets. Half of the pipes are long, because slow
/// start loses most there.
fn network(protocol: &Protocol, random: &mut Stream) -> String {
    let low = if random.below(2) == 0 { 4.0 } else { 300.0 };
    let pipe = scaled(random, low, 1000.0);
    // 100 of the shortest round trips are several retransmission timeouts.
    let round_trip = scaled(random, 0.06, 0.8);
    let rate = (pipe * 12_000.0 / round_trip) as u64;
    let delay = (round_trip * 5e8) as u64;
    let queue = (pipe * scaled(random, 0.1, 3.0)).max(5.0) as u64;
    let (warmup, duration) = (delay * ROUND_TRIPS, 2 * delay * ROUND_TRIPS);
    let name = protocol.name;
    let mut text = format!(
        "[run]\nduration = \"{duration} ns\"\nwarmup = \"{warmup} ns\"\n\
         [links.l]\nrate = \"{rate} bit/s\"\ndelay = \"{delay} ns\"\nqueue = \"{queue} packets\"\n"
    );
    if protocol.link.is_some() {
        let _ = writeln!(text, "law = \"{name}\"");
    }
    if random.below(3) == 0 {
        let _ = writeln!(text, "error = {{ packet_error_rate = {:.7} }}", scaled(random, 1e-6, 1e-4));
    }
    let _ = writeln!(text, "[flows.f]\nlaw = \"{name}\"\npath = [\"l\"]");
    let needs = protocol.sender.as_ref().map(|sender| sender.needs());
    if needs.is_some_and(|needs| !needs.each_acknowledged) && random.below(2) == 0 {
        text.push_str("delayed_ack = true\n");
    }
    text
}

#[test]
fn no_flow_with_data_and_an_idle_path_stays_below_a_hundredth_of_its_link() {
    let mut starved = String::new();
    for (law, protocol) in (0..).zip(Protocol::all().filter(|protocol| protocol.sender.is_some())) {
        for number in 0..NETWORKS {
            let text = network(protocol, &mut Stream::new([law, number]));
            let scenario = Scenario::parse("alone.toml", &text, Path::new(""), &[], None)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let model = scenario.model(&Measure::default());
            let engine = Engine::Window { threads: 1, divisor: 1 };
            let outcome = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| {});
            let used = outcome.links[0].utilization.unwrap_or(0.0);
            if used < LEAST {
                let _ = writeln!(starved, "{used:.5} of the link:\n{text}");
            }
        }
    }
    assert!(starved.is_empty(), "{starved}");
}
