//! The shaper of a router, as tc tells it.

use congestlab_core::units::{BitRate, Rate};
use serde_json::Value;

use super::{Interface, Law, Queue, burst, json};
use crate::error::Result;
use crate::sys::qdisc::Classes;

/// The class of the whole link, of two classes.
pub(super) const LINK: u32 = super::HANDLE | 0x1;

/// State of the shaper that [`attach`](super::attach) set up, as tc tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shaper {
    pub(super) rate: Rate,
    /// Bytes in the bucket; `None`: packets pass whose size is larger, for it is that of two classes.
    pub(super) bucket: Option<u64>,
    pub(super) limit: u64,
    counts_packets: bool,
}

impl Shaper {
    /// `None`: there is none of ours.
    pub(super) fn of(interface: &Interface) -> Result<Option<Self>> {
        let list = json(&format!("tc -j qdisc show dev {}", interface.name))?;
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        let number = |qdisc: &Value, key: &str| qdisc["options"][key].as_u64();
        let root = list.iter().find(|qdisc| qdisc["handle"] == "cc1:" && qdisc["root"] == true);
        let has_classes = root.is_some_and(|root| root["kind"] == "htb");
        // Of the bucket itself, tc prints a latency instead where the limit is more than the bucket holds.
        let queue = list.iter().find(|qdisc| qdisc["parent"] == if has_classes { "cc1:10" } else { "cc1:1" });
        let (Some(root), Some(queue)) = (root, queue) else { return Ok(None) };
        let rate = if has_classes { rate(interface)? } else { number(root, "rate").map(Rate) };
        let bucket = if has_classes { None } else { number(root, "burst") };
        let (Some(rate), Some(limit)) = (rate, number(queue, "limit")) else { return Ok(None) };
        let counts_packets = queue["kind"] == "pfifo";
        Ok((has_classes || bucket.is_some()).then_some(Self { rate, bucket, limit, counts_packets }))
    }

    /// Returns true if it has the classes that this law wants, or none, and a queue that counts alike.
    pub(super) fn is_that_of(&self, law: &Law, queue: Queue) -> bool {
        self.bucket.is_none() == matches!(law, Law::Beside(..))
            && matches!(queue, Queue::Packets(_)) == self.counts_packets
    }

    /// The kind of its queues.
    pub(super) fn kind(&self) -> &'static str {
        if self.counts_packets { "pfifo" } else { "bfifo" }
    }

    /// True if the bucket is not the one for this interface. tc tells the kernel microseconds at the rate, and cuts twice.
    pub(super) fn has_other_bucket(&self, rate: BitRate, interface: &Interface) -> bool {
        let wanted = burst(rate, interface.mtu + interface.link_header);
        let allowed = wanted / 64 + 2 * (1 + rate.bytes().0 / 1_000_000);
        self.bucket.is_some_and(|bucket| bucket.abs_diff(wanted) > allowed)
    }
}

/// Warns of packets that the bucket can not hold: its size was that for the MTU when it was made.
pub(super) fn warning(interface: &Interface, shaper: Shaper) -> Option<String> {
    let Interface { name, mtu, link_header, .. } = interface;
    let (rate, bucket) = (shaper.rate.bits(), shaper.bucket?);
    let is_smaller = bucket < burst(rate, mtu + link_header) && shaper.has_other_bucket(rate, interface);
    if !is_smaller {
        return None;
    }
    let effect = if u64::from(*mtu) > bucket {
        "longer packets are dropped"
    } else {
        "two packets do not fit, so that the rate may not be reached"
    };
    Some(format!(
        "MTU is now {mtu}, the shaper's bucket holds {bucket} B: {effect}; congestlab router set {name} --rate \"{rate}\""
    ))
}

/// The rate of the whole link, with which its classes were made.
fn rate(interface: &Interface) -> Result<Option<Rate>> {
    Classes::open(interface.index)?.rate(LINK)
}
