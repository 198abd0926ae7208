//! A paper's folder of somebody else's making: refused, or a paper whose figures are refused or are scenarios.
//!
//! Input: what is in its files, between zero bytes, in the order of `NAMES`; what is empty is not there.
#![no_main]

use congestlab_scenario::claims::Judgement;
use congestlab_scenario::paper::{Counts, Paper, PaperError, Verdicts, Written};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::path::Path;

const NAMES: [&str; 8] = [
    "paper.toml",
    "fig1.toml",
    "fig2.toml",
    "exceptions.toml",
    "verdicts.toml",
    "ranges.toml",
    "ns2.toml",
    "model.toml",
];

fuzz_target!(|input: &[u8]| {
    let Ok(input) = str::from_utf8(input) else { return };
    // An absolute path would leave the folder.
    if input.contains("trace") && input.contains('/') {
        return;
    }
    let parts = NAMES.into_iter().zip(input.split('\0')).filter(|(_, text)| !text.is_empty());
    let files: BTreeMap<String, String> = parts.map(|(name, text)| (name.into(), text.into())).collect();
    let mut paper = match Paper::parse(Path::new("/nonexistent"), "key".into(), files.clone()) {
        Ok(paper) => paper,
        Err(error) => return check(&error, &files),
    };
    if let Err(error) = paper.scenarios(None) {
        check(&error, &files);
    }
    assert!(paper.scenarios(Some("fig3")).is_err());
    let names: Vec<String> = paper.figures.iter().map(|figure| figure.name.clone()).collect();
    let mut now = Vec::new();
    for name in &names {
        let Ok(scenario) = paper.scenario(name, &[]) else { continue };
        let claims = scenario.claims().iter();
        now.extend(claims.map(|claim| Written {
            figure: name.clone(),
            claim: claim.that().into(),
            verdict: Judgement::Holds,
            measured: claim.that().into(),
            control: None,
        }));
        for claim in scenario.claims() {
            let control = scenario.control(claim);
            assert!(control.is_ok(), "controls were looked at: {control:?}");
        }
        let other = scenario.with_law("cubic");
        if let Ok(Some(other)) = &other {
            let _ = other.check();
        }
        for assumed in scenario.figure().into_iter().flat_map(|figure| figure.assumed()) {
            for value in &assumed.values {
                let sets: Vec<_> = assumed.paths.iter().map(|path| ((*path).into(), value.clone())).collect();
                let read = paper.scenario(name, &sets);
                assert!(read.is_ok(), "what is assumed was looked at: {read:?}");
            }
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    paper.write_down(&names, &now);
    assert_eq!(paper.written.len(), now.len(), "only what ran just now");
    assert_eq!(paper.counts(), Counts { hold: now.len(), ..Counts::default() });
    for written in &now {
        assert_eq!(paper.written(&written.figure, &written.claim), Some(written));
    }
    // What is kept is read again.
    let text = toml::to_string(&Verdicts { verdicts: now.clone() }).expect("texts");
    assert_eq!(toml::from_str::<Verdicts>(&text).expect("what was written").verdicts, now);
});

fn check(error: &PaperError, files: &BTreeMap<String, String>) {
    assert!(!error.to_string().is_empty());
    if let PaperError::Wrong { path, line, column, .. } = error {
        let name = path.file_name().and_then(|name| name.to_str()).expect("one of ours");
        let lines = files[name].matches('\n').count() + 1;
        assert!(*line <= lines && *column >= 1, "{name}:{line}:{column} is outside");
    }
}
