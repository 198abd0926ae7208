//! Honest flows beside senders that lie or do not listen, with a policer at the bottleneck (docs/design/protocols.md 13.4):
//! what they keep of a fair share, and that none of them is taken for a liar. `cargo test -p congestlab-sim --test police --
//! --nocapture` prints what was measured; scenarios/beyond has the same for the command.

use std::sync::atomic::AtomicBool;

use congestlab_core::law::{LinkConfig, SenderConfig, xcp, xcp2};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Ratio, Time};
use congestlab_net::errors::ErrorRate;
use congestlab_net::impairments::Reorder;
use congestlab_net::packet::Picos;
use congestlab_net::port::{LawConfig, PortConfig};
use congestlab_net::queue::Limit;
use congestlab_net::random::Probability;
use congestlab_net::service::Service;
use congestlab_net::source::{Pattern, SourceConfig};
use congestlab_net::tcp::{Advertise, App, Config, Measure, Recovery, Wait};
use congestlab_sim::model::{Group, GroupKind, Link, Model, Pipe, Start};
use congestlab_sim::outcome::Outcome;
use congestlab_sim::{Engine, run};

const MS: Picos = 1_000_000_000;
const SECOND: Picos = 1000 * MS;
/// 40 Mbit/s, 80 ms.
const RATE: BitRate = BitRate(40_000_000);
const RECORDS: u32 = 1024;

/// A sender that does not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// X is five times what it is.
    Spacing,
    /// The round trip is twenty times what it is.
    RoundTrip,
    /// Negative feedback is ignored.
    Deaf,
    /// All that a header can say is asked for, always.
    Demand,
    /// ACKs say twice what was granted.
    Forged,
    /// Datagrams at the rate of the line.
    Datagrams,
}

const ATTACKS: [Attack; 6] =
    [Attack::Spacing, Attack::RoundTrip, Attack::Deaf, Attack::Demand, Attack::Forged, Attack::Datagrams];

fn sender(app: App, change: impl FnOnce(&mut xcp::SenderConfig)) -> GroupKind {
    let mut law = xcp::SenderConfig { desired_rate: Rate(125_000_000), ..xcp::SenderConfig::DEFAULT };
    change(&mut law);
    GroupKind::Tcp(Config {
        segment: 1500,
        ack: 40,
        law: SenderConfig::Xcp(law),
        initial_window: 1,
        window_most: Bytes(u64::MAX),
        awnd: None,
        recovery: Recovery::Sack,
        min_rto: Duration(1_000_000_000),
        delayed_ack: false,
        ecn: false,
        ns2: false,
        linux: None,
        app,
        advertise: Advertise::Always,
        stop: Time::NEVER,
        lie: None,
        measure: Measure::ALWAYS,
    })
}

fn honest(app: App) -> GroupKind {
    sender(app, |_| {})
}

/// The same network with XCP2 on the link and at all senders of XCP.
fn with_xcp2(mut model: Model) -> Model {
    let law = xcp2::LinkConfig::DEFAULT;
    model.links[0].port.law = Some(LawConfig { config: LinkConfig::Xcp2(law), follows_service: true });
    for group in &mut model.groups {
        if let GroupKind::Tcp(Config { law, .. }) = &mut group.kind
            && let SenderConfig::Xcp(xcp) = law.clone()
        {
            let default = xcp2::SenderConfig::DEFAULT;
            let xcp = xcp::SenderConfig { aging: default.xcp.aging, pacing: default.xcp.pacing, ..xcp };
            *law = SenderConfig::Xcp2(xcp2::SenderConfig { xcp, ..default });
        }
    }
    model
}

fn attacker(attack: Attack) -> GroupKind {
    let lies = xcp::Lies::NONE;
    let liar = |lies| sender(App::Endless, |law| law.profile = xcp::Profile::Liar(lies));
    match attack {
        Attack::Spacing => sender(App::Endless, |law| law.price = Ratio::ppm(5_000_000)),
        Attack::RoundTrip => liar(xcp::Lies { stated_rtt: Ratio::ppm(20_000_000), ..lies }),
        Attack::Deaf => liar(xcp::Lies { deaf: true, ..lies }),
        Attack::Demand => sender(App::Endless, |law| law.request = xcp::RequestPolicy::Unlimited),
        Attack::Forged => liar(xcp::Lies { forged: Ratio::ppm(2_000_000), ..lies }),
        Attack::Datagrams => datagrams(RATE),
    }
}

