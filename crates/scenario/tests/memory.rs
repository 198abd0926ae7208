//! The estimate of memory against what runs allocate: over random scenarios, and at the ends of what a file may say.
//!
//! The peak is that of the heap from reading the file to the text of the results, so it is the same on every machine. What
//! the process itself takes ([`PROCESS`]) is no part of the heap and is added to it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::laws::Protocol;
use congestlab_scenario::memory::PROCESS;
use congestlab_scenario::net::random::Stream;
use congestlab_scenario::result::{Meta, RunResult};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MB: f64 = 1e6;
/// Networks that are drawn.
const DRAWN: u64 = 45;

/// Returns what is estimated and what is taken, bytes.
fn both(text: &str, measure: &Measure) -> (u64, u64) {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let scenario = Scenario::parse("memory.toml", text, Path::new(""), &[], None)
        .unwrap_or_else(|error| panic!("{text}\n{error}"));
    let estimate = scenario.estimate(measure);
    let model = scenario.model(measure);
    let engine = Engine::Window { threads: 1, divisor: 1 };
    let outcome = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| {});
    let result = RunResult::new(&scenario, &outcome, Meta::default());
    let json = serde_json::to_string_pretty(&result).expect("no odd keys");
    assert!(outcome.complete && !json.is_empty());
    (estimate.bytes, PROCESS + (HEAP.peak_usage() - before) as u64)
}

const PLAIN: Measure = Measure { series: false, events: false };
const SERIES: Measure = Measure { series: true, events: false };
const EVENTS: Measure = Measure { series: false, events: true };

fn extremes() -> Vec<(&'static str, String, Measure)> {
    let link = |more: &str| format!("links.l = {{ rate = \"20 Mbit/s\", delay = \"20 ms\" {more} }}\n");
    let steps: Vec<String> =
        (0..50_000).map(|step| format!("[\"{} us\", \"{} kbit/s\"]", 10 * step, 10_000 + step % 7)).collect();
    let path = (0..500).map(|at| format!("\"l{at}\"")).collect::<Vec<_>>().join(", ");
    vec![
        (
            "SACK with large first windows",
            format!(
                "run = {{ duration = \"300 ms\" }}\n{}flows.f = {{ law = \"sack\", count = 12, initial_window = 500000, path = [\"l\"] }}\n",
                link("")
            ),
            PLAIN,
        ),
        (
            "the same with a queue that takes them",
            format!(
                "run = {{ duration = \"300 ms\" }}\n{}flows.f = {{ law = \"sack\", count = 12, initial_window = 50000, path = [\"l\"] }}\n",
                link(", queue = \"100000 packets\"")
            ),
            PLAIN,
        ),
        (
            "HPCC at the rate of its line",
            format!(
                "run = {{ duration = \"50 ms\" }}\n{}flows.f = {{ law = \"hpcc\", access = {{ rate = \"1 Tbit/s\" }}, path = [\"l\"] }}\n",
                link(", law = \"hpcc\"")
            ),
            PLAIN,
        ),
        (
            "steps",
            format!(
                "run = {{ duration = \"1 s\" }}\nlinks.l = {{ delay = \"10 ms\", rate = {{ steps = [{}] }} }}\nflows.f = {{ law = \"sack\", path = [\"l\"] }}\n",
                steps.join(",")
            ),
            PLAIN,
        ),
        (
            "claims",
            format!(
                "run = {{ duration = \"100 ms\" }}\n{}flows.f = {{ law = \"sack\", path = [\"l\"] }}\n{}",
                link(""),
                "[[claims]]\nthat = \"it sends\"\nmetric = \"flows.f.goodput_bps\"\nat_least = \"1 bit/s\"\n".repeat(10_000)
            ),
            PLAIN,
        ),
        (
            "comments",
            format!(
                "run = {{ duration = \"100 ms\" }}\n{}flows.f = {{ law = \"sack\", path = [\"l\"] }}\n{}",
                link(""),
                "# x\n".repeat(500_000)
            ),
            PLAIN,
        ),
        (
            "long paths",
            format!(
                "run = {{ duration = \"1 ms\" }}\n{}{}",
                (0..500).map(|at| format!("links.l{at} = {{ rate = \"20 Mbit/s\", delay = \"20 ms\" }}\n")).collect::<String>(),
                (0..200).map(|at| format!("flows.f{at} = {{ law = \"sack\", path = [{path}] }}\n")).collect::<String>()
            ),
            PLAIN,
        ),
        (
            "changes of a long path",
            format!(
                "run = {{ duration = \"3 s\" }}\n{}flows.f = {{ law = \"sack\", path = [{path}], switch = [{}] }}\n",
                (0..500).map(|at| format!("links.l{at} = {{ rate = \"20 Mbit/s\", delay = \"20 ms\" }}\n")).collect::<String>(),
                (1..200).map(|at| format!("{{ at = \"{at} ms\", path = [{path}] }}")).collect::<Vec<_>>().join(", ")
            ),
            PLAIN,
        ),
        (
            "times without ACKs",
            format!(
                "run = {{ duration = \"200 ms\" }}\nlinks.l = {{ rate = \"20 Mbit/s\", delay = \"20 ms\", ack_blackout = [{}] }}\nflows.f = {{ law = \"sack\", path = [\"l\"] }}\n",
                (0..20_000).map(|at| format!("{{ at = \"{} ns\", for = \"1 ns\" }}", 2 * at)).collect::<Vec<_>>().join(", ")
            ),
            PLAIN,
        ),
        (
            "a series of short bins",
            format!(
                "run = {{ duration = \"1 s\" }}\nmeasure = {{ every = \"10 us\" }}\n{}flows.f = {{ law = \"sack\", path = [\"l\"] }}\n",
                link("")
            ),
            SERIES,
        ),
        (
            "events of RCP without delay",
            "run = { duration = \"2 s\" }\nlinks.l = { rate = \"2 Mbit/s\", delay = \"0 s\", law = \"rcp\" }\nflows.f = { law = \"rcp\", path = [\"l\"] }\n".into(),
            EVENTS,
        ),
        (
            "flows",
            format!(
                "run = {{ duration = \"100 ms\" }}\n{}flows.f = {{ law = \"cubic\", count = 20000, path = [\"l\"] }}\n",
                link("")
            ),
            PLAIN,
        ),
        (
            "a large window without losses",
            "run = { duration = \"2 s\" }\nlinks.l = { rate = \"1 Gbit/s\", delay = \"200 ms\", queue = \"100000 packets\" }\nflows.f = { law = \"cubic\", count = 4, path = [\"l\"] }\n".into(),
            PLAIN,
        ),
        (
            "a large window of Linux",
            "run = { duration = \"2 s\" }\nlinks.l = { rate = \"1 Gbit/s\", delay = \"100 ms\", queue = \"20000 packets\" }\nflows.f = { law = \"cubic\", profile = \"linux\", count = 4, path = [\"l\"] }\n".into(),
            PLAIN,
        ),
        (
            "events of losses",
            format!(
                "run = {{ duration = \"20 s\" }}\n{}flows.f = {{ law = \"sack\", count = 30, path = [\"l\"] }}\n",
                link(", error = { packet_error_rate = 0.05 }")
            ),
            EVENTS,
        ),
    ]
}

