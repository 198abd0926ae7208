//! HPCC and CSIG (docs/design/modern.md 8).

#[path = "xcp/random.rs"]
mod random;

use congestlab_core::law::hpcc::{
    Echo, Header, Link, LinkConfig, PLACES, Sender, SenderConfig, Signal, Telemetry,
};
use congestlab_core::law::{
    Ack, Carried, EchoLaw as _, LinkLaw as _, Listening, Packet as _, Reply, Send, SenderLaw as _,
};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};
use random::Random;

/// 100 Gbit/s and 13 us: C T = 162500 B.
const CAPACITY: u64 = 12_500_000_000;
const T: Duration = Duration(13_000);
const PIPE: u64 = 162_500;
const MSS: u64 = 1250;

fn link(telemetry: Telemetry) -> Link {
    Link::new(LinkConfig { capacity: Rate(CAPACITY), ..LinkConfig::of(telemetry) })
}

fn flow(telemetry: Telemetry) -> SenderConfig {
    SenderConfig { desired_rate: Rate(CAPACITY), additive: Ratio::ppm(0), ..SenderConfig::of(telemetry) }
}

fn packet(signal: Signal, size: u64) -> Carried {
    let mut packet = Carried { size: Bytes(size), ..Carried::default() };
    packet.add_header(Header::asking(signal));
    packet
}

/// A packet that asks leaves at a time; returns what it is told.
fn leaves(law: &mut Link, at: u64, signal: Signal, size: u64, backlog: u64) -> u32 {
    let mut packet = packet(signal, size);
    law.on_departure(Time(at), &mut packet, Bytes(backlog));
    packet.header::<Header>().expect("it has one").value
}

/// Load after packets of this size each so many nanoseconds for twenty round trips, with this much waiting.
fn load(size: u64, every: u64, backlog: u64) -> f64 {
    let mut law = link(Telemetry::Load);
    for number in 0..20 * T.0 / every {
        leaves(&mut law, number * every, Signal::Load, size, backlog);
    }
    f64::from(law.report().load) / f64::from(1 << PLACES)
}

/// VM8.1: the load is output and queue over what the link carries in a round trip.
#[test]
fn vm8_1_the_load_of_a_port() {
    for (size, every, backlog, expected) in [
        (1125, 100, 0, 0.9),
        (1250, 100, 16_250, 1.1),
        (1250, 100, PIPE, 2.0),
        (125, 10, 0, 0.1 * 10.0),
        (125, 100, 0, 0.1),
    ] {
        let found = load(size, every, backlog);
        // A packet that has just left counts whole: half of one too much on the mean.
        let packet = size as f64 / PIPE as f64;
        assert!(
            (found - expected).abs() <= packet,
            "{size} B each {every} ns, {backlog} B: {found}, not {expected}"
        );
    }
    // Nothing left for a round trip: only the packet that leaves counts.
    let mut law = link(Telemetry::Load);
    for number in 0..200 {
        leaves(&mut law, number * 100, Signal::Load, 1250, PIPE);
    }
    leaves(&mut law, 20_000 + T.0, Signal::Load, 1250, 0);
    let found = f64::from(law.report().load) / f64::from(1 << PLACES);
    assert!((found - 1250.0 / PIPE as f64).abs() < 1e-4, "{found}");
}

/// VM8.2: a tenth of a round trip moves the mean by a tenth.
#[test]
fn vm8_2_the_mean() {
    let mut law = link(Telemetry::Load);
    // To .5: half of a pipe at once.
    leaves(&mut law, T.0, Signal::Load, PIPE / 2, 0);
    // 1.3 us later, u 1.1: a tenth of it as queue of a whole pipe, and a tenth of .1 as output.
    leaves(&mut law, T.0 + 1300, Signal::Load, PIPE / 100, PIPE);
    let found = f64::from(law.report().load) / f64::from(1 << PLACES);
    assert!((found - 0.56).abs() < 1e-4, "{found}");
}

/// VM8.6: the worst hop of a path, in twelve binary places and at most 16.
#[test]
fn vm8_6_a_packet_collects_the_largest_load() {
    let told = |loads: &[f64]| {
        let mut packet = packet(Signal::Load, 0);
        for load in loads {
            let mut law = link(Telemetry::Load);
            leaves(&mut law, T.0, Signal::Load, (PIPE as f64 * load) as u64, 0);
            let came = packet;
            law.on_departure(Time(T.0), &mut packet, Bytes(0));
            assert!(law.only_lowers(&came, &packet));
        }
        packet.header::<Header>().unwrap().value
    };
    assert_eq!(told(&[0.5, 1.25, 0.9]), 5120);
    assert_eq!(told(&[1.25, 0.5]), 5120);
    assert_eq!(told(&[20.0]), 65_535);
    // A port without load tells one: 0 is that nobody told.
    assert_eq!(told(&[0.0]), 1);
}

