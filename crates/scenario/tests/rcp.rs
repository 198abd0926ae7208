//! RCP in scenarios: explained by its own words, captured as its own option, and as fast as the page says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_core::law::rcp::TcpOption;
use congestlab_scenario::capture::Capture;
use congestlab_scenario::explain::{self, Explanation, Flow};
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{Engine, run, run_tapped};
use congestlab_scenario::units::Time;
use congestlab_scenario::{Measure, Scenario};

/// Flows of RCP over a wide link and a narrow one.
fn scenario(count: u32, more: &str) -> Scenario {
    let text = format!(
        r#"
[run]
duration = "10 s"
[measure]
every = "100 ms"
[links.wide]
rate = "20 Mbit/s"
delay = "10 ms"
law = "rcp"
[links.narrow]
rate = "10 Mbit/s"
delay = "30 ms"
law = "rcp"
[flows.f]
law = "rcp"
count = {count}
path = ["wide", "narrow"]
segment = "1000 B"
start = {{ every = "20 ms" }}
{more}
"#
    );
    Scenario::parse("rcp.toml", &text, Path::new(""), &[], None).unwrap_or_else(|error| panic!("{error}"))
}

fn told(scenario: &Scenario, flow: &str, at: &str) -> Explanation {
    let flow = Flow::parse(scenario, flow).unwrap();
    let at: Time = at.parse().unwrap();
    let stop = AtomicBool::new(false);
    let told = explain::explain(scenario, None, flow, at, Some("narrow"), &stop, &mut |_| {});
    told.unwrap_or_else(|error| panic!("{error}")).expect("nobody stopped it")
}

/// What it says of a packet is what the link offered and the sender took.
#[test]
fn a_packet_is_told_in_the_words_of_the_law() {
    let explanation = told(&scenario(5, ""), "f[2]", "8 s");
    let [asks] = &explanation.packet.rules[..] else { panic!("{:?}", explanation.packet) };
    assert!(asks.text.contains("all that the path has") && asks.text.contains(" ms"), "{asks:?}");
    let [wide, narrow] = &explanation.hops[..] else { panic!("two links") };
    for hop in [wide, narrow] {
        assert_eq!((hop.law, hop.title.as_str(), hop.feedback.is_none()), (Some("rcp"), "RCP", true));
        assert!(hop.rules[0].text.contains("offers all flows R = "), "{hop:?}");
    }
    assert!(wide.rules[1].text.contains("lowers its rate"), "{wide:?}");
    assert!(narrow.rules[1].text.contains("lowers its rate"), "{narrow:?}");
    let window = explanation.window.expect("the run goes on");
    let rate = |text: &str| -> f64 {
        let (_, rest) = text.split_once("rate to ").or(text.split_once("R is ")).expect("a rate");
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let (given, taken) = (rate(&narrow.rules[1].text), rate(&window.rules[0].text));
    assert_eq!(given, taken, "what the last link left is what the sender paces at");
    // A fifth of 10 Mbit/s, in Mbit/s.
    assert!((1.96..2.04).contains(&taken), "{taken}");
    assert!(window.rules[1].text.contains("two segments"), "{window:?}");
}

/// A packet of another law is load, and XCP has nothing to do with it.
#[test]
fn packets_without_its_header_are_told_as_load() {
    let explanation = told(&scenario(1, "[flows.tcp]\nlaw = \"cubic\"\npath = [\"narrow\"]\n"), "tcp", "3 s");
    assert!(explanation.hops[0].rules[0].text.contains("no header of RCP"), "{:?}", explanation.hops);
}

/// TCP options of an IPv4 packet with TCP.
fn options(packet: &[u8]) -> &[u8] {
    assert_eq!((packet[0], packet[9]), (0x45, 6));
    &packet[40..20 + usize::from(packet[32] >> 4) * 4]
}

/// Every packet has its option: the header on SYN and data, the reply on SYN-ACK and ACK; what a link lowered is lower behind
/// it.
#[test]
fn captures_have_its_option() {
    let scenario = scenario(3, "");
    let (model, stop) = (scenario.model(&Measure::default()), AtomicBool::new(false));
    let folder = tempfile::tempdir().unwrap();
    let capture = Capture::create(folder.path(), &scenario, "test", 256, &stop).unwrap();
    let outcome = run_tapped(&model, Engine::Reference, &stop, &mut |_| {}, Some(&capture));
    capture.finish(outcome.complete).unwrap();
    let mut rates = BTreeMap::new();
    for link in ["wide", "narrow", "wide.reverse", "narrow.reverse"] {
        let bytes = std::fs::read(folder.path().join(format!("{link}.pcapng"))).unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut count, mut sum) = (0, 0u64, 0u64);
        while at < bytes.len() {
            if word(at) == 6 {
                let packet = &bytes[at + 28..at + 28 + word(at + 20)];
                let rate = match TcpOption::parse(options(packet)).expect("RCP's option is the first") {
                    TcpOption::Forward(header) if !link.ends_with("reverse") => header.rate,
                    TcpOption::Back(rate) if link.ends_with("reverse") => rate,
                    other => panic!("{other:?} on {link}"),
                };
                // All ones: the sender's wish, before any link.
                if rate != u32::MAX {
                    (count, sum) = (count + 1, sum + u64::from(rate));
                }
            }
            at += word(at + 4);
        }
        assert!(count > 1000, "{count} on {link}");
        rates.insert(link, sum as f64 / count as f64 * 64.0);
    }
    // Means in B/s: a third of 1.25 MB/s comes back.
    assert!((0.9..1.1).contains(&(rates["narrow"] / rates["wide.reverse"])), "{rates:?}");
    assert!(rates["narrow"] < rates["wide"], "{rates:?}");
}

fn outcome(scenario: &Scenario) -> Outcome {
    let model = scenario.model(&Measure { series: true, events: false });
    let run = |engine| run(&model, engine, &AtomicBool::new(false), &mut |_| {});
    let outcome = run(Engine::Window { threads: 1, divisor: 1 });
    assert_eq!(outcome.fingerprint, run(Engine::Reference).fingerprint);
    outcome
}

/// A flow that comes to a link with a settled rate begins at it: all that it sends is there 1.5 round trips and its own
/// transmission after its SYN, where slow start would take seven round trips.
#[test]
fn a_short_flow_begins_at_the_rate_of_its_link() {
    let more = "[flows.short]\nlaw = \"rcp\"\npath = [\"wide\", \"narrow\"]\nsize = \"100 kB\"\nsegment = \"1000 B\"\n\
                start = \"8 s\"\n";
    let found = outcome(&scenario(1, more));
    let flow = &found.groups[1][0];
    let completion = flow.completion_s.expect("it ends");
    // R is 10 Mbit/s for one flow: 80 ms for 100 kB, and 80 ms of round trip for SYN and SYN-ACK, 80 for data and ACK. While both
    // send there, a queue of so many bytes grows.
    assert!((0.2..0.35).contains(&completion), "{completion}");
}
