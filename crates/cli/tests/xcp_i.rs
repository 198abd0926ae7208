//! XCP-i in whole scenarios: the experiments of its paper (scenarios/xcp-i, with their claims), and
//! deployments that it does not show.

mod experiments;

use std::path::Path;

use experiments::{check, congestlab, directory, holds, number, run, run_text, scratch, text};
use serde_json::Value;

/// Of its scenarios, and of what tests leave.
const FOLDER: &str = "xcp-i";

/// What all flows of an experiment delivered, B.
fn bytes(name: &str, changes: &[(&str, &str)]) -> f64 {
    let result = run(&directory().join(format!("{name}.toml")), changes);
    let groups = result["flows"].as_object().expect("groups").values();
    let flows = groups.flat_map(|group| group.as_array().expect("flows"));
    flows.map(|flow| flow["delivered_bytes"].as_f64().expect("a number")).sum()
}

/// The time series of a scenario.
struct Series(String);

fn series(file: &Path) -> Series {
    let csv = scratch(&format!("{}.csv", file.file_stem().expect("a name").to_string_lossy()));
    let output = congestlab().args(["run", "--json", "--series"]).arg(&csv).arg(file).output();
    let output = output.expect("the binary of this package runs");
    assert!(output.status.success(), "{}", text(&output));
    Series(std::fs::read_to_string(&csv).expect("--series wrote it"))
}

impl Series {
    /// Values of the first cloud of a link.
    fn of(&self, link: &str, metric: &str) -> Vec<f64> {
        let rows = self.0.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|row| row[1..4] == [link, "0", metric]);
        rows.map(|row| row[4].parse().expect("a number")).collect()
    }
}

fn mbit(result: &Value, flow: &str) -> f64 {
    number(result, &format!("/flows/{flow}/0/goodput_bps")) / 1e6
}

#[test]
fn ex3_1_tcp_across_a_bottleneck() {
    holds("ex3.1");
}

#[test]
fn ex3_2_xcp_in_every_router() {
    holds("ex3.2");
}

#[test]
fn ex3_3_xcp_across_a_legacy_bottleneck() {
    holds("ex3.3");
    let (xcp, tcp) = (bytes("ex3.3", &[]), bytes("ex3.1", &[]));
    assert!(xcp < 0.5 * tcp, "{xcp} with XCP, {tcp} B with TCP");
}

#[test]
fn ex3_4_two_clouds_in_series() {
    holds("ex3.4");
    let (clouds, everywhere) = (bytes("ex3.4", &[]), bytes("ex3.2", &[]));
    assert!((clouds / everywhere - 1.0).abs() < 0.02, "{clouds} across clouds, {everywhere} B with XCP");
}

#[test]
fn ex3_5_two_clouds_merge() {
    holds("ex3.5");
}

/// V3.5: the equilibrium of ex3.5 without capture, (g y)/2 = (g y - F)(y - c2)/y with F = a (C - y).
#[test]
fn v3_5_merge_equilibrium() {
    let result = run(&directory().join("ex3.5.toml"), &[("links.out.law.xcp.capture", "false")]);
    let i = mbit(&result, "i");
    assert!((i - 27.08).abs() <= 0.1, "{i}");
}

#[test]
fn ex3_6_flows_of_one_cloud_share_it() {
    holds("ex3.6");
}

#[test]
fn ex3_7_a_cloud_feeds_two_paths() {
    holds("ex3.7");
}

/// XI's TCP is not known: both claims are seen to fail, with status 3.
#[test]
fn ex3_8_is_not_reproduced() {
    let sweep = check("ex3.8");
    let text = text(&sweep);
    assert_eq!((sweep.status.code(), text.matches("FAILS").count()), (Some(3), 2), "{text}");
}

/// And XCP-i carries more than TCP whatever the error.
#[test]
fn ex3_9_ten_times_faster() {
    holds("ex3.9");
    let tcp = bytes("ex3.8", &[]);
    for error in ["0.0", "0.1", "0.2"] {
        let xcp_i = bytes("ex3.9", &[("links.out.law.xcp.estimator.oracle.error", error)]);
        assert!(xcp_i > tcp, "{xcp_i} B off by {error}, {tcp} with TCP");
    }
}

/// Each pair of edges believes that it is alone, and both take what is there once.
#[test]
fn ex3_10_two_clouds_share_a_link() {
    holds("ex3.10");
}

