//! Measurements of real flows that other programs recorded: `iperf3 -J`, `ss -tin` over time, flent. What they know is
//! held against a run of the same flows ([`against`]).
//!
//! A file is a stranger's: it has a limit, and what is wrong in it is refused with its place. Nothing is guessed: what a
//! program did not record is missing from the comparison.

mod against;
mod flent;
mod iperf3;
mod json;
mod ss;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

pub use self::against::{Against, MEASURED_QUANTITIES, Pairing, Place, against, pair, tolerances};
use crate::showing::compare::Curve;
use congestlab_text::disk;

/// Largest file that is read, and largest content of a packed one, bytes.
pub const MEASURED_BYTES_MAX: u64 = 32 << 20;
/// Largest number in a file that is believed: larger ones are no measurement, and sums of them no numbers.
const NUMBER_MAX: f64 = 1e15;
/// Largest time that is believed, s: a thousand years after 1970. Milliseconds since 1970 are beyond it from 1971 on.
const TIME_MAX: f64 = 3.2e10;
/// Most characters that an error shows of a text that cannot be read.
const SHOWN_MAX: usize = 80;

/// Programs that record flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// `iperf3 -J`.
    Iperf3,
    /// `ss -tin`, again and again.
    Ss,
    /// flent.
    Flent,
}

impl Recorder {
    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Ss => "ss",
            Self::Flent => "flent",
        }
    }
}

/// Flows that a program recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Place of the file.
    pub path: PathBuf,
    /// Program that wrote it.
    pub by: Recorder,
    /// Flows, in the order of the file.
    pub flows: Vec<MeasuredFlow>,
    /// Reasons for which its numbers mean less.
    pub notes: Vec<String>,
}

/// A flow that was measured. Times are seconds on the clock of its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredFlow {
    /// Name: its addresses, or what flent calls it.
    pub name: String,
    /// Time at which it began, s: earlier than `from_s` if the recorder left out its start.
    pub began_s: f64,
    /// Time from which it was measured, s.
    pub from_s: f64,
    /// Bytes of payload, over time.
    pub bytes: Vec<Span>,
    /// Packets sent again, over time; `None`: the file does not say when.
    pub retransmits: Option<Vec<Span>>,
    /// Packets sent again, in all.
    pub retransmits_total: Option<f64>,
    /// Times, and round-trip times as the kernel smooths them, ms.
    pub rtt_ms: Vec<(f64, f64)>,
    /// Times and congestion windows, in segments.
    pub cwnd_packets: Vec<(f64, f64)>,
}

/// An amount that came between two times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Begin, s.
    pub from_s: f64,
    /// End, s.
    pub to_s: f64,
    /// Bytes or packets.
    pub amount: f64,
}

impl MeasuredFlow {
    /// Returns the time until which it was measured, s.
    pub fn until_s(&self) -> f64 {
        self.bytes.iter().map(|span| span.to_s).fold(self.from_s, f64::max)
    }

    /// Returns the bytes that came between two times; a span is spread evenly over its time.
    pub fn bytes_between(&self, from_s: f64, to_s: f64) -> f64 {
        let part = |span: &Span| {
            let common = span.to_s.min(to_s) - span.from_s.max(from_s);
            let length = span.to_s - span.from_s;
            if common <= 0.0 || length <= 0.0 { 0.0 } else { span.amount * (common / length).min(1.0) }
        };
        total(self.bytes.iter().map(part))
    }

    /// Returns the packets sent again between two times: those of spans whose middle lies there.
    pub fn retransmits_between(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let spans = self.retransmits.as_ref()?.iter();
        let inside = spans.filter(|span| {
            let middle = f64::midpoint(span.from_s, span.to_s);
            from_s <= middle && middle <= to_s
        });
        Some(total(inside.map(|span| span.amount)))
    }

    /// Returns the rates of the spans at their ends, bit/s, on a clock that is `shift_s` later.
    fn rates(&self, shift_s: f64) -> Curve {
        let points = self.bytes.iter().filter(|span| span.to_s > span.from_s);
        let points = points.map(|span| (span.to_s + shift_s, span.amount * 8.0 / (span.to_s - span.from_s)));
        Curve { name: self.name.clone(), points: points.collect() }
    }
}

/// Returns a sum that is 0 of nothing, where [`Iterator::sum`] has -0.
fn total(amounts: impl Iterator<Item = f64>) -> f64 {
    amounts.fold(0.0, |sum, amount| sum + amount)
}

/// Returns the beginning of a text for an error, on one line.
fn shown(text: &str) -> String {
    let text = text.trim();
    let begin: String = text.chars().take(SHOWN_MAX).collect();
    let more = if begin.len() < text.len() { "..." } else { "" };
    format!("{}{more}", begin.replace(['\n', '\r', '\t'], " "))
}

/// Returns the mean of the values between two times.
fn mean_between(points: &[(f64, f64)], from_s: f64, to_s: f64) -> Option<f64> {
    let inside = || points.iter().filter(|(at, _)| from_s <= *at && *at <= to_s).map(|(_, value)| *value);
    let count = inside().count();
    (count > 0).then(|| inside().sum::<f64>() / count as f64)
}

