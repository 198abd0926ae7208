//! What holds for any input.

use super::random::Random;
use super::*;

fn any_config(random: &mut Random) -> Config {
    let own = if random.coin() { Own::Difference } else { Own::Reset };
    Config { xcp: any::sender_config(random), epochs: random.coin(), own }
}

/// The receiver keeps at least one segment and, if it clamps, at most what it advertises. That nothing
/// overflows on either side, and that the sender keeps one segment, `tests/list.rs` has for every law.
#[test]
fn the_receiver_keeps_one_segment_and_no_more_than_it_advertises() {
    let mut random = Random::new(9);
    for _ in 0..3000 {
        let config = any_config(&mut random);
        let least = if random.coin() { 1500 } else { random.word().clamp(1, 65_535) };
        let mut echo = Echo::new(Bytes(least));
        for _ in 0..60 {
            let ours = Header {
                cwnd: random.half(),
                epoch: random.half() as u8,
                is_reset: random.coin(),
                is_difference: random.coin(),
            };
            let awnd = random.word();
            arrive(&mut echo, &config, Bytes(least), Bytes(awnd), &random.header(), &ours);
            let cwnd = u64::from(echo.reply().cwnd);
            assert!(cwnd >= least, "{cwnd} of {least}");
            assert!(!config.xcp.clamp || cwnd <= awnd.max(least), "{cwnd} beyond {awnd}");
        }
    }
}

/// However many ACKs are lost, the next one of the epoch brings the sender to the receiver's window.
#[test]
fn one_ack_is_enough() {
    let mut random = Random::new(11);
    let config = config();
    let mut sender = Sender::new(&config, MSS, MSS);
    let mut echo = Echo::new(MSS);
    let mut agreed = 0;
    for _ in 0..20_000 {
        match random.below(100) {
            0 => sender.on_timeout(&config, Time(0), Bytes(0), true),
            1 => sender.on_loss(&config, Time(0), Bytes(0)),
            _ => {}
        }
        let (mut header, ours) = sent(&mut sender, &config);
        if random.below(3) == 0 {
            continue; // lost
        }
        header.delta = random.below(100_000) as i32 - 45_000;
        arrive(&mut echo, &config, MSS, UNLIMITED, &header, &ours);
        if random.below(10) > 0 {
            continue; // the ACK is lost
        }
        sender.on_ack(&config, Time(0), &ack(echo.reply()));
        assert_eq!(sender.window().0, u64::from(echo.reply().cwnd));
        agreed += 1;
    }
    assert!(agreed > 1000);
}
