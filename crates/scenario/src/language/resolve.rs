//! From what a file says to what a run is: every default is put into the file, every rule that
//! spans several keys is held, and the model comes out.

mod classes;
mod flow;
mod link;
mod medium;
mod needs;
mod xcp_i;

use std::collections::BTreeSet;

use congestlab_core::units::Duration;
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_sim::model::{self, Model};
pub(crate) use link::TRACE_BYTES_MAX;

use crate::language::file;
use crate::language::file::{File, Flow, Reverse};
use crate::language::law::{Discipline, FlowLaw};
use crate::language::laws::Laws;
use crate::language::settings::{Chosen, Configuration};
use congestlab_text::decode::{At, Named, PacketSize, SPAN_MAX, fill};
use congestlab_text::diagnostic::{Findings, Span};
use congestlab_text::files::Files;

/// Ethernet's usual MTU.
const PACKET_SIZE: PacketSize = PacketSize(1500);
/// More flows than any machine holds.
const FLOWS_MAX: u64 = 1_000_000_000;

fn picos(span: Duration) -> Picos {
    span.0.saturating_mul(PS_PER_NS)
}

/// Both directions of all links, as the model numbers them: place in the file, what is written there, and where.
/// Without [`link::wires`], which fills in the reverses, a mirror is the link itself.
fn directions(links: &Named<file::Link>) -> impl Iterator<Item = (String, &file::Link, Span)> {
    links.0.iter().flat_map(|(name, link)| {
        let place = format!("links.{}", name.value);
        let reverse = link
            .value
            .reverse
            .as_ref()
            .map_or((&link.value, link.span), |reverse| (&*reverse.value.0, reverse.span));
        [(place.clone(), &link.value, link.span), (format!("{place}.reverse"), reverse.0, reverse.1)]
    })
}

/// Writes the keys of each law to the links and flows that run it and do not have them.
fn complete(file: &mut File, laws: &Laws) {
    for (_, link) in file.links.iter_mut().flat_map(|links| &mut links.value.0) {
        let reverse =
            link.value.reverse.as_mut().map(|At { value: Reverse(reverse, _), .. }| &mut reverse.law);
        for law in [Some(&mut link.value.law), reverse].into_iter().flatten().flatten() {
            laws.complete_link(&mut law.value.0);
        }
    }
    for (_, flow) in file.flows.iter_mut().flat_map(|flows| &mut flows.value.0) {
        if let Some(At { value: FlowLaw::Sender(law), .. }) = &mut flow.value.law {
            laws.complete_flow(law);
        }
    }
}

/// Fills `file` and makes the model of it. `None` after an error.
pub(crate) fn resolve(file: &mut File, files: &Files, findings: &mut Findings) -> Option<Model> {
    if let Some(laws) = file.laws.take() {
        complete(file, &laws.value);
    }
    mirror(file);
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
    let wires = link::wires(links, files, findings);
    let flows = &mut file.flows.as_mut()?.value;
    check_names(links.0.iter().map(|(name, _)| name), "link", findings);
    check_names(flows.0.iter().map(|(name, _)| name), "flow", findings);
    check_count(flows, findings);

    // A path: indices of link directions, forward 2 i, reverse 2 i + 1.
    let mut paths = Vec::new();
    let names = flow::Names::new(links);
    let mut round_trips = vec![None::<Duration>; links.0.len()];
    // The same, and the times that a packet and its ACK take to leave each hop.
    let mut base_rtts = vec![Duration(0); links.0.len()];
    for (name, flow) in &mut flows.0 {
        findings.at = vec!["flows".into(), name.value.clone()];
        let path = flow::path(flow.value.path.as_ref(), &names, findings);
        let switches =
            flow::switches(flow.value.switch.as_ref(), path.as_deref(), duration, &names, findings);
        let hops = [&mut flow.value.access, &mut flow.value.exit].map(flow::hop);
        for path in path.iter().chain(switches.iter().flatten().map(|switch| &switch.path)) {
            let propagation = |at: u32| wires[at as usize].as_ref().map_or(0, |wire| wire.delay.0);
            let both_ways: u64 =
                path.iter().map(|&at| propagation(at).saturating_add(propagation(at ^ 1))).sum();
            let own: u64 = hops.iter().flatten().map(|(_, delay)| 2 * delay.0).sum();
            let round_trip = Duration(both_ways.saturating_add(own));
            let rates = path.iter().filter_map(|&at| Some(wires[at as usize].as_ref()?.rate));
            let rates = rates.chain(hops.iter().flatten().map(|&(rate, _)| rate));
            let base_rtt = Duration(round_trip.0.saturating_add(flow::departures(&flow.value, rates)));
            for &at in path {
                let at = at as usize / 2;
                round_trips[at] = round_trips[at].max(Some(round_trip));
                base_rtts[at] = base_rtts[at].max(base_rtt);
            }
        }
        paths.push((path, switches, hops));
    }
    findings.at.clear();

    if paths.iter().any(|(path, switches, _)| path.is_none() || switches.is_none()) {
        // Which links flows cross is not known: that none crosses one is no finding.
        round_trips.iter_mut().for_each(|longest| *longest = longest.or(Some(Duration(0))));
    }

    let port_rtts = xcp_i::shared_round_trips(links, &base_rtts);
    let mut ports = Vec::new();
    for (index, (name, link)) in links.0.iter_mut().enumerate() {
        let round_trip = round_trips[index];
        let base_rtt = port_rtts[index];
        findings.at = vec!["links".into(), name.value.clone()];
        let forward = wires[2 * index].as_ref().and_then(|wire| {
            link::port(&mut link.value, link.span, wire, round_trip, base_rtt, duration, findings)
        });
        ports.push(forward.map(|port| model::Link { name: name.value.clone(), port }));
        findings.at.push("reverse".into());
        let Some(At { value: Reverse(reverse, _), span }) = &mut link.value.reverse else { return None };
        let wire = wires[2 * index + 1].as_ref();
        let backward =
            wire.and_then(|wire| link::port(reverse, *span, wire, round_trip, base_rtt, duration, findings));
        ports.push(backward.map(|port| model::Link { name: format!("{}.reverse", name.value), port }));
    }

    let mut groups = Vec::new();
    for ((name, flow), (path, switches, hops)) in flows.0.iter_mut().zip(paths) {
        findings.at = vec!["flows".into(), name.value.clone()];
        let first = path.as_ref().and_then(|path| wires[*path.first()? as usize].as_ref());
        let base_rtt = path.iter().flatten().map(|&at| base_rtts[at as usize / 2]).max();
        let line = flow::Line {
            hops,
            first: first.map(|wire| wire.rate),
            base_rtt: base_rtt.unwrap_or(Duration(0)),
        };
        let group = flow::group(&name.value, flow, path.as_deref(), line, duration, findings);
        groups.push(group.zip(switches).map(|(group, switches)| model::Group { switches, ..group }));
    }
    findings.at.clear();
    if findings.has_errors() {
        return None;
    }
    let mut model = Model {
        seed,
        duration: picos(duration),
        warmup: picos(warmup),
        links: ports.into_iter().collect::<Option<_>>()?,
        groups: groups.into_iter().collect::<Option<_>>()?,
        sample_every: Some(picos(every.value)),
        devices: Vec::new(),
        record_events: false,
    };
    xcp_i::interoperate(&mut model, links, flows, findings);
    medium::share(&mut model, links, findings);
    needs::check(&model, links, flows, findings);
    (!findings.has_errors()).then_some(model)
}

