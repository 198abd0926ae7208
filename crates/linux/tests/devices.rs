//! Laws at interfaces that are no plain Ethernet, and at ones that somebody uses already: the same packets are found, what was
//! there stays, and what was attached goes without a trace.

mod clsact;
#[expect(dead_code, reason = "other tests want other frames")]
mod frames;
mod lab;

use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::router::{self, Config, Encoding, Queue};
use congestlab_linux::sys::command::{query, run};
use congestlab_linux::sys::packet::{Frame, Socket};
use lab::Lab;

const RATE: BitRate = BitRate(50_000_000);
/// XCP's option of data packets: X, round trip time, demand and echo.
const OPTION: [u8; 20] = [253, 20, 0x58, 0x43, 0, 0, 0x40, 0, 0, 0x20, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0];
/// Bytes before IP in a frame of the tests.
const ETHERNET: usize = 14;

/// False: said why not.
fn attach(test: &str, interface: &str, encoding: Encoding, shape: Option<Queue>) -> bool {
    match router::attach(interface, &Config { rate: RATE, law: router::law(RATE), encoding, shape }) {
        Err(error @ Error::Missing { .. }) => {
            eprintln!("SKIP {test}: {error}");
            false
        }
        done => {
            done.unwrap();
            true
        }
    }
}

/// Sends a frame, from its place after Ethernet's header if the interface has none.
fn send(interface: &str, frame: &[u8], has_ethernet: bool) {
    let line = query(&format!("ip -o link show {interface}")).unwrap();
    let socket = Socket::open(line.split(':').next().unwrap().trim().parse().unwrap()).unwrap();
    let mut out = Frame::new(2000);
    out.fill(if has_ethernet { frame } else { &frame[ETHERNET..] });
    // Without a peer it goes nowhere; the law has seen it.
    let _ = socket.send([&out].into_iter());
}

/// All that tc tells of an interface, without numbers of packets.
fn state(interface: &str) -> String {
    ["qdisc", "class", "filter"]
        .iter()
        .flat_map(|what| match *what {
            "filter" => vec![
                format!("filter show dev {interface} ingress"),
                format!("filter show dev {interface} egress"),
                format!("filter show dev {interface}"),
            ],
            what => vec![format!("{what} show dev {interface}")],
        })
        .map(|line| query(&format!("tc {line}")).unwrap_or_default())
        .collect()
}

#[test]
fn a_header_is_found_behind_the_header_of_every_kind_of_interface() {
    let test = "a_header_is_found_behind_the_header_of_every_kind_of_interface";
    let Some(lab) = Lab::new(test) else { return };
    let frame = frames::segment(&[], frames::Ip::V4, &OPTION, &[0; 1000]);
    let size = (frame.len() - ETHERNET) as u64;
    lab.inside(|| {
        let mut missing = vec![];
        for (name, how, has_ethernet) in [
            ("v0", "", true),
            ("vlan0", "ip link add link v0 name vlan0 type vlan id 5", true),
            ("macvlan0", "ip link add link v0 name macvlan0 type macvlan mode bridge", true),
            (
                "vxlan0",
                "ip link add vxlan0 type vxlan id 7 local 10.77.0.1 remote 10.77.0.2 dstport 4789",
                true,
            ),
            ("geneve0", "ip link add geneve0 type geneve id 7 remote 10.77.0.2", true),
            ("gretap9", "ip link add gretap9 type gretap local 10.77.0.1 remote 10.77.0.2", true),
            ("bridge0", "ip link add bridge0 type bridge", true),
            ("bond9", "ip link add bond9 type bond", true),
            ("tun9", "ip tuntap add tun9 mode tun", false),
            ("gre9", "ip link add gre9 type gre local 10.77.0.1 remote 10.77.0.2", false),
            ("ipip9", "ip link add ipip9 type ipip local 10.77.0.1 remote 10.77.0.2", false),
            ("sit9", "ip link add sit9 type sit local 10.77.0.1 remote 10.77.0.2", false),
            ("wg9", "ip link add wg9 type wireguard", false),
        ] {
            if !how.is_empty() && run(how).is_err() {
                missing.push(name.trim_end_matches(['0', '9']));
                continue;
            }
            run(&format!("ip link set {name} up")).unwrap();
            let before = state(name);
            for shape in [Some(Queue::Packets(50)), None] {
                // A queue of somebody else, where the law is to use one.
                let theirs = shape.is_none();
                if theirs {
                    run(&format!(
                        "tc qdisc add dev {name} root handle 7: tbf rate 30mbit burst 5kb limit 60kb"
                    ))
                    .unwrap();
                }
                let with_theirs = state(name);
                if !attach(test, name, Encoding::Option, shape) {
                    return;
                }
                for _ in 0..3 {
                    send(name, &frame, has_ethernet);
                }
                let sample = router::status(Some(name)).unwrap().remove(0).sample;
                assert_eq!((sample.xcp_packets, sample.refused_packets), (3, 0), "{name}: {sample:?}");
                // What the interface itself sends, such as queries of a bridge, has no header.
                assert!(
                    sample.bytes >= 3 * size && (sample.other_packets > 0 || sample.bytes == 3 * size),
                    "{name}: {sample:?}"
                );
                router::detach(name).unwrap();
                assert_eq!(state(name), with_theirs, "{name}");
                if theirs {
                    run(&format!("tc qdisc del dev {name} root")).unwrap();
                }
            }
            assert_eq!(state(name), before, "{name}");
            if !how.is_empty() {
                run(&format!("ip link del {name}")).unwrap();
            }
        }
        // This kernel was built without them; the rest of the test stands.
        if !missing.is_empty() {
            println!("no such interfaces in this kernel: {}", missing.join(", "));
        }
    });
}

