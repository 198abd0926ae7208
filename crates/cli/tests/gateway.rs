//! `congestlab gateway` between real hosts: a client, the gateway and a server, each a network namespace. Needs root;
//! skips without.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use congestlab_linux::sys::command;
use congestlab_linux::sys::netns::Namespace;
use rustix::fs::{FlockOperation, flock};
use rustix::net::{SendFlags, sockopt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_congestlab");
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 2);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 2);
/// An address of the server's that no list of destinations here has.
const UNLISTED: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 3);
/// A port of the server's at which packets disappear.
const SILENT: u16 = 9;
const MIB: usize = 1 << 20;

/// Client - gateway - server: interfaces `lan` towards the client, `sat` towards the server.
struct Rig {
    client: Namespace,
    gateway: Namespace,
    server: Namespace,
}

impl Drop for Rig {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.gateway, &self.server] {
            let _ = Namespace::remove(namespace.name());
        }
    }
}

fn ip(line: &str) {
    command::query(line).unwrap_or_else(|error| panic!("{line}: {error}"));
}

impl Rig {
    /// `None`, and says so, where that can not be.
    fn new(test: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIP {test}: needs root");
            return None;
        }
        if let Err(error) = command::query("nft --version") {
            eprintln!("SKIP {test}: {error}");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let create = |part| Namespace::create(&format!("cl-g{}-{number}{part}", std::process::id())).unwrap();
        let rig = Self { client: create("c"), gateway: create("g"), server: create("s") };
        let gateway = rig.gateway.name();
        for (host, port, net) in [(&rig.client, "lan", 1), (&rig.server, "sat", 2)] {
            let host = host.name();
            ip(&format!("ip -n {host} link add eth0 type veth peer name {port} netns {gateway}"));
            ip(&format!("ip -n {host} addr add 10.77.{net}.2/24 dev eth0"));
            ip(&format!("ip -n {host} addr add fd00:0:0:{net}::2/64 dev eth0 nodad"));
            ip(&format!("ip -n {gateway} addr add 10.77.{net}.1/24 dev {port}"));
            ip(&format!("ip -n {gateway} addr add fd00:0:0:{net}::1/64 dev {port} nodad"));
            ip(&format!("ip -n {host} link set eth0 up"));
            ip(&format!("ip -n {gateway} link set {port} up"));
            ip(&format!("ip -n {host} route add default via 10.77.{net}.1"));
            ip(&format!("ip -n {host} route add default via fd00:0:0:{net}::1"));
        }
        ip(&format!("ip -n {} addr add {UNLISTED}/24 dev eth0", rig.server.name()));
        rig.gateway.run(|| ip("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")).unwrap();
        rig.server
            .run(|| {
                ip("nft add table inet t");
                ip("nft add chain inet t in { type filter hook input priority 0 ; }");
                ip(&format!("nft add rule inet t in tcp dport {SILENT} drop"));
            })
            .unwrap();
        Some(rig)
    }

    /// Starts a gateway and waits until it splits connections.
    fn start(&self, options: &[&str]) -> Gateway<'_> {
        let gateway = self.try_start(options);
        assert!(gateway.said.contains("are split"), "{}", gateway.said);
        gateway
    }

    /// Starts a gateway and waits until it splits connections, or has ended.
    fn try_start(&self, options: &[&str]) -> Gateway<'_> {
        let mut gateway = self.spawn(options);
        gateway.await_ready();
        gateway
    }

    /// Starts a gateway and does not wait.
    fn spawn(&self, options: &[&str]) -> Gateway<'_> {
        let mut command = Command::new(BINARY);
        command.args(["gateway", "run", "--satellite", "sat"]).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = self.gateway.run(|| command.spawn().unwrap()).unwrap();
        Gateway { rig: self, child, said: String::new() }
    }

    fn listen(&self, port: u16) -> TcpListener {
        self.server.run(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).unwrap()).unwrap()
    }

    fn try_connect(&self, to: impl Into<IpAddr>, port: u16) -> io::Result<TcpStream> {
        let to = SocketAddr::new(to.into(), port);
        let stream = self.client.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(10))).unwrap()?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        Ok(stream)
    }

    /// How a connection ends that nobody answers: the reset may come before the handshake is told.
    fn refusal(&self, port: u16) -> ErrorKind {
        match self.try_connect(SERVER, port) {
            Ok(stream) => one(&stream).unwrap_err(),
            Err(error) => error.kind(),
        }
    }

    fn connect(&self, to: impl Into<IpAddr>, port: u16) -> TcpStream {
        self.try_connect(to, port).unwrap()
    }

    /// Both ends of a connection.
    fn pair(&self, server: &TcpListener) -> (TcpStream, TcpStream) {
        let client = self.connect(SERVER, server.local_addr().unwrap().port());
        (client, accept(server))
    }

    /// What the gateway's namespace has beyond what it had: rules, routes, tables and a parameter.
    fn left(&self) -> Vec<String> {
        let query = |line: &str| command::query(line).unwrap_or_default();
        self.gateway
            .run(|| {
                let text = query("ip rule show")
                    + &query("ip -6 rule show")
                    + &query("ip route show table 3265")
                    + &query("ip -6 route show table 3265")
                    + &query("nft list tables");
                let lines = text.lines().filter(|line| {
                    line.contains("3265")
                        || line.contains("0xcc1")
                        || line.contains("local default")
                        || line.contains("cl-")
                });
                let mut left: Vec<_> = lines.map(str::to_owned).collect();
                let reuse = query("sysctl -n net.ipv4.tcp_tw_reuse");
                if reuse.trim() != "2" {
                    left.push(format!("tcp_tw_reuse {reuse}"));
                }
                left
            })
            .unwrap()
    }

    /// Waits until nothing is left, of the namespace and of the gateway with this identity.
    fn is_clean(&self, id: &str) {
        let folder = format!("/run/congestlab/{id}");
        for _ in 0..100 {
            if self.left().is_empty() && !Path::new(&folder).exists() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("left behind: {:?}, {folder}", self.left());
    }
}

