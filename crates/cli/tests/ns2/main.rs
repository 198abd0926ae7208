//! ns-2 as a peer: the same dumbbells in both simulators (issue: "How right", ns-2).
//!
//! `docs/ns2.md` explains the set-up, ns-2's peculiarities and the numbers. The tables go to stdout:
//! `cargo test --release -p congestlab --test ns2 -- --nocapture`; the environment variable
//! `CONGESTLAB_NS2=full` adds the larger cases.

mod case;
mod family;
mod highspeed;
mod papers;
mod run;

use std::sync::Mutex;

use case::{Case, Cases, Peer};
use run::{Outcome, congestlab, in_parallel, mean, missing, ns2};

/// Each table keeps every core busy by itself.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Seeds of a smooth case: ns-2 draws only the phases of the router's timers.
const SMOOTH_SEEDS: u32 = 5;
const LOSSY_SEEDS: usize = 10;
/// TCP draws nothing: its runs differ in the delays of the flows' own links.
const TCP_PLACINGS: u32 = 5;

/// Points of utilisation, packets or share of the mean queue, share of a flow's goodput.
const SMOOTH: (f64, f64, f64, f64) = (0.02, 10.0, 0.2, 0.05);

fn cases(pick: impl Fn(Cases) -> Vec<Case>) -> Vec<Case> {
    let file = run::directory().join("cases.toml");
    let text = std::fs::read_to_string(&file).expect("tests/ns2/cases.toml is in the tree");
    let full = std::env::var("CONGESTLAB_NS2").is_ok_and(|value| value == "full");
    let all = pick(toml::from_str(&text).expect("tests/ns2/cases.toml is a table of cases"));
    all.into_iter().filter(|case| full || !case.full).collect()
}

/// Prints the rows, then fails with what does not hold.
fn conclude(title: &str, columns: &str, judged: Vec<(String, Vec<String>)>) {
    let dashes = columns.matches('|').count() - 1;
    println!("\n{title}\n\n{columns}\n{}", "|---".repeat(dashes) + "|");
    for (row, _) in &judged {
        println!("{row}");
    }
    let failures: Vec<String> = judged.into_iter().flat_map(|(_, failures)| failures).collect();
    assert!(failures.is_empty(), "{} comparisons do not hold:\n{}", failures.len(), failures.join("\n"));
}

/// Adds a sentence for each condition that does not hold.
struct Judge<'a> {
    case: &'a Case,
    failures: Vec<String>,
}

impl Judge<'_> {
    fn new(case: &Case) -> Judge<'_> {
        Judge { case, failures: Vec::new() }
    }

    fn expect(&mut self, holds: bool, sentence: String) {
        if !holds {
            self.failures.push(format!("  {}: {sentence}", self.case.name));
        }
    }

    /// The default may have a shorter queue than ns-2: it states the rate of its exact window, where
    /// ns-2's X jumps with whole packets (docs/ns2.md, 3) and keeps bursts apart less well.
    fn utilization_and_queue(&mut self, who: &str, ours: &Outcome, theirs: &Outcome) {
        let (points, packets, share, _) = SMOOTH;
        self.expect(
            (ours.utilization - theirs.utilization).abs() <= points,
            format!("{who}: utilisation {:.4}, ns-2 {:.4}", ours.utilization, theirs.utilization),
        );
        let room = f64::max(packets, share * theirs.queue);
        let is_short_allowed = who == "default";
        self.expect(
            ours.queue - theirs.queue <= room && (is_short_allowed || theirs.queue - ours.queue <= room),
            format!("{who}: mean queue {:.2}, ns-2 {:.2}", ours.queue, theirs.queue),
        );
    }
}

/// Runs a smooth case in ns-2 and in ours, profile "ns2" and default, over the seeds.
fn smooth_outcomes(case: &Case) -> (Vec<Outcome>, [Vec<Outcome>; 2]) {
    let seeds = 1..=SMOOTH_SEEDS;
    let theirs = seeds.clone().map(|seed| {
        ns2(case, Peer::Xcp, seed).unwrap_or_else(|died| panic!("{}, seed {seed}: ns-2: {died}", case.name))
    });
    let ours = [Peer::Xcp, Peer::XcpDefault]
        .map(|peer| seeds.clone().map(|seed| congestlab(case, peer, seed)).collect());
    (theirs.collect(), ours)
}

/// How far a flow of ns-2 strays from its own mean when only the seed changes.
fn own_spread(outcomes: &[Outcome]) -> f64 {
    let mean = mean(outcomes);
    outcomes.iter().map(|o| o.worst_flow(&mean)).fold(0.0, f64::max)
}

