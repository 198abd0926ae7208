//! Estimates of the memory that a run needs, to refuse a run that can not fit before it fails.

use std::collections::BTreeSet;

use congestlab_core::law::{Giver, Network, Remembers};
use congestlab_core::units::{Duration, Ratio, Time};
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::port::{LawConfig, PortConfig};
use congestlab_net::queue::{Limit, Record};
use congestlab_net::service::{PS_PER_S, Service};
use congestlab_net::source::SourceConfig;
use congestlab_net::tcp::{self, App};
use congestlab_sim::bounds::Bounds;
use congestlab_sim::cloud::{self, Cloud, Node};
use congestlab_sim::model::{Group, GroupKind, Link, Model, Pipe, Start};
use congestlab_sim::outcome::{Event, Sample};
use congestlab_sim::{Progress, REMEMBERED, is_fleeting};

use crate::language::file::File;
use crate::language::measure::Measure;
use congestlab_text::decode::{At, Language};
use congestlab_text::diagnostic::{Findings, Span};
use congestlab_text::number::count;
use congestlab_text::tree::inline;

/// A packet on its way or in a queue, with the room that a growing ring keeps.
const PACKET: u64 = 2 * 64;
/// What a sender keeps of a segment that is not acknowledged, where it times each: for RACK, for samples of the rate.
const TIMED: u64 = 2 * 64;
/// Memory of a link direction: its part of the file and of the model, and its result. This and the next
/// four as measured, with the room that growing lists keep.
const LINK: u64 = 4_608;
/// A port that packets come to, or that has something to do without them.
const PORT: u64 = 2_048;
/// A queue of a port beside its first, without packets, and what its law keeps of it.
const QUEUE: u64 = 128;
/// A record of a queue law beside those of its queues.
const RECORD: u64 = size_of::<Record>() as u64;
/// Memory of a link's law: its part of the file.
const LAW: u64 = 2_048;
/// An entry of a list of the file, such as a step of a rate: its text with all positions, and its part of the model. Those of a
/// link count twice, because the other direction mirrors them.
const ENTRY: u64 = 448;
/// A character of the file: the text itself, and its values with all positions.
const CHARACTER: u64 = 24;
/// A claim beside its text.
const CLAIM: u64 = 4_096;
/// A link of a path, of a group or of a later change: its part of the model and of the engine.
const STEP_OF_PATH: u64 = 96;
/// A line of a trace.
const STAMP: u64 = 16;
/// Memory of a group: its part of the file and of the model.
const GROUP: u64 = 5_632;
/// Sender, receiver, histogram of round trip times, result.
const FLOW: u64 = 2_048;
/// Remains of both hosts of a flow that is over, and what finds it; its result in a list of all.
const OVER: u64 = 1_280;
/// Flows may live so many times as long as they would on an idle path.
const LINGER: u64 = 4;
/// Shares of links, in percent, up to which flows come and go: beyond, more and more of them live at once.
const CALM: u64 = 80;
/// The XCP-i agents of both hosts.
const AGENTS: u64 = 8_192;
/// An arrival that the oracle of XCP-i remembers, with the room that a growing ring keeps.
const ARRIVAL: u64 = 2 * 16;
/// A value of the series, twice: a list that grows has room for as many again, or is copied.
const SAMPLE: u64 = 2 * size_of::<Sample>() as u64;
/// An event, likewise.
const EVENT: u64 = 2 * size_of::<Event>() as u64;
/// A flow that a router remembers: its name, when it was seen; what is kept comes to that.
const FLOW_ENTRY: u64 = 24;
/// A record of a policer, and the fewest that its table has room for.
const POLICED: u64 = 96;
const POLICED_MIN: u64 = 8;
/// Values in a bin for each flow of VCP's family beside.
const CODE_SAMPLES: u64 = 2;
/// Values in a bin for each flow.
const FLOW_SAMPLES: u64 = 5;
/// For each link: its own, those of its law and its medium, beside those of its queue law.
const LINK_SAMPLES: [u64; 3] = [5, 7, 1];
/// For each entry in a table of clouds.
const CLOUD_SAMPLES: u64 = 3;
/// Packets of a first window that the memory of the flow covers.
const FIRST: u64 = 64;
/// Segments that a sender may send without an ACK beside its initial window: timeouts back off.
const UNASKED: u64 = 8;
/// Packets in a round trip below which the least windows of XCP flows, one packet each, may be too much.
const FEW: f64 = 2.0;

/// The parts of a run that take memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Links, used or not.
    Links,
    /// Hosts: the group with most of them.
    Flows(usize),
    /// Packets: the link that can hold most of them.
    Packets(usize),
    /// Packets: the group whose access and exit links can hold most of them.
    Pipes(usize),
    Series,
    /// Events: the group that sends most.
    Events(usize),
}

/// Bytes by what takes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs(pub(crate) [(Part, u64); 5]);

impl Needs {
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, &(_, bytes)| sum.saturating_add(bytes))
    }

    pub(crate) fn largest(&self) -> (Part, u64) {
        self.0.into_iter().max_by_key(|&(_, bytes)| bytes).unwrap_or((Part::Series, 0))
    }
}

/// A run may move so many times the packets that were estimated, because estimates are rough and engines count packets at
/// hosts, too.
const TIMES: u64 = 16;
/// A run may take so many times the memory that was estimated.
const BYTES_TIMES: u64 = 4;
/// Packets, some seconds of work, and bytes that any run may take.
const PACKETS_MIN: u64 = 20_000_000;
const BYTES_MIN: u64 = 512 << 20;
/// Bytes that a run which takes more than its estimate must leave to the machine, so that it stops before the machine
/// stops it.
const LEFT_MIN: u64 = 256 << 20;

