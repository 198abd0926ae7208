//! XCP on real sockets: a client and a server in namespaces, a router and 10 ms of wire between
//! them, processes in a control group of their own, and a congestion control that nobody else names.
//! What the packets look like is tcpdump's word, what arrives is iperf3's.

#[macro_use]
mod path;

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use congestlab_core::law::mpcp;
use congestlab_core::law::xcp::LinkConfig;
use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::host::{self, Config, Encoding, Law, LossPolicy, Prefix, Reason};
use congestlab_linux::link::{Clock, UNLIMITED};
use congestlab_linux::router::{self, Follower, Queue, State, Weights};
use congestlab_linux::sys::command;
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::qdisc::QdiscReader;
use congestlab_net::port::PortConfig;
use congestlab_net::queue::Limit;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use path::{Path, capture};

/// The lines of tcpdump with a TCP packet, of a transfer from client to server.
fn captured(path: &mut Path, transfer: &str, is_member: bool) -> Vec<String> {
    let file = capture(path, "tcp", transfer, is_member);
    let text = Command::new("tcpdump").args(["-nn", "-r"]).arg(&file).output().unwrap();
    fs::remove_file(&file).unwrap();
    String::from_utf8_lossy(&text.stdout)
        .lines()
        .filter(|line| line.contains("Flags"))
        .map(String::from)
        .collect()
}

/// How many have an option of ours of so many bytes behind its identifier; tcpdump prints them in hex.
fn with_option(lines: &[String], is_counted: impl Fn(&str) -> bool, bytes: usize) -> (usize, usize) {
    let counted: Vec<_> = lines.iter().filter(|line| is_counted(line)).collect();
    let has = |line: &str| {
        let option = line.split_once("unknown-253 0x5843").map(|(_, rest)| rest);
        option.is_some_and(|rest| rest.find([',', ']']) == Some(2 * bytes))
    };
    (counted.iter().filter(|line| has(line)).count(), counted.len())
}

#[test]
fn the_option_is_on_every_packet() {
    let mut path = path!("the_option_is_on_every_packet", Encoding::Option);
    let _host = enable!("the_option_is_on_every_packet", &path.config());
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    for address in ["10.0.2.2", "fd00:2::2"] {
        let port = path.serve(true);
        let lines = captured(&mut path, &format!("iperf3 -c {address} -p {port} -n 1M"), true);
        let (syns, all) = with_option(&lines, |line| line.contains("[S"), 4);
        assert_eq!((syns, all), (4, 4), "{address}");
        // Data to the server's port, and the ACKs for them.
        let [part, end, from] =
            [format!("{port}: Flags [.], seq"), format!("{port}: Flags [P.], seq"), format!("{port} > ")];
        let is_data = |line: &str| line.contains(&part) || line.contains(&end);
        let (data, all) = with_option(&lines, is_data, 16);
        assert!(data == all && data > 50, "{address}: {data} of {all} data packets");
        let is_ack = |line: &str| line.contains(&from) && line.contains("length 0") && line.contains("[.]");
        let (acks, all) = with_option(&lines, is_ack, 4);
        // The last ACK of each connection is that of TIME_WAIT, which is no socket any more; a FIN that is
        // repeated on a busy machine gets another.
        assert!(acks + 6 >= all && acks > 20, "{address}: {acks} of {all} ACKs");
        // The router counted itself: the lowest bit of the RTT word, after ExID and X.
        let counted = lines.iter().filter(|line| is_data(line)).all(|line| {
            line.split_once("unknown-253 0x5843")
                .is_some_and(|(_, rest)| rest.as_bytes().get(15) == Some(&b'1'))
        });
        assert!(counted, "{address}: a data packet without the router's count");
    }
}

#[test]
fn a_side_without_congestlab_gets_plain_tcp() {
    let mut path = path!("a_side_without_congestlab_gets_plain_tcp", Encoding::Option);
    let host = enable!("a_side_without_congestlab_gets_plain_tcp", &path.config());
    path.start_server("s", "iperf3 -s", false);
    let lines = captured(&mut path, "iperf3 -c 10.0.2.2 -n 1M", true);
    let (on_syns, _) = with_option(&lines, |line| line.contains("[S]"), 4);
    assert_eq!(on_syns, 2);
    assert_eq!(lines.iter().filter(|line| line.contains("unknown-253")).count(), 2, "only the SYNs have it");
    assert_eq!(host.counters().unwrap().fallbacks_no_option, 2);

    path.start_server("s", "iperf3 -s -p 5202", true);
    let lines = captured(&mut path, "iperf3 -c 10.0.2.2 -p 5202 -n 1M", false);
    assert!(lines.len() > 50 && !lines.iter().any(|line| line.contains("unknown-253")));
    assert_eq!(host.counters().unwrap().connections, 0);
}

