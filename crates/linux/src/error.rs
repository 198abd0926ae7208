//! Errors of commands that change or measure a running Linux, with exit codes and help.

use std::io;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks a privilege, a kernel feature or a tool (exit code 4).
    #[error("{what}")]
    Missing {
        /// The missing thing, in plain words.
        what: String,
        /// How to get it; may be empty.
        help: String,
    },
    /// A request is wrong (exit code 2).
    #[error("{what}")]
    Input {
        /// The offending value and what is allowed.
        what: String,
        /// Advice on what to do instead; may be empty.
        help: String,
    },
    /// The system refused something that should have worked (exit code 1).
    #[error("{what}: {source}")]
    Io {
        /// The attempted action, as in "can not open /dev/null".
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A tool ended with an error (exit code 1).
    #[error("`{command}` failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// The tool's message.
        message: String,
    },
    /// Somebody pressed Ctrl-C (exit code 130).
    #[error("interrupted")]
    Interrupted,
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error about a missing privilege, feature or tool; `help` says how to get it.
    pub fn missing(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), help: help.into() }
    }

    /// Makes an error about a wrong request; `help` says what to do instead.
    pub fn input(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Input { what: what.into(), help: help.into() }
    }

    /// Returns the exit code of the command that fails so (docs/design/contract.md 5).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io { .. } | Self::Command { .. } => 1,
            Self::Input { .. } => 2,
            Self::Missing { .. } => 4,
            Self::Interrupted => 130,
        }
    }

    /// Returns the advice of the error; may be empty.
    pub fn help(&self) -> &str {
        match self {
            Self::Missing { help, .. } | Self::Input { help, .. } => help,
            _ => "",
        }
    }
}

/// Adds to an error of the system what was being tried.
pub trait Context<T> {
    /// Turns an error into [`Error::Io`]; `what` is a clause like "can not open /dev/null".
    ///
    /// # Errors
    /// Returns [`Error::Io`] if there was an error.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Io { what: what(), source: error.into() })
    }
}

pub(crate) const PRIVILEGE: &str =
    "run as root, or with CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN";

/// Names the privilege that is missing, or passes the kernel's error on.
pub(crate) fn refused(what: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::missing(format!("may not {what}"), PRIVILEGE),
        _ => Error::Io { what: format!("can not {what}"), source: error },
    }
}
