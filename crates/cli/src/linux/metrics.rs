//! The numbers of routers and host over HTTP, in Prometheus' text format (version 0.0.4), for `congestlab apply --watch`.
//!
//! Whoever asks may be hostile: [`crate::http`] serves no more than it can, and numbers are gathered once a second at most.

use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use congestlab_linux::host::{self, Counters};
use congestlab_linux::router::{self, Status};
use congestlab_scenario::export::sample;

use crate::failure::{Failure, Message};
use crate::http::{self, Answer, Request};
use crate::machine::Clock;

/// Age of numbers that are told again.
const FRESH_S: f64 = 1.0;
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What `apply --watch` counts of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) changes: u64,
    pub(super) failing: u64,
    pub(super) passes: u64,
}

/// Serves from now on; returns the address, with the port that the system chose for port 0. The threads that read what strangers
/// send have no rights; they ask one that has them for the numbers.
pub(super) fn serve(address: SocketAddr, counts: Arc<Mutex<Counts>>) -> Result<SocketAddr, Failure> {
    let failed = |error: io::Error| {
        let text = format!("can not serve metrics at {address}: {error}");
        Failure::Run(Message::new(text, "another address or port: --metrics 127.0.0.1:PORT"))
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let (ask, asked) = mpsc::channel::<Sender<String>>();
    thread::Builder::new().name("numbers".into()).spawn(move || tell(&asked, &counts)).map_err(failed)?;
    let (begun, is_reduced) = mpsc::channel();
    let spawned = thread::Builder::new().name("metrics".into()).spawn(move || {
        let reduced = congestlab_linux::give_up_rights();
        let serves = reduced.is_ok();
        // `serve` waits for this result.
        let _ = begun.send(reduced);
        if serves {
            let numbers = move || asked_of(&ask);
            http::accept(&listener, "metrics", Arc::new(move |request: &Request| answer(request, &numbers)));
        }
    });
    spawned.map_err(failed)?;
    is_reduced.recv().map_err(io::Error::other).map_err(failed)??;
    Ok(bound)
}

/// Gathers the numbers for each who asks, once a second at most.
fn tell(asked: &Receiver<Sender<String>>, counts: &Mutex<Counts>) {
    let mut gathered = None::<(Clock, String)>;
    for to in asked {
        let text = match gathered.take() {
            Some((clock, text)) if clock.wall() < FRESH_S => (clock, text),
            _ => {
                let counts = counts.lock().map_or_else(|poisoned| *poisoned.into_inner(), |counts| *counts);
                let text =
                    text(&router::status(None).unwrap_or_default(), host::counters().ok().flatten(), counts);
                (Clock::start(), text)
            }
        };
        // The thread that asked may have ended.
        let _ = to.send(gathered.insert(text).1.clone());
    }
}

/// Nothing, where the thread that knows has ended.
fn asked_of(ask: &Sender<Sender<String>>) -> String {
    let (to, told) = mpsc::channel();
    ask.send(to).ok().and_then(|()| told.recv().ok()).unwrap_or_default()
}

fn answer(request: &Request, numbers: &impl Fn() -> String) -> Answer {
    match request.path() {
        _ if !request.is_for_this_machine() => {
            Answer::refusal(421, "ask by the address of this machine: a name could be another's")
        }
        "/metrics" => Answer::of(TYPE, numbers()),
        _ => Answer::refusal(404, "the numbers are at /metrics"),
    }
}

/// Samples by family, in the order in which the families are told.
#[derive(Default)]
struct Families(Vec<Family>);

struct Family {
    name: String,
    help: &'static str,
    samples: Vec<String>,
}

impl Families {
    fn add(&mut self, name: &str, help: &'static str, labels: &[(&str, &str)], value: f64) {
        let name = format!("congestlab_{name}");
        let line = sample(&name, labels, value);
        match self.0.iter_mut().find(|family| family.name == name) {
            Some(family) => family.samples.push(line),
            None => self.0.push(Family { name, help, samples: vec![line] }),
        }
    }

    fn text(self) -> String {
        let mut text = String::new();
        for Family { name, help, samples } in self.0 {
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            // Writing to a string fails in no way.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{}", samples.join("\n"));
        }
        text
    }
}

/// All numbers, in base units (bytes and seconds), counters with `_total` behind their names.
fn text(routers: &[Status], host: Option<(String, Counters)>, counts: Counts) -> String {
    let mut families = Families::default();
    for status in routers {
        add_router(&mut families, status);
    }
    if let Some((law, counters)) = host {
        add_host(&mut families, &law, &counters);
    }
    let Counts { changes, failing, passes } = counts;
    for (name, help, value) in [
        ("apply_changes_total", "Changes that were made since the start.", changes),
        ("apply_passes_total", "Times that everything was compared with the file.", passes),
        ("apply_failing", "Routers and hosts that are not as wanted, and could not be made so.", failing),
    ] {
        families.add(name, help, &[], value as f64);
    }
    families.text()
}

fn add_router(families: &mut Families, status: &Status) {
    let Status { interface, law, sample, queue, .. } = status;
    let of = [("interface", interface.as_str())];
    let encoding = format!("{:?}", status.encoding).to_lowercase();
    let info = [of[0], ("law", law), ("encoding", &encoding), ("qdisc", &status.qdisc)];
    families.add("router_info", "Law at the outgoing traffic of an interface.", &info, 1.0);
    let mut add = |name: &str, help: &'static str, value: f64| {
        families.add(&format!("router_{name}"), help, &of, value)
    };
    add("capacity_bytes_per_second", "Capacity that the law assumes.", sample.capacity_bps as f64 / 8.0);
    add("queue_bytes", "Bytes that wait.", queue.queue_bytes as f64);
    add("queue_packets", "Packets that wait.", queue.queue_packets as f64);
    add("dropped_packets_total", "Packets that the full queue refused, modulo 2^32.", queue.drops as f64);
    add("packets_total", "Packets that the law has seen.", sample.packets as f64);
    add("bytes_total", "Bytes of IP in these packets.", sample.bytes as f64);
    add(
        "law_packets_total",
        "Packets whose header, or code, the law has processed.",
        sample.xcp_packets as f64,
    );
    add(
        "bounded_packets_total",
        "Packets that claimed more than could be true.",
        sample.bounded_packets as f64,
    );
    add("intervals_total", "Control intervals.", sample.intervals as f64);
    add("mtu_bytes", "Longest IP packet of the interface.", status.mtu.into());
    if let Some(bucket) = status.bucket_bytes {
        add("bucket_bytes", "Bytes that the shaper's bucket holds.", bucket as f64);
    }
    let is_small = f64::from(u8::from(status.warning.is_some()));
    add(
        "bucket_too_small",
        "1 if the MTU was raised beyond what the shaper's bucket was made for.",
        is_small,
    );
    if let Some(beside) = status.beside {
        add("xcp_part_ratio", "XCP's part of a link that it shares with others.", beside.xcp_weight);
        add("xcp_flows", "Flows of XCP's class in the last census.", beside.xcp_flows);
        add("other_flows", "Flows of the other class in the last census.", beside.tcp_flows);
        add("xcp_queue_bytes", "Bytes that wait in XCP's class.", beside.xcp.queue_bytes as f64);
        add("other_queue_bytes", "Bytes that wait in the other class.", beside.tcp.queue_bytes as f64);
    }
    if let Some(load) = sample.load {
        add("load_ratio", "Load factor of the last interval, part of the capacity.", load.load_factor);
    } else if status.series.is_empty() {
        add("input_bytes_per_second", "Input traffic of the last control interval.", sample.input_Bps as f64);
        add(
            "feedback_bytes_per_second",
            "Aggregate feedback of the last interval.",
            sample.feedback_Bps as f64,
        );
        add("interval_seconds", "Length of the control interval.", sample.interval_ms / 1e3);
        let persistent = sample.persistent_queue_bytes as f64;
        add("persistent_queue_bytes", "Persistent queue that the feedback counted.", persistent);
    }
    if let Some(flows) = sample.flows {
        add("flows", "Flows that P-XCP's law counted.", flows.pxcp_n);
        add("limited_flows", "Flows among them that are limited elsewhere.", flows.pxcp_n_lim);
    }
    if let (Some(counted), Some(table)) = (&sample.policed, &status.police) {
        add("police_records", "Flows of which the policer has a record at most.", table.records.into());
        add("police_memory_bytes", "Bytes of the policer's table.", table.memory_bytes as f64);
        add(
            "clamped_packets_total",
            "Packets whose stated spacing counted for less.",
            counted.clamped_packets as f64,
        );
        add(
            "policed_packets_total",
            "Packets dropped because their flow is held.",
            counted.policed_packets as f64,
        );
        add(
            "policed_flows_total",
            "Times that a flow began to be held to its share.",
            counted.policed_flows as f64,
        );
        add("held_flows", "Flows that are held to their share now.", table.held.len() as f64);
        for held in table.held.iter().take(super::router::HELD_SHOWN) {
            let (from, to) =
                (SocketAddr::new(held.from, held.from_port), SocketAddr::new(held.to, held.to_port));
            let (from, to, protocol) = (from.to_string(), to.to_string(), held.protocol.to_string());
            let labels = [of[0], ("from", &from), ("to", &to), ("protocol", &protocol)];
            let help = "Rate at which a flow sends that is held, of those that send most.";
            families.add("router_held_flow_bytes_per_second", help, &labels, held.rate_Bps as f64);
        }
    }
    for (series, value) in &status.series {
        let labels = [of[0], ("series", series.as_str())];
        families.add(
            "router_law_series",
            "Last report of a law, by the names of its series.",
            &labels,
            *value,
        );
    }
    let refused = &sample.refused;
    for (reason, count) in [
        ("odd-offset", refused.odd_offset),
        ("wrong-length", refused.wrong_length),
        ("truncated", refused.truncated),
        ("malformed", refused.malformed),
        ("version", refused.version),
        ("unwritable", refused.unwritable),
        ("fragments", refused.fragments),
    ] {
        let help = "Packets with a wrong header, left as they were.";
        families.add("router_refused_packets_total", help, &[of[0], ("reason", reason)], count as f64);
    }
}