#[test]
fn stripped_options_break_no_connection() {
    let mut path = path!("stripped_options_break_no_connection", Encoding::Option);
    let host = enable!("stripped_options_break_no_connection", &path.config());
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    path.start_server("s", "iperf3 -s", true);
    let nft = format!("{}strip.nft", path.cgroup.file_name().unwrap().display());
    let nft = std::env::temp_dir().join(nft);
    let rules = "table inet t { chain f { type filter hook forward priority 0; reset tcp option 253; }\n}\n";
    fs::write(&nft, rules).unwrap();

    let mut running =
        path.command("c", "iperf3 -c 10.0.2.2 -t 4", true).stdout(Stdio::null()).spawn().unwrap();
    path.until(&host, "XCP rules", |socket| socket.flow.law == Law::Xcp && socket.cwnd_packets > 5);
    let set = path.command("r", &format!("nft -f {}", nft.display()), false).output().unwrap();
    fs::remove_file(&nft).unwrap();
    if !set.status.success() {
        running.kill().unwrap();
        running.wait().unwrap();
        let reason = String::from_utf8_lossy(&set.stderr);
        return eprintln!("SKIP stripped_options_break_no_connection: nft: {}", reason.trim());
    }
    let socket = path.until(&host, "fallback", |socket| socket.flow.law == Law::Fallback);
    assert_eq!((socket.flow.reason, &*socket.congestion_control), (Some(Reason::Stripped), "cubic"));
    assert!(running.wait().unwrap().success());

    // From the SYN on.
    let before = host.counters().unwrap();
    path.run("c", "iperf3 -c 10.0.2.2 -n 1M", true);
    let after = host.counters().unwrap();
    assert_eq!(after.fallbacks_no_option - before.fallbacks_no_option, 2);
    assert_eq!(after.connections, before.connections);
}

#[test]
fn without_a_router_cubic_rules_until_one_answers() {
    let mut path = path!("without_a_router_cubic_rules_until_one_answers", Encoding::Option);
    let host = enable!("without_a_router_cubic_rules_until_one_answers", &path.config());
    path.falls_back_and_returns(&host);
}

#[test]
fn an_xcp_router_fills_the_link_without_a_drop() {
    let mut path = path!("an_xcp_router_fills_the_link_without_a_drop", Encoding::Option);
    let host = enable!("an_xcp_router_fills_the_link_without_a_drop", &path.config());
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    path.start_server("s", "iperf3 -s", true);
    let running =
        path.command("c", "iperf3 -c 10.0.2.2 -t 4 --json", true).stdout(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_secs(2));
    let socket = path.busiest(&host).unwrap();
    assert_eq!((socket.flow.law, socket.flow.routers, socket.flow.fallbacks), (Law::Xcp, 1, 0));
    let output = running.wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Of 20 Mbit/s of IP, 1428 B of 1500 are payload. Loose: other work may go on beside this.
    let received = result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!((12e6..19e6).contains(&received), "{received} bit/s");
    assert_eq!(result["end"]["sum_sent"]["retransmits"], 0);
}

/// Flows that go together: true for XCP's, how many, and from when to when, s.
type Group = (bool, u32, u64, u64);

