//! XCP's law on an interface with several hardware queues: packets pass on two processors at once, each of which adds up
//! by itself.
//!
//! Skips with the reason where the privilege, the kernel's part or a second processor is missing.

#[expect(dead_code, reason = "other tests want other frames")]
mod frames;
mod lab;
#[macro_use]
#[expect(dead_code, unused_macros, reason = "other tests want other paths")]
mod path;

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::process::Stdio;
use std::thread::{scope, sleep};
use std::time::Duration;

use congestlab_core::law::xcp::Header;
use congestlab_core::units::{BitRate, SECOND};
use congestlab_core::wire::option::{Echo, Option as XcpOption};
use congestlab_linux::Error;
use congestlab_linux::host::{self, Encoding};
use congestlab_linux::link::Clock;
use congestlab_linux::router::{self, Config, Law, Program, Queue};
use congestlab_linux::sys::command::{query, run};
use congestlab_net::port::PortConfig;
use congestlab_net::queue::Limit;
use congestlab_net::service::Service;
use frames::{Ip, segment};
use lab::Lab;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use path::Path;
use rustix::thread::{CpuSet, sched_setaffinity};

const RATE: BitRate = BitRate(20_000_000);

fn config(rate: BitRate, shape: Option<Queue>) -> Config {
    Config { rate, law: router::law(rate), encoding: Encoding::Option, shape }
}

/// Lets the calling thread run on one processor alone; false: there is no such.
fn pin(processor: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).is_ok()
}

fn data() -> Vec<u8> {
    let header = Header { x: 5_000, rtt: 0x00a3_d700, delta: 1_000_000, reverse: 0 };
    let (bytes, length) = XcpOption::Data { header, routers: 0, echo: Echo { routers: 3, sum: 77 } }.emit();
    segment(&[], Ip::V4, &bytes[..length], &[0xab; 960])
}

