//! A path with real hosts: a client and a server in namespaces, a router and 10 ms of wire between
//! them, processes in a control group of their own, and a congestion control that nobody else names.

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;
use std::{fs, io, thread};

use congestlab_core::law::{Protocol, mpcp};
use congestlab_core::units::BitRate;
use congestlab_linux::host::{self, Config, Encoding, Host, Law, LossPolicy, Reason, Socket};
use congestlab_linux::link::{Clock, Direction, Event, Link, Report, UNLIMITED};
use congestlab_linux::router::{self, AnyLaw, Queue};
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::offload::Offloads;
use congestlab_linux::sys::{cgroup, command};
use congestlab_net::port::PortConfig;
use congestlab_net::queue::Limit;

/// Four namespaces in a row: client, router, wire, server; their names end in c, r, w, s.
pub(crate) struct Path {
    pub(crate) id: String,
    pub(crate) cgroup: PathBuf,
    encoding: Encoding,
    /// With [`Encoding::Ecn`]: packets of a chain; 1 is VCP, 2 DPCP, 3 TPCP.
    pub(crate) chain: u32,
    /// With [`Encoding::Option`]: hosts run XCP-r instead of XCP.
    pub(crate) is_xcp_r: bool,
    /// With [`Encoding::Ecn`]: another law of the senders.
    pub(crate) sender: Option<host::Sender>,
    children: Vec<Child>,
    served: u16,
    wire: Option<JoinHandle<Report>>,
    /// Of the wire.
    pub(crate) clock: Arc<Clock>,
    pub(crate) events: mpsc::Receiver<Event>,
    stop: Arc<AtomicBool>,
}

impl Drop for Path {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        // An end that never hears of the other's keeps its congestion control for minutes.
        sleep(Duration::from_millis(200));
        self.end();
        for end in ["c", "r", "w", "s"] {
            let _ = command::query(&format!("ip netns delete {}{end}", self.id));
        }
        for _ in 0..50 {
            match fs::remove_dir(&self.cgroup) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    sleep(Duration::from_millis(20));
                }
                _ => break,
            }
        }
    }
}

/// Of a wire one way, ps.
pub(crate) const DELAY: u64 = 5_000_000_000;

pub(crate) fn wire(port: PortConfig) -> Direction {
    Direction::new(port, 1, "wire")
}

pub(crate) fn ip(line: &str) {
    command::query(line).unwrap_or_else(|error| panic!("{line}: {error}"));
}

/// True once a process has a TCP socket that listens.
fn listens(process: u32) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/net/{file}")).unwrap_or_default();
    let sockets = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let own: Vec<_> = sockets.filter_map(|socket| fs::read_link(socket.path()).ok()).collect();
    // State and inode: proc_pid_net(5).
    [read("tcp"), read("tcp6")].iter().flat_map(|text| text.lines().skip(1)).any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.get(3) == Some(&"0A")
            && words.get(9).is_some_and(|inode| own.contains(&format!("socket:[{inode}]").into()))
    })
}

impl Path {
    /// Or what is missing for that.
    pub(crate) fn new(encoding: Encoding) -> Result<Self, String> {
        Self::over(encoding, wire(PortConfig::new(UNLIMITED, DELAY, Limit::None)))
    }

    /// With this wire towards the server.
    pub(crate) fn over(encoding: Encoding, forward: Direction) -> Result<Self, String> {
        Self::with_queues(encoding, forward, 1)
    }

