//! What a scenario is refused for, or warned of: `tests/data/refused.txt` has one line of the base
//! file and what replaces it, and below it the diagnostics, word for word.
//!
//! `UPDATE_GOLDEN=1 cargo test -p congestlab-scenario --test refused` writes the file anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use congestlab_scenario::diagnostic::Severity;
use congestlab_scenario::{Diagnostics, Scenario};

const BASE: &str = r#"[run]
duration = "10 s"

[links.bottleneck]
rate = "10 Mbit/s"
delay = "40 ms"
queue = "200 packets"
law = "xcp"

[flows.ftp]
law = "cubic"
path = ["bottleneck"]
start = "0 s"
"#;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(text: &str) -> Result<Scenario, Diagnostics> {
    let scenario = Scenario::parse("test.toml", text, &data(""), &[], None)?;
    scenario.check()?;
    Ok(scenario)
}

fn replaced(old: &str, new: &str) -> String {
    let new = new.replace("\\n", "\n");
    assert!(BASE.lines().any(|line| line == old), "no line {old:?}");
    BASE.lines().map(|line| if line == old { format!("{new}\n") } else { format!("{line}\n") }).collect()
}

fn show(diagnostics: &Diagnostics) -> String {
    diagnostics.iter().fold(String::new(), |mut text, diagnostic| {
        let (line, column) = diagnostic.position();
        let severity = if diagnostic.severity() == Severity::Warning { "warning: " } else { "" };
        assert!(!diagnostic.help().is_empty(), "{diagnostic} says not what is allowed");
        let _ = writeln!(text, "    {line}:{column} {severity}{}", diagnostic.message());
        let _ = writeln!(text, "        {} ({})", diagnostic.help(), diagnostic.code());
        text
    })
}

/// A mark of byte order is no character of the first line.
#[test]
fn a_byte_order_mark_moves_no_column() {
    for (text, place) in [("[rum]\n", (1, 2)), ("[run]\nx = 1\n", (2, 1))] {
        let places = |text: &str| -> Vec<(usize, usize)> {
            read(text).expect_err("wrong").iter().map(|diagnostic| diagnostic.position()).collect()
        };
        let plain = places(text);
        assert!(plain.contains(&place), "{plain:?}");
        assert_eq!(places(&format!("\u{feff}{text}")), plain);
    }
    assert!(read(&format!("\u{feff}{BASE}")).is_ok());
}

#[test]
fn every_bad_input_has_its_place_and_says_what_is_allowed() {
    let path = data("refused.txt");
    let golden = std::fs::read_to_string(&path).unwrap();
    let mut actual = String::new();
    for line in golden.lines().filter(|line| !line.starts_with("    ")) {
        let _ = writeln!(actual, "{line}");
        if let Some((old, new)) = line.split_once("  =>  ") {
            match read(&replaced(old, new)) {
                Err(diagnostics) => {
                    assert!(diagnostics.iter().any(|d| d.severity() == Severity::Error), "{line}");
                    actual.push_str(&show(&diagnostics));
                }
                Ok(scenario) => {
                    assert!(!scenario.warnings().is_empty(), "accepted without a word: {line}");
                    actual.push_str(&show(scenario.warnings()));
                }
            }
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    for (number, (ours, theirs)) in actual.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {} of {}", number + 1, path.display());
    }
    assert_eq!(actual, golden);
}

/// Links with a law that is warned of, so many that no more warnings are told.
fn noise() -> String {
    (0..2 * Diagnostics::LIMIT).fold(String::new(), |mut text, n| {
        let _ = writeln!(
            text,
            "[links.noise-{n}]\nrate = \"1 Mbit/s\"\nlaw = {{ xcp = {{ alpha = 0.40000001 }} }}"
        );
        text
    })
}

#[test]
fn no_warning_displaces_an_error() {
    let golden = std::fs::read_to_string(data("refused.txt")).unwrap();
    let (noise, mut refused) = (noise(), 0);
    let quiet =
        read(&BASE.replace("[links.bottleneck]", &format!("{noise}[links.bottleneck]"))).expect("valid");
    assert_eq!(quiet.warnings().iter().count(), Diagnostics::LIMIT + 1);
    for (old, new) in golden.lines().filter_map(|line| line.split_once("  =>  ")) {
        let text = replaced(old, new);
        let Err(alone) = read(&text) else { continue };
        let text = text.replace("[links.bottleneck]", &format!("{noise}[links.bottleneck]"));
        let told = read(&text).expect_err(new);
        // Some name a line, which is another one here.
        let letters = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
        let told: Vec<String> = told.iter().map(|finding| letters(finding.message())).collect();
        for error in alone.iter().filter(|finding| finding.severity() == Severity::Error) {
            let message = letters(error.message());
            assert!(told.contains(&message), "{new}: {message}\n{told:#?}");
        }
        refused += 1;
    }
    assert!(refused > 200, "{refused}");
}

#[test]
fn what_is_too_much_to_tell_is_counted() {
    let odd: String = (0..173).fold(String::new(), |text, n| text + &format!("odd-{n} = 1\n"));
    let diagnostics = read(&format!("{BASE}{odd}")).expect_err("wrong");
    assert_eq!(diagnostics.iter().count(), Diagnostics::LIMIT + 1);
    let last = diagnostics.iter().last().expect("many");
    assert_eq!((last.message(), last.severity()), ("and 123 more errors", Severity::Error));
    assert_eq!(last.position(), (14 + Diagnostics::LIMIT, 1), "where they go on");
    // An error at a point of a sweep is told beside its warnings.
    let sweep = "[sweep]\ngrid = { \"links.bottleneck.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"] }\n";
    let noise = noise();
    let text = format!("{}{sweep}", BASE.replace("[flows.ftp]", &format!("{noise}[flows.ftp]")));
    let text = text.replace("\"2 Mbit/s\"", "\"2 mbps\"");
    let told = read(&text).expect_err("wrong").to_string();
    assert!(told.contains("2 mbps"), "{told}");
    assert!(told.ends_with("and 50 more warnings; the first 50 are told"), "{told}");
}

