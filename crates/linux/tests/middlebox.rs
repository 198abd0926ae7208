//! XCP's option through what stands between hosts: a side that does not know it, machines that cut
//! options away, drop what they do not know, follow connections or translate addresses. Whatever they
//! do, a file that curl fetches arrives as it was sent. Needs root.
//!
//! ```text
//! server --- middle (nft, then XCP at its egress) --- wire, 5 ms --- client
//! ```

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;
use std::{fs, thread};

use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::host::{self, Config, Counters, Host};
use congestlab_linux::link::{Clock, Direction, Link, UNLIMITED};
use congestlab_linux::router::{self, Queue};
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::offload::Offloads;
use congestlab_linux::sys::{cgroup, command};
use congestlab_net::port::PortConfig;
use congestlab_net::queue::Limit;

const RATE: BitRate = BitRate(20_000_000);
/// Bytes of the file: more than a second's worth.
const SIZE: usize = 3_000_000;

/// The namespaces end in s, m, w, c.
struct Path {
    id: String,
    cgroup: PathBuf,
    folder: tempfile::TempDir,
    server: Option<Child>,
    wire: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Drop for Path {
    fn drop(&mut self) {
        self.end_server();
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.wire.take().map(JoinHandle::join);
        for end in ["s", "m", "w", "c"] {
            let _ = Namespace::remove(&format!("{}{end}", self.id));
        }
        let _ = cgroup::kill(&self.cgroup).and_then(|()| cgroup::remove(&self.cgroup));
    }
}

fn run(line: &str) {
    command::query(line).unwrap_or_else(|error| panic!("{line}: {error}"));
}

impl Path {
    /// Or what is missing for that.
    fn new() -> Result<Self, String> {
        for tool in ["ip", "tc", "nft", "curl", "python3"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
            if !found.is_ok_and(|found| found.status.success()) {
                return Err(format!("{tool} is not installed"));
            }
        }
        let random = RandomState::new().hash_one(std::process::id());
        let id = format!("cl-m{:08x}", random as u32);
        let cgroup = cgroup::root().map_err(|error| error.to_string())?.join(&id);
        fs::create_dir(&cgroup).map_err(|error| format!("no control group: {error}"))?;
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // No part like another.
        let hasher = RandomState::new();
        let bytes: Vec<u8> = (0..SIZE / 8).flat_map(|word| hasher.hash_one(word).to_ne_bytes()).collect();
        fs::write(folder.path().join("file"), bytes).unwrap();
        let mut path = Self { id, cgroup, folder, server: None, wire: None, stop: Arc::default() };
        let id = &path.id;
        for end in ["s", "m", "w", "c"] {
            command::query(&format!("ip netns add {id}{end}")).map_err(|error| error.to_string())?;
        }
        run(&format!("ip -n {id}s link add eth0 type veth peer name s netns {id}m"));
        run(&format!("ip -n {id}m link add c type veth peer name w0 netns {id}w"));
        run(&format!("ip -n {id}w link add w1 type veth peer name eth0 netns {id}c"));
        let ends = [
            ("s", "eth0", "10.0.2.2"),
            ("m", "s", "10.0.2.1"),
            ("m", "c", "10.0.1.1"),
            ("c", "eth0", "10.0.1.2"),
        ];
        for (end, device, address) in ends {
            run(&format!("ip -n {id}{end} addr add {address}/24 dev {device}"));
        }
        for (end, device) in
            [("w", "w0"), ("w", "w1")].into_iter().chain(ends.map(|(end, device, _)| (end, device)))
        {
            run(&format!("ip -n {id}{end} link set {device} up"));
            // Stays: the interface goes with its namespace.
            path.namespace(end).run(|| Offloads::off(device).map(Offloads::keep)).unwrap().unwrap();
        }
        run(&format!("ip -n {id}s route add default via 10.0.2.1"));
        run(&format!("ip -n {id}c route add default via 10.0.1.1"));
        path.namespace("m").run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap().unwrap();
        let way = || Some(Direction::new(PortConfig::new(UNLIMITED, 5_000_000_000, Limit::None), 1, "wire"));
        let clock = Arc::new(Clock::start());
        let mut link =
            path.namespace("w").run(|| Link::new("w0", "w1", way(), way(), clock).unwrap()).unwrap();
        let stop = path.stop.clone();
        path.wire = Some(thread::spawn(move || drop(link.run(&stop))));
        let config = router::Config {
            rate: RATE,
            law: router::law(RATE),
            encoding: router::Encoding::Option,
            shape: Some(Queue::Bytes(200_000)),
        };
        for device in ["c", "s"] {
            let attached = path.namespace("m").run(|| router::attach(device, &config)).unwrap();
            attached.map_err(|error| error.to_string())?;
        }
        Ok(path)
    }