fn add_host(families: &mut Families, law: &str, counters: &Counters) {
    let of = [("law", law)];
    let mut add = |name: &str, help: &'static str, value: u64| {
        families.add(&format!("host_{name}"), help, &of, value as f64)
    };
    add("info", "Law of the machine's own connections.", 1);
    add("connections_total", "Connections on which both sides speak the law.", counters.connections);
    add("returns_total", "Connections that returned from the fallback.", counters.returns);
    add("malformed_options_total", "Received options of a wrong length.", counters.malformed);
    add("unwritten_headers_total", "Headers not sent because the packet had no room.", counters.unwritten);
    add("sent_headers_total", "Headers or codes put in at interfaces.", counters.shims_sent);
    add("received_headers_total", "Headers or codes taken out at interfaces.", counters.shims_received);
    add("refused_headers_total", "Packets with a wrong header, left alone.", counters.shims_refused);
    add("lying_acks_total", "ACKs that claimed more than was asked for.", counters.lies);
    for (reason, count) in [
        ("no-option", counters.fallbacks_no_option),
        ("no-router", counters.fallbacks_no_router),
        ("stripped", counters.fallbacks_stripped),
        ("loss", counters.fallbacks_loss),
    ] {
        let help = "Connections that went over to the kernel's congestion control.";
        families.add("host_fallbacks_total", help, &[of[0], ("reason", reason)], count as f64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpStream};
    use std::time::Duration;

    use super::*;
    use crate::http::AT_ONCE;

    /// A server with these numbers.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let numbers = || "x 1\n".to_owned();
        let answer = move |request: &Request| answer(request, &numbers);
        thread::spawn(move || http::accept(&listener, "metrics", Arc::new(answer)));
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        // It may answer and close before all of a wrong request was written.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    #[test]
    fn requests_are_answered_and_wrong_ones_refused() {
        let address = server();
        let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &[b'x'; 20_000]].concat();
        for (request, expected) in [
            (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n".as_slice(), "HTTP/1.0 200 OK\r\n"),
            (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.0 421 "),
            (b"GET /metrics?x=1 HTTP/1.0\n\n", "HTTP/1.0 200 OK\r\n"),
            (b"GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 404 "),
            (b"POST /metrics HTTP/1.0\r\n\r\n", "HTTP/1.0 405 "),
            (b"GET /metrics SPDY/9\r\n\r\n", "HTTP/1.0 400 "),
            (b"GET /metrics\r\n\r\n", "HTTP/1.0 400 "),
            (b"\x16\x03\x01\x00\xff\x00\x00\xfe\n\n", "HTTP/1.0 400 "),
            (b"\n\n", "HTTP/1.0 400 "),
            (b"", "HTTP/1.0 400 "),
            (b"GET /metr", "HTTP/1.0 400 "),
            (&long, "HTTP/1.0 431 "),
        ] {
            let said = ask(address, request);
            assert!(said.starts_with(expected), "{}: {said}", String::from_utf8_lossy(request));
            assert_eq!(said.ends_with("\r\n\r\nx 1\n"), said.contains(" 200 "), "{said}");
            assert!(!said.contains(" 200 ") || said.contains("Content-Length: 4\r\n"), "{said}");
        }
        let head = ask(address, b"HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    }

    /// Forty connections say nothing: 24 kept all others out for 5 s.
    #[test]
    fn silent_connections_keep_nobody_out() {
        let address = server();
        let request = b"GET /metrics HTTP/1.0\r\n\r\n";
        let mut silent = Vec::new();
        for count in 0..40 {
            let mut stream = TcpStream::connect(address).expect("it listens");
            let _ = stream.write_all(&b"GET /metr"[..count % 9]);
            silent.push(stream);
            let said = ask(address, request);
            assert!(said.starts_with("HTTP/1.0 200 "), "beside {count}: {said}");
        }
        // Those that were ended for others have read so; the last ones wait.
        let ended = |stream: &mut TcpStream| {
            stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a time");
            stream.read(&mut [0; 1]).is_ok()
        };
        assert!(silent[..40 - AT_ONCE].iter_mut().all(ended));
        // One that sends nothing more is refused in the end, not held for ever.
        let mut slow = TcpStream::connect(address).expect("it listens");
        slow.write_all(b"GET /metr").expect("room");
        let mut text = String::new();
        slow.read_to_string(&mut text).expect("an answer, then the end");
        assert!(text.starts_with("HTTP/1.0 408 "), "{text}");
    }

    #[test]
    fn every_sample_is_of_a_family_with_help_and_type_that_has_its_name() {
        let host =
            Some(("xcp".to_owned(), Counters { connections: 3, fallbacks_loss: 1, ..Counters::default() }));
        let text = text(&[], host, Counts { changes: 2, failing: 1, passes: 9 });
        let mut families = BTreeSet::new();
        let mut kind = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a help");
                assert!(families.insert(name.to_owned()) && help.ends_with('.'), "{line}");
                assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, of) = rest.split_once(' ').expect("a type");
                assert!(families.contains(name), "{line}");
                assert_eq!(of == "counter", name.ends_with("_total"), "{line}");
                kind = name.to_owned();
            } else {
                let (name, value) = line.rsplit_once(' ').expect("a value");
                assert_eq!(name.split('{').next(), Some(&*kind), "{line}");
                value.parse::<f64>().expect("a number");
            }
        }
        for line in [
            "congestlab_host_connections_total{law=\"xcp\"} 3",
            "congestlab_host_fallbacks_total{law=\"xcp\",reason=\"loss\"} 1",
            "congestlab_apply_changes_total 2",
            "congestlab_apply_failing 1",
        ] {
            assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
        }
    }
}
