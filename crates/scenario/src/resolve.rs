//! From what a file says to what a run is: every default is put into the file, every rule that
//! spans several keys is held, and the model comes out.

use std::path::Path;

use congestlab_core::law::xcp;
use congestlab_core::law::{SenderConfig, cubic, reno};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate as ByteRate, Ratio, Time};
use congestlab_net::errors::ErrorRate;
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::port::{self, LawConfig, PortConfig};
use congestlab_net::queue::{self, Limit, red};
use congestlab_net::random::Probability;
use congestlab_net::service::{RateError, Service, Steps};
use congestlab_net::source::{Pattern, SourceConfig};
use congestlab_net::tcp;
use congestlab_net::trace::Trace;
use congestlab_sim::model::{self, GroupKind, Model, Pipe};

use crate::decode::{At, Chance, Named, PacketSize, RATE_MAX, SPAN_MAX, fill};
use crate::diagnostic::{Findings, Span, choices};
use crate::file::{self, App, FeedbackAt, File, Flow, Hop, Link, Rate, Recovery, Reverse, Start, Wait};
use crate::law::{Aging, Discipline, FlowLaw, LinkLaw, Loss, Red, Request, StatedRate, XcpFlow, XcpLink};
use crate::queue::{Amount, PACKETS_MAX, bdp_packets};

/// Ethernet's usual MTU.
const PACKET_SIZE: PacketSize = PacketSize(1500);
/// IP and TCP headers without options, which `ack` is the size of.
const HEADERS: u16 = 40;
/// The congestion header (draft-03 §3.2).
const XCP_HEADER: u16 = 20;
/// What a queue holds that no flow crosses.
const QUEUE_WITHOUT_FLOWS: Amount = Amount::Packets(100);
/// From this gain on the spare capacity XCP is unstable: pi / (4 sqrt 2) (K02 theorem 1).
const ALPHA_UNSTABLE: Ratio = Ratio::ppm(555_360);
/// Larger recordings are not links of a testbed any more.
const TRACE_BYTES_MAX: u64 = 1 << 28;
/// More flows than any machine holds.
const FLOWS_MAX: u64 = 1_000_000_000;

fn picos(span: Duration) -> Picos {
    span.0.saturating_mul(PS_PER_NS)
}

/// What a link can carry and how long it takes, before queues are known.
struct Wire {
    service: Service,
    delay: Duration,
    /// For bandwidth-delay products and what a flow can use.
    rate: BitRate,
}

/// Fills `file` and makes the model of it. `None` after an error.
pub(crate) fn resolve(file: &mut File, base: &Path, findings: &mut Findings) -> Option<Model> {
    let (duration, warmup, seed) = run(file, findings)?;
    let series =
        file.measure.get_or_insert_with(|| At { value: file::Series::default(), span: Span::default() });
    let default_bin = Duration((duration.0 / 100).max(1));
    let every = fill(&mut series.value.every, series.span, || default_bin);
    if every.value.0 == 0 {
        let message = format!("`measure.every` is {}", every.value);
        findings.error("scenario::range", every.span, message, "allowed: above 0 s");
    } else if every.value > duration {
        let message = format!("`measure.every` is {}, more than the run", every.value);
        findings.warning("scenario::no-effect", every.span, message, "the series has no bin");
    }
    let links = &mut file.links.as_mut()?.value;
    let wires = wires(links, base, findings);
    let flows = &mut file.flows.as_mut()?.value;
    check_names(links.0.iter().map(|(name, _)| name), "link", findings);
    check_names(flows.0.iter().map(|(name, _)| name), "flow", findings);
    check_count(flows, findings);

    // A path: indices of link directions, forward 2 i, reverse 2 i + 1.
    let mut paths = Vec::new();
    let mut round_trips = vec![None::<Duration>; links.0.len()];
    for (name, flow) in &mut flows.0 {
        let path = path(&name.value, &flow.value, links, findings);
        let hops = [&mut flow.value.access, &mut flow.value.exit].map(hop);
        if let Some(path) = &path {
            let propagation = |at: u32| wires[at as usize].as_ref().map_or(0, |wire| wire.delay.0);
            let both_ways: u64 =
                path.iter().map(|&at| propagation(at).saturating_add(propagation(at ^ 1))).sum();
            let own: u64 = hops.iter().flatten().map(|(_, delay)| 2 * delay.0).sum();
            let round_trip = Duration(both_ways.saturating_add(own));
            for &at in path {
                let longest = &mut round_trips[at as usize / 2];
                *longest = Some(longest.map_or(round_trip, |other| other.max(round_trip)));
            }
        }
        paths.push((path, hops));
    }

    if paths.iter().any(|(path, _)| path.is_none()) {
        // Which links flows cross is not known: that none crosses one is no finding.
        round_trips.iter_mut().for_each(|longest| *longest = longest.or(Some(Duration(0))));
    }

    let mut ports = Vec::new();
    for (index, (name, link)) in links.0.iter_mut().enumerate() {
        let round_trip = round_trips[index];
        findings.at = vec!["links".into(), name.value.clone()];
        let forward = wires[2 * index]
            .as_ref()
            .and_then(|wire| port(&mut link.value, link.span, wire, round_trip, findings));
        ports.push(forward.map(|port| model::Link { name: name.value.clone(), port }));
        findings.at.push("reverse".into());
        let Some(At { value: Reverse(reverse), span }) = &mut link.value.reverse else { return None };
        let wire = wires[2 * index + 1].as_ref();
        let backward = wire.and_then(|wire| port(reverse, *span, wire, round_trip, findings));
        ports.push(backward.map(|port| model::Link { name: format!("{}.reverse", name.value), port }));
    }

    let mut groups = Vec::new();
    for ((name, flow), (path, hops)) in flows.0.iter_mut().zip(paths) {
        findings.at = vec!["flows".into(), name.value.clone()];
        let first = path.as_ref().and_then(|path| wires[*path.first()? as usize].as_ref());
        groups.push(group(
            &name.value,
            &mut flow.value,
            flow.span,
            path.as_deref(),
            hops,
            first,
            duration,
            findings,
        ));
    }
    findings.at.clear();
    if findings.has_errors() {
        return None;
    }
    Some(Model {
        seed,
        duration: picos(duration),
        warmup: picos(warmup),
        links: ports.into_iter().collect::<Option<_>>()?,
        groups: groups.into_iter().collect::<Option<_>>()?,
        sample_every: Some(picos(every.value)),
        record_events: false,
    })
}

