//! The router at real interfaces, in namespaces of their own: what attaching changes, what detaching
//! restores, what is refused.

mod clsact;
#[expect(dead_code, reason = "other tests want other frames")]
mod frames;
mod lab;

use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;

use congestlab_core::law::xcp::Header;
use congestlab_core::law::{Carried, On, Protocol, Tag};
use congestlab_core::units::{BitRate, Ratio};
use congestlab_core::wire::option::{Echo, Option as XcpOption};
use congestlab_linux::Error;
use congestlab_linux::router::{
    self, AnyLaw, Change, Config, Encoding, Follower, Hook, Law, Part, Policed, Queue, Reader, SourceState,
    State, Status, Weights,
};
use congestlab_linux::sys::command::{Mode, query, run, set_mode};
use congestlab_linux::sys::packet::{Frame, Socket};
use lab::Lab;

const RATE: BitRate = BitRate(50_000_000);

fn config(shape: Option<Queue>) -> Config {
    Config { rate: RATE, law: router::law(RATE), encoding: Encoding::Option, shape }
}

/// Also says why it can not be.
fn attach(test: &str, config: &Config) -> bool {
    match router::attach("v0", config) {
        Ok(()) => true,
        Err(error @ Error::Missing { .. }) => {
            eprintln!("SKIP {test}: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn qdiscs() -> String {
    query("tc qdisc show dev v0").unwrap()
}

fn send(count: usize, size: usize) {
    let socket = UdpSocket::bind("10.77.0.1:0").unwrap();
    for _ in 0..count {
        socket.send_to(&vec![0; size], "10.77.0.2:9").unwrap();
    }
}

#[test]
fn what_is_attached_is_seen_and_detaching_restores_what_was_there() {
    let test = "what_is_attached_is_seen_and_detaching_restores_what_was_there";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let before = qdiscs();
        if !attach(test, &config(Some(Queue::Packets(77)))) {
            return;
        }
        assert!(qdiscs().contains("tbf cc1: root") && qdiscs().contains("limit 77p"), "{}", qdiscs());
        let error = router::attach("v0", &config(None)).unwrap_err();
        assert_eq!(error.exit_code(), 2, "twice: {error}");

        let reader = Reader::open("v0").unwrap();
        let (first, _) = reader.sample().unwrap();
        send(20, 972);
        sleep(Duration::from_millis(100));
        send(20, 972);
        let all = router::status(None).unwrap();
        let [status] = &all[..] else { panic!("{all:?}") };
        assert_eq!((status.interface.as_str(), &*status.law, status.shaped), ("v0", "xcp", true));
        assert_eq!(status.sample.capacity_bps, RATE.0);
        assert_eq!(status.sample.bytes - first.bytes, 40_000, "IP bytes");
        assert_eq!(status.sample.other_packets - first.other_packets, 40);
        assert!(status.sample.input_Bps > 0 && status.sample.intervals > 0, "{status:?}");
        assert_eq!(router::status(Some("v0")).unwrap().len(), 1);

        router::set_rate("v0", BitRate(25_000_000)).unwrap();
        assert!(qdiscs().contains("rate 25Mbit") && qdiscs().contains("limit 77p"), "{}", qdiscs());
        assert_eq!(reader.sample().unwrap().0.capacity_bps, 25_000_000);

        router::detach("v0").unwrap();
        assert_eq!(qdiscs(), before);
        assert!(router::status(None).unwrap().is_empty());
        for error in [router::detach("v0"), router::status(Some("v0")).map(drop)] {
            assert_eq!(error.unwrap_err().exit_code(), 2);
        }
        assert!(attach(test, &config(Some(Queue::Bytes(100_000)))), "again");
        assert!(qdiscs().contains("bfifo") && qdiscs().contains("limit 100000b"), "{}", qdiscs());
    });
}

#[test]
fn the_shaper_counts_bytes_of_ip() {
    let test = "the_shaper_counts_bytes_of_ip";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let slow = Config { rate: BitRate(80_000), ..config(Some(Queue::Packets(100))) };
        if !attach(test, &slow) {
            return;
        }
        let reader = Reader::open("v0").unwrap();
        // The bucket lets 5 of them through, the others stand.
        send(30, 972);
        let (_, queue) = reader.sample().unwrap();
        assert!(queue.queue_packets > 10, "{queue:?}");
        assert_eq!(queue.queue_bytes, queue.queue_packets * 1000);
        send(100, 972);
        let (_, queue) = reader.sample().unwrap();
        assert_eq!(queue.queue_packets, 100);
        assert!(queue.drops > 10, "{queue:?}");
    });
}

