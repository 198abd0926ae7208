//! XCP on real sockets with draft-03's header between IP and TCP. What the packets look like is an
//! independent library's word, what arrives is iperf3's.

mod clsact;
#[macro_use]
mod path;

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use congestlab_core::law::xcp::Header;
use congestlab_core::units::BitRate;
use congestlab_core::wire::option::{Hello, Option as XcpOption};
use congestlab_core::wire::xcp::{Layout, PROTOCOL_EXPERIMENTAL, Packet, Repr, Version};
use congestlab_linux::Error;
use congestlab_linux::host::{self, Config, Encoding, Host, Law};
use congestlab_linux::router::{self, Queue};
use congestlab_linux::sys::command::query;
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::offload::Offloads;
use etherparse::{Ipv4Header, Ipv6Header, TcpHeader};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use path::{Path, capture, ip};

const ETHERNET: usize = 14;
const SHIM: usize = 20;

/// Both hosts, with headers put in at their interfaces.
fn cover(path: &Path, host: &mut Host) {
    for end in ["c", "s"] {
        path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
    }
}

fn checksum_errors(path: &Path) -> u64 {
    let of = |end: &str| {
        let text = path.namespace(end).run(|| fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
        let text = text.unwrap();
        let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let mut pairs = names.split(' ').zip(values.split(' '));
        pairs.find(|(name, _)| *name == "InCsumErrors").unwrap().1.parse::<u64>().unwrap()
    };
    of("c") + of("s")
}

/// A TCP packet with or without the draft's header, after its checksums were found right.
struct Judged {
    /// As the draft's, from the packet that had it.
    shim: Option<Vec<u8>>,
    tcp: TcpHeader,
    payload: usize,
    /// Of IP.
    size: usize,
}

/// Reads a frame; the capture may have cut its end off, and then TCP's checksum is not looked at.
fn judged(frame: &[u8]) -> Judged {
    let is_v4 = frame[12..14] == [8, 0];
    let (size, protocol, rest, v4, v6) = if is_v4 {
        let (ip, rest) = Ipv4Header::from_slice(&frame[ETHERNET..]).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        (usize::from(ip.total_len), ip.protocol.0, rest, Some(ip), None)
    } else {
        let (ip, rest) = Ipv6Header::from_slice(&frame[ETHERNET..]).unwrap();
        (40 + usize::from(ip.payload_length), ip.next_header.0, rest, None, Some(ip))
    };
    let whole = size - if is_v4 { 20 } else { 40 };
    let is_shim = protocol == PROTOCOL_EXPERIMENTAL;
    assert!(is_shim || protocol == 6, "protocol {protocol}");
    let (shim, rest, whole) = if is_shim {
        (Some(rest[..SHIM].to_vec()), &rest[SHIM..], whole - SHIM)
    } else {
        (None, rest, whole)
    };
    let (tcp, payload) = TcpHeader::from_slice(rest).unwrap();
    let payload_length = whole - tcp.header_len();
    if payload.len() >= payload_length {
        let payload = &payload[..payload_length];
        let checksum = match (v4, v6) {
            (Some(ip), _) => tcp.calc_checksum_ipv4_raw(ip.source, ip.destination, payload),
            (_, Some(ip)) => tcp.calc_checksum_ipv6_raw(ip.source, ip.destination, payload),
            _ => unreachable!("one of both"),
        };
        // 0 and 0xffff are one number to a receiver, and what is updated may become either (RFC 1624 §3).
        assert_eq!(tcp.checksum % 0xffff, checksum.unwrap() % 0xffff, "TCP's checksum");
    }
    Judged { shim, tcp, payload: payload_length, size }
}

/// The frames in a file of tcpdump (pcap, this machine's byte order).
fn frames(file: &[u8]) -> Vec<&[u8]> {
    let (mut frames, mut rest) = (vec![], &file[24..]);
    while rest.len() >= 16 {
        let length = u32::from_ne_bytes(rest[8..12].try_into().unwrap()) as usize;
        frames.push(&rest[16..16 + length]);
        rest = &rest[16 + length..];
    }
    frames
}

#[test]
fn the_draft_header_is_on_every_packet_behind_the_handshake() {
    let test = "the_draft_header_is_on_every_packet_behind_the_handshake";
    let mut path = path!("the_draft_header_is_on_every_packet_behind_the_handshake", Encoding::Shim);
    let mut host = enable!("the_draft_header_is_on_every_packet_behind_the_handshake", &path.config());
    cover(&path, &mut host);
    for end in ["c", "s"] {
        // So that checksums are on the wire.
        path.namespace(end).run(|| Offloads::off("eth0").unwrap().keep()).unwrap();
    }
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    for address in ["10.0.2.2", "fd00:2::2"] {
        let listening = path.serve(true);
        // It ends when all is written to the socket: several hundred kB may never be sent.
        let transfer = format!("iperf3 -c {address} -p {listening} -n 4M");
        let file = capture(&mut path, "tcp or proto 253 or ip6 proto 253", &transfer, true);
        let bytes = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let packets: Vec<_> = frames(&bytes).into_iter().map(judged).collect();
        let (mut syns, mut data, mut acks, mut bare) = (0, 0, 0, 0);
        // Of the data connection, the second: what came to the server, and what it said of that.
        let port = packets.iter().filter(|packet| packet.tcp.syn).map(|packet| packet.tcp.source_port);
        let port = port.filter(|port| *port != listening).nth(1).unwrap();
        let (mut asked, mut said, mut granted) = (0, 0, vec![0]);
        for packet in &packets {
            assert!(packet.size <= 1500, "{address}: {} B", packet.size);
            let options = packet.tcp.options.as_slice();
            let ours = options.windows(4).position(|bytes| bytes[0] == 253 && bytes[2..] == [0x58, 0x43]);
            let Some(shim) = &packet.shim else {
                if packet.tcp.syn {
                    let Some(XcpOption::Ack { echo }) = XcpOption::parse(&options[ours.unwrap()..]) else {
                        panic!("no Hello");
                    };
                    assert_eq!(Hello::from_echo(echo), Hello { shim: true });
                    syns += 1;
                } else {
                    assert!(packet.payload == 0 && ours.is_none());
                    bare += usize::from(!packet.tcp.rst);
                }
                continue;
            };
            assert_eq!(ours, None, "an option, too");
            let read = Packet::new_checked(shim).unwrap();
            assert_eq!((read.version(), read.protocol(), shim[3]), (Version::V3, 6, 0));
            match Repr::parse(&read) {
                Repr::Standard { header, .. } => {
                    assert!(packet.payload > 0);
                    data += 1;
                    if packet.tcp.source_port == port {
                        asked += usize::from(header.rtt > 0 && header.x > 0);
                        granted.push(granted[granted.len() - 1] + i64::from(header.delta));
                    }
                }
                Repr::Minimal { reverse, .. } => {
                    assert_eq!((packet.payload, &shim[4..12], &shim[16..]), (0, &[0; 8][..], &[0; 4][..]));
                    acks += 1;
                    if packet.tcp.destination_port == port {
                        said += i64::from(reverse);
                    }
                }
                Repr::StandardV1 { .. } => panic!("version 1"),
            }
        }
        assert_eq!(syns, 4, "{address}");
        assert!(data > 600 && acks > 200 && asked > 600, "{address}: {data} data, {acks} ACKs, {asked}");
        // The handshakes' third packets, and those of TIME_WAIT, which is no socket any more.
        assert!(bare <= 2 + 4, "{address}: {bare} without");
        // iperf3's end resets the connection: what came after that was not echoed.
        assert!(said != 0 && granted.contains(&said), "{address}: {granted:?} B/s came, {said} went back");
    }
    eprintln!("{test}: {:?}", host.counters());
}

#[test]
fn a_shim_router_fills_the_link_without_a_drop() {
    let mut path = path!("a_shim_router_fills_the_link_without_a_drop", Encoding::Shim);
    let mut host = enable!("a_shim_router_fills_the_link_without_a_drop", &path.config());
    cover(&path, &mut host);
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    path.start_server("s", "iperf3 -s", true);
    let running =
        path.command("c", "iperf3 -c 10.0.2.2 -t 4 --json", true).stdout(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_secs(2));
    let socket = path.busiest(&host).unwrap();
    assert_eq!((socket.flow.law, socket.flow.routers, socket.flow.fallbacks), (Law::Xcp, 1, 0));
    assert_eq!(socket.flow.encoding, Encoding::Shim);
    let output = running.wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Of 20 Mbit/s of IP, 1428 B of 1500 are payload. Loose: other work may go on beside this.
    let received = result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!((12e6..19.1e6).contains(&received), "{received} bit/s");
    assert_eq!(result["end"]["sum_sent"]["retransmits"], 0);
    let counters = host.counters().unwrap();
    assert!(counters.shims_sent > 5000 && counters.shims_received + 50 > counters.shims_sent, "{counters:?}");
    assert_eq!((counters.shims_refused, counters.unwritten), (0, 0));
    // The hosts' offloads are on.
    assert_eq!(checksum_errors(&path), 0);
}

/// A second pair of hosts at the same router: x beside the client, and y, which is reached by the server's machine. Their
/// interfaces put no headers in, so that they speak by the option.
struct Second(String);

impl Second {
    fn beside(path: &Path) -> Self {
        let (id, second) = (&path.id, Self(path.id.clone()));
        for end in ["x", "y"] {
            ip(&format!("ip netns add {id}{end}"));
            ip(&format!("ip -n {id}{end} link set lo up"));
        }
        for (end, by, net) in [("x", "r", 4), ("y", "s", 5)] {
            ip(&format!("ip -n {id}{end} link add eth0 type veth peer name {end} netns {id}{by}"));
            ip(&format!("ip -n {id}{end} addr add 10.0.{net}.2/24 dev eth0"));
            ip(&format!("ip -n {id}{by} addr add 10.0.{net}.1/24 dev {end}"));
            for (space, device) in [(end, "eth0"), (by, end)] {
                ip(&format!("ip -n {id}{space} link set {device} up"));
                path.namespace(space).run(|| Offloads::off(device).unwrap().keep()).unwrap();
            }
            ip(&format!("ip -n {id}{end} route add default via 10.0.{net}.1"));
        }
        ip(&format!("ip -n {id}r route add 10.0.5.0/24 via 10.0.2.2"));
        ip(&format!("ip netns exec {id}s sysctl -qw net.ipv4.ip_forward=1"));
        second
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        for end in ["x", "y"] {
            let _ = query(&format!("ip netns delete {}{end}", self.0));
        }
    }
}

#[test]
fn hosts_with_the_option_and_with_the_shim_share_a_port() {
    let test = "hosts_with_the_option_and_with_the_shim_share_a_port";
    let mut path = path!("hosts_with_the_option_and_with_the_shim_share_a_port", Encoding::Shim);
    let mut host = enable!("hosts_with_the_option_and_with_the_shim_share_a_port", &path.config());
    cover(&path, &mut host);
    let second = Second::beside(&path);
    let (rate, shape) = (BitRate(20_000_000), Some(Queue::Bytes(200_000)));
    let config = router::Config { rate, law: router::law(rate), encoding: Encoding::Both, shape };
    path.namespace("r").run(|| router::attach("s", &config)).unwrap().unwrap();
    // Other work may disturb a pair.
    let mut distances = vec![];
    for _ in 0..4 {
        let port = path.serve(true);
        path.start_server("y", &format!("iperf3 -s -1 -p {port}"), true);
        let start = |end: &str, to: &str| {
            let line = format!("iperf3 -c {to} -p {port} -O 2 -t 3 --json");
            path.command(end, &line, true).stdout(Stdio::piped()).spawn().unwrap()
        };
        let running = [start("c", "10.0.2.2"), start("x", "10.0.5.2")];
        sleep(Duration::from_secs(3));
        for (end, encoding) in [("c", Encoding::Shim), ("x", Encoding::Option)] {
            let sockets = path.namespace(end).run(|| host.sockets()).unwrap().unwrap();
            let busy = sockets.iter().max_by_key(|socket| socket.flow.window_bytes).unwrap();
            let flow = &busy.flow;
            assert_eq!(
                (flow.encoding, flow.law, flow.routers > 0, flow.fallbacks),
                (encoding, Law::Xcp, true, 0)
            );
        }
        let results = running.map(|child| {
            let output = child.wait_with_output().unwrap();
            let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(result["end"]["sum_sent"]["retransmits"], 0);
            result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap()
        });
        let [shim, option] = results;
        eprintln!("{test}: {shim:.0} bit/s by the shim, {option:.0} bit/s by the option");
        let mean = (shim + option) / 2.0;
        assert!(2.0 * mean > 10e6, "{shim} and {option} bit/s");
        distances.push((shim - mean).abs() / mean);
        if distances.last().is_some_and(|distance| *distance <= 0.1) {
            break;
        }
    }
    assert!(distances.iter().any(|distance| *distance <= 0.1), "from the fair share: {distances:?}");
    let sample = path.namespace("r").run(|| router::status(Some("s"))).unwrap().unwrap().remove(0).sample;
    assert!(sample.xcp_packets > 5000 && sample.refused_packets == 0, "{sample:?}");
    assert_eq!((checksum_errors(&path), host.counters().unwrap().shims_refused), (0, 0));
    drop(second);
}

#[test]
fn without_a_router_cubic_rules_until_one_answers() {
    let mut path = path!("without_a_router_cubic_rules_until_one_answers", Encoding::Shim);
    let mut host = enable!("without_a_router_cubic_rules_until_one_answers", &path.config());
    cover(&path, &mut host);
    let socket = path.falls_back_and_returns(&host);
    assert_eq!(socket.flow.encoding, Encoding::Shim, "headers go on");
}

#[test]
fn a_side_that_can_not_gets_the_option_or_plain_tcp() {
    let mut path = path!("a_side_that_can_not_gets_the_option_or_plain_tcp", Encoding::Shim);
    let mut host = enable!("a_side_that_can_not_gets_the_option_or_plain_tcp", &path.config());
    // Neither side, then one of both.
    for covered in [None, Some("c")] {
        if let Some(end) = covered {
            path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
        }
        let before = host.counters().unwrap();
        for turn in ["", " -R"] {
            let port = path.serve(true);
            path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -n 1M{turn}"), true);
        }
        let counters = host.counters().unwrap();
        assert_eq!(counters.connections - before.connections, 8, "by the option");
        assert_eq!((counters.shims_sent, counters.shims_received), (0, 0));
    }
    path.namespace("s").run(|| host.insert_at("eth0")).unwrap().unwrap();
    let port = path.serve(false);
    path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -n 1M"), true);
    let counters = host.counters().unwrap();
    assert_eq!((counters.fallbacks_no_option, counters.shims_sent), (2, 0), "plain TCP");
    let port = path.serve(true);
    path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -n 1M"), true);
    let counters = host.counters().unwrap();
    assert!(counters.shims_sent > 300, "{counters:?}");
}

#[test]
fn a_firewall_that_knows_tcp_alone_breaks_no_connection() {
    let mut path = path!("a_firewall_that_knows_tcp_alone_breaks_no_connection", Encoding::Shim);
    let mut host = enable!("a_firewall_that_knows_tcp_alone_breaks_no_connection", &path.config());
    cover(&path, &mut host);
    let port = path.serve(true);
    path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -n 1M"), true);
    let nft = std::env::temp_dir().join(format!("{}firewall.nft", path.id));
    for (name, rule) in [("both", ""), ("there", "oifname s "), ("back", "oifname c ")] {
        let rules = format!(
            "table inet {name} {{ chain f {{ type filter hook forward priority 0; {rule}meta l4proto 253 drop; }}\n}}\n"
        );
        fs::write(&nft, rules).unwrap();
        let set = path.command("r", &format!("nft -f {}", nft.display()), false).output().unwrap();
        fs::remove_file(&nft).unwrap();
        if !set.status.success() {
            let reason = String::from_utf8_lossy(&set.stderr);
            return eprintln!("SKIP a_firewall_that_knows_tcp_alone_breaks_no_connection: {}", reason.trim());
        }
        for (address, turn) in [("10.0.2.2", ""), ("fd00:2::2", " -R")] {
            let port = path.serve(true);
            path.run("c", &format!("timeout 60 iperf3 -c {address} -p {port} -n 1M{turn}"), true);
        }
        path.run("r", &format!("nft delete table inet {name}"), false);
    }
}

/// A namespace with a pair of interfaces, removed in the end.
struct Pair(Option<Namespace>);

impl Pair {
    fn new(test: &str) -> Option<Self> {
        let name = format!("cl-pair-{}-{}", std::process::id(), test.len());
        match Namespace::create(&name) {
            Ok(namespace) => {
                let pair = Self(Some(namespace));
                pair.inside(|| {
                    ip("ip link add v0 type veth peer name v1");
                    ip("ip link set v0 gso_max_segs 100 up");
                    ip("ip link set v1 up");
                });
                Some(pair)
            }
            Err(error) => {
                eprintln!("SKIP {test}: no namespace: {error}");
                None
            }
        }
    }

    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.as_ref().unwrap().run(work).unwrap()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.0.take().map(Namespace::delete);
    }
}

