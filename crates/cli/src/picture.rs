//! Pictures: a grid of charts, as SVG, PNG and PDF.
//!
//! A column is one run, a row is one quantity. All charts share the x axis and the charts of a row share the y axis, so
//! that equal heights mean equal values. How lines look is in [`congestlab_scenario::style`]. No data are kept or
//! derived here: whoever calls has saved them already.

mod canvas;
mod font;
mod pdf;
mod png;
mod svg;

use congestlab_scenario::chart::{self, Curve, Mark};
use congestlab_scenario::printable;
use congestlab_scenario::style::{self, Bound, DIM, EVENT, FAINT, INK, Look, Marker};

use canvas::{Anchor, Canvas, Ink, Item, Place, Segment, Tag};
pub(crate) use canvas::{Mode, Unit};

/// Pixels of a PNG per inch of a picture for screens: sharp on dense ones.
pub(crate) const SCREEN_DPI: f64 = 192.0;

/// How a line looks. Equal styles and names share one entry of the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Style {
    /// An area: its upper edge, then its lower edge backwards.
    Spread(Look),
    /// Intervals: the lower and the upper end of each, one after the other.
    Interval(Look),
    /// A line through what was recorded all the time.
    Line(Look),
    /// One of many equal ones.
    Thin(Look),
    /// A line with a marker at each point that was measured.
    Measured(Look),
    /// Markers alone: there is nothing between two names.
    Points(Look),
    /// Wide and pale, behind lines that it is compared with.
    Behind(Look),
    /// Marks.
    Event(Marker),
    /// A bound or a goal beside the data.
    Bound(Bound),
}

impl Style {
    /// Order in the legend: data before events before bounds.
    fn rank(self) -> u8 {
        match self {
            Self::Event(_) => 1,
            Self::Bound(_) => 2,
            _ => 0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Spread(_) => "spread",
            Self::Interval(_) => "interval",
            Self::Event(_) => "event",
            Self::Bound(_) => "bound",
            _ => "line",
        }
    }

    /// Of its line, in a picture whose letters are 13 units high.
    fn ink(self, scale: f64) -> Ink {
        let line = |look: Look, width: f64, opacity: f64, dash| Ink {
            stroke: Some((look.colour(), width * scale, dash)),
            fill: None,
            opacity,
        };
        match self {
            Self::Spread(look) => Ink { stroke: None, fill: Some(look.colour()), opacity: 0.22 },
            Self::Interval(look) => line(look, 1.1, 1.0, &[]),
            Self::Line(look) | Self::Measured(look) | Self::Points(look) => line(look, 1.7, 1.0, look.dash),
            Self::Thin(look) => line(look, 0.7, 1.0, &[]),
            Self::Behind(look) => line(look, 5.0, 0.35, &[]),
            Self::Event(_) => Ink { stroke: Some((EVENT, 1.2 * scale, &[])), fill: None, opacity: 1.0 },
            Self::Bound(bound) => {
                Ink { stroke: Some((bound.colour, 1.3 * scale, bound.dash)), fill: None, opacity: 1.0 }
            }
        }
    }
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Its entry in the legend; empty: none.
    pub(crate) name: String,
    pub(crate) style: Style,
    /// (x, y), x ascending. What is not a number is a gap.
    pub(crate) points: Vec<(f64, f64)>,
}

/// How the y axis of a row is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scale {
    /// From 0, or below, to somewhat above the highest value.
    #[default]
    Linear,
    /// From 0 to 1, and never beyond: a share of what there is.
    Share,
    /// In equal ratios.
    Logarithmic,
}

/// One quantity, drawn for every column.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Quantity and unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    /// One chart per column.
    pub(crate) charts: Vec<Vec<Line>>,
}

impl Row {
    /// A quantity whose axis is a share if its label says so: utilisation ends at 1, and so does Jain's index.
    pub(crate) fn new(label: impl Into<String>, charts: Vec<Vec<Line>>) -> Self {
        let label: String = label.into();
        let is_share = chart::is_share(&label);
        Self { label, scale: if is_share { Scale::Share } else { Scale::Linear }, charts }
    }
}

/// How large a picture is, and for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) unit: Unit,
    /// Of the whole picture; `None`: charts of 400 units.
    pub(crate) width: Option<f64>,
    /// Of letters.
    pub(crate) font: f64,
    /// Of one chart.
    pub(crate) chart_height: f64,
    pub(crate) mode: Mode,
}

