//! `congestlab compare`: how far a simulation and real TCP agree, or a run and what another program measured, as a table
//! and a picture.

mod exact;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use congestlab_scenario::compare::{
    self, CompareError, Comparison, Curve, Curves, Measure, QUANTITIES, Quantity, Row as Number, Tolerance,
};
use congestlab_scenario::folder::RunFolder;
use congestlab_scenario::measured::{
    self, Against, MEASURED_QUANTITIES, MeasuredFlow, Measurement, Pairing, Place,
};
use congestlab_scenario::store;
use congestlab_scenario::style::{self, Look};
use serde_json::json;

pub(crate) use exact::exact;

use crate::args::CompareArguments;
use crate::failure::{Failure, Message};
use crate::folder;
use crate::output::{Screen, print, require_file, write_file};
use crate::picture::{Figure, Line, Row, SCREEN_DPI, Size, Style};
use crate::table::{NOTHING, Table, number, percent, rate};

/// Number of flows up to which every number is shown; of more flows, only numbers that disagree are.
const FLOWS_SHOWN_MAX: usize = 12;

/// Two runs, or one and a measurement.
enum Sides {
    Runs(Box<[RunFolder; 2]>),
    /// The run, the files, what is held against what, and true if the run was named first.
    Measured(Box<RunFolder>, Vec<Measurement>, Pairing, bool),
}

pub(crate) fn compare(arguments: &CompareArguments, screen: &Screen) -> Result<(), Failure> {
    if let Some(tolerance) = arguments.exact {
        return exact([&arguments.one, &arguments.other], tolerance, arguments.all, true, screen);
    }
    let sides = open(arguments)?;
    if arguments.inline && !screen.json {
        let text = "--inline puts the picture into the object of --json, which is not asked for";
        return Err(Failure::Input(Message::new(text, "add --json, or draw to a file with --plot")));
    }
    let pictures = arguments.plot.as_deref().map(pictures).transpose()?.unwrap_or_default();
    let (mut quantities, told) = match &sides {
        Sides::Runs(runs) => (QUANTITIES.to_vec(), compare::tolerances([&runs[0], &runs[1]])),
        Sides::Measured(run, ..) => (MEASURED_QUANTITIES.to_vec(), measured::tolerances(run)),
    };
    let told: Vec<&Tolerance<'_>> =
        told.iter().filter(|told| !arguments.tolerance.iter().any(|(name, _)| *name == told.of)).collect();
    for Tolerance { of, at_most, .. } in &told {
        for quantity in quantities.iter_mut().filter(|quantity| quantity.name == *of) {
            quantity.tolerance = *at_most;
        }
    }
    for (name, tolerance) in &arguments.tolerance {
        let Some(quantity) = quantities.iter_mut().find(|quantity| quantity.name == *name) else {
            let known: Vec<&str> = quantities.iter().map(|quantity| quantity.name).collect();
            let what = if matches!(sides, Sides::Runs(_)) { "two runs" } else { "a run and a measurement" };
            let text = format!("{name} is not compared between {what}");
            return Err(Failure::Input(Message::new(text, format!("allowed: {}", known.join(", ")))));
        };
        quantity.tolerance = Some(*tolerance);
    }
    let (mut comparison, drawn) = held(&sides, &quantities, arguments.at)?;
    let of_others =
        runs(&sides).iter().filter_map(|run| folder::of_another_version(run.path(), run.version()));
    comparison.warnings.splice(0..0, of_others);
    if !screen.json {
        for warning in &comparison.warnings {
            screen.note(&format!("warning: {warning}"));
        }
    }
    if !pictures.is_empty() {
        draw(&figure(&sides, drawn.as_ref())?, &pictures)?;
    }
    let pictures: Vec<String> = pictures.iter().map(|(path, _)| path.display().to_string()).collect();
    if screen.json {
        let mut object = json!(comparison);
        object["runs"] = about(&sides);
        object["pictures"] = json!(pictures);
        let told = told.iter().map(
            |Tolerance { of, at_most, because }| json!({ "of": of, "at_most": at_most, "because": because }),
        );
        object["tolerances"] = told.collect();
        if arguments.inline {
            object["svg"] = figure(&sides, drawn.as_ref())?.to_svg().into();
        }
        print(&store::pretty(&object))?;
    } else {
        let reasons = told.iter().map(|Tolerance { of, at_most, because }| {
            let bound = at_most.map_or_else(|| "not judged".into(), |at_most| at_most.to_string());
            format!("allowed   {of}: {bound}, because {because}\n")
        });
        print(&(tell(&sides, &comparison, &pictures, arguments.all) + &reasons.collect::<String>()))?;
    }
    if comparison.holds {
        return Ok(());
    }
    let failed: Vec<&str> =
        comparison.rows.iter().filter(|row| row.holds == Some(false)).map(|row| row.quantity).collect();
    let mut kinds = failed.clone();
    kinds.dedup();
    let text = format!("{} of {} numbers disagree: {}", failed.len(), judged(&comparison), kinds.join(", "));
    Err(Failure::Claim(Message::new(text, "")))
}