    fn namespace(&self, end: &str) -> Namespace {
        Namespace::open(&format!("{}{end}", self.id)).unwrap()
    }

    /// What members of the control group run.
    fn config(&self) -> Config {
        Config::new(format!("xcp_{}", &self.id[4..]), &self.cgroup)
    }

    /// Members of the control group speak XCP.
    fn command(&self, end: &str, program: &[&str], is_member: bool) -> Command {
        // Outside of the namespace, whose view of /sys has no control groups.
        let group = self.cgroup.join("cgroup.procs");
        let enter = if is_member { format!("echo $$ > {}; ", group.display()) } else { String::new() };
        let script = format!("{enter}exec ip netns exec {}{end} \"$@\"", self.id);
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).args(program);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// What the middle does to packets that it forwards.
    fn filter(&self, chains: &str) {
        let file = self.folder.path().join("rules");
        fs::write(&file, format!("flush ruleset\ntable inet t {{\n{chains}\n}}\n")).unwrap();
        run(&format!("ip netns exec {}m nft -f {}", self.id, file.display()));
    }

    fn end_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Starts a server, fetches the file, and fails if it is not what was sent. The server sends.
    fn fetch(&mut self, server: bool, client: bool) {
        self.end_server();
        let serve = ["python3", "-m", "http.server", "--bind", "10.0.2.2", "80"];
        self.server = Some(self.command("s", &serve, server).stderr(Stdio::null()).spawn().unwrap());
        let copy = self.folder.path().join("copy");
        let _ = fs::remove_file(&copy);
        let fetch = ["curl", "-sS", "--max-time", "60", "-o", "copy", "http://10.0.2.2/file"];
        for attempt in 0.. {
            let output = self.command("c", &fetch, client).stderr(Stdio::piped()).output().unwrap();
            // 7: nobody listens yet.
            if output.status.code() != Some(7) || attempt == 100 {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                break;
            }
            sleep(Duration::from_millis(100));
        }
        let same = fs::read(copy).unwrap() == fs::read(self.folder.path().join("file")).unwrap();
        assert!(same, "what arrived is not what was sent");
    }

