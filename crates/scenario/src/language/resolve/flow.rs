//! Flows: paths, starts, senders and what they send.

use std::collections::{BTreeMap, BTreeSet};

use congestlab_core::law::settings::Settings as _;
use congestlab_core::law::{self as laws, Protocol, SenderConfig};
use congestlab_core::units::{BitRate, Bytes, Duration, Time, mul_div};
use congestlab_net::packet::UNLIMITED;
use congestlab_net::source::{Pattern, SourceConfig};
use congestlab_net::{tcp, xcp_i};
use congestlab_sim::model::{self, GroupKind, Pipe};

use super::{PACKET_SIZE, check, picos};
use crate::language::file::{App, Flow, FlowProfile, Hop, Lie, Link, Recovery, SlowStart, Start, Wait};
use crate::language::impairments::Switch;
use crate::language::law::FlowLaw;
use crate::language::load;
use crate::language::load::{Awnd, Size};
use crate::language::queue::Amount;
use crate::language::settings::Chosen;
use congestlab_text::decode::{At, Named, PacketSize, RATE_MAX, fill};
use congestlab_text::diagnostic::{Findings, Span, choices};

/// More packets or writes at one instant than any host makes.
const AT_ONCE_MAX: u32 = 1_000_000;
/// Pause between writes below which they count as made at one instant: a buffer takes them as fast as they come.
const PAUSE_MIN: Duration = Duration(1_000_000);

/// IP and TCP headers without options, which `ack` is the size of.
const HEADERS: u16 = 40;

/// Random spans of sending that a packet may take: each is drawn, and of more the lengths average out.
const SPANS_MAX: u64 = 1000;

/// Links by their names, in the order of the file and for looking them up.
pub(super) struct Names<'a> {
    all: Vec<&'a str>,
    index: BTreeMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    pub(super) fn new(links: &'a Named<Link>) -> Self {
        let all: Vec<&str> = links.0.iter().map(|(name, _)| name.value.as_str()).collect();
        Self { index: all.iter().copied().zip(0..).collect(), all }
    }
}

/// A path as indices of link directions. `None` after an error.
pub(super) fn path(
    list: Option<&At<Vec<At<String>>>>,
    links: &Names<'_>,
    findings: &mut Findings,
) -> Option<Vec<u32>> {
    let list = list?;
    let place = format!("{}.path", findings.place());
    let known = || links.all.iter().copied();
    let (mut path, mut crossed) = (Vec::new(), BTreeSet::new());
    for link in &list.value {
        let (base, reverse) = match link.value.strip_suffix(".reverse") {
            Some(base) => (base, 1),
            None => (link.value.as_str(), 0),
        };
        let Some(&index) = links.index.get(base) else {
            let message = format!("`{place}` names \"{}\", which is no link", link.value);
            findings.error("scenario::path", link.span, message, choices(&link.value, known()));
            return None;
        };
        if !crossed.insert(index) {
            let message = format!("`{place}` repeats the link \"{base}\"");
            let help = "a path crosses each link at most once, in one direction; ACKs go back by themselves";
            findings.error("scenario::path", link.span, message, help);
            return None;
        }
        path.push(2 * index + reverse);
    }
    if path.is_empty() {
        let message = format!("`{place}` names no link");
        findings.error("scenario::path", list.span, message, choices("", known()));
        return None;
    }
    Some(path)
}

/// The way of the ACKs: the other directions of the links, from the last one on.
fn back(path: &[u32]) -> Vec<u32> {
    path.iter().rev().map(|at| at ^ 1).collect()
}

/// Other paths from later times on. `None` after an error.
pub(super) fn switches(
    list: Option<&At<Vec<At<Switch>>>>,
    first: Option<&[u32]>,
    duration: Duration,
    links: &Names<'_>,
    findings: &mut Findings,
) -> Option<Vec<model::Switch>> {
    let mut switches: Vec<model::Switch> = Vec::new();
    for (index, switch) in list.into_iter().flat_map(|list| &list.value).enumerate() {
        findings.at.push(format!("switch[{index}]"));
        let at = switch.value.at.as_ref();
        if let Some(at) = at {
            let place = format!("`{}.at`", findings.place());
            if at.value >= duration {
                let message = format!("{place} is {}, when the run is over", at.value);
                findings.error("scenario::switch", at.span, message, format!("allowed: before {duration}"));
            }
            if switches.last().is_some_and(|before| before.at >= picos(at.value)) {
                let message = format!("{place} is {}, not after the switch before", at.value);
                findings.error(
                    "scenario::switch",
                    at.span,
                    message,
                    "write switches in the order of their times",
                );
            }
        }
        let path = path(switch.value.path.as_ref(), links, findings);
        let before = switches.last().map(|before| before.path.as_slice()).or(first);
        if path.is_some() && path.as_deref() == before {
            let message = format!("`{}` is to the path that the flow takes already", findings.place());
            let help = "write another path, or leave the switch out";
            findings.warning("scenario::no-effect", switch.span, message, help);
        }
        findings.at.pop();
        let path = path?;
        switches.push(model::Switch { at: picos(at?.value), back: back(&path), path });
    }
    Some(switches)
}