/// Runs groups of flows over a link with two classes, 40 ms and a BDP of queue, and returns what a flow of XCP has of what one of TCP
/// has, by the bytes that leave the classes within a span, s. `None`: said why.
fn ratio(test: &str, rate: u64, control: &str, groups: &[Group], (from, to): (u64, u64)) -> Option<f64> {
    let rate = BitRate(rate);
    let forward = path::wire(PortConfig::new(UNLIMITED, 7 * path::DELAY, Limit::None));
    let mut path = match Path::over(Encoding::Option, forward) {
        Ok(path) => path,
        Err(reason) => {
            eprintln!("SKIP {test}: {reason}");
            return None;
        }
    };
    let _host = match host::enable(&path.config(), false) {
        Err(error @ Error::Missing { .. }) => {
            eprintln!("SKIP {test}: {error}");
            return None;
        }
        host => host.unwrap(),
    };
    let config = router::Config {
        rate,
        law: router::law(rate).beside(Weights::Flows).unwrap(),
        encoding: Encoding::Option,
        shape: Some(Queue::Bytes(rate.bytes().0 / 25)),
    };
    let router = path.namespace("r");
    let (_follower, classes) = router
        .run(|| {
            router::attach("s", &config).unwrap();
            let line = command::query("ip -o link show dev s").unwrap();
            let index = line.split(':').next().unwrap().parse().unwrap();
            // The follower's thread is in the namespace of the one that begins it.
            let follower = Follower::start("s", |line| panic!("{line}")).unwrap();
            (follower, [0xcc1_0010, 0xcc1_0020].map(|class| QdiscReader::of_class(index, class).unwrap()))
        })
        .unwrap();
    let ports: Vec<u16> = groups.iter().map(|(is_xcp, ..)| path.serve(*is_xcp)).collect();
    let (clock, mut running, mut before) = (Clock::start(), vec![], [0; 2]);
    let sent = || [0, 1].map(|class: usize| classes[class].read().unwrap().bytes);
    for now in 0..=to {
        for ((is_xcp, count, start, end), port) in
            groups.iter().zip(&ports).filter(|(group, _)| group.2 == now)
        {
            let control = if *is_xcp { String::new() } else { format!(" -C {control}") };
            let line = format!("iperf3 -c 10.0.2.2 -p {port} -P {count} -t {}{control}", end - start);
            running.push(path.command("c", &line, *is_xcp).stdout(Stdio::null()).spawn().unwrap());
        }
        if now == from {
            before = sent();
        }
        while now < to && clock.now() < (now + 1) * 1_000_000_000_000 {
            sleep(Duration::from_millis(5));
        }
    }
    let [xcp, tcp] = [0, 1].map(|class: usize| (sent()[class] - before[class]) as f64);
    let two = router.run(|| router::status(Some("s"))).unwrap().unwrap().remove(0).beside.unwrap();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    let flows = [true, false].map(|is_xcp| {
        groups.iter().filter(|group| group.0 == is_xcp).map(|group| f64::from(group.1)).sum::<f64>()
    });
    let ratio = xcp / flows[0] * flows[1] / tcp;
    let used = (xcp + tcp) * 8.0 / (to - from) as f64 / rate.0 as f64;
    eprintln!(
        "{test}: {control} {groups:?} from {from} to {to} s: ratio {ratio:.2}, used {used:.3}, {two:?}"
    );
    // Loose: other work may go on beside this.
    assert!((0.6..1.05).contains(&used), "{used}");
    assert!((two.xcp_flows - flows[0]).abs() <= 1.0 + flows[0] / 5.0, "{two:?}");
    Some(ratio)
}

/// The acceptance of docs/design/protocols.md 13.5. CONGESTLAB_BESIDE=full takes its link and more flows, and others than CUBIC, for six minutes.
#[test]
fn flows_of_xcp_and_of_tcp_have_as_much_of_a_link_with_two_classes() {
    let test = "flows_of_xcp_and_of_tcp_have_as_much_of_a_link_with_two_classes";
    let check = |rate, control: &str, groups: &[Group], span| {
        let ratio = ratio(test, rate, control, groups, span);
        assert!(ratio.is_none_or(|ratio| (0.7..=1.4).contains(&ratio)), "{control} {groups:?}: {ratio:?}");
    };
    if std::env::var("CONGESTLAB_BESIDE").is_ok_and(|value| value == "full") {
        for control in ["cubic", "reno", "bbr"] {
            for (xcp, tcp) in [(3, 30), (15, 15), (30, 3), (3, 1)] {
                check(45_000_000, control, &[(true, xcp, 0, 20), (false, tcp, 0, 20)], (10, 20));
            }
        }
        // Ten seconds after one kind has come.
        check(45_000_000, "cubic", &[(true, 3, 0, 30), (false, 1, 10, 30)], (20, 30));
        check(45_000_000, "cubic", &[(false, 3, 0, 30), (true, 3, 10, 30)], (20, 30));
        return;
    }
    check(20_000_000, "cubic", &[(true, 2, 0, 12), (false, 2, 0, 12)], (6, 12));
}

