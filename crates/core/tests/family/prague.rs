//! TCP Prague (docs/design/modern.md 4).

use super::random::Random;
use super::{MS, MSS, ack, packets};
use congestlab_core::law::prague::{Config, Echo, Sender};
use congestlab_core::law::{Ack, Carried, EchoLaw, Heard, Listening, Packet as _, Reply, Send, SenderLaw};
use congestlab_core::units::{Bytes, Duration, Time};

const OWN: Config = Config { rtt_independent: false, ..Config::DEFAULT };
const ONE: u32 = 1 << 20;

/// VM4.7. The Linux sender counts round trips in 128 us, rounded down; in those the growth is this one's.
#[test]
fn vm4_7_the_growth_is_the_square_of_the_round_trips_part() {
    let jiffy = |span: u64| Duration(span / 128_000 * 128_000);
    let linux = Config { rtt_target: jiffy(25 * MS), ..Config::DEFAULT };
    let growths = [1, 5, 10, 20, 25, 100].map(|ms| linux.growth(jiffy(ms * MS)));
    assert_eq!(growths, [1351, 41943, 167_772, 671_089, 1_048_576, 1_048_576]);
    // Without that rounding.
    assert_eq!([1, 5, 25].map(|ms| Config::DEFAULT.growth(Duration(ms * MS))), [1678, 41943, 1_048_576]);
    assert_eq!(Config::DEFAULT.growth(Duration(0)), 1, "it always grows");
}

fn start(segments: u64) -> Sender {
    Sender::start(&OWN, Bytes(MSS), Bytes(segments * MSS))
}

/// An ACK of a packet, of a window of `flight`, when `count` marked packets have come.
fn heard(count: u32, flight: u64) -> Ack {
    Ack { flight: Bytes(flight * MSS), reply: Reply { word: count, byte: 0 }, ..ack(MSS) }
}

/// A window of so many packets in avoidance, whose alpha is still 1.
fn avoiding(segments: u64) -> Sender {
    let mut law = start(2 * segments);
    law.on_loss(&OWN, Time(0), Bytes(0));
    law
}

/// The windows of data of a law that never grows, `marks` of 100 packets in each.
fn windows(law: &mut Sender, count: u32, marks: u32) {
    let mut marked = 0;
    for packet in 0..count * 100 {
        marked += u32::from(packet % 100 < marks);
        law.on_ack(&OWN, Time(0), &Ack { is_window_limited: false, ..heard(marked, 100) });
    }
}

/// VM4.8: alpha is 1 until the first mark, then moves by a sixteenth of its distance.
#[test]
fn vm4_8_alpha_begins_with_the_first_mark() {
    let mut law = avoiding(100);
    windows(&mut law, 10, 0);
    assert_eq!(law.share().alpha(), ONE);
    // The first ACK of a connection ends a window by itself.
    let mut law = avoiding(100);
    law.on_ack(&OWN, Time(0), &heard(0, 100));
    windows(&mut law, 1, 10);
    assert_eq!(law.share().alpha(), 989_593);
}

/// VM4.9: a window of 100 packets and alpha = .1 leave 95, and marks cut once in a window of data.
#[test]
fn vm4_9_the_cut() {
    let mut law = avoiding(100);
    let mut marked = 0;
    for packet in 0..30_000 {
        marked += u32::from(packet % 10 == 0);
        law.on_ack(&OWN, Time(0), &Ack { is_window_limited: false, in_recovery: true, ..heard(marked, 100) });
    }
    let alpha = f64::from(law.share().alpha()) / f64::from(ONE);
    assert!((alpha - 0.1).abs() < 1e-4 && packets(&law) == 100.0, "{alpha}, {}", packets(&law));
    law.on_ack(&OWN, Time(0), &Ack { is_window_limited: false, ..heard(marked + 1, 100) });
    assert!((packets(&law) - 95.0).abs() < 0.02, "{}", packets(&law));
    law.on_ack(&OWN, Time(0), &Ack { is_window_limited: false, ..heard(marked + 2, 100) });
    assert!((packets(&law) - 95.0).abs() < 0.02, "{}", packets(&law));
}

