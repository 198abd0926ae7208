//! The trial of a control law: what every law must satisfy, asked of one protocol (`congestlab check law`).
//!
//! Nothing here knows a law. Packets carry what its own sender puts on them, or anything at all; times, sizes and settings
//! are the least, the greatest, and between. What a law does not claim to have, a pool or a sender, is not asked for.

use std::any::type_name;
use std::cell::Cell;
use std::fmt::Write as _;
use std::marker;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::{
    Ack, Ask, Carried, Delivery, Echo, Expected, Header, Link, LinkConfig, Listening, Numbers, On, Packet,
    Protocol, Reply, Segment, Send, Sender, SenderConfig, Series as _, Tag, Turn, Words,
};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};
use congestlab_net::port::LawConfig;
use congestlab_net::random::Stream;
use congestlab_sim::model::{GroupKind, Model};
use congestlab_sim::{Engine, run};

use crate::language::measure::Measure;
use crate::language::scenario::Scenario;

/// Configurations that a question is asked with.
const ROUNDS: u64 = 1000;
/// Events that each of them sees.
const EVENTS: u64 = 100;
/// The longest span of a scenario, ns.
const SPAN_MAX: u64 = 10_000_000 * 1_000_000_000;

/// Outcome of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The law satisfies it; with what was seen.
    Yes(String),
    /// It does not, and how.
    No(String),
    /// It was not asked, and why.
    NotAsked(String),
}

/// What is broken, in words.
type Broken = String;
/// What was seen, or what is broken.
type Asked = Result<Answer, Broken>;
/// A question, and how it is asked.
type Question = (&'static str, fn(&Protocol) -> Asked);

/// A question that is about to be asked: a call of it answers.
pub type Asking<'a> = Box<dyn FnOnce() -> Answer + marker::Send + 'a>;

/// The question that a law says nothing to that has no words for what it grants.
pub const LOWERS: &str = "an overloaded link lowers what its own sender asks for";
/// The question of which half is the same.
pub const RAISES: &str = "any input: the link law neither panics nor raises what other hops granted";

/// Asks every question of a protocol, and calls `tell` with each and its answer.
///
/// `wait` asks: it may wait for the answer for as long as it likes and return `None` in the end, because a law may be one that
/// never returns.
pub fn of<'a>(
    protocol: &'a Protocol,
    wait: &dyn Fn(&'static str, Asking<'a>) -> Option<Answer>,
    tell: &mut dyn FnMut(&'static str, Answer),
) {
    let questions: [Question; 10] = [
        ("series: what results get is what the protocol says that they get", series),
        (RAISES, link_on_any_input),
        ("control intervals of the link law are at least as long as it says", intervals),
        (LOWERS, lowers),
        ("no interval grants more than its pool", pool),
        ("any input: the sender law does not panic, its window holds a segment", sender_on_any_input),
        ("bytes: captures have room for the option that says the header", bytes),
        ("10 Mbit/s: both engines and two threads agree, every flow gets on", usual),
        ("quantisation, 64 kbit/s: what is told in few units fills the link", slow),
        ("quantisation, 10 Gbit/s: what is told in many units is more than a slow link's", fast),
    ];
    let (mut is_sound, mut is_over) = (true, false);
    for (question, ask) in questions {
        if is_over {
            tell(question, Answer::NotAsked("what never ends above comes first".into()));
            continue;
        }
        // An engine would wait for ever for a deadline that stays where it is, or for a flow that never sends.
        if !is_sound && question.contains("bit/s") {
            tell(question, Answer::NotAsked("what fails above comes first".into()));
            continue;
        }
        // A law may be anybody's: its panic is an answer, and the hook has told where.
        let asking = move || match catch_unwind(AssertUnwindSafe(|| ask(protocol))) {
            Ok(Ok(answer)) => answer,
            Ok(Err(broken)) => Answer::No(broken),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
                Answer::No(format!("it panics: {text}"))
            }
        };
        let answer = wait(question, Box::new(asking)).unwrap_or_else(|| {
            is_over = true;
            Answer::No(
                "it never ends: a call of the law does not return, or asks for one more for ever".into(),
            )
        });
        let is_first = question.starts_with("any input") || question.contains("bit/s");
        is_sound &= !(is_first && matches!(answer, Answer::No(_)));
        tell(question, answer);
    }
}

