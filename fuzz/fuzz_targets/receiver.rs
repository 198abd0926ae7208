//! A TCP receiver against a set of segments, under any sequence of packets.
//!
//! Input: two bytes of configuration, four of initial sequence number, then operations of eight
//! bytes: what, flags, sequence number (near what is expected, or any), time, two bytes of header.
#![no_main]

use congestlab_core::law::{SenderConfig, xcp};
use congestlab_core::units::{Bytes, Duration, Time};
use congestlab_net::packet::{Kind, Packet, SACK_BLOCKS, UNLIMITED, flag};
use congestlab_net::tcp::{Advertise, App, Config, Measure, Receiver, Recovery, SlowStart};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

/// What a receiver has, as a set.
#[derive(Default)]
struct Model {
    next: u64,
    beyond: BTreeSet<u64>,
}

impl Model {
    /// Takes in a segment.
    fn receive(&mut self, segment: u64) {
        if segment >= self.next {
            self.beyond.insert(segment);
        }
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
    }

    /// True if `start..end` is a whole block of what is held beyond a gap.
    fn is_block(&self, start: u64, end: u64) -> bool {
        start < end
            && (start..end).all(|segment| self.beyond.contains(&segment))
            && !self.beyond.contains(&(start.wrapping_sub(1)))
            && !self.beyond.contains(&end)
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&[bits, more, a, b, c, d], operations)) = input.split_first_chunk::<6>() else {
        return;
    };
    let isn = u32::from_le_bytes([a, b, c, d]);
    let segment = 1000;
    let config = Config {
        segment,
        ack: 40,
        // What goes back is the law's to say.
        law: SenderConfig::Xcp(xcp::SenderConfig::DEFAULT),
        initial_window: 2,
        window_most: Bytes(u64::MAX),
        awnd: (bits & 1 != 0).then_some(64),
        advertise: Advertise::Always,
        stop: Time::NEVER,
        measure: Measure::ALWAYS,
        recovery: [Recovery::Sack, Recovery::Sack, Recovery::NewReno, Recovery::Reno]
            [usize::from(bits >> 1 & 3)],
        min_rto: Duration(1_000_000_000),
        delayed_ack: bits & 8 != 0,
        ecn: bits & 16 != 0,
        lie: None,
        ns2: bits & 32 != 0,
        linux: (bits & 0b1010_0100 == 128).then_some(SlowStart::Standard),
        app: if bits & 64 != 0 { App::Transfer(Bytes(u64::from(more) * 777)) } else { App::Endless },
    };
    let mut receiver = Receiver::new(&config, 5, isn);
    let base = isn.wrapping_add(1);
    let mut model = Model::default();
    // The measured time begins after 0.
    let (mut now, mut granted, mut returned) = (Time(1), 0i64, 0i64);

    for operation in operations.chunks_exact(8).take(200) {
        let [what, flags, s0, s1, s2, s3, time, word] = *operation else { continue };
        now = Time(now.0 + u64::from(time) * 1_000_000);
        while receiver.next_deadline() <= now {
            let deadline = receiver.next_deadline();
            let ack = receiver.handle_deadline(&config, deadline).expect("a deadline sends an ACK");
            check(&config, &ack, &model, base, None);
            returned += i64::from(xcp::feedback(ack.reply()));
            assert!(receiver.next_deadline() > deadline);
        }
        let far = u32::from_le_bytes([s0, s1, s2, s3]);
        let near = base.wrapping_add(model.next as u32).wrapping_add_signed(i32::from(s0 as i8));
        let kind = match what & 7 {
            0 => Kind::Syn,
            1 => Kind::WindowProbe,
            2 => Kind::Ack,
            3 => Kind::Datagram,
            _ => Kind::Data,
        };
        let mut packet = Packet {
            at: now.0 * 1000,
            stamp_ns: now.0.saturating_sub(u64::from(word)),
            flow: 5,
            seq: if what & 8 == 0 { near } else { far },
            size: segment,
            kind,
            flags: flags & !flag::HEADER,
            ..Packet::default()
        };
        if flags & flag::HEADER != 0 {
            let delta = (i32::from(word as i8) << (what >> 4)) * 256;
            packet.set_header(xcp::Header { x: far, rtt: far, delta, reverse: 0 });
        }
        let mut newest = None;
        if kind == Kind::Data {
            // Segment numbers are 32 bits of a longer count: the nearest one is meant.
            let distance = packet.seq.wrapping_sub(base.wrapping_add(model.next as u32)) as i32;
            if let Some(segment) = model.next.checked_add_signed(i64::from(distance)) {
                model.receive(segment);
                newest = model.beyond.contains(&segment).then_some(segment);
            }
        }
        // A SYN may carry a header, too.
        if matches!(kind, Kind::Data | Kind::Syn) {
            granted += i64::from(packet.header::<xcp::Header>().unwrap_or_default().delta);
        }
        let answer = receiver.handle_packet(&config, now, &packet);
        match kind {
            Kind::Syn | Kind::WindowProbe => assert!(answer.is_some()),
            Kind::Data if !config.delayed_ack => assert!(answer.is_some()),
            Kind::Data => assert!(answer.is_some() || receiver.next_deadline() > now),
            _ => assert!(answer.is_none()),
        }
        if let Some(ack) = answer {
            check(&config, &ack, &model, base, newest);
            returned += i64::from(xcp::feedback(ack.reply()));
        }
    }
    let stats = receiver.stats(&config);
    let sizes = config.bytes_of(model.next).0;
    // A packet beyond the end of a transfer is of no size that its receiver knows.
    if matches!(config.app, App::Endless) {
        let arrived = config.bytes_of(model.next + model.beyond.len() as u64).0;
        assert_eq!((stats.total.delivered_bytes, stats.measured_bytes), (sizes, arrived));
    }
    // What is left comes back with the ACKs to come.
    let syn = Packet { kind: Kind::WindowProbe, ..Packet::default() };
    for _ in 0..64 {
        let ack = receiver.handle_packet(&config, now, &syn).expect("a probe is answered");
        returned += i64::from(xcp::feedback(ack.reply()));
    }
    assert_eq!(granted, returned, "feedback came back other than it was granted");
});

