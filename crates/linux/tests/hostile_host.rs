//! Real connections whose congestion headers and codes are overwritten on the way: wrong lengths, odd offsets,
//! extreme values, with every law that hosts run. The bytes arrive, the window stays what the law allows, and it is counted.

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use congestlab_core::law::mpcp::Loss;
use congestlab_linux::Error;
use congestlab_linux::host::{self, Config, Counters, Encoding, Host, Law, LossPolicy, Sender};
use congestlab_linux::sys::diag::{Diag, States};
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::{cgroup, command};

const BYTES: usize = 4 << 20;
/// The law's clamp: no larger than what the peer offers, here 128 KiB (SO_RCVBUF, twice), in packets of
/// 1500 bytes with 1408 or more of payload.
const WINDOW_MAX: u64 = (128 << 10) * 1500 / 1408 + 1500;
/// Receives, then says what: length and sum.
const SERVER: &str = "import socket,zlib
s=socket.create_server(('10.0.2.2',5001));s.setsockopt(1,8,65536);s.settimeout(60);c=s.accept()[0];c.settimeout(60);n=z=0
while d:=c.recv(65536):n+=len(d);z=zlib.crc32(d,z)
c.sendall(b'%d %d'%(n,z));c.close()";
/// Sends what no pattern is in; prints what it was, and what came.
const CLIENT: &str = "import socket,zlib,random,sys
d=random.Random(7).randbytes(int(sys.argv[1]));c=socket.create_connection(('10.0.2.2',5001),30);c.settimeout(60)
c.sendall(d);c.shutdown(1);print(len(d),zlib.crc32(d),'|',c.recv(99).decode())";

/// Three namespaces with a link of 40 Mbit/s: client, middle and server, whose names end in c, m, s.
struct Pair {
    id: String,
    cgroup: PathBuf,
    sender: Sender,
    server: Option<Child>,
    /// Largest windows of the last transfer while its law ruled: the law's, bytes, and TCP's, packets.
    windows: (u64, u32),
}

impl Drop for Pair {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        for end in ["c", "m", "s"] {
            let _ = command::query(&format!("ip netns delete {}{end}", self.id));
        }
        for _ in 0..50 {
            match fs::remove_dir(&self.cgroup) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(Duration::from_millis(20)),
                _ => break,
            }
        }
    }
}

fn ip(line: &str) {
    command::query(line).unwrap_or_else(|error| panic!("{line}: {error}"));
}

impl Pair {
    /// Or what is missing for that.
    fn new(sender: Sender) -> Result<Self, String> {
        for tool in ["ip", "tc", "nft", "python3"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
            if !found.is_ok_and(|found| found.status.success()) {
                return Err(format!("{tool} is not installed"));
            }
        }
        let random = RandomState::new().hash_one(std::process::id()) as u32;
        let id = format!("cl-o{random:08x}");
        let cgroup = cgroup::root().map_err(|error| error.to_string())?.join(&id);
        fs::create_dir(&cgroup).map_err(|error| format!("no control group: {error}"))?;
        let pair = Self { id, cgroup, sender, server: None, windows: (0, 0) };
        let id = &pair.id;
        for end in ["c", "m", "s"] {
            let made = command::query(&format!("ip netns add {id}{end}"));
            made.map_err(|error| format!("no namespace: {error}"))?;
        }
        for (end, net) in [("c", 1), ("s", 2)] {
            ip(&format!("ip -n {id}{end} link add eth0 type veth peer name {end} netns {id}m"));
            ip(&format!("ip -n {id}{end} addr add 10.0.{net}.2/24 dev eth0"));
            ip(&format!("ip -n {id}m addr add 10.0.{net}.1/24 dev {end}"));
            ip(&format!("ip -n {id}m link set {end} gso_max_segs 1 up"));
            // Checksums are left to the interface, which a veth never computes: a packet may be
            // overwritten. Segments are not, so that each has the header that was written for it.
            ip(&format!("ip -n {id}{end} link set eth0 gso_max_segs 1 up"));
            ip(&format!("ip -n {id}{end} route add default via 10.0.{net}.1"));
        }
        ip(&format!("ip netns exec {id}m sysctl -qw net.ipv4.ip_forward=1"));
        let set = command::query(&format!("ip netns exec {id}c nft add table ip probe"));
        set.map_err(|error| format!("no nftables: {error}"))?;
        ip(&format!("tc -n {id}c qdisc add dev eth0 root tbf rate 40mbit burst 5kb limit 3mb"));
        Ok(pair)
    }