impl Size {
    /// For a screen.
    pub(crate) const SCREEN: Self =
        Self { unit: Unit::Pixel, width: None, font: 13.0, chart_height: 150.0, mode: Mode::Auto };

    /// So many inches of a page.
    pub(crate) fn page(inches: f64, rows: usize, mode: Mode) -> Self {
        let width = inches * Unit::Point.per_inch();
        // Golden where there is one chart; several are lower, and none is a strip.
        let height = (width * 0.56 / (rows as f64).sqrt()).clamp(72.0, 210.0);
        Self { unit: Unit::Point, width: Some(width), font: 8.0, chart_height: height, mode }
    }
}

/// The whole picture.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// A title and what stands below it; a publication has a caption instead.
    pub(crate) heading: Option<(String, String)>,
    /// What it shows, for those who can not see it.
    pub(crate) about: String,
    /// Headings of the columns.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Range and label of the common x axis.
    pub(crate) x: (f64, f64),
    pub(crate) x_label: String,
    /// x are powers of ten.
    pub(crate) is_logarithmic: bool,
    /// Names of the places 0, 1, ... of an axis without numbers.
    pub(crate) categories: Vec<String>,
    /// What stands below the legend, such as what the intervals are.
    pub(crate) note: String,
    pub(crate) size: Size,
}

impl Figure {
    /// What a scenario's results show, without a heading. `None`: no line has two places.
    pub(crate) fn of(picture: &chart::Picture, size: Size) -> Option<Self> {
        let all = || picture.panels.iter().flat_map(|panel| &panel.curves);
        let names: Vec<(&str, Option<&str>)> =
            all().map(|curve| (curve.name.as_str(), curve.law.as_deref())).collect();
        let looks = chart::looks(&names);
        let x_of = |x: f64| if picture.is_logarithmic { log10(x) } else { x };
        let xs = || all().flat_map(|curve| &curve.points).map(|(x, _)| x_of(*x));
        let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
        let is_measured = all().any(|curve| curve.mark == Mark::Measured);
        let x = if !picture.categories.is_empty() {
            (-0.5, picture.categories.len() as f64 - 0.5)
        } else if low < high {
            // A marker stands within its chart.
            let margin = if is_measured { (high - low) * 0.03 } else { 0.0 };
            (if is_measured || picture.is_logarithmic { low - margin } else { low.min(0.0) }, high + margin)
        } else if low == high && is_measured {
            // Half of the value on either side, or half a decade: the marks then tell its size.
            let margin = if picture.is_logarithmic || low == 0.0 { 0.5 } else { low.abs() / 2.0 };
            (low - margin, high + margin)
        } else {
            return None;
        };
        let rows = picture.panels.iter().map(|panel| {
            let lines = panel.curves.iter().flat_map(|curve| {
                let look = looks
                    .iter()
                    .find(|(name, _)| *name == curve.name)
                    .map_or(style::nth(0), |(_, look)| *look);
                lines_of(curve, look, !picture.categories.is_empty(), &x_of)
            });
            let row = Row::new(&*panel.label, vec![lines.collect()]);
            if panel.is_logarithmic { Row { scale: Scale::Logarithmic, ..row } } else { row }
        });
        let quantities: Vec<&str> = picture.panels.iter().map(|panel| panel.label.as_str()).collect();
        Some(Self {
            heading: None,
            about: format!("{} over {}", quantities.join("; "), picture.x_label),
            columns: vec![String::new()],
            rows: rows.collect(),
            x,
            x_label: picture.x_label.clone(),
            is_logarithmic: picture.is_logarithmic,
            categories: picture.categories.clone(),
            note: picture.note.clone(),
            size,
        })
    }
}

/// A curve and what belongs to it, on an axis of numbers or of names.
fn lines_of(curve: &Curve, look: Look, has_names: bool, x_of: &dyn Fn(f64) -> f64) -> Vec<Line> {
    let line = |style, points| Line { name: curve.name.clone(), style, points };
    let points = || curve.points.iter().map(|&(x, y)| (x_of(x), y)).collect::<Vec<_>>();
    let mut lines = Vec::new();
    if !curve.spread.is_empty() {
        lines.push(if curve.mark == Mark::Measured {
            let ends = curve.spread.iter().flat_map(|&(x, low, high)| [(x_of(x), low), (x_of(x), high)]);
            line(Style::Interval(look), ends.collect())
        } else {
            let known = || curve.spread.iter().filter(|(_, low, high)| low.is_finite() && high.is_finite());
            let up = known().map(|&(x, _, high)| (x_of(x), high));
            let down = known().rev().map(|&(x, low, _)| (x_of(x), low));
            // Its line is the entry of both.
            Line { name: String::new(), ..line(Style::Spread(look), up.chain(down).collect()) }
        });
    }
    let style = match curve.mark {
        Mark::Line => Style::Line(look),
        Mark::Thin => Style::Thin(look),
        Mark::Measured if has_names => Style::Points(look),
        Mark::Measured => Style::Measured(look),
        Mark::Bound(bound) => Style::Bound(bound),
    };
    // The line first: it is what its intervals stand on, in the legend too.
    lines.insert(0, line(style, points()));
    lines
}