fn accept(server: &TcpListener) -> TcpStream {
    let (stream, _) = server.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

struct Gateway<'a> {
    rig: &'a Rig,
    child: Child,
    /// The first line.
    said: String,
}

impl Drop for Gateway<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Gateway<'_> {
    /// Waits until it splits connections, or has ended.
    fn await_ready(&mut self) {
        let mut words = BufReader::new(self.child.stderr.take().unwrap());
        words.read_line(&mut self.said).unwrap();
        if !self.said.contains("are split") {
            let _ = words.read_to_string(&mut self.said);
            let _ = self.child.wait();
        }
    }

    /// Identity of its supervisor's folder, from the control group that it is in.
    fn id(&self) -> String {
        let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", self.child.id())).unwrap();
        groups.split("congestlab-").nth(1).expect(&groups).trim()[..6].to_owned()
    }

    fn status(&self) -> Value {
        serde_json::from_str::<Value>(&self.print_status(&["--json"])).unwrap()["gateway"].take()
    }

    fn print_status(&self, options: &[&str]) -> String {
        let mut command = Command::new(BINARY);
        command.args(["gateway", "status"]).args(options).stdin(Stdio::null());
        let output = self.rig.gateway.run(|| command.output().unwrap()).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn counter(&self, name: &str) -> u64 {
        self.status()["counters"][name].as_u64().unwrap()
    }

    /// Waits until a counter has this value; at most 5 s.
    fn until(&self, name: &str, value: u64) {
        for _ in 0..50 {
            if self.counter(name) == value {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        panic!("{name} is not {value}: {}", self.status());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    fn interrupt(&mut self) {
        self.signal(Signal::INT);
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{}", self.said);
    }
}

fn reset(stream: TcpStream) {
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}

/// How a stream goes on for a byte, or ends.
fn one(mut stream: &TcpStream) -> Result<usize, ErrorKind> {
    loop {
        // A signal ends a read that has a time-out.
        match stream.read(&mut [0]).map_err(|error| error.kind()) {
            Err(ErrorKind::Interrupted) => {}
            other => return other,
        }
    }
}

fn payload(length: usize) -> Vec<u8> {
    let mut word = 1u32;
    let next = || {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (word >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

macro_rules! rig {
    ($name:literal) => {
        match Rig::new($name) {
            Some(rig) => rig,
            None => return,
        }
    };
}

#[test]
fn both_ends_see_each_other_and_every_byte_arrives() {
    let rig = rig!("both_ends_see_each_other_and_every_byte_arrives");
    // A firewall that knows connections: it must not see the halves as one.
    rig.gateway
        .run(|| {
            ip("nft add table inet t");
            for hook in ["input", "forward", "output"] {
                ip(&format!("nft add chain inet t {hook} {{ type filter hook {hook} priority 0 ; }}"));
                ip(&format!("nft add rule inet t {hook} ct state invalid drop"));
            }
        })
        .unwrap();
    let gateway = rig.start(&["--law", "cubic"]);
    let server = rig.listen(80);
    let data = payload(8 * MIB);
    for to in [IpAddr::from(SERVER), SERVER6.into()] {
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let mut stream = accept(&server);
                let peer = stream.peer_addr().unwrap();
                let mut received = Vec::new();
                stream.read_to_end(&mut received).unwrap();
                // After the client's end.
                stream.write_all(&received).unwrap();
                SocketAddr::new(peer.ip().to_canonical(), peer.port())
            });
            let mut stream = rig.connect(to, 80);
            assert_eq!(stream.peer_addr().unwrap(), SocketAddr::new(to, 80));
            let own = stream.local_addr().unwrap();
            stream.write_all(&data).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert!(received == data, "{} bytes of {}", received.len(), data.len());
            assert_eq!(serving.join().unwrap(), own);
        });
    }
    gateway.until("complete", 2);
    let status = gateway.status();
    assert_eq!(status["counters"]["to_server_bytes"], 16 * MIB, "{status}");
    assert_eq!(status["counters"]["to_client_bytes"], 16 * MIB, "{status}");
    assert_eq!(status["counters"]["accepted"], 2, "{status}");
    assert!(status["connections"].as_array().unwrap().is_empty(), "{status}");
}

#[test]
fn an_end_passes_in_either_direction_while_the_other_goes_on() {
    let rig = rig!("an_end_passes_in_either_direction_while_the_other_goes_on");
    let gateway = rig.start(&["--law", "cubic"]);
    let server = rig.listen(80);
    let (mut client, mut served) = rig.pair(&server);
    // The server ends first, and still hears the client.
    served.write_all(b"hello").unwrap();
    served.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
    let status = gateway.status();
    assert_eq!(status["connections"][0]["phase"], "ending", "{status}");
    for _ in 0..3 {
        client.write_all(b"abc").unwrap();
        let mut three = [0; 3];
        served.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"abc");
    }
    drop(client);
    assert_eq!(one(&served), Ok(0));
    drop(served);
    gateway.until("complete", 1);

    // Then the client first; the port that it had is free for it at once.
    let (client, mut served) = rig.pair(&server);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(one(&served), Ok(0));
    served.write_all(b"bye").unwrap();
    drop(served);
    let mut text = String::new();
    (&client).read_to_string(&mut text).unwrap();
    assert_eq!(text, "bye");
    drop(client);
    gateway.until("complete", 2);
    gateway.until("open", 0);
}

/// splice(2) stops at urgent data: with the 0 of an end if an end is behind them, and for good if not.
#[test]
fn urgent_data_become_ordinary_data() {
    let rig = rig!("urgent_data_become_ordinary_data");
    let gateway = rig.start(&["--law", "cubic"]);
    let server = rig.listen(80);
    let data = payload(5001);
    let send = |stream: &mut TcpStream| {
        stream.write_all(&data[..3000]).unwrap();
        assert_eq!(rustix::net::send(&*stream, &data[3000..3001], SendFlags::OOB).unwrap(), 1);
        stream.write_all(&data[3001..]).unwrap();
    };
    let receive = |stream: &mut TcpStream| {
        let mut received = vec![0; data.len()];
        stream.read_exact(&mut received).unwrap_or_else(|error| panic!("{error}: {}", gateway.status()));
        assert!(received == data);
    };
    for round in 0..4 {
        let (mut client, mut served) = rig.pair(&server);
        // The gateway sees all at once, or a part after the other.
        let is_at_once = round % 2 == 0;
        if is_at_once {
            gateway.until("open", 1);
            gateway.signal(Signal::STOP);
        }
        send(&mut client);
        let is_open = round / 2 == 0;
        if is_open {
            // The stream goes on, so that nothing but the gateway gets it past the mark.
            gateway.signal(Signal::CONT);
            receive(&mut served);
            send(&mut client);
        }
        client.shutdown(std::net::Shutdown::Write).unwrap();
        gateway.signal(Signal::CONT);
        receive(&mut served);
        assert_eq!(one(&served), Ok(0));
        // And the other way.
        send(&mut served);
        drop(served);
        receive(&mut client);
        assert_eq!(one(&client), Ok(0));
        drop(client);
        gateway.until("complete", round + 1);
    }
    // While a reader is slow, so that pipes and buffers are full at the marks.
    let (mut client, mut served) = rig.pair(&server);
    let block = payload(MIB);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..32 {
                client.write_all(&block[..MIB - 1]).unwrap();
                rustix::net::send(&client, &block[MIB - 1..], SendFlags::OOB).unwrap();
            }
            client.shutdown(std::net::Shutdown::Write).unwrap();
        });
        sleep(Duration::from_millis(300));
        let mut received = Vec::new();
        served.read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), 32 * MIB);
        assert!(received.chunks(MIB).all(|chunk| chunk == block), "bytes are not those sent");
    });
}

