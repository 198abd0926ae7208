//! Sentences about Prague's window.

use super::{Config, ONE, PLACES, Sender};
use crate::law::SenderLaw as _;
use crate::law::words::{Reaction, Rule, SenderWords};
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for Sender {
    fn explain(config: &Config, [before, after]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let alpha = f64::from(after.share().alpha()) / f64::from(1 << PLACES);
        let is_marked = after.heard != before.heard;
        if is_marked && after.window() < before.window() && seen.after.window_cuts == seen.before.window_cuts
        {
            let text = format!(
                "the receiver has counted new marks, so the window loses alpha / 2 of it: alpha = {alpha:.4}"
            );
            rules.push(Rule::new(text, "docs/design/modern.md 4.6, RFC 8257 section 3.3"));
        } else if !seen.restraint(rules) {
            if before.window() < before.ssthresh() {
                seen.slow_start(before.ssthresh(), rules);
            } else if !seen.repair(rules) {
                let growth = if before.is_independent(config) { config.growth(seen.after.srtt) } else { ONE };
                let text = format!(
                    "what came without a mark lets it grow, by {:.4} segments in a round trip without marks: alpha = {alpha:.4}",
                    growth as f64 / ONE as f64
                );
                rules.push(Rule::new(text, "docs/design/modern.md 4.6"));
            }
        }
        seen.cut(rules);
    }
}