/// Where no link is without XCP-i, it is XCP: the same packets at the same times.
#[test]
fn without_a_cloud_it_is_xcp() {
    let file = directory().join("ex3.2.toml");
    let link = "{ xcp = { interoperable = true, bound_headers = false } }";
    let flow = "{ xcp = { interoperable = true } }";
    let laws = [("links.a.law", link), ("links.b.law", link), ("links.c.law", link), ("flows.f.law", flow)];
    let (mut with, without) = (run(&file, &laws), run(&file, &[]));
    // What agents count is there with them only.
    for (_, link) in with["links"].as_object_mut().unwrap() {
        link.as_object_mut().unwrap().remove("xcp_i");
    }
    for part in ["links", "flows", "packet_hops", "jain"] {
        assert_eq!(with[part], without[part], "{part}");
    }
}

/// A path of 80, 30 and 80 Mbit/s; laws of its links, and what is said of the link in the middle.
fn path(laws: [&str; 3], middle: &str, flow: &str) -> String {
    let mut scenario = "[run]\nduration = \"30 s\"\nwarmup = \"10 s\"\n".to_owned();
    for (name, law) in ["a", "b", "c"].iter().zip(laws) {
        let rate = if *name == "b" { 30 } else { 80 };
        let law = if law.is_empty() { String::new() } else { format!("law = {law}\n") };
        scenario += &format!("[links.{name}]\nrate = \"{rate} Mbit/s\"\ndelay = \"10 ms\"\n{law}");
        scenario += if *name == "b" { middle } else { "" };
    }
    scenario
        + &format!("[flows.f]\nlaw = {flow}\npath = [\"a\", \"b\", \"c\"]\n")
        + "access = { rate = \"100 Mbit/s\", delay = \"10 ms\" }\nsegment = \"1000 B\"\n"
}

const ON: &str = "{ xcp = { interoperable = true } }";

/// Wherever the cloud is, the flow has its bandwidth without a loss: at the sender's side, at the
/// receiver's, in the middle, and from one host to the other.
#[test]
fn a_cloud_may_be_anywhere() {
    for (name, laws) in [
        ("sender", ["", "", ON]),
        ("receiver", [ON, "", ""]),
        ("middle", [ON, "", ON]),
        ("both", ["", ON, ""]),
        ("all", ["", "", ""]),
    ] {
        let result = run_text(name, &path(laws, "", ON));
        let (goodput, drops) = (mbit(&result, "f"), number(&result, "/links/b/drops"));
        assert!(goodput > 29.0 && drops == 0.0, "{name}: {goodput} Mbit/s, {drops} drops");
    }
}

/// Control packets are packets: one in a hundred is lost in the cloud, one in fifty on the way back.
/// Estimates still come, and the flow, which keeps its window, fills the cloud.
#[test]
fn lost_control_packets_are_repeated() {
    let errors = "error = { packet_error_rate = 0.01 }\nreverse = { error = { packet_error_rate = 0.02 } }\n";
    let flow = "{ xcp = { interoperable = true, loss = \"maintain\" } }";
    let result = run_text("lost", &path([ON, "", ON], errors, flow));
    let goodput = mbit(&result, "f");
    assert!(goodput > 27.0, "{goodput} Mbit/s");
}

/// The receiver keeps the window (XCP-r), the routers bridge clouds (XCP-i) and give away what limited
/// flows leave (P-XCP): one line each.
#[test]
fn it_composes_with_p_xcp_and_xcp_r() {
    let flow = "{ xcp-r = { loss = \"maintain\", interoperable = true } }";
    let proportional = "{ pxcp = { interoperable = true } }";
    for (name, law) in [("xcp-r", ON), ("pxcp-xcp-r", proportional)] {
        let result = run_text(name, &path([law, "", law], "reverse = { ack_loss = 0.3 }\n", flow));
        let (goodput, drops) = (mbit(&result, "f"), number(&result, "/links/b/drops"));
        assert!(goodput > 29.0 && drops == 0.0, "{name}: {goodput} Mbit/s, {drops} drops");
    }
}

