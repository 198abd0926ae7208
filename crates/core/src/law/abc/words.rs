//! Sentences about ABC's marks and windows.

use super::{ACCELERATE, BRAKE, LinkConfig, Sender};
use crate::law::Packet;
use crate::law::settings::Finding;
use crate::law::words::{Reaction, Rule};
use crate::units::Bytes;
use alloc::format;
use alloc::vec::Vec;

const SOURCE: &str = "docs/design/modern.md 2.3";

/// Size of the packets that are counted, bytes.
const PACKET: Bytes = Bytes(1500);
/// Packets that have to fit into the window, so that the output that is measured in it is no coarse number.
const FEW: u64 = 6;

/// Warns where the capacity, if it is known, brings few packets in the window, and names the window that has enough.
pub(super) fn check_packets(config: &LinkConfig, tell: &mut dyn FnMut(Finding)) {
    let packets = config.capacity.over(config.window).0 / PACKET.0;
    if config.capacity.0 == 0 || packets >= FEW {
        return;
    }
    // In whole ms, rounded up.
    let fits = (PACKET.0 * FEW * 1000).div_ceil(config.capacity.0);
    let text = format!(
        "is {}, in which {packets} packets of {} B leave at most, so a part of the link stays empty",
        config.window, PACKET.0
    );
    let help = format!("write window = \"{fits} ms\", in which {FEW} leave");
    tell(Finding { is_error: false, ..Finding::range("window", text, help) });
}

/// Says which code a link put on a packet, and why.
pub(super) fn hop(config: &LinkConfig, came: &dyn Packet, left: &dyn Packet, rules: &mut Vec<Rule>) {
    let text = match (came.ecn(), left.ecn()) {
        (ACCELERATE, BRAKE) => format!(
            "no token was left, so the packet that could accelerate brakes: of the packets in the {} that the law \
             looks back to, only so many may accelerate that a round trip later comes what the link can carry",
            config.window
        ),
        (ACCELERATE, _) => {
            "a token was left, so the packet accelerates: its sender may send two for it".into()
        }
        (BRAKE, _) => "the packet brakes already, and no link makes it accelerate again".into(),
        (code, _) => format!("ECN code {code} is not of ABC, so the law leaves it alone"),
    };
    rules.push(Rule::new(text, SOURCE));
}

/// Says why an acknowledgment changed the window.
pub(super) fn reaction([before, after]: [&Sender; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
    let packets = |bytes: u64| bytes as f64 / seen.segment.0.max(1) as f64;
    let text = format!(
        "ABC's window went from {:.2} to {:.2} packets by accelerations and brakes, CUBIC's beside it from {:.2} to {:.2}; \
         the lesser of both counts, and neither passes twice of what is in flight",
        packets(before.by_marks().0),
        packets(after.by_marks().0),
        packets(before.by_losses().0),
        packets(after.by_losses().0)
    );
    rules.push(Rule::new(text, "docs/design/modern.md 2.4"));
    seen.cut(rules);
}
