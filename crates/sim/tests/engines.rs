//! Every engine, every window, every number of threads: the same fingerprint, the same outcome.
//!
//! Models are drawn at random: chains of 1 to 20 links with mixed laws, disciplines, services,
//! errors, delays down to zero, flows over parts of the chain in both directions.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use common::Draw;
use congestlab_core::units::{BitRate, Rate, Time};
use congestlab_net::packet::{Packet, Picos};
use congestlab_net::port::PortConfig;
use congestlab_net::queue::Limit;
use congestlab_net::service::Service;
use congestlab_net::source::{Pattern, SourceConfig};
use congestlab_net::tcp::Advertise;
use congestlab_net::trace::Trace;
use congestlab_net::xcp_i;
use congestlab_sim::model::{Device, DeviceKind, Group, GroupKind, Link, Model, Router, Start};
use congestlab_sim::outcome::{Element, FlowOutcome, LinkOutcome, Outcome};
use congestlab_sim::{Engine, Tap, is_fleeting, run};

fn outcome(model: &Model, engine: Engine) -> Outcome {
    run(model, engine, &AtomicBool::new(false), &mut |_| {})
}

/// Compares everything, so that a hash that hashes too little does not hide a difference.
fn check(model: &Model, name: &str) -> u64 {
    let expected = outcome(model, Engine::Reference);
    let mut ways = vec![(1, 1), (1, 2), (1, 4), (2, 1), (3, 1), (3, 4), (16, 1)];
    if model.seed.is_multiple_of(16) {
        ways.push((64, 2));
    }
    for (threads, divisor) in ways {
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
    for threads in [16, 64] {
        let (got, counted) = congestlab_sim::parallel::count(model, threads);
        assert!(got == expected, "{name}: {threads} threads in turn differ from the reference");
        assert!(counted.busiest * threads as u64 >= counted.work, "{name}: {counted:?}");
    }
    expected.packet_hops
}

#[test]
fn random_networks_run_alike_on_every_engine() {
    let mut hops = 0;
    for seed in 0..350 {
        let model = common::random_model(&mut Draw::new(seed), seed);
        hops += check(&model, &format!("seed {seed}"));
    }
    assert!(hops > 300_000, "the networks carried too little to prove anything: {hops} hops");
}

/// Networks that go from two or more threads to one while packets are on their way, as those of most users do.
#[test]
fn long_chains_of_odd_links_run_alike_on_every_engine() {
    for seed in 10_000..10_200 {
        let model = common::random_chain(&mut Draw::new(seed), seed);
        let expected = outcome(&model, Engine::Window { threads: 1, divisor: 1 });
        assert!(seed % 16 > 0 || expected == outcome(&model, Engine::Reference), "seed {seed}");
        let got = outcome(&model, Engine::Window { threads: 2, divisor: 1 });
        assert!(got == expected, "seed {seed} with two threads\n{model:#?}");
    }
}

/// Links and flows of VCP's family among the others, mostly such that they understand each other.
#[test]
fn codes_of_load_run_alike_on_every_engine() {
    let mut downgraded = 0;
    for seed in 8000..8160 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        common::add_codes(&mut draw, &mut model);
        if seed % 2 == 0 {
            model.sample_every = Some(7_000_000_000);
            model.record_events = true;
        }
        check(&model, &format!("seed {seed} with codes"));
        let series = outcome(&model, Engine::Reference).series;
        downgraded +=
            u32::from(series.iter().any(|sample| sample.metric == "downgrades" && sample.value > 0.0));
    }
    assert!(downgraded > 5, "chains were troubled in too few networks: {downgraded}");
}

