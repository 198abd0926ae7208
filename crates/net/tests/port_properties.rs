//! A port against a naive model of it, and against itself driven in other ways, on random inputs.

use congestlab_core::law::queue::QueueSample;
use congestlab_core::law::settings::{Field, Settings as _};
use congestlab_core::law::{LinkConfig, LinkLaw as _, LinkReport, xcp};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Ratio, Time};
use congestlab_net::errors::ErrorRate;
use congestlab_net::packet::{Kind, Packet, Picos, flag};
use congestlab_net::port::{
    FeedbackAt, LawConfig, NEVER, Output, Port, PortConfig, PortEvent, PortStats, Sample, Streams,
};
use congestlab_net::queue::{Discipline, Limit, Reason, red, xcp_tcp};
use congestlab_net::random::{Probability, Stream};
use congestlab_net::service::{PS_PER_S, Service, Steps};
use congestlab_net::trace::Trace;
use std::collections::VecDeque;

const MS: Picos = 1_000_000_000;
/// Runs end here.
const END: Picos = 400 * MS;
/// And measure from here.
const FROM: Picos = 100 * MS;

/// Everything that comes out of a port, in order.
#[derive(Default, Debug, PartialEq)]
struct Log {
    delivered: Vec<Packet>,
    events: Vec<(Picos, PortEvent)>,
}

impl Output for Log {
    fn deliver(&mut self, packet: &mut Packet) {
        self.delivered.push(*packet);
    }

    fn event(&mut self, at: Picos, event: PortEvent) {
        self.events.push((at, event));
    }
}

fn streams(seed: u64) -> Streams {
    let stream = |what| Stream::named(seed, what);
    Streams::new(stream)
}

fn law(capacity: u64) -> xcp::LinkConfig {
    xcp::LinkConfig { capacity: Rate(capacity), ..xcp::LinkConfig::DEFAULT }
}

/// A span up to `most`, half of the time in whole milliseconds: there, arrivals coincide with timers.
fn on_the_clock(draw: &mut Stream, most: Picos) -> Picos {
    let span = 1 + draw.below(most);
    if draw.below(2) == 0 { span } else { span.div_ceil(MS) * MS }
}

/// The same, or with two classes in the place of RED, or with a law that tells its settings itself in that of none.
fn random_port(draw: &mut Stream) -> PortConfig {
    let mut config = random_config(draw);
    let bounds = xcp_tcp::Dynamic {
        follow: if draw.below(2) == 0 { xcp_tcp::Follow::Flows } else { xcp_tcp::Follow::Windows },
        kappa: Ratio::ppm(100_000),
        min: Ratio::ppm(50_000),
        max: Ratio::ppm(950_000),
    };
    if let Discipline::Red(red) = config.discipline
        && draw.below(2) == 0
    {
        let dynamic = (draw.below(2) == 0).then_some(bounds);
        let limit = Limit::Packets(1 + draw.below(8));
        let weight = Ratio::ppm(300_000);
        config.discipline = Discipline::XcpTcp(xcp_tcp::Config { weight, limit, red, dynamic });
    }
    if config.discipline == Discipline::DropTail && draw.below(2) == 0 {
        let mut told: Vec<Discipline> = Discipline::told().map(|(law, _)| law).collect();
        let mut law = told.swap_remove(draw.below(told.len() as u64) as usize);
        // As quick as the run is short.
        law.each(&mut |_, _, field| {
            if let Field::Span(span) = field {
                span.0 /= 20;
            }
        });
        config.discipline = law;
    }
    config
}