/// Work and memory of a run, estimated before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Packet-hops, which are packets that enter a link.
    pub hops: u64,
    /// Memory, bytes.
    pub bytes: u64,
}

impl Estimate {
    /// Says what a run takes that takes several times its estimate: `packets` reached a link or a host, it holds `bytes` of
    /// memory, and `left` bytes can still be had, where that is known. `None`: it may go on.
    pub fn exceeded(&self, packets: u64, bytes: Option<u64>, left: Option<u64>) -> Option<String> {
        if packets > self.hops.saturating_mul(TIMES).max(PACKETS_MIN) {
            let (found, expected) = (count(packets as f64), count(self.hops as f64));
            return Some(format!("{found} packets have moved, and {expected} packet-hops were estimated"));
        }
        let bytes = bytes.filter(|&bytes| bytes > self.bytes)?;
        let taken =
            format!("it has taken {} of memory, and {} were estimated", text(bytes), text(self.bytes));
        if let Some(left) = left.filter(|&left| left < LEFT_MIN) {
            return Some(format!("{taken}; {} are left", text(left)));
        }
        (bytes > self.bytes.saturating_mul(BYTES_TIMES).max(BYTES_MIN)).then_some(taken)
    }

    /// Says so of the run with this name, and when it was stopped; arguments as of [`Estimate::exceeded`].
    pub fn stopped(
        &self,
        name: &str,
        come: Progress,
        bytes: Option<u64>,
        left: Option<u64>,
    ) -> Option<String> {
        let excess = self.exceeded(come.packets, bytes, left)?;
        Some(format!("{name}: stopped at {:.3} s of simulated time: {excess}", come.at as f64 / 1e12))
    }
}

/// Packet-hops, at most and roughly: packets that enter links, repeated ones and ACKs included.
pub(crate) fn hops(model: &Model) -> u64 {
    let judge = Judge::new(model);
    model.groups.iter().map(|group| judge.hops(group)).fold(0, u64::saturating_add)
}

/// Memory of a process that runs next to nothing: its code, and what its libraries keep.
pub const PROCESS: u64 = 16 << 20;

/// Bytes, at most and roughly, of a run of a file with so many characters and claims.
pub(crate) fn needs(model: &Model, measure: &Measure, characters: usize, claims: usize) -> Needs {
    let read =
        CHARACTER.saturating_mul(characters as u64).saturating_add(CLAIM.saturating_mul(claims as u64));
    Judge::new(model).needs(measure, read)
}

/// The packets that come to a link in the whole run, of all groups together.
#[derive(Clone, Copy)]
struct Load {
    /// Packets that those who cross it can have in the network at once.
    outstanding: u64,
    /// Packets that come.
    arrivals: u64,
    /// Bytes of the smallest packet of data, and of the smallest packet.
    data_min: u64,
    smallest: u64,
    /// Bytes that come though nothing of them may pass: datagrams, what XCP elsewhere has granted, ACKs; the smallest
    /// packet of them, and how often each may be sent.
    deaf: u64,
    deaf_min: u64,
    repeats: u64,
    /// The shortest round trip that an XCP header can state here.
    round_trip: Picos,
    /// Flows that are remembered by routers that want to.
    has_chains: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            outstanding: 0,
            arrivals: 0,
            data_min: u64::MAX,
            smallest: u64::MAX,
            deaf: 0,
            deaf_min: u64::MAX,
            repeats: 1,
            round_trip: Picos::MAX,
            has_chains: false,
        }
    }
}

/// How packets of a group come to a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    link: u32,
    is_ack: bool,
    /// Bytes that the links before it let pass.
    passed: u64,
}

/// A model, and what is asked of it often. All that is asked takes time in proportion to the links, the groups and
/// the lengths of paths: never to links times groups.
struct Judge<'a> {
    model: &'a Model,
    bounds: Bounds<'a>,
    /// Mean rate of each link, bit/s.
    rates: Vec<u64>,
}

impl<'a> Judge<'a> {
    fn new(model: &'a Model) -> Self {
        let rate = |link: &Link| link.port.service.mean_rate(0, model.duration).0;
        Self { model, bounds: Bounds::new(model), rates: model.links.iter().map(rate).collect() }
    }

