//! Needs of laws: warns where a path does not give a flow the signal that its law reads, or garbles the signal. What a law
//! needs is in its own folder ([`congestlab_core::law::Needs::network`]).

use congestlab_core::law::{self, Giver, LinkConfig, Network, Protocol};
use congestlab_core::units::Bytes;
use congestlab_net::tcp;
use congestlab_sim::bounds::Bounds;
use congestlab_sim::cloud;
use congestlab_sim::model::{Group, GroupKind, Model};

use super::directions;
use crate::language::file::{Flow, Link};
use crate::language::law::FlowLaw;
use congestlab_text::decode::{At, Named};
use congestlab_text::diagnostic::{Findings, Span};

/// Most links that a message names.
const NAMED: usize = 4;

/// A direction of a link.
struct Direction<'a> {
    place: String,
    /// Place of its law, or of the link.
    span: Span,
    /// Its law and the name of the law.
    law: Option<(&'a LinkConfig, &'static str)>,
    /// Name of its queue discipline.
    discipline: &'static str,
    /// Place where the file has its queue mark packets as in RFC 3168.
    marks: Option<Span>,
    /// Mean rate, bit/s.
    rate: u64,
    /// True if its router is a node of XCP-i.
    is_interoperable: bool,
    /// True if it rewrites the ECN field.
    rewrites_ecn: bool,
}

impl Direction<'_> {
    fn gives(&self, giver: Giver) -> bool {
        match giver {
            Giver::Law(signal) => self.law.is_some_and(|(law, _)| law.signal() == signal),
            Giver::Marks(_) => self.marks.is_some(),
            Giver::Queue(name) => self.discipline == name,
        }
    }

    /// Says that it does not give the signal.
    fn lacks(&self, giver: Giver) -> String {
        match (giver, self.law) {
            (Giver::Law(_), Some((_, name))) => format!("runs {name}, which does not answer it"),
            (Giver::Law(_), None) => "runs no law that answers it".into(),
            (Giver::Marks(_), _) => "marks no packets".into(),
            (Giver::Queue(_), _) => "does not drop probes first".into(),
        }
    }
}

/// A group of flows with a sender law.
struct Sender<'a> {
    place: String,
    group: &'a Group,
    flow: &'a At<Flow>,
    config: &'a tcp::Config,
    /// Name of its law, and where it is written.
    law: &'static str,
    span: Span,
    /// The links of all its paths, each once.
    links: Vec<&'a Direction<'a>>,
}

/// Warns of laws that do not get what they need, once for each group of flows and kind of finding.
pub(super) fn check(model: &Model, links: &Named<Link>, flows: &Named<Flow>, findings: &mut Findings) {
    let routers = cloud::routers(model);
    let directions: Vec<Direction<'_>> = directions(links)
        .zip(&model.links)
        .zip(&routers)
        .map(|(((place, link, span), built), router)| Direction {
            place,
            span: link.law.as_ref().map_or(span, |law| law.span),
            law: link.law.as_ref().map(|law| (&law.value.0.config, law.value.0.name)),
            discipline: built.port.discipline.name(),
            marks: (built.port.discipline.marks())
                .then(|| link.discipline.as_ref().map_or(span, |discipline| discipline.span)),
            rate: built.port.service.mean_rate(0, model.duration).0,
            is_interoperable: router.is_some(),
            rewrites_ecn: built.port.ecn.is_some(),
        })
        .collect();
    let bounds = Bounds::new(model);
    let mut is_heard = vec![false; directions.len()];
    for (group, (name, flow)) in model.groups.iter().zip(&flows.0) {
        let GroupKind::Tcp(config) = &group.kind else { continue };
        let Some(At { value: FlowLaw::Sender(told), span }) = &flow.value.law else { continue };
        let mut path: Vec<usize> =
            group.paths().flat_map(|(path, _)| path).map(|&link| link as usize).collect();
        path.sort_unstable();
        path.dedup();
        let place = format!("flows.{}", name.value);
        let links = path.iter().map(|&link| &directions[link]).collect();
        let sender = Sender { place, group, flow, config, law: told.name, span: *span, links };
        too_much_at_once(&sender, &bounds, findings);
        let network = config.law.needs().network;
        if let Some(network) = network {
            for &link in &path {
                is_heard[link] |=
                    matches!(network.giver, Giver::Law(_)) && directions[link].gives(network.giver);
            }
            missing(&sender, &network, &directions, findings);
            garbled(&sender, &network, findings);
        }
        misread(&sender, network.as_ref(), findings);
        rewritten(&sender, findings);
    }
    for (link, is_heard) in directions.iter().zip(is_heard) {
        // A law with a header of its own is often left in place while a sweep changes the flows.
        if let (Some((law, name)), false) = (link.law, is_heard)
            && law.misread_ecn().is_some()
        {
            let message = format!("`{}.law` is {name}, but no flow that crosses it is", link.place);
            let help = "it does nothing to packets of other laws without ECN; write it as law of a flow too";
            findings.warning("scenario::needs", link.span, message, help);
        }
    }
}