/// RACK's and TLP's timers among the others, with links that lose, reorder and mark.
#[test]
fn senders_as_linux_run_alike_on_every_engine() {
    let (mut repeated, mut expired) = (0, 0);
    for seed in 9300..9420 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        common::as_linux(&mut draw, &mut model);
        if seed % 2 == 0 {
            model.sample_every = Some(7_000_000_000);
            model.record_events = true;
        }
        check(&model, &format!("seed {seed} as Linux"));
        let got = outcome(&model, Engine::Reference);
        for flow in got.groups.iter().flatten() {
            (repeated, expired) = (repeated + flow.retransmits, expired + flow.timeouts);
        }
    }
    assert!(repeated > 2000 && expired > 20, "too little was lost: {repeated} again, {expired} timeouts");
}

/// Policers before XCP's law, tables that are too small among them, and senders that lie beside those that do not.
#[test]
fn policed_networks_run_alike_on_every_engine() {
    let (mut clamped, mut dropped) = (0, 0);
    for seed in 9000..9125 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        common::police(&mut draw, &mut model);
        if seed % 2 == 0 {
            model.sample_every = Some(70_000_000_000);
            model.record_events = true;
        }
        check(&model, &format!("seed {seed} with policers"));
        for link in outcome(&model, Engine::Reference).links {
            clamped += link.clamped_packets_total.unwrap_or(0);
            dropped += link.drops_by_reason_total["policed"];
        }
    }
    assert!(clamped > 1000 && dropped > 500, "too little was policed: {clamped} lowered, {dropped} dropped");
}

/// Many networks side by side are run part by part.
#[test]
fn networks_that_nothing_connects_run_alike_on_every_engine() {
    for seed in 0..3 {
        let mut draw = Draw::new(4000 + seed);
        let mut model = twenty(&mut draw, seed, |_, _| {});
        check(&model, &format!("seed {seed} side by side"));
        model.sample_every = Some(11_000_000_000);
        model.record_events = true;
        check(&model, &format!("seed {seed} side by side, with probes"));
    }
}

/// Twenty random networks side by side, each changed by `alter`.
fn twenty(draw: &mut Draw, seed: u64, alter: impl Fn(&mut Draw, &mut Model)) -> Model {
    let part = |_| {
        let mut part = common::random_model(draw, seed);
        alter(draw, &mut part);
        part
    };
    side_by_side(&(0..20).map(part).collect::<Vec<_>>())
}

fn side_by_side(parts: &[Model]) -> Model {
    let mut all = Model { links: Vec::new(), devices: Vec::new(), groups: Vec::new(), ..parts[0].clone() };
    for (number, part) in parts.iter().enumerate() {
        let first = all.links.len() as u32;
        all.links.extend(part.links.iter().cloned().map(|mut link| {
            link.name = format!("{number}-{}", link.name);
            link
        }));
        all.devices.extend(part.devices.iter().cloned().map(|mut device| {
            device.links.iter_mut().for_each(|link| *link += first);
            device
        }));
        all.groups.extend(part.groups.iter().cloned().map(|mut group| {
            group.name = format!("{number}-{}", group.name);
            let switches = group.switches.iter_mut().flat_map(|switch| [&mut switch.path, &mut switch.back]);
            for link in [&mut group.path, &mut group.back].into_iter().chain(switches).flatten() {
                *link += first;
            }
            group
        }));
    }
    all
}

/// Links whose ports run as one element, at random.
fn join(model: &mut Model, draw: &mut Draw) {
    let count = draw.between(1, 3) as usize;
    let mut devices = vec![Vec::new(); count + 1];
    for link in 0..model.links.len() as u32 {
        devices[draw.between(0, count as u64) as usize].push(link);
    }
    // The rest stay alone.
    devices.truncate(count);
    let devices = devices.into_iter().filter(|links| !links.is_empty());
    model.devices = devices.map(device).collect();
}

/// A router whose agent has nothing to do unless flows are interoperable.
fn device(links: Vec<u32>) -> Device {
    let law = common::link_law(&mut Draw::new(0), Rate(1));
    let router = Router { config: xcp_i::Config::new(law), estimators: vec![None; links.len()] };
    Device { links, kind: DeviceKind::Router(Box::new(router)) }
}

