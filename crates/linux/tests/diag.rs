//! What sock_diag says, against sockets that the tests make themselves.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::{fs, io};

use congestlab_linux::sys::diag::{Diag, Socket, State, States};
use congestlab_linux::sys::netns::Namespace;
use libbpf_rs::{MapCore, MapFlags, ObjectBuilder};

const BYTES: usize = 300_000;

/// Client and server of a connection over the loopback interface.
fn connection(host: impl Into<std::net::IpAddr>) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((host.into(), 0)).expect("a free port");
    let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (server, _) = listener.accept().expect("a client");
    (client, server)
}

fn find(sockets: &[Socket], local: SocketAddr, remote: SocketAddr) -> Option<&Socket> {
    sockets.iter().find(|socket| socket.local == local && socket.remote == remote)
}

fn ends(stream: &TcpStream) -> (SocketAddr, SocketAddr) {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    (canonical(stream.local_addr().expect("connected")), canonical(stream.peer_addr().expect("connected")))
}

fn skip(test: &str, reason: &str) {
    eprintln!("SKIP {test}: {reason}");
}

/// A namespace of the test's own, which goes with it.
struct Own(Option<Namespace>);

impl Own {
    fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip(test, "not root");
            return None;
        }
        let name = format!("cl-test-diag-{}-{test:.8}", std::process::id());
        match Namespace::create(&name) {
            Ok(namespace) => Some(Self(Some(namespace))),
            Err(error) => {
                skip(test, &format!("no namespaces: {error}"));
                None
            }
        }
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.as_ref().expect("not dropped").run(work).expect("it can be entered")
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(namespace) = self.0.take() {
            namespace.delete().expect("the namespace is there");
        }
    }
}

/// The counters are those of the bytes that the test moved, for IPv4, IPv6 and IPv4 in an IPv6 socket.
#[test]
fn both_ends_of_a_connection_are_listed_with_what_they_moved() {
    let mut diag = Diag::open().expect("this kernel has sock_diag");
    for host in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        let host: std::net::IpAddr = host.parse().expect("an address");
        if host.is_ipv6() && TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
            skip("both_ends_of_a_connection_are_listed_with_what_they_moved", "no IPv6");
            continue;
        }
        let (mut client, mut server) = connection(host);
        let sent = std::thread::spawn(move || {
            client.write_all(&[7; BYTES]).expect("the server reads");
            client
        });
        server.read_exact(&mut vec![0; BYTES]).expect("the client writes");
        let client = sent.join().expect("no panic");
        let sockets = diag.sockets(States::of(&[State::Established]), None).expect("a list");

        let (local, remote) = ends(&client);
        let sender = find(&sockets, local, remote).expect("the client is listed");
        let receiver = find(&sockets, remote, local).expect("the server is listed");
        let (out, into) = (sender.info.expect("connected"), receiver.info.expect("connected"));
        assert_eq!(sender.state, State::Established);
        assert_eq!(out.bytes_sent - out.bytes_retrans, BYTES as u64, "{host}");
        assert_eq!(into.bytes_received, BYTES as u64, "{host}");
        // The SYN counts as one.
        assert!(out.bytes_acked <= BYTES as u64 + 1 && out.bytes_acked > 0, "{out:?}");
        assert!(out.snd_mss >= 536 && out.snd_cwnd > 0 && out.rtt > 0 && out.rto >= 1000, "{out:?}");
        assert!(u64::from(out.data_segs_out) * u64::from(out.snd_mss) >= BYTES as u64, "{out:?}");
        assert!(out.snd_wnd > 0 && out.min_rtt <= out.rtt * 8 && out.pmtu >= 1280, "{out:?}");
        assert_eq!(out.notsent_bytes, 0);
        let link = fs::read_link(format!("/proc/self/fd/{}", client.as_raw_fd())).expect("open");
        assert_eq!(link.to_string_lossy(), format!("socket:[{}]", sender.inode));
        assert_eq!(sender.uid, rustix::process::geteuid().as_raw());
        let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("Linux");
        assert!(known.split_whitespace().any(|name| name == sender.congestion), "{}", sender.congestion);
    }
}

