//! XCP-r's laws: the vectors of docs/design/protocols.md 4.4, the rules around them, the differential test against
//! a transcription in floating point, and properties.

#[path = "../xcp/any.rs"]
mod any;
mod difference;
mod first;
#[path = "../xcp/hostile.rs"]
mod hostile;
mod oracle;
mod properties;
#[path = "../xcp/random.rs"]
mod random;
mod words;

use congestlab_core::law::SenderLaw as _;
use congestlab_core::law::xcp::{self, LossPolicy};
use congestlab_core::law::xcp_r::{Config, Data, Echo, Header, Own, Reply, Sender};
use congestlab_core::law::{Ack, Send};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, SECOND, Time};

const MSS: Bytes = Bytes(1000);
const UNLIMITED: Bytes = Bytes(u64::MAX);
/// A round trip time of 2^-4 s: feedback of 16 B/s is a byte.
const RTT: u32 = 1 << 24;

/// the window in place of the receiver's. `difference` has the default.
fn config() -> Config {
    Config {
        xcp: xcp::SenderConfig { desired_rate: Rate(1_000_000_000), ..xcp::SenderConfig::DEFAULT },
        epochs: true,
        own: Own::Reset,
    }
}

/// XR's version.
fn paper() -> Config {
    Config { epochs: false, ..config() }
}

/// XCP's header of a packet that the links have given so many bytes of window.
fn granted(bytes: i32) -> xcp::Header {
    xcp::Header { x: 1, rtt: RTT, delta: 16 * bytes, reverse: 0 }
}

/// What a sender that has not changed its window says.
fn quiet(epoch: u8) -> Header {
    Header { cwnd: 123_456, epoch, ..Header::default() }
}

fn reset(cwnd: u32, epoch: u8) -> Header {
    Header { cwnd, epoch, is_reset: true, ..Header::default() }
}

fn ack(reply: Reply) -> Ack {
    Ack { acked: MSS, awnd: UNLIMITED, srtt: Duration(SECOND / 16), reply: reply.into(), ..Ack::default() }
}

fn send() -> Send {
    Send {
        size: MSS,
        srtt: Duration(SECOND / 16),
        awnd: UNLIMITED,
        backlog: Bytes(u64::MAX),
        ..Send::default()
    }
}

/// A packet of a sender: both its headers.
fn sent(sender: &mut Sender, config: &Config) -> (xcp::Header, Header) {
    (sender.header(config, Time(0), &send()), sender.window_header(config))
}

/// A data packet reaches the receiver.
fn arrive(echo: &mut Echo, config: &Config, mss: Bytes, awnd: Bytes, header: &xcp::Header, window: &Header) {
    echo.take(config, &Data { header: *header, window: *window, mss, awnd });
}

/// The window that the receiver states after the packet.
fn received(echo: &mut Echo, config: &Config, grant: i32, header: &Header) -> Reply {
    arrive(echo, config, MSS, UNLIMITED, &granted(grant), header);
    echo.reply()
}

#[test]
fn v4_1_a_lost_ack_delays_the_window_and_loses_nothing() {
    let config = config();
    let mut echo = Echo::new(MSS);
    let replies = [3000, 5000, -2000].map(|bytes| received(&mut echo, &config, bytes, &quiet(0)));
    assert_eq!(replies.map(|reply| reply.cwnd), [4000, 9000, 7000]);
    let mut sender = Sender::new(&config, MSS, MSS);
    sender.on_ack(&config, Time(0), &ack(replies[0]));
    assert_eq!(sender.window(), Bytes(4000));
    sender.on_ack(&config, Time(0), &ack(replies[2]));
    assert_eq!(sender.window(), Bytes(7000));

    // XCP's sender, which hears the increments.
    let mut sender = xcp::Sender::new(MSS, MSS);
    for bytes in [3000, -2000] {
        let ack = Ack { reply: xcp::reply(16 * bytes), ..ack(Reply::default()) };
        sender.on_ack(&config.xcp, Time(0), &ack);
    }
    assert_eq!(sender.window(), Bytes(2000));
}

