//! The SCONE element: the router's program on packets (BPF_PROG_TEST_RUN). It lowers the code of the first packet of a datagram,
//! puts the checksum right, and touches nothing else.
//!
//! The same between namespaces, judged by the tester, at a router and at a host whose kernel cuts datagrams out of larger ones.
//!
//! Skips with the reason where the privilege or the kernel's part is missing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time;

use congestlab_core::law::scone::{self, UNKNOWN};
use congestlab_core::law::{Carried, LinkLaw as _, Packet, Protocol, Series as _, Tag, Words};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Time};
use congestlab_linux::Error;
use congestlab_linux::router::{self, AnyLaw, Config, Encoding, Law, Program, Queue, Refused};
use congestlab_linux::scone::{self as scone_test, Kind, Listener, Report, Tester};
use etherparse::{NetHeaders, PacketHeaders, TransportHeader, UdpHeader};

#[expect(dead_code, reason = "other tests want TCP")]
mod frames;
#[macro_use]
#[expect(dead_code, unused_macros, reason = "other tests have hosts with laws of their own")]
mod path;
use frames::{IPS, Ip, TAGS, V4, V6, differences, frame};
use path::Path;
#[path = "../../core/tests/xcp/random.rs"]
mod random;
use random::Random;

const ETHERNET: usize = 14;
/// Settings with which nothing happens by itself while a test runs, however long that takes, and every code is lowered.
const STILL: [&str; 4] = ["interval=86400 s", "hold=86400 s", "eta=1", "updates=1000000000"];

/// The law with these settings, for a link of this rate.
fn config(rate: Rate, told: &[&str]) -> Config {
    let rate = BitRate(rate.0 * 8);
    let mut law = AnyLaw::new(Protocol::of("scone").unwrap(), rate, None).unwrap();
    assert_eq!(law.encoding(), Encoding::Quic);
    law.set(&told.iter().map(|told| (*told).to_owned()).collect::<Vec<_>>()).unwrap();
    Config { rate, encoding: law.encoding(), law: Law::Any(Box::new(law)), shape: None }
}

