//! Laws without the network that they need: what a scenario is warned of, and that no such flow sends without bound.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::laws::{Giver, Network, Protocol};
use congestlab_scenario::memory::Estimate;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

const RUN: &str = "[run]\nduration = \"2 s\"\n";

fn read(text: &str) -> Scenario {
    Scenario::parse("test.toml", text, Path::new(""), &[], None).unwrap_or_else(|error| panic!("{error}"))
}

/// Warnings, each with its help.
fn warnings(text: &str) -> Vec<(String, String)> {
    let all = read(text);
    all.warnings().iter().map(|found| (found.message().to_owned(), found.help().to_owned())).collect()
}

/// Links in a chain, each with a rate in Mbit/s and more keys, and a group of flows of a law that crosses all of them.
fn chain(links: &[(u32, &str)], law: &str, more: &str) -> String {
    let mut text = RUN.to_owned();
    let mut path = Vec::new();
    for ((rate, keys), name) in links.iter().zip(["a", "b", "c"]) {
        let _ = write!(text, "[links.{name}]\nrate = \"{rate} Mbit/s\"\ndelay = \"5 ms\"\n{keys}\n");
        path.push(format!("{name:?}"));
    }
    let _ = write!(text, "[flows.f]\nlaw = \"{law}\"\ncount = 3\npath = [{}]\n{more}\n", path.join(", "));
    text
}

/// The laws of senders, each with the network that it needs.
fn laws() -> Vec<(&'static str, Option<Network>)> {
    let senders = Protocol::all().filter_map(|protocol| Some((protocol.name, protocol.sender.as_ref()?)));
    senders.map(|(name, law)| (name, law.needs().network)).collect()
}

/// Text that the help advises to write.
fn remedy(help: &str) -> &str {
    let written = help.split("; write ").nth(1).unwrap_or_else(|| panic!("{help}"));
    written.rsplit_once(" in [").unwrap_or_else(|| panic!("{help}")).0
}

#[test]
fn a_law_on_plain_links_is_warned_of_once_and_the_remedy_cures_it() {
    let mut needy = 0;
    for (law, network) in laws() {
        let found = warnings(&chain(&[(10, "")], law, ""));
        if network.is_none() {
            assert_eq!(found, [], "{law} needs nothing");
            continue;
        }
        needy += 1;
        let [(message, help)] = &found[..] else { panic!("{law}: {found:?}") };
        assert!(message.starts_with(&format!("`flows.f.law` is {law}, but `links.a` ")), "{message}");
        assert!(help.ends_with(" in [links.a]"), "{help}");
        assert_eq!(warnings(&chain(&[(10, remedy(help))], law, "")), [], "{law} with {}", remedy(help));
    }
    assert_eq!(
        needy, 18,
        "XCP's five, MPCP's four, RCP, HPCC's two, ABC, SCONE, DCTCP, Prague, TCP-Peach's two"
    );
}

/// The other direction has the law of the link where a flow sends data over it, unless `reverse` says that it has none.
#[test]
fn the_reverse_direction_lacks_a_law_only_if_it_is_written() {
    for (law, network) in laws() {
        let Some(Network { giver: Giver::Law(_), .. }) = network else { continue };
        let own = match law {
            "xcp-r" | "xcp-r-v0" => "xcp",
            law => law,
        };
        let text = chain(&[(10, &format!("law = \"{own}\""))], law, "");
        assert_eq!(warnings(&text), [], "{law}");
        let text = text + &format!("[flows.up]\nlaw = \"{law}\"\npath = [\"a.reverse\"]\n");
        assert_eq!(warnings(&text), [], "{law}");
        let bare = text.clone() + "[links.a.reverse]\nlaw = \"none\"\n";
        let [(message, help)] = &warnings(&bare)[..] else { panic!("{law}") };
        let expected = format!("`flows.up.law` is {law}, but `links.a.reverse` runs no law that answers it");
        assert_eq!(*message, expected);
        assert!(help.ends_with(&format!("write law = \"{own}\" in [links.a.reverse]")), "{help}");
        assert_eq!(warnings(&(text + &format!("[links.a.reverse]\nlaw = \"{own}\"\n"))), [], "{law}");
    }
}