/// A bucket that is smaller than a packet would let none of them pass.
#[test]
fn the_longest_packet_of_the_interface_passes_at_every_rate() {
    let test = "the_longest_packet_of_the_interface_passes_at_every_rate";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        run("ip link set lo up").unwrap();
        for end in ["v0", "v1"] {
            run(&format!("ip link set {end} mtu 9000")).unwrap();
            // Which sends packets on its own.
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{end}/disable_ipv6"), "1");
        }
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let here = receiver.local_addr().unwrap();
        let there = "10.77.0.2:9".parse().unwrap();
        let sent = |interface: &str| {
            let line = format!("tc -s -j qdisc show dev {interface} root");
            let list: serde_json::Value = serde_json::from_str(&query(&line).unwrap()).unwrap();
            list[0]["packets"].as_u64().unwrap()
        };
        for (rate, later) in [(100_000_000, 10_000_000), (1_000, 2_000)] {
            // The longest UDP payload on lo, whose MTU is longer than that.
            for (interface, to, size) in [("v0", there, 8972), ("lo", here, 65507)] {
                let rate = BitRate(rate);
                let config = Config { rate, law: router::law(rate), ..config(Some(Queue::Bytes(100_000))) };
                match router::attach(interface, &config) {
                    Err(error @ Error::Missing { .. }) => return eprintln!("SKIP {test}: {error}"),
                    done => done.unwrap(),
                }
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.send_to(&vec![0; size], to).unwrap();
                sleep(Duration::from_millis(100));
                assert_eq!(sent(interface), 1, "{interface} at {rate}");
                router::set_rate(interface, BitRate(later)).unwrap();
                let before = sent(interface);
                socket.send_to(&vec![0; size], to).unwrap();
                sleep(Duration::from_millis(100));
                let status = &router::status(Some(interface)).unwrap()[0];
                // The bucket may not be full again: then it waits there.
                let waiting = status.queue.queue_packets;
                assert_eq!(sent(interface) + waiting, before + 1, "{interface} at {later} bit/s");
                assert_eq!(status.queue.drops, 0, "{interface} at {later} bit/s");
                router::detach(interface).unwrap();
            }
        }
    });
}

#[test]
fn a_queue_of_somebody_else_is_used_or_left_alone() {
    let test = "a_queue_of_somebody_else_is_used_or_left_alone";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let shaped = Some(Queue::Packets(50));
        let error = router::attach("v0", &config(None)).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("noqueue"), "{error}");
        assert_eq!(router::attach("v9", &config(shaped)).unwrap_err().exit_code(), 2);
        assert_eq!(router::shaped_rate("v0").unwrap_err().exit_code(), 2);

        run("tc qdisc add dev v0 root handle 7: tbf rate 30mbit burst 5kb latency 50ms").unwrap();
        let before = qdiscs();
        let error = router::attach("v0", &config(shaped)).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("tbf 7:"), "{error}");
        assert_eq!(router::shaped_rate("v0").unwrap(), BitRate(30_000_000));
        if !attach(test, &config(None)) {
            return;
        }
        assert_eq!(qdiscs(), before);
        assert!(!router::status(Some("v0")).unwrap()[0].shaped);
        router::set_rate("v0", BitRate(20_000_000)).unwrap();
        router::detach("v0").unwrap();
        assert_eq!(qdiscs(), before);

        run("tc qdisc del dev v0 root").unwrap();
        run("tc qdisc add dev v0 root handle 7: htb default 1").unwrap();
        run("tc class add dev v0 parent 7: classid 7:1 htb rate 40mbit").unwrap();
        assert_eq!(router::shaped_rate("v0").unwrap(), BitRate(40_000_000));
    });
}

