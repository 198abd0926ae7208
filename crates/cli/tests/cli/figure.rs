//! `congestlab export figure`: pictures for a publication, held by what is in their files.

use std::collections::BTreeSet;
use std::fs;

use crate::browser::Browser;
use crate::{Lab, SCENARIO};

/// A lab with a run of the scenario in `runs`, and its folder.
fn with_run(scenario: &str, more: &[&str]) -> (Lab, String) {
    let lab = Lab::new(scenario);
    let mut arguments = vec!["run", "scenario.toml", "--out", "runs", "--quiet"];
    arguments.extend(more);
    lab.run(&arguments).exits(0);
    let folder = fs::read_dir(lab.path("runs")).expect("a folder").flatten().next().expect("a run");
    let folder = format!("runs/{}", folder.file_name().to_string_lossy());
    (lab, folder)
}

fn svg(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.path(name)).expect("it was drawn")
}

/// The texts of an SVG, in order.
fn texts(svg: &str) -> Vec<&str> {
    let lines = svg.lines().filter(|line| line.starts_with("<text"));
    lines.filter_map(|line| line.strip_suffix("</text>")?.split_once('>')).map(|(_, text)| text).collect()
}

/// The value of an attribute in a line.
fn attribute<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name} in {line}"));
    rest.split('"').next().expect("it ends")
}

/// Lines that show data of a kind.
fn data<'a>(svg: &'a str, kind: &str) -> Vec<&'a str> {
    svg.lines().filter(|line| line.contains(&format!(" data-kind=\"{kind}\""))).collect()
}

#[test]
fn a_run_is_drawn_over_time_with_units_and_without_a_title() {
    let (lab, run) = with_run(SCENARIO, &[]);
    let out = lab.run(&["export", "figure", &run, "-o", "a.svg"]).exits(0).stdout();
    assert_eq!(out, "a.svg\n");
    let svg = svg(&lab, "a.svg");
    let texts = texts(&svg);
    for label in ["received throughput (Mbit/s)", "utilisation (share)", "time (s)"] {
        assert!(texts.contains(&label), "{label} is missing in {texts:?}");
    }
    assert!(texts.iter().any(|text| text.starts_with("queue")), "{texts:?}");
    assert!(!svg.contains("<title") && !texts.iter().any(|text| text.contains("scenario")), "{texts:?}");
    assert!(attribute(&svg, "width") == "3.3in" && svg.contains("@font-face"));
    // The axis of a share ends at 1, and has nothing above.
    let numbers: Vec<f64> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    assert!(numbers.contains(&1.0));
    assert!(data(&svg, "marker").is_empty(), "what is recorded all the time has no markers");
    // Two flows of one law have its colour.
    let colours: Vec<&str> = data(&svg, "line")
        .into_iter()
        .filter(|line| attribute(line, "data-name").contains("ftp"))
        .map(|line| attribute(line, "stroke"))
        .collect();
    assert!(colours.len() >= 2, "{svg}");
}

#[test]
fn png_and_pdf_have_the_size_that_was_asked_for_and_the_same_bytes_twice() {
    let (lab, run) = with_run(SCENARIO, &[]);
    let draw = |name: &str| {
        let arguments = [
            "export",
            "figure",
            &run,
            "-o",
            name,
            "--width",
            "7in",
            "--dpi",
            "200",
            "--format",
            "svg,png,pdf",
        ];
        lab.run(&arguments).exits(0);
    };
    draw("a.svg");
    draw("b.svg");
    for kind in ["svg", "png", "pdf"] {
        let read = |name: &str| fs::read(lab.path(&format!("{name}.{kind}"))).expect("it was drawn");
        assert_eq!(read("a"), read("b"), "{kind}");
    }
    let png = fs::read(lab.path("a.png")).expect("it was drawn");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(number(16), 1400, "7 in x 200 dpi");
    let at = png.windows(4).position(|bytes| bytes == b"pHYs").expect("a chunk of the density");
    // 200 / 0.0254 pixels a metre.
    assert_eq!((number(at + 4), number(at + 8), png[at + 12]), (7874, 7874, 1));
    let pdf = fs::read(lab.path("a.pdf")).expect("it was drawn");
    assert!(pdf.starts_with(b"%PDF-1."));
    let text = String::from_utf8_lossy(&pdf);
    let (_, media) = text.split_once("/MediaBox [").expect("a page");
    let corners: Vec<f64> =
        media.split(']').next().expect("it ends").split_whitespace().filter_map(|n| n.parse().ok()).collect();
    assert_eq!(&corners[..3], [0.0, 0.0, 504.0], "7 in of 72 points");
    assert!((f64::from(number(20)) / 200.0 * 72.0 - corners[3]).abs() < 0.5, "as high as the PNG");
    assert!(text.contains("/FontFile2") && text.contains("/ToUnicode"), "the font is not inside");
}

