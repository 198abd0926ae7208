//! The congestion header as a TCP option, and the echo that survives the loss of ACKs.

use congestlab_core::law::xcp::{CumulativeEcho, EchoReader, Header};
use congestlab_core::wire::option::{ACK, DATA, Echo, Hello, Option as Xcp};

#[path = "xcp/random.rs"]
mod random;
use random::Random;

#[test]
fn fields_lie_where_the_documents_say() {
    let header = Header { x: 0x0102_0304, rtt: 0x1112_131f, delta: -2, reverse: 9 };
    let echo = Echo { routers: 3, sum: 0x0abc_def1 };
    let (bytes, length) = Xcp::Data { header, routers: 2, echo }.emit();
    assert_eq!(length, DATA);
    assert_eq!(
        bytes,
        [253, 20, 0x58, 0x43, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x12, 255, 255, 255, 254, 0x3a, 0xbc, 0xde, 0xf1]
    );
    let read = Header { rtt: 0x1112_1310, reverse: 0, ..header };
    assert_eq!(Xcp::parse(&bytes), Some(Xcp::Data { header: read, routers: 2, echo }));

    let (bytes, length) = Xcp::Ack { echo }.emit();
    assert_eq!(bytes[..length], [253, 8, 0x58, 0x43, 0x3a, 0xbc, 0xde, 0xf1]);
    assert_eq!(length, ACK);
    assert_eq!(Xcp::parse(&bytes[..length]), Some(Xcp::Ack { echo }));
    for shim in [false, true] {
        assert_eq!(Hello::from_echo(Hello { shim }.to_echo()), Hello { shim });
    }
}

#[test]
fn other_options_and_wrong_lengths_are_none() {
    let (data, _) = Xcp::Data { header: Header::default(), routers: 0, echo: Echo::default() }.emit();
    for length in 0..DATA {
        assert_eq!(Xcp::parse(&data[..length]), None, "{length} bytes");
    }
    for (at, value) in [(0, 254), (1, 19), (1, 21), (1, 0), (1, 7), (2, 0), (3, 0)] {
        let mut bytes = data.to_vec();
        bytes[at] = value;
        bytes.resize(40, 0);
        assert_eq!(Xcp::parse(&bytes), None, "byte {at} is {value}");
    }
}

/// The count of routers saturates and touches no other field.
#[test]
fn more_routers_than_fit_are_many() {
    let header = Header { x: 1, rtt: 0xffff_fff0, delta: 1, reverse: 0 };
    let option = |routers| Xcp::Data { header, routers, echo: Echo::default() };
    assert_eq!(Xcp::parse(&option(200).emit().0), Some(option(15)));
}

/// What the sender has heard is what the receiver was given, less than a step of 16 B/s, whichever
/// ACKs were lost or overtaken and however often the sum went round.
#[test]
fn whatever_ack_arrives_last_makes_the_lost_ones_good() {
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let (mut echo, mut reader) = (CumulativeEcho::default(), EchoReader::default());
        let (mut given, mut heard) = (0i64, 0i64);
        let mut overtaken = None;
        for _ in 0..5000 {
            let delta = (random.next() as i32) >> (8 + random.below(24));
            let packets = 1 + random.below(4) as u32;
            echo.on_data(&Header { delta, ..Header::default() }, packets);
            given += i64::from(delta) * i64::from(packets);
            let sum = echo.on_ack();
            match random.below(4) {
                0 => {}
                1 => overtaken = Some(sum),
                _ => {
                    heard += i64::from(reader.on_ack(sum));
                    if let Some(sum) = overtaken.take() {
                        heard += i64::from(reader.on_ack(sum));
                    }
                }
            }
        }
        heard += i64::from(reader.on_ack(echo.on_ack()));
        assert!((0..16).contains(&(given - heard)), "{given} B/s given, {heard} heard");
    }
}

/// More than an ACK can say is said by the next ones.
#[test]
fn extreme_feedback_is_not_mistaken_for_its_opposite() {
    for delta in [i32::MAX, i32::MIN] {
        let (mut echo, mut reader) = (CumulativeEcho::default(), EchoReader::default());
        (0..3).for_each(|_| echo.on_data(&Header { delta, ..Header::default() }, 2));
        let mut heard = 0i64;
        for ack in 0..60 {
            let sum = echo.on_ack();
            if ack % 2 == 1 {
                let feedback = i64::from(reader.on_ack(sum));
                assert!(feedback * i64::from(delta) >= 0, "{feedback} for {delta}");
                heard += feedback;
            }
        }
        assert_eq!(heard >> 4, (6 * i64::from(delta)) >> 4);
    }
}
