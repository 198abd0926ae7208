//! The hosts at one end of a group of flows.
//!
//! Mostly all of them are there from the beginning to the end. Where flows end ([`crate::flows::is_fleeting`]), those are that
//! live: a host is made with the first thing that happens to it, and once a flow is over both of its hosts become what
//! their results need, which is a tenth of them. So very many short flows take the memory of those that live at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use congestlab_core::units::{Bytes, Duration, Time};
use congestlab_net::packet::{PS_PER_NS, Packet, Picos};
use congestlab_net::source::Source;
use congestlab_net::tcp::{self, ReceiverCounts, ReceiverStats, SenderCounts};

use crate::origin::Origin;
use crate::station::{Endpoint, Extras, Sink, Station};

#[cfg(test)]
mod tests;

/// The hosts of one class.
pub(crate) enum Hosts {
    /// An engine has them.
    Away,
    Senders(Crowd<tcp::Sender>),
    Receivers(Crowd<tcp::Receiver>),
    Sources(Crowd<Source>),
    Sinks(Crowd<Sink>),
}

/// Runs a body with the hosts of any kind.
macro_rules! with_hosts {
    ($hosts:expr, $crowd:ident => $body:expr) => {
        match $hosts {
            $crate::hosts::Hosts::Away => {}
            $crate::hosts::Hosts::Senders($crowd) => $body,
            $crate::hosts::Hosts::Receivers($crowd) => $body,
            $crate::hosts::Hosts::Sources($crowd) => $body,
            $crate::hosts::Hosts::Sinks($crowd) => $body,
        }
    };
}
pub(crate) use with_hosts;

/// After so many hosts it is asked whether the run goes on.
const STRIDE: u32 = 1024;

/// The hosts of one class, all of one kind.
pub(crate) struct Crowd<E: Host> {
    pub(crate) config: E::Config,
    /// By flow; those that live, where not all do: see [`Crowd::rouse`].
    pub(crate) stations: Vec<Station<E>>,
    roll: Option<Box<Roll<E>>>,
}

/// List of the flows that live, and what is left of those that do not any more.
struct Roll<E: Host> {
    origin: Arc<Origin>,
    /// Flows of the group before those of the class, which may be a part of it ([`crate::cut`]).
    before: u32,
    /// By station: its flow.
    flows: Vec<u32>,
    ends: Ends<E>,
    /// Most that lived at once.
    most: usize,
}

impl<E: Host> Crowd<E> {
    /// All hosts, with the extras that each has; fewer once `stop` is raised.
    pub(crate) fn of_all(
        config: E::Config,
        origin: &Origin,
        extras: impl Fn(u32) -> Option<Box<Extras>>,
        stop: &AtomicBool,
    ) -> Self {
        let count = origin.group.count;
        let goes_on = |&flow: &u32| flow % STRIDE != 0 || !stop.load(Ordering::Relaxed);
        // Hosts are too many to be moved as a list grows.
        let mut stations = Vec::with_capacity(count as usize);
        let flows = (0..count).take_while(goes_on);
        stations.extend(flows.map(|flow| Station::new(E::make(origin, &config, flow), extras(flow))));
        Self { config, stations, roll: None }
    }

    /// Hosts without extras that are made when they are needed.
    pub(crate) fn of_living(config: E::Config, origin: &Arc<Origin>) -> Self {
        let mut crowd = Self::of_none(config, origin, 0);
        if let Some(roll) = &mut crowd.roll {
            roll.ends.places = vec![WAITING; origin.group.count as usize];
        }
        crowd
    }

    /// A part of such a class without any flow.
    fn of_none(config: E::Config, origin: &Arc<Origin>, before: u32) -> Self {
        let ends = Ends { places: Vec::new(), brief: Vec::new(), whole: Vec::new() };
        let roll = Roll { origin: Arc::clone(origin), before, flows: Vec::new(), ends, most: 0 };
        Self { config, stations: Vec::new(), roll: Some(Box::new(roll)) }
    }

    /// Takes the hosts of all flows but the first `at` away.
    pub(crate) fn split_off(&mut self, at: u32) -> Self {
        let Some(roll) = &self.roll else {
            let stations = self.stations.split_off(at as usize);
            self.stations.shrink_to_fit();
            return Self { config: self.config.clone(), stations, roll: None };
        };
        let of_none = |before| Self::of_none(self.config.clone(), &roll.origin, roll.before + before);
        let (first, mut rest) = (of_none(0), of_none(at));
        std::mem::replace(self, first).hand_over(|flow, left| {
            let to = if flow < at { &mut *self } else { &mut rest };
            to.take_over(left);
        });
        rest
    }

