//! The trial of laws: every law of the list passes it, and each way to break a law is found by the question about it.

extern crate alloc;

use std::sync::atomic::{AtomicU32, Ordering};

/// The law that `congestlab new law` writes.
#[path = "../../cli/templates/law/src/law.rs"]
#[expect(unreachable_pub, reason = "there it is a library's")]
mod shares;

use congestlab_core::law::outside::{self, AddError};
use congestlab_core::law::words::{LinkWords, SenderWords};
use congestlab_core::law::{
    Ack, Column, Hue, LinkLaw, Look, Needs, Packet, Pool, Protocol, Remembers, Send, SenderLaw, Shape,
    Steered, Tag, Words,
};
use congestlab_core::units::{Bytes, Duration, Rate, Time};
use congestlab_scenario::trial::{self, Answer};
use shares::{Echo, Header, LinkSettings, Report, SenderSettings};

/// Questions by what they hold.
fn answers(protocol: &'static Protocol) -> Vec<(&'static str, Answer)> {
    let mut answers = Vec::new();
    trial::of(protocol, &|_, asking| Some(asking()), &mut |question, answer| {
        answers.push((question, answer))
    });
    answers
}

/// A law that never returns from one call is found, and nobody asks it for another.
#[test]
fn what_never_ends_is_an_answer() {
    let protocol = Protocol::of("vegas").expect("it is on the list");
    let mut answers = Vec::new();
    let wait = |question: &str, asking: trial::Asking| {
        if question.contains("the sender law") { None } else { Some(asking()) }
    };
    trial::of(protocol, &wait, &mut |question, answer| answers.push((question, answer)));
    let at = answers.iter().position(|(question, _)| question.contains("the sender law"));
    let at = at.expect("it was asked");
    assert!(matches!(&answers[at].1, Answer::No(text) if text.starts_with("it never ends")), "{answers:?}");
    let never_ends = |answer: &Answer| matches!(answer, Answer::NotAsked(why) if why.contains("never ends"));
    assert!(answers[at + 1..].len() > 3, "{answers:?}");
    assert!(answers[at + 1..].iter().all(|(_, answer)| never_ends(answer)), "{answers:?}");
}

#[test]
fn every_law_of_the_list_passes() {
    let (mut asked, mut of_pools) = (0, 0);
    for protocol in Protocol::all().filter(|protocol| !NAMES.contains(&protocol.name)) {
        for (question, answer) in answers(protocol) {
            match answer {
                Answer::Yes(_) => asked += 1,
                Answer::NotAsked(_) => continue,
                Answer::No(broken) => panic!("{}: {question}: {broken}", protocol.name),
            }
            of_pools += usize::from(question.contains("pool"));
        }
    }
    assert!(asked > 60 && of_pools >= 2, "{asked} answers, {of_pools} of pools");
}

/// Ways to break a law, which are the names of the broken ones.
const NAMES: [&str; 18] = [
    "sound",
    "raises",
    "stands-still",
    "panics",
    "hurries",
    "lowers-nothing",
    "no-window",
    "no-header",
    "silent",
    "sets-ecn",
    "no-unit",
    "overdraws",
    "remembers-runs",
    "narrow",
    "undeclared",
    "misreads",
    "sends-other",
    "grants-all",
];

/// What a law of this name knows of all links in the process.
static PACKETS: AtomicU32 = AtomicU32::new(0);

/// A header whose codec shifts the share by one bit more on the way in.
#[derive(Clone, Copy, PartialEq)]
struct Misread(Header);

impl congestlab_core::law::Header for Misread {
    const TAG: Tag = Header::TAG;

    fn read(words: &Words) -> Self {
        Self(Header::read(words))
    }

    fn write(self, words: &mut Words) {
        Header { share: self.0.share.rotate_left(1), ..self.0 }.write(words);
    }
}

#[derive(Clone, Debug)]
struct Link<const WAY: usize>(shares::Link);

impl<const WAY: usize> Steered for Link<WAY> {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told<const WAY: usize>(Report);

impl<const WAY: usize> congestlab_core::law::Series for Told<WAY> {
    fn intervals(&self) -> u64 {
        self.0.intervals
    }

    fn decision(&self) -> i64 {
        self.0.share.into()
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        let name = if NAMES[WAY] == "undeclared" { "secret_Bps" } else { "share_Bps" };
        tell(name, self.0.share.into(), u32::from(NAMES[WAY] != "no-unit"));
    }
}

impl<const WAY: usize> LinkWords for Link<WAY> {}

impl<const WAY: usize> LinkLaw for Link<WAY> {
    type Config = LinkSettings;
    type Report = Told<WAY>;
    type View = ();

