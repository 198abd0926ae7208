//! What goes wrong on a path: blackouts, reordering, bursts of errors, other ways; and XCP-r.

mod common;

use std::sync::atomic::AtomicBool;

use congestlab_scenario::Measure;
use congestlab_scenario::sim::outcome::{Element, Outcome};
use congestlab_scenario::sim::{self, Engine};

const BASE: &str = r#"
[run]
duration = "10 s"

[links.a]
rate = "10 Mbit/s"
delay = "20 ms"
queue = "100 packets"
packet_size = "1000 B"

[links.b]
rate = "10 Mbit/s"
delay = "30 ms"
queue = "100 packets"
packet_size = "1000 B"

[flows.one]
law = "sack"
awnd = "20 packets"
segment = "1000 B"
path = ["a"]
"#;

fn outcome(settings: &[(&str, &str)]) -> Outcome {
    let (scenario, measure) = (common::scenario(BASE, settings), Measure { series: false, events: true });
    let reference = common::run(&scenario, &measure);
    let model = scenario.model(&measure);
    for (threads, divisor) in [(1, 4), (2, 1)] {
        let engine = Engine::Window { threads, divisor };
        let window = sim::run(&model, engine, &AtomicBool::new(false), &mut |_| {});
        assert_eq!(window.fingerprint, reference.fingerprint, "{threads} threads, window / {divisor}");
    }
    reference
}

/// Times of the events of a kind at a link, s.
fn times(outcome: &Outcome, link: u32, kind: &str) -> Vec<f64> {
    let here = outcome.events.iter().filter(|e| e.element == Element::Link(link) && e.kind == kind);
    here.map(|event| event.at as f64 / 1e12).collect()
}

#[test]
fn in_a_blackout_no_acknowledgment_arrives_and_all_count_as_errors() {
    let blackout = "[{ at = \"3 s\", for = \"500 ms\" }, { at = \"3.5 s\", for = \"200 ms\" }]";
    let got = outcome(&[("links.a.reverse", &format!("{{ ack_blackout = {blackout} }}"))]);
    let errors = times(&got, 1, "error");
    assert_eq!(got.links[1].errors, errors.len() as u64);
    // A window of 20 packets and its retransmissions meet it.
    assert!(errors.len() >= 20, "{}", errors.len());
    assert!(errors.iter().all(|at| (3.0..3.7).contains(at)), "{errors:?}");
    assert_eq!((got.links[0].errors, got.groups[0][0].timeouts), (0, 1));
    // What counts is when an acknowledgment would arrive, late ones too.
    let late =
        format!("{{ ack_blackout = {blackout}, reorder = {{ probability = 1, delay = \"250 ms\" }} }}");
    let got = outcome(&[("links.a.reverse", &late)]);
    let errors = times(&got, 1, "error");
    assert!(errors.len() >= 10 && errors.iter().all(|at| (3.0..3.7).contains(at)), "{errors:?}");
    // Data is spared: in that direction a blackout hits nothing.
    let got = outcome(&[("links.a.ack_blackout", blackout)]);
    assert_eq!((got.links[0].errors, got.links[1].errors), (0, 0));
    assert!(!got.seed_used, "nothing random about it");
}

#[test]
fn packets_that_come_later_are_overtaken() {
    let calm = outcome(&[]);
    assert_eq!((calm.groups[0][0].window_cuts, calm.groups[0][0].retransmits), (0, 0));
    // 10 ms are twelve packets at 10 Mbit/s: more than three duplicates each time.
    let got = outcome(&[("links.a.reorder", "{ probability = 0.01, delay = \"10 ms\" }")]);
    let flow = &got.groups[0][0];
    assert!(got.seed_used && got.links[0].errors == 0 && got.links[0].drops == 0);
    // The last one may be under way at the end.
    let spurious = flow.spurious_retransmits;
    assert!(flow.retransmits > 10 && flow.retransmits - spurious <= 1, "{flow:?}");
    // All packets later alike are a longer wire.
    let late = outcome(&[("links.a.reorder", "{ probability = 1, delay = \"10 ms\" }")]);
    let long = outcome(&[("links.a.delay", "\"30 ms\""), ("links.a.reverse", "{ delay = \"20 ms\" }")]);
    assert_eq!(late.groups, long.groups);
}

