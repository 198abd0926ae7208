//! `report.html` and the pictures of `congestlab report`: files, refusals, and the page in a browser.

use std::fs;
use std::path::{Path, PathBuf};

use congestlab_scenario::Scenario;
use congestlab_scenario::recording::{Of, Recording, charts};
use congestlab_scenario::report::{Run, html};
use congestlab_scenario::sim::outcome::Element;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::{Lab, SCENARIO};

/// XCP beside CUBIC through two routers, with drops and timeouts.
const MIXED: &str = r#"
# Two laws on one queue
[run]
duration = "20 s"
[measure]
every = "50 ms"
[links.core]
at = "R1"
rate = "10 Mbit/s"
delay = "20 ms"
queue = "30 packets"
law = "xcp"
[links.edge]
at = "R2"
rate = "8 Mbit/s"
delay = "5 ms"
queue = "30 packets"
error = { packet_error_rate = 0.04 }
[flows.ftp]
law = "xcp"
count = 2
path = ["core"]
[flows.cubic]
law = "cubic"
count = 2
path = ["core", "edge"]
"#;

/// The folder of the only run in `runs/`.
fn only_run(lab: &Lab) -> PathBuf {
    let entries: Vec<_> = fs::read_dir(lab.path("runs")).expect("a folder").flatten().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].path()
}

fn lab_with_run(scenario: &str) -> (Lab, PathBuf) {
    let lab = Lab::new(scenario);
    lab.run(&["run", "scenario.toml", "--out", "runs"]).exits(0);
    let run = only_run(&lab);
    (lab, run)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_run_leaves_a_report_that_can_be_made_again_from_its_data() {
    let (lab, run) = lab_with_run(MIXED);
    assert_eq!(text(&run.join("scenario.original.toml")), MIXED);
    let page = text(&run.join("report.html"));
    let summary: Value = serde_json::from_str(&text(&run.join("summary.json"))).expect("JSON");
    let fingerprint = summary["fingerprint"].as_str().expect("a text");
    for part in [fingerprint, "complete", "# Two laws on one queue", "core.reverse", "cubic[1]", "<svg"] {
        assert!(page.contains(part), "{part} is missing");
    }
    for outside in ["src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}: the page asks for something");
    }

    let run_name = run.display().to_string();
    let again = lab.path("again.html");
    let stdout = lab.run(&["report", &run_name, "--out", "again.html"]).exits(0).stdout();
    assert_eq!(stdout, "again.html\n");
    assert!(text(&again) == page, "the report of the folder is not that of the run");
    fs::remove_file(run.join("report.html")).expect("it was there");
    lab.run(&["report", &run_name]).exits(0);
    assert!(text(&run.join("report.html")) == page);
}

#[test]
fn every_chart_is_a_picture_for_a_paper_too() {
    // Flows that do not pace make the link take back what it gave.
    let (lab, run) = lab_with_run(&format!("{MIXED}\n[laws.xcp]\npacing = false\n"));
    let arguments = ["report", &run.display().to_string(), "--figures", "figures", "--json"];
    let json = lab.run(&arguments).exits(0).json();
    let files = json["figures"].as_array().expect("a list");
    assert!(files.len() >= 2 * 10, "{json}");
    for file in files {
        let path = lab.path(file.as_str().expect("a name"));
        let bytes = fs::read(&path).expect("it was written");
        let is_right = match path.extension().and_then(|kind| kind.to_str()) {
            Some("png") => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
            Some("svg") => bytes.starts_with(b"<svg ") && bytes.ends_with(b"</svg>\n"),
            _ => false,
        };
        assert!(is_right, "{}", path.display());
    }
    let queue = text(&lab.path("figures/links-queue_packets.svg"));
    for part in ["queue (packets)", "time (s)", ">core</text>", ">drop</text>", "stroke-dasharray"] {
        assert!(queue.contains(part), "{part} is missing");
    }
    // Feedback is negative, too: the axis begins below zero.
    assert!(text(&lab.path("figures/links-feedback_Bps.svg")).contains(">-"));
}

