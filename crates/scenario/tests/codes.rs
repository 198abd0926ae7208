//! Traces of VCP's family show the very bytes that its routers read.

#[path = "common/chains.rs"]
mod chains;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use chains::network;
use congestlab_core::law::Segment;
use congestlab_core::law::mpcp::{self, Order};
use congestlab_core::wire::segment::Repr;
use congestlab_scenario::capture::Capture;
use congestlab_scenario::net::packet::{Kind, Packet, Picos, flag};
use congestlab_scenario::sim::{Engine, Tap, run_tapped};
use congestlab_scenario::{Measure, Scenario};

/// What the simulator sent, by link.
#[derive(Default)]
struct Heard(Mutex<BTreeMap<u32, Vec<Packet>>>);

impl Tap for Heard {
    fn sent(&self, link: u32, _: Picos, packet: &Packet, _: bool) {
        self.0.lock().expect("nobody panics").entry(link).or_default().push(*packet);
    }
}

/// Runs a scenario and writes its traces; what was sent, by link.
fn simulate(scenario: &str, folder: &Path) -> BTreeMap<String, Vec<Packet>> {
    let scenario = Scenario::parse("scenario.toml", scenario, Path::new(""), &[], None).expect("valid");
    let (model, stop) = (scenario.model(&Measure::default()), AtomicBool::new(false));
    let capture = Capture::create(folder, &scenario, "test", 256, &stop).expect("a folder");
    let outcome = run_tapped(&model, Engine::Reference, &stop, &mut |_| {}, Some(&capture));
    capture.finish(outcome.complete).expect("written");
    let heard = Heard::default();
    run_tapped(&model, Engine::Reference, &stop, &mut |_| {}, Some(&heard));
    let links = heard.0.into_inner().expect("nobody panics");
    links.into_iter().map(|(link, packets)| (model.links[link as usize].name.clone(), packets)).collect()
}

/// The packets of a pcapng file.
fn packets(file: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(file).expect("a trace");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        // Enhanced packet blocks.
        if word(at) == 6 {
            packets.push(bytes[at + 28..at + 28 + word(at + 20)].to_vec());
        }
        at += word(at + 4);
    }
    packets
}

/// A trace has the very bytes: addresses, numbers, checksums, identification, codes; and the receiver's echo has
/// its place in them too.
#[test]
fn traces_show_the_headers_that_routers_read() {
    for (name, law, n, order) in [
        ("swap", "\"dpcp\"", 2, Order::Swap),
        ("ipid", "{ dpcp = { order = \"ipid\" } }", 2, Order::Ipid),
        ("checksum", "{ mpcp = { n = 5 } }", 5, Order::Checksum),
        ("one", "\"vcp\"", 1, Order::Swap),
    ] {
        let scenario = network(law, 7).replace("40 s", "8 s");
        let folder = tempfile::tempdir().expect("a folder");
        let mut places = vec![0; n as usize];
        for (link, simulated) in simulate(&scenario, folder.path()) {
            let traced = packets(&folder.path().join(format!("{link}.pcapng")));
            assert_eq!(traced.len(), simulated.len(), "{link}");
            for (bytes, packet) in traced.iter().zip(&simulated) {
                // The trace is cut; zeros follow.
                let mut whole = bytes.clone();
                whole.resize(whole.len().max(usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))), 0);
                let repr = Repr::parse(&whole).expect("TCP");
                assert_eq!(repr.ecn, packet.flags & flag::ECN_MASK);
                let told = match packet.kind {
                    Kind::Data => {
                        assert_eq!(Some(repr.segment), Segment::of(packet), "{packet:?}");
                        Some(order.read(&repr.segment, n))
                    }
                    Kind::Ack if n > 1 => {
                        assert!(repr.segment.is_pure_ack());
                        assert_eq!(
                            order.read(&repr.segment, n),
                            mpcp::Echoed::from(packet.reply()).index(),
                            "{packet:?}"
                        );
                        None
                    }
                    _ => {
                        assert_eq!(repr.segment.deficit(), 0, "{packet:?}");
                        None
                    }
                };
                if let (Some(place), true) = (told, n > 1) {
                    places[usize::from(place.expect("these numbers can say it"))] += 1;
                }
            }
        }
        assert!(n == 1 || places.iter().all(|&count| count > 50), "{name}: {places:?}");
    }
}

/// Each transmission has an identification of its own, repeated segments and duplicate ACKs included, so that tools which
/// look for packets that were captured twice find none. Orders that write the lowest bit keep that.
#[test]
fn every_transmission_has_an_identification_of_its_own() {
    let lossy = |law: &str| {
        format!(
            "run = {{ duration = \"20 s\" }}\n\
             links.l = {{ rate = \"3 Mbit/s\", delay = \"20 ms\", queue = \"8 packets\" }}\n\
             flows.f = {{ law = \"{law}\", path = [\"l\"] }}\n"
        )
    };
    let scenarios = [lossy("newreno"), lossy("sack"), network("{ dpcp = { order = \"ipid\" } }", 7)];
    for (scenario, may_repeat) in scenarios.iter().zip([true, false, false]) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut duplicates = 0;
        for (link, simulated) in simulate(scenario, folder.path()) {
            let (mut named, mut frames) = (BTreeSet::new(), BTreeSet::new());
            for (bytes, packet) in
                packets(&folder.path().join(format!("{link}.pcapng"))).iter().zip(&simulated)
            {
                let (source, identification) = (bytes[12..16].to_vec(), bytes[4..6].to_vec());
                assert!(named.insert((source, identification)), "{link}: {packet:?}");
                let mut rest = bytes.clone();
                rest[4..6].fill(0);
                rest[10..12].fill(0);
                duplicates += usize::from(!frames.insert(rest));
            }
        }
        assert!(duplicates > 100 || !may_repeat, "the scenario shows no duplicate ACKs: {duplicates}");
    }
}
