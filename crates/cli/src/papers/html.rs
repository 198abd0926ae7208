//! The page of a paper: its figures, what it says, and what came out.

use std::fmt::Write as _;

use congestlab_scenario::paper::{Counts, Exception, Paper};
use congestlab_scenario::report::{begin, end, escape, figure, judged, verdict_mark};

use super::codes::{self, Code};
use super::picture::drawn;
use super::{Answer, Ran, values};
use crate::ns2;

/// The paper's page with its pictures.
pub(super) fn html(paper: &Paper, ran: &[Ran]) -> String {
    let mut html = String::new();
    let counts = Counts::of(super::written(ran).iter());
    let _ = write!(
        html,
        "<header>\n<h1>{}</h1>\n<p class=\"about\">{}, {}</p>\n<dl>\n",
        escape(&paper.about.title),
        escape(&paper.about.authors),
        escape(&paper.about.published)
    );
    for (name, count) in [
        ("figures", ran.len()),
        ("claims that hold", counts.hold),
        ("tell nothing", counts.tell_nothing),
        ("undecided", counts.undecided),
        ("claims that fail", counts.fail),
        ("not run", paper.exceptions.len()),
    ] {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{count}</dd></div>");
    }
    html.push_str(
        "<div hidden><dt>date of this file</dt><dd id=\"date\"></dd></div>\n</dl>\n</header>\n<main>\n",
    );
    for figure in ran {
        section(&mut html, paper, ran, figure);
    }
    if !paper.exceptions.is_empty() {
        html.push_str("<section>\n<h2>Not run</h2>\n<div class=\"text\"><table class=\"claims\">\n");
        html.push_str(
            "<tr><th scope=\"col\">where</th><th scope=\"col\">what</th><th scope=\"col\">why</th></tr>\n",
        );
        for Exception { of, what, why } in &paper.exceptions {
            let _ = writeln!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
                linked(of),
                linked(what),
                linked(why)
            );
        }
        html.push_str("</table></div>\n</section>\n");
    }
    let codes = codes::named_in(&html);
    if !codes.is_empty() {
        html.push_str("<section>\n<h2>Codes</h2>\n<div class=\"text\"><table class=\"claims\">\n");
        html.push_str("<tr><th scope=\"col\">code</th><th scope=\"col\">what it is</th>");
        html.push_str("<th scope=\"col\">defined in</th></tr>\n");
        for Code { key, title, page, anchor } in codes {
            let _ = writeln!(
                html,
                "<tr id=\"{anchor}\"><td>{key}</td><td>{}</td><td>{page}#{anchor}</td></tr>",
                escape(title)
            );
        }
        html.push_str("</table></div>\n</section>\n");
    }
    html.push_str("</main>\n");
    begin(&paper.about.title, "") + &html + &end()
}

/// Text as HTML, its codes as links to the list below.
fn linked(text: &str) -> String {
    let (mut html, mut end) = (String::new(), 0);
    for place in codes::places(text) {
        let Some(code) = codes::defined().find(|code| code.key == &text[place.clone()]) else { continue };
        let _ = write!(
            html,
            "{}<a href=\"#{}\" title=\"{}\">{}</a>",
            escape(&text[end..place.start]),
            code.anchor,
            escape(code.title),
            code.key
        );
        end = place.end;
    }
    html + &escape(&text[end..])
}

/// Writes the section of one figure; causes may name values of all figures.
fn section(html: &mut String, paper: &Paper, all: &[Ran], ran: &Ran) {
    let Some(shown) = ran.scenario.figure() else { return };
    let title = format!("{}: {}", shown.of(), shown.title());
    let _ = writeln!(html, "<section>\n<h2>{}</h2>", escape(&title));
    if let Some(drawn) = drawn(ran, format!("{}-{}", paper.key, ran.name)) {
        html.push_str(&figure(&drawn, &format!("{}.parquet", ran.name)));
    }
    let peer = |that: &str| ns2::cell(&paper.peer, &ran.name, that);
    let has_peer = ran.answers.iter().any(|answer| !peer(&answer.verdict.that).is_empty());
    let heading = if has_peer { "<th scope=\"col\">ns-2</th>" } else { "" };
    let _ = writeln!(
        html,
        "<div class=\"text\"><table class=\"claims\">\n<tr><th scope=\"col\">claim</th><th scope=\"col\">source</th>\
         <th scope=\"col\">measured</th><th scope=\"col\">verdict</th>{heading}</tr>"
    );
    for (claim, answer) in ran.scenario.claims().iter().zip(&ran.answers) {
        let Answer { verdict, control, .. } = answer;
        let quote = claim
            .quote()
            .map_or(String::new(), |quote| format!("<blockquote>{}</blockquote>", escape(quote)));
        let control = control.as_ref().map_or(String::new(), |control| {
            let tells = if answer.does_not_tell() { "does not tell: " } else { "" };
            format!("<div>Control: {tells}{}, {}</div>", control.judgement.word(), judged(control))
        });
        let cause = values::cause(paper, all, &ran.name, claim).filter(|_| !verdict.holds());
        let cause = cause.map_or(String::new(), |cause| format!("<p>Why: {}</p>", linked(&cause)));
        let peer =
            if has_peer { format!("<td>{}</td>", escape(&peer(&verdict.that))) } else { String::new() };
        let _ = writeln!(
            html,
            "<tr><td>{}{quote}</td><td>{}</td><td>{}{control}{cause}</td>{}{peer}</tr>",
            linked(&verdict.that),
            linked(claim.source().unwrap_or("")),
            judged(verdict),
            verdict_mark(verdict.judgement)
        );
    }
    html.push_str("</table></div>\n</section>\n");
}
