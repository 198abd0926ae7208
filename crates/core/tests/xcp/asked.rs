//! Receivers that return more than was asked for.

use super::random::Random;
use super::{Bytes, Duration, MS, Rate, SECOND, SenderConfig, Time, sender_config};
use congestlab_core::law::xcp::{self, CumulativeEcho, Echo, Feedback, Header, Returned, Sender};
use congestlab_core::law::{Ack, Carried, EchoLaw as _, Listening, Packet as _, Send, SenderLaw as _};
use std::collections::VecDeque;

const MSS: Bytes = Bytes(1500);
const RTT: Duration = Duration(SECOND / 8);
/// 10 Gbit/s, as hosts on Linux ask for.
const MOST: Rate = Rate(1_250_000_000);

/// So many full packets.
fn full(packets: u64) -> Bytes {
    Bytes(MSS.0 * packets)
}

fn config() -> SenderConfig {
    SenderConfig { desired_rate: MOST, verify: true, feedback: Feedback::Sum, ..sender_config() }
}

fn send() -> Send {
    Send { size: MSS, srtt: RTT, awnd: Bytes(u64::MAX), backlog: Bytes(u64::MAX), ..Send::default() }
}

fn ack(word: u32) -> Ack {
    let reply = xcp::reply(word as i32);
    Ack { acked: MSS, awnd: Bytes(u64::MAX), rtt: RTT, srtt: RTT, reply, ..Ack::default() }
}

/// A sender that has sent its first window.
fn asking(config: &SenderConfig, packets: u64) -> Sender {
    let mut sender = Sender::start(config, MSS, full(packets));
    (0..packets).for_each(|_| _ = sender.header(config, Time(0), &send()));
    sender
}

/// The kernel host's window was 110,827 segments after two such ACKs, which say as much as an ACK can.
#[test]
fn two_acks_that_claim_all_that_a_field_holds_open_nothing_and_are_counted() {
    let (most, config) = ((1 << 27) - 1, config());
    let mut believing = asking(&SenderConfig { verify: false, ..config }, 10);
    let mut sender = asking(&config, 10);
    for claims in 1..=2 {
        believing.on_ack(&SenderConfig { verify: false, ..config }, Time(0), &ack(claims * most));
        sender.on_ack(&config, Time(0), &ack(claims * most));
        assert_eq!((sender.window(), sender.asked().lies()), (full(10), claims));
    }
    assert!(believing.window() > full(100_000), "{:?}", believing.window());
    // The truth counts from there on.
    sender.on_ack(&config, Time(0), &ack(2 * most + 1000));
    assert_eq!(sender.window(), full(10) + Bytes(16 * 1000 / 8));
    assert_eq!(sender.asked().lies(), 2);
}

#[test]
fn what_was_asked_for_can_be_claimed_once() {
    let config = SenderConfig { feedback: Feedback::Rate, ..config() };
    let mut sender = asking(&config, 1);
    let asked = MOST.0 as u32 - 12_000; // less the window's own rate
    sender.on_ack(&config, Time(0), &ack(asked));
    assert_eq!(sender.asked().lies(), 0);
    let window = sender.window();
    assert!(window > full(100_000));
    sender.on_ack(&config, Time(0), &ack(1));
    assert_eq!((sender.asked().lies(), sender.window()), (1, window));
    // A flow without data asks for nothing.
    let mut sender = Sender::start(&config, MSS, full(10));
    (0..10).for_each(|_| _ = sender.header(&config, Time(0), &Send { backlog: MSS, ..send() }));
    sender.on_ack(&config, Time(0), &ack(1));
    assert_eq!((sender.asked().lies(), sender.window()), (1, full(10)));
}

