//! What the keys of a file become: defaults, mirrors, bandwidth-delay products, profiles.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_core::law::xcp::{LossPolicy, Profile, RateSource, RequestPolicy};
use congestlab_core::law::{LinkConfig, SenderConfig};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};
use congestlab_scenario::net::capacity::CapacityFrom;
use congestlab_scenario::net::errors::ErrorRate;
use congestlab_scenario::net::port::{FeedbackAt, LawConfig};
use congestlab_scenario::net::queue::{Discipline, Limit, red};
use congestlab_scenario::net::random::Probability;
use congestlab_scenario::net::tcp::{App, Config, Recovery, SlowStart, Wait};
use congestlab_scenario::sim::model::{GroupKind, Model, Start};
use congestlab_scenario::sim::outcome::{Event, Sample};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

const BASE: &str = r#"
[run]
duration = "10 s"

[links.a]
rate = "10 Mbit/s"
delay = "40 ms"

[links.b]
rate = "5 Mbit/s"
delay = "10 ms"

[flows.one]
law = "sack"
path = ["a"]

[flows.two]
law = "xcp"
count = 3
path = ["a", "b"]
access = { rate = "100 Mbit/s", delay = "1 ms" }
exit = { rate = "100 Mbit/s", delay = "2 ms" }
"#;

fn scenario(settings: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, String)> =
        settings.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
    Scenario::parse("test.toml", BASE, Path::new(""), &overrides, None)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn model(settings: &[(&str, &str)]) -> Model {
    scenario(settings).model(&Measure::default())
}

fn tcp(model: &Model, group: usize) -> &Config {
    match &model.groups[group].kind {
        GroupKind::Tcp(config) => config,
        GroupKind::Source(_) => panic!("a source"),
    }
}

const MS: u64 = 1_000_000_000;

#[test]
fn absent_keys_have_the_documented_defaults() {
    let model = model(&[]);
    assert_eq!((model.seed, model.warmup, model.duration), (1, 0, 10_000 * MS));
    assert_eq!((model.sample_every, model.record_events), (None, false));
    let names: Vec<&str> = model.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["a", "a.reverse", "b", "b.reverse"]);
    let port = &model.links[0].port;
    assert_eq!(
        (port.delay, port.feedback_at, port.ack_loss),
        (40 * MS, FeedbackAt::Departure, Probability::ZERO)
    );
    assert_eq!((&port.discipline, &port.law, &port.errors), (&Discipline::DropTail, &None, &None));

    let one = &model.groups[0];
    assert_eq!((one.count, one.stop, one.access, one.exit), (1, Time::NEVER, None, None));
    assert_eq!(one.start, Start::Every { from: Time(0), every: 0 });
    let config = tcp(&model, 0);
    assert_eq!(
        (config.segment, config.ack, config.awnd, config.min_rto),
        (1500, 40, None, Duration(1_000_000_000))
    );
    assert_eq!((config.recovery, config.app), (Recovery::Sack, App::Endless));
    assert!(!config.delayed_ack && !config.ecn && !config.ns2);
    let SenderConfig::Xcp(xcp) = &tcp(&model, 1).law else { panic!("XCP") };
    assert_eq!((xcp.request, xcp.loss, xcp.clamp), (RequestPolicy::Demand, LossPolicy::Tcp, true));
    assert_eq!((xcp.aging, xcp.pacing, xcp.rate_source), (None, true, RateSource::Window));
    assert_eq!((xcp.price, xcp.desired_rate), (Ratio::ONE, Rate(12_500_000)), "the access rate");
    assert_eq!(scenario(&[]).model(&Measure { series: true, events: true }).sample_every, Some(100 * MS));
}

#[test]
fn the_initial_window_is_one_for_xcp_and_rfc_5681s_for_others() {
    let window = |settings: &[(&str, &str)], group| tcp(&model(settings), group).initial_window;
    assert_eq!(window(&[], 1), 1);
    assert_eq!(window(&[], 0), 3, "1460 B of payload");
    assert_eq!(window(&[("flows.one.segment", "1000 B")], 0), 4);
    assert_eq!(window(&[("flows.one.segment", "9000 B")], 0), 2);
    assert_eq!(window(&[("flows.two.profile", "ns2")], 1), 2);
    assert_eq!(window(&[("flows.two.profile", "ns2"), ("flows.two.initial_window", "7")], 1), 7);
}

#[test]
fn ns2_is_reno_recovery_an_early_timeout_and_a_short_interval() {
    let model = model(&[("flows.two.profile", "ns2"), ("links.a.profile", "ns2"), ("links.a.law", "xcp")]);
    let config = tcp(&model, 1);
    assert_eq!((config.recovery, config.min_rto, config.ns2), (Recovery::Reno, Duration(200_000_000), true));
    assert!(matches!(&config.law, SenderConfig::Xcp(xcp) if xcp.profile == Profile::Ns2));
    let Some(LawConfig { config: LinkConfig::Xcp(config), follows_service }) = &model.links[0].port.law
    else {
        panic!("XCP")
    };
    assert_eq!((config.min_interval, *follows_service), (Duration(1_000_000), true));
    assert!(!config.bound_headers);
    assert!(!tcp(&self::model(&[]), 1).ns2);
}

