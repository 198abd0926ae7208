//! The recipe in `bpf/`, run in folders of tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// A folder that goes away with its owner.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("congestlab-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The compiler for BPF, or what is missing for that.
pub(crate) fn rustc_for_bpf() -> Result<String, String> {
    let rustc = env::var("RUSTC_BPF").unwrap_or("/usr/bin/rustc".into());
    let library = Command::new(&rustc)
        .args(["--print", "target-libdir", "--target", "bpfel-unknown-none"])
        .output()
        .map_err(|error| format!("{rustc}: {error} (Debian: rustc-web)"))?;
    if !Path::new(text(&library).trim()).is_dir() {
        return Err(format!("{rustc} has no core library for BPF (Debian: libstd-rust-web-dev-bpf)"));
    }
    Ok(rustc)
}

/// Builds these programs on a law, `rust` or `twin`, into the folder, or says what is missing for that.
pub(crate) fn build(folder: &Path, law: &str, programs: &[&str]) -> Result<(), String> {
    build_with(folder, &[("LAW", law)], programs)
}

/// The same with these words in the environment.
pub(crate) fn build_with(folder: &Path, told: &[(&str, &str)], programs: &[&str]) -> Result<(), String> {
    rustc_for_bpf()?;
    for (tool, argument) in
        [("clang-19", "--version"), ("llvm-strip-19", "--version"), ("bpftool", "version")]
    {
        Command::new(tool).arg(argument).output().map_err(|error| format!("{tool}: {error}"))?;
    }
    if !Path::new("/usr/include/bpf/bpf_helpers.h").exists() {
        return Err("bpf/bpf_helpers.h is not there (Debian: libbpf-dev)".into());
    }
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/build.sh");
    let built = Command::new("sh")
        .arg(recipe)
        .arg(folder)
        .args(programs)
        .envs(told.iter().copied())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", text(&built));
    Ok(())
}
