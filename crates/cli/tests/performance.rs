//! docs/performance.md says how many instructions a packet-hop takes: counted anew, on the engine alone, in five
//! short cases. What costs more than it says fails; what costs less is told, and `tools/bench --write gate` writes the page.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::sim;
use congestlab_scenario::sim::watch::{Step, Watched};
use congestlab_scenario::{Measure, Scenario};

/// The count may be so far above the page; one so far below is told.
const TOLERANCE: f64 = 0.03;

/// Cases of `tools/bench gate`.
const CASES: [&str; 5] = ["XCP", "SACK", "BBR", "SACK, 1 % loss", "XCP, 100 dumbbells"];

fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The numbers of a row, by its first cell.
fn row<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!("| {name} |");
    let line = text.lines().find(|line| line.starts_with(&begin));
    let cells = line.unwrap_or_else(|| panic!("no row {begin} in:\n{text}"))[begin.len()..].split('|');
    cells.map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

/// The count of a case.
fn count(text: &str, case: &str) -> f64 {
    let cells = row(text, &format!("the engine alone, {case}"));
    cells[0].parse().unwrap_or_else(|_| panic!("{case}: {cells:?} is no count"))
}

/// Cases that cost more than the page says, and those that cost less.
fn changes(page: &str, counted: &str) -> [Vec<String>; 2] {
    let [mut slower, mut faster] = [vec![], vec![]];
    for case in CASES {
        let (said, counted) = (count(page, case), count(counted, case));
        let change = counted / said - 1.0;
        let text = format!("{case}: {counted} instructions per packet-hop, not the {said} of the page");
        if change > TOLERANCE {
            slower.push(text);
        } else if change < -TOLERANCE {
            faster.push(text);
        }
    }
    [slower, faster]
}

#[test]
fn what_costs_more_than_the_page_says_is_told_from_what_costs_less() {
    let page = |counts: [f64; 5]| -> String {
        let rows = CASES.iter().zip(counts);
        rows.map(|(case, count)| format!("| the engine alone, {case} | {count} |\n")).collect()
    };
    let said = [400.0, 300.0, 900.0, 600.0, 410.0];
    let none: [Vec<String>; 2] = [vec![], vec![]];
    assert_eq!(changes(&page(said), &page(said)), none);
    assert_eq!(changes(&page(said), &page([411.9, 291.1, 900.0, 600.0, 410.0])), none);
    let [slower, faster] = changes(&page(said), &page([412.1, 300.0, 900.0, 581.9, 410.0]));
    assert_eq!(slower, ["XCP: 412.1 instructions per packet-hop, not the 400 of the page"]);
    assert_eq!(faster, ["SACK, 1 % loss: 581.9 instructions per packet-hop, not the 600 of the page"]);
}

#[test]
fn the_page_says_how_many_instructions_a_packet_hop_takes() {
    let skip = |reason: &str| println!("SKIP performance/instructions: {reason}");
    let page = fs::read_to_string(top().join("docs/performance.md")).expect("a document of the repository");
    for tool in ["valgrind", "python3"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return skip(&format!("no {tool} (make setup)"));
        }
    }
    let compiler = Command::new("rustc").arg("--version").current_dir(top()).output().expect("a compiler");
    let (compiler, counted_with) = (String::from_utf8_lossy(&compiler.stdout), row(&page, "counted with"));
    if compiler.trim() != counted_with.join("|") {
        return skip(&format!("this is {}, the page was counted with {counted_with:?}", compiler.trim()));
    }
    let output = Command::new(top().join("tools/bench")).arg("gate").output().expect("tools/bench");
    let counted = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{counted}{}", String::from_utf8_lossy(&output.stderr));
    let [slower, faster] = changes(&page, &counted);
    if !faster.is_empty() {
        println!("faster than the page says: {faster:#?}\ntools/bench --write gate writes the page");
    }
    assert!(slower.is_empty(), "{slower:#?}\ntools/bench --write gate writes the page");
}

/// Flows in the manner of K02 fig. 4 and 6, for twenty round trips after a hundred: what the first ten do.
fn quiet(flows: u32, is_two_way: bool, is_paced: bool) -> String {
    let back = "
        [flows.back]
        law = { xcp = { request = \"unlimited\", pacing = false } }
        count = 50
        path = [\"a.reverse\"]
        segment = \"1000 B\"
        start = { uniform = \"1 s\" }";
    let text = format!(
        "[run]
        duration = \"9.6 s\"
        [links.a]
        rate = \"150 Mbit/s\"
        delay = \"40 ms\"
        packet_size = \"1000 B\"
        law = {{ xcp = {{ bound_headers = false, max_interval = \"3 s\" }} }}
        reverse = {{ law = {{ xcp = {{ bound_headers = false, max_interval = \"3 s\" }} }} }}
        [flows.x]
        law = {{ xcp = {{ request = \"unlimited\", pacing = {is_paced} }} }}
        count = {flows}
        path = [\"a\"]
        segment = \"1000 B\"
        start = {{ uniform = \"1 s\" }}{}",
        if is_two_way { back } else { "" }
    );
    let scenario = Scenario::parse("quiet.toml", &text, Path::new(""), &[], None).expect("a scenario");
    let model = scenario.model(&Measure::default());
    const FROM: u64 = 8_000_000_000_000;
    let (mut acks, mut moves) = (0_u64, vec![FROM, model.duration]);
    for flow in 0..flows.min(10) {
        let mut watch = |at: u64, step: &Step| {
            if let Step::Acted { packet: Some(_), before, after, .. } = step
                && at >= FROM
            {
                acks += 1;
                if before.law.window() != after.law.window() {
                    moves.push(at);
                }
            }
            ControlFlow::Continue(())
        };
        assert!(sim::watch(&model, Watched::Sender(flow), &AtomicBool::new(false), &mut |_| (), &mut watch));
    }
    moves.sort_unstable();
    let longest = moves.windows(2).map(|two| two[1] - two[0]).max().unwrap_or_default() as f64 / 80e9;
    format!("{acks} | {:.1} % | {longest:.3}", 100.0 * (moves.len() - 2) as f64 / acks as f64)
}

#[test]
fn the_page_says_how_long_windows_of_xcp_stand_still() {
    let page = fs::read_to_string(top().join("docs/performance.md")).expect("a document of the repository");
    let cases = [
        ("50 flows, 50 the other way", 50, true, false),
        ("50 flows", 50, false, false),
        ("50 flows, paced", 50, false, true),
        ("one flow, paced", 1, false, true),
    ];
    for (name, flows, is_two_way, is_paced) in cases {
        let found = quiet(flows, is_two_way, is_paced);
        assert_eq!(row(&page, name).join(" | "), found, "{name}");
    }
}
