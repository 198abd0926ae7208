//! Half-duplex media: against a simulation that goes through time byte by byte, against closed forms and
//! against what is known of Ethernet with two stations.

use std::collections::VecDeque;

use congestlab_core::units::BitRate;
use congestlab_net::medium::{Access, Config, CsmaCd, Frame, Medium};
use congestlab_net::packet::{Packet, Picos};
use congestlab_net::port::{Output, Outputs, Port, PortConfig, PortEvent, Streams};
use congestlab_net::queue::{Limit, Reason};
use congestlab_net::random::Stream;
use congestlab_net::service::Service;

const US: Picos = 1_000_000;
const END: Picos = 1_000_000_000 * US;
/// The link of the thesis.
const ETHERNET: BitRate = BitRate(10_000_000);

const FAIR: Config = Config { frame: Frame::ETHERNET, access: Access::Fair };

fn csma(attempts: u32, backoff_limit: u32) -> Config {
    Config {
        access: Access::CsmaCd(CsmaCd { attempts, backoff_limit, ..CsmaCd::IEEE }),
        frame: Frame::ETHERNET,
    }
}

fn backoff(seed: u64, station: usize) -> Stream {
    Stream::named(seed, ["a.backoff", "b.backoff"][station])
}

fn medium(config: &Config, rate: BitRate, limit: Limit, seed: u64) -> Medium {
    let port = PortConfig { sample_every: Some(END / 2), ..PortConfig::new(Service::Fixed(rate), 0, limit) };
    let station = |index| {
        let port = Port::new(&port, Streams::new(|what| Stream::named(seed, what)), 0, END);
        (port, backoff(seed, index))
    };
    Medium::new(config, [station(0), station(1)])
}

fn packet(seq: u32, size: u16) -> Packet {
    Packet { seq, size, ..Packet::default() }
}

/// What happened at one port or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Log {
    /// Station, number of the packet, begin of its transmission.
    sent: Vec<(usize, u32, Picos)>,
    /// The same with the time at which it is at the other end.
    delivered: Vec<(usize, u32, Picos)>,
    dropped: Vec<(usize, u32, Picos, Reason)>,
}

struct At<'a>(usize, &'a mut Log);

impl Output for At<'_> {
    fn deliver(&mut self, packet: &mut Packet) {
        self.1.delivered.push((self.0, packet.seq, packet.at));
    }

    fn sent(&mut self, at: Picos, packet: &Packet, _is_lost: bool) {
        self.1.sent.push((self.0, packet.seq, at));
    }

    fn event(&mut self, at: Picos, event: PortEvent) {
        if let PortEvent::Dropped { packet, reason } = event {
            self.1.dropped.push((self.0, packet.seq, at, reason));
        }
    }
}

impl Outputs for Log {
    fn of(&mut self, port: usize) -> impl Output {
        At(port, self)
    }
}

/// One packet that comes: when, where, how large.
type Arrival = (u64, usize, u16);

/// At 8 Mbit/s a byte is a microsecond, and everything happens at whole ones.
const SLOW: BitRate = BitRate(8_000_000);

