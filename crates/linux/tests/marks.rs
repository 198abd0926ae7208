//! DCTCP, TCP Prague and ABC on hosts in namespaces: the kernel's senders and receivers run the laws of the simulator, over a link in
//! user space that marks, and over a router whose law is ABC's, or a queue law that marks before the queue.
//!
//! Skips with the reason where the privilege, a tool or the kernel's part is missing.

use std::path::Path as File;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use congestlab_core::law::Protocol;
use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::host::{self, Encoding, Host, Law, Reason, Sender};
use congestlab_linux::link::Report;
use congestlab_linux::router::{self, AnyLaw, Queue};
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

#[macro_use]
#[expect(dead_code, reason = "other tests look at packets, and at falling back on the way")]
mod path;
use path::{Path, ip, wire};

const RATE: u64 = 20_000_000;
const SECONDS: u64 = 10;

/// One flow of the law over the link of these hosts, with this discipline.
fn scenario(law: &str, discipline: &str) -> Scenario {
    let text = format!(
        "[run]\nduration = \"{SECONDS} s\"\nwarmup = \"2 s\"\n\
         [links.link]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"400 packets\"\ndiscipline = {discipline}\n\
         [flows.ftp]\nlaw = \"{law}\"\npath = [\"link\"]\nsegment = \"1500 B\"\nack = \"60 B\"\nmin_rto = \"200 ms\"\n\
         initial_window = 10\n"
    );
    Scenario::parse("marks", &text, File::new("/"), &[], Some(1)).unwrap_or_else(|error| panic!("{error}"))
}