/// Flows with sizes, so that they end.
const SIZES: &str = r#"
[run]
duration = "4 s"
[links.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[flows.short]
law = "cubic"
count = 4
size = "50 kB"
start = { every = "100 ms" }
path = ["bottleneck"]
[flows.long]
law = "newreno"
path = ["bottleneck"]
"#;

#[test]
fn a_distribution_is_of_flows_and_its_share_ends_at_one() {
    let (lab, run) = with_run(SIZES, &[]);
    lab.run(&["export", "figure", &run, "--kind", "cdf", "-o", "a.svg", "--csv", "--mplstyle"]).exits(0);
    let drawn = svg(&lab, "a.svg");
    let shown = texts(&drawn);
    assert!(shown.iter().any(|text| text.starts_with("flow completion time (")), "{shown:?}");
    assert!(shown.contains(&"share of flows (0 to 1)"), "{shown:?}");
    let csv = fs::read_to_string(lab.path("a.csv")).expect("beside it");
    let ys: Vec<f64> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(5)?.parse().ok()).collect();
    assert_eq!((ys.first(), ys.last(), ys.len()), (Some(&0.0), Some(&1.0), 8), "{csv}");
    let style = fs::read_to_string(lab.path("congestlab.mplstyle")).expect("beside it");
    assert!(style.contains("axes.prop_cycle") && style.contains("# cubic: color #be4729"), "{style}");
}

#[test]
fn runs_over_their_labels_have_markers_at_what_was_measured() {
    let (lab, one) = with_run(SCENARIO, &[]);
    lab.run(&["run", "scenario.toml", "--out", "more", "--quiet", "--set", "flows.ftp.law=\"cubic\""])
        .exits(0);
    let folder = fs::read_dir(lab.path("more")).expect("a folder").flatten().next().expect("a run");
    let other = format!("more/{}", folder.file_name().to_string_lossy());
    let arguments = [
        "export",
        "figure",
        &one,
        &other,
        "--kind",
        "line",
        "--y",
        "links.bottleneck.utilization",
        "-o",
        "a.svg",
    ];
    lab.run(&arguments).exits(0);
    let svg = svg(&lab, "a.svg");
    let markers = data(&svg, "marker");
    let points: usize =
        markers.iter().map(|line| attribute(line, "data-points").parse::<usize>().expect("a count")).sum();
    assert_eq!(points, 2, "one for each run: {svg}");
    assert!(texts(&svg).contains(&"utilisation (share)"));
}

#[test]
fn a_legend_names_what_runs_differ_in() {
    let (lab, _) = with_run(SCENARIO, &[]);
    for set in [&[][..], &["--set", "links.bottleneck.queue=20 packets"]] {
        let run = ["run", "scenario.toml", "--out", "more", "--quiet", "--set", "run.duration=4 s"];
        lab.run(&[&run[..], set].concat()).exits(0);
    }
    let folders = fs::read_dir(lab.path("more")).expect("a folder").flatten();
    let runs: Vec<String> =
        folders.map(|run| format!("more/{}", run.file_name().to_string_lossy())).collect();
    let y = ["--kind", "time", "--y", "queue_packets", "-o", "a.svg"];
    let arguments: Vec<&str> = [&["export", "figure", &runs[0], &runs[1]][..], &y].concat();
    lab.run(&arguments).exits(0);
    let svg = svg(&lab, "a.svg");
    for name in ["as written, bottleneck, xcp", "queue = 20 packets, bottleneck, xcp"] {
        assert!(texts(&svg).contains(&name), "{name}: {:?}", texts(&svg));
    }
}

