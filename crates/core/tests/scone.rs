//! SCONE (docs/design/modern.md 9).

#[path = "xcp/random.rs"]
mod random;

use std::collections::BTreeMap;

use congestlab_core::law::scone::{
    Echo, Header, Held, Link, LinkConfig, Sender, SenderConfig, UNKNOWN, code, rate,
};
use congestlab_core::law::{
    Ack, Carried, EchoLaw as _, LinkLaw as _, Listening, Packet, Reply, Send, SenderLaw as _, Tag, Words,
};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Time};
use random::Random;

const S: u64 = 1_000_000_000;
const MSS: u64 = 1500;
const FLOW: SenderConfig = SenderConfig::DEFAULT;

fn at(seconds: u64) -> Time {
    Time(seconds * S)
}

fn bits(code: u8) -> u64 {
    rate(code).expect("it is a rate").0
}

fn packet(flow: u32, signal: u8) -> Carried {
    let mut packet = Carried { size: Bytes(MSS), ..Carried::default() };
    packet.add_header(Header { flow, signal });
    packet
}

/// VM9.1 and VM9.7.
#[test]
fn vm9_1_rates_of_codes() {
    for (code, expected) in [
        (0, 100_000),
        (1, 112_201),
        (2, 125_892),
        (3, 141_253),
        (19, 891_250),
        (20, 1_000_000),
        (39, 8_912_509),
        (40, 10_000_000),
        (60, 100_000_000),
        (80, 1_000_000_000),
        (100, 10_000_000_000),
        (120, 100_000_000_000),
        (126, 199_526_231_496),
    ] {
        assert_eq!(rate(code), Some(BitRate(expected)), "code {code}");
    }
    assert_eq!(rate(UNKNOWN), None);
    assert_eq!(rate(255), None);
    for code in 0..126 {
        // 10^(5 + n / 20), rounded down; 10^(1 / 20) so often.
        let exact: f64 = (0..code).fold(1e5, |rate, _| rate * 1.122_018_454_301_963_3);
        let found = bits(code) as f64;
        assert!(found <= exact * (1.0 + 1e-12) && found + 1.0 > exact * (1.0 - 1e-12), "{code}: {exact}");
        assert!(bits(code) < bits(code + 1));
        if code < 107 {
            assert_eq!(bits(code + 20) / 10, bits(code));
        }
    }
}

/// VM9.2.
#[test]
fn vm9_2_codes_of_rates() {
    for (bits, expected) in [
        (0, 0),
        (99_999, 0),
        (112_200, 0),
        (112_201, 1),
        (5_000_000, 33),
        (9_900_000, 39),
        (25_000_000, 47),
        (300_000_000, 69),
        (u64::MAX, 126),
    ] {
        assert_eq!(code(BitRate(bits)), expected, "{bits} bit/s");
    }
    for number in 0..UNKNOWN {
        assert_eq!(code(BitRate(bits(number))), number);
        assert_eq!(code(BitRate(bits(number) - 1)), number.saturating_sub(1));
    }
}

/// A link with this capacity that advises all of it to one flow.
fn alone(bits: u64) -> LinkConfig {
    LinkConfig {
        capacity: BitRate(bits).bytes(),
        eta: congestlab_core::units::Ratio::ONE,
        ..LinkConfig::DEFAULT
    }
}

/// A link with a table of flows.
struct Router {
    law: Link,
    records: BTreeMap<[u32; 3], [u32; 8]>,
}

struct Remembered<'a> {
    packet: &'a mut Carried,
    records: &'a mut BTreeMap<[u32; 3], [u32; 8]>,
}

impl Packet for Remembered<'_> {
    fn size(&self) -> Bytes {
        self.packet.size
    }

    fn ecn(&self) -> u8 {
        self.packet.ecn()
    }

    fn set_ecn(&mut self, code: u8) {
        self.packet.set_ecn(code);
    }

    fn words(&self, tag: Tag) -> Option<&Words> {
        self.packet.words(tag)
    }

    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        self.packet.words_mut(tag)
    }

    fn add(&mut self, tag: Tag) -> Option<&mut Words> {
        self.packet.add(tag)
    }

    fn memory(&mut self, flow: [u32; 3], _: Time, _: bool) -> Option<&mut [u32]> {
        Some(self.records.entry(flow).or_default())
    }
}

impl Router {
    fn new(config: LinkConfig) -> Self {
        Self { law: Link::new(config, config.interval), records: BTreeMap::new() }
    }