/// A port of random making: every service, discipline but that of two classes, law and error.
fn random_config(draw: &mut Stream) -> PortConfig {
    let rate = |draw: &mut Stream| BitRate(1_000_000 + draw.below(40_000_000));
    let service = match draw.below(4) {
        0 => Service::Fixed(BitRate(8_000_000)),
        1 => Service::Fixed(rate(draw)),
        2 => {
            let mut at = 0;
            let mut steps = vec![(0, rate(draw))];
            for _ in 0..draw.below(6) {
                at += on_the_clock(draw, 100 * MS);
                steps.push((at, rate(draw)));
            }
            Service::Steps(Steps::new(steps).unwrap())
        }
        _ => {
            let mut at = 0;
            let mut stamps = Vec::new();
            for _ in 0..=draw.below(60) {
                at += draw.below(4) as u32;
                stamps.push(at);
            }
            stamps.push(at + 1);
            Service::Trace(Trace::new(stamps).unwrap())
        }
    };
    let limit = match draw.below(3) {
        0 => Limit::Packets(1 + draw.below(12)),
        1 => Limit::Bytes(1500 + draw.below(12_000)),
        _ => Limit::None,
    };
    let mut config = PortConfig::new(service, draw.below(3) * 7 * MS, limit);
    config.discipline = match draw.below(3) {
        0 => Discipline::DropTail,
        1 => Discipline::PrioDropTail(
            [Limit::None, Limit::Packets(1), Limit::Bytes(1500)][draw.below(3) as usize],
        ),
        _ => {
            let min = 1 + draw.below(3) as u32;
            let (is_bytes, max) = (draw.below(2) == 0, min + draw.below(5) as u32);
            Discipline::Red(red::Config {
                thresholds: if is_bytes {
                    red::Thresholds::Bytes { min: min * 800, max: max * 800 }
                } else {
                    red::Thresholds::Packets { min, max }
                },
                max_p: Probability::from_f64(0.1).into(),
                weight: Probability::from_f64(0.05).into(),
                gentle: draw.below(2) == 0,
                ecn: draw.below(2) == 0,
                wait: draw.below(2) == 0,
                use_mark_p: draw.below(2) == 0,
                packet_size: 1000,
            })
        }
    };
    if draw.below(2) == 0 {
        let xcp = LinkConfig::Xcp(law(1_000_000));
        config.law = Some(LawConfig { config: xcp, follows_service: draw.below(2) == 0 });
    }
    if draw.below(3) == 0 {
        config.feedback_at = FeedbackAt::Enqueue;
    }
    match draw.below(3) {
        0 => config.errors = Some(ErrorRate::Packet { rate: 0.2, size: 1000 }),
        1 => config.errors = Some(ErrorRate::Bit(1e-5)),
        _ => {}
    }
    if draw.below(3) == 0 {
        config.ack_loss = Probability::from_f64(0.3);
    }
    if draw.below(2) == 0 {
        config.sample_every = Some(on_the_clock(draw, 30 * MS));
    }
    config
}

/// Arrivals in bursts and gaps, some on the instants at which other things happen.
fn random_arrivals(draw: &mut Stream) -> Vec<(Picos, Packet)> {
    let spread = 1 + draw.below(2 * MS);
    let mut at = 0;
    let mut arrivals = Vec::new();
    loop {
        at += match draw.below(32) {
            0..4 => 0,
            4 => draw.below(40 * MS),
            // On a millisecond: an opportunity of a trace, a deadline, the end of a transmission.
            5..10 => MS - at % MS,
            _ => draw.below(spread),
        };
        if at > END {
            return arrivals;
        }
        let mut packet = Packet {
            at,
            flow: draw.below(3) as u32,
            seq: arrivals.len() as u32,
            size: [1000, 1000, 40, 1 + draw.below(1500) as u16][draw.below(4) as usize],
            kind: [Kind::Data, Kind::Data, Kind::Ack, Kind::Datagram][draw.below(4) as usize],
            flags: [0, flag::ECT0, flag::LOW_PRIORITY, flag::LOW_PRIORITY | flag::ECT0]
                [draw.below(4) as usize],
            ..Packet::default()
        };
        if packet.kind == Kind::Data {
            // Some claim more than they may.
            let x = if draw.below(8) == 0 { u32::MAX } else { 500_000 + draw.below(1_000_000) as u32 };
            packet.set_header(xcp::Header {
                x,
                rtt: 26_843_546,
                delta: draw.below(100_000) as i32,
                reverse: 0,
            });
        }
        arrivals.push((at, packet));
    }
}