/// Networks of any size: flows, queues, bins of the series.
fn drawn(number: u64) -> (String, String, Measure) {
    let mut stream = Stream::named(number, "memory");
    let mut odd = |low: u32, high: u32| {
        let power = 1 << (u64::from(low) + stream.below(u64::from(high - low)));
        power + stream.below(power)
    };
    let laws: Vec<&Protocol> = Protocol::all().filter(|protocol| protocol.sender.is_some()).collect();
    let protocol = laws[number as usize % laws.len()];
    let law = protocol.name;
    let link_law = match law {
        "xcp-r" | "xcp-r-v0" => Some("xcp"),
        law => protocol.link.is_some().then_some(law),
    };
    let (mbits, delay, queue, flows) = (odd(2, 9), odd(0, 7), odd(4, 14), odd(0, 12));
    let (duration, bins, kind) = (odd(7, 11), odd(3, 11), odd(0, 2));
    let own = link_law.map_or(String::new(), |law| format!(", law = \"{law}\""));
    let text = format!(
        "run = {{ duration = \"{duration} ms\" }}\nmeasure = {{ every = \"{} us\" }}\n\
         links.l = {{ rate = \"{mbits} Mbit/s\", delay = \"{delay} ms\", queue = \"{queue} packets\"{own} }}\n\
         flows.f = {{ law = \"{law}\", count = {flows}, path = [\"l\"], access = {{ rate = \"1 Gbit/s\" }} }}\n",
        duration * 1000 / bins
    );
    let measure = [PLAIN, SERIES, EVENTS][kind as usize % 3];
    let what = format!(
        "{law}: {mbits} Mbit/s, {delay} ms, {queue} packets, {flows} flows, {duration} ms, {bins} bins, {measure:?}"
    );
    (what, text, measure)
}

#[test]
fn estimates_are_within_a_factor_of_two_of_what_runs_take() {
    let mut wrong = 0;
    let named = extremes().into_iter().map(|(what, text, measure)| (what.to_owned(), text, measure));
    for (what, text, measure) in named.chain((0..DRAWN).map(drawn)) {
        let (estimate, peak) = both(&text, &measure);
        let ratio = estimate as f64 / peak as f64;
        let sign = if (0.5..=2.0).contains(&ratio) { "" } else { "WRONG " };
        println!(
            "{sign}{ratio:.2} {what}: {:.1} MB said, {:.1} MB taken",
            estimate as f64 / MB,
            peak as f64 / MB
        );
        wrong += u32::from(!(0.5..=2.0).contains(&ratio));
    }
    assert_eq!(wrong, 0);
}
