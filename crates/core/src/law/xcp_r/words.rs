//! Why XCP-r's window changes: it comes from the receiver, or from a change that the sender makes on its own.

use super::{Config, Reply, Sender};
use crate::law::words::{Reaction, Rule, SenderWords};
use crate::law::{SenderLaw as _, xcp};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl SenderWords for Sender {
    fn explain(config: &Config, [before, after]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        const OURS: &str = "docs/design/protocols.md 4.3";
        let reply = Reply::from(seen.reply);
        let mut rule = |text: String, source| rules.push(Rule::new(text, source));
        let (epoch, _) = before.epoch();
        let stated = before.stated(config, reply);
        let is_stale = config.epochs && (seen.is_late || stated.is_none());
        if config.epochs && stated.is_none() {
            let text =
                format!("the ACK is of epoch {}, before the sender's last change: not taken", reply.epoch);
            rule(text, OURS);
        } else if is_stale {
            rule("another ACK overtook this one: its window is an old one, and not taken".into(), OURS);
        } else if before.xcp().is_tcp() {
            let text = "after a loss Reno sets the window until XCP's is the smaller";
            rule(text.into(), "draft-03 section 5.1");
        } else {
            let text = format!("W becomes what the receiver keeps for it, {} B", reply.cwnd);
            rule(text, "Lopez-Pacheco and Pham 2005, section IV");
            if reply.epoch != epoch {
                let text = format!(
                    "that is of epoch {}: the changes that the sender has made since are added, which is {} B",
                    reply.epoch,
                    stated.unwrap_or_default() >> xcp::PLACES
                );
                rule(text, OURS);
            }
        }
        let window = after.window().0;
        if after.epoch().0 != epoch {
            let text = format!(
                "then the sender sets its window, {window} B: epoch {}, which the receiver is told with the next \
                 packets",
                after.epoch().0
            );
            rule(text, OURS);
        } else if !is_stale && !before.xcp().is_tcp() && Some(window) != stated.map(|it| it >> xcp::PLACES) {
            rule(format!("then the sender sets its window, {window} B, which the next packets say"), OURS);
        }
    }
}