/// Where things are.
struct Layout {
    left: f64,
    right: f64,
    top: f64,
    chart_width: f64,
    gap: f64,
    /// The size of the letters of all labels of rows.
    label: f64,
    /// 1 where letters are 13 units high.
    scale: f64,
}

impl Figure {
    /// A self-contained SVG document.
    pub(crate) fn to_svg(&self) -> String {
        svg::write(&self.draw())
    }

    /// The same as pixels. The font comes with the program, so that it is the same on every machine.
    pub(crate) fn to_png(&self, dpi: f64) -> Result<Vec<u8>, String> {
        png::write(&self.draw(), dpi)
    }

    /// The same as a page of its size.
    pub(crate) fn to_pdf(&self) -> Result<Vec<u8>, String> {
        pdf::write(&self.draw())
    }

    fn layout(&self) -> Layout {
        let font = self.size.font;
        let scale = font / 13.0;
        let labels = self.rows.iter().flat_map(|row| {
            let axis = self.axis(row);
            axis.ticks.iter().map(|tick| font::width(&tick.1, font)).collect::<Vec<_>>()
        });
        let left = font * 2.4 + labels.fold(0.0, f64::max);
        let last = self.x_ticks(400.0).last().map_or(0.0, |(_, label)| font::width(label, font));
        let right = (last / 2.0 + 2.0 * scale).max(font * 0.7);
        let gap = font * 1.4 + if self.columns.len() > 1 { last / 2.0 } else { 0.0 };
        let columns = self.columns.len().max(1) as f64;
        let chart_width = match self.size.width {
            Some(width) => ((width - left - right - gap * (columns - 1.0)) / columns).max(font),
            None => 400.0,
        };
        let heading = if self.heading.is_some() { font * 4.2 } else { font * 0.7 };
        let has_columns = self.columns.iter().any(|column| !column.is_empty());
        let top = heading + if has_columns { font * 1.9 } else { 0.0 };
        let room = self.size.chart_height + font * 1.4;
        let label = self.rows.iter().map(|row| fitting(&row.label, font, room)).fold(font, f64::min);
        Layout { left, right, top, chart_width, gap, label, scale }
    }

    fn draw(&self) -> Canvas {
        let (layout, font) = (self.layout(), self.size.font);
        let columns = self.columns.len().max(1) as f64;
        let width = self.size.width.unwrap_or(
            layout.left + layout.right + columns * layout.chart_width + (columns - 1.0) * layout.gap,
        );
        let mut canvas = Canvas {
            width,
            height: 0.0,
            unit: self.size.unit,
            mode: self.size.mode,
            about: self.about.clone(),
            items: Vec::new(),
        };
        if let Some((title, subtitle)) = &self.heading {
            let room = width - layout.left - layout.right;
            canvas.text(
                (layout.left, font * 2.0),
                fitting(title, font * 1.45, room),
                Anchor::Start,
                INK,
                title,
            );
            let size = fitting(subtitle, font, room);
            canvas.text((layout.left, font * 3.6), size, Anchor::Start, DIM, subtitle);
        }
        for (column, heading) in self.columns.iter().enumerate().filter(|(_, heading)| !heading.is_empty()) {
            let left = layout.left + column as f64 * (layout.chart_width + layout.gap);
            let size = fitting(heading, font * 1.15, layout.chart_width);
            let at = (left + layout.chart_width / 2.0, layout.top - font * 0.7);
            canvas.text(at, size, Anchor::Middle, INK, heading);
        }
        let row_gap = font * 1.5;
        let mut bottom = layout.top;
        for (index, row) in self.rows.iter().enumerate() {
            let top = layout.top + index as f64 * (self.size.chart_height + row_gap);
            bottom = top + self.size.chart_height;
            self.draw_row(&mut canvas, &layout, row, top);
        }
        let below = self.draw_x_labels(&mut canvas, &layout, bottom);
        let end = self.draw_legend(&mut canvas, &layout, below + font * 1.2);
        canvas.height = (end + font * 0.7).ceil();
        canvas
    }

