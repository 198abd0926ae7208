//! RCP against numbers worked out by hand (docs/protocols/rcp.md#numbers), and its bytes.

use congestlab_core::law::rcp::{self, Header, Link, LinkConfig, TcpOption};
use congestlab_core::law::{
    Ack, Carried, EchoLaw as _, LinkLaw as _, Listening, Packet as _, Reply, SenderLaw as _,
};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};

const MS: u64 = 1_000_000;
const CAPACITY: Rate = Rate(1_250_000);
const D: Duration = Duration(100 * MS);
const T: Duration = Duration(10 * MS);

fn config(share_ppm: u32) -> LinkConfig {
    let initial_share = Ratio::ppm(share_ppm);
    LinkConfig { capacity: CAPACITY, initial_rtt: D, initial_share, ..LinkConfig::DEFAULT }
}

/// A link in its first interval, which began at 0 and ends after T.
fn link(share_ppm: u32) -> Link {
    Link::new(config(share_ppm), T)
}

fn packet(size: u64, rtt: Duration, rate: u32) -> Carried {
    let mut packet = Carried { size: Bytes(size), ..Carried::default() };
    packet.add_header(Header { rtt: rtt.to_header(), rate });
    packet
}

/// So many bytes arrive that state no round trip, and the interval ends with so many waiting: the rate, and d.
fn after(mut link: Link, bytes: u64, rtt: Duration, backlog: u64) -> (Rate, Duration) {
    for _ in 0..bytes / 1250 {
        link.on_arrival(Time(0), &packet(1250, rtt, u32::MAX));
    }
    link.on_deadline(Time::ZERO + T, Bytes(backlog));
    (link.report().rate, link.report().rtt)
}

/// C = 1.25 MB/s, T = 10 ms, d = 100 ms, alpha = beta = 0.4, gamma = 1.
#[test]
fn the_rate_moves_as_the_equation_says() {
    let unknown = Duration(0);
    for (share, bytes, backlog, rate) in [
        // y = 0, Q = 0: R (1 + 0.1 * 0.4) = 62500 * 1.04.
        (50_000, 0, 0, 65_000),
        // y = C, Q = 12500: R (1 - 0.1 * 0.4 * 0.1).
        (50_000, 12_500, 12_500, 62_250),
        // y = 1.1 C, Q = 25000: R (1 - 0.1 * (0.04 + 0.08)).
        (50_000, 13_750, 25_000, 61_750),
        // R = C and nothing comes: 1.3 MB/s, clipped to C.
        (1_000_000, 0, 0, 1_250_000),
    ] {
        let (found, d) = after(link(share), bytes, unknown, backlog);
        // A part has 24 binary places, T / d has 16: they round down, by less than a byte a second here.
        assert!(found.0.abs_diff(rate) <= 1, "{found:?}, {rate} with {bytes} B and {backlog} B");
        assert_eq!(d, D, "nobody stated a round trip");
    }
}

/// An idle link takes 77 intervals from 5 % to its capacity.
#[test]
fn an_idle_link_offers_all_after_77_intervals() {
    let mut link = link(50_000);
    let mut intervals = 0;
    while link.report().rate < CAPACITY {
        link.on_deadline(link.next_deadline(), Bytes(0));
        intervals += 1;
    }
    assert_eq!(intervals, 77);
}

/// d rises by T / d of the way, and falls by that times s / d times R / C.
#[test]
fn the_mean_round_trip_is_slow_to_believe_in_short_ones() {
    // T / d = 0.1 of the way from 100 ms to 200 ms; headers state 2^-20 s.
    let (_, d) = after(link(100_000), 12_500, Duration(200 * MS), 0);
    assert!(d.0.abs_diff(110 * MS) < 1000, "{d:?}");
    // 0.1 * 0.5 * 0.1 of the way from 100 ms to 50 ms.
    let (_, d) = after(link(100_000), 12_500, Duration(50 * MS), 0);
    assert!(d.0.abs_diff(99_750_000) < 1000, "{d:?}");
}

/// A packet returns the least of its path, and no more than its sender wished.
#[test]
fn a_packet_collects_the_least_rate_of_its_path() {
    let rates = [900, 400, 700];
    for (wish, least) in [(u32::MAX, 400), (300, 300)] {
        let mut packet = packet(1000, D, wish);
        for rate in rates {
            // Steps of 64 B/s.
            let share = Ratio::ONE;
            let config = LinkConfig { capacity: Rate(rate * 64), initial_share: share, ..config(0) };
            Link::new(config, T).on_departure(Time(0), &mut packet, Bytes(0));
        }
        let header: Header = packet.header().expect("it has one");
        assert_eq!(header, Header { rtt: D.to_header(), rate: least });
    }
}

