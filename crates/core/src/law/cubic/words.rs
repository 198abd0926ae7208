//! Why CUBIC's window changes.

use super::{Config, Cubic};
use crate::law::words::{Reaction, Rule, SenderWords};
use crate::units::Time;
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for Cubic {
    fn explain(_: &Config, [_, law]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let report = law.report();
        let is_cut = seen.after.window_cuts != seen.before.window_cuts;
        if seen.restraint(rules) {
        } else if !is_cut && seen.before.window < report.ssthresh {
            seen.slow_start(report.ssthresh, rules);
        } else if !seen.repair(rules) && report.epoch != Time::NEVER {
            let (t, k) = ((seen.now - report.epoch).0 as f64 / 1e9, report.k.0 as f64 / 1e9);
            let text = if seen.after.window == report.w_est {
                format!(
                    "Reno-friendly region: Reno would have {} B by now, more than the curve, so that is the window",
                    report.w_est.0
                )
            } else {
                let region = if t < k { "concave region" } else { "convex region" };
                format!(
                    "{region}: {t:.2} s after the last decrease W(t) = C (t - K)^3 + W_max, with K = {k:.2} s and \
                     W_max = {} B; it moves towards W(t + srtt) by (W(t + srtt) - W) / W per segment acknowledged",
                    report.w_max.0
                )
            };
            rules.push(Rule::new(text, "RFC 9438 sections 4.2 to 4.5"));
        }
        seen.cut(rules);
    }
}
