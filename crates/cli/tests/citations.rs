//! Every citation leads somewhere: codes (C-39, A-07, EX2.3, V1.10, VM5.1) to where `docs/design` defines them, sections of design pages to their headings. `links.rs` has the links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[expect(dead_code, reason = "reports use the rest")]
#[path = "../src/papers/codes.rs"]
mod codes;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Folders of what is built, run or generated, not written.
const NOT_OURS: [&str; 5] = ["target", "corpus", "artifacts", "papers-out", "node_modules"];
const TEXTS: [&str; 12] = ["rs", "toml", "md", "c", "h", "py", "pkt", "txt", "sh", "json", "tcl", "dict"];

/// The texts below a folder, by their path in the repository.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                if !name.starts_with('.') && !NOT_OURS.contains(&name.as_str()) {
                    folders.push(path);
                }
                continue;
            }
            let end = path.extension().map(|end| end.to_string_lossy().into_owned());
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let is_script = end.is_none() && text.starts_with("#!");
            if is_script || end.is_some_and(|end| TEXTS.contains(&end.as_str())) {
                let path = path.strip_prefix(top()).expect("below the top").display().to_string();
                found.insert(path, text);
            }
        }
    }
    found
}

fn repository() -> BTreeMap<String, String> {
    let found = texts(&top());
    assert!(found.len() > 400, "the repository has {} texts", found.len());
    found
}

fn tell(broken: &[String]) {
    assert!(broken.is_empty(), "{} citations lead nowhere:\n{}", broken.len(), broken.join("\n"));
}

/// Names of tests and scripts say vectors too: `v1_10_...`, `vm5_1_...`.
fn vectors_in_names(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let numbers = words.filter_map(|word| {
        let rest = word.strip_prefix('v')?;
        let (kind, rest) = rest.strip_prefix('m').map_or(("V", rest), |rest| ("VM", rest));
        let mut parts = rest.split('_');
        let number = |part: Option<&str>| part?.parse::<u32>().ok();
        Some(format!("{kind}{}.{}", number(parts.next())?, number(parts.next())?))
    });
    numbers.collect()
}

/// Codes of a text that the page does not define: `path:line: what`.
fn unknown_codes(path: &str, text: &str, defined: &BTreeSet<&str>) -> Vec<String> {
    let mut broken = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let codes = codes::places(text).map(|place| text[place].to_owned());
        for code in codes.chain(vectors_in_names(text)).filter(|code| !defined.contains(code.as_str())) {
            broken.push(format!("{path}:{}: {code} is defined nowhere in docs/design", line + 1));
        }
    }
    broken
}

#[test]
fn codes_are_defined_once() {
    let mut seen = BTreeSet::new();
    for code in codes::defined() {
        assert!(seen.insert(code.key), "{} is defined twice", code.key);
        assert_eq!(code.anchor, code.key.to_lowercase().replace('.', "-"), "the anchor of {}", code.key);
        assert!(code.title.len() > 5 && !code.title.contains('\n'), "the title of {}", code.key);
    }
    for kind in ["A-", "C-", "EX", "V"] {
        assert!(seen.iter().filter(|key| key.starts_with(kind)).count() > 25, "codes {kind}");
    }
}

#[test]
fn codes_lead_to_what_they_mean() {
    let defined = codes::defined().map(|code| code.key).collect();
    let broken = repository();
    let broken = broken.iter().flat_map(|(path, text)| {
        let name = unknown_codes(path, path, &defined);
        name.into_iter().chain(unknown_codes(path, text, &defined))
    });
    tell(&broken.collect::<Vec<_>>());
}

/// Sections of a page by number, appendices by letter, entries of their lists as `E 6`; of other pages the entries of
/// their lists alone.
fn sections(text: &str) -> BTreeSet<String> {
    let mut sections = BTreeSet::new();
    let mut appendix = None;
    for line in text.lines() {
        let number = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
            Some(text[..end].trim_end_matches('.').to_owned()).filter(|number| !number.is_empty())
        };
        if let Some(heading) = line.strip_prefix('#').map(|line| line.trim_start_matches('#').trim_start()) {
            let letter = heading.strip_prefix("Appendix ").and_then(|rest| rest.split('.').next());
            if line.starts_with("## ") {
                appendix = letter;
            }
            sections.extend(letter.map(str::to_owned).or_else(|| number(heading)));
        } else if line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok()) {
            let entry = number(line).unwrap_or_default();
            sections.extend(appendix.map(|letter| format!("{letter} {entry}")));
            sections.insert(format!("entry {entry}"));
        }
    }
    sections
}

/// A number with or without points that a text begins with, and what follows it.
fn number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    let rest = &text[number.len()..];
    (!number.is_empty() && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
        .then_some((number, rest))
}

/// The sections that a citation names, from what follows the page: `) 3.2, 4.2 to 4.4` or ` appendix E 6`.
fn cited(text: &str) -> Vec<String> {
    let mut text = text;
    if let Some(anchor) = text.strip_prefix('#') {
        text = &anchor[anchor.find([')', ' ', '"']).unwrap_or(anchor.len())..];
    }
    let Some(mut text) = text.trim_start_matches([')', '`']).strip_prefix(' ') else { return Vec::new() };
    if let Some(rest) = text.strip_prefix("appendix ") {
        let letter: String = rest.chars().take(1).collect();
        let entry = rest.get(1..).and_then(|rest| number(rest.strip_prefix(' ')?));
        return vec![entry.map_or_else(|| letter.clone(), |(entry, _)| format!("{letter} {entry}"))];
    }
    let mut found = Vec::new();
    while let Some((section, rest)) = number(text) {
        found.push(section.to_owned());
        let more = [", ", " to ", " and "].iter().find_map(|between| rest.strip_prefix(between));
        // Only sections have points in the middle; entries of lists and amounts have none.
        match more.filter(|more| number(more).is_some_and(|(number, _)| number.contains('.'))) {
            Some(more) => text = more,
            None => break,
        }
    }
    found
}

