//! Why the windows of VCP, DPCP, TPCP and MPCP change, in the order of questions of the sender.

use super::{Echoed, Level, Link, LinkConfig, Loss, OVERLOAD, Repair, Sender, SenderConfig, State};
use crate::law::words::{LinkWords, Phase, Reaction, Rule, SenderWords};
use crate::units::{Bytes, Ratio};
use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::cmp::Ordering;

const MP: &str = "MPCP (CCR 39(5)) section 3.3";
const VNS: &str = "VCP's ns-2 code";

impl SenderWords for Sender {
    /// Says how chains of the link differ from those of the flow.
    fn misreads(config: &SenderConfig, link: &dyn Any) -> Option<String> {
        let link: &LinkConfig = link.downcast_ref()?;
        let (own, other) = (config.n, link.n);
        if other == own && (own == 1 || link.order == config.order) {
            let (own, other) = (config.interval, link.interval);
            return (own != other).then(|| {
                format!(
                    "its interval is {other} and the flow's {own}, so the window grows at another pace than the load is measured"
                )
            });
        }
        let order = if other == own { ", which say their places in different ways" } else { "" };
        Some(format!(
            "its chains have {other} and the flow's {own} packets{order}, so the flow reads a digit at another place as another load"
        ))
    }

    fn explain(config: &SenderConfig, [was, is]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        reasons(config, [was.state(), is.state()], seen, rules);
        seen.cut(rules);
    }
}

fn reasons(config: &SenderConfig, [was, is]: [State; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
    let (before, after) = (&seen.before, &seen.after);
    echoed(seen, rules);
    // What else applies on a loss is said for all laws.
    let is_cut_by_loss = after.window_cuts > before.window_cuts;
    let is_loss = is_cut_by_loss || after.phase == Phase::Recovery && before.phase != Phase::Recovery;
    if is.is_standard {
        rule(
            rules,
            "somebody clears the codes on the path, so it runs NewReno",
            "docs/design/protocols.md 5.5",
        );
        if !is_loss {
            seen.reno(was.ssthresh.unwrap_or(Bytes(u64::MAX)), rules);
        }
        return;
    }
    if is.is_false_alarm && !was.is_false_alarm {
        let text = "the packet taken for lost arrives before its retransmission can: it was only late, and W is what it was before";
        return rule(rules, text, "RFC 4015");
    }
    // A flow that gave up its chains halves, as VCP.
    let maintains = match config.loss {
        Loss::Tcp => false,
        Loss::Maintain => !is.is_downgraded,
        Loss::Ignore => true,
    };
    let holds = config.repair == Repair::Hold && before.phase == Phase::Loss;
    let is_held = (before.is_held() || holds) && !is.is_false_alarm;
    if maintains || !is_loss && !is_held {
        by_load(config, [&was, &is], seen, rules);
    } else if !is_loss {
        rule(rules, "a loss is being repaired: until then what codes say changes no window", VNS);
    }
    if is_loss && !is_cut_by_loss {
        let text = match maintains {
            true => "with this acknowledgment a loss is found, which does not count by the flow's `loss`",
            false => {
                "with this acknowledgment a loss is found: W is half of what is in flight, at least two segments"
            }
        };
        rule(rules, text, VNS);
    }
}

fn rule(rules: &mut Vec<Rule>, text: impl Into<String>, source: &'static str) {
    rules.push(Rule::new(text, source));
}

fn echoed(seen: &Reaction, rules: &mut Vec<Rule>) {
    let echoed = Echoed::from(seen.reply);
    if let Some(code) = echoed.code() {
        let place = echoed.index().map_or_else(
            || "of no place that could be told".to_owned(),
            |index| format!("{} of its chain", index + 1),
        );
        rule(rules, format!("it echoes the code {code:02b} of a packet, {place}"), MP);
    }
}

/// Adds the rule by which the load, as far as it is known, changes the window.
fn by_load(config: &SenderConfig, [was, is]: [&State; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
    const TABLE: &str = "MPCP (CCR 39(5)) table 1";
    let change = seen.after.window.cmp(&seen.before.window);
    let is_over = is.level.zone() == OVERLOAD;
    let is_vcp = config.n > 1 && (is.is_downgraded || is.has_zones);
    let load = load(&is.level, if is_vcp { ", as VCP for now" } else { "" });
    if is.frozen_until != was.frozen_until {
        let text = match change {
            Ordering::Less => format!("{load}, so W is cut once"),
            _ => format!("{load}, so W is cut once, which changes nothing"),
        };
        return rule(rules, text, TABLE);
    }
    if change == Ordering::Less {
        // Growth is for all that a chain has acknowledged, by the round trip time of now; a pause may have ended.
        return rule(rules, format!("{load}, for which W is not cut; it is less than before"), TABLE);
    }
    if seen.now < was.frozen_until {
        let until = was.frozen_until.0 as f64 / 1e9;
        let text = match change {
            Ordering::Greater => {
                format!("{load}, so the cut is corrected upward, and W stays until {until:.3} s")
            }
            _ => format!("W was cut and stays until {until:.3} s"),
        };
        return rule(rules, text, MP);
    }
    if is_over && was.is_settled(seen.now, seen.after.srtt) {
        // Or it would be cut: `cut = "complete"`.
        return rule(rules, format!("{load}: W is cut when the chain is complete"), MP);
    }
    if !seen.is_new {
        return rule(rules, "it acknowledges nothing new, so W does not grow", VNS);
    }
    if seen.restraint(rules) {
        return;
    }
    let why = match is_over {
        true => format!("{load}, but what the last cut did shows only after a round trip; until then"),
        false => format!("{load}, so"),
    };
    let text = match change {
        Ordering::Equal => format!("{why} W grows, by less than a byte"),
        _ => format!("{why} W grows"),
    };
    rule(rules, text, TABLE);
}

/// "the load is 80 to 100 %": what is known of it.
fn load(level: &Level, mode: &str) -> String {
    let percent = |bound: u32| f64::from(bound) / 1e4;
    let (from, to) = (percent(level.from), percent(level.to));
    // The last level has no end.
    let load = match (level.from, level.to) {
        (0, _) => format!("below {to} %"),
        (_, end) if end >= 2 * Ratio::ONE.0 => format!("{from} % or more"),
        _ => format!("{from} to {to} %"),
    };
    format!("the load is {load} as far as is known{mode}")
}

impl LinkWords for Link {
    fn misread_ecn(_: &LinkConfig) -> Option<&'static str> {
        Some(
            "the link reads ECT(0) as high load and never lowers it, and where it is overloaded it writes CE, which halves the \
             window of such a flow",
        )
    }

    fn explain_other(_: &LinkConfig) -> Rule {
        Rule::new("the packet counts as load; it has no code of this law", "MPCP (CCR 39(5)) section 2.1")
    }
}