/// Several segments that leave as one carry the request of each.
#[test]
fn a_super_packet_asks_as_its_segments_do() {
    let config = SenderConfig { feedback: Feedback::Rate, ..config() };
    let mut sender = Sender::start(&config, MSS, full(10));
    let header = sender.header(&config, Time(0), &Send { size: full(10), ..send() });
    sender.on_ack(&config, Time(0), &ack(header.delta as u32 * 10));
    assert_eq!(sender.asked().lies(), 0);
    sender.on_ack(&config, Time(0), &ack(header.delta as u32 / 1000));
    assert_eq!(sender.asked().lies(), 1);
}

/// Links that grant anything from all to nothing, packets and ACKs that are lost, ACKs that are overtaken, timeouts, delays.
#[test]
fn no_honest_receiver_is_taken_for_a_liar() {
    for seed in 0..120u64 {
        let mut random = Random::new(seed);
        let feedback = [Feedback::Rate, Feedback::Bytes, Feedback::Sum][seed as usize % 3];
        let config = SenderConfig { feedback, desired_rate: Rate(1 << (14 + random.below(16))), ..config() };
        let lax = SenderConfig { verify: false, ..config };
        let (generosity, loss) = (random.below(4), random.below(4));
        let mut sender = Sender::start(&config, MSS, full(1 + random.below(10)));
        let mut other = sender.clone();
        let mut echo = Returned::start(&config, MSS);
        let (mut data, mut acks) = (VecDeque::<Header>::new(), VecDeque::new());
        let (mut now, mut srtt) = (0, RTT);
        for _ in 0..4000 {
            now += MS;
            let window = (sender.window().0 / MSS.0).clamp(1, 40) as usize;
            if data.len() + acks.len() < window && random.below(3) > 0 {
                let send = Send { srtt, backlog: full(random.below(200)), ..send() };
                let header = sender.header(&config, Time(now), &send);
                assert_eq!(other.header(&lax, Time(now), &send), header);
                data.push_back(header);
            }
            if random.below(2) == 0
                && let Some(mut header) = data.pop_front()
            {
                header.delta = match (header.delta, generosity) {
                    (delta, 0) => delta, // no link
                    (delta, 1) if delta > 0 => random.below(delta as u64 + 1) as i32,
                    (delta, _) => delta.min(random.below(20_000) as i32 - 10_000),
                };
                if random.below(20) >= loss {
                    let mut packet = Carried::default();
                    packet.add_header(header);
                    let _ = echo.on_data(&config, &packet, Listening::default());
                    acks.push_back(echo.on_ack(&config, Listening::default()));
                }
            }
            if random.below(2) == 0 && !acks.is_empty() {
                // An ACK may overtake others where sums make that good.
                let is_overtaking = feedback == Feedback::Sum && random.below(10) == 0;
                let at = if is_overtaking { random.below(acks.len() as u64) as usize } else { 0 };
                let reply = acks.remove(at).unwrap();
                if random.below(20) >= loss {
                    srtt = Duration(srtt.0 - srtt.0 / 8 + (RTT.0 / 2 + random.below(RTT.0)) / 8);
                    let ack = Ack { srtt, rtt: srtt, reply, ..ack(0) };
                    sender.on_ack(&config, Time(now), &ack);
                    other.on_ack(&lax, Time(now), &ack);
                }
            }
            // Where links grant everything, one timeout after the other asks for a whole rate each time.
            match if generosity > 0 { random.below(400) } else { 4 } {
                0 => [&mut sender, &mut other].map(|law| law.on_timeout(&lax, Time(now), MSS, true)),
                1..4 => [&mut sender, &mut other].map(|law| law.on_loss(&lax, Time(now), MSS)),
                _ => [(), ()],
            };
            assert_eq!(sender.asked().lies(), 0, "seed {seed}, {feedback:?}");
            assert_eq!(sender.window(), other.window(), "seed {seed}");
        }
        assert!(generosity == 0 || sender.asked() != xcp::Asked::default());
    }
    // The two receivers of kernels are the ones above.
    assert_eq!((Echo::default().on_ack(), CumulativeEcho::default().on_ack()), (0, 0));
}