    /// `read`: bytes that reading the file takes.
    fn needs(&self, measure: &Measure, read: u64) -> Needs {
        let model = self.model;
        let groups = || model.groups.iter();
        let largest = |each: &dyn Fn(&Group) -> u64| {
            let sum = groups().fold(0, |sum: u64, group| sum.saturating_add(each(group)));
            (groups().enumerate().max_by_key(|(_, group)| each(group)).map_or(0, |(index, _)| index), sum)
        };
        let loads = self.loads();
        let links = || (0..).zip(&model.links).zip(&loads);
        let (most_flows, flows) = largest(&|group| group.count.into());
        let is_recorded = measure.series || measure.events;
        let crowded = if is_recorded { Vec::new() } else { self.crowded() };
        let hosts = |group: &Group| {
            let count = u64::from(group.count);
            let living = if is_recorded { count } else { self.living(group, &crowded) };
            living.saturating_mul(FLOW).saturating_add((count - living).saturating_mul(OVER))
        };
        let (_, hosts) = largest(&hosts);
        let (_, outstanding) = largest(&|group| self.outstanding(group));
        let in_links = links().map(|((index, link), load)| {
            (Part::Packets(index), room(&link.port, self.rates[index], load, model.duration))
        });
        let in_pipes = groups().enumerate().map(|(index, group)| (Part::Pipes(index), self.piped(group)));
        let rooms: Vec<(Part, u64)> = in_links.chain(in_pipes).collect();
        let packets = rooms.iter().fold(0, |sum: u64, &(_, room)| sum.saturating_add(room)).min(outstanding);
        let fullest = rooms.into_iter().rev().max_by_key(|&(_, room)| room);
        let fullest = fullest.map_or(Part::Packets(0), |(part, _)| part);
        let agents =
            groups().filter(|group| group.interoperable.is_some()).map(|group| u64::from(group.count));
        let agents = agents.sum::<u64>().saturating_mul(AGENTS);
        let of_groups = (model.groups.len() as u64).saturating_mul(GROUP);
        let is_sampled = measure.series && model.sample_every.is_some();
        let mut samples = 0;
        if let Some(every) = model.sample_every.filter(|&every| measure.series && every > 0) {
            let of_links = model.links.iter().map(|link| values(&link.port)).sum::<u64>();
            let coded =
                groups().filter(|group| has_codes(group)).map(|group| u64::from(group.count)).sum::<u64>();
            let of_flows =
                flows.saturating_mul(FLOW_SAMPLES).saturating_add(coded.saturating_mul(CODE_SAMPLES));
            let of_clouds = entries(model).saturating_mul(CLOUD_SAMPLES);
            let values = of_links.saturating_add(of_flows).saturating_add(of_clouds);
            samples = (model.duration / every).saturating_mul(values);
        }
        let mut events = 0_u64;
        if measure.events {
            let at_links = links()
                .map(|((index, link), load)| happenings(&link.port, self.rates[index], load, model.duration));
            let of_groups = groups().map(|group| self.repairs(group));
            events = at_links.chain(of_groups).fold(0, u64::saturating_add);
        }
        // What a first window has beyond a few packets is between hosts and links at once, also if queues do not take it.
        let bursts = groups().map(|group| self.burst(group).saturating_mul(group.count.into()));
        let packets = packets.max(bursts.fold(0, u64::saturating_add));
        let (most_sent, _) = largest(&|group| self.offered(group));
        let timed = groups().filter(|group| times_segments(group)).map(|group| self.outstanding(group));
        let timed = timed.fold(0, u64::saturating_add).min(packets);
        let packets = packets.saturating_mul(PACKET).saturating_add(timed.saturating_mul(TIMED));
        let packets = packets.saturating_add(self.remembered(&loads)).saturating_add(tables(model, &loads));
        Needs([
            (
                Part::Links,
                links().map(|((_, link), load)| written(link, load, is_sampled)).sum::<u64>()
                    + self.listed()
                    + read,
            ),
            (Part::Flows(most_flows), hosts.saturating_add(agents).saturating_add(of_groups)),
            (fullest, packets),
            (Part::Series, samples.saturating_mul(SAMPLE)),
            (Part::Events(most_sent), events.saturating_mul(EVENT)),
        ])
    }

    /// Bytes for the lists of the file: steps of rates, times without ACKs, changes of paths and of numbers of flows.
    fn listed(&self) -> u64 {
        let of_link = |link: &Link| match &link.port.service {
            Service::Fixed(_) => 0,
            Service::Steps(steps) => ENTRY * steps.as_slice().len() as u64,
            Service::Trace(trace) => STAMP * trace.opportunities() as u64,
        };
        let of_link = |link: &Link| of_link(link) + ENTRY * link.port.ack_blackout.iter().count() as u64;
        let of_group = |group: &Group| {
            let later = group.switches.iter().map(|switch| switch.path.len() + switch.back.len());
            let steps = group.path.len() + group.back.len() + later.sum::<usize>();
            ENTRY * (group.schedule.len() + group.switches.len()) as u64 + STEP_OF_PATH * steps as u64
        };
        let groups = self.model.groups.iter().map(of_group);
        self.model.links.iter().map(of_link).chain(groups).sum()
    }

    /// By link: flows that come there do not go as soon as they could, since others take what they need.
    fn crowded(&self) -> Vec<bool> {
        let mut loads = vec![0_u64; self.model.links.len()];
        for group in &self.model.groups {
            let whole = self.transfer(group).map(|bytes| bytes.saturating_mul(group.count.into()));
            // As if all of a group came in the time in which the flows start.
            let rate = whole.zip(self.starting(group)).map(|(bytes, span)| {
                u64::try_from(u128::from(bytes) * 8 * u128::from(PS_PER_S) / u128::from(span))
                    .unwrap_or(u64::MAX)
            });
            for visit in self.visits(group).into_iter().filter(|visit| !visit.is_ack) {
                let load = &mut loads[visit.link as usize];
                *load = load.saturating_add(rate.unwrap_or(u64::MAX));
            }
        }
        loads.iter().zip(&self.rates).map(|(&load, &rate)| load > rate / 100 * CALM).collect()
    }

    /// Bytes of a transfer of a group whose flows are there while they live; `None`: they live to the end.
    fn transfer(&self, group: &Group) -> Option<u64> {
        let GroupKind::Tcp(config) = &group.kind else { return None };
        let bytes = match config.app {
            App::Transfer(size) => size.0,
            App::Own => (group.sizes?.mean * segment(group) as f64) as u64,
            App::Endless | App::Bursts { .. } => return None,
        };
        is_fleeting(self.model, group).then_some(bytes)
    }

