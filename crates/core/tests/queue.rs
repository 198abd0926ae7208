//! Queue laws without a port: what holds for all of them, on any input.

#[path = "xcp/hostile.rs"]
mod hostile;
#[path = "xcp/random.rs"]
mod random;

use std::collections::{BTreeSet, VecDeque};

use congestlab_core::law::queue::{
    Arrival, Chance, Departure, Discipline, Draws, Limit, Queue, Queues, Value, Verdict, red, step, xcp_tcp,
};
use congestlab_core::law::{Carried, Packet as _};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};
use random::Random;

struct Draw<'a>(&'a mut Random);

impl Draws for Draw<'_> {
    fn draw(&mut self, chance: Chance) -> bool {
        match chance {
            Chance::NEVER => false,
            Chance::CERTAIN => true,
            Chance(threshold) => self.0.next() < threshold,
        }
    }
}

#[derive(Clone, Copy)]
struct Held {
    packet: Carried,
    is_low: bool,
    since: Time,
}

/// Queues of packets, as simple as can be.
struct Store {
    limits: Vec<Limit>,
    held: Vec<VecDeque<Held>>,
    now: Time,
    waits: bool,
    unused: Option<Bytes>,
}

impl Store {
    fn fits(&self, queue: usize, of: impl Fn(&Held) -> bool, size: Bytes) -> bool {
        let kept: Vec<_> = self.held[queue].iter().filter(|held| of(held)).collect();
        let bytes = kept.iter().fold(size, |sum, held| sum + held.packet.size);
        match self.limits[queue] {
            Limit::Packets(most) => (kept.len() as u64) < most,
            Limit::Bytes(most) => bytes.0 <= most,
            Limit::None => true,
        }
    }
}

impl Queues for Store {
    fn packets(&self, queue: usize) -> u64 {
        self.held[queue].len() as u64
    }

    fn bytes(&self, queue: usize) -> Bytes {
        self.held[queue].iter().fold(Bytes(0), |sum, held| sum + held.packet.size)
    }

    fn sojourn(&self, queue: usize) -> Duration {
        self.held[queue].front().map_or(Duration(0), |held| self.now - held.since)
    }

    fn has_room(&self, queue: usize, size: Bytes) -> bool {
        !self.waits || self.fits(queue, |_| true, size)
    }

    fn has_room_behind_low_priority(&self, queue: usize, size: Bytes) -> bool {
        self.held[queue].iter().any(|held| held.is_low) && self.fits(queue, |held| !held.is_low, size)
    }

    fn unused(&self) -> Option<Bytes> {
        self.unused
    }
}

fn any_limit(random: &mut Random) -> Limit {
    match random.below(3) {
        0 => Limit::Packets(random.below(20)),
        1 => Limit::Bytes(random.below(20_000)),
        _ => Limit::None,
    }
}

fn any_red(random: &mut Random) -> red::Config {
    let (min, above) = (random.below(30) as u32, 1 + random.below(30) as u32);
    red::Config {
        thresholds: if random.coin() {
            red::Thresholds::Packets { min, max: min + above }
        } else {
            red::Thresholds::Bytes { min: min * 500, max: (min + above) * 500 }
        },
        max_p: Chance(random.word()),
        weight: Chance(random.word()),
        gentle: random.coin(),
        ecn: random.coin(),
        wait: random.coin(),
        use_mark_p: random.coin(),
        packet_size: random.half() as u16,
    }
}

/// A discipline with anything in it.
fn any(random: &mut Random) -> Discipline {
    match random.below(5) {
        0 => Discipline::DropTail,
        1 => Discipline::PrioDropTail(any_limit(random)),
        2 => Discipline::Red(any_red(random)),
        3 => Discipline::Step(step::Config {
            threshold: match random.below(3) {
                0 => step::Threshold::Packets(random.below(20)),
                1 => step::Threshold::Bytes(Bytes(random.below(20_000))),
                _ => step::Threshold::Sojourn(Duration(random.word() >> 20)),
            },
            at: if random.coin() { step::At::Enqueue } else { step::At::Dequeue },
            drop: random.coin(),
        }),
        _ => {
            let min = 1 + random.below(400_000) as u32;
            let dynamic = xcp_tcp::Dynamic {
                kappa: Ratio(random.half()),
                min: Ratio(min),
                max: Ratio(1_000_000 - min),
            };
            Discipline::XcpTcp(xcp_tcp::Config {
                weight: Ratio(min + random.below(1_000_000 - 2 * u64::from(min)) as u32),
                limit: any_limit(random),
                red: any_red(random),
                dynamic: random.coin().then_some(dynamic),
            })
        }
    }
}

