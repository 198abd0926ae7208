use congestlab_sim::outcome::{Element, Outcome, Sample};
use serde_json::json;

use super::*;

fn result() -> Json {
    json!({
        "complete": true,
        "fingerprint": "00ff",
        "duration_s": 10.0,
        "warmup_s": 2.0,
        "links": {
            "bottleneck": { "utilization": 0.9, "drops_by_reason": { "queue-full": 3 } },
            "bottleneck.reverse": { "utilization": 0.1 },
        },
        "flows": {
            // The first lives from 0 s to 4 s, of which 2 s are measured; the second sends nothing; the third stops at 6 s.
            "ftp": [
                { "goodput_bps": 4.0, "throughput_bps": 8.0, "arrived_bytes": 1, "start_s": 0.0,
                  "stop_s": null, "completion_s": 4.0 },
                { "goodput_bps": null, "throughput_bps": null, "arrived_bytes": 0, "start_s": 9.0,
                  "stop_s": null, "completion_s": null },
                { "goodput_bps": 1.0, "throughput_bps": 2.0, "arrived_bytes": 1, "start_s": 1.0,
                  "stop_s": 6.0, "completion_s": null },
            ],
            "web": [{ "goodput_bps": 2.0, "completion_s": 0.5 }, { "goodput_bps": 2.0, "completion_s": 0.25 }],
        },
        "jain": { "ftp": 0.5 },
    })
}

fn read(text: &str) -> Reading {
    match Metric::parse(text) {
        Ok(metric) => metric.read(&result(), None),
        Err(message) => panic!("{text}: {message}"),
    }
}

/// Points that are complete are read again by who resumes: a verdict is then the same to the last digit.
#[test]
fn what_is_kept_is_read_to_the_last_digit() {
    for number in [-98.271_000_000_000_19, 0.1 + 0.2, 1.0 / 3.0, 5e-324, f64::MAX] {
        let kept = Reading::Number(number).to_json().to_string();
        let again: Json = serde_json::from_str(&kept).expect("JSON");
        assert_eq!(Reading::from_json(&again), Reading::Number(number), "{kept}");
    }
}

#[test]
fn paths_and_functions_read_the_result() {
    assert_eq!(read("links.bottleneck.utilization"), Reading::Number(0.9));
    assert_eq!(read("links.\"bottleneck.reverse\".utilization"), Reading::Number(0.1));
    assert_eq!(read("links.bottleneck.drops_by_reason.queue-full"), Reading::Number(3.0));
    assert_eq!(read("flows.ftp[0].goodput_bps"), Reading::Number(4.0));
    assert_eq!(read("flows.ftp[1].goodput_bps"), Reading::Nothing);
    assert_eq!(read("flows.ftp[9].goodput_bps"), Reading::Nothing);
    let list = [Reading::Number(4.0), Reading::Nothing, Reading::Number(1.0)];
    assert_eq!(read("flows.ftp.goodput_bps"), Reading::List(list.to_vec()));
    assert_eq!(read("max(flows.web.completion_s)"), Reading::Number(0.5), "which is the same");
    assert_eq!(read("sum(flows.web.fct_s)"), Reading::Number(0.75));
    assert_eq!(read("mean( flows.ftp.goodput_bps )"), Reading::Number(2.5), "nulls have no part");
    assert_eq!(read("min(flows.ftp.goodput_bps)"), Reading::Number(1.0));
    assert_eq!(read("max(flows.ftp.goodput_bps)"), Reading::Number(4.0));
    assert_eq!(read("mean(flows.none.goodput_bps)"), Reading::Nothing);
    assert_eq!(read("jain(flows.ftp.goodput_bps)"), Reading::Number(25.0 / 34.0));
    assert_eq!(read("flows.ftp[0].goodput_bps - flows.ftp[2].goodput_bps + jain.ftp"), Reading::Number(3.5));
    assert_eq!(read("flows.ftp[0].goodput_bps - flows.ftp[1].goodput_bps"), Reading::Nothing);
    assert_eq!(read("jain.ftp"), Reading::Number(0.5));
    assert_eq!(read("complete"), Reading::Number(1.0));
    assert_eq!(read("fingerprint"), Reading::Text("00ff".into()));
}

