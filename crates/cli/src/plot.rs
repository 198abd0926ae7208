//! Pictures: a grid of line charts as SVG, and the same picture as PNG.
//!
//! A column is one run, a row is one quantity. All charts share the time axis and the charts of a
//! row share the value axis, so that equal heights mean equal values. Lines differ by colour and by
//! dash, so the picture survives colour blindness and a grey printer. No data are kept or derived
//! here: whoever calls has saved them already.

mod letters;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use congestlab_scenario::printable;
use resvg::{tiny_skia, usvg};

/// Okabe and Ito's palette (Color Universal Design, 2008) without its yellow, which is too faint on white.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
/// Dash patterns in pixels. Seven colours and four dashes have no common factor: 28 styles differ.
const DASHES: [&str; 4] = ["", "7 3", "2 2.5", "9 3 2 3"];

const FONT: &str = "Ubuntu, 'Helvetica Neue', Arial, sans-serif";
const INK: &str = "#222222";
const FAINT: &str = "#e3e3e3";
const LIMIT: &str = "#777777";
const EVENT: &str = "#a3123a";
/// Marks, as paths from their middle: cross, plus, rhomb, triangle, circle.
const SHAPES: [&str; 5] = [
    "m-3 -3l6 6m0 -6l-6 6",
    "m-3.5 0h7m-3.5 -3.5v7",
    "m0 -4l4 4l-4 4l-4 -4z",
    "m0 -4l4 7h-8z",
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0",
];

const CHART_WIDTH: f64 = 400.0;
const CHART_HEIGHT: f64 = 150.0;
const GAP: f64 = 26.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 84.0;
/// Room that headings of columns take.
const HEADING: f64 = 22.0;
const AXIS: f64 = 44.0;
const LEGEND_LINE: f64 = 22.0;
/// Of what says nothing else.
const FONT_SIZE: f64 = 13.0;
/// Mean width of a character of the legend, pixels: the legend is laid out without shaping text.
const CHARACTER: f64 = 7.0;
/// Pixels of the PNG per unit of the SVG: sharp on dense screens.
const PNG_SCALE: f32 = 2.0;

/// How a line looks. Equal styles and names share one entry of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Style {
    /// An area in the n-th colour: its upper edge, then its lower edge backwards.
    Spread(usize),
    /// The n-th colour and dash.
    Flow(usize),
    /// Wide and pale in the n-th colour, behind lines that it is compared with.
    Behind(usize),
    /// Black, the n-th dash.
    Link(usize),
    /// Marks of the n-th shape.
    Event(usize),
    /// A bound or a goal beside the data: thin, grey, dotted.
    Limit,
}

impl Style {
    fn attributes(self) -> String {
        let (colour, width, dash) = match self {
            Self::Flow(n) => (COLOURS[n % COLOURS.len()], 1.7, DASHES[n % DASHES.len()]),
            Self::Link(n) => (INK, 1.4, DASHES[n % DASHES.len()]),
            Self::Behind(n) => {
                return format!(
                    "stroke=\"{}\" stroke-width=\"5\" opacity=\"0.35\"",
                    COLOURS[n % COLOURS.len()]
                );
            }
            Self::Spread(n) => {
                return format!(
                    "stroke=\"{0}\" stroke-width=\"9\" opacity=\"0.3\"",
                    COLOURS[n % COLOURS.len()]
                );
            }
            Self::Event(_) => (EVENT, 1.2, ""),
            Self::Limit => (LIMIT, 1.2, "1.5 3"),
        };
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        format!("stroke=\"{colour}\" stroke-width=\"{width}\"{dash}")
    }

    /// Attributes and commands of the path through points on paper. What is not a number is a gap.
    fn path(self, points: impl Iterator<Item = (f64, f64)>) -> (String, String) {
        let mut path = String::new();
        if let Self::Event(shape) = self {
            points.filter(|(_, y)| y.is_finite()).for_each(|(x, y)| {
                let _ = write!(path, "M{x:.1} {y:.1}{}", SHAPES[shape % SHAPES.len()]);
            });
            return (format!("fill=\"none\" {}", self.attributes()), path);
        }
        let mut is_gap = true;
        for (x, y) in points {
            if y.is_finite() {
                let _ = write!(path, "{}{x:.1} {y:.1}", if is_gap { 'M' } else { 'L' });
            }
            is_gap = !y.is_finite();
        }
        let attributes = match self {
            Self::Spread(n) => format!("fill=\"{}\" fill-opacity=\"0.25\"", COLOURS[n % COLOURS.len()]),
            _ => format!("fill=\"none\" stroke-linejoin=\"round\" {}", self.attributes()),
        };
        (attributes, path)
    }
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Its entry in the legend; empty: none.
    pub(crate) name: String,
    pub(crate) style: Style,
    /// (x, y), x ascending.
    pub(crate) points: Vec<(f64, f64)>,
}

