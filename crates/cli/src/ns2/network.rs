//! The models that ns-2 can run, and how it is told about them.
//!
//! A model falls into parts that share no link. A part is run or refused as a whole; a part that ns-2 would
//! run as something else is refused, with the reason. Numbers in remarks are the entries of docs/ns2.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use congestlab_scenario::laws::xcp::{self, Feedback, LossPolicy, Profile, RateSource, RequestPolicy};
use congestlab_scenario::laws::{LinkConfig, SenderConfig, bic, vegas};
use congestlab_scenario::net::errors::ErrorRate;
use congestlab_scenario::net::port::{FeedbackAt, PortConfig};
use congestlab_scenario::net::queue::red::Thresholds;
use congestlab_scenario::net::queue::{Discipline, Limit};
use congestlab_scenario::net::random::Probability;
use congestlab_scenario::net::service::Service;
use congestlab_scenario::net::source::Pattern;
use congestlab_scenario::net::tcp::{self, Advertise, App, Recovery, Wait};
use congestlab_scenario::sim::model::{Device, Group, GroupKind, Model, Pipe};
use congestlab_scenario::sim::{measure_of, segments_of, starts_of};
use congestlab_scenario::units::{Duration, Ratio, Time};

/// ns-2 has no unlimited window.
const WINDOW: u32 = 1_000_000;
/// Size of a SYN and of an ACK, as they come.
pub(super) const ACK: u16 = 40;

/// Links and groups that share nothing with any other.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Indices into the model.
    pub(super) links: Vec<usize>,
    /// Indices into the model.
    pub(super) groups: Vec<usize>,
    /// Why ns-2 can not run it.
    pub(super) refusal: Option<String>,
}

/// The parts of a model, in the order of their first links.
pub(super) fn parts(model: &Model) -> Vec<Part> {
    let mut of = Joined::new(model.links.len());
    let used = |group: &Group| -> Vec<usize> {
        let all = group.paths().flat_map(|(path, back)| path.iter().chain(back));
        all.map(|&link| link as usize).collect()
    };
    for links in model.groups.iter().map(used) {
        links.windows(2).for_each(|pair| of.join(pair[0], pair[1]));
    }
    for device in &model.devices {
        device.links.windows(2).for_each(|pair| of.join(pair[0] as usize, pair[1] as usize));
    }
    let mut parts: BTreeMap<usize, Part> = BTreeMap::new();
    for link in 0..model.links.len() {
        parts.entry(of.root(link)).or_default().links.push(link);
    }
    for (index, group) in model.groups.iter().enumerate() {
        if let Some(&link) = used(group).first() {
            parts.entry(of.root(link)).or_default().groups.push(index);
        }
    }
    let mut parts: Vec<Part> = parts.into_values().collect();
    for part in &mut parts {
        part.refusal = refusal(model, part);
    }
    parts
}

/// Sets that are joined; the root is the least.
struct Joined(Vec<usize>);

impl Joined {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn root(&self, mut one: usize) -> usize {
        while self.0[one] != one {
            one = self.0[one];
        }
        one
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
    }
}

/// Why ns-2 can not run the part.
fn refusal(model: &Model, part: &Part) -> Option<String> {
    if part.groups.is_empty() {
        return Some("no flow crosses it".into());
    }
    for &link in &part.links {
        let link = &model.links[link];
        if let Some(why) = link_refusal(&link.port) {
            return Some(format!("`{}` has {why}", link.name));
        }
    }
    let owns = |device: &&Device| device.links.iter().any(|&link| part.links.contains(&(link as usize)));
    if let Some(device) = model.devices.iter().find(owns) {
        return Some(if device.router().is_some() {
            "it has no XCP-i".into()
        } else {
            "it has no link whose directions share a medium".to_owned()
        });
    }
    for &index in &part.groups {
        let group = &model.groups[index];
        if let Some(why) = group_refusal(model, group) {
            return Some(format!("`{}` {why}", group.name));
        }
    }
    for &link in &part.links {
        let port = &model.links[link].port;
        let carries_data = part.groups.iter().any(|&group| model.groups[group].path.contains(&(link as u32)));
        if port.ack_loss == Probability::ZERO {
            continue;
        }
        if carries_data || port.errors.is_some() {
            return Some(format!("`{}` loses ACKs alone", model.links[link].name));
        }
        if all_answered(model, part, link).is_none() {
            return Some(format!(
                "`{}` loses the answers to SYNs, too, which are on their way all the time",
                model.links[link].name
            ));
        }
    }
    Nodes::new(model, part).err()
}

