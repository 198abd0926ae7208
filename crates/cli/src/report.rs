//! `congestlab report`: a run on disk as a page to look at, and as pictures for a paper.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use congestlab_scenario::chart::looks;
use congestlab_scenario::disk;
use congestlab_scenario::folder::FolderError;
use congestlab_scenario::recording::{Chart, Label, Marks, Of, Recording, Spread, charts};
use congestlab_scenario::report::{Run, html};
use congestlab_scenario::result::RunResult;
use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::style::{self, Look, Marker};
use congestlab_scenario::sweep::is_folder;
use congestlab_scenario::{Scenario, store};
use serde_json::json;

use crate::args::ReportArguments;
use crate::failure::{Failure, Message};
use crate::folder;
use crate::output::{Screen, print, require_file, require_folder, write_file};
use crate::picture::{Figure, Line, Row, SCREEN_DPI, Size, Style};
use crate::sweep;
use crate::sweep::page::SWEEP;

/// The report in the folder of its run.
const REPORT: &str = "report.html";
/// Share of width and height of a cell in which one mark of a kind is drawn, so that lines stay visible.
const MARK_CELL: (f64, f64) = (0.02, 0.05);
/// Kinds of events and their marks.
const KINDS: [(&str, Marker); 5] = [
    ("drop", Marker::Cross),
    ("error", Marker::Plus),
    ("mark", Marker::Rhomb),
    ("timeout", Marker::Up),
    ("retransmit", Marker::Ring),
];

/// Writes the report beside the data, which are on disk already.
pub(crate) fn after_run(
    folder: &Path,
    scenario: &Scenario,
    outcome: &Outcome,
    result: &RunResult,
) -> Result<(), Failure> {
    let run = Run {
        name: scenario.name(),
        written: Some(scenario.written()),
        normalised: &scenario.normalised(),
        summary: &result.clone().summarised().to_json(),
    };
    let path = folder.join(REPORT);
    let page = html(&run, &Recording::of(scenario, outcome));
    disk::write_atomically(&path, page.as_bytes()).map_err(|error| Failure::write(&path, &error))
}

/// Draws a run or a sweep that is on disk.
pub(crate) fn report(arguments: &ReportArguments, screen: &Screen) -> Result<(), Failure> {
    // Before the place of the report, which is in that folder.
    if !arguments.run.is_dir() {
        return Err(Failure::folder(FolderError::none(arguments.run.clone())));
    }
    let path = arguments.out.clone().unwrap_or_else(|| arguments.run.join(REPORT));
    let is_printed = path == Path::new("-");
    if !is_printed {
        require_file(&path)?;
    }
    if let Some(figures) = &arguments.figures {
        require_folder(figures)?;
    }
    let is_sweep = arguments.run.join(SWEEP).is_file() || is_folder(&arguments.run);
    let (page, pictures) =
        if is_sweep { sweep::page::again(&arguments.run, screen)? } else { of_run(&arguments.run, screen)? };
    let mut written = Vec::new();
    if !is_printed {
        write_file(&path, |out| out.write_all(page.as_bytes()))?;
        written.push(path);
    }
    if let Some(out) = &arguments.figures {
        written.extend(draw(out, &pictures)?);
    }
    if is_printed {
        return print(&page);
    }
    let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    print(&if screen.json {
        store::pretty(&json!({ "report": names[0], "figures": names[1..] }))
    } else {
        names.join("\n") + "\n"
    })
}

/// The page of a run, and its charts as pictures.
fn of_run(path: &Path, screen: &Screen) -> Result<(String, Vec<(String, Figure)>), Failure> {
    let folder = folder::open_run(path, screen)?;
    let recording = Recording::read(&folder).map_err(Failure::folder)?;
    let name = folder.name();
    let written = folder.written();
    let run = Run {
        name: scenario_name(&name),
        written: written.as_deref(),
        normalised: &folder.scenario().normalised(),
        summary: folder.summary(),
    };
    let seed = folder.summary()["seed"].to_string();
    let laws = [folder.scenario().flow_laws(), folder.scenario().link_laws()];
    Ok((html(&run, &recording), figures(run.name, &seed, &recording, &laws)))
}

/// Returns the scenario's name from `<scenario>-<seed>-<hash>`.
fn scenario_name(folder: &str) -> &str {
    folder.rsplitn(3, '-').nth(2).unwrap_or(folder)
}

/// Draws figures as SVG and PNG; returns the files.
fn draw(out: &Path, figures: &[(String, Figure)]) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(out).map_err(|error| Failure::write(out, &error))?;
    let mut written = Vec::new();
    for (name, figure) in figures {
        let svg = figure.to_svg();
        let png = figure
            .to_png(SCREEN_DPI)
            .map_err(|error| Failure::Run(Message::new(format!("can not draw: {error}"), "")))?;
        for (kind, bytes) in [("svg", svg.as_bytes()), ("png", &png)] {
            let path = out.join(format!("{name}.{kind}"));
            disk::write_atomically(&path, bytes).map_err(|error| Failure::write(&path, &error))?;
            written.push(path);
        }
    }
    Ok(written)
}