#[test]
fn a_shaper_that_was_left_without_the_program_is_repaired_or_removed() {
    let test = "a_shaper_that_was_left_without_the_program_is_repaired_or_removed";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let before = qdiscs();
        // As after `kill -9` between the shaper and the program.
        let leave =
            || run("tc qdisc add dev v0 root handle cc1: tbf rate 1mbit burst 5kb limit 9kb").unwrap();
        leave();
        for error in [router::attach("v0", &config(None)), router::status(Some("v0")).map(drop)] {
            let error = error.unwrap_err();
            assert!(error.exit_code() == 2 && error.help().contains("router detach v0"), "{error}");
        }
        if !attach(test, &config(Some(Queue::Packets(77)))) {
            return;
        }
        assert!(qdiscs().contains("rate 50Mbit") && qdiscs().contains("limit 77p"), "{}", qdiscs());
        router::detach("v0").unwrap();
        assert_eq!(qdiscs(), before);
        leave();
        router::detach("v0").unwrap();
        assert_eq!(qdiscs(), before);
        assert_eq!(router::detach("v0").unwrap_err().exit_code(), 2);
    });
}

#[test]
fn a_dry_run_fails_where_the_real_one_would() {
    let test = "a_dry_run_fails_where_the_real_one_would";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let shaped = config(Some(Queue::Packets(77)));
        if !attach(test, &shaped) {
            return;
        }
        let before = qdiscs();
        set_mode(Mode::DryRun);
        let error = router::attach("v0", &shaped).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("already"), "{error}");
        router::detach("v0").unwrap();
        set_mode(Mode::Run);
        assert_eq!(qdiscs(), before);
        router::detach("v0").unwrap();
    });
}

#[test]
fn status_says_that_somebody_has_removed_the_shaper() {
    let test = "status_says_that_somebody_has_removed_the_shaper";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        if !attach(test, &config(Some(Queue::Packets(77)))) {
            return;
        }
        let said = || {
            let status = router::status(Some("v0")).unwrap().remove(0);
            (status.shaped, status.shaper_gone)
        };
        assert_eq!(said(), (true, false));
        run("tc qdisc del dev v0 root").unwrap();
        assert_eq!(said(), (false, true));
        assert_eq!(router::set_rate("v0", RATE).unwrap_err().exit_code(), 2);
        run("tc qdisc add dev v0 root handle 7: tbf rate 30mbit burst 5kb latency 50ms").unwrap();
        assert_eq!(said(), (false, true));
        let before = qdiscs();
        router::detach("v0").unwrap();
        assert_eq!(qdiscs(), before, "theirs stays");
    });
}

#[test]
fn rates_that_can_not_be_held_are_refused_and_all_others_work() {
    let test = "rates_that_can_not_be_held_are_refused_and_all_others_work";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let at = |rate| Config { rate, law: router::law(rate), ..config(Some(Queue::default_for(rate))) };
        let before = qdiscs();
        for (rate, said) in [
            (0, "0 bit/s"),
            (1, "1 bit/s"),
            (8, "8 bit/s"),
            (999, "999 bit/s"),
            (1_000_000_000_001, "1000000000001 bit/s"),
            (1_000_000_000_000_000, "1000 Tbit/s"),
            (u64::MAX, "18446744073709551615 bit/s"),
        ] {
            for config in [at(BitRate(rate)), Config { shape: None, ..at(BitRate(rate)) }] {
                for mode in [Mode::DryRun, Mode::Run] {
                    set_mode(mode);
                    let error = router::attach("v0", &config).unwrap_err();
                    assert_eq!(error.exit_code(), 2, "{error}");
                    assert!(error.to_string().contains(said), "{error}");
                    assert!(error.help().contains("1 kbit/s to 1 Tbit/s"), "{}", error.help());
                }
            }
        }
        assert_eq!(qdiscs(), before);
        for rate in [1_000, 1_001, 8_000, 400_000_000_000, 1_000_000_000_000] {
            if !attach(test, &at(BitRate(rate))) {
                return;
            }
            // Of the law whole bytes, hence so.
            let capacity = router::status(Some("v0")).unwrap()[0].sample.capacity_bps;
            assert_eq!(capacity, rate / 8 * 8);
            assert_eq!(router::set_rate("v0", BitRate(0)).unwrap_err().exit_code(), 2);
            router::set_rate("v0", BitRate(1_000_000_000_000)).unwrap();
            router::set_rate("v0", BitRate(1_000)).unwrap();
            router::detach("v0").unwrap();
        }
        assert_eq!(qdiscs(), before);
    });
}