/// Drives a port through arrivals; `between` may advance it on the way, up to the time that it gets.
fn drive(
    config: &PortConfig,
    seed: u64,
    arrivals: &[(Picos, Packet)],
    mut between: impl FnMut(&mut Port, Picos, &mut Log),
) -> (Log, PortStats, u64) {
    let mut log = Log::default();
    let mut port = Port::new(config, streams(seed), FROM, END);
    for &(at, packet) in arrivals {
        between(&mut port, at, &mut log);
        port.advance_to_arrival(at, &mut log);
        port.arrive(at, packet, &mut log);
    }
    between(&mut port, END + 1, &mut log);
    port.advance_before(END + 1, &mut log);
    port.finish(END);
    (log, port.stats().clone(), port.fingerprint())
}

#[test]
fn a_port_does_not_care_how_far_or_finely_it_is_advanced() {
    for seed in 0..1500 {
        let mut draw = Stream::named(seed, "test");
        let config = random_port(&mut draw);
        let arrivals = random_arrivals(&mut draw);
        let by_arrival = drive(&config, seed, &arrivals, |_, _, _| {});
        let by_event = drive(&config, seed, &arrivals, |port, until, log| {
            while port.next_event() < until {
                let next = port.next_event();
                port.advance_before(next + 1, log);
                assert!(port.next_event() > next, "seed {seed}: the event at {next} stayed");
            }
        });
        assert_eq!(by_arrival, by_event, "seed {seed}: {config:?}");
        let mut reached = 0;
        let by_window = drive(&config, seed, &arrivals, |port, until, log| {
            while reached < until {
                port.advance_before(reached, log);
                let longest = if draw.below(2) == 0 { 100_000 } else { 20 * MS };
                reached += 1 + draw.below(longest);
            }
        });
        assert_eq!(by_arrival, by_window, "seed {seed}: {config:?}");
    }
}

#[test]
fn a_port_loses_no_packet_and_makes_none() {
    let mut totals = PortStats::default();
    for seed in 10_000..11_500 {
        let mut draw = Stream::named(seed, "test");
        let config = random_port(&mut draw);
        let arrivals = random_arrivals(&mut draw);
        let (log, stats, _) = drive(&config, seed, &arrivals, |_, _, _| {});
        let count =
            |is: fn(&PortEvent) -> bool| log.events.iter().filter(|(_, event)| is(event)).count() as u64;
        let reached = log.delivered.iter().filter(|packet| packet.at <= END).count() as u64;
        assert_eq!(stats.arrived_packets, arrivals.len() as u64, "seed {seed}");
        assert_eq!(stats.delivered_packets, reached, "seed {seed}");
        assert_eq!(
            stats.counts().dropped_packets(),
            count(|event| matches!(event, PortEvent::Dropped { .. }))
        );
        assert_eq!(stats.errors, count(|event| matches!(event, PortEvent::Errored { .. })), "seed {seed}");
        assert_eq!(stats.marks, count(|event| matches!(event, PortEvent::Marked { .. })), "seed {seed}");
        assert_eq!(
            stats.arrived_packets,
            stats.delivered_packets + stats.counts().dropped_packets() + stats.errors + stats.in_flight_end,
            "seed {seed}: {config:?}"
        );
        // Errors beyond the end are on the wire still, and deliveries beyond it too.
        let beyond = log.delivered.len() as u64 - reached;
        assert!(stats.in_flight_end >= beyond + stats.queue_end_packets, "seed {seed}");
        assert!(log.delivered.is_sorted_by_key(|packet| packet.at), "seed {seed}: out of order");
        totals.errors += stats.errors;
        totals.marks += stats.marks;
        for (total, drops) in totals.drops.iter_mut().zip(stats.drops) {
            *total += drops;
        }
    }
    // Those of a medium and of a policer are tried in files of their own.
    let elsewhere = [Reason::ExcessiveCollisions, Reason::Policed];
    let mut reasons = Reason::ALL.into_iter().filter(|reason| !elsewhere.contains(reason));
    let seen = reasons.all(|reason| totals.drops[reason as usize] > 100)
        && totals.errors > 100
        && totals.marks > 100;
    assert!(seen, "some outcome was hardly tried: {totals:?}");
}

