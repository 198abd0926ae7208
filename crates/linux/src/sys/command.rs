//! `ip` and `tc`, one call at a time, told to whoever wants to know.

use std::process::{Command, Stdio};
use std::{cell::RefCell, io};

use crate::error::{Context, Error, Result};

/// What happens with each command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Run it.
    #[default]
    Run,
    /// Run it and print it to stderr.
    Tell,
    /// Only print it to stdout (`--dry-run`).
    DryRun,
}

thread_local! {
    static MODE: RefCell<Mode> = const { RefCell::new(Mode::Run) };
}

/// From here on in this thread.
pub fn set_mode(mode: Mode) {
    MODE.with(|cell| *cell.borrow_mut() = mode);
}

/// As set for this thread.
pub fn mode() -> Mode {
    MODE.with(|cell| *cell.borrow())
}

/// Says what is about to be done where that is no command, such as loading a program. Returns
/// whether to do it.
pub fn announce(step: &str) -> bool {
    match mode() {
        Mode::Run => true,
        Mode::Tell => {
            eprintln!("+ {step}");
            true
        }
        Mode::DryRun => {
            println!("{step}");
            false
        }
    }
}

/// Runs a command line, words separated by blanks, none of them quoted; returns its output.
///
/// # Errors
/// If the program is not installed or ends with an error.
pub fn run(line: &str) -> Result<String> {
    if !announce(line) {
        return Ok(String::new());
    }
    query(line)
}

/// As [`run`], also in a dry run: for commands that change nothing.
///
/// # Errors
/// If the program is not installed or ends with an error.
pub fn query(line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let package = if program == "nft" { "nftables" } else { "iproute2" };
            return Err(Error::missing(
                format!("{program} is not installed"),
                format!("Debian and Ubuntu: apt-get install {package}"),
            ));
        }
        other => other.context(|| format!("can not run {program}"))?,
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Command { command: line.into(), message })
}
