//! Tables for people: the numbers of a column share a unit and a number of decimals, so that their points stand below
//! each other. Where that would leave a number less than three significant digits, each has a unit and decimals of its own.

use crate::number::{NOTHING, significant};

/// Numbers of a list that one cell shows one by one.
const LISTED_MAX: usize = 6;

/// The quantity that a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bits a second.
    Rate,
    /// A share of 1, shown as per cent.
    Share,
    /// A number in a unit that stays; an empty unit is none.
    In(&'static str),
    /// The same with exactly so many decimals.
    Fixed(u8, &'static str),
    /// A number of any size without a unit, with four significant digits; millions as `4.53 M`, but counts of which some would vanish beside others.
    Any,
}

/// One cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name, or another text that stays as it is.
    Text(String),
    /// A number; `None`: nothing was measured.
    Number(Option<f64>, Quantity),
    /// A number and half the width of its interval, with the same decimals.
    Interval(Option<f64>, Option<f64>),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Cell {
    /// Makes a rate in bits a second.
    pub fn rate(value: Option<f64>) -> Self {
        Self::Number(value, Quantity::Rate)
    }

    /// Makes a share of 1.
    pub fn share(value: Option<f64>) -> Self {
        Self::Number(value, Quantity::Share)
    }

    /// Makes a number in a unit, or in none.
    pub fn number(value: Option<f64>, unit: &'static str) -> Self {
        Self::Number(value, Quantity::In(unit))
    }

    /// Makes a text of a setting as TOML writes it, without the signs of TOML.
    pub fn setting(value: &str) -> Self {
        Self::Text(plain(value))
    }

    /// Makes a text of several numbers, one by one, or by their range if they are many.
    pub fn list(numbers: &[Option<f64>]) -> Self {
        let known = || numbers.iter().copied().flatten();
        let text = |number: &Option<f64>| number.map_or_else(|| NOTHING.to_owned(), significant);
        Self::Text(match known().reduce(f64::min).zip(known().reduce(f64::max)) {
            Some((least, greatest)) if numbers.len() > LISTED_MAX => {
                format!("{} to {} in {} values", significant(least), significant(greatest), numbers.len())
            }
            _ => numbers.iter().take(LISTED_MAX).map(text).collect::<Vec<_>>().join(", "),
        })
    }

    /// Makes a whole number.
    pub fn whole(value: u64) -> Self {
        Self::Number(Some(value as f64), Quantity::Fixed(0, ""))
    }

    /// Makes a number with exactly so many decimals.
    pub fn fixed(value: Option<f64>, decimals: u8, unit: &'static str) -> Self {
        Self::Number(value, Quantity::Fixed(decimals, unit))
    }

    fn quantity(&self) -> Option<Quantity> {
        match self {
            Self::Text(_) => None,
            Self::Number(_, quantity) => Some(*quantity),
            Self::Interval(..) => Some(Quantity::Any),
        }
    }

    /// Returns the numbers in it that are finite.
    fn values(&self) -> impl Iterator<Item = f64> {
        let pair = match self {
            Self::Text(_) => [None, None],
            Self::Number(value, _) => [*value, None],
            Self::Interval(value, half) => [*value, *half],
        };
        pair.into_iter().flatten().filter(|value| value.is_finite())
    }
}

/// How the numbers of a column are written.
#[derive(Clone, Copy, Debug)]
struct Form {
    factor: f64,
    decimals: usize,
    unit: &'static str,
}

impl Form {
    fn of(quantity: Quantity, values: &[f64]) -> Self {
        let greatest = values.iter().fold(0.0, |greatest: f64, value| greatest.max(value.abs()));
        let scaled = |units: [(f64, &'static str); 4]| {
            units.into_iter().find(|(factor, _)| greatest >= *factor).unwrap_or(units[3])
        };
        let (factor, unit) = match quantity {
            Quantity::Rate => scaled([(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")]),
            Quantity::Share => return Self { factor: 0.01, decimals: 1, unit: "%" },
            Quantity::Fixed(decimals, unit) => {
                return Self { factor: 1.0, decimals: decimals.into(), unit };
            }
            Quantity::In(unit) => (1.0, unit),
            Quantity::Any if greatest >= 1e5 => {
                let (factor, unit) = scaled([(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]);
                // A count that would hardly be seen beside a large one is told.
                let is_lost = |value: &f64| *value != 0.0 && value.abs() < factor / 1e3;
                let are_whole = values.iter().all(|value| value.fract() == 0.0);
                if are_whole && values.iter().any(is_lost) { (1.0, "") } else { (factor, unit) }
            }
            Quantity::Any => (1.0, ""),
        };
        let digits = if quantity == Quantity::Any { 4 } else { 3 };
        let values = values.iter().map(|value| (value / factor).abs());
        Self { factor, decimals: decimals(values, digits), unit }
    }

    /// Unit behind a number, after a space.
    fn after(&self) -> String {
        if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) }
    }

    fn write(&self, value: f64) -> String {
        let text = format!("{:.*}", self.decimals, value / self.factor);
        // What rounds to zero has no sign.
        match text.strip_prefix('-') {
            Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.to_owned(),
            _ => text,
        }
    }
}

/// Decimals that give the greatest value so many significant digits, and one more where the least would have but one;
/// none if all are whole.
fn decimals(values: impl Iterator<Item = f64> + Clone, digits: usize) -> usize {
    if values.clone().all(|value| value.fract() == 0.0) {
        return 0;
    }
    let greatest = values.clone().fold(0.0, f64::max);
    // Digits before the point; of what is below 1, zeros behind it count against them.
    let (mut whole, mut limit) = (1i32, 10.0);
    while greatest >= limit && whole < 300 {
        (whole, limit) = (whole + 1, limit * 10.0);
    }
    let mut limit = 1.0;
    while greatest > 0.0 && greatest < limit && whole > -9 {
        (whole, limit) = (whole - 1, limit / 10.0);
    }
    let wanted = usize::try_from(digits as i32 - whole).unwrap_or(0);
    let least = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let is_faint = least.is_finite() && least < 9.95 * 10f64.powi(-(wanted as i32));
    if is_faint { wanted + 1 } else { wanted }
}

/// Significant digits of every number in a column.
const DIGITS: usize = 3;
/// Decimals that a column has at most for the sake of its least number.
const DECIMALS_MAX: usize = 3;

/// A number that is less than this part of the greatest is zero to a reader: the rounding of sums.
const SEEN_MIN: f64 = 1e-9;

/// How the numbers of one column are written.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// All alike.
    Alike(Form),
    /// Each in its own unit and with its own decimals, zero up to a number: the column spans too much.
    Each(Quantity, f64),
}

impl Style {
    /// `values` are all numbers of the column, `named` those that are no interval's width.
    fn of(quantity: Quantity, values: &[f64], named: impl Iterator<Item = f64>) -> Self {
        let form = Form::of(quantity, values);
        if matches!(quantity, Quantity::Share | Quantity::Fixed(..)) {
            return Self::Alike(form);
        }
        let greatest = values.iter().fold(0.0, |greatest: f64, value| greatest.max(value.abs()));
        let seen = named.map(f64::abs).filter(|value| *value > greatest * SEEN_MIN);
        let least = seen.map(|value| value / form.factor).fold(f64::INFINITY, f64::min);
        // Whole numbers have all their digits.
        if !least.is_finite() || form.decimals == 0 {
            return Self::Alike(form);
        }
        match decimals([least].into_iter(), DIGITS) {
            wanted if wanted <= form.decimals => Self::Alike(form),
            wanted if wanted <= DECIMALS_MAX => Self::Alike(Form { decimals: wanted, ..form }),
            _ => Self::Each(quantity, greatest * SEEN_MIN),
        }
    }

    fn form(self, value: f64) -> Form {
        match self {
            Self::Alike(form) => form,
            Self::Each(quantity, zero) if value.abs() <= zero => Form::of(quantity, &[0.0]),
            Self::Each(quantity, _) => Form::of(quantity, &[value]),
        }
    }
}

/// How the columns of a table are written. Rows are written one by one: a table of a hundred thousand is large enough
/// without its texts.
#[derive(Clone, Debug)]
pub struct Columns(Vec<Option<Style>>);

impl Columns {
    /// Looks at all rows of a table; every row has a cell for each column.
    pub fn of(rows: &[Vec<Cell>]) -> Self {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let form = |column: usize| {
            let cells = || rows.iter().filter_map(|row| row.get(column));
            let quantity = cells().find_map(Cell::quantity)?;
            let values: Vec<f64> = cells().flat_map(Cell::values).collect();
            Some(Style::of(quantity, &values, cells().flat_map(|cell| cell.values().take(1))))
        };
        Self((0..columns).map(form).collect())
    }

    /// Writes the cells of a row.
    pub fn row<'a>(&'a self, row: &'a [Cell]) -> impl Iterator<Item = String> + 'a {
        row.iter().zip(&self.0).map(|(cell, style)| match (cell, style) {
            (Cell::Text(text), _) => text.clone(),
            (Cell::Number(Some(value), _) | Cell::Interval(Some(value), None), Some(style))
                if value.is_finite() =>
            {
                let form = style.form(*value);
                form.write(*value) + &form.after()
            }
            (Cell::Interval(Some(value), Some(half)), Some(style)) if value.is_finite() => {
                let form = style.form(*value);
                format!("{} ± {}{}", form.write(*value), form.write(*half), form.after())
            }
            (Cell::Number(Some(value), _) | Cell::Interval(Some(value), _), _) => value.to_string(),
            (Cell::Number(None, _) | Cell::Interval(None, _), _) => NOTHING.to_owned(),
        })
    }
}

/// Numbers of one quantity wherever they stand: they have the same unit and the same decimals.
#[derive(Clone, Copy, Debug)]
pub struct Alike(Form);

impl Alike {
    /// Looks at all of them.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        Self(Form::of(Quantity::Any, &values))
    }

    /// Writes one of them.
    pub fn write(&self, value: f64) -> String {
        if value.is_finite() { self.0.write(value) + &self.0.after() } else { NOTHING.to_owned() }
    }
}

/// A setting as TOML writes it, for people: a text without quotes, a list without brackets, a table without braces.
pub fn plain(value: &str) -> String {
    let is_nested = |value: &toml::Value| matches!(value, toml::Value::Array(_) | toml::Value::Table(_));
    let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parsed = format!("v = {value}").parse::<toml::Table>().ok();
    match parsed.as_ref().and_then(|table| table.get("v")) {
        Some(toml::Value::Array(list)) if !list.iter().any(is_nested) => {
            list.iter().map(text).collect::<Vec<_>>().join(", ")
        }
        Some(toml::Value::Table(_) | toml::Value::Array(_)) => {
            let inner = value.trim();
            let inner = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(inner);
            inner.trim().replace('"', "")
        }
        _ => value.trim_matches('"').to_owned(),
    }
}

/// A path as the heading of a column: without the part that every path has, unless no name follows it.
pub fn heading(path: &str) -> &str {
    let parts = ["links.", "flows.", "run."].iter();
    parts.filter_map(|part| path.strip_prefix(part)).find(|rest| !rest.starts_with('*')).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_short_and_still_tell_columns_apart() {
        let paths = ["links.a.rate", "run.seed", "flows.*.law", "links.*.law", "jain.short"];
        assert_eq!(paths.map(heading), ["a.rate", "seed", "flows.*.law", "links.*.law", "jain.short"]);
    }

    #[test]
    fn a_setting_is_said_without_the_signs_of_toml() {
        let nested = r#"{ steps = [["0 s", "4 Mbit/s"], ["1 s", "2 Mbit/s"]] }"#;
        let said = [r#""2 Mbit/s""#, "2 Mbit/s", r#"["a", "b"]"#, "0.5", nested].map(plain);
        let steps = "steps = [[0 s, 4 Mbit/s], [1 s, 2 Mbit/s]]";
        assert_eq!(said, ["2 Mbit/s", "2 Mbit/s", "a, b", "0.5", steps]);
    }

    fn column(cells: &[Cell]) -> Vec<String> {
        let rows: Vec<Vec<Cell>> = cells.iter().map(|cell| vec![cell.clone()]).collect();
        let columns = Columns::of(&rows);
        rows.iter().flat_map(|row| columns.row(row)).collect()
    }

    fn numbers(values: &[f64], make: impl Fn(Option<f64>) -> Cell) -> Vec<String> {
        column(&values.iter().map(|value| make(Some(*value))).collect::<Vec<_>>())
    }

    #[test]
    fn a_column_has_one_unit_and_the_same_decimals() {
        let rates = numbers(&[9.89e6, 261e3, 2.3e6, 1e7], Cell::rate);
        assert_eq!(
            rates,
            ["9.890 Mbit/s", "0.261 Mbit/s", "2.300 Mbit/s", "10.000 Mbit/s"].map(|text| text.to_owned())
        );
        assert_eq!(
            numbers(&[1e7, 8e6], Cell::rate),
            ["10 Mbit/s", "8 Mbit/s"],
            "whole numbers need no decimals"
        );
        assert_eq!(
            numbers(&[47.0, 51.9, 60.0], |v| Cell::number(v, "ms")),
            ["47.0 ms", "51.9 ms", "60.0 ms"]
        );
        assert_eq!(numbers(&[0.5, 0.999], Cell::share), ["50.0 %", "99.9 %"]);
        assert_eq!(numbers(&[18.0, 0.0], |v| Cell::number(v, "")), ["18", "0"]);
        assert_eq!(numbers(&[-0.001, 100.25], |v| Cell::fixed(v, 1, "s")), ["0.0 s", "100.2 s"]);
    }

    #[test]
    fn small_values_next_to_large_ones_keep_three_digits() {
        assert_eq!(numbers(&[112.4, 5.75], |v| Cell::number(v, "")), ["112.40", "5.75"]);
        assert_eq!(numbers(&[125.7e6, 5e9], Cell::rate), ["0.126 Gbit/s", "5.000 Gbit/s"]);
        assert_eq!(numbers(&[12_345.0, 0.0, 5e9], Cell::rate), ["12.3 kbit/s", "0 bit/s", "5 Gbit/s"]);
        assert_eq!(
            numbers(&[0.000_412, 812.25], |v| Cell::number(v, "packets")),
            ["0.000412 packets", "812 packets"]
        );
        assert_eq!(numbers(&[2e-13, 26.31, 3.0], |v| Cell::number(v, "")), ["0.00", "26.31", "3.00"]);
        assert_eq!(numbers(&[2e-13, 26.31, 0.000_3], |v| Cell::number(v, "")), ["0", "26.3", "0.000300"]);
        assert_eq!(
            numbers(&[8_827_397.0, 44_000.5], |v| Cell::Number(v, Quantity::Any)),
            ["8.827 M", "44000"]
        );
        let drops = [1_406_200.0, 232.0, 0.0];
        assert_eq!(numbers(&drops, |v| Cell::Number(v, Quantity::Any)), ["1406200", "232", "0"]);
        assert_eq!(
            numbers(&[4_742_100.0, 523_800.0], |v| Cell::Number(v, Quantity::Any)),
            ["4.742 M", "0.524 M"]
        );
    }

    #[test]
    fn lists_are_shown_without_brackets_and_with_few_digits() {
        let list = |count: u32| {
            let numbers = (0..count).map(|n| Some(4_998_123.456 + f64::from(n))).chain([None]);
            Cell::list(&numbers.collect::<Vec<_>>())
        };
        assert_eq!(list(2), Cell::from("4.998 M, 4.998 M, -"));
        assert_eq!(list(180), Cell::from("4.998 M to 4.998 M in 181 values"));
        assert_eq!(list(0), Cell::from("-"));
        for (value, shown) in [
            ("\"10 Mbit/s\"", "10 Mbit/s"),
            ("[\"a\", \"b\"]", "a, b"),
            ("[1, 2.5]", "1, 2.5"),
            ("3", "3"),
            ("[[1], [2]]", "[[1], [2]]"),
            ("{ trace = \"x\" }", "trace = x"),
        ] {
            assert_eq!(Cell::setting(value), Cell::from(shown));
        }
    }

    #[test]
    fn nothing_and_text_stay_what_they_are() {
        let cells =
            [Cell::from("x"), Cell::rate(None), Cell::rate(Some(f64::INFINITY)), Cell::rate(Some(1.5e3))];
        assert_eq!(column(&cells), ["x", "-", "inf", "1.50 kbit/s"]);
        let interval = [Cell::Interval(Some(0.98), Some(0.002)), Cell::Interval(Some(1.0), None)];
        assert_eq!(column(&interval), ["0.9800 ± 0.0020", "1.0000"]);
    }
}
