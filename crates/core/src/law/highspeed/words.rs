//! Why HighSpeed TCP's window changes.

use super::{Config, HighSpeed, increase};
use crate::law::words::{Reaction, Rule, SenderWords};
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for HighSpeed {
    fn explain(_: &Config, [law, _]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        if seen.restraint(rules) {
        } else if seen.before.window < law.ssthresh() {
            seen.slow_start(law.ssthresh(), rules);
        } else if !seen.repair(rules) {
            let increase = increase(law.segments()) as f64 / 65_536.0;
            let text = format!(
                "congestion avoidance: with {} segments a(w) = {increase:.3}, so it grows by that many segments per \
                 window acknowledged",
                law.segments()
            );
            rules.push(Rule::new(text, "RFC 3649 section 5"));
        }
        seen.cut(rules);
    }
}