/// The preset is those laws with their keys, and what a scenario writes beside it wins. Errors in the cloud take no flow anything,
/// where XCP-i alone gets half, and three flows share.
#[test]
fn the_preset_of_all_three_fills_a_cloud_that_loses_data_and_acks() {
    let lossy = "error = { packet_error_rate = 0.02 }\nreverse = { ack_loss = 0.3 }\n";
    let three = |text: String| text + "count = 3\nstart = { every = \"1 s\" }\n";
    let pir = "\"xcp-pir\"";
    let result = run_text("pir", &three(path([pir, "", pir], lossy, pir)));
    let all = mbit(&result, "f");
    let goodputs: Vec<f64> =
        (0..3).map(|at| number(&result, &format!("/flows/f/{at}/goodput_bps"))).collect();
    assert!(
        goodputs.iter().all(|one| (one * 3.0 / goodputs.iter().sum::<f64>() - 1.0).abs() < 0.1),
        "{goodputs:?}"
    );
    let (drops, queue) = (number(&result, "/links/b/drops"), number(&result, "/links/b/queue_mean_packets"));
    assert!(drops == 0.0 && queue < 10.0, "{all} Mbit/s, {drops} drops, {queue} packets");
    let plain = "{ xcp-r = { loss = \"maintain\", pacing = true, interoperable = true } }";
    let link = "{ pxcp = { interoperable = true, virtual_queue = \"cloud\" } }";
    let explicit = run_text("pir-explicit", &three(path([link, "", link], lossy, plain)));
    assert_eq!(explicit["fingerprint"], result["fingerprint"]);
    let hasty = "{ xcp-pir = { pacing = false } }";
    let other = run_text("pir-unpaced", &three(path([pir, "", pir], lossy, hasty)));
    assert_ne!(other["fingerprint"], result["fingerprint"]);
    let alone = run_text("pir-i", &three(path([ON, "", ON], lossy, ON)));
    let sum =
        |result: &_| (0..3).map(|at| number(result, &format!("/flows/f/{at}/goodput_bps"))).sum::<f64>();
    assert!(sum(&result) > 28.5e6 && sum(&alone) < 0.7 * sum(&result), "{} {}", sum(&result), sum(&alone));
}

/// Estimate and truth meet, and probes are what three control packets of 40 B in each interval are.
#[test]
fn a_cloud_has_series() {
    let file = scratch("series.toml");
    std::fs::write(&file, path([ON, "", ON], "", ON) + "[measure]\nevery = \"1 s\"\n")
        .expect("a place for it");
    let series = series(&file);
    let of = |metric: &str| series.of("c", metric);
    let (estimates, truths, probes) = (of("estimate_bps"), of("truth_bps"), of("probe_bps"));
    assert_eq!([estimates.len(), truths.len(), probes.len()], [30; 3]);
    for (estimate, truth) in estimates.iter().zip(&truths).skip(10) {
        assert!((estimate - truth).abs() < 0.6e6, "{estimate} bit/s estimated, {truth} true");
    }
    // A round trip of 80 ms and what stands in the queue: 8 to 13 intervals a second of 120 B.
    assert!(probes.iter().skip(1).all(|&probe| (7_000.0..13_000.0).contains(&probe)), "{probes:?}");
}

/// The path is switched from a cloud of 30 Mbit/s to one of 20: the flow has a new upstream
/// neighbour, and the bandwidth of its cloud.
#[test]
fn a_route_may_change() {
    let mut scenario = "[run]\nduration = \"40 s\"\nwarmup = \"25 s\"\n".to_owned();
    for (name, rate, law) in [("a1", 80, ON), ("c1", 30, ""), ("a2", 80, ON), ("c2", 20, ""), ("out", 80, ON)]
    {
        let law = if law.is_empty() { String::new() } else { format!("law = {law}\n") };
        scenario += &format!("[links.{name}]\nrate = \"{rate} Mbit/s\"\ndelay = \"10 ms\"\n{law}");
    }
    scenario += &format!(
        "[flows.f]\nlaw = {ON}\npath = [\"a1\", \"c1\", \"out\"]\nsegment = \"1000 B\"\n\
         switch = [{{ at = \"15 s\", path = [\"a2\", \"c2\", \"out\"] }}]\n"
    );
    let result = run_text("route", &scenario);
    let goodput = mbit(&result, "f");
    assert!((19.0..20.05).contains(&goodput), "{goodput} Mbit/s");
}