#[test]
fn linux_is_its_defaults_and_hystart_for_cubic() {
    let of = |law: &str, more: &[(&str, &str)]| {
        let mut settings = vec![("flows.one.law", law), ("flows.one.profile", "linux")];
        settings.extend(more);
        tcp(&model(&settings), 0).clone()
    };
    let config = of("sack", &[]);
    assert_eq!((config.recovery, config.initial_window, config.ns2), (Recovery::Sack, 10, false));
    assert_eq!((config.min_rto, config.delayed_ack), (Duration(200_000_000), true));
    assert_eq!(config.linux, Some(SlowStart::Standard));
    assert_eq!(of("cubic", &[]).linux, Some(SlowStart::HyStart));
    assert_eq!(of("cubic", &[("flows.one.slow_start", "standard")]).linux, Some(SlowStart::Standard));
    assert_eq!(of("bic", &[("flows.one.slow_start", "hystart++")]).linux, Some(SlowStart::HyStartPlus));
    let told = of("cubic", &[("flows.one.initial_window", "4"), ("flows.one.delayed_ack", "false")]);
    assert_eq!((told.initial_window, told.delayed_ack), (4, false));
    assert_eq!(tcp(&model(&[]), 0).linux, None);
}

#[test]
fn the_thesis_is_a_sender_and_a_router_of_xcp() {
    let model =
        model(&[("flows.two.profile", "thesis"), ("links.a.profile", "thesis"), ("links.a.law", "xcp")]);
    let config = tcp(&model, 1);
    assert_eq!((config.recovery, config.initial_window, config.ns2), (Recovery::Sack, 1, false));
    assert!(matches!(&config.law, SenderConfig::Xcp(xcp) if xcp.profile == Profile::Thesis));
    let Some(LawConfig { config: LinkConfig::Xcp(config), .. }) = &model.links[0].port.law else {
        panic!("XCP")
    };
    assert!(config.thesis && !config.bound_headers);
    assert_eq!(config.min_interval, Duration(5_000_000));
}

/// docs/design/contract.md 1: reno, newreno, sack and fack name a recovery; every other law has SACK unless told.
#[test]
fn recovery_follows_the_law_then_the_flow() {
    let recovery = |law: &str, more: &[(&str, &str)]| {
        let mut settings = vec![("flows.one.law", law)];
        settings.extend(more);
        tcp(&model(&settings), 0).recovery
    };
    assert_eq!(recovery("reno", &[]), Recovery::Reno);
    assert_eq!(recovery("newreno", &[]), Recovery::NewReno);
    assert_eq!(recovery("sack", &[]), Recovery::Sack);
    assert_eq!(recovery("fack", &[]), Recovery::Fack);
    assert_eq!(recovery("highspeed", &[]), Recovery::Sack);
    assert_eq!(recovery("highspeed", &[("flows.one.recovery", "fack")]), Recovery::Fack);
    assert_eq!(recovery("cubic", &[]), Recovery::Sack);
    assert_eq!(recovery("cubic", &[("flows.one.recovery", "reno")]), Recovery::Reno);
    assert_eq!(recovery("pxcp", &[("flows.one.recovery", "newreno")]), Recovery::NewReno);
    assert_eq!(recovery("sack", &[("flows.one.profile", "ns2")]), Recovery::Sack);
}

/// R of `a` is flow two's: 2 (40 + 10 + 1 + 2) = 106 ms; 10 Mbit/s x 106 ms / 1500 B = 88.3.
#[test]
fn a_bdp_is_of_the_longest_round_trip_that_crosses() {
    let limit = |settings: &[(&str, &str)], link: usize| model(settings).links[link].port.limit;
    assert_eq!(limit(&[], 0), Limit::Packets(89), "the default is 1 BDP");
    assert_eq!(limit(&[], 1), Limit::Packets(89), "and of the reverse too");
    assert_eq!(limit(&[], 2), Limit::Packets(45));
    assert_eq!(limit(&[("links.a.packet_size", "1000 B")], 0), Limit::Packets(133));
    assert_eq!(limit(&[("links.a.queue", "0.5 BDP")], 0), Limit::Packets(45));
    assert_eq!(limit(&[("flows.two.path", "[\"b\"]")], 0), Limit::Packets(67), "80 ms of flow one");
    assert_eq!(limit(&[("flows.two.path", "[\"a.reverse\", \"b\"]")], 0), Limit::Packets(89), "as ACKs");
    assert_eq!(
        limit(&[("flows.two.path", "[\"a\"]")], 2),
        Limit::Packets(100),
        "a link that no flow crosses"
    );
    assert_eq!(limit(&[("links.a.reverse.delay", "60 ms")], 0), Limit::Packets(105), "126 ms there and back");
    assert_eq!(limit(&[("links.a.queue", "250 kB")], 0), Limit::Bytes(250_000));
    let steps = "{ steps = [[\"0 s\", \"2 Mbit/s\"], [\"1 s\", \"20 Mbit/s\"]] }";
    assert_eq!(limit(&[("links.a.rate", steps)], 0), Limit::Packets(177), "of the fastest step");
    assert_eq!(limit(&[("links.a.delay", "0 s"), ("flows.two.path", "[\"b\"]")], 0), Limit::Packets(1));
}