/// What the naive model keeps of a run.
#[derive(Default)]
struct Naive {
    /// When the transmission of each packet began, and how long it had waited.
    begins: Vec<(Picos, Picos)>,
    log: Log,
    /// Every length of the queue, with the time from which it held.
    lengths: Vec<(Picos, usize)>,
    /// Ends of transmissions, with the bytes.
    ends: Vec<(Picos, u64)>,
    /// Arrivals whose header claimed too much.
    bounded: Vec<Picos>,
    arrived: u64,
}

/// RED as docs/design/protocols.md 10.2 has it, in floats.
struct NaiveRed {
    config: red::Config,
    average: f64,
    count: i64,
}

impl NaiveRed {
    /// Whether the arrival goes, whether nothing may save it, and whether a mark may.
    fn goes(
        &mut self,
        size: u16,
        queue: f64,
        idle_packets: Option<u64>,
        draws: &mut Stream,
    ) -> (bool, bool, bool) {
        let config = self.config;
        let (red::Thresholds::Packets { min, max } | red::Thresholds::Bytes { min, max }) = config.thresholds;
        let (min, max, max_p) = (f64::from(min), f64::from(max), config.max_p.0 as f64 / 2f64.powi(64));
        let weight = config.weight.0 as f64 / 2f64.powi(64);
        match idle_packets {
            Some(packets) => self.average *= (1.0 - weight).powi(packets as i32),
            None => self.average = (1.0 - weight) * self.average + weight * queue,
        }
        if self.average < min {
            self.count = if config.wait { 0 } else { -1 };
            return (false, false, false);
        }
        let mut p_b = if self.average < max {
            max_p * (self.average - min) / (max - min)
        } else if config.gentle && self.average < 2.0 * max {
            max_p + (1.0 - max_p) * (self.average - max) / max
        } else {
            self.count = 0;
            return (true, true, false);
        };
        let may_mark = !config.use_mark_p || p_b < 0.1;
        if let red::Thresholds::Bytes { .. } = config.thresholds {
            p_b *= f64::from(size) / f64::from(config.packet_size);
        }
        let spread = self.count as f64 * p_b;
        let p_a = if config.wait {
            let spread = spread + p_b;
            if spread < 1.0 { 0.0 } else { (p_b / (2.0 - spread).max(p_b)).min(1.0) }
        } else if spread >= 1.0 {
            1.0
        } else {
            p_b / (1.0 - spread)
        };
        let goes = p_a >= 1.0 || (p_a > 0.0 && (draws.next_u64() as f64 / 2f64.powi(64)) < p_a);
        self.count = if goes { 0 } else { self.count + 1 };
        (goes, false, may_mark)
    }
}

