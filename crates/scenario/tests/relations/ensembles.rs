//! Changes that change nothing but chance: a nanosecond more of delay decides which packet is lost, and from there on all is
//! different. One flow alone is not so sensitive; of several flows the means over many such runs are compared.

use congestlab_scenario::laws::Protocol;
use congestlab_scenario::sim::outcome::Outcome;

use crate::draw::{self, Draw};
use crate::each;
use crate::net::{Net, Part, Value, plain};

/// Runs of an ensemble.
const RUNS: u64 = 8;

/// Adds so many nanoseconds to the delay of every link.
fn perturbed(net: &Net, ns: u64) -> Net {
    let mut copy = net.clone();
    for link in &mut copy.links {
        let delay = link.time("delay");
        link.set("delay", Value::Time(delay + ns));
    }
    copy
}

/// One of an ensemble: another seed, some nanoseconds more, and other phases of what begins with the run.
fn member(net: &Net, number: u64) -> Net {
    let mut copy = perturbed(net, 37 * number);
    copy.seed += 1000 * number;
    let later = number * (net.duration / 97);
    (copy.duration, copy.warmup) = (net.duration + later, net.warmup + later);
    copy.flows.iter_mut().for_each(|flow| begin_later(flow, later));
    copy
}

/// Moves the begin of a group.
fn begin_later(flow: &mut Part, later: u64) {
    let move_it = |value: &mut Value| {
        if let Value::Time(time) = value {
            *time += later;
        }
    };
    for (key, value) in &mut flow.keys {
        match value {
            Value::Table(start) if key == "start" => {
                start.iter_mut().filter(|(key, _)| key == "from").for_each(|(_, from)| move_it(from));
            }
            time if key == "start" => move_it(time),
            _ => {}
        }
    }
}

/// The scenario with the first group alone, one flow that goes on to the end.
fn alone(net: &mut Net) {
    net.flows.truncate(1);
    net.flows[0].set("count", plain(1));
    net.flows[0].set("start", Value::Time(0));
    for key in ["app", "size", "stop", "awnd"] {
        net.flows[0].remove(key);
    }
    net.warmup = net.duration / 4;
}

/// Returns the utilisation of the busiest link of the path.
fn first_use(outcome: &Outcome, net: &Net) -> f64 {
    let path = format!("{:?}", net.flows[0].get("path"));
    let on_path = net.links.iter().zip(outcome.links.iter().step_by(2));
    let used = on_path.filter(|(link, _)| path.contains(&link.name)).filter_map(|(_, link)| link.utilization);
    used.fold(0.0, f64::max)
}

/// Least bandwidth-delay product, in packets of 3000 B. In a smaller pipe a nanosecond can decide between two packets and three.
const PIPE: u64 = 8;

/// A measurement in which a time-out is little. A packet can be lost again when it is repeated, by a nanosecond; most laws then wait
/// for a timer of 200 ms or more. That comes about once in a measurement of any length, where a law that stays low does so to the end.
const LONG: u64 = 12_000_000_000;

/// Use of the link by one flow alone, with the default queue.
#[test]
fn a_nanosecond_more_changes_little_for_one_flow() {
    let mut compared = 0;
    each("nanoseconds", |draw: &mut Draw, mut net| {
        alone(&mut net);
        for link in &mut net.links {
            link.remove("queue");
            link.remove("discipline");
            link.remove("reverse");
            if let Some(Value::Table(_)) = link.get("rate") {
                link.set("rate", Value::Rate(draw.odd(21, 25)));
            }
        }
        let round_trip: u64 = net.links.iter().map(|link| 2 * link.time("delay")).min().unwrap_or(0);
        let slowest = net.links.iter().filter_map(|link| match link.get("rate") {
            Some(Value::Rate(rate)) => Some(*rate),
            _ => None,
        });
        if u128::from(round_trip) * u128::from(slowest.min().unwrap_or(0))
            < u128::from(PIPE) * 24_000 * 1_000_000_000
        {
            return;
        }
        compared += 1;
        let copy = perturbed(&net, draw.between(1, 500));
        let both = |nets: [&Net; 2]| nets.map(|net| first_use(&net.run(), net));
        let [mut one, mut other] = both([&net, &copy]);
        if (one - other).abs() > 0.05 {
            let longer = |net: &Net| Net { duration: LONG + net.warmup, ..net.clone() };
            [one, other] = both([&longer(&net), &longer(&copy)]);
        }
        assert!(
            (one - other).abs() <= 0.05,
            "use of the link {one}, then {other}\n{}\n{}",
            net.text(),
            copy.text()
        );
    });
    assert!(compared > 10, "{compared} flows alone");
}