/// Ports that know nothing of each other do the same in one element and each for itself, and all
/// engines agree on it.
#[test]
fn ports_of_one_element_run_as_ports_of_many() {
    for seed in 6000..6020 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        for link in &mut model.links {
            link.port.delay += 1_000_000;
        }
        model.sample_every = Some(7_000_000_000);
        model.record_events = true;
        let apart = outcome(&model, Engine::Reference);
        join(&mut model, &mut draw);
        check(&model, &format!("seed {seed} in devices"));
        let mut joined = outcome(&model, Engine::Reference);
        joined.links.iter_mut().for_each(|link| link.xcp_i = None);
        assert!(Outcome { fingerprint: apart.fingerprint, ..joined } == apart, "seed {seed}");
    }
    for seed in 6100..6103 {
        let mut draw = Draw::new(seed);
        let mut model = twenty(&mut draw, seed, |_, _| {});
        // Each within its part.
        for first in (0..model.links.len() as u32).step_by(2) {
            model.devices.push(device(vec![first, first + 1]));
        }
        check(&model, &format!("seed {seed} side by side in devices"));
    }
}

#[test]
fn xcp_i_runs_alike_on_every_engine() {
    let (mut estimates, mut several) = (0, 0);
    for seed in 7000..7450 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        common::interoperate(&mut draw, &mut model);
        if draw.between(0, 2) == 0 {
            model.sample_every = Some(7_000_000_000);
            model.record_events = true;
        }
        check(&model, &format!("seed {seed} with XCP-i"));
        let clouds = congestlab_sim::cloud::clouds(&model);
        let pairs: BTreeSet<_> = clouds.iter().map(|cloud| (cloud.up, cloud.down)).collect();
        several += clouds.len() - pairs.len();
        let series = outcome(&model, Engine::Reference).series;
        estimates += series.iter().filter(|sample| sample.metric == "estimate_bps").count();
    }
    assert!(estimates > 1_000, "the networks had too few clouds to prove anything: {estimates}");
    assert!(several > 50, "too few of them had several ways: {several}");
}

#[test]
fn xcp_i_side_by_side_runs_alike_on_every_engine() {
    for seed in 7450..7453 {
        check(&twenty(&mut Draw::new(seed), seed, common::interoperate), &format!("seed {seed} with XCP-i"));
    }
}

#[test]
fn half_duplex_media_run_alike_on_every_engine() {
    let (mut collisions, mut given_up) = (0, 0);
    for seed in 8000..8200 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        if seed % 4 == 0 {
            common::interoperate(&mut draw, &mut model);
        }
        common::share_media(&mut draw, &mut model);
        if seed % 3 == 0 {
            model.sample_every = Some(7_000_000_000);
            model.record_events = true;
        }
        check(&model, &format!("seed {seed} with media"));
        let got = outcome(&model, Engine::Reference);
        for (index, link) in (0..).zip(&got.links) {
            let of_medium = |device: &&Device| device.router().is_none() && device.links.contains(&index);
            assert_eq!(link.collisions.is_some(), model.devices.iter().any(|d| of_medium(&d)), "seed {seed}");
            Ledger::of(link, &format!("seed {seed}, link {index}"));
            collisions += link.collisions_total.unwrap_or(0);
            given_up += link.drops_by_reason_total["excessive-collisions"];
        }
        // Series tell of all collisions but those of the last bin.
        let in_series = got.series.iter().filter(|sample| sample.metric == "collisions");
        let in_series = in_series.map(|sample| sample.value).sum::<f64>();
        let in_all = got.links.iter().filter_map(|link| link.collisions_total).sum::<u64>() as f64;
        assert!(in_series <= in_all && (model.sample_every.is_none() || in_series >= 0.8 * in_all));
    }
    assert!(collisions > 5_000 && given_up > 500, "{collisions} collisions, {given_up} packets given up");
}

