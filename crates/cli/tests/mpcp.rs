//! VCP, DPCP and TPCP in whole scenarios: the experiments of their paper (scenarios/mpcp, with their claims), what
//! the orders of packets change.

#[path = "../../scenario/tests/common/chains.rs"]
mod chains;
mod experiments;

use chains::network;
use experiments::{holds, number, run_text};
use serde_json::Value;

/// Of its scenarios, and of what tests leave.
const FOLDER: &str = "mpcp";

#[test]
fn ex5_1_one_cut_is_not_enough() {
    holds("ex5.1");
}

#[test]
fn ex6_1_a_parking_lot() {
    holds("ex6.1");
}

#[test]
fn ex6_2_long_flows_fill_a_link_and_make_room() {
    holds("ex6.2");
}

#[test]
fn ex6_3_one_flow() {
    holds("ex6.3");
}

#[test]
fn ex6_4_random_losses() {
    holds("ex6.4");
}

#[test]
fn ex6_6_many_flows() {
    holds("ex6.6");
}

#[test]
fn ex6_7_what_the_printed_algorithm_loses() {
    holds("ex6.7");
}

#[test]
fn ex6_8_packets_out_of_order() {
    holds("ex6.8");
}

#[test]
fn codes_cross_tunnels_as_rfc_6040_has_it() {
    holds("tunnel");
}

/// 5.7, ours: one link, five flows. Round trips beside each other share fairly while t_rho is longer than they are.
#[test]
fn vcp_fills_a_link_and_shares_it_between_round_trips() {
    let flows = |law: &str, access: [u32; 3]| {
        let flow = |(name, ms)| {
            format!(
                "[flows.{name}]\nlaw = {law}\ncount = 5\npath = [\"b\"]\nsegment = \"1000 B\"\n\
                 start = {{ uniform = \"5 s\" }}\naccess = {{ rate = \"100 Mbit/s\", delay = \"{ms} ms\" }}\n"
            )
        };
        ["short", "mean", "long"].into_iter().zip(access).map(flow).collect::<String>()
    };
    let link = |law: &str, delay: u32| {
        format!(
            "[run]\nduration = \"200 s\"\nwarmup = \"80 s\"\n[links.b]\nrate = \"10 Mbit/s\"\ndelay = \"{delay} ms\"\n\
             packet_size = \"1000 B\"\nlaw = {law}\n"
        )
    };
    let alone = link("\"vcp\"", 100)
        + "[flows.f]\nlaw = \"vcp\"\ncount = 5\npath = [\"b\"]\nsegment = \"1000 B\"\nstart = { every = \"1 s\", from = \"0 s\" }\n";
    let result = run_text("alone", &alone);
    assert!(number(&result, "/links/b/utilization") > 0.93);
    assert_eq!(number(&result, "/links/b/drops"), 0.0);
    assert!(number(&result, "/jain/f") > 0.95);

    let ratio = |result: &Value| {
        let mean = |name: &str| {
            (0..5).map(|at| number(result, &format!("/flows/{name}/{at}/goodput_bps"))).sum::<f64>()
        };
        let rates = ["short", "mean", "long"].map(mean);
        rates.iter().copied().fold(0.0, f64::max) / rates.iter().copied().fold(f64::MAX, f64::min)
    };
    // 100, 200, 400 ms: t_rho is shorter than a round trip, but no window is a burst within it.
    let smooth = "{ vcp = { smooth = true, hold = \"round-trip\" } }";
    let result = run_text("smooth", &(link("\"vcp\"", 20) + &flows(smooth, [30, 80, 180])));
    assert!(ratio(&result) < 1.5, "{}", ratio(&result));
    // 50, 100, 200 ms.
    let result = run_text("short", &(link("\"vcp\"", 10) + &flows("\"vcp\"", [15, 40, 90])));
    assert!(ratio(&result) < 2.0, "{}", ratio(&result));
    // 100, 200, 400 ms, and t_rho as long as the longest.
    let law = "{ vcp = { interval = \"400 ms\" } }";
    let result = run_text("long", &(link(law, 20) + &flows(law, [30, 80, 180])));
    assert!(ratio(&result) < 2.0, "{}", ratio(&result));
}

/// EX6.4 where losses do not halve windows and chains are never given up: what MP says of DPCP below 30 %, beside VCP's.
#[test]
fn losses_that_say_nothing_of_the_load_hardly_slow_dpcp() {
    let completion = |law: &str, settings: &str, loss: f64| {
        let scenario = format!(
            "[run]\nduration = \"9000 s\"\n[links.b]\nrate = \"4 Mbit/s\"\ndelay = \"250 ms\"\n\
             packet_size = \"1000 B\"\nlaw = \"{law}\"\nerror = {{ packet_error_rate = {loss} }}\n\
             [flows.f]\nlaw = {{ {law} = {{ loss = \"maintain\"{settings} }} }}\ncount = 6\npath = [\"b\"]\n\
             segment = \"1000 B\"\nsize = \"1 MB\"\nstart = {{ every = \"1500 s\", from = \"0 s\" }}\n"
        );
        let result = run_text(&format!("maintain-{law}-{loss}"), &scenario);
        (0..6).map(|at| number(&result, &format!("/flows/f/{at}/completion_s"))).sum::<f64>() / 6.0
    };
    let never = ", strikes = 1000";
    let without = completion("dpcp", never, 0.0);
    let (dpcp, vcp) = (completion("dpcp", never, 0.25), completion("vcp", "", 0.25));
    assert!(dpcp < 3.0 * without && vcp > 10.0 * dpcp, "DPCP {without} s, {dpcp} s; VCP {vcp} s");
}

