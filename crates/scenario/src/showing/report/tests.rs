use std::path::Path;
use std::process::Command;

use congestlab_sim::outcome::{Element, FlowOutcome, Outcome, Sample};
use serde_json::{Value as Json, json};

use super::*;
use crate::language::scenario::Scenario;
use crate::showing::recording::{Of, Recording, charts};

const MS: u64 = 1_000_000_000;

fn scenario(count: u32) -> Scenario {
    let text = format!(
        "[run]\nduration = \"1 s\"\n[measure]\nevery = \"100 ms\"\n\
         [links.\"a<b>\"]\nrate = {{ steps = [[\"0 s\", \"1 Mbit/s\"], [\"450 ms\", \"2 Mbit/s\"]] }}\n\
         delay = \"10 ms\"\nqueue = \"9 packets\"\nlaw = \"xcp\"\n\
         [flows.\"x</script>\"]\nlaw = \"xcp\"\ncount = {count}\npath = [\"a<b>\"]\n\
         [flows.y]\nlaw = \"cubic\"\ncount = 2\npath = [\"a<b>\"]\n"
    );
    Scenario::parse("s.toml", &text, Path::new(""), &[], None).expect("valid")
}

fn page(scenario: &Scenario, summary: &Json, recording: &Recording) -> String {
    let run = Run { name: "<b>&", written: None, normalised: &scenario.normalised(), summary };
    html(&run, recording)
}

/// The block that the program reads.
fn data(page: &str) -> Json {
    let (_, rest) = page.split_once("id=\"data\">").expect("the page has data");
    let (json, _) = rest.split_once("</script>").expect("they end");
    serde_json::from_str(json).expect("they are JSON")
}

#[test]
fn a_run_of_nothing_is_a_page_all_the_same() {
    let scenario = scenario(1);
    let recording = Recording::new(&scenario);
    let summary = json!({ "complete": false, "seed": 3, "fingerprint": "f", "duration_s": null,
                          "links": {}, "flows": {}, "jain": {}, "meta": {} });
    let page = page(&scenario, &summary, &recording);
    assert!(page.contains("INCOMPLETE") && page.contains("no time series"), "{page}");
    assert!(page.contains("<title>&lt;b&gt;&amp;: congestlab report</title>"));
    assert_eq!(data(&page)["charts"], json!([]));
}

#[test]
fn nulls_are_shown_as_nothing_and_numbers_with_their_units() {
    let scenario = scenario(1);
    let summary = json!({
        "complete": true, "seed": 3, "seed_used": false, "fingerprint": "0123", "duration_s": 1.0, "packet_hops": 12_345,
        "links": { "a<b>": { "capacity_bps": 1.5e6, "throughput_bps": null, "utilization": null,
                             "queue_mean_packets": null, "drops": 7 } },
        "flows": {
            "x</script>": [{ "goodput_bps": null, "rtt_mean_ms": null, "sent_packets": 5, "completion_s": null }],
            "many": { "count": 20_000, "goodput_bps": { "count": 20_000, "mean": 1e3, "min": 5e2, "max": 2e3 },
                      "arrived_bytes": { "count": 20_000, "mean": 50.0 } },
        },
        "jain": { "x</script>": null, "many": 0.5 },
        "meta": { "version": "1.2.3" },
    });
    let page = page(&scenario, &summary, &Recording::new(&scenario));
    for part in [
        "3 (nothing random was drawn)",
        "<th scope=\"row\">a&lt;b&gt;</th><td>1.50 Mbit/s</td><td>-</td><td>-</td><td>-</td>",
        "<th scope=\"row\">x&lt;/script&gt;[0]</th><td>-</td>",
        "<th scope=\"row\">many</th><td>20000</td><td>8 Mbit/s</td><td>1 kbit/s</td><td>500 bit/s</td>",
        "1.2.3",
        "12.3 k",
    ] {
        assert!(page.contains(part), "{part} is missing in\n{page}");
    }
}

