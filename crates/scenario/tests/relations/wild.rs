//! Random scenarios of everything that the language has, at ordinary and extreme values: both engines, with any number of
//! threads, say the same of each, and everything that a run can write is written.
//!
//! A file that is refused is as good as one that runs. What may not happen is a panic, an overflow, two outcomes, or a run of
//! many times the packets that were estimated. `CONGESTLAB_SCENARIOS` is the number of scenarios, `CONGESTLAB_SEED` the first of
//! them; `make fuzz-scenarios` runs 10,000.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use congestlab_scenario::result::{Meta, RunResult, write_events_csv, write_series_csv};
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario, store};

use crate::draw::{self, Draw};
use crate::net::{Net, Part, Table, Value, plain, table, word};

/// Scenarios that run with all tests.
const SCENARIOS: u64 = 300;
/// Packet-hops and bytes above which a scenario is only read.
const HOPS: u64 = 60_000;
const BYTES: u64 = 400_000_000;
/// A run may move so many packets that was estimated to have at most [`HOPS`].
const PACKETS: u64 = 3_000_000;

const ALL: Measure = Measure { series: true, events: true };

/// Says how it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Refused,
    Large,
    Ran,
}

/// Draws a scenario.
fn net(draw: &mut Draw, law: &'static str) -> Net {
    let mut net = if draw.one_in(8) { clouds(draw) } else { draw::net(draw, law) };
    if draw.one_in(6) {
        long(draw, &mut net);
    }
    if draw.one_in(2) {
        draw::trouble(draw, &mut net);
    }
    if draw.one_in(6) {
        let index = draw.below(net.links.len() as u64) as usize;
        let medium = draw.of(&["shared-fair", "csma-cd", "full-duplex"]);
        net.links[index].set("medium", word(medium));
        net.links[index].remove("reverse");
    }
    if draw.one_in(8) {
        let index = draw.below(net.links.len() as u64) as usize;
        net.links[index].set("police", plain(draw.between(1, 300)));
    }
    if draw.one_in(8) {
        net.flows.push(idle(draw, &net.links[0].name));
    }
    if draw.one_in(8) {
        switch(draw, &mut net);
    }
    for flow in &mut net.flows {
        if !draw.one_in(12) {
            continue;
        }
        let profile = draw.of(&["ns2", "thesis", "linux"]);
        flow.remove("recovery");
        flow.set("profile", word(profile));
    }
    if draw.one_in(2) {
        extremes(draw, &mut net);
    }
    net
}

