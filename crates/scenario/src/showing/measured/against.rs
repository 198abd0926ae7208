//! A run held against what was measured: the same flows, on one clock.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value as Json;

use super::{MeasuredFlow, Measurement, Span, mean_between};
use crate::judging::fairness::{Life, convergence_s};
use crate::judging::tolerances::Tolerance;
use crate::results::folder::{FolderError, RunFolder};
use crate::showing::compare::{self, Comparison, Curve, Curves, Measure, Of, Quantity, Row};

/// Quantities that are compared with a measurement. Other programs count payload, so goodput is without headers here; when shares
/// settled is seen no sharper than the intervals of a recording, so it is not judged.
pub const MEASURED_QUANTITIES: [Quantity; 5] = [
    Quantity::new("goodput", Of::Flows, "payload_bps", Measure::Relative, Some(0.05)),
    Quantity::new("rtt", Of::Flows, "rtt_mean_ms", Measure::Relative, None),
    Quantity::new("cwnd", Of::Flows, "cwnd_mean_packets", Measure::Relative, None),
    Quantity::new("retransmissions", Of::Flows, RETRANSMITS, Measure::Absolute, None),
    Quantity::new("convergence", Of::Run, "convergence_s", Measure::Factor, None),
];
const RETRANSMITS: &str = "retransmits";
/// Of the whole run, for recordings that have no times of retransmissions.
const RETRANSMITS_TOTAL: &str = "retransmits_total";
/// Share of the measured time of a flow that a recording should cover.
const COVERED: f64 = 0.95;
/// Longest interval of a recording that shows when shares settle, s: goodputs are averaged over one second.
const INTERVAL_MAX_S: f64 = 1.05;
/// Length of the shortest interval of a recording, in lengths of the run, beyond which it says nothing of the run.
const INTERVAL_MAX: f64 = 2.0;
/// Length of a recording, in lengths of the run, beyond which its times are doubted, and the shortest interval, s, from which
/// such a recording is refused: programs record many values a minute.
const LENGTH_MAX: f64 = 100.0;
const SPARSE_S: f64 = 10.0;
/// Time of a bin in which shares are looked at, s, and the most bins.
const BIN_S: f64 = 0.1;
const BINS_MAX: f64 = 1e5;

/// A flow of a run: a group's name, and a place in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Name of the group.
    pub group: String,
    /// Place in the group, from 0.
    pub index: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}[{}]", self.group, self.index)
    }
}

/// Flows of a run, in its order, and the number of the measured flow that each is held against, over all files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing(pub Vec<(Place, usize)>);

/// The result of [`against`].
#[derive(Clone, Debug, PartialEq)]
pub struct Against {
    /// Numbers and verdicts.
    pub comparison: Comparison,
    /// Lines of the measured flows, for a picture over those of the run.
    pub curves: Curves,
}

/// Returns what the scenario of a simulation allows between it and real flows; of a live run it is nothing.
pub fn tolerances(run: &RunFolder) -> Vec<Tolerance<'_>> {
    let known = |told: &Tolerance<'_>| MEASURED_QUANTITIES.iter().any(|quantity| quantity.name == told.of);
    if run.is_live() { Vec::new() } else { run.scenario().tolerances().filter(known).collect() }
}