    /// Time in which the flows of a group start; `None`: none.
    fn starting(&self, group: &Group) -> Option<Picos> {
        let (each, gaps) = match group.start {
            Start::Every { every, .. } => (every, group.count.saturating_sub(1)),
            Start::Poisson { gap, .. } => (gap, group.count),
            Start::Uniform { within } => (within, 1),
        };
        let span = each.saturating_mul(gaps.into()).saturating_mul(PS_PER_NS).min(self.model.duration);
        (span > 0).then_some(span)
    }

    /// Flows of a group whose hosts are there at once, at most and roughly; those that errors delay, to the end.
    fn living(&self, group: &Group, crowded: &[bool]) -> u64 {
        let count = u64::from(group.count);
        let is_crowded = || group.path.iter().any(|&link| crowded[link as usize]);
        let (Some(bytes), Some(span)) = (self.transfer(group), self.starting(group)) else { return count };
        if is_crowded() {
            return count;
        }
        let segments = bytes / segment(group) + 1;
        let window = match &group.kind {
            GroupKind::Tcp(config) => u64::from(config.initial_window.max(1)),
            GroupKind::Source(_) => 1,
        };
        // The SYN's round trip, then those of slow start; and all of it in the slowest hop.
        let rounds = 2 + u64::from((segments / window + 1).ilog2());
        let pipes = [group.access, group.exit].into_iter().flatten().map(|pipe| pipe.rate.0);
        let slowest = pipes.fold(self.slowest(&group.path), u64::min).max(1);
        let sending = u64::try_from(u128::from(bytes) * 8 * u128::from(PS_PER_S) / u128::from(slowest));
        let life = self.round_trip(group).saturating_mul(rounds).saturating_add(sending.unwrap_or(u64::MAX));
        let at_once = u128::from(life.saturating_mul(LINGER)) * u128::from(count) / u128::from(span) + 1;
        let error = |&link: &u32| {
            let port = &self.model.links[link as usize].port;
            let errors = port.errors.map_or(0.0, |errors| errors.average().packet_error_rate(u16::MAX));
            errors + port.ack_loss.0 as f64 / u64::MAX as f64
        };
        let errors: f64 = group.path.iter().chain(&group.back).map(error).sum();
        let troubled = (count as f64 * (errors * segments as f64).min(1.0)) as u64;
        u64::try_from(at_once).unwrap_or(u64::MAX).saturating_add(troubled).min(count)
    }

    /// Returns the load of each link.
    fn loads(&self) -> Vec<Load> {
        let mut loads = vec![Load::default(); self.model.links.len()];
        for group in &self.model.groups {
            let (outstanding, sent, granted) =
                (self.outstanding(group), self.sent(group), self.granted(group));
            let round_trip = match &group.kind {
                GroupKind::Tcp(config) if config.law.needs().states_round_trip => {
                    self.round_trip(group).saturating_add(self.sending(group, config))
                }
                _ => Picos::MAX,
            };
            let visits = self.visits(group);
            for visits in visits.chunk_by(|a, b| a.link == b.link) {
                let (link, is_ack) = (visits[0].link as usize, visits.iter().any(|visit| visit.is_ack));
                let load = &mut loads[link];
                load.outstanding = load.outstanding.saturating_add(outstanding);
                load.arrivals = load.arrivals.saturating_add(sent);
                load.data_min = load.data_min.min(segment(group));
                load.smallest = load.smallest.min(smallest(group, is_ack));
                load.round_trip = load.round_trip.min(round_trip);
                load.has_chains |= has_chains(group);
                match &group.kind {
                    GroupKind::Tcp(_) if is_ack => {}
                    GroupKind::Tcp(_) if granted > self.rates[link] => load.repeats = 2,
                    GroupKind::Source(_) if !is_ack => {}
                    _ => continue,
                }
                let size = smallest(group, is_ack);
                let passed = visits.iter().map(|visit| visit.passed).max().unwrap_or(u64::MAX);
                load.deaf = load.deaf.saturating_add(sent.saturating_mul(size).min(passed));
                load.deaf_min = load.deaf_min.min(size);
            }
        }
        loads
    }

    /// The links that data or ACKs of a group use at some time, in the order of the links.
    fn visits(&self, group: &Group) -> Vec<Visit> {
        let mut visits = Vec::new();
        for (path, back) in group.paths() {
            let mut passed = u64::MAX;
            for &link in path {
                visits.push(Visit { link, is_ack: false, passed });
                passed = passed.min(carried(self.rates[link as usize], self.model.duration));
            }
            visits.extend(back.iter().map(|&link| Visit { link, is_ack: true, passed }));
        }
        visits.sort_unstable();
        visits
    }

    /// Bytes for what arrived at the links of clouds lately.
    fn remembered(&self, loads: &[Load]) -> u64 {
        let clouds = cloud::clouds(self.model);
        let links: BTreeSet<u32> = clouds.iter().flat_map(|cloud| &cloud.inside).copied().collect();
        let arrivals = |&link: &u32| {
            let rate = self.rates[link as usize];
            carried(rate, REMEMBERED.min(self.model.duration)) / loads[link as usize].smallest
        };
        links.iter().map(arrivals).fold(0, u64::saturating_add).saturating_mul(ARRIVAL)
    }