/// Rates over different times have no sum: 4 + 1 bit/s would be 5, and no second had so many.
#[test]
fn a_sum_of_rates_is_of_bits_over_one_time() {
    assert_eq!(read("sum(flows.ftp.goodput_bps)"), Reading::Number(2.0), "16 bits in 8 s");
    assert_eq!(read("sum(flows.ftp.throughput_bps)"), Reading::Number((8.0 * 2.0 + 2.0 * 4.0) / 8.0));
    assert_eq!(read("sum(flows.ftp[0].goodput_bps)"), Reading::Number(1.0), "of one, too");
    assert_eq!(read("mean(flows.ftp.goodput_bps)"), Reading::Number(2.5), "a mean of rates is one");
    let no_time = json!({ "warmup_s": 1.0, "duration_s": 1.0, "flows": { "ftp": [{ "arrived_bytes": 3 }] } });
    let sum = Metric::parse("sum(flows.ftp.goodput_bps)").expect("a metric");
    assert_eq!(sum.read(&no_time, None), Reading::Nothing);
}

#[test]
fn a_star_is_every_name() {
    let list = |values: &[Option<f64>]| {
        Reading::List(values.iter().map(|value| value.map_or(Reading::Nothing, Reading::Number)).collect())
    };
    let all = [Some(4.0), None, Some(1.0), Some(2.0), Some(2.0)];
    assert_eq!(read("flows.*.goodput_bps"), list(&all));
    assert_eq!(read("jain(flows.*.goodput_bps)"), Reading::Number(81.0 / (4.0 * 25.0)));
    assert_eq!(read("max(flows.*[0].goodput_bps)"), Reading::Number(4.0));
    assert_eq!(read("flows.*[2].goodput_bps"), list(&[Some(1.0)]), "the others have no third");
    assert_eq!(read("links.*.utilization"), list(&[Some(0.9)]), "one for each link");
    assert_eq!(read("links.*.reverse.utilization"), list(&[Some(0.1)]), "and one for each other direction");
    assert_eq!(read("sum(links.*.drops_by_reason.queue-full)"), Reading::Number(3.0));
}

/// The nearest rank: the least value that so many per cent of them do not exceed.
#[test]
fn percentiles_are_those_of_the_nearest_rank() {
    let of = |name: &str, values: &[f64]| match Percent::strip(name) {
        Some((percent, _, "")) => percent.of(values.to_vec()),
        other => panic!("{name}: {other:?}"),
    };
    // Wikipedia's example.
    let five = [15.0, 20.0, 35.0, 40.0, 50.0];
    for (name, value) in
        [("p5", 15.0), ("p30", 20.0), ("p40", 20.0), ("p50", 35.0), ("p100", 50.0), ("p0", 15.0)]
    {
        assert_eq!(of(name, &five), Some(value), "{name}");
    }
    let thousand: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
    for (name, value) in [("p50", 500.0), ("p99", 990.0), ("p99.9", 999.0), ("p99.91", 1000.0), ("p0.1", 1.0)]
    {
        assert_eq!(of(name, &thousand), Some(value), "{name}");
    }
    assert_eq!(of("p50", &[]), None);
    for name in ["p", "p101", "p100.1", "p5.", "p.5", "p-5", "p1e1", "q50", "p00050", "p1.123456789"] {
        assert!(Percent::strip(name).is_none_or(|(.., rest)| !rest.is_empty()), "{name}");
    }
    assert_eq!(
        read("p50(flows.ftp.goodput_bps)"),
        Reading::Number(1.0),
        "of two the first; null has no part"
    );
    assert_eq!(read("p99.9(flows.*.goodput_bps)"), Reading::Number(4.0));
    assert_eq!(read("p50(flows.ftp[1].fct_s)"), Reading::Nothing);
}

#[test]
fn a_wrong_word_lists_the_right_ones() {
    let refused = |text: &str| Metric::parse(text).expect_err(text);
    let text = refused("avg(flows.ftp.goodput_bps)");
    assert!(
        text.contains("`avg` is no function") && text.contains("sum, mean, min, max, jain, p50, p99.9"),
        "{text}"
    );
    assert!(refused("meen(flows.ftp.goodput_bps)").contains("did you mean `mean`?"));
    assert!(refused("p101(flows.ftp.goodput_bps)").contains("percentiles from p0 to p100"));
    let text = refused("links.a.queue_packets median over [1 s, 2 s]");
    assert!(
        text.contains("`at`, `mean over [from, to]` (min, max, deviation, p50 to p99.9) or `first time`"),
        "{text}"
    );
}

