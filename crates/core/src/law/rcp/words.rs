//! Sentences about RCP's links and senders.

use super::{Header, Link, LinkConfig, Report, STEP, Sender, SenderConfig, UNLIMITED, is_ungranted, told};
use crate::law::Packet;
use crate::law::words::{LinkWords, Reaction, Rule, SenderWords, header};
use alloc::format;
use alloc::vec::Vec;

const RC: &str = "Dukkipati and others 2005, section 3";
const OURS: &str = "docs/protocols/rcp.md";

/// A rate in B/s, in the unit of links.
fn mbit(rate: u64) -> f64 {
    rate as f64 * 8.0 / 1e6
}

fn of_header(rate: u32) -> f64 {
    mbit(u64::from(rate) * STEP)
}

impl SenderWords for Sender {
    fn explain_packet(_: &SenderConfig, packet: &dyn Packet, rules: &mut Vec<Rule>) {
        let Some(Header { rtt, rate }) = header(packet) else { return };
        let wish = match rate {
            UNLIMITED => "for all that the path has".into(),
            rate => format!("for {:.6} Mbit/s", of_header(rate)),
        };
        let rtt = match rtt {
            0 => "no round trip time, which is not known yet".into(),
            rtt => format!("its round trip time, {:.3} ms", f64::from(rtt) / f64::from(1 << 28) * 1e3),
        };
        rules.push(Rule::new(format!("its header asks {wish} and states {rtt}"), RC));
    }

    fn explain(_: &SenderConfig, [before, after]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        if seen.is_late {
            rules.push(Rule::new(
                "another ACK overtook this one: its rate is an old one, and not taken",
                OURS,
            ));
        } else if let Some(rate) = told(seen.reply) {
            let old = match before.rate().0 {
                0 => "none before".into(),
                rate => format!("{:.6} Mbit/s before", mbit(rate)),
            };
            rules.push(Rule::new(
                format!("R is {:.6} Mbit/s, {old}: the sender paces at it", mbit(rate.0)),
                RC,
            ));
            let text = format!(
                "W is what R sends in a round trip, {:.3} ms, and two segments, so that pacing rules",
                seen.after.srtt.0 as f64 / 1e6
            );
            rules.push(Rule::new(text, OURS));
        } else if is_ungranted(seen.reply) {
            let text = match before.rate().0 {
                0 => "no link of the path has answered the wish: the first window goes once in a round trip"
                    .into(),
                rate => format!(
                    "no link of the path has answered the wish: {:.6} Mbit/s is forgotten, and one segment asks again",
                    mbit(rate)
                ),
            };
            rules.push(Rule::new(text, OURS));
        } else {
            rules.push(Rule::new("the ACK brings no rate: nothing changes", OURS));
        }
        if after.rate().0 > 0 && seen.before.is_repairing() {
            rules.push(Rule::new("a loss is being repaired, at the same rate: it says nothing of R", RC));
        }
    }
}

impl LinkWords for Link {
    fn explain(_: &LinkConfig, report: &Report, [came, left]: [&dyn Packet; 2], rules: &mut Vec<Rule>) {
        let (Some(came), Some(left)) = (header::<Header>(came), header::<Header>(left)) else { return };
        let text = format!(
            "interval {}: y = {:.6} Mbit/s came in the last one, d = {:.3} ms is the mean round trip time, and the \
             link offers all flows R = {:.6} Mbit/s",
            report.intervals,
            mbit(report.input.0),
            report.rtt.0 as f64 / 1e6,
            mbit(report.rate.0)
        );
        rules.push(Rule::new(text, "Dukkipati and others 2005, eq. 2"));
        let text = if left.rate < came.rate {
            format!(
                "that is less than the packet asks for, so the link lowers its rate to {:.6} Mbit/s",
                of_header(left.rate)
            )
        } else {
            format!(
                "the packet carries {:.6} Mbit/s, no more than that, and leaves with it",
                of_header(left.rate)
            )
        };
        rules.push(Rule::new(text, RC));
    }

    fn explain_other(_: &LinkConfig) -> Rule {
        Rule::new(
            "the packet has no header of RCP, so the law counts its bytes as input traffic and leaves it alone",
            "Dukkipati and others 2005, section 3",
        )
    }
}