    /// The slowest of the links.
    fn slowest(&self, links: &[u32]) -> u64 {
        links.iter().map(|&link| self.rates[link as usize]).min().unwrap_or(u64::MAX)
    }

    /// Packets that may be in a group's access and exit links, whose queues have no limit: those that
    /// are slower than what feeds them fill.
    fn piped(&self, group: &Group) -> u64 {
        let count = u64::from(group.count);
        let links = self.slowest(&group.path);
        let duration = self.model.duration;
        let pipes = [group.access, group.exit].into_iter().flatten();
        let of_pipe = |pipe: Pipe| {
            let on_wire = carried(pipe.rate.0, pipe.delay.min(duration)) / segment(group) + 1;
            let waiting = match &group.kind {
                GroupKind::Source(_) => {
                    let passed = carried(pipe.rate.0, duration) / segment(group);
                    (self.offered(group) / count.max(1)).saturating_sub(passed)
                }
                GroupKind::Tcp(_) if pipe.rate.0.saturating_mul(count) < links => u64::MAX,
                // A burst of the window that the links allow.
                GroupKind::Tcp(_) => 0,
            };
            on_wire.saturating_add(waiting).saturating_mul(count)
        };
        pipes.map(of_pipe).fold(0, u64::saturating_add).min(self.outstanding(group))
    }

    /// Packets that a group can have in the network at once.
    fn outstanding(&self, group: &Group) -> u64 {
        let config = match &group.kind {
            GroupKind::Source(_) => return self.offered(group),
            GroupKind::Tcp(config) => config,
        };
        // Each may be on the way a second time, while a timeout repairs what was not lost.
        let awnd = config.awnd.map_or(u64::MAX, |awnd| 2 * u64::from(awnd));
        let size = match config.app {
            App::Transfer(size) | App::Bursts { total: Some(size), .. } => 2 * (size.0 / segment(group) + 1),
            _ => u64::MAX,
        };
        let bound = self.bounds.segments(group).min(self.grown(group, config));
        awnd.min(size).min(bound).saturating_mul(group.count.into()).min(self.offered(group))
    }

    /// Packets to which slow start takes a window in the run: twice as many in each round trip. A law that reads more than losses
    /// and round trips may grow faster.
    fn grown(&self, group: &Group, config: &tcp::Config) -> u64 {
        let needs = config.law.needs();
        if needs.network.is_some() || needs.begins_at_line_rate || needs.asks.is_some() {
            return u64::MAX;
        }
        let rounds = self.model.duration / self.round_trip(group).max(1);
        let first = u64::from(config.initial_window.max(1));
        // The SYN takes one, and BBR's Startup grows by 2.9.
        let doublings = u32::try_from(rounds.saturating_mul(3) / 2).unwrap_or(u32::MAX);
        if doublings >= first.leading_zeros() { u64::MAX } else { first << doublings }
    }

    /// Packets that a group can send in the whole run: a source by its rate, a sender by its ACKs, each
    /// of which lets at most two follow.
    fn offered(&self, group: &Group) -> u64 {
        match &group.kind {
            GroupKind::Source(config) => self.emitted(group, config),
            GroupKind::Tcp(_) => (2 * self.acknowledged(group)).saturating_add(self.unasked(group)),
        }
    }

    /// Packets that a group sends without being asked for them by ACKs.
    fn unasked(&self, group: &Group) -> u64 {
        (self.first(group) + UNASKED).saturating_mul(group.count.into())
    }

    /// Packets that a flow of a group sends at once when it begins, and again when timeouts have it begin anew.
    fn first(&self, group: &Group) -> u64 {
        let GroupKind::Tcp(config) = &group.kind else { return 0 };
        let line = config.law.needs().begins_at_line_rate;
        let line = if line { u64::MAX } else { config.initial_window.into() };
        line.min(self.bounds.segments(group))
    }

    /// Packets of them that are between the host and its first link at once; an access link takes them one after the other.
    fn burst(&self, group: &Group) -> u64 {
        let first = self.first(group).saturating_sub(FIRST);
        let access = |pipe: Pipe| carried(pipe.rate.0, pipe.delay) / segment(group) + 1;
        group.access.map_or(first, |pipe| first.min(access(pipe)))
    }

    /// Datagrams that the sources of a group send, those that its schedule lets.
    fn emitted(&self, group: &Group, config: &SourceConfig) -> u64 {
        let end = group.stop.min(Time(self.model.duration.div_ceil(PS_PER_NS)));
        let always = [(Time::ZERO, group.count)];
        let steps = if group.schedule.is_empty() { &always[..] } else { &group.schedule };
        let ends = steps.iter().skip(1).map(|&(at, _)| at.min(end)).chain([end]);
        let packets = steps
            .iter()
            .zip(ends)
            .filter(|((from, _), to)| from < to)
            .map(|(&(from, active), to)| config.packets_in(to - from).saturating_mul(active.into()));
        packets.fold(0, u64::saturating_add)
    }

    /// Packets of a group that its path can deliver.
    fn acknowledged(&self, group: &Group) -> u64 {
        let pipes = [group.access, group.exit].into_iter().flatten();
        let pipes = pipes.map(|pipe| pipe.rate.0.saturating_mul(group.count.into()));
        let delivered = pipes.fold(self.slowest(&group.path), u64::min);
        carried(delivered.max(self.granted(group)), self.model.duration) / segment(group)
    }