/// Pairs the flows of a run with those of files: in the order of both, or as told by the number or the name of measured
/// flows.
///
/// # Errors
/// If both have not the same number of flows, what is told is not there, or the intervals of a recording are longer than the run,
/// as they are when its times are no seconds; says what there is.
pub fn pair(
    run: &RunFolder,
    files: &[Measurement],
    told: &[(Place, String)],
) -> Result<Pairing, (String, String)> {
    let duration = run.summary()["duration_s"].as_f64().unwrap_or(f64::INFINITY);
    for file in files {
        let lengths = file.flows.iter().flat_map(|flow| &flow.bytes).map(|span| span.to_s - span.from_s);
        let shortest = lengths.filter(|length| *length > 0.0).fold(f64::INFINITY, f64::min);
        let length = file.flows.iter().map(|flow| flow.until_s() - flow.began_s).fold(0.0, f64::max);
        let is_sparse = shortest > SPARSE_S && length > duration * LENGTH_MAX;
        if shortest.is_finite() && (is_sparse || shortest > duration * INTERVAL_MAX) {
            let problem = format!(
                "{}: the shortest interval has {shortest:.0} s, and the run has {duration:.1} s",
                file.path.display()
            );
            return Err((
                problem,
                "times are seconds, and not thousandths; record with shorter intervals".into(),
            ));
        }
    }
    let measured: Vec<&MeasuredFlow> = files.iter().flat_map(|file| &file.flows).collect();
    let mut flows = Vec::new();
    for (group, shape) in compare::elements(run, "flows") {
        let Json::Array(list) = shape else {
            let count = shape["count"].as_u64().unwrap_or(0);
            let problem = format!("the run lists none of the {count} flows of flows.{group}");
            return Err((problem, "measured flows are compared one by one: simulate fewer".into()));
        };
        flows.extend((0..list.len()).map(|index| Place { group: group.clone(), index }));
    }
    let listed = |names: &mut dyn Iterator<Item = String>| {
        let some: Vec<String> = names.take(8).collect();
        some.join(", ")
    };
    let there =
        || listed(&mut measured.iter().enumerate().map(|(number, flow)| format!("{number} ({})", flow.name)));
    if told.is_empty() {
        if flows.len() == measured.len() {
            return Ok(Pairing(flows.into_iter().zip(0..).collect()));
        }
        let count = |count: usize| if count == 1 { "1 flow".into() } else { format!("{count} flows") };
        let problem = format!(
            "the run has {} ({}), measured are {} ({})",
            count(flows.len()),
            listed(&mut flows.iter().map(Place::to_string)),
            count(measured.len()),
            there()
        );
        let help = "say which is which by --pair 'GROUP[INDEX]=NUMBER', or add recordings by --with";
        return Err((problem, help.into()));
    }
    let mut pairs = Vec::new();
    let mut taken = BTreeSet::new();
    for (place, name) in told {
        if !flows.contains(place) {
            let help = format!("there are: {}", listed(&mut flows.iter().map(Place::to_string)));
            return Err((format!("the run has no flow {place}"), help));
        }
        let mut named = (0..measured.len()).filter(|&number| measured[number].name == *name);
        let number = match (name.parse::<usize>(), named.next(), named.next()) {
            (Ok(number), _, _) if number < measured.len() => number,
            (_, Some(number), None) => number,
            (_, Some(_), Some(_)) => {
                return Err((
                    format!("several measured flows are called {name}"),
                    format!("give a number: {}", there()),
                ));
            }
            _ => return Err((format!("no measured flow is {name}"), format!("there are: {}", there()))),
        };
        if !taken.insert(number) || pairs.iter().any(|(known, _)| known == place) {
            return Err((
                format!("{place} or what it is held against is paired twice"),
                "pair each flow once".into(),
            ));
        }
        pairs.push((place.clone(), number));
    }
    pairs.sort_by_key(|(place, _)| flows.iter().position(|known| known == place));
    Ok(Pairing(pairs))
}

/// Flows that are one, and their times on the clock of the run.
struct Pair<'a> {
    place: &'a Place,
    simulated: &'a Json,
    measured: &'a MeasuredFlow,
    /// Time to add to the clock of the recording.
    shift_s: f64,
    /// Time in which the run measures the flow.
    window: (f64, f64),
}

impl<'a> Pair<'a> {
    /// The part of the window for which the flow was measured, on the clock of the recording.
    fn common(&self) -> Option<(f64, f64)> {
        let from = (self.window.0 - self.shift_s).max(self.measured.from_s);
        let to = (self.window.1 - self.shift_s).min(self.measured.until_s());
        (to > from).then_some((from, to))
    }