/// T of flow two: 106 ms, and 1540 B at 10, 5, 100 and 100 Mbit/s, 1232 + 2464 + 2 x 123.2 us.
#[test]
fn a_law_that_is_told_no_round_trip_is_told_the_longest_of_its_flows() {
    let told = |settings: &[(&str, &str)]| {
        let laws = [("links.*.law", "hpcc"), ("flows.*.law", "hpcc")];
        let model = model(&[&laws, settings].concat());
        let sender = |group: usize| match &tcp(&model, group).law {
            SenderConfig::Hpcc(config) => config.base_rtt.0,
            other => panic!("{other:?}"),
        };
        let link = |at: usize| match &model.links[at].port.law {
            Some(LawConfig { config: LinkConfig::Hpcc(config), .. }) => config.base_rtt.0,
            other => panic!("{other:?}"),
        };
        [sender(0), sender(1), link(0), link(2)]
    };
    assert_eq!(told(&[]), [109_942_400; 4]);
    let apart = [("flows.two.path", "[\"b\"]")];
    assert_eq!(told(&apart), [81_232_000, 28_710_400, 81_232_000, 28_710_400]);
    let both = "{ hpcc = { base_rtt = \"13 us\" } }";
    let written = [("links.a.law", both), ("flows.one.law", both)];
    assert_eq!(told(&written), [13_000, 109_942_400, 13_000, 109_942_400]);
}

#[test]
fn a_reverse_mirrors_rate_delay_and_limit_and_nothing_else() {
    let lossy = [
        ("links.a.law", "xcp"),
        ("links.a.error", "{ packet_error_rate = 0.1 }"),
        ("links.a.discipline", "prio-droptail"),
        ("links.a.queue", "7 packets"),
        ("links.a.packet_size", "500 B"),
    ];
    let mirror = &model(&lossy).links[1].port;
    assert_eq!((mirror.delay, mirror.limit), (40 * MS, Limit::Packets(7)));
    assert_eq!(format!("{:?}", mirror.service), "Fixed(BitRate(10000000))");
    assert_eq!((&mirror.discipline, &mirror.law, &mirror.errors), (&Discipline::DropTail, &None, &None));

    let reverse =
        "{ rate = \"1 Mbit/s\", law = \"xcp\", error = { packet_error_rate = 0.2 }, ack_loss = 0.5 }";
    let own = [&lossy[..], &[("links.a.reverse", reverse)]].concat();
    let port = &model(&own).links[1].port;
    assert_eq!((port.delay, port.limit), (40 * MS, Limit::Packets(7)));
    assert_eq!(port.errors, Some(ErrorRate::Packet { rate: 0.2, size: 500 }));
    assert_eq!(port.ack_loss, Probability::from_f64(0.5));
    let Some(LawConfig { config: LinkConfig::Xcp(config), .. }) = &port.law else { panic!("XCP") };
    assert_eq!(config.capacity, Rate(125_000), "its own rate");
    let two = model(&[("links.a.queue", "1 BDP"), ("links.a.reverse", "{ rate = \"1 Mbit/s\" }")]);
    assert_eq!(two.links[1].port.limit, Limit::Packets(9), "a BDP is of the link that says it");
}

/// ns-2's `duplex-link` gives both directions one queue and law; a file that names one direction alone means that where data
/// crosses both.
#[test]
fn a_mirror_over_which_data_go_has_the_links_law_and_queue() {
    let both = [
        ("links.a.law", "{ xcp = { gamma = 0.2, capacity = \"9 Mbit/s\" } }"),
        ("links.a.profile", "ns2"),
        ("links.a.discipline", "prio-droptail"),
        ("links.a.feedback_at", "enqueue"),
        ("links.a.error", "{ packet_error_rate = 0.1 }"),
        ("flows.one.path", "[\"a.reverse\"]"),
    ];
    let with = |more: &[(&str, &str)]| model(&[&both[..], more].concat());
    let mirrored = with(&[]);
    let [there, back] = [0, 1].map(|index| &mirrored.links[index].port);
    assert_eq!(
        (&back.law, &back.discipline, back.feedback_at),
        (&there.law, &there.discipline, there.feedback_at)
    );
    assert_eq!((back.law.is_some(), &back.errors), (true, &None));
    let switched = with(&[
        ("flows.one.path", "[\"b\"]"),
        ("flows.one.switch", "[{ at = \"5 s\", path = [\"a.reverse\"] }]"),
    ]);
    assert_eq!(switched.links[1].port.law, there.law);
    // Only ACKs cross it: nothing is mirrored.
    let acks = with(&[("flows.one.path", "[\"a\"]")]);
    assert_eq!((&acks.links[1].port.law, &acks.links[1].port.discipline), (&None, &Discipline::DropTail));
    // What `reverse` states stays.
    let stated = [("links.a.reverse", "{ law = \"none\", discipline = \"droptail\" }")];
    let own = with(&stated);
    assert_eq!((&own.links[1].port.law, &own.links[1].port.discipline), (&None, &Discipline::DropTail));
    let text = scenario(&[&both[..], &stated].concat()).normalised();
    let again = Scenario::parse("again.toml", &text, Path::new(""), &[], None).unwrap();
    assert_eq!(again.normalised(), text);
    assert_eq!(again.model(&Measure::default()).links[1].port.law, None);
    let slower = with(&[("links.a.reverse", "{ rate = \"1 Mbit/s\" }")]);
    let Some(LawConfig { config: LinkConfig::Xcp(config), .. }) = &slower.links[1].port.law else {
        panic!("XCP")
    };
    assert_eq!((config.capacity, config.gamma), (Rate(125_000), Ratio::ppm(200_000)), "of its own rate");
}

