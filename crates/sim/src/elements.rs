//! The elements of a run, built from the model, handed to an engine, read out at the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use congestlab_core::law::Series as _;
use congestlab_core::law::queue::Value;
use congestlab_core::units::{Duration, Time};
use congestlab_net::medium::Medium;
use congestlab_net::packet::{Kind, PS_PER_NS, Packet, Picos};
use congestlab_net::port::{Port, PortConfig, PortCounts, PortEvent, PortStats, Streams};
use congestlab_net::queue::Reason;
use congestlab_net::random::Stream;
use congestlab_net::source::{Source, SourceConfig};
use congestlab_net::tcp;

use crate::agents::Agents;
use crate::arrivals::Arrivals;
use crate::device::Device;
use crate::headers;
use crate::model::{DeviceKind, Group, GroupKind, Link, Model, Start};
use crate::network::{Hop, Network, measure_of, segments_of, spans_of, starts_of};
use crate::outcome::{DropsByReason, Element, Event, FlowOutcome, LinkOutcome, Outcome, Sample};
use crate::router::Router;
use crate::station::{Extras, Record, Sampler, Sink, Station, mix};

/// The hosts of one class, in flow order.
pub(crate) enum Hosts {
    /// An engine has them.
    Away,
    Senders(tcp::Config, Vec<Station<tcp::Sender>>),
    Receivers(tcp::Config, Vec<Station<tcp::Receiver>>),
    Sources(SourceConfig, Vec<Station<Source>>),
    Sinks(Vec<Station<Sink>>),
}

/// Runs a body with the configuration and the stations of any kind of host.
macro_rules! with_hosts {
    ($hosts:expr, $config:ident, $stations:ident => $body:expr) => {
        match $hosts {
            $crate::elements::Hosts::Away => {}
            $crate::elements::Hosts::Senders($config, $stations) => $body,
            $crate::elements::Hosts::Receivers($config, $stations) => $body,
            $crate::elements::Hosts::Sources($config, $stations) => $body,
            $crate::elements::Hosts::Sinks($stations) => {
                let $config = &();
                $body
            }
        }
    };
}
pub(crate) use with_hosts;

/// After so many hosts it is asked whether the run goes on.
const STRIDE: u32 = 1024;

/// All of them, of which there are `count` unless the run is given up: hosts are too many to be moved as a list grows.
fn all<T>(count: usize, items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = Vec::with_capacity(count);
    list.extend(items);
    list
}

/// True if drawn sequence numbers decide what the group's packets can say.
fn has_numbers(group: &Group) -> bool {
    matches!(&group.kind, GroupKind::Tcp(config) if config.law.needs().writes_segments)
}

/// The port of a link at the beginning of a run.
fn port_of(model: &Model, link: &Link) -> Port {
    let stream = |what| Stream::named(model.seed, &format!("links.{}.{what}", link.name));
    let config = PortConfig { sample_every: model.sample_every, ..link.port.clone() };
    Port::new(&config, Streams::new(stream), model.warmup, model.duration)
}

/// A port that nothing ever came to, at the end of the run.
fn unused(model: &Model, link: &Link) -> Port {
    let mut port = port_of(model, link);
    port.pass_unused(model.duration.saturating_add(1));
    port
}

/// Everything of a run that has state.
pub(crate) struct Elements {
    /// By link; `None` while an engine or a device has it, and where no packet ever comes and nothing happens: such a
    /// port is made to be read out.
    pub(crate) ports: Vec<Option<Box<Port>>>,
    /// `None` while an engine has it.
    pub(crate) devices: Vec<Option<Device>>,
    /// By link: what arrives there, if somebody watches.
    pub(crate) arrivals: Vec<Option<Arrivals>>,
    /// By class.
    pub(crate) hosts: Vec<Hosts>,
    /// Starts of the flows, by group.
    starts: Vec<Vec<Time>>,
    /// Packets that entered an access or exit link.
    pub(crate) packet_hops: u64,
    pub(crate) record: Record,
    /// All events before this time have happened.
    pub(crate) reached: Picos,
    drew: bool,
}