const SMOOTH_COLUMNS: &str = "| case | utilisation ns-2 | profile ns2 | default | mean queue ns-2 | profile ns2 | \
     default | worst flow profile ns2 | default | ns-2 between seeds |";

fn smooth_row(case: &Case, theirs: &[Outcome], ours: &[Outcome; 2]) -> String {
    let peer = mean(theirs);
    let [profile, default] = ours;
    format!(
        "| {} | {:.4} | {:.4} | {:.4} | {:.2} | {:.2} | {:.2} | {:.1} % | {:.1} % | {:.1} % |",
        case.name,
        peer.utilization,
        profile.utilization,
        default.utilization,
        peer.queue,
        profile.queue,
        default.queue,
        100.0 * profile.worst_flow(&peer),
        100.0 * default.worst_flow(&peer),
        100.0 * own_spread(theirs)
    )
}

/// Utilisation within 2 points, mean queue within 10 packets or 20 %, each flow within 5 %, with
/// the profile "ns2" and without.
#[test]
fn smooth_xcp_agrees_with_ns2() {
    let Some(_guard) = ready("smooth_xcp_agrees_with_ns2") else { return };
    let judged = in_parallel(&cases(|all| all.smooth), |case| {
        let (theirs, ours) = smooth_outcomes(case);
        let peer = mean(&theirs);
        let mut judge = Judge::new(case);
        judge.expect(peer.drops == 0, format!("not smooth: ns-2 drops {}", peer.drops));
        judge.expect(
            case.smallest_share() > 1.999,
            format!("not smooth: {:.3} packets", case.smallest_share()),
        );
        let (.., share) = SMOOTH;
        judge.expect(own_spread(&theirs) <= share, "not smooth: ns-2's seeds disagree".to_string());
        let ours = ours.map(|outcomes| mean(&outcomes));
        for (who, ours) in ["profile ns2", "default"].into_iter().zip(&ours) {
            judge.utilization_and_queue(who, ours, &peer);
            judge.expect(
                ours.worst_flow(&peer) <= share,
                format!("{who}: a flow is {:.1} % off", 100.0 * ours.worst_flow(&peer)),
            );
            judge.expect(ours.drops == 0, format!("{who}: {} drops, ns-2 none", ours.drops));
        }
        (smooth_row(case, &theirs, &ours), judge.failures)
    });
    conclude("Smooth XCP, means over five seeds", SMOOTH_COLUMNS, judged);
}

/// Where a flow of ns-2 differs from itself by more than 5 % when only the router's phase does, so
/// much more is allowed to ours: each flow within 5 % and ns-2's own spread.
#[test]
fn unsettled_xcp_agrees_with_ns2_as_well_as_ns2_with_itself() {
    let Some(_guard) = ready("unsettled_xcp_agrees_with_ns2_as_well_as_ns2_with_itself") else { return };
    let judged = in_parallel(&cases(|all| all.unsettled), |case| {
        let (theirs, ours) = smooth_outcomes(case);
        let peer = mean(&theirs);
        let ours = ours.map(|outcomes| mean(&outcomes));
        let mut judge = Judge::new(case);
        let (.., share) = SMOOTH;
        judge.expect(own_spread(&theirs) > share, "ns-2 is settled: a smooth case".to_string());
        for (who, ours) in ["profile ns2", "default"].into_iter().zip(&ours) {
            judge.utilization_and_queue(who, ours, &peer);
            judge.expect(
                ours.worst_flow(&peer) <= share + own_spread(&theirs),
                format!("{who}: a flow is {:.1} % off", 100.0 * ours.worst_flow(&peer)),
            );
        }
        (smooth_row(case, &theirs, &ours), judge.failures)
    });
    conclude("XCP that ns-2 does not settle, means over five seeds", SMOOTH_COLUMNS, judged);
}