#[test]
fn the_slowest_link_of_a_path_must_answer() {
    let own = "law = \"rcp\"";
    assert_eq!(warnings(&chain(&[(20, ""), (10, own), (20, "")], "rcp", "")), [], "the bottleneck answers");
    let deaf = chain(&[(20, own), (10, ""), (20, "")], "rcp", "");
    let found = warnings(&deaf);
    assert_eq!(found.len(), 1, "{found:?}");
    let message =
        "`flows.f.law` is rcp, but `links.b`, the slowest link of its path, runs no law that answers it";
    assert_eq!(found[0].0, message);
    assert!(found[0].1.ends_with("write law = \"rcp\" in [links.b]"), "{found:?}");
    // Where the hosts are slower, no queue of a link is theirs.
    let slow_hosts = chain(&[(20, own), (10, "")], "rcp", "access = { rate = \"3 Mbit/s\" }");
    assert_eq!(warnings(&slow_hosts), []);
    // ABC and SCONE have CUBIC's window for such links.
    for law in ["abc", "scone"] {
        assert_eq!(warnings(&chain(&[(20, &format!("law = \"{law}\"")), (10, "")], law, "")), []);
    }
    let none = warnings(&chain(&[(20, ""), (10, "law = \"xcp\"")], "rcp", ""));
    let message =
        "`flows.f.law` is rcp, but no link of its path runs a law that answers it: `links.a`, `links.b`";
    assert_eq!(none[0].0, message);
    let other = warnings(&chain(&[(10, "law = \"xcp\"")], "rcp", ""));
    assert_eq!(other[0].0, "`flows.f.law` is rcp, but `links.a` runs xcp, which does not answer it");
}

/// A code of ABC or VCP is no code of RFC 3168, and the other way round.
#[test]
fn two_readings_of_the_ecn_bits_on_one_link_are_warned_of() {
    for (link, flow, more) in [("vcp", "sack", "ecn = true"), ("abc", "prague", ""), ("dpcp", "abc", "")] {
        let text = chain(&[(10, &format!("law = \"{link}\""))], link, "")
            + &format!("[flows.other]\nlaw = \"{flow}\"\npath = [\"a\"]\n{more}\n");
        let of_other = |message: &&String| message.contains("reads the ECN bits in another way");
        let found = warnings(&text);
        let messages: Vec<&String> = found.iter().map(|(message, _)| message).filter(of_other).collect();
        let [message] = messages[..] else { panic!("{link}, {flow}: {found:?}") };
        assert!(
            message.contains("flows.other") && message.contains(&format!("`links.a` runs {link}")),
            "{message}"
        );
    }
}

/// A sweep warns of the points that run, each thing once, and not of values that the file has and no point.
#[test]
fn a_sweep_warns_once_and_of_points_alone() {
    let text = chain(&[(10, "law = \"rcp\"")], "rcp", "")
        + "[sweep.grid]\n\"flows.f.count\" = [1, 2]\n\"run.seed\" = [1, 2]\n\"links.a.law\" = [\"rcp\", \"none\"]\n";
    let told = |scenario: &Scenario| -> Vec<String> {
        let found = scenario.check_sweep().unwrap_or_else(|error| panic!("{error}"));
        found.iter().map(|found| found.message().to_owned()).collect()
    };
    assert_eq!(told(&read(&text)), ["`flows.f.law` is rcp, but `links.a` runs no law that answers it"]);
    let none_runs = chain(&[(10, "")], "rcp", "") + "[sweep.grid]\n\"links.a.law\" = [\"rcp\"]\n";
    let scenario = read(&none_runs);
    assert_eq!((scenario.warnings().iter().count(), told(&scenario)), (1, Vec::new()));
}

