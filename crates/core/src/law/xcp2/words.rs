//! Why XCP2's window changes.

use super::{Link, LinkConfig, Sender, SenderConfig};
use crate::law::words::{LinkWords, Reaction, Rule, SenderWords};
use crate::law::{SenderLaw, xcp};
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for Sender {
    fn explain(config: &SenderConfig, [before, after]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let states =
            [before, after].map(|sender| SenderLaw::base_state(sender).downcast_ref::<xcp::Sender>());
        if let [Some(before), Some(after)] = states {
            xcp::Sender::explain(&config.xcp, [before, after], seen, rules);
        }
        let parts = [before, after].map(|sender| sender.part() as f64 / 65_536.0);
        if parts != [1.0; 2] {
            let text = format!(
                "links want less than a packet in a round trip: the window was {:.3} of a segment and is {:.3}",
                parts[0], parts[1]
            );
            rules.push(Rule::new(text, "ours"));
        }
    }
}

impl LinkWords for Link {
    fn explain_other(config: &LinkConfig) -> Rule {
        xcp::Link::explain_other(&config.xcp)
    }
}