#[test]
fn what_is_no_complete_run_of_ours_is_refused() {
    let (lab, run) = lab_with_run(SCENARIO);
    let report = |folder: &Path| {
        let finished = lab.run(&["report", &folder.display().to_string(), "--out", "x.html"]).exits(2);
        assert!(!lab.path("x.html").exists(), "a report was written");
        finished.stderr()
    };
    assert!(report(&lab.path("nowhere")).contains("nowhere"));
    fs::create_dir(lab.path("other")).expect("writable");
    assert!(report(&lab.path("other")).contains("not the folder of a run"));

    let summary = text(&run.join("summary.json"));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&summary).expect("JSON");
        change(&mut value);
        fs::write(run.join("summary.json"), value.to_string()).expect("writable");
        report(&run)
    };
    assert!(with(&|summary| summary["complete"] = json!(false)).contains("incomplete"));
    assert!(with(&|summary| summary["schema"] = json!(99)).contains("99"));
    fs::write(run.join("summary.json"), &summary[..summary.len() / 2]).expect("writable");
    assert!(report(&run).contains("damaged"));
    fs::write(run.join("summary.json"), &summary).expect("writable");
    fs::remove_file(run.join("flows.parquet")).expect("it was there");
    assert!(report(&run).contains("flows.parquet"));
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let (lab, run) = lab_with_run(SCENARIO);
    let before = lab.files();
    let finished = lab.run(&["report", &run.display().to_string(), "--out", "/dev/full"]).exits(1);
    assert!(finished.stderr().contains("/dev/full"), "{}", finished.stderr());
    assert_eq!(lab.files(), before);
    let figures = ["report", &run.display().to_string(), "--figures", "scenario.toml"];
    assert!(lab.run(&figures).exits(2).stderr().contains("scenario.toml is no folder"));
}

#[test]
fn names_are_text_and_nothing_else() {
    let scenario = SCENARIO.replace("[links.bottleneck]", "[links.\"<script>alert(1)</script>\"]");
    let scenario = scenario.replace("[\"bottleneck\"]", "[\"<script>alert(1)</script>\"]")
        + "# </script><script>alert(2)</script> &amp; \"'\n";
    let (_lab, run) = lab_with_run(&scenario);
    let page = text(&run.join("report.html"));
    assert!(!page.contains("<script>alert"), "a name became a program");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("# &lt;/script&gt;&lt;script&gt;alert(2)&lt;/script&gt; &amp;amp; &quot;&#39;"));
}

/// Coloured pixels in each canvas: lines, not only axes.
const INK: &str = "[...document.querySelectorAll('figure.chart canvas')].map(canvas => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
        const [r, g, b, a] = data.subarray(i, i + 4);
        if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) count += 1;
    }
    return count;
})";

const ZOOMS: &str = "report.charts.map(chart => [chart.plot.scales.x.min, chart.plot.scales.x.max])";
const CURSORS: &str = "report.charts.map(chart => chart.plot.cursor.idx)";

/// All of an array are equal; returns the first.
#[track_caller]
fn one(values: &Value) -> Value {
    let values = values.as_array().expect("an array");
    assert!(values.len() > 5 && values.iter().all(|value| value == &values[0]), "{values:?}");
    values[0].clone()
}

#[track_caller]
fn check_silence(browser: &Browser) {
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let is_inside =
        |url: &str| url.starts_with("data:") || (url.starts_with("file:") && url.ends_with(".html"));
    let outside: Vec<String> = browser.requests().into_iter().filter(|url| !is_inside(url)).collect();
    assert!(outside.is_empty(), "the page asked for {outside:?}");
    assert_eq!(browser.requests().iter().filter(|url| url.starts_with("file:")).count(), 1);
}

fn browser(name: &str) -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        eprintln!("SKIP {name}: no chromium (make setup)");
    }
    browser
}