#[test]
fn half_duplex_media_side_by_side_run_alike_on_every_engine() {
    for seed in 8300..8303 {
        check(&twenty(&mut Draw::new(seed), seed, common::share_media), &format!("seed {seed} with media"));
    }
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
        common::share_media(&mut Draw::new(seed), &mut model);
        check(&model, &format!("seed {seed} without delay, with media"));
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

/// Flows that end before the run does, whose hosts are then what their results need: with losses, timeouts that are too
/// early, and duplicates that come when all is over. Nothing of it shows, and hosts of which events are wanted stay.
#[test]
fn short_flows_run_alike_on_every_engine_and_as_if_their_hosts_stayed() {
    let (mut fleeting, mut complete, mut repeated, mut needless, mut late, mut stopped) = (0, 0, 0, 0, 0, 0);
    for seed in 9400..9550 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        common::shorten(&mut draw, &mut model);
        check(&model, &format!("seed {seed} with short flows"));
        let window = Engine::Window { threads: 1, divisor: 1 };
        let eventful = Model { record_events: true, ..model.clone() };
        let equal = |gone: &Outcome, stay: &Outcome| {
            assert_eq!(gone.fingerprint, stay.fingerprint, "seed {seed}");
            assert_eq!(gone.groups, stay.groups, "seed {seed}");
            assert_eq!(gone.links, stay.links, "seed {seed}");
        };
        let got = outcome(&model, window);
        equal(&got, &outcome(&eventful, window));
        let [gone, stay] = [&model, &eventful].map(|model| stopped_at(model, model.duration / 3));
        // Who has more to do may be given up earlier.
        if gone.duration == stay.duration {
            stopped += 1;
            equal(&gone, &stay);
        }
        let groups = model.groups.iter().zip(&got.groups);
        for (_, flows) in groups.filter(|(group, _)| is_fleeting(&model, group)) {
            fleeting += flows.len();
            for flow in flows {
                complete += usize::from(flow.completion_s.is_some());
                repeated += flow.retransmits_total;
                needless += flow.spurious_retransmits_total;
                late += u64::from(flow.start_s * 1e12 > model.duration as f64);
            }
        }
    }
    assert!(stopped > 100, "{stopped} runs were stopped at the same time with events and without");
    assert!(
        fleeting > 5000 && complete > 2500 && repeated > 2000 && needless > 300 && late > 20,
        "{complete} of {fleeting} flows complete, {repeated} segments repeated, {needless} for nothing, {late} flows never"
    );
}

/// The outcome of a run that is stopped once it has come so far.
fn stopped_at(model: &Model, at: Picos) -> Outcome {
    let stop = AtomicBool::new(false);
    run(model, Engine::Window { threads: 1, divisor: 1 }, &stop, &mut |come| {
        stop.fetch_or(come.at > at, Ordering::Relaxed);
    })
}

/// Links with laws beside a network, which no flow crosses: their intervals pass while the run goes on if events are wanted,
/// else when it is over.
#[test]
fn laws_that_no_packet_comes_to_end_alike_whoever_hears_their_intervals() {
    let mut laws = 0;
    for seed in 2100..2110 {
        let mut plain = common::random_model(&mut Draw::new(seed), seed);
        let others = (0..10).flat_map(|n| common::random_model(&mut Draw::new(100 * seed + n), seed).links);
        for link in others.filter(|link| link.port.law.is_some()) {
            laws += 1;
            plain.links.push(Link { name: format!("idle{laws}"), ..link });
        }
        check(&plain, &format!("seed {seed} beside idle laws"));
        let probed = Model { record_events: true, ..plain.clone() };
        let window = Engine::Window { threads: 1, divisor: 1 };
        let (plain, probed) = (outcome(&plain, window), outcome(&probed, window));
        assert_eq!(plain.links, probed.links, "seed {seed}");
        assert_eq!(
            (plain.fingerprint, plain.packet_hops, plain.seed_used),
            (probed.fingerprint, probed.packet_hops, probed.seed_used),
            "seed {seed}"
        );
    }
    assert!(laws > 50, "{laws} laws");
}