/// Ratio of mean goodputs in 0.9..1.1 over ten seeds with the profile "ns2".
#[test]
fn lossy_xcp_agrees_with_ns2() {
    let Some(_guard) = ready("lossy_xcp_agrees_with_ns2") else { return };
    let judged = in_parallel(&cases(|all| all.lossy), |case| {
        let (theirs, crashes) = surviving(case);
        let mut judge = Judge::new(case);
        judge.expect(
            theirs.len() == LOSSY_SEEDS,
            format!("ns-2 finished {} runs and crashed in {crashes}", theirs.len()),
        );
        let total =
            |outcomes: &[Outcome]| outcomes.iter().map(Outcome::total).sum::<f64>() / outcomes.len() as f64;
        let ours = [Peer::Xcp, Peer::XcpDefault].map(|peer| {
            total(&(1..=LOSSY_SEEDS as u32).map(|seed| congestlab(case, peer, seed)).collect::<Vec<_>>())
        });
        let ratio = ours[0] / total(&theirs);
        judge.expect((0.9..=1.1).contains(&ratio), format!("ratio of mean goodputs {ratio:.3}"));
        let row = format!(
            "| {} | {:.3} | {:.3} | {ratio:.3} | {:.3} | {crashes} |",
            case.name,
            total(&theirs) / 1e6,
            ours[0] / 1e6,
            ours[1] / 1e6
        );
        (row, judge.failures)
    });
    let columns =
        "| case | ns-2 | profile ns2 | ratio | default (not bounded) | seeds on which ns-2 crashed |";
    conclude("Lossy XCP, total goodput in Mbit/s, means over ten seeds", columns, judged);
}

/// ns-2 on seeds 1, 2, ... until ten runs have ended well: it divides by a window of zero when a
/// window below two is halved (docs/ns2.md, 4). With the number of crashes.
fn surviving(case: &Case) -> (Vec<Outcome>, u32) {
    let (mut outcomes, mut crashes) = (Vec::new(), 0);
    for seed in 1..=100 {
        match ns2(case, Peer::Xcp, seed) {
            Ok(outcome) => outcomes.push(outcome),
            Err(_) => crashes += 1,
        }
        if outcomes.len() == LOSSY_SEEDS {
            break;
        }
    }
    (outcomes, crashes)
}

/// Aggregate within 3 points, mean queue within 20 %, Jain's index within 0.1.
#[test]
fn sack_with_drops_agrees_with_ns2() {
    let Some(_guard) = ready("sack_with_drops_agrees_with_ns2") else { return };
    let judged = in_parallel(&cases(|all| all.tcp), |case| {
        let placed: Vec<Case> = (0..TCP_PLACINGS).map(|placing| case.expanded(placing)).collect();
        let run = |case: &Case| {
            ns2(case, Peer::Sack, 1).unwrap_or_else(|died| panic!("{}: ns-2: {died}", case.name))
        };
        let theirs: Vec<Outcome> = placed.iter().map(run).collect();
        let ours: Vec<Outcome> = placed.iter().map(|case| congestlab(case, Peer::Sack, 1)).collect();
        let mean = |outcomes: &[Outcome], of: &dyn Fn(&Outcome) -> f64| {
            outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
        };
        let both = |of: &dyn Fn(&Outcome) -> f64| (mean(&theirs, of), mean(&ours, of));
        let aggregate = both(&|outcome| outcome.total() / case.rate);
        let queue = both(&|outcome| outcome.queue);
        let jain = both(&Outcome::jain);
        let drops = both(&|outcome| outcome.drops as f64);

        let mut judge = Judge::new(case);
        judge.expect(theirs.iter().all(|outcome| outcome.drops > 0), "ns-2 drops nothing".to_string());
        let apart = |(theirs, ours): (f64, f64)| (ours - theirs).abs();
        judge.expect(apart(aggregate) <= 0.03, format!("aggregate of ns-2 and ours {aggregate:.4?}"));
        judge.expect(apart(queue) <= 0.2 * queue.0, format!("mean queue of ns-2 and ours {queue:.2?}"));
        judge.expect(apart(jain) <= 0.1, format!("Jain's index of ns-2 and ours {jain:.4?}"));
        let row = format!(
            "| {} | {:.4} | {:.4} | {:.2} | {:.2} | {:.3} | {:.3} | {:.0} | {:.0} |",
            case.name, aggregate.0, aggregate.1, queue.0, queue.1, jain.0, jain.1, drops.0, drops.1
        );
        (row, judge.failures)
    });
    let columns = "| case | goodput / rate ns-2 | ours | mean queue ns-2 | ours | Jain ns-2 | ours | drops ns-2 | ours |";
    conclude("TCP Sack1 over drop tail, means over five sets of access delays", columns, judged);
}

/// Waits for the turn of this table, or says why it is skipped.
fn ready(name: &str) -> Option<std::sync::MutexGuard<'static, ()>> {
    if let Some(reason) = missing() {
        eprintln!("SKIP {name}: {reason}");
        return None;
    }
    Some(ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}
