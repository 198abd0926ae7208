//! `congestlab check machine`: what this machine can do, and how to get what is missing.

use std::fmt::Write as _;

use congestlab_linux::doctor::{self, Mark, Part, Report};
use congestlab_linux::supervisor;
use congestlab_scenario::store;
use serde_json::{Map, Value, json};

use super::args::MachineArguments;
use crate::failure::Failure;
use crate::output::{Screen, print};

pub(crate) fn machine(arguments: &MachineArguments, screen: &Screen) -> Result<(), Failure> {
    let cleaned = if arguments.clean { Some(supervisor::clean()?) } else { None };
    let report = doctor::examine();
    if screen.json {
        let able: Map<String, Value> =
            report.verdicts.iter().map(|verdict| (key(verdict.part), verdict.able.into())).collect();
        let mut object = json!(report);
        object["able"] = able.into();
        if let Some(cleaned) = cleaned {
            object["cleaned"] = cleaned.into();
        }
        return print(&store::pretty(&object));
    }
    let mut text = String::new();
    for id in cleaned.iter().flatten() {
        let _ = writeln!(text, "cleaned up after {id}");
    }
    if cleaned.is_some_and(|cleaned| cleaned.is_empty()) {
        text.push_str("there was nothing to clean up\n");
    }
    text.push_str(&tell(&report));
    print(&text)
}

/// As in JSON.
fn key(part: Part) -> String {
    json!(part).as_str().unwrap_or_default().to_owned()
}

fn tell(report: &Report) -> String {
    let mut text = String::new();
    for verdict in &report.verdicts {
        let answer = match verdict.able {
            true => "yes".to_owned(),
            false => format!("no, it lacks {}", verdict.missing.join(", ")),
        };
        let _ = writeln!(text, "{:15}  {answer}", verdict.part.name());
    }
    let _ = writeln!(text, "\n       {:34}  needed for", "");
    for check in &report.checks {
        let question = check.question;
        let mark = match check.mark {
            Mark::Yes => "yes",
            Mark::No => "NO",
            Mark::Doubt => "!",
            Mark::Unknown => "?",
        };
        let parts: Vec<String> = question.needed_for.iter().map(|part| key(*part)).collect();
        let line = format!("  {mark:3}  {:34}  {:24}  {}", question.what, parts.join(", "), check.found);
        let _ = writeln!(text, "{}", line.trim_end());
        if check.mark != Mark::Yes {
            let _ = writeln!(text, "         for     {}", question.why);
            let _ = writeln!(text, "         get it  {}", question.help);
        }
    }
    text
}
