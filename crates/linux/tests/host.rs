//! XCP on real sockets: two namespaces with a legacy router between them, processes in a control
//! group of their own, and a congestion control that nobody else names.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use congestlab_linux::host::{self, Config, Counters, Encoding, Host, LossPolicy};
use congestlab_linux::sys::{attachment, command};

/// Three namespaces in a row: client, router, server; the names end in c, r, s.
struct Path3 {
    id: String,
    cgroup: PathBuf,
    children: Vec<Child>,
}

impl Drop for Path3 {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for end in ["c", "r", "s"] {
            let _ = command::query(&format!("ip netns delete {}{end}", self.id));
        }
        for _ in 0..50 {
            match fs::remove_dir(&self.cgroup) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    sleep(Duration::from_millis(20))
                }
                _ => break,
            }
        }
    }
}

fn ip(line: &str) {
    command::query(line).unwrap_or_else(|error| panic!("{line}: {error}"));
}

impl Path3 {
    /// What is missing, if it can not be.
    fn new() -> Result<Self, String> {
        for tool in ["ip", "tc", "iperf3", "tcpdump"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
            if !found.is_ok_and(|found| found.status.success()) {
                return Err(format!("{tool} is not installed"));
            }
        }
        let random = RandomState::new().hash_one(std::process::id()) as u32;
        let id = format!("cl-h{random:08x}");
        let cgroup = attachment::mount().map_err(|error| error.to_string())?.join(&id);
        fs::create_dir(&cgroup).map_err(|error| format!("no control group: {error}"))?;
        let path = Self { id, cgroup, children: vec![] };
        let id = &path.id;
        for end in ["c", "r", "s"] {
            let made = command::query(&format!("ip netns add {id}{end}"));
            made.map_err(|error| format!("no namespace: {error}"))?;
            ip(&format!("ip -n {id}{end} link set lo up"));
        }
        for (end, net) in [("c", 1), ("s", 2)] {
            ip(&format!("ip -n {id}{end} link add eth0 type veth peer name {end} netns {id}r"));
            ip(&format!("ip -n {id}{end} addr add 10.0.{net}.2/24 dev eth0"));
            ip(&format!("ip -n {id}{end} addr add fd00:{net}::2/64 dev eth0 nodad"));
            ip(&format!("ip -n {id}r addr add 10.0.{net}.1/24 dev {end}"));
            ip(&format!("ip -n {id}r addr add fd00:{net}::1/64 dev {end} nodad"));
            ip(&format!("ip -n {id}{end} link set eth0 up gso_max_segs 1"));
            ip(&format!("ip -n {id}r link set {end} up gso_max_segs 1"));
            ip(&format!("ip -n {id}{end} route add default via 10.0.{net}.1"));
            ip(&format!("ip -n {id}{end} route add default via fd00:{net}::1"));
        }
        ip(&format!("ip netns exec {id}r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"));
        Ok(path)
    }

    fn config(&self) -> Config {
        Config {
            name: format!("xcp_{}", &self.id[4..]),
            to: vec![],
            default: true,
            encoding: Encoding::Option,
            sender: host::sender_config(LossPolicy::Tcp),
            initial_window: 1,
            cgroup: self.cgroup.clone(),
            fallback: "cubic".into(),
        }
    }

    fn command(&self, end: &str, line: &str, is_member: bool) -> Command {
        let enter = format!("echo $$ > {}/cgroup.procs && ", self.cgroup.display());
        let enter = if is_member { enter } else { String::new() };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{enter}exec ip netns exec {}{end} {line}", self.id)]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs to the end; members speak XCP.
    fn run(&self, end: &str, line: &str, is_member: bool) -> String {
        let output = self.command(end, line, is_member).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {text}{words}");
        text
    }

    fn start(&mut self, end: &str, line: &str, is_member: bool) {
        let mut command = self.command(end, line, is_member);
        self.children.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        sleep(Duration::from_millis(400));
    }
}

fn skip(name: &str, reason: &dyn std::fmt::Display) {
    eprintln!("SKIP {name}: {reason}");
}

macro_rules! path {
    ($name:literal) => {
        match Path3::new() {
            Ok(path) => path,
            Err(reason) => return skip($name, &reason),
        }
    };
}

macro_rules! enable {
    ($name:literal, $config:expr) => {
        match host::enable($config, false) {
            Ok(host) => host.unwrap(),
            Err(error @ congestlab_linux::Error::Missing { .. }) => return skip($name, &error),
            Err(error) => panic!("{error}"),
        }
    };
}

#[test]
fn both_ends_speak() {
    let mut path = path!("both_ends_speak");
    let host: Host = enable!("both_ends_speak", &path.config());
    path.start("s", "iperf3 -s", true);
    path.run("c", "iperf3 -c 10.0.2.2 -t 2", true);
    let counters: Counters = host.counters().unwrap();
    // Two connections, each with two ends; no router on the way.
    assert_eq!((counters.connections, counters.fallbacks_no_option), (4, 0));
    assert!(counters.fallbacks_no_router >= 1, "{counters:?}");
}