/// Opens what is to be compared: a folder is a run, a file a measurement.
fn open(arguments: &CompareArguments) -> Result<Sides, Failure> {
    let paths = [&arguments.one, &arguments.other];
    let open_run = |path: &Path| RunFolder::open(path).map_err(Failure::folder);
    let are_files = paths.map(|path| path.is_file());
    let input = |text: String, help: &str| Err(Failure::Input(Message::new(text, help)));
    let (folder, first, is_first) = match are_files {
        [false, false] => {
            for (option, is_given) in [
                ("--with", !arguments.with.is_empty()),
                ("--pair", !arguments.pair.is_empty()),
                ("--at", arguments.at.is_some()),
            ] {
                if is_given {
                    let text = format!("{option} is about a measurement, and both are runs");
                    return input(text, "give the file of a measurement in the place of one run");
                }
            }
            return Ok(Sides::Runs(Box::new([open_run(paths[0])?, open_run(paths[1])?])));
        }
        [true, true] => {
            let [one, other] = paths.map(|path| path.display());
            let help = "name the folder of a run and one file, and further files by --with";
            return input(format!("{one} and {other} are both files"), help);
        }
        [false, true] => (paths[0], paths[1], true),
        [true, false] => (paths[1], paths[0], false),
    };
    let run = open_run(folder)?;
    let files = [first].into_iter().chain(&arguments.with);
    let files: Result<Vec<Measurement>, _> = files.map(|path| measured::read(path)).collect();
    let files = files.map_err(|error| {
        let help = error.help.clone();
        Failure::Input(Message::new(error.to_string(), help))
    })?;
    let pairing = measured::pair(&run, &files, &arguments.pair)
        .map_err(|(text, help)| Failure::Input(Message::new(text, help)))?;
    Ok(Sides::Measured(Box::new(run), files, pairing, is_first))
}

/// Compares; lines of a measurement come with it.
fn held(
    sides: &Sides,
    quantities: &[Quantity],
    at: Option<f64>,
) -> Result<(Comparison, Option<Curves>), Failure> {
    match sides {
        Sides::Runs(runs) => {
            let comparison =
                compare::compare([&runs[0], &runs[1]], quantities).map_err(|error| match error {
                    CompareError::Folder(error) => Failure::folder(error),
                    error @ CompareError::Different(_) => {
                        Failure::Input(Message::new(error.to_string(), "compare runs of one scenario"))
                    }
                })?;
            Ok((comparison, None))
        }
        Sides::Measured(run, files, pairing, is_first) => {
            let found = measured::against(run, files, pairing, at, quantities);
            let Against { mut comparison, curves } = found.map_err(Failure::folder)?;
            if !is_first {
                for row in &mut comparison.rows {
                    std::mem::swap(&mut row.one, &mut row.other);
                }
            }
            Ok((comparison, Some(curves)))
        }
    }
}

/// The runs among both sides.
fn runs(sides: &Sides) -> &[RunFolder] {
    match sides {
        Sides::Runs(runs) => &runs[..],
        Sides::Measured(run, ..) => std::slice::from_ref(run),
    }
}

/// Both sides for programs.
fn about(sides: &Sides) -> serde_json::Value {
    let of_run = |run: &RunFolder| {
        json!({
            "path": run.path(),
            "live": compare::is_live(run),
            "seed": run.summary()["seed"],
            "fingerprint": run.fingerprint(),
        })
    };
    match sides {
        Sides::Runs(runs) => json!([of_run(&runs[0]), of_run(&runs[1])]),
        Sides::Measured(run, files, pairing, is_first) => {
            let flows: Vec<&MeasuredFlow> = files.iter().flat_map(|file| &file.flows).collect();
            let pairs = pairing.0.iter().map(|(place, number)| (place.to_string(), &flows[*number].name));
            let pairs: Vec<_> =
                pairs.map(|(flow, measured)| json!({ "flow": flow, "measured": measured })).collect();
            let files = files.iter().map(|file| json!({ "path": file.path, "by": file.by.name() }));
            let of_files = json!({ "measured": files.collect::<Vec<_>>(), "pairs": pairs });
            if *is_first { json!([of_run(run), of_files]) } else { json!([of_files, of_run(run)]) }
        }
    }
}

