//! Transcripts of packets, in the manner of packetdrill, in virtual time: `scripts/*.pkt`.
//!
//! A script drives one side of a connection and plays the other. Blank lines and text after `#`
//! are ignored; every other line is one of
//!
//! ```text
//! config key=value ...     before anything else; keys in `configure`
//! TIME > PACKET            the side under test sends this, at exactly that time
//! TIME < PACKET            this arrives
//! TIME = NAME VALUE        the side under test shows this
//! ```
//!
//! `TIME` is `120ms` or `1.5s` since the start, or `+20ms` since the line before; `.` repeats the
//! time of the line before. Whatever is sent must be expected, in order; a script that ends leaves
//! nothing sent unexpected up to the time of its last line.
//!
//! Segments are counted from 0, whatever `isn` is. `PACKET` is
//!
//! ```text
//! syn | synack | probe | data 4 | data 4-7 (four packets) | ack 4 (expects segment 4)
//! ```
//!
//! with attributes: `again` (a retransmission), `sack 6-7,9`, `window=3`, `size=500`, `ece`, `cwr`,
//! `ce`, `ect`, `echo=TIME` (the time stamp that an ACK returns; one that arrives returns that of
//! the latest transmission of the segment before, unless told otherwise), `reverse=B/s` (XCP's
//! feedback in an ACK), `rtt=TIME` (of XCP's header in data that leaves), `delta=B/s` (the same in
//! data that arrives), `stamp=TIME` (of data that arrives), `grant=B` (XCP's feedback to data that
//! arrives, in bytes of window), and of XCP-r `cwnd=B`, `epoch=N` and, on data, `flag`. What leaves is
//! compared with `echo`, `reverse`, `rtt`, `cwnd` and `epoch` only where the script names them.

use std::collections::{BTreeMap, VecDeque};

use congestlab_core::law::{SenderConfig, cubic, reno, xcp, xcp_r};
use congestlab_core::units::{Bytes, Duration, Rate, Time};
use congestlab_net::packet::{Kind, Packet, UNLIMITED, flag};
use congestlab_net::tcp::{Advertise, App, Config, Measure, Receiver, Recovery, Sender, SlowStart, Wait};

const MS: f64 = 1e6;

type Result<T> = std::result::Result<T, String>;

enum Side {
    Sender(Box<Sender>),
    Receiver(Receiver),
}

struct Run {
    config: Config,
    side: Side,
    base: u32,
    sent: VecDeque<(u64, Packet)>,
    /// When each segment was last sent; -1 is the SYN.
    stamps: BTreeMap<i64, u64>,
    now: u64,
}

impl Run {
    /// Serves all that is due before `until`, or at it as well.
    fn advance(&mut self, until: u64, inclusive: bool) {
        loop {
            let due = match &self.side {
                Side::Sender(sender) => sender.next_deadline().0,
                Side::Receiver(receiver) => receiver.next_deadline().0,
            };
            if due > until || (due == until && !inclusive) {
                self.now = until;
                return;
            }
            assert!(due >= self.now, "the deadline {due} has passed at {}", self.now);
            self.now = due;
            match &mut self.side {
                Side::Sender(sender) => sender.handle_deadline(&self.config, Time(due)),
                Side::Receiver(receiver) => {
                    let answer = receiver.handle_deadline(&self.config, Time(due));
                    self.sent.extend(answer.map(|packet| (due, packet)));
                }
            }
            self.collect();
        }
    }