#[test]
fn a_client_may_use_its_port_again() {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let rig = rig!("a_client_may_use_its_port_again");
    let gateway = rig.start(&["--law", "cubic"]);
    let server = rig.listen(80);
    for number in 1..=3 {
        let client: TcpStream = rig
            .client
            .run(|| {
                let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
                sockopt::set_socket_reuseaddr(&socket, true).unwrap();
                bind(&socket, &SocketAddr::from((CLIENT, 4000))).unwrap();
                connect(&socket, &SocketAddr::from((SERVER, 80))).unwrap();
                socket.into()
            })
            .unwrap();
        let served = accept(&server);
        assert_eq!(served.peer_addr().unwrap().port(), 4000);
        // Whoever ends first is the one that remembers the connection.
        drop(served);
        assert_eq!(one(&client), Ok(0));
        drop(client);
        gateway.until("complete", number);
    }
}

#[test]
fn a_reset_passes_in_either_direction() {
    let rig = rig!("a_reset_passes_in_either_direction");
    let gateway = rig.start(&["--law", "cubic"]);
    let server = rig.listen(80);
    let (client, served) = rig.pair(&server);
    reset(client);
    assert_eq!(one(&served), Err(ErrorKind::ConnectionReset));
    let (client, served) = rig.pair(&server);
    reset(served);
    assert_eq!(one(&client), Err(ErrorKind::ConnectionReset));
    gateway.until("reset_by_client", 1);
    gateway.until("reset_by_server", 1);
    gateway.until("open", 0);
}

