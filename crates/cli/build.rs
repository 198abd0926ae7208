//! Names the code that is built, and embeds the papers.

mod code;

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let top = Path::new("../..");
    code::name(top);
    // Links to what lies at the top, which a package of this crate follows.
    embed_papers(&fs::canonicalize("data/papers").unwrap_or_else(|_| "data/papers".into()));
}

/// Makes a list of the papers' files, key by key, so that the binary needs no folder.
fn embed_papers(papers: &Path) {
    println!("cargo::rerun-if-changed={}", papers.display());
    let mut list = String::from("&[\n");
    for file in code::files(papers).iter().filter(|file| file.extension().is_some_and(|end| end == "toml")) {
        let name = file.strip_prefix(papers).unwrap_or(file).display().to_string();
        let path = fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        list.push_str(&format!("({name:?}, include_str!({path:?})),\n"));
    }
    list.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").map_or_else(PathBuf::new, PathBuf::from);
    fs::write(out.join("papers.rs"), list).expect("cargo's own folder can be written");
}