/// `ss` of iproute2 reads the same interface: an independent reading of the offsets.
#[test]
fn ss_says_the_same() {
    const TEST: &str = "ss_says_the_same";
    if Command::new("ss").arg("-V").output().is_err() {
        return skip(TEST, "ss is not installed");
    }
    let Some(own) = Own::new(TEST) else { return };
    own.run(|| {
        let (mut client, mut server) = connection(Ipv4Addr::LOCALHOST);
        client.write_all(&[1; 5000]).expect("room");
        server.read_exact(&mut [0; 5000]).expect("written");
        let port = client.local_addr().expect("connected").port();
        let output = Command::new("ss").args(["-tinHe", "sport", "=", &format!(":{port}")]).output();
        let text = String::from_utf8(output.expect("it is installed").stdout).expect("a text");
        let sockets = Diag::open().and_then(|mut diag| diag.sockets(States::SENDING, None)).expect("a list");
        let (local, remote) = ends(&client);
        let socket = find(&sockets, local, remote).expect("listed");
        let info = socket.info.expect("connected");
        let milliseconds = |us: u32| format!("{}", f64::from(us) / 1000.0);
        let words: Vec<&str> = text.split_whitespace().collect();
        for word in [
            format!("rtt:{}/{}", milliseconds(info.rtt), milliseconds(info.rttvar)),
            format!("cwnd:{}", info.snd_cwnd),
            format!("mss:{}", info.snd_mss),
            format!("pmtu:{}", info.pmtu),
            format!("bytes_sent:{}", info.bytes_sent),
            format!("bytes_acked:{}", info.bytes_acked),
            format!("segs_out:{}", info.segs_out),
            format!("segs_in:{}", info.segs_in),
            format!("data_segs_out:{}", info.data_segs_out),
            format!("delivered:{}", info.delivered),
            format!("rcv_space:{}", info.rcv_space),
            format!("snd_wnd:{}", info.snd_wnd),
            format!("ino:{}", socket.inode),
            format!("sk:{:x}", socket.cookie),
            socket.congestion.clone(),
        ] {
            // Older versions of ss know fewer words.
            let key = word.split_once(':').map_or(word.as_str(), |(key, _)| key);
            let said = words.iter().find(|other| other.split(':').next() == Some(key));
            if said.is_some() || !key.starts_with("snd_wnd") {
                assert_eq!(said, Some(&word.as_str()), "in {text}");
            }
        }
    });
}

#[test]
fn listeners_are_listed_only_when_asked_for() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let mut diag = Diag::open().expect("this kernel has sock_diag");
    let mut count = |states| {
        let sockets = diag.sockets(states, None).expect("a list");
        sockets.iter().filter(|socket| socket.local.port() == port && socket.state == State::Listen).count()
    };
    assert_eq!(count(States::ALL), 1);
    assert_eq!(count(States::of(&[State::Listen])), 1);
    assert_eq!(count(States::SENDING), 0);
}

#[test]
fn a_namespace_shows_its_own_sockets_wherever_it_is_asked() {
    let Some(own) = Own::new("a_namespace_shows_its_own") else { return };
    let (pair, mut inside) =
        own.run(|| (connection(Ipv4Addr::LOCALHOST), Diag::open().expect("this kernel has sock_diag")));
    let (local, remote) = ends(&pair.0);
    let sockets = inside.sockets(States::ALL, None).expect("a list");
    assert!(find(&sockets, local, remote).is_some() && find(&sockets, remote, local).is_some());
    let sockets = Diag::open().and_then(|mut diag| diag.sockets(States::ALL, None)).expect("a list");
    let strangers = sockets.iter().filter(|socket| socket.inode != 0);
    let ours = fs::read_link(format!("/proc/self/fd/{}", pair.0.as_raw_fd())).expect("open");
    assert!(
        strangers.map(|socket| format!("socket:[{}]", socket.inode)).all(|link| *ours != *link),
        "the namespace leaks"
    );
}

