//! Every engine, every window, every number of threads: the same fingerprint, the same outcome.
//!
//! Models are drawn at random: chains of 1 to 20 links with mixed laws, disciplines, services,
//! errors, delays down to zero, flows over parts of the chain in both directions.

mod common;

use std::sync::atomic::AtomicBool;

use common::Draw;
use congestlab_sim::model::Model;
use congestlab_sim::outcome::Outcome;
use congestlab_sim::{Engine, run};

fn outcome(model: &Model, engine: Engine) -> Outcome {
    run(model, engine, &AtomicBool::new(false), &mut |_| {})
}

/// Compares everything, so that a hash that hashes too little does not hide a difference.
fn check(model: &Model, name: &str) -> u64 {
    let expected = outcome(model, Engine::Reference);
    for (threads, divisor) in [(1, 1), (1, 2), (1, 4), (2, 1), (3, 1), (3, 4)] {
        let got = outcome(model, Engine::Window { threads, divisor });
        assert_eq!(
            got.fingerprint, expected.fingerprint,
            "{name}: window engine with {threads} threads, window / {divisor}, differs from the reference\n{model:#?}"
        );
        let name = format!("{name}, {threads} threads, window / {divisor}: equal fingerprint, but");
        for (index, link) in model.links.iter().enumerate() {
            assert_eq!(got.links[index], expected.links[index], "{name} {}", link.name);
        }
        for (index, group) in model.groups.iter().enumerate() {
            for (flow, (got, expected)) in got.groups[index].iter().zip(&expected.groups[index]).enumerate() {
                assert_eq!(got, expected, "{name} {}[{flow}]", group.name);
            }
        }
        assert_eq!(got.packet_hops, expected.packet_hops, "{name} packet-hops");
        for (index, (got, expected)) in got.series.iter().zip(&expected.series).enumerate() {
            assert_eq!(got, expected, "{name} series, row {index}");
        }
        let flags = |o: &Outcome| (o.complete, o.seed_used, o.series.len(), o.events.len());
        assert_eq!(flags(&got), flags(&expected), "{name} flags");
        for (index, (got, expected)) in got.events.iter().zip(&expected.events).enumerate() {
            assert_eq!(got, expected, "{name} event {index}");
        }
        assert_eq!(got.groups.len(), expected.groups.len(), "{name} groups");
    }
    expected.packet_hops
}

#[test]
fn random_networks_run_alike_on_every_engine() {
    let mut hops = 0;
    for seed in 0..300 {
        let model = common::random_model(&mut Draw::new(seed), seed);
        hops += check(&model, &format!("seed {seed}"));
    }
    assert!(hops > 300_000, "the networks carried too little to prove anything: {hops} hops");
}

/// Many networks side by side are run part by part.
#[test]
fn networks_that_nothing_connects_run_alike_on_every_engine() {
    for seed in 0..3 {
        let mut draw = Draw::new(4000 + seed);
        let parts: Vec<Model> = (0..20).map(|_| common::random_model(&mut draw, seed)).collect();
        let mut model = side_by_side(&parts);
        check(&model, &format!("seed {seed} side by side"));
        model.sample_every = Some(11_000_000_000);
        model.record_events = true;
        check(&model, &format!("seed {seed} side by side, with probes"));
    }
}

fn side_by_side(parts: &[Model]) -> Model {
    let mut all = Model { links: Vec::new(), groups: Vec::new(), ..parts[0].clone() };
    for (number, part) in parts.iter().enumerate() {
        let first = all.links.len() as u32;
        all.links.extend(part.links.iter().cloned().map(|mut link| {
            link.name = format!("{number}-{}", link.name);
            link
        }));
        all.groups.extend(part.groups.iter().cloned().map(|mut group| {
            group.name = format!("{number}-{}", group.name);
            for link in group.path.iter_mut().chain(&mut group.back) {
                *link += first;
            }
            group
        }));
    }
    all
}

#[test]
fn a_network_without_any_delay_runs_alike_on_every_engine() {
    for seed in 1000..1020 {
        let mut model = common::random_model(&mut Draw::new(seed), seed);
        for link in &mut model.links {
            link.port.delay = 0;
        }
        for group in &mut model.groups {
            (group.access, group.exit) = (None, None);
        }
        check(&model, &format!("seed {seed} without delay"));
    }
}

#[test]
fn series_and_events_change_nothing_and_do_not_depend_on_the_engine() {
    for seed in 2000..2020 {
        let plain = common::random_model(&mut Draw::new(seed), seed);
        let mut probed = plain.clone();
        probed.sample_every = Some(7_000_000_000);
        probed.record_events = true;
        check(&probed, &format!("seed {seed} with probes"));
        let window = Engine::Window { threads: 1, divisor: 1 };
        let (plain, probed) = (outcome(&plain, window), outcome(&probed, window));
        assert_eq!(plain.links, probed.links, "seed {seed}");
        assert_eq!(plain.groups, probed.groups, "seed {seed}");
        assert!(!probed.series.is_empty());
    }
}

/// sent = delivered + dropped + errored + in flight, per link and in total.
#[test]
fn packets_are_conserved() {
    for seed in 3000..3060 {
        let model = common::random_model(&mut Draw::new(seed), seed);
        let got = outcome(&model, Engine::Window { threads: 1, divisor: 1 });
        let mut lost = 0;
        let mut inside = 0;
        for (link, model) in got.links.iter().zip(&model.links) {
            assert!(
                link.arrived_packets >= link.sent_packets + link.drops,
                "seed {seed}, {}: more left than came: {link:?}",
                model.name
            );
            lost += link.drops + link.errors;
            inside += link.in_flight_end;
        }
        for (flows, group) in got.groups.iter().zip(&model.groups) {
            for flow in flows {
                assert!(flow.received_packets <= flow.sent_packets, "seed {seed}, {}: {flow:?}", group.name);
                let missing = flow.sent_packets - flow.received_packets;
                assert!(
                    missing <= lost + inside + access_room(group),
                    "seed {seed}, {}: {missing} packets are nowhere ({lost} lost, {inside} in flight): {flow:?}",
                    group.name
                );
            }
        }
    }
}

/// Packets that may be in access and exit links, which report nothing: without a bound if they exist.
fn access_room(group: &congestlab_sim::model::Group) -> u64 {
    if group.access.is_some() || group.exit.is_some() { u64::MAX / 4 } else { 0 }
}

#[test]
fn a_stopped_run_is_incomplete() {
    let model = common::random_model(&mut Draw::new(7), 7);
    for engine in [Engine::Window { threads: 1, divisor: 1 }, Engine::Window { threads: 2, divisor: 1 }] {
        let got = run(&model, engine, &AtomicBool::new(true), &mut |_| {});
        assert!(!got.complete);
    }
}
