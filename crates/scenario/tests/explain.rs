//! Explanations hold together: parts sum up to the header, and the law's numbers are the paper's.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::explain::{self, ExplainError, Explanation, Flow};
use congestlab_scenario::folder::RunFolder;
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::units::Time;
use congestlab_scenario::{Measure, Scenario, store};

/// Two XCP links; the second is the bottleneck for half of the time's flows.
const SCENARIO: &str = r#"
[run]
duration = "10 s"
seed = 3
[links.first]
rate = "20 Mbit/s"
delay = "10 ms"
queue = "100 packets"
law = "xcp"
[links.second]
rate = "10 Mbit/s"
delay = "15 ms"
queue = "100 packets"
law = "xcp"
[flows.long]
law = "xcp"
count = 4
path = ["first", "second"]
start = { every = "500 ms" }
[flows.short]
law = "xcp"
path = ["first"]
start = "2 s"
[flows.tcp]
law = "cubic"
path = ["second"]
start = "4 s"
[flows.datagrams]
law = { cbr = { rate = "1 Mbit/s" } }
path = ["first"]
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("x.toml", text, Path::new(""), &[], None).unwrap_or_else(|error| panic!("{error}"))
}

fn ask(scenario: &Scenario, flow: &str, at: &str, link: Option<&str>) -> Result<Explanation, ExplainError> {
    let flow = Flow::parse(scenario, flow)?;
    let at: Time = at.parse().unwrap();
    let stop = AtomicBool::new(false);
    let explanation = explain::explain(scenario, None, flow, at, link, &stop, &mut |_| {})?;
    Ok(explanation.expect("nobody stopped it"))
}