#[test]
fn a_server_that_refuses_or_says_nothing_is_a_reset_after_the_handshake() {
    let rig = rig!("a_server_that_refuses_or_says_nothing_is_a_reset_after_the_handshake");
    let gateway = rig.start(&["--law", "cubic", "--connect-timeout", "1 s", "--waiting", "2"]);
    assert_eq!(rig.refusal(81), ErrorKind::ConnectionReset);
    gateway.until("refused", 1);

    // What is sent before the server answers waits for it.
    let mut silent = rig.connect(SERVER, SILENT);
    let _second = rig.connect(SERVER, SILENT);
    silent.write_all(b"anybody?").unwrap();
    // The one that has waited longest goes.
    let _third = rig.connect(SERVER, SILENT);
    assert_eq!(one(&silent), Err(ErrorKind::ConnectionReset));
    assert_eq!(gateway.counter("displaced"), 1);
    gateway.until("timed_out", 2);
    gateway.until("waiting", 0);
}

/// The limits are eight, so that a share is two.
#[test]
fn one_client_shuts_no_other_one_out() {
    let rig = rig!("one_client_shuts_no_other_one_out");
    let other = Ipv4Addr::new(10, 77, 1, 3);
    ip(&format!("ip -n {} addr add {other}/24 dev eth0", rig.client.name()));
    let options = ["--law", "cubic", "--waiting", "8", "--connections", "16", "--threads", "2"];
    let gateway = rig.start(&options);
    let server = rig.listen(80);
    let connect_from = |from: Ipv4Addr, port: u16| {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let inside = rig.client.run(|| {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            bind(&socket, &SocketAddr::from((from, 0))).unwrap();
            connect(&socket, &SocketAddr::from((SERVER, port))).map(|()| TcpStream::from(socket))
        });
        let stream = inside.unwrap()?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        io::Result::Ok(stream)
    };
    // More than a table of connections to nobody.
    let black_hole: Vec<_> = (0..20).map(|_| connect_from(CLIENT, SILENT)).collect();
    gateway.until("displaced", 12);
    assert_eq!(gateway.counter("waiting"), 8);
    let mut served = vec![];
    for number in 0..4 {
        let client = connect_from(other, 80).unwrap();
        let mut stream = accept(&server);
        stream.write_all(b"x").unwrap();
        assert_eq!(one(&client), Ok(1), "{number}");
        served.push((client, stream));
    }
    // One place was taken, and the others took it again when their server had answered.
    gateway.until("displaced", 13);
    black_hole.into_iter().flatten().for_each(reset);
    served.truncate(2);
    gateway.until("open", 2);
    // Then with connections that are open.
    let taken: Vec<_> = (0..14).map(|_| rig.pair(&server)).collect();
    gateway.until("open", 16);
    gateway.until("waiting", 0);
    assert_eq!(rig.refusal(80), ErrorKind::ConnectionReset);
    gateway.until("over_limit", 1);
    let client = connect_from(other, 80).unwrap();
    accept(&server).write_all(b"x").unwrap();
    assert_eq!(one(&client), Ok(1));
    assert_eq!(one(&taken[0].0), Err(ErrorKind::ConnectionReset));
    assert_eq!((gateway.counter("displaced"), gateway.counter("open")), (14, 16));
}

#[test]
fn connections_beyond_the_limit_are_reset() {
    let rig = rig!("connections_beyond_the_limit_are_reset");
    let gateway = rig.start(&["--law", "cubic", "--connections", "2"]);
    let server = rig.listen(80);
    let (first, _served) = rig.pair(&server);
    let (_second, _also) = rig.pair(&server);
    // Until the gateway has seen that its server answered, a connection waits, and gives its place to a new one of its client.
    gateway.until("waiting", 0);
    assert_eq!(rig.refusal(80), ErrorKind::ConnectionReset);
    gateway.until("over_limit", 1);
    reset(first);
    gateway.until("open", 1);
    let (fourth, mut served) = rig.pair(&server);
    served.write_all(b"x").unwrap();
    assert_eq!(one(&fourth), Ok(1));
}

#[test]
fn a_slow_reader_slows_the_sender_and_memory_is_bounded() {
    let rig = rig!("a_slow_reader_slows_the_sender_and_memory_is_bounded");
    let gateway = rig.start(&["--law", "cubic"]);
    let server = rig.listen(80);
    let (mut client, mut served) = rig.pair(&server);
    client.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let block = payload(MIB);
    let mut sent = 0;
    // Until nothing more goes for a second.
    while sent < 256 * MIB {
        match client.write(&block[sent % MIB..]) {
            Ok(bytes) => sent += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                break;
            }
        }
    }
    // Two hosts and the two sockets between them, each with at most what the kernel lets it grow to.
    let limit = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        text.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    let socket = limit("tcp_rmem") + limit("tcp_wmem");
    assert!((sent as u64) < 2 * socket + (64 << 10), "{sent} bytes went to a reader that reads nothing");
    let status = gateway.status();
    let one = &status["connections"][0];
    let bytes = |half: &str, queue: &str| one[half][queue].as_u64().unwrap();
    assert!(one["held_bytes"].as_u64().unwrap() <= 64 << 10, "{status}");
    assert!(
        bytes("terrestrial", "receive_queue_bytes") > 0,
        "the sender is not held by its own window: {status}"
    );
    assert!(
        bytes("terrestrial", "receive_queue_bytes") + bytes("satellite", "send_queue_bytes") < socket,
        "{status}"
    );
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut received = Vec::new();
    served.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), sent);
    assert!(received.chunks(MIB).all(|chunk| chunk == &block[..chunk.len()]), "bytes are not those sent");
}

