//! The numbers of a run in the format of other tools: OpenMetrics.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use crate::results::folder::RunFolder;

/// The numbers of a finished run in the text format of OpenMetrics 1.0: a family of gauges for each number of the results
/// (docs/scenario.md), with the unit at the end of its name, and labels `scenario`, `seed`, and `link`, or `flow` and `index`.
/// What was not measured is absent.
pub fn open_metrics(run: &RunFolder) -> String {
    let summary = run.summary();
    let mut families = Families(BTreeMap::new());
    let (origin, seed) = (run.origin(), run.scenario().seed().to_string());
    // The file in the folder has a name of its own.
    let name = origin["scenario"].as_str().unwrap_or_else(|| run.scenario().name());
    let of_run = [("scenario", name), ("seed", seed.as_str())];
    let is_of_run = |key: &&str| !["links", "flows", "jain", "meta", "files", "schema", "seed"].contains(key);
    for (key, value) in summary.as_object().into_iter().flatten().filter(|(key, _)| is_of_run(&key.as_str()))
    {
        families.add("run", key, &of_run, value);
    }
    for (name, link) in summary["links"].as_object().into_iter().flatten() {
        for (key, value) in link.as_object().into_iter().flatten() {
            families.add("link", key, &[of_run[0], of_run[1], ("link", name)], value);
        }
    }
    for (name, jain) in summary["jain"].as_object().into_iter().flatten() {
        families.add("flows", "jain", &[of_run[0], of_run[1], ("flow", name)], jain);
    }
    for (name, flows) in summary["flows"].as_object().into_iter().flatten() {
        for (index, flow) in flows.as_array().into_iter().flatten().enumerate() {
            let index = index.to_string();
            for (key, value) in flow.as_object().into_iter().flatten() {
                let labels = [of_run[0], of_run[1], ("flow", name), ("index", &index)];
                families.add("flow", key, &labels, value);
            }
        }
    }
    families.text()
}

/// Samples by family, as the format wants them: all of one together.
struct Families(BTreeMap<String, Vec<String>>);

impl Families {
    fn add(&mut self, of: &str, key: &str, labels: &[(&str, &str)], value: &Json) {
        if let Json::Object(reasons) = value {
            return self.add_all(of, key, labels, reasons);
        }
        let number = match value {
            Json::Bool(is_so) => f64::from(u8::from(*is_so)),
            other => match other.as_f64() {
                Some(number) => number,
                None => return,
            },
        };
        let family = name_of(&format!("congestlab_{of}_{key}"));
        let sample = sample(&family, labels, number);
        self.0.entry(family).or_default().push(sample);
    }

    /// Counts by reason, such as `drops_by_reason`, and what a law adds in a table of its own.
    fn add_all(&mut self, of: &str, key: &str, labels: &[(&str, &str)], parts: &Map<String, Json>) {
        for (part, value) in parts {
            match key.strip_suffix("_by_reason") {
                Some(_) => {
                    let labels: Vec<(&str, &str)> =
                        labels.iter().copied().chain([("reason", part.as_str())]).collect();
                    self.add(of, key, &labels, value);
                }
                None => self.add(of, &format!("{key}_{part}"), labels, value),
            }
        }
    }

    fn text(self) -> String {
        let mut text = String::new();
        for (family, samples) in self.0 {
            let _ = writeln!(text, "# TYPE {family} gauge\n{}", samples.join("\n"));
        }
        text + "# EOF\n"
    }
}

/// Letters, digits and `_` alone.
fn name_of(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Returns a line of the text formats of Prometheus and OpenMetrics: the family, labels with their values, and the number.
pub fn sample(family: &str, labels: &[(&str, &str)], number: f64) -> String {
    let list: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let braces = if list.is_empty() { String::new() } else { format!("{{{}}}", list.join(",")) };
    format!("{family}{braces} {number}")
}

/// A label's value: the format has three escapes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