/// Gives the mirror of each link over which a flow sends data the link's law and queue, as ns-2's `duplex-link` does, but for
/// what `reverse` states.
fn mirror(file: &mut File) {
    let flows = file.flows.iter().flat_map(|flows| &flows.value.0);
    let paths = flows.flat_map(|(_, flow)| {
        let switches = flow.value.switch.iter().flat_map(|switches| &switches.value);
        flow.value.path.iter().chain(switches.filter_map(|switch| switch.value.path.as_ref()))
    });
    let names = paths.flat_map(|path| &path.value).filter_map(|name| name.value.strip_suffix(".reverse"));
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    let links = file.links.iter_mut().flat_map(|links| &mut links.value.0);
    for (_, At { value: link, span }) in links.filter(|(name, _)| names.contains(&name.value)) {
        let reverse = link.reverse.take().unwrap_or(At { value: Reverse::default(), span: *span });
        let At { value: Reverse(mut back, is_bare), span } = reverse;
        if let (None, false, Some(law)) = (&back.law, is_bare, &link.law) {
            let mut law = law.clone();
            if back.rate.is_some() {
                // It is of the link's own rate.
                law.value.0.forget("capacity");
            }
            back.law = Some(law);
            back.profile = back.profile.take().or(link.profile.clone());
            back.capacity_from = back.capacity_from.take().or(link.capacity_from.clone());
            back.feedback_at = back.feedback_at.take().or(link.feedback_at.clone());
            back.police = back.police.take().or(link.police.clone());
        }
        let needs_law = matches!(&link.discipline, Some(At { value: Discipline::XcpTcp(_), .. }));
        if back.discipline.is_none() && (back.law.is_some() || !needs_law) {
            back.discipline = link.discipline.clone();
        }
        link.reverse = Some(At { value: Reverse(back, is_bare), span });
    }
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
    let mut largest: Option<(&str, At<u32>)> = None;
    for (name, flow) in &mut flows.0 {
        let count = fill(&mut flow.value.count, flow.span, || 1);
        total += u64::from(count.value);
        if largest.as_ref().is_none_or(|(_, most)| count.value > most.value) {
            largest = Some((&name.value, count));
        }
    }
    if let Some((name, count)) = largest.filter(|_| total > FLOWS_MAX) {
        let message =
            format!("`flows.{name}.count` is {}, and all groups together have {total} flows", count.value);
        findings.error("scenario::range", count.span, message, format!("allowed: {FLOWS_MAX} in all"));
    }
}

/// Sets what goes by a law's other settings, and tells what the law says of them all.
fn check<C: Configuration>(law: &mut Chosen<C>, span: Span, findings: &mut Findings) {
    law.settle();
    let place = format!("{}.{}.{}", findings.place(), C::KEY, law.name);
    law.config.check(&mut |found| {
        let key = if found.key.is_empty() { String::new() } else { format!(".{}", found.key) };
        let message = format!("`{place}{key}` {}", found.text);
        let at = found.at.iter().find_map(|key| law.span(key)).unwrap_or(span);
        let code = match found.kind {
            "mpcp" => "scenario::mpcp",
            _ => "scenario::range",
        };
        if found.is_error {
            findings.error(code, at, message, found.help);
        } else {
            findings.warning(code, at, message, found.help);
        }
    });
}