/// As a clause after "has".
fn link_refusal(port: &PortConfig) -> Option<&'static str> {
    if matches!(port.service, Service::Trace(_)) {
        return Some("a recorded trace");
    }
    if matches!(port.errors, Some(ErrorRate::GilbertElliott(_))) {
        return Some("errors in bursts");
    }
    if !port.ack_blackout.is_empty() {
        return Some("times without ACKs");
    }
    if port.police.is_some() {
        return Some("a policer");
    }
    if port.reorder.is_some() {
        return Some("packets that are overtaken");
    }
    if port.ecn.is_some() {
        return Some("an ECN field that is rewritten");
    }
    if !matches!(port.limit, Limit::Packets(_)) {
        return Some("a limit that is not in packets");
    }
    match &port.discipline {
        Discipline::DropTail => {}
        Discipline::Red(_) if port.law.is_some() => {
            return Some("RED before XCP, whose queue there drops at its tail");
        }
        Discipline::Red(red) if matches!(red.thresholds, Thresholds::Packets { .. }) => {}
        Discipline::Red(_) => return Some("RED that counts bytes"),
        _ => return Some("a discipline that is not there"),
    }
    let law = port.law.as_ref()?;
    let LinkConfig::Xcp(config) = &law.config else { return Some("a law that is not there") };
    let default = xcp::LinkConfig::DEFAULT;
    // Its shortest interval is 1 ms (7), which no round trip of some ms comes near.
    let is_plain = [default.min_interval, Duration(1_000_000)].contains(&config.min_interval)
        && *config
            == xcp::LinkConfig {
                capacity: config.capacity,
                min_interval: config.min_interval,
                // Its longest is 1 s (7), whatever the paper has.
                max_interval: config.max_interval.max(xcp::MAX_INTERVAL),
                capture: config.capture,
                // ns-2 has none: it takes headers as they come.
                bound_headers: config.bound_headers,
                ..default
            };
    if !is_plain {
        return Some("XCP with other constants, which are compiled in there");
    }
    if !law.follows_service {
        return Some("XCP that is told another capacity");
    }
    (port.feedback_at != FeedbackAt::Departure).then_some("XCP that acts before the queue")
}

/// As a clause after the name.
fn group_refusal(model: &Model, group: &Group) -> Option<String> {
    let why = match &group.kind {
        GroupKind::Source(source) if source.pattern != Pattern::Constant => Some("sends datagrams in spans"),
        GroupKind::Source(_) => None,
        GroupKind::Tcp(_) if !group.switches.is_empty() => Some("changes its path"),
        GroupKind::Tcp(_) if group.interoperable.is_some() => Some("is a node of XCP-i"),
        GroupKind::Tcp(config) => return sender_refusal(model, group, config),
    };
    why.map(str::to_owned)
}

