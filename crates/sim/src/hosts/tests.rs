//! Hosts of flows that end: few are there at once.

use congestlab_core::law::{SenderConfig, reno};
use congestlab_core::units::BitRate;
use congestlab_net::port::PortConfig;
use congestlab_net::queue::Limit;
use congestlab_net::service::Service;
use congestlab_net::tcp::{Advertise, App, Config, Measure, Recovery};

use super::*;
use crate::common::{self, Draw};
use crate::crew;
use crate::crew::tests::{BUSY, classes};
use crate::elements::Elements;
use crate::model::{Group, GroupKind, Link, Model, Start};
use crate::network::Network;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::tally::{RULE, Rule};
use crate::{Engine, Span, reference};

const MS: Picos = 1_000_000_000;
const FLOWS: u32 = 3000;

/// Flows of three segments, one in each millisecond, over a path of 10 ms there and back: each lives for about 22 ms.
fn short_flows(errors: bool, delayed_ack: bool) -> Model {
    let link = |name: &str| {
        let mut port = PortConfig::new(Service::Fixed(BitRate(1_000_000_000)), 5 * MS, Limit::Packets(100));
        if errors {
            port.errors = Some(congestlab_net::errors::ErrorRate::Packet { rate: 0.02, size: 1000 });
        }
        Link { name: name.into(), port }
    };
    let config = Config {
        segment: 1000,
        ack: 40,
        law: SenderConfig::Reno(reno::Config::default()),
        initial_window: 3,
        window_most: Bytes(u64::MAX),
        awnd: None,
        recovery: Recovery::Sack,
        min_rto: Duration(200_000_000),
        delayed_ack,
        ecn: false,
        ns2: false,
        linux: None,
        advertise: Advertise::Always,
        stop: Time::NEVER,
        lie: None,
        measure: Measure::ALWAYS,
        app: App::Transfer(Bytes(3000)),
    };
    let group = Group {
        name: "short".into(),
        kind: GroupKind::Tcp(config),
        count: FLOWS,
        path: vec![0],
        back: vec![1],
        switches: vec![],
        access: None,
        exit: None,
        start: Start::Every { from: Time(0), every: 1_000_000 },
        stop: Time::NEVER,
        schedule: vec![],
        sizes: None,
        interoperable: None,
    };
    Model {
        seed: 1,
        duration: 4_000 * MS,
        warmup: 1_000 * MS,
        links: vec![link("there"), link("back")],
        devices: vec![],
        groups: vec![group],
        sample_every: None,
        record_events: false,
    }
}

/// Result of a run, and for each class of hosts how many there were at most at once, and how many are left.
fn run(model: &Model, threads: Option<usize>, rule: Rule) -> (Outcome, Vec<(usize, usize)>) {
    let (network, stop) = (Network::new(model), AtomicBool::new(false));
    let mut elements = Elements::new(model, &network, false, &stop);
    let span = Span { end: model.duration, bin: None, events: model.record_events, tap: None, stop: &stop };
    assert!(match threads {
        None => reference::run(&network, &mut elements, &span, &mut |_| {}, None),
        Some(threads) => {
            let alone = Plan::new(&network, 1).expect("a network with windows");
            crew::run(&network, &alone, (threads, 1), &mut elements, &span, rule, None, &mut |_| {})
        }
    });
    let mut living = Vec::new();
    for hosts in &elements.hosts {
        with_hosts!(hosts, crowd => living.push(crowd.living()));
    }
    (elements.finish(model, true), living)
}

#[test]
fn of_many_short_flows_there_are_as_many_hosts_as_live() {
    for delayed_ack in [false, true] {
        let model = short_flows(false, delayed_ack);
        let (expected, all) = run(&Model { record_events: true, ..model.clone() }, None, RULE);
        assert_eq!(all, [(FLOWS as usize, FLOWS as usize); 2]);
        assert!(expected.groups[0].iter().all(|flow| flow.completion_s.is_some_and(|time| time < 0.13)));
        for threads in [None, Some(1)] {
            let (got, living) = run(&model, threads, RULE);
            assert_eq!(got.fingerprint, expected.fingerprint);
            assert!(!got.groups[0].is_listed() && got.groups[0].count() == FLOWS as usize);
            assert_eq!(got.groups, expected.groups);
            // A window of the engine may hold the beginning of flows that begin after others end.
            for (most, left) in living {
                assert!((12..150).contains(&most) && left == 0, "{most} at once, {left} left, {delayed_ack}");
            }
        }
    }
}

/// Hosts are left of which something may still be on its way, for all that their senders know: few, though every twentieth
/// flow loses something.
#[test]
fn hosts_of_flows_with_losses_go_too_once_the_last_answer_is_there() {
    let model = short_flows(true, false);
    let (expected, _) = run(&Model { record_events: true, ..model.clone() }, None, RULE);
    let repeated = expected.groups[0].iter().filter(|flow| flow.retransmits_total > 0).count();
    assert!(repeated > FLOWS as usize / 20, "{repeated} flows lost something");
    for threads in [None, Some(1)] {
        let (got, living) = run(&model, threads, RULE);
        assert!(got == Outcome { events: Vec::new(), ..expected.clone() });
        for (most, left) in living {
            assert!(left < repeated / 4 && most < left + 200, "{most} at once, {left} left of {repeated}");
        }
    }
}

/// Threads that have one end of flows do not hear that they are over; who has both does, and nothing else differs. Some classes are
/// cut and joined again.
#[test]
fn hosts_change_hands_while_flows_begin_and_end() {
    let restless = Rule { stretch: 3, attempt: 0, stay: u64::MAX, patience: 1, hosts: BUSY, ..RULE };
    let (mut networks, mut cuts, mut gone) = (0, 0, 0);
    for seed in 9600..9680 {
        let mut draw = Draw::new(seed);
        let mut model = common::random_model(&mut draw, seed);
        common::shorten(&mut draw, &mut model);
        let Some([cut, whole]) = classes(&model, 3) else { continue };
        networks += 1;
        cuts += usize::from(cut > whole);
        let expected = crate::run(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| {});
        let (got, living) = run(&model, Some(3), restless);
        assert_eq!(got.fingerprint, expected.fingerprint, "seed {seed}");
        assert!(got == expected, "seed {seed}: equal fingerprint, but not equal");
        gone += living.iter().filter(|&&(most, left)| left < most).count();
    }
    println!("hosts went in {gone} classes of {networks} networks, of which {cuts} were cut");
    assert!(networks > 40 && cuts > 10 && gone > 60);
}
