//! The router's program on packets: in, out, counted. It runs in the kernel (BPF_PROG_TEST_RUN); an
//! independent library judges what comes out.
//!
//! Skips with the reason where the privilege or the kernel's part is missing.

use std::thread::sleep;
use std::time;

use congestlab_core::law::xcp::{Header, LinkConfig};
use congestlab_core::units::{BitRate, Duration, Ratio, SECOND};
use congestlab_core::wire::option::{Echo, Option as XcpOption};
use congestlab_core::wire::xcp::{Layout, Packet, Repr};
use congestlab_linux::Error;
use congestlab_linux::router::{self, Config, Encoding, Law, Program, Refused, Weights};

mod frames;
use frames::{IPS, Ip, SACK, TAGS, TIMESTAMPS, differences, frame, judged, segment, tcp};

const MS: time::Duration = time::Duration::from_millis(1);
const ETHERNET: usize = 14;
const GIGABIT: BitRate = BitRate(1_000_000_000);

fn config(encoding: Encoding) -> Config {
    Config { rate: GIGABIT, law: router::law(GIGABIT), encoding, shape: None }
}

/// A program whose law has decided nothing yet and will not: pools are empty, so that what asks for more
/// gets nothing.
fn quiet(encoding: Encoding) -> Config {
    let mut config = config(encoding);
    law(&mut config).initial_interval = Duration(SECOND * 1_000_000_000);
    config
}

fn law(config: &mut Config) -> &mut LinkConfig {
    match &mut config.law {
        Law::Xcp(law) | Law::Beside(law, _) | Law::Policed(law, _) | Law::PerCpu(law) | Law::XcpI(law, _) => {
            law
        }
        Law::Pxcp(law) => &mut law.xcp,
        Law::Mpcp(_) | Law::Any(_) => panic!("not XCP"),
    }
}

