//! The one grammar of quantities: `FromStr` and `Display`.
//!
//! A quantity is a decimal number, spaces or none, and a unit: `"1.5 s"`, `"250 kB"`,
//! `"10 Mbit/s"`. Prefixes are decimal, or binary with an i; nothing else is guessed. A decimal that
//! is not a whole number of the type's own unit is refused, not rounded. `Display` writes the
//! largest unit that divides the quantity, so that reading it back gives the same value.

use super::{BitRate, Bytes, Duration, Rate, SECOND, Time, Wide};
use core::fmt::{self, Display, Formatter};
use core::str::FromStr;

/// Kind of quantity that a text should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A span or an instant of time: [`Duration`], [`Time`].
    Duration,
    /// An amount of data: [`Bytes`].
    Bytes,
    /// A rate of bits or bytes per second: [`BitRate`], [`Rate`].
    Rate,
}

/// Names and sizes in ns, B or bit/s; largest first.
type Units = [(&'static str, u64)];

const DURATIONS: &Units = &[
    ("min", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000_000),
    ("us", 1000),
    ("µs", 1000), // U+00B5, the micro sign
    ("μs", 1000), // U+03BC, the Greek letter
    ("ns", 1),
];
const AMOUNTS: &Units = &[
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1000),
    ("B", 1),
];
const BIT_RATES: &Units = &[
    ("Tbit/s", 1_000_000_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Mbit/s", 1_000_000),
    ("kbit/s", 1000),
    ("bit/s", 1),
];
const BYTE_RATES: &Units =
    &[("TB/s", 8_000_000_000_000), ("GB/s", 8_000_000_000), ("MB/s", 8_000_000), ("kB/s", 8000), ("B/s", 8)];
const BINARY_RATES: &Units = &[("GiB/s", 8 << 30), ("MiB/s", 8 << 20), ("KiB/s", 8 << 10)];

impl Kind {
    fn units(self) -> impl Iterator<Item = (&'static str, u64)> {
        let (first, second, third): (&Units, &Units, &Units) = match self {
            Self::Duration => (DURATIONS, &[], &[]),
            Self::Bytes => (AMOUNTS, &[], &[]),
            Self::Rate => (BIT_RATES, BYTE_RATES, BINARY_RATES),
        };
        first.iter().chain(second).chain(third).copied()
    }

    /// Returns the names of the kind's units.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.units().map(|(name, _)| name)
    }

    fn unit(self, name: &str) -> Option<u64> {
        self.units().find(|(known, _)| *known == name).map(|(_, size)| size)
    }
}

/// "a duration", "an amount of data", "a rate".
impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duration => "a duration",
            Self::Bytes => "an amount of data",
            Self::Rate => "a rate",
        })
    }
}

/// The beginning of a text, for messages of a crate that does not allocate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; 24],
    len: u8,
    is_cut: bool,
}

impl Excerpt {
    fn of(text: &str) -> Self {
        let mut len = text.len().min(24);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; 24];
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self { bytes, len: len as u8, is_cut: len < text.len() }
    }
}

impl Display for Excerpt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default())?;
        f.write_str(if self.is_cut { "…" } else { "" })
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Reason why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// The text is empty.
    Empty {
        /// Kind of quantity that was expected.
        kind: Kind,
    },
    /// The text begins with no number, or with a malformed one.
    NotANumber {
        /// The text.
        text: Excerpt,
    },
    /// The quantity is below zero.
    Negative {
        /// The text.
        text: Excerpt,
    },
    /// The text is a number alone.
    NoUnit {
        /// The number.
        number: Excerpt,
        /// Kind of quantity that was expected.
        kind: Kind,
    },
    /// The unit is none of ours, but resembles one, or two that differ.
    Ambiguous {
        /// The number.
        number: Excerpt,
        /// The unit as written.
        unit: Excerpt,
        /// Unit to write for one meaning.
        first: &'static str,
        /// Unit to write for the other meaning.
        second: Option<&'static str>,
    },
    /// The unit is one of another kind of quantity.
    WrongKind {
        /// The unit as written.
        unit: Excerpt,
        /// Kind of quantity that the unit measures.
        found: Kind,
        /// Kind of quantity that was expected.
        kind: Kind,
    },
    /// The unit is unknown.
    UnknownUnit {
        /// The unit as written.
        unit: Excerpt,
        /// Kind of quantity that was expected.
        kind: Kind,
    },
    /// The quantity is not a whole number of the finest unit.
    TooFine {
        /// The text.
        text: Excerpt,
        /// The finest unit.
        finest: &'static str,
    },
    /// The quantity is 2^64 of the finest unit or more.
    TooLarge {
        /// The text.
        text: Excerpt,
    },
}

