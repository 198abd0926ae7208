//! `report.html`: one file with its data, style and program inside, that asks for nothing else.
//!
//! What can be read is HTML from here; the program (`assets/report.js`) draws the charts from a JSON
//! block with numbers as base64 of little-endian floats, a quarter of their size as digits.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};

use super::{Run, topology};
use crate::judging::sum;
use crate::showing::recording::{Of, Recording, charts};
use crate::showing::style;
use crate::showing::style::{DASHES, DIM, EVENT, FAINT, HUES, INK, PAPER};
use congestlab_text::cells::{Cell, Columns, Quantity};
use congestlab_text::number::{NOTHING, count, number};
use congestlab_text::printable::{self, escape};

const UPLOT: &str = include_str!("../../../assets/uplot-1.6.32/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../../assets/uplot-1.6.32/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../../../assets/uplot-1.6.32/LICENSE");
const STYLE: &str = include_str!("../../../assets/report.css");
/// Puts what is on a page into files; on every page with pictures.
const SAVE: &str = include_str!("../../../assets/save.js");
const PROGRAM: &str = include_str!("../../../assets/report.js");
const KEYS: &str = include_str!("../../../assets/keys.html");

/// What a page may load and run: nothing of elsewhere, whatever stands in a name.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// More rows than this are folded away.
const ROWS_SHOWN_MAX: usize = 20;

/// The report as one self-contained HTML file.
pub fn html(run: &Run<'_>, recording: &Recording) -> String {
    let mut page = begin(&format!("{}: congestlab report", run.name), UPLOT_STYLE);
    page.push_str("<a class=\"skip\" href=\"#charts\">Skip to the charts</a>\n");
    head(&mut page, run);
    page.push_str("<main>\n");
    section(&mut page, "results", "Results", &results(run.summary));
    section(&mut page, "charts", "Charts", &chart_places(recording));
    section(&mut page, "topology", "Topology", &picture(run.normalised, recording));
    section(&mut page, "scenario", "Scenario", &scenario(run));
    page.push_str("</main>\n");
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"data\">{}</script>\n\
         <script>\n/*\n{UPLOT_LICENCE}\n*/\n{UPLOT}</script>\n<script>\n{SAVE}{PROGRAM}</script>\n</body>\n</html>\n",
        in_script(&data(run.name, recording).to_string())
    );
    page
}

/// A page up to its body: its rules, title and style, with the palette in light and dark.
pub fn begin(title: &str, style_before: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>\n{style_before}\n{}{STYLE}</style>\n</head>\n<body>\n",
        escape(title),
        style::css()
    )
}

/// The end of a page of [`begin`] whose pictures and tables can be saved.
pub fn end() -> String {
    format!("<script>\n{SAVE}</script>\n</body>\n</html>\n")
}

/// JSON that can not end the script around it.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

fn section(page: &mut String, id: &str, title: &str, content: &str) {
    let _ = write!(
        page,
        "<section id=\"{id}\" tabindex=\"-1\" aria-labelledby=\"{id}-title\">\n\
         <h2 id=\"{id}-title\">{title}</h2>\n{content}</section>\n"
    );
}

fn text<'a>(value: &'a Json, key: &str) -> &'a str {
    value[key].as_str().unwrap_or(NOTHING)
}

fn head(page: &mut String, run: &Run<'_>) {
    let summary = run.summary;
    let is_complete = summary["complete"].as_bool().unwrap_or(false);
    let seed_used = summary["seed_used"].as_bool().unwrap_or(true);
    let [flows, links] = topology::laws(run.normalised).unwrap_or_default();
    let facts = [
        ("flows", flows),
        ("laws of links", links),
        (
            "seed",
            format!("{}{}", summary["seed"], if seed_used { "" } else { " (nothing random was drawn)" }),
        ),
        ("fingerprint", text(summary, "fingerprint").to_owned()),
        ("simulated", format!("{} s", number(summary["duration_s"].as_f64()))),
        ("packet-hops", summary["packet_hops"].as_f64().map_or_else(|| NOTHING.into(), count)),
        ("run", if is_complete { "complete".into() } else { "INCOMPLETE: stopped early".to_owned() }),
        ("congestlab", text(&summary["meta"], "version").to_owned()),
    ];
    let _ = write!(page, "<header>\n<h1>{}</h1>\n", escape(run.name));
    if let Some(about) = run.written.and_then(described) {
        let _ = writeln!(page, "<p class=\"about\">{}</p>", escape(&about));
    }
    page.push_str("<dl>\n");
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    // Equal runs give equal reports, so the date is that of the file; the browser knows it.
    page.push_str("<div hidden><dt>date of this file</dt><dd id=\"date\"></dd></div>\n</dl>\n</header>\n");
}