    /// With this wire, and so many hardware queues of the router towards it.
    pub(crate) fn with_queues(encoding: Encoding, forward: Direction, queues: u32) -> Result<Self, String> {
        for tool in ["ip", "tc", "iperf3", "tcpdump", "nft"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
            if !found.is_ok_and(|found| found.status.success()) {
                return Err(format!("{tool} is not installed"));
            }
        }
        let random = RandomState::new().hash_one(std::process::id()) as u32;
        let id = format!("cl-h{random:08x}");
        let cgroup = cgroup::root().map_err(|error| error.to_string())?.join(&id);
        fs::create_dir(&cgroup).map_err(|error| format!("no control group: {error}"))?;
        let clock = Arc::new(Clock::start());
        let mut path = Self {
            id,
            cgroup,
            encoding,
            chain: 1,
            is_xcp_r: false,
            sender: None,
            children: vec![],
            served: 0,
            wire: None,
            clock,
            events: mpsc::channel().1,
            stop: Arc::default(),
        };
        let id = &path.id;
        for end in ["c", "r", "w", "s"] {
            let made = command::query(&format!("ip netns add {id}{end}"));
            made.map_err(|error| format!("no namespace: {error}"))?;
            ip(&format!("ip -n {id}{end} link set lo up"));
        }
        ip(&format!("ip -n {id}c link add eth0 type veth peer name c netns {id}r"));
        ip(&format!("ip -n {id}w link add w0 type veth peer name s numtxqueues {queues} netns {id}r"));
        ip(&format!("ip -n {id}w link add w1 type veth peer name eth0 netns {id}s"));
        for end in ["w0", "w1"] {
            ip(&format!("ip -n {id}w link set {end} up"));
        }
        for (end, net) in [("c", 1), ("s", 2)] {
            ip(&format!("ip -n {id}{end} addr add 10.0.{net}.2/24 dev eth0"));
            ip(&format!("ip -n {id}{end} addr add fd00:{net}::2/64 dev eth0 nodad"));
            ip(&format!("ip -n {id}r addr add 10.0.{net}.1/24 dev {end}"));
            ip(&format!("ip -n {id}r addr add fd00:{net}::1/64 dev {end} nodad"));
            for (space, device) in [(end, "eth0"), ("r", end)] {
                ip(&format!("ip -n {id}{space} link set {device} up"));
                let space = Namespace::open(&format!("{id}{space}")).unwrap();
                // Hosts that put a header between IP and TCP see to what they need themselves.
                if encoding != Encoding::Shim || space.name().ends_with('r') {
                    space.run(|| Offloads::off(device).unwrap().keep()).unwrap();
                }
            }
            ip(&format!("ip -n {id}{end} route add default via 10.0.{net}.1"));
            ip(&format!("ip -n {id}{end} route add default via fd00:{net}::1"));
        }
        ip(&format!("ip netns exec {id}r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"));
        let back = wire(PortConfig::new(UNLIMITED, DELAY, Limit::None));
        let space = Namespace::open(&format!("{id}w")).unwrap();
        let clock = path.clock.clone();
        let mut link =
            space.run(|| Link::new("w0", "w1", Some(forward), Some(back), clock).unwrap()).unwrap();
        path.events = link.listen();
        let stop = path.stop.clone();
        path.wire = Some(thread::spawn(move || link.run(&stop).unwrap()));
        Ok(path)
    }

    /// Cuts the wire, and says what it did; the first time.
    pub(crate) fn end(&mut self) -> Option<Report> {
        self.stop.store(true, Ordering::Relaxed);
        self.wire.take()?.join().ok()
    }

    pub(crate) fn config(&self) -> Config {
        if self.encoding == Encoding::Ecn || self.is_xcp_r {
            let sender = match (self.encoding, self.chain) {
                _ if self.sender.is_some() => self.sender.clone().unwrap(),
                (Encoding::Ecn, 1) => host::vcp_config(mpcp::Loss::Tcp),
                (Encoding::Ecn, 2) => host::dpcp_config(mpcp::Loss::Tcp),
                (Encoding::Ecn, _) => host::tpcp_config(mpcp::Loss::Tcp),
                _ => host::xcp_r_config(LossPolicy::Tcp),
            };
            let config = Config::new(format!("{}_{}", sender.name(), &self.id[5..]), &self.cgroup);
            let initial_window = sender.initial_window();
            return Config { encoding: self.encoding, sender, initial_window, ..config };
        }
        let name = format!("xcp_{}", &self.id[4..]);
        Config { encoding: self.encoding, ..Config::new(name, &self.cgroup) }
    }

