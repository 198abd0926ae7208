//! The results of a link in user space, and reasons to doubt them.

use congestlab_core::law::{LinkReport, mpcp, xcp};
use congestlab_core::units::{Duration, SECOND};
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::port::PortStats;
use congestlab_net::queue::Reason;
use congestlab_net::service::{PS_PER_S, Service};
use congestlab_net::stats::Histogram;
use serde::Serialize;

use super::frame::Refused;

/// Lateness that 99 of 100 packets must not exceed, or [`LATE_SHARE`] of the delay if that is more. That of an
/// idle machine of two cores is 0.04 ms, of a loaded one 3 ms.
pub const LATE_MAX: Duration = Duration(1_000_000);
/// Reasons of drops that only a link on real packets has: its memory is full, a packet is too long for the interface behind.
const MEMORY: &str = "memory";
const LONG: &str = "too-long";
/// As many packets may be late in any case: of a few packets one is more than one in a hundred.
const LATE_FEW: u64 = 2;
/// Share of the delay by which packets may be late, percent. The effect on a sender of a round-trip time
/// that is 2 % longer drowns in other noise.
pub const LATE_SHARE: u64 = 2;

/// How long packets were sent on after the time at which they should have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Median, ms.
    pub p50_ms: f64,
    /// 99th percentile, ms.
    pub p99_ms: f64,
    /// Maximum, ms.
    pub max_ms: f64,
    /// Limit for the 99th percentile, above which the result does not count, ms.
    pub allowed_ms: f64,
    /// Packets that were later than the limit.
    pub late_packets: u64,
}

/// Counts and last decision of XCP's law, with the names of the kernel's router ([`crate::router::Sample`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(non_snake_case, reason = "units as docs/design/contract.md 5 writes them")]
pub struct Xcp {
    /// Input traffic rate of the last control interval, B/s.
    pub input_Bps: u64,
    /// Aggregate feedback of the last control interval, B/s.
    pub feedback_Bps: i64,
    /// Length of the control interval that is running, ms.
    pub interval_ms: f64,
    /// Persistent queue that the aggregate feedback counted, bytes.
    pub persistent_queue_bytes: u64,
    /// Control intervals so far.
    pub intervals: u64,
    /// Packets whose congestion header the law has processed.
    pub xcp_packets: u64,
    /// Packets with a wrong congestion header, and fragments, left as they were.
    pub refused_packets: u64,
    /// Refused packets, by reason.
    pub refused: Refused,
}

/// Counts and last load of a law of MPCP's family, with the names of the kernel's router ([`crate::router::Sample`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Load factor of the last interval.
    pub load_factor: f64,
    /// Zone of the load: 1 low, 2 high, 3 over.
    pub load_code: u8,
    /// Level of the load among the 3^n of chains of n packets, from 0.
    pub load_level: u16,
    /// Intervals so far.
    pub intervals: u64,
    /// Packets that came with a code.
    pub coded_packets: u64,
    /// Packets of these that should tell their place in a chain and told none; they passed as they were.
    pub unplaced_packets: u64,
}

/// The result of one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Traffic {
    /// Mean rate of the service, bit/s; `None` if it was unlimited.
    pub capacity_bps: Option<u64>,
    /// Bits of the IP packets that were transmitted, per second.
    pub throughput_bps: u64,
    /// Throughput divided by capacity.
    pub utilization: Option<f64>,
    /// IP packets that arrived, dropped or not.
    pub arrived_packets: u64,
    /// IP packets that were transmitted.
    pub sent_packets: u64,
    /// IP packets that reached the far end unbroken.
    pub delivered_packets: u64,
    /// IP packets dropped at the queue.
    pub drops: u64,
    /// The same drops by reason; reasons without drops are left out.
    pub drops_by_reason: std::collections::BTreeMap<&'static str, u64>,
    /// IP packets lost to errors, or as lost ACKs.
    pub errors: u64,
    /// IP packets that got Congestion Experienced.
    pub marks: u64,
    /// IP packets waiting or on the wire at the end.
    pub in_flight_end: u64,
    /// Time-weighted mean of the packets waiting.
    pub queue_mean_packets: Option<f64>,
    /// Queue length, in packets, that was not exceeded for 95 % of the time.
    pub queue_p95_packets: Option<u64>,
    /// Most packets that waited at once.
    pub queue_max_packets: u64,
    /// Packets waiting at the end.
    pub queue_end_packets: u64,
    /// Frames that are no IP packets, such as ARP: delayed, but neither queued nor lost.
    pub other_frames: u64,
    /// Frames that the kernel dropped because the link did not fetch them in time.
    pub kernel_drops: u64,
    /// Frames that the interface behind refused to send.
    pub refused_frames: u64,
    /// Frames too large for one packet, because the sender left segmentation to its interface.
    pub oversized_frames: u64,
    /// Lateness of the packets.
    pub lateness: Lateness,
    /// Counts of the XCP law, if the direction has one.
    pub xcp: Option<Xcp>,
    /// Load that the direction's law tells, if the law is VCP, DPCP, TPCP or MPCP.
    pub load: Option<Load>,
    /// Coded packets whose place is in a checksum that was yet to be made.
    #[serde(skip)]
    partial_packets: u64,
    /// The counts as the simulator's port keeps them.
    #[serde(skip)]
    pub stats: PortStats,
}