/// Loads the element for a link of this rate, or says why not.
fn load(test: &str, rate: Rate, told: &[&str]) -> Option<Program> {
    let config = config(rate, told);
    match Program::load(config.law.object(), &config, ETHERNET as u32, 0) {
        Ok(program) => Some(program),
        Err(Error::Missing { what, help }) => {
            eprintln!("SKIP {test}: {what}; {help}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The rate of a code, in whole bytes, not below it.
fn rate(code: u8) -> Rate {
    Rate(scone::rate(code).map_or(0, |BitRate(bits)| bits.div_ceil(8)))
}

/// A packet of SCONE with this code, by the draft, and names of the connection of so many bytes.
fn signal(code: u8, names: [u8; 2]) -> Vec<u8> {
    let mut bytes = vec![0xc0 | code >> 1, 0x6f | (code & 1) << 7, 0x7d, 0xc0, 0xfd];
    for length in names {
        bytes.push(length);
        bytes.resize(bytes.len() + usize::from(length), 0xda);
    }
    bytes
}

/// A short header of QUIC and what is behind it.
fn rest(size: usize) -> Vec<u8> {
    let mut bytes = vec![0x47];
    bytes.extend((1..size).map(|at| (at * 37) as u8));
    bytes
}

fn is_v4(ip: Ip) -> bool {
    matches!(ip, Ip::V4 | Ip::V4WithOptions)
}

/// A datagram from this port, with a right checksum.
fn udp(ip: Ip, port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut header = UdpHeader { source_port: port, destination_port: 443, length, checksum: 0 };
    header.checksum = if is_v4(ip) {
        header.calc_checksum_ipv4_raw(V4[0].octets(), V4[1].octets(), payload).unwrap()
    } else {
        header.calc_checksum_ipv6_raw(V6[0].octets(), V6[1].octets(), payload).unwrap()
    };
    [&header.to_bytes()[..], payload].concat()
}

fn datagram(tags: &[u16], ip: Ip, port: u16, payload: &[u8]) -> Vec<u8> {
    frame(tags, ip, 17, &udp(ip, port, payload))
}

/// What an independent library reads in a frame: the payload, after it has found the checksum right; 0 is none.
fn judged(frame: &[u8]) -> Vec<u8> {
    let parsed = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let Some(TransportHeader::Udp(udp)) = parsed.transport else { panic!("no UDP in {parsed:?}") };
    let payload = parsed.payload.slice();
    let expected = match parsed.net.unwrap() {
        NetHeaders::Ipv4(ip, _) if udp.checksum != 0 => udp.calc_checksum_ipv4(&ip, payload).unwrap(),
        NetHeaders::Ipv4(..) => 0,
        NetHeaders::Ipv6(ip, _) => udp.calc_checksum_ipv6(&ip, payload).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(udp.checksum, expected, "UDP's checksum is wrong");
    payload.to_vec()
}

fn passes(program: &Program, sent: &[u8]) -> Vec<u8> {
    program.pass(sent, &mut [], 1).unwrap().0
}

/// EM9.1 in the kernel: all codes over links with shares in all codes, IPv4 with a checksum and without, and IPv6.
#[test]
fn all_pairs_of_codes_leave_as_the_lower_of_both() {
    let test = "all_pairs_of_codes_leave_as_the_lower_of_both";
    let body = rest(40);
    let (mut pairs, mut lowered) = (0, 0);
    let Some(mut program) = load(test, Rate(0), &STILL) else { return };
    for target in 0..=UNKNOWN {
        // Two new flows share the link; nobody knows anything of one without a rate.
        program.restart(&config(Rate(2 * rate(target).0), &STILL)).unwrap();
        let before = program.sample().unwrap();
        let port = 4433 + u16::from(target);
        for ip in [Ip::V4, Ip::V6] {
            let both = [signal(UNKNOWN, [8, 0]), body.clone()].concat();
            passes(&program, &datagram(&[], ip, port, &both));
        }
        for code in 0..=UNKNOWN {
            let sent = [signal(code, [8, 0]), body.clone()].concat();
            let expected = [signal(code.min(target), [8, 0]), body.clone()].concat();
            for (ip, is_summed) in [(Ip::V4, true), (Ip::V4, false), (Ip::V6, true)] {
                let mut frame = datagram(&[], ip, port, &sent);
                if !is_summed {
                    frame[ETHERNET + 26..ETHERNET + 28].fill(0);
                }
                let got = passes(&program, &frame);
                assert_eq!(judged(&got), expected, "{code} over a link that advises {target}, {ip:?}");
                let udp = ETHERNET + if is_v4(ip) { 20 } else { 40 };
                let allowed = [udp + 6, udp + 7, udp + 8, udp + 9];
                assert!(differences(&frame, &got).iter().all(|at| allowed.contains(at)));
                assert_eq!(got[udp + 6..udp + 8] == [0, 0], !is_summed, "0 stays 0, and no sum is 0");
                lowered += usize::from(frame != got);
            }
            pairs += 1;
        }
        let sample = program.sample().unwrap();
        assert_eq!(sample.xcp_packets - before.xcp_packets, 2 + 3 * 128);
        assert_eq!(sample.refused, Refused::default());
    }
    // Codes above the link's, three ways each.
    assert_eq!((pairs, lowered), (128 * 128, 3 * (128 * 127 / 2)));
}

/// A sum that would be 0 is written as its other name, whatever the code.
#[test]
fn a_checksum_never_becomes_none() {
    for ip in [Ip::V4, Ip::V6] {
        let Some(program) = load("a_checksum_never_becomes_none", rate(37), &STILL) else { return };
        // What is behind the code makes the sum 0xffff, which is 0 in ones' complement.
        let after = [signal(37, [8, 0]), vec![0x40, 0, 0, 0, 0]].concat();
        let sum = |payload: &[u8]| u16::from_be_bytes(udp(ip, 4433, payload)[6..8].try_into().unwrap());
        let missing = sum(&after);
        let mut sent = [signal(90, [8, 0]), vec![0x40, 0, 0, 0, 0]].concat();
        let at = sent.len() - 2;
        sent[at..].copy_from_slice(&missing.to_be_bytes());
        let got = passes(&program, &datagram(&[], ip, 4433, &sent));
        let udp = ETHERNET + if is_v4(ip) { 20 } else { 40 };
        assert_eq!(judged(&got)[..2], [0xc0 | 37 >> 1, 0xef]);
        assert_eq!(got[udp + 6..udp + 8], [0xff, 0xff]);
    }
}

/// Tags of VLANs, options and extensions; any names; both values of the reserved bit.
#[test]
fn a_code_is_found_behind_all_headers() {
    let Some(program) = load("a_code_is_found_behind_all_headers", rate(50), &STILL) else { return };
    let mut count = 0;
    for ip in IPS {
        for tags in TAGS {
            for names in [[0, 0], [8, 0], [20, 20], [255, 255], [0, 7]] {
                for reserved in [0x40, 0] {
                    let with = |code| {
                        let mut bytes = [signal(code, names), rest(9)].concat();
                        bytes[0] ^= reserved;
                        bytes
                    };
                    let got = passes(&program, &datagram(tags, ip, 4433, &with(120)));
                    // Two flows, of IPv4 and of IPv6: half of the link each, six codes below.
                    let told = if is_v4(ip) { 50 } else { 43 };
                    let found = judged(&got);
                    assert!(found == with(told) || found == with(told + 1), "{ip:?} {tags:x?} {names:?}");
                    count += 1;
                }
            }
        }
    }
    assert_eq!(program.sample().unwrap().xcp_packets, count);
}

/// What is not a whole packet of SCONE before another passes as it came, and what is none.
#[test]
fn all_others_pass_as_they_came() {
    let test = "all_others_pass_as_they_came";
    let Some(program) = load(test, rate(0), &STILL) else { return };
    let untouched = |payload: &[u8], what: &str| {
        for ip in IPS {
            let sent = datagram(&[], ip, 4433, payload);
            assert!(passes(&program, &sent) == sent, "{what}, {ip:?}");
        }
    };
    // Cut off anywhere, with nothing behind it, or with names that end behind the datagram.
    let whole = signal(UNKNOWN, [8, 5]);
    for length in 0..=whole.len() {
        untouched(&whole[..length], &format!("{length} bytes of a packet of SCONE"));
    }
    for (at, name) in [(5, "destination"), (14, "source")] {
        let mut long = [whole.clone(), rest(20)].concat();
        long[at] = 200;
        untouched(&long, name);
    }
    let sample = program.sample().unwrap();
    let cut = (whole.len() + 1 - 5 + 2) * IPS.len();
    assert_eq!((sample.refused.truncated, sample.refused_packets), (cut as u64, cut as u64));
    // Short headers, other versions, and a packet of SCONE that is not the first.
    let mut short = [whole.clone(), rest(20)].concat();
    short[0] &= 0x7f;
    untouched(&short, "a short header");
    for bit in 0..31 {
        let mut other = [whole.clone(), rest(20)].concat();
        other[4 - bit / 8] ^= 1 << (bit % 8);
        untouched(&other, &format!("a version with bit {bit} changed"));
    }
    for version in [0u32, 1, 0x6b33_43cf, 0xff00_001d, 0x1a2a_3a4a] {
        let mut initial = vec![0xc3];
        initial.extend(version.to_be_bytes());
        initial.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x41, 0]);
        initial.extend([whole.clone(), rest(1200)].concat());
        untouched(&initial, "another packet before it");
    }
    untouched(&rest(1200), "no packet of SCONE");
    // Not UDP, and UDP whose length is not its own.
    let inner = udp(Ip::V4, 4433, &[whole.clone(), rest(20)].concat());
    for protocol in [4, 6, 41, 47, 136, 253] {
        let sent = frame(&[], Ip::V4, protocol, &inner);
        assert!(passes(&program, &sent) == sent, "protocol {protocol}");
    }
    for length in [0u16, 7, 8, 12, 1000, 65535] {
        for ip in IPS {
            let mut wrong = udp(ip, 4433, &[whole.clone(), rest(20)].concat());
            wrong[4..6].copy_from_slice(&length.to_be_bytes());
            let sent = frame(&[], ip, 17, &wrong);
            assert!(passes(&program, &sent) == sent, "a length of {length}, {ip:?}");
        }
    }
    let sample = program.sample().unwrap();
    assert_eq!(sample.xcp_packets, 0);
    // The same datagram whole is lowered.
    let last = passes(&program, &datagram(&[], Ip::V4, 4433, &[whole, rest(20)].concat()));
    assert_eq!(judged(&last)[..2], [0xc0, 0x6f]);
}

/// Fragments are left alone, also the first.
#[test]
fn fragments_pass_as_they_came() {
    let Some(program) = load("fragments_pass_as_they_came", rate(0), &STILL) else { return };
    let payload = [signal(UNKNOWN, [8, 0]), rest(100)].concat();
    for field in [0x2000u16, 0x2010, 0x0010] {
        let mut sent = datagram(&[], Ip::V4, 4433, &payload);
        sent[ETHERNET + 6..ETHERNET + 8].copy_from_slice(&field.to_be_bytes());
        assert!(passes(&program, &sent) == sent, "{field:x}");
    }
    for field in [1u16, 0x81, 0x80] {
        let mut inner = vec![17, 0];
        inner.extend(field.to_be_bytes());
        inner.extend([0, 0, 0, 9]);
        inner.extend(udp(Ip::V6, 4433, &payload));
        let sent = frame(&[], Ip::V6, 44, &inner);
        assert!(passes(&program, &sent) == sent, "{field:x}");
    }
    let sample = program.sample().unwrap();
    assert_eq!((sample.refused.fragments, sample.xcp_packets), (6, 0), "{sample:?}");
}

/// A tunnel in UDP: the outer datagram's code is lowered, the inner one's not, wherever the inner packet begins.
#[test]
fn of_a_tunnel_the_outermost_code_is_lowered() {
    let Some(program) = load("of_a_tunnel_the_outermost_code_is_lowered", rate(20), &STILL) else { return };
    let payload = [signal(UNKNOWN, [8, 0]), rest(100)].concat();
    let inner = datagram(&[], Ip::V4, 4433, &payload);
    // VXLAN, and IP in a tunnel of QUIC without and with a packet of SCONE of its own.
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner].concat();
    let masque = [rest(30), inner[ETHERNET..].to_vec()].concat();
    for (what, payload) in
        [("VXLAN", &vxlan), ("QUIC", &masque), ("twice", &[&rest(1)[..], &payload].concat())]
    {
        for ip in IPS {
            let sent = datagram(&[], ip, 4789, payload);
            assert!(passes(&program, &sent) == sent, "{what}, {ip:?}");
        }
    }
    let outer = |code| [signal(code, [8, 0]), masque.clone()].concat();
    let got = passes(&program, &datagram(&[], Ip::V6, 443, &outer(UNKNOWN)));
    assert_eq!(judged(&got), outer(20));
    // IP in IP, GRE and IPv6 in IPv4 are no datagrams.
    for protocol in [4, 47, 41] {
        let sent = frame(&[], Ip::V4, protocol, &inner[ETHERNET..]);
        assert!(passes(&program, &sent) == sent, "protocol {protocol}");
    }
}

/// A packet at the native law, with what a router remembers of its flow.
struct Seen<'a> {
    packet: Carried,
    memory: Option<&'a mut [u32; 8]>,
}

impl Packet for Seen<'_> {
    fn size(&self) -> Bytes {
        self.packet.size()
    }

    fn ecn(&self) -> u8 {
        self.packet.ecn()
    }

    fn set_ecn(&mut self, code: u8) {
        self.packet.set_ecn(code);
    }

    fn words(&self, tag: Tag) -> Option<&Words> {
        self.packet.words(tag)
    }

    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        self.packet.words_mut(tag)
    }

    fn add(&mut self, tag: Tag) -> Option<&mut Words> {
        self.packet.add(tag)
    }

    fn memory(&mut self, _: [u32; 3], _: Time, _: bool) -> Option<&mut [u32]> {
        self.memory.as_mut().map(|memory| &mut memory[..])
    }
}