/// When a packet was sent, what it was, and whether the wire lost it.
type Sent = (Picos, Packet, bool);

/// What a tap heard, by link.
#[derive(Default)]
struct Heard(Mutex<BTreeMap<u32, Vec<Sent>>>);

impl Tap for Heard {
    fn sent(&self, link: u32, at: Picos, packet: &Packet, is_lost: bool) {
        // Where it stands in a table of routes is the engine's.
        let packet = Packet { route: 0, ..*packet };
        self.0.lock().expect("no panic with it").entry(link).or_default().push((at, packet, is_lost));
    }
}

#[test]
fn a_tap_hears_the_same_packets_in_order_on_every_engine_and_changes_nothing() {
    let mut lost = 0;
    for seed in 5000..5020 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        if seed % 5 == 0 {
            // Run part by part.
            let parts: Vec<Model> = (0..16).map(|_| common::random_model(&mut draw, seed)).collect();
            model = side_by_side(&parts);
        }
        if seed % 5 == 1 {
            common::interoperate(&mut draw, &mut model);
        }
        let plain = outcome(&model, Engine::Reference);
        let listen = |engine| {
            let heard = Heard::default();
            let stop = AtomicBool::new(false);
            let tapped = congestlab_sim::run_tapped(&model, engine, &stop, &mut |_| {}, Some(&heard));
            assert!(tapped == plain, "seed {seed}, {engine:?}: the tap changed the run");
            heard.0.into_inner().expect("no panic with it")
        };
        let heard = listen(Engine::Reference);
        for (&link, packets) in &heard {
            assert!(packets.is_sorted_by_key(|&(at, ..)| at), "seed {seed}, link {link}");
            let stats = &plain.links[link as usize];
            let last = packets.len() as u64 - stats.sent_packets_total;
            assert!(last <= 1, "seed {seed}, link {link}: {last} packets in transmission at the end");
            let broken = packets.iter().filter(|(_, packet, lost)| *lost && packet.at <= model.duration);
            assert_eq!(broken.count() as u64, stats.errors_total, "seed {seed}, link {link}");
            lost += stats.errors_total;
        }
        for (threads, divisor) in [(1, 1), (1, 4), (2, 1), (4, 2)] {
            assert!(listen(Engine::Window { threads, divisor }) == heard, "seed {seed}, {threads} threads");
        }
    }
    assert!(lost > 0, "no packet was lost on the wire");
}

/// For each quarter of a second: packets sent by the thread that called, and by others.
struct Work(ThreadId, Mutex<[[u64; 2]; 20]>);

impl Tap for Work {
    fn sent(&self, _: u32, at: Picos, _: &Packet, _: bool) {
        let mut quarters = self.1.lock().expect("no panic with it");
        quarters[(at / 250_000_000_000) as usize][usize::from(thread::current().id() != self.0)] += 1;
    }
}