/// The reason for which a file is no measurement that can be compared.
#[derive(Debug, thiserror::Error)]
#[error("{}{place}: {problem}", path.display())]
pub struct MeasuredError {
    /// The file.
    pub path: PathBuf,
    /// Place in it, such as `, line 3`; empty: all of it.
    pub place: String,
    /// The problem, with the value.
    pub problem: String,
    /// Advice on what is allowed.
    pub help: String,
}

/// A problem and its place, before the file's name is known.
struct Wrong {
    place: String,
    problem: String,
    help: String,
}

impl Wrong {
    fn new(place: impl Into<String>, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into(), help: help.into() }
    }

    fn in_line(line: usize, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(format!(", line {line}"), problem, help)
    }
}

/// Says what is read, to who gave something else.
const KNOWN: &str =
    "allowed: what `iperf3 -J` prints, `ss -tin` with a line of `date +%s.%N` before each, files of flent";

/// First bytes of packed files, the program that packed them, and the one that unpacks them.
const PACKED: [(&[u8], &str, &str); 4] = [
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"PK\x03\x04", "zip", "unzip"),
];

/// Reads a file.
///
/// # Errors
/// If it can not be read, is too large, or is no measurement; says which, and where.
pub fn read(path: &Path) -> Result<Measurement, MeasuredError> {
    let bytes = disk::read_file(path, MEASURED_BYTES_MAX).map_err(|error| MeasuredError {
        path: path.to_owned(),
        place: String::new(),
        problem: format!("can not be read: {error}"),
        help: String::new(),
    })?;
    parse(path, &bytes)
}

/// Reads the content of a file.
///
/// # Errors
/// If it is no measurement; says where.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Measurement, MeasuredError> {
    let failed =
        |Wrong { place, problem, help }| MeasuredError { path: path.to_owned(), place, problem, help };
    let (by, (flows, notes)) = parsed(bytes).map_err(failed)?;
    if flows.is_empty() {
        return Err(failed(Wrong::new("", "no flow of TCP was measured in it", KNOWN)));
    }
    Ok(Measurement { path: path.to_owned(), by, flows, notes })
}

/// Flows and notes.
type Read = (Vec<MeasuredFlow>, Vec<String>);

fn parsed(bytes: &[u8]) -> Result<(Recorder, Read), Wrong> {
    let unpacked;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        unpacked = unpack(bytes)?;
        &unpacked
    } else {
        bytes
    };
    if let Some((_, by, with)) = PACKED.iter().find(|(begin, ..)| bytes.starts_with(begin)) {
        let help = format!("unpack it with {with}; only what gzip packed is read as it is");
        return Err(Wrong::new("", format!("it is packed by {by}"), help));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        let help = "write it as UTF-8, such as by `iconv -f UTF-16 -t UTF-8`";
        return Err(Wrong::new("", "it is a text in UTF-16", help));
    }
    let text = str::from_utf8(bytes).map_err(|error| {
        let (good, bad) = bytes.split_at(error.valid_up_to());
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        let bad = String::from_utf8_lossy(&bad[..bad.len().min(4 * SHOWN_MAX)]);
        Wrong::in_line(line, format!("`{}` is no text", shown(&bad)), KNOWN)
    })?;
    // The mark of an editor.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('[') {
        let problem = format!("`{}` is a list, not one recording", shown(text));
        return Err(Wrong::new("", problem, "give each recording a file of its own, such as by `jq '.[0]'`"));
    }
    if !text.trim_start().starts_with('{') {
        if text.lines().any(|line| line.trim_start().starts_with('{')) {
            let line = 1 + text.lines().take_while(|line| line.trim().is_empty()).count();
            let problem = format!(
                "`{}` stands before the JSON",
                shown(text.trim_start().lines().next().unwrap_or_default())
            );
            return Err(Wrong::in_line(line, problem, "remove the lines before the first `{`"));
        }
        return Ok((Recorder::Ss, ss::read(text)?));
    }
    let object = json::read(text)?;
    let top = json::Node::top(&object);
    if top.has("intervals") {
        Ok((Recorder::Iperf3, iperf3::read(&top)?))
    } else if top.has("raw_values") || top.has("x_values") {
        Ok((Recorder::Flent, flent::read(&top)?))
    } else if top.has("event") {
        Err(json::stream(text))
    } else {
        let problem = format!(
            "`{}` has neither `intervals`, which iperf3 writes, nor `raw_values`, which flent does",
            shown(text)
        );
        Err(Wrong::new("", problem, KNOWN))
    }
}

fn unpack(bytes: &[u8]) -> Result<Vec<u8>, Wrong> {
    let refuse = |problem: String| Wrong::new("", problem, "");
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(MEASURED_BYTES_MAX + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error: io::Error| refuse(format!("it can not be unpacked: {error}")))?;
    if unpacked.len() as u64 > MEASURED_BYTES_MAX {
        return Err(refuse(format!("unpacked it is larger than {} MiB", MEASURED_BYTES_MAX >> 20)));
    }
    Ok(unpacked)
}
