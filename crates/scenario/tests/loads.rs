//! What flows send and when: arrivals, sizes, schedules, slow applications, slow readers.

mod common;

use congestlab_scenario::Measure;
use congestlab_scenario::sim::outcome::Outcome;

fn outcome(flow: &str) -> Outcome {
    let text = format!(
        "[run]\nduration = \"40 s\"\nwarmup = \"10 s\"\n\
         [links.l]\nrate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nlaw = \"xcp\"\n\
         [flows.f]\npath = [\"l\"]\nsegment = \"1000 B\"\n{flow}\n"
    );
    common::run(&common::scenario(&text, &[]), &Measure::default())
}

fn goodput(flow: &str) -> f64 {
    outcome(flow).groups[0][0].goodput_bps.expect("it was measured")
}

fn near(measured: f64, expected: f64, part: f64, what: &str) {
    assert!((measured / expected - 1.0).abs() <= part, "{what}: {measured}, not {expected}");
}

/// K02 §5.5: arrivals as a Poisson process, sizes of 30 packets on average.
#[test]
fn web_like_traffic_has_the_distributions_that_it_says() {
    for start in ["{ poisson = \"20 /s\" }", "{ poisson = \"50 ms\", from = \"2 s\" }"] {
        let got = outcome(&format!(
            "law = \"xcp\"\ncount = 600\nstart = {start}\n\
             size = {{ pareto = {{ shape = 1.35, mean = \"30 packets\" }} }}"
        ));
        let flows = &got.groups[0];
        assert!(got.seed_used && flows.is_sorted_by(|a, b| a.start_s < b.start_s), "one after the other");
        // 600 gaps: five standard deviations are a fifth.
        let first = if start.contains("from") { 2.0 } else { 0.0 };
        near((flows[599].start_s - first) / 600.0, 0.05, 0.2, start);
        // The mean of so heavy a tail says little; its median is 30 (0.35 / 1.35) 2^(1 / 1.35) = 13 packets.
        let mut sizes: Vec<u64> = flows.iter().map(|flow| flow.delivered_bytes_total / 1000).collect();
        sizes.sort_unstable();
        assert!(flows.iter().filter(|flow| flow.completion_s.is_some()).count() > 590, "most are done");
        assert!((12..=14).contains(&sizes[300]), "median {}", sizes[300]);
        assert!(sizes[5] >= 8 && sizes[599] > 300, "from {} to {}", sizes[5], sizes[599]);
        assert!(flows.iter().all(|flow| flow.delivered_bytes_total % 1000 == 0));
    }
}

#[test]
fn an_application_that_writes_at_a_rate_sends_at_that_rate() {
    for law in ["xcp", "sack", "cubic"] {
        let measured = goodput(&format!("law = \"{law}\"\napp = {{ rate = \"3 Mbit/s\" }}"));
        near(measured, 3e6, 0.002, law);
    }
    let got = outcome("law = \"sack\"\napp = { rate = \"3 Mbit/s\" }\nsize = \"1.5 MB\"");
    near(got.groups[0][0].completion_s.expect("it ends"), 4.0 + 0.08, 0.01, "1.5 MB at 3 Mbit/s");
    let slow = goodput("law = \"xcp\"\napp = { rate = \"100 Mbit/s\" }");
    assert!(slow <= 20e6 && slow > 17e6, "the link is the limit: {slow}");
}

#[test]
fn a_receiver_that_reads_slowly_limits_its_sender() {
    for law in ["xcp", "sack"] {
        for buffer in ["64 kB", "3 kB", "1000 B"] {
            let got = outcome(&format!(
                "law = \"{law}\"\nreceiver = {{ rate = \"2 Mbit/s\", buffer = \"{buffer}\" }}"
            ));
            let flow = &got.groups[0][0];
            let measured = flow.goodput_bps.expect("it was measured");
            if buffer == "64 kB" {
                near(measured, 2e6, 0.01, law);
            } else {
                // At least a segment in a round trip and the time to read it, at most what is read.
                assert!((8000.0 / 0.0450..=2e6).contains(&measured), "{law}, {buffer}: {measured}");
            }
            assert_eq!((flow.retransmits, flow.timeouts), (0, 0), "{law}, {buffer}: nothing was lost");
        }
    }
}

/// TH 4.1.
#[test]
fn a_window_that_grows_is_the_limit_until_it_has_grown() {
    let limited =
        "law = \"sack\"\nawnd = { from = \"2 packets\", per_ack = \"1 packet\", to = \"10 packets\" }";
    near(goodput(limited), 10.0 * 8000.0 / 0.0404, 0.03, "ten packets in a round trip");
    let got = outcome("law = \"xcp\"\nawnd = { from = \"2 packets\", per_ack = \"2 packets\" }");
    let flow = &got.groups[0][0];
    assert!(flow.goodput_bps.expect("measured") > 17e6, "it grows out of the way: {flow:?}");
}

#[test]
fn a_schedule_says_how_many_sources_are_active() {
    let got = outcome(
        "law = { cbr = { rate = \"1 Mbit/s\" } }\ncount = 9\n\
         schedule = [[\"0 s\", 0], [\"5 s\", 9], [\"10 s\", 2], [\"20 s\", 3], [\"30 s\", 0]]",
    );
    let sent: Vec<u64> = got.groups[0].iter().map(|flow| flow.sent_packets_total).collect();
    // 125 packets a second.
    let seconds = [25, 25, 15, 5, 5, 5, 5, 5, 5];
    for (flow, (sent, seconds)) in sent.iter().zip(seconds).enumerate() {
        assert!(sent.abs_diff(125 * seconds) <= 2, "flow {flow} sent {sent} packets in {seconds} s");
    }
    let idle = got.groups[0][0].idle_max_s.expect("two packets");
    assert!(idle < 0.1, "a flow that stays active does not pause at a step: {idle} s");
}
