//! The figure of a paper, as SVG and PNG.

use std::path::Path;

use congestlab_scenario::chart;

use super::{Ran, keep};
use crate::failure::{Failure, Message};
use crate::output::Screen;
use crate::picture::{Figure, SCREEN_DPI, Size};

/// The figure as SVG and PNG.
pub(super) fn draw(ran: &Ran, folder: &Path, screen: &Screen) -> Result<(), Failure> {
    let Some(figure) = figure(ran) else {
        screen.note(&format!("{} has no picture: its lines have less than two points", ran.name));
        return Ok(());
    };
    let png = figure.to_png(SCREEN_DPI).map_err(|error| Failure::Run(Message::new(error, "")))?;
    keep(&folder.join(format!("{}.svg", ran.name)), figure.to_svg().as_bytes())?;
    keep(&folder.join(format!("{}.png", ran.name)), &png)
}

/// As SVG; `None`: there is nothing to draw.
pub(super) fn picture(ran: &Ran) -> Option<String> {
    figure(ran).map(|figure| figure.to_svg())
}

fn figure(ran: &Ran) -> Option<Figure> {
    let shown = ran.scenario.figure()?;
    let picture = chart::of_figure(shown, &ran.points);
    let figure = Figure::of(&picture, Size::SCREEN)?;
    let has_two = |(low, high): (f64, f64)| low < high;
    let points = picture.panels.iter().flat_map(|panel| &panel.curves).any(|curve| curve.points.len() > 1);
    (points && has_two(figure.x)).then(|| Figure {
        heading: Some((shown.title().into(), shown.of().into())),
        about: shown.title().into(),
        ..figure
    })
}