/// A medium, microsecond by microsecond. Returns what happened, and the collisions.
fn slowly(config: &Config, arrivals: &[Arrival], most: usize, seed: u64, until: u64) -> (Log, u64) {
    let mut queues = [const { VecDeque::<(u32, u16)>::new() }; 2];
    let (mut retry, mut tries) = ([0_u64; 2], [0_u32; 2]);
    let mut streams = [backoff(seed, 0), backoff(seed, 1)];
    let (mut log, mut collisions, mut silent_from, mut last) = (Log::default(), 0, 0, 1);
    let mut coming = arrivals.iter().zip(0..).peekable();
    let on_wire = |size: u16| u64::from((size + 38).max(84));
    for now in 0..until {
        loop {
            let wants =
                |station: usize| silent_from <= now && retry[station] <= now && !queues[station].is_empty();
            let (a, b) = (wants(0), wants(1));
            if let (true, Access::CsmaCd(csma)) = (a && b, config.access) {
                collisions += 1;
                silent_from = now + 6 + 12;
                for station in 0..2 {
                    tries[station] += 1;
                    if tries[station] == csma.attempts {
                        let (seq, _) = queues[station].pop_front().expect("it wants to send");
                        log.dropped.push((station, seq, now * US, Reason::ExcessiveCollisions));
                        (tries[station], retry[station]) = (0, now);
                    } else {
                        let range = 1 << tries[station].min(csma.backoff_limit);
                        retry[station] = now + 6 + 64 * streams[station].below(range);
                    }
                }
            } else if a || b {
                let station = if a && b { 1 - last } else { usize::from(b) };
                let (seq, size) = queues[station].pop_front().expect("it wants to send");
                log.sent.push((station, seq, now * US));
                log.delivered.push((station, seq, (now + on_wire(size) - 12) * US));
                silent_from = now + on_wire(size);
                (last, tries[station], retry[station]) = (station, 0, now);
            }
            // Arrivals come behind what begins at the same time.
            let Some((&(_, station, size), seq)) = coming.next_if(|((at, ..), _)| *at == now) else { break };
            let queue = &mut queues[station];
            let begins = silent_from <= now && queue.is_empty();
            if queue.is_empty() {
                retry[station] = now;
            }
            if begins || queue.len() < most {
                queue.push_back((seq, size));
            } else {
                log.dropped.push((station, seq, now * US, Reason::QueueFull));
            }
        }
    }
    (log, collisions)
}

#[test]
fn media_do_what_a_simulation_byte_by_byte_does() {
    const UNTIL: u64 = 60_000;
    let (mut sent, mut collided, mut given_up, mut full) = (0, 0, 0, 0);
    for seed in 0..120 {
        let mut draw = Stream::named(seed, "arrivals");
        let config = match seed % 4 {
            0 => FAIR,
            1 => csma(16, 10),
            2 => csma(3, 2),
            _ => csma(1, 1),
        };
        // From idle to overloaded.
        let gap = 100 << (seed / 4 % 6);
        let mut at = 0;
        let mut arrivals = Vec::new();
        while at < UNTIL {
            arrivals.push((at, draw.below(2) as usize, [40, 60, 576, 1500][draw.below(4) as usize]));
            at += draw.below(gap);
        }
        let (slow, collisions) = slowly(&config, &arrivals, 4, seed, UNTIL);

        let mut medium = medium(&config, SLOW, Limit::Packets(4), seed);
        let mut log = Log::default();
        for (&(at, station, size), seq) in arrivals.iter().zip(0..) {
            if draw.below(3) == 0 {
                medium.advance_before((at * US).saturating_sub(draw.below(900 * US)).max(1), &mut log);
            }
            medium.advance_to_arrival(at * US, &mut log);
            medium.arrive(at * US, station, packet(seq, size), &mut log);
        }
        medium.advance_before(UNTIL * US, &mut log);
        assert_eq!(log, slow, "seed {seed}");
        for port in medium.into_ports() {
            assert_eq!(port.stats().collisions, Some(collisions), "seed {seed}");
        }
        let dropped = |reason| log.dropped.iter().filter(|drop| drop.3 == reason).count();
        full += dropped(Reason::QueueFull);
        given_up += dropped(Reason::ExcessiveCollisions);
        sent += log.sent.len();
        collided += collisions;
    }
    assert!(sent > 5_000 && collided > 1_000 && given_up > 100 && full > 1_000);
}