/// Results know series by what protocols declare, titles and questions alike; those of a variant its base may declare.
fn series(protocol: &Protocol) -> Asked {
    let mut told: [Vec<&'static str>; 2] = [Vec::new(), Vec::new()];
    if let Some(config) = &protocol.link {
        let mut law = Link::new(config, Duration(1), Duration(1));
        law.on_deadline(law.next_deadline(), Bytes(0));
        law.report().each(&mut |name, _, _| told[0].push(name));
    }
    if let Some(config) = &protocol.sender {
        Sender::new(config, Bytes(1500), Bytes(15_000)).law().each(&mut |name, _, _| told[1].push(name));
    }
    let declared = [protocol.link_series, protocol.flow_series];
    for ((of, told), declared) in ["links", "flows"].into_iter().zip(&told).zip(declared) {
        let all = Protocol::all().flat_map(|other| other.link_series.iter().chain(other.flow_series));
        let known: Vec<&str> = all.chain(declared).map(|column| column.name).collect();
        if let Some(name) = told.iter().find(|name| !known.contains(*name)) {
            return Err(format!(
                "its series {name} of {of} is not declared, so results know none of that name"
            ));
        }
        if let Some(column) = declared.iter().find(|column| !told.contains(&column.name)) {
            return Err(format!("its series {} of {of} is declared, and nobody tells it", column.name));
        }
        if let Some(name) = told.iter().find(|name| told.iter().filter(|other| other == name).count() > 1) {
            return Err(format!("its series {name} of {of} is told twice"));
        }
    }
    let [of_links, of_flows] = told.map(|told| told.len());
    Ok(Answer::Yes(format!("{of_links} of links, {of_flows} of flows")))
}

/// Draws that a question makes.
struct Random(Stream);

impl Random {
    fn of(protocol: &Protocol, question: &str) -> Self {
        Self(Stream::named(1, &format!("trial.{}.{question}", protocol.name)))
    }

    /// In `0..end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// Numbers that a field can hold: the extremes often.
    fn word(&mut self) -> u64 {
        match self.below(10) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX - self.below(5),
            3 => 1 << self.below(64),
            _ => self.0.next_u64() >> self.below(64),
        }
    }

    /// As [`Random::word`], of 32 bits.
    fn half(&mut self) -> u32 {
        (self.word() >> (32 * self.below(2))) as u32
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Time after `now`, saturating.
    fn after(&mut self, now: u64) -> u64 {
        now.saturating_add(self.word() >> (20 + self.below(40)))
    }

    /// A packet with anything in it; with all headers that a law may look for, or with none.
    fn packet(&mut self) -> Any {
        let has_header = self.below(4) > 0;
        let words = has_header.then(|| std::array::from_fn(|_| self.half()));
        Any { size: Bytes(self.word()), words, ecn: self.below(4) as u8, memory: [0; 8] }
    }
}

/// Sets every part of a configuration to anything; returns true if a span became zero.
fn scramble(config: &mut impl Settings, random: &mut Random) -> bool {
    let mut has_zero = false;
    config.each(&mut |_, _, field| match field {
        Field::Switch(value) => *value = random.coin(),
        Field::Factor(value) | Field::Share(value) => *value = Ratio(random.half()),
        Field::Weight(value) => *value = random.coin().then(|| Ratio(random.half())),
        Field::Span(value) => {
            *value = Duration(random.word());
            has_zero |= value.0 == 0;
        }
        Field::Rate(value) => *value = Rate(random.word()),
        Field::Count(value) | Field::Number(value, _) => *value = random.half().max(1),
        Field::Word(value) => {
            let words = value.words();
            value.choose(words[random.below(words.len() as u64) as usize]);
        }
    });
    has_zero
}

/// A packet that has every header that a law asks for, or none.
#[derive(Clone, Copy, PartialEq)]
struct Any {
    size: Bytes,
    words: Option<Words>,
    ecn: u8,
    memory: [u32; 8],
}

impl Packet for Any {
    fn size(&self) -> Bytes {
        self.size
    }

    fn ecn(&self) -> u8 {
        self.ecn
    }

    fn set_ecn(&mut self, code: u8) {
        self.ecn = code;
    }

    fn words(&self, _: Tag) -> Option<&Words> {
        self.words.as_ref()
    }

    fn words_mut(&mut self, _: Tag) -> Option<&mut Words> {
        self.words.as_mut()
    }

    fn add(&mut self, _: Tag) -> Option<&mut Words> {
        Some(self.words.get_or_insert_default())
    }

    fn memory(&mut self, _: [u32; 3], _: Time, _: bool) -> Option<&mut [u32]> {
        Some(&mut self.memory)
    }

    fn set_header<H: Header>(&mut self, header: H) {
        if self.words.is_some() {
            self.add_header(header);
        }
    }

    fn add_header<H: Header>(&mut self, header: H) {
        let words = self.words.get_or_insert_default();
        header.write(words);
        assert!(H::read(words) == header, "{} is read as another than was written", type_name::<H>());
    }
}

fn not_asked(why: &str) -> Asked {
    Ok(Answer::NotAsked(why.into()))
}

const NO_LINK: &str = "the protocol has no law for links";
const NO_SENDER: &str = "the protocol has no law for senders";

/// Runs `check` on the link law's default configuration and on scrambled ones.
fn links(
    protocol: &Protocol,
    question: &str,
    check: impl Fn(&mut Random, &LinkConfig, bool) -> Result<(), Broken>,
) -> Asked {
    let Some(config) = &protocol.link else { return not_asked(NO_LINK) };
    let mut random = Random::of(protocol, question);
    for round in 0..ROUNDS {
        let mut config = config.clone();
        config.set_capacity(Rate(random.word()));
        let has_zero = round % 3 > 0 && scramble(&mut config, &mut random);
        check(&mut random, &config, has_zero).map_err(|broken| format!("{broken}, with {config:?}"))?;
    }
    Ok(Answer::Yes(format!("{ROUNDS} configurations, {EVENTS} events each")))
}

fn link_on_any_input(protocol: &Protocol) -> Asked {
    links(protocol, "link", |random, config, has_zero| {
        let mut law = Link::new(config, Duration(random.word()), Duration(random.word()));
        let mut next = law.clone();
        let mut now = 0;
        let mut memory = [0; 8];
        for _ in 0..EVENTS {
            now = random.after(now);
            let packet = Any { memory, ..random.packet() };
            match random.below(8) {
                0..=2 => law.on_arrival(Time(now), &packet),
                3..=5 => {
                    let mut out = packet;
                    let _ = law.view(&packet);
                    // The next hop is held to the same.
                    for law in [&mut law, &mut next] {
                        let came = out;
                        law.on_departure(Time(now), &mut out, Bytes(random.word()));
                        if !law.only_lowers(&came, &out) {
                            return Err(format!("{:x?} left as {:x?}: raised", came.words, out.words));
                        }
                    }
                    if (out.ecn == 0) != (packet.ecn == 0) || out.ecn > 3 {
                        return Err(format!(
                            "a packet came with ECN code {} and left with {}",
                            packet.ecn, out.ecn
                        ));
                    }
                    if out.words.is_some() != packet.words.is_some() {
                        return Err("a packet came without a header and left with one, or the reverse".into());
                    }
                    memory = out.memory;
                }
                6 => law.set_capacity(Rate(random.word())),
                _ => {
                    now = now.max(law.next_deadline().0);
                    law.on_deadline(Time(now), Bytes(random.word()));
                    let deadline = law.next_deadline();
                    if deadline <= Time(now) && now < u64::MAX && !has_zero {
                        return Err(format!("served at {now} ns, its next deadline is {} ns", deadline.0));
                    }
                    let mut nameless = false;
                    law.report().each(&mut |name, _, unit| nameless |= unit == 0 || name.is_empty());
                    if nameless {
                        return Err("a column of its report has no name, or a denominator of 0".into());
                    }
                }
            }
        }
        Ok(())
    })
}

/// A packet that the protocol's own sender has sent.
fn sent(config: &SenderConfig, law: &mut Sender, now: Time, srtt: Duration, number: u32) -> Carried {
    let size = Bytes(1500);
    let mut packet = Carried { size, ecn: 1, ..Carried::default() };
    if config.needs().segments {
        let sequence = 1u32.wrapping_add(number.wrapping_mul(1460));
        let mut segment = Segment { sequence, acknowledgment: 3_000_000, length: 1500, ..Segment::default() };
        segment.seal();
        packet.add_header(segment);
    }
    let (awnd, backlog) = (Bytes(u64::MAX), Bytes(u64::MAX));
    law.on_send(config, now, &Send { size, srtt, awnd, backlog, ..Send::default() }, srtt, &mut packet);
    packet
}

/// What the memory of a run is judged by: each interval can be an event.
fn intervals(protocol: &Protocol) -> Asked {
    links(protocol, "intervals", |random, config, _| {
        let mut config = config.clone();
        config.each(&mut |_, _, field| {
            if let Field::Span(value) = field {
                *value = Duration(1 + value.0 % SPAN_MAX);
            }
        });
        let round_trip = Duration(random.word() % SPAN_MAX);
        let least = config.shortest_interval(round_trip);
        if least == Duration(0) {
            return Err("it says that an interval may take no time".into());
        }
        let mut law = Link::new(&config, Duration(1 + random.below(1000)), Duration(1 + random.below(1000)));
        let own = protocol.sender.as_ref();
        let mut sender = own.map(|own| (own, Sender::new(own, Bytes(1500), Bytes(15_000))));
        let mut ended: Option<Time> = None;
        for number in 0..EVENTS as u32 {
            let now = law.next_deadline();
            if now == Time::NEVER {
                break;
            }
            let srtt = Duration(round_trip.0.saturating_add(random.word() >> random.below(64)));
            let packet = sender.as_mut().map(|(own, sender)| sent(own, sender, now, srtt, number));
            law.on_arrival(now, &packet.unwrap_or_default());
            let before = law.report().intervals();
            law.on_deadline(now, Bytes(random.word()));
            if law.report().intervals() > before
                && let Some(last) = ended.replace(now)
                && now - last < least
            {
                let found = (now - last).0;
                return Err(format!("an interval took {found} ns where it says at least {} ns", least.0));
            }
        }
        Ok(())
    })
}

/// A law says itself what a raise is. It does not take every change for none: what a busy link does to packets of the
/// protocol's own sender is a raise the other way round.
fn lowers(protocol: &Protocol) -> Asked {
    const MS: u64 = 1_000_000;
    const PACKETS: u32 = 5000;
    let Some(config) = &protocol.link else { return not_asked(NO_LINK) };
    let Some(own) = &protocol.sender else { return not_asked(NO_SENDER) };
    let mut config = config.clone();
    config.set_capacity(Rate(1_250_000));
    let mut law = Link::new(&config, Duration(MS), Duration(2 * MS));
    let mut sender = Sender::new(own, Bytes(1500), Bytes(15_000));
    let mut lowered = 0;
    // Twelve times as much as the link carries.
    for number in 0..PACKETS {
        let now = Time(u64::from(number) * MS / 10);
        let came = sent(own, &mut sender, now, Duration(100 * MS), number);
        while law.next_deadline() <= now {
            let due = law.next_deadline();
            law.on_deadline(now, Bytes(60_000));
            if law.next_deadline() <= due {
                return Err(format!("its deadline of {} ns was served, and is still due", due.0));
            }
        }
        law.on_arrival(now, &came);
        let mut left = came;
        law.on_departure(now, &mut left, Bytes(60_000));
        if !law.only_lowers(&came, &left) {
            return Err(format!("packet {number} was raised"));
        }
        lowered += u32::from(!law.only_lowers(&left, &came));
    }
    if lowered <= PACKETS / 50 {
        return Err(format!(
            "{lowered} of {PACKETS} packets were lowered by a link that carries a twelfth of them"
        ));
    }
    Ok(Answer::Yes(format!("{lowered} of {PACKETS} packets at a link that carries a twelfth of them")))
}

/// What packets are granted in an interval is no more than its pool had.
fn pool(protocol: &Protocol) -> Asked {
    let (Some(_), Some(own)) = (&protocol.link, &protocol.sender) else {
        return not_asked(if protocol.link.is_none() { NO_LINK } else { NO_SENDER });
    };
    let (has_pool, has_granted) = (Cell::new(false), Cell::new(false));
    let answer = links(protocol, "pool", |random, config, _| {
        let mut law = Link::new(config, Duration(1), Duration(u64::MAX));
        let mut sender = Sender::new(own, Bytes(1500), Bytes(15_000));
        let srtt = Duration(1_000_000 + random.below(1_000_000_000));
        let packets: Vec<Carried> = (0..1 + random.below(40) as u32)
            .map(|number| sent(own, &mut sender, Time(0), srtt, number))
            .collect();
        packets.iter().for_each(|packet| law.on_arrival(Time(0), packet));
        law.on_deadline(law.next_deadline(), Bytes(0));
        let (mut whole, mut granted) = (None, 0u128);
        for _ in 0..EVENTS {
            let mut packet = packets[random.below(packets.len() as u64) as usize];
            let Some(pool) = law.pool(&packet) else { return Ok(()) };
            has_pool.set(true);
            let whole = *whole.get_or_insert(u128::from(pool.left));
            if pool.part > pool.left {
                return Err(format!("a packet's part is {} of a pool with {} left", pool.part, pool.left));
            }
            let came = packet;
            law.on_departure(Time(1), &mut packet, Bytes(0));
            // A packet that leaves as it came was granted what it asked for, which is at most its part.
            if packet != came {
                granted += u128::from(pool.part);
                has_granted.set(has_granted.get() || pool.part > 0);
            }
            if granted > whole {
                return Err(format!("{granted} granted of a pool of {whole}"));
            }
        }
        Ok(())
    })?;
    match (has_pool.get(), has_granted.get()) {
        (false, _) => not_asked("the law says of no packet that it is granted from a pool"),
        (true, false) => not_asked("its pool grants its own sender's packets nothing"),
        (true, true) => Ok(answer),
    }
}

fn sender_on_any_input(protocol: &Protocol) -> Asked {
    let Some(config) = &protocol.sender else { return not_asked(NO_SENDER) };
    let mut random = Random::of(protocol, "sender");
    for round in 0..ROUNDS {
        let mut config = config.clone();
        if round % 3 > 0 {
            scramble(&mut config, &mut random);
        }
        connection(&mut random, &config).map_err(|broken| format!("{broken}, with {config:?}"))?;
    }
    Ok(Answer::Yes(format!("{ROUNDS} configurations, {EVENTS} events each")))
}

fn connection(random: &mut Random, config: &SenderConfig) -> Result<(), Broken> {
    let mss = if random.coin() { 1500 } else { random.word().max(1) };
    let mut law = Sender::new(config, Bytes(mss), Bytes(random.word()));
    law.seed(random.word());
    let mut echo = Echo::new(config, Bytes(mss));
    let mut now = 0;
    for _ in 0..EVENTS {
        now = random.after(now);
        let flight = Bytes(random.word());
        match random.below(14) {
            11 => {
                let ask = Ask { srtt: Duration(random.word()), awnd: Bytes(random.word()) };
                let turn = law.probe(config, Time(now), &ask);
                if !config.needs().probes && turn != Turn::Wait(Time::NEVER) {
                    return Err("it sends probes, and does not say so".into());
                }
            }
            12 => law.on_probe_ack(config, Bytes(random.word())),
            13 if !law.slow_start(config, Bytes(random.word())) => law.leave_slow_start(config),
            13 if config.needs().slow_start.is_none() => {
                return Err("its slow start can be run from outside, and it does not say so".into());
            }
            13 => {}
            10 => {
                let delivery = Delivery {
                    total: Bytes(random.word()),
                    newly: Bytes(random.word()),
                    prior: Bytes(random.word()),
                    interval: Duration(random.word()),
                    lost: Bytes(random.word()),
                    lost_since: Bytes(random.word()),
                    sent_flight: Bytes(random.word()),
                    lost_until: Bytes(random.word()),
                    lost_flight: Bytes(random.word()),
                    prior_flight: flight,
                    flight: Bytes(random.word()),
                    rtt: Duration(random.word()),
                    is_app_limited: random.coin(),
                    in_recovery: random.coin(),
                };
                let _ = law.on_delivery(config, Time(now), &delivery);
            }
            0..=2 => {
                let reply = Reply { word: random.half(), byte: random.word() as u8 };
                let ack = Ack {
                    acked: Bytes(random.word()),
                    flight,
                    awnd: Bytes(random.word()),
                    rtt: Duration(random.word()),
                    srtt: Duration(random.word()),
                    is_duplicate: random.coin(),
                    in_recovery: random.coin(),
                    is_window_limited: random.coin(),
                    is_late: random.coin(),
                    is_repairing: random.coin(),
                    reply,
                };
                law.on_ack(config, Time(now), &ack);
            }
            3 | 4 => {
                let send = Send {
                    size: Bytes(random.word()),
                    srtt: Duration(random.word()),
                    awnd: Bytes(random.word()),
                    backlog: Bytes(random.word()),
                    inflation: Bytes(random.word()),
                    is_window_limited: random.coin(),
                };
                let mut packet = Any { words: None, ecn: 1, ..random.packet() };
                let is_shown = config.needs().segments && random.coin();
                if is_shown {
                    packet.words = Some(std::array::from_fn(|_| random.half()));
                }
                law.on_send(config, Time(now), &send, Duration(random.word()), &mut packet);
                let (has, says) = (packet.words.is_some(), config.needs().header_bytes);
                if has != (is_shown || says > 0) {
                    return Err(format!(
                        "a packet {} a header, and it says that one takes {says} B",
                        if has { "has" } else { "lacks" }
                    ));
                }
            }
            5 | 6 => receive(random, config, &mut echo, mss),
            7 => law.on_loss(config, Time(now), flight),
            8 => law.on_timeout(config, Time(now), flight, random.coin()),
            _ => law.on_restart(config, Time(now), Bytes(random.word())),
        }
        let _ = law.pacing_rate(config, Duration(random.word()));
        // At most a full IP packet.
        let (window, least) = (law.window().0, mss.clamp(1, 65_535));
        if window < least {
            return Err(format!("its window is {window} B, and a segment has {least} B"));
        }
    }
    Ok(())
}

fn receive(random: &mut Random, config: &SenderConfig, echo: &mut Echo, mss: u64) {
    let numbers = Numbers {
        expected: Expected {
            next: random.half(),
            window: random.half(),
            oldest: random.half(),
            newest: random.half(),
        },
        sequence: random.half(),
        acknowledgment: random.half(),
    };
    let segment = Segment { sequence: random.half(), ..Segment::default() };
    let receiver = Listening {
        mss: Bytes(mss),
        awnd: Bytes(random.word()),
        numbers: random.coin().then_some(numbers),
        acknowledgment: random.coin().then_some(segment),
    };
    let _ = echo.on_data(config, &random.packet(), receiver);
    let _ = echo.on_ack(config, receiver);
}

/// The same bytes that results count stand in captures.
fn bytes(protocol: &Protocol) -> Asked {
    let Some(config) = &protocol.sender else { return not_asked(NO_SENDER) };
    let needs = config.needs();
    let mut random = Random::of(protocol, "bytes");
    let mut law = Sender::new(config, Bytes(1500), Bytes(15_000));
    let mut seen = 0;
    for number in 0..EVENTS as u32 {
        let srtt = Duration(random.word());
        let packet = sent(config, &mut law, Time(random.word()), srtt, number);
        let reply = Reply { word: random.half(), byte: random.word() as u8 };
        for (on, of) in [(On::Forward(&packet), "data"), (On::Back(reply), "an ACK")] {
            let Some(option) = config.option(on) else { continue };
            let length = option[1];
            seen += 1;
            if !matches!(on, On::Back(_)) && u16::from(length) != needs.header_bytes {
                return Err(format!(
                    "its option on {of} has {length} B, and it says that its header has {} B",
                    needs.header_bytes
                ));
            }
        }
    }
    if seen == 0 {
        return not_asked(match needs.header_bytes {
            0 => "it has no header",
            _ => {
                "it says its header in no TCP option, or in one that no packet has room for: captures leave it out"
            }
        });
    }
    Ok(Answer::Yes(format!("{} B on data", needs.header_bytes)))
}

/// A network of the trial: one link, for so long.
struct Network {
    rate: &'static str,
    delay: &'static str,
    segment: &'static str,
    warmup: &'static str,
    duration: &'static str,
    /// The least part of the link that is used after the warm-up.
    used: f64,
}

impl Network {
    /// A sender's law whose links tell it nothing may send a few packets and no more.
    fn warmup(&self, protocol: &Protocol) -> &'static str {
        if protocol.link.is_some() { self.warmup } else { "0 s" }
    }
}

