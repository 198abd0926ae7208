//! Papers: what is run, drawn, judged and written down.

use std::fs;

use serde_json::Value;

use crate::browser::Browser;
use crate::{Finished, Lab, SCENARIO};

const ABOUT: &str = "title = \"On XCP\"\nauthors = \"A. Author\"\npublished = \"2002\"\n";

/// A figure over the rate of the bottleneck, with five seeds, and a claim of each kind of decision.
fn figure() -> String {
    format!(
        "{SCENARIO}start = {{ uniform = \"100 ms\" }}\n
[sweep]
grid = {{ \"links.bottleneck.rate\" = [\"5 Mbit/s\", \"10 Mbit/s\"], \"run.seed\" = [1, 2, 3, 4, 5] }}

[figure]
of = \"K02 fig. 4\"
title = \"Utilization\"
x = \"links.bottleneck.rate\"
x_label = \"capacity, Mbit/s\"
own = [\"links.bottleneck.law\", \"flows.ftp.law\"]
lines = [{{ name = \"XCP\", metric = \"links.bottleneck.utilization\", y = \"utilization\" }}]

[[claims]]
that = \"the link is used\"
quote = \"XCP maintains good utilization\"
source = \"K02 fig. 4; EX1.1\"
metric = \"links.bottleneck.utilization\"
at_least = 0.9
decide = \"mean\"
control = {{ \"flows.ftp.size\" = \"10 kB\" }}

[[claims]]
that = \"mostly, nothing is lost\"
metric = \"links.bottleneck.drops_total\"
never = true
decide = \"half\"

[[claims]]
that = \"two flows carry twice the link\"
metric = \"sum(flows.ftp.goodput_bps)\"
ratio_to = \"links.bottleneck.capacity_bps\"
at_least = 2
cause = \"a link carries no more than it can (docs/design/protocols.md 0.2)\"
tag = \"closed form\"

[[claims]]
that = \"twice the rate, twice the goodput\"
metric = \"sum(flows.ftp.goodput_bps)\"
against = {{ \"links.bottleneck.rate\" = [\"5 Mbit/s\"] }}
only = {{ \"links.bottleneck.rate\" = [\"10 Mbit/s\"] }}
within = [1.9, 2.1]
decide = \"mean\"

[[figure.assumed]]
name = \"A-07: room for 50 packets\"
paths = [\"links.bottleneck.queue\"]
values = [\"2 packets\", \"60 packets\"]
"
    )
}

fn lab(figure: &str) -> Lab {
    let lab = Lab::new(SCENARIO);
    fs::create_dir_all(lab.path("papers/xcp")).unwrap();
    fs::write(lab.path("papers/xcp/paper.toml"), ABOUT).unwrap();
    fs::write(lab.path("papers/xcp/fig04.toml"), figure).unwrap();
    lab
}

fn run(lab: &Lab, more: &[&str]) -> Finished {
    lab.run(&[&["papers", "run", "xcp", "--papers", "papers", "--out", "out"], more].concat())
}

fn claims(json: &Value) -> Vec<(bool, Value)> {
    let claims = json["figures"][0]["claims"].as_array().unwrap();
    claims.iter().map(|claim| (claim["holds"] == true, claim["held"].clone())).collect()
}

#[test]
fn a_paper_is_run_drawn_judged_and_written_down() {
    let lab = lab(&figure());
    // Nothing is written down yet: what fails is new.
    let first = run(&lab, &[]).exits(0);
    assert!(first.stdout().contains("FAILS (new)  two flows carry twice the link"), "{}", first.stdout());
    assert!(first.stdout().contains("3 hold, 1 fail, 0 exceptions; 1 of 1 figures"), "{}", first.stdout());
    // What the codes are is said below; A-07 is not in this text.
    let code =
        "\n  EX1.1: five XCP flows start one after the other (docs/design/protocols.md#ex1-1)\n\n3 hold";
    assert!(first.stdout().contains(code) && !first.stdout().contains("A-07"), "{}", first.stdout());
    for file in ["fig04.svg", "fig04.png", "fig04.parquet", "verdicts.json"] {
        assert!(lab.path("out").join(file).is_file(), "{file}");
    }
    let written = ["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--write"];
    let kept = lab.run(&written).exits(0);
    assert!(kept.stdout().contains("report.html"));
    let page = fs::read_to_string(lab.path("out/report.html")).unwrap();
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">",
        congestlab_scenario::report::POLICY
    );
    assert!(page.contains(&policy) && policy.contains("default-src 'none'"), "{page}");
    assert!(
        page.contains("XCP maintains good utilization")
            && page.contains("src=\"data:image/svg+xml;base64,")
            && page.contains("FAILS")
    );
    let title = "five XCP flows start one after the other";
    assert!(page.contains(&format!("<a href=\"#ex1-1\" title=\"{title}\">EX1.1</a>")), "{page}");
    assert!(page.contains(&format!(
        "<tr id=\"ex1-1\"><td>EX1.1</td><td>{title}</td><td>docs/design/protocols.md#ex1-1"
    )));
    // What is measured at several points is a table; colours follow the reader; the figure and its numbers can be saved.
    for part in [
        "<caption>links.bottleneck.utilization</caption><tr><th scope=\"col\">bottleneck.rate</th>",
        "<tr><td>5 Mbit/s</td><td>",
        "prefers-color-scheme: dark",
        "<figure class=\"picture\" data-name=\"xcp-fig04\">",
        "<th scope=\"col\">95 % from</th>",
    ] {
        assert!(page.contains(part), "{part} is missing in\n{page}");
    }
    assert!(!page.contains("; 0.") && !page.contains("&quot;; "), "a list of semicolons: {page}");
    let table = fs::read_to_string(lab.path("papers/xcp/README.md")).unwrap();
    assert!(
        table.contains(&format!("- [EX1.1](../../docs/design/protocols.md#ex1-1): {title}\n")),
        "{table}"
    );
    assert_eq!(
        (table.matches("| holds |").count(), table.matches("| **FAILS**: closed form |").count()),
        (3, 1),
        "{table}"
    );
    assert!(
        table.contains("Why \"two flows carry twice the link\" fails: a link carries no more than it can")
    );
    let sums = fs::read_to_string(lab.path("papers/README.md")).unwrap();
    assert!(sums.contains("| [xcp](xcp/README.md): On XCP | 1 | 4 | 3 | 0 | 0 | 1 | 0 |"), "{sums}");
    assert!(sums.contains("| quoted from a paper | 1 | 1 (100 %) | 0 | 0 | 0 | 0 | 0 | 0 | 0 |"), "{sums}");
    assert!(sums.contains("| our own | 3 | 2 (67 %) | 0 | 0 | 1 | 0 | 1 | 0 | 0 |"), "{sums}");

    // What failed when it was written down may fail.
    let json = run(&lab, &["--json"]).exits(0).json();
    let held = (true, true.into());
    assert_eq!(claims(&json), [held.clone(), held.clone(), (false, false.into()), held]);
    let code =
        serde_json::json!([{ "key": "EX1.1", "title": title, "defined": "docs/design/protocols.md#ex1-1" }]);
    assert_eq!(json["codes"], code);
    let list = lab.run(&["papers", "list", "--papers", "papers", "--json"]).exits(0).json();
    assert_eq!((&list["papers"][0]["holds"], &list["papers"][0]["fails"]), (&3.into(), &1.into()));

    // What is written down is what comes out, until somebody changes it.
    let check = ["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--check"];
    lab.run(&check).exits(0);
    let json = lab.run(&[&check[..], &["--json"]].concat()).exits(0).json();
    assert_eq!((&json["report"], claims(&json).len()), (&"out/report.html".into(), 4));
    lab.run(&[&check[..], &["--write"]].concat()).exits(2);
    let verdicts = fs::read_to_string(lab.path("papers/xcp/verdicts.toml")).unwrap();
    fs::write(
        lab.path("papers/xcp/verdicts.toml"),
        verdicts.replacen("verdict = \"holds\"", "verdict = \"fails\"", 1),
    )
    .unwrap();
    let differs = lab.run(&check).exits(3);
    assert!(differs.stderr().contains("README.md is not what verdicts.toml says"), "{}", differs.stderr());
    fs::write(lab.path("papers/xcp/verdicts.toml"), verdicts).unwrap();
    fs::write(lab.path("papers/README.md"), sums.replace("| 3 | 0 | 0 | 1 |", "| 4 | 0 | 0 | 0 |")).unwrap();
    let differs = lab.run(&check).exits(3);
    assert!(differs.stderr().contains("papers/README.md is not what"), "{}", differs.stderr());
    fs::write(lab.path("papers/README.md"), sums).unwrap();
    lab.run(&check).exits(0);

    // One figure is written down beside the other, and what nobody claims any more goes.
    let second = |that: &str| {
        fs::write(lab.path("papers/xcp/fig05.toml"), figure().replace("the link is used", that)).unwrap();
        let one = ["papers", "report", "xcp", "fig05", "--papers", "papers", "--out", "out", "--write"];
        lab.run(&one).exits(0);
        fs::read_to_string(lab.path("papers/xcp/verdicts.toml")).unwrap()
    };
    second("the link is busy");
    let both = second("the link is full");
    assert!(both.contains("the link is used") && both.contains("the link is full"), "{both}");
    assert!(!both.contains("the link is busy") && both.matches("[[verdicts]]").count() == 8, "{both}");
    fs::remove_file(lab.path("papers/xcp/fig05.toml")).unwrap();

    // What held must.
    let broken = figure()
        .replace("law = \"xcp\"\n\n[flows", "law = { xcp = { alpha = 0.001, beta = 0.0 } }\n\n[flows");
    fs::write(lab.path("papers/xcp/fig04.toml"), broken).unwrap();
    let json = run(&lab, &["--json"]).exits(3).json();
    assert_eq!(claims(&json)[0], (false, true.into()));
}

/// What stands in a paper's folder is somebody else's; the pages that are made of it stand among ours.
#[test]
fn texts_of_a_paper_are_neither_html_nor_code_nor_cells() {
    let hostile = r#"a|b <script>alert(1)</script> &lt; `c` \\` [d](javascript:e) [f]: g\n| h | <!-- "#;
    let shown = r#"a\|b &lt;script&gt;alert(1)&lt;/script&gt; &amp;lt; \`c\` \\\` [d]\(javascript:e) [f]\: g \| h \| &lt;!-- "#;
    let lab = lab(&figure().replace("two flows carry twice the link", hostile));
    let about = |line: &str| {
        let (key, _) = line.split_once(" = ").expect("a key");
        format!("{key} = \"{hostile}\"\n")
    };
    fs::write(lab.path("papers/xcp/paper.toml"), ABOUT.lines().map(about).collect::<String>()).unwrap();
    let exception =
        format!("[[exceptions]]\nof = \"{hostile}\"\nwhat = \"{hostile}\"\nwhy = \"{hostile}\"\n");
    fs::write(lab.path("papers/xcp/exceptions.toml"), exception).unwrap();
    fs::rename(lab.path("papers/xcp/fig04.toml"), lab.path("papers/xcp/f](x) <b>|.toml")).unwrap();
    lab.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--write"]).exits(0);
    let page = fs::read_to_string(lab.path("papers/xcp/README.md")).unwrap();
    let wrong = ["<script", "</script", "<b>", "](javascript:", "]: g"];
    for text in [&page, &fs::read_to_string(lab.path("papers/README.md")).unwrap()] {
        assert!(!wrong.iter().any(|wrong| text.contains(wrong)), "{text}");
        assert!(text.matches("<!--").count() == 1, "{text}");
    }
    for part in [
        format!("# {shown}\n\n{shown}, {shown}\n"),
        format!("| {shown} | {shown} | {shown} |\n"),
        format!("Why \"{shown}\" fails: "),
        "[f]\\(x) &lt;b&gt;\\|.toml](f%5D%28x%29%20%3Cb%3E%7C.toml)".into(),
    ] {
        assert!(page.contains(&part), "{part} is missing in\n{page}");
    }
    // As many cells in every row of a table as in its head.
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let claims: Vec<usize> = page.lines().filter(|line| line.starts_with("| ")).map(cells).collect();
    assert_eq!(claims, [vec![6; 6], vec![4; 3]].concat(), "{page}");
    lab.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--check"]).exits(0);
}

/// A claim that holds with its cause switched off says nothing; one that five seeds leave open has more of them.
#[test]
fn controls_and_more_seeds_make_a_verdict_one() {
    let claims = |bound: f64| {
        format!(
            "
[[claims]]
that = \"the link is used, whatever its delay\"
metric = \"links.bottleneck.utilization\"
at_least = 0.9
decide = \"mean\"
control = {{ \"links.bottleneck.delay\" = \"11 ms\" }}

[[claims]]
that = \"the narrow link has one delay, and the wide one another\"
metric = \"links.bottleneck.utilization\"
at_least = {bound}
decide = \"mean\"
only = {{ \"links.bottleneck.rate\" = [\"5 Mbit/s\"] }}
control = {{ \"links.bottleneck.rate\" = \"10 Mbit/s\" }}

[[claims]]
that = \"there is a seed\"
metric = \"seed_used\"
equals = true
control = false
"
        )
    };
    let start = figure();
    let start = start.split("[[claims]]").next().expect("a figure");
    let lab = lab(&format!("{start}{}", claims(0.5)));
    let json = run(&lab, &["--json"]).exits(0).json();
    let claim = |json: &Value, index: usize| json["figures"][0]["claims"][index].clone();
    let mean = |text: &str| text.split([' ', ';']).next().and_then(|text| text.parse::<f64>().ok());
    let verdicts = |json: &Value, index: usize| {
        let claim = claim(json, index);
        (claim["verdict"].clone(), claim["control"]["verdict"].clone())
    };
    assert_eq!(verdicts(&json, 0), ("holds".into(), "holds".into()));
    assert_eq!(verdicts(&json, 1), ("holds".into(), "holds".into()));
    assert_eq!(verdicts(&json, 2), ("holds".into(), Value::Null));
    assert_eq!(json["figures"][0]["points"], 10);
    let shown = run(&lab, &[]).exits(0);
    assert!(shown.stdout().contains("         control: does not tell: holds, 0."), "{}", shown.stdout());
    assert!(shown.stdout().contains("\n1 hold, 0 fail, 2 tell nothing, 0 exceptions"), "{}", shown.stdout());

    // A bound at the mean of five seeds is asked of more of them, at the points that it is about.
    let before = claim(&json, 2)["measured"].clone();
    let measured = claim(&json, 1)["measured"].as_str().map(str::to_owned).expect("a text");
    fs::write(
        lab.path("papers/xcp/fig04.toml"),
        format!("{start}{}", claims(mean(&measured).expect("a mean"))),
    )
    .unwrap();
    let json = run(&lab, &["--json"]).exits(0).json();
    let (added, text) = (claim(&json, 1)["runs_added"].as_u64(), claim(&json, 1)["measured"].to_string());
    assert!(added >= Some(5) && text.contains("seeds"), "{added:?}, {text}");
    if claim(&json, 1)["verdict"] == "undecided" {
        assert_eq!(added, Some(95));
    }
    // They are that claim's alone: the others and the picture are of the sweep.
    assert_eq!((&json["figures"][0]["points"], &claim(&json, 2)["measured"]), (&10.into(), &before));
    assert!(lab.path("out/more/fig04-1.parquet").is_file() && !lab.path("out/more/fig04-2.parquet").exists());
    // The same again from what is kept.
    assert_eq!(run(&lab, &["--json"]).exits(0).json(), json);
    // A bound far away is decided by five, and nothing is left of what others took.
    fs::write(lab.path("papers/xcp/fig04.toml"), format!("{start}{}", claims(0.5))).unwrap();
    run(&lab, &[]).exits(0);
    assert!(!lab.path("out/more/fig04-1.parquet").exists());
    // A wrong path is found before anything runs.
    let wrong = claims(0.5).replace("bottleneck.delay", "bottleneck.weight");
    fs::write(lab.path("papers/xcp/fig04.toml"), format!("{start}{wrong}")).unwrap();
    let refused = run(&lab, &[]).exits(2);
    assert!(refused.stderr().contains("weight"), "{}", refused.stderr());
}

/// `papers report --check` asks of each claim that fails why, in one word that is true.
#[test]
fn a_claim_that_fails_has_a_tag_that_is_true() {
    let check = |tag: &str| {
        let text = figure().replace("tag = \"closed form\"\n", tag);
        // A tag may bring a cause of its own.
        let own = "cause = \"a link carries no more than it can (docs/design/protocols.md 0.2)\"\n";
        let lab = lab(&if tag.contains("cause") { text.replace(own, "") } else { text });
        lab.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--write"]).exits(0);
        lab.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--check"])
    };
    for (tag, said) in [
        ("", "it fails and has no tag"),
        ("tag = \"ns-2\"\n", "its tag is ns-2, and there it is not in ns-2"),
        ("tag = \"closed form\"\ncause = \"nobody can\"\n", "its cause names neither a code of docs/design"),
        ("tag = \"assumed\"\nexperiment = \"fig99\"\n", "its experiment `fig99` is neither"),
        ("tag = \"assumed\"\nexperiment = \"fig04\"\n", "its experiment `fig04` is neither"),
        ("tag = \"assumed\"\nexperiment = \"A-07: room for 50 packets\"\n", "is neither"),
    ] {
        let refused = check(tag).exits(3);
        assert!(refused.stderr().contains(said), "{tag}: {}", refused.stderr());
    }
    check("tag = \"open\"\n").exits(0);
    check("tag = \"closed form\"\n").exits(0);
    // A claim that holds has none.
    let holding = lab(&figure().replace("never = true\n", "never = true\ntag = \"open\"\n"));
    holding.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--write"]).exits(0);
    let refused =
        holding.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--check"]).exits(3);
    assert!(
        refused.stderr().contains("its verdict is \"holds\", and it has the tag"),
        "{}",
        refused.stderr()
    );
    let lab = lab(&figure().replace("tag = \"closed form\"\n", "tag = \"assumed\"\n"));
    assert!(run(&lab, &[]).exits(2).stderr().contains("without an `experiment`"));
}

/// `papers report --check` asks of each quoted claim that holds how its cause is switched off, or why it is not.
#[test]
fn a_quoted_claim_that_holds_says_what_controls_it() {
    let own = "control = { \"flows.ftp.size\" = \"10 kB\" }\n";
    let report = |text: &str| {
        let lab = lab(text);
        lab.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--write"]).exits(0);
        let pages = ["papers/xcp/README.md", "papers/README.md"]
            .map(|page| fs::read_to_string(lab.path(page)).unwrap());
        (lab.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--check"]), pages)
    };
    let counted = |pages: &[String; 2], counts: &str| {
        assert!(
            pages[1].contains(&format!("Of the quoted claims that hold or tell nothing, {counts}.")),
            "{}",
            pages[1]
        );
    };
    let (check, pages) = report(&figure());
    check.exits(0);
    counted(&pages, "1 have a control, 0 say why nothing can be switched off, and 0 are about no effect");

    let (check, _) = report(&figure().replace(own, ""));
    let refused = check.exits(3);
    let said = "fig04: the link is used: it has a source's words, and says nothing of a control";
    assert!(refused.stderr().contains(said), "{}", refused.stderr());
    // What is our own, fails, or has the figure's control, need not say any.
    let ours = figure().replace(own, "").replace("quote = \"XCP maintains good utilization\"\n", "");
    report(&ours).0.exits(0);
    report(
        &figure()
            .replace(own, "")
            .replace("at_least = 0.9", "at_least = 1.1\ncause = \"it can not\"\ntag = \"open\""),
    )
    .0
    .exits(0);
    let shared = figure().replace(own, "").replace("[figure]\n", &format!("[figure]\n{own}"));
    report(&shared).0.exits(0);

    // A number of a set-up is about no effect; a comparison is not, by what it reads or by what its source says.
    let plain = figure().replace(own, "control = false\n");
    let (check, pages) = report(&plain);
    check.exits(0);
    counted(&pages, "0 have a control, 0 say why nothing can be switched off, and 1 are about no effect");
    for compares in [
        plain.replacen("at_least = 0.9", "ratio_to = \"links.bottleneck.utilization\"\nat_least = 0.9", 1),
        plain.replace("XCP maintains good utilization", "XCP's utilization is higher than that of TCP"),
        plain.replace("XCP maintains good utilization", "Increasing the rate does nothing"),
    ] {
        assert_ne!(compares, plain);
        let refused = report(&compares).0.exits(3);
        let said = "fig04: the link is used: it compares, and its control is false";
        assert!(refused.stderr().contains(said), "{}", refused.stderr());
        let (check, pages) = report(&compares.replace("control = false", "control = \"It is | its own.\""));
        check.exits(0);
        assert!(
            pages[0].contains("\nNo control of \"the link is used\": It is \\| its own.\n"),
            "{}",
            pages[0]
        );
        counted(&pages, "0 have a control, 1 say why nothing can be switched off, and 0 are about no effect");
    }
    // Nothing is no reason.
    let lab = lab(&figure().replace(own, "control = \" \"\n"));
    let refused = run(&lab, &[]).exits(2);
    assert!(
        refused.stderr().contains("a table of settings by path, false, or a reason in words"),
        "{}",
        refused.stderr()
    );
}

#[test]
fn ranges_say_which_verdicts_turn_with_what_is_assumed() {
    let lab = lab(&figure());
    lab.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--write"]).exits(0);
    let found =
        lab.run(&["papers", "ranges", "xcp", "--papers", "papers", "--out", "out", "--write"]).exits(0);
    assert!(
        found.stdout().contains("A-07: room for 50 packets = \"60 packets\"\n    none"),
        "{}",
        found.stdout()
    );
    assert!(found.stdout().contains("mostly, nothing is lost FAILS: "), "{}", found.stdout());
    let table = fs::read_to_string(lab.path("papers/xcp/README.md")).unwrap();
    assert!(table.contains("| fig04 | A-07: room for 50 packets | \"2 packets\" | "), "{table}");
    assert!(table.contains("- [A-07](../../docs/design/protocols.md#a-07): XI: 10 ms a link"), "{table}");
    // What a figure assumes is a value of its file.
    fs::write(
        lab.path("papers/xcp/fig04.toml"),
        figure().replace("bottleneck.queue\"]", "bottleneck.queues\"]"),
    )
    .unwrap();
    let refused = lab.run(&["papers", "ranges", "xcp", "--papers", "papers", "--out", "out"]).exits(2);
    assert!(refused.stderr().contains("unknown key `queues`"), "{}", refused.stderr());
}

#[test]
fn another_law_takes_the_place_of_the_papers_own() {
    let lab = lab(&figure());
    let json = run(&lab, &["--law", "cubic", "--json"]).exits(0).json();
    assert_eq!(json["law"], "cubic");
    assert!(
        lab.path("out/fig04/points/1.log").is_file(),
        "what was run is kept beside what the paper's own law did"
    );
    // What names a recovery takes the place of the one that the flow is told.
    let told = figure().replace("start = { uniform", "recovery = \"reno\"\nstart = { uniform");
    fs::write(lab.path("papers/xcp/fig04.toml"), told).unwrap();
    assert_eq!(run(&lab, &["--law", "sack", "--json"]).exits(0).json()["law"], "sack");
    fs::write(lab.path("papers/xcp/fig04.toml"), figure()).unwrap();
    // What is assumed of the paper's own law is nothing to another one.
    let own = figure().replace("law = \"xcp\"\n\n[flows", "law = { xcp = { alpha = 0.4 } }\n\n[flows");
    assert_ne!(own, figure());
    let assumed = own.replace(
        "paths = [\"links.bottleneck.queue\"]\nvalues = [\"2 packets\", \"60 packets\"]",
        "paths = [\"links.bottleneck.law.xcp.alpha\"]\nvalues = [0.3]",
    );
    assert_ne!(own, assumed);
    fs::write(lab.path("papers/xcp/fig04.toml"), assumed).unwrap();
    assert_eq!(run(&lab, &["--law", "cubic", "--json"]).exits(0).json()["law"], "cubic");
    fs::write(lab.path("papers/xcp/fig04.toml"), figure()).unwrap();
    let refused = run(&lab, &["--law", "qubic"]).exits(2);
    assert!(
        refused.stderr().contains("there is no law `qubic`; did you mean `cubic`?"),
        "{}",
        refused.stderr()
    );
}

/// What links of the paper's law have and others have not is nothing that another law could keep or break.
#[test]
fn what_another_law_has_not_is_not_judged() {
    let text = figure().replace(
        "metric = \"links.bottleneck.drops_total\"\nnever = true",
        "metric = \"links.bottleneck.feedback_Bps max over [1 s, 2 s]\"\nnever = \"> 1e9\"",
    );
    let lab = lab(&text);
    assert_eq!(claims(&run(&lab, &["--json"]).exits(0).json()).len(), 4);
    let other = run(&lab, &["--law", "cubic"]).exits(0);
    assert!(!other.stdout().contains("mostly, nothing is lost"), "{}", other.stdout());
    assert!(
        other.stderr().contains("fig04: not judged, there is nothing to read: mostly, nothing is lost"),
        "{}",
        other.stderr()
    );
}

#[test]
fn a_paper_that_is_wrong_says_where() {
    let wrong = |from: &str, to: &str, says: &str| {
        let text = figure();
        assert!(text.contains(from), "{from}");
        let lab = lab(&text.replace(from, to));
        let refused = run(&lab, &[]).exits(2);
        assert!(refused.stderr().contains(says), "{to}: {}", refused.stderr());
        assert!(!lab.path("out/verdicts.json").exists());
    };
    wrong("\"run.seed\" = [1, 2, 3, 4, 5]", "\"run.seed\" = [1, 2]", "`decide` = \"mean\" of 2 seeds");
    wrong("decide = \"half\"", "decide = \"most\"", "unknown `claims.decide` \"most\"");
    wrong("never = true\ndecide = \"half\"", "never = true\ndecide = \"mean\"", "a mean is not held against");
    wrong("x = \"links.bottleneck.rate\"", "x = \"links.bottleneck.delay\"", "which the sweep does not vary");
    wrong("\"links.bottleneck.law\",", "\"links.bottleneck.rate\",", "which is no law");
    wrong("[figure]", "[figure]\nshape = \"round\"", "unknown key `shape`");
    wrong("of = \"K02 fig. 4\"\n", "", "needs the key `of`");
    wrong(
        "metric = \"links.bottleneck.utilization\", y",
        "metric = \"links.bottleneck.util\", y",
        "links have no `util`",
    );
    let none = lab(SCENARIO);
    assert!(run(&none, &[]).exits(2).stderr().contains("has no [figure]"));
    let lab = lab(&figure()
        .replace("[1, 2, 3, 4, 5]", "[1, 2, 3, 4]")
        .replace("decide = \"mean\"", "")
        .replace("decide = \"half\"", ""));
    let few = run(&lab, &["--threads", "1"]).exits(2);
    assert!(few.stderr().contains("the figure draws at random and has 4 seeds;"), "{}", few.stderr());
    assert_eq!(fs::read_dir(lab.path("out/fig04")).unwrap().count(), 1, "the first of 8 runs is enough");
    fs::write(lab.path("papers/xcp/paper.toml"), format!("{ABOUT}year = 2002\n")).unwrap();
    let refused = run(&lab, &[]).exits(2);
    assert!(refused.stderr().contains("paper.toml:4:1: unknown field `year`"), "{}", refused.stderr());
}

#[test]
fn what_does_not_exist_is_named_with_what_does() {
    let lab = lab(&figure());
    let paper = lab.run(&["papers", "run", "xpc", "--papers", "papers"]).exits(2);
    assert!(paper.stderr().contains("there is no paper `xpc`; did you mean `xcp`?"), "{}", paper.stderr());
    let figure = run(&lab, &["fig4"]).exits(2);
    assert!(
        figure.stderr().contains("xcp has no figure `fig4`; did you mean `fig04`?"),
        "{}",
        figure.stderr()
    );
}

/// The page in a browser: nothing is asked for, nothing complained of, no wider than a phone, dark where that is wanted.
#[test]
fn the_page_of_a_paper_works_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        eprintln!("SKIP the_page_of_a_paper_works_in_a_browser: no chromium (make setup)");
        return;
    };
    let hostile =
        figure().replace("that = \"the link is used\"", "that = \"</script><img src=x onerror=alert(1)>\"");
    let lab = lab(&hostile);
    lab.run(&["papers", "report", "xcp", "--papers", "papers", "--out", "out", "--quiet"]).exits(0);
    let page = lab.path("out/report.html");
    for (width, name) in [(1280, "paper-desktop"), (480, "paper-phone")] {
        browser.resize(width, 900, width < 500);
        browser.open(&page);
        assert_eq!(
            browser.run("document.documentElement.scrollWidth"),
            width,
            "the page is wider than its window"
        );
        browser.screenshot(name);
    }
    let pictures = browser.run("document.images.length");
    assert_eq!(pictures, 1, "the figure; a claim became a picture");
    let rows = browser.run("csv(tableRows(document.querySelector('figure[data-name] table')))");
    let rows = rows.as_str().expect("text");
    assert!(rows.starts_with("line,capacity (Mbit/s),quantity,mean,95 % from,to\r\nXCP,"), "{rows}");
    assert_eq!(rows.lines().count(), 3, "{rows}");
    let png = browser
        .run("png(pictureText(document.querySelector('figure[data-name] img'))).then(blob => blob.size)");
    assert!(png.as_u64() > Some(5000), "{png}");
    let light = browser.run("getComputedStyle(document.body).backgroundColor");
    browser.prefer_dark();
    browser.painted();
    assert_ne!(browser.run("getComputedStyle(document.body).backgroundColor"), light);
    browser.screenshot("paper-dark");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let outside: Vec<String> = browser
        .requests()
        .into_iter()
        .filter(|url| !url.starts_with("data:") && !url.starts_with("file:"))
        .collect();
    assert!(outside.is_empty(), "the page asked for {outside:?}");
}