/// Without a header nothing but the capacity and the input decide about feedback: alpha (C - y).
#[test]
fn the_first_decision_after_a_rate_was_set_is_by_that_rate() {
    let test = "the_first_decision_after_a_rate_was_set_is_by_that_rate";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        for law in [router::law(RATE), router::pxcp(RATE)] {
            if !attach(test, &Config { law, ..config(Some(Queue::Packets(50))) }) {
                return;
            }
            let reader = Reader::open("v0").unwrap();
            let decided = || {
                let count = reader.sample().unwrap().0.intervals;
                let samples = std::iter::repeat_with(|| {
                    // The program has no timer: packets end intervals.
                    send(1, 100);
                    sleep(Duration::from_millis(2));
                    reader.sample().unwrap().0
                });
                samples.take(2000).find(|sample| sample.intervals > count).expect("an interval has ended")
            };
            // An interval in which nothing came decides nothing.
            decided();
            for rate in [50_000_000, 25_000_000, 400_000_000, 4_000_000, 50_000_000] {
                router::set_rate("v0", BitRate(rate)).unwrap();
                let sample = decided();
                assert_eq!(sample.capacity_bps, rate);
                let expected = 0.4 * (rate as f64 / 8.0 - sample.input_Bps as f64);
                let found = sample.feedback_Bps as f64;
                assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected} at {rate} bit/s");
            }
            router::detach("v0").unwrap();
        }
    });
}

/// Two classes at v0 with 2 Mbit/s.
fn beside(weights: Weights, shape: Option<Queue>) -> Config {
    let rate = BitRate(2_000_000);
    Config { rate, law: router::law(rate).beside(weights).unwrap(), ..config(shape) }
}

/// Data of a flow of XCP.
fn xcp_frame(flow: u8) -> Frame {
    let header = Header { x: 5_000, rtt: 0x00a3_d700, delta: 1_000_000, reverse: 0 };
    let (option, length) = XcpOption::Data { header, routers: 0, echo: Echo { routers: 0, sum: 0 } }.emit();
    let mut segment = frames::segment(&[], frames::Ip::V4, &option[..length], &[0; 1400]);
    segment[35] = flow; // of the port, behind Ethernet and IP
    let mut frame = Frame::new(2000);
    frame.fill(&segment);
    frame
}

/// Rates of the classes of XCP and of all else, bit/s, as tc tells them: of what is above 1 Mbit/s whole kbit/s.
fn classes() -> [u64; 2] {
    let text = query("tc class show dev v0").unwrap();
    ["cc1:10 ", "cc1:20 "].map(|class| {
        let line =
            text.lines().find(|line| line.contains(class)).unwrap_or_else(|| panic!("{class}: {text}"));
        let rate = line.split(" rate ").nth(1).unwrap().split(' ').next().unwrap();
        let number = |unit| rate.strip_suffix(unit).and_then(|number| number.parse::<u64>().ok());
        let units = [("Mbit", 1_000_000), ("Kbit", 1000), ("bit", 1)];
        units.iter().find_map(|(unit, factor)| Some(number(unit)? * factor)).expect(line)
    })
}