    fn arrive(&mut self, packet: &Packet) {
        match &mut self.side {
            Side::Sender(sender) => sender.handle_packet(&self.config, Time(self.now), packet),
            Side::Receiver(receiver) => {
                let answer = receiver.handle_packet(&self.config, Time(self.now), packet);
                self.sent.extend(answer.map(|packet| (self.now, packet)));
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        while let Side::Sender(sender) = &mut self.side
            && let Some(packet) = sender.poll_transmit(&self.config, Time(self.now))
        {
            self.stamps.insert(self.segment(packet.seq), packet.sent_at(Time(self.now)).0);
            self.sent.push_back((self.now, packet));
        }
    }

    /// Number of a segment near the beginning, or just before it.
    fn segment(&self, seq: u32) -> i64 {
        i64::from(seq.wrapping_sub(self.base) as i32)
    }

    fn seq(&self, segment: i64) -> u32 {
        self.base.wrapping_add(segment as u32)
    }

    /// As a script would put it.
    fn show(&self, packet: &Packet) -> String {
        let number = self.segment(packet.seq);
        let mut text = match packet.kind {
            Kind::Syn => "syn".into(),
            Kind::SynAck => "synack".into(),
            Kind::WindowProbe => "probe".into(),
            Kind::Data => format!("data {number}"),
            Kind::Ack => format!("ack {number}"),
            Kind::Datagram => "datagram".into(),
            Kind::Control | Kind::Probe => "of an edge".into(),
        };
        let mut put = |word: &str| {
            text.push(' ');
            text.push_str(word);
        };
        if packet.kind == Kind::Ack {
            let ranges: Vec<_> =
                (0..3).map(|block| packet.sack(block)).filter(|(start, end)| start != end).collect();
            let ranges: Vec<_> =
                ranges.iter().map(|&(s, e)| range(self.segment(s), self.segment(e) - 1)).collect();
            if !ranges.is_empty() {
                put(&format!("sack {}", ranges.join(",")));
            }
            if packet.window() != UNLIMITED {
                put(&format!("window={}", packet.window()));
            }
        }
        let full = if packet.kind == Kind::Data { self.config.segment } else { self.config.ack };
        if packet.size != full {
            put(&format!("size={}", packet.size));
        }
        let has = |bits| packet.flags & bits != 0;
        for (bits, word) in [(flag::RETRANSMIT, "again"), (flag::ECE, "ece"), (flag::CWR, "cwr")] {
            if has(bits) {
                put(word);
            }
        }
        match packet.flags & flag::ECN_MASK {
            flag::CE => put("ce"),
            flag::ECT0 => put("ect"),
            _ => {}
        }
        if packet.kind == Kind::Data && packet.header::<xcp_r::Header>().unwrap_or_default().is_reset {
            put("flag");
        }
        text
    }

    fn value(&self, name: &str) -> Result<f64> {
        Ok(match (&self.side, name) {
            (Side::Sender(sender), "cwnd") => sender.cwnd_packets(&self.config),
            (Side::Sender(sender), "pipe") => sender.pipe() as f64,
            (Side::Sender(sender), "srtt") => sender.srtt().0 as f64,
            (Side::Sender(sender), "timeouts") => sender.stats(&self.config).total.timeouts as f64,
            (Side::Sender(sender), "retransmits") => sender.stats(&self.config).total.retransmits as f64,
            (Side::Sender(sender), "cuts") => sender.stats(&self.config).total.window_cuts as f64,
            (Side::Sender(sender), "idle") => {
                sender.stats(&self.config).total.idle_max.map_or(-1.0, |idle| idle.0 as f64)
            }
            (Side::Sender(sender), "completion") => {
                sender.stats(&self.config).completion.map_or(-1.0, |at| at.0 as f64)
            }
            (Side::Sender(sender), "deadline") => sender.next_deadline().0 as f64,
            (Side::Receiver(receiver), "delivered") => {
                receiver.stats(&self.config).total.delivered_bytes as f64
            }
            (Side::Receiver(receiver), "received") => {
                receiver.stats(&self.config).total.received_packets as f64
            }
            (Side::Receiver(receiver), "spurious") => {
                receiver.stats(&self.config).total.spurious_retransmits as f64
            }
            (Side::Receiver(receiver), "deadline") => receiver.next_deadline().0 as f64,
            _ => return Err(format!("nothing shows {name:?}")),
        })
    }
}

fn range(first: i64, last: i64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

fn parse_range(text: &str) -> Result<(i64, i64)> {
    let number = |text: &str| text.parse::<i64>().map_err(|_| format!("{text:?} is no segment"));
    match text.split_once('-') {
        Some((first, last)) => Ok((number(first)?, number(last)?)),
        None => number(text).map(|segment| (segment, segment)),
    }
}

fn parse_time(text: &str) -> Result<u64> {
    let scaled = |number: &str, unit: f64| match number.parse::<f64>() {
        Ok(value) => Ok((value * unit).round() as u64),
        Err(_) => Err(format!("{text:?} is no time")),
    };
    match (text.strip_suffix("us"), text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), ..) => scaled(number, 1e3),
        (_, Some(number), _) => scaled(number, MS),
        (.., Some(number)) => scaled(number, 1e9),
        _ if text == "never" => Ok(u64::MAX),
        _ => Err(format!("{text:?} is no time")),
    }
}

/// Numbers of the configuration and of `=`: a time or a bare number.
fn parse_value(text: &str) -> Result<f64> {
    text.parse().or_else(|_| parse_time(text).map(|time| time as f64))
}

fn configure(lines: &[(usize, &str)]) -> Result<Run> {
    let mut config = Config {
        segment: 1000,
        ack: 40,
        law: SenderConfig::Reno(reno::Config::default()),
        initial_window: 4,
        window_most: Bytes(u64::MAX),
        awnd: None,
        recovery: Recovery::Sack,
        min_rto: Duration(1_000_000_000),
        delayed_ack: false,
        ecn: false,
        ns2: false,
        linux: None,
        app: App::Endless,
        advertise: Advertise::Always,
        stop: Time::NEVER,
        lie: None,
        measure: Measure::ALWAYS,
    };
    let (mut isn, mut stop, mut side) = (0_u32, u64::MAX, "sender");
    for pair in lines.iter().flat_map(|line| line.1.split_whitespace().skip(1)) {
        let (key, value) = pair.split_once('=').ok_or(format!("{pair:?} is no key=value"))?;
        let number = || value.parse::<u32>().map_err(|_| format!("{value:?} is no number"));
        match key {
            "side" => side = value,
            "isn" => isn = number()?,
            "stop" => stop = parse_time(value)?,
            "iw" => config.initial_window = number()?,
            "awnd" => config.awnd = Some(number()?),
            "segment" => config.segment = number()? as u16,
            "min_rto" => config.min_rto = Duration(parse_time(value)?),
            "delayed_ack" => config.delayed_ack = value == "true",
            "ecn" => config.ecn = value == "true",
            "ns2" => config.ns2 = value == "true",
            "linux" => {
                config.linux = match value {
                    "standard" => Some(SlowStart::Standard),
                    "hystart" => Some(SlowStart::HyStart),
                    "hystart++" => Some(SlowStart::HyStartPlus),
                    _ => return Err(format!("{value:?} is no slow start")),
                }
            }
            "transfer" => config.app = App::Transfer(Bytes(u64::from(number()?))),
            "bursts" => {
                let parts: Vec<_> = value.split('/').collect();
                let [size, pause, wait, buffer] = parts[..] else {
                    return Err("bursts=SIZE/PAUSE/write|ack/BUFFER".into());
                };
                let bytes = |text: &str| text.parse().map(Bytes).map_err(|_| format!("{text:?} is no size"));
                config.app = App::Bursts {
                    size: bytes(size)?,
                    pause: Duration(parse_time(pause)?),
                    wait: if wait == "ack" { Wait::Ack } else { Wait::Write },
                    buffer: bytes(buffer)?,
                    total: None,
                };
            }
            "recovery" => {
                config.recovery = match value {
                    "sack" => Recovery::Sack,
                    "fack" => Recovery::Fack,
                    "newreno" => Recovery::NewReno,
                    "reno" => Recovery::Reno,
                    _ => return Err(format!("{value:?} is no recovery")),
                }
            }
            "law" => {
                let family = |loss, pacing| xcp::SenderConfig {
                    loss,
                    pacing,
                    desired_rate: Rate(12_500_000),
                    ..xcp::SenderConfig::DEFAULT
                };
                let xcp = |loss, pacing| SenderConfig::Xcp(family(loss, pacing));
                // A-12: the window in place of the receiver's.
                let xcp_r = |loss, epochs| {
                    let own = xcp_r::Own::Reset;
                    SenderConfig::XcpR(xcp_r::Config { xcp: family(loss, false), epochs, own })
                };
                config.law = match value {
                    "reno" => SenderConfig::Reno(reno::Config::default()),
                    "cubic" => SenderConfig::Cubic(cubic::Config::default()),
                    "xcp" => xcp(xcp::LossPolicy::Tcp, false),
                    "xcp-maintain" => xcp(xcp::LossPolicy::Maintain, false),
                    "xcp-r" => xcp_r(xcp::LossPolicy::Tcp, true),
                    "xcp-r-maintain" => xcp_r(xcp::LossPolicy::Maintain, true),
                    "xcp-r-paper" => xcp_r(xcp::LossPolicy::Tcp, false),
                    "xcp-paced" => xcp(xcp::LossPolicy::Tcp, true),
                    _ => return Err(format!("{value:?} is no law")),
                }
            }
            _ => return Err(format!("{key:?} is no key")),
        }
    }
    config.stop = Time(stop);
    let side = match side {
        "sender" => Side::Sender(Box::new(Sender::new(&config, 0, Time(0), isn))),
        "receiver" => Side::Receiver(Receiver::new(&config, 0, isn)),
        _ => return Err(format!("{side:?} is no side")),
    };
    let base = isn.wrapping_add(1);
    Ok(Run { config, side, base, sent: VecDeque::new(), stamps: BTreeMap::new(), now: 0 })
}

/// A packet that arrives.
fn build(run: &Run, words: &[&str]) -> Result<Packet> {
    let (kind, number, mut rest) = match words {
        ["syn", rest @ ..] => (Kind::Syn, -1, rest),
        ["synack", rest @ ..] => (Kind::SynAck, 0, rest),
        ["probe", rest @ ..] => (Kind::WindowProbe, 0, rest),
        ["data", number, rest @ ..] => (Kind::Data, parse_range(number)?.0, rest),
        ["ack", number, rest @ ..] => (Kind::Ack, parse_range(number)?.0, rest),
        _ => return Err(format!("{words:?} is no packet")),
    };
    let mut packet = Packet { seq: run.seq(number), kind, ..Packet::default() };
    packet.size = if kind == Kind::Data { run.config.segment } else { run.config.ack };
    packet.stamp_ns = run.now;
    if matches!(kind, Kind::Ack | Kind::SynAck) {
        packet.set_window(None);
        packet.stamp_ns = run.stamps.get(&(number - 1)).copied().unwrap_or(run.now);
    }
    while let [word, tail @ ..] = rest {
        rest = tail;
        match (word.split_once('='), *word) {
            (Some(("window", value)), _) => {
                packet.set_window(Some(value.parse().map_err(|_| "no window".to_string())?));
            }
            (Some(("size", value)), _) => packet.size = value.parse().map_err(|_| "no size".to_string())?,
            (Some(("echo" | "stamp", value)), _) => packet.stamp_ns = parse_time(value)?,
            (Some(("reverse", value)), _) => {
                packet.words[1] = value.parse::<i32>().map_err(|_| "no feedback".to_string())? as u32;
            }
            (Some(("delta", value)), _) => {
                let delta = value.parse().map_err(|_| "no feedback".to_string())?;
                packet.set_header(xcp::Header { x: 1, rtt: 1, delta, reverse: 0 });
            }
            (Some(("grant", value)), _) => {
                let bytes: i32 = value.parse().map_err(|_| "no amount".to_string())?;
                packet.set_header(xcp::Header { x: 1, rtt: 1 << 24, delta: 16 * bytes, reverse: 0 });
            }
            (Some((key @ ("cwnd" | "epoch"), value)), _) => {
                let value: u32 = value.parse().map_err(|_| "no number".to_string())?;
                let mut header: xcp_r::Header = packet.header().unwrap_or_default();
                let mut reply = xcp_r::Reply::from(packet.reply());
                if key == "cwnd" {
                    (header.cwnd, reply.cwnd) = (value, value);
                } else {
                    (header.epoch, reply.epoch) = (value as u8, value as u8);
                }
                if kind == Kind::Data { packet.set_header(header) } else { packet.set_reply(reply.into()) }
            }
            (None, "flag") => packet.set_header(xcp_r::Header {
                is_reset: true,
                ..packet.header::<xcp_r::Header>().unwrap_or_default()
            }),
            (None, "sack") => {
                let [ranges, tail @ ..] = rest else { return Err("sack of what?".into()) };
                rest = tail;
                for (block, text) in ranges.split(',').enumerate() {
                    let (first, last) = parse_range(text)?;
                    packet.set_sack(block, run.seq(first), run.seq(last + 1));
                }
            }
            (None, "again") => packet.flags |= flag::RETRANSMIT,
            (None, "ece") => packet.flags |= flag::ECE,
            (None, "cwr") => packet.flags |= flag::CWR,
            (None, "ce") => packet.flags |= flag::CE,
            (None, "ect") => packet.flags |= flag::ECT0,
            _ => return Err(format!("{word:?} is no attribute")),
        }
    }
    Ok(packet)
}

/// What is compared only where the script names it.
const CHECKS: [&str; 5] = ["echo=", "reverse=", "rtt=", "cwnd=", "epoch="];

/// The next packets sent must be these.
fn expect(run: &mut Run, at: u64, words: &[&str]) -> Result<()> {
    let (checks, words): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| CHECKS.iter().any(|key| word.starts_with(key)));
    let wanted: Vec<String> = match words[..] {
        ["data", numbers, ref rest @ ..] => {
            let (first, last) = parse_range(numbers)?;
            let rest: String = rest.iter().map(|word| format!(" {word}")).collect();
            (first..=last).map(|number| format!("data {number}{rest}")).collect()
        }
        _ => vec![words.join(" ")],
    };
    for wanted in wanted {
        let Some((sent_at, packet)) = run.sent.pop_front() else {
            return Err(format!("nothing sent, expected {wanted:?}"));
        };
        let shown = run.show(&packet);
        if (sent_at, &shown) != (at, &wanted) {
            return Err(format!("sent {shown:?} at {} ms, expected {wanted:?}", sent_at as f64 / MS));
        }
        for check in &checks {
            let (key, value) = check.split_once('=').unwrap_or((check, ""));
            let (shown, wanted) = match key {
                "reverse" => {
                    (i64::from(xcp::feedback(packet.reply())), value.parse().map_err(|_| "no feedback")?)
                }
                "rtt" => (
                    i64::from(packet.header::<xcp::Header>().unwrap_or_default().rtt),
                    i64::from(Duration(parse_time(value)?).to_header()),
                ),
                "cwnd" | "epoch" => {
                    let (cwnd, epoch) = match packet.kind {
                        Kind::Data => (
                            packet.header::<xcp_r::Header>().unwrap_or_default().cwnd,
                            packet.header::<xcp_r::Header>().unwrap_or_default().epoch,
                        ),
                        _ => (packet.reply().word, packet.reply().byte),
                    };
                    let shown = if key == "cwnd" { i64::from(cwnd) } else { epoch.into() };
                    (shown, value.parse().map_err(|_| "no number")?)
                }
                _ => (packet.sent_at(Time(at)).0 as i64, parse_time(value)? as i64),
            };
            if shown != wanted {
                return Err(format!("its {key} is {shown}, expected {wanted}"));
            }
        }
    }
    Ok(())
}