/// Routers of XCP-i with other links between them.
fn clouds(draw: &mut Draw) -> Net {
    let mut net = draw::net(draw, "xcp");
    let (first, duration) = (net.links[0].clone(), net.duration);
    let count = draw.between(3, 6);
    net.links.clear();
    let on = |draw: &mut Draw| {
        let mut keys: Table = vec![("interoperable".into(), plain(true))];
        match draw.below(4) {
            0 => keys.push(("estimator".into(), word(draw.of(&["oracle", "pathchirp", "pathload"])))),
            1 => keys.push(("estimator".into(), table([("oracle", table([("error", plain("0.0713"))]))]))),
            _ => {}
        }
        table([("xcp", Value::Table(keys))])
    };
    for index in 0..count {
        let mut link = Part { name: format!("l{index}"), keys: Vec::new() };
        for key in ["rate", "delay"] {
            link.keys.extend(first.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        if index == 0 || index + 1 == count || draw.one_in(2) {
            let law = on(draw);
            link.set("law", law);
        } else {
            draw::shape(draw, &mut link, None);
        }
        net.links.push(link);
    }
    let all = || Value::List((0..count).map(|index| word(&format!("l{index}"))).collect());
    net.flows.truncate(1);
    net.flows[0].set("law", table([("xcp", table([("interoperable", plain(true))]))]));
    net.flows[0].set("path", all());
    net.flows[0].remove("profile");
    if draw.one_in(2) {
        let law = draw.of(&draw::TCP);
        let mut cross = draw::group(draw, "cross", law, duration, count);
        cross.set("path", Value::List(vec![word(&format!("l{}", draw.below(count)))]));
        net.flows.push(cross);
    }
    net
}

/// Makes a chain of 10 to 40 links, which one more group crosses, and others a part of it.
fn long(draw: &mut Draw, net: &mut Net) {
    let count = draw.between(10, 40);
    let Some(Value::Rate(rate)) = net.links[0].get("rate").cloned() else { return };
    for index in net.links.len() as u64..count {
        let mut link = Part { name: format!("l{index}"), keys: Vec::new() };
        link.set("rate", Value::Rate(rate + draw.about(rate)));
        link.set("delay", Value::Time(draw.odd(10, 20)));
        draw::shape(draw, &mut link, None);
        net.links.push(link);
    }
    let count = net.links.len() as u64;
    for name in ["through", "part"] {
        let law = draw.of(&draw::TCP);
        let mut flow = draw::group(draw, name, law, net.duration, count);
        if name == "through" {
            flow.set("path", Value::List((0..count).map(|index| word(&format!("l{index}"))).collect()));
        }
        net.flows.push(flow);
    }
}

/// A group that could send, and never does.
fn idle(draw: &mut Draw, link: &str) -> Part {
    let mut flow = Part { name: "idle".to_owned(), keys: Vec::new() };
    flow.set("law", table([("cbr", table([("rate", Value::Rate(draw.odd(30, 46)))]))]));
    flow.set("count", plain(draw.odd(1, 15)));
    flow.set("segment", Value::Bytes(draw.between(20, 1500)));
    flow.set("schedule", Value::List(vec![Value::List(vec![Value::Time(0), plain(0)])]));
    flow.set("path", Value::List(vec![word(link)]));
    flow
}

/// Gives the first group another path from a time on.
fn switch(draw: &mut Draw, net: &mut Net) {
    let index = draw.below(net.links.len() as u64) as usize;
    let path = Value::List(vec![word(&net.links[index].name)]);
    let at = Value::Time(draw.about(net.duration / 2));
    let switch = table([("at", at), ("path", path)]);
    net.flows[0].set("switch", Value::List(vec![switch]));
}

/// Puts some quantities to the ends of what can be said.
fn extremes(draw: &mut Draw, net: &mut Net) {
    let often = draw.between(6, 30);
    let one = |draw: &mut Draw, choices: &[u64]| choices[draw.below(choices.len() as u64) as usize];
    net.each(|value| {
        if !draw.one_in(often) {
            return;
        }
        match value {
            Value::Time(time) => {
                *time = one(draw, &[0, 1, 2, 999, 1_000_000, 3_000_000_000, 1_000_000_000_000]);
            }
            Value::Rate(rate) => {
                *rate = one(
                    draw,
                    &[
                        8,
                        9,
                        1000,
                        10_000_000_000,
                        40_000_000_000_000,
                        80_000_000_000_000,
                        100_000_000_000_000,
                    ],
                );
            }
            Value::Bytes(bytes) => *bytes = one(draw, &[1, 20, 21, 40, 60, 65_535, 1_000_000_000_000]),
            Value::Packets(packets) => *packets = one(draw, &[1, 2, 3, 65_536, 1_000_000_000]),
            _ => {}
        }
    });
    for flow in &mut net.flows {
        if draw.one_in(often) {
            flow.set("initial_window", plain(one(draw, &[1, 2, 1000, 500_000])));
        }
        if draw.one_in(often) {
            flow.set("ack", Value::Bytes(one(draw, &[20, 40, 1500, 65_535])));
        }
    }
}

fn run(scenario: &Scenario, measure: &Measure, engine: Engine, text: &str) -> Outcome {
    let stop = AtomicBool::new(false);
    let mut packets = 0;
    let outcome = sim::run(&scenario.model(measure), engine, &stop, &mut |come| {
        packets = come.packets;
        if packets > PACKETS {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert!(outcome.complete, "{packets} packets, and at most {HOPS} packet-hops were estimated\n{text}");
    outcome
}

/// Runs a scenario in all ways.
fn judge(text: &str, folder: &Path) -> End {
    let Ok(scenario) = Scenario::parse("wild.toml", text, Path::new(""), &[], None) else {
        return End::Refused;
    };
    let estimate = scenario.estimate(&ALL);
    if estimate.hops > HOPS || estimate.bytes > BYTES {
        return End::Large;
    }
    let outcome = run(&scenario, &ALL, Engine::Reference, text);
    for (threads, divisor) in [(1, 1), (2, 4), (4, 1)] {
        let other = run(&scenario, &ALL, Engine::Window { threads, divisor }, text);
        let same = other.fingerprint == outcome.fingerprint;
        assert!(same, "{threads} threads, a window of 1 in {divisor}: other events\n{text}");
        assert!(other == outcome, "{threads} threads, a window of 1 in {divisor}: other results\n{text}");
    }
    let plain = run(&scenario, &Measure::default(), Engine::Window { threads: 2, divisor: 64 }, text);
    assert!(plain.fingerprint == outcome.fingerprint, "without series and events: other events\n{text}");
    let result = RunResult::new(&scenario, &outcome, Meta::default());
    let mut tables = Vec::new();
    write_series_csv(&mut tables, &scenario, &outcome).expect("memory takes it");
    write_events_csv(&mut tables, &scenario, &outcome).expect("memory takes it");
    assert!(!tables.is_empty());
    let out = store::write_run(folder, "test", &scenario, &outcome, &result).expect("the disk takes it");
    std::fs::remove_dir_all(out).expect("ours");
    End::Ran
}

#[test]
fn random_scenarios_are_the_same_on_both_engines_and_any_threads() {
    let number =
        |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (count, first) = (number("CONGESTLAB_SCENARIOS", SCENARIOS), number("CONGESTLAB_SEED", 0));
    let laws = draw::senders();
    let next = AtomicU64::new(0);
    let (ends, broken) = (Mutex::new([0_u64; 3]), Mutex::new(Vec::new()));
    let work = || {
        let folder = tempfile::tempdir().expect("a place for temporary files");
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count {
                return;
            }
            let seed = first + place;
            let law = laws[seed as usize % laws.len()];
            let mut draw = Draw::new(0x5eed_0000_0000 + seed);
            let text = net(&mut draw, law).text();
            match catch_unwind(AssertUnwindSafe(|| judge(&text, folder.path()))) {
                Ok(end) => ends.lock().unwrap_or_else(PoisonError::into_inner)[end as usize] += 1,
                Err(_) => {
                    // What broke in the middle of arithmetic says nothing of the file.
                    println!("CONGESTLAB_SEED={seed} CONGESTLAB_SCENARIOS=1\n{text}");
                    broken.lock().unwrap_or_else(PoisonError::into_inner).push(seed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let [refused, large, ran] = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{count} scenarios: {ran} ran, {refused} refused, {large} too large");
    let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(broken.is_empty(), "{} break: {broken:?}", broken.len());
    assert!(count < 100 || ran * 3 > count, "only {ran} of {count} ran");
}