const USUAL: Network = Network {
    rate: "10 Mbit/s",
    delay: "5 ms",
    segment: "1500 B",
    warmup: "5 s",
    duration: "10 s",
    used: 0.0,
};
/// Five packets in a second, and packets that wait for seconds.
const SLOW: Network = Network { rate: "64 kbit/s", warmup: "100 s", duration: "200 s", used: 0.5, ..USUAL };
/// A thousand times as much as the usual one, of which a law that climbs slowly gets ten times as much.
const FAST: Network = Network {
    rate: "10 Gbit/s",
    delay: "500 us",
    segment: "9000 B",
    warmup: "1 s",
    duration: "2 s",
    used: 0.01,
};

fn usual(protocol: &Protocol) -> Asked {
    dumbbell(protocol, &USUAL)
}

/// A law whose header is too coarse, or that counts what is too rare, leaves a slow link empty or a flow without a share.
fn slow(protocol: &Protocol) -> Asked {
    dumbbell(protocol, &SLOW)
}

/// A law whose header is too narrow tells a fast link's flows what is one for a slow link's.
fn fast(protocol: &Protocol) -> Asked {
    dumbbell(protocol, &FAST)
}

/// Three flows over one link, by both engines.
fn dumbbell(protocol: &Protocol, network: &Network) -> Asked {
    if protocol.sender.is_none() {
        return not_asked(NO_SENDER);
    }
    let model = model(protocol, network)?;
    let run = |engine| run(&model, engine, &AtomicBool::new(false), &mut |_| {});
    let reference = run(Engine::Reference);
    for threads in [1, 2] {
        if run(Engine::Window { threads, divisor: 1 }).fingerprint != reference.fingerprint {
            return Err(format!(
                "the window engine with {threads} threads sees another run than the reference"
            ));
        }
    }
    let (warmup, duration) = (network.warmup(protocol), network.duration);
    let delivered: Vec<u64> = reference.groups.iter().flatten().map(|flow| flow.delivered_bytes).collect();
    if let Some(flow) = delivered.iter().position(|&bytes| bytes == 0) {
        return Err(format!(
            "flow {flow} of {} delivers nothing from {warmup} to {duration}",
            delivered.len()
        ));
    }
    let used = reference.links.first().and_then(|link| link.utilization).unwrap_or(0.0);
    let text = format!(
        "{:.1} % of the link used from {warmup} to {duration}, {} to {} kB a flow",
        used * 100.0,
        delivered.iter().min().unwrap_or(&0) / 1000,
        delivered.iter().max().unwrap_or(&0) / 1000
    );
    // What senders alone find out is theirs.
    if protocol.link.is_some() && used < network.used {
        return Err(format!("{text}; at least {} % are asked for", network.used * 100.0));
    }
    Ok(Answer::Yes(text))
}

