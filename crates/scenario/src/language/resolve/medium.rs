//! The media of links: one for each pair of directions that are half duplex.

use congestlab_net::service::Service;
use congestlab_sim::cloud;
use congestlab_sim::model::{Device, DeviceKind, Model};

use crate::language::file::Link;
use congestlab_text::decode::{At, Named};
use congestlab_text::diagnostic::Findings;

/// Makes media of the links that are half duplex.
pub(crate) fn share(model: &mut Model, links: &mut Named<Link>, findings: &mut Findings) {
    let owners = cloud::routers(model);
    for (first, (name, At { value: link, .. })) in (0..).step_by(2).zip(&mut links.0) {
        let place = format!("links.{}.medium", name.value);
        let reverse = link.reverse.as_ref().map(|reverse| &reverse.value.0);
        if let Some(medium) = reverse.and_then(|reverse| reverse.medium.as_ref()) {
            let message = format!("`links.{}.reverse.medium`: a link has one medium", name.value);
            let help = "both directions share it: write `medium` on the link itself";
            findings.error("scenario::medium", medium.span, message, help);
        }
        let back = reverse.and_then(|reverse| reverse.rate.as_ref()).map(|rate| rate.span);
        let Some(At { value: medium, span }) = &mut link.medium else { continue };
        let Some(config) = medium.resolve(*span, &place, findings) else { continue };
        let mut refuse = |span, what: &str, help: &str| {
            findings.error("scenario::medium", span, format!("`{place}` is half duplex, {what}"), help);
        };
        let pair = [first, first + 1];
        let rates = pair.map(|link| match model.links[link as usize].port.service {
            Service::Fixed(rate) => Some(rate),
            Service::Steps(_) | Service::Trace(_) => None,
        });
        match rates {
            [Some(there), Some(back)] if there == back => {}
            [Some(_), Some(_)] => {
                refuse(
                    back.unwrap_or(*span),
                    "but its directions have different rates",
                    "one wire has one rate",
                );
            }
            _ => {
                let help = "allowed: a rate that stays, such as \"10 Mbit/s\", for both directions";
                refuse(*span, "but its rate changes", help);
            }
        }
        if pair.iter().any(|&link| owners[link as usize].is_some()) {
            let help = "a port is its router's or its medium's; write the medium on a link of its own behind this one, \
                        which XCP-i takes for a cloud";
            refuse(*span, "but the link is interoperable", help);
        }
        if findings.is_live {
            let message = format!("`{place}`: a live lab's links are full duplex");
            findings.error("scenario::live", *span, message, "leave it out, or simulate it");
        }
        model.devices.push(Device { links: pair.into(), kind: DeviceKind::Medium(config) });
    }
}
