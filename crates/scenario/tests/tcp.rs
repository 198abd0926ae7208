//! TCP's machinery over whole scenarios: marks, the handshake, delayed ACKs.

mod common;

use congestlab_scenario::Measure;
use congestlab_scenario::sim::outcome::{FlowOutcome, LinkOutcome};

const BASE: &str = r#"
[run]
duration = "30 s"
warmup = "5 s"

[links.l]
rate = "12 Mbit/s"
delay = "30 ms"
queue = "400 packets"

[flows.f]
law = "cubic"
path = ["l"]
"#;

fn outcome(settings: &[(&str, &str)]) -> (FlowOutcome, LinkOutcome) {
    let outcome = common::run(&common::scenario(BASE, settings), &Measure::default());
    (outcome.groups[0][0].clone(), outcome.links[0].clone())
}

const CODEL: (&str, &str) = ("links.l.discipline", "{ codel = { ecn = true } }");
const ECN: (&str, &str) = ("flows.f.ecn", "true");
const LINUX: (&str, &str) = ("flows.f.profile", "\"linux\"");
const DELAYED: (&str, &str) = ("flows.f.delayed_ack", "true");

/// RFC 3168 §6.1.2. A second cut in answer to the echoes of a window left Reno 0.69 of the link.
#[test]
fn a_window_is_cut_once_for_its_marks() {
    for (law, least) in [("\"newreno\"", 0.82), ("\"sack\"", 0.82), ("\"reno\"", 0.82), ("\"fack\"", 0.82)] {
        let (flow, link) = outcome(&[CODEL, ECN, ("flows.f.law", law)]);
        // A mark shortly before the measurement, or its end, is answered after it.
        assert!(flow.window_cuts.abs_diff(link.marks) <= 1, "{law}: {} for {}", flow.window_cuts, link.marks);
        assert!(link.utilization > Some(least), "{law}: {:?}", link.utilization);
    }
    // Two cuts left a window that CoDel marked in each of its intervals: 89 % of the packets.
    for (rate, most) in [("\"8 Mbit/s\"", 0.002), ("\"10 Mbit/s\"", 0.002)] {
        let (flow, link) =
            outcome(&[CODEL, ECN, LINUX, ("links.l.rate", rate), ("links.l.delay", "\"25 ms\"")]);
        let share = link.marks as f64 / link.sent_packets as f64;
        assert!(share < most, "{rate}: {share} of the packets marked");
        assert!(
            flow.window_cuts.abs_diff(link.marks) <= 1,
            "{rate}: {} for {}",
            flow.window_cuts,
            link.marks
        );
        assert!(link.utilization > Some(0.9), "{rate}: {:?}", link.utilization);
    }
}

/// RFC 6928 §2: the SYN is repeated once, after a second, because the round trip is longer.
#[test]
fn a_path_longer_than_the_first_timeout_leaves_linux_its_initial_window() {
    let long =
        [("links.l.rate", "\"8 Mbit/s\""), ("links.l.delay", "\"540 ms\""), ("flows.f.size", "\"1 MB\"")];
    let completion = |more: &[(&str, &str)]| outcome(&[&long, more].concat()).0.completion_s;
    // The kernel took 8.7 s. A window that begins with one packet needs three round trips more.
    let standard = completion(&[LINUX, ("flows.f.slow_start", "\"standard\"")]).expect("completion");
    assert!((standard - 8.7).abs() < 0.2, "{standard} s");
    // HyStart leaves slow start at 144 packets, and costs a round trip.
    assert!(completion(&[LINUX]) < Some(10.0), "{:?}", completion(&[LINUX]));
    assert!(completion(&[]) > Some(11.0), "RFC 5681: one packet, {:?}", completion(&[]));
}