#[test]
fn wrong_words_list_the_right_ones_and_write_nothing() {
    let (lab, run) = with_run(SCENARIO, &[]);
    let before = lab.files();
    for (arguments, says) in [
        (vec!["export", "figure", &run, "--kind", "pie"], "time, line, cdf, fct, fairness, delay"),
        (vec!["export", "figure", &run, "--format", "gif"], "svg, png, pdf"),
        (vec!["export", "figure", &run, "-o", "a.gif"], ".svg, .png or .pdf"),
        (vec!["export", "figure", &run, "--width", "30in"], "3.3in, 7in"),
        (vec!["export", "figure", &run, "--dpi", "5"], "from 30 to 1200"),
        (vec!["export", "figure", &run, "--y", "recieved_bps"], "received_bps"),
        (vec!["export", "figure", &run, "--kind", "cdf", "--y", "goodput"], "goodput_bps"),
        (vec!["export", "figure", &run, "--kind", "line", "--by", "laws"], "law, element, label"),
        (vec!["export", "figure", &run, "--by", "nosuch"], "law, element, label"),
        (vec!["export", "figure", &run, "--kind", "line", "--x", "flows.ftp.count"], "run"),
        (vec!["export", "figure", &run, "--kind", "line", "--y", "links.botleneck.drops"], "bottleneck"),
        (vec!["export", "figure", "nowhere"], "no folder nowhere"),
        (vec!["export", "figure", "runs"], "runs"),
        (vec!["export", "figure"], "SWEEP|RUN"),
    ] {
        let finished = lab.run(&arguments).exits(2);
        assert!(finished.stderr().contains(says), "{arguments:?}: {}", finished.stderr());
        assert_eq!(finished.stdout(), "");
    }
    assert_eq!(lab.files(), before);
}

#[test]
fn a_scenario_says_in_figure_how_it_is_drawn() {
    let figure = "\n[figure]\nkind = \"time\"\ny = \"cwnd_packets\"\nwidth = \"7in\"\n";
    let (lab, run) = with_run(&format!("{SCENARIO}{figure}"), &[]);
    lab.run(&["check", "scenario.toml"]).exits(0);
    lab.run(&["export", "figure", &run, "-o", "a.svg"]).exits(0);
    let drawn = svg(&lab, "a.svg");
    assert_eq!(attribute(&drawn, "width"), "7in");
    assert!(texts(&drawn).contains(&"cwnd (packets)") && !drawn.contains("utilisation"), "{drawn}");
    lab.run(&["export", "figure", &run, "-o", "b.svg", "--width", "3.3in"]).exits(0);
    assert_eq!(attribute(&svg(&lab, "b.svg"), "width"), "3.3in", "options win");
}