/// Two clouds side by side between the same edges, of 30 Mbit/s and less, and `flows` over them.
fn two_ways(less: u32, flows: &str) -> String {
    let mut scenario =
        "[run]\nduration = \"40 s\"\nwarmup = \"25 s\"\n[measure]\nevery = \"200 ms\"\n".to_owned();
    for (name, rate, delay, law) in
        [("a", 80, 5, ON), ("c1", 30, 12, ""), ("c2", less, 20, ""), ("o", 80, 5, ON)]
    {
        let law = if law.is_empty() { String::new() } else { format!("law = {law}\n") };
        scenario += &format!("[links.{name}]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\n{law}");
    }
    scenario + flows
}

/// A path that is switched to the other cloud after 20 s, and back after 35 s.
fn there_and_back() -> String {
    format!(
        "[flows.f]\nlaw = {ON}\npath = [\"a\", \"c1\", \"o\"]\nsegment = \"1000 B\"\nswitch = [\
         {{ at = \"20 s\", path = [\"a\", \"c2\", \"o\"] }}, {{ at = \"35 s\", path = [\"a\", \"c1\", \"o\"] }}]\n"
    )
}

/// Between the same two edges: what they say to each other, the estimate and the truth are of the new
/// cloud in the first bin of 200 ms, soon there is nothing left, and nothing is lost.
#[test]
fn a_route_may_change_between_the_same_edges() {
    let file = scratch("two-ways.toml");
    std::fs::write(&file, two_ways(20, &there_and_back())).expect("a place for it");
    let result = run(&file, &[]);
    // 10 s of 20 Mbit/s, and 5 of 30.
    let goodput = mbit(&result, "f");
    assert!((23.0..23.4).contains(&goodput), "{goodput} Mbit/s");
    for link in ["c1", "c2"] {
        assert_eq!(number(&result, &format!("/links/{link}/drops")), 0.0, "{link}");
    }
    let series = series(&file);
    let (estimates, truths) = (series.of("o", "estimate_bps"), series.of("o", "truth_bps"));
    assert_eq!([estimates.len(), truths.len()], [200; 2], "an estimate in every bin");
    // Less than what comes, until the flow has been told; and more.
    assert!(estimates[100] < -1e6 && truths[100] < -1e6, "{} {} bit/s", estimates[100], truths[100]);
    assert!(estimates[175] > 5e6 && truths[175] > 5e6, "{} {} bit/s", estimates[175], truths[175]);
    for at in (102..175).chain(177..200) {
        let (estimate, truth) = (estimates[at], truths[at]);
        assert!(
            truth.abs() < 0.5e6 && (estimate - truth).abs() < 0.5e6,
            "bin {at}: {estimate}, {truth} bit/s"
        );
    }
}

/// From 30 Mbit/s to 12 the cloud's queue is full before the flow has been told, and reports are lost in
/// it. No more is let in meanwhile, so the next ones pass.
#[test]
fn reports_that_are_lost_in_a_full_queue_do_not_open_it() {
    let result = run_text("full", &two_ways(12, &there_and_back()));
    let (goodput, drops) = (mbit(&result, "f"), number(&result, "/links/c2/drops"));
    assert!((17.5..18.1).contains(&goodput), "{goodput} Mbit/s, of 10 s of 12 and 5 of 30");
    assert!(drops < 250.0, "{drops} drops");
}

/// Both ways at once, without a switch: one entry, whose estimate is now of the one, now of the other.
/// Both are used; who believes the emptier one of both loses packets in the other.
#[test]
fn two_ways_at_once_share_an_entry() {
    let flow = |name: &str, way: &str| {
        format!("[flows.{name}]\nlaw = {ON}\npath = [\"a\", \"{way}\", \"o\"]\nsegment = \"1000 B\"\n")
    };
    let result = run_text("shared-entry", &two_ways(12, &(flow("f", "c1") + &flow("g", "c2"))));
    let (f, g) = (mbit(&result, "f"), mbit(&result, "g"));
    assert!(f > 20.0 && g > 10.0, "{f} and {g} Mbit/s");
    let lost = |link: &str| {
        let of = |what: &str| number(&result, &format!("/links/{link}/{what}"));
        of("drops") / of("arrived_packets")
    };
    assert!(lost("c1") < 0.05 && lost("c2") < 0.1, "{} {}", lost("c1"), lost("c2"));
}