    fn draw_row(&self, canvas: &mut Canvas, layout: &Layout, row: &Row, top: f64) {
        let (font, height) = (self.size.font, self.size.chart_height);
        let axis = self.axis(row);
        let y_at = |at: f64| top + height * (1.0 - axis.share(at));
        let y_of = |value: f64| y_at(if axis.is_logarithmic { log10(value) } else { value });
        let middle = (font * 1.1, top + height / 2.0);
        canvas.turned(middle, layout.label, Anchor::Middle, INK, &row.label);
        for (column, lines) in row.charts.iter().enumerate() {
            let left = layout.left + column as f64 * (layout.chart_width + layout.gap);
            let x_of = |x: f64| left + layout.chart_width * (x - self.x.0) / (self.x.1 - self.x.0);
            for (value, label) in &axis.ticks {
                let y = y_at(*value);
                canvas.line((left, y), (left + layout.chart_width, y), FAINT, layout.scale);
                if column == 0 {
                    canvas.text((left - font * 0.6, y + font * 0.35), font, Anchor::End, INK, label);
                }
            }
            for (value, _) in self.x_ticks(layout.chart_width) {
                canvas.line((x_of(value), top), (x_of(value), top + height), FAINT, layout.scale);
            }
            // Markers and intervals above all lines, and events above those.
            let order = |line: &&Line| match line.style {
                Style::Spread(_) | Style::Behind(_) => 0,
                Style::Bound(_) => 1,
                Style::Interval(_) => 3,
                Style::Event(_) => 4,
                _ => 2,
            };
            let mut sorted: Vec<&Line> = lines.iter().collect();
            sorted.sort_by_key(order);
            for line in sorted {
                let points =
                    line.points.iter().map(|&(x, y)| (x_of(x), if y.is_finite() { y_of(y) } else { y }));
                draw_line(canvas, line, &points.collect::<Vec<_>>(), layout.scale);
            }
            canvas.frame((left, top), layout.chart_width, height, DIM, 0.8 * layout.scale);
        }
    }

    /// Numbers, or names, and label below the lowest charts; returns where they end. Names that would touch are turned.
    fn draw_x_labels(&self, canvas: &mut Canvas, layout: &Layout, bottom: f64) -> f64 {
        let font = self.size.font;
        let widest = self.categories.iter().map(|name| font::width(name, font)).fold(0.0, f64::max);
        let is_turned = (widest + font * 0.8) * self.categories.len() as f64 > layout.chart_width;
        let end = bottom + if is_turned { widest + font * 0.6 } else { font * 1.4 };
        for column in 0..self.columns.len().max(1) {
            let left = layout.left + column as f64 * (layout.chart_width + layout.gap);
            for (value, label) in self.x_ticks(layout.chart_width) {
                let x = left + layout.chart_width * (value - self.x.0) / (self.x.1 - self.x.0);
                if is_turned {
                    let at = (x + font * 0.35, bottom + font * 0.6);
                    canvas.turned(at, font, Anchor::End, INK, &label);
                } else {
                    canvas.text((x, end), font, Anchor::Middle, INK, &label);
                }
            }
            let size = fitting(&self.x_label, font, layout.chart_width + layout.left / 2.0);
            let at = (left + layout.chart_width / 2.0, end + font * 1.4);
            canvas.text(at, size, Anchor::Middle, INK, &self.x_label);
        }
        end + font * 1.6
    }

    /// Entries from left to right, then the next line, and the note below; returns where it ends.
    fn draw_legend(&self, canvas: &mut Canvas, layout: &Layout, top: f64) -> f64 {
        let font = self.size.font;
        let (sample, space, line) = (font * 2.3, font * 1.4, font * 1.6);
        let edge = canvas.width - font * 0.5;
        let (mut x, mut y) = (layout.left, top);
        let mut is_empty = true;
        for (name, styles) in self.legend() {
            let name = printable::line(&name, printable::MESSAGE);
            let size = sample + font * 0.5 + font::width(&name, font);
            if x > layout.left && x + size > edge {
                (x, y) = (layout.left, y + line);
            }
            for style in styles {
                let middle = y - font * 0.35;
                let points: Vec<Place> = match style {
                    Style::Event(_) => vec![(x + sample / 2.0, middle)],
                    Style::Interval(_) => {
                        vec![(x + sample / 2.0, middle - font * 0.5), (x + sample / 2.0, middle + font * 0.5)]
                    }
                    Style::Spread(_) => {
                        let (low, high) = (middle - font * 0.35, middle + font * 0.35);
                        vec![(x, low), (x + sample, low), (x + sample, high), (x, high)]
                    }
                    _ => vec![(x, middle), (x + sample, middle)],
                };
                draw_sample(canvas, style, &points, (x + sample / 2.0, middle), layout.scale);
            }
            canvas.text((x + sample + font * 0.5, y), font, Anchor::Start, INK, &name);
            x += size + space;
            is_empty = false;
        }
        if !is_empty {
            y += line;
        }
        for words in wrap(&self.note, font, edge - layout.left) {
            canvas.text((layout.left, y), font, Anchor::Start, DIM, &words);
            y += font * 1.4;
        }
        y - font
    }