/// Everything that enabling may change at interfaces.
fn settings() -> Vec<String> {
    let mut all = vec![];
    for name in ["v0", "v1"] {
        all.push(query(&format!("tc qdisc show dev {name}")).unwrap());
        for side in ["ingress", "egress"] {
            all.push(query(&format!("tc filter show dev {name} {side}")).unwrap_or_default());
        }
        let details = query(&format!("ip -d link show dev {name}")).unwrap();
        let mut words = details.split_whitespace().skip_while(|word| *word != "gso_max_segs");
        all.push(words.nth(1).unwrap().into());
    }
    all
}

fn programs() -> usize {
    let list = query("bpftool -j net show").unwrap_or_default();
    list.matches("cl_host_").count()
}

#[test]
fn what_interfaces_were_like_is_restored() {
    let test = "what_interfaces_were_like_is_restored";
    // By tcx, and by filters.
    clsact::again(test);
    let path = path!("what_interfaces_were_like_is_restored", Encoding::Shim);
    let Some(pair) = Pair::new(test) else { return };
    let config = Config { interfaces: vec!["v0".into(), "v1".into()], ..path.config() };
    let before = pair.inside(settings);
    assert!(before.contains(&"100".into()), "{before:?}");

    // What does not stay.
    match pair.inside(|| host::enable(&config, false)) {
        Err(error @ Error::Missing { .. }) => return eprintln!("SKIP {test}: {error}"),
        result => {
            let host = result.unwrap();
            let during = pair.inside(settings);
            assert_eq!(during.iter().filter(|value| *value == "1").count(), 2, "{during:?}");
            let again = Config { name: format!("{}b", config.name), ..config.clone() };
            let again = pair.inside(|| host::enable(&again, false));
            assert!(matches!(again, Err(Error::Input { .. })), "{again:?}");
            assert_eq!(pair.inside(settings), during, "somebody else's");
            drop(host);
        }
    }
    assert_eq!(pair.inside(settings), before);

    // What does, also as seen from another namespace.
    drop(pair.inside(|| host::enable(&config, true)).unwrap());
    let during = (pair.inside(settings), host::status_of(&config.name));
    host::disable_named(&config.name).unwrap();
    assert_ne!(during.0, before);
    let details = during.1.unwrap().details.unwrap();
    assert_eq!((details.encoding, details.interfaces), (Encoding::Shim, vec!["v0".into(), "v1".into()]));
    assert_eq!(pair.inside(settings), before);

    // What fails half-way.
    let absent = Config { interfaces: vec!["v0".into(), "v9".into()], ..config.clone() };
    for stays in [false, true] {
        let refused = pair.inside(|| host::enable(&absent, stays));
        assert!(matches!(refused, Err(Error::Input { .. })), "{refused:?}");
        assert_eq!(pair.inside(settings), before);
        assert!(!host::status_of(&config.name).unwrap().enabled);
    }
    assert_eq!(pair.inside(programs), 0);

    // An interface that goes first.
    let host = pair.inside(|| host::enable(&config, false)).unwrap();
    pair.inside(|| ip("ip link delete v0"));
    drop(host);
    drop(
        pair.inside(|| host::enable(&Config { interfaces: vec!["lo".into()], ..config.clone() }, true))
            .unwrap(),
    );
    drop(pair);
    host::disable_named(&config.name).unwrap();
}