/// By tcx, and as on Linux before 6.6.
#[test]
fn filters_and_queues_of_somebody_else_stay_and_work_while_a_law_comes_and_goes() {
    let test = "filters_and_queues_of_somebody_else_stay_and_work_while_a_law_comes_and_goes";
    clsact::again(test);
    let Some(lab) = Lab::new(test) else { return };
    let frame = frames::segment(&[], frames::Ip::V4, &OPTION, &[0; 1000]);
    lab.inside(|| {
        for line in [
            "tc qdisc add dev v0 clsact",
            "tc filter add dev v0 egress protocol ip prio 5 u32 match ip dst 10.9.9.9/32 flowid 1:1",
            "tc filter add dev v0 ingress protocol ip prio 6 u32 match ip src 10.9.9.9/32 flowid 1:1",
            "tc qdisc add dev v0 root handle 1: htb default 20",
            "tc class add dev v0 parent 1: classid 1:1 htb rate 40mbit",
            "tc class add dev v0 parent 1:1 classid 1:10 htb rate 10mbit ceil 40mbit",
            "tc class add dev v0 parent 1:1 classid 1:20 htb rate 30mbit ceil 40mbit",
            "tc filter add dev v0 parent 1: protocol ip prio 1 u32 match ip dst 10.9.8.7/32 flowid 1:10",
        ] {
            run(line).unwrap();
        }
        let before = state("v0");
        assert!(before.contains("0a090909") && before.contains("htb 1:10"), "{before}");
        let error = router::attach(
            "v0",
            &Config {
                rate: RATE,
                law: router::law(RATE),
                encoding: Encoding::Option,
                shape: Some(Queue::Packets(50)),
            },
        );
        let error = error.unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("htb 1:"), "{error}");
        assert_eq!(state("v0"), before, "what was refused has changed nothing");
        if !attach(test, "v0", Encoding::Option, None) {
            return;
        }
        send("v0", &frame, true);
        let during = state("v0");
        for line in before.lines().filter(|line| !line.trim().is_empty()) {
            assert!(during.contains(line), "{line} is gone from\n{during}");
        }
        assert_eq!(router::status(Some("v0")).unwrap()[0].sample.xcp_packets, 1);
        // Their filter still chooses the class.
        let classes = query("tc -s class show dev v0").unwrap();
        let of_ten = classes.split("class htb 1:10").nth(1).unwrap_or_default();
        assert!(of_ten.contains("Sent 1074 bytes 1 pkt"), "{classes}");
        router::detach("v0").unwrap();
        assert_eq!(state("v0"), before);
    });
}
