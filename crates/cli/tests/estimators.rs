//! Estimators in a whole scenario: what they find between two XCP-i routers around a link of 30 Mbit/s,
//! beside what is so (`scenarios/xcp-i/estimators.toml`).

use std::path::Path;
use std::process::Command;

/// Metrics of the cloud with this estimator and so much cross traffic, by name: mean from `from` on.
fn series(estimator: &str, cross: &str, from: f64) -> impl Fn(&str) -> Option<f64> + use<> {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/xcp-i/estimators.toml");
    let name: String = format!("{estimator}-{cross}.csv").replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let csv = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_congestlab"))
        .args(["run", "--json", "--series"])
        .args([&csv, &scenario])
        .args(["--set", &format!("links.into.law.xcp.estimator={estimator}")])
        .args(["--set", &format!("flows.cross.law.cbr.rate=\"{cross}\"")])
        .output()
        .expect("the binary of this package runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&csv).expect("--series wrote it");
    move |metric| {
        let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let rows =
            rows.filter(|row| row[1..4] == ["out", "0", metric] && row[0].parse::<f64>().unwrap() > from);
        let values: Vec<f64> = rows.map(|row| row[4].parse().expect("a number")).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64 / 1e6)
    }
}

/// Four estimators behind four ports with three loads each, and the claims about them.
#[test]
fn estimates_are_as_near_as_is_claimed() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/xcp-i/estimators.toml");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("estimators");
    let _ = std::fs::remove_dir_all(&out);
    let output = Command::new(env!("CARGO_BIN_EXE_congestlab"))
        .args(["sweep", "--check", "--out"])
        .args([&out, &scenario])
        .output()
        .expect("the binary of this package runs");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

/// Estimate, truth and the load of probes are series, of every estimator.
#[test]
fn every_estimator_has_series() {
    let direct = "{ direct = { capacity = \"30 Mbit/s\" } }";
    for estimator in ["\"oracle\"", "\"pathchirp\"", "\"pathload\"", direct, "\"passive\""] {
        let series = series(estimator, "10 Mbit/s", 15.0);
        let [estimate, truth, probes] = ["estimate_bps", "truth_bps", "probe_bps"]
            .map(|metric| series(metric).unwrap_or_else(|| panic!("{estimator} without {metric}")));
        assert!(estimate > 0.0 && probes > 0.0, "{estimator}: {estimate}, {probes}");
        // Of 30 Mbit/s others take 10, the probes what they are, and the flow that asks a packet per round trip.
        assert!((truth + probes - 19.8).abs() < 0.1, "{estimator}: {truth} and {probes} of 19.8");
    }
}

/// Nothing goes missing: as much as the upstream port can send.
#[test]
fn without_probes_nothing_is_known_but_damage() {
    let series = series("\"passive\"", "10 Mbit/s", 10.0);
    assert_eq!(series("estimate_bps"), Some(80.0));
    assert!(series("probe_bps").unwrap() < 0.03);
}

/// What waits at the upstream edge's own port has not left: a queue that grows there is no overload of the
/// cloud behind it.
#[test]
fn a_queue_before_the_cloud_is_none_of_it() {
    let on = "{ xcp = { interoperable = true } }";
    let mut scenario = "[run]\nduration = \"10 s\"\n[measure]\nevery = \"100 ms\"\n".to_owned();
    for (name, rate) in [("into", 20), ("cloud", 30), ("out", 80)] {
        scenario += &format!("[links.{name}]\nrate = \"{rate} Mbit/s\"\ndelay = \"10 ms\"\n");
        if name != "cloud" {
            scenario += "law = { xcp = { interoperable = true, no_estimate = \"hold\" } }\n";
        }
    }
    scenario = scenario.replacen("hold\"", "hold\", estimator = \"passive\"", 1);
    scenario += &format!(
        "[flows.f]\nlaw = {on}\ncount = 8\nstart = {{ every = \"500 ms\" }}\n\
         path = [\"into\", \"cloud\", \"out\"]\nsegment = \"1000 B\"\n"
    );
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("before.toml");
    let csv = file.with_extension("csv");
    std::fs::write(&file, scenario).expect("a place for it");
    let output = Command::new(env!("CARGO_BIN_EXE_congestlab"))
        .args(["run", "--json", "--verify", "--series"])
        .args([&csv, &file])
        .output()
        .expect("the binary of this package runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&csv).expect("--series wrote it");
    let of = |element: &str, metric: &str| -> Vec<f64> {
        let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        rows.filter(|row| row[1] == element && row[3] == metric).map(|row| row[4].parse().unwrap()).collect()
    };
    let most = of("into", "queue_packets").into_iter().fold(0.0, f64::max);
    assert!(most > 10.0, "a queue of {most} packets");
    let estimates = of("out", "estimate_bps");
    assert!(estimates.len() > 90 && estimates.iter().all(|&found| found == 20e6), "{estimates:?}");
}