#[test]
fn threads_share_a_network_only_while_they_take_much_off_each_other() {
    // Two links that are a circle: each has datagrams that come from the other.
    let rate = BitRate(4_000_000_000);
    let link = |name: &str, delay| Link {
        name: name.to_owned(),
        port: PortConfig::new(Service::Fixed(rate), delay, Limit::None),
    };
    let sources = |name: &str, path: [u32; 2], rate, from: u64, to: u64| Group {
        name: name.to_owned(),
        start: Start::Every { from: Time(from * 1_000_000_000), every: 0 },
        stop: Time(to * 1_000_000_000),
        ..datagrams(rate, &path, &[path[1], path[0]])
    };
    let model = |delay: Picos| Model {
        seed: 1,
        duration: 4_999_999_999_999,
        warmup: 0,
        links: vec![link("a", delay), link("b", delay)],
        groups: vec![
            sources("few ab", [0, 1], 8_000_000, 0, 5),
            sources("few ba", [1, 0], 8_000_000, 0, 5),
            sources("many ab", [0, 1], 1_600_000_000, 1, 3),
            sources("many ba", [1, 0], 1_600_000_000, 1, 3),
        ],
        sample_every: None,
        devices: Vec::new(),
        record_events: false,
    };
    let work = |model: &Model| {
        let work = Work(thread::current().id(), Mutex::default());
        let engine = Engine::Window { threads: 2, divisor: 1 };
        let got =
            congestlab_sim::run_tapped(model, engine, &AtomicBool::new(false), &mut |_| {}, Some(&work));
        assert!(got == outcome(model, Engine::Window { threads: 1, divisor: 1 }));
        work.1.into_inner().expect("no panic with it")
    };

    // 9 ms from one meeting to the next.
    let far = work(&model(10_000_000_000));
    assert!(far[0][1] > 0, "a run begins on threads");
    assert_eq!((far[3][1], far[19][1]), (0, 0), "few packets: {far:?}");
    assert!(far[8..12].iter().all(|&[own, others]| own.abs_diff(others) < own / 10), "many packets: {far:?}");
    // 8 us.
    let near = work(&model(10_000_000));
    let [own, others] = near.iter().fold([0, 0], |sum, quarter| [sum[0] + quarter[0], sum[1] + quarter[1]]);
    assert!(0 < others && 1000 * others < own, "{others} of {own} packets on another thread");
}

/// Where the packets of a link are at the end.
struct Ledger {
    /// Being transmitted: 0 or 1.
    in_service: u64,
    /// At the other end.
    delivered: u64,
}

impl Ledger {
    /// Packets that arrived = sent + dropped + queued + in service; sent = delivered + errored + on the wire.
    fn of(link: &LinkOutcome, name: &str) -> Self {
        let gone = link.sent_packets_total + link.drops_total + link.queue_end_packets;
        let in_service = link.arrived_packets_total.checked_sub(gone);
        let in_service = in_service.unwrap_or_else(|| panic!("{name}: more left than came: {link:?}"));
        assert!(in_service <= 1, "{name}: {in_service} packets are nowhere: {link:?}");
        let on_wire = link.in_flight_end.checked_sub(link.queue_end_packets + in_service);
        let on_wire = on_wire.unwrap_or_else(|| panic!("{name}: fewer in flight than queued: {link:?}"));
        let delivered = link.sent_packets_total.checked_sub(link.errors_total + on_wire);
        let delivered = delivered.unwrap_or_else(|| panic!("{name}: more lost than sent: {link:?}"));
        assert_eq!(link.drops_by_reason_total.values().sum::<u64>(), link.drops_total, "{name}");
        Self { in_service, delivered }
    }
}

#[test]
fn packets_of_every_link_are_conserved() {
    let (mut in_service, mut drops, mut errors) = (0, 0, 0);
    for seed in 3000..3060 {
        let model = common::random_model(&mut Draw::new(seed), seed);
        let got = outcome(&model, Engine::Window { threads: 1, divisor: 1 });
        for (link, model) in got.links.iter().zip(&model.links) {
            in_service += Ledger::of(link, &format!("seed {seed}, {}", model.name)).in_service;
            drops += link.drops_total;
            errors += link.errors_total;
        }
        for flow in got.groups.iter().flatten() {
            assert!(flow.received_packets_total <= flow.sent_packets_total, "seed {seed}: {flow:?}");
        }
    }
    assert!(in_service > 0 && drops > 0 && errors > 0, "nothing was lost, so nothing was tried");
}

