//! A second opinion on papers/mpcp: VCP, DPCP and TPCP in floats, written from the paper by somebody who had not read the laws
//! of congestlab-core, with no line of it or of the simulator. Its verdicts are papers/mpcp/model.toml;
//! `CONGESTLAB_DOCUMENTS=write` puts today's there.

mod claims;
mod model;

use std::fs;
use std::path::PathBuf;

use claims::{FIGURES, Figure, Reading};
use congestlab_scenario::number;
use rayon::prelude::*;

const SEEDS: u64 = 5;
/// Student's t of 95 % for as many.
const STUDENT: f64 = 2.776;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../papers/mpcp")
}

/// A mean, or a ratio of means, and half of its interval (Cochran, Sampling Techniques, 6.4).
fn interval(runs: &[&Reading]) -> (f64, f64) {
    let count = runs.len() as f64;
    let over = |value: &dyn Fn(&Reading) -> f64| model::mean(runs.iter().map(|run| value(run)));
    let to = |run: &Reading| run.2.unwrap_or(1.0);
    let below = over(&to);
    let ratio = over(&|run| run.1) / below;
    let squares: f64 = runs.iter().map(|run| (run.1 - ratio * to(run)).powi(2)).sum();
    (ratio, STUDENT * (squares / (count * (count - 1.0))).sqrt() / below)
}

/// What a claim asks of its number.
fn bounds(claim: &toml::Value) -> (f64, f64) {
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    let of = |key: &str| claim.get(key).and_then(number);
    if let Some(within) = claim.get("within") {
        return (number(&within[0]).expect("a number"), number(&within[1]).expect("a number"));
    }
    if let Some(equal) = of("equals") {
        return (equal, equal);
    }
    (of("at_least").unwrap_or(f64::NEG_INFINITY), of("at_most").unwrap_or(f64::INFINITY))
}

/// 0 holds, 1 is undecided, 2 fails.
fn judge((low, high): (f64, f64), (mean, half): (f64, f64)) -> usize {
    if mean - half >= low && mean + half <= high {
        0
    } else if mean + half < low || mean - half > high {
        2
    } else {
        1
    }
}

fn values((figure, runs): &Figure) -> Vec<toml::Table> {
    let text = fs::read_to_string(folder().join(format!("{figure}.toml"))).expect("the figure's file");
    let file: toml::Table = text.parse().expect("a figure");
    let runs: Vec<Vec<Reading>> = (1..=SEEDS).into_par_iter().map(runs).collect();
    let mut values: Vec<(&str, usize, Vec<String>)> = Vec::new();
    for (index, (that, ..)) in runs[0].iter().enumerate() {
        let claims = file["claims"].as_array().expect("claims");
        let claim = claims.iter().find(|claim| claim["that"].as_str() == Some(that));
        let claim = claim.unwrap_or_else(|| panic!("{figure} has no claim {that:?}"));
        let read = interval(&runs.iter().map(|run| &run[index]).collect::<Vec<_>>());
        let said = number::interval(read.0, read.1);
        let verdict = judge(bounds(claim), read);
        match values.last_mut().filter(|last| last.0 == *that) {
            // The worst of a claim's points is its verdict.
            Some(last) => {
                last.1 = last.1.max(verdict);
                last.2.push(said);
            }
            None => values.push((that, verdict, vec![said])),
        }
    }
    let table = |(that, verdict, said): (&str, usize, Vec<String>)| {
        let pairs = [
            ("figure", (*figure).to_owned()),
            ("claim", that.to_owned()),
            ("verdict", ["holds", "undecided", "fails"][verdict].to_owned()),
            ("measured", said.join("; ")),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
    };
    values.into_iter().map(table).collect()
}

#[test]
fn the_models_verdicts_are_those_that_are_written_down() {
    let tables: Vec<_> = FIGURES.par_iter().flat_map_iter(values).map(toml::Value::Table).collect();
    let today = toml::Table::from_iter([("values".to_owned(), toml::Value::Array(tables))]);
    let today = toml::to_string(&today).expect("tables");
    let place = folder().join("model.toml");
    if std::env::var_os("CONGESTLAB_DOCUMENTS").is_some_and(|value| value == "write") {
        fs::write(&place, &today).expect("model.toml is written");
    }
    let written = fs::read_to_string(&place).unwrap_or_default();
    let differs = today.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(
        today == written,
        "{} says otherwise (CONGESTLAB_DOCUMENTS=write corrects it): {differs:?}",
        place.display()
    );
    // The second opinion is on every claim that fails.
    let asked = read("model.toml", "values");
    for [figure, claim, verdict] in read("verdicts.toml", "verdicts") {
        let is_asked = asked.iter().any(|value| value[0] == figure && value[1] == claim);
        assert!(is_asked || verdict != "fails", "{figure}: the model says nothing of {claim:?}");
    }
}

/// Claims of a file of verdicts: figure, words, verdict.
fn read(name: &str, key: &str) -> Vec<[String; 3]> {
    let text = fs::read_to_string(folder().join(name)).expect("a file of verdicts");
    let table: toml::Table = text.parse().expect("verdicts");
    let words = |value: &toml::Value| {
        ["figure", "claim", "verdict"].map(|key| value[key].as_str().expect("a word").to_owned())
    };
    table[key].as_array().expect("a list").iter().map(words).collect()
}

/// MP 2.2 holds a cut window for a round trip and says nothing of pacing. The laws hold it for an interval t_rho, and pace windows
/// with gaps above 100 ms. Fig. 2c comes out as theirs, 2.5 times at most, with both, and with neither alone.
#[test]
fn fig_2c_turns_with_the_hold_and_the_pacing_together() {
    let shares = |hold: Option<f64>, paced_above: f64| {
        let flow = |flow: &mut model::FlowSpec| {
            flow.hold = hold;
            flow.paced_above = paced_above;
        };
        let runs = (1..=SEEDS).into_par_iter();
        let runs = runs.map(|seed| claims::parking_lot(claims::DPCP, 0.2, 1000.0, seed, flow));
        let got: Vec<(f64, f64)> = runs
            .map(|seen| (seen.goodput("local0", 300.0, 1000.0), seen.goodput("long", 300.0, 1000.0)))
            .collect();
        got.iter().map(|pair| pair.0).sum::<f64>() / got.iter().map(|pair| pair.1).sum::<f64>()
    };
    let both = shares(Some(0.2), 0.1);
    assert!(both < 2.5, "both: {both}");
    for (hold, paced_above) in [(None, f64::INFINITY), (Some(0.2), f64::INFINITY), (None, 0.1)] {
        let share = shares(hold, paced_above);
        assert!(share > 3.0, "{hold:?}, {paced_above}: {share}");
    }
}
