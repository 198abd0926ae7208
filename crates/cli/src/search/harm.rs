//! How much harm a law does in a case, in five respects, each from 0 to 1.

use congestlab_scenario::fairness::jain;
use congestlab_scenario::sim::model::Model;
use congestlab_scenario::sim::outcome::{LinkOutcome, Outcome};

use super::case::Case;

/// A respect in which a law harms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Greedy flows find no link on their path full.
    Utilisation,
    /// Packets wait.
    Queue,
    /// Packets are dropped.
    Loss,
    /// Flows have different parts of their max-min shares.
    Unfairness,
    /// A flow has little of its max-min share.
    Starvation,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Utilisation, Self::Queue, Self::Loss, Self::Unfairness, Self::Starvation];

    /// Returns the name in files and in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utilisation => "utilisation",
            Self::Queue => "queue",
            Self::Loss => "loss",
            Self::Unfairness => "unfairness",
            Self::Starvation => "starvation",
        }
    }

    /// Returns what the number from 0 to 1 is.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Utilisation => "part of the fullest link of a greedy flow's path that is not used",
            Self::Queue => {
                "99th percentile of the time in a queue, over itself and the longest round trip of an empty path"
            }
            Self::Loss => "part of the packets at a link that it drops",
            Self::Unfairness => "one less Jain's index of what greedy flows have of their max-min shares",
            Self::Starvation => "part of its max-min share that the greedy flow with the least lacks",
        }
    }

    /// Returns what is harm, and no more what every law does: chosen so that plain XCP on a link with twenty flows of one round
    /// trip does none.
    pub(super) fn threshold(self) -> f64 {
        match self {
            Self::Utilisation => 0.2,
            Self::Queue => 0.4,
            Self::Loss => 0.02,
            Self::Unfairness => 0.2,
            Self::Starvation => 0.5,
        }
    }
}

/// A harm with the metric of the run that shows it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Harm {
    /// From 0 to 1.
    pub(super) amount: f64,
    /// Path of the metric in the results.
    pub(super) metric: String,
    pub(super) value: f64,
    /// Unit of the value; empty: a number.
    pub(super) unit: &'static str,
    /// True if the harm is that the value is large.
    pub(super) is_large: bool,
}

/// Harms of a run, in the order of [`Kind::ALL`].
pub(super) type Harms = [Harm; 5];

/// Measures the harms of a run of a case.
pub(super) fn harms(case: &Case, model: &Model, outcome: &Outcome) -> Harms {
    let link = |place: usize| {
        let name = Case::link_name(place);
        let found = model.links.iter().position(|link| link.name == name);
        found.and_then(|found| outcome.links.get(found))
    };
    let (_, count) = case.sizes();
    let links: Vec<&LinkOutcome> = (0..count).filter_map(link).collect();
    let shares = shares(case, &links);

    let mut utilisation = Harm { amount: 0.0, metric: String::new(), value: 1.0, unit: "", is_large: false };
    let mut starvation = Harm { unit: "bit/s", ..utilisation.clone() };
    let mut parts = Vec::new();
    for (place, group) in case.groups.iter().enumerate().filter(|(_, group)| group.is_judged()) {
        let used = |&place: &usize| links.get(place).and_then(|link| link.utilization).unwrap_or(1.0);
        let fullest = (group.first..=group.last).max_by(|a, b| used(a).total_cmp(&used(b)));
        if let Some(fullest) = fullest.filter(|fullest| 1.0 - used(fullest) > utilisation.amount) {
            (utilisation.amount, utilisation.value) = (1.0 - used(&fullest), used(&fullest));
            utilisation.metric = format!("links.{}.utilization", Case::link_name(fullest));
        }
        for (number, flow) in outcome.groups[place].iter().enumerate() {
            let goodput = flow.goodput_bps.unwrap_or(0.0);
            let part = if shares[place] > 0.0 { goodput / shares[place] } else { 1.0 };
            parts.push(part);
            if starvation.metric.is_empty() || 1.0 - part > starvation.amount {
                starvation.amount = (1.0 - part).max(0.0);
                starvation.value = goodput;
                starvation.metric = format!("flows.{}[{number}].goodput_bps", case.group_name(place));
            }
        }
    }
    // Nobody has anything: that is starvation, and even.
    let unfairness = Harm { amount: 1.0 - jain(&parts).unwrap_or(1.0), ..starvation.clone() };

    let mut queue = Harm { unit: "ms", is_large: true, ..utilisation.clone() };
    (queue.amount, queue.value, queue.metric) = (0.0, 0.0, String::new());
    let mut loss = Harm { unit: "packets", ..queue.clone() };
    let longest = case.groups.iter().map(|group| case.round_trip(group)).max().unwrap_or(0) as f64 / 1e3;
    for (place, link) in links.iter().enumerate() {
        let wait = link.queue_delay_p99_ms.unwrap_or(0.0);
        if wait > queue.value {
            queue.value = wait;
            queue.amount = wait / (wait + longest);
            queue.metric = format!("links.{}.queue_delay_p99_ms", Case::link_name(place));
        }
        let dropped = link.drops_total as f64 / (link.arrived_packets_total.max(1)) as f64;
        if dropped > loss.amount {
            loss.value = link.drops_total as f64;
            loss.amount = dropped;
            loss.metric = format!("links.{}.drops_total", Case::link_name(place));
        }
    }
    [utilisation, queue, loss, unfairness, starvation]
}

/// The max-min share of a flow of each group, bit/s. Flows that pause count as if they did not, so that nobody's share is
/// overestimated; datagrams come first, since they do not listen.
fn shares(case: &Case, links: &[&LinkOutcome]) -> Vec<f64> {
    let on = |place: usize| move |group: &&super::case::Group| (group.first..=group.last).contains(&place);
    let mut left: Vec<f64> = links
        .iter()
        .enumerate()
        .map(|(place, link)| {
            let taken: f64 = case.groups.iter().filter(on(place)).map(|group| case.datagrams(group)).sum();
            (link.capacity_bps.unwrap_or(0.0) - taken).max(0.0)
        })
        .collect();
    let mut shares = vec![0.0; case.groups.len()];
    let mut open: Vec<usize> =
        (0..case.groups.len()).filter(|&place| case.groups[place].takes_a_share()).collect();
    while !open.is_empty() {
        let crowd = |link: usize| -> f64 {
            let groups = open.iter().map(|&group| &case.groups[group]);
            groups.filter(on(link)).map(|group| group.count as f64).sum()
        };
        let tightest = (0..left.len())
            .filter(|&link| crowd(link) > 0.0)
            .min_by(|&a, &b| (left[a] / crowd(a)).total_cmp(&(left[b] / crowd(b))));
        let Some(tightest) = tightest else { break };
        let share = left[tightest] / crowd(tightest);
        let (done, rest) =
            open.iter().partition::<Vec<usize>, _>(|&&group| on(tightest)(&&case.groups[group]));
        for &group in &done {
            shares[group] = share;
            let of_it = &case.groups[group];
            for left in &mut left[of_it.first..=of_it.last] {
                *left = (*left - share * of_it.count as f64).max(0.0);
            }
        }
        open = rest;
    }
    shares
}