/// All flows of a network on one path, without access and exit: what one link delivers is what the
/// next one gets, what flows sent is what the first one gets, and the last one's is what they received.
#[test]
fn packets_of_a_path_are_conserved_end_to_end() {
    for seed in 3100..3160 {
        let mut model = common::random_model(&mut Draw::new(seed), seed);
        let (path, back) = (model.groups[0].path.clone(), model.groups[0].back.clone());
        for group in &mut model.groups {
            (group.path, group.back) = (path.clone(), back.clone());
            group.switches.clear();
            (group.access, group.exit) = (None, None);
        }
        let name = format!("seed {seed}");
        let got = outcome(&model, Engine::Window { threads: 1, divisor: 1 });
        let link = |&link: &u32| &got.links[link as usize];
        // From the first link of a direction to its other end: what came in, what came out.
        let ends = |links: &[u32]| {
            for pair in links.windows(2) {
                let delivered = Ledger::of(link(&pair[0]), &name).delivered;
                assert_eq!(
                    delivered,
                    link(&pair[1]).arrived_packets_total,
                    "{name}, link {} to {}",
                    pair[0],
                    pair[1]
                );
            }
            let lost: u64 =
                links.iter().map(link).map(|l| l.drops_total + l.errors_total + l.in_flight_end).sum();
            let (first, last) = (link(&links[0]), link(&links[links.len() - 1]));
            let delivered = Ledger::of(last, &name).delivered;
            assert_eq!(
                first.arrived_packets_total,
                delivered + lost,
                "{name}: sent = received + lost + in flight"
            );
            (first.arrived_packets_total, delivered)
        };
        let ((entered, left), (acks, _)) = (ends(&path), ends(&back));
        let sum = |of: fn(&FlowOutcome) -> u64| got.groups.iter().flatten().map(of).sum::<u64>();
        // Beside data there are SYNs: one for each connection, and one more for a timeout of it.
        let control = entered - sum(|flow| flow.sent_packets_total);
        let received = left - sum(|flow| flow.received_packets_total);
        let connections = model.groups.iter().filter(|group| matches!(group.kind, GroupKind::Tcp(_)));
        let connections: u64 = connections.map(|group| u64::from(group.count)).sum();
        assert!(
            control <= connections + sum(|flow| flow.timeouts_total),
            "{name}: {control} of {connections}"
        );
        // A window that opens again is announced without being asked.
        let is_reading = |group: &Group| match &group.kind {
            GroupKind::Tcp(config) => matches!(config.advertise, Advertise::Reading { .. }),
            _ => false,
        };
        let is_answered = acks <= left || model.groups.iter().any(is_reading);
        assert!(received <= control && is_answered, "{name}: {received} of {control}, {acks} of {left}");
        if connections == 0 {
            assert_eq!((control, received, acks), (0, 0, 0), "{name}: datagrams have nothing beside data");
        }
        assert_eq!(
            got.packet_hops,
            got.links.iter().map(|link| link.arrived_packets_total).sum::<u64>(),
            "{name}"
        );
    }
}

#[test]
fn a_stopped_run_is_incomplete_and_tells_of_the_time_that_it_covers() {
    let model =
        Model { duration: 50_000_000_000_000, warmup: 0, ..common::random_model(&mut Draw::new(7), 7) };
    for engine in [Engine::Window { threads: 1, divisor: 1 }, Engine::Window { threads: 2, divisor: 1 }] {
        let got = run(&model, engine, &AtomicBool::new(true), &mut |_| {});
        assert!(!got.complete && got.duration == 0);
        // Stopped on its way: as if it had ended then, as far as a link can tell.
        let stop = AtomicBool::new(false);
        let got = run(&model, engine, &stop, &mut |come| {
            stop.store(come.at > 3_000_000_000_000, Ordering::Relaxed);
        });
        assert!(!got.complete && got.duration > 3_000_000_000_000 && got.duration < model.duration);
        let short = Model { duration: got.duration, ..model.clone() };
        let whole = run(&short, Engine::Reference, &AtomicBool::new(false), &mut |_| {});
        for (got, whole) in got.links.iter().zip(&whole.links) {
            assert_eq!((got.arrived_packets, got.utilization), (whole.arrived_packets, whole.utilization));
        }
    }
}

