//! The command line, as one definition: help, completions and man pages come from it too.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use congestlab_scenario::units::Time;

use crate::linux;

/// Number, commit and schema: what a result depends on.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CONGESTLAB_COMMIT"), ")");
/// `VERSION` for people.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{} (commit {}, code {}, results schema 1; kernel law: {})",
        env!("CARGO_PKG_VERSION"),
        env!("CONGESTLAB_COMMIT"),
        env!("CONGESTLAB_CODE"),
        linux::law_name(),
    )
});

const EXIT_STATUS: &str = "\
Exit status:
  0    done
  1    failed
  2    bad input
  3    a claim or check does not hold
  4    this machine can not (what it lacks is named)
  130  interrupted";

/// Simulates explicit congestion control (XCP) beside TCP from one scenario file.
#[derive(Debug, Parser)]
#[command(name = "congestlab", version = LONG_VERSION.as_str(), after_help = EXIT_STATUS, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON object instead of tables, and diagnostics as JSON on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on stderr but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// No colours (as does the environment variable NO_COLOR)
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and print what came out
    Run(RunArguments),
    /// Find out whether a scenario is right, without running it
    Check(CheckArguments),
    /// Teach Wireshark and tshark the XCP congestion header
    #[command(subcommand)]
    Wireshark(WiresharkCommand),
    /// Run every point of a scenario's [sweep] on all cores; what is complete is not run again
    Sweep(SweepArguments),
    /// Run what papers show, and hold it against what they claim
    #[command(subcommand)]
    Papers(PapersCommand),
    /// Draw a run that is on disk: report.html, and pictures for a paper
    Report(ReportArguments),
    /// Run XCP and CUBIC on one bottleneck: a table and a picture
    Demo(DemoArguments),
    /// Say which packet of a flow got which feedback at a time, and why
    Explain(ExplainArguments),
    /// Say in what two runs differ: configuration, metrics, first event
    Diff(DiffArguments),
    /// Say how far two runs agree, a simulated and a live one or any two, and draw one over the other
    Compare(CompareArguments),
    #[command(flatten)]
    Linux(linux::Command),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write all of them to a folder
    Man {
        /// Write congestlab.1, congestlab-run.1, ... here
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out: Option<PathBuf>,
    },
}

/// A scenario, as all commands take it.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArguments {
    /// The scenario, in TOML
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// What the command line changes in a scenario.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Change a value of the file: --set links.bottleneck.rate="1 Gbit/s"
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
    /// Seed of every random stream, instead of the file's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Write the time series as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) series: Option<PathBuf>,
    /// Write drops, errors, marks, timeouts, retransmits and control intervals as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    /// Write DIR/<scenario>-<seed>-<hash>/ with scenario.toml, summary.json, flows.parquet,
    /// links.parquet, events.parquet and report.html
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Write what every link carried to DIR/<link>.pcapng, for Wireshark and tshark
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Bytes of each packet that --pcap keeps; always all of its headers
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "pcap")]
    pub(crate) snaplen: u16,
    /// How to list flows: one by one, or as distributions in groups above 10,000
    #[arg(long, value_enum, default_value_t = FlowsShown::List, value_name = "HOW")]
    pub(crate) flows: FlowsShown,
    /// Repeat the run on the reference engine, with half the window and with two threads; fail with
    /// status 3 if one differs
    #[arg(long)]
    pub(crate) verify: bool,
    /// Threads of the engine at most: no more than cores, and only while they are worth while. The
    /// result is the same for every number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    pub(crate) threads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowsShown {
    /// One by one
    List,
    /// As distributions, in groups above 10,000
    Summary,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Print the scenario with every default written out
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Hold the results against the file's [[claims]]; fail with status 3 if one does not hold
    #[arg(long)]
    pub(crate) check: bool,
    /// Where results are kept, one file a point [default: sweeps/<scenario>]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Points to run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PapersCommand {
    /// Say which papers there are, and how many of their claims hold
    List {
        /// A folder with a folder for each paper [default: those of this project]
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        papers: Option<PathBuf>,
    },
    /// Run a paper's figures and print a verdict on each claim; status 3 if one fails that held
    Run(PapersRunArguments),
    /// Run figures with other values of what they assume, and say which verdicts turn
    Ranges(PapersRangesArguments),
    /// Write report.html: figures, quotes and verdicts
    Report(PapersReportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PapersSource {
    /// The paper: see `papers list`
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// A folder with a folder for each paper [default: those of this project]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) papers: Option<PathBuf>,
    /// Where results and pictures are kept [default: papers-out/KEY]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Runs at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

/// Another simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// ns-2.35: plain XCP and TCP
    Ns2,
}

impl PapersSource {
    /// Where results and pictures go; with another law beside them.
    pub(crate) fn folder(&self, key: &str, law: Option<&str>) -> PathBuf {
        let name = law.map_or_else(|| key.to_owned(), |law| format!("{key}-{law}"));
        self.out.clone().unwrap_or_else(|| PathBuf::from("papers-out").join(name))
    }
}

#[derive(Debug, Args)]
pub(crate) struct PapersRunArguments {
    #[command(flatten)]
    pub(crate) source: PapersSource,
    /// One figure, such as fig09 [default: all]
    #[arg(value_name = "FIG")]
    pub(crate) figure: Option<String>,
    /// Run this protocol in the place of the paper's own; verdicts then change no exit status
    #[arg(long, value_name = "NAME")]
    pub(crate) law: Option<String>,
    /// Leave out figures that take long
    #[arg(long)]
    pub(crate) quick: bool,
    /// Judge the claims on another simulator's runs too, where it has the protocol
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) peer: Option<Peer>,
}