/// A router whose program is replaced all the while: the law goes on, and TCP notices nothing.
#[test]
fn a_transfer_goes_on_while_its_router_is_replaced() {
    let mut path = path!("a_transfer_goes_on_while_its_router_is_replaced", Encoding::Option);
    let host = enable!("a_transfer_goes_on_while_its_router_is_replaced", &path.config());
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    let sent: Vec<u8> =
        (0..12_000_000u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(&file, &sent).unwrap();
    let folder = folder.path().display();
    path.start_server("c", &format!("python3 -m http.server --bind 10.0.1.2 --directory {folder} 80"), true);
    let line = format!("curl -sS --speed-limit 1 --speed-time 2 -o {} http://10.0.1.2/file", copy.display());
    let mut running = path.command("s", &line, true).spawn().unwrap();
    let space = path.namespace("r");
    let look = || space.run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
    let (mut last, mut times, mut socket) = (look().sample, 0, None);
    let status = loop {
        if let Some(status) = running.try_wait().unwrap() {
            break status;
        }
        // Of another encoding, so that there is something to replace.
        let encoding = if times % 2 == 0 { Encoding::Both } else { Encoding::Option };
        let (rate, shape) = (BitRate(20_000_000), Some(Queue::Bytes(200_000)));
        let config = router::Config { rate, law: router::law(rate), encoding, shape };
        let done = space.run(|| router::replace("s", &config)).unwrap().unwrap();
        assert_eq!(done, router::Change::Replaced(State::Kept));
        let now = look().sample;
        assert!(now.intervals >= last.intervals && now.bytes >= last.bytes, "{last:?}, {now:?}");
        (last, times) = (now, times + 1);
        socket = path.busiest(&host).filter(|socket| socket.flow.window_bytes > 0).or(socket);
        sleep(Duration::from_millis(30));
    };
    // It gives up where nothing comes for two seconds.
    assert!(status.success(), "{status}");
    assert!(fs::read(&copy).unwrap() == sent, "what came is not what was sent");
    let flow = socket.expect("a connection was seen").flow;
    assert_eq!((flow.law, flow.fallbacks, look().queue.drops), (Law::Xcp, 0, 0));
    // One law has seen all of it.
    let now = look().sample;
    assert!(times >= 5 && now.bytes > sent.len() as u64 && now.intervals > times, "{times}: {now:?}");
    eprintln!("replaced {times} times: {now:?}");
}

#[test]
fn only_sockets_that_are_meant_speak() {
    let mut path = path!("only_sockets_that_are_meant_speak", Encoding::Option);
    let mut config = path.config();
    config.to = vec!["10.0.9.0/24".parse().unwrap(), "fd00:2::/64".parse().unwrap()];
    let host = enable!("only_sockets_that_are_meant_speak", &config);
    let port = path.serve(true);
    path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -n 100K"), true);
    assert_eq!(host.counters().unwrap().connections, 0, "of no prefix");
    let port = path.serve(true);
    path.run("c", &format!("iperf3 -c fd00:2::2 -p {port} -n 100K"), true);
    assert_eq!(host.counters().unwrap().connections, 4, "of the second prefix");
}

#[test]
fn an_application_chooses_by_name() {
    let mut path = path!("an_application_chooses_by_name", Encoding::Option);
    let config = Config { default: false, ..path.config() };
    let host = enable!("an_application_chooses_by_name", &config);
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    path.start_server("s", "iperf3 -s", true);
    let line = format!("iperf3 -c 10.0.2.2 -t 2 -C {}", config.name);
    let mut running = path.command("c", &line, true).stdout(Stdio::null()).spawn().unwrap();
    // iperf3 chooses for its data connection alone, and after that is established.
    path.until(&host, "XCP rules", |socket| socket.flow.law == Law::Xcp && socket.cwnd_packets > 5);
    let sockets = path.namespace("c").run(|| host.sockets()).unwrap().unwrap();
    assert_eq!(sockets.iter().filter(|socket| socket.flow.law == Law::Xcp).count(), 1, "{sockets:?}");
    assert!(running.wait().unwrap().success());

    // A server without congestlab: the choice is granted, and cubic does the work.
    path.start_server("s", "iperf3 -s -p 5202", false);
    path.run("c", &format!("iperf3 -c 10.0.2.2 -p 5202 -n 100K -C {}", config.name), true);
}

/// Whether a program of that host is loaded: all of them hold its configuration.
fn is_loaded(name: &str) -> bool {
    MapInfoIter::default().filter(|map| map.name == ".rodata.config").any(|map| {
        let Ok(map) = MapHandle::from_map_id(map.id) else { return false };
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        value.is_some_and(|value| value.starts_with(format!("{name}\0").as_bytes()))
    })
}

fn is_registered(name: &str) -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_whitespace().any(|word| word == name)
}

