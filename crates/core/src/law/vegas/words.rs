//! Why Vegas's window changes.

use super::{Config, Vegas};
use crate::law::words::{Reaction, Rule, SenderWords};
use crate::units::Ratio;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Ordering;

impl SenderWords for Vegas {
    fn explain(config: &Config, [_, law]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        reason(config, law, seen, rules);
        seen.cut(rules);
    }
}

fn reason(config: &Config, law: &Vegas, seen: &Reaction, rules: &mut Vec<Rule>) {
    let packets = |millionths: u64| millionths as f64 / f64::from(Ratio::ONE.0);
    let queued = format!(
        "the last comparison, with a least round trip time of {:.3} ms, found {:.2} packets of its own in the queue",
        law.base_rtt().0 as f64 / 1e6,
        packets(law.queued())
    );
    let (old, new) = (seen.before.window, seen.after.window);
    let text = if old < law.ssthresh() {
        format!("slow start, in every other round trip: {queued}")
    } else if seen.repair(rules) {
        return;
    } else {
        let [alpha, beta] = [config.alpha, config.beta].map(|bound| packets(bound.0.into()));
        let verdict = match new.cmp(&old) {
            Ordering::Greater => format!("fewer than alpha = {alpha}, so it grows by one segment"),
            Ordering::Less => format!("more than beta = {beta}, so it shrinks by one segment"),
            Ordering::Equal => {
                format!("below alpha = {alpha} it grows, above beta = {beta} it shrinks, once a round trip")
            }
        };
        format!("congestion avoidance: {queued}; {verdict}")
    };
    rules.push(Rule::new(text, "Brakmo and Peterson 1995, section III"));
}
