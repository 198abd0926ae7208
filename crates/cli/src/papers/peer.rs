//! `papers list --peer ns2`: how many claims ns-2 has judged, and why it has not judged the others.

use std::collections::BTreeMap;
use std::path::Path;

use congestlab_scenario::claims::Judgement;
use congestlab_scenario::paper::Paper;
use congestlab_scenario::{Scenario, store};
use serde_json::{Value, json};

use super::folder;
use crate::failure::Failure;
use crate::ns2;
use crate::output::{Screen, print};
use crate::table::Table;

/// A claim as ns-2 sees it.
pub(super) enum Seen {
    /// A verdict is written down.
    Judged(Judgement),
    /// The reason for which there is none.
    Not(String),
    /// Nothing is written down, though it could be run.
    Unasked,
}

/// Returns how ns-2 sees each claim of a figure: by what is written down, and by what the scenario has.
pub(super) fn seen(paper: &Paper, name: &str, scenario: &Scenario) -> Result<Vec<Seen>, Failure> {
    let refusals = ns2::refusals(scenario)?;
    let claims = scenario.claims().iter().zip(refusals);
    let one = |that: &str, refusal: Option<String>| match (paper.peer.find(name, that), refusal) {
        (Some(value), _) => Seen::Judged(value.verdict),
        (None, Some(why)) => Seen::Not(why),
        (None, None) => paper.peer.refused(name, that).map_or(Seen::Unasked, |why| Seen::Not(why.to_owned())),
    };
    Ok(claims.map(|(claim, refusal)| one(claim.that(), refusal)).collect())
}

/// A reason without the names in it, so that equal ones are counted together.
fn kind(why: &str) -> String {
    let mut text = why;
    while let Some(rest) = text.strip_prefix('`').and_then(|rest| rest.split_once("` ")) {
        text = rest.1;
    }
    text.to_owned()
}

pub(super) fn list(papers: Option<&Path>, screen: &Screen) -> Result<(), Failure> {
    let papers = folder::read(papers)?;
    let mut kinds: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    let (mut judged, mut unasked) = (BTreeMap::new(), BTreeMap::new());
    let mut claims = Vec::new();
    for paper in &papers {
        for (name, scenario) in paper.scenarios(None).map_err(Failure::paper)? {
            for (claim, seen) in scenario.claims().iter().zip(seen(paper, &name, &scenario)?) {
                let (counts, verdict, why) = match seen {
                    Seen::Judged(verdict) => (&mut judged, Some(verdict.word()), None),
                    Seen::Not(why) => (kinds.entry(kind(&why)).or_default(), None, Some(why)),
                    Seen::Unasked => (&mut unasked, None, None),
                };
                *counts.entry(paper.key.as_str()).or_insert(0) += 1;
                claims.push(json!({
                    "paper": paper.key, "figure": name, "claim": claim.that(), "verdict": verdict, "why_not": why,
                }));
            }
        }
    }
    if screen.json {
        return print(&store::pretty(&json!({ "peer": "ns2", "claims": Value::Array(claims) })));
    }
    let keys: Vec<&str> = papers.iter().map(|paper| paper.key.as_str()).collect();
    let heading = ["in ns-2"].into_iter().chain(keys.iter().copied()).chain(["all"]).map(str::to_owned);
    let mut table = Table::with_heading(heading.collect());
    let mut row = |name: String, counts: &BTreeMap<&str, usize>| {
        let number = |key: &&str| counts.get(key).map_or(String::new(), usize::to_string);
        let all: usize = counts.values().sum();
        table.row([name].into_iter().chain(keys.iter().map(number)).chain([all.to_string()]).collect());
    };
    row("judged".into(), &judged);
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.values().sum::<usize>()));
    for (why, counts) in &kinds {
        row(format!("not: {why}"), counts);
    }
    if !unasked.is_empty() {
        row("could be run; no value is written down".into(), &unasked);
    }
    print(&table.render())
}