fn judged(comparison: &Comparison) -> usize {
    comparison.rows.iter().filter(|row| row.holds.is_some()).count()
}

/// Names of the sides: `simulated`, `live` and `measured` if they differ, else `one` and `other`.
fn names(sides: &Sides) -> [&'static str; 2] {
    let kind = |run: &RunFolder| if compare::is_live(run) { "live" } else { "simulated" };
    let names = match sides {
        Sides::Runs(runs) => [kind(&runs[0]), kind(&runs[1])],
        Sides::Measured(run, _, _, true) => [kind(run), "measured"],
        Sides::Measured(run, _, _, false) => ["measured", kind(run)],
    };
    if names[0] == names[1] { ["one", "other"] } else { names }
}

fn tell(sides: &Sides, comparison: &Comparison, pictures: &[String], all: bool) -> String {
    let names = names(sides);
    let mut text = String::new();
    let of_run = |run: &RunFolder| {
        let kind = if compare::is_live(run) { "real TCP" } else { "simulated" };
        format!("{}, {kind}, seed {}", run.path().display(), run.summary()["seed"])
    };
    let lines = match sides {
        Sides::Runs(runs) => [of_run(&runs[0]), of_run(&runs[1])],
        Sides::Measured(run, files, _, is_first) => {
            let files: Vec<String> =
                files.iter().map(|file| format!("{}, {}", file.path.display(), file.by.name())).collect();
            let lines = [of_run(run), files.join("; ")];
            let [run, files] = lines;
            if *is_first { [run, files] } else { [files, run] }
        }
    };
    for (name, line) in names.iter().zip(lines) {
        let _ = writeln!(text, "{name:9}  {line}");
    }
    if let Sides::Measured(_, files, pairing, _) = sides {
        let flows: Vec<&MeasuredFlow> = files.iter().flat_map(|file| &file.flows).collect();
        for (place, number) in pairing.0.iter().take(FLOWS_SHOWN_MAX) {
            let _ = writeln!(text, "{:9}  {place} and {}", "", flows[*number].name);
        }
    }
    text.push('\n');
    let mut table = Table::new(["", names[0], names[1], "difference", "allowed", "agree"]);
    let is_of_flow = |row: &Number| row.metric.starts_with("flows.");
    let mut of_flows: BTreeMap<&str, usize> = BTreeMap::new();
    for row in comparison.rows.iter().filter(|row| is_of_flow(row)) {
        *of_flows.entry(row.quantity).or_default() += 1;
    }
    // Hidden rows that do not disagree, and that do; of each quantity the first disagreements are shown.
    let (mut hidden, mut hidden_against) = (0, 0);
    let mut against: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &comparison.rows {
        let is_shown = match row.quantity {
            quantity if is_of_flow(row) => of_flows[quantity] <= FLOWS_SHOWN_MAX,
            // Mostly ACKs.
            _ => !row.metric.contains(".reverse\""),
        };
        let is_against = row.holds == Some(false);
        let nth = against.entry(row.quantity).or_default();
        *nth += usize::from(is_against);
        if !(is_shown || all || is_against && *nth <= FLOWS_SHOWN_MAX) {
            *(if is_against { &mut hidden_against } else { &mut hidden }) += 1;
            continue;
        }
        let difference =
            |value: Option<f64>| value.map_or_else(|| NOTHING.into(), |value| difference(row, value));
        table.row(vec![
            row.metric.clone(),
            value(row, row.one),
            value(row, row.other),
            difference(row.difference),
            difference(row.allowed),
            match row.holds {
                Some(true) => "yes".into(),
                Some(false) => "NO".into(),
                None => NOTHING.into(),
            },
        ]);
    }
    text.push_str(&table.render());
    for (count, what) in [(hidden_against, "that disagree"), (hidden, "that do not disagree")] {
        if count > 0 {
            let _ = writeln!(text, "  and {count} more {what} (--all)");
        }
    }
    let judged = judged(comparison);
    let agree = comparison.rows.iter().filter(|row| row.holds == Some(true)).count();
    let verdict = if comparison.holds { "the runs agree" } else { "the runs do not agree" };
    let _ = writeln!(text, "\n{verdict}: {agree} of {judged} numbers are within what is allowed");
    for picture in pictures {
        let _ = writeln!(text, "picture  {picture}");
    }
    text
}

