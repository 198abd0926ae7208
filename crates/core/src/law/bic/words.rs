//! Why BIC's window changes.

use super::{Bic, Config};
use crate::law::words::{Reaction, Rule, SenderWords};
use crate::units::Bytes;
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for Bic {
    fn explain(config: &Config, [law, _]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        if seen.restraint(rules) {
        } else if seen.before.window < law.ssthresh() {
            seen.slow_start(law.ssthresh(), rules);
        } else if !seen.repair(rules) {
            let text = match law.max_win() {
                Bytes(u64::MAX) => format!(
                    "beyond the window of the last loss: it grows faster every round trip, up to {} segments",
                    config.max_increment
                ),
                Bytes(max) => format!(
                    "the last loss was at {max} B: it grows by half the distance per round trip, {} segments at most; \
                     as Reno below {} segments",
                    config.max_increment, config.low_window
                ),
            };
            rules.push(Rule::new(text, "Xu, Harfoush and Rhee 2004, section III"));
        }
        seen.cut(rules);
    }
}
