//! The outcome of a lab, from the kernel's counts: histories of flows and links, and the results that follow from them.
//!
//! The results have the simulator's names and units. Where a kernel knows less than a simulator:
//!
//! - A packet of a flow is a whole segment: payload is scaled by the size of the packet over its payload
//!   ([`crate::headers`]).
//! - Queues and windows are sampled about a hundred times a second; a mean is one of those values, and a
//!   maximum may have been higher in between.
//! - A round-trip time is the kernel's smoothed one.

use std::collections::BTreeMap;

use congestlab_core::law::{LinkReport, Series as _};
use congestlab_core::units::Time;
use congestlab_scenario::net::packet::{PS_PER_NS, Picos};
use congestlab_scenario::net::service::PS_PER_S;
use congestlab_scenario::sim::model::{Group, GroupKind, Model, Start};
use congestlab_scenario::sim::outcome::{Element, Event, FlowOutcome, LinkOutcome, Outcome, Sample};
use congestlab_scenario::sim::{measure_of, starts_of};

use crate::headers;
use crate::topology::segment;

/// A flow at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FlowPoint {
    /// After time zero.
    pub(super) at: Picos,
    /// Payload bytes sent, retransmissions too.
    pub(super) sent: u64,
    /// Payload bytes that arrived in order.
    pub(super) delivered: u64,
    /// Packets of data that arrived.
    pub(super) received: u64,
    /// Packets; 0 without a window.
    pub(super) cwnd: u32,
    /// Microseconds; 0: unknown.
    pub(super) srtt: u32,
}

/// Counts of a flow up to a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowCounts {
    /// Packets that were sent and that arrived.
    pub(super) packets: [u64; 2],
    pub(super) retransmits: u64,
    pub(super) spurious_retransmits: u64,
    pub(super) timeouts: u64,
    /// Times at which the kernel was seen to begin a repair.
    pub(super) window_cuts: u64,
}

/// History of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowHistory {
    pub(super) points: Vec<FlowPoint>,
    pub(super) counts: FlowCounts,
    /// By the last look before the measurement.
    pub(super) before: FlowCounts,
    pub(super) completion: Option<Picos>,
}

/// A link direction at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LinkPoint {
    pub(super) at: Picos,
    /// Bytes that left, ever.
    pub(super) sent: u64,
    /// Packets that wait.
    pub(super) queue_packets: u64,
    /// Bytes that wait.
    pub(super) queue_bytes: u64,
    /// The most packets since the point before, as far as anybody looked.
    pub(super) queue_max: u64,
    pub(super) law: Option<LinkReport>,
}

/// Counts of a link direction up to a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkCounts {
    pub(super) sent_packets: u64,
    pub(super) drops: BTreeMap<&'static str, u64>,
    pub(super) errors: u64,
    pub(super) marks: u64,
}

/// History of a link direction.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkHistory {
    pub(super) points: Vec<LinkPoint>,
    pub(super) counts: LinkCounts,
    /// By the last look before the measurement; of a link in user space, which is asked at the end, by its
    /// events.
    pub(super) before: LinkCounts,
    pub(super) in_flight: u64,
}

impl LinkHistory {
    /// Counts an event of a link in user space, if it came before the measurement.
    pub(super) fn note(&mut self, event: &Event, warmup: Picos) {
        if event.at > warmup {
            return;
        }
        match event.kind {
            "drop" => *self.before.drops.entry(event.detail).or_default() += 1,
            "error" => self.before.errors += 1,
            "mark" => self.before.marks += 1,
            _ => {}
        }
    }
}

/// Something that grows, at a time between two looks at it.
fn at<P>(points: &[P], time: impl Fn(&P) -> Picos, value: impl Fn(&P) -> u64, t: Picos) -> f64 {
    let after = points.partition_point(|point| time(point) < t);
    let value = |point: &P| value(point) as f64;
    match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
        (None, None) => 0.0,
        (Some(last), None) => value(last),
        // Nothing was counted before time zero.
        (None, Some(first)) => value(first) * ratio(t, time(first)),
        (Some(before), Some(after)) => {
            let share = ratio(t - time(before), time(after) - time(before));
            value(before) + (value(after) - value(before)) * share
        }
    }
}

fn ratio(part: Picos, whole: Picos) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn seconds(span: Picos) -> f64 {
    span as f64 / PS_PER_S as f64
}

/// Bits a second.
fn rate(bytes: f64, span: Picos) -> Option<f64> {
    (span > 0).then(|| bytes * 8.0 / seconds(span))
}

