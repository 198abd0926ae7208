//! The result of a run: the numbers of docs/design/contract.md 5.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use congestlab_net::packet::Picos;
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

/// The result of a run; it depends on the model alone, not on the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// False if the run was stopped early.
    pub complete: bool,
    /// Simulated time that the result covers, ps: that of the model unless the run was stopped.
    pub duration: Picos,
    /// False if nothing random was drawn, so that the seed had no effect.
    pub seed_used: bool,
    /// Hash over every event, in the order of elements.
    pub fingerprint: u64,
    /// Packets that entered a link, access and exit hops included.
    pub packet_hops: u64,
    /// Results of the links, in the order of [`crate::model::Model::links`].
    pub links: Vec<LinkOutcome>,
    /// Results of the flows, by group in the order of [`crate::model::Model::groups`].
    pub groups: Vec<FlowOutcomes>,
    /// Time series, in time order, then element order.
    pub series: Vec<Sample>,
    /// Events, in time order, then element order.
    pub events: Vec<Event>,
}

/// The result of one link direction. All counts and means are of the measured time, from the warm-up to the
/// end. Names that end in `_end` are of the end; those that end in `_total` are of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkOutcome {
    /// Mean capacity, bit/s; null if the measured time is empty.
    pub capacity_bps: Option<f64>,
    /// Bits sent per second.
    pub throughput_bps: Option<f64>,
    /// Bits sent, divided by the bits that the capacity allowed.
    pub utilization: Option<f64>,
    /// Packets whose last bit left the port.
    pub sent_packets: u64,
    /// Packets that arrived at the queue.
    pub arrived_packets: u64,
    /// Packets that the queue refused or pushed out.
    pub drops: u64,
    /// The same drops by reason; every reason is listed.
    pub drops_by_reason: DropsByReason,
    /// Packets lost on the wire.
    pub errors: u64,
    /// Packets that got a congestion mark.
    pub marks: u64,
    /// Transmissions that collided on a shared medium; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collisions: Option<u64>,
    /// Packets whose XCP header [claimed more than it may](congestlab_core::law::xcp::LinkConfig::bound_headers); absent where the
    /// law is not XCP's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounded_packets: Option<u64>,
    /// Times that the link's policer began to hold a flow to its share; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policed_flows: Option<u64>,
    /// Packets whose stated spacing the link's policer lowered; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamped_packets: Option<u64>,
    /// Times that the source of the law's capacity told another one; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_changes: Option<u64>,
    /// Time for which the source of the law's capacity was stale, so that the fixed one held; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_stale_s: Option<f64>,
    /// Counts of the XCP-i agent of the link's router, for all of its ports and the whole run
    /// ([`Stats`](congestlab_net::xcp_i::Stats)); absent where there is no agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xcp_i: Option<BTreeMap<&'static str, u64>>,
    /// Packets queued, in service or on the wire at the end.
    pub in_flight_end: u64,
    /// Time-weighted mean of the waiting packets.
    pub queue_mean_packets: Option<f64>,
    /// Queue length, in packets, that was not exceeded for 95 % of the time.
    pub queue_p95_packets: Option<u64>,
    /// Most packets that waited at once.
    pub queue_max_packets: u64,
    /// Packets that wait at the end.
    pub queue_end_packets: u64,
    /// Mean time that packets waited, from their arrival until their transmission began.
    pub queue_delay_mean_ms: Option<f64>,
    /// Time that half of the packets waited at most.
    pub queue_delay_p50_ms: Option<f64>,
    /// Time that 95 % of the packets waited at most.
    pub queue_delay_p95_ms: Option<f64>,
    /// Time that 99 % of the packets waited at most.
    pub queue_delay_p99_ms: Option<f64>,
    /// Longest time that a packet waited.
    pub queue_delay_max_ms: Option<f64>,
    /// Packets whose last bit left the port, in the whole run.
    pub sent_packets_total: u64,
    /// Packets that arrived at the queue, in the whole run.
    pub arrived_packets_total: u64,
    /// Packets that the queue refused or pushed out, in the whole run.
    pub drops_total: u64,
    /// Drops by reason, in the whole run.
    pub drops_by_reason_total: DropsByReason,
    /// Packets lost on the wire, in the whole run.
    pub errors_total: u64,
    /// Packets that got a congestion mark, in the whole run.
    pub marks_total: u64,
    /// Transmissions that collided on a shared medium, in the whole run; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collisions_total: Option<u64>,
    /// Packets whose XCP header claimed more than it may, in the whole run; absent where the law is not XCP's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounded_packets_total: Option<u64>,
    /// Times that the link's policer began to hold a flow to its share, in the whole run; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policed_flows_total: Option<u64>,
    /// Packets whose stated spacing the link's policer lowered, in the whole run; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamped_packets_total: Option<u64>,
    /// Times that the source of the law's capacity told another one, in the whole run; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_changes_total: Option<u64>,
    /// Time for which the source of the law's capacity was stale, in the whole run; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_stale_s_total: Option<f64>,
    /// Most packets that waited at once, in the whole run.
    pub queue_max_packets_total: u64,
}