    /// Every name once, with the styles that it has in the charts; data before events before bounds.
    fn legend(&self) -> Vec<(String, Vec<Style>)> {
        let mut entries: Vec<(String, Vec<Style>)> = Vec::new();
        let lines = self.rows.iter().flat_map(|row| &row.charts).flatten();
        for line in lines.filter(|line| !line.name.is_empty()) {
            let is_shown = |(name, styles): &&mut (String, Vec<Style>)| {
                *name == line.name && styles.iter().all(|style| style.rank() == line.style.rank())
            };
            match entries.iter_mut().find(is_shown) {
                // An interval stands on the marker of its line; another look is another entry.
                Some((_, styles)) if styles.contains(&line.style) => {}
                Some((_, styles)) if matches!(line.style, Style::Interval(_)) => styles.push(line.style),
                _ => entries.push((line.name.clone(), vec![line.style])),
            }
        }
        entries.sort_by_key(|(_, styles)| styles.first().map_or(0, |style| style.rank()));
        entries
    }

    /// Where the x axis is marked, within its range, and with what; no label touches the next.
    fn x_ticks(&self, room: f64) -> Vec<(f64, String)> {
        let (from, to) = self.x;
        if !self.categories.is_empty() {
            return self
                .categories
                .iter()
                .enumerate()
                .map(|(place, name)| (place as f64, name.clone()))
                .collect();
        }
        let font = self.size.font;
        let mut marks: Vec<(f64, String)> = Vec::new();
        for wanted in [6, 5, 4, 3, 2, 1] {
            marks = if self.is_logarithmic { decades(from, to, wanted) } else { ticks(from, to, wanted) };
            let widest = marks.iter().map(|(_, label)| font::width(label, font)).fold(0.0, f64::max);
            if (widest + font * 0.8) * marks.len() as f64 <= room {
                break;
            }
        }
        marks
    }

    fn axis(&self, row: &Row) -> Axis {
        let values = || row.charts.iter().flatten().flat_map(|line| &line.points).map(|point| point.1);
        let finite = || values().filter(|value| value.is_finite());
        let wanted = ((self.size.chart_height / (self.size.font * 2.6)) as u32).clamp(2, 5);
        match row.scale {
            Scale::Share => {
                Axis { low: 0.0, high: 1.0, is_logarithmic: false, ticks: ticks(0.0, 1.0, wanted.min(5)) }
            }
            Scale::Logarithmic => {
                let positive = || finite().filter(|value| *value > 0.0);
                let (low, high) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
                let (low, high) = if high > 0.0 { (log10(low), log10(high)) } else { (0.0, 1.0) };
                let margin = ((high - low) * 0.06).max(0.1);
                let (low, high) = (low - margin, high + margin);
                Axis { low, high, is_logarithmic: true, ticks: decades(low, high, wanted) }
            }
            Scale::Linear => {
                let (low, high) = (finite().fold(0.0, f64::min), finite().fold(0.0, f64::max));
                let high = if high > low { high } else { low + 1.0 };
                let margin = (high - low) * 0.05;
                let low = if low < 0.0 { low - margin } else { 0.0 };
                let high = if high > 0.0 { high + margin } else { 0.0 };
                Axis { low, high, is_logarithmic: false, ticks: ticks(low, high, wanted) }
            }
        }
    }
}

/// A y axis: its range, of logarithms if it has them, and where it is marked.
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Where a value is, from 0 to 1; marks of logarithms are logarithms.
    fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