/// RCP's wish comes back as it left where no link answers: 6.7 million packets in 0.1 s before, and no end.
#[test]
fn no_law_sends_more_than_its_scenario_is_estimated_for() {
    for (law, network) in laws() {
        let remedy = match network {
            Some(_) => remedy(&warnings(&chain(&[(10, "")], law, ""))[0].1).to_owned(),
            None => String::new(),
        };
        // One that keeps its window on loss has nothing else that limits it.
        let keeping = match law {
            "xcp" | "vcp" | "mpcp" => format!("{{ {law} = {{ loss = \"maintain\" }} }}"),
            _ => format!("{law:?}"),
        };
        for (keys, written) in
            [("", format!("{law:?}")), (remedy.as_str(), format!("{law:?}")), ("", keeping)]
        {
            let text = chain(&[(10, keys)], law, "")
                .replace(&format!("{law:?}\ncount"), &format!("{written}\ncount"));
            let scenario = read(&text);
            let estimate = scenario.estimate(&Measure::default());
            let model = scenario.model(&Measure::default());
            let stop = AtomicBool::new(false);
            let mut packets = 0;
            let engine = Engine::Window { threads: 1, divisor: 1 };
            let outcome = sim::run(&model, engine, &stop, &mut |come| {
                packets = come.packets;
                if packets > 1_000_000 {
                    stop.store(true, std::sync::atomic::Ordering::Relaxed);
                }
            });
            assert!(outcome.complete, "{law} with {keys:?}: {packets} packets on 10 Mbit/s in 2 s");
            let hops = outcome.packet_hops;
            assert!(
                hops <= estimate.hops,
                "{law} with {keys:?}: {hops} packet-hops, {} estimated",
                estimate.hops
            );
            assert_eq!(estimate.exceeded(packets, None, None), None, "{law} with {keys:?}");
        }
    }
}

/// A link's law that does not answer a flow does not bound what the estimate expects of it either.
#[test]
fn a_law_of_another_family_is_no_answer_in_an_estimate() {
    let hops = |law: &str, link: &str| {
        let text = chain(&[(10, &format!("law = \"{link}\""))], law, "access = { rate = \"100 Mbit/s\" }");
        read(&text).estimate(&Measure::default()).hops
    };
    for (law, own, other) in [("rcp", "rcp", "vcp"), ("xcp", "xcp", "rcp"), ("hpcc", "hpcc", "xcp")] {
        let (answered, deaf, none) = (hops(law, own), hops(law, other), {
            let text = chain(&[(10, "")], law, "access = { rate = \"100 Mbit/s\" }");
            read(&text).estimate(&Measure::default()).hops
        });
        println!("{law}: {answered}, {deaf}, {none}");
        assert_eq!(deaf, none, "{law}: a link of {other} is as good as none");
        // RCP asks for no more than its first rate where nobody answers.
        assert!(law == "rcp" || 20 * answered < deaf, "{law}: {answered} and {deaf}");
    }
}

#[test]
fn an_estimate_is_exceeded_by_several_times_of_it_and_some_seconds_of_work() {
    let estimate = read(&chain(&[(10, "")], "sack", "")).estimate(&Measure::default());
    assert!((1_000..100_000).contains(&estimate.hops), "{estimate:?}");
    assert_eq!(estimate.exceeded(20_000_000, Some(500 << 20), Some(1 << 30)), None);
    let much = estimate.exceeded(20_000_001, None, None).expect("it is much");
    assert!(much.starts_with("20 M packets have moved, and "), "{much}");
    let much = estimate.exceeded(0, Some(2 << 30), None).expect("it is much");
    assert!(much.starts_with("it has taken 2.1 GB of memory, and "), "{much}");
    let short = estimate.exceeded(0, Some(100 << 20), Some(100 << 20)).expect("the machine has no more");
    assert!(short.ends_with("; 105 MB are left"), "{short}");
    assert_eq!(estimate.exceeded(0, Some(estimate.bytes), Some(0)), None, "it takes what was said");
    let large = Estimate { hops: 50_000_000, bytes: 0 };
    assert_eq!(large.exceeded(799_000_000, None, None), None);
    assert!(large.exceeded(801_000_000, None, None).is_some());
}