/// What came without a mark lets the window grow, in the window of data of a cut, too: without marks a segment in a round trip,
/// with half of the packets marked half of one.
#[test]
fn growth_goes_on_while_marks_cut() {
    let mut law = avoiding(100);
    (0..100).for_each(|_| law.on_ack(&OWN, Time(0), &heard(0, 100)));
    assert!((packets(&law) - 101.0).abs() < 0.01, "{}", packets(&law));
    let mut law = avoiding(100);
    law.on_ack(&OWN, Time(0), &heard(1, 100));
    let after = packets(&law);
    let mut marked = 1;
    for packet in 0..50 {
        marked += packet % 2;
        law.on_ack(&OWN, Time(0), &heard(marked, 100));
    }
    // 25 of 50 packets, in a window of 50.
    assert!((packets(&law) - after - 0.5).abs() < 0.01, "{after} to {}", packets(&law));
}

/// After `transition` round trips one of 5 ms grows as much in a second as one of 25 ms, in rate; before, 25 times as much.
#[test]
fn short_round_trips_gain_no_more_than_the_targets() {
    let config = Config { transition: 10, ..Config::DEFAULT };
    let gain = |round_trip: u64, rounds: u64| {
        let mut law = avoiding(1000);
        let mut now = 0;
        let mut trip = |law: &mut Sender| {
            now += round_trip * MS;
            let count = law.window().0 / MSS;
            let one = Ack { srtt: Duration(round_trip * MS), ..heard(0, count) };
            (0..count).for_each(|_| law.on_ack(&config, Time(now), &one));
        };
        (0..rounds).for_each(|_| trip(&mut law));
        assert_eq!(law.is_independent(&config), rounds >= 10);
        let before = packets(&law);
        let trips = if rounds < 10 { 1 } else { 1000 / round_trip };
        (0..trips).for_each(|_| trip(&mut law));
        // Packets per second, in a second.
        (packets(&law) - before) * 1000.0 / round_trip as f64 / (trips * round_trip) as f64 * 1000.0
    };
    let [own, ruled] = [0, 12].map(|rounds| gain(5, rounds) / gain(25, rounds));
    assert!((own - 25.0).abs() < 0.3, "{own}");
    assert!((ruled - 1.0).abs() < 0.02, "{ruled}");
}

/// Once independent, marks cut once in 25 ms and the estimate is made as often.
#[test]
fn short_round_trips_are_cut_no_more_often_than_the_targets() {
    let config = Config { transition: 1, ..Config::DEFAULT };
    let mut law = avoiding(1_000_000);
    let (mut cuts, mut estimates, mut marked) = (0, 0, 0);
    // A second of windows of ten packets with a mark in each.
    for packet in 0..2000u64 {
        marked += u32::from(packet % 10 == 0);
        let before = (law.window(), law.share().alpha());
        let one = Ack { is_window_limited: false, srtt: Duration(5 * MS), ..heard(marked, 10) };
        law.on_ack(&config, Time((1000 + packet / 2) * MS), &one);
        cuts += u32::from(law.window() < before.0);
        estimates += u32::from(law.share().alpha() != before.1);
    }
    assert!((39..=41).contains(&cuts), "{cuts}");
    assert!((39..=41).contains(&estimates), "{estimates}");
}

/// Losses halve the window, to two segments at least; a timeout leaves one, and slow start begins.
#[test]
fn losses_are_those_of_tcp() {
    let mut law = avoiding(100);
    law.on_loss(&OWN, Time(0), Bytes(7 * MSS));
    assert_eq!(packets(&law), 50.0, "half the window, whatever is in flight");
    (0..10).for_each(|_| law.on_loss(&OWN, Time(0), Bytes(0)));
    assert_eq!(packets(&law), 2.0);
    let mut law = avoiding(100);
    law.on_timeout(&OWN, Time(0), Bytes(40 * MSS), true);
    assert_eq!((packets(&law), law.ssthresh()), (1.0, Bytes(20 * MSS)));
    law.on_timeout(&OWN, Time(0), Bytes(4 * MSS), false);
    assert_eq!(law.ssthresh(), Bytes(20 * MSS));
    let recovering = Ack { in_recovery: true, ..ack(MSS) };
    (0..100).for_each(|_| law.on_ack(&OWN, Time(0), &recovering));
    assert_eq!(packets(&law), 20.0, "it stands at the threshold while losses are repaired");
    law.on_restart(&OWN, Time(0), Bytes(3 * MSS));
    assert_eq!(packets(&law), 3.0);
    assert_eq!(packets(&start(0)), 1.0, "one segment at least");
}