/// An acknowledgment says what the model has.
fn check(config: &Config, ack: &Packet, model: &Model, base: u32, newest: Option<u64>) {
    assert_eq!((ack.flow, ack.size), (5, config.ack));
    assert_eq!(ack.seq, base.wrapping_add(model.next as u32));
    assert_eq!(ack.window(), config.awnd.unwrap_or(UNLIMITED));
    // What came again may be below; a block may end farther away than the nearest count is.
    let absolute = |(start, end): (u32, u32)| {
        let distance = start.wrapping_sub(base.wrapping_add(model.next as u32)) as i32;
        let first = model.next.wrapping_add_signed(i64::from(distance));
        (first, first.wrapping_add(u64::from(end.wrapping_sub(start))))
    };
    let mut blocks: Vec<(u64, u64)> = (0..SACK_BLOCKS)
        .map(|block| ack.sack(block))
        .take_while(|(start, end)| start != end)
        .map(absolute)
        .collect();
    // DSACK (RFC 2883 §4): what came again is told before the blocks of what is held.
    if config.linux.is_some()
        && let Some(&(start, end)) = blocks.first()
        && (end <= model.next || blocks[1..].iter().any(|block| block.0 <= start && end <= block.1))
    {
        assert_eq!(end, start + 1);
        blocks.remove(0);
    }
    if config.recovery != Recovery::Sack || model.beyond.is_empty() {
        assert_eq!(blocks, []);
        return;
    }
    assert!(!blocks.is_empty(), "segments are held and not reported");
    for (i, &(start, end)) in blocks.iter().enumerate() {
        assert!(model.is_block(start, end), "{start}..{end} is no block of {:?}", model.beyond);
        assert!(!blocks[..i].contains(&(start, end)), "{start}..{end} twice");
    }
    if let Some(segment) = newest {
        let (start, end) = blocks[0];
        assert!(start <= segment && segment < end, "RFC 2018 §4: the newest block comes first");
    }
}