#[test]
fn acknowledgments_go_back_over_the_reverses() {
    let model = model(&[("flows.two.path", "[\"a\", \"b.reverse\"]")]);
    assert_eq!((&model.groups[1].path[..], &model.groups[1].back[..]), (&[0, 3][..], &[2, 1][..]));
}

#[test]
fn a_window_is_in_whole_segments_and_never_none() {
    let awnd = |value: &str| tcp(&model(&[("flows.one.awnd", value)]), 0).awnd;
    assert_eq!(awnd("64 packets"), Some(64));
    assert_eq!(awnd("64 kB"), Some(42));
    assert_eq!(awnd("100 B"), Some(1));
}

/// TCP keeps the queue full, so that it can be measured; the law alone was told too much.
#[test]
fn a_law_that_is_told_how_fast_its_queue_drains_is_told_the_same_by_both_engines() {
    let settings = [
        ("links.a.law", "{ xcp = { capacity = \"20 Mbit/s\" } }"),
        ("links.a.rate", "{ steps = [[\"0 s\", \"10 Mbit/s\"], [\"5 s\", \"4 Mbit/s\"]] }"),
    ];
    let run = |source: Option<&'static str>, engine| {
        let source = source.map(|source| ("links.a.capacity_from", source));
        let model = model(&settings.into_iter().chain(source).collect::<Vec<_>>());
        sim::run(&model, engine, &AtomicBool::new(false), &mut |_| ())
    };
    let window = Engine::Window { threads: 1, divisor: 1 };
    let fixed = run(None, window);
    assert_eq!(fixed.links[0].capacity_changes_total, None);
    for source in ["drain", "qdisc"] {
        let (one, other) = (run(Some(source), window), run(Some(source), Engine::Reference));
        assert_eq!(one.fingerprint, other.fingerprint, "{source}");
        assert_ne!(one.fingerprint, fixed.fingerprint, "{source}");
        let link = &one.links[0];
        let changes = link.capacity_changes_total.unwrap();
        assert!(changes >= 2 && link.capacity_stale_s_total < Some(5.0), "{source}: {link:?}");
        assert_eq!(source == "qdisc", changes == 2 && link.capacity_stale_s_total == Some(0.0), "{link:?}");
    }
}

#[test]
fn switches_reach_their_laws() {
    let law = "{ xcp = { alpha = 0.3, beta = 0.1, gamma = 0.2, capacity = \"9.9 Mbit/s\", capture = false, bound_headers = false, \
               average_queue = true, remember_grants = true, \
               min_interval = \"2 ms\", max_interval = \"3 s\" } }";
    let model = model(&[("links.a.law", law), ("links.a.feedback_at", "enqueue")]);
    let Some(LawConfig { config: LinkConfig::Xcp(config), follows_service }) = &model.links[0].port.law
    else {
        panic!("XCP")
    };
    assert_eq!(
        (config.alpha, config.beta, config.gamma),
        (Ratio::ppm(300_000), Ratio::ppm(100_000), Ratio::ppm(200_000))
    );
    assert_eq!((config.capacity, *follows_service, config.capture), (Rate(1_237_500), false, false));
    assert_eq!((config.min_interval, config.max_interval), (Duration(2_000_000), Duration(3_000_000_000)));
    assert_eq!((config.initial_interval, config.allowed_queue), (Duration(50_000_000), Duration(2_000_000)));
    assert!(!config.bound_headers && config.average_queue && config.remember_grants);
    assert_eq!(model.links[0].port.feedback_at, FeedbackAt::Enqueue);
    assert_eq!(model.links[0].port.capacity_from, None);
    let (law, longest) = ("{ xcp = { capacity = \"9.9 Mbit/s\" } }", Bytes(1500));
    let told = |rate: &str, from: &str| {
        let model =
            self::model(&[("links.a.law", law), ("links.a.rate", rate), ("links.a.capacity_from", from)]);
        let port = &model.links[0].port;
        // What the law states holds without the source.
        let LawConfig { config, follows_service } = port.law.as_ref().unwrap();
        assert_eq!((config.capacity(), *follows_service), (Rate(1_237_500), false));
        port.capacity_from.unwrap()
    };
    assert_eq!(told("10 Mbit/s", "drain"), CapacityFrom::Drain { longest });
    assert_eq!(told("10 Mbit/s", "qdisc"), CapacityFrom::Stated);
    let trace = concat!("{ trace = \"", env!("CARGO_MANIFEST_DIR"), "/tests/data/lte.down\" }");
    let delay = |ms: u64| CapacityFrom::Trace { delay: Duration(ms * 1_000_000) };
    assert_eq!(told(trace, "trace"), delay(0));
    assert_eq!(told(trace, "{ trace = { delay = \"50 ms\" } }"), delay(50));

    let law = "{ xcp = { loss = \"fallback\", request = \"unlimited\", clamp = false, aging = 0.25, pacing = true, \
               rate = \"measured\", price = 2.5, desired_rate = \"8 Mbit/s\" } }";
    let model = self::model(&[("flows.two.law", law)]);
    let SenderConfig::Xcp(xcp) = &tcp(&model, 1).law else { panic!("XCP") };
    assert_eq!((xcp.loss, xcp.request, xcp.clamp), (LossPolicy::Fallback, RequestPolicy::Unlimited, false));
    assert_eq!((xcp.aging, xcp.pacing), (Some(Ratio::ppm(250_000)), true));
    assert_eq!(
        (xcp.rate_source, xcp.price, xcp.desired_rate),
        (RateSource::Measured, Ratio::ppm(2_500_000), Rate(1_000_000))
    );
    let aging = |value: &str| match &tcp(&self::model(&[("flows.two.law.xcp.aging", value)]), 1).law {
        SenderConfig::Xcp(xcp) => xcp.aging,
        _ => None,
    };
    assert_eq!((aging("true"), aging("false"), aging("0")), (Some(Ratio::ppm(500_000)), None, None));

    let law = |value: &str| tcp(&self::model(&[("flows.two.law", value)]), 1).law.clone();
    assert_eq!(
        law("pxcp"),
        law("{ xcp = { loss = \"maintain\", rate = \"used\" } }"),
        "docs/design/contract.md 1: one is the other"
    );
}

