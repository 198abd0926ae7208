//! Why TCP-Peach's window changes.

use super::{Config, Peach};
use crate::law::words::{Reaction, Rule, SenderWords};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl SenderWords for Peach {
    fn explain(_: &Config, [law, _]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let mut rule = |text: String| rules.push(Rule::new(text, "docs/design/protocols.md 8.3, recalled"));
        if seen.is_probe && law.wdsn() > 0 {
            rule(format!(
                "the acknowledgment of a probe: it is one of {} (wdsn) that the halved window had room for anyway",
                law.wdsn()
            ));
        } else if seen.is_probe && seen.after.window > seen.before.window {
            rule("the acknowledgment of a probe: the path has room for a segment more".into());
        } else if seen.is_probe {
            rule("the acknowledgment of a probe: the window is at rwnd already".into());
        } else if !seen.restraint(rules) && !seen.repair(rules) {
            let text = "congestion avoidance: it grows by one segment per window acknowledged";
            rules.push(Rule::new(text, "RFC 5681 section 3.1"));
        }
        seen.cut(rules);
    }
}
