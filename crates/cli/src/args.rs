//! The command line, as one definition: help, completions and man pages come from it too.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};
use congestlab_scenario::chart::Kind;
use congestlab_scenario::measured::Place;
use congestlab_scenario::sweep::Shard;
use congestlab_scenario::units::Time;

mod help;
mod old;
mod scenario;

pub(crate) use help::{allowed, command};
pub(crate) use old::{OldCommand, OldSconeCommand};
use scenario::assignment;
pub(crate) use scenario::{Changes, ScenarioArguments};

use crate::linux;
use crate::screen::Screen;

/// The version for people.
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

const RUN_EXAMPLES: &str = "\
Examples:
  congestlab run scenarios/first.toml --out runs
  congestlab run scenarios/first.toml --set flows.ftp.count=20 --seed 7 --series series.csv";
const REPORT_EXAMPLE: &str = "\
Example:
  congestlab report runs/first-1-* --figures pictures";
const SERVE_EXAMPLE: &str = "\
Example:
  congestlab serve runs";
const EXPORT_EXAMPLE: &str = "\
Examples:
  congestlab export figure sweeps/loss --kind cdf --y completion_s -o completion.pdf
  congestlab export qlog runs/first-1-* -o first.qlog";
const EXPLAIN_EXAMPLE: &str = "\
Example:
  congestlab explain runs/first-1-* --flow ftp/9 --at 2.2s";
const COMPARE_EXAMPLE: &str = "\
Example:
  congestlab compare runs/shares-1-* live/shares-1-*-live --tolerance goodput=0.1
  congestlab compare runs/two-1-* iperf3.json --plot two.svg
  congestlab compare runs/first-1-* runs/first-2-* --exact=0.01";
const PAPERS_EXAMPLE: &str = "\
Example:
  congestlab papers run katabi2002 fig09 --quick";
const ACCEPTANCE_EXAMPLE: &str = "\
Example:
  congestlab acceptance xcp2 --quick --html card.html";

const SEARCH_EXAMPLE: &str = "\
Example:
  congestlab search xcp2 --against cubic --budget 5000 --out found";

