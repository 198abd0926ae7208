//! Networks whose work is counted: `examples/parallel.rs` for docs/performance.md, `tests/parallel.rs` against it.

use congestlab_core::law::{LinkConfig, SenderConfig, xcp};
use congestlab_core::units::{BitRate, Duration, Rate, Time};
use congestlab_net::packet::Picos;
use congestlab_net::port::{LawConfig, PortConfig};
use congestlab_net::queue::Limit;
use congestlab_net::service::Service;
use congestlab_net::tcp::{Advertise, App, Config, Measure, Recovery};
use congestlab_sim::model::{Group, GroupKind, Link, Model, Pipe, Start};
use congestlab_sim::parallel;

const US: Picos = 1_000_000;
const MS: Picos = 1000 * US;
const SEGMENT: u64 = 1000;

/// A network with its name and how long it runs.
pub(crate) struct Network {
    pub(crate) name: &'static str,
    build: fn() -> Model,
}

impl Network {
    /// The row of docs/performance.md for so many threads, without the name.
    pub(crate) fn row(&self, threads: usize) -> Vec<String> {
        let (_, counted) = parallel::count(&(self.build)(), threads);
        let speedup = counted.speedup();
        let apart = counted.busiest / counted.meetings.max(1) / 1000;
        vec![
            threads.to_string(),
            format!("{speedup:.2}"),
            format!("{:.2}", speedup / threads as f64),
            format!("{:.2}", counted.imbalance(threads)),
            counted.meetings.to_string(),
            if counted.meetings == 0 { "-".to_owned() } else { apart.to_string() },
        ]
    }
}

/// As the bench has them.
pub(crate) const LARGE: [Network; 5] = [
    Network {
        name: "one bottleneck, 1 k flows, 1 M in flight",
        build: || dumbbells(1, 1000, 1_000_000, 400 * MS),
    },
    Network {
        name: "10 k bottlenecks, 100 k flows, 1 M in flight",
        build: || dumbbells(10_000, 100_000, 1_000_000, 400 * MS),
    },
    Network {
        name: "8 bottlenecks, 8 k flows, 1 M in flight",
        build: || dumbbells(8, 8000, 1_000_000, 400 * MS),
    },
    Network {
        name: "a chain of 128 links, 125 k flows over four each",
        build: || chain(128, 1000, 16_000, 400 * MS),
    },
    Network {
        name: "a fat tree of 512 links, 205 k flows",
        build: || fat_tree(8, 6400, 8000, 1100 * US, 66 * MS),
    },
];

/// Small enough to be counted by each test run.
pub(crate) const SMALL: [Network; 4] = [
    Network {
        name: "one bottleneck, 100 flows, 100 k in flight",
        build: || dumbbells(1, 100, 100_000, 200 * MS),
    },
    Network {
        name: "100 bottlenecks, 1000 flows, 20 k in flight",
        build: || dumbbells(100, 1000, 20_000, 200 * MS),
    },
    Network {
        name: "a chain of 16 links, 1300 flows over four each",
        build: || chain(16, 100, 4000, 200 * MS),
    },
    Network { name: "a fat tree of 64 links, 2560 flows", build: || fat_tree(4, 320, 800, MS, 40 * MS) },
];

/// The numbers of threads that are counted.
pub(crate) const THREADS: [usize; 3] = [2, 16, 64];

/// Flows that have so many packets under way at most.
fn config(law: SenderConfig, window: u64) -> GroupKind {
    GroupKind::Tcp(Config {
        segment: SEGMENT as u16,
        ack: 40,
        law,
        initial_window: window.max(1) as u32,
        window_most: congestlab_core::units::Bytes(u64::MAX),
        awnd: Some(window.max(2) as u32),
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
    })
}

fn xcp(rate: BitRate) -> SenderConfig {
    SenderConfig::Xcp(xcp::SenderConfig {
        desired_rate: Rate(rate.0 / 8),
        pacing: false,
        ..Default::default()
    })
}

/// A link that takes so many packets of data in a second, with XCP's law.
fn link(name: String, rate: BitRate, delay: Picos, packets: u64) -> Link {
    let mut port = PortConfig::new(Service::Fixed(rate), delay, Limit::Packets(packets.max(16)));
    port.law = Some(LawConfig { config: LinkConfig::Xcp(xcp::LinkConfig::default()), follows_service: true });
    Link { name, port }
}

fn group(
    name: String,
    kind: GroupKind,
    count: u32,
    path: Vec<u32>,
    back: Vec<u32>,
    pipe: Pipe,
    within: Picos,
) -> Group {
    Group {
        name,
        kind,
        count,
        path,
        back,
        switches: Vec::new(),
        access: Some(pipe),
        exit: Some(pipe),
        start: Start::Uniform { within: within / 1000 },
        stop: Time::NEVER,
        schedule: Vec::new(),
        sizes: None,
        interoperable: None,
    }
}

