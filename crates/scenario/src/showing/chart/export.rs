//! A picture for other programs: its numbers as CSV, its look as a style sheet of matplotlib.

use std::fmt::Write as _;

use super::Picture;
use crate::results::result::field;
use crate::showing::style;
use crate::showing::style::MARKERS;

/// The numbers of a picture as CSV: a row for each point of each curve.
pub fn csv(picture: &Picture) -> String {
    let mut text = String::from("quantity,line,law,x_quantity,x,y,low,high,n\n");
    for panel in &picture.panels {
        for curve in &panel.curves {
            for (place, (x, y)) in curve.points.iter().enumerate() {
                let x_text = match picture.categories.get(*x as usize) {
                    Some(category) if !picture.categories.is_empty() => field(category),
                    _ => x.to_string(),
                };
                let ends = curve
                    .spread
                    .get(place)
                    .map_or(String::from(","), |(_, low, high)| format!("{low},{high}"));
                let count = curve.samples.get(place).map_or(String::new(), usize::to_string);
                let y = if y.is_finite() { y.to_string() } else { String::new() };
                let _ = writeln!(
                    text,
                    "{},{},{},{},{x_text},{y},{ends},{count}",
                    field(&panel.label),
                    field(&curve.name),
                    curve.law.as_deref().unwrap_or(""),
                    field(&picture.x_label),
                );
            }
        }
    }
    text
}

/// A style sheet for matplotlib: the hues and markers in their order, the fonts and lines of these pictures.
pub fn mplstyle(width_in: f64) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let hues =
        list(style::HUES.iter().map(|hue| format!("'{}'", hue.light.trim_start_matches('#'))).collect());
    let markers = list(MARKERS.iter().map(|marker| format!("'{}'", marker.matplotlib())).collect());
    let mut text = format!(
        "# congestlab: the look of its pictures, for matplotlib. Colours of laws are below.\n\
         axes.prop_cycle: cycler('color', {hues}) + cycler('marker', {markers})\n\
         figure.figsize: {width_in}, {:.2}\n\
         figure.dpi: 150\nsavefig.dpi: 300\nsavefig.bbox: tight\n\
         font.family: sans-serif\nfont.sans-serif: Ubuntu, Helvetica Neue, Arial, DejaVu Sans\nfont.size: 8\n\
         axes.titlesize: 8\naxes.labelsize: 8\nxtick.labelsize: 8\nytick.labelsize: 8\nlegend.fontsize: 8\n\
         axes.edgecolor: {}\naxes.linewidth: 0.5\naxes.grid: True\ngrid.color: {}\ngrid.linewidth: 0.6\n\
         lines.linewidth: 1.05\nlines.markersize: 4\nlegend.frameon: False\nerrorbar.capsize: 2\n\
         pdf.fonttype: 42\nsvg.fonttype: none\n",
        width_in * 0.62,
        style::DIM.light.trim_start_matches('#'),
        style::FAINT.light.trim_start_matches('#'),
    );
    for (law, look) in style::laws() {
        let _ = writeln!(text, "# {law}: color {} marker {}", look.colour().light, look.marker.matplotlib());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_sheet_has_every_law_and_no_sign_that_matplotlib_takes_for_a_comment() {
        let text = mplstyle(3.3);
        for (law, _) in style::laws() {
            assert!(text.contains(&format!("# {law}: ")), "{law}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(!line.contains('#') && line.contains(": "), "{line}");
        }
    }
}
