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

fn scenario(claim: &str) -> Scenario {
    let text = format!("{SCENARIO}{claim}\n");
    let scenario = Scenario::parse("a.toml", &text, Path::new(""), &[], None).expect("a scenario");
    scenario.check().expect("a claim");
    scenario
}

/// Found by fuzzing: a claim looks at what is zipped before somebody counts it.
#[test]
fn zipped_lists_of_different_lengths_are_refused() {
    let grid = "grid = { \"links.a.delay\" = [\"10 ms\", \"20 ms\"], \"run.seed\" = [1, 2, 3, 4, 5] }";
    for seeds in ["[1]", "[1, 2, 3]"] {
        let zip = format!("zip = {{ \"links.a.delay\" = [\"10 ms\", \"20 ms\"], \"run.seed\" = {seeds} }}");
        let text = format!("{}at_least = 0\n", SCENARIO.replace(grid, &zip));
        assert!(text.contains("zip"));
        let refused =
            Scenario::parse("a.toml", &text, Path::new(""), &[], None).and_then(|file| file.check());
        assert!(refused.is_err(), "seeds {seeds} for two delays");
    }
}

fn observation(delay: &str, seed: u64, is_random: bool, utilization: f64, queue: f64) -> Observation {
    let setting = |path: &str, value: String| (path.to_owned(), value);
    let reading = |metric: &str, value: f64| (metric.to_owned(), Reading::Number(value));
    Observation {
        is_random,
        settings: vec![setting("links.a.delay", format!("{delay:?}")), setting("run.seed", seed.to_string())],
        readings: vec![
            reading("links.a.utilization", utilization),
            reading("links.a.queue_mean_packets", queue),
        ],
    }
}

/// The verdict on a claim about runs of which each has a utilisation and a mean queue, delay by delay, seed by seed.
fn judge(claim: &str, is_random: bool, readings: &[[(f64, f64); 5]]) -> Verdict {
    let runs = readings.iter().zip(["10 ms", "20 ms"]).flat_map(|(seeds, delay)| {
        let run = move |(seed, &(utilization, queue)): (u64, &(f64, f64))| {
            observation(delay, seed, is_random, utilization, queue)
        };
        (1..).zip(seeds).map(run)
    });
    scenario(claim).claims()[0].verdict(&runs.collect::<Vec<_>>())
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
    // The mean of the ratios is 2.92, that of the means 20 / 14; the interval leaves it one decimal.
    let readings = [(10.0, 1.0), (1.0, 1.0), (1.0, 4.0), (1.0, 4.0), (7.0, 4.0)];
    let claim = "ratio_to = \"links.a.queue_mean_packets\"\nwithin = [-9, 9]\ndecide = \"mean\"";
    let verdict = judge(claim, true, &[readings]);
    assert!(verdict.text.starts_with("1.4 ± "), "{}", verdict.text);
    // A run without a queue is one of them; none with one leaves nothing to say.
    let with_zero = readings.map(|(value, base)| (value, if base == 1.0 { 0.0 } else { base }));
    let verdict = judge(claim, true, &[with_zero]);
    assert!(verdict.text.starts_with("1.7 ± "), "{}", verdict.text);
    for decide in ["", "\ndecide = \"mean\""] {
        let claim = format!("ratio_to = \"links.a.queue_mean_packets\"\nat_least = 0{decide}");
        let verdict = judge(&claim, true, &[readings.map(|(value, _)| (value, 0.0))]);
        assert_eq!(verdict.judgement, Judgement::Undecided, "{decide}: {}", verdict.text);
        assert!(verdict.text.contains("nothing to divide by"), "{}", verdict.text);
    }
}

#[test]
fn runs_that_draw_nothing_are_one() {
    for (decide, text) in [
        ("mean", "0.9 (one run: seeds changed nothing)"),
        ("half", "1 of 1 seeds (one run: seeds changed nothing)"),
        ("each", "0.9 (one run: seeds changed nothing)"),
    ] {
        let claim = format!("at_least = 0.5\ndecide = \"{decide}\"");
        let mut verdict = judge(&claim, false, &[alone([0.9; 5])]);
        verdict.text = verdict.text.replace(" at links.a.delay = \"10 ms\"", "");
        assert_eq!((verdict.judgement, verdict.text.as_str()), (Judgement::Holds, text));
    }
    // With chance in them equal numbers are five.
    let verdict = judge("at_least = 0.5\ndecide = \"mean\"", true, &[alone([0.9; 5])]);
    assert!(verdict.text.contains("0.9 ± 0"), "{}", verdict.text);
}

