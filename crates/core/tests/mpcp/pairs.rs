//! The receiver's chains of two, as ACKs of a kernel carry them.

use congestlab_core::law::mpcp::{
    Echoed, HIGH, Heard, LOW, OVERLOAD, Pairs, PairsReader, Sender, SenderConfig,
};
use congestlab_core::law::{Ack, SenderLaw as _};
use congestlab_core::units::{Bytes, Duration, Time};

use crate::random::Random;

const NOTHING: Heard = Heard { first: 0, second: 0, alone: 0, count: 0 };

fn chain(first: u8, second: u8) -> Heard {
    Heard { first, second, ..NOTHING }
}

fn alone(code: u8, count: u8) -> Heard {
    Heard { alone: code, count, ..NOTHING }
}

#[test]
fn each_ack_tells_what_came_since() {
    let (mut pairs, mut reader) = (Pairs::default(), PairsReader::default());
    assert_eq!(reader.on_ack(pairs.word), NOTHING);
    pairs.on_data(HIGH, 0, 1);
    assert_eq!(reader.on_ack(pairs.word), alone(HIGH, 1));
    pairs.on_data(OVERLOAD, 1, 1);
    assert_eq!(reader.on_ack(pairs.word), chain(0, OVERLOAD), "its first packet was told");
    assert_eq!(reader.on_ack(pairs.word), NOTHING);
    pairs.on_data(OVERLOAD, 0, 1);
    pairs.on_data(LOW, 1, 1);
    assert_eq!(reader.on_ack(pairs.word), chain(OVERLOAD, LOW));
    // A delayed ACK in the middle of chains.
    pairs.on_data(LOW, 0, 1);
    assert_eq!(reader.on_ack(pairs.word), alone(LOW, 1));
    pairs.on_data(HIGH, 1, 1);
    pairs.on_data(HIGH, 0, 1);
    assert_eq!(reader.on_ack(pairs.word), Heard { second: HIGH, alone: HIGH, count: 1, ..NOTHING });
}

#[test]
fn second_packets_without_a_first_and_those_of_no_place_count_as_nothing() {
    let mut pairs = Pairs::default();
    pairs.on_data(HIGH, 1, 1);
    pairs.on_data(HIGH, 2, 1);
    pairs.on_data(0, 0, 1);
    assert_eq!(pairs, Pairs::default());
}

#[test]
fn an_overtaken_ack_takes_nothing_back() {
    let (mut pairs, mut reader) = (Pairs::default(), PairsReader::default());
    pairs.on_data(LOW, 0, 1);
    let early = pairs.word;
    pairs.on_data(LOW, 1, 1);
    assert_eq!(reader.on_ack(pairs.word), chain(LOW, LOW));
    assert_eq!(reader.on_ack(early), NOTHING);
    assert_eq!(reader.on_ack(pairs.word), NOTHING);
}

/// Whatever ACKs are lost, the newest chain is told with its own digits, and none that was none.
#[test]
fn no_lost_ack_or_packet_makes_a_chain_that_was_none() {
    let mut random = Random::new(11);
    let (mut pairs, mut reader) = (Pairs::default(), PairsReader::default());
    let (mut first, mut newest, mut is_new, mut lost) = (0, (0, 0), false, 0);
    let mut chains = 0;
    for packet in 0..200_000u32 {
        let (index, code) = (packet & 1, 1 + random.below(3) as u8);
        if random.below(10) > 0 {
            pairs.on_data(code, index, 1);
            if index == 0 {
                first = code;
            } else if first > 0 {
                (newest, is_new, first) = ((first, code), true, 0);
            }
        }
        if lost < 12 && random.below(2) == 0 {
            lost += 1;
            continue;
        }
        lost = 0;
        let heard = reader.on_ack(pairs.word);
        assert_eq!(heard.second > 0, is_new, "packet {packet}: {heard:?}");
        if is_new {
            assert_eq!(heard.second, newest.1);
            assert!(heard.first == 0 || heard.first == newest.0, "{heard:?} {newest:?}");
            chains += 1;
        }
        is_new = false;
        assert_eq!(Heard::from_word(heard.to_word()), heard);
    }
    assert!(chains > 20_000, "{chains}");
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
    let config = SenderConfig::of(2, true);
    for shift in [0, 1] {
        let start = || Sender::new(&config, Bytes(1500), Bytes(15_000));
        let (mut single, mut merged) = (start(), start());
        let (mut pairs, mut reader) = (Pairs::default(), PairsReader::default());
        let mut cuts = 0;
        for packet in 0..2000u32 {
            let now = Time(u64::from(packet) * 4_000_000);
            // Low, high and over, for 50 packets each.
            let zone = 1 + (packet / 50 % 3) as u8;
            let code = if packet & 1 == 0 { zone } else { 2 };
            let before = single.window();
            let told = Ack { reply: Echoed::new(code, Some((packet & 1) as u8)).into(), ..ack(1) };
            single.on_ack(&config, now, &told);
            cuts += u32::from(single.window() < before);
            pairs.on_data(code, packet & 1, 1);
            if (packet + shift) & 1 == 1 {
                let heard = reader.on_ack(pairs.word);
                merged.on_pairs(&config, now, &ack(if packet == 0 { 1 } else { 2 }), heard);
            }
        }
        let (single, merged) = (single.window().0 as f64, merged.window().0 as f64);
        assert!((merged / single - 1.0).abs() < 0.02, "{shift}: {merged} instead of {single}");
        assert!(cuts > 5, "{cuts}");
    }
}

/// A path that drops what does not look like TCP drops every second packet: chains are given up after three firsts.
#[test]
fn firsts_alone_give_chains_up() {
    let config = SenderConfig::of(2, true);
    let mut sender = Sender::new(&config, Bytes(1500), Bytes(15_000));
    let (mut pairs, mut reader) = (Pairs::default(), PairsReader::default());
    pairs.on_data(LOW, 0, 3);
    let heard = reader.on_ack(pairs.word);
    assert_eq!(heard, alone(LOW, 3));
    sender.on_pairs(&config, Time(1_000_000_000), &ack(3), heard);
    let state = sender.state();
    assert!(state.is_downgraded && state.downgrades == 1, "{state:?}");
    // Then zones are heard, and growth is VCP's.
    pairs.on_data(HIGH, 0, 1);
    sender.on_pairs(&config, Time(1_010_000_000), &ack(1), reader.on_ack(pairs.word));
    assert_eq!(sender.state().level.zone(), HIGH);
}
