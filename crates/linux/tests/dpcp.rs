//! DPCP in the kernel: the router's program on packets (BPF_PROG_TEST_RUN), and hosts with real TCP between
//! namespaces, also through a firewall that drops what connection tracking calls invalid.
//!
//! Skips with the reason where the privilege, a tool or the kernel's part is missing.

use std::thread::sleep;
use std::time::Duration;

use congestlab_core::law::mpcp::Level;
use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::host::{self, Encoding, Law, Reason};
use congestlab_linux::router::{self, Config, Program, Queue};

#[macro_use]
#[expect(dead_code, reason = "other tests look at packets, and at falling back on the way")]
mod path;
use path::{Path, ip};

const MS: Duration = Duration::from_millis(1);
const ETHERNET: usize = 14;

fn load(test: &str, rate: BitRate) -> Option<Program> {
    let config = Config { rate, law: router::dpcp(rate), encoding: Encoding::Ecn, shape: None };
    match Program::load(config.law.object(), &config, ETHERNET as u32, 0) {
        Ok(program) => Some(program),
        Err(Error::Missing { what, help }) => {
            eprintln!("SKIP {test}: {what}; {help}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A packet of TCP with these numbers, by a port of its own for each flow.
#[derive(Clone, Copy)]
struct Sent {
    is_v6: bool,
    flow: u16,
    code: u8,
    numbers: [u32; 2],
}

impl Sent {
    fn frame(self) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        if self.is_v6 {
            bytes.extend([0x86, 0xdd, 0x60, self.code << 4, 0, 0]);
            bytes.extend(660u16.to_be_bytes());
            bytes.extend([6, 9]);
            bytes.extend([0xfd; 32]);
        } else {
            bytes.extend([8, 0]);
            let mut header =
                etherparse::Ipv4Header::new(680, 9, 6.into(), [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
            header.ecn = self.code.try_into().unwrap();
            header.header_checksum = header.calc_header_checksum();
            header.write(&mut bytes).unwrap();
        }
        bytes.extend(self.flow.to_be_bytes());
        bytes.extend([0, 80]);
        bytes.extend(self.numbers.into_iter().flat_map(u32::to_be_bytes));
        bytes.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        bytes.resize(ETHERNET + 700, 7);
        bytes
    }

    /// The code with which it leaves.
    fn passes(self, program: &Program) -> u8 {
        let (got, _) = program.pass(&self.frame(), &mut [], 1).unwrap();
        let code = if self.is_v6 { got[ETHERNET + 1] >> 4 & 3 } else { got[ETHERNET + 1] & 3 };
        // Nothing else of it has changed, and the checksum of IPv4 is right.
        assert!(got == Self { code, ..self }.frame(), "{code}");
        code
    }
}

#[test]
fn both_digits_of_a_load_are_told_in_two_packets_of_a_flow() {
    let test = "both_digits_of_a_load_are_told_in_two_packets_of_a_flow";
    // Nothing is low of a gigabit, and everything over 10 kbit/s.
    for (rate, digits) in [(BitRate(1_000_000_000), [1, 1]), (BitRate(10_000), [3, 3])] {
        let Some(program) = load(test, rate) else { return };
        for _ in 0..2 {
            let other = Sent { is_v6: false, flow: 9, code: 0, numbers: [2, 1] };
            program.pass(&other.frame(), &mut [], 200).unwrap();
            sleep(250 * MS);
        }
        for is_v6 in [false, true] {
            let flow = 100 + u16::from(is_v6);
            let first = |code| Sent { is_v6, flow, code, numbers: [900, 100] };
            let second = |code| Sent { is_v6, flow, code, numbers: [100, 900] };
            // A flow of which no first packet came may be VCP's: it is told the zone.
            assert_eq!(second(1).passes(&program), digits[0]);
            for a in 0..4 {
                for b in 0..4 {
                    let (found, next) = (first(a).passes(&program), second(b).passes(&program));
                    let expected = match (a, b) {
                        (0, _) => continue, // what is not coded is no chain's
                        (_, 0) => [a.max(digits[0]), 0],
                        // A larger first digit of ours is followed by our second, an equal one by the larger.
                        _ if digits[0] > a => digits,
                        _ if digits[0] == a => [a, b.max(digits[1])],
                        _ => [a, b],
                    };
                    assert_eq!([found, next], expected, "{a} {b} at {digits:?}");
                }
            }
            // Equal numbers tell no place, and other protocols have none.
            let tie = Sent { is_v6, flow, code: 1, numbers: [7, 7] };
            assert_eq!(tie.passes(&program), 1);
        }
        let load = program.sample().unwrap().load.unwrap();
        assert_eq!(load.load_code, digits[0], "{load:?}");
        let level = Level::of(u32::try_from((load.load_factor * 1e6) as u64).unwrap_or(u32::MAX), 2);
        assert_eq!(load.load_level, Some(level.number()), "{load:?}");
    }
}

/// A count of a host's TCP.
fn count(path: &Path, end: &str, name: &str) -> u64 {
    let seen = path.run(end, "nstat -asz", false);
    let line = seen.lines().find(|line| line.starts_with(name));
    line.map_or(0, |line| line.split_whitespace().nth(1).unwrap().parse().unwrap())
}

#[test]
fn hosts_fill_a_link_by_chains_that_tcp_never_sees() {
    let mut path = path!("dpcp/hosts", Encoding::Ecn);
    path.chain = 2;
    for end in ["c", "s"] {
        ip(&format!("ip netns exec {}{end} sysctl -qw net.ipv4.tcp_ecn=1", path.id));
    }
    let mut host = enable!("dpcp/hosts", &path.config());
    for end in ["c", "s"] {
        path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
    }
    path.attach(10_000_000, Some(Queue::Bytes(300_000)));
    for (address, seconds) in [("10.0.2.2", 10), ("fd00:2::2", 6)] {
        let port = path.serve(true);
        path.start("c", &format!("iperf3 -c {address} -p {port} -t {seconds}"), true);
        let socket =
            path.until(&host, "DPCP", |socket| socket.flow.law == Law::Xcp && socket.cwnd_packets > 3);
        assert_eq!(
            (socket.flow.encoding, &*socket.congestion_control),
            (Encoding::Ecn, &*path.config().name)
        );
        sleep(if seconds > 6 { 5_000 * MS } else { MS });
        let flow = path.busiest(&host).unwrap().flow;
        assert!(flow.negotiated && flow.fallbacks == 0 && flow.load.is_some(), "{flow:?}");
        let status = path.namespace("r").run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
        assert_eq!((&*status.law, status.queue.drops), ("dpcp", 0), "{status:?}");
        if seconds > 6 {
            let load = status.sample.load.unwrap();
            assert!((0.6..1.3).contains(&load.load_factor) && load.load_level.is_some(), "{status:?}");
        }
        let is_over = |_| {
            sleep(200 * MS);
            path.busiest(&host).is_none()
        };
        assert!((0..100).any(is_over), "{:?}", path.busiest(&host));
    }
    let counters = host.counters().unwrap();
    assert!(counters.shims_sent > 1000 && counters.shims_received > 1000, "{counters:?}");
    assert_eq!(counters.fallbacks_stripped + counters.fallbacks_loss, 0, "{counters:?}");
    // An exchanged packet that TCP had seen would be acknowledged again at once, or be no part of the stream.
    assert_eq!(count(&path, "s", "TcpInCsumErrors"), 0);
    let sent = count(&path, "c", "TcpOutSegs");
    let again = count(&path, "c", "TcpRetransSegs");
    assert!(sent > 5000 && again * 200 < sent, "{again} of {sent} packets again");
}

/// Connection tracking calls every exchanged packet invalid: with a firewall that drops those, chains are given up, or the
/// whole law, and the connection goes on.
#[test]
fn a_firewall_that_drops_exchanged_numbers_stops_no_connection() {
    let mut path = path!("dpcp/firewall", Encoding::Ecn);
    path.chain = 2;
    let mut host = enable!("dpcp/firewall", &path.config());
    for end in ["c", "s"] {
        path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
    }
    path.attach(10_000_000, Some(Queue::Bytes(300_000)));
    let rules = "add table inet t; add chain inet t c { type filter hook forward priority 0; }; \
                 add rule inet t c ct state invalid counter drop";
    ip(&format!("ip netns exec {}r nft {rules}", path.id));
    // The order of a connection's first numbers is chance: both come.
    let mut seen = vec![];
    for _ in 0..4 {
        let port = path.serve(true);
        let text = path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -t 6 -J"), true);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let bits = json["end"]["sum_received"]["bits_per_second"].as_f64();
        let bits = bits.unwrap_or_else(|| panic!("{text}"));
        seen.push((bits / 1e6, host.counters().unwrap()));
        assert!(bits > 2e6, "{seen:?}");
    }
    let dropped = path.run("r", "nft list ruleset", false);
    assert!(!dropped.contains("packets 0 "), "the firewall saw nothing: {dropped}");
}

#[test]
fn a_peer_without_dpcp_gets_cubic() {
    let mut path = path!("dpcp/peer", Encoding::Ecn);
    path.chain = 2;
    let mut host = enable!("dpcp/peer", &path.config());
    path.namespace("c").run(|| host.insert_at("eth0")).unwrap().unwrap();
    path.start_server("s", "iperf3 -s", false);
    path.start("c", "iperf3 -c 10.0.2.2 -t 5", true);
    let socket = path.until(&host, "fallback", |socket| socket.flow.law == Law::Fallback);
    assert_eq!((socket.flow.reason, &*socket.congestion_control), (Some(Reason::NoOption), "cubic"));
}
