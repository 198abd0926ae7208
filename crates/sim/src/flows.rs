//! The flows of a group: what their hosts are made from, and the results that they end with.

use std::sync::Arc;

use congestlab_core::units::{Duration, Time};
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::service::Service;
use congestlab_net::source::{Source, SourceConfig};
use congestlab_net::tcp::{self, Advertise, App};

use crate::hosts::{Crowd, Host as _, SenderEnd};
use crate::model::{DeviceKind, Group, GroupKind, Model, Pipe};
use crate::network::{measured, segments_of};
use crate::origin::Origin;
use crate::outcome::{FlowOutcome, FlowOutcomes};
use crate::station::Sink;

/// Returns true if the flows of a group may be over before the run is, and it is known when nothing of them is under way any
/// more: what [`tcp::Sender::is_over`] supposes holds. Unless series, events or steps are wanted, such flows take the
/// memory of hosts while they live.
pub fn is_fleeting(model: &Model, group: &Group) -> bool {
    let GroupKind::Tcp(config) = &group.kind else { return false };
    let has_end = match config.app {
        App::Transfer(_) | App::Own => true,
        App::Bursts { total, .. } => total.is_some(),
        App::Endless => false,
    };
    let is_shared = |link: u32| {
        let mut media = model.devices.iter().filter(|device| matches!(device.kind, DeviceKind::Medium(_)));
        media.any(|device| device.links.contains(&link))
    };
    let keeps_order = |&link: &u32| {
        let port = &model.links[link as usize].port;
        port.reorder.is_none() && port.discipline.queues() == 1 && !is_shared(link)
    };
    has_end
        && config.advertise == Advertise::Always
        && !config.law.needs().probes
        && group.interoperable.is_none()
        && group.switches.is_empty()
        && group.path.iter().chain(&group.back).all(keeps_order)
}

/// Facts about a group's paths that the results of its flows need beside their counts.
struct Terms {
    /// Time that was simulated.
    duration: Picos,
    /// Paths of the group, in the order in which they come into force.
    ways: Vec<Way>,
}

impl Terms {
    /// The model is that of the time that was simulated.
    fn new(model: &Model, group: &Group) -> Self {
        let froms = std::iter::once(0).chain(group.switches.iter().map(|switch| switch.at));
        let ways =
            froms.zip(group.paths()).map(|(from, (path, back))| Way::new(model, group, from, path, back));
        Self { duration: model.duration, ways: ways.collect() }
    }

    /// Returns the least time, ps, in which a flow that runs from `start` to `end` could bring so many bytes to its receiver
    /// and hear of it. Of several paths in force meanwhile the fastest counts.
    fn least(&self, bytes: u64, start: Picos, end: Picos) -> Option<Picos> {
        let until = |place: usize| self.ways.get(place + 1).map_or(Picos::MAX, |next| next.from);
        let in_force = (0..).zip(&self.ways).filter(|&(place, way)| way.from < end && start < until(place));
        in_force.filter_map(|(_, way)| way.least(bytes, start)).min()
    }
}

/// A path of a group.
struct Way {
    /// Time from which it is in force, ps.
    from: Picos,
    /// Round trip without queues and without transmission, ps.
    delay: Picos,
    /// Hops of data: propagation before the hop, ps, and the hop's capacity.
    hops: Vec<(Picos, Service)>,
}

impl Way {
    fn new(model: &Model, group: &Group, from: Picos, path: &[u32], back: &[u32]) -> Self {
        let port = |&link: &u32| &model.links[link as usize].port;
        let pipe = |pipe: Pipe| (pipe.delay, Service::Fixed(pipe.rate));
        let links = path.iter().map(port).map(|port| (port.delay, port.service.clone()));
        let hops = group.access.map(pipe).into_iter().chain(links).chain(group.exit.map(pipe));
        let mut passed: Picos = 0;
        let hops = hops.map(|(delay, service)| {
            let before = passed;
            passed = passed.saturating_add(delay);
            (before, service)
        });
        let hops = hops.collect();
        let pipes = [group.access, group.exit].into_iter().flatten().map(|pipe| pipe.delay);
        let delay = back.iter().map(|link| port(link).delay).chain(pipes).fold(passed, Picos::saturating_add);
        Self { from, delay, hops }
    }

