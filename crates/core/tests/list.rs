//! The list of protocols: what holds for every law on it, on any input, and that each has its page.

#[path = "xcp/hostile.rs"]
mod hostile;
#[path = "xcp/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::xcp::Header;
use congestlab_core::law::{
    Ack, Ask, Carried, Delivery, Echo, Expected, Link, LinkConfig, Listening, Numbers, Packet, Protocol,
    Reply, Segment, Send, Sender, SenderConfig, Series as _, Tag, Turn, Words,
};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};
use random::Random;

/// Sets every part of a configuration to anything; says whether a span became zero.
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
            assert!(words.contains(&value.word()));
        }
    });
    has_zero
}

/// A packet that has every header that a law asks for, or none, with anything in it.
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
        assert!((1..=3).contains(&code), "{code} is no code");
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
}

fn any_packet(random: &mut Random) -> Any {
    let has_header = random.below(4) > 0;
    let words = has_header.then(|| std::array::from_fn(|_| random.half()));
    Any { size: Bytes(random.word()), words, ecn: random.below(4) as u8, memory: [0; 8] }
}

/// The same packet with this header.
fn with(header: Header, mut packet: Any) -> Any {
    packet.add_header(header);
    packet
}

/// Runs `check` on the default configuration of each protocol and on scrambled ones.
fn links(seed: u64, check: impl Fn(&mut Random, &LinkConfig, bool)) {
    let mut random = Random::new(seed);
    for protocol in Protocol::all() {
        let Some(config) = &protocol.link else { continue };
        for round in 0..2000 {
            let mut config = config.clone();
            config.set_capacity(Rate(random.word()));
            let has_zero = round % 3 > 0 && scramble(&mut config, &mut random);
            check(&mut random, &config, has_zero);
        }
    }
}

/// Nothing overflows (tests run with overflow checks), nothing is raised by the law's own reading, a packet without
/// header gets none, and a deadline that was served lies in the future.
#[test]
fn every_link_law_survives_any_input_and_never_raises_what_others_granted() {
    links(21, |random, config, has_zero| {
        let mut law = Link::new(config, Duration(random.word()), Duration(random.word()));
        let mut now = 0u64;
        let mut memory = [0; 8];
        for _ in 0..100 {
            now = now.saturating_add(random.word() >> (20 + random.below(40)));
            let packet = Any { memory, ..any_packet(random) };
            match random.below(8) {
                0..=2 => law.on_arrival(Time(now), &packet),
                3..=5 => {
                    let mut out = packet;
                    let _ = law.view(&packet);
                    law.on_departure(Time(now), &mut out, Bytes(random.word()));
                    assert_eq!(out.ecn == 0, packet.ecn == 0, "a code came or went");
                    assert_eq!(out.words.is_some(), packet.words.is_some(), "a header came or went");
                    assert!(law.only_lowers(&packet, &out), "{config:?}: raised");
                    memory = out.memory;
                }
                6 => law.set_capacity(Rate(random.word())),
                _ => {
                    now = now.max(law.next_deadline().0);
                    law.on_deadline(Time(now), Bytes(random.word()));
                    assert!(law.next_deadline() > Time(now) || now == u64::MAX || has_zero, "{config:?}");
                    law.report().each(&mut |name, _, unit| assert!(unit > 0 && !name.is_empty()));
                }
            }
        }
    });
}

/// The longest span of a scenario, ns.
const SPAN_MAX: u64 = 10_000_000 * 1_000_000_000;