/// The whole port as one loop over all events in the order of (time, departure < arrival < timer),
/// without laziness: opportunities, ends of transmission and deadlines are events whether or not
/// anything comes of them. Capacity is integrated anew for each packet.
fn naive(config: &PortConfig, seed: u64, arrivals: &[(Picos, Packet)]) -> Naive {
    let mut run = Naive::default();
    let mut draws = streams(seed);
    let mut errors = config.errors.map(ErrorRate::average);
    let mut law = config.law.as_ref().map(|LawConfig { config: law, follows_service }| {
        let mut law = *law.part::<xcp::LinkConfig>().expect("the only one here");
        if *follows_service {
            law.capacity = config.service.capacity_at(0);
        }
        let control = Duration(1 + draws.phase.below(50_000_000));
        let queue = Duration(1 + draws.phase.below(50_000_000));
        xcp::Link::new(law, control, queue)
    });
    let mut steps: VecDeque<(Picos, BitRate)> = match (&config.service, &config.law) {
        (Service::Steps(steps), Some(LawConfig { follows_service: true, .. })) => {
            steps.as_slice()[1..].iter().copied().collect()
        }
        _ => VecDeque::new(),
    };
    let mut opportunities: VecDeque<Picos> = match &config.service {
        Service::Trace(trace) => (0..=END / trace.period())
            .flat_map(|turn| trace.stamps().iter().map(move |&ms| turn * trace.period() + u64::from(ms) * MS))
            .collect(),
        _ => VecDeque::new(),
    };
    let mut naive_red = match config.discipline {
        Discipline::Red(config) => Some(NaiveRed { config, average: 0.0, count: -1 }),
        _ => None,
    };
    let is_trace = !opportunities.is_empty();
    let (mut samples, mut sampled_from) = (config.sample_every, 0);
    let mut arrivals: VecDeque<(Picos, Packet)> = arrivals.iter().copied().collect();

    let mut queue: VecDeque<Packet> = VecDeque::new();
    // In transmission: with its end; in a trace with the bytes that are still to go.
    let mut serving: Option<(Packet, Picos)> = None;
    let mut transit: Option<(Packet, u32)> = None;
    let (mut busy_from, mut busy_bytes) = (0, 0u64);
    let bytes = |queue: &VecDeque<Packet>| queue.iter().map(|packet| u64::from(packet.size)).sum::<u64>();
    let fits = |queue: &VecDeque<Packet>, size: u16| match config.limit {
        Limit::Packets(packets) => (queue.len() as u64) < packets,
        Limit::Bytes(most) => bytes(queue) + u64::from(size) <= most,
        Limit::None => true,
    };

    loop {
        let end = serving.map_or(NEVER, |(_, end)| end);
        let opportunity = opportunities.front().copied().unwrap_or(NEVER);
        let arrival = arrivals.front().map_or(NEVER, |&(at, _)| at);
        let deadline = law.as_ref().map_or(NEVER, |law| law.next_deadline().0.saturating_mul(1000));
        let step = steps.front().map_or(NEVER, |&(at, _)| at);
        let timer = deadline.min(step).min(samples.unwrap_or(NEVER));
        let now = end.min(opportunity).min(arrival).min(timer);
        if now > END {
            break;
        }
        let time = Time(now / 1000);

        // What begins transmission now, for the law and the wire.
        let mut leave = |mut packet: Packet, queue: &VecDeque<Packet>, run: &mut Naive| {
            run.lengths.push((now, queue.len()));
            run.begins.push((now, now - packet.at));
            if let (Some(law), FeedbackAt::Departure) = (&mut law, config.feedback_at) {
                depart(law, time, &mut packet, bytes(queue));
            }
            packet
        };
        let mut land = |mut packet: Packet, end: Picos, run: &mut Naive| {
            run.ends.push((end, u64::from(packet.size)));
            packet.at = end.saturating_add(config.delay);
            let broken = errors.as_mut().is_some_and(|e| draws.errors.bernoulli(e.probability(packet.size)));
            let lost = packet.kind == Kind::Ack && draws.ack_loss.bernoulli(config.ack_loss);
            if !broken && !lost {
                run.log.delivered.push(packet);
            } else if packet.at <= END {
                run.log.events.push((packet.at, PortEvent::Errored { packet }));
            }
        };
        let begin = |packet: Packet, busy_from: Picos, busy_bytes: u64| {
            // The first instant by which the busy period's packets fit into the capacity.
            let need = u128::from(busy_bytes) * 8 * u128::from(PS_PER_S);
            let (mut low, mut high) = (now, now + 10_000 * MS);
            while low < high {
                let middle = low + (high - low) / 2;
                if config.service.work(busy_from, middle) >= need { high = middle } else { low = middle + 1 }
            }
            (packet, low)
        };

        if end == now {
            serving = None;
            if let Some(packet) = queue.pop_front() {
                let packet = leave(packet, &queue, &mut run);
                busy_bytes += u64::from(packet.size);
                let (packet, end) = begin(packet, busy_from, busy_bytes);
                land(packet, end, &mut run);
                serving = Some((packet, end));
            }
        } else if opportunity == now {
            opportunities.pop_front();
            let mut left = 1500;
            while left > 0 {
                let Some((packet, rest)) = transit.take().or_else(|| {
                    let packet = queue.pop_front()?;
                    let packet = leave(packet, &queue, &mut run);
                    Some((packet, u32::from(packet.size)))
                }) else {
                    break;
                };
                let part = rest.min(left);
                left -= part;
                if part < rest {
                    transit = Some((packet, rest - part));
                } else {
                    land(packet, now, &mut run);
                }
            }
        } else if arrival == now {
            let (_, mut packet) = arrivals.pop_front().unwrap();
            run.arrived += 1;
            if let Some(law) = &mut law {
                let header = if packet.header::<xcp::Header>().is_some() {
                    packet.header::<xcp::Header>().unwrap_or_default()
                } else {
                    xcp::Header::default()
                };
                let before = law.report().bounded;
                law.on_arrival(time, &header, Bytes(u64::from(packet.size)));
                run.bounded.extend((law.report().bounded > before).then_some(now));
                if config.feedback_at == FeedbackAt::Enqueue {
                    depart(law, time, &mut packet, bytes(&queue));
                }
            }
            let is_idle = serving.is_none() && transit.is_none() && queue.is_empty();
            let is_full = (is_trace || !is_idle) && !fits(&queue, packet.size);
            if let Some(red) = &mut naive_red {
                let last = run.ends.last().map_or(0, |&(end, _)| end);
                let idle = is_idle.then(|| {
                    let bits = u128::from(now - last) * u128::from(config.service.rate_at(now).0);
                    (bits / 8 / u128::from(PS_PER_S) / 1000) as u64
                });
                let queue_now = match red.config.thresholds {
                    red::Thresholds::Packets { .. } => queue.len() as f64,
                    red::Thresholds::Bytes { .. } => bytes(&queue) as f64,
                };
                let (goes, is_forced, may_mark) = red.goes(packet.size, queue_now, idle, &mut draws.queue);
                let marks = goes && may_mark && red.config.ecn && packet.flags & flag::ECN_MASK != 0;
                let reason = match is_forced {
                    _ if is_full => Some(Reason::QueueFull),
                    true => Some(Reason::RedForced),
                    false if goes && !marks => Some(Reason::RedEarly),
                    false => None,
                };
                if let Some(reason) = reason {
                    red.count = 0;
                    run.log.events.push((now, PortEvent::Dropped { packet, reason }));
                    continue;
                }
                if marks {
                    packet.flags |= flag::CE;
                    run.log.events.push((now, PortEvent::Marked { packet }));
                }
            }
            if is_idle && !is_trace {
                (busy_from, busy_bytes) = (now, u64::from(packet.size));
                run.begins.push((now, 0));
                if let (Some(law), FeedbackAt::Departure) = (&mut law, config.feedback_at) {
                    depart(law, time, &mut packet, 0);
                }
                let (packet, end) = begin(packet, busy_from, busy_bytes);
                land(packet, end, &mut run);
                serving = Some((packet, end));
                continue;
            }
            let is_low = |packet: &Packet| packet.flags & flag::LOW_PRIORITY != 0;
            let mut pushed = Vec::new();
            let threshold = match config.discipline {
                Discipline::PrioDropTail(threshold) => Some(threshold),
                _ => None,
            };
            let exceeds = match threshold {
                Some(Limit::Packets(most)) => queue.len() as u64 > most,
                Some(Limit::Bytes(most)) => {
                    queue.iter().map(|packet| u64::from(packet.size)).sum::<u64>() > most
                }
                _ => false,
            };
            if is_low(&packet) && exceeds && fits(&queue, packet.size) {
                run.log.events.push((now, PortEvent::Dropped { packet, reason: Reason::QueueFull }));
                continue;
            }
            if threshold.is_some() && !is_low(&packet) {
                let mut thinned = queue.clone();
                while !fits(&thinned, packet.size)
                    && let Some(newest) = thinned.iter().rposition(is_low)
                {
                    pushed.extend(thinned.remove(newest));
                }
                if fits(&thinned, packet.size) {
                    queue = thinned;
                } else {
                    pushed.clear();
                }
            }
            for packet in pushed {
                run.log.events.push((now, PortEvent::Dropped { packet, reason: Reason::PushedOut }));
            }
            if fits(&queue, packet.size) {
                queue.push_back(Packet { at: now, ..packet });
                run.lengths.push((now, queue.len()));
            } else {
                run.log.events.push((now, PortEvent::Dropped { packet, reason: Reason::QueueFull }));
            }
        } else {
            if step == now {
                let (_, rate) = steps.pop_front().unwrap();
                law.as_mut().unwrap().set_capacity(Rate(rate.0 / 8));
            }
            if let Some(law) = &mut law
                && deadline == now
            {
                let before = law.report().intervals;
                law.on_deadline(time, Bytes(bytes(&queue)));
                if law.report().intervals != before {
                    let report = LinkReport::Xcp(law.report());
                    run.log.events.push((now, PortEvent::ControlInterval { report }));
                }
            }
            if samples == Some(now) {
                let held =
                    run.lengths.iter().rev().find(|&&(at, _)| at <= sampled_from).map_or(0, |&(_, len)| len);
                let in_bin = run.lengths.iter().filter(|&&(at, _)| sampled_from < at && at <= now);
                let sent = run.ends.iter().filter(|&&(end, _)| sampled_from < end && end <= now);
                // The first bin has the run's first instant, too.
                let is_new = |at: Picos| sampled_from < at || sampled_from == 0;
                let begun = run.begins.iter().filter(|&&(at, _)| is_new(at));
                let sample = Sample {
                    queue_packets: queue.len() as u64,
                    queue_bytes: bytes(&queue),
                    queue_max_packets: in_bin.map(|&(_, len)| len).max().unwrap_or(0).max(held) as u64,
                    sent_bytes: sent.map(|&(_, bytes)| bytes).sum(),
                    law: law.as_ref().map(|law| LinkReport::Xcp(law.report())),
                    queue: match &config.discipline {
                        Discipline::DropTail | Discipline::XcpTcp(_) => None,
                        Discipline::PrioDropTail(_) => Some(QueueSample::PrioDropTail(())),
                        Discipline::Red(_) => Some(QueueSample::Red(())),
                        law => unreachable!("{law:?} is not drawn"),
                    },
                    collisions: None,
                    started_packets: begun.clone().count() as u64,
                    waits: Duration(begun.map(|&(_, wait)| wait / 1000).sum()),
                };
                run.log.events.push((now, PortEvent::Sample(sample)));
                sampled_from = now;
                samples = config.sample_every.map(|every| now + every);
            }
        }
    }
    run
}

