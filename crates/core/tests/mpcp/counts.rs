//! The receiver's counts of codes, as ACKs of a kernel carry them.

use congestlab_core::law::mpcp::{Counts, CountsReader, Echoed, HIGH, LOW, OVERLOAD};

use crate::random::Random;

fn echo(code: u8) -> Echoed {
    Echoed::new(code, Some(0))
}

#[test]
fn an_ack_says_the_highest_code_that_is_new() {
    let (mut counts, mut reader) = (Counts::default(), CountsReader::default());
    assert_eq!(reader.on_ack(counts.word), Echoed::NONE);
    counts.on_data(LOW, 3);
    assert_eq!(counts.word, 3);
    assert_eq!(reader.on_ack(counts.word), echo(LOW));
    assert_eq!(reader.on_ack(counts.word), Echoed::NONE);
    counts.on_data(LOW, 1);
    counts.on_data(HIGH, 1);
    assert_eq!(counts.word, 0x0104);
    assert_eq!(reader.on_ack(counts.word), echo(HIGH));
    counts.on_data(OVERLOAD, 1);
    counts.on_data(HIGH, 1);
    assert_eq!(counts.word, 0x01_0204);
    assert_eq!(reader.on_ack(counts.word), echo(OVERLOAD));
}

#[test]
fn an_overtaken_ack_says_nothing_and_takes_nothing_back() {
    let (mut counts, mut reader) = (Counts::default(), CountsReader::default());
    counts.on_data(LOW, 1);
    let early = counts.word;
    counts.on_data(OVERLOAD, 1);
    assert_eq!(reader.on_ack(counts.word), echo(OVERLOAD));
    assert_eq!(reader.on_ack(early), Echoed::NONE);
    assert_eq!(reader.on_ack(counts.word), Echoed::NONE);
}

#[test]
fn no_lost_ack_hides_a_code() {
    let mut random = Random::new(5);
    let (mut counts, mut reader) = (Counts::default(), CountsReader::default());
    let (mut highest, mut lost) = (0, 0);
    for _ in 0..100_000 {
        let code = 1 + random.below(3) as u8;
        counts.on_data(code, 1 + random.below(30) as u32);
        highest = highest.max(code);
        // Three in a row are lost at most: 120 packets of one code.
        if lost == 3 || random.below(2) == 0 {
            assert_eq!(reader.on_ack(counts.word), echo(highest));
            (highest, lost) = (0, 0);
        } else {
            lost += 1;
        }
    }
}
