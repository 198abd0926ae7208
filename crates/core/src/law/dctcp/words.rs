//! Sentences about DCTCP's window.

use super::{Config, PLACES, Sender};
use crate::law::words::{Reaction, Rule, SenderWords};
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for Sender {
    fn explain(_: &Config, [_, law]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let alpha = f64::from(law.share().alpha()) / f64::from(1 << PLACES);
        let text = if seen.after.window < seen.before.window {
            format!(
                "the receiver has counted new marks, so the window loses alpha / 2 of it: alpha = {alpha:.4}"
            )
        } else if law.calm().0 > 0 {
            "marks have cut the window less than a window of data ago, so it neither shrinks nor grows".into()
        } else {
            format!("no marks are new, so it grows as Reno does: alpha = {alpha:.4}")
        };
        rules.push(Rule::new(text, "RFC 8257 section 3.3"));
        seen.cut(rules);
    }
}