impl Elements {
    /// Once `stop` is raised, no more hosts are built. `is_watched`: somebody is told what happens at ports.
    pub(crate) fn new(model: &Model, network: &Network, is_watched: bool, stop: &AtomicBool) -> Self {
        let sampled = model.sample_every.is_some() || model.record_events;
        let crossed = network.routes.iter().filter_map(|hop| match hop {
            Hop::Link(link) => Some(link),
            Hop::Host(_) | Hop::Device(_) => None,
        });
        let mut is_needed = vec![model.sample_every.is_some(); model.links.len()];
        for &link in crossed.chain(model.devices.iter().flat_map(|device| &device.links)) {
            is_needed[link as usize] = true;
        }
        let is_heard = is_watched || sampled;
        for (link, is_needed) in model.links.iter().zip(&mut is_needed) {
            // What a source says is looked at often, which is no work for the end of a run.
            *is_needed |= is_heard && link.port.law.is_some() || link.port.capacity_from.is_some();
        }
        let ports = model.links.iter().zip(is_needed);
        let mut ports: Vec<_> =
            ports.map(|(link, is_needed)| is_needed.then(|| Box::new(port_of(model, link)))).collect();
        let agents = Agents::new(model);
        let device = |(index, device): (u32, &crate::model::Device)| {
            let ports = device.links.iter().filter_map(|&link| ports[link as usize].take());
            let ports = ports.map(|port| *port);
            Some(match &device.kind {
                DeviceKind::Router(router) => {
                    let (edge, watched) = agents.router(index, router);
                    Device::Router(Box::new(Router::new(ports.collect(), edge, watched, model.sample_every)))
                }
                DeviceKind::Medium(config) => {
                    let backoff = |&link: &u32| {
                        let name = &model.links[link as usize].name;
                        Stream::named(model.seed, &format!("links.{name}.backoff"))
                    };
                    let stations: Vec<_> = ports.zip(device.links.iter().map(backoff)).collect();
                    let stations = stations.try_into().expect("a medium has two ports");
                    Device::Medium(Box::new(Medium::new(config, stations)))
                }
            })
        };
        let devices = (0..).zip(&model.devices).map(device).collect();
        let mut elements = Self {
            ports,
            devices,
            arrivals: agents.arrivals.clone(),
            hosts: Vec::new(),
            starts: Vec::new(),
            packet_hops: 0,
            record: Record::default(),
            reached: Picos::MAX,
            drew: false,
        };
        let mut first_flow = 0;
        for (index, group) in model.groups.iter().enumerate() {
            let starts: Vec<Time> = starts_of(group, model.seed);
            let is_drawn = matches!(group.start, Start::Uniform { .. } | Start::Poisson { .. });
            elements.drew |= (is_drawn || group.sizes.is_some() || has_numbers(group)) && group.count > 0;
            let extras = |flow: u32, is_sender: bool| {
                let element = Element::Flow(index as u32, flow);
                let sampler = || Sampler::new(model.sample_every, model.record_events, element);
                let agent = agents.host(index as u32, group, first_flow, flow, is_sender);
                let is_wanted = sampled || agent.is_some();
                is_wanted.then(|| Box::new(Extras { sampler: sampled.then(sampler), agent }))
            };
            elements.add(model, index, first_flow, &starts, extras, stop);
            elements.starts.push(starts);
            first_flow += group.count;
        }
        debug_assert_eq!(first_flow, network.flows);
        elements
    }