#[test]
fn the_report_works_in_a_browser() {
    let Some(mut browser) = browser("the_report_works_in_a_browser") else { return };
    let (_lab, run) = lab_with_run(MIXED);
    browser.resize(1280, 900, false);
    browser.open(&run.join("report.html"));

    let ink = browser.run(INK);
    let ink = ink.as_array().expect("an array");
    assert!(ink.len() >= 10, "{ink:?}");
    assert!(ink.iter().all(|count| count.as_u64().is_some_and(|count| count > 200)), "{ink:?}");
    browser.run("document.getElementById('charts').scrollIntoView(); 1");
    browser.screenshot("desktop");

    // The keyboard: the first stop is the way past the tables; arrows move one cursor on all charts.
    browser.run("document.activeElement.blur(); scrollTo(0, 0); 1");
    browser.press("Tab");
    assert_eq!(browser.run("document.activeElement.className"), "skip");
    browser.run("report.charts[0].plotPlace.focus(); 1");
    for key in ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"] {
        browser.press(key);
    }
    // The first press shows the cursor at the beginning.
    assert_eq!(one(&browser.run(CURSORS)), 1);
    let legend = browser.run("report.charts.map(chart => chart.entries[0].shown.textContent !== '')");
    assert_eq!(one(&legend), true);
    browser.press("End");
    assert_eq!(one(&browser.run(CURSORS)), browser.run("report.times.length - 1"));
    for _ in 0..5 {
        browser.press("ArrowLeft");
    }

    // Zoom by keyboard is around the cursor; 0 shows the whole run.
    let whole = one(&browser.run(ZOOMS));
    assert_eq!(whole, json!([0, 20]));
    browser.press("+");
    browser.press("+");
    let zoomed = one(&browser.run(ZOOMS));
    let [from, to] = [0, 1].map(|end| zoomed[end].as_f64().expect("a number"));
    assert!(to - from < 6.0 && to > 19.0 && to <= 20.0, "{zoomed}");
    browser.press("-");
    assert_ne!(one(&browser.run(ZOOMS)), zoomed);
    browser.press("0");
    assert_eq!(one(&browser.run(ZOOMS)), whole);

    // So does the mouse, on all charts.
    browser.run("report.charts[0].plotPlace.scrollIntoView({ block: 'center' }); 1");
    browser.painted();
    let place = browser.run(
        "(() => { const r = report.charts[0].plot.over.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()",
    );
    let [x, y, width, height] = [0, 1, 2, 3].map(|part| place[part].as_f64().expect("a number"));
    let point = |share: f64| (x + width * share, y + height / 2.0);
    browser.mouse(&[point(0.5)]);
    let middle = one(&browser.run(CURSORS)).as_f64().expect("a number");
    assert!((middle - 200.0).abs() < 4.0, "{middle} of 400");
    browser.mouse(&[point(0.25), point(0.4), point(0.5)]);
    let zoomed = one(&browser.run(ZOOMS));
    let [from, to] = [0, 1].map(|end| zoomed[end].as_f64().expect("a number"));
    assert!((from - 5.0).abs() < 0.2 && (to - 10.0).abs() < 0.2, "{zoomed}");
    browser.screenshot("zoomed");
    browser.press("Escape");

    // Events and lines go away and come back; hiding a flow hides it on every chart of flows.
    let pixels = |browser: &mut Browser| -> u64 {
        browser.painted();
        browser.run(INK).as_array().expect("an array").iter().filter_map(Value::as_u64).sum()
    };
    browser.run("report.charts[0].plotPlace.focus(); 1");
    browser.press("0");
    let with = pixels(&mut browser);
    let kinds =
        browser.run("[...document.querySelectorAll('#kinds button')].map(button => button.dataset.kind)");
    for kind in ["drop", "error", "timeout", "retransmit"] {
        assert!(kinds.as_array().is_some_and(|kinds| kinds.contains(&json!(kind))), "{kinds}");
    }
    browser.run("document.querySelectorAll('#kinds button').forEach(button => button.click()); 1");
    let without = pixels(&mut browser);
    assert!(without < with, "{without} coloured pixels without events, {with} with them");
    browser.run("report.charts[0].legendPlace.children[2].click(); 1");
    // Not fewer: what is left may fill the chart.
    assert_ne!(pixels(&mut browser), without);
    let shown = browser.run(
        "report.charts.filter(chart => chart.spec.of === 'flows').map(chart => [chart.legendPlace.children[2].ariaPressed, chart.plot.series[3].show].join())",
    );
    assert!(
        shown
            .as_array()
            .is_some_and(|shown| shown.len() > 2 && shown.iter().all(|state| state == "false,false"))
    );

    // The same numbers without a picture.
    browser.run("report.charts[0].details.open = true; 1");
    browser.painted();
    let rows = browser.run("report.charts[0].details.querySelectorAll('tbody tr').length");
    assert!(rows.as_u64().is_some_and(|rows| rows > 100 && rows <= 200), "{rows}");
    check_silence(&browser);

    browser.resize(360, 740, true);
    browser.open(&run.join("report.html"));
    assert_eq!(browser.run("document.documentElement.scrollWidth"), 360, "the page is wider than a phone");
    assert_eq!(browser.run("innerWidth"), 360);
    browser.screenshot("phone-top");
    browser.run("document.getElementById('charts').scrollIntoView(); 1");
    browser.painted();
    browser.screenshot("phone");
    let light = browser.run("getComputedStyle(document.body).backgroundColor");
    browser.prefer_dark();
    browser.painted();
    assert_ne!(browser.run("getComputedStyle(document.body).backgroundColor"), light);
    browser.screenshot("phone-dark");
    browser.run("document.getElementById('topology').scrollIntoView(); 1");
    browser.painted();
    browser.screenshot("phone-topology-dark");
    browser.resize(1280, 900, false);
    browser.run("document.getElementById('charts').scrollIntoView(); 1");
    browser.painted();
    browser.screenshot("desktop-dark");
    check_silence(&browser);
}

