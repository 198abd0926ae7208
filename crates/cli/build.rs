//! Names the code that is built, and embeds the papers and the cases of acceptance.

mod code;

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let top = Path::new("../..");
    // A package of this crate has a lock file of its own.
    let lock = [Path::new("Cargo.lock"), &top.join("Cargo.lock")]
        .into_iter()
        .find(|path| path.is_file())
        .map(Path::to_owned);
    code::name(top, &lock.unwrap_or_default());
    // Links to what lies at the top, which a package of this crate follows.
    embed("papers");
    embed("acceptance");
}

/// Makes a list of the texts in a folder of `data`, by name, so that the binary needs no folder.
fn embed(what: &str) {
    let folder = Path::new("data").join(what);
    let folder = fs::canonicalize(&folder).unwrap_or(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut list = String::from("&[\n");
    for file in code::files(&folder).iter().filter(|file| file.extension().is_some_and(|end| end == "toml")) {
        let name = file.strip_prefix(&folder).unwrap_or(file).display().to_string();
        let path = fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        list.push_str(&format!("({name:?}, include_str!({path:?})),\n"));
    }
    list.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").map_or_else(PathBuf::new, PathBuf::from);
    fs::write(out.join(what).with_extension("rs"), list).expect("cargo's own folder can be written");
}
