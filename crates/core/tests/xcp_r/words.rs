//! What hosts make of the law's headers: words of TCP options, packets that came as one, windows that another law has ruled.

use super::*;
use congestlab_core::law::xcp_r::STEP;
use random::Random;

#[test]
fn a_window_loses_a_32768th_in_a_word_and_an_epoch_nothing() {
    let mut random = Random::new(7);
    let windows = (0..32).flat_map(|bits| [1u32 << bits, (1 << bits) - 1, 3 << bits >> 1]);
    let mut windows: Vec<u32> = windows.chain([0xffff, 0x1_0000, 0x1_0001, u32::MAX]).collect();
    windows.extend((0..10_000).map(|_| random.next() as u32 >> random.below(32)));
    for cwnd in windows {
        let said = Reply { cwnd, epoch: random.next() as u8 };
        let word = said.to_word();
        assert_eq!(word >> 28, 0, "{said:?}: the upper bits are another's");
        let heard = Reply::from_word(word | (random.next() as u32) << 28);
        assert_eq!(heard.epoch, said.epoch);
        let exact = cwnd.min(Reply::CWND_MAX);
        assert!(heard.cwnd <= exact && exact - heard.cwnd <= exact >> 15, "{said:?} {heard:?}");
        assert_eq!(heard.to_word(), word, "what was heard is said alike");
        for is_reset in [false, true] {
            let header = Header { cwnd: heard.cwnd, epoch: said.epoch, is_reset, is_difference: false };
            assert_eq!(Header::from_word(header.to_word()), header);
        }
        let sum =
            Header { cwnd: cwnd & !(STEP - 1), epoch: said.epoch, is_reset: false, is_difference: true };
        assert_eq!(Header::from_word(sum.to_word()), sum);
    }
    assert_eq!(Reply { cwnd: 30_000, epoch: 7 }.to_word(), 0x0070_7530);
    assert_eq!(
        Header { cwnd: 0x8_0000, epoch: 255, is_reset: true, is_difference: false }.to_word(),
        0x1ff4_8000
    );
}

#[test]
fn packets_that_come_as_one_move_the_window_as_one_by_one() {
    let mut random = Random::new(8);
    for _ in 0..20_000 {
        let config = config();
        let (mut one, mut all) = (Echo::new(MSS), Echo::new(MSS));
        let (first, packets) = (random.next() as u32, 1 + random.below(64) as u32);
        let (rtt, delta) =
            (random.next() as u32 >> random.below(32), random.next() as i32 >> random.below(32));
        let awnd = Bytes(random.next() >> random.below(64));
        let data = |is_reset| Data {
            header: xcp::Header { x: 1, rtt, delta, reverse: 0 },
            window: Header { cwnd: first, epoch: 1, is_reset, is_difference: false },
            mss: MSS,
            awnd,
        };
        all.take_all(&config, &data(true), packets);
        (0..packets).for_each(|_| one.take(&config, &data(true)));
        assert_eq!(one, all, "{packets} of {:?}", data(true));
    }
}

/// Of hosts: the memory of a connection is zero, the kernel's law rules for a while, XCP-r comes back, and again.
#[test]
fn a_sender_that_another_law_ruled_goes_on_with_its_epochs() {
    let config = config();
    let mut sender = Sender::new(&config, MSS, MSS);
    let mut echo = Echo::new(MSS);
    for turn in 1..600 {
        let begun = u32::from(sender.epoch().0);
        sender.resume(&config, MSS, Bytes(20_000 + turn));
        assert_eq!(sender.epoch(), ((begun + 1) as u8, true));
        let stale = echo.reply();
        sender.on_ack(&config, Time(0), &ack(stale));
        assert_eq!(sender.window(), Bytes(20_000 + turn), "an ACK of before");
        let (_, header) = sent(&mut sender, &config);
        let told = received(&mut echo, &config, 1000, &header);
        sender.on_ack(&config, Time(0), &ack(told));
        assert_eq!((sender.window(), sender.epoch().1), (Bytes(21_000 + turn), false));
        assert_eq!(sender.heard(), sender.window());

        // CUBIC's windows are stated, and the receiver is told none of them.
        sender.restate(MSS, Bytes(64_000));
        let (stated, header) = sent(&mut sender, &config);
        assert_eq!((stated.x, header.is_reset), (RTT / 64, false));
        received(&mut echo, &config, 0, &header);
        assert_eq!(echo.reply().cwnd, 21_000 + turn as u32);
    }
}