/// The file that a browser saved, when it is there.
fn saved(path: &Path) -> Vec<u8> {
    for _ in 0..200 {
        if let Ok(bytes) = fs::read(path)
            && !bytes.is_empty()
        {
            return bytes;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{} was not saved", path.display());
}

#[test]
fn charts_have_units_a_strip_of_many_events_and_can_be_saved() {
    let Some(mut browser) = browser("charts_have_units_a_strip_of_many_events_and_can_be_saved") else {
        return;
    };
    let hostile = MIXED.replace("[flows.ftp]", "[flows.\"=</script>&\"]");
    let (lab, run) = lab_with_run(&hostile);
    browser.resize(1280, 900, false);
    browser.open(&run.join("report.html"));

    // Ages and units: the file's date, the axis of time, values under the cursor.
    let date = browser.run("document.getElementById('date').textContent");
    assert!(date.as_str().is_some_and(|date| date.starts_with("20") && date.len() == 16), "{date}");
    assert_eq!(one(&browser.run("report.charts.map(chart => chart.plot.axes[0].label)")), "time (s)");
    browser.run("report.charts[0].plotPlace.focus(); 1");
    browser.press("End");
    let shown =
        browser.run("report.charts.map(chart => [chart.spec.unit, chart.entries[0].shown.textContent])");
    for pair in shown.as_array().expect("an array") {
        let (unit, text) = (pair[0].as_str().expect("a unit"), pair[1].as_str().expect("a text"));
        assert!(text.ends_with(unit) && text != unit, "{text:?} has not the unit {unit:?}");
    }
    assert_eq!(browser.run("report.charts[0].entries[0].shown.textContent.split(' ')[1]"), "Mbit/s");
    let decimals = browser.run(
        "report.charts[0].rows().slice(1).length && report.charts[0].entries.map(entry => report.charts[0].at(entry, 399).split('.')[1]?.length ?? 0)",
    );
    assert!(one_length(&decimals), "{decimals}");

    // Many errors and retransmits are strips, few timeouts are not; a narrow zoom has marks on the lines again.
    let strips = browser.run("report.charts[0].rugKinds");
    let has = |kind: &str| strips.as_array().is_some_and(|kinds| kinds.contains(&json!(kind)));
    assert!(has("retransmit") && !has("timeout"), "{strips}");
    let drawn = |browser: &mut Browser| {
        browser.run(
            "(() => { const count = { marks: 0, strips: 0 }; const chart = report.charts[0];
              const place = { ...chart.plot.bbox, scale: 1, x: at => chart.plot.valToPos(at, 'x', true), y: v => chart.plot.valToPos(v, 'y', true) };
              chart.drawEvents(place, kind => { if (kind === 'retransmit') count.marks += 1; }, (kind, y, height, bins) => {
                if (kind === 'retransmit') count.strips += bins.filter(Boolean).length; });
              return count; })()",
        )
    };
    let whole = drawn(&mut browser);
    assert!(whole["marks"] == 0 && whole["strips"].as_u64() > Some(20), "{whole}");
    for _ in 0..4 {
        browser.press("+");
    }
    let near = drawn(&mut browser);
    assert!(near["marks"].as_u64() > Some(0), "{near}");
    browser.press("0");
    check_silence(&browser);

    // What is saved is what a click saves.
    browser.call("Browser.setDownloadBehavior", json!({ "behavior": "allow", "downloadPath": lab.path("") }));
    for kind in ["SVG", "PNG", "CSV"] {
        let click = format!("document.querySelector('figure.chart [data-save={kind}]').click(); 1");
        browser.run(&click);
    }
    let name = browser.run("report.charts[0].name.replace(/[^A-Za-z0-9._-]+/g, '-')");
    let name = name.as_str().expect("a name");
    let svg = String::from_utf8(saved(&lab.path(&format!("{name}.svg")))).expect("text");
    assert!(svg.starts_with("<svg ") && svg.contains("time (s)") && svg.contains("(Mbit/s)"), "{svg}");
    assert!(svg.contains("=&lt;/script&gt;&amp;[0]") && !svg.contains("</script>"));
    assert!(saved(&lab.path(&format!("{name}.png"))).starts_with(b"\x89PNG\r\n\x1a\n"));
    let csv = String::from_utf8(saved(&lab.path(&format!("{name}.csv")))).expect("text");
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some(
            "time (s),'=</script>&[0] (Mbit/s),'=</script>&[1] (Mbit/s),cubic[0] (Mbit/s),cubic[1] (Mbit/s)"
        )
    );
    assert_eq!(lines.clone().count(), 400, "a row for each bin");
    let numbers = lines.flat_map(|line| line.split(',')).filter(|cell| !cell.is_empty());
    assert!(numbers.clone().count() > 1000 && numbers.clone().all(|cell| cell.parse::<f64>().is_ok()));
}

