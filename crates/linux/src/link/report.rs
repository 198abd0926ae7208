//! What a link did, and whether to believe it.

use congestlab_core::law::Series;
use congestlab_core::units::{Duration, SECOND};
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::port::PortStats;
use congestlab_net::queue::Reason;
use congestlab_net::service::{PS_PER_S, Service};
use congestlab_net::stats::Histogram;
use serde::Serialize;

use super::frame::Refused;

/// Deliveries may be as late as this, or as [`LATE_SHARE`] of the delay if that is more, but for one
/// in a hundred. An idle machine of two cores is late by 0.04 ms then, a loaded one by 3 ms.
pub const LATE_MAX: Duration = Duration(1_000_000);
/// As many packets may be late in any case: of a few packets one is more than one in a hundred.
const LATE_FEW: u64 = 2;
/// In percent. What a sender makes of a round trip time that is 2 % longer drowns in other noise.
pub const LATE_SHARE: u64 = 2;

/// How late packets were sent on, after the time at which they should have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Median, ms.
    pub p50_ms: f64,
    /// What one in a hundred exceeds, ms.
    pub p99_ms: f64,
    /// The worst, ms.
    pub max_ms: f64,
    /// What at least 99 in a hundred may have for the result to count, ms.
    pub allowed_ms: f64,
    /// Packets that had more.
    pub late_packets: u64,
}

/// What the XCP law did, in the words of the kernel's router ([`crate::router::Sample`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(non_snake_case, reason = "units as docs/design/contract.md 5 writes them")]
pub struct Xcp {
    /// Input rate of the last control interval.
    pub input_Bps: u64,
    /// Aggregate feedback of the last control interval.
    pub feedback_Bps: i64,
    /// Length of the control interval.
    pub interval_ms: f64,
    /// Least backlog of the time before.
    pub persistent_queue_bytes: u64,
    /// Control intervals so far.
    pub intervals: u64,
    /// Packets whose header the law has worked on.
    pub xcp_packets: u64,
    /// Packets with a header that is wrong, and fragments.
    pub refused_packets: u64,
    /// Why.
    pub refused: Refused,
}

/// One direction.
#[derive(Clone, Debug, Serialize)]
pub struct Traffic {
    /// Mean rate that there was; `None` if it was unlimited.
    pub capacity_bps: Option<u64>,
    /// IP packets that left, in bits by time.
    pub throughput_bps: u64,
    /// Throughput by capacity.
    pub utilization: Option<f64>,
    /// IP packets that came, dropped or not.
    pub arrived_packets: u64,
    /// IP packets that were transmitted.
    pub sent_packets: u64,
    /// IP packets that were handed on unbroken.
    pub delivered_packets: u64,
    /// IP packets dropped at the queue.
    pub drops: u64,
    /// Those, by reason.
    pub drops_by_reason: std::collections::BTreeMap<&'static str, u64>,
    /// IP packets lost to errors, or as ACKs.
    pub errors: u64,
    /// IP packets that got Congestion Experienced.
    pub marks: u64,
    /// IP packets waiting or on the wire at the end.
    pub in_flight_end: u64,
    /// Time-weighted mean of the packets waiting.
    pub queue_mean_packets: Option<f64>,
    /// What the queue did not exceed for 95 % of the time.
    pub queue_p95_packets: Option<u64>,
    /// The most packets that waited.
    pub queue_max_packets: u64,
    /// Packets waiting at the end.
    pub queue_end_packets: u64,
    /// Frames that are no IP packets, such as ARP: delayed, but neither queued nor lost.
    pub other_frames: u64,
    /// Frames that the kernel dropped because the link did not fetch them in time.
    pub kernel_drops: u64,
    /// Frames that the interface behind did not take.
    pub refused_frames: u64,
    /// Frames larger than a packet can be there, because the sender left the segmentation to others.
    pub oversized_frames: u64,
    /// How late packets were.
    pub lateness: Lateness,
    /// What the law did.
    pub xcp: Option<Xcp>,
    /// As the simulator's port counts.
    #[serde(skip)]
    pub stats: PortStats,
}

/// A link from its start to its end.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was measured.
    pub duration_s: f64,
    /// From the first interface to the second.
    pub forward: Traffic,
    /// From the second interface to the first.
    pub back: Traffic,
    /// The machine kept up: what was measured is what was asked for.
    pub trustworthy: bool,
    /// Why not.
    pub doubts: Vec<String>,
}

