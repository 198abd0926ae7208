//! XCP on real sockets with draft-03's header between IP and TCP.

#[macro_use]
mod path;

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use congestlab_linux::Error;
use congestlab_linux::host::{self, Encoding, Host, Law, Reason};
use congestlab_linux::router::Queue;
use path::{Path, captured, ip};

/// Both hosts, with headers put in at their interfaces.
fn covered(path: &Path, host: &mut Host) {
    for end in ["c", "s"] {
        path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
    }
}

#[test]
fn a_shim_router_fills_the_link_without_a_drop() {
    let mut path = path!("a_shim_router_fills_the_link_without_a_drop", Encoding::Shim);
    let mut host = enable!("a_shim_router_fills_the_link_without_a_drop", &path.config());
    covered(&path, &mut host);
    path.attach(20_000_000, Some(Queue::Bytes(200_000)));
    path.start("s", "iperf3 -s", true);
    let running =
        path.command("c", "iperf3 -c 10.0.2.2 -t 4 --json", true).stdout(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_secs(2));
    let socket = path.busiest(&host).unwrap();
    assert_eq!((socket.flow.law, socket.flow.routers, socket.flow.fallbacks), (Law::Xcp, 1, 0));
    assert_eq!(socket.flow.encoding, Encoding::Shim);
    let output = running.wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Of 20 Mbit/s of IP, 1428 B of 1500 are payload. Loose: other work may go on beside this.
    let received = result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!((12e6..19.1e6).contains(&received), "{received} bit/s");
    assert_eq!(result["end"]["sum_sent"]["retransmits"], 0);
    let counters = host.counters().unwrap();
    assert!(counters.shims_sent > 5000 && counters.shims_received + 50 > counters.shims_sent, "{counters:?}");
    assert_eq!((counters.shims_refused, counters.unwritten), (0, 0));
}
