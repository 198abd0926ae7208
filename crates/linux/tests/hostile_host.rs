//! Real connections whose congestion headers are overwritten on the way: wrong lengths, odd offsets,
//! extreme values. The bytes arrive, the window stays what the law allows, and it is counted.

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use congestlab_linux::Error;
use congestlab_linux::host::{self, Config, Counters, Host, Law};
use congestlab_linux::sys::diag::{Diag, States};
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::{cgroup, command};

const BYTES: usize = 4 << 20;
/// The law's clamp: no larger than what the peer offers, here 128 KiB (SO_RCVBUF, twice), in packets of
/// 1500 bytes with 1408 or more of payload.
const WINDOW_MAX: u64 = (128 << 10) * 1500 / 1408 + 1500;
/// Receives, then says what: length and sum.
const SERVER: &str = "import socket,zlib
s=socket.create_server(('10.0.1.2',5001));s.setsockopt(1,8,65536);s.settimeout(60);c=s.accept()[0];c.settimeout(60);n=z=0
while d:=c.recv(65536):n+=len(d);z=zlib.crc32(d,z)
c.sendall(b'%d %d'%(n,z));c.close()";
/// Sends what no pattern is in; prints what it was, and what came.
const CLIENT: &str = "import socket,zlib,random,sys
d=random.Random(7).randbytes(int(sys.argv[1]));c=socket.create_connection(('10.0.1.2',5001),30);c.settimeout(60)
c.sendall(d);c.shutdown(1);print(len(d),zlib.crc32(d),'|',c.recv(99).decode())";

/// Two namespaces with a link of 40 Mbit/s between them: client and server, whose names end in c, s.
struct Pair {
    id: String,
    cgroup: PathBuf,
    server: Option<Child>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        for end in ["c", "s"] {
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
    fn new() -> Result<Self, String> {
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
        let pair = Self { id, cgroup, server: None };
        let id = &pair.id;
        for end in ["c", "s"] {
            let made = command::query(&format!("ip netns add {id}{end}"));
            made.map_err(|error| format!("no namespace: {error}"))?;
        }
        ip(&format!("ip -n {id}c link add eth0 type veth peer name eth0 netns {id}s"));
        for (end, address) in [("c", "10.0.1.1/24"), ("s", "10.0.1.2/24")] {
            ip(&format!("ip -n {id}{end} addr add {address} dev eth0"));
            // Checksums are left to the interface, which a veth never computes: a packet may be
            // overwritten. Segments are not, so that each has the header that was written for it.
            ip(&format!("ip -n {id}{end} link set eth0 gso_max_segs 1 up"));
        }
        let set = command::query(&format!("ip netns exec {id}c nft add table ip probe"));
        set.map_err(|error| format!("no nftables: {error}"))?;
        ip(&format!("tc -n {id}c qdisc add dev eth0 root tbf rate 40mbit burst 5kb limit 3mb"));
        Ok(pair)
    }

    fn config(&self) -> Config {
        Config::new(format!("xcp_{}", &self.id[4..]), &self.cgroup)
    }

    fn python(&self, end: &str, script: &str) -> Command {
        let enter = format!("echo $$ > {}/cgroup.procs && ", self.cgroup.display());
        let mut command = Command::new("sh");
        let line = format!("{enter}exec ip netns exec {}{end} python3 -c \"$0\" {BYTES}", self.id);
        command.args(["-c", &line, script]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Overwrites what an end sends.
    fn overwrite(&self, end: &str, rules: &[String]) {
        let chain = "chain f { type filter hook output priority 0;";
        let text = format!("table ip t {{ {chain}\n{}\n}}\n}}\n", rules.join("\n"));
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
        while client.try_wait().unwrap().is_none() {
            let all =
                space.run(|| Diag::open().unwrap().sockets(States::SENDING, Some(host.storage()))).unwrap();
            for socket in all.unwrap() {
                let flow = socket.storage.as_deref().and_then(host::Flow::parse);
                let (Some(flow), Some(info)) = (flow, socket.info) else { continue };
                if flow.law == Law::Xcp && flow.packet_bytes > 0 {
                    ruled += 1;
                    assert!(flow.window_bytes <= WINDOW_MAX, "{flow:?}");
                    assert!(
                        u64::from(info.snd_cwnd) <= WINDOW_MAX.div_ceil(1500),
                        "{flow:?}, {}",
                        info.snd_cwnd
                    );
                }
            }
            sleep(Duration::from_millis(20));
        }
        let output = client.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (sent, received) = said.trim().split_once(" | ").unwrap_or_else(|| panic!("{said}"));
        assert_eq!(sent, received, "the bytes that came");
        (host.counters().unwrap(), ruled)
    }
}

macro_rules! hosts {
    ($name:literal) => {{
        let pair = match Pair::new() {
            Ok(pair) => pair,
            Err(reason) => return eprintln!("SKIP {}: {reason}", $name),
        };
        let host = match host::enable(&pair.config(), false) {
            Ok(host) => host.unwrap(),
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
    assert_eq!(counters.malformed, 0);
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
