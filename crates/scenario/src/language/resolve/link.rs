//! Links: rates, delays, queues, laws.

use congestlab_core::units::{BitRate, Bytes, Duration};
use congestlab_net::capacity::CapacityFrom;
use congestlab_net::errors::ErrorRate;
use congestlab_net::port::{self, LawConfig, PortConfig};
use congestlab_net::queue::step::Threshold;
use congestlab_net::queue::{self, Limit, red};
use congestlab_net::random::Probability;
use congestlab_net::service::{RateError, Service, Steps};
use congestlab_net::trace::Trace;

use super::{PACKET_SIZE, check, classes, picos, xcp_i};
use crate::language::file::{Errors, FeedbackAt, Link, LinkProfile, Police, Rate, Reverse};
use crate::language::law::{Discipline, LinkLaw, Red, Step, StepAt};
use crate::language::queue::{Amount, PACKETS_MAX, bdp_packets};
use crate::language::{file, impairments};
use congestlab_text::decode::{At, Chance, Named, fill};
use congestlab_text::diagnostic::{Findings, Span};
use congestlab_text::files::Files;

/// Limit of a queue that no flow crosses.
const QUEUE_WITHOUT_FLOWS: Amount = Amount::Packets(100);
/// Larger recordings are not links of a testbed any more.
pub(crate) const TRACE_BYTES_MAX: u64 = 1 << 28;

/// Capacity and delay of a link, before queues are known.
pub(super) struct Wire {
    service: Service,
    pub(super) delay: Duration,
    /// For bandwidth-delay products and what a flow can use.
    pub(super) rate: BitRate,
}

/// Rates and delays of all directions. Fills in the reverses.
pub(super) fn wires(links: &mut Named<Link>, files: &Files, findings: &mut Findings) -> Vec<Option<Wire>> {
    let mut wires = Vec::new();
    for (name, At { value: link, span }) in &mut links.0 {
        let span = *span;
        findings.at = vec!["links".into(), name.value.clone()];
        fill(&mut link.at, span, || name.value.clone());
        let delay = fill(&mut link.delay, span, || Duration(0)).value;
        fill(&mut link.packet_size, span, || PACKET_SIZE);
        let forward = wire(link, span, delay, files, findings);
        // The mirror: same rate, delay and queue limit. Its law and queue are `mirror`'s affair.
        let reverse = link.reverse.get_or_insert_with(|| At { value: Reverse::default(), span });
        let (back, span) = (&mut *reverse.value.0, reverse.span);
        fill(&mut back.at, span, || format!("{}.reverse", name.value));
        let delay = fill(&mut back.delay, span, || delay).value;
        back.packet_size = back.packet_size.take().or(link.packet_size.clone());
        back.queue = back.queue.take().or(link.queue.clone());
        let backward = if back.rate.is_some() {
            findings.at.push("reverse".into());
            wire(back, span, delay, files, findings)
        } else {
            back.rate = link.rate.clone();
            forward.as_ref().map(|wire| Wire { service: wire.service.clone(), delay, rate: wire.rate })
        };
        wires.push(forward);
        wires.push(backward);
    }
    wires
}