/// The two signals of a tag: free capacity over 256 us, and the wait of a packet that comes now.
#[test]
fn a_tag_collects_the_least_and_the_longest() {
    let busy = |part: u64| {
        let mut law = link(Telemetry::Csig);
        for number in 0..10_000 {
            leaves(&mut law, number * 100, Signal::Free, 1250 * part / 100, 0);
        }
        law
    };
    for (part, free) in [(0, 1.0), (30, 0.7), (95, 0.05), (100, 0.0), (200, 0.0)] {
        let found =
            f64::from(leaves(&mut busy(part), 1_000_050, Signal::Free, 1250, 0)) / f64::from(1 << PLACES);
        // A packet of 2560.
        assert!((found - free).abs() < 1e-3, "{part} %: {found}, not {free}");
    }
    let mut law = busy(10);
    // 125 kB at 12.5 GB/s are 10 us, in steps of 16 ns.
    assert_eq!(leaves(&mut law, 1_000_100, Signal::Wait, 1250, 125_000), 10_000 / 16);
    let (mut free, mut wait) = (packet(Signal::Free, 1250), packet(Signal::Wait, 1250));
    for (part, backlog) in [(40, 50_000), (80, 12_500), (60, 0)] {
        let mut law = busy(part);
        for packet in [&mut free, &mut wait] {
            let came = *packet;
            law.on_departure(Time(1_000_100), packet, Bytes(backlog));
            assert!(law.only_lowers(&came, packet));
        }
    }
    let value = |packet: Carried| packet.header::<Header>().unwrap().value;
    assert!((f64::from(value(free)) / f64::from(1 << PLACES) - 0.2).abs() < 1e-3);
    assert_eq!(value(wait), 4000 / 16);
}

/// Telemetry of the other kind is left alone.
#[test]
fn links_tell_what_is_theirs() {
    assert_eq!(leaves(&mut link(Telemetry::Csig), 1_000_000, Signal::Load, 1250, PIPE), 0);
    assert_eq!(leaves(&mut link(Telemetry::Load), 1_000_000, Signal::Wait, 1250, PIPE), 0);
}

/// A reply with a load of 2^-12.
fn load_reply(load: f64) -> Reply {
    Reply { word: (load * 4096.0) as u32, byte: 0 }
}

fn ack(reply: Reply, flight: u64) -> Ack {
    Ack { acked: Bytes(MSS), flight: Bytes(flight), reply, is_window_limited: true, ..Ack::default() }
}

/// VM8.3: the window is the reference's, by load; the reference moves once in a round trip.
#[test]
fn vm8_3_the_window() {
    let config = flow(Telemetry::Load);
    let mut law = Sender::start(&config, Bytes(MSS), Bytes(10 * MSS));
    assert_eq!(law.load_window(), Bytes(PIPE), "what the line carries in T");
    assert_eq!(law.window(), Bytes(PIPE.next_multiple_of(MSS)), "the next whole segment goes");
    assert_eq!(law.pacing_rate(&config, Duration(0)), Some(Rate(CAPACITY)));
    law.on_ack(&config, Time(0), &ack(load_reply(1.1), PIPE));
    let first = law.load_window().0;
    assert!(first.abs_diff(140_341) < 50, "{first}");
    // The reference is the first one's for the rest of the round trip.
    let rest = PIPE / MSS - 2;
    for _ in 0..rest {
        law.on_ack(&config, Time(0), &ack(load_reply(1.1), PIPE));
        let window = law.load_window().0;
        assert!(window.abs_diff((first as f64 * 0.95 / 1.1) as u64) < 100, "{window}");
    }
    // No hop told anything: nothing changes.
    let before = law.load_window();
    law.on_ack(&config, Time(0), &ack(Reply::default(), PIPE));
    assert_eq!(law.load_window(), before);
    // More than the line carries is no window, and a segment stays.
    law.on_ack(&config, Time(0), &ack(load_reply(0.01), PIPE));
    assert_eq!(law.load_window(), Bytes(PIPE));
    (0..1000).for_each(|_| law.on_ack(&config, Time(0), &ack(load_reply(15.0), MSS)));
    assert_eq!(law.load_window(), Bytes(MSS));
    // With W_AI.
    let config = SenderConfig { additive: Ratio::ppm(500), ..config };
    let mut law = Sender::start(&config, Bytes(MSS), Bytes(0));
    law.on_ack(&config, Time(0), &ack(load_reply(1.1), PIPE));
    assert!(law.load_window().0.abs_diff(first + 81) <= 1, "{:?}", law.load_window());
}