fn model(protocol: &Protocol, network: &Network) -> Result<Model, Broken> {
    // Scenarios name what is on the list; the parts of another protocol take the places of such laws.
    let is_listed = Protocol::of(protocol.name).is_some();
    let of_flows = if is_listed { protocol.name } else { "sack" };
    let of_link = protocol.link.as_ref().filter(|_| is_listed);
    let of_link = of_link.map_or(String::new(), |_| format!("law = \"{of_flows}\""));
    let Network { rate, delay, segment, duration, .. } = network;
    let warmup = network.warmup(protocol);
    let text = format!(
        "[run]\nduration = \"{duration}\"\nwarmup = \"{warmup}\"\n\
         [links.bottleneck]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"200 packets\"\n{of_link}\n\
         [flows.ftp]\nlaw = \"{of_flows}\"\ncount = 3\nsegment = \"{segment}\"\npath = [\"bottleneck\"]\n"
    );
    let scenario =
        Scenario::parse("trial.toml", &text, Path::new("."), &[], None).map_err(|diagnostics| {
            diagnostics.iter().fold(String::from("a scenario with it is refused"), |mut text, diagnostic| {
                let _ = write!(text, "; {diagnostic}");
                text
            })
        })?;
    let mut model = scenario.model(&Measure::default());
    if !is_listed {
        if let (Some(config), Some(link)) = (&protocol.link, model.links.first_mut()) {
            link.port.law = Some(LawConfig { config: config.clone(), follows_service: true });
        }
        for group in &mut model.groups {
            if let (GroupKind::Tcp(tcp), Some(config)) = (&mut group.kind, &protocol.sender) {
                tcp.law = config.clone();
                tcp.initial_window = config.needs().initial_window.unwrap_or(tcp.initial_window);
            }
        }
    }
    Ok(model)
}
