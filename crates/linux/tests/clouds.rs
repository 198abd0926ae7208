//! XCP-i with real TCP between namespaces: clouds that are found, routers before them that are asked, virtual routers that hold
//! what was found, and what others do to all that.
//!
//! Skips with the reason where the privilege, a tool or the kernel's part is missing.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;
use std::{fs, io};

use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::edge::message::{Kind, Message, SIZE};
use congestlab_linux::edge::{Agent, Event, PORT, Stats};
use congestlab_linux::host::{self, Config, Encoding, Host};
use congestlab_linux::link::{Clock, Direction, Link, UNLIMITED};
use congestlab_linux::router::clouds::{Known, Peer};
use congestlab_linux::router::{self, Queue, Status};
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::offload::Offloads;
use congestlab_linux::sys::{cgroup, command};
use congestlab_net::port::PortConfig;
use congestlab_net::queue::Limit;

/// Delay of the wire one way, ps.
const DELAY: u64 = 5_000_000_000;
/// The address of the router before the cloud, as it stamps what goes there.
const UPSTREAM: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 1);

fn ip(line: &str) {
    command::query(line).unwrap_or_else(|error| panic!("{line}: {error}"));
}

/// Hosts a and b, routers with XCP-i u and k, and between them d, which knows nothing of it: XI's figure 2. A wire w of 5 ms lies
/// between d and k. Names of namespaces end in these letters.
struct Row {
    id: String,
    cgroup: PathBuf,
    children: Vec<Child>,
    wire: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    served: u16,
}