/// Warns of a path on which no link gives the signal, or not the one where the queue of the flow is.
fn missing(sender: &Sender<'_>, network: &Network, directions: &[Direction<'_>], findings: &mut Findings) {
    let giver = network.giver;
    let pipes = [sender.group.access, sender.group.exit].into_iter().flatten();
    let own = pipes.map(|pipe| pipe.rate.0.saturating_mul(sender.group.count.into())).min();
    for (path, _) in sender.group.paths() {
        let path: Vec<&Direction<'_>> = path.iter().map(|&link| &directions[link as usize]).collect();
        let Some(slowest) = path.iter().copied().min_by_key(|link| link.rate) else { continue };
        let told = path.iter().filter(|link| link.gives(giver)).map(|link| link.rate).min();
        let (lack, effect) = match (told, &path[..]) {
            (None, [_]) => (format!("`{}` {}", slowest.place, slowest.lacks(giver)), network.without),
            (None, path) => {
                let what = match giver {
                    Giver::Law(_) => "runs a law that answers it",
                    Giver::Marks(_) => "marks packets",
                    Giver::Queue(_) => "drops probes first",
                };
                (format!("no link of its path {what}: {}", named(path, "")), network.without)
            }
            (Some(told), path) => {
                let is_elsewhere = own.is_some_and(|own| own <= slowest.rate);
                let is_cloud = path.iter().any(|link| link.is_interoperable);
                if !network.at_bottleneck || told <= slowest.rate || is_elsewhere || is_cloud {
                    continue;
                }
                (
                    format!("`{}`, the slowest link of its path, {}", slowest.place, slowest.lacks(giver)),
                    "the other links do not speak for this one, so its queue fills until packets are lost",
                )
            }
        };
        let message = format!("`{}.law` is {}, but {lack}", sender.place, sender.law);
        let help = match remedy(giver, sender.law) {
            Some(remedy) => format!("{effect}; write {remedy} in [{}]", slowest.place),
            None => effect.into(),
        };
        return findings.warning("scenario::needs", sender.span, message, help);
    }
}

/// Returns what a link needs in the file to give the signal.
fn remedy(giver: Giver, flow: &str) -> Option<String> {
    match giver {
        Giver::Law(signal) => {
            let gives =
                |protocol: &&Protocol| protocol.link.as_ref().is_some_and(|law| law.signal() == signal);
            let own = Protocol::of(flow).filter(gives);
            let law = own.or_else(|| Protocol::all().find(gives))?;
            Some(format!("law = \"{}\"", law.name))
        }
        Giver::Marks(written) => Some(format!("discipline = {written}")),
        Giver::Queue(name) => Some(format!("discipline = \"{name}\"")),
    }
}

/// Warns of a first window that the path cannot hold: the sender uses the part of it that the bound allows.
fn too_much_at_once(sender: &Sender<'_>, bounds: &Bounds<'_>, findings: &mut Findings) {
    let segment = u64::from(sender.config.segment).max(1);
    let window = Bytes(segment.saturating_mul(sender.config.initial_window.into()));
    let at_line_rate = sender.config.law.needs().begins_at_line_rate;
    let first = match at_line_rate {
        true => law::Sender::new(&sender.config.law, Bytes(segment), window).window(),
        false => window,
    };
    let (first, most) = (first.0 / segment, bounds.segments(sender.group));
    if first <= most {
        return;
    }
    let place = &sender.place;
    let (what, span, remedy) = match &sender.flow.value.initial_window {
        Some(window) if !at_line_rate => (
            format!("`{place}.initial_window` is {first} packets"),
            window.span,
            "a smaller `initial_window`",
        ),
        _ => {
            let what = format!("`{place}.law` is {}, which begins with {first} packets", sender.law);
            (what, sender.span, "a slower `access` or a shorter `base_rtt`")
        }
    };
    let message = format!("{what}, but its path holds {}", bounds.holds(sender.group));
    let help = format!("each flow has at most {most} packets on the way; {remedy} avoids the losses");
    findings.warning("scenario::needs", span, message, help);
}