impl core::error::Error for UnitError {}

impl Display for UnitError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { kind } => write!(f, "nothing where {kind} belongs"),
            Self::NotANumber { text } => {
                write!(f, "\"{text}\" does not begin with a number such as 40 or 1.5")
            }
            Self::Negative { text } => write!(f, "\"{text}\" is negative"),
            Self::NoUnit { number, kind } => {
                write!(f, "\"{number}\" has no unit and could mean {number} of ")?;
                write_units(f, *kind)
            }
            Self::Ambiguous { number, unit, first, second: Some(second) } => {
                write!(
                    f,
                    "\"{number} {unit}\" can mean two things: write \"{number} {first}\" or \"{number} {second}\""
                )
            }
            Self::Ambiguous { number, unit, first, second: None } => {
                write!(f, "\"{unit}\" is not a unit here: write \"{number} {first}\"")
            }
            Self::WrongKind { unit, found, kind } => {
                write!(f, "\"{unit}\" is the unit of {found} where {kind} belongs, in ")?;
                write_units(f, *kind)
            }
            Self::UnknownUnit { unit, kind } => {
                write!(f, "unknown unit \"{unit}\" where {kind} belongs, in ")?;
                write_units(f, *kind)
            }
            Self::TooFine { text, finest } => write!(f, "\"{text}\" is finer than {finest}"),
            Self::TooLarge { text } => write!(f, "\"{text}\" is too large"),
        }
    }
}

/// The units of a kind, smallest first: "ns, us, ms, s or min".
fn write_units(f: &mut Formatter<'_>, kind: Kind) -> fmt::Result {
    let (names, last): (&[&str], &str) = match kind {
        Kind::Duration => (&["ns", "us", "ms", "s"], "min"),
        Kind::Bytes => (&["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"], "TiB"),
        Kind::Rate => {
            (&["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "B/s", "kB/s", "MB/s", "GB/s"], "TB/s")
        }
    };
    for (i, name) in names.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { ", " })?;
        f.write_str(name)?;
    }
    write!(f, " or {last}")
}

/// The value in ns, B or bit/s, divided by `per` of them: that is then the finest unit.
fn parse(text: &str, kind: Kind, per: u64, finest: &'static str) -> Result<u64, UnitError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitError::Empty { kind });
    }
    let whole = Excerpt::of(text);
    let (is_negative, unsigned) = match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, unit) = (&unsigned[..end], unsigned[end..].trim_start());
    let (digits, decimals) = number.split_once('.').unwrap_or((number, "0"));
    if digits.is_empty() || decimals.is_empty() || decimals.contains('.') {
        return Err(UnitError::NotANumber { text: whole });
    }
    if is_negative {
        return Err(UnitError::Negative { text: whole });
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit { number: Excerpt::of(number), kind });
    }
    let size = kind.unit(unit).ok_or_else(|| explain(number, unit, kind))?;

    let too_large = UnitError::TooLarge { text: whole };
    let too_fine = UnitError::TooFine { text: whole, finest };
    let decimals = decimals.trim_end_matches('0');
    let significant = append(0, digits).ok_or(too_large)?;
    let significant = append(significant, decimals).ok_or(too_fine)?;
    let scale = 10u64.checked_pow(decimals.len() as u32).and_then(|n| n.checked_mul(per)).ok_or(too_fine)?;
    let scaled = Wide::product(significant, size);
    let value = scaled.over(scale).to_u64();
    if Wide::product(value, scale) == scaled {
        Ok(value)
    } else if value == u64::MAX {
        Err(too_large)
    } else {
        Err(too_fine)
    }
}