/// All of an array are equal.
fn one_length(values: &Value) -> bool {
    values.as_array().is_some_and(|values| values.len() > 1 && values.iter().all(|value| value == &values[0]))
}

#[test]
fn a_sweep_leaves_a_report_of_its_points_and_claims() {
    let claim = "[[claims]]\nthat = \"<b>it is used</b>\"\nmetric = \"links.bottleneck.utilization\"\nat_least = 0.999\n\
                 decide = \"half\"\n[laws.xcp]\npacing = false\n";
    let grid =
        "{ \"links.bottleneck.rate\" = [\"5 Mbit/s\", \"10 Mbit/s\"], \"run.seed\" = [1, 2, 3, 4, 5] }";
    let scenario =
        format!("# Two rates\n{SCENARIO}start = {{ uniform = \"100 ms\" }}\n[sweep]\ngrid = {grid}\n{claim}");
    let lab = Lab::new(&scenario);
    lab.run(&["sweep", "scenario.toml", "--out", "swept"]).exits(0);
    let page = text_of(&lab);
    for part in [
        "<p class=\"about\">Two rates</p>",
        "<th scope=\"col\">bottleneck.rate</th>",
        "<td>5 Mbit/s</td><td>5</td><td>0.",
        "95 % confidence interval (Student's t)",
        "&lt;b&gt;it is used&lt;/b&gt;",
        "of 5 seeds</td>",
        "class=\"fails\">FAILS</td>",
    ] {
        assert!(page.contains(part), "{part} is missing in\n{page}");
    }
    let mean =
        page.split("<td>5 Mbit/s</td><td>5</td><td>").nth(1).and_then(|rest| rest.split("</td>").next());
    let mean = mean.and_then(|cell| cell.split_once(" ± ")).expect("a mean and its interval");
    assert!(mean.0.parse::<f64>().is_ok_and(|mean| mean > 0.5 && mean <= 1.0), "{mean:?}");
    // The same again, whatever the number of threads.
    lab.run(&["sweep", "scenario.toml", "--out", "swept", "--threads", "1"]).exits(0);
    assert_eq!(text_of(&lab), page);
    // From what is on disk, with the pictures as files.
    let again = lab.run(&["report", "swept", "--out", "again.html", "--figures", "figures"]).exits(0);
    assert_eq!(text(&lab.path("again.html")), page);
    let name = "scenario-links.bottleneck.utilization";
    assert_eq!(again.stdout(), format!("again.html\nfigures/{name}.svg\nfigures/{name}.png\n"));
    let svg = text(&lab.path(&format!("figures/{name}.svg")));
    assert!(
        svg.contains("utilisation of bottleneck (share)") && svg.contains("confidence interval"),
        "{svg}"
    );

    let Some(mut browser) = browser("a_sweep_leaves_a_report_of_its_points_and_claims") else { return };
    for width in [1280, 480] {
        browser.resize(width, 900, width < 500);
        browser.open(&lab.path("swept/report.html"));
        assert_eq!(browser.run("document.documentElement.scrollWidth"), width);
        browser.screenshot(&format!("sweep-{width}"));
        assert_eq!(browser.run("[...document.images].map(image => image.naturalWidth > 300)"), json!([true]));
        check_silence(&browser);
    }
}

