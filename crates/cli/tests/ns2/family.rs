//! FACK, HighSpeed TCP, BIC, CUBIC and Vegas: one flow over a drop-tail queue, which is the same each
//! time, and one flow that loses packets at random, whose distribution is compared.

use crate::case::{BIC, CUBIC, Case, FACK, HIGHSPEED, HIGHSPEED_LINUX, Law, Peer, VEGAS};
use crate::run::{Outcome, congestlab, in_parallel, ns2};
use crate::{Judge, cases, conclude, ready};

/// How far the goodput may be from ns-2's: in the steady state, and the mean over ten seeds with random
/// losses. ns-2's BIC and CUBIC are older than ours; its Linux HighSpeed rounds a(w) up.
const LAWS: [(&Law, f64, f64); 6] = [
    (&FACK, 0.05, 0.1),
    (&HIGHSPEED, 0.05, 0.1),
    (&HIGHSPEED_LINUX, 0.05, 0.15),
    (&VEGAS, 0.05, f64::NAN),
    (&BIC, 0.15, 0.15),
    (&CUBIC, 0.15, 0.15),
];
const SEEDS: u32 = 10;

fn theirs(case: &Case, law: &'static Law, seed: u32) -> Outcome {
    ns2(case, Peer::Tcp(law), seed).unwrap_or_else(|died| panic!("{}: ns-2: {died}", case.name))
}

/// Every case with every law.
fn pairs(cases: &[Case]) -> Vec<(Case, &'static Law, f64, f64)> {
    let with = |case: &Case| LAWS.map(|(law, steady, random)| (case.clone(), law, steady, random));
    cases.iter().flat_map(with).collect()
}

#[test]
fn laws_of_tcps_family_agree_with_ns2_in_the_steady_state() {
    let Some(_guard) = ready("laws_of_tcps_family_agree_with_ns2_in_the_steady_state") else { return };
    let judged = in_parallel(&pairs(&cases(|all| all.steady)), |(case, law, apart, _)| {
        let (theirs, ours) = (theirs(case, law, 1), congestlab(case, Peer::Tcp(law), 1));
        let mut judge = Judge::new(case);
        let ratio = ours.total() / theirs.total();
        judge.expect((ratio - 1.0).abs() <= *apart, format!("{}: ratio of goodputs {ratio:.4}", law.name));
        let row = format!(
            "| {} | {} | {:.4} | {:.4} | {:.2} | {:.2} | {} | {} |",
            case.name,
            law.name,
            theirs.total() / case.rate,
            ours.total() / case.rate,
            theirs.queue,
            ours.queue,
            theirs.drops,
            ours.drops
        );
        (row, judge.failures)
    });
    let columns = "| case | law | goodput / rate ns-2 | ours | mean queue ns-2 | ours | drops ns-2 | ours |";
    conclude("One flow over drop tail", columns, judged);
}

#[test]
fn laws_of_tcps_family_are_distributed_as_in_ns2() {
    let Some(_guard) = ready("laws_of_tcps_family_are_distributed_as_in_ns2") else { return };
    let mut pairs = pairs(&cases(|all| all.random));
    pairs.retain(|(_, law, ..)| **law != VEGAS); // losses do not make its window
    let judged = in_parallel(&pairs, |(case, law, _, apart)| {
        let total = |outcome: Outcome| outcome.total() / 1e6;
        let theirs: Vec<f64> = (1..=SEEDS).map(|seed| total(theirs(case, law, seed))).collect();
        let ours: Vec<f64> = (1..=SEEDS).map(|seed| total(congestlab(case, Peer::Tcp(law), seed))).collect();
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let spread = |of: &[f64]| {
            let squares: f64 = of.iter().map(|one| (one - mean(of)).powi(2)).sum();
            (squares / (of.len() - 1) as f64).sqrt()
        };
        let (ratio, distance) = (mean(&ours) / mean(&theirs), distance(&theirs, &ours));
        let mut judge = Judge::new(case);
        judge.expect((ratio - 1.0).abs() <= *apart, format!("{}: ratio of means {ratio:.3}", law.name));
        let row = format!(
            "| {} | {} | {:.3} +- {:.3} | {:.3} +- {:.3} | {ratio:.3} | {distance:.1} |",
            case.name,
            law.name,
            mean(&theirs),
            spread(&theirs),
            mean(&ours),
            spread(&ours)
        );
        (row, judge.failures)
    });
    let columns = "| case | law | ns-2 | ours | ratio of means | distance |";
    conclude("One flow with random losses, goodput in Mbit/s, ten seeds", columns, judged);
}

/// Kolmogorov and Smirnov's: the largest difference of the two shares of what is at most x.
fn distance(one: &[f64], other: &[f64]) -> f64 {
    let share = |of: &[f64], x: f64| of.iter().filter(|&&value| value <= x).count() as f64 / of.len() as f64;
    one.iter().chain(other).map(|&x| (share(one, x) - share(other, x)).abs()).fold(0.0, f64::max)
}
