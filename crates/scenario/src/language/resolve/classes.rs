//! The discipline of two classes: weights, limits, RED.

use congestlab_core::units::Ratio;
use congestlab_net::queue::xcp_tcp::{self, Config, Dynamic};
use congestlab_net::queue::{Limit, red};
use congestlab_net::random::Probability;

use crate::language::classes::{Follow, XcpTcp};
use crate::language::law::Red;
use crate::language::queue::Amount;
use congestlab_text::decode::{At, Chance, fill};
use congestlab_text::diagnostic::{Findings, Span};

/// NS2: half of the link for each.
const WEIGHTS: [f64; 2] = [0.5, 0.5];
///
const KAPPA: Ratio = Ratio::ppm(100_000);
///
const BOUNDS: [f64; 2] = [0.05, 0.95];

/// Fills `key`, and reads it as two numbers.
fn pair(
    key: &mut Option<At<Vec<At<Chance>>>>,
    name: &str,
    default: [f64; 2],
    span: Span,
    findings: &mut Findings,
) -> Option<([f64; 2], Span)> {
    let list = fill(key, span, || default.map(|number| At { value: Chance(number), span }).into());
    match list.value.as_slice() {
        [first, second] => Some(([first.value.0, second.value.0], list.span)),
        others => {
            let message =
                format!("`{}.discipline.xcp-tcp.{name}` has {} numbers", findings.place(), others.len());
            let help = format!("write two, such as [{}, {}]", default[0], default[1]);
            findings.error("scenario::classes", list.span, message, help);
            None
        }
    }
}