#[test]
fn questions_to_the_series_are_answered_by_bins() {
    let model_of = |text: &str| {
        let base = std::path::Path::new("");
        crate::Scenario::parse("test.toml", text, base, &[], None).map_err(|error| error.to_string())
    };
    let scenario = model_of(
        "[run]\nduration = \"4 s\"\n[links.pipe]\nrate = \"1 Mbit/s\"\n\
         [flows.ftp]\nlaw = \"sack\"\ncount = 2\npath = [\"pipe\"]\n",
    )
    .unwrap();
    let second = 1_000_000_000_000;
    let sample = |at: u64, element, metric, value| Sample { at: at * second, element, metric, value };
    let mut outcome = Outcome::default();
    for bin in 1..=4 {
        outcome.series.push(sample(bin, Element::Link(0), "queue_packets", bin as f64 * 10.0));
        outcome.series.push(sample(bin, Element::Link(1), "queue_packets", 0.0));
        outcome.series.push(sample(bin, Element::Flow(0, 0), "goodput_bps", bin as f64));
        outcome.series.push(sample(bin, Element::Flow(0, 1), "goodput_bps", 1.0));
    }
    let model = scenario.model(&crate::Measure::default());
    let series = Series::new(&outcome, &model);
    let ask = |text: &str| Metric::parse(text).unwrap().read(&Json::Null, Some(&series));
    assert_eq!(ask("links.pipe.queue_packets at 2 s"), Reading::Number(20.0));
    assert_eq!(ask("links.pipe.queue_packets at 2.5"), Reading::Number(30.0), "the bin that has it");
    assert_eq!(ask("links.pipe.queue_packets at 5 s"), Reading::Nothing);
    assert_eq!(ask("links.pipe.queue_packets mean over [1 s, 3 s]"), Reading::Number(25.0));
    assert_eq!(ask("mean over [1 s, 3 s] of links.pipe.queue_packets"), Reading::Number(25.0));
    assert_eq!(ask("links.pipe.queue_packets first time > 20"), Reading::Number(3.0));
    assert_eq!(ask("first time links.pipe.queue_packets >= 20"), Reading::Number(2.0));
    assert_eq!(ask("links.pipe.queue_packets first time > 99"), Reading::Nothing);
    let both = [Reading::Number(3.0), Reading::Number(1.0)];
    assert_eq!(ask("flows.ftp.goodput_bps at 3 s"), Reading::List(both.to_vec()));
    assert_eq!(ask("flows.ftp[1].goodput_bps at 3 s"), Reading::Number(1.0));
    assert_eq!(ask("sum(flows.ftp.goodput_bps) at 3 s"), Reading::Number(4.0));
    assert_eq!(ask("sum(flows.ftp.goodput_bps) first time >= 5 bit/s"), Reading::Number(4.0));
    assert_eq!(ask("links.pipe.queue_packets min over [1 s, 4 s]"), Reading::Number(20.0));
    assert_eq!(ask("max over [1 s, 3 s] of links.pipe.queue_packets"), Reading::Number(30.0));
    assert_eq!(ask("links.pipe.queue_packets deviation over [1 s, 3 s]"), Reading::Number(5.0));
    assert_eq!(ask("links.pipe.queue_packets deviation over [8 s, 9 s]"), Reading::Nothing);
    assert_eq!(ask("links.pipe.queue_packets p50 over [0 s, 4 s]"), Reading::Number(20.0));
    assert_eq!(ask("p75.1 over [0 s, 4 s] of links.pipe.queue_packets"), Reading::Number(40.0));
    assert_eq!(ask("p50(flows.ftp.goodput_bps) at 3 s"), Reading::Number(1.0));
    assert_eq!(ask("sum(flows.*.goodput_bps) at 3 s"), Reading::Number(4.0));
    assert_eq!(ask("jain(flows.*.goodput_bps) mean over [1 s, 3 s]"), Reading::Number(12.25 / 14.5));
    assert_eq!(ask("links.*.queue_packets at 2 s"), Reading::List(vec![Reading::Number(20.0)]));
    assert_eq!(ask("links.*.reverse.queue_packets at 2 s"), Reading::List(vec![Reading::Number(0.0)]));
    assert_eq!(ask("links.pipe.queue_packets first time >= 20 after 3 s"), Reading::Number(3.0));
    assert_eq!(ask("first time links.pipe.queue_packets <= 20 after 3 s"), Reading::Nothing);
    // 2 and 3 (mean 2.5) beside 1 and 1.
    assert_eq!(ask("jain(flows.ftp.goodput_bps) mean over [1 s, 3 s]"), Reading::Number(12.25 / 14.5));
    assert_eq!(
        ask("links.pipe.queue_packets at 3 s - links.pipe.queue_packets at 1 s"),
        Reading::Number(20.0)
    );

    // The second flow is complete after two seconds: what follows is of the first.
    let flow = |completion_s| FlowOutcome { completion_s, ..FlowOutcome::default() };
    outcome.groups = vec![vec![flow(None), flow(Some(2.0))].into()];
    let series = Series::new(&outcome, &model);
    let ask = |text: &str| Metric::parse(text).unwrap().read(&Json::Null, Some(&series));
    assert_eq!(ask("mean(flows.ftp.goodput_bps) at 2 s"), Reading::Number(1.5));
    assert_eq!(ask("mean(flows.ftp.goodput_bps) at 3 s"), Reading::Number(3.0));
    assert_eq!(ask("sum(flows.ftp.goodput_bps) mean over [0 s, 4 s]"), Reading::Number(12.0 / 4.0));
    assert_eq!(ask("flows.ftp[1].goodput_bps at 3 s"), Reading::Number(1.0), "the series itself is whole");
    // They share the first second fairly, and all the time together is two.
    for text in ["convergence_s", "convergence_s.ftp"] {
        let metric = Metric::parse(text).unwrap();
        assert!(metric.needs_series() && !metric.is_of_law() && !metric.is_list());
        assert_eq!((metric.unit_name(), ask(text)), ("convergence_s", Reading::Nothing));
        assert!(metric.reads().all(|(table, _, value)| (table, value) == ("flows", "goodput_bps")));
    }
    for sample in outcome.series.iter_mut().filter(|sample| sample.metric == "goodput_bps") {
        sample.value = 3.0;
    }
    let series = Series::new(&outcome, &model);
    let ask = |text: &str| Metric::parse(text).unwrap().read(&Json::Null, Some(&series));
    assert_eq!(ask("convergence_s"), Reading::Number(1.0));
    assert_eq!(ask("convergence_s.ftp"), Reading::Number(1.0));
    assert_eq!(ask("convergence_s.web"), Reading::Nothing);
    for text in ["convergence_s at 2 s", "mean(convergence_s)"] {
        assert!(Metric::parse(text).is_err(), "{text}");
    }
}