/// A key of `[laws.NAME]` is one of each link and flow that runs the law and does not state the key.
#[test]
fn keys_of_a_law_hold_for_all_links_and_flows_that_run_it() {
    let link = |model: &Model, index: usize| match &model.links[index].port.law.as_ref().unwrap().config {
        LinkConfig::Xcp(config) => config.gamma,
        _ => panic!("not XCP"),
    };
    let flow = |model: &Model| match &tcp(model, 1).law {
        SenderConfig::Xcp(xcp) => (xcp.pacing, xcp.price),
        _ => panic!("not XCP"),
    };
    let laws = [
        ("links.a.law", "xcp"),
        ("links.b.law", "{ xcp = { gamma = 0.2 } }"),
        ("links.a.reverse", "{ law = \"xcp\" }"),
        ("laws.xcp.gamma", "0.05"),
        ("laws.xcp.pacing", "true"),
        ("laws.xcp.price", "2"),
    ];
    let stated = scenario(&laws);
    let model = stated.model(&Measure::default());
    assert_eq!([0, 1, 2].map(|index| link(&model, index)), [50_000, 50_000, 200_000].map(Ratio::ppm));
    assert_eq!(flow(&model), (true, Ratio::ppm(2_000_000)));
    let own = [&laws[..], &[("flows.two.law", "{ xcp = { price = 3 } }")]].concat();
    assert_eq!(flow(&self::model(&own)), (true, Ratio::ppm(3_000_000)));
    // Another law keeps its defaults, and a profile does not win over a key.
    let other = [&laws[..], &[("flows.two.law", "xcp-r")]].concat();
    let other = self::model(&other);
    let SenderConfig::XcpR(other) = &tcp(&other, 1).law else { panic!("not XCP-r") };
    assert_eq!(other.xcp.price, Ratio::ONE);
    let of_profile = [("links.a.law", "xcp"), ("links.a.profile", "ns2"), ("laws.xcp.min_interval", "7 ms")];
    let of_profile = self::model(&of_profile);
    let LinkConfig::Xcp(config) = &of_profile.links[0].port.law.as_ref().unwrap().config else {
        panic!("not XCP")
    };
    assert_eq!((config.min_interval, config.bound_headers), (Duration(7_000_000), false));
    // Written out, the keys are where they take effect.
    let text = stated.normalised();
    assert!(!text.contains("[laws"), "{text}");
    let again = Scenario::parse("again.toml", &text, Path::new(""), &[], None).unwrap();
    assert_eq!(again.normalised(), text);
    assert_eq!(flow(&again.model(&Measure::default())), flow(&model));
}

#[test]
fn red_and_applications_get_their_numbers() {
    let red = |value: &str| match &model(&[("links.a.discipline", value)]).links[0].port.discipline {
        Discipline::Red(config) => *config,
        other => panic!("{other:?}"),
    };
    let config = red("{ red = { min = \"50 packets\", max = \"100 packets\" } }");
    assert_eq!(config.thresholds, red::Thresholds::Packets { min: 50, max: 100 });
    let chances = (Probability::from(config.max_p), Probability::from(config.weight));
    assert_eq!(chances, (Probability::from_f64(0.1), Probability::from_f64(0.002)));
    assert!(!config.gentle && !config.ecn && config.packet_size == 1500);
    assert!(!config.wait && !config.use_mark_p, "F93; ns-2's own ways are asked for");
    let config = red(
        "{ red = { min = \"0.5 BDP\", max = \"1 BDP\", gentle = true, ecn = true, wait = true, use_mark_p = true } }",
    );
    assert_eq!(config.thresholds, red::Thresholds::Packets { min: 45, max: 89 });
    assert!(config.gentle && config.ecn && config.wait && config.use_mark_p);
    let config = red("{ red = { min = \"10 kB\", max = \"20 kB\" } }");
    assert_eq!(config.thresholds, red::Thresholds::Bytes { min: 10_000, max: 20_000 });

    let app = |settings: &[(&str, &str)]| tcp(&model(settings), 0).app;
    assert_eq!(app(&[("flows.one.size", "1 MB")]), App::Transfer(Bytes(1_000_000)));
    let bursts = ("flows.one.app", "{ bursts = { size = \"1 MB\", pause = \"1 s\" } }");
    let (size, pause, buffer) = (Bytes(1_000_000), Duration(1_000_000_000), Bytes(16_000_000));
    assert_eq!(app(&[bursts]), App::Bursts { size, pause, wait: Wait::Write, buffer, total: None });
    let total = Some(Bytes(2_000_000));
    assert_eq!(
        app(&[bursts, ("flows.one.size", "2 MB")]),
        App::Bursts { size, pause, wait: Wait::Write, buffer, total }
    );
}

