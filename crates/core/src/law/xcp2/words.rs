//! Why XCP2's window changes.

use super::{Sender, SenderConfig};
use crate::law::words::{Reaction, Rule};
use crate::law::{SenderLaw, xcp};
use alloc::format;
use alloc::vec::Vec;

pub(super) fn explain(
    config: &SenderConfig,
    [before, after]: [&Sender; 2],
    seen: &Reaction,
    rules: &mut Vec<Rule>,
) {
    let states = [before, after].map(|sender| SenderLaw::base_state(sender).downcast_ref::<xcp::Sender>());
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
