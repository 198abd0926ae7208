//! Sentences about ABC's marks and windows.

use super::{ACCELERATE, BRAKE, Link, LinkConfig, Report, Sender, SenderConfig};
use crate::law::Packet;
use crate::law::words::{LinkWords, Reaction, Rule, SenderWords};
use alloc::format;
use alloc::vec::Vec;

const SOURCE: &str = "docs/design/modern.md 2.3";

impl SenderWords for Sender {
    fn explain(_: &SenderConfig, [before, after]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let packets = |bytes: u64| bytes as f64 / seen.segment.0.max(1) as f64;
        let text = format!(
            "ABC's window went from {:.2} to {:.2} packets by accelerations and brakes, CUBIC's beside it from {:.2} to {:.2}; \
             the lesser of both counts, and neither passes twice of what is in flight",
            packets(before.by_marks().0),
            packets(after.by_marks().0),
            packets(before.by_losses().0),
            packets(after.by_losses().0)
        );
        rules.push(Rule::new(text, "docs/design/modern.md 2.4"));
        seen.cut(rules);
    }
}

impl LinkWords for Link {
    fn explain(config: &LinkConfig, _: &Report, [came, left]: [&dyn Packet; 2], rules: &mut Vec<Rule>) {
        let text = match (came.ecn(), left.ecn()) {
            (ACCELERATE, BRAKE) => format!(
                "no token was left, so the packet that could accelerate brakes: of the packets in the {} that the law \
                 looks back to, only so many may accelerate that a round trip later comes what the link can carry",
                config.window
            ),
            (ACCELERATE, _) => {
                "a token was left, so the packet accelerates: its sender may send two for it".into()
            }
            (BRAKE, _) => "the packet brakes already, and no link makes it accelerate again".into(),
            (code, _) => format!("ECN code {code} is not of ABC, so the law leaves it alone"),
        };
        rules.push(Rule::new(text, SOURCE));
    }

    fn misread_ecn(_: &LinkConfig) -> Option<&'static str> {
        Some(
            "the link reads ECT(1) as a packet that accelerates and ECT(0) as one that brakes, counts both as packets of ABC, and \
             makes ECT(0) of ECT(1)",
        )
    }

    fn explain_other(_: &LinkConfig) -> Rule {
        Rule::new(
            "the packet is not of ABC, so the law counts its bytes as output and leaves it alone",
            "docs/design/modern.md 2.3",
        )
    }
}