    /// Adds the hosts of the flows behind its own.
    pub(crate) fn append(&mut self, mut more: Self) {
        match self.roll {
            None => self.stations.append(&mut more.stations),
            Some(_) => more.hand_over(|_, left| self.take_over(left)),
        }
    }

    /// Gives what there is of each flow away, in order.
    fn hand_over(self, mut to: impl FnMut(u32, Left<E>)) {
        let Some(roll) = self.roll else { return };
        let mut stations: Vec<_> = self.stations.into_iter().map(Some).collect();
        for (flow, &place) in (0..).zip(&roll.ends.places) {
            let left = match place {
                WAITING => Left::Nothing,
                WHOLE.. => Left::Whole(roll.ends.whole[(place - WHOLE) as usize]),
                BRIEF.. => Left::Brief(roll.ends.brief[(place - BRIEF) as usize]),
                place => stations[place as usize].take().map_or(Left::Nothing, Left::Station),
            };
            to(flow, left);
        }
    }

    /// Takes what there is of the flow behind its own.
    fn take_over(&mut self, left: Left<E>) {
        let Some(roll) = &mut self.roll else { return };
        let place = match left {
            Left::Nothing => WAITING,
            Left::Brief(end) => roll.ends.push_brief(end),
            Left::Whole(end) => roll.ends.push_whole(end),
            Left::Station(station) => {
                push(&mut roll.flows, roll.ends.places.len() as u32);
                push(&mut self.stations, station);
                roll.most = roll.most.max(self.stations.len());
                (self.stations.len() - 1) as u32
            }
        };
        push(&mut roll.ends.places, place);
    }

    /// Not all hosts are there all the time.
    #[inline]
    pub(crate) fn is_fleeting(&self) -> bool {
        self.roll.is_some()
    }

    /// The place of a flow's station, which is made if the flow has not begun; `None`: it is over.
    #[inline]
    pub(crate) fn rouse(&mut self, flow: u32) -> Option<usize> {
        match &mut self.roll {
            None => Some(flow as usize),
            Some(roll) => roll.rouse(&self.config, &mut self.stations, flow),
        }
    }

    /// The flow is over if `packet`, which came to its host, says so: true if both ends are to be closed.
    #[inline]
    pub(crate) fn leave(&mut self, flow: u32, packet: &Packet) -> bool {
        // Who sends knows when all has come.
        let Some(roll) = self.roll.as_ref().filter(|_| !E::RECEIVES) else { return false };
        let station = self.stations.get(roll.ends.places[flow as usize] as usize);
        let is_over = station.is_some_and(|station| station.endpoint.is_over(packet));
        if is_over {
            self.close(flow);
        }
        is_over
    }

    /// Nothing happens any more to the host of a flow that lives.
    #[inline(never)]
    pub(crate) fn close(&mut self, flow: u32) {
        let Some(roll) = &mut self.roll else { return };
        let place = roll.ends.places[flow as usize] as usize;
        let station = self.stations.swap_remove(place);
        debug_assert_eq!(station.next(), Picos::MAX, "it wants to be served");
        roll.flows.swap_remove(place);
        if let Some(&moved) = roll.flows.get(place) {
            roll.ends.places[moved as usize] = place as u32;
        }
        roll.ends.keep(&self.config, flow, &station);
    }

    /// Calls `wake` with the flow and the first deadline of every host that may have one, for which it is armed.
    pub(crate) fn arm(&mut self, mut wake: impl FnMut(u32, Picos)) {
        let Some(roll) = &self.roll else {
            for (flow, station) in (0..).zip(&mut self.stations) {
                wake(flow, station.arm());
            }
            return;
        };
        for (flow, &place) in (0..).zip(&roll.ends.places) {
            if let Some(station) = self.stations.get_mut(place as usize) {
                wake(flow, station.arm());
            } else if place == WAITING && !E::RECEIVES {
                // What it does first is to begin.
                let start = roll.origin.starts[(roll.before + flow) as usize];
                wake(flow, start.0.saturating_mul(PS_PER_NS));
            }
        }
    }