    /// The slowest hop decides, by its capacity from the time on at which the first byte can be there. `None` without a hop,
    /// or beyond all times.
    fn least(&self, bytes: u64, start: Picos) -> Option<Picos> {
        let over_hop = |(before, service): &(Picos, Service)| {
            let there = start.saturating_add(*before);
            service.end(there, bytes).saturating_sub(there)
        };
        let slowest = self.hops.iter().map(over_hop).max()?;
        Some(self.delay.saturating_add(slowest)).filter(|&least| 0 < least && least < Picos::MAX)
    }
}

/// Picoseconds as seconds.
pub(crate) fn seconds(t: Picos) -> f64 {
    t as f64 / 1e12
}

/// Bits a second of `bytes` from `measure.from` to the end of the flow's measurement.
fn rate(bytes: u64, from: Time, to: Time) -> Option<f64> {
    (to > from).then(|| bytes as f64 * 8e9 / (to.0 - from.0) as f64)
}

fn idle(longest: Option<Duration>) -> Option<f64> {
    longest.map(|span| span.0 as f64 / 1e9)
}

/// The results of a group of connections, made from what is left of its hosts when they are asked for: a list of them would
/// take more memory than the hosts.
pub(crate) fn of_connections(
    model: &Model,
    origin: &Arc<Origin>,
    senders: Crowd<tcp::Sender>,
    receivers: Crowd<tcp::Receiver>,
) -> FlowOutcomes {
    let now = Time(model.duration / PS_PER_NS);
    let terms = Terms::new(model, &origin.group);
    if senders.is_fleeting() {
        let (config, count) = (senders.config.clone(), origin.starts.len());
        let (sent, received) = (senders.into_remains(now), receivers.into_remains(now));
        let origin = Arc::clone(origin);
        return FlowOutcomes::made(count, move |flow| {
            let (sent, received) = (sent.get(&config, flow), received.get(&config, flow));
            connection(&terms, &origin, &config, flow, &sent, &received)
        });
    }
    // What results need of a host takes the memory of the hosts, which a million flows notice.
    let (config, origin) = (senders.config, Arc::clone(origin));
    let ended = senders.stations.into_iter().map(|mut sender| {
        sender.endpoint.finish(&config, now);
        sender.endpoint.end(&config)
    });
    let sent: Vec<_> = ended.collect();
    let received: Vec<_> =
        receivers.stations.into_iter().map(|receiver| receiver.endpoint.end(&config)).collect();
    // Fewer if the run was given up while hosts were made.
    let count = sent.len().min(received.len());
    FlowOutcomes::made(count, move |flow| {
        connection(&terms, &origin, &config, flow, &sent[flow as usize], &received[flow as usize])
    })
}

