//! Why the window of XCP-r's first version changes: the receiver answers each packet from its header alone.

use super::{Config, Sender};
use crate::law::words::{Reaction, Rule, SenderWords};
use crate::law::xcp_r::Reply;
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for Sender {
    fn explain(_: &Config, _: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let (reply, after) = (Reply::from(seen.reply), seen.after.window.0);
        let source = "Lopez-Pacheco and Pham 2005, section IV, first version";
        let text = format!(
            "W becomes what the receiver made of this packet alone, H_feedback H_cwnd + H_cwnd = {} B",
            reply.cwnd
        );
        rules.push(Rule::new(text, source));
        if after != u64::from(reply.cwnd) {
            let text = format!("then the sender sets its window, {after} B, which the next packets say");
            rules.push(Rule::new(text, source));
        }
    }
}