/// Which packet is which is known or not, however it is told: the results are the same to the byte.
#[test]
fn two_packets_by_swap_by_checksum_and_by_identification_are_equal() {
    for seed in 1..=3 {
        let result = |order: &str| {
            let law = format!("{{ dpcp = {{ order = \"{order}\" }} }}");
            let mut result = run_text(&format!("order-{order}"), &network(&law, seed));
            let fields = result.as_object_mut().expect("an object");
            fields.remove("meta");
            fields.remove("fingerprint").expect("a hash of all packets");
            result
        };
        let swap = result("swap");
        assert!(number(&swap, "/links/a/errors") > 10.0);
        assert_eq!(swap, result("checksum"));
        assert_eq!(swap, result("ipid"));
    }
}

/// One link of 10 Mbit/s and 80 ms with five flows: its part that is used, packets dropped, Jain's index.
fn five_flows(name: &str, flows: &str, link: &str) -> (f64, f64, f64) {
    let scenario = format!(
        "run = {{ duration = \"120 s\", warmup = \"30 s\" }}\n\
         links.m = {{ rate = \"10 Mbit/s\", delay = \"40 ms\", packet_size = \"1000 B\", {link} }}\n\
         flows.f = {{ law = {flows}, path = [\"m\"], count = 5, segment = \"1000 B\", start = {{ uniform = \"1 s\" }} }}\n"
    );
    let result = run_text(name, &scenario);
    (number(&result, "/links/m/utilization"), number(&result, "/links/m/drops"), number(&result, "/jain/f"))
}

/// A middlebox clears the ECN field: the flows run NewReno, where they grew until packets were lost for good.
#[test]
fn flows_whose_codes_are_cleared_run_newreno() {
    let (_, dropped, _) = five_flows("newreno", "\"newreno\"", "queue = \"1 BDP\"");
    for law in ["vcp", "dpcp", "tpcp"] {
        let link = format!("law = \"{law}\", ecn = \"clear\"");
        let (used, drops, jain) = five_flows(&format!("cleared-{law}"), &format!("\"{law}\""), &link);
        assert!(used > 0.99 && jain > 0.95, "{law}: {used}, {jain}");
        assert!((0.7..1.3).contains(&(drops / dropped)), "{law}: {drops} drops, NewReno {dropped}");
    }
    // Before the link, where hosts are, as behind it; in one packet of three the codes that are left say it all.
    let (used, drops, _) =
        five_flows("bleached", "\"vcp\"", "law = \"vcp\", ecn = { ect1 = \"10\", probability = 0.3 }");
    assert!(used > 0.8 && drops < 1.0, "{used}, {drops}");
}

/// MP: DPCP is compatible to VCP. A link tells flows without chains the zone, and flows take chains that repeat a zone for it.
#[test]
fn flows_and_links_of_the_family_are_mixed() {
    for (flows, link) in [("vcp", "dpcp"), ("dpcp", "vcp"), ("vcp", "tpcp"), ("tpcp", "vcp")] {
        let law = format!("law = \"{link}\"");
        let got = five_flows(&format!("{flows}-{link}"), &format!("\"{flows}\""), &law);
        let (used, drops, jain) = got;
        assert!(used > 0.9 && drops <= 20.0 && jain > 0.9, "{flows} flows, {link} link: {got:?}");
    }
}

/// One packet in twenty comes 10 ms, twelve packets, later.
#[test]
fn disorder_costs_a_tenth_at_most() {
    for n in 1..=3 {
        let law = format!("{{ mpcp = {{ n = {n} }} }}");
        let used = |probability: f64| {
            let link = format!("law = {law}, reorder = {{ probability = {probability}, delay = \"10 ms\" }}");
            five_flows(&format!("disorder-{n}-{probability}"), &law, &link).0
        };
        let calm = five_flows(&format!("calm-{n}"), &law, &format!("law = {law}")).0;
        for probability in [0.01, 0.05] {
            let used = used(probability);
            assert!(used > 0.9 * calm, "{n} packets, {probability}: {used} of {calm}");
        }
    }
}

/// VCP is MPCP with chains of one packet.
#[test]
fn vcp_is_mpcp_of_one_packet() {
    let result = |law: &str| run_text("one", &network(law, 1))["fingerprint"].clone();
    assert_eq!(result("\"vcp\""), result("{ mpcp = { n = 1 } }"));
    assert_eq!(result("\"dpcp\""), result("\"mpcp\""));
    assert_eq!(result("\"tpcp\""), result("{ mpcp = { n = 3 } }"));
}