/// Loads, or says why not.
fn load(test: &str, config: &Config) -> Option<Program> {
    match Program::load(config.law.object(), config, ETHERNET as u32, 0) {
        Ok(program) => Some(program),
        Err(Error::Missing { what, help }) => {
            eprintln!("SKIP {test}: {what}; {help}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

const ASKS: Header = Header { x: 5_000, rtt: 0x00a3_d700, delta: 1_000_000, reverse: 0 };

fn data(header: Header, routers: u8) -> Vec<u8> {
    let echo = Echo { routers: 3, sum: 77 };
    let (bytes, length) = XcpOption::Data { header, routers, echo }.emit();
    bytes[..length].to_vec()
}

/// `struct __sk_buff` with the fields that make a super-packet.
fn super_packet(segments: u32, size: u32, wire: u32) -> [u8; 192] {
    let mut context = [0; 192];
    for (at, value) in [(160, wire), (164, segments), (176, size)] {
        context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    context
}

#[test]
fn a_demand_that_can_not_be_met_is_lowered_and_the_router_counts_itself() {
    let test = "a_demand_that_can_not_be_met_is_lowered_and_the_router_counts_itself";
    for encoding in [Encoding::Option, Encoding::Both] {
        let Some(program) = load(test, &quiet(encoding)) else { return };
        option_is_edited(&program);
    }
}

fn option_is_edited(program: &Program) {
    let layouts: [Vec<&[u8]>; 4] =
        [vec![], vec![&TIMESTAMPS], vec![&[1, 1]], vec![&[1, 1, 3, 3, 7, 1, 1, 1]]];
    let mut packets = 0;
    for ip in IPS {
        for tags in TAGS {
            for before in &layouts {
                for (routers, after) in [(0, 1), (7, 8), (14, 15), (15, 15)] {
                    let mut options = before.concat();
                    let at = options.len();
                    options.extend(data(ASKS, routers));
                    let sent = segment(tags, ip, &options, &[0xab; 1201]);
                    let (got, _) = program.pass(&sent, &mut [], 1).unwrap();
                    let read = XcpOption::parse(&judged(&got)[at..]).unwrap();
                    let header = Header { delta: 0, ..ASKS };
                    let echo = Echo { routers: 3, sum: 77 };
                    assert_eq!(read, XcpOption::Data { header, routers: after, echo }, "{ip:?} {tags:?}");
                    // Nothing else has changed: RTT's last byte, feedback, TCP's checksum.
                    let tcp = sent.len() - 1201 - (20 + options.len().next_multiple_of(4));
                    for byte in differences(&sent, &got) {
                        let here = byte - tcp;
                        assert!(
                            [16, 17].contains(&here) || (20 + at + 11..20 + at + 16).contains(&here),
                            "{here}"
                        );
                    }
                    packets += 1;
                }
            }
        }
    }
    let sample = program.sample().unwrap();
    assert_eq!((sample.packets, sample.xcp_packets), (packets, packets));
    assert_eq!(sample.refused, Refused::default());
}

#[test]
fn a_demand_that_is_lower_passes_as_it_is() {
    let Some(program) = load("a_demand_that_is_lower_passes_as_it_is", &quiet(Encoding::Option)) else {
        return;
    };
    for delta in [0, -1, -1_000_000, i32::MIN] {
        let sent = segment(&[], Ip::V4, &data(Header { delta, ..ASKS }, 2), b"data");
        let (got, _) = program.pass(&sent, &mut [], 1).unwrap();
        let Some(XcpOption::Data { header, routers, .. }) = XcpOption::parse(&judged(&got)) else { panic!() };
        assert_eq!((header.delta, routers), (delta, 3));
    }
}

/// Its class of HTB is named by its priority, the field behind eight others of `struct __sk_buff`.
#[test]
fn a_packet_is_sorted_by_whether_the_law_takes_its_header() {
    let test = "a_packet_is_sorted_by_whether_the_law_takes_its_header";
    let [xcp, others] = [0x0cc1_0010, 0x0cc1_0020];
    let repr = Repr::Standard { layout: Layout::V3, protocol: 6, header: ASKS };
    let (ack, length) = XcpOption::Ack { echo: Echo { routers: 2, sum: 5 } }.emit();
    let mut wrong = data(ASKS, 0);
    wrong[1] = 19;
    for encoding in [Encoding::Option, Encoding::Shim] {
        let mut config = quiet(encoding);
        config.law = config.law.beside(Weights::Flows).unwrap();
        let Some(program) = load(test, &config) else { return };
        let mut count = 0;
        for ip in IPS {
            for tags in TAGS {
                let shim = [repr.emit().to_vec(), tcp(ip, &TIMESTAMPS, b"data")].concat();
                for (what, packet, class) in [
                    ("an option", segment(tags, ip, &data(ASKS, 0), b"data"), encoding == Encoding::Option),
                    ("a shim", frame(tags, ip, 253, &shim), encoding == Encoding::Shim),
                    ("an ACK", segment(tags, ip, &ack[..length], b""), false),
                    ("a wrong option", segment(tags, ip, &wrong, b"data"), false),
                    ("TCP", segment(tags, ip, &TIMESTAMPS, b"data"), false),
                    ("UDP", frame(tags, ip, 17, &[0; 100]), false),
                ] {
                    let mut context = [0; 192];
                    program.pass(&packet, &mut context, 1).unwrap();
                    let priority = u32::from_ne_bytes(context[32..36].try_into().unwrap());
                    let expected = if class { xcp } else { others };
                    assert_eq!(priority, expected, "{what}, {encoding:?}, {ip:?}, {tags:?}");
                    count += 1;
                }
            }
        }
        let sample = program.sample().unwrap();
        assert_eq!((sample.packets, sample.xcp_packets), (count, count / 6));
    }
}

#[test]
fn the_draft_header_is_edited_and_nothing_else() {
    for encoding in [Encoding::Shim, Encoding::Both] {
        let test = "the_draft_header_is_edited_and_nothing_else";
        let Some(program) = load(test, &quiet(encoding)) else { return };
        draft_header_is_edited(&program);
    }
}

fn draft_header_is_edited(program: &Program) {
    for ip in IPS {
        for tags in TAGS {
            let header = Header { reverse: -5, ..ASKS };
            let repr = Repr::Standard { layout: Layout::V3, protocol: 6, header };
            let shim = repr.emit().to_vec();
            let inner = tcp(ip, &TIMESTAMPS, b"data");
            let sent = frame(tags, ip, 253, &[shim, inner.clone()].concat());
            let (got, _) = program.pass(&sent, &mut [], 1).unwrap();
            let at = sent.len() - inner.len() - 20;
            let packet = Packet::new_checked(&got[at..at + 20]).unwrap();
            assert_eq!(
                (packet.x(), packet.rtt(), packet.delta(), packet.reverse()),
                (ASKS.x, ASKS.rtt, 0, -5)
            );
            let changed = differences(&sent, &got);
            assert!(changed.iter().all(|byte| (at + 16..at + 20).contains(byte)), "{changed:?}");
        }
    }
    assert_eq!(program.sample().unwrap().xcp_packets, 12);
}

/// Sent, counted how, and the same afterwards.
fn untouched(program: &Program, sent: &[u8], what: &str) {
    let (got, _) = program.pass(sent, &mut [], 1).unwrap();
    assert_eq!(differences(sent, &got), Vec::<usize>::new(), "{what}");
}

#[test]
fn what_is_not_for_routers_passes_untouched_and_counts_as_traffic() {
    let test = "what_is_not_for_routers_passes_untouched_and_counts_as_traffic";
    let Some(program) = load(test, &quiet(Encoding::Option)) else { return };
    let with = data(ASKS, 0);
    let mut sent = vec![
        ("TCP without options", segment(&[], Ip::V4, &[], b"data")),
        ("TCP with timestamps and SACK", segment(&[], Ip::V6, &[TIMESTAMPS, SACK].concat(), b"")),
        ("UDP", frame(&[], Ip::V4, 17, &[0; 100])),
        ("the other encoding", frame(&[], Ip::V4, 253, &[0; 60])),
        ("our option behind the end of the list", segment(&[], Ip::V4, &[&[0, 0], &with[..]].concat(), b"")),
        ("another experiment", segment(&[], Ip::V4, &[253, 4, 0x99, 0x99], b"")),
        ("ARP", [&[2; 12], &[8, 6][..], &[0; 28]].concat()),
        ("nothing known", [&[2; 12], &[0x88, 0xcc][..], &[7; 50]].concat()),
    ];
    let (ack, length) = XcpOption::Ack { echo: Echo { routers: 2, sum: 5 } }.emit();
    sent.push(("an ACK", segment(&[], Ip::V4, &[&TIMESTAMPS[..], &ack[..length]].concat(), b"")));
    let mut short = segment(&[], Ip::V4, &with, b"data");
    short[14] = 0x44;
    sent.push(("IP of 16 bytes", short));
    for (what, fragment) in fragments(17, &with).into_iter().chain(fragments(253, &with)) {
        sent.push((what, fragment));
    }
    let mut early = fragments(6, &with).pop().unwrap().1;
    early.truncate(55);
    sent.push(("a frame that ends early", early));

    let mut bytes = 0;
    for (what, packet) in &sent {
        untouched(&program, packet, what);
        bytes += packet.len() - ETHERNET;
    }
    let sample = program.sample().unwrap();
    assert_eq!((sample.packets, sample.other_packets), (sent.len() as u64, sent.len() as u64));
    assert_eq!((sample.xcp_packets, sample.refused_packets), (0, 0));
    assert_eq!(sample.bytes, bytes as u64);
}

/// Of a packet of this protocol; the option would be where TCP has it.
fn fragments(protocol: u8, options: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let parts = [(20, 0x20, "a first fragment"), (20, 0x3f, "one between"), (21, 1, "a last fragment")];
    let mut list: Vec<_> = parts
        .into_iter()
        .map(|(at, value, what)| {
            let mut fragment = frame(&[], Ip::V4, protocol, &tcp(Ip::V4, options, b"data"));
            fragment[at] |= value;
            (what, fragment)
        })
        .collect();
    for (what, offset) in [("a first fragment of IPv6", [0, 1]), ("a last fragment of IPv6", [1, 0])] {
        let header = [protocol, 0, offset[0], offset[1], 0, 0, 0, 1];
        let behind = [&header[..], &tcp(Ip::V6, options, b"x")].concat();
        list.push((what, frame(&[], Ip::V6, 44, &behind)));
    }
    list
}

/// As the link in user space does.
#[test]
fn fragments_that_could_have_a_header_are_refused_and_others_are_traffic() {
    let test = "fragments_that_could_have_a_header_are_refused_and_others_are_traffic";
    for (encoding, ours) in
        [(Encoding::Option, &[6][..]), (Encoding::Shim, &[253]), (Encoding::Both, &[6, 253])]
    {
        let Some(program) = load(test, &quiet(encoding)) else { return };
        let mut bytes = 0;
        for protocol in [6, 17, 253] {
            for (what, fragment) in fragments(protocol, &data(ASKS, 0)) {
                untouched(&program, &fragment, what);
                bytes += (fragment.len() - ETHERNET) as u64;
            }
            let refused = program.sample().unwrap().refused.fragments;
            let expected = 5 * ours.iter().filter(|one| **one <= protocol).count() as u64;
            assert_eq!(refused, expected, "protocol {protocol}, {encoding:?}");
        }
        let sample = program.sample().unwrap();
        let fragments = 5 * ours.len() as u64;
        assert_eq!(sample.refused, Refused { fragments, ..Refused::default() }, "{encoding:?}");
        assert_eq!((sample.other_packets, sample.xcp_packets, sample.bytes), (15 - fragments, 0, bytes));
    }
}

#[test]
fn padding_of_short_frames_is_no_traffic() {
    let Some(program) = load("padding_of_short_frames_is_no_traffic", &quiet(Encoding::Option)) else {
        return;
    };
    let mut sent = segment(&[], Ip::V4, &[], b"");
    sent.resize(60, 0);
    untouched(&program, &sent, "padded");
    assert_eq!(program.sample().unwrap().bytes, 40);
}

#[test]
fn a_wrong_header_is_refused_and_counted_by_what_is_wrong() {
    let test = "a_wrong_header_is_refused_and_counted_by_what_is_wrong";
    let Some(program) = load(test, &quiet(Encoding::Option)) else { return };
    let with = data(ASKS, 0);
    let mut expected = Refused::default();

    for before in [&[1][..], &[1, 1, 1], &[3, 3, 7]] {
        untouched(&program, &segment(&[], Ip::V4, &[before, &with].concat(), b"data"), "odd");
        expected.odd_offset += 1;
    }
    for length in [4, 5, 7, 9, 12, 19, 21, 24, 40] {
        let mut wrong = with.clone();
        wrong.resize(40, 1);
        wrong[1] = length;
        untouched(&program, &segment(&[], Ip::V6, &wrong, b"data"), "length");
        expected.wrong_length += 1;
    }
    // The length is right, the list of options ends before.
    for kept in [4, 8, 12, 16] {
        untouched(&program, &segment(&[], Ip::V4, &with[..kept], b"data"), "the list ends");
        expected.truncated += 1;
    }
    // The packet ends inside TCP's options, by its own count or by that of IP.
    let whole = segment(&[], Ip::V4, &with, b"");
    for kept in [14 + 20 + 20 + 2, whole.len() - 1] {
        untouched(&program, &whole[..kept], "the packet ends");
        let mut short = whole.clone();
        short[16..18].copy_from_slice(&((kept - 14) as u16).to_be_bytes());
        untouched(&program, &short, "IP ends");
        expected.truncated += 2;
    }
    for broken in [&[8, 0, 1, 1][..], &[8, 1, 1, 1], &[8, 41, 0, 0], &[1, 1, 1, 8]] {
        untouched(&program, &segment(&[], Ip::V4, &[broken, &[]].concat(), b"data"), "the list is broken");
        expected.malformed += 1;
    }
    let sample = program.sample().unwrap();
    assert_eq!(sample.refused, expected);
    assert_eq!((sample.xcp_packets, sample.other_packets), (0, 0));
    assert_eq!(sample.refused_packets, sample.packets);
}

#[test]
fn a_wrong_draft_header_is_refused_and_counted_by_what_is_wrong() {
    let test = "a_wrong_draft_header_is_refused_and_counted_by_what_is_wrong";
    let Some(program) = load(test, &quiet(Encoding::Shim)) else { return };
    let right = Repr::Standard { layout: Layout::V3, protocol: 6, header: ASKS }.emit();
    let changed = |at: usize, value| {
        let mut shim = right;
        shim[at] = value;
        frame(&[], Ip::V4, 253, &[&shim[..], &tcp(Ip::V4, &[], b"data")].concat())
    };
    for version in [0x01, 0x11, 0x21, 0x41, 0xf1] {
        untouched(&program, &changed(2, version), "version");
    }
    for length in [0, 8, 19, 21, 255] {
        untouched(&program, &changed(1, length), "length");
    }
    untouched(&program, &frame(&[], Ip::V6, 253, &right[..19]), "truncated");
    untouched(&program, &changed(2, 0x32), "the minimal format");
    untouched(&program, &segment(&[], Ip::V4, &data(ASKS, 0), b""), "the other encoding");
    let sample = program.sample().unwrap();
    let expected = Refused { version: 5, wrong_length: 5, truncated: 1, ..Refused::default() };
    assert_eq!(sample.refused, expected);
    assert_eq!((sample.xcp_packets, sample.other_packets), (0, 2));
}

/// Sends as many packets, in super-packets of so many segments; returns the sum of what they were given.
fn send(program: &Program, packets: u32, segments: u32, header: Header) -> i64 {
    let payload = vec![0xcd; 60 * segments as usize];
    let sent = segment(&[], Ip::V4, &data(header, 0), &payload);
    let wire = sent.len() as u32 + (segments - 1) * 74;
    let mut sum = 0;
    for _ in 0..packets / segments {
        let mut context = super_packet(segments, 60, wire);
        let context = if segments > 1 { &mut context[..] } else { &mut [] };
        let (got, _) = program.pass(&sent, context, 1).unwrap();
        let read = XcpOption::parse(&judged(&got)).unwrap();
        let XcpOption::Data { header: given, routers: 1, .. } = read else { panic!("{read:?}") };
        assert!(given.delta <= header.delta, "{} was raised to {}", header.delta, given.delta);
        sum += i64::from(given.delta) * i64::from(segments);
    }
    sum
}

#[test]
fn super_packets_get_what_their_segments_would() {
    let test = "super_packets_get_what_their_segments_would";
    for segments in [1, 2, 7, 40] {
        let mut config = config(Encoding::Option);
        law(&mut config).initial_interval = Duration(SECOND / 100);
        law(&mut config).min_interval = Duration(SECOND);
        let Some(program) = load(test, &config) else { return };
        // The first interval closes empty; from then on they are one second long.
        sleep(11 * MS);
        untouched(&program, &segment(&[], Ip::V4, &[], b""), "first");
        let header = Header { delta: i32::MAX, ..ASKS };
        let before = program.sample().unwrap();
        send(&program, 280, segments, header);
        let after = program.sample().unwrap();
        assert_eq!(after.intervals, 1, "this machine was busy for a second");
        assert_eq!(after.bytes - before.bytes, 280 * 120, "IP bytes of {segments} segments");
        assert_eq!(after.xcp_packets, 280);
        sleep(1005 * MS);
        // The same traffic again takes what the law has decided for it: no more, and little less, for
        // each packet is rounded down to whole B/s.
        let sum = send(&program, 280, segments, header);
        let decided = program.sample().unwrap();
        assert_eq!(decided.intervals, 2);
        assert!(decided.feedback_Bps > 40_000_000, "{decided:?}");
        let rest = decided.feedback_Bps - sum;
        assert!((-1..=280).contains(&rest), "{segments} segments: {rest} of {} left", decided.feedback_Bps);
    }
}

/// As programs hand them in by `struct virtio_net_hdr`, with any length in IP's header: the kernel cuts them by their own length.
#[test]
fn super_packets_without_a_number_of_segments_count_as_what_leaves() {
    let test = "super_packets_without_a_number_of_segments_count_as_what_leaves";
    for (ip, headers) in [(Ip::V4, 60), (Ip::V6, 80)] {
        let Some(program) = load(test, &quiet(Encoding::Option)) else { return };
        let before = program.sample().unwrap();
        let mut sent = segment(&[], ip, &data(ASKS, 0), &vec![0xcd; 59 * 60 + 1]);
        // The length of the first segment.
        let (at, length) = if ip == Ip::V4 { (16, 120u16) } else { (18, 100) };
        sent[at..at + 2].copy_from_slice(&length.to_be_bytes());
        let wire = sent.len() as u32 + 59 * (14 + headers);
        program.pass(&sent, &mut super_packet(0, 60, wire), 1).unwrap();
        let after = program.sample().unwrap();
        assert_eq!(after.xcp_packets - before.xcp_packets, 60);
        assert_eq!(after.bytes - before.bytes, u64::from(60 * headers + 59 * 60 + 1));
    }
}

fn extreme_headers(test: &str, told: Law) {
    let mut config = Config { law: told, ..config(Encoding::Option) };
    law(&mut config).initial_interval = Duration(SECOND / 1000);
    let Some(program) = load(test, &config) else { return };
    let words = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    let mut count = 0;
    for x in words {
        for rtt in words {
            for delta in words {
                for segments in [1, 17] {
                    let header = Header { x, rtt, delta: delta as i32, reverse: 0 };
                    let sent = segment(&[], Ip::V6, &data(header, 0), &vec![1; 100 * segments]);
                    let wire = sent.len() + (segments - 1) * 94;
                    let mut context = super_packet(segments as u32, 100, wire as u32);
                    let context = if segments > 1 { &mut context[..] } else { &mut [] };
                    let (got, _) = program.pass(&sent, context, 1).unwrap();
                    let Some(XcpOption::Data { header: given, .. }) = XcpOption::parse(&judged(&got)) else {
                        panic!()
                    };
                    assert!(given.delta <= header.delta && given.x == x);
                    count += segments as u64;
                }
            }
        }
    }
    assert_eq!(program.sample().unwrap().xcp_packets, count);
}

#[test]
fn extreme_headers_neither_fail_nor_get_more_than_they_ask_for() {
    extreme_headers("extreme_headers", router::law(GIGABIT));
}

#[test]
fn nor_do_they_from_p_xcp() {
    let mut law = router::pxcp(GIGABIT);
    for (name, value) in [("alpha", 300_000), ("beta", 100_000), ("gamma", 0), ("k", 1_000_000), ("r-max", 0)]
    {
        assert!(law.tell(name, Ratio::ppm(value)), "{name}");
    }
    assert!(!law.tell("r-max", Ratio::ONE) && !router::law(GIGABIT).tell("k", Ratio::ppm(1)));
    extreme_headers("extreme_headers_p_xcp", law);
}

/// A flow of one packet every 5 ms is a two hundredth of one in a second (PX eqs. 5 and 6).
#[test]
fn p_xcp_tells_how_many_flows_it_counted_and_how_many_are_limited() {
    let test = "p_xcp_tells_how_many_flows_it_counted_and_how_many_are_limited";
    let mut config = Config { law: router::pxcp(GIGABIT), ..config(Encoding::Option) };
    law(&mut config).initial_interval = Duration(SECOND / 100);
    law(&mut config).min_interval = Duration(SECOND);
    // The counts of one interval, as in the paper.
    if let Law::Pxcp(law) = &mut config.law {
        law.counted_over = 1;
    }
    let Some(program) = load(test, &config) else { return };
    let wants = |delta| Header { x: Duration(5_000_000).to_header(), delta, ..ASKS };
    sleep(11 * MS);
    untouched(&program, &segment(&[], Ip::V4, &[], b""), "first");
    for delta in [i32::MAX; 15].into_iter().chain([-1000; 5]) {
        program.pass(&segment(&[], Ip::V4, &data(wants(delta), 0), &[0; 60]), &mut [], 1).unwrap();
    }
    assert_eq!(program.sample().unwrap().intervals, 1, "this machine was busy for a second");
    sleep(1005 * MS);
    untouched(&program, &segment(&[], Ip::V4, &[], b""), "last");
    let sample = program.sample().unwrap();
    let flows = sample.flows.expect("it is P-XCP");
    let [n, limited, share] = [flows.pxcp_n, flows.pxcp_n_lim, flows.pxcp_r];
    assert!((n - 0.1).abs() < 1e-4 && (limited - 0.025).abs() < 1e-4, "{flows:?}");
    assert!((share - 0.25).abs() < 1e-4, "{flows:?}");
    // Each other law says nothing of flows.
    let json = serde_json::to_value(sample).unwrap();
    assert!(json["pxcp_n"].is_number() && json.get("counted").is_none(), "{json}");
    let plain = load(test, &self::config(Encoding::Option)).unwrap().sample().unwrap();
    assert!(plain.flows.is_none() && serde_json::to_value(plain).unwrap().get("pxcp_n").is_none());
}

/// What all packets together are given over an interval is what the law has decided, whatever headers
/// say that nobody who is honest would: the honest get no part of what is not there.
#[test]
fn among_hostile_headers_the_honest_get_no_more_than_there_is() {
    let test = "among_hostile_headers_the_honest_get_no_more_than_there_is";
    let words = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    let hostile: Vec<_> = (0..125)
        .map(|i| Header { x: words[i % 5], rtt: words[i / 5 % 5], delta: words[i / 25] as i32, reverse: 0 })
        .collect();
    // Those alone that ask for more, of a gigabit that is empty and of a link that is much too slow.
    for (capacity, wants_more) in [(GIGABIT, true), (BitRate(80_000), false)] {
        let mut config = Config { rate: capacity, law: router::law(capacity), ..config(Encoding::Option) };
        law(&mut config).initial_interval = Duration(SECOND / 100);
        law(&mut config).min_interval = Duration(SECOND);
        let Some(program) = load(test, &config) else { return };
        let honest = Header { delta: i32::MAX, ..ASKS };
        let give = |header: Header| {
            let sent = segment(&[], Ip::V4, &data(header, 0), &[0xcd; 60]);
            let (got, _) = program.pass(&sent, &mut [], 1).unwrap();
            let Some(XcpOption::Data { header: given, .. }) = XcpOption::parse(&judged(&got)) else {
                panic!()
            };
            assert!(given.delta <= header.delta, "{given:?} for {header:?}");
            i64::from(given.delta)
        };
        // Sums of what was given: to the honest, and to all that were given more than nothing.
        let pass = || {
            let (mut to_honest, mut above) = (0, 0);
            for header in hostile.iter().flat_map(|header| [*header, honest]) {
                let given = give(header);
                to_honest += if header == honest { given } else { 0 };
                above += given.max(0);
            }
            (to_honest, above)
        };
        sleep(11 * MS);
        untouched(&program, &segment(&[], Ip::V4, &[], b""), "first");
        pass();
        assert_eq!(program.sample().unwrap().intervals, 1, "this machine was busy for a second");
        sleep(1005 * MS);
        let (to_honest, above) = pass();
        let decided = program.sample().unwrap();
        assert_eq!((decided.intervals, decided.xcp_packets), (2, 500), "busy for a second");
        // draft-03 §4.4: the pools are the feedback, and a tenth of the traffic that is shuffled.
        let shuffled = decided.input_Bps as i64 / 10;
        let pool = decided.feedback_Bps.max(0) + (shuffled - decided.feedback_Bps.abs()).max(0);
        assert!(above <= pool + 1, "{above} of {pool}: {decided:?}");
        assert!(to_honest <= pool + 1);
        assert_eq!(decided.feedback_Bps > 0, wants_more, "{decided:?}");
        assert_eq!(to_honest > 0, wants_more, "{to_honest} of {decided:?}");
    }
}