#[test]
fn nothing_to_divide_by_at_one_point_hides_no_failure_at_another() {
    let nothing = [(0.5, 0.0); 5];
    for decide in ["each", "mean", "half"] {
        let claim =
            format!("ratio_to = \"links.a.queue_mean_packets\"\nat_least = 0.9\ndecide = \"{decide}\"");
        let low = [(0.1, 1.0), (0.11, 1.0), (0.12, 1.0), (0.13, 1.0), (0.14, 1.0)];
        for (readings, judgement) in [
            ([nothing, low], Judgement::Fails),
            ([low, nothing], Judgement::Fails),
            ([nothing, [(1.0, 1.0); 5]], Judgement::Undecided),
        ] {
            let verdict = judge(&claim, true, &readings);
            assert_eq!(verdict.judgement, judgement, "{decide}: {}", verdict.text);
            // Each point is told, that without a number too.
            assert!(decide == "each" || verdict.points.len() == 2, "{decide}: {:?}", verdict.points);
        }
    }
}

#[test]
fn half_of_the_seeds_can_be_open() {
    let claim = "ratio_to = \"links.a.queue_mean_packets\"\nat_least = 0.9\ndecide = \"half\"";
    let of = |runs: &str| {
        let run = |run: char| match run {
            'h' => (1.0, 1.0),
            'f' => (0.5, 1.0),
            _ => (1.0, 0.0),
        };
        let runs: Vec<(f64, f64)> = runs.chars().map(run).collect();
        judge(claim, true, &[runs.try_into().expect("five runs")]).judgement
    };
    assert_eq!(of("hhh00"), Judgement::Holds);
    assert_eq!(of("hh00f"), Judgement::Undecided);
    assert_eq!(of("h0fff"), Judgement::Fails);
    assert_eq!(of("00000"), Judgement::Undecided);
}

#[test]
fn a_trend_that_fails_is_said_though_the_bounds_are_open() {
    let claim = "monotone = \"increasing\"\nat_least = 0.9\ndecide = \"mean\"";
    let verdict = judge(claim, true, &[alone([1.0; 5]), alone(NEAR)]);
    assert_eq!(verdict.judgement, Judgement::Fails, "{}", verdict.text);
    let verdict = judge(claim, true, &[alone(NEAR), alone([1.0; 5])]);
    assert_eq!(verdict.judgement, Judgement::Undecided, "{}", verdict.text);
}

/// The points of one place along an axis weigh the same, those with one run and those with five.
#[test]
fn a_mean_along_an_axis_is_over_points() {
    let text = SCENARIO
        .replace("\"run.seed\"", "\"links.a.rate\" = [\"10 Mbit/s\", \"20 Mbit/s\"], \"run.seed\"")
        + "monotone = \"decreasing\"\nover = \"links.a.delay\"\n";
    let scenario = Scenario::parse("a.toml", &text, Path::new(""), &[], None).expect("a scenario");
    scenario.check().expect("a claim");
    let mut runs = Vec::new();
    for (delay, rate, is_random, value) in [
        ("10 ms", "10 Mbit/s", false, 0.0),
        ("10 ms", "20 Mbit/s", true, 1.0),
        ("20 ms", "10 Mbit/s", true, 0.4),
        ("20 ms", "20 Mbit/s", true, 0.4),
    ] {
        for seed in 1..=5 {
            let mut run = observation(delay, seed, is_random, value, 1.0);
            run.settings.insert(1, ("links.a.rate".to_owned(), format!("{rate:?}")));
            runs.push(run);
        }
    }
    // 0.5 before 0.4; runs counted one by one would give 5 / 6, a point of one run left out 1.
    let verdict = scenario.claims()[0].verdict(&runs);
    assert_eq!(verdict.judgement, Judgement::Holds, "{}", verdict.text);
    assert!(verdict.text.contains("0.01: 0.5, 0.02: 0.4"), "{}", verdict.text);
}