    fn add(
        &mut self,
        model: &Model,
        number: usize,
        first_flow: u32,
        starts: &[Time],
        extras: impl Fn(u32, bool) -> Option<Box<Extras>>,
        stop: &AtomicBool,
    ) {
        let group = &model.groups[number];
        let goes_on = |&(i, _): &(u32, Time)| i % STRIDE != 0 || !stop.load(Ordering::Relaxed);
        let flows = || (0..).zip(starts.iter().copied()).take_while(goes_on);
        let connection = |i: u32| headers::connection(group, number, i, first_flow + i, model.seed);
        match &group.kind {
            GroupKind::Tcp(config) => {
                let draws = config.law.needs().draws;
                self.drew |= draws && group.count > 0;
                let senders = flows().map(|(i, start)| {
                    let measure = measure_of(model, group, start);
                    let sender = tcp::Sender::new(config, first_flow + i, start, group.stop, 0, measure);
                    let sender = match segments_of(group, i, model.seed) {
                        Some(segments) => sender.with_segments(segments),
                        None => sender,
                    };
                    let sender = match connection(i) {
                        Some(connection) => sender.with_headers(connection),
                        None => sender,
                    };
                    let seed = || {
                        Stream::named(model.seed, &format!("flows.{}/{i}.{}", group.name, config.law.name()))
                            .next_u64()
                    };
                    let sender = if draws { sender.with_seed(seed()) } else { sender };
                    Station::new(sender, extras(i, true))
                });
                self.hosts.push(Hosts::Senders(config.clone(), all(starts.len(), senders)));
                let receivers = flows().map(|(i, start)| {
                    let measure = measure_of(model, group, start);
                    let receiver = tcp::Receiver::new(config, first_flow + i, 0, measure);
                    let receiver = match connection(i) {
                        Some(connection) => receiver.with_headers(connection),
                        None => receiver,
                    };
                    Station::new(receiver, extras(i, false))
                });
                self.hosts.push(Hosts::Receivers(config.clone(), all(starts.len(), receivers)));
            }
            GroupKind::Source(config) => {
                let sources = flows().map(|(i, start)| {
                    let stream = Stream::named(model.seed, &format!("flows.{}/{i}.on-off", group.name));
                    let measure = measure_of(model, group, start);
                    let source = Source::new(config, first_flow + i, start, group.stop, stream, measure);
                    let source = match spans_of(group, i, start) {
                        Some(spans) => source.within(config, spans),
                        None => source,
                    };
                    Station::new(source, extras(i, true))
                });
                self.hosts.push(Hosts::Sources(*config, all(starts.len(), sources)));
                let sinks = flows().map(|(i, start)| {
                    Station::new(Sink::new(measure_of(model, group, start)), extras(i, false))
                });
                self.hosts.push(Hosts::Sinks(all(starts.len(), sinks)));
            }
        }
    }

    /// Closes every integral at the end of the run and reads everything out.
    pub(crate) fn finish(mut self, model: &Model, complete: bool) -> Outcome {
        let mut fingerprint = 0;
        let (mut links, mut agents) = (Vec::new(), Vec::new());
        for (device, built) in model.devices.iter().zip(self.devices.into_iter().flatten()) {
            fingerprint = mix(fingerprint, built.fingerprint());
            self.drew |= built.draws() > 0;
            if let Some(stats) = built.stats() {
                let stats: BTreeMap<_, _> = stats.named().into();
                agents.extend(device.links.iter().map(|&link| (link, stats.clone())));
            }
            for (&link, port) in device.links.iter().zip(built.into_ports()) {
                self.ports[link as usize] = Some(Box::new(port));
            }
        }
        let no_drops = by_reason(&PortCounts::default());
        links.reserve_exact(model.links.len());
        for (link, port) in model.links.iter().zip(self.ports) {
            let mut port = port.unwrap_or_else(|| Box::new(unused(model, link)));
            port.finish(model.duration);
            fingerprint = mix(fingerprint, port.fingerprint());
            self.packet_hops += port.stats().arrived_packets;
            self.drew |= port.draws() > 0;
            links.push(link_outcome(model, link, port.stats(), &no_drops));
        }
        for (link, stats) in agents {
            links[link as usize].xcp_i = Some(stats);
        }
        for hosts in &self.hosts {
            with_hosts!(hosts, _config, stations => for station in stations {
                fingerprint = mix(fingerprint, station.fingerprint());
                self.drew |= station.draws() > 0;
            });
        }
        let mut groups = Vec::new();
        let mut hosts = self.hosts.into_iter();
        for (group, starts) in model.groups.iter().zip(&self.starts) {
            // Hosts are turned into results one by one and by value: the results then take the
            // hosts' memory, which a million flows notice.
            groups.push(match (hosts.next(), hosts.next()) {
                (Some(Hosts::Senders(config, senders)), Some(Hosts::Receivers(_, receivers))) => {
                    // Those whose memory it is come first, or the results get memory of their own.
                    let flows = senders.into_iter().zip(receivers).zip(starts).zip(0..);
                    let finished = flows.map(|(((mut sender, receiver), &start), index)| {
                        sender.endpoint.finish(Time(model.duration / PS_PER_NS));
                        tcp_outcome(model, group, &config, start, &sender.endpoint, &receiver.endpoint, index)
                    });
                    finished.collect()
                }
                (Some(Hosts::Sources(config, sources)), Some(Hosts::Sinks(sinks))) => {
                    let flows = sources.into_iter().zip(sinks).zip(starts);
                    let finished = flows.map(|((source, sink), &start)| {
                        self.drew |= source.endpoint.draws() > 0;
                        source_outcome(model, group, &config, start, &source.endpoint, &sink.endpoint)
                    });
                    finished.collect()
                }
                _ => unreachable!("an engine gives all hosts back"),
            });
        }
        let mut record = self.record;
        record.samples.sort_by_key(|s| (s.at, s.element, s.metric));
        record.events.sort_by_key(|e| (e.at, e.element));
        Outcome {
            complete,
            duration: model.duration,
            seed_used: self.drew,
            fingerprint,
            packet_hops: self.packet_hops,
            links,
            groups,
            series: record.samples,
            events: record.events,
        }
    }
}

