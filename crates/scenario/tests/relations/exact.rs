//! Changes that change nothing, or all results in the same way.

use congestlab_scenario::sim::outcome::{FlowOutcome, Outcome};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, laws::Protocol};

use crate::draw::{self, Draw};
use crate::each;
use crate::net::{Net, Part, Value, plain, read, run_text, table, word};

/// Results that can be compared even if the copy has more links, or other groups.
#[derive(Clone, Debug, PartialEq)]
struct Results {
    links: Vec<String>,
    flows: Vec<String>,
}

impl Results {
    fn of(outcome: &Outcome) -> Self {
        let flows = outcome.groups.iter().flat_map(|group| group.iter());
        Self {
            links: outcome.links.iter().map(|link| format!("{link:?}")).collect(),
            flows: flows.map(|flow| format!("{flow:?}")).collect(),
        }
    }

    /// Fails with both texts if they are not the same.
    fn require(&self, other: &Self, relation: &str, net: &Net, copy: &str) {
        let all = |results: &Self| results.links.iter().chain(&results.flows).cloned().collect::<Vec<_>>();
        if self == other {
            return;
        }
        let (all, other) = (all(self), all(other));
        let differs = all.iter().zip(&other).find(|(one, other)| one != other);
        panic!("{relation}: {differs:#?}\n# Scenario\n{}\n# Copy\n{copy}", net.text());
    }
}

/// The same run, bit for bit.
fn require_same(relation: &str, net: &Net, copy: &str) {
    let (one, other) = (net.run(), run_text(copy));
    Results::of(&one).require(&Results::of(&other), relation, net, copy);
    let hashes = [&one, &other].map(|run| (run.fingerprint, run.packet_hops, run.seed_used));
    assert_eq!(hashes[0], hashes[1], "{relation}: equal results, but\n{}\n{copy}", net.text());
}

#[test]
fn other_units_change_nothing() {
    each("units", |draw, mut net| {
        draw::trouble(draw, &mut net);
        let copy = net.text_in_other_units(draw);
        require_same("other units", &net, &copy);
    });
}

#[test]
fn defaults_that_are_written_change_nothing() {
    each("defaults", |draw, mut net| {
        draw::trouble(draw, &mut net);
        let copy = read(&net.text()).normalised();
        require_same("written defaults", &net, &copy);
    });
}

#[test]
fn threads_change_nothing() {
    each("threads", |draw, mut net| {
        draw::trouble(draw, &mut net);
        let model = read(&net.text()).model(&Measure::default());
        let run = |engine| sim::run(&model, engine, &false.into(), &mut |_| {});
        let one = run(Engine::Window { threads: 1, divisor: 1 });
        for threads in [2, 3] {
            let more = run(Engine::Window { threads, divisor: 1 });
            assert!(one == more, "{threads} threads\n{}", net.text());
        }
    });
}

/// Names decide what is drawn, and nothing else.
#[test]
fn other_names_change_nothing_where_nothing_is_drawn() {
    let mut compared = 0;
    each("names", |_, net| {
        let one = net.run();
        if one.seed_used {
            return;
        }
        compared += 1;
        let mut copy = net.clone();
        copy.rename(|name| format!("Ärmel {name}' kanal"));
        copy.flows.iter_mut().for_each(|flow| flow.name = flow.name.chars().rev().chain(['9']).collect());
        require_same("other names", &net, &copy.text());
    });
    assert!(compared > 20, "{compared} scenarios in which nothing is drawn");
}

/// A seed decides nothing where nothing is drawn.
#[test]
fn another_seed_changes_nothing_where_nothing_is_drawn() {
    each("seeds", |_, net| {
        let one = net.run();
        if !one.seed_used {
            let copy = Net { seed: net.seed + 1, ..net.clone() };
            require_same("another seed", &net, &copy.text());
        }
    });
}

