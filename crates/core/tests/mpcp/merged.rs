//! The receiver's chains of two packets and more, as ACKs of a kernel carry them.

use congestlab_core::law::mpcp::{
    Chains, ChainsReader, Echoed, HIGH, Heard, LOW, OVERLOAD, Sender, SenderConfig,
};
use congestlab_core::law::{Ack, SenderLaw as _};
use congestlab_core::units::{Bytes, Duration, Time};

use crate::random::Random;

const NOTHING: Heard = Heard { digits: 0, alone: 0, count: 0, is_cleared: false };

/// The digits of a chain as an echo has them; 0 of one that was told before.
fn digits(codes: &[u8]) -> u16 {
    codes.iter().rev().fold(0, |digits, &code| digits << 2 | u16::from(code))
}

fn chain(codes: &[u8]) -> Heard {
    Heard { digits: digits(codes), ..NOTHING }
}

fn alone(code: u8, count: u8) -> Heard {
    Heard { alone: code, count, ..NOTHING }
}

#[test]
fn each_ack_tells_what_came_since() {
    let (mut chains, mut reader) = (Chains::default(), ChainsReader::default());
    let come = |chains: &mut Chains, code, index| chains.on_data(2, code, index, 1);
    assert_eq!(reader.on_ack(2, chains.word), NOTHING);
    come(&mut chains, HIGH, 0);
    assert_eq!(reader.on_ack(2, chains.word), alone(HIGH, 1));
    come(&mut chains, OVERLOAD, 1);
    assert_eq!(reader.on_ack(2, chains.word), chain(&[0, OVERLOAD]), "its first packet was told");
    assert_eq!(reader.on_ack(2, chains.word), NOTHING);
    come(&mut chains, OVERLOAD, 0);
    come(&mut chains, LOW, 1);
    assert_eq!(reader.on_ack(2, chains.word), chain(&[OVERLOAD, LOW]));
    // A delayed ACK in the middle of chains.
    come(&mut chains, LOW, 0);
    assert_eq!(reader.on_ack(2, chains.word), alone(LOW, 1));
    come(&mut chains, HIGH, 1);
    come(&mut chains, HIGH, 0);
    assert_eq!(reader.on_ack(2, chains.word), Heard { alone: HIGH, count: 1, ..chain(&[0, HIGH]) });
}

/// An ACK for every second packet: those between the first and the last are told with the last.
#[test]
fn a_long_chain_is_told_by_its_first_packet_and_when_it_is_complete() {
    for n in 3..=8 {
        let (mut chains, mut reader) = (Chains::default(), ChainsReader::default());
        let codes: Vec<u8> = (0..n).map(|index| 1 + (index * index % 3) as u8).collect();
        chains.on_data(n, codes[0], 0, 1);
        assert_eq!(reader.on_ack(n, chains.word), alone(codes[0], 1));
        for index in 1..n {
            assert_eq!(reader.on_ack(n, chains.word), NOTHING, "{index} of {n}");
            chains.on_data(n, codes[index as usize], index, 1);
        }
        let told = [&[0], &codes[1..]].concat();
        // With the first one of the next.
        chains.on_data(n, OVERLOAD, 0, 1);
        assert_eq!(reader.on_ack(n, chains.word), Heard { alone: OVERLOAD, count: 1, ..chain(&told) }, "{n}");
        // A gap: the chain is none, and neither is what follows it.
        chains.on_data(n, LOW, 2, 1);
        (1..n).for_each(|index| chains.on_data(n, LOW, index, 1));
        assert_eq!(reader.on_ack(n, chains.word), NOTHING, "{n}");
        (0..n).for_each(|index| chains.on_data(n, codes[index as usize], index, 1));
        assert_eq!(reader.on_ack(n, chains.word), chain(&codes), "{n}");
    }
}

#[test]
fn packets_without_a_first_and_those_of_no_place_count_as_nothing() {
    for n in 2..=8 {
        let mut chains = Chains::default();
        (1..n + 3).for_each(|index| chains.on_data(n, HIGH, index, 1));
        assert_eq!(chains, Chains::default());
    }
}

#[test]
fn an_overtaken_ack_takes_nothing_back() {
    for n in 2..=8 {
        let (mut chains, mut reader) = (Chains::default(), ChainsReader::default());
        chains.on_data(n, LOW, 0, 1);
        let early = chains.word;
        (1..n).for_each(|index| chains.on_data(n, LOW, index, 1));
        assert_eq!(reader.on_ack(n, chains.word), chain(&vec![LOW; n as usize]));
        assert_eq!(reader.on_ack(n, early), NOTHING);
        assert_eq!(reader.on_ack(n, chains.word), NOTHING);
    }
}

