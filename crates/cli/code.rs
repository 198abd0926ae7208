//! Names the code that is built: the commit for people, and for kept results a hash of all that decides results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources that decide results. The compiler does not: results are integers and the functions of [`LIBRARIES`].
const SOURCES: [&str; 5] =
    ["crates/core/src", "crates/net/src", "crates/sim/src", "crates/text/src", "crates/scenario/src"];
/// The part of [`SOURCES`] that only draws, compares and explains results. No other part calls it.
const SHOWING: &str = "crates/scenario/src/showing/";
/// The libraries that decide results, by name; their versions are in the lock file.
const LIBRARIES: [&str; 1] = ["libm"];

/// Sets `CONGESTLAB_COMMIT` and `CONGESTLAB_CODE` for the code of a package; `top` is the folder of the repository, and
/// `lock` the lock file that the package is built with.
pub(crate) fn name(top: &Path, lock: &Path) {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok();
        let output = output.filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=CONGESTLAB_COMMIT={commit}");
    // Each commit adds a line to the log of HEAD; a tree without git has neither file.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    for path in SOURCES.map(|part| top.join(part)).iter().map(PathBuf::as_path).chain([lock]) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rustc-env=CONGESTLAB_CODE={}", key(top, lock));
}

/// Returns the hash of all that decides results, sixteen hexadecimal digits, as docs/results.md specifies it: FNV-1a of 64
/// bits over the sources in the order of their paths, then over the libraries. Each name and each text is followed by
/// its length in bytes, as 64 bits with the least significant byte first.
pub(crate) fn key(top: &Path, lock: &Path) -> String {
    let name = |file: &Path| {
        let path = file.strip_prefix(top).unwrap_or(file);
        let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        parts.join("/")
    };
    let all = SOURCES.iter().flat_map(|part| files(&top.join(part)));
    let mut sources: Vec<(String, PathBuf)> = all.map(|file| (name(&file), file)).collect();
    sources.retain(|(name, _)| !name.starts_with(SHOWING));
    sources.sort();
    let locked = fs::read_to_string(lock).unwrap_or_default();
    let libraries = LIBRARIES.map(|library| (library.to_owned(), version(&locked, library).into_bytes()));
    let sources = sources.into_iter().map(|(name, file)| (name, fs::read(file).unwrap_or_default()));
    let hash = sources.chain(libraries).fold(0xcbf2_9ce4_8422_2325, |hash, (name, text)| {
        [name.as_bytes(), &text].iter().fold(hash, |hash, part| fnv(fnv(hash, part), &length(part)))
    });
    format!("{hash:016x}")
}

/// Returns the version of a library in the text of a lock file; several are joined, none is the empty text.
fn version(locked: &str, library: &str) -> String {
    let head = format!("name = \"{library}\"");
    let mut lines = locked.lines();
    let mut found = Vec::new();
    while lines.any(|line| line == head) {
        found.extend(lines.next().and_then(|line| line.strip_prefix("version = ")));
    }
    found.join(",").replace('"', "")
}

fn length(part: &[u8]) -> [u8; 8] {
    (part.len() as u64).to_le_bytes()
}

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The files below a path, in an order that does not depend on the file system.
pub(crate) fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.into()] };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| files(entry)).collect()
}
