//! Sentences about HPCC's telemetry and windows.

use super::{Header, Link, LinkConfig, PLACES, Report, Sender, SenderConfig, Signal, TOLD, WAIT};
use crate::law::Packet;
use crate::law::words::{LinkWords, Reaction, Rule, SenderWords, header};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const HPCC: &str = "Li and others 2019, section 3";
const OURS: &str = "docs/protocols/hpcc.md";

/// A load of 2^-20 as a number.
fn load(load: u64) -> f64 {
    load as f64 / f64::from(1 << PLACES)
}

fn shown(header: Header) -> String {
    let value = f64::from(header.value);
    match header.signal {
        Signal::Load => format!("a load of {:.3}", value / f64::from(1 << TOLD)),
        Signal::Free => format!("{:.3} of a capacity free", value / f64::from(1 << PLACES)),
        Signal::Wait => format!("a wait of {:.3} us", value * f64::from(1 << WAIT) / 1e3),
    }
}

impl SenderWords for Sender {
    fn explain_packet(_: &SenderConfig, packet: &dyn Packet, rules: &mut Vec<Rule>) {
        let Some(header) = header::<Header>(packet) else { return };
        let text = match header.signal {
            Signal::Load => "its telemetry asks for the largest load of the path",
            Signal::Free => "its tag asks for the least free part of a capacity of the path",
            Signal::Wait => "its tag asks for the longest wait of the path",
        };
        rules.push(Rule::new(text, OURS));
    }

    fn explain(config: &SenderConfig, [_, after]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let text = match after.load() {
            0 => "no hop told a load: the window stays".into(),
            told => format!(
                "U, the load of the worst hop, is {:.3}: the window is that of the last round trip times {:.3} / U and a bit",
                load(told),
                f64::from(config.eta.0) / 1e6
            ),
        };
        rules.push(Rule::new(text, HPCC));
        seen.cut(rules);
    }
}

impl LinkWords for Link {
    fn explain(_: &LinkConfig, report: &Report, [came, left]: [&dyn Packet; 2], rules: &mut Vec<Rule>) {
        let (Some(came), Some(left)) = (header::<Header>(came), header::<Header>(left)) else { return };
        let text = format!(
            "the port's load is {:.3}, and a packet that comes now waits {:.3} us",
            load(report.load.into()),
            report.wait.0 as f64 / 1e3
        );
        rules.push(Rule::new(text, HPCC));
        let text = if came == left {
            format!("the packet says {}, which is no better, and leaves with it", shown(came))
        } else {
            format!("the packet said {}, and leaves with {}", shown(came), shown(left))
        };
        rules.push(Rule::new(text, OURS));
    }

    fn explain_other(_: &LinkConfig) -> Rule {
        Rule::new(
            "the packet has no telemetry, so the law counts its bytes and leaves it alone",
            "docs/protocols/hpcc.md",
        )
    }
}