fn is_gone(name: &str) -> bool {
    // The kernel frees programs when all processors have passed a quiet moment: late, if it is busy.
    (0..600).any(|_| {
        sleep(Duration::from_millis(100));
        !is_loaded(name) && !is_registered(name)
    })
}

#[test]
fn nothing_is_left_when_it_is_dropped() {
    let mut path = path!("nothing_is_left_when_it_is_dropped", Encoding::Option);
    let name = path.config().name;
    let host = enable!("nothing_is_left_when_it_is_dropped", &path.config());
    assert!(is_loaded(&name) && is_registered(&name));
    path.start_server("s", "iperf3 -s", true);
    // Dropped below a connection, which goes on by the fallback.
    let mut running =
        path.command("c", "iperf3 -c 10.0.2.2 -t 2", true).stdout(Stdio::null()).spawn().unwrap();
    sleep(Duration::from_millis(500));
    drop(host);
    assert!(running.wait().unwrap().success());
    drop(path);
    assert!(is_gone(&name));
}

#[test]
fn what_stays_is_found_and_removed() {
    let path = path!("what_stays_is_found_and_removed", Encoding::Option);
    let mut config = path.config();
    config.to = vec!["10.0.2.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
    config.sender = host::sender_config(LossPolicy::Maintain);
    match host::enable(&config, true) {
        Err(error @ Error::Missing { .. }) => {
            return eprintln!("SKIP what_stays_is_found_and_removed: {error}");
        }
        result => drop(result.unwrap()),
    }
    let again = host::enable(&config, true);
    let status = host::status_of(&config.name);
    let gone = host::disable_named(&config.name);
    assert!(matches!(again, Err(Error::Input { .. })), "{again:?}");
    let details = status.unwrap().details.unwrap();
    assert_eq!((&*details.law, details.loss, &*details.fallback), (host::NAME, "maintain", "cubic"));
    assert_eq!(
        (&details.to, &details.cgroup),
        (&vec!["10.0.2.0/24".into(), "2001:db8::/32".into()], &path.cgroup)
    );
    gone.unwrap();
    assert!(is_gone(&config.name));
    assert!(!host::status_of(&config.name).unwrap().enabled);
    assert!(matches!(host::disable_named(&config.name), Err(Error::Input { .. })));
}

/// The kernel looks at a million instructions of a program and refuses it then. A fifth is kept for what newer kernels look at.
#[test]
fn every_law_and_reaction_to_loss_is_verified_with_a_margin() {
    let losses = [LossPolicy::Tcp, LossPolicy::Maintain, LossPolicy::Fallback];
    let codes = [mpcp::Loss::Tcp, mpcp::Loss::Maintain, mpcp::Loss::Ignore];
    let senders = [host::sender_config, host::xcp_r_config].into_iter().flat_map(|law| losses.map(law));
    let coded = [host::vcp_config, host::dpcp_config, host::tpcp_config];
    let coded = coded.into_iter().flat_map(|law| codes.map(law));
    let marked = [host::dctcp_config(), host::prague_config(), host::abc_config()];
    let path = path!("every_law_and_reaction_to_loss_is_verified_with_a_margin", Encoding::Option);
    for sender in senders.chain(coded).chain(marked) {
        let encoding =
            if [host::NAME, host::XCP_R].contains(&sender.name()) { Encoding::Option } else { Encoding::Ecn };
        let name = format!("{}_v{}", sender.name(), std::process::id() % 100_000);
        let config = Config { sender: sender.clone(), encoding, ..Config::new(name, &path.cgroup) };
        let _host = enable!("every_law_and_reaction_to_loss_is_verified_with_a_margin", &config);
        // Also those of tests beside this one: the same limit holds for them.
        let most = ProgInfoIter::default().max_by_key(|program| program.verified_insns).unwrap();
        assert!(
            most.verified_insns < 800_000,
            "{}: {} of {sender:?}",
            most.verified_insns,
            most.name.to_string_lossy()
        );
    }
}

/// By hand and by a file that is applied: what one has added the other leaves.
#[test]
fn peers_come_and_go_while_it_stands() {
    let mut path = path!("peers_come_and_go_while_it_stands", Encoding::Option);
    path.attach(20_000_000, Some(Queue::Packets(200)));
    let mut servers = [(); 3].map(|()| path.serve(true)).into_iter();
    let prefixes =
        |texts: &[&str]| -> Vec<Prefix> { texts.iter().map(|text| text.parse().unwrap()).collect() };
    let to = |texts: &[&str]| Config { to: prefixes(texts), ..path.config() };
    let name = path.config().name;
    let details = || host::status_of(&name).unwrap().details.unwrap();
    let mut transfer = || {
        let port = servers.next().unwrap();
        path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -n 100K"), true);
        details().counters.connections
    };
    if let Err(error @ Error::Missing { .. }) = host::enable(&to(&["10.9.0.0/16"]), true) {
        return eprintln!("SKIP peers_come_and_go_while_it_stands: {error}");
    }
    let mut work = || {
        let before = transfer();
        let more = host::enable(&to(&["10.0.2.0/24"]), true).map(|host| host.unwrap().has_more_peers());
        let after = transfer();
        assert_eq!((before, more.unwrap()), (0, true));
        assert!(after > 0, "a peer that was added is not spoken to");
        assert_eq!(details().to, ["10.0.2.0/24", "10.9.0.0/16"]);
        for refused in [to(&["10.9.0.0/16"]), to(&[]), Config { initial_window: 7, ..to(&["10.8.0.0/16"]) }] {
            let result = host::enable(&refused, true);
            assert!(matches!(result, Err(Error::Input { .. })), "{result:?}");
        }
        host::remove_named(&name, &prefixes(&["10.0.2.0/24"])).unwrap();
        assert_eq!(transfer(), after, "a peer that was removed is spoken to");
        for wrong in [&["10.0.2.0/24"], &["10.9.0.0/16"]] {
            let result = host::remove_named(&name, &prefixes(wrong));
            assert!(matches!(result, Err(Error::Input { .. })), "{result:?}");
        }

        let set = |added: &[&str], removed: &[&str]| host::Change::Set {
            added: prefixes(added),
            removed: prefixes(removed),
            interfaces: vec![],
        };
        let ensure = |texts: &[&str]| host::ensure(&to(texts)).unwrap();
        assert_eq!(ensure(&["10.9.0.0/16", "10.7.0.0/16"]), set(&["10.7.0.0/16"], &[]));
        assert_eq!(ensure(&["10.9.0.0/16", "10.7.0.0/16"]), host::Change::None);
        assert_eq!(ensure(&["10.6.0.0/16"]), set(&["10.6.0.0/16"], &["10.7.0.0/16"]));
        assert_eq!(details().to, ["10.6.0.0/16", "10.9.0.0/16"], "what was added by hand stays");
        let other = host::ensure(&Config { initial_window: 7, ..to(&["10.6.0.0/16"]) });
        assert!(matches!(other, Err(Error::Input { .. })), "{other:?}");
        host::disable_named(&name).unwrap();

        let config = to(&["10.5.0.0/16"]);
        assert_eq!(host::ensure(&config).unwrap(), host::Change::Enabled);
        assert_eq!(host::ensure(&config).unwrap(), host::Change::None);
        let other = Config { initial_window: 7, ..config };
        assert_eq!(host::ensure(&other).unwrap(), host::Change::Again);
    };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut work));
    let disabled = host::disable_named(&name);
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
    disabled.unwrap();
    assert!(is_gone(&name));
}