/// Two processors pass packets through one program at the same time, and an interval ends: nothing that they counted is lost,
/// and the law has measured what came to both.
#[test]
fn two_processors_count_at_once_and_nothing_is_lost() {
    let test = "two_processors_count_at_once_and_nothing_is_lost";
    const TIMES: usize = 100;
    const REPEAT: u32 = 2_000;
    let rate = BitRate(100_000_000_000);
    let mut config = config(rate, None);
    config.law = config.law.per_cpu().unwrap();
    let Law::PerCpu(law) = &mut config.law else { panic!("XCP's") };
    // The first interval ends at a time that is drawn, within this one.
    law.initial_interval = congestlab_core::units::Duration(4 * SECOND);
    // The law's clock begins between two moments, and the interval ends between two.
    let clock = Clock::start();
    let mut program = match Program::load(config.law.object(), &config, 14, 0) {
        Err(Error::Missing { what, help }) => return eprintln!("SKIP {test}: {what}; {help}"),
        other => other.unwrap(),
    };
    let mut began = (0, clock.now());
    while program.phases()[0] < 2 * SECOND {
        began.0 = clock.now();
        program.restart(&config).unwrap();
        began.1 = clock.now();
    }
    let program = &program;
    let sent = data();
    let both = scope(|scope| {
        let threads = [0, 1].map(|processor| {
            let sent = &sent;
            scope.spawn(move || {
                pin(processor) && (0..TIMES).all(|_| program.pass(sent, &mut [], REPEAT).is_ok())
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    if both != [true, true] {
        return eprintln!("SKIP {test}: there are no two processors");
    }
    let sample = program.sample().unwrap();
    let packets = 2 * TIMES as u64 * u64::from(REPEAT);
    assert_eq!((sample.packets, sample.xcp_packets, sample.refused_packets), (packets, packets, 0));
    let bytes = packets * (sent.len() as u64 - 14);
    assert_eq!(sample.bytes, bytes);
    if sample.intervals > 0 {
        return eprintln!(
            "SKIP times of {test}: the machine is too busy, so the interval ended before the packets did"
        );
    }

    while clock.now() < began.1 + 1000 * program.phases()[0] {
        sleep(Duration::from_millis(5));
    }
    let before = clock.now();
    program.pass(&sent, &mut [], 1).unwrap();
    let span = (before - began.1, clock.now() - began.0);
    let sample = program.sample().unwrap();
    assert_eq!(sample.intervals, 1);
    // The packet that ends the interval counts in the next one.
    let measured = |span| sample.input_Bps as f64 * span as f64 / 1e12;
    let (least, most) = (measured(span.0) / 1.001, measured(span.1) * 1.001);
    assert!(
        (least..=most).contains(&(bytes as f64)),
        "{sample:?} in {span:?} ps: {least} to {most}, not {bytes} B"
    );
}

/// As the lab's interfaces, with two queues of v0, each of which has a shaper.
fn queues(rate: &str) {
    run("ip link add q0 numtxqueues 2 type veth peer name q1").unwrap();
    for end in ["q1", "q0"] {
        run(&format!("ip link set {end} up")).unwrap();
    }
    run("ip address add 10.78.0.1/24 dev q0").unwrap();
    run("ip neighbour add 10.78.0.2 lladdr 02:00:00:00:00:02 dev q0").unwrap();
    run("tc qdisc add dev q0 root handle 1: mq").unwrap();
    for queue in [1, 2] {
        run(&format!("tc qdisc replace dev q0 parent 1:{queue} tbf rate {rate} burst 5kb limit 1mb"))
            .unwrap();
    }
}

#[test]
fn an_interface_with_several_queues_has_a_law_in_parts() {
    let test = "an_interface_with_several_queues_has_a_law_in_parts";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        queues("100kbit");
        let before = query("tc qdisc show dev q0").unwrap();
        match router::attach("q0", &config(RATE, None)) {
            Err(error @ Error::Missing { .. }) => return eprintln!("SKIP {test}: {error}"),
            other => other.unwrap(),
        }
        let status = || router::status(Some("q0")).unwrap().remove(0);
        let first = status();
        assert_eq!((first.per_cpu, first.shaped, &*first.qdisc, &*first.law), (true, false, "mq", "xcp"));
        assert_eq!(query("tc qdisc show dev q0").unwrap(), before);

        // Flows of which some wait in one queue and some in the other, and nearly nothing leaves either; none has more on its
        // way than its socket lets it.
        let sockets: Vec<_> = (0..16).map(|_| UdpSocket::bind("10.78.0.1:0").unwrap()).collect();
        let (mut sent, mut queued) = (0, 0);
        for _ in 0..40 {
            for socket in &sockets {
                socket.send_to(&[0; 972], "10.78.0.2:9").unwrap();
                sent += 1;
            }
            // An interval of 50 ms ends within four turns, on a busy machine too.
            sleep(Duration::from_millis(15));
            queued = queued.max(status().sample.persistent_queue_bytes);
        }
        let last = status();
        assert_eq!(last.sample.packets - first.sample.packets, sent);
        assert!(last.sample.intervals > 5 && last.sample.input_Bps > 0, "{last:?}");
        // The law knows of both queues, as they were an interval before.
        let waits = last.queue.queue_bytes;
        assert!(waits > 400_000 && (3 * waits / 4..=waits).contains(&queued), "{queued} of {waits} B");

        assert_eq!(router::replace("q0", &config(RATE, None)).unwrap(), router::Change::None);
        router::set_rate("q0", BitRate(10_000_000)).unwrap();
        assert_eq!(status().sample.capacity_bps, 10_000_000);
        router::detach("q0").unwrap();
        assert_eq!(query("tc qdisc show dev q0").unwrap(), before);

        // What the device says it carries, less what Ethernet has around packets; veth's driver says 10 Gbit/s.
        assert_eq!(router::shaped_rate("q0").unwrap(), BitRate(10_000_000_000 * 1500 / 1538));
        // With a shaper of its own all packets wait for that, and the law is whole.
        run("tc qdisc del dev q0 root").unwrap();
        router::attach("q0", &config(RATE, Some(Queue::Packets(100)))).unwrap();
        assert!(!status().per_cpu);
        router::detach("q0").unwrap();

        // A queue that does not say how much waits; and other laws want one queue.
        run("tc qdisc add dev q0 root handle 1: mq").unwrap();
        run("tc qdisc replace dev q0 parent 1:1 bfifo limit 1mb").unwrap();
        run("tc qdisc replace dev q0 parent 1:2 handle 12: pfifo_fast").unwrap();
        let error = router::attach("q0", &config(RATE, None)).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("hardware queue"), "{error}");
        let pxcp = Config { law: router::pxcp(RATE), ..config(RATE, None) };
        let error = router::attach("q0", &pxcp).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("mq"), "{error}");
    });
}

/// Another client, d, whose packets the router forwards on the second processor, as those of c on the first.
struct Second(String);

impl Second {
    fn new(path: &Path) -> Self {
        let id = &path.id;
        let second = Self(format!("{id}d"));
        path::ip(&format!("ip netns add {id}d"));
        path::ip(&format!("ip -n {id}d link set lo up"));
        path::ip(&format!("ip -n {id}d link add eth0 type veth peer name c2 netns {id}r"));
        path::ip(&format!("ip -n {id}d addr add 10.0.3.2/24 dev eth0"));
        path::ip(&format!("ip -n {id}r addr add 10.0.3.1/24 dev c2"));
        for (space, device) in [("d", "eth0"), ("r", "c2")] {
            path::ip(&format!("ip -n {id}{space} link set {device} up"));
            let offloads = congestlab_linux::sys::offload::Offloads::off;
            path.namespace(space).run(|| offloads(device).unwrap().keep()).unwrap();
        }
        path::ip(&format!("ip -n {id}d route add default via 10.0.3.1"));
        // ACKs, and so the packets that they allow.
        for (space, mask) in [("c", 1), ("d", 2)] {
            path.run(
                space,
                &format!("sh -c 'echo {mask} > /sys/class/net/eth0/queues/rx-0/rps_cpus'"),
                false,
            );
        }
        second
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = query(&format!("ip netns delete {}", self.0));
    }
}

/// Maps of programs in parts.
fn maps() -> BTreeSet<u32> {
    MapInfoIter::default().filter(|map| map.name == "parts").map(|map| map.id).collect()
}

/// What two clients get, bit/s, with the law in parts or behind a lock; and packets by processor.
fn shares(test: &str, in_parts: bool) -> Option<([f64; 2], Vec<u64>)> {
    // The device is as fast as the law is told, and has room for 100 packets.
    let rate = BitRate(RATE.0 + RATE.0 / 50);
    let port = PortConfig::new(Service::Fixed(rate), path::DELAY, Limit::Packets(100));
    let mut path = match Path::with_queues(Encoding::Option, path::wire(port), 2) {
        Ok(path) => path,
        Err(reason) => {
            eprintln!("SKIP {test}: {reason}");
            return None;
        }
    };
    let _second = Second::new(&path);
    let _host = match host::enable(&path.config(), false) {
        Err(error @ Error::Missing { .. }) => {
            eprintln!("SKIP {test}: {error}");
            return None;
        }
        host => host.unwrap(),
    };
    let before = maps();
    let router = path.namespace("r");
    if in_parts {
        path::ip(&format!("tc -n {} qdisc add dev s root handle 1: mq", router.name()));
        for queue in [1, 2] {
            path::ip(&format!(
                "tc -n {} qdisc replace dev s parent 1:{queue} bfifo limit 200kb",
                router.name()
            ));
        }
    }
    path.attach(RATE.0, if in_parts { None } else { Some(Queue::Bytes(200_000)) });
    let ports = [path.serve(true), path.serve(true)];
    let running = [("c", 0), ("d", 1)].map(|(client, processor)| {
        let port = ports[processor];
        let line = format!("taskset -c {processor} iperf3 -c 10.0.2.2 -p {port} -P 2 -O 3 -t 6 -J");
        path.command(client, &line, true).stdout(Stdio::piped()).spawn().unwrap()
    });
    let got = running.map(|child| {
        let said = child.wait_with_output().unwrap().stdout;
        let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
        assert_eq!(said["end"]["sum_sent"]["retransmits"], 0, "{said}");
        said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap()
    });
    let status = router.run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
    assert_eq!(status.per_cpu, in_parts);
    let new: Vec<u32> = maps().difference(&before).copied().collect();
    let counts = new.iter().filter_map(|id| MapHandle::from_map_id(*id).ok()).flat_map(|map| {
        let parts = map.lookup_percpu(&[0; 4], MapFlags::ANY).unwrap().unwrap();
        parts.into_iter().map(|part| u64::from_ne_bytes(part[..8].try_into().unwrap())).collect::<Vec<_>>()
    });
    let counts: Vec<u64> = counts.collect();
    let wire = path.end().unwrap();
    println!(
        "{test}: in parts {in_parts}: {got:.0?} bit/s, queue of {:.1} packets, most {}, {} dropped, {counts:?} packets, {:?}",
        wire.forward.queue_mean_packets.unwrap_or(0.0),
        wire.forward.queue_max_packets,
        wire.forward.drops,
        wire.doubts
    );
    assert_eq!(wire.forward.drops, 0);
    Some((got, counts))
}

/// Two flows of each client share the capacity that the law is told, and it makes no difference that they pass on two processors.
#[test]
fn flows_on_two_processors_share_a_link() {
    let test = "flows_on_two_processors_share_a_link";
    let Some((locked, _)) = shares(test, false) else { return };
    let Some((parts, counts)) = shares(test, true) else { return };
    let [used, without] =
        [parts, locked].map(|got| got.iter().sum::<f64>() / RATE.0 as f64 / (1428.0 / 1500.0));
    let difference = (parts[0] - parts[1]).abs() / (parts[0] + parts[1]);
    println!("{test}: used {used:.3}, with a lock {without:.3}; difference of the clients {difference:.3}");
    // Loose: other work may go on beside this.
    assert!(used > 0.9 && used > without - 0.05, "{used}, with a lock {without}");
    assert!(difference < 0.1, "{parts:?}");
    // Both have passed them.
    let (all, least) = (counts.iter().sum::<u64>(), counts.iter().take(2).min().copied().unwrap_or(0));
    assert!(least > all / 5, "{counts:?}");
}
