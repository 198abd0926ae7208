//! Values at the ends of what a scenario may say: both engines agree there, or the file is refused.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

fn outcome(text: &str, engine: Engine) -> Outcome {
    let scenario = Scenario::parse("extremes.toml", text, Path::new(""), &[], None)
        .unwrap_or_else(|error| panic!("{text}\n{error}"));
    sim::run(&scenario.model(&Measure::default()), engine, &AtomicBool::new(false), &mut |_| {})
}

/// Windows of 1 ps had no bit left in a sort key, so a run came to its end with 4 packet-hops.
#[test]
fn windows_of_a_picosecond_are_none() {
    let run = "run = { duration = \"2 s\" }\nlinks.l = { rate = \"8 Mbit/s\", delay = \"15 ms\" }\n\
               flows.a = { law = \"sack\", path = [\"l\"] }\n";
    let idle = "flows.idle = { law = { cbr = { rate = \"40 Tbit/s\" } }, count = 20000, segment = \"20 B\", \
                schedule = [[\"0 s\", 0]], path = [\"l\"] }\n";
    // A packet of 20 B takes 2 ps at 80 Tbit/s, and 1 ps at 160.
    let fast = |rate: u32| {
        format!(
            "run = {{ duration = \"50 ms\" }}\nlinks.l = {{ rate = \"8 Mbit/s\", delay = \"1 ms\" }}\n\
             links.fast = {{ rate = \"{rate} Tbit/s\", delay = \"0 s\" }}\n\
             flows.a = {{ law = \"sack\", path = [\"l\", \"fast\"], ack = \"20 B\" }}\n"
        )
    };
    for text in [format!("{run}{idle}"), fast(40), fast(80), fast(100)] {
        let reference = outcome(&text, Engine::Reference);
        assert!(reference.packet_hops > 100, "{text}");
        for (threads, divisor) in [(1, 1), (1, 64), (2, 1), (4, 2)] {
            let other = outcome(&text, Engine::Window { threads, divisor });
            assert_eq!(other.packet_hops, reference.packet_hops, "{threads} threads, {divisor}: {text}");
            assert_eq!(other.fingerprint, reference.fingerprint, "{threads} threads, {divisor}: {text}");
        }
    }
}

/// What a flow sends is bounded by what its path holds, whatever its law asks for: 1.8 million packets were dropped in 50 ms.
#[test]
fn no_law_sends_more_than_several_times_what_its_path_holds() {
    let run = "run = { duration = \"500 ms\" }\n";
    let link = |name: &str, more: &str| {
        format!("links.{name} = {{ rate = \"20 Mbit/s\", delay = \"10 ms\" {more} }}\n")
    };
    let rcp = ", law = \"rcp\"";
    for (text, is_warned) in [
        (format!("{}flows.f = {{ law = \"rcp\", path = [\"l.reverse\"] }}\n", link("l", rcp)), false),
        (
            format!(
                "{}{}flows.f = {{ law = \"rcp\", path = [\"l\"], switch = [{{ at = \"100 ms\", path = [\"m\"] }}] }}\n",
                link("l", rcp),
                link("m", "")
            ),
            true,
        ),
        (
            format!(
                "{}flows.f = {{ law = {{ dpcp = {{ interval = \"10 us\" }} }}, path = [\"l\"] }}\n",
                link("l", ", law = \"dpcp\"")
            ),
            true,
        ),
        (
            format!(
                "{}flows.f = {{ law = \"hpcc\", access = {{ rate = \"1 Tbit/s\" }}, path = [\"l\"] }}\n",
                link("l", ", law = \"hpcc\"")
            ),
            true,
        ),
        (
            format!(
                "{}flows.f = {{ law = \"sack\", count = 12, initial_window = 500000, path = [\"l\"] }}\n",
                link("l", "")
            ),
            true,
        ),
    ] {
        let text = format!("{run}{text}");
        let scenario = Scenario::parse("extremes.toml", &text, Path::new(""), &[], None).expect("valid");
        assert_eq!(scenario.warnings().iter().count() > 0, is_warned, "{text}");
        let outcome = outcome(&text, Engine::Window { threads: 1, divisor: 1 });
        // 20 Mbit/s carry 830 packets, and the path holds 70 of them and their ACKs.
        let sent = outcome.groups.iter().map(|flows| {
            let mut sent = 0;
            flows.each(|flow| sent += flow.sent_packets_total);
            sent
        });
        let sent: u64 = sent.sum();
        assert!(sent < 20_000, "{sent} packets\n{text}");
    }
}