/// Of a tag the load is what is in use and the wait in round trips, each of the worst hop.
#[test]
fn a_tags_load_is_a_bound() {
    let config = flow(Telemetry::Csig);
    let listening = Listening::default();
    let mut echo = Echo::start(&config, Bytes(MSS));
    let mut hears = |told: &[(Signal, u32)]| {
        for &(signal, value) in told {
            let mut packet = packet(signal, MSS);
            packet.set_header(Header { signal, value });
            echo.on_data(&config, &packet, listening);
        }
        echo.on_ack(&config, listening)
    };
    let load = |reply: Reply| {
        let mut law = Sender::start(&config, Bytes(MSS), Bytes(0));
        law.on_ack(&config, Time(0), &ack(reply, PIPE));
        law.load() as f64 / f64::from(1 << PLACES)
    };
    let share = |part: f64| (part * f64::from(1 << PLACES)) as u32;
    assert_eq!(load(hears(&[])), 0.0, "nothing was told");
    assert_eq!(load(hears(&[(Signal::Wait, 100)])), 0.0, "of free capacity nothing was told");
    // .9 in use, and 6.5 us of 13.
    let reply = hears(&[(Signal::Free, share(0.1)), (Signal::Wait, 6500 / 16)]);
    assert!((load(reply) - 1.4).abs() < 2e-3, "{}", load(reply));
    // The worst since the last ACK, and without news the last.
    let reply = hears(&[(Signal::Free, share(0.3)), (Signal::Free, share(0.2)), (Signal::Free, share(0.4))]);
    assert!((load(reply) - 1.3).abs() < 2e-3, "{}", load(reply));
    let reply = hears(&[(Signal::Wait, 0), (Signal::Wait, 1300 / 16), (Signal::Wait, 0)]);
    // The last free part was that of the ACK before.
    assert!((load(reply) - 0.9).abs() < 2e-3, "{}", load(reply));
    // 20 bits of each come back.
    let reply = hears(&[(Signal::Free, 12_345), (Signal::Wait, (1 << 20) - 1)]);
    assert_eq!((reply.word & 0xf_ffff, reply.word >> 20, reply.byte), (12_345, 0xfff, 0xff));
    let mut law = Sender::start(&config, Bytes(MSS), Bytes(0));
    let signals: Vec<Signal> = (0..4)
        .map(|_| {
            let mut packet = Carried::default();
            law.on_send(&config, Time(0), &Send::default(), &mut packet);
            packet.header::<Header>().unwrap().signal
        })
        .collect();
    assert_eq!(signals, [Signal::Free, Signal::Wait, Signal::Free, Signal::Wait]);
}

/// A link and a flow alone, round trip by round trip: the load comes to what is aimed at.
#[test]
fn the_load_comes_to_what_is_aimed_at() {
    let config = flow(Telemetry::Load);
    let (mut link, mut law) = (link(Telemetry::Load), Sender::start(&config, Bytes(MSS), Bytes(0)));
    let mut now = 1_000_000;
    for _ in 0..20 {
        let window = law.window().0;
        let packets = window / MSS;
        let mut told = 0;
        for _ in 0..packets {
            // Paced over the round trip, so that nothing waits.
            now += T.0 / packets;
            told = leaves(&mut link, now, Signal::Load, MSS, 0);
        }
        for _ in 0..packets {
            law.on_ack(&config, Time(now), &ack(Reply { word: told, byte: 0 }, window));
        }
    }
    let found = law.load() as f64 / f64::from(1 << PLACES);
    // A packet that has just left, and the window is whole packets.
    assert!((found - 0.95).abs() < 2.0 * MSS as f64 / PIPE as f64, "{found}");
}

/// Any settings, times, sizes and replies: nothing overflows.
#[test]
fn nothing_overflows() {
    let mut random = Random::new(8);
    for round in 0..2000 {
        let telemetry = if round % 2 == 0 { Telemetry::Load } else { Telemetry::Csig };
        let mut any = || random.next() >> random.below(64);
        let config = LinkConfig {
            capacity: Rate(any()),
            base_rtt: Duration(any()),
            window: Duration(any()),
            ..LinkConfig::of(telemetry)
        };
        let flow = SenderConfig {
            base_rtt: Duration(any()),
            desired_rate: Rate(any()),
            step: Duration(any()),
            ..SenderConfig::of(telemetry)
        };
        let mut link = Link::new(config);
        let mut law = Sender::start(&flow, Bytes(any()), Bytes(any()));
        let least = law.load_window().0.min(1);
        let mut now = 0u64;
        for _ in 0..60 {
            now = now.saturating_add(any());
            link.set_capacity(Rate(any()));
            let signal = [Signal::Load, Signal::Free, Signal::Wait][any() as usize % 3];
            leaves(&mut link, now, signal, any(), any());
            let reply = Reply { word: any() as u32, byte: any() as u8 };
            let ack = Ack { acked: Bytes(any()), flight: Bytes(any()), reply, ..Ack::default() };
            law.on_ack(&flow, Time(now), &ack);
            assert!(law.load_window().0 >= least && law.load_window().0 <= 1 << 40);
            assert!(law.window() >= law.load_window(), "{law:?}");
        }
    }
}