    /// The fingerprint of each host, by flow.
    pub(crate) fn fingerprints(&self) -> impl Iterator<Item = u64> {
        let living = self.roll.is_none().then(|| self.stations.iter().map(Station::fingerprint));
        let ends = self.roll.iter().map(|roll| &roll.ends);
        let places = ends.flat_map(|ends| ends.places.iter().map(move |&place| (ends, place)));
        let each = places.map(move |(ends, place)| match self.stations.get(place as usize) {
            Some(station) => station.fingerprint(),
            None => ends.fingerprint(place),
        });
        living.into_iter().flatten().chain(each)
    }

    /// Random words that the agents of the hosts drew.
    pub(crate) fn draws(&self) -> u64 {
        self.stations.iter().map(Station::draws).sum()
    }

    /// Gives what is left of all hosts, which are not there all the time, at the end of the run.
    pub(crate) fn into_remains(mut self, now: Time) -> Remains<E> {
        let Some(roll) = self.roll.take() else { return Remains::default() };
        let Roll { origin, flows, mut ends, .. } = *roll;
        for (mut station, flow) in self.stations.into_iter().zip(flows) {
            station.endpoint.finish(&self.config, now);
            ends.keep(&self.config, flow, &station);
        }
        // Nothing came to a receiver that never lived; a sender might have measured its window all the same.
        let never = if E::RECEIVES { 0 } else { origin.group.count };
        for flow in 0..never {
            if ends.places[flow as usize] == WAITING {
                let mut station = Station::new(E::make(&origin, &self.config, flow), None);
                station.endpoint.finish(&self.config, now);
                ends.keep(&self.config, flow, &station);
            }
        }
        ends.in_order()
    }

    /// Most hosts that lived at once, and those that live.
    #[cfg(test)]
    pub(crate) fn living(&self) -> (usize, usize) {
        (self.roll.as_ref().map_or(self.stations.len(), |roll| roll.most), self.stations.len())
    }
}

/// All that there is of a flow: its station, or its end.
enum Left<E: Host> {
    Nothing,
    Station(Station<E>),
    Brief((u64, E::Brief)),
    Whole((u64, E::End)),
}

impl<E: Host> Roll<E> {
    fn rouse(&mut self, config: &E::Config, stations: &mut Vec<Station<E>>, flow: u32) -> Option<usize> {
        match self.ends.places[flow as usize] {
            WAITING => {}
            place => return Some(place as usize).filter(|&place| place < stations.len()),
        }
        let place = stations.len();
        let mut station = Station::new(E::make(&self.origin, config, self.before + flow), None);
        // Its first deadline is what woke it, if it has one.
        station.arm();
        push(stations, station);
        push(&mut self.flows, flow);
        self.ends.places[flow as usize] = place as u32;
        self.most = self.most.max(stations.len());
        Some(place)
    }
}

/// Appends to a list that grows to twice its length, from one on: there may be very many lists of one.
fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len().max(1));
    }
    list.push(item);
}

/// A flow that has not begun. No run has so many stations that this were one.
const WAITING: u32 = u32::MAX;
/// Places from here on are those of ends in few bytes, then those of ends in all of theirs: where no station is.
const BRIEF: u32 = 1 << 30;
const WHOLE: u32 = 2 << 30;

/// Remains of the hosts of a class whose flows are over, as they ended, each with its fingerprint.
struct Ends<E: Host> {
    /// By flow: its station, or its end, or [`WAITING`].
    places: Vec<u32>,
    brief: Vec<(u64, E::Brief)>,
    whole: Vec<(u64, E::End)>,
}

impl<E: Host> Ends<E> {
    fn keep(&mut self, config: &E::Config, flow: u32, station: &Station<E>) {
        let end = station.endpoint.end(config);
        self.places[flow as usize] = match E::brief(&end, config) {
            Some(brief) => self.push_brief((station.fingerprint(), brief)),
            None => self.push_whole((station.fingerprint(), end)),
        };
    }

    /// Returns the place.
    fn push_brief(&mut self, end: (u64, E::Brief)) -> u32 {
        push(&mut self.brief, end);
        Self::place(BRIEF, self.brief.len())
    }

    fn push_whole(&mut self, end: (u64, E::End)) -> u32 {
        push(&mut self.whole, end);
        Self::place(WHOLE, self.whole.len())
    }

    /// The place of the last of so many.
    fn place(kind: u32, count: usize) -> u32 {
        assert!(count <= BRIEF as usize, "more flows than can be numbered");
        kind | (count - 1) as u32
    }

