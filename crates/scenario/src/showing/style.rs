//! How pictures look: one palette, one look for each law, in every picture, report and paper.
//!
//! `docs/figures.md` shows it. A look is a colour, a marker and a dash pattern; no two laws share colour and marker, so
//! a picture survives colour blindness and a grey printer. Colours that stand beside each other in a chart differ by at
//! least [`DISTANCE_MIN`] in CIELAB for people with ordinary sight, protanopia, deuteranopia and tritanopia, and from
//! the paper by a contrast of [`CONTRAST_MIN`]; the tests below hold both.

use congestlab_core::law::{self, Hue, Protocol, Shape};

/// The least distance of two hues (CIE 1976, Delta E*ab): ten times what an eye can just tell apart.
pub const DISTANCE_MIN: f64 = 20.0;
/// The least contrast of a hue with the paper, as WCAG 2.2 (1.4.11) wants of graphics.
pub const CONTRAST_MIN: f64 = 3.0;

/// A colour on light and on dark paper, as `#rrggbb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// What documents call it.
    pub name: &'static str,
    /// On [`PAPER`] that is light.
    pub light: &'static str,
    /// On [`PAPER`] that is dark.
    pub dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

/// Colours of data, the most different ones first. Found by a search from Okabe and Ito's palette (Color Universal
/// Design, 2008) for the largest least distance.
pub const HUES: [Colour; 8] = [
    colour("blue", "#1637b2", "#5a68dc"),
    colour("vermilion", "#be4729", "#d8561a"),
    colour("green", "#22a862", "#41ec80"),
    colour("purple", "#b436a5", "#c2579c"),
    colour("amber", "#c58905", "#fec62b"),
    colour("sky", "#6982ff", "#a4c6ff"),
    colour("ink", "#222222", "#ffffff"),
    colour("brown", "#5f1e08", "#92775e"),
];

/// What everything is drawn on.
pub const PAPER: Colour = colour("paper", "#ffffff", "#15181c");
/// Text and frames.
pub const INK: Colour = colour("ink", "#222222", "#e4e6e8");
/// Text that matters less.
pub const DIM: Colour = colour("dim", "#5a5a5a", "#a2a8ae");
/// Lines of the grid.
pub const FAINT: Colour = colour("faint", "#e3e3e3", "#2c3238");
/// Drops, marks and other events: no line has it.
pub const EVENT: Colour = colour("event", "#a3123a", "#ff5c7a");

/// The most flows of a group whose lines stand apart; more of them are thin lines of one look.
pub const APART_MAX: usize = 3;

/// A mark at a measured point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Marker {
    /// A filled circle.
    Circle,
    /// A filled square.
    Square,
    /// A filled triangle that stands.
    Up,
    /// A filled triangle on its tip.
    Down,
    /// A filled rhomb.
    Rhomb,
    /// A plus of two lines.
    Plus,
    /// A cross of two lines.
    Cross,
    /// A circle of a line.
    Ring,
}

/// All markers.
pub const MARKERS: [Marker; 8] = [
    Marker::Circle,
    Marker::Square,
    Marker::Up,
    Marker::Down,
    Marker::Rhomb,
    Marker::Plus,
    Marker::Cross,
    Marker::Ring,
];

impl Marker {
    /// It as an SVG path from its middle, about 7 units wide.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Circle | Self::Ring => "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
            Self::Square => "m-2.8 -2.8h5.6v5.6h-5.6z",
            Self::Up => "m0 -4l3.6 6.6h-7.2z",
            Self::Down => "m0 4l3.6 -6.6h-7.2z",
            Self::Rhomb => "m0 -4.2l4.2 4.2l-4.2 4.2l-4.2 -4.2z",
            Self::Plus => "m-3.6 0h7.2m-3.6 -3.6v7.2",
            Self::Cross => "m-3 -3l6 6m0 -6l-6 6",
        }
    }

    /// It is filled; the others are lines.
    pub const fn is_filled(self) -> bool {
        !matches!(self, Self::Plus | Self::Cross | Self::Ring)
    }

    /// What matplotlib calls it.
    pub const fn matplotlib(self) -> &'static str {
        match self {
            Self::Circle | Self::Ring => "o",
            Self::Square => "s",
            Self::Up => "^",
            Self::Down => "v",
            Self::Rhomb => "D",
            Self::Plus => "+",
            Self::Cross => "x",
        }
    }
}