#[test]
fn memory_is_judged_by_what_can_be_at_once() {
    let needed = |settings: &[(&str, &str)]| scenario(settings).memory_needed(&Measure::default());
    assert!(needed(&[]) < 10_000_000, "{}", needed(&[]));
    assert!(needed(&[("flows.one.count", "900000000")]) > 1_000_000_000_000, "flows");
    let endless = [("links.a.queue", "1000000000 packets"), ("run.duration", "100000 s")];
    let fast = [&endless[..], &[("links.a.rate", "1 Gbit/s"), ("links.b.rate", "1 Gbit/s")]].concat();
    assert!(needed(&fast) > 100_000_000_000, "a queue that flows can fill: {}", needed(&fast));
    for queue in ["100000000 packets", "1 TB"] {
        let huge = needed(&[("links.a.queue", queue)]);
        assert!(huge < 100_000_000, "{queue}, but the link carries too little to fill it: {huge}");
    }
    let small = [("flows.one.awnd", "10 packets"), ("flows.two.awnd", "10 packets")];
    let huge_queue = [&small[..], &[("links.a.queue", "1000000000 packets")]].concat();
    assert!(needed(&huge_queue) < 10_000_000, "a queue that they can not: {}", needed(&huge_queue));
    let far = [("links.a.rate", "1 Tbit/s"), ("links.a.delay", "100000 s"), ("links.a.queue", "10 packets")];
    assert!(needed(&far) < 10_000_000, "a long wire that no window fills in the run: {}", needed(&far));
    let far = [&far[..], &[("flows.two.law", "{ cbr = { rate = \"1 Tbit/s\" } }")]].concat();
    assert!(needed(&far) > 10_000_000_000, "a long wire");
    let two = "{ xcp-tcp = { xcp_queue = \"1000000000 packets\" } }";
    let classes = [
        &endless[1..],
        &fast[2..],
        &[("links.a.discipline", two), ("links.a.law", "xcp"), ("links.a.queue", "10 packets")],
    ]
    .concat();
    assert!(needed(&classes) > 100_000_000_000, "the other class's queue: {}", needed(&classes));
    let late = [
        ("links.a.rate", "1 Tbit/s"),
        ("links.a.reorder", "{ probability = 1, delay = \"100000 s\" }"),
        ("links.a.queue", "10 packets"),
    ];
    assert!(needed(&late) > 10_000_000_000, "packets that come late");
    let fine = scenario(&[("measure.every", "1 ns")]);
    assert!(
        fine.memory_needed(&Measure { series: true, events: false }) > 1_000_000_000_000,
        "a fine series"
    );
    assert!(fine.memory_needed(&Measure::default()) < 10_000_000, "unless nobody asks for it");
}

/// The thresholds of the classes' RED are a packet at least, so that the file that states them can be read.
#[test]
fn default_thresholds_of_short_queues_can_be_written() {
    for queue in ["1 packet", "2 packets", "3 packets", "1 B", "0.01 BDP"] {
        let classes = [("links.a.discipline", "xcp-tcp"), ("links.a.law", "xcp"), ("links.a.queue", queue)];
        let written = scenario(&classes).normalised();
        Scenario::parse("written.toml", &written, Path::new(""), &[], None)
            .unwrap_or_else(|error| panic!("{queue}: {error}"));
    }
}

/// Hosts are there while flows live, where flows come and go: not where they pile up, or their steps are recorded.
#[test]
fn short_flows_are_judged_by_how_many_live_at_once() {
    let calm = [
        ("run.duration", "1000 s"),
        ("links.a.rate", "1 Gbit/s"),
        ("links.a.queue", "100 packets"),
        ("flows.two.path", "[\"b\"]"),
        ("flows.one.count", "1000000"),
        ("flows.one.size", "3 kB"),
        ("flows.one.start", "{ uniform = \"1000 s\" }"),
    ];
    let needed = |settings: &[(&str, &str)], series: bool| {
        let all = [&calm[..], settings].concat();
        scenario(&all).memory_needed(&Measure { series, events: false })
    };
    let (few, all) = (1_300_000_000, 2_000_000_000);
    assert!(needed(&[], false) < few, "{}", needed(&[], false));
    assert!(needed(&[("flows.one.start", "{ poisson = \"1 ms\" }")], false) < few);
    for (why, settings) in [
        ("more comes than the link carries", ("links.a.rate", "25 Mbit/s")),
        ("others take the rest", ("flows.two.path", "[\"a\"]")),
        ("all begin at once", ("flows.one.start", "\"0 s\"")),
        ("nobody knows when they are over", ("links.a.reorder", "{ probability = 0.1, delay = \"1 ms\" }")),
        ("each loses something", ("links.a.error", "{ packet_error_rate = 0.5 }")),
    ] {
        let needed = needed(&[settings], false);
        assert!(needed > all, "{why}: {needed}");
    }
    assert!(needed(&[("measure.every", "1000 s")], true) > all);
}