/// The program for what comes in, alone.
fn taking_out(test: &str) -> Option<Object> {
    libbpf_rs::set_print(None);
    let mut object = ObjectBuilder::default();
    let mut object = object.open_memory(include_bytes!("../bpf/objects/host.bpf.o")).unwrap();
    for mut program in object.progs_mut() {
        program.set_autoload(program.name() == "cl_host_in");
    }
    for mut map in object.maps_mut() {
        if map.map_type() == libbpf_rs::MapType::StructOps {
            map.set_autocreate(false).unwrap();
        }
    }
    object.load().map_err(|error| eprintln!("SKIP {test}: {error}")).ok()
}

/// What becomes of a frame.
fn taken_out(object: &Object, frame: &[u8]) -> Vec<u8> {
    let mut out = vec![0; frame.len() + 64];
    let program = object.progs_mut().find(|program| program.name() == "cl_host_in").unwrap();
    let input = ProgramInput { data_in: Some(frame), data_out: Some(&mut out), ..Default::default() };
    let output = program.test_run(input).unwrap();
    assert_eq!(output.return_value as i32, -1, "TC_ACT_UNSPEC");
    output.data.unwrap().to_vec()
}

/// Taken out, and refused.
fn counts(object: &Object) -> (u64, u64) {
    let map = object.maps().find(|map| map.name() == "hosts").unwrap();
    let value = map.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    let word = |at: usize| u64::from_ne_bytes(value[8 * at..8 * at + 8].try_into().unwrap());
    (word(10), word(11))
}

