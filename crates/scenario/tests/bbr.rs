//! BBR on TCP's machinery: delivery rates, pacing, and what comes of them on a link.

mod common;

use congestlab_scenario::Measure;
use congestlab_scenario::sim::outcome::Outcome;

/// 20 Mbit/s and 40 ms: 100 packets of 1000 B in flight.
fn outcome(law: &str, link: &str, flow: &str) -> Outcome {
    lasting("60 s", "20 s", law, link, flow)
}

fn lasting(duration: &str, warmup: &str, law: &str, link: &str, flow: &str) -> Outcome {
    let delay = if link.contains("delay") { "" } else { "delay = \"20 ms\"\n" };
    let text = format!(
        "[run]\nduration = \"{duration}\"\nwarmup = \"{warmup}\"\n\
         [links.l]\nrate = \"20 Mbit/s\"\n{delay}queue = \"400 packets\"\npacket_size = \"1000 B\"\n{link}\n\
         [flows.f]\nlaw = \"{law}\"\npath = [\"l\"]\nsegment = \"1000 B\"\n{flow}\n"
    );
    common::run(&common::scenario(&text, &[]), &Measure::default())
}

/// Part of the link's rate.
fn share(outcome: &Outcome) -> f64 {
    outcome.groups[0].iter().map(|flow| flow.goodput_bps.expect("it was measured")).sum::<f64>() / 20e6
}

/// A flow alone: ProbeRTT leaves 4 packets instead of 100 in flight for 200 ms and a round trip of every
/// 10.24 s, and of 8 round trips one has a quarter of the pipe in the queue; no packet is lost.
#[test]
fn a_flow_alone_fills_the_pipe_and_not_the_queue() {
    let got = outcome("bbr", "", "");
    let link = &got.links[0];
    let (share, queue) = (share(&got), link.queue_mean_packets.expect("measured"));
    println!("share {share:.4}, mean queue {queue:.2}, drops {}", link.drops);
    assert!((0.965..=0.99).contains(&share), "{share}");
    assert!(queue < 12.0, "{queue}");
    assert_eq!(link.drops, 0);
    assert!(got.seed_used, "the first phase is drawn");
}

/// Losses do not lower the rate: where one packet in a hundred is lost Reno gets a seventh of the link.
#[test]
fn losses_do_not_lower_the_rate() {
    for (rate, least) in [(0.01, 0.93), (0.05, 0.92)] {
        let error = format!("error = {{ packet_error_rate = {rate} }}");
        let got = outcome("bbr", &error, "");
        let (bbr, sack) = (share(&got), share(&outcome("sack", &error, "")));
        println!("{rate}: bbr {bbr:.3}, sack {sack:.3}");
        // At 0.05 some retransmission is lost in each second.
        assert_eq!(got.groups[0][0].timeouts, 0, "{rate}");
        assert!(bbr > least, "{rate}: {bbr}");
        assert!(sack < 0.3, "{rate}: {sack}");
    }
}

/// Whatever the pipe: in one of 1000 packets some retransmission is lost every round trip. ProbeRTT takes 4 %
/// of the time where a round trip is 0.4 s.
#[test]
fn long_pipes_survive_losses_too() {
    let error = "error = { packet_error_rate = 0.05 }\ndelay = \"200 ms\"";
    let got = share(&lasting("60 s", "20 s", "bbr", error, ""));
    println!("{got:.3}");
    assert!(got > 0.87, "{got}");
}

/// The draft's aim: flows with equal round trips share.
#[test]
fn flows_share_a_link() {
    let got = lasting("160 s", "100 s", "bbr", "", "count = 4\nstart = { every = \"1 s\" }");
    let rates: Vec<f64> = got.groups[0].iter().map(|flow| flow.goodput_bps.unwrap()).collect();
    let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|rate| rate * rate).sum());
    let jain = sum * sum / (4.0 * squares);
    println!("{rates:?}: {jain:.3}, drops {}", got.links[0].drops);
    assert!(jain > 0.9 && share(&got) > 0.95, "{rates:?}");
}

/// A transfer of 10 round trips' worth is done in about a slow start more than its own time.
#[test]
fn startup_doubles_each_round_trip() {
    let got = outcome("bbr", "", "size = \"1 MB\"");
    let took = got.groups[0][0].completion_s.expect("it ends");
    println!("{took:.3} s");
    // SYN, 40 ms; 4 to 128 packets in 5 round trips, 200 ms; 0.4 s of link for what is left.
    assert!((0.5..0.75).contains(&took), "{took}");
}

/// An application that writes slowly limits the samples, not the other way round.
#[test]
fn a_slow_application_sets_the_rate_and_its_samples_do_not_stick() {
    let got = outcome("bbr", "", "app = { rate = \"3 Mbit/s\" }");
    assert!((share(&got) * 20.0 - 3.0).abs() < 0.01, "{}", share(&got));
    let got = outcome("bbr", "", "app = { bursts = { size = \"1 MB\", pause = \"1 s\" } }");
    println!("bursts {:.3}", share(&got));
    // 1 MB in 0.45 s and a pause from the write on, which returns at once: 8 Mbit/s.
    assert!((share(&got) * 20.0 - 8.0).abs() < 0.3, "{}", share(&got));
}