/// Citations of a text whose section is not there: `path:line: what`.
fn broken_sections(path: &str, text: &str, pages: &BTreeMap<&str, BTreeSet<String>>) -> Vec<String> {
    let mut broken = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        // A citation may go on behind the next line's comment sign.
        let next = lines.get(at + 1).unwrap_or(&"").trim_start_matches(['/', '!', '#', '*', ' ', '\t']);
        let joined = format!("{} {next}", line.trim_end());
        for (page, sections) in pages {
            for (place, _) in line.match_indices(page) {
                let is_list = *page == "docs/ns2.md";
                for section in cited(&joined[place + page.len()..]) {
                    let section = if is_list { format!("entry {section}") } else { section };
                    if !sections.contains(&section) {
                        broken.push(format!("{path}:{}: {page} has no {section}", at + 1));
                    }
                }
            }
        }
        for text in ["dossier", "ns2-peer", "contract §", "contract section"] {
            if line.contains(text) {
                broken.push(format!("{path}:{}: `{text}` is nothing to open, docs/design/ is", at + 1));
            }
        }
        for page in ["protocols.md", "contract.md", "engine.md"] {
            for (place, _) in line.match_indices(page) {
                let is_whole = line[..place].ends_with(['/', '[', '(']);
                if !is_whole && !cited(&joined[place + page.len()..]).is_empty() {
                    broken.push(format!("{path}:{}: {page} is docs/design/{page}", at + 1));
                }
            }
        }
    }
    broken
}

fn pages(texts: &BTreeMap<String, String>) -> BTreeMap<&str, BTreeSet<String>> {
    let named = [
        ("design/protocols.md", "docs/design/protocols.md"),
        ("design/contract.md", "docs/design/contract.md"),
        ("design/engine.md", "docs/design/engine.md"),
        ("design/linux.md", "docs/design/linux.md"),
        ("docs/ns2.md", "docs/ns2.md"),
    ];
    named.map(|(name, path)| (name, sections(&texts[path]))).into()
}

#[test]
fn sections_lead_to_headings() {
    let texts = repository();
    let pages = pages(&texts);
    let here = "crates/cli/tests/citations.rs";
    let others = texts.iter().filter(|(path, _)| *path != here);
    tell(&others.flat_map(|(path, text)| broken_sections(path, text, &pages)).collect::<Vec<_>>());
}

/// Each kind of wrong citation is found, with its line. Codes are put together here, so that this file has none that is wrong.
#[test]
fn what_leads_nowhere_is_told() {
    let defined = codes::defined().map(|code| code.key).collect();
    let wrong = ["C-", "A-"].map(|kind| format!("{kind}98"));
    let text = format!("fine: C-39, [A-07], EX2.3; V1.10\nwrong: {}\n\n({}) EX2.{}", wrong[0], wrong[1], 99);
    let told = unknown_codes("a.rs", &text, &defined);
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], format!("a.rs:2: {} is defined nowhere in docs/design", wrong[0]));
    assert!(
        told[1].starts_with(&format!("a.rs:4: {} ", wrong[1])) && told[2].starts_with("a.rs:4: EX2."),
        "{told:?}"
    );
    for kind in ["v", "vm"] {
        assert_eq!(unknown_codes("a.rs", &format!("fn {kind}{}_{}_it_is() {{}}", 5, 99), &defined).len(), 1);
    }
    for other in
        ["SHA-256 USB-C-12", "A-1", "C-states", "V1", "EX-2", "v1.2.3", "V1.2.3", "RFC-20", "XA-077", "A-0x7"]
    {
        assert!(codes::places(other).next().is_none(), "{other} is no code");
    }

    let page = "# Page\n## 1. One\n### 1.2 Two\n## Appendix E. Five\n1. first\n2. second\n";
    let pages = BTreeMap::from([("design/engine.md", sections(page))]);
    let told = |text: &str| broken_sections("b.rs", text, &pages);
    let fine = "// docs/design/engine.md 1.2, 100 times\n// docs/design/engine.md\n// 1.2: (docs/design/engine.md appendix E 2)";
    assert_eq!(told(fine), Vec::<String>::new());
    assert_eq!(told("// docs/design/engine.md 1.3."), ["b.rs:1: design/engine.md has no 1.3"]);
    assert_eq!(told("x\n# docs/design/engine.md 1.2 to 1.4"), ["b.rs:2: design/engine.md has no 1.4"]);
    assert_eq!(told("// see docs/design/engine.md\n/// 7"), ["b.rs:1: design/engine.md has no 7"]);
    assert_eq!(told("[design/engine.md](../design/engine.md#one) 4"), ["b.rs:1: design/engine.md has no 4"]);
    assert_eq!(told("docs/design/engine.md appendix E 3"), ["b.rs:1: design/engine.md has no E 3"]);
    assert_eq!(told("as engine.md 1.2 has it"), ["b.rs:1: engine.md is docs/design/engine.md"]);
    assert_eq!(told("(contract §5)").len(), 1);
}