const V4: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
const V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)];

/// TCP with a payload, with or without the header before it.
fn frame(is_v4: bool, shim: &[u8]) -> Vec<u8> {
    let payload = b"what TCP carries";
    let mut tcp = TcpHeader::new(5001, 43210, 0x1234_5678, 777);
    tcp.ack = true;
    let checksum = match is_v4 {
        true => tcp.calc_checksum_ipv4_raw(V4[0].octets(), V4[1].octets(), payload),
        false => tcp.calc_checksum_ipv6_raw(V6[0].octets(), V6[1].octets(), payload),
    };
    tcp.checksum = checksum.unwrap();
    let protocol = if shim.is_empty() { 6 } else { PROTOCOL_EXPERIMENTAL };
    let mut bytes = vec![2; 12];
    let length = shim.len() + tcp.header_len() + payload.len();
    if is_v4 {
        bytes.extend([8, 0]);
        let (from, to) = (V4[0].octets(), V4[1].octets());
        let mut header = Ipv4Header::new(length as u16, 9, protocol.into(), from, to).unwrap();
        header.header_checksum = header.calc_header_checksum();
        header.write(&mut bytes).unwrap();
    } else {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend([protocol, 9]);
        bytes.extend(V6.iter().flat_map(|address| address.octets()));
    }
    bytes.extend(shim);
    tcp.write(&mut bytes).unwrap();
    bytes.extend(payload);
    bytes
}

