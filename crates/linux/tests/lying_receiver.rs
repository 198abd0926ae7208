//! Receivers that lie about what links say, on real TCP: what routers wrote into one flow's packets is overwritten behind them, so
//! that the law of its receiver believes it and its ACKs bring it to the sender, beside three flows whose receivers tell the truth.
//!
//! `MEASURE=1 cargo test -p congestlab-linux --test lying_receiver -- every_law --nocapture` prints the table of docs/linux.md.
//! Skips with the reason where the privilege, a tool or the kernel's part is missing.

use std::path::Path as File;
use std::thread;
use std::time::Duration;

use congestlab_core::law::Protocol;
use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::host::{self, Counters, Encoding, LossPolicy, Sender};
use congestlab_linux::router::{self, AnyLaw, Queue};
use congestlab_scenario::{Measure, Scenario};

#[expect(dead_code, unused_macros, reason = "other tests look at packets, and at falling back on the way")]
mod path;
use path::{Path, wire};

const RATE: u64 = 20_000_000;

/// What is overwritten in each data packet to a port: where (bytes from IP's header), with what, of which bits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    None,
    /// The flow is one of CUBIC.
    Cubic,
    /// XCP's Delta_Throughput in the option behind timestamps, B/s.
    Grants(u32),
    /// The same, where it is negative.
    Increases,
    /// The ECN field.
    Code(u8),
    /// The sums of XCP's ACKs: each jumps by 2^27 - 1 steps of 16 B/s, the most that a sender takes for an increase.
    Sums,
    /// The windows of XCP-r's ACKs: 2 GB.
    Windows,
}

impl Lie {
    fn tell(self, path: &Path, port: u16) {
        // The first option of the kind is the one that routers read.
        let data = format!("tcp dport {port} tcp option @253,16,16 0x5843 tcp option @253,8,8 20");
        let acks =
            |name: u16| format!("tcp sport {port} tcp option @253,16,16 {name:#x} tcp option @253,8,8 8");
        let word = |which: String, word: u32| format!("{which} tcp option @253,32,32 set {word:#x}");
        let rules: Vec<String> = match self {
            Self::None | Self::Cubic => return,
            Self::Sums => {
                let sums = [0x1000_0000, 0x17ff_ffff, 0x1fff_fffe];
                let each = |(i, sum)| word(format!("{} numgen inc mod 3 {i}", acks(0x5843)), sum);
                sums.into_iter().enumerate().map(each).collect::<Vec<_>>()
            }
            // Whatever epoch it is.
            Self::Windows => {
                let each = |epoch: u32| {
                    word(format!("{} numgen inc mod 16 {epoch}", acks(0x5852)), 0x100f_ffff | epoch << 20)
                };
                (0..16).map(each).collect()
            }
            Self::Grants(delta) => vec![format!("{data} tcp option @253,96,32 set {delta:#x}")],
            Self::Increases => {
                vec![format!("{data} tcp option @253,96,32 >= 0x80000000 tcp option @253,96,32 set 0")]
            }
            Self::Code(code) => vec![format!("tcp dport {port} meta length > 200 ip ecn set {code}")],
        };
        // Behind the router, and before the programs of the receiver's host; of ACKs behind those.
        let devices = "devices = { w0, w1 }";
        let table = format!(
            "add table netdev t; add chain netdev t f {{ type filter hook egress {devices} priority 0; }}"
        );
        for rule in
            std::iter::once(table).chain(rules.into_iter().map(|rule| format!("add rule netdev t f {rule}")))
        {
            path.run("w", &format!("nft '{rule}'"), false);
        }
    }
}

/// What came of a lie.
#[derive(Debug)]
struct Outcome {
    /// Mbit/s of the honest flows, and of the liar.
    honest: [f64; 3],
    liar: f64,
    /// Largest congestion window of the liar's sender, packets.
    window: u32,
    /// Of the router's queue.
    drops: u64,
    counters: Counters,
    /// Counted at the liar's sender.
    lies: u32,
}

fn goodput(json: &[u8]) -> f64 {
    let json: serde_json::Value = serde_json::from_slice(json).unwrap();
    json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{json}")) / 1e6
}

/// Three flows begin, and the liar 1 s later; measured are so many seconds from 2 s after that on.
fn run(path: &mut Path, host: &host::Host, lie: Lie, seconds: u32) -> Outcome {
    let ports = [(); 4].map(|()| path.serve(true));
    lie.tell(path, ports[3]);
    let iperf = |path: &Path, port, omitted: u32| {
        let cubic = if port == ports[3] && lie == Lie::Cubic { " -C cubic" } else { "" };
        let line = format!("iperf3 -c 10.0.2.2 -p {port} -t {seconds} -O {omitted} -J{cubic}");
        let mut command = path.command("c", &line, true);
        thread::spawn(move || command.output().unwrap())
    };
    let honest = [0, 1, 2].map(|i| iperf(path, ports[i], 3));
    thread::sleep(Duration::from_secs(1));
    let liar = iperf(path, ports[3], 2);
    let (mut window, mut lies) = (0, 0);
    while !liar.is_finished() {
        let sockets = path.namespace("c").run(|| host.sockets()).unwrap().unwrap();
        for socket in sockets.into_iter().filter(|socket| socket.peer.port() == ports[3]) {
            window = window.max(socket.cwnd_packets);
            lies = lies.max(socket.flow.lies);
        }
        thread::sleep(Duration::from_millis(20));
    }
    let liar = goodput(&liar.join().unwrap().stdout);
    let honest = honest.map(|flow| goodput(&flow.join().unwrap().stdout));
    let routers = path.namespace("r").run(|| router::status(None)).unwrap().unwrap();
    let drops = routers.iter().map(|router| router.queue.drops).sum();
    Outcome { honest, liar, window, drops, counters: host.counters().unwrap(), lies }
}