/// The committed pictures of the documentation, in a browser: every text has its font, nothing leaves the picture, and
/// paper and ink follow the reader's mode. A picture that differs from what its command draws fails in `documents`.
#[test]
fn pictures_of_the_documentation_are_whole_in_a_browser_at_two_widths_and_in_both_modes() {
    let Some(mut browser) = Browser::start() else {
        println!("SKIP plot/pictures_of_the_documentation: no chromium");
        return;
    };
    let docs = crate::repository("docs").canonicalize().expect("the repository has documents");
    let mut pictures: Vec<_> = [docs.clone(), docs.join("recipes"), docs.join("laws")]
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|kind| kind == "svg"))
        .collect();
    pictures.sort();
    assert!(pictures.len() >= 3, "{pictures:?}");
    for is_dark in [false, true] {
        if is_dark {
            browser.prefer_dark();
        }
        for width in [400, 1200] {
            browser.resize(width, 900, false);
            for picture in &pictures {
                browser.open(picture);
                let seen = browser.run(
                    "document.fonts.ready.then(async () => {
                       await document.fonts.load('13px congestlab');
                       const root = document.documentElement, box = root.viewBox.baseVal;
                       const out = [...root.querySelectorAll('text')].filter(text => {
                         const place = text.getBBox(), turned = text.hasAttribute('transform');
                         return !turned && (place.x < -1 || place.x + place.width > box.width + 1
                           || place.y + place.height > box.height + 1);
                       }).map(text => text.textContent);
                       const text = root.querySelector('text');
                       return { out, font: [...document.fonts].some(font => font.status === 'loaded'),
                         paper: getComputedStyle(root.querySelector('path')).fill,
                         ink: getComputedStyle(text).fill };
                     })",
                );
                let name = picture.display();
                assert_eq!(seen["out"], serde_json::json!([]), "{name} at {width}: texts leave the picture");
                assert_eq!(seen["font"], true, "{name}: the font inside is not taken");
                let (paper, ink) = if is_dark {
                    ("rgb(21, 24, 28)", "rgb(228, 230, 232)")
                } else {
                    ("rgb(255, 255, 255)", "rgb(34, 34, 34)")
                };
                assert_eq!(
                    (seen["paper"].as_str(), seen["ink"].as_str()),
                    (Some(paper), Some(ink)),
                    "{name}, dark: {is_dark}"
                );
            }
        }
    }
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

