//! Costs of packets and of meetings of threads, in instructions.

use congestlab_net::packet::Picos;

use crate::network::{Network, Node};

/// A second.
pub(crate) const SECOND: u128 = 1_000_000_000_000;

/// Instructions that a packet takes at a node, with its way there (callgrind; a dumbbell with XCP): data waits in queues,
/// acknowledgments pass.
const DATA: u32 = 700;
const ACKS: u32 = 200;
pub(crate) const SENDER: u32 = 850;
pub(crate) const RECEIVER: u32 = 350;
/// Instructions that a packet takes on either side where it goes from one thread to another.
pub(crate) const HANDED: u64 = 60;

/// A meeting of so many threads that are awake, as instructions: 1 us, and 0.2 us for what each has to say and to send.
pub(crate) const fn meeting(threads: usize) -> u64 {
    10_000 + 2_000 * threads as u64
}

/// Instructions that a packet takes, by node.
pub(crate) fn costs(network: &Network) -> Vec<u32> {
    let mut has_data = vec![false; network.links];
    for class in (0..).take(network.classes.len()).filter(|&class| network.is_sender(class)) {
        network.links_of(&network.classes[class as usize]).for_each(|link| has_data[link] = true);
    }
    let cost = |node| match network.node(node) {
        Node::Link(link) if has_data[link as usize] => DATA,
        Node::Link(_) => ACKS,
        Node::Class(class) if network.is_sender(class) => SENDER,
        Node::Class(_) => RECEIVER,
        Node::Device(_) => DATA,
    };
    (0..network.nodes()).map(cost).collect()
}

/// Instructions that meetings of so many threads cost in a second, if there is one in each time so long.
pub(crate) fn of_meetings(threads: usize, every: Picos) -> u64 {
    (u128::from(meeting(threads)) * SECOND / u128::from(every.max(1))) as u64
}