/// Mean and the least value that was not exceeded for 95 % of the time, of values each of which held
/// until its time.
fn weighted(values: impl Iterator<Item = (Picos, f64)>, from: Picos, to: Picos) -> Option<(f64, f64)> {
    let mut spans: Vec<(f64, Picos)> = Vec::new();
    let mut before = from;
    for (at, value) in values {
        let end = at.clamp(from, to);
        if end > before {
            spans.push((value, end - before));
            before = end;
        }
    }
    let whole: Picos = spans.iter().map(|(_, span)| span).sum();
    if whole == 0 {
        return None;
    }
    let mean = spans.iter().map(|(value, span)| value * *span as f64).sum::<f64>() / whole as f64;
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left = whole / 20 * 19;
    let p95 = spans.iter().find(|(_, span)| {
        let is_it = *span >= left;
        left = left.saturating_sub(*span);
        is_it
    });
    Some((mean, p95.or(spans.last()).map_or(0.0, |(value, _)| *value)))
}

/// The outcome of a run that went up to `reached`.
pub(super) fn outcome(
    model: &Model,
    links: &[LinkHistory],
    flows: &[FlowHistory],
    mut events: Vec<Event>,
    reached: Picos,
) -> Outcome {
    let duration = reached.min(model.duration);
    let link = |(index, history)| link_outcome(model, index, history, duration);
    let mut groups = Vec::new();
    let mut rest = flows;
    for group in 0..model.groups.len() {
        let (own, others) = rest.split_at((model.groups[group].count as usize).min(rest.len()));
        rest = others;
        let starts = starts_of(&model.groups[group], model.seed);
        let flow = |(start, history)| flow_outcome(model, group, start, history, duration);
        groups.push(starts.into_iter().zip(own).map(flow).collect());
    }
    events.sort_by_key(|event| (event.at, event.element));
    let is_random = model.groups.iter().any(|group| !matches!(group.start, Start::Every { .. }));
    let links_random = model.links.iter().any(|link| {
        link.port.errors.is_some() || link.port.law.is_some() || link.port.ack_loss != Default::default()
    });
    Outcome {
        complete: reached >= model.duration,
        duration,
        seed_used: is_random || links_random,
        fingerprint: 0,
        packet_hops: links
            .iter()
            .map(|link| link.counts.sent_packets + link.counts.drops.values().sum::<u64>())
            .sum(),
        links: links.iter().enumerate().map(link).collect(),
        groups,
        series: series(model, links, flows, duration),
        events,
    }
}

fn link_outcome(model: &Model, index: usize, history: &LinkHistory, end: Picos) -> LinkOutcome {
    let (from, to) = (model.warmup.min(end), end);
    let service = &model.links[index].port.service;
    let sent = |t| at(&history.points, |point| point.at, |point| point.sent, t);
    let bytes = sent(to) - sent(from);
    let work = service.work(from, to) as f64;
    let queue = history.points.iter().map(|point| (point.at, point.queue_packets as f64));
    let queue = weighted(queue, from, to);
    let (all, before) = (&history.counts, &history.before);
    let drops: u64 = all.drops.values().sum();
    let by_reason = |(&reason, &count): (&&'static str, &u64)| {
        (reason, count.saturating_sub(before.drops.get(reason).copied().unwrap_or(0)))
    };
    let measured: BTreeMap<&'static str, u64> = all.drops.iter().map(by_reason).collect();
    let measured_drops: u64 = measured.values().sum();
    // What a link in user space had sent by then is known in bytes.
    let early = match before.sent_packets {
        0 => (all.sent_packets as f64 * sent(from) / sent(to).max(1.0)).round() as u64,
        packets => packets,
    };
    let sent_packets = all.sent_packets.saturating_sub(early);
    let longest = |from| {
        let points = history.points.iter().filter(|point| point.at > from || from == 0);
        points.map(|point| point.queue_max).max().unwrap_or(0)
    };
    let waiting = history.points.last().map_or(0, |point| point.queue_packets);
    LinkOutcome {
        capacity_bps: (to > from).then(|| service.mean_rate(from, to).0 as f64),
        throughput_bps: rate(bytes, to - from),
        utilization: (work > 0.0).then(|| bytes * 8.0 * PS_PER_S as f64 / work),
        sent_packets,
        arrived_packets: sent_packets + measured_drops + waiting,
        drops: measured_drops,
        drops_by_reason: measured.into(),
        errors: all.errors.saturating_sub(before.errors),
        marks: all.marks.saturating_sub(before.marks),
        collisions: None,
        xcp_i: None,
        in_flight_end: history.in_flight + waiting,
        queue_mean_packets: queue.map(|(mean, _)| mean),
        queue_p95_packets: queue.map(|(_, p95)| p95 as u64),
        queue_max_packets: longest(from),
        queue_end_packets: waiting,
        sent_packets_total: all.sent_packets,
        arrived_packets_total: all.sent_packets + drops + waiting,
        drops_total: drops,
        drops_by_reason_total: all.drops.clone().into(),
        errors_total: all.errors,
        marks_total: all.marks,
        collisions_total: None,
        queue_max_packets_total: longest(0),
        // Nothing tells how long a packet waited.
        ..LinkOutcome::default()
    }
}