/// Twice the window in a round trip below half of the threshold, else the window.
#[test]
fn it_paces() {
    let law = start(10);
    assert_eq!(law.pacing_rate(&OWN, Duration(0)), None);
    assert_eq!(law.pacing_rate(&OWN, Duration(10 * MS)).unwrap().0, 2_000_000);
    assert_eq!(avoiding(10).pacing_rate(&OWN, Duration(10 * MS)).unwrap().0, 1_000_000);
}

/// A count that comes late says nothing new, and the counter may turn over.
#[test]
fn a_late_reply_marks_nothing() {
    let mut law = avoiding(20);
    law.on_ack(&OWN, Time(0), &heard(u32::MAX, 20));
    assert!(packets(&law) > 20.0, "one less than none");
    let mut law = avoiding(20);
    law.on_ack(&OWN, Time(0), &heard(i32::MAX as u32, 20));
    law.on_ack(&OWN, Time(0), &heard(u32::MAX - 1, 20));
    let before = law.heard_last();
    law.on_ack(&OWN, Time(0), &heard(1, 20));
    assert_eq!((before, law.heard_last()), (u32::MAX - 1, 1));
}

/// Data is of L4S; the receiver counts marks, and acknowledges when it would.
#[test]
fn its_packets_are_ect_1_and_marks_are_counted() {
    let mut packet = Carried::default();
    start(10).on_send(&OWN, Time(0), &Send::default(), &mut packet);
    assert_eq!(packet.ecn(), 0b01);
    let mut echo = Echo::start(&OWN, Bytes(MSS));
    for (ecn, count) in [(1, 0), (3, 1), (3, 2), (1, 2), (2, 2)] {
        let packet = Carried { ecn, ..Carried::default() };
        assert_eq!(echo.on_data(&OWN, &packet, Listening::default()), Heard::Taken);
        assert_eq!(echo.on_ack(&OWN, Listening::default()).word, count);
    }
}

/// A hundred thousand ACKs of any kind: the window has two segments at least but after timeouts, alpha is a share.
#[test]
fn nothing_moves_it_out_of_its_bounds() {
    let mut random = Random::new(67);
    let config = Config { transition: 3, ..Config::DEFAULT };
    let mut law = start(10);
    let (mut now, mut least) = (0, 1.0);
    for _ in 0..100_000 {
        now += random.below(10 * MS);
        match random.below(100) {
            0 => {
                law.on_timeout(&config, Time(now), Bytes(random.below(1 << 20)), random.below(2) == 0);
                least = 1.0;
            }
            1 | 2 => {
                law.on_loss(&config, Time(now), Bytes(random.below(1 << 20)));
                least = 2.0;
            }
            3 => {
                law.on_restart(&config, Time(now), Bytes(random.below(20 * MSS)));
                least = 1.0;
            }
            4..100 => {
                let word = law.heard_last().wrapping_add(random.below(4) as u32).wrapping_sub(1);
                let one = Ack {
                    acked: Bytes(random.below(4 * MSS)),
                    flight: law.window(),
                    srtt: Duration(random.below(50 * MS)),
                    reply: Reply { word, byte: 0 },
                    in_recovery: random.below(10) == 0,
                    is_window_limited: random.below(2) == 0,
                    ..Ack::default()
                };
                law.on_ack(&config, Time(now), &one);
            }
            _ => unreachable!(),
        }
        assert!(packets(&law) >= least && law.share().alpha() <= ONE, "{}", packets(&law));
    }
}