/// Picoseconds as seconds.
fn seconds(t: Picos) -> f64 {
    t as f64 / 1e12
}

/// Drops by the names of their reasons, all of which are listed.
fn by_reason(counts: &PortCounts) -> DropsByReason {
    let named = Reason::ALL.iter().zip(counts.drops).map(|(reason, count)| (reason.name(), count));
    named.collect::<BTreeMap<_, _>>().into()
}

fn link_outcome(model: &Model, link: &Link, stats: &PortStats, no_drops: &DropsByReason) -> LinkOutcome {
    let length = model.duration.saturating_sub(model.warmup);
    let measured = (length > 0).then(|| seconds(length));
    // Picosecond-bits: the integral of the rate over the measured time.
    let work = link.port.service.work(model.warmup, model.duration) as f64 / 1e12;
    let bits = stats.measured_bytes as f64 * 8.0;
    let (counts, total) = (stats.measured(), stats.counts());
    let drops =
        |counts: &PortCounts| if counts.dropped_packets() > 0 { by_reason(counts) } else { no_drops.clone() };
    LinkOutcome {
        capacity_bps: measured.map(|t| work / t),
        throughput_bps: measured.map(|t| bits / t),
        utilization: (work > 0.0).then(|| bits / work),
        sent_packets: counts.sent_packets,
        arrived_packets: counts.arrived_packets,
        drops: counts.dropped_packets(),
        drops_by_reason: drops(&counts),
        errors: counts.errors,
        marks: counts.marks,
        collisions: counts.collisions,
        bounded_packets: counts.bounded_packets,
        policed_flows: counts.police.map(|police| police.offenders),
        clamped_packets: counts.police.map(|police| police.clamped),
        capacity_changes: counts.capacity.map(|capacity| capacity.changes),
        capacity_stale_s: counts.capacity.map(|capacity| ms(capacity.stale) / 1e3),
        xcp_i: None,
        in_flight_end: stats.in_flight_end,
        queue_mean_packets: stats.queue_mean_packets,
        queue_p95_packets: stats.queue_p95_packets,
        queue_max_packets: counts.queue_max_packets,
        queue_end_packets: stats.queue_end_packets,
        queue_delay_mean_ms: stats.queue_delay.map(|delay| delay.mean_ns / 1e6),
        queue_delay_p50_ms: stats.queue_delay.map(|delay| ms(delay.p50)),
        queue_delay_p95_ms: stats.queue_delay.map(|delay| ms(delay.p95)),
        queue_delay_p99_ms: stats.queue_delay.map(|delay| ms(delay.p99)),
        queue_delay_max_ms: stats.queue_delay.map(|delay| ms(delay.max)),
        sent_packets_total: total.sent_packets,
        arrived_packets_total: total.arrived_packets,
        drops_total: total.dropped_packets(),
        drops_by_reason_total: drops(&total),
        errors_total: total.errors,
        marks_total: total.marks,
        collisions_total: total.collisions,
        bounded_packets_total: total.bounded_packets,
        policed_flows_total: total.police.map(|police| police.offenders),
        clamped_packets_total: total.police.map(|police| police.clamped),
        capacity_changes_total: total.capacity.map(|capacity| capacity.changes),
        capacity_stale_s_total: total.capacity.map(|capacity| ms(capacity.stale) / 1e3),
        queue_max_packets_total: total.queue_max_packets,
    }
}