#[test]
fn a_client_that_vanishes_is_given_up() {
    let rig = rig!("a_client_that_vanishes_is_given_up");
    let gateway = rig.start(&["--law", "cubic", "--keepalive", "1 s"]);
    let server = rig.listen(80);
    let (_client, served) = rig.pair(&server);
    ip(&format!("ip -n {} link set eth0 down", rig.client.name()));
    assert_eq!(one(&served), Err(ErrorKind::ConnectionReset));
    gateway.until("reset_by_client", 1);
}

#[test]
fn destinations_off_the_list_pass_as_they_are() {
    let rig = rig!("destinations_off_the_list_pass_as_they_are");
    let listed = format!("{SERVER}/32");
    let gateway = rig.start(&["--law", "cubic", "--to", &listed, "--to", "fd00:0:0:7::/64"]);
    let server = rig.listen(80);
    for to in [IpAddr::from(UNLISTED), SERVER6.into()] {
        let client = rig.connect(to, 80);
        accept(&server).write_all(b"x").unwrap();
        assert_eq!(one(&client), Ok(1));
        assert_eq!(gateway.counter("accepted"), 0);
        // Without a gateway a server that refuses does so before the connection is there.
        assert_eq!(rig.try_connect(to, 81).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
    let (_client, _served) = rig.pair(&server);
    assert_eq!(gateway.counter("accepted"), 1);
}

#[test]
fn a_second_gateway_is_refused_and_the_first_goes_on() {
    let rig = rig!("a_second_gateway_is_refused_and_the_first_goes_on");
    let mut gateway = rig.start(&["--law", "cubic"]);
    let mut second = rig.try_start(&["--law", "cubic"]);
    assert_eq!(second.child.wait().unwrap().code(), Some(2), "{}", second.said);
    let pid = gateway.child.id();
    assert!(second.said.contains(&format!("already, process {pid}")), "{}", second.said);
    drop(second);
    for (options, code, word) in [
        (vec!["--law", "nosuchlaw"], 4, "nosuchlaw"),
        (vec!["--law", "cubic", "--to", "10.0.0.0/40"], 2, "10.0.0.0/40"),
        (vec!["--law", "cubic", "--keepalive", "1500 ms"], 2, "whole seconds"),
        (vec!["--law", "cubic", "--satellite", "nosuch0"], 2, "--satellite"),
    ] {
        let mut wrong = rig.try_start(&options);
        assert_eq!(wrong.child.wait().unwrap().code(), Some(code), "{}", wrong.said);
        assert!(wrong.said.contains(word), "{}", wrong.said);
    }
    let server = rig.listen(80);
    let (client, mut served) = rig.pair(&server);
    served.write_all(b"x").unwrap();
    assert_eq!(one(&client), Ok(1));

    let id = gateway.id();
    gateway.interrupt();
    assert_eq!(one(&client), Err(ErrorKind::ConnectionReset));
    assert_eq!(one(&served), Err(ErrorKind::ConnectionReset));
    rig.is_clean(&id);
    // The name is free again.
    rig.start(&["--law", "cubic"]);
}

/// A listener that is full answers SYNs with cookies. The ACKs that bring them back belong to no socket.
#[test]
fn handshakes_by_cookies_are_split_from_either_side() {
    let rig = rig!("handshakes_by_cookies_are_split_from_either_side");
    rig.gateway.run(|| ip("sysctl -qw net.ipv4.tcp_syncookies=2")).unwrap();
    // A connection that existed before still passes as it is.
    let server = rig.listen(80);
    let (mut early, mut served_early) = rig.pair(&server);
    let gateway = rig.start(&["--law", "cubic"]);
    for to in [IpAddr::from(SERVER), SERVER6.into()] {
        let client = rig.connect(to, 80);
        accept(&server).write_all(b"x").unwrap();
        assert_eq!(one(&client), Ok(1), "{to}");
    }
    let at_client = rig.client.run(|| TcpListener::bind((CLIENT, 80)).unwrap()).unwrap();
    let back = rig.server.run(|| TcpStream::connect((CLIENT, 80)).unwrap()).unwrap();
    accept(&at_client).write_all(b"x").unwrap();
    assert_eq!(one(&back), Ok(1));
    for stream in [&mut early, &mut served_early] {
        stream.write_all(b"x").unwrap();
    }
    assert_eq!((one(&early), one(&served_early)), (Ok(1), Ok(1)));
    assert_eq!(gateway.counter("accepted"), 3);
}

/// 9,500 SYNs from addresses that do not answer, in a row: more than a listener remembers.
#[test]
fn a_flood_of_syns_breaks_no_new_connection() {
    let rig = rig!("a_flood_of_syns_breaks_no_new_connection");
    ip(&format!("ip -n {} route add 10.99.0.0/16 via {CLIENT}", rig.gateway.name()));
    let gateway = rig.start(&["--law", "cubic", "--threads", "1"]);
    let server = rig.listen(80);
    let sent = rig.client.run(|| flood(SocketAddr::from((SERVER, 80)), 9500)).unwrap();
    assert_eq!(sent, 9500);
    for number in 0..20 {
        let (client, mut served) = rig.pair(&server);
        served.write_all(b"x").unwrap();
        assert_eq!(one(&client), Ok(1), "{number}: {}", gateway.status());
    }
    let cookies = rig.gateway.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap());
    assert!(counts(&cookies.unwrap(), "SyncookiesRecv") > 0, "no cookie came back");
    assert_eq!(gateway.counter("accepted"), 20);
}

/// A number of /proc/net/netstat, by its name.
fn counts(text: &str, name: &str) -> u64 {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let column = lines.iter().zip(lines.iter().skip(1)).find_map(|(names, numbers)| {
        let place = names.iter().position(|one| *one == name)?;
        numbers.get(place)?.parse().ok()
    });
    column.unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Sends SYNs from as many addresses of 10.99.0.0/16. Returns how many went out.
fn flood(to: SocketAddr, count: u16) -> usize {
    use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW)).unwrap();
    let IpAddr::V4(server) = to.ip() else { panic!("{to}") };
    let sum = |bytes: &[u8], start: u32| {
        let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum = words.sum::<u32>() + start;
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    };
    (0..count)
        .filter(|&number| {
            let mut packet = [0u8; 40];
            // The kernel fills in length and checksum of IP (raw(7)).
            (packet[0], packet[8], packet[9]) = (0x45, 64, 6);
            packet[12..16].copy_from_slice(&[10, 99, (number >> 8) as u8, number as u8]);
            packet[16..20].copy_from_slice(&server.octets());
            packet[20..22].copy_from_slice(&(1024 + number).to_be_bytes());
            packet[22..24].copy_from_slice(&to.port().to_be_bytes());
            (packet[32], packet[33]) = (5 << 4, 2);
            packet[34..36].copy_from_slice(&1000u16.to_be_bytes());
            let check = sum(&packet[12..40], 6 + 20);
            packet[36..38].copy_from_slice(&check.to_be_bytes());
            sendto(&raw, &packet, SendFlags::empty(), &to).is_ok()
        })
        .count()
}

