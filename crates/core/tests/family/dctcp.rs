//! DCTCP (RFC 8257).

use super::random::Random;
use super::{MSS, ack, as_reno_at_the_edges, packets};
use congestlab_core::law::dctcp::{Config, Echo, Sender, Share};
use congestlab_core::law::{Ack, Carried, EchoLaw, Heard, Listening, Packet as _, Reply, Send, SenderLaw};
use congestlab_core::units::{Bytes, Time};

const EXACT: Config = Config { linux: false };
const LINUX: Config = Config { linux: true };
const ONE: u32 = 1 << 20;

/// Alpha in Linux's 1024ths after windows of which so many of a hundred packets were marked.
fn linux(alpha: u32, marked: u64) -> u32 {
    Share::new(alpha << 10).after(&LINUX, Bytes(marked), Bytes(100)).alpha() >> 10
}

/// VM3.2: `tcp_dctcp.c` without marks. What is below a sixteenth of 256 goes at once.
#[test]
fn vm3_2_linux_forgets_in_75_windows() {
    let mut alpha = 1024;
    let falls: Vec<u32> = std::iter::repeat_with(|| {
        alpha = linux(alpha, 0);
        alpha
    })
    .take(75)
    .collect();
    assert_eq!(falls[..12], [960, 900, 844, 792, 743, 697, 654, 614, 576, 540, 507, 476]);
    assert_eq!(falls[72..], [16, 15, 0]);
}

/// VM3.3: one mark in more than 64 packets counts for nothing there.
#[test]
fn vm3_3_linux_counts_in_sixty_fourths() {
    assert_eq!((linux(0, 10), linux(0, 1), linux(512, 50), linux(1024, 100)), (6, 0, 512, 1024));
    let exact = Share::new(0).after(&EXACT, Bytes(1), Bytes(1000)).alpha();
    assert_eq!(exact, 66, "2^20 / 1000 / 16, rounded up");
}

/// VM3.4.
#[test]
fn vm3_4_the_cut() {
    let cut = |alpha: u32, window| Bytes(window) - Share::new(alpha << 10).of_window(Bytes(window));
    assert_eq!(cut(512, 100), Bytes(75));
    assert_eq!(cut(100, 10), Bytes(10));
    assert_eq!(cut(1024, 100), Bytes(50));
}

/// From 0 up Linux never gets beyond 15 of 1024 while less than a quarter is marked: what has no sixteenth goes.
#[test]
fn linux_stays_below_a_sixty_fourth_where_less_than_a_quarter_is_marked() {
    assert_eq!((0..1000).fold(0, |alpha, _| linux(alpha, 24)), 15);
    assert_eq!((0..1000).fold(1024, |alpha, _| linux(alpha, 24)), 255);
}

/// RFC 8257 3.3 in floats. A window rounds by little more than 2^-20, of which 15/16 remain in the next: 17 of them in all.
#[test]
fn alpha_is_that_of_the_formula_in_floats() {
    let mut random = Random::new(41);
    let (mut share, mut alpha, mut worst) = (Share::new(ONE), 1.0f64, 0f64);
    for _ in 0..100_000 {
        let delivered = 1 + random.below(100_000);
        let marked = random.below(delivered + 1) >> random.below(20);
        share = share.after(&EXACT, Bytes(marked), Bytes(delivered));
        alpha += (marked as f64 / delivered as f64 - alpha) / 16.0;
        worst = worst.max((f64::from(share.alpha()) / f64::from(ONE) - alpha).abs());
    }
    let bound = 17.0 / f64::from(ONE);
    assert!(worst < bound && worst > 0.0, "{worst:e}, bound {bound:e}");
}

/// The share gets where it goes, from above and from below.
#[test]
fn alpha_comes_to_rest() {
    for (marked, rest) in [(0, 0), (1000, ONE), (250, ONE / 4)] {
        let windows =
            |from| (0..400).fold(Share::new(from), |s, _| s.after(&EXACT, Bytes(marked), Bytes(1000)));
        assert_eq!((windows(0).alpha(), windows(ONE).alpha()), (rest, rest));
    }
}

fn start(segments: u64) -> Sender {
    Sender::start(&EXACT, Bytes(MSS), Bytes(segments * MSS))
}

#[test]
fn without_marks_it_is_reno() {
    as_reno_at_the_edges(&EXACT, start);
}

/// An ACK of a packet, of a window of `flight`, when `count` marked packets have come.
fn heard(count: u32, flight: u64) -> Ack {
    Ack { flight: Bytes(flight * MSS), reply: Reply { word: count, byte: 0 }, ..ack(MSS) }
}

/// The first mark halves, as alpha is 1; then it does once per window of data what its share says, and the window does not
/// grow until the data that was in flight is acknowledged.
#[test]
fn a_window_of_data_is_cut_once() {
    let mut law = start(20);
    law.on_ack(&EXACT, Time(0), &heard(0, 20));
    assert_eq!((packets(&law), law.share().alpha()), (21.0, ONE - ONE / 16));
    law.on_ack(&EXACT, Time(0), &heard(1, 20));
    let cut = 21.0 * (1.0 - 15.0 / 32.0);
    assert!((packets(&law) - cut).abs() < 0.001, "{}", packets(&law));
    for count in 2..=20 {
        law.on_ack(&EXACT, Time(0), &heard(count, 20));
        assert!((packets(&law) - cut).abs() < 0.001, "again after {count}: {}", packets(&law));
    }
    // 20 of the 20 packets in flight then were marked: the next mark cuts again.
    law.on_ack(&EXACT, Time(0), &heard(21, 12));
    assert!(packets(&law) < cut - 4.0, "{}", packets(&law));
}

/// A count that comes late says nothing new, and the counter may turn over.
#[test]
fn a_late_reply_marks_nothing() {
    let mut law = start(20);
    law.on_ack(&EXACT, Time(0), &heard(0, 20));
    law.on_ack(&EXACT, Time(0), &heard(u32::MAX, 20));
    assert_eq!(packets(&law), 22.0, "one less than none");
    let cut = |count| {
        let mut law = law.clone();
        law.on_ack(&EXACT, Time(0), &heard(count, 20));
        packets(&law) < 22.0
    };
    assert!(cut(1) && !cut(0));
}

/// All of its data is ECN-capable.
#[test]
fn it_sends_ect() {
    let mut packet = Carried::default();
    start(10).on_send(&EXACT, Time(0), &Send::default(), &mut packet);
    assert_eq!(packet.ecn(), 0b10);
}

/// VM3.5 as counts: delayed ACKs, N N C C N. At a change the ACK goes at once, with all marks so far.
#[test]
fn vm3_5_a_change_is_told_at_once() {
    let mut echo = Echo::start(&EXACT, Bytes(MSS));
    let mut take = |ecn| {
        let packet = Carried { ecn, ..Carried::default() };
        (echo.on_data(&EXACT, &packet, Listening::default()), echo.on_ack(&EXACT, Listening::default()).word)
    };
    assert_eq!(take(2), (Heard::Taken, 0));
    assert_eq!(take(2), (Heard::Taken, 0));
    assert_eq!(take(3), (Heard::Urgent, 1));
    assert_eq!(take(3), (Heard::Taken, 2));
    assert_eq!(take(2), (Heard::Urgent, 2));
}