pub(super) fn hop(hop: &mut Option<At<Hop>>) -> Option<(BitRate, Duration)> {
    let hop = hop.as_mut()?;
    let delay = fill(&mut hop.value.delay, hop.span, || Duration(0)).value;
    Some((hop.value.rate.as_ref()?.value, delay))
}

/// Nanoseconds that a packet takes to leave each hop of these rates, and its ACK on the way back.
pub(super) fn departures(flow: &Flow, rates: impl Iterator<Item = BitRate>) -> u64 {
    let packet = flow.segment.as_ref().map_or(PACKET_SIZE, |at| at.value).0;
    let ack = flow.ack.as_ref().map_or(HEADERS, |at| at.value.0);
    let bits = 8 * (u64::from(packet) + u64::from(ack));
    rates.map(|rate| mul_div(bits, 1_000_000_000, rate.0.max(1))).fold(0, u64::saturating_add)
}

/// How a flow is connected.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Access and exit.
    pub(super) hops: [Option<(BitRate, Duration)>; 2],
    /// Rate of the first link.
    pub(super) first: Option<BitRate>,
    /// The longest round trip without queues of the flows that share a link with it.
    pub(super) base_rtt: Duration,
}

impl Line {
    /// The speed of the sender's interface (draft-03 §4.1.1.2). A host without an access link sits at the router, and its
    /// interface limits nothing; but it must not ask without end, because where no XCP router answers, the demand comes
    /// back as it left (draft-03 §5.6). One that begins at this speed, asked by nobody, has that of the link.
    fn most(self, begins_at_it: bool) -> Option<BitRate> {
        let interface = |first: BitRate| BitRate(first.0.saturating_mul(10).min(RATE_MAX));
        let access = self.hops[0].map(|(rate, _)| rate);
        access.or(self.first.map(|first| if begins_at_it { first } else { interface(first) }))
    }
}