fn wire(link: &Link, span: Span, delay: Duration, files: &Files, findings: &mut Findings) -> Option<Wire> {
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
            let trace = trace(path, files, findings)?;
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

fn trace(path: &At<String>, files: &Files, findings: &mut Findings) -> Option<Trace> {
    match read_trace(&path.value, files) {
        Ok(trace) => Some(trace),
        Err(reason) => {
            let message = format!("`{}.rate.trace`: \"{}\": {reason}", findings.place(), path.value);
            let help = "a trace is a file, relative to the scenario, with one whole number of milliseconds per \
                        line, never decreasing, the last above 0";
            findings.error("scenario::trace", path.span, message, help);
            None
        }
    }
}

fn read_trace(name: &str, files: &Files) -> Result<Trace, String> {
    let text = files.read(name, TRACE_BYTES_MAX).map_err(|error| format!("can not be read: {error}"))?;
    Trace::parse(&text).map_err(|error| error.to_string())
}

pub(super) fn port(
    link: &mut Link,
    span: Span,
    wire: &Wire,
    round_trip: Option<Duration>,
    base_rtt: Duration,
    duration: Duration,
    findings: &mut Findings,
) -> Option<PortConfig> {
    let packet_size = fill(&mut link.packet_size, span, || PACKET_SIZE).value.0;
    let default_queue = if round_trip.is_some() { Amount::ONE_BDP } else { QUEUE_WITHOUT_FLOWS };
    let queue = fill(&mut link.queue, span, || default_queue);
    let to_packets = |amount: &At<Amount>, key: &str, findings: &mut Findings| {
        packets(amount, key, wire.rate, round_trip, packet_size, findings)
    };
    let to_limit = |amount: &At<Amount>, key: &str, findings: &mut Findings| {
        Some(match amount.value {
            Amount::Bytes(bytes) => Limit::Bytes(bytes),
            _ => Limit::Packets(to_packets(amount, key, findings)?),
        })
    };
    let mut limit = to_limit(&queue, "queue", findings)?;
    let has_law = link.law.is_some() || findings.is_unreadable("law");
    fill(&mut link.discipline, span, || Discipline::DropTail);
    let At { value: discipline, span: discipline_span } = link.discipline.as_mut()?;
    let discipline = match discipline {
        Discipline::DropTail => queue::Discipline::DropTail,
        Discipline::PrioDropTail(prio) => queue::Discipline::PrioDropTail(match &prio.probe_threshold {
            Some(amount) => to_limit(amount, "discipline.prio-droptail.probe_threshold", findings)?,
            None => Limit::None,
        }),
        Discipline::Red(red) => {
            let thresholds = thresholds(red, "discipline.red", *discipline_span, to_packets, findings)?;
            queue::Discipline::Red(classes::red(red, *discipline_span, thresholds, packet_size))
        }
        Discipline::Step(step) => {
            queue::Discipline::Step(self::step(step, *discipline_span, limit, to_limit, findings)?)
        }
        Discipline::XcpTcp(two) => {
            if !has_law {
                let message =
                    format!("`{}.discipline` is xcp-tcp, but the link has no law", findings.place());
                let help = "an XCP class needs law = \"xcp\"; without XCP write \"droptail\" or \"red\"";
                findings.error("scenario::classes", *discipline_span, message, help);
            } else if let Some(law) = &link.law
                && law.value.xcp_i().is_none()
            {
                let name = law.value.0.name;
                let message =
                    format!("`{}.discipline` is xcp-tcp, but the link's law is {name}", findings.place());
                let help =
                    "its classes are XCP's packets and the rest; such a link needs law = \"xcp\" or \"pxcp\"";
                findings.error("scenario::classes", law.span, message, help);
            }
            let of_red = |red: &Red, findings: &mut Findings| {
                thresholds(red, "discipline.xcp-tcp.red", *discipline_span, to_packets, findings)
            };
            let (config, tcp_limit) =
                classes::discipline(two, *discipline_span, &queue, packet_size, to_limit, of_red, findings)?;
            limit = tcp_limit;
            queue::Discipline::XcpTcp(config)
        }
        Discipline::Told(chosen) => {
            check(chosen, *discipline_span, findings);
            chosen.write_rest(*discipline_span);
            chosen.config.clone()
        }
    };
    let errors = match &mut link.error {
        None => None,
        Some(At { value: Errors { packet_error_rate, bit_error_rate, gilbert_elliott }, span }) => {
            match (packet_error_rate, bit_error_rate, gilbert_elliott) {
                (Some(rate), None, None) => Some(ErrorRate::Packet { rate: rate.value.0, size: packet_size }),
                (None, Some(rate), None) => Some(ErrorRate::Bit(rate.value.0)),
                (None, None, Some(bursts)) => impairments::bursts(bursts, packet_size, findings),
                (None, None, None) if findings.is_unreadable("error") => None,
                _ => {
                    let message = format!("`{}.error` needs one of its three keys", findings.place());
                    let help = "write { packet_error_rate = 0.01 }, { bit_error_rate = 1e-7 } or \
                            { gilbert_elliott = { good = \"1 s\", bad = \"20 ms\", packet_error_rate = 0.5 } }";
                    findings.error("scenario::type", *span, message, help);
                    None
                }
            }
        }
    };
    let profile = link.profile.as_ref().map(|profile| profile.value);
    let law = link
        .law
        .as_mut()
        .map(|At { value: chosen, span }| self::law(chosen, *span, wire, base_rtt, profile, findings));
    let capacity_from = capacity_from(link, has_law, wire, packet_size, findings);
    let law = law.map(|law| LawConfig {
        // Where a source is followed, the rate at the beginning is the one that holds without it.
        follows_service: law.follows_service && capacity_from.is_none(),
        ..law
    });
    let feedback_at = fill(&mut link.feedback_at, span, || FeedbackAt::Departure).value;
    let police = police(link, has_law, findings);
    Some(PortConfig {
        limit,
        discipline,
        law,
        capacity_from,
        feedback_at: match feedback_at {
            FeedbackAt::Departure => port::FeedbackAt::Departure,
            FeedbackAt::Enqueue => port::FeedbackAt::Enqueue,
        },
        police,
        errors,
        ack_blackout: impairments::blackouts(link.ack_blackout.as_ref(), duration, findings)?,
        reorder: impairments::reorder(link.reorder.as_ref(), findings),
        ecn: impairments::ecn(link.ecn.as_mut(), findings),
        ack_loss: Probability::from_f64(fill(&mut link.ack_loss, span, || Chance(0.0)).value.0),
        ..PortConfig::new(wire.service.clone(), picos(wire.delay), limit)
    })
}

/// The source of the capacity of the link's law.
fn capacity_from(
    link: &mut Link,
    has_law: bool,
    wire: &Wire,
    packet_size: u16,
    findings: &mut Findings,
) -> Option<CapacityFrom> {
    let At { value: source, span } = link.capacity_from.as_mut()?;
    if !has_law {
        let message = format!("`{}.capacity_from` is there, but the link has no law", findings.place());
        findings.error(
            "scenario::law",
            *span,
            message,
            "write a law that is to be told, such as law = \"xcp\"",
        );
    }
    source.resolve(*span, &wire.service, packet_size, findings)
}

/// The records of the link's policer, which reads headers of XCP.
fn police(link: &Link, has_law: bool, findings: &mut Findings) -> Option<u32> {
    let At { value: Police(records), span } = link.police.as_ref().filter(|police| police.value.0 > 0)?;
    let help = "it measures flows against what XCP grants them: write law = \"xcp\", \"pxcp\" or \"xcp2\", or police = 0";
    let place = findings.place();
    match &link.law {
        None if has_law => {}
        None => {
            let message = format!("`{place}.police` is {records}, but the link has no law");
            findings.error("scenario::law", *span, message, help);
        }
        Some(law) if law.value.xcp_i().is_none() => {
            let message =
                format!("`{place}.police` is {records}, but the link's law is {}", law.value.0.name);
            findings.error("scenario::law", *span, message, help);
        }
        Some(_) => {}
    }
    Some(*records)
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
    key: &str,
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
            let low = to_packets(min, &format!("{key}.min"), findings);
            let high = to_packets(max, &format!("{key}.max"), findings);
            (false, low?, high?)
        }
        _ => {
            let message = format!("`{}.{key}` mixes bytes and packets", findings.place());
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
            let message = format!("`{}.{key}` has min {low} and max {high}", findings.place());
            findings.error("scenario::red", min.span, message, "allowed: min below max, both below 4 GB");
            None
        }
    }
}