fn value(row: &Number, value: Option<f64>) -> String {
    match row.metric.rsplit('_').next() {
        _ if value.is_none() => NOTHING.into(),
        _ if row.quantity == "utilization" => percent(value),
        Some("bps" | "bps)") => rate(value),
        Some("packets") => format!("{} packets", number(value)),
        Some("ms" | "ms)") => format!("{} ms", number(value)),
        Some("s" | "s)") if value < Some(1.0) => format!("{} ms", number(value.map(|value| value * 1e3))),
        Some("s" | "s)") => format!("{} s", number(value)),
        _ => number(value),
    }
}

fn difference(row: &Number, value: f64) -> String {
    match row.measure {
        Measure::Relative => percent(Some(value)),
        Measure::Factor => format!("x {}", number(Some(value))),
        Measure::Absolute => self::value(row, Some(value)),
    }
}

/// The files that `--plot` asks for, and what each is: without an ending both.
fn pictures(path: &Path) -> Result<Vec<(PathBuf, &'static str)>, Failure> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let pictures = match ending.as_deref() {
        Some("svg") => vec![(path.to_owned(), "svg")],
        Some("png") => vec![(path.to_owned(), "png")],
        None => ["svg", "png"].map(|kind| (path.with_extension(kind), kind)).to_vec(),
        Some(other) => {
            return Err(Failure::Input(Message::new(
                format!("can not draw {}: .{other} is no kind of picture that is known", path.display()),
                "end the name in .svg or .png, or in nothing for both",
            )));
        }
    };
    pictures.iter().try_for_each(|(path, _)| require_file(path))?;
    Ok(pictures)
}

fn draw(figure: &Figure, pictures: &[(PathBuf, &str)]) -> Result<(), Failure> {
    for (path, kind) in pictures {
        let bytes = match *kind {
            "svg" => figure.to_svg().into_bytes(),
            _ => figure
                .to_png(SCREEN_DPI)
                .map_err(|error| Failure::Run(Message::new(format!("can not draw: {error}"), "")))?,
        };
        write_file(path, |out| out.write_all(&bytes))?;
    }
    Ok(())
}