    /// Members of the control group speak XCP.
    pub(crate) fn command(&self, end: &str, line: &str, is_member: bool) -> Command {
        let enter = format!("echo $$ > {}/cgroup.procs && ", self.cgroup.display());
        let enter = if is_member { enter } else { String::new() };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{enter}exec ip netns exec {}{end} {line}", self.id)]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs to the end, which must be a good one.
    pub(crate) fn run(&self, end: &str, line: &str, is_member: bool) -> String {
        let output = self.command(end, line, is_member).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {text}{words}");
        text
    }

    /// Goes on in the background until the test is over.
    pub(crate) fn start(&mut self, end: &str, line: &str, is_member: bool) {
        let mut command = self.command(end, line, is_member);
        self.children.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        sleep(Duration::from_millis(400));
    }

    /// The same with a TCP server, which listens then.
    pub(crate) fn start_server(&mut self, end: &str, line: &str, is_member: bool) {
        let mut command = self.command(end, line, is_member);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let id = child.id();
        self.children.push(child);
        for _ in 0..1000 {
            if listens(id) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        panic!("{line} does not listen");
    }

    /// Starts an iperf3 server for one transfer and returns its port. One that serves several opens its listener anew after
    /// each, and a client that has connected before it does is reset.
    pub(crate) fn serve(&mut self, is_member: bool) -> u16 {
        self.served += 1;
        let port = 5200 + self.served;
        self.start_server("s", &format!("iperf3 -s -1 -p {port}"), is_member);
        port
    }

    pub(crate) fn namespace(&self, end: &str) -> Namespace {
        Namespace::open(&format!("{}{end}", self.id)).unwrap()
    }

    /// The router's egress towards the server speaks XCP, or VCP.
    pub(crate) fn attach(&self, rate: u64, shape: Option<Queue>) {
        let rate = BitRate(rate);
        let law = match self.encoding {
            Encoding::Ecn if self.chain > 1 => router::dpcp(rate),
            Encoding::Ecn => router::vcp(rate),
            Encoding::Quic => {
                let scone = AnyLaw::new(Protocol::of("scone").unwrap(), rate, None).unwrap();
                router::Law::Any(Box::new(scone))
            }
            Encoding::Option | Encoding::Shim | Encoding::Both => router::law(rate),
        };
        let config = router::Config { rate, law, encoding: self.encoding, shape };
        self.namespace("r").run(|| router::attach("s", &config)).unwrap().unwrap();
    }

    /// The client's connection that has most to send.
    pub(crate) fn busiest(&self, host: &Host) -> Option<Socket> {
        let sockets = self.namespace("c").run(|| host.sockets()).unwrap().unwrap();
        sockets.into_iter().max_by_key(|socket| (socket.cwnd_packets, socket.flow.window_bytes))
    }

    /// Asks until it is so; at most 10 s.
    pub(crate) fn until(&self, host: &Host, what: &str, is_so: impl Fn(&Socket) -> bool) -> Socket {
        for _ in 0..100 {
            if let Some(socket) = self.busiest(host).filter(|socket| is_so(socket)) {
                return socket;
            }
            sleep(Duration::from_millis(100));
        }
        panic!(
            "{what}: {:?}, {:?}, {:?}",
            self.busiest(host),
            host.counters(),
            self.namespace("r").run(|| router::status(None))
        );
    }

    /// Without a router of XCP's CUBIC rules a connection, whose socket then is returned; with one XCP does.
    pub(crate) fn falls_back_and_returns(&mut self, host: &Host) -> Socket {
        ip(&format!("tc -n {}r qdisc add dev s root tbf rate 20mbit burst 5kb limit 200kb", self.id));
        self.start_server("s", "iperf3 -s", true);
        self.start("c", "iperf3 -c 10.0.2.2 -t 60", true);
        let fallen = self
            .until(host, "fallback", |socket| socket.flow.law == Law::Fallback && socket.cwnd_packets > 10);
        assert_eq!((fallen.flow.reason, &*fallen.congestion_control), (Some(Reason::NoRouter), "cubic"));
        sleep(Duration::from_secs(1));

        self.attach(20_000_000, None);
        let back =
            self.until(host, "return", |socket| socket.flow.law == Law::Xcp && socket.cwnd_packets > 10);
        assert_eq!(back.congestion_control, self.config().name);
        assert!(host.counters().unwrap().returns >= 1);
        fallen
    }
}

macro_rules! path {
    ($name:literal, $encoding:expr) => {
        match Path::new($encoding) {
            Ok(path) => path,
            Err(reason) => return eprintln!("SKIP {}: {reason}", $name),
        }
    };
}

macro_rules! enable {
    ($name:literal, $config:expr) => {
        match host::enable($config, false) {
            Ok(host) => host.unwrap(),
            Err(error @ Error::Missing { .. }) => return eprintln!("SKIP {}: {error}", $name),
            Err(error) => panic!("{error}"),
        }
    };
}

/// What tcpdump writes at the server while a command runs at the client, to be removed by the caller.
pub(crate) fn capture(path: &mut Path, filter: &str, transfer: &str, is_member: bool) -> PathBuf {
    let file = path.cgroup.file_name().unwrap().to_owned();
    let file = std::env::temp_dir().join(file).with_extension("pcap");
    path.start(
        "s",
        &format!("tcpdump --immediate-mode -i eth0 -s 128 -B 8192 -U -w {} {filter}", file.display()),
        false,
    );
    path.run("c", transfer, is_member);
    // A busy machine lets tcpdump write late.
    let size = || fs::metadata(&file).map_or(0, |data| data.len());
    for _ in 0..20 {
        let before = size();
        sleep(Duration::from_millis(500));
        if size() == before {
            break;
        }
    }
    file
}
