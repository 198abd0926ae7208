//! Names the code that is built: the commit for people, a hash of the sources for kept results.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let top = Path::new("../..");
    let git = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output();
    let commit = git.ok().filter(|output| output.status.success());
    let commit = commit
        .map_or_else(|| "unknown".into(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    println!("cargo::rustc-env=CONGESTLAB_COMMIT={}", commit.trim());
    // Each commit adds a line to the log of HEAD; a tree without git has neither file.
    let log = top.join(".git/logs/HEAD");
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }

    // Whatever can move a result. The compiler can not: results are integers and libm.
    let mut hasher = DefaultHasher::new();
    for part in ["Cargo.lock", "crates/core/src", "crates/net/src", "crates/sim/src", "crates/scenario/src"] {
        let path = top.join(part);
        println!("cargo::rerun-if-changed={}", path.display());
        for file in files(&path) {
            file.strip_prefix(top).unwrap_or(&file).hash(&mut hasher);
            fs::read(&file).unwrap_or_default().hash(&mut hasher);
        }
    }
    println!("cargo::rustc-env=CONGESTLAB_CODE={:016x}", hasher.finish());

    embed_papers(&top.join("papers"));
}

/// Makes a list of the papers' files, key by key, so that the binary needs no folder.
fn embed_papers(papers: &Path) {
    println!("cargo::rerun-if-changed={}", papers.display());
    let mut list = String::from("&[\n");
    for file in files(papers).iter().filter(|file| file.extension().is_some_and(|end| end == "toml")) {
        let name = file.strip_prefix(papers).unwrap_or(file).display().to_string();
        let path = fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        list.push_str(&format!("({name:?}, include_str!({path:?})),\n"));
    }
    list.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").map_or_else(PathBuf::new, PathBuf::from);
    fs::write(out.join("papers.rs"), list).expect("cargo's own folder can be written");
}

/// The files below a path, in an order that does not depend on the file system.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.into()] };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| files(entry)).collect()
}
