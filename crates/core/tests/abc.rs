//! ABC (docs/design/modern.md 2).

#[path = "xcp/random.rs"]
mod random;

use congestlab_core::law::abc::{Echo, Link, LinkConfig, Sender, SenderConfig};
use congestlab_core::law::{
    Ack, Carried, EchoLaw, Heard, LinkLaw, Listening, Packet as _, Reply, Send, SenderLaw,
};
use congestlab_core::units::{Bytes, Duration, Rate, Time};
use random::Random;

const MSS: u64 = 1500;
const MS: u64 = 1_000_000;
const CAPACITY: u64 = 1_250_000;
const FLOW: SenderConfig = SenderConfig {};

fn config() -> LinkConfig {
    LinkConfig { capacity: Rate(CAPACITY), ..LinkConfig::DEFAULT }
}

/// A packet of this size that accelerates leaves at a time and leaves a backlog behind; returns what it says then.
fn leaves(law: &mut Link, at: u64, size: u64, backlog: u64) -> u8 {
    let mut packet = Carried { size: Bytes(size), ecn: 1, ..Carried::default() };
    law.on_departure(Time(at), &mut packet, Bytes(backlog));
    packet.ecn()
}

/// A link that has carried this much in each millisecond for a tenth of a second, packets of a byte a byte apart; then the share
/// that accelerates with this wait.
fn share(carried: u64, wait_ns: u64) -> f64 {
    let mut law = Link::new(config());
    for at in 0..100 {
        for part in 0..10 {
            leaves(&mut law, at * MS + part * MS / 10, carried / 10, 0);
        }
    }
    let backlog = CAPACITY * wait_ns / 1_000_000_000;
    leaves(&mut law, 100 * MS, 0, backlog);
    f64::from(law.report().share) / 65_536.0
}

/// VM2.2.
#[test]
fn vm2_2_the_share_that_accelerates() {
    for (carried, wait, expected) in [
        (1250, 0, 0.49),
        (1250, 20 * MS, 0.49),
        (620, 0, 0.98 * 625.0 / 620.0),
        (1250, 86_500_000, 0.24),
        (1250, 153 * MS, 0.0),
        (1250, 400 * MS, 0.0),
        (2500, 0, 0.245),
    ] {
        let found = share(carried, wait);
        assert!((found - expected).abs() < 0.001, "{carried} B/ms, {wait} ns: {found}, not {expected}");
    }
}

/// VM2.3: a token for each 1 / f packets; with f = 1 every packet from the second on accelerates, as one token must stay.
#[test]
fn vm2_3_tokens() {
    let said = |law: &mut Link, packets: usize, size: u64| -> String {
        (0..packets)
            .map(|at| if leaves(law, (200 + at as u64) * MS, size, 0) == 1 { 'A' } else { 'B' })
            .collect()
    };
    // Tokens that a beginning gives away, without new ones: a queue of a second.
    let emptied = || {
        let mut law = Link::new(config());
        for at in 0..200 {
            leaves(&mut law, at * MS, 1250, CAPACITY);
        }
        law
    };
    let mut law = emptied();
    // Five tokens, of which one stays.
    assert_eq!(law.report().tokens, 1 << 16);
    // A tenth of the capacity: f = 1.
    let first = said(&mut law, 30, 125);
    assert!(first.ends_with("AAAAAAAA"), "{first}");
    let mut law = emptied();
    let steady = said(&mut law, 40, 1250);
    let accelerating = steady.chars().filter(|&said| said == 'A').count();
    assert!((19..=20).contains(&accelerating), "{steady}");
    assert!(!steady.contains("AA") && !steady.contains("BBB"), "{steady}");
}

/// Where nothing was possible nobody accelerates, and tokens stay.
#[test]
fn an_outage_keeps_tokens() {
    let mut law = Link::new(config());
    law.set_capacity(Rate(0));
    assert_eq!((leaves(&mut law, MS, MSS, 0), law.report().tokens), (2, 5 << 16));
    law.set_capacity(Rate(CAPACITY));
    assert_eq!(leaves(&mut law, 2 * MS, MSS, 0), 1);
}