    fn name(_: &LinkSettings) -> &'static str {
        NAMES[WAY]
    }

    fn start(settings: &LinkSettings, phase: Duration, second_phase: Duration) -> Self {
        Self(shares::Link::start(settings, phase, second_phase))
    }

    fn first_interval(settings: &LinkSettings) -> Duration {
        settings.interval
    }

    fn shortest_interval(settings: &LinkSettings, _: Duration) -> Duration {
        let longer = u64::from(NAMES[WAY] == "hurries");
        Duration(settings.interval.0.saturating_add(longer))
    }

    fn capacity(settings: &LinkSettings) -> Rate {
        settings.capacity
    }

    fn configure_capacity(settings: &mut LinkSettings, capacity: Rate) {
        settings.capacity = capacity;
    }

    fn set_capacity(&mut self, capacity: Rate) {
        self.0.set_capacity(capacity);
    }

    fn on_arrival(&mut self, now: Time, packet: &impl Packet) {
        self.0.on_arrival(now, packet);
    }

    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        if NAMES[WAY] == "lowers-nothing" {
            return;
        }
        if NAMES[WAY] == "sets-ecn" {
            packet.set_ecn(3);
        }
        assert!(NAMES[WAY] != "panics" || packet.size() != Bytes(u64::MAX), "a test breaks it");
        self.0.on_departure(now, packet, backlog);
        if let Some(header) = packet.header::<Header>() {
            let most = match NAMES[WAY] {
                "narrow" => 0xffff,
                "remembers-runs" => 10_000 + PACKETS.fetch_add(1, Ordering::Relaxed) % 1000,
                _ => u32::MAX,
            };
            packet.set_header(Header { share: header.share.min(most), ..header });
        }
        if NAMES[WAY] == "misreads"
            && let Some(Misread(header)) = packet.header()
        {
            packet.set_header(Misread(header));
        }
        if NAMES[WAY] == "raises"
            && let Some(header) = packet.header::<Header>()
        {
            packet.set_header(Header { share: header.share.max(1000), ..header });
        }
    }

    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        self.0.only_lowers(came, left)
    }

    fn pool(&self, _: &impl Packet) -> Option<Pool> {
        match NAMES[WAY] {
            "overdraws" => Some(Pool { left: 10, part: 1 }),
            "grants-all" => Some(Pool { left: 1, part: 2 }),
            _ => None,
        }
    }

    fn next_deadline(&self) -> Time {
        self.0.next_deadline()
    }

    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        if NAMES[WAY] != "stands-still" {
            self.0.on_deadline(now, backlog);
        }
    }

    fn report(&self) -> Told<WAY> {
        Told(self.0.report())
    }

    fn remembers(settings: &LinkSettings) -> Option<Remembers> {
        shares::Link::remembers(settings)
    }
}

#[derive(Clone, Debug)]
struct Sender<const WAY: usize>(shares::Sender);

impl<const WAY: usize> SenderWords for Sender<WAY> {}

impl<const WAY: usize> SenderLaw for Sender<WAY> {
    type Config = SenderSettings;
    type Echo = Echo;

    fn name(_: &SenderSettings) -> &'static str {
        NAMES[WAY]
    }

    fn needs(settings: &SenderSettings) -> Needs {
        shares::Sender::needs(settings)
    }

    fn start(settings: &SenderSettings, mss: Bytes, initial_window: Bytes) -> Self {
        Self(shares::Sender::start(settings, mss, initial_window))
    }

    fn seed(&mut self, seed: u64) {
        self.0.seed(seed);
    }

    fn on_ack(&mut self, settings: &SenderSettings, now: Time, ack: &Ack) {
        self.0.on_ack(settings, now, ack);
    }

    fn on_loss(&mut self, settings: &SenderSettings, now: Time, flight: Bytes) {
        self.0.on_loss(settings, now, flight);
    }

    fn on_timeout(&mut self, settings: &SenderSettings, now: Time, flight: Bytes, is_first: bool) {
        self.0.on_timeout(settings, now, flight, is_first);
    }

    fn on_restart(&mut self, settings: &SenderSettings, now: Time, initial_window: Bytes) {
        self.0.on_restart(settings, now, initial_window);
    }

    fn on_send(&mut self, settings: &SenderSettings, now: Time, send: &Send, packet: &mut impl Packet) {
        if NAMES[WAY] != "no-header" {
            self.0.on_send(settings, now, send, packet);
        }
        if NAMES[WAY] == "sends-other" {
            packet.add_header(Misread(Header { flow: 1, share: 1 }));
        }
    }

    fn window(&self) -> Bytes {
        if NAMES[WAY] == "no-window" { Bytes(0) } else { self.0.window() }
    }

    fn pacing_rate(&self, settings: &SenderSettings, srtt: Duration) -> Option<Rate> {
        // A byte in 30 years.
        if NAMES[WAY] == "silent" { Some(Rate(0)) } else { self.0.pacing_rate(settings, srtt) }
    }
}

