//! What `run` says of the memory that it may need, against what it gets by with: limits of the system hold both.

use std::fmt::Write as _;
use std::process::Command;

use congestlab_scenario::{Measure, Scenario};

use crate::{Finished, Lab};

/// What the smallest run takes, with room: bytes.
const LEAST: u64 = 24 << 20;

/// Runs the scenario with so much memory for data, and so many seconds of a processor.
fn run_within(lab: &Lab, bytes: u64, seconds: u32) -> Finished {
    let limits = format!("ulimit -c 0; ulimit -d {}; ulimit -t {seconds}; exec \"$0\" \"$@\"", bytes >> 10);
    let mut command = Command::new("sh");
    command.args(["-c", &limits, env!("CARGO_BIN_EXE_congestlab"), "run", "scenario.toml"]);
    command.args(["--quiet", "--threads", "1"]).current_dir(lab.path(""));
    Finished(command.output().expect("there is a shell"))
}

/// It gets by with what is said, and, where that is much, not with a quarter of it.
fn fits_what_is_said(what: &str, text: &str) {
    let lab = Lab::new(text);
    let scenario = Scenario::load(&lab.path("scenario.toml"), &[], None).expect("it is right");
    let said = scenario.memory_needed(&Measure::default());
    let finished = run_within(&lab, LEAST + said, 30);
    assert!(finished.0.status.success(), "{what}, {said} B said: {}", finished.stderr());
    if said / 4 > LEAST {
        let finished = run_within(&lab, said / 4, 30);
        assert!(!finished.0.status.success(), "{what}: {said} B said, and a quarter of it is enough");
    }
}

fn scenario(links: usize, law: &str, flow: impl Fn(usize) -> Option<String>) -> String {
    let mut text = "[run]\nduration = \"0.1 s\"\n".to_owned();
    for link in 0..links {
        let _ = writeln!(text, "[links.l{link}]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n{law}");
    }
    for (index, flow) in (0..links).filter_map(|index| Some((index, flow(index)?))) {
        let _ = writeln!(text, "[flows.f{index}]\n{flow}");
    }
    text
}

/// 10^5 of them took 1 GB, and nothing was said of it.
#[test]
fn links_that_nobody_uses_take_what_is_said() {
    let one = |index| (index == 0).then(|| "law = \"cubic\"\npath = [\"l0\"]".to_owned());
    fits_what_is_said("20,000 links", &scenario(20_000, "queue = \"10 packets\"", one));
}

/// Not links times groups: that would take minutes of the processor.
#[test]
fn many_links_and_groups_take_what_is_said_and_time_in_proportion() {
    let each = |index| Some(format!("law = \"cubic\"\npath = [\"l{index}\"]\nsize = \"15 kB\""));
    fits_what_is_said("20,000 links and groups", &scenario(20_000, "queue = \"10 packets\"", each));
}

#[test]
fn laws_and_flows_of_load_codes_take_what_is_said() {
    for law in ["\"vcp\"", "\"dpcp\"", "{ mpcp = { n = 3 } }"] {
        let each = |index| Some(format!("law = {law}\npath = [\"l{index}\"]\nsize = \"15 kB\""));
        fits_what_is_said(law, &scenario(3_000, &format!("queue = \"10 packets\"\nlaw = {law}"), each));
    }
}

/// A packet takes 12 ms of sending. Were it one for each span, 2,500,000 of them would wait.
#[test]
fn sources_with_short_spans_take_what_is_said() {
    for random in [false, true] {
        let onoff = format!("rate = \"1 Mbit/s\", on = \"20 us\", off = \"20 us\", random = {random}");
        let law = format!("law = {{ onoff = {{ {onoff} }} }}\npath = [\"l0\"]\ncount = 1000");
        let one = |index| (index == 0).then(|| law.clone());
        fits_what_is_said(&law, &scenario(1, "queue = \"10000000 packets\"", one));
    }
}