/// Every chart of the report with the file name of its picture.
fn figures(
    name: &str,
    seed: &str,
    recording: &Recording,
    laws: &[Vec<Option<&str>>; 2],
) -> Vec<(String, Figure)> {
    let times = recording.times();
    charts(recording)
        .into_iter()
        .map(|(chart, label)| {
            let of = if chart.of == Of::Flows { "flows" } else { "links" };
            let figure = Figure {
                heading: Some((label.title.clone(), format!("{name}, seed {seed}"))),
                about: label.title.clone(),
                columns: vec![String::new()],
                rows: vec![Row::new(
                    axis(chart, &label),
                    vec![lines(recording, &times, chart, &label, laws)],
                )],
                x: (0.0, recording.duration_s()),
                x_label: "time (s)".into(),
                is_logarithmic: false,
                categories: Vec::new(),
                note: String::new(),
                size: Size::SCREEN,
            };
            (format!("{of}-{}", chart.metric), figure)
        })
        .collect()
}

/// The quantity in a word, for the axis: the title says whose it is.
fn axis(chart: &Chart, label: &Label) -> String {
    let name =
        chart.metric.rsplit_once('_').map_or(chart.metric.as_str(), |(name, _)| name).replace('_', " ");
    match (name.as_str(), label.unit) {
        ("utilization" | "", _) => "utilisation (share)".into(),
        (_, "") => format!("{} (1)", chart.metric.replace('_', " ")),
        (_, unit) => format!("{name} ({unit})"),
    }
}

fn lines(
    recording: &Recording,
    times: &[f64],
    chart: &Chart,
    label: &Label,
    laws: &[Vec<Option<&str>>; 2],
) -> Vec<Line> {
    let groups = recording.groups();
    let laws: Vec<(&str, Option<&str>)> = groups
        .iter()
        .enumerate()
        .map(|(place, (name, _))| (name.as_str(), laws[0].get(place).copied().flatten()))
        .collect();
    let looks = looks(&laws);
    // A share ends at 1, whatever the unit of the page.
    let factor = if chart.metric == "utilization" { 1.0 } else { label.factor };
    let points = |values: &[f32]| -> Vec<(f64, f64)> {
        let values = values.iter().map(|value| f64::from(*value) / factor);
        times.iter().copied().zip(values).collect()
    };
    let mut lines = Vec::new();
    for Spread { group, quantiles } in &chart.spreads {
        let [low, middle, high] = quantiles.each_ref().map(|values| points(values));
        let mut area = high;
        area.extend(low.into_iter().rev());
        area.retain(|(_, y)| !y.is_nan());
        let name = &groups[*group].0;
        lines.push(Line {
            name: format!("{name}: 5 % to 95 %"),
            style: Style::Spread(looks[*group].1),
            points: area,
        });
        lines.push(Line {
            name: format!("{name}: median"),
            style: Style::Line(looks[*group].1),
            points: middle,
        });
    }
    let (drawn, names): (_, Vec<String>) = match chart.of {
        Of::Links => (recording.links_drawn(), recording.link_names()),
        Of::Flows => {
            let name = |(group, flow): (usize, usize)| format!("{}[{flow}]", groups[group].0);
            (recording.flows_drawn(), recording.flows().into_iter().map(name).collect())
        }
    };
    let flows = recording.flows();
    let mut taken = BTreeSet::new();
    let values = chart.series.iter().flatten().map(|value| f64::from(value.abs()) / factor);
    // `max` skips what was not measured.
    let cell = (recording.duration_s() * MARK_CELL.0, (values.fold(0.0, f64::max) * MARK_CELL.1).max(1e-9));
    for (rank, place) in drawn.into_iter().enumerate().filter(|(_, place)| !chart.series[*place].is_empty()) {
        let (name, style) = match chart.of {
            Of::Flows => {
                let (group, flow) = flows[place];
                let look = looks[group].1;
                match groups[group].1 {
                    ..=style::APART_MAX => {
                        let dash = style::DASHES[flow % style::DASHES.len()];
                        (names[place].clone(), Style::Line(Look { dash, ..look }))
                    }
                    count => (format!("{}: {count} flows", groups[group].0), Style::Thin(look)),
                }
            }
            Of::Links => (names[place].clone(), Style::Line(style::nth(rank))),
        };
        let points = points(&chart.series[place]);
        for marks in recording.marks().iter().filter(|marks| marks.of == chart.of && marks.index == place) {
            let mut line = mark_line(marks, &points);
            line.points.retain(|(x, y)| {
                taken.insert((marks.kind.clone(), (x / cell.0) as i64, (y / cell.1) as i64))
            });
            lines.push(line);
        }
        lines.push(Line { name, style, points });
    }
    // Marks are drawn last, above all lines.
    lines.sort_by_key(|line| matches!(line.style, Style::Event(_)));
    lines
}

/// Marks on the line through `points`.
fn mark_line(marks: &Marks, points: &[(f64, f64)]) -> Line {
    let shape = KINDS.iter().find(|(kind, _)| *kind == marks.kind).map_or(Marker::Ring, |(_, shape)| *shape);
    let on_line = marks.at.iter().filter_map(|&(at, _)| {
        let at = f64::from(at);
        let bin = points.partition_point(|(end, _)| *end < at).min(points.len().checked_sub(1)?);
        Some((at, points[bin].1))
    });
    Line { name: marks.kind.clone(), style: Style::Event(shape), points: on_line.collect() }
}