/// Runs a law over 50 deadlines; before each comes a packet with a header that states a round trip. Returns the shortest
/// interval but the first.
fn shortest(
    config: &LinkConfig,
    random: &mut Random,
    mut stated: impl FnMut(&mut Random) -> u32,
) -> Duration {
    let mut law = Link::new(config, Duration(1 + random.below(1000)), Duration(1 + random.below(1000)));
    let (mut ended, mut least) = (None, Duration(u64::MAX));
    for _ in 0..50 {
        let now = law.next_deadline();
        if now == Time::NEVER {
            break;
        }
        let header = Header { x: 1 + random.half() / 2, rtt: stated(random), ..random.header() };
        law.on_arrival(now, &with(header, any_packet(random)));
        let before = law.report().intervals();
        law.on_deadline(now, Bytes(random.word()));
        if law.report().intervals() > before
            && let Some(last) = ended.replace(now)
        {
            least = least.min(now - last);
        }
    }
    least
}

/// What the memory of a run is judged by: each interval can be an event.
#[test]
fn no_control_interval_but_the_first_is_shorter_than_its_law_says() {
    links(24, |random, config, _| {
        let mut config = config.clone();
        config.each(&mut |_, _, field| {
            if let Field::Span(value) = field {
                *value = Duration(1 + value.0 % SPAN_MAX);
            }
        });
        let round_trip = Duration(random.word() % SPAN_MAX);
        let said = config.shortest_interval(round_trip);
        let longer = |random: &mut Random| {
            let more = random.half() >> random.below(32);
            round_trip.to_header().saturating_add(more)
        };
        let found = shortest(&config, random, longer);
        assert!(said > Duration(0) && found >= said, "{found:?}, at least {said:?} with {config:?}");
    });
    // And as short as it says they are.
    let mut random = Random::new(25);
    for config in Protocol::all().filter_map(|protocol| protocol.link.as_ref()) {
        for round_trip in [Duration(1), Duration(10_000_000), Duration(40_000_000)] {
            // A law that is slow to believe what packets state is so where it begins with it.
            let mut is_so = false;
            let mut begins = vec![config.clone()];
            for place in 0.. {
                let (mut begun, mut spans) = (config.clone(), 0);
                begun.each(&mut |_, _, field| {
                    if let Field::Span(value) = field {
                        if spans == place {
                            *value = config.shortest_interval(round_trip);
                        }
                        spans += 1;
                    }
                });
                if place >= spans {
                    break;
                }
                begins.push(begun);
            }
            for config in &begins {
                let (found, said) = (
                    shortest(config, &mut random, |_| round_trip.to_header()),
                    config.shortest_interval(round_trip),
                );
                assert!(found >= said, "{found:?}, at least {said:?} with {config:?}");
                is_so |= found == said;
            }
            assert!(is_so, "{config:?}");
        }
    }
}

/// A law says itself what a raise is. It does not take every change for none: what a busy link does to packets of the
/// protocol's own sender is a raise the other way round.
#[test]
fn what_a_link_law_lowered_is_a_raise_the_other_way_round() {
    const MS: u64 = 1_000_000;
    for protocol in Protocol::all() {
        let (Some(config), Some(own)) = (&protocol.link, &protocol.sender) else { continue };
        let mut config = config.clone();
        config.set_capacity(Rate(1_250_000));
        let mut law = Link::new(&config, Duration(MS), Duration(2 * MS));
        let (size, srtt) = (Bytes(1500), Duration(100 * MS));
        let mut sender = Sender::new(own, size, Bytes(15_000));
        let mut lowered = 0;
        // Twelve times as much as the link carries.
        for index in 0..5000 {
            let now = Time(u64::from(index) * MS / 10);
            let mut came = Carried { size, ..Carried::default() };
            if own.needs().segments {
                let (sequence, acknowledgment) = (1 + 1460 * index, 3_000_000);
                let mut segment = Segment { sequence, acknowledgment, length: 1500, ..Segment::default() };
                segment.seal();
                came.add_header(segment);
            }
            let (awnd, backlog) = (Bytes(u64::MAX), Bytes(u64::MAX));
            let send = Send { size, srtt, awnd, backlog, ..Send::default() };
            sender.on_send(own, now, &send, srtt, &mut came);
            while law.next_deadline() <= now {
                law.on_deadline(now, Bytes(60_000));
            }
            law.on_arrival(now, &came);
            let mut left = came;
            law.on_departure(now, &mut left, Bytes(60_000));
            assert!(law.only_lowers(&came, &left), "{}: packet {index} was raised", protocol.name);
            lowered += u64::from(!law.only_lowers(&left, &came));
        }
        assert!(lowered > 100, "{}: {lowered} packets", protocol.name);
    }
}