/// A trace is what is in it, wherever it lies: the sweep that is kept beside the table is the same one.
#[test]
fn a_sweep_over_a_trace_is_drawn_again_and_a_part_of_one_says_what_is_missing() {
    let scenario = SCENARIO.replace("rate = \"10 Mbit/s\"", "rate = { trace = \"down/lte.trace\" }");
    let scenario = format!(
        "{scenario}start = {{ uniform = \"100 ms\" }}\n[sweep]\ngrid = {{ \"run.seed\" = [1, 2] }}\n"
    );
    let lab = Lab::new(&scenario);
    fs::create_dir(lab.path("down")).expect("writable");
    let stamps: String = (1..=100).map(|ms| format!("{}\n", 10 * ms)).collect();
    fs::write(lab.path("down/lte.trace"), stamps).expect("writable");
    lab.run(&["sweep", "scenario.toml", "--out", "swept"]).exits(0);
    let page = text_of(&lab);
    lab.run(&["report", "swept", "--out", "again.html"]).exits(0);
    assert_eq!(text(&lab.path("again.html")), page);
    lab.run(&["sweep", "swept/scenario.toml", "--out", "twice"]).exits(0);
    let [one, two] = ["swept", "twice"].map(|folder| text(&lab.path(&format!("{folder}/results.csv"))));
    assert_eq!(one, two);

    lab.run(&["sweep", "scenario.toml", "--out", "part", "--seeds", "8", "--shard", "1/2"]).exits(0);
    let refused = lab.run(&["report", "part"]).exits(2);
    assert!(refused.stderr().contains("the sweep in part is not complete"), "{}", refused.stderr());
}

/// A table without its points is refused by name, and nothing is written.
#[test]
fn a_sweep_whose_points_are_gone_is_not_drawn_again() {
    let grid = "[sweep]\ngrid = { \"links.bottleneck.rate\" = [\"5 Mbit/s\", \"10 Mbit/s\"] }\n";
    // The queue is one BDP, which follows from what is swept.
    let scenario = SCENARIO.replace("queue = \"50 packets\"\n", "");
    assert!(scenario.len() < SCENARIO.len());
    let lab = Lab::new(&format!("{scenario}{grid}"));
    lab.run(&["sweep", "scenario.toml", "--out", "swept"]).exits(0);
    // What is kept beside the table is the same sweep.
    lab.run(&["sweep", "swept/scenario.toml", "--out", "twice"]).exits(0);
    let [one, two] = ["swept", "twice"].map(|folder| text(&lab.path(&format!("{folder}/results.csv"))));
    assert_eq!(one, two);
    fs::remove_dir_all(lab.path("swept/points")).expect("points");
    let refused = lab.run(&["report", "swept", "--out", "again.html"]).exits(1);
    assert!(refused.stderr().contains("2 of 2 points in swept are missing"), "{}", refused.stderr());
    assert!(!lab.path("again.html").exists());
}