    fn row(&self, quantity: &Quantity) -> Option<Row> {
        let flow = self.measured;
        let common = self.common();
        let mut key = quantity.key;
        let (is_known, value) = match quantity.name {
            "goodput" => (
                true,
                common.map(|(from, to)| {
                    // Rounding can leave a piece of almost no length.
                    flow.bytes_between(from, to) * 8.0 / (to - from).max(1e-9)
                }),
            ),
            "rtt" => {
                (!flow.rtt_ms.is_empty(), common.and_then(|(from, to)| mean_between(&flow.rtt_ms, from, to)))
            }
            "cwnd" => (
                !flow.cwnd_packets.is_empty(),
                common.and_then(|(from, to)| mean_between(&flow.cwnd_packets, from, to)),
            ),
            _ if flow.retransmits.is_none() => {
                key = RETRANSMITS_TOTAL;
                (flow.retransmits_total.is_some(), flow.retransmits_total)
            }
            _ => (true, common.and_then(|(from, to)| flow.retransmits_between(from, to))),
        };
        // What nobody recorded is no difference, unless somebody asks that it be judged.
        (is_known || quantity.tolerance.is_some()).then(|| {
            quantity.row(format!("flows.{}.{key}", self.place), [self.simulated[key].as_f64(), value])
        })
    }
}

/// Holds a run against measured flows. The first of them begins when the first of the run's does, or at `at` seconds of the
/// run. `one` of each row is the run's.
///
/// # Errors
/// If a table of the run is damaged.
pub fn against(
    run: &RunFolder,
    files: &[Measurement],
    Pairing(pairing): &Pairing,
    at: Option<f64>,
    quantities: &[Quantity],
) -> Result<Against, FolderError> {
    let measured: Vec<&MeasuredFlow> = files.iter().flat_map(|file| &file.flows).collect();
    let summary = run.summary();
    let number = |value: &Json| value.as_f64();
    let (warmup, duration) =
        (number(&summary["warmup_s"]).unwrap_or(0.0), number(&summary["duration_s"]).unwrap_or(0.0));
    let pairs = pairing.iter().filter_map(|(place, number)| Some((place, *measured.get(*number)?)));
    let pairs: Vec<(&Place, &MeasuredFlow)> = pairs.collect();
    let simulated = |place: &Place| &summary["flows"][&place.group][place.index];
    let start = |place: &Place| number(&simulated(place)["start_s"]).unwrap_or(0.0);
    let least = |times: &mut dyn Iterator<Item = f64>| times.fold(f64::INFINITY, f64::min);
    let begins = at.unwrap_or_else(|| least(&mut pairs.iter().map(|(place, _)| start(place))));
    let shift_s = begins - least(&mut pairs.iter().map(|(_, flow)| flow.began_s));
    let pairs: Vec<Pair<'_>> = pairs
        .into_iter()
        .map(|(place, measured)| {
            let simulated = simulated(place);
            let end = number(&simulated["stop_s"]).unwrap_or(f64::INFINITY).min(duration);
            Pair { place, simulated, measured, shift_s, window: (start(place).max(warmup), end) }
        })
        .collect();
    let mut rows: Vec<Row> = Vec::new();
    for group in pairs.chunk_by(|one, other| one.place.group == other.place.group) {
        for quantity in quantities.iter().filter(|quantity| quantity.of == Of::Flows) {
            rows.extend(group.iter().filter_map(|pair| pair.row(quantity)));
        }
    }
    let flows: usize =
        compare::elements(run, "flows").map(|(_, list)| list.as_array().map_or(0, Vec::len)).sum();
    for quantity in quantities.iter().filter(|quantity| quantity.of == Of::Run) {
        let of_measured = convergence(&pairs, duration);
        let is_known = of_measured.is_some() && flows == pairs.len();
        if is_known || quantity.tolerance.is_some() {
            rows.push(quantity.row(quantity.key.into(), [compare::convergence(run)?, of_measured.flatten()]));
        }
    }
    let holds = rows.iter().all(|row| row.holds != Some(false));
    let mut warnings: Vec<String> = files.iter().flat_map(|file| file.notes.iter().cloned()).collect();
    warnings.dedup();
    warnings.extend(compare::doubts(run));
    warnings.extend(pairs.iter().filter_map(uncovered));
    warnings.extend(pairs.iter().filter_map(|pair| too_long(pair, duration)));
    Ok(Against { comparison: Comparison { holds, rows, warnings }, curves: curves(run, &pairs, duration)? })
}

