//! docs/performance.md says how many instructions a packet-hop takes: counted anew, on the engine alone, in five
//! short cases. What costs more than it says fails, and what costs less, until the page says so.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The count may be so far from the page, above or below.
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

/// What the page says of each case, against what was counted.
fn untruths(page: &str, counted: &str) -> Vec<String> {
    let untruth = |case: &&str| {
        let (said, counted) = (count(page, case), count(counted, case));
        let change = counted / said - 1.0;
        if change > TOLERANCE {
            Some(format!("{case}: {counted} instructions per packet-hop, more than the {said} of the page"))
        } else if change < -TOLERANCE {
            Some(format!(
                "{case}: {counted} instructions per packet-hop: the {said} of the page is out of date"
            ))
        } else {
            None
        }
    };
    CASES.iter().filter_map(untruth).collect()
}

#[test]
fn a_page_that_is_off_by_more_than_three_percent_is_untrue_both_ways() {
    let page = |counts: [f64; 5]| -> String {
        let rows = CASES.iter().zip(counts);
        rows.map(|(case, count)| format!("| the engine alone, {case} | {count} |\n")).collect()
    };
    let said = [400.0, 300.0, 900.0, 600.0, 410.0];
    assert!(untruths(&page(said), &page(said)).is_empty());
    assert!(untruths(&page(said), &page([411.9, 291.1, 900.0, 600.0, 410.0])).is_empty());
    let off = untruths(&page(said), &page([412.1, 300.0, 900.0, 581.9, 410.0]));
    assert!(
        off.len() == 2 && off[0].starts_with("XCP: 412.1") && off[0].contains("more than the 400"),
        "{off:?}"
    );
    assert!(off[1].starts_with("SACK, 1 % loss") && off[1].contains("out of date"), "{off:?}");
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
    let untrue = untruths(&page, &counted);
    assert!(untrue.is_empty(), "{untrue:#?}\ntools/bench --write gate puts the page right");
}