    /// Packets to the client with a header that the router worked on, so far.
    fn worked_on(&self) -> u64 {
        let all = self.namespace("m").run(|| router::status(Some("c"))).unwrap().unwrap();
        all.iter().map(|status| status.sample.xcp_packets).sum()
    }
}

macro_rules! path {
    ($name:literal) => {{
        let path = match Path::new() {
            Ok(path) => path,
            Err(reason) => return eprintln!("SKIP {}: {reason}", $name),
        };
        match host::enable(&path.config(), false) {
            Ok(host) => (path, host.unwrap()),
            Err(error @ Error::Missing { .. }) => return eprintln!("SKIP {}: {error}", $name),
            Err(error) => panic!("{error}"),
        }
    }};
}

fn counters(host: &Host) -> Counters {
    host.counters().unwrap()
}

/// All segments of the file; the rest are ACKs.
const DATA: u64 = (SIZE / 1448) as u64;

#[test]
fn a_side_without_congestlab_gets_the_file_by_plain_tcp() {
    let (mut path, host) = path!("a_side_without_congestlab_gets_the_file_by_plain_tcp");
    path.fetch(true, false);
    assert_eq!(counters(&host), Counters::default(), "nobody asked the server");
    path.fetch(false, true);
    let after = counters(&host);
    assert_eq!((after.connections, after.fallbacks_no_option), (0, 1), "{after:?}");
    assert_eq!(path.worked_on(), 0);
}

#[test]
fn options_cut_from_either_packet_of_the_handshake_leave_plain_tcp() {
    let (mut path, host) = path!("options_cut_from_either_packet_of_the_handshake_leave_plain_tcp");
    // The SYN, then the SYN-ACK: the server was asked and its answer is lost.
    for (number, flags) in ["syn / syn,ack", "syn,ack / syn,ack"].into_iter().enumerate() {
        path.filter(&format!(
            "chain f {{ type filter hook forward priority 0; tcp flags {flags} reset tcp option 253; }}"
        ));
        path.fetch(true, true);
        let after = counters(&host);
        assert_eq!(
            (after.connections, after.fallbacks_no_option),
            (0, number as u64 + 1),
            "{flags}: {after:?}"
        );
        assert_eq!(path.worked_on(), 0, "{flags}");
    }
}

#[test]
fn options_cut_behind_the_handshake_or_one_way_break_no_transfer() {
    let (mut path, host) = path!("options_cut_behind_the_handshake_or_one_way_break_no_transfer");
    // Ends that believe that both speak: the client, and the server, which sends, if it sees an option.
    for (what, rule, connections) in [
        ("behind the handshake", "tcp flags & (syn | rst) == 0 reset tcp option 253;", 1),
        ("from ACKs", "iifname \"c\" tcp flags & syn == 0 reset tcp option 253;", 1),
        ("from data", "iifname \"s\" tcp flags & syn == 0 reset tcp option 253;", 2),
    ] {
        let before = counters(&host);
        path.filter(&format!("chain f {{ type filter hook forward priority 0; {rule} }}"));
        path.fetch(true, true);
        let after = counters(&host);
        assert_eq!(after.connections - before.connections, connections, "{what}: {after:?}");
        let left = |of: &Counters| of.fallbacks_no_router + of.fallbacks_stripped;
        // A client is through with its request before it could notice.
        assert!(connections == 1 || left(&after) > left(&before), "{what}: {after:?}");
        assert_eq!(path.worked_on(), 0, "{what}");
    }
}

#[test]
fn a_firewall_that_drops_syns_with_the_option_gets_one_without() {
    let (mut path, host) = path!("a_firewall_that_drops_syns_with_the_option_gets_one_without");
    path.filter(
        "chain f { type filter hook forward priority 0; tcp flags syn / syn,ack tcp option 253 exists drop; }",
    );
    path.fetch(true, true);
    let after = counters(&host);
    assert_eq!((after.connections, after.fallbacks_no_option), (0, 1), "{after:?}");
}

#[test]
fn xcp_works_through_connection_tracking_and_address_translation() {
    let (mut path, host) = path!("xcp_works_through_connection_tracking_and_address_translation");
    let track = "chain f { type filter hook forward priority 0; policy drop;
        ct state invalid counter drop; ct state established accept; iifname \"c\" ct state new accept; }";
    let translate = "chain n { type nat hook postrouting priority 100; oifname \"s\" masquerade; }";
    for (number, chains) in [track.to_owned(), format!("{track}\n{translate}")].into_iter().enumerate() {
        let before = path.worked_on();
        path.filter(&chains);
        path.fetch(true, true);
        let after = counters(&host);
        assert_eq!(after.connections, 2 * (number as u64 + 1), "both ends: {after:?}");
        let Counters { fallbacks_no_option, fallbacks_no_router, fallbacks_stripped, .. } = after;
        assert_eq!((fallbacks_no_option, fallbacks_no_router, fallbacks_stripped), (0, 0, 0), "{after:?}");
        assert!(path.worked_on() - before >= DATA, "{} of {DATA}", path.worked_on() - before);
    }
    let rules = command::query(&format!("ip netns exec {}m nft list chain inet t f", path.id)).unwrap();
    assert!(rules.contains("counter packets 0 "), "{rules}");
}
