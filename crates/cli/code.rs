//! Names the code that is built: the commit for people, a hash of the sources for kept results.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sets `CONGESTLAB_COMMIT` and `CONGESTLAB_CODE` for the code of a package; `top` is the folder of the repository.
pub(crate) fn name(top: &Path) {
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
}

/// The files below a path, in an order that does not depend on the file system.
pub(crate) fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.into()] };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| files(entry)).collect()
}