/// IP bytes for each byte of payload.
pub(super) fn scale(group: &Group) -> f64 {
    let whole = f64::from(segment(&group.kind));
    whole / (whole - f64::from(headers(group)))
}

fn flow_outcome(model: &Model, group: usize, start: Time, history: &FlowHistory, end: Picos) -> FlowOutcome {
    let group = &model.groups[group];
    let measure = measure_of(model, group, start);
    let from = measure.from.0.saturating_mul(PS_PER_NS).min(end);
    let to = measure.to.0.saturating_mul(PS_PER_NS).min(end);
    let to = history.completion.map_or(to, |completion| completion.min(to)).max(from);
    let scale = scale(group);
    let points = &history.points;
    let sent = |t| at(points, |point| point.at, |point| point.sent, t);
    let delivered = |t| at(points, |point| point.at, |point| point.delivered, t);
    let payload = rate(delivered(to) - delivered(from), to - from);
    let known = || points.iter().filter(|point| point.srtt > 0);
    let rtt = weighted(known().map(|point| (point.at, f64::from(point.srtt) / 1e3)), from, to);
    let windows =
        || points.iter().filter(|point| point.cwnd > 0).map(|point| (point.at, f64::from(point.cwnd)));
    let cwnd_max =
        |from| windows().filter(|&(at, _)| at > from || from == 0).map(|(_, cwnd)| cwnd).reduce(f64::max);
    let all_delivered = points.last().map_or(0.0, |point| point.delivered as f64);
    // The kernel counts what it delivers in order alone.
    let all_bytes = (all_delivered * scale).round() as u64;
    let measured_bytes = ((all_delivered - delivered(from)) * scale).round() as u64;
    let (all, before) = (&history.counts, &history.before);
    // The last look before the measurement, too: what was idle then may end in it.
    let measured = &points[points.partition_point(|point| point.at < from).saturating_sub(1)..];
    let share = match &group.kind {
        GroupKind::Tcp(_) => 1.0,
        GroupKind::Source(config) => config.payload_share(),
    };
    FlowOutcome {
        goodput_bps: payload.map(|rate| rate * scale),
        payload_bps: payload.map(|rate| rate * share),
        throughput_bps: rate((sent(to) - sent(from)) * scale, to - from),
        sent_packets: all.packets[0].saturating_sub(before.packets[0]),
        received_packets: all.packets[1].saturating_sub(before.packets[1]),
        arrived_bytes: measured_bytes,
        delivered_bytes: measured_bytes,
        retransmits: all.retransmits.saturating_sub(before.retransmits),
        spurious_retransmits: all.spurious_retransmits.saturating_sub(before.spurious_retransmits),
        timeouts: all.timeouts.saturating_sub(before.timeouts),
        window_cuts: all.window_cuts - before.window_cuts,
        rtt_mean_ms: rtt.map(|(mean, _)| mean),
        rtt_p95_ms: rtt.map(|(_, p95)| p95),
        cwnd_mean_packets: weighted(windows(), from, to).map(|(mean, _)| mean),
        cwnd_max_packets: cwnd_max(from),
        idle_max_s: idle_max(measured).map(seconds),
        start_s: start.0 as f64 / 1e9,
        stop_s: (group.stop.0 != u64::MAX).then_some(group.stop.0 as f64 / 1e9),
        completion_s: history.completion.map(|at| seconds(at) - start.0 as f64 / 1e9),
        sent_packets_total: all.packets[0],
        received_packets_total: all.packets[1],
        arrived_bytes_total: all_bytes,
        delivered_bytes_total: all_bytes,
        retransmits_total: all.retransmits,
        spurious_retransmits_total: all.spurious_retransmits,
        timeouts_total: all.timeouts,
        window_cuts_total: all.window_cuts,
        cwnd_max_packets_total: cwnd_max(0),
        idle_max_s_total: idle_max(points).map(seconds),
        ..FlowOutcome::default()
    }
}

/// The longest span between two looks with nothing sent in between, once something was and before the last was.
fn idle_max(points: &[FlowPoint]) -> Option<Picos> {
    let mut longest = None;
    let mut last: Option<&FlowPoint> = None;
    for point in points {
        if point.sent > last.map_or(0, |last| last.sent) {
            if let Some(last) = last {
                longest = longest.max(Some(point.at - last.at));
            }
            last = Some(point);
        }
    }
    longest
}