/// What packets are granted in an interval is no more than its pool had, for laws that have one.
#[test]
fn no_link_law_grants_more_than_its_pool() {
    let granting = std::cell::RefCell::new(BTreeMap::new());
    links(22, |random, config, _| {
        let mut law = Link::new(config, Duration(1), Duration(u64::MAX));
        let ask = |random: &mut Random| {
            let header = Header { delta: i32::MAX, ..random.header() };
            with(header, Any { size: Bytes(40 + random.below(9000)), ..any_packet(random) })
        };
        let packets: Vec<Any> = (0..1 + random.below(40)).map(|_| ask(random)).collect();
        packets.iter().for_each(|packet| law.on_arrival(Time(0), packet));
        law.on_deadline(law.next_deadline(), Bytes(0));
        let (mut whole, mut granted) = (None, 0u128);
        for _ in 0..100 {
            let mut packet = packets[random.below(packets.len() as u64) as usize];
            let Some(pool) = law.pool(&packet) else { return };
            let whole = *whole.get_or_insert(u128::from(pool.left));
            law.on_departure(Time(1), &mut packet, Bytes(0));
            // Where a header cannot hold what there is to give, less is taken from the pool.
            let given: Header = packet.header().expect("it came with one");
            if given.delta < i32::MAX {
                granted += u128::from(pool.part);
            }
            assert!(granted <= whole, "{granted} of {whole} with {config:?}");
        }
        *granting.borrow_mut().entry(config.name()).or_insert(0u128) += granted;
    });
    let granting = granting.into_inner();
    assert!(granting.len() >= 2 && granting.values().all(|&granted| granted > 0), "{granting:?}");
}

/// Nothing overflows, and the window is never below one segment, at most a full IP packet.
#[test]
fn every_sender_law_survives_any_input_and_keeps_one_segment() {
    let mut random = Random::new(23);
    for protocol in Protocol::all() {
        let Some(config) = &protocol.sender else { continue };
        for round in 0..1500 {
            let mut config = config.clone();
            if round % 3 > 0 {
                scramble(&mut config, &mut random);
            }
            run_sender(&mut random, &config);
        }
    }
}

fn run_sender(random: &mut Random, config: &SenderConfig) {
    let mss = if random.coin() { 1500 } else { random.word().max(1) };
    let mut law = Sender::new(config, Bytes(mss), Bytes(random.word()));
    law.seed(random.next());
    let mut echo = Echo::new(config, Bytes(mss));
    let mut now = 0u64;
    for _ in 0..100 {
        now = now.saturating_add(random.word() >> (20 + random.below(40)));
        let flight = Bytes(random.word());
        match random.below(13) {
            11 => {
                let ask = Ask { srtt: Duration(random.word()), awnd: Bytes(random.word()) };
                let turn = law.probe(config, Time(now), &ask);
                assert!(config.needs().probes || turn == Turn::Wait(Time::NEVER));
            }
            12 => law.on_probe_ack(config, Bytes(random.word())),
            10 => {
                let delivery = Delivery {
                    total: Bytes(random.word()),
                    newly: Bytes(random.word()),
                    prior: Bytes(random.word()),
                    interval: Duration(random.word()),
                    lost: Bytes(random.word()),
                    prior_flight: flight,
                    flight: Bytes(random.word()),
                    rtt: Duration(random.word()),
                    is_app_limited: random.coin(),
                    in_recovery: random.coin(),
                };
                let _ = law.on_delivery(config, Time(now), &delivery);
            }
            0..=2 => {
                let reply = Reply { word: random.half(), byte: random.next() as u8 };
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
                let mut packet = Any { words: None, ecn: 1, ..any_packet(random) };
                let is_shown = config.needs().segments && random.coin();
                if is_shown {
                    packet.words = Some(std::array::from_fn(|_| random.half()));
                }
                law.on_send(config, Time(now), &send, Duration(random.word()), &mut packet);
                assert_eq!(packet.words.is_some(), is_shown || config.needs().header_bytes > 0);
            }
            5 | 6 => {
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
                let _ = echo.on_data(config, &any_packet(random), receiver);
                let _ = echo.on_ack(config, receiver);
            }
            7 => law.on_loss(config, Time(now), flight),
            8 => law.on_timeout(config, Time(now), flight, random.coin()),
            _ => law.on_restart(config, Time(now), Bytes(random.word())),
        }
        let _ = law.pacing_rate(config, Duration(random.word()));
        assert!(law.window() >= Bytes(mss.clamp(1, 65_535)), "{:?} with {config:?}", law.window());
    }
}

