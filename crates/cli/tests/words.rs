//! Doc comments say what an item is to a reader who sees only their first line, as in rustdoc's lists: held against
//! the sources, because riddles come back one at a time.

use std::fs;
use std::path::Path;

/// Rooms whose comments were all read with this in mind.
const ROOMS: [&str; 6] = ["core", "net", "sim", "text", "linux", "lab"];

/// First words that leave it to the item's name and signature to say what the comment is about.
const RIDDLES: [&str; 11] =
    ["What", "Whether", "That", "Those", "Of", "It", "Its", "They", "Their", "Who", "Whose"];

/// A comment that cannot be understood alone: it begins with a word of [`RIDDLES`], tells something to an "it", or is
/// nothing but somebody's ("XCP's.").
fn is_riddle(first_line: &str) -> bool {
    let mut words = first_line.split_whitespace();
    let first = words.next().unwrap_or_default().trim_end_matches([',', ':', '.']);
    let is_bare_possessive = first.ends_with("'s") && words.clone().next().is_none();
    RIDDLES.contains(&first)
        || is_bare_possessive
        || (first == "Tells" && words.next().is_some_and(|whom| ["it", "them"].contains(&whom)))
}

/// The text of a line of documentation.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    (!text.starts_with('/')).then(|| text.trim())
}

/// First lines of doc comments that are riddles, with their numbers.
fn riddles(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_begun = false;
    for (number, line) in (1..).zip(source.lines()) {
        let text = documentation(line);
        if let Some(first_line) = text.filter(|text| !is_begun && is_riddle(text)) {
            found.push((number, first_line));
        }
        is_begun = text.is_some();
    }
    found
}

fn for_each_source(folder: &Path, each: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).expect("a folder of the repository").flatten() {
        let path = entry.path();
        if path.is_dir() {
            for_each_source(&path, each);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            each(&path, &fs::read_to_string(&path).expect("a text"));
        }
    }
}

#[test]
fn no_doc_comment_begins_with_a_riddle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for room in ROOMS {
        let mut documented = 0;
        for_each_source(&crates.join(room).join("src"), &mut |path, source| {
            documented += source.lines().filter_map(documentation).count();
            let name = path.strip_prefix(&crates).expect("a file of a crate").display();
            found.extend(riddles(source).iter().map(|(line, text)| format!("crates/{name}:{line}: {text}")));
        });
        assert!(documented > 100, "{room} has {documented} lines of documentation");
    }
    assert!(found.is_empty(), "say what the item is, with a subject and its unit:\n{}", found.join("\n"));
}

#[test]
fn a_riddle_is_found_where_it_stands() {
    let source = "//! Of the law.\n\n/// Returns d.\n/// What it is.\nfn d();\n    /// Tells it that.\n    /// XCP's.\n\
        /// A law.\n    fn c();\n    /// XCP's.\n    fn b();\n    //// What\n    // Whether\n    /// Itself.\n";
    assert_eq!(riddles(source), [(1, "Of the law."), (6, "Tells it that."), (10, "XCP's.")]);
}