/// The flows of a group look alike, two groups never do, and a law has its colour.
#[test]
fn a_group_has_one_look_and_it_is_that_of_its_law() {
    let scenario = scenario(3);
    let mut recording = Recording::new(&scenario);
    recording.sample(100 * MS, Element::Flow(0, 0), "cwnd_packets", 2.0);
    recording.finish();
    let page = page(&scenario, &json!({}), &recording);
    let data = data(&page);
    let hue = |law: &str| crate::showing::style::of_law(law).expect("a law").hue;
    assert_eq!(data["flow_counts"], json!([3, 2]));
    assert_eq!(data["hues"], json!([hue("xcp"), hue("cubic")]));
    assert_eq!(data["link_hues"][0], json!(hue("xcp")));
    for line in [format!("class=\"way c{}\"", hue("cubic")), format!("class=\"group c{}\"", hue("xcp"))] {
        assert!(page.contains(&line), "{line}");
    }
}

#[test]
fn a_report_says_what_its_scenario_says_of_itself() {
    assert_eq!(
        described("#:schema x\n\n# Ten flows\n#  and a burst\n\n# not this\n[run]\n").as_deref(),
        Some("Ten flows and a burst")
    );
    assert_eq!(described("[run]\n# late\n"), None);
    assert_eq!(described("").as_deref(), None);
    assert!(described(&format!("# {}", "x".repeat(100_000))).is_some_and(|about| about.len() < 1000));
    let scenario = scenario(1);
    let run = Run {
        name: "b",
        written: Some("# <Two> laws\u{1b}[31m\r\n[run]\r\n"),
        normalised: &scenario.normalised(),
        summary: &json!({ "seed": 7 }),
    };
    let page = html(&run, &Recording::new(&scenario));
    let facts = ["<p class=\"about\">&lt;Two&gt; laws\\u{1b}[31m</p>", "1 x xcp", "2 x cubic", "id=\"date\""];
    for part in facts {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!page.contains('\u{1b}'), "an escape is still one");
}

#[test]
fn no_name_can_end_the_block_of_data() {
    let scenario = scenario(1);
    let mut recording = Recording::new(&scenario);
    recording.sample(100 * MS, Element::Flow(0, 0), "cwnd_packets", 2.0);
    recording.finish();
    let page = page(&scenario, &json!({}), &recording);
    assert_eq!(data(&page)["flows"][0], "x</script>[0]");
    // The data, the library, the program.
    assert_eq!(page.matches("</script>").count(), 3);
}

#[test]
fn utilisation_is_of_what_the_link_could_carry_in_that_bin() {
    let scenario = scenario(1);
    let mut recording = Recording::new(&scenario);
    for bin in 1..=10 {
        recording.sample(bin * 100 * MS, Element::Link(0), "throughput_bps", 1e6);
    }
    recording.finish();
    let charts = charts(&recording);
    let (chart, label) = charts.iter().find(|(chart, _)| chart.metric == "utilization").expect("derived");
    assert_eq!((label.unit, label.axis().as_str()), ("%", "Utilisation of links (%)"));
    let wanted = [1.0, 1.0, 1.0, 1.0, 2.0 / 3.0, 0.5, 0.5, 0.5, 0.5, 0.5];
    for (value, wanted) in chart.series[0].iter().zip(wanted) {
        assert!((f64::from(*value) - wanted).abs() < 1e-6, "{:?}", chart.series[0]);
    }
}

#[test]
fn many_flows_are_a_spread_and_each_of_them_is_there() {
    let scenario = scenario(100);
    let mut recording = Recording::new(&scenario);
    for bin in 1..=10 {
        for flow in 0..100 {
            recording.sample(bin * 100 * MS, Element::Flow(0, flow), "cwnd_packets", f64::from(flow + 1));
        }
        recording.sample(bin * 100 * MS, Element::Flow(1, 1), "cwnd_packets", 1000.0);
    }
    recording.finish();
    let (chart, _) = &charts(&recording)[0];
    assert_eq!(chart.spreads.len(), 1, "two flows are no crowd");
    assert_eq!(chart.spreads[0].quantiles.each_ref().map(|values| values[3]), [5.0, 50.0, 95.0]);
    assert_eq!(chart.series[41], vec![42.0; 10]);
    assert!(chart.series[100].is_empty() && chart.series[101] == vec![1000.0; 10]);
    assert_eq!(recording.flows_drawn(), [0, 100, 101]);
    assert_eq!(recording.flows()[101], (1, 1));
}