/// A protocol without a page, or that the tables of the scenario language leave out, is not done.
#[test]
fn every_protocol_has_its_page_and_is_in_the_table() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let scenario = fs::read_to_string(docs.join("scenario.md")).unwrap();
    let rows: Vec<&str> = scenario.lines().filter(|line| line.starts_with("| `law` |")).collect();
    let [of_links, of_flows] = rows[..] else { panic!("one row for links, one for flows: {rows:?}") };
    for protocol in Protocol::all() {
        let page = docs.join("protocols").join(format!("{}.md", protocol.page));
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        let name = protocol.name;
        assert!(text.to_lowercase().contains(name), "{} does not name {name}", page.display());
        assert!(!protocol.about.is_empty() && !protocol.about.contains('\n'), "{name}");
        assert!(protocol.link.is_some() || protocol.sender.is_some(), "{name} runs nowhere");
        let is_listed =
            |row: &str| row.contains(&format!("`{name}`")) || row.contains(&format!("`\"{name}\"`"));
        assert!(protocol.link.is_none() || is_listed(of_links), "{name} is not in {of_links}");
        assert!(protocol.sender.is_none() || is_listed(of_flows), "{name} is not in {of_flows}");
    }
}

/// A name is one protocol, and finds it.
#[test]
fn names_are_unique() {
    for protocol in Protocol::all() {
        assert_eq!(Protocol::all().filter(|other| other.name == protocol.name).count(), 1);
        assert!(std::ptr::eq(Protocol::of(protocol.name).unwrap(), protocol));
    }
    assert!(Protocol::of("nobody").is_none());
}

/// Modules of the laws, and the variants of the list.
const MODULES: &[&str] = &[
    "bbr",
    "bic",
    "cubic",
    "dctcp",
    "highspeed",
    "mpcp",
    "peach",
    "pxcp",
    "rcp",
    "reno",
    "vegas",
    "xcp",
    "xcp_i",
    "xcp_r",
    "xcp_r_v0",
];
const VARIANTS: &[&str] = &[
    "Bbr",
    "Bic",
    "Cubic",
    "Dctcp",
    "HighSpeed",
    "Mpcp",
    "Peach",
    "Pxcp",
    "Rcp",
    "Reno",
    "Vegas",
    "Xcp",
    "XcpR",
    "XcpRV0",
];
/// Types of the list, and the names by which they are imported.
const ENUMS: &[&str] = &["LinkConfig", "SenderConfig", "Law", "LinkReport", "LinkView", "Links", "Senders"];

const WIRE: &str = "the bytes of a law's header; its codec is to move into the law's folder";
const XCP_I: &str =
    "XCP-i is nodes, clouds and their messages more than a law; the rest of it is in `net::xcp_i`";
const KERNEL: &str = "the kernel's programs run XCP; they are to be made for any link law";
const LAB: &str = "which law of the kernel stands for which law here";
const NS2: &str = "which agent of ns-2 stands for which law here";
const EXPLAINED: &str = "sentences about a law, which are to be told by the law";
const CHECKED: &str = "relations between a law's settings, which are to be checked by the law";
const BYTES: &str = "headers as packet traces have them, whose codec is to move into the laws' folders";