fn sender_refusal(model: &Model, group: &Group, config: &tcp::Config) -> Option<String> {
    let is_xcp = matches!(config.law, SenderConfig::Xcp(_));
    if is_xcp && config.delayed_ack {
        return Some("delays its ACKs, as the receiver of ns-2's XCP does not".into());
    }
    let is_free = match config.advertise {
        Advertise::Always => true,
        // Reno's window grows by a segment for each ACK at most, so it is never the larger one.
        Advertise::Growing { from, per_ack } => {
            matches!(config.law, SenderConfig::Reno(_)) && from >= config.initial_window && per_ack > 0
        }
        Advertise::Reading { .. } => false,
    };
    if !is_free {
        return Some("has an advertised window that changes".into());
    }
    if config.linux.is_some() {
        return Some("has the ways of Linux's TCP, which ns-2's lacks".into());
    }
    if let Some(why) = bursts_refusal(model, group, config) {
        return Some(why.into());
    }
    let SenderConfig::Xcp(xcp) = &config.law else {
        return agent(config)
            .is_none()
            .then(|| format!("runs {}, which ns-2 lacks or has in another form", config.law.name()));
    };
    let lacking = [
        (xcp.profile == Profile::Thesis, "runs the thesis's sender"),
        (matches!(xcp.profile, Profile::Liar(_)), "lies to links, as ns-2's XCP does not"),
        (xcp.pacing, "paces, and ns-2's XCP does not"),
        (xcp.price != Ratio::ONE, "pays a price, which ns-2's XCP does not know"),
        (xcp.loss != LossPolicy::Tcp, "takes losses otherwise than TCP, as ns-2's XCP does not"),
        (xcp.aging.is_some(), "lets its window age, as ns-2's XCP does not"),
        (xcp.rate_source != RateSource::Window, "measures its rate, as ns-2's XCP does not"),
    ];
    if let Some((_, why)) = lacking.into_iter().find(|(is_so, _)| *is_so) {
        return Some(why.into());
    }
    let law = |&link: &u32| model.links[link as usize].port.law.as_ref().map(|law| &law.config);
    let routers = group.path.iter().filter_map(law).count();
    if routers == 0 {
        return Some("meets no router with XCP: its window passes 2^31 there, of which ns-2 dies".into());
    }
    let captures =
        group.path.iter().filter_map(law).all(|law| matches!(law, LinkConfig::Xcp(xcp) if xcp.capture));
    // ns-2's asks for all that there is, always (3): the same as long as nothing but the link limits it, and where nobody looks at
    // what it asks for. With one router nothing was allocated before it.
    if xcp.request == RequestPolicy::Unlimited || routers < 2 && !captures {
        return None;
    }
    if config.awnd.is_some_and(|awnd| f64::from(awnd) < share(model, group, config)) {
        return Some("asks for no more than its advertised window, where ns-2's asks for all".into());
    }
    if captures || routers < 2 {
        return None;
    }
    Some("crosses routers that do not take over what others granted, as ns-2's do".into())
}

/// Seconds that a packet and its answer are on the wires.
fn round_trip(model: &Model, group: &Group) -> f64 {
    let seconds =
        |way: &[u32]| way.iter().map(|&link| seconds(model.links[link as usize].port.delay)).sum::<f64>();
    let pipes = group.access.iter().chain(&group.exit).map(|pipe| 2.0 * self::seconds(pipe.delay));
    seconds(&group.path) + seconds(&group.back) + pipes.sum::<f64>()
}

/// When the last answer to a SYN has passed the link and no ACK of data has yet, s; `None`: there is no such time. A port here
/// loses pure ACKs, and the answer to a SYN is none (docs/ns2.md 27).
fn all_answered(model: &Model, part: &Part, link: usize) -> Option<f64> {
    let (mut answered, mut next) = (0.0_f64, f64::INFINITY);
    let groups = part.groups.iter().map(|&group| &model.groups[group]);
    for group in groups.filter(|group| group.back.contains(&(link as u32))) {
        let rtt = round_trip(model, group);
        for start in starts_of(group, model.seed).into_iter().map(of) {
            answered = answered.max(start + rtt);
            next = next.min(start + 2.0 * rtt);
        }
    }
    (answered < next).then_some(if next.is_finite() { (answered + next) / 2.0 } else { 0.0 })
}