#[test]
fn quantities_are_in_the_unit_of_the_metric() {
    assert_eq!(quantity("5 Mbit/s", "goodput_bps"), Ok(5e6));
    assert_eq!(quantity("1 MB/s", "input_Bps"), Ok(1e6));
    assert_eq!(quantity("20 ms", "rtt_mean_ms"), Ok(20.0));
    assert_eq!(quantity("20 ms", "completion_s"), Ok(0.02));
    assert_eq!(quantity("3 kB", "queue_bytes"), Ok(3000.0));
    assert_eq!(
        Metric::parse("links.a.queue_bytes at 5 s").map(|m| m.unit_name().to_owned()),
        Ok("queue_bytes".into())
    );
    assert_eq!(
        Metric::parse("links.a.drops first time > 0").map(|m| m.unit_name().to_owned()),
        Ok("t_s".into())
    );
    assert_eq!(quantity("0.5", "utilization"), Ok(0.5));
    assert!(quantity("0.5 s", "utilization").is_err());
    assert!(quantity("inf", "utilization").is_err());
}

#[test]
fn what_is_no_metric_is_refused() {
    for text in [
        "",
        "links.",
        "sum(links.a.drops",
        "links.a.drops now",
        "links.a.drops at",
        "links.a.drops at 5 bananas",
        "links.a.drops mean over 5",
        "links.a.drops mean over [3 s, 2 s]",
        "links.a.drops first time",
        "flows.a[x].b",
        "first time links.a.drops",
        "mean over [1 s, 2 s",
        "links.a.drops first time >= ",
        "links.a.drops first time >= 3 after",
        "links.a.drops - ",
        "links.a.queue_packets deviation over 3 s",
        "links.\"a",
    ] {
        assert!(Metric::parse(text).is_err(), "{text:?}");
    }
}
