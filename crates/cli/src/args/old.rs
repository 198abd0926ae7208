//! Names that commands had until version 0.1. They work as before, say the new name, and go with version 0.3.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{FigureArguments, ManArguments, WiresharkCommand, share};
use crate::linux;

#[derive(Debug, Subcommand)]
pub(crate) enum OldCommand {
    /// Old name of `export figure`
    #[command(hide = true)]
    Plot(FigureArguments),
    /// Old name of `compare --exact`, which ends with status 3 if the runs differ
    #[command(hide = true)]
    Diff(DiffArguments),
    /// Old name of `export wireshark`
    #[command(hide = true, subcommand)]
    Wireshark(WiresharkCommand),
    /// Old name of `export schema`
    #[command(hide = true)]
    Schema,
    /// Old name of `export completions`
    #[command(hide = true)]
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Old name of `export man`
    #[command(hide = true)]
    Man(ManArguments),
    /// Old name of `check machine`
    #[command(hide = true)]
    Doctor(linux::MachineArguments),
    /// Old name of `check scone`
    #[command(hide = true, subcommand)]
    Scone(OldSconeCommand),
}

impl OldCommand {
    /// Old and new name.
    pub(crate) fn names(&self) -> [&'static str; 2] {
        match self {
            Self::Plot(_) => ["plot", "export figure"],
            Self::Diff(_) => ["diff", "compare --exact"],
            Self::Wireshark(_) => ["wireshark", "export wireshark"],
            Self::Schema => ["schema", "export schema"],
            Self::Completions { .. } => ["completions", "export completions"],
            Self::Man(_) => ["man", "export man"],
            Self::Doctor(_) => ["doctor", "check machine"],
            Self::Scone(_) => ["scone test", "check scone"],
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum OldSconeCommand {
    /// Old name of `check scone`
    Test(linux::SconeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// Folder of a run that --out wrote
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) one: PathBuf,
    /// Folder of another run
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) other: PathBuf,
    /// Relative difference up to which metrics count as equal, 0 to 1, such as 0.01
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(crate) tolerance: f64,
    /// List every metric that differs, not only the first twenty
    #[arg(long)]
    pub(crate) all: bool,
    /// Exit with status 3 if the runs differ
    #[arg(long)]
    pub(crate) check: bool,
}