fn any_packet(random: &mut Random) -> Carried {
    let size = if random.below(8) == 0 { random.word() } else { 40 + random.below(1460) };
    let mut packet = Carried { size: Bytes(size), ecn: random.below(4) as u32, ..Carried::default() };
    if random.coin() {
        packet.add_header(random.header());
    }
    packet
}

/// Nothing overflows. A packet for which there is no room does not pass, one of a transport that knows no ECN is not
/// marked, others are pushed out only where that makes room, and the queue whose turn it is has a packet.
#[test]
fn every_queue_law_survives_any_input_and_keeps_to_its_queues() {
    let mut random = Random::new(31);
    let mut seen = BTreeSet::new();
    let mut verdicts = [0u64; 4];
    for _ in 0..4_000 {
        let discipline = any(&mut random);
        seen.insert(discipline.name());
        let Some(mut law) = Queue::new(&discipline) else { continue };
        let port = any_limit(&mut random);
        let queues = discipline.queues();
        let mut store = Store {
            limits: (0..queues).map(|queue| discipline.limit(queue, port)).collect(),
            held: vec![VecDeque::new(); queues],
            now: Time(0),
            waits: true,
            unused: None,
        };
        for _ in 0..100 {
            store.now = store.now + Duration(random.word() >> (20 + random.below(40)));
            let now = store.now;
            let is_empty = store.held.iter().all(VecDeque::is_empty);
            match random.below(9) {
                0..=3 => {
                    let (packet, is_low) = (any_packet(&mut random), random.below(3) == 0);
                    store.waits = !is_empty || random.coin();
                    store.unused = (is_empty && random.coin()).then(|| Bytes(random.word()));
                    let queue = law.classify(&packet);
                    assert!(queue < queues);
                    let arrival = Arrival { now, queue, packet: &packet, is_low_priority: is_low };
                    let verdict = law.on_enqueue(&arrival, &store, &mut Draw(&mut random));
                    let has_room = store.has_room(queue, packet.size);
                    match verdict {
                        Verdict::Pass => assert!(has_room, "{discipline:?}"),
                        Verdict::Mark => assert!(has_room && packet.ecn != 0, "{discipline:?}"),
                        Verdict::PushOut => {
                            assert!(!is_low && store.has_room_behind_low_priority(queue, packet.size));
                            let held = &mut store.held[queue];
                            held.retain(|held| !held.is_low);
                        }
                        Verdict::Drop(_) => law.on_drop(queue),
                    }
                    verdicts[match verdict {
                        Verdict::Pass => 0,
                        Verdict::Mark => 1,
                        Verdict::PushOut => 2,
                        Verdict::Drop(_) => 3,
                    }] += 1;
                    if !matches!(verdict, Verdict::Drop(_)) {
                        store.held[queue].push_back(Held { packet, is_low, since: now });
                    }
                    (store.waits, store.unused) = (true, None);
                }
                4..=6 if !is_empty => {
                    let queue = law.next(&store);
                    let held =
                        store.held[queue].pop_front().expect("a packet, since it is this queue's turn");
                    let (packet, sojourn) = (&held.packet, now - held.since);
                    let departure = Departure { now, queue, packet, sojourn };
                    let verdict = law.on_dequeue(&departure, &store, &mut Draw(&mut random));
                    assert!(verdict != Verdict::PushOut && (verdict != Verdict::Mark || packet.ecn != 0));
                }
                7 => {
                    let capacity = Rate(random.word());
                    law.on_interval(capacity);
                    assert!(law.share(capacity) <= capacity, "{discipline:?}");
                }
                _ => {
                    let deadline = law.next_deadline();
                    if deadline < Time::NEVER {
                        store.now = deadline.max(now);
                        law.on_deadline(store.now, &store);
                        assert!(law.next_deadline() > deadline, "{discipline:?}");
                    }
                    law.sample(&store).each(&mut |name, value| {
                        assert!(!name.is_empty() && !matches!(value, Value::Number(_, 0)));
                    });
                }
            }
        }
    }
    assert_eq!(seen, Discipline::NAMES.iter().copied().collect());
    assert!(verdicts.iter().all(|&count| count > 100), "{verdicts:?}");
}