/// Files outside the laws' folder that name a law, with the reason. The list only shrinks.
const NAMERS: &[(&str, &str)] = &[
    ("cli/src/linux/host.rs", KERNEL),
    ("cli/src/ns2/network.rs", NS2),
    ("core/src/wire/option.rs", WIRE),
    ("core/src/wire/segment.rs", WIRE),
    ("core/src/wire/xcp.rs", WIRE),
    ("core/src/wire/xcp_extended.rs", WIRE),
    ("linux/src/host.rs", KERNEL),
    ("linux/src/lab/mod.rs", LAB),
    ("linux/src/lab/network.rs", LAB),
    ("linux/src/link/frame.rs", BYTES),
    ("linux/src/link/mod.rs", BYTES),
    ("linux/src/link/report.rs", KERNEL),
    ("linux/src/router.rs", KERNEL),
    ("net/src/estimator/halves.rs", XCP_I),
    ("net/src/estimator/mod.rs", XCP_I),
    ("net/src/xcp_i/cloud.rs", XCP_I),
    ("net/src/xcp_i/edge.rs", XCP_I),
    ("net/src/xcp_i/mod.rs", XCP_I),
    ("scenario/src/showing/capture/headers.rs", BYTES),
    ("scenario/src/showing/explain.rs", EXPLAINED),
    ("scenario/src/language/resolve/flow.rs", CHECKED),
    ("scenario/src/language/resolve/link.rs", CHECKED),
    ("scenario/src/language/resolve/mpcp.rs", CHECKED),
    ("scenario/src/language/resolve/xcp_i.rs", XCP_I),
    ("sim/src/cloud.rs", XCP_I),
    ("sim/src/network.rs", XCP_I),
];

/// True if code names the module of a law, by `law::` or in braces behind it, or a variant of the list.
fn names_a_law(code: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let names = |text: &str, list: &[&str]| text.split(|c| !is_word(c)).any(|word| list.contains(&word));
    let paths = ["law::", "laws::"].iter().flat_map(|path| code.match_indices(path));
    let mut modules = paths.map(|(at, path)| &code[at + path.len()..]);
    let first_word = |text: &str| text.split(|c| !is_word(c)).next().unwrap_or_default().to_owned();
    modules.any(|rest| match rest.strip_prefix('{') {
        Some(inside) => names(inside.split('}').next().unwrap_or_default(), MODULES),
        None => MODULES.contains(&first_word(rest).as_str()),
    }) || ENUMS.iter().any(|name| {
        let variants =
            code.match_indices(name).filter_map(|(at, _)| code[at + name.len()..].strip_prefix("::"));
        variants.map(first_word).any(|word| VARIANTS.contains(&word.as_str()))
    })
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.to_string_lossy().replace('\\', "/");
        if path.is_dir() && !name.ends_with("core/src/law") {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Which law it is, is asked in the list and in the law's own folder. Who asks elsewhere has a reason, until it is gone.
#[test]
fn nobody_but_the_list_names_a_law() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for room in ["core", "net", "sim", "scenario", "linux", "cli"] {
        sources(&crates.join(room).join("src"), &mut found);
    }
    assert!(found.len() > 100, "{} files", found.len());
    let code = |text: &str| {
        let end = text.find("#[cfg(test)]").unwrap_or(text.len());
        let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let namers = found.iter().filter(|(_, text)| names_a_law(&code(text)));
    let namers: Vec<&str> = namers.filter_map(|(name, _)| name.split("/../").nth(1)).collect();
    for name in &namers {
        assert!(NAMERS.iter().any(|(known, _)| known == name), "{name} names a law: let the law tell it");
    }
    for (name, reason) in NAMERS {
        assert!(namers.contains(name), "{name} names no law any more ({reason}): take it off the list");
    }
}