/// Two hosts in namespaces share what the kernel has once; the server listened before.
#[test]
fn a_named_namespace_is_a_host_of_its_own() {
    let mut path = path!("a_named_namespace_is_a_host_of_its_own", Encoding::Option);
    path.attach(20_000_000, Some(Queue::Packets(200)));
    let mut servers = [path.serve(true), path.serve(true)].into_iter();
    let [client, server] = ["c", "s"].map(|end| path.namespace(end));
    let mut transfer = || {
        let port = servers.next().unwrap();
        path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -n 200K"), true)
    };
    let config = path.config();
    let enable = |at: &Namespace, config: &Config| {
        at.run(|| host::enable(config, true).map(|host| host.unwrap().deaf_listeners())).unwrap()
    };
    let status = |at: &Namespace| at.run(|| host::status_of(&config.name)).unwrap().unwrap();
    let disable = |at: &Namespace| at.run(|| host::disable_named(&config.name)).unwrap();

    if let Err(error @ Error::Missing { .. }) = enable(&client, &config) {
        return eprintln!("SKIP a_named_namespace_is_a_host_of_its_own: {error}");
    }
    let connections = || status(&client).details.unwrap().counters.connections;
    transfer();
    let first = (connections(), status(&server).enabled);
    let outside = host::status_of(&config.name).unwrap().details.unwrap().scope;
    let other = Config { initial_window: 7, ..config.clone() };
    let (refused, joined) = (enable(&server, &other), enable(&server, &config));
    transfer();
    let spoken = connections();
    let away = (disable(&client), status(&client).enabled, status(&server).enabled);
    let last = (disable(&server), is_gone(&config.name));

    assert_eq!(first, (0, false), "one side alone is plain TCP");
    assert_eq!(outside, "namespace");
    assert!(matches!(refused, Err(Error::Input { .. })), "{refused:?}");
    let deaf = joined.unwrap();
    assert!(deaf > 0 || spoken > 0, "the server that listened before speaks XCP");
    away.0.unwrap();
    assert_eq!((away.1, away.2), (false, true));
    last.0.unwrap();
    assert!(last.1);
}