/// A group of several flows is as many groups of one flow each.
#[test]
fn groups_that_are_split_are_the_same_flows() {
    let mut compared = 0;
    each("groups", |_, net| {
        let one = net.run();
        if one.seed_used {
            return;
        }
        let mut copy = Net { flows: Vec::new(), ..net.clone() };
        for group in &net.flows {
            let (count, starts) = count_and_starts(group);
            for (index, start) in (0..count).zip(starts) {
                let mut flow = Part { name: format!("{}-{index}", group.name), ..group.clone() };
                flow.remove("count");
                flow.set("start", Value::Time(start));
                copy.flows.push(flow);
            }
        }
        compared += usize::from(copy.flows.len() > net.flows.len());
        let other = copy.run();
        Results::of(&one).require(&Results::of(&other), "split groups", &net, &copy.text());
    });
    assert!(compared > 10, "{compared} scenarios with groups that were split");
}

/// The number of flows of a group, and when each begins.
fn count_and_starts(group: &Part) -> (u64, impl Iterator<Item = u64>) {
    let Some(Value::Plain(count)) = group.get("count") else { panic!("{group:?}") };
    let time = |key| match group.get("start") {
        Some(Value::Table(start)) => start.iter().find(|(known, _)| known == key).map(|(_, value)| value),
        _ => None,
    };
    let (Some(&Value::Time(every)), Some(&Value::Time(from))) = (time("every"), time("from")) else {
        panic!("{group:?}")
    };
    (count.parse().expect("a number"), (0..).map(move |index| from + index * every))
}

/// Another network that no packet reaches, with flows of its own or without, behind the first.
#[test]
fn networks_that_nothing_connects_do_not_disturb_each_other() {
    let laws = draw::senders();
    each("neighbours", |draw, mut net| {
        draw::trouble(draw, &mut net);
        let other = draw.of(&laws);
        let mut neighbour = draw::net(draw, other);
        let mut copy = net.clone();
        let is_idle = draw.one_in(2);
        neighbour.rename(|name| format!("other {name}"));
        copy.links.append(&mut neighbour.links);
        if !is_idle {
            for mut flow in neighbour.flows.drain(..) {
                flow.name = format!("other-{}", flow.name);
                // Its times are those of another run.
                flow.set("start", Value::Time(draw.below(net.duration)));
                flow.remove("stop");
                copy.flows.push(flow);
            }
        }
        let (one, other) = (Results::of(&net.run()), Results::of(&copy.run()));
        let first = Results {
            links: other.links[..one.links.len()].to_vec(),
            flows: other.flows[..one.flows.len()].to_vec(),
        };
        one.require(&first, "a neighbour", &net, &copy.text());
    });
}

/// The other direction of every link is as good as the first.
#[test]
fn a_network_in_the_other_direction_is_the_same() {
    let mut compared = 0;
    each("directions", |draw, mut net| {
        // A queue of a BDP depends on flows, which an idle link has not.
        for link in net.links.iter_mut().filter(|link| link.get("queue").is_none()) {
            link.set("queue", Value::Packets(draw.odd(3, 7)));
        }
        // A mirror takes over law and queue in one direction only, so both state theirs.
        for link in &mut net.links {
            let mut back = match link.get("reverse") {
                Some(Value::Table(back)) => back.clone(),
                _ => Vec::new(),
            };
            for (key, none) in [("law", "\"none\""), ("discipline", "\"droptail\"")] {
                let none = Value::Plain(none.to_owned());
                if !back.iter().any(|(known, _)| known == key) {
                    back.push((key.into(), none.clone()));
                }
                if link.get(key).is_none() {
                    link.set(key, none);
                }
            }
            link.set("reverse", Value::Table(back));
        }
        let one = net.run();
        if one.seed_used {
            return;
        }
        compared += 1;
        let mut copy = net.clone();
        for link in &mut copy.links {
            let back = link.get("reverse").cloned().unwrap_or(table([]));
            // Keys that a mirror takes over, written out on both sides.
            link.remove("reverse");
            let forward = std::mem::take(&mut link.keys);
            let Value::Table(mut back) = back else { continue };
            for key in ["rate", "delay", "queue", "packet_size"] {
                if let Some(own) = forward.iter().find(|(known, _)| known == key)
                    && !back.iter().any(|(known, _)| known == key)
                {
                    back.push(own.clone());
                }
            }
            link.keys = back;
            link.set("reverse", Value::Table(forward));
        }
        for flow in &mut copy.flows {
            flow.keys.iter_mut().filter(|(key, _)| key == "path").for_each(|(_, path)| path.each(&mut turn));
        }
        let mut other = copy.run();
        other.links.chunks_mut(2).for_each(|pair| pair.swap(0, 1));
        Results::of(&one).require(&Results::of(&other), "the other direction", &net, &copy.text());
    });
    assert!(compared > 4, "{compared} networks were turned round");
}