/// The result of a link, from its start to its end.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Duration of the measurement, s.
    pub duration_s: f64,
    /// Result of the direction from the first interface to the second.
    pub forward: Traffic,
    /// Result of the direction from the second interface to the first.
    pub back: Traffic,
    /// True if packets crossed the link and the machine kept up, so that the link was as it should be.
    pub trustworthy: bool,
    /// Reasons for which it was not.
    pub doubts: Vec<String>,
}

/// Counts of a direction beside those of its port.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) lateness: Histogram,
    /// Packets that were later than [`allowed`].
    pub(super) late: u64,
    pub(super) other_frames: u64,
    pub(super) kernel_drops: u64,
    /// Frames that came while the direction held all that its memory takes.
    pub(super) memory_drops: u64,
    /// Packets that are longer than the interface behind takes.
    pub(super) long_drops: u64,
    pub(super) refused_frames: u64,
    pub(super) oversized_frames: u64,
    /// Packets with a header for the law.
    pub(super) xcp_packets: u64,
    pub(super) refused: Refused,
    /// Packets with a code, those of them without the place that they should tell, and of these such with a checksum that is
    /// yet to be made.
    pub(super) coded_packets: u64,
    pub(super) unplaced_packets: u64,
    pub(super) partial_packets: u64,
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
        let own = [(MEMORY, tally.memory_drops), (LONG, tally.long_drops)];
        let own_drops = tally.memory_drops + tally.long_drops;
        Self {
            capacity_bps: service.map(|service| service.mean_rate(from, to).0),
            throughput_bps: u64::try_from(throughput).unwrap_or(u64::MAX),
            utilization: work.map(|work| bits as f64 / work as f64),
            arrived_packets: stats.arrived_packets + own_drops,
            sent_packets: stats.sent_packets,
            delivered_packets: stats.delivered_packets,
            drops: stats.counts().dropped_packets() + own_drops,
            drops_by_reason: Reason::ALL
                .iter()
                .map(drops)
                .chain(own)
                .filter(|&(_, count)| count > 0)
                .collect(),
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
            xcp: stats.law.as_ref().and_then(LinkReport::part).map(|report: &xcp::Report| Xcp {
                input_Bps: report.input.0,
                feedback_Bps: report.feedback,
                interval_ms: ms(report.interval),
                persistent_queue_bytes: report.persistent_queue.0,
                intervals: report.intervals,
                xcp_packets: tally.xcp_packets,
                refused_packets: tally.refused.total(),
                refused: tally.refused,
            }),
            load: stats.law.as_ref().and_then(LinkReport::part).map(|report: &mpcp::Report| Load {
                load_factor: f64::from(report.load) / 1e6,
                load_code: report.zone,
                load_level: report.level,
                intervals: report.intervals,
                coded_packets: tally.coded_packets,
                unplaced_packets: tally.unplaced_packets,
            }),
            partial_packets: tally.partial_packets,
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
        if let Some(count) = self.drops_by_reason.get(MEMORY) {
            doubts.push(format!(
                "{name}: {count} packets were dropped because the queue took all memory that there is for it"
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
        lost(
            self.partial_packets,
            "had a checksum yet to be made, which tells no place: switch off the sender's offloads",
        );
    }
}

/// Returns the allowed 99th percentile of lateness on a link of this delay (ps).
pub fn allowed(delay: Picos) -> Duration {
    LATE_MAX.max(Duration(delay / PS_PER_NS * LATE_SHARE / 100))
}

impl Report {
    pub(super) fn new((from, to): (Picos, Picos), forward: Traffic, back: Traffic) -> Self {
        let mut doubts = Vec::new();
        forward.doubts("forward", &mut doubts);
        back.doubts("back", &mut doubts);
        let duration_s = to.saturating_sub(from) as f64 / (SECOND * PS_PER_NS) as f64;
        let mut report = Self { duration_s, forward, back, trustworthy: false, doubts };
        report.trustworthy = report.doubts.is_empty() && !report.is_empty();
        report
    }

    /// True if no IP packet came to the link, so that nothing was measured.
    fn is_empty(&self) -> bool {
        [&self.forward, &self.back].iter().all(|traffic| traffic.arrived_packets == 0)
    }

    /// Returns the verdict for people: `trustworthy`, `too busy to trust`, or that no packet was measured.
    pub fn verdict(&self) -> &'static str {
        match self {
            Self { trustworthy: true, .. } => "trustworthy",
            Self { doubts, .. } if doubts.is_empty() => "no packet came to the link, so nothing was measured",
            _ => "too busy to trust",
        }
    }
}