#[test]
fn two_classes_are_made_told_and_taken_away() {
    let test = "two_classes_are_made_told_and_taken_away";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let before = qdiscs();
        let packets = Some(Queue::Packets(30));
        let wanted = beside(Weights::Fixed(Ratio::ppm(300_000)), packets);
        let slow = Config { rate: BitRate(99_000), ..wanted.clone() };
        let bare = Config { shape: None, ..wanted.clone() };
        for (config, said) in [(slow, "100 kbit/s or more"), (bare, "leave --no-shape out")] {
            for error in [router::attach("v0", &config), router::replace("v0", &config).map(drop)] {
                let error = error.unwrap_err();
                assert!(error.exit_code() == 2 && error.help().contains(said), "{error}; {}", error.help());
            }
        }
        assert_eq!(qdiscs(), before);
        if !attach(test, &wanted) {
            return;
        }
        for part in
            ["htb cc1: root", "pfifo cc2: parent cc1:10 limit 30p", "pfifo cc3: parent cc1:20 limit 30p"]
        {
            assert!(qdiscs().contains(part), "{part}: {}", qdiscs());
        }
        let look = || router::status(Some("v0")).unwrap().remove(0);
        let status = look();
        let two = status.beside.unwrap();
        assert_eq!((&*status.law, two.xcp_weight, two.follower, status.warning), ("xcp", 0.3, None, None));
        assert_eq!(classes(), [600_000, 1_400_000]);

        // What others send is none of the law's traffic, and what of it waits none of its queue. XCP sends half of its part.
        let (from, datagrams) = (socket("v0"), UdpSocket::bind("10.77.0.1:0").unwrap());
        let mut measured = None;
        for round in 0..400 {
            let _ = datagrams.send_to(&[0; 972], "10.77.0.2:9");
            if round % 20 == 0 {
                from.send([&xcp_frame(0)].into_iter()).unwrap();
                // On a busy machine nothing came in some of the intervals.
                measured = Some(look().sample).filter(|sample| sample.input_Bps > 0).or(measured);
            }
            sleep(Duration::from_millis(2));
        }
        // More at once than its queue has room for.
        for _ in 0..40 {
            let _ = datagrams.send_to(&[0; 972], "10.77.0.2:9");
        }
        let Status { sample, beside: two, .. } = look();
        let two = two.unwrap();
        assert!(two.tcp.queue_packets > 0 && two.tcp.drops > 0 && two.xcp.drops == 0, "{two:?}");
        assert_eq!((sample.xcp_packets, sample.other_packets), (20, 440), "{sample:?}");
        assert!(sample.intervals > 3 && sample.input_Bps < 75_000, "{sample:?}");
        assert_eq!(sample.persistent_queue_bytes, 0);
        // alpha (C - y), of its own part.
        let sample = measured.expect("an interval in which packets came");
        let (found, expected) = (sample.feedback_Bps as f64, 0.4 * (75_000.0 - sample.input_Bps as f64));
        assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected}");

        router::set_rate("v0", BitRate(4_000_000)).unwrap();
        assert_eq!((classes(), look().sample.capacity_bps), ([1_200_000, 2_800_000], 4_000_000));
        assert_eq!(router::set_rate("v0", BitRate(50_000)).unwrap_err().exit_code(), 2);
        let rate = Part::Rate(BitRate(4_000_000));
        assert_eq!(router::replace("v0", &wanted).unwrap(), Change::Set(vec![rate]));
        assert_eq!(router::replace("v0", &wanted).unwrap(), Change::None);
        let longer = Config { shape: Some(Queue::Packets(40)), ..wanted.clone() };
        assert_eq!(router::replace("v0", &longer).unwrap(), Change::Set(vec![Part::Limit(30)]));
        assert_eq!(qdiscs().matches("limit 40p").count(), 2, "{}", qdiscs());
        let both = Config { encoding: Encoding::Both, ..longer.clone() };
        assert_eq!(router::replace("v0", &both).unwrap(), Change::Replaced(State::Kept));
        assert_eq!((classes(), look().beside.unwrap().xcp_weight), ([600_000, 1_400_000], 0.3));
        assert!(look().sample.intervals > 3);
        let half = beside(Weights::Fixed(Ratio::ppm(500_000)), Some(Queue::Packets(40)));
        assert_eq!(router::replace("v0", &half).unwrap(), Change::Replaced(State::OtherConstants));
        assert_eq!((classes(), look().beside.unwrap().xcp_weight), ([1_000_000, 1_000_000], 0.5));
        let error = router::replace("v0", &Config { rate: half.rate, ..config(packets) }).unwrap_err();
        assert!(error.to_string().contains("one class or two"), "{error}");
        let error = Follower::start("v0", |_| {}).unwrap_err();
        assert!(error.to_string().contains("no classes that follow flows"), "{error}");
        run("tc qdisc del dev v0 parent cc1:10").unwrap();
        run("tc class del dev v0 classid cc1:10").unwrap();
        for status in [look(), router::status(None).unwrap().remove(0)] {
            let warning = status.warning.unwrap_or_default();
            assert!(
                status.beside.is_none() && warning.contains("a class of its shaper is gone"),
                "{warning}"
            );
        }
        router::detach("v0").unwrap();
        assert_eq!(qdiscs(), before);
    });
}

