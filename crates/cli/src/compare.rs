//! `congestlab compare`: how far a simulation and real TCP agree, as a table and a picture.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use congestlab_scenario::compare::{
    self, CompareError, Comparison, Curve, Curves, Measure, QUANTITIES, Quantity, Row as Number, Tolerance,
};
use congestlab_scenario::folder::RunFolder;
use congestlab_scenario::store;
use congestlab_scenario::style::{self, Look};
use serde_json::json;

use crate::args::CompareArguments;
use crate::explain::{bad_folder, open_folder};
use crate::failure::{Failure, Message};
use crate::output::{Screen, print, require_file, write_file};
use crate::picture::{Figure, Line, Row, SCREEN_DPI, Size, Style};
use crate::table::{NOTHING, Table, number, percent, rate};

/// Number of flows up to which every number is shown; of more flows, only numbers that disagree are.
const FLOWS_SHOWN_MAX: usize = 12;

pub(crate) fn compare(arguments: &CompareArguments, screen: &Screen) -> Result<(), Failure> {
    let runs = [open_folder(&arguments.one)?, open_folder(&arguments.other)?];
    let runs = [&runs[0], &runs[1]];
    if arguments.inline && !screen.json {
        let text = "--inline puts the picture into the object of --json, which is not asked for";
        return Err(Failure::Input(Message::new(text, "add --json, or draw to a file with --plot")));
    }
    let pictures = arguments.plot.as_deref().map(pictures).transpose()?.unwrap_or_default();
    let mut quantities = QUANTITIES;
    let told = compare::tolerances(runs);
    let told: Vec<&Tolerance<'_>> =
        told.iter().filter(|told| !arguments.tolerance.iter().any(|(name, _)| *name == told.of)).collect();
    for Tolerance { of, at_most, .. } in &told {
        for quantity in quantities.iter_mut().filter(|quantity| quantity.name == *of) {
            quantity.tolerance = *at_most;
        }
    }
    for (name, tolerance) in &arguments.tolerance {
        for quantity in quantities.iter_mut().filter(|quantity| quantity.name == *name) {
            quantity.tolerance = Some(*tolerance);
        }
    }
    let comparison = compare::compare(runs, &quantities).map_err(|error| match error {
        CompareError::Folder(error) => bad_folder(&error),
        error @ CompareError::Different(_) => {
            Failure::Input(Message::new(error.to_string(), "compare runs of one scenario"))
        }
    })?;
    if !screen.json {
        for warning in &comparison.warnings {
            screen.note(&format!("warning: {warning}"));
        }
    }
    if !pictures.is_empty() {
        draw(runs, &pictures)?;
    }
    let pictures: Vec<String> = pictures.iter().map(|(path, _)| path.display().to_string()).collect();
    if screen.json {
        let about = runs.map(|run| {
            json!({
                "path": run.path(),
                "live": compare::is_live(run),
                "seed": run.summary()["seed"],
                "fingerprint": run.fingerprint(),
            })
        });
        let mut object = json!(comparison);
        object["runs"] = json!(about);
        object["pictures"] = json!(pictures);
        let told = told.iter().map(
            |Tolerance { of, at_most, because }| json!({ "of": of, "at_most": at_most, "because": because }),
        );
        object["tolerances"] = told.collect();
        if arguments.inline {
            object["svg"] = figure(runs)?.to_svg().into();
        }
        print(&store::pretty(&object))?;
    } else {
        let reasons = told.iter().map(|Tolerance { of, at_most, because }| {
            let bound = at_most.map_or_else(|| "not judged".into(), |at_most| at_most.to_string());
            format!("allowed   {of}: {bound}, because {because}\n")
        });
        print(&(tell(runs, &comparison, &pictures, arguments.all) + &reasons.collect::<String>()))?;
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

fn judged(comparison: &Comparison) -> usize {
    comparison.rows.iter().filter(|row| row.holds.is_some()).count()
}

/// Names of the runs: `simulated` and `live` if that differs, else `one` and `other`.
fn names(runs: [&RunFolder; 2]) -> [&'static str; 2] {
    match runs.map(compare::is_live) {
        [true, false] => ["live", "simulated"],
        [false, true] => ["simulated", "live"],
        _ => ["one", "other"],
    }
}

fn tell(runs: [&RunFolder; 2], comparison: &Comparison, pictures: &[String], all: bool) -> String {
    let names = names(runs);
    let mut text = String::new();
    for (name, run) in names.iter().zip(runs) {
        let kind = if compare::is_live(run) { "real TCP" } else { "simulated" };
        let _ = writeln!(text, "{name:9}  {}, {kind}, seed {}", run.path().display(), run.summary()["seed"]);
    }
    text.push('\n');
    let mut table = Table::new(["", names[0], names[1], "difference", "allowed", "agree"]);
    let flows = comparison.rows.iter().filter(|row| row.quantity == "goodput").count();
    let mut hidden = 0;
    for row in &comparison.rows {
        let is_shown = match row.quantity {
            "goodput" | "rtt" => flows <= FLOWS_SHOWN_MAX,
            // Mostly ACKs.
            _ => !row.metric.contains(".reverse\""),
        };
        if !(is_shown || all || row.holds == Some(false)) {
            hidden += 1;
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
    if hidden > 0 {
        let _ = writeln!(text, "  and {hidden} more that do not disagree (--all)");
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
        Some("s") => format!("{} s", number(value)),
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

fn draw(runs: [&RunFolder; 2], pictures: &[(PathBuf, &str)]) -> Result<(), Failure> {
    let figure = figure(runs)?;
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
fn figure(runs: [&RunFolder; 2]) -> Result<Figure, Failure> {
    let names = names(runs);
    let below = usize::from(names[0] != "live" && names[1] == "live");
    let above = 1 - below;
    let read = |run: usize| compare::curves(runs[run]).map_err(|error| bad_folder(&error));
    let (wide, thin) = (read(below)?, read(above)?);
    let highest =
        [&wide, &thin].into_iter().flat_map(|curves| &curves.throughput).flat_map(|curve| &curve.points);
    let (factor, unit) = match highest.map(|(_, value)| *value).fold(0.0, f64::max) {
        2e9.. => (1e9, "Gbit/s"),
        2e6.. => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    let row = |label: String, of: fn(&Curves) -> &[Curve], factor: f64, is_links: bool| {
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
            of(curves).iter().enumerate().filter(|(_, curve)| !curve.points.is_empty()).map(line).collect()
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
        columns: vec![format!("{} over {}", runs[above].name(), runs[below].name())],
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
    let known = || QUANTITIES.map(|quantity| quantity.name).join(", ");
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as goodput=0.05")?;
    let quantity: Quantity = QUANTITIES
        .into_iter()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_has_a_known_name_and_a_possible_value() {
        assert_eq!(tolerance("queue=3"), Ok(("queue", 3.0)));
        assert_eq!(tolerance("convergence = 2"), Ok(("convergence", 2.0)));
        for (text, says) in [
            ("goodput", "NAME=VALUE"),
            ("godput=1", "goodput, rtt"),
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
}