/// Strangers' bytes are handled by a user without rights over files and processes.
#[test]
fn it_keeps_the_capabilities_that_it_uses_and_no_user_of_rights() {
    const NET_BIND_SERVICE: u64 = 1 << 10;
    const NET_ADMIN: u64 = 1 << 12;
    let rig = rig!("it_keeps_the_capabilities_that_it_uses_and_no_user_of_rights");
    let server = rig.listen(80);
    let mut gateway = rig.start(&["--law", "cubic", "--threads", "2"]);
    let (_client, _served) = rig.pair(&server);
    let status = gateway.status();
    assert!(status["passing"].is_array(), "nft has no right to list: {status}");
    let id = gateway.id();
    let threads = std::fs::read_dir(format!("/proc/{}/task", gateway.child.id())).unwrap();
    let mut kept = vec![];
    for thread in threads {
        let text = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.expect(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        for name in ["Uid", "Gid"] {
            assert!(of(name).iter().all(|number| number != "0"), "{name}: {text}");
        }
        assert!(of("Groups").is_empty(), "{text}");
        let [effective, permitted, ambient] =
            ["CapEff", "CapPrm", "CapAmb"].map(|name| u64::from_str_radix(&of(name)[0], 16).unwrap());
        assert_eq!(effective, permitted, "{text}");
        kept.push((effective, ambient, of("NoNewPrivs")[0] == "1"));
    }
    let of = |set| kept.iter().filter(|one| **one == set).count();
    let all = NET_ADMIN | NET_BIND_SERVICE;
    // Two workers, the thread that answers, and perhaps one for signals, which has none.
    assert_eq!((of((all, 0, true)), of((all, NET_ADMIN, true))), (2, 1), "{kept:x?}");
    assert!(kept.iter().all(|(effective, ..)| [0, all].contains(effective)), "{kept:x?}");
    gateway.interrupt();
    rig.is_clean(&id);
    // Another user is named, and one that is not there is refused.
    let gateway = rig.start(&["--law", "cubic", "--user", "daemon"]);
    let text = std::fs::read_to_string(format!("/proc/{}/status", gateway.child.id())).unwrap();
    assert!(text.contains("\nUid:\t1\t1\t1\t1\n"), "{text}");
    drop(gateway);
    let mut wrong = rig.try_start(&["--law", "cubic", "--user", "nosuchuser"]);
    assert_eq!(wrong.child.wait().unwrap().code(), Some(2), "{}", wrong.said);
}

/// The abstract name of earlier versions belonged to the process that took it first, whoever that was.
#[test]
fn no_other_user_can_stand_in_for_the_gateway() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let rig = rig!("no_other_user_can_stand_in_for_the_gateway");
    let impostor = rig.gateway.run(|| {
        let name = std::os::unix::net::SocketAddr::from_abstract_name("congestlab-gateway").unwrap();
        std::os::unix::net::UnixListener::bind_addr(&name).unwrap()
    });
    let impostor = impostor.unwrap();
    impostor.set_nonblocking(true).unwrap();
    let gateway = rig.start(&["--law", "cubic"]);
    assert_eq!(gateway.status()["pid"], gateway.child.id());
    assert_eq!(impostor.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "the impostor is asked");
    let folder = std::fs::read_dir(format!("/run/congestlab/{}", gateway.id())).unwrap();
    let sockets: Vec<_> = folder
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(|data| data.file_type().is_socket())
        .map(|data| (data.uid(), data.mode() & 0o7777))
        .collect();
    assert_eq!(sockets, [(0, 0o600)]);
    // Another namespace has its own.
    let mut command = Command::new(BINARY);
    let output = rig.client.run(|| command.args(["gateway", "status"]).output().unwrap()).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no gateway runs in this network namespace\n");
}