fn datagrams(rate: BitRate) -> GroupKind {
    GroupKind::Source(SourceConfig { segment: 1500, rate, pattern: Pattern::Constant })
}

/// Flows over the bottleneck, with so long a way to it; the first begins at `from`.
fn group(name: &str, kind: GroupKind, count: u32, delay: Picos, from: Picos, every: Picos) -> Group {
    Group {
        name: name.to_owned(),
        kind,
        count,
        path: vec![0],
        back: vec![1],
        switches: Vec::new(),
        access: Some(Pipe { rate: BitRate(1_000_000_000), delay }),
        exit: None,
        start: Start::Every { from: Time(from / 1000), every: every / 1000 },
        stop: Time::NEVER,
        schedule: Vec::new(),
        sizes: None,
        interoperable: None,
    }
}

fn network(police: Option<u32>, groups: Vec<Group>) -> Model {
    let law = LawConfig { config: LinkConfig::Xcp(xcp::LinkConfig::DEFAULT), follows_service: true };
    let port = PortConfig::new(Service::Fixed(RATE), 38 * MS, Limit::Packets(267));
    let forward = PortConfig { law: Some(law), police, ..port.clone() };
    Model {
        seed: 1,
        duration: 120 * SECOND,
        warmup: 30 * SECOND,
        links: vec![
            Link { name: "bottleneck".into(), port: forward },
            Link { name: "bottleneck.reverse".into(), port },
        ],
        devices: Vec::new(),
        groups,
        sample_every: None,
        record_events: false,
    }
}

fn outcome(model: &Model) -> Outcome {
    run(model, Engine::Window { threads: 1, divisor: 1 }, &AtomicBool::new(false), &mut |_| {})
}

/// Nine honest flows that begin at `start`, and attackers that begin a second apart from `first` on. Round trips of the nine are
/// half a millisecond apart: where all are equal and nobody paces, a window comes at the same part of each interval, and XCP
/// gives one of nine flows 0.9 of a share for that alone.
fn nine_and(attacks: &[Attack], start: Picos, first: Picos, police: Option<u32>) -> Model {
    let one = |n| {
        group(&format!("honest-{n}"), honest(App::Endless), 1, 2 * MS + n * MS / 4, start + n * 100 * MS, 0)
    };
    let mut groups: Vec<Group> = (0..9).map(one).collect();
    for (at, &attack) in (0..).zip(attacks) {
        groups.push(group(&format!("{attack:?}"), attacker(attack), 1, 2 * MS, first + at * SECOND, 0));
    }
    network(police, groups)
}

/// The least part of a fair share of the link that one of the nine has, and the parts of the attackers.
fn parts(model: &Model) -> (f64, Vec<f64>) {
    let outcome = outcome(model);
    let fair = RATE.0 as f64 / outcome.groups.len() as f64;
    let parts: Vec<f64> =
        outcome.groups.iter().map(|flows| flows[0].goodput_bps.unwrap_or(0.0) / fair).collect();
    (parts[..9].iter().copied().fold(f64::INFINITY, f64::min), parts[9..].to_vec())
}