#[test]
fn a_connection_is_ended_for_both_ends_and_no_other() {
    let Some(own) = Own::new("a_connection_is_ended") else { return };
    own.run(|| {
        let (mut one, mut peer) = connection(Ipv4Addr::LOCALHOST);
        let (mut other, mut other_peer) = connection(Ipv4Addr::LOCALHOST);
        let (local, _) = ends(&one);
        let mut diag = Diag::open().expect("this kernel has sock_diag");
        match diag.destroy(States::ALL, |socket| socket.local == local) {
            Ok(count) => assert_eq!(count, 1),
            Err(error) if error.exit_code() == 4 => {
                return skip("a_connection_is_ended_for_both_ends_and_no_other", &error.to_string());
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(one.read(&mut [0]).expect_err("ended").kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(peer.read(&mut [0]).expect_err("ended").kind(), io::ErrorKind::ConnectionReset);
        other.write_all(b"x").expect("it lives");
        other_peer.read_exact(&mut [0]).expect("it lives");
        let count = diag.destroy(States::ALL, |socket| socket.local == local).expect("nothing to do");
        assert_eq!(count, 0);
    });
}

/// A map like those of the host's programs.
const STORAGE: &str = r#"
struct kept { unsigned long long first, second; };
struct {
	int (*type)[24]; /* BPF_MAP_TYPE_SK_STORAGE */
	int (*map_flags)[1]; /* BPF_F_NO_PREALLOC */
	int *key;
	struct kept *value;
} storage __attribute__((section(".maps"), used));
char _license[] __attribute__((section("license"), used)) = "GPL";
"#;

#[test]
fn what_a_bpf_map_has_about_a_socket_comes_with_it() {
    const TEST: &str = "what_a_bpf_map_has_about_a_socket_comes_with_it";
    if !rustix::process::geteuid().is_root() {
        return skip(TEST, "not root");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (source, object) = (folder.path().join("storage.bpf.c"), folder.path().join("storage.bpf.o"));
    fs::write(&source, STORAGE).expect("room");
    let built = ["clang-19", "clang"].into_iter().any(|clang| {
        let mut command = Command::new(clang);
        command.args(["-O2", "-g", "-target", "bpf", "-c"]).arg(&source).arg("-o").arg(&object);
        command.output().is_ok_and(|output| output.status.success())
    });
    if !built {
        return skip(TEST, "no clang");
    }
    let object = ObjectBuilder::default().open_file(&object).and_then(|object| object.load());
    let object = match object {
        Ok(object) => object,
        Err(error) => return skip(TEST, &format!("no socket storage: {error}")),
    };
    let map = object.maps().find(|map| map.name() == "storage").expect("it is in the object");

    let (client, _server) = connection(Ipv4Addr::LOCALHOST);
    let value: Vec<u8> = (0..16).collect();
    map.update(&client.as_raw_fd().to_ne_bytes(), &value, MapFlags::ANY).expect("a socket");
    let mut diag = Diag::open().expect("this kernel has sock_diag");
    let sockets = diag.sockets(States::SENDING, Some(map.as_fd())).expect("a list");
    let (local, remote) = ends(&client);
    let socket = find(&sockets, local, remote).expect("listed");
    assert_eq!(socket.storage.as_deref(), Some(&value[..]));
    assert!(socket.info.is_some_and(|info| info.snd_mss > 0), "what else comes is lost");
    let peer = find(&sockets, remote, local).expect("listed");
    assert_eq!(peer.storage, None);
    let file = fs::File::open("/dev/null").expect("Linux");
    let error = diag.sockets(States::SENDING, Some(file.as_fd())).expect_err("that is no map");
    assert_eq!(error.exit_code(), 1, "{error}");
    // The interface is still of use.
    assert!(!diag.sockets(States::SENDING, None).expect("a list").is_empty());
}