#[test]
fn v4_2_after_a_timeout_the_receiver_goes_on_from_one_segment() {
    let config = config();
    let mut sender = Sender::new(&config, MSS, MSS);
    let mut echo = Echo::new(MSS);
    let told = received(&mut echo, &config, 69_000, &quiet(0));
    sender.on_ack(&config, Time(0), &ack(told));
    assert_eq!(sender.window(), Bytes(70_000));

    sender.on_timeout(&config, Time(0), Bytes(70_000), true);
    let (_, lost) = sent(&mut sender, &config);
    assert_eq!(lost, reset(1000, 1));
    let (_, second) = sent(&mut sender, &config);
    assert_eq!(second, reset(1000, 1), "the flag stays until it is echoed");
    // An ACK of before: the receiver had added 2000 meanwhile.
    let late = received(&mut echo, &config, 2000, &quiet(0));
    assert_eq!(late, Reply { cwnd: 72_000, epoch: 0 });
    let told = received(&mut echo, &config, 60_000, &second);
    assert_eq!(told, Reply { cwnd: 61_000, epoch: 1 });
    sender.on_ack(&config, Time(0), &ack(told));
    assert_eq!(sender.window(), Bytes(61_000));
    sender.on_ack(&config, Time(0), &ack(late));
    assert_eq!(sender.window(), Bytes(61_000), "a late ACK of the epoch before");
    assert_eq!(sent(&mut sender, &config).1, Header { cwnd: 61_000, epoch: 1, ..Header::default() });
}

#[test]
fn v4_3_a_flag_in_several_packets_is_obeyed_once() {
    let config = config();
    let mut echo = Echo::new(MSS);
    let replies = [100, 100, 100].map(|bytes| received(&mut echo, &config, bytes, &reset(5000, 1)));
    assert_eq!(replies.map(|reply| reply.cwnd), [5100, 5200, 5300]);
    // XR's version begins anew each time.
    let mut echo = Echo::new(MSS);
    let replies = [100, 100, 100].map(|bytes| received(&mut echo, &paper(), bytes, &reset(5000, 0)));
    assert_eq!(replies.map(|reply| reply.cwnd), [5100, 5100, 5100]);
}

#[test]
fn the_window_is_halved_once_and_the_receiver_told() {
    let config = config();
    let mut sender = Sender::new(&config, MSS, Bytes(20_000));
    // The receiver begins with one segment, so that another initial window is a change too.
    assert_eq!(sent(&mut sender, &config).1, reset(20_000, 1));
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 20_000, epoch: 1 }));
    sender.on_loss(&config, Time(0), Bytes(20_000));
    assert_eq!(sender.window(), Bytes(10_000));
    assert_eq!(sent(&mut sender, &config).1, reset(10_000, 2));
    // What was on its way is of the epoch before.
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 21_000, epoch: 1 }));
    assert_eq!(sender.window(), Bytes(10_000));
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 10_500, epoch: 2 }));
    assert_eq!(sender.window(), Bytes(10_500));
    assert!(!sent(&mut sender, &config).1.is_reset);
}

#[test]
fn a_sender_that_keeps_its_window_on_loss_has_nothing_to_tell() {
    let config = Config { xcp: xcp::SenderConfig { loss: LossPolicy::Maintain, ..config().xcp }, ..config() };
    let mut sender = Sender::new(&config, MSS, MSS);
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 64_000, epoch: 0 }));
    sender.on_loss(&config, Time(0), Bytes(64_000));
    assert_eq!((sender.window(), sender.epoch()), (Bytes(64_000), (0, false)));
    sender.on_timeout(&config, Time(0), Bytes(64_000), true);
    assert_eq!((sender.window(), sender.epoch()), (MSS, (1, true)));
}

/// The receiver may have been told, and have added since: only its ACK was lost.
#[test]
fn another_timeout_before_any_ack_begins_no_epoch() {
    let config = config();
    let mut sender = Sender::new(&config, MSS, MSS);
    let mut echo = Echo::new(MSS);
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 64_000, epoch: 0 }));
    sender.on_timeout(&config, Time(0), Bytes(64_000), true);
    let lost = received(&mut echo, &config, 60_000, &sent(&mut sender, &config).1);
    assert_eq!(lost, Reply { cwnd: 61_000, epoch: 1 });
    sender.on_timeout(&config, Time(0), Bytes(64_000), false);
    assert_eq!(sender.epoch(), (1, true));
    let told = received(&mut echo, &config, 500, &sent(&mut sender, &config).1);
    sender.on_ack(&config, Time(0), &ack(told));
    assert_eq!(sender.window(), Bytes(61_500));
    // Once it has been echoed, the next one is another.
    sender.on_timeout(&config, Time(0), Bytes(61_500), true);
    assert_eq!(sender.epoch(), (2, true));
}

