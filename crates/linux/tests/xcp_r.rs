//! XCP-r with real TCP between namespaces: receivers that keep windows, ACKs that get lost, epochs that go round.
//!
//! Skips with the reason where the privilege, a tool or the kernel's part is missing.

use std::thread::sleep;
use std::time::Duration;

use congestlab_linux::Error;
use congestlab_linux::host::{self, Config, Encoding, Law, LossPolicy, Reason, Socket};
use congestlab_linux::link::Clock;
use congestlab_linux::router::{self, Queue};

#[macro_use]
#[expect(dead_code, reason = "other tests look at packets, and have routers of other laws")]
mod path;
use path::Path;

/// B/s that a window sends in the round trips that the kernel measures.
fn rate(socket: &Socket) -> f64 {
    socket.flow.window_bytes as f64 / socket.srtt_ms * 1000.0
}

/// Bytes that the server has read of the connection that brought it most.
fn received(path: &Path) -> u64 {
    let seen = path.run("s", "ss -Htin", false);
    let counts =
        seen.split_whitespace().filter_map(|word| word.strip_prefix("bytes_received:")?.parse().ok());
    counts.max().unwrap_or(0)
}

/// Goodput of two seconds or so, bytes/s.
fn goodput(path: &Path, clock: &Clock) -> f64 {
    let (bytes, at) = (received(path), clock.now());
    sleep(Duration::from_secs(2));
    (received(path) - bytes) as f64 / (clock.now() - at) as f64 * 1e12
}

/// So many of a hundred ACKs that come back through the router get lost; 0: none.
fn lose_acks(path: &Path, percent: u32) {
    let mut rules =
        "add table inet t; add chain inet t c { type filter hook forward priority 0; }; flush chain inet t c"
            .to_owned();
    if percent > 0 {
        let is_ack = "tcp sport 5201 tcp flags == ack meta length < 120";
        rules += &format!(
            "; add rule inet t c {is_ack} counter; add rule inet t c {is_ack} numgen random mod 100 < {percent} counter drop"
        );
    }
    path.run("r", &format!("nft '{rules}'"), false);
}

/// ACKs that the rules above saw, and those that they dropped.
fn acks(path: &Path) -> (u64, u64) {
    let rules = path.run("r", "nft list ruleset", false);
    let mut counts = rules
        .split("counter packets ")
        .skip(1)
        .map(|rest| rest.split_whitespace().next().unwrap().parse::<u64>().unwrap());
    (counts.next().unwrap(), counts.next().unwrap())
}

#[test]
fn windows_that_receivers_keep_fill_a_link() {
    let mut path = path!("xcp-r/fills", Encoding::Option);
    path.is_xcp_r = true;
    let host = enable!("xcp-r/fills", &path.config());
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    for address in ["10.0.2.2", "fd00:2::2"] {
        let port = path.serve(true);
        path.start("c", &format!("iperf3 -c {address} -p {port} -t 4"), true);
        let is_full =
            |socket: &Socket| socket.flow.law == Law::Xcp && (0.9..1.2).contains(&(rate(socket) / 2.5e6));
        let socket = path.until(&host, "a full link", is_full);
        assert_eq!(socket.congestion_control, path.config().name);
        let flow = socket.flow;
        assert!(flow.negotiated && flow.routers == 1 && flow.fallbacks == 0, "{flow:?}");
        assert!(flow.encoding == Encoding::Option && flow.epochs >= Some(1), "{flow:?}");
        let status = path.namespace("r").run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
        assert_eq!((&*status.law, status.queue.drops), ("xcp", 0), "{status:?}");
        let is_over = |_| {
            sleep(Duration::from_millis(200));
            path.busiest(&host).is_none()
        };
        assert!((0..100).any(is_over), "{:?}", path.busiest(&host));
    }
    let counters = host.counters().unwrap();
    assert_eq!(counters.malformed + counters.fallbacks_stripped + counters.fallbacks_loss, 0, "{counters:?}");
}

