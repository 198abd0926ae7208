//! `congestlab export figure`: a sweep or runs on disk as a picture for a publication, and its numbers.
//!
//! What is drawn is what `[figure]` of the scenario says, or the options, or what there is. Everything is read and drawn
//! before the first file is written.

use std::path::{Path, PathBuf};

use congestlab_scenario::chart::{self, ChartError, Data, Kind, Picture, Wish};
use congestlab_scenario::figure::Figure as Shown;
use congestlab_scenario::folder::RunFolder;
use congestlab_scenario::sweep::is_folder;
use congestlab_scenario::{Scenario, store};
use serde_json::json;

use crate::args::{FigureArguments, PlotFormat};
use crate::failure::{Failure, Message};
use crate::folder;
use crate::output::{Screen, print, require_file, write_file};
use crate::picture::{Figure, Size};
use crate::sweep::page::SWEEP;

/// A column of a page, where nothing else is said.
const WIDTH_IN: f64 = 3.3;
const DPI: u64 = 300;
/// More lines in one chart can not be told apart.
const LINES_MAX: usize = 12;
/// The style sheet for matplotlib.
const STYLE: &str = "congestlab.mplstyle";

pub(crate) fn figure(arguments: &FigureArguments, screen: &Screen) -> Result<(), Failure> {
    let (picture, figure, name) = read(arguments, screen)?;
    let lines = picture.panels.iter().map(|panel| panel.curves.len()).max().unwrap_or(0);
    if lines > LINES_MAX {
        screen.note(&format!(
            "{lines} lines in one chart: --by law, --by PATH or fewer values show them apart"
        ));
    }
    let (own_width, own_dpi) = figure;
    let width = arguments.width.or(own_width).unwrap_or(WIDTH_IN);
    let dpi = arguments.dpi.or(own_dpi).unwrap_or(DPI);
    let files = files(arguments, &name)?;
    let size = Size::page(width, picture.panels.len(), arguments.mode);
    let drawn = Figure::of(&picture, size).ok_or_else(|| {
        Failure::Input(Message::new(
            "there is one point, and no line to draw",
            "sweep more values, or run longer",
        ))
    })?;
    let fault = |error: String| Failure::Run(Message::new(format!("can not draw: {error}"), ""));
    let mut written: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for (path, format) in files {
        let bytes = match format {
            PlotFormat::Svg => drawn.to_svg().into_bytes(),
            PlotFormat::Png => drawn.to_png(dpi as f64).map_err(fault)?,
            PlotFormat::Pdf => drawn.to_pdf().map_err(fault)?,
        };
        written.push((path, bytes));
    }
    let first = written.first().map(|(path, _)| path.clone()).unwrap_or_default();
    if arguments.csv {
        written.push((first.with_extension("csv"), chart::csv(&picture).into_bytes()));
    }
    if arguments.mplstyle {
        written.push((first.with_file_name(STYLE), chart::mplstyle(width).into_bytes()));
    }
    written.iter().try_for_each(|(path, _)| require_file(path))?;
    for (path, bytes) in &written {
        write_file(path, |out| out.write_all(bytes))?;
    }
    let names: Vec<String> = written.iter().map(|(path, _)| path.display().to_string()).collect();
    print(&if screen.json {
        store::pretty(&json!({ "files": names, "note": picture.note }))
    } else {
        names.join("\n") + "\n"
    })
}

/// What its `[figure]` says of width and dpi.
type Own = (Option<f64>, Option<u64>);

/// The numbers, what `[figure]` says of their size, and what the picture is called.
fn read(arguments: &FigureArguments, screen: &Screen) -> Result<(Picture, Own, String), Failure> {
    let first = arguments.folders.first().map(PathBuf::as_path).unwrap_or(Path::new("."));
    let name = {
        let path = first.canonicalize().unwrap_or_else(|_| first.to_owned());
        path.file_name().map_or_else(|| "plot".into(), |name| name.to_string_lossy().into_owned())
    };
    let own =
        |figure: Option<Shown<'_>>| -> Own { (figure.and_then(Shown::width), figure.and_then(Shown::dpi)) };
    let is_sweep = |path: &PathBuf| path.join(SWEEP).is_file();
    if let Some(sweep) = arguments.folders.iter().find(|path| is_sweep(path)) {
        if arguments.folders.len() > 1 {
            let text = format!("{} is a sweep, and one is drawn at a time", sweep.display());
            return Err(Failure::Input(Message::new(text, "give one sweep, or folders of runs")));
        }
        let table = folder::open_sweep(sweep, screen)?;
        let scenario = Scenario::load(&sweep.join(store::SCENARIO), &[], None).map_err(Failure::Scenario)?;
        let data = Data::of_table(&table).map_err(failure)?;
        let figure = scenario.figure();
        let picture = match figure {
            Some(figure) if wish(arguments, None).is_none() && figure.wish().is_none() => {
                let points = scenario.sweep().map_or(&[][..], |sweep| sweep.points());
                let settings: Vec<_> = points.iter().map(|point| point.settings.clone()).collect();
                chart::points_of_data(&data, &settings, figure)
                    .map(|points| chart::of_figure(figure, &points))
            }
            _ => chart::of_data(&data, &wish(arguments, figure).unwrap_or_default()),
        };
        return Ok((picture.map_err(failure)?, own(figure), name));
    }
    if let Some(sweep) = arguments.folders.iter().find(|path| is_folder(path)) {
        return Err(crate::sweep::page::incomplete(sweep));
    }
    let runs = arguments.folders.iter().map(|path| folder::open_run(path, screen));
    let runs: Vec<RunFolder> = runs.collect::<Result<_, _>>()?;
    let figure = runs.first().and_then(|run| run.scenario().figure());
    let is_asked = wish(arguments, None).is_some();
    if let (Some(figure), false, [run]) = (figure, is_asked, runs.as_slice())
        && figure.wish().is_none()
        && figure.is_over_time()
    {
        let point = chart::point_of_run(run).map_err(failure)?;
        return Ok((chart::of_figure(figure, &[point]), own(Some(figure)), name));
    }
    let wish = wish(arguments, figure).unwrap_or_default();
    let picture = match wish.kind {
        // What is measured once a run has no axis in a single one.
        None | Some(Kind::Time | Kind::Fairness | Kind::Delay) if !has_axis(&wish) => {
            chart::over_time(&runs, &wish)
        }
        _ => chart::of_data(&Data::of_runs(&runs), &wish),
    };
    Ok((picture.map_err(failure)?, own(figure), name))
}