#[test]
fn parts_of_two_classes_follow_the_numbers_of_flows_in_them() {
    let test = "parts_of_two_classes_follow_the_numbers_of_flows_in_them";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        if !attach(test, &beside(Weights::Flows, Some(Queue::Packets(30)))) {
            return;
        }
        let look = || router::status(Some("v0")).unwrap().remove(0);
        assert!(look().warning.is_some_and(|text| text.ends_with("nobody counts them")), "{:?}", look());
        let follower = Follower::start("v0", |line| panic!("{line}")).unwrap();
        assert!(look().warning.is_none() && look().beside.unwrap().follower == Some(SourceState::Fresh));
        let error = router::replace("v0", &beside(Weights::Flows, Some(Queue::Packets(30)))).unwrap_err();
        assert!(error.to_string().contains("counts the flows of v0"), "{error}");

        let (from, datagrams) = (socket("v0"), UdpSocket::bind("10.77.0.1:0").unwrap());
        // So many flows of XCP beside one of datagrams, which fills its queue, until the parts are so.
        let becomes = |flows: u8, part: f64| {
            for round in 0..4000u32 {
                let _ = datagrams.send_to(&[0; 1400], "10.77.0.2:9");
                for flow in 0..flows {
                    // A full queue is an error here; the program has seen the packet.
                    let _ = from.send([&xcp_frame(flow)].into_iter());
                }
                sleep(Duration::from_millis(3));
                if round % 50 != 49 {
                    continue;
                }
                let two = look().beside.unwrap();
                let counted = [two.xcp_flows, two.tcp_flows].map(f64::round);
                if counted == [flows.into(), 1.0] && (two.xcp_weight - part).abs() < 0.02 {
                    let [xcp, others] = classes();
                    assert!((1_999_000..=2_000_000).contains(&(xcp + others)), "{xcp} {others}");
                    // The thread may have gone on in between.
                    assert!((xcp as f64 / 2e6 - part).abs() < 0.03, "{xcp}");
                    return;
                }
            }
            panic!("never {flows} flows of XCP beside one with {part}: {:?}", look().beside);
        };
        becomes(3, 0.75);
        becomes(0, 0.05);
        becomes(1, 0.5);
        drop(follower);
        assert!(look().beside.is_some_and(|two| two.pid == 0 && two.follower == Some(SourceState::Unread)));
        router::detach("v0").unwrap();
    });
}

/// As on Linux before 6.6.
#[test]
fn without_tcx_a_filter_does_the_same() {
    let test = "without_tcx_a_filter_does_the_same";
    if clsact::again(test) {
        return;
    }
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        for was_there in [false, true] {
            if was_there {
                run("tc qdisc add dev v0 clsact").unwrap();
            }
            let before = qdiscs();
            if !attach(test, &config(Some(Queue::Packets(50)))) {
                return;
            }
            let status = &router::status(Some("v0")).unwrap()[0];
            assert_eq!(status.hook, Hook::Clsact);
            send(5, 100);
            assert!(Reader::open("v0").unwrap().sample().unwrap().0.packets >= 5);
            router::detach("v0").unwrap();
            assert_eq!(qdiscs(), before);
        }
    });
}

/// A packet socket at an interface.
fn socket(interface: &str) -> Socket {
    let line = query(&format!("ip -o link show {interface}")).unwrap();
    Socket::open(line.split(':').next().unwrap().trim().parse().unwrap()).unwrap()
}