fn told(scenario: &Scenario, flow: &str, at: &str) -> Explanation {
    ask(scenario, flow, at, None).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(scenario: &Scenario, flow: &str, at: &str, link: Option<&str>) -> (String, String) {
    match ask(scenario, flow, at, link) {
        Err(ExplainError::Refused(refused)) => (refused.message, refused.help),
        other => panic!("{other:?}"),
    }
}

/// K02 eq. 1 and 2 in floats, from what is shown, are what the law computed: to 1 B/s, the step of
/// y and of F, times the gains.
#[test]
fn the_aggregate_is_the_equation_of_the_numbers_shown() {
    let scenario = scenario(SCENARIO);
    let mut links = 0;
    for at in ["700 ms", "1.7s", "2.3 s", "3 s", "4.5 s", "6 s", "9 s"] {
        for flow in ["long[0]", "long/1"] {
            for hop in told(&scenario, flow, at).hops {
                let of = hop.feedback.expect("both links run XCP");
                let drain = of.beta * of.persistent_queue_bytes / of.mean_rtt_ms * 1e3;
                let aggregate = of.alpha * (of.capacity - of.input) - drain;
                // d is shown in whole ns, rounded up.
                let step = 2.0 + drain * 1e-6;
                assert!((aggregate - of.aggregate).abs() <= step, "{aggregate} in {of:?}");
                let shuffled = (of.gamma * of.input - of.aggregate.abs()).max(0.0);
                assert!((shuffled - of.shuffled).abs() <= 1e-6, "{of:?}");
                assert!(of.spare == of.capacity - of.input);
                for [all, left] in [of.grants, of.cuts] {
                    assert!(left <= all + 2.0, "{of:?}");
                }
                let [before, began, ends] = of.interval_s.map(Option::unwrap);
                assert!(before < began && began <= of.at_s && of.at_s <= ends, "{of:?}");
                links += 1;
            }
        }
    }
    assert_eq!(links, 28);
}

#[test]
fn the_parts_of_a_share_sum_up_to_what_the_header_says() {
    // The tighter link last, and first.
    let swapped = SCENARIO.replace("\"20 Mbit/s\"", "x").replace("\"10 Mbit/s\"", "\"20 Mbit/s\"");
    let scenarios = [scenario(SCENARIO), scenario(&swapped.replace("= x", "= \"10 Mbit/s\""))];
    let (mut lowered, mut kept, mut whole) = (0, 0, 0);
    for (scenario, tenths) in scenarios.iter().flat_map(|s| (12..40).map(move |tenths| (s, tenths))) {
        let explanation = told(scenario, "long[2]", &format!("{} ms", tenths * 100));
        let header = explanation.packet.header.expect("an XCP flow");
        let mut delta = header.delta;
        let mut decided = None;
        for hop in &explanation.hops {
            let of = hop.feedback.as_ref().expect("both links run XCP");
            assert_eq!(of.asked, delta, "the header changes at links alone");
            assert!((of.offer - (of.grant - of.cut)).abs() < 1e-9);
            if of.is_lowered {
                assert_eq!(f64::from(of.given), (of.offer + of.carry).floor(), "{of:?}");
                decided = Some(hop.link.clone());
                lowered += 1;
            } else {
                assert_eq!(of.given, of.asked);
                assert!(f64::from(of.asked) <= of.offer);
                kept += 1;
            }
            delta = of.given;
        }
        assert_eq!(explanation.hops.len(), 2);
        assert_eq!(explanation.decided_by, decided);
        let ack = explanation.ack.expect("nothing is lost here");
        assert_eq!(ack.sum_of, [delta]);
        assert_eq!(ack.feedback, delta);
        let window = explanation.window.expect("the run goes on");
        let change = window.after_bytes as f64 - window.before_bytes as f64;
        let expected = window.feedback_bytes.expect("an XCP flow");
        assert!((expected - f64::from(delta) * window.srtt_ms / 1e3).abs() < 0.01 * expected.abs() + 0.01);
        // Windows are shown in whole bytes. What more than feedback moves one is a rule of its own.
        let is_all = (change - expected).abs() <= 1.0;
        assert_eq!(window.rules.len(), if is_all { 1 } else { 2 }, "{window:?}");
        whole += usize::from(is_all);
        let trip = window.at_s - explanation.packet.sent_s;
        assert!((0.05..0.2).contains(&trip), "{trip}");
    }
    assert!(lowered > 20 && kept > 10 && whole > 20, "{lowered} {kept} {whole}");
}

#[test]
fn the_packet_is_the_first_to_leave_the_link_from_then_on() {
    let scenario = scenario(SCENARIO);
    let first = told(&scenario, "long[0]", "3.5 s");
    assert_eq!(first.at_link, "first");
    let departed = first.hops[0].departed_s.unwrap();
    assert!((3.5..3.55).contains(&departed), "{departed}");
    let again = told(&scenario, "long[0]", &format!("{} ns", (departed * 1e9) as u64));
    assert_eq!(again.packet.segment, first.packet.segment);
    let next = told(&scenario, "long[0]", &format!("{} ns", (departed * 1e9) as u64 + 2));
    assert!(next.packet.segment > first.packet.segment);
    let second = ask(&scenario, "long[0]", "3.5 s", Some("second")).unwrap();
    assert!(second.hops[1].departed_s.unwrap() >= 3.5 && second.hops[0].departed_s.unwrap() <= departed);
}

#[test]
fn delayed_acks_return_the_sum() {
    let text = SCENARIO
        .replace("path = [\"first\", \"second\"]", "path = [\"first\", \"second\"]\ndelayed_ack = true");
    let scenario = scenario(&text);
    let mut pairs = 0;
    // Before TCP fills the queue and packets come one by one.
    for at in (3000..3100).step_by(20) {
        let ack = told(&scenario, "long[1]", &format!("{at} ms")).ack.unwrap();
        pairs += usize::from(ack.sum_of.len() == 2);
        assert!(matches!(ack.sum_of.len(), 1 | 2), "{at} ms: {:?}", ack.sum_of);
        assert_eq!(ack.sum_of.iter().sum::<i32>(), ack.feedback, "{at} ms");
    }
    assert!(pairs > 2, "{pairs} of 5 answer two packets");
}

#[test]
fn a_flow_without_a_congestion_header_is_told_nothing() {
    let scenario = scenario(SCENARIO);
    let explanation = told(&scenario, "tcp", "4.05 s");
    assert!(explanation.packet.header.is_none() && explanation.hops[0].feedback.is_none());
    let window = explanation.window.unwrap();
    assert!(window.rules[0].text.contains("slow start"), "{window:?}");
    assert_eq!(window.after_bytes, window.before_bytes + u64::from(window.segment));
    assert_eq!(explanation.law, "cubic");

    let explanation = told(&scenario, "datagrams", "4 s");
    assert_eq!((explanation.law, explanation.ack.is_none()), ("none", true));
    assert!(explanation.received_s.is_some());
}

/// VCP's family: where in its chain a packet is, and what links make of its code, which is what the ACK returns.
#[test]
fn codes_are_told_as_links_change_them() {
    let mut raised = 0;
    for (law, n) in [("vcp", 1), ("dpcp", 2), ("tpcp", 3)] {
        let link = |name: &str, mbit: u32| {
            format!("[links.{name}]\nrate = \"{mbit} Mbit/s\"\ndelay = \"10 ms\"\nlaw = \"{law}\"\n")
        };
        let text = format!(
            "[run]\nduration = \"12 s\"\n{}{}[links.legacy]\nrate = \"9 Mbit/s\"\ndelay = \"1 ms\"\n\
             [flows.f]\nlaw = \"{law}\"\npath = [\"a\", \"legacy\", \"b\"]\n\
             [flows.other]\nlaw = \"cubic\"\nawnd = \"2 packets\"\npath = [\"a\"]\n",
            link("a", 5),
            link("b", 3)
        );
        let scenario = scenario(&text);
        let mut places = [0; 3];
        for ms in (8000..10_000).step_by(37) {
            let explanation = told(&scenario, "f", &format!("{ms} ms"));
            assert!(explanation.packet.header.is_none());
            places[usize::from(explanation.packet.place.unwrap()) - 1] += 1;
            let [a, legacy, b] = &explanation.hops[..] else { panic!("{explanation:?}") };
            assert_eq!((a.law, legacy.law, legacy.codes), (Some(law), None, None));
            let ([sent, between], [came, left]) = (a.codes.unwrap(), b.codes.unwrap());
            assert!(sent == 1 && between == came && left >= 1);
            raised += u32::from(left > came);
        }
        assert!(places[..n].iter().all(|&count| count > 5) && places[n..].iter().all(|&count| count == 0));
        let explanation = told(&scenario, "other", "9 s");
        assert!(explanation.packet.place.is_none() && explanation.hops[0].codes.is_none());
    }
    assert!(raised > 50, "{raised}");
}

/// A loss is no word of the load: what it does, or with `loss = "maintain"` does not, is told as that. A flow that gives up its
/// chains halves like VCP's: this one never does.
#[test]
fn losses_of_coded_flows_are_not_told_as_load() {
    for (loss, strikes) in [("tcp", ""), ("maintain", ", strikes = 1000")] {
        let text = format!(
            "[run]\nduration = \"8 s\"\n[links.l]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nlaw = \"dpcp\"\n\
             error = {{ packet_error_rate = 0.1 }}\n[flows.f]\nlaw = {{ dpcp = {{ loss = \"{loss}\"{strikes} }} }}\npath = [\"l\"]\n"
        );
        let scenario = scenario(&text);
        let (mut found, mut repaired, mut by_load) = (0, 0, 0);
        for ms in (3000..7000).step_by(17) {
            let Some(window) = told(&scenario, "f", &format!("{ms} ms")).window else { continue };
            let says = |part: &str| window.rules.iter().any(|rule| rule.text.contains(part));
            let has_fallen = window.after_bytes < window.before_bytes;
            found += u32::from(says("a loss is found"));
            repaired += u32::from(says("a loss is being repaired"));
            by_load += u32::from(says("the load is"));
            if loss == "tcp" {
                assert!(!(says("a loss is") && says("the load is")), "{window:?}");
                assert!(!says("being repaired") || window.after_bytes == window.before_bytes, "{window:?}");
            } else if says("a loss is found") {
                assert!(says("does not count") && (!has_fallen || says("so W is cut once")), "{window:?}");
            }
        }
        assert!(
            found > 0 && by_load > 0 && (repaired > 0) == (loss == "tcp"),
            "{found} {repaired} {by_load}"
        );
    }
}

/// CUBIC alone on a short queue: after its first loss it follows the curve, and loses again.
#[test]
fn cubic_is_explained_by_its_curve_and_its_losses() {
    let text = r#"
[run]
duration = "30 s"
[links.l]
rate = "10 Mbit/s"
delay = "20 ms"
queue = "30 packets"
[flows.f]
law = "cubic"
path = ["l"]
"#;
    let scenario = scenario(text);
    let mut told_of = (0, 0);
    for at in 2..29 {
        let explanation = told(&scenario, "f", &format!("{at} s"));
        if let Some(window) = &explanation.window {
            assert!(!window.rules.is_empty());
            told_of.0 += usize::from(window.rules[0].text.contains("W(t)"));
        }
        for trouble in &explanation.trouble {
            assert_eq!((trouble.link.as_str(), trouble.what.as_str()), ("l", "drop: queue-full"));
            told_of.1 += 1;
        }
    }
    assert!(told_of.0 > 5 && told_of.1 > 0, "{told_of:?}");
}

#[test]
fn a_lost_packet_takes_its_feedback_along() {
    let text =
        SCENARIO.replace("rate = \"10 Mbit/s\"", "rate = \"10 Mbit/s\"\nerror = { packet_error_rate = 0.3 }");
    let scenario = scenario(&text);
    let lost = (10..60)
        .map(|tenths| told(&scenario, "long[0]", &format!("{} ms", tenths * 100)))
        .find(|explanation| explanation.hops.last().is_some_and(|hop| hop.lost.is_some()))
        .expect("three in ten are lost");
    assert_eq!(lost.hops[1].lost.as_deref(), Some("error"));
    assert!(lost.hops[1].feedback.is_some() && lost.ack.is_none() && lost.window.is_none());
    let repair = lost.repair.unwrap();
    assert!(repair.repeated_s.unwrap() > lost.packet.sent_s, "{repair:?}");
}

#[test]
fn a_lost_retransmission_is_repaired_by_the_timer() {
    let scenario = scenario(
        "[run]\nduration = \"10 s\"\n[links.a]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nlaw = \"xcp\"\n\
         error = { packet_error_rate = 0.1 }\n[flows.x]\nlaw = \"xcp\"\npath = [\"a\"]\n",
    );
    let mut found = 0;
    for tenths in 5..80 {
        let Ok(explanation) = ask(&scenario, "x", &format!("{} ms", tenths * 100), None) else { continue };
        let Some(repair) = explanation.repair.filter(|_| explanation.packet.is_retransmission) else {
            continue;
        };
        // RFC 6675 repairs a segment once per recovery: after that only the timer does.
        if repair.repeated_s.is_some() {
            assert!(repair.is_timeout, "{repair:?}");
            assert_eq!(repair.window_bytes.map(|[_, after]| after), Some(1500), "{repair:?}");
            found += 1;
        }
    }
    assert!(found > 0);
}

#[test]
fn the_first_packet_gets_nothing_before_the_first_interval_ends() {
    let text = SCENARIO
        .replace("delay = \"10 ms\"", "delay = \"0 ms\"")
        .replace("delay = \"15 ms\"", "delay = \"0 ms\"");
    let explanation = told(&scenario(&text), "long[0]", "0 s");
    let header = explanation.packet.header.unwrap();
    assert_eq!((header.rtt_ms, header.delta), (0.0, 0));
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    let scenario = scenario(SCENARIO);
    let says = |(message, help): (String, String), one: &str, other: &str| {
        assert!(message.contains(one), "{message}");
        assert!(help.contains(other), "{help}");
    };
    says(refused(&scenario, "lnog[0]", "1 s", None), "no flow `lnog[0]`", "did you mean `long`?");
    says(
        refused(&scenario, "x", "1 s", None),
        "no flow `x`",
        "long[0] to long[3], short[0], tcp[0], datagrams[0]",
    );
    says(refused(&scenario, "long", "1 s", None), "`long` is 4 flows", "long[0] to long[3]");
    for index in ["long[4]", "long[-1]", "long[x]", "long/4", "long[]"] {
        says(refused(&scenario, index, "1 s", None), "no flow `long", "long[0] to long[3]");
    }
    says(
        refused(&scenario, "short", "1 s", None),
        "short[0] has sent nothing at 1 s",
        "leaves the sender at 2 s",
    );
    says(refused(&scenario, "short", "11 s", None), "nothing happens at 11 s", "the run ends at 10 s");
    says(
        refused(&scenario, "short", "3 s", Some("secnd")),
        "does not pass a link `secnd`",
        "its data passes first",
    );
    says(refused(&scenario, "long/0", "3 s", Some("secnd")), "`secnd`", "did you mean `second`?");
    let stopped = SCENARIO.replace("start = \"2 s\"", "start = \"2 s\"\nstop = \"3 s\"");
    let scenario = self::scenario(&stopped);
    says(
        refused(&scenario, "short", "5 s", None),
        "no packet of short[0] leaves first at 5 s",
        "sends from 2 s on",
    );
}

#[test]
fn a_folder_whose_records_are_not_of_its_scenario_is_refused() {
    let one = scenario(SCENARIO);
    let model = one.model(&Measure { series: true, events: true });
    let engine = Engine::Window { threads: 1, divisor: 1 };
    let outcome = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| ());
    let result = RunResult::new(&one, &outcome, Meta { version: "v1".into(), ..Meta::default() });
    let out = tempfile::tempdir().unwrap();
    let ask = |scenario: &Scenario| {
        let path = store::write_run(out.path(), "v1", scenario, &outcome, &result).unwrap();
        let folder = RunFolder::open(&path).unwrap();
        let flow = Flow::parse(folder.scenario(), "long[0]").unwrap();
        let (at, stop) = ("5 s".parse().unwrap(), AtomicBool::new(false));
        explain::explain(folder.scenario(), Some(&folder), flow, at, None, &stop, &mut |_| {})
    };
    let explanation = ask(&one).unwrap().unwrap();
    assert_eq!(explanation.hops.len(), 2);

    assert!(SCENARIO.contains("seed = 3"));
    let other = scenario(&SCENARIO.replace("seed = 3", "seed = 4"));
    let error = ask(&other).expect_err("another seed").to_string();
    assert!(error.contains("does not give what it recorded: control-interval at"), "{error}");
}