fn depart(law: &mut xcp::Link, now: Time, packet: &mut Packet, backlog: u64) {
    if packet.header::<xcp::Header>().is_some() {
        let mut header = packet.header::<xcp::Header>().unwrap_or_default();
        law.on_departure(now, &mut header, Bytes(u64::from(packet.size)), Bytes(backlog));
        packet.set_header(header);
    } else {
        law.on_other_departure(now, Bytes(backlog));
    }
}

/// Mean, 95th percentile, maximum of the queue's length by what the naive model wrote down.
fn queue_of(run: &Naive) -> (f64, u64, u64) {
    let mut spent: Vec<(usize, Picos)> = Vec::new();
    let mut held = 0;
    let mut since = 0;
    for &(at, len) in run.lengths.iter().chain([&(END, 0)]) {
        spent.push((held, at.max(FROM) - since.max(FROM)));
        (since, held) = (at, len);
    }
    spent.sort_unstable();
    let total: Picos = spent.iter().map(|&(_, time)| time).sum();
    assert_eq!(total, END - FROM);
    let area: f64 = spent.iter().map(|&(len, time)| len as f64 * time as f64).sum();
    let mut below = 0;
    let p95 = spent.iter().find(|&&(_, time)| {
        below += time;
        u128::from(below) * 100 >= u128::from(total) * 95
    });
    let longest = run.lengths.iter().map(|&(_, len)| len).max().unwrap_or(0);
    (area / total as f64, p95.unwrap().0 as u64, longest as u64)
}