/// A list that grows has room for twice what is in it, and sorting or merging takes as much. Laws say how often their
/// intervals end, also where a round trip takes no time.
#[test]
fn what_is_recorded_needs_no_more_memory_than_was_said() {
    let xcp_i = "{ xcp = { interoperable = true } }";
    let (vcp, fast) = ("{ mpcp = { n = 1, interval = \"1 ms\" } }", ("run.duration", "1 s"));
    let cases: [&[(&str, &str)]; 18] = [
        &[],
        &[("flows.two.law", "{ cbr = { rate = \"100 Mbit/s\" } }"), ("flows.two.segment", "100 B")],
        &[("flows.two.law", "{ onoff = { rate = \"9 Mbit/s\", on = \"1 s\", off = \"1 s\" } }")],
        &[("links.a.queue", "2 packets"), ("flows.one.count", "300"), ("flows.two.law", "newreno")],
        &[("links.a.queue", "2 packets"), ("flows.two.law", "cubic"), ("links.a.delay", "0 s")],
        &[("links.a.error", "{ packet_error_rate = 0.3 }"), ("links.b.error", "{ bit_error_rate = 1e-5 }")],
        &[("links.b.reverse", "{ rate = \"20 kbit/s\", ack_loss = 0.5 }")],
        &[
            ("links.a.discipline", "{ red = { min = \"2 packets\", max = \"9 packets\", ecn = true } }"),
            ("flows.one.ecn", "true"),
        ],
        &[("links.a.law", "{ xcp = { capacity = \"30 Mbit/s\" } }"), ("flows.one.law", "xcp")],
        &[("links.a.discipline", "xcp-tcp"), ("links.a.law", "xcp"), ("links.b.law", "pxcp")],
        &[("links.a.law", xcp_i), ("flows.two.law", xcp_i)],
        &[("links.b.law", xcp_i), ("flows.two.law", xcp_i), ("flows.two.count", "20")],
        &[
            ("links.a.law", "vcp"),
            ("flows.two.law", "vcp"),
            ("links.a.delay", "0 s"),
            ("links.b.delay", "0 s"),
        ],
        &[("links.a.law", "dpcp"), ("flows.one.law", "dpcp"), ("links.a.delay", "1 ns")],
        &[
            ("links.b.law", vcp),
            ("flows.two.law", vcp),
            ("links.a.delay", "0 s"),
            ("links.b.delay", "0 s"),
            fast,
        ],
        &[
            ("links.a.law", "xcp"),
            ("flows.one.law", "xcp"),
            ("links.a.delay", "0 s"),
            ("links.b.law", "pxcp"),
        ],
        // Nobody crosses it, and its law has its intervals all the same.
        &[("links.b.law", "xcp"), ("flows.two.path", "[\"a\"]"), ("links.b.queue", "9 packets")],
        &[("flows.two.law", "{ onoff = { rate = \"9 Mbit/s\", on = \"1 us\", off = \"2 us\" } }")],
    ];
    for case in cases {
        let scenario = scenario(case);
        let (series, events) =
            (Measure { series: true, events: false }, Measure { series: true, events: true });
        let outcome = sim::run(
            &scenario.model(&events),
            Engine::Window { threads: 1, divisor: 1 },
            &AtomicBool::new(false),
            &mut |_| (),
        );
        let needed = |measure: &Measure| scenario.memory_needed(measure);
        let samples = 2 * outcome.series.len() * size_of::<Sample>();
        let said = needed(&series) - needed(&Measure::default());
        assert!(said >= samples as u64, "{case:?}: series {samples} B, said {said} B");
        let happened = 2 * outcome.events.len() * size_of::<Event>();
        let said = needed(&events) - needed(&series);
        assert!(said >= happened as u64, "{case:?}: events {happened} B, said {said} B");
        assert!(said < 1_000_000_000, "{case:?}: {said} B refuses what fits");
    }
}

/// Links that carry much do not drop much of it, unless sources overrun them.
#[test]
fn events_are_judged_by_who_listens_to_losses() {
    let events = Measure { series: false, events: true };
    let fast = [("links.a.rate", "10 Gbit/s"), ("links.b.rate", "10 Gbit/s"), ("run.duration", "60 s")];
    let needed = scenario(&fast).memory_needed(&events);
    assert!(needed < 16_000_000_000, "{needed}");
    let source = [("flows.one.law", "{ cbr = { rate = \"10 Gbit/s\" } }"), ("flows.one.segment", "100 B")];
    let needed = scenario(&source).memory_needed(&events);
    assert!(needed > 100_000_000 * 2 * size_of::<Event>() as u64, "{needed}: 10^8 packets are dropped");
}