fn draw_line(canvas: &mut Canvas, line: &Line, points: &[Place], scale: f64) {
    let measured = line.points.iter().filter(|(_, y)| y.is_finite()).count();
    let count = if matches!(line.style, Style::Interval(_)) { measured / 2 } else { measured };
    let tag = |class| Some(Tag { class, name: line.name.clone(), points: count });
    let ink = line.style.ink(scale);
    if let Style::Event(shape) = line.style {
        let finite = points.iter().filter(|(_, y)| y.is_finite());
        let segments = finite.flat_map(|&at| canvas::marker(shape, at, scale)).collect();
        return canvas.items.push(Item::Path { segments, ink, tag: tag("event") });
    }
    if measured > 0 && !matches!(line.style, Style::Points(_)) {
        let segments = match line.style {
            Style::Interval(_) => intervals(points, 3.0 * scale),
            _ => through(points, matches!(line.style, Style::Spread(_))),
        };
        canvas.items.push(Item::Path { segments, ink, tag: tag(line.style.class()) });
    }
    if let Style::Measured(look) | Style::Points(look) = line.style {
        let finite: Vec<Place> = points.iter().copied().filter(|(_, y)| y.is_finite()).collect();
        draw_markers(canvas, look, &finite, scale, tag("marker"));
    }
}

fn draw_markers(canvas: &mut Canvas, look: Look, at: &[Place], scale: f64, tag: Option<Tag>) {
    let segments = at.iter().flat_map(|&at| canvas::marker(look.marker, at, scale)).collect();
    let colour = look.colour();
    let ink = if look.marker.is_filled() {
        Ink { stroke: None, fill: Some(colour), opacity: 1.0 }
    } else {
        let paper = (look.marker == Marker::Ring).then_some(style::PAPER);
        Ink { stroke: Some((colour, 1.3 * scale, &[])), fill: paper, opacity: 1.0 }
    };
    canvas.items.push(Item::Path { segments, ink, tag });
}

fn draw_sample(canvas: &mut Canvas, style: Style, points: &[Place], middle: Place, scale: f64) {
    if let Style::Points(look) = style {
        return draw_markers(canvas, look, &[middle], scale, None);
    }
    let segments = match style {
        Style::Event(shape) => canvas::marker(shape, middle, scale),
        Style::Interval(_) => intervals(points, 3.0 * scale),
        _ => through(points, matches!(style, Style::Spread(_))),
    };
    canvas.items.push(Item::Path { segments, ink: style.ink(scale), tag: None });
    if let Style::Measured(look) = style {
        draw_markers(canvas, look, &[middle], scale, None);
    }
}

/// A line through places; what is not a number is a gap.
fn through(points: &[Place], is_area: bool) -> Vec<Segment> {
    let mut segments = Vec::with_capacity(points.len());
    let mut is_gap = true;
    for &(x, y) in points {
        if y.is_finite() {
            segments.push(if is_gap { Segment::Move((x, y)) } else { Segment::Line((x, y)) });
        }
        // An area goes round what is missing.
        is_gap = !y.is_finite() && (!is_area || segments.is_empty());
    }
    if is_area {
        segments.push(Segment::Close);
    }
    segments
}

/// From the lower to the upper end of each, with a stroke across both.
fn intervals(points: &[Place], half: f64) -> Vec<Segment> {
    let each = |ends: &[Place]| -> Vec<Segment> {
        let [(x, low), (_, high)] = *ends else { return Vec::new() };
        let stroke = |from: Place, to: Place| [Segment::Move(from), Segment::Line(to)];
        let cap = |y: f64| stroke((x - half, y), (x + half, y));
        [cap(low), stroke((x, low), (x, high)), cap(high)].concat()
    };
    points.chunks_exact(2).filter(|ends| ends.iter().all(|(_, y)| y.is_finite())).flat_map(each).collect()
}

/// For logarithmic axes.
#[expect(clippy::disallowed_methods, reason = "a picture is no result")]
pub(crate) fn log10(x: f64) -> f64 {
    x.log10()
}

/// The size, up to `size`, at which a text takes no more than `room`.
fn fitting(content: &str, size: f64, room: f64) -> f64 {
    let wanted = font::width(content, size);
    if wanted > room { (size * room / wanted * 10.0).floor() / 10.0 } else { size }
}

/// Lines of words that are no wider than `room`, unless one word is.
fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line)
                if font::width(line, size) + font::width(" ", size) + font::width(word, size) <= room =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Round values from `from` to `to`, about as many steps as wanted, of 1, 2 or 5 times a power of ten.