/// Data that always waits, and an acknowledgment of 40 B for every `per_ack` packets of 1500 B. Returns
/// what the medium carries of the data, in bytes a millisecond.
fn data_beside_acks(config: &Config, per_ack: u64, seed: u64) -> f64 {
    let mut medium = medium(config, ETHERNET, Limit::None, seed);
    let (mut log, mut now, mut data) = (Log::default(), 0, 0);
    medium.arrive(0, 0, packet(0, 1500), &mut log);
    medium.arrive(0, 0, packet(0, 1500), &mut log);
    while data < 3_000 {
        let delivered = std::mem::take(&mut log.delivered);
        for (station, _, at) in delivered {
            now = at;
            medium.advance_to_arrival(at, &mut log);
            if station == 0 {
                data += 1;
                medium.arrive(at, 0, packet(0, 1500), &mut log);
                if data % per_ack == 0 {
                    medium.arrive(at, 1, packet(0, 40), &mut log);
                }
            }
        }
        if log.delivered.is_empty() {
            now = medium.next_event().max(now);
            medium.advance_to_arrival(now, &mut log);
        }
    }
    data as f64 * 1500.0 / (now as f64 / 1e9)
}

/// docs/design/protocols.md 1.9, 12.2: of 1250 B/ms.
#[test]
fn taking_turns_leaves_data_what_acknowledgments_do_not_need() {
    for (per_ack, expected) in [(1, 1156.0), (2, 1186.7)] {
        let found = data_beside_acks(&FAIR, per_ack, 1);
        assert!((found - expected).abs() < 0.4, "an ACK for {per_ack}: {found} B/ms, not {expected}");
    }
}

/// What two stations that always have packets of a size use of the medium for them, gaps included.
fn saturated(config: &Config, size: u16) -> f64 {
    const COUNT: u32 = 20_000;
    let mut medium = medium(config, ETHERNET, Limit::None, 1);
    let mut log = Log::default();
    for seq in 0..2 * COUNT {
        medium.arrive(0, seq as usize % 2, packet(seq / 2, size), &mut log);
    }
    while log.sent.len() <= COUNT as usize {
        medium.advance_to_arrival(medium.next_event(), &mut log);
    }
    let airtime = 0.8 * f64::from(size + 38);
    f64::from(COUNT) * airtime / (log.sent[COUNT as usize].2 as f64 / 1e6)
}

/// Metcalfe, Boggs, CACM 1976, "efficiency": (P / C) / (P / C + W T) with W = (1 - A) / A slots T of
/// contention, A = (1 - 1 / Q)^(Q - 1), for Q stations that try in half of the slots if they are two. That
/// is back-off of 0 or 1 slots whatever came before; here a frame then costs a collision and a gap, and one
/// draw on average of half a jam and gap, half a slot and jam: 49.6 us for their 51.2. With back-offs that
/// grow, whoever has sent mostly sends again, and less is lost.
#[test]
fn two_stations_use_what_metcalfe_and_boggs_expect() {
    for size in [1500, 576, 64] {
        let airtime = 0.8 * f64::from(size + 38);
        let theirs = airtime / (airtime + 51.2);
        let ours = airtime / (airtime + 4.8 + 9.6 + (9.6 + 4.8) / 2.0 + (51.2 + 4.8) / 2.0);
        let (found, growing) = (saturated(&csma(1000, 1), size), saturated(&csma(16, 10), size));
        assert!((found - ours).abs() < 0.002, "{size} B: {found}, not {ours}");
        assert!((found - theirs).abs() < 0.01, "{size} B: {found}, not {theirs}");
        assert!((theirs..1.0).contains(&growing), "{size} B: {growing}, not above {theirs}");
    }
}