#[test]
fn a_wrong_configuration_is_refused() {
    let good = Config { fallback: "reno".into(), ..Config::new("xcp_refused", "/nowhere") };
    let names = ["", "tcp", "xcp-dash", "xcp_of_sixteen_b", "xcp space"];
    let wrong = names.map(|name| Config { name: name.into(), ..good.clone() });
    for config in wrong.iter().chain([
        &Config { initial_window: 0, ..good.clone() },
        &Config { interfaces: vec!["lo".into()], ..good.clone() },
    ]) {
        let refused = host::enable(config, false);
        assert!(matches!(refused, Err(Error::Input { .. })), "{config:?}: {refused:?}");
    }
    let absent = Config { fallback: "nobody".into(), ..good };
    assert!(matches!(host::enable(&absent, false), Err(Error::Missing { .. })));
}

#[test]
fn a_prefix_is_read_and_written() {
    for text in ["10.0.2.0/24", "0.0.0.0/0", "2001:db8::/32", "::/0"] {
        assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
    }
    assert_eq!("10.0.2.7".parse::<Prefix>().unwrap().to_string(), "10.0.2.7/32");
    for text in
        ["", "10.0.2", "10.0.2.0/33", "10.0.2.0/", "10.0.2.0/+8", "2001:db8::/129", "host/24", "10.0.2.0/8/8"]
    {
        assert!(matches!(text.parse::<Prefix>(), Err(Error::Input { .. })), "{text}");
    }
}

/// A router beside whom somebody lies.
const RATE: BitRate = BitRate(75_000_000);
/// Ten packets of 60 bytes a second: IP, TCP, and the option with the largest X, RTT and demand. They belong to no
/// connection, and their checksums are wrong.
const LIAR: &str = "python3 -c \"import socket,struct,time
s=socket.socket(socket.AF_INET,socket.SOCK_RAW,socket.IPPROTO_TCP)
p=struct.pack('>HHIIBBHHHBBHIIII',9,9,0,0,160,16,0,0,0,253,20,0x5843,2**32-1,2**32-16,2**31-1,0)
while True:s.sendto(p,('10.0.2.2',0));time.sleep(.1)\"";

impl Path {
    /// What a connection gets in 8 s that starts beside one that is there, and what the router has counted.
    fn starting(&mut self, bound_headers: bool) -> (f64, router::Sample) {
        let law = LinkConfig { bound_headers, capacity: RATE.bytes(), ..LinkConfig::DEFAULT };
        let law = router::Law::Xcp(law);
        let shape = Some(Queue::default_for(RATE));
        let config = router::Config { rate: RATE, law, encoding: Encoding::Option, shape };
        let space = self.namespace("r");
        space.run(|| router::attach("s", &config)).unwrap().unwrap();
        let mut other = self.command("c", "iperf3 -c 10.0.2.2 -p 5202 -t 60", true);
        let mut other = other.stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_secs(2));
        let said = self.run("c", "iperf3 -c 10.0.2.2 -t 8 -J", true);
        other.kill().unwrap();
        other.wait().unwrap();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let got = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
        let status = space.run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
        space.run(|| router::detach("s")).unwrap().unwrap();
        (got, status.sample)
    }
}

#[test]
fn a_connection_that_starts_beside_a_liar_gets_its_part() {
    let test = "a_connection_that_starts_beside_a_liar_gets_its_part";
    let mut path = path!("a_connection_that_starts_beside_a_liar_gets_its_part", Encoding::Option);
    let host = enable!("a_connection_that_starts_beside_a_liar_gets_its_part", &path.config());
    for port in [5201, 5202] {
        path.start_server("s", &format!("iperf3 -s -p {port}"), true);
    }
    let (quiet, before) = path.starting(true);
    path.start("c", LIAR, false);
    let (open, unbounded) = path.starting(false);
    assert_eq!(unbounded.bounded_packets, 0);
    assert!(open < 0.5 * quiet, "{open} of {quiet} bit/s");
    // Whatever else the machine does takes from a connection, too, but not every time.
    let mut best = 0.0f64;
    for _ in 0..3 {
        let (bound, sample) = path.starting(true);
        println!("{test}: {quiet:.0} bit/s; with a liar {bound:.0}, if it is believed {open:.0}");
        assert!(sample.bounded_packets > 50 && before.bounded_packets < 50, "{before:?}, {sample:?}");
        best = best.max(bound);
        if best > 0.9 * quiet {
            break;
        }
    }
    assert!(best > 0.9 * quiet, "{best} of {quiet} bit/s");
    assert!(host.counters().unwrap().connections >= 6);
}