/// Runs are laid out over an axis, and not over time.
fn has_axis(wish: &Wish) -> bool {
    wish.x.as_deref().is_some_and(|x| x != "time")
}

/// What the options ask for, over what `[figure]` does; `None`: neither does.
fn wish(arguments: &FigureArguments, figure: Option<Shown<'_>>) -> Option<Wish> {
    let kind = arguments.kind;
    let asked = Wish { kind, x: arguments.x.clone(), y: arguments.y.clone(), by: arguments.by.clone() };
    let is_asked = [&asked.x, &asked.y, &asked.by].iter().any(|word| word.is_some()) || kind.is_some();
    let own = figure.and_then(Shown::wish);
    match own {
        // Another kind has other quantities.
        Some(own) if asked.kind.is_none() || asked.kind == own.kind => Some(Wish {
            kind: asked.kind.or(own.kind),
            x: asked.x.or(own.x),
            y: asked.y.or(own.y),
            by: asked.by.or(own.by),
        }),
        _ => is_asked.then_some(asked),
    }
}

fn failure(error: ChartError) -> Failure {
    let text = error.to_string();
    match error {
        ChartError::Unknown { allowed, .. } => Failure::Input(Message::new(text, allowed)),
        ChartError::Nothing { help, .. } => Failure::Input(Message::new(text, help)),
        ChartError::Folder(error) => Failure::folder(error),
        ChartError::Table(_) => {
            Failure::Input(Message::new(text, "give the folder that `congestlab sweep` made"))
        }
    }
}

/// The files that are wanted, and what each is.
fn files(arguments: &FigureArguments, name: &str) -> Result<Vec<(PathBuf, PlotFormat)>, Failure> {
    let kinds = [("svg", PlotFormat::Svg), ("png", PlotFormat::Png), ("pdf", PlotFormat::Pdf)];
    let mut formats = arguments.format.clone();
    formats.sort_unstable();
    formats.dedup();
    let ending =
        |format: PlotFormat| kinds.iter().find(|(_, kind)| *kind == format).map_or("svg", |(name, _)| *name);
    let Some(out) = &arguments.out else {
        if formats.is_empty() {
            formats.push(PlotFormat::Svg);
        }
        // A name may hold dots, which are no endings.
        return Ok(formats
            .into_iter()
            .map(|format| (format!("{name}.{}", ending(format)).into(), format))
            .collect());
    };
    if out.as_os_str() == "-" {
        let help = "name a file: -o picture.svg";
        return Err(Failure::Input(Message::new("a picture is not written to stdout", help)));
    }
    let own = out.extension().map(|own| own.to_string_lossy().to_ascii_lowercase());
    let found =
        own.as_deref().and_then(|own| kinds.iter().find(|(name, _)| *name == own)).map(|(_, kind)| *kind);
    let refuse = |text: String| {
        let help = "end the name in .svg, .png or .pdf, or in nothing and say --format";
        Err(Failure::Input(Message::new(text, help)))
    };
    match (found, own) {
        (Some(found), _) if formats.is_empty() => Ok(vec![(out.clone(), found)]),
        (Some(found), _) if !formats.contains(&found) => refuse(format!(
            "{} is no {}",
            out.display(),
            formats.iter().map(|&format| ending(format)).collect::<Vec<_>>().join(" or ")
        )),
        (Some(_), _) => {
            Ok(formats.into_iter().map(|format| (out.with_extension(ending(format)), format)).collect())
        }
        (None, Some(own)) => {
            refuse(format!("can not draw {}: .{own} is no kind of picture that is known", out.display()))
        }
        (None, None) => {
            if formats.is_empty() {
                formats.push(PlotFormat::Svg);
            }
            Ok(formats.into_iter().map(|format| (out.with_extension(ending(format)), format)).collect())
        }
    }
}