#[test]
fn the_papers_version_flags_one_packet_and_believes_every_ack() {
    let config = paper();
    let mut sender = Sender::new(&config, MSS, MSS);
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 70_000, epoch: 0 }));
    sender.on_timeout(&config, Time(0), Bytes(70_000), true);
    assert_eq!(sent(&mut sender, &config).1, reset(1000, 0));
    assert_eq!(sent(&mut sender, &config).1, Header { cwnd: 1000, ..Header::default() });
    let late = Ack { is_late: true, is_duplicate: true, ..ack(Reply { cwnd: 72_000, epoch: 0 }) };
    sender.on_ack(&config, Time(0), &late);
    assert_eq!(sender.window(), Bytes(72_000), "XR IV");
}

#[test]
fn an_ack_that_was_overtaken_is_not_taken() {
    let config = config();
    let mut sender = Sender::new(&config, MSS, MSS);
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 9000, epoch: 0 }));
    let late = Ack { is_late: true, is_duplicate: true, ..ack(Reply { cwnd: 4000, epoch: 0 }) };
    sender.on_ack(&config, Time(0), &late);
    assert_eq!(sender.window(), Bytes(9000));
    // A duplicate is the newest word, if none is overtaken.
    let duplicate = Ack { is_duplicate: true, ..ack(Reply { cwnd: 4000, epoch: 0 }) };
    sender.on_ack(&config, Time(0), &duplicate);
    assert_eq!(sender.window(), Bytes(4000));
}

/// Packets overtake each other; numbers begin again after 255.
#[test]
fn the_flag_of_an_epoch_that_is_over_is_not_obeyed() {
    let config = config();
    let mut echo = Echo::new(MSS);
    for round in 0..1000_u32 {
        let epoch = (round + 1) as u8;
        let window = 50_000 + round;
        assert_eq!(received(&mut echo, &config, 0, &reset(window, epoch)), Reply { cwnd: window, epoch });
        let overtaken = reset(7000, epoch.wrapping_sub(1));
        assert_eq!(
            received(&mut echo, &config, 10, &overtaken),
            Reply { cwnd: window + 10, epoch },
            "its feedback counts, its window does not"
        );
    }
}

/// docs/design/protocols.md 4.3: cw' would inflate as TH 4.1 has it.
#[test]
fn the_receiver_keeps_the_window_within_what_it_advertises() {
    let mut echo = Echo::new(MSS);
    let mut told = |config: &Config, awnd: u64, bytes: i32| {
        arrive(&mut echo, config, MSS, Bytes(awnd), &granted(bytes), &quiet(0));
        echo.reply().cwnd
    };
    assert_eq!(told(&config(), 64_000, 100_000), 64_000);
    assert_eq!(told(&config(), 64_000, -4000), 60_000);
    assert_eq!(told(&config(), 10_000, 0), 10_000);
    assert_eq!(told(&config(), 0, 0), 1000, "one segment at least");
    let free = Config { xcp: xcp::SenderConfig { clamp: false, ..config().xcp }, ..config() };
    assert_eq!(told(&free, 64_000, 99_000), 100_000);
    assert_eq!(told(&free, 64_000, -500_000), 1000);
}

/// docs/design/protocols.md 4.3: Cwnd saturates, whichever side states it.
#[test]
fn a_window_of_four_gigabytes_is_the_largest() {
    let config = config();
    let mut echo = Echo::new(MSS);
    for _ in 0..100 {
        arrive(
            &mut echo,
            &config,
            MSS,
            UNLIMITED,
            &xcp::Header { x: 1, rtt: u32::MAX, delta: i32::MAX, reverse: 0 },
            &quiet(0),
        );
    }
    assert_eq!(echo.reply().cwnd, u32::MAX);
    assert_eq!(received(&mut echo, &config, -1000, &quiet(0)).cwnd, u32::MAX - 1000);
    let mut sender = Sender::new(&config, MSS, Bytes(10_000_000_000));
    assert_eq!(sent(&mut sender, &config).1, reset(u32::MAX, 1));
}