/// Writes more digits behind a number.
fn append(number: u64, digits: &str) -> Option<u64> {
    digits.bytes().try_fold(number, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// Explains a unit that is not in the grammar by what someone may have meant.
fn explain(number: &str, unit: &str, kind: Kind) -> UnitError {
    // By power of 1000.
    const BITS: [&str; 5] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    const RATES: [&str; 5] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
    const AMOUNTS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    const BINARY_RATES: [Option<&str>; 5] = [None, Some("KiB/s"), Some("MiB/s"), Some("GiB/s"), None];
    const BINARY: [Option<&str>; 5] = [None, Some("KiB"), Some("MiB"), Some("GiB"), Some("TiB")];

    let ambiguous = |first, second| UnitError::Ambiguous {
        number: Excerpt::of(number),
        unit: Excerpt::of(unit),
        first,
        second,
    };
    let per_second = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps"));
    let stem = per_second.unwrap_or(unit);
    let power = match stem.chars().next() {
        Some('k' | 'K') => 1,
        Some('m' | 'M') => 2,
        Some('g' | 'G') => 3,
        Some('t' | 'T') => 4,
        _ => 0,
    };
    let what = if power == 0 { stem } else { &stem[1..] };
    let is_bits = matches!(what, "bit" | "bits");
    let is_bytes = matches!(what, "B" | "byte" | "bytes");
    // The capital K: someone's 1000 and someone's 1024.
    let is_binary = stem.starts_with('K');
    match kind {
        Kind::Rate if is_bits => return ambiguous(BITS[power], None),
        Kind::Rate if is_bytes => {
            return ambiguous(RATES[power], BINARY_RATES[power].filter(|_| is_binary));
        }
        Kind::Rate if what == "b" || (what.is_empty() && power > 0) => {
            return ambiguous(BITS[power], Some(RATES[power]));
        }
        Kind::Bytes
            if per_second.is_none() && (is_bytes || what == "b" || (what.is_empty() && power > 0)) =>
        {
            return ambiguous(AMOUNTS[power], BINARY[power]);
        }
        Kind::Duration if unit == "m" => return ambiguous("ms", Some("min")),
        _ => {}
    }
    let unit_excerpt = Excerpt::of(unit);
    match [Kind::Duration, Kind::Bytes, Kind::Rate].into_iter().find(|other| other.unit(unit).is_some()) {
        Some(found) => UnitError::WrongKind { unit: unit_excerpt, found, kind },
        None => UnitError::UnknownUnit { unit: unit_excerpt, kind },
    }
}

fn write(f: &mut Formatter<'_>, value: u64, units: &Units, zero: &str) -> fmt::Result {
    match units.iter().find(|(_, size)| value.is_multiple_of(*size)) {
        Some((name, size)) if value > 0 => write!(f, "{} {name}", value / size),
        _ => write!(f, "0 {zero}"),
    }
}

impl FromStr for Duration {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, Kind::Duration, 1, "1 ns").map(Self)
    }
}

impl FromStr for Time {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, Kind::Duration, 1, "1 ns").map(Self)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, Kind::Bytes, 1, "1 B").map(Self)
    }
}

impl FromStr for BitRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, Kind::Rate, 1, "1 bit/s").map(Self)
    }
}

/// A whole number of bytes per second.
impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, Kind::Rate, 8, "1 B/s").map(Self)
    }
}

impl Display for Duration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write(f, self.0, DURATIONS, "s")
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write(f, self.0, DURATIONS, "s")
    }
}

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write(f, self.0, AMOUNTS, "B")
    }
}

impl Display for BitRate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write(f, self.0, BIT_RATES, "bit/s")
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let units = ["TB/s", "GB/s", "MB/s", "kB/s", "B/s"];
        let mut size = 1_000_000_000_000;
        for name in units {
            if self.0 > 0 && self.0.is_multiple_of(size) {
                return write!(f, "{} {name}", self.0 / size);
            }
            size /= 1000;
        }
        write!(f, "0 B/s")
    }
}