/// What a direction counted beside its port.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) lateness: Histogram,
    /// Packets that were later than [`allowed`].
    pub(super) late: u64,
    pub(super) other_frames: u64,
    pub(super) kernel_drops: u64,
    pub(super) refused_frames: u64,
    pub(super) oversized_frames: u64,
    /// Packets with a header for the law.
    pub(super) xcp_packets: u64,
    pub(super) refused: Refused,
}

fn ms(span: Duration) -> f64 {
    span.0 as f64 / 1e6
}

impl Traffic {
    pub(super) fn new(
        service: Option<&Service>,
        delay: Picos,
        (from, to): (Picos, Picos),
        stats: PortStats,
        tally: &Tally,
    ) -> Self {
        let bits = u128::from(stats.measured_bytes) * 8 * u128::from(PS_PER_S);
        let throughput = bits.checked_div(to.saturating_sub(from).into()).unwrap_or(0);
        let work = service.map(|service| service.work(from, to)).filter(|&work| work > 0);
        let percentile = |percent| tally.lateness.percentile(percent).map_or(0.0, ms);
        let drops = |reason: &Reason| (reason.name(), stats.drops[*reason as usize]);
        Self {
            capacity_bps: service.map(|service| service.mean_rate(from, to).0),
            throughput_bps: u64::try_from(throughput).unwrap_or(u64::MAX),
            utilization: work.map(|work| bits as f64 / work as f64),
            arrived_packets: stats.arrived_packets,
            sent_packets: stats.sent_packets,
            delivered_packets: stats.delivered_packets,
            drops: stats.counts().dropped_packets(),
            drops_by_reason: Reason::ALL.iter().map(drops).filter(|&(_, count)| count > 0).collect(),
            errors: stats.errors,
            marks: stats.marks,
            in_flight_end: stats.in_flight_end,
            queue_mean_packets: stats.queue_mean_packets,
            queue_p95_packets: stats.queue_p95_packets,
            queue_max_packets: stats.queue_max_packets,
            queue_end_packets: stats.queue_end_packets,
            other_frames: tally.other_frames,
            kernel_drops: tally.kernel_drops,
            refused_frames: tally.refused_frames,
            oversized_frames: tally.oversized_frames,
            lateness: Lateness {
                p50_ms: percentile(50),
                p99_ms: percentile(99),
                max_ms: percentile(100),
                allowed_ms: ms(allowed(delay)),
                late_packets: tally.late,
            },
            xcp: stats.law.as_ref().and_then(Series::xcp).map(|report| Xcp {
                input_Bps: report.input.0,
                feedback_Bps: report.feedback,
                interval_ms: ms(report.interval),
                persistent_queue_bytes: report.persistent_queue.0,
                intervals: report.intervals,
                xcp_packets: tally.xcp_packets,
                refused_packets: tally.refused.total(),
                refused: tally.refused,
            }),
            stats,
        }
    }

    /// Why what was measured is not what was asked for.
    fn doubts(&self, name: &str, doubts: &mut Vec<String>) {
        let Lateness { max_ms, allowed_ms, late_packets: late, .. } = self.lateness;
        let sent = self.delivered_packets + self.other_frames;
        if late > LATE_FEW && late * 100 > sent {
            doubts.push(format!(
                "{name}: {late} of {sent} packets were more than {allowed_ms:.1} ms late, up to {max_ms:.1} ms"
            ));
        }
        let mut lost = |count: u64, what: &str| {
            if count > 0 {
                doubts.push(format!("{name}: {count} frames {what}"));
            }
        };
        lost(self.kernel_drops, "came faster than they could be fetched");
        lost(self.refused_frames, "were not taken by the interface behind");
        lost(self.oversized_frames, "held several packets: switch off the sender's offloads");
    }
}

/// What the 99th percentile of lateness may be on a link of this delay.
pub fn allowed(delay: Picos) -> Duration {
    LATE_MAX.max(Duration(delay / PS_PER_NS * LATE_SHARE / 100))
}

impl Report {
    pub(super) fn new((from, to): (Picos, Picos), forward: Traffic, back: Traffic) -> Self {
        let mut doubts = Vec::new();
        forward.doubts("forward", &mut doubts);
        back.doubts("back", &mut doubts);
        let duration_s = to.saturating_sub(from) as f64 / (SECOND * PS_PER_NS) as f64;
        Self { duration_s, forward, back, trustworthy: doubts.is_empty(), doubts }
    }

    /// In one word, for people.
    pub fn verdict(&self) -> &'static str {
        if self.trustworthy { "trustworthy" } else { "too busy to trust" }
    }
}