/// Hosts with the law, which have inserted themselves at both ends; `None` with the reason told.
fn hosts(test: &str, path: &mut Path, sender: Sender) -> Option<Host> {
    path.sender = Some(sender);
    // Negotiated, which is the harder case: a mark that stays would be CE to the kernel's own ECN.
    for end in ["c", "s"] {
        ip(&format!("ip netns exec {}{end} sysctl -qw net.ipv4.tcp_ecn=1", path.id));
    }
    let mut host = match host::enable(&path.config(), false) {
        Ok(host) => host.unwrap(),
        Err(error @ Error::Missing { .. }) => {
            eprintln!("SKIP {test}: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    for end in ["c", "s"] {
        path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
    }
    Some(host)
}

/// Goodput of a transfer, bit/s, of all but its first two seconds; its law ruled throughout.
fn transfer(path: &mut Path, host: &Host, address: &str) -> f64 {
    let port = path.serve(true);
    let name = path.config().name;
    let mut client = path.command("c", &format!("iperf3 -c {address} -p {port} -t {SECONDS} -O 2 -J"), true);
    let transfer = thread::spawn(move || client.output().unwrap());
    let socket =
        path.until(host, "the law", |socket| socket.flow.law == Law::Xcp && socket.cwnd_packets > 10);
    assert_eq!((socket.flow.encoding, &*socket.congestion_control), (Encoding::Ecn, &*name));
    assert!(socket.flow.negotiated && socket.flow.fallbacks == 0, "{socket:?}");
    let output = transfer.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{json}"))
}

/// Sends with the law over a link in user space that is the simulation's own, IPv4 and IPv6; what the link says, the goodputs of
/// these and of the simulation, and the mean queues of both.
fn over_a_link(
    test: &str,
    law: &str,
    sender: Sender,
    discipline: &str,
) -> Option<(Report, [f64; 3], [f64; 2])> {
    let scenario = scenario(law, discipline);
    let model = scenario.model(&Measure::default());
    let mut path = match Path::over(Encoding::Ecn, wire(model.links[0].port.clone())) {
        Ok(path) => path,
        Err(reason) => {
            eprintln!("SKIP {test}: {reason}");
            return None;
        }
    };
    let host = hosts(test, &mut path, sender)?;
    let real = ["10.0.2.2", "fd00:2::2"].map(|address| transfer(&mut path, &host, address));
    let counters = host.counters().unwrap();
    assert!(counters.shims_sent > 1000 && counters.shims_received > 1000, "{counters:?}");
    assert_eq!(counters.unwritten + counters.fallbacks_stripped + counters.fallbacks_loss, 0, "{counters:?}");
    let report = path.end().unwrap();
    if !report.trustworthy {
        // A machine that forwards packets late has other round trips.
        eprintln!("SKIP times of {test}: {}", report.doubts.join("; "));
        return None;
    }
    let outcome = sim::run(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| {});
    let result = congestlab_scenario::result::RunResult::new(
        &scenario,
        &outcome,
        congestlab_scenario::result::Meta::default(),
    );
    let json = result.to_json();
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{json}"));
    let goodput = number(&json["flows"]["ftp"][0]["goodput_bps"]);
    let queues =
        [report.forward.queue_mean_packets.unwrap(), number(&json["links"]["link"]["queue_mean_packets"])];
    let goodputs = [real[0], real[1], goodput];
    eprintln!("real and simulated: {goodputs:?} bit/s, {queues:?} packets; {} marks", report.forward.marks);
    Some((report, goodputs, queues))
}

/// Payload of packets of 1500 bytes that fill the link, less what the marks may cost.
fn is_full(goodput: f64) -> bool {
    goodput > 0.9 * RATE as f64
}

#[test]
fn dctcp_holds_a_queue_at_the_threshold_of_a_link_that_marks() {
    let test = "dctcp_holds_a_queue_at_the_threshold_of_a_link_that_marks";
    let Some((report, goodputs, [real, queue])) =
        over_a_link(test, "dctcp", host::dctcp_config(), "{ step = { sojourn = \"4 ms\" } }")
    else {
        return;
    };
    assert!(goodputs.iter().all(|&goodput| is_full(goodput)), "{goodputs:?}");
    // 4 ms are 6.7 packets; CUBIC fills 400.
    assert!(report.forward.marks > 100 && report.forward.drops == 0, "{report:?}");
    assert!(real > 1.0 && (real - queue).abs() < 4.0, "real {real}, simulated {queue} packets");
}

#[test]
fn prague_has_a_short_queue_beside_dualpi2() {
    let test = "prague_has_a_short_queue_beside_dualpi2";
    let Some((report, goodputs, [real, queue])) =
        over_a_link(test, "prague", host::prague_config(), "\"dualpi2\"")
    else {
        return;
    };
    assert!(goodputs.iter().all(|&goodput| goodput > 0.8 * goodputs[2]), "{goodputs:?}");
    assert!(report.forward.marks > 100 && report.forward.drops == 0, "{report:?}");
    assert!((real - queue).abs() < 4.0, "real {real}, simulated {queue} packets");
}

#[test]
fn abc_fills_a_router_that_says_when_to_brake() {
    let test = "abc_fills_a_router_that_says_when_to_brake";
    let mut path = path!("abc_fills_a_router_that_says_when_to_brake", Encoding::Ecn);
    let Some(host) = hosts(test, &mut path, host::abc_config()) else { return };
    let law = AnyLaw::new(Protocol::of("abc").unwrap(), BitRate(RATE), None).unwrap();
    let config = router::Config {
        rate: BitRate(RATE),
        encoding: law.encoding(),
        law: router::Law::Any(Box::new(law)),
        shape: Some(Queue::Bytes(600_000)),
    };
    path.namespace("r").run(|| router::attach("s", &config)).unwrap().unwrap();
    for address in ["10.0.2.2", "fd00:2::2"] {
        let goodput = transfer(&mut path, &host, address);
        eprintln!("goodput {goodput}");
        assert!(is_full(goodput), "{goodput}");
    }
    let status = path.namespace("r").run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
    assert_eq!(status.queue.drops, 0, "{status:?}");
    assert!(status.sample.xcp_packets > 1000, "{status:?}");
}

/// A transfer of some seconds over a router with this queue law, IPv4 or IPv6, by hosts with a law or by the kernel's CUBIC with
/// ECN: goodput, mean queue in packets behind the first two seconds, and what the router says.
fn over_a_router(
    test: &str,
    sender: Option<Sender>,
    (name, settings): (&str, &[&str]),
    address: &str,
) -> Option<(f64, f64, router::Status)> {
    let mut path = match Path::new(Encoding::Ecn) {
        Ok(path) => path,
        Err(reason) => {
            eprintln!("SKIP {test}: {reason}");
            return None;
        }
    };
    let is_member = sender.is_some();
    let host = match sender {
        Some(sender) => Some(hosts(test, &mut path, sender)?),
        None => {
            for end in ["c", "s"] {
                ip(&format!("ip netns exec {}{end} sysctl -qw net.ipv4.tcp_ecn=1", path.id));
            }
            None
        }
    };
    let mut law = AnyLaw::queue(name, BitRate(RATE)).unwrap();
    law.set(&settings.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    let config = router::Config {
        rate: BitRate(RATE),
        encoding: law.encoding(),
        law: router::Law::Any(Box::new(law)),
        shape: Some(Queue::Packets(400)),
    };
    let space = path.namespace("r");
    match space.run(|| router::attach("s", &config)).unwrap() {
        Err(error @ Error::Missing { .. }) => {
            eprintln!("SKIP {test}: {error}");
            return None;
        }
        done => done.unwrap(),
    }
    let reader = space.run(|| router::Reader::open("s")).unwrap().unwrap();
    let port = path.serve(is_member);
    let line = format!("iperf3 -c {address} -p {port} -t 4 -O 2 -J");
    let mut client = path.command("c", &line, is_member);
    let transfer = thread::spawn(move || client.output().unwrap());
    thread::sleep(Duration::from_secs(2));
    let mut packets = vec![];
    while !transfer.is_finished() {
        let (_, queue) = reader.sample().unwrap();
        if queue.queue_packets > 0 || packets.len() < 100 {
            packets.push(queue.queue_packets);
        }
        thread::sleep(Duration::from_millis(20));
    }
    let output = transfer.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    if let Some(host) = &host {
        let counters = host.counters().unwrap();
        assert!(counters.shims_sent > 1000 && counters.fallbacks_loss == 0, "{counters:?}");
    }
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let goodput = json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{json}"));
    let mean = packets.iter().sum::<u64>() as f64 / packets.len() as f64;
    let status = space.run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
    let marks = status.series["marked_packets"];
    eprintln!(
        "{name} over {address}: {goodput} bit/s, {mean} packets, {marks} marks of {}",
        status.sample.packets
    );
    Some((goodput, mean, status))
}

/// 4 ms are 6.7 packets; 400 have room.
#[test]
fn a_router_with_step_marking_holds_the_queue_of_dctcp_at_the_threshold() {
    let test = "a_router_with_step_marking_holds_the_queue_of_dctcp_at_the_threshold";
    for (address, setting) in [("10.0.2.2", "sojourn=4 ms"), ("fd00:2::2", "packets=6")] {
        let told = ("step", &[setting][..]);
        let Some((goodput, mean, status)) = over_a_router(test, Some(host::dctcp_config()), told, address)
        else {
            return;
        };
        assert!(is_full(goodput), "{goodput}");
        assert!(mean > 1.0 && mean < 14.0, "{mean} packets at a threshold of 6.7");
        assert!(status.series["marked_packets"] > 100.0, "{status:?}");
        assert_eq!((status.queue.drops, status.series["dropped_packets"]), (0, 0.0), "{status:?}");
        assert!(status.sample.xcp_packets > 1000 && status.law == "step", "{status:?}");
    }
}

/// One queue for senders of both kinds, one after the other: Prague, and the kernel's CUBIC with ECN. 5 ms are 8.3 packets.
#[test]
fn a_router_with_a_controller_of_the_wait_marks_prague_and_cubic() {
    let test = "a_router_with_a_controller_of_the_wait_marks_prague_and_cubic";
    let law = ("pi2", &["target=5 ms"][..]);
    for (sender, address) in [(Some(host::prague_config()), "fd00:2::2"), (None, "10.0.2.2")] {
        let Some((goodput, mean, status)) = over_a_router(test, sender, law, address) else { return };
        assert!(goodput > 0.8 * RATE as f64, "{address}: {goodput}");
        assert!(mean > 1.0 && mean < 25.0, "{address}: {mean} packets, of 400 that have room");
        assert!(status.series["marked_packets"] >= 10.0, "{status:?}");
        assert_eq!((status.queue.drops, status.series["dropped_packets"]), (0, 0.0), "{status:?}");
    }
}

#[test]
fn a_peer_that_counts_no_marks_gets_cubic() {
    for sender in [host::dctcp_config(), host::prague_config(), host::abc_config()] {
        let mut path = path!("a_peer_that_counts_no_marks_gets_cubic", Encoding::Ecn);
        let name = sender.name();
        path.sender = Some(sender);
        let mut host = enable!("a_peer_that_counts_no_marks_gets_cubic", &path.config());
        path.namespace("c").run(|| host.insert_at("eth0")).unwrap().unwrap();
        // The server's processes are no members of the control group.
        path.start_server("s", "iperf3 -s", false);
        path.start("c", "iperf3 -c 10.0.2.2 -t 5", true);
        let socket = path.until(&host, "fallback", |socket| socket.flow.law == Law::Fallback);
        let found = (socket.flow.reason, &*socket.congestion_control);
        assert_eq!(found, (Some(Reason::NoOption), "cubic"), "{name}");
    }
}