fn connection(
    terms: &Terms,
    origin: &Origin,
    config: &tcp::Config,
    flow: u32,
    sent: &SenderEnd,
    received: &tcp::ReceiverStats,
) -> FlowOutcome {
    let (group, start) = (&origin.group, origin.starts[flow as usize]);
    let measure = measured(origin.warmup, terms.duration, group, start);
    let completion = sent.completion.map(|done| (done.0 - start.0) as f64 / 1e9);
    let size = || match config.app {
        App::Transfer(total) => Some(total.0),
        App::Bursts { total, .. } => total.map(|total| total.0),
        App::Own => {
            // Who is done has sent each segment once, and some again; who sends probes counts those, too.
            let is_counted = sent.completion.is_some() && !config.law.needs().probes;
            let counted = is_counted.then(|| sent.total.sent_packets - sent.total.retransmits);
            let segments = counted.or_else(|| segments_of(group, flow, origin.seed));
            segments.map(|segments| segments * u64::from(config.segment))
        }
        App::Endless => None,
    };
    // A flow that was stopped has sent less.
    let size = if group.stop == Time::NEVER { size() } else { None };
    let picos = |time: Time| time.0.saturating_mul(PS_PER_NS);
    let least = size.zip(sent.completion);
    let least = least.and_then(|(bytes, done)| terms.least(bytes, picos(start), picos(done)));
    let end = sent.completion.map_or(measure.to, |done| done.min(measure.to));
    // docs/design/contract.md 5.
    let headers = u64::from(40 + config.law.needs().header_bytes);
    let packets = received.measured_bytes.div_ceil(config.segment.into());
    let payload = received.measured_bytes.saturating_sub(packets * headers);
    let segment = f64::from(config.segment.max(1));
    let largest = |counts: &tcp::SenderCounts| counts.window_max.map(|window| window.0 as f64 / segment);
    FlowOutcome {
        goodput_bps: rate(received.measured_bytes, measure.from, end),
        payload_bps: rate(payload, measure.from, end),
        throughput_bps: rate(sent.measured_bytes, measure.from, end),
        sent_packets: sent.measured.sent_packets,
        received_packets: received.measured.received_packets,
        arrived_bytes: received.measured.arrived_bytes,
        delivered_bytes: received.measured.delivered_bytes,
        retransmits: sent.measured.retransmits,
        spurious_retransmits: received.measured.spurious_retransmits,
        timeouts: sent.measured.timeouts,
        window_cuts: sent.measured.window_cuts,
        rtt_mean_ms: sent.rtt_mean_ms,
        rtt_p95_ms: sent.rtt_p95.map(|rtt| rtt.0 as f64 / 1e6),
        cwnd_mean_packets: sent.cwnd_mean_packets,
        cwnd_max_packets: largest(&sent.measured),
        idle_max_s: idle(sent.measured.idle_max),
        start_s: start.0 as f64 / 1e9,
        stop_s: (group.stop != Time::NEVER).then_some(group.stop.0 as f64 / 1e9),
        completion_s: completion,
        size_bytes: size,
        slowdown: completion.zip(least).map(|(completion, least)| completion / seconds(least)),
        sent_packets_total: sent.total.sent_packets,
        received_packets_total: received.total.received_packets,
        arrived_bytes_total: received.total.arrived_bytes,
        delivered_bytes_total: received.total.delivered_bytes,
        retransmits_total: sent.total.retransmits,
        spurious_retransmits_total: received.total.spurious_retransmits,
        timeouts_total: sent.total.timeouts,
        window_cuts_total: sent.total.window_cuts,
        cwnd_max_packets_total: largest(&sent.total),
        idle_max_s_total: idle(sent.total.idle_max),
    }
}

/// The results of a group of datagrams; tells of each source whether it drew.
pub(crate) fn of_sources(
    model: &Model,
    origin: &Origin,
    sources: Crowd<Source>,
    sinks: Crowd<Sink>,
    mut drew: impl FnMut(bool),
) -> FlowOutcomes {
    let config = sources.config;
    let flows = sources.stations.into_iter().zip(sinks.stations).zip(&origin.starts);
    let finished = flows.map(|((source, sink), &start)| {
        drew(source.endpoint.draws() > 0);
        datagrams(model, &origin.group, &config, start, &source.endpoint, &sink.endpoint)
    });
    finished.collect::<Vec<_>>().into()
}

fn datagrams(
    model: &Model,
    group: &Group,
    config: &SourceConfig,
    start: Time,
    source: &Source,
    sink: &Sink,
) -> FlowOutcome {
    let measure = measured(model.warmup, model.duration, group, start);
    let sent = source.stats();
    let goodput = rate(sink.measured_bytes, measure.from, measure.to);
    FlowOutcome {
        goodput_bps: goodput,
        payload_bps: goodput.map(|goodput| goodput * config.payload_share()),
        throughput_bps: rate(sent.measured_bytes, measure.from, measure.to),
        sent_packets: sent.sent_packets - sent.early_packets,
        received_packets: sink.received_packets - sink.early.0,
        arrived_bytes: sink.delivered_bytes - sink.early.1,
        delivered_bytes: sink.delivered_bytes - sink.early.1,
        idle_max_s: idle(sent.measured_idle_max),
        start_s: start.0 as f64 / 1e9,
        stop_s: (group.stop != Time::NEVER).then_some(group.stop.0 as f64 / 1e9),
        sent_packets_total: sent.sent_packets,
        received_packets_total: sink.received_packets,
        arrived_bytes_total: sink.delivered_bytes,
        delivered_bytes_total: sink.delivered_bytes,
        idle_max_s_total: idle(sent.idle_max),
        ..FlowOutcome::default()
    }
}
