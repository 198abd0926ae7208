//! VCP in the kernel: the router's program on packets (BPF_PROG_TEST_RUN), and hosts with real TCP between
//! namespaces.
//!
//! Skips with the reason where the privilege, a tool or the kernel's part is missing.

use std::thread::sleep;
use std::time::Duration;

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
    let config = Config { rate, law: router::vcp(rate), encoding: Encoding::Ecn, shape: None };
    match Program::load(config.law.object(), &config, ETHERNET as u32, 0) {
        Ok(program) => Some(program),
        Err(Error::Missing { what, help }) => {
            eprintln!("SKIP {test}: {what}; {help}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A frame with so many bytes of IP, of protocol UDP: the field is IP's, whoever uses it.
fn frame(is_v6: bool, code: u8, size: u16) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    if is_v6 {
        bytes.extend([0x86, 0xdd, 0x6a, 0xb0 & 0xcf | code << 4, 0x12, 0x34]);
        bytes.extend((size - 40).to_be_bytes());
        bytes.extend([17, 9]);
        bytes.extend([0xfd; 32]);
    } else {
        bytes.extend([8, 0]);
        let mut header =
            etherparse::Ipv4Header::new(size - 20, 9, 17.into(), [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        header.dscp = 0b10_1110.try_into().unwrap();
        header.ecn = code.try_into().unwrap();
        header.header_checksum = header.calc_header_checksum();
        header.write(&mut bytes).unwrap();
    }
    bytes.resize(ETHERNET + usize::from(size), 7);
    bytes
}

/// The code, when all else is as it was and the checksum is right.
fn judged(is_v6: bool, sent: &[u8], got: &[u8]) -> u8 {
    let mut expected = sent.to_vec();
    let code;
    if is_v6 {
        code = got[ETHERNET + 1] >> 4 & 3;
        expected[ETHERNET + 1] = expected[ETHERNET + 1] & !0x30 | code << 4;
    } else {
        let mut header = etherparse::Ipv4Header::from_slice(&sent[ETHERNET..]).unwrap().0;
        code = got[ETHERNET + 1] & 3;
        header.ecn = code.try_into().unwrap();
        header.header_checksum = header.calc_header_checksum();
        expected[ETHERNET..ETHERNET + 20].copy_from_slice(&header.to_bytes());
    }
    assert_eq!(got, expected);
    code
}

#[test]
fn a_code_is_raised_to_the_zone_of_the_load_and_never_lowered() {
    let test = "a_code_is_raised_to_the_zone_of_the_load_and_never_lowered";
    // Nothing is low of a gigabit, and everything over 10 kbit/s.
    for (rate, zone) in [(BitRate(1_000_000_000), 1), (BitRate(10_000), 3)] {
        let Some(program) = load(test, rate) else { return };
        for _ in 0..2 {
            for is_v6 in [false, true] {
                program.pass(&frame(is_v6, 0, 1500), &mut [], 100).unwrap();
            }
            sleep(250 * MS);
        }
        let mut coded = 0;
        for is_v6 in [false, true] {
            for code in 0..4 {
                let sent = frame(is_v6, code, 700);
                let (got, _) = program.pass(&sent, &mut [], 1).unwrap();
                let expected = if code == 0 { 0 } else { code.max(zone) };
                assert_eq!(judged(is_v6, &sent, &got), expected, "{code} where the link says {zone}");
                coded += u64::from(code > 0);
            }
        }
        let sample = program.sample().unwrap();
        let load = sample.load.unwrap();
        assert_eq!((sample.xcp_packets, load.load_code), (coded, zone), "{sample:?}");
        assert_eq!(load.load_factor >= 1.0, zone == 3, "{load:?}");
        assert!(sample.intervals >= 1 && sample.packets >= 208, "{sample:?}");
    }
}

#[test]
fn hosts_fill_a_link_by_codes_and_the_kernels_own_ecn_sees_none_of_them() {
    let mut path = path!("vcp/hosts", Encoding::Ecn);
    // Negotiated, which is the harder case: a code that stays would be CE to it.
    for end in ["c", "s"] {
        ip(&format!("ip netns exec {}{end} sysctl -qw net.ipv4.tcp_ecn=1", path.id));
    }
    let mut host = enable!("vcp/hosts", &path.config());
    for end in ["c", "s"] {
        path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
    }
    path.attach(10_000_000, Some(Queue::Bytes(300_000)));
    // A window of one packet takes some seconds to grow.
    for (address, seconds) in [("10.0.2.2", 24), ("fd00:2::2", 12)] {
        let port = path.serve(true);
        path.start("c", &format!("iperf3 -c {address} -p {port} -t {seconds}"), true);
        let socket =
            path.until(&host, "VCP", |socket| socket.flow.law == Law::Xcp && socket.cwnd_packets > 3);
        assert_eq!(
            (socket.flow.encoding, &*socket.congestion_control),
            (Encoding::Ecn, &*path.config().name)
        );
        sleep(if seconds > 20 { 10_000 * MS } else { MS });
        let flow = path.busiest(&host).unwrap().flow;
        assert!(flow.negotiated && flow.fallbacks == 0 && flow.load.is_some(), "{flow:?}");
        let status = path.namespace("r").run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
        assert_eq!((&*status.law, status.queue.drops), ("vcp", 0), "{status:?}");
        if seconds > 20 {
            let load = status.sample.load.unwrap().load_factor;
            assert!((0.6..1.2).contains(&load), "{status:?}");
        }
        let is_over = |_| {
            sleep(200 * MS);
            path.busiest(&host).is_none()
        };
        assert!((0..150).any(is_over), "{:?}", path.busiest(&host));
    }
    let counters = host.counters().unwrap();
    assert!(counters.shims_sent > 1000 && counters.shims_received > 1000, "{counters:?}");
    assert_eq!(counters.fallbacks_stripped + counters.fallbacks_loss, 0, "{counters:?}");
    let seen = path.run("s", "nstat -asz", false);
    let count = |name: &str| {
        let line = seen.lines().find(|line| line.starts_with(name));
        line.map_or(0, |line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap())
    };
    assert_eq!(count("TcpInCsumErrors"), 0, "{seen}");
}

/// A middlebox that clears the ECN field: the receiver says so, and CUBIC takes over.
#[test]
fn a_path_that_clears_codes_gets_cubic() {
    let mut path = path!("vcp/clear", Encoding::Ecn);
    let mut host = enable!("vcp/clear", &path.config());
    for end in ["c", "s"] {
        path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
    }
    path.attach(10_000_000, Some(Queue::Bytes(300_000)));
    let port = path.serve(true);
    path.start("c", &format!("iperf3 -c 10.0.2.2 -p {port} -t 20"), true);
    path.until(&host, "VCP", |socket| socket.flow.law == Law::Xcp && socket.cwnd_packets > 3);
    let rules = "add table ip m; add chain ip m f { type filter hook forward priority -150; }; \
                 add rule ip m f ip ecn set not-ect";
    path.run("r", &format!("nft '{rules}'"), false);
    let socket = path.until(&host, "fallback", |socket| socket.flow.law == Law::Fallback);
    assert_eq!((socket.flow.reason, &*socket.congestion_control), (Some(Reason::Stripped), "cubic"));
    assert_eq!(host.counters().unwrap().fallbacks_stripped, 1);
}

#[test]
fn a_peer_without_vcp_gets_cubic() {
    let mut path = path!("vcp/peer", Encoding::Ecn);
    let mut host = enable!("vcp/peer", &path.config());
    path.namespace("c").run(|| host.insert_at("eth0")).unwrap().unwrap();
    // The server's processes are no members of the control group.
    path.start_server("s", "iperf3 -s", false);
    path.start("c", "iperf3 -c 10.0.2.2 -t 5", true);
    let socket = path.until(&host, "fallback", |socket| socket.flow.law == Law::Fallback);
    assert_eq!((socket.flow.reason, &*socket.congestion_control), (Some(Reason::NoOption), "cubic"));
    let error =
        host::enable(&host::Config { encoding: Encoding::Option, ..path.config() }, false).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
}
