//! Scenarios as trees of quantities, which relations change, and as texts, which are run.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_scenario::sim::outcome::Outcome;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

use crate::draw::Draw;

/// A value of a scenario. Quantities are whole numbers of the smallest unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A value as TOML writes it.
    Plain(String),
    /// Nanoseconds.
    Time(u64),
    /// bit/s.
    Rate(u64),
    Bytes(u64),
    Packets(u64),
    List(Vec<Value>),
    Table(Table),
}

/// Keys and their values, in the order of the file.
pub(crate) type Table = Vec<(String, Value)>;

/// Returns a table of such keys.
pub(crate) fn table<const N: usize>(keys: [(&str, Value); N]) -> Value {
    Value::Table(keys.map(|(key, value)| (key.to_owned(), value)).into())
}

/// Returns a word between quotation marks.
pub(crate) fn word(text: &str) -> Value {
    Value::Plain(format!("{text:?}"))
}

/// Returns a number or a truth.
pub(crate) fn plain(value: impl ToString) -> Value {
    Value::Plain(value.to_string())
}

/// `value` divided by a power of ten, without rounding.
fn decimal(value: u64, places: usize) -> String {
    let digits = format!("{value:0width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    match part.trim_end_matches('0') {
        "" => whole.to_owned(),
        part => format!("{whole}.{part}"),
    }
}

/// Chooses one of so many units for each quantity: the first is the smallest.
type Units<'a> = &'a mut dyn FnMut(usize) -> usize;

impl Value {
    fn write(&self, text: &mut String, units: Units<'_>) {
        let mut quantity = |value: u64, all: &[(&str, usize, u64)]| {
            let (unit, places, times) = all[units(all.len())];
            let _ = write!(text, "\"{} {unit}\"", decimal(value * times, places));
        };
        match self {
            Self::Plain(plain) => text.push_str(plain),
            Self::Time(ns) => quantity(*ns, &[("ns", 0, 1), ("us", 3, 1), ("ms", 6, 1), ("s", 9, 1)]),
            Self::Rate(bps) => quantity(
                *bps,
                &[
                    ("bit/s", 0, 1),
                    ("kbit/s", 3, 1),
                    ("Mbit/s", 6, 1),
                    ("Gbit/s", 9, 1),
                    ("B/s", 3, 125),
                    ("kB/s", 6, 125),
                    ("MB/s", 9, 125),
                ],
            ),
            Self::Bytes(bytes) => quantity(*bytes, &[("B", 0, 1), ("kB", 3, 1), ("MB", 6, 1), ("GB", 9, 1)]),
            Self::Packets(packets) => quantity(*packets, &[("packets", 0, 1)]),
            Self::List(list) => {
                text.push('[');
                for value in list {
                    value.write(text, units);
                    text.push(',');
                }
                text.push(']');
            }
            Self::Table(table) => {
                text.push_str("{ ");
                for (number, (key, value)) in table.iter().enumerate() {
                    let comma = if number > 0 { ", " } else { "" };
                    let _ = write!(text, "{comma}{key} = ");
                    value.write(text, units);
                }
                text.push_str(" }");
            }
        }
    }

    /// Calls `change` for every value without others inside.
    pub(crate) fn each(&mut self, change: &mut impl FnMut(&mut Value)) {
        match self {
            Self::List(list) => list.iter_mut().for_each(|value| value.each(change)),
            Self::Table(table) => table.iter_mut().for_each(|(_, value)| value.each(change)),
            leaf => change(leaf),
        }
    }
}

/// A link or a group of flows: its name and its keys.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) keys: Table,
}

impl Part {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.keys.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(crate) fn set(&mut self, key: &str, value: Value) {
        match self.keys.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.keys.push((key.to_owned(), value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.keys.retain(|(known, _)| known != key);
    }

    /// The time that a key says; 0 if it is absent.
    pub(crate) fn time(&self, key: &str) -> u64 {
        match self.get(key) {
            Some(Value::Time(ns)) => *ns,
            _ => 0,
        }
    }
}

/// A scenario.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    /// Nanoseconds.
    pub(crate) duration: u64,
    pub(crate) warmup: u64,
    /// Bins of the series.
    pub(crate) every: u64,
    pub(crate) seed: u64,
    pub(crate) links: Vec<Part>,
    pub(crate) flows: Vec<Part>,
}

impl Net {
    /// The scenario in the language, each quantity in its smallest unit.
    pub(crate) fn text(&self) -> String {
        self.text_in(&mut |_| 0)
    }

    /// The same in units that are drawn.
    pub(crate) fn text_in_other_units(&self, draw: &mut Draw) -> String {
        self.text_in(&mut |units| draw.below(units as u64) as usize)
    }

    fn text_in(&self, units: Units<'_>) -> String {
        let time = |ns| Value::Time(ns);
        let run =
            [("duration", time(self.duration)), ("warmup", time(self.warmup)), ("seed", plain(self.seed))];
        let measure = [("every", time(self.every))];
        let mut text = String::new();
        let mut write = |title: String, keys: &[(String, Value)]| {
            let _ = writeln!(text, "[{title}]");
            for (key, value) in keys {
                let _ = write!(text, "{key} = ");
                value.write(&mut text, units);
                text.push('\n');
            }
            text.push('\n');
        };
        let owned = |keys: &[(&str, Value)]| -> Table {
            keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
        };
        write("run".into(), &owned(&run));
        write("measure".into(), &owned(&measure));
        self.links.iter().for_each(|link| write(format!("links.{:?}", link.name), &link.keys));
        self.flows.iter().for_each(|flow| write(format!("flows.{:?}", flow.name), &flow.keys));
        text
    }

    /// Calls `change` for every quantity of all links and flows.
    pub(crate) fn each(&mut self, mut change: impl FnMut(&mut Value)) {
        let parts = self.links.iter_mut().chain(&mut self.flows);
        parts.flat_map(|part| &mut part.keys).for_each(|(_, value)| value.each(&mut change));
    }

    /// Gives links other names, also in paths.
    pub(crate) fn rename(&mut self, new: impl Fn(&str) -> String) {
        self.links.iter_mut().for_each(|link| link.name = new(&link.name));
        let paths = self.flows.iter_mut().flat_map(|flow| &mut flow.keys).filter(|(key, _)| key == "path");
        paths.for_each(|(_, path)| {
            path.each(&mut |link| {
                let Value::Plain(name) = link else { return };
                let bare = name.trim_matches('"');
                let (bare, end) = bare.strip_suffix(".reverse").map_or((bare, ""), |bare| (bare, ".reverse"));
                *name = format!("\"{}{end}\"", new(bare));
            });
        });
    }

    pub(crate) fn run(&self) -> Outcome {
        run_text(&self.text())
    }

    /// The same with its series.
    pub(crate) fn run_with_series(&self) -> Outcome {
        run_model(&self.text(), &Measure { series: true, events: false })
    }
}

/// Runs a text.
pub(crate) fn run_text(text: &str) -> Outcome {
    run_model(text, &Measure::default())
}

/// Reads a text.
pub(crate) fn read(text: &str) -> Scenario {
    Scenario::parse("drawn.toml", text, Path::new(""), &[], None)
        .unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn run_model(text: &str, measure: &Measure) -> Outcome {
    let model = read(text).model(measure);
    let outcome =
        sim::run(&model, Engine::Window { threads: 1, divisor: 1 }, &AtomicBool::new(false), &mut |_| {});
    assert!(outcome.complete, "{text}");
    outcome
}
