//! Queue laws without a port: what holds for all of them, on any input.

#[path = "xcp/hostile.rs"]
mod hostile;
#[path = "xcp/random.rs"]
mod random;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use congestlab_core::law::queue::{
    Arrival, Chance, Departure, Discipline, Draws, Limit, Queue, Queues, Reason, Record, Value, Verdict,
    fq_codel, red, step, xcp_tcp,
};
use congestlab_core::law::settings::{Field, Settings as _};
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
    total: Limit,
    held: Vec<VecDeque<Held>>,
    records: Vec<Record>,
    now: Time,
    waits: bool,
    unused: Option<Bytes>,
}

impl Store {
    /// Empty queues of a port with this limit.
    fn new(discipline: &Discipline, port: Limit) -> Self {
        let queues = discipline.queues();
        Self {
            limits: (0..queues).map(|queue| discipline.limit(queue, port)).collect(),
            total: discipline.total(port),
            held: vec![VecDeque::new(); queues],
            records: vec![Record::default(); if queues > 1 { discipline.records() } else { 0 }],
            now: Time(0),
            waits: true,
            unused: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.held.iter().all(VecDeque::is_empty)
    }

    fn overflows(&self) -> bool {
        match self.total {
            Limit::Packets(most) => self.held.iter().map(VecDeque::len).sum::<usize>() as u64 > most,
            Limit::Bytes(most) => self.backlog().0 > most,
            Limit::None => false,
        }
    }

    /// What the law drops for want of room: the queue and number of packets.
    fn overflow(&mut self, law: &mut Queue) -> Vec<(usize, usize)> {
        let mut gone = Vec::new();
        while self.overflows() {
            let victim = law.on_overflow(self);
            assert!(!self.held[victim.queue].is_empty(), "a victim without a packet");
            let (mut packets, mut bytes) = (0, 0);
            while packets == 0 || (packets < victim.packets && bytes < victim.bytes.0) {
                let Some(held) = self.held[victim.queue].pop_front() else { break };
                (packets, bytes) = (packets + 1, held.packet.size.0.saturating_add(bytes));
                law.on_drop(victim.queue, Reason::QueueFull, self);
            }
            gone.push((victim.queue, packets as usize));
        }
        gone
    }

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

    fn backlog(&self) -> Bytes {
        (0..self.held.len()).fold(Bytes(0), |sum, queue| sum + self.bytes(queue))
    }

    fn sojourn(&self, queue: usize) -> Duration {
        self.held[queue].front().map_or(Duration(0), |held| self.now - held.since)
    }

    fn has_room(&self, queue: usize, size: Bytes) -> bool {
        let waiting = self.held.iter().map(VecDeque::len).sum::<usize>() as u64;
        let fits = match self.total {
            Limit::Packets(most) => waiting < most,
            Limit::Bytes(most) => (self.backlog() + size).0 <= most,
            Limit::None => true,
        };
        !self.waits || (fits && self.fits(queue, |_| true, size))
    }

    fn has_room_behind_low_priority(&self, queue: usize, size: Bytes) -> bool {
        self.held[queue].iter().any(|held| held.is_low) && self.fits(queue, |held| !held.is_low, size)
    }

    fn unused(&self) -> Option<Bytes> {
        self.unused
    }

    fn record(&mut self, queue: usize) -> Option<&mut Record> {
        self.records.get_mut(queue)
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

/// Sets every setting that a law tells to anything.
fn scramble(law: &mut Discipline, random: &mut Random) {
    law.each(&mut |_, _, field| match field {
        Field::Switch(value) => *value = random.coin(),
        Field::Factor(value) | Field::Share(value) => *value = Ratio(random.half()),
        Field::Weight(value) => *value = random.coin().then(|| Ratio(random.half())),
        Field::Span(value) => *value = Duration(random.word()),
        Field::Rate(value) => *value = Rate(random.word()),
        Field::Count(value) => *value = random.half().max(1),
        // Not as many queues as there could be: these here are slow.
        Field::Number(value, most) => *value = 1 + random.below(u64::from(most).min(2_000)) as u32,
        Field::Word(value) => {
            let words = value.words();
            value.choose(words[random.below(words.len() as u64) as usize]);
        }
    });
}

/// A discipline with anything in it.
fn any(random: &mut Random) -> Discipline {
    if random.below(3) == 0 {
        let told: Vec<Discipline> = Discipline::told().map(|(law, _)| law).collect();
        let mut law = told[random.below(told.len() as u64) as usize].clone();
        if random.coin() {
            scramble(&mut law, random);
        }
        return law;
    }
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
                follow: if random.coin() { xcp_tcp::Follow::Flows } else { xcp_tcp::Follow::Windows },
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

/// A law's page says what it can be told; the table of contents has it.
#[test]
fn every_law_that_tells_its_settings_has_its_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let contents = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    for (mut law, about) in Discipline::told() {
        let name = law.name();
        let page = format!("protocols/{name}.md");
        assert!(contents.contains(&page), "docs/SUMMARY.md has no {page}");
        assert!(about.ends_with('.'), "{name}: {about}");
        let page = std::fs::read_to_string(docs.join(page)).unwrap();
        law.each(&mut |key, about, _| {
            assert!(page.contains(&format!("`{key}`")), "the page of {name} does not say what `{key}` is");
            assert!(about.ends_with('.'), "{name}, {key}: {about}");
        });
    }
}

/// Nothing overflows. A packet for which there is no room does not pass, one of a transport that knows no ECN is not
/// marked, others are pushed out only where that makes room, and the queue whose turn it is has a packet.
#[test]
fn every_queue_law_survives_any_input_and_keeps_to_its_queues() {
    let mut random = Random::new(31);
    let mut seen = BTreeSet::new();
    let (mut verdicts, mut left, mut overflows) = ([0u64; 4], [0u64; 2], 0);
    for _ in 0..4_000 {
        let discipline = any(&mut random);
        seen.insert(discipline.name());
        let Some(mut law) = Queue::new(&discipline) else { continue };
        let queues = discipline.queues();
        let drops_others = matches!(discipline, Discipline::FqCodel(_));
        let mut store = Store::new(&discipline, any_limit(&mut random));
        for _ in 0..100 {
            store.now = store.now + Duration(random.word() >> (20 + random.below(40)));
            let now = store.now;
            let is_empty = store.is_empty();
            match random.below(9) {
                0..=3 => {
                    let (packet, is_low) = (any_packet(&mut random), random.below(3) == 0);
                    store.waits = !is_empty || random.coin();
                    store.unused = (is_empty && random.coin()).then(|| Bytes(random.word()));
                    let flow = random.half();
                    let queue = law.classify(&packet, flow);
                    assert!(queue < queues);
                    let arrival = Arrival { now, queue, flow, packet: &packet, is_low_priority: is_low };
                    let verdict = law.on_enqueue(&arrival, &mut store, &mut Draw(&mut random));
                    // Where others go for it a packet needs no room.
                    let has_room = store.has_room(queue, packet.size) || drops_others;
                    match verdict {
                        Verdict::Pass => assert!(has_room, "{discipline:?}"),
                        Verdict::Mark => assert!(has_room && packet.ecn != 0, "{discipline:?}"),
                        Verdict::PushOut => {
                            assert!(!is_low && store.has_room_behind_low_priority(queue, packet.size));
                            let held = &mut store.held[queue];
                            held.retain(|held| !held.is_low);
                        }
                        Verdict::Drop(reason) => law.on_drop(queue, reason, &mut store),
                    }
                    verdicts[match verdict {
                        Verdict::Pass => 0,
                        Verdict::Mark => 1,
                        Verdict::PushOut => 2,
                        Verdict::Drop(_) => 3,
                    }] += 1;
                    if !matches!(verdict, Verdict::Drop(_)) {
                        store.held[queue].push_back(Held { packet, is_low, since: now });
                        // What passes an idle port waits in no queue.
                        let gone = if store.waits { store.overflow(&mut law).len() } else { 0 };
                        assert!(gone == 0 || drops_others, "{discipline:?}");
                        overflows += gone;
                    }
                    (store.waits, store.unused) = (true, None);
                }
                4..=6 if !is_empty => {
                    let queue = law.next(&mut store);
                    let held =
                        store.held[queue].pop_front().expect("a packet, since it is this queue's turn");
                    let (packet, sojourn) = (&held.packet, now - held.since);
                    let departure = Departure { now, queue, packet, sojourn };
                    let verdict = law.on_dequeue(&departure, &mut store, &mut Draw(&mut random));
                    assert!(verdict != Verdict::PushOut && (verdict != Verdict::Mark || packet.ecn != 0));
                    left[usize::from(matches!(verdict, Verdict::Drop(_)))] += 1;
                    if let Verdict::Drop(reason) = verdict {
                        law.on_drop(queue, reason, &mut store);
                    }
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
    assert!(
        verdicts.iter().chain(&left).all(|&count| count > 100) && overflows > 100,
        "{verdicts:?} {left:?}"
    );
}

/// A port under a law, and what it does with packets of 1500 B or others.
struct Driven {
    law: Queue,
    store: Store,
    random: Random,
}

impl Driven {
    fn new(discipline: &Discipline, port: Limit) -> Self {
        let law = Queue::new(discipline).expect("a law");
        Self { law, store: Store::new(discipline, port), random: Random::new(1) }
    }

    /// A packet of a flow comes and waits. Returns who goes for it: queues and packets.
    fn arrive(&mut self, flow: u32, size: u64) -> Vec<(usize, usize)> {
        let packet = Carried { size: Bytes(size), ..Carried::default() };
        let (queue, now) = (self.law.classify(&packet, flow), self.store.now);
        let arrival = Arrival { now, queue, flow, packet: &packet, is_low_priority: false };
        let verdict = self.law.on_enqueue(&arrival, &mut self.store, &mut Draw(&mut self.random));
        assert_eq!(verdict, Verdict::Pass);
        self.store.held[queue].push_back(Held { packet, is_low: false, since: now });
        self.store.overflow(&mut self.law)
    }

    /// The queue of the packet that leaves next.
    fn leave(&mut self) -> usize {
        let (queue, now) = (self.law.next(&mut self.store), self.store.now);
        let held = self.store.held[queue].pop_front().expect("a packet, since it is this queue's turn");
        let (packet, sojourn) = (&held.packet, now - held.since);
        let departure = Departure { now, queue, packet, sojourn };
        let verdict = self.law.on_dequeue(&departure, &mut self.store, &mut Draw(&mut self.random));
        assert_eq!(verdict, Verdict::Pass);
        queue
    }
}

/// VM4.6: while both have packets of 1514 B, nine of the short queue go for one of the other.
#[test]
fn vm4_6_the_classic_queue_has_its_tenth() {
    let mut port = Driven::new(&Discipline::DualPi2(Default::default()), Limit::None);
    for _ in 0..40 {
        for ecn in [0, 1] {
            let packet = Carried { size: Bytes(1514), ecn, ..Carried::default() };
            let queue = port.law.classify(&packet, 0);
            assert_eq!(queue as u32, ecn);
            port.store.held[queue].push_back(Held { packet, is_low: false, since: Time(0) });
        }
    }
    let order: Vec<usize> = (0..30).map(|_| port.leave()).collect();
    assert_eq!(order, [1, 1, 1, 1, 1, 1, 1, 1, 1, 0].repeat(3));
}

fn fair(change: impl Fn(&mut fq_codel::Config)) -> Discipline {
    let mut config = fq_codel::Config { perfect: true, ..fq_codel::Config::default() };
    change(&mut config);
    Discipline::FqCodel(config)
}

/// VM5.5: turns of 1500 B; a flow that sends seldom goes next, whoever waits.
#[test]
fn vm5_5_flows_take_turns_by_bytes_and_new_ones_go_first() {
    let mut port = Driven::new(&fair(|config| config.quantum = 1500), Limit::None);
    for _ in 0..40 {
        port.arrive(0, 1500);
        (0..3).for_each(|_| drop(port.arrive(1, 500)));
    }
    let order: Vec<usize> = (0..20).map(|_| port.leave()).collect();
    assert_eq!(order, [0, 1, 1, 1].repeat(5));
    for _ in 0..5 {
        port.arrive(2, 200);
        assert_eq!(port.leave(), 2, "a sparse flow is served at once");
        let order: Vec<usize> = (0..8).map(|_| port.leave()).collect();
        assert_eq!(order.iter().filter(|&&queue| queue == 0).count(), 2, "{order:?}");
    }
}

/// VM5.6: a full port drops half of its longest queue, 34 packets of 100 kB, or as many as may go at once.
#[test]
fn vm5_6_a_full_port_drops_from_the_head_of_its_longest_queue() {
    for (batch, expected) in [(64, 34), (5, 5)] {
        let law = fair(|config| config.drop_batch = batch);
        let mut port = Driven::new(&law, Limit::Packets(67 + 27 + 7));
        for (flow, packets) in [(0, 67), (1, 27), (2, 7)] {
            for _ in 0..packets {
                assert_eq!(port.arrive(flow, 1500), []);
            }
        }
        assert_eq!(port.arrive(2, 1500), [(0, expected)]);
    }
}

/// As many flows as queues: each has its own, all have a turn before any has two, and the hash leaves a part
/// (1 - 1/n)^n of the queues empty.
#[test]
fn a_thousand_queues_take_turns() {
    let mut port = Driven::new(&fair(|_| {}), Limit::None);
    for flow in 0..2 * 1024 {
        port.arrive(flow, 1514);
    }
    for _ in 0..2 {
        let turns: BTreeSet<usize> = (0..1024).map(|_| port.leave()).collect();
        assert_eq!(turns.len(), 1024);
    }
    assert!(port.store.is_empty());
    let hashed = Driven::new(&fair(|config| config.perfect = false), Limit::None);
    let used: BTreeSet<usize> =
        (0..1024).map(|flow| hashed.law.classify(&Carried::default(), flow)).collect();
    assert!((620..=675).contains(&used.len()), "{} of 1024 queues, 647 by chance", used.len());
}
