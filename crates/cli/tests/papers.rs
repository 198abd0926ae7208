//! The project's papers: what is written down comes out again, a second judge agrees, and laws that are broken on
//! purpose are noticed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("papers").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder for tests");
    path
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn papers(arguments: &[&str], folder: &Path, out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_congestlab"));
    command.arg("papers").args(arguments).arg("--papers").arg(folder).arg("--out").arg(out);
    command.output().expect("the binary of this package runs")
}

/// A paper's quick figures give the verdicts and numbers that are written down, its page says them, and the judge in
/// Python agrees with each.
fn comes_out_again(key: &str) {
    let (folder, out) = (root().join("papers"), scratch(key));
    let check = papers(&["report", key, "--quick", "--check"], &folder, &out);
    assert!(check.status.success(), "{}", text(&check));
    let run = papers(&["run", key, "--quick"], &folder, &out);
    assert!(run.status.success(), "{}", text(&run));
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python").join("bin/python3");
    let has_polars = Command::new(&python).args(["-c", "import polars"]).output();
    if !has_polars.is_ok_and(|output| output.status.success()) {
        println!("SKIP papers/{key}: no polars in {} (make setup)", python.display());
        return;
    }
    let judge =
        Command::new(python).arg(root().join("tools/verdicts")).arg(folder.join(key)).arg(&out).output();
    let judge = judge.expect("it was there a moment ago");
    assert!(judge.status.success() && text(&judge).contains(" 0 differ"), "{}", text(&judge));
}

#[test]
fn pxcp_comes_out_again() {
    comes_out_again("pxcp");
}

#[test]
fn xcpi_comes_out_again() {
    comes_out_again("xcpi");
}

#[test]
fn mpcp_comes_out_again() {
    comes_out_again("mpcp");
}

#[test]
fn xcpr_comes_out_again() {
    comes_out_again("xcpr");
}

#[test]
fn xcp_linux_comes_out_again() {
    comes_out_again("xcp-linux");
}

#[test]
fn katabi2002_comes_out_again() {
    comes_out_again("katabi2002");
}

#[test]
fn rcp_comes_out_again() {
    comes_out_again("rcp");
}

#[test]
fn prague_comes_out_again() {
    comes_out_again("prague");
}

#[test]
fn abc_comes_out_again() {
    comes_out_again("abc");
}

#[test]
fn dctcp_comes_out_again() {
    comes_out_again("dctcp");
}

/// Every figure, also those that take long, is a scenario that passes `check`, and each claim that fails says why, in words and by its tag; no other
/// has one.
#[test]
fn every_failing_claim_has_a_cause_and_a_tag() {
    let list = papers_json(&["list"]);
    let keys: Vec<&str> =
        list["papers"].as_array().unwrap().iter().filter_map(|paper| paper["key"].as_str()).collect();
    assert_eq!(
        keys,
        ["abc", "dctcp", "katabi2002", "mpcp", "prague", "pxcp", "rcp", "xcp-linux", "xcpi", "xcpr"]
    );
    for key in keys {
        let read = |name: &str| std::fs::read_to_string(root().join("papers").join(key).join(name)).unwrap();
        let verdicts: toml::Table = read("verdicts.toml").parse().unwrap();
        for verdict in verdicts["verdicts"].as_array().unwrap() {
            let say = |field: &str| verdict[field].as_str().unwrap().to_owned();
            let figure: toml::Table = read(&format!("{}.toml", say("figure"))).parse().unwrap();
            let claims = figure["claims"].as_array().unwrap();
            let claim = claims.iter().find(|claim| claim["that"].as_str() == Some(&say("claim")));
            let claim =
                claim.unwrap_or_else(|| panic!("{key} {}: no claim {:?}", say("figure"), say("claim")));
            let fails = say("verdict") == "fails";
            let has = |field: &str| claim.get(field).is_some();
            assert!(has("cause") || !fails, "{key} {}: why does it fail: {}", say("figure"), say("claim"));
            assert_eq!(
                has("tag"),
                fails,
                "{key} {}: a tag is of what fails: {}",
                say("figure"),
                say("claim")
            );
        }
    }
}

fn papers_json(arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_congestlab"));
    let output = command.arg("papers").args(arguments).arg("--json").output().expect("the binary runs");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A figure with a law broken on purpose: the claim held and fails then.
fn is_noticed(key: &str, figure: &str, break_it: &dyn Fn(&str) -> String, claim: &str) {
    let whole =
        std::fs::read_to_string(root().join("papers").join(key).join(format!("{figure}.toml"))).unwrap();
    let broken = break_it(&whole);
    assert_ne!(whole, broken, "{key} {figure}: nothing is broken");
    let verdict = |name: &str, text: &str| {
        let folder = scratch(&format!("broken-{key}-{figure}-{name}"));
        let place = folder.join("papers/broken");
        std::fs::create_dir_all(&place).unwrap();
        let about = "title = \"A law that is broken\"\nauthors = \"us\"\npublished = \"2026\"\n";
        std::fs::write(place.join("paper.toml"), about).unwrap();
        std::fs::write(place.join("figure.toml"), text).unwrap();
        let run = papers(&["run", "broken", "--json"], &folder.join("papers"), &folder.join("out"));
        let json: Value =
            serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{}", self::text(&run)));
        let claims = json["figures"][0]["claims"].as_array().unwrap();
        let found = claims.iter().find(|other| other["that"] == claim);
        found.unwrap_or_else(|| panic!("{key} {figure} has no claim {claim:?}"))["holds"] == true
    };
    assert!(verdict("whole", &whole), "{key} {figure}: does not hold with the whole law: {claim}");
    assert!(!verdict("broken", &broken), "{key} {figure}: holds with a broken law: {claim}");
}

/// Adds a setting to every link law that is told a capacity.
fn with(setting: &str) -> impl Fn(&str) -> String + '_ {
    move |text| text.replace("law = { xcp = { capacity", &format!("law = {{ xcp = {{ {setting}, capacity"))
}

#[test]
fn a_queue_that_nothing_drains_is_noticed() {
    let claim = "and is small and constant: 19 packets, within a tenth";
    is_noticed("xcp-linux", "fig12", &with("beta = 0.0"), claim);
}

#[test]
fn shares_that_are_not_shuffled_are_noticed() {
    let claim = "the newcomer has 90 % of its share after 20 to 26 intervals";
    is_noticed("xcp-linux", "ex1-16", &with("gamma = 0.0"), claim);
}

#[test]
fn pools_without_a_bound_are_noticed() {
    let claim = "the window is then almost halved: by 40 % or more";
    is_noticed("xcp-linux", "fig08", &with("overdraw = true"), claim);
}

#[test]
fn algorithm_2_as_printed_is_noticed() {
    let printed = |text: &str| {
        text.replace(
            "packet_size = \"1000 B\"\nlaw = \"dpcp\"",
            "law = { dpcp = { algorithm_2 = \"printed\" } }",
        )
    };
    is_noticed("mpcp", "ex6-7", &printed, "corrected, they say it: 0.99 in the mean or more");
}