impl Drop for Row {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        // An end that never hears of the other's keeps its congestion control for minutes.
        sleep(Duration::from_millis(200));
        self.stop.store(true, Ordering::Relaxed);
        if let Some(wire) = self.wire.take() {
            let _ = wire.join();
        }
        for end in ENDS {
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

const ENDS: [&str; 6] = ["a", "u", "d", "w", "k", "b"];

impl Row {
    /// Or what is missing for that. Every port with XCP-i holds `edge`, d `cloud` bit/s.
    fn new(edge: u64, cloud: u64) -> Result<Self, String> {
        for tool in ["ip", "tc", "iperf3", "ss"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
            if !found.is_ok_and(|found| found.status.success()) {
                return Err(format!("{tool} is not installed"));
            }
        }
        let random = RandomState::new().hash_one(std::process::id()) as u32;
        let id = format!("cl-i{random:08x}");
        let cgroup = cgroup::root().map_err(|error| error.to_string())?.join(&id);
        fs::create_dir(&cgroup).map_err(|error| format!("no control group: {error}"))?;
        let mut row = Self { id, cgroup, children: vec![], wire: None, stop: Arc::default(), served: 0 };
        let id = &row.id;
        for end in ENDS {
            command::query(&format!("ip netns add {id}{end}"))
                .map_err(|error| format!("no namespace: {error}"))?;
            ip(&format!("ip -n {id}{end} link set lo up"));
            if ["u", "d", "k"].contains(&end) {
                ip(&format!("ip netns exec {id}{end} sysctl -qw net.ipv4.ip_forward=1"));
            }
        }
        // Each with its address, if it has one.
        for [(one, address), (other, another)] in [
            [("a", "10.77.1.1"), ("u", "10.77.1.254")],
            [("u", "10.77.2.1"), ("d", "10.77.2.254")],
            [("d", "10.77.3.254"), ("w", "")],
            [("k", "10.77.3.1"), ("w", "")],
            [("k", "10.77.4.254"), ("b", "10.77.4.1")],
        ] {
            ip(&format!(
                "ip -n {id}{one} link add to-{other} type veth peer name to-{one} netns {id}{other}"
            ));
            for (end, to, address) in [(one, other, address), (other, one, another)] {
                let device = &format!("to-{to}");
                if !address.is_empty() {
                    ip(&format!("ip -n {id}{end} addr add {address}/24 dev {device}"));
                }
                ip(&format!("ip -n {id}{end} link set {device} up"));
                let space = Namespace::open(&format!("{id}{end}")).unwrap();
                space.run(|| Offloads::off(device).unwrap().keep()).unwrap();
            }
        }
        for (end, to, via) in [
            ("a", "default", "10.77.1.254"),
            ("u", "default", "10.77.2.254"),
            ("d", "10.77.1.0/24", "10.77.2.1"),
            ("d", "10.77.4.0/24", "10.77.3.1"),
            ("k", "default", "10.77.3.254"),
            ("b", "default", "10.77.4.254"),
        ] {
            ip(&format!("ip -n {id}{end} route add {to} via {via}"));
        }
        ip(&format!("tc -n {id}d qdisc add dev to-w root tbf rate {cloud}bit burst 5kb limit 200kb"));
        let wire = || Direction::new(PortConfig::new(UNLIMITED, DELAY, Limit::None), 1, "wire");
        let clock = Arc::new(Clock::start());
        let mut link = row
            .namespace("w")
            .run(|| Link::new("to-d", "to-k", Some(wire()), Some(wire()), clock).unwrap())
            .unwrap();
        let stop = row.stop.clone();
        row.wire = Some(thread::spawn(move || _ = link.run(&stop).unwrap()));
        for (end, port) in [("u", "to-d"), ("u", "to-a"), ("k", "to-b"), ("k", "to-w")] {
            row.attach(end, port, edge);
        }
        Ok(row)
    }

    fn attach(&self, end: &str, port: &str, rate: u64) {
        let rate = BitRate(rate);
        let attached = self.namespace(end).run(|| {
            let law = router::xcp_i(rate, router::clouds::address_of(port)?);
            let shape = Some(Queue::Bytes(200_000));
            router::attach(port, &router::Config { rate, law, encoding: Encoding::Shim, shape })
        });
        attached.unwrap().unwrap();
    }

    fn namespace(&self, end: &str) -> Namespace {
        Namespace::open(&format!("{}{end}", self.id)).unwrap()
    }

    fn config(&self) -> Config {
        Config {
            encoding: Encoding::Shim,
            interoperable: true,
            ..Config::new(format!("xcp_{}", &self.id[4..]), &self.cgroup)
        }
    }

    /// Hosts that say in their headers what routers with XCP-i want to know; `None`: skipped.
    fn enable(&self, name: &str) -> Option<Host> {
        let mut host = match host::enable(&self.config(), false) {
            Ok(host) => host.unwrap(),
            Err(error @ Error::Missing { .. }) => {
                eprintln!("SKIP {name}: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        for (end, device) in [("a", "to-u"), ("b", "to-k")] {
            self.namespace(end).run(|| host.insert_at(device)).unwrap().unwrap();
        }
        Some(host)
    }

    /// Goes on in the background until the test is over.
    fn start(&mut self, end: &str, line: &str, is_member: bool) {
        let enter = format!("echo $$ > {}/cgroup.procs && ", self.cgroup.display());
        let enter = if is_member { enter } else { String::new() };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{enter}exec ip netns exec {}{end} {line}", self.id)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.children.push(command.spawn().unwrap());
    }

    /// A transfer from a to b for so many seconds.
    fn transfer(&mut self, seconds: u32) {
        self.served += 1;
        let port = 5200 + self.served;
        self.start("b", &format!("iperf3 -s -1 -p {port}"), true);
        sleep(Duration::from_millis(400));
        self.start("a", &format!("iperf3 -c 10.77.4.1 -p {port} -t {seconds}"), true);
    }

    fn status(&self, end: &str, port: &str) -> Status {
        self.namespace(end).run(|| router::status(Some(port))).unwrap().unwrap().remove(0)
    }

    fn peers(&self) -> Vec<Peer> {
        self.status("k", "to-b").peers.unwrap()
    }

    /// Asks until it is so; at most 20 s.
    fn until<T>(&self, what: &str, is_so: impl Fn(&Self) -> Option<T>) -> T {
        for _ in 0..200 {
            if let Some(found) = is_so(self) {
                return found;
            }
            sleep(Duration::from_millis(100));
        }
        panic!("{what}: {:?}, {:?}", self.status("u", "to-d"), self.status("k", "to-b"));
    }
}

/// An agent that runs until it is dropped.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Stats>>,
    events: mpsc::Receiver<Event>,
}

impl Running {
    fn start(row: &Row, end: &str) -> Self {
        let (stop, space) = (Arc::new(AtomicBool::new(false)), row.namespace(end));
        let (told, events) = mpsc::channel();
        let (listens, begun) = mpsc::channel();
        let is_over = stop.clone();
        let thread = thread::spawn(move || {
            space.enter().unwrap();
            let mut agent = Agent::new(PORT, &[]).unwrap();
            listens.send(agent.addresses()).unwrap();
            agent.run(&is_over, |event| _ = told.send(event)).unwrap();
            agent.stats()
        });
        let addresses = begun.recv().expect("it listens");
        assert!(addresses.iter().all(|address| !address.is_unspecified()), "{addresses:?}");
        Self { stop, thread: Some(thread), events }
    }

    fn end(mut self) -> Stats {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Packets dropped so far before the cloud's narrow link, and bytes that wait there.
fn narrow(row: &Row) -> (u64, u64) {
    let text = command::query(&format!("tc -n {}d -j -s qdisc show dev to-w", row.id)).unwrap();
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    let root = list.as_array().unwrap().iter().find(|qdisc| qdisc["kind"] == "tbf").unwrap();
    (root["drops"].as_u64().unwrap(), root["backlog"].as_u64().unwrap())
}

macro_rules! row {
    ($name:literal, $edge:expr, $cloud:expr) => {
        match Row::new($edge, $cloud) {
            Ok(row) => row,
            Err(reason) => return eprintln!("SKIP {}: {reason}", $name),
        }
    };
}

#[test]
fn a_cloud_is_found_and_the_router_before_it() {
    let mut row = row!("xcp-i/cloud", 50_000_000, 20_000_000);
    let Some(host) = row.enable("xcp-i/cloud") else { return };
    row.transfer(6);
    let enough = |row: &Row| row.peers().into_iter().find(|peer| peer.packets > 500);
    let peer = row.until("packets through the cloud", enough);
    // Nobody has asked for a bandwidth.
    assert_eq!((peer.address, peer.hops, peer.known), (UPSTREAM, 1, Known::Nothing), "{peer:?}");
    assert_eq!((peer.ruled_packets, peer.held_packets, peer.bandwidth_bps), (0, 0, None), "{peer:?}");
    let (before, behind) = (row.status("u", "to-d"), row.status("k", "to-b"));
    // From the sender, which is next to it, the router before the cloud has everything directly.
    let [first, second] = [&before, &behind].map(|status| status.sample.crossings.unwrap());
    assert!(first.direct_packets > 500 && first.cloud_packets == 0, "{first:?}");
    assert_eq!(first.anomaly_packets + second.anomaly_packets + second.direct_packets, 0, "{second:?}");
    assert!(second.cloud_packets >= peer.packets, "{second:?} {peer:?}");
    assert_eq!((before.sample.refused_packets, behind.sample.refused_packets), (0, 0));
    assert_eq!(before.law, "xcp-i");
    // The other way there is the same cloud; the server answers through it.
    let others = before.peers.unwrap();
    assert!(others.iter().all(|peer| peer.address == Ipv4Addr::new(10, 77, 3, 1)), "{others:?}");
    // All ports of a router have one table.
    assert_eq!(row.status("k", "to-w").peers.unwrap().len(), 1);
    let counters = host.counters().unwrap();
    assert!(counters.shims_sent > 500 && counters.shims_refused == 0, "{counters:?}");
}

/// The router behind the cloud has no cloud to hide from others: what it sends on is as if it came from there.
#[test]
fn a_cloud_is_hidden_from_routers_behind() {
    let mut row = row!("xcp-i/hidden", 50_000_000, 20_000_000);
    let Some(_host) = row.enable("xcp-i/hidden") else { return };
    // The same row with d knowing XCP-i: no cloud anywhere.
    let id = row.id.clone();
    ip(&format!("tc -n {id}d qdisc del dev to-w root"));
    row.attach("d", "to-w", 20_000_000);
    row.transfer(4);
    let enough = |row: &Row| {
        let crossings = row.status("k", "to-b").sample.crossings.unwrap();
        (crossings.direct_packets > 500).then_some(crossings)
    };
    let crossings = row.until("packets from the neighbour", enough);
    assert_eq!((crossings.cloud_packets, crossings.anomaly_packets), (0, 0), "{crossings:?}");
    assert!(row.peers().is_empty() && row.status("d", "to-w").peers.unwrap().is_empty());
}

/// Figure 2 of XI: what the cloud carries is found, and held with a short queue in it.
#[test]
fn a_virtual_router_holds_what_the_cloud_carries() {
    let mut row = row!("xcp-i/held", 50_000_000, 20_000_000);
    let Some(_host) = row.enable("xcp-i/held") else { return };
    let (before, behind) = (Running::start(&row, "u"), Running::start(&row, "k"));
    row.transfer(60);
    let known = |row: &Row| row.peers().into_iter().find(|peer| peer.known == Known::Bandwidth);
    let peer = row.until("a bandwidth", known);
    assert_eq!(peer.address, UPSTREAM);
    sleep(Duration::from_secs(5));
    // A machine that is busy with something else takes its part of a second or two: one of the tries must be what the law makes.
    let clock = Clock::start();
    let mut seen = vec![];
    let is_met = (0..6).any(|_| {
        let ((drops, _), bytes, began) = (narrow(&row), row.peers()[0].bytes, clock.now());
        let mut waits = vec![];
        while clock.now() < began + 3_000_000_000_000 {
            sleep(Duration::from_millis(50));
            waits.push(narrow(&row).1);
        }
        let rate = (row.peers()[0].bytes - bytes) as f64 * 8e12 / (clock.now() - began) as f64;
        waits.sort_unstable();
        let (wait, lost) = (waits[waits.len() / 2], narrow(&row).0 - drops);
        seen.push((rate, wait, lost));
        // The queue holds 200 kB, a BDP is 25 kB and more.
        rate > 0.85 * 20e6 && wait < 50_000 && lost == 0
    });
    let peer = row.peers()[0];
    assert!(is_met, "bit/s, bytes that wait, drops: {seen:?}, {peer:?}");
    let bandwidth = peer.bandwidth_bps.unwrap() as f64 / 20e6;
    assert!((0.85..1.1).contains(&bandwidth), "{peer:?}");
    println!("bit/s, bytes that wait, drops: {seen:?}, {:?}", behind.events.try_iter().last());
    let (first, second) = (before.end(), behind.end());
    assert!(first.probes > 100 && second.estimates > 2 && second.broken == 0, "{first:?} {second:?}");
}

/// The router before the cloud vanishes: three requests later packets pass as if there were no cloud; it comes back, as an agent
/// that remembers nothing.
#[test]
fn a_peer_that_vanishes_leaves_no_trace() {
    let mut row = row!("xcp-i/vanishes", 50_000_000, 20_000_000);
    let Some(_host) = row.enable("xcp-i/vanishes") else { return };
    let (before, behind) = (Running::start(&row, "u"), Running::start(&row, "k"));
    row.transfer(120);
    let is = |known| move |row: &Row| row.peers().into_iter().find(|peer| peer.known == known);
    row.until("a bandwidth", is(Known::Bandwidth));
    drop(before);
    row.until("nobody answers", is(Known::Nothing));
    assert!(behind.events.try_iter().any(|event| event == Event::Broken(UPSTREAM)));
    let again = Running::start(&row, "u");
    row.until("a bandwidth again", is(Known::Bandwidth));
    assert!(again.end().challenged > 0, "another agent gives other cookies");
    // Without its own agent a router has nobody who knows: no increase at first, and then no cloud.
    drop(behind);
    row.until("no increase", is(Known::Stale));
    row.until("no cloud", is(Known::Nothing));
}

/// Whoever asks in another's name gets a challenge as short as the request, and no probe goes anywhere.
#[test]
fn nobody_is_probed_for_who_does_not_answer() {
    let row = row!("xcp-i/forged", 50_000_000, 20_000_000);
    let agent = Running::start(&row, "u");
    let socket = row.namespace("k").run(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let asked = Message {
        kind: Kind::Request,
        count: 50,
        id: 1,
        gap: 0,
        nonce: 2,
        cookie: 3,
        stamp: 4,
        echo: 0,
        size: 1500,
    };
    let mut bytes = [0; 2000];
    let mut hear = |message: &Message| {
        socket.send_to(&message.emit(), (UPSTREAM, PORT)).unwrap();
        let mut heard = vec![];
        while let Ok(length) = socket.recv(&mut bytes) {
            heard.push((length, Message::parse(&bytes[..length]).unwrap()));
        }
        heard
    };
    let heard = hear(&asked);
    assert!(
        matches!(heard[..], [(SIZE, Message { kind: Kind::Challenge, id: 1, nonce: 2, .. })]),
        "{heard:?}"
    );
    let cookie = heard[0].1.cookie;
    let asked = Message { cookie, ..asked };
    for wrong in [
        Message { count: 101, ..asked },
        Message { gap: 100_000_000, ..asked },
        Message { size: 1501, ..asked },
        Message { size: 60, ..asked },
    ] {
        assert_eq!(hear(&wrong), vec![], "{wrong:?}");
    }
    for noise in [&b""[..], b"XCPI", &[0xff; 56], &[0; 1400]] {
        socket.send_to(noise, (UPSTREAM, PORT)).unwrap();
    }
    let heard = hear(&asked);
    let count = |kind| heard.iter().filter(|(_, message)| message.kind == kind).count();
    assert_eq!((count(Kind::Ack), count(Kind::Probe), count(Kind::Report)), (1, 50, 1), "{heard:?}");
    assert!(heard.iter().all(|(length, message)| message.kind != Kind::Probe || *length == 1472));
    // Short requests without end get a hundred answers a second.
    let short = Message { count: 0, ..asked };
    for _ in 0..1000 {
        socket.send_to(&short.emit(), (UPSTREAM, PORT)).unwrap();
    }
    let answers = hear(&short).len();
    assert!((1..=300).contains(&answers), "{answers} answers");
    let stats = agent.end();
    assert_eq!((stats.challenged, stats.foreign, stats.probes), (1, 4, 50), "{stats:?}");
    // Its socket may have had no room for some of them.
    assert!((5..=1005).contains(&stats.refused), "{stats:?}");
}