/// One quantity, drawn for every column.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Quantity and unit.
    pub(crate) label: String,
    /// One chart per column.
    pub(crate) charts: Vec<Vec<Line>>,
}

/// The whole picture.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    /// Headings of the columns.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Range and label of the common x axis.
    pub(crate) x: (f64, f64),
    pub(crate) x_label: String,
    /// x are powers of ten.
    pub(crate) is_logarithmic: bool,
}

impl Figure {
    /// The picture as a self-contained SVG document.
    pub(crate) fn to_svg(&self) -> String {
        let legend = self.legend();
        let width = self.width();
        let has_headings = self.columns.iter().any(|heading| !heading.is_empty());
        let top = if has_headings { TOP } else { TOP - HEADING };
        let legend_top = top + extent(self.rows.len(), CHART_HEIGHT) + AXIS;
        let entries = place_legend(&legend, width);
        let legend_height = entries.last().map_or(0.0, |(_, y, ..)| y + LEGEND_LINE);
        let height = legend_top + legend_height + 12.0;

        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\" font-size=\"13\" fill=\"{INK}\" role=\"img\">\n\
             <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            escape(&self.title)
        );
        let title = format!("font-size=\"{}\"", fitting(&self.title, 19.0, width - LEFT));
        text(&mut svg, LEFT, 27.0, &title, &self.title);
        text(&mut svg, LEFT, 48.0, "fill=\"#555555\"", &self.subtitle);
        for (column, heading) in self.columns.iter().enumerate() {
            let middle = offset(LEFT, column, CHART_WIDTH) + CHART_WIDTH / 2.0;
            text(&mut svg, middle, top - 10.0, "font-size=\"15\" text-anchor=\"middle\"", heading);
        }
        for (index, row) in self.rows.iter().enumerate() {
            let row_top = offset(top, index, CHART_HEIGHT);
            self.row(&mut svg, row, row_top, index + 1 == self.rows.len());
        }
        for ((name, style), (x, y)) in legend.iter().zip(&entries) {
            let (y, end) = (legend_top + y, x + 30.0);
            let path = match style {
                Style::Event(_) => style.path([(x + 15.0, y)].into_iter()).1,
                _ => format!("M{x:.1} {y:.1}H{end:.1}"),
            };
            let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" {}/>", style.attributes());
            text(&mut svg, end + 6.0, y + 4.5, "", name);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn width(&self) -> f64 {
        LEFT + RIGHT + extent(self.columns.len(), CHART_WIDTH)
    }