/// As a clause after the name: bursts that ns-2 would send otherwise.
fn bursts_refusal(model: &Model, group: &Group, config: &tcp::Config) -> Option<&'static str> {
    let App::Bursts { pause, wait, total, .. } = config.app else { return None };
    if !matches!(config.law, SenderConfig::Reno(_)) {
        return Some("sends bursts");
    }
    if total.is_some() || group.stop != Time::NEVER {
        return Some("sends bursts that end");
    }
    // What it waits at most between two packets that it could send.
    let silence = match wait {
        Wait::Write => 0.0,
        Wait::Ack => round_trip(model, group),
    } + pause.0 as f64 / 1e9;
    let timeout = config.min_rto.0 as f64 / 1e9;
    (silence > timeout).then_some("begins anew after a pause, where ns-2's TCP keeps its window")
}

/// Segments that a flow has under way if the flows of its narrowest link share it equally.
fn share(model: &Model, group: &Group, config: &tcp::Config) -> f64 {
    let rtt = round_trip(model, group);
    let shares = group.path.iter().map(|link| {
        let flows: u32 =
            model.groups.iter().filter(|other| other.path.contains(link)).map(|other| other.count).sum();
        model.links[*link as usize].port.service.rate_at(0).0 as f64 / f64::from(flows.max(1))
    });
    shares.fold(f64::INFINITY, f64::min) * rtt / (8.0 * f64::from(config.segment))
}

/// Name of the sender in ns-2.
fn agent(config: &tcp::Config) -> Option<&'static str> {
    Some(match (&config.law, config.recovery) {
        (SenderConfig::Xcp(_), _) => "XCP",
        (SenderConfig::Reno(_), Recovery::Reno) => "Reno",
        (SenderConfig::Reno(_), Recovery::NewReno) => "Newreno",
        (SenderConfig::Reno(_), Recovery::Sack) => "Sack1",
        (SenderConfig::Reno(_), Recovery::Fack) => "Fack",
        (SenderConfig::HighSpeed(highspeed), Recovery::Sack) if !highspeed.limited_slow_start => "HighSpeed",
        (SenderConfig::Vegas(vegas), _)
            if *vegas == (vegas::Config { mean_rtt: vegas.mean_rtt, ..vegas::Config::default() }) =>
        {
            "Vegas"
        }
        // With the numbers that Linux has in place of the paper's.
        (SenderConfig::Bic(config), Recovery::Sack)
            if *config
                == (bic::Config {
                    max_increment: 16,
                    beta: Ratio::ppm(200_000),
                    ack_counting: config.ack_counting,
                    ..bic::Config::default()
                }) =>
        {
            "linux-bic"
        }
        _ => return None,
    })
}

/// XCP that repairs losses otherwise than ns-2's, which does as Reno: equal until one is lost.
pub(super) fn repairs_otherwise(group: &Group) -> bool {
    match &group.kind {
        GroupKind::Tcp(config) => config.law.name() == "xcp" && config.recovery != Recovery::Reno,
        GroupKind::Source(_) => false,
    }
}

/// A flow that loses packets on the wire.
pub(super) fn has_errors(model: &Model, group: &Group) -> bool {
    let errors = |&link: &u32| match model.links[link as usize].port.errors {
        None => false,
        Some(ErrorRate::Packet { rate, .. } | ErrorRate::Bit(rate)) => rate > 0.0,
        Some(_) => true,
    };
    group.path.iter().any(errors)
}

/// XCP whose window moves by the feedback times the round trip that the packet stated, where ns-2's takes the srtt of the ACK's
/// time.
pub(super) fn returns_bytes(group: &Group) -> bool {
    matches!(&group.kind, GroupKind::Tcp(config)
        if matches!(&config.law, SenderConfig::Xcp(xcp) if xcp.feedback == Feedback::Bytes))
}

/// The nodes between the links of a part.
struct Nodes {
    count: usize,
    /// Where each link begins and ends, in the order of the part.
    ends: BTreeMap<usize, (usize, usize)>,
}