#[test]
fn too_much_memory_is_refused_where_the_file_asks_for_it() {
    let refused = |settings: &[(&str, &str)], measure: &Measure| {
        let scenario = scenario(settings);
        assert!(scenario.require_memory(measure, scenario.memory_needed(measure)).is_ok());
        let refused = scenario.require_memory(measure, 100_000_000).expect_err("it is too much");
        let diagnostic = refused.iter().next().expect("a reason");
        assert!(!diagnostic.help().is_empty());
        (diagnostic.file().to_owned(), diagnostic.position(), diagnostic.to_string())
    };
    let plain = Measure::default();
    let (file, _, text) = refused(&[("flows.one.count", "1000000")], &plain);
    assert_eq!(file, "--set");
    assert!(
        text.contains("`flows.one.count` is 1000000;") && text.contains("allowed here: about 4"),
        "{text}"
    );
    let queue = [("run.duration", "100000 s"), ("links.b.queue", "1000000000 packets")];
    let (_, _, text) = refused(&queue, &plain);
    assert!(text.contains("`links.b.queue` is \"1000000000 packets\""), "{text}");
    let (_, _, text) = refused(&[("measure.every", "1 us")], &Measure { series: true, events: false });
    assert!(text.contains("`measure.every` is 1 us"), "{text}");
    let from = text.split("allowed here: from about ").nth(1).and_then(|rest| rest.split(' ').next());
    let from = from.and_then(|from| from.parse::<f64>().ok());
    assert!(from.is_some_and(|from| (1e-6..1e-2).contains(&from)), "{text}");
    let source = [("flows.one.law", "{ cbr = { rate = \"10 Gbit/s\" } }")];
    let (file, position, text) = refused(&source, &Measure { series: false, events: true });
    assert_eq!((file.as_str(), position), ("test.toml", (3, 12)), "the duration");
    assert!(text.contains("--events") && text.contains("`flows.one`"), "{text}");
}

/// Unused ones too: each has its place in the file, the model and the results.
#[test]
fn too_many_links_are_refused_as_links() {
    let others = (0..10_000).map(|link| format!("[links.other{link}]\nrate = \"10 Mbit/s\"\n"));
    let text = format!("{BASE}{}", others.collect::<String>());
    let scenario = Scenario::parse("test.toml", &text, Path::new(""), &[], None).expect("it is right");
    let refused = scenario.require_memory(&Measure::default(), 50_000_000).expect_err("it is too much");
    let text = refused.iter().next().expect("a reason").to_string();
    assert!(text.contains("links: there are 10002; allowed here: about 49"), "{text}");
}

/// It has no port while the others run.
#[test]
fn a_link_that_nobody_crosses_is_measured_as_any_other() {
    let model = model(&[("flows.two.path", "[\"a\"]"), ("run.warmup", "1 s"), ("run.duration", "2 s")]);
    for engine in [Engine::Window { threads: 1, divisor: 1 }, Engine::Reference] {
        let outcome = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| ());
        for link in &outcome.links[2..] {
            assert_eq!((link.sent_packets, link.queue_max_packets), (0, 0));
            assert_eq!((link.capacity_bps, link.utilization), (Some(5e6), Some(0.0)));
            assert_eq!((link.queue_mean_packets, link.queue_p95_packets), (Some(0.0), Some(0)));
        }
    }
}

/// A link on which nothing survives is a link: docs/design/contract.md gives no limit.
#[test]
fn an_error_rate_of_one_lets_nothing_pass() {
    for error in ["{ packet_error_rate = 1 }", "{ bit_error_rate = 1.0 }"] {
        let model = model(&[("links.a.error", error)]);
        let engine = Engine::Window { threads: 1, divisor: 1 };
        let outcome = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| ());
        let link = &outcome.links[0];
        assert!(link.sent_packets > 0, "{error}");
        assert_eq!(
            (link.errors + link.in_flight_end, outcome.groups[0][0].received_packets),
            (link.sent_packets, 0)
        );
    }
}

/// docs/protocols/xcp.md#what-headers-may-claim: a flow whose price makes its X a thousand times as long says so in each packet.
#[test]
fn headers_that_claim_too_much_are_counted_where_they_are_bounded() {
    let run = |law: &str, price: &str| {
        let settings = [
            ("run.warmup", "5 s"),
            ("run.duration", "10 s"),
            ("flows.one.size", "1500 B"),
            ("flows.two.law", &format!("{{ xcp = {{ price = {price} }} }}")),
            ("links.a.law", law),
            ("links.b.rate", "10 Mbit/s"),
        ];
        let outcome = sim::run(
            &model(&settings),
            Engine::Window { threads: 1, divisor: 1 },
            &AtomicBool::new(false),
            &mut |_| (),
        );
        assert_eq!(
            (outcome.links[2].bounded_packets, outcome.links[2].bounded_packets_total),
            (None, None),
            "b has no law"
        );
        let link = outcome.links.into_iter().next().expect("a");
        (link.bounded_packets, link.bounded_packets_total, link.arrived_packets)
    };
    let (bounded, total, arrived) = run("xcp", "1000");
    let (bounded, total) = (bounded.expect("it has XCP"), total.expect("it has XCP"));
    assert!(arrived > 3000 && 10 * bounded > 9 * arrived && bounded <= arrived, "{bounded} of {arrived}");
    assert!(total > bounded + 1000, "{total}, {bounded} of them while measuring");
    assert!(matches!(run("{ pxcp = {} }", "1000").0, Some(1..)));
    assert_eq!(run("{ xcp = { bound_headers = false } }", "1000").1, Some(0));
    let (bounded, total, _) = run("xcp", "1");
    assert!(
        bounded == Some(0) && total < Some(50),
        "an honest flow, once it has a window: {bounded:?}, {total:?}"
    );
    let (bounded, total, _) = run("vcp", "1");
    assert_eq!((bounded, total), (None, None));
}