    fn row(&self, svg: &mut String, row: &Row, top: f64, is_last: bool) {
        let values = || row.charts.iter().flatten().flat_map(|line| &line.points).map(|point| point.1);
        let (lowest, highest) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
        // Shares end at 1, and need no room above it.
        let top_value = match highest {
            ..=0.0 => 1.0,
            0.9..=1.0 => 1.0,
            _ => highest * 1.05,
        };
        let y_ticks = Ticks::around(lowest, top_value, 4);
        let (low, high) = (y_ticks.first as f64 * y_ticks.step, y_ticks.end);
        let y_of = |value: f64| top + CHART_HEIGHT * (1.0 - ((value - low) / (high - low)).clamp(0.0, 1.0));
        let label_at = top + CHART_HEIGHT / 2.0;
        text(
            svg,
            18.0,
            label_at,
            &format!("text-anchor=\"middle\" transform=\"rotate(-90 18 {label_at:.1})\""),
            &row.label,
        );
        for (column, lines) in row.charts.iter().enumerate() {
            let left = offset(LEFT, column, CHART_WIDTH);
            let x_of = |x: f64| left + CHART_WIDTH * (x - self.x.0) / (self.x.1 - self.x.0);
            for value in y_ticks.values() {
                let y = y_of(value);
                let _ = writeln!(svg, "<path d=\"M{left:.1} {y:.1}h{CHART_WIDTH}\" stroke=\"{FAINT}\"/>");
                if column == 0 {
                    text(svg, left - 8.0, y + 4.5, "text-anchor=\"end\"", &y_ticks.label(value));
                }
            }
            for value in self.x_ticks() {
                let (x, bottom) = (x_of(value), top + CHART_HEIGHT);
                let _ = writeln!(svg, "<path d=\"M{x:.1} {bottom:.1}v-{CHART_HEIGHT}\" stroke=\"{FAINT}\"/>");
                if is_last {
                    let label = self.x_tick_label(value);
                    // Long ones do not leave the picture.
                    let half = label.chars().count() as f64 * CHARACTER / 2.0;
                    let x = x.min(self.width() - half);
                    text(svg, x, bottom + 18.0, "text-anchor=\"middle\"", &label);
                }
            }
            for line in lines {
                let points = line.points.iter().map(|(x, y)| (x_of(*x), y_of(*y)));
                let (attributes, path) = line.style.path(points);
                let name = escape(&line.name);
                let _ = writeln!(svg, "<path d=\"{path}\" {attributes}><title>{name}</title></path>");
            }
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{CHART_WIDTH}\" height=\"{CHART_HEIGHT}\" \
                 fill=\"none\" stroke=\"#888888\"/>"
            );
            if is_last {
                let middle = left + CHART_WIDTH / 2.0;
                let size = match fitting(&self.x_label, FONT_SIZE, CHART_WIDTH) {
                    FONT_SIZE => String::new(),
                    size => format!(" font-size=\"{size}\""),
                };
                let attributes = format!("text-anchor=\"middle\"{size}");
                text(svg, middle, top + CHART_HEIGHT + 36.0, &attributes, &self.x_label);
            }
        }
    }

    /// Where the x axis is marked, within its range.
    fn x_ticks(&self) -> Vec<f64> {
        let (from, to) = self.x;
        if self.is_logarithmic {
            // Powers of ten; where they are few, 2 and 5 of each, too.
            let parts: &[f64] = if to - from < 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let decades = from.floor() as i32..=to.floor() as i32;
            let marks =
                decades.flat_map(|power| parts.iter().map(move |part| f64::from(power) + log10(*part)));
            return marks.filter(|mark| (from..=to).contains(mark)).collect();
        }
        Ticks::new(from, to, 6).values().filter(|value| *value <= to).collect()
    }

    fn x_tick_label(&self, value: f64) -> String {
        if !self.is_logarithmic {
            return Ticks::new(self.x.0, self.x.1, 6).label(value);
        }
        let power = value.floor() as i32;
        let part = power_of_ten(value - value.floor()).round();
        match power {
            // Through text: 2 * 10^-3 has no end in binary.
            -3..=4 => format!("{}", format!("{part}e{power}").parse().unwrap_or(part)),
            _ => format!("{part}e{power}"),
        }
    }

    /// Name and style of every line, each once, data before limits.
    fn legend(&self) -> Vec<(String, Style)> {
        let mut entries = BTreeMap::new();
        let lines = self.rows.iter().flat_map(|row| &row.charts).flatten();
        for line in lines.filter(|line| !line.name.is_empty()) {
            entries.insert((line.style, line.name.clone()), ());
        }
        entries.into_keys().map(|(style, name)| (name, style)).collect()
    }
}

/// For logarithmic axes.
#[expect(clippy::disallowed_methods, reason = "a picture is no result")]
pub(crate) fn log10(x: f64) -> f64 {
    x.log10()
}

/// The other way round.
#[expect(clippy::disallowed_methods, reason = "a picture is no result")]
fn power_of_ten(x: f64) -> f64 {
    10f64.powf(x)
}

/// Length of `count` charts and the gaps between them.
fn extent(count: usize, size: f64) -> f64 {
    offset(0.0, count, size) - GAP
}

fn offset(first: f64, index: usize, size: f64) -> f64 {
    first + index as f64 * (size + GAP)
}

/// Where each entry of the legend goes, relative to the legend's top: left to right, then the next line.
fn place_legend(legend: &[(String, Style)], width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (LEFT, 10.0);
    let mut places = Vec::new();
    for (name, _) in legend {
        let size = 36.0 + name.chars().count() as f64 * CHARACTER + 22.0;
        if x > LEFT && x + size > width {
            (x, y) = (LEFT, y + LEGEND_LINE);
        }
        places.push((x, y));
        x += size;
    }
    places
}

/// The size, up to `size`, at which a text takes no more than `room`.
fn fitting(content: &str, size: f64, room: f64) -> f64 {
    let wanted = content.chars().count() as f64 * CHARACTER / FONT_SIZE;
    if wanted * size > room { (room / wanted * 10.0).floor() / 10.0 } else { size }
}

fn text(svg: &mut String, x: f64, y: f64, attributes: &str, content: &str) {
    let content = printable::line(content, printable::MESSAGE);
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{}</text>", escape(&content));
}