const SERIES: &[Column] = &[Column::new("share_Bps", "Share of a flow")];

fn broken<const WAY: usize>() -> Protocol {
    Protocol {
        name: NAMES[WAY],
        about: "a law that a test breaks",
        page: "shares",
        look: Look::new(Hue::Ink, Shape::Square, 4),
        link_series: if NAMES[WAY] == "undeclared" { &[] } else { SERIES },
        flow_series: &[],
        link: Some(outside::link::<Link<WAY>>(LinkSettings::DEFAULT)),
        sender: Some(outside::sender::<Sender<WAY>>(SenderSettings)),
    }
}

/// What is refused of a broken law, in words.
fn refused(name: &str) -> Vec<String> {
    let protocol = Protocol::of(name).expect("it was added");
    let words = answers(protocol).into_iter().filter_map(|(question, answer)| match answer {
        Answer::No(broken) => Some(format!("{question}: {broken}")),
        _ => None,
    });
    words.collect()
}

#[test]
fn each_way_to_break_a_law_is_found() {
    outside::add(vec![
        broken::<0>(),
        broken::<1>(),
        broken::<2>(),
        broken::<3>(),
        broken::<4>(),
        broken::<5>(),
        broken::<6>(),
        broken::<7>(),
        broken::<8>(),
        broken::<9>(),
        broken::<10>(),
        broken::<11>(),
        broken::<12>(),
        broken::<13>(),
        broken::<14>(),
        broken::<15>(),
        broken::<16>(),
        broken::<17>(),
    ])
    .expect("the names are free");
    assert_eq!(outside::add(Vec::new()), Err(AddError::Twice));
    assert_eq!(refused("sound"), Vec::<String>::new());
    for (name, question, says) in [
        ("raises", "any input: the link", "raised"),
        ("stands-still", "any input: the link", "its next deadline is"),
        ("panics", "any input: the link", "it panics: a test breaks it"),
        ("hurries", "control intervals", "where it says at least"),
        ("lowers-nothing", "an overloaded link", "0 of 5000 packets"),
        ("no-window", "any input: the sender", "its window is 0 B"),
        ("no-header", "any input: the sender", "lacks a header"),
        ("silent", "10 Mbit/s", "delivers nothing from 5 s to 10 s"),
        ("sets-ecn", "any input: the link", "left with 3"),
        ("no-unit", "any input: the link", "a denominator of 0"),
        ("overdraws", "no interval grants more", "11 granted of a pool of 10"),
        ("remembers-runs", "10 Mbit/s", "sees another run than the reference"),
        ("narrow", "quantisation, 10 Gbit/s", "at least 1 % are asked for"),
        ("undeclared", "series", "secret_Bps of links is not declared"),
        ("misreads", "any input: the link", "Misread is read as another than was written"),
        ("sends-other", "any input: the sender", "Misread is read as another than was written"),
        ("grants-all", "no interval grants more", "a packet's part is 2 of a pool with 1 left"),
    ] {
        let found = refused(name);
        let is_found = found.iter().any(|text| text.starts_with(question) && text.contains(says));
        assert!(is_found, "{name} is refused for {found:?}");
    }
}

/// One more than are kept.
const MANY: &[Column] = &[Column::new("share_Bps", "Share of a flow"); 9];

#[test]
fn a_protocol_that_can_not_be_on_the_list_is_refused() {
    let named = |name| Protocol { name, ..broken::<0>() };
    let empty = Protocol { link: None, sender: None, ..named("empty") };
    for (protocols, error) in [
        (vec![named("xcp")], AddError::Taken("xcp")),
        (vec![named("Sound")], AddError::Name("Sound")),
        (vec![named("")], AddError::Name("")),
        (vec![named("sound"), named("sound")], AddError::Taken("sound")),
        (vec![empty], AddError::Empty("empty")),
        (vec![named("other")], AddError::Called("other", "sound")),
        (vec![named("none")], AddError::Taken("none")),
        (vec![Protocol { link_series: MANY, ..named("other") }], AddError::Series("other", 9)),
    ] {
        assert_eq!(outside::add(protocols), Err(error));
    }
}