/// Ramakrishnan, Yang, LCN 1994: after two stations collided and one has sent, its next packet is in its
/// first back-off, of 0 or 1 slots, and the other's in its second, of 0 to 3. Of the 8 pairs 5 let the
/// first one send again and 1 the other; with the third back-off of 0 to 7 that is 13 and 1 of 16.
#[test]
fn who_has_sent_captures_the_medium() {
    // By round: sent again, overtaken, collided once more.
    let mut rounds = [[0_u32; 3]; 2];
    for seed in 0..20_000 {
        let mut medium = medium(&csma(16, 10), ETHERNET, Limit::None, seed);
        let mut log = Log::default();
        for station in [0, 1, 0, 0, 0, 0, 1, 1, 1] {
            medium.arrive(0, station, packet(0, 1500), &mut log);
        }
        let collisions = |medium: &Medium| {
            let [port, _] = medium.clone().into_ports();
            port.stats().collisions.unwrap_or(0)
        };
        // The first packet is on its way; behind it both collide, each for the first time.
        let mut winner = None;
        for expected in 1..=3 {
            let before = log.sent.len();
            while log.sent.len() == before {
                medium.advance_to_arrival(medium.next_event(), &mut log);
            }
            let sender = log.sent[before].0;
            let repeated = collisions(&medium) > expected;
            if let Some(winner) = winner {
                let outcome = if repeated { 2 } else { usize::from(sender != winner) };
                rounds[expected as usize - 2][outcome] += 1;
            }
            // Only while one sends all the time are the back-offs those of the next round.
            if repeated || winner.is_some_and(|winner| winner != sender) {
                break;
            }
            winner = Some(sender);
        }
    }
    for ([again, overtaken, collided], of, expected) in
        [(rounds[0], 8.0, [5.0, 1.0]), (rounds[1], 16.0, [13.0, 1.0])]
    {
        let all = f64::from(again + overtaken + collided);
        let found = [f64::from(again) / all, f64::from(overtaken) / all];
        for (found, expected) in found.into_iter().zip(expected) {
            let expected = expected / of;
            let deviation = (expected * (1.0 - expected) / all).sqrt();
            assert!((found - expected).abs() < 4.0 * deviation, "{found}, not {expected}, of {all}");
        }
    }
}

/// A packet goes after 16 collisions (IEEE 802.3: attemptLimit); here earlier, so that it happens. With a
/// range of 2 slots each contention is a draw in half of the cases.
#[test]
fn a_packet_that_collides_too_often_is_dropped() {
    let (mut first, mut dropped) = (0, 0);
    for seed in 0..20_000 {
        let mut medium = medium(&csma(4, 1), ETHERNET, Limit::None, seed);
        let mut log = Log::default();
        for station in [0, 0, 1] {
            medium.arrive(0, station, packet(0, 1500), &mut log);
        }
        medium.advance_before(END / 4, &mut log);
        first += 1;
        if !log.dropped.is_empty() {
            dropped += 1;
            let of = |station| {
                log.dropped.iter().any(|drop| drop.0 == station && drop.3 == Reason::ExcessiveCollisions)
            };
            assert!(of(0) && of(1) && log.sent.len() == 1, "both give up at once");
            let end = log.dropped[0].2;
            assert_eq!(medium.next_event(), END / 2, "nothing waits any more after {end}");
        } else {
            assert_eq!(log.sent.len(), 3);
        }
        assert_eq!(log.sent.len() + log.dropped.len(), 3);
    }
    // Three draws in a row behind the first collision.
    let share = f64::from(dropped) / f64::from(first);
    assert!((share - 0.125).abs() < 0.01, "{share}");
}

#[test]
fn one_direction_alone_has_the_rate_of_the_line_and_no_collision() {
    for config in [FAIR, csma(16, 10)] {
        let mut medium = medium(&config, ETHERNET, Limit::None, 1);
        let mut log = Log::default();
        for seq in 0..1_000 {
            medium.arrive(0, 0, packet(seq, 1500), &mut log);
        }
        medium.advance_before(END / 4, &mut log);
        // 1538 B of 0.8 us; the gap behind the last one is nobody's.
        assert_eq!(log.delivered[999], (0, 999, (1_000 * 1_538 - 12) * 800_000));
        assert_eq!(medium.draws(), 0);
        // A packet of 20 B is padded.
        medium.advance_to_arrival(END / 3, &mut log);
        medium.arrive(END / 3, 1, packet(0, 20), &mut log);
        assert_eq!(log.delivered[1_000], (1, 0, END / 3 + 72 * 800_000));
    }
}
