//! The elements of a run, built from the model, handed to an engine, read out at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use congestlab_core::law::Series as _;
use congestlab_core::law::queue::Value;
use congestlab_core::units::Duration;
use congestlab_net::medium::Medium;
use congestlab_net::packet::{Kind, Packet, Picos};
use congestlab_net::port::{Port, PortConfig, PortCounts, PortEvent, PortStats, Streams};
use congestlab_net::queue::Reason;
use congestlab_net::random::{Name, Stream};

use crate::agents::Agents;
use crate::arrivals::Arrivals;
use crate::bounds::Bounds;
use crate::device::Device;
use crate::flows::{self, is_fleeting, seconds};
use crate::hosts::{Crowd, Hosts, with_hosts};
use crate::model::{DeviceKind, Group, GroupKind, Link, Model, Start};
use crate::network::{Hop, Network};
use crate::origin::Origin;
use crate::outcome::{DropsByReason, Element, Event, LinkOutcome, Outcome, Sample};
use crate::router::Router;
use crate::station::{Extras, Record, Sampler, mix};

/// True if drawn sequence numbers decide what the group's packets can say.
fn has_numbers(group: &Group) -> bool {
    matches!(&group.kind, GroupKind::Tcp(config) if config.law.needs().writes_segments)
}

/// The port of a link at the beginning of a run.
fn port_of(model: &Model, link: &Link) -> Port {
    let name = Name::new("links.").then(&link.name).then(".");
    let stream = |what| Stream::of(model.seed, name.then(what));
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
    /// By group.
    origins: Vec<Arc<Origin>>,
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
                        Stream::of(model.seed, Name::new("links.").then(name).then(".backoff"))
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
            hosts: Vec::with_capacity(2 * model.groups.len()),
            origins: Vec::with_capacity(model.groups.len()),
            packet_hops: 0,
            record: Record::default(),
            reached: Picos::MAX,
            drew: false,
        };
        let mut first_flow = 0;
        let bounds = Bounds::new(model);
        for (index, group) in model.groups.iter().enumerate() {
            let is_drawn = matches!(group.start, Start::Uniform { .. } | Start::Poisson { .. });
            elements.drew |= (is_drawn || group.sizes.is_some() || has_numbers(group)) && group.count > 0;
            let extras = |flow: u32, is_sender: bool| {
                let element = Element::Flow(index as u32, flow);
                let sampler = || Sampler::new(model.sample_every, model.record_events, element);
                let agent = agents.host(index as u32, group, first_flow, flow, is_sender);
                let is_wanted = sampled || agent.is_some();
                is_wanted.then(|| Box::new(Extras { sampler: sampled.then(sampler), agent }))
            };
            let origin = Arc::new(Origin::new(model, index, first_flow, bounds.window(group)));
            let all_live = is_heard || !is_fleeting(model, group);
            elements.add(&origin, all_live, extras, stop);
            elements.origins.push(origin);
            first_flow += group.count;
        }
        debug_assert_eq!(first_flow, network.flows);
        elements
    }

    fn add(
        &mut self,
        origin: &Arc<Origin>,
        all_live: bool,
        extras: impl Fn(u32, bool) -> Option<Box<Extras>>,
        stop: &AtomicBool,
    ) {
        let senders_extras = |flow| extras(flow, true);
        let receivers_extras = |flow| extras(flow, false);
        let hosts = match &origin.group.kind {
            GroupKind::Tcp(config) if all_live => [
                Hosts::Senders(Crowd::of_all(config.clone(), origin, senders_extras, stop)),
                Hosts::Receivers(Crowd::of_all(config.clone(), origin, receivers_extras, stop)),
            ],
            GroupKind::Tcp(config) => [
                Hosts::Senders(Crowd::of_living(config.clone(), origin)),
                Hosts::Receivers(Crowd::of_living(config.clone(), origin)),
            ],
            GroupKind::Source(config) => [
                Hosts::Sources(Crowd::of_all(*config, origin, senders_extras, stop)),
                Hosts::Sinks(Crowd::of_all((), origin, receivers_extras, stop)),
            ],
        };
        if let GroupKind::Tcp(config) = &origin.group.kind {
            self.drew |= config.law.needs().draws && origin.group.count > 0;
        }
        self.hosts.extend(hosts);
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
            with_hosts!(hosts, crowd => {
                fingerprint = crowd.fingerprints().fold(fingerprint, mix);
                self.drew |= crowd.draws() > 0;
            });
        }
        let mut groups = Vec::with_capacity(self.origins.len());
        let mut hosts = self.hosts.into_iter();
        for origin in &self.origins {
            groups.push(match (hosts.next(), hosts.next()) {
                (Some(Hosts::Senders(senders)), Some(Hosts::Receivers(receivers))) => {
                    flows::of_connections(model, origin, senders, receivers)
                }
                (Some(Hosts::Sources(sources)), Some(Hosts::Sinks(sinks))) => {
                    flows::of_sources(model, origin, sources, sinks, |drew| self.drew |= drew)
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
        PortEvent::Feedback { .. } | PortEvent::Crossed(_) | PortEvent::Departed { .. } => {}
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
