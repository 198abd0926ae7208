//! The command as a shell sees it: exit codes, streams, files, signals (docs/design/contract.md 5).

mod acceptance;
#[cfg(feature = "linux")]
mod apply;
mod behaviour;
mod browser;
#[cfg(feature = "linux")]
mod capacity;
mod claims;
mod compare;
mod export;
mod figure;
mod folders;
mod interrupt;
#[cfg(feature = "linux")]
mod machine;
mod measured;
mod memory;
mod older;
mod papers;
mod pictures;
mod report;
#[cfg(feature = "linux")]
mod router;
#[cfg(feature = "linux")]
mod scone;
mod search;
mod serve;
mod sweep;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A small scenario in a folder of its own.
pub(crate) struct Lab {
    folder: TempDir,
}

/// Two XCP flows for two seconds. Tests change it by `--set` or by replacing text.
pub(crate) const SCENARIO: &str = r#"
[run]
duration = "2 s"
warmup = "1 s"

[links.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
law = "xcp"

[flows.ftp]
law = "xcp"
count = 2
path = ["bottleneck"]
"#;

impl Lab {
    pub(crate) fn new(scenario: &str) -> Self {
        let folder =
            tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target directory is writable");
        let lab = Self { folder };
        std::fs::write(lab.path("scenario.toml"), scenario).expect("the target directory is writable");
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Names of what is in the folder, in order.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder is there");
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// `congestlab ARGUMENTS`, started in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_congestlab"));
        command.current_dir(self.folder.path()).args(arguments).env_remove("NO_COLOR");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        Finished(self.command(arguments).output().expect("the binary of this package runs"))
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Finished(pub(crate) Output);

impl Finished {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Insists on the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.0.status.code(),
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout(),
            self.stderr()
        );
        assert!(!self.stderr().contains("panicked"), "{}", self.stderr());
        self
    }

    /// stdout as the one JSON value it is.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.0.stdout)
            .unwrap_or_else(|error| panic!("{error} in:\n{}", self.stdout()))
    }
}

/// The file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