/// Datagrams of 1400 bytes to nobody, four in a millisecond.
const DEAF: &str = "python3 -c \"import socket,time
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)
while True:
 for _ in range(4):s.sendto(bytes(1372),('10.0.2.2',9))
 time.sleep(.001)\"";

/// Segments of 1400 bytes of one flow, four in a millisecond, whatever links say. Their headers state an X that is five times
/// as large, a round trip that is twenty times as long, and ask for all. Checksums are wrong, so nobody answers.
const DEAF_LIAR: &str = "python3 -c \"import socket,struct,time
s=socket.socket(socket.AF_INET,socket.SOCK_RAW,socket.IPPROTO_TCP)
x,rtt=(int(2**28*t)//16*16 for t in (5*.00025,20*.011))
p=struct.pack('>HHIIBBHHHBBHIIII',9,10,0,0,160,16,0,0,0,253,20,0x5843,x,rtt,2**31-1,0)+bytes(1340)
while True:
 for _ in range(4):s.sendto(p,('10.0.2.2',0))
 time.sleep(.001)\"";

/// Three connections beside somebody who would fill the link alone, before a policer. Returns the part that they have of three
/// of four shares; the router says whom it holds, by protocol and port.
fn beside(test: &str, path: &mut Path, attacker: &str, named: (u8, u16)) -> f64 {
    let rate = BitRate(20_000_000);
    let law = LinkConfig { capacity: rate.bytes(), ..LinkConfig::DEFAULT };
    let (law, shape) = (router::Law::Policed(law, 1024), Some(Queue::default_for(rate)));
    let config = router::Config { rate, law, encoding: Encoding::Option, shape };
    let space = path.namespace("r");
    space.run(|| router::attach("s", &config)).unwrap().unwrap();
    let status = || space.run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);

    // Alone they are no offence, from the first round trip on.
    let port = path.serve(true);
    path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -P 3 -t 3"), true);
    let counted = status().sample.policed.unwrap();
    assert_eq!((counted.policed_flows, counted.policed_packets), (0, 0), "{counted:?}");

    path.start("c", attacker, false);
    let port = path.serve(true);
    let said = path.run("c", &format!("iperf3 -c 10.0.2.2 -p {port} -P 3 -t 6 -O 10 -J"), true);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let got = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    let status = status();
    let table = status.police.unwrap();
    println!("{test}: {got:.0} bit/s of 20 Mbit/s; {:?}, {:?}", status.sample.policed, table.held);
    let [held] = table.held[..] else { panic!("{table:?}") };
    assert_eq!((held.protocol, held.to_port), named, "{held:?}");
    // A share of 20 Mbit/s is 5 Mbit/s, of which 1388 of 1500 bytes are data.
    got / (15e6 * 1388.0 / 1500.0)
}

#[test]
fn connections_keep_their_share_beside_datagrams_that_do_not_listen() {
    let test = "connections_keep_their_share_beside_datagrams_that_do_not_listen";
    let mut path =
        path!("connections_keep_their_share_beside_datagrams_that_do_not_listen", Encoding::Option);
    let _host = enable!("connections_keep_their_share_beside_datagrams_that_do_not_listen", &path.config());
    let part = beside(test, &mut path, DEAF, (17, 9));
    assert!(part > 0.9, "{part}");
}

/// The attacker speaks XCP, overstates what it needs and does nothing that it is told.
#[test]
fn connections_keep_their_share_beside_headers_that_lie() {
    let test = "connections_keep_their_share_beside_headers_that_lie";
    let mut path = path!("connections_keep_their_share_beside_headers_that_lie", Encoding::Option);
    let _host = enable!("connections_keep_their_share_beside_headers_that_lie", &path.config());
    let part = beside(test, &mut path, DEAF_LIAR, (6, 10));
    assert!(part > 0.75, "{part}");
}