/// Text in SVG and HTML; XML knows no controls.
pub(crate) fn escape(content: &str) -> String {
    printable::lines(content)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Round values along an axis: steps of 1, 2 or 5 times a power of ten.
struct Ticks {
    first: i64,
    last: i64,
    step: f64,
    digits: usize,
    end: f64,
}

impl Ticks {
    /// About `wanted` steps from `from` to `to`.
    fn new(from: f64, to: f64, wanted: u32) -> Self {
        let rough = (to - from) / f64::from(wanted);
        let mut power = 0;
        while 10f64.powi(power + 1) <= rough {
            power += 1;
        }
        while 10f64.powi(power) > rough {
            power -= 1;
        }
        let unit = 10f64.powi(power);
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * unit).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * unit);
        let last = (to / step).ceil() as i64;
        let digits = if step < 1.0 { -power } else { 0 };
        Self {
            first: (from / step).ceil() as i64,
            last,
            step,
            digits: usize::try_from(digits).unwrap_or(0),
            end: last as f64 * step,
        }
    }

    /// The same, with a first step that is not above `from`.
    fn around(from: f64, to: f64, wanted: u32) -> Self {
        let ticks = Self::new(from, to, wanted);
        Self { first: (from / ticks.step).floor() as i64, ..ticks }
    }

    fn values(&self) -> impl Iterator<Item = f64> + use<> {
        let step = self.step;
        (self.first..=self.last).map(move |index| index as f64 * step)
    }

    fn label(&self, value: f64) -> String {
        format!("{value:.*}", self.digits)
    }
}

/// Renders an SVG document of [`Figure::to_svg`] as PNG. The font comes with the program, so the
/// picture is the same on every machine.
pub(crate) fn to_png(svg: &str) -> Result<Vec<u8>, String> {
    let tree = usvg::Tree::from_str(&letters::outlined(svg)?, &usvg::Options::default())
        .map_err(|error| error.to_string())?;
    let (width, height) = (tree.size().width() * PNG_SCALE, tree.size().height() * PNG_SCALE);
    let mut pixels = tiny_skia::Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| format!("a picture of {width} x {height} pixels is too large"))?;
    let scale = tiny_skia::Transform::from_scale(PNG_SCALE, PNG_SCALE);
    resvg::render(&tree, scale, &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        let ramp = |name: &str, n, slope: f64| Line {
            name: name.to_owned(),
            style: Style::Flow(n),
            points: (0..100).map(|i| (f64::from(i) * 0.2, f64::from(i) * slope)).collect(),
        };
        let limit = Line {
            name: "fair <share>".into(),
            style: Style::Limit,
            points: vec![(0.0, 10.0), (20.0, 10.0)],
        };
        let chart = |k: f64| vec![ramp("flow 1", 0, 0.1 * k), ramp("flow 2", 1, 0.2), limit.clone()];
        let row = |label: &str| Row { label: label.into(), charts: vec![chart(1.0), chart(2.0)] };
        Figure {
            title: "A & B".into(),
            subtitle: "two runs".into(),
            columns: vec!["xcp".into(), "cubic".into()],
            rows: vec![row("throughput (Mbit/s)"), row("cwnd (packets)"), row("queue (packets)")],
            x: (0.0, 20.0),
            x_label: "time (s)".into(),
            is_logarithmic: false,
        }
    }

    #[test]
    fn every_name_stands_once_in_the_legend_and_is_escaped() {
        let svg = figure().to_svg();
        for name in ["flow 1", "flow 2", "fair &lt;share&gt;"] {
            assert_eq!(svg.matches(&format!(" >{name}</text>")).count(), 1, "{name}");
        }
        assert!(svg.contains("<title>A &amp; B</title>"));
    }

    #[test]
    fn the_picture_renders_with_its_own_font() {
        let svg = figure().to_svg();
        let png = to_png(&svg).expect("the document is valid");
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let without_text = to_png(&svg.replace("flow 1</text>", "</text>")).expect("still valid");
        assert_ne!(png, without_text, "text leaves no trace: the font was not found");
    }

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        let labels = |from, to| -> Vec<String> {
            let ticks = Ticks::new(from, to, 4);
            ticks.values().map(|value| ticks.label(value)).collect()
        };
        assert_eq!(labels(0.0, 20.0), ["0", "5", "10", "15", "20"]);
        assert_eq!(labels(0.0, 0.7), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(0.0, 130.0), ["0", "50", "100", "150"]);
        assert_eq!(labels(3.0, 9.0), ["4", "6", "8", "10"]);
    }
}