/// The comment that a scenario begins with, but for what it tells editors.
pub fn described(written: &str) -> Option<String> {
    let lines = written.lines().map(str::trim).skip_while(|line| line.is_empty() || line.starts_with("#:"));
    let comment = lines.map_while(|line| Some(line.strip_prefix('#')?.trim()));
    let about: Vec<&str> = comment.filter(|line| !line.is_empty()).collect();
    let about: String = about.join(" ").chars().take(DESCRIPTION_MAX).collect();
    (!about.is_empty()).then_some(about)
}

/// Characters of a description; a comment may be a book.
const DESCRIPTION_MAX: usize = 600;

/// A table; the first column names the row, the others are numbers. The heading is HTML.
pub fn table(caption: &str, heading: &[impl AsRef<str>], rows: &[Vec<Cell>]) -> String {
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table>\n\
         <caption>{caption}</caption>\n<thead><tr>"
    );
    for cell in heading {
        let _ = write!(html, "<th scope=\"col\">{}</th>", cell.as_ref());
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let columns = Columns::of(rows);
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in columns.row(row).enumerate() {
            let cell = escape(&printable::line(&cell, printable::CELL));
            let _ = match column {
                0 => write!(html, "<th scope=\"row\">{cell}</th>"),
                _ => write!(html, "<td>{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    html
}

pub(super) fn folded(summary: &str, is_open: bool, content: &str) -> String {
    let open = if is_open { " open" } else { "" };
    format!("<details{open}>\n<summary>{summary}</summary>\n{content}</details>\n")
}

fn entries(value: &Json) -> impl Iterator<Item = (&String, &Json)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn results(summary: &Json) -> String {
    let links: Vec<Vec<Cell>> = entries(&summary["links"]).map(|(name, link)| link_row(name, link)).collect();
    let heading = [
        "link",
        "capacity",
        "throughput",
        "utilisation",
        "queue mean",
        "p95",
        "max",
        "drops",
        "errors",
        "marks",
    ];
    let mut html = table("Links", &heading, &links);
    if links.len() > ROWS_SHOWN_MAX {
        html = folded(&format!("{} links", links.len()), false, &html);
    }
    let groups: Vec<Vec<Cell>> =
        entries(&summary["flows"]).map(|(name, flows)| group_row(name, flows, summary)).collect();
    if groups.is_empty() {
        return html;
    }
    let heading = [
        "flows",
        "count",
        "goodput sum",
        "mean",
        "min",
        "max",
        "Jain",
        "retransmits",
        "timeouts",
        "complete",
    ];
    html.push_str(&table("Groups of flows", &heading, &groups));
    let listed = || entries(&summary["flows"]).filter_map(|(name, flows)| Some((name, flows.as_array()?)));
    let rows: Vec<Vec<Cell>> = listed()
        .flat_map(|(name, flows)| flows.iter().enumerate().map(move |(i, flow)| flow_row(name, i, flow)))
        .take(FLOW_ROWS_MAX)
        .collect();
    if !rows.is_empty() {
        let all: usize = listed().map(|(_, flows)| flows.len()).sum();
        let heading = [
            "flow",
            "goodput",
            "throughput",
            "cwnd mean",
            "RTT mean",
            "RTT p95",
            "sent",
            "retransmits",
            "timeouts",
            "start",
            "completion",
        ];
        let title = match all {
            1 => "1 flow".to_owned(),
            _ if rows.len() < all => format!("The first {} of {all} flows", rows.len()),
            _ => format!("{all} flows"),
        };
        html.push_str(&folded(&title, all <= ROWS_SHOWN_MAX, &table("Flows", &heading, &rows)));
    }
    html
}

/// A table of more rows is for a program, not for a page.
const FLOW_ROWS_MAX: usize = 2000;

/// A count, as it is.
fn whole(value: &Json) -> Cell {
    Cell::Number(value.as_f64(), Quantity::Fixed(0, ""))
}

fn link_row(name: &str, link: &Json) -> Vec<Cell> {
    let of = |key: &str| link[key].as_f64();
    vec![
        name.into(),
        Cell::rate(of("capacity_bps")),
        Cell::rate(of("throughput_bps")),
        Cell::share(of("utilization")),
        Cell::number(of("queue_mean_packets"), ""),
        Cell::number(of("queue_p95_packets"), ""),
        whole(&link["queue_max_packets"]),
        whole(&link["drops"]),
        whole(&link["errors"]),
        whole(&link["marks"]),
    ]
}

fn flow_row(name: &str, index: usize, flow: &Json) -> Vec<Cell> {
    let of = |key: &str| flow[key].as_f64();
    vec![
        format!("{name}[{index}]").into(),
        Cell::rate(of("goodput_bps")),
        Cell::rate(of("throughput_bps")),
        Cell::number(of("cwnd_mean_packets"), ""),
        Cell::number(of("rtt_mean_ms"), "ms"),
        Cell::number(of("rtt_p95_ms"), "ms"),
        whole(&flow["sent_packets"]),
        whole(&flow["retransmits"]),
        whole(&flow["timeouts"]),
        Cell::fixed(of("start_s"), 3, "s"),
        Cell::fixed(of("completion_s"), 3, "s"),
    ]
}

/// A group, from its flows or from their distributions (`--flows summary`).
fn group_row(name: &str, flows: &Json, summary: &Json) -> Vec<Cell> {
    let together = Cell::rate(sum::goodput(summary, [flows]));
    let jain = Cell::fixed(summary["jain"][name].as_f64(), 3, "");
    let count = |value: Option<f64>| Cell::fixed(value, 0, "");
    let Some(flows) = flows.as_array() else {
        let goodput = |key: &str| Cell::rate(flows["goodput_bps"][key].as_f64());
        return vec![
            name.into(),
            whole(&flows["count"]),
            together,
            goodput("mean"),
            goodput("min"),
            goodput("max"),
            jain,
            count(sum::total(flows, "retransmits")),
            count(sum::total(flows, "timeouts")),
            whole(&flows["completion_s"]["count"]),
        ];
    };
    let goodputs: Vec<f64> = flows.iter().filter_map(|flow| flow["goodput_bps"].as_f64()).collect();
    let mean = (!goodputs.is_empty()).then(|| goodputs.iter().sum::<f64>() / goodputs.len() as f64);
    let total = |key: &str| Cell::whole(flows.iter().filter_map(|flow| flow[key].as_u64()).sum());
    vec![
        name.into(),
        Cell::whole(flows.len() as u64),
        together,
        Cell::rate(mean),
        Cell::rate(goodputs.iter().copied().reduce(f64::min)),
        Cell::rate(goodputs.iter().copied().reduce(f64::max)),
        jain,
        total("retransmits"),
        total("timeouts"),
        Cell::whole(flows.iter().filter(|flow| flow["completion_s"].is_number()).count() as u64),
    ]
}

/// Where the program draws. Without it, a reader still has the tables.
fn chart_places(recording: &Recording) -> String {
    let mut html =
        String::from("<noscript><p>The charts need JavaScript; the tables above do not.</p></noscript>\n");
    let charts = charts(recording);
    if charts.is_empty() {
        html.push_str("<p>This run has no time series.</p>\n");
        return html;
    }
    let (every, shared) = recording.bins();
    if shared > 1 {
        let _ = writeln!(
            html,
            "<p class=\"note\">Drawn from bins of {} s: two points stand for the least and the greatest of \
             {shared} bins. All values are in the data beside this file.</p>",
            number(Some(every))
        );
    }
    let kept = recording.flows().len();
    if kept < recording.flow_count() {
        let _ = writeln!(
            html,
            "<p class=\"note\">{kept} of {} flows can be looked at one by one; the spreads count all.</p>",
            recording.flow_count()
        );
    }
    let kept = recording.link_names().len();
    if kept < recording.link_count() {
        let _ = writeln!(html, "<p class=\"note\">{kept} of {} links are drawn.</p>", recording.link_count());
    }
    html.push_str(KEYS);
    for (index, (chart, label)) in charts.iter().enumerate() {
        let of = if chart.of == Of::Flows { "flows" } else { "links" };
        let _ = writeln!(
            html,
            "<figure class=\"chart\" data-chart=\"{index}\" data-metric=\"{}\" data-of=\"{of}\">\n\
             <figcaption>{}</figcaption>\n<div class=\"plot\"></div>\n<div class=\"legend\"></div>\n\
             <details class=\"values\"><summary>As a table</summary><div class=\"scroll\" tabindex=\"0\" \
             role=\"region\" aria-label=\"Values of {}\"></div></details>\n</figure>",
            escape(&chart.metric),
            escape(&label.axis()),
            escape(&label.title)
        );
    }
    html.push_str("<div id=\"said\" class=\"unseen\" role=\"status\" aria-live=\"polite\"></div>\n");
    html
}

fn picture(normalised: &str, recording: &Recording) -> String {
    let groups = recording.groups();
    let hue_of = |name: &str| {
        let place = groups.iter().position(|(group, _)| group == name);
        place.and_then(|place| recording.group_looks().get(place)).map_or(0, |look| look.hue)
    };
    match topology::draw(normalised, &hue_of) {
        Some(svg) => format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Topology\">\n{svg}</div>\n"
        ),
        None => "<p>Too many links or groups for a picture: the scenario below lists them.</p>\n".into(),
    }
}

fn scenario(run: &Run<'_>) -> String {
    let title = "As written (before --set and --seed)";
    let written = run.written.map(|text| scenario_block("as-written", title, text));
    written.unwrap_or_default()
        + &scenario_block("as-normalised", "As normalised: every default written out", run.normalised)
}

/// A text of a scenario, folded away, with a button that copies it.
pub(super) fn scenario_block(id: &str, title: &str, text: &str) -> String {
    let content = format!(
        "<button type=\"button\" class=\"copy\" data-copy=\"{id}\">Copy</button>\n\
         <pre id=\"{id}\" tabindex=\"0\">{}</pre>\n",
        escape(text)
    );
    folded(title, false, &content)
}

/// What the program draws.
fn data(name: &str, recording: &Recording) -> Json {
    let charts: Vec<Json> = charts(recording)
        .into_iter()
        .map(|(chart, label)| {
            let numbers =
                |values: &[f32]| floats(values.iter().map(|value| (f64::from(*value) / label.factor) as f32));
            let series: Vec<String> = chart.series.iter().map(|values| numbers(values)).collect();
            let spreads = chart.spreads.iter().filter(|spread| !spread.quantiles[0].is_empty());
            let spreads: Vec<Json> = spreads
                .map(|spread| {
                    let [low, middle, high] = spread.quantiles.each_ref().map(|values| numbers(values));
                    json!({ "group": spread.group, "low": low, "middle": middle, "high": high })
                })
                .collect();
            json!({
                "metric": chart.metric,
                "of": if chart.of == Of::Flows { "flows" } else { "links" },
                "title": label.title,
                "unit": label.unit,
                "series": series,
                "spreads": spreads,
            })
        })
        .collect();
    let marks: Vec<Json> = recording
        .marks()
        .iter()
        .map(|marks| {
            json!({
                "kind": marks.kind,
                "of": if marks.of == Of::Flows { "flows" } else { "links" },
                "index": marks.index,
                "at": floats(marks.at.iter().flat_map(|&(at, count)| [at, count as f32])),
            })
        })
        .collect();
    let groups = recording.groups();
    let flows: Vec<String> =
        recording.flows().into_iter().map(|(group, flow)| format!("{}[{flow}]", groups[group].0)).collect();
    let links = recording.link_names();
    let [hues, link_hues] = [recording.group_looks(), recording.link_looks()]
        .map(|looks| looks.iter().map(|look| look.hue).collect::<Vec<_>>());
    let mut flow_counts = vec![0; groups.len()];
    for (group, _) in recording.flows() {
        flow_counts[group] += 1;
    }
    json!({
        "name": name,
        "hues": hues,
        "link_hues": link_hues,
        // Flows that are kept, group by group.
        "flow_counts": flow_counts,
        "dashes": DASHES,
        // What is saved is on white paper whatever the page is on.
        "light": {
            "paper": PAPER.light, "ink": INK.light, "dim": DIM.light, "faint": FAINT.light, "event": EVENT.light,
            "hues": HUES.map(|hue| hue.light),
        },
        "duration": recording.duration_s(),
        "times": doubles(&recording.times()),
        "flows": flows,
        "links": links,
        "groups": groups.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "flows_drawn": recording.flows_drawn(),
        "links_drawn": recording.links_drawn(),
        "charts": charts,
        "marks": marks,
    })
}

fn floats(values: impl Iterator<Item = f32>) -> String {
    STANDARD.encode(values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>())
}

fn doubles(values: &[f64]) -> String {
    STANDARD.encode(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
}
