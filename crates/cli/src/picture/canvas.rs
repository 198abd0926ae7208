//! What a picture consists of: paths and texts on paper, for every kind of file the same.

use congestlab_scenario::style::{Colour, Dash, Marker};

/// A place; y goes down.
pub(crate) type Place = (f64, f64);

/// A part of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Segment {
    Move(Place),
    Line(Place),
    Curve(Place, Place, Place),
    Close,
}

/// Which side of a text its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a path is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ink {
    /// Colour, width and dashes of its line.
    pub(crate) stroke: Option<(Colour, f64, Dash)>,
    pub(crate) fill: Option<Colour>,
    /// From 0 to 1.
    pub(crate) opacity: f64,
}

/// What an SVG says of a path that shows data.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    /// `line`, `marker`, `interval`, `spread`, `event`, `bound`.
    pub(crate) class: &'static str,
    /// Of the line.
    pub(crate) name: String,
    /// How many points of the data it shows.
    pub(crate) points: usize,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Path {
        segments: Vec<Segment>,
        ink: Ink,
        tag: Option<Tag>,
    },
    /// `is_turned`: it is read from below to above.
    Text {
        at: Place,
        size: f64,
        anchor: Anchor,
        is_turned: bool,
        colour: Colour,
        text: String,
    },
}

/// What a length of 1 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Of a screen: 1/96 inch.
    Pixel,
    /// Of a page: 1/72 inch.
    Point,
}

impl Unit {
    pub(crate) const fn per_inch(self) -> f64 {
        match self {
            Self::Pixel => 96.0,
            Self::Point => 72.0,
        }
    }
}

/// Which paper a picture is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// White
    Light,
    /// Black
    Dark,
    /// As the reader prefers; PNG and PDF are light
    Auto,
}

impl Mode {
    /// The colour where there is one paper.
    pub(crate) fn of(self, colour: Colour) -> &'static str {
        if self == Self::Dark { colour.dark } else { colour.light }
    }
}

/// The picture.
#[derive(Clone, Debug)]
pub(crate) struct Canvas {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) unit: Unit,
    pub(crate) mode: Mode,
    /// What it shows, for those who can not see it.
    pub(crate) about: String,
    pub(crate) items: Vec<Item>,
}

impl Canvas {
    pub(crate) fn line(&mut self, from: Place, to: Place, colour: Colour, width: f64) {
        let ink = Ink { stroke: Some((colour, width, &[])), fill: None, opacity: 1.0 };
        self.items.push(Item::Path {
            segments: vec![Segment::Move(from), Segment::Line(to)],
            ink,
            tag: None,
        });
    }

    pub(crate) fn frame(&mut self, (x, y): Place, width: f64, height: f64, colour: Colour, stroke: f64) {
        let corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)];
        let ink = Ink { stroke: Some((colour, stroke, &[])), fill: None, opacity: 1.0 };
        self.items.push(Item::Path { segments: polygon(&corners), ink, tag: None });
    }

    pub(crate) fn text(&mut self, at: Place, size: f64, anchor: Anchor, colour: Colour, text: &str) {
        self.items.push(Item::Text { at, size, anchor, is_turned: false, colour, text: text.to_owned() });
    }

    /// A text that is read from below to above.
    pub(crate) fn turned(&mut self, at: Place, size: f64, anchor: Anchor, colour: Colour, text: &str) {
        self.items.push(Item::Text { at, size, anchor, is_turned: true, colour, text: text.to_owned() });
    }

    /// Every text, for a font of their letters.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(|item| match item {
            Item::Text { text, .. } => Some(text.as_str()),
            Item::Path { .. } => None,
        })
    }
}

fn polygon(corners: &[Place]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = corners.iter().map(|&corner| Segment::Line(corner)).collect();
    if let (Some(first), Some(&corner)) = (segments.first_mut(), corners.first()) {
        *first = Segment::Move(corner);
    }
    segments.push(Segment::Close);
    segments
}

/// A marker around a place; `size` is 1 for one of 7 units.
pub(crate) fn marker(marker: Marker, (x, y): Place, size: f64) -> Vec<Segment> {
    let at = |dx: f64, dy: f64| (x + dx * size, y + dy * size);
    let corners = |list: &[Place]| polygon(&list.iter().map(|&(dx, dy)| at(dx, dy)).collect::<Vec<_>>());
    let strokes = |list: [(Place, Place); 2]| {
        let each =
            |(from, to): (Place, Place)| [Segment::Move(at(from.0, from.1)), Segment::Line(at(to.0, to.1))];
        list.into_iter().flat_map(each).collect()
    };
    match marker {
        Marker::Circle | Marker::Ring => {
            // A circle of four curves is one within 0.03 % of its radius.
            const R: f64 = 3.0;
            const K: f64 = R * 0.552_284_75;
            let curve =
                |a: Place, b: Place, c: Place| Segment::Curve(at(a.0, a.1), at(b.0, b.1), at(c.0, c.1));
            vec![
                Segment::Move(at(-R, 0.0)),
                curve((-R, -K), (-K, -R), (0.0, -R)),
                curve((K, -R), (R, -K), (R, 0.0)),
                curve((R, K), (K, R), (0.0, R)),
                curve((-K, R), (-R, K), (-R, 0.0)),
                Segment::Close,
            ]
        }
        Marker::Square => corners(&[(-2.8, -2.8), (2.8, -2.8), (2.8, 2.8), (-2.8, 2.8)]),
        Marker::Up => corners(&[(0.0, -4.0), (3.6, 2.6), (-3.6, 2.6)]),
        Marker::Down => corners(&[(0.0, 4.0), (3.6, -2.6), (-3.6, -2.6)]),
        Marker::Rhomb => corners(&[(0.0, -4.2), (4.2, 0.0), (0.0, 4.2), (-4.2, 0.0)]),
        Marker::Plus => strokes([((-3.6, 0.0), (3.6, 0.0)), ((0.0, -3.6), (0.0, 3.6))]),
        Marker::Cross => strokes([((-3.0, -3.0), (3.0, 3.0)), ((3.0, -3.0), (-3.0, 3.0))]),
    }
}
