//! The run that the rows of a table are of: many tables are read as one, and facts that are not in a row are lost then.
//!
//! Settings that a sweep or `--set` changed become columns of the types that they have: a rate is a number
//! of bit/s, and its column says so as the results do. Values that are not a single number, word or switch
//! stay TOML.

use congestlab_core::units::{BitRate, Bytes, Duration};
use serde_json::{Value as Json, json};

use crate::judging::seeds::SEED;
use crate::language::scenario::Scenario;
use congestlab_text::decode::Language as _;
use congestlab_text::disk::file_name;
use congestlab_text::path;
use congestlab_text::tree::{Value, at, inline, to_json, value_of};

/// A run, as its tables name it.
pub(crate) struct Origin {
    /// Name of the run's folder, and of everything else of the run.
    pub(crate) run: String,
    /// The name of the scenario.
    pub(crate) scenario: String,
    /// Seed of every random stream.
    pub(crate) seed: u64,
    /// The changed settings in words: equal for runs that differ in their seed alone.
    pub(crate) label: String,
    /// The same, to compute with: column and value.
    pub(crate) settings: Vec<(String, Cell)>,
    /// The same by path, as the scenario has it.
    written: serde_json::Map<String, Json>,
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Number(f64),
    Integer(i64),
    Switch(bool),
    Text(String),
}