/// The discipline; `limit` finds the limit that an amount under a key means, `thresholds` those of RED.
/// Returns what may wait of the rest too.
pub(super) fn discipline(
    classes: &mut XcpTcp,
    span: Span,
    queue: &At<Amount>,
    packet_size: u16,
    limit: impl Fn(&At<Amount>, &str, &mut Findings) -> Option<Limit>,
    thresholds: impl Fn(&Red, &mut Findings) -> Option<red::Thresholds>,
    findings: &mut Findings,
) -> Option<(Config, Limit)> {
    let place = format!("{}.discipline.xcp-tcp", findings.place());
    let (weights, weights_span) = pair(&mut classes.weights, "weights", WEIGHTS, span, findings)?;
    let refuse = |span, message, help: &str, findings: &mut Findings| {
        findings.error("scenario::classes", span, message, help);
    };
    let [xcp, rest] = weights;
    // Laws count in millionths.
    let is_part = |number: f64| (1..Ratio::ONE.0).contains(&Chance(number).ratio().0);
    if (xcp + rest - 1.0).abs() > 1e-6 {
        let message = format!("`{place}.weights` are {xcp} and {rest}, {} in sum", xcp + rest);
        refuse(
            weights_span,
            message,
            "XCP's part and the rest's make 1 together, such as [0.5, 0.5]",
            findings,
        );
    } else if !is_part(xcp) || !is_part(rest) {
        let message = format!("`{place}.weights` leave one class nothing");
        refuse(weights_span, message, "allowed: both from 0.000001 on, such as [0.9, 0.1]", findings);
    }
    let mut dynamic = None;
    if fill(&mut classes.dynamic, span, || false).value {
        let (follow, kappa) = match fill(&mut classes.follow, span, || Follow::Windows).value {
            Follow::Windows => {
                let kappa = fill(&mut classes.kappa, span, || KAPPA);
                if kappa.value.0 == 0 || kappa.value >= Ratio::ONE {
                    let message = format!("`{place}.kappa` is {}", f64::from(kappa.value.0) / 1e6);
                    refuse(kappa.span, message, "allowed: above 0 and below 1 (K02, 8.2)", findings);
                }
                (xcp_tcp::Follow::Windows, kappa.value)
            }
            Follow::Flows => {
                if let Some(kappa) = &classes.kappa {
                    let message = format!("`{place}.kappa` has no effect on weights that follow flows");
                    findings.warning(
                        "scenario::no-effect",
                        kappa.span,
                        message,
                        "write follow = \"windows\"",
                    );
                }
                (xcp_tcp::Follow::Flows, KAPPA)
            }
        };
        let ([min, max], bounds_span) = pair(&mut classes.bounds, "bounds", BOUNDS, span, findings)?;
        if !is_part(min) || min >= max || !is_part(max) || (min + max - 1.0).abs() > 1e-6 {
            let message = format!("`{place}.bounds` are {min} and {max}");
            let help = "allowed: 0.000001 to 0.999999, the first below the second, 1 in sum: they hold for both \
                        weights";
            refuse(bounds_span, message, help, findings);
        } else if xcp < min || xcp > max {
            let message = format!("`{place}.weights` begin outside of the bounds");
            refuse(weights_span, message, &format!("allowed: {min} to {max}"), findings);
        }
        dynamic = Some(Dynamic { follow, kappa, min: Chance(min).ratio(), max: Chance(max).ratio() });
    } else {
        for (key, span) in [
            ("follow", classes.follow.as_ref().map(|at| at.span)),
            ("kappa", classes.kappa.as_ref().map(|at| at.span)),
            ("bounds", classes.bounds.as_ref().map(|at| at.span)),
        ] {
            if let Some(span) = span {
                let message = format!("`{place}.{key}` has no effect on weights that stay");
                findings.warning("scenario::no-effect", span, message, "write dynamic = true");
            }
        }
    }
    let xcp_queue = fill(&mut classes.xcp_queue, span, || queue.value);
    let tcp_queue = fill(&mut classes.tcp_queue, span, || queue.value);
    let xcp_limit = limit(&xcp_queue, "discipline.xcp-tcp.xcp_queue", findings);
    let tcp_limit = limit(&tcp_queue, "discipline.xcp-tcp.tcp_queue", findings)?;

    let red = classes.red.get_or_insert_with(|| At { value: Default::default(), span });
    let (red, span) = (&mut red.value, red.span);
    // K02 §5: a third and two thirds. A file can state no threshold of nothing, so it is one at least.
    let parts = |whole: u64| {
        let min = (whole / 3).max(1);
        (min, (2 * whole / 3).max(min + 1))
    };
    let (min, max) = match tcp_limit {
        Limit::Bytes(bytes) => {
            let (min, max) = parts(bytes);
            (Amount::Bytes(min), Amount::Bytes(max))
        }
        Limit::Packets(n) => {
            let (min, max) = parts(n);
            (Amount::Packets(min), Amount::Packets(max))
        }
        Limit::None => return None,
    };
    fill(&mut red.min, span, || min);
    fill(&mut red.max, span, || max);
    fill(&mut red.max_p, span, || Chance(0.1));
    fill(&mut red.weight, span, || Chance(0.002));
    fill(&mut red.gentle, span, || true);
    fill(&mut red.ecn, span, || true);
    fill(&mut red.wait, span, || false);
    fill(&mut red.use_mark_p, span, || false);
    let mut as_discipline = Red {
        min: red.min.clone(),
        max: red.max.clone(),
        max_p: red.max_p.clone(),
        weight: red.weight.clone(),
        gentle: red.gentle.clone(),
        ecn: red.ecn.clone(),
        wait: red.wait.clone(),
        use_mark_p: red.use_mark_p.clone(),
    };
    let thresholds = thresholds(&as_discipline, findings)?;
    let red = self::red(&mut as_discipline, span, thresholds, packet_size);
    Some((Config { weight: Chance(xcp).ratio(), limit: xcp_limit?, red, dynamic }, tcp_limit))
}

pub(super) fn red(red: &mut Red, span: Span, thresholds: red::Thresholds, packet_size: u16) -> red::Config {
    let max_p = fill(&mut red.max_p, span, || Chance(0.1)).value.0;
    let weight = fill(&mut red.weight, span, || Chance(0.002)).value.0;
    red::Config {
        thresholds,
        max_p: Probability::from_f64(max_p).into(),
        weight: Probability::from_f64(weight).into(),
        gentle: fill(&mut red.gentle, span, || false).value,
        ecn: fill(&mut red.ecn, span, || false).value,
        wait: fill(&mut red.wait, span, || false).value,
        use_mark_p: fill(&mut red.use_mark_p, span, || false).value,
        packet_size,
    }
}