fn series(model: &Model, links: &[LinkHistory], flows: &[FlowHistory], end: Picos) -> Vec<Sample> {
    let Some(bin) = model.sample_every.filter(|&bin| bin > 0) else { return Vec::new() };
    let mut series = Vec::new();
    let names: Vec<(u32, u32)> = model
        .groups
        .iter()
        .enumerate()
        .flat_map(|(group, of)| (0..of.count).map(move |flow| (group as u32, flow)))
        .collect();
    let mut t = bin;
    while t <= end {
        for (index, history) in links.iter().enumerate() {
            put_link(&mut series, Element::Link(index as u32), history, t, bin);
        }
        for (history, &(group, flow)) in flows.iter().zip(&names) {
            let of = &model.groups[group as usize];
            put_flow(&mut series, Element::Flow(group, flow), history, t, bin, of);
        }
        t += bin;
    }
    series
}

fn put_link(series: &mut Vec<Sample>, element: Element, history: &LinkHistory, t: Picos, bin: Picos) {
    let points = &history.points;
    let sent = |t| at(points, |point| point.at, |point| point.sent, t);
    let mut put = |metric, value| series.push(Sample { at: t, element, metric, value });
    put("throughput_bps", (sent(t) - sent(t - bin)) * 8.0 / seconds(bin));
    let within =
        points.partition_point(|point| point.at <= t - bin)..points.partition_point(|point| point.at <= t);
    let last = points[..within.end].last().copied().unwrap_or_default();
    put("queue_packets", last.queue_packets as f64);
    put("queue_bytes", last.queue_bytes as f64);
    let most = points[within].iter().map(|point| point.queue_max).max();
    put("queue_max_packets", most.unwrap_or(last.queue_packets) as f64);
    if let Some(report) = last.law {
        report.each(&mut |metric, value, unit| put(metric, value as f64 / f64::from(unit)));
    }
}

fn put_flow(
    series: &mut Vec<Sample>,
    element: Element,
    history: &FlowHistory,
    t: Picos,
    bin: Picos,
    group: &Group,
) {
    let points = &history.points;
    let mean = |value: fn(&FlowPoint) -> u64, bytes: f64| {
        let grown = at(points, |point| point.at, value, t) - at(points, |point| point.at, value, t - bin);
        grown * 8.0 / seconds(bin) * bytes
    };
    let mut put = |metric, value| series.push(Sample { at: t, element, metric, value });
    put("throughput_bps", mean(|point| point.sent, scale(group)));
    let last = points[..points.partition_point(|point| point.at <= t)].last();
    if let Some(last) = last.filter(|last| last.cwnd > 0) {
        put("cwnd_packets", last.cwnd.into());
    }
    if let Some(last) = last.filter(|last| last.srtt > 0) {
        put("srtt_ms", f64::from(last.srtt) / 1e3);
    }
    put("goodput_bps", mean(|point| point.delivered, scale(group)));
    put("received_bps", mean(|point| point.received, segment(&group.kind).into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_known_between_two_looks() {
        let points = [(10, 100), (20, 200), (40, 200)];
        let value = |t| at(&points, |point| point.0, |point| point.1, t);
        assert_eq!([5, 10, 15, 30, 50].map(value), [50.0, 100.0, 150.0, 200.0, 200.0]);
        assert_eq!(at(&[] as &[(Picos, u64)], |point| point.0, |point| point.1, 5), 0.0);
    }

    #[test]
    fn means_and_percentiles_are_weighted_by_time() {
        // 1 until 10, 5 until 20, 100 until 21.
        let values = [(10, 1.0), (20, 5.0), (21, 100.0)];
        assert_eq!(weighted(values.into_iter(), 0, 20), Some((3.0, 5.0)));
        assert_eq!(weighted(values.into_iter(), 10, 15), Some((5.0, 5.0)));
        assert_eq!(weighted(values.into_iter(), 30, 40), None);
        let (_, p95) = weighted([(90, 1.0), (100, 7.0)].into_iter(), 0, 100).expect("some time");
        assert_eq!(p95, 7.0);
        let (_, p95) = weighted([(96, 1.0), (100, 7.0)].into_iter(), 0, 100).expect("some time");
        assert_eq!(p95, 1.0);
    }

    #[test]
    fn idle_is_the_time_without_sending_between_two_sendings() {
        let point = |at, sent| FlowPoint { at, sent, ..FlowPoint::default() };
        assert_eq!(
            idle_max(&[point(1, 0), point(5, 10), point(6, 10), point(9, 20), point(99, 20)]),
            Some(4)
        );
        assert_eq!(idle_max(&[point(1, 0), point(5, 10)]), None);
    }
}
