//! The default: data state the sum of the changes that the sender has made on its own account.

use super::random::Random;
use super::*;
use congestlab_core::law::xcp_r::STEP;

fn difference() -> Config {
    Config { own: Own::Difference, ..config() }
}

/// An ACK of the sender's first epochs, as [`ack`].
fn hear(sender: &mut Sender, config: &Config, reply: Reply) -> u64 {
    sender.on_ack(config, Time(0), &ack(reply));
    sender.window().0
}

/// What links granted while the loss was under way counts at both ends, as with XCP.
#[test]
fn v4_4_a_halved_window_keeps_what_was_granted_meanwhile() {
    let config = difference();
    let mut sender = Sender::new(&config, MSS, MSS);
    let mut echo = Echo::new(MSS);
    let quiet = sent(&mut sender, &config).1;
    assert_eq!(quiet, Header { cwnd: 0, epoch: 0, is_reset: false, is_difference: true });
    let first = received(&mut echo, &config, 63_000, &quiet);
    assert_eq!(hear(&mut sender, &config, first), 64_000);
    sender.on_loss(&config, Time(0), Bytes(64_000));
    assert_eq!((sender.window(), sender.epoch(), sender.own() as i32), (Bytes(32_000), (1, false), -32_000));
    // Packets of before bring 2000 more, and their ACK counts.
    let late = received(&mut echo, &config, 2000, &quiet);
    assert_eq!(late, Reply { cwnd: 66_000, epoch: 0 });
    assert_eq!(hear(&mut sender, &config, late), 34_000);
    // The sum says whole steps of the change; the sender adds the rest.
    let told = sent(&mut sender, &config).1;
    let stated = 32_000_u32.next_multiple_of(STEP);
    assert_eq!(
        told,
        Header { cwnd: 0u32.wrapping_sub(stated), epoch: 1, is_reset: false, is_difference: true }
    );
    let reply = received(&mut echo, &config, 0, &told);
    assert_eq!(reply, Reply { cwnd: 66_000 - stated, epoch: 1 });
    assert_eq!(hear(&mut sender, &config, reply), 34_000);
    // It is in each packet, and counts once.
    let reply = received(&mut echo, &config, 500, &told);
    assert_eq!(hear(&mut sender, &config, reply), 34_500);
    // A packet of before that was overtaken takes nothing back.
    let reply = received(&mut echo, &config, 0, &quiet);
    assert_eq!((reply.epoch, hear(&mut sender, &config, reply)), (1, 34_500));
}

/// After a timeout the ACKs of data that were on their way count.
#[test]
fn after_a_timeout_acks_of_the_epoch_before_count() {
    let config = difference();
    let mut sender = Sender::new(&config, MSS, MSS);
    let mut echo = Echo::new(MSS);
    let quiet = sent(&mut sender, &config).1;
    let reply = received(&mut echo, &config, 69_000, &quiet);
    assert_eq!(hear(&mut sender, &config, reply), 70_000);
    sender.on_timeout(&config, Time(0), Bytes(70_000), true);
    assert_eq!((sender.window(), sender.epoch()), (MSS, (1, false)));
    let late = received(&mut echo, &config, 2000, &quiet);
    assert_eq!(hear(&mut sender, &config, late), 3000);
    // A second one takes that, too, and the packets of the epoch between may all be lost.
    sender.on_timeout(&config, Time(0), Bytes(3000), false);
    assert_eq!((sender.window(), sender.epoch()), (MSS, (2, false)));
    let told = sent(&mut sender, &config).1;
    let reply = received(&mut echo, &config, 4000, &told);
    // The receiver keeps a segment, and the sender adds what the sum leaves out.
    assert_eq!(reply.cwnd, 5000);
    let rest = 71_000_u64.next_multiple_of(STEP.into()) - 71_000;
    assert_eq!(hear(&mut sender, &config, reply), 5000 + rest);
    // A window of one segment that stays one is no change.
    let mut still = Sender::new(&config, MSS, MSS);
    still.on_timeout(&config, Time(0), MSS, true);
    assert_eq!(still.epoch(), (0, false));
}

