//! What a run returns: exactly the numbers of the contract's section 5.

use std::collections::BTreeMap;

use congestlab_net::packet::Picos;
use serde::Serialize;

/// The result of a run; a value, without anything of the machine that made it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// False if the run was stopped early.
    pub complete: bool,
    /// The time that it covers: that of the model unless it was stopped.
    pub duration: Picos,
    /// False if nothing random was drawn: the seed had no effect.
    pub seed_used: bool,
    /// Hash over every event in entity order.
    pub fingerprint: u64,
    /// Packets that entered a link, access and exit included.
    pub packet_hops: u64,
    /// In the order of [`crate::model::Model::links`].
    pub links: Vec<LinkOutcome>,
    /// In the order of [`crate::model::Model::groups`], flows in order.
    pub groups: Vec<Vec<FlowOutcome>>,
    /// Time series, in time order, then element order.
    pub series: Vec<Sample>,
    /// Events, in time order, then element order.
    pub events: Vec<Event>,
}

/// One link direction. Field names are the contract's. All of it is of the measured time, but for what
/// is left at the end, and for the names that end in `total`: those are of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkOutcome {
    /// Mean rate over the measured time.
    pub capacity_bps: Option<f64>,
    /// Bits sent over the measured time.
    pub throughput_bps: Option<f64>,
    /// Bits sent / integral of the rate.
    pub utilization: Option<f64>,
    /// Packets whose last bit left.
    pub sent_packets: u64,
    /// Packets that arrived at the queue.
    pub arrived_packets: u64,
    /// Packets that the queue refused or pushed out.
    pub drops: u64,
    /// The same by reason, every reason listed.
    pub drops_by_reason: BTreeMap<&'static str, u64>,
    /// Packets lost on the wire.
    pub errors: u64,
    /// Packets that got a congestion mark.
    pub marks: u64,
    /// Transmissions that collided on a shared medium; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collisions: Option<u64>,
    /// What the XCP-i agent of its router counted, for all of its ports
    /// ([`Stats`](congestlab_net::xcp_i::Stats)) in the whole run; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xcp_i: Option<BTreeMap<&'static str, u64>>,
    /// Packets queued, in service or on the wire at the end.
    pub in_flight_end: u64,
    /// Time-weighted mean of the queue.
    pub queue_mean_packets: Option<f64>,
    /// Time-weighted 95th percentile.
    pub queue_p95_packets: Option<u64>,
    /// Maximum.
    pub queue_max_packets: u64,
    /// At the end.
    pub queue_end_packets: u64,
    /// As without `total`, in the whole run.
    pub sent_packets_total: u64,
    /// The same.
    pub arrived_packets_total: u64,
    /// The same.
    pub drops_total: u64,
    /// The same.
    pub drops_by_reason_total: BTreeMap<&'static str, u64>,
    /// The same.
    pub errors_total: u64,
    /// The same.
    pub marks_total: u64,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collisions_total: Option<u64>,
    /// The same.
    pub queue_max_packets_total: u64,
}

/// One flow. Field names are the contract's; null where there is nothing to measure. Rates, means and
/// percentiles are of the part of the measured time in which it has something to send, counts and maxima
/// of all of it; those whose names end in `total` of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "contract section 5 defines each by this name")]
pub struct FlowOutcome {
    pub goodput_bps: Option<f64>,
    pub payload_bps: Option<f64>,
    pub throughput_bps: Option<f64>,
    pub sent_packets: u64,
    pub received_packets: u64,
    pub delivered_bytes: u64,
    pub retransmits: u64,
    pub spurious_retransmits: u64,
    pub timeouts: u64,
    pub window_cuts: u64,
    pub rtt_mean_ms: Option<f64>,
    pub rtt_p95_ms: Option<f64>,
    pub cwnd_mean_packets: Option<f64>,
    pub cwnd_max_packets: Option<f64>,
    pub idle_max_s: Option<f64>,
    pub start_s: f64,
    pub stop_s: Option<f64>,
    pub completion_s: Option<f64>,
    pub sent_packets_total: u64,
    pub received_packets_total: u64,
    pub delivered_bytes_total: u64,
    pub retransmits_total: u64,
    pub spurious_retransmits_total: u64,
    pub timeouts_total: u64,
    pub window_cuts_total: u64,
    pub cwnd_max_packets_total: Option<f64>,
    pub idle_max_s_total: Option<f64>,
}

/// Which element a sample or event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// Index into the model's links.
    Link(u32),
    /// A cloud, by the link at its downstream edge through which its packets leave, and its number
    /// among those of that link.
    Cloud(u32, u32),
    /// Group, and flow within it.
    Flow(u32, u32),
}

/// One value of the time series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// End of the bin.
    pub at: Picos,
    /// Whose.
    pub element: Element,
    /// Metric name of contract section 5.
    pub metric: &'static str,
    /// Its value.
    pub value: f64,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Picos,
    /// Whose.
    pub element: Element,
    /// `drop`, `error`, `mark`, `timeout`, `retransmit`, `control-interval`.
    pub kind: &'static str,
    /// Of a drop: the reason.
    pub detail: &'static str,
    /// The flow of the packet, over the whole run, for events at links.
    pub flow: Option<u32>,
    /// The segment number, or the aggregate feedback (B/s) of a control interval.
    pub value: i64,
}