fn landed(log: &Log) -> Vec<Packet> {
    log.delivered.iter().filter(|packet| packet.at <= END).copied().collect()
}

fn events(log: &Log, is_error: bool) -> Vec<(Picos, PortEvent)> {
    let wanted = |event: &PortEvent| matches!(event, PortEvent::Errored { .. }) == is_error;
    log.events.iter().filter(|(_, event)| wanted(event)).cloned().collect()
}

#[test]
fn a_port_does_what_one_loop_over_all_events_does() {
    let (mut compared, mut intervals, mut claimed) = (0, 0, 0);
    for seed in 20_000..21_500 {
        let mut draw = Stream::named(seed, "test");
        let config = random_config(&mut draw);
        let arrivals = random_arrivals(&mut draw);
        let (log, stats, _) = drive(&config, seed, &arrivals, |_, _, _| {});
        let run = naive(&config, seed, &arrivals);
        // The naive model does not know of what lands after the end, and of an error when it lands.
        assert_eq!(landed(&log), landed(&run.log), "seed {seed}: {config:?}");
        for is_error in [true, false] {
            assert_eq!(events(&log, is_error), events(&run.log, is_error), "seed {seed}: {config:?}");
        }

        let sent = |from: Picos| run.ends.iter().filter(move |&&(end, _)| from < end && end <= END);
        let (mean, p95, longest) = queue_of(&run);
        assert_eq!(stats.arrived_packets, run.arrived);
        assert_eq!(stats.sent_packets, run.ends.iter().filter(|&&(end, _)| end <= END).count() as u64);
        assert_eq!(stats.measured_bytes, sent(FROM).map(|&(_, bytes)| bytes).sum::<u64>(), "seed {seed}");
        let near = stats.queue_mean_packets.unwrap() - mean;
        assert!(near.abs() <= 1e-12 * mean, "seed {seed}: mean {mean}, port {:?}", stats.queue_mean_packets);
        assert_eq!(stats.queue_p95_packets, Some(p95), "seed {seed}: {config:?}");
        assert_eq!(stats.queue_max_packets, longest, "seed {seed}: {config:?}");
        let mut waits: Vec<Picos> =
            run.begins.iter().filter(|&&(at, _)| at > FROM).map(|&(_, wait)| wait / 1000).collect();
        waits.sort_unstable();
        assert_eq!(stats.queue_delay.is_some(), !waits.is_empty(), "seed {seed}: {config:?}");
        if let Some(delay) = stats.queue_delay {
            let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
            assert!((delay.mean_ns - mean).abs() <= 1e-12 * mean, "seed {seed}: mean {mean}, {delay:?}");
            assert_eq!(delay.max.0, waits[waits.len() - 1], "seed {seed}: {config:?}");
            for (percent, found) in [(50, delay.p50), (95, delay.p95), (99, delay.p99)] {
                let exact = waits[(waits.len() * percent).div_ceil(100) - 1];
                assert!(
                    found.0 >= exact && (found.0 - exact) * 64 <= exact,
                    "seed {seed}: {percent} % {found:?}, sorted {exact}"
                );
            }
        }
        let bounded = |from: Option<Picos>| run.bounded.iter().filter(|&&at| Some(at) > from).count() as u64;
        let counts = (stats.measured().bounded_packets, stats.counts().bounded_packets);
        let expected = (bounded(Some(FROM)), bounded(None));
        let is_xcp = config.law.is_some();
        assert_eq!(
            counts,
            (is_xcp.then_some(expected.0), is_xcp.then_some(expected.1)),
            "seed {seed}: {config:?}"
        );
        claimed += expected.0;
        assert_eq!(stats.queue_end_packets, run.lengths.last().map_or(0, |&(_, len)| len as u64));
        compared += log.delivered.len();
        intervals +=
            log.events.iter().filter(|(_, event)| matches!(event, PortEvent::ControlInterval { .. })).count();
    }
    assert!(
        compared > 300_000 && intervals > 2_000 && claimed > 1_000,
        "only {compared} packets, {intervals} intervals, {claimed} bounded headers compared"
    );
}