pub(super) fn group(
    name: &str,
    flow: &mut At<Flow>,
    path: Option<&[u32]>,
    line: Line,
    duration: Duration,
    findings: &mut Findings,
) -> Option<model::Group> {
    let At { value: flow, span } = flow;
    let span = *span;
    let count = flow.count.as_ref()?.value;
    let start = starts(flow, span, count, duration, findings);
    let segment = fill(&mut flow.segment, span, || PACKET_SIZE).value.0;
    let is_source = flow.law.as_ref()?.value.is_source();
    let schedule = load::schedule(flow.schedule.as_ref(), count, duration, findings);
    if let (Some(at), false) = (&flow.schedule, is_source) {
        let message = format!("`{}.schedule` is for cbr and onoff", findings.place());
        let help = "flows with acknowledgments have start, stop and app";
        findings.error("scenario::schedule", at.span, message, help);
    }
    let sizes = if is_source { None } else { sizes(flow, segment, findings) };
    let kind = if is_source {
        source(flow, segment, findings).map(GroupKind::Source)
    } else {
        tcp(flow, span, segment, line, findings).map(GroupKind::Tcp)
    };
    let is_interoperable = match &mut flow.law {
        Some(At { value: FlowLaw::Sender(chosen), span }) if chosen.config.needs().is_interoperable => {
            fill(&mut chosen.beside.interoperable, *span, || false).value
        }
        _ => false,
    };
    let pipe = |(rate, delay)| Pipe { rate, delay: picos(delay) };
    let path = path?;
    Some(model::Group {
        name: name.into(),
        kind: kind?,
        count,
        path: path.to_vec(),
        back: back(path),
        switches: Vec::new(),
        access: line.hops[0].map(pipe),
        exit: line.hops[1].map(pipe),
        start,
        stop: flow.stop.as_ref().map_or(Time::NEVER, |stop| Time(stop.value.0)),
        schedule,
        sizes,
        interoperable: is_interoperable.then(|| {
            let mut config = xcp_i::Config::default();
            config.law.set_round_trip(line.base_rtt, &|_| false);
            config
        }),
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
        Start::Poisson { gap, from } => (from, gap),
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
        Start::Poisson { gap, from } => model::Start::Poisson { from: Time(from.0), gap: gap.0 },
        _ => model::Start::Every { from: Time(first.0), every: every.0 },
    }
}

/// Keys that only a flow with acknowledgments knows.
fn warn_without_effect(flow: &Flow, findings: &mut Findings) {
    let keys = [
        ("ack", flow.ack.as_ref().map(|at| at.span)),
        ("awnd", flow.awnd.as_ref().map(|at| at.span)),
        ("receiver", flow.receiver.as_ref().map(|at| at.span)),
        ("delayed_ack", flow.delayed_ack.as_ref().map(|at| at.span)),
        ("lie", flow.lie.as_ref().map(|at| at.span)),
        ("size", flow.size.as_ref().map(|at| at.span)),
        ("initial_window", flow.initial_window.as_ref().map(|at| at.span)),
        ("min_rto", flow.min_rto.as_ref().map(|at| at.span)),
        ("recovery", flow.recovery.as_ref().map(|at| at.span)),
        ("ecn", flow.ecn.as_ref().map(|at| at.span)),
        ("profile", flow.profile.as_ref().map(|at| at.span)),
        ("slow_start", flow.slow_start.as_ref().map(|at| at.span)),
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
            let packet = Duration(u64::from(segment) * 8_000_000_000 / rate.0);
            let least = Duration(packet.0 / SPANS_MAX);
            if is_random && on < least {
                let message = format!(
                    "`{}.law.onoff.on` is {on}, and a packet takes {packet}: more than {SPANS_MAX} random spans",
                    findings.place()
                );
                let help = format!(
                    "allowed: from {least} on; so many make a constant rate: write cbr with their mean"
                );
                findings.error("scenario::range", span, message, help);
            }
            Some(SourceConfig { segment, rate, pattern: Pattern::OnOff { on, off, is_random } })
        }
        _ => None,
    }
}

fn tcp(
    flow: &mut Flow,
    span: Span,
    segment: u16,
    line: Line,
    findings: &mut Findings,
) -> Option<tcp::Config> {
    let profile = flow.profile.as_ref().map(|profile| (profile.value, profile.span));
    let follows = |which| profile.is_some_and(|(profile, _)| profile == which);
    let (is_ns2, is_linux) = (follows(FlowProfile::Ns2), follows(FlowProfile::Linux));
    let recovery = recovery(flow, span, is_ns2, findings)?;
    let At { value: law, span: law_span } = flow.law.as_mut()?;
    let FlowLaw::Sender(chosen) = law else { return None };
    let name = chosen.name;
    let law_span = *law_span;
    if is_linux && !is_of_linux(name, &chosen.config, flow.recovery.as_ref()?, profile?.1, findings) {
        return None;
    }
    let law = self::law(chosen, law_span, line, profile, findings)?;
    let linux = slow_start(flow, span, is_linux, name, findings);
    if let Some(ecn) = flow.ecn.as_ref().filter(|ecn| ecn.value && law.needs().owns_ecn) {
        let message =
            format!("`{}.ecn` is true, but {name} has the two ECN bits for itself", findings.place());
        let help = "RFC 3168's codes would be read as its own; leave `ecn` out";
        findings.error("scenario::ecn", ecn.span, message, help);
    }
    let own_window = || law.needs().initial_window.unwrap_or_else(|| rfc5681_initial_window(segment));
    let default_window = match profile {
        Some((FlowProfile::Ns2, _)) => 2,
        Some((FlowProfile::Linux, _)) => 10,
        _ => own_window(),
    };
    let default_rto = Duration(if is_ns2 || is_linux { 200_000_000 } else { 1_000_000_000 });
    let min_rto = fill(&mut flow.min_rto, span, || default_rto);
    if min_rto.value.0 == 0 {
        let message = format!("`{}.min_rto` is zero", findings.place());
        findings.error("scenario::range", min_rto.span, message, "allowed: above 0 s, such as \"200 ms\"");
    }
    let each_acknowledged = law.needs().each_acknowledged;
    if let Some(delayed) = flow.delayed_ack.as_ref().filter(|delayed| delayed.value && each_acknowledged) {
        let message = format!("`{}.delayed_ack` has no effect on {name}", findings.place());
        let help = "its receiver acknowledges each packet, for each says something of its own";
        findings.warning("scenario::no-effect", delayed.span, message, help);
    }
    let lie = lie(flow, &law, findings);
    let initial_window = fill(&mut flow.initial_window, span, || default_window);
    if initial_window.value > AT_ONCE_MAX {
        let message = format!("`{}.initial_window` is {} packets", findings.place(), initial_window.value);
        let help = format!("allowed: 1 to {AT_ONCE_MAX}, which leave at once");
        findings.error("scenario::range", initial_window.span, message, help);
    }
    let (awnd, advertise) = window(flow, segment, findings)?;
    let headers = HEADERS + law.needs().header_bytes;
    if segment <= headers {
        let (place, given) = (findings.place(), flow.segment.as_ref()?.span);
        let message = format!("`{place}.segment` is {segment} B, all of it headers");
        findings.error("scenario::range", given, message, format!("allowed: {} B to 65535 B", headers + 1));
    }
    let app = app(flow, segment, findings)?;
    Some(tcp::Config {
        segment,
        ack: fill(&mut flow.ack, span, || PacketSize(HEADERS)).value.0,
        law,
        initial_window: initial_window.value,
        window_most: Bytes(u64::MAX),
        awnd,
        advertise,
        recovery,
        min_rto: min_rto.value,
        delayed_ack: fill(&mut flow.delayed_ack, span, || is_linux).value && !each_acknowledged,
        ecn: fill(&mut flow.ecn, span, || false).value,
        lie,
        ns2: is_ns2,
        linux,
        app,
        // Whoever runs the group says when it stops and what is measured.
        stop: Time::NEVER,
        measure: tcp::Measure::ALWAYS,
    })
}