    fn config(&self) -> Config {
        let encoding = if self.sender.owns_ecn() { Encoding::Ecn } else { Encoding::Option };
        let (sender, initial_window) = (self.sender.clone(), self.sender.initial_window());
        let config = Config::new(format!("{}_{}", sender.name(), &self.id[4..]), &self.cgroup);
        Config { encoding, sender, initial_window, ..config }
    }

    /// The host of both ends.
    fn enable(&self) -> Result<Host, Error> {
        let mut host = host::enable(&self.config(), false)?.unwrap();
        for end in if self.sender.owns_ecn() { &["c", "s"][..] } else { &[] } {
            let space = Namespace::open(&format!("{}{end}", self.id))?;
            space.run(|| host.insert_at("eth0"))??;
        }
        Ok(host)
    }

    fn python(&self, end: &str, script: &str) -> Command {
        let enter = format!("echo $$ > {}/cgroup.procs && ", self.cgroup.display());
        let mut command = Command::new("sh");
        let line = format!("{enter}exec ip netns exec {}{end} python3 -c \"$0\" {BYTES}", self.id);
        command.args(["-c", &line, script]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Overwrites what an end sends, or the middle forwards.
    fn overwrite(&self, end: &str, rules: &[String]) {
        let hook = if end == "m" { "forward" } else { "output" };
        let chain = format!("chain f {{ type filter hook {hook} priority 0;");
        let text =
            format!("table ip t\ndelete table ip t\ntable ip t {{ {chain}\n{}\n}}\n}}\n", rules.join("\n"));
        let file = std::env::temp_dir().join(format!("{}{end}.nft", self.id));
        fs::write(&file, &text).unwrap();
        let set = command::query(&format!("ip netns exec {}{end} nft -f {}", self.id, file.display()));
        fs::remove_file(&file).unwrap();
        set.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Packets that the rules with this comment met.
    fn met(&self, end: &str, comment: &str) -> u64 {
        let list = command::query(&format!("ip netns exec {}{end} nft list ruleset", self.id)).unwrap();
        let met = list.lines().filter(|line| line.contains(&format!("comment \"{comment}\"")));
        met.map(|line| {
            let count = line.split_once("counter packets ").unwrap().1;
            count.split(' ').next().unwrap().parse::<u64>().unwrap()
        })
        .sum()
    }

    /// One transfer, watched. Returns the counts, and how often XCP ruled when it was looked at.
    fn transfer(&mut self, host: &Host) -> (Counters, usize) {
        let mut server = self.python("s", SERVER);
        self.server = Some(server.spawn().unwrap());
        sleep(Duration::from_millis(500));
        let mut client = self.python("c", CLIENT).spawn().unwrap();
        let space = Namespace::open(&format!("{}c", self.id)).unwrap();
        let mut ruled = 0;
        self.windows = (0, 0);
        while client.try_wait().unwrap().is_none() {
            let all =
                space.run(|| Diag::open().unwrap().sockets(States::SENDING, Some(host.storage()))).unwrap();
            for socket in all.unwrap() {
                let flow = socket.storage.as_deref().and_then(host::Flow::parse);
                let (Some(flow), Some(info)) = (flow, socket.info) else { continue };
                if flow.law == Law::Xcp && flow.packet_bytes > 0 {
                    ruled += 1;
                    let (window, packets) = self.windows;
                    self.windows = (window.max(flow.window_bytes), packets.max(info.snd_cwnd));
                }
            }
            sleep(Duration::from_millis(20));
        }
        let (window, packets) = self.windows;
        if !self.sender.owns_ecn() {
            assert!(
                window <= WINDOW_MAX && u64::from(packets) <= WINDOW_MAX.div_ceil(1500),
                "{:?}",
                self.windows
            );
        }
        let output = client.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (sent, received) = said.trim().split_once(" | ").unwrap_or_else(|| panic!("{said}"));
        assert_eq!(sent, received, "the bytes that came");
        (host.counters().unwrap(), ruled)
    }
}

macro_rules! hosts {
    ($name:expr) => {
        hosts!($name, host::sender_config(LossPolicy::Tcp))
    };
    ($name:expr, $sender:expr) => {{
        let pair = match Pair::new($sender) {
            Ok(pair) => pair,
            Err(reason) => return eprintln!("SKIP {}: {reason}", $name),
        };
        let host = match pair.enable() {
            Ok(host) => host,
            Err(error @ Error::Missing { .. }) => return eprintln!("SKIP {}: {error}", $name),
            Err(error) => panic!("{error}"),
        };
        (pair, host)
    }};
}

/// What kind, length and identifier are where, behind 12 bytes of timestamps, on ACKs and on data.
const ACK: &str = "@th,256,32 0xfd085843";
const DATA: &str = "@th,256,32 0xfd145843";

/// Each to one in so many packets.
fn some(which: &str, one_in: u32, sets: &[String], comment: &str) -> Vec<String> {
    let rule = |set| format!("{which} numgen random mod {one_in} 0 counter {set} comment \"{comment}\"");
    sets.iter().map(rule).collect()
}

#[test]
fn extreme_echoes_do_not_open_the_window() {
    let (mut pair, host) = hosts!("extreme_echoes_do_not_open_the_window");
    // 15 routers, and sums that jump by half their range, forth and back; no router; all ones.
    let words = [0xf7ff_ffffu32, 0xf000_0000, 0xffff_ffff, 0xf800_0000, 0xf3ff_ffff, 0x1555_5555, 0x0];
    let sets: Vec<_> = words.iter().map(|word| format!("@th,288,32 set {word:#x}")).collect();
    pair.overwrite("s", &some(ACK, 3, &sets, "echo"));
    let (counters, ruled) = pair.transfer(&host);
    assert!(pair.met("s", "echo") > 100, "{}", pair.met("s", "echo"));
    assert!(counters.connections == 2 && ruled > 0, "{counters:?}, {ruled}");
    assert!(counters.malformed == 0 && counters.lies > 0, "{counters:?}");
}

#[test]
fn extreme_demands_are_summed_and_break_nothing() {
    let (mut pair, host) = hosts!("extreme_demands_are_summed_and_break_nothing");
    let words = [0u32, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    let fields = [288, 320, 352, 384]; // X, RTT with routers, Delta_Throughput, echo
    let each = |field| words.iter().map(move |word| format!("@th,{field},32 set {word:#x}"));
    let sets: Vec<_> = fields.into_iter().flat_map(each).collect();
    pair.overwrite("c", &some(DATA, 5, &sets, "data"));
    let (counters, ruled) = pair.transfer(&host);
    assert!(pair.met("c", "data") > 300);
    assert!(counters.connections == 2 && ruled > 0, "{counters:?}, {ruled}");
    assert_eq!(counters.malformed, 0);
}

#[test]
fn options_of_wrong_lengths_are_counted() {
    let (mut pair, host) = hosts!("options_of_wrong_lengths_are_counted");
    let set = |length: u32| format!("@th,264,8 set {length}");
    // Lengths that leave the list of options readable, which the kernel finds for us; and others.
    let readable = some(DATA, 40, &[5, 7, 12, 19].map(set), "wrong");
    let broken = some(DATA, 40, &[0, 1, 2, 3, 21, 40, 255].map(set), "broken");
    pair.overwrite("c", &[readable, broken].concat());
    let (counters, _) = pair.transfer(&host);
    let wrong = pair.met("c", "wrong");
    assert!(wrong > 100 && counters.connections == 2);
    // Each packet is counted once; few may be among them that no socket saw.
    assert!(counters.malformed > wrong / 2 && counters.malformed <= wrong, "{counters:?}, {wrong}");
}

/// Hosts read bytes: an odd offset, which a router refuses for the checksum's sake, is none to them.
#[test]
fn options_at_odd_offsets_are_read() {
    let (mut pair, host) = hosts!("options_at_odd_offsets_are_read");
    // Padding, then the option, then padding, over timestamps and option.
    let data = "@th,160,128 set 0x01fd145843000000 01ffffffff7fffff @th,288,128 set 0xfff1ffffff0101010101010101010101";
    let data = data.replace("000000 01", "00000001");
    let acks = "@th,160,128 set 0x01fd085843f7ffffff01010101010101 @th,288,32 set 0x01010101";
    // Each third, not by chance: where no router answers for three round trips, XCP rests, and few options come.
    let third = |which, set| vec![format!("{which} numgen inc mod 3 0 counter {set} comment \"odd\"")];
    pair.overwrite("c", &third(DATA, data.as_str()));
    pair.overwrite("s", &third(ACK, acks));
    let (counters, _) = pair.transfer(&host);
    let met = ["c", "s"].map(|end| pair.met(end, "odd"));
    assert!(met[0] > 300 && met[1] > 20, "{met:?}, {counters:?}");
    assert_eq!((counters.connections, counters.malformed), (2, 0));
}

/// Words of echoes that say the most and the least in each part, whatever law they are of.
const WORDS: [u32; 10] = [
    0,
    1,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x0000_007f,
    0x0000_7f00,
    0x007f_0000,
    0x7ff0_0000,
    0xf0f0_f0f0,
];

/// A peer that overwrites echoes, codes and lengths, one after the other.
fn meets_a_hostile_peer(name: &str, sender: Sender, identifier: u16) {
    let (mut pair, host) = hosts!(name, sender);
    // Both ends have an option on every packet, behind 12 bytes of timestamps.
    let option = format!("@th,256,32 {:#x}", 0xfd08_0000 | u32::from(identifier));
    let at = |bits: u32| format!("@th,{bits},32");
    let mut sets: Vec<_> = WORDS.iter().map(|word| format!("{} set {word:#x}", at(288))).collect();
    if !pair.sender.owns_ecn() {
        // XCP-r's largest window in each of sixteen epochs.
        sets.extend((0..16).map(|epoch| format!("@th,296,24 set {:#x}", epoch << 20 | 0xf_ffff)));
    }
    let mut before = Counters::default();
    let mut transfer = |pair: &mut Pair, what: &str| {
        let malformed = before.malformed;
        // A peer that spoils the first round trips sends the connection to CUBIC, which is counted, before anybody looks: once
        // in ten transfers of TPCP beside other work. Then there is nothing left to spoil, and another connection is tried.
        for _ in 0..5 {
            let (counters, ruled) = pair.transfer(&host);
            eprintln!("{name}, {what}: {:?}, {ruled}, {counters:?}", pair.windows);
            assert!(counters.connections == before.connections + 2, "{what}: {counters:?}");
            let has_fallen = counters.fallbacks_stripped > before.fallbacks_stripped;
            before = counters;
            if ruled > 0 {
                return counters.malformed - malformed;
            }
            assert!(has_fallen, "{what}: {counters:?}");
        }
        panic!("{what}: the law never ruled");
    };

    pair.overwrite("s", &some(&option, 6, &sets, "echo"));
    assert_eq!(transfer(&mut pair, "echoes"), 0);
    assert!(pair.met("s", "echo") > 50, "{}", pair.met("s", "echo"));
    pair.overwrite("s", &[]);

    if pair.sender.owns_ecn() {
        // Where the programs of hosts have written and not yet read them.
        let sets = [0, 1, 2, 3].map(|code| format!("ip ecn set {code}"));
        pair.overwrite("m", &some("tcp dport 5001 meta length > 200", 5, &sets, "code"));
        assert_eq!(transfer(&mut pair, "codes"), 0);
        assert!(pair.met("m", "code") > 300, "{}", pair.met("m", "code"));
        pair.overwrite("m", &[]);
    } else {
        let words = [0u32, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
        let each = |field| words.iter().map(move |word| format!("{} set {word:#x}", at(field)));
        let sets: Vec<_> = [288, 320, 352, 384].into_iter().flat_map(each).collect();
        pair.overwrite("c", &some(DATA, 5, &sets, "data"));
        assert_eq!(transfer(&mut pair, "data"), 0);
        assert!(pair.met("c", "data") > 300);
    }

    let set = |length: u32| format!("@th,264,8 set {length}");
    let readable = some(&option, 40, &[5, 6, 7].map(set), "wrong");
    let broken = some(&option, 40, &[0, 1, 2, 3, 9, 40, 255].map(set), "broken");
    pair.overwrite("s", &[readable, broken].concat());
    let malformed = transfer(&mut pair, "lengths");
    let wrong = pair.met("s", "wrong");
    assert!(malformed > wrong / 2 && malformed <= wrong + pair.met("s", "broken"), "{malformed} of {wrong}");
}

#[test]
fn a_host_of_xcp_r_meets_a_hostile_peer() {
    meets_a_hostile_peer("a_host_of_xcp_r_meets_a_hostile_peer", host::xcp_r_config(LossPolicy::Tcp), 0x5852);
}

#[test]
fn a_host_of_vcp_meets_a_hostile_peer() {
    meets_a_hostile_peer("a_host_of_vcp_meets_a_hostile_peer", host::vcp_config(Loss::Tcp), 0x5643);
}

#[test]
fn a_host_of_dpcp_meets_a_hostile_peer() {
    meets_a_hostile_peer("a_host_of_dpcp_meets_a_hostile_peer", host::dpcp_config(Loss::Tcp), 0x4450);
}

#[test]
fn a_host_of_tpcp_meets_a_hostile_peer() {
    meets_a_hostile_peer("a_host_of_tpcp_meets_a_hostile_peer", host::tpcp_config(Loss::Tcp), 0x5450);
}

#[test]
fn a_host_of_dctcp_meets_a_hostile_peer() {
    meets_a_hostile_peer("a_host_of_dctcp_meets_a_hostile_peer", host::dctcp_config(), 0x4443);
}

#[test]
fn a_host_of_prague_meets_a_hostile_peer() {
    meets_a_hostile_peer("a_host_of_prague_meets_a_hostile_peer", host::prague_config(), 0x5052);
}

#[test]
fn a_host_of_abc_meets_a_hostile_peer() {
    meets_a_hostile_peer("a_host_of_abc_meets_a_hostile_peer", host::abc_config(), 0x4142);
}