const XCP_R: &str = r#"
[run]
duration = "10 s"
[links.l]
rate = "8 Mbit/s"
delay = "20 ms"
queue = "40 packets"
packet_size = "1000 B"
law = "xcp"
[links.l.reverse]
rate = "8 Mbit/s"
[flows.f]
law = "xcp-r"
path = ["l"]
segment = "1000 B"
"#;

fn rules_of(text: &str, times: impl Iterator<Item = u64>) -> Vec<String> {
    let scenario = scenario(text);
    let windows = times.filter_map(|ms| ask(&scenario, "f", &format!("{ms} ms"), None).ok()?.window);
    windows.flat_map(|window| window.rules.into_iter().map(|rule| rule.text)).collect()
}

/// Each of the two is told by its own rules: what the receiver keeps, what it makes of one packet, and
/// ACKs that are not believed.
#[test]
fn xcp_r_is_explained_by_who_sets_its_window() {
    let all = |text: &str| rules_of(text, (1000..3000).step_by(50));
    let plain = all(XCP_R);
    assert!(plain.iter().all(|rule| rule.starts_with("W becomes what the receiver keeps")), "{plain:?}");
    let first = all(&XCP_R.replace("\"xcp-r\"", "\"xcp-r-v0\""));
    assert!(first.len() >= 40 && first.iter().any(|rule| rule.contains("H_feedback H_cwnd + H_cwnd")));
    assert!(!first.iter().any(|rule| rule.contains("keeps")), "{first:?}");

    let reordered = XCP_R.replace(
        "[links.l.reverse]",
        "[links.l.reverse]\nreorder = { probability = 0.4, delay = \"15 ms\" }",
    );
    let late = |text: &str| all(text).iter().filter(|rule| rule.contains("overtook")).count();
    assert!(late(&reordered) > 5, "{}", late(&reordered));
    let deaf = reordered.replace("\"xcp-r\"", "{ xcp-r = { epochs = false } }");
    assert_eq!(late(&deaf), 0, "without epochs every ACK is believed");
}