/// The lie of a flow's receivers, who have none to tell where ACKs return nothing that links say.
fn lie(flow: &Flow, law: &SenderConfig, findings: &mut Findings) -> Option<laws::Lie> {
    let written = flow.lie.as_ref()?;
    if !laws::Echo::new(law, Bytes(1500)).takes_part() && !flow.ecn.as_ref().is_some_and(|ecn| ecn.value) {
        let message = format!("`{}.lie` has no effect on {}", findings.place(), law.name());
        let help = "its ACKs return nothing that links say; write `ecn = true` to hide marks";
        findings.warning("scenario::no-effect", written.span, message, help);
    }
    Some(match written.value {
        Lie::Most => laws::Lie::Most,
        Lie::Asked => laws::Lie::Asked,
        Lie::Increases => laws::Lie::Increases,
    })
}

/// True if a flow can have the ways of Linux, which repairs losses by SACK and knows when slow start is over.
fn is_of_linux(
    name: &str,
    law: &SenderConfig,
    recovery: &At<Recovery>,
    span: Span,
    findings: &mut Findings,
) -> bool {
    let fits = |name: &str, law: &SenderConfig| {
        law.needs().slow_start.is_some()
            && own_recovery(name).is_none_or(|recovery| recovery == Recovery::Sack)
    };
    if !fits(name, law) {
        let all =
            Protocol::all().filter(|known| known.sender.as_ref().is_some_and(|law| fits(known.name, law)));
        let all: Vec<&str> = all.map(|known| known.name).collect();
        let message = format!("`{}.profile` is \"linux\", whose ways do not fit {name}", findings.place());
        let help = format!("allowed with it: law = {}", all.join(", "));
        findings.error("scenario::profile", span, message, help);
        return false;
    }
    if recovery.value != Recovery::Sack {
        let message = format!("`{}.recovery` contradicts the profile \"linux\"", findings.place());
        let help = "Linux repairs losses by SACK, which RACK and TLP find; leave `recovery` out";
        findings.error("scenario::profile", recovery.span, message, help);
        return false;
    }
    true
}