    fn until(&mut self, now: Time) {
        while self.law.next_deadline() <= now {
            let due = self.law.next_deadline();
            self.law.on_deadline(due, Bytes(0));
        }
    }

    /// A packet of a flow passes; returns the code with which it leaves.
    fn passes(&mut self, now: Time, flow: u32, size: u64, signal: u8) -> u8 {
        self.until(now);
        let mut packet = Carried { size: Bytes(size), ..packet(flow, signal) };
        self.law.on_arrival(now, &packet);
        let came = packet;
        let mut known = Remembered { packet: &mut packet, records: &mut self.records };
        self.law.on_departure(now, &mut known, Bytes(0));
        assert!(self.law.only_lowers(&came, &packet));
        packet.header::<Header>().expect("it has one").signal
    }

    /// Flows send so many bit/s each from one time to another, in a packet each second; a signal each.
    fn sends(&mut self, from: u64, to: u64, flows: &[(u32, u64)]) -> Vec<u8> {
        let mut told = vec![UNKNOWN; flows.len()];
        for second in from..to {
            for (place, &(flow, bits)) in flows.iter().enumerate() {
                told[place] = self.passes(at(second), flow, bits / 8, UNKNOWN);
            }
        }
        told
    }
}

/// EM9.1 in what the law decides: all 128 signals that come over links with fair shares in all codes and one that is not known, at
/// the ends of a code's range and within. What leaves is the lower of both, and the link's own is within a step of the share.
#[test]
fn em9_1_the_advice_is_within_one_step_of_the_share() {
    for target in 0..128u8 {
        let shares = match target {
            UNKNOWN => vec![0],
            126 => vec![bits(126), bits(126) * 10 / 9],
            _ => vec![bits(target), (bits(target) + bits(target + 1)) / 2, bits(target + 1) - 1],
        };
        for share in shares {
            for signal in 0..128u8 {
                let left = Router::new(alone(share.next_multiple_of(8))).passes(Time(0), 1, MSS, signal);
                let own = Router::new(alone(share.next_multiple_of(8))).passes(Time(0), 1, MSS, UNKNOWN);
                assert_eq!(left, signal.min(own), "{signal} over {share} bit/s");
                if target == UNKNOWN {
                    assert_eq!(own, UNKNOWN, "nothing is known of the link");
                } else {
                    assert!(
                        own == target || own == target + 1 || (own == 126 && target == 126),
                        "{own}, {share}"
                    );
                    // A step is 1.122.
                    let ratio = bits(own) as f64 / share as f64;
                    assert!((0.891..1.123).contains(&ratio) || target == 126, "{own} for {share} bit/s");
                }
            }
        }
    }
}

/// Many flows are told the two codes about the share, so many each that together they have it.
#[test]
fn codes_of_many_flows_add_up_to_the_link() {
    for flows in [1u32, 2, 5, 20, 100, 1000] {
        for share in [777_777u64, 1_000_000, 1_050_000, 1_121_000, 5_000_000] {
            let mut router = Router::new(alone(share * u64::from(flows)));
            for flow in 0..flows {
                router.passes(Time(flow.into()), flow, 40, UNKNOWN);
            }
            let told: Vec<u8> = (0..flows).map(|flow| router.passes(at(1), flow, 40, UNKNOWN)).collect();
            let below = code(BitRate(share));
            assert!(told.iter().all(|&code| code == below || code == below + 1), "{told:?}");
            let sum: u64 = told.iter().map(|&code| bits(code)).sum();
            let ratio = sum as f64 / (share * u64::from(flows)) as f64;
            // A step for one flow; the circle is filled evenly to three flows.
            let most = 0.123 * (3.0 / f64::from(flows)).min(1.0);
            assert!((ratio - 1.0).abs() <= most, "{flows} flows of {share} bit/s: {ratio}");
        }
    }
}

/// A packet that asks for nothing is left alone, and a code is never raised, whoever else is there.
#[test]
fn nothing_is_raised() {
    let mut random = Random::new(77);
    let mut router = Router::new(alone(100_000_000));
    let mut now = 0;
    for _ in 0..20_000 {
        now += random.below(S);
        let signal = random.next() as u8;
        let left = router.passes(Time(now), random.next() as u32 % 50, 40 + random.below(1460), signal);
        assert!(if signal > UNKNOWN { left == signal } else { left <= signal }, "{signal}: {left}");
    }
}