    fn fingerprint(&self, place: u32) -> u64 {
        match place {
            WAITING => 0,
            WHOLE.. => self.whole[(place - WHOLE) as usize].0,
            _ => self.brief[(place - BRIEF) as usize].0,
        }
    }

    /// The same for readers, who go from flow to flow.
    fn in_order(self) -> Remains<E> {
        let Self { mut places, brief, whole } = self;
        let mut remains = Remains {
            places: Vec::new(),
            brief: Vec::with_capacity(brief.len()),
            whole: Vec::with_capacity(whole.len()),
        };
        for place in &mut places {
            *place = match *place {
                WAITING => continue,
                at @ WHOLE.. => {
                    remains.whole.push(whole[(at - WHOLE) as usize].1);
                    WHOLE + (remains.whole.len() - 1) as u32
                }
                at => {
                    remains.brief.push(brief[(at - BRIEF) as usize].1);
                    BRIEF + (remains.brief.len() - 1) as u32
                }
            };
        }
        Remains { places, ..remains }
    }
}

/// Remains of the hosts of a class after the run, in the order of the flows.
pub(crate) struct Remains<E: Host> {
    /// By flow: the place of its end, or [`WAITING`].
    places: Vec<u32>,
    brief: Vec<E::Brief>,
    whole: Vec<E::End>,
}

impl<E: Host> Default for Remains<E> {
    fn default() -> Self {
        Self { places: Vec::new(), brief: Vec::new(), whole: Vec::new() }
    }
}

impl<E: Host> Remains<E> {
    pub(crate) fn get(&self, config: &E::Config, flow: u32) -> E::End {
        match self.places[flow as usize] {
            WAITING => E::End::default(),
            place @ WHOLE.. => self.whole[(place - WHOLE) as usize],
            place => E::of_brief(&self.brief[(place - BRIEF) as usize], config),
        }
    }
}

/// A kind of host: what it is made from, and what is left of it.
pub(crate) trait Host: Endpoint + Sized {
    /// All that the result of a flow needs of it.
    type End: Copy + Default;
    /// The same where nothing rare happened.
    type Brief: Copy;

    fn make(origin: &Origin, config: &Self::Config, flow: u32) -> Self;

    /// `packet` came: the flow is over, and nothing of it is under way any more.
    #[inline]
    fn is_over(&self, _packet: &Packet) -> bool {
        false
    }

    /// The run ends at `now`.
    fn finish(&mut self, _config: &Self::Config, _now: Time) {}

    fn end(&self, config: &Self::Config) -> Self::End;

    /// `None`: something rare happened.
    fn brief(end: &Self::End, config: &Self::Config) -> Option<Self::Brief>;

    fn of_brief(brief: &Self::Brief, config: &Self::Config) -> Self::End;
}

/// Remains of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SenderEnd {
    pub(crate) total: SenderCounts,
    pub(crate) measured: SenderCounts,
    pub(crate) measured_bytes: u64,
    pub(crate) completion: Option<Time>,
    pub(crate) rtt_mean_ms: Option<f64>,
    pub(crate) rtt_p95: Option<Duration>,
    pub(crate) cwnd_mean_packets: Option<f64>,
}

/// Remains of a sender that lost nothing, and of whose time all was measured, or none. The greatest number, and what
/// is none, mean that there is none.
#[derive(Clone, Copy)]
pub(crate) struct BriefSender {
    completion: Time,
    rtt_mean_ms: f64,
    cwnd_mean_packets: f64,
    rtt_p95_ns: u32,
    idle_max_ns: u32,
    window_max: u32,
    sent_packets: u32,
}

/// A number, if there is one; one that is too great is lost.
fn short(number: Option<u64>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX)
}

fn long(number: u32) -> Option<u64> {
    (number != u32::MAX).then_some(number.into())
}

impl Host for tcp::Sender {
    type End = SenderEnd;
    type Brief = BriefSender;

    fn make(origin: &Origin, config: &tcp::Config, flow: u32) -> Self {
        origin.sender(config, flow)
    }

    #[inline]
    fn is_over(&self, packet: &Packet) -> bool {
        tcp::Sender::is_over(self, packet)
    }

    fn finish(&mut self, config: &tcp::Config, now: Time) {
        tcp::Sender::finish(self, config, now);
    }