#[test]
fn two_lines_that_meet_cross_only_if_they_part_on_the_other_side() {
    let of = |differences: &[f64]| {
        let delays: Vec<String> = (1..=differences.len()).map(|delay| format!("{} ms", 10 * delay)).collect();
        let list = delays.iter().map(|delay| format!("{delay:?}")).collect::<Vec<_>>().join(", ");
        let text = SCENARIO.replace("\"10 ms\", \"20 ms\"", &list)
            + "crossover = \"links.a.queue_mean_packets\"\nwithin = [\"1 ms\", \"100 ms\"]\n";
        let scenario = Scenario::parse("a.toml", &text, Path::new(""), &[], None).expect("a scenario");
        scenario.check().expect("a claim");
        let run = |(delay, difference): (&String, &f64)| observation(delay, 1, false, 1.0 + difference, 1.0);
        let runs: Vec<_> = delays.iter().zip(differences).map(run).collect();
        scenario.claims()[0].verdict(&runs)
    };
    for (differences, at) in [
        (&[1.0, -1.0][..], Some(0.015)),
        (&[1.0, 0.0, -1.0], Some(0.02)),
        (&[-1.0, 0.0, 1.0], Some(0.02)),
        (&[-1.0, 0.0, 0.0, 1.0], Some(0.025)),
        (&[1.0, 0.0, 1.0], None),
        (&[-1.0, 0.0, -1.0], None),
        (&[0.0, 1.0], None),
        (&[-1.0, 0.0], None),
        (&[0.0, 0.0], None),
    ] {
        let verdict = of(differences);
        let found =
            verdict.text.split(" = ").nth(1).and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let is_near = found.zip(at).is_some_and(|(found, at)| (found - at).abs() < 1e-9);
        assert_eq!(
            (verdict.holds(), is_near),
            (at.is_some(), at.is_some()),
            "{differences:?}: {}",
            verdict.text
        );
    }
}

/// What has a mean on the bound is left open in all but a few cases, however often it is looked at; and what lies beside the
/// bound is decided, and rightly.
#[test]
fn five_looks_err_as_seldom_as_one() {
    let scenario = scenario("at_least = 0\nonly = { \"links.a.delay\" = [\"10 ms\"] }\ndecide = \"mean\"");
    let claim = &scenario.claims()[0];
    // Normal by the sum of twelve uniform numbers; SplitMix64.
    let mut state = 20_261_123_u64;
    let mut uniform = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    };
    let mut settle = |mean: f64| {
        let mut draw = |seeds: &[u64]| -> Vec<Observation> {
            let mut value = || mean + (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            seeds.iter().map(|seed| observation("10 ms", *seed, true, value(), 1.0)).collect()
        };
        let own = draw(&[1, 2, 3, 4, 5]);
        let mut seeds = 5;
        let verdict = claim.settled(own, &mut |more, _| {
            seeds += more.len();
            Ok::<_, std::convert::Infallible>(draw(more))
        });
        (verdict.unwrap_or_else(|never| match never {}).judgement, seeds)
    };
    let count = 4000;
    let on_bound: Vec<_> = (0..count).map(|_| settle(0.0)).collect();
    let decided = on_bound.iter().filter(|(judgement, _)| *judgement != Judgement::Undecided).count();
    let share = decided as f64 / f64::from(count);
    assert!((0.01..=0.05).contains(&share), "{share} of what is on the bound is decided");
    assert!(on_bound.iter().all(|(judgement, seeds)| *judgement != Judgement::Undecided || *seeds == 100));
    let beside: Vec<_> = (0..count).map(|_| settle(0.5)).collect();
    let of = |wanted: Judgement| beside.iter().filter(|(judgement, _)| *judgement == wanted).count();
    assert!(of(Judgement::Fails) < 10 && of(Judgement::Holds) > 3950, "{}", of(Judgement::Holds));
    let seeds = beside.iter().map(|(_, seeds)| *seeds).sum::<usize>() as f64 / f64::from(count);
    assert!(seeds < 50.0, "{seeds} seeds on average");
}

/// A point that is decided has no more seeds.
#[test]
fn more_seeds_are_those_of_the_points_that_are_open() {
    let scenario = scenario("at_least = 0.89\ndecide = \"mean\"");
    let of = |delay: &'static str, values: [f64; 5]| {
        (1..).zip(values).map(move |(seed, value)| observation(delay, seed, true, value, 1.0))
    };
    let own = of("10 ms", NEAR).chain(of("20 ms", [0.99, 0.98, 0.99, 0.98, 0.99]));
    let mut asked = Vec::new();
    let verdict = scenario.claims()[0].settled(own.collect(), &mut |seeds, points| {
        asked.push((seeds.to_vec(), points.to_vec()));
        let more = seeds.iter().map(|seed| observation("10 ms", *seed, true, 0.93, 1.0));
        Ok::<_, std::convert::Infallible>(more.collect())
    });
    let verdict = verdict.unwrap_or_else(|never| match never {});
    assert_eq!(verdict.judgement, Judgement::Holds, "{}", verdict.text);
    let point = vec![("links.a.delay".to_owned(), "\"10 ms\"".to_owned())];
    assert_eq!(asked, [((6..=10).collect(), vec![point])]);
    assert!(
        verdict.text.contains(" of 10 seeds at") && !verdict.text.contains("20 seeds"),
        "{}",
        verdict.text
    );
}