impl Nodes {
    /// Ends that a path makes one are one.
    fn new(model: &Model, part: &Part) -> Result<Self, String> {
        let mut ends = Joined::new(2 * model.links.len());
        let groups = || part.groups.iter().map(|&group| &model.groups[group]);
        let (tail, head) = (|link: u32| 2 * link as usize, |link: u32| 2 * link as usize + 1);
        for group in groups() {
            for way in [&group.path, &group.back] {
                way.windows(2).for_each(|pair| ends.join(head(pair[0]), tail(pair[1])));
            }
            // The data's way ends where that of ACKs begins.
            for (from, to) in [(&group.path, &group.back), (&group.back, &group.path)] {
                if let (Some(&last), Some(&first)) = (from.last(), to.first()) {
                    ends.join(head(last), tail(first));
                }
            }
        }
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut nodes = Self { count: 0, ends: BTreeMap::new() };
        let mut pairs = BTreeSet::new();
        for &link in &part.links {
            let mut number = |end: usize| {
                let next = numbers.len();
                *numbers.entry(ends.root(end)).or_insert(next)
            };
            let pair = (number(2 * link), number(2 * link + 1));
            if pair.0 == pair.1 || !pairs.insert(pair) {
                return Err(format!("`{}` is beside another link between two nodes", model.links[link].name));
            }
            nodes.ends.insert(link, pair);
        }
        nodes.count = numbers.len();
        nodes.check(model, part)?;
        Ok(nodes)
    }

    /// The nodes that a way passes.
    fn way(&self, links: &[u32]) -> Vec<usize> {
        let ends = || links.iter().filter_map(|&link| self.ends.get(&(link as usize)));
        ends().take(1).map(|ends| ends.0).chain(ends().map(|ends| ends.1)).collect()
    }

    /// Checks that packets for a node take the same way from each other node.
    fn check(&self, model: &Model, part: &Part) -> Result<(), String> {
        let mut next = BTreeMap::new();
        for group in part.groups.iter().map(|&group| &model.groups[group]) {
            for (way, is_own) in [(&group.path, group.exit.is_some()), (&group.back, group.access.is_some())]
            {
                let way = self.way(way);
                let different: BTreeSet<_> = way.iter().collect();
                if different.len() < way.len() || way.is_empty() {
                    return Err(format!("`{}` passes a node twice", group.name));
                }
                for pair in way.windows(2).filter(|_| !is_own) {
                    let target = way[way.len() - 1];
                    if *next.entry((pair[0], target)).or_insert(pair[1]) != pair[1] {
                        return Err(format!("`{}` and others take different ways to one node", group.name));
                    }
                }
            }
        }
        Ok(())
    }
}

pub(super) fn seconds(picos: u64) -> f64 {
    picos as f64 / 1e12
}

fn of(time: Time) -> f64 {
    time.0 as f64 / 1e9
}

/// When the group sends nothing new any more, s; after the run if it does not end.
fn end_of(model: &Model, group: &Group) -> f64 {
    if group.stop == Time::NEVER { 2.0 * seconds(model.duration) } else { of(group.stop) }
}