/// Both laws.
fn each(model: Model) -> [(&'static str, Model); 2] {
    [("xcp", model.clone()), ("xcp2", with_xcp2(model))]
}

#[test]
fn honest_flows_keep_nine_tenths_beside_each_attack() {
    for attack in ATTACKS {
        for (start, first) in [(5 * SECOND, 0), (0, 2 * SECOND), (0, 20 * SECOND)] {
            for (law, model) in each(nine_and(&[attack], start, first, Some(RECORDS))) {
                let (honest, attacker) = parts(&model);
                let case = format!("{law}, {attack:?} from {} s on", first / SECOND);
                println!("{case}: honest {honest:.3}, attacker {:.3}", attacker[0]);
                assert!(honest >= 0.9, "{case}: {honest:.3}");
                assert!(attacker[0] <= 1.2, "{case}: {:.3}", attacker[0]);
            }
        }
    }
}

/// Those that do harm by themselves do it without a policer, so that the bounds above mean something.
#[test]
fn without_a_policer_they_lose_much() {
    for (attack, most) in [(Attack::Spacing, 0.75), (Attack::Deaf, 0.3), (Attack::Datagrams, 0.1)] {
        let (honest, attacker) = parts(&nine_and(&[attack], 5 * SECOND, 0, None));
        println!("{attack:?} without: honest {honest:.3}, attacker {:.3}", attacker[0]);
        assert!(honest <= most && attacker[0] >= 3.0, "{attack:?}: {honest:.3}, {attacker:?}");
    }
}

#[test]
fn honest_flows_keep_nine_tenths_beside_any_three_attacks() {
    let mut mixes = Vec::new();
    for (at, &first) in ATTACKS.iter().enumerate() {
        for (at, &second) in ATTACKS.iter().enumerate().skip(at + 1) {
            mixes.extend(ATTACKS.iter().skip(at + 1).map(|&third| [first, second, third]));
        }
    }
    assert_eq!(mixes.len(), 20);
    for attacks in mixes {
        for (start, first) in [(5 * SECOND, 0), (0, 5 * SECOND)] {
            for (law, model) in each(nine_and(&attacks, start, first, Some(RECORDS))) {
                let (honest, attackers) = parts(&model);
                let case = format!("{law}, {attacks:?} from {} s on", first / SECOND);
                println!("{case}: honest {honest:.3}, attackers {attackers:.3?}");
                assert!(honest >= 0.9, "{case}: {honest:.3}");
            }
        }
    }
}

/// 1000 s of bursts, idle times, long and short round trips, short flows, packets that are overtaken and lost.
#[test]
fn nobody_is_held_who_is_honest() {
    let bursts = App::Bursts {
        size: Bytes(500_000),
        pause: Duration(3_000_000_000),
        wait: Wait::Write,
        buffer: Bytes(16_000_000),
        total: None,
    };
    let mut fullest: f64 = 0.0;
    for (seed, loss, ack_loss) in [(1, 0.1, 0.5), (2, 0.1, 0.0), (3, 0.0, 0.5), (4, 0.0, 0.0)] {
        let mut model = network(
            Some(RECORDS),
            vec![
                group("steady", honest(App::Endless), 9, 2 * MS, 0, SECOND),
                group("far", honest(App::Endless), 2, 112 * MS, 0, 20 * SECOND),
                group("bursts", honest(bursts), 4, 20 * MS, 0, 700 * MS),
                group("visitors", honest(App::Transfer(Bytes(1_000_000))), 49, 8 * MS, 0, 20 * SECOND),
                group("calls", datagrams(BitRate(300_000)), 3, 2 * MS, 0, MS),
            ],
        );
        (model.seed, model.duration, model.warmup) = (seed, 1000 * SECOND, 0);
        let [forward, back] = [0, 1].map(|link| model.links[link].port.clone());
        model.links[0].port = PortConfig {
            service: Service::Fixed(BitRate(10_000_000)),
            limit: Limit::Packets(67),
            errors: (loss > 0.0).then_some(ErrorRate::Packet { rate: loss, size: 1500 }),
            reorder: Some(Reorder { probability: Probability::from_f64(0.01), delay: 15 * MS }),
            ..forward
        };
        model.links[1].port = PortConfig { ack_loss: Probability::from_f64(ack_loss), ..back };
        for (law, model) in each(model) {
            let outcome = outcome(&model);
            let link = &outcome.links[0];
            let (clamped, arrived) = (link.clamped_packets_total, link.arrived_packets_total);
            let (held, used) = (link.policed_flows_total, link.utilization.unwrap_or(0.0));
            let case = format!("{law}, {loss} of packets, {ack_loss} of ACKs lost");
            println!("{case}: {held:?} held, {clamped:?} of {arrived} packets lowered, {used:.3} used");
            assert_eq!((held, link.drops_by_reason_total["policed"]), (Some(0), 0), "{case}");
            fullest = fullest.max(used);
        }
    }
    assert!(fullest > 0.95, "the link had room at all times, where nobody is held anyhow: {fullest}");
}