/// Lengths of line and gap in units of a picture; none: a line without gaps.
pub type Dash = &'static [f64];

/// Dash patterns of data.
pub const DASHES: [Dash; 5] = [&[], &[7.0, 3.0], &[2.5, 2.5], &[9.0, 3.0, 2.0, 3.0], &[12.0, 4.0]];

/// How a line of data looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Its place in [`HUES`].
    pub hue: usize,
    /// At measured points.
    pub marker: Marker,
    /// Of the line between them.
    pub dash: Dash,
}

impl Look {
    /// Its colour.
    pub const fn colour(self) -> Colour {
        HUES[self.hue]
    }
}

/// How a bound looks: thin, without markers, and no two alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// On light and dark paper.
    pub colour: Colour,
    /// Of the line.
    pub dash: Dash,
}

/// What a link can carry.
pub const CAPACITY: Bound = Bound { colour: DIM, dash: &[8.0, 4.0] };
/// What may wait at a link.
pub const QUEUE_LIMIT: Bound = Bound { colour: colour("limit", "#8a6d1f", "#b9a25c"), dash: &[1.5, 2.5] };
/// A goal or another bound.
pub const GOAL: Bound = Bound { colour: DIM, dash: &[8.0, 3.0, 1.5, 3.0] };

/// Looks of what flows and links can have beside a law of the list.
const OTHERS: [(&str, law::Look); 3] = [
    ("cbr", law::Look::new(Hue::Brown, Shape::Ring, 1)),
    ("onoff", law::Look::new(Hue::Vermilion, Shape::Ring, 3)),
    ("none", law::Look::new(Hue::Ink, Shape::Cross, 2)),
];

impl From<law::Look> for Look {
    fn from(look: law::Look) -> Self {
        Self {
            hue: look.hue as usize,
            marker: MARKERS[look.shape as usize],
            dash: DASHES[look.dash as usize],
        }
    }
}

/// Every law that links and flows can have, and "none". Laws that papers compare have different hues.
pub fn laws() -> impl Iterator<Item = (&'static str, Look)> {
    let listed = Protocol::all().map(|protocol| (protocol.name, protocol.look));
    listed.chain(OTHERS).map(|(name, look)| (name, look.into()))
}

/// The look of a law; `None`: there is no such law.
pub fn of_law(law: &str) -> Option<Look> {
    let law = crate::language::law::law_of(law, false);
    laws().find(|(name, _)| *name == law).map(|(_, look)| look)
}

/// The look of the n-th of several things that are no laws: 40 differ.
pub fn nth(n: usize) -> Look {
    let dash = (n + n / (HUES.len() * DASHES.len())) % DASHES.len();
    Look { hue: n % HUES.len(), marker: MARKERS[n % MARKERS.len()], dash: DASHES[dash] }
}

/// The look of the n-th of a few lines that are of no law, in black: queues of links.
pub fn plain(n: usize) -> Look {
    Look { hue: Hue::Ink as usize, marker: MARKERS[n % MARKERS.len()], dash: DASHES[n % DASHES.len()] }
}

