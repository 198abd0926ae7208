//! Sentences about SCONE's advice.

use super::{Header, Link, LinkConfig, Report, Sender, SenderConfig, rate};
use crate::law::Packet;
use crate::law::words::{LinkWords, Reaction, Rule, SenderWords, header};
use crate::units::BitRate;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const DRAFT: &str = "draft-ietf-scone-protocol";
const OURS: &str = "docs/protocols/scone.md";

/// A code and its rate.
fn shown(code: u8) -> String {
    match rate(code) {
        None => "no rate yet".into(),
        Some(BitRate(bits)) => format!("code {code}, {:.3} Mbit/s", bits as f64 / 1e6),
    }
}

impl SenderWords for Sender {
    fn explain_packet(_: &SenderConfig, packet: &dyn Packet, rules: &mut Vec<Rule>) {
        let text = match header::<Header>(packet).and_then(Header::asked) {
            Some(code) => format!("its datagram begins with a packet of SCONE, which says {}", shown(code)),
            None => "its datagram has no packet of SCONE: one in 20 to 30 s has".into(),
        };
        rules.push(Rule::new(text, DRAFT));
    }

    fn explain(_: &SenderConfig, [before, after]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let mbit = |sender: &Sender| match sender.advice() {
            None => "none".into(),
            Some(BitRate(bits)) => format!("{:.3} Mbit/s", bits as f64 / 1e6),
        };
        let (was, is) = (mbit(before), mbit(after));
        let text = if was == is {
            format!("the advice that holds stays as it is, {is}")
        } else {
            format!("the advice that holds, the least that was heard in the period, went from {was} to {is}")
        };
        rules.push(Rule::new(text, DRAFT));
        let text = format!(
            "CUBIC's window below it went from {} to {} B",
            seen.before.window.0, seen.after.window.0
        );
        rules.push(Rule::new(text, OURS));
        seen.cut(rules);
    }
}

impl LinkWords for Link {
    fn explain(_: &LinkConfig, report: &Report, [came, left]: [&dyn Packet; 2], rules: &mut Vec<Rule>) {
        let code = |packet| header::<Header>(packet).and_then(Header::asked);
        let (Some(came), Some(left)) = (code(came), code(left)) else { return };
        let text = format!(
            "{} flows share what the link advises, {} of them limited elsewhere: A = {:.3} Mbit/s",
            report.flows,
            report.limited,
            report.advice.0 as f64 * 8.0 / 1e6
        );
        rules.push(Rule::new(text, OURS));
        let text = if left < came {
            format!("the packet says {}, so the link lowers it to {}", shown(came), shown(left))
        } else {
            format!("the packet says {}, no more than the link would, and leaves with it", shown(came))
        };
        rules.push(Rule::new(text, DRAFT));
    }

    fn explain_other(_: &LinkConfig) -> Rule {
        Rule::new(
            "the packet carries no code of SCONE, so the law counts its bytes and leaves it alone",
            "docs/protocols/scone.md",
        )
    }
}