/// Its own limits are changes that the receiver does not make.
#[test]
fn a_window_that_the_sender_limits_is_told_to_the_receiver() {
    let config =
        Config { xcp: xcp::SenderConfig { desired_rate: Rate(160_000), ..config().xcp }, ..config() };
    let mut sender = Sender::new(&config, MSS, MSS);
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 50_000, epoch: 0 }));
    assert_eq!((sender.window(), sender.epoch()), (Bytes(10_000), (1, true)));
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 9000, epoch: 1 }));
    assert_eq!((sender.window(), sender.epoch()), (Bytes(9000), (1, false)));

    // What the receiver advertises it keeps to itself.
    let narrow = Ack { awnd: Bytes(5000), ..ack(Reply { cwnd: 9000, epoch: 1 }) };
    sender.on_ack(&config, Time(0), &narrow);
    assert_eq!((sender.window(), sender.epoch()), (Bytes(5000), (1, false)));

    let aging =
        Config { xcp: xcp::SenderConfig { aging: Some(Ratio::ppm(500_000)), ..config.xcp }, ..config };
    let mut sender = Sender::new(&aging, MSS, MSS);
    let (srtt, idle) = (SECOND / 16, Send { backlog: Bytes(0), ..send() });
    sender.on_ack(&aging, Time(0), &ack(Reply { cwnd: 10_000, epoch: 0 }));
    sender.header(&aging, Time(0), &idle);
    sender.header(&aging, Time(srtt), &idle);
    assert_eq!(sender.window(), Bytes(5500), "a tenth of the window was used");
    assert_eq!(sender.window_header(&aging), reset(5500, 1));
}

/// While Reno rules, the receiver goes on adding; when XCP is back, it begins with Reno's window.
#[test]
fn falling_back_to_tcp_and_returning_are_changes() {
    let config = Config { xcp: xcp::SenderConfig { loss: LossPolicy::Fallback, ..config().xcp }, ..config() };
    let mut sender = Sender::new(&config, MSS, MSS);
    sender.on_ack(&config, Time(0), &ack(Reply { cwnd: 20_000, epoch: 0 }));
    sender.on_loss(&config, Time(0), Bytes(20_000));
    assert!(sender.xcp().is_tcp());
    assert_eq!((sender.window(), sender.epoch()), (Bytes(10_000), (1, true)));
    // Reno stays while the receiver's window grows faster, and goes when it grows more slowly.
    let mut reply = Reply { cwnd: 10_000, epoch: 1 };
    for round in 1..=20 {
        assert_eq!(sender.xcp().is_tcp(), round <= 11, "round {round}");
        if round > 11 {
            break;
        }
        reply.cwnd += if round <= 10 { 5000 } else { 100 };
        let ack = Ack { acked: Bytes(20_000), is_window_limited: true, ..ack(reply) };
        sender.on_ack(&config, Time(round * SECOND / 16), &ack);
    }
    assert_eq!(sender.epoch(), (2, true));
    let window = sender.window();
    assert_eq!(u64::from(sender.window_header(&config).cwnd), window.0);
    sender.on_ack(&config, Time(SECOND), &ack(Reply { cwnd: 500_000, epoch: 1 }));
    assert_eq!(sender.window(), window);
}

/// What a link sees of XCP-r is XCP's header, to the bit.
#[test]
fn a_link_cannot_tell_xcp_r_from_xcp() {
    let config =
        Config { xcp: xcp::SenderConfig { desired_rate: Rate(700_000), ..config().xcp }, ..config() };
    let mut ours = Sender::new(&config, MSS, MSS);
    let mut plain = xcp::Sender::new(MSS, MSS);
    let mut window = 1000_i64;
    for round in 0..200_i32 {
        let bytes = (round * 7919) % 900 - 400;
        window = (window + i64::from(bytes)).max(1000);
        ours.on_ack(&config, Time(0), &ack(Reply { cwnd: window as u32, epoch: 0 }));
        plain.on_ack(&config.xcp, Time(0), &Ack { reply: xcp::reply(16 * bytes), ..ack(Reply::default()) });
        assert_eq!(ours.window(), plain.window());
        assert_eq!(sent(&mut ours, &config).0, plain.header(&config.xcp, Time(0), &send()));
    }
}