/// A link of a path, in the other direction.
fn turn(link: &mut Value) {
    let Value::Plain(name) = link else { return };
    let bare = name.trim_matches('"');
    *name = match bare.strip_suffix(".reverse") {
        Some(forward) => format!("{forward:?}"),
        None => format!("\"{bare}.reverse\""),
    };
}

/// All begins later: so do all results. Ensembles try laws that act at fixed times of the run.
///
/// Flows of a group have equal hops of their own. Their packets can reach a link at one instant, and a draw from that
/// instant orders them (`Network::turn`). The relation holds without such meetings alone, so a group with hops of its own
/// has one flow here.
#[test]
fn a_later_begin_changes_only_times() {
    let mut compared = 0;
    each("begins", |draw, mut net| {
        // Intervals of link laws and of some disciplines begin with the run.
        let law = Protocol::of(first_law(&net)).expect("a law");
        if law.link.is_some()
            || law.name.starts_with("xcp-r")
            || net.flows.iter().any(|flow| flow.get("app").is_some())
        {
            return;
        }
        let acts_by_itself =
            |link: &Part| format!("{link:?}").contains("pi") || format!("{link:?}").contains("codel");
        if net.links.iter().any(acts_by_itself) {
            return;
        }
        for flow in &mut net.flows {
            if flow.get("access").or(flow.get("exit")).is_some() {
                flow.set("count", plain(1));
            }
        }
        net.links.iter_mut().for_each(|link| {
            if let Some(Value::Table(_)) = link.get("rate") {
                link.set("rate", Value::Rate(draw.odd(21, 24)));
            }
        });
        let one = net.run();
        if one.seed_used {
            return;
        }
        compared += 1;
        let later = draw.odd(28, 34);
        let mut copy =
            Net { duration: net.duration + later, warmup: net.warmup.max(1) + later, ..net.clone() };
        for flow in &mut copy.flows {
            if let Some(Value::Table(mut start)) = flow.get("start").cloned() {
                start.iter_mut().filter(|(key, _)| key == "from").for_each(|(_, from)| {
                    if let Value::Time(from) = from {
                        *from += later;
                    }
                });
                flow.set("start", Value::Table(start));
            }
            if let Some(&Value::Time(stop)) = flow.get("stop") {
                flow.set("stop", Value::Time(stop + later));
            }
        }
        let net = Net { warmup: net.warmup.max(1), ..net };
        let (one, mut other) = (net.run(), copy.run());
        let text = copy.text();
        let back = |time: &mut f64| *time -= later as f64 / 1e9;
        for (one, other) in one.groups.iter().zip(&mut other.groups) {
            for (one, other) in one.iter().zip(other.iter_mut()) {
                back(&mut other.start_s);
                other.stop_s.iter_mut().for_each(back);
                require_close(one, other, "a later begin", &net, &text);
            }
        }
        for (one, other) in one.links.iter().zip(&other.links) {
            let counts = |link: &congestlab_scenario::sim::outcome::LinkOutcome| {
                (
                    link.sent_packets_total,
                    link.drops_total,
                    link.marks_total,
                    link.queue_max_packets_total,
                    link.sent_packets,
                )
            };
            assert_eq!(counts(one), counts(other), "a later begin\n{}\n{text}", net.text());
        }
    });
    assert!(compared > 10, "{compared} scenarios began later");
}

fn first_law(net: &Net) -> &str {
    match net.flows[0].get("law") {
        Some(Value::Plain(name)) => name.trim_matches('"'),
        _ => "",
    }
}