/// K in what waits or in time, and when it is looked at.
fn step(
    step: &mut Step,
    span: Span,
    limit: Limit,
    to_limit: impl Fn(&At<Amount>, &str, &mut Findings) -> Option<Limit>,
    findings: &mut Findings,
) -> Option<queue::step::Config> {
    let place = format!("{}.discipline.step", findings.place());
    let threshold = match (&step.above, &step.sojourn) {
        (Some(above), None) => {
            let most = to_limit(above, "discipline.step.above", findings)?;
            let is_never = match (most, limit) {
                (Limit::Packets(most), Limit::Packets(limit)) | (Limit::Bytes(most), Limit::Bytes(limit)) => {
                    most >= limit
                }
                _ => false,
            };
            if is_never {
                let message = format!("`{place}.above` is as long as the queue can be: nothing is marked");
                findings.warning("scenario::no-effect", above.span, message, "write less than `queue`");
            }
            match most {
                Limit::Packets(packets) => Threshold::Packets(packets),
                Limit::Bytes(bytes) => Threshold::Bytes(Bytes(bytes)),
                Limit::None => return None,
            }
        }
        (None, Some(sojourn)) => {
            if let Some(at) = step.at.as_ref().filter(|at| at.value == StepAt::Enqueue) {
                let message = format!("`{place}.at` is \"enqueue\", when no packet has waited yet");
                let help =
                    "with `sojourn` leave it out or write \"dequeue\"; `above` can be looked at both times";
                findings.error("scenario::step", at.span, message, help);
            }
            fill(&mut step.at, span, || StepAt::Dequeue);
            Threshold::Sojourn(sojourn.value)
        }
        _ => {
            let message = format!("`{place}` needs `above` or `sojourn`, and one of them only");
            let help = "write { step = { above = \"20 packets\" } } or { step = { sojourn = \"1 ms\" } }";
            findings.error("scenario::step", span, message, help);
            return None;
        }
    };
    let at = match fill(&mut step.at, span, || StepAt::Enqueue).value {
        StepAt::Enqueue => queue::step::At::Enqueue,
        StepAt::Dequeue => queue::step::At::Dequeue,
    };
    Some(queue::step::Config { threshold, at, drop: fill(&mut step.drop, span, || false).value })
}

fn law(
    LinkLaw(law): &mut LinkLaw,
    span: Span,
    wire: &Wire,
    base_rtt: Duration,
    profile: Option<LinkProfile>,
    findings: &mut Findings,
) -> LawConfig {
    if let Some(profile) = profile {
        law.follow(profile.word());
    }
    let follows_service = law.span("capacity").is_none();
    law.set_round_trip(base_rtt);
    if follows_service {
        law.config.set_capacity(wire.service.rate_at(0).bytes());
    }
    check(law, span, findings);
    law.write_rest(span);
    xcp_i::link(law, span, findings);
    LawConfig { config: law.config.clone(), follows_service }
}
