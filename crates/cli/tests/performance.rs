//! docs/performance.md says how many instructions a packet-hop takes: counted anew, on the engine alone.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The page may be so far from the count, above or below.
const TOLERANCE: f64 = 0.05;

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

/// What the page says of both laws, against what was counted.
fn untruths(page: &str, counted: &str) -> Vec<String> {
    let numbers =
        |text| row(text, "the same of the engine alone").into_iter().map(|cell| cell.parse::<f64>());
    let pairs = ["XCP", "SACK"].into_iter().zip(numbers(page).zip(numbers(counted)));
    let pairs = pairs.map(|(law, (said, counted))| match (said, counted) {
        (Ok(said), Ok(counted)) if (counted / said - 1.0).abs() <= TOLERANCE => None,
        (Ok(said), Ok(counted)) if counted > said => {
            Some(format!("{law}: {counted} instructions per packet-hop, more than the {said} of the page"))
        }
        (said, counted) => {
            Some(format!("{law}: the page says {said:?}, counted {counted:?}: it is out of date"))
        }
    });
    pairs.flatten().collect()
}

#[test]
fn a_page_that_is_off_by_more_than_a_twentieth_is_untrue_both_ways() {
    let row = |xcp: u32, sack: u32| format!("| the same of the engine alone | {xcp} | {sack} | | |\n");
    assert!(untruths(&row(400, 300), &row(400, 300)).is_empty());
    assert!(untruths(&row(400, 300), &row(419, 286)).is_empty());
    assert!(untruths(&row(400, 300), &row(421, 300))[0].contains("more than the 400 of the page"));
    assert!(untruths(&row(400, 300), &row(400, 284))[0].contains("out of date"));
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
    let output = Command::new(top().join("tools/bench")).arg("alone").output().expect("tools/bench");
    let counted = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{counted}{}", String::from_utf8_lossy(&output.stderr));
    let untrue = untruths(&page, &counted);
    assert!(untrue.is_empty(), "{untrue:#?}\ntools/bench --write instructions protocols puts the page right");
}