/// A flow that uses half of its advice leaves to the others what it does not want, a quarter more and an eighth of theirs.
#[test]
fn what_a_limited_flow_leaves_goes_to_the_others() {
    let mut router = Router::new(alone(60_000_000));
    let all = [(1, 20_000_000), (2, 20_000_000), (3, 20_000_000)];
    router.sends(0, 60, &all);
    assert!(router.law.report().advice.0.abs_diff(2_500_000) <= 1);
    // The third now sends 6 Mbit/s.
    router.sends(60, 260, &[all[0], all[1], (3, 6_000_000)]);
    // 2 A + 7.5 + A / 8 = 60.
    let expected = (60e6 - 7.5e6) / 2.125 / 8.0;
    let report = router.law.report();
    assert_eq!((report.flows, report.limited), (3, 1));
    assert!((report.advice.0 as f64 - expected).abs() < 10.0, "{report:?}, {expected}");
}

/// A flow alone that is limited elsewhere is advised the whole link, whatever it sends: it keeps nothing from anybody. Without that it
/// was advised what is left of the link beside 1.25 of its rate, .23 of the link for .6.
#[test]
fn a_lone_flow_is_advised_the_link_whatever_it_sends() {
    for percent in [1u64, 10, 30, 50, 60, 65, 69, 75, 95] {
        let mut router = Router::new(alone(60_000_000));
        router.sends(0, 200, &[(1, 60_000_000 * percent / 100)]);
        let report = router.law.report();
        assert_eq!((report.flows, report.limited), (1, u32::from(percent < 69)), "{percent} %");
        assert_eq!(report.advice.0, 7_500_000, "{percent} %");
    }
}

/// Flows that are all limited elsewhere, by what they send, with what water filling advises: min(A, 1.25 r + A / 8) of all are the
/// link. None is advised less than it sends, nor more than that solution.
#[test]
fn limited_flows_are_not_advised_less_than_they_send() {
    const LINK: u64 = 60_000_000;
    for percents in
        [&[60u64, 10][..], &[30, 30, 30], &[50, 20, 10], &[40, 10, 5, 5], &[20, 20, 20, 20], &[5; 8]]
    {
        let flows: Vec<(u32, u64)> = (1..).zip(percents.iter().map(|part| LINK * part / 100)).collect();
        let (mut low, mut high) = (0.0, LINK as f64);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let taken: f64 =
                flows.iter().map(|&(_, sent)| (1.25 * sent as f64 + middle / 8.0).min(middle)).sum();
            if taken < LINK as f64 { low = middle } else { high = middle }
        }
        // At first all send little, and each is advised the link.
        let mut router = Router::new(alone(LINK));
        let little: Vec<(u32, u64)> = flows.iter().map(|&(flow, _)| (flow, LINK / 1000)).collect();
        router.sends(0, 200, &little);
        assert!(router.law.report().advice.0 >= LINK * 98 / 800);
        let largest = flows.iter().map(|&(_, sent)| sent).max().unwrap() as f64;
        for second in 200..500 {
            router.sends(second, second + 1, &flows);
            let advice = 8.0 * router.law.report().advice.0 as f64;
            assert!(advice + 8.0 >= largest, "{percents:?} at {second} s: {advice} for {largest}");
            // The interval after the change has packets of both.
            assert!(second < 210 || advice <= low + 16.0, "{percents:?} at {second} s: {advice}, {low}");
        }
    }
}

/// Of a flow that asks in each datagram, as what only looks like SCONE does, four are lowered at once, then one in each quarter of a
/// period; when the code changes, four at once again. A sender that asks as the draft says is always answered.
#[test]
fn few_packets_of_a_flow_are_lowered() {
    let mut router = Router::new(alone(50_000_000));
    let lowered = |router: &mut Router, flow, from: u64, to: u64| {
        (from..to).filter(|tenth| router.passes(Time(tenth * S / 10), flow, 40, UNKNOWN) < UNKNOWN).count()
    };
    assert_eq!(lowered(&mut router, 1, 0, 160), 4);
    assert_eq!(lowered(&mut router, 1, 160, 830), 4, "67 s");
    assert_eq!(lowered(&mut router, 1, 830, 7530), 40, "670 s");
    // A second flow halves the advice.
    assert_eq!(lowered(&mut router, 2, 7530, 7550), 4);
    assert_eq!(lowered(&mut router, 1, 7550, 7600), 4);
    assert_eq!(lowered(&mut router, 1, 7600, 7650), 0);
    let mut random = Random::new(6);
    let mut router = Router::new(alone(50_000_000));
    assert_eq!(lowered(&mut router, 3, 0, 20), 4);
    let mut now = 2 * S;
    for _ in 0..1000 {
        now += 20 * S + random.below(10 * S);
        assert!(router.passes(Time(now), 3, 40, UNKNOWN) < UNKNOWN, "at {now} ns");
    }
    // Without the limit all are.
    let mut router = Router::new(LinkConfig { updates: u32::MAX, ..alone(50_000_000) });
    assert_eq!(lowered(&mut router, 1, 0, 1000), 1000);
}