fn run(text: &str) -> Result<()> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.split('#').next().unwrap_or("").trim()))
        .filter(|line| !line.1.is_empty())
        .collect();
    let steps = lines.iter().take_while(|line| line.1.starts_with("config")).count();
    let mut run = configure(&lines[..steps])?;
    let mut last = 0;
    for &(number, line) in &lines[steps..] {
        let mut step = || -> Result<()> {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [time, verb, rest @ ..] = &words[..] else { return Err("TIME VERB ...".into()) };
            let at = match time.strip_prefix('+') {
                Some(wait) => last + parse_time(wait)?,
                None if *time == "." => last,
                None => parse_time(time)?,
            };
            if at < last {
                return Err("time goes back".into());
            }
            last = at;
            // What is due at the time of an arrival comes first: departures before arrivals.
            run.advance(at, true);
            let unexpected = || run.sent.front().map(|(t, packet)| (*t as f64 / MS, run.show(packet)));
            match *verb {
                ">" => expect(&mut run, at, rest),
                _ if unexpected().is_some() => Err(format!("sent unexpectedly, at ms: {:?}", unexpected())),
                "<" => {
                    let packet = build(&run, rest)?;
                    run.arrive(&packet);
                    Ok(())
                }
                "=" => {
                    let [name, wanted] = rest else { return Err("= NAME VALUE".into()) };
                    let (value, wanted) = (run.value(name)?, parse_value(wanted)?);
                    if value == wanted {
                        Ok(())
                    } else {
                        Err(format!("{name} is {value}, expected {wanted}"))
                    }
                }
                _ => Err(format!("{verb:?} is no verb")),
            }
        };
        step().map_err(|error| format!("line {number}: {line}\n  {error}"))?;
    }
    match run.sent.front() {
        None => Ok(()),
        Some((at, packet)) => {
            Err(format!("at the end, unexpected at {} ms: {}", *at as f64 / MS, run.show(packet)))
        }
    }
}

macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let text = include_str!(concat!("scripts/", stringify!($name), ".pkt"));
            if let Err(error) = run(text) {
                panic!("{}.pkt, {error}", stringify!($name));
            }
        })*

        #[test]
        fn every_script_is_run() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
            let mut found: Vec<String> = std::fs::read_dir(folder)
                .expect("the folder of scripts")
                .map(|entry| entry.expect("a script").file_name().to_string_lossy().into_owned())
                .collect();
            found.sort();
            let mut listed = vec![$(concat!(stringify!($name), ".pkt")),*];
            listed.sort_unstable();
            assert_eq!(found, listed);
        }
    };
}

scripts! {
    a_lost_retransmission_waits_for_the_timer
    a_lost_syn
    a_mark_and_a_loss_in_one_window_cut_once
    a_partial_ack_repairs_the_next_hole
    a_second_recovery_does_not_repeat_the_first
    a_timeout_during_recovery
    a_timeout_in_fast_recovery_halves_the_window
    a_transfer_without_loss
    a_window_of_twenty_is_halved_to_ten
    a_write_waits_for_the_send_buffer
    a_zero_window_is_probed
    acknowledgments_wait_for_a_second_segment
    an_echo_at_the_end_of_a_recovery_is_of_its_window
    bursts_pause_after_their_acknowledgment
    congestion_avoidance_goes_on_after_a_timeout
    congestion_marks_cut_once_a_window
    fack_repairs_a_window_with_many_holes
    fack_waits_for_three_segments
    feedback_adds_up_until_acknowledged
    feedback_moves_the_window
    limited_transmit_without_sack
    linux_begins_with_one_after_two_repeated_syns
    linux_finds_a_lost_retransmission
    linux_grows_its_patience_with_duplicates
    linux_halves_a_window_of_twenty_smoothly
    linux_keeps_its_window_after_one_repeated_syn
    linux_probes_a_lost_tail
    linux_receivers_delay_after_sixteen
    linux_receivers_report_duplicates
    linux_takes_what_is_later_than_the_window_for_lost
    linux_times_out_after_the_probe
    linux_waits_for_what_was_overtaken
    maintain_repeats_a_loss_once_per_round_trip
    maintain_takes_silence_for_a_timeout
    no_new_data_after_the_stop
    ns2_backs_off_until_new_data_is_acknowledged
    only_the_first_partial_ack_restarts_the_timer
    pacing_spreads_a_window_over_a_round_trip
    reno_leaves_recovery_with_the_first_new_ack
    reordering_by_three_looks_like_a_loss
    reordering_by_two_is_no_loss
    restart_after_idle
    sack_blocks_are_most_recent_first
    sack_information_that_the_receiver_withdraws
    sequence_numbers_wrap
    sequence_numbers_wrap_at_the_receiver
    the_advertised_window_limits_the_flight
    the_loss_of_cwr_cuts_again
    the_receiver_echoes_marks_until_told
    the_tail_is_rescued_once
    the_timeout_follows_the_round_trips
    v2_5_maintain_keeps_the_window_and_repeats_once
    v4_1_a_lost_ack_loses_nothing
    v4_1_the_receiver_keeps_the_window
    v4_2_a_timeout_begins_an_epoch
    v4_2_the_receiver_goes_on_from_the_flag
    v4_3_the_flag_is_obeyed_once
    what_was_never_sent_cannot_be_acknowledged
    without_sack_the_receiver_sends_none
    xcp_r_halves_its_window_once
    xcp_r_keeps_its_window_if_told_so
    xcp_r_as_in_the_paper
}
