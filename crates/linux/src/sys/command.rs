//! Command lines of `ip`, `tc` and other tools, run one at a time, and shown on request.

use std::process::{Command, Stdio};
use std::{cell::RefCell, io};

use crate::error::{Context, Error, Result};

/// The treatment of command lines that change something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The command is run.
    #[default]
    Run,
    /// The command is run, and printed to stderr.
    Tell,
    /// The command is only printed, to stdout (`--dry-run`).
    DryRun,
}

thread_local! {
    static MODE: RefCell<Mode> = const { RefCell::new(Mode::Run) };
}

/// Sets the mode of this thread, from now on.
pub fn set_mode(mode: Mode) {
    MODE.with(|cell| *cell.borrow_mut() = mode);
}

/// Returns the mode of this thread.
pub fn mode() -> Mode {
    MODE.with(|cell| *cell.borrow())
}

/// Shows a step that is no command, such as loading a program, as the mode asks. Returns true if it is to be done.
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

/// Runs a command line, whose words are separated by blanks and not quoted; returns its output. In a dry
/// run it only prints the line, and the output is empty.
///
/// # Errors
/// If the program is not installed, or ends with an error.
pub fn run(line: &str) -> Result<String> {
    if !announce(line) {
        return Ok(String::new());
    }
    query(line)
}

/// Runs a command line in a dry run, too: for commands that change nothing.
///
/// # Errors
/// If the program is not installed, or ends with an error.
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
