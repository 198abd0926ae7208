//! `congestlab compare`: how far two runs agree, who may be compared, and the picture.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::Lab;

/// Three XCP flows that join one after the other.
const JOINING: &str = r#"
[run]
duration = "8 s"
warmup = "4 s"
[links.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "100 packets"
law = "xcp"
feedback_at = "enqueue"
[flows.ftp]
law = "xcp"
count = 3
path = ["bottleneck"]
start = { every = "1 s" }
"#;

/// Runs the scenario with changes and calls its folder `name`.
fn run(lab: &Lab, name: &str, more: &[&str]) {
    lab.run(&[&["run", "scenario.toml", "--out", "new", "--quiet"][..], more].concat()).exits(0);
    let mut folders = fs::read_dir(lab.path("new")).expect("a folder").flatten();
    let folder = folders.next().expect("a run").path();
    fs::rename(folder, lab.path(name)).expect("below the lab");
}

/// Two runs, `a` and `b`, of which the second is another.
fn pair(changes: &[&str]) -> Lab {
    let lab = Lab::new(JOINING);
    run(&lab, "a", &[]);
    run(&lab, "b", changes);
    lab
}

/// Changes a summary: what a run of real packets would have said.
fn edit(lab: &Lab, run: &str, change: impl FnOnce(&mut Value)) {
    let path = lab.path(run).join("summary.json");
    let mut summary = read(&path);
    change(&mut summary);
    fs::write(path, summary.to_string()).expect("writable");
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

fn row<'a>(report: &'a Value, metric: &str) -> &'a Value {
    let rows = report["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["metric"] == metric).unwrap_or_else(|| panic!("no {metric} in {report}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn runs_that_differ_little_agree_and_every_number_is_that_of_the_results() {
    let lab = pair(&["--seed", "2"]);
    let finished = lab.run(&["compare", "a", "b", "--json"]).exits(0);
    let report = finished.json();
    assert_eq!(report["holds"], true);
    assert_eq!(report["warnings"], json!([]));
    let [a, b] = ["a", "b"].map(|run| read(&lab.path(run).join("summary.json")));
    for (metric, pointer) in [
        ("flows.ftp[2].goodput_bps", "/flows/ftp/2/goodput_bps"),
        ("flows.ftp[0].rtt_mean_ms", "/flows/ftp/0/rtt_mean_ms"),
        ("links.bottleneck.queue_mean_packets", "/links/bottleneck/queue_mean_packets"),
        ("links.bottleneck.utilization", "/links/bottleneck/utilization"),
        ("links.\"bottleneck.reverse\".drops", "/links/bottleneck.reverse/drops"),
    ] {
        let row = row(&report, metric);
        for (side, summary) in [("one", &a), ("other", &b)] {
            let expected = number(summary.pointer(pointer).expect("a result"));
            assert_eq!(number(&row[side]), expected, "{metric}");
        }
    }
    let goodput = row(&report, "flows.ftp[1].goodput_bps");
    let (one, other) = (number(&goodput["one"]), number(&goodput["other"]));
    let expected = (one - other).abs() / ((one + other) / 2.0);
    assert!((number(&goodput["difference"]) - expected).abs() < 1e-12);
    assert_eq!((&goodput["allowed"], &goodput["holds"]), (&json!(0.05), &json!(true)));
    let convergence = row(&report, "convergence_s");
    assert!((1.0..5.0).contains(&number(&convergence["one"])), "{convergence}");
    assert_eq!(row(&report, "links.bottleneck.drops")["holds"], Value::Null);

    let text = lab.run(&["compare", "a", "b"]).exits(0).stdout();
    for part in ["flows.ftp[0].goodput_bps", "the runs agree: 6 of 6", "a, simulated, seed 1", "seed 2"] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!text.contains(".reverse"), "ACKs do not matter:\n{text}");
    let text = lab.run(&["compare", "a", "b", "--all"]).exits(0).stdout();
    assert!(text.contains(".reverse"), "{text}");
}

#[test]
fn runs_that_differ_much_do_not_agree_whichever_is_first() {
    let lab = pair(&["--set", "flows.ftp.law=\"cubic\""]);
    let [report, swapped] = [["a", "b"], ["b", "a"]].map(|[one, other]| {
        let finished = lab.run(&["compare", one, other, "--json"]).exits(3);
        assert!(finished.stderr().contains("queue"), "{}", finished.stderr());
        finished.json()
    });
    assert_eq!(report["holds"], false);
    let queue = row(&report, "links.bottleneck.queue_mean_packets");
    assert_eq!(queue["holds"], false);
    assert!(number(&queue["difference"]) > 10.0, "{queue}");
    for (there, back) in
        report["rows"].as_array().expect("rows").iter().zip(swapped["rows"].as_array().expect("rows"))
    {
        for key in ["metric", "difference", "allowed", "holds"] {
            assert_eq!(there[key], back[key], "{there}");
        }
        assert_eq!(there["one"], back["other"]);
    }
    let text = lab.run(&["compare", "a", "b"]).exits(3).stdout();
    assert!(text.contains(" NO\n") && text.contains("the runs do not agree"), "{text}");
    // What is allowed is up to the caller.
    let lenient = ["goodput=2", "queue=1000", "convergence=100"].map(|allowed| ["--tolerance", allowed]);
    let judged = lab.run(&[&["compare", "a", "b", "--json"][..], &lenient.concat()].concat());
    let report = judged.json();
    for metric in ["links.bottleneck.queue_mean_packets", "flows.ftp[0].goodput_bps"] {
        assert_eq!(row(&report, metric)["holds"], true, "{metric}");
    }
    let strict = lab.run(&["compare", "a", "a", "--json", "--tolerance", "drops=0"]).exits(0).json();
    assert_eq!(row(&strict, "links.bottleneck.drops")["holds"], true);
    lab.run(&["compare", "a", "b", "--tolerance", "goodputs=1"]).exits(2);
}

/// Nothing here is made up but the summary: what the kernel measured would stand there.
#[test]
fn a_live_run_is_named_and_doubts_about_the_pair_are_told() {
    let lab = pair(&["--set", "links.bottleneck.feedback_at=\"departure\""]);
    edit(&lab, "a", |summary| summary["live"] = json!({ "trustworthy": true }));
    let finished = lab.run(&["compare", "b", "a"]);
    assert!(finished.stderr().contains("feedback_at = \"enqueue\""), "{}", finished.stderr());
    assert!(finished.stdout().contains("real TCP"), "{}", finished.stdout());
    let report = lab.run(&["compare", "a", "b", "--json"]).json();
    assert_eq!(report["runs"][0]["live"], true);
    assert_eq!(report["runs"][1]["live"], false);
    assert!(report["warnings"][0].as_str().is_some_and(|text| text.contains("bottleneck")), "{report}");

    run(&lab, "c", &["--seed", "2"]);
    let report = lab.run(&["compare", "a", "c", "--json"]).exits(0).json();
    assert_eq!(report["warnings"], json!([]));
    edit(&lab, "a", |summary| summary["live"]["trustworthy"] = json!(false));
    let report = lab.run(&["compare", "a", "c", "--json"]).exits(0).json();
    assert!(report["warnings"][0].as_str().is_some_and(|text| text.contains("too busy")), "{report}");
    let flows =
        json!({ "ftp": { "xcp": { "fallbacks_loss": 8 } }, "other": { "xcp": { "fallbacks_loss": 0 } } });
    edit(&lab, "a", |summary| summary["live"] = json!({ "trustworthy": true, "flows": flows }));
    let report = lab.run(&["compare", "a", "c", "--json"]).exits(0).json();
    let warnings = report["warnings"].as_array().expect("a list");
    assert!(
        warnings.len() == 1 && warnings[0].as_str().is_some_and(|text| text.contains("flows.ftp")),
        "{report}"
    );
}

/// Between a simulation and a live run alone, and below what the command is told.
#[test]
fn what_a_scenario_allows_is_allowed_with_its_reason() {
    let told = "[[tolerances]]\nof = \"goodput\"\nat_most = 1.5\nbecause = \"a test halves it\"\n\
                [[tolerances]]\nof = \"convergence\"\nbecause = \"that moves it\"\n";
    let lab = Lab::new(&format!("{JOINING}{told}"));
    run(&lab, "a", &[]);
    run(&lab, "b", &[]);
    edit(&lab, "b", |summary| {
        let goodput = &mut summary["flows"]["ftp"][0]["goodput_bps"];
        *goodput = json!(goodput.as_f64().expect("a number") / 2.0);
    });
    // Two simulations have no excuse.
    lab.run(&["compare", "a", "b"]).exits(3);
    edit(&lab, "b", |summary| summary["live"] = json!({ "trustworthy": true }));
    for order in [["compare", "a", "b"], ["compare", "b", "a"]] {
        let text = lab.run(&order).exits(0).stdout();
        assert!(text.contains("allowed   goodput: 1.5, because a test halves it\n"), "{text}");
        assert!(text.contains("allowed   convergence: not judged, because that moves it\n"), "{text}");
        let report = lab.run(&[&order[..], &["--json"]].concat()).exits(0).json();
        assert_eq!(row(&report, "flows.ftp[0].goodput_bps")["allowed"], json!(1.5));
        assert_eq!(row(&report, "convergence_s")["holds"], Value::Null);
        let first = json!({ "of": "goodput", "at_most": 1.5, "because": "a test halves it" });
        assert_eq!(report["tolerances"][0], first);
        assert_eq!(report["tolerances"][1]["at_most"], Value::Null);
    }
    let text = lab.run(&["compare", "a", "b", "--tolerance", "goodput=0.1"]).exits(3).stdout();
    assert!(!text.contains("a test halves it") && text.contains("that moves it"), "{text}");
}

#[test]
fn what_only_one_run_measured_is_a_disagreement() {
    let lab = pair(&["--seed", "2"]);
    edit(&lab, "b", |summary| summary["flows"]["ftp"][0]["goodput_bps"] = Value::Null);
    let report = lab.run(&["compare", "a", "b", "--json"]).exits(3).json();
    let goodput = row(&report, "flows.ftp[0].goodput_bps");
    assert_eq!((&goodput["holds"], &goodput["difference"]), (&json!(false), &Value::Null));
    edit(&lab, "a", |summary| summary["flows"]["ftp"][0]["goodput_bps"] = Value::Null);
    let report = lab.run(&["compare", "a", "b", "--json"]).exits(0).json();
    assert_eq!(row(&report, "flows.ftp[0].goodput_bps")["holds"], Value::Null, "two dashes do not agree");
    let text = lab.run(&["compare", "a", "b"]).exits(0).stdout();
    let line = text.lines().find(|line| line.contains("ftp[0].goodput_bps")).expect("a row");
    assert!(line.ends_with("  -"), "{line}");
}

/// The completion times of many transfers are compared as a distribution, their goodputs as a sum.
#[test]
fn transfers_are_compared_by_their_completion_times() {
    let text = transfers().replace("count = 3", "count = 40").replace("\"1 s\"", "\"150 ms\"");
    let lab = Lab::new(&text);
    run(&lab, "a", &[]);
    run(&lab, "b", &["--set", "links.bottleneck.delay=\"20 ms\""]);
    let report = lab.run(&["compare", "a", "b", "--json"]).exits(3).json();
    let [a, b] = ["a", "b"].map(|run| read(&lab.path(run).join("summary.json")));
    let times = |summary: &Value| -> Vec<f64> {
        let flows = summary["flows"]["ftp"].as_array().expect("flows");
        let mut times: Vec<f64> = flows.iter().map(|flow| number(&flow["completion_s"])).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let rows = report["rows"].as_array().expect("rows");
    let of_flows = rows.iter().filter(|row| row["quantity"] != "rtt");
    let of_flows: Vec<&str> = of_flows
        .filter_map(|row| row["metric"].as_str())
        .filter(|metric| metric.contains("flows."))
        .collect();
    let folds = ["sum(flows.ftp.goodput_bps)", "mean(flows.ftp.completion_s)", "p50(flows.ftp.completion_s)"];
    assert_eq!(of_flows, [&folds[..], &["p95(flows.ftp.completion_s)"]].concat());
    let median = row(&report, "p50(flows.ftp.completion_s)");
    assert_eq!((number(&median["one"]), number(&median["other"])), (times(&a)[19], times(&b)[19]));
    assert_eq!(median["holds"], false);
    assert_eq!(row(&report, "sum(flows.ftp.goodput_bps)")["holds"], true);
    let text = lab.run(&["compare", "a", "b"]).exits(3).stdout();
    assert!(text.lines().count() < 20 && text.contains("p95(flows.ftp.completion_s)"), "{text}");
    // A few are compared one by one.
    let few = Lab::new(&transfers());
    run(&few, "a", &[]);
    let report = few.run(&["compare", "a", "a", "--json"]).exits(0).json();
    assert_eq!(row(&report, "flows.ftp[2].completion_s")["holds"], true);
}

/// Three transfers of 60 kB.
fn transfers() -> String {
    JOINING.replace("law = \"xcp\"\ncount", "law = \"cubic\"\nsize = \"60 kB\"\ncount")
}

#[test]
fn runs_of_other_flows_or_links_are_refused_and_what_is_missing_named() {
    let lab = Lab::new(JOINING);
    run(&lab, "a", &[]);
    run(&lab, "fewer", &["--set", "flows.ftp.count=2"]);
    fs::write(lab.path("scenario.toml"), JOINING.replace("flows.ftp", "flows.web")).expect("writable");
    run(&lab, "web", &[]);
    fs::write(lab.path("scenario.toml"), JOINING.replace("bottleneck", "core")).expect("writable");
    run(&lab, "core", &[]);
    for (other, says) in [
        ("fewer", &["fewer has 2 flows of 3 in flows.ftp"][..]),
        ("web", &["a has no flows.web", "web has no flows.ftp"]),
        ("core", &["a has no links.core", "core has no links.bottleneck"]),
        ("none", &["there is no folder none"]),
    ] {
        for arguments in [["compare", "a", other], ["compare", other, "a"]] {
            let finished = lab.run(&arguments).exits(2);
            for says in says {
                assert!(finished.stderr().contains(says), "no {says} in {}", finished.stderr());
            }
            assert_eq!(finished.stdout(), "");
        }
    }
}

#[test]
fn one_run_is_drawn_over_the_other_as_svg_and_png() {
    let lab = pair(&["--seed", "2"]);
    edit(&lab, "a", |summary| summary["live"] = json!({}));
    let svg_of = |name: &str| fs::read_to_string(lab.path(name)).expect("drawn");
    lab.run(&["compare", "a", "b", "--plot", "one.svg"]).exits(0);
    let svg = svg_of("one.svg");
    for part in
        ["ftp[0], simulated", "ftp[2], live", "bottleneck, live", "throughput (Mbit/s)", "cwnd", "queue"]
    {
        assert!(svg.contains(part), "no {part}");
    }
    // What is real lies beneath, whichever is named first.
    let place = |svg: &str, name: &str| svg.find(&format!("data-name=\"{name}\"")).expect("a line");
    lab.run(&["compare", "b", "a", "--plot", "other.svg"]).exits(0);
    for svg in [svg, svg_of("other.svg")] {
        assert!(place(&svg, "ftp[0], live") < place(&svg, "ftp[0], simulated"));
    }
    let report = lab.run(&["compare", "a", "b", "--plot", "both", "--json"]).exits(0).json();
    assert_eq!(report["pictures"], json!(["both.svg", "both.png"]));
    assert_eq!(svg_of("both.svg"), svg_of("one.svg"));
    assert_eq!(&fs::read(lab.path("both.png")).expect("drawn")[..8], b"\x89PNG\r\n\x1a\n");
    for (file, says) in [("x.pdf", ".svg or .png"), ("none/x.svg", "no folder none")] {
        let finished = lab.run(&["compare", "a", "b", "--plot", file]).exits(2);
        assert!(finished.stderr().contains(says), "{}", finished.stderr());
        assert_eq!(finished.stdout(), "");
    }
}