/// The rates that packets with RCP's option bring through the link, of which so many are sent, each ms two.
fn rates(count: usize, asks: u32) -> Vec<u32> {
    let (from, to) = (socket("v0"), socket("v1"));
    // The mean round trip time is 20 ms, in 2^-28 s.
    let words = [0, (1 << 28) / 50, asks, 0, 0, 0, 0];
    let packet = Carried { words, tag: Tag::header("rcp").name, ..Carried::default() };
    let option = Protocol::of("rcp").unwrap().sender.as_ref().unwrap().option(On::Forward(&packet)).unwrap();
    let mut frame = Frame::new(2000);
    frame.fill(&frames::segment(&[], frames::Ip::V4, &option[..12], &[0; 1400]));
    let (mut rates, mut came) = (vec![], vec![Frame::new(2000), Frame::new(2000), Frame::new(2000)]);
    let mut receive = |rates: &mut Vec<u32>| {
        while let Ok(1..) = to.receive(&mut came[..1]) {
            let options = frames::judged(came[0].bytes());
            assert_eq!(options[..4], option[..4]);
            assert_eq!(options[8..12], option[8..12], "the round trip time is the sender's");
            rates.push(u32::from_be_bytes(options[4..8].try_into().unwrap()));
        }
    };
    for sent in 0..count {
        // A full queue is an error here; the law has seen the packet.
        let _ = from.send([&frame].into_iter());
        if sent % 2 == 1 {
            sleep(Duration::from_millis(1));
        }
        receive(&mut rates);
    }
    sleep(Duration::from_millis(200));
    receive(&mut rates);
    rates
}

/// RCP, whose program nobody wrote: its hosts are not in the kernel, so a test writes their option.
#[test]
fn a_law_that_has_no_program_of_its_own_rules_a_link_and_leaves_it_as_it_was() {
    let test = "a_law_that_has_no_program_of_its_own_rules_a_link_and_leaves_it_as_it_was";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let before = qdiscs();
        let rate = BitRate(10_000_000);
        let law = AnyLaw::new(Protocol::of("rcp").unwrap(), rate, None).unwrap();
        let law = Law::Any(Box::new(law));
        let shape = Some(Queue::Bytes(60_000));
        let told = Config { rate, law, encoding: Encoding::Option, shape };
        if !attach(test, &told) {
            return;
        }
        // What it is told to look for is the law's own.
        let error = router::attach("v1", &Config { encoding: Encoding::Shim, ..told.clone() }).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        let offered = || router::status(Some("v0")).unwrap().remove(0).series["offered_rate_Bps"];
        // 5 % of the link (RNS), before anything came.
        assert_eq!(offered(), 62_500.0);

        // Up to 24 Mbit/s: the link is full, and what it offers falls.
        let came = rates(1200, u32::MAX);
        let status = router::status(Some("v0")).unwrap().remove(0);
        assert_eq!((&*status.law, status.shaped, status.encoding), ("rcp", true, Encoding::Option));
        assert!(came.len() > 200, "{}", came.len());
        assert!(came.iter().all(|rate| *rate <= 1_250_000 / 64), "no more than the link");
        assert!(came.windows(2).any(|pair| pair[0] != pair[1]), "one rate all the time");
        let last = f64::from(came[came.len() - 1]);
        let [said, input] = ["offered_rate_Bps", "input_Bps"].map(|name| status.series[name]);
        assert!(last <= 1_250_000.0 / 64.0 && said < 1_250_000.0, "{status:?}");
        assert!(input > 0.0 && status.sample.intervals > 10, "{status:?}");
        assert_eq!(status.sample.xcp_packets, 1200);
        assert_eq!(status.sample.refused_packets + status.sample.other_packets, 0, "{status:?}");

        // A packet that asks for less keeps it, and another is told what the law says then, to the word.
        assert_eq!(rates(1, 1), [1]);
        assert_eq!(rates(1, u32::MAX), [(offered() / 64.0) as u32]);

        router::set_rate("v0", BitRate(20_000_000)).unwrap();
        rates(1, 1);
        assert_eq!(router::status(Some("v0")).unwrap()[0].sample.capacity_bps, 20_000_000);
        router::detach("v0").unwrap();
        assert_eq!(qdiscs(), before);
        assert!(router::status(None).unwrap().is_empty());
    });
}

/// XCP behind a policer with so many records.
fn policed(rate: BitRate, records: u32) -> Law {
    router::law(rate).policed(records).unwrap()
}

