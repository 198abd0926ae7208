//! A dumbbell of any size, without files and statistics on disk: what the engine alone costs.
//!
//! `dumbbell xcp|sack|bbr FLOWS PACKETS_IN_FLIGHT SECONDS [THREADS|reference [DUMBBELLS [LOSS]]]`; prints
//! packet-hops and the fingerprint. Flows and packets are shared among DUMBBELLS that stand side by side; LOSS is
//! the probability that data is lost on a bottleneck. Time it from outside (`time`, callgrind).

use std::sync::atomic::AtomicBool;

use congestlab_core::law::{LinkConfig, SenderConfig, bbr, reno, xcp};
use congestlab_core::units::{BitRate, Duration, Rate, Time};
use congestlab_net::errors::ErrorRate;
use congestlab_net::port::{LawConfig, PortConfig};
use congestlab_net::queue::Limit;
use congestlab_net::service::Service;
use congestlab_net::tcp::{Advertise, App, Config, Measure, Recovery};
use congestlab_sim::model::{Group, GroupKind, Link, Model, Pipe, Start};
use congestlab_sim::{Engine, run};

const MS: u64 = 1_000_000_000;

fn main() {
    let usage =
        "dumbbell xcp|sack|bbr FLOWS PACKETS_IN_FLIGHT SECONDS [THREADS|reference [DUMBBELLS [LOSS]]]";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize| args.get(n).and_then(|a| a.parse::<f64>().ok()).expect(usage);
    let (flows, in_flight, seconds) = (number(1) as u32, number(2), number(3));
    let is_xcp = args[0] == "xcp";
    let engine = match args.get(4).map(String::as_str) {
        Some("reference") => Engine::Reference,
        Some(threads) => Engine::Window { threads: threads.parse().expect(usage), divisor: 1 },
        None => Engine::Window { threads: 1, divisor: 1 },
    };
    let dumbbells: u32 = args.get(5).map_or(1, |count| count.parse().expect(usage));
    let loss = args.get(6).map(|rate| rate.parse().expect(usage));
    let (flows, in_flight) = (flows / dumbbells, in_flight / f64::from(dumbbells));
    // Base RTT 2 * (20 + 5 + 5) ms.
    let rate = BitRate((in_flight * 8000.0 / 0.060) as u64);
    let limit = Limit::Packets((in_flight as u64).max(2));
    let mut forward = PortConfig::new(Service::Fixed(rate), 20 * MS, limit);
    if is_xcp {
        forward.law =
            Some(LawConfig { config: LinkConfig::Xcp(xcp::LinkConfig::default()), follows_service: true });
    }
    forward.errors = loss.map(|rate| ErrorRate::Packet { rate, size: 1000 });
    let back = PortConfig::new(Service::Fixed(rate), 20 * MS, limit);
    let law = match args[0].as_str() {
        "xcp" => SenderConfig::Xcp(xcp::SenderConfig {
            desired_rate: Rate(rate.0 / 8),
            pacing: false,
            ..Default::default()
        }),
        "sack" => SenderConfig::Reno(reno::Config::default()),
        "bbr" => SenderConfig::Bbr(bbr::Config::default()),
        _ => panic!("{usage}"),
    };
    let config = Config {
        segment: 1000,
        ack: 40,
        law,
        initial_window: 1,
        window_most: congestlab_core::units::Bytes(u64::MAX),
        awnd: Some((2.0 * in_flight / f64::from(flows)).ceil() as u32),
        recovery: Recovery::Sack,
        min_rto: Duration(1_000_000_000),
        delayed_ack: false,
        ecn: false,
        ns2: false,
        linux: None,
        app: App::Endless,
        advertise: Advertise::Always,
        stop: Time::NEVER,
        lie: None,
        measure: Measure::ALWAYS,
    };
    let pipe = Some(Pipe { rate, delay: 5 * MS });
    // One alone has no number, so that its fingerprint can be compared with those of old.
    let name = |what: &str, n| if dumbbells == 1 { what.to_owned() } else { format!("{what}{n}") };
    let model = Model {
        seed: 1,
        duration: (seconds * 1e12) as u64,
        warmup: 0,
        links: (0..dumbbells)
            .flat_map(|n| {
                let name = name("bottleneck", n);
                let reverse = Link { name: format!("{name}.reverse"), port: back.clone() };
                [Link { name, port: forward.clone() }, reverse]
            })
            .collect(),
        groups: (0..dumbbells)
            .map(|n| Group {
                name: name("flows", n),
                kind: GroupKind::Tcp(config.clone()),
                count: flows,
                path: vec![2 * n],
                back: vec![2 * n + 1],
                switches: Vec::new(),
                access: pipe,
                exit: pipe,
                start: Start::Uniform { within: 60_000_000 },
                stop: Time::NEVER,
                schedule: Vec::new(),
                sizes: None,
                interoperable: None,
            })
            .collect(),
        sample_every: None,
        devices: Vec::new(),
        record_events: false,
    };
    let outcome = run(&model, engine, &AtomicBool::new(false), &mut |_| {});
    let link = &outcome.links[0];
    println!(
        "{} packet-hops, utilization {:.3}, queue mean {:.1}, drops {}, fingerprint {:016x}",
        outcome.packet_hops,
        link.utilization.unwrap_or(0.0),
        link.queue_mean_packets.unwrap_or(0.0),
        link.drops,
        outcome.fingerprint
    );
}