/// Whatever ACKs are lost, the newest chain is told with its own digits, and none that was none.
#[test]
fn no_lost_ack_or_packet_makes_a_chain_that_was_none() {
    let mut random = Random::new(11);
    for n in 2..=8 {
        let (mut chains, mut reader) = (Chains::default(), ChainsReader::default());
        let (mut known, mut newest, mut is_new, mut lost) = (vec![], vec![], false, 0);
        let mut complete = 0;
        for packet in 0..100_000u32 {
            let (index, code) = (packet % n, 1 + random.below(3) as u8);
            if random.below(10) > 0 {
                chains.on_data(n, code, index, 1);
                if index == 0 {
                    known.clear();
                }
                if known.len() == index as usize {
                    known.push(code);
                } else {
                    known.clear();
                }
                if known.len() == n as usize {
                    (newest, is_new) = (std::mem::take(&mut known), true);
                }
            }
            if lost < 12 && random.below(2) == 0 {
                lost += 1;
                continue;
            }
            lost = 0;
            let heard = reader.on_ack(n, chains.word);
            assert_eq!(heard.digits > 0, is_new, "packet {packet} of chains of {n}: {heard:?}");
            if is_new {
                let whole = digits(&newest);
                assert!(heard.digits == whole || heard.digits == whole & !3, "{heard:?} {newest:?}");
                complete += 1;
            }
            is_new = false;
        }
        assert!(complete > 1000, "{complete} of {n}");
    }
}

fn ack(packets: u64) -> Ack {
    Ack {
        acked: Bytes(packets * 1500),
        srtt: Duration(40_000_000),
        rtt: Duration(40_000_000),
        is_window_limited: true,
        ..Ack::default()
    }
}

/// Two packets an ACK, cut either way, move a window as an ACK for each packet does.
#[test]
fn merged_acks_move_a_window_as_single_ones_do() {
    for n in 2..=8u32 {
        let config = SenderConfig::of(n, true);
        for shift in [0, 1] {
            let start = || Sender::new(&config, Bytes(1500), Bytes(15_000));
            let (mut single, mut merged) = (start(), start());
            let (mut chains, mut reader) = (Chains::default(), ChainsReader::default());
            let (mut cuts, mut windows) = (0, [0, 0]);
            for packet in 0..2000u32 {
                let now = Time(u64::from(packet) * 4_000_000);
                let index = packet % n;
                // Low, high and over, for some 50 packets each, in whole chains.
                let zone = 1 + ((packet - index) / 50 % 3) as u8;
                let code = if index == 0 { zone } else { 2 };
                let before = single.window();
                let told = Ack { reply: Echoed::new(code, Some(index as u8)).into(), ..ack(1) };
                single.on_ack(&config, now, &told);
                cuts += u32::from(single.window() < before);
                chains.on_data(n, code, index, 1);
                if (packet + shift) & 1 == 1 {
                    let heard = reader.on_ack(n, chains.word);
                    merged.on_chains(&config, now, &ack(if packet == 0 { 1 } else { 2 }), heard);
                    windows = [windows[0] + single.window().0, windows[1] + merged.window().0];
                }
            }
            let [single, merged] = windows.map(|sum| sum as f64 / 1000.0);
            assert!((merged / single - 1.0).abs() < 0.02, "{n}, {shift}: {merged} instead of {single}");
            assert!(cuts > 5, "{cuts}");
        }
    }
}

/// A path that drops what does not look like TCP drops every packet but the first: chains are given up after three of two, or
/// after n + 1 of more.
#[test]
fn firsts_alone_give_chains_up() {
    for n in 2..=8u32 {
        let config = SenderConfig::of(n, true);
        let mut sender = Sender::new(&config, Bytes(1500), Bytes(15_000));
        let (mut chains, mut reader) = (Chains::default(), ChainsReader::default());
        let mut firsts = 0;
        while !sender.state().is_downgraded {
            let came = 1 + u32::from(firsts > 0) * (firsts & 1);
            chains.on_data(n, LOW, 0, came);
            firsts += came;
            let heard = reader.on_ack(n, chains.word);
            assert_eq!(heard, alone(LOW, came as u8));
            sender.on_chains(&config, Time(1_000_000_000), &ack(u64::from(came)), heard);
            assert!(firsts <= n + 3, "{firsts} firsts of chains of {n}");
        }
        assert!(firsts >= if n == 2 { 3 } else { n + 1 }, "{firsts} of chains of {n}");
        assert_eq!(sender.state().downgrades, 1);
        // Then zones are heard, and growth is VCP's.
        chains.on_data(n, HIGH, 0, 1);
        sender.on_chains(&config, Time(1_010_000_000), &ack(1), reader.on_ack(n, chains.word));
        assert_eq!(sender.state().level.zone(), HIGH);
    }
}
