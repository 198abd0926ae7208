//! Scenarios drawn at random: every law of the lists, with values that are multiples of nothing.
//!
//! Round values hide faults: with tens of Mbit/s and tens of milliseconds events fall on whole nanoseconds, and queues hide
//! the rest.

use congestlab_scenario::laws::Protocol;
use congestlab_scenario::net::queue::Discipline;
use congestlab_scenario::net::random::Stream;

use crate::net::{Net, Part, Value, plain, table, word};

/// Packets that the first link carries in a run, about.
const PACKETS: u64 = 3000;
pub(crate) const MS: u64 = 1_000_000;
/// Laws whose flows need nothing of links.
pub(crate) const TCP: [&str; 9] =
    ["reno", "newreno", "sack", "cubic", "bic", "highspeed", "vegas", "bbr", "bbr3"];

/// A source of draws.
pub(crate) struct Draw(Stream);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Stream::named(seed, "relations"))
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A number of any size from `2^low` to below `2^high`, and hardly ever a round one.
    pub(crate) fn odd(&mut self, low: u32, high: u32) -> u64 {
        let power = 1 << self.between(low.into(), u64::from(high) - 1);
        power + self.below(power)
    }

    /// Between half of a number and three halves.
    pub(crate) fn about(&mut self, value: u64) -> u64 {
        value.div_ceil(2) + self.below(value.max(1))
    }
}

/// Names of all sender laws.
pub(crate) fn senders() -> Vec<&'static str> {
    Protocol::all().filter(|protocol| protocol.sender.is_some()).map(|protocol| protocol.name).collect()
}

/// The link law that answers to a sender law.
fn link_law(sender: &str) -> Option<&'static str> {
    match sender {
        "xcp-r" | "xcp-r-v0" => Some("xcp"),
        _ => Protocol::all().find(|it| it.name == sender && it.link.is_some()).map(|it| it.name),
    }
}

/// Draws a scenario with flows of this law in the first group, in which nothing but laws draws at random.
pub(crate) fn net(draw: &mut Draw, law: &'static str) -> Net {
    let rate = draw.odd(19, 26);
    let duration = PACKETS * 12_000 * 1000 / (rate / 1_000_000).max(1);
    let round_trip = draw.odd(20, (duration / 16).ilog2().clamp(21, 29));
    let count = draw.between(1, 3);
    let mut links = Vec::new();
    for index in 0..count {
        let mut link = Part { name: format!("l{index}"), keys: Vec::new() };
        let own = if index == 0 { rate } else { rate + draw.about(2 * rate) };
        link.set("rate", rate_of(draw, own, duration));
        link.set("delay", Value::Time(draw.about(round_trip / 2 / count)));
        shape(draw, &mut link, link_law(law));
        if draw.one_in(3) {
            let mut back = Part { name: String::new(), keys: Vec::new() };
            if draw.one_in(2) {
                back.set("rate", Value::Rate(draw.about(rate)));
            }
            if draw.one_in(2) {
                back.set("delay", Value::Time(draw.about(round_trip / 2 / count)));
            }
            shape(draw, &mut back, None);
            link.set("reverse", Value::Table(back.keys));
        }
        links.push(link);
    }
    let mut flows = vec![group(draw, "f", law, duration, count)];
    if draw.one_in(2) {
        let other = if draw.one_in(3) { law } else { draw.of(&TCP) };
        flows.push(group(draw, "g", other, duration, count));
    }
    if draw.one_in(5) {
        flows.push(datagrams(draw, rate, duration, count));
    }
    Net {
        duration,
        warmup: if draw.one_in(2) { 0 } else { draw.about(duration / 5) },
        every: duration / draw.between(7, 23),
        seed: draw.below(1000),
        links,
        flows,
    }
}

fn rate_of(draw: &mut Draw, rate: u64, duration: u64) -> Value {
    if draw.one_in(6) {
        let step = |at, rate| Value::List(vec![Value::Time(at), Value::Rate(rate)]);
        let steps = vec![step(0, rate), step(draw.about(duration / 3), draw.about(rate))];
        return table([("steps", Value::List(steps))]);
    }
    Value::Rate(rate)
}

/// Queue, discipline and law of a direction.
pub(crate) fn shape(draw: &mut Draw, link: &mut Part, law: Option<&str>) {
    match draw.below(4) {
        0 => link.set("queue", Value::Bytes(draw.odd(13, 18))),
        1 | 2 => link.set("queue", Value::Packets(draw.odd(2, 8))),
        _ => {}
    }
    if let Some(law) = law {
        link.set("law", word(law));
        if draw.one_in(6) {
            link.set("feedback_at", word("enqueue"));
        }
    }
    if draw.one_in(2) {
        let of_xcp = matches!(law, Some("xcp" | "pxcp"));
        let names: Vec<&str> =
            Discipline::NAMES.iter().copied().filter(|&name| name != "xcp-tcp" || of_xcp).collect();
        let name = draw.of(&names);
        link.set("discipline", discipline(draw, name));
    }
}

/// A discipline by its name; those that have no defaults get settings.
fn discipline(draw: &mut Draw, name: &str) -> Value {
    match name {
        "red" => {
            let min = draw.odd(1, 5);
            let (min, max) = (Value::Packets(min), Value::Packets(min + draw.odd(1, 5)));
            table([("red", table([("min", min), ("max", max), ("ecn", plain(draw.one_in(2)))]))])
        }
        "step" if draw.one_in(2) => table([("step", table([("sojourn", Value::Time(draw.odd(19, 25)))]))]),
        "step" => table([("step", table([("above", Value::Packets(draw.odd(1, 3)))]))]),
        "xcp-tcp" => {
            let dynamic = plain(draw.one_in(2));
            table([("xcp-tcp", table([("dynamic", dynamic)]))])
        }
        name => word(name),
    }
}