/// Codes of others and of other links stay.
#[test]
fn only_an_acceleration_becomes_a_brake() {
    let mut random = Random::new(5);
    let mut law = Link::new(config());
    let mut now = 0;
    for _ in 0..10_000 {
        now += random.below(3 * MS);
        let ecn = random.below(4) as u32;
        let came = Carried { size: Bytes(random.below(3000)), ecn, ..Carried::default() };
        let mut left = came;
        law.on_departure(Time(now), &mut left, Bytes(random.below(100_000)));
        assert!(law.only_lowers(&came, &left) && (left.ecn == came.ecn || (ecn == 1 && left.ecn == 2)));
        assert!(law.report().tokens <= 5 << 16);
    }
}

/// The rate that left over the last window, against a sum over all packets: the window moves in twentieths, within which it takes
/// bytes to be spread evenly.
#[test]
fn the_window_slides() {
    let mut random = Random::new(9);
    let mut law = Link::new(config());
    let mut sent: Vec<(u64, u64)> = Vec::new();
    let mut now = 0;
    for _ in 0..3000 {
        now += random.below(MS / 2);
        let size = 40 + random.below(1460);
        leaves(&mut law, now, size, 0);
        sent.push((now, size));
        let last: u64 = sent.iter().filter(|(at, _)| at + 20 * MS > now).map(|(_, size)| size).sum();
        let found = law.report().carried.0 / 50;
        // A millisecond has four packets on average, seldom ten.
        assert!(last.abs_diff(found) <= 13_000, "{found} B in 20 ms, {last} B");
    }
    // After a long silence only the last packet counts.
    leaves(&mut law, now + 500 * MS, 1000, 0);
    assert_eq!(law.report().carried, Rate(50_000));
}

/// The receiver's counts as an ACK brings them.
fn reply(accelerates: u16, brakes: u16, marks: u8) -> Reply {
    Reply { word: u32::from(accelerates) << 16 | u32::from(brakes), byte: marks }
}

fn ack(packets: u64, flight: u64, reply: Reply) -> Ack {
    Ack {
        acked: Bytes(packets * MSS),
        flight: Bytes(flight * MSS),
        reply,
        is_window_limited: true,
        ..Ack::default()
    }
}

fn start(packets: u64) -> Sender {
    Sender::start(&FLOW, Bytes(MSS), Bytes(packets * MSS))
}

fn packets(window: Bytes) -> f64 {
    window.0 as f64 / MSS as f64
}

/// VM2.4.
#[test]
fn vm2_4_the_window_by_marks() {
    let mut law = start(10);
    law.on_ack(&FLOW, Time(0), &ack(1, 100, reply(1, 0, 0)));
    assert!((packets(law.by_marks()) - 11.1).abs() < 0.001, "{}", packets(law.by_marks()));
    law.on_ack(&FLOW, Time(0), &ack(1, 100, reply(1, 1, 0)));
    assert!((packets(law.by_marks()) - 10.19).abs() < 0.001, "{}", packets(law.by_marks()));
    let mut law = start(10);
    law.on_ack(&FLOW, Time(0), &ack(3, 100, reply(2, 1, 0)));
    assert!((packets(law.by_marks()) - 11.3).abs() < 0.001, "{}", packets(law.by_marks()));
    // Two packets stay.
    (0..100).for_each(|n| law.on_ack(&FLOW, Time(0), &ack(1, 100, reply(2, 2 + n, 0))));
    assert_eq!(packets(law.by_marks()), 2.0);
}

/// VM2.5: no window is beyond twice of what is in flight.
#[test]
fn vm2_5_the_cap() {
    let mut law = start(100);
    law.on_ack(&FLOW, Time(0), &ack(1, 30, reply(1, 0, 0)));
    assert_eq!((packets(law.by_marks()), packets(law.by_losses())), (60.0, 60.0));
    assert_eq!(packets(law.window()), 60.0);
}