#[test]
fn a_sweep_is_drawn_with_markers_at_its_points_and_named_intervals() {
    let lab = Lab::new(SCENARIO);
    let grid = ["--grid", "links.bottleneck.rate=10 Mbit/s,20 Mbit/s", "--grid", "flows.ftp.law=xcp,cubic"];
    lab.run(&[&["sweep", "scenario.toml", "--seeds", "3", "--out", "kept"][..], &grid].concat()).exits(0);
    lab.run(&["export", "figure", "kept", "-o", "a.svg", "--csv"]).exits(0);
    let picture = svg(&lab, "a.svg");
    let words = texts(&picture).join("\n");
    assert!(words.contains("mean and 95 % confidence interval, n = 3 seeds"), "{words}");
    for label in ["rate of bottleneck (Mbit/s)", "goodput (Mbit/s)", "xcp", "cubic"] {
        assert!(words.contains(label), "{label} is missing in {words}");
    }
    // Two laws at two rates each, and nothing between.
    let csv = fs::read_to_string(lab.path("a.csv")).expect("it was asked for");
    let drawn: Vec<&str> = csv.lines().skip(1).filter(|line| line.contains(",xcp,")).collect();
    assert_eq!(drawn.len(), 2, "{csv}");
    assert!(drawn.iter().all(|line| line.ends_with(",3")), "{csv}");
    for kind in ["cdf", "fairness", "delay"] {
        lab.run(&["export", "figure", "kept", "--kind", kind, "-o", "b.svg"]).exits(0);
        assert!(!texts(&svg(&lab, "b.svg")).is_empty(), "{kind}");
    }
    for (arguments, says) in [
        (vec!["export", "figure", "kept", "--y", "goodput"], "goodput_bps"),
        (vec!["export", "figure", "kept", "--x", "links.bottleneck.delay"], "links.bottleneck.rate"),
        (vec!["export", "figure", "kept", "kept"], "one is drawn at a time"),
    ] {
        let stderr = lab.run(&arguments).exits(2).stderr();
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
}

/// A group whose law is not the one that is swept keeps its own colour.
#[test]
fn a_line_has_the_law_of_its_own_flows() {
    let noise = "\n[flows.noise]\nlaw = { cbr = { rate = \"1 Mbit/s\" } }\npath = [\"bottleneck\"]\n";
    let lab = Lab::new(&format!("{SCENARIO}{noise}"));
    let grid = ["--grid", "flows.ftp.law=xcp,cubic", "--grid", "links.bottleneck.delay=5 ms,9 ms"];
    lab.run(&[&["sweep", "scenario.toml", "--out", "kept"][..], &grid].concat()).exits(0);
    lab.run(&["export", "figure", "kept", "--x", "links.bottleneck.delay", "-o", "a.svg", "--csv"]).exits(0);
    let csv = fs::read_to_string(lab.path("a.csv")).expect("it was asked for");
    let law_of = |start: &str| -> Vec<String> {
        let lines = csv.lines().filter(|line| line.contains(start));
        lines.filter_map(|line| Some(line.split_once(start)?.1.split(',').next()?.to_owned())).collect()
    };
    assert_eq!(law_of("\"ftp, cubic\","), ["cubic", "cubic"], "{csv}");
    assert_eq!(law_of("\"noise, cubic\","), ["cbr", "cbr"], "{csv}");
}

/// The law of another link is swept: a link has its own, and one without any has none.
#[test]
fn a_line_has_the_law_of_its_own_link() {
    let more = "\n[links.access]\nrate = \"50 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"50 packets\"\nlaw = \"pxcp\"\n\
                \n[links.exit]\nrate = \"50 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"50 packets\"\n";
    let path = SCENARIO.replace("path = [\"bottleneck\"]", "path = [\"access\", \"bottleneck\", \"exit\"]");
    let lab = Lab::new(&format!("{path}{more}"));
    let grid = ["--grid", "links.bottleneck.law=none,xcp", "--grid", "links.bottleneck.delay=5 ms,9 ms"];
    lab.run(&[&["sweep", "scenario.toml", "--out", "kept"][..], &grid].concat()).exits(0);
    let arguments = ["--x", "links.bottleneck.delay", "--y", "utilization", "-o", "a.svg", "--csv"];
    lab.run(&[&["export", "figure", "kept"][..], &arguments].concat()).exits(0);
    let csv = fs::read_to_string(lab.path("a.csv")).expect("it was asked for");
    for (line, law) in [
        ("access, bottleneck: none", "pxcp"),
        ("access, xcp", "pxcp"),
        ("bottleneck, bottleneck: none", "none"),
        ("bottleneck, xcp", "xcp"),
        ("exit, bottleneck: none", "none"),
        ("exit, xcp", "none"),
    ] {
        assert!(csv.contains(&format!("\"{line}\",{law},")), "{line} is not {law}:\n{csv}");
    }
}

/// The numbers that a picture of `kept` has of a quantity, by place and line.
fn drawn(lab: &Lab, y: &str) -> Vec<f64> {
    lab.run(&[
        "export",
        "figure",
        "kept",
        "--y",
        y,
        "--x",
        "links.bottleneck.rate",
        "-o",
        "a.svg",
        "--csv",
        "--quiet",
    ])
    .exits(0);
    let csv = fs::read_to_string(lab.path("a.csv")).expect("it was asked for");
    let y = |line: &str| line.rsplit(',').nth(3).expect("nine columns").parse().expect("a number");
    csv.lines().skip(1).map(y).collect()
}

/// What is made of many flows, or is of one of them, is that, and not the mean of all.
#[test]
fn a_metric_is_drawn_as_it_is_read() {
    let lab = Lab::new(&SCENARIO.replace("count = 2", "count = 2\nstart = { uniform = \"2 s\" }"));
    let grid = ["--grid", "links.bottleneck.rate=10 Mbit/s,20 Mbit/s"];
    lab.run(&[&["sweep", "scenario.toml", "--out", "kept", "--quiet"][..], &grid].concat()).exits(0);
    let table = fs::read_to_string(lab.path("kept/results.csv")).expect("it was written");
    let names: Vec<&str> = table.lines().next().expect("a heading").split(',').collect();
    let place = |name: &str| names.iter().position(|other| *other == name).expect("a column");
    let of = |kind: &str, column: &str| -> Vec<Vec<f64>> {
        (0..2)
            .map(|point| {
                let rows = table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
                let own = rows.filter(|row| row[0] == point.to_string() && row[place("kind")] == kind);
                own.map(|row| row[place(column)].parse().expect("a number")).collect()
            })
            .collect()
    };
    let flows = of("flow", "goodput_bps");
    assert!(flows.iter().all(|flows| flows.len() == 2 && flows[0] != flows[1]), "{flows:?}");
    let near = |y: &str, wanted: Vec<f64>| {
        let found = drawn(&lab, y);
        let is_near = |(found, wanted): (&f64, &f64)| (found * 1e6 - wanted).abs() <= wanted.abs() * 1e-9;
        assert!(found.len() == 2 && found.iter().zip(&wanted).all(is_near), "{y}: {found:?}, not {wanted:?}");
    };
    let each = |of: &dyn Fn(&Vec<f64>) -> f64| flows.iter().map(of).collect::<Vec<_>>();
    near("flows.ftp.goodput_bps", each(&|flows| (flows[0] + flows[1]) / 2.0));
    near("flows.ftp[0].goodput_bps", each(&|flows| flows[0]));
    near("flows.ftp[1].goodput_bps", each(&|flows| flows[1]));
    near("min(flows.ftp.goodput_bps)", each(&|flows| flows[0].min(flows[1])));
    near("max(flows.*.goodput_bps)", each(&|flows| flows[0].max(flows[1])));
    near("flows.ftp[0].goodput_bps - flows.ftp[1].goodput_bps", each(&|flows| flows[0] - flows[1]));
    let jain: Vec<f64> = of("group", "jain").concat();
    assert_eq!(drawn(&lab, "jain(flows.*.goodput_bps)"), jain);
    assert_eq!(drawn(&lab, "jain.ftp"), jain);
    assert_eq!(
        drawn(&lab, "links.bottleneck.utilization"),
        of("link", "utilization").iter().map(|links| links[0]).collect::<Vec<_>>()
    );
    for (y, label) in [
        ("p99(flows.ftp.goodput_bps)", "p99 of goodput of ftp (Mbit/s)"),
        ("sum(flows.*.goodput_bps)", "sum of goodput of all flows (Mbit/s)"),
        ("links.bottleneck.drops_by_reason.queue-full", "(packets)"),
    ] {
        drawn(&lab, y);
        let svg = svg(&lab, "a.svg");
        assert!(texts(&svg).iter().any(|text| text.contains(label)), "{label}: {:?}", texts(&svg));
    }
    for (y, says) in [
        ("jain(flows.web.goodput_bps)", "no `web` in flows"),
        ("flows.ftp[2].goodput_bps", "[0] to [1]"),
        ("p101(flows.ftp.goodput_bps)", "is no function"),
        ("links.bottleneck.queue_packets at 1 s", "no table has series"),
        ("goodput", "goodput_bps"),
        ("jain(flows.ftp)", "names no value of flows"),
    ] {
        let stderr = lab.run(&["export", "figure", "kept", "--y", y]).exits(2).stderr();
        assert!(stderr.contains(says), "{y}: {stderr}");
    }
    // In [figure] it is asked while the sweep runs, series too.
    for y in ["links.bottleneck.queue_packets at 1 s", "p99(flows.ftp.goodput_bps)"] {
        fs::write(lab.path("own.toml"), format!("{SCENARIO}\n[figure]\ny = \"{y}\"\n")).expect("writable");
        lab.run(&[&["sweep", "own.toml", "--out", "own", "--quiet"][..], &grid].concat()).exits(0);
        lab.run(&["export", "figure", "own", "-o", "own.svg"]).exits(0);
    }
    fs::write(lab.path("own.toml"), format!("{SCENARIO}\n[figure]\ny = \"links.nope.utilization\"\n"))
        .expect("writable");
    assert!(lab.run(&["check", "own.toml"]).exits(2).stderr().contains("no `nope` in links"));
}

/// A run counts once, however often and in whichever unit it is asked for; runs that differ in more than the seed are no
/// repetitions.
#[test]
fn an_interval_is_of_runs_that_differ_in_their_seed() {
    let lab = Lab::new(SCENARIO);
    let grid =
        ["--grid", "run.seed=1,1,2,2", "--grid", "links.bottleneck.rate=5 Mbit/s,5000 kbit/s,10 Mbit/s"];
    lab.run(&[&["sweep", "scenario.toml", "--out", "kept", "--quiet"][..], &grid].concat()).exits(0);
    let csv = |arguments: &[&str]| {
        lab.run(&[&["export", "figure", "kept", "-o", "a.svg", "--csv", "--quiet"], arguments].concat())
            .exits(0);
        fs::read_to_string(lab.path("a.csv")).expect("it was asked for")
    };
    let text = csv(&["--y", "goodput_bps"]);
    assert!(text.lines().skip(1).all(|line| line.ends_with(",2")) && text.lines().count() == 3, "{text}");
    assert!(texts(&svg(&lab, "a.svg")).iter().any(|text| text.contains("n = 2 seeds")), "{text}");
    let report = lab.run(&["report", "kept"]).exits(0).stdout();
    assert_eq!(report, "kept/report.html\n");

    let grid = ["--grid", "flows.ftp.law=xcp,cubic", "--grid", "links.bottleneck.rate=5 Mbit/s,10 Mbit/s"];
    lab.run(&[&["sweep", "scenario.toml", "--seeds", "2", "--out", "laws", "--quiet"][..], &grid].concat())
        .exits(0);
    lab.run(&[
        "export",
        "figure",
        "laws",
        "--by",
        "element",
        "--y",
        "links.bottleneck.utilization",
        "-o",
        "a.svg",
    ])
    .exits(0);
    let picture = svg(&lab, "a.svg");
    let words = texts(&picture).join("\n");
    assert!(
        words.contains("n = 4 runs that differ in flows.ftp.law") && !words.contains("confidence"),
        "{words}"
    );
    lab.run(&[
        "export",
        "figure",
        "laws",
        "--by",
        "law",
        "--y",
        "links.bottleneck.utilization",
        "-o",
        "a.svg",
    ])
    .exits(0);
    assert!(texts(&svg(&lab, "a.svg")).join("\n").contains("n = 2 seeds"));
}

/// A figure of one's own says the same of its means, and a setting that goes along with the axis makes no lines.
#[test]
fn lines_of_ones_own_and_zipped_settings_say_what_differs() {
    let figure = "[figure]\nx = \"links.bottleneck.rate\"\n[[figure.lines]]\nname = \"all\"\n\
                  metric = \"links.bottleneck.drops\"\ny = \"drops (packets)\"\n";
    let lab = Lab::new(&format!(
        "{SCENARIO}\n[sweep.grid]\n\"links.bottleneck.rate\" = [\"5 Mbit/s\", \"10 Mbit/s\"]\n\
         \"flows.ftp.law\" = [\"xcp\", \"cubic\"]\n{figure}"
    ));
    lab.run(&["sweep", "scenario.toml", "--out", "kept", "--quiet"]).exits(0);
    lab.run(&["export", "figure", "kept", "-o", "a.svg", "--csv", "--quiet"]).exits(0);
    let words = texts(&svg(&lab, "a.svg")).join("\n");
    assert!(words.contains("n = 2 runs that differ in flows.ftp.law"), "{words}");
    let text = fs::read_to_string(lab.path("a.csv")).expect("it was asked for");
    assert!(text.lines().skip(1).all(|line| line.ends_with(",,,2")), "no interval: {text}");

    let zip = "[sweep.zip]\n\"links.bottleneck.rate\" = [\"5 Mbit/s\", \"10 Mbit/s\"]\n\
               \"links.bottleneck.delay\" = [\"10 ms\", \"20 ms\"]\n";
    fs::write(lab.path("zip.toml"), format!("{SCENARIO}\n{zip}")).expect("writable");
    lab.run(&["sweep", "zip.toml", "--out", "zip", "--quiet"]).exits(0);
    lab.run(&[
        "export",
        "figure",
        "zip",
        "--y",
        "links.bottleneck.utilization",
        "-o",
        "z.svg",
        "--csv",
        "--quiet",
    ])
    .exits(0);
    let text = fs::read_to_string(lab.path("z.csv")).expect("it was asked for");
    let lines: BTreeSet<&str> = text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!((text.lines().count(), lines.len()), (3, 1), "{text}");
}