/// Seeds that a claim names are its own, and no others are asked for.
#[test]
fn a_claim_that_chooses_seeds_has_no_more() {
    let claim = "at_least = 0.9\nonly = { \"run.seed\" = [1, 2, 3, 4, 5] }\ndecide = \"mean\"";
    let scenario = scenario(claim);
    let runs = (1..).zip(NEAR).map(|(seed, value)| observation("10 ms", seed, true, value, 1.0));
    let verdict = scenario.claims()[0].settled(runs.collect(), &mut |_, _| Err("asked for more"));
    assert_eq!(verdict.map(|verdict| verdict.judgement), Ok(Judgement::Undecided));
}

/// What is refused of claims and their controls, and what it says.
#[test]
fn claims_and_controls_that_can_not_be_are_refused() {
    let base = SCENARIO.replace(
        "[sweep]",
        "[flows.g]\nlaw = \"reno\"\npath = [\"a\"]\n[sweep]\n\
         zip = { \"links.a.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"], \"flows.f.count\" = [2, 3] }",
    );
    let says = |claim: &str, said: &str| {
        let text = format!("{base}{claim}\n");
        let scenario = Scenario::parse("a.toml", &text, Path::new(""), &[], None).expect("a scenario");
        let refused = scenario.check().expect_err(claim).to_string();
        assert!(refused.contains(said), "{claim}: {refused}");
    };
    let control =
        |settings: &str, said: &str| says(&format!("at_least = 0.5\ncontrol = {{ {settings} }}"), said);
    control("\"links.a.delay\" = \"15 ms\"", "`control` has \"15 ms\", which is no value of `links.a.delay`");
    control("\"run.seed\" = 1", "`control` sets `run.seed`");
    control("\"sweep.grid\" = 1", "is no part of a run");
    control("\"links.a.rate\" = \"1 Mbit/s\"", "names `links.a.rate` and not `flows.f.count`");
    control("\"links.a.rate\" = \"1 Mbit/s\", \"flows.f.count\" = 3", "that do not go together");
    control("\"flows.f\" = { law = \"reno\", path = [\"a\"] }", "of which the sweep varies `flows.f.count`");
    control("\"links.a.weight\" = 1", "weight");
    says(
        "ordered = [\"flows.g[0].goodput_bps\"]\ncontrol = { \"flows\" = { f = { law = \"reno\", path = [\"a\"] } } }",
        "of which the sweep varies",
    );
    says(
        "at_least = 0\nratio_to = \"flows.f[1].goodput_bps\"\ncontrol = { \"flows.f.count\" = 1, \"links.a.rate\" = \"1 Mbit/s\" }",
        "`control` has 1, which is no value of `flows.f.count`",
    );
    says(
        "monotone = \"increasing\"\nover = \"links.a.delay\"\ncontrol = { \"links.a.delay\" = \"10 ms\" }",
        "along which the claim is",
    );
    says(
        "at_least = 0.5\nagainst = { \"links.a.rate\" = [\"1 Mbit/s\"] }",
        "`against` names `links.a.rate` and not `flows.f.count`",
    );
    says("at_least = 0.7\nwithin = [0.1, 0.5]", "`within` is below `at_least`");
    says("at_most = 0.05\nwithin = [0.1, 0.5]", "`at_most` is below `within`");
}

#[test]
fn a_control_that_takes_a_flow_away_is_refused() {
    let text = SCENARIO.replace("[sweep]", "[flows.g]\nlaw = \"reno\"\npath = [\"a\"]\n[sweep]")
        + "ratio_to = \"flows.g[0].goodput_bps\"\nat_least = 0\ncontrol = { flows = { f = { law = \"reno\", path = [\"a\"] } } }\n";
    let scenario = Scenario::parse("a.toml", &text, Path::new(""), &[], None).expect("a scenario");
    let refused = scenario.check().expect_err("a control").to_string();
    assert!(refused.contains("leaves nothing of `flows.g[0].goodput_bps`"), "{refused}");
}
