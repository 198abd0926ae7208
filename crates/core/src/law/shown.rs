//! Looks and series of laws, for pictures, reports and questions to results: data that a law's own folder tells, and kernels
//! never see.

/// A hue of the palette (docs/figures.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// Blue.
    Blue,
    /// Vermilion.
    Vermilion,
    /// Green.
    Green,
    /// Purple.
    Purple,
    /// Amber.
    Amber,
    /// Sky blue.
    Sky,
    /// The ink of the text.
    Ink,
    /// Brown.
    Brown,
}

/// A shape at measured points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
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

/// The look of a law in every picture: no two have hue and shape, or hue and dashes, in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Hue of lines and shapes.
    pub hue: Hue,
    /// Shape at measured points.
    pub shape: Shape,
    /// Pattern of dashes, 0 to 4; 0 is a line without gaps.
    pub dash: u8,
}

impl Look {
    /// Makes a look.
    #[inline]
    pub const fn new(hue: Hue, shape: Shape, dash: u8) -> Self {
        Self { hue, shape, dash }
    }
}

/// A time series that a law adds to those of every link or flow: what [`Series::each`](super::Series::each) and
/// [`SenderLaw::each`](super::SenderLaw::each) tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in results; its last word is the unit.
    pub name: &'static str,
    /// Title of its chart.
    pub title: &'static str,
}

impl Column {
    /// Makes a column.
    #[inline]
    pub const fn new(name: &'static str, title: &'static str) -> Self {
        Self { name, title }
    }
}