impl Cell {
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Integer(integer) => Some(*integer as f64),
            Self::Switch(_) | Self::Text(_) => None,
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Integer(integer) => integer.to_string(),
            Self::Switch(switch) => switch.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Origin {
    /// Makes the origin of the run that is called `run`.
    pub(crate) fn new(scenario: &Scenario, run: &str) -> Self {
        let (root, normal) = (&scenario.root.value, scenario.file.encode());
        let mut changed: Vec<(&str, &Value, Option<&Value>)> = Vec::new();
        for path in scenario.changed.iter().map(String::as_str).filter(|path| *path != SEED) {
            let Ok(steps) = path::parse(path) else { continue };
            let is_new = changed.iter().all(|(other, ..)| *other != path);
            if let (true, Some(value)) = (is_new, at(root, &steps)) {
                changed.push((path, value, at(&normal, &steps)));
            }
        }
        let label: Vec<String> =
            changed.iter().map(|(path, value, _)| format!("{path} = {}", inline(value))).collect();
        Self {
            run: run.to_owned(),
            scenario: scenario.name().to_owned(),
            seed: scenario.seed(),
            label: label.join(", "),
            settings: changed.iter().map(|(path, value, normal)| column(path, value, *normal)).collect(),
            written: changed.iter().map(|(path, value, _)| ((*path).to_owned(), to_json(value))).collect(),
        }
    }

    /// For the metadata of a file.
    pub(crate) fn to_json(&self) -> Json {
        json!({
            "run": self.run,
            "scenario": self.scenario,
            "seed": self.seed,
            "label": self.label,
            "settings": self.written,
        })
    }
}

/// `<scenario>-<seed>-<hash>`, of which `hash` has more digits.
pub(crate) fn run_name(scenario: &Scenario, hash: &str) -> String {
    format!("{}-{}-{}", file_name(scenario.name()), scenario.seed(), &hash[..8])
}

/// Returns settings, pairs of a path and a TOML value, as a JSON object of typed values.
pub fn settings_json(settings: &[(String, String)]) -> Json {
    let value = |text: &String| value_of(text).map_or_else(|| text.as_str().into(), |value| to_json(&value));
    settings.iter().map(|(path, text)| (path.clone(), value(text))).collect::<serde_json::Map<_, _>>().into()
}

/// The column of a setting and what is in it. `normal` is what the scenario makes of the value: where that takes any
/// number, a whole one is a number like others, so that the column has one type in all runs.
pub(crate) fn column(path: &str, value: &Value, normal: Option<&Value>) -> (String, Cell) {
    let named = |unit: &str, number: f64| (format!("{path}_{unit}"), Cell::Number(number));
    let cell = match value {
        Value::Integer(integer) if matches!(normal, Some(Value::Float(_))) => Cell::Number(*integer as f64),
        Value::Integer(integer) => {
            i64::try_from(*integer).map_or(Cell::Number(*integer as f64), Cell::Integer)
        }
        Value::Float(float) => Cell::Number(*float),
        Value::Boolean(switch) => Cell::Switch(*switch),
        Value::String(text) => {
            if let Ok(rate) = text.parse::<BitRate>() {
                return named("bps", rate.0 as f64);
            }
            if let Ok(span) = text.parse::<Duration>() {
                return named("s", span.0 as f64 / 1e9);
            }
            if let Ok(bytes) = text.parse::<Bytes>() {
                return named("bytes", bytes.0 as f64);
            }
            Cell::Text(text.clone())
        }
        other => Cell::Text(inline(other)),
    };
    (path.to_owned(), cell)
}

/// The column of an axis over all points: of one type, which is text where the values have no other in common.
pub(crate) fn axis<'a>(
    path: &str,
    values: impl Iterator<Item = Option<&'a str>>,
) -> (String, Vec<Option<Cell>>) {
    let values: Vec<Option<Value>> = values.map(|text| value_of(text?)).collect();
    let cells: Vec<Option<(String, Cell)>> =
        values.iter().map(|value| value.as_ref().map(|value| column(path, value, None))).collect();
    let kind = |cell: &Cell| match cell {
        Cell::Number(_) => 0,
        Cell::Integer(_) => 1,
        Cell::Switch(_) => 2,
        Cell::Text(_) => 3,
    };
    let mut known = cells.iter().flatten();
    let Some((name, first)) = known.next() else { return (path.to_owned(), vec![None; values.len()]) };
    if known.clone().all(|(other, cell)| other == name && kind(cell) == kind(first)) {
        return (
            name.clone(),
            cells.iter().map(|cell| cell.as_ref().map(|(_, cell)| cell.clone())).collect(),
        );
    }
    if cells.iter().flatten().all(|(other, cell)| other == path && kind(cell) < 2) {
        let number = |cell: &Cell| match cell {
            Cell::Integer(integer) => Cell::Number(*integer as f64),
            other => other.clone(),
        };
        return (
            path.to_owned(),
            cells.iter().map(|cell| cell.as_ref().map(|(_, cell)| number(cell))).collect(),
        );
    }
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => inline(other),
    };
    (
        path.to_owned(),
        values.iter().map(|value| value.as_ref().map(|value| Cell::Text(text(value)))).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_column_of_its_type_and_unit() {
        for (toml, name, cell) in [
            ("3", "a.b", Cell::Integer(3)),
            ("0.5", "a.b", Cell::Number(0.5)),
            ("true", "a.b", Cell::Switch(true)),
            ("\"xcp\"", "a.b", Cell::Text("xcp".into())),
            ("\"10 Mbit/s\"", "a.b_bps", Cell::Number(1e7)),
            ("\"1.5 ms\"", "a.b_s", Cell::Number(0.0015)),
            ("\"1 MiB\"", "a.b_bytes", Cell::Number(1_048_576.0)),
            ("\"20 packets\"", "a.b", Cell::Text("20 packets".into())),
            ("{ xcp = { pacing = true } }", "a.b", Cell::Text("{ xcp = { pacing = true } }".into())),
        ] {
            let value = value_of(toml).expect("TOML");
            assert_eq!(column("a.b", &value, None), (name.to_owned(), cell), "{toml}");
        }
        let whole = value_of("1").expect("TOML");
        assert_eq!(column("a", &whole, Some(&Value::Float(1.0))).1, Cell::Number(1.0));
    }

    #[test]
    fn an_axis_is_text_where_its_values_have_no_other_type_in_common() {
        let of = |values: &[&'static str]| axis("q", values.iter().map(|text| Some(*text)));
        assert_eq!(of(&["1", "0.5"]), ("q".into(), vec![Some(Cell::Number(1.0)), Some(Cell::Number(0.5))]));
        let (name, cells) = of(&["\"1 s\"", "\"40 ms\""]);
        assert_eq!((name.as_str(), cells), ("q_s", vec![Some(Cell::Number(1.0)), Some(Cell::Number(0.04))]));
        let text = |text: &str| Some(Cell::Text(text.into()));
        assert_eq!(of(&["\"1 BDP\"", "\"1 MB\""]), ("q".into(), vec![text("1 BDP"), text("1 MB")]));
        assert_eq!(of(&["1", "\"1 s\""]), ("q".into(), vec![text("1"), text("1 s")]));
    }
}