/// Says that a recording covers less of a flow's time than the run.
fn uncovered(pair: &Pair<'_>) -> Option<String> {
    let wanted = pair.window.1 - pair.window.0;
    let covered = pair.common().map_or(0.0, |(from, to)| to - from);
    (covered < wanted * COVERED).then(|| {
        format!(
            "{} is measured for {covered:.1} s of the {wanted:.1} s for which {} counts in the run",
            pair.measured.name, pair.place
        )
    })
}

/// Says that a recording is so much longer than the run that its times may be in another unit.
fn too_long(pair: &Pair<'_>, duration: f64) -> Option<String> {
    let measured = pair.measured.until_s() - pair.measured.began_s;
    (measured > duration * LENGTH_MAX).then(|| {
        format!(
            "{} is measured for {measured:.0} s, and the run has {duration:.1} s: are the times of the file in seconds?",
            pair.measured.name
        )
    })
}

/// The convergence time of the measured flows, s. `None`: the intervals are too long to see it, or the start was left out;
/// `Some(None)`: it is not within the run.
fn convergence(pairs: &[Pair<'_>], duration: f64) -> Option<Option<f64>> {
    let every = BIN_S.max(duration / BINS_MAX);
    let bins = (duration / every).ceil().max(0.0) as usize;
    let mut lives = Vec::new();
    for Pair { measured, shift_s, .. } in pairs {
        let is_coarse = |span: &Span| span.to_s - span.from_s > INTERVAL_MAX_S;
        if measured.from_s > measured.began_s || measured.bytes.iter().any(is_coarse) {
            return None;
        }
        let mut bytes = vec![0.0; bins];
        for span in measured.bytes.iter().filter(|span| span.to_s > span.from_s) {
            let (begin, end) = (span.from_s + shift_s, span.to_s + shift_s);
            let first = (begin / every).floor().max(0.0) as usize;
            for (bin, value) in bytes.iter_mut().enumerate().skip(first) {
                let (lower, upper) = (bin as f64 * every, (bin + 1) as f64 * every);
                if lower >= end {
                    break;
                }
                let common = (end.min(upper) - begin.max(lower)).max(0.0);
                *value += span.amount * common / (end - begin);
            }
        }
        let end_s = duration.min(measured.until_s() + shift_s);
        lives.push(Life { start_s: measured.from_s + shift_s, end_s, goodputs: bytes });
    }
    Some(convergence_s(&lives, every))
}

/// Lines of the measured flows, each in the place of the run's.
fn curves(run: &RunFolder, pairs: &[Pair<'_>], duration_s: f64) -> Result<Curves, FolderError> {
    let of_run = compare::curves(run)?;
    let longest = pairs.iter().flat_map(|pair| &pair.measured.bytes).map(|span| span.to_s - span.from_s);
    let lines = |of: fn(&Pair<'_>) -> Curve| -> Vec<Curve> {
        let line = |name: &String| {
            let pair = pairs.iter().find(|pair| pair.place.to_string() == *name);
            let mut points = pair.map_or_else(Vec::new, |pair| of(pair).points);
            points.retain(|(at, _)| (0.0..=duration_s).contains(at));
            Curve { name: name.clone(), points: compare::thinned(&points, compare::POINTS_MAX) }
        };
        of_run.throughput.iter().map(|curve| line(&curve.name)).collect()
    };
    Ok(Curves {
        throughput: lines(|pair| pair.measured.rates(pair.shift_s)),
        cwnd: lines(|pair| {
            let points = pair.measured.cwnd_packets.iter().map(|(at, value)| (at + pair.shift_s, *value));
            Curve { name: String::new(), points: points.collect() }
        }),
        queue: Vec::new(),
        throughput_over_s: longest.fold(0.0, f64::max),
        duration_s,
    })
}