    fn end(&self, config: &tcp::Config) -> SenderEnd {
        let stats = self.stats(config);
        SenderEnd {
            total: stats.total,
            measured: stats.measured,
            measured_bytes: stats.measured_bytes,
            completion: stats.completion,
            rtt_mean_ms: stats.rtt_mean_ms(),
            rtt_p95: stats.round_trips.and_then(|samples| samples.percentile(95)),
            cwnd_mean_packets: stats.cwnd_mean_packets(),
        }
    }

    fn brief(end: &SenderEnd, config: &tcp::Config) -> Option<BriefSender> {
        let brief = BriefSender {
            completion: end.completion.unwrap_or(Time::NEVER),
            rtt_mean_ms: end.rtt_mean_ms.unwrap_or(f64::NAN),
            cwnd_mean_packets: end.cwnd_mean_packets.unwrap_or(f64::NAN),
            rtt_p95_ns: short(end.rtt_p95.map(|rtt| rtt.0)),
            idle_max_ns: short(end.total.idle_max.map(|span| span.0)),
            window_max: short(end.total.window_max.map(|window| window.0)),
            sent_packets: short(Some(end.total.sent_packets)),
        };
        // All else is as it supposes.
        (Self::of_brief(&brief, config) == *end).then_some(brief)
    }

    fn of_brief(brief: &BriefSender, config: &tcp::Config) -> SenderEnd {
        let total = SenderCounts {
            sent_packets: brief.sent_packets.into(),
            window_max: long(brief.window_max).map(Bytes),
            idle_max: long(brief.idle_max_ns).map(Duration),
            ..SenderCounts::default()
        };
        let known = |number: f64| (!number.is_nan()).then_some(number);
        let cwnd_mean_packets = known(brief.cwnd_mean_packets);
        let is_measured = cwnd_mean_packets.is_some();
        SenderEnd {
            total,
            measured: if is_measured { total } else { SenderCounts::default() },
            measured_bytes: if is_measured { config.bytes_of(total.sent_packets).0 } else { 0 },
            completion: (brief.completion != Time::NEVER).then_some(brief.completion),
            rtt_mean_ms: known(brief.rtt_mean_ms),
            rtt_p95: long(brief.rtt_p95_ns).map(Duration),
            cwnd_mean_packets,
        }
    }
}

/// Remains of a receiver to which each segment came once, all of them in the measured time, or none.
#[derive(Clone, Copy)]
pub(crate) struct BriefReceiver {
    received_packets: u32,
    is_measured: bool,
}

impl Host for tcp::Receiver {
    type End = ReceiverStats;
    type Brief = BriefReceiver;

    fn make(origin: &Origin, config: &tcp::Config, flow: u32) -> Self {
        origin.receiver(config, flow)
    }

    fn end(&self, config: &tcp::Config) -> ReceiverStats {
        self.stats(config)
    }

    fn brief(end: &ReceiverStats, config: &tcp::Config) -> Option<BriefReceiver> {
        let received_packets = short(Some(end.total.received_packets));
        let brief = BriefReceiver { received_packets, is_measured: end.measured.received_packets > 0 };
        (Self::of_brief(&brief, config) == *end).then_some(brief)
    }

    fn of_brief(brief: &BriefReceiver, config: &tcp::Config) -> ReceiverStats {
        let received_packets = u64::from(brief.received_packets);
        let bytes = config.bytes_of(received_packets).0;
        let total = ReceiverCounts {
            received_packets,
            arrived_bytes: bytes,
            delivered_bytes: bytes,
            spurious_retransmits: 0,
        };
        let measured = if brief.is_measured { total } else { ReceiverCounts::default() };
        ReceiverStats { total, measured, measured_bytes: measured.arrived_bytes }
    }
}

/// The hosts of datagrams live to the end.
macro_rules! live_to_the_end {
    ($host:ty, $make:expr) => {
        impl Host for $host {
            type End = ();
            type Brief = ();

            fn make(origin: &Origin, config: &Self::Config, flow: u32) -> Self {
                $make(origin, config, flow)
            }

            fn end(&self, _: &Self::Config) {}

            fn brief((): &(), _: &Self::Config) -> Option<()> {
                Some(())
            }

            fn of_brief((): &(), _: &Self::Config) {}
        }
    };
}
live_to_the_end!(Source, Origin::source);
live_to_the_end!(Sink, Origin::sink);

const _: () = {
    let sender = size_of::<(u64, BriefSender)>();
    assert!(sender + size_of::<(u64, BriefReceiver)>() <= 64, "what is left of a flow grew");
};