/// A table does not grow, and no name that comes once takes the place of a flow that sends.
#[test]
fn who_sends_more_than_the_link_is_held_and_named_beside_a_million_made_up_flows() {
    let test = "who_sends_more_than_the_link_is_held_and_named_beside_a_million_made_up_flows";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        let rate = BitRate(400_000);
        let told = |records| Config { rate, law: policed(rate, records), ..config(Some(Queue::Packets(50))) };
        for records in [0, 7, 1_000_001] {
            let error = router::attach("v0", &told(records)).unwrap_err();
            assert!(error.exit_code() == 2 && error.help().contains("8 to 1000000"), "{error}");
        }
        if !attach(test, &told(1024)) {
            return;
        }
        let state = || {
            let status = router::status(Some("v0")).unwrap().remove(0);
            (status.law, status.sample, status.police.unwrap())
        };
        let (law, sample, table) = state();
        assert_eq!((&*law, sample.policed.unwrap()), ("xcp", Policed::default()));
        assert_eq!((table.records, table.memory_bytes, &table.held[..]), (1024, 1024 * 136, &[][..]));

        let from = socket("v0");
        let (mut loud, mut made_up) = (Frame::new(2000), Frame::new(100));
        loud.fill(&frames::segment(frames::TAGS[2], frames::Ip::V6WithExtensions, &[], &[0; 900]));
        made_up.fill(&frames::frame(&[], frames::Ip::V4, 17, &[0; 20]));
        // A full queue is an error here; the policer has seen the packet.
        let pass = |frame: &Frame| drop(from.send([frame].into_iter()));
        let quiet = UdpSocket::bind("10.77.0.1:7778").unwrap();
        let whisper = || assert_eq!(quiet.send_to(&[0; 472], "10.77.0.2:9").unwrap(), 472);
        // Four times the rate, and beside it a hundredth of that; twenty seconds at most.
        for turn in 0..4000 {
            pass(&loud);
            if turn % 100 == 0 {
                whisper();
                if state().1.policed.unwrap().policed_packets > 0 {
                    break;
                }
            }
            sleep(Duration::from_millis(5));
        }
        let (_, sample, table) = state();
        let [held] = table.held[..] else { panic!("{sample:?}, {table:?}") };
        assert_eq!((held.from, held.to), (frames::V6[0].into(), frames::V6[1].into()));
        assert_eq!((held.from_port, held.to_port, held.protocol), (5001, 43210, 6));
        assert!(held.rate_Bps > 60_000, "{held:?}");
        assert_eq!(sample.policed.unwrap().policed_flows, 1);
        // Its packets alone are dropped.
        let dropped = |send: &dyn Fn()| {
            let before = state().1;
            (0..20).for_each(|_| send());
            let after = state().1;
            assert_eq!(after.packets - before.packets, 20);
            after.policed.unwrap().policed_packets - before.policed.unwrap().policed_packets
        };
        assert_eq!(dropped(&whisper), 0);
        assert!(dropped(&|| pass(&loud)) > 10);

        for name in 0..1_000_000u32 {
            made_up.bytes_mut()[26..30].copy_from_slice(&(0x0b00_0000 + name).to_be_bytes());
            pass(&made_up);
        }
        let (_, after, table) = state();
        assert!(after.packets - sample.packets >= 1_000_000, "{after:?}");
        assert_eq!((table.records, table.memory_bytes), (1024, 1024 * 136));
        let named: Vec<_> = table.held.iter().map(|held| held.from_port).collect();
        assert_eq!(named, [5001], "nobody takes its place");
        assert_eq!(dropped(&whisper), 0, "nor that of one that is not held");

        router::set_rate("v0", BitRate(800_000)).unwrap();
        assert_eq!((state().1.capacity_bps, state().2.held.len()), (800_000, 1), "a rate changes no record");
        let larger = Config { rate, law: policed(rate, 2048), ..config(Some(Queue::Packets(50))) };
        assert_eq!(router::replace("v0", &larger).unwrap(), Change::Replaced(State::OtherConstants));
        assert_eq!((state().2.records, state().1.policed.unwrap()), (2048, Policed::default()));
        assert_eq!(router::replace("v0", &larger).unwrap(), Change::None);
        router::detach("v0").unwrap();
    });
}