#[derive(Debug, Args)]
pub(crate) struct PapersRangesArguments {
    #[command(flatten)]
    pub(crate) source: PapersSource,
    /// One figure, such as fig09 [default: all]
    #[arg(value_name = "FIG")]
    pub(crate) figure: Option<String>,
    /// Write ranges.toml and README.md into the paper's folder, too
    #[arg(long, requires = "papers")]
    pub(crate) write: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PapersReportArguments {
    #[command(flatten)]
    pub(crate) source: PapersSource,
    /// One figure, such as fig09; what is written of others stays [default: all]
    #[arg(value_name = "FIG")]
    pub(crate) figure: Option<String>,
    /// Write README.md and verdicts.toml into the paper's folder, too
    #[arg(long, requires = "papers", conflicts_with = "quick")]
    pub(crate) write: bool,
    /// Status 3 if a verdict or what was measured is not what verdicts.toml says
    #[arg(long, conflicts_with = "write")]
    pub(crate) check: bool,
    /// Leave out figures that take long
    #[arg(long)]
    pub(crate) quick: bool,
    /// Judge the claims on another simulator's runs too, where it has the protocol
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) peer: Option<Peer>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WiresharkCommand {
    /// Put the dissector xcp_cc into a plug-in folder
    Install(PluginFolder),
    /// Take it away again
    Uninstall(PluginFolder),
    /// Print it
    Print,
}

#[derive(Debug, Args)]
pub(crate) struct PluginFolder {
    /// The folder [default: Wireshark's personal one, ~/.local/lib/wireshark/plugins]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The folder of the run, as --out of `run` leaves it
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: PathBuf,
    /// Where the report goes [default: RUN/report.html]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Draw every chart as SVG and PNG here, too
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Draw this scenario instead: one column for each point of its [sweep]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Where the picture and runs/ go
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The folder of a run that --out wrote, or a scenario
    #[arg(value_name = "RUN", value_hint = ValueHint::AnyPath)]
    pub(crate) run: PathBuf,
    /// The flow: ftp[3] or ftp/3; ftp if it is one
    #[arg(long, value_name = "FLOW")]
    pub(crate) flow: String,
    /// The simulated time, such as 5.08s: the flow's first packet to leave the link from then on
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Time,
    /// A link of the flow's path [default: the first one that runs a law, or the first]
    #[arg(long, value_name = "LINK")]
    pub(crate) link: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The folder of a run that --out wrote
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) one: PathBuf,
    /// Another one
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) other: PathBuf,
    /// Relative difference below which metrics count as equal
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(crate) tolerance: f64,
    /// List every metric that differs, not the first twenty
    #[arg(long)]
    pub(crate) all: bool,
    /// Fail with status 3 if the runs differ
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The folder of a run, simulated or live, that --out wrote
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) one: PathBuf,
    /// Another one of the same flows and links; which is first changes no verdict
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) other: PathBuf,
    /// Draw throughput, windows and queues of one over the other: FILE.svg, FILE.png, or both
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plot: Option<PathBuf>,
    /// What may differ by how much: goodput and rtt by a share, queue, queue_p95, drops and
    /// utilization by a number, convergence by a factor [default: goodput=0.05, queue=10,
    /// convergence=1.5; the others are not judged]
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::compare::tolerance)]
    pub(crate) tolerance: Vec<(&'static str, f64)>,
    /// Show every number, not only those that matter
    #[arg(long)]
    pub(crate) all: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".into()),
    }
}

/// `path=value`; keys in quotes may hold `=`.
fn assignment(text: &str) -> Result<(String, String), String> {
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

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=1024).contains(&number) => Ok(number),
        _ => Err("expected a number from 1 to 1024".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_contradicts_itself_nowhere() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_assignment_splits_at_the_first_equals_sign_outside_quotes() {
        let split = |text| assignment(text).map(|(path, value)| format!("{path}|{value}"));
        assert_eq!(split("a.b=1"), Ok("a.b|1".into()));
        assert_eq!(split("a = \"x=y\""), Ok("a|\"x=y\"".into()));
        assert_eq!(split("links.\"a=b\".rate=1 Mbit/s"), Ok("links.\"a=b\".rate|1 Mbit/s".into()));
        assert!(split("a.b").is_err() && split("=1").is_err());
    }
}