/// Part of the chain; for a law that links answer to, forward.
fn path(draw: &mut Draw, count: u64, is_forward: bool) -> Value {
    let first = draw.below(count);
    let last = draw.between(first, count - 1);
    if is_forward || !draw.one_in(3) {
        return Value::List((first..=last).map(|index| word(&format!("l{index}"))).collect());
    }
    Value::List((first..=last).rev().map(|index| word(&format!("l{index}.reverse"))).collect())
}

/// A group of connections.
pub(crate) fn group(draw: &mut Draw, name: &str, law: &'static str, duration: u64, links: u64) -> Part {
    let needs = Protocol::of(law).and_then(|law| law.sender.as_ref()).expect("a sender law").needs();
    let mut flow = Part { name: name.to_owned(), keys: Vec::new() };
    let count = draw.between(1, 4);
    flow.set("law", word(law));
    flow.set("count", plain(count));
    flow.set("path", path(draw, links, link_law(law).is_some()));
    flow.set("start", starts(draw, duration));
    if draw.one_in(2) {
        flow.set("segment", Value::Bytes(draw.between(400, 3000)));
    }
    for key in ["access", "exit"] {
        if draw.one_in(3) {
            let (rate, delay) = (Value::Rate(draw.odd(23, 30)), Value::Time(draw.odd(14, 22)));
            flow.set(key, table([("rate", rate), ("delay", delay)]));
        }
    }
    if draw.one_in(4) && !needs.each_acknowledged {
        flow.set("delayed_ack", plain(true));
    }
    if draw.one_in(3) && !needs.owns_ecn {
        flow.set("ecn", plain(true));
    }
    if draw.one_in(4) {
        flow.set("min_rto", Value::Time(draw.odd(26, 30)));
    }
    let names_recovery = ["reno", "newreno", "fack"].contains(&law);
    if draw.one_in(3) && needs.slow_start.is_some() && !names_recovery {
        flow.set("profile", word("linux"));
    } else if draw.one_in(4) && !names_recovery && law != "sack" {
        flow.set("recovery", word(draw.of(&["sack", "fack", "newreno", "reno"])));
    }
    if draw.one_in(6) {
        flow.set("awnd", Value::Packets(draw.odd(2, 8)));
    }
    if draw.one_in(6) {
        flow.set("initial_window", plain(draw.between(1, 12)));
    }
    match draw.below(8) {
        0 => flow.set("size", Value::Bytes(draw.odd(10, 20))),
        1 => flow.set("stop", Value::Time(duration / 2 + draw.below(duration / 3))),
        2 => {
            let (size, pause) = (Value::Bytes(draw.odd(11, 17)), Value::Time(draw.odd(22, 28)));
            flow.set("app", table([("bursts", table([("size", size), ("pause", pause)]))]));
        }
        _ => {}
    }
    flow
}

/// One after the other from a time on, all before a fifth of the run.
fn starts(draw: &mut Draw, duration: u64) -> Value {
    let (from, every) = (draw.about(duration / 20), draw.about(duration / 40));
    table([("every", Value::Time(every)), ("from", Value::Time(from))])
}

/// Returns a group of senders without acknowledgments.
fn datagrams(draw: &mut Draw, rate: u64, duration: u64, links: u64) -> Part {
    let mut flow = Part { name: "datagrams".to_owned(), keys: Vec::new() };
    let rate = ("rate", Value::Rate(draw.about(rate / 4)));
    flow.set(
        "law",
        if draw.one_in(2) {
            table([("cbr", table([rate]))])
        } else {
            let (on, off) = (Value::Time(draw.about(duration / 30)), Value::Time(draw.about(duration / 20)));
            table([("onoff", table([rate, ("on", on), ("off", off)]))])
        },
    );
    flow.set("count", plain(draw.between(1, 2)));
    flow.set("path", path(draw, links, false));
    flow.set("start", starts(draw, duration));
    flow.set("segment", Value::Bytes(draw.between(60, 1500)));
    flow
}

/// Adds accidents that are drawn at random.
pub(crate) fn trouble(draw: &mut Draw, net: &mut Net) {
    for link in &mut net.links {
        match draw.below(6) {
            0 => link.set("error", table([("packet_error_rate", plain(0.00371))])),
            1 => link.set("error", table([("bit_error_rate", plain("2.3e-7"))])),
            2 => {
                let (good, bad) = (Value::Time(draw.odd(25, 30)), Value::Time(draw.odd(20, 25)));
                let keys = [("good", good), ("bad", bad), ("packet_error_rate", plain(0.37))];
                link.set("error", table([("gilbert_elliott", table(keys))]));
            }
            _ => {}
        }
        if draw.one_in(6) {
            link.set("ack_loss", plain(0.0713));
        }
        if draw.one_in(6) {
            let delay = Value::Time(draw.odd(15, 23));
            link.set("reorder", table([("probability", plain(0.0119)), ("delay", delay)]));
        }
        if draw.one_in(6) {
            let (at, span) = (draw.about(net.duration / 2), draw.about(20 * MS).min(net.duration / 8));
            let blackout = table([("at", Value::Time(at)), ("for", Value::Time(span))]);
            link.set("ack_blackout", Value::List(vec![blackout]));
        }
    }
    for flow in net.flows.iter_mut().filter(|_| draw.one_in(4)) {
        flow.set("start", table([("uniform", Value::Time(net.duration / 7))]));
    }
}
