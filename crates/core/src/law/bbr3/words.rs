//! Why the window and the pace of BBR version 3 change.

use super::{Bbr3, Config, State};
use crate::law::words::{Reaction, Rule, SenderWords};
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for Bbr3 {
    fn explain(_: &Config, [_, law]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let model = format!(
            "the best delivery rate of two probes is {} B/s and the least round trip time {:.3} ms",
            law.max_bw().0,
            law.min_rtt().0 as f64 / 1e6
        );
        let state = match law.state() {
            State::Startup => {
                "Startup, until three round trips deliver no quarter more or losses say that it is too much"
            }
            State::Drain => "Drain, at half the rate until no more than the pipe holds is in flight",
            State::Down => "DOWN, a tenth below the rate, until the queue of the probe is gone",
            State::Cruise => {
                "CRUISE, at the rate, below what probing found to be the bound, so that others find room"
            }
            State::Refill => {
                "REFILL, a round trip at the rate without the bounds of losses, before the probe"
            }
            State::Up => {
                "UP, a quarter above the rate, until losses, the bound or three round trips without growth end it"
            }
            State::ProbeRtt => "ProbeRTT, half of what the pipe holds, to see the round trip without a queue",
        };
        rules.push(Rule::new(format!("{state}: {model}"), "draft-ietf-ccwg-bbr section 5.3"));
        let is_cut = seen.after.window_cuts > seen.before.window_cuts;
        if is_cut && (!seen.after.is_repairing() || seen.before.is_repairing()) {
            let text = "more was lost in a round trip than the bounds allow, so they are lowered, and the window with them";
            rules.push(Rule::new(text, "draft-ietf-ccwg-bbr section 5.5.10"));
        } else {
            seen.cut(rules);
        }
    }
}