/// The slow start of a sender with the ways of Linux, where CUBIC alone looks for the end of its own.
fn slow_start(
    flow: &mut Flow,
    span: Span,
    is_linux: bool,
    name: &str,
    findings: &mut Findings,
) -> Option<tcp::SlowStart> {
    if !is_linux {
        if let Some(written) = &flow.slow_start {
            let message = format!("`{}.slow_start` is of the profile \"linux\"", findings.place());
            let help = "write profile = \"linux\" too, or leave it out: the law has its own slow start";
            findings.error("scenario::profile", written.span, message, help);
        }
        return None;
    }
    let default = if name == "cubic" { SlowStart::HyStart } else { SlowStart::Standard };
    Some(match fill(&mut flow.slow_start, span, || default).value {
        SlowStart::Standard => tcp::SlowStart::Standard,
        SlowStart::HyStart => tcp::SlowStart::HyStart,
        SlowStart::HyStartPlus => tcp::SlowStart::HyStartPlus,
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

/// Returns the recovery that the flow names, else that of its law's name, else of its profile, else SACK.
fn recovery(flow: &mut Flow, span: Span, is_ns2: bool, findings: &mut Findings) -> Option<tcp::Recovery> {
    let name = match &flow.law.as_ref()?.value {
        FlowLaw::Sender(chosen) => chosen.name,
        _ => "",
    };
    let by_law = own_recovery(name);
    let default = by_law.unwrap_or(if is_ns2 { Recovery::Reno } else { Recovery::Sack });
    let recovery = fill(&mut flow.recovery, span, || default);
    if by_law.is_some_and(|by_law| by_law != recovery.value) {
        let message = format!("`{}.recovery` contradicts the law, which names another", findings.place());
        let help = "reno, newreno, sack and fack are names of a recovery; leave `recovery` out";
        findings.error("scenario::law", recovery.span, message, help);
        return None;
    }
    Some(match recovery.value {
        Recovery::Sack => tcp::Recovery::Sack,
        Recovery::Fack => tcp::Recovery::Fack,
        Recovery::NewReno => tcp::Recovery::NewReno,
        Recovery::Reno => tcp::Recovery::Reno,
    })
}

/// The recovery that a law's name names.
fn own_recovery(name: &str) -> Option<Recovery> {
    match name {
        "reno" => Some(Recovery::Reno),
        "newreno" => Some(Recovery::NewReno),
        "sack" => Some(Recovery::Sack),
        "fack" => Some(Recovery::Fack),
        _ => None,
    }
}

/// The law of a sender, told of its line what the file does not say.
fn law(
    law: &mut Chosen<SenderConfig>,
    span: Span,
    line: Line,
    profile: Option<(FlowProfile, Span)>,
    findings: &mut Findings,
) -> Option<SenderConfig> {
    if let Some((profile, span)) = profile {
        follow(law, profile.word(), span, findings);
    }
    law.set_round_trip(line.base_rtt);
    let needs = law.config.needs();
    if needs.asks.is_some() {
        law.write_rate("desired_rate", line.most(needs.begins_at_line_rate)?, span);
    }
    check(law, span, findings);
    law.write_rest(span);
    Some(law.config.clone())
}

/// Has a law follow an implementation, and tells what has no effect then.
fn follow(law: &mut Chosen<SenderConfig>, profile: &str, span: Span, findings: &mut Findings) {
    let place = findings.place();
    let followed = law.follow(profile);
    if let Some(stranger) = followed.stranger {
        let message = format!("`{place}.profile` \"{profile}\" has no effect on {}", law.name);
        findings.warning("scenario::no-effect", span, message, stranger);
    }
    for key in followed.ignored {
        if let Some(span) = law.span(key) {
            let message =
                format!("`{place}.law.{}.{key}` has no effect with profile \"{profile}\"", law.name);
            findings.warning("scenario::no-effect", span, message, followed.known);
        }
    }
}

/// The largest window that the receiver advertises, and what limits it beside.
fn window(flow: &Flow, segment: u16, findings: &mut Findings) -> Option<(Option<u32>, tcp::Advertise)> {
    let place = findings.place();
    let mut advertise = tcp::Advertise::Always;
    let mut awnd = None;
    match flow.awnd.as_ref().map(|at| (&at.value, at.span)) {
        None => {}
        Some((Awnd::Fixed(amount), span)) => {
            awnd = Some(advertised(&At { value: *amount, span }, segment, findings)?);
        }
        Some((Awnd::Growing(growth), _)) => {
            let from = advertised(growth.from.as_ref()?, segment, findings)?;
            let per_ack = advertised(growth.per_ack.as_ref()?, segment, findings)?;
            if let Some(to) = &growth.to {
                let most = advertised(to, segment, findings)?;
                if most < from {
                    let message = format!("`{place}.awnd` grows from {from} to {most} packets");
                    findings.error("scenario::range", to.span, message, "allowed: at least `from`");
                }
                awnd = Some(most);
            }
            advertise = tcp::Advertise::Growing { from, per_ack };
        }
    }
    if let Some(At { value: reader, span }) = &flow.receiver {
        let (rate, buffer) = (reader.rate.as_ref()?.value, reader.buffer.as_ref()?);
        if buffer.value.0 < segment.into() {
            let message = format!("`{place}.receiver.buffer` is {}, less than a segment", buffer.value);
            findings.error("scenario::range", buffer.span, message, format!("allowed: from {segment} B on"));
        }
        if advertise != tcp::Advertise::Always {
            let message = format!("`{place}` has a window that grows and one that a reader leaves");
            let help = "write awnd = { from = ... } or receiver = { rate = ... }; an awnd that is an amount bounds both";
            findings.error("scenario::type", *span, message, help);
        }
        advertise = tcp::Advertise::Reading { rate, buffer: buffer.value };
    }
    Some((awnd, advertise))
}

/// The distribution of sizes, if each flow has its own.
fn sizes(flow: &Flow, segment: u16, findings: &mut Findings) -> Option<model::Sizes> {
    let Some(At { value: Size::Pareto(pareto), span }) = &flow.size else { return None };
    let place = format!("{}.size.pareto", findings.place());
    let (shape, mean) = (pareto.shape.as_ref()?, pareto.mean.as_ref()?);
    if shape.value <= 1.0 || shape.value > 1000.0 {
        let message = format!("`{place}.shape` is {}", shape.value);
        findings.error(
            "scenario::range",
            shape.span,
            message,
            "allowed: above 1 (else there is no mean), up to 1000",
        );
    }
    if flow.app.is_some() {
        let message = format!("`{place}` is for transfers, and the flow has an `app`");
        findings.error("scenario::type", *span, message, "leave one of them out");
    }
    let mean = match mean.value {
        Amount::Packets(packets) => packets as f64,
        Amount::Bytes(bytes) => bytes as f64 / f64::from(segment),
        Amount::Bdp(_) => {
            let message = format!("`{place}.mean` is in BDP");
            findings.error(
                "scenario::unit",
                mean.span,
                message,
                "write packets or bytes, such as \"30 packets\"",
            );
            return None;
        }
    };
    Some(model::Sizes { shape: shape.value, mean })
}

/// Whole segments, at least one (docs/design/contract.md 2).
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
    // No more than an ACK can say, which is more than is ever in flight.
    Some(segments.min(u64::from(UNLIMITED - 1)) as u32)
}

fn app(flow: &mut Flow, segment: u16, findings: &mut Findings) -> Option<tcp::App> {
    let size = match flow.size.as_ref().map(|at| &at.value) {
        None => None,
        Some(Size::Bytes(bytes)) => Some(*bytes),
        Some(Size::Pareto(_)) => return Some(tcp::App::Own),
    };
    let (bursts, span) = match &mut flow.app {
        None => return Some(size.map_or(tcp::App::Endless, tcp::App::Transfer)),
        // A segment at a time.
        Some(At { value: App::Rate(rate), .. }) => {
            let own = Bytes(segment.into());
            let pause = Duration((own.0 * 8_000_000_000 + rate.0 / 2) / rate.0);
            let (wait, buffer) = (tcp::Wait::Write, Bytes(16_000_000));
            return Some(tcp::App::Bursts { size: own, pause, wait, buffer, total: size });
        }
        Some(At { value: App::Bursts(bursts), span }) => (bursts, span),
    };
    let (written, pause) = (bursts.size.as_ref()?, bursts.pause.as_ref()?.value);
    let per_burst = written.value;
    let wait = match fill(&mut bursts.wait, *span, || Wait::Write).value {
        Wait::Write => tcp::Wait::Write,
        Wait::Ack => tcp::Wait::Ack,
    };
    let buffer = fill(&mut bursts.buffer, *span, || Bytes(16_000_000)).value;
    let at_once = buffer.0 / u64::from(segment).max(1) / per_burst.0.div_ceil(segment.max(1).into()).max(1);
    if pause < PAUSE_MIN && wait == tcp::Wait::Write && at_once > AT_ONCE_MAX.into() {
        let message =
            format!("`{}.app.bursts` writes {at_once} times before its buffer is full", findings.place());
        let help = format!(
            "allowed: up to {AT_ONCE_MAX} times with pauses below 1 ms; a longer pause, a larger size or a smaller buffer"
        );
        findings.error("scenario::range", written.span, message, help);
    }
    Some(tcp::App::Bursts { size: per_burst, pause, wait, buffer, total: size })
}