/// Where a cloud begins at the senders, each of them has a virtual router of its own: those that come later get their share, and a
/// lone one all of the cloud.
#[test]
fn hosts_before_one_cloud_share_it() {
    let scenario = |flows: &[(u32, u32)], keys: &str| {
        let mut text = format!(
            "[run]\nduration = \"80 s\"\nwarmup = \"40 s\"\n\
             [links.a]\nrate = \"30 Mbit/s\"\ndelay = \"20 ms\"\npacket_size = \"1000 B\"\n\
             [links.b]\nrate = \"80 Mbit/s\"\ndelay = \"20 ms\"\npacket_size = \"1000 B\"\nlaw = {{ xcp = {{ interoperable = true{keys} }} }}\n"
        );
        for (index, (start, rtt)) in flows.iter().enumerate() {
            text += &format!(
                "[flows.f{index}]\nlaw = {ON}\npath = [\"a\", \"b\"]\nsegment = \"1000 B\"\nstart = \"{start} s\"\n\
                 access = {{ rate = \"100 Mbit/s\", delay = \"{rtt} ms\" }}\n"
            );
        }
        text
    };
    for (name, flows, least) in [
        ("one-host", &[(0, 2)][..], 29.0),
        ("two-hosts", &[(0, 2), (5, 2)], 12.0),
        ("five-hosts", &[(0, 2), (2, 2), (4, 2), (6, 2), (8, 2)], 4.5),
        ("two-hosts-mixed", &[(0, 2), (5, 40)], 11.0),
    ] {
        let result = run_text(name, &scenario(flows, ""));
        let rates: Vec<f64> = (0..flows.len()).map(|index| mbit(&result, &format!("f{index}"))).collect();
        let total = rates.iter().sum::<f64>();
        assert!(rates.iter().all(|&rate| rate > least) && total > 28.0, "{name}: {rates:?}");
        assert_eq!(number(&result, "/links/a/drops"), 0.0, "{name}");
        // Q of XI is that of the router, which says nothing of the queue that a lone flow leaves in the cloud at its start.
        let queue = number(&result, "/links/a/queue_mean_packets");
        assert!(flows.len() == 1 || queue < 5.0, "{name}: {queue}");
    }
    let result = run_text(
        "two-hosts-xi",
        &scenario(&[(0, 2), (5, 2)], ", release = 1, give_back = 0, virtual_queue = \"host\""),
    );
    assert!(mbit(&result, "f1") < 1.0, "XI's own values starve the second one");
}

/// A flow in each direction through one cloud, with probes: no packet of a cloud without an estimate raises a window, so the probes
/// are not lost with the data, and no flow falls silent.
#[test]
fn probes_find_a_cloud_with_traffic_both_ways() {
    let scenario = |no_estimate: &str| {
        let law = format!("{{ xcp = {{ interoperable = true, estimator = \"pathload\"{no_estimate} }} }}");
        let end = format!("{{ xcp = {{ interoperable = true{no_estimate} }} }}");
        let mut text = "[run]\nduration = \"40 s\"\n".to_owned();
        for (name, rate, keys) in [
            ("a", 80, format!("law = {law}\nreverse = {{ law = {end} }}\n")),
            ("b", 30, String::new()),
            ("c", 80, format!("law = {end}\nreverse = {{ law = {law} }}\n")),
        ] {
            text += &format!(
                "[links.{name}]\nrate = \"{rate} Mbit/s\"\ndelay = \"10 ms\"\npacket_size = \"1000 B\"\n{keys}"
            );
        }
        for (name, path, start) in
            [("f", "[\"a\", \"b\", \"c\"]", 0), ("g", "[\"c.reverse\", \"b.reverse\", \"a.reverse\"]", 3)]
        {
            text += &format!(
                "[flows.{name}]\nlaw = {{ xcp = {{ interoperable = true, pacing = true }} }}\npath = {path}\nsegment = \"1000 B\"\n\
                 start = \"{start} s\"\naccess = {{ rate = \"100 Mbit/s\", delay = \"10 ms\" }}\n"
            );
        }
        text
    };
    let drops = |result: &Value| number(result, "/links/b/drops") + number(result, "/links/b.reverse/drops");
    let (held, passed) = (
        run_text("both-ways", &scenario("")),
        run_text("both-ways-pass", &scenario(", no_estimate = \"pass\"")),
    );
    assert!(drops(&held) < 0.2 * drops(&passed), "{} instead of {} drops", drops(&held), drops(&passed));
    assert!(mbit(&held, "f").min(mbit(&held, "g")) > 15.0);
}
