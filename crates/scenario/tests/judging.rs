//! Three verdicts, from readings that are given.

use std::path::Path;

use congestlab_scenario::Scenario;
use congestlab_scenario::claims::{Judgement, Observation, Verdict};
use congestlab_scenario::metric::Reading;

const SCENARIO: &str = r#"
[run]
duration = "2 s"
[links.a]
rate = "10 Mbit/s"
delay = "10 ms"
[flows.f]
law = "reno"
count = 2
path = ["a"]
[sweep]
grid = { "links.a.delay" = ["10 ms", "20 ms"], "run.seed" = [1, 2, 3, 4, 5] }
[[claims]]
that = "it"
metric = "links.a.utilization"
"#;

/// The verdict on a claim about runs of which each has a utilisation and a mean queue, delay by delay, seed by seed.
fn judge(claim: &str, is_random: bool, readings: &[[(f64, f64); 5]]) -> Verdict {
    let text = format!("{SCENARIO}{claim}\n");
    let scenario = Scenario::parse("a.toml", &text, Path::new(""), &[], None).expect("a scenario");
    scenario.check().expect("a claim");
    let runs = readings.iter().zip(["\"10 ms\"", "\"20 ms\""]).flat_map(|(seeds, delay)| {
        seeds.iter().enumerate().map(move |(seed, (utilization, queue))| Observation {
            is_random,
            settings: vec![
                ("links.a.delay".to_owned(), delay.to_owned()),
                ("run.seed".to_owned(), (seed + 1).to_string()),
            ],
            readings: vec![
                ("links.a.utilization".to_owned(), Reading::Number(*utilization)),
                ("links.a.queue_mean_packets".to_owned(), Reading::Number(*queue)),
            ],
        })
    });
    scenario.claims()[0].verdict(&runs.collect::<Vec<_>>())
}

fn alone(values: [f64; 5]) -> [(f64, f64); 5] {
    values.map(|value| (value, 1.0))
}

/// Mean 0.9, its interval from 0.8804 to 0.9196.
const NEAR: [f64; 5] = [0.88, 0.89, 0.90, 0.91, 0.92];

#[test]
fn an_interval_across_a_bound_decides_nothing() {
    for (claim, judgement) in [
        ("at_least = 0.88", Judgement::Holds),
        ("at_least = 0.89", Judgement::Undecided),
        ("at_least = 0.91", Judgement::Undecided),
        ("at_least = 0.92", Judgement::Fails),
        ("at_most = 0.92", Judgement::Holds),
        ("at_most = 0.90", Judgement::Undecided),
        ("at_most = 0.88", Judgement::Fails),
        ("within = [0.88, 0.92]", Judgement::Holds),
        ("within = [0.895, 0.905]", Judgement::Undecided),
        ("within = [0.5, 0.6]", Judgement::Fails),
        ("at_least = 0.5\nat_most = 0.6", Judgement::Fails),
    ] {
        let verdict = judge(&format!("{claim}\ndecide = \"mean\""), true, &[alone(NEAR)]);
        assert_eq!(verdict.judgement, judgement, "{claim}: {}", verdict.text);
    }
}

#[test]
fn one_point_that_fails_is_enough_and_one_that_is_open_is_not() {
    let low = [0.1, 0.11, 0.12, 0.13, 0.14];
    let of = |readings: &[[f64; 5]]| {
        let readings: Vec<_> = readings.iter().map(|values| alone(*values)).collect();
        judge("at_least = 0.9\ndecide = \"mean\"", true, &readings)
    };
    let open = of(&[NEAR, [1.0; 5]]);
    assert_eq!(open.judgement, Judgement::Undecided, "{}", open.text);
    assert!(open.text.ends_with("undecided, at_least 0.9 (1 of 2)"), "{}", open.text);
    let fails = of(&[NEAR, low]);
    assert_eq!(fails.judgement, Judgement::Fails);
    assert!(fails.text.contains("20 ms") && !fails.text.contains("10 ms"), "{}", fails.text);
}

#[test]
fn a_ratio_of_several_seeds_is_that_of_their_means() {
    // The mean of the ratios is 2.92, that of the means 20 / 14.
    let readings = [(10.0, 1.0), (1.0, 1.0), (1.0, 4.0), (1.0, 4.0), (7.0, 4.0)];
    let claim = "ratio_to = \"links.a.queue_mean_packets\"\nwithin = [-9, 9]\ndecide = \"mean\"";
    let verdict = judge(claim, true, &[readings]);
    assert!(verdict.text.starts_with("1.429 ±"), "{}", verdict.text);
    // A run without a queue is one of them; none with one leaves nothing to say.
    let with_zero = readings.map(|(value, base)| (value, if base == 1.0 { 0.0 } else { base }));
    let verdict = judge(claim, true, &[with_zero]);
    assert!(verdict.text.starts_with("1.667 ±"), "{}", verdict.text);
    for decide in ["", "\ndecide = \"mean\""] {
        let claim = format!("ratio_to = \"links.a.queue_mean_packets\"\nat_least = 0{decide}");
        let verdict = judge(&claim, true, &[readings.map(|(value, _)| (value, 0.0))]);
        assert_eq!(verdict.judgement, Judgement::Undecided, "{decide}: {}", verdict.text);
        assert!(verdict.text.contains("nothing to divide by"), "{}", verdict.text);
    }
}

#[test]
fn runs_that_draw_nothing_are_one() {
    for (decide, text) in
        [("mean", "0.9 (one run)"), ("half", "1 of 1 seeds (one run)"), ("each", "0.9 (one run)")]
    {
        let claim = format!("at_least = 0.5\ndecide = \"{decide}\"");
        let mut verdict = judge(&claim, false, &[alone([0.9; 5])]);
        verdict.text = verdict.text.replace(" at links.a.delay = \"10 ms\"", "");
        assert_eq!((verdict.judgement, verdict.text.as_str()), (Judgement::Holds, text));
    }
    // With chance in them equal numbers are five.
    let verdict = judge("at_least = 0.5\ndecide = \"mean\"", true, &[alone([0.9; 5])]);
    assert!(verdict.text.contains("0.9 ± 0"), "{}", verdict.text);
}