/// Flows come, send, fall silent and are forgotten, beside datagrams of flows that never asked: each code and each report is that
/// of the native law at the moment that the program saw. A datagram that asks for nothing is its flow's, if that is known.
#[test]
fn flows_are_told_what_the_native_law_says() {
    let test = "flows_are_told_what_the_native_law_says";
    let told = ["interval=2 ms", "hold=9 ms"];
    let capacity = Rate(2_000_000);
    let Some(program) = load(test, capacity, &told) else { return };
    let mut settings = scone::LinkConfig { capacity, ..scone::LinkConfig::DEFAULT };
    settings.interval = Duration(2_000_000);
    settings.hold = Duration(9_000_000);
    let [phase, second] = program.phases().map(Duration);
    let mut link = scone::Link::start(&settings, phase, second);
    let mut records: BTreeMap<(bool, u16), (u64, [u32; 8])> = BTreeMap::new();
    let mut random = Random::new(20);
    let (mut lowered, mut forgotten, mut kept) = (0, 0, 0);
    for round in 0..6000 {
        // Now and then a pause in which flows are forgotten.
        if random.below(300) == 0 {
            sleep(time::Duration::from_millis(random.below(15)));
        }
        let (is_v6, port) = (random.below(2) == 1, random.below(1 + round / 200) as u16);
        let ip = if is_v6 { Ip::V6 } else { Ip::V4 };
        let code = random.below(128) as u8;
        let asks = random.below(4) == 0;
        let body = rest(1 + random.below(1200) as usize);
        let with = |code| if asks { [signal(code, [8, 0]), body.clone()].concat() } else { body.clone() };
        let sent = datagram(&[], ip, port, &with(code));
        let got = judged(&passes(&program, &sent));

        let sample = program.sample().unwrap();
        let now = sample.last[0];
        let size = Bytes((sent.len() - ETHERNET) as u64);
        let is_known = records.get(&(is_v6, port)).is_some_and(|(seen, _)| now - seen <= settings.hold.0);
        forgotten += usize::from(!is_known && records.contains_key(&(is_v6, port)));
        let mut seen = Seen { packet: Carried { size, ..Carried::default() }, memory: None };
        if asks || is_known {
            let signal = if asks { code } else { 0xff };
            // Any name does: a flow that is remembered is known by its number.
            seen.packet.add_header(scone::Header { flow: 1, signal });
            let record = records.entry((is_v6, port)).or_default();
            *record = (now, if is_known { record.1 } else { [0; 8] });
            seen.memory = Some(&mut record.1);
        }
        if link.next_deadline() <= Time(now) {
            link.on_deadline(Time(now), Bytes(0));
            let mut columns = vec![];
            link.report().each(&mut |_, value, _| columns.push(value));
            assert_eq!(sample.columns[..columns.len()], columns, "round {round}");
        }
        link.on_arrival(Time(now), &seen);
        link.on_departure(Time(now), &mut seen, Bytes(0));
        let left = seen.packet.header::<scone::Header>().and_then(scone::Header::asked);
        assert_eq!(got, with(left.unwrap_or(0)), "round {round}, {is_v6} {port}, {code}");
        lowered += usize::from(left.is_some_and(|left| left < code));
        kept += usize::from(left == Some(code));
    }
    assert!(lowered > 300 && kept > 0, "{lowered} codes lowered, {kept} left");
    assert!(forgotten > 0, "no pause was long enough");
}