/// Flows that still keep to a lower code than they were told last are not limited elsewhere.
#[test]
fn who_keeps_to_an_old_advice_is_not_limited() {
    let mut router = Router::new(alone(80_000_000));
    let many: Vec<(u32, u64)> = (0..8).map(|flow| (flow, 10_000_000)).collect();
    router.sends(0, 60, &many);
    // Four go. Their advice is theirs again when it was free for a period; the others still send what they did for another.
    router.sends(60, 140, &many[..4]);
    assert!(router.law.report().advice.0.abs_diff(2_500_000) <= 1, "{:?}", router.law.report());
    router.sends(140, 190, &many[..4]);
    let report = router.law.report();
    assert_eq!((report.flows, report.limited), (4, 0));
    assert!(report.advice.0.abs_diff(2_500_000) <= 1, "{report:?}");
}

/// Traffic that asks for no advice is left alone, and what it takes is not advised.
#[test]
fn others_are_left_what_they_send() {
    let mut router = Router::new(alone(50_000_000));
    for second in 0..60 {
        router.until(at(second));
        router.law.on_arrival(at(second), &Carried { size: Bytes(1_250_000), ..Carried::default() });
        router.sends(second, second + 1, &[(1, 20_000_000), (2, 20_000_000)]);
    }
    assert!(router.law.report().advice.0.abs_diff(2_500_000) <= 1, "{:?}", router.law.report());
}

/// VM9.5: lower at once, higher after 67 s.
#[test]
fn vm9_5_a_raise_waits() {
    let hold = LinkConfig::DEFAULT.hold;
    let room = |code| BitRate(bits(code)).bytes();
    let mut held = Held::new(room(60));
    let mut advised = |second, of| {
        held.update(at(second), room(of), hold);
        code(BitRate(held.advice().bits().0 + 8))
    };
    assert_eq!([advised(0, 60), advised(10, 52), advised(20, 60)], [60, 52, 52]);
    assert_eq!([advised(60, 60), advised(86, 60), advised(87, 60)], [52, 52, 60]);
    // The least of the time that it waited.
    assert_eq!([advised(90, 50), advised(100, 70), advised(130, 55), advised(167, 70)], [50, 50, 50, 55]);
}

fn ack(count: u32, code: u8) -> Ack {
    Ack { acked: Bytes(MSS), reply: Reply { word: count, byte: code }, ..Ack::default() }
}

/// Advice that holds as a packet is sent at a time.
fn holds(law: &mut Sender, now: Time) -> Option<u8> {
    law.on_send(&FLOW, now, &Send::default(), &mut Carried::default());
    law.advice().map(code)
}

/// VM9.6.
#[test]
fn vm9_6_the_least_of_a_period_holds() {
    let mut law = Sender::start(&FLOW, Bytes(MSS), Bytes(10 * MSS));
    assert_eq!(holds(&mut law, Time(0)), None);
    assert_eq!(law.pacing_rate(&FLOW, Duration(0)), None);
    for (second, count, code) in [(1, 1, 70), (30, 2, 60), (68, 3, 65)] {
        law.on_ack(&FLOW, at(second), &ack(count, code));
        if second < 68 {
            assert_eq!(holds(&mut law, at(second)), Some(code));
        }
    }
    // Ticks are of a millisecond.
    for (second, expected) in [(68, Some(60)), (96, Some(60)), (98, Some(65)), (134, Some(65)), (136, None)] {
        assert_eq!(holds(&mut law, at(second)), expected, "at {second} s");
    }
}

