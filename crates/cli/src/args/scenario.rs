//! The scenario of a command, and changes to it.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// The scenario that a command reads, with changes.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArguments {
    /// Scenario file in TOML, such as scenarios/first.toml
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// Changes of the command line to a scenario.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Change a value of the file; may be repeated: --set links.bottleneck.rate="1 Gbit/s"
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
    /// Seed of every random stream, a whole number [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// `path=value`; keys in quotes may hold `=`.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '=') if at > 0 => {
                return Ok((text[..at].trim().to_owned(), text[at + 1..].trim().to_owned()));
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    Err("expected PATH=VALUE, such as links.bottleneck.rate=\"1 Gbit/s\"".into())
}