    /// Rate that links let a group have that asks them, even if its path does not deliver it: what the laws on it believe to
    /// be free, but no more than is asked for. Nobody answers on a path without a law.
    fn granted(&self, group: &Group) -> u64 {
        let GroupKind::Tcp(config) = &group.kind else { return 0 };
        let Some(asks) = config.law.needs().asks else { return 0 };
        // No flow sends more in a round trip than its path holds several times.
        let round_trip = self.round_trip(group).saturating_add(self.sending(group, config)).max(1);
        let bound =
            u128::from(self.bounds.window(group).0) * 8 * u128::from(PS_PER_S) / u128::from(round_trip);
        let asked = asks.0.saturating_mul(8).min(u64::try_from(bound).unwrap_or(u64::MAX));
        let asked = asked.saturating_mul(group.count.into());
        let believed = group.path.iter().filter_map(|&link| match self.answers(group, link) {
            Some(law) if law.follows_service => Some(self.rates[link as usize]),
            // What it is told holds until a source says other, and whenever that is stale.
            Some(law) => {
                let told = law.config.capacity().0.saturating_mul(8);
                let has_source = self.model.links[link as usize].port.capacity_from.is_some();
                Some(if has_source { told.max(self.rates[link as usize]) } else { told })
            }
            None => None,
        });
        believed.fold(asked, u64::min)
    }

    /// The law of a link, if it gives what the law of a group asks for: one of another family is no answer.
    fn answers(&self, group: &Group, link: u32) -> Option<&LawConfig> {
        let law = self.model.links[link as usize].port.law.as_ref()?;
        let GroupKind::Tcp(config) = &group.kind else { return None };
        match config.law.needs().network {
            Some(Network { giver: Giver::Law(signal), .. }) if signal != law.config.signal() => None,
            _ => Some(law),
        }
    }

    /// Events of a group: what it loses because it asks how much it may send, and what it does about it.
    fn repairs(&self, group: &Group) -> u64 {
        let lost = (self.sent(group) as f64 * self.loss(group)) as u64;
        // A drop has a retransmission, and may have a timeout.
        if let GroupKind::Tcp(_) = group.kind { lost.saturating_mul(2) } else { lost }
    }

    /// Packets of a group that enter the network, what was lost and is sent again apart.
    fn sent(&self, group: &Group) -> u64 {
        match &group.kind {
            GroupKind::Source(_) => self.offered(group),
            GroupKind::Tcp(_) => self.acknowledged(group).saturating_add(self.unasked(group)),
        }
    }

    /// Packets of a group that enter links. What one link drops is counted at the next, too.
    fn hops(&self, group: &Group) -> u64 {
        let whole = match &group.kind {
            GroupKind::Tcp(config) => match config.app {
                App::Transfer(size) | App::Bursts { total: Some(size), .. } => size.0 / segment(group) + 1,
                App::Own => group.sizes.map_or(u64::MAX, |sizes| sizes.mean as u64 + 1),
                _ => u64::MAX,
            },
            GroupKind::Source(_) => u64::MAX,
        };
        let sent = self
            .sent(group)
            .min(whole.saturating_mul(group.count.into()).saturating_add(self.unasked(group)));
        // Lost once, sent again, and lost again.
        let sent = (sent as f64 * (1.0 + 2.0 * self.loss(group))) as u64;
        // Access and exit are links, both ways.
        let own = [group.access, group.exit].iter().flatten().count();
        let longest = group.paths().map(|(path, back)| match group.kind {
            GroupKind::Tcp(_) => path.len() + back.len() + 2 * own,
            GroupKind::Source(_) => path.len() + own,
        });
        sent.saturating_mul(longest.max().unwrap_or(0) as u64)
    }

    /// The part of its packets that a group is likely to lose, at most.
    fn loss(&self, group: &Group) -> f64 {
        let GroupKind::Tcp(config) = &group.kind else { return 0.1 };
        let rounds = self.model.duration / self.round_trip(group).max(1);
        let window = self.acknowledged(group) as f64 / rounds.max(1) as f64 / f64::from(group.count.max(1));
        let needs = config.law.needs();
        // Where links that are asked have capacity for a few packets of each flow, next to nothing is lost.
        let obeys = |&link: &u32| self.answers(group, link).is_some();
        if needs.asks.is_some() && window > FEW && group.path.iter().all(obeys) {
            return 0.01;
        }
        if let Some(part) = needs.loses {
            return f64::from(part.0) / f64::from(Ratio::ONE.0);
        }
        // A law that keeps its window on loss grows for as long as no link tells it to stop.
        let is_answered = || group.path.iter().any(|&link| self.answers(group, link).is_some());
        if needs.withstands_loss
            && matches!(needs.network, Some(Network { giver: Giver::Law(_), .. }))
            && !is_answered()
        {
            return 0.5;
        }
        // Where there is no room, TCP-Peach loses its probes: as many as segments, at each loss.
        if needs.probes {
            return 0.5;
        }
        // CUBIC's window is 1.17 (RTT / p)^(3/4) packets (RFC 9438 section 5.1), Reno's sqrt(1.5 / p).
        // With the window to the power of -5/4 instead of -4/3, which takes square roots only, this is
        // above both for round trips of up to a second.
        (2.0 / (window * window.sqrt().sqrt())).min(1.0)
    }

    /// Time that a segment and its ACK take to be sent on the way that is fastest.
    fn sending(&self, group: &Group, config: &tcp::Config) -> Picos {
        let sent = |links: &[u32], size: u16| {
            links
                .iter()
                .map(|&link| self.model.links[link as usize].port.service.shortest(size))
                .sum::<Picos>()
        };
        let both = group.paths().map(|(path, back)| sent(path, config.segment) + sent(back, config.ack));
        both.min().unwrap_or(0)
    }