/// The tester's verdict on the element of an interface between two namespaces.
fn tested(path: &Path, peer: &str, flows: u16) -> Report {
    let peer = peer.parse().unwrap();
    let far = path.namespace("s");
    let listener = far.run(|| Listener::bind(peer)).unwrap().unwrap();
    let (over, never) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| far.run(|| listener.run(&over)).unwrap().unwrap());
        let wait = time::Duration::from_secs(1);
        let config = scone_test::Config { peer, flows, wait, tries: 10 };
        let report = path.namespace("c").run(|| Tester::start(config).and_then(|tester| tester.run(&never)));
        over.store(true, Ordering::Relaxed);
        report.unwrap().unwrap()
    })
}

/// Datagrams with checksums that the sender's kernel made (the interfaces offload nothing), and super-packets without one yet at
/// the sender's own egress. The receiver's kernel judges the checksums.
#[test]
fn the_tester_finds_nothing_wrong_with_the_element() {
    let path = path!("the_tester_finds_nothing_wrong_with_the_element", Encoding::Quic);
    let without = tested(&path, "10.0.2.2:4433", 1);
    let broken: Vec<_> = without.claims.iter().filter(|claim| !claim.holds).map(|claim| claim.that).collect();
    assert_eq!(broken, ["somebody advises"], "there is no element yet: {without:?}");
    for (end, interface) in [("r", "s"), ("c", "eth0")] {
        let rate = BitRate(50_000_000);
        let mut law = AnyLaw::new(Protocol::of("scone").unwrap(), rate, None).unwrap();
        // The tester asks in all datagrams; by itself the law lowers few of a flow.
        law.set(&["updates=1000000".into()]).unwrap();
        let config = Config {
            rate,
            encoding: law.encoding(),
            law: Law::Any(Box::new(law)),
            shape: Some(Queue::Bytes(1_000_000)),
        };
        match path.namespace(end).run(|| router::attach(interface, &config)).unwrap() {
            Err(error @ Error::Missing { .. }) => {
                return eprintln!("SKIP the_tester_finds_nothing_wrong_with_the_element: {error}");
            }
            attached => attached.unwrap(),
        }
        for (peer, flows) in [("10.0.2.2:4433", 5), ("[fd00:2::2]:4433", 3)] {
            let report = tested(&path, peer, flows);
            assert!(report.holds(), "{report:#?}");
            // 49 Mbit/s, shared by the flows there are: never more than the whole.
            assert!(report.flows.iter().all(|flow| !flow.codes.is_empty() && flow.codes[0] <= 53));
            assert_eq!(report.kinds[&Kind::Others].lowered + report.kinds[&Kind::Malformed].lowered, 0);
            assert!(report.kinds[&Kind::Segmented].lowered > 10, "{report:#?}");
            assert_eq!(report.kinds.contains_key(&Kind::Unsummed), peer.starts_with('1'));
        }
        let inside = path.namespace(end);
        let status = inside.run(|| router::status(Some(interface))).unwrap().unwrap().remove(0);
        assert_eq!((&*status.law, status.encoding, status.shaped), ("scone", Encoding::Quic, true));
        assert!(status.sample.xcp_packets > 1000 && status.series["advice_Bps"] > 0.0, "{status:?}");
        inside.run(|| router::set_rate(interface, BitRate(20_000_000))).unwrap().unwrap();
        let status = inside.run(|| router::status(Some(interface))).unwrap().unwrap().remove(0);
        assert_eq!(status.sample.capacity_bps, 20_000_000);
        inside.run(|| router::detach(interface)).unwrap().unwrap();
        assert!(inside.run(|| router::status(None)).unwrap().unwrap().is_empty());
    }
}