/// Duration, warm-up and seed.
fn run(file: &mut File, findings: &mut Findings) -> Option<(Duration, Duration, u64)> {
    let run = file.run.as_mut()?;
    let seed = fill(&mut run.value.seed, run.span, || 1).value;
    let warmup = fill(&mut run.value.warmup, run.span, || Duration(0));
    // What else is wrong is found all the same.
    let longest = || At { value: Duration(SPAN_MAX), span: run.span };
    let duration = run.value.duration.clone().unwrap_or_else(longest);
    if duration.value.0 == 0 {
        let help = "allowed: above 0 s, up to 10000000 s";
        findings.error("scenario::range", duration.span, "`run.duration` is zero", help);
        return Some((Duration(SPAN_MAX), warmup.value, seed));
    }
    if warmup.value >= duration.value {
        let message = format!("`run.warmup` ({}) leaves nothing of the run to measure", warmup.value);
        let help = format!("allowed: less than the duration, {}", duration.value);
        findings.error("scenario::range", warmup.span, message, help);
    }
    Some((duration.value, warmup.value, seed))
}

fn check_names<'a>(names: impl Iterator<Item = &'a At<String>>, what: &str, findings: &mut Findings) {
    let mut count = 0;
    for name in names {
        count += 1;
        let text = &name.value;
        let is_odd = text.is_empty() || text.chars().any(|c| c.is_control() || c == '"');
        if is_odd || text.ends_with(".reverse") {
            let message = format!("{text:?} can not name a {what}");
            let help = "a name is not empty and has no control characters, quotes, or `.reverse` at its end";
            findings.error("scenario::name", name.span, message, help);
        }
    }
    if count == 0 {
        let message = format!("a scenario needs at least one {what}");
        let help = format!("give each a table, such as [{what}s.name]");
        findings.error("scenario::missing", Span::default(), message, help);
    }
}

fn check_count(flows: &mut Named<Flow>, findings: &mut Findings) {
    let mut total = 0_u64;
    for (name, flow) in &mut flows.0 {
        let count = fill(&mut flow.value.count, flow.span, || 1);
        total += u64::from(count.value);
        if total > FLOWS_MAX {
            let message = format!("`flows.{}.count` makes {total} flows", name.value);
            let help = format!("allowed: {FLOWS_MAX} in all");
            return findings.error("scenario::range", count.span, message, help);
        }
    }
}

