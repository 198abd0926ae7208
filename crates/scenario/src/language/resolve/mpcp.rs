//! VCP, DPCP, TPCP, MPCP: what else uses the bits that they use.

use congestlab_core::law::words::Chain;
use congestlab_sim::model::{GroupKind, Model};

use super::link::directions;
use crate::language::file::{Flow, Link};
use crate::text::decode::Named;
use crate::text::diagnostic::{Findings, Span};

/// A direction of a link.
struct Direction {
    place: String,
    /// Place of its law, or of the link.
    span: Span,
    /// Chains and name of a law of this family.
    chain: Option<(Chain, &'static str)>,
    /// Place where the file has its queue mark packets as in RFC 3168.
    marks: Option<Span>,
}

/// Warns of laws of this family on one path with others.
pub(super) fn mix(model: &Model, links: &Named<Link>, flows: &Named<Flow>, findings: &mut Findings) {
    let directions: Vec<Direction> = directions(links)
        .zip(&model.links)
        .map(|((place, link, span), built)| Direction {
            place,
            span: link.law.as_ref().map_or(span, |law| law.span),
            chain: link.law.as_ref().and_then(|law| Some((law.value.0.config.chain()?, law.value.0.name))),
            marks: (built.port.discipline.marks())
                .then(|| link.discipline.as_ref().map_or(span, |discipline| discipline.span)),
        })
        .collect();
    let mut is_used = vec![false; directions.len()];
    for (group, (name, flow)) in model.groups.iter().zip(&flows.0) {
        let GroupKind::Tcp(config) = &group.kind else { continue };
        let Some(law) = &flow.value.law else { continue };
        let mut path: Vec<usize> =
            group.paths().flat_map(|(path, _)| path).map(|&link| link as usize).collect();
        path.sort_unstable();
        path.dedup();
        let place = format!("flows.{}", name.value);
        let coded = path.iter().find(|&&link| directions[link].chain.is_some());
        let Some(own) = config.law.chain() else {
            if let Some(&link) = coded
                && config.ecn
            {
                let message =
                    format!("`{place}.ecn` is true, and `{}` marks load levels", directions[link].place);
                let help = "its packets' ECT(0) is read as high load and never rises to low; a link that is \
                            overloaded writes CE, which halves the window of this flow: use the one or the other";
                let span = flow.value.ecn.as_ref().map_or(flow.span, |ecn| ecn.span);
                findings.warning("scenario::ecn", span, message, help);
            }
            continue;
        };
        let told = match &law.value {
            crate::language::law::FlowLaw::Sender(told) => told.name,
            _ => continue,
        };
        path.iter().for_each(|&link| is_used[link] = true);
        if coded.is_none() {
            let message = format!("`{place}.law` is {told}, but no link of its path tells load levels");
            let help = format!(
                "every code stays that of low load, so the window grows until packets are lost; write law = \
                 \"{told}\" on a link"
            );
            findings.warning("scenario::mpcp", law.span, message, help);
        }
        for link in path.iter().map(|&link| &directions[link]) {
            if let Some(span) = link.marks {
                let message = format!("`{}` marks as RFC 3168 has it, on the path of `{place}`", link.place);
                let help = format!(
                    "its queue takes the codes of low and high load, 01 and 10, for ECT, and writes CE instead of \
                     dropping; {told} reads CE, 11, as overload{}: write ecn = false there",
                    if own.packets > 1 { ", or as the highest digit" } else { "" }
                );
                findings.warning("scenario::ecn", span, message, help);
            }
            if let Some((chain, name)) = link.chain
                && (chain.packets != own.packets || (chain.packets > 1 && chain.order != own.order))
            {
                let message = format!("`{}.law` is {name}, and flows of `{place}` are {told}", link.place);
                let help = format!(
                    "chains of {} and {} packets{}: a digit in another place is read as another load",
                    chain.packets,
                    own.packets,
                    if chain.packets == own.packets { ", told by different orders" } else { "" }
                );
                findings.warning("scenario::mpcp", link.span, message, help);
            }
        }
    }
    for (link, is_used) in directions.iter().zip(is_used) {
        if let (Some((_, name)), false) = (link.chain, is_used) {
            let message = format!("`{}.law` is {name}, but no flow that crosses it is", link.place);
            let help = "it does nothing to packets of other laws without ECN; write it as law of a flow too";
            findings.warning("scenario::mpcp", link.span, message, help);
        }
    }
}
