//! Every link of the documents leads somewhere, and the book has every page of `docs/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::markdown::{anchors, links};

mod markdown;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The Markdown files below a folder, or in it alone.
fn documents(folder: &Path, below: bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("readable").path();
        if path.is_dir() && below {
            documents(&path, below, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// What is wrong with the links of the document, for a reader.
fn broken(document: &Path, known: &mut BTreeMap<PathBuf, BTreeSet<String>>) -> Vec<String> {
    let text = fs::read_to_string(document).expect("a document is readable");
    let folder = document.parent().expect("a file is in a folder");
    let mut broken = Vec::new();
    for (line, link) in links(&text) {
        let (path, anchor) =
            link.split_once('#').map_or((link.as_str(), None), |(path, at)| (path, Some(at)));
        if link.contains("://") {
            continue;
        }
        let target = if path.is_empty() { document.to_owned() } else { folder.join(path) };
        let why = match target.canonicalize() {
            Err(_) => "no such file",
            Ok(target) => {
                let names = |anchor| {
                    let anchors = known.entry(target.clone()).or_insert_with(|| {
                        fs::read_to_string(&target).map(|text| anchors(&text)).unwrap_or_default()
                    });
                    anchors.contains(anchor)
                };
                if anchor.is_none_or(names) {
                    continue;
                }
                "no such heading"
            }
        };
        broken.push(format!("{}:{line}: {link}: {why}", document.display()));
    }
    broken
}

#[test]
fn every_link_leads_somewhere() {
    let top = top();
    let mut found = Vec::new();
    documents(&top, false, &mut found);
    for folder in ["docs", "papers"] {
        documents(&top.join(folder), true, &mut found);
    }
    let mut known = BTreeMap::new();
    let broken: Vec<String> = found.iter().flat_map(|document| broken(document, &mut known)).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_noticed() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("writable");
    let page = folder.path().join("page.md");
    let text = "# A `heading`, twice\n\n[a](page.md#a-heading-twice) [b](#b) [c](none.md)\n\n\
                # B\n\n<a id=\"A-1\"></a> [d](#A-1) [e](#A-2)\n\n```sh\n[f](none)\n```\n";
    fs::write(&page, text).expect("writable");
    let broken = broken(&page, &mut BTreeMap::new());
    let ends: Vec<&str> = broken.iter().filter_map(|line| line.split("page.md:").nth(1)).collect();
    assert_eq!(ends, ["3: none.md: no such file", "7: #A-2: no such heading"]);
}

#[test]
fn the_book_has_every_page() {
    let docs = top().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("docs/SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links(&summary).into_iter().map(|(_, link)| docs.join(link)).collect();
    let mut pages = Vec::new();
    documents(&docs, true, &mut pages);
    let pages: BTreeSet<PathBuf> = pages.into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    let missing: Vec<_> = pages.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
}