    /// Propagation, both ways, on the shortest of its paths.
    fn round_trip(&self, group: &Group) -> Picos {
        let pipes = [group.access, group.exit].into_iter().flatten().map(|pipe| pipe.delay.saturating_mul(2));
        let own = pipes.fold(0, u64::saturating_add);
        let propagation = |(path, back): (&Vec<u32>, &Vec<u32>)| {
            let links = path.iter().chain(back).map(|&link| self.model.links[link as usize].port.delay);
            links.fold(own, u64::saturating_add)
        };
        group.paths().map(propagation).min().unwrap_or(own)
    }
}

/// Bytes for a link, whatever comes to it.
fn written(link: &Link, load: &Load, is_sampled: bool) -> u64 {
    let has_law = link.port.law.is_some();
    let has_port = has_law || is_sampled || load.arrivals > 0;
    let (queues, records) = (link.port.discipline.queues() as u64, link.port.discipline.records() as u64);
    let others = QUEUE * (queues - 1) + RECORD * (records - queues);
    LINK + policed(link, load) + if has_port { PORT + others } else { 0 } + if has_law { LAW } else { 0 }
}

/// Bytes of a policer's table, which is there once a packet comes.
fn policed(link: &Link, load: &Load) -> u64 {
    let records = link.port.police.filter(|_| load.arrivals > 0);
    records.map_or(0, |records| u64::from(records).max(POLICED_MIN) * POLICED)
}

/// Codes of load are echoed to its flows.
fn has_codes(group: &Group) -> bool {
    matches!(&group.kind, GroupKind::Tcp(config) if config.law.needs().segments)
}

/// Senders know of each segment that is not acknowledged when it was sent.
fn times_segments(group: &Group) -> bool {
    matches!(&group.kind, GroupKind::Tcp(config) if config.linux.is_some() || config.law.needs().delivery)
}

/// Codes of load are told in chains of packets, of which routers remember flows.
fn has_chains(group: &Group) -> bool {
    matches!(&group.kind, GroupKind::Tcp(config) if config.law.needs().writes_segments)
}

/// Bytes for the flows that routers remember: a table is there once the first of them comes.
fn tables(model: &Model, loads: &[Load]) -> u64 {
    let used = model.links.iter().zip(loads).filter(|(_, load)| load.has_chains);
    let flows = used.filter_map(|(link, _)| link.port.law.as_ref()?.config.remembers());
    let table = |wanted: Remembers| u64::from(wanted.flows) * (FLOW_ENTRY + 4 * u64::from(wanted.words));
    flows.map(table).fold(0, u64::saturating_add)
}

/// Values of a link in a bin of the series.
fn values(port: &PortConfig) -> u64 {
    let has = [true, port.law.is_some(), true];
    let values = LINK_SAMPLES.into_iter().zip(has).filter(|&(_, has)| has).map(|(values, _)| values);
    values.sum::<u64>() + port.discipline.series().len() as u64
}

/// Entries that routers and receivers have of clouds, at most: hosts have one each, and a router's may be
/// in the series of every link of its own.
fn entries(model: &Model) -> u64 {
    let hosts = |group: u32| u64::from(model.groups[group as usize].count);
    let of_cloud = |cloud: &Cloud| match (cloud.up, cloud.down) {
        (_, Node::Receiver(group)) => hosts(group),
        (Node::Sender(group), Node::Router(device)) => hosts(group).saturating_mul(ports(model, device)),
        (_, Node::Router(device)) => ports(model, device),
        (_, Node::Sender(_)) => 0,
    };
    cloud::clouds(model).iter().map(of_cloud).fold(0, u64::saturating_add)
}

/// Links that leave a router.
fn ports(model: &Model, device: u32) -> u64 {
    model.devices[device as usize].links.len() as u64
}

/// Bytes that a rate carries in a span.
fn carried(bits_per_second: u64, span: Picos) -> u64 {
    let bytes = u128::from(bits_per_second) * u128::from(span) / u128::from(PS_PER_S) / 8;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn segment(group: &Group) -> u64 {
    match &group.kind {
        GroupKind::Tcp(config) => u64::from(config.segment).max(1),
        GroupKind::Source(config) => u64::from(config.segment).max(1),
    }
}

/// Bytes of the smallest packet that the group sends over a link, which its ACKs cross or do not.
fn smallest(group: &Group, is_ack: bool) -> u64 {
    match &group.kind {
        GroupKind::Tcp(config) if is_ack => u64::from(config.ack).max(1),
        _ => segment(group),
    }
}

/// Packets that may wait for a link and be on its wire, but not more than those that cross it have.
fn room(port: &PortConfig, rate: u64, load: &Load, duration: Picos) -> u64 {
    // ACKs are smaller, but no more of them are on a wire than of the data that they acknowledge.
    let late = port.reorder.map_or(0, |reorder| reorder.delay);
    let on_wire = carried(rate, port.delay.saturating_add(late).min(duration)) / load.data_min;
    let waiting = |limit: Limit| match limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes / load.smallest,
        Limit::None => u64::MAX,
    };
    let each = (0..port.discipline.queues()).map(|queue| waiting(port.discipline.limit(queue, port.limit)));
    let in_queues = each.fold(0, u64::saturating_add).min(waiting(port.discipline.total(port.limit)));
    on_wire.saturating_add(in_queues).min(load.outstanding)
}

