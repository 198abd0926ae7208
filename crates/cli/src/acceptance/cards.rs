//! The sections of a report card and their cases, which are in the binary.

use std::collections::BTreeMap;

use congestlab_scenario::Files;
use congestlab_scenario::Scenario;
use serde::Deserialize;

use super::TRACES;
use crate::failure::{Failure, Message};

/// The cases: file, text.
const CASES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/acceptance.rs"));
/// Their order, and the laws beside.
const ORDER: &str = include_str!("../../data/acceptance.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    beside: Vec<String>,
    disciplines: BTreeMap<String, toml::Value>,
    sections: Vec<OrderOfSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderOfSection {
    name: String,
    #[serde(default)]
    cases: Vec<String>,
    unmeasured: Option<String>,
}

/// The sections, and the laws beside.
pub(super) struct Cards {
    /// Laws that stand beside the one in question.
    pub(super) beside: Vec<String>,
    /// Queues that laws want of their links, by law.
    pub(super) disciplines: BTreeMap<String, toml::Value>,
    pub(super) sections: Vec<Section>,
}

/// A heading with its cases.
pub(super) struct Section {
    pub(super) name: String,
    /// Why nothing is measured.
    pub(super) unmeasured: Option<String>,
    pub(super) cases: Vec<Case>,
}

/// A scenario, in which others take the place of its own laws.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) text: &'static str,
    /// Paths that run the law in question.
    pub(super) own: Vec<String>,
    pub(super) is_quick: bool,
    /// The case with its own laws.
    pub(super) scenario: Scenario,
    written: toml::Table,
}

impl Case {
    fn read(name: &str, text: &'static str) -> Result<Self, Failure> {
        let traces = TRACES.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        let files = Files::Given(std::sync::Arc::new(traces));
        let scenario = Scenario::parse_with(&format!("{name}.toml"), text, files, &[], None);
        let scenario = scenario.map_err(Failure::Scenario)?;
        let (title, own, is_quick) = super::told(scenario.figure());
        let written = text.parse().map_err(|error: toml::de::Error| wrong(name, &error))?;
        Ok(Self { name: name.into(), title, text, own, is_quick, scenario, written })
    }

    /// The value that the case writes at a path.
    pub(super) fn value(&self, path: &str) -> Option<&toml::Value> {
        let (table, key) = path.rsplit_once('.')?;
        let mut at = &self.written;
        for step in table.split('.') {
            at = at.get(step)?.as_table()?;
        }
        at.get(key)
    }

    /// Settings that the case tells a law of its own: `capacity` of `law = { xcp = { capacity = "9 Mbit/s" } }`.
    pub(super) fn settings(&self, path: &str) -> toml::Table {
        let law = self.value(path).and_then(toml::Value::as_table).and_then(|laws| laws.values().next());
        law.and_then(toml::Value::as_table).cloned().unwrap_or_default()
    }
}

/// A file in the binary is wrong, which is our mistake.
fn wrong(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Run(Message::new(format!("{name} of this command: {error}"), ""))
}

/// Reads the sections with their cases.
pub(super) fn read() -> Result<Cards, Failure> {
    let order: Order = toml::from_str(ORDER).map_err(|error| wrong("acceptance.toml", &error))?;
    let case = |name: &String| {
        let text = CASES.iter().find(|(file, _)| file.strip_suffix(".toml") == Some(name));
        let (_, text) = text.ok_or_else(|| wrong(name, &"there is no such case"))?;
        Case::read(name, text)
    };
    let section = |OrderOfSection { name, cases, unmeasured }| {
        let cases = cases.iter().map(case).collect::<Result<_, Failure>>()?;
        Ok(Section { name, unmeasured, cases })
    };
    let sections = order.sections.into_iter().map(section).collect::<Result<_, Failure>>()?;
    Ok(Cards { beside: order.beside, disciplines: order.disciplines, sections })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_stands_in_one_section_and_runs_the_law() {
        let cards = read().unwrap_or_else(|failure| panic!("{failure:?}"));
        let cases: Vec<&Case> = cards.sections.iter().flat_map(|section| &section.cases).collect();
        for (file, _) in CASES {
            let count = cases.iter().filter(|case| format!("{}.toml", case.name) == **file).count();
            assert_eq!(count, 1, "{file} is in {count} sections");
        }
        for case in cases {
            assert!(
                case.own.iter().any(|own| own.starts_with("flows.")),
                "{} has no place for a law",
                case.name
            );
            assert!(!case.title.is_empty(), "{} has no title", case.name);
        }
        for section in &cards.sections {
            assert_ne!(section.cases.is_empty(), section.unmeasured.is_none(), "{}", section.name);
        }
    }
}
