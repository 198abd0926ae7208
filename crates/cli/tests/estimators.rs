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

/// What is available, less what the flow that asks sends: a packet per round trip.
const CROSS: [(&str, f64); 3] = [("8 bit/s", 29.8), ("10 Mbit/s", 19.8), ("20 Mbit/s", 9.8)];

/// Within this part of what is available from 10 s on, at no more than this load in Mbit/s.
fn is_within(estimator: &str, part: f64, load: f64) {
    for (cross, available) in CROSS {
        let series = series(estimator, cross, 10.0);
        let (found, probes) = (series("estimate_bps").unwrap(), series("probe_bps").unwrap());
        eprintln!("{estimator}: {available} available, {found:.2} found, {probes:.2} of probes");
        assert!((found / available - 1.0).abs() < part, "{estimator}, {cross}: {found} of {available}");
        assert!(probes < load, "{estimator}, {cross}: {probes} Mbit/s of probes");
        let truth = series("truth_bps").unwrap();
        assert!((truth + probes - available).abs() < 0.1, "{truth} and {probes} of {available}");
    }
}

#[test]
fn path_chirp_is_within_a_fifth_of_what_is_available() {
    is_within("\"pathchirp\"", 0.2, 0.9);
}

#[test]
fn direct_probing_is_within_a_tenth() {
    is_within("{ direct = { capacity = \"30 Mbit/s\" } }", 0.1, 0.4);
}

#[test]
fn the_oracle_is_exact() {
    is_within("\"oracle\"", 0.01, 0.03);
}

/// Its fleets take seconds; the greatest error is a part of the range of 80 Mbit/s that it searches.
#[test]
fn pathload_converges() {
    is_within("\"pathload\"", 0.2, 3.2);
    assert_eq!(series("\"pathload\"", "10 Mbit/s", 0.0)("estimate_bps").map(|found| found > 0.0), Some(true));
}

/// Nothing goes missing: as much as the upstream port can send.
#[test]
fn without_probes_nothing_is_known_but_damage() {
    let series = series("\"passive\"", "10 Mbit/s", 10.0);
    assert_eq!(series("estimate_bps"), Some(80.0));
    assert!(series("probe_bps").unwrap() < 0.03);
}