/// 45 packets are on their way. Of 13, as at 10 Mbit/s, every ACK of a round trip gets lost each second or so, and TCP's time-out
/// follows, which is no matter of the law.
#[test]
fn half_of_the_acks_may_get_lost() {
    let mut path = path!("xcp-r/acks", Encoding::Option);
    path.is_xcp_r = true;
    let host = enable!("xcp-r/acks", &path.config());
    path.attach(40_000_000, Some(Queue::Bytes(400_000)));
    path.start_server("s", "iperf3 -s", true);
    path.start("c", "iperf3 -c 10.0.2.2 -t 120", true);
    let is_full = |socket: &Socket| socket.flow.law == Law::Xcp && rate(socket) > 0.9 * 5e6;
    path.until(&host, "a full link", is_full);
    let clock = Clock::start();
    for percent in [10, 30, 50] {
        // A machine that is busy with something else meanwhile does this to either: the next pair may be spared.
        let mut seen = vec![];
        let is_met = (0..8).any(|_| {
            lose_acks(&path, 0);
            let without = goodput(&path, &clock);
            lose_acks(&path, percent);
            let with = goodput(&path, &clock);
            seen.push((with, without));
            without > 0.5 * 5e6 && with >= 0.95 * without
        });
        assert!(is_met, "{percent} % of ACKs lost: {seen:?}, {:?}", path.busiest(&host));
        let (all, lost) = acks(&path);
        let share = lost as f64 / all as f64 * 100.0;
        assert!(all > 100 && (share - f64::from(percent)).abs() < 15.0, "{lost} of {all} ACKs were lost");
        let flow = path.busiest(&host).unwrap().flow;
        assert!(flow.law == Law::Xcp && flow.fallbacks == 0, "{flow:?}");
        println!("{percent} %: {lost} of {all} ACKs lost, bytes/s with and without: {seen:?}");
    }
}

/// A sender that has little to send ages its window after each pause, which begins an epoch.
#[test]
fn epochs_go_round_without_harm() {
    let mut path = path!("xcp-r/epochs", Encoding::Option);
    path.is_xcp_r = true;
    let host = enable!("xcp-r/epochs", &path.config());
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    lose_acks(&path, 30);
    path.start_server("s", "iperf3 -s", true);
    // 27 kB at once, 30 ms apart.
    path.start("c", "iperf3 -c 10.0.2.2 -b 7M/20 -l 1360 -t 120", true);
    let epochs = |least: u32| {
        let is_there = |_| {
            let flow = path.busiest(&host).map(|socket| socket.flow);
            let there = flow.is_some_and(|flow| flow.epochs >= Some(least));
            if !there {
                sleep(Duration::from_millis(100));
            }
            there
        };
        assert!((0..600).any(is_there), "{:?}", path.busiest(&host));
    };
    epochs(300);
    let clock = Clock::start();
    // What the application has, which is little, gets through, but where the machine is busy with something else.
    let mut seen = vec![];
    let is_met = (0..5).any(|_| {
        seen.push(goodput(&path, &clock) * 8.0);
        seen.last() > Some(&(0.9 * 7e6))
    });
    assert!(is_met, "{seen:?}, {:?}", path.busiest(&host));
    let flow = path.busiest(&host).unwrap().flow;
    assert!(flow.law == Law::Xcp && flow.fallbacks == 0, "{flow:?}");
    println!("{:?} epochs, {seen:?} bit/s", flow.epochs);
}

#[test]
fn a_peer_without_xcp_r_gets_cubic() {
    let mut path = path!("xcp-r/peer", Encoding::Option);
    path.is_xcp_r = true;
    let host = enable!("xcp-r/peer", &path.config());
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    path.start_server("s", "iperf3 -s", false);
    path.start("c", "iperf3 -c 10.0.2.2 -t 4", true);
    let socket = path.until(&host, "fallback", |socket| socket.flow.law == Law::Fallback);
    assert_eq!((socket.flow.reason, &*socket.congestion_control), (Some(Reason::NoOption), "cubic"));
}

#[test]
fn without_a_router_cubic_rules_until_one_answers() {
    let mut path = path!("xcp-r/router", Encoding::Option);
    path.is_xcp_r = true;
    let host = enable!("xcp-r/router", &path.config());
    let fallen = path.falls_back_and_returns(&host);
    let back = path.busiest(&host).unwrap();
    assert!(back.flow.epochs > fallen.flow.epochs, "{fallen:?} {back:?}");
}

#[test]
fn what_can_not_be_is_refused() {
    let config = Config { sender: host::xcp_r_config(LossPolicy::Tcp), ..Config::new("xcpr_test", "/") };
    for (config, expected) in [
        (Config { encoding: Encoding::Shim, ..config.clone() }, "a TCP option"),
        (
            Config { name: "xcp_test".into(), ..config.clone() },
            "\"xcp_test\" can not name a congestion control",
        ),
        (Config { sender: host::sender_config(LossPolicy::Tcp), ..config }, "\"xcpr_test\" can not name"),
    ] {
        let error = host::enable(&config, false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