/// A link of 1 Mbit/s and one second, whose window is 2^36 ps long.
fn slow(name: &str) -> Link {
    let port = PortConfig::new(Service::Fixed(BitRate(1_000_000)), 1_000_000_000_000, Limit::Packets(10));
    Link { name: name.into(), port }
}

/// A source of 1 Mbit/s over a link there and a link back, for ten seconds.
fn one_way() -> Model {
    Model {
        seed: 1,
        duration: 10_000_000_000_000,
        warmup: 0,
        links: vec![slow("there"), slow("back")],
        devices: Vec::new(),
        groups: vec![datagrams(1_000_000, &[0], &[1])],
        sample_every: None,
        record_events: false,
    }
}

fn datagrams(rate: u64, path: &[u32], back: &[u32]) -> Group {
    Group {
        kind: GroupKind::Source(SourceConfig {
            segment: 1000,
            rate: BitRate(rate),
            pattern: Pattern::Constant,
        }),
        count: 1,
        path: path.to_vec(),
        back: back.to_vec(),
        switches: Vec::new(),
        access: None,
        exit: None,
        start: Start::Every { from: Time(0), every: 0 },
        stop: Time::NEVER,
        schedule: Vec::new(),
        sizes: None,
        interoperable: None,
        name: "udp".into(),
    }
}

/// Stops the run at the first packet on a link.
struct Impatient<'a>(&'a AtomicBool);

impl Tap for Impatient<'_> {
    fn sent(&self, _: u32, _: Picos, _: &Packet, _: bool) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the window engine has done by the end of the window in which the first packet leaves.
fn stopped(model: &Model) -> Outcome {
    let stop = AtomicBool::new(false);
    let engine = Engine::Window { threads: 1, divisor: 1 };
    congestlab_sim::run_tapped(model, engine, &stop, &mut |_| {}, Some(&Impatient(&stop)))
}

/// A window as long as the link's would have 859,000 of them.
#[test]
fn datagrams_that_no_link_can_carry_do_not_fill_a_window() {
    let got = stopped(&Model { groups: vec![datagrams(100_000_000_000, &[0], &[1])], ..one_way() });
    let sent = got.groups[0][0].sent_packets;
    assert!(!got.complete && (1..20_000).contains(&sent), "{sent} packets");
}

/// A window has 68,719 bins here.
#[test]
fn a_run_is_given_up_in_the_middle_of_a_very_full_window() {
    let got = stopped(&Model { sample_every: Some(1_000_000), ..one_way() });
    let of_link = got.series.iter().filter(|sample| sample.element == Element::Link(0));
    let bins = of_link.map(|sample| sample.at).collect::<BTreeSet<_>>().len();
    assert!(!got.complete && bins < 20_000, "{bins} bins");
}

/// Two datagram flows, the one against the other, over links that forward at once: no window, and a chain of steps
/// without delay that is longer than a thread's stack.
#[test]
fn a_long_chain_without_delay_does_not_overflow_the_stack() {
    let trace = Trace::new(vec![1]).expect("a trace");
    let (length, mut links) = (60_000_u32, Vec::new());
    for n in 0..2 * length {
        let port = PortConfig::new(Service::Trace(trace.clone()), 0, Limit::Packets(10));
        links.push(Link { name: format!("link-{n}"), port });
    }
    let there: Vec<u32> = (0..length).map(|n| 2 * n).collect();
    let back: Vec<u32> = there.iter().rev().map(|link| link + 1).collect();
    let against: Vec<u32> = there.iter().rev().copied().collect();
    let model = Model {
        duration: 1_000_000,
        links,
        groups: vec![datagrams(1_000_000, &there, &back), datagrams(1_000_000, &against, &back)],
        ..one_way()
    };
    assert!(outcome(&model, Engine::Window { threads: 1, divisor: 1 }).complete);
}