/// The sliding least, against all signals of the period; with more places wanted than there are it is lower at most.
#[test]
fn the_least_is_that_of_all_signals() {
    let mut random = Random::new(4);
    for most in [1, 30] {
        let mut law = Sender::start(&FLOW, Bytes(MSS), Bytes(10 * MSS));
        let mut heard: Vec<(u64, u8)> = Vec::new();
        let (mut second, mut exact) = (0, 0);
        for count in 1..5000 {
            second += 1 + random.below(most);
            let code = random.below(128) as u8;
            law.on_ack(&FLOW, at(second), &ack(count, code));
            heard.push((second, code));
            let least =
                heard.iter().filter(|(when, _)| when + 67 > second).map(|(_, code)| *code).min().unwrap();
            let found = law.advice().map_or(UNKNOWN, congestlab_core::law::scone::code);
            assert!(found <= least, "at {second} s: {found}, not {least}");
            exact += u32::from(found == least);
        }
        assert!(exact > 4000, "{exact}");
    }
}

/// A reply that came before, late or again, is no signal; one after lost ones is.
#[test]
fn replies_are_counted() {
    let mut law = Sender::start(&FLOW, Bytes(MSS), Bytes(10 * MSS));
    law.on_ack(&FLOW, at(1), &ack(5, 50));
    law.on_ack(&FLOW, at(2), &ack(4, 20));
    law.on_ack(&FLOW, at(30), &ack(5, 50));
    assert_eq!(holds(&mut law, at(67)), Some(50));
    assert_eq!(holds(&mut law, at(69)), None, "said again it does not hold for longer");
    // 127 says that nobody advised.
    law.on_ack(&FLOW, at(70), &ack(9, UNKNOWN));
    assert_eq!(holds(&mut law, at(70)), None);
    let mut echo = Echo::start(&FLOW, Bytes(MSS));
    let listening = Listening::default();
    let mut hears = |signals: &[u8]| {
        for &signal in signals {
            echo.on_data(&FLOW, &packet(1, signal), listening);
        }
        echo.on_ack(&FLOW, listening)
    };
    assert_eq!(hears(&[0xff]), Reply { word: 0, byte: UNKNOWN });
    assert_eq!(hears(&[60, 0xff, 70]), Reply { word: 2, byte: 60 });
    assert_eq!(hears(&[0xff]), Reply { word: 2, byte: 60 });
    assert_eq!(hears(&[80]), Reply { word: 3, byte: 80 });
}

/// Each packet asks until a reply comes, then one in 20 to 30 s; all tell their flow, and the rate is the advice.
#[test]
fn a_packet_asks_now_and_then() {
    let mut law = Sender::start(&FLOW, Bytes(MSS), Bytes(10 * MSS));
    law.seed(0x1234_5678_9abc_def0);
    let asks = |law: &mut Sender, now| {
        let mut packet = Carried::default();
        law.on_send(&FLOW, now, &Send::default(), &mut packet);
        let header: Header = packet.header().unwrap();
        assert_eq!(header.flow, 0x9abc_def0);
        assert!(header.signal == UNKNOWN || header.asked().is_none());
        header.asked().is_some()
    };
    assert!((0..10).all(|_| asks(&mut law, at(1))));
    law.on_ack(&FLOW, at(1), &ack(10, 46));
    assert_eq!(law.pacing_rate(&FLOW, Duration(0)), Some(Rate(bits(46) / 8)));
    let mut last = S;
    for tenth in 10..20_000 {
        let now = tenth * S / 10;
        if asks(&mut law, Time(now)) {
            let gap = (now - last) as f64 / S as f64;
            assert!((19.9..=30.2).contains(&gap), "{gap} s");
            last = now;
        }
    }
    assert!(last > 1_900 * S);
}

/// Any settings, times and packets: nothing overflows, and the advice is between its bounds.
#[test]
fn nothing_overflows() {
    let mut random = Random::new(31);
    for _ in 0..2000 {
        let mut any = || random.next() >> random.below(64);
        let config = LinkConfig {
            capacity: Rate(any()),
            interval: Duration(any()),
            hold: Duration(any()),
            updates: any() as u32,
            ..LinkConfig::DEFAULT
        };
        let mut router = Router { law: Link::new(config, Duration(any())), records: BTreeMap::new() };
        let mut now = 0u64;
        for _ in 0..60 {
            now = now.saturating_add(random.next() >> random.below(64));
            router.law.set_capacity(Rate(random.next() >> random.below(64)));
            router.law.on_deadline(Time(now), Bytes(random.next()));
            let size = random.next() >> random.below(64);
            let mut packet =
                Carried { size: Bytes(size), ..packet(random.next() as u32 % 4, random.next() as u8) };
            router.law.on_arrival(Time(now), &packet);
            let mut known = Remembered { packet: &mut packet, records: &mut router.records };
            router.law.on_departure(Time(now), &mut known, Bytes(0));
            assert!(router.law.report().advice.0 >= 12_500);
        }
    }
}
