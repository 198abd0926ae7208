//! The figure of a paper, as SVG and PNG.

use std::collections::BTreeMap;
use std::path::Path;

use congestlab_scenario::figure::Curve;

use super::{Ran, keep};
use crate::failure::{Failure, Message};
use crate::output::Screen;
use crate::plot::{self, Line, Row, Style};

/// The figure as SVG and PNG.
pub(super) fn draw(ran: &Ran, folder: &Path, screen: &Screen) -> Result<(), Failure> {
    let Some(svg) = picture(ran) else {
        screen.note(&format!("{} has no picture: its lines have less than two points", ran.name));
        return Ok(());
    };
    let png = plot::to_png(&svg).map_err(|error| Failure::Run(Message::new(error, "")))?;
    keep(&folder.join(format!("{}.svg", ran.name)), svg.as_bytes())?;
    keep(&folder.join(format!("{}.png", ran.name)), &png)
}

/// `None`: there is nothing to draw.
pub(super) fn picture(ran: &Ran) -> Option<String> {
    let figure = ran.scenario.figure()?;
    let curves = figure.curves(&ran.points);
    let mut rows: Vec<Row> = Vec::new();
    let mut styles: BTreeMap<&str, usize> = BTreeMap::new();
    for curve in &curves {
        let next = styles.len();
        let style = *styles.entry(&curve.name).or_insert(next);
        let lines = lines(curve, style, figure.is_logarithmic());
        match rows.iter_mut().find(|row| row.label == curve.y) {
            Some(row) => row.charts[0].extend(lines),
            None => rows.push(Row { label: curve.y.clone(), charts: vec![lines] }),
        }
    }
    let xs = || {
        rows.iter().flat_map(|row| &row.charts).flatten().flat_map(|line| &line.points).map(|point| point.0)
    };
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    if low.partial_cmp(&high) != Some(std::cmp::Ordering::Less) {
        return None;
    }
    Some(
        plot::Figure {
            title: figure.title().into(),
            subtitle: figure.of().into(),
            columns: vec![String::new()],
            rows,
            x: (low, high),
            x_label: figure.x_label().into(),
            is_logarithmic: figure.is_logarithmic(),
        }
        .to_svg(),
    )
}

fn lines(curve: &Curve, style: usize, is_logarithmic: bool) -> Vec<Line> {
    let x = |x: f64| if is_logarithmic { plot::log10(x) } else { x };
    let mut lines = Vec::new();
    if !curve.spread.is_empty() {
        let up = curve.spread.iter().map(|&(at, _, high)| (x(at), high));
        // An interval by Student's t knows no bound; what is never negative is not drawn so.
        let is_positive = curve.points.iter().all(|&(_, y)| y >= 0.0);
        let low = |low: f64| if is_positive { low.max(0.0) } else { low };
        let down = curve.spread.iter().rev().map(|&(at, down, _)| (x(at), low(down)));
        lines.push(Line {
            // The line's own name says whose it is.
            name: String::new(),
            style: Style::Spread(style),
            points: up.chain(down).collect(),
        });
    }
    let points = curve.points.iter().map(|&(at, y)| (x(at), y)).collect();
    lines.push(Line { name: curve.name.clone(), style: Style::Flow(style), points });
    lines
}