/// Events at a link beside: drops of what nobody asked for, errors, marks, control intervals.
fn happenings(port: &PortConfig, rate: u64, load: &Load, duration: Picos) -> u64 {
    let drops = load.deaf.saturating_sub(carried(rate, duration)) / load.deaf_min * load.repeats;
    let error = port.errors.map_or(0.0, |errors| errors.average().packet_error_rate(u16::MAX));
    let ack_loss = port.ack_loss.0 as f64 / u64::MAX as f64;
    let errors = (2.0 * load.arrivals as f64 * (error + ack_loss).min(1.0)) as u64;
    let marks = if port.discipline.marks() { load.arrivals } else { 0 };
    // The first may end at once.
    let intervals = port.law.as_ref().map_or(0, |law| {
        let shortest = law.config.shortest_interval(Duration(load.round_trip / PS_PER_NS));
        duration / shortest.0.max(1).saturating_mul(PS_PER_NS) + 1
    });
    [errors, marks, intervals].into_iter().fold(drops, u64::saturating_add)
}

/// Says what takes most of the memory, where the file says so, and how much of that would fit.
pub(crate) fn refuse(needs: &Needs, available: u64, file: &File, model: &Model, findings: &mut Findings) {
    let (part, bytes) = needs.largest();
    // What all else leaves of it, but at least half: where all else is too much, that has to shrink too.
    let left = available.saturating_sub(needs.sum() - bytes).max(available / 2);
    let share = left as f64 / bytes as f64;
    let percent = share * 100.0;
    let flow = |index: usize| file.flows.as_ref().and_then(|flows| flows.value.0.get(index));
    let duration = file.run.as_ref().and_then(|run| run.value.duration.clone());
    let duration = duration.unwrap_or(At { value: Duration(0), span: Span::default() });
    let seconds = |span: Duration, factor: f64| {
        // Three digits that count.
        let rounded = format!("{:.2e}", span.0 as f64 / 1e9 * factor).parse::<f64>();
        format!("{} s", rounded.unwrap_or(0.0))
    };
    let (span, cause, remedy) = match part {
        Part::Links => {
            let count = model.links.len() / 2;
            let span = file.links.as_ref().map_or(Span::default(), |links| links.span);
            (
                span,
                format!("links: there are {count}"),
                format!("allowed here: about {:.0}", count as f64 * share),
            )
        }
        Part::Flows(index) => {
            let count = flow(index).and_then(|(_, flow)| flow.value.count.as_ref());
            let (span, count) = count.map_or((Span::default(), 1), |at| (at.span, at.value));
            let name = flow(index).map_or("", |(name, _)| name.value.as_str());
            let cause = format!("flows: `flows.{name}.count` is {count}");
            (span, cause, format!("allowed here: about {:.0}", f64::from(count) * share))
        }
        Part::Packets(index) => {
            let link = file.links.as_ref().and_then(|links| links.value.0.get(index / 2));
            let direction = link.map(|(_, link)| match &link.value.reverse {
                Some(reverse) if index % 2 == 1 => &*reverse.value.0,
                _ => &link.value,
            });
            let queue = direction.and_then(|link| link.queue.as_ref());
            let size = queue.map_or_else(String::new, |queue| inline(&queue.value.encode()));
            let name = &model.links[index].name;
            let cause = format!("packets: `links.{name}.queue` is {size}, beside what its wire holds");
            let remedy = "a shorter queue, delay or run needs less; `awnd` and `size` bound it";
            (
                queue.map_or(Span::default(), |at| at.span),
                cause,
                format!("{percent:.2} % of it fits: {remedy}"),
            )
        }
        Part::Pipes(index) => {
            let (name, flow) =
                flow(index).map_or(("", None), |(name, flow)| (&name.value, Some(&flow.value)));
            let hop = flow.and_then(|flow| flow.access.as_ref().or(flow.exit.as_ref()));
            let cause = format!("packets: those of `flows.{name}` wait for `access` or `exit` without limit");
            let remedy = "a faster access and exit or a shorter run needs less; `awnd` and `size` bound it";
            (hop.map_or(Span::default(), |at| at.span), cause, format!("{percent:.2} % of it fits: {remedy}"))
        }
        Part::Series => {
            let every = file.measure.as_ref().and_then(|measure| measure.value.every.clone());
            let every = every.unwrap_or(At { value: duration.value, span: Span::default() });
            // The default is written nowhere.
            let span = if every.span == Span::default() { duration.span } else { every.span };
            let cause = format!("the series: `measure.every` is {}", every.value);
            let fits = seconds(every.value, 1.0 / share);
            (span, cause, format!("allowed here: from about {fits}; fewer flows or no series need less"))
        }
        Part::Events(index) => {
            let name = flow(index).map_or("", |(name, _)| name.value.as_str());
            let cause = format!(
                "events (--events, --out): `run.duration` is {}, and `flows.{name}` send much",
                duration.value
            );
            let fits = seconds(duration.value, share);
            (duration.span, cause, format!("about {fits} of it fit; slower flows or no events need less"))
        }
    };
    let message = format!(
        "this run may need {} of memory, {} are available; {} are for {cause}",
        text(needs.sum()),
        text(available),
        text(bytes),
    );
    findings.error("machine::memory", span, message, remedy);
}

/// Returns a size in bytes as text for people, such as `1.5 GB`.
pub fn text(bytes: u64) -> String {
    match bytes {
        0..10_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