/// Rates and delays of all directions. Fills in the reverses.
fn wires(links: &mut Named<Link>, base: &Path, findings: &mut Findings) -> Vec<Option<Wire>> {
    let mut wires = Vec::new();
    for (name, At { value: link, span }) in &mut links.0 {
        let span = *span;
        findings.at = vec!["links".into(), name.value.clone()];
        fill(&mut link.at, span, || name.value.clone());
        let delay = fill(&mut link.delay, span, || Duration(0)).value;
        fill(&mut link.packet_size, span, || PACKET_SIZE);
        let forward = wire(link, span, delay, base, findings);
        // The mirror (contract 3): same rate, delay and queue limit, nothing else.
        let reverse = link.reverse.get_or_insert_with(|| At { value: Reverse::default(), span });
        let (back, span) = (&mut *reverse.value.0, reverse.span);
        fill(&mut back.at, span, || format!("{}.reverse", name.value));
        let delay = fill(&mut back.delay, span, || delay).value;
        back.packet_size = back.packet_size.take().or(link.packet_size.clone());
        back.queue = back.queue.take().or(link.queue.clone());
        let backward = if back.rate.is_some() {
            findings.at.push("reverse".into());
            wire(back, span, delay, base, findings)
        } else {
            back.rate = link.rate.clone();
            forward.as_ref().map(|wire| Wire { service: wire.service.clone(), delay, rate: wire.rate })
        };
        wires.push(forward);
        wires.push(backward);
    }
    wires
}

fn wire(link: &Link, span: Span, delay: Duration, base: &Path, findings: &mut Findings) -> Option<Wire> {
    let Some(rate) = &link.rate else {
        if findings.is_unreadable("rate") {
            return None;
        }
        let message = format!("`{}` needs the key `rate`", findings.place());
        let help =
            "such as rate = \"10 Mbit/s\", { steps = [[\"0 s\", \"10 Mbit/s\"]] } or { trace = \"file\" }";
        findings.error("scenario::missing", span, message, help);
        return None;
    };
    let (service, nominal) = match &rate.value {
        Rate::Fixed(rate) => (Service::Fixed(*rate), *rate),
        Rate::Steps(list) => {
            let rates = list.iter().map(|step| (picos(step.value.from), step.value.rate)).collect();
            let steps =
                Steps::new(rates).map_err(|error| refuse_steps(&error, list, rate.span, findings)).ok()?;
            let largest = list.iter().map(|step| step.value.rate).max()?;
            (Service::Steps(steps), largest)
        }
        Rate::Trace(path) => {
            let trace = trace(path, base, findings)?;
            let mean = trace.mean_rate();
            (Service::Trace(trace), mean)
        }
    };
    Some(Wire { service, delay, rate: nominal })
}

fn refuse_steps(error: &RateError, list: &[At<file::Step>], whole: Span, findings: &mut Findings) {
    let step = match *error {
        RateError::NoStep => None,
        RateError::LateFirstStep => Some(0),
        RateError::NotIncreasing { step } | RateError::ZeroRate { step } => Some(step),
    };
    let span = step.and_then(|step| list.get(step)).map_or(whole, |step| step.span);
    let help = "steps are [time, rate] pairs; the first at 0 s, each later than the one before";
    findings.error("scenario::steps", span, format!("`{}.rate`: {error}", findings.place()), help);
}

fn trace(path: &At<String>, base: &Path, findings: &mut Findings) -> Option<Trace> {
    let help = "a trace has one whole number of milliseconds per line, never decreasing, the last above 0; \
                its path is relative to the scenario file";
    let mut refuse = |reason: String| {
        let message = format!("`{}.rate.trace`: {reason}", findings.place());
        findings.error("scenario::trace", path.span, message, help);
    };
    let file = base.join(&path.value);
    let name = &path.value;
    // Looked at first: a pipe or a device would never end.
    let text = match std::fs::metadata(&file) {
        Err(error) => return refuse(format!("can not read \"{name}\": {error}")).none(),
        Ok(metadata) if !metadata.is_file() => return refuse(format!("\"{name}\" is not a file")).none(),
        Ok(metadata) if metadata.len() > TRACE_BYTES_MAX => {
            return refuse(format!("\"{name}\" is larger than 256 MiB")).none();
        }
        Ok(_) => match std::fs::read(&file) {
            Err(error) => return refuse(format!("can not read \"{name}\": {error}")).none(),
            Ok(text) => text,
        },
    };
    match Trace::parse(&text) {
        Ok(trace) => Some(trace),
        Err(error) => refuse(format!("\"{name}\": {error}")).none(),
    }
}

/// For `return refuse(...)` in one line.
trait Nothing {
    fn none<T>(self) -> Option<T>;
}