/// Counts of drops by the names of their reasons. Copies share them: most links of a large network drop nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DropsByReason(Arc<BTreeMap<&'static str, u64>>);

impl From<BTreeMap<&'static str, u64>> for DropsByReason {
    fn from(counts: BTreeMap<&'static str, u64>) -> Self {
        Self(Arc::new(counts))
    }
}

impl Deref for DropsByReason {
    type Target = BTreeMap<&'static str, u64>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Serialize for DropsByReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The result of one flow. Null where there is nothing to measure. Rates, means and percentiles are of the
/// part of the measured time in which the flow has something to send, counts and maxima of all of it; names
/// that end in `_total` are of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowOutcome {
    /// Rate at which bytes arrived for the first time, in any order, with the headers of their packets.
    pub goodput_bps: Option<f64>,
    /// The same rate without the headers of IP, TCP or UDP, and of the law.
    pub payload_bps: Option<f64>,
    /// Rate of sending, with retransmissions and headers.
    pub throughput_bps: Option<f64>,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets that arrived at the receiver, duplicates included.
    pub received_packets: u64,
    /// Bytes that arrived for the first time, in any order, with headers.
    pub arrived_bytes: u64,
    /// Bytes delivered to the application in order, with headers.
    pub delivered_bytes: u64,
    /// Data packets sent again.
    pub retransmits: u64,
    /// Retransmitted packets whose segment had already arrived.
    pub spurious_retransmits: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Reductions of the congestion window after a loss or a mark, timeouts not included.
    pub window_cuts: u64,
    /// Mean of the round-trip time samples.
    pub rtt_mean_ms: Option<f64>,
    /// 95th percentile of the round-trip time samples.
    pub rtt_p95_ms: Option<f64>,
    /// Time-weighted mean of the congestion window, in segments.
    pub cwnd_mean_packets: Option<f64>,
    /// Largest congestion window, in segments.
    pub cwnd_max_packets: Option<f64>,
    /// Longest time without sent data.
    pub idle_max_s: Option<f64>,
    /// Start of the flow.
    pub start_s: f64,
    /// Time from which the flow sends no new data; null if there is none.
    pub stop_s: Option<f64>,
    /// Time from the start until the last byte is acknowledged; null if that does not happen.
    pub completion_s: Option<f64>,
    /// Bytes of the whole transfer; `None` if it has no end, or was stopped.
    pub size_bytes: Option<u64>,
    /// Completion time over the least that it could be on an idle path.
    pub slowdown: Option<f64>,
    /// Data packets sent, retransmissions included, in the whole run.
    pub sent_packets_total: u64,
    /// Data packets that arrived at the receiver, duplicates included, in the whole run.
    pub received_packets_total: u64,
    /// Bytes that arrived for the first time, in any order, with headers, in the whole run.
    pub arrived_bytes_total: u64,
    /// Bytes delivered to the application in order, with headers, in the whole run.
    pub delivered_bytes_total: u64,
    /// Data packets sent again, in the whole run.
    pub retransmits_total: u64,
    /// Retransmitted packets whose segment had already arrived, in the whole run.
    pub spurious_retransmits_total: u64,
    /// Expiries of the retransmission timer, in the whole run.
    pub timeouts_total: u64,
    /// Reductions of the congestion window after a loss or a mark, timeouts not included, in the whole run.
    pub window_cuts_total: u64,
    /// Largest congestion window, in segments, in the whole run.
    pub cwnd_max_packets_total: Option<f64>,
    /// Longest time without sent data, in the whole run.
    pub idle_max_s_total: Option<f64>,
}

