//! TPCP on real packets: hosts with real TCP in namespaces, and a link in user space that tells the load in chains of three,
//! whose places the checksum tells.
//!
//! Skips with the reason where the privilege, a tool or the kernel's part is missing.

use std::fs;
use std::path::{Path as File, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use congestlab_core::law::mpcp::{self, Level};
use congestlab_core::law::{LinkConfig, LinkReport};
use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::host::{self, Encoding, Law};
use congestlab_linux::link::Way;
use congestlab_net::port::{FeedbackAt, LawConfig, PortConfig, PortEvent};
use congestlab_net::queue::Limit;
use congestlab_net::service::Service;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::{Measure, Scenario};

#[macro_use]
#[expect(dead_code, reason = "other tests fall back on the way, and attach programs to a router")]
mod path;
use path::{DELAY, Path, ip, wire};

const MS: Duration = Duration::from_millis(1);
const RATE: BitRate = BitRate(10_000_000);
/// The flow fills the link from this second on.
const FROM: u64 = 5;
const SECONDS: u64 = 12;

/// Mean of the load factors that the law of the simulated link measured, millionths.
fn simulated() -> i64 {
    let text = format!(
        "[run]\nduration = \"{SECONDS} s\"\n\
         [links.link]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"200 packets\"\nlaw = \"tpcp\"\nfeedback_at = \"enqueue\"\n\
         [flows.ftp]\nlaw = \"tpcp\"\npath = [\"link\"]\nsegment = \"1500 B\"\nack = \"60 B\"\nmin_rto = \"200 ms\"\n"
    );
    let scenario = Scenario::parse("tpcp", &text, File::new("/"), &[], Some(1)).unwrap();
    let model = scenario.model(&Measure { series: false, events: true });
    let outcome = sim::run(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| {});
    let events = outcome.events.iter().filter(|event| event.kind == "control-interval");
    // The first direction is the one that has the load.
    let loads = events.filter(|event| event.at >= FROM * SECOND && event.value > 0).map(|event| event.value);
    mean(&loads.collect::<Vec<_>>())
}

const SECOND: u64 = 1_000_000_000_000;

fn mean(loads: &[i64]) -> i64 {
    loads.iter().sum::<i64>() / loads.len() as i64
}

/// A file for what iperf3 says.
fn log_of(path: &Path) -> PathBuf {
    std::env::temp_dir().join(&path.id).with_extension("json")
}

/// What iperf3 says at its end.
fn told(path: &Path) -> serde_json::Value {
    for _ in 0..100 {
        let text = fs::read_to_string(log_of(path)).unwrap_or_default();
        if let Ok(json) = serde_json::from_str(&text) {
            let _ = fs::remove_file(log_of(path));
            return json;
        }
        sleep(100 * MS);
    }
    panic!("iperf3 has not said how it went: {:?}", fs::read_to_string(log_of(path)));
}

/// A count of a host's TCP.
fn count(path: &Path, end: &str, name: &str) -> u64 {
    let seen = path.run(end, "nstat -asz", false);
    let line = seen.lines().find(|line| line.starts_with(name));
    line.map_or(0, |line| line.split_whitespace().nth(1).unwrap().parse().unwrap())
}

#[test]
fn hosts_fill_a_link_by_chains_of_three_that_tcp_never_sees() {
    let test = "tpcp/hosts";
    let law = mpcp::LinkConfig { capacity: RATE.bytes(), ..mpcp::LinkConfig::of(3, true) };
    let port = PortConfig {
        law: Some(LawConfig { config: LinkConfig::Mpcp(law), follows_service: true }),
        feedback_at: FeedbackAt::Enqueue,
        ..PortConfig::new(Service::Fixed(RATE), DELAY, Limit::Packets(200))
    };
    let mut path = match Path::over(Encoding::Ecn, wire(port)) {
        Ok(path) => path,
        Err(reason) => return eprintln!("SKIP {test}: {reason}"),
    };
    path.chain = 3;
    // Negotiated, which is the harder case: a code that stays would be CE to it.
    for end in ["c", "s"] {
        ip(&format!("ip netns exec {}{end} sysctl -qw net.ipv4.tcp_ecn=1", path.id));
    }
    let mut host = enable!("tpcp/hosts", &path.config());
    for end in ["c", "s"] {
        path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
    }
    let mut filled = vec![];
    let mut spans = vec![];
    for (address, seconds) in [("10.0.2.2", SECONDS), ("fd00:2::2", 6)] {
        let port = path.serve(true);
        let began = path.clock.now();
        let log = log_of(&path);
        path.start(
            "c",
            &format!("iperf3 -c {address} -p {port} -t {seconds} -J --logfile {}", log.display()),
            true,
        );
        let socket =
            path.until(&host, "TPCP", |socket| socket.flow.law == Law::Xcp && socket.cwnd_packets > 3);
        assert_eq!(
            (socket.flow.encoding, &*socket.congestion_control),
            (Encoding::Ecn, &*path.config().name)
        );
        let flow = path.busiest(&host).unwrap().flow;
        assert!(flow.negotiated && flow.fallbacks == 0, "{flow:?}");
        let is_over = |_| {
            sleep(200 * MS);
            path.busiest(&host).is_none()
        };
        assert!((0..150).any(is_over), "{:?}", path.busiest(&host));
        spans.push((began + FROM * SECOND, began + seconds * SECOND));
        let json = told(&path);
        let intervals = json["intervals"].as_array().unwrap();
        let rates = intervals.iter().skip(FROM as usize).map(|one| &one["sum"]["bits_per_second"]);
        let rates: Vec<f64> = rates.map(|rate| rate.as_f64().unwrap()).collect();
        filled.push(rates.iter().sum::<f64>() / rates.len() as f64);
    }
    let counters = host.counters().unwrap();
    assert!(counters.shims_sent > 1000 && counters.shims_received > 1000, "{counters:?}");
    assert_eq!(counters.unwritten, 0, "{counters:?}");
    for end in ["c", "s"] {
        assert_eq!(count(&path, end, "TcpInCsumErrors"), 0, "{end}");
    }
    let events: Vec<_> = path.events.try_iter().collect();
    let report = path.end().unwrap();
    let load = report.forward.load.unwrap();
    assert!(load.coded_packets > 5000 && load.unplaced_packets == 0, "{load:?}");
    if !report.trustworthy {
        // A machine that forwards packets late has other round trips.
        return eprintln!("SKIP times of {test}: {}", report.doubts.join("; "));
    }
    assert_eq!((report.forward.drops, counters.fallbacks_stripped + counters.fallbacks_loss), (0, 0));
    assert!(filled[0] > 8e6, "{filled:?} bit/s");
    let loads =
        events.iter().filter(|event| event.way == Way::Forward).filter_map(|event| match &event.what {
            PortEvent::ControlInterval { report: LinkReport::Mpcp(report) } => {
                Some((event.at, i64::from(report.load)))
            }
            _ => None,
        });
    let (from, to) = spans[0];
    let live: Vec<i64> = loads.filter(|(at, _)| (from..to).contains(at)).map(|(_, load)| load).collect();
    let level = |load: i64| i32::from(Level::of(load as u32, 3).number());
    let [live, simulated] = [mean(&live), simulated()];
    assert!((level(live) - level(simulated)).abs() <= 1, "mean load {live}, simulated {simulated}");
}

#[test]
fn a_peer_without_tpcp_gets_cubic() {
    let mut path = path!("tpcp/peer", Encoding::Ecn);
    path.chain = 3;
    let mut host = enable!("tpcp/peer", &path.config());
    path.namespace("c").run(|| host.insert_at("eth0")).unwrap().unwrap();
    path.start_server("s", "iperf3 -s", false);
    path.start("c", "iperf3 -c 10.0.2.2 -t 5", true);
    let socket = path.until(&host, "fallback", |socket| socket.flow.law == Law::Fallback);
    assert_eq!((socket.flow.reason, &*socket.congestion_control), (Some(host::Reason::NoOption), "cubic"));
}