impl Nothing for () {
    fn none<T>(self) -> Option<T> {
        None
    }
}

/// A path as indices of link directions. `None` after an error.
fn path(name: &str, flow: &Flow, links: &Named<Link>, findings: &mut Findings) -> Option<Vec<u32>> {
    let list = flow.path.as_ref()?;
    let place = format!("flows.{name}.path");
    let known = || links.0.iter().map(|(name, _)| name.value.as_str());
    let mut path: Vec<u32> = Vec::new();
    for link in &list.value {
        let (base, reverse) = match link.value.strip_suffix(".reverse") {
            Some(base) => (base, 1),
            None => (link.value.as_str(), 0),
        };
        let Some(index) = known().position(|name| name == base) else {
            let message = format!("`{place}` names \"{}\", which is no link", link.value);
            findings.error("scenario::path", link.span, message, choices(&link.value, known()));
            return None;
        };
        let index = 2 * index as u32 + reverse;
        if path.iter().any(|&other| other / 2 == index / 2) {
            let message = format!("`{place}` repeats the link \"{base}\"");
            let help = "a path crosses each link at most once, in one direction; ACKs go back by themselves";
            findings.error("scenario::path", link.span, message, help);
            return None;
        }
        path.push(index);
    }
    if path.is_empty() {
        let message = format!("`{place}` names no link");
        findings.error("scenario::path", list.span, message, choices("", known()));
        return None;
    }
    Some(path)
}

fn hop(hop: &mut Option<At<Hop>>) -> Option<(BitRate, Duration)> {
    let hop = hop.as_mut()?;
    let delay = fill(&mut hop.value.delay, hop.span, || Duration(0)).value;
    Some((hop.value.rate.as_ref()?.value, delay))
}

fn port(
    link: &mut Link,
    span: Span,
    wire: &Wire,
    round_trip: Option<Duration>,
    findings: &mut Findings,
) -> Option<PortConfig> {
    let packet_size = fill(&mut link.packet_size, span, || PACKET_SIZE).value.0;
    let default_queue = if round_trip.is_some() { Amount::ONE_BDP } else { QUEUE_WITHOUT_FLOWS };
    let queue = fill(&mut link.queue, span, || default_queue);
    let to_packets = |amount: &At<Amount>, key: &str, findings: &mut Findings| {
        packets(amount, key, wire.rate, round_trip, packet_size, findings)
    };
    let limit = match queue.value {
        Amount::Bytes(bytes) => Limit::Bytes(bytes),
        _ => Limit::Packets(to_packets(&queue, "queue", findings)?),
    };
    fill(&mut link.discipline, span, || Discipline::DropTail);
    let At { value: discipline, span: discipline_span } = link.discipline.as_mut()?;
    let discipline = match discipline {
        Discipline::DropTail => queue::Discipline::DropTail,
        Discipline::PrioDropTail => queue::Discipline::PrioDropTail,
        Discipline::Red(red) => {
            let thresholds = thresholds(red, *discipline_span, to_packets, findings)?;
            queue::Discipline::Red(self::red(red, *discipline_span, thresholds, packet_size))
        }
    };
    let errors = match &link.error {
        None => None,
        Some(error) => match (&error.value.packet_error_rate, &error.value.bit_error_rate) {
            (Some(rate), None) => Some(ErrorRate::Packet { rate: rate.value.0, size: packet_size }),
            (None, Some(rate)) => Some(ErrorRate::Bit(rate.value.0)),
            (None, None) if findings.is_unreadable("error") => None,
            _ => {
                let message = format!("`{}.error` needs one of its two keys", findings.place());
                let help = "write { packet_error_rate = 0.01 } or { bit_error_rate = 1e-7 }";
                findings.error("scenario::type", error.span, message, help);
                None
            }
        },
    };
    let is_ns2 = link.profile.is_some();
    let law = match &mut link.law {
        None => None,
        Some(At { value: LinkLaw::Xcp(xcp), span }) => Some(xcp_link(xcp, *span, wire, is_ns2, findings)),
    };
    let feedback_at = fill(&mut link.feedback_at, span, || FeedbackAt::Departure).value;
    Some(PortConfig {
        limit,
        discipline,
        law,
        feedback_at: match feedback_at {
            FeedbackAt::Departure => port::FeedbackAt::Departure,
            FeedbackAt::Enqueue => port::FeedbackAt::Enqueue,
        },
        errors,
        ack_loss: Probability::from_f64(fill(&mut link.ack_loss, span, || Chance(0.0)).value.0),
        ..PortConfig::new(wire.service.clone(), picos(wire.delay), limit)
    })
}