/// The results of the flows of a group, in order.
///
/// They read as a slice. Those of connections are made from what is left of their hosts, one at a time by
/// [`FlowOutcomes::each`], and all of them only where a slice is asked for.
#[derive(Clone, Default)]
pub struct FlowOutcomes {
    count: usize,
    /// Makes the result of a flow; `None`: they are listed.
    make: Option<Arc<dyn Fn(u32) -> FlowOutcome + Send + Sync>>,
    listed: OnceLock<Vec<FlowOutcome>>,
}

impl FlowOutcomes {
    /// So many results that `make` makes.
    pub(crate) fn made(count: usize, make: impl Fn(u32) -> FlowOutcome + Send + Sync + 'static) -> Self {
        Self { count, make: Some(Arc::new(make)), listed: OnceLock::new() }
    }

    /// Returns the number of flows; that of a slice needs the slice.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `tell` with the result of each flow, none of which are kept.
    pub fn each(&self, mut tell: impl FnMut(&FlowOutcome)) {
        (0..self.count).for_each(|flow| tell(&self.one(flow)));
    }

    /// One of `count` results.
    fn one(&self, flow: usize) -> Cow<'_, FlowOutcome> {
        match (self.listed.get(), &self.make) {
            (None, Some(make)) => Cow::Owned(make(flow as u32)),
            _ => Cow::Borrowed(&self[flow]),
        }
    }

    /// Returns true if the results need the memory of a list.
    pub fn is_listed(&self) -> bool {
        self.make.is_none() || self.listed.get().is_some()
    }
}

impl Deref for FlowOutcomes {
    type Target = [FlowOutcome];

    fn deref(&self) -> &[FlowOutcome] {
        let list = || match &self.make {
            Some(make) => (0..self.count as u32).map(|flow| make(flow)).collect(),
            None => Vec::new(),
        };
        self.listed.get_or_init(list)
    }
}

impl DerefMut for FlowOutcomes {
    fn deref_mut(&mut self) -> &mut [FlowOutcome] {
        let _ = self.deref();
        self.listed.get_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

impl From<Vec<FlowOutcome>> for FlowOutcomes {
    fn from(list: Vec<FlowOutcome>) -> Self {
        Self { count: list.len(), make: None, listed: list.into() }
    }
}

impl FromIterator<FlowOutcome> for FlowOutcomes {
    fn from_iter<I: IntoIterator<Item = FlowOutcome>>(flows: I) -> Self {
        flows.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'a> IntoIterator for &'a FlowOutcomes {
    type Item = &'a FlowOutcome;
    type IntoIter = std::slice::Iter<'a, FlowOutcome>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for FlowOutcomes {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && (0..self.count).all(|flow| self.one(flow) == other.one(flow))
    }
}

impl Debug for FlowOutcomes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl Serialize for FlowOutcomes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.count))?;
        let mut written = Ok(());
        self.each(|flow| {
            if written.is_ok() {
                written = list.serialize_element(flow);
            }
        });
        written?;
        list.end()
    }
}

/// The element that a sample or an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A link: index into [`crate::model::Model::links`].
    Link(u32),
    /// A cloud: the link at its downstream edge through which its packets leave, and its number among the
    /// clouds of that link.
    Cloud(u32, u32),
    /// A flow: the index of its group, and its index in the group.
    Flow(u32, u32),
}

/// One value of a time series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// End of the bin, ps.
    pub at: Picos,
    /// Element that the value belongs to.
    pub element: Element,
    /// Metric name of docs/design/contract.md 5.
    pub metric: &'static str,
    /// Value, in the unit that the metric's name ends in.
    pub value: f64,
}

/// One event of the event log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Time of the event, ps.
    pub at: Picos,
    /// Element that it happened to.
    pub element: Element,
    /// Kind of event: `drop`, `error`, `mark`, `timeout`, `retransmit` or `control-interval`.
    pub kind: &'static str,
    /// Reason of a drop; empty for other events.
    pub detail: &'static str,
    /// Flow of the packet, as an index over the whole run, for events at links.
    pub flow: Option<u32>,
    /// Segment number of the packet, or the decision of a link law for a control interval: XCP's aggregate
    /// feedback, B/s.
    pub value: i64,
}