fn model(links: Vec<Link>, groups: Vec<Group>, duration: Picos) -> Model {
    Model {
        seed: 1,
        duration,
        warmup: duration / 2,
        links,
        devices: Vec::new(),
        groups,
        sample_every: None,
        record_events: false,
    }
}

/// Dumbbells side by side, which share flows and packets (data and ACKs) in flight; 60 ms base RTT.
pub(crate) fn dumbbells(count: u32, flows: u32, in_flight: u64, duration: Picos) -> Model {
    let (flows, in_flight) = (flows / count, in_flight / u64::from(count));
    let rate = BitRate(in_flight * SEGMENT * 8 * 1000 / 60);
    let pipe = Pipe { rate, delay: 5 * MS };
    let links = (0..count).flat_map(|n| {
        let forward = link(format!("b{n}"), rate, 20 * MS, in_flight);
        let port = PortConfig::new(Service::Fixed(rate), 20 * MS, Limit::Packets(in_flight));
        [forward, Link { name: format!("b{n}.reverse"), port }]
    });
    let groups = (0..count).map(|n| {
        let kind = config(xcp(rate), in_flight / u64::from(flows));
        group(format!("f{n}"), kind, flows, vec![2 * n], vec![2 * n + 1], pipe, 60 * MS)
    });
    model(links.collect(), groups.collect(), duration)
}

/// A chain of links of 5 ms, with so many flows from each of its routers to the fourth after it, and so many packets of data
/// in a round trip on each link.
fn chain(count: u32, flows: u32, packets: u64, duration: Picos) -> Model {
    const HOPS: u32 = 4;
    let rate = BitRate(packets * SEGMENT * 8 * 1000 / 42);
    let pipe = Pipe { rate, delay: MS / 2 };
    let links = (0..count).flat_map(|n| {
        [format!("c{n}"), format!("c{n}.reverse")].map(|name| link(name, rate, 5 * MS, packets))
    });
    let groups = (0..count - HOPS + 1).map(|n| {
        let path: Vec<u32> = (n..n + HOPS).map(|n| 2 * n).collect();
        let back = path.iter().rev().map(|n| n + 1).collect();
        let kind = config(xcp(rate), packets / u64::from(HOPS * flows));
        group(format!("f{n}"), kind, flows, path, back, pipe, 40 * MS)
    });
    model(links.collect(), groups.collect(), duration)
}

/// A fat tree of switches with so many ports, with so many flows from each switch at its edge to one of another pod, links of
/// such a delay, and so many packets of data on each in a round trip.
fn fat_tree(ports: u32, flows: u32, packets: u64, delay: Picos, duration: Picos) -> Model {
    let half = ports / 2;
    let rate =
        BitRate((u128::from(packets * SEGMENT * 8) * u128::from(1000 * MS) / u128::from(12 * delay)) as u64);
    let pipe = Pipe { rate: BitRate(rate.0 / 4), delay };
    let mut links = Vec::new();
    // By pod, switch at the edge, switch above; then by pod, switch above, core: both up, then down.
    for level in ["edge", "core"] {
        for n in 0..ports * half * half {
            let both = [format!("{level}{n}.up"), format!("{level}{n}.down")];
            links.extend(both.map(|name| link(name, rate, delay, packets)));
        }
    }
    let cores = 2 * ports * half * half;
    let to_above = |pod: u32, edge: u32, above: u32| 2 * ((pod * half + edge) * half + above);
    let to_core = |pod: u32, above: u32, core: u32| cores + 2 * ((pod * half + above) * half + core);
    let route = |from: (u32, u32), to: (u32, u32), above: u32, core: u32| {
        vec![
            to_above(from.0, from.1, above),
            to_core(from.0, above, core),
            to_core(to.0, above, core) + 1,
            to_above(to.0, to.1, above) + 1,
        ]
    };
    let mut groups = Vec::new();
    for pod in 0..ports {
        for edge in 0..half {
            for way in 0..half {
                let (from, to) = ((pod, edge), ((pod + 1 + way) % ports, (edge + way) % half));
                let core = (edge + pod) % half;
                let count = flows / half;
                let kind = config(xcp(rate), packets / u64::from(count));
                let name = format!("f{pod}.{edge}.{way}");
                let (path, back) = (route(from, to, way, core), route(to, from, way, core));
                groups.push(group(name, kind, count, path, back, pipe, 12 * delay));
            }
        }
    }
    model(links, groups, duration)
}