/// An amount that is not in bytes, in packets.
fn packets(
    amount: &At<Amount>,
    key: &str,
    rate: BitRate,
    round_trip: Option<Duration>,
    packet_size: u16,
    findings: &mut Findings,
) -> Option<u64> {
    let place = || format!("{}.{key}", findings.place());
    let millionths = match amount.value {
        Amount::Packets(packets) => return Some(packets),
        Amount::Bytes(bytes) => return Some(bytes.div_ceil(packet_size.into())),
        Amount::Bdp(millionths) => millionths,
    };
    let (message, help) = match round_trip {
        None => (
            format!("`{}` is in BDP, but no flow crosses the link", place()),
            "without a flow there is no round trip time: write packets or bytes".to_owned(),
        ),
        Some(round_trip) => match bdp_packets(millionths, rate, round_trip, packet_size) {
            Some(packets) => return Some(packets),
            None => (
                format!("`{}` is too many packets: {rate} for {round_trip}", place()),
                format!("allowed: up to {PACKETS_MAX} packets"),
            ),
        },
    };
    findings.error("scenario::bdp", amount.span, message, help);
    None
}

fn thresholds(
    red: &Red,
    span: Span,
    to_packets: impl Fn(&At<Amount>, &str, &mut Findings) -> Option<u64>,
    findings: &mut Findings,
) -> Option<red::Thresholds> {
    let (min, max) = (red.min.as_ref()?, red.max.as_ref()?);
    let in_bytes = |at: &At<Amount>| match at.value {
        Amount::Bytes(bytes) => Some(bytes),
        _ => None,
    };
    let (is_bytes, low, high) = match (in_bytes(min), in_bytes(max)) {
        (Some(low), Some(high)) => (true, low, high),
        (None, None) => {
            let low = to_packets(min, "discipline.red.min", findings);
            let high = to_packets(max, "discipline.red.max", findings);
            (false, low?, high?)
        }
        _ => {
            let message = format!("`{}.discipline.red` mixes bytes and packets", findings.place());
            findings.error("scenario::red", span, message, "min and max are both bytes, or neither is");
            return None;
        }
    };
    let limits = u32::try_from(low).ok().zip(u32::try_from(high).ok());
    match limits {
        Some((min, max)) if min < max => Some(if is_bytes {
            red::Thresholds::Bytes { min, max }
        } else {
            red::Thresholds::Packets { min, max }
        }),
        _ => {
            let message = format!("`{}.discipline.red` has min {low} and max {high}", findings.place());
            findings.error("scenario::red", min.span, message, "allowed: min below max, both below 4 GB");
            None
        }
    }
}

fn red(red: &mut Red, span: Span, thresholds: red::Thresholds, packet_size: u16) -> red::Config {
    let max_p = fill(&mut red.max_p, span, || Chance(0.1)).value.0;
    let weight = fill(&mut red.weight, span, || Chance(0.002)).value.0;
    red::Config {
        thresholds,
        max_p: Probability::from_f64(max_p),
        weight: Probability::from_f64(weight),
        gentle: fill(&mut red.gentle, span, || false).value,
        ecn: fill(&mut red.ecn, span, || false).value,
        packet_size,
    }
}

fn xcp_link(xcp: &mut XcpLink, span: Span, wire: &Wire, is_ns2: bool, findings: &mut Findings) -> LawConfig {
    let ms = |ms: u64| Duration(ms * 1_000_000);
    let alpha = fill(&mut xcp.alpha, span, || Ratio::ppm(400_000));
    if alpha.value >= ALPHA_UNSTABLE {
        let message = format!("`{}.law.xcp.alpha` makes XCP unstable", findings.place());
        let help = "stable below pi / (4 sqrt 2) = 0.555 (K02, theorem 1)";
        findings.warning("scenario::range", alpha.span, message, help);
    }
    let default_min = ms(if is_ns2 { 1 } else { 5 });
    let min_interval = fill(&mut xcp.min_interval, span, || default_min);
    let max_interval = fill(&mut xcp.max_interval, span, || ms(1000));
    if min_interval.value.0 == 0 || min_interval.value > max_interval.value {
        let message = format!(
            "`{}.law.xcp` has control intervals from {} to {}",
            findings.place(),
            min_interval.value,
            max_interval.value
        );
        findings.error(
            "scenario::range",
            min_interval.span,
            message,
            "allowed: 0 s < min_interval <= max_interval",
        );
    }
    let capacity = xcp.capacity.as_ref().map(|at| at.value);
    LawConfig::Xcp {
        config: xcp::LinkConfig {
            capacity: capacity.unwrap_or_else(|| wire.service.rate_at(0)).bytes(),
            alpha: alpha.value,
            beta: fill(&mut xcp.beta, span, || Ratio::ppm(226_000)).value,
            gamma: fill(&mut xcp.gamma, span, || Ratio::ppm(100_000)).value,
            min_interval: min_interval.value,
            max_interval: max_interval.value,
            initial_interval: ms(50),
            allowed_queue: ms(2),
            capture: fill(&mut xcp.capture, span, || true).value,
        },
        follows_service: capacity.is_none(),
    }
}