/// The floor is a hundredth of a packet in d, and a link whose capacity is not known yet offers a step of headers.
#[test]
fn a_rate_never_ends() {
    let mut link = link(50_000);
    for _ in 0..5000 {
        let now = link.next_deadline();
        for _ in 0..40 {
            link.on_arrival(now, &packet(1500, D, u32::MAX));
        }
        link.on_deadline(now, Bytes(1_000_000));
    }
    assert_eq!(link.report().rate, Rate(150), "1500 B / (100 * 100 ms)");
    let mut asked = packet(1000, D, u32::MAX);
    link.on_departure(Time(0), &mut asked, Bytes(0));
    assert_eq!(asked.header::<Header>().map(|header| header.rate), Some(2), "150 / 64");
}

/// A delayed ACK hides no lower rate; one without news repeats the last.
#[test]
fn an_ack_returns_the_least_rate_since_the_last() {
    let (config, receiver) = (rcp::SenderConfig {}, Listening::default());
    let mut echo = rcp::Echo::start(&config, Bytes(1000));
    let mut hear = |rates: &[u32]| {
        for &rate in rates {
            echo.on_data(&config, &packet(1000, D, rate), receiver);
        }
        echo.on_ack(&config, receiver)
    };
    for (rates, told) in [(&[700, 400, 900][..], 400), (&[], 400), (&[800], 800), (&[900, 850], 850)] {
        assert_eq!(hear(rates), Reply { word: told, byte: 0 });
        assert_eq!(rcp::told(Reply { word: told, byte: 0 }), Some(Rate(u64::from(told) * 64)));
    }
    assert_eq!(rcp::told(Reply::default()), None);
}

/// A wish that comes back as it left is no rate: no link of the path runs RCP, and nobody else bounds the sender.
#[test]
fn a_wish_that_no_link_answers_is_no_rate() {
    let mss = Bytes(1500);
    let mut sender = rcp::Sender::new(mss, mss);
    let mut hear = |word: u32| {
        let ack = Ack { acked: mss, srtt: D, reply: Reply { word, byte: 0 }, ..Ack::default() };
        sender.on_ack(&rcp::SenderConfig {}, Time(0), &ack);
        (sender.window(), sender.rate())
    };
    assert_eq!(hear(u32::MAX), (mss, Rate(0)), "one segment in a round trip");
    assert_eq!(hear(1000), (Bytes(6400 + 3000), Rate(64_000)));
    assert_eq!(hear(0), (Bytes(6400 + 3000), Rate(64_000)), "an ACK without a rate changes nothing");
    assert_eq!(hear(u32::MAX), (mss, Rate(0)), "the path has no RCP any more");
    // The fastest link that a header can say is told apart from none.
    let (mut fast, fastest) = (config(1_000_000), Rate(1 << 40));
    fast.capacity = fastest;
    let mut asked = packet(1500, D, u32::MAX);
    Link::new(fast, T).on_departure(Time(0), &mut asked, Bytes(0));
    let rate = asked.header::<Header>().expect("it has one").rate;
    assert_eq!((rate, rcp::told(Reply { word: rate, byte: 0 }).is_some()), (u32::MAX - 1, true));
}

/// The option of RFC 6994 that captures have.
#[test]
fn its_option_is_twelve_bytes_on_data_and_eight_on_acks() {
    let header = Header { rtt: 0x0102_0304, rate: 0xa0b0_c0d0 };
    let bytes = TcpOption::Forward(header).emit();
    assert_eq!(bytes, [253, 12, b'R', b'C', 0xa0, 0xb0, 0xc0, 0xd0, 1, 2, 3, 4]);
    assert_eq!(TcpOption::parse(&bytes), Ok(TcpOption::Forward(header)));
    let bytes = TcpOption::Back(7).emit();
    assert_eq!(bytes[..8], [253, 8, b'R', b'C', 0, 0, 0, 7]);
    assert_eq!(TcpOption::parse(&bytes[..8]), Ok(TcpOption::Back(7)));
    for (bytes, error) in [
        (&[][..], rcp::OptionError::Truncated),
        (&[253], rcp::OptionError::Truncated),
        (&[253, 12, b'R'], rcp::OptionError::Truncated),
        (&[253, 12, b'R', b'C', 0, 0, 0, 1, 0, 0, 0], rcp::OptionError::Truncated),
        (&[254, 12, b'R', b'C'], rcp::OptionError::Foreign),
        (&[253, 12, b'R', b'D'], rcp::OptionError::Foreign),
        (&[253, 9, b'R', b'C', 0, 0, 0, 1, 0], rcp::OptionError::Length(9)),
    ] {
        assert_eq!(TcpOption::parse(bytes), Err(error), "{bytes:?}");
        assert!(!error.to_string().is_empty());
    }
}