/// Equal counts, and times and rates that differ by no more than their last digits.
fn require_close(one: &FlowOutcome, other: &FlowOutcome, relation: &str, net: &Net, copy: &str) {
    let [one_json, other_json] = [one, other].map(|flow| serde_json::to_value(flow).expect("a record"));
    let (Some(one), Some(other)) = (one_json.as_object(), other_json.as_object()) else { panic!("records") };
    for (key, value) in one {
        let is_close = match (value.as_f64(), other[key].as_f64()) {
            (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(1.0),
            _ => value == &other[key],
        };
        assert!(is_close, "{relation}: {key} is {value}, then {}\n{}\n{copy}", other[key], net.text());
    }
}

/// The measured time and the rest of a run change nothing of the events before.
#[test]
fn what_is_measured_changes_no_total() {
    each("warm-ups", |draw, mut net| {
        draw::trouble(draw, &mut net);
        let copy = Net { warmup: draw.below(net.duration), ..net.clone() };
        let (one, other) = (net.run(), copy.run_with_series());
        assert_eq!(one.fingerprint, other.fingerprint, "another warm-up\n{}\n{}", net.text(), copy.text());
        for (one, other) in one.links.iter().zip(&other.links) {
            let totals = |link: &congestlab_scenario::sim::outcome::LinkOutcome| {
                (
                    link.sent_packets_total,
                    link.arrived_packets_total,
                    link.drops_by_reason_total.clone(),
                    link.errors_total,
                    link.marks_total,
                    link.queue_max_packets_total,
                    link.queue_end_packets,
                    link.in_flight_end,
                )
            };
            assert_eq!(totals(one), totals(other), "another warm-up\n{}\n{}", net.text(), copy.text());
        }
    });
}

/// A longer run begins as a shorter one: nothing knows the end before it comes.
#[test]
fn a_longer_run_begins_as_a_shorter_one() {
    each("durations", |draw, mut net| {
        draw::trouble(draw, &mut net);
        // A distribution of starts over a part of the run, and a warm-up, are the same times.
        let copy = Net { duration: net.duration + net.every * draw.between(1, 5), ..net.clone() };
        let (one, other) = (net.run_with_series(), copy.run_with_series());
        let until = net.duration / net.every * net.every * 1000;
        let early = |outcome: &Outcome| -> Vec<_> {
            outcome.series.iter().filter(|sample| sample.at <= until).copied().collect()
        };
        let (one, other) = (early(&one), early(&other));
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(
            one == other,
            "{} and {} samples, {differs:?}\n{}\n{}",
            one.len(),
            other.len(),
            net.text(),
            copy.text()
        );
    });
}

/// Limits far above what a run came to bind nothing.
#[test]
fn limits_that_never_bind_change_nothing() {
    let mut raised = 0;
    each("limits", |draw, mut net| {
        draw::trouble(draw, &mut net);
        let one = net.run();
        let mut copy = net.clone();
        for (index, link) in copy.links.iter_mut().enumerate() {
            let forward = &one.links[2 * index];
            // Others take their own settings, or those of their queues, from the limit.
            let has_settings = link.get("discipline").is_some();
            let Some(&Value::Packets(packets)) = link.get("queue").filter(|_| !has_settings) else {
                continue;
            };
            if forward.queue_max_packets_total < packets && forward.drops_total == 0 {
                raised += 1;
                // The mirror has a limit of its own.
                match link.get("reverse").cloned() {
                    Some(Value::Table(mut back)) => {
                        if !back.iter().any(|(key, _)| key == "queue") {
                            back.push(("queue".to_owned(), Value::Packets(packets)));
                        }
                        link.set("reverse", Value::Table(back));
                    }
                    _ => link.set("reverse", table([("queue", Value::Packets(packets))])),
                }
                link.set("queue", Value::Packets(packets + draw.between(1, 1000)));
            }
        }
        for flow in copy.flows.iter_mut().filter(|flow| flow.name != "datagrams") {
            if flow.get("stop").is_none() && flow.get("size").is_none() && flow.get("app").is_none() {
                flow.set("size", Value::Bytes(1 << 40));
            }
            // TCP-Peach begins with what the receiver advertises.
            if flow.get("awnd").is_none() && !format!("{flow:?}").contains("peach") {
                flow.set("awnd", Value::Packets(9_999_991));
            }
        }
        for link in &mut copy.links {
            for (key, never) in [
                ("error", table([("packet_error_rate", plain(0))])),
                ("ack_loss", plain(0)),
                ("reorder", table([("probability", plain(0)), ("delay", Value::Time(777))])),
            ] {
                if link.get(key).is_none() {
                    link.set(key, never);
                }
            }
        }
        let mut other = copy.run();
        // A flow with an end has a size. What a path holds bounds windows, and a queue limit is a part of that: the law of a flow
        // that does not use its window may reach the bound of one of the two, and nothing else of the flow may differ.
        for (other, one) in other.groups.iter_mut().zip(&one.groups) {
            let of_one = other.iter().zip(one.iter());
            let of_one = of_one.map(|(other, one)| FlowOutcome {
                size_bytes: one.size_bytes,
                cwnd_mean_packets: one.cwnd_mean_packets,
                cwnd_max_packets: one.cwnd_max_packets,
                cwnd_max_packets_total: one.cwnd_max_packets_total,
                ..other.clone()
            });
            *other = of_one.collect();
        }
        Results::of(&one).require(&Results::of(&other), "limits that never bind", &net, &copy.text());
    });
    assert!(raised > 5, "{raised} limits were raised");
}

/// Twice as large packets, queues and rates: the same events at the same times, for laws that count packets. CUBIC and BIC round
/// their windows to bytes, so a packet may leave an ACK earlier or later: the same events, at nearly the same times.
#[test]
fn packets_of_twice_the_size_on_links_of_twice_the_rate_are_the_same() {
    const COUNT_PACKETS: [&str; 7] = ["reno", "newreno", "sack", "cubic", "bic", "highspeed", "fack"];
    let mut compared = 0;
    each("sizes", |draw: &mut Draw, mut net| {
        let law = *draw.of(&COUNT_PACKETS.each_ref());
        net.flows.truncate(1);
        net.flows[0].set("law", word(law));
        net.flows[0].set("initial_window", plain(3));
        net.flows[0].set("segment", Value::Bytes(draw.between(400, 3000)));
        net.flows[0].set("ack", Value::Bytes(40));
        for key in ["profile", "recovery"] {
            net.flows[0].remove(key);
        }
        for link in &mut net.links {
            for key in ["law", "feedback_at"] {
                link.remove(key);
            }
            link.set("discipline", word("droptail"));
            link.set("packet_size", Value::Bytes(1500));
            link.set("reverse", table([]));
        }
        let one = net.run();
        let mut copy = net.clone();
        copy.each(|value| match value {
            Value::Rate(quantity) | Value::Bytes(quantity) => *quantity *= 2,
            _ => {}
        });
        compared += 1;
        let other = copy.run();
        let counts = |outcome: &Outcome| {
            let flows = outcome.groups.iter().flat_map(|group| group.iter());
            let flow = |flow: &FlowOutcome| {
                (
                    flow.sent_packets_total,
                    flow.received_packets_total,
                    flow.timeouts_total,
                    flow.window_cuts_total,
                )
            };
            (
                flows.map(flow).collect::<Vec<_>>(),
                outcome.links.iter().map(|link| link.drops_total).collect::<Vec<_>>(),
            )
        };
        assert_eq!(counts(&one), counts(&other), "twice the size\n{}\n{}", net.text(), copy.text());
        let times = |outcome: &Outcome| {
            let flows = outcome.groups.iter().flat_map(|group| group.iter());
            flows.flat_map(|flow| [flow.rtt_mean_ms, flow.completion_s]).collect::<Vec<_>>()
        };
        let most = if ["cubic", "bic"].contains(&law) { 1e-3 } else { 0.0 };
        for pair in times(&one).into_iter().zip(times(&other)) {
            let is_near = match pair {
                (Some(one), Some(other)) => (one - other).abs() <= most * one,
                (one, other) => one == other,
            };
            assert!(is_near, "twice the size: {pair:?}\n{}\n{}", net.text(), copy.text());
        }
    });
    assert!(compared > 10, "{compared} scenarios were scaled");
}