/// Mean and standard error of what links carried and of what each group of flows got, over an ensemble of perturbations, as
/// parts of the largest rate.
struct Means(Vec<(f64, f64)>);

impl Means {
    fn of(net: &Net) -> Self {
        let runs: Vec<Vec<f64>> = (0..RUNS).map(|run| parts(&member(net, run).run())).collect();
        let count = runs.len() as f64;
        let of_value = |at: usize| {
            let mean = runs.iter().map(|run| run[at]).sum::<f64>() / count;
            let squares = runs.iter().map(|run| (run[at] - mean).powi(2)).sum::<f64>();
            (mean, (squares / (count - 1.0) / count).sqrt())
        };
        Self((0..runs[0].len()).map(of_value).collect())
    }

    /// Fails unless all means are as near as chance allows.
    fn require_close(&self, other: &Self, relation: &str, net: &Net, copy: &Net) {
        for (at, ((one, one_error), (other, other_error))) in self.0.iter().zip(&other.0).enumerate() {
            let most = 0.05 + 4.0 * one_error.hypot(*other_error);
            assert!(
                (one - other).abs() <= most,
                "{relation}: value {at} is {one} +- {one_error}, then {other} +- {other_error}\n{}\n{}",
                net.text(),
                copy.text()
            );
        }
    }
}

/// Part of its capacity that each link carried, and part of the most that all links could carry that each group got.
fn parts(outcome: &Outcome) -> Vec<f64> {
    let links = || outcome.links.iter();
    let most = links().filter_map(|link| link.capacity_bps).fold(1.0, f64::max);
    let groups = outcome.groups.iter();
    let got = groups.map(|group| group.iter().filter_map(|flow| flow.throughput_bps).sum::<f64>() / most);
    links().map(|link| link.utilization.unwrap_or(0.0)).chain(got).collect()
}

/// Names decide what is drawn: with others all is as good as before.
#[test]
fn other_names_are_alike_in_the_mean() {
    each("chances", |draw: &mut Draw, mut net| {
        if !draw.one_in(4) {
            return;
        }
        draw::trouble(draw, &mut net);
        settle(&mut net, draw);
        let mut copy = net.clone();
        copy.rename(|name| format!("other {name}"));
        copy.flows.iter_mut().for_each(|flow| flow.name = format!("other {}", flow.name));
        copy.seed += 1;
        Means::of(&net).require_close(&Means::of(&copy), "other names", &net, &copy);
    });
}

/// Leaves out what a mean of few runs says little about, and measures when all flows have settled.
fn settle(net: &mut Net, draw: &mut Draw) {
    net.duration *= 3;
    net.warmup = net.duration / 3;
    for flow in &mut net.flows {
        for key in ["size", "stop", "app"] {
            flow.remove(key);
        }
    }
    for link in &mut net.links {
        // Few long bad times.
        link.remove("error");
        link.remove("ack_blackout");
        if let Some(Value::Table(_)) = link.get("rate") {
            link.set("rate", Value::Rate(draw.odd(21, 25)));
        }
    }
}

/// Link laws whose intervals begin with the run, when all begins later.
#[test]
fn a_later_begin_is_alike_in_the_mean() {
    let mut compared = 0;
    each("later", |draw: &mut Draw, mut net| {
        let Some(Value::Plain(law)) = net.flows[0].get("law").cloned() else { return };
        let law = Protocol::of(law.trim_matches('"')).expect("a law");
        // SCONE's times are longer than the run, so the phase of the start decides.
        let has_link_law = law.link.is_some() || law.name.starts_with("xcp-r");
        if !has_link_law || law.name == "scone" || !draw.one_in(2) {
            return;
        }
        compared += 1;
        settle(&mut net, draw);
        let later = draw.odd(26, 30);
        let mut copy = Net { duration: net.duration + later, warmup: net.warmup + later, ..net.clone() };
        copy.flows.iter_mut().for_each(|flow| begin_later(flow, later));
        Means::of(&net).require_close(&Means::of(&copy), "a later begin", &net, &copy);
    });
    assert!(compared > 5, "{compared} scenarios with link laws");
}