fn group(
    name: &str,
    flow: &mut Flow,
    span: Span,
    path: Option<&[u32]>,
    hops: [Option<(BitRate, Duration)>; 2],
    first: Option<&Wire>,
    duration: Duration,
    findings: &mut Findings,
) -> Option<model::Group> {
    let count = flow.count.as_ref()?.value;
    let start = starts(flow, span, count, duration, findings);
    let segment = fill(&mut flow.segment, span, || PACKET_SIZE).value.0;
    let is_source = flow.law.as_ref()?.value.is_source();
    let kind = if is_source {
        source(flow, segment, findings).map(GroupKind::Source)
    } else {
        // The speed of the sender's interface (draft-03 §4.1.1.2). A host without an access link sits
        // at the router, and its interface limits nothing; but it must not ask without end, because
        // where no XCP router answers, the demand comes back as it left (draft-03 §5.6).
        let interface = |first: BitRate| BitRate(first.0.saturating_mul(10).min(RATE_MAX));
        let desired = hops[0].map(|(rate, _)| rate).or(first.map(|wire| interface(wire.rate)));
        tcp(flow, span, segment, desired, findings).map(GroupKind::Tcp)
    };
    let pipe = |(rate, delay)| Pipe { rate, delay: picos(delay) };
    let path = path?;
    Some(model::Group {
        name: name.into(),
        kind: kind?,
        count,
        path: path.to_vec(),
        back: path.iter().rev().map(|at| at ^ 1).collect(),
        access: hops[0].map(pipe),
        exit: hops[1].map(pipe),
        start,
        stop: flow.stop.as_ref().map_or(Time::NEVER, |stop| Time(stop.value.0)),
    })
}

fn starts(
    flow: &mut Flow,
    span: Span,
    count: u32,
    duration: Duration,
    findings: &mut Findings,
) -> model::Start {
    let place = findings.place();
    let start = fill(&mut flow.start, span, || Start::At(Duration(0)));
    let (first, every) = match start.value {
        Start::At(from) => (from, Duration(0)),
        Start::Every { every, from } => (from, every),
        Start::Uniform(within) => {
            if within.0 == 0 {
                let message = format!("`{place}.start.uniform` is zero");
                findings.error(
                    "scenario::range",
                    start.span,
                    message,
                    "allowed: above 0 s; for all at once, start = \"0 s\"",
                );
            } else if within > duration {
                let message = format!("`{place}`: some flows may start after the end, {duration}");
                findings.warning(
                    "scenario::start",
                    start.span,
                    message,
                    "starts are drawn from 0 s to `uniform`",
                );
            }
            (Duration(0), Duration(0))
        }
    };
    if first >= duration {
        let message = format!("`{place}` starts at {first}, when the run is over");
        findings.error("scenario::start", start.span, message, format!("allowed: before {duration}"));
    } else if every.0 > 0 {
        let in_time = (duration.0 - first.0).div_ceil(every.0);
        if in_time < u64::from(count) {
            let message =
                format!("`{place}`: {} of {count} flows start after the end", u64::from(count) - in_time);
            findings.warning(
                "scenario::start",
                start.span,
                message,
                format!("they send nothing in {duration}"),
            );
        }
    }
    if let Some(stop) = flow.stop.as_ref().filter(|stop| stop.value <= first) {
        let message = format!("`{place}` stops at {}, before it starts", stop.value);
        findings.error("scenario::start", stop.span, message, format!("allowed: after {first}"));
    }
    match start.value {
        Start::Uniform(within) => model::Start::Uniform { within: within.0 },
        _ => model::Start::Every { from: Time(first.0), every: every.0 },
    }
}

