//! The figure of a paper, as SVG and PNG.

use std::path::Path;

use congestlab_scenario::chart::{self, Picture};
use congestlab_scenario::report::Drawn;

use super::{Ran, keep};
use crate::failure::{Failure, Message};
use crate::output::Screen;
use crate::picture::{Figure, SCREEN_DPI, Size};

/// The figure as SVG and PNG.
pub(super) fn draw(ran: &Ran, folder: &Path, screen: &Screen) -> Result<(), Failure> {
    let Some((_, figure)) = figure(ran) else {
        screen.note(&format!("{} has no picture: its lines have less than two points", ran.name));
        return Ok(());
    };
    let png = figure.to_png(SCREEN_DPI).map_err(|error| Failure::Run(Message::new(error, "")))?;
    keep(&folder.join(format!("{}.svg", ran.name)), figure.to_svg().as_bytes())?;
    keep(&folder.join(format!("{}.png", ran.name)), &png)
}

/// With its numbers, for a page; `None`: there is nothing to draw.
pub(super) fn drawn(ran: &Ran, name: String) -> Option<Drawn> {
    let (picture, figure) = figure(ran)?;
    Some(Drawn { name, about: figure.about.clone(), svg: figure.to_svg(), picture })
}

fn figure(ran: &Ran) -> Option<(Picture, Figure)> {
    let shown = ran.scenario.figure()?;
    let picture = chart::of_figure(shown, &ran.points);
    let figure = Figure::of(&picture, Size::SCREEN)?;
    let has_two = |(low, high): (f64, f64)| low < high;
    let points = picture.panels.iter().flat_map(|panel| &panel.curves).any(|curve| curve.points.len() > 1);
    let figure = Figure { about: shown.title().into(), ..figure };
    (points && has_two(figure.x)).then_some((picture, figure))
}