/// The part as calls of the script's procedures.
pub(super) fn describe(model: &Model, part: &Part) -> Result<String, String> {
    let nodes = Nodes::new(model, part)?;
    let bin = model.sample_every.map_or(0.0, seconds);
    // ns-2 takes seeds from 1 to 2^31 - 2, and the clock for 0.
    let seed = match model.seed {
        seed @ 1..=0x7fff_fffe => seed,
        seed => seed % 0x7fff_fffe + 1,
    };
    let mut text = format!(
        "run {{{} {} {bin} {seed}}}\nnodes {}\n",
        seconds(model.duration),
        seconds(model.warmup),
        nodes.count
    );
    let has_tcp = |link: usize| {
        part.groups.iter().any(|&group| match &model.groups[group].kind {
            GroupKind::Tcp(config) => {
                config.law.name() != "xcp" && model.groups[group].path.contains(&(link as u32))
            }
            GroupKind::Source(_) => false,
        })
    };
    for (&link, &(from, to)) in &nodes.ends {
        let port = &model.links[link].port;
        let Limit::Packets(limit) = port.limit else { continue };
        let kind = match (&port.law, &port.discipline) {
            (Some(_), _) => format!("xcp {}", u8::from(has_tcp(link))),
            (None, Discipline::Red(red)) => {
                let Thresholds::Packets { min, max } = red.thresholds else { continue };
                let chance = |chance| Probability::from(chance).to_f64();
                format!(
                    "red {{{min} {max} {} {} {} {} {} {} {}}}",
                    1.0 / chance(red.max_p),
                    chance(red.weight),
                    u8::from(red.gentle),
                    u8::from(red.ecn),
                    u8::from(red.wait),
                    u8::from(red.use_mark_p),
                    red.packet_size
                )
            }
            (None, _) => "droptail".into(),
        };
        let rate = port.service.rate_at(0).0;
        let _ = writeln!(text, "link {link} {from} {to} {rate}.0 {} {limit} {kind}", seconds(port.delay));
        if let Service::Steps(steps) = &port.service {
            for (at, rate) in steps.as_slice().iter().skip(1) {
                let _ = writeln!(text, "rate {link} {} {}.0", seconds(*at), rate.0);
            }
        }
        let errors = match port.errors {
            Some(ErrorRate::Packet { rate, size }) => Some((rate, f64::from(size))),
            Some(ErrorRate::Bit(rate)) => Some((rate, 0.125)),
            _ => None,
        };
        if let Some((rate, bytes)) = errors.filter(|&(rate, _)| rate > 0.0) {
            let _ = writeln!(text, "lossy {link} byte {rate} {bytes}");
        }
        if port.ack_loss != Probability::ZERO {
            let from = all_answered(model, part, link).ok_or("answers to SYNs that would be lost")?;
            let _ = writeln!(text, "lossy {link} pkt {} 1 {from}", port.ack_loss.to_f64());
        }
    }
    let mut number = 0;
    for group in part.groups.iter().map(|&group| &model.groups[group]) {
        let list = |way: &[u32]| nodes.way(way).iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let pipe = |pipe: Option<Pipe>| {
            pipe.map_or(String::new(), |pipe| format!("{}.0 {}", pipe.rate.0, seconds(pipe.delay)))
        };
        let ways = format!(
            "{{{}}} {{{}}} {{{}}} {{{}}}",
            list(&group.path),
            list(&group.back),
            pipe(group.access),
            pipe(group.exit)
        );
        let config = match &group.kind {
            GroupKind::Tcp(config) => config,
            GroupKind::Source(source) => {
                let schedule: Vec<String> =
                    group.schedule.iter().map(|&(at, count)| format!("{} {count}", of(at))).collect();
                let rest = format!("{} {}.0", source.segment, source.rate.0);
                for (index, start) in starts_of(group, model.seed).into_iter().enumerate() {
                    let (from, to, schedule) = (of(start), end_of(model, group), schedule.join(" "));
                    let _ = writeln!(text, "datagrams {index} {ways} {rest} {from} {to} {{{schedule}}}");
                }
                continue;
            }
        };
        let agent = agent(config).ok_or("a sender that ns-2 lacks")?;
        for (index, start) in (0..).zip(starts_of(group, model.seed)) {
            let packets = match config.app {
                App::Endless | App::Bursts { .. } => -1,
                App::Own => segments_of(group, index, model.seed).map_or(-1, |segments| segments as i64),
                App::Transfer(size) => size.0.div_ceil(config.segment.into()) as i64,
            };
            let bursts = match config.app {
                App::Bursts { size, pause, wait, buffer, .. } => {
                    let segments = |bytes: u64| bytes.div_ceil(config.segment.into()).max(1);
                    let wait = match wait {
                        Wait::Write => "write",
                        Wait::Ack => "ack",
                    };
                    let pause = pause.0 as f64 / 1e9;
                    format!("{{{} {pause} {wait} {}}}", segments(size.0), segments(buffer.0))
                }
                _ => "{}".into(),
            };
            let measure = measure_of(model, group, start);
            let stop = end_of(model, group);
            let _ = writeln!(
                text,
                "flow {number} {agent} {ways} {} {} {} {} {} {} {} {} {stop} {packets} {} {} {bursts}",
                config.segment,
                config.ack,
                u8::from(config.delayed_ack),
                config.awnd.unwrap_or(WINDOW),
                config.initial_window,
                config.min_rto.0 as f64 / 1e9,
                u8::from(config.ecn),
                of(start),
                of(measure.from),
                of(measure.to),
            );
            number += 1;
        }
    }
    text.push_str("go\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use congestlab_scenario::{Measure, Scenario};

    use super::*;

    /// The refusal of a scenario with one link and one group, which get these lines.
    fn refusal(link: &str, flow: &str) -> Option<String> {
        let text = format!(
            "[run]\nduration = \"10 s\"\n\n[laws.xcp]\npacing = false\n\n[links.a]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"50 packets\"\n{link}\n\n\
             [flows.f]\npath = [\"a\"]\nack = \"40 B\"\n{flow}\n"
        );
        let scenario = Scenario::parse("test", &text, Path::new(""), &[], None)
            .unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        let mut parts = parts(&scenario.model(&Measure::default()));
        assert_eq!(parts.len(), 1, "a link and its reverse are one");
        parts.remove(0).refusal
    }

    #[test]
    fn what_ns2_has_is_not_refused() {
        for (link, flow) in [
            ("law = \"xcp\"", "law = \"xcp\""),
            (
                "law = \"xcp\"\nprofile = \"ns2\"",
                "law = { xcp = { request = \"unlimited\" } }\nprofile = \"ns2\"",
            ),
            ("law = { xcp = { capture = false } }", "law = \"xcp\"\nawnd = \"2 packets\""),
            ("law = { xcp = { capture = false } }", "law = \"xcp\"\nrecovery = \"reno\""),
            ("", "law = \"reno\""),
            ("", "law = \"newreno\""),
            ("", "law = \"sack\"\naccess = { rate = \"1 Gbit/s\", delay = \"1 ms\" }"),
            ("", "law = \"fack\""),
            ("", "law = \"highspeed\""),
            ("", "law = \"vegas\""),
            ("", "law = { bic = { max_increment = 16, beta = 0.2 } }"),
            ("discipline = { red = { min = \"10 packets\", max = \"20 packets\" } }", "law = \"reno\""),
            ("law = { xcp = { max_interval = \"3 s\" } }", "law = \"xcp\""),
            ("error = { packet_error_rate = 0.1 }", "law = \"sack\""),
            ("reverse = { ack_loss = 0.1 }", "law = \"sack\""),
            ("reverse = { ack_loss = 0.1 }", "law = \"sack\"\ncount = 2\nstart = { every = \"39 ms\" }"),
            ("", "law = \"sack\"\ndelayed_ack = true"),
            (
                "",
                "law = \"sack\"\nawnd = { from = \"4 packets\", per_ack = \"2 packets\", to = \"100 packets\" }",
            ),
            ("law = \"xcp\"", "law = { cbr = { rate = \"1 Mbit/s\" } }"),
            ("law = \"xcp\"", "law = { xcp = { feedback = \"bytes\" } }"),
            ("", "law = \"sack\"\napp = { bursts = { size = \"20 kB\", pause = \"1 s\" } }"),
            (
                "",
                "law = \"sack\"\napp = { bursts = { size = \"20 kB\", pause = \"959 ms\", wait = \"ack\" } }",
            ),
        ] {
            assert_eq!(refusal(link, flow), None, "{link} and {flow}");
        }
    }

    #[test]
    fn what_ns2_would_run_as_something_else_is_refused() {
        for (link, flow, why) in [
            ("law = \"pxcp\"", "law = \"xcp\"", "a law that is not there"),
            ("law = { xcp = { alpha = 0.5 } }", "law = \"xcp\"", "other constants"),
            ("law = { xcp = { max_interval = \"0.5 s\" } }", "law = \"xcp\"", "other constants"),
            ("law = { xcp = { capacity = \"5 Mbit/s\" } }", "law = \"xcp\"", "another capacity"),
            ("discipline = \"prio-droptail\"", "law = \"sack\"", "discipline"),
            (
                "law = \"xcp\"\ndiscipline = { red = { min = \"10 packets\", max = \"20 packets\" } }",
                "law = \"xcp\"",
                "drops at its tail",
            ),
            (
                "",
                "law = { onoff = { rate = \"1 Mbit/s\", on = \"1 s\", off = \"1 s\" } }",
                "datagrams in spans",
            ),
            ("", "law = \"cubic\"", "cubic"),
            ("", "law = \"bic\"", "bic"),
            ("", "law = \"bbr\"", "bbr"),
            ("law = \"xcp\"", "law = \"xcp-r\"", "xcp-r"),
            ("law = \"xcp\"", "law = { xcp = { pacing = true } }", "paces"),
            ("law = \"xcp\"", "law = { xcp = { price = 2 } }", "price"),
            ("law = \"xcp\"", "law = \"xcp\"\nawnd = \"2 packets\"", "advertised window"),
            ("law = \"xcp\"", "law = \"xcp\"\ndelayed_ack = true", "delays its ACKs"),
            (
                "law = \"xcp\"",
                "law = \"xcp\"\nawnd = { from = \"4 packets\", per_ack = \"2 packets\", to = \"100 packets\" }",
                "window that changes",
            ),
            ("ack_loss = 0.1", "law = \"sack\"", "loses ACKs alone"),
            (
                "",
                "law = \"sack\"\napp = { bursts = { size = \"20 kB\", pause = \"1 s\", wait = \"ack\" } }",
                "keeps its window",
            ),
            (
                "",
                "law = \"sack\"\napp = { bursts = { size = \"20 kB\", pause = \"2 s\" } }",
                "keeps its window",
            ),
            (
                "",
                "law = \"sack\"\nsize = \"1 MB\"\napp = { bursts = { size = \"20 kB\", pause = \"10 ms\" } }",
                "bursts that end",
            ),
            (
                "law = \"xcp\"",
                "law = \"xcp\"\napp = { bursts = { size = \"20 kB\", pause = \"10 ms\" } }",
                "sends bursts",
            ),
            (
                "reverse = { ack_loss = 0.1 }",
                "law = \"sack\"\ncount = 2\nstart = { every = \"40 ms\" }",
                "loses the answers to SYNs",
            ),
            ("", "law = { xcp = { request = \"unlimited\" } }", "meets no router with XCP"),
        ] {
            let found = refusal(link, flow);
            assert!(found.as_ref().is_some_and(|found| found.contains(why)), "{link} and {flow}: {found:?}");
        }
    }

    #[test]
    fn parts_that_share_no_link_are_refused_alone() {
        let link = |name: &str, law: &str| {
            format!(
                "[links.{name}]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"50 packets\"\nlaw = \"{law}\"\n\n\
                 [flows.{name}]\nlaw = {{ xcp = {{ pacing = false }} }}\npath = [\"{name}\"]\n\n"
            )
        };
        let text = format!("[run]\nduration = \"10 s\"\n\n{}{}", link("a", "xcp"), link("b", "pxcp"));
        let scenario = Scenario::parse("test", &text, Path::new(""), &[], None).expect("a scenario");
        let model = scenario.model(&Measure::default());
        let parts = parts(&model);
        let refused: Vec<bool> = parts.iter().map(|part| part.refusal.is_some()).collect();
        assert_eq!(refused, [false, true]);
        let text = describe(&model, &parts[0]).expect("it can be said");
        assert!(text.contains("xcp 0\n") && text.ends_with("go\n"), "{text}");
        assert_eq!(text.matches("\nlink ").count(), 2, "{text}");
    }
}