/// Simulates explicit congestion control (XCP) beside TCP from one scenario file.
#[derive(Debug, Parser)]
#[command(name = "congestlab", version = LONG_VERSION.as_str(), after_help = EXIT_STATUS, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Reads the arguments of the process.
///
/// # Errors
///
/// The text for the user: of a mistake, or help and version.
pub(crate) fn parse() -> Result<Arguments, clap::Error> {
    Arguments::from_arg_matches(&command().try_get_matches()?).map_err(|error| error.format(&mut command()))
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON object instead of tables, and diagnostics on stderr as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing on stderr but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print details on stderr, such as the commands that change the system
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Print without colours, as with the environment variable NO_COLOR
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

impl Common {
    /// Returns the form of output that these options ask for.
    pub(crate) fn screen(&self) -> Screen {
        let mut screen = Screen::new(self.json, self.quiet, self.verbose > 0);
        screen.color &= !self.no_color;
        screen
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and print its results
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Check a scenario without running it; a control law; this machine
    Check(CheckArguments),
    /// Write the beginning of a control law of your own
    #[command(subcommand)]
    New(NewCommand),
    /// Build a control law for kernels
    #[command(subcommand)]
    Build(BuildCommand),
    /// Run every point of a scenario's [sweep] on all cores
    ///
    /// What is complete is not run again.
    Sweep(SweepArguments),
    /// Run the figures of papers and judge the claims about them
    #[command(subcommand)]
    Papers(PapersCommand),
    /// Measure a law beside others, and print its report card
    #[command(after_help = ACCEPTANCE_EXAMPLE)]
    Acceptance(AcceptanceArguments),
    /// Search for networks in which a law does harm
    ///
    /// Writes the simplest of them as scenarios.
    #[command(after_help = SEARCH_EXAMPLE)]
    Search(SearchArguments),
    /// Draw a run or a sweep that is on disk: report.html, pictures
    #[command(after_help = REPORT_EXAMPLE)]
    Report(ReportArguments),
    /// Show a folder of runs and sweeps in a browser of this machine
    #[command(after_help = SERVE_EXAMPLE)]
    Serve(ServeArguments),
    /// Run XCP and CUBIC on one bottleneck: a table and a picture
    Demo(DemoArguments),
    /// Explain which feedback a packet got at a time, and why
    #[command(after_help = EXPLAIN_EXAMPLE)]
    Explain(ExplainArguments),
    /// Compare two runs, or a run with what iperf3, ss or flent measured
    ///
    /// Number by number, such as a simulated and a live run; draws one over the other; with --exact, down to the first
    /// packet that differs.
    #[command(after_help = COMPARE_EXAMPLE)]
    Compare(CompareArguments),
    /// Write figures, qlog, metrics; man pages, completions, dissector
    #[command(subcommand, after_help = EXPORT_EXAMPLE)]
    Export(ExportCommand),
    #[command(flatten)]
    Linux(linux::Command),
    #[command(flatten)]
    Old(OldCommand),
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Write the time series to FILE as CSV: t_s,element,index,metric,value
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) series: Option<PathBuf>,
    /// Write drops, errors, marks, timeouts, retransmits and control intervals to FILE as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    /// Write DIR/<scenario>-<seed>-<hash>/ with scenario.toml, summary.json, flows.parquet,
    /// links.parquet, events.parquet and report.html
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// --out is the folder of the run itself, for make and Snakemake: an older run there is replaced
    #[arg(long, requires = "out")]
    pub(crate) exact: bool,
    /// Write the packets of every link to DIR/<link>.pcapng, for Wireshark and tshark
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Bytes of each packet that --pcap keeps; all of its headers are always kept
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "pcap")]
    pub(crate) snaplen: u16,
    /// List of the flows in results: one by one, or distributions for groups of more than 10,000
    #[arg(long, value_enum, default_value_t = FlowsShown::List, value_name = "HOW")]
    pub(crate) flows: FlowsShown,
    /// Repeat the run on the reference engine, with half the window and with two threads; exit with
    /// status 3 if a result differs
    #[arg(long)]
    pub(crate) verify: bool,
    /// Most threads of the engine, 1 to 1024; it uses no more than there are cores, and only while they
    /// save time. The result is the same for every number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    pub(crate) threads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowsShown {
    /// One by one
    List,
    /// As distributions, for groups of more than 10,000
    Summary,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct CheckArguments {
    #[command(subcommand)]
    pub(crate) what: Option<CheckCommand>,
    /// Scenario file in TOML, such as scenarios/first.toml
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required = true)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Print the scenario as TOML with every default written out
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Put a control law to its trial: any input, intervals, pools, windows, both engines, slow links and fast ones
    Law {
        /// Name of the protocol, such as xcp
        name: String,
    },
    #[command(flatten)]
    Linux(linux::CheckCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum NewCommand {
    /// Write a program with a control law of your own, which has every command of this one
    Law(NewLawArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BuildCommand {
    /// Build a link law of your own into the program that `router attach` puts at an interface (wants clang and Rust for BPF)
    Law {
        /// Name of the protocol
        name: String,
        /// File of the program [default: router-NAME.bpf.o beside this command, where `router attach` looks]
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewLawArguments {
    /// Name of the protocol, and of the folder: a to z first, then a to z, 0 to 9 and -
    pub(crate) name: String,
    /// Folder of congestlab's sources [default: where this command was built]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) congestlab: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Vary a value, beside what [sweep] varies: --grid flows.ftp.law=xcp,cubic; a * stands for any
    /// name, repeated options for all combinations
    #[arg(long, value_name = "PATH=A,B,C", value_parser = axis)]
    pub(crate) grid: Vec<(String, Vec<String>)>,
    /// Run each point with the seeds 1 to N
    #[arg(long, value_name = "N", value_parser = seeds, conflicts_with = "seed")]
    pub(crate) seeds: Option<u64>,
    /// Hold the results against the file's [[claims]]; fail with status 3 if one does not hold
    #[arg(long)]
    pub(crate) check: bool,
    /// Where results are kept: results.parquet, results.csv, points/ [default: sweeps/<scenario>]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Keep the folder of each run too, in runs/ of --out: series, events, summary.json
    #[arg(long)]
    pub(crate) folders: bool,
    /// Points to run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Run the I-th of N parts of the points only; each point is in one of them
    #[arg(long, value_name = "I/N", value_parser = shard, conflicts_with_all = ["check", "merge"])]
    pub(crate) shard: Option<Shard>,
    /// Run nothing: make the table of what is complete in --out and in these folders
    #[arg(long)]
    pub(crate) merge: bool,
    /// With --merge: folders in which other parts of the same sweep were run
    #[arg(value_name = "DIR", requires = "merge", value_hint = ValueHint::DirPath)]
    pub(crate) from: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptanceArguments {
    /// Law of flows, such as xcp2; links run its link law
    #[arg(value_name = "LAW")]
    pub(crate) law: String,
    /// One case, such as fairness; may be repeated [default: all]
    #[arg(long, value_name = "CASE")]
    pub(crate) only: Vec<String>,
    /// Leave out cases that take long
    #[arg(long)]
    pub(crate) quick: bool,
    /// Law to stand beside it; may be repeated [default: xcp, xcp2, rcp, abc, cubic, bbr3, prague]
    #[arg(long, value_name = "LAW", conflicts_with = "parts")]
    pub(crate) beside: Vec<String>,
    /// Beside it the law itself, with each of its parts that are on switched off
    #[arg(long)]
    pub(crate) parts: bool,
    /// Seed of every random stream, a whole number [default: that of each case, 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Write the card as a page to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Fail with status 3 if the law misses a bound
    #[arg(long)]
    pub(crate) check: bool,
    /// Runs at once, 1 to 1024 [default: one for each core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// Law of flows, such as xcp2; links run its link law
    #[arg(value_name = "LAW")]
    pub(crate) law: String,
    /// Switch a part of the law off, such as bound_headers; may be repeated
    #[arg(long, value_name = "PART")]
    pub(crate) without: Vec<String>,
    /// Count the harm that is beyond another law's in the same case; each case is two runs then
    #[arg(long, value_name = "LAW")]
    pub(crate) against: Option<String>,
    /// Seed of the search and of its runs: the same seed and budget find the same on every machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Runs in all, of 20 simulated seconds each, 10 to 10000000
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = budget)]
    pub(crate) budget: u64,
    /// End after this time, such as "10 min", with what was found so far; that depends on the machine
    #[arg(long, value_name = "TIME")]
    pub(crate) limit: Option<Time>,
    /// Cases to write at most
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub(crate) keep: usize,
    /// New or empty folder for a scenario for each case, and found.json [default: found/LAW-SEED]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Runs at once, 1 to 1024 [default: one for each core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PapersCommand {
    /// List the papers, with the number of their claims that hold
    List {
        /// Folder with a folder for each paper [default: the papers of this project]
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        papers: Option<PathBuf>,
        /// Count the claims that another simulator has judged, and the others by the reason why it has not; `--json` has each
        #[arg(long, value_enum, value_name = "NAME")]
        peer: Option<Peer>,
    },
    /// Run a paper's figures and print a verdict on each claim; exit with status 3 if one fails that held
    #[command(after_help = PAPERS_EXAMPLE)]
    Run(PapersRunArguments),
    /// Run figures with other values of their assumptions, and print which verdicts change
    Ranges(PapersRangesArguments),
    /// Write report.html with figures, quotes and verdicts
    Report(PapersReportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PapersSource {
    /// Key of the paper, such as katabi2002: see `papers list`
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// Folder with a folder for each paper [default: the papers of this project]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) papers: Option<PathBuf>,
    /// Folder for results and pictures [default: papers-out/KEY]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Runs at once, 1 to 1024 [default: one for each core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

/// Another simulator, to compare with.
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
    /// Run this law, such as cubic, in the place of the paper's own; verdicts then change no exit status
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
    /// Write ranges.toml and README.md into the paper's folder as well
    #[arg(long, requires = "papers")]
    pub(crate) write: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PapersReportArguments {
    #[command(flatten)]
    pub(crate) source: PapersSource,
    /// One figure, such as fig09; written results of others stay [default: all]
    #[arg(value_name = "FIG")]
    pub(crate) figure: Option<String>,
    /// Write README.md and verdicts.toml into the paper's folder as well
    #[arg(long, requires = "papers", conflicts_with = "quick")]
    pub(crate) write: bool,
    /// Exit with status 3 if a verdict or a measured value is not that of verdicts.toml
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
    /// Copy the dissector xcp_cc into a plug-in folder
    Install(PluginFolder),
    /// Remove the dissector from a plug-in folder
    Uninstall(PluginFolder),
    /// Print the dissector, a program in Lua
    Print,
}

#[derive(Debug, Args)]
pub(crate) struct PluginFolder {
    /// Plug-in folder [default: Wireshark's personal one, ~/.local/lib/wireshark/plugins]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Folder of a run or a sweep that --out wrote
    #[arg(value_name = "RUN|SWEEP", value_hint = ValueHint::DirPath)]
    pub(crate) run: PathBuf,
    /// File for the report, - for stdout [default: report.html in that folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Folder for every chart as SVG and PNG as well
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Draw sweeps and runs that are on disk for a publication: SVG, PNG, PDF, and their numbers
    Figure(FigureArguments),
    /// Write the flows of a run that is on disk for viewers of qlog: a trace for each flow, packet by packet, in JSON
    Qlog {
        #[command(flatten)]
        run: ExportArguments,
        /// Version of qlog
        #[arg(long, value_name = "SCHEMA", value_enum, default_value_t = QlogSchema::V03)]
        schema: QlogSchema,
    },
    /// Write the numbers of a run that is on disk as text that Prometheus and its like read
    Openmetrics(ExportArguments),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Install a dissector of the XCP congestion header for Wireshark and tshark
    #[command(subcommand)]
    Wireshark(WiresharkCommand),
    /// Print completions for a shell
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write those of all commands to a folder
    Man(ManArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder for congestlab.1, congestlab-run.1, ... [default: the first is printed]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Folder of a run that --out wrote
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: PathBuf,
    /// File to write [default: the standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

/// A version of qlog.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum QlogSchema {
    /// Version 0.3, the newest that qvis opens
    #[value(name = "0.3")]
    V03,
    /// The newest draft: main-schema-14 with quic-events-13
    #[value(name = "draft-14")]
    Draft14,
}

#[derive(Debug, Args)]
pub(crate) struct FigureArguments {
    /// The folder of a sweep, or folders of runs as --out leaves them; runs are drawn over each other
    #[arg(value_name = "SWEEP|RUN", value_hint = ValueHint::DirPath, required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// What is drawn [default: what [figure] says; of runs time, of a sweep line]
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    pub(crate) kind: Option<Kind>,
    /// What lies on the x axis: a path of the sweep, or time [default: the first path with numbers]
    #[arg(long, value_name = "PATH")]
    pub(crate) x: Option<String>,
    /// What is drawn over it: a value of flows, links or groups, or a series of runs, such as
    /// goodput_bps, jain, links.bottleneck.utilization [default: by kind]
    #[arg(long, value_name = "NAME")]
    pub(crate) y: Option<String>,
    /// What makes lines: law, element, label, or a path of the sweep [default: all that differs]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<String>,
    /// How wide: 3.3in (a column of a page), 7in, or another width from 2in to 20in [default: 3.3in]
    #[arg(long, value_name = "WIDTH", value_parser = width)]
    pub(crate) width: Option<f64>,
    /// Pixels per inch of a PNG, from 30 to 1200 [default: 300]
    #[arg(long, value_name = "N", value_parser = dpi)]
    pub(crate) dpi: Option<u64>,
    /// Formats of the picture, a file for each: --format svg,png [default: the ending of -o, or svg]
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub(crate) format: Vec<PlotFormat>,
    /// Background: light (white), dark (black), or auto, with which an SVG follows the reader's setting
    #[arg(long, value_enum, default_value_t = crate::picture::Mode::Light, value_name = "MODE")]
    pub(crate) mode: crate::picture::Mode,
    /// Write the numbers of the picture beside it, as CSV
    #[arg(long)]
    pub(crate) csv: bool,
    /// Write congestlab.mplstyle beside it: the same colours, markers and sizes for matplotlib
    #[arg(long)]
    pub(crate) mplstyle: bool,
    /// Where the picture goes: FILE.svg, FILE.png, FILE.pdf [default: the name of the folder, here]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

/// What `plot` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum PlotFormat {
    /// Lines and text, the font inside
    Svg,
    /// Pixels
    Png,
    /// A page of the picture's size, the font inside
    Pdf,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Scenario to draw instead: one column for each point of its [sweep], or one for a file without
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Folder for the picture and for runs/
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Folder of a run that --out wrote, or a scenario file
    #[arg(value_name = "RUN", value_hint = ValueHint::AnyPath)]
    pub(crate) run: PathBuf,
    /// Flow to look at: ftp[3] or ftp/3; ftp if its group has one flow
    #[arg(long, value_name = "FLOW")]
    pub(crate) flow: String,
    /// Simulated time, such as 5.08s; the flow's first packet to leave the link from then on is explained
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Time,
    /// Link of the flow's path [default: the first one that runs a law, or the first]
    #[arg(long, value_name = "LINK")]
    pub(crate) link: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Folder in which runs (run --out) and sweeps are looked for, four folders deep
    #[arg(value_name = "RUNS", value_hint = ValueHint::DirPath)]
    pub(crate) runs: PathBuf,
    /// Port on 127.0.0.1 [default: one that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Folder of a run, simulated or live, that --out wrote
    #[arg(value_name = "RUN", value_hint = ValueHint::AnyPath)]
    pub(crate) one: PathBuf,
    /// Folder of another run of the same flows and links, or a file of measured flows: of `iperf3 -J`, of `ss -tin` over
    /// time, of flent; the order changes no verdict
    #[arg(value_name = "RUN|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) other: PathBuf,
    /// Another file of the same measurement, whose flows are added; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) with: Vec<PathBuf>,
    /// Flow of the run and the measured flow that it is held against, by number or name, such as 'ftp[0]=1'; may be
    /// repeated, and compares no others [default: all, in order]
    #[arg(long, value_name = "FLOW=MEASURED", value_parser = crate::compare::pair)]
    pub(crate) pair: Vec<(Place, String)>,
    /// Time of the run at which the first measured flow begins, in seconds [default: when the first of the run's does]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true, value_parser = crate::compare::at)]
    pub(crate) at: Option<f64>,
    /// Draw throughput, windows and queues of one run over the other: FILE.svg, FILE.png, or both if
    /// FILE has no extension
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plot: Option<PathBuf>,
    /// With --json: put the picture into the object, as svg
    #[arg(long)]
    pub(crate) inline: bool,
    /// Largest difference that still agrees; may be repeated: of goodput, completion and rtt as a share, of queue and
    /// queue_p95 in packets, of drops and utilization as a number, of convergence as a factor
    /// [default: goodput=0.05, completion=0.1, queue=10, convergence=1.5; the others are not judged]. Of measured flows: goodput, rtt,
    /// cwnd as a share, retransmissions as a number, convergence; only goodput is judged by default
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::compare::tolerance)]
    pub(crate) tolerance: Vec<(&'static str, f64)>,
    /// Show every number, not only those that matter
    #[arg(long)]
    pub(crate) all: bool,
    /// Compare two runs of the simulator exactly: settings, every metric, the first event and the first packet that
    /// differ. Metrics may differ by SHARE of their value, 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE", num_args = 0..=1, require_equals = true, default_missing_value = "0",
        value_parser = share, conflicts_with_all = ["with", "pair", "at", "plot", "inline", "tolerance"])]
    pub(crate) exact: Option<f64>,
}

fn kinds() -> impl TypedValueParser<Value = Kind> {
    let known = Kind::ALL.map(|(name, _, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(known).try_map(|name| Kind::named(&name).ok_or("there is no such kind"))
}

fn width(text: &str) -> Result<f64, &'static str> {
    congestlab_scenario::figure::width(text)
}

fn dpi(text: &str) -> Result<u64, String> {
    let allowed = congestlab_scenario::figure::DPI;
    match text.parse() {
        Ok(dpi) if allowed.contains(&dpi) => Ok(dpi),
        _ => Err(format!("expected a number from {} to {}", allowed.start(), allowed.end())),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".into()),
    }
}

/// `path=a,b,c`; what is in quotes or brackets is one value.
fn axis(text: &str) -> Result<(String, Vec<String>), String> {
    const HELP: &str = "expected PATH=A,B,C, such as flows.ftp.law=xcp,cubic";
    let (path, values) = assignment(text).map_err(|_| HELP)?;
    let (mut list, mut from, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, c) in values.char_indices() {
        match (quote, c) {
            (None, ',') if depth == 0 => {
                list.push(values[from..at].trim().to_owned());
                from = at + 1;
            }
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    list.push(values[from..].trim().to_owned());
    if list.iter().any(String::is_empty) {
        return Err(format!("a value of `{path}` is empty; {HELP}"));
    }
    Ok((path, list))
}

fn seeds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (1..=100_000).contains(&number) => Ok(number),
        _ => Err("expected a number from 1 to 100000".into()),
    }
}

fn budget(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (10..=10_000_000).contains(&number) => Ok(number),
        _ => Err("expected a number from 10 to 10000000".into()),
    }
}

fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
        _ => Err("expected I/N with I from 1 to N, such as 2/8".into()),
    }
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

    #[test]
    fn an_axis_splits_at_commas_outside_quotes_and_brackets() {
        let split = |text| axis(text).map(|(path, values)| format!("{path}|{}", values.join("|")));
        assert_eq!(split("a.b=1, 2,3"), Ok("a.b|1|2|3".into()));
        assert_eq!(split("a=10 Mbit/s,1 Gbit/s"), Ok("a|10 Mbit/s|1 Gbit/s".into()));
        assert_eq!(split(r#"a="x,y",{ k = [1, 2] },[3, 4]"#), Ok(r#"a|"x,y"|{ k = [1, 2] }|[3, 4]"#.into()));
        for text in ["a", "a=", "a=1,", "a=,1", "=1"] {
            assert!(split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_shard_is_one_of_so_many() {
        assert_eq!(shard("2/8"), Ok(Shard { number: 2, of: 8 }));
        for text in ["5/3", "0/3", "1/0", "0/0", "1", "-1/3", "1/3/5", "a/b", ""] {
            assert!(shard(text).is_err(), "{text}");
        }
    }
}