/// Hosts with this law, and links that speak to them.
fn set_up(test: &str, sender: Sender) -> Option<(Path, host::Host)> {
    let encoding = if sender.owns_ecn() { Encoding::Ecn } else { Encoding::Option };
    let discipline = match sender.name() {
        host::DCTCP => Some("{ step = { sojourn = \"4 ms\" } }"),
        host::PRAGUE => Some("\"dualpi2\""),
        _ => None,
    };
    let path = match discipline {
        Some(discipline) => Path::over(encoding, wire(marking(discipline))),
        None => Path::new(encoding),
    };
    let mut path = match path {
        Ok(path) => path,
        Err(reason) => {
            eprintln!("SKIP {test}: {reason}");
            return None;
        }
    };
    path.chain = match sender.name() {
        host::DPCP => 2,
        host::TPCP => 3,
        _ => 1,
    };
    path.is_xcp_r = sender.name() == host::XCP_R;
    path.sender = sender.owns_ecn().then(|| sender.clone());
    let config = host::Config { sender: sender.clone(), ..path.config() };
    let mut host = match host::enable(&config, false) {
        Ok(host) => host.unwrap(),
        Err(error @ Error::Missing { .. }) => {
            eprintln!("SKIP {test}: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    if encoding == Encoding::Ecn {
        for end in ["c", "s"] {
            path.namespace(end).run(|| host.insert_at("eth0")).unwrap().unwrap();
        }
    }
    if discipline.is_none() {
        let (rate, queue) = (BitRate(RATE), Some(Queue::Bytes(200_000)));
        if sender.name() == host::ABC {
            let law = AnyLaw::new(Protocol::of("abc").unwrap(), rate, None).unwrap();
            let law = router::Law::Any(Box::new(law));
            let config = router::Config { rate, law, encoding, shape: queue };
            path.namespace("r").run(|| router::attach("s", &config)).unwrap().unwrap();
        } else {
            path.attach(RATE, queue);
        }
    }
    Some((path, host))
}

/// The link of a scenario, which marks.
fn marking(discipline: &str) -> congestlab_net::port::PortConfig {
    let text = format!(
        "run = {{ duration = \"1 s\" }}\nlinks.link = {{ rate = \"20 Mbit/s\", delay = \"5 ms\", queue = \"200 kB\", discipline = {discipline} }}\n\
         flows.ftp = {{ law = \"dctcp\", path = [\"link\"] }}\n"
    );
    let scenario = Scenario::parse("marking", &text, File::new("/"), &[], Some(1));
    scenario.unwrap_or_else(|error| panic!("{error}")).model(&Measure::default()).links[0].port.clone()
}

/// ACKs claim more than was asked for.
fn claims_count_nothing(test: &str, sender: Sender, lie: Lie) {
    let Some((mut path, host)) = set_up(test, sender) else { return };
    let outcome = run(&mut path, &host, lie, 4);
    eprintln!("{outcome:?}");
    assert!(outcome.lies > 10 && outcome.counters.lies >= outcome.lies.into(), "{outcome:?}");
    // All that an honest flow has at once is what its part of the path holds: 17 packets of 42.
    assert!(outcome.window < 100 && outcome.liar < 7.0, "{outcome:?}");
    assert!(outcome.honest.iter().sum::<f64>() > 8.0 && outcome.drops < 500, "{outcome:?}");
}

#[test]
fn what_a_receiver_of_xcp_claims_beyond_the_requests_counts_nothing() {
    claims_count_nothing(
        "what_a_receiver_of_xcp_claims_beyond_the_requests_counts_nothing",
        host::sender_config(LossPolicy::Tcp),
        Lie::Sums,
    );
}

#[test]
fn what_a_receiver_of_xcp_r_claims_beyond_the_requests_counts_nothing() {
    claims_count_nothing(
        "what_a_receiver_of_xcp_r_claims_beyond_the_requests_counts_nothing",
        host::xcp_r_config(LossPolicy::Tcp),
        Lie::Windows,
    );
}

#[test]
fn every_law() {
    if std::env::var_os("MEASURE").is_none() {
        return;
    }
    use congestlab_core::law::mpcp::Loss;
    let grants = [2_000_000, 100_000_000, 0x7fff_ffff].map(Lie::Grants);
    let mut xcp = vec![Lie::None, Lie::Cubic, Lie::Sums, Lie::Increases];
    xcp.extend(grants);
    let mut xcp_r = xcp.clone();
    xcp_r[2] = Lie::Windows;
    let code = |code| vec![Lie::None, Lie::Cubic, Lie::Code(code)];
    let all = [
        (host::sender_config(LossPolicy::Tcp), xcp.clone()),
        (host::xcp_r_config(LossPolicy::Tcp), xcp_r),
        (host::sender_config(LossPolicy::Maintain), xcp),
        (host::vcp_config(Loss::Tcp), code(1)),
        (host::dpcp_config(Loss::Tcp), code(1)),
        (host::tpcp_config(Loss::Tcp), code(1)),
        (host::abc_config(), code(1)),
        (host::dctcp_config(), code(2)),
        (host::prague_config(), code(1)),
    ];
    for (sender, lies) in all {
        for lie in lies {
            let Some((mut path, host)) = set_up("every_law", sender.clone()) else { return };
            let outcome = run(&mut path, &host, lie, 15);
            let queue = path.end().map(|report| report.forward.drops);
            eprintln!("{} {lie:?}: {outcome:?}, drops of the wire {queue:?}", sender.name());
        }
    }
}