/// The looks of groups of flows, or of links, that stand beside each other in one picture, by their laws: a law has its
/// own, others of that hue the first one that is free. No hue is there twice before all are.
pub fn assign(laws: &[Option<&str>]) -> Vec<Look> {
    let mut looks: Vec<Option<Look>> = vec![None; laws.len()];
    let mut taken = [false; HUES.len()];
    // Laws first: the order of the groups changes no law's colour.
    for (place, law) in laws.iter().enumerate() {
        let own = of_law(law.unwrap_or("none")).filter(|look| !taken[look.hue]);
        if let Some(look) = own {
            taken[look.hue] = true;
            looks[place] = own;
        }
    }
    for (place, look) in looks.iter_mut().enumerate().filter(|(_, look)| look.is_none()) {
        let free = taken.iter().position(|is_taken| !is_taken);
        if let Some(hue) = free {
            taken[hue] = true;
        }
        *look = Some(free.map_or_else(|| nth(place), |hue| Look { hue, ..nth(place) }));
    }
    looks.into_iter().flatten().collect()
}

/// The palette as custom properties of CSS, light and dark: `--paper`, `--ink`, `--dim`, `--faint`, `--event`,
/// `--c0` ... of the hues, `--law-xcp` ... of the laws, `--capacity`, `--queue-limit`.
pub fn css() -> String {
    use std::fmt::Write as _;
    let mut css = String::from("/* Written by congestlab_scenario::style. */\n");
    let mut block = |start: &str, end: &str, of: fn(Colour) -> &'static str| {
        css.push_str(start);
        let plain = [("paper", PAPER), ("ink", INK), ("dim", DIM), ("faint", FAINT), ("event", EVENT)];
        let bounds = [("capacity", CAPACITY.colour), ("queue-limit", QUEUE_LIMIT.colour)];
        // Writing to a string fails in no way.
        for (name, colour) in plain.into_iter().chain(bounds) {
            let _ = write!(css, " --{name}: {};", of(colour));
        }
        for (place, colour) in HUES.into_iter().enumerate() {
            let _ = write!(css, " --c{place}: {};", of(colour));
        }
        for (law, look) in laws() {
            let _ = write!(css, " --law-{law}: {};", of(look.colour()));
        }
        css.push_str(end);
    };
    block(":root {", " }\n", |colour| colour.light);
    block("@media (prefers-color-scheme: dark) { :root {", " } }\n", |colour| colour.dark);
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a sight sees: linear RGB before, linear RGB after. Machado, Oliveira and Fernandes (IEEE TVCG 15(6), 2009),
    /// table 1, severity 1.0.
    const SIGHTS: [(&str, [[f64; 3]; 3]); 4] = [
        ("ordinary", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ),
    ];

    /// sRGB (IEC 61966-2-1) to linear light.
    #[expect(clippy::disallowed_methods, reason = "a picture is no result")]
    fn linear(hex: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let value = u8::from_str_radix(&hex[at..at + 2], 16).expect("a colour is #rrggbb");
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// CIELAB under D65.
    #[expect(clippy::disallowed_methods, reason = "a picture is no result")]
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let f = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = f((0.412_456_4 * r + 0.357_576_1 * g + 0.180_437_5 * b) / 0.950_47);
        let y = f(luminance([r, g, b]));
        let z = f((0.019_333_9 * r + 0.119_192 * g + 0.950_304_1 * b) / 1.088_83);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn luminance([r, g, b]: [f64; 3]) -> f64 {
        0.212_672_9 * r + 0.715_152_2 * g + 0.072_175 * b
    }

    fn seen(hex: &str, sight: &[[f64; 3]; 3]) -> [f64; 3] {
        let rgb = linear(hex);
        lab(sight.map(|row| row.iter().zip(rgb).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0)))
    }

    fn distance(one: &str, other: &str, sight: &[[f64; 3]; 3]) -> f64 {
        let squares = seen(one, sight).into_iter().zip(seen(other, sight)).map(|(a, b)| (a - b) * (a - b));
        squares.sum::<f64>().sqrt()
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (a, b) = (luminance(linear(one)) + 0.05, luminance(linear(other)) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn distances_and_contrasts_are_those_of_the_textbook() {
        let ordinary = &SIGHTS[0].1;
        assert!((distance("#000000", "#ffffff", ordinary) - 100.0).abs() < 0.1);
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-3);
        // Of red and green nothing but lightness is left without cones for long waves.
        let by = |sight: usize| distance("#d00000", "#508000", &SIGHTS[sight].1);
        assert!(by(0) > 80.0 && by(2) < 30.0, "{} {}", by(0), by(2));
    }

    #[test]
    fn hues_differ_for_every_sight_and_from_the_paper() {
        let modes: [fn(Colour) -> &'static str; 2] = [|colour| colour.light, |colour| colour.dark];
        for of in modes {
            for (place, one) in HUES.into_iter().enumerate() {
                for other in &HUES[place + 1..] {
                    for (sight, matrix) in &SIGHTS {
                        let distance = distance(of(one), of(*other), matrix);
                        assert!(
                            distance >= DISTANCE_MIN,
                            "{} and {} are {distance:.1} apart: {sight}",
                            one.name,
                            other.name
                        );
                    }
                }
            }
            for colour in HUES.into_iter().chain([INK, DIM, EVENT, CAPACITY.colour, QUEUE_LIMIT.colour]) {
                let contrast = contrast(of(colour), of(PAPER));
                assert!(contrast >= CONTRAST_MIN, "{}: {contrast:.2}", of(colour));
            }
        }
    }

    #[test]
    fn every_law_has_a_look_that_no_other_has() {
        let laws = crate::language::law::all();
        let looks: Vec<(&str, Look)> = super::laws().collect();
        for law in laws.iter().copied().chain(["none"]) {
            assert!(of_law(law).is_some(), "{law} has no look");
        }
        for (place, (law, look)) in looks.iter().enumerate() {
            assert!(laws.contains(law) || *law == "none", "{law} is no law");
            for (other, same) in &looks[place + 1..] {
                assert!((look.hue, look.marker) != (same.hue, same.marker), "{law} looks as {other}");
                assert!((look.hue, look.dash) != (same.hue, same.dash), "{law} has the line of {other}");
            }
        }
    }

    #[test]
    fn bounds_and_numbered_looks_differ() {
        let bounds = [CAPACITY, QUEUE_LIMIT, GOAL];
        for (place, one) in bounds.iter().enumerate() {
            assert!(bounds[place + 1..].iter().all(|other| one.dash != other.dash), "{one:?}");
        }
        let looks: Vec<Look> = (0..40).map(nth).collect();
        for (place, one) in looks.iter().enumerate() {
            let is_same = |other: &&Look| (one.hue, one.dash) == (other.hue, other.dash);
            assert_eq!(looks[place + 1..].iter().find(is_same), None, "{place}");
        }
    }

    #[test]
    fn groups_beside_each_other_have_their_law_s_hue_or_one_of_their_own() {
        let hues = |laws: &[Option<&str>]| assign(laws).iter().map(|look| look.hue).collect::<Vec<_>>();
        let own = |law: &str| of_law(law).expect("a law").hue;
        let (xcp, cubic, none) = (own("xcp"), own("cubic"), own("none"));
        assert_eq!(hues(&[Some("cubic"), Some("xcp")]), [cubic, xcp]);
        assert_eq!(hues(&[Some("xcp"), None]), [xcp, none]);
        let crowd = hues(&[Some("xcp"), Some("xcp"), Some("cubic"), Some("xcp")]);
        assert_eq!((crowd[0], crowd[2]), (xcp, cubic), "the law keeps its colour whoever comes before");
        let all: std::collections::BTreeSet<usize> = hues(&[Some("xcp"); HUES.len()]).into_iter().collect();
        assert_eq!(all.len(), HUES.len(), "a hue is there twice before all are");
        assert_eq!(hues(&[Some("xcp"); 20]).len(), 20);
    }

    #[test]
    fn the_css_has_every_colour_in_both_modes() {
        let css = css();
        for name in ["--paper:", "--c7:", "--law-xcp:", "--law-peach-plus:", "--queue-limit:"] {
            assert_eq!(css.matches(name).count(), 2, "{name}");
        }
    }
}