/// The header that comes to a link's law is what the virtual router before it left, and the last one that lowered it is named: the
/// virtual router at the end of a cloud, of a router or of a receiver.
#[test]
fn virtual_routers_are_explained() {
    let path = |middle: &str, last: &str| {
        format!(
            "[run]\nduration = \"12 s\"\n\
             [links.a]\nrate = \"80 Mbit/s\"\ndelay = \"10 ms\"\nlaw = {{ xcp = {{ interoperable = true }} }}\n\
             [links.b]\nrate = \"30 Mbit/s\"\ndelay = \"10 ms\"\n{middle}\n\
             [links.c]\nrate = \"80 Mbit/s\"\ndelay = \"10 ms\"\n{last}\n\
             [flows.f]\nlaw = {{ xcp = {{ interoperable = true }} }}\npath = [\"a\", \"b\", \"c\"]\n\
             access = {{ rate = \"100 Mbit/s\", delay = \"10 ms\" }}\n"
        )
    };
    let router = scenario(&path("", "law = { xcp = { interoperable = true } }"));
    let at_receiver = scenario(&path("", ""));
    let mut lowered = [0, 0];
    for tenth in 40..60 {
        let at = format!("{}.{} s", tenth / 10, tenth % 10);
        let explanation = told(&router, "f", &at);
        let [first, cloud, last] = &explanation.hops[..] else { panic!("{explanation:?}") };
        assert!(first.crossed.is_none() && cloud.crossed.is_none());
        let crossed = last.crossed.as_ref().expect("the cloud is before it");
        assert_eq!((crossed.upstream.as_str(), crossed.state), ("172.16.0.1", "valid"));
        assert_eq!(crossed.asked, first.feedback.as_ref().expect("an XCP link").given);
        assert_eq!(crossed.given, last.feedback.as_ref().expect("an XCP link").asked);
        let own = crossed.feedback.as_ref().expect("an estimate");
        if own.is_lowered {
            assert!((f64::from(crossed.given) - own.offer - own.carry).abs() < 1.0, "{crossed:?}");
        }
        if crossed.given < crossed.asked && last.feedback.as_ref().is_some_and(|link| !link.is_lowered) {
            lowered[0] += 1;
            assert_eq!(explanation.decided_by.as_deref(), Some("the virtual router before c"));
            assert!(explanation.to_string().contains("The virtual router before c decided"), "{explanation}");
        }
        let explanation = told(&at_receiver, "f", &at);
        let crossed = explanation.crossed.as_ref().expect("the cloud is before the receiver");
        assert_eq!(explanation.ack.as_ref().expect("acknowledged").sum_of.last(), Some(&crossed.given));
        if crossed.given < crossed.asked {
            lowered[1] += 1;
            assert_eq!(explanation.decided_by.as_deref(), Some("the receiver's virtual router"));
        }
    }
    assert!(lowered.iter().all(|&count| count > 0), "{lowered:?}");
}

/// What a policer lets count of X is said before the law's share.
#[test]
fn what_a_policer_lets_count_is_explained() {
    let text =
        SCENARIO.replace("law = \"xcp\"\n[links.second]", "law = \"xcp\"\npolice = 64\n[links.second]");
    let text =
        text.replace("[flows.short]\nlaw = \"xcp\"", "[flows.short]\nlaw = { xcp = { price = 1000 } }");
    let scenario = scenario(&text);
    let policed = (40..80).filter_map(|tenth| {
        let explanation = told(&scenario, "short", &format!("{}.{} s", tenth / 10, tenth % 10));
        let x = explanation.hops[0].policed_x_ms?;
        assert!(x < explanation.packet.header.as_ref().expect("it has one").x_ms);
        assert!(explanation.to_string().contains("The policer of the link lets X count as"), "{explanation}");
        Some(x)
    });
    assert!(policed.count() > 0);
}