/// Throughput, window and queue: one run as thin lines over the pale, wide lines of the other. Real
/// packets lie beneath.
fn figure(sides: &Sides, measured: Option<&Curves>) -> Result<Figure, Failure> {
    let names = names(sides);
    let below = usize::from(matches!(names, [_, "measured"] | ["simulated", "live"]));
    let above = 1 - below;
    let read = |run: &RunFolder| compare::curves(run).map_err(Failure::folder);
    let (wide, thin, of) = match sides {
        Sides::Runs(runs) => (
            read(&runs[below])?,
            read(&runs[above])?,
            format!("{} over {}", runs[above].name(), runs[below].name()),
        ),
        Sides::Measured(run, files, ..) => {
            let file = files.first().and_then(|file| file.path.file_name()).unwrap_or_default();
            let of = format!("{} over {}", run.name(), file.to_string_lossy());
            (measured.cloned().unwrap_or_default(), read(run)?, of)
        }
    };
    let highest =
        [&wide, &thin].into_iter().flat_map(|curves| &curves.throughput).flat_map(|curve| &curve.points);
    let (factor, unit) = match highest.map(|(_, value)| *value).fold(0.0, f64::max) {
        2e9.. => (1e9, "Gbit/s"),
        2e6.. => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    let row = |label: String, lines_of: fn(&Curves) -> &[Curve], factor: f64, is_links: bool| {
        let lines = |curves: &Curves, run: usize| -> Vec<Line> {
            let line = |(place, curve): (usize, &Curve)| Line {
                name: format!("{}, {}", curve.name, names[run]),
                style: match (run == below, is_links) {
                    (true, true) => Style::Behind(style::plain(0)),
                    (true, false) => Style::Behind(style::nth(place)),
                    (false, true) => Style::Line(style::plain(place)),
                    (false, false) => Style::Line(Look { dash: &[], ..style::nth(place) }),
                },
                points: curve.points.iter().map(|(t, value)| (*t, value / factor)).collect(),
            };
            lines_of(curves)
                .iter()
                .enumerate()
                .filter(|(_, curve)| !curve.points.is_empty())
                .map(line)
                .collect()
        };
        Row::new(label, vec![[lines(&wide, below), lines(&thin, above)].concat()])
    };
    Ok(Figure {
        about: format!("{} over {}", names[above], names[below]),
        heading: Some((
            format!("{} over {}", names[above], names[below]),
            format!(
                "thin: {}, wide: {}; throughput at the receivers is the mean of {} s",
                names[above],
                names[below],
                number(Some(wide.throughput_over_s.max(thin.throughput_over_s)))
            ),
        )),
        columns: vec![of],
        rows: vec![
            row(format!("received throughput ({unit})"), |curves| &curves.throughput, factor, false),
            row("cwnd (packets)".into(), |curves| &curves.cwnd, 1.0, false),
            row("queue (packets)".into(), |curves| &curves.queue, 1.0, true),
        ],
        x: (0.0, wide.duration_s.max(thin.duration_s)),
        x_label: "time (s)".into(),
        is_logarithmic: false,
        categories: Vec::new(),
        note: String::new(),
        size: Size::SCREEN,
    })
}

/// A tolerance as `--tolerance` takes it: `goodput=0.05`.
pub(crate) fn tolerance(text: &str) -> Result<(&'static str, f64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as goodput=0.05")?;
    let more =
        MEASURED_QUANTITIES.into_iter().filter(|more| QUANTITIES.iter().all(|one| one.name != more.name));
    let all = || QUANTITIES.into_iter().chain(more.clone());
    let known = || all().map(|quantity| quantity.name).collect::<Vec<_>>().join(", ");
    let quantity: Quantity = all()
        .find(|quantity| quantity.name == name.trim())
        .ok_or_else(|| format!("`{name}` is none of {}", known()))?;
    let (least, what) = match quantity.measure {
        Measure::Relative => (0.0, "a share of at least 0, such as 0.05"),
        Measure::Absolute => (0.0, "a number of at least 0"),
        Measure::Factor => (1.0, "a factor of at least 1"),
    };
    match value.trim().parse::<f64>() {
        Ok(value) if value >= least && value.is_finite() => Ok((quantity.name, value)),
        _ => Err(format!("`{value}` is not {what}, which {name} wants")),
    }
}

/// A pair as `--pair` takes it: `ftp[0]=1`, or `ftp[0]=100.64.0.2:40642`.
pub(crate) fn pair(text: &str) -> Result<(Place, String), String> {
    let expected = "expected GROUP[INDEX]=NUMBER, such as ftp[0]=1, or =NAME";
    let (flow, name) = text.split_once("]=").ok_or(expected)?;
    let (group, index) = flow.rsplit_once('[').ok_or(expected)?;
    let index = index.parse().map_err(|_| format!("`{index}` is no place in a group; {expected}"))?;
    if name.is_empty() {
        return Err(expected.into());
    }
    Ok((Place { group: group.into(), index }, name.into()))
}

/// A time as `--at` takes it: seconds of the run.
pub(crate) fn at(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(at) if at.abs() <= AT_MAX_S => Ok(at),
        _ => Err(format!("`{text}` is no time: seconds from -{AT_MAX_S:e} to {AT_MAX_S:e}")),
    }
}

/// Longest shift of a measurement, s: more than any run lasts.
const AT_MAX_S: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_has_a_known_name_and_a_possible_value() {
        assert_eq!(tolerance("queue=3"), Ok(("queue", 3.0)));
        assert_eq!(tolerance("convergence = 2"), Ok(("convergence", 2.0)));
        for (text, says) in [
            ("goodput", "NAME=VALUE"),
            ("godput=1", "goodput, completion, rtt"),
            ("goodput=-0.1", "at least 0"),
            ("goodput=5 %", "share"),
            ("convergence=0.5", "at least 1"),
            ("queue=inf", "number"),
            ("queue=nan", "number"),
        ] {
            let error = tolerance(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_pair_names_a_flow_of_the_run_and_one_that_was_measured() {
        let place = |group: &str, index| Place { group: group.into(), index };
        assert_eq!(pair("ftp[1]=0"), Ok((place("ftp", 1), "0".into())));
        assert_eq!(pair("a[b][2]=TCP upload::1"), Ok((place("a[b]", 2), "TCP upload::1".into())));
        for text in ["ftp", "ftp=1", "ftp[0]", "ftp[0]=", "ftp[x]=1", "ftp[-1]=1", "ftp[0] = 1"] {
            assert!(pair(text).is_err_and(|error| error.contains("GROUP[INDEX]")), "{text}");
        }
        assert_eq!(at("-1.5"), Ok(-1.5));
        for text in ["nan", "inf", "1e10", "5 s", ""] {
            assert!(at(text).is_err(), "{text}");
        }
    }
}
