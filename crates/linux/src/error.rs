//! Why something on this machine did not work.

use std::io;

/// Every way to fail.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks a privilege, a kernel feature or a tool (exit code 4).
    #[error("{what}")]
    Missing {
        /// What it lacks, in plain words.
        what: String,
        /// How to get it; may be empty.
        help: String,
    },
    /// What was asked for is wrong (exit code 2).
    #[error("{what}")]
    Input {
        /// The offending thing and what is allowed.
        what: String,
        /// What to do instead; may be empty.
        help: String,
    },
    /// The system refused something that should have worked (exit code 1).
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// A tool ended with an error (exit code 1).
    #[error("`{command}` failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// What it said.
        message: String,
    },
    /// Somebody pressed Ctrl-C (exit code 130).
    #[error("interrupted")]
    Interrupted,
}

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A missing privilege, feature or tool, and how to get it.
    pub fn missing(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), help: help.into() }
    }

    /// A mistake in what was asked for, and what to do instead.
    pub fn input(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Input { what: what.into(), help: help.into() }
    }

    /// docs/design/contract.md 5.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io { .. } | Self::Command { .. } => 1,
            Self::Input { .. } => 2,
            Self::Missing { .. } => 4,
            Self::Interrupted => 130,
        }
    }

    /// How to help oneself; may be empty.
    pub fn help(&self) -> &str {
        match self {
            Self::Missing { help, .. } | Self::Input { help, .. } => help,
            _ => "",
        }
    }
}

/// Says what was tried when the system refuses.
pub trait Context<T> {
    /// `what` is a clause like "can not open /dev/null".
    ///
    /// # Errors
    /// [`Error::Io`] if there was one.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Io { what: what(), source: error.into() })
    }
}