/// A loss, a timeout and a mark of others lower CUBIC's window alone, and the lesser counts.
#[test]
fn losses_are_cubics() {
    for lower in [0, 1, 2] {
        let mut law = start(100);
        law.on_ack(&FLOW, Time(0), &ack(1, 100, reply(1, 0, 0)));
        let before = law.by_marks();
        match lower {
            0 => law.on_loss(&FLOW, Time(0), Bytes(100 * MSS)),
            1 => law.on_timeout(&FLOW, Time(0), Bytes(100 * MSS), true),
            _ => law.on_ack(&FLOW, Time(0), &ack(1, 100, reply(1, 0, 1))),
        }
        assert_eq!(law.by_marks(), before);
        assert!(packets(law.by_losses()) <= 70.0 && law.window() == law.by_losses(), "{lower}");
    }
    // One cut in a window of data.
    let mut law = start(100);
    law.on_ack(&FLOW, Time(0), &ack(1, 100, reply(0, 0, 1)));
    let cut = law.by_losses();
    (2..50).for_each(|mark| law.on_ack(&FLOW, Time(0), &ack(1, 100, reply(0, 0, mark))));
    assert!(law.by_losses() >= cut);
}

/// Counts come in any order and may be lost: the last one holds all, and an overtaken one says nothing.
#[test]
fn lost_and_late_acks_change_nothing() {
    let mut all = start(10);
    let mut few = start(10);
    for n in 1..=40u16 {
        all.on_ack(&FLOW, Time(0), &ack(1, 1000, reply(n, n / 2, 0)));
    }
    few.on_ack(&FLOW, Time(0), &ack(20, 1000, reply(20, 10, 0)));
    few.on_ack(&FLOW, Time(0), &ack(0, 1000, reply(19, 9, 0)));
    few.on_ack(&FLOW, Time(0), &ack(20, 1000, reply(40, 20, 0)));
    let [all, few] = [&all, &few].map(|law| packets(law.by_marks()));
    // 40 - 20 packets, and the additive part, which is larger at the lower windows between.
    assert!((all - 30.0).abs() < 5.0 && (all - few).abs() < 1.5, "{all}, {few}");
    let mut law = start(10);
    law.on_ack(&FLOW, Time(0), &ack(1, 1000, reply(u16::MAX, 0, 0)));
    assert_eq!(packets(law.by_marks()), 10.0, "one less than none");
}

/// The receiver counts codes; data asks to accelerate.
#[test]
fn codes_are_counted() {
    let mut packet = Carried::default();
    start(10).on_send(&FLOW, Time(0), &Send::default(), &mut packet);
    assert_eq!(packet.ecn(), 1);
    let mut echo = Echo::start(&FLOW, Bytes(MSS));
    for (ecn, told) in [(1, (1, 0, 0)), (2, (1, 1, 0)), (3, (1, 1, 1)), (0, (1, 1, 1)), (2, (1, 2, 1))] {
        let packet = Carried { ecn, ..Carried::default() };
        assert_eq!(echo.on_data(&FLOW, &packet, Listening::default()), Heard::Taken);
        assert_eq!(echo.on_ack(&FLOW, Listening::default()), reply(told.0, told.1, told.2));
    }
}

/// It paces at a window in a round trip.
#[test]
fn it_paces() {
    assert_eq!(start(10).pacing_rate(&FLOW, Duration(0)), None);
    assert_eq!(start(10).pacing_rate(&FLOW, Duration(10 * MS)), Some(Rate(1_500_000)));
}

/// Any settings, times, sizes and capacities: no sum overflows, and tokens stay few.
#[test]
fn nothing_overflows() {
    let mut random = Random::new(31);
    for _ in 0..2000 {
        let mut any = || random.next() >> random.below(64);
        let mut law = Link::new(LinkConfig {
            capacity: Rate(any()),
            delta: Duration(any()),
            threshold: Duration(any()),
            window: Duration(any()),
            ..LinkConfig::DEFAULT
        });
        let mut now = 0u64;
        for _ in 0..60 {
            now = now.saturating_add(random.next() >> random.below(64));
            law.set_capacity(Rate(random.next() >> random.below(64)));
            leaves(&mut law, now, random.next() >> random.below(64), random.next() >> random.below(64));
            assert!(law.report().tokens <= 5 << 16);
        }
    }
}