/// Another initial window than the receiver's replaces it, and ACKs of before do not count.
#[test]
fn a_first_window_is_told_whole() {
    let config = difference();
    let mut sender = Sender::new(&config, MSS, Bytes(20_000));
    assert_eq!(sent(&mut sender, &config).1, reset(20_000, 1));
    assert_eq!(hear(&mut sender, &config, Reply { cwnd: 1500, epoch: 0 }), 20_000);
    // Until it is heard, changes are told so, too.
    sender.on_loss(&config, Time(0), Bytes(20_000));
    assert_eq!(sent(&mut sender, &config).1, reset(10_000, 2));
    assert_eq!(hear(&mut sender, &config, Reply { cwnd: 10_700, epoch: 2 }), 10_700);
    assert_eq!(
        sent(&mut sender, &config).1,
        Header { cwnd: 0, epoch: 2, is_reset: false, is_difference: true }
    );
}

/// The receiver is told of a limit once in a round trip, however many ACKs find it.
#[test]
fn a_limit_is_told_when_the_last_change_is_heard() {
    let config =
        Config { xcp: xcp::SenderConfig { desired_rate: Rate(160_000), ..config().xcp }, ..difference() };
    let mut sender = Sender::new(&config, MSS, MSS);
    for cwnd in [50_000, 51_000, 52_000] {
        assert_eq!(hear(&mut sender, &config, Reply { cwnd, epoch: 0 }), 10_000);
        assert_eq!(sender.epoch(), (1, false));
    }
    // At 52,000 the receiver has 2000 more than the sum takes away.
    let stated = sent(&mut sender, &config).1.cwnd;
    let cwnd = 52_000_u32.wrapping_add(stated);
    assert_eq!(hear(&mut sender, &config, Reply { cwnd, epoch: 1 }), 10_000);
    assert_eq!(sender.epoch(), (2, false));
    let cwnd = 50_000_u32.wrapping_add(stated) - 3000;
    assert_eq!(hear(&mut sender, &config, Reply { cwnd, epoch: 1 }), 5000);
}

/// With windows that no limit and no floor touches, the sender has what XCP's has that hears each feedback: whatever is
/// lost on the way back, repeated or reordered, as soon as an ACK of a known epoch comes.
#[test]
fn one_ack_of_any_known_epoch_is_enough() {
    let mut random = Random::new(12);
    let config = difference();
    let (mut older, mut agreed) = (0, 0);
    for _ in 0..300 {
        let mut sender = Sender::new(&config, MSS, MSS);
        let mut echo = Echo::new(MSS);
        let first = received(&mut echo, &config, 50_000_000, &sent(&mut sender, &config).1);
        let mut exact = hear(&mut sender, &config, first) as i64;
        let mut way = Vec::new();
        for _ in 0..300 {
            if random.below(25) == 0 {
                let before = sender.window().0 as i64;
                sender.on_loss(&config, Time(0), Bytes(0));
                exact += sender.window().0 as i64 - before;
                if exact < 5_000_000 {
                    break;
                }
            }
            way.push(sent(&mut sender, &config).1);
            if way.len() < 20 || random.below(3) == 0 {
                continue;
            }
            let data = way.remove(random.below(3) as usize);
            let bytes = random.below(20_000) as i32 - 9000;
            let reply = received(&mut echo, &config, bytes, &data);
            exact += i64::from(bytes);
            if random.below(3) == 0 {
                older += u32::from(reply.epoch != sender.epoch().0);
                agreed += 1;
                assert_eq!(hear(&mut sender, &config, reply) as i64, exact);
                assert_eq!(sender.heard(), sender.window());
            }
        }
    }
    assert!(older > 1000 && agreed > 5000, "{older} of {agreed}");
}

/// While TCP rules and when XCP is back, the window is told whole, because nobody knows what the receiver has by then.
#[test]
fn windows_of_tcp_are_told_whole() {
    let xcp = xcp::SenderConfig { loss: LossPolicy::Fallback, ..config().xcp };
    let config = Config { xcp, ..difference() };
    let mut sender = Sender::new(&config, MSS, MSS);
    hear(&mut sender, &config, Reply { cwnd: 20_000, epoch: 0 });
    sender.on_loss(&config, Time(0), Bytes(20_000));
    assert!(sender.xcp().is_tcp());
    assert_eq!(sent(&mut sender, &config).1, reset(10_000, 1));
}