/// The first half of the moments lies in the start of the gateway, the second in a transfer.
#[test]
fn killed_at_any_moment_it_leaves_nothing_and_no_clean_end() {
    let rig = rig!("killed_at_any_moment_it_leaves_nothing_and_no_clean_end");
    let server = rig.listen(80);
    let noise = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 1);
    for round in 0..8u64 {
        let mut command = Command::new(BINARY);
        command.args(["-q", "gateway", "run", "--satellite", "sat", "--law", "cubic"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = rig.gateway.run(|| command.spawn().unwrap()).unwrap();
        sleep(Duration::from_millis((noise >> (8 * round)) % 256));
        child.kill().unwrap();
        child.wait().unwrap();
        for _ in 0..100 {
            if rig.left().is_empty() {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        assert_eq!(rig.left(), Vec::<String>::new());
    }
    for round in 0..8u64 {
        let mut gateway = rig.start(&["--law", "cubic"]);
        let id = gateway.id();
        // One up, one down: the error of a reset is told once, to whoever asks first.
        let (sender, receiver) = rig.pair(&server);
        let (receiver2, sender2) = rig.pair(&server);
        let ends = thread::scope(|scope| {
            let write = |mut stream: TcpStream| {
                let block = payload(MIB);
                loop {
                    if let Err(error) = stream.write_all(&block) {
                        return error.kind();
                    }
                }
            };
            let read = |mut stream: TcpStream| {
                let mut buffer = vec![0; 64 << 10];
                loop {
                    match stream.read(&mut buffer) {
                        Ok(0) => panic!("round {round}: half a transfer looks like all of it"),
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return error.kind(),
                    }
                }
            };
            let ends = [sender, sender2].map(|stream| scope.spawn(move || write(stream)));
            let others = [receiver, receiver2].map(|stream| scope.spawn(move || read(stream)));
            sleep(Duration::from_millis((noise >> (7 * round)) % 256));
            gateway.child.kill().unwrap();
            ends.into_iter().chain(others).map(|end| end.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(ends, [ErrorKind::ConnectionReset; 4], "round {round}");
        rig.is_clean(&id);
    }
    // What is new passes as it is.
    let (client, mut served) = rig.pair(&server);
    served.write_all(b"x").unwrap();
    assert_eq!(one(&client), Ok(1));
}

#[test]
fn a_namespace_deleted_under_it_is_no_reason_to_leave_anything() {
    let rig = rig!("a_namespace_deleted_under_it_is_no_reason_to_leave_anything");
    let mut gateway = rig.start(&["--law", "cubic"]);
    let server = rig.listen(80);
    let (mut client, mut served) = rig.pair(&server);
    // The name goes; who is inside stays inside.
    Namespace::remove(rig.gateway.name()).unwrap();
    served.write_all(b"x").unwrap();
    assert_eq!(one(&client), Ok(1));
    // The satellite link goes with the server's namespace, in the middle of a connection.
    let id = gateway.id();
    ip(&format!("ip -n {} link delete eth0", rig.server.name()));
    client.write_all(b"x").unwrap();
    assert_eq!(gateway.counter("open"), 1);
    gateway.interrupt();
    assert_eq!(one(&client), Err(ErrorKind::ConnectionReset));
    rig.is_clean(&id);
}

#[test]
fn towards_the_satellite_it_speaks_xcp() {
    let rig = rig!("towards_the_satellite_it_speaks_xcp");
    let mut gateway = rig.try_start(&["--law", "pxcp"]);
    if !gateway.said.contains("are split") && gateway.child.wait().unwrap().code() == Some(4) {
        return eprintln!("SKIP towards_the_satellite_it_speaks_xcp: {}", gateway.said.trim());
    }
    assert!(gateway.said.contains("are split"), "{}", gateway.said);
    // SYNs with XCP's option.
    let hosts = [&rig.client, &rig.server];
    for host in hosts {
        host.run(|| {
            let _ = command::query("nft add table inet x");
            ip("nft add chain inet x in { type filter hook input priority -10 ; }");
            ip("nft add rule inet x in tcp flags syn tcp option 253 exists counter");
        })
        .unwrap();
    }
    let offers = || {
        hosts.map(|host| {
            let text = host.run(|| command::query("nft list table inet x").unwrap()).unwrap();
            let count = text.split("counter packets ").nth(1).expect(&text);
            count.split(' ').next().unwrap().parse::<u64>().unwrap()
        })
    };
    let server = rig.listen(80);
    let (_client, _served) = rig.pair(&server);
    assert_eq!(offers(), [0, 1]);
    // The other way round it is asked, and goes on to the ground in TCP.
    let at_client = rig.client.run(|| TcpListener::bind((CLIENT, 80)).unwrap()).unwrap();
    let _back = rig.server.run(|| TcpStream::connect((CLIENT, 80)).unwrap()).unwrap();
    let _at_client = accept(&at_client);
    assert_eq!(offers(), [0, 1]);
    gateway.until("accepted", 2);
    let status = gateway.status();
    for (number, origin) in [(0, "terrestrial"), (1, "satellite")] {
        let one = &status["connections"][number];
        assert_eq!(one["origin"], origin, "{status}");
        assert_eq!(one["terrestrial"]["congestion_control"], "cubic", "{status}");
    }
    // Neither end speaks XCP, and the status says so.
    for number in [0, 1] {
        let half = &status["connections"][number]["satellite"];
        assert_eq!((&half["congestion_control"], &half["fallback"]), (&"cubic".into(), &"no-option".into()));
        assert_eq!(status["connections"][number]["terrestrial"]["fallback"], Value::Null, "{status}");
    }
    assert_eq!((&status["law"], &status["ready"]), (&"pxcp".into(), &true.into()), "{status}");
    let name = status["congestion_control"].as_str().unwrap();
    assert!(name.starts_with("xcp."), "{status}");
    let text = gateway.print_status(&[]);
    assert!(text.contains(&format!("\n  law              {name}, ready\n")), "{text}");
    assert_eq!(text.matches("the peer does not speak XCP").count(), 2, "{text}");
}

#[test]
fn connections_that_are_not_split_are_listed_with_the_reason() {
    let rig = rig!("connections_that_are_not_split_are_listed_with_the_reason");
    let server = rig.listen(80);
    let (early, mut served_early) = rig.pair(&server);
    let gateway = rig.start(&["--law", "cubic", "--to", &format!("{SERVER}/32")]);
    let unlisted = [UNLISTED.into(), IpAddr::from(SERVER6)].map(|to| (rig.connect(to, 80), accept(&server)));
    let (_split, _served) = rig.pair(&server);
    served_early.write_all(b"x").unwrap();
    assert_eq!(one(&early), Ok(1));
    let status = gateway.status();
    let passing = status["passing"].as_array().unwrap();
    let expected = [(&early, SERVER.into(), "early")]
        .into_iter()
        .chain(unlisted.iter().map(|(client, _)| (client, client.peer_addr().unwrap().ip(), "unlisted")));
    assert_eq!(passing.len(), 3, "{status}");
    for (client, server, why) in expected {
        let ground = client.local_addr().unwrap().to_string();
        let one = passing.iter().find(|one| one["ground"] == ground).unwrap_or_else(|| panic!("{status}"));
        assert_eq!(one["satellite"], SocketAddr::new(server, 80).to_string(), "{status}");
        assert_eq!(one["why"], why, "{status}");
    }
    let text = gateway.print_status(&[]);
    for says in ["\n  not split        3\n", "it began before the gateway", "its server is not in --to"] {
        assert!(text.contains(says), "no {says:?} in\n{text}");
    }
}

#[test]
fn a_connection_that_comes_while_the_law_loads_is_split() {
    let rig = rig!("a_connection_that_comes_while_the_law_loads_is_split");
    let server = rig.listen(80);
    let tables = || rig.gateway.run(|| command::query("nft list tables").unwrap()).unwrap();
    for law in ["cubic", "pxcp"] {
        let mut gateway = rig.spawn(&["--law", law]);
        while !tables().contains("cl-") {
            if gateway.child.try_wait().unwrap().is_some() {
                gateway.await_ready();
                return eprintln!(
                    "SKIP a_connection_that_comes_while_the_law_loads_is_split: {}",
                    gateway.said
                );
            }
        }
        // While the test has this lock, no gateway gets beyond the loading of its law. An idle machine may have loaded it.
        gateway.signal(Signal::STOP);
        let lock = std::fs::File::open("/run/congestlab/lock").unwrap();
        let is_taken = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        gateway.signal(Signal::CONT);
        if !is_taken {
            flock(&lock, FlockOperation::LockExclusive).unwrap();
        }
        sleep(Duration::from_millis(500));
        let before = gateway.status();
        if before["ready"] == false {
            assert_eq!((&before["law"], &before["congestion_control"]), (&law.into(), &Value::Null));
            let text = gateway.print_status(&[]);
            assert!(
                text.contains("not ready: it is being loaded, and new connections wait for it"),
                "{text}"
            );
        }
        let _client = thread::scope(|scope| {
            // A busy machine may load the law for longer than other connections here may wait.
            let connect = || rig.client.run(|| TcpStream::connect((SERVER, 80)).unwrap()).unwrap();
            let client = scope.spawn(connect);
            sleep(Duration::from_millis(200));
            drop(lock);
            client.join().unwrap()
        });
        gateway.await_ready();
        let _served = accept(&server);
        let status = gateway.status();
        assert_eq!(status["ready"], true, "{status}");
        assert_eq!(status["connections"].as_array().unwrap().len(), 1, "{status}");
        assert_eq!(status["passing"], Value::Array(vec![]), "{status}");
        gateway.interrupt();
    }
}