/// Warns of links that tell the law its signal in another way, or whose queues write over it.
fn garbled(sender: &Sender<'_>, network: &Network, findings: &mut Findings) {
    let told = sender.links.iter().copied().filter(|link| link.gives(network.giver));
    let misread = told.filter_map(|link| {
        let (law, name) = link.law?;
        Some((link, name, sender.config.law.misreads(law)?))
    });
    let misread: Vec<_> = misread.collect();
    if let Some((link, name, help)) = misread.first() {
        let links: Vec<_> = misread.iter().map(|(link, ..)| *link).collect();
        let message = format!(
            "{} is {name}, and flows of `{}` are {}",
            named(&links, ".law"),
            sender.place,
            sender.law
        );
        findings.warning("scenario::needs", link.span, message, help.as_str());
    }
    let marking: Vec<_> = sender.links.iter().copied().filter(|link| link.marks.is_some()).collect();
    if let Some(span) = marking.first().and_then(|link| link.marks)
        && !network.marked.is_empty()
    {
        let verb = if marking.len() == 1 { "marks" } else { "mark" };
        let links = named(&marking, "");
        let message = format!("{links} {verb} as RFC 3168 has it, on the path of `{}`", sender.place);
        let help = format!("{}; write ecn = false there, or a discipline that does not mark", network.marked);
        findings.warning("scenario::ecn", span, message, help);
    }
}

/// Warns of links that rewrite what a flow reads in the ECN field.
fn rewritten(sender: &Sender<'_>, findings: &mut Findings) {
    if !sender.config.ecn && !sender.config.law.needs().owns_ecn {
        return;
    }
    let links: Vec<_> = sender.links.iter().copied().filter(|link| link.rewrites_ecn).collect();
    if links.is_empty() {
        return;
    }
    let verb = if links.len() == 1 { "rewrites" } else { "rewrite" };
    let message = format!("{} {verb} the ECN field, which `{}` reads", named(&links, ""), sender.place);
    let help = "marks and codes that the rewriting takes away do not reach the flow; leave `ecn` of the links out if that is not the point";
    findings.warning("scenario::ecn", sender.span, message, help);
}

/// Warns of link laws that read the ECN bits of the flow in another way than the flow means them.
fn misread(sender: &Sender<'_>, network: Option<&Network>, findings: &mut Findings) {
    let is_ecn = sender.config.ecn;
    if !is_ecn && !sender.config.law.needs().owns_ecn {
        return;
    }
    let own = network.map(|network| network.giver);
    let others = sender
        .links
        .iter()
        .filter(|link| own.is_none_or(|own| !matches!(own, Giver::Law(_)) || !link.gives(own)));
    let found = others.filter_map(|link| {
        let (law, name) = link.law?;
        Some((*link, name, law.misread_ecn()?))
    });
    let found: Vec<_> = found.collect();
    let Some((_, name, effect)) = found.first() else { return };
    let links: Vec<_> = found.iter().map(|(link, ..)| *link).collect();
    let verb = if links.len() == 1 { "runs" } else { "run" };
    let (what, span) = match &sender.flow.value.ecn {
        Some(ecn) if is_ecn => (format!("`{}.ecn` is true", sender.place), ecn.span),
        _ => (format!("`{}.law` is {}", sender.place, sender.law), sender.span),
    };
    let message =
        format!("{what}, but {} {verb} {name}, which reads the ECN bits in another way", named(&links, ""));
    findings.warning("scenario::ecn", span, message, format!("{effect}; use the one or the other"));
}

/// Names links, each with this key.
fn named(links: &[&Direction<'_>], key: &str) -> String {
    let names = links.iter().take(NAMED).map(|link| format!("`{}{key}`", link.place));
    let names = names.collect::<Vec<_>>().join(", ");
    match links.len().saturating_sub(NAMED) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}