#[test]
fn several_mistakes_are_told_at_once() {
    let text = BASE
        .replace("10 Mbit/s", "10 mbps")
        .replace("[\"bottleneck\"]", "[\"botleneck\"]")
        .replace("\"0 s\"", "0");
    let diagnostics = read(&text).unwrap_err();
    let lines: Vec<usize> = diagnostics.iter().map(|diagnostic| diagnostic.position().0).collect();
    assert_eq!(lines, [5, 12, 13], "{diagnostics}");
}

#[test]
fn columns_count_characters_and_files_are_named() {
    let text = "[run]\nduration = \"10 s\" # größer\nseed = [1, \"µ\", 5 5]\n";
    let diagnostics = read(text).unwrap_err();
    let first = diagnostics.iter().next().unwrap();
    assert_eq!((first.file(), first.position().0), ("test.toml", 3), "{diagnostics}");
    let json = diagnostics.to_json();
    let keys: Vec<&String> = json[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["severity", "code", "message", "file", "line", "column", "label", "help"]);
}

#[test]
fn overrides_point_into_themselves() {
    let set = |path: &str, value: &str| {
        let overrides = [(path.to_owned(), value.to_owned())];
        Scenario::parse("test.toml", BASE, &data(""), &overrides, None).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        set("links.bottlneck.rate", "1 Gbit/s"),
        "--set:1:1: `links.bottlneck.rate` names no part of the file: there is no `bottlneck`; \
         did you mean `bottleneck`? Allowed: bottleneck"
    );
    assert_eq!(
        set("links.bottleneck.rat", "1 Gbit/s"),
        "--set:1:1: unknown key `rat` in `links.bottleneck`; did you mean `rate`? Allowed: at, rate, delay, medium, \
         queue, packet_size, discipline, law, capacity_from, error, ack_loss, ack_blackout, reorder, ecn, feedback_at, police, profile, reverse"
    );
    assert_eq!(
        set("links.bottleneck.rate", "\"1 Gbps\""),
        "--set:1:23: `links.bottleneck.rate`: \"1 Gbps\" can mean two things: write \"1 Gbit/s\" or \"1 GB/s\"; \
         a rate is a number and a unit, such as \"10 Mbit/s\""
    );
    assert_eq!(
        set("flows.ftp.path", "[\"bottleneck\""),
        "--set:1:29: unclosed array, expected `]`; a scenario is TOML (https://toml.io)"
    );
}

#[test]
fn files_that_are_no_text_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let load = |bytes: &[u8]| {
        let path = folder.path().join("x.toml");
        std::fs::write(&path, bytes).unwrap();
        Scenario::load(&path, &[], None).map(|_| ()).unwrap_err().to_string()
    };
    assert!(
        load(b"[run]\nduration = \"\xff\"").contains(":2:13: byte 18 of"),
        "{}",
        load(b"[run]\nduration = \"\xff\"")
    );
    assert!(load(b"").contains("a scenario needs `[run]`"));
    let missing =
        Scenario::load(&folder.path().join("none.toml"), &[], None).map(|_| ()).unwrap_err().to_string();
    assert!(missing.contains("can not read"), "{missing}");
    assert!(Scenario::load(folder.path(), &[], None).is_err(), "a folder");
}

/// Every prefix of a good file, and every one-byte change to a few others: nothing panics.
#[test]
fn damaged_files_are_refused_or_read_but_never_end_the_program() {
    let example = include_str!("data/contract.toml");
    for end in 0..example.len() {
        if let Some(text) = example.get(..end) {
            let _ = Scenario::parse("test.toml", text, &data(""), &[], None);
        }
    }
    let odd = [
        "\0",
        "\"",
        "'",
        "[",
        "{",
        "=",
        "999999999999999999999",
        "-",
        "1e999",
        "nan",
        "\u{10ffff}",
        "é",
        "[[",
        "\r",
    ];
    for at in (0..example.len()).step_by(3) {
        if example.is_char_boundary(at) {
            for odd in odd {
                let text = format!("{}{odd}{}", &example[..at], &example[at..]);
                let _ = Scenario::parse("test.toml", &text, &data(""), &[], None);
            }
        }
    }
    let deep = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read(&deep).is_err());
    let dotted = format!("{} = 1", vec!["a"; 100_000].join("."));
    assert!(read(&dotted).is_err());
}