/// Each law that answers marks by itself counts its cuts as TCP's machinery does.
#[test]
fn laws_that_answer_marks_themselves_count_their_cuts() {
    let step = ("links.l.discipline", "{ step = { above = \"20 packets\" } }");
    for law in ["\"dctcp\"", "\"prague\"", "\"abc\""] {
        let (flow, link) = outcome(&[step, ("flows.f.law", law)]);
        assert!((1..=link.marks).contains(&flow.window_cuts), "{law}: {} cuts", flow.window_cuts);
    }
    for law in ["\"vcp\"", "\"dpcp\"", "\"tpcp\"", "\"mpcp\""] {
        let crowd = [("links.l.law", law), ("flows.f.law", law), ("flows.f.count", "20")];
        assert!(outcome(&crowd).0.window_cuts > 0, "{law}");
    }
    for law in ["bbr", "bbr3"] {
        let model = format!("\"{law}\"");
        let lossy = [
            ("flows.f.law", &*model),
            ("links.l.rate", "\"40 Mbit/s\""),
            ("links.l.error", "{ packet_error_rate = 0.001 }"),
        ];
        let flow = outcome(&lossy).0;
        // A loss begins a recovery, and a round trip later sets a bound.
        assert!((1..=2 * flow.retransmits).contains(&flow.window_cuts), "{law}: {} cuts", flow.window_cuts);
        assert_eq!(
            outcome(&[lossy[0], ("links.l.queue", "\"4 BDP\"")]).0.window_cuts,
            0,
            "{law}: nothing is lost"
        );
    }
    // Feedback that states how far the window moves is no cut, nor is delay.
    let xcp = [("links.l.law", "\"xcp\""), ("flows.f.law", "\"xcp\""), ("flows.f.count", "2")];
    let vegas = [("flows.f.law", "\"vegas\""), ("flows.f.count", "2")];
    for law in [&xcp[..], &vegas] {
        assert_eq!(outcome(law).0.window_cuts, 0, "{law:?}");
    }
}

/// SACK with a packet error rate of 0.001 over 100 ms, 600 s: ns-2 sends 281 packets/s, and Mathis's formula with an ACK for
/// every second packet has 274.
#[test]
fn the_profile_ns2_counts_delayed_acks_as_ns2_does() {
    let lossy = [
        ("flows.f.law", "\"sack\""),
        ("flows.f.profile", "\"ns2\""),
        ("links.l.delay", "\"50 ms\""),
        ("links.l.rate", "\"100 Mbit/s\""),
        ("links.l.queue", "\"2000 packets\""),
        ("links.l.error", "{ packet_error_rate = 0.001 }"),
        ("run.duration", "\"1000 s\""),
    ];
    let rate = |more: &[(&str, &str)]| {
        outcome(&[&lossy, more].concat()).0.goodput_bps.expect("a goodput") / 12_000.0
    };
    let counted = rate(&[DELAYED]);
    assert!((counted - 281.0).abs() < 0.1 * 281.0, "{counted} packets/s");
    // The key outranks the profile: bytes count, as without delayed ACKs.
    let bytes = rate(&[DELAYED, ("flows.f.law", "{ sack = { ack_counting = false } }")]);
    assert!((bytes / counted - 1.4).abs() < 0.15, "{bytes} packets/s");
    // With an ACK for each packet the key makes little difference.
    let each = rate(&[("flows.f.law", "{ sack = { ack_counting = false } }")]);
    assert!((rate(&[]) / each - 1.0).abs() < 0.1, "{each} packets/s");
}

/// A sample begins with the first segment that an ACK acknowledges (RFC 7323 §4.3), and so holds the wait for the second one,
/// which the time-out bounds.
#[test]
fn a_sample_of_a_delayed_ack_holds_at_most_the_time_out() {
    let lossy = [
        DELAYED,
        ("flows.f.law", "\"sack\""),
        ("links.l.delay", "\"150 ms\""),
        ("links.l.error", "{ packet_error_rate = 0.001 }"),
    ];
    let p95 = |more: &[(&str, &str)]| outcome(&[&lossy, more].concat()).0.rtt_p95_ms.expect("samples");
    // 300 ms, packets and ACKs that take 1 ms, a queue of 2 ms at most.
    let (ours, linux) = (p95(&[]), p95(&[LINUX]));
    assert!((320.0..=405.0).contains(&ours), "{ours} ms");
    assert!((303.0..=345.0).contains(&linux), "{linux} ms");
}

/// Its comparison takes the least of a round trip, so that the ACK's wait is no queue.
#[test]
fn vegas_fills_the_link_with_delayed_acks_too() {
    for delay in ["\"30 ms\"", "\"7 ms\"", "\"100 ms\""] {
        let (_, link) = outcome(&[
            DELAYED,
            ("flows.f.law", "\"vegas\""),
            ("links.l.delay", delay),
            ("run.duration", "\"90 s\""),
            ("run.warmup", "\"60 s\""),
        ]);
        assert!(link.utilization > Some(0.9), "{delay}: {:?}", link.utilization);
    }
}