/// One flow of a hundred lives to the end, the others half as long: from then on it is all there is to see.
#[test]
fn a_flow_is_drawn_while_it_lives_and_bands_are_of_those_that_do() {
    let scenario = scenario(100);
    let sample = |bin: u64, flow: u32, metric, value: f64| Sample {
        at: bin * 100 * MS,
        element: Element::Flow(0, flow),
        metric,
        value,
    };
    let mut outcome = Outcome::default();
    for bin in 1..=10 {
        for flow in 0..100 {
            outcome.series.push(sample(bin, flow, "cwnd_packets", if flow == 7 { 50.0 } else { 1.0 }));
            outcome.series.push(sample(bin, flow, "goodput_bps", 80.0));
        }
    }
    let flow = |flow: u32| FlowOutcome {
        start_s: 0.1,
        completion_s: (flow != 7).then_some(0.45),
        ..FlowOutcome::default()
    };
    outcome.groups = vec![(0..100).map(flow).collect()];
    let recording = Recording::of(&scenario, &outcome);
    let chart = |metric: &str| {
        let charts = charts(&recording);
        charts.into_iter().find(|(chart, _)| chart.metric == metric).expect("it is drawn").0.clone()
    };
    let cwnd = chart("cwnd_packets");
    let seen = |series: &[f32]| series.iter().map(|value| !value.is_nan()).collect::<Vec<_>>();
    assert_eq!(seen(&cwnd.series[0]), [false, true, true, true, true, true, false, false, false, false]);
    assert_eq!(seen(&cwnd.series[7]), [false, true, true, true, true, true, true, true, true, true]);
    assert_eq!(cwnd.spreads[0].quantiles[1][1..], [1.0, 1.0, 1.0, 1.0, 1.0, 50.0, 50.0, 50.0, 50.0]);
    // Delivery is an amount: one byte in each bin of 100 ms.
    assert_eq!(chart("arrived_bytes").series[7][1..], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
}

#[test]
fn events_belong_to_their_link_and_their_flow_and_none_is_lost() {
    let scenario = scenario(2);
    let mut recording = Recording::new(&scenario);
    for nanosecond in 0..5000 {
        recording.event(nanosecond * 1000, Element::Link(0), "drop", Some(2));
    }
    recording.event(500 * MS, Element::Flow(1, 1), "timeout", None);
    recording.event(600 * MS, Element::Link(0), "control-interval", None);
    recording.finish();
    let all: Vec<(&str, Of, usize, u32, usize)> = recording
        .marks()
        .iter()
        .map(|m| (m.kind.as_str(), m.of, m.index, m.at.iter().map(|(_, count)| count).sum(), m.at.len()))
        .collect();
    assert_eq!(
        all,
        [("drop", Of::Links, 0, 5000, 1), ("drop", Of::Flows, 2, 5000, 1), ("timeout", Of::Flows, 3, 1, 1)]
    );
}

#[test]
fn a_metric_that_nobody_described_is_drawn_last_by_its_name() {
    let scenario = scenario(1);
    let mut recording = Recording::new(&scenario);
    for metric in ["brand_new", "queue_packets", "queue_bytes"] {
        recording.sample(100 * MS, Element::Link(0), metric, 1.0);
    }
    recording.finish();
    let titles: Vec<String> = charts(&recording).into_iter().map(|(_, label)| label.title).collect();
    assert_eq!(titles, ["Queue of links", "brand_new"]);
}

/// The library in the page is the one that was published, not one that somebody edited.
#[test]
fn the_library_is_the_published_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/uplot-1.6.32");
    let output = Command::new("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(&folder)
        .output()
        .expect("coreutils");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let listed = std::fs::read_to_string(folder.join("SHA256SUMS")).expect("just read");
    for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(name == "SHA256SUMS" || listed.contains(&name), "{name} has no checksum");
    }
}