fn ms(span: Duration) -> f64 {
    span.0 as f64 / 1e6
}

/// The least time in which a flow of a group could bring so many bytes to their receiver and hear of it: a round trip
/// without queues, and the bytes at the rate of the slowest hop, each by its mean over the run. `None` without a path.
fn ideal(model: &Model, group: &Group, bytes: u64) -> Option<f64> {
    let both = group.path.iter().chain(&group.back).map(|&link| &model.links[link as usize].port);
    let pipes = || [group.access, group.exit].into_iter().flatten();
    let delay: f64 = both.map(|port| seconds(port.delay)).sum::<f64>()
        + pipes().map(|pipe| 2.0 * seconds(pipe.delay)).sum::<f64>();
    let mean = |&link: &u32| {
        let work = model.links[link as usize].port.service.work(0, model.duration) as f64;
        work / model.duration.max(1) as f64
    };
    let rates = group.path.iter().map(mean).chain(pipes().map(|pipe| pipe.rate.0 as f64));
    let slowest = rates.reduce(f64::min).filter(|rate| *rate > 0.0)?;
    Some(delay + bytes as f64 * 8.0 / slowest)
}

/// Bits a second of `bytes` from `measure.from` to the end of the flow's measurement.
fn rate(bytes: u64, from: Time, to: Time) -> Option<f64> {
    (to > from).then(|| bytes as f64 * 8e9 / (to.0 - from.0) as f64)
}

fn tcp_outcome(
    model: &Model,
    group: &Group,
    config: &tcp::Config,
    start: Time,
    sender: &tcp::Sender,
    receiver: &tcp::Receiver,
    index: u32,
) -> FlowOutcome {
    let measure = measure_of(model, group, start);
    let (sent, received) = (sender.stats(), receiver.stats());
    let completion = sent.completion.map(|done| (done.0 - start.0) as f64 / 1e9);
    let size = match config.app {
        tcp::App::Transfer(total) => Some(total.0),
        tcp::App::Bursts { total, .. } => total.map(|total| total.0),
        tcp::App::Own => {
            segments_of(group, index, model.seed).map(|segments| segments * u64::from(config.segment))
        }
        _ => None,
    };
    // A flow that was stopped has sent less.
    let size = size.filter(|_| group.stop == Time::NEVER);
    let least = size.and_then(|bytes| ideal(model, group, bytes));
    let end = sent.completion.map_or(measure.to, |done| done.min(measure.to));
    // docs/design/contract.md 5.
    let headers = u64::from(40 + config.law.needs().header_bytes);
    let packets = received.measured_bytes.div_ceil(config.segment.into());
    let payload = received.measured_bytes.saturating_sub(packets * headers);
    FlowOutcome {
        goodput_bps: rate(received.measured_bytes, measure.from, end),
        payload_bps: rate(payload, measure.from, end),
        throughput_bps: rate(sent.measured_bytes, measure.from, end),
        sent_packets: sent.measured.sent_packets,
        received_packets: received.measured.received_packets,
        delivered_bytes: received.measured.delivered_bytes,
        retransmits: sent.measured.retransmits,
        spurious_retransmits: received.measured.spurious_retransmits,
        timeouts: sent.measured.timeouts,
        window_cuts: sent.measured.window_cuts,
        rtt_mean_ms: sent.rtt_mean_ms(),
        rtt_p95_ms: sent.rtt_p95_ms(),
        cwnd_mean_packets: sent.cwnd_mean_packets(),
        cwnd_max_packets: sent.cwnd_max_packets(&sent.measured),
        idle_max_s: idle(sent.measured.idle_max),
        start_s: start.0 as f64 / 1e9,
        stop_s: (group.stop != Time::NEVER).then_some(group.stop.0 as f64 / 1e9),
        completion_s: completion,
        size_bytes: size,
        slowdown: completion.zip(least).map(|(completion, least)| completion / least),
        sent_packets_total: sent.total.sent_packets,
        received_packets_total: received.total.received_packets,
        delivered_bytes_total: received.total.delivered_bytes,
        retransmits_total: sent.total.retransmits,
        spurious_retransmits_total: received.total.spurious_retransmits,
        timeouts_total: sent.total.timeouts,
        window_cuts_total: sent.total.window_cuts,
        cwnd_max_packets_total: sent.cwnd_max_packets(&sent.total),
        idle_max_s_total: idle(sent.total.idle_max),
    }
}