#[test]
fn what_comes_in_loses_the_header_and_nothing_else() {
    let Some(object) = taking_out("what_comes_in_loses_the_header_and_nothing_else") else { return };
    let extreme = Header { x: u32::MAX, rtt: u32::MAX, delta: i32::MIN, reverse: i32::MAX };
    let mut taken = 0;
    for is_v4 in [true, false] {
        for header in
            [extreme, Header::default(), Header { x: 0, delta: i32::MAX, reverse: i32::MIN, ..extreme }]
        {
            for repr in [
                Repr::Standard { layout: Layout::V3, protocol: 6, header },
                Repr::Minimal { version: Version::V3, protocol: 6, reverse: header.reverse },
            ] {
                let out = taken_out(&object, &frame(is_v4, &repr.emit()));
                assert_eq!(out, frame(is_v4, &[]));
                assert_eq!(judged(&out).payload, 16);
                taken += 1;
                assert_eq!(counts(&object), (taken, 0));
            }
        }
    }
}

#[test]
fn what_is_not_the_drafts_stays() {
    let Some(object) = taking_out("what_is_not_the_drafts_stays") else { return };
    let header = Header { x: 5, rtt: 6, delta: 7, reverse: 8 };
    let good = Repr::Standard { layout: Layout::V3, protocol: 6, header }.emit();
    let with = |at: usize, value: u8| {
        let mut bytes = good;
        bytes[at] = value;
        bytes
    };
    let v2 = Repr::Standard { layout: Layout::V2, protocol: 6, header }.emit();
    let mut refused = 0;
    for is_v4 in [true, false] {
        let ip = if is_v4 { 20 } else { 40 };
        let mut frames: Vec<_> =
            [v2, with(0, 17), with(0, 253), with(1, 0), with(1, 24), with(2, 0x01), with(2, 0x41)]
                .iter()
                .map(|shim| frame(is_v4, shim))
                .collect();
        let whole = frame(is_v4, &good);
        // Cut off in the header, behind it, and by what IP says.
        frames.extend(
            [ETHERNET + ip + 3, ETHERNET + ip + 19, ETHERNET + ip + 20].map(|end| whole[..end].to_vec()),
        );
        for length in [0, ip - 1, ip + 10, ip + 39] {
            let (mut wrong, at, length) = if is_v4 {
                (whole.clone(), 16, length)
            } else {
                (whole.clone(), 18, length - ip.min(length))
            };
            wrong[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
            frames.push(wrong);
        }
        if is_v4 {
            for (at, value) in [(14, 0x46), (20, 0x20), (21, 9)] {
                let mut wrong = whole.clone(); // IP options, fragments
                wrong[at] = value;
                frames.push(wrong);
            }
        }
        for sent in frames {
            refused += 1;
            assert_eq!(taken_out(&object, &sent), sent);
            assert_eq!(counts(&object), (0, refused), "{sent:02x?}");
        }
        for other in [frame(is_v4, &[]), [&[2; 12], &[8, 6][..], &[0; 28]].concat()] {
            assert_eq!(taken_out(&object, &other), other);
            assert_eq!(counts(&object), (0, refused), "somebody else's");
        }
    }
}