fn text_of(lab: &Lab) -> String {
    text(&lab.path("swept/report.html"))
}

/// 200 flows for an hour in bins of 100 ms: 29 million values.
#[test]
fn an_hour_of_two_hundred_flows_stays_small_and_opens() {
    const SECONDS: u64 = 3600;
    let text = SCENARIO.replace("\"2 s\"", "\"3600 s\"").replace("count = 2", "count = 200")
        + "[measure]\nevery = \"100 ms\"\n";
    let scenario = Scenario::parse("hour.toml", &text, Path::new(""), &[], None).expect("valid");
    let mut recording = Recording::new(&scenario);
    for bin in 1..=SECONDS * 10 {
        let at = bin * 100_000_000_000;
        for flow in 0..200u32 {
            // Nothing to compress, nothing to merge.
            let noise = (bin * 7919 + u64::from(flow) * 104_729) % 1009;
            for (metric, unit) in [
                ("throughput_bps", 1e4),
                ("received_bps", 1e4),
                ("goodput_bps", 9e3),
                ("cwnd_packets", 0.1),
                ("srtt_ms", 0.2),
            ] {
                recording.sample(at, Element::Flow(0, flow), metric, noise as f64 * unit);
            }
            if noise % 100 == 0 {
                recording.event(at, Element::Link(0), "drop", Some(flow));
                recording.event(at + 1, Element::Flow(0, flow), "retransmit", None);
            }
        }
        for metric in ["throughput_bps", "queue_packets", "feedback_Bps", "interval_ms"] {
            recording.sample(at, Element::Link(0), metric, (bin % 997) as f64);
        }
    }
    recording.finish();
    for (chart, _) in charts(&recording) {
        let points: Vec<usize> = chart.series.iter().map(Vec::len).filter(|&points| points > 0).collect();
        assert!(points.iter().all(|points| (1500..=2000).contains(points)), "{}: {points:?}", chart.metric);
        assert!(chart.of == Of::Links || points.len() == 200, "{}: a flow is lost", chart.metric);
    }
    let summary = json!({ "complete": true, "seed": 1, "fingerprint": "0123456789abcdef", "duration_s": 3600.0,
                          "links": {}, "flows": {}, "meta": { "version": "0", "date": "" } });
    let run = Run { name: "hour", written: None, normalised: &scenario.normalised(), summary: &summary };
    let page = html(&run, &recording);
    assert!(page.len() < 15_000_000, "{} bytes", page.len());

    let Some(mut browser) = browser("an_hour_of_two_hundred_flows_stays_small_and_opens") else { return };
    let lab = Lab::new(SCENARIO);
    fs::write(lab.path("hour.html"), page).expect("writable");
    browser.resize(1280, 900, false);
    browser.open(&lab.path("hour.html"));
    let ink = browser.run(INK);
    assert!(ink.as_array().is_some_and(|ink| ink.len() > 6), "{ink}");
    assert!(ink.as_array().is_some_and(|ink| ink.iter().all(|count| count.as_u64() > Some(200))), "{ink}");
    // A spread and one flow; every other one is a click away.
    assert_eq!(browser.run("report.charts[0].entries.length"), 2);
    assert_eq!(browser.run("document.querySelectorAll('#choices input').length"), 200);
    browser.run("document.querySelectorAll('#choices input')[137].click(); 1");
    browser.painted();
    assert_eq!(browser.run("report.charts[0].entries[2].name"), "ftp[137]");
    browser.run("report.charts[0].plotPlace.focus(); 1");
    browser.press("+");
    assert_eq!(one(&browser.run(ZOOMS)), json!([900, 2700]));
    browser.run("document.getElementById('charts').scrollIntoView(); 1");
    browser.painted();
    browser.screenshot("hour");
    check_silence(&browser);
}