fn ticks(from: f64, to: f64, wanted: u32) -> Vec<(f64, String)> {
    let rough = (to - from) / f64::from(wanted);
    if !rough.is_finite() || rough <= 0.0 {
        return Vec::new();
    }
    let mut power = 0;
    while 10f64.powi(power + 1) <= rough {
        power += 1;
    }
    while 10f64.powi(power) > rough {
        power -= 1;
    }
    let unit = 10f64.powi(power);
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|factor| factor * unit).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * unit);
    let digits = if step < 1.0 { usize::try_from(-power).unwrap_or(0) } else { 0 };
    // 0.6 is 3 steps of 0.2, though binary has neither.
    let (first, last) = ((from / step - 1e-6).ceil() as i64, (to / step + 1e-6).floor() as i64);
    (first..=last)
        .map(|index| {
            let value = index as f64 * step;
            (value, if step >= 1e6 { scientific(value, step) } else { format!("{value:.digits$}") })
        })
        .collect()
}

/// `5e9`, as logarithmic axes write what is large; `1.5e10` where marks are 5e9 apart.
fn scientific(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let power = |value: f64| (log10(value.abs()) + 1e-9).floor() as i32;
    let digits = usize::try_from(power(value) - power(step)).unwrap_or(0);
    format!("{:.digits$}e{}", value / 10f64.powi(power(value)), power(value))
}