/// Keys that only a flow with acknowledgments knows.
fn warn_without_effect(flow: &Flow, findings: &mut Findings) {
    let keys = [
        ("ack", flow.ack.as_ref().map(|at| at.span)),
        ("awnd", flow.awnd.as_ref().map(|at| at.span)),
        ("delayed_ack", flow.delayed_ack.as_ref().map(|at| at.span)),
        ("size", flow.size.as_ref().map(|at| at.span)),
        ("initial_window", flow.initial_window.as_ref().map(|at| at.span)),
        ("min_rto", flow.min_rto.as_ref().map(|at| at.span)),
        ("recovery", flow.recovery.as_ref().map(|at| at.span)),
        ("ecn", flow.ecn.as_ref().map(|at| at.span)),
        ("profile", flow.profile.as_ref().map(|at| at.span)),
        ("app", flow.app.as_ref().map(|at| at.span)),
    ];
    for (key, span) in keys {
        if let Some(span) = span {
            let message = format!("`{}.{key}` has no effect on cbr and onoff", findings.place());
            findings.warning("scenario::no-effect", span, message, "they send datagrams from start to stop");
        }
    }
}

fn source(flow: &mut Flow, segment: u16, findings: &mut Findings) -> Option<SourceConfig> {
    warn_without_effect(flow, findings);
    match &mut flow.law.as_mut()?.value {
        FlowLaw::Cbr(cbr) => {
            Some(SourceConfig { segment, rate: cbr.rate.as_ref()?.value, pattern: Pattern::Constant })
        }
        FlowLaw::OnOff(onoff) => {
            let (on, off) = (onoff.on.as_ref()?, onoff.off.as_ref()?.value);
            if on.value.0 == 0 {
                let message = format!("`{}.law.onoff.on` is zero", findings.place());
                findings.error("scenario::range", on.span, message, "allowed: above 0 s");
            }
            let (on, span) = (on.value, on.span);
            let is_random = fill(&mut onoff.random, span, || false).value;
            let rate = onoff.rate.as_ref()?.value;
            Some(SourceConfig { segment, rate, pattern: Pattern::OnOff { on, off, is_random } })
        }
        _ => None,
    }
}

fn tcp(
    flow: &mut Flow,
    span: Span,
    segment: u16,
    desired: Option<BitRate>,
    findings: &mut Findings,
) -> Option<tcp::Config> {
    let is_ns2 = flow.profile.is_some();
    let recovery = recovery(flow, span, is_ns2, findings)?;
    let law = flow.law.as_mut()?;
    let is_xcp = matches!(law.value, FlowLaw::Xcp(_));
    let law = match &mut law.value {
        FlowLaw::Xcp(xcp) => SenderConfig::Xcp(xcp_flow(xcp, law.span, desired?, is_ns2)),
        FlowLaw::Cubic => SenderConfig::Cubic(cubic::Config::default()),
        _ => SenderConfig::Reno(reno::Config::default()),
    };
    let default_window = match (is_ns2, is_xcp) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => rfc5681_initial_window(segment),
    };
    let default_rto = Duration(if is_ns2 { 200_000_000 } else { 1_000_000_000 });
    let min_rto = fill(&mut flow.min_rto, span, || default_rto);
    if min_rto.value.0 == 0 {
        let message = format!("`{}.min_rto` is zero", findings.place());
        findings.error("scenario::range", min_rto.span, message, "allowed: above 0 s, such as \"200 ms\"");
    }
    let awnd = match &flow.awnd {
        None => None,
        Some(awnd) => Some(advertised(awnd, segment, findings)?),
    };
    let headers = HEADERS + if is_xcp { XCP_HEADER } else { 0 };
    if segment <= headers {
        let (place, given) = (findings.place(), flow.segment.as_ref()?.span);
        let message = format!("`{place}.segment` is {segment} B, all of it headers");
        findings.error("scenario::range", given, message, format!("allowed: {} B to 65535 B", headers + 1));
    }
    let app = app(flow, findings)?;
    Some(tcp::Config {
        segment,
        ack: fill(&mut flow.ack, span, || PacketSize(HEADERS)).value.0,
        law,
        initial_window: fill(&mut flow.initial_window, span, || default_window).value,
        awnd,
        recovery,
        min_rto: min_rto.value,
        delayed_ack: fill(&mut flow.delayed_ack, span, || false).value,
        ecn: fill(&mut flow.ecn, span, || false).value,
        ns2: is_ns2,
        app,
    })
}

/// RFC 5681 §3.1, with what a segment carries without its headers as SMSS.
fn rfc5681_initial_window(segment: u16) -> u32 {
    match segment.saturating_sub(HEADERS) {
        0..=1095 => 4,
        1096..=2190 => 3,
        2191.. => 2,
    }
}