/// A middlebox behind the link's queue clears or rewrites the ECN field: what the queue marks is gone.
#[test]
fn a_link_rewrites_the_ecn_field() {
    let counts = |ecn: &str| {
        let changes = [
            ("links.a.discipline", "{ step = { above = \"10 packets\" } }"),
            ("flows.one.ecn", "true"),
            ("flows.one.awnd", "\"140 packets\""),
            ("links.a.ecn", ecn),
        ];
        let got = outcome(if ecn.is_empty() { &changes[..3] } else { &changes });
        (got.links[0].marks > 0, got.groups[0][0].window_cuts > 0)
    };
    assert_eq!(counts(""), (true, true));
    assert!(!counts("\"clear\"").1, "no mark arrives");
    assert_eq!(counts("{ ce = \"10\" }"), (true, false));
    assert_eq!(counts("{ ect1 = \"00\" }"), (true, true), "a code that nobody sends");
    assert_eq!(counts("{ ce = \"10\", probability = 0.5 }"), (true, true));
}

#[test]
fn acknowledgments_are_overtaken_too() {
    let got = outcome(&[("links.a.reverse", "{ reorder = { probability = 0.3, delay = \"5 ms\" } }")]);
    let flow = &got.groups[0][0];
    // What is late acknowledges less than is known: no loss, no repair.
    assert_eq!((flow.retransmits, flow.window_cuts, flow.timeouts), (0, 0, 0), "{flow:?}");
}

/// A quarter of the time bad: half of the packets then.
#[test]
fn errors_come_in_bursts() {
    let cbr = [("flows.one.law", "{ cbr = { rate = \"9 Mbit/s\" } }"), ("run.duration", "\"1000 s\"")];
    let bursts = "{ gilbert_elliott = { good = \"600 ms\", bad = \"200 ms\", packet_error_rate = 0.5 } }";
    let got = outcome(&[cbr[0], cbr[1], ("links.a.error", bursts)]);
    let (sent, errors) = (got.links[0].sent_packets as f64, got.links[0].errors as f64);
    // 1250 turns: standard deviation 4 % of the share.
    assert!((errors / sent - 0.125).abs() < 0.015, "{errors} of {sent}");
    // Between two errors in a row there is one packet time on average in a bad turn; long gaps are good
    // turns, about 1250 of them.
    let at = times(&got, 0, "error");
    let gaps = at.windows(2).filter(|pair| pair[1] - pair[0] > 0.02).count();
    assert!((1080..1380).contains(&gaps), "{gaps} bursts");
    // Errors in the good state too, and packets of other sizes by the bit error rate.
    let both = "{ gilbert_elliott = { good = \"1 s\", bad = \"1 s\", packet_error_rate = 0.2, \
                good_packet_error_rate = 0.2 } }";
    let got = outcome(&[cbr[0], ("flows.one.segment", "\"500 B\""), ("links.a.error", both)]);
    let share = got.links[0].errors as f64 / got.links[0].sent_packets as f64;
    // 1 - 0.8^(1/2) = 0.106 of 22500 packets.
    assert!((share - 0.1056).abs() < 0.008, "{share}");
}

#[test]
fn a_flow_takes_another_path_from_a_time_on() {
    let got = outcome(&[("flows.one.switch", "[{ at = \"4.02 s\", path = [\"b\"] }]")]);
    // 20 packets per round trip of 40 ms (and what they take to enter), then of 60 ms.
    let sent: Vec<u64> = got.links.iter().map(|link| link.sent_packets).collect();
    assert!((1800..2000).contains(&sent[0]) && (1900..2000).contains(&sent[2]), "{sent:?}");
    // ACKs change their way at the same time: those of the last window on `a` go back by `b`.
    assert!((10..=20).contains(&(sent[0] - sent[1])), "{sent:?}");
    let flow = &got.groups[0][0];
    assert_eq!((flow.retransmits, flow.timeouts), (0, 0), "nothing is lost: {flow:?}");
    // And back: on the shorter way packets overtake those under way on the longer one.
    let back = "[{ at = \"4 s\", path = [\"b\"] }, { at = \"6 s\", path = [\"a\"] }]";
    let got = outcome(&[("flows.one.switch", back), ("flows.one.awnd", "\"70 packets\"")]);
    let flow = &got.groups[0][0];
    assert!(flow.window_cuts > 0 && flow.retransmits == flow.spurious_retransmits, "{flow:?}");
}

#[test]
fn a_link_that_a_flow_only_switches_to_has_a_bandwidth_delay_product() {
    let switch = ("flows.one.switch", "[{ at = \"4 s\", path = [\"b\"] }]");
    let got = outcome(&[switch, ("links.b.queue", "\"1 BDP\"")]);
    assert_eq!(got.links[2].drops, 0);
}