fn source_outcome(
    model: &Model,
    group: &Group,
    config: &SourceConfig,
    start: Time,
    source: &Source,
    sink: &Sink,
) -> FlowOutcome {
    let measure = measure_of(model, group, start);
    let sent = source.stats();
    let goodput = rate(sink.measured_bytes, measure.from, measure.to);
    FlowOutcome {
        goodput_bps: goodput,
        payload_bps: goodput
            .map(|g| g * f64::from(config.segment.saturating_sub(40)) / f64::from(config.segment)),
        throughput_bps: rate(sent.measured_bytes, measure.from, measure.to),
        sent_packets: sent.sent_packets - sent.early_packets,
        received_packets: sink.received_packets - sink.early.0,
        delivered_bytes: sink.delivered_bytes - sink.early.1,
        idle_max_s: idle(sent.measured_idle_max),
        start_s: start.0 as f64 / 1e9,
        stop_s: (group.stop != Time::NEVER).then_some(group.stop.0 as f64 / 1e9),
        sent_packets_total: sent.sent_packets,
        received_packets_total: sink.received_packets,
        delivered_bytes_total: sink.delivered_bytes,
        idle_max_s_total: idle(sent.idle_max),
        ..FlowOutcome::default()
    }
}

fn idle(longest: Option<Duration>) -> Option<f64> {
    longest.map(|span| span.0 as f64 / 1e9)
}

/// The flow of a packet, if it is of one.
fn flow_of(packet: &Packet) -> Option<u32> {
    (!matches!(packet.kind, Kind::Control | Kind::Probe)).then_some(packet.flow)
}

/// Writes down what happened at a port.
#[cold]
pub(crate) fn note_port_event(record: &mut Record, link: u32, at: Picos, event: &PortEvent) {
    let element = Element::Link(link);
    let mut put = |kind, detail, flow, value| {
        if record.wants_events {
            record.events.push(Event { at, element, kind, detail, flow, value });
        }
    };
    match event {
        PortEvent::Dropped { packet, reason } => {
            put("drop", reason.name(), flow_of(packet), packet.seq.into());
        }
        PortEvent::Marked { packet } => put("mark", "", flow_of(packet), packet.seq.into()),
        PortEvent::Errored { packet } => put("error", "", flow_of(packet), packet.seq.into()),
        PortEvent::ControlInterval { report } => {
            put("control-interval", "", None, report.decision());
        }
        PortEvent::Feedback { .. } | PortEvent::Departed { .. } => {}
        PortEvent::Sample(sample) => {
            let seconds = seconds(record.bin);
            let mut put = |metric, value| record.samples.push(Sample { at, element, metric, value });
            put("throughput_bps", sample.sent_bytes as f64 * 8.0 / seconds);
            put("queue_packets", sample.queue_packets as f64);
            put("queue_bytes", sample.queue_bytes as f64);
            put("queue_max_packets", sample.queue_max_packets as f64);
            put("queue_delay_ms", ms(sample.waits) / sample.started_packets.max(1) as f64);
            if let Some(report) = sample.law {
                report.each(&mut |metric, value, unit| put(metric, value as f64 / f64::from(unit)));
            }
            if let Some(collisions) = sample.collisions {
                put("collisions", collisions as f64);
            }
            if let Some(queue) = sample.queue {
                queue.each(&mut |metric, value| match value {
                    Value::Number(value, unit) => put(metric, value as f64 / f64::from(unit)),
                    Value::Data(bytes) => put(metric, bytes.0 as f64 * 8.0 / seconds),
                });
            }
        }
    }
}