/// What the flow says, else what its law's name says, else its profile, else SACK.
fn recovery(flow: &mut Flow, span: Span, is_ns2: bool, findings: &mut Findings) -> Option<tcp::Recovery> {
    let by_law = match flow.law.as_ref()?.value {
        FlowLaw::Reno => Some(Recovery::Reno),
        FlowLaw::NewReno => Some(Recovery::NewReno),
        FlowLaw::Sack => Some(Recovery::Sack),
        _ => None,
    };
    let default = by_law.unwrap_or(if is_ns2 { Recovery::Reno } else { Recovery::Sack });
    let recovery = fill(&mut flow.recovery, span, || default);
    if by_law.is_some_and(|by_law| by_law != recovery.value) {
        let message = format!("`{}.recovery` contradicts the law, which names another", findings.place());
        let help = "reno, newreno and sack are names of a recovery; leave `recovery` out";
        findings.error("scenario::law", recovery.span, message, help);
        return None;
    }
    Some(match recovery.value {
        Recovery::Sack => tcp::Recovery::Sack,
        Recovery::NewReno => tcp::Recovery::NewReno,
        Recovery::Reno => tcp::Recovery::Reno,
    })
}

fn xcp_flow(xcp: &mut XcpFlow, span: Span, desired: BitRate, is_ns2: bool) -> xcp::SenderConfig {
    xcp::SenderConfig {
        request: match fill(&mut xcp.request, span, || Request::Demand).value {
            Request::Demand => xcp::RequestPolicy::Demand,
            Request::Unlimited => xcp::RequestPolicy::Unlimited,
        },
        loss: match fill(&mut xcp.loss, span, || Loss::Tcp).value {
            Loss::Tcp => xcp::LossPolicy::Tcp,
            Loss::Maintain => xcp::LossPolicy::Maintain,
            Loss::Fallback => xcp::LossPolicy::Fallback,
        },
        clamp: fill(&mut xcp.clamp, span, || true).value,
        aging: fill(&mut xcp.aging, span, || Aging(None)).value.0,
        pacing: fill(&mut xcp.pacing, span, || false).value,
        rate_source: match fill(&mut xcp.rate, span, || StatedRate::Window).value {
            StatedRate::Window => xcp::RateSource::Window,
            StatedRate::Measured => xcp::RateSource::Measured,
        },
        price: fill(&mut xcp.price, span, || Ratio::ONE).value,
        desired_rate: ByteRate(fill(&mut xcp.desired_rate, span, || desired).value.0 / 8),
        ns2: is_ns2,
    }
}

/// Whole segments, at least one (contract 2).
fn advertised(awnd: &At<Amount>, segment: u16, findings: &mut Findings) -> Option<u32> {
    let segments = match awnd.value {
        Amount::Packets(packets) => packets,
        Amount::Bytes(bytes) => (bytes / u64::from(segment)).max(1),
        Amount::Bdp(_) => {
            let message = format!("`{}.awnd` is in BDP", findings.place());
            findings.error(
                "scenario::unit",
                awnd.span,
                message,
                "write packets or bytes, such as \"64 packets\"",
            );
            return None;
        }
    };
    // No more than is ever in flight; the largest value means unlimited.
    Some(u32::try_from(segments).unwrap_or(u32::MAX - 1).min(u32::MAX - 1))
}

fn app(flow: &mut Flow, findings: &mut Findings) -> Option<tcp::App> {
    let size = flow.size.clone();
    let Some(At { value: App::Bursts(bursts), span }) = &mut flow.app else {
        return Some(size.map_or(tcp::App::Endless, |size| tcp::App::Transfer(size.value)));
    };
    let (per_burst, pause) = (bursts.size.as_ref()?.value, bursts.pause.as_ref()?.value);
    let wait = match fill(&mut bursts.wait, *span, || Wait::Write).value {
        Wait::Write => tcp::Wait::Write,
        Wait::Ack => tcp::Wait::Ack,
    };
    let buffer = fill(&mut bursts.buffer, *span, || Bytes(16_000_000)).value;
    match size {
        None => Some(tcp::App::Bursts { size: per_burst, pause, wait, buffer }),
        // The first burst is all there is.
        Some(size) if size.value <= per_burst => Some(tcp::App::Transfer(size.value)),
        Some(size) => {
            let message = format!("`{}.size` is more than one burst, {per_burst}", findings.place());
            let help = "bursts go on until `stop`: leave `size` out, or make it at most one burst";
            findings.error("scenario::app", size.span, message, help);
            None
        }
    }
}