/// Marks of a logarithmic axis from one power of ten to another, all written in one way: as decimals if each has no more
/// than three digits behind the point and five before, as powers otherwise. `wanted` bounds their number.
fn decades(from: f64, to: f64, wanted: u32) -> Vec<(f64, String)> {
    // Powers of ten; where they are few, 2 and 5 of each, too.
    let parts: &[i64] = match to - from {
        ..2.0 if wanted > 3 => &[1, 2, 5],
        ..1.0 => &[1, 2, 5],
        _ => &[1],
    };
    let every = (((to - from) / f64::from(wanted.max(1))).ceil() as i32).max(1);
    let powers = (from.floor() as i32..=to.floor() as i32).filter(|power| power % every == 0);
    let marks = powers.flat_map(|power| parts.iter().map(move |&part| (part, power)));
    let marks: Vec<(f64, i64, i32)> = marks
        .map(|(part, power)| (f64::from(power) + log10(part as f64), part, power))
        .filter(|(mark, ..)| (from - 1e-9..=to + 1e-9).contains(mark))
        .collect();
    let is_plain = marks.iter().all(|(_, _, power)| (-3..=4).contains(power));
    let label = |part: i64, power: i32| match power {
        _ if !is_plain => format!("{part}e{power}"),
        ..0 => format!("{:.*}", power.unsigned_abs() as usize, part as f64 * 10f64.powi(power)),
        _ => (part * 10_i64.pow(power.unsigned_abs())).to_string(),
    };
    marks.into_iter().map(|(mark, part, power)| (mark, label(part, power))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        let ramp = |name: &str, n, slope: f64| Line {
            name: name.to_owned(),
            style: Style::Line(style::nth(n)),
            points: (0..100).map(|i| (f64::from(i) * 0.2, f64::from(i) * slope)).collect(),
        };
        let limit = Line {
            name: "fair <share>".into(),
            style: Style::Bound(style::CAPACITY),
            points: vec![(0.0, 10.0), (20.0, 10.0)],
        };
        let chart = |k: f64| vec![ramp("flow 1", 0, 0.1 * k), ramp("flow 2", 1, 0.2), limit.clone()];
        let row = |label: &str| Row::new(label, vec![chart(1.0), chart(2.0)]);
        Figure {
            heading: Some(("A & B".into(), "two runs".into())),
            about: "A & B".into(),
            columns: vec!["xcp".into(), "cubic".into()],
            rows: vec![row("throughput (Mbit/s)"), row("cwnd (packets)"), row("queue (packets)")],
            x: (0.0, 20.0),
            x_label: "time (s)".into(),
            is_logarithmic: false,
            categories: Vec::new(),
            note: String::new(),
            size: Size::SCREEN,
        }
    }

    #[test]
    fn every_name_stands_once_in_the_legend_and_is_escaped() {
        let svg = figure().to_svg();
        for name in ["flow 1", "flow 2", "fair &lt;share&gt;"] {
            assert_eq!(svg.matches(&format!(">{name}</text>")).count(), 1, "{name}");
        }
        assert!(svg.contains("aria-label=\"A &amp; B\""));
    }

    /// Names that fit stand beside each other; others are turned, and end where the axis is.
    #[test]
    fn names_on_an_axis_never_touch() {
        let turned = |names: usize| {
            let categories = (0..names).map(|place| format!("a name {place}")).collect();
            let figure = Figure { categories, x: (-0.5, names as f64 - 0.5), ..figure() };
            let canvas = figure.draw();
            let labels = canvas.items.iter().filter_map(|item| match item {
                Item::Text { at, is_turned, anchor, text, .. } if text.starts_with("a name") => {
                    Some((at.1, *is_turned && *anchor == Anchor::End, font::width(text, figure.size.font)))
                }
                _ => None,
            });
            let labels: Vec<_> = labels.collect();
            assert_eq!(labels.len(), 2 * names, "one below each chart");
            assert!(labels.iter().all(|&(y, _, width)| y + width < canvas.height), "the picture has room");
            labels.iter().filter(|(_, is_turned, _)| *is_turned).count()
        };
        assert_eq!((turned(3), turned(30)), (0, 60));
    }

    #[test]
    fn every_kind_of_picture_has_its_own_font_and_the_same_bytes_twice() {
        let figure = figure();
        let svg = figure.to_svg();
        assert!(svg.contains("@font-face") && svg.contains("base64,"), "the font is not inside");
        let png = figure.to_png(SCREEN_DPI).expect("it can be drawn");
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let pdf = figure.to_pdf().expect("it can be drawn");
        assert!(pdf.starts_with(b"%PDF-1."));
        let mut without = figure.clone();
        for line in without.rows.iter_mut().flat_map(|row| &mut row.charts).flatten() {
            line.name.clear();
        }
        assert_ne!(
            png,
            without.to_png(SCREEN_DPI).expect("still"),
            "text leaves no trace: the font was not found"
        );
        assert_eq!(
            (svg, png, pdf),
            (figure.to_svg(), figure.to_png(SCREEN_DPI).expect("again"), figure.to_pdf().expect("again"))
        );
    }

    #[test]
    fn ticks_are_round_and_within_the_range() {
        let labels = |from, to| ticks(from, to, 4).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(0.0, 20.0), ["0", "5", "10", "15", "20"]);
        assert_eq!(labels(0.0, 0.7), ["0.0", "0.2", "0.4", "0.6"]);
        assert_eq!(labels(0.0, 1.0), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(3.0, 9.0), ["4", "6", "8"]);
        assert_eq!(labels(0.0, 15e6), ["0", "5e6", "1.0e7", "1.5e7"]);
    }

    #[test]
    fn the_axis_of_one_point_has_the_size_of_its_value() {
        let axis = |x: f64, is_logarithmic| {
            let curve = Curve {
                name: "one".into(),
                law: None,
                mark: Mark::Measured,
                points: vec![(x, 1.0)],
                spread: Vec::new(),
                samples: vec![1],
            };
            let panel = chart::Panel { label: "y (1)".into(), is_logarithmic: false, curves: vec![curve] };
            let picture = chart::Picture {
                x_label: "x".into(),
                is_logarithmic,
                categories: Vec::new(),
                panels: vec![panel],
                note: String::new(),
            };
            Figure::of(&picture, Size::SCREEN).expect("a marker can be drawn").x
        };
        assert_eq!(axis(1e7, false), (5e6, 15e6));
        assert_eq!(axis(-2.0, false), (-3.0, -1.0));
        assert_eq!(axis(0.0, false), (-0.5, 0.5));
        assert_eq!(axis(100.0, true), (1.5, 2.5));
    }

    #[test]
    fn marks_of_a_logarithmic_axis_are_all_written_in_one_way() {
        let labels = |from, to| decades(from, to, 5).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(-3.0, 0.0), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(-4.0, -1.0), ["1e-4", "1e-3", "1e-2", "1e-1"]);
        assert_eq!(labels(0.0, 1.0), ["1", "2", "5", "10"]);
        assert!(labels(-12.0, 8.0).len() <= 7);
    }

    #[test]
    fn an_axis_ends_where_its_values_do() {
        let figure = figure();
        let row = |label: &str, high: f64| {
            let points = vec![(0.0, 0.0), (20.0, high)];
            let line = Line { name: String::new(), style: Style::Line(style::nth(0)), points };
            figure.axis(&Row::new(label, vec![vec![line]]))
        };
        for high in [0.3, 0.96, 1.2] {
            let axis = row("utilisation (share)", high);
            assert!(axis.low == 0.0 && axis.high == 1.0 && axis.share(high) <= 1.0, "{high}");
        }
        let axis = row("queue (packets)", 42.0);
        assert!((42.0..45.0).contains(&axis.high), "{}", axis.high);
    }
}
