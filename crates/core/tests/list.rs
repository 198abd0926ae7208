//! The list of protocols: what holds for every law on it, on any input, and that each has its page.

#[path = "xcp/hostile.rs"]
mod hostile;
#[path = "xcp/random.rs"]
mod random;

use std::fs;
use std::path::Path;

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::xcp::Header;
use congestlab_core::law::{
    Ack, Ask, Data, Delivery, Echo, Link, LinkConfig, Packet, Protocol, Send, Sender, SenderConfig,
    Series as _, Turn, mpcp, xcp_r,
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

#[derive(Clone, Copy)]
struct Any {
    size: Bytes,
    header: Option<Header>,
    ecn: u8,
    segment: Option<mpcp::Segment>,
    flow: mpcp::Flow,
}

impl Packet for Any {
    fn size(&self) -> Bytes {
        self.size
    }

    fn xcp(&self) -> Option<Header> {
        self.header
    }

    fn set_xcp(&mut self, header: Header) {
        self.header = Some(header);
    }

    fn ecn(&self) -> u8 {
        self.ecn
    }

    fn set_ecn(&mut self, code: u8) {
        assert!((1..=3).contains(&code), "{code} is no code");
        self.ecn = code;
    }

    fn segment(&self) -> Option<mpcp::Segment> {
        self.segment
    }

    fn flow(&mut self, _: Time, _: bool) -> Option<&mut mpcp::Flow> {
        Some(&mut self.flow)
    }
}

fn any_packet(random: &mut Random) -> Any {
    let header = (random.below(4) > 0).then(|| random.header());
    let segment = random.coin().then(|| mpcp::Segment {
        source: random.half(),
        destination: random.half(),
        ports: random.half(),
        sequence: random.half(),
        acknowledgment: random.half(),
        control: random.half(),
        checksum: random.half() as u16,
        identification: random.half() as u16,
        length: random.half() as u16,
        rest: random.half() as u16,
    });
    let ecn = random.below(4) as u8;
    Any { size: Bytes(random.word()), header, ecn, segment, flow: mpcp::Flow::default() }
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

/// Nothing overflows (tests run with overflow checks), no demand is raised, nothing but the demand
/// changes, a packet without header gets none, and a deadline that was served lies in the future.
#[test]
fn every_link_law_survives_any_input_and_never_raises_a_demand() {
    links(21, |random, config, has_zero| {
        let mut law = Link::new(config, Duration(random.word()), Duration(random.word()));
        let mut now = 0u64;
        let mut flow = mpcp::Flow::default();
        for _ in 0..100 {
            now = now.saturating_add(random.word() >> (20 + random.below(40)));
            let packet = Any { flow, ..any_packet(random) };
            match random.below(8) {
                0..=2 => law.on_arrival(Time(now), &packet),
                3..=5 => {
                    let mut out = packet;
                    let _ = law.share(&packet);
                    law.on_departure(Time(now), &mut out, Bytes(random.word()));
                    assert_eq!(out.ecn == 0, packet.ecn == 0, "a code came or went");
                    assert_eq!(out.segment, packet.segment, "headers changed");
                    flow = out.flow;
                    match (packet.header, out.header) {
                        (Some(asked), Some(given)) => {
                            assert!(given.delta <= asked.delta, "{asked:?} raised to {given:?}");
                            assert_eq!(Header { delta: asked.delta, ..given }, asked);
                        }
                        (None, None) => {}
                        found => panic!("a header came or went: {found:?}"),
                    }
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
        law.on_arrival(now, &Any { header: Some(header), ..any_packet(random) });
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
            let found = shortest(config, &mut random, |_| round_trip.to_header());
            assert_eq!(found, config.shortest_interval(round_trip), "{config:?}");
        }
    }
}

/// What packets that ask for everything are granted in an interval is no more than its pool had.
#[test]
fn no_link_law_grants_more_than_its_pool() {
    links(22, |random, config, _| {
        let mut law = Link::new(config, Duration(1), Duration(u64::MAX));
        let ask = |random: &mut Random| {
            let header = Header { delta: i32::MAX, ..random.header() };
            Any { size: Bytes(40 + random.below(9000)), header: Some(header), ..any_packet(random) }
        };
        let packets: Vec<Any> = (0..1 + random.below(40)).map(|_| ask(random)).collect();
        packets.iter().for_each(|packet| law.on_arrival(Time(0), packet));
        law.on_deadline(law.next_deadline(), Bytes(0));
        let (mut pool, mut granted) = (None, 0u128);
        for _ in 0..100 {
            let mut packet = packets[random.below(packets.len() as u64) as usize];
            let Some(share) = law.share(&packet) else { return };
            let pool = *pool.get_or_insert(u128::from(share.grants_left));
            law.on_departure(Time(1), &mut packet, Bytes(0));
            // Where a header cannot hold what there is to give, less is taken from the pool.
            if packet.header.is_some_and(|header| header.delta < i32::MAX) {
                granted += u128::from(share.grant);
            }
            assert!(granted <= pool, "{granted} of {pool} with {config:?}");
        }
    });
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
    let mut echo = config.echo(Bytes(mss));
    let mut now = 0u64;
    for _ in 0..100 {
        now = now.saturating_add(random.word() >> (20 + random.below(40)));
        let flight = Bytes(random.word());
        match random.below(13) {
            11 => {
                let ask = Ask { srtt: Duration(random.word()), awnd: Bytes(random.word()) };
                let turn = law.probe(config, Time(now), &ask);
                assert!(config.probes() || turn == Turn::Wait(Time::NEVER));
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
                let reply = xcp_r::Reply { cwnd: random.half(), epoch: random.next() as u8 };
                let ack = Ack {
                    acked: Bytes(random.word()),
                    flight,
                    awnd: Bytes(random.word()),
                    rtt: Duration(random.word()),
                    srtt: Duration(random.word()),
                    feedback: random.half() as i32,
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
                let header = law.on_send(config, Time(now), &send);
                assert_eq!(header.is_some(), config.header_bytes() > 0);
                let _ = law.on_send_window(config);
                let place = law.on_send_place(config, Time(now), send.srtt);
                assert_eq!(place.is_some(), config.mpcp().is_some());
                let most = config.mpcp().map_or(1, |chain| chain.n.clamp(1, mpcp::DIGITS_MAX));
                assert!(place.is_none_or(|place| u32::from(place) < most));
            }
            5 | 6 => {
                let window = xcp_r::Header {
                    cwnd: random.half(),
                    epoch: random.next() as u8,
                    is_reset: random.coin(),
                };
                let awnd = Bytes(random.word());
                let data = Data { header: random.header(), window, mss: Bytes(mss), awnd };
                config.on_data(&mut echo, &data);
                if let Echo::Chain(echo) = &mut echo {
                    echo.on_data(mpcp::Echoed(random.half()));
                }
                let _ = echo.on_ack();
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
